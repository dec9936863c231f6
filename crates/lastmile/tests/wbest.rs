//! WBest on a noiseless FIFO: exactness, coverage, sender hiccups, receive jitter.

mod fifo;

use fifo::{Cross, Path};
use lastmile::estimate::wbest::{Wbest, WbestConfig};
use lastmile::estimate::{Estimate, Outcome, Quantity};
use lastmile::observe::stats;

const SHARE: f64 = 0.4;

fn run(path: &mut Path, config: &WbestConfig) -> Result<(f64, Option<Estimate>), String> {
    match path.measure(&mut Wbest::new(config.clone(), None)) {
        Outcome::Found(found) => {
            let rate = |q| {
                let estimate = found.iter().find(|e: &&Estimate| e.quantity == q).cloned();
                estimate.filter(|e| e.value.rate().is_some())
            };
            let capacity =
                rate(Quantity::Capacity).ok_or("more than")?.value.rate().unwrap().bits_per_second() as f64;
            Ok((capacity, rate(Quantity::AvailableBandwidth)))
        }
        Outcome::Refused(refusal) => Err(refusal.to_string()),
    }
}

fn available(estimate: &Estimate) -> f64 {
    estimate.value.rate().unwrap().bits_per_second() as f64
}

/// Median and 90th percentile.
fn spread(errors: &[f64]) -> (f64, f64) {
    (stats::quantile(errors, 0.5).unwrap(), stats::quantile(errors, 0.9).unwrap())
}

#[test]
fn explore() {
    for rate in [10e6, 30e6] {
        for jitter in [0.0, 20_000.0] {
            for cross in [Cross::Idle, Cross::Cbr, Cross::Poisson] {
                for trains in [1, 4] {
                    let (mut window, mut long, mut covered, mut stated, mut refused, mut cap, mut covered_c) =
                        (vec![], vec![], 0, 0, 0, vec![], 0);
                    let config = WbestConfig { trains, ..Default::default() };
                    for seed in 0..1000 {
                        let mut path = Path::new(rate, cross, rate * SHARE, seed);
                        path.jitter = jitter;
                        let Ok((c, Some(a))) = run(&mut path, &WbestConfig { seed, ..config.clone() }) else {
                            refused += 1;
                            continue;
                        };
                        let truth = if cross == Cross::Idle { rate } else { rate * (1.0 - SHARE) };
                        let own = stats::mean(&path.truths[1..]).unwrap();
                        window.push((available(&a) / own - 1.0).abs());
                        long.push((available(&a) / truth - 1.0).abs());
                        cap.push((c / rate - 1.0).abs());
                        let _ = &mut covered_c;
                        if let Some(i) = a.interval {
                            stated += 1;
                            covered += usize::from(
                                i.low.bits_per_second() as f64 <= truth
                                    && truth <= i.high.bits_per_second() as f64,
                            );
                        }
                    }
                    eprintln!(
                        "{rate} j{jitter} {cross:?} trains {trains}: window {:?} long {:?} cap {:?} covered {covered}/{stated} refused {refused}",
                        spread(&window),
                        spread(&long),
                        spread(&cap)
                    );
                }
            }
        }
    }
}
