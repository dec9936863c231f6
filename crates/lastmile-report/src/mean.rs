//! Means over runs, with their intervals.

use lastmile::observe::stats;

/// A mean over runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// Half of its 95 % interval (Student's t); nothing of one run.
    pub half: Option<f64>,
    /// Runs that have a value.
    pub n: usize,
}

/// Quantiles of Student's t, 97.5 %, by degrees of freedom from 1.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The same of 99.5 %.
const T_99: [f64; 30] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
    2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
];

/// A quantile of Student's t with these degrees of freedom: of the table, and beyond it the normal one `z` with the first term by which
/// they differ.
fn quantile(table: &[f64; 30], z: f64, freedom: usize) -> f64 {
    let beyond = || z + (z.powi(3) + z) / (4.0 * freedom as f64);
    freedom.checked_sub(1).and_then(|at| table.get(at)).copied().unwrap_or_else(beyond)
}

/// The normal distribution's quantiles, of 97.5 and 99.5 %.
const Z: f64 = 1.959_964;
const Z_99: f64 = 2.575_829;

impl Mean {
    /// A value that no chance has a part in.
    pub fn exactly(mean: f64) -> Mean {
        Mean { mean, median: mean, half: None, n: 1 }
    }

    /// With half of the 99 % interval instead.
    pub fn at_99(self) -> Mean {
        let freedom = self.n.saturating_sub(1).max(1);
        let wider = quantile(&T_99, Z_99, freedom) / quantile(&T, Z, freedom);
        Mean { half: self.half.map(|half| half * wider), ..self }
    }

    /// Of values; nothing of none.
    pub fn of(values: &[f64]) -> Option<Mean> {
        let n = values.len();
        let half = |deviation: f64| quantile(&T, Z, n - 1) * deviation / (n as f64).sqrt();
        Some(Mean {
            mean: stats::mean(values)?,
            median: stats::median(values)?,
            half: stats::deviation(values).map(half),
            n,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 1, 2, 3, 6 have mean 3, median 2.5, variance 14/3, and t = 3.182 with three degrees of freedom.
    #[test]
    fn means_and_intervals_by_hand() {
        let estimate = Mean::of(&[6.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((estimate.mean, estimate.median, estimate.n), (3.0, 2.5, 4));
        assert!((estimate.half.unwrap() - 3.182 * (14.0_f64 / 12.0).sqrt()).abs() < 1e-12);
        let wide = estimate.at_99().half.unwrap();
        assert!((wide - 5.841 * (14.0_f64 / 12.0).sqrt()).abs() < 1e-12, "{wide}");
        assert_eq!(Mean::of(&[5.0]).unwrap().at_99(), Mean::exactly(5.0));
        assert_eq!(Mean::of(&[]), None);
        // With 40 degrees of freedom 2.021 and 2.704, with 120 1.980 and 2.617, by the usual tables.
        for (freedom, t, t_99) in [(40, 2.021, 2.704), (120, 1.980, 2.617)] {
            assert!((quantile(&T, Z, freedom) - t).abs() < 0.003);
            assert!((quantile(&T_99, Z_99, freedom) - t_99).abs() < 0.01);
        }
    }
}
