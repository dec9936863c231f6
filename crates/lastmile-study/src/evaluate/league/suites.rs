//! The league's cases, suite by suite: a path, and the values that are replaced in it. `frozen.txt` beside it has a hash of each, so that none
//! changes unseen.

use lastmile::time::Span;

use crate::scenarios::RMCAT;
#[cfg(test)]
use crate::scenarios::ready;

/// The suites, in the order of the table.
pub const SUITES: [&str; 9] = ["rmcat", "aqm", "loss", "steps", "wifi", "trace", "app", "l4s", "mixed"];

/// The tested stream of the suite `mixed`.
const MIXED: &str = "second";

/// Values that are replaced: key and value.
type Set = &'static [(&'static str, &'static str)];

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LeagueCase {
    pub(super) suite: &'static str,
    pub(super) name: String,
    pub(super) scenario: &'static str,
    pub(super) set: Vec<(&'static str, String)>,
    /// Another queue discipline at the limiting link, and the share of packets that it loses at random.
    pub(super) queue: Option<&'static str>,
    pub(super) loss: Option<f64>,
    pub(super) jitter: bool,
}

impl LeagueCase {
    fn of(suite: &'static str, name: impl Into<String>, scenario: &'static str, set: Set) -> LeagueCase {
        let set = set.iter().map(|&(key, value)| (key, value.to_owned())).collect();
        LeagueCase { suite, name: name.into(), scenario, set, queue: None, loss: None, jitter: false }
    }

    fn queue(self, queue: &'static str) -> LeagueCase {
        LeagueCase { queue: Some(queue), ..self }
    }

    fn loss(self, share: f64) -> LeagueCase {
        LeagueCase { loss: Some(share), ..self }
    }

    fn and(mut self, key: &'static str, value: impl Into<String>) -> LeagueCase {
        self.set.push((key, value.into()));
        self
    }

    /// The changes of the path, as options of `evaluate --scenario` where there are such.
    pub(super) fn changes(&self) -> String {
        let set = self.set.iter().map(|(key, value)| format!("--set '{key}={value}'"));
        let more = [
            self.queue.map(|queue| format!("--queue {queue}")),
            self.loss.map(|loss| format!("--loss {loss}")),
            self.jitter.then(|| "--jitter".to_owned()),
            (self.measured_from() > Span::ZERO).then(|| format!("--from '{}'", self.measured_from())),
        ];
        let streams = self.tested().into_iter().map(|name| format!("--stream {name}"));
        set.chain(more.into_iter().flatten()).chain(streams).collect::<Vec<_>>().join(" ")
    }

    /// Time of a run from which numbers count: of twins once a controller had time to tell them apart. It decides no run.
    pub(super) fn measured_from(&self) -> Span {
        if self.name.starts_with("twin-") { Span::from_secs(20) } else { Span::ZERO }
    }

    /// The streams that are tested; none for all.
    pub(super) fn tested(&self) -> Vec<String> {
        if self.suite == "mixed" { vec![MIXED.to_owned()] } else { Vec::new() }
    }

    /// All that decides its runs, but for controllers and seeds.
    #[cfg(test)]
    pub(super) fn spelled_out(&self) -> String {
        format!("{self:?}\n{}", ready(self.scenario).unwrap_or_default())
    }
}

const ONE: &str = "one-video";
const CBR: (&str, &str) = ("stream.video.source", "cbr(min=50 kbit/s, max=10 Mbit/s)");

/// `one-video` at another rate with a queue of 300 ms, and a source that could fill it.
fn fast(suite: &'static str, name: impl Into<String>, mbit: u64, source: &str) -> LeagueCase {
    let most = format!("{} Mbit/s", mbit * 3 / 2);
    LeagueCase::of(suite, name, ONE, &[])
        .and("link.1.rate", format!("{mbit} Mbit/s"))
        .and("link.1.queue", format!("{} B", mbit * 37_500))
        .and("link.1.back.rate", "1000 Mbit/s")
        .and("stream.video.source", format!("{source}(min=50 kbit/s, max={most})"))
        .and("stream.video.max_rate", most)
}

fn rmcat() -> Vec<LeagueCase> {
    let of = |name: &'static str| LeagueCase::of("rmcat", name, name, &[]);
    let mut all: Vec<_> = RMCAT.iter().copied().chain(["rfc8867-6.3", "rfc8867-6.1"]).map(of).collect();
    // RFC 8867, section 6.2: the basic cases with ECN, marked by CoDel.
    let ecn = [("rfc8867-5.1", "link.1", 1), ("rfc8867-5.4", "link.3", 3), ("rfc8867-5.6", "link.2", 1)];
    for (name, link, streams) in ecn {
        let mut case = LeagueCase::of("rmcat", format!("rfc8867-6.2-{}", &name[8..]), name, &[]);
        for (key, value) in [("kind", "codel"), ("ecn", "true")] {
            case.set.push((key_of(link, key), value.to_owned()));
        }
        for stream in 0..streams {
            case.set.push((["stream.0.ecn", "stream.1.ecn", "stream.2.ecn"][stream], "ect0".to_owned()));
        }
        all.push(case);
    }
    for law in ["reno", "cubic"] {
        let case = LeagueCase::of("rmcat", format!("beside-{law}"), "beside-tcp", &[]);
        all.push(case.and("traffic.tcp.tcp.law", law));
    }
    all
}

fn key_of(link: &str, key: &str) -> &'static str {
    match (link, key) {
        ("link.1", "kind") => "link.1.discipline.kind",
        ("link.2", "kind") => "link.2.discipline.kind",
        ("link.3", "kind") => "link.3.discipline.kind",
        ("link.1", _) => "link.1.discipline.ecn",
        ("link.2", _) => "link.2.discipline.ecn",
        _ => "link.3.discipline.ecn",
    }
}

fn aqm() -> Vec<LeagueCase> {
    let mut all = Vec::new();
    for queue in ["fq-codel", "pie", "codel"] {
        for name in ["rfc8867-5.1", "rfc8867-5.4", "rfc8867-5.6"] {
            all.push(LeagueCase::of("aqm", format!("{queue}-{}", &name[8..]), name, &[]).queue(queue));
        }
    }
    all
}

fn loss() -> Vec<LeagueCase> {
    let of = |name: &str, set| LeagueCase::of("loss", name, ONE, set);
    let mut all: Vec<_> = [1, 3, 5, 8]
        .map(|percent| of(&format!("loss-{percent}"), &[]).loss(f64::from(percent) / 100.0))
        .into();
    all.push(of("loss-8-cbr", &[CBR]).loss(0.08));
    all.push(LeagueCase::of("loss", "burst-loss", "burst-loss", &[]));
    let jittery = LeagueCase::of("loss", "loss-1-jitter-5.1", "rfc8867-5.1", &[]).loss(0.01);
    all.push(LeagueCase { jitter: true, ..jittery });
    all.push(of("loss-3-pie", &[]).loss(0.03).queue("pie"));
    // Twins: to a sender at the whole rate C they lose as much as the link of C that loses p at random, and only a lower rate helps.
    for (mbit, percent) in [(2_u64, 5_u64), (2, 8), (4, 5), (4, 8)] {
        let (whole, left) = (format!("{mbit} Mbit/s"), format!("{} kbit/s", mbit * 10 * (100 - percent)));
        let (queue, end) = (format!("{} B", mbit * 37_500), format!("{mbit}-{percent}"));
        let path = |name: &str, rate: &str| {
            of(&format!("twin-{name}-{end}"), &[]).and("link.1.rate", rate).and("link.1.queue", queue.clone())
        };
        all.push(path("random", &whole).loss(percent as f64 / 100.0));
        let policed = path("policer", &whole);
        all.push(policed.and("link.1.policer.rate", left.clone()).and("link.1.policer.burst", "6 kB"));
        all.push(
            of(&format!("twin-short-{end}"), &[])
                .and("link.1.rate", left.clone())
                .and("link.1.queue", "6000 B"),
        );
        all.push(path("pie", &left).queue("pie"));
        all.push(path("fq-codel", &left).queue("fq-codel"));
    }
    all
}

fn steps() -> Vec<LeagueCase> {
    let of = |name: &str, set| LeagueCase::of("steps", name, ONE, set);
    let own = |name: &'static str| LeagueCase::of("steps", name, name, &[]);
    let mut all: Vec<_> =
        ["step-5-1-5", "step-0.15-5", "late-comer", "tcp-leaves", "hand-off"].map(own).into();
    let cbr = "cbr(min=50 kbit/s, max=3 Mbit/s)";
    let late = LeagueCase::of("steps", "late-comer-cbr", "late-comer", &[]);
    all.push(late.and("stream.first.source", cbr).and("stream.second.source", cbr));
    for rtt in [10, 100, 200, 300] {
        all.push(of(&format!("rtt-{rtt}"), &[]).and("link.1.delay", format!("{} ms", rtt / 2)));
    }
    for buffer in [20, 40, 80, 160, 320] {
        all.push(of(&format!("buffer-{buffer}"), &[]).and("link.1.queue", format!("{} B", buffer * 250)));
    }
    all.extend([20, 50, 100].map(|mbit| fast("steps", format!("rate-{mbit}"), mbit, "codec")));
    for every in [25, 100, 200] {
        all.push(of(&format!("feedback-{every}"), &[]).and("stream.video.feedback", format!("{every} ms")));
    }
    all.push(of("feedback-lost-30", &[("link.1.back.losses.0.model.rate", "0.3")]));
    all.push(of("skew-100", &[("host.r.clock.skew_ppm", "100.0"), ("duration", "180 s")]));
    all.push(of("skew-minus-100", &[("host.r.clock.skew_ppm", "-100.0"), ("duration", "180 s")]));
    all
}

fn wifi() -> Vec<LeagueCase> {
    let n = |station: &'static str| -> Vec<(&'static str, String)> {
        let rate = "52 Mbit/s".to_owned();
        let all = [("wlan.0.standard", "n".to_owned()), ("wlan.0.streams", "2".to_owned())];
        all.into_iter().chain([("wlan.0.station.sta.rate", rate.clone()), (station, rate)]).collect()
    };
    let cell = |name: &str, scenario, set| LeagueCase { set, ..LeagueCase::of("wifi", name, scenario, &[]) };
    // Added after the others were frozen, when a stream that begins second was found to starve.
    let late = ("stream.video.start", "15 s".to_owned());
    vec![
        cell("g-download", "wifi-download", Vec::new()),
        cell("g-uplinks", "wifi-uplinks", Vec::new()),
        cell("n-download", "wifi-download", n("wlan.0.station.laptop.rate")),
        cell("n-uplinks", "wifi-uplinks", n("wlan.0.station.up.rate")),
        cell("g-late", "wifi-download", vec![late.clone()]),
        cell("n-late", "wifi-download", [n("wlan.0.station.laptop.rate"), vec![late]].concat()),
    ]
}

fn trace() -> Vec<LeagueCase> {
    let of = |name: &str, set| LeagueCase::of("trace", name, "walk", set);
    vec![
        of("walk", &[]),
        of("walk-slow", &[("link.1.walk.every", "2 s"), ("link.1.walk.step", "0.5")]),
        of("walk-fast", &[("link.1.walk.every", "100 ms"), ("link.1.walk.step", "0.1")]),
        of(
            "walk-deep",
            &[
                ("link.1.walk.min", "150 kbit/s"),
                ("link.1.walk.max", "10 Mbit/s"),
                ("link.1.walk.step", "0.4"),
            ],
        ),
        of("walk-cbr", &[CBR]),
    ]
}

fn app() -> Vec<LeagueCase> {
    let of = |name: &str, scenario, source| {
        LeagueCase::of("app", name, scenario, &[]).and("stream.video.source", source)
    };
    vec![
        of("screen", ONE, "screen(max=10 Mbit/s)"),
        of("audio-first", ONE, "audio-first(min=50 kbit/s, max=10 Mbit/s)"),
        of("layers", ONE, "layers"),
        of("layers-step", "step-5-1-5", "layers(lowest=150 kbit/s, factor=2.5, layers=4)"),
        of("layers-step-margin", "step-5-1-5", "layers(lowest=150 kbit/s, factor=2.5, layers=4, margin=1.1)"),
        of("screen-walk", "walk", "screen(max=10 Mbit/s)"),
        LeagueCase::of("app", "call", "call", &[]),
    ]
}

fn l4s() -> Vec<LeagueCase> {
    let ect1 = |case: LeagueCase| case.and("stream.video.ecn", "ect1").and("stream.video.feedback", "25 ms");
    let mut all: Vec<_> = [10, 20, 50]
        .map(|mbit| ect1(fast("l4s", format!("dualpi2-{mbit}"), mbit, "cbr")).queue("dualpi2"))
        .into();
    all.push(ect1(fast("l4s", "dualpi2-codec-10", 10, "codec")).queue("dualpi2"));
    all.push(ect1(fast("l4s", "step-10", 10, "cbr")).queue("step"));
    // A path that answers ECT(1) as RFC 3168 has it: the way back from L4S.
    let classic = ect1(fast("l4s", "codel-ecn-10", 10, "cbr"));
    all.push(classic.and("link.1.discipline.kind", "codel").and("link.1.discipline.ecn", "true"));
    for law in ["reno", "cubic"] {
        let beside = LeagueCase::of("l4s", format!("dualpi2-beside-{law}"), "beside-tcp", &[]);
        let source = "cbr(min=50 kbit/s, max=30 Mbit/s)";
        let beside = ect1(beside.and("link.2.rate", "20 Mbit/s").and("link.2.queue", "750000 B"));
        let beside = beside.and("stream.video.source", source).and("stream.video.max_rate", "30 Mbit/s");
        all.push(beside.and("traffic.tcp.tcp.law", law).queue("dualpi2"));
    }
    all
}

/// RFC 9743, section 5.2.2: two videos from the start. The first has the controller of the case's name, the second is tested.
fn mixed() -> Vec<LeagueCase> {
    let beside = |other: &&'static str| {
        let case =
            LeagueCase::of("mixed", format!("beside-{other}"), "late-comer", &[("stream.1.start", "0 s")]);
        case.and("stream.0.control", *other)
    };
    ["lastmile", "nada", "tfrc", "vtp"].iter().map(beside).collect()
}

/// Every case, suite by suite.
pub(super) fn cases() -> Vec<LeagueCase> {
    [rmcat(), aqm(), loss(), steps(), wifi(), trace(), app(), l4s(), mixed()].concat()
}

/// Cases of the short league: of each suite those that tell most, none of them long.
pub(super) const BRIEF: [&str; 16] = [
    "rfc8867-5.1",
    "rfc8867-5.2",
    "rfc8867-5.4",
    "rfc8867-5.6",
    "fq-codel-5.1",
    "pie-5.1",
    "loss-3",
    "loss-8",
    "twin-policer-2-8",
    "step-5-1-5",
    "late-comer",
    "hand-off",
    "walk",
    "screen",
    "layers",
    "dualpi2-10",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::PATHS;
    use std::collections::BTreeSet;

    #[test]
    fn every_path_is_in_a_case_and_every_case_has_a_name_of_its_own() {
        let all = cases();
        let names: BTreeSet<&str> = all.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        assert!(BRIEF.iter().all(|name| names.contains(name)));
        assert!(all.iter().all(|case| SUITES.contains(&case.suite)));
        let late = all.iter().filter(|case| case.measured_from() > Span::ZERO);
        assert!(late.clone().count() == 20 && late.into_iter().all(|case| case.suite == "loss"));
        for path in RMCAT.iter().chain(PATHS) {
            assert!(all.iter().any(|case| case.scenario == *path), "{path}");
        }
    }
}
