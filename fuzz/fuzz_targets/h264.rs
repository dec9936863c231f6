//! H.264 in RTP packets: any payloads make access units in bounded memory; a byte stream of units is packetized, and put together
//! again as it was.
#![no_main]

use lastmile::wire::h264::{Depacketizer, nal_units, packetize, write_nal_unit};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Each packet: its number's step and its time's, a length, and a payload.
    let mut depacketizer = Depacketizer::default();
    let (mut rest, mut sequence, mut timestamp, mut came) = (data, 0_u16, 0_u32, 0);
    while let [step, time, length, tail @ ..] = rest {
        let (payload, after) = tail.split_at(tail.len().min(usize::from(*length)));
        rest = after;
        sequence = sequence.wrapping_add_signed(i16::from(*step as i8) * if *time == 255 { 200 } else { 1 });
        timestamp = timestamp.wrapping_add(u32::from(time / 2));
        depacketizer.push(sequence, timestamp, time % 2 == 1, payload);
        came += payload.len();
        let unit = if *step == 7 { depacketizer.force() } else { depacketizer.pop() };
        // A unit of one byte in an aggregation has two bytes before it; in a byte stream four.
        assert!(unit.is_none_or(|unit| unit.bytes.len() <= 5 * came));
    }
    while depacketizer.force().is_some() {}
    let mut stream = Vec::new();
    nal_units(data)
        .filter(|unit| (1..=23).contains(&(unit[0] & 0x9f)))
        .for_each(|unit| write_nal_unit(&mut stream, unit));
    let payloads = packetize(&stream, data.len() % 50);
    let mut depacketizer = Depacketizer::default();
    for (index, payload) in payloads.iter().enumerate().take(4_000) {
        depacketizer.push(index as u16, 1, index + 1 == payloads.len(), payload);
    }
    if (1..4_000).contains(&payloads.len()) {
        assert_eq!(depacketizer.pop().map(|unit| unit.bytes), Some(stream));
    }
});
