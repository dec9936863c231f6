//! TLV framing, the standard TLVs' contents, and a reflector's pass over them.
#![no_main]

use lastmile::wire::{
    ClassOfService, ControlCode, HmacKey, ReflectedControl, ReturnPath, TlvType, TlvValue, Tlvs, Verdict,
    fail_integrity, reflect_tlvs,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut end = 0;
    for tlv in Tlvs::new(data).map_while(Result::ok) {
        assert_eq!(tlv.offset, end);
        end = tlv.offset + 4 + tlv.value.len();
        assert!(end <= data.len());
        again::<ClassOfService>(tlv.value);
        again::<ControlCode>(tlv.value);
        // Address groups are read as a flag and not written again.
        let _ = ReflectedControl::decode_value(tlv.value);
        let _ = ReturnPath::decode(tlv.value);
    }
    let mut area = data.to_vec();
    let met = reflect_tlvs(&mut area, |tlv| match tlv.kind {
        TlvType::CLASS_OF_SERVICE => Verdict::of(&ClassOfService::decode_value(tlv.value)),
        TlvType::RETURN_PATH => Verdict::of(&ReturnPath::decode(tlv.value)),
        TlvType::REFLECTED_CONTROL => Verdict::of(&ReflectedControl::decode_value(tlv.value)),
        TlvType::EXTRA_PADDING => Verdict::Understood,
        _ => Verdict::Unrecognized,
    });
    assert!(met.count <= data.len());
    assert_eq!(area.len(), data.len());
    let key = HmacKey::new(&[1; 16]).expect("16 bytes are enough");
    if key.resign_tlvs(1, &mut area) {
        let _ = key.verify_tlvs(1, &area);
    }
    fail_integrity(&mut area);
});

/// What was read is written and read again as the same.
fn again<T: TlvValue + PartialEq + std::fmt::Debug>(value: &[u8]) {
    let Ok(read) = T::decode_value(value) else { return };
    let mut out = vec![0; read.value_len()];
    read.encode_value(&mut out).expect("the length is right");
    assert_eq!(T::decode_value(&out), Ok(read));
}
