//! Spruce: available bandwidth of a known capacity, by the spread of pairs at Poisson times.
//!
//! J. Strauss, D. Katabi, F. Kaashoek, "A measurement study of available bandwidth estimation tools", IMC 2003. The two packets of a pair leave as far apart as
//! one takes at the bottleneck, of capacity C: the second reaches the queue before the first has left it, so that what comes between them
//! is what others sent meanwhile. Pairs at Poisson times see the mean of that (100 of them, at most a twentieth of the path):
//!
//! > A = C (1 - (out - in) / in), the mean over pairs
//!
//! C is given, or found by [`capprobe`](super::capprobe), whose row then stands before the answer: an error of C is one of A.
//!
//! **Faithful** to version 0.3 is: no pair counts for more than C or for less than -0.8 C, and pairs leave 1472 B apart at C, of which the receiver
//! makes 1500 B, so that it takes C 1.9 % too high. On an idle path packets of 1500 B come that much further apart than they left, and make up for it.

use crate::estimate::known_capacity::KnownCapacity;
use crate::estimate::{
    Base, Conditions, Estimate, Estimator, Guard, Method, Probes, Quantity, Search, Signal, Step, StreamPlan,
    Value, Warning, WarningCode, bits_per_second,
};
use crate::observe::pairs::NOISE_SHARE;
use crate::observe::signal::{self, Gap};
use crate::observe::{StreamVerdict, stats};
use crate::options::Options;
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::{Bytes, Rate};

crate::options! {
    /// Spruce's parameters.
    pub struct SpruceConfig {
        /// Pairs in all
        pairs: usize [10..=10_000] = 100, "Spruce: 100";
        /// The mean time between pairs at least; longer on slow paths, of which pairs take a twentieth
        pair_gap: Span [Span::from_millis(1)..=Span::from_secs(10)] = Span::from_millis(100), "Spruce 0.3: 100 ms";
        /// Size of the packets at the IP layer
        packet_size: Bytes [Bytes(100)..=Bytes(65_000)] = Bytes(1500), "Spruce: 1500 B";
        /// The capacity at the IP layer [default: found as by capprobe]
        capacity: Option<Rate> [Rate::ip(1_000)..=Rate::ip(1_000_000_000_000)] = None, "Spruce: known";
        /// The part of the path that pairs may take
        load: f64 [0.001..=0.5] = 0.05, "Spruce: 5 %";
        /// Do as the original program: shares of pairs cut off, 1472 B taken for 1500, no look at the path
        faithful: bool = false, "Spruce 0.3";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "spruce",
    about: "available bandwidth of a known capacity, or of CapProbe's, by the spread of pairs at Poisson times",
    paper: "Strauss, Katabi, Kaashoek, Spruce, IMC 2003",
    estimates: &[Quantity::Capacity, Quantity::AvailableBandwidth],
    pattern: &[Probes::PoissonPairs],
    signal: Signal::Gap,
    search: &[Search::Algorithmic],
    weak: "where the busy link is not the narrow one, and with a wrong capacity; a single answer is uncertain by a tenth of the capacity beside packets as large as its own",
    round_trip: true,
    in_all: true,
    resolution: "1 us: 600 Mbit/s with the 2 us that kernels add; 250 us: 4.8 Mbit/s",
    options: SpruceConfig::OPTIONS,
    brief: &[("pairs", "20"), ("pair_gap", "20 ms"), ("load", "0.2"), ("capacity", "10 Mbit/s")],
    make: |given, conditions| Ok(Box::new(Spruce::new(SpruceConfig::read(given)?, *conditions))),
};

/// Pairs in a stream: an estimate can be given after each.
const AT_ONCE: usize = 10;
/// Streams in a row that may tell nothing.
const ATTEMPTS: u32 = 4;
/// A pair counts for this share of C at least [Spruce 0.3].
const FLOOR: f64 = -0.8;
/// Mean time between pairs at most (our own): below 240 kbit/s the load is above 5 %, a run ends within minutes, and a server keeps its state.
const LONGEST: Span = Span::from_secs(2);
/// Payload of the original's packets, and what its receiver takes them for.
const PAYLOAD: f64 = 1472.0 / 1500.0;

/// The part of the capacity that a pair saw free.
fn share(gap: &Gap, faithful: bool) -> f64 {
    let [sent, received] = [gap.sent, gap.received].map(Span::as_secs_f64);
    let free = 1.0 - (received - sent) / sent; // [Spruce eq. 1]
    if faithful { free.clamp(FLOOR, 1.0) } else { free }
}

/// The tool.
pub struct Spruce {
    config: SpruceConfig,
    base: Base,
    guard: Guard,
    capacity: KnownCapacity,
    shares: Vec<f64>,
    streams: Vec<u32>,
}

impl Spruce {
    /// Ready to start.
    pub fn new(config: SpruceConfig, conditions: Conditions) -> Spruce {
        Spruce {
            base: Base::of(
                conditions,
                config.faithful,
                "by the original program's rules: the capacity is taken 1.9 % too high",
            ),
            guard: Guard::with_burst(config.faithful),
            capacity: KnownCapacity::new(config.capacity, Some(config.packet_size), conditions),
            shares: Vec::new(),
            streams: Vec::new(),
            config,
        }
    }

    /// Between the two packets of a pair.
    fn within(&self) -> Span {
        let within = self.capacity.time_for(self.config.packet_size);
        if self.config.faithful { within.scaled(PAYLOAD) } else { within }
    }

    fn found(&self, more: &[Warning]) -> Vec<Estimate> {
        let capacity = self.capacity.rate() / if self.config.faithful { PAYLOAD } else { 1.0 };
        let left = stats::mean(&self.shares).unwrap_or(0.0).clamp(0.0, 1.0) * capacity;
        let left = Estimate {
            warnings: self.base.said(more.iter().cloned()),
            ..self.base.estimate(
                Quantity::AvailableBandwidth,
                Value::Is(bits_per_second(left)),
                &self.streams,
            )
        };
        let mut found = vec![left];
        self.guard.warn(self.capacity.rate(), &mut found);
        self.capacity.before(found)
    }
}

impl Estimator for Spruce {
    fn step(&mut self) -> Step {
        if let Some(step) = self.capacity.step(&mut self.base) {
            return step;
        }
        if let Some(step) = self.base.step() {
            return step;
        }
        let SpruceConfig { packet_size, pair_gap, load, .. } = self.config;
        if let Some(plan) = self.guard.plan(packet_size) {
            return self.base.send(plan);
        }
        let within = self.within();
        let mean = pair_gap.max(within.scaled(2.0 / load)); // [Spruce 0.3]
        let mean = if self.config.faithful { mean } else { mean.min(LONGEST.max(pair_gap)) };
        let plan: StreamPlan = self.base.poisson_pairs(AT_ONCE, packet_size, within, mean);
        self.base.send(plan)
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.base.is_done() {
            return;
        }
        if self.capacity.takes(record) || self.guard.takes(record, &mut self.base) {
            return;
        }
        let verdict = self.base.judge(record, 2 * AT_ONCE);
        self.base.warn_round_trip();
        let pause = self.base.exponential(self.config.pair_gap);
        self.base.pause(pause.min(Span::from_secs(1)));
        if self.within() < self.base.noise(record) * NOISE_SHARE && !self.config.faithful {
            self.streams.push(record.stream);
            let text = "a pair's gap is too short for these hosts to time";
            return self.capacity.end_unknown(&mut self.base, text, &self.streams);
        }
        let gaps = signal::pair_gaps(record, !self.config.faithful);
        let wrong = [StreamVerdict::NoReport, StreamVerdict::ClockStepped, StreamVerdict::Reordered];
        if gaps.is_empty() || wrong.contains(&verdict) {
            return self.base.waste_of(record, verdict, ATTEMPTS);
        }
        self.base.useful();
        self.guard.see(record, 2, &mut self.base);
        self.streams.push(record.stream);
        self.shares.extend(
            gaps.iter().filter(|gap| gap.sent > Span::ZERO).map(|gap| share(gap, self.config.faithful)),
        );
        if self.streams.len() * AT_ONCE >= self.config.pairs && self.shares.len() * 2 >= self.config.pairs {
            self.base.found(self.found(&[]));
        } else if self.base.sent as usize > 4 * self.config.pairs.div_ceil(AT_ONCE) {
            self.base.waste(StreamVerdict::TooLossy, 0);
        }
    }

    fn shrink(&mut self, size: Bytes) -> bool {
        let shrinks = self.base.shrink(&mut self.config.packet_size, size, !self.streams.is_empty());
        if shrinks {
            self.capacity.shrink(size);
        }
        shrinks
    }

    fn so_far(&self) -> Vec<Estimate> {
        if self.base.is_done() || self.shares.is_empty() {
            return Vec::new();
        }
        let text = format!("from {} of {} pairs", self.shares.len(), self.config.pairs);
        self.found(&[Warning { code: WarningCode::Partial, text }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Outcome, build};
    use crate::observe::testing::record;

    fn gap(sent: i64, received: i64) -> Gap {
        Gap { at: 1, sent: Span::from_micros(sent), received: Span::from_micros(received), size: Bytes(1500) }
    }

    /// 1200 us at 10 Mbit/s: a pair that came 1680 us apart met 480 us of others, four tenths; one that came 3600 us apart two packets of 1500 B.
    #[test]
    fn a_pair_sees_what_came_between() {
        assert!((share(&gap(1_200, 1_680), false) - 0.6).abs() < 1e-9);
        assert!((share(&gap(1_200, 3_600), false) + 1.0).abs() < 1e-9);
        assert!((share(&gap(1_200, 1_080), false) - 1.1).abs() < 1e-9);
        assert!((share(&gap(1_200, 3_600), true) + 0.8).abs() < 1e-9);
        assert!((share(&gap(1_200, 1_080), true) - 1.0).abs() < 1e-9);
    }

    /// Every second pair meets a packet of 1200 us, the others none: half is left. The original's pairs are 1177.6 us apart, so that a packet of
    /// that time takes 1 - 1 = 0 of 10.19 Mbit/s.
    #[test]
    fn what_is_left_is_the_mean_of_all_pairs() {
        for (choice, left, seen) in [
            ("spruce(capacity=10 Mbit/s)", 5e6, 1),
            ("spruce(capacity=10 Mbit/s, faithful=true)", 5.095e6, 0),
        ] {
            let mut tool = build(&choice.parse().unwrap(), &Conditions::exact(1)).unwrap();
            let (mut bursts, mut streams) = (0, 0);
            let found = loop {
                match tool.step() {
                    Step::Pause(_) => {}
                    Step::Done(Outcome::Found(found)) => break found,
                    Step::Done(Outcome::Refused(why)) => panic!("{why}"),
                    Step::Send(plan) => {
                        let planned: Vec<u64> =
                            plan.packets.iter().map(|p| p.offset.as_nanos() as u64 / 1_000).collect();
                        let begin = streams * 5_000_000;
                        let sent: Vec<u64> = planned.iter().map(|at| begin + at).collect();
                        let burst = plan.packets.len() == 40;
                        let came = (0..sent.len() as u64).map(|k| {
                            let met = !burst && k % 4 == 3;
                            let gap = sent[1] - sent[0];
                            Some(
                                900 + sent[k as usize] + if burst { k * 1_200 } else { u64::from(met) * gap },
                            )
                        });
                        let came: Vec<_> = came.collect();
                        (bursts, streams) = (bursts + u64::from(burst), streams + 1);
                        tool.on_stream(&record(plan.pattern, &planned, &sent, &came));
                    }
                }
            };
            let rate = found[0].value.rate().unwrap().bits_per_second() as f64;
            // Pairs that the next one overtakes do not count: at most two.
            assert!((rate / left - 1.0).abs() < 0.02, "{choice}: {rate}");
            assert_eq!((found.len(), bursts, streams), (1, seen, 10 + seen), "{choice}");
        }
    }

    #[test]
    fn without_a_capacity_it_asks_capprobe() {
        let mut tool = build(&"spruce".parse().unwrap(), &Conditions::exact(1)).unwrap();
        let Step::Send(plan) = tool.step() else { panic!() };
        assert_eq!((plan.packets.len(), plan.packets[0].size), (40, Bytes(1500)));
    }
}
