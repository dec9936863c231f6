//! Traffic: on/off sources against ns-2 2.35's, and all sources against the laws that they are called after.

use lastmile::node::Output;
use lastmile::rng::Stream;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::traffic::{Arrivals, Lengths, OnOff, Source, SourceConfig};

const SECONDS: u64 = 4_000;

/// Departures in nanoseconds of packets of 1000 bytes.
fn departures(arrivals: Arrivals, bits_per_second: u64, seconds: u64, seed: u64) -> Vec<u64> {
    let stop = Time::from_nanos(seconds * 1_000_000_000);
    let (rate, ip_size) = (Rate::ip(bits_per_second), Bytes(1000));
    let config = SourceConfig { arrivals, rate, ip_size, stop, ..SourceConfig::default() };
    let mut source = Source::new(config, Stream::new(seed, "traffic"));
    let (mut now, mut times) = (Time::ZERO, vec![]);
    loop {
        match source.poll(now) {
            Output::Transmit(t) => times.push(t.at.as_nanos()),
            Output::Wait(Some(at)) => now = at,
            _ => return times,
        }
    }
}

/// Hill's estimate of a tail's index from the longest twentieth.
fn hill(sorted: &[f64]) -> f64 {
    let k = (sorted.len() / 20).max(10);
    k as f64 / sorted[..k].iter().map(|x| libm::log(x / sorted[k])).sum::<f64>()
}

/// Packets and bursts per second, packets per burst, P(burst > 1, 2, 4 nominal means), Hill's index of bursts and of
/// silences, mean silence in seconds. A burst is what follows at the peak rate.
fn bursts(times: &[u64], gap: f64, nominal: f64) -> [f64; 9] {
    let (mut bursts, mut silences, mut length) = (vec![], vec![], 1.0);
    for pair in times.windows(2) {
        let between = (pair[1] - pair[0]) as f64;
        if between < gap * 1.0005 + 2_000.0 {
            length += 1.0;
        } else {
            bursts.push(length);
            silences.push((between - gap) / 1e9);
            length = 1.0;
        }
    }
    bursts.sort_by(|a, b| f64::total_cmp(b, a));
    silences.sort_by(|a, b| f64::total_cmp(b, a));
    let (n, seconds) = (bursts.len() as f64, SECONDS as f64);
    let [one, two, four] =
        [1.0, 2.0, 4.0].map(|x| bursts.iter().filter(|&&burst| burst > x * nominal).count() as f64 / n);
    let (mean, silence) = (bursts.iter().sum::<f64>() / n, silences.iter().sum::<f64>() / n);
    let packets = times.len() as f64 / seconds;
    [packets, n / seconds, mean, one, two, four, hill(&bursts), hill(&silences), silence]
}

#[test]
fn on_off_sources_are_those_of_ns_2() {
    for line in include_str!("onoff_ns2.txt").lines().filter(|line| !line.starts_with('#')) {
        let (shape, numbers) = line.split_once(' ').unwrap();
        let lengths = shape.parse().map_or(Lengths::Exponential, |shape: f64| Lengths::Pareto { shape });
        let numbers: Vec<f64> = numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let [on, off, peak] = [0, 1, 2].map(|i| numbers[i] as i64);
        let (tolerance, ns2) = (numbers[3], &numbers[4..]);
        let law = OnOff { lengths, on: Span::from_millis(on), off: Span::from_millis(off) };
        let (gap, mean) = (8e12 / peak as f64, (peak * on / (on + off)) as u64);
        let runs: Vec<_> = (1..=5)
            .map(|seed| {
                let times = departures(Arrivals::OnOff(law), mean, SECONDS, seed);
                bursts(&times, gap, on as f64 * 1e6 / gap)
            })
            .collect();
        let ours: [f64; 9] = core::array::from_fn(|i| runs.iter().map(|run| run[i]).sum::<f64>() / 5.0);
        for i in [0, 1, 2, 8] {
            assert!((ours[i] / ns2[i] - 1.0).abs() < tolerance, "{lengths:?}, {i}: {ours:?}, ns-2 {ns2:?}");
        }
        for i in [3, 4, 5] {
            assert!((ours[i] - ns2[i]).abs() < 0.012, "{lengths:?}, {i}: {ours:?}, ns-2 {ns2:?}");
        }
        if let Lengths::Pareto { shape } = lengths {
            for i in [6, 7] {
                assert!((ours[i] / ns2[i] - 1.0).abs() < 0.04, "{lengths:?}, {i}: {ours:?}, ns-2 {ns2:?}");
                assert!((ours[i] / shape - 1.0).abs() < 0.05, "{lengths:?}, {i}: {ours:?}, ns-2 {ns2:?}");
            }
        }
    }
}

/// ns-2 sends at least one packet per burst, and with two per burst on the mean 104.7 a second where its parameters say
/// 100. Here the peak rate's clock stops between bursts, and the mean rate holds.
#[test]
fn short_bursts_keep_the_mean_rate() {
    let law = OnOff { lengths: Lengths::Exponential, on: Span::from_millis(10), off: Span::from_millis(10) };
    let packets = departures(Arrivals::OnOff(law), 800_000, SECONDS, 1).len() as f64 / SECONDS as f64;
    assert!((packets / 100.0 - 1.0).abs() < 0.01, "{packets}");
}

#[test]
fn poisson_counts_are_as_dispersed_as_poissons_at_every_scale() {
    for (bits_per_second, window) in
        [(80_000, 1_000_000_000), (800_000, 100_000_000), (8_000_000, 10_000_000_u64)]
    {
        let times = departures(Arrivals::Poisson, bits_per_second, SECONDS / 10, 3);
        for scale in [1, 10, 40] {
            let mut counts = vec![0.0_f64; (SECONDS / 10 * 1_000_000_000 / (window * scale)) as usize];
            times.iter().for_each(|at| counts[(at / (window * scale)) as usize] += 1.0);
            let n = counts.len() as f64;
            let mean = counts.iter().sum::<f64>() / n;
            let dispersion = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / (n - 1.0) / mean;
            // The deviation of the index is sqrt(2 / n) (Cox and Lewis 1966), of the mean sqrt(mean / n).
            assert!((mean / (10.0 * scale as f64) - 1.0).abs() < 3.5 / (n * mean).sqrt(), "{mean} {n}");
            assert!((dispersion - 1.0).abs() < 3.5 * (2.0 / n).sqrt(), "{dispersion} of {n}");
        }
    }
}
