//! Decisions of a classifier at work: verdicts, and changes of the judge.

use super::{LossClass, Name};
use crate::time::Span;

/// A decision about losses, or about their judge.
///
/// ```
/// use lastmile::{classify::{Decision, Discriminator}, time::Span};
/// let mut discriminator = Discriminator::new(&"spike".parse()?)?;
/// let Some(Decision::FellBack { from, to, .. }) = discriminator.suit(None) else { panic!() };
/// assert_eq!((from, to), ("spike", "spike-rtt"));
/// # Ok::<(), lastmile::options::ChoiceError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "event", rename_all = "kebab-case")
)]
#[non_exhaustive]
pub enum Decision {
    /// Lost packets were judged: as many in a row as were found at once and got the same verdict.
    LossJudged {
        /// The first packet's number.
        id: u64,
        /// Packets.
        packets: u32,
        /// The verdict.
        class: LossClass,
        /// Classifier that judged.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "super::name"))]
        by: Name,
    },
    /// A classifier stepped aside, since times of arrival are too coarse for it or missing.
    FellBack {
        /// Classifier that stepped aside.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "super::name"))]
        from: Name,
        /// Classifier that judges instead.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "super::name"))]
        to: Name,
        /// The coarsest stamps with which the first would work.
        needs: Span,
        /// Resolution of the feedback's times of arrival; `None` if it has none.
        resolution: Option<Span>,
    },
    /// A classifier took more for lost by the wireless link than a link can well lose: all losses are congestion from now on.
    Doubted {
        /// The doubted classifier.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "super::name"))]
        classifier: Name,
        /// The share of packets that it judged to be lost by the wireless link.
        wireless: f64,
    },
    /// A classifier judges again.
    Restored {
        /// Classifier that judges.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "super::name"))]
        to: Name,
    },
}
