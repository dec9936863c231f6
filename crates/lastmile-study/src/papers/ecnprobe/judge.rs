//! Decisions shared by ECNProbe's claims and those on its variants.

use lastmile_report::Mean;

use super::cases::{Kind, LOADS, Tool, beside};
use crate::papers::results::Results;
use crate::papers::{Bar, Case, Middle, Parts};

/// Estimates within a tenth of what cross traffic leaves on the wire, at all loads of some kinds; `case` says which run. Of runs that came
/// to no estimate there is no median: as many as half of them miss.
pub(super) fn near(results: &Results, kinds: &[Kind], case: &dyn Fn(Kind, u32) -> Case) -> Parts {
    let (mut ends, mut parts, mut marks) =
        (Parts::of("% of the runs"), Parts::of("%"), Parts::of("% of a train"));
    for (load, kind) in beside(&LOADS) {
        if !kinds.contains(&kind) && load > 0 {
            continue;
        }
        let case = case(kind, load);
        let what =
            if load > 0 { format!("beside {load} Mbit/s of {}", kind.name()) } else { "idle".to_owned() };
        let ended = results.mean(&case, "ended");
        // Without a number there is nothing to hold against a bar.
        if ended.is_some_and(|ended| ended.mean <= 50.0) {
            ends.value(format!("{what}, with an estimate"), ended, Bar::above(50.0));
            marks.beside(format!("{what}, marked at most"), results.median(&case, "marks"));
        } else {
            parts.value(format!("{what}, off by"), results.median(&case, "off"), Bar::within(10.0));
        }
    }
    ends.and(parts).and(marks)
}

/// How far the runs of a case are from their median, one by one.
fn spread(results: &Results, case: &Case) -> Vec<f64> {
    let values = results.values(case, "estimate");
    let Some(Mean { median, .. }) = Mean::of(&values) else { return Vec::new() };
    values.iter().map(|value| (value - median).abs()).collect()
}

/// The mean distance of a case's estimates from their median.
pub(super) fn mean_spread(results: &Results, case: &Case) -> Option<Mean> {
    Mean::of(&spread(results, case))
}

/// How much further the runs of one case are from their median than those of another, on the mean (the test of Brown and Forsythe, 1974, by
/// Welch's interval).
pub(super) fn varies_more(results: &Results, case: &Case, other: &Case) -> Option<Middle> {
    let [more, less] = [spread(results, case), spread(results, other)].map(|values| Mean::of(&values));
    let (more, less) = (more?, less?);
    let half = more.half?.hypot(less.half?);
    let median = more.mean - less.mean;
    Some(Middle { median, interval: (median - half, median + half), runs: more.n.min(less.n) })
}

/// The same by the median of these distances, seed by seed.
pub(super) fn differs_more(results: &Results, case: &Case, other: &Case) -> Option<Middle> {
    let each = spread(results, case).into_iter().zip(spread(results, other));
    Middle::of(&each.map(|(more, less)| more - less).collect::<Vec<_>>())
}

/// Cost of a tool's runs beside another's, in percent, seed by seed.
pub(super) fn costs(results: &Results, tool: &Case, other: &Case, what: &str) -> Option<Middle> {
    results.share(tool, other, what)
}

/// The rates, in percent of what is left, at which a tenth, half and nine tenths of the trains are called too fast: by straight lines between
/// rates. The first rate if more are at it; none if there never are so many.
pub(super) fn turn(points: &[(f64, f64)]) -> [Option<f64>; 3] {
    [10.0, 50.0, 90.0].map(|share| {
        let first = points.first().filter(|first| first.1 > share).map(|first| first.0);
        first.or_else(|| {
            points.windows(2).find_map(|two| {
                let [(x, low), (next, high)] = [two[0], two[1]];
                (low <= share && high > share).then(|| x + (next - x) * (share - low) / (high - low))
            })
        })
    })
}

/// A tool's estimate in its own rates.
pub(super) fn estimate(results: &Results, tool: Tool, kind: Kind, load: u32) -> Option<Middle> {
    results.median(&super::cases::tool(tool, kind, load), "estimate")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: from 0 % at 90 to 100 % at 110 % of what is left, half of the trains are called too fast at 100.
    #[test]
    fn the_turning_point_lies_between_two_rates() {
        let near = |found: Option<f64>, hand: f64| {
            assert!(found.is_some_and(|x| (x - hand).abs() < 1e-9), "{found:?}")
        };
        let turned = turn(&[(70.0, 0.0), (90.0, 0.0), (110.0, 100.0), (130.0, 100.0)]);
        turned.into_iter().zip([92.0, 100.0, 108.0]).for_each(|(found, hand)| near(found, hand));
        assert_eq!(turn(&[(70.0, 20.0), (130.0, 30.0)]), [Some(70.0), None, None]);
    }
}
