//! ECN codepoints on the command line.

use clap::ValueEnum;
use lastmile::node::Ecn;

/// The ECN codepoint as an option.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EcnArg {
    NotEct,
    Ect0,
    Ect1,
}

impl From<EcnArg> for Ecn {
    fn from(ecn: EcnArg) -> Ecn {
        match ecn {
            EcnArg::NotEct => Ecn::NotEct,
            EcnArg::Ect0 => Ecn::Ect0,
            EcnArg::Ect1 => Ecn::Ect1,
        }
    }
}
