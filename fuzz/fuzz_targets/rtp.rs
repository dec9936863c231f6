//! RTP packets: parsed within their bounds; a header that was read is written and read again as the same, and so is the time
//! of sending in it; and sent again it carries the same.
#![no_main]

use lastmile::wire::{RTP_HEADER_LEN, RtpPacket, SendTime, original, write_retransmission};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(packet) = RtpPacket::parse(data) else { return };
    let extension = packet.extension.map_or(0, |(_, words)| 4 + words.len());
    assert!(RTP_HEADER_LEN + extension + packet.payload.len() <= data.len());
    let mut out = Vec::new();
    packet.header.write(&mut out);
    out.extend(packet.payload);
    let again = RtpPacket::parse(&out).expect("it was just written");
    assert_eq!((again.header, again.payload), (packet.header, packet.payload));
    out.clear();
    write_retransmission(&mut out, data, (97, 7, 8)).expect("it is RTP");
    let again = RtpPacket::parse(&out).expect("it was just written");
    assert_eq!(again.extension, packet.extension);
    assert_eq!(original(&again), Some((packet.header.sequence, packet.payload)));
    if let Some(sent) = SendTime::of(&packet) {
        out.clear();
        sent.write(&packet.header, &mut out);
        let again = RtpPacket::parse(&out).expect("it was just written");
        assert_eq!((again.header, SendTime::of(&again)), (packet.header, Some(sent)));
    }
});
