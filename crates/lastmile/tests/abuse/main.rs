//! Attacks on the two endpoints: bad paths, forged and malformed packets, dishonest peers, and what must hold anyway.

mod amplification;
mod forge;
mod loops;
mod paths;
mod replay;
mod sessions;
mod tools;
mod world;
