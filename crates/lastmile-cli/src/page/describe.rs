//! The list of events in words.

use super::html::esc;
use super::{MAX_EVENTS, Run};
use crate::roles::{Told, told};

/// How an event is drawn and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Good,
    Bad,
    Neutral,
}

impl Mood {
    /// The class of its colour.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Mood::Good => "cg",
            Mood::Bad => "cb",
            Mood::Neutral => "ci",
        }
    }
}

/// All events, folded.
pub(crate) fn section(run: &Run) -> String {
    if run.events.is_empty() {
        return String::new();
    }
    let rows: String = run
        .events
        .iter()
        .map(|event| {
            let Told { mood, text, .. } = told(&event.what);
            let class = if mood == Mood::Bad { " class=\"bad\"" } else { "" };
            let (at, node) = (event.at, event.node);
            format!(
                "<tr><td class=\"n\">{at}</td><td class=\"n\">{node}</td><td{class}>{}</td></tr>\n",
                esc(&text)
            )
        })
        .collect();
    let all = run.counts.events;
    let title = match all > MAX_EVENTS as u64 {
        true => format!("The first {MAX_EVENTS} of {all} events"),
        false => format!("All {all} events"),
    };
    format!(
        "<details>\n<summary>{title}</summary>\n<div class=\"card scroll\"><table>\n<thead><tr><th class=\"n\">time</th>\
         <th class=\"n\">node</th><th>what</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</details>\n"
    )
}
