//! LDA: S. Cen, P. C. Cosman, G. M. Voelker, "End-to-end differentiation of congestion and wireless losses".

use crate::papers::{Item, Lines, Number, Paper, Row, Shown, each, means};
use toml::Value;

mod cases;
mod claims;
mod judge;
mod regions;
mod tables;
mod variants;

use cases::{Preset, SCHEMES, Topology, case};
use tables::{beside_tcp, channel, curves, deviations, operations, performance, statistics, uses};
use variants::{Variant, beside_tcp_otherwise, old_tcp, sweeps, two_flows, variant, warm_up};

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
    watch: None,
    measures: false,
    measure: cases::measure,
    draw: |_| Lines::new(),
    items,
    claims: claims::claims,
};

/// Columns of the tables, in percent.
const MEASURED: [&str; 4] = ["throughput", "congestion_loss", "mc", "mw"];
/// Flows beside TCP, TCP among them [figure 15].
const TOTALS: [u32; 4] = [2, 4, 8, 16];
/// ns-2's TFRC, which the paper ran, and RFC 5348's.
const BOTH: [Preset; 2] = [Preset::Ns2, Preset::Rfc];
/// Numbers of flows for the classifiers' order under other losses, delays and queues.
const FEW: [u32; 3] = [1, 4, 16];

/// The paper's own numbers.
fn figures() -> toml::Table {
    PAPER.numbers.parse().unwrap_or_default()
}

/// A table's value for a scheme, in the paper.
fn printed(table: &str, what: &str, scheme: &str) -> Option<f64> {
    let figures = figures();
    let table = figures.get(table)?.as_table()?;
    let at = table.get("columns")?.as_array()?.iter().position(|column| column.as_str() == Some(scheme))?;
    number(table.get(what)?.as_array()?.get(at)?)
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

fn items() -> Vec<Item> {
    use Number::{Figure, Table as InTable};
    use Topology::{Lan, Wb, Wlh};
    let base = &SCHEMES[..7];
    let hybrid = ["omniscient", "mbiaz", "spike", "zigzag", "zbs"];
    vec![
        Item::fixed("figure-1", Figure(1), "losses that Biaz calls wireless", || {
            regions::spacing("biaz", 2.0)
        }),
        Item::fixed("figure-2", Figure(2), "losses that mBiaz calls wireless", || {
            regions::spacing("mbiaz", 1.25)
        }),
        Item::fixed(
            "figure-3",
            Figure(3),
            "where Spike's spikes begin and end, as shares of the range of delays",
            regions::spike,
        ),
        Item::fixed("figure-4", Figure(4), "losses that ZigZag calls wireless", regions::zigzag),
        Item::fixed("figure-5", Figure(5), "the topology of the wireless last hop, four flows", || {
            PAPER.links("wlh")
        }),
        Item::fixed("figure-6", Figure(6), "the topology of the wireless backbone, four flows", || {
            PAPER.links("wb")
        }),
        Item::fixed("figure-7", Figure(7), "the topology of the wireless LAN, four flows", || {
            PAPER.links("lan")
        }),
        Item::made(
            "table-1",
            InTable(1),
            "the fading channel: frames of 381 bytes on 150 kbit/s, 18,000 s for each seed",
            vec![],
            channel,
        ),
        performance("table-2", Some(InTable(2)), "wireless last hop, one flow", (Wlh, 1), &BOTH).runs(100),
        performance("table-3", Some(InTable(3)), "wireless backbone, one flow", (Wb, 1), &BOTH).runs(100),
        curves("figure-8", Figure(8), "wireless last hop, 1 to 16 flows of one kind", Wlh, base),
        curves("figure-9", Figure(9), "wireless backbone, 1 to 16 flows of one kind", Wb, base),
        Item::fixed(
            "figure-10",
            Figure(10),
            "which scheme ZBS takes, by the mean time between arrivals over the least",
            regions::zbs,
        ),
        curves("figure-11", Figure(11), "ZBS in the wireless last hop", Wlh, &hybrid),
        curves("figure-12", Figure(12), "ZBS in the wireless backbone", Wb, &hybrid),
        uses(),
        deviations(),
        beside_tcp(),
        Item::fixed("table-4", InTable(4), "the statistics that each scheme keeps", statistics),
        Item::fixed(
            "table-5",
            InTable(5),
            "additions and multiplications at an arrival and at a loss",
            operations,
        ),
        performance("table-6", Some(InTable(6)), "wireless last hop, 128 flows", (Wlh, 128), &[Preset::Ns2]),
        performance("table-6-rfc", None, "table VI with RFC 5348's TFRC", (Wlh, 128), &[Preset::Rfc]).apart(),
        Item::rows(
            "lan",
            None,
            "section V-A: the wireless LAN behaves as the wireless backbone",
            &["flows", "set-up", "scheme"],
            &means(MEASURED),
            each(&[Wb, Lan], &SCHEMES).into_iter().map(|(topology, scheme)| {
                Row::new(&[&4, &topology.name(), &scheme], case(topology, 4, scheme))
            }),
        ),
        variant(
            "losses",
            "section VI: low and medium loss, beside high",
            &FEW,
            &[Variant::MEDIUM, Variant::LOW],
        ),
        variant(
            "two-state",
            "section V-B: losses of the two-state model, beside fading",
            &FEW,
            &[Variant::TWO_STATE],
        ),
        variant("delays", "section V-C: shared delays of 60 ms, beside 20", &FEW, &[Variant::DELAY]),
        variant(
            "by-the-clock",
            "section V-B read otherwise: losses go by the clock, in frames of 762 or 381 bytes or of 10.2 ms, or in bad periods of 10 ms",
            &[1],
            &[Variant::FRAMES, Variant::HALF_FRAMES, Variant::FITTED, Variant::TEN_MS],
        )
        .runs(100),
        two_flows(),
        warm_up(),
        variant("red", "section IX-B: RED, beside drop-tail", &FEW, &[Variant::RED]),
        beside_tcp_otherwise(),
        old_tcp(),
        Item::rows(
            "zigzag",
            None,
            "section III-C read otherwise: ZigZag, also in ZBS, judges by the delay of the packet that reveals the loss",
            &["topology", "flows", "scheme"],
            &means(MEASURED),
            each(&each(&[Wlh, Wb], &FEW), &["zigzag", "zigzag(before=false)", "zbs", "zbs(before=false)"]).into_iter().map(
                |((topology, n), scheme)| {
                    Row::new(&[&topology.name(), &n, &scheme], case(topology, n, scheme))
                },
            ),
        )
        .beside(FEW.map(|n| case(Wlh, n, "biaz")).to_vec()),
        sweeps(),
        Item::rows(
            "come-and-go",
            None,
            "section IX-B: four flows, and four more that come and go; refreshed extrema",
            &["topology", "scheme"],
            &[&means(MEASURED)[..], &[("throughput_over_omniscient", Shown::Over("throughput"))]].concat(),
            each(&[Wlh, Wb], &GUESTS).into_iter().map(|(topology, scheme)| {
                Row::new(&[&topology.name(), &scheme], cases::come_and_go(topology, scheme))
                    .over(cases::come_and_go(topology, "omniscient"))
            }),
        ),
    ]
}

/// The schemes among flows that come and go: extrema for ever, as in the paper, and forgotten after half a minute.
const GUESTS: [&str; 5] = ["omniscient", "tfrc", "zbs", "zbs(window=30 s)", "spike(window=30 s)"];
