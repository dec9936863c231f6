//! Loss models on a link, against their closed forms, with the confidence that so many packets allow.

use lastmile::time::Span;
use lastmile::units::Rate;
use lastmile_sim::network::link::{Link, LinkConfig};
use lastmile_sim::network::loss::{Bernoulli, ErrorModel, GilbertElliott, Loss, MarkovPackets, MarkovTime};

use crate::common::link::departures;

const PACKETS: usize = 200_000;

/// True for each lost packet of those sent every millisecond, 0.4 ms long.
fn lost(model: ErrorModel, seed: u64) -> Vec<bool> {
    let config = LinkConfig {
        rate: Some(Rate::ip(10_000_000)),
        losses: vec![Loss::of(model)],
        ..LinkConfig::default()
    };
    config.check().unwrap();
    let packets: Vec<_> = (0..PACKETS as u64).map(|n| (n * 1_000_000, 500)).collect();
    let mut lost = vec![true; PACKETS];
    let arrived = departures(Link::seeded(config, seed, "link"), &packets);
    arrived.iter().for_each(|&(_, number)| lost[number as usize] = false);
    lost
}

/// The loss rate is `rate`, and after a loss the next packet is lost with `again`, so that the mean run is
/// 1 / (1 - again). `correlation` is what the channel remembers from packet to packet.
fn holds(what: &str, model: impl Into<ErrorModel>, rate: f64, again: f64, correlation: f64) {
    let lost = lost(model.into(), 11);
    let n = PACKETS as f64;
    let losses = lost.iter().filter(|&&lost| lost).count() as f64;
    let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
    // Of a stationary sequence with the correlations r^k: variance p (1 - p) / n (1 + r) / (1 - r).
    let deviation = (rate * (1.0 - rate) / n * (1.0 + correlation) / (1.0 - correlation)).sqrt();
    let (got, got_again) = (losses / n, pairs / losses);
    let deviation_again = (again * (1.0 - again) / losses * (1.0 + correlation) / (1.0 - correlation)).sqrt();
    assert!((got - rate).abs() < 3.5 * deviation, "{what}: rate {got} ({rate} +- {deviation})");
    let off = (got_again - again).abs();
    assert!(
        off < 3.5 * deviation_again.max(1e-6),
        "{what}: again {got_again} ({again} +- {deviation_again})"
    );
}

#[test]
fn rates_and_runs_are_those_of_the_closed_forms() {
    for rate in [0.001, 0.01, 0.078, 0.3, 0.9] {
        holds(&format!("Bernoulli {rate}"), Bernoulli { rate }, rate, rate, 0.0);
    }
    for (good, bad) in [(98.0, 2.0), (19.0, 1.0), (20.0, 5.0), (50.0, 50.0), (1.5, 3.0)] {
        let (rate, correlation) = (bad / (good + bad), 1.0 - 1.0 / good - 1.0 / bad);
        let what = format!("Markov, {good} and {bad} packets");
        holds(&what, MarkovPackets { good, bad }, rate, 1.0 - 1.0 / bad, correlation.max(0.0));
    }
    for (p, r, k, h) in
        [(0.02, 0.4, 1.0, 0.0), (0.01, 0.1, 0.999, 0.3), (0.1, 0.3, 0.99, 0.5), (0.5, 0.9, 0.8, 0.1)]
    {
        let bad = p / (p + r);
        // Loss in each state, and the joint probability of two in a row.
        let (in_good, in_bad) = (1.0 - k, 1.0 - h);
        let rate = (1.0 - bad) * in_good + bad * in_bad;
        let two = (1.0 - bad) * in_good * ((1.0 - p) * in_good + p * in_bad)
            + bad * in_bad * (r * in_good + (1.0 - r) * in_bad);
        let what = format!("Gilbert-Elliott {p} {r} {k} {h}");
        holds(&what, GilbertElliott { p, r, k, h }, rate, two / rate, (1.0_f64 - p - r).max(0.0));
    }
    // In time, seen every millisecond: the state is remembered with exp(-t (1 / good + 1 / bad)).
    for (good, bad) in [(118.0, 10.0), (1000.0, 20.0), (20.0, 5.0), (9.0, 1.0), (0.9, 0.1)] {
        let us = |ms: f64| Span::from_micros((ms * 1e3) as i64);
        let model = MarkovTime::new(us(good), us(bad));
        let (rate, memory) = (bad / (good + bad), libm::exp(-1.0 / good - 1.0 / bad));
        holds(&format!("Markov, {good} and {bad} ms"), model, rate, rate + (1.0 - rate) * memory, memory);
    }
}

#[test]
fn runs_of_the_two_state_chain_are_geometric() {
    let lost = lost(MarkovPackets { good: 30.0, bad: 4.0 }.into(), 5);
    let runs: Vec<usize> = lost.split(|&lost| !lost).map(<[bool]>::len).filter(|&run| run > 0).collect();
    let n = runs.len() as f64;
    for length in 1..=8 {
        let (seen, law) =
            (runs.iter().filter(|&&run| run > length).count() as f64 / n, libm::pow(0.75, length as f64));
        assert!((seen - law).abs() < 3.5 * (law * (1.0 - law) / n).sqrt(), "{length}: {seen} {law}");
    }
}
