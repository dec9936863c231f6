//! Raw IP packets as a lab's host sends them: parsed within their bounds, and marked without any other change.
#![no_main]

use lastmile_net::lab::ip::{parse, set_ecn};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(header) = parse(data) else { return };
    assert!(header.total_len <= data.len() && header.transport <= header.total_len);
    let mut marked = data.to_vec();
    assert!(set_ecn(&mut marked, 3));
    let again = parse(&marked).expect("a mark changes nothing that is parsed");
    assert_eq!((again.ecn, again.src, again.dst, again.ports), (3, header.src, header.dst, header.ports));
    assert!(set_ecn(&mut marked, header.ecn));
    assert_eq!(marked.len(), data.len());
});
