//! Options that say how to measure, for every command that measures.

use anyhow::anyhow;
use lastmile::estimate::{COALESCING, Estimator, MethodConfig};
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use serde::{Deserialize, Serialize};

use crate::exit::Exit;

/// A method and its parameters; what a recording keeps of them.
#[derive(clap::Args, Clone, Debug, Serialize, Deserialize)]
#[command(next_help_heading = "Method")]
pub(crate) struct MethodArgs {
    /// How to measure; `lastmile methods` lists the names
    #[arg(long, value_name = "NAME", default_value = "wbest")]
    pub(crate) method: String,
    /// Trains to average; from four on there is an interval for the available bandwidth [default: 1]
    #[arg(long, value_name = "N")]
    #[serde(default, deserialize_with = "more_than_one")]
    pub(crate) trains: Option<usize>,
    /// Packets in a train [default: 30]
    #[arg(long, value_name = "N")]
    pub(crate) train_length: Option<usize>,
    /// Packet pairs [default: 30]
    #[arg(long, value_name = "N")]
    pub(crate) pairs: Option<usize>,
    /// Size of probe packets at the IP layer [default: 1488 B]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) packet_size: Option<Bytes>,
    /// Rather under-estimate: the upper decile of the pairs' rates for the capacity
    #[arg(long)]
    pub(crate) conservative: bool,
    /// Do as the original program did, quirks included
    #[arg(long)]
    pub(crate) faithful: bool,
    /// Tell wireless from congestion losses with this classifier
    #[arg(long, value_name = "NAME")]
    pub(crate) classifier: Option<String>,
    /// The capacity at the IP layer, where it is known: no pairs are sent
    #[arg(long, value_name = "RATE")]
    pub(crate) capacity: Option<Rate>,
}

/// Bytes with a unit, or a bare number.
pub(crate) fn bytes(text: &str) -> Result<Bytes, String> {
    match text.parse::<u64>() {
        Ok(n) => Ok(Bytes(n)),
        Err(_) => text.parse::<Bytes>().map_err(|e| e.to_string()),
    }
}

/// One train is what recordings say of methods that know none.
fn more_than_one<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    Ok(Option::<usize>::deserialize(deserializer)?.filter(|&trains| trains != 1))
}

impl MethodArgs {
    /// That method with its defaults.
    pub(crate) fn named(method: &str, trains: Option<usize>) -> MethodArgs {
        MethodArgs {
            method: method.to_owned(),
            trains,
            train_length: None,
            pairs: None,
            packet_size: None,
            conservative: false,
            faithful: false,
            classifier: None,
            capacity: None,
        }
    }

    /// The state machine. `noise` is the uncertainty of stamps beyond their resolution.
    pub(crate) fn build(&self, noise: Span, seed: u64) -> anyhow::Result<Box<dyn Estimator>> {
        let config = MethodConfig {
            trains: self.trains,
            train: self.train_length,
            pairs: self.pairs,
            packet_size: self.packet_size,
            conservative: self.conservative,
            faithful: self.faithful,
            classifier: self.classifier.clone(),
            capacity: self.capacity,
            timing_noise: noise,
            // Where stamps are exact nobody coalesces interrupts.
            coalescing: if noise > Span::ZERO { COALESCING } else { Span::ZERO },
            seed,
        };
        lastmile::estimate::build(&self.method, &config)
            .map_err(|error| Exit::Usage.blame(anyhow!("{error}")))
    }
}

/// What kernels add to the resolution of their stamps.
pub(crate) const KERNEL_NOISE: Span = Span::from_micros(2);
