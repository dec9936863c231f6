//! All losses are congestion: the view of a sender without a classifier, and the baseline of tables.

use super::{Arrival, Classifier, Cost, Lda, Loss, LossClass};
use crate::options::{Given, NoOptions, OptionError, Options};

/// Knows nothing.
///
/// ```
/// use lastmile::classify::{Classifier, Loss, LossClass, NoClassifier};
/// assert_eq!(NoClassifier.classify(&Loss::of(0, 1)), LossClass::Congestion);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NoClassifier;

/// Its place in the registry.
pub const ENTRY: Lda = Lda {
    name: "none",
    about: "all losses are congestion",
    paper: "LDA, section III: unaware TFRC",
    resolution: "any: no stamps of arrival",
    cost: Cost { arrival: [0, 0], loss: [0, 0], state: 0 },
    options: NoOptions::OPTIONS,
    build,
};

fn build(given: &Given) -> Result<Box<dyn Classifier>, OptionError> {
    NoOptions::read(given)?;
    Ok(Box::new(NoClassifier))
}

impl Classifier for NoClassifier {
    fn on_arrival(&mut self, _: &Arrival) {}

    fn classify(&mut self, _: &Loss) -> LossClass {
        LossClass::Congestion
    }

    fn clone_box(&self) -> Box<dyn Classifier> {
        Box::new(*self)
    }
}
