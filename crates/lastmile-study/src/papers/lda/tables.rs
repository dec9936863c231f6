//! The tables and figures, from what runs left.

use lastmile::classify::CLASSIFIERS;
use lastmile::time::Span;
use lastmile_sim::network::loss::{ErrorModel, Jakes};
use rayon::prelude::*;
use toml::Value;

use super::cases::{self, FLOWS, Preset, SCHEMES, TCP_FREE, Topology, case, preset};
use super::{MEASURED, TOTALS, figures, grid, number, printed};
use crate::papers::paper::{Case, Item, Number};
use crate::papers::results::Results;
use lastmile_report::Mean;
use lastmile_report::table::{Cell, Chart, Table};

/// A table of four numbers by scheme, with both kinds of TFRC.
pub(super) fn performance(
    id: &'static str,
    at: Option<Number>,
    shows: &'static str,
    (topology, n): (Topology, u32),
    presets: &[Preset],
) -> Item {
    let schemes: Vec<&'static str> = SCHEMES
        .iter()
        .copied()
        .filter(|scheme| n == 1 || printed("table_6", "mc", scheme).is_some())
        .collect();
    let both: Vec<(Preset, &'static str)> = presets
        .iter()
        .flat_map(|&kind| schemes.iter().map(move |&scheme| (kind, scheme)))
        .filter(|(kind, scheme)| *kind == Preset::Ns2 || *scheme != "tcp")
        .collect();
    let cases = both.iter().map(|&(kind, scheme)| preset(topology, n, scheme, kind)).collect();
    Item::made(id, at, shows, cases, move |results| {
        let mut table = Table::new(&[
            "scheme",
            "tfrc",
            "throughput",
            "congestion_loss",
            "mc",
            "mw",
            "feedback",
            "throughput_over_omniscient",
        ]);
        for &(kind, scheme) in &both {
            let case = preset(topology, n, scheme, kind);
            let paper = |what| printed(&id[..7].replace('-', "_"), what, scheme);
            let tfrc = if scheme == "tcp" { "-" } else { kind.name() };
            let mut cells = vec![Cell::from(scheme), Cell::from(tfrc)];
            cells.extend(MEASURED.map(|what| Cell::from((results.mean(&case, what), paper(what)))));
            cells.push(results.mean(&case, "feedback").into());
            cells.push(
                results.difference(&case, &preset(topology, n, "omniscient", kind), "throughput").into(),
            );
            table.row(cells);
        }
        table
    })
}

/// The four numbers against the number of flows, by scheme.
pub(super) fn curves(
    id: &'static str,
    at: Number,
    shows: &'static str,
    topology: Topology,
    schemes: &[&'static str],
) -> Item {
    let schemes = schemes.to_vec();
    let cases = grid(topology, &FLOWS, &schemes);
    Item::made(id, Some(at), shows, cases, move |results| {
        let mut table = Table::new(&["flows", "scheme", "throughput", "congestion_loss", "mc", "mw"]);
        for n in FLOWS {
            for scheme in &schemes {
                let case = case(topology, n, scheme);
                let cells = MEASURED.map(|what| Cell::from(results.mean(&case, what)));
                table.row([Cell::from(n.to_string()), Cell::from(*scheme)].into_iter().chain(cells));
            }
        }
        let stated: &[(&str, f64, &str)] = match topology {
            Topology::Wlh => &[
                ("congestion_loss", 7.0, "paper: Biaz from 7"),
                ("congestion_loss", 12.0, "paper: Biaz to 12"),
            ],
            _ => &[
                ("throughput", 97.0, "paper: TFRC, 10 flows"),
                ("throughput", 85.0, "paper: TCP, 10 flows"),
                ("mc", 0.0, "paper: Spike"),
            ],
        };
        for (what, y) in MEASURED.into_iter().zip([
            "throughput, % of the bottleneck",
            "lost to congestion, % of the throughput",
            "Mc, %",
            "Mw, %",
        ]) {
            let stated = stated
                .iter()
                .filter(|stated| stated.0 == what)
                .map(|stated| (stated.1, stated.2.to_owned()))
                .collect();
            table.chart(chart(results, y, y, &FLOWS, &schemes, stated, what, &|n, scheme| {
                case(topology, n, scheme)
            }));
        }
        table
    })
}

/// A line for each scheme over the number of flows.
#[expect(clippy::too_many_arguments, reason = "what a chart has")]
fn chart(
    results: &Results,
    title: &str,
    y: &'static str,
    flows: &[u32],
    schemes: &[&'static str],
    stated: Vec<(f64, String)>,
    what: &str,
    case: &dyn Fn(u32, &str) -> Case,
) -> Chart {
    let line = |scheme: &&'static str| {
        let point = |&n: &u32| Some((f64::from(n), results.mean(&case(n, scheme), what)?));
        ((*scheme).to_owned(), flows.iter().filter_map(point).collect())
    };
    Chart { title: title.to_owned(), x: "flows", y, lines: schemes.iter().map(line).collect(), stated }
}

/// Figure 13.
pub(super) fn uses(results: &Results) -> Table {
    let mut table = Table::new(&["topology", "flows", "mbiaz", "spike", "zigzag"]);
    for topology in [Topology::Wlh, Topology::Wb] {
        for n in FLOWS {
            let case = case(topology, n, "zbs");
            let paper = |scheme: &str| match (topology, n, scheme) {
                (_, 1, "mbiaz") => Some(98.0),
                (Topology::Wlh, 2.., "mbiaz") => Some(85.0),
                (Topology::Wlh, 2.., "spike") => Some(3.0),
                (Topology::Wb, 2, "zigzag") => Some(50.0),
                (Topology::Wb, 4..=6, "spike") => Some(95.0),
                _ => None,
            };
            let cells = ["mbiaz", "spike", "zigzag"]
                .map(|scheme| (results.mean(&case, used(scheme)), paper(scheme)).into());
            table.row([Cell::from(topology.name()), Cell::from(n.to_string())].into_iter().chain(cells));
        }
        let line = |scheme: &str| {
            let point = |n: u32| Some((f64::from(n), results.mean(&case(topology, n, "zbs"), used(scheme))?));
            (scheme.to_owned(), FLOWS.into_iter().filter_map(point).collect())
        };
        let (title, y) = (format!("ZBS in {}", topology.name()), "share of time, %");
        let lines = ["mbiaz", "spike", "zigzag"].map(line).into();
        table.chart(Chart { title, x: "flows", y, lines, stated: Vec::new() });
    }
    table
}

/// What the share of time of a scheme is called.
pub(super) fn used(scheme: &str) -> &'static str {
    match scheme {
        "mbiaz" => "uses_mbiaz",
        "spike" => "uses_spike",
        _ => "uses_zigzag",
    }
}

/// Figure 14.
pub(super) fn deviations(results: &Results) -> Table {
    let mut table = Table::new(&["topology", "flows", "scheme", "deviation"]);
    let schemes: Vec<&'static str> = SCHEMES.into_iter().chain([TCP_FREE]).collect();
    for topology in [Topology::Wlh, Topology::Wb] {
        for n in &FLOWS[1..] {
            for scheme in &schemes {
                let deviation = results.mean(&case(topology, *n, scheme), "deviation");
                table.row([
                    Cell::from(topology.name()),
                    Cell::from(n.to_string()),
                    Cell::from(*scheme),
                    deviation.into(),
                ]);
            }
        }
        let stated: &[(f64, &str)] = match topology {
            Topology::Wlh => {
                &[(14.0, "paper: Spike, Biaz above"), (7.0, "paper: ZigZag, TFRC, ZBS from"), (10.0, "to")]
            }
            _ => &[(3.0, "paper: TFRC from"), (7.0, "paper: TFRC to")],
        };
        let stated = stated.iter().map(|(y, what)| (*y, (*what).to_owned())).collect();
        let y = "standard deviation, % of the mean";
        let title = format!("Throughput among flows, {}", topology.name());
        table.chart(chart(results, &title, y, &FLOWS[1..], &schemes, stated, "deviation", &|n, scheme| {
            case(topology, n, scheme)
        }));
    }
    table
}

/// Figure 15.
pub(super) fn beside_tcp(results: &Results) -> Table {
    let mut table = Table::new(&["kbps_per_flow", "flows", "scheme", "tcp_throughput", "throughput"]);
    for kbps in [130, 800] {
        for n in TOTALS {
            for scheme in SCHEMES {
                let case = cases::beside_tcp(n, kbps, scheme);
                let cells = ["tcp_throughput", "throughput"].map(|what| results.mean(&case, what).into());
                table.row(
                    [kbps.to_string(), n.to_string(), scheme.to_owned()]
                        .map(Cell::from)
                        .into_iter()
                        .chain(cells),
                );
            }
        }
        let title = format!("TCP beside as many of each, {kbps} kbit/s for a flow");
        let y = "TCP's throughput, % of its share";
        table.chart(chart(results, &title, y, &TOTALS, &SCHEMES, vec![], "tcp_throughput", &|n, scheme| {
            cases::beside_tcp(n, kbps, scheme)
        }));
    }
    table
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
    // What TFRC itself takes is not counted here, and what the paper has of it is not all numbers.
    let cells = (0..4).map(|at| match paper("tfrc", at) {
        None => Cell::from(format!("- ({})", printed("tfrc", at).unwrap_or("-"))),
        number => Cell::Exact(None, number),
    });
    table.row([Cell::from("tfrc")].into_iter().chain(cells));
    table
}

type Of<'a> = &'a dyn Fn(u32, &str) -> Case;

/// Table I: what each of the paper's channels loses, and the share of losses in a row that are two frames long.
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

/// Throughput, Mc and Mw of all schemes in several variants of the set-up.
pub(super) fn variants(results: &Results, flows: &[u32], all: &[(&str, Of<'_>)]) -> Table {
    let mut table = Table::new(&["flows", "set-up", "scheme", "throughput", "congestion_loss", "mc", "mw"]);
    for &n in flows {
        for (name, of) in all {
            for scheme in SCHEMES {
                let cells = MEASURED.map(|what| results.mean(&of(n, scheme), what).into());
                table.row(
                    [n.to_string(), (*name).to_owned(), scheme.to_owned()]
                        .map(Cell::from)
                        .into_iter()
                        .chain(cells),
                );
            }
        }
    }
    table
}
