//! Other set-ups than those of the tables and figures, which claims hold in them, and other constants than the paper's.

use super::cases::{self, BesideTcp, Preset, SCHEMES, Topology, case, preset};
use super::claims::{at_800, beside_loss_free_tcp, decided, middle, one_flow, table, two_queues};
use super::{MEASURED, grid};
use crate::papers::paper::{Case, Claim, Item, Parts, Stated};
use Topology::{Wb, Wlh};
use lastmile_report::table::{Cell, Table};

/// Another set-up than the one that tables and figures have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
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
    pub(super) fn name(self) -> &'static str {
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

    pub(super) fn of(self, topology: Topology, n: u32, scheme: &str) -> Case {
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
pub(super) fn variant(
    id: &'static str,
    shows: &'static str,
    flows: &'static [u32],
    which: &'static [Variant],
) -> Item {
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

/// Flows beside TCP in other set-ups, TCP among them, and the schemes of claim l11 with TFRC, which leaves TCP the most.
const BESIDE: ([u32; 2], [&str; 5]) = ([2, 8], ["tfrc", "omniscient", "biaz", "spike", "zbs"]);

/// Figure 15 at 800 kbit/s for each, in other set-ups.
pub(super) fn beside_tcp_otherwise() -> Item {
    let rows = || {
        let of = |setup| BESIDE.0.into_iter().flat_map(move |n| BESIDE.1.map(move |s| (setup, n, s)));
        BesideTcp::ALL.into_iter().flat_map(of)
    };
    let shows = "section VIII-B read otherwise, at 800 kbit/s for each: losses in frames of 20 ms as at 130, last links with queues of six \
                 packets as at 130, TCP as ns-2 had it in 2000";
    let cases = rows().map(|(setup, n, scheme)| setup.of(n, scheme)).collect();
    Item::made("beside-tcp", None, shows, cases, move |results| {
        let mut table = Table::new(&["set-up", "flows", "scheme", "tcp_throughput", "throughput"]);
        for (setup, n, scheme) in rows() {
            let cells =
                ["tcp_throughput", "throughput"].map(|what| results.mean(&setup.of(n, scheme), what).into());
            let head = [setup.name().to_owned(), n.to_string(), scheme.to_owned()];
            table.row(head.map(Cell::from).into_iter().chain(cells));
        }
        table
    })
}

/// Where TCP is looked at, and what the paper says of its throughput: tables II and III, section VI-D.
const TCP: [(Topology, u32, f64); 3] = [(Wlh, 1, 55.0), (Wb, 1, 23.0), (Wb, 10, 85.0)];

/// TCP as it is everywhere else, and as ns-2 had it in 2000.
pub(super) fn old_tcp() -> Item {
    let of = |topology, n, old: bool| {
        let case = case(topology, n, "tcp");
        if old { cases::tcp_of_2000(case, "flow") } else { case }
    };
    let both = TCP.into_iter().flat_map(|tcp| [(tcp, false), (tcp, true)]);
    let cases = both.clone().map(|((topology, n, _), old)| of(topology, n, old)).collect();
    let shows = "TCP as ns-2 had it in 2000: ticks of 100 ms, no limited transmit, one segment at the start, an ACK for each";
    Item::made("old-tcp", None, shows, cases, move |results| {
        let mut table = Table::new(&["topology", "flows", "set-up", "throughput", "congestion_loss"]);
        for ((topology, n, paper), old) in both.clone() {
            let case = of(topology, n, old);
            let name = if old { "TCP of 2000" } else { "as in the figures" };
            let head = [topology.name().to_owned(), n.to_string(), name.to_owned()].map(Cell::from);
            table.row(head.into_iter().chain([
                (results.mean(&case, "throughput"), Some(paper)).into(),
                results.mean(&case, "congestion_loss").into(),
            ]));
        }
        table
    })
}

/// Claims of the paper in other set-ups.
pub(super) fn claims() -> Vec<Claim> {
    let clock = &["by-the-clock"];
    vec![
        decided("x1", table("table II", "table_2"), &["table-2"], |results| {
            one_flow(results, "table_2", &|s| preset(Wlh, 1, s, Preset::Rfc))
        }),
        decided("x2", table("table III", "table_3"), &["table-3"], |results| {
            one_flow(results, "table_3", &|s| preset(Wb, 1, s, Preset::Rfc))
        }),
        decided("x3", table("table II", "table_2"), clock, |results| {
            one_flow(results, "table_2", &|s| Variant::Frames.of(Wlh, 1, s))
        }),
        decided("x4", table("table III", "table_3"), clock, |results| {
            one_flow(results, "table_3", &|s| Variant::Frames.of(Wb, 1, s))
        }),
        decided("x5", table("table II", "table_2"), clock, |results| {
            one_flow(results, "table_2", &|s| Variant::HalfFrames.of(Wlh, 1, s))
        }),
        decided("x6", table("table III", "table_3"), clock, |results| {
            one_flow(results, "table_3", &|s| Variant::HalfFrames.of(Wb, 1, s))
        }),
        decided("x7", table("table II", "table_2"), clock, |results| {
            one_flow(results, "table_2", &|s| Variant::TenMs.of(Wlh, 1, s))
        }),
        decided("x8", table("table III", "table_3"), clock, |results| {
            one_flow(results, "table_3", &|s| Variant::TenMs.of(Wb, 1, s))
        }),
        decided("x9", two_queues(), &["zigzag"], |results| {
            let mut parts = Parts::of("points");
            for n in [4, 16] {
                let mc = |scheme| middle(results, &case(Wlh, n, scheme), "mc");
                let below = mc("biaz").zip(mc("zigzag(before=true)")).map(|(biaz, zigzag)| biaz - zigzag);
                parts.value(&format!("{n} flows: below Biaz's by"), below, |below| below > 0.0, "below");
            }
            parts.verdict()
        }),
        decided("x10", beside_loss_free_tcp(), &["beside-tcp"], |results| {
            at_800(results, &BESIDE.0, &|n, s| BesideTcp::SlowFrames.of(n, s))
        }),
        decided("x11", beside_loss_free_tcp(), &["beside-tcp"], |results| {
            at_800(results, &BESIDE.0, &|n, s| BesideTcp::ShortQueues.of(n, s))
        }),
        decided("x12", beside_loss_free_tcp(), &["beside-tcp"], |results| {
            at_800(results, &BESIDE.0, &|n, s| BesideTcp::OldTcp.of(n, s))
        }),
        decided(
            "x13",
            Stated::numbers("tables II and III, figure 9", "TCP 55, 23 and 85 %"),
            &["old-tcp"],
            |results| {
                let mut parts = Parts::of("%");
                for (topology, n, paper) in TCP {
                    let found =
                        results.median(&cases::tcp_of_2000(case(topology, n, "tcp"), "flow"), "throughput");
                    let within = if n == 1 { 4.0 } else { 7.0 };
                    let what = format!("{} {n}", topology.name());
                    let must = format!("{paper} ± {within}");
                    parts.value(&what, found, |found| (found - paper).abs() <= within, &must);
                }
                parts.verdict()
            },
        ),
    ]
}

/// Section III: the constants that the paper chose, and others, in the topology that it chose them in.
pub(super) fn sweeps() -> Item {
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
