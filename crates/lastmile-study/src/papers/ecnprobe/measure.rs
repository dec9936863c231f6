//! Numbers of a run: a tool's estimate and cost, the gaps of its probes, and the gaps of a generator's packets.

use std::collections::BTreeMap;

use lastmile::estimate::Quantity;
use lastmile::observe::stats::{mean, median};
use lastmile::time::Time;

use super::cases::{ALL, CROSS, FRAMING, HEADERS, HUB, Kind, Tool};
use super::signals::{self, Train};
use crate::papers::{Lines, Numbers, Passed, Run};

/// A gap may be so far from a constant one, in s: as far as the lab and kernel stamps may be off.
pub(super) const TOLERANCE: f64 = 50e-6;
/// Probes of a session whose gaps are drawn.
const DRAWN: usize = 1_000;
/// Points of a curve.
const POINTS: usize = 200;

/// Numbers of a run.
pub(super) fn measure(run: &Run<'_>) -> Numbers {
    let mut kept = Numbers::new();
    let mut put = |name: &'static str, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            kept.insert(name.into(), value);
        }
    };
    if let Some((kind, mbps)) = generated(&run.scenario.name) {
        let (gaps, mean_gap) = (of_generator(run), CROSS * 8e-6 / mbps);
        put("packets", Some(gaps.len() as f64).filter(|n| *n > 0.0));
        put("distance", distance(kind, &gaps, mean_gap).map(|share| 100.0 * share));
        put("rate", mean(&gaps).map(|gap| CROSS * 8e-6 / gap));
        return kept;
    }
    let outcomes = &run.found.measure.outcomes;
    let Some(last) = outcomes.last() else { return kept };
    put("seconds", Some(last.cost.elapsed.as_secs_f64()));
    put("megabytes", Some(last.cost.bytes().0 as f64 / 1e6));
    put("kbps", Some(last.cost.bytes().bits() as f64 / 1e3 / last.cost.elapsed.as_secs_f64()));
    let is_available = |quantity: Option<Quantity>| quantity == Some(Quantity::AvailableBandwidth);
    let found = outcomes.iter().find(|found| is_available(found.estimate.as_ref().map(|e| e.quantity)));
    put("ended", Some(if found.is_some() { 100.0 } else { 0.0 }));
    if let Some((found, estimate)) = found.and_then(|found| Some((found, found.estimate.as_ref()?))) {
        let ip = estimate.packet_size.map_or(1500.0, |size| size.0 as f64);
        let tool = ALL.into_iter().find(|tool| tool.method().split('(').next() == Some(&found.method));
        let rate = estimate.value.rate().map(|rate| rate.bits_per_second() as f64 / 1e6);
        let to_wire = (ip + FRAMING) / tool.unwrap_or(Tool::Ours).counted(ip);
        put("estimate", rate);
        put("wire", rate.map(|rate| rate * to_wire));
        // The cross traffic leaves so much of the wire on the mean.
        let left = HUB - crossed(run);
        put("off", rate.map(|rate| 100.0 * (rate * to_wire / left - 1.0)));
    }
    let errors: Vec<f64> = gaps(&run.seen.passed).filter_map(|gap| gap.error()).collect();
    put("gap_error", median(&errors).map(|error| 100.0 * error));
    put("gaps", Some(errors.len() as f64));
    put("marks", most_marked(&run.seen.passed));
    if let Some(train) = Train::first(&run.seen.passed) {
        signals::read(&train, &mut put);
    }
    kept
}

/// The largest share of marked packets of a stream, in percent.
fn most_marked(passed: &[Passed]) -> Option<f64> {
    let mut streams = BTreeMap::<u32, (u32, u32)>::new();
    for (packet, (stream, _)) in passed.iter().filter_map(|passed| Some((passed, passed.probe?))) {
        let (all, marked) = streams.entry(stream).or_default();
        (*all, *marked) = (*all + 1, *marked + u32::from(packet.marked));
    }
    let shares = streams.values().map(|(all, marked)| 100.0 * f64::from(*marked) / f64::from(*all));
    shares.reduce(f64::max)
}

/// Cross traffic of a run, in Mbit/s on the wire.
fn crossed(run: &Run<'_>) -> f64 {
    let wire = |size: f64| (size + FRAMING) / size;
    let each = run
        .scenario
        .traffic
        .iter()
        .map(|flow| flow.rate.bits_per_second() as f64 / 1e6 * wire(flow.size.0 as f64));
    each.sum()
}

/// A gap between two probes of a stream that left one after the other, in s: as planned, and as it was.
#[derive(Clone, Copy, Debug)]
struct ProbeGap {
    planned: f64,
    left: f64,
}

impl ProbeGap {
    /// Its error, as a share; nothing of packets back to back.
    fn error(self) -> Option<f64> {
        (self.planned > 0.0).then(|| (self.left / self.planned - 1.0).abs())
    }
}

/// The gaps within streams.
fn gaps(passed: &[Passed]) -> impl Iterator<Item = ProbeGap> {
    let probes: Vec<&Passed> = passed.iter().filter(|passed| passed.probe.is_some()).collect();
    let gap = |two: &[&Passed]| {
        let [(before, first), (after, second)] = [two[0].probe?, two[1].probe?];
        let planned = two[1].planned?.wrapping_sub(two[0].planned?);
        let follows = before == after && second == first.wrapping_add(1);
        // NTP counts 2^-32ths of a second.
        let planned = planned as f64 / 4_294_967_296.0;
        follows.then(|| ProbeGap { planned, left: (two[1].left - two[0].left).as_secs_f64() })
    };
    probes.windows(2).filter_map(gap).collect::<Vec<_>>().into_iter()
}

/// The name of a scenario of a generator.
pub(super) fn name_of(kind: Kind, mbps: u32) -> String {
    format!("generator-{}-{mbps}", kind.key())
}

/// Kind of traffic and rate in Mbit/s of payload, of such a name.
fn generated(name: &str) -> Option<(Kind, f64)> {
    let (kind, mbps) = name.strip_prefix("generator-")?.split_once('-')?;
    let kind = [Kind::Cbr, Kind::Poisson].into_iter().find(|known| known.key() == kind)?;
    Some((kind, mbps.parse().ok()?))
}

/// Gaps between the packets of a generator at their entry into the path, in s. Other packets are those by which programs speak
/// with each other.
fn of_generator(run: &Run<'_>) -> Vec<f64> {
    let size = (CROSS + HEADERS) as u64;
    let left: Vec<Time> = run.seen.passed.iter().filter(|p| p.size == size).map(|p| p.left).collect();
    left.windows(2).map(|two| (two[1] - two[0]).as_secs_f64()).collect()
}

/// Distance of Kolmogorov and Smirnov between the distribution of some gaps and the ideal one of a kind with that mean: the largest
/// difference of the two distribution functions. A constant gap may be off by [`TOLERANCE`]; without that every distribution is a half or more
/// away from a single point.
pub(super) fn distance(kind: Kind, gaps: &[f64], mean_gap: f64) -> Option<f64> {
    let mut sorted = gaps.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    if sorted.is_empty() {
        return None;
    }
    Some(match kind {
        Kind::Cbr => {
            let below = sorted.iter().filter(|gap| **gap < mean_gap - TOLERANCE).count();
            let above = sorted.iter().filter(|gap| **gap > mean_gap + TOLERANCE).count();
            below.max(above) as f64 / n
        }
        Kind::Poisson => {
            let ideal = |gap: f64| 1.0 - (-gap / mean_gap).exp();
            let off = |(k, gap): (usize, &f64)| {
                (ideal(*gap) - k as f64 / n).abs().max((ideal(*gap) - (k + 1) as f64 / n).abs())
            };
            sorted.iter().enumerate().map(off).fold(0.0, f64::max)
        }
    })
}

/// The gaps of the first session's probes, in ms by their number; of a generator the share of gaps that are longer, for Poisson its logarithm
/// to base 10.
pub(super) fn draw(run: &Run<'_>) -> Lines {
    if let Some((kind, _)) = generated(&run.scenario.name) {
        let mut sorted = of_generator(run);
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let beyond = |k: usize| (n - k) as f64 / n as f64;
        let point = |k: usize| match kind {
            Kind::Cbr => (1e3 * sorted[k], beyond(k)),
            Kind::Poisson => (1e3 * sorted[k], beyond(k).log10()),
        };
        let points = (0..n).step_by(n.div_ceil(POINTS).max(1)).map(point).collect();
        return Lines::from([("ccdf".into(), points)]);
    }
    let probes = gaps(&run.seen.passed).take(DRAWN).enumerate();
    let probes = probes.map(|(number, gap)| (number as f64 + 1.0, 1e3 * gap.left));
    Lines::from([("gaps".into(), probes.collect())])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of four gaps around 2 ms one is short and two are long by more than 50 us: a half of them is beyond on one side. Of two gaps at the
    /// median of an exponential distribution the function jumps from 0 to 1 where the ideal one is a half.
    #[test]
    fn distances_are_those_of_the_distribution_functions() {
        let cbr = |gaps: &[f64]| distance(Kind::Cbr, gaps, 2e-3);
        assert_eq!(cbr(&[1.9e-3, 2.04e-3, 2.1e-3, 2.2e-3]), Some(0.5));
        assert_eq!((cbr(&[2e-3; 9]), cbr(&[])), (Some(0.0), None));
        // iperf3's timer of 1 ms at 8 Mbit/s: two packets each time.
        assert_eq!(distance(Kind::Cbr, &[0.0, 1e-3, 0.0, 1e-3], 0.5e-3), Some(0.5));
        let half = distance(Kind::Poisson, &[1e-3 * 2_f64.ln(); 2], 1e-3).unwrap();
        assert!((half - 0.5).abs() < 1e-12, "{half}");
        let quantiles: Vec<f64> = (0..1000).map(|k| -1e-3 * (1.0 - (k as f64 + 0.5) / 1000.0).ln()).collect();
        assert!(distance(Kind::Poisson, &quantiles, 1e-3).unwrap() < 0.001);
    }

    #[test]
    fn names_of_generators_are_read_again() {
        assert_eq!(generated(&name_of(Kind::Poisson, 4)), Some((Kind::Poisson, 4.0)));
        assert_eq!(generated("ecnprobe-hub"), None);
    }
}
