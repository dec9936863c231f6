//! Random Early Detection with the parameters of Linux's `tc ... red` (man page tc-red(8)): the average in
//! bytes, a weight that is a power of two chosen from `burst`, never gentle; adaptive as its page says.
//!
//! **What differs from the kernel.** The decay over idle times is Floyd and Jacobson's, (1 - W)^m. The kernel
//! reads it from a table of 256 shifts, powers of two where `tc` computes powers of e, over a time that `tc`
//! counts in ticks of 64 ns and the kernel in microseconds: with seed 003's line its average halves in
//! the first 8 ms, as here, but then stays there until 390 ms, by when it is gone here. That matters to links
//! that are idle for long between bursts. The probability is not rounded to 32 bits, nor, as by a `tc` from
//! before 2012, to a power of two over max - min (0.02 becomes 0.0191 with that line). Without `bandwidth` it is
//! the link's rate that counts, and not 10 Mbit/s.

use lastmile::node::Ecn;
use lastmile::units::{Bytes, Rate};
use serde::Deserialize;

use super::QueueLimit;
use super::{Ahead, Law, Parameters, Single, Verdict, Waiting};
use crate::network::config_error::LinkConfigError;
use crate::rng::Stream;
use crate::text;

/// The line `tc qdisc add ... red`, with its names.
///
/// ```
/// use lastmile::units::{Bytes, Rate};
/// use lastmile_sim::network::queue::TcRed;
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
#[serde(from = "Line")]
pub struct TcRed {
    /// Beyond this many bytes nothing enters; takes the place of the link's queue limit.
    pub limit: Bytes,
    /// Average below which nothing is marked. In files without it a third of `max`.
    pub min: Bytes,
    /// Average beyond which everything is marked or dropped. In files without it three times `min`, or without
    /// both a quarter of `limit`.
    pub max: Bytes,
    /// The size of a typical packet.
    pub avpkt: Bytes,
    /// How many packets may come at once before the average follows. In files without it
    /// (2 min + max) / (3 avpkt).
    pub burst: u32,
    /// The probability at `max`; with `adaptive` the one to start with.
    pub probability: f64,
    /// How fast the average decays on an idle link; without one the link's rate.
    pub bandwidth: Option<Rate>,
    /// Mark instead of dropping.
    pub ecn: bool,
    /// Drop beyond `max` also what could be marked.
    pub harddrop: bool,
    /// With `ecn`, let pass what cannot be marked.
    pub nodrop: bool,
    /// Twice a second the probability grows, or shrinks, where the average is beyond the middle fifth between
    /// `min` and `max` (S. Floyd, R. Gummadi, S. Shenker, "Adaptive RED", 2001).
    pub adaptive: bool,
}

/// A [`TcRed`] as it stands in a file.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Line {
    #[serde(deserialize_with = "text::unit")]
    limit: Bytes,
    #[serde(deserialize_with = "text::optional")]
    min: Option<Bytes>,
    #[serde(deserialize_with = "text::optional")]
    max: Option<Bytes>,
    #[serde(deserialize_with = "text::unit")]
    avpkt: Bytes,
    burst: Option<u32>,
    probability: f64,
    #[serde(deserialize_with = "text::optional")]
    bandwidth: Option<Rate>,
    ecn: bool,
    harddrop: bool,
    nodrop: bool,
    adaptive: bool,
}

impl Default for Line {
    fn default() -> Line {
        Line {
            limit: Bytes(240_000),
            min: None,
            max: None,
            avpkt: Bytes(1000),
            burst: None,
            probability: 0.02,
            bandwidth: None,
            ecn: false,
            harddrop: false,
            nodrop: false,
            adaptive: false,
        }
    }
}

impl From<Line> for TcRed {
    /// With what `tc` takes for that which is not said.
    fn from(line: Line) -> TcRed {
        let max = line
            .max
            .or(line.min.map(|min| Bytes(min.0.saturating_mul(3))))
            .unwrap_or(Bytes(line.limit.0 / 4));
        let min = line.min.unwrap_or(Bytes(max.0 / 3));
        let packets = (min.0.saturating_mul(2).saturating_add(max.0)) / line.avpkt.0.max(1).saturating_mul(3);
        TcRed {
            limit: line.limit,
            min,
            max,
            avpkt: line.avpkt,
            burst: line.burst.unwrap_or(u32::try_from(packets).unwrap_or(u32::MAX)),
            probability: line.probability,
            bandwidth: line.bandwidth,
            ecn: line.ecn,
            harddrop: line.harddrop,
            nodrop: line.nodrop,
            adaptive: line.adaptive,
        }
    }
}

impl Default for TcRed {
    /// `tc`'s own defaults for a limit of 240 kB: max 60 kB, min 20 kB, burst 33, probability 0.02.
    fn default() -> TcRed {
        Line::default().into()
    }
}

impl TcRed {
    /// The weight as the power of two that `tc` computes: the smallest one with
    /// burst + 1 - min / avpkt <= (1 - (1 - W)^burst) / W; `None` where there is none.
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
}

impl Parameters for TcRed {
    type Queue = Single<State>;
    const KEYS: &'static str = "`limit` (240 kB, instead of `queue`), `min` (a third of `max`), `max` (three times `min`, or a quarter of `limit`), `avpkt` (1000 B), `burst` ((2 `min` + `max`) / (3 `avpkt`)), `probability` (0.02), `bandwidth` (the link's), `ecn` (false), `harddrop` (false), `nodrop` (false), `adaptive` (false)";
    const SOURCE: &'static str = "`tc qdisc ... red` of Linux";

    fn queue(&self, rate: Option<Rate>, random: Stream) -> Single<State> {
        Single::new(State::new(self, rate, random))
    }

    fn limit(&self) -> Option<QueueLimit> {
        Some(QueueLimit::Bytes(self.limit))
    }

    #[cfg(test)]
    fn lively(ecn: bool) -> TcRed {
        let (limit, min, max) = (Bytes(30_000), Bytes(5_000), Bytes(15_000));
        TcRed { limit, min, max, burst: 9, ecn, ..TcRed::default() }
    }

    fn check(&self) -> Result<(), LinkConfigError> {
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

/// How often the probability adapts.
const ADAPTS_EVERY: u64 = 500_000_000;
/// The range in which it does; the lower end is also the largest step upwards.
const LEAST: f64 = 0.01;
const MOST: f64 = 0.5;

#[derive(Debug)]
pub(crate) struct State {
    weight: f64,
    min: f64,
    max: f64,
    probability: f64,
    ecn: bool,
    harddrop: bool,
    nodrop: bool,
    /// When the probability adapts next.
    adapts_at: u64,
    /// Typical packets that the bandwidth carries per nanosecond.
    packets_per_ns: f64,
    average: f64,
    idle_since: Option<u64>,
    /// Packets since the last mark; none where the average was out of the range of chance.
    count: Option<u64>,
    /// The draw that decides how many pass before the next mark, over the probability that held then.
    threshold: f64,
    random: Stream,
}

impl State {
    pub(crate) fn new(config: &TcRed, rate: Option<Rate>, random: Stream) -> State {
        let rate = config.bandwidth.or(rate).map_or(0.0, |rate| rate.bits_per_second() as f64);
        State {
            weight: 1.0 / f64::from(1_u32 << config.weight_log().unwrap_or(1)),
            min: config.min.0 as f64,
            max: config.max.0 as f64,
            probability: config.probability,
            ecn: config.ecn,
            harddrop: config.harddrop,
            nodrop: config.nodrop,
            adapts_at: if config.adaptive { ADAPTS_EVERY } else { u64::MAX },
            packets_per_ns: rate / (8e9 * config.avpkt.0.max(1) as f64),
            average: 0.0,
            idle_since: Some(0),
            count: None,
            threshold: 0.0,
            random,
        }
    }

    /// The average at a time before the next packet enters.
    fn average_at(&self, at: u64) -> f64 {
        match self.idle_since {
            Some(since) if since < at => {
                self.average * libm::pow(1.0 - self.weight, (at - since) as f64 * self.packets_per_ns)
            }
            _ => self.average,
        }
    }

    /// [Floyd, Gummadi and Shenker 2001, figure 1] with Linux's numbers, for all the times up to `now`.
    #[cold]
    fn adapt(&mut self, now: u64) {
        let fifth = (self.max - self.min) / 5.0;
        while self.adapts_at <= now {
            let average = self.average_at(self.adapts_at);
            if average > self.min + 3.0 * fifth && self.probability <= MOST {
                self.probability += (self.probability / 4.0).min(LEAST);
            } else if average < self.min + 2.0 * fifth && self.probability >= LEAST {
                self.probability *= 0.9;
            } else if self.idle_since.is_none() || average < self.min + 2.0 * fifth {
                // Until a packet comes an average stays, or falls: no time before that changes anything.
                self.adapts_at += (now - self.adapts_at) / ADAPTS_EVERY * ADAPTS_EVERY;
            }
            self.adapts_at += ADAPTS_EVERY;
        }
    }

    fn draw(&mut self) {
        self.count = Some(0);
        self.threshold = self.random.unit() / self.probability.max(f64::MIN_POSITIVE);
    }

    fn signal(&self, ecn_enabled: bool, ecn: Ecn) -> Verdict {
        match Verdict::signal(ecn_enabled, ecn) {
            Verdict::Drop if ecn_enabled && self.nodrop => Verdict::Accept,
            verdict => verdict,
        }
    }

    fn judge(&mut self, now: u64, bytes: u64, ecn: Ecn) -> Verdict {
        if now >= self.adapts_at {
            self.adapt(now);
        }
        if self.idle_since.is_some() {
            // The kernel takes no sample of the queue it finds empty.
            self.average = self.average_at(now);
            self.idle_since = None;
        } else {
            self.average += self.weight * (bytes as f64 - self.average);
        }
        if self.average < self.min {
            self.count = None;
            return Verdict::Accept;
        }
        if self.average >= self.max {
            self.count = None;
            return self.signal(self.ecn && !self.harddrop, ecn);
        }
        // "Uniform" marking: a draw R says after how many packets, count * p_b >= R, the next is marked.
        let Some(count) = self.count else {
            self.draw();
            return Verdict::Accept;
        };
        let base = (self.average - self.min) / (self.max - self.min);
        if (count + 1) as f64 * base < self.threshold {
            self.count = Some(count + 1);
            return Verdict::Accept;
        }
        self.draw();
        self.signal(self.ecn, ecn)
    }
}

impl Law for State {
    fn enqueue(&mut self, now: u64, ahead: Ahead, packet: &Waiting) -> Verdict {
        self.judge(now, ahead.bytes, packet.ecn)
    }

    fn idle(&mut self, now: u64) {
        self.idle_since = Some(now);
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
        State::new(config, None, Stream::new(1, "red"))
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
        red.judge(800_000, 0, Ecn::NotEct); // one packet of 1000 B at 10 Mbit/s
        assert!((red.average - 15_000.0).abs() < 1e-9, "{}", red.average);
        red.judge(800_000, 31_000, Ecn::NotEct);
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
            match red.judge(0, 22_000, if n % 2 == 0 { Ecn::Ect0 } else { Ecn::Ect1 }) {
                Verdict::Mark => marks += 1,
                verdict => assert_eq!(verdict, Verdict::Accept),
            }
        }
        assert!((200_000.0 / f64::from(marks) - 50.5).abs() < 1.5, "{marks} marks");
    }

    #[test]
    fn what_is_not_said_is_what_tc_takes() {
        let line = |text: &str| toml::from_str::<TcRed>(text).unwrap();
        let numbers = |red: &TcRed| (red.min.0, red.max.0, red.burst);
        assert_eq!(numbers(&line("limit = '400 kB'\navpkt = '1500 B'")), (33_333, 100_000, 37));
        assert_eq!(numbers(&line("limit = '400 kB'\nmin = '30 kB'")), (30_000, 90_000, 50));
        assert_eq!(numbers(&line("limit = '400 kB'\nmax = '30 kB'\nburst = 60")), (10_000, 30_000, 60));
        assert_eq!(line(""), TcRed::default());
        assert_eq!(numbers(&TcRed::default()), (20_000, 60_000, 33));
        assert!(toml::from_str::<TcRed>("minimum = '3 kB'").is_err());
    }

    #[test]
    fn the_probability_adapts_twice_a_second() {
        // Of 12 to 32 kB the middle fifth is 20 to 24 kB.
        let mut red = state(&TcRed { adaptive: true, probability: 0.1, ..seed_003() });
        let mut after = |ms: u64, average: f64, idle: Option<u64>| {
            (red.average, red.idle_since) = (average, idle.map(|ms| ms * 1_000_000));
            red.judge(ms * 1_000_000, average as u64, Ecn::NotEct);
            libm::round(red.probability * 1e5) / 1e5
        };
        assert_eq!(after(499, 30_000.0, None), 0.1);
        assert_eq!(after(500, 30_000.0, None), 0.11); // by 0.01, or a quarter where that is less
        assert_eq!(after(999, 22_000.0, None), 0.11);
        assert_eq!(after(1_000, 22_000.0, None), 0.11);
        assert_eq!(after(1_500, 19_000.0, None), 0.099); // by a tenth
        assert_eq!(after(2_999, 30_000.0, Some(1_999)), 0.0981); // 2 s: 28 kB, plus 0.01; 2.5 s: none, times 0.9
        red.probability = 0.02;
        // An idle month: down to 0.01, without going through all of it.
        (red.average, red.idle_since) = (30_000.0, Some(3_000_000_000));
        red.judge(2_678_400_000_000_000, 0, Ecn::NotEct);
        assert!((0.009..0.01).contains(&red.probability) && red.adapts_at > 2_678_400_000_000_000);
        red.probability = 0.02;
        (red.average, red.idle_since) = (30_000.0, None);
        red.judge(red.adapts_at, 30_000, Ecn::NotEct);
        assert!((red.probability - 0.025).abs() < 1e-12);
    }

    #[test]
    fn nodrop_lets_pass_what_cannot_be_marked() {
        let mut red = state(&TcRed { ecn: true, nodrop: true, ..seed_003() });
        (red.average, red.idle_since) = (40_000.0, None);
        assert_eq!(red.judge(0, 40_000, Ecn::NotEct), Verdict::Accept);
        assert_eq!(red.judge(0, 40_000, Ecn::Ect0), Verdict::Mark);
        red.harddrop = true;
        assert_eq!(red.judge(0, 40_000, Ecn::NotEct), Verdict::Drop);
    }

    #[test]
    fn beyond_max_all_are_marked_or_dropped() {
        let mut red = state(&TcRed { ecn: true, ..seed_003() });
        (red.average, red.idle_since) = (40_000.0, None);
        assert_eq!(red.judge(0, 40_000, Ecn::Ect0), Verdict::Mark);
        assert_eq!(red.judge(0, 40_000, Ecn::NotEct), Verdict::Drop);
        red.harddrop = true;
        assert_eq!(red.judge(0, 40_000, Ecn::Ect0), Verdict::Drop);
    }
}
