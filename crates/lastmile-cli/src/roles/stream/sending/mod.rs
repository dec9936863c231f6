//! A stream over real sockets as its sender sees it: a row, and a screen.

use std::net::SocketAddr;

use lastmile::control;
use lastmile::endpoint::Event;
use lastmile::endpoint::stream::{Decision, End, SenderConfig, SenderRate, Sent};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use serde::{Serialize, Serializer};

use crate::shell::exit::Exit;

mod blame;
mod lines;

pub(super) use lines::{milliseconds, percent};

/// A sender's results. Rates and bytes are those of IP packets; a name ends in its unit.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sending {
    peer: SocketAddr,
    control: Option<String>,
    rate_bps: Option<u64>,
    target_bps: u64,
    sent_bps: Option<f64>,
    received_bps: Option<f64>,
    layer: &'static str,
    packets: u64,
    acknowledged: u64,
    unaccounted: u64,
    lost: Option<u64>,
    loss: Option<f64>,
    lost_congestion: Option<u64>,
    lost_wireless: Option<u64>,
    lost_late: Option<u64>,
    scheme_heeded: Option<bool>,
    marked: u64,
    frames: u64,
    frames_dropped: u64,
    frame_rate: Option<f64>,
    capacity_bps: Option<u64>,
    capacity_above_bps: Option<u64>,
    hand_offs: Option<u64>,
    rtt_min_s: Option<f64>,
    rtt_mean_s: Option<f64>,
    rtt_max_s: Option<f64>,
    jitter_s: Option<f64>,
    seconds: f64,
    bytes: u64,
    media_bytes: u64,
    padding_bytes: u64,
    report_bytes: u64,
    bytes_received: u64,
    feedback_packets: u64,
    impossible_reports: u64,
    /// Suite of SRTP, and packets that were dropped: those without the key, and those that had come before.
    pub(crate) srtp: Option<&'static str>,
    unauthentic: Option<u64>,
    replayed: Option<u64>,
    ended: Option<End>,
    refused: Option<String>,
    /// Audio beside it.
    #[serde(serialize_with = "in_short")]
    pub(crate) audio: Option<Box<Sending>>,
    #[serde(skip)]
    began: Time,
    /// Time and counts of the last progress.
    #[serde(skip)]
    before: (Time, Sent),
    /// Round-trip times that were reported: their sum and number.
    #[serde(skip)]
    rtts: (Span, u32),
    /// When the last report came, seconds after the first packet.
    #[serde(skip)]
    heard: f64,
    #[serde(skip)]
    last_rtt: Option<Span>,
    #[serde(skip)]
    discriminates: bool,
    /// True if the controller learns the fate of each packet: then this end counts losses, and else the receiver.
    #[serde(skip)]
    counts: bool,
    /// The rate and loss at which the circuit breaker ended the stream.
    #[serde(skip)]
    broken: Option<(Rate, f64)>,
    /// Rates of the last second: sent and received, bit/s, and frames.
    #[serde(skip)]
    rates: (Option<f64>, Option<f64>),
    #[serde(skip)]
    rates_of_frames: f64,
}

/// Audio's results.
#[derive(Serialize)]
struct Audio {
    sent_bps: Option<f64>,
    received_bps: Option<f64>,
    packets: u64,
    lost: Option<u64>,
    loss: Option<f64>,
    rtt_mean_s: Option<f64>,
    jitter_s: Option<f64>,
    media_bytes: u64,
    report_bytes: u64,
    bytes_received: u64,
    ended: Option<End>,
    refused: Option<String>,
}

fn in_short<S: Serializer>(audio: &Option<Box<Sending>>, to: S) -> Result<S::Ok, S::Error> {
    let row = |audio: &Sending| Audio {
        sent_bps: audio.sent_bps,
        received_bps: audio.received_bps,
        packets: audio.packets,
        lost: audio.lost,
        loss: audio.loss,
        rtt_mean_s: audio.rtt_mean_s,
        jitter_s: audio.jitter_s,
        media_bytes: audio.media_bytes,
        report_bytes: audio.report_bytes,
        bytes_received: audio.bytes_received,
        ended: audio.ended,
        refused: audio.refused.clone(),
    };
    audio.as_deref().map(row).serialize(to)
}

impl Sending {
    /// Nothing was sent yet.
    pub(crate) fn new(config: &SenderConfig) -> Sending {
        let (rate, control) = match &config.rate {
            SenderRate::Fixed(rate) => (Some(*rate), None),
            SenderRate::Controlled(control) => (None, Some(&control.control)),
        };
        Sending {
            peer: config.peer,
            control: control.map(ToString::to_string),
            rate_bps: rate.map(Rate::bits_per_second),
            target_bps: 0,
            sent_bps: None,
            received_bps: None,
            layer: "ip",
            packets: 0,
            acknowledged: 0,
            unaccounted: 0,
            lost: None,
            loss: None,
            lost_congestion: None,
            lost_wireless: None,
            lost_late: None,
            scheme_heeded: control.filter(|control| control.at_receiver()).map(|_| true),
            marked: 0,
            frames: 0,
            frames_dropped: 0,
            frame_rate: None,
            capacity_bps: None,
            capacity_above_bps: None,
            hand_offs: control.and_then(|control| control.wrapper.as_ref()).map(|_| 0),
            rtt_min_s: None,
            rtt_mean_s: None,
            rtt_max_s: None,
            jitter_s: None,
            seconds: 0.0,
            bytes: 0,
            media_bytes: 0,
            padding_bytes: 0,
            report_bytes: 0,
            bytes_received: 0,
            feedback_packets: 0,
            impossible_reports: 0,
            srtp: None,
            unauthentic: None,
            replayed: None,
            ended: None,
            refused: None,
            audio: None,
            began: Time::ZERO,
            before: (Time::ZERO, Sent::default()),
            rtts: (Span::ZERO, 0),
            heard: 0.0,
            last_rtt: None,
            discriminates: control
                .is_some_and(|control| control.classifier.is_some() && !control.at_receiver()),
            counts: control.is_some_and(|control| !control.at_receiver()),
            broken: None,
            rates: (None, None),
            rates_of_frames: 0.0,
        }
    }

    /// Takes in a decision; gives a line for people where one is due, which the screen does not show.
    pub(crate) fn take(&mut self, event: &Event) -> Option<String> {
        let decision = event.what.of::<Decision>()?;
        // Decisions of the controller that both share are told by either.
        if event.node != 0 && !matches!(decision, Decision::Control(_)) {
            let audio = self.audio.as_mut()?;
            let line = audio.take(&Event { node: 0, ..event.clone() });
            // It ends with the frames, which then interrupts it. They may have met what it did not.
            if audio.ended == Some(End::Interrupted) && self.ended == Some(End::Stop) {
                audio.ended = self.ended;
            }
            return line.map(|line| format!("audio: {}", line.trim_start()));
        }
        match decision {
            Decision::MediaStarted { .. } => {
                (self.began, self.before.0) = (event.at, event.at);
                None
            }
            Decision::MediaProgress { target, sent, .. } => {
                self.target_bps = target.bits_per_second();
                self.seconds = (event.at - self.began).max(Span::ZERO).as_secs_f64();
                self.count(sent);
                let (since, before) = core::mem::replace(&mut self.before, (event.at, *sent));
                self.progressed(event.at - since, &before, sent);
                None
            }
            Decision::MediaReported { lost, jitter, rtt } => {
                self.lost =
                    self.lost.filter(|_| self.counts).or_else(|| Some(u64::try_from(*lost).unwrap_or(0)));
                self.jitter_s = Some(jitter.as_secs_f64());
                self.heard = (event.at - self.began).as_secs_f64();
                self.last_rtt = rtt.or(self.last_rtt);
                if let Some(rtt) = *rtt {
                    self.rtts = (self.rtts.0 + rtt, self.rtts.1 + 1);
                    let seconds = rtt.as_secs_f64();
                    self.rtt_min_s = Some(self.rtt_min_s.map_or(seconds, |least| least.min(seconds)));
                    self.rtt_max_s = Some(self.rtt_max_s.map_or(seconds, |most| most.max(seconds)));
                    self.rtt_mean_s = Some(self.rtts.0.as_secs_f64() / f64::from(self.rtts.1));
                }
                None
            }
            Decision::ReceiverMoved { from, to } => {
                self.peer = *to;
                Some(format!("{:4.0} s  the receiver moved from {from} to {to}", self.seconds))
            }
            Decision::MediaEnded { why, sent } => {
                self.ended = Some(*why);
                self.count(sent);
                let known = self.packets - self.unaccounted;
                self.loss = self.lost.filter(|_| known > 0).map(|lost| lost as f64 / known as f64);
                self.refused = self.why_not();
                None
            }
            Decision::CircuitBroken { ends: true, rates: Some((rate, _)), loss: Some(loss), .. } => {
                self.broken = Some((*rate, *loss));
                None
            }
            Decision::SchemeHeeded { heeded } => {
                self.scheme_heeded = Some(*heeded);
                None
            }
            Decision::Control(decision) => self.take_controlled(decision),
            _ => None,
        }
    }

    /// A hand-off is a line of its own.
    fn take_controlled(&mut self, decision: &control::Decision) -> Option<String> {
        use control::Decision;
        let bps = |rate: &Rate| Some(rate.bits_per_second());
        match decision {
            Decision::Capacity { rate, .. } => {
                (self.capacity_bps, self.capacity_above_bps) = (bps(rate), None)
            }
            Decision::CapacityAbove { rate, .. } => {
                (self.capacity_bps, self.capacity_above_bps) = (None, bps(rate));
            }
            Decision::HandOff { from, to } => {
                self.hand_offs = self.hand_offs.map(|before| before + 1);
                return Some(format!(
                    "{:4.0} s  a hand-off: the capacity was {from} and is {to}",
                    self.seconds
                ));
            }
            _ => {}
        }
        None
    }

    /// Takes in the packets that SRTP dropped.
    pub(crate) fn dropped(&mut self, dropped: Option<(u64, u64)>) {
        (self.unauthentic, self.replayed) = dropped.unzip();
    }

    fn count(&mut self, sent: &Sent) {
        (self.packets, self.acknowledged, self.marked) = (sent.packets, sent.acknowledged, sent.marked);
        (self.frames, self.frames_dropped) = (sent.frames, sent.frames_dropped);
        self.frame_rate =
            (self.seconds > 0.0).then(|| (sent.frames - sent.frames_dropped) as f64 / self.seconds);
        self.unaccounted = sent.packets.saturating_sub(sent.reported);
        if sent.feedback_packets > self.feedback_packets {
            self.heard = self.heard.max(self.seconds);
        }
        if self.counts && sent.acknowledged > 0 {
            self.lost = Some(sent.lost - sent.late.min(sent.lost));
            self.lost_late = Some(sent.late);
        }
        self.impossible_reports = sent.impossible_reports;
        if self.discriminates {
            self.lost_wireless = Some(sent.lost_wireless);
            self.lost_congestion = Some(sent.lost - sent.lost_wireless.min(sent.lost));
        }
        (self.media_bytes, self.report_bytes) = (sent.bytes.0, sent.report_bytes.0);
        self.padding_bytes = sent.padding_bytes.0;
        self.bytes = self.media_bytes + self.report_bytes;
        (self.bytes_received, self.feedback_packets) = (sent.feedback_bytes.0, sent.feedback_packets);
        let rate = |bytes: Bytes| (self.seconds > 0.0).then(|| bytes.bits() as f64 / self.seconds);
        // Feedback of `tfrc(form=receiver)` tells of no single packet.
        let told = Some(sent.acknowledged_bytes).filter(|bytes| *bytes > Bytes::ZERO);
        (self.sent_bps, self.received_bps) = (rate(sent.bytes), told.and_then(rate));
    }

    /// Why there is nothing to show, if nothing came of it at all.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.refused.as_deref().filter(|_| self.feedback_packets == 0)
    }

    /// Why it or its audio ended otherwise than it was to, whatever it came to.
    pub(crate) fn refused(&self) -> Option<String> {
        let audio = self.audio.as_ref().and_then(|audio| audio.refused.as_ref());
        let all = [self.refused.clone(), audio.map(|why| format!("audio: {why}"))];
        all.into_iter().flatten().reduce(|frames, audio| format!("{frames}; {audio}"))
    }

    /// Its source broke off, which ended it and its audio: nobody interrupted them.
    pub(crate) fn broke_off(&mut self) {
        for ended in [&mut self.ended].into_iter().chain(self.audio.as_mut().map(|audio| &mut audio.ended)) {
            ended.take_if(|ended| *ended == End::Interrupted);
        }
    }

    /// The exit code that it deserves.
    pub(crate) fn exit(&self, interrupted: bool) -> Option<Exit> {
        match interrupted {
            true => Some(Exit::Interrupted),
            false => self.refused().map(|_| Exit::Peer),
        }
    }
}
