//! Events in words, and the list of them.

use lastmile::endpoint;
use lastmile::endpoint::measure::Decision;
use lastmile::observe::StreamVerdict;

use super::html::esc;
use super::{MAX_EVENTS, Run};

/// How an event is drawn and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Good,
    Bad,
    Neutral,
}

impl Mood {
    /// The class of its colour.
    pub(super) fn class(self) -> &'static str {
        match self {
            Mood::Good => "cg",
            Mood::Bad => "cb",
            Mood::Neutral => "ci",
        }
    }
}

/// A decision in a sentence. The text is not escaped.
pub(super) fn sentence(what: &endpoint::Decision) -> (Mood, String) {
    let Some(what) = what.of() else { return (Mood::Neutral, format!("{what:?}")) };
    match what {
        Decision::PeerReady { peer, lastmile, rtt } => {
            let kind = if *lastmile { "a lastmile reflector" } else { "a plain STAMP reflector" };
            (Mood::Good, format!("{peer} answered after {rtt}: {kind}"))
        }
        Decision::StreamJudged { stream, direction, pattern, packets, lost, gaps_held, verdict } => {
            let mood = if *verdict == StreamVerdict::Believed { Mood::Good } else { Mood::Bad };
            let text = format!(
                "stream {stream}, {direction} {pattern}, {packets} packets, {lost} lost, {gaps_held} gaps held: {verdict}"
            );
            (mood, text)
        }
        Decision::Estimated { method, direction, estimate, .. } => {
            (Mood::Good, format!("{method}, {direction}: {} is {}", estimate.quantity, estimate.value))
        }
        Decision::Refused { method, direction, refusal, .. } => {
            (Mood::Bad, format!("{method}, {direction}: refused: {refusal}"))
        }
        Decision::Warned(warning) => (Mood::Neutral, format!("warning: {}", warning.text)),
        Decision::ClockStepped { by } => (Mood::Bad, format!("the clock was stepped by {by}")),
        Decision::SessionOpened { peer } => (Mood::Neutral, format!("session from {peer}")),
        Decision::TurnedAway { peer, no_session, no_room, over_budget, unpaid } => {
            let packets = no_session + no_room + over_budget + unpaid;
            (Mood::Bad, format!("{packets} packets turned away for a limit, the last from {peer}"))
        }
        Decision::SessionClosed { peer, received, sent } => {
            (Mood::Neutral, format!("end of {peer}: {received} received, {sent} sent"))
        }
        Decision::Finished { cost } => {
            (Mood::Neutral, format!("finished after {}, {} sent", cost.elapsed, cost.bytes()))
        }
        // The event type grows; an event of a kind that has no words yet is better shown than hidden.
        other => (Mood::Neutral, format!("{other:?}")),
    }
}

/// All events, folded.
pub(super) fn section(run: &Run) -> String {
    if run.events.is_empty() {
        return String::new();
    }
    let rows: String = run
        .events
        .iter()
        .map(|event| {
            let (mood, text) = sentence(&event.what);
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
