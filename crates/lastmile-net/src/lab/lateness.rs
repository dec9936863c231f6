//! How late a lab was, packet by packet, whether its results may be believed, and whether that was the machine's fault.

use std::fs;

use lastmile::time::Span;

use super::pump::Pump;
use crate::sched::{self, RealTime, SPIN_NS};

/// The share of packets that may be late by 100 us or more before a run is refused.
pub const LATE_SHARE: f64 = 0.01;
/// How late a packet may be.
const LATE: Span = Span::from_micros(100);
/// The share of the processors' time that a hypervisor may take before a late run is its fault: one tick of 10 ms, the
/// finest that the kernel tells, in two seconds of two processors.
const STOLEN_SHARE: f64 = 0.0025;
/// How many sleeps of half a millisecond say whether a machine is on time when there is no lab.
const CONTROL_SLEEPS: usize = 2_000;

/// What the processors of this machine have done since it started, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorTime {
    stolen: u64,
    all: u64,
}

impl ProcessorTime {
    /// As of now; all zero where the kernel does not tell.
    pub fn now() -> ProcessorTime {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        ProcessorTime::parse(&text).unwrap_or(ProcessorTime { stolen: 0, all: 0 })
    }

    /// The line `cpu` of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal; what follows
    /// is part of the first two.
    fn parse(text: &str) -> Option<ProcessorTime> {
        let mut fields = text.lines().next()?.split_ascii_whitespace();
        fields.next().filter(|name| *name == "cpu")?;
        let ticks = fields.take(8).map(|field| field.parse().ok()).collect::<Option<Vec<u64>>>()?;
        let stolen = *ticks.get(7)?;
        Some(ProcessorTime { stolen, all: ticks.iter().fold(0, |sum, t| sum.saturating_add(*t)) })
    }

    /// The share of the processors' time since then that a hypervisor gave to others while something was to be done
    /// here.
    pub fn stolen_since(self, then: ProcessorTime) -> f64 {
        let stolen = self.stolen.saturating_sub(then.stolen);
        stolen as f64 / self.all.saturating_sub(then.all).max(1) as f64
    }
}

/// Whether this machine is on time when there is no lab: a second of deadlines on a thread of its own, with real-time
/// priority where it may have that. Otherwise what is wrong with it.
///
/// # Errors
/// More than [`LATE_SHARE`] of the deadlines were missed by 100 us or more.
pub fn machine_is_on_time() -> Result<(), String> {
    let measured = std::thread::spawn(|| {
        let priority = RealTime::fifo(10);
        let spin = if priority.is_ok() { SPIN_NS } else { 0 };
        sched::measure_lateness(CONTROL_SLEEPS, 500_000, spin)
    });
    // The 99th percentile is what a share of 1 % is late by.
    let late = measured.join().map_or(0, |lateness| lateness.p99);
    match late < LATE.as_nanos() as u64 {
        true => Ok(()),
        false => Err(format!(
            "{:.0} % of this machine's timers are late by {} or more even when there is no lab",
            LATE_SHARE * 100.0,
            Span::from_nanos(late as i64)
        )),
    }
}

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
    /// The share of the processors' time that the machine's hypervisor took for others meanwhile; 0 on hardware.
    #[serde(rename = "stolen_share")]
    pub stolen: f64,
    /// Whether the pump had real-time priority.
    pub realtime: bool,
    /// Why results of this run must not be believed, if so.
    pub refused: Option<String>,
}

impl LabLateness {
    /// Whether a refused run was late because the machine's hypervisor took its time away, which nothing that runs on
    /// the machine can help.
    pub fn is_hypervisors(&self) -> bool {
        self.refused.is_some() && self.device_drops == 0 && self.stolen >= STOLEN_SHARE
    }

    pub(super) fn of(pump: &Pump, probes: &LatenessCounts, realtime: bool) -> LabLateness {
        LabLateness::new((pump.late_out(), pump.late_in()), probes, pump.refused(), pump.stolen(), realtime)
    }

    fn new(
        (out, into): (&LatenessCounts, &LatenessCounts),
        probes: &LatenessCounts,
        device_drops: u64,
        stolen: f64,
        realtime: bool,
    ) -> LabLateness {
        let all = [out, into, probes];
        let largest =
            |of: &dyn Fn(&LatenessCounts) -> Span| all.iter().map(|c| of(c)).max().unwrap_or(Span::ZERO);
        let share = |c: &LatenessCounts| c.over_100us() as f64 / c.packets().max(1) as f64;
        let late = all.iter().map(|c| share(c)).fold(0.0, f64::max);
        let over_100us = all.iter().map(|c| c.over_100us()).max().unwrap_or(0);
        let too_late = (late > LATE_SHARE).then(|| {
            let why = match stolen >= STOLEN_SHARE {
                true => {
                    format!("its hypervisor took {:.1} % of this machine's time meanwhile", stolen * 100.0)
                }
                false => "this machine is too busy for the lab".into(),
            };
            format!("{:.1} % of the packets were carried 100 us or more too late: {why}", late * 100.0)
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
            stolen,
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
    fn a_hypervisors_share_is_told_from_the_kernels_ticks() {
        let stat = |steal: u64| format!("cpu  100 0 50 840 5 0 5 {steal} 7 0\ncpu0 1 2 3\n");
        let then = ProcessorTime::parse(&stat(0)).expect("a line");
        let now = ProcessorTime::parse(&stat(1_000)).expect("a line");
        assert_eq!((now.stolen_since(then), then.stolen_since(now)), (1.0, 0.0));
        assert_eq!(then, ProcessorTime { stolen: 0, all: 1_000 });
        for text in ["", "cpu", "cpu 1 2 3 4 5 6 7", "cpu 1 2 3 4 5 6 7 x", "intr 1 2 3 4 5 6 7 8"] {
            assert_eq!(ProcessorTime::parse(text), None, "{text}");
        }
        assert!(ProcessorTime::now().all > 0, "this kernel tells");
    }

    #[test]
    fn a_late_run_names_the_hypervisor_that_took_the_time() {
        let (none, mut late) = (LatenessCounts::default(), LatenessCounts::default());
        late.add(200_000);
        let of = |stolen| LabLateness::new((&late, &none), &none, 0, stolen, true);
        assert!(of(0.0).refused.is_some_and(|why| why.ends_with("too busy for the lab")));
        assert!(of(0.02).refused.is_some_and(|why| why.contains("hypervisor took 2.0 %")));
        assert_eq!([0.0, 0.02].map(|stolen| of(stolen).is_hypervisors()), [false, true]);
    }

    #[test]
    fn packets_lost_at_a_device_refuse_the_run() {
        let none = LatenessCounts::default();
        assert_eq!(LabLateness::new((&none, &none), &none, 0, 0.5, true).refused, None);
        let lateness = LabLateness::new((&none, &none), &none, 3, 0.5, true);
        assert!(!lateness.is_hypervisors(), "a full device is the lab's own fault");
        assert_eq!(lateness.device_drops, 3);
        assert!(
            lateness.refused.is_some_and(|why| why.starts_with("3 packets were lost at a host's device"))
        );
    }
}
