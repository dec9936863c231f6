//! A stream over real sockets as its sender sees it: a row, and a line each second.

use std::net::SocketAddr;

use lastmile::control;
use lastmile::endpoint::Event;
use lastmile::endpoint::stream::{Decision, End, SenderConfig, SenderRate, Sent};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::monitor::flows::as_rate;
use serde::Serialize;

use crate::shell::WIDTH;
use crate::shell::exit::Exit;
use lastmile_report::text::wrapped;

/// A packet in some 10 s, in bit/s: receivers take a slower sender for gone.
const NEXT_TO_NOTHING: u64 = 1_000;

/// Units of a line's columns.
const UNITS: &str = "Rates in Mbit/s of IP packets; lost packets since the start.";
const COLUMNS: [&str; 8] =
    ["second", "target", "sent", "received", "capacity", "round trip", "lost", "wireless"];

/// One line of the columns.
fn in_columns(cells: [&str; 8]) -> String {
    let cell = |(cell, name): (&str, &str)| format!("{cell:>0$}", name.len().max(6));
    cells.into_iter().zip(COLUMNS).map(cell).collect::<Vec<_>>().join("  ")
}

/// Bit/s as Mbit/s, three digits.
fn megabits(bps: f64) -> String {
    let rate = bps / 1e6;
    format!("{rate:.*}", if rate < 9.995 { 2 } else { usize::from(rate < 99.95) })
}

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
    report_bytes: u64,
    bytes_received: u64,
    feedback_packets: u64,
    impossible_reports: u64,
    ended: Option<End>,
    refused: Option<String>,
    #[serde(skip)]
    began: Time,
    /// Time and counts at the last line.
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
    /// True once the heading of the lines was printed.
    #[serde(skip)]
    headed: bool,
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
            report_bytes: 0,
            bytes_received: 0,
            feedback_packets: 0,
            impossible_reports: 0,
            ended: None,
            refused: None,
            began: Time::ZERO,
            before: (Time::ZERO, Sent::default()),
            rtts: (Span::ZERO, 0),
            heard: 0.0,
            last_rtt: None,
            discriminates: control
                .is_some_and(|control| control.classifier.is_some() && !control.at_receiver()),
            counts: control.is_some_and(|control| !control.at_receiver()),
            broken: None,
            headed: false,
        }
    }

    /// Takes in a decision; gives a line for people each second.
    pub(crate) fn take(&mut self, event: &Event) -> Option<String> {
        match event.what.of::<Decision>()? {
            Decision::MediaStarted { .. } => {
                (self.began, self.before.0) = (event.at, event.at);
                None
            }
            Decision::MediaProgress { target, sent } => {
                self.target_bps = target.bits_per_second();
                self.seconds = (event.at - self.began).max(Span::ZERO).as_secs_f64();
                self.count(sent);
                let (since, before) = core::mem::replace(&mut self.before, (event.at, *sent));
                self.line(event.at - since, &before, sent)
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

    /// The path's capacity as it was told last.
    fn capacity(&self) -> Option<String> {
        let above = self.capacity_above_bps.map(|bps| format!("more than {}", Rate::ip(bps)));
        self.capacity_bps.map(|bps| Rate::ip(bps).to_string()).or(above)
    }

    fn count(&mut self, sent: &Sent) {
        (self.packets, self.acknowledged, self.marked) = (sent.packets, sent.acknowledged, sent.marked);
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
        self.bytes = self.media_bytes + self.report_bytes;
        (self.bytes_received, self.feedback_packets) = (sent.feedback_bytes.0, sent.feedback_packets);
        let rate = |bytes: Bytes| (self.seconds > 0.0).then(|| bytes.bits() as f64 / self.seconds);
        // Feedback of `tfrc(form=receiver)` tells of no single packet.
        let told = Some(sent.acknowledged_bytes).filter(|bytes| *bytes > Bytes::ZERO);
        (self.sent_bps, self.received_bps) = (rate(sent.bytes), told.and_then(rate));
    }

    /// Counts and rates since the last line; the first line comes with its heading.
    fn line(&mut self, over: Span, before: &Sent, sent: &Sent) -> Option<String> {
        let seconds = over.as_secs_f64();
        if seconds < 0.1 {
            return None;
        }
        let rate = |now: Bytes, then: Bytes| (now - then).bits() as f64 / seconds;
        let received = rate(sent.acknowledged_bytes, before.acknowledged_bytes);
        let capacity = self.capacity_bps.map(|bps| megabits(bps as f64));
        let above = self.capacity_above_bps.map(|bps| format!("> {}", megabits(bps as f64)));
        let cells = [
            // The last line is of less than a second.
            Some(format!(
                "{:.*}",
                usize::from((self.seconds - self.seconds.round()).abs() >= 0.05),
                self.seconds
            )),
            Some(megabits(self.target_bps as f64)),
            Some(megabits(rate(sent.bytes, before.bytes))),
            (sent.acknowledged > 0).then(|| megabits(received)),
            capacity.or(above),
            self.last_rtt.map(|rtt| format!("{:.1} ms", rtt.as_secs_f64() * 1e3)),
            self.lost.map(|lost| lost.to_string()),
            self.lost_wireless.map(|lost| lost.to_string()),
        ];
        let line = cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
        let line = in_columns(line.each_ref().map(String::as_str));
        let headed = core::mem::replace(&mut self.headed, true);
        Some(if headed { line } else { format!("{UNITS}\n{}\n{line}", in_columns(COLUMNS)) })
    }

    /// Losses by verdict, and the number of these packets that came after all.
    fn judged(&self) -> Option<String> {
        let (congestion, wireless) = self.lost_congestion.zip(self.lost_wireless)?;
        let late = self.lost_late.filter(|late| *late > 0);
        let late = late.map_or_else(String::new, |late| format!("; {late} of them came late"));
        Some(format!("{congestion} congestion, {wireless} wireless{late}"))
    }

    /// Packets of whose fate no report tells, of a stream that ended since none came.
    fn unknown(&self) -> Option<String> {
        let why = match self.ended? {
            End::NoFeedback => "the receiver fell silent",
            End::PeerLeft => "the receiver left",
            End::PortClosed | End::Unreachable => "the receiver is gone",
            _ => return None,
        };
        let (unknown, second) = (self.unaccounted, self.heard);
        (unknown > 0).then(|| format!("; {unknown} unknown after second {second:.1}: {why}"))
    }

    /// The party to blame for an end that was not as asked, and advice.
    fn why_not(&self) -> Option<String> {
        let (peer, heard) = (self.peer, self.feedback_packets > 0);
        let blamed = match self.ended? {
            End::PortClosed if heard => format!("nothing listens on {peer} any more: the receiver is gone"),
            End::PortClosed => {
                format!(
                    "{peer}: nothing listens on that port (ICMP port unreachable): is `lastmile receive` running there?"
                )
            }
            End::Unreachable => {
                format!("{peer} is unreachable: a router or a firewall refuses, or there is no route")
            }
            End::TooBig => {
                format!(
                    "packets are larger than the path to {peer} takes, and are never fragmented: lower --packet-size"
                )
            }
            End::MediaTimeout => {
                format!(
                    "{peer} reports that no media arrives: something on the way drops it; the stream was stopped (RFC 8083)"
                )
            }
            End::Congestion => {
                let at = self.broken.map_or_else(String::new, |(rate, loss)| {
                    format!(" at {rate} and {:.0} % of loss", 100.0 * loss)
                });
                format!(
                    "the path to {peer} does not carry the stream: it sent more than ten times as much as TCP would{at}, and was stopped \
                     (RFC 8083): lower --rate or --max, or take --no-circuit-breakers on a path of your own"
                )
            }
            End::PeerLeft => format!("the receiver at {peer} left before the end"),
            End::NoFeedback if heard && self.target_bps < NEXT_TO_NOTHING => format!(
                "the path to {peer} loses so much that the controller sent next to nothing, {}, and nobody answered for 15 s; the stream \
                 was stopped (RFC 8083)",
                Rate::ip(self.target_bps)
            ),
            End::NoFeedback if heard => {
                format!(
                    "{peer} fell silent: the receiver is gone, or the path is cut; the stream was stopped after 15 s"
                )
            }
            _ if !heard => format!(
                "{peer} does not answer: no receiver runs there, or something on the way drops the packets or the answers"
            ),
            _ => return None,
        };
        Some(blamed)
    }

    /// Why there is nothing to show, if nothing came of it at all.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.refused.as_deref().filter(|_| self.feedback_packets == 0)
    }

    /// Why it ended otherwise than it was to, whatever it came to.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// A warning if reports of the receiver were impossible.
    pub(crate) fn impossible(&self) -> Option<String> {
        let (reports, peer) = (self.impossible_reports, self.peer);
        (reports > 0).then(|| {
            format!("{reports} reports of {peer} were left out: they tell of more lost than was sent, of packets that were not, or of jitter longer than the stream")
        })
    }

    /// A warning if the receiver did not count losses as the controller asks.
    pub(crate) fn miscounted(&self) -> Option<String> {
        let (control, peer) = (self.control.as_ref()?, self.peer);
        let why = format!(
            "{peer} did not count losses as {control} asks: it is of another version, or does not know the name"
        );
        self.scheme_heeded.filter(|heeded| !heeded).map(|_| why)
    }

    /// The exit code that it deserves.
    pub(crate) fn exit(&self, interrupted: bool) -> Option<Exit> {
        match interrupted {
            true => Some(Exit::Interrupted),
            false => self.refused.as_ref().map(|_| Exit::Peer),
        }
    }

    /// Lines for people: results and cost.
    pub(crate) fn lines(&self) -> String {
        let rate =
            |bps: Option<f64>| bps.map_or_else(|| "nothing".to_owned(), |bps| as_rate(bps).to_string());
        let lost = self.lost.map_or_else(|| "losses unknown".to_owned(), |lost| format!("{lost} lost"));
        let judged = self.judged().map_or_else(String::new, |judged| format!("; classified: {judged}"));
        let [least, mean, most] = [self.rtt_min_s, self.rtt_mean_s, self.rtt_max_s].map(milliseconds);
        let ended = match self.ended {
            Some(End::ByteLimit) => "; ended at --max-bytes",
            Some(End::Interrupted) => "; interrupted",
            _ => "",
        };
        let probed = self.hand_offs.map(|hand_offs| {
            let capacity = self.capacity().unwrap_or_else(|| "unknown".to_owned());
            format!("capacity: {capacity}; hand-offs: {hand_offs}")
        });
        let control = self.control.as_deref().unwrap_or("fixed rate");
        let mut lines = vec![
            format!("{control} to {}: {:.2} s{ended}", self.peer, self.seconds),
            format!(
                "rate: {} received of {} sent, target {}",
                rate(self.received_bps),
                rate(self.sent_bps),
                Rate::ip(self.target_bps)
            ),
            format!(
                "packets: {} sent, {lost} ({}){judged}{}",
                self.packets,
                percent(self.loss),
                self.unknown().unwrap_or_default()
            ),
            format!("round trip: {mean}, from {least} to {most} by the receiver's reports"),
            format!("jitter: {}; ECN marks: {}", milliseconds(self.jitter_s), self.marked),
        ];
        lines.extend(probed);
        lines.push(format!(
            "cost: {} of media and {} of reports sent, {} of feedback received in {} packets",
            Bytes(self.media_bytes),
            Bytes(self.report_bytes),
            Bytes(self.bytes_received),
            self.feedback_packets,
        ));
        lines.iter().map(|line| wrapped(line, WIDTH)).collect()
    }
}

pub(super) fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{:.1} ms", seconds * 1e3))
}

pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.2} %", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::endpoint::stream::ControlConfig;

    #[test]
    fn a_stream_that_sent_next_to_nothing_does_not_blame_its_receiver() {
        let control = ControlConfig::new("tfrc+spike".parse().unwrap());
        let config = SenderConfig::new("192.0.2.1:5004".parse().unwrap(), 7, SenderRate::Controlled(control));
        let blames = |target_bps, feedback_packets| {
            let sending = Sending {
                target_bps,
                feedback_packets,
                ended: Some(End::NoFeedback),
                ..Sending::new(&config)
            };
            sending.why_not().unwrap()
        };
        assert!(blames(896, 9).contains("sent next to nothing, 896 bit/s"), "{}", blames(896, 9));
        assert!(blames(100_000, 9).contains("fell silent") && blames(896, 0).contains("does not answer"));
    }

    /// 11 and 26 packets were judged, 8 of which came after all. The receiver's report is of another moment.
    #[test]
    fn what_is_lost_and_what_was_judged_are_one_count() {
        let control = ControlConfig::new("tfrc+spike".parse().unwrap());
        let config = SenderConfig::new("192.0.2.1:5004".parse().unwrap(), 7, SenderRate::Controlled(control));
        let mut sending = Sending::new(&config);
        let event = |second: i64, what: Decision| Event {
            at: Time::ZERO + Span::from_secs(second),
            node: 0,
            seq: 0,
            what: what.into(),
        };
        let rate = Rate::ip(1_000_000);
        let sent =
            Sent { packets: 900, acknowledged: 860, lost: 37, lost_wireless: 26, late: 8, ..Sent::default() };
        sending.take(&event(1, Decision::MediaStarted { peer: config.peer, ssrc: 7, rate }));
        sending.take(&event(2, Decision::MediaProgress { target: rate, sent }));
        let (jitter, rtt) = (Span::ZERO, None);
        sending.take(&event(3, Decision::MediaReported { lost: 0, jitter, rtt }));
        let line = sending.take(&event(3, Decision::MediaProgress { target: rate, sent })).unwrap();
        let cells: Vec<_> = line.split_whitespace().collect();
        assert_eq!(cells, ["2", "1.00", "0.00", "0.00", "-", "-", "29", "26"]);
        let wanted = "packets: 900 sent, 29 lost (-); classified: 11 congestion, 26 wireless; 8 of\n  them came late\n";
        assert!(sending.lines().contains(wanted), "{}", sending.lines());
        // The receiver falls silent after the report of second 2, and reports told of 860 packets.
        let sent = Sent { reported: 860, ..sent };
        sending.take(&event(3, Decision::MediaEnded { why: End::NoFeedback, sent }));
        let wanted = "packets: 900 sent, 29 lost (3.37 %); classified: 11 congestion, 26 wireless; 8\n  of them came late; 40 unknown after second 2.0: the receiver fell silent\n";
        assert!(sending.lines().contains(wanted), "{}", sending.lines());
    }
}
