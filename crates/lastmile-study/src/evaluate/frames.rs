//! Frames of a stream: from being made to the arrival of their last packets, and the freezes of a player that shows each whole
//! frame as it comes.

use std::collections::{BTreeMap, HashMap};

use lastmile::endpoint::stream::{CLOCK_RATE, MEDIA};
use lastmile::observe::stats::mean;
use lastmile::time::Time;

use crate::media::Seen;

/// Durations of frames that tell the usual one (W3C, webrtc-stats, freezeCount), and the least that a freeze lasts beyond that.
const USUAL: usize = 30;
const BEYOND_S: f64 = 0.150;

/// A frame that left its sender, by the times of its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Frame {
    /// When it was made, in seconds.
    pub(super) made_s: f64,
    /// Bytes of its packets.
    pub(super) bytes: u64,
    left: u32,
    /// Its last packet has left: what has the same timestamp after that is filling.
    ended: bool,
    arrived: u32,
    last_s: f64,
}

impl Frame {
    /// One of that size.
    #[cfg(test)]
    pub(super) fn of(made_s: f64, bytes: u64) -> Frame {
        Frame { made_s, bytes, ..Frame::default() }
    }

    /// When the last of its packets that arrived did.
    pub(super) fn arrived_s(&self) -> Option<f64> {
        (self.arrived > 0).then_some(self.last_s)
    }

    /// True if all of it arrived.
    fn is_whole(&self) -> bool {
        self.ended && self.arrived == self.left
    }
}

/// The timestamp of a frame that is made so many seconds after a stream's start; zero before it.
pub(super) fn timestamp(after_s: f64) -> u32 {
    (after_s * f64::from(CLOCK_RATE)) as u32
}

/// The frames of a stream, noted while a run goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames {
    /// When its timestamps begin, in seconds.
    starts_s: f64,
    /// By their timestamps, unwrapped.
    frames: BTreeMap<u64, Frame>,
    /// The timestamps of packets that have not arrived, by their numbers.
    awaited: HashMap<u16, u64>,
    newest: u64,
}

impl Frames {
    pub(super) fn new(starts_s: f64) -> Frames {
        Frames { starts_s, ..Frames::default() }
    }

    /// A packet of the stream left or arrived.
    pub(super) fn saw(&mut self, seen: &Seen) {
        let number = seen.repeats.or((seen.header.payload_type == MEDIA).then_some(seen.header.sequence));
        let Some(number) = number else { return };
        if seen.left.is_some() {
            // A packet and its repetition may both come.
            let Some(frame) = self.awaited.remove(&number).and_then(|stamp| self.frames.get_mut(&stamp))
            else {
                return;
            };
            frame.arrived += 1;
            frame.last_s = (seen.at - Time::ZERO).as_secs_f64();
        } else if seen.repeats.is_none() {
            let ahead = seen.header.timestamp.wrapping_sub(self.newest as u32) as i32;
            let stamp = self.newest.saturating_add_signed(ahead.into());
            self.newest = self.newest.max(stamp);
            let made_s = self.starts_s + stamp as f64 / f64::from(CLOCK_RATE);
            let frame = self.frames.entry(stamp).or_insert(Frame { made_s, ..Frame::default() });
            if frame.ended {
                return;
            }
            frame.left += 1;
            frame.bytes += seen.size.0;
            frame.ended = seen.header.marker;
            self.awaited.insert(number, stamp);
        }
    }

    /// Those made in that time, in their order.
    pub(super) fn within(&self, time_s: core::ops::Range<f64>) -> Vec<Frame> {
        self.frames.values().copied().filter(|frame| time_s.contains(&frame.made_s)).collect()
    }
}

/// Times at which a player without a buffer shows frames: each whole one as its last packet comes, unless a later one was shown before.
pub(super) fn shown(frames: &[Frame]) -> Vec<f64> {
    let mut whole: Vec<&Frame> = frames.iter().filter(|frame| frame.is_whole()).collect();
    whole.sort_by(|a, b| a.last_s.total_cmp(&b.last_s).then(a.made_s.total_cmp(&b.made_s)));
    let (mut newest, mut times) = (f64::NEG_INFINITY, Vec::new());
    for frame in whole {
        if frame.made_s > newest {
            newest = frame.made_s;
            times.push(frame.last_s);
        }
    }
    times
}

/// Freezes, and seconds that they last, of a player that shows frames at these times, until `end_s`: the time from one frame to the next is a
/// freeze if it is three times the mean of the last thirty, and 150 ms beyond it, or more (W3C, webrtc-stats, freezeCount).
pub(super) fn freezes(times: &[f64], end_s: f64) -> (usize, f64) {
    let ends = times.iter().skip(1).copied().chain([end_s]);
    let all: Vec<f64> = times.iter().zip(ends).map(|(from, to)| (to - from).max(0.0)).collect();
    let is_freeze = |&at: &usize| {
        let usual = mean(&all[at.saturating_sub(USUAL)..at]);
        usual.is_some_and(|usual| all[at] >= (3.0 * usual).max(usual + BEYOND_S))
    };
    let frozen: Vec<usize> = (0..all.len()).filter(is_freeze).collect();
    (frozen.len(), frozen.iter().map(|&at| all[at]).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::endpoint::stream::{PADDING, RETRANSMITTED};
    use lastmile::time::Span;
    use lastmile::units::Bytes;
    use lastmile::wire::RtpHeader;

    fn at(ms: i64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    const SIZE: Bytes = Bytes(500);

    /// Packets by number, timestamp in ms, end of a frame, departure and arrival.
    fn frames(packets: &[(u16, u32, bool, i64, Option<i64>)]) -> Vec<Frame> {
        let mut all = Frames::new(1.0);
        for &(sequence, stamp, marker, left, came) in packets {
            let header = RtpHeader { marker, payload_type: MEDIA, sequence, timestamp: 90 * stamp, ssrc: 7 };
            all.saw(&Seen { at: at(left), left: None, header, size: SIZE, repeats: None });
            if let Some(came) = came {
                all.saw(&Seen { at: at(came), left: Some(at(left)), header, size: SIZE, repeats: None });
            }
        }
        all.within(0.0..f64::INFINITY)
    }

    /// Two packets of a frame made at 1 s arrive at 1.05 and 1.09 s: it took 90 ms. Of the next one a packet is lost.
    #[test]
    fn a_frame_takes_until_its_last_packet() {
        let found = frames(&[
            (0, 0, false, 1_000, Some(1_050)),
            (1, 0, true, 1_040, Some(1_090)),
            (2, 40, false, 1_045, Some(1_095)),
            (3, 40, true, 1_050, None),
            (4, 80, true, 1_080, Some(1_130)),
        ]);
        let took: Vec<f64> =
            found.iter().map(|frame| ((frame.arrived_s().unwrap() - frame.made_s) * 1e3).round()).collect();
        assert_eq!(took, [90.0, 55.0, 50.0]);
        assert_eq!(found.iter().map(Frame::is_whole).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(shown(&found), [1.09, 1.13]);
    }

    #[test]
    fn padding_is_no_part_of_a_frame_and_what_is_sent_again_is() {
        let mut all = Frames::new(0.0);
        let header = |payload_type, sequence, marker| RtpHeader {
            marker,
            payload_type,
            sequence,
            timestamp: 0,
            ssrc: 7,
        };
        let mut saw = |ms, left: Option<i64>, header, repeats| {
            all.saw(&Seen { at: at(ms), left: left.map(at), header, size: SIZE, repeats });
        };
        saw(0, None, header(MEDIA, 0, false), None);
        saw(1, None, header(MEDIA, 1, true), None);
        saw(2, None, header(PADDING, 2, false), None);
        // Filling of a train, with the timestamp of the frame before.
        saw(3, None, header(MEDIA, 3, false), None);
        saw(50, Some(0), header(MEDIA, 0, false), None);
        saw(52, Some(2), header(PADDING, 2, false), None);
        saw(60, None, header(RETRANSMITTED, 0, false), Some(1));
        saw(110, Some(60), header(RETRANSMITTED, 0, false), Some(1));
        saw(120, Some(1), header(MEDIA, 1, true), None);
        let found = all.within(0.0..1.0);
        assert_eq!((found.len(), found[0].arrived_s(), found[0].is_whole()), (1, Some(0.11), true));
        assert_eq!(found[0].bytes, 1_000, "two packets of media");
        assert_eq!((all.within(0.0..0.0), all.within(0.1..1.0)), (Vec::new(), Vec::new()));
    }

    /// 25 frames in a second are 40 ms apart: 190 ms are a freeze, 189 are none. Ten in a second: 300 ms.
    #[test]
    fn a_freeze_is_three_frames_and_150_ms_more_than_the_usual() {
        let after = |gap_ms: f64, pause_ms: f64| {
            let mut times: Vec<f64> = (0..40).map(|k| f64::from(k) * gap_ms / 1e3).collect();
            let last = times[39];
            times.push(last + pause_ms / 1e3);
            freezes(&times, last + pause_ms / 1e3)
        };
        assert_eq!(after(40.0, 189.0), (0, 0.0));
        let (count, frozen_s) = after(40.0, 191.0);
        assert!(count == 1 && (frozen_s - 0.191).abs() < 1e-9);
        assert_eq!((after(100.0, 299.0).0, after(100.0, 301.0).0), (0, 1));
        // Nothing comes any more; and nothing ever came.
        assert_eq!(freezes(&[0.0, 0.04, 0.08], 10.0).0, 1);
        assert_eq!(freezes(&[], 10.0), (0, 0.0));
    }

    #[test]
    fn a_frame_that_comes_after_a_later_one_is_not_shown() {
        let found = frames(&[
            (0, 0, true, 0, Some(50)),
            (1, 40, true, 40, Some(150)),
            (2, 80, true, 80, Some(130)),
            (3, 120, true, 120, Some(170)),
        ]);
        assert_eq!(shown(&found), [0.05, 0.13, 0.17]);
    }
}
