//! A measurement's decisions in words.

use lastmile::endpoint::measure::Decision;
use lastmile::observe::StreamVerdict;
use lastmile::report::Direction;

use super::super::named;
use lastmile_report::event::{Mood, Told};

pub(super) const LANES: [&str; 5] = ["session", "forward", "reverse", "round trip", "results"];

/// A decision in words.
pub(super) fn told(what: &Decision) -> Told {
    let (mood, text) = sentence(what);
    Told { lane: lane(what), mood, text }
}

fn lane(what: &Decision) -> &'static str {
    let [session, forward, reverse, round_trip, results] = LANES;
    match what {
        Decision::StreamJudged { direction: Direction::Forward, .. } => forward,
        Decision::StreamJudged { direction: Direction::Reverse, .. } => reverse,
        Decision::StreamJudged { direction: Direction::RoundTrip, .. } => round_trip,
        Decision::Estimated { .. } | Decision::Refused { .. } => results,
        _ => session,
    }
}

fn sentence(what: &Decision) -> (Mood, String) {
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
            (Mood::Good, format!("{method}, {direction}: {} is {}", estimate.named(), estimate.value))
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
        Decision::TooSmall { peer, octets } => {
            (Mood::Neutral, format!("packets of {octets} octets from {peer} are too small to be answered"))
        }
        Decision::PeerQuiet { peer, silent, patience } => (
            Mood::Bad,
            format!("{peer} has not answered for {silent}; it is waited for, for {patience} at most"),
        ),
        Decision::SessionClosed { peer, received, sent } => {
            (Mood::Neutral, format!("end of {peer}: {received} received, {sent} sent"))
        }
        Decision::Finished { cost } => {
            (Mood::Neutral, format!("finished after {}, {} sent", cost.elapsed, cost.bytes()))
        }
        // The event type grows: an event without a sentence has its name.
        other => (Mood::Neutral, named(other)),
    }
}
