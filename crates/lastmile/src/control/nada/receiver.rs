//! The receiver's half of NADA (RFC 8698, sections 4.2 and 5.1), at the sender: the congestion signal, the mode and the receiving rate, from
//! the fates of packets. Nothing here grows: a window is a ring of parts.

use super::options::{LossInterval, NadaConfig};
use crate::control::Sent;
use crate::control::receive_rate::ReceiveRate;
use crate::control::tfrc::LossIntervals;
use crate::time::{Owd, Span, Time};

/// Samples of the minimum filter (section 5.1.1).
const TAPS: usize = 15;
/// Parts of the log and of the base delay's time.
const SLOTS: usize = 16;

/// Number of the part of `span` that a time is in.
fn part(now: Time, span: Span) -> u64 {
    now.as_nanos() / (span.as_nanos().unsigned_abs() / SLOTS as u64).max(1)
}

/// A part of LOGWIN.
#[derive(Clone, Copy, Debug)]
struct Slot {
    number: u64,
    packets: f64,
    lost: f64,
    marked: f64,
    /// The longest delay, in seconds; zero is the first packet's.
    longest: f64,
}

impl Slot {
    const EMPTY: Slot = Slot { number: 0, packets: 0.0, lost: 0.0, marked: 0.0, longest: f64::NEG_INFINITY };
}

/// Delays in seconds, from that of the first packet on: clocks are not in step.
#[derive(Clone, Debug)]
struct Delays {
    first: Option<Owd>,
    base: [f64; SLOTS],
    part: u64,
    taps: [f64; TAPS],
    known: usize,
}

impl Delays {
    const NONE: Delays =
        Delays { first: None, base: [f64::INFINITY; SLOTS], part: 0, taps: [0.0; TAPS], known: 0 };

    fn add(&mut self, delay: f64, part: u64) {
        let passed = part.saturating_sub(self.part).min(SLOTS as u64);
        (0..passed).for_each(|_| {
            self.base.rotate_right(1);
            self.base[0] = f64::INFINITY;
        });
        self.part = self.part.max(part);
        self.base[0] = self.base[0].min(delay);
        self.taps.rotate_right(1);
        self.taps[0] = delay;
        self.known = (self.known + 1).min(TAPS);
    }

    /// d_base.
    fn base(&self) -> f64 {
        self.base.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// d_queue of the minimum filter [5.1.1]; zero before the first packet.
    fn queueing(&self) -> f64 {
        let least = self.taps[..self.known].iter().copied().fold(f64::INFINITY, f64::min);
        if self.known == 0 { 0.0 } else { least - self.base() }
    }
}

/// A report as a receiver of NADA's own would send it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NadaReport {
    /// The aggregate congestion signal, in seconds.
    pub(super) x_curr: f64,
    /// True in accelerated ramp-up: rmode is 0.
    pub(super) ramping: bool,
    /// In bytes a second.
    pub(super) r_recv: f64,
}

/// The receiver's state.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// Of both halves.
    pub(super) config: NadaConfig,
    delays: Delays,
    log: [Slot; SLOTS],
    p_loss: f64,
    p_mark: f64,
    rate: ReceiveRate,
    r_recv: f64,
    intervals: LossIntervals,
    /// The first packet of the last loss event; the first and the newest packet that were reported.
    event: Option<(u64, Time)>,
    first: Option<u64>,
    newest: u64,
}

impl Receiver {
    pub(super) fn new(config: NadaConfig) -> Receiver {
        Receiver {
            config,
            delays: Delays::NONE,
            log: [Slot::EMPTY; SLOTS],
            p_loss: 0.0,
            p_mark: 0.0,
            rate: ReceiveRate::default(),
            r_recv: 0.0,
            // Section 4.2 asks for RFC 5348's section 5.4 alone, without the discounting of 5.5.
            intervals: LossIntervals::new(1.0),
            event: None,
            first: None,
            newest: 0,
        }
    }

    /// Another path: its delays do not compare.
    pub(super) fn on_route(&mut self) {
        self.delays = Delays::NONE;
        self.log = [Slot::EMPTY; SLOTS];
    }

    /// Queueing delay, and the smoothed loss ratio.
    pub(super) fn state(&self) -> (f64, f64) {
        (self.delays.queueing(), self.p_loss)
    }

    fn slot(&mut self, now: Time) -> &mut Slot {
        let number = part(now, self.config.logwin);
        let slot = &mut self.log[(number % SLOTS as u64) as usize];
        if slot.number != number {
            *slot = Slot { number, ..Slot::EMPTY };
        }
        slot
    }

    fn told(&mut self, sent: &Sent) {
        self.first.get_or_insert(sent.id);
        self.newest = self.newest.max(sent.id);
    }

    /// A packet arrived, with that one-way delay; `rtt` stands in for delays that nobody stamps [6.1].
    pub(super) fn arrived(
        &mut self,
        now: Time,
        sent: &Sent,
        one_way: Option<Owd>,
        rtt: Option<f64>,
        marked: bool,
    ) {
        self.told(sent);
        self.rate.add(sent.size.0);
        let first = self.delays.first.or(one_way);
        self.delays.first = first;
        let delay = one_way.zip(first).map(|(delay, first)| (delay - first).as_secs_f64());
        let delay = delay.or(rtt.filter(|_| first.is_none()));
        let base = part(now, self.config.base);
        delay.into_iter().for_each(|delay| self.delays.add(delay, base));
        let slot = self.slot(now);
        slot.packets += 1.0;
        slot.marked += f64::from(u8::from(marked));
        slot.longest = slot.longest.max(delay.unwrap_or(f64::NEG_INFINITY));
    }

    /// A packet was lost. The loss event rate, if a loss event began: losses within a round-trip time are one, and an interval is the
    /// packets from one to the next [RFC 5348, 5.2 and 5.3].
    pub(super) fn lost(&mut self, now: Time, sent: &Sent, rtt: Span) -> Option<f64> {
        self.told(sent);
        let slot = self.slot(now);
        (slot.packets, slot.lost) = (slot.packets + 1.0, slot.lost + 1.0);
        if self.event.is_some_and(|(id, at)| sent.id <= id || sent.at - at <= rtt) {
            return None;
        }
        let begin = self.event.map(|event| event.0).or(self.first).unwrap_or(sent.id);
        self.intervals.close(sent.id.saturating_sub(begin) as f64);
        self.event = Some((sent.id, sent.at));
        self.intervals.loss_event_rate(1.0)
    }

    /// Sums alone came: bytes a second, and the share lost.
    pub(super) fn summed(&mut self, now: Time, r_recv: Option<f64>, loss: f64) {
        let slot = self.slot(now);
        (slot.packets, slot.lost) =
            (slot.packets + 1.0, slot.lost + if loss > 0.0 { loss.min(1.0) } else { 0.0 });
        self.r_recv = r_recv.unwrap_or(self.r_recv);
    }

    /// Feedback ends, `nanos` by the clock of receiving: the receiving rate over LOGWIN [5.1.3].
    pub(super) fn count(&mut self, nanos: u64) {
        if let Some((bytes, span)) = self.rate.feedback(nanos, self.config.logwin) {
            self.r_recv = bytes as f64 * 1e9 / span as f64;
        }
    }

    /// Share of the warped delay in d_tilde [4.2]: all of it until loss_exp, none loss_int later.
    fn warped_share(&self) -> f64 {
        let Some((event, _)) = self.event else { return 0.0 };
        let open = self.newest.saturating_sub(event) as f64 + 1.0;
        let counted = if self.config.loss_int == LossInterval::Open { open } else { 0.0 };
        let Some(p) = self.intervals.loss_event_rate(counted) else { return 0.0 };
        let (loss_int, loss_exp) = (1.0 / p, self.config.multiloss / p);
        1.0 - ((open - loss_exp) / loss_int).clamp(0.0, 1.0)
    }

    /// d_tilde, in seconds.
    fn warped(&self, d_queue: f64) -> f64 {
        let (qth, lambda) = (self.config.qth.as_secs_f64(), self.config.lambda);
        // (1)
        let warped = if d_queue < qth { d_queue } else { qth * libm::exp(-lambda * (d_queue - qth) / qth) };
        let share = self.warped_share();
        share * warped + (1.0 - share) * d_queue
    }

    /// It is time for a report.
    pub(super) fn report(&mut self, now: Time) -> NadaReport {
        let number = part(now, self.config.logwin);
        let base = self.delays.base();
        let (mut packets, mut lost, mut marked, mut longest) = (0.0, 0.0, 0.0, 0.0_f64);
        for slot in self.log.iter().filter(|slot| slot.number.saturating_add(SLOTS as u64) > number) {
            (packets, lost, marked) = (packets + slot.packets, lost + slot.lost, marked + slot.marked);
            longest = longest.max(slot.longest - base);
        }
        let NadaConfig { xmax, alpha, dmark, dloss, pmrref, plrref, .. } = self.config;
        // (10)
        let smooth = |count: f64, before: f64| alpha * count / packets.max(1.0) + (1.0 - alpha) * before;
        (self.p_loss, self.p_mark) = (smooth(lost, self.p_loss), smooth(marked, self.p_mark));
        // (2)
        let (mark, loss) = (self.p_mark / pmrref, self.p_loss / plrref);
        let penalty = dmark.as_secs_f64() * mark * mark + dloss.as_secs_f64() * loss * loss;
        let x_curr = (self.warped(self.delays.queueing()) + penalty).min(xmax.as_secs_f64());
        // [4.2], and marks: by section 4 any congestion ends the ramp-up.
        let ramping = lost == 0.0 && marked == 0.0 && longest < self.config.qeps.as_secs_f64();
        NadaReport { x_curr, ramping, r_recv: self.r_recv }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Ecn::{self, Ce, NotEct};
    use crate::options::{Choice, Options};
    use crate::units::Bytes;

    fn at(ms: f64) -> Time {
        Time::ZERO + Span::from_secs_f64(ms / 1e3)
    }

    #[track_caller]
    fn near(value: f64, wanted: f64) {
        assert!((value / wanted - 1.0).abs() < 1e-9, "{value} instead of {wanted}");
    }

    /// Equation 1: 150 ms are 50 exp(-0.5 * 100/50) while losses are remembered. Equations 2 and 10: one loss of ten packets gives a ratio of
    /// 0.1 * 0.1, which stands for 10 ms; two marks 0.02, and 8 ms.
    #[test]
    fn the_signal_is_made_of_delay_losses_and_marks() {
        let mut receiver = Receiver::new(NadaConfig::default());
        near(receiver.warped(0.150), 0.150);
        let packet = |id: u64| Sent::media(id, Bytes(1000), at(10.0 * id as f64));
        let arrives = |receiver: &mut Receiver, id: u64, queue: f64, ecn: Ecn| {
            let came = at(10.0 * id as f64 + 20.0 + queue).as_receiver();
            receiver.arrived(at(100.0), &packet(id), Some(came - packet(id).at.as_sender()), None, ecn == Ce);
        };
        arrives(&mut receiver, 0, 0.0, NotEct);
        (1..9).for_each(|id| arrives(&mut receiver, id, 30.0, if id < 3 { Ce } else { NotEct }));
        assert_eq!(receiver.lost(at(100.0), &packet(9), Span::ZERO), Some(1.0 / 9.0));
        near(receiver.warped(0.150), 0.050 * libm::exp(-1.0));
        near(receiver.warped(0.030), 0.030);
        // The first packet, of no queue, is among the last 15.
        let report = receiver.report(at(100.0));
        near(report.x_curr, 0.010 + 0.008);
        assert!(!report.ramping);
        // All lost would stand for 10,000 s.
        receiver.p_loss = 1.0;
        near(receiver.report(at(100.0)).x_curr, 0.5);
        receiver.config.xmax = Span::from_secs(2);
        near(receiver.report(at(100.0)).x_curr, 2.0);
    }

    /// One interval of 100: loss_exp is 700 packets of it, and all is forgotten after 800. With the open interval in the average it grows with
    /// every packet, so that 7 times it is never reached.
    #[test]
    fn losses_are_forgotten_by_closed_intervals_alone() {
        for (loss_int, shares) in [("closed", [1.0, 0.5, 0.0]), ("open", [1.0; 3])] {
            let given = format!("nada(loss_int={loss_int})").parse::<Choice>().unwrap().options;
            let mut receiver = Receiver::new(NadaConfig::read(&given).unwrap());
            let packet = |id: u64| Sent::media(id, Bytes(1000), at(id as f64));
            receiver.arrived(at(0.0), &packet(0), None, None, false);
            receiver.lost(at(1.0), &packet(100), Span::ZERO);
            for (open, share) in [700, 750, 800].into_iter().zip(shares) {
                receiver.newest = 100 + open - 1;
                assert_eq!(receiver.warped_share(), share, "{loss_int}, {open}");
            }
        }
    }
}
