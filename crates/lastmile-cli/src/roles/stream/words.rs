//! Decisions of a stream's ends, in words.

use lastmile::classify::{self, LossClass, Verdicts};
use lastmile::control;
use lastmile::endpoint::stream::{Decision, End, Left, Received, Sent, Viewed};

use super::super::named;
use super::LANES;
use lastmile_report::event::{Mood, Told};

/// A stream's decision in words.
pub(super) fn told(what: &Decision) -> Told {
    let [sender, receiver] = LANES;
    let (lane, mood, text) = match what {
        Decision::MediaStarted { peer, ssrc, rate } => {
            (sender, Mood::Good, format!("stream {ssrc:08x} to {peer} began at {rate}"))
        }
        Decision::TargetChanged { target } => (sender, Mood::Neutral, format!("the rate is to be {target}")),
        Decision::MediaProgress { target, sent, .. } => {
            let Sent { packets, acknowledged, .. } = sent;
            let text =
                format!("{packets} packets sent, {acknowledged} acknowledged; the rate is to be {target}");
            (sender, Mood::Neutral, text)
        }
        Decision::MediaReported { lost, jitter, rtt } => {
            let rtt = rtt.map_or_else(String::new, |rtt| format!(", round trip {rtt}"));
            (sender, Mood::Neutral, format!("the receiver reports {lost} lost, jitter {jitter}{rtt}"))
        }
        Decision::CircuitBroken { why: End::Congestion, ends: false, .. } => (
            sender,
            Mood::Bad,
            "ten times as much as TCP would send: a tenth of the rate is tried".to_owned(),
        ),
        Decision::CircuitBroken { .. } => (sender, Mood::Bad, "a circuit breaker ends the stream".to_owned()),
        Decision::MediaEnded { why, sent } => {
            let (mood, why) = match why {
                End::Stop => (Mood::Good, "as planned"),
                End::NoFeedback => (Mood::Bad, "since no feedback came"),
                End::MediaTimeout => (Mood::Bad, "since reports say that no media arrives"),
                End::Congestion => (Mood::Bad, "since it sent ten times as much as TCP would"),
                End::PortClosed => (Mood::Bad, "since nothing listens there"),
                End::Unreachable => (Mood::Bad, "since the receiver is unreachable"),
                End::TooBig => (Mood::Bad, "since packets are larger than the path takes"),
                End::PeerLeft => (Mood::Neutral, "since the receiver left"),
                End::ByteLimit => (Mood::Neutral, "at its limit of bytes"),
                _ => (Mood::Neutral, "interrupted"),
            };
            let Sent { packets, acknowledged, marked, .. } = sent;
            let text = format!(
                "ended {why}: {packets} packets sent, {acknowledged} acknowledged, {marked} with ECN marks"
            );
            (sender, mood, text)
        }
        Decision::SourceFound { peer, ssrc, .. } => {
            (receiver, Mood::Good, format!("stream {ssrc:08x} comes from {peer}"))
        }
        Decision::SourceProgress { ssrc, received, .. } => {
            let Received { packets, lost, jitter, .. } = received;
            let text = format!("stream {ssrc:08x}: {packets} packets came, {lost} lost, jitter {jitter}");
            (receiver, Mood::Neutral, text)
        }
        Decision::FramesViewed { ssrc, viewed, .. } => {
            let Viewed { frames, damaged, late, freezes, frozen, .. } = viewed;
            let text = format!(
                "stream {ssrc:08x}: {frames} frames shown, {damaged} of them damaged, {late} late, {freezes} freezes of {frozen} together"
            );
            (receiver, Mood::Neutral, text)
        }
        Decision::SourceLeft { peer, ssrc, why, received } => {
            let Received { packets, lost, jitter, .. } = received;
            let why = match why {
                Left::Goodbye => "said goodbye",
                Left::Silent => "is silent",
                Left::Moved => "moved to another address",
                Left::Displaced => "made room for another",
                _ => "is no longer listened to",
            };
            let text = format!(
                "stream {ssrc:08x} of {peer} {why}: {packets} packets came, {lost} lost, jitter {jitter}"
            );
            (receiver, if *lost == 0 { Mood::Good } else { Mood::Neutral }, text)
        }
        Decision::SourceTurnedAway { peer, ssrc, packets } => {
            let text = format!(
                "no room for more streams: {packets} packets turned away since last told, the last of stream {ssrc:08x} from {peer}"
            );
            (receiver, Mood::Bad, text)
        }
        Decision::ReceiverMoved { from, to } => {
            (sender, Mood::Good, format!("the receiver moved from {from} to {to}"))
        }
        Decision::SchemeNamed { ssrc, scheme, .. } => {
            (receiver, Mood::Good, format!("losses of stream {ssrc:08x} are counted by {scheme}"))
        }
        Decision::SchemeHeeded { heeded: true } => {
            (sender, Mood::Good, "the receiver counts losses as it is asked to".to_owned())
        }
        Decision::SchemeHeeded { heeded: false } => (
            sender,
            Mood::Neutral,
            "the receiver counts losses by another scheme: it is told which".to_owned(),
        ),
        Decision::LossesJudged(verdicts) => (sender, Mood::Neutral, judged(verdicts)),
        Decision::Control(decision) => controlled(decision),
        // The event type grows: an event without a sentence has its name.
        other => (sender, Mood::Neutral, named(other)),
    };
    Told { lane, mood, text }
}

/// Verdicts on losses, in words.
fn judged(verdicts: &Verdicts) -> String {
    let Verdicts { classifier, congestion, wireless, by, shares } = verdicts;
    let others = by.iter().filter(|(name, _)| name != classifier);
    let others: String = others.map(|(name, packets)| format!(", {name} {packets} of them")).collect();
    let shares: String = shares
        .iter()
        .map(|(scheme, share)| format!(", {scheme} for {:.0} % of the time", share * 100.0))
        .collect();
    format!("{classifier} judged {congestion} losses congestion and {wireless} wireless{others}{shares}")
}

/// A controller's decision, in words.
fn controlled(what: &control::Decision) -> (&'static str, Mood, String) {
    use classify::Decision::{Doubted, FellBack, LossJudged, Restored};
    use control::Decision;
    let text = match what {
        Decision::Classify(LossJudged { id, packets, class, by }) => {
            let of = if *class == LossClass::Wireless { "by the wireless link" } else { "to congestion" };
            format!("{by}: {packets} lost {of}, from packet {id} on")
        }
        Decision::LossEvent { id, loss_event_rate } => {
            let percent = loss_event_rate * 100.0;
            format!("a loss event began with packet {id}: loss event rate {percent:.3} %")
        }
        Decision::Classify(FellBack { from, to, needs, resolution }) => {
            let has =
                resolution.map_or_else(|| "there are none".to_owned(), |has| format!("these are of {has}"));
            return (
                LANES[0],
                Mood::Bad,
                format!("{to} judges for {from}, which needs stamps of {needs}: {has}"),
            );
        }
        Decision::Classify(Doubted { classifier, wireless }) => {
            let percent = wireless * 100.0;
            let text = format!(
                "{classifier} took {percent:.0} % of all packets for lost by the wireless link, more than one can well lose: \
                 it starts anew, and until less than a tenth are lost every loss is congestion"
            );
            return (LANES[0], Mood::Bad, text);
        }
        Decision::Classify(Restored { to }) => format!("{to} judges again"),
        Decision::Capacity { rate, size, .. } => {
            format!("the path's capacity is {rate} for packets of {size}")
        }
        Decision::CapacityAbove { rate, size } => {
            format!(
                "the path's capacity is more than {rate} for packets of {size}: arrivals are not told more finely"
            )
        }
        Decision::CapacityUnknown => {
            let text = "packet pairs tell no capacity: most are lost, or times of arrival are missing or do not tell their packets apart";
            return (LANES[0], Mood::Bad, text.to_owned());
        }
        Decision::HandOff { from, to } => {
            return (LANES[0], Mood::Good, format!("a hand-off: the path's capacity was {from} and is {to}"));
        }
        Decision::SlowStartEnded { rate } => format!("slow start ended at {rate}"),
        Decision::NoFeedback { rate } => {
            return (LANES[0], Mood::Bad, format!("no feedback came for too long: the rate is {rate}"));
        }
        other => named(other),
    };
    (LANES[0], Mood::Neutral, text)
}
