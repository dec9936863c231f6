//! A wire behind Wi-Fi that aggregates: a burst tells whether pairs show that wire's rate.
//!
//! A station that has both packets of a pair sends them in one A-MPDU, and the access point sends them on back to back: pairs then show
//! the rate of the wire behind it, steadily, and nothing in them tells. A burst longer than an aggregate does: its packets come in
//! clumps, as close as pairs inside, with nothing between. This rule is our own:
//!
//! - A stream comes in clumps if half of its gaps are those of pairs, and gaps of more than [`LONG`] times that make up most of its
//!   delay behind pairs ([`MOST`]), and at least [`SLOWER`] of its time. Others' packets at a link get in between one by one.
//! - If a burst comes in clumps, and another one too, pairs say nothing of the path, and the result is a refusal.
//!
//! Bytes and times are the only inputs, never the number of frames in an aggregate (US 10,383,002).

use crate::estimate::batched::BURST;
use crate::estimate::{Refusal, StreamPlan, bits_per_second};
use crate::observe::order::Order;
use crate::observe::{StreamVerdict, judge, stats};
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::Bytes;

/// A gap of so many pairs' gaps stands between clumps.
const LONG: f64 = 2.5;
/// A gap is a pair's up to so many times that.
const SAME: f64 = 1.1;
/// The share of a burst's delay behind its pairs that is between clumps.
const MOST: f64 = 0.7;
/// The share of its time that is.
const SLOWER: f64 = 0.05;
/// A gap between clumps is so many times what a host may hold back.
const HELD: i64 = 5;
/// Bursts that all come in clumps: those of others' TCP do so by chance.
const BURSTS: u32 = 2;
/// Bursts that may tell nothing.
const ATTEMPTS: u32 = 3;
/// No cell that aggregates carries less, in bit/s (802.11n: 6.5 Mbit/s on the air).
const LEAST: f64 = 5.5e6;

/// Refusal text for pairs that are set by the wire behind the cell.
const AGGREGATED: &str = "packets arrive in clumps, as from Wi-Fi that aggregates frames before a faster link, or beside others' bursts: packet pairs show the rate within a clump, and the path's own rate stays unknown";

/// Result of the bursts about pairs.
#[derive(Clone, Debug)]
pub(super) enum Finding {
    /// They come as pairs do.
    Steady,
    /// They come in clumps.
    Clumped(Refusal),
}

/// Sends bursts until they tell whether packets come in clumps.
#[derive(Clone, Debug)]
pub(super) struct ClumpCheck {
    slot: Span,
    size: Bytes,
    coalescing: Span,
    clumped: u32,
    attempts: u32,
}

/// True if a stream whose packets come `slot` apart in pairs comes in clumps, with stamps off by `late` at most.
fn clumped(record: &StreamRecord, slot: Span, late: Span) -> bool {
    let mut came: Vec<_> = record.packets.iter().filter_map(|p| p.fate.arrived()).collect();
    came.sort();
    let gaps: Vec<f64> = came.windows(2).map(|two| (two[1] - two[0]).as_nanos() as f64).collect();
    let slot = slot.as_nanos().max(1) as f64;
    let long = (LONG * slot).max((late * HELD).as_nanos() as f64);
    let Some(median) = stats::median(&gaps) else { return false };
    let all: f64 = gaps.iter().sum();
    let between: f64 = gaps.iter().filter(|gap| **gap > long).map(|gap| gap - slot).sum();
    let behind = all - slot * gaps.len() as f64;
    median <= SAME * slot + late.as_nanos() as f64 && between >= SLOWER * all && between >= MOST * behind
}

impl ClumpCheck {
    /// About pairs that show this rate, in bit/s; `None` where no cell that aggregates can be before it.
    pub(super) fn of(claim: f64, size: Bytes, coalescing: Span) -> Option<ClumpCheck> {
        let slot = bits_per_second(claim).time_for(size);
        (claim >= LEAST).then_some(ClumpCheck { slot, size, coalescing, clumped: 0, attempts: 0 })
    }

    pub(super) fn plan(&self) -> StreamPlan {
        StreamPlan::burst(BURST, self.size)
    }

    /// Takes in a burst, with stamps as uncertain as `noise`; `None` asks for another one.
    pub(super) fn on_stream(&mut self, record: &StreamRecord, noise: Span) -> Option<Finding> {
        self.attempts += 1;
        let verdict = judge(record).verdict;
        if matches!(verdict, StreamVerdict::Believed | StreamVerdict::TooLossy) {
            if !clumped(record, self.slot, self.coalescing + noise * 2) {
                return Some(Finding::Steady);
            }
            // Packets that come late stand apart by themselves.
            self.clumped += u32::from(Order::of(record).overtaken() == 0);
        }
        if self.clumped >= BURSTS {
            return Some(Finding::Clumped(Refusal::Inconsistent(AGGREGATED.into())));
        }
        (self.attempts >= ATTEMPTS).then_some(Finding::Steady)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    const SLOT: Span = Span::from_micros(119);

    /// A burst that came so, in microseconds.
    fn burst(came: impl Fn(u64) -> u64) -> StreamRecord {
        let came: Vec<Option<u64>> = (0..BURST as u64).map(|k| Some(900 + came(k))).collect();
        record(Pattern::Burst, &[0; BURST], &[0; BURST], &came)
    }

    #[test]
    fn aggregates_before_a_wire_are_clumps_and_others_packets_are_not() {
        let told = |of: &StreamRecord| clumped(of, SLOT, Span::ZERO);
        // 28 frames every 5.4 ms, and 11 every 5.4; before 70 Mbit/s (170 us) too.
        assert!(told(&burst(|k| k / 28 * 5_440 + k % 28 * 119)));
        assert!(told(&burst(|k| k / 11 * 5_400 + k % 11 * 119)));
        assert!(clumped(&burst(|k| k / 28 * 5_440 + k % 28 * 170), Span::from_micros(170), Span::ZERO));
        // Alone; another packet between each third; and behind a bucket.
        assert!(!told(&burst(|k| k * 119)));
        assert!(!told(&burst(|k| k * 119 + k / 3 * 120)));
        assert!(!told(&burst(|k| k * 119 + k.saturating_sub(20) * 1_000)));
    }

    #[test]
    fn two_bursts_in_clumps_refuse() {
        let mut check = ClumpCheck::of(100e6, Bytes(1488), Span::ZERO).unwrap();
        let clumps = burst(|k| k / 28 * 5_440 + k % 28 * 119);
        let steady = burst(|k| k * 119);
        assert!(matches!(check.clone().on_stream(&steady, Span::ZERO), Some(Finding::Steady)));
        assert!(check.on_stream(&clumps, Span::ZERO).is_none());
        assert!(matches!(check.clone().on_stream(&steady, Span::ZERO), Some(Finding::Steady)));
        assert!(matches!(check.on_stream(&clumps, Span::ZERO), Some(Finding::Clumped(_))));
        assert!(ClumpCheck::of(5e6, Bytes(1488), Span::ZERO).is_none());
    }
}
