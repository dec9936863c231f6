//! Quantities as people write them: what is read can be printed and read again.
#![no_main]

use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(rate) = text.parse::<Rate>() {
        rate.to_string().parse::<Rate>().expect("rates read what they print");
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        bytes.to_string().parse::<Bytes>().expect("sizes read what they print");
    }
    if let Ok(span) = text.parse::<Span>() {
        span.to_string().parse::<Span>().expect("times read what they print");
    }
});
