//! A reply arrives at a sender: parse, verify, walk over the TLVs, write it again.
#![no_main]

use lastmile::wire::{HmacKey, Mode, ReflectorPacket, Tlvs, tlv_area};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let key = HmacKey::new(&[1; 16]).expect("16 bytes are enough");
    for mode in [Mode::Open, Mode::Authenticated] {
        let _ = key.verify_packet(data);
        let Ok(reply) = ReflectorPacket::parse(mode, data) else { continue };
        let _ = reply.error.format.to_unix_nanos(reply.receive_timestamp);
        let _ = reply.sender_error.nanos();
        let _ = key.verify_tlvs(reply.sequence, tlv_area(mode, data));
        assert!(Tlvs::new(tlv_area(mode, data)).count() <= data.len());
        let mut again = vec![0xFF; mode.base_len()];
        reply.write(mode, &mut again).expect("the length is right");
        assert_eq!(ReflectorPacket::parse(mode, &again), Ok(reply));
    }
});
