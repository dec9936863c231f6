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

use crate::estimate::known_capacity::FreeShare;
use crate::estimate::{
    Conditions, Estimate, Estimator, Method, Probes, Quantity, Search, Signal, Step, StreamPlan, Warning,
    WarningCode,
};
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
    free: FreeShare,
    shares: Vec<f64>,
}

impl Spruce {
    /// Ready to start.
    pub fn new(config: SpruceConfig, conditions: Conditions) -> Spruce {
        let text = "by the original program's rules: the capacity is taken 1.9 % too high";
        let faithful = (config.faithful, text);
        let free = FreeShare::new(conditions, faithful, config.capacity, Some(config.packet_size));
        Spruce { config, free, shares: Vec::new() }
    }

    /// Between the two packets of a pair.
    fn within(&self) -> Span {
        let within = self.free.capacity.time_for(self.config.packet_size);
        if self.config.faithful { within.scaled(PAYLOAD) } else { within }
    }

    fn found(&self, more: Option<Warning>) -> Vec<Estimate> {
        let capacity = self.free.capacity.rate() / if self.config.faithful { PAYLOAD } else { 1.0 };
        let left = stats::mean(&self.shares).unwrap_or(0.0).clamp(0.0, 1.0) * capacity;
        self.free.found(left, None, more)
    }
}

impl Estimator for Spruce {
    fn step(&mut self) -> Step {
        let SpruceConfig { packet_size, pair_gap, load, .. } = self.config;
        if let Some(step) = self.free.step(packet_size) {
            return step;
        }
        let within = self.within();
        let mean = pair_gap.max(within.scaled(2.0 / load)); // [Spruce 0.3]
        let mean = if self.config.faithful { mean } else { mean.min(LONGEST.max(pair_gap)) };
        let plan: StreamPlan = self.free.base.poisson_pairs(AT_ONCE, packet_size, within, mean);
        self.free.base.send(plan)
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        let verdict = self.free.judge(record, 2 * AT_ONCE, self.config.pair_gap);
        let Some(verdict) = verdict else { return };
        let text = "a pair's gap is too short for these hosts to time";
        if self.free.is_too_short(self.within(), record, text) {
            return;
        }
        let gaps = signal::pair_gaps(record, !self.config.faithful);
        let wrong = [StreamVerdict::NoReport, StreamVerdict::ClockStepped, StreamVerdict::Reordered];
        if gaps.is_empty() || wrong.contains(&verdict) {
            return self.free.base.waste_of(record, verdict, ATTEMPTS);
        }
        self.free.base.useful();
        self.free.guard.see(record, 2, &mut self.free.base);
        self.free.streams.push(record.stream);
        self.shares.extend(
            gaps.iter().filter(|gap| gap.sent > Span::ZERO).map(|gap| share(gap, self.config.faithful)),
        );
        if self.free.streams.len() * AT_ONCE >= self.config.pairs
            && self.shares.len() * 2 >= self.config.pairs
        {
            self.free.base.found(self.found(None));
        } else if self.free.base.sent as usize > 4 * self.config.pairs.div_ceil(AT_ONCE) {
            self.free.base.waste(StreamVerdict::TooLossy, 0);
        }
    }

    fn shrink(&mut self, size: Bytes) -> bool {
        let shrinks =
            self.free.base.shrink(&mut self.config.packet_size, size, !self.free.streams.is_empty());
        if shrinks {
            self.free.capacity.shrink(size);
        }
        shrinks
    }

    fn so_far(&self) -> Vec<Estimate> {
        if self.free.base.is_done() || self.shares.is_empty() {
            return Vec::new();
        }
        let text = format!("from {} of {} pairs", self.shares.len(), self.config.pairs);
        self.found(Some(Warning { code: WarningCode::Partial, text }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::build;
    use crate::estimate::known_capacity::testing;

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
            let gap = |sent: &[u64]| sent[1] - sent[0];
            let (rate, counts) = testing::found(choice, |_, sent, k| if k % 4 == 3 { gap(sent) } else { 0 });
            // Pairs that the next one overtakes do not count: at most two.
            assert!((rate / left - 1.0).abs() < 0.02, "{choice}: {rate}");
            assert_eq!(counts, [1, seen, 10 + seen], "{choice}");
        }
    }

    #[test]
    fn without_a_capacity_it_asks_capprobe() {
        let mut tool = build(&"spruce".parse().unwrap(), &Conditions::exact(1)).unwrap();
        let Step::Send(plan) = tool.step() else { panic!() };
        assert_eq!((plan.packets.len(), plan.packets[0].size), (40, Bytes(1500)));
    }
}
