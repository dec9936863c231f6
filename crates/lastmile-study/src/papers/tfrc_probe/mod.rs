//! TFRC Probe: L.-J. Chen, T. Sun, G. Yang, M. Y. Sanadidi, M. Gerla, "Monitoring access link capacity using TFRC Probe".

use lastmile::time::Span;

use crate::papers::{Case, Item, Number, Paper, Row, Watch, each};

mod cases;
mod claims;
mod measure;
mod pictures;
mod tables;

use crate::papers::Shown::Mean;
use cases::{FORWARD, HAND_OFFS, LOADS, Link, Load, NS2, RFC, SAMPLES, WIFI, WIRED, WIRELESS};
use measure::{LAST, MOST};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "tfrc-probe",
    folder: "crates/lastmile-study/src/papers/tfrc_probe/scenarios",
    citation: "L.-J. Chen, T. Sun, G. Yang, M. Y. Sanadidi, M. Gerla, Monitoring access link capacity using TFRC Probe, UCLA",
    tables: 4,
    figures: 6,
    scenarios: &[
        ("asymmetric", include_str!("scenarios/asymmetric.toml")),
        ("ethernet", include_str!("scenarios/ethernet.toml")),
        ("dsl", include_str!("scenarios/dsl.toml")),
        ("1xrtt", include_str!("scenarios/1xrtt.toml")),
        ("wifi-b", include_str!("scenarios/wifi-b.toml")),
        ("modes", include_str!("scenarios/modes.toml")),
        ("hand-off", include_str!("scenarios/hand-off.toml")),
        ("increase", include_str!("scenarios/increase.toml")),
        ("pair", include_str!("scenarios/pair.toml")),
    ],
    numbers: include_str!("figures.toml"),
    watch: Some(Watch::every(Span::from_secs(1))),
    measures: false,
    measure: measure::measure,
    draw: measure::draw,
    items,
    claims: claims::claims,
};

/// The paper's own numbers.
fn figures() -> toml::Table {
    PAPER.numbers.parse().unwrap_or_default()
}

/// Runs in the lab that the paper's tables have of each link.
const IN_LAB: u64 = 5;

/// Bottleneck of table 1, in kbit/s.
const LOADED: u32 = 1_000;

fn items() -> Vec<Item> {
    use Number::{Figure, Table};
    let both = |of: &dyn Fn(&str) -> Case| HAND_OFFS.iter().map(|(_, wrapper)| of(wrapper)).collect();
    let near = |wrapper: &str| cases::hand_off(NS2, wrapper);
    let rfc = |wrapper: &str| cases::hand_off(RFC, wrapper);
    let loaded = LOADS[1..].iter().map(|&load| {
        let row = Row::new(&[&load.name()], cases::table_2(load, LOADED, SAMPLES[0]));
        row.paper(move |_| (load != Load::Ftp).then_some(80.0))
    });
    let fast = each(&each(&LOADS, &SAMPLES), &FORWARD).into_iter().map(|((load, samples), kbps)| {
        let case = cases::with_fast_access(cases::table_2(load, kbps, samples));
        Row::new(&[&load.name(), &samples, &kbps], case).paper(move |_| Some(f64::from(kbps)))
    });
    let increases = INCREASES
        .iter()
        .map(|&(tfrc, most)| Row::new(&[&tfrc], cases::increase(tfrc)).paper(move |_| Some(most)));
    vec![
        Item::made(
            "figure-1",
            Figure(1),
            "a pair's dispersion and its sum of delays, beside other packets",
            pictures::PAIRS.map(cases::pair).to_vec(),
            pictures::pairs,
        ),
        Item::fixed(
            "figure-2",
            Figure(2),
            "when packets of TFRC and of TFRC Probe leave",
            pictures::departures,
        ),
        Item::fixed("figure-3", Figure(3), "the topology of the simulation", || PAPER.links("asymmetric")),
        Item::rows(
            "table-1",
            Table(1),
            "cross traffic, and what it takes of a bottleneck of 1 Mbit/s",
            &["cross_traffic"],
            &[("share_percent", Mean("load"))],
            loaded,
        ),
        Item::made(
            "table-2",
            Table(2),
            "capacity under four loads, forward by TFRC Probe, there and back by CapProbe",
            each(&LOADS, &FORWARD).into_iter().flat_map(tables::probed).collect(),
            tables::asymmetric,
        ),
        Item::rows(
            "fast-access",
            None,
            "table II with access links of 100 Mbit/s",
            &["cross_traffic", "samples", "forward_kbps"],
            &[("tfrc_probe_kbps", Mean("capacity_1"))],
            fast,
        ),
        tables::access("table-3", Table(3), "capacity of wired links", &WIRED, Link::case).lab(IN_LAB),
        tables::access("table-4", Table(4), "capacity of wireless links", &WIRELESS, Link::case).lab(IN_LAB),
        tables::access(
            "half-rate",
            None,
            "tables III and IV with a source that takes half of what the link has",
            &[&WIRED[..], &WIRELESS].concat(),
            Link::half,
        ),
        tables::access(
            "video",
            None,
            "table III and 1xRTT with real video",
            &[&WIRED[..], &[Link::OneXrtt]].concat(),
            Link::filmed,
        )
        .apart()
        .lab(IN_LAB),
        tables::access("video-wifi", None, "802.11b of table IV with real video", &WIFI, Link::filmed)
            .apart()
            .lab(IN_LAB),
        Item::made(
            "figure-4",
            Figure(4),
            "capacity and size of packets while 802.11b changes its mode every 50 s",
            vec![Case::new("modes")],
            |results| tables::modes(results, &Case::new("modes")),
        ),
        Item::made(
            "video-modes",
            None,
            "figure 4 with real video",
            vec![cases::filmed(Case::new("modes"))],
            |results| tables::modes(results, &cases::filmed(Case::new("modes"))),
        )
        .apart()
        .lab(IN_LAB),
        Item::fixed("figure-5", Figure(5), "the networks of the hand-off", || PAPER.links("hand-off")),
        Item::made(
            "figure-6",
            Figure(6),
            "a hand-off from 150 kbit/s to 802.11b and back, with fast rate adaptation and without",
            both(&near),
            move |results| tables::hand_offs(results, &near),
        ),
        Item::made("video-hand-off", None, "figure 6 with real video", both(&cases::of_video), |results| {
            tables::hand_offs(results, &cases::of_video)
        })
        .apart()
        .lab(IN_LAB),
        Item::made("hand-off-rfc", None, "figure 6 with RFC 5348's TFRC", both(&rfc), move |results| {
            tables::hand_offs(results, &rfc)
        }),
        Item::made(
            "hand-off-of-one-rtt",
            None,
            "figure 6 where the round-trip time does not change: 310 ms",
            both(&cases::of_one_rtt),
            |results| tables::hand_offs(results, &cases::of_one_rtt),
        ),
        Item::made(
            "hand-off-of-one-size",
            None,
            "figure 6 where the size of packets does not change: 500 B",
            both(&cases::of_one_size),
            |results| tables::hand_offs(results, &cases::of_one_size),
        ),
        Item::rows(
            "increase",
            None,
            "sections 3.1 and 6: how fast TFRC's rate rises without losses, in packets per round-trip time in each",
            &["controller"],
            &[("most", Mean(MOST)), ("last", Mean(LAST))],
            increases,
        ),
    ]
}

/// TFRC with history discounting and without, and the paper's upper bound.
const INCREASES: [(&str, f64); 4] = [
    ("tfrc(preset=ns-2,header=0,discount=1)", 0.14),
    ("tfrc(preset=ns-2,header=0)", 0.22),
    ("tfrc(discount=1)", 0.14),
    ("tfrc", 0.22),
];
