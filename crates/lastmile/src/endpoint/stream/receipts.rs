//! Times of receipt (RFC 3611) on the clock of feedback (RFC 8888), whose own stamps are coarser.

use super::CLOCK_RATE;
use crate::time::{Rx, Span, Time};
use crate::wire::ReceiptTimes;

/// A tick of the media's clock: the resolution of these times.
pub(super) const TICK: Span = Span::from_nanos(11_112);
/// A time of receipt that is farther than this from what feedback says of the same packet stands on another clock than before:
/// two units of feedback.
const APART: Span = Span::from_micros(1_953);

/// Times of receipt that the receiver tells, and the relation between its clocks.
#[derive(Debug, Default)]
pub(super) struct ReceiptClock {
    /// By source and number, those of the datagram that is being read.
    times: Vec<((u32, u16), u32)>,
    /// One moment on both clocks.
    anchor: Option<(u32, Time<Rx>)>,
}

impl ReceiptClock {
    /// Another datagram is read.
    pub(super) fn clear(&mut self) {
        self.times.clear();
    }

    /// Takes the times of a block.
    pub(super) fn read(&mut self, block: &ReceiptTimes<'_>) {
        self.times.extend(block.times().map(|(number, ticks)| ((block.ssrc, number), ticks)));
        self.times.sort_unstable_by_key(|(packet, _)| *packet);
    }

    /// When a packet arrived, to a tick, of which feedback says that it was at about `near`; nothing where no time of receipt
    /// says so.
    pub(super) fn refine(&mut self, packet: (u32, u16), near: Time<Rx>) -> Option<Time<Rx>> {
        let (ticks, at) = self.read_at(packet, near)?;
        let apart = at - near;
        if apart > APART || apart < -APART {
            self.anchor = Some((ticks, near));
            return None;
        }
        Some(at)
    }

    /// When a packet arrived, to a tick, on a clock that begins anywhere: where feedback says nothing of single packets.
    pub(super) fn alone(&mut self, packet: (u32, u16)) -> Option<Time<Rx>> {
        self.read_at(packet, Time::from_nanos(1 << 50)).map(|(_, at)| at)
    }

    /// The ticks of a packet, and the time that they stand for; the first ones for that one.
    fn read_at(&mut self, packet: (u32, u16), first: Time<Rx>) -> Option<(u32, Time<Rx>)> {
        let place = self.times.binary_search_by_key(&packet, |(packet, _)| *packet).ok()?;
        let ticks = self.times[place].1;
        let (since, anchor) = *self.anchor.get_or_insert((ticks, first));
        let passed = ticks.wrapping_sub(since) as i32;
        let at = anchor + Span::from_nanos(i64::from(passed) * 1_000_000_000 / i64::from(CLOCK_RATE));
        // Before the 32 bits are used up, which takes 13 hours.
        if passed.unsigned_abs() > 1 << 28 {
            self.anchor = Some((ticks, at));
        }
        Some((ticks, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Rtcp, write_receipt_times};

    fn at(micros: u64) -> Time<Rx> {
        Time::from_nanos(micros * 1_000)
    }

    fn told(clock: &mut ReceiptClock, times: &[(u16, u32)]) {
        let mut bytes = Vec::new();
        write_receipt_times(&mut bytes, 1, 7, times);
        let Some(Ok(Rtcp::Extended(report))) = Rtcp::all(&bytes).next() else { panic!() };
        clock.clear();
        report.receipt_times().for_each(|block| clock.read(&block));
    }

    /// Packets 1 ms (90 ticks) apart keep that distance from feedback to feedback, whatever the coarse stamps round away.
    #[test]
    fn distances_are_those_of_the_ticks() {
        let mut clock = ReceiptClock::default();
        told(&mut clock, &[(65_535, u32::MAX - 44), (0, 45)]);
        assert_eq!(clock.refine((7, 65_535), at(10_976)), Some(at(10_976)));
        assert_eq!(clock.refine((7, 0), at(11_718)), Some(at(11_976)));
        assert_eq!(clock.refine((7, 1), at(12_000)), None);
        told(&mut clock, &[(1, 135)]);
        assert_eq!(clock.refine((7, 1), at(12_207)), Some(at(12_976)));
    }

    #[test]
    fn a_clock_that_was_set_is_found_again() {
        let mut clock = ReceiptClock::default();
        told(&mut clock, &[(1, 90), (2, 90_180), (3, 90_270)]);
        assert_eq!(clock.refine((7, 1), at(1_000)), Some(at(1_000)));
        // By the ticks a second passed, by the feedback a millisecond: the feedback is believed.
        assert_eq!(clock.refine((7, 2), at(2_000)), None);
        assert_eq!(clock.refine((7, 3), at(3_500)), Some(at(3_000)));
    }
}
