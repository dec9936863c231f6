//! Other set-ups than those of the tables and figures, and other constants than the paper's.

use super::super::paper::{Case, Item};
use super::super::table::{Cell, Table};
use super::cases::{self, SCHEMES, Topology, case};
use super::{MEASURED, grid};

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
