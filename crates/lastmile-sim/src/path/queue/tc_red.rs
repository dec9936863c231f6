//! Random Early Detection with the parameters of Linux's `tc ... red` (man page tc-red(8)): the average in
//! bytes, a weight that is a power of two chosen from `burst`, never gentle.
//!
//! Two things differ from the kernel: the decay over idle times is exact instead of read from a table of 256
//! shifts, and the probability is not rounded to 32 bits.

use lastmile::node::Ecn;
use lastmile::units::{Bytes, Rate};
use serde::Deserialize;

use super::Verdict;
use crate::path::link::{LinkConfig, LinkConfigError};
use crate::path::text;
use crate::rng::Stream;

/// The line `tc qdisc add ... red`, with its names.
///
/// ```
/// use lastmile::units::{Bytes, Rate};
/// use lastmile_sim::path::queue::TcRed;
/// // red limit 256000 min 12000 max 32000 avpkt 1000 burst 20 probability 0.02 bandwidth 10Mbit ecn
/// let red: TcRed = toml::from_str(r#"
///     limit = "256 kB"
///     min = "12 kB"
///     max = "32 kB"
///     burst = 20
///     bandwidth = "10 Mbit/s"
///     ecn = true
/// "#).unwrap();
/// assert_eq!((red.avpkt, red.probability), (Bytes(1000), 0.02));
/// assert_eq!(red.weight_log(), Some(4)); // 1/16
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TcRed {
    /// Beyond this many bytes nothing enters; takes the place of the link's queue limit.
    #[serde(deserialize_with = "text::unit")]
    pub limit: Bytes,
    /// Average below which nothing is marked.
    #[serde(deserialize_with = "text::unit")]
    pub min: Bytes,
    /// Average beyond which everything is marked or dropped.
    #[serde(deserialize_with = "text::unit")]
    pub max: Bytes,
    /// The size of a typical packet.
    #[serde(deserialize_with = "text::unit")]
    pub avpkt: Bytes,
    /// How many packets may come at once before the average follows.
    pub burst: u32,
    /// The probability at `max`.
    pub probability: f64,
    /// How fast the average decays on an idle link; without one the link's rate.
    #[serde(deserialize_with = "text::optional")]
    pub bandwidth: Option<Rate>,
    /// Mark instead of dropping.
    pub ecn: bool,
    /// Drop beyond `max` also what could be marked.
    pub harddrop: bool,
}

impl Default for TcRed {
    /// `tc`'s own defaults for a limit of 240 kB: max a quarter of it, min a third of max, burst
    /// (2 min + max) / (3 avpkt), probability 0.02.
    fn default() -> TcRed {
        TcRed {
            limit: Bytes(240_000),
            min: Bytes(20_000),
            max: Bytes(60_000),
            avpkt: Bytes(1000),
            burst: 33,
            probability: 0.02,
            bandwidth: None,
            ecn: false,
            harddrop: false,
        }
    }
}

impl TcRed {
    /// The weight as the power of two that `tc` computes: the smallest one with
    /// burst + 1 - min / avpkt <= (1 - (1 - W)^burst) / W; `None` where there is none.
    ///
    /// ```
    /// # use lastmile_sim::path::queue::TcRed;
    /// assert_eq!(TcRed { burst: 1, ..TcRed::default() }.weight_log(), None); // less than min / avpkt
    /// ```
    pub fn weight_log(&self) -> Option<u32> {
        let a = f64::from(self.burst) + 1.0 - self.min.0 as f64 / self.avpkt.0.max(1) as f64;
        if a < 1.0 {
            return None;
        }
        (1..32).find(|&log| {
            let weight = 1.0 / f64::from(1_u32 << log);
            a <= (1.0 - libm::pow(1.0 - weight, f64::from(self.burst))) / weight
        })
    }

    pub(crate) fn check(&self) -> Result<(), LinkConfigError> {
        if self.min >= self.max || self.max >= self.limit {
            return Err(LinkConfigError::new("max", "needs min < max < limit"));
        }
        if self.avpkt == Bytes::ZERO {
            return Err(LinkConfigError::new("avpkt", "a packet has a size"));
        }
        if self.weight_log().is_none() {
            let reason =
                "no weight follows from it: at least min / avpkt, and as tc says not so many that none fits";
            return Err(LinkConfigError::new("burst", reason));
        }
        LinkConfigError::probability("probability", self.probability)
    }
}

#[derive(Debug)]
pub(crate) struct State {
    weight: f64,
    min: f64,
    max: f64,
    probability: f64,
    ecn: bool,
    harddrop: bool,
    /// Typical packets that the bandwidth carries per nanosecond.
    packets_per_ns: f64,
    average: f64,
    idle_since: Option<u64>,
    /// Packets since the last mark; none where the average was out of the range of chance.
    count: Option<u64>,
    /// The draw that decides how many pass before the next mark.
    threshold: f64,
    random: Stream,
}

impl State {
    pub(crate) fn new(config: &TcRed, link: &LinkConfig, random: Stream) -> State {
        let rate = config.bandwidth.or(link.rate).map_or(0.0, |rate| rate.bits_per_second() as f64);
        State {
            weight: 1.0 / f64::from(1_u32 << config.weight_log().unwrap_or(1)),
            min: config.min.0 as f64,
            max: config.max.0 as f64,
            probability: config.probability,
            ecn: config.ecn,
            harddrop: config.harddrop,
            packets_per_ns: rate / (8e9 * config.avpkt.0.max(1) as f64),
            average: 0.0,
            idle_since: Some(0),
            count: None,
            threshold: 0.0,
            random,
        }
    }

    pub(crate) fn idle(&mut self, now: u64) {
        self.idle_since = Some(now);
    }

    pub(crate) fn enqueue(&mut self, now: u64, bytes: u64, ecn: Ecn) -> Verdict {
        match self.idle_since.take() {
            // The kernel takes no sample of the queue it finds empty.
            Some(since) => {
                let packets = now.saturating_sub(since) as f64 * self.packets_per_ns;
                self.average *= libm::pow(1.0 - self.weight, packets);
            }
            None => self.average += self.weight * (bytes as f64 - self.average),
        }
        if self.average < self.min {
            self.count = None;
            return Verdict::Accept;
        }
        if self.average >= self.max {
            self.count = None;
            return Verdict::signal(self.ecn && !self.harddrop, ecn);
        }
        // "Uniform" marking: a draw R says after how many packets, count * p_b >= R, the next is marked.
        let Some(count) = self.count else {
            (self.count, self.threshold) = (Some(0), self.random.unit());
            return Verdict::Accept;
        };
        let base = self.probability * (self.average - self.min) / (self.max - self.min);
        if (count + 1) as f64 * base < self.threshold {
            self.count = Some(count + 1);
            return Verdict::Accept;
        }
        (self.count, self.threshold) = (Some(0), self.random.unit());
        Verdict::signal(self.ecn, ecn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed_003() -> TcRed {
        TcRed {
            limit: Bytes(256_000),
            min: Bytes(12_000),
            max: Bytes(32_000),
            burst: 20,
            bandwidth: Some(Rate::ip(10_000_000)),
            ..TcRed::default()
        }
    }

    fn state(config: &TcRed) -> State {
        State::new(config, &LinkConfig::default(), Stream::new(1, "red"))
    }

    #[test]
    fn the_weight_is_the_one_tc_computes() {
        // a = 9: (1 - .875^20) / .125 = 7.45 is too little, (1 - .9375^20) / .0625 = 11.6 is enough.
        assert_eq!(seed_003().weight_log(), Some(4));
        assert_eq!(TcRed { burst: 12, ..seed_003() }.weight_log(), Some(1)); // a = 1
        assert_eq!(TcRed { burst: 55, ..seed_003() }.weight_log(), Some(7)); // man page: larger bursts, slower
        assert!(TcRed { burst: 5, ..seed_003() }.check().is_err());
        assert!(TcRed { max: Bytes(12_000), ..seed_003() }.check().is_err());
        assert!(seed_003().check().is_ok() && TcRed::default().check().is_ok());
    }

    #[test]
    fn the_average_decays_by_one_weight_per_idle_packet() {
        let mut red = state(&seed_003());
        red.average = 16_000.0;
        red.idle(0);
        red.enqueue(800_000, 0, Ecn::NotEct); // one packet of 1000 B at 10 Mbit/s
        assert!((red.average - 15_000.0).abs() < 1e-9, "{}", red.average);
        red.enqueue(800_000, 31_000, Ecn::NotEct);
        assert!((red.average - 16_000.0).abs() < 1e-9, "{}", red.average);
    }

    #[test]
    fn marks_at_one_over_twice_the_base_probability() {
        // The average stands at 22000: p_b = 0.01, gaps uniform on 1..=100.
        let mut red = state(&TcRed { ecn: true, ..seed_003() });
        let mut marks = 0;
        for n in 0..200_000 {
            red.average = 22_000.0;
            red.idle_since = None;
            match red.enqueue(0, 22_000, if n % 2 == 0 { Ecn::Ect0 } else { Ecn::Ect1 }) {
                Verdict::Mark => marks += 1,
                verdict => assert_eq!(verdict, Verdict::Accept),
            }
        }
        assert!((200_000.0 / f64::from(marks) - 50.5).abs() < 1.5, "{marks} marks");
    }

    #[test]
    fn beyond_max_all_are_marked_or_dropped() {
        let mut red = state(&TcRed { ecn: true, ..seed_003() });
        (red.average, red.idle_since) = (40_000.0, None);
        assert_eq!(red.enqueue(0, 40_000, Ecn::Ect0), Verdict::Mark);
        assert_eq!(red.enqueue(0, 40_000, Ecn::NotEct), Verdict::Drop);
        red.harddrop = true;
        assert_eq!(red.enqueue(0, 40_000, Ecn::Ect0), Verdict::Drop);
    }
}
