//! Queues, error models and traffic against other programs and against the formulas of the papers they come from, in
//! cells that no table of the papers has. The other programs' figures stand beside, as they printed them.
#![allow(unreachable_pub, clippy::print_stdout)] // the tables, with --nocapture

mod codel;
#[path = "../common/mod.rs"]
mod common;
mod fq_codel;
mod links;
mod loss;
mod pie;
mod red_cell;
mod red_poisson;
mod red_tcp;
mod shaper;
mod traffic;
