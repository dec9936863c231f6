//! The program `lastmile`.

fn main() {}
