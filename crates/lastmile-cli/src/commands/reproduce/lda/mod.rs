//! Seed 004: S. Cen, P. C. Cosman, G. M. Voelker, "End-to-end differentiation of congestion and wireless losses".

use super::paper::{Case, Item, Number, Paper};
use super::results::{Estimate, Results};
use super::table::{Cell, Chart, Table};
use lastmile::classify::CLASSIFIERS;
use lastmile::time::Span;
use lastmile_sim::network::loss::{ErrorModel, Jakes};
use lastmile_sim::scenario::Scenario;
use rayon::prelude::*;
use toml::Value;

mod cases;
mod claims;
mod regions;

use cases::{FLOWS, Preset, SCHEMES, TCP_FREE, Topology, case, preset};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "lda",
    citation: "S. Cen, P. C. Cosman, G. M. Voelker, End-to-end differentiation of congestion and wireless losses, IEEE/ACM ToN 11(5), 2003",
    tables: 6,
    figures: 15,
    scenarios: &[
        ("wlh", include_str!("../../../../papers/lda/scenarios/wlh.toml")),
        ("wb", include_str!("../../../../papers/lda/scenarios/wb.toml")),
        ("lan", include_str!("../../../../papers/lda/scenarios/lan.toml")),
    ],
    statements: include_str!("../../../../papers/lda/claims.toml"),
    measure: cases::measure,
    items,
    claims: claims::claims,
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
    include_str!("../../../../papers/lda/figures.toml").parse().unwrap_or_default()
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
            |_| links("wlh"),
        ),
        Item::made(
            "figure-6",
            Some(Figure(6)),
            "the topology of the wireless backbone, four flows",
            vec![],
            |_| links("wb"),
        ),
        Item::made(
            "figure-7",
            Some(Figure(7)),
            "the topology of the wireless LAN, four flows",
            vec![],
            |_| links("lan"),
        ),
        Item::made(
            "table-1",
            Some(InTable(1)),
            "the fading channel: frames of 381 bytes on 150 kbit/s, 6000 s for each seed",
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
        Item::made(
            "slow-frames",
            None,
            "section VIII-B read otherwise: at 800 kbit/s for each, losses in frames of 20 ms as at 130",
            SLOWLY.iter().flat_map(|&n| SCHEMES.map(|scheme| cases::beside_tcp_slowly(n, scheme))).collect(),
            |results| {
                let mut table = Table::new(&["flows", "scheme", "tcp_throughput", "throughput"]);
                for (n, scheme) in SLOWLY.into_iter().flat_map(|n| SCHEMES.map(|scheme| (n, scheme))) {
                    let case = cases::beside_tcp_slowly(n, scheme);
                    let cells = ["tcp_throughput", "throughput"].map(|what| results.mean(&case, what).into());
                    table.row([n.to_string(), scheme.to_owned()].map(Cell::from).into_iter().chain(cells));
                }
                table
            },
        ),
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

/// A table of four numbers by scheme, with both kinds of TFRC.
fn performance(
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
fn curves(
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
fn uses(results: &Results) -> Table {
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
fn used(scheme: &str) -> &'static str {
    match scheme {
        "mbiaz" => "uses_mbiaz",
        "spike" => "uses_spike",
        _ => "uses_zigzag",
    }
}

/// Figure 14.
fn deviations(results: &Results) -> Table {
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
fn beside_tcp(results: &Results) -> Table {
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

/// The links of a scenario, as figures 5 to 7 draw them.
fn links(name: &str) -> Table {
    let mut table = Table::new(&["from", "to", "rate", "delay", "queue", "loses packets"]);
    let text = PAPER.scenarios.iter().find(|file| file.0 == name).map_or("", |file| file.1);
    let Ok(scenario) = Scenario::parse(name, text) else { return table };
    for link in &scenario.links {
        let config = &link.config;
        let of = |vertex| Cell::from(scenario.vertex_name(vertex));
        let rate = config.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
        let air = if config.losses.is_empty() { "no" } else { "yes" };
        let cells =
            [rate, config.delay.to_string(), format!("{}", config.queue), air.to_owned()].map(Cell::from);
        table.row([of(link.from), of(link.to)].into_iter().chain(cells));
    }
    table
}

/// Table IV.
fn statistics() -> Table {
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
fn operations() -> Table {
    let mut table = Table::new(&[
        "scheme",
        "additions_at_arrival",
        "additions_at_loss",
        "multiplications_at_arrival",
        "multiplications_at_loss",
    ]);
    let figures = figures();
    let paper = |name: &str, at: usize| {
        let row = figures.get("table_5")?.get(name)?.as_array()?;
        row.get(at)?.as_str()?.parse::<f64>().ok()
    };
    for name in ["biaz", "spike", "zigzag", "zbs"] {
        let Some(lda) = CLASSIFIERS.iter().find(|lda| lda.name == name) else { continue };
        let ours = [lda.cost.arrival[0], lda.cost.loss[0], lda.cost.arrival[1], lda.cost.loss[1]];
        let cells = ours
            .into_iter()
            .enumerate()
            .map(|(at, ours)| Cell::Exact(Some(f64::from(ours)), paper(name, at)));
        table.row([Cell::from(name)].into_iter().chain(cells));
    }
    table
}

type Of<'a> = &'a dyn Fn(u32, &str) -> Case;

/// Another set-up than the one that tables and figures have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Medium,
    Low,
    TwoState,
    Delay,
    Red,
    Frames,
    HalfFrames,
    TenMs,
}

impl Variant {
    fn name(self) -> &'static str {
        match self {
            Variant::Medium => "medium loss",
            Variant::Low => "low loss",
            Variant::TwoState => "two-state",
            Variant::Delay => "60 ms",
            Variant::Red => "red",
            Variant::Frames => "frames of 762 B",
            Variant::HalfFrames => "frames of 381 B",
            Variant::TenMs => "bad periods of 10 ms",
        }
    }

    fn of(self, topology: Topology, n: u32, scheme: &str) -> Case {
        let case = case(topology, n, scheme);
        match self {
            Variant::Medium => cases::losses(topology, case, "interleaver", 3),
            Variant::Low => cases::losses(topology, case, "spreading_gain", 32),
            Variant::TwoState => cases::two_state(topology, case),
            Variant::Delay => case.set("link.0.delay", "60 ms"),
            Variant::Red => cases::red(topology, n, case),
            Variant::Frames => cases::by_the_clock(topology, case, 762),
            Variant::HalfFrames => cases::by_the_clock(topology, case, 381),
            Variant::TenMs => cases::ten_ms(topology, case),
        }
    }
}

/// All schemes at few numbers of flows, in both topologies, as in the figures and otherwise.
fn variant(id: &'static str, shows: &'static str, flows: &'static [u32], which: &'static [Variant]) -> Item {
    let both = [Topology::Wlh, Topology::Wb];
    let other = |topology| {
        flows.iter().flat_map(move |&n| SCHEMES.map(|s| which.iter().map(move |v| v.of(topology, n, s))))
    };
    let mut cases: Vec<Case> = both.into_iter().flat_map(other).flatten().collect();
    cases.extend(both.into_iter().flat_map(|topology| grid(topology, flows, &SCHEMES)));
    Item::made(id, None, shows, cases, move |results| {
        let mut table = Table::new(&[
            "topology",
            "flows",
            "set-up",
            "scheme",
            "throughput",
            "congestion_loss",
            "mc",
            "mw",
        ]);
        for topology in both {
            for &n in flows {
                for setup in [None].into_iter().chain(which.iter().copied().map(Some)) {
                    for scheme in SCHEMES {
                        let case = setup.map_or_else(
                            || case(topology, n, scheme),
                            |variant| variant.of(topology, n, scheme),
                        );
                        let name = setup.map_or("as in the figures", Variant::name);
                        let head =
                            [topology.name().to_owned(), n.to_string(), name.to_owned(), scheme.to_owned()];
                        table.row(
                            head.map(Cell::from)
                                .into_iter()
                                .chain(MEASURED.map(|what| results.mean(&case, what).into())),
                        );
                    }
                }
            }
        }
        table
    })
}

/// Section III: the constants that the paper chose, and others, in the topology that it chose them in.
fn sweeps() -> Item {
    let mbiaz = [1.1, 1.2, 1.25, 1.3, 1.5, 1.8].map(|upper| format!("mbiaz(upper={upper})"));
    let spikes = [0.05, 0.2, 1.0 / 3.0, 0.5].into_iter().flat_map(|end| {
        let above = [0.0, 1.0 / 6.0, 0.4, 0.9].into_iter().filter(move |above| end + above <= 1.0);
        above.map(move |above| format!("spike(start={:.3},end={end:.3})", end + above))
    });
    let zigzags = (2..=8).map(|n| format!("zigzag(alpha={})", 1.0 / f64::from(1 << n)));
    let schemes: Vec<String> = mbiaz.into_iter().chain(spikes).chain(zigzags).collect();
    let flows = [1, 4];
    let cases = flows
        .iter()
        .flat_map(|&n| schemes.iter().map(move |scheme| case(Topology::Wlh, n, scheme)))
        .collect();
    let shows = "section III: mBiaz's upper limit, Spike's alpha and beta, ZigZag's alpha; wireless last hop";
    Item::made("sweeps", None, shows, cases, move |results| {
        let mut table = Table::new(&["flows", "scheme", "throughput", "congestion_loss", "mc", "mw"]);
        for n in flows {
            for scheme in &schemes {
                let case = case(Topology::Wlh, n, scheme);
                let cells = MEASURED.map(|what| Cell::from(results.mean(&case, what)));
                table.row([Cell::from(n.to_string()), Cell::from(scheme.as_str())].into_iter().chain(cells));
            }
        }
        table
    })
}

const SLOWLY: [u32; 2] = [2, 8];

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

/// Table I: what each of the paper's channels loses, and the share of losses in a row that are two frames long.
fn channel(results: &Results) -> Table {
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
fn channels(results: &Results) -> [[Option<Estimate>; 2]; 3] {
    let frame = Span::from_nanos(20_320_000);
    [(16, 2), (16, 3), (32, 2)].map(|(spreading_gain, interleaver)| {
        let model = ErrorModel::from(Jakes { spreading_gain, interleaver, ..Jakes::default() });
        // Five times the paper's hundred trials of 12 s.
        let seeds: Vec<u64> = (1..=results.seeds).collect();
        let runs: Vec<[f64; 2]> =
            seeds.into_par_iter().map(|seed| lost(&model.lost(seed, frame, 295_000))).collect();
        [0, 1].map(|at| Estimate::of(&runs.iter().map(|run| run[at]).collect::<Vec<_>>()))
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
fn variants(results: &Results, flows: &[u32], all: &[(&str, Of<'_>)]) -> Table {
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
