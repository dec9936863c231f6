//! The runs of ECNProbe's paper: tools, loads, readings of its `tc` line.

use std::fmt::Display;

use crate::papers::Case;

/// Bytes of UDP and IPv4, and what Ethernet adds: preamble, header, checksum, gap.
pub(super) const HEADERS: f64 = 28.0;
pub(super) const FRAMING: f64 = 38.0;
/// Payload of cross traffic [section IV-B].
pub(super) const CROSS: f64 = 500.0;
/// Rate of the hub, in Mbit/s on the wire.
pub(super) const HUB: f64 = 10.0;
/// Cross traffic of figures 10 and 11, and of figures 8 and 9, in Mbit/s of payload.
pub(super) const LOADS: [u32; 5] = [0, 2, 4, 6, 8];
pub(super) const HALF: u32 = 5;
/// Runs of each case, which all items share.
pub(super) const RUNS: u64 = 15;
/// Runs that decide claims about small differences.
pub(super) const MANY: u64 = 100;

/// Kind of cross traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cbr,
    Poisson,
}

pub(super) const KINDS: [Kind; 2] = [Kind::Cbr, Kind::Poisson];

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Cbr => "CBR",
            Kind::Poisson => "Poisson",
        }
    }

    pub(super) fn key(self) -> &'static str {
        match self {
            Kind::Cbr => "cbr",
            Kind::Poisson => "poisson",
        }
    }
}

/// A tool of the paper, as its program is known to be (tables III to VII), and ECNProbe with defaults of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Igi,
    Pathload,
    Pathchirp,
    Spruce,
    Diettopp,
    EcnProbe,
    Ours,
}

/// Those of figures 8 and 9.
pub(super) const FIVE: [Tool; 5] = [Tool::Igi, Tool::Pathload, Tool::Pathchirp, Tool::Spruce, Tool::Diettopp];
pub(super) const ALL: [Tool; 7] =
    [Tool::Igi, Tool::Pathload, Tool::Pathchirp, Tool::Spruce, Tool::Diettopp, Tool::EcnProbe, Tool::Ours];

impl Tool {
    pub(super) fn name(self) -> &'static str {
        match self {
            Tool::Igi => "IGI",
            Tool::Pathload => "Pathload",
            Tool::Pathchirp => "pathChirp",
            Tool::Spruce => "Spruce",
            Tool::Diettopp => "DietTOPP",
            Tool::EcnProbe => "ECNProbe",
            Tool::Ours => "ECNProbe, ours",
        }
    }

    /// The method, with the options that make it the paper's.
    pub(super) fn method(self) -> &'static str {
        match self {
            Tool::Igi => "igi(faithful=true, trains=1, search=binary)",
            Tool::Pathload => "pathload(faithful=true, omega=200 kbit/s, chi=200 kbit/s)",
            Tool::Pathchirp => "pathchirp(faithful=true, converged=0, max_span=25 s)",
            Tool::Spruce => "spruce(faithful=true, capacity=10 Mbit/s)",
            Tool::Diettopp => "diettopp(faithful=true)",
            Tool::EcnProbe => "ecnprobe(faithful=true)",
            Tool::Ours => "ecnprobe",
        }
    }

    /// Bytes of a packet as the tool's rates count it. IGI counts payload; all others, as here, IP packets.
    pub(super) fn counted(self, ip_bytes: f64) -> f64 {
        if self == Tool::Igi { ip_bytes - HEADERS } else { ip_bytes }
    }
}

/// A rate of cross traffic in Mbit/s of payload on the wire: 5 are 5.66.
pub(super) fn on_the_wire(payload: f64) -> f64 {
    payload * (CROSS + HEADERS + FRAMING) / CROSS
}

/// The part of the hub that cross traffic leaves, in Mbit/s on the wire.
pub(super) fn left(payload: f64) -> f64 {
    HUB - on_the_wire(payload)
}

/// The same in IP packets of a size.
pub(super) fn left_in(payload: f64, ip_bytes: f64) -> f64 {
    left(payload) * ip_bytes / (ip_bytes + FRAMING)
}

/// A method on the paper's testbed beside so much.
pub(super) fn case(method: impl Display, kind: Kind, load: u32) -> Case {
    let case = Case::new("hub").set("measure.0.method", method);
    match load {
        0 => case.set("traffic.cross.count", 0),
        _ => loaded(case, kind, f64::from(load)),
    }
}

fn loaded(case: Case, kind: Kind, payload: f64) -> Case {
    let ip = payload * (CROSS + HEADERS) / CROSS;
    case.set("traffic.cross.kind", kind.key()).set("traffic.cross.rate", format!("{ip:.3} Mbit/s"))
}

/// A tool beside so much CBR that a half of the wire is left, as the paper has it: 4.417 Mbit/s of payload.
pub(super) fn half_of_the_wire(tool: Tool) -> Case {
    of_the_wire(tool.method(), Kind::Cbr, HALF)
}

/// A method beside traffic that takes so much of the wire, so that the paper's ideals are what is left there.
pub(super) fn of_the_wire(method: impl Display, kind: Kind, load: u32) -> Case {
    match load {
        0 => case(method, kind, 0),
        _ => {
            loaded(Case::new("hub").set("measure.0.method", method), kind, f64::from(load) / on_the_wire(1.0))
        }
    }
}

/// DietTOPP without the proportional share as one more point of its line.
pub(super) fn diettopp_without_share() -> Case {
    case("diettopp", Kind::Cbr, HALF)
}

/// A tool on it.
pub(super) fn tool(tool: Tool, kind: Kind, load: u32) -> Case {
    case(tool.method(), kind, load)
}

/// Delays of a host's packets in `noise`, in us: the most.
pub(super) const NOISES: [u32; 3] = [50, 150, NOISE];
pub(super) const NOISE: u32 = 500;

/// A tool where each host delays each packet by 0 to so many microseconds, evenly.
pub(super) fn noisy(of: Tool, kind: Kind, most: u32) -> Case {
    (0..2).fold(tool(of, kind, HALF), |case, link| {
        let key = |key: &str| format!("link.{link}.jitter.{key}");
        case.set(key("kind"), "uniform").set(key("max"), format!("{most} us"))
    })
}

/// The reading of `bandwidth 10000` as tc takes it: 10 kbit/s, so that the average hardly falls while the queue is empty.
pub(super) fn as_tc_reads(case: Case) -> Case {
    case.set(red("bandwidth"), "10 kbit/s")
}

/// A key of the discipline towards the hub.
pub(super) fn red(key: &str) -> String {
    format!("link.4.discipline.{key}")
}

/// Loads and kinds of cross traffic, no traffic once.
pub(super) fn beside(loads: &[u32]) -> Vec<(u32, Kind)> {
    let both = loads.iter().flat_map(|&load| KINDS.map(|kind| (load, kind)));
    both.filter(|(load, kind)| *load > 0 || *kind == Kind::Cbr).collect()
}

/// A discipline towards the hub, that marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Aqm {
    pub(super) name: &'static str,
    /// Its keys in the scenario without one; none: the paper's.
    keys: &'static [(&'static str, &'static str)],
}

/// Those of the question of section IV-E, "how ECNProbe interacts with these AQM plus ECN schemes", with the defaults of their sources.
pub(super) const AQMS: [Aqm; 6] = [
    Aqm { name: "Linux RED", keys: &[] },
    Aqm { name: "classic RED", keys: &[("kind", "red"), ("ecn", "true")] },
    Aqm { name: "CoDel", keys: &[("kind", "codel"), ("ecn", "true")] },
    Aqm { name: "FQ-CoDel", keys: &[("kind", "fq-codel"), ("ecn", "true")] },
    Aqm { name: "PIE", keys: &[("kind", "pie"), ("ecn", "true")] },
    STEP,
];
/// Marks each packet that waited for longer.
pub(super) const STEP: Aqm = Aqm {
    name: "step at 5 ms",
    keys: &[("kind", "step"), ("classic", "true"), ("threshold.sojourn", "5 ms")],
};
/// Marks what finds more than two packets.
const SHARP: Aqm = Aqm {
    name: "step at 2 packets",
    keys: &[("kind", "step"), ("classic", "true"), ("threshold.occupancy", "2 packets")],
};

/// The paper's settings behind a queue that marks at once; a second between trains, so that others' packets, of which such a queue
/// drops none, have gone.
pub(super) fn sharp(kind: Kind, load: u32) -> Case {
    SHARP.on(case("ecnprobe(faithful=true, pause=1 s)", kind, load)).set("duration", "100 s")
}

impl Aqm {
    /// The same case behind it.
    pub(super) fn on(self, case: Case) -> Case {
        let scenario = if self.keys.is_empty() { case.scenario } else { "aqm" };
        let case = Case { scenario, ..case };
        // The others have a limit among their keys.
        let with_queue = self.keys.first().is_some_and(|kind| *kind != ("kind", "fq-codel"));
        let case = if with_queue { case.set("link.4.queue", "256 kB") } else { case };
        self.keys.iter().fold(case, |case, (key, value)| case.set(red(key), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 500 B of payload are 566 on the wire; 5 Mbit/s of it leave 4.34 there, 4.23 in IP packets of 1500 B.
    #[test]
    fn the_ideal_is_that_of_the_wire() {
        let near = |value: f64, hand: f64| assert!((value - hand).abs() < 0.005, "{value}");
        near(on_the_wire(5.0), 5.66);
        near(left(5.0), 4.34);
        near(left_in(5.0, 1500.0), 4.23);
        assert_eq!(beside(&LOADS).len(), 9);
    }
}
