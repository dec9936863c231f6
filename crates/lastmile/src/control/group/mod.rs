//! Several streams of one path under one controller: coupled congestion control (RFC 8699, where a flow state exchange divides the sum of the
//! rates by priority). Here one controller sees the packets of all streams, and each has a share of its target.
//!
//! A stream's share is by its priority, within the rates that its source can use ([`Signal::Demand`]): what one cannot use is for the others, and
//! where there is too little, the least rates are met from the highest priority on, as of audio before video.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::divide::{Claim, MOST, divide};
use self::merge::Merge;
use super::{Action, Decision, Fate, Feedback, Output, RateController, Report, Sent, Signal};
use crate::classify::Verdicts;
use crate::telemetry::Visitor;
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

mod divide;
mod merge;

/// A stream that has sent nothing for so long has no share until it goes on.
const SILENT: Span = Span::from_secs(1);
/// Packets whose numbers are kept for their reports, of each stream.
const KEPT: usize = 16_384;
/// A packet's fate is waited for over so many of its stream's times between feedback, and no longer than that.
const PATIENCE: i64 = 2;
const LONGEST: Span = Span::from_secs(1);
/// The same signal about the path from another stream within so long is of one event.
const TOLD: Span = Span::from_secs(1);
/// Requests that wait for a stream's host.
const WAITING: usize = 16;

/// A controller that several streams share: those from one host to another, at one host.
///
/// ```
/// use lastmile::{control::{RateController, Setting, Signal, StreamGroup, build}, time::Time, units::Rate};
/// let setting = Setting { start: Some(Rate::ip(3_000_000)), ..Setting::default() };
/// let group = StreamGroup::new(build(&"fixed".parse()?, &setting)?);
/// let mut streams = [2.0, 1.0].map(|priority| group.stream(priority, Rate::ip(100)..=Rate::ip(10_000_000)).unwrap());
/// let any = Signal::Demand { min: Rate::ip(0), desired: Rate::ip(9_000_000), max: Rate::ip(9_000_000) };
/// streams.iter_mut().for_each(|stream| stream.on_signal(Time::ZERO, any));
/// let targets = streams.map(|stream| stream.output().target);
/// assert_eq!(targets, [Rate::ip(2_000_000), Rate::ip(1_000_000)]);
/// # Ok::<(), lastmile::options::ChoiceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StreamGroup(Arc<Mutex<Group>>);

#[derive(Clone, Debug)]
struct Group {
    controller: Box<dyn RateController>,
    streams: Vec<Stream>,
    /// Packets of all streams, and fates that wait for those of packets that left before.
    merge: Merge,
    now: Time,
    /// Signals about the path of the last second, the stream that gave each, and when.
    told: VecDeque<(Signal, usize, Time)>,
}

/// The group's knowledge of a stream.
#[derive(Clone, Debug)]
struct Stream {
    /// By its priority, and by what its source can use within its limits.
    claim: Claim,
    limits: (Rate, Rate),
    /// The most that its receiver wants.
    wanted: Option<Rate>,
    /// When it last sent, began or went on; `None` before it began.
    active: Option<Time>,
    idle: bool,
    app_limited: bool,
    in_flight: Bytes,
    backlog: Bytes,
    /// When feedback on it came last, and the time from the one before to that.
    heard: Option<Time>,
    every: Span,
    /// The last that its source said of rates.
    demand: Option<[Rate; 3]>,
    actions: VecDeque<Action>,
}

impl StreamGroup {
    /// Streams of a group at most.
    pub const MOST: usize = MOST;

    /// A group without streams, whose controller has room for the limits of all of them.
    pub fn new(controller: Box<dyn RateController>) -> StreamGroup {
        let group = Group {
            controller,
            streams: Vec::new(),
            merge: Merge::default(),
            now: Time::ZERO,
            told: VecDeque::new(),
        };
        StreamGroup(Arc::new(Mutex::new(group)))
    }

    /// The controller of one more stream, with its limits. Nothing if the priority is not finite and above zero, or the group has [`MOST`](Self::MOST) streams.
    pub fn stream(
        &self,
        priority: f64,
        limits: core::ops::RangeInclusive<Rate>,
    ) -> Option<Box<dyn RateController>> {
        let mut group = lock(&self.0);
        let place = group.streams.len();
        if place >= MOST || !priority.is_finite() || priority <= 0.0 {
            return None;
        }
        let limits = limits.into_inner();
        group.streams.push(Stream {
            claim: Claim { weight: priority, min: bits(limits.0), max: bits(limits.1) },
            limits,
            wanted: None,
            active: None,
            idle: false,
            app_limited: false,
            in_flight: Bytes::ZERO,
            backlog: Bytes::ZERO,
            heard: None,
            every: Span::ZERO,
            demand: None,
            actions: VecDeque::with_capacity(WAITING),
        });
        Some(Box::new(Share { group: Arc::clone(&self.0), place, numbers: VecDeque::new() }))
    }
}

fn lock(group: &Mutex<Group>) -> MutexGuard<'_, Group> {
    group.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bits(rate: Rate) -> f64 {
    rate.bits_per_second() as f64
}

impl Stream {
    fn is_active(&self, now: Time) -> bool {
        !self.idle && self.active.is_some_and(|at| now - at <= SILENT)
    }

    /// The most that it may send: by its limits, and by its receiver's word.
    fn most(&self) -> Rate {
        self.wanted.filter(|wanted| *wanted < self.limits.1).unwrap_or(self.limits.1)
    }

    /// Fits its claim to what its source and its receiver said.
    fn fit(&mut self) {
        let (least, most) = (bits(self.limits.0), bits(self.most()).max(bits(self.limits.0)));
        let [min, _, max] = self.demand.unwrap_or([self.limits.0, self.limits.1, self.limits.1]);
        self.claim.min = bits(min).clamp(least, most);
        self.claim.max = bits(max).clamp(self.claim.min, most);
    }
}

impl Group {
    fn active(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().filter(|stream| stream.is_active(self.now))
    }

    /// The share of a stream in the rate: of one that rests, what it would have.
    fn share(&self, place: usize, rate: Rate) -> f64 {
        let mut claims = [Claim { weight: 1.0, min: 0.0, max: 0.0 }; MOST];
        let (mut count, mut own) = (0, 0);
        for (at, stream) in self.streams.iter().enumerate() {
            if at == place || stream.is_active(self.now) {
                own = if at == place { count } else { own };
                claims[count] = stream.claim;
                count += 1;
            }
        }
        divide(bits(rate), &claims[..count])[own]
    }

    /// True if every stream that sends has all that it can use, or nothing more to send.
    fn is_app_limited(&self) -> bool {
        let target = self.controller.output().target;
        let mut streams = self.streams.iter().enumerate().filter(|(_, stream)| stream.is_active(self.now));
        streams.all(|(at, stream)| stream.app_limited || self.share(at, target) >= stream.claim.max)
    }

    /// The stream with the largest share.
    fn largest(&self) -> Option<usize> {
        let target = self.controller.output().target;
        let active = (0..self.streams.len()).filter(|&at| self.streams[at].is_active(self.now));
        active.max_by(|&a, &b| self.share(a, target).total_cmp(&self.share(b, target)).then(b.cmp(&a)))
    }

    /// Tells the controller the rates that the sources of all streams that send can use.
    fn demand(&mut self) {
        let demands = self.active().filter_map(|stream| stream.demand);
        let add = |a: Rate, b: Rate| Rate::ip(a.bits_per_second().saturating_add(b.bits_per_second()));
        let sums = demands.reduce(|[a, b, c], [d, e, f]| [add(a, d), add(b, e), add(c, f)]);
        if let Some([min, desired, max]) = sums {
            self.controller.on_signal(self.now, Signal::Demand { min, desired, max });
        }
    }

    fn on_signal(&mut self, place: usize, signal: Signal) {
        let (now, rests) = (self.now, self.active().next().is_none());
        let stream = &mut self.streams[place];
        match signal {
            Signal::Demand { min, desired, max } => {
                stream.demand = Some([min, desired, max]);
                stream.active = Some(now);
                stream.fit();
                self.demand();
            }
            Signal::Idle => {
                stream.idle = true;
                if self.active().next().is_none() {
                    self.controller.on_signal(now, signal);
                } else {
                    self.demand();
                }
            }
            Signal::Resume => {
                (stream.idle, stream.active) = (false, Some(now));
                if rests {
                    self.controller.on_signal(now, signal);
                }
                self.demand();
            }
            Signal::Backlog { bytes } => {
                stream.backlog = bytes;
                let bytes = self.streams.iter().fold(Bytes::ZERO, |sum, stream| sum + stream.backlog);
                self.controller.on_signal(now, Signal::Backlog { bytes });
            }
            // A receiver's limit is of its stream.
            Signal::Remb { rate } => {
                stream.wanted = Some(rate);
                stream.fit();
            }
            // Of the path: each stream tells of it.
            Signal::PersistentCongestion | Signal::Excess { .. } | Signal::Route { .. } => {
                // Each has a share of losses of its own.
                let event = match signal {
                    Signal::Excess { trips, .. } => Signal::Excess { loss: 0.0, trips },
                    other => other,
                };
                self.told.retain(|(.., at)| now < *at + TOLD);
                if !self.told.iter().any(|(told, by, _)| *told == event && *by != place) {
                    if self.told.len() == WAITING {
                        self.told.pop_front();
                    }
                    self.told.push_back((event, place, now));
                    self.controller.on_signal(now, signal);
                }
            }
            _ => self.controller.on_signal(now, signal),
        }
    }

    /// Tells the controller of fates, as of one stream, at the time of that feedback.
    fn tell(&mut self, feedback: &Feedback<'_>) {
        let (now, streams) = (self.now, &self.streams);
        let longest = streams.iter().filter(|stream| stream.is_active(now)).map(|stream| stream.every).max();
        let longest = (longest.unwrap_or(Span::ZERO) * PATIENCE).min(LONGEST);
        let waits = |stream: usize| streams[stream].is_active(now) && streams[stream].heard.is_some();
        let (reports, arrival_order) = self.merge.tell(now, longest, waits);
        if reports.is_empty() {
            return;
        }
        let arrived = |report: &Report| match report.fate {
            Fate::Arrived { at, .. } => at,
            _ => None,
        };
        let newest = reports.iter().filter_map(arrived).max();
        let hold = newest.and_then(|newest| Some(feedback.remote_sent? - newest)).unwrap_or(feedback.hold);
        let Feedback { resolution, remote_sent, source, .. } = *feedback;
        let mut all = Feedback {
            reports,
            arrival_order,
            resolution,
            remote_sent,
            hold,
            source,
            // Of one stream alone.
            receiver: None,
            truth: None,
        };
        self.controller.on_feedback(now, &mut all);
    }

    /// The next request to a stream's host. A train is for the stream with the largest share, and everything else for all.
    fn poll_action(&mut self, place: usize) -> Option<Action> {
        while let Some(action) = self.controller.poll_action() {
            let only = matches!(action, Action::Probe { .. }).then(|| self.largest().unwrap_or(place));
            for (at, stream) in self.streams.iter_mut().enumerate() {
                if only.is_none_or(|only| only == at) && stream.actions.len() < WAITING {
                    stream.actions.push_back(action);
                }
            }
        }
        self.streams[place].actions.pop_front()
    }
}

/// One stream's controller: its share of the group's.
#[derive(Debug)]
struct Share {
    group: Arc<Mutex<Group>>,
    place: usize,
    /// The host's numbers of packets, and the group's.
    numbers: VecDeque<(u64, u64)>,
}

impl Share {
    fn at(&self, now: Time) -> MutexGuard<'_, Group> {
        let mut group = lock(&self.group);
        group.now = group.now.max(now);
        group
    }
}

/// The group's number of a packet of that stream by the number at its host: the next one, of a new packet. Nothing of one that is older and was
/// not told of.
fn number(numbers: &mut VecDeque<(u64, u64)>, stream: usize, sent: Sent, merge: &mut Merge) -> Option<u64> {
    match numbers.binary_search_by_key(&sent.id, |pair| pair.0) {
        Ok(at) => Some(numbers[at].1),
        Err(at) if at < numbers.len() => None,
        Err(_) => {
            if numbers.len() == KEPT {
                numbers.pop_front();
            }
            let id = merge.left(stream, sent);
            numbers.push_back((sent.id, id));
            Some(id)
        }
    }
}

impl RateController for Share {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        let mut group = lock(&self.group);
        group.now = group.now.max(now);
        let stream = &mut group.streams[self.place];
        (stream.in_flight, stream.app_limited, stream.active) = (sent.in_flight, sent.app_limited, Some(now));
        let in_flight = group.streams.iter().fold(Bytes::ZERO, |sum, stream| sum + stream.in_flight);
        let app_limited = group.is_app_limited();
        let stream = 2 * self.place as u32 + sent.stream;
        let told = Sent { stream, in_flight, app_limited, ..*sent };
        if let Some(id) = number(&mut self.numbers, self.place, told, &mut group.merge) {
            group.controller.on_sent(now, &Sent { id, ..told });
        }
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        let mut group = lock(&self.group);
        group.now = group.now.max(now);
        let own = &mut group.streams[self.place];
        own.every = own.heard.map_or(Span::ZERO, |heard| now - heard);
        own.heard = Some(now);
        for &report in feedback.reports.iter() {
            if let Some(id) = number(&mut self.numbers, self.place, report.sent, &mut group.merge) {
                group.merge.came(now, Report { sent: Sent { id, ..report.sent }, ..report });
            }
        }
        group.tell(feedback);
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        self.at(now).on_signal(self.place, signal);
    }

    fn poll_timeout(&self) -> Option<Time> {
        lock(&self.group).controller.poll_timeout()
    }

    fn on_timeout(&mut self, now: Time) {
        let mut group = self.at(now);
        // Another stream may have seen to it.
        if group.controller.poll_timeout().is_some_and(|at| at <= now) {
            group.controller.on_timeout(now);
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        lock(&self.group).poll_action(self.place)
    }

    /// The first stream that sends tells them.
    fn poll_decision(&mut self) -> Option<Decision> {
        let mut group = lock(&self.group);
        let teller = group.streams.iter().position(|stream| stream.is_active(group.now)).unwrap_or(0);
        if teller == self.place { group.controller.poll_decision() } else { None }
    }

    fn verdicts(&self) -> Option<Verdicts> {
        lock(&self.group).controller.verdicts().filter(|_| self.place == 0)
    }

    fn output(&self) -> Output {
        let group = lock(&self.group);
        let whole = group.controller.output();
        let part = group.share(self.place, whole.target) / bits(whole.target).max(1.0);
        let (least, most) = (group.streams[self.place].limits.0, group.streams[self.place].most());
        // Where the pacer is held back, streams of a high priority have their rates first there too.
        let pacing = if whole.pacing < whole.target {
            Rate::ip(group.share(self.place, whole.pacing) as u64)
        } else {
            whole.pacing.scaled(part)
        };
        let target = whole.target.scaled(part);
        let target = if target > most { most } else { target };
        let at_least = |rate: Rate| if rate < least { least } else { rate };
        Output {
            target: at_least(target),
            pacing: at_least(pacing),
            window: whole.window.map(|window| Bytes((window.0 as f64 * part) as u64)),
            padding: whole.padding.scaled(part),
            ..whole
        }
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        let group = lock(&self.group);
        let target = group.controller.output().target;
        visitor.number("share", "", group.share(self.place, target) / bits(target).max(1.0));
        group.controller.telemetry(visitor);
    }

    /// A stream of a group of its own, in which the other streams send no more.
    fn clone_box(&self) -> Box<dyn RateController> {
        let group = Arc::new(Mutex::new(lock(&self.group).clone()));
        Box::new(Share { group, place: self.place, numbers: self.numbers.clone() })
    }
}

#[cfg(test)]
mod tests;
