//! Random Early Detection with the parameters of Linux's `tc ... red` (man page tc-red(8)): the average in
//! bytes, a weight that is a power of two chosen from `burst`, never gentle; adaptive as its page says.
//! Differences from the kernel are in docs/scenarios.md.

use lastmile::node::Ecn;
use lastmile::rng::Stream;
use lastmile::units::{Bytes, Rate};

use super::QueueLimit;
use super::limit::LARGEST_IP_PACKET;
use super::{Ahead, Law, Parameters, Single, Verdict, Waiting};
use crate::network::config_error::{ConfigError, require};

lastmile::options! {
    /// The line `tc qdisc add ... red`, with its names; the defaults are those of `tc` for options left out.
    pub struct TcRed {
        /// Beyond this many bytes nothing enters; takes the place of the link's `queue`
        limit: Bytes = Bytes(240_000), "`tc`";
        /// Average below which nothing is marked; without it a third of `max`
        min: Option<Bytes> = None, "`tc`";
        /// Average beyond which everything is marked or dropped; without it three times `min`, or without both a quarter of `limit`
        max: Option<Bytes> = None, "`tc`";
        /// The size of a typical packet
        avpkt: Bytes [Bytes(1)..=Bytes(LARGEST_IP_PACKET)] = Bytes(1000), "`tc`";
        /// Packets that may come at once before the average follows; without it (2 `min` + `max`) / (3 `avpkt`)
        burst: Option<u32> = None, "`tc`";
        /// The probability at `max`; with `adaptive` the one to start with
        probability: f64 [0.0..=1.0] = 0.02, "`tc`";
        /// Rate at which the average decays on an idle link; without it the link's rate
        bandwidth: Option<Rate> = None, "our own: `tc` takes 10 Mbit/s";
        /// Mark instead of dropping
        ecn: bool = false, "`tc`";
        /// Drop beyond `max` also what could be marked
        harddrop: bool = false, "`tc`";
        /// With `ecn`, let pass what cannot be marked
        nodrop: bool = false, "`tc`";
        /// Twice a second the probability grows, or shrinks, where the average is beyond the middle fifth between `min` and `max`
        adaptive: bool = false, "Floyd, Gummadi, Shenker, Adaptive RED, 2001";
    }
}

impl TcRed {
    fn max(&self) -> u64 {
        let by_min = self.min.map(|min| min.0.saturating_mul(3));
        self.max.map(|max| max.0).or(by_min).unwrap_or(self.limit.0 / 4)
    }

    fn min(&self) -> u64 {
        self.min.map_or(self.max() / 3, |min| min.0)
    }

    fn burst(&self) -> u32 {
        let bytes = self.min().saturating_mul(2).saturating_add(self.max());
        let packets = bytes / self.avpkt.0.max(1).saturating_mul(3);
        self.burst.unwrap_or(u32::try_from(packets).unwrap_or(u32::MAX))
    }

    /// The weight as the power of two that `tc` computes: the smallest one with
    /// burst + 1 - min / avpkt <= (1 - (1 - W)^burst) / W; `None` where there is none.
    fn weight_log(&self) -> Option<u32> {
        let burst = f64::from(self.burst());
        let a = burst + 1.0 - self.min() as f64 / self.avpkt.0.max(1) as f64;
        if a < 1.0 {
            return None;
        }
        (1..32).find(|&log| {
            let weight = 1.0 / f64::from(1_u32 << log);
            a <= (1.0 - libm::pow(1.0 - weight, burst)) / weight
        })
    }
}

impl Parameters for TcRed {
    type Queue = Single<State>;
    const KIND: &'static str = "tc-red";
    const SOURCE: &'static str = "`tc qdisc ... red` of Linux";

    fn queue(&self, rate: Option<Rate>, random: Stream) -> Single<State> {
        Single::new(State::new(self, rate, random))
    }

    fn limit(&self) -> Option<QueueLimit> {
        Some(QueueLimit::Bytes(self.limit))
    }

    #[cfg(test)]
    fn lively(ecn: bool) -> TcRed {
        let (limit, min, max) = (Bytes(30_000), Some(Bytes(5_000)), Some(Bytes(15_000)));
        TcRed { limit, min, max, burst: Some(9), ecn, ..TcRed::default() }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let ordered = self.min() < self.max() && self.max() < self.limit.0;
        require(ordered, "max", "needs min < max < limit")?;
        let reason =
            "no weight follows from it: at least min / avpkt, and as tc says not so many that none fits";
        require(self.weight_log().is_some(), "burst", reason)
    }
}

/// Interval between adaptations of the probability, ns.
const ADAPTS_EVERY: u64 = 500_000_000;
/// Range of the adapted probability; the lower end is also the largest step upwards.
const LEAST: f64 = 0.01;
const MOST: f64 = 0.5;

#[derive(Debug)]
pub(crate) struct State {
    config: TcRed,
    weight: f64,
    min: f64,
    max: f64,
    probability: f64,
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
    fn new(config: &TcRed, rate: Option<Rate>, random: Stream) -> State {
        let rate = config.bandwidth.or(rate).map_or(0.0, |rate| rate.bits_per_second() as f64);
        State {
            weight: 1.0 / f64::from(1_u32 << config.weight_log().unwrap_or(1)),
            min: config.min() as f64,
            max: config.max() as f64,
            probability: config.probability,
            adapts_at: if config.adaptive { ADAPTS_EVERY } else { u64::MAX },
            packets_per_ns: rate / (8e9 * config.avpkt.0.max(1) as f64),
            average: 0.0,
            idle_since: Some(0),
            count: None,
            threshold: 0.0,
            random,
            config: config.clone(),
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
            Verdict::Drop if ecn_enabled && self.config.nodrop => Verdict::Accept,
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
            return self.signal(self.config.ecn && !self.config.harddrop, ecn);
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
        self.signal(self.config.ecn, ecn)
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
    use lastmile::options::{Given, Options};

    fn ecnprobe() -> TcRed {
        TcRed {
            limit: Bytes(256_000),
            min: Some(Bytes(12_000)),
            max: Some(Bytes(32_000)),
            burst: Some(20),
            bandwidth: Some(Rate::ip(10_000_000)),
            ..TcRed::default()
        }
    }

    fn state(config: &TcRed) -> State {
        State::new(config, None, Stream::new(1, "red"))
    }

    #[test]
    fn what_is_not_said_and_the_weight_are_what_tc_computes() {
        // a = 9: (1 - .875^20) / .125 = 7.45 is too little, (1 - .9375^20) / .0625 = 11.6 is enough. With 12 a = 1, and the
        // man page says: larger bursts, slower.
        let line = "limit = '256 kB'\nmin = '12 kB'\nmax = '32 kB'\nburst = ";
        for (text, numbers, weight_log) in [
            (format!("{line}20"), (12_000, 32_000, 20), Some(4)),
            (format!("{line}12"), (12_000, 32_000, 12), Some(1)),
            (format!("{line}55"), (12_000, 32_000, 55), Some(7)),
            (format!("{line}5"), (12_000, 32_000, 5), None),
            ("limit = '400 kB'\navpkt = '1500 B'".to_owned(), (33_333, 100_000, 37), Some(5)),
            ("limit = '400 kB'\nmin = '30 kB'".to_owned(), (30_000, 90_000, 50), Some(5)),
            ("limit = '400 kB'\nmax = '30 kB'\nburst = 60".to_owned(), (10_000, 30_000, 60), Some(8)),
            (String::new(), (20_000, 60_000, 33), Some(4)),
        ] {
            let red = TcRed::read(&toml::from_str::<Given>(&text).unwrap()).unwrap();
            assert_eq!(
                ((red.min(), red.max(), red.burst()), red.weight_log()),
                (numbers, weight_log),
                "{text}"
            );
            assert_eq!(red.check().is_ok(), weight_log.is_some(), "{text}");
        }
    }

    #[test]
    fn the_average_decays_by_one_weight_per_idle_packet() {
        let mut red = state(&ecnprobe());
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
        let mut red = state(&TcRed { ecn: true, ..ecnprobe() });
        let mut marks = 0;
        for n in 0..200_000 {
            (red.average, red.idle_since) = (22_000.0, None);
            let verdict = red.judge(0, 22_000, if n % 2 == 0 { Ecn::Ect0 } else { Ecn::Ect1 });
            assert_ne!(verdict, Verdict::Drop);
            marks += u32::from(verdict == Verdict::Mark);
        }
        assert!((200_000.0 / f64::from(marks) - 50.5).abs() < 1.5, "{marks} marks");
    }

    #[test]
    fn the_probability_adapts_twice_a_second() {
        // Of 12 to 32 kB the middle fifth is 20 to 24 kB.
        let mut red = state(&TcRed { adaptive: true, probability: 0.1, ..ecnprobe() });
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
    fn beyond_max_all_are_marked_or_dropped() {
        use Verdict::{Accept, Drop, Mark};
        for (harddrop, nodrop, able, not) in [
            (false, false, Mark, Drop),
            (true, false, Drop, Drop),
            (false, true, Mark, Accept),
            (true, true, Drop, Drop),
        ] {
            let mut red = state(&TcRed { ecn: true, harddrop, nodrop, ..ecnprobe() });
            (red.average, red.idle_since) = (40_000.0, None);
            assert_eq!([Ecn::Ect0, Ecn::NotEct].map(|ecn| red.judge(0, 40_000, ecn)), [able, not]);
        }
    }
}
