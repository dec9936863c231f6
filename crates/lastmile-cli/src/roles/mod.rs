//! What each role shows of a run, beside the measurements' own rows: a key of the JSON, and a table.

use lastmile_sim::roles::Found;
use serde_json::Value;

mod stream;

/// What one role shows: its key, its rows, and these as a table; nothing where it had nothing to do.
pub(crate) struct Shown {
    pub(crate) key: &'static str,
    pub(crate) rows: Value,
    pub(crate) table: Option<String>,
}

/// What all roles show.
pub(crate) fn shown(found: &Found) -> Vec<Shown> {
    vec![stream::shown(&found.stream)]
}
