//! The possible: a sender that knows the path as it was one feedback delay ago. It sends its fair share of the rate that the limiting
//! link left then, less the rate that drains the queue in a second. Its run is a twin of a controller's: same path, same seed, same source.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use lastmile::control::{Feedback, Output, RateController, Sent, Setting, Signal};
use lastmile::endpoint::stream::{FeedbackInterval, SenderRate};
use lastmile::telemetry::Visitor;
use lastmile::time::{Span, Time};
use lastmile::units::Rate;
use lastmile_sim::roles::Makers;
use lastmile_sim::scenario::Scenario;

use super::path::{ByTime, Limit, Paths, at};

/// It looks so often.
const EVERY: Span = Span::from_millis(10);
/// Time in which the queue is to drain.
const DRAIN_S: f64 = 1.0;
/// The queue is the least delay of packets that arrived within so long: packets of one frame wait for each other.
const LATELY: Span = Span::from_millis(100);
/// It never stops.
const LEAST: f64 = 0.05;
/// Delays are kept for so long.
const KEPT: Span = Span::from_secs(5);

/// Times of arrival, and queueing delays in seconds.
type Arrivals = VecDeque<(Time, f64)>;

/// Queueing delays of packets that arrived, in seconds, by the limits of their streams: told by the engine.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues(Arc<Mutex<BTreeMap<Limit, Arrivals>>>);

impl Queues {
    /// A packet arrived.
    pub(super) fn note(&self, limit: Limit, now: Time, queueing_s: f64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.entry(limit).or_default();
        own.push_back((now, queueing_s));
        while own.front().is_some_and(|(at, _)| *at + KEPT < now) {
            own.pop_front();
        }
    }

    /// The least delay of packets that arrived in the time before; zero if none did.
    fn at(&self, limit: Limit, when: Time) -> f64 {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.get(&limit).into_iter().flatten().rev().skip_while(|(at, _)| *at > when);
        let lately = own.take_while(|(at, _)| *at + LATELY >= when);
        let least = lately.fold(f64::INFINITY, |least, (_, delay)| least.min(*delay));
        if least.is_finite() { least } else { 0.0 }
    }
}

/// A stream as its oracle knows it.
#[derive(Clone, Debug)]
struct Known {
    limit: Limit,
    /// All limits on its way.
    limits: Vec<Limit>,
    from_s: f64,
    to_s: f64,
    most: f64,
    /// Propagation there and back, and back alone with the time between feedback messages, in seconds.
    round: ByTime,
    back: ByTime,
}

/// All that oracles know.
#[derive(Debug)]
struct World {
    flows: Vec<Known>,
    /// Rate that each limit leaves, bit/s by time.
    left: BTreeMap<Limit, ByTime>,
    queues: Queues,
}

impl World {
    /// The rate of a stream at that time, in bit/s.
    fn rate(&self, flow: usize, now: Time) -> f64 {
        let own = &self.flows[flow];
        let now_s = (now - Time::ZERO).as_secs_f64();
        let known = |delay: &ByTime| now_s - at(delay, now_s).unwrap_or(0.0);
        let then_s = known(&own.round).max(0.0);
        let seen = Time::ZERO + Span::from_secs_f64(known(&own.back).max(0.0));
        let queue_s = self.queues.at(own.limit, seen);
        let drain = (1.0 - queue_s / DRAIN_S).max(LEAST);
        let left = self.left.iter().map(|(&limit, left)| {
            let left = at(left, then_s).unwrap_or(0.0);
            (limit, if own.limits.contains(&limit) { left * drain } else { left })
        });
        let active = |one: &Known| one.from_s <= then_s && then_s < one.to_s;
        let beside = self.flows.iter().enumerate().filter(|(other, one)| *other != flow && active(one));
        share(left.collect(), &own.limits, beside.map(|(_, one)| (one.most, &one.limits[..])).collect())
    }
}

/// The fair share of one that can use any rate and crosses the limits `own`, beside others that can use so much and cross theirs: max-min
/// fairness. The flow whose share is least is served first. It leaves the rest to those that can have more.
fn share(mut left: BTreeMap<Limit, f64>, own: &[Limit], mut others: Vec<(f64, &[Limit])>) -> f64 {
    loop {
        let heads = |limit: &Limit| {
            usize::from(own.contains(limit)) + others.iter().filter(|other| other.1.contains(limit)).count()
        };
        let each = |limit: &Limit| left.get(limit).copied().unwrap_or(0.0) / heads(limit) as f64;
        let equal = |limits: &[Limit]| limits.iter().map(each).fold(f64::INFINITY, f64::min);
        let mine = equal(own);
        let shares = others.iter().map(|(most, limits)| most.min(equal(limits))).enumerate();
        let Some((least, rate)) = shares.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, rate)| *rate < mine)
        else {
            return mine;
        };
        for limit in others.swap_remove(least).1 {
            left.entry(*limit).and_modify(|left| *left = (*left - rate).max(0.0));
        }
    }
}

/// The oracle of one stream.
#[derive(Clone, Debug)]
struct Oracle {
    world: Arc<World>,
    flow: usize,
    limits: Setting,
    rate: Rate,
    next: Time,
}

impl RateController for Oracle {
    fn on_sent(&mut self, _: Time, _: &Sent) {}
    fn on_feedback(&mut self, _: Time, _: &mut Feedback<'_>) {}
    fn on_signal(&mut self, now: Time, _: Signal) {
        self.on_timeout(now);
    }
    fn poll_timeout(&self) -> Option<Time> {
        Some(self.next)
    }
    fn on_timeout(&mut self, now: Time) {
        self.next = now + EVERY;
        let Setting { min, max, .. } = self.limits;
        let bps = self.world.rate(self.flow, now);
        self.rate = Rate::ip((bps as u64).clamp(min.bits_per_second(), max.bits_per_second()));
    }
    fn output(&self) -> Output {
        Output::rate(self.rate)
    }
    fn telemetry(&self, _: &mut dyn Visitor) {}
    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}

/// True if the possible rate is known: every tested stream's limit is, no flow that answers shares it, hosts' clocks are the engine's, and no
/// controller is for several streams, whose priorities an oracle does not know.
pub(super) fn is_possible(scenario: &Scenario, paths: &Paths) -> bool {
    let shared = |limit| paths.tcp.iter().chain(&paths.others).any(|other| other.limit == limit);
    let clocks =
        scenario.hosts.iter().all(|host| host.clock.offset == Span::ZERO && host.clock.steps.is_empty());
    let mut tested = paths.tested.iter();
    let mut streams = scenario.roles.stream.iter();
    clocks
        && streams.all(|stream| stream.group.is_none())
        && tested.all(|flow| flow.limit != Limit::Unknown && !flow.limits.iter().copied().any(shared))
}

/// Makers that give every tested stream its oracle, and where its queues are to be told.
pub(super) fn oracles(scenario: &Scenario, paths: &Paths) -> (Makers, Queues) {
    let queues = Queues::default();
    let known = |flow: &super::path::Flow| {
        let spec = scenario.roles.stream.iter().find(|spec| spec.name == flow.name)?;
        let (there, back) = (&flow.propagation, paths.back(scenario, spec));
        let round = |at_s: f64| at(there, at_s).unwrap_or(0.0) + at(&back, at_s).unwrap_or(0.0);
        let times = there.iter().chain(&back).map(|&(at_s, _)| at_s);
        let mut round: ByTime = times.map(|at_s| (at_s, round(at_s))).collect();
        round.sort_by(|a, b| a.0.total_cmp(&b.0));
        let first = round.first().map_or(0.0, |round| round.1);
        let every = match spec.receiver.feedback {
            FeedbackInterval::Every(every) => every.as_secs_f64(),
            FeedbackInterval::RoundTrip => first,
        };
        let later = |list: &ByTime| list.iter().map(|&(at_s, delay)| (at_s, delay + every)).collect();
        let (round, back) = (later(&round), later(&back));
        let (limit, from_s, to_s, most) = (flow.limit, flow.from_s, flow.to_s, flow.most);
        Some(Known { limit, limits: flow.limits.clone(), from_s, to_s, most, round, back })
    };
    let (names, flows): (Vec<String>, Vec<Known>) =
        paths.tested.iter().filter_map(|flow| Some((flow.name.clone(), known(flow)?))).unzip();
    let world = Arc::new(World { flows, left: paths.by_time.clone(), queues: queues.clone() });
    let make = Makers::default().controlling(move |spec| {
        let flow = names.iter().position(|name| *name == spec.name)?;
        let SenderRate::Controlled(config) = &spec.sender.rate else { return None };
        let limits = config.setting(spec.sender.packet_size);
        let world = Arc::clone(&world);
        let mut oracle = Oracle { world, flow, limits, rate: limits.min, next: Time::ZERO };
        oracle.on_timeout(Time::ZERO + Span::from_secs_f64(oracle.world.flows[flow].from_s));
        Some(Box::new(oracle))
    });
    (make, queues)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 6 Mbit/s among four: 1.5 each. One can use 0.9 alone: the others share 5.1.
    #[test]
    fn a_share_is_what_others_leave_over() {
        let (many, one) = (f64::INFINITY, [Limit::Link(0)]);
        let among = |others: &[f64]| {
            share([(one[0], 6.0)].into(), &one, others.iter().map(|most| (*most, &one[..])).collect())
        };
        assert_eq!((among(&[]), among(&[many; 3]), among(&[1.0, 1.0])), (6.0, 1.5, 4.0));
        assert!((among(&[many, 0.9, many]) - 1.7).abs() < 1e-12);
    }

    /// 2 and 1.5 Mbit/s in a row, and one more flow at each: the first has 0.75, so that the one at the wide limit has 1.25.
    #[test]
    fn a_share_of_two_limits_is_that_of_the_narrower() {
        let (wide, narrow, both) = ([Limit::Link(0)], [Limit::Link(1)], [Limit::Link(0), Limit::Link(1)]);
        let (many, left) = (f64::INFINITY, BTreeMap::from([(wide[0], 2.0), (narrow[0], 1.5)]));
        assert_eq!(share(left.clone(), &both, vec![(many, &wide), (many, &narrow)]), 0.75);
        assert_eq!(share(left.clone(), &wide, vec![(many, &both), (many, &narrow)]), 1.25);
        assert_eq!(share(left, &narrow, vec![(many, &wide), (many, &both)]), 0.75);
    }

    /// 2 Mbit/s until 10 s, then 1: 150 ms later the oracle knows. Of a queue of 200 ms a fifth of the rate is for the drain.
    #[test]
    fn the_oracle_knows_what_was_one_feedback_delay_ago() {
        let limit = Limit::Link(0);
        let flow = Known {
            limit,
            limits: vec![limit],
            from_s: 0.0,
            to_s: 100.0,
            most: f64::INFINITY,
            round: vec![(0.0, 0.150)],
            back: vec![(0.0, 0.100)],
        };
        let left = BTreeMap::from([(limit, vec![(0.0, 2e6), (10.0, 1e6)])]);
        let world = World { flows: vec![flow], left, queues: Queues::default() };
        let at = |ms: i64| Time::ZERO + Span::from_millis(ms);
        assert_eq!([10_000, 10_149, 10_151].map(|ms| world.rate(0, at(ms))), [2e6, 2e6, 1e6]);
        // The packets that arrived between 10.4 and 10.5 s are known at 10.6 s.
        world.queues.note(limit, at(10_420), 0.3);
        world.queues.note(limit, at(10_450), 0.2);
        world.queues.note(limit, at(10_550), 0.0);
        assert_eq!(world.rate(0, at(10_600)), 0.8e6);
        assert_eq!((world.rate(0, at(10_500)), world.rate(0, at(10_800))), (1e6, 1e6));
    }
}
