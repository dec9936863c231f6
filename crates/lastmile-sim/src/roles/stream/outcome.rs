//! [`StreamOutcome`]: the results of one stream.

use std::collections::BTreeMap;

use lastmile::classify::Verdicts;
use lastmile::endpoint::stream::{End, Received, SenderRate, Sent};
use lastmile::units::Rate;

use super::truth::Known;
use crate::scenario::roles::stream::Spec;

/// Results of one stream over the whole run. Bytes and rates are those of IP packets.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct StreamOutcome {
    /// Its name.
    pub stream: String,
    /// The sending host's name.
    pub from: String,
    /// The receiving host's name.
    pub to: String,
    /// The rate that it was to have; `None` where a controller set it.
    pub rate_bps: Option<u64>,
    /// The rate controller, with the classifier in front of it, where one set the rate.
    pub control: Option<String>,
    /// Packets of media sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Of these packets, those that carry nothing.
    pub padding: u64,
    /// Their bytes.
    pub padding_bytes: u64,
    /// Rate of the pacer over the controller's target, mean over seconds; `None` at a fixed rate.
    pub pacing_factor: Option<f64>,
    /// Packets of media received, each once.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets lost, by true cause.
    pub lost: BTreeMap<&'static str, u64>,
    /// Packets of media that were lost to congestion: by queues, or because others of a WLAN sent as well.
    pub congestion_lost: u64,
    /// Packets of media that the link lost.
    pub wireless_lost: u64,
    /// The share of losses to congestion that were judged wireless, in packets (LDA, section IV: Mc); `None` where nobody judged
    /// any.
    pub mc: Option<f64>,
    /// The share of losses by the link that were judged congestion (LDA, section IV: Mw).
    pub mw: Option<f64>,
    /// Verdicts on losses, with each scheme's share of the time; `None` without a classifier.
    pub verdicts: Option<Verdicts>,
    /// The path's capacity as packet pairs told it last; `None` without any.
    pub capacity_bps: Option<u64>,
    /// Hand-offs that were noticed by it; `None` where nothing looks for any.
    pub hand_offs: Option<u64>,
    /// The share of the packets sent that was not received; `None` where none was sent.
    pub loss: Option<f64>,
    /// Rate received from the first packet to the last, bit/s; `None` with fewer than two packets.
    pub goodput_bps: Option<f64>,
    /// Mean time from departure to arrival.
    pub delay_mean_s: Option<f64>,
    /// The longest.
    pub delay_max_s: Option<f64>,
    /// Interarrival jitter at the end (RFC 3550, section 6.4.1).
    pub jitter_s: Option<f64>,
    /// Packets that arrived with a mark of congestion.
    pub ecn_marked: u64,
    /// Packets that the sender was told of.
    pub acknowledged: u64,
    /// Frames that were left out whole, since too much waited for the pacer.
    pub frames_dropped: u64,
    /// Packets that were sent again.
    pub retransmitted: u64,
    /// Their bytes.
    pub retransmitted_bytes: u64,
    /// Packets that the receiver asked for again.
    pub nacked: u64,
    /// Of the packets lost, those that came again in time.
    pub recovered: u64,
    /// Packets of RTCP that the receiver sent.
    pub feedback_packets: u64,
    /// Their bytes.
    pub feedback_bytes: u64,
    /// Why the sender ended; `None` where it never began.
    pub ended: Option<End>,
}

impl StreamOutcome {
    pub(super) fn new(
        (spec, from, to): (&Spec, String, String),
        sender: Option<(End, Sent)>,
        receiver: Option<Received>,
        lost: BTreeMap<&'static str, u64>,
        delay: Option<(f64, f64)>,
        (verdicts, known): (Option<Verdicts>, Known),
        (capacity, hand_offs, pacing): (Option<Rate>, u64, Option<f64>),
    ) -> StreamOutcome {
        let (sent, received) =
            (sender.map(|(_, sent)| sent).unwrap_or_default(), receiver.unwrap_or_default());
        let (rate, control) = match &spec.sender.rate {
            SenderRate::Fixed(rate) => (Some(*rate), None),
            SenderRate::Controlled(config) => (None, Some(&config.control)),
        };
        let seconds = (received.last - received.first).as_secs_f64();
        StreamOutcome {
            stream: spec.name.clone(),
            from,
            to,
            rate_bps: rate.map(Rate::bits_per_second),
            control: control.map(ToString::to_string),
            sent: sent.packets,
            sent_bytes: sent.bytes.0,
            padding: sent.padding,
            padding_bytes: sent.padding_bytes.0,
            pacing_factor: pacing,
            received: received.packets,
            received_bytes: received.bytes.0,
            lost,
            congestion_lost: known.lost[0],
            wireless_lost: known.lost[1],
            mc: known.counts.mc(),
            mw: known.counts.mw(),
            verdicts,
            capacity_bps: capacity.map(Rate::bits_per_second),
            hand_offs: control.and_then(|control| control.wrapper.as_ref()).map(|_| hand_offs),
            loss: (sent.packets > 0).then(|| 1.0 - received.packets as f64 / sent.packets as f64),
            goodput_bps: (seconds > 0.0).then(|| received.bytes.0 as f64 * 8.0 / seconds),
            delay_mean_s: delay.map(|delay| delay.0),
            delay_max_s: delay.map(|delay| delay.1),
            jitter_s: receiver.map(|received| received.jitter.as_secs_f64()),
            ecn_marked: received.marked,
            acknowledged: sent.acknowledged,
            frames_dropped: sent.frames_dropped,
            retransmitted: sent.retransmitted,
            retransmitted_bytes: sent.retransmitted_bytes.0,
            nacked: received.nacked,
            recovered: received.recovered,
            feedback_packets: received.feedback_packets,
            feedback_bytes: received.feedback_bytes.0,
            ended: sender.map(|(why, _)| why),
        }
    }
}
