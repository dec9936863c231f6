//! The effective capacity that [`Wbest`](super::wbest::Wbest) finds from its pairs, and how its uncertainty and that of the trains
//! become intervals.

use crate::estimate::{
    Estimate, Interval, IntervalMethod, Quantity, TruthKind, Value, Warning, WarningCode, bits_per_second,
    wbest_config::WbestConfig,
};
use crate::observe::stats;
use crate::time::Span;
use crate::units::{Bytes, Rate};

/// Nominal confidence of all intervals.
pub(super) const CONFIDENCE: f64 = 0.9;

/// Largest difference between two hosts' clock rates: 100 ppm, the worst of common crystals.
const CLOCK_RATE: f64 = 1e-4;

/// The part of a packet of others, as large as its own, that a train cannot tell.
const PART: f64 = 0.5;

/// An interval wider than this share of what there could be says next to nothing.
const TOO_WIDE: f64 = 0.5;

/// Another reading within this share of the capacity may be the right one.
const REACH: f64 = 1.0 / 3.0;

/// Least delays are the same within this share of the dispersion ([`capprobe_minima`](super::capprobe_minima)).
const SAME: f64 = 0.005;

/// Stamps of this resolution and without noise are exact: a simulator's.
const EXACT: Span = Span::from_nanos(1);

/// The capacity, once it is known: rates in bit/s at the IP layer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Capacity {
    pub(super) rate: f64,
    pub(super) interval: Option<(f64, f64)>,
    /// Method by which the interval was made.
    pub(super) method: IntervalMethod,
}

impl Capacity {
    /// From the rates of pairs in bit/s, whose stamps are uncertain by `noise`.
    pub(super) fn of(rates: &[f64], config: &WbestConfig, noise: Span) -> Capacity {
        if config.faithful {
            let mut sorted = rates.to_vec();
            sorted.sort_by(f64::total_cmp);
            // [ALGORITHMS 1.5] elements n/2 and n/2 + 1, counted from zero: half a rank high.
            let (a, b) = (sorted.len() / 2, (sorted.len() / 2 + 1).min(sorted.len() - 1));
            return Capacity {
                rate: (sorted[a] + sorted[b]) / 2.0,
                interval: None,
                method: IntervalMethod::default(),
            };
        }
        let q = if config.conservative { 0.9 } else { 0.5 };
        let rate = stats::quantile(rates, q).unwrap_or(0.0); // [WBest eq. 3]
        let interval = stats::median_interval(rates, CONFIDENCE).filter(|_| !config.conservative);
        // Errors that stamps add alike to every pair do not show in the spread: each end of a dispersion may be off by them.
        let blur = |rate: f64, by: i64| {
            let bits = config.packet_size.bits() as f64 * 1e9;
            bits / (bits / rate + by as f64).max(1.0)
        };
        let by = spread_of_stamps(noise);
        let drift = |rate: f64, by: f64| rate * (1.0 + by);
        Capacity {
            rate,
            method: IntervalMethod::MedianOrderStatistics,
            interval: interval
                .map(|(low, high)| (drift(blur(low, by), -CLOCK_RATE), drift(blur(high, -by), CLOCK_RATE))),
        }
    }

    /// From the dispersion of a pair of packets of `size` on an empty path, in nanoseconds, which several showed.
    pub(super) fn of_least(gap: f64, size: Bytes, noise: Span) -> Capacity {
        let by = (SAME * gap).max(if noise > EXACT { noise.as_nanos() as f64 * 2.0 } else { 1.0 });
        let rate = |gap: f64| size.bits() as f64 * 1e9 / gap.max(1.0);
        let interval = Some((rate(gap + by), rate(gap - by)));
        Capacity { rate: rate(gap), interval, method: IntervalMethod::LeastDelays }
    }

    /// Makes the interval reach the rate of a pair of packets of `size` that came `gap` nanoseconds apart. A rate far away does not
    /// count: if hardly a packet meets an empty path, the least delays are chance.
    pub(super) fn reach(&mut self, gap: f64, size: Bytes) {
        let rate = size.bits() as f64 * 1e9 / gap.max(1.0);
        if (rate / self.rate.max(1.0) - 1.0).abs() <= REACH {
            let (from, to) = (rate * (1.0 - SAME), rate * (1.0 + SAME));
            self.interval = self.interval.map(|(low, high)| (low.min(from), high.max(to)));
        }
    }

    /// True if batches told it, and not pairs.
    pub(super) fn is_of_batches(&self) -> bool {
        self.method == IntervalMethod::BatchSpread
    }

    /// True if the pairs were those of a cell of Wi-Fi in which packets go one by one.
    pub(super) fn is_of_cell(&self) -> bool {
        self.method == IntervalMethod::BootstrapGaps
    }

    /// Estimate of it, from these streams' pairs or bursts: `burst` bytes of packets of one size.
    pub(super) fn estimate(
        &self,
        [burst, packet_size]: [Bytes; 2],
        streams: &[u32],
        warnings: Vec<Warning>,
    ) -> Estimate {
        Estimate {
            quantity: Quantity::Capacity,
            value: Value::Is(bits_per_second(self.rate)),
            interval: self.interval.map(|(low, high)| Interval {
                low: bits_per_second(libm::floor(low)),
                high: bits_per_second(libm::ceil(high)),
                confidence: CONFIDENCE,
                method: self.method,
            }),
            next: None,
            truth_kind: TruthKind::Queue,
            burst: Some(burst),
            packet_size: Some(packet_size),
            streams: streams.to_vec(),
            warnings,
        }
    }

    /// The interval of what was left in the windows of so many trains of so many packets, whose stamps are uncertain by `noise`: by
    /// the capacity's own uncertainty, and what stamps, the rates of clocks and packets add to a train. None where the capacity has none,
    /// and between batches. Rates in bit/s.
    pub(super) fn interval_of_rest(
        &self,
        available: f64,
        [trains, packets]: [usize; 2],
        packet_size: Bytes,
        noise: Span,
    ) -> Option<Interval> {
        self.interval.filter(|_| !self.is_of_batches())?;
        // A = C (2 - C / R), where 1 / R is a train's time by its bits.
        let bits = packet_size.bits() as f64 * packets.saturating_sub(1).max(1) as f64;
        let of_stamps = self.rate * self.rate * spread_of_stamps(noise) as f64 / 1e9 / bits;
        // Of the packet of others that its first packet met, and of that at its end, nobody knows how much is the train's.
        let of_packets = self.rate * PART / (packets.max(1) as f64 * libm::sqrt(trains.max(1) as f64));
        let half = self.half_of_capacity(available) + of_stamps + of_packets + available * CLOCK_RATE;
        Some(self.around(available, half, IntervalMethod::MedianOrderStatistics))
    }

    /// The capacity's uncertainty in the available bandwidth: dA/dC = 1 - R_p / R = (A - C) / C.
    fn half_of_capacity(&self, available: f64) -> f64 {
        let (c_low, c_high) = self.interval.unwrap_or((self.rate, self.rate));
        (c_high - c_low) / 2.0 * (1.0 - available / self.rate.max(1.0)).abs()
    }

    /// On an idle path the capacity's share of `half` vanishes and another takes its place: a train sent below the capacity comes
    /// through undispersed and says only that all of its own rate is left, so that an interval that reaches the capacity's
    /// reaches up to its upper end.
    pub(super) fn around(&self, available: f64, half: f64, method: IntervalMethod) -> Interval {
        let (c_low, c_high) = self.interval.unwrap_or((self.rate, self.rate));
        let high = if available + half >= c_low { c_high } else { available + half };
        Interval {
            low: bits_per_second(libm::floor(available - half)),
            high: bits_per_second(libm::ceil(high)),
            confidence: CONFIDENCE,
            method,
        }
    }

    /// The interval of what will be left, by what `trains` trains of `packets` packets said: Student's `half` width over
    /// trains, with the capacity's own uncertainty, which all trains share, in quadrature. Rates in bit/s.
    pub(super) fn interval_of_next(
        &self,
        available: f64,
        half: f64,
        trains: usize,
        packets: usize,
    ) -> Interval {
        // Against periodic traffic trains see k packets or k + 1 and may all agree by chance, so that their spread is
        // zero: the least width is Jeffreys' 95 % bound of a share of which none was seen, in packets a train
        // [WBest eq. 8]. (1.92: half the 95 % point of chi-squared with one degree of freedom.)
        let packet = self.rate / packets.max(1) as f64;
        let least = packet * 1.92 / (trains as f64 + 1.2);
        let half = libm::hypot(half, self.half_of_capacity(available)).max(least);
        self.around(available, half, IntervalMethod::StudentTrains)
    }
}

/// By how many nanoseconds stamps that are uncertain by `noise` may be off between two packets.
fn spread_of_stamps(noise: Span) -> i64 {
    if noise > EXACT { noise.as_nanos() * 2 } else { 1 }
}

/// True if an interval says next to nothing, against `most` in bit/s.
pub(super) fn too_wide(interval: &Interval, most: f64) -> bool {
    let width = interval.high.bits_per_second().saturating_sub(interval.low.bits_per_second());
    width as f64 > TOO_WIDE * most.max(1.0)
}

/// Takes the number from intervals that say next to nothing, and warns. An available bandwidth is held against `limit`, in bit/s, and
/// another rate against itself.
pub(super) fn warn_too_wide(found: &mut [Estimate], limit: f64) {
    let bps = |rate: Rate| rate.bits_per_second() as f64;
    for estimate in found {
        let (Some(interval), Some(rate)) = (estimate.interval, estimate.value.rate()) else { continue };
        let (most, of) = match estimate.quantity {
            Quantity::AvailableBandwidth => (limit, "what there could be"),
            _ => (bps(rate), "the rate itself"),
        };
        if !too_wide(&interval, most) {
            continue;
        }
        let share = (bps(interval.high) - bps(interval.low)) / most.max(1.0);
        let wide = match share > 1.0 {
            true => format!("wider than {of}"),
            false => format!("{:.0} % of {of}", share * 100.0),
        };
        let text = format!(
            "the interval is {wide}: its samples differ too much for an answer; measure again while others pause"
        );
        estimate.value = Value::Unknown;
        estimate.warnings.push(Warning { code: WarningCode::TooWide, text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many trains tell every packet.
    const MANY: usize = 1_000_000_000;

    #[test]
    fn the_capacity_is_the_median_of_the_pairs() {
        let rates = [9e6, 10e6, 11e6, 10e6, 10e6, 30e6];
        let config = WbestConfig::default();
        assert_eq!(Capacity::of(&rates, &config, Span::from_nanos(1)).rate, 10e6);
        let conservative = WbestConfig { conservative: true, ..WbestConfig::default() };
        let found = Capacity::of(&rates, &conservative, Span::from_nanos(1));
        assert!(found.rate > 10e6 && found.interval.is_none(), "{found:?}");
        // The original's median of six is the mean of the fourth and the fifth of the sorted, not of the third and fourth.
        let faithful = WbestConfig { faithful: true, ..WbestConfig::default() };
        let found = Capacity::of(&[1e6, 2e6, 3e6, 4e6, 5e6, 6e6], &faithful, Span::from_nanos(1));
        assert_eq!((found.rate, found.interval), (4.5e6, None));
    }

    #[test]
    fn noise_of_the_stamps_widens_the_capacitys_interval_and_that_widens_what_is_left() {
        let (rates, config) = ([10e6; 30], WbestConfig::default());
        let of = |noise| Capacity::of(&rates, &config, noise);
        let width = |c: Capacity| c.interval.map_or(f64::NAN, |(low, high)| high - low);
        let (exact, noisy) = (of(Span::from_nanos(1)), of(Span::from_micros(6)));
        // Two ends of 1190.4 us, each off by 6 us, and 100 ppm; without noise 1 ns.
        let bits = config.packet_size.bits() as f64;
        let at = |us: f64| bits / (bits / 10e6 + us * 1e-6);
        let expected = at(-12.0) * 1.0001 - at(12.0) * 0.9999;
        assert!((width(noisy) / expected - 1.0).abs() < 1e-6, "{noisy:?}, not {expected} wide");
        assert!(width(exact) < 10e6 * 2.1e-4, "{exact:?}");
        let rest = |c: Capacity| {
            let width = |i: Interval| i.high.bits_per_second() - i.low.bits_per_second();
            let own = c.interval_of_rest(2e6, [MANY, 30], Bytes(1488), Span::from_nanos(1)).unwrap();
            assert!(width(own) >= width(c.interval_of_next(2e6, 0.0, 1_000_000, 30)), "{own:?}");
            width(own)
        };
        assert!(rest(noisy) > 10 * rest(exact), "{} {}", rest(noisy), rest(exact));
        // Two stamps of a train, each off by 6 us: C^2 12 us / 29 packets, on either side.
        let of_train = noisy.interval_of_rest(2e6, [MANY, 30], Bytes(1488), Span::from_micros(6)).unwrap();
        let more = of_train.high.bits_per_second() as f64 - of_train.low.bits_per_second() as f64;
        let expected = 2.0 * 1e14 * 12e-6 / (29.0 * 11_904.0);
        assert!((more - rest(noisy) as f64 - expected).abs() < 3.0, "{more}, not {expected} more");
        // Half a packet of the 30 of one train, and of four trains half of that.
        let high = |trains| {
            noisy.interval_of_rest(2e6, [trains, 30], Bytes(1488), Span::ZERO).unwrap().high.bits_per_second()
        };
        let packet = 10e6 / 30.0;
        for (trains, expected) in [(1, packet / 2.0), (4, packet / 4.0)] {
            let more = (high(trains) - high(MANY)) as f64;
            assert!((more / expected - 1.0).abs() < 0.01, "{more}, not {expected}");
        }
        let in_batches = Capacity { method: IntervalMethod::BatchSpread, ..noisy };
        assert_eq!(in_batches.interval_of_rest(2e6, [1, 30], Bytes(1488), Span::ZERO), None);
        // On an idle path the interval reaches up to the capacity's own upper end.
        let idle = noisy.interval_of_next(10e6, 0.0, 4, 30).high.bits_per_second() as f64;
        assert!((idle - noisy.interval.map_or(0.0, |i| i.1)).abs() < 1.0);
    }

    #[test]
    fn what_is_left_is_withdrawn_where_its_interval_is_wider_than_half_of_what_there_could_be() {
        let capacity = Capacity { rate: 10e6, interval: Some((8e6, 12e6)), ..Capacity::default() };
        let left = Estimate {
            quantity: Quantity::AvailableBandwidth,
            value: Value::Is(Rate::ip(4_000_000)),
            interval: capacity.interval_of_rest(4e6, [MANY, 30], Bytes(1488), Span::ZERO),
            ..capacity.estimate([2_976, 1_488].map(Bytes), &[], Vec::new())
        };
        // 60 % of the capacity's own width: 2.4 Mbit/s.
        for (limit, value) in [(5e6, left.value), (4.7e6, Value::Unknown)] {
            let mut found = [left.clone()];
            warn_too_wide(&mut found, limit);
            assert_eq!(found[0].value, value, "{found:?}");
        }
    }
}
