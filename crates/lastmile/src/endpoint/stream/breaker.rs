//! RTP circuit breakers (RFC 8083, sections 4.2 and 4.3): reports say that the path does not carry the media, or loses so much
//! that a TCP in its place would send less than a tenth.
//!
//! A sender with a rate controller first cuts its rate to a tenth, as section 4.3 allows, and ends if that does not help: a capacity
//! that falls to less than half trips the breaker of a controller that reacts within a second too.
//!
//! The third one, without any report, is the sender's own wait. The fourth, media that is of no use, is the application's.

use std::collections::VecDeque;

use crate::time::{Span, Time};

/// k: so many reports in a row that no media came are no chance (section 4.2).
const REPORTS: f64 = 5.0;
/// Congestion that comes again within this was not resolved.
const RECURS: Span = Span::from_secs(60);
/// Reports that are kept: a receiver that reports more often has an interval that is shorter than any network needs.
const MAX_KEPT: usize = 1_024;
/// The shortest interval between reports that is believed.
const SHORTEST: f64 = 0.001;

/// Content of a report, and the packets sent until it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// Share of packets lost since the report before, in 256ths.
    pub(super) fraction_lost: u8,
    /// The highest sequence number received, with its cycles.
    pub(super) highest: u32,
    /// The round-trip time that it measured, where it did.
    pub(super) rtt: Option<Span>,
    /// Packets of media sent so far, and their bytes.
    pub(super) sent: (u64, u64),
}

/// Verdicts of the breakers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// So many reports say that no media came.
    MediaTimeout { reports: u32 },
    /// Bytes in a second that were sent, and ten times those that TCP would send, with the loss and round-trip time in seconds
    /// that say so.
    Congestion { rate: f64, most: f64, loss: f64, rtt: f64 },
    /// More than half of what trips the breaker was sent, with that loss.
    Excess { loss: f64 },
    /// A reduction of the rate resolved the congestion.
    Resolved,
}

/// Seconds, losses, packets and bytes between two reports.
#[derive(Clone, Copy, Debug)]
struct Interval {
    seconds: f64,
    lost: f64,
    packets: u64,
    bytes: u64,
}

/// The breakers of one stream.
#[derive(Debug)]
pub(super) struct Breakers {
    /// Tf: seconds between frames.
    frame_interval: f64,
    /// Tr: smoothed round-trip time in seconds.
    rtt: Option<f64>,
    /// Tdr: smoothed seconds between reports, as they come. The RFC has it from the session's bandwidth.
    report_interval: Option<f64>,
    /// When the last report came, the highest number in it, and what had been sent.
    last_report: Option<(Time, u32, (u64, u64))>,
    /// Reports in a row that no media came, and the number of them that trips the breaker.
    silent: (u32, u32),
    intervals: VecDeque<Interval>,
    /// CB_INTERVAL.
    interval_reports: usize,
    /// Reports since the rate was reduced, while that is tried, and when it was.
    reduced: Option<usize>,
    last_reduced: Option<Time>,
}

impl Breakers {
    pub(super) fn new(frame_rate: f64) -> Breakers {
        let frame = 1.0 / frame_rate;
        Breakers {
            frame_interval: frame,
            rtt: None,
            report_interval: None,
            last_report: None,
            silent: (0, 0),
            intervals: VecDeque::new(),
            interval_reports: 0,
            reduced: None,
            last_reduced: None,
        }
    }

    /// A report came.
    pub(super) fn on_report(&mut self, now: Time, heard: &Heard) -> Option<Verdict> {
        if let Some(sample) = heard.rtt.map(Span::as_secs_f64) {
            // Tr = 0.8 Tr + 0.2 Tr_new
            self.rtt = Some(self.rtt.map_or(sample, |before| 0.8 * before + 0.2 * sample));
        }
        let (since, highest, sent) = self.last_report.replace((now, heard.highest, heard.sent))?;
        let seconds = (now - since).as_secs_f64().max(SHORTEST);
        self.report_interval =
            Some(self.report_interval.map_or(seconds, |before| 0.875 * before + 0.125 * seconds));
        let (packets, bytes) = (heard.sent.0 - sent.0, heard.sent.1 - sent.1);
        let advanced = (heard.highest.wrapping_sub(highest) as i32) > 0;
        let trip = self.timeout(advanced, packets).or_else(|| {
            let lost = f64::from(heard.fraction_lost) / 256.0;
            self.congestion(Interval { seconds, lost, packets, bytes }, advanced)
        });
        let reports = self.reduced.map(|reports| reports + 1);
        let trips = trip.is_some_and(|trip| !matches!(trip, Verdict::Excess { .. }));
        let over = reports.is_some_and(|reports| reports > self.interval_reports) && !trips;
        self.reduced = reports.filter(|_| !over);
        self.interval_reports = self.interval();
        if over { Some(Verdict::Resolved) } else { trip }
    }

    /// Begins a try of a tenth of the rate. False if the last try did not help, or not for long.
    pub(super) fn reduce(&mut self, now: Time) -> bool {
        let may = self.last_reduced.is_none_or(|before| now >= before + RECURS);
        (self.last_reduced, self.reduced) = (Some(now), Some(0));
        self.intervals.clear();
        may
    }

    /// Section 4.2: the media timeout.
    fn timeout(&mut self, advanced: bool, packets: u64) -> Option<Verdict> {
        let every = self.report_interval?;
        // MEDIA_TIMEOUT = ceil(k * max(Tf, Tr, Tdr) / Tdr)
        let longest = self.frame_interval.max(self.rtt.unwrap_or(0.0)).max(every);
        let most = ceil(REPORTS * longest / every) as u32;
        let (count, before) = self.silent;
        self.silent = match advanced {
            true => (0, most),
            // A report that nothing came of what was not sent says nothing.
            false => (count + u32::from(packets > 0), before.max(most)),
        };
        let (reports, most) = self.silent;
        (!advanced && reports >= most).then_some(Verdict::MediaTimeout { reports })
    }

    /// Section 4.3: congestion, by the simplified equation. All losses count, whatever lost them.
    fn congestion(&mut self, interval: Interval, advanced: bool) -> Option<Verdict> {
        let (every, rtt) = (self.report_interval?, self.rtt?);
        // A stream of less than a packet in each max(Tdr, Tr) is not judged.
        if !advanced || (interval.packets as f64) * every.max(rtt) < interval.seconds {
            return None;
        }
        self.intervals.push_back(interval);
        if self.intervals.len() > MAX_KEPT {
            self.intervals.pop_front();
        }
        let before = self
            .intervals
            .len()
            .checked_sub(self.interval_reports)
            .filter(|before| *before > 0 && self.interval_reports > 0)?;
        let lately = || self.intervals.iter().skip(before);
        let seconds: f64 = lately().map(|one| one.seconds).sum();
        let loss = lately().map(|one| one.lost * one.seconds).sum::<f64>() / seconds;
        let (packets, bytes) = lately().fold((0, 0), |sum, one| (sum.0 + one.packets, sum.1 + one.bytes));
        let (rate, size) = (bytes as f64 / seconds, bytes as f64 / packets.max(1) as f64);
        // X = s / (Tr sqrt(2 b p / 3)), with b = 1
        let most = 10.0 * size / (rtt * libm::sqrt(2.0 * loss / 3.0));
        match loss > 0.0 {
            true if rate > most => Some(Verdict::Congestion { rate, most, loss, rtt }),
            true if rate > most / 2.0 => Some(Verdict::Excess { loss }),
            _ => None,
        }
    }

    /// CB_INTERVAL = ceil(3 min(max(10 G Tf, 10 Tr, 3 Tdr), max(15, 3 Td)) / (3 Tdr)), where G is 1: a source's rate may change
    /// with each frame.
    fn interval(&self) -> usize {
        let (every, rtt) = (self.report_interval.unwrap_or(1.0), self.rtt.unwrap_or(0.0));
        let react = (10.0 * self.frame_interval).max(10.0 * rtt).max(3.0 * every);
        let reports = ceil(3.0 * react.min((3.0 * every).max(15.0)) / (3.0 * every));
        (reports as usize).clamp(1, MAX_KEPT / 2)
    }
}

/// The next whole number, for quotients that rounding may have made a bit larger than they are.
fn ceil(quotient: f64) -> f64 {
    libm::ceil(quotient - 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports `every` so many milliseconds, with that loss in 256ths and round-trip time, of a sender of packets of 1200 B. Each
    /// says that media came, or that none did.
    struct Story {
        breakers: Breakers,
        now: Time,
        highest: u32,
        sent: (u64, u64),
    }

    impl Story {
        fn new() -> Story {
            let (breakers, now) = (Breakers::new(30.0), Time::ZERO + Span::from_secs(1));
            Story { breakers, now, highest: 65_530, sent: (0, 0) }
        }

        fn report(
            &mut self,
            every: i64,
            (fraction_lost, comes): (u8, bool),
            rtt: i64,
            packets: u64,
        ) -> Option<Verdict> {
            self.now += Span::from_millis(every);
            self.highest += u32::from(comes) * packets as u32;
            self.sent = (self.sent.0 + packets, self.sent.1 + 1200 * packets);
            let rtt = Some(Span::from_millis(rtt));
            let heard = Heard { fraction_lost, highest: self.highest, rtt, sent: self.sent };
            self.breakers.on_report(self.now, &heard)
        }

        /// The same, but only verdicts that trip a breaker.
        fn trips(&mut self, every: i64, told: (u8, bool), rtt: i64, packets: u64) -> Option<Verdict> {
            let excess = |verdict: &Verdict| matches!(verdict, Verdict::Excess { .. });
            self.report(every, told, rtt, packets).filter(|verdict| !excess(verdict))
        }
    }

    /// Section 4.2: k = 5 reports where reports are rarer than round trips and frames; ceil(5 * 3 / 1) = 15 where a round trip
    /// takes three of them.
    #[test]
    fn five_reports_without_media_are_a_timeout_and_more_where_the_path_is_long() {
        for (rtt, reports) in [(100, 5), (3_000, 15)] {
            let mut story = Story::new();
            assert_eq!(story.report(1_000, (0, true), rtt, 100), None);
            assert_eq!(story.report(1_000, (0, true), rtt, 100), None);
            for _ in 1..reports {
                assert_eq!(story.report(1_000, (0, false), rtt, 100), None);
            }
            assert_eq!(story.report(1_000, (0, false), rtt, 100), Some(Verdict::MediaTimeout { reports }));
        }
    }

    #[test]
    fn media_that_comes_again_and_a_pause_of_the_sender_are_none() {
        let mut story = Story::new();
        story.report(1_000, (0, true), 100, 100);
        for _ in 0..10 {
            (0..4).for_each(|_| assert_eq!(story.report(1_000, (0, false), 100, 100), None));
            assert_eq!(story.report(1_000, (0, true), 100, 100), None);
        }
        (0..20).for_each(|_| assert_eq!(story.report(1_000, (0, false), 100, 0), None));
    }

    /// Section 4.3 by hand. Reports each second, 100 ms: CB_INTERVAL = ceil(3 * min(max(0.33, 1, 3), max(15, 3)) / 3) = 3.
    /// p = 26 / 256 = 0.1016 and s = 1200 B: X = 1200 / (0.1 * sqrt(0.0677)) = 46,116 B/s, ten of which are 384 packets a
    /// second. More than three intervals have to be known.
    #[test]
    fn more_than_ten_times_what_tcp_would_send_is_congestion() {
        let mut story = Story::new();
        (0..20).for_each(|_| assert_eq!(story.trips(1_000, (26, true), 100, 384), None));
        assert_eq!(story.report(1_000, (26, true), 100, 384), Some(Verdict::Excess { loss: 26.0 / 256.0 }));
        let mut half = Story::new();
        (0..20).for_each(|_| assert_eq!(half.report(1_000, (26, true), 100, 192), None));
        let mut story = Story::new();
        // The first report begins the first interval.
        (0..4).for_each(|_| assert_eq!(story.trips(1_000, (26, true), 100, 385), None));
        let Some(Verdict::Congestion { rate, most, loss, rtt }) = story.trips(1_000, (26, true), 100, 385)
        else {
            panic!("did not trip");
        };
        assert!((rate - 462_000.0).abs() < 1.0 && (most - 461_157.0).abs() < 100.0, "{rate} {most}");
        assert!((loss - 0.1016).abs() < 1e-4 && (rtt - 0.1).abs() < 1e-9);
    }

    /// By hand: of 30 % p = 77 / 256, 10 X = 12,000 / (0.04 * sqrt(0.2005)) = 669,949 B/s over 40 ms, and half of that over 80 ms.
    /// 3 Mbit/s are 313 packets a second, 375,600 B/s.
    #[test]
    fn a_third_of_the_packets_lost_is_congestion_over_80_ms_and_not_over_40() {
        for (rtt, ten) in [(40, None), (80, Some(334_974.0))] {
            let mut story = Story::new();
            let verdict = (0..40).find_map(|_| story.trips(1_000, (77, true), rtt, 313));
            let most = verdict.map(|verdict| match verdict {
                Verdict::Congestion { most, .. } => most,
                other => panic!("{other:?}"),
            });
            assert_eq!(most.map(|most| (most / 100.0).round()), ten.map(|ten: f64| (ten / 100.0).round()));
        }
    }

    /// By hand: reports each second and 2 s there and back: min(max(20, 3), max(15, 3)) = 15. Each 5 s and 100 ms: max(1, 15) =
    /// 15 s, which are 3 reports.
    #[test]
    fn how_many_reports_count_is_section_4_3() {
        for (every, rtt, most) in [(1_000, 100, 3), (1_000, 2_000, 15), (5_000, 100, 3), (1_000, 500, 5)] {
            let mut story = Story::new();
            (0..3).for_each(|_| assert_eq!(story.report(every, (0, true), rtt, 100), None));
            assert_eq!(story.breakers.interval_reports, most, "{every} {rtt}");
        }
    }

    #[test]
    fn a_tenth_of_the_rate_is_tried_once_a_minute() {
        let trips =
            |story: &mut Story, packets| (0..10).find_map(|_| story.report(1_000, (26, true), 100, packets));
        for (packets, helps) in [(385, false), (38, true), (0, true)] {
            let mut story = Story::new();
            assert!(matches!(trips(&mut story, 385), Some(Verdict::Congestion { .. })));
            assert!(story.breakers.reduce(story.now));
            assert_eq!(trips(&mut story, packets) == Some(Verdict::Resolved), helps, "{packets}");
            assert!(!story.breakers.reduce(story.now));
            assert!(story.breakers.reduce(story.now + RECURS));
        }
    }

    /// Losses of one interval in three, weighted by their time.
    #[test]
    fn who_reacts_in_time_goes_on() {
        let mut story = Story::new();
        for _ in 0..20 {
            assert_eq!(story.report(1_000, (80, true), 100, 385), None);
            (0..2).for_each(|_| assert_eq!(story.report(1_000, (0, true), 100, 40), None));
        }
        // No more than a packet between two reports: too few to tell.
        (0..20).for_each(|_| assert_eq!(story.report(5_000, (255, true), 100, 0), None));
    }
}
