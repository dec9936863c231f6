//! The lines of [`topp`](super): regressions of o / m on o, the links that they show, and where a line breaks.

use crate::estimate::line::{Line, Point, ROUNDED};
use crate::estimate::wbest_capacity::CONFIDENCE;
use crate::observe::stats;

/// Points of a line at least.
pub(super) const FEWEST: usize = 5;
/// A point of more than this is clearly above 1.
pub(super) const CLEAR: f64 = 1.03;
/// Two lines are better than one by this F (0.01 at 3 and 9 degrees of freedom), and where one is off by this much at least.
const BETTER: (f64, f64) = (7.0, 0.01);
/// A capacity outside of the interval with this confidence contradicts a line.
const CONTRADICTS: f64 = 0.99;
/// A line that meets 1 at this share of its capacity goes through the origin.
pub(super) const ORIGIN: f64 = 0.95;

impl Line {
    /// The line through these points, whose regression it is, if pairs show `capacity`, and where A lies: with that slope where a FIFO fits them better,
    /// or through the origin where a fair queue does, which gives one flow A however fast it comes. None where the regression's own interval does not hold
    /// that slope.
    pub(super) fn told(&self, points: &[Point], capacity: f64) -> Option<(Line, [f64; 2])> {
        let sum = |of: &dyn Fn(&Point) -> f64| points.iter().map(of).sum::<f64>();
        let squares = sum(&|p| p.offered * p.offered);
        let t = stats::student_quantile((1.0 + CONFIDENCE) / 2.0, self.n - 1);
        let error = |of: f64, weight: f64| t * libm::sqrt(of / ((self.n - 1) as f64 * weight));
        let slope = 1.0 / capacity;
        let around = self.squares[1] + (self.slope - slope) * (self.slope - slope) * self.sxx;
        let origin = sum(&|p| p.offered * p.ratio) / squares;
        let around_origin = sum(&|p| (p.ratio - origin * p.offered) * (p.ratio - origin * p.offered));
        let (line, error) = if around_origin < around && ORIGIN * origin > slope {
            let (mean, squared) = ([self.mean[0], origin * self.mean[0]], [self.squares[0], around_origin]);
            let line = Line { slope: origin, mean, squares: squared, sxx: squares, ..*self };
            (line, error(around_origin, squares) / (origin * origin))
        } else {
            let [low, high] = self.intervals(CONTRADICTS)[0];
            let line = Line { slope, squares: [self.squares[0], around], ..*self };
            (low..=high).contains(&capacity).then_some((line, capacity * error(around, self.n as f64)))?
        };
        let [capacity, available] = line.link();
        let error = error + ROUNDED * capacity;
        Some((line, [(available - error).max(0.0), available + error]))
    }

    /// C and A of the link whose segment this is, behind the segment `first` of another link: with q = X2 / C2 its slope is 1 / C2 + q / C1,
    /// and its intercept q X1 / C1.
    pub(super) fn behind(&self, first: &Line) -> Option<[f64; 2]> {
        let busy = first.intercept();
        let q = if busy > ROUNDED { (self.intercept() / busy).clamp(0.0, 1.0) } else { 0.0 };
        let slope = self.slope - first.slope * q;
        (slope > 0.0).then(|| [1.0 / slope, (1.0 - q) / slope])
    }
}

/// The first point behind the first break, and the lines behind it: one, or two where that is clearly better. Unless `faithful`, the points
/// of one line are all clearly above 1.
pub(super) fn segments(points: &[Point], faithful: bool) -> Option<(usize, Line, Option<Line>)> {
    let last = points.len().checked_sub(FEWEST)?;
    let before = |k: usize| points[..k].iter().map(|p| (p.ratio - 1.0) * (p.ratio - 1.0)).sum::<f64>();
    let line = |from: usize, to: usize| {
        Line::through(&points[from..to]).filter(|line| line.slope > 0.0 && line.slope.is_finite())
    };
    let ones = (0..=last).filter_map(|k| line(k, points.len()).map(|one| (before(k) + one.squares[1], k)));
    let (one, mut k) = ones.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let breaks = (0..=last).flat_map(|k| (k + FEWEST..=last).map(move |j| (k, j)));
    let twos = breaks.filter_map(|(k, j)| {
        let (first, second) = (line(k, j)?, line(j, points.len())?);
        let square = before(k) + first.squares[1] + second.squares[1];
        (second.slope > first.slope).then_some((square, k, first, second))
    });
    if let Some((two, k, first, second)) = twos.min_by(|a, b| a.0.total_cmp(&b.0))
        && one > BETTER.1 * BETTER.1 * points.len() as f64
        && (one - two) / 3.0 > BETTER.0 * two / points.len().saturating_sub(6).max(1) as f64
    {
        return Some((k, first, Some(second)));
    }
    while !faithful && k < last && points[k].ratio < CLEAR {
        k += 1;
    }
    Some((k, line(k, points.len())?, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points at these rates, in Mbit/s, of links in a row, each with C and X: m = C o / (o + X) where that is less than o.
    fn points(rates: impl Iterator<Item = u32>, links: &[(f64, f64)]) -> Vec<Point> {
        let point = |(k, rate): (usize, u32)| {
            let offered = f64::from(rate) * 1e6;
            let through = |m: f64, &(c, x): &(f64, f64)| if m + x > c { c * m / (m + x) } else { m };
            Point { offered, ratio: offered / links.iter().fold(offered, through), stream: k as u32 }
        };
        rates.enumerate().map(point).collect()
    }

    fn near(is: f64, should: f64) -> bool {
        (is / should - 1.0).abs() < 1e-6
    }

    /// C = 10, X = 4: o / m is 1 up to 6, at 8 it is 12 / 10, at 16 it is 2: (2 - 1.2) / (16 - 8) = 1 / 10, and 1.2 - 8 / 10 = 0.4.
    #[test]
    fn a_line_has_the_slope_of_the_capacity_and_meets_1_at_what_is_left() {
        let points = points(1..18, &[(10e6, 4e6)]);
        assert!(near(points[7].ratio, 1.2) && near(points[15].ratio, 2.0) && near(points[5].ratio, 1.0));
        let (k, line, second) = segments(&points, false).unwrap();
        assert!(near(line.slope, 1e-7) && near(line.intercept(), 0.4), "{line:?}");
        assert!((points[k].offered - 7e6).abs() < 1.0 && second.is_none());
        let [capacity, available] = line.link();
        assert!(near(capacity, 10e6) && near(available, 6e6), "{capacity} {available}");
        let [of_capacity, of_available] = line.intervals(CONFIDENCE);
        assert!(
            near(of_capacity[0], 9.95e6) && near(of_available[1], 6.05e6),
            "{of_capacity:?} {of_available:?}"
        );
    }

    /// C = 100 with X = 90, and 20 with X = 4 behind it, which has 16 left: 100 o / (o + 90) is 16 at o = 17.14. Behind that o / m is
    /// o (1 + 4 / 100) / 20 + 4 x 90 / (20 x 100): the slope 0.052, the intercept 0.18.
    #[test]
    fn a_second_segment_is_of_another_link() {
        let links = [(100e6, 90e6), (20e6, 4e6)];
        let (_, first, second) = segments(&points(4..36, &links), false).unwrap();
        let second = second.unwrap();
        assert!(near(second.slope, 0.052e-6) && near(second.intercept(), 0.18), "{second:?}");
        let [[tight, left], [narrow, rest]] = [first.link(), second.behind(&first).unwrap()];
        assert!(near(tight, 100e6) && near(left, 10e6), "{tight} {left}");
        assert!(near(narrow, 20e6) && near(rest, 16e6), "{narrow} {rest}");
        // One that nobody else uses goes through the origin.
        let (_, first, second) = segments(&points(4..36, &[(100e6, 90e6), (20e6, 0.0)]), false).unwrap();
        let [narrow, rest] = second.unwrap().behind(&first).unwrap();
        assert!(near(narrow, 20e6) && near(rest, 20e6), "{narrow} {rest}");
    }

    /// Of a link of 10 with 1, o / m is at most 1.1 up to 10: those points are no line to go by.
    #[test]
    fn only_points_clearly_above_1_count() {
        let points = points(1..18, &[(10e6, 1e6)]);
        let clear =
            |points: &[Point]| segments(points, false).map(|(k, line, _)| (points[k].ratio, line.link()));
        let (least, [capacity, _]) = clear(&points).unwrap();
        assert!(least >= CLEAR && near(capacity, 10e6), "{least} {capacity}");
        assert!(segments(&points[..FEWEST - 1], false).is_none());
    }

    /// Ratios 1.2, 1.3, 1.4, 1.5 and 1.6 at 8 to 12, off by +1, -2, 0, +2, -1 hundredths: the slope is still 1 / 10 - 0.002, and errors are as in textbooks.
    #[test]
    fn intervals_are_those_of_the_regression() {
        let of = |(k, off): (usize, f64)| Point {
            offered: 8.0 + k as f64,
            ratio: 1.2 + 0.1 * k as f64 + off,
            stream: 0,
        };
        let points: Vec<Point> = [0.01, -0.02, 0.0, 0.02, -0.01].into_iter().enumerate().map(of).collect();
        let line = Line::through(&points).unwrap();
        // Sxx = 10; of the offsets Sxy = -2 x 0.01 - 1 x -0.02 + 1 x 0.02 + 2 x -0.01 = 0, squares 1 + 4 + 0 + 4 + 1 = 10 x 10^-4.
        assert!(near(line.slope, 0.1) && near(line.sxx, 10.0) && near(line.squares[1], 1e-3), "{line:?}");
        // s² = 0.001 / 3, t of 3 degrees at 0.95 = 2.3534: the slope is uncertain by 2.3534 sqrt(s² / 10) = 0.013587.
        let [[low, high], [from, to]] = line.intervals(CONFIDENCE);
        assert!(
            (low - (1.0 / 0.113_587 - 0.05)).abs() < 1e-3 && (high - (1.0 / 0.086_413 + 0.05)).abs() < 1e-3,
            "{low} {high}"
        );
        // A = 6, d = -4 from the mean: the line at 6 is uncertain by 2.3534 s sqrt(1 / 5 + 16 / 10) = 0.0576, some 0.58 of rate.
        assert!(from < 5.5 && from > 4.8 && to > 6.4 && to < 6.7, "{from} {to}");
        // With the slope of a capacity of 10 that pairs show, A = 10 - (1.4 x 10 - 10) = 6 is uncertain by t of 4 degrees, 2.1318, times
        // 10 sqrt(0.001 / 4 / 5) = 0.0707, and 0.05.
        let (_, [from, to]) = line.told(&points, 10.0).unwrap();
        assert!((from - 5.799).abs() < 1e-3 && (to - 6.201).abs() < 1e-3, "{from} {to}");
        assert!(line.told(&points, 5.0).is_none());
    }
}
