//! RAP: additive increase, multiplicative decrease of a rate.
//!
//! Rejaie, Handley, Estrin, "RAP: an end-to-end rate-based congestion control mechanism for realtime streams in the Internet",
//! INFOCOM 1999. A packet per round-trip time more in each, half on loss. Its fine grain multiplies the gap between packets by
//! a short average of the round-trip time over a long one; RAP's own weights for these are not at hand, so that they are TCP's
//! 1/8 and 1/100. The window's law starts with slow start, as TCP does.

use super::window::{Reno, RenoConfig};
use super::window_rate::{Shape, WindowRate};
use super::{Controller, Information, Made, Setting};
use crate::options::{Given, Options};

crate::options! {
    /// RAP's parameters.
    pub struct RapConfig {
        /// Packets per round-trip time more in each
        increase: f64 [0.001..=100.0] = 1.0, "RAP: 1";
        /// The part that a loss takes away
        decrease: f64 [0.001..=0.999] = 0.5, "RAP: 0.5";
        /// Follow the queue within a round-trip time
        fine_grain: bool = false, "RAP, section on fine-grain rate adaptation";
        /// Count fractions of a packet in the window too, which TCP does not send
        fractions: bool = true, "RAP adapts a rate";
    }
}

/// Its place in the registry.
pub const ENTRY: Controller = Controller {
    name: "rap",
    about: "additive increase, multiplicative decrease: TCP's law, its window spread over a round-trip time",
    paper: "Rejaie, Handley, Estrin, INFOCOM 1999",
    classifier: None,
    needs: Information::Fates,
    below: "counts arrivals by their bytes, and a decrease at most for each round-trip time with a loss",
    options: RapConfig::OPTIONS,
    make,
};

fn make(given: &Given, setting: &Setting) -> Made {
    let RapConfig { increase, decrease, fine_grain, fractions } = RapConfig::read(given)?;
    let law = Reno::new(RenoConfig { increase, decrease });
    Ok(Box::new(WindowRate::new(Box::new(law), Shape { fine_grain, fractions, clocked: true }, setting)))
}
