//! Veno, a classifier of one's own beside those of the program: `cargo run -p lastmile-cli --example veno -- classifiers`.
//!
//! Fu, Liew, "TCP Veno: TCP enhancement for transmission over wireless access networks", IEEE JSAC 21(2), 2003, section II.
//! With few packets of the flow in queues a loss is the wireless link's. TCP counts them from its window; here they are the
//! rate at which packets come times the queueing delay.

use lastmile::classify::{Arrival, Classifier, Cost, Lda, Loss, LossClass};
use lastmile::options::Options;
use lastmile::telemetry::Visitor;
use lastmile::time::{Span, Time, Tx};

lastmile::options! {
    /// Veno's parameter.
    pub struct VenoConfig {
        /// Packets in queues from which on a loss is congestion
        beta: f64 [0.1..=100.0] = 3.0, "Veno, section II.A: beta = 3";
    }
}

/// Its place in the registry.
pub const ENTRY: Lda = Lda {
    name: "veno",
    about: "congestion while three packets of the flow or more are in queues",
    paper: "Fu, Liew, IEEE JSAC 21(2), 2003",
    resolution: "any: no stamps of arrival",
    cost: Cost { arrival: [4, 2], loss: [1, 0], state: size_of::<Veno>() },
    options: VenoConfig::OPTIONS,
    build: |given| Ok(Box::new(Veno { config: VenoConfig::read(given)?, ..Veno::default() })),
};

/// Veno's state.
#[derive(Clone, Debug, Default)]
pub struct Veno {
    config: VenoConfig,
    /// BaseRTT.
    min_rtt: Option<Span>,
    /// When the round began, by when its first packet left, and packets that came since.
    round: Option<(Time<Tx>, u32)>,
    /// N of the last round.
    queued: Option<f64>,
}

impl Classifier for Veno {
    fn on_arrival(&mut self, arrival: &Arrival) {
        let (began, packets) = self.round.get_or_insert((arrival.sent, 0));
        *packets += 1;
        let Some(rtt) = arrival.rtt else { return };
        let min_rtt = *self.min_rtt.insert(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        let span = arrival.sent - *began;
        if span >= rtt {
            // N = Actual (RTT - BaseRTT)
            self.queued = Some(f64::from(*packets) / span.as_secs_f64() * (rtt - min_rtt).as_secs_f64());
            self.round = None;
        }
    }

    fn classify(&mut self, _: &Loss) -> LossClass {
        let few = self.queued.is_some_and(|queued| queued < self.config.beta);
        if few { LossClass::Wireless } else { LossClass::Congestion }
    }

    fn on_route_change(&mut self) {
        *self = Veno { config: self.config.clone(), ..Veno::default() };
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        self.queued.into_iter().for_each(|queued| visitor.number("packets in queues", "", queued));
    }

    fn clone_box(&self) -> Box<dyn Classifier> {
        Box::new(self.clone())
    }
}

fn main() -> std::process::ExitCode {
    lastmile_cli::run(lastmile_cli::Own { classifiers: &[&ENTRY], ..lastmile_cli::Own::default() })
}
