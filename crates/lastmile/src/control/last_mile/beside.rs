//! Beside flows that fill the queue, such as TCP: a window that grows and is cut as theirs, and the way into and out of that.
//!
//! Copa (NSDI 2018, section 2.2) and NADA (RFC 8698, section 4.2) have such modes. Ways in: a queue that stays in spite of drains, losses
//! right behind long delays that are not this flow's own, or a test of a queue that the delay to keep may hide. Ways out: a queue that is
//! empty for a while, or a test that halves the rate and finds that the queue follows.

use super::phases::Withdrawal;
use super::{Lastmile, Past, Phase, Seen};
use crate::time::{Span, Time};

/// A queue longer than so many times the delay to keep and so many seconds is over it.
const OVER: (f64, f64) = (1.25, 0.005);
/// Seconds for which a queue over the delay to keep stands until it is somebody else's, and the part of them that is enough
/// so many seconds after the last company.
const PATIENCE_S: f64 = 2.5;
const SHORT_PATIENCE: f64 = 0.4;
const LATELY_S: f64 = 30.0;
/// A queue between the delay to keep and that turns the clock back, so many times as fast as it runs.
const RUNS_BACK: f64 = 2.0;
/// A queue drains once it fell to that part of its peak.
const DRAINS: f64 = 0.85;
/// Seconds of queue that drain in a second, at least: a fall sets the clock forward by the time that it would take so. To begin anew at each would
/// leave the small falls of CUBIC's queue unfound.
const SLOWEST_DRAIN: f64 = 0.02;
/// Two such losses within so many seconds: behind delays of more than so long.
const LOSSES_WITHIN_S: f64 = 40.0;
const LONG_DELAY_S: f64 = 0.08;
/// One of them is enough if the standing queue falls to that part within so many seconds, and this flow did nothing for it.
const FALLS: f64 = 0.6;
const FALLS_WITHIN_S: f64 = 2.0;
/// The rate is taken where less than that part is left of the rate at which a queue began to stand, so many seconds ago at most.
const TAKEN: f64 = 0.4;
const TAKEN_S: f64 = 8.0;
/// The delay to keep has grown then, and may hide a queue: one of that part of it and of so many packets, which does not drain for so many
/// seconds, is tested.
const HIDDEN: f64 = 0.8;
const HIDDEN_PACKETS: f64 = 1.5;
const HIDES_S: f64 = 0.5;
/// A delay to keep of more than so many seconds may hide a queue at any time: a look into one goes before a dip, from so many seconds before it is due.
const MAY_HIDE_S: f64 = 0.012;
const LOOK_S: f64 = 5.0;
/// A test finds nobody if the queue falls to that part.
const GONE: f64 = 0.4;
/// A test of a hidden queue finds nobody if it falls to that part: a flow of this kind takes the room of the other half, and keeps two thirds of the
/// queue at three halves of its rate. A queue of TCP falls by half of this flow's own small part.
const HIDDEN_GONE: f64 = 0.8;
/// A queue of that part of the one that is gone is so whatever the delay to keep is.
const ALL_GONE: f64 = 0.25;
/// Part of the window that a loss leaves, and packets by which it grows in a round trip. TCP's friend would grow by 3 (1 - b) / (1 + b) = 1/3
/// (RFC 9438, section 4.3); pacing loses less of a full queue than TCP's bursts, but the test below gives way now and then.
const BETA: f64 = 0.8;
const ALPHA: f64 = 0.5;
/// A loss is of a full queue if that is longer than that part of the longest wait, or if so many are lost.
const FULL: f64 = 0.4;
const FULL_LOSS: f64 = 0.05;
/// Part of a rate of before a test that is taken up again.
const CLAIMED: f64 = 0.9;
/// On longer round trips it grows as at this one, in seconds.
const ALPHA_RTT_S: f64 = 0.2;
/// A fall of the queue so soon after a cut of the window is this flow's own.
const OWN_FALL: Span = Span::from_millis(1_500);
/// The rate is at most so many times what arrives.
const MOST: f64 = 1.3;
/// Seconds from a test to the next, doubled while the queue turns out to be others' soon after; and the soon. Copa's mode switch (section 2.2) looks
/// for others too.
const TEST_EVERY_S: (f64, f64) = (8.0, 60.0);
/// Behind a test that found others the next one waits for so many seconds at least.
const FOUND_S: f64 = 10.0;
/// A queue that fell to that part of its peak, with no cut of this flow's, is others who backed off, and needs no test.
const BACKED_OFF: f64 = 0.6;
const SOON_S: f64 = 20.0;

/// A queue above the delay to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Standing {
    /// Infinite if there is none.
    since: f64,
    peak: f64,
    /// The rate at its beginning.
    rate: f64,
}

/// The last loss of others.
#[derive(Clone, Copy, Debug)]
struct Foreign {
    /// Losses of packets sent before then belong to it.
    event: Time,
    /// In seconds; long ago if never.
    when: f64,
    /// Of them within 40 s.
    count: u32,
}

/// The longest queue that is not over that delay to keep, in seconds.
fn over(target: f64) -> f64 {
    OVER.0 * target + OVER.1
}

const NONE_STANDS: Standing = Standing { since: f64::INFINITY, peak: 0.0, rate: 0.0 };

/// Others' queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    /// Bytes.
    window: f64,
    next_test: f64,
    test_every: f64,
    over: Standing,
    foreign: Foreign,
    /// The queue of then, while it is open if it falls by itself; else 0.
    overflow: f64,
    /// The last cut of the window, or its beginning: losses of packets that were sent before are answered.
    answered: Time,
    peak: f64,
    was_last: f64,
    /// The rate when a test found nobody.
    left: Past,
    /// Arrivals when a queue began to stand.
    had: Past,
}

impl Default for Beside {
    fn default() -> Beside {
        Beside {
            window: 0.0,
            next_test: 0.0,
            test_every: TEST_EVERY_S.0,
            over: NONE_STANDS,
            foreign: Foreign { event: Time::ZERO, when: f64::NEG_INFINITY, count: 0 },
            overflow: 0.0,
            answered: Time::ZERO,
            peak: 0.0,
            was_last: f64::NEG_INFINITY,
            left: Past::NEVER,
            had: Past::NEVER,
        }
    }
}

impl Beside {
    /// A test found nobody at that rate.
    #[cfg(test)]
    pub(super) fn after_a_test(self, now: f64, rate: f64) -> Beside {
        Beside { left: Past { when: now, rate }, ..self }
    }

    /// The rate at which a test found nobody, after which a loss of it is company; 0 if none did.
    #[cfg(test)]
    pub(super) fn left(&self) -> f64 {
        self.left.rate
    }

    /// In whose withdrawal that window is at stake.
    #[cfg(test)]
    pub(super) fn with_window(self, window: f64) -> Beside {
        Beside { window, ..self }
    }

    /// A queue began to stand while so many bytes a second arrived.
    #[cfg(test)]
    pub(super) fn that_had(self, now: f64, rate: f64) -> Beside {
        Beside { had: Past { when: now, rate }, ..self }
    }
}

impl Lastmile {
    fn round_trip(&self) -> f64 {
        self.rtt_or_usual().max(1e-3)
    }

    fn least_window(&self) -> f64 {
        2.0 * self.flow.packet_size()
    }

    fn join(&mut self, now: f64, rate: f64) {
        let beside = &mut self.beside;
        let again = beside.left.age(now) < SOON_S;
        beside.test_every =
            if again { (2.0 * beside.test_every).min(TEST_EVERY_S.1) } else { TEST_EVERY_S.0 };
        // Left too early: on from the rate of then.
        let rate = if again { rate.max(CLAIMED * beside.left.rate) } else { rate };
        beside.next_test = now + beside.test_every;
        (beside.answered, beside.over, beside.overflow) = (self.flow.now(), NONE_STANDS, 0.0);
        self.empty_since = f64::INFINITY;
        self.beside.window = (rate * self.round_trip()).max(self.least_window());
        self.phase = Phase::Beside;
        self.set(self.beside.window / self.round_trip());
    }

    /// True if it competes from now on, or looks into a queue that the delay to keep may hide.
    pub(super) fn joins(&mut self, seen: &Seen) -> bool {
        if !self.config.compete || !matches!(self.phase, Phase::Track | Phase::Drain(_) | Phase::Dip { .. }) {
            return false;
        }
        let Seen { now, slow, control_time, .. } = *seen;
        if self.overflow_fell(seen) {
            self.join(now, self.rate.max(slow));
            return true;
        }
        // A flow that answers slowly was not seen by a test that halved the rate, and took the rate since.
        let left = self.beside.left;
        if left.age(now) < SOON_S && self.lost_most_of(left.rate, slow) && seen.queue > 0.5 * seen.target {
            self.join(now, self.rate);
            return true;
        }
        let had = self.beside.had;
        let is_tracking = self.phase == Phase::Track;
        let taken = is_tracking && had.age(now) < TAKEN_S && self.lost_most_of(had.rate, slow);
        let looks = taken || is_tracking && self.may_look(seen);
        let Some(Standing { since, rate, .. }) = self.standing(seen, looks) else { return false };
        let is_hidden = taken || seen.queue <= over(seen.target);
        if looks && is_hidden {
            // A queue of less than a packet would be gone at once.
            let is_told = taken || HIDDEN_GONE * seen.queue > self.seconds_of(self.flow.full_size());
            let stands = is_told && now - since > HIDES_S.max(2.0 * control_time);
            if stands {
                (self.beside.had, self.beside.over) = (Past::NEVER, NONE_STANDS);
                self.give_way(seen, self.rate.max(slow) * self.round_trip(), HIDDEN_GONE, !taken);
            }
            return stands;
        }
        let was_lately = now - self.beside.was_last < LATELY_S;
        let patience = if was_lately { SHORT_PATIENCE * PATIENCE_S } else { PATIENCE_S };
        let joins = now - since > patience;
        if joins {
            self.join(now, rate.min(1.5 * slow));
        }
        joins
    }

    /// True if a look into the queue may go before the next dip: where the rate is low and the sources fill it, equal queues would leave it as
    /// low beside TCP.
    fn may_look(&self, seen: &Seen) -> bool {
        let is_due = seen.now > self.next_dip - LOOK_S.min(self.config.dip.as_secs_f64() / 3.0);
        is_due && seen.target > MAY_HIDE_S && !self.is_at_most() && !self.is_limited()
    }

    /// True if little is left of the rate that it had.
    fn lost_most_of(&self, had: f64, slow: f64) -> bool {
        self.rate.max(slow) < TAKEN * had
    }

    /// True if a queue fell by itself right behind a loss of others. After 2 s, or once this flow cut its own rate, no fall counts any more.
    fn overflow_fell(&mut self, seen: &Seen) -> bool {
        let (overflow, at) = (self.beside.overflow, self.beside.foreign.when);
        let steady = self.phase == Phase::Track && self.last_cut < at;
        if !steady || seen.now - at > FALLS_WITHIN_S {
            self.beside.overflow = 0.0;
            return false;
        }
        seen.queue < FALLS * overflow
    }

    /// Follows the standing queue; one that the delay to keep hides counts where it `looks`. None where it is short, or drains now.
    fn standing(&mut self, seen: &Seen, looks: bool) -> Option<Standing> {
        let Seen { now, dt, queue, target, slow, .. } = *seen;
        let short = match looks {
            true => (HIDDEN * target).max(self.seconds_of(HIDDEN_PACKETS * self.flow.packet_size())),
            false => over(target),
        };
        let beside = &mut self.beside;
        if queue <= short {
            beside.over.since += RUNS_BACK * dt;
            if !looks && queue < target || beside.over.since > now {
                beside.over = NONE_STANDS;
            }
            return None;
        }
        if beside.over == NONE_STANDS {
            beside.over = Standing { since: now, peak: queue, rate: self.rate.max(slow) };
            if slow > beside.had.rate || beside.had.age(now) > TAKEN_S {
                beside.had = Past { when: now, rate: slow };
            }
        }
        let Standing { since, peak, rate } = beside.over;
        if queue < DRAINS * peak {
            let drained = (peak - queue) / SLOWEST_DRAIN;
            beside.over = Standing { since: (since + drained).min(now), peak: queue, rate };
            return None;
        }
        beside.over.peak = peak.max(queue);
        Some(beside.over)
    }

    /// A packet that was sent at `sent_at` was lost right behind a delay that is long for this path.
    pub(super) fn overflowed_by_others(&mut self, sent_at: Time) {
        let now = self.now();
        let is_own = self.growth > 0.0 || now - self.last_cut < 1.0 || self.losses.is_link();
        let queue = self.arrivals.standing_queue(super::OVERLOAD_S);
        if !self.config.compete || self.phase != Phase::Track || is_own || queue < LONG_DELAY_S {
            return;
        }
        let before = self.beside.foreign;
        if sent_at <= before.event {
            return;
        }
        let count = 1 + if now - before.when < LOSSES_WITHIN_S { before.count } else { 0 };
        self.beside.foreign = Foreign { event: self.flow.now(), when: now, count };
        self.beside.overflow = queue;
        if count >= 2 {
            self.join(now, self.rate.max(self.received(super::SLOW)));
        }
    }

    /// A loss cuts the window, once in a round trip.
    pub(super) fn lost_beside(&mut self, sent_at: Time) {
        let is_full =
            self.seen.queue > FULL * self.losses.longest_wait() || self.losses.short_share() > FULL_LOSS;
        if sent_at >= self.beside.answered && is_full {
            self.beside.answered = self.flow.now();
            self.beside.window = (BETA * self.beside.window).max(self.least_window());
            self.set(self.beside.window / self.round_trip());
        }
    }

    pub(super) fn compete(&mut self, seen: &Seen) {
        let Seen { now, dt, queue, target, slow, control_time, .. } = *seen;
        let (rtt, least) = (self.round_trip(), self.least_window());
        let packets = ALPHA * (dt / rtt) * (rtt / ALPHA_RTT_S).max(1.0);
        let window = self.beside.window + packets * self.flow.packet_size();
        self.set((window / rtt).min((MOST * slow).max(least / rtt)));
        let beside = &mut self.beside;
        beside.window = window.min(1.1 * self.rate * rtt).max(least);
        beside.was_last = now;
        // Somebody else backed off, unless this flow did: no need to test.
        beside.peak = (beside.peak * (1.0 - 0.5 * dt)).max(queue);
        if queue < BACKED_OFF * beside.peak && self.flow.now() - beside.answered > OWN_FALL {
            beside.next_test = beside.next_test.max(now + TEST_EVERY_S.0);
            beside.peak = queue;
        }
        if queue >= 0.5 * target {
            self.empty_since = f64::INFINITY;
        } else {
            self.empty_since = self.empty_since.min(now);
            if now - self.empty_since > (4.0 * control_time).max(1.0) {
                return self.track(now);
            }
        }
        if now > self.beside.next_test {
            self.give_way(seen, self.beside.window, GONE, false);
        }
    }

    /// Halves the rate for a while, to see if anybody else is there; if so, it competes with that window.
    fn give_way(&mut self, seen: &Seen, window: f64, gone: f64, is_look: bool) {
        self.beside.window = window;
        let most = MOST * seen.fast;
        self.phase = Phase::Withdraw(Withdrawal { since: seen.now, most, gone: gone * seen.queue, is_look });
        self.set(0.5 * seen.fast);
    }

    /// While the rate is halved: nobody else is there if the queue goes.
    pub(super) fn withdraw(&mut self, seen: &Seen, withdrawal: Withdrawal) {
        let Withdrawal { since, gone, is_look, .. } = withdrawal;
        let rate = self.rate_before(&withdrawal);
        // Where packets differ in size, a full one's time looks like a queue.
        let packet_s = self.flow.full_size() / rate.max(1.0);
        if seen.queue < seen.target.min(gone).max(ALL_GONE * gone).max(packet_s) {
            self.set(CLAIMED * rate);
            self.track(seen.now);
            if is_look {
                // It began as a dip does, and shows the base delay as one.
                self.phase = Phase::dip(seen);
            } else {
                self.beside.left = Past { when: seen.now, rate };
            }
        } else if seen.now > since + (3.0 * seen.control_time).max(1.0) {
            if is_look {
                self.beside.test_every = TEST_EVERY_S.0;
            }
            self.beside.next_test = seen.now + self.beside.test_every.max(FOUND_S);
            self.phase = Phase::Beside;
            self.set(self.beside.window / self.round_trip());
        }
    }

    /// The rate that a withdrawal interrupts. Its window has the queue in it that may be gone.
    pub(super) fn rate_before(&self, withdrawal: &Withdrawal) -> f64 {
        (self.beside.window / self.round_trip()).min(withdrawal.most)
    }

    /// Nobody else fills the queue.
    fn track(&mut self, now: f64) {
        self.beside.over = NONE_STANDS;
        self.phase = Phase::Track;
        self.next_dip = now + self.config.dip.as_secs_f64();
        self.settle(now);
    }
}
