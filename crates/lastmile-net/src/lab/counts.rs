//! The pump's counts: the lateness of packets, and the time that the machine lost meanwhile.

use std::fs;

use lastmile::time::Span;

use super::scale;

/// Lateness of packets, counted to the microsecond up to 10 ms; its size does not depend on the packets' number.
#[derive(Clone, Debug)]
pub struct LatenessCounts {
    /// Packets late by so many whole microseconds; the last bin has all beyond.
    bins: Vec<u64>,
    n: u64,
    worst_ns: u64,
}

impl Default for LatenessCounts {
    fn default() -> Self {
        LatenessCounts { bins: vec![0; scale::AT_MOST.as_nanos() as usize / 1_000 + 1], n: 0, worst_ns: 0 }
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

    /// Packets late by so many microseconds or more, up to 10 ms.
    pub fn over(&self, late: Span) -> u64 {
        self.bins.iter().skip((late.as_nanos().max(0) / 1_000) as usize).sum()
    }

    /// These and those.
    pub(super) fn and(mut self, others: &LatenessCounts) -> LatenessCounts {
        self.bins.iter_mut().zip(&others.bins).for_each(|(bin, more)| *bin += more);
        LatenessCounts { n: self.n + others.n, worst_ns: self.worst_ns.max(others.worst_ns), ..self }
    }
}

/// Time of this machine's processors since it started, in the kernel's ticks.
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

    /// The line `cpu` of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal; the fields
    /// after these are part of the first two.
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
        assert_eq!((counts.over(Span::from_micros(100)), counts.packets()), (1, 100));
        assert_eq!(counts.over(Span::from_micros(151)), 0);
        let mut more = LatenessCounts::default();
        more.add(50_000_000);
        let both = counts.and(&more);
        assert_eq!(
            (both.packets(), both.over(scale::AT_MOST), both.worst()),
            (101, 1, Span::from_millis(50))
        );
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
}
