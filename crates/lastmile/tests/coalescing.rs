//! Receivers that coalesce interrupts: whatever they do to the stamps, a number is right and a bound holds.
#![allow(clippy::print_stderr, reason = "the numbers seen are quoted in reports")]

mod fifo;

use fifo::{Cross, Interrupts, Path};
use lastmile::estimate::{Conditions, Outcome, Quantity, Value, build};
use lastmile::observe::stats;
use lastmile::report::Direction;

const RATES: [f64; 6] = [50e6, 100e6, 300e6, 600e6, 1e9, 1e10];

#[derive(Default)]
struct Seen {
    /// Numbers of the capacity, as shares of the truth.
    numbers: Vec<f64>,
    /// Numbers of the available bandwidth, as differences from the truth of the trains' windows in shares of the capacity.
    left: Vec<f64>,
    /// Bounds, as shares of the truth.
    bounds: Vec<f64>,
    refused: Vec<String>,
}

fn measure(method: &str, direction: Direction, shape: impl Fn(u64) -> Path) -> Seen {
    let mut seen = Seen::default();
    for seed in 0..20 {
        let mut path = shape(seed);
        path.direction = direction;
        let conditions = Conditions { seed, ..Conditions::default() };
        let found = match path.measure(&mut *build(&method.parse().unwrap(), &conditions).unwrap()) {
            Outcome::Found(found) => found,
            Outcome::Refused(refusal) => {
                seen.refused.push(refusal.to_string());
                continue;
            }
        };
        for estimate in found {
            match (estimate.quantity, estimate.value) {
                (Quantity::Capacity, Value::Is(rate)) => {
                    // A number with a doubt may be off.
                    if estimate.warnings.iter().any(|warning| warning.code.doubts()) {
                        continue;
                    }
                    seen.numbers.push(rate.bits_per_second() as f64 / path.capacity);
                }
                (Quantity::SustainedRate, Value::Unknown) => {}
                (Quantity::SustainedRate, _) => panic!("no shaper is there: {estimate:?}"),
                (_, Value::Is(rate)) => {
                    let truth = path.truths[estimate.streams[0] as usize];
                    seen.left.push((rate.bits_per_second() as f64 - truth) / path.capacity);
                }
                (_, Value::MoreThan(rate)) => {
                    assert!(!estimate.warnings.is_empty(), "a bound without its reason");
                    seen.bounds.push(rate.bits_per_second() as f64 / path.capacity);
                }
                (Quantity::AvailableBandwidth, Value::Unknown) => {
                    assert!(!estimate.warnings.is_empty(), "unknown without its reason");
                }
                (quantity, Value::Answer(_) | Value::Unknown) => {
                    assert!(estimate.interval.is_some(), "{quantity} is unknown")
                }
            }
        }
    }
    seen
}

fn spread(shares: &[f64]) -> (f64, f64) {
    (stats::quantile(shares, 0.0).unwrap_or(1.0), stats::quantile(shares, 1.0).unwrap_or(1.0))
}

#[test]
fn no_number_is_off_by_a_tenth_and_no_bound_is_above_the_truth() {
    let mut modes = vec![Interrupts::Each];
    for us in [20.0, 50.0, 80.0, 100.0, 125.0, 200.0, 250.0] {
        let ns = us * 1e3;
        modes.extend([Interrupts::Ticks(ns), Interrupts::HeldOff(ns), Interrupts::Throttled(ns)]);
    }
    for method in ["wbest(trains=1)", "capprobe"] {
        for rate in RATES {
            for interrupts in &modes {
                for cross in [Cross::Idle, Cross::Cbr, Cross::Poisson] {
                    let path = |seed: u64| {
                        let mut path = Path::new(rate, cross, rate * 0.4, seed);
                        (path.interrupts, path.jitter, path.send_cost) = (*interrupts, 2_000.0, 3_000.0);
                        // Ticks that fall anywhere against the pairs.
                        path.rx_skew = 3e-6 * seed as f64;
                        path
                    };
                    let seen = measure(method, Direction::Forward, path);
                    let (least, most) = spread(&seen.numbers);
                    let (low, high) = spread(&seen.bounds);
                    let (under, over) = spread(&seen.left);
                    eprintln!(
                        "{method} {} Mbit/s {interrupts:?} {cross:?}: {} numbers {least:.3} to {most:.3}; left {} {under:.3} to {over:.3}; {} bounds {low:.3} to {high:.3}; {} refused {:?}",
                        rate / 1e6,
                        seen.numbers.len(),
                        seen.left.len(),
                        seen.bounds.len(),
                        seen.refused.len(),
                        seen.refused.first()
                    );
                    // A burst tells what pairs cannot.
                    assert!(seen.refused.is_empty(), "refused");
                    // Stamps jitter, and the receiver's clock is up to 60 ppm fast.
                    assert!(least >= 0.9 && most <= 1.1, "a wrong number");
                    assert!(seen.bounds.is_empty() || high <= 1.0001, "a bound above the truth");
                }
            }
        }
    }
}

/// There and back one clock takes both stamps.
#[test]
fn round_trips_are_bounded_too() {
    for rate in RATES {
        for ns in [50_000.0, 125_000.0, 250_000.0] {
            for interrupts in [Interrupts::Ticks(ns), Interrupts::HeldOff(ns), Interrupts::Throttled(ns)] {
                let path = |seed: u64| {
                    let mut path = Path::new(rate, Cross::Poisson, rate * 0.4, seed);
                    (path.interrupts, path.jitter, path.send_cost) = (interrupts, 2_000.0, 3_000.0);
                    (path.rx_offset, path.rx_skew) = (20e6, 0.0);
                    path
                };
                let seen = measure("capprobe", Direction::RoundTrip, path);
                let ((least, most), (_, high)) = (spread(&seen.numbers), spread(&seen.bounds));
                assert!(least >= 0.9 && most <= 1.1, "{rate} {interrupts:?}: {least} to {most}");
                assert!(seen.bounds.is_empty() || high <= 1.0001, "{rate} {interrupts:?}: {high}");
                assert!(seen.refused.is_empty(), "{:?}", seen.refused);
            }
        }
    }
}

/// A queue of 20 packets takes half of the burst, and a twentieth is lost on the air: only what arrived counts.
#[test]
fn a_burst_that_overflows_a_queue_still_proves_its_bound() {
    for rate in RATES {
        for interrupts in [Interrupts::Each, Interrupts::HeldOff(125_000.0), Interrupts::Throttled(125_000.0)]
        {
            let path = |seed: u64| {
                let mut path = Path::new(rate, Cross::Idle, 0.0, seed);
                (path.interrupts, path.jitter, path.send_cost) = (interrupts, 2_000.0, 1_000.0);
                (path.queue, path.loss) = (30_000.0, 0.05);
                path
            };
            for method in ["wbest(trains=1)", "capprobe"] {
                let seen = measure(method, Direction::Forward, path);
                let ((least, most), (_, high)) = (spread(&seen.numbers), spread(&seen.bounds));
                assert!(least >= 0.9 && most <= 1.1, "{method} {rate} {interrupts:?}: {least} to {most}");
                assert!(seen.bounds.is_empty() || high <= 1.0001, "{method} {rate} {interrupts:?}: {high}");
                assert!(seen.numbers.len() + seen.bounds.len() >= 15, "{:?}", seen.refused);
            }
        }
    }
}
