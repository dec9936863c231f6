//! Our own TLVs: Hello, Stream, Report.
#![no_main]

use lastmile::wire::TlvValue;
use lastmile::wire::private::{
    HelloReply, HelloRequest, ReportPage, ReportRequest, Schedule, StreamTag, write_report,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = StreamTag::find(data);
    // Also with magic and layout in front, which chance seldom finds.
    let ours = [b"LSM\x01", data].concat();
    for value in [data, &ours] {
        again::<HelloRequest>(value);
        again::<HelloReply>(value);
        again::<StreamTag>(value);
        again::<Schedule>(value);
        again::<ReportRequest>(value);
        if let Ok(request) = ReportRequest::decode_value(value) {
            assert!(usize::from(request.indices(1000).end) <= 1000);
            let _ = request.pages(1000);
        }
        if let Ok(page) = ReportPage::parse(value) {
            let entries: Vec<_> = page.entries().collect();
            let mut out = vec![0; value.len()];
            let written = write_report(&mut out, &page.head, entries.iter().map(|(_, entry)| *entry));
            assert_eq!(written, Ok(entries.len() as u16));
            let copy = ReportPage::parse(&out).expect("what was just written");
            assert_eq!(copy.head, page.head);
            assert!(copy.entries().eq(entries));
        }
    }
});

/// What was read is written and read again as the same.
fn again<T: TlvValue + PartialEq + std::fmt::Debug>(value: &[u8]) {
    let Ok(read) = T::decode_value(value) else { return };
    let mut out = vec![0; read.value_len()];
    read.encode_value(&mut out).expect("the length is right");
    assert_eq!(T::decode_value(&out), Ok(read));
}
