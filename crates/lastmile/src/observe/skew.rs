//! Clock skew: the line under relative one-way delays (Moon, Skelly, Towsley, "Estimation and removal of clock
//! skew from network delay measurements", INFOCOM 1999).
//!
//! Two clocks of different rate tilt the delays. The tilt is that of the line which lies below all points and as
//! close to them as possible: an edge of their lower convex hull, the one above the mean of the times.

use crate::time::Span;

/// Fewer samples give no line.
pub const MIN_SAMPLES: usize = 20;
/// A shorter span gives no line: the delays' own noise would tilt it.
pub const MIN_SPAN: Span = Span::from_millis(150);
/// No oscillator in use is off by more (both clocks together, slewing included); a steeper line is a queue that
/// fills or drains.
pub const MAX_SKEW: f64 = 600e-6;

/// The skew of the receiver's clock against the sender's, as nanoseconds of delay a nanosecond; `None` where the
/// samples are too few ([`MIN_SAMPLES`]), too close ([`MIN_SPAN`]) or too steep ([`MAX_SKEW`]).
///
/// `samples` are sending times and relative one-way delays, both in nanoseconds, in the order of sending.
///
/// ```
/// // 50 ppm, with queueing on top of every third packet.
/// let samples: Vec<(i64, i64)> = (0..40_i64)
///     .map(|k| (k * 10_000_000, 7_000_000 + k * 500 + if k % 3 == 0 { 300_000 } else { 0 }))
///     .collect();
/// let skew = lastmile::observe::skew::skew(&samples).unwrap();
/// assert!((skew - 50e-6).abs() < 1e-9);
/// ```
pub fn skew(samples: &[(i64, i64)]) -> Option<f64> {
    let (&(first, base), &(last, _)) = (samples.first()?, samples.last()?);
    if samples.len() < MIN_SAMPLES || last.saturating_sub(first) < MIN_SPAN.as_nanos() {
        return None;
    }
    // Relative to the first, so that 64-bit times keep their nanoseconds in a float.
    let points = samples.iter().map(|(t, d)| (t.saturating_sub(first) as f64, d.saturating_sub(base) as f64));
    let mut hull: Vec<(f64, f64)> = Vec::new();
    let mut sum = 0.0;
    for (x, y) in points {
        sum += x;
        while let [.., (ax, ay), (bx, by)] = hull[..] {
            if (bx - ax) * (y - ay) > (by - ay) * (x - ax) {
                break;
            }
            hull.pop();
        }
        match hull.last_mut() {
            Some((bx, by)) if *bx >= x => *by = by.min(y),
            _ => hull.push((x, y)),
        }
    }
    let mean = sum / samples.len() as f64;
    let edge = hull.windows(2).find(|edge| edge[0].0 <= mean && mean <= edge[1].0)?;
    let slope = (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0);
    (slope.abs() <= MAX_SKEW).then_some(slope)
}

/// A delay as it would read without the skew, counted from `since` (the first sample's sending time).
///
/// ```
/// assert_eq!(lastmile::observe::skew::corrected(5_000_050_000, 7_050_000, 50e-6, 4_000_050_000), 7_000_000);
/// ```
pub fn corrected(sent: i64, delay: i64, skew: f64, since: i64) -> i64 {
    delay.saturating_sub(libm::round(sent.saturating_sub(since) as f64 * skew) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn too_little_is_no_line() {
        let few: Vec<(i64, i64)> = (0..19).map(|k| (k * 100_000_000, 0)).collect();
        assert_eq!(skew(&few), None);
        let close: Vec<(i64, i64)> = (0..100).map(|k| (k * 1_000_000, k)).collect();
        assert_eq!(skew(&close), None);
    }

    #[test]
    fn a_filling_queue_is_no_skew() {
        let filling: Vec<(i64, i64)> = (0..40).map(|k| (k * 10_000_000, k * 1_000_000)).collect();
        assert_eq!(skew(&filling), None);
    }

    proptest! {
        #[test]
        fn the_slope_is_found_under_noise(ppm in -200_i64..200, noise in prop::collection::vec(0_i64..2_000_000, 60)) {
            // Every fourth packet meets an empty queue.
            let samples: Vec<(i64, i64)> = noise.iter().enumerate().map(|(k, noise)| {
                let t = k as i64 * 10_000_000;
                (t, t / 1_000_000 * ppm + if k % 4 == 0 { 0 } else { *noise })
            }).collect();
            let found = skew(&samples).unwrap();
            prop_assert!((found - ppm as f64 * 1e-6).abs() < 1e-7, "{found}");
        }

        #[test]
        fn never_panics(samples in prop::collection::vec(any::<(i64, i64)>(), 0..60)) {
            if let Some(skew) = skew(&samples) {
                prop_assert!(skew.is_finite());
                let _ = corrected(samples[0].0, samples[0].1, skew, i64::MIN);
            }
        }
    }
}
