//! Verdicts on the facts: good, less accurate or impossible, with advice on changes.
use super::{InterfaceFacts, Machine, Namespaces, PACKETS, SLEEPS};
use crate::sched::Lateness;
use crate::sys::user_namespace_remedy;
use std::fmt;

/// Verdict on a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing to do.
    Good,
    /// Measuring works, less exactly or only on an idle machine.
    Limited,
    /// Something does not work at all.
    Missing,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Good => "good",
            Self::Limited => "limited",
            Self::Missing => "missing",
        })
    }
}

/// One line of the doctor's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the examined fact; stable, for programs.
    pub name: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// The finding in words, for people.
    pub found: String,
    /// Advice on a change; `None` exactly if the verdict is good.
    pub advice: Option<String>,
}

impl Finding {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Good, found: found.into(), advice: None }
    }

    fn bad(
        name: &'static str,
        verdict: Verdict,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { name, verdict, found: found.into(), advice: Some(advice.into()) }
    }
}

/// Median lateness that still leaves a 1500-byte gap at 100 Mbit/s (120 us) recognisable, nanoseconds.
const LATE_P50_NS: u64 = 100_000;
/// Of every hundred sleeps one may be later than this, nanoseconds; the lab refuses runs beyond.
const LATE_P99_NS: u64 = 1_000_000;

impl Machine {
    /// The facts, judged, in the order in which they matter.
    pub fn findings(&self) -> Vec<Finding> {
        let mut all = vec![
            self.system(),
            self.stamps(),
            self.buffer(),
            self.priority(),
            self.throttling(),
            self.slice(),
            self.memory(),
        ];
        all.push(timers("timers", &self.lateness, "close busy programs, or use --realtime"));
        if let Some(lateness) = &self.lateness_realtime {
            let advice = "the machine itself is late: check power saving, or the host of a virtual machine";
            all.push(timers("timers-realtime", lateness, advice));
        }
        all.extend([self.lab_namespaces(), self.lab_tun()]);
        match &self.interface {
            Some(Ok(facts)) => interface(facts, &mut all),
            Some(Err(e)) => {
                all.push(Finding::bad(
                    "interface",
                    Verdict::Missing,
                    e.clone(),
                    "name an interface from `ip link`",
                ));
            }
            None => {}
        }
        all
    }

    fn system(&self) -> Finding {
        let load = self.load.map_or_else(String::new, |l| format!(", load {l:.2}"));
        let found = format!("Linux {}, {} cores{load}", self.kernel, self.cores);
        match self.load {
            Some(load) if load > self.cores as f64 => {
                let advice = "programs want more than all cores: stop some, or expect discarded streams";
                Finding::bad("system", Verdict::Limited, found, advice)
            }
            _ if self.cores < 2 => {
                let advice =
                    "with one core, sending and receiving disturb each other: measure between two machines";
                Finding::bad("system", Verdict::Limited, found, advice)
            }
            _ => Finding::good("system", found),
        }
    }

    fn stamps(&self) -> Finding {
        let s = &self.stamps;
        let name = "timestamps";
        if let Some(e) = &s.error {
            let advice = "bring loopback up (ip link set lo up); inside a sandbox, permit SO_TIMESTAMPING";
            return Finding::bad(name, Verdict::Missing, e.clone(), advice);
        }
        let found = format!(
            "of {PACKETS} packets on loopback: {} transmit stamps, {} receive stamps, {} ECN marks",
            s.sent, s.received, s.marked
        );
        if [s.sent, s.received, s.marked] == [PACKETS; 3] {
            return Finding::good(name, found);
        }
        let advice = "use a Linux kernel of 4.13 or later; user-space kernels (gVisor) make no stamps";
        let verdict = if s.received == PACKETS { Verdict::Limited } else { Verdict::Missing };
        Finding::bad(name, verdict, found, advice)
    }

    fn buffer(&self) -> Finding {
        let found = format!("{} kB of receive buffer", self.stamps.recv_buffer / 1024);
        if self.stamps.recv_buffer >= 2 << 20 {
            return Finding::good("buffer", found);
        }
        Finding::bad(
            "buffer",
            Verdict::Limited,
            found,
            "sysctl -w net.core.rmem_max=8388608, or stamps get lost at high rates",
        )
    }

    fn priority(&self) -> Finding {
        if self.realtime {
            return Finding::good("realtime", "SCHED_FIFO granted");
        }
        let found = format!("SCHED_FIFO refused (RLIMIT_RTPRIO is {})", self.rtprio_limit);
        let advice = "run as root, or give the program the right (setcap cap_sys_nice+ep), or add \
                      'USER - rtprio 10' to /etc/security/limits.conf";
        Finding::bad("realtime", Verdict::Limited, found, advice)
    }

    fn throttling(&self) -> Finding {
        let name = "rt-throttling";
        let (Some(runtime), Some(period)) = (self.rt_runtime_us, self.rt_period_us) else {
            return Finding::good(name, "no limit on real-time threads known");
        };
        if runtime < 0 || runtime >= period {
            return Finding::good(name, "real-time threads are not throttled");
        }
        let found = format!("real-time threads may use {runtime} of every {period} us");
        if runtime.saturating_mul(2) >= period {
            return Finding::good(name, found);
        }
        Finding::bad(name, Verdict::Limited, found, "sysctl -w kernel.sched_rt_runtime_us=950000")
    }

    fn slice(&self) -> Finding {
        if self.slice_ns > 0 {
            return Finding::good("slice", format!("scheduler slice of {} us granted", self.slice_ns / 1000));
        }
        let advice =
            "without real-time priority, a kernel of 6.12 or later gives sooner turns beside busy programs";
        Finding::bad("slice", Verdict::Limited, "the kernel gives no short scheduler slices", advice)
    }

    fn memory(&self) -> Finding {
        if self.lock_memory {
            return Finding::good("memory", "memory can be locked");
        }
        let advice = "run as root, or 'ulimit -l unlimited'; matters only on machines that swap";
        Finding::bad("memory", Verdict::Limited, "memory cannot be locked", advice)
    }

    fn lab_namespaces(&self) -> Finding {
        match self.namespaces {
            Namespaces::Privileged => Finding::good("namespaces", "network namespaces permitted"),
            Namespaces::User => Finding::good("namespaces", "permitted inside a user namespace"),
            Namespaces::Forbidden => {
                let advice = format!("for the lab only: {}", user_namespace_remedy());
                Finding::bad("namespaces", Verdict::Missing, "network namespaces forbidden", advice)
            }
        }
    }

    fn lab_tun(&self) -> Finding {
        match &self.tun {
            Ok(()) => Finding::good("tun", "/dev/net/tun works"),
            Err(e) => {
                let advice =
                    "for the lab only: modprobe tun; mknod /dev/net/tun c 10 200; chmod 0666 /dev/net/tun";
                Finding::bad("tun", Verdict::Missing, format!("/dev/net/tun: {e}"), advice)
            }
        }
    }
}

fn timers(name: &'static str, l: &Lateness, advice: &str) -> Finding {
    let us = |ns: u64| ns as f64 / 1000.0;
    let found = format!(
        "{} sleeps late by {:.1} us (median), {:.1} us (p99), {:.1} us (worst)",
        l.n,
        us(l.p50),
        us(l.p99),
        us(l.worst)
    );
    if l.n == SLEEPS && l.p50 <= LATE_P50_NS && l.p99 <= LATE_P99_NS {
        return Finding::good(name, found);
    }
    Finding::bad(name, Verdict::Limited, found, advice)
}

fn interface(facts: &InterfaceFacts, all: &mut Vec<Finding>) {
    let name = &facts.name;
    let merging = match (facts.gro, facts.lro) {
        (_, Some(true)) => Some(("LRO merges", "lro")),
        (Some(true), _) => Some(("GRO may merge", "gro")),
        _ => None,
    };
    all.push(match merging {
        // Loopback has the flag but nothing ever to merge.
        Some((what, flag)) if name != "lo" => {
            let found = format!("{name}: {what} packets of one stream, which then share one stamp");
            Finding::bad("offload", Verdict::Limited, found, format!("ethtool -K {name} {flag} off"))
        }
        _ => Finding::good("offload", format!("{name}: packets are not merged on receipt")),
    });
    all.push(match (facts.adaptive_rx, facts.rx_usecs, facts.rx_frames) {
        (Some(true), ..) => Finding::bad(
            "coalescing",
            Verdict::Limited,
            format!("{name}: the device gathers received packets as it sees fit"),
            format!("ethtool -C {name} adaptive-rx off rx-usecs 0"),
        ),
        (_, Some(usecs), frames) if usecs > 0 || frames.is_some_and(|f| f > 1) => Finding::bad(
            "coalescing",
            Verdict::Limited,
            format!(
                "{name}: the device reports packets up to {usecs} us or {} packets late",
                frames.unwrap_or(0)
            ),
            format!("ethtool -C {name} rx-usecs 0 rx-frames 1"),
        ),
        (_, Some(_), _) => Finding::good("coalescing", format!("{name}: each packet is reported at once")),
        _ => Finding::good("coalescing", format!("{name}: the device names no interrupt coalescing")),
    });
    if facts.tx_stamps == Some(false) {
        all.push(Finding::bad(
            "interface-stamps",
            Verdict::Limited,
            format!("{name}: the driver makes no transmit stamps"),
            "send through another interface; otherwise streams take 0.2 s more, and it is not seen what waits in this host's own queue",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::StampTrial;

    fn perfect() -> Machine {
        let lateness = Lateness { n: SLEEPS, p50: 2_000, p99: 50_000, worst: 90_000 };
        Machine {
            kernel: "6.12.0".into(),
            cores: 4,
            load: Some(0.5),
            realtime: true,
            rtprio_limit: 0,
            rt_runtime_us: Some(950_000),
            rt_period_us: Some(1_000_000),
            slice_ns: 100_000,
            lock_memory: true,
            stamps: StampTrial { sent: 10, received: 10, marked: 10, recv_buffer: 16 << 20, error: None },
            namespaces: Namespaces::Privileged,
            tun: Ok(()),
            lateness,
            lateness_realtime: Some(lateness),
            interface: Some(Ok(InterfaceFacts {
                name: "eth0".into(),
                gro: Some(false),
                ..Default::default()
            })),
        }
    }

    fn troubles(m: &Machine) -> Vec<(&'static str, Verdict)> {
        m.findings().into_iter().filter(|f| f.verdict != Verdict::Good).map(|f| (f.name, f.verdict)).collect()
    }

    #[test]
    fn a_perfect_machine_needs_nothing() {
        assert_eq!(troubles(&perfect()), []);
    }

    #[test]
    fn each_trouble_is_named_alone() {
        use Verdict::{Limited, Missing};
        type Spoil = fn(&mut Machine);
        let cases: [(Spoil, &str, Verdict); 13] = [
            (|m| m.load = Some(9.0), "system", Limited),
            (|m| m.cores = 1, "system", Limited),
            (|m| m.stamps.sent = 9, "timestamps", Limited),
            (|m| m.stamps.received = 1, "timestamps", Missing),
            (|m| m.stamps.error = Some("lo is down".into()), "timestamps", Missing),
            (|m| m.stamps.recv_buffer = 212_992, "buffer", Limited),
            (|m| (m.realtime, m.lateness_realtime) = (false, None), "realtime", Limited),
            (|m| m.rt_runtime_us = Some(100_000), "rt-throttling", Limited),
            (|m| m.slice_ns = 0, "slice", Limited),
            (|m| m.lateness.p99 = 8_000_000, "timers", Limited),
            (|m| m.namespaces = Namespaces::Forbidden, "namespaces", Missing),
            (|m| m.tun = Err("permission denied".into()), "tun", Missing),
            (|m| m.interface = Some(Err("no such device".into())), "interface", Missing),
        ];
        for (spoil, name, verdict) in cases {
            let mut m = perfect();
            spoil(&mut m);
            assert_eq!(troubles(&m), [(name, verdict)]);
        }
    }

    #[test]
    fn interfaces_are_judged_by_what_they_do_to_gaps() {
        let with = |facts: InterfaceFacts| {
            let mut m = perfect();
            m.interface = Some(Ok(InterfaceFacts { name: "eth0".into(), ..facts }));
            m.findings().into_iter().filter_map(|f| f.advice).collect::<Vec<_>>()
        };
        let none = InterfaceFacts::default;
        assert_eq!(with(InterfaceFacts { gro: Some(true), ..none() }), ["ethtool -K eth0 gro off"]);
        assert_eq!(with(InterfaceFacts { lro: Some(true), ..none() }), ["ethtool -K eth0 lro off"]);
        let slow = InterfaceFacts { rx_usecs: Some(50), rx_frames: Some(0), ..none() };
        assert_eq!(with(slow), ["ethtool -C eth0 rx-usecs 0 rx-frames 1"]);
        let own = InterfaceFacts { adaptive_rx: Some(true), rx_usecs: Some(0), ..none() };
        assert_eq!(with(own), ["ethtool -C eth0 adaptive-rx off rx-usecs 0"]);
        assert_eq!(with(InterfaceFacts { rx_usecs: Some(0), rx_frames: Some(1), ..none() }), [""; 0]);
        assert_eq!(with(InterfaceFacts { tx_stamps: Some(false), ..none() }).len(), 1);
    }
}
