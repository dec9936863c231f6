//! Seed 002: G. Yang, L.-J. Chen, T. Sun, M. Gerla, M. Y. Sanadidi, "Smooth and efficient real-time video transport in presence
//! of wireless errors" (VTP).

use lastmile::time::Span;

use crate::papers::paper::{Item, Number, Paper};
use crate::papers::watch::Watch;
use lastmile_report::table::{Cell, Table};

mod cases;
mod claims;
mod measure;
mod section_4;
mod tables;

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
    ],
    numbers: include_str!("figures.toml"),
    statements: include_str!("claims.toml"),
    watch: Some(Watch { step: Span::from_millis(50), packets: true }),
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
    items.extend([
        Item::made(
            "figure-4",
            Some(Figure(4)),
            "the topology: wires, a base station, a WLAN",
            vec![],
            |_| PAPER.links("wlan"),
        ),
        figure_5(),
        of_runs(
            "figure-6",
            Some(Figure(6)),
            "sending rates beside cross traffic of 0, 1, 2, 1 and 0 Mbit/s, a minute each",
            stepped(SetUp::Rts, &WIRELESS),
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
        ),
        Item::never(
            "figure-10",
            Some(Figure(10)),
            "the testbed of three laptops",
            "it is a drawing of machines; `lastmile lab` is ours",
        ),
        Item::waits("figure-11", Some(Figure(11)), "real video under errors", VIDEO),
        Item::waits("figure-12", Some(Figure(12)), "real video beside cross traffic", VIDEO),
        wired(),
        of_runs(
            "rfc",
            None,
            "figure 6 with RFC 5348's TFRC in the place of ns-2's",
            stepped(SetUp::Rts, &RFC),
        ),
        of_runs(
            "fractions",
            None,
            "figure 6 where MULTFRC counts fractions of connections",
            stepped(SetUp::Rts, &FRACTIONS),
        ),
        thresholds(&THRESHOLDS),
        of_runs(
            "wired-steps",
            None,
            "figure 6 on the wired link, as earlier work had it",
            stepped(SetUp::Wired, &WIRELESS),
        ),
        of_runs("no-rts", None, "figure 6 without RTS and CTS", stepped(SetUp::NoRts, &WIRELESS)),
        friendliness(
            "friendliness",
            None,
            "figure 9 without RTS and CTS, where each other segment of TCP is acknowledged, and on the wired link",
            &[(SetUp::NoRts, &FEW), (SetUp::DelayedAcks, &FEW), (SetUp::Wired, &FEW)],
        ),
        throughputs(),
        of_runs(
            "retries",
            None,
            "section 5.3: figure 6 with errors on the air itself, where frames are sent again",
            stepped(SetUp::Retries, &WIRELESS),
        ),
        of_runs(
            "readings",
            None,
            "figure 6 with VTP's readings, and TFRC with ZBS",
            stepped(SetUp::Rts, &READINGS),
        ),
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

/// What figures 11 and 12 need.
const VIDEO: &str = "real video in the lab";

/// Schemes alone on the wired link, without errors [section 5.1]; the streams' kinds and two flows of VTP.
const ON_WIRES: [&str; 4] = ["vtp", "tfrc", "tfrc-wireless", "multfrc"];

fn wired() -> Item {
    let cases =
        ON_WIRES.map(|scheme| alone(SetUp::Wired, scheme, 0)).into_iter().chain([two_of_vtp()]).collect();
    let shows = "section 5.1: alone on the wired link, without errors; and two flows of VTP";
    Item::made("wired", None, shows, cases, |results| {
        let mut table = Table::new(&[
            "scheme",
            "rate_mbps",
            "throughput_mbps",
            "variation_percent",
            "percent_lost_in_queues",
            "beside_mbps",
        ]);
        let rows = ON_WIRES.map(|scheme| (scheme, alone(SetUp::Wired, scheme, 0)));
        for (scheme, case) in rows.into_iter().chain([("vtp beside vtp", two_of_vtp())]) {
            let cells = ["rate", "throughput", "variation", "overflow", "beside"];
            let cells = cells.map(|what| Cell::from(results.mean(&case, what)));
            table.row([Cell::from(scheme)].into_iter().chain(cells));
        }
        table
    })
}

/// Where figure 5 is looked at otherwise, and at which errors.
const OTHERWISE: [SetUp; 3] = [SetUp::NoRts, SetUp::DelayedAcks, SetUp::Wired];

fn throughputs() -> Item {
    let all = || {
        let both = OTHERWISE.into_iter().flat_map(|set_up| [0, 5].map(|percent| (set_up, percent)));
        both.flat_map(|(set_up, percent)| FIVE.map(|scheme| (set_up, percent, scheme)))
    };
    let cases = all().map(|(set_up, percent, scheme)| alone(set_up, scheme, percent)).collect();
    let shows = "figure 5 in other set-ups: throughput in Mbit/s";
    Item::made("throughputs", None, shows, cases, move |results| {
        let mut table = Table::new(&["set-up", "errors_percent", "scheme", "throughput_ci99"]);
        for (set_up, percent, scheme) in all() {
            let found =
                results.mean(&alone(set_up, scheme, percent), "throughput").map(|found| found.at_99());
            let head = [set_up.name().to_owned(), percent.to_string(), scheme.to_owned()];
            table.row(head.map(Cell::from).into_iter().chain([found.into()]));
        }
        table
    })
}
