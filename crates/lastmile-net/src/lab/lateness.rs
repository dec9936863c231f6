//! How late a lab was, packet by packet, and whether its results may be believed.

use lastmile::time::Span;

/// The share of packets that may be late by 100 us or more before a run is refused.
pub const LATE_SHARE: f64 = 0.01;
/// How late packets were, to the microsecond, whatever their number.
#[derive(Clone, Debug)]
pub struct LatenessCounts {
    /// Packets late by so many whole microseconds; the last bin has all beyond.
    bins: Vec<u64>,
    n: u64,
    worst_ns: u64,
}

impl Default for LatenessCounts {
    fn default() -> Self {
        LatenessCounts { bins: vec![0; 10_001], n: 0, worst_ns: 0 }
    }
}

impl LatenessCounts {
    /// Counts one packet.
    pub fn add(&mut self, ns: u64) {
        let bin = ((ns / 1_000) as usize).min(self.bins.len() - 1);
        self.bins[bin] += 1;
        self.n += 1;
        self.worst_ns = self.worst_ns.max(ns);
    }

    /// Packets counted.
    pub fn packets(&self) -> u64 {
        self.n
    }

    /// The lateness that a share `q` of the packets kept below, to the microsecond above it.
    pub fn quantile(&self, q: f64) -> Span {
        let rank = (q * self.n as f64).ceil() as u64;
        let mut seen = 0;
        for (us, count) in self.bins.iter().enumerate().take(self.bins.len() - 1) {
            seen += count;
            if seen >= rank {
                return Span::from_nanos(((us as u64 + 1) * 1_000).min(self.worst_ns) as i64);
            }
        }
        self.worst()
    }

    /// The latest packet's lateness.
    pub fn worst(&self) -> Span {
        Span::from_nanos(self.worst_ns as i64)
    }

    /// Packets late by 100 us or more.
    pub fn over_100us(&self) -> u64 {
        self.bins.iter().skip(100).sum()
    }
}

/// How late the lab was.
#[derive(Clone, Debug, serde::Serialize)]
pub struct LabLateness {
    /// Packets carried.
    pub packets: u64,
    /// Median of the larger of output and ingress lateness.
    #[serde(rename = "p50_ns")]
    pub p50: Span,
    /// 99th percentile of it.
    #[serde(rename = "p99_ns")]
    pub p99: Span,
    /// The latest packet.
    #[serde(rename = "worst_ns")]
    pub worst: Span,
    /// Packets late by 100 us or more.
    pub over_100us: u64,
    /// Packets that a host's device had no room for: lost where the scenario loses nothing.
    pub device_drops: u64,
    /// Whether the pump had real-time priority.
    pub realtime: bool,
    /// Why results of this run must not be believed, if so.
    pub refused: Option<String>,
}

impl LabLateness {
    pub(super) fn of(
        (out, into): (&LatenessCounts, &LatenessCounts),
        probes: &LatenessCounts,
        device_drops: u64,
        realtime: bool,
    ) -> LabLateness {
        let all = [out, into, probes];
        let largest =
            |of: &dyn Fn(&LatenessCounts) -> Span| all.iter().map(|c| of(c)).max().unwrap_or(Span::ZERO);
        let share = |c: &LatenessCounts| c.over_100us() as f64 / c.packets().max(1) as f64;
        let late = all.iter().map(|c| share(c)).fold(0.0, f64::max);
        let over_100us = all.iter().map(|c| c.over_100us()).max().unwrap_or(0);
        let too_late = (late > LATE_SHARE).then(|| {
            format!(
                "{:.1} % of the packets were carried 100 us or more too late: this machine is too busy for the lab",
                late * 100.0
            )
        });
        let dropped = (device_drops > 0).then(|| {
            format!("{device_drops} packets were lost at a host's device that had no room, not on the path")
        });
        let reasons: Vec<String> = too_late.into_iter().chain(dropped).collect();
        let refused = (!reasons.is_empty()).then(|| reasons.join("; "));
        LabLateness {
            packets: out.packets() + into.packets(),
            p50: largest(&|c| c.quantile(0.5)),
            p99: largest(&|c| c.quantile(0.99)),
            worst: largest(&|c| c.worst()),
            over_100us,
            device_drops,
            realtime,
            refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_lateness() {
        let mut counts = LatenessCounts::default();
        (0..99).for_each(|_| counts.add(300));
        counts.add(150_000);
        assert_eq!(counts.quantile(0.5), Span::from_micros(1));
        assert_eq!(counts.quantile(1.0), Span::from_micros(150));
        assert_eq!((counts.over_100us(), counts.packets()), (1, 100));
    }

    #[test]
    fn packets_lost_at_a_device_refuse_the_run() {
        let none = LatenessCounts::default();
        assert_eq!(LabLateness::of((&none, &none), &none, 0, true).refused, None);
        let lateness = LabLateness::of((&none, &none), &none, 3, true);
        assert_eq!(lateness.device_drops, 3);
        assert!(
            lateness.refused.is_some_and(|why| why.starts_with("3 packets were lost at a host's device"))
        );
    }
}
