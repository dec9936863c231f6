//! lastmile's rate control as a guest of webrtc-rs: `rtc-interceptor` hosts our controllers as its `BandwidthEstimator`, and one of
//! our classifiers stands in front of its own GCC.
//!
//! Both ends are that crate's interceptors, unchanged: congestion control, transport-wide sequence numbers and pacer at the sender,
//! TWCC feedback at the receiver. Between them lies a made-up path (`path.rs`) in virtual time. Prints tables; exits with 1 where
//! what they are to show does not hold.

mod adapter;
mod path;

use adapter::{Filtered, Hosted, Target};
use anyhow::{Result, ensure};
use path::{Link, carried};
use rtc_interceptor::{BandwidthEstimator, Gcc};

/// The link's rate, and from which second on.
const STEPS: [(u64, f64); 3] = [(0, 3e6), (40, 1e6), (80, 3e6)];
/// Where rates are read: each step's second half.
const WITHIN: [(u64, u64); 3] = [(20, 40), (60, 80), (100, 120)];

fn follows() -> Result<()> {
    println!(
        "A bottleneck of 3, 1 and 3 Mbit/s for 40 s each, 40 ms of round trip, 0.25 s of queue: Mbit/s that arrived in the last"
    );
    println!("20 s of each.\n");
    println!("{:<14} {:>8} {:>8} {:>8}", "controller", "3 Mbit/s", "1 Mbit/s", "3 Mbit/s");
    for name in ["tfrc", "tfrc+spike", "sqrt", "iiad", "rap", "gcc (theirs)"] {
        let link = Link { rates: &STEPS, loss: 0.0, seed: 1 };
        let carried = match name {
            "gcc (theirs)" => run(&link, 120, |target| Box::new(Target::of(Gcc::new(3e5, 1e5, 1e7), target))),
            name => {
                let controller = adapter::controller(name)?;
                run(&link, 120, |target| Box::new(Target::of(Hosted::new(controller), target)))
            }
        };
        let means = WITHIN.map(|(from, to)| mean(&carried, from, to));
        println!("{name:<14} {:>8.2} {:>8.2} {:>8.2}", means[0], means[1], means[2]);
        for (mean, (_, rate)) in means.iter().zip(STEPS) {
            // GCC is theirs to judge.
            let share = mean / (rate / 1e6);
            ensure!(name.starts_with("gcc") || (0.7..=1.01).contains(&share), "{name}: {mean:.2} of {rate}");
        }
    }
    Ok(())
}

/// Runs of a comparison.
const SEEDS: u64 = 10;
const SECONDS: u64 = 60;
/// Shares of packets that are lost at random. Between 2 and 10 % their GCC stands still, above that it falls.
const LOSSES: [f64; 4] = [0.02, 0.05, 0.1, 0.2];

fn filters() -> Result<()> {
    println!(
        "\nTheir GCC from 0.3 Mbit/s up on a link of 5 Mbit/s with random loss, {SECONDS} s, {SEEDS} seeds: Mbit/s that arrived. The"
    );
    println!(
        "difference is paired by seed, with its 95 % interval; left out are losses that were judged wireless.\n"
    );
    println!("{:<6} {:<18} {:>6} {:>24} {:>9}", "loss", "in front", "mean", "difference", "left out");
    for loss in LOSSES {
        let all = |front: Option<&str>| -> Result<Vec<(f64, f64)>> {
            (0..SEEDS).map(|seed| lossy(loss, seed, front)).collect()
        };
        let alone = all(None)?;
        println!("{:<6} {:<18} {:>6.2} {:>24} {:>9}", percent(loss), "nothing", rate(&alone), "-", "-");
        for name in ["none", "spike", "zbs", "spike(fixed=true)"] {
            let with = all(Some(name))?;
            let differences: Vec<f64> =
                with.iter().zip(&alone).map(|(with, alone)| with.0 - alone.0).collect();
            let (difference, half) = (average(&differences), half_width(&differences));
            let left_out = average(&with.iter().map(|one| one.1).collect::<Vec<_>>());
            let interval =
                format!("{difference:+.2} ({:+.2} .. {:+.2})", difference - half, difference + half);
            println!(
                "{:<6} {name:<18} {:>6.2} {interval:>24} {:>9}",
                percent(loss),
                rate(&with),
                percent(left_out)
            );
            match name {
                // What leaves nothing out changes nothing.
                "none" => ensure!(differences.iter().all(|d| *d == 0.0), "`none` changed the rate"),
                "spike(fixed=true)" if loss > 0.02 => {
                    ensure!(
                        difference > half,
                        "{name} at a loss of {loss} raises the rate by {difference:.2} +- {half:.2} only"
                    );
                }
                _ => ensure!(
                    difference > -half - 0.1,
                    "{name} at a loss of {loss} costs {difference:.2} +- {half:.2}"
                ),
            }
        }
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn rate(runs: &[(f64, f64)]) -> f64 {
    average(&runs.iter().map(|run| run.0).collect::<Vec<_>>())
}

/// The rate that arrived in the run of a seed, and the share of losses that were left out.
fn lossy(loss: f64, seed: u64, front: Option<&str>) -> Result<(f64, f64)> {
    let link = Link { rates: &[(0, 5e6)], loss, seed };
    let gcc = Gcc::new(3e5, 1e5, 1e7);
    let counts = adapter::Counts::default();
    let carried = match front {
        None => run(&link, SECONDS, |target| Box::new(Target::of(gcc, target))),
        Some(name) => {
            let filtered = Filtered::new(name, gcc, counts.clone())?;
            run(&link, SECONDS, |target| Box::new(Target::of(filtered, target)))
        }
    };
    Ok((mean(&carried, 0, SECONDS), counts.left_out()))
}

/// Media in Mbit/s that arrived in each second.
fn run(
    link: &Link,
    seconds: u64,
    estimator: impl FnOnce(adapter::Shared) -> Box<dyn BandwidthEstimator>,
) -> Vec<f64> {
    let shared = adapter::Shared::default();
    carried(link, seconds, adapter::Boxed(estimator(shared.clone())), &shared)
}

fn mean(carried: &[f64], from: u64, to: u64) -> f64 {
    average(&carried[from as usize..to as usize])
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Half of the mean's interval of 95 % (Student's t with 9 degrees of freedom).
fn half_width(values: &[f64]) -> f64 {
    let mean = average(values);
    let n = values.len() as f64;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    2.262 * (variance / n).sqrt()
}

fn main() -> Result<()> {
    follows()?;
    filters()
}
