//! Numbers held against the truth.

use std::borrow::Cow;

use lastmile::estimate::{Estimate, Interval, Quantity, Value, WarningCode};
use lastmile::report::Direction;
use lastmile::units::Rate;
use serde::{Deserialize, Serialize};

use super::Truth;

/// The largest error of a right number, as a share of the truth.
const OFF: f64 = 0.1;
/// The same of what is left, as a share of the capacity, where that is more.
const OFF_OF_CAPACITY: f64 = 0.05;
/// The widest interval of a number that is kept, as a share of the capacity.
const NARROW: f64 = 0.2;

/// The verdict on a number, or on its lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A number, and not wrong.
    Right,
    /// Wrong, and its interval holds the truth.
    Held,
    /// Wrong, with a warning, and no interval that holds the truth.
    Warned,
    /// Wrong, without any of it.
    Silent,
    /// No number, or only a bound that is true.
    Refused,
    /// A number beside which no truth is known.
    Unjudged,
}

/// An estimate beside its truth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Number {
    /// The path's number.
    pub path: usize,
    /// The method, with its options.
    pub method: String,
    /// The direction.
    pub direction: Direction,
    /// The quantity.
    pub quantity: Quantity,
    /// The verdict.
    pub verdict: Verdict,
    /// True if it is right, has no warning, and an interval no wider than 0.2 of the capacity.
    pub kept: bool,
    /// The number, or the bound that it is above of.
    pub rate_bps: Option<u64>,
    /// True if it is a lower bound.
    pub bound: bool,
    /// Its interval.
    pub interval: Option<Ends>,
    /// The truth that it aims at: of its own window, or of the run where stations aggregate.
    pub truth_bps: Option<u64>,
    /// The capacity: of available bandwidth the rate that it is the rest of.
    pub capacity_bps: Option<u64>,
    /// True if the interval holds the truth.
    pub holds: Option<bool>,
    /// True if the interval of the next 10 s holds the truth of these.
    pub next_holds: Option<bool>,
    /// The interval's score (Winkler), as a share of the capacity: its width, and 20 times by how much it misses.
    pub score: Option<f64>,
    /// Codes of its warnings, or the one of its refusal.
    pub codes: Vec<Cow<'static, str>>,
    /// True if a rate changed while its packets were under way.
    pub changed: bool,
    /// Names of the rows that it is in.
    pub tags: Vec<Cow<'static, str>>,
}

/// The ends of an interval, bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    /// The lower one.
    pub low_bps: u64,
    /// The upper one.
    pub high_bps: u64,
}

/// An estimate, judged.
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) kept: bool,
    pub(super) truth: Option<Rate>,
    pub(super) capacity: Option<Rate>,
    pub(super) holds: Option<bool>,
    pub(super) next_holds: Option<bool>,
    pub(super) score: Option<f64>,
}

/// Judges an estimate; `None` of one that says nothing: then the question is as good as refused.
pub(super) fn judge(estimate: &Estimate, truth: Option<Truth>) -> Option<Judged> {
    let (value, bound) = match estimate.value {
        Value::Is(rate) => (rate, false),
        Value::MoreThan(rate) => (rate, true),
        Value::Answer(_) | Value::Unknown => return None,
    };
    let own = truth.and_then(|truth| truth.of(estimate));
    let (Some(truth), Some(own)) = (truth, own) else {
        let nothing = Judged {
            verdict: if bound { Verdict::Refused } else { Verdict::Unjudged },
            kept: false,
            truth: None,
            capacity: None,
            holds: None,
            next_holds: None,
            score: None,
        };
        return Some(nothing);
    };
    let capacity = match estimate.quantity {
        // Bursts may find more left than the sustained rate.
        Quantity::AvailableBandwidth => bps(truth.sustained).min(bps(truth.capacity)).max(bps(own)),
        _ => bps(own),
    };
    let may = match estimate.quantity {
        Quantity::AvailableBandwidth => (OFF * bps(own)).max(OFF_OF_CAPACITY * capacity),
        _ => OFF * bps(own),
    };
    let off = bps(value) - bps(own);
    let wrong = if bound { off > may } else { off.abs() > may };
    let holds = estimate.interval.map(|interval| interval.contains(own));
    // The warning of a lower bound does not say that it is too high.
    let warned =
        estimate.warnings.iter().any(|w| w.code.doubts() && !(bound && w.code == WarningCode::LowerBound));
    let verdict = match (wrong, holds, warned) {
        (false, ..) if bound => Verdict::Refused,
        (false, ..) => Verdict::Right,
        (true, Some(true), _) => Verdict::Held,
        (true, _, true) => Verdict::Warned,
        (true, _, false) => Verdict::Silent,
    };
    let narrow = |interval: Interval| bps(interval.high) - bps(interval.low) <= NARROW * capacity;
    Some(Judged {
        verdict,
        kept: verdict == Verdict::Right && !warned && estimate.interval.is_some_and(narrow),
        truth: Some(own),
        capacity: Some(Rate::ip(capacity as u64)),
        holds,
        next_holds: estimate.next.zip(truth.next).map(|(next, truth)| next.contains(truth)),
        score: estimate.interval.filter(|_| capacity > 0.0).map(|interval| score(interval, own) / capacity),
    })
}

/// Winkler's score of an interval.
fn score(interval: Interval, truth: Rate) -> f64 {
    let (low, high, truth) = (bps(interval.low), bps(interval.high), bps(truth));
    let miss = (low - truth).max(truth - high).max(0.0);
    high - low + 2.0 / (1.0 - interval.confidence) * miss
}

fn bps(rate: Rate) -> f64 {
    rate.bits_per_second() as f64
}
