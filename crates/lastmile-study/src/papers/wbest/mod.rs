//! WBest: M. Li, M. Claypool, R. Kinicki, "WBest: a bandwidth estimation tool for multimedia streaming application over IEEE 802.11
//! wireless networks".

use lastmile::time::Span;

use crate::papers::{Item, Number, Paper, Watch};

mod cases;
mod claims;
mod measure;
mod pictures;
mod tables;

use cases::{LEFT, LONG_QUEUE, SetUp, TESTBED, forced};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "wbest",
    folder: "crates/lastmile-study/src/papers/wbest/scenarios",
    citation: "M. Li, M. Claypool, R. Kinicki, WBest: a bandwidth estimation tool for multimedia streaming application over IEEE 802.11 wireless networks, LCN 2008",
    tables: 3,
    figures: 34,
    scenarios: &[
        ("ap", include_str!("scenarios/ap.toml")),
        ("ap-13", include_str!("scenarios/ap-13.toml")),
        ("ap-n", include_str!("scenarios/ap-n.toml")),
        ("ap-n-13", include_str!("scenarios/ap-n-13.toml")),
        ("errors", include_str!("scenarios/errors.toml")),
        ("compressed", include_str!("scenarios/compressed.toml")),
        ("pace", include_str!("scenarios/pace.toml")),
        ("sequence", include_str!("scenarios/sequence.toml")),
    ],
    numbers: include_str!("figures.toml"),
    watch: Some(Watch::every(Span::from_millis(100))),
    measures: true,
    measure: measure::measure,
    draw: measure::draw,
    items,
    claims: claims::claims,
};

/// The paper's own numbers.
fn figures() -> toml::Table {
    PAPER.numbers.parse().unwrap_or_default()
}

/// Queues of access points [section II.C].
const QUEUES: [(&str, SetUp); 4] = [
    ("40 packets", SetUp { queue: 40, ..TESTBED }),
    ("100 packets", TESTBED),
    ("200 packets", SetUp { queue: 200, ..TESTBED }),
    ("300 packets", LONG_QUEUE),
];

/// Packets that contend, and the rates of those who do.
const CONTENDERS: [(&str, SetUp); 6] = [
    ("54 Mbit/s, 1500 B", SetUp { contends: "54", ..TESTBED }),
    ("24 Mbit/s, 1500 B", TESTBED),
    ("18 Mbit/s, 1500 B", SetUp { contends: "18", ..TESTBED }),
    ("54 Mbit/s, 400 B", SetUp { contends: "54", size: 400, ..TESTBED }),
    ("ARF, 1500 B", pictures::ADAPTING),
    ("ARF, 400 B", SetUp { size: 400, ..pictures::ADAPTING }),
];

/// TCP's law, recovery and window.
const TCP: [(&str, SetUp); 4] = [
    ("NewReno, 120 segments", TESTBED),
    ("NewReno, 45 segments", SetUp { tcp: ("reno", "newreno", 45), ..TESTBED }),
    ("CUBIC, 120 segments", SetUp { tcp: ("cubic", "sack", 120), ..TESTBED }),
    ("CUBIC, 45 segments", SetUp { tcp: ("cubic", "sack", 45), ..TESTBED }),
];

fn items() -> Vec<Item> {
    use Number::{Figure, Table};
    let drawing = "it is a drawing of the model";
    let boxes = [
        ("figure-10", 10, 0, "case 0, the idle channel: 10, 25, 50, 75 and 90 % of the runs"),
        ("figure-11", 11, 1, "case 1: UDP crosses"),
        ("figure-12", 12, 2, "case 2: UDP contends"),
        ("figure-13", 13, 13, "case 13: the rate adapts"),
        ("figure-16", 16, 3, "case 3: TCP crosses"),
        ("figure-17", 17, 4, "case 4: TCP contends"),
        ("figure-18", 18, 5, "case 5: two flows of UDP cross"),
        ("figure-19", 19, 6, "case 6: two flows of UDP contend"),
        ("figure-20", 20, 7, "case 7: two flows of TCP cross"),
        ("figure-21", 21, 8, "case 8: two flows of TCP contend"),
        ("figure-22", 22, 9, "case 9: UDP crosses, UDP contends"),
        ("figure-23", 23, 10, "case 10: TCP crosses, TCP contends"),
        ("figure-24", 24, 11, "case 11: UDP crosses, TCP contends"),
        ("figure-25", 25, 12, "case 12: TCP crosses, UDP contends"),
    ];
    let fluid = LEFT.map(|left| forced(left, 0.0)).to_vec();
    let mut items = vec![
        Item::fixed("table-1", Table(1), "the cases, with what the paper leaves open", tables::table_1),
        tables::table_2(TESTBED),
        tables::table_3(),
        Item::fixed(
            "figure-1",
            Figure(1),
            "the network: two servers, an access point, three clients",
            || PAPER.links("ap"),
        ),
        Item::never("figure-2", Figure(2), "the fluid model of the last hop", drawing),
        Item::made(
            "figure-3",
            Figure(3),
            "A against R in the fluid model, and in runs",
            fluid,
            pictures::fluid,
        ),
        pictures::of_capacity(),
        pictures::of_arrival(),
        Item::made(
            "figure-6",
            Figure(6),
            "a run of the tools one after the other",
            vec![crate::papers::Case::new("sequence")],
            pictures::sequence,
        )
        .runs(1),
        Item::fixed("figure-7", Figure(7), "rates of case 13 over time", pictures::bad_channel),
        pictures::of_pairs_item(),
        pictures::of_trains_item(),
        tables::costs("figure-14", 14, "s", "time against error, all runs"),
        tables::costs("figure-15", 15, "mb", "volume against error, all runs"),
        pictures::pacing(),
        pictures::fallback("figure-27", 27, "case 6 with ARF: the clients' rates"),
        pictures::fallback("figure-28", 28, "case 6 with ARF: the access point's rate"),
        pictures::fallback("figure-29", 29, "case 6 with ARF: the access point's retries"),
        pictures::fallback("figure-30", 30, "case 6 with ARF: throughput of the saturated flow"),
        pictures::round_trips(),
        tables::of_errors("figure-32", 32, "distribution of the capacity's error, %"),
        tables::of_errors("figure-33", 33, "distribution of the available bandwidth's error, %"),
        tables::of_errors("figure-34", 34, "error of the available bandwidth against the capacity's, %"),
        Item::fixed("sample-sizes", None, "equation 7: samples for 0.5 Mbit/s at 95 %", pictures::samples),
        pictures::open("queues", "queues of 40 to 300 packets at the access point", &QUEUES, &[1, 2, 3, 4]),
        pictures::open(
            "contenders",
            "packets that contend and the rate of those who do: the truths of cases 2, 6 and 9",
            &CONTENDERS,
            &[2, 6, 9, 4],
        ),
        pictures::open("tcp", "TCP's variants and windows", &TCP, &[3, 4, 7, 8, 10, 11, 12]),
        pictures::told_trains(),
        pictures::known_capacity(),
        tables::coarse_stamps(),
        tables::aggregation(),
    ];
    items.extend(boxes.map(|(item, figure, id, shows)| tables::boxes(item, figure, id, shows)));
    items
}
