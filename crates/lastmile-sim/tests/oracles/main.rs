//! The numbers of programs that nobody here wrote (ns-2 2.35, ns-3 3.37) and of arithmetic, each beside ours, with the
//! tolerance that it is held to. One module per table; `tables/` has what a run prints, so that a number that moved
//! within its tolerance is seen as well. `LASTMILE_UPDATE_DOCS=1` writes those files anew: read the difference before committing it.
//!
//! All runs are made from scenario files, the ready ones where there is one.
#![allow(unreachable_pub)]

mod channel;
#[path = "../../../lastmile/tests/documents/mod.rs"]
mod documents;
mod lda;
mod loss;
mod red;
mod rig;
mod same_losses;
mod saturation;
mod spare;
mod table;
mod tfrc;
