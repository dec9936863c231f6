//! The binomial laws as rate controllers: the part common to `iiad` and `sqrt`.
//!
//! Bansal, Balakrishnan, "Binomial congestion control algorithms", INFOCOM 2001.

use super::window::{Binomial, BinomialConfig};
use super::window_rate::{Shape, WindowRate};
use super::{Made, Setting};
use crate::options::{Given, Options};

crate::options! {
    /// The numbers of a binomial law whose exponents are given.
    pub struct BinomialOptions {
        /// The increase: w grows by a / w^k in a round-trip time
        a: f64 [0.001..=100.0] = 1.0, "Bansal, Balakrishnan: 1.5 b is TCP's throughput";
        /// The decrease: w shrinks by b w^l
        b: f64 [0.001..=0.999] = 0.667, "Bansal, Balakrishnan: a / 1.5";
        /// Count fractions of a packet in the window too, which TCP does not send
        fractions: bool = false, "our own";
    }
}

/// A controller with these exponents.
pub(super) fn make(given: &Given, setting: &Setting, named: BinomialConfig) -> Made {
    let BinomialOptions { a, b, fractions } = BinomialOptions::read(given)?;
    let law = Binomial::new(BinomialConfig { a, b, ..named });
    Ok(Box::new(WindowRate::new(Box::new(law), Shape { fractions, ..Shape::default() }, setting)))
}
