//! Answers that a sender takes in: feedback, reports, requests for lost packets, goodbyes.

use core::net::SocketAddr;

use super::breaker::{Heard, Verdict};
use super::event::{Decision, End};
use super::repeater::Repeater;
use super::sender::{Awaited, Sender};
use super::{CLOCK_RATE, middle, nearest, ntp};
use crate::control::{RouteChange, Signal};
use crate::node::{Datagram, Ecn, Output};
use crate::time::{Span, Time};
use crate::units::Rate;
use crate::wire::{FeedbackBlock, ReportBlock, Rtcp, TfrcReport, is_rtcp};

/// Key frames that are asked for are so far apart at least.
const KEY_FRAME_EVERY: Span = Span::from_secs(1);
/// Other addresses of the receiver are asked so often at most. So many questions wait for their answers, each for so long.
const ASK_EVERY: Span = Span::from_millis(250);
const MOST_ASKED: usize = 16;
const ASKED: Span = Span::from_secs(4);

impl Sender {
    pub(super) fn on_rtcp(&mut self, now: Time, datagram: &Datagram) {
        let own = self.config.ssrc;
        let Some(bytes) = datagram.payload.udp().filter(|bytes| is_rtcp(bytes)) else { return };
        if !datagram.is_from(self.config.peer) && !self.follows(now, datagram.from, bytes) {
            return;
        }
        self.sent.feedback_packets += 1;
        self.sent.feedback_bytes += datagram.ip_size() + self.config.expansion.rtcp;
        self.tell_backlog(now);
        if let Some(control) = &mut self.control {
            control.receipts.clear();
            control.signals.answered(now, datagram.to.ip(), &mut *control.controller);
        }
        let mut reported = None;
        for packet in Rtcp::all(bytes).map_while(Result::ok) {
            match packet {
                Rtcp::Extended(report) => {
                    if let Some(control) = &mut self.control {
                        report.receipt_times().for_each(|block| control.receipts.read(&block));
                    }
                }
                Rtcp::Feedback(feedback) => {
                    let repeats = self.repeater.as_ref().map(Repeater::ssrc);
                    for block in feedback.blocks() {
                        let stream = usize::from(block.ssrc != own);
                        if stream == 1 && repeats != Some(block.ssrc) {
                            continue;
                        }
                        let mut news = false;
                        if let Some(control) = &mut self.control {
                            news = control.on_feedback(now, &block, feedback.at(), stream);
                            (self.sent.lost, self.sent.lost_wireless) = (control.lost, control.lost_wireless);
                            self.sent.late = control.late;
                        }
                        if stream == 0 {
                            self.rtt = self.measured(now, &block).or(self.rtt);
                        }
                        for (low, told) in block.reports().filter(|(_, told)| told.received && stream == 0) {
                            news |= self.acknowledge(low, told.ecn);
                        }
                        if news {
                            self.heard(now, feedback.ssrc());
                        }
                    }
                }
                Rtcp::Tfrc(report) if report.source == own => self.on_summary(now, &report),
                Rtcp::Receiver { blocks, ssrc } | Rtcp::Sender { blocks, ssrc, .. } => {
                    if let Some(block) = blocks.iter().find(|block| block.ssrc == own) {
                        // Reports come while nothing arrives, too.
                        let told = (block.highest, self.sent.packets);
                        let before = self.told.replace(told);
                        if before.is_none_or(|(highest, sent)| highest != told.0 || sent == told.1) {
                            self.heard(now, ssrc);
                        }
                        reported = self.on_block(now, &block).or(reported);
                    }
                }
                Rtcp::Nack(nack) if nack.ssrc == own && self.repeater.is_some() => {
                    self.heard(now, nack.sender);
                    nack.lost().for_each(|low| self.send_again(now, low));
                }
                Rtcp::KeyFrame(request) if request.asks(own) => {
                    self.heard(now, request.sender);
                    // Requests are repeated until the key frame came, which is several times as large as others.
                    if self.key_frame_at.is_none_or(|at| now >= at + KEY_FRAME_EVERY) {
                        self.key_frame_at = Some(now);
                        self.frames.key_frame();
                    }
                }
                Rtcp::Goodbye(sources) if sources.iter().any(|ssrc| self.receiver == Some(ssrc)) => {
                    self.end(now, End::PeerLeft);
                }
                _ => {}
            }
        }
        if let (Some(control), Some(sample)) = (&mut self.control, reported) {
            control.signals.report(now, sample, &mut *control.controller);
        }
        self.go_on(now);
    }

    /// A report of the receiver may come from another address: it moved, or a NAT gave it another port. Without SRTP anybody could say so. With
    /// it the address is asked first, by a report that the receiver has to answer: an attacker may have held this one up, and sent it from
    /// anywhere. True if the stream goes there from now on.
    fn follows(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) -> bool {
        let (own, peer) = (self.config.ssrc, self.config.peer);
        let is_possible = self.config.expansion.is_protected() && from.is_ipv4() == peer.is_ipv4();
        let block = Rtcp::all(bytes).map_while(Result::ok).find_map(|packet| match packet {
            Rtcp::Receiver { blocks, ssrc } | Rtcp::Sender { blocks, ssrc, .. }
                if self.receiver == Some(ssrc) =>
            {
                blocks.iter().find(|block| block.ssrc == own)
            }
            _ => None,
        });
        let Some(block) = block.filter(|_| is_possible && !self.ended()) else { return false };
        let answered = (from, block.last_report);
        if self.asked.iter().any(|&(to, stamp, at)| (to, stamp) == answered && now < at + ASKED) {
            self.config.peer = from;
            self.asked.clear();
            if let Some(control) = &mut self.control {
                control.controller.on_signal(now, Signal::Route { why: RouteChange::Path });
            }
            self.out.push_back(Output::Event(Decision::ReceiverMoved { from: peer, to: from }));
            return true;
        }
        let is_due = self.asked.back().is_none_or(|(.., at)| now >= *at + ASK_EVERY);
        if let Some(stamp) = is_due.then(|| self.ask(now, from)).flatten() {
            if self.asked.len() == MOST_ASKED {
                self.asked.pop_front();
            }
            self.asked.push_back((from, stamp, now));
        }
        false
    }

    /// A receiver report came: it is told of where it can be true. The round-trip time by it.
    fn on_block(&mut self, now: Time, block: &ReportBlock) -> Option<Span> {
        let jitter =
            Span::from_nanos((u64::from(block.jitter) * 1_000_000_000 / u64::from(CLOCK_RATE)) as i64);
        let never_sent = u64::from(block.highest) >= self.sent.packets;
        if never_sent || i64::from(block.lost) > self.sent.packets as i64 || jitter > now - self.config.start
        {
            self.sent.impossible_reports += 1;
            return None;
        }
        self.sent.reported = self.sent.reported.max(u64::from(block.highest) + 1);
        let stamp = middle(ntp(self.config.epoch, now));
        let since = stamp.wrapping_sub(block.last_report);
        // Only a report that this end sent is answered, and not before it left.
        let answers = self.reports.contains(&block.last_report) && block.delay <= since;
        let ticks = u64::from(since.wrapping_sub(block.delay));
        let rtt = answers.then(|| Span::from_nanos(((ticks * 1_000_000_000) >> 16) as i64));
        self.rtt = rtt.or(self.rtt);
        self.out.push_back(Output::Event(Decision::MediaReported { lost: block.lost, jitter, rtt }));
        self.check(now, block);
        rtt
    }

    /// A report of TFRC's receiver came. If the receiver counts losses by another scheme than this end's, this end names its own at once, and
    /// again in each report until it is heeded.
    fn on_summary(&mut self, now: Time, report: &TfrcReport) {
        let Some(control) = &mut self.control else { return };
        if !control.on_report(now, report) {
            return;
        }
        if let Some(scheme) = &mut control.scheme {
            let first = scheme.heeded.is_none();
            if let Some(heeded) = scheme.heard(report) {
                self.out.push_back(Output::Event(Decision::SchemeHeeded { heeded }));
                if first {
                    self.next_report = now;
                }
            }
        }
        self.heard(now, report.ssrc);
    }

    /// Hears the circuit breakers: a controller's rate is cut to a tenth once, and then the stream ends.
    fn check(&mut self, now: Time, block: &ReportBlock) {
        let (fraction_lost, highest) = (block.fraction_lost, block.highest);
        let heard =
            Heard { fraction_lost, highest, rtt: self.rtt, sent: (self.sent.packets, self.sent.bytes.0) };
        let ended = self.ended();
        let Some(breakers) = self.breakers.as_mut().filter(|_| !ended) else { return };
        let Some(verdict) = breakers.on_report(now, &heard) else { return };
        let bits = |bytes: f64| Rate::ip((bytes * 8.0) as u64);
        let (why, rates, loss, rtt) = match verdict {
            Verdict::Resolved => {
                if let Some(control) = &mut self.control {
                    control.ceiling = None;
                }
                return;
            }
            Verdict::Excess { loss } => {
                if let Some(control) = &mut self.control {
                    control.controller.on_signal(now, Signal::Excess { loss, trips: false });
                }
                return;
            }
            Verdict::MediaTimeout { .. } => (End::MediaTimeout, None, None, None),
            Verdict::Congestion { rate, most, loss, rtt } => {
                (End::Congestion, Some((bits(rate), bits(most))), Some(loss), Some(Span::from_secs_f64(rtt)))
            }
        };
        let mut ends = true;
        if let (Some(control), Verdict::Congestion { rate, .. }) = (&mut self.control, verdict)
            && breakers.reduce(now)
        {
            (control.ceiling, ends) = (Some(bits(rate / 10.0)), false);
            control.controller.on_signal(now, Signal::Excess { loss: loss.unwrap_or(0.0), trips: true });
        }
        self.out.push_back(Output::Event(Decision::CircuitBroken { why, ends, rates, loss, rtt }));
        if ends {
            self.end(now, why);
        }
    }

    fn heard(&mut self, now: Time, receiver: u32) {
        if self.receiver.is_none() {
            // A key frame that went to nobody keeps none from the first receiver.
            self.key_frame_at = None;
        }
        (self.last_feedback, self.receiver, self.refused) = (now, Some(receiver), None);
    }

    /// State of a packet that was sent lately.
    fn awaited(&mut self, low: u16) -> Option<&mut Awaited> {
        let number = nearest(self.sent.packets.checked_sub(1)?, low)?;
        self.awaited.1.get_mut(usize::try_from(number.checked_sub(self.awaited.0)?).ok()?)
    }

    /// The round-trip time of the newest packet that feedback tells of, to a millisecond.
    fn measured(&mut self, now: Time, block: &FeedbackBlock<'_>) -> Option<Span> {
        let newest = block.reports().filter_map(|(low, told)| Some((told.before_report()?, low))).min()?;
        let left = self.awaited(newest.1)?.at;
        Some(now - left - newest.0).filter(|rtt| *rtt > Span::ZERO)
    }

    /// Takes note that a packet arrived, of those that were sent. True if that was not known.
    fn acknowledge(&mut self, low: u16, ecn: Ecn) -> bool {
        let newest = self.sent.packets.checked_sub(1).and_then(|last| nearest(last, low));
        let Some(packet) = self.awaited(low) else { return false };
        // A copy of it may come without the mark.
        let known = packet.arrived.filter(|known| *known == Ecn::Ce).unwrap_or(ecn);
        let (size, before) = (packet.size, packet.arrived.replace(known));
        if before.is_none() {
            self.sent.reported = self.sent.reported.max(newest.map_or(0, |number| number + 1));
            self.sent.acknowledged += 1;
            self.sent.acknowledged_bytes += size;
        }
        self.sent.marked += u64::from(known == Ecn::Ce && before != Some(Ecn::Ce));
        before.is_none()
    }
}
