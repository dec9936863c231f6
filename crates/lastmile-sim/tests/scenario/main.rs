//! Scenario files: reading them, and the results of running them.
mod bad;
mod capacities;
#[path = "../common/mod.rs"]
mod common;
mod copies;
#[path = "../../../lastmile/tests/documents/mod.rs"]
mod documents;
mod ecnprobe;
mod embedding;
mod event_file;
mod hosts;
#[path = "../../../lastmile/tests/documents/options.rs"]
mod options;
mod pathrate;
mod pcap;
mod probegap;
mod ready;
mod reference;
mod stories;
mod tools;
mod traces;
mod truth;
mod wbest_full_queue;
mod wlan_grid;
