//! [`Reach`]: the flows that can change anything on some paths. A twin that looks at these alone does without the others, and gives the same
//! numbers: random numbers are drawn by component, and packets that meet on no link and in no cell know nothing of each other.

use std::collections::BTreeSet;

use lastmile::time::{Span, Time};

use crate::network::link::LinkConfig;
use crate::scenario::{LinkSpec, Scenario, TrafficSpec};

/// A link, or a WLAN with all of its directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Link(usize),
    Wlan(usize),
}

/// Parts of a network at which packets are looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach(BTreeSet<Part>);

impl Reach {
    /// The WLANs of the path between two hosts.
    pub(super) fn add_air(&mut self, scenario: &Scenario, from: usize, to: usize) {
        self.0.extend(parts(scenario, from, to).into_iter().filter(|part| matches!(part, Part::Wlan(_))));
    }

    /// All of the path between two hosts.
    pub(super) fn add_path(&mut self, scenario: &Scenario, from: usize, to: usize) {
        self.0.extend(parts(scenario, from, to));
    }

    /// The scenario with the flows that meet packets there, or packets that do, and so on. Where hosts change their links all stay.
    pub(super) fn only(&self, scenario: &Scenario, end: Time) -> Scenario {
        if !scenario.handoffs.is_empty() {
            return scenario.clone();
        }
        let mut open: Vec<(usize, BTreeSet<Part>)> =
            scenario.traffic.iter().map(|flow| crossed(scenario, flow)).enumerate().collect();
        let (mut reached, mut kept) = (self.0.clone(), BTreeSet::new());
        loop {
            let (met, apart): (Vec<_>, Vec<_>) =
                open.into_iter().partition(|(_, parts)| !parts.is_disjoint(&reached));
            if met.is_empty() {
                return silent(scenario, end, |flow| kept.contains(&flow));
            }
            for (flow, parts) in met {
                kept.insert(flow);
                reached.extend(parts);
            }
            open = apart;
        }
    }
}

/// The scenario with those flows alone. The others keep their places, by which losses are meant for single flows, and start when all is over.
pub(super) fn silent(scenario: &Scenario, end: Time, kept: impl Fn(usize) -> bool) -> Scenario {
    let mut silent = scenario.clone();
    for (_, spec) in silent.traffic.iter_mut().enumerate().filter(|(flow, _)| !kept(*flow)) {
        (spec.start, spec.stop) = (end + Span::from_secs(1), end + Span::from_secs(2));
        spec.changes.clear();
    }
    silent
}

/// The parts that packets of a flow cross, those of a connection back too.
fn crossed(scenario: &Scenario, flow: &TrafficSpec) -> BTreeSet<Part> {
    let back = flow.tcp.as_ref().map(|_| parts(scenario, flow.to, flow.from));
    parts(scenario, flow.from, flow.to).into_iter().chain(back.into_iter().flatten()).collect()
}

/// The parts of a path. Links that only delay are none: packets do not wait for each other there.
fn parts(scenario: &Scenario, from: usize, to: usize) -> Vec<Part> {
    let only_delays = |link: &LinkSpec| {
        let delay = LinkConfig { delay: link.config.delay, ..LinkConfig::default() };
        link.config == delay && link.walk.is_none()
    };
    let part = |hop: usize| match scenario.links.get(hop) {
        Some(link) => (!only_delays(link)).then_some(Part::Link(hop)),
        None => scenario.air(hop).map(|(wlan, _)| Part::Wlan(wlan)),
    };
    scenario.path(from, to).unwrap_or_default().into_iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::flows::counters;
    use crate::scenario::build;

    /// Two flows into a cell, one that shares a queue with the second of them, and two apart: one meets them on a link that only delays.
    const TEXT: &str = r#"
name = "cell"
duration = "3 s"
host = { a = {}, b = {}, c = {}, d = {}, s = {}, t = {} }
[[link]]
from = "a"
to = "r"
rate = "3 Mbit/s"
queue = "9 kB"
[[link]]
from = "r"
to = "ap"
delay = "2 ms"
[[link]]
from = "b"
to = "r"
rate = "20 Mbit/s"
[[link]]
from = "r"
to = "c"
rate = "20 Mbit/s"
[[link]]
from = "ap"
to = "d"
rate = "20 Mbit/s"
[[wlan]]
standard = "b"
station = [{ name = "ap" }, { name = "s", ap = "ap" }, { name = "t", ap = "ap" }]
[[traffic]]
name = "cell"
kind = "cbr"
from = "d"
to = "s"
rate = "1 Mbit/s"
size = "1000 B"
[[traffic]]
name = "into"
kind = "poisson"
from = "a"
to = "t"
rate = "2 Mbit/s"
size = "1000 B"
[[traffic]]
name = "queue"
kind = "poisson"
from = "a"
to = "c"
rate = "2 Mbit/s"
size = "1000 B"
[[traffic]]
name = "beside"
kind = "poisson"
from = "b"
to = "d"
rate = "2 Mbit/s"
size = "1000 B"
[[traffic]]
name = "elsewhere"
kind = "cbr"
from = "c"
to = "b"
rate = "2 Mbit/s"
size = "1000 B"
"#;

    #[test]
    fn flows_that_meet_nobody_stay_out_and_the_rest_fare_as_before() {
        let scenario = Scenario::parse("cell.toml", TEXT).unwrap();
        let [d, s] = ["d", "s"].map(|name| scenario.host(name).unwrap());
        let (end, mut reach) = (Time::ZERO + scenario.duration, Reach::default());
        reach.add_air(&scenario, d, s);
        let counts = |scenario: &Scenario| {
            let mut simulation = build(scenario, 1, Vec::new()).unwrap();
            simulation.engine.run_until(end).unwrap();
            let came = (0..scenario.traffic.len()).map(|flow| counters(&simulation, flow).bytes.0);
            let needed = simulation.engine.wlan(simulation.wlans[0]).unwrap().airtime().needed();
            (came.collect::<Vec<_>>(), needed)
        };
        let ((all, air), (only, same)) = (counts(&scenario), counts(&reach.only(&scenario, end)));
        assert_eq!((&only[..3], same), (&all[..3], air));
        assert!(all[3..].iter().all(|came| *came > 0) && only[3..] == [0, 0], "{all:?} {only:?}");
        // A path into the cell that crosses the queue of "beside" too.
        let [b, s] = ["b", "s"].map(|name| scenario.host(name).unwrap());
        reach.add_path(&scenario, b, s);
        assert_eq!(counts(&reach.only(&scenario, end)).0[..4], all[..4]);
    }
}
