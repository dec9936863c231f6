//! Cases that are run with the same seeds on all cores.

use std::collections::BTreeMap;

use lastmile_report::Mean;
use rayon::prelude::*;

use crate::audience::Audience;
use crate::error::Result;

/// Numbers of a run, by name.
pub type Numbers = BTreeMap<&'static str, f64>;

/// The mean of that number over those runs that have it.
pub fn mean(runs: &[Numbers], number: &str) -> Option<Mean> {
    Mean::of(&runs.iter().filter_map(|run| run.get(number).copied()).collect::<Vec<_>>())
}

/// Difference of `of` and `from`, paired run by run: both in the order of their seeds.
pub fn difference(of: &[Numbers], from: &[Numbers], number: &str) -> Option<Mean> {
    let differences = of.iter().zip(from).filter_map(|(a, b)| Some(a.get(number)? - b.get(number)?));
    Mean::of(&differences.collect::<Vec<_>>())
}

/// Results of `run` for every case with seeds 1 to `seeds`: case by case, in the order of the seeds. Runs go on all cores of the
/// pool of threads that it is called in.
///
/// # Errors
/// The first of those of `run`.
pub fn by_seed<T: Send>(
    title: &str,
    cases: usize,
    seeds: u64,
    audience: &Audience,
    run: impl Fn(usize, u64) -> Result<T> + Sync,
) -> Result<Vec<Vec<T>>> {
    let runs: Vec<(usize, u64)> =
        (1..=seeds).flat_map(|seed| (0..cases).map(move |case| (case, seed))).collect();
    audience.progress.begin(title, runs.len() as u64);
    let one = |(case, seed)| {
        let found = run(case, seed)?;
        audience.progress.advance(1);
        Ok((case, found))
    };
    let found: Vec<(usize, T)> = runs.into_par_iter().with_max_len(1).map(one).collect::<Result<_>>()?;
    audience.progress.end();
    let mut all: Vec<Vec<T>> = (0..cases).map(|_| Vec::new()).collect();
    found.into_iter().for_each(|(case, found)| all[case].push(found));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn runs_stand_by_case_in_the_order_of_their_seeds() {
        let runs = by_seed("runs", 3, 4, &Audience::default(), |case, seed| Ok((case, seed))).unwrap();
        let expected = |case| (1..=4).map(|seed| (case, seed)).collect::<Vec<_>>();
        assert_eq!(runs, (0..3).map(expected).collect::<Vec<_>>());
        assert!(
            by_seed("runs", 1, 2, &Audience::default(), |_, _| Err::<(), _>(Error::input("late"))).is_err()
        );
    }
}
