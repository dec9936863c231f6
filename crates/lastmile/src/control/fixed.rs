//! A rate that nothing changes: the baseline, and what measures a path by load.

use super::{Controller, Feedback, Information, Made, Output, RateController, Sent, Setting, Signal};
use crate::options::{Given, Options};
use crate::telemetry::Visitor;
use crate::time::Time;
use crate::units::Rate;

crate::options! {
    /// The fixed rate's parameters.
    pub struct FixedConfig {
        /// The rate of IP packets; nothing for the setting's start, or 1 Mbit/s
        rate: Option<Rate> [Rate::ip(1)..=Rate::ip(1_000_000_000_000)] = None, "our own";
    }
}

/// Its place in the registry.
pub const ENTRY: Controller = Controller {
    name: "fixed",
    about: "one rate, whatever the network says",
    paper: "our own",
    classifier: None,
    needs: Information::Sums,
    below: "the same",
    options: FixedConfig::OPTIONS,
    make,
};

fn make(given: &Given, setting: &Setting) -> Made {
    let config = FixedConfig::read(given)?;
    let rate = config.rate.or(setting.start).unwrap_or(Rate::ip(1_000_000));
    Ok(Box::new(Fixed { rate: setting.within(rate.bits_per_second() as f64 / 8.0) }))
}

#[derive(Clone, Debug)]
struct Fixed {
    rate: Rate,
}

impl RateController for Fixed {
    fn on_sent(&mut self, _: Time, _: &Sent) {}
    fn on_feedback(&mut self, _: Time, _: &mut Feedback<'_>) {}
    fn on_signal(&mut self, _: Time, _: Signal) {}
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
    fn on_timeout(&mut self, _: Time) {}
    fn output(&self) -> Output {
        Output::rate(self.rate)
    }
    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.number("rate", "bit/s", self.rate.bits_per_second() as f64);
    }

    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}
