//! Knows the cause of each loss, from the simulator's side channel: the best that any classifier could do.
//!
//! Cen, Cosman, Voelker (LDA), section III: omniscient TFRC. Each packet of a gap with mixed causes is judged by its own.
//! Without a side channel, as everywhere but in the simulator, all losses are congestion.

use super::{Arrival, Classifier, Cost, Lda, Loss, LossClass};
use crate::options::{Given, NoOptions, OptionError, Options};

/// Says what [`Loss::truth`] says.
///
/// ```
/// use lastmile::classify::{Classifier, Loss, LossClass, Omniscient};
/// let told = Loss { truth: Some(LossClass::Wireless), ..Loss::of(0, 1) };
/// assert_eq!(Omniscient.classify(&told), LossClass::Wireless);
/// assert_eq!(Omniscient.classify(&Loss::of(0, 1)), LossClass::Congestion);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Omniscient;

/// Its place in the registry.
pub const ENTRY: Lda = Lda {
    name: "omniscient",
    about: "the true cause of each loss: in the simulator alone, by a side channel",
    paper: "Cen, Cosman, Voelker, IEEE/ACM ToN 2003, section III",
    resolution: "any: no stamps of arrival",
    cost: Cost { arrival: [0, 0], loss: [0, 0], state: 0 },
    options: NoOptions::OPTIONS,
    build,
};

fn build(given: &Given) -> Result<Box<dyn Classifier>, OptionError> {
    NoOptions::read(given)?;
    Ok(Box::new(Omniscient))
}

impl Classifier for Omniscient {
    fn on_arrival(&mut self, _: &Arrival) {}

    fn classify(&mut self, loss: &Loss) -> LossClass {
        loss.truth.unwrap_or(LossClass::Congestion)
    }

    fn is_certain(&self) -> bool {
        true
    }

    fn clone_box(&self) -> Box<dyn Classifier> {
        Box::new(*self)
    }
}
