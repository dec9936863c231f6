//! Packets through both ends of SRTP: as they were, again, changed, forged, and in the middle of a stream.

use super::*;
use lastmile::units::Bytes;
use lastmile::wire::{SenderInfo, write_goodbye, write_sender_report};
use proptest::prelude::*;

const SUITES: [Suite; 2] = [Suite::AesCm128HmacSha1_80, Suite::AeadAes128Gcm];
const SSRC: u32 = 0x0102_0304;

fn key(suite: Suite) -> MasterKey {
    MasterKey::new(suite, &core::array::from_fn::<u8, 30, _>(|at| at as u8)).unwrap()
}

fn end(suite: Suite) -> Srtp {
    Srtp::new(key(suite), |_| {}).unwrap()
}

fn rtp(index: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    RtpHeader { sequence: index as u16, ssrc: SSRC, ..RtpHeader::default() }.write(&mut bytes);
    bytes.extend([7; 100]);
    bytes
}

fn rtcp(packets: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_sender_report(&mut bytes, SSRC, &SenderInfo { ntp: 0, rtp: 0, packets, bytes: 0 }, &[]);
    write_goodbye(&mut bytes, SSRC);
    bytes
}

fn open(end: &mut Srtp, sealed: &[u8]) -> Option<Vec<u8>> {
    end.open("192.0.2.1:5004".parse().unwrap(), sealed)
}

#[test]
fn packets_arrive_as_they_were_and_their_payload_is_hidden() {
    for suite in SUITES {
        let (mut sender, mut receiver) = (end(suite), end(suite));
        for (packet, more) in [
            (rtp(0), suite.expansion().rtp),
            (rtcp(1), suite.expansion().rtcp),
            (rtp(1), suite.expansion().rtp),
        ] {
            let sealed = sender.seal(&packet).unwrap();
            assert_eq!(Bytes((sealed.len() - packet.len()) as u64), more);
            assert!(!sealed.windows(8).any(|bytes| bytes == [7; 8]));
            assert_eq!(open(&mut receiver, &sealed), Some(packet));
        }
        assert_eq!(receiver.rejected().get(), Rejected::default());
    }
}

/// A header extension of one word stays readable, and its padding is not taken for payload.
#[test]
fn header_extensions_are_in_the_clear() {
    let mut packet = rtp(0);
    packet[0] |= 0x10;
    packet.splice(12..12, [0xbe, 0xde, 0, 1, 0x10, 0xff, 0, 0]);
    for suite in SUITES {
        let sealed = end(suite).seal(&packet).unwrap();
        assert_eq!(sealed[..20], packet[..20]);
        assert_ne!(sealed[20..24], packet[20..24]);
        assert_eq!(open(&mut end(suite), &sealed), Some(packet.clone()));
    }
}

#[test]
fn replayed_packets_are_dropped_and_late_ones_are_not() {
    for suite in SUITES {
        let (mut sender, mut receiver) = (end(suite), end(suite));
        let media: Vec<_> = (0..2_000).map(|index| sender.seal(&rtp(index)).unwrap()).collect();
        let reports: Vec<_> = (0..3).map(|packets| sender.seal(&rtcp(packets)).unwrap()).collect();
        for sealed in [&media[0], &media[2], &media[1], &media[1_000], &media[999], &reports[0], &reports[2]]
        {
            assert!(open(&mut receiver, sealed).is_some());
        }
        for sealed in [&media[0], &media[1], &media[1_000], &reports[0], &reports[2]] {
            assert_eq!(open(&mut receiver, sealed), None);
        }
        assert_eq!(receiver.rejected().get(), Rejected { unauthentic: 0, replayed: 5 });
        // A report that comes late, and a packet older than the window.
        assert!(open(&mut receiver, &reports[1]).is_some());
        assert!(open(&mut receiver, &media[1_999]).is_some());
        assert_eq!(open(&mut receiver, &media[500]), None);
    }
}

#[test]
fn another_key_and_plain_packets_are_dropped_and_told_once() {
    for suite in SUITES {
        let told = Arc::new(Mutex::new(0));
        let count = Arc::clone(&told);
        let mut receiver = Srtp::new(key(suite), move |_| *count.lock().unwrap() += 1).unwrap();
        let mut other = Srtp::new(MasterKey::new(suite, &[9; 30]).unwrap(), |_| {}).unwrap();
        let mut bad: Vec<_> = (0..100).map(|index| other.seal(&rtp(index)).unwrap()).collect();
        bad.extend([other.seal(&rtcp(1)).unwrap(), rtp(0), rtcp(0)]);
        let packets = bad.len() as u64;
        assert!(bad.iter().all(|sealed| open(&mut receiver, sealed).is_none()));
        assert_eq!(receiver.rejected().get(), Rejected { unauthentic: packets, replayed: 0 });
        assert_eq!((*told.lock().unwrap(), receiver.sources.len()), (1, 0));
    }
}

/// RFC 3711, section 3.4: authentication of SRTCP is mandatory, encryption is not.
#[test]
fn rtcp_that_says_that_it_is_not_encrypted_is_dropped() {
    for suite in SUITES {
        let mut receiver = end(suite);
        let mut forged = rtcp(1);
        forged.extend([0; 20]);
        assert_eq!(open(&mut receiver, &forged), None);
        assert_eq!((receiver.rejected().get().unauthentic, receiver.sources.len()), (1, 0));
    }
}

#[test]
fn forged_packets_leave_no_trace() {
    for suite in SUITES {
        let (mut sender, mut receiver) = (end(suite), end(suite));
        for ssrc in 0..10_000_u32 {
            let mut forged = rtp(30_000);
            forged[8..12].copy_from_slice(&ssrc.to_be_bytes());
            assert_eq!(open(&mut receiver, &forged), None);
        }
        assert!(receiver.sources.is_empty());
        // One is known by its reports; its media and its next report are forged ahead of the true ones.
        assert!(open(&mut receiver, &sender.seal(&rtcp(0)).unwrap()).is_some());
        let mut ahead = sender.seal(&rtcp(0)).unwrap();
        let at = ahead.len() - if suite == Suite::AeadAes128Gcm { 4 } else { 14 };
        ahead[at + 1] = 0x40;
        assert!([rtp(30_000), ahead].iter().all(|forged| open(&mut receiver, forged).is_none()));
        assert!(open(&mut receiver, &sender.seal(&rtp(0)).unwrap()).is_some());
        assert!(open(&mut receiver, &sender.seal(&rtcp(1)).unwrap()).is_some());
    }
}

#[test]
fn a_receiver_that_is_started_anew_joins_where_numbers_have_wrapped() {
    for suite in SUITES {
        let mut sender = end(suite);
        let start = 3 * 65_536 - 100;
        sender.own = context_before(&key(suite), SSRC, start >> 16, start as u16).unwrap();
        // Its own contexts seal; the walk has opened: sealing goes on from there as well.
        let sealed: Vec<_> = (start..start + 200).map(|index| sender.seal(&rtp(index)).unwrap()).collect();
        for joins in [50, 150] {
            let mut receiver = end(suite);
            assert_eq!(open(&mut receiver, &sealed[joins - 1]), None);
            let report = end(suite).seal(&rtcp((start + 100) as u32)).unwrap();
            assert!(open(&mut receiver, &report).is_some());
            assert!(sealed[joins..].iter().all(|sealed| open(&mut receiver, sealed).is_some()));
            assert_eq!(open(&mut receiver, &sealed[joins]), None);
            assert_eq!(receiver.rejected().get(), Rejected { unauthentic: 1, replayed: 1 });
        }
    }
}

/// Packets that are sent again are a source whose packets a report of the media counts; and gaps of more than half of all numbers.
#[test]
fn the_counters_of_other_sources_and_behind_gaps_are_found() {
    for (suite, gap) in SUITES.into_iter().flat_map(|suite| [40_000, 65_600, 130_912].map(|gap| (suite, gap)))
    {
        let mut sender = end(suite);
        let start = 3 * 65_536 + 100;
        let later = start + gap;
        let from = |index: u64| context_before(&key(suite), SSRC, index >> 16, index as u16).unwrap();
        sender.own = from(start);
        let before = sender.seal(&rtp(start)).unwrap();
        sender.own = from(later);
        let after: Vec<_> = (later..later + 100).map(|index| sender.seal(&rtp(index)).unwrap()).collect();
        let report = |packets: u64| {
            let mut bytes = Vec::new();
            for (ssrc, packets) in [(9, 7), (SSRC, packets as u32)] {
                write_sender_report(&mut bytes, ssrc, &SenderInfo { ntp: 0, rtp: 0, packets, bytes: 0 }, &[]);
            }
            bytes
        };
        let (mut receiver, mut reports) = (end(suite), end(suite));
        let mut told = |receiver: &mut Srtp, packets| {
            let sealed = reports.seal(&report(packets)).unwrap();
            assert!(open(receiver, &sealed).is_some());
        };
        told(&mut receiver, start);
        assert!(open(&mut receiver, &before).is_some());
        let mut forged = after[0].clone();
        forged[20] ^= 1;
        assert_eq!([&forged, &after[0]].map(|packet| open(&mut receiver, packet)), [None, None]);
        told(&mut receiver, later);
        assert_eq!(open(&mut receiver, &forged), None);
        assert!(after.iter().all(|packet| open(&mut receiver, packet).is_some()), "{gap}");
        let Rejected { unauthentic, replayed } = receiver.rejected().get();
        assert_eq!(unauthentic + replayed, 3);
    }
}

/// Packets of earlier rollover counters, which were recorded on the way, come again.
#[test]
fn an_old_packet_takes_the_counter_nowhere() {
    for suite in SUITES {
        let index = |rollover: u64, number: u64| rollover << 16 | number;
        let sealed = |index: u64| {
            let mut sender = end(suite);
            sender.own = context_before(&key(suite), SSRC, index >> 16, index as u16).unwrap();
            sender.seal(&rtp(index)).unwrap()
        };
        let newest = index(2, 48_928);
        let (mut receiver, mut reports) = (end(suite), end(suite));
        assert!(open(&mut receiver, &reports.seal(&rtcp(newest as u32)).unwrap()).is_some());
        assert!(open(&mut receiver, &sealed(newest)).is_some());
        // Each is ahead by its number alone, or behind by it. The sender counts on, and all that it sends is lost.
        for old in [index(0, 60_000), index(1, 58_928), index(1, 20_000)] {
            assert_eq!(open(&mut receiver, &sealed(old)), None, "{old}");
        }
        assert!(open(&mut receiver, &reports.seal(&rtcp(index(3, 48_000) as u32)).unwrap()).is_some());
        for old in [index(0, 60_000), index(1, 58_928), newest - 2_000, newest] {
            assert_eq!(open(&mut receiver, &sealed(old)), None, "{old}");
        }
        assert!(
            [newest + 1, index(3, 48_001)].iter().all(|next| open(&mut receiver, &sealed(*next)).is_some())
        );
    }
}

#[test]
fn truncated_packets_are_dropped() {
    for suite in SUITES {
        let mut sender = end(suite);
        for sealed in [sender.seal(&rtp(0)).unwrap(), sender.seal(&rtcp(0)).unwrap()] {
            let mut receiver = end(suite);
            assert!((0..sealed.len()).all(|len| open(&mut receiver, &sealed[..len]).is_none()));
            assert!(open(&mut receiver, &sealed).is_some());
            assert!((0..sealed.len()).all(|len| open(&mut receiver, &sealed[..len]).is_none()));
        }
    }
}

proptest! {
    #[test]
    fn garbage_is_dropped(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), known: bool) {
        for suite in SUITES {
            let (mut sender, mut receiver) = (end(suite), end(suite));
            open(&mut receiver, &sender.seal(&rtp(0)).unwrap()).unwrap();
            if let Some(ssrc) = bytes.get_mut(8..12).filter(|_| known) {
                ssrc.copy_from_slice(&SSRC.to_be_bytes());
            }
            prop_assert_eq!(open(&mut receiver, &bytes), None);
            // Bytes of any kind are sealed without a panic.
            sender.seal(&bytes);
        }
    }
}
