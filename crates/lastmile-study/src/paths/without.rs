//! The same paths without one feature: which numbers turn right shows the cause.

use std::collections::BTreeMap;

use lastmile::report::Direction;
use lastmile::units::Rate;
use lastmile_report::text::Table;
use serde::Serialize;

use super::judge::{Number, Verdict};
use super::{Feature, Measured, Request};

/// One method's numbers on paths, beside those without a feature.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Removed {
    /// The feature.
    pub feature: Feature,
    /// The method, with its options.
    pub method: String,
    /// Paths that have the feature.
    pub paths: usize,
    /// Numbers on these that were right.
    pub right: usize,
    /// Those of them that are wrong without a word on the path without it: as many turn by chance.
    pub turned_silent: usize,
    /// Numbers that were wrong without a word.
    pub silent: usize,
    /// Those of them that are right without the feature.
    pub turned_right: usize,
    /// Those that are wrong, in an interval that holds the truth.
    pub turned_held: usize,
    /// Those that are wrong, with a warning.
    pub turned_warned: usize,
    /// Those that are refused, or have no truth.
    pub turned_refused: usize,
    /// Those that turned right, or any other way from being wrong without a word.
    pub numbers: Vec<Turned>,
}

/// A number that was wrong without a word, and is not so without a feature.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Turned {
    /// The path's number.
    pub path: usize,
    /// The direction.
    pub direction: Direction,
    /// The quantity.
    pub quantity: String,
    /// The verdict without the feature.
    pub verdict: Verdict,
}

/// A number's name, the same with and without a feature.
type Key = (usize, String, Direction, String);

fn key(number: &Number) -> Key {
    (number.path, number.method.clone(), number.direction, number.quantity.to_string())
}

/// The request of those of its paths that have a feature, without it.
pub(super) fn less(request: &Request, feature: Feature) -> Request {
    let has = |number: &usize| {
        let path = request.path(*number);
        path.without(feature) != path
    };
    let numbers = request.numbers().into_iter().filter(has).collect();
    let without = [&request.without[..], &[feature]].concat();
    Request { without, only: Some(numbers), ..request.clone() }
}

/// Numbers of each method beside those of the same paths without a feature, which are what [`less`] asks for.
pub(super) fn without(
    feature: Feature,
    request: &Request,
    measured: &Measured,
    less: &Measured,
) -> Vec<Removed> {
    let only = request.numbers();
    if only.is_empty() {
        return Vec::new();
    }
    let after: BTreeMap<Key, Verdict> =
        less.numbers.iter().map(|number| (key(number), number.verdict)).collect();
    let of = |method: String| {
        let own = measured.numbers.iter().filter(|n| n.method == method && only.contains(&n.path));
        removed(feature, method.clone(), only.len(), own, &after)
    };
    request.methods.iter().map(ToString::to_string).map(of).collect()
}

fn removed<'a>(
    feature: Feature,
    method: String,
    paths: usize,
    before: impl Iterator<Item = &'a Number>,
    after: &BTreeMap<Key, Verdict>,
) -> Removed {
    let mut pairs = BTreeMap::new();
    let mut numbers = Vec::new();
    for number in before {
        // A sustained rate is a number of some paths only.
        let verdict = after.get(&key(number)).copied().unwrap_or(Verdict::Refused);
        *pairs.entry((number.verdict, verdict)).or_insert(0) += 1;
        if number.verdict == Verdict::Silent && verdict != Verdict::Silent {
            let (path, direction, quantity) = (number.path, number.direction, number.quantity.to_string());
            numbers.push(Turned { path, direction, quantity, verdict });
        }
    }
    let pair = |before, after| pairs.get(&(before, after)).copied().unwrap_or(0);
    let all = |before| pairs.iter().filter(|((was, _), _)| *was == before).map(|(_, count)| count).sum();
    Removed {
        feature,
        method,
        paths,
        right: all(Verdict::Right),
        turned_silent: pair(Verdict::Right, Verdict::Silent),
        silent: all(Verdict::Silent),
        turned_right: pair(Verdict::Silent, Verdict::Right),
        turned_held: pair(Verdict::Silent, Verdict::Held),
        turned_warned: pair(Verdict::Silent, Verdict::Warned),
        turned_refused: pair(Verdict::Silent, Verdict::Refused) + pair(Verdict::Silent, Verdict::Unjudged),
        numbers,
    }
}

/// The numbers with and without features, as a table.
pub fn removed_text(removed: &[Removed]) -> Table {
    let mut shown = Table::new(&[
        "without",
        "method",
        ">paths",
        ">silent",
        ">then right",
        ">held",
        ">warned",
        ">refused",
        ">right",
        ">then silent",
    ]);
    for row in removed {
        let counts =
            [row.paths, row.silent, row.turned_right, row.turned_held, row.turned_warned, row.turned_refused];
        let counts = counts.into_iter().chain([row.right, row.turned_silent]).map(|n| n.to_string());
        shown.row([row.feature.name().to_owned(), row.method.clone()].into_iter().chain(counts));
    }
    shown
}

/// The numbers that are wrong without a word, one in each line, with the features without which they are right.
pub fn list(measured: &Measured, removed: &[Removed]) -> Table {
    let mut shown = Table::new(&[
        ">path",
        "method",
        "direction",
        "quantity",
        ">rate",
        ">truth",
        "~>of",
        "interval",
        "path has",
        "right without",
    ]);
    let rate = |rate: Option<u64>| rate.map_or_else(|| "-".to_owned(), |rate| Rate::ip(rate).to_string());
    for number in measured.numbers.iter().filter(|number| number.verdict == Verdict::Silent) {
        let ends =
            number.interval.map(|ends| format!("{} .. {}", Rate::ip(ends.low_bps), Rate::ip(ends.high_bps)));
        let is_cause = |row: &&Removed| {
            let own = |turned: &Turned| {
                (turned.path, turned.direction) == (number.path, number.direction)
                    && turned.quantity == number.quantity.to_string()
                    && turned.verdict == Verdict::Right
            };
            row.method == number.method && row.numbers.iter().any(own)
        };
        let causes: Vec<&str> = removed.iter().filter(is_cause).map(|row| row.feature.name()).collect();
        let changed = number.changed.then_some("rates change");
        let has: Vec<&str> = number.tags.iter().map(|tag| &**tag).chain(changed).collect();
        shown.row([
            number.path.to_string(),
            number.method.clone(),
            number.direction.to_string(),
            number.quantity.to_string(),
            format!("{}{}", if number.bound { "> " } else { "" }, rate(number.rate_bps)),
            rate(number.truth_bps),
            rate(number.capacity_bps),
            ends.unwrap_or_else(|| "-".to_owned()),
            has.join(", "),
            causes.join(", "),
        ]);
    }
    shown
}
