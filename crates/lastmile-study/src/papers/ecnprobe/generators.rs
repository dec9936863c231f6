//! Figures 3 and 4: generators of traffic on one path, and their distances from the ideal distributions.

use super::cases::{self, Kind};
use super::measure::name_of;
use crate::papers::results::Results;
use crate::papers::{Case, each};
use lastmile_report::table::{Cell, Chart, Table};

/// A generator of traffic. In the simulator the laws of arrivals alone are seen, in the lab programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generator {
    /// The simulator's traffic.
    Model,
    /// `lastmile traffic`.
    Own,
    Iperf3,
    Mgen,
    Ditg,
}

pub(super) const OTHERS: [Generator; 3] = [Generator::Iperf3, Generator::Mgen, Generator::Ditg];
const GENERATORS: [Generator; 5] =
    [Generator::Model, Generator::Own, Generator::Iperf3, Generator::Mgen, Generator::Ditg];
/// Rates of figures 3 and 4.
pub(super) const RATES: [u32; 4] = [2, 4, 6, 8];
/// Seconds for which a generator sends.
const SECONDS: u32 = 3;

impl Generator {
    pub(super) fn name(self) -> &'static str {
        match self {
            Generator::Model => "the simulator's",
            Generator::Own => "lastmile traffic",
            Generator::Iperf3 => "iperf3",
            Generator::Mgen => "mgen",
            Generator::Ditg => "D-ITG",
        }
    }

    /// It at a rate, in Mbit/s of payload; iperf3 has no Poisson.
    pub(super) fn case(self, kind: Kind, mbps: u32) -> Option<Case> {
        let case = Case::new("generators").set("name", name_of(kind, mbps));
        let packets = (f64::from(mbps) * 1e6 / (cases::CROSS * 8.0)).to_string();
        let ip = f64::from(mbps) * (cases::CROSS + cases::HEADERS) / cases::CROSS;
        let (rate, seconds) = (format!("{ip:.3} Mbit/s"), SECONDS.to_string());
        Some(match self {
            Generator::Model => {
                let of = |key: &str| format!("traffic.own.{key}");
                case.set(of("count"), 1).set(of("kind"), kind.key()).set(of("rate"), rate)
            }
            Generator::Own => {
                let send = [
                    "lastmile",
                    "traffic",
                    "send",
                    "{probe-rx}",
                    "--realtime",
                    "--packet-size",
                    "528 B",
                    "--seconds",
                    &seconds,
                ];
                let what = ["--arrivals", kind.key(), "--rate", &rate];
                case.program("probe-rx", ["lastmile", "traffic", "sink"])
                    .program("probe-tx", send.into_iter().chain(what))
            }
            Generator::Iperf3 if kind == Kind::Poisson => return None,
            Generator::Iperf3 => {
                let rate = format!("{mbps}M");
                let send = ["iperf3", "-c", "{probe-rx}", "-u", "-b", &rate, "-l", "500", "-t", &seconds];
                case.program("probe-rx", ["iperf3", "-s"]).program("probe-tx", send)
            }
            Generator::Mgen => {
                let pattern = if kind == Kind::Cbr { "PERIODIC" } else { "POISSON" };
                let event = format!("0.0 ON 1 UDP DST {{probe-rx}}/5000 {pattern} [{packets} 500]");
                // It would go on for ever.
                let send = ["timeout", &seconds, "mgen", "event", &event];
                case.program("probe-rx", ["mgen", "event", "0.0 LISTEN UDP 5000"]).program("probe-tx", send)
            }
            Generator::Ditg => {
                let (law, time) = (if kind == Kind::Cbr { "-C" } else { "-O" }, format!("{seconds}000"));
                let send =
                    ["ITGSend", "-a", "{probe-rx}", "-T", "UDP", "-c", "500", law, &packets, "-t", &time];
                case.program("probe-rx", ["ITGRecv"]).program("probe-tx", send)
            }
        })
    }
}

/// All runs of figure 3 or 4.
pub(super) fn generations(kind: Kind) -> Vec<Case> {
    let of = |&(generator, mbps): &(Generator, u32)| generator.case(kind, mbps);
    each(&GENERATORS, &RATES).iter().filter_map(of).collect()
}

/// Figures 3 and 4: distances of the distributions of gaps from the ideal one, and the distributions themselves.
pub(super) fn generators(results: &Results, kind: Kind) -> Table {
    let mut table = Table::new(&["generator", "asked_mbps", "packets", "sent_mbps", "distance_percent"]);
    for mbps in RATES {
        let mut drawn = Vec::new();
        for generator in GENERATORS {
            let Some(case) = generator.case(kind, mbps) else { continue };
            let mean = |what: &str| results.mean(&case, what);
            // A program that is not installed sends nothing.
            table.row([
                Cell::from(generator.name()),
                Cell::from(mbps.to_string()),
                mean("packets").into(),
                mean("rate").into(),
                mean("distance").into(),
            ]);
            drawn.push((generator.name().to_owned(), results.line(&case, "ccdf")));
        }
        let y = if kind == Kind::Cbr { "share of longer gaps" } else { "log10 of the share of longer gaps" };
        table.chart(Chart::new(format!("{} at {mbps} Mbit/s", kind.name()), "gap, ms", y, drawn));
    }
    table
}
