//! A rate divided among streams by their priorities, each within the rates that it can use: weighted max-min.

/// Streams of a group at most.
pub(super) const MOST: usize = 32;

/// A stream's claim: its weight, above zero, and the least and the most that it can use, in bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Claim {
    pub(super) weight: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// The shares of the first [`MOST`] claims. They are as their weights, but none is below its least or above its most. The rest beyond all
/// of these is divided by weight too. Where there is less than all leasts together, these are met in the order of the weights, those of one
/// weight in proportion.
pub(super) fn divide(total: f64, claims: &[Claim]) -> [f64; MOST] {
    let mut shares = [0.0; MOST];
    let claims = &claims[..claims.len().min(MOST)];
    let least: f64 = claims.iter().map(|claim| claim.min).sum();
    if total <= least {
        by_order(total, claims, &mut shares);
        return shares;
    }
    let mut open = [true; MOST];
    let mut left = total;
    loop {
        let free = || claims.iter().enumerate().filter(|(at, _)| open[*at]);
        let weights: f64 = free().map(|(_, claim)| claim.weight).sum();
        if weights <= 0.0 {
            break;
        }
        let level = left / weights;
        let bounded = |claim: &Claim| (level * claim.weight).max(claim.min).min(claim.max.max(claim.min));
        let more: f64 = free().map(|(_, claim)| bounded(claim) - level * claim.weight).sum();
        // Bounds that bind in the direction in which the sum is off stay bound; the others may not.
        let binds = |claim: &Claim| {
            let apart = bounded(claim) - level * claim.weight;
            apart > 0.0 && more >= 0.0 || apart < 0.0 && more <= 0.0
        };
        let mut bound = [false; MOST];
        free().filter(|(_, claim)| binds(claim)).for_each(|(at, _)| bound[at] = true);
        let settled = !bound.contains(&true);
        for (at, claim) in claims.iter().enumerate() {
            if open[at] && (settled || bound[at]) {
                (shares[at], open[at]) = (bounded(claim), false);
                left -= shares[at];
            }
        }
    }
    if left > 0.0 {
        let weights: f64 = claims.iter().map(|claim| claim.weight).sum();
        shares.iter_mut().zip(claims).for_each(|(share, claim)| *share += left * claim.weight / weights);
    }
    shares
}

/// The leasts, from the highest weight on, as far as they go.
fn by_order(total: f64, claims: &[Claim], shares: &mut [f64; MOST]) {
    let (mut left, mut above) = (total.max(0.0), f64::INFINITY);
    loop {
        let weight =
            claims.iter().map(|claim| claim.weight).filter(|weight| *weight < above).fold(0.0, f64::max);
        if weight <= 0.0 {
            return;
        }
        let wanted: f64 = claims.iter().filter(|claim| claim.weight == weight).map(|claim| claim.min).sum();
        let part = if wanted > 0.0 { (left / wanted).min(1.0) } else { 0.0 };
        for (share, claim) in shares.iter_mut().zip(claims).filter(|(_, claim)| claim.weight == weight) {
            *share = part * claim.min;
        }
        (left, above) = ((left - wanted).max(0.0), weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shares<const N: usize>(total: f64, claims: [(f64, f64, f64); N]) -> [f64; N] {
        let claims = claims.map(|(weight, min, max)| Claim { weight, min, max });
        let found = divide(total, &claims);
        core::array::from_fn(|at| (found[at] * 1e6).round() / 1e6)
    }

    #[test]
    fn shares_are_as_weights_within_what_streams_can_use() {
        const ANY: f64 = f64::INFINITY;
        assert_eq!(shares(4.0, [(2.0, 0.0, ANY), (1.0, 0.0, ANY), (1.0, 0.0, ANY)]), [2.0, 1.0, 1.0]);
        // The first can use 1.4: the others have the rest, by halves.
        assert_eq!(shares(4.0, [(2.0, 0.0, 1.4), (1.0, 0.0, ANY), (1.0, 0.0, ANY)]), [1.4, 1.3, 1.3]);
        // One needs 1.6: the rest is two to one.
        assert_eq!(shares(4.0, [(2.0, 0.0, ANY), (1.0, 0.0, ANY), (1.0, 1.6, ANY)]), [1.6, 0.8, 1.6]);
        // Audio of 0.05 at most beside layers: it has it, whatever the weights.
        assert_eq!(shares(1.0, [(0.1, 0.05, 0.05), (1.0, 0.15, 3.0)]), [0.05, 0.95]);
        // More than all can use is divided as well.
        assert_eq!(shares(7.0, [(2.0, 0.0, 2.0), (1.0, 0.0, 2.0)]), [4.0, 3.0]);
        // A bound that would bind at first, and does not in the end: 6 in all, of which the third takes 4.
        assert_eq!(shares(6.0, [(1.0, 0.0, 1.5), (1.0, 0.0, ANY), (1.0, 4.0, ANY)]), [1.0, 1.0, 4.0]);
    }

    #[test]
    fn leasts_are_met_from_the_highest_priority_on() {
        let audio_and_two = |total| shares(total, [(1.0, 2.0, 9.0), (4.0, 1.0, 1.0), (1.0, 4.0, 9.0)]);
        assert_eq!(audio_and_two(0.5), [0.0, 0.5, 0.0]);
        assert_eq!(audio_and_two(4.0), [1.0, 1.0, 2.0]);
        assert_eq!(audio_and_two(7.0), [2.0, 1.0, 4.0]);
        assert_eq!(divide(1.0, &[]), [0.0; MOST]);
    }

    proptest! {
        #[test]
        fn all_is_divided_and_bounds_are_kept(
            claims in prop::collection::vec((0.01..100.0_f64, 0.0..10.0_f64, 0.0..10.0_f64), 1..=MOST),
            total in 0.0..500.0_f64,
        ) {
            let claims: Vec<Claim> =
                claims.iter().map(|&(weight, min, more)| Claim { weight, min, max: min + more }).collect();
            let found = divide(total, &claims);
            let [least, most] = [|claim: &Claim| claim.min, |claim: &Claim| claim.max]
                .map(|of| claims.iter().map(of).sum::<f64>());
            prop_assert!((found.iter().sum::<f64>() - total).abs() < 1e-6);
            for (share, claim) in found.iter().zip(&claims) {
                prop_assert!(*share >= 0.0);
                prop_assert!(*share >= claim.min - 1e-9 || total < least);
                prop_assert!(*share <= claim.max + 1e-9 || total > most);
            }
            // Between two that are at no bound, the shares are as the weights.
            let free = |at: &usize| found[*at] > claims[*at].min + 1e-9 && found[*at] < claims[*at].max - 1e-9;
            let free: Vec<f64> = (0..claims.len()).filter(free).map(|at| found[at] / claims[at].weight).collect();
            if total > least && total < most {
                prop_assert!(free.windows(2).all(|two| (two[0] - two[1]).abs() < 1e-6), "{:?}", free);
            }
        }
    }
}
