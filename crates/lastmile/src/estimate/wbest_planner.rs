//! WBest's arithmetic of sample sizes and errors (seed 000, sections II.C and II.D).

use crate::time::Span;
use crate::units::{Bytes, Rate};

/// Access points queue 40 to 300 packets (seed 000, section II.C): a train of this many may overflow one.
pub const LONG_TRAIN: usize = 40;

/// Samples needed to know a rate within `ci` at confidence `z`, when single samples deviate by `sigma`; before
/// rounding up. `None` across layers or for an interval of zero.
///
/// ```
/// use lastmile::{estimate::wbest_planner::samples_needed, units::Rate};
/// // The paper: 802.11b at 11 Mbit/s, 1500 B, 95 % within 500 kbit/s: 6 pairs, a train of 30.
/// let within = Rate::ip(500_000);
/// assert_eq!(samples_needed(1.96, Rate::ip(590_000), within).unwrap().ceil(), 6.0);
/// assert_eq!(samples_needed(1.96, Rate::ip(1_380_000), within).unwrap().ceil(), 30.0);
/// ```
pub fn samples_needed(z: f64, sigma: Rate, ci: Rate) -> Option<f64> {
    let share = z * sigma.ratio(ci)?;
    Some(share * share) // [WBest eq. 7]
}

/// The least constant-rate traffic that a train is sure to catch a packet of.
///
/// ```
/// use lastmile::{estimate::wbest_planner::sensitivity, units::Rate};
/// // The paper: ten packets catch a tenth of the capacity.
/// assert_eq!(sensitivity(Rate::ip(10_000_000), 10), Rate::ip(1_000_000));
/// ```
pub fn sensitivity(capacity: Rate, train: usize) -> Rate {
    capacity.scaled(1.0 / train.max(1) as f64) // [WBest eq. 8]
}

/// How long a train takes at the capacity.
///
/// ```
/// use lastmile::{estimate::wbest_planner::train_time, time::Span, units::{Bytes, Rate}};
/// assert_eq!(train_time(30, Bytes(1488), Rate::ip(10_000_000)), Span::from_micros(35_712));
/// ```
pub fn train_time(train: usize, size: Bytes, capacity: Rate) -> Span {
    capacity.time_for(size * train as u64)
}

/// What the user should know of a train of this length; `None` where all is well.
///
/// ```
/// use lastmile::estimate::wbest_planner::train_warning;
/// assert!(train_warning(30).is_none());
/// assert!(train_warning(40).unwrap().contains("overflow"));
/// ```
pub fn train_warning(train: usize) -> Option<String> {
    (train >= LONG_TRAIN).then(|| {
        format!("a train of {train} packets may overflow the queue of an access point, which holds 40 to 300")
    })
}

/// Relative error of the available bandwidth when the capacity was estimated as C(1 + `y`), by the ratio of the
/// true capacity to the true available bandwidth. Positive is an over-estimate.
///
/// ```
/// use lastmile::estimate::wbest_planner::error_of_capacity;
/// // Figure 4: a capacity 10 % too high never over-estimates.
/// assert!((error_of_capacity(0.1, 1.0) - -0.01).abs() < 1e-12);
/// assert!((error_of_capacity(0.1, 2.0) - -0.12).abs() < 1e-12);
/// assert!(error_of_capacity(-0.1, 2.0) > 0.0);
/// ```
pub fn error_of_capacity(y: f64, capacity_to_available: f64) -> f64 {
    y - y * (1.0 + y) * capacity_to_available // [WBest eq. 11, 12; figure 4]
}

/// Relative error of the paper's formula when the train reaches the last hop at C(1 + `x`) instead of C.
///
/// [`Wbest`](crate::estimate::wbest::Wbest) uses the rate measured at the sender instead and does not have this
/// error for what happens there; dispersion on hops before the last still causes it.
///
/// ```
/// use lastmile::estimate::wbest_planner::error_of_predispersion;
/// // Figure 5: compression over-estimates, dispersion under-estimates, more so when little is left.
/// assert!((error_of_predispersion(0.25, 2.0) - 0.2).abs() < 1e-12);
/// assert!((error_of_predispersion(-0.2, 2.0) - -0.25).abs() < 1e-12);
/// // Slower than what is left: nothing is dispersed any more.
/// assert!((error_of_predispersion(-0.2, 1.0) - -0.25).abs() < 1e-12);
/// ```
pub fn error_of_predispersion(x: f64, capacity_to_available: f64) -> f64 {
    // The train's rate C(1 + x) against A.
    if (1.0 + x) * capacity_to_available >= 1.0 {
        x * (capacity_to_available - 1.0) / (1.0 + x) // [WBest eq. 16]
    } else {
        (1.0 + 2.0 * x) * capacity_to_available / (1.0 + x) - 1.0 // [WBest eq. 16]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_sample_sizes() {
        let within = Rate::ip(500_000);
        // 5.34 and 29.26 before rounding up.
        assert!((samples_needed(1.96, Rate::ip(590_000), within).unwrap() - 5.349).abs() < 0.01);
        assert!((samples_needed(1.96, Rate::ip(1_380_000), within).unwrap() - 29.26).abs() < 0.01);
        assert_eq!(samples_needed(1.96, within, Rate::ip(0)), None);
    }

    /// Equations 9 to 12 and 14 to 16 step by step, against the closed forms.
    #[test]
    fn the_errors_follow_from_the_fluid_model() {
        let c = 10.0_f64;
        for a in [2.0, 5.0, 8.0, 9.9] {
            for e in [-0.3, -0.1, 0.05, 0.2] {
                let sent = c * (1.0 + e);
                let received = if sent >= a { sent * c / (sent + c - a) } else { sent };
                let with_wrong_capacity = 2.0 * sent - sent * sent / received;
                if sent >= a {
                    assert!(
                        (with_wrong_capacity / a - 1.0 - error_of_capacity(e, c / a)).abs() < 1e-9,
                        "{a} {e}"
                    );
                }
                let predispersed = 2.0 * c - c * c / received;
                assert!((predispersed / a - 1.0 - error_of_predispersion(e, c / a)).abs() < 1e-9, "{a} {e}");
            }
        }
    }
}
