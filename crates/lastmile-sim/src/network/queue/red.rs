//! Random Early Detection: S. Floyd, V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM Transactions on Networking 1(4), 1993; gentle variant and `wait` as in ns-2; ECN as in RFC 3168,
//! section 7.

use lastmile::node::Ecn;
use lastmile::rng::Stream;
use lastmile::units::{Bytes, Rate};

use super::QueueLimit;
use super::limit::LARGEST_IP_PACKET;
use super::{Ahead, Law, Parameters, Single, Verdict, Waiting};
use crate::network::config_error::{ConfigError, require};

lastmile::options! {
    /// Parameters of classic RED. The thresholds' unit decides what is averaged: packets, or bytes on the wire.
    pub struct Red {
        /// w_q, the share of each new sample in the average: above 0, at most 1
        weight: f64 = 0.002, "section 6: 0.002";
        /// min_th: below it nothing is dropped
        min_threshold: QueueLimit = QueueLimit::Packets(5), "section 6: 5 packets";
        /// max_th, in the unit of `min_threshold`, not above what the queue holds: beyond it, or twice of it with `gentle`, all is dropped
        max_threshold: QueueLimit = QueueLimit::Packets(15), "section 6: three times min_th";
        /// max_p, the probability at max_th
        max_probability: f64 [0.0..=1.0] = 0.02, "section 6: 1/50";
        /// Above max_th the probability climbs from max_p to 1 at twice max_th, instead of jumping
        gentle: bool = false, "ns-2";
        /// The size of a typical packet, at least one byte: how fast the average decays over idle times
        ///
        /// In byte mode also the unit of the count since the last drop and of the probability, which is scaled by
        /// size / mean_packet.
        mean_packet: Bytes [Bytes(1)..=Bytes(LARGEST_IP_PACKET)] = Bytes(1000), "ns-2";
        /// After a drop at least 1/p packets pass, and the gaps are uniform in 1/p to 2/p
        ///
        /// Without it they are uniform in [1, 1/p], as in the paper.
        wait: bool = false, "ns-2";
        /// Mark those packets that can be instead of dropping them early
        ecn: bool = false, "RFC 3168, section 7";
        /// Chance decides also where the average is beyond the range of the probability
        ///
        /// The probability is one there: a packet that can be marked is marked, and after a drop or a mark `wait` and byte mode
        /// let packets pass, small ones more often. Without it all are dropped there, also what could be marked (RFC
        /// 3168, section 7). ns-2's `use_mark_p_`, which is on there unless told otherwise, with and without ECN.
        chance_beyond_max: bool = false, "ns-2: use_mark_p_";
    }
}

impl Parameters for Red {
    type Queue = Single<State>;
    const KIND: &'static str = "red";
    const SOURCE: &'static str = "Floyd and Jacobson 1993, with ns-2's options";

    fn queue(&self, rate: Option<Rate>, random: Stream) -> Single<State> {
        Single::new(State::new(self, rate, random))
    }

    fn check_limit(&self, limit: QueueLimit) -> Result<(), ConfigError> {
        let reason = format!("above what the queue holds, {limit}: never reached");
        require(!self.max_threshold.exceeds(limit), "max_threshold", reason)
    }

    #[cfg(test)]
    fn lively(ecn: bool) -> Red {
        Red { weight: 0.2, ecn, gentle: true, wait: true, ..Red::default() }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let above = match (self.min_threshold, self.max_threshold) {
            (QueueLimit::Packets(min), QueueLimit::Packets(max)) => Some(min < max),
            (QueueLimit::Bytes(min), QueueLimit::Bytes(max)) => Some(min < max),
            _ => None,
        };
        let reason = "both thresholds in packets, or both in bytes";
        require(above.is_some(), "max_threshold", reason)?;
        require(above == Some(true), "max_threshold", "must be above min_threshold")?;
        let weight = self.weight > 0.0 && self.weight <= 1.0;
        require(weight, "weight", format!("{} is not in (0, 1]", self.weight))
    }
}

#[derive(Debug)]
pub(crate) struct State {
    config: Red,
    min: f64,
    max: f64,
    bytes: bool,
    mean_packet: f64,
    /// Small packets that the link could send per nanosecond: 1/s of the paper.
    packets_per_ns: f64,
    average: f64,
    idle_since: Option<u64>,
    /// Packets and bytes since the last drop, or since the average crossed min_th.
    count: u64,
    count_bytes: u64,
    above_min: bool,
    random: Stream,
}

impl State {
    fn new(config: &Red, rate: Option<Rate>, random: Stream) -> State {
        let number = |threshold| match threshold {
            QueueLimit::Packets(packets) => f64::from(packets),
            QueueLimit::Bytes(bytes) => bytes.0 as f64,
        };
        let rate = rate.map_or(0.0, |rate| rate.bits_per_second() as f64);
        let mean_packet = config.mean_packet.0.max(1) as f64;
        State {
            min: number(config.min_threshold),
            max: number(config.max_threshold),
            bytes: matches!(config.min_threshold, QueueLimit::Bytes(_)),
            mean_packet,
            packets_per_ns: rate / (8e9 * mean_packet),
            average: 0.0,
            idle_since: Some(0),
            count: 0,
            count_bytes: 0,
            above_min: false,
            random,
            config: config.clone(),
        }
    }

    /// [Floyd and Jacobson 1993, section 4 and figure 2]: the average over arrivals, and over as many packets
    /// of zero queue as could have been sent while it was empty. ns-2 applies both where the queue was empty.
    fn update_average(&mut self, now: u64, queue: f64) {
        if let Some(since) = self.idle_since.take() {
            // m = f(time - q_time): whole packets.
            let m = libm::floor((now - since.min(now)) as f64 * self.packets_per_ns);
            self.average *= libm::pow(1.0 - self.config.weight, m);
        }
        self.average += self.config.weight * (queue - self.average);
    }

    /// p_b, and whether the average is within the range in which chance decides.
    fn base_probability(&self) -> (f64, bool) {
        let (min, max, p) = (self.min, self.max, self.config.max_probability);
        match self.average {
            // p_b = max_p (avg - min_th) / (max_th - min_th)
            average if average < max => (p * (average - min) / (max - min), true),
            average if self.config.gentle && average < 2.0 * max => {
                (p + (1.0 - p) * (average - max) / max, true)
            }
            _ => (1.0, false),
        }
    }

    /// p_a = p_b / (1 - count p_b): makes the gaps between drops uniform instead of geometric.
    fn probability(&self, base: f64, wire: u32) -> f64 {
        let count = match self.bytes {
            true => libm::floor(self.count_bytes as f64 / self.mean_packet),
            false => self.count as f64,
        };
        let passed = count * base;
        let p = match self.config.wait {
            true if passed < 1.0 => 0.0,
            true if passed < 2.0 => base / (2.0 - passed),
            false if passed < 1.0 => base / (1.0 - passed),
            _ => 1.0,
        };
        match self.bytes {
            true if p < 1.0 => (p * f64::from(wire) / self.mean_packet).min(1.0),
            _ => p,
        }
    }

    fn arrives(&mut self, now: u64, packets: u32, bytes: u64, wire: u32, ecn: Ecn, full: bool) -> Verdict {
        let queue = if self.bytes { bytes as f64 } else { f64::from(packets) };
        self.update_average(now, queue);
        self.count += 1;
        self.count_bytes += u64::from(wire);
        let verdict = self.judge(queue, wire, ecn);
        if full || verdict == Verdict::Drop {
            (self.count, self.count_bytes) = (0, 0);
        }
        verdict
    }

    fn judge(&mut self, queue: f64, wire: u32, ecn: Ecn) -> Verdict {
        // A packet that finds the queue (almost) empty is never dropped, whatever the average.
        if self.average < self.min || queue <= 1.0 {
            self.above_min = false;
            return Verdict::Accept;
        }
        let (base, by_chance) = self.base_probability();
        if !by_chance && !self.config.chance_beyond_max {
            return Verdict::Drop;
        }
        if !self.above_min {
            self.above_min = true;
            (self.count, self.count_bytes) = (1, u64::from(wire));
            return Verdict::Accept;
        }
        if self.random.unit() >= self.probability(base, wire) {
            return Verdict::Accept;
        }
        (self.count, self.count_bytes) = (0, 0);
        Verdict::signal(self.config.ecn, ecn)
    }
}

impl Law for State {
    fn enqueue(&mut self, now: u64, ahead: Ahead, packet: &Waiting) -> Verdict {
        self.arrives(now, ahead.packets, ahead.bytes, packet.wire, packet.ecn, ahead.full)
    }

    fn idle(&mut self, now: u64) {
        self.idle_since = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(config: Red) -> State {
        let rate = Some(Rate::ip(8_000_000));
        State::new(&config, rate, Stream::new(1, "red"))
    }

    #[test]
    fn the_average_follows_the_paper_by_hand() {
        let mut red = state(Red { weight: 0.5, ..Red::default() });
        let mut after = |now, packets| {
            red.arrives(now, packets, 0, 1000, Ecn::NotEct, false);
            red.average
        };
        assert_eq!(after(0, 8), 4.0);
        assert_eq!(after(0, 8), 6.0);
        assert_eq!(after(0, 2), 4.0);
        // 3.5 ms idle: three packets of 1000 B at 8 Mbit/s; 4 / 8, and the sample of the empty queue halves it.
        red.idle(10_000_000);
        red.arrives(13_500_000, 0, 0, 1000, Ecn::NotEct, false);
        assert_eq!(red.average, 0.25);
    }

    #[test]
    fn the_probability_follows_the_paper_by_hand() {
        let mut red = state(Red { gentle: true, max_probability: 0.1, ..Red::default() });
        red.average = 10.0; // half way from 5 to 15
        assert_eq!(red.base_probability(), (0.05, true));
        red.average = 22.5; // half way from 15 to 30
        assert_eq!(red.base_probability(), (0.55, true));
        red.average = 30.0;
        assert_eq!(red.base_probability(), (1.0, false));
        red.count = 10;
        assert!((red.probability(0.05, 500) - 0.1).abs() < 1e-12); // 0.05 / (1 - 0.5)
        red.config.wait = true;
        assert_eq!(red.probability(0.05, 500), 0.0);
        red.count = 30;
        assert!((red.probability(0.05, 500) - 0.1).abs() < 1e-12); // 0.05 / (2 - 1.5)
        red.bytes = true;
        red.count_bytes = 30_999; // 30 packets of 1000 B
        assert!((red.probability(0.05, 500) - 0.05).abs() < 1e-12); // half a mean packet
    }

    #[test]
    fn marks_only_what_can_be_marked() {
        let fill = |ecn, chance_beyond_max| {
            let mut red = state(Red { weight: 1.0, ecn: true, chance_beyond_max, ..Red::default() });
            red.arrives(0, 10, 0, 1000, ecn, false);
            (red.arrives(0, 20, 0, 1000, ecn, false), red)
        };
        assert_eq!(fill(Ecn::Ect0, false).0, Verdict::Drop); // beyond max_th: RFC 3168 drops
        assert_eq!(fill(Ecn::Ect0, true).0, Verdict::Mark);
        assert_eq!(fill(Ecn::NotEct, true).0, Verdict::Drop);
        let mut red = fill(Ecn::Ect0, false).1;
        let seen: Vec<_> = (0..1000).map(|_| red.arrives(0, 12, 0, 1000, Ecn::Ect1, false)).collect();
        assert!(seen.contains(&Verdict::Mark) && !seen.contains(&Verdict::Drop));
    }
}
