//! The tables and figures, from what runs left.

use lastmile::classify::CLASSIFIERS;
use lastmile::time::Span;
use lastmile_sim::network::loss::{ErrorModel, Jakes};
use rayon::prelude::*;
use toml::Value;

use super::cases::{self, FLOWS, Preset, SCHEMES, TCP_FREE, Topology, case, preset};
use super::{MEASURED, TOTALS, figures, number, printed};
use crate::papers::results::Results;
use crate::papers::{Item, Number, Row, Shown, each, means};
use Topology::{Wb, Wlh};
use lastmile_report::Mean;
use lastmile_report::table::{Cell, Chart, Table, lines};

/// A table of four numbers by scheme, with these kinds of TFRC.
pub(super) fn performance(
    id: &'static str,
    at: Option<Number>,
    shows: &'static str,
    (topology, n): (Topology, u32),
    presets: &[Preset],
) -> Item {
    let table = id[..7].replace('-', "_");
    let is_shown = |(kind, scheme): &(Preset, &str)| {
        (n == 1 || printed("table_6", "mc", scheme).is_some()) && (*kind == Preset::Ns2 || *scheme != "tcp")
    };
    let row = |(kind, scheme): (Preset, &'static str)| {
        let (tfrc, table) = (if scheme == "tcp" { "-" } else { kind.name() }, table.clone());
        Row::new(&[&scheme, &tfrc], preset(topology, n, scheme, kind))
            .over(preset(topology, n, "omniscient", kind))
            .paper(move |what| printed(&table, what, scheme))
    };
    let rows = each(presets, &SCHEMES).into_iter().filter(is_shown).map(row);
    let others =
        [("feedback", Shown::Mean("feedback")), ("throughput_over_omniscient", Shown::Over("throughput"))];
    Item::rows(id, at, shows, &["scheme", "tfrc"], &[&means(MEASURED)[..], &others].concat(), rows)
}

/// Four numbers by the number of flows and by scheme.
pub(super) fn by_flows(
    id: &'static str,
    at: Option<Number>,
    shows: &'static str,
    topology: Topology,
    flows: &[u32],
    schemes: &[&str],
) -> Item {
    let row = |(n, scheme): (u32, &str)| Row::new(&[&n, &scheme], case(topology, n, scheme));
    let rows = each(flows, schemes).into_iter().map(row);
    Item::rows(id, at, shows, &["flows", "scheme"], &means(MEASURED), rows)
}

/// The same, drawn against the number of flows.
pub(super) fn curves(
    id: &'static str,
    at: Number,
    shows: &'static str,
    topology: Topology,
    schemes: &[&'static str],
) -> Item {
    let axes =
        ["throughput, % of the bottleneck", "lost to congestion, % of the throughput", "Mc, %", "Mw, %"];
    let paper: &[(&str, f64, &str)] = match topology {
        Topology::Wlh => {
            &[("congestion_loss", 7.0, "paper: Biaz from 7"), ("congestion_loss", 12.0, "paper: Biaz to 12")]
        }
        _ => &[
            ("throughput", 97.0, "paper: TFRC, 10 flows"),
            ("throughput", 85.0, "paper: TCP, 10 flows"),
            ("mc", 0.0, "paper: Spike"),
        ],
    };
    let own = schemes.to_vec();
    by_flows(id, Some(at), shows, topology, &FLOWS, schemes).drawn(move |results, table| {
        for (what, y) in MEASURED.into_iter().zip(axes) {
            let of = |scheme, n| results.mean(&case(topology, n, scheme), what);
            let stated = paper.iter().filter(|stated| stated.0 == what).map(|stated| (stated.1, stated.2));
            table.chart(Chart::new(y, "flows", y, lines(&own, &FLOWS, of)).stated(stated));
        }
    })
}

/// Figure 13.
pub(super) fn uses() -> Item {
    const USED: [&str; 3] = ["mbiaz", "spike", "zigzag"];
    let row = |(topology, n): (Topology, u32)| {
        Row::new(&[&topology.name(), &n], case(topology, n, "zbs")).paper(move |used| {
            match (topology, n, used) {
                (_, 1, "uses_mbiaz") => Some(98.0),
                (Topology::Wlh, 2.., "uses_mbiaz") => Some(85.0),
                (Topology::Wlh, 2.., "uses_spike") => Some(3.0),
                (Topology::Wb, 2, "uses_zigzag") => Some(50.0),
                (Topology::Wb, 4..=6, "uses_spike") => Some(95.0),
                _ => None,
            }
        })
    };
    Item::rows(
        "figure-13",
        Number::Figure(13),
        "the share of time for which ZBS uses each scheme, in %",
        &["topology", "flows"],
        &USED.map(|scheme| (scheme, Shown::Mean(used(scheme)))),
        each(&[Wlh, Wb], &FLOWS).into_iter().map(row),
    )
    .drawn(|results, table| {
        for topology in [Wlh, Wb] {
            let of = |scheme, n| results.mean(&case(topology, n, "zbs"), used(scheme));
            let title = format!("ZBS in {}", topology.name());
            table.chart(Chart::new(title, "flows", "share of time, %", lines(&USED, &FLOWS, of)));
        }
    })
}

/// The name of a scheme's share of time.
pub(super) fn used(scheme: &str) -> &'static str {
    match scheme {
        "mbiaz" => "uses_mbiaz",
        "spike" => "uses_spike",
        _ => "uses_zigzag",
    }
}

/// Figure 14.
pub(super) fn deviations() -> Item {
    let schemes: Vec<&'static str> = SCHEMES.into_iter().chain([TCP_FREE]).collect();
    let row = |((topology, n), scheme): ((Topology, u32), &str)| {
        Row::new(&[&topology.name(), &n, &scheme], case(topology, n, scheme))
    };
    Item::rows(
        "figure-14",
        Number::Figure(14),
        "standard deviation of throughput among flows of one kind, in % of their mean",
        &["topology", "flows", "scheme"],
        &means(["deviation"]),
        each(&each(&[Wlh, Wb], &FLOWS[1..]), &schemes).into_iter().map(row),
    )
    .drawn(move |results, table| {
        let wlh = [(14.0, "paper: Spike, Biaz above"), (7.0, "paper: ZigZag, TFRC, ZBS from"), (10.0, "to")];
        let wb = [(3.0, "paper: TFRC from"), (7.0, "paper: TFRC to")];
        for (topology, stated) in [(Wlh, &wlh[..]), (Wb, &wb)] {
            let of = |scheme, n| results.mean(&case(topology, n, scheme), "deviation");
            let title = format!("Throughput among flows, {}", topology.name());
            let lines = lines(&schemes, &FLOWS[1..], of);
            let chart = Chart::new(title, "flows", "standard deviation, % of the mean", lines);
            table.chart(chart.stated(stated.iter().copied()));
        }
    })
}

/// Figure 15.
pub(super) fn beside_tcp() -> Item {
    let rates = [130, 800];
    let row = |((kbps, n), scheme): ((u32, u32), &str)| {
        Row::new(&[&kbps, &n, &scheme], cases::beside_tcp(n, kbps, scheme))
    };
    Item::rows(
        "figure-15",
        Number::Figure(15),
        "TCP without wireless losses beside as many flows of a scheme: its throughput, in % of its share",
        &["kbps_per_flow", "flows", "scheme"],
        &means(["tcp_throughput", "throughput"]),
        each(&each(&rates, &TOTALS), &SCHEMES).into_iter().map(row),
    )
    .drawn(move |results, table| {
        for kbps in rates {
            let of = |scheme, n| results.mean(&cases::beside_tcp(n, kbps, scheme), "tcp_throughput");
            let title = format!("TCP beside as many of each, {kbps} kbit/s for a flow");
            let y = "TCP's throughput, % of its share";
            table.chart(Chart::new(title, "flows", y, lines(&SCHEMES, &TOTALS, of)));
        }
    })
}

/// Table IV.
pub(super) fn statistics() -> Table {
    let mut table = Table::new(&["statistic", "used by", "bytes of state with options"]);
    let figures = figures();
    let rows = figures.get("table_4").and_then(|table| table.get("rows")).and_then(Value::as_array);
    for row in rows.into_iter().flatten().filter_map(Value::as_array) {
        let text = |at: usize| row.get(at).and_then(Value::as_str).unwrap_or_default();
        let bytes = |name: &str| {
            let lda = CLASSIFIERS.iter().find(|lda| lda.name == name);
            lda.map_or_else(String::new, |lda| format!("{name} {}", lda.cost.state))
        };
        let state: Vec<String> = text(1).split(' ').map(bytes).collect();
        table.row([Cell::from(text(0)), Cell::from(text(1)), Cell::from(state.join(", "))]);
    }
    table
}

/// Table V. The paper's leave out the thresholds of Spike, and bytes, which it has none of.
pub(super) fn operations() -> Table {
    let mut table = Table::new(&[
        "scheme",
        "additions_at_arrival",
        "additions_at_loss",
        "multiplications_at_arrival",
        "multiplications_at_loss",
    ]);
    let figures = figures();
    let printed = |name: &str, at: usize| figures.get("table_5")?.get(name)?.get(at)?.as_str();
    let paper = |name: &str, at: usize| printed(name, at)?.parse::<f64>().ok();
    for name in ["biaz", "spike", "zigzag", "zbs"] {
        let Some(lda) = CLASSIFIERS.iter().find(|lda| lda.name == name) else { continue };
        let ours = [lda.cost.arrival[0], lda.cost.loss[0], lda.cost.arrival[1], lda.cost.loss[1]];
        let cells = ours
            .into_iter()
            .enumerate()
            .map(|(at, ours)| Cell::Exact(Some(f64::from(ours)), paper(name, at)));
        table.row([Cell::from(name)].into_iter().chain(cells));
    }
    // TFRC's own operations are not counted here, and the paper's entries for them are not all numbers.
    let cells = (0..4).map(|at| match paper("tfrc", at) {
        None => Cell::from(format!("- ({})", printed("tfrc", at).unwrap_or("-"))),
        number => Cell::Exact(None, number),
    });
    table.row([Cell::from("tfrc")].into_iter().chain(cells));
    table
}

/// Table I: the loss of each of the paper's channels, and the share of losses in a row that are two frames long.
pub(super) fn channel(results: &Results) -> Table {
    let mut table = Table::new(&["spreading_gain", "interleaver", "loss", "two_frames_long"]);
    for (k, found) in channels(results).into_iter().enumerate() {
        let row = figures()
            .get("table_1")
            .and_then(|table| table.get("rows")?.get(k)?.as_array().cloned())
            .unwrap_or_default();
        let paper = |at: usize| row.get(at).and_then(number);
        let [loss, two] = found;
        table.row([
            Cell::Exact(paper(0), None),
            Cell::Exact(paper(1), None),
            (loss, paper(2)).into(),
            (two, (k == 0).then_some(25.0)).into(),
        ]);
    }
    table
}

/// The same numbers: high, medium and low loss.
pub(super) fn channels(results: &Results) -> [[Option<Mean>; 2]; 3] {
    let frame = Span::from_nanos(20_320_000);
    [(16, 2), (16, 3), (32, 2)].map(|(spreading_gain, interleaver)| {
        let model = ErrorModel::from(Jakes { spreading_gain, interleaver, ..Jakes::default() });
        // Fifteen times the paper's hundred trials of 12 s, so that chance moves even the last row by hardly 1 %.
        let seeds: Vec<u64> = (1..=results.seeds).collect();
        let runs: Vec<[f64; 2]> =
            seeds.into_par_iter().map(|seed| lost(&model.lost(seed, frame, 885_000))).collect();
        [0, 1].map(|at| Mean::of(&runs.iter().map(|run| run[at]).collect::<Vec<_>>()))
    })
}

/// The share of frames lost, and of losses in a row those of two frames; in percent.
fn lost(frames: &[bool]) -> [f64; 2] {
    let runs: Vec<usize> = frames.split(|&lost| !lost).map(<[bool]>::len).filter(|&run| run > 0).collect();
    let two = runs.iter().filter(|&&run| run == 2).count();
    [runs.iter().sum::<usize>() as f64 / frames.len() as f64, two as f64 / runs.len().max(1) as f64]
        .map(|share| 100.0 * share)
}
