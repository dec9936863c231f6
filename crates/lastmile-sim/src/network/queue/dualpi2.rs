//! DualQ Coupled PI2: RFC 9332, appendix A with its edge cases (A.2). Packets of L4S (ECT(1) and CE) have a queue of their own, marked by a ramp of
//! its delay and by the classic queue's probability, which is squared for the classic packets themselves.
//!
//! The scheduler is weighted round robin, whose credit changes only while both queues have packets. Both share the link's limit.

use lastmile::node::Ecn;
use lastmile::rng::Stream;
use lastmile::time::Span;
use lastmile::units::Rate;

use super::{Ahead, Fate, Fifo, Parameters, Queue, Waiting};
use crate::network::lost::LossCause;

lastmile::options! {
    /// Parameters of DualPI2.
    pub struct DualPi2 {
        /// The delay to which the classic queue is steered
        target: Span [Span::from_nanos(1)..=Span::from_secs(3_600)] = Span::from_millis(15), "appendix A.1";
        /// Tupdate: how often the base probability changes
        update: Span [Span::from_micros(100)..=Span::from_secs(3_600)] = Span::from_millis(16), "appendix A.1";
        /// Hz: how much the distance from the target counts
        alpha: f64 [0.0..=1e6] = 0.16, "appendix A.1";
        /// Hz: how much the trend counts
        beta: f64 [0.0..=1e6] = 3.2, "appendix A.1";
        /// k: the base probability is so many times as large for packets of L4S
        coupling: f64 [1.0..=100.0] = 2.0, "appendix A.1";
        /// minTh: delay of the L4S queue from which on it marks
        threshold: Span [Span::ZERO..=Span::from_secs(3_600)] = Span::from_micros(800), "appendix A.1";
        /// Delay beyond that at which it marks all
        range: Span [Span::ZERO..=Span::from_secs(3_600)] = Span::from_micros(400), "appendix A.1";
        /// Th_len: it does not mark by its delay while no more packets than these wait
        packets: u32 = 1, "appendix A.1";
        /// Weight of the L4S queue, where the classic one has 1
        weight: u32 [1..=1_000] = 15, "section 4.2.2: 1/16 for the classic queue";
    }
}

impl Parameters for DualPi2 {
    type Queue = State;
    const KIND: &'static str = "dualpi2";
    const SOURCE: &'static str = "RFC 9332";

    fn queue(&self, _: Option<Rate>, _: Stream) -> State {
        State::new(self)
    }

    #[cfg(test)]
    fn lively(_: bool) -> DualPi2 {
        DualPi2 { alpha: 40.0, beta: 400.0, update: Span::from_millis(1), ..DualPi2::default() }
    }
}

/// recur(): true with a likelihood, evenly spaced.
#[derive(Debug, Default)]
struct Recur(f64);

impl Recur {
    fn comes(&mut self, likelihood: f64) -> bool {
        self.0 += likelihood;
        let comes = self.0 > 1.0;
        if comes {
            self.0 -= 1.0;
        }
        comes
    }
}

/// Both queues.
#[derive(Debug)]
pub(crate) struct State {
    config: DualPi2,
    update: u64,
    update_at: u64,
    /// p'.
    base: f64,
    /// prevq, in seconds.
    before: f64,
    l4s: Fifo,
    classic: Fifo,
    recur_l4s: Recur,
    recur_classic: Recur,
    /// Bytes that the classic queue is behind its share, times the L4S queue's weight.
    credit: i64,
}

/// Seconds that the first of a queue has waited.
fn time(queue: &Fifo, now: u64) -> f64 {
    queue.iter().next().map_or(0.0, |first| now.saturating_sub(first.since) as f64 / 1e9)
}

impl State {
    fn new(config: &DualPi2) -> State {
        let update = u64::try_from(config.update.as_nanos()).unwrap_or(0).max(1);
        State {
            config: config.clone(),
            update,
            update_at: update,
            base: 0.0,
            before: 0.0,
            l4s: Fifo::default(),
            classic: Fifo::default(),
            recur_l4s: Recur::default(),
            recur_classic: Recur::default(),
            credit: 0,
        }
    }

    /// [figure 8]: all updates up to `now`, between which nothing came or left.
    fn update(&mut self, now: u64) {
        while self.update_at <= now {
            let queue = time(&self.classic, self.update_at).max(time(&self.l4s, self.update_at));
            let DualPi2 { target, alpha, beta, .. } = self.config;
            let change = alpha * (queue - target.as_secs_f64()) + beta * (queue - self.before);
            self.base = (self.base + change).clamp(0.0, 1.0);
            self.before = queue;
            if self.base == 0.0 && queue == 0.0 {
                // Nor will it change until something comes.
                self.update_at += (now - self.update_at) / self.update * self.update;
            }
            self.update_at += self.update;
        }
    }

    /// laqm() [figure 5].
    fn ramp(&self, delay: f64) -> f64 {
        let (least, range) = (self.config.threshold.as_secs_f64(), self.config.range.as_secs_f64());
        match delay - least {
            above if above >= range => 1.0,
            above if above > 0.0 => above / range,
            _ => 0.0,
        }
    }

    /// scheduler(): true for the L4S queue.
    fn is_l4s_next(&self) -> bool {
        !self.l4s.is_empty() && (self.classic.is_empty() || self.credit <= 0)
    }

    /// [figure 7, lines 4a to 8j]: its first packet, or none where that was dropped.
    fn next_l4s(&mut self, now: u64, fate: &mut impl Fate) -> Option<Waiting> {
        let (delay, waiting) = (time(&self.l4s, now), self.l4s.len());
        let mut packet = self.l4s.pop()?;
        if !self.classic.is_empty() {
            self.credit += i64::from(packet.wire);
        }
        let coupled = self.config.coupling * self.base;
        let marks = if coupled < 1.0 {
            let own = if waiting > self.config.packets as usize { self.ramp(delay) } else { 0.0 };
            self.recur_l4s.comes(own.max(coupled))
        } else if self.recur_l4s.comes(self.base * self.base) {
            fate.drop(packet, LossCause::Early);
            return None;
        } else {
            true
        };
        if marks && packet.ecn != Ecn::Ce {
            fate.mark(&mut packet);
        }
        Some(packet)
    }

    /// [figure 7, lines 10 to 17].
    fn next_classic(&mut self, fate: &mut impl Fate) -> Option<Waiting> {
        let mut packet = self.classic.pop()?;
        if !self.l4s.is_empty() {
            self.credit -= i64::from(packet.wire) * i64::from(self.config.weight);
        }
        let probability = self.base * self.base;
        if self.recur_classic.comes(probability) {
            // p_Cmax [line 18 of figure 2]: 1/k^2.
            let is_overloaded = self.config.coupling * self.base >= 1.0;
            if is_overloaded || !packet.ecn.is_capable() {
                fate.drop(packet, LossCause::Early);
                return None;
            }
            fate.mark(&mut packet);
        }
        Some(packet)
    }
}

impl Queue for State {
    /// [figure 3].
    fn enqueue(&mut self, now: u64, ahead: Ahead, packet: Waiting, fate: &mut impl Fate) -> bool {
        self.update(now);
        if ahead.full {
            fate.drop(packet, LossCause::Queue);
            return false;
        }
        match packet.ecn {
            Ecn::Ect1 | Ecn::Ce => self.l4s.push(packet),
            Ecn::NotEct | Ecn::Ect0 => self.classic.push(packet),
        }
        true
    }

    fn dequeue(&mut self, now: u64, fate: &mut impl Fate) -> Option<Waiting> {
        self.update(now);
        while self.len() > 0 {
            let next = match self.is_l4s_next() {
                true => self.next_l4s(now, fate),
                false => self.next_classic(fate),
            };
            if next.is_some() {
                return next;
            }
        }
        None
    }

    fn idle(&mut self, _: u64) {
        self.credit = 0;
    }

    fn len(&self) -> usize {
        self.l4s.len() + self.classic.len()
    }

    fn bytes(&self) -> u64 {
        self.l4s.bytes() + self.classic.bytes()
    }

    fn iter(&self) -> Box<dyn Iterator<Item = &Waiting> + '_> {
        Box::new(self.l4s.iter().chain(self.classic.iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Noted;
    use super::*;

    const MS: u64 = 1_000_000;

    /// A queue with so many packets of L4S and classic ones, all of which came at 0.
    fn filled(noted: &mut Noted, l4s: usize, classic: usize, ecn: Ecn) -> State {
        let mut queue = State::new(&DualPi2::default());
        for (n, ecn) in [(l4s, Ecn::Ect1), (classic, ecn)] {
            for _ in 0..n {
                let packet = noted.packet(1, 0, 1_000, ecn);
                assert!(queue.enqueue(0, Ahead::default(), packet, noted));
            }
        }
        queue
    }

    /// By hand: a first packet that has waited 16 ms, then 32: 0.16 * 0.001 + 3.2 * 0.016 = 0.05136, and 0.16 * 0.017 + 0.0512 more.
    #[test]
    fn the_base_probability_follows_the_controller() {
        let mut noted = Noted::default();
        let mut queue = filled(&mut noted, 0, 2, Ecn::NotEct);
        queue.update(16 * MS);
        assert!((queue.base - 0.05136).abs() < 1e-12, "{}", queue.base);
        queue.update(32 * MS);
        assert!((queue.base - 0.05136 - 0.05392).abs() < 1e-12, "{}", queue.base);
        // An empty queue: 3.2 * -0.032 and 0.16 * -0.015 less, then down to nothing, and the clock goes on.
        while queue.dequeue(33 * MS, &mut noted).is_some() {}
        queue.update(48 * MS);
        assert!((queue.base - (0.10528 - 0.1024 - 0.0024)).abs() < 1e-12, "{}", queue.base);
        queue.update(1_000_000 * MS);
        assert_eq!(
            (queue.base, queue.update_at),
            (0.0, 1_000_000 * MS / queue.update * queue.update + queue.update)
        );
    }

    /// By hand: at 800 us nothing, at 1 ms half, from 1.2 ms on all; the last of the queue is not marked.
    #[test]
    fn the_ramp_marks_packets_of_l4s() {
        let marked = |now, packets| {
            let mut noted = Noted::default();
            let mut queue = filled(&mut noted, packets, 0, Ecn::NotEct);
            while queue.dequeue(now, &mut noted).is_some() {}
            assert!(noted.dropped.is_empty());
            noted.marked
        };
        assert_eq!([800, 1_000, 1_200].map(|us| marked(us * 1_000, 101)), [0, 49, 99]);
        assert_eq!(marked(5 * MS, 1), 0);
    }

    /// By hand: with p' of 0.2 a packet in 25 of the classic ones is dropped or marked, and four in ten of L4S's are marked.
    #[test]
    fn l4s_is_coupled_to_the_square_root() {
        for (ecn, dropped) in [(Ecn::NotEct, 40), (Ecn::Ect0, 0)] {
            let mut noted = Noted::default();
            let mut queue = filled(&mut noted, 1_000, 1_010, ecn);
            queue.base = 0.2;
            let came =
                |queue: &mut State, noted: &mut Noted| queue.dequeue(0, noted).map(|packet| packet.ecn);
            let (mut l4s, mut classic) = (0, 0);
            while let Some(ecn) = came(&mut queue, &mut noted) {
                match ecn {
                    Ecn::Ce if l4s + classic < 1_000 => l4s += 1,
                    _ => classic += 1,
                }
            }
            assert_eq!(noted.dropped.len(), dropped);
            let marks = 399 + 40 - dropped;
            assert!(noted.marked.abs_diff(marks) <= 1, "{} of {marks}", noted.marked);
        }
    }

    /// Beyond p' = 1/k all of L4S is marked and a share of p'^2 dropped, and classic packets are dropped even if they could be marked.
    #[test]
    fn an_overload_drops() {
        let mut noted = Noted::default();
        let mut queue = filled(&mut noted, 1_000, 1_000, Ecn::Ect0);
        queue.base = 0.6;
        let mut passed = 0;
        while queue.dequeue(0, &mut noted).is_some() {
            passed += 1;
        }
        assert!(noted.dropped.len().abs_diff(720) <= 2, "{}", noted.dropped.len());
        assert_eq!(
            noted.marked,
            passed - 1_000 + noted.dropped.iter().filter(|d| d.0.ecn == Ecn::Ect0).count()
        );
    }

    /// By hand: while both have packets, fifteen bytes of L4S for a classic one; alone each has all, and L4S goes first.
    #[test]
    fn the_scheduler_weighs_bytes() {
        let mut noted = Noted::default();
        let mut queue = filled(&mut noted, 64, 64, Ecn::NotEct);
        let order: Vec<bool> = std::iter::from_fn(|| queue.dequeue(0, &mut noted))
            .map(|packet| packet.ecn == Ecn::Ect1)
            .collect();
        assert!(order[0] && order[..64].iter().filter(|l4s| **l4s).count() == 60, "{order:?}");
        assert_eq!(order.len(), 128);
    }
}
