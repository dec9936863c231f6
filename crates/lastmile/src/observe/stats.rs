//! Statistics of small samples, without a linear-algebra crate and the same on every machine.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// The values in rising order, without those that are not finite.
fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The median: the mean of the two middle values where their number is even.
///
/// ```
/// assert_eq!(lastmile::observe::stats::median(&[3.0, 1.0, 2.0, 10.0]), Some(2.5));
/// assert_eq!(lastmile::observe::stats::median(&[]), None);
/// ```
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The `q` quantile by linear interpolation between order statistics (Hyndman and Fan's type 7).
///
/// ```
/// assert_eq!(lastmile::observe::stats::quantile(&[0.0, 10.0, 20.0], 0.75), Some(15.0));
/// ```
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(values), q)
}

/// The same of values in ascending order: for several quantiles of many values.
///
/// ```
/// assert_eq!(lastmile::observe::stats::quantile_of_sorted(&[1.0, 2.0, 3.0, 4.0], 0.5), Some(2.5));
/// ```
pub fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let below = (libm::floor(at) as usize).min(last);
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64))
}

/// The mode: the mean of the values in the fullest bin of `width` and in its neighbours; the lowest of equally full bins. `None` without values
/// or width.
///
/// ```
/// use lastmile::observe::stats::mode;
/// // Bins from 0, 10, 20, ...: two values in that from 10, three in that from 20, none in that from 30.
/// assert_eq!(mode(&[12.0, 18.0, 21.0, 22.0, 27.0, 40.0], 10.0), Some(20.0));
/// assert_eq!(mode(&[5.0], 0.0), None);
/// ```
pub fn mode(values: &[f64], width: f64) -> Option<f64> {
    let bin = |value: f64| libm::floor(value / width);
    let bins: Vec<f64> = sorted(values).into_iter().map(bin).filter(|bin| bin.is_finite()).collect();
    let runs = bins.chunk_by(|a, b| a == b);
    let fullest = runs.rev().max_by_key(|run| run.len())?[0];
    let near: Vec<f64> = values.iter().copied().filter(|v| (bin(*v) - fullest).abs() <= 1.0).collect();
    mean(&near)
}

/// The mean.
///
/// ```
/// assert_eq!(lastmile::observe::stats::mean(&[1.0, 2.0]), Some(1.5));
/// ```
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation of a sample (divisor n - 1); `None` below two values.
///
/// ```
/// assert_eq!(lastmile::observe::stats::deviation(&[1.0, 3.0]), Some(2.0_f64.sqrt()));
/// ```
pub fn deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    let n = values.len();
    let squares: f64 = values.iter().map(|v| (v - centre) * (v - centre)).sum();
    (n >= 2).then(|| libm::sqrt(squares / (n - 1) as f64))
}

/// An interval for the median from order statistics: the narrowest symmetric one whose coverage is at least
/// `confidence` whatever the distribution. `None` where the sample is too small for that.
///
/// The number of values below the median is binomial (n, 1/2), so the k-th smallest and the k-th largest hold
/// it with probability 1 - 2 P(B < k).
///
/// ```
/// let values: Vec<f64> = (1..=30).map(f64::from).collect();
/// // P(B <= 10) = 0.0494 for n = 30: the 11th and the 20th.
/// assert_eq!(lastmile::observe::stats::median_interval(&values, 0.9), Some((11.0, 20.0)));
/// assert_eq!(lastmile::observe::stats::median_interval(&values[..3], 0.9), None);
/// ```
pub fn median_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let sorted = sorted(values);
    let n = sorted.len();
    let tail = (1.0 - confidence) / 2.0;
    let mut term = libm::exp2(-(n as f64));
    let mut below = 0.0;
    let mut k = 0;
    while k < n {
        below += term;
        if below > tail {
            break;
        }
        term *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    (k > 0 && 2 * k <= n).then(|| (sorted[k - 1], sorted[n - k]))
}

/// The interval of a share of which `k` of `n` were seen (Wilson, "Probable inference, the law of succession, and statistical inference",
/// 1927); `None` where there are none.
///
/// ```
/// let (low, high) = lastmile::observe::stats::share_interval(30, 30, 0.9).unwrap();
/// assert!((low - 30.0 / (30.0 + 1.645_f64.powi(2))).abs() < 1e-4 && high == 1.0);
/// let (low, high) = lastmile::observe::stats::share_interval(1, 10, 0.95).unwrap();
/// assert!((low - 0.0179).abs() < 1e-4 && (high - 0.4042).abs() < 1e-4);
/// assert_eq!(lastmile::observe::stats::share_interval(0, 0, 0.95), None);
/// ```
pub fn share_interval(k: usize, n: usize, confidence: f64) -> Option<(f64, f64)> {
    let (z, n, share) = (normal_quantile((1.0 + confidence) / 2.0), n as f64, k as f64 / n as f64);
    let scale = 1.0 + z * z / n;
    let centre = (share + z * z / (2.0 * n)) / scale;
    let half = z * libm::sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n)) / scale;
    (n > 0.0).then(|| ((centre - half).max(0.0), (centre + half).min(1.0)))
}

/// Probability that of `drawn` out of `all`, `marked` of which are marked, at least `k` are: the hypergeometric tail, and
/// Fisher's exact test of one side.
///
/// ```
/// // All four drawn from 30 are among the 19 that are marked: 19 over 4 of 30 over 4.
/// let tail = lastmile::observe::stats::hypergeometric_tail(4, 4, 19, 30);
/// assert!((tail - 3_876.0 / 27_405.0).abs() < 1e-9);
/// ```
pub fn hypergeometric_tail(k: usize, drawn: usize, marked: usize, all: usize) -> f64 {
    let ways = |n: usize, k: usize| {
        let log_factorial = |n: usize| libm::lgamma(n as f64 + 1.0);
        log_factorial(n) - log_factorial(k) - log_factorial(n - k)
    };
    let rest = all.saturating_sub(marked);
    let possible = |x: &usize| drawn - x <= rest;
    let of = |x: usize| libm::exp(ways(marked, x) + ways(rest, drawn - x) - ways(marked + rest, drawn));
    (k..=drawn.min(marked)).filter(possible).map(of).sum()
}

/// Probability that values differ by chance as much before and behind some place in their row as these do: Pettitt's test ("A
/// non-parametric approach to the change-point problem", Applied Statistics 28, 1979).
///
/// ```
/// use lastmile::observe::stats::change_by_chance;
/// let (even, step): (Vec<f64>, Vec<f64>) = (0..30).map(|k| (f64::from(k * 7 % 30), f64::from(k / 15))).unzip();
/// assert!(change_by_chance(&even) > 0.5 && change_by_chance(&step) < 1e-4);
/// ```
pub fn change_by_chance(values: &[f64]) -> f64 {
    let n = values.len();
    // Values larger than the k-th, less those that are smaller: summed up to a place they are Pettitt's U.
    let sign = |a: f64, b: f64| i64::from(a > b) - i64::from(a < b);
    let rank = |value: &f64| values.iter().map(|other| sign(*other, *value)).sum::<i64>();
    let sums = values.iter().scan(0, |sum, value| {
        *sum += rank(value);
        Some(*sum)
    });
    let largest = sums.map(i64::abs).max().unwrap_or(0) as f64;
    let n = n as f64;
    (2.0 * libm::exp(-6.0 * largest * largest / (n * n * n + n * n))).min(1.0)
}

/// The quantile of the standard normal distribution (Wichura's AS 241, the seven-figure version).
///
/// ```
/// assert!((lastmile::observe::stats::normal_quantile(0.975) - 1.959964).abs() < 1e-6);
/// ```
pub fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q
            * (((5.910_937_472e1 * r + 1.592_911_320_2e2) * r + 5.043_427_193_8e1) * r + 3.387_132_717_9)
            / (((6.718_756_360_0e1 * r + 7.875_775_766_4e1) * r + 1.789_516_946_9e1) * r + 1.0);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail <= 0.0 {
        return if q < 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let r = libm::sqrt(-libm::log(tail));
    let x = if r <= 5.0 {
        let r = r - 1.6;
        (((1.702_382_110_3e-1 * r + 1.306_728_481_6) * r + 2.756_815_390_0) * r + 1.423_437_277_7)
            / ((1.202_113_297_5e-1 * r + 7.370_016_425_0e-1) * r + 1.0)
    } else {
        let r = r - 5.0;
        (((1.733_720_399_7e-2 * r + 4.286_829_433_7e-1) * r + 3.081_226_386_0) * r + 6.657_905_115_0)
            / ((1.225_820_263_5e-2 * r + 2.419_789_472_5e-1) * r + 1.0)
    };
    if q < 0.0 { -x } else { x }
}

/// The quantile of Student's t distribution with `df` degrees of freedom (Hill's algorithm 396; exact for one
/// and two).
///
/// ```
/// // Four trains, 90 %, two-sided.
/// assert!((lastmile::observe::stats::student_quantile(0.95, 3) - 2.3534).abs() < 1e-3);
/// ```
pub fn student_quantile(p: f64, df: usize) -> f64 {
    if p < 0.5 {
        return -student_quantile(1.0 - p, df);
    }
    let two_tailed = 2.0 * (1.0 - p);
    if two_tailed <= 0.0 || df == 0 {
        return f64::INFINITY;
    }
    let half_pi = core::f64::consts::FRAC_PI_2;
    match df {
        1 => return libm::cos(two_tailed * half_pi) / libm::sin(two_tailed * half_pi),
        2 => return libm::sqrt(2.0 / (two_tailed * (2.0 - two_tailed)) - 2.0).max(0.0),
        _ => {}
    }
    let n = df as f64;
    let a = 1.0 / (n - 0.5);
    let b = (48.0 / a) / a;
    let mut c = ((20_700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    let d = ((94.5 / (b + c) - 3.0) / b + 1.0) * libm::sqrt(a * half_pi) * n;
    let mut x = d * two_tailed;
    let mut y = libm::pow(x, 2.0 / n);
    if y > 0.05 + a {
        x = normal_quantile(two_tailed * 0.5);
        y = x * x;
        if df < 5 {
            c += 0.3 * (n - 4.5) * (x + 0.6);
        }
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b;
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x;
        y = libm::expm1(a * y * y);
    } else {
        y = ((1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0) + 0.5 / (n + 4.0)) * y
            - 1.0)
            * (n + 1.0)
            / (n + 2.0)
            + 1.0 / y;
    }
    libm::sqrt(n * y)
}

/// Student's t interval for the mean of independent values; `None` below three of them.
///
/// ```
/// let (low, high) = lastmile::observe::stats::student_interval(&[1.0, 2.0, 3.0], 0.9).unwrap();
/// assert!(low < 2.0 && high > 2.0 && (high - 2.0 - 2.92 / 3.0_f64.sqrt()).abs() < 1e-3);
/// ```
pub fn student_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let n = values.len();
    if n < 3 {
        return None;
    }
    let half = student_quantile((1.0 + confidence) / 2.0, n - 1) * deviation(values)? / libm::sqrt(n as f64);
    let centre = mean(values)?;
    Some((centre - half, centre + half))
}

/// A bootstrap-t interval for the mean, by 1,000 resamples drawn with a constant seed, so that a replayed
/// recording gives the same interval. `None` below eight values.
///
/// ```
/// use lastmile::observe::stats::bootstrap_interval;
/// let values = [4.0, 5.0, 6.0, 5.0, 4.5, 5.5, 5.2, 4.8];
/// let (low, high) = bootstrap_interval(&values, 0.9).unwrap();
/// assert!(low < 5.0 && 5.0 < high);
/// assert_eq!(bootstrap_interval(&values, 0.9), Some((low, high)));
/// ```
pub fn bootstrap_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    const RESAMPLES: usize = 1_000;
    let n = values.len();
    if n < 8 || n > u32::MAX as usize {
        return None;
    }
    let (centre, error) = (mean(values)?, deviation(values)? / libm::sqrt(n as f64));
    let mut random = Pcg64Mcg::new(0xcafe_f00d_d15e_a5e5);
    let mut resample = vec![0.0; n];
    let mut t = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for slot in &mut resample {
            // Multiply and shift: unbiased to one in 2^32 / n.
            *slot = values[((u64::from(random.next_u32()) * n as u64) >> 32) as usize];
        }
        let own = deviation(&resample)? / libm::sqrt(n as f64);
        if own > 0.0 {
            t.push((mean(&resample)? - centre) / own);
        }
    }
    if t.is_empty() {
        return Some((centre, centre));
    }
    let tail = (1.0 - confidence) / 2.0;
    Some((centre - quantile(&t, 1.0 - tail)? * error, centre - quantile(&t, tail)? * error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Published two-sided 90 % points of Student's t (that is p = 0.95), and p = 0.975.
    #[test]
    fn student_quantiles_are_the_tables() {
        let table = [
            (1, 6.3138, 12.7062),
            (2, 2.9200, 4.3027),
            (3, 2.3534, 3.1824),
            (4, 2.1318, 2.7764),
            (5, 2.0150, 2.5706),
            (7, 1.8946, 2.3646),
            (10, 1.8125, 2.2281),
            (29, 1.6991, 2.0452),
            (100, 1.6602, 1.9840),
        ];
        for (df, at95, at975) in table {
            assert!(
                (student_quantile(0.95, df) / at95 - 1.0).abs() < 5e-4,
                "{df}: {}",
                student_quantile(0.95, df)
            );
            assert!((student_quantile(0.975, df) / at975 - 1.0).abs() < 5e-4, "{df}");
            assert_eq!(student_quantile(0.05, df), -student_quantile(0.95, df));
        }
    }

    #[test]
    fn normal_quantiles_are_the_tables() {
        for (p, z) in
            [(0.5, 0.0), (0.95, 1.644_854), (0.99, 2.326_348), (0.999, 3.090_232), (1e-12, -7.034_484)]
        {
            assert!((normal_quantile(p) - z).abs() < 2e-6, "{p}: {}", normal_quantile(p));
        }
    }

    /// Uniform values: whatever the distribution, the interval holds the median in at least nine of ten samples.
    #[test]
    fn the_median_interval_covers() {
        let mut random = Pcg64Mcg::new(7);
        let covered = (0..2_000)
            .filter(|_| {
                let values: Vec<f64> = (0..30).map(|_| f64::from(random.next_u32())).collect();
                let (low, high) = median_interval(&values, 0.9).unwrap();
                let middle = f64::from(u32::MAX) / 2.0;
                low <= middle && middle <= high
            })
            .count();
        assert!((1_760..=1_860).contains(&covered), "{covered} of 2000");
    }

    proptest! {
        #[test]
        fn nothing_panics_and_intervals_are_ordered(values in prop::collection::vec(any::<f64>(), 0..40), q in -1.0..2.0_f64) {
            let _ = (mean(&values), deviation(&values), quantile(&values, q));
            if let Some((low, high)) = median_interval(&values, 0.9) {
                prop_assert!(low <= high);
            }
        }

        #[test]
        fn intervals_of_the_mean_hold_it(values in prop::collection::vec(-1e9..1e9_f64, 8..40)) {
            let (low, high) = student_interval(&values, 0.9).unwrap();
            let centre = mean(&values).unwrap();
            prop_assert!(low <= centre && centre <= high);
            prop_assert!(bootstrap_interval(&values, 0.9).is_some());
        }
    }
}
