//! VTP: G. Yang, L.-J. Chen, T. Sun, M. Gerla, M. Y. Sanadidi, "Smooth and efficient real-time video transport in presence
//! of wireless errors".

use lastmile::time::Span;

use crate::papers::Shown::{Ci99, Mean};
use crate::papers::{Item, Number, Paper, Row, Watch, each};

mod cases;
mod claims;
mod judge;
mod measure;
mod section_4;
mod tables;
mod testbed;
mod variants;

use cases::{ERRORS, FEW, FIVE, FRACTIONS, RFC, SetUp, THRESHOLDS, WIRELESS, alone, two_of_vtp};
use tables::{burst_runs, figure_5, figure_7, friendliness, of_runs, stepped, thresholds};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "vtp",
    folder: "crates/lastmile-study/src/papers/vtp/scenarios",
    citation: "G. Yang, L.-J. Chen, T. Sun, M. Gerla, M. Y. Sanadidi, Smooth and efficient real-time video transport in presence of wireless errors, ACM TOMCCAP 2(2), 2006",
    tables: 0,
    figures: 12,
    scenarios: &[
        ("wlan", include_str!("scenarios/wlan.toml")),
        ("wired", include_str!("scenarios/wired.toml")),
        ("testbed", include_str!("scenarios/testbed.toml")),
    ],
    numbers: include_str!("figures.toml"),
    watch: Some(Watch { packets: true, ..Watch::every(Span::from_millis(50)) }),
    measures: false,
    measure: measure::measure,
    draw: measure::draw,
    items,
    claims: claims::claims,
};

/// Readings of VTP, and the classifier that section 2.2 names beside Spike.
const READINGS: [&str; 5] =
    ["vtp", "vtp(cut=window)", "vtp(hold=rounds)", "vtp(hold=rounds,cut=window)", "tfrc+zbs"];

fn items() -> Vec<Item> {
    use Number::Figure;
    let mut items = section_4::items();
    let stepped = |id, number: Option<Number>, shows, set_up, schemes: &[&'static str]| {
        of_runs(id, number, shows, stepped(set_up, schemes))
    };
    items.extend([
        Item::fixed("figure-4", Figure(4), "the topology: wires, a base station, a WLAN", || {
            PAPER.links("wlan")
        }),
        figure_5(),
        stepped(
            "figure-6",
            Some(Figure(6)),
            "sending rates beside cross traffic of 0, 1, 2, 1 and 0 Mbit/s, a minute each",
            SetUp::Rts,
            &WIRELESS,
        ),
        figure_7(),
        of_runs(
            "figure-8",
            Some(Figure(8)),
            "the same at 2 % of errors in bursts of 4, 20 and 100 ms",
            burst_runs(),
        ),
        friendliness(
            "figure-9",
            Some(Figure(9)),
            "a flow beside TCP NewReno, Mbit/s with 99 % intervals",
            &[(SetUp::Rts, &ERRORS)],
        )
        .runs(100),
        Item::never(
            "figure-10",
            Figure(10),
            "the testbed of three laptops",
            "it is a drawing of machines; `lastmile lab` is ours",
        ),
        testbed::figure_11(),
        testbed::figure_12(),
        wired(),
        stepped("rfc", None, "figure 6 with RFC 5348's TFRC in the place of ns-2's", SetUp::Rts, &RFC),
        stepped(
            "fractions",
            None,
            "figure 6 where MULTFRC counts fractions of connections",
            SetUp::Rts,
            &FRACTIONS,
        ),
        thresholds(&THRESHOLDS),
        stepped(
            "wired-steps",
            None,
            "figure 6 on the wired link, as earlier work had it",
            SetUp::Wired,
            &WIRELESS,
        ),
        stepped("no-rts", None, "figure 6 without RTS and CTS", SetUp::NoRts, &WIRELESS),
        friendliness(
            "friendliness",
            None,
            "figure 9 without RTS and CTS, where each other segment of TCP is acknowledged, and on the wired link",
            &[(SetUp::NoRts, &FEW), (SetUp::DelayedAcks, &FEW), (SetUp::Wired, &FEW)],
        ),
        throughputs(),
        stepped(
            "retries",
            None,
            "section 5.3: figure 6 with errors on the air itself, where frames are sent again",
            SetUp::Retries,
            &WIRELESS,
        ),
        stepped(
            "air",
            None,
            "section 5.3: figure 6 with two states of errors in time on the air, which hit requests too",
            SetUp::Air,
            &WIRELESS,
        ),
        friendliness(
            "air-friendliness",
            None,
            "figure 9 with two states of errors in time on the air, which hit requests too",
            &[(SetUp::Air, &ERRORS)],
        ),
        stepped("readings", None, "figure 6 with VTP's readings, and TFRC with ZBS", SetUp::Rts, &READINGS),
        Item::never(
            "rcs",
            None,
            "section 2.2: RCS",
            "its dummy packets need gateways with priorities, which no network here has",
        ),
        Item::never(
            "scp",
            None,
            "section 2.2: SCP",
            "the paper describes it in a sentence and runs none of it",
        ),
    ]);
    items
}

/// Schemes alone on the wired link, without errors [section 5.1]; the streams' kinds and two flows of VTP.
const ON_WIRES: [&str; 4] = ["vtp", "tfrc", "tfrc-wireless", "multfrc"];

fn wired() -> Item {
    let rows = ON_WIRES.map(|scheme| Row::new(&[&scheme], alone(SetUp::Wired, scheme, 0)));
    Item::rows(
        "wired",
        None,
        "section 5.1: alone on the wired link, without errors; and two flows of VTP",
        &["scheme"],
        &[
            ("rate_mbps", Mean("rate")),
            ("throughput_mbps", Mean("throughput")),
            ("variation_percent", Mean("variation")),
            ("percent_lost_in_queues", Mean("overflow")),
            ("beside_mbps", Mean("beside")),
        ],
        rows.into_iter().chain([Row::new(&[&"vtp beside vtp"], two_of_vtp())]),
    )
}

/// Figure 5 in other set-ups, without errors and at 5 % of them.
fn throughputs() -> Item {
    let set_ups = [SetUp::NoRts, SetUp::DelayedAcks, SetUp::Wired];
    let row = |((set_up, percent), scheme): ((SetUp, u32), &str)| {
        Row::new(&[&set_up.name(), &percent, &scheme], alone(set_up, scheme, percent))
    };
    Item::rows(
        "throughputs",
        None,
        "figure 5 in other set-ups: throughput in Mbit/s",
        &["set-up", "errors_percent", "scheme"],
        &[("throughput_ci99", Ci99("throughput"))],
        each(&each(&set_ups, &[0, 5]), &FIVE).into_iter().map(row),
    )
}
