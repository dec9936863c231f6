//! Seed 004: S. Cen, P. C. Cosman, G. M. Voelker, "End-to-end differentiation of congestion and wireless losses".

use crate::papers::paper::{Case, Item, Lines, Number, Paper};
use lastmile_report::table::{Cell, Table};
use toml::Value;

mod cases;
mod claims;
mod regions;
mod tables;
mod variants;

use cases::{FLOWS, Preset, SCHEMES, TCP_FREE, Topology, case};
use tables::{beside_tcp, channel, curves, deviations, operations, performance, statistics, uses, variants};
use variants::{Variant, beside_tcp_otherwise, old_tcp, sweeps, variant};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "lda",
    folder: "crates/lastmile-study/src/papers/lda/scenarios",
    citation: "S. Cen, P. C. Cosman, G. M. Voelker, End-to-end differentiation of congestion and wireless losses, IEEE/ACM ToN 11(5), 2003",
    tables: 6,
    figures: 15,
    scenarios: &[
        ("wlh", include_str!("scenarios/wlh.toml")),
        ("wb", include_str!("scenarios/wb.toml")),
        ("lan", include_str!("scenarios/lan.toml")),
    ],
    numbers: include_str!("figures.toml"),
    statements: include_str!("claims.toml"),
    watch: None,
    measure: cases::measure,
    draw: |_| Lines::new(),
    items,
    claims: || claims::claims().into_iter().chain(variants::claims()).collect(),
};

/// What is measured of flows, in percent: as the tables have it.
const MEASURED: [&str; 4] = ["throughput", "congestion_loss", "mc", "mw"];
/// Flows beside TCP, TCP among them [figure 15].
const TOTALS: [u32; 4] = [2, 4, 8, 16];
/// ns-2's TFRC, which the paper ran, and RFC 5348's.
const BOTH: [Preset; 2] = [Preset::Ns2, Preset::Rfc];
/// Where the classifiers' order is looked at under other losses, delays and queues.
const FEW: [u32; 3] = [1, 4, 16];

/// The paper's own numbers.
fn figures() -> toml::Table {
    PAPER.numbers.parse().unwrap_or_default()
}

/// What a table of the paper has for a scheme.
fn printed(table: &str, what: &str, scheme: &str) -> Option<f64> {
    let figures = figures();
    let table = figures.get(table)?.as_table()?;
    let at = table.get("columns")?.as_array()?.iter().position(|column| column.as_str() == Some(scheme))?;
    number(table.get(what)?.as_array()?.get(at)?)
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

/// All runs of one topology, with these schemes and numbers of flows.
fn grid(topology: Topology, flows: &[u32], schemes: &[&str]) -> Vec<Case> {
    flows.iter().flat_map(|&n| schemes.iter().map(move |scheme| case(topology, n, scheme))).collect()
}

fn items() -> Vec<Item> {
    use Number::{Figure, Table as InTable};
    use Topology::{Lan, Wb, Wlh};
    let base = &SCHEMES[..7];
    let hybrid = ["omniscient", "mbiaz", "spike", "zigzag", "zbs"];
    let alike: Vec<&str> = SCHEMES.iter().copied().chain([TCP_FREE]).collect();
    vec![
        Item::made("figure-1", Some(Figure(1)), "which losses Biaz takes for wireless", vec![], |_| {
            regions::spacing("biaz", 2.0)
        }),
        Item::made("figure-2", Some(Figure(2)), "which losses mBiaz takes for wireless", vec![], |_| {
            regions::spacing("mbiaz", 1.25)
        }),
        Item::made(
            "figure-3",
            Some(Figure(3)),
            "where Spike's spikes begin and end, as shares of the range of delays",
            vec![],
            |_| regions::spike(),
        ),
        Item::made("figure-4", Some(Figure(4)), "which losses ZigZag takes for wireless", vec![], |_| {
            regions::zigzag()
        }),
        Item::made(
            "figure-5",
            Some(Figure(5)),
            "the topology of the wireless last hop, four flows",
            vec![],
            |_| PAPER.links("wlh"),
        ),
        Item::made(
            "figure-6",
            Some(Figure(6)),
            "the topology of the wireless backbone, four flows",
            vec![],
            |_| PAPER.links("wb"),
        ),
        Item::made(
            "figure-7",
            Some(Figure(7)),
            "the topology of the wireless LAN, four flows",
            vec![],
            |_| PAPER.links("lan"),
        ),
        Item::made(
            "table-1",
            Some(InTable(1)),
            "the fading channel: frames of 381 bytes on 150 kbit/s, 18,000 s for each seed",
            vec![],
            channel,
        ),
        performance("table-2", Some(InTable(2)), "wireless last hop, one flow", (Wlh, 1), &BOTH),
        performance("table-3", Some(InTable(3)), "wireless backbone, one flow", (Wb, 1), &BOTH),
        curves("figure-8", Figure(8), "wireless last hop, 1 to 16 flows of one kind", Wlh, base),
        curves("figure-9", Figure(9), "wireless backbone, 1 to 16 flows of one kind", Wb, base),
        Item::made(
            "figure-10",
            Some(Figure(10)),
            "which scheme ZBS takes, by the mean time between arrivals over the least",
            vec![],
            |_| regions::zbs(),
        ),
        curves("figure-11", Figure(11), "ZBS in the wireless last hop", Wlh, &hybrid),
        curves("figure-12", Figure(12), "ZBS in the wireless backbone", Wb, &hybrid),
        Item::made(
            "figure-13",
            Some(Figure(13)),
            "the share of time for which ZBS uses each scheme, in %",
            [grid(Wlh, &FLOWS, &["zbs"]), grid(Wb, &FLOWS, &["zbs"])].concat(),
            uses,
        ),
        Item::made(
            "figure-14",
            Some(Figure(14)),
            "standard deviation of throughput among flows of one kind, in % of their mean",
            [grid(Wlh, &FLOWS[1..], &alike), grid(Wb, &FLOWS[1..], &alike)].concat(),
            deviations,
        ),
        Item::made(
            "figure-15",
            Some(Figure(15)),
            "TCP without wireless losses beside as many flows of a scheme: its throughput, in % of its share",
            [130, 800]
                .iter()
                .flat_map(|&kbps| {
                    TOTALS.iter().flat_map(move |&n| SCHEMES.map(|scheme| cases::beside_tcp(n, kbps, scheme)))
                })
                .collect(),
            beside_tcp,
        ),
        Item::made("table-4", Some(InTable(4)), "the statistics that each scheme keeps", vec![], |_| {
            statistics()
        }),
        Item::made(
            "table-5",
            Some(InTable(5)),
            "additions and multiplications at an arrival and at a loss",
            vec![],
            |_| operations(),
        ),
        performance("table-6", Some(InTable(6)), "wireless last hop, 128 flows", (Wlh, 128), &[Preset::Ns2]),
        performance("table-6-rfc", None, "table VI with RFC 5348's TFRC", (Wlh, 128), &[Preset::Rfc]).apart(),
        Item::made(
            "lan",
            None,
            "section V-A: the wireless LAN behaves as the wireless backbone",
            [grid(Lan, &[4], &SCHEMES), grid(Wb, &[4], &SCHEMES)].concat(),
            |results| {
                variants(results, &[4], &[("wb", &|n, s| case(Wb, n, s)), ("lan", &|n, s| case(Lan, n, s))])
            },
        ),
        variant(
            "losses",
            "section VI: low and medium loss, beside high",
            &FEW,
            &[Variant::Medium, Variant::Low],
        ),
        variant(
            "two-state",
            "section V-B: losses of the two-state model, beside fading",
            &FEW,
            &[Variant::TwoState],
        ),
        variant("delays", "section V-C: shared delays of 60 ms, beside 20", &FEW, &[Variant::Delay]),
        variant(
            "by-the-clock",
            "section V-B read otherwise: losses go by the clock, in frames of 762 or 381 bytes or in bad periods of 10 ms",
            &[1],
            &[Variant::Frames, Variant::HalfFrames, Variant::TenMs],
        ),
        variant("red", "section IX-B: RED, beside drop-tail", &FEW, &[Variant::Red]),
        beside_tcp_otherwise(),
        old_tcp(),
        Item::made(
            "zigzag",
            None,
            "section III-C read otherwise: ZigZag judges by the delay of the packet before the loss",
            [grid(Wlh, &FEW, &ZIGZAGS), grid(Wb, &FEW, &ZIGZAGS), grid(Wlh, &FEW, &["biaz"])].concat(),
            |results| {
                let columns = ["topology", "flows", "scheme", "throughput", "congestion_loss", "mc", "mw"];
                let mut table = Table::new(&columns);
                for (topology, n) in [Wlh, Wb].into_iter().flat_map(|topology| FEW.map(|n| (topology, n))) {
                    for scheme in ZIGZAGS {
                        let cells =
                            MEASURED.map(|what| results.mean(&case(topology, n, scheme), what).into());
                        let head = [topology.name().to_owned(), n.to_string(), scheme.to_owned()];
                        table.row(head.map(Cell::from).into_iter().chain(cells));
                    }
                }
                table
            },
        ),
        sweeps().apart(),
        Item::made(
            "come-and-go",
            None,
            "section IX-B: four flows, and four more that come and go; refreshed extrema",
            guests(),
            |results| {
                let mut table = Table::new(&[
                    "topology",
                    "scheme",
                    "throughput",
                    "congestion_loss",
                    "mc",
                    "mw",
                    "throughput_over_omniscient",
                ]);
                for topology in [Wlh, Wb] {
                    for scheme in GUESTS {
                        let case = cases::come_and_go(topology, scheme);
                        let over = results.difference(
                            &case,
                            &cases::come_and_go(topology, "omniscient"),
                            "throughput",
                        );
                        let cells = MEASURED
                            .map(|what| results.mean(&case, what).into())
                            .into_iter()
                            .chain([over.into()]);
                        table.row([topology.name(), scheme].map(Cell::from).into_iter().chain(cells));
                    }
                }
                table
            },
        ),
    ]
}

/// By the packet after the loss, and by the one before.
const ZIGZAGS: [&str; 2] = ["zigzag", "zigzag(before=true)"];

/// The schemes among flows that come and go: extrema for ever, as in the paper, and forgotten after half a minute.
const GUESTS: [&str; 5] = ["omniscient", "tfrc", "zbs", "zbs(window=30 s)", "spike(window=30 s)"];

fn guests() -> Vec<Case> {
    [Topology::Wlh, Topology::Wb]
        .into_iter()
        .flat_map(|topology| GUESTS.map(|scheme| cases::come_and_go(topology, scheme)))
        .collect()
}
