//! Meters, packet by packet.

use super::*;
use crate::network::link::LinkConfig;
use crate::network::queue::TokenBucket;

fn read(bytes: &[u8]) -> Option<(u32, u16)> {
    Some((u32::from(*bytes.first()?), u16::from(*bytes.get(1)?)))
}

fn rate(bits_per_second: u64) -> Profile {
    (LinkConfig { rate: Some(Rate::ip(bits_per_second)), ..Default::default() }).profile()
}

fn datagram(flow: u32, payload: Payload) -> Datagram {
    let any = "10.0.0.1:1".parse().unwrap();
    Datagram { flow: Flow(flow), payload, ..Datagram::udp(any, any, vec![]) }
}

#[test]
fn a_stream_ends_with_its_last_packet_in_the_order_of_the_queue() {
    let mut meter = Meter::new(MeterConfig::new(Flow(1), read), rate(8_000_000), 0, None);
    let cross = datagram(2, Payload::Udp(vec![9; 100]));
    let probe = |index| datagram(1, Payload::Udp(vec![4, index]));
    meter.arrival(1_000, &cross, 128); // before the first, at the same moment
    meter.arrival(1_000, &probe(0), 30);
    meter.arrival(1_000, &cross, 100); // after it
    meter.arrival(500_000, &datagram(1, Payload::Udp(vec![])), 900); // the flow's own request
    meter.arrival(1_001_000, &probe(1), 30);
    meter.arrival(1_001_000, &cross, 128);
    let window = meter.stream(4).unwrap();
    assert_eq!(((window.last - window.first).as_nanos(), window.cross), (1_000_000, Bytes(100)));
    // 1 ms carries 1000 bytes, 100 of them taken.
    assert_eq!(meter.spare(4, Bytes(30)).unwrap(), Rate::ip(7_200_000));
    assert_eq!(meter.spare(5, Bytes(30)), Err(TruthError::UnknownStream(5)));
    let (from, to) = (Time::from_nanos(1_000), Time::from_nanos(1_001_000));
    assert_eq!(meter.spare_between(from, to, Bytes(30)).unwrap(), Rate::ip(8_000_000 - 228 * 8_000));
    assert!(matches!(meter.spare_between(to, to, Bytes(30)), Err(TruthError::EmptyWindow(..))));
}

#[test]
fn rates_are_those_of_ip_packets_of_the_probes_size() {
    let mut meter = Meter::new(MeterConfig::new(Flow(1), read), rate(10_000_000), 14, None);
    let capacity = meter.capacity_between(Time::ZERO, Time::ZERO, Bytes(1486));
    assert_eq!(capacity, Ok(Rate::ip(9_906_667)));
    meter.arrival(0, &datagram(2, Payload::Udp(vec![])), 625_000);
    let second = Time::from_nanos(1_000_000_000);
    // Half the wire is taken: half of what IP packets of 986 B could have.
    assert_eq!(meter.spare_between(Time::ZERO, second, Bytes(986)).unwrap(), Rate::ip(4_930_000));
}

#[test]
fn a_full_log_says_so_and_leaves_streams_right() {
    let config = MeterConfig { limit: 2, ..MeterConfig::new(Flow(1), read) };
    let mut meter = Meter::new(config.clone(), rate(8_000_000), 0, None);
    for at in 0..5 {
        meter.arrival(at, &datagram(1, Payload::Udp(vec![7, at as u8])), 50);
        meter.arrival(at, &datagram(2, Payload::Udp(vec![])), 50);
    }
    assert_eq!(meter.stream(7).unwrap().cross, Bytes(200));
    let full = meter.spare_between(Time::ZERO, Time::from_nanos(5), Bytes(50));
    assert_eq!(full, Err(TruthError::Full(2)));
    assert!(meter.spare_between(Time::ZERO, Time::from_nanos(1), Bytes(50)).is_ok());
    // The content of a shaper's bucket depends on all earlier arrivals.
    let shaper = Some(TokenBucket { rate: Rate::ip(1_000_000), burst: Bytes(1_000) });
    let rate = Some(Rate::ip(8_000_000));
    let profile = (LinkConfig { rate, shaper, ..Default::default() }).profile();
    let mut meter = Meter::new(config, profile, 0, None);
    for at in 0..6 {
        meter.arrival(at, &datagram(1, Payload::Udp(vec![at as u8 / 4, at as u8])), 50);
        meter.arrival(at, &datagram(2, Payload::Udp(vec![])), 50);
    }
    let burst = Packets { ip_size: Bytes(50), burst: Some(Bytes(100)) };
    assert!(meter.spare(0, burst).is_ok());
    assert_eq!(meter.spare(1, burst), Err(TruthError::Full(2)));
}

#[test]
fn probes_are_found_in_raw_ip_packets() {
    let mut v4 = vec![0x46, 0, 0, 0, 0, 0, 0, 0, 64, 17];
    v4.resize(24 + 8, 0); // one word of options
    v4.extend([3, 5]);
    assert_eq!(udp_payload(&Payload::Ip(v4)).and_then(read), Some((3, 5)));
    let mut v6 = vec![0x60, 0, 0, 0, 0, 0, 17, 64];
    v6.resize(40 + 8, 0);
    v6.extend([3, 6]);
    assert_eq!(udp_payload(&Payload::Ip(v6.clone())).and_then(read), Some((3, 6)));
    v6[6] = 6;
    assert_eq!(udp_payload(&Payload::Ip(v6)), None);
    for short in [&[][..], &[0x45], &[0x45; 12], &[0x60; 7], &[0xff; 60]] {
        assert_eq!(udp_payload(&Payload::Ip(short.to_vec())).and_then(read), None);
    }
}

/// A policer of 8 Mbit/s lets one of two packets pass. The measured flow's own packets take no tokens from others.
#[test]
fn behind_a_policer_others_take_what_passes_of_them() {
    let policer = Some(TokenBucket { rate: Rate::ip(8_000_000), burst: Bytes(1_000) });
    let config = LinkConfig { rate: Some(Rate::ip(80_000_000)), policer, ..Default::default() };
    let bucket = config.policer.as_ref().map(Bucket::new);
    let mut meter = Meter::new(MeterConfig::new(Flow(1), read), config.profile(), 0, bucket);
    let cross = datagram(2, Payload::Udp(vec![]));
    meter.arrival(0, &datagram(1, Payload::Udp(vec![4, 0])), 900);
    meter.arrival(0, &cross, 600);
    meter.arrival(0, &cross, 600);
    meter.arrival(1_000_000, &datagram(1, Payload::Udp(vec![4, 1])), 900);
    assert_eq!(meter.spare(4, Bytes(100)).unwrap(), Rate::ip(3_200_000));
    assert_eq!(meter.capacity(4, Bytes(100)).unwrap(), Rate::ip(8_000_000));
    // A burst passes at the link's rate where a full bucket holds it, else as fast as none of it is dropped.
    for (burst, rate) in [(1_000, 80_000_000), (2_000, 15_200_000)] {
        let burst = Packets { ip_size: Bytes(100), burst: Some(Bytes(burst)) };
        assert_eq!(meter.capacity(4, burst).unwrap(), Rate::ip(rate));
    }
}
