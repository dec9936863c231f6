//! IIAD: inverse increase, additive decrease, as a rate (Bansal, Balakrishnan, INFOCOM 2001; k = 1, l = 0).

use super::binomial::{BinomialOptions, make};
use super::window::BinomialConfig;
use super::{Controller, Information};
use crate::options::Options;

/// Its place in the registry.
pub const ENTRY: Controller = Controller {
    name: "iiad",
    about: "inverse increase, additive decrease: a window's law, its window spread over a round-trip time",
    paper: "Bansal, Balakrishnan, INFOCOM 2001: binomial with k = 1, l = 0",
    classifier: None,
    needs: Information::Fates,
    below: "counts arrivals by their bytes, and a decrease at most for each round-trip time with a loss",
    options: BinomialOptions::OPTIONS,
    make: |given, setting| make(given, setting, BinomialConfig::IIAD),
};
