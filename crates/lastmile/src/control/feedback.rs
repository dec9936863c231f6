//! Input of a rate controller: packets sent, their fates, and signals.
//!
//! Sizes are those of IP packets. Times of this host are [`Time`]; those of the other side are `Time<Rx>`, which subtract
//! only from each other.

use crate::classify::LossClass;
use crate::node::Ecn;
use crate::time::{Rx, Span, Time};
use crate::units::{Bytes, Rate};

/// Purpose of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PacketClass {
    /// Media, for the first time.
    #[default]
    Media,
    /// A retransmission.
    Rtx,
    /// Forward error correction.
    Fec,
    /// Bytes that carry nothing.
    Padding,
    /// Part of a probing train that the controller asked for.
    Probe {
        /// The train's number.
        train: u32,
        /// Its place in the train, from zero.
        index: u16,
        /// Packets in the train.
        len: u16,
    },
}

/// A packet that left.
///
/// ```
/// use lastmile::{control::Sent, time::Time, units::Bytes};
/// let sent = Sent::media(7, Bytes(1200), Time::from_nanos(5));
/// assert!(!sent.app_limited);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number: unwrapped, unique within the transport, in the order of sending.
    pub id: u64,
    /// The stream that it belongs to, where a transport carries several.
    pub stream: u32,
    /// Its size at the IP layer.
    pub size: Bytes,
    /// When the pacer released it.
    pub at: Time,
    /// Its purpose.
    pub class: PacketClass,
    /// Bytes in flight right after it left, with its own: sent, and neither known to have arrived nor to be lost. Zero where the host
    /// does not count them.
    pub in_flight: Bytes,
    /// The sender would have been allowed to send more and had nothing to send.
    pub app_limited: bool,
    /// The ECN codepoint that it left with.
    pub ecn: Ecn,
}

impl Sent {
    /// A media packet of a sender that sends all that it may.
    pub fn media(id: u64, size: Bytes, at: Time) -> Sent {
        let (stream, class, in_flight) = (0, PacketClass::Media, Bytes::ZERO);
        Sent { id, stream, size, at, class, in_flight, app_limited: false, ecn: Ecn::NotEct }
    }
}

/// Evidence that a packet is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LostBy {
    /// Later packets arrived.
    Gap,
    /// Nothing was heard of it for too long.
    Timeout,
}

/// Fate of a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrived.
    Arrived {
        /// When, where the feedback says so.
        at: Option<Time<Rx>>,
        /// The ECN codepoint as it arrived.
        ecn: Ecn,
    },
    /// It did not arrive.
    Lost {
        /// Evidence of the loss.
        by: LostBy,
        /// Cause of the loss: congestion, until a classifier in front says otherwise.
        class: LossClass,
    },
    /// It arrived after it had been reported lost.
    Late {
        /// When, where the feedback says so.
        at: Option<Time<Rx>>,
    },
}

impl Fate {
    /// An arrival without an ECN mark.
    pub fn arrived(at: Time<Rx>) -> Fate {
        Fate::Arrived { at: Some(at), ecn: Ecn::NotEct }
    }

    /// A loss whose cause nobody has judged.
    pub fn lost(by: LostBy) -> Fate {
        Fate::Lost { by, class: LossClass::Congestion }
    }
}

/// A packet and its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The packet.
    pub sent: Sent,
    /// The packet's fate.
    pub fate: Fate,
}

/// Protocol that carried feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The simulator's own packets.
    Sim,
    /// This project's own reports.
    Native,
    /// RFC 8888.
    Rfc8888,
    /// Transport-wide congestion control feedback.
    Twcc,
    /// ACKs of QUIC.
    Quic,
    /// Plain receiver reports (RFC 3550).
    ReceiverReport,
}

/// A host's knowledge of its packets: each level includes those before it.
///
/// ```
/// use lastmile::control::Information;
/// assert!(Information::Sums < Information::Fates && Information::Fates < Information::Times);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Information {
    /// Sums over many packets: receiver reports, a QUIC stack that tells only of bytes.
    Sums,
    /// Fate of each packet, without times of arrival: ACKs.
    Fates,
    /// Arrival time of each packet: RFC 8888, TWCC, our own reports. Each classifier says how fine the times have to be.
    Times,
}

impl core::fmt::Display for Information {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Information::Sums => "sums",
            Information::Fates => "the fate of each packet",
            Information::Times => "the arrival of each packet",
        })
    }
}

/// Counts that a receiver made itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// IP bytes that arrived within [`over`](Summary::over).
    pub received: Bytes,
    /// The length of time in which they arrived; zero where the receiver had nothing to go by yet.
    pub over: Span,
    /// The loss event rate, 0 to 1 (RFC 5348, section 5). Of a plain receiver report, the fraction lost, which is never less.
    pub loss_event_rate: f64,
}

/// True causes of losses: the simulator's side channel, which no network has.
///
/// It is for the classifier `omniscient`, and for counting wrong verdicts of the others. No controller looks at it.
/// Packets are numbered as the sender and the receiver of RTP do: the low 16 bits are the sequence number.
pub trait LossTruth: core::fmt::Debug + Send + Sync {
    /// Cause of the loss of packet `id`; `None` if it was not lost.
    fn cause(&self, id: u64) -> Option<LossClass>;

    /// The loss of packet `id` was judged to be `class`: an implementation may count wrong verdicts.
    fn judged(&self, id: u64, class: LossClass) {
        let _ = (id, class);
    }
}

/// One feedback message, as a host makes it of whatever the other side sent.
///
/// A classifier in front of a controller writes its verdicts into the reports of lost packets; everything else stays as the
/// host made it.
#[derive(Debug)]
pub struct Feedback<'a> {
    /// Fates of packets, in the order of sending. A packet is `Lost` once later ones have arrived, or by the host's timeout;
    /// a packet without news has no report.
    pub reports: &'a mut [Report],
    /// The order in which they arrived, as places in `reports`; empty if they arrived in the order of sending.
    pub arrival_order: &'a [u32],
    /// Resolution of the times of arrival; `None` without such times.
    pub resolution: Option<Span>,
    /// When the other side sent this message, by its clock.
    pub remote_sent: Option<Time<Rx>>,
    /// Time from the newest arrival in this message to its sending, at the other side.
    pub hold: Span,
    /// Protocol that carried the message.
    pub source: Source,
    /// Counts that the receiver made itself, if any.
    pub receiver: Option<Summary>,
    /// True causes of the losses: from a simulation, and only for those who are meant to know.
    pub truth: Option<&'a dyn LossTruth>,
}

/// Round-trip times outside of this mean a broken clock or a dishonest peer, not a path.
const RTT: core::ops::RangeInclusive<Span> = Span::from_nanos(1)..=Span::from_secs(60);

impl<'a> Feedback<'a> {
    /// Reports with exact times of arrival.
    pub fn exact(reports: &'a mut [Report], remote_sent: Option<Time<Rx>>) -> Feedback<'a> {
        Feedback {
            reports,
            arrival_order: &[],
            resolution: Some(Span::from_nanos(1)),
            remote_sent,
            hold: Span::ZERO,
            source: Source::Native,
            receiver: None,
            truth: None,
        }
    }

    /// The place of the packet that arrived last.
    pub fn newest(&self) -> Option<usize> {
        let arrived =
            |&i: &usize| matches!(self.reports.get(i), Some(Report { fate: Fate::Arrived { .. }, .. }));
        let told = self.arrival_order.iter().rev().map(|&i| i as usize).find(arrived);
        let stamped = || {
            let at = |(i, report): (usize, &Report)| match report.fate {
                Fate::Arrived { at: Some(at), .. } => Some((at, i)),
                _ => None,
            };
            self.reports.iter().enumerate().filter_map(at).max().map(|(_, i)| i)
        };
        told.or_else(stamped).or_else(|| (0..self.reports.len()).rev().find(arrived))
    }

    /// The round-trip time of the newest packet, without the time for which the feedback was held back (RFC 5348, section
    /// 4.3, step 1). Nothing where it is not positive or above a minute.
    pub fn rtt(&self, now: Time) -> Option<Span> {
        let newest = self.reports.get(self.newest()?)?;
        Some(now - newest.sent.at - self.hold.max(Span::ZERO)).filter(|rtt| RTT.contains(rtt))
    }

    /// The round-trip time that a packet would have measured had it been the newest; `newest` is that of [`rtt`](Self::rtt).
    pub fn rtt_of(&self, now: Time, report: &Report) -> Option<Span> {
        let (Fate::Arrived { at: Some(at), .. }, Some(remote)) = (report.fate, self.remote_sent) else {
            return None;
        };
        Some(now - report.sent.at - (remote - at)).filter(|rtt| RTT.contains(rtt))
    }
}

/// Puts the places of arrivals into `order`, by their times; nothing where they arrived in the order of sending, or a time is not known.
pub(crate) fn arrival_order(reports: &[Report], order: &mut Vec<u32>) {
    order.clear();
    let at = |report: &Report| match report.fate {
        Fate::Arrived { at, .. } | Fate::Late { at } => Some(at),
        Fate::Lost { .. } => None,
    };
    let times = || reports.iter().filter_map(at);
    if times().is_sorted() || times().any(|at| at.is_none()) {
        return;
    }
    order.extend((0..reports.len() as u32).filter(|&k| at(&reports[k as usize]).is_some()));
    // In place, since a stable sort takes memory.
    order.sort_unstable_by_key(|&k| (at(&reports[k as usize]), k));
}

/// Why a route changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteChange {
    /// The host moved to another network.
    Handover,
    /// The other side's address or the path's length changed.
    Path,
    /// The controller itself found that the path carries far more than before.
    MoreCapacity,
    /// The controller itself found that the path carries far less than before.
    LessCapacity,
}

/// Input beside packets and feedback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Signal {
    /// Rates that the sources can use.
    Demand {
        /// Below this they have nothing useful to send.
        min: Rate,
        /// This would suit them.
        desired: Rate,
        /// They cannot send more.
        max: Rate,
    },
    /// A round-trip time that was measured some other way.
    Rtt {
        /// The sample.
        sample: Span,
    },
    /// The packets take another way.
    Route {
        /// Why.
        why: RouteChange,
    },
    /// The receiver asks for no more than this (REMB, TMMBR).
    Remb {
        /// The limit.
        rate: Rate,
    },
    /// All packets of a long span of time were lost.
    PersistentCongestion,
    /// With all losses counted the stream sends five times what TCP would, or ten times, where circuit breakers trip (RFC 8083).
    Excess {
        /// The share of packets lost lately.
        loss: f64,
        /// True if the breaker trips.
        trips: bool,
    },
    /// Packets may be so large.
    Mtu {
        /// At the IP layer.
        size: Bytes,
    },
    /// The sources pause.
    Idle,
    /// They go on.
    Resume,
    /// Media that was made and has not left: it waits for the pacer. Told where it changed, when a frame was made and before feedback.
    Backlog {
        /// Bytes of its IP packets.
        bytes: Bytes,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn round_trips_are_those_of_the_newest_arrival_without_the_hold() {
        let report = |id, sent, arrived: Option<u64>| Report {
            sent: Sent::media(id, Bytes(1000), at(sent)),
            fate: arrived
                .map_or(Fate::lost(LostBy::Gap), |ms| Fate::arrived(Time::from_nanos(ms * 1_000_000))),
        };
        let mut reports = [
            report(0, 0, Some(5_020)),
            report(1, 10, Some(5_050)),
            report(2, 20, Some(5_040)),
            report(3, 30, None),
        ];
        let mut feedback = Feedback::exact(&mut reports, Some(Time::from_nanos(5_060_000_000)));
        feedback.hold = Span::from_millis(10);
        assert_eq!(feedback.newest(), Some(1));
        assert_eq!(feedback.rtt(at(100)), Some(Span::from_millis(80)));
        assert_eq!(feedback.rtt_of(at(100), &feedback.reports[0]), Some(Span::from_millis(60)));
        assert_eq!(feedback.rtt_of(at(100), &feedback.reports[3]), None);
        feedback.arrival_order = &[0, 1, 2, 99];
        assert_eq!(feedback.newest(), Some(2));
        // From the future, and from long ago.
        assert_eq!(feedback.rtt(at(1)), None);
        assert_eq!(feedback.rtt(at(1_000_000)), None);
    }
}
