//! [`Watched`]: a simulation whose traffic and network are accounted for, whoever paces it; and [`NetworkOutcome`], what
//! came of them. The simulator and the lab run the same, and so give the same.

use lastmile::time::{Span, Time};

use crate::network::engine::{Engine, EngineError};
use crate::runs::flows::{FlowOutcome, FlowWatch};
use crate::scenario::{Scenario, Simulation};

/// What the scenario's own traffic got, and what its links and WLANs carried.
///
/// ```
/// use lastmile::time::Time;
/// use lastmile_sim::{runs::accounting::Watched, scenario::*};
/// let scenario = builtin("path").unwrap();
/// let mut run = Watched::new(&scenario, build(&scenario, 1, vec![])?);
/// run.run_until(Time::ZERO + scenario.duration)?;
/// let found = run.outcome(&scenario);
/// assert_eq!(found.flows[0].flow, "cross");
/// assert_eq!((found.links[0].from.as_str(), found.wlans.len()), ("sender", 0));
/// assert_eq!(found.links[0].packets, found.flows[0].sent);
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct NetworkOutcome {
    /// The flows, in the scenario's order.
    pub flows: Vec<FlowOutcome>,
    /// The links, one for each direction, in the scenario's order.
    pub links: Vec<LinkOutcome>,
    /// The directions of all WLANs, in the scenario's order.
    pub wlans: Vec<WlanOutcome>,
}

/// What one direction of a link carried over the whole run.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct LinkOutcome {
    /// The host or router where it begins.
    pub from: String,
    /// That where it ends.
    pub to: String,
    /// Packets that its queue accepted.
    pub packets: u64,
    /// Packets that its queue dropped.
    pub dropped: u64,
}

/// What one direction of an association in a WLAN carried over the whole run.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct WlanOutcome {
    /// The WLAN, by its first station.
    pub wlan: String,
    /// The sending station.
    pub from: String,
    /// The receiving station.
    pub to: String,
    /// Packets that came to the sender's queue, dropped ones included.
    pub packets: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Packets that found the queue full.
    pub dropped: u64,
    /// Packets given up after all retries, whatever destroyed them.
    pub lost: u64,
    /// Transmissions; an aggregate is one.
    pub transmissions: u64,
    /// Transmissions that collided.
    pub collisions: u64,
    /// Frames transmitted; an aggregate has many.
    pub frames: u64,
    /// Frames that noise destroyed.
    pub channel_errors: u64,
    /// Air that the transmissions took, with their responses and retries.
    pub airtime_s: f64,
}

/// A simulation that takes its counts when its warm-up is over, however far it is run at a time.
#[derive(Debug)]
pub struct Watched {
    simulation: Simulation,
    warm_up: Time,
    flows: Option<FlowWatch>,
    /// When which flow stops after the warm-up, the last one first.
    stops: Vec<(Time, usize)>,
}

impl Watched {
    /// A simulation of that scenario at its start.
    pub fn new(scenario: &Scenario, simulation: Simulation) -> Watched {
        let warm_up = Time::ZERO + scenario.warm_up;
        let stops = scenario.traffic.iter().enumerate().map(|(flow, spec)| (spec.stop, flow));
        let mut stops: Vec<_> = stops.filter(|&(at, _)| at > warm_up && at < Time::MAX).collect();
        stops.sort_unstable_by(|a, b| b.cmp(a));
        Watched { simulation, warm_up, flows: None, stops }
    }

    /// See [`Engine::run_until`].
    ///
    /// # Errors
    /// See there.
    pub fn run_until(&mut self, end: Time) -> Result<(), EngineError> {
        if self.flows.is_none() && end >= self.warm_up {
            self.simulation.engine.run_until(self.warm_up)?;
            self.flows = Some(FlowWatch::begin(&self.simulation));
        }
        while let Some(&(at, flow)) = self.stops.last()
            && at <= end
        {
            self.simulation.engine.run_until(at)?;
            if let Some(flows) = &mut self.flows {
                flows.stop(&self.simulation, flow);
            }
            self.stops.pop();
        }
        self.simulation.engine.run_until(end)
    }

    /// The simulation as it stands.
    pub fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    /// Its engine, to inject and to take out packets. What makes time pass is [`run_until`](Watched::run_until).
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.simulation.engine
    }

    /// The simulation alone, for what else is to be read from it.
    pub fn into_simulation(self) -> Simulation {
        self.simulation
    }

    /// What came of it up to now. In a run that ended within its warm-up no flow has a goodput.
    pub fn outcome(&self, scenario: &Scenario) -> NetworkOutcome {
        let flows = self.flows.clone().unwrap_or_else(|| FlowWatch::begin(&self.simulation));
        NetworkOutcome {
            flows: flows.end(scenario, &self.simulation),
            links: links(scenario, &self.simulation),
            wlans: wlans(scenario, &self.simulation),
        }
    }
}

fn links(scenario: &Scenario, simulation: &Simulation) -> Vec<LinkOutcome> {
    let link = |(spec, &node): (&crate::scenario::LinkSpec, _)| {
        let counted = simulation.engine.link(node)?.counters();
        Some(LinkOutcome {
            from: scenario.vertex_name(spec.from).to_owned(),
            to: scenario.vertex_name(spec.to).to_owned(),
            packets: counted.packets,
            dropped: counted.drops,
        })
    };
    scenario.links.iter().zip(&simulation.links).filter_map(link).collect()
}

fn wlans(scenario: &Scenario, simulation: &Simulation) -> Vec<WlanOutcome> {
    let mut all = Vec::new();
    for (spec, &node) in scenario.wlans.iter().zip(&simulation.wlans) {
        let Some(medium) = simulation.engine.wlan(node) else { continue };
        for &(port, from, to) in &spec.directions {
            let Some(counted) = medium.counters(port) else { continue };
            all.push(WlanOutcome {
                wlan: spec.name().to_owned(),
                from: scenario.vertex_name(from).to_owned(),
                to: scenario.vertex_name(to).to_owned(),
                packets: counted.arrived,
                delivered: counted.delivered,
                dropped: counted.lost_queue,
                lost: counted.lost_collision + counted.lost_channel,
                transmissions: counted.transmissions,
                collisions: counted.collisions,
                frames: counted.frames,
                channel_errors: counted.channel_errors,
                airtime_s: counted.airtime.max(Span::ZERO).as_secs_f64(),
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Override, build, builtin_text};

    fn outcome(name: &str, steps: i64) -> NetworkOutcome {
        let overrides = [Override::new("duration", "2 s"), Override::new("warm_up", "300 ms")];
        let text = builtin_text(name).unwrap();
        let scenario = Scenario::parse_with(name, text, &overrides, &|_| Ok(())).unwrap();
        let mut run = Watched::new(&scenario, build(&scenario, 3, vec![]).unwrap());
        for step in 1..=steps {
            run.run_until(Time::from_nanos((2_000_000_000 / steps * step) as u64)).unwrap();
        }
        run.run_until(Time::ZERO + scenario.duration).unwrap();
        run.outcome(&scenario)
    }

    #[test]
    fn what_a_queue_holds_when_a_flow_stops_is_no_goodput() {
        let text = "name = \"x\"\nduration = \"4 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
                    rate = \"8 Mbit/s\"\nqueue = \"10 MB\"\n[[traffic]]\nkind = \"cbr\"\nfrom = \"a\"\nto = \"b\"\n\
                    rate = \"24 Mbit/s\"\nsize = \"1000 B\"\nstop = \"1 s\"\n";
        let scenario = Scenario::parse("x", text).unwrap();
        for steps in [1, 13] {
            let mut run = Watched::new(&scenario, build(&scenario, 1, vec![]).unwrap());
            for step in 1..=steps {
                run.run_until(Time::from_nanos(4_000_000_000 / steps * step)).unwrap();
            }
            run.run_until(Time::ZERO + scenario.duration).unwrap();
            let flow = run.outcome(&scenario).flows.remove(0);
            // All of it arrives in three seconds, and a third of it while it was sent.
            assert_eq!((flow.sent, flow.received, flow.under_way), (3_000, 3_000, 0));
            assert!(flow.goodput_bps.is_some_and(|bps| (7.97e6..=8e6).contains(&bps)), "{flow:?}");
        }
    }

    #[test]
    fn how_far_it_is_run_at_a_time_changes_nothing() {
        for name in ["dumbbell-tcp", "wlan-g-busy", "path"] {
            let at_once = outcome(name, 1);
            assert_eq!(outcome(name, 7_919), at_once, "{name}");
            assert!(at_once.flows.iter().any(|flow| flow.goodput_bps > Some(1e4)), "{name}");
            for way in &at_once.wlans {
                assert!(way.delivered + way.dropped + way.lost <= way.packets, "{way:?}");
            }
            assert_eq!(
                name == "wlan-g-busy",
                at_once.wlans.iter().any(|way| way.transmissions > 0),
                "{name}"
            );
        }
    }

    #[test]
    fn a_run_that_ends_within_its_warm_up_has_no_goodput() {
        let scenario = crate::scenario::builtin("path").unwrap();
        let mut run = Watched::new(&scenario, build(&scenario, 3, vec![]).unwrap());
        run.run_until(Time::from_nanos(500_000_000)).unwrap();
        let flow = &run.outcome(&scenario).flows[0];
        assert!(flow.sent > 100 && flow.goodput_bps.is_none(), "{flow:?}");
    }
}
