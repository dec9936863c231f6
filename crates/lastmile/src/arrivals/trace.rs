//! Traffic from a trace: when which packet leaves, from a file's text.

use core::str::FromStr;

use crate::time::Span;
use crate::units::Bytes;

/// Packets of one trace; with more, somebody gave the wrong file.
pub const MAX_TRACE_PACKETS: usize = 1_000_000;

/// When packets leave, from the start of the flow, and how large they are with their IP header.
///
/// Read from lines of `seconds bytes`; a `#` begins a comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace(Vec<(Span, Bytes)>);

impl Trace {
    /// These packets, offsets never falling.
    pub fn of(packets: Vec<(Span, Bytes)>) -> Trace {
        Trace(packets)
    }

    /// Offsets from the flow's start, never falling, and IP sizes.
    pub fn packets(&self) -> &[(Span, Bytes)] {
        &self.0
    }
}

/// The least and the most bytes of an IP packet with UDP.
const LEAST: Bytes = Bytes(28);
const MOST: u64 = 65_535;

impl FromStr for Trace {
    type Err = String;

    fn from_str(text: &str) -> Result<Trace, String> {
        Trace::read(text, LEAST)
    }
}

impl Trace {
    /// Reads one of a source that sends no packet below a size.
    ///
    /// # Errors
    /// The line that is wrong, and why.
    pub fn read(text: &str, least: Bytes) -> Result<Trace, String> {
        let mut packets: Vec<(Span, Bytes)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(seconds) = words.next() else { continue };
            let wrong = |what: String| Err(format!("line {}: {what}", number + 1));
            let offset = match seconds.parse::<f64>() {
                Ok(s) if (0.0..=2_678_400.0).contains(&s) => Span::from_nanos(libm::round(s * 1e9) as i64),
                _ => return wrong(format!("{seconds:?} is not a number of seconds from 0 to 2678400")),
            };
            let size = match words.next().map(str::parse::<u64>) {
                Some(Ok(size)) if (least.0..=MOST).contains(&size) => Bytes(size),
                _ => {
                    let sizes = format!("{} to {MOST} bytes", least.0);
                    return wrong(format!("after the time comes the size of an IP packet, {sizes}"));
                }
            };
            if let Some(more) = words.next() {
                return wrong(format!("{more:?} after time and size"));
            }
            if packets.last().is_some_and(|before| before.0 > offset) {
                return wrong("earlier than the line before".to_owned());
            }
            if packets.len() == MAX_TRACE_PACKETS {
                return wrong(format!("more than {MAX_TRACE_PACKETS} packets"));
            }
            packets.push((offset, size));
        }
        if packets.is_empty() {
            return Err("no packet in it".to_owned());
        }
        Ok(Trace(packets))
    }
}
