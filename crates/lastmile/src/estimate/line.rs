//! Regression as a search for the turning point: a line through o / m over o, of rates offered and measured.
//!
//! A link of capacity C that others use at X = C - A passes a stream offered at o > A at m, in proportion: o / m = o / C + (C - A) / C. So the line's
//! slope is 1 / C, and it meets 1 at A (Melander, Björkman, Gunningberg, GLOBECOM 2000). [`topp`](super::topp) has more than one line,
//! [`diettopp`](super::diettopp) one.

use crate::observe::stats;

/// Stamps and whole packets make a line uncertain by this share of the capacity, whatever its points say.
pub(super) const ROUNDED: f64 = 0.005;

/// Result at one rate: the rate offered, in bit/s, that rate by the one measured, and the stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) offered: f64,
    pub(super) ratio: f64,
    pub(super) stream: u32,
}

/// A line through points, by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) n: usize,
    pub(super) mean: [f64; 2],
    pub(super) slope: f64,
    pub(super) sxx: f64,
    /// Sums of squares: of the ratios around their mean, and around the line.
    pub(super) squares: [f64; 2],
}

impl Line {
    pub(super) fn through(points: &[Point]) -> Option<Line> {
        let n = points.len() as f64;
        let mean = [
            stats::mean(&points.iter().map(|p| p.offered).collect::<Vec<_>>())?,
            points.iter().map(|p| p.ratio).sum::<f64>() / n,
        ];
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|p| of(p.offered - mean[0], p.ratio - mean[1])).sum()
        };
        let (sxx, sxy) = (sum(&|x, _| x * x), sum(&|x, y| x * y));
        let slope = (sxx > 0.0).then(|| sxy / sxx)?;
        let squares = [sum(&|_, y| y * y), sum(&|x, y| (y - slope * x) * (y - slope * x))];
        Some(Line { n: points.len(), mean, slope, sxx, squares })
    }

    /// (C - A) / C.
    pub(super) fn intercept(&self) -> f64 {
        self.mean[1] - self.slope * self.mean[0]
    }

    /// C and A of the link that it shows, in bit/s.
    pub(super) fn link(&self) -> [f64; 2] {
        let capacity = 1.0 / self.slope; // [TOPP: the slope is 1 / C]
        [capacity, (capacity * (1.0 - self.intercept())).clamp(0.0, capacity)]
    }

    /// Intervals of C and A, from the regression's standard errors: of A by Fieller's theorem, as the rate at which the line meets 1.
    /// Upper ends are infinite if the slope may be zero.
    pub(super) fn intervals(&self, confidence: f64) -> [[f64; 2]; 2] {
        let [capacity, available] = self.link();
        let t = stats::student_quantile((1.0 + confidence) / 2.0, self.n - 2);
        let variance = t * t * self.squares[1] / (self.n - 2) as f64;
        let error = libm::sqrt(variance / self.sxx);
        let most = if self.slope > error { 1.0 / (self.slope - error) } else { f64::INFINITY };
        let of_capacity = [1.0 / (self.slope + error), most];
        // (1 - y - s d)² = variance (1 / n + d² / Sxx), of d = A - x.
        let (short, leading) = (1.0 - self.mean[1], self.slope * self.slope - variance / self.sxx);
        let of_available = if leading > 0.0 {
            let (middle, last) = (self.slope * short, short * short - variance / self.n as f64);
            let root = libm::sqrt((middle * middle - leading * last).max(0.0));
            [-root, root].map(|root| self.mean[0] + (middle + root) / leading)
        } else {
            [0.0, most]
        };
        let rounded = ROUNDED * capacity;
        let around = |value: f64, [low, high]: [f64; 2]| {
            [(low.min(value) - rounded).max(0.0), high.max(value) + rounded]
        };
        [around(capacity, of_capacity), around(available, of_available)]
    }
}
