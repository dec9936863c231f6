//! Tools as the framework of ECNProbe has them (section III, figure 1 and Table I): a probe pattern, a congestion signal and the search
//! for a turning point.
//!
//! In each round t a sender lets a window of W(t) packets go at a rate of x(t), and a receiver answers with a congestion signal p(t), from which the next
//! window and rate follow. TCP does the same with a window of its own (the laws of `control/window/`). Here
//!
//! | of the framework | is |
//! |---|---|
//! | W(t) | the packets of a [`StreamPlan`](super::StreamPlan); its constructors are the patterns, and [`Base`](super::Base) draws random ones |
//! | x(t) | [`StreamPlan::rate`](super::StreamPlan::rate) |
//! | p(t) | a number from the stream's record: [`observe::signal`](crate::observe::signal) |
//! | the turning point | a rate or a gap found by [`search`](super::search), or a formula of the tool's own |
//! | control messages | [`Step`](super::Step)s, which an endpoint carries out |
//!
//! Tools call these parts, and nothing here calls a tool. [`Guard`](super::Guard) stands in front of each: it warns and refuses, and changes no number.

use core::fmt;

/// Gives each variant its words.
macro_rules! words {
    ($(#[$about:meta])* pub enum $Name:ident {$($(#[$doc:meta])* $Value:ident = $text:literal,)*}) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
        #[non_exhaustive]
        pub enum $Name {$($(#[$doc])* $Value,)*}

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {$($Name::$Value => $text,)*})
            }
        }
    };
}

words! {
    /// Shape of a tool's streams.
    ///
    /// ```
    /// use lastmile::estimate::Probes;
    /// assert_eq!(Probes::PoissonPairs.to_string(), "Poisson pairs");
    /// ```
    pub enum Probes {
        /// Two packets back to back, pairs far apart.
        Pairs = "pairs",
        /// Pairs at exponentially distributed distances.
        PoissonPairs = "Poisson pairs",
        /// Single packets far apart, each of which meets the path by itself.
        Packets = "single packets",
        /// Single packets at exponentially distributed distances.
        PoissonPackets = "Poisson packets",
        /// Packets at one rate.
        Trains = "trains",
        /// Packets back to back.
        Bursts = "bursts",
        /// Packets closer and closer, each gap a constant share of the one before.
        Chirps = "chirps",
    }
}

words! {
    /// Congestion signal p(t) that a tool reads from its streams.
    pub enum Signal {
        /// Gaps between packets, as they left and as they came.
        Gap = "delay gap",
        /// Delays themselves.
        Delay = "delay",
        /// The trend of a stream's delays.
        Trend = "delay trend",
        /// The rate at which a stream came.
        Throughput = "throughput",
        /// Losses.
        Loss = "loss",
        /// Marks of routers (ECN).
        Marks = "ECN marks",
    }
}

words! {
    /// Search for the turning point, at which the path is just full.
    pub enum Search {
        /// Halves a range.
        Binary = "binary search",
        /// Goes through a range step by step.
        Linear = "linear search",
        /// Fits a line.
        Regression = "regression",
        /// Averages estimates, one from each stream.
        Average = "average",
        /// Computes it by a formula.
        Algorithmic = "algorithmic computation",
    }
}
