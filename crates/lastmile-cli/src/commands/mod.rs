//! One file per command, each with its `Args` and its `run`.
pub(crate) mod accuracy;
pub(crate) mod bench_sim;
pub(crate) mod completions;
pub(crate) mod conformance;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod measure;
pub(crate) mod methods;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod scenarios;
pub(crate) mod serve;
pub(crate) mod sim;
pub(crate) mod sweep;

use std::path::Path;

use anyhow::Context;
use lastmile::event::Event;

/// Writes decisions as JSON lines.
fn write_events(file: &Path, events: &[Event]) -> anyhow::Result<()> {
    let mut text = String::new();
    for event in events {
        text.push_str(&serde_json::to_string(event)?);
        text.push('\n');
    }
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
