//! Packets that can be sent again (RFC 4588): a sender's last ones, and its budget for repeats.

use std::collections::VecDeque;

use super::config::Retransmission;
use super::{RETRANSMITTED, nearest};
use crate::time::{Span, Time};
use crate::units::Bytes;
use crate::wire::write_retransmission;

/// Packets that are kept at most, and their bytes.
const MAX_KEPT: usize = 4_096;
const MAX_KEPT_BYTES: usize = 8_000_000;
/// Bytes that may be repeated at once, if the share allows it.
const BURST: Bytes = Bytes(65_536);
/// A packet is not repeated again within this, or half the round-trip time where that is longer: a receiver whose answer is lost asks after one.
const SHORTEST: Span = Span::from_millis(20);

/// A packet that was sent.
#[derive(Debug)]
struct Kept {
    at: Time,
    repeated: Option<Time>,
    packet: Vec<u8>,
}

/// The last packets of a stream, and what was repeated of them.
#[derive(Debug)]
pub(super) struct Repeater {
    config: Retransmission,
    /// The number of the first one kept, and those from there on.
    first_number: u64,
    kept: VecDeque<Kept>,
    bytes: usize,
    /// Bytes that may be repeated.
    credit: f64,
    /// Packets that were repeated, and their bytes of payload.
    pub(super) packets: u64,
    pub(super) payload: u64,
    /// Bytes of media and of repeated packets lately, and when that was.
    recent: (f64, f64, Time),
}

impl Repeater {
    pub(super) fn new(config: Retransmission) -> Repeater {
        let (kept, lately) = (VecDeque::new(), (0.0, 0.0, Time::ZERO));
        Repeater {
            config,
            first_number: 0,
            kept,
            bytes: 0,
            credit: 0.0,
            packets: 0,
            payload: 0,
            recent: lately,
        }
    }

    /// The number of the stream's source.
    pub(super) fn ssrc(&self) -> u32 {
        self.config.ssrc
    }

    /// A packet leaves, for the first time, of that size; its bytes or its header alone are of use.
    pub(super) fn keep(&mut self, at: Time, packet: &[u8], size: Bytes) {
        self.credit = (self.credit + self.config.share * size.0 as f64).min(BURST.0 as f64);
        self.recent.0 += size.0 as f64;
        self.kept.push_back(Kept { at, repeated: None, packet: packet.to_vec() });
        self.bytes += packet.len();
        let old = |kept: &Kept| kept.at + self.config.within < at;
        while self.kept.len() > MAX_KEPT || self.bytes > MAX_KEPT_BYTES || self.kept.front().is_some_and(old)
        {
            let Some(kept) = self.kept.pop_front() else { return };
            (self.bytes, self.first_number) = (self.bytes - kept.packet.len(), self.first_number + 1);
        }
    }

    /// The packet that repeats one, if it may be repeated and can leave at `at`; `overhead` is what IP and UDP add.
    pub(super) fn repeat(
        &mut self,
        at: Time,
        low: u16,
        rtt: Option<Span>,
        overhead: Bytes,
    ) -> Option<Vec<u8>> {
        let last = (self.first_number + self.kept.len() as u64).checked_sub(1)?;
        let place = nearest(last, low)?.checked_sub(self.first_number)?;
        let kept = self.kept.get_mut(usize::try_from(place).ok()?)?;
        let again = rtt.map_or(SHORTEST, |rtt| (rtt / 2).max(SHORTEST));
        let just = kept.repeated.is_some_and(|before| at < before + again);
        if just || at > kept.at + self.config.within {
            return None;
        }
        let mut packet = Vec::with_capacity(kept.packet.len() + 2);
        let header = (RETRANSMITTED, self.packets as u16, self.config.ssrc);
        write_retransmission(&mut packet, &kept.packet, header).ok()?;
        let size = (packet.len() as u64 + overhead.0) as f64;
        if size > self.credit {
            return None;
        }
        kept.repeated = Some(at);
        self.credit -= size;
        self.recent.1 += size;
        self.packets += 1;
        self.payload += (packet.len() - crate::wire::RTP_HEADER_LEN) as u64;
        Some(packet)
    }

    /// The share of the rate that is left to media, as of the last second or so.
    pub(super) fn media_share(&mut self, now: Time) -> f64 {
        let (media, repeated, since) = &mut self.recent;
        let fades = libm::exp(-(now - *since).as_secs_f64().max(0.0));
        (*media, *repeated, *since) = (*media * fades, *repeated * fades, now);
        if *repeated > 0.0 { *media / (*media + *repeated) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{RtpHeader, RtpPacket, original};

    fn at(millis: i64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn packet(number: u64) -> Vec<u8> {
        let mut packet = Vec::new();
        let header = RtpHeader { sequence: number as u16, payload_type: 96, ssrc: 7, ..RtpHeader::default() };
        header.write(&mut packet);
        packet.resize(972, 0);
        packet
    }

    fn repeater(share: f64) -> Repeater {
        Repeater::new(Retransmission { share, ..Retransmission::within(8, Span::from_millis(400)) })
    }

    fn send(repeater: &mut Repeater, number: u64, now: Time) {
        repeater.keep(now, &packet(number), Bytes(1000));
    }

    #[test]
    fn a_packet_is_repeated_while_it_is_of_use_and_not_twice_in_half_a_round_trip() {
        let mut repeater = repeater(1.0);
        (0..70_000).for_each(|number| send(&mut repeater, number, at(number as i64)));
        let again = |repeater: &mut Repeater, millis, number: u64| {
            let rtt = Some(Span::from_millis(100));
            repeater.repeat(at(millis), number as u16, rtt, Bytes(28))
        };
        let repeated = again(&mut repeater, 70_000, 69_900).unwrap();
        let read = RtpPacket::parse(&repeated).unwrap();
        assert_eq!((read.header.ssrc, read.header.sequence, read.header.payload_type), (8, 0, RETRANSMITTED));
        assert_eq!(original(&read).unwrap().0, 69_900_u64 as u16);
        assert!(again(&mut repeater, 70_049, 69_900).is_none());
        assert!(again(&mut repeater, 70_050, 69_900).is_some());
        // Too old, not sent yet, and one of 65,536 packets before.
        assert!(again(&mut repeater, 70_001, 69_600).is_none());
        assert!(again(&mut repeater, 70_001, 70_001).is_none());
        assert!(again(&mut repeater, 70_001, 4_364).is_none());
    }

    #[test]
    fn never_more_than_the_share_is_repeated() {
        let mut repeater = repeater(0.1);
        let (mut media, mut again) = (0, 0);
        for number in 0..5_000_u64 {
            send(&mut repeater, number, at(number as i64));
            media += 1000;
            // All are asked for, over and over.
            for asked in number.saturating_sub(300)..=number {
                let repeated = repeater.repeat(at(number as i64), asked as u16, None, Bytes(28));
                again += repeated.map_or(0, |packet| packet.len() as u64 + 28);
            }
            assert!(again * 10 <= media, "{again} of {media}");
        }
        assert!(again * 11 > media, "{again} of {media}");
        // A tenth more is sent: a tenth of the whole less is left to media.
        let share = repeater.media_share(at(5_000));
        assert!((share - 1.0 / 1.1).abs() < 0.01, "{share}");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut repeater = repeater(1.0);
        (0..20_000).for_each(|number| send(&mut repeater, number, at(0)));
        assert!(repeater.kept.len() <= MAX_KEPT && repeater.bytes <= MAX_KEPT_BYTES);
        (20_000..20_010).for_each(|number| send(&mut repeater, number, at(1_000)));
        assert_eq!((repeater.kept.len(), repeater.bytes), (10, 9_720));
    }
}
