//! Scenario files: how they are read, and what comes of running them.
mod bad;
#[path = "../common/mod.rs"]
mod common;
mod copies;
mod embedding;
mod event_file;
mod hosts;
mod pcap;
mod ready;
mod reference;
mod stories;
mod traces;
mod truth;
mod wbest_full_queue;
mod wlan_grid;
