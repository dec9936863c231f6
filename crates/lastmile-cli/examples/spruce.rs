//! Spruce, a tool of one's own beside those of the program: `cargo run -p lastmile-cli --example spruce -- methods`.
//!
//! Strauss, Katabi, Kaashoek, "A measurement study of available bandwidth estimation tools", IMC 2003. The capacity C is
//! known. Pairs leave at Poisson times, the two of a pair as far apart as C takes for one packet; packets of others
//! in between make them arrive further apart.

use lastmile::estimate::{
    Base, Conditions, Estimate, Estimator, Method, Quantity, Step, StreamPlan, Value, bits_per_second,
};
use lastmile::observe::StreamVerdict;
use lastmile::observe::{order::Order, schedule::Schedule, stats};
use lastmile::options::Options;
use lastmile::report::StreamRecord;
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};

lastmile::options! {
    /// Spruce's parameters.
    pub struct SpruceConfig {
        /// Pairs in all
        pairs: usize [10..=10_000] = 100, "Spruce: 100";
        /// The mean time between pairs
        pair_gap: Span [Span::from_millis(1)..=Span::from_secs(10)] = Span::from_millis(100), "Spruce: 100 ms, or 5 % of C";
        /// Size of the packets at the IP layer
        packet_size: Bytes [Bytes(100)..=Bytes(65_000)] = Bytes(1500), "Spruce: 1472 B of payload";
        /// The capacity at the IP layer
        known_capacity: Rate [Rate::ip(10_000)..=Rate::ip(1_000_000_000)] = Rate::ip(10_000_000), "our own: an example";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "spruce",
    about: "what is left of a known capacity, from how far pairs at Poisson times are spread",
    paper: "Strauss, Katabi, Kaashoek, IMC 2003",
    estimates: &[Quantity::AvailableBandwidth],
    round_trip: false,
    resolution: "1 us: 600 Mbit/s",
    options: SpruceConfig::OPTIONS,
    brief: &[("pairs", "30"), ("pair_gap", "30 ms")],
    make: |given, conditions| Ok(Box::new(Spruce::new(SpruceConfig::read(given)?, *conditions))),
};

/// Pairs in a stream: an estimate is possible after each.
const AT_ONCE: usize = 10;
/// Streams in a row that may tell nothing.
const ATTEMPTS: u32 = 3;

/// The tool.
pub struct Spruce {
    config: SpruceConfig,
    base: Base,
    /// Available bandwidth by each pair, as a share of the capacity.
    shares: Vec<f64>,
    streams: Vec<u32>,
}

impl Spruce {
    /// Ready to start.
    pub fn new(config: SpruceConfig, conditions: Conditions) -> Spruce {
        Spruce { config, base: Base::new(conditions), shares: Vec::new(), streams: Vec::new() }
    }

    fn estimate(&self) -> Estimate {
        let left = stats::mean(&self.shares).unwrap_or(0.0).max(0.0);
        let rate = bits_per_second(left * self.config.known_capacity.bits_per_second() as f64);
        self.base.estimate(Quantity::AvailableBandwidth, Value::Is(rate), &self.streams)
    }
}

impl Estimator for Spruce {
    fn step(&mut self) -> Step {
        if let Some(step) = self.base.step() {
            return step;
        }
        let SpruceConfig { packet_size, pair_gap, known_capacity, .. } = self.config;
        let (mut at, within) = (Span::ZERO, known_capacity.time_for(packet_size));
        let offsets = (0..AT_ONCE).flat_map(|_| {
            let first = at;
            at = first + within + self.base.exponential(pair_gap);
            [first, first + within]
        });
        Step::Send(StreamPlan::uneven(offsets.collect::<Vec<_>>(), packet_size))
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        let verdict = self.base.judge(record, 2 * AT_ONCE);
        let (order, schedule) = (Order::of(record), Schedule::of(record));
        let share = |i: usize| {
            let (sent, received) = (record.send_gap(i)?.0, record.receive_gap(i)?);
            let more = (received - sent).max(Span::ZERO).as_secs_f64() / sent.as_secs_f64();
            (order.usable(i) && schedule.held()[i]).then_some((1.0 - more).max(-0.8)) // Spruce 0.3
        };
        let shares: Vec<f64> = (1..record.packets.len()).step_by(2).filter_map(share).collect();
        if shares.is_empty() || matches!(verdict, StreamVerdict::NoReport | StreamVerdict::ClockStepped) {
            return self.base.waste(verdict, ATTEMPTS);
        }
        self.base.useful();
        self.base.pause(self.config.pair_gap);
        self.streams.push(record.stream);
        self.shares.extend(shares);
        if self.shares.len() >= self.config.pairs {
            self.base.found(vec![self.estimate()]);
        }
    }

    fn so_far(&self) -> Vec<Estimate> {
        if self.base.is_done() || self.shares.is_empty() { Vec::new() } else { vec![self.estimate()] }
    }
}

fn main() -> std::process::ExitCode {
    lastmile_cli::run(lastmile_cli::Own { methods: &[&ENTRY], ..lastmile_cli::Own::default() })
}
