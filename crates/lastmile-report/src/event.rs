//! Events in words, for lines, lists and timelines.

use lastmile::time::Time;

/// Tone of an event, for its drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// A result, or a step towards one.
    Good,
    /// Something discarded or refused.
    Bad,
    /// Anything else.
    Neutral,
}

/// An event in words. The text is not escaped.
#[derive(Clone, Debug)]
pub struct Told {
    /// The lane of the timeline that it stands in.
    pub lane: &'static str,
    /// Its tone.
    pub mood: Mood,
    /// The event in words.
    pub text: String,
}

/// An event, when it happened and at which node.
#[derive(Clone, Debug)]
pub struct Happened {
    /// When.
    pub at: Time,
    /// At which node.
    pub node: u32,
    /// The event in words.
    pub told: Told,
}
