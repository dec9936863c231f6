//! Seed 001: L.-J. Chen, T. Sun, G. Yang, M. Y. Sanadidi, M. Gerla, "Monitoring access link capacity using TFRC Probe".

use crate::papers::paper::{Case, Item, Number, Paper};

mod cases;
mod claims;
mod measure;
mod pictures;
mod tables;

use cases::{FORWARD, HAND_OFFS, LOADS, Link, NS2, RFC, SAMPLES, WIRED, WIRELESS};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "tfrc-probe",
    folder: "crates/lastmile-study/src/papers/tfrc_probe/scenarios",
    citation: "L.-J. Chen, T. Sun, G. Yang, M. Y. Sanadidi, M. Gerla, Monitoring access link capacity using TFRC Probe, UCLA (seed 001)",
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
    statements: include_str!("claims.toml"),
    watch: None,
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

/// What table 1 is looked at with, in kbit/s.
const LOADED: u32 = 1_000;

fn items() -> Vec<Item> {
    use Number::{Figure, Table};
    let links = |links: &[Link]| links.iter().map(|link| link.case()).collect();
    let every = |case: &dyn Fn(cases::Load, u32) -> Vec<Case>| {
        LOADS.iter().flat_map(|&load| FORWARD.iter().flat_map(move |&kbps| case(load, kbps))).collect()
    };
    let both = |of: &dyn Fn(&str) -> Case| HAND_OFFS.iter().map(|(_, wrapper)| of(wrapper)).collect();
    let near = |wrapper: &str| cases::hand_off(NS2, wrapper);
    let rfc = |wrapper: &str| cases::hand_off(RFC, wrapper);
    vec![
        Item::made(
            "figure-1",
            Some(Figure(1)),
            "what other packets do to a pair's dispersion, and to its sum of delays",
            pictures::PAIRS.map(cases::pair).to_vec(),
            pictures::pairs,
        ),
        Item::made(
            "figure-2",
            Some(Figure(2)),
            "when packets of TFRC and of TFRC Probe leave",
            vec![],
            |_| pictures::departures(),
        ),
        Item::made("figure-3", Some(Figure(3)), "the topology of the simulation", vec![], |_| {
            PAPER.links("asymmetric")
        }),
        Item::made(
            "table-1",
            Some(Table(1)),
            "cross traffic, and what it takes of a bottleneck of 1 Mbit/s",
            LOADS[1..].iter().map(|&load| cases::table_2(load, LOADED, SAMPLES[0])).collect(),
            tables::loads,
        ),
        Item::made(
            "table-2",
            Some(Table(2)),
            "capacity under four loads, forward by TFRC Probe, there and back by CapProbe",
            every(&|load, kbps| {
                let probe = SAMPLES.map(|samples| cases::table_2(load, kbps, samples));
                [&probe[..], &[cases::capprobe(load, kbps)]].concat()
            }),
            tables::asymmetric,
        ),
        Item::made(
            "fast-access",
            None,
            "table II with access links of 100 Mbit/s",
            every(&|load, kbps| {
                SAMPLES.map(|samples| cases::with_fast_access(cases::table_2(load, kbps, samples))).to_vec()
            }),
            tables::fast_access,
        ),
        Item::made("table-3", Some(Table(3)), "capacity of wired links", links(&WIRED), |results| {
            let mut table = tables::access_table();
            tables::access(results, "table_3", &WIRED, &Link::case, &mut table);
            table
        })
        .lab(IN_LAB),
        Item::made("table-4", Some(Table(4)), "capacity of wireless links", links(&WIRELESS), |results| {
            let mut table = tables::access_table();
            tables::access(results, "table_4", &WIRELESS, &Link::case, &mut table);
            table
        })
        .lab(IN_LAB),
        Item::made(
            "half-rate",
            None,
            "tables III and IV with a source that takes half of what the link has",
            WIRED.iter().chain(&WIRELESS).map(|link| link.half()).collect(),
            |results| {
                let mut table = tables::access_table();
                tables::access(results, "table_3", &WIRED, &Link::half, &mut table);
                tables::access(results, "table_4", &WIRELESS, &Link::half, &mut table);
                table
            },
        ),
        Item::made(
            "figure-4",
            Some(Figure(4)),
            "capacity and size of packets while 802.11b changes its mode every 50 s",
            vec![Case::new("modes")],
            tables::modes,
        ),
        Item::made("figure-5", Some(Figure(5)), "the networks of the hand-off", vec![], |_| {
            PAPER.links("hand-off")
        }),
        Item::made(
            "figure-6",
            Some(Figure(6)),
            "a hand-off from 150 kbit/s to 802.11b and back, with fast rate adaptation and without",
            both(&near),
            move |results| tables::hand_offs(results, &near),
        ),
        Item::made("hand-off-rfc", None, "figure 6 with RFC 5348's TFRC", both(&rfc), move |results| {
            tables::hand_offs(results, &rfc)
        }),
        Item::made(
            "hand-off-alike",
            None,
            "figure 6 where neither round-trip time nor size of packets changes: 310 ms, 500 B",
            both(&cases::hand_off_alike),
            |results| tables::hand_offs(results, &cases::hand_off_alike),
        ),
        Item::made(
            "increase",
            None,
            "sections 3.1 and 6: how fast TFRC's rate rises without losses, in packets per round-trip time in each",
            INCREASES.iter().map(|(tfrc, _)| cases::increase(tfrc)).collect(),
            tables::increases,
        ),
    ]
}

/// TFRC with history discounting and without, and what the paper says at most.
const INCREASES: [(&str, Option<f64>); 4] = [
    ("tfrc(preset=ns-2,header=0,discount=1)", Some(0.14)),
    ("tfrc(preset=ns-2,header=0)", Some(0.22)),
    ("tfrc(discount=1)", Some(0.14)),
    ("tfrc", Some(0.22)),
];
