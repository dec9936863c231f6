//! A stream in lines for people: its state on a screen, and its results.

use lastmile::endpoint::stream::{End, Sent};
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use lastmile_report::text::wrapped;
use lastmile_sim::monitor::flows::as_rate;

use super::Sending;
use crate::shell::WIDTH;

impl Sending {
    /// The state of the stream, in lines for a screen.
    pub(crate) fn screen(&self) -> Vec<String> {
        let rate = |bps: Option<f64>| bps.map_or_else(|| "-".to_owned(), |bps| as_rate(bps).to_string());
        let (sent, received) = self.rates;
        let by = self.srtp.map_or("RTP", |_| "SRTP");
        let capacity = self.capacity().map_or_else(String::new, |capacity| format!("; capacity {capacity}"));
        let lost = self
            .lost
            .map_or_else(|| "unknown".to_owned(), |lost| format!("{lost} of {} packets", self.packets));
        let judged = self.judged().map_or_else(String::new, |judged| format!(": {judged}"));
        let left_out = match self.frames_dropped {
            0 => String::new(),
            dropped => format!("; {dropped} left out"),
        };
        let rtt = milliseconds(self.last_rtt.map(Span::as_secs_f64));
        let audio = self.audio.as_ref().map(|audio| {
            let (sent, received) = audio.rates;
            let lost = audio.lost.map_or_else(|| "unknown".to_owned(), |lost| lost.to_string());
            format!(
                "  audio: {} sent, {} received; lost: {lost} of {} packets",
                rate(sent),
                rate(received),
                audio.packets
            )
        });
        let mut lines = vec![
            format!("{} to {} by {by}, {:.0} s", self.name(), self.peer, self.seconds),
            format!(
                "  rate: target {}, {} sent, {} received{capacity}",
                Rate::ip(self.target_bps),
                rate(sent),
                rate(received)
            ),
            format!("  round trip: {rtt}; jitter: {}", milliseconds(self.jitter_s)),
            format!("  lost: {lost}{judged}"),
            format!("  frames: {:.1} a second{left_out}", self.rates_of_frames),
        ];
        lines.extend(audio);
        lines
    }

    /// Counts and rates since the progress before.
    pub(super) fn progressed(&mut self, over: Span, before: &Sent, sent: &Sent) {
        let seconds = over.as_secs_f64();
        // The last one is of a moment.
        if seconds < 0.1 {
            return;
        }
        let rate = |now: Bytes, then: Bytes| (now - then).bits() as f64 / seconds;
        let received = rate(sent.acknowledged_bytes, before.acknowledged_bytes);
        self.rates = (Some(rate(sent.bytes, before.bytes)), (sent.acknowledged > 0).then_some(received));
        let frames = |sent: &Sent| sent.frames - sent.frames_dropped;
        self.rates_of_frames = (frames(sent) - frames(before)) as f64 / seconds;
    }

    /// The controller's name.
    fn name(&self) -> &str {
        self.control.as_deref().unwrap_or("fixed rate")
    }

    /// The path's capacity as it was told last.
    fn capacity(&self) -> Option<String> {
        let above = self.capacity_above_bps.map(|bps| format!("more than {}", Rate::ip(bps)));
        self.capacity_bps.map(|bps| Rate::ip(bps).to_string()).or(above)
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
        let mut lines = vec![
            format!("{} to {}: {:.2} s{ended}", self.name(), self.peer, self.seconds),
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
        if self.frames_dropped > 0 {
            let (frames, dropped) = (self.frames, self.frames_dropped);
            lines.push(format!(
                "frames: {frames} were due, {dropped} left out since too much waited to be sent"
            ));
        }
        lines.extend(probed);
        lines.extend(self.audio.as_ref().map(|audio| {
            let lost = audio.lost.map_or_else(|| "unknown".to_owned(), |lost| lost.to_string());
            let [rtt, jitter] = [audio.rtt_mean_s, audio.jitter_s].map(milliseconds);
            format!(
                "audio: {} received of {} sent; {lost} of {} packets lost ({}); round trip: {rtt}; jitter: {jitter}; cost: {} and {} of reports",
                rate(audio.received_bps),
                rate(audio.sent_bps),
                audio.packets,
                percent(audio.loss),
                Bytes(audio.media_bytes),
                Bytes(audio.report_bytes),
            )
        }));
        let padding = match self.padding_bytes {
            0 => String::new(),
            bytes => format!(" ({} of it padding)", Bytes(bytes)),
        };
        lines.push(format!(
            "cost: {} of media{padding} and {} of reports sent, {} of feedback received in {} packets",
            Bytes(self.media_bytes),
            Bytes(self.report_bytes),
            Bytes(self.bytes_received),
            self.feedback_packets,
        ));
        lines.iter().map(|line| wrapped(line, WIDTH)).collect()
    }
}

pub(in crate::roles::stream) fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{:.1} ms", seconds * 1e3))
}

pub(in crate::roles::stream) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.2} %", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::endpoint::Event;
    use lastmile::endpoint::stream::{ControlConfig, Decision, SenderConfig, SenderRate};
    use lastmile::time::Time;

    /// A firewall lets the frames through alone.
    #[test]
    fn audio_that_nobody_answers_is_told() {
        let rate = SenderRate::Fixed(Rate::ip(1_000_000));
        let config = SenderConfig::new("192.0.2.1:5004".parse().unwrap(), 7, rate);
        let ended = |ends: [(u32, End); 2]| {
            let mut sending = Sending::new(&config);
            sending.audio = Some(Box::new(Sending::new(&config)));
            for (node, why) in ends {
                let answered = matches!(why, End::Stop | End::Interrupted);
                let sent = Sent { feedback_packets: u64::from(answered), ..Sent::default() };
                let what = Decision::MediaEnded { why, sent }.into();
                sending.take(&Event { at: Time::ZERO, node, seq: 0, what });
            }
            sending
        };
        let sending = ended([(1, End::NoFeedback), (0, End::Stop)]);
        let told = sending.refused().unwrap_or_default();
        assert!(told.starts_with("audio: ") && told.contains("192.0.2.1:5004"), "{told}");
        assert!(matches!(sending.exit(false), Some(crate::shell::exit::Exit::Peer)));
        // Both are told, and audio that the frames' end interrupts met nothing itself.
        let told = ended([(1, End::NoFeedback), (0, End::PortClosed)]).refused().unwrap_or_default();
        assert_eq!((told.starts_with("audio: "), told.matches("audio: ").count()), (false, 1), "{told}");
        for (why, expected) in [(End::PortClosed, End::Interrupted), (End::Stop, End::Stop)] {
            let audio = ended([(0, why), (1, End::Interrupted)]).audio.unwrap();
            assert_eq!((audio.ended, audio.refused), (Some(expected), None));
        }
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
        sending.take(&event(2, Decision::MediaProgress { target: rate, pacing: None, sent }));
        let (jitter, rtt) = (Span::ZERO, None);
        sending.take(&event(3, Decision::MediaReported { lost: 0, jitter, rtt }));
        sending.take(&event(3, Decision::MediaProgress { target: rate, pacing: None, sent }));
        let screen = sending.screen();
        assert_eq!(screen[0], "tfrc+spike to 192.0.2.1:5004 by RTP, 2 s");
        assert_eq!(screen[1], "  rate: target 1 Mbit/s, 0 bit/s sent, 0 bit/s received");
        let wanted = "  lost: 29 of 900 packets: 11 congestion, 26 wireless; 8 of them came late";
        assert_eq!(screen[3], wanted);
        let wanted = "packets: 900 sent, 29 lost (-); classified: 11 congestion, 26 wireless; 8 of\n  them came late\n";
        assert!(sending.lines().contains(wanted), "{}", sending.lines());
        // The receiver falls silent after the report of second 2, and reports told of 860 packets.
        let sent = Sent { reported: 860, ..sent };
        sending.take(&event(3, Decision::MediaEnded { why: End::NoFeedback, sent }));
        let wanted = "packets: 900 sent, 29 lost (3.37 %); classified: 11 congestion, 26 wireless; 8\n  of them came late; 40 unknown after second 2.0: the receiver fell silent\n";
        assert!(sending.lines().contains(wanted), "{}", sending.lines());
    }
}
