//! Proportional Integral controller Enhanced: RFC 8033, with its ECN (5.1), derandomization (5.4) and cap on the growth
//! of the probability (5.5).
//!
//! The latency is the wait of the packet that was sent last, zero where none is left behind it: the time stamps that
//! section 4.3 allows, and what Linux and ns-3 do unless told otherwise. PIE is always active (5.3 is optional).

use lastmile::rng::Stream;
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};

use super::{Ahead, Fate, Fifo, Law, Parameters, Single, Verdict, Waiting};

lastmile::options! {
    /// Parameters of PIE.
    pub struct Pie {
        /// QDELAY_REF: the latency that it steers to
        target: Span [Span::from_nanos(1)..=Span::from_secs(3_600)] = Span::from_millis(15), "section 4.2";
        /// T_UPDATE: how often the probability changes
        update: Span [Span::from_micros(100)..=Span::from_secs(3_600)] = Span::from_millis(15), "section 4.2";
        /// Hz: how much the distance from the target counts
        alpha: f64 [0.0..=1e6] = 0.125, "section 4.2";
        /// Hz: how much the trend counts
        beta: f64 [0.0..=1e6] = 1.25, "section 4.2";
        /// MAX_BURST: a burst of this length passes
        max_burst: Span [Span::ZERO..=Span::from_secs(3_600)] = Span::from_millis(150), "section 4.4";
        /// MEAN_PKTSIZE: no more than two of these waiting are left alone
        mean_packet: Bytes = Bytes(1000), "section 4.1";
        /// Mark those packets that can be instead of dropping them
        ecn: bool = false, "section 5.1";
        /// mark_ecnth: from this probability on they are dropped as well
        mark_threshold: f64 [0.0..=1.0] = 0.1, "section 5.1";
        /// Space the drops more evenly than independent draws do
        derandomize: bool = false, "section 5.4";
    }
}

impl Parameters for Pie {
    type Queue = Single<State>;
    const KIND: &'static str = "pie";
    const SOURCE: &'static str = "RFC 8033";

    fn queue(&self, _: Option<Rate>, random: Stream) -> Single<State> {
        Single::new(State::new(self, random))
    }

    #[cfg(test)]
    fn lively(ecn: bool) -> Pie {
        let (alpha, beta) = (40.0, 400.0);
        Pie { alpha, beta, update: Span::from_millis(1), max_burst: Span::ZERO, ecn, ..Pie::default() }
    }
}

/// State that each update renews.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Control {
    /// drop_prob_.
    probability: f64,
    /// qdelay_old_, in seconds.
    before: f64,
    /// burst_allowance_.
    burst: u64,
}

#[derive(Debug)]
pub(crate) struct State {
    config: Pie,
    target: f64,
    update: u64,
    update_at: u64,
    max_burst: u64,
    control: Control,
    /// current_qdelay, in seconds.
    delay: f64,
    /// accu_prob_.
    accumulated: f64,
    random: Stream,
}

impl State {
    fn new(config: &Pie, random: Stream) -> State {
        let ns = |span: Span| u64::try_from(span.as_nanos()).unwrap_or(0);
        let (update, max_burst) = (ns(config.update).max(1), ns(config.max_burst));
        State {
            config: config.clone(),
            target: config.target.as_secs_f64(),
            update,
            update_at: update,
            max_burst,
            control: Control { burst: max_burst, ..Control::default() },
            delay: 0.0,
            accumulated: 0.0,
            random,
        }
    }

    /// True if a latency is below half of the target.
    fn is_low(&self, delay: f64) -> bool {
        delay < self.target / 2.0
    }

    /// All the updates up to `now`, between which nothing came or left.
    fn update(&mut self, now: u64) {
        while self.update_at <= now {
            let next = self.updated();
            if next == self.control {
                // Nor will it change until something comes.
                self.update_at += (now - self.update_at) / self.update * self.update;
            }
            self.control = next;
            self.update_at += self.update;
        }
    }

    /// [section 4.2], with the burst allowance of 4.4.
    fn updated(&self) -> Control {
        let Control { probability, before, burst } = self.control;
        let mut p = self.config.alpha * (self.delay - self.target) + self.config.beta * (self.delay - before);
        p /= match probability {
            p if p < 0.000_001 => 2048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        if probability >= 0.1 {
            p = p.min(0.02); // 5.5
        }
        let mut probability = probability + p;
        if self.delay == 0.0 && before == 0.0 {
            probability *= 0.98;
        }
        let probability = probability.clamp(0.0, 1.0);
        let calm = probability == 0.0 && self.is_low(self.delay) && self.is_low(before);
        let burst = if calm { self.max_burst } else { burst.saturating_sub(self.update) };
        Control { probability, before: self.delay, burst }
    }

    /// [section 4.1; derandomized 5.4]: true if a packet that enters is to be dropped.
    fn drops(&mut self, bytes: u64) -> bool {
        let Control { probability, before, burst } = self.control;
        if burst > 0 || self.is_low(before) && probability < 0.2 || bytes <= 2 * self.config.mean_packet.0 {
            return false;
        }
        if self.config.derandomize {
            self.accumulated = if probability == 0.0 { 0.0 } else { self.accumulated + probability };
            if self.accumulated < 0.85 {
                return false;
            }
            if self.accumulated >= 8.5 {
                self.accumulated = 0.0;
                return true;
            }
        }
        let drops = self.random.unit() < probability;
        if drops {
            self.accumulated = 0.0;
        }
        drops
    }
}

impl Law for State {
    fn enqueue(&mut self, now: u64, ahead: Ahead, packet: &Waiting) -> Verdict {
        self.update(now);
        if ahead.full || !self.drops(ahead.bytes) {
            return Verdict::Accept;
        }
        let may_mark = self.config.ecn && self.control.probability < self.config.mark_threshold;
        Verdict::signal(may_mark, packet.ecn)
    }

    fn dequeue(&mut self, now: u64, queue: &mut Fifo, _: &mut impl Fate) -> Option<Waiting> {
        self.update(now);
        let packet = queue.pop()?;
        let waited = now.saturating_sub(packet.since) as f64 / 1e9;
        self.delay = if queue.is_empty() { 0.0 } else { waited };
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Noted;
    use super::*;
    use lastmile::node::Ecn;

    const MS: u64 = 1_000_000;

    fn pie(config: &Pie) -> State {
        State::new(config, Stream::new(1, "pie"))
    }

    #[test]
    fn the_probability_follows_the_controller() {
        let mut pie = pie(&Pie::default());
        // By hand: 0.125 * (0.035 - 0.015) + 1.25 * 0.035 = 0.04625, over 2048; then without a trend 0.0025 over 128.
        pie.delay = 0.035;
        pie.update(15 * MS);
        let first = 0.04625 / 2048.0;
        assert!((pie.control.probability - first).abs() < 1e-12, "{:?}", pie.control);
        pie.update(30 * MS - 1);
        assert!((pie.control.probability - first).abs() < 1e-12);
        pie.update(30 * MS);
        assert!((pie.control.probability - first - 0.0025 / 128.0).abs() < 1e-12);
        // At 0.1 and more a step is at most 0.02 upwards; downwards it is not capped.
        (pie.control.probability, pie.delay) = (0.3, 0.2);
        pie.update(45 * MS);
        assert!((pie.control.probability - 0.32).abs() < 1e-12);
        pie.delay = 0.0;
        pie.update(60 * MS);
        // 0.125 * -0.015 + 1.25 * -0.2 = -0.251875.
        assert!((pie.control.probability - 0.068125).abs() < 1e-12);
        // Then 2 % less each time beside the controller, down to nothing; a burst may come again.
        pie.update(75 * MS);
        assert!((pie.control.probability - (0.068125 - 0.001875 / 2.0) * 0.98).abs() < 1e-12);
        assert_eq!(pie.control.burst, 75 * MS);
        pie.update(1_000_000 * MS);
        let rest = Control { probability: 0.0, before: 0.0, burst: 150 * MS };
        assert_eq!((pie.control, pie.update_at), (rest, 1_000_005 * MS));
    }

    #[test]
    fn bursts_short_queues_and_low_latency_are_left_alone() {
        let mut pie = pie(&Pie::default());
        (pie.control.probability, pie.control.before) = (1.0, 0.02);
        assert!(!pie.drops(60_000)); // its burst allowance is whole
        pie.control.burst = 0;
        assert!(pie.drops(60_000));
        assert!(!pie.drops(2_000));
        (pie.control.probability, pie.control.before) = (0.199, 0.0074);
        assert!((0..1_000).all(|_| !pie.drops(60_000)));
    }

    #[test]
    fn drops_come_with_the_probability_and_derandomized_apart() {
        for derandomize in [false, true] {
            let mut pie = pie(&Pie { derandomize, ..Pie::default() });
            pie.control = Control { probability: 0.0625, before: 0.02, burst: 0 };
            let at: Vec<usize> = (0..20_000).filter(|_| pie.drops(60_000)).collect();
            let gaps = at.windows(2).map(|pair| pair[1] - pair[0]);
            let (shortest, longest) = (gaps.clone().min().unwrap(), gaps.max().unwrap());
            if derandomize {
                // Chance decides from 0.85 / 0.0625 on, the 14th, up to the 136th: 13 + 16 on the average.
                assert!(
                    shortest == 14 && longest <= 136 && (640..740).contains(&at.len()),
                    "{shortest} {longest}"
                );
            } else {
                assert!(shortest == 1 && (1_150..1_350).contains(&at.len()), "{shortest} {}", at.len());
            }
        }
    }

    #[test]
    fn what_can_be_is_marked_up_to_the_threshold() {
        let mut pie = pie(&Pie { ecn: true, ..Pie::default() });
        let (mut noted, ahead) = (Noted::default(), Ahead { packets: 60, bytes: 60_000, full: false });
        let mut seen = |probability, ecn| {
            pie.control = Control { probability, before: 0.02, burst: 0 };
            let packet = noted.packet(1, 0, 1_000, ecn);
            (0..1_000).map(|_| pie.enqueue(0, ahead, &packet)).find(|&verdict| verdict != Verdict::Accept)
        };
        assert_eq!(seen(0.099, Ecn::Ect0), Some(Verdict::Mark));
        assert_eq!(seen(0.099, Ecn::NotEct), Some(Verdict::Drop));
        assert_eq!(seen(0.1, Ecn::Ect0), Some(Verdict::Drop));
    }
}
