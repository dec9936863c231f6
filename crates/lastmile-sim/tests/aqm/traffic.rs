//! Traffic: on/off sources against ns-2 2.35's, and all sources against the laws that they are called after.

use lastmile::node::{Flow, Node, Output};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::traffic::{Arrivals, Lengths, OnOff, Source, SourceConfig};
use lastmile_sim::rng::Stream;

const SECONDS: u64 = 4_000;

/// Departures in nanoseconds of packets of 1000 bytes.
fn departures(arrivals: Arrivals, bits_per_second: u64, seconds: u64, seed: u64) -> Vec<u64> {
    let any = "10.77.0.1:9".parse().unwrap();
    let config = SourceConfig {
        arrivals,
        rate: Rate::ip(bits_per_second),
        ip_size: Bytes(1000),
        start: Time::ZERO,
        stop: Time::from_nanos(seconds * 1_000_000_000),
        flow: Flow(0),
        from: any,
        to: any,
    };
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
fn shape(times: &[u64], gap: f64, nominal: f64) -> [f64; 9] {
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

/// Law, mean burst and silence in ms, peak rate in bit/s; ns-2's figures, each the mean over the seeds 1 to 5 of 4000 s of
/// `Application/Traffic/Exponential` and `Pareto` with packets of 1000 B; how far ours may be.
type Row = (Lengths, [i64; 2], u64, [f64; 9], f64);

#[test]
fn on_off_sources_are_those_of_ns_2() {
    let pareto = |shape| Lengths::Pareto { shape };
    let rows: [Row; 5] = [
        (
            Lengths::Exponential,
            [100, 300],
            4_000_000,
            [125.55, 2.508, 50.06, 0.3660, 0.1347, 0.0181, 3.80, 3.84, 0.2986],
            0.03,
        ),
        (
            Lengths::Exponential,
            [500, 500],
            640_000,
            [40.19, 0.9945, 40.40, 0.3659, 0.1357, 0.0193, 3.75, 3.82, 0.5003],
            0.03,
        ),
        (
            pareto(1.9),
            [100, 300],
            4_000_000,
            [125.94, 2.516, 50.06, 0.2377, 0.0647, 0.0171, 1.8915, 1.9082, 0.2973],
            0.03,
        ),
        (
            pareto(1.5),
            [200, 200],
            2_000_000,
            [126.69, 2.554, 49.64, 0.1892, 0.0682, 0.0238, 1.4871, 1.5054, 0.1932],
            0.04,
        ),
        // Means over 4000 s are far from settled with this shape: ours of single seeds are from 94 to 116 packets a
        // second, ns-2's from 92 to 100, both should be 100.
        (
            pareto(1.2),
            [100, 100],
            1_600_000,
            [97.22, 5.724, 16.98, 0.1132, 0.0498, 0.0218, 1.1996, 1.1891, 0.0898],
            0.1,
        ),
    ];
    for (lengths, [on, off], peak, ns2, tolerance) in rows {
        let law = OnOff { lengths, on: Span::from_millis(on), off: Span::from_millis(off) };
        let (gap, mean) = (8e12 / peak as f64, (peak as i64 * on / (on + off)) as u64);
        let runs: Vec<_> = (1..=5)
            .map(|seed| {
                let times = departures(Arrivals::OnOff(law), mean, SECONDS, seed);
                shape(&times, gap, on as f64 * 1e6 / gap)
            })
            .collect();
        let ours: [f64; 9] = core::array::from_fn(|i| runs.iter().map(|run| run[i]).sum::<f64>() / 5.0);
        println!("{lengths:?} {on} ms, {off} ms: {ours:.4?}\n    ns-2 {ns2:?}");
        for i in [0, 1, 2, 8] {
            assert!((ours[i] / ns2[i] - 1.0).abs() < tolerance, "{lengths:?}, {i}: {ours:?}");
        }
        for i in [3, 4, 5] {
            assert!((ours[i] - ns2[i]).abs() < 0.012, "{lengths:?}, {i}: {ours:?}");
        }
        if let Lengths::Pareto { shape } = lengths {
            for i in [6, 7] {
                assert!((ours[i] / ns2[i] - 1.0).abs() < 0.04, "{lengths:?}, {i}: {ours:?}");
                assert!((ours[i] / shape - 1.0).abs() < 0.05, "{lengths:?}, {i}: {ours:?}");
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
