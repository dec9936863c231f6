//! [`Watch`]: looks on at every hop and holds the counters against what it saw.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use lastmile::node::{Datagram, Flow, Payload};
use lastmile::time::{Span, Time};
use lastmile_sim::network::element::Element;
use lastmile_sim::network::engine::{Engine, NodeId};
use lastmile_sim::scenario::{Scenario, Simulation};

#[derive(Debug, Default)]
struct Seen {
    last: Time,
    /// The links' least delays; zero for WLANs. All other nodes are ends.
    carriers: BTreeMap<NodeId, Span>,
    /// By carrier, flow, and true for the second time: between two clients of a WLAN the same air is crossed twice.
    inside: BTreeMap<(NodeId, Flow, bool), VecDeque<(Time, Payload)>>,
    /// Packets that entered and left each carrier.
    through: BTreeMap<NodeId, (u64, u64)>,
    /// Packets that each flow's ends sent and took.
    ends: BTreeMap<Flow, (u64, u64)>,
    /// Packets of each flow that were lost.
    lost: BTreeMap<Flow, u64>,
    wrong: Option<String>,
}

impl Seen {
    fn hop(&mut self, at: Time, from: NodeId, to: NodeId, datagram: &Datagram) {
        if at < self.last {
            self.wrong.get_or_insert(format!("a hop at {at}, after {}", self.last));
        }
        self.last = at;
        match self.carriers.get(&from).copied() {
            None => self.ends.entry(datagram.flow).or_default().0 += 1,
            Some(delay) => {
                self.through.entry(from).or_default().1 += 1;
                let twice = from != to && self.inside.contains_key(&(from, datagram.flow, true));
                let ring = self.inside.entry((from, datagram.flow, twice)).or_default();
                // Those before it were lost, or it overtook them: then they will be missed when they come.
                let entered = core::iter::from_fn(|| ring.pop_front())
                    .find(|(_, payload)| *payload == datagram.payload);
                match entered {
                    None => {
                        self.wrong.get_or_insert(format!(
                            "{datagram:?} left {from:?} out of order, or never entered"
                        ));
                    }
                    Some((entered, _)) if at < entered + delay => {
                        self.wrong.get_or_insert(format!(
                            "{datagram:?} was faster through {from:?} than its delay"
                        ));
                    }
                    Some(_) => {}
                }
            }
        }
        if self.carriers.contains_key(&to) {
            self.through.entry(to).or_default().0 += 1;
            self.inside
                .entry((to, datagram.flow, from == to))
                .or_default()
                .push_back((at, datagram.payload.clone()));
        } else {
            self.ends.entry(datagram.flow).or_default().1 += 1;
        }
    }
}

/// See the [module](self).
pub struct Watch(Arc<Mutex<Seen>>);

fn require(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

impl Watch {
    pub fn attach(scenario: &Scenario, simulation: &mut Simulation) -> Watch {
        let least = |spec: &lastmile_sim::scenario::LinkSpec| {
            let changed = spec.config.schedule.iter().filter_map(|change| change.delay);
            changed.fold(spec.config.delay, Span::min)
        };
        let links = simulation.links.iter().copied().zip(scenario.links.iter().map(least));
        let air = simulation.wlans.iter().map(|&wlan| (wlan, Span::ZERO));
        let seen = Arc::new(Mutex::new(Seen { carriers: links.chain(air).collect(), ..Seen::default() }));
        let log = Arc::clone(&seen);
        simulation
            .engine
            .set_tap(Box::new(move |at, from, to, datagram| log.lock().unwrap().hop(at, from, to, datagram)));
        let log = Arc::clone(&seen);
        simulation.engine.add_lost_tap(Box::new(move |_, _, lost| {
            *log.lock().unwrap().lost.entry(lost.datagram.flow).or_default() += 1;
        }));
        Watch(seen)
    }

    /// Says what is wrong at this moment.
    pub fn check(&self, scenario: &Scenario, simulation: &mut Simulation) -> Result<(), String> {
        let seen = self.0.lock().unwrap();
        let now = simulation.engine.now();
        let elapsed = now - Time::ZERO;
        if let Some(wrong) = &seen.wrong {
            return Err(wrong.clone());
        }
        let engine = &simulation.engine;
        require(engine.unroutable() == 0, || format!("{} packets had no route", engine.unroutable()))?;
        let mut inside = 0;
        for &node in &simulation.links {
            let link = engine.link(node).unwrap();
            let c = link.counters();
            let under_way = link.under_way() as u64;
            require(c.arrived == c.drops + c.lost + c.delivered + under_way, || {
                format!("{node:?}: {under_way} under way: {c:?}")
            })?;
            let through = seen.through.get(&node).copied().unwrap_or_default();
            require(through == (c.arrived, c.delivered), || format!("{node:?}: {c:?}, seen {through:?}"))?;
            require(link.busy(now) <= elapsed && link.busy(now) >= Span::ZERO, || {
                format!("{node:?} was busy for {} of {elapsed}", link.busy(now))
            })?;
            inside += under_way;
        }
        for &node in &simulation.wlans {
            let wlan = engine.wlan(node).unwrap();
            let (mut arrived, mut delivered, mut lost) = (0, 0, 0);
            for counters in wlan.directions().filter_map(|d| wlan.counters(d.0)) {
                arrived += counters.arrived;
                delivered += counters.delivered;
                lost += counters.lost();
            }
            let queued = wlan.queued() as u64;
            require(arrived == delivered + lost + queued, || {
                format!("{node:?}: {arrived} arrived, {delivered} delivered, {lost} lost, {queued} queued")
            })?;
            let through = seen.through.get(&node).copied().unwrap_or_default();
            require(through == (arrived, delivered), || {
                format!("{node:?}: {arrived}, {delivered}, seen {through:?}")
            })?;
            require(wlan.busy(now) <= elapsed && wlan.busy(now) >= Span::ZERO, || {
                format!("{node:?} was busy for {} of {elapsed}", wlan.busy(now))
            })?;
            let ways = || wlan.directions().filter_map(|d| wlan.counters(d.0));
            require(ways().all(|way| way.airtime >= Span::ZERO), || format!("{node:?}: airtime"))?;
            inside += queued;
        }
        // Each flow: packets sent are here, were lost for a cause that is known, or are still inside.
        let mut missing = 0;
        for (&flow, &(sent, taken)) in &seen.ends {
            let lost = seen.lost.get(&flow).copied().unwrap_or(0);
            require(taken + lost <= sent, || format!("{flow:?}: {sent} sent, {taken} taken, {lost} lost"))?;
            missing += sent - taken - lost;
        }
        require(missing == inside, || {
            format!("{missing} packets are neither here nor lost, {inside} inside")
        })?;
        for (spec, &node) in scenario.traffic.iter().zip(&simulation.sinks) {
            if let Some(sink) = engine.sink(node) {
                let reordered = sink.counters().out_of_order;
                require(reordered == 0, || format!("{}: {reordered} packets were overtaken", spec.name))?;
            }
        }
        Ok(())
    }
}

/// All that a run counts.
pub fn fingerprint(simulation: &Simulation) -> String {
    let own = [simulation.links.len(), simulation.wlans.len(), simulation.sources.len()];
    fingerprint_of(simulation, own)
}

/// Counters of so many first links, WLANs and flows; their numbers as nodes do not matter.
pub fn fingerprint_of(simulation: &Simulation, [links, wlans, flows]: [usize; 3]) -> String {
    let engine: &Engine = &simulation.engine;
    let mut text = String::new();
    let ends = simulation.sources.iter().take(flows).chain(simulation.sinks.iter().take(flows));
    let nodes = simulation.links.iter().take(links).chain(simulation.wlans.iter().take(wlans)).chain(ends);
    for element in nodes.filter_map(|&node| engine.element(node)) {
        let _ = match element {
            Element::Link(link) => writeln!(text, "{:?} {}", link.counters(), link.busy(engine.now())),
            Element::Wlan(wlan) => {
                let counters: Vec<_> = wlan.directions().filter_map(|d| wlan.counters(d.0)).collect();
                writeln!(text, "{counters:?} {:?}", wlan.airtime())
            }
            Element::Sink(sink) => writeln!(text, "{:?}", sink.counters()),
            Element::Source(source) => writeln!(text, "{}", source.sent()),
            Element::TcpSender(sender) => writeln!(text, "{:?}", sender.counters()),
            Element::TcpReceiver(receiver) => writeln!(text, "{:?}", receiver.counters()),
            other => writeln!(text, "{other:?}"),
        };
    }
    text
}
