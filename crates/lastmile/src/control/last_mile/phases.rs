//! The state machine: start, track, drain, dip, silence, and the company of others ([`super::beside`]).

use super::{Lastmile, Seen};
use crate::control::Decision;

/// Gains on the distance from the delay to keep, and on the queue's change.
const GAIN: f64 = 0.25;
const DERIVATIVE_GAIN: f64 = 0.75;
/// Bounds on the logarithm of a change of the rate.
const CHANGE: (f64, f64) = (-0.15, 0.08);
/// A queue drains that is longer than so many times the delay to keep and so many seconds, or will be at the next feedback by a rise of so many.
const TOO_LONG: (f64, f64) = (2.0, 0.012);
const RISES_S: f64 = 0.01;
/// A queue of at most that part of the delay to keep and so many seconds is empty.
const EMPTY: (f64, f64) = (0.35, 0.001);
/// Upwards the gain goes by a control time of at most so long, in seconds.
const PULL_S: f64 = 0.12;
/// More than so many times what arrives was an overshoot, where marks come.
const OVERSHOT: f64 = 1.15;
/// Packets in a round trip by which the rate grows in a control time, while marks of L4S steer it.
const STEP: f64 = 0.5;
/// That part from the rate of the last marks it is twice as large.
const FAR: f64 = 0.05;
/// Growth beyond the law in a control time with an empty queue, and the most of it.
const RAMP: f64 = 0.15;
const MOST_GROWTH: f64 = 0.5;
/// The rate is at most so many times the receive rate: of the fast one at the start, and of the slow one later.
const START_MOST: f64 = 1.75;
const MOST: f64 = 1.5;
/// Above a rate at which packets were lost it grows by the square of the time since, by a half in so many seconds; then that is forgotten.
const CEILING_S: f64 = 20.0;
/// No more doubling with so many losses.
const START_LOSS: f64 = 0.2;
/// A queue drains in so many seconds; bounds on the part that is cut. BBR drains by less than the bottleneck's rate too (Cardwell and others,
/// ACM Queue 14(5), 2016).
const DRAIN_S: f64 = 0.3;
const DRAIN: (f64, f64) = (0.08, 0.6);
/// Where arrivals are less than that part of the rate that the path was thought to carry, it is lowered by that part at most, at once.
const FAR_LESS: f64 = 0.5;
/// So many times the delay to keep is a drained queue: what was cut arrives a round trip later, and drains the rest.
const DRAINED: f64 = 1.8;
/// Part of the rate that is taken up after a queue that was this flow's.
const AFTER_DRAIN: f64 = 0.98;
/// Pacing in a dip over target, and its least length in seconds; BBR's probes of the round trip are such dips.
const DIP: f64 = 0.6;
const DIP_S: f64 = 0.2;

/// The present behaviour of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Phase {
    /// Doubles until a queue stands.
    Start,
    /// Feedback is overdue; the rate before.
    Silent { before: f64 },
    /// Goes on after that: what arrives had waited for the end of the silence, and shows neither a queue nor a rate.
    Resume { until: f64 },
    /// Keeps a queue of the delay to keep.
    Track,
    /// Sends less than arrives, until the queue is short.
    Drain(Drain),
    /// Paces less for a moment, so that all flows see the base delay.
    Dip { until: f64 },
    /// Competes with flows that fill the queue.
    Beside,
    /// Halves the rate for a while: are there such flows?
    Withdraw(Withdrawal),
}

/// A queue that drains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drain {
    since: f64,
    /// The rate that the path is thought to carry, bytes a second, and the part of it that is not sent.
    anchor: f64,
    cut: f64,
}

/// A test that halves the rate, to see if the queue is others'.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Withdrawal {
    pub(super) since: f64,
    /// Bytes a second: not far beyond what arrived before it.
    pub(super) most: f64,
    /// The queue, in seconds, below which nobody else is there.
    pub(super) gone: f64,
    /// Nothing but a long delay to keep was the reason.
    pub(super) is_look: bool,
}

#[cfg(test)]
impl Drain {
    /// Of a path that is thought to carry so much.
    pub(super) fn of(since: f64, anchor: f64) -> Drain {
        Drain { since, anchor, cut: DRAIN.1 }
    }
}

impl Phase {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Phase::Start => "start",
            Phase::Silent { .. } => "silent",
            Phase::Resume { .. } => "resume",
            Phase::Track => "track",
            Phase::Drain(_) => "drain",
            Phase::Dip { .. } => "dip",
            Phase::Beside => "beside",
            Phase::Withdraw(_) => "withdraw",
        }
    }

    pub(super) fn dip(seen: &Seen) -> Phase {
        Phase::Dip { until: seen.now + seen.control_time.max(DIP_S) }
    }

    /// The rate of late, where it is `rate` now: a drain cuts it by more than a half.
    pub(super) fn rate_before(&self, rate: f64) -> f64 {
        match self {
            Phase::Drain(drain) => drain.anchor.max(rate),
            _ => rate,
        }
    }

    /// Pacing over target, where it is `usual` otherwise.
    pub(super) fn pacing(&self, usual: f64) -> f64 {
        match self {
            Phase::Dip { .. } => DIP,
            // A backlog that goes on at a higher rate would fill the queue that is to drain.
            Phase::Drain(_) => 1.0,
            _ => usual,
        }
    }
}

fn too_long(seen: &Seen) -> f64 {
    TOO_LONG.0 * seen.target + TOO_LONG.1
}

impl Lastmile {
    /// Feedback told of arrivals.
    pub(super) fn update(&mut self) {
        let silent_s = self.now() - self.seen.now;
        let seen = self.look();
        self.scale = (self.scale + super::SCALE_RECOVERY * seen.dt).min(1.0);
        self.losses.age(seen.dt);
        // A receiver may have lowered the most: no higher rate was shown to pass.
        self.set(self.rate);
        self.pad(&seen);
        let marks = self.marks.reduction(seen.now, seen.control_time, seen.law_queue);
        // A source that fills the rate shows by its arrivals what the path carries, unless the pacer is or was held back.
        let was_held = matches!(self.phase, Phase::Dip { .. })
            || self.losses.tested_at() + seen.control_time + super::FAST.0 > seen.now;
        let overshot = !self.is_limited() && !was_held && self.rate > OVERSHOT * seen.fast;
        if marks.is_some() {
            // More arrives than the rate where an overshoot's queue drains.
            self.marked_at = if overshot { seen.fast } else { self.rate.max(seen.fast) };
        }
        if self.joins(&seen) {
            return;
        }
        if let Some(part) = marks.filter(|_| self.is_steered()) {
            self.end_start();
            if seen.queue > too_long(&seen) {
                return self.begin_drain(&seen, seen.fast.min(self.rate));
            }
            self.set(if overshot { AFTER_DRAIN * seen.fast } else { part * self.rate });
            self.settle(seen.now);
            return;
        }
        match self.phase {
            Phase::Start => self.start(&seen),
            Phase::Silent { before } => self.resume(&seen, silent_s, before),
            Phase::Resume { until } if seen.now < until => {}
            Phase::Resume { .. } => self.phase = Phase::Start,
            Phase::Track if self.losses.test_rate(self.flow.now()).is_some() => self.settle(seen.now),
            Phase::Track => self.keep(&seen),
            Phase::Drain(drain) => self.drain(&seen, drain),
            Phase::Dip { until } => self.dip(&seen, until),
            Phase::Beside => self.compete(&seen),
            Phase::Withdraw(withdrawal) => self.withdraw(&seen, withdrawal),
        }
    }

    /// The rate to come back to after a silence. In the company of others the window tells it.
    pub(super) fn before_silence(&self) -> Option<f64> {
        match &self.phase {
            Phase::Withdraw(look) if look.is_look => Some(self.rate_before(look)),
            Phase::Silent { .. } | Phase::Beside | Phase::Withdraw(_) => None,
            _ => Some(self.rate),
        }
    }

    /// Feedback comes after a silence.
    fn resume(&mut self, seen: &Seen, silent_s: f64, before: f64) {
        if silent_s > super::SILENCE_S {
            self.set(self.rate.max(before.min(self.first_rate())));
        }
        self.phase = Phase::Resume { until: seen.now + seen.base_time };
    }

    /// Marks steer the rate: a queue that drains and others' company have laws of their own.
    fn is_steered(&self) -> bool {
        matches!(self.phase, Phase::Start | Phase::Track | Phase::Dip { .. })
    }

    pub(super) fn end_start(&mut self) {
        if self.phase == Phase::Start {
            self.phase = Phase::Track;
            self.flow.decide(Decision::SlowStartEnded { rate: self.flow.rate(self.rate) });
        }
    }

    fn start(&mut self, seen: &Seen) {
        self.next_dip = seen.now + self.config.dip.as_secs_f64();
        if seen.law_queue + seen.law_rise.max(0.0) > seen.target.max(0.01) {
            if seen.queue > too_long(seen) {
                self.begin_drain(seen, seen.fast);
            } else {
                self.set((AFTER_DRAIN * seen.fast).min(self.rate).max(0.5 * self.rate));
            }
            let rate = self.flow.rate(self.rate);
            self.flow.decide(Decision::SlowStartEnded { rate });
            if self.phase == Phase::Start {
                self.phase = Phase::Track;
            }
        } else if self.losses.short_share() < START_LOSS && !self.marks.is_marked() {
            let doubled = self.rate * libm::exp2(seen.dt / seen.control_time);
            self.set(doubled.min((START_MOST * seen.fast).min(self.most(seen.now)).max(self.rate)));
        }
    }

    fn keep(&mut self, seen: &Seen) {
        let Seen { now, dt, queue, rise, law_queue, law_rise, target, base_time, .. } = *seen;
        let is_too_long = |queue: f64| queue > too_long(seen);
        if (is_too_long(queue) || rise > RISES_S && is_too_long(queue + rise))
            && now - self.last_cut > base_time
        {
            return self.begin_drain(seen, seen.fast.min(1.1 * self.rate));
        }
        let t = seen.control_time;
        if self.marks.steer(now) {
            // [RFC 8257, section 3.4]: a step in packets, not in a part of the rate, since others' losses are coupled to its marks (RFC 9332). Far from
            // the rate of the last marks it is larger, as in RFC 9438.
            let far = (self.rate / self.marked_at - 1.0) / FAR;
            let packets = STEP * (1.0 + far * far) * self.flow.packet_size() / self.min_rtt.max(1e-3);
            (self.growth, self.empty_since) = (0.0, f64::INFINITY);
            let most = (OVERSHOT * seen.slow).max(self.rate);
            return self.set((self.rate + packets * dt / t).min(most));
        }
        let most = self.most(now);
        if law_queue < EMPTY.0 * target + EMPTY.1 {
            let is_quiet = now - self.last_cut > 2.0 * t && now - self.scale_cut > 1.0;
            self.empty_since = self.empty_since.min(now);
            if self.is_at_most() {
                self.growth = 0.0;
            } else if now - self.empty_since > t && is_quiet && most.is_infinite() {
                self.growth = (self.growth + RAMP * dt / t).min(MOST_GROWTH);
            }
        } else {
            (self.growth, self.empty_since) = (0.0, f64::INFINITY);
        }
        let error = (target - law_queue).max(-2.0 * target);
        let pull = if error > 0.0 { base_time.min(PULL_S) } else { base_time };
        let change = GAIN * (error / base_time) * (dt / pull) - DERIVATIVE_GAIN * law_rise / base_time;
        let rate = self.rate * libm::exp(change.clamp(CHANGE.0, CHANGE.1) + self.growth * dt / t);
        // Sources that make less, and no padding in their place, are no evidence for more.
        let is_shown = !self.is_limited() || now < self.padding_until;
        let most = if is_shown { most } else { 0.0 };
        self.set(rate.min((MOST * seen.slow).min(most).max(self.rate)));
        if now > self.next_dip && self.growth == 0.0 && !self.is_at_most() {
            self.next_dip = now + self.config.dip.as_secs_f64();
            self.phase = Phase::dip(seen);
        }
    }

    /// True if the user's limit or the receiver's holds the rate.
    pub(super) fn is_at_most(&self) -> bool {
        self.rate >= self.flow.max_rate()
    }

    /// The most that losses which went with the rate leave to it.
    fn most(&self, now: f64) -> f64 {
        let age = self.ceiling.age(now) / CEILING_S;
        if age < 1.0 { self.ceiling.rate * (1.0 + 0.5 * age * age) } else { f64::INFINITY }
    }

    fn dip(&mut self, seen: &Seen, until: f64) {
        if seen.queue > too_long(seen) {
            self.begin_drain(seen, seen.fast);
        } else if seen.now > until {
            (self.phase, self.empty_since) = (Phase::Track, f64::INFINITY);
        }
    }

    fn cut(seen: &Seen) -> f64 {
        ((seen.queue - seen.target) / DRAIN_S).clamp(DRAIN.0, DRAIN.1)
    }

    fn begin_drain(&mut self, seen: &Seen, anchor: f64) {
        let drain = Drain { since: seen.now, anchor, cut: Lastmile::cut(seen) };
        self.phase = Phase::Drain(drain);
        self.set((anchor * (1.0 - drain.cut)).min(self.rate));
        self.settle(seen.now);
    }

    fn drain(&mut self, seen: &Seen, drain: Drain) {
        let Seen { now, dt, queue, rise, target, control_time, base_time, .. } = *seen;
        if queue <= DRAINED * target {
            self.phase = Phase::Track;
            self.set(AFTER_DRAIN * drain.anchor);
            return self.settle(now);
        }
        // Deeper where the queue grew since: it is several times as long once the first cut arrives.
        let cut = drain.cut.max(Lastmile::cut(seen));
        self.phase = Phase::Drain(Drain { cut, ..drain });
        self.set((drain.anchor * (1.0 - cut)).min(self.rate));
        // While a queue of this flow stands, arrivals show what the path carries, whatever is sent. Behind a queue of others they are what is
        // sent, and it is halved too, until they are found.
        let is_far_less = seen.fast < FAR_LESS * drain.anchor && queue > too_long(seen);
        let patience = if is_far_less { base_time.max(super::FAST.0) } else { 1.5 * control_time };
        if now - drain.since > patience && rise > -0.3 * cut * dt {
            // Less is carried than was thought.
            self.begin_drain(seen, drain.anchor.min(seen.fast.max(FAR_LESS * drain.anchor)));
        }
    }
}
