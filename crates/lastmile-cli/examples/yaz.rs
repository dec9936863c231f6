//! Yaz, a tool of one's own beside those of the program: `cargo run -p lastmile-cli --example yaz -- methods`.
//!
//! Sommers, Barford, Willinger, "A proposed framework for calibration of available bandwidth estimation tools", ISCC 2006. Trains whose
//! packets arrive further apart than they left find more in the path than is left; the next one is slower by half of that.

use lastmile::estimate::{
    Base, Conditions, Estimate, Estimator, Guard, Method, Probes, Quantity, Refusal, Search, Signal, Step,
    StreamPlan, Value, bits_per_second,
};
use lastmile::observe::{StreamVerdict, signal};
use lastmile::options::Options;
use lastmile::report::StreamRecord;
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};

lastmile::options! {
    /// Yaz's parameters.
    pub struct YazConfig {
        /// Packets of a train
        packets: usize [10..=1_000] = 50, "Yaz: 50";
        /// The mean time between trains
        pause: Span [Span::from_millis(1)..=Span::from_secs(1)] = Span::from_millis(50), "Yaz: 50 ms";
        /// Size of the packets at the IP layer
        packet_size: Bytes [Bytes(100)..=Bytes(65_000)] = Bytes(1500), "Yaz: 1500 B";
        /// The rate to begin with
        max_rate: Rate [Rate::ip(10_000)..=Rate::ip(1_000_000_000)] = Rate::ip(20_000_000), "our own: an example";
        /// Rates closer than this are one
        resolution: Rate [Rate::ip(1_000)..=Rate::ip(100_000_000)] = Rate::ip(1_000_000), "Yaz: 1 Mbit/s";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "yaz",
    about: "what is left, from trains that slow down until they come as they went",
    paper: "Sommers, Barford, Willinger, ISCC 2006",
    estimates: &[Quantity::AvailableBandwidth],
    pattern: &[Probes::Trains],
    signal: Signal::Gap,
    search: &[Search::Linear],
    weak: "beside bursts of others, which a single train meets or not",
    round_trip: false,
    in_all: true,
    resolution: "1 us: 600 Mbit/s",
    options: YazConfig::OPTIONS,
    brief: &[("packets", "20")],
    make: |given, conditions| Ok(Box::new(Yaz::new(YazConfig::read(given)?, *conditions))),
};

/// Trains in all, a tenth of which may tell nothing in a row.
const MOST: u32 = 30;

/// The tool.
pub struct Yaz {
    config: YazConfig,
    base: Base,
    guard: Guard,
    /// The next train's rate, in bit/s.
    rate: f64,
}

impl Yaz {
    /// Ready to start.
    pub fn new(config: YazConfig, conditions: Conditions) -> Yaz {
        let rate = config.max_rate.bits_per_second() as f64;
        Yaz { config, base: Base::new(conditions), guard: Guard::new(false), rate }
    }

    fn found(&self, rate: f64, stream: u32) -> Vec<Estimate> {
        let left = Value::Is(bits_per_second(rate));
        let mut found = vec![self.base.estimate(Quantity::AvailableBandwidth, left, &[stream])];
        self.guard.warn(rate, &mut found);
        found
    }
}

impl Estimator for Yaz {
    fn step(&mut self) -> Step {
        if let Some(step) = self.base.step() {
            return step;
        }
        let YazConfig { packets, packet_size, .. } = self.config;
        self.base.send(StreamPlan::train(packets, packet_size, bits_per_second(self.rate)))
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        let verdict = self.base.judge(record, self.config.packets);
        self.guard.see(record, self.config.packets, &mut self.base);
        let pause = self.base.exponential(self.config.pause);
        self.base.drain(record, pause.min(Span::from_secs(1)));
        let rates = signal::rates(&signal::gaps(record, true)).filter(|_| verdict == StreamVerdict::Believed);
        let Some([sent, came]) = rates else { return self.base.waste(verdict, MOST / 10) };
        self.base.useful();
        if sent - came <= self.config.resolution.bits_per_second() as f64 {
            self.base.found(self.found(came, record.stream));
        } else if self.base.sent >= MOST {
            self.base.refuse(Refusal::NotConverged { streams: self.base.sent });
        }
        // The gap grows by half of what it was spread.
        self.rate = 2.0 / (1.0 / sent + 1.0 / came);
    }
}

fn main() -> std::process::ExitCode {
    lastmile_cli::run(lastmile_cli::Own { methods: &[&ENTRY], ..lastmile_cli::Own::default() })
}
