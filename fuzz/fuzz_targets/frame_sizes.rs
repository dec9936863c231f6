//! Traces of frame sizes: what is read makes a source whose frames have sizes and times.
#![no_main]

use lastmile::endpoint::stream::source::{Setting, build, read_sizes};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(sizes) = read_sizes(text) else { return };
    assert!(!sizes.is_empty() && sizes.len() <= text.len());
    let setting = Setting { sizes: &sizes, ..Setting::of(30.0, Bytes(1200)) };
    let choice = "trace".parse().expect("a name");
    let mut source = build(&choice, &setting).expect("a trace with bytes in it");
    let mut now = Time::ZERO;
    for _ in 0..2 * sizes.len().min(1_000) {
        let frame = source.frame(now, Rate::ip(1_000_000), Bytes::ZERO);
        assert!(frame.next > Span::ZERO);
        now += frame.next;
    }
});
