//! Needs of runs in the lab beside those of the simulator.

use lastmile::time::Span;
use lastmile_net::lab::LabError;
use lastmile_net::lab::run::LabRunError;

use crate::error::Error;

/// Uncertainty that kernels add to the resolution of their stamps.
pub(crate) const KERNEL_NOISE: Span = Span::from_micros(2);

impl From<LabRunError> for Error {
    fn from(error: LabRunError) -> Error {
        match error {
            LabRunError::Run(error) => error.into(),
            LabRunError::UnknownHost(..) | LabRunError::Lab(LabError::Start { .. }) => Error::input(error),
            _ => Error::machine(error),
        }
    }
}
