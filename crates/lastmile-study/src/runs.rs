//! Cases that are run with the same seeds on all cores.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lastmile_report::Mean;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::audience::Audience;
use crate::error::Result;
use crate::fleet::{self, Fleet};

/// Numbers of a run, by name.
pub type Numbers = BTreeMap<Cow<'static, str>, f64>;

/// The mean of that number over those runs that have it.
pub fn mean(runs: &[Numbers], number: &str) -> Option<Mean> {
    Mean::of(&runs.iter().filter_map(|run| run.get(number).copied()).collect::<Vec<_>>())
}

/// Difference of `of` and `from`, paired run by run: both in the order of their seeds.
pub fn difference(of: &[Numbers], from: &[Numbers], number: &str) -> Option<Mean> {
    let differences = of.iter().zip(from).filter_map(|(a, b)| Some(a.get(number)? - b.get(number)?));
    Mean::of(&differences.collect::<Vec<_>>())
}

/// Results of `run` for every case with seeds 1 to N, N of its own: case by case, in the order of the seeds; nothing of a shard. Runs go
/// on all cores of the pool of threads that it is called in. `inputs` is all that decides their results.
///
/// # Errors
/// The first of those of `run`, or the files of shards are not the study's.
pub fn by_seed<T: Serialize + DeserializeOwned + Send>(
    title: &str,
    seeds: &[u64],
    inputs: &impl std::fmt::Debug,
    fleet: &Fleet,
    audience: &Audience,
    run: impl Fn(usize, u64) -> Result<T> + Sync,
) -> Result<Option<Vec<Vec<T>>>> {
    let most = seeds.iter().copied().max().unwrap_or(0);
    let cases = |seed| (0..seeds.len()).filter(move |&case| seed <= seeds[case]);
    let runs: Vec<(usize, u64)> =
        (1..=most).flat_map(|seed| cases(seed).map(move |case| (case, seed))).collect();
    let one = |number: usize| {
        let (case, seed) = runs[number];
        run(case, seed)
    };
    let inputs = fleet::inputs(&(seeds, inputs));
    let Some(found) = fleet.each(title, inputs, runs.len(), audience, one)? else { return Ok(None) };
    let mut all: Vec<Vec<T>> = seeds.iter().map(|_| Vec::new()).collect();
    runs.iter().zip(found).for_each(|(&(case, _), found)| all[case].push(found));
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn runs_stand_by_case_in_the_order_of_their_seeds() {
        let whole = |run: fn(usize, u64) -> Result<(usize, u64)>| {
            by_seed("runs", &[4, 1, 3], &(), &Fleet::Whole, &Audience::default(), run)
        };
        let expected = |case, seeds| (1..=seeds).map(|seed| (case, seed)).collect::<Vec<_>>();
        let runs = whole(|case, seed| Ok((case, seed))).unwrap().unwrap();
        assert_eq!(runs, [expected(0, 4), expected(1, 1), expected(2, 3)]);
        assert!(whole(|_, _| Err(Error::input("late"))).is_err());
    }
}
