//! A request arrives at a reflector: parse, verify, reflect in place.
#![no_main]

use lastmile::wire::{
    ErrorEstimate, HmacKey, Mode, Reflection, ReflectorPacket, SenderPacket, Verdict, reflect_in_place,
    reflect_tlvs, tlv_area_mut,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let key = HmacKey::new(&[1; 16]).expect("16 bytes are enough");
    for mode in [Mode::Open, Mode::Authenticated] {
        let mut datagram = data.to_vec();
        let _ = key.verify_packet(&datagram);
        let request = SenderPacket::parse(mode, &datagram);
        let facts = Reflection {
            sequence: None,
            timestamp: 1,
            error: ErrorEstimate::from_bits(1),
            receive_timestamp: 2,
            sender_ttl: 3,
        };
        assert_eq!(reflect_in_place(mode, &mut datagram, &facts), request);
        reflect_tlvs(tlv_area_mut(mode, &mut datagram), |_| Verdict::Understood);
        assert_eq!(datagram.len(), data.len());
        if let Ok(request) = request {
            let _ = request.error.format.to_unix_nanos(request.timestamp);
            let reply = ReflectorPacket::parse(mode, &datagram).expect("a reply is as long as its request");
            assert_eq!((reply.sender_sequence, reply.sender_error), (request.sequence, request.error));
        }
    }
});
