//! ECNProbe: the rate from which on routers mark a train's packets.
//!
//! Hei, Chen, Bensaou, Tsang, "Towards unified self-congestion probing for bandwidth measurement", 2008, section III.C. Each round sends W packets of
//! L bytes at the rate x(t) and waits for the receiver's word. r is the share of packets that came marked (ECN):
//!
//! > r > gamma: x(t) is too fast; r < gamma: x(t) is not; |r - gamma| < epsilon: x(t) is the available bandwidth
//!
//! with a binary search between. The paper names W = 60, L = 500 and gamma = 0.05, and neither epsilon nor where the search begins and gives up.
//!
//! **Ours.** Routers mark by a mean of their queue, so that a train must fill a queue for long before it is marked. 60 packets of 500 B hardly do
//! at 10 Mbit/s: docs/validation.md has the error of the paper's W and gamma. At a twentieth of marks the same router drops a twentieth of the others'
//! packets that must not be marked, and the train has that rate in addition. Hence W = 960 and gamma = 0.005. The search begins with the rate at
//! which a burst comes, and doubles while nothing is marked. A pause behind each train drains the queue. A path that marks nothing gives a refusal.

use crate::estimate::search::Bracket;
use crate::estimate::{
    Base, Conditions, Estimator, Guard, Method, Probes, Quantity, Refusal, Search, Signal, Step, StreamPlan,
    Value, Warning, WarningCode, bits_per_second,
};
use crate::node::Ecn;
use crate::observe::{StreamVerdict, signal};
use crate::options::{OptionError, Options};
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::{Bytes, Rate};

crate::options! {
    /// ECNProbe's parameters.
    pub struct EcnProbeConfig {
        /// Packets of a train, W [default: 960, or 60 with faithful]
        train_length: Option<usize> [8..=2_048] = None, "ECNProbe, appendix A: 60";
        /// Size of the packets at the IP layer, L
        packet_size: Bytes [Bytes(100)..=Bytes(65_000)] = Bytes(500), "ECNProbe, appendix A";
        /// Share of marked packets at the turning point, gamma [default: 0.005, or 0.05 with faithful]
        mark_ratio: Option<f64> [0.0001..=0.9] = None, "ECNProbe, appendix A: 0.05";
        /// Distance from that share at which the search ends, epsilon [default: 1 / train_length]
        epsilon: Option<f64> [0.0..=0.5] = None, "our own: ECNProbe names none";
        /// Width of the range at which the search ends, as a share of its upper end
        resolution: f64 [0.001..=0.5] = 0.02, "our own: ECNProbe names none";
        /// First rate [default: the rate at which a burst of 60 packets comes]
        first_rate: Option<Rate> [Rate::ip(10_000)..=Rate::ip(1_000_000_000_000)] = None, "our own: ECNProbe names none";
        /// Rounds at most
        max_rounds: u32 [2..=100] = 20, "our own: ECNProbe names none";
        /// Pause between trains at least; a queue that the train filled is given the time to drain
        pause: Span [Span::ZERO..=Span::from_secs(60)] = Span::from_millis(100), "our own: ECNProbe names none";
        /// Do as the paper: its train length and mark ratio, and no check of the path
        faithful: bool = false, "ECNProbe";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "ecnprobe",
    about: "available bandwidth as the rate from which on routers mark packets (ECN); needs a queue that marks",
    paper: "Hei, Chen, Bensaou, Tsang, Towards unified self-congestion probing for bandwidth measurement, 2008",
    estimates: &[Quantity::AvailableBandwidth],
    pattern: &[Probes::Bursts, Probes::Trains],
    signal: Signal::Marks,
    search: &[Search::Binary],
    weak: "on paths whose busy queue does not mark, beside flows that answer to marks, and with trains too short to fill the queue",
    round_trip: false,
    in_all: true,
    resolution: "any: it counts marks, and paces trains of half a megabyte",
    options: EcnProbeConfig::OPTIONS,
    brief: &[("train_length", "60"), ("max_rounds", "4"), ("pause", "10 ms")],
    make: |given, conditions| {
        let config = EcnProbeConfig::read(given)?;
        if config.epsilon.is_some_and(|epsilon| epsilon >= config.mark_ratio()) {
            let reason = format!("must be less than `mark_ratio`, which is {}", config.mark_ratio());
            return Err(OptionError::new("epsilon", reason));
        }
        Ok(Box::new(EcnProbe::new(config, *conditions)))
    },
};

impl EcnProbeConfig {
    /// W.
    fn train_length(&self) -> usize {
        self.train_length.unwrap_or(if self.faithful { 60 } else { 960 })
    }

    /// Gamma.
    fn mark_ratio(&self) -> f64 {
        self.mark_ratio.unwrap_or(if self.faithful { 0.05 } else { 0.005 })
    }
}

/// Packets of the burst with which the search begins.
const BURST: usize = 60;
/// The search ends without a mark at so many times its first rate. Our own: it goes on while trains arrive as fast as they left, since a burst
/// that was held up shows too low a rate.
const MOST: f64 = 4.0;
/// Trains in a row that may tell nothing.
const ATTEMPTS: u32 = 5;

/// A queue is given the time to drain that it needs where this share of the capacity is left (our own).
const LEAST_LEFT: f64 = 0.05;

/// A train that arrives at less than this share of its rate filled a queue, marked or not (our own).
const SLOWED: f64 = 0.95;
/// A train this much faster than the answer has to fill a queue (our own).
const FASTER: f64 = 1.2;

/// A train's rate, the rate at which it arrived, in bit/s, and the verdict by its marks.
#[derive(Clone, Copy, Debug)]
struct Train {
    rate: f64,
    came: f64,
    too_fast: bool,
}

/// The tool.
///
/// ```
/// use lastmile::estimate::{Estimator, Step, ecnprobe::{EcnProbe, EcnProbeConfig}};
/// use lastmile::node::Ecn;
/// let mut ecnprobe = EcnProbe::new(EcnProbeConfig::default(), Default::default());
/// let Step::Send(plan) = ecnprobe.step() else { panic!("it starts with a burst") };
/// assert_eq!((plan.packets.len(), plan.packets[0].ecn), (60, Ecn::Ect0));
/// ```
pub struct EcnProbe {
    config: EcnProbeConfig,
    base: Base,
    guard: Guard,
    /// Rate of the next train, x(t) in bit/s; none before the first burst.
    rate: Option<f64>,
    /// Rate at which the search may end without a mark.
    most: f64,
    bracket: Bracket,
    rounds: u32,
    /// True once a packet came marked.
    marked: bool,
    /// Trains so far.
    trains: Vec<Train>,
    streams: Vec<u32>,
}

impl EcnProbe {
    /// Ready to start.
    pub fn new(config: EcnProbeConfig, conditions: Conditions) -> EcnProbe {
        EcnProbe {
            base: Base::of(
                conditions,
                config.faithful,
                "by the paper's rules, with trains that hardly fill a queue",
            ),
            guard: Guard::new(config.faithful),
            rate: config.first_rate.map(|rate| rate.bits_per_second() as f64),
            most: config.first_rate.map_or(0.0, |rate| MOST * rate.bits_per_second() as f64),
            bracket: Bracket::new(0.0, None),
            rounds: 0,
            marked: false,
            trains: Vec::new(),
            streams: Vec::new(),
            config,
        }
    }

    fn on_burst(&mut self, record: &StreamRecord) {
        let gaps = signal::gaps(record, false);
        self.rate = signal::throughput(&gaps);
        match self.rate {
            Some(rate) => {
                self.most = MOST * rate;
                self.base.useful();
            }
            None => self.base.waste(StreamVerdict::TooLossy, ATTEMPTS),
        }
    }

    fn on_train(&mut self, record: &StreamRecord, rate: f64) {
        self.rounds += 1;
        // Nothing arrived as a packet that may be marked: a router, or the other host, clears the codepoint.
        let Some(ratio) = signal::marks(record) else {
            return self.base.refuse(Refusal::Unmarked { cleared: true });
        };
        self.base.useful();
        self.streams.push(record.stream);
        self.marked |= ratio > 0.0;
        // [ECNProbe, section III.C]
        let too_fast = ratio > self.config.mark_ratio();
        self.bracket.take(rate, too_fast);
        let came = signal::throughput(&signal::gaps(record, false));
        self.trains.extend(came.map(|came| Train { rate, came, too_fast }));
        let epsilon = self.config.epsilon.unwrap_or(1.0 / self.config.train_length() as f64);
        let is_at_an_end = self.bracket.high().is_none()
            && self.bracket.low() >= self.most
            && (self.config.faithful || came.is_none_or(|came| came < SLOWED * rate));
        let is_at_the_turn = (ratio - self.config.mark_ratio()).abs() < epsilon;
        let narrow = |high: &f64| self.bracket.width() <= self.config.resolution * high;
        if is_at_the_turn {
            self.end(rate);
        } else if let Some(high) = self.bracket.high().filter(narrow) {
            self.end((self.bracket.low() + high) / 2.0);
        } else if self.rounds >= self.config.max_rounds || is_at_an_end {
            self.base.refuse(match self.marked {
                true => Refusal::NotConverged { streams: self.base.sent },
                false => Refusal::Unmarked { cleared: false },
            });
        }
        self.rate = Some(self.bracket.next());
    }

    /// True (our own) if a queue overflowed before it marked anything: it does not mark.
    fn overflowed(&self, record: &StreamRecord, rate: f64) -> bool {
        let came = signal::throughput(&signal::gaps(record, false));
        let is_unmarked = !self.marked && signal::marks(record) == Some(0.0);
        !self.config.faithful
            && is_unmarked
            && record.lost() > 0
            && came.is_some_and(|came| came < SLOWED * rate)
    }

    /// Share of the capacity that is known to be left, of the burst's rate: a queue that drops nothing drains at that (our own).
    fn left(&self) -> f64 {
        let capacity = (self.most / MOST).max(1.0);
        let least = if self.config.faithful { 0.25 } else { LEAST_LEFT };
        (self.bracket.low() / capacity).clamp(least, 0.25)
    }

    fn end(&mut self, rate: f64) {
        let value = Value::Is(bits_per_second(rate));
        let mut found = vec![self.base.estimate(Quantity::AvailableBandwidth, value, &self.streams)];
        self.guard.warn(rate, &mut found);
        found[0].warnings.extend(self.doubt(rate).filter(|_| !self.config.faithful));
        self.base.found(found);
    }

    /// Warning (our own) of trains whose rates of arrival contradict the marks: a router that marks late lets a train fill its queue, and one whose
    /// queue others fill marks trains of any rate.
    fn doubt(&self, answer: f64) -> Option<Warning> {
        let any = |contradicts: &dyn Fn(&Train) -> bool| self.trains.iter().any(contradicts);
        let late = any(&|train| !train.too_fast && train.came < SLOWED * train.rate);
        let early =
            any(&|train| train.too_fast && train.rate > FASTER * answer && train.came > train.rate * SLOWED);
        let text = match (late, early) {
            (true, _) => {
                "trains arrived slower than they left and had no marks: a queue marks late, and less may be left"
            }
            (_, true) => {
                "trains had marks and arrived as fast as they left: others' packets fill a queue that marks, and more may be left"
            }
            _ => return None,
        };
        Some(Warning { code: WarningCode::PoorFit, text: text.into() })
    }
}

impl Estimator for EcnProbe {
    fn step(&mut self) -> Step {
        if let Some(step) = self.base.step() {
            return step;
        }
        let size = self.config.packet_size;
        let mut plan = match self.rate {
            None => StreamPlan::burst(BURST, size),
            Some(rate) => StreamPlan::train(self.config.train_length(), size, bits_per_second(rate)),
        };
        plan.packets.iter_mut().for_each(|packet| packet.ecn = Ecn::Ect0);
        self.base.send(plan)
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.base.is_done() {
            return;
        }
        let planned = if self.rate.is_some() { self.config.train_length() } else { BURST };
        let verdict = self.base.judge(record, planned);
        self.base.drain_at(record, self.config.pause, self.left());
        self.guard.see(record, planned, &mut self.base);
        match self.rate {
            Some(rate) if self.overflowed(record, rate) => {
                self.base.refuse(Refusal::Unmarked { cleared: false });
            }
            _ if verdict != StreamVerdict::Believed => self.base.waste(verdict, ATTEMPTS),
            None => self.on_burst(record),
            Some(rate) => self.on_train(record, rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Outcome;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    /// By hand: a train of 8 Mbit/s without marks that came at 7; one of 8 with marks that came at 8, beside an answer of 5.
    #[test]
    fn arrivals_that_contradict_marks_are_told_of() {
        let mut tool = EcnProbe::new(EcnProbeConfig::default(), Conditions::exact(1));
        let mut said = |rate, came, too_fast| {
            tool.trains = vec![Train { rate, came, too_fast }];
            tool.doubt(5e6).map(|doubt| (doubt.code, doubt.text.contains("marks late")))
        };
        assert_eq!(said(8e6, 7e6, true), None);
        assert_eq!(said(8e6, 8e6, false), None);
        assert_eq!(said(8e6, 7e6, false), Some((WarningCode::PoorFit, true)));
        assert_eq!(said(8e6, 8e6, true), Some((WarningCode::PoorFit, false)));
        assert_eq!(said(5.5e6, 5.5e6, true), None);
    }

    /// Sends what it asks for over a path that marks, at a rate of x, `marks(x)` of so many packets.
    fn run(config: EcnProbeConfig, marks: impl Fn(u64, usize) -> Option<usize>) -> (Outcome, Vec<u64>) {
        let mut tool = EcnProbe::new(config, Conditions::exact(1));
        let mut tried = Vec::new();
        loop {
            match tool.step() {
                Step::Done(outcome) => return (outcome, tried),
                Step::Pause(_) => {}
                Step::Send(plan) => {
                    let burst = plan.duration() == Span::ZERO;
                    let us = |k: usize| plan.packets[k].offset.as_nanos() as u64 / 1_000;
                    let sent: Vec<u64> = (0..plan.packets.len()).map(us).collect();
                    let rate = plan.rate().map_or(0, |rate| rate.bits_per_second());
                    let marked = marks(rate, plan.packets.len());
                    // A burst comes at 8 Mbit/s, a train with marks alone at four fifths of its rate.
                    let slowed = if marked == Some(sent.len()) { 5 } else { 4 };
                    let came =
                        |k: usize| Some(900 + if burst { 500 * k as u64 } else { sent[k] * slowed / 4 });
                    let came: Vec<Option<u64>> = (0..sent.len()).map(came).collect();
                    let pattern = if burst { Pattern::Burst } else { Pattern::Train };
                    let mut stream = record(pattern, &sent, &sent, &came);
                    for (k, packet) in stream.packets.iter_mut().enumerate() {
                        packet.size = Bytes(500);
                        packet.ecn = match marked {
                            None => Ecn::NotEct,
                            Some(marked) if k < marked => Ecn::Ce,
                            Some(_) => Ecn::Ect0,
                        };
                    }
                    tried.extend((!burst).then_some(rate));
                    tool.on_stream(&stream);
                }
            }
        }
    }

    /// From 8 Mbit/s, the burst's: all marked above 5, so 8, 4, 6, 5, where 3 of 60 are a twentieth and the search ends.
    #[test]
    fn it_halves_the_range_and_ends_at_the_mark_ratio() {
        let config = EcnProbeConfig { faithful: true, ..EcnProbeConfig::default() };
        let near = |rate: u64, mbps: u64| rate.abs_diff(mbps * 1_000_000) < 20_000;
        let (outcome, tried) = run(config, |rate, n| {
            Some(match rate {
                _ if near(rate, 5) => 3,
                5_000_000.. => n,
                _ => 0,
            })
        });
        assert!(tried.iter().zip([8, 4, 6, 5]).all(|(rate, mbps)| near(*rate, mbps)), "{tried:?}");
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        assert!(near(found[0].value.rate().unwrap().bits_per_second(), 5), "{found:?}");
        assert_eq!(tried.len(), 4);
    }

    /// Nothing is marked up to 8 and all above 10.1: 8, 16, 12, 10, 11, 10.5, 10.25, 10.125, and the range is a fiftieth.
    #[test]
    fn it_doubles_while_nothing_is_marked_and_ends_with_a_narrow_range() {
        let (outcome, tried) =
            run(EcnProbeConfig::default(), |rate, n| Some(if rate > 10_100_000 { n } else { 0 }));
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        let said = found[0].value.rate().unwrap().bits_per_second();
        assert!(said.abs_diff(10_100_000) < 150_000, "{said} {tried:?}");
    }

    /// The burst came at a fifth of what passes without a mark.
    #[test]
    fn a_burst_that_was_held_up_does_not_end_the_search() {
        let (outcome, tried) =
            run(EcnProbeConfig::default(), |rate, n| Some(if rate > 40_000_000 { n } else { 0 }));
        let Outcome::Found(found) = outcome else { panic!("{outcome:?} {tried:?}") };
        let said = found[0].value.rate().unwrap().bits_per_second();
        assert!(said.abs_diff(40_000_000) < 600_000, "{said} {tried:?}");
    }

    /// By hand: a train of 16 Mbit/s came at 8 and lost a packet.
    #[test]
    fn a_queue_that_overflows_before_it_marks_is_refused_at_once() {
        for (lost, refuses) in [(true, true), (false, false)] {
            let config =
                EcnProbeConfig { first_rate: Some(Rate::ip(16_000_000)), ..EcnProbeConfig::default() };
            let mut tool = EcnProbe::new(config, Conditions::exact(1));
            let sent: Vec<u64> = (0..960).map(|k| 250 * k).collect();
            let came: Vec<Option<u64>> =
                (0..960).map(|k| (!lost || k != 500).then_some(900 + 500 * k)).collect();
            let mut train = record(Pattern::Train, &sent, &sent, &came);
            for packet in &mut train.packets {
                (packet.size, packet.ecn) = (Bytes(500), Ecn::Ect0);
            }
            tool.on_stream(&train);
            let refusal = Step::Done(Outcome::Refused(Refusal::Unmarked { cleared: false }));
            assert_eq!(tool.step() == refusal, refuses);
        }
    }

    #[test]
    fn a_path_without_marks_is_refused() {
        let config = EcnProbeConfig { max_rounds: 3, ..EcnProbeConfig::default() };
        let refused = |outcome| matches!(outcome, Outcome::Refused(Refusal::Unmarked { .. }));
        let (outcome, tried) = run(config.clone(), |_, _| Some(0));
        assert!(refused(outcome) && tried.len() == 3, "{tried:?}");
        let (outcome, tried) = run(config, |_, _| None);
        assert!(outcome == Outcome::Refused(Refusal::Unmarked { cleared: true }) && tried.len() == 1);
    }
}
