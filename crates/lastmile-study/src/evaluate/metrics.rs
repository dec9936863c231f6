//! Metrics of rates over time (RFC 8868, section 3; RFC 5166, section 2.3). A rate is a list: the mean over each step of 200 ms. Every
//! number says what it is of; `docs/evaluate-numbers.md` has them in words.

use lastmile::observe::stats::{deviation, mean};

/// Length of a step in seconds (RFC 8868, section 3: rates are measured at intervals of 200 ms).
pub(super) const STEP_S: f64 = 0.2;
/// Steps of a second.
pub(super) const SECOND: usize = (1.0 / STEP_S) as usize;
/// A rate is stable within this of its final value, as a share of that.
const BAND: f64 = 0.25;
/// Share of the remaining means that have to be within it.
const MOSTLY: f64 = 0.9;

/// A rate that changes by so much, as a share of that before, is a step.
const STEP_UP: f64 = 1.25;
const STEP_DOWN: f64 = 0.8;
/// Share of the possible rate that is to be received after a step up, on the mean of a second.
const REACHED: f64 = 0.9;
/// The longest queue, in ms, of one that has drained after a step down, for a second.
const DRAINED_MS: f64 = 50.0;

/// The steps that lie within a time, in seconds.
pub(super) fn steps(from_s: f64, to_s: f64) -> std::ops::Range<usize> {
    // A multiple of a step in words may not be one in binary.
    let from = (from_s.max(0.0) / STEP_S - 1e-6).ceil() as usize;
    let to = (to_s.max(0.0) / STEP_S + 1e-6).floor() as usize;
    from..to.max(from)
}

/// The part of a list that lies there.
pub(super) fn part(values: &[f64], steps: std::ops::Range<usize>) -> &[f64] {
    values.get(steps.start.min(values.len())..steps.end.min(values.len())).unwrap_or_default()
}

/// Time from the first step on until a rate is stable, in seconds: until nine of ten of its remaining means over three seconds are within
/// a quarter of its mean in the last third, and it is so itself. Nothing where that is not before that third.
pub(super) fn convergence(rates: &[f64]) -> Option<f64> {
    let first_of_last_third = rates.len() - rates.len() / 3;
    let stable = mean(&rates[first_of_last_third..]).filter(|rate| *rate > 0.0)?;
    let near = |rate: f64| (rate / stable - 1.0).abs() <= BAND;
    let within: Vec<bool> = rates.windows(3 * SECOND).map(|some| mean(some).is_some_and(near)).collect();
    let mut inside = within.iter().filter(|within| **within).count();
    for (at, is) in within.iter().enumerate().take(first_of_last_third) {
        if *is && inside as f64 >= MOSTLY * (within.len() - at) as f64 {
            let itself = rates[at..].iter().position(|rate| near(*rate)).unwrap_or(0);
            return Some((at + itself) as f64 * STEP_S);
        }
        inside -= usize::from(*is);
    }
    None
}

/// Steps up and down of a rate that leave `shortest` steps or more until the next of either: where, until where, and true for up.
pub(super) fn capacity_steps(rates: &[f64], shortest: usize) -> Vec<(usize, usize, bool)> {
    let changes = rates.windows(2).enumerate().filter_map(|(at, two)| {
        let up = two[1] >= STEP_UP * two[0];
        (up != (two[1] <= STEP_DOWN * two[0])).then_some((at + 1, up))
    });
    let changes: Vec<(usize, bool)> = changes.collect();
    let ends = changes.iter().skip(1).map(|change| change.0).chain([rates.len()]);
    let all = changes.iter().zip(ends).map(|(&(at, up), end)| (at, end, up));
    all.filter(|(at, end, _)| end - at >= shortest).collect()
}

/// Seconds until the received rate is nine tenths of the possible one: the first step in which it is, and with it the mean of the second that
/// it begins.
pub(super) fn reaches(received: &[f64], possible: &[f64]) -> Option<f64> {
    let is_reached = |at: usize, to: usize| {
        let all = [received, possible].map(|rates| rates[at..to].iter().sum::<f64>());
        all[0] >= REACHED * all[1]
    };
    let last = received.len().min(possible.len()).checked_sub(SECOND)?;
    let at = (0..=last).find(|&at| is_reached(at, at + 1) && is_reached(at, at + SECOND))?;
    Some(at as f64 * STEP_S)
}

/// Seconds until a queue, in ms, is short and stays so for a second.
pub(super) fn drains(queue: &[f64]) -> Option<f64> {
    let at = queue.windows(SECOND).position(|second| second.iter().all(|ms| *ms < DRAINED_MS))?;
    Some(at as f64 * STEP_S)
}

/// Coefficient of variation of a rate: the standard deviation of its means over whole seconds, over their mean.
pub(super) fn variation(rates: &[f64]) -> Option<f64> {
    let seconds: Vec<f64> = rates.chunks_exact(SECOND).filter_map(mean).collect();
    let whole = mean(&seconds).filter(|rate| *rate > 0.0)?;
    Some(deviation(&seconds)? / whole)
}

/// Number of times that a rate goes from half of its mean to twice its mean, or back (RFC 8868, section 3: watermarks that are a
/// factor of four apart), as means over two steps.
pub(super) fn swings(rates: &[f64]) -> Option<usize> {
    let whole = mean(rates).filter(|rate| *rate > 0.0)?;
    let (mut swings, mut high) = (0, None);
    for two in rates.windows(2) {
        let rate = (two[0] + two[1]) / 2.0;
        let now = if rate <= whole / 2.0 {
            false
        } else if rate >= 2.0 * whole {
            true
        } else {
            continue;
        };
        swings += usize::from(high.is_some_and(|high| high != now));
        high = Some(now);
    }
    Some(swings)
}

/// Fairness of flows of one class: in windows of so many steps the slowest one's rate over the fastest one's (RFC 5166: the ratio of
/// epsilon-fairness), on the mean of those windows in which at least two are active. Each flow has its rates and its active steps.
pub(super) fn slowest_over_fastest(flows: &[(&[f64], std::ops::Range<usize>)], window: usize) -> Option<f64> {
    windows(flows, window, |rates| {
        let fastest = rates.iter().copied().fold(0.0, f64::max);
        let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        (fastest > 0.0).then(|| slowest / fastest)
    })
}

/// Jain's fairness index, in the same way (RFC 5166, section 2.3.1).
pub(super) fn jain(flows: &[(&[f64], std::ops::Range<usize>)], window: usize) -> Option<f64> {
    windows(flows, window, |rates| {
        let squares = rates.iter().map(|rate| rate * rate).sum::<f64>();
        (squares > 0.0).then(|| rates.iter().sum::<f64>().powi(2) / (rates.len() as f64 * squares))
    })
}

fn windows(
    flows: &[(&[f64], std::ops::Range<usize>)],
    window: usize,
    of: impl Fn(&[f64]) -> Option<f64>,
) -> Option<f64> {
    let end = flows.iter().map(|(rates, active)| rates.len().min(active.end)).max()?;
    let each = |window: std::ops::Range<usize>| {
        let active = flows.iter().filter(|(rates, active)| {
            active.start <= window.start && window.end <= active.end.min(rates.len())
        });
        let rates: Vec<f64> = active.filter_map(|(rates, _)| mean(part(rates, window.clone()))).collect();
        (rates.len() > 1).then(|| of(&rates)).flatten()
    };
    let all: Vec<f64> = (0..end / window).filter_map(|at| each(at * window..(at + 1) * window)).collect();
    mean(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many seconds at each rate.
    fn rate(parts: &[(usize, f64)]) -> Vec<f64> {
        parts.iter().flat_map(|&(seconds, rate)| vec![rate; seconds * SECOND]).collect()
    }

    #[test]
    fn steps_lie_within_a_time() {
        assert_eq!((steps(0.0, 1.0), steps(0.3, 0.9), steps(0.6, 1.2)), (0..5, 2..4, 3..6));
        assert_eq!((steps(5.0, 3.0), part(&[1.0, 2.0], 1..9)), (25..25, &[2.0][..]));
        assert_eq!(part(&[], 3..4), &[] as &[f64]);
    }

    #[test]
    fn a_rate_has_converged_when_it_stays_near_what_it_comes_to() {
        // 10 s at 1, then 20 s at 4: three seconds that are mostly at 4 are near it, and the first step at 4 is the one after 10 s.
        assert_eq!(convergence(&rate(&[(10, 1.0), (20, 4.0)])), Some(10.0));
        assert_eq!(convergence(&rate(&[(30, 2.0)])), Some(0.0));
        // From 3 to 5 is within a quarter of 4; 2.8 is not.
        assert_eq!(convergence(&rate(&[(5, 1.0), (5, 3.0), (5, 5.0), (25, 4.0)])), Some(5.0));
        assert_eq!(convergence(&rate(&[(5, 1.0), (5, 2.8), (30, 4.0)])), Some(10.0));
        // Up and down within three seconds is stable.
        assert_eq!(convergence(&rate(&[(1, 3.2), (1, 4.0), (1, 4.8)].repeat(10))), Some(0.0));
        // Three seconds outside among many are no matter; many of them are.
        assert_eq!(convergence(&rate(&[(60, 4.0), (3, 1.0), (60, 4.0)])), Some(0.0));
        assert_eq!(convergence(&rate(&[(9, 4.0), (6, 1.0), (30, 4.0)])), Some(15.0));
        // It goes on rising, or up and down for long, until the end.
        let rising: Vec<f64> = (0..150).map(|step| 1.1_f64.powi(step)).collect();
        assert_eq!(convergence(&rising), None);
        assert_eq!(convergence(&rate(&[(6, 1.0), (6, 3.0)].repeat(5))), None);
        assert_eq!((convergence(&[]), convergence(&[0.0; 50])), (None, None));
    }

    #[test]
    fn steps_of_a_rate_are_by_a_quarter_and_leave_time() {
        // Up at 10 s, 20 % up at 20 s, down at 30 s, and up 2 s later.
        let rates = rate(&[(10, 1.0), (10, 2.0), (10, 2.4), (2, 1.2), (8, 2.4)]);
        let found = capacity_steps(&rates, 5 * SECOND);
        assert_eq!(found, [(50, 150, true), (160, 200, true)]);
        assert_eq!(capacity_steps(&rates, SECOND)[1], (150, 160, false));
        assert_eq!(capacity_steps(&[0.0; 20], 1), []);
        // From nothing, and to nothing.
        assert_eq!(capacity_steps(&[0.0, 1.0, 1.0, 0.0], 1), [(1, 3, true), (3, 4, false)]);
    }

    /// 4 Mbit/s are possible. 1.4 s at 2, a step of 3.8 by chance, 0.4 s at 3, then 3.7: nine tenths are 3.6.
    #[test]
    fn a_rate_has_reached_the_possible_when_a_second_of_it_has() {
        let received = [&[2.0; 7][..], &[3.8], &[3.0; 2], &[3.7; 20]].concat();
        assert_eq!(reaches(&received, &[4.0; 30]), Some(2.0));
        // 3.8 and four of 3.55: the mean of that second is 3.6.
        assert_eq!(reaches(&[3.8, 3.55, 3.55, 3.55, 3.55], &[4.0; 5]), Some(0.0));
        assert_eq!((reaches(&[3.5; 30], &[4.0; 30]), reaches(&[4.0; 4], &[4.0; 4])), (None, None));
    }

    /// 40 ms, up to 300 and back below 50 at 2.4 s, but for one step at 2.8 s.
    #[test]
    fn a_queue_has_drained_when_it_is_short_for_a_second() {
        let queue = [&[40.0; 2][..], &[300.0; 10], &[45.0; 2], &[60.0], &[10.0; 10]].concat();
        assert_eq!(drains(&queue), Some(3.0));
        assert_eq!((drains(&[49.0; 5]), drains(&[50.0; 50]), drains(&[0.0; 4])), (Some(0.0), None, None));
    }

    #[test]
    fn variation_is_that_of_seconds() {
        assert_eq!(variation(&rate(&[(10, 3.0)])), Some(0.0));
        // Means of 1 and 3 around 2, four of them: the variance is 4/3.
        let expected = (4.0_f64 / 3.0).sqrt() / 2.0;
        assert!(
            (variation(&rate(&[(1, 1.0), (1, 3.0), (1, 1.0), (1, 3.0)])).unwrap() - expected).abs() < 1e-12
        );
        // Within a second it does not count.
        assert_eq!(variation(&[1.0, 2.0, 3.0, 4.0, 5.0].repeat(4)), Some(0.0));
        assert_eq!((variation(&[1.0; 5]), variation(&[0.0; 20])), (None, None));
    }

    #[test]
    fn a_swing_is_from_half_of_the_mean_to_twice_the_mean() {
        // The mean is 1: down at 0.4, up at 2.8, down again; 1.6 and 0.6 in between are neither.
        assert_eq!(swings(&rate(&[(3, 0.4), (1, 2.8), (1, 0.6), (1, 0.4)])), Some(2));
        assert_eq!(swings(&rate(&[(1, 0.6), (1, 1.4)].repeat(5))), Some(0));
        // Steps that are up and down by turns are even over two.
        assert_eq!(swings(&[0.1, 1.9].repeat(20)), Some(0));
        assert_eq!(swings(&[]), None);
    }

    #[test]
    fn fairness_is_of_windows_in_which_two_are_active() {
        let (a, b) = (rate(&[(20, 4.0)]), rate(&[(10, 0.0), (5, 1.0), (5, 3.0)]));
        let flows = [(&a[..], 0..100), (&b[..], 50..100)];
        // A quarter over five seconds, three quarters over five.
        assert_eq!(slowest_over_fastest(&flows, 25), Some(0.5));
        // Over twenty seconds there is no window in which both are active; over ten there is one, with 2 and 4.
        assert_eq!((slowest_over_fastest(&flows, 100), slowest_over_fastest(&flows, 50)), (None, Some(0.5)));
        // (1 + 4)^2 / (2 * 17) and (3 + 4)^2 / (2 * 25).
        assert!((jain(&flows, 25).unwrap() - (25.0 / 34.0 + 49.0 / 50.0) / 2.0).abs() < 1e-12);
        assert_eq!((jain(&flows[..1], 25), jain(&[], 25)), (None, None));
    }
}
