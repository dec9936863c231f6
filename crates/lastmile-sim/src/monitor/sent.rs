//! [`Sent`]: the packets of a run's endpoints, for a twin in which they come again at the same times. A controller answers
//! to what it meets; its twin answers to nothing, and so brings others the load that the measured run had.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastmile::node::{Datagram, Flow};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};

use crate::network::engine::NodeId;
use crate::network::traffic::{Arrivals, MAX_TRACE_PACKETS, Trace};
use crate::scenario::roles::Conversation;
use crate::scenario::{Scenario, Simulation, TrafficSpec};

/// The packets of conversations, both ways, as they leave their hosts.
#[derive(Clone, Debug)]
pub struct Sent(Arc<Mutex<Vec<Way>>>);

/// One way of a conversation.
#[derive(Clone, Debug)]
struct Way {
    name: String,
    flow: Flow,
    sender: NodeId,
    ends: (usize, usize),
    packets: Vec<(Span, Bytes)>,
    /// Packets beyond those that are kept.
    is_cut: bool,
}

impl Sent {
    /// Takes note of what these conversations send from now on, if there are any.
    pub fn watch(simulation: &mut Simulation, of: impl Fn(&Conversation) -> bool) -> Option<Sent> {
        Sent::watch_up_to(MAX_TRACE_PACKETS, simulation, of)
    }

    fn watch_up_to(
        most: usize,
        simulation: &mut Simulation,
        of: impl Fn(&Conversation) -> bool,
    ) -> Option<Sent> {
        let mut ways = Vec::new();
        for (index, (talk, there, back)) in simulation.conversations().iter().enumerate() {
            if !of(talk) {
                continue;
            }
            let (from, to) = (talk.from.0, talk.to.0);
            // Channels that are meant for a stream know its way there by its name.
            let name = talk.name.clone().unwrap_or_else(|| format!("(conversation {index})"));
            for (name, flow, ends) in
                [(name.clone(), *there, (from, to)), (format!("({name}, back)"), *back, (to, from))]
            {
                let sender = simulation.hosts[ends.0];
                ways.push(Way { name, flow, sender, ends, packets: Vec::new(), is_cut: false });
            }
        }
        if ways.is_empty() {
            return None;
        }
        let sent = Sent(Arc::new(Mutex::new(ways)));
        let told = sent.clone();
        simulation.engine.set_tap(Box::new(move |now, from, _, datagram| {
            keep(&mut told.lock(), now, from, datagram, most);
        }));
        Some(sent)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Way>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The scenario without endpoints, in which their packets come again as traffic; `None` where there were more than are kept.
    pub fn again(&self, scenario: &Scenario) -> Option<Scenario> {
        let mut again = scenario.without_endpoints();
        for way in self.lock().iter() {
            let what = (Rate::ip(0), Bytes(1));
            let silent = TrafficSpec::cbr(&way.name, way.ends, what, (Time::ZERO, Time::MAX));
            let arrivals = Arrivals::Trace(Arc::new(Trace::of(way.packets.clone())));
            again.traffic.push(TrafficSpec { arrivals, ..silent });
            if way.is_cut {
                return None;
            }
        }
        Some(again)
    }
}

/// Keeps a packet that leaves its sender.
fn keep(ways: &mut [Way], now: Time, from: NodeId, datagram: &Datagram, most: usize) {
    let own = ways.iter_mut().find(|way| way.flow == datagram.flow && way.sender == from);
    let Some(way) = own else { return };
    way.is_cut = way.packets.len() >= most;
    if !way.is_cut {
        way.packets.push((now - Time::ZERO, datagram.ip_size()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::Makers;
    use crate::runs::{Hooks, simulate};

    /// One second of a stream at 1.2 Mbit/s, 30 frames in packets of up to 1200 B, and its feedback.
    fn sent(most: usize) -> (Scenario, Sent) {
        let text = "name = \"x\"\nduration = \"2 s\"\nhost = { a = {}, b = {} }\nlink = [{ from = \"a\", to = \"b\", rate = \"5 Mbit/s\" }]\n\
                    [[stream]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1.2 Mbit/s\"\nstop = \"1 s\"\n";
        let scenario = Scenario::parse("x.toml", text).unwrap();
        let kept = Arc::new(Mutex::new(None));
        let (told, all) = (kept.clone(), |_: &Conversation| true);
        let prepare = Box::new(move |_: &Scenario, made: &mut Simulation| {
            *told.lock().unwrap() = Sent::watch_up_to(most, made, all);
        });
        let hooks = Hooks { prepare: Some(prepare), ..Hooks::default() };
        simulate(&scenario, 1, &Makers::default(), hooks).unwrap();
        let sent = kept.lock().unwrap().take().unwrap();
        (scenario, sent)
    }

    #[test]
    fn a_twin_sends_what_a_stream_sent_and_nothing_where_that_is_not_known_to_the_end() {
        let (scenario, sent) = sent(1_000);
        let again = sent.again(&scenario).unwrap();
        assert_eq!((again.roles.is_empty(), again.traffic.len()), (true, 2));
        let twin = again.run(1).unwrap().network;
        let [there, back] = &twin.flows[..] else { panic!("{twin:?}") };
        assert_eq!((there.flow.as_str(), back.flow.as_str()), ("stream0", "(stream0, back)"));
        let was = scenario.run(1).unwrap().network;
        for (is, was) in twin.links.iter().zip(&was.links) {
            assert_eq!(
                (is.packets, is.busy_share, is.queue_max_bytes),
                (was.packets, was.busy_share, was.queue_max_bytes)
            );
        }
        assert!((120..160).contains(&there.sent) && back.sent >= 15, "{twin:?}");
        assert!(self::sent(100).1.again(&scenario).is_none());
    }
}
