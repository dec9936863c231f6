//! Bad input and faults of the network, as a user meets them: one line that names the party to blame and the remedy, the
//! documented exit code, nothing on standard output. And the JSON, as `docs/json.md` has it.

mod all;
#[path = "../common/mod.rs"]
mod common;
#[path = "../../../lastmile/tests/documents/mod.rs"]
mod documents;
mod evaluate;
mod json;
mod monitor;
mod own_controller;
mod own_method;
mod page;
mod peers;
mod program;
mod recordings;
mod refused;
mod schemas;
mod screens;
mod streams;
mod traffic;
#[cfg(feature = "video")]
mod video;
#[cfg(feature = "video")]
mod video_faults;

use std::net::UdpSocket;

const USAGE: i32 = 2;
const PEER: i32 = 3;
const MACHINE: i32 = 4;

/// A port of the loopback on which nothing listens.
fn closed_port() -> String {
    UdpSocket::bind("127.0.0.1:0").and_then(|s| s.local_addr()).expect("a port").to_string()
}
