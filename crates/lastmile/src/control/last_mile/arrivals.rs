//! Arrivals of late: their rate, their standing queue, and the path's base delay.
//!
//! Frames leave in bursts, radio links jitter and stamps have steps of a millisecond, so that the standing queue is the least delay of some
//! tens of milliseconds of arrivals (as in Copa, NSDI 2018, and RFC 8698's minimum filter). Slots of 5 ms keep it in fixed memory.

/// Seconds of arrivals in a slot.
const SLOT_S: f64 = 0.005;
/// Slots that are kept: 0.56 s.
const SLOTS: usize = 112;
/// The base delay is the least of that many periods of so many seconds: a clock's skew of 100 ppm makes 3 ms of it.
const PERIODS: usize = 3;
const PERIOD_S: f64 = 10.0;
/// A delay that changes by more at once is a clock's step.
const STEP_S: f64 = 10.0;

#[derive(Clone, Copy, Debug)]
struct Slot {
    bytes: f32,
    /// The least delay, in seconds from an unknown zero.
    delay: f32,
}

const EMPTY: Slot = Slot { bytes: 0.0, delay: f32::INFINITY };

/// Arrivals by the receiver's clock. Times are seconds; delays count from the first one.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// Arrival and delay of the first packet.
    zero: Option<(f64, f64)>,
    slots: [Slot; SLOTS],
    /// The number of the newest slot, since the first packet.
    newest: i64,
    last_delay: f64,
    /// The least delay of each period, newest first.
    base: [f64; PERIODS],
    period_end: f64,
}

impl Arrivals {
    pub(super) const fn new() -> Arrivals {
        Arrivals {
            zero: None,
            slots: [EMPTY; SLOTS],
            newest: 0,
            last_delay: 0.0,
            base: [f64::INFINITY; PERIODS],
            period_end: 0.0,
        }
    }

    /// A packet arrived, as told at `now`: its arrival and its delay by two clocks whose offset is unknown.
    pub(super) fn add(&mut self, now: f64, arrival: f64, delay: f64, bytes: u64) {
        let jump = self.zero.map_or(0.0, |zero| delay - zero.1 - self.last_delay);
        let slot_of = |zero: f64| libm::floor((arrival - zero) / SLOT_S) as i64;
        // A clock that was set back, or a path that is shorter by more than is kept.
        let oldest = self.newest - SLOTS as i64;
        let (arrival_zero, delay_zero) = match self.zero {
            Some(zero) if jump.abs() < STEP_S && slot_of(zero.0) > oldest => zero,
            _ => {
                (*self).clone_from(&Arrivals::new());
                self.period_end = now + PERIOD_S;
                *self.zero.insert((arrival, delay))
            }
        };
        self.last_delay = delay - delay_zero;
        if now >= self.period_end {
            // A pause may have lasted for several.
            let over = 1 + ((now - self.period_end) / PERIOD_S) as usize;
            self.base.rotate_right(over.min(PERIODS) % PERIODS);
            self.base[..over.min(PERIODS)].fill(f64::INFINITY);
            self.period_end = now + PERIOD_S;
        }
        self.base[0] = self.base[0].min(self.last_delay);
        let slot = slot_of(arrival_zero);
        self.go_on(slot);
        let last_delay = self.last_delay as f32;
        let slot = self.slot(slot);
        slot.bytes += bytes as f32;
        slot.delay = slot.delay.min(last_delay);
    }

    /// Bytes that arrived with the newest arrival.
    pub(super) fn credit(&mut self, bytes: u64) {
        self.slot(self.newest).bytes += bytes as f32;
    }

    /// The receiver counted so many bytes in the last `over` seconds, as told at `now`, of at most so many a second; arrivals or a sum were told of
    /// at `before`. They take the place of what was counted for that time, since sums may overlap; those of less than a slot add up to that.
    pub(super) fn sum(&mut self, before: f64, now: f64, bytes: f64, over: f64, most: f64) {
        let [before, now] = [before, now].map(|at| libm::floor(at / SLOT_S) as i64);
        self.go_on(self.newest.saturating_add(now.saturating_sub(before).max(0)));
        if over < SLOT_S {
            let slot = self.slot(self.newest);
            slot.bytes = (slot.bytes + bytes as f32).min((most * SLOT_S) as f32);
            return;
        }
        let each = (bytes / over).min(most) * SLOT_S;
        let slots = (libm::ceil(over / SLOT_S) as i64).min(SLOTS as i64);
        (0..slots).for_each(|back| self.slot(self.newest.saturating_sub(back)).bytes = each as f32);
    }

    fn slot(&mut self, number: i64) -> &mut Slot {
        &mut self.slots[number.rem_euclid(SLOTS as i64) as usize]
    }

    /// Slots up to that one begin.
    fn go_on(&mut self, slot: i64) {
        (self.newest.saturating_add(1)..=slot).rev().take(SLOTS).for_each(|empty| *self.slot(empty) = EMPTY);
        self.newest = self.newest.max(slot);
    }

    /// The packets take another way: delays of the old one say nothing of it.
    pub(super) fn forget_base(&mut self) {
        self.base = [f64::INFINITY; PERIODS];
        self.slots.iter_mut().for_each(|slot| slot.delay = f32::INFINITY);
    }

    /// Slots of so many seconds up to the newest arrival.
    fn lately(&self, seconds: f64) -> impl Iterator<Item = Slot> + '_ {
        let slots = (libm::round(seconds / SLOT_S) as usize).clamp(1, SLOTS);
        (0..slots as i64).map(move |back| self.slots[(self.newest - back).rem_euclid(SLOTS as i64) as usize])
    }

    /// Bytes a second that arrived in the last `seconds`, at most 0.56.
    pub(super) fn rate(&self, seconds: f64) -> f64 {
        // The newest slot is half over, in the mean.
        let seconds = seconds.min(SLOT_S * SLOTS as f64);
        self.lately(seconds).map(|slot| f64::from(slot.bytes)).sum::<f64>() / (seconds - SLOT_S / 2.0)
    }

    fn base(&self) -> f64 {
        self.base.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The queueing delay that no packet of the last `seconds` was below; zero before the first.
    pub(super) fn standing_queue(&self, seconds: f64) -> f64 {
        let least = self.lately(seconds).map(|slot| f64::from(slot.delay)).fold(f64::INFINITY, f64::min);
        if least.is_finite() { (least - self.base()).max(0.0) } else { 0.0 }
    }

    /// The queueing delay of the packet that was added last.
    pub(super) fn last_queue(&self) -> f64 {
        let base = self.base();
        if base.is_finite() { (self.last_delay - base).max(0.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 B every 10 ms with a delay of 20 ms, in bursts of three of which the first has no queue.
    #[test]
    fn bursts_are_no_standing_queue() {
        let mut arrivals = Arrivals::new();
        for n in 0..300 {
            let burst = f64::from(n % 3) * 0.004;
            arrivals.add(0.01 * f64::from(n), 7.0 + 0.01 * f64::from(n), -3.0 + burst, 1000);
        }
        assert_eq!(arrivals.standing_queue(0.05), 0.0);
        assert!((arrivals.last_queue() - 0.008).abs() < 1e-9);
        assert!((arrivals.rate(0.4) / 100_000.0 - 1.0).abs() < 0.02, "{}", arrivals.rate(0.4));
        // A queue that stands, and that becomes the base half a minute later.
        let mut later = |from: i32, to: i32| {
            (from..to).for_each(|n| {
                arrivals.add(0.01 * f64::from(n), 7.0 + 0.01 * f64::from(n), -2.97, 1000);
            });
            arrivals.standing_queue(0.05)
        };
        assert!((later(300, 400) - 0.03).abs() < 1e-6);
        assert!((later(400, 2_900) - 0.03).abs() < 1e-6);
        assert!(later(2_900, 4_000).abs() < 1e-6);
    }

    /// The receiver's clock is 100 ppm fast, and nothing came for ten minutes.
    #[test]
    fn the_base_is_forgotten_in_a_pause() {
        for (pause, queue) in [(5.0, 0.06), (600.0, 0.0)] {
            let mut arrivals = Arrivals::new();
            (0..50).for_each(|n| arrivals.add(0.1 * f64::from(n), 0.1 * f64::from(n), 0.02, 1000));
            let later = 5.0 + pause;
            arrivals.add(later, later, 0.08, 1000);
            assert!((arrivals.standing_queue(0.08) - queue).abs() < 1e-6, "{pause}");
        }
    }

    /// 37,500 B/s told of by sums: each second, of a second; each 50 ms, of the last 200 ms; without a packet, too.
    #[test]
    fn sums_are_rates_of_their_time() {
        let sums = [
            (1.0, 1.0),
            (0.05, 0.2),
            (0.05, 0.05),
            (0.2, 0.2),
            (0.012, 0.012),
            (0.002, 0.002),
            (0.004, 0.004),
        ];
        for ((every, over), with_packet, rate) in sums
            .into_iter()
            .flat_map(|sum| [(sum, true, 37_500.0), (sum, false, 37_500.0), (sum, true, 150.0)])
        {
            let mut arrivals = Arrivals::new();
            let mut before = 5.0;
            for n in 1..1_000 {
                let now = 5.0 + every * f64::from(n);
                if with_packet || n == 1 {
                    arrivals.add(now, now, 0.02, 0);
                    before = now;
                }
                arrivals.sum(before, now, rate * over, over, f64::INFINITY);
                before = now;
                if every * f64::from(n) > 1.0 {
                    let rates = [0.15, 0.4].map(|seconds| arrivals.rate(seconds) / rate);
                    assert!(rates.iter().all(|rate| (rate - 1.0).abs() < 0.05), "{every}, {over}: {rates:?}");
                }
            }
            for (now, over) in [(1e9, 0.001), (f64::MAX, f64::MAX), (0.0, 0.0), (f64::MAX, 1.0)] {
                arrivals.sum(before, now, f64::MAX, over, 1e9);
                assert!(arrivals.rate(0.4) >= 0.0);
            }
            // Four at once, each of a lie.
            let mut arrivals = Arrivals::new();
            let at = |n: i32| 0.01 * f64::from(n / 4);
            (1..200).for_each(|n| arrivals.sum(at(n - 1), at(n), 1e9, over, 2.0 * rate));
            assert!(arrivals.rate(0.15) <= 2.1 * rate, "{over}: {}", arrivals.rate(0.15));
        }
    }

    #[test]
    fn steps_of_a_clock_begin_anew() {
        let mut arrivals = Arrivals::new();
        arrivals.add(0.0, 0.0, 0.1, 1000);
        arrivals.add(0.1, 0.1, 0.1, 1000);
        for step in [1e6, -1e9, f64::MAX, f64::MIN] {
            arrivals.add(0.2, step, step, 1000);
            assert_eq!((arrivals.standing_queue(0.08), arrivals.last_queue()), (0.0, 0.0));
            assert!((arrivals.rate(0.4) - 1000.0 / 0.3975).abs() < 1e-6);
        }
        // Set back by more than is kept.
        let mut arrivals = Arrivals::new();
        for step in [0.0, -5.0, -5.6] {
            (0..10).for_each(|n| arrivals.add(0.2, step + 0.01 * f64::from(n), step, 1000));
            assert_eq!((arrivals.standing_queue(0.08), arrivals.last_queue()), (0.0, 0.0));
        }
    }

    #[test]
    fn another_path_has_a_base_of_its_own() {
        let mut arrivals = Arrivals::new();
        arrivals.add(0.0, 0.0, 0.0, 1000);
        arrivals.forget_base();
        arrivals.add(0.1, 0.1, 0.3, 1000);
        assert!(arrivals.standing_queue(0.5) < 1e-6 && arrivals.last_queue() == 0.0);
    }
}
