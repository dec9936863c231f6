//! Controlled Delay: RFC 8289, with ECN as its section 5 allows: packets to be dropped are marked instead.
//!
//! The square root of the control law is exact. Linux and ns-3 take one step of Newton's method per drop, which brings
//! the third drop after 50 ms instead of 70.7; 2 to 8 % more drops follow in an overload that lasts.

use lastmile::rng::Stream;
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};

use super::{Fate, Fifo, Law, Parameters, Single, Verdict, Waiting};
use crate::network::config_error::{ConfigError, require};
use crate::network::lost::LossCause;

lastmile::options! {
    /// Parameters of CoDel.
    pub struct Codel {
        /// TARGET: the standing queue that is acceptable
        target: Span = Span::from_millis(5), "section 4";
        /// INTERVAL: on the order of a worst-case round trip; above `target`
        interval: Span = Span::from_millis(100), "section 4";
        /// With no more than this left in the queue nothing is dropped: one packet of the MTU, as on the wire
        mtu: Bytes = Bytes(1500), "an Ethernet's";
        /// Mark those packets that can be instead of dropping them
        ecn: bool = false, "section 5";
    }
}

impl Parameters for Codel {
    type Queue = Single<State>;
    const KIND: &'static str = "codel";
    const SOURCE: &'static str = "RFC 8289";

    fn queue(&self, _: Option<Rate>, _: Stream) -> Single<State> {
        Single::new(State::new(self))
    }

    #[cfg(test)]
    fn lively(ecn: bool) -> Codel {
        Codel { interval: Span::from_millis(20), ecn, ..Codel::default() }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let ordered = Span::ZERO < self.target && self.target < self.interval;
        require(ordered, "interval", "needs 0 < target < interval")
    }
}

#[derive(Debug)]
pub(crate) struct State {
    target: u64,
    interval: u64,
    mtu: u64,
    ecn: bool,
    /// When the sojourn time will have been above target for an interval; zero while it is below.
    first_above: u64,
    drop_next: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl State {
    pub(crate) fn new(config: &Codel) -> State {
        let ns = |span: Span| span.as_nanos().max(1) as u64;
        State {
            target: ns(config.target),
            interval: ns(config.interval),
            mtu: config.mtu.0,
            ecn: config.ecn,
            first_above: 0,
            drop_next: 0,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// [RFC 8289, section 5.4]: the next drop comes interval / sqrt(count) later.
    fn control_law(&self, at: u64) -> u64 {
        at.saturating_add((self.interval as f64 / f64::from(self.count.max(1)).sqrt()) as u64)
    }

    /// [RFC 8289, section 5.6] dodequeue: the head and whether it may be dropped.
    fn take(&mut self, now: u64, queue: &mut Fifo) -> Option<(Waiting, bool)> {
        let Some(packet) = queue.pop() else {
            self.first_above = 0;
            return None;
        };
        let sojourn = now.saturating_sub(packet.since);
        let mut may_drop = false;
        if sojourn < self.target || queue.bytes() <= self.mtu {
            self.first_above = 0;
        } else if self.first_above == 0 {
            self.first_above = now.saturating_add(self.interval);
        } else {
            may_drop = now >= self.first_above;
        }
        Some((packet, may_drop))
    }
}

impl Law for State {
    /// [RFC 8289, section 5.5] dequeue.
    fn dequeue(&mut self, now: u64, queue: &mut Fifo, fate: &mut impl Fate) -> Option<Waiting> {
        let Some((mut packet, mut may_drop)) = self.take(now, queue) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if Verdict::signal(self.ecn, packet.ecn) == Verdict::Mark {
                    self.drop_next = self.control_law(self.drop_next);
                    fate.mark(&mut packet);
                    return Some(packet);
                }
                fate.drop(packet, LossCause::Early);
                let Some(next) = self.take(now, queue) else {
                    self.dropping = false;
                    return None;
                };
                (packet, may_drop) = next;
                self.dropping = may_drop;
                if self.dropping {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
            return Some(packet);
        }
        if !may_drop {
            return Some(packet);
        }
        self.dropping = true;
        // A drop rate that worked recently is taken up again.
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_sub(self.drop_next) < self.interval.saturating_mul(16);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.control_law(now);
        self.last_count = self.count;
        if Verdict::signal(self.ecn, packet.ecn) == Verdict::Mark {
            fate.mark(&mut packet);
            return Some(packet);
        }
        fate.drop(packet, LossCause::Early);
        self.take(now, queue).map(|(packet, _)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Noted;
    use super::*;
    use lastmile::node::Ecn;

    const MS: u64 = 1_000_000;

    /// A queue that is never short of packets which waited 50 ms, fetched every millisecond. The first drop comes after one
    /// interval, then they are interval / sqrt(count) apart: 100, 70.7, 57.7, 50, 44.7 ms; a drop happens at the first
    /// dequeue that is due, and the times are not rounded up into the next.
    #[test]
    fn drops_and_marks_follow_the_control_law() {
        for (config, ecn) in
            [(Codel::default(), Ecn::NotEct), (Codel { ecn: true, ..Codel::default() }, Ecn::Ect0)]
        {
            let (mut codel, mut queue, mut times) = (State::new(&config), Fifo::default(), Vec::new());
            for ms in 0..470 {
                let (now, mut noted) = ((1_000 + ms) * MS, Noted::default());
                while queue.len() < 20 {
                    queue.push(noted.packet(1, now - 50 * MS, 1500, ecn));
                }
                codel.dequeue(now, &mut queue, &mut noted);
                times.extend((0..noted.dropped.len() + noted.marked).map(|_| ms));
            }
            assert_eq!(times, [100, 200, 271, 329, 379, 424, 464], "{config:?}");
        }
    }
}
