//! Lateness of a lab, packet by packet, the verdict on its results, and the machine's part in it.
//!
//! A run is judged by the possible effect of its lateness on its results. For our own measurements this is the change of
//! their numbers when the lateness is taken out ([`MOVED_MOST`]). For programs, lateness that is short beside the
//! path's own times changes nothing: a packet counts as late beyond its path's allowance (a packet's
//! time at the slowest hop, or 5 % of that hop's queue), and more than 1 % of late packets refuse the run.
//!
//! A run that carried no packet from or to the outside has no lateness of packets. Its own traffic is the simulator's, with
//! the results of virtual time whatever the clock did. The same rule then applies to the moments at which something was due
//! (each arrival, departure and timer): the pump's lateness in handling them tells if the run went on in real time.

use core::fmt;

use lastmile::time::Span;
use lastmile_sim::scenario::Scenario;

use super::counts::LatenessCounts;
use super::due::{Judged, MOVED_MOST};
use super::pump::Pump;
use super::scale::allowed;
use crate::sched::{self, RealTime, SPIN_NS};

/// The share of packets that may be later than their path allows before a run is refused.
pub const LATE_SHARE: f64 = 0.01;
/// Lateness of timers, at the 99th percentile, from which a machine is not on time.
const LATE: Span = Span::from_micros(100);
/// Greatest ratio of the share of late packets to the hypervisor's share of the time that this share explains: packets come
/// in trains, and those due within a tick are served after it. A greater ratio has another cause too. Our choice: a tick of
/// 10 ms, the finest that the kernel tells, is 0.25 % of two seconds of two processors, and may explain 10 % of a run's
/// packets.
const STOLEN_REACH: f64 = 40.0;
/// Sleeps of half a millisecond in the check of a machine without a lab.
const CONTROL_SLEEPS: usize = 2_000;

/// Checks that this machine is on time when there is no lab: a second of deadlines on a thread of its own, with real-time
/// priority where it may have that. The error says how late it is.
///
/// # Errors
/// More than [`LATE_SHARE`] of the deadlines were missed by 100 us or more.
pub fn machine_is_on_time() -> Result<(), String> {
    let measured = std::thread::spawn(|| {
        let priority = RealTime::fifo(10);
        let spin = if priority.is_ok() { SPIN_NS } else { 0 };
        sched::measure_lateness(CONTROL_SLEEPS, 500_000, spin)
    });
    // A share of 1 % is later than the 99th percentile.
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

/// The codes of a [`LatenessRefusal`], in the order of its reasons: packets or moments too late; measurements whose numbers
/// moved; a host's device without room.
pub const CODES: &[&str] = &["too-late", "moved", "device-full"];

/// Why results of a run must not be believed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LatenessRefusal {
    /// Of [`CODES`], with spaces between, in words that stay.
    pub code: String,
    /// For people, one line.
    pub text: String,
}

impl fmt::Display for LatenessRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl LatenessRefusal {
    /// A refusal with the given reasons, each beside its code; `None` without any.
    fn of(reasons: [Option<String>; 3]) -> Option<LatenessRefusal> {
        let (code, text): (Vec<&str>, Vec<String>) =
            CODES.iter().zip(reasons).filter_map(|(code, text)| Some((*code, text?))).unzip();
        (!code.is_empty()).then(|| LatenessRefusal { code: code.join(" "), text: text.join("; ") })
    }
}

/// Lateness of a lab's run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct LabLateness {
    /// Packets carried, in and out.
    pub packets: u64,
    /// The moments at which something was due in the engine, if no packet was carried: the fields below are then their
    /// lateness. Zero if packets were carried.
    pub events: u64,
    /// Median lateness, of packets in and out.
    #[serde(rename = "p50_ns")]
    pub p50: Span,
    /// 99th percentile of it.
    #[serde(rename = "p99_ns")]
    pub p99: Span,
    /// The latest packet.
    #[serde(rename = "worst_ns")]
    pub worst: Span,
    /// Allowed lateness: the least of all paths on which packets were carried.
    #[serde(rename = "allowed_ns")]
    pub allowed: Span,
    /// Packets, or moments, late by `allowed` or more.
    pub late: u64,
    /// Greatest change of the measurements' numbers when lateness is taken out of them, as a share of the capacity; null
    /// if nothing was measured, or if more than a number changes, as from a number to a refusal.
    pub moved: Option<f64>,
    /// Packets that a host's device had no room for: lost where the scenario loses nothing.
    pub device_drops: u64,
    /// The share of the processors' time that the machine's hypervisor took for others meanwhile; 0 on hardware.
    #[serde(rename = "stolen_share")]
    pub stolen: f64,
    /// The share of a core that the pump took.
    #[serde(rename = "core_share")]
    pub core: f64,
    /// True if the pump had real-time priority.
    pub realtime: bool,
    /// Why results of this run must not be believed, if so.
    pub refused: Option<LatenessRefusal>,
    /// True if the stolen time explains the lateness.
    #[serde(skip)]
    explained: bool,
}

/// True if the stolen share of time explains the share of late packets.
fn explains(stolen: f64, late: f64) -> bool {
    late <= STOLEN_REACH * stolen
}

/// The cause of a late run, in words.
fn whose(stolen: f64, late: f64) -> String {
    match explains(stolen, late) {
        true => format!("its hypervisor took {:.1} % of this machine's time meanwhile", stolen * 100.0),
        false => "this machine is too busy for the lab".into(),
    }
}

impl LabLateness {
    /// True if a refused run was late because the machine's hypervisor took its time away, which nothing that runs on
    /// the machine can help.
    pub fn is_hypervisors(&self) -> bool {
        self.refused.is_some() && self.device_drops == 0 && self.explained
    }

    pub(super) fn of(
        scenario: &Scenario,
        pump: &Pump,
        judged: Option<&Judged>,
        realtime: bool,
    ) -> LabLateness {
        let address = |host: usize| scenario.hosts.get(host).map(|host| [host.v4.into(), host.v6.into()]);
        let to =
            |ip| (0..scenario.hosts.len()).find(|&host| address(host).is_some_and(|own| own.contains(&ip)));
        let outside = pump.pairs().iter().filter_map(|&(from, ip)| Some((from, to(ip)?)));
        let pairs: Vec<_> = match pump.pairs().is_empty() {
            true => scenario.traffic.iter().map(|flow| (flow.from, flow.to)).collect(),
            false => outside.collect(),
        };
        let allowed = pairs.into_iter().map(|(from, to)| allowed(scenario, from, to)).min();
        let entered = judged.map_or(pump.late_in(), |judged| &judged.entered);
        let own = LabLateness::new(
            (pump.late_out().clone().and(entered), pump.late_events()),
            allowed.unwrap_or(LATE),
            judged,
            pump.refused(),
            pump.stolen(),
        );
        LabLateness { core: pump.core(), realtime, ..own }
    }

    fn new(
        (carried, events): (LatenessCounts, &LatenessCounts),
        allowed: Span,
        judged: Option<&Judged>,
        device_drops: u64,
        stolen: f64,
    ) -> LabLateness {
        let (packets, moments) =
            (carried.packets(), if carried.packets() == 0 { events.packets() } else { 0 });
        let counts = if packets == 0 { events } else { &carried };
        let late = counts.over(allowed);
        let n = (packets + moments).max(1) as f64;
        let share = late as f64 / n;
        // One packet that is late enough may move a number.
        let least = if judged.is_some() { share.max(1.0 / n) } else { share };
        let too_late = (share > LATE_SHARE && judged.is_none_or(|judged| !judged.whole)).then(|| {
            let what = match packets {
                0 => format!("{late} of {moments} events ({:.1} %) were handled", share * 100.0),
                _ => format!("{late} of {packets} packets ({:.1} %) were carried", share * 100.0),
            };
            format!("{what} {allowed} or more too late: {}", whose(stolen, share))
        });
        let moved = judged.map(|judged| &judged.moved);
        let wrong = moved.filter(|moved| moved.share > MOVED_MOST).map(|moved| {
            let by = match moved.share.is_finite() {
                true => format!(", {:.1} % of the capacity apart", moved.share * 100.0),
                false => String::new(),
            };
            format!("with every probe in time {}{by}: {}", moved.what, whose(stolen, least))
        });
        let dropped = (device_drops > 0).then(|| {
            format!("{device_drops} packets were lost at a host's device that had no room, not on the path")
        });
        LabLateness {
            packets,
            events: moments,
            p50: counts.quantile(0.5),
            p99: counts.quantile(0.99),
            worst: counts.worst(),
            allowed,
            late,
            moved: moved.map(|moved| moved.share).filter(|share| share.is_finite()),
            device_drops,
            stolen,
            core: 0.0,
            realtime: false,
            refused: LatenessRefusal::of([too_late, wrong, dropped]),
            explained: explains(stolen, least),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::due::Moved;

    /// Of late packets, and moments, on a path that allows so much.
    fn of(
        carried: &LatenessCounts,
        events: &LatenessCounts,
        judged: Option<&Judged>,
        stolen: f64,
    ) -> LabLateness {
        LabLateness::new((carried.clone(), events), Span::from_micros(200), judged, 0, stolen)
    }

    #[test]
    fn a_late_run_names_the_hypervisor_that_took_the_time() {
        let (none, mut late) = (LatenessCounts::default(), LatenessCounts::default());
        late.add(200_000);
        let of = |late: &LatenessCounts, stolen| of(late, &none, None, stolen);
        // One of one, and then one of ten.
        let all = late.clone();
        (0..9).for_each(|_| late.add(5_000));
        let why = of(&late, 0.0).refused.expect("one of ten");
        assert_eq!(why.code, "too-late");
        assert_eq!(
            why.text,
            "1 of 10 packets (10.0 %) were carried 200 us or more too late: this machine is too busy for the lab"
        );
        assert!(of(&late, 0.02).refused.is_some_and(|why| why.text.contains("hypervisor took 2.0 %")));
        // A tick in two seconds makes nothing late from beginning to end: a lab that is slow by itself stays to blame.
        assert!(of(&all, 0.02).refused.is_some_and(|why| why.text.ends_with("too busy for the lab")));
        let is_hypervisors =
            [(&late, 0.0), (&late, 0.002), (&late, 0.003), (&all, 0.003), (&all, 0.02), (&all, 0.03)]
                .map(|(late, stolen)| of(late, stolen).is_hypervisors());
        assert_eq!(is_hypervisors, [false, false, true, false, false, true]);
        let moments = |due: &LatenessCounts| super::tests::of(&none, due, None, 0.003);
        assert!(!moments(&all).is_hypervisors() && moments(&late).is_hypervisors());
    }

    #[test]
    fn measurements_are_judged_by_how_far_their_numbers_moved() {
        let (none, mut late) = (LatenessCounts::default(), LatenessCounts::default());
        (0..10).for_each(|k| late.add(if k == 0 { 300_000 } else { 5_000 }));
        let judged = |share, whole| {
            let what = "forward wbest would have found capacity 10 Mbit/s, not 10.3 Mbit/s".to_owned();
            Judged {
                moved: Moved { share, what, simulated: None },
                entered: LatenessCounts::default(),
                whole,
            }
        };
        let of = |judged: &Judged, stolen| of(&late, &none, Some(judged), stolen);
        // One of ten was late, and nobody sees it in the number.
        let harmless = of(&judged(0.004, true), 0.0);
        assert_eq!((harmless.late, harmless.moved, harmless.refused), (1, Some(0.004), None));
        let wrong = of(&judged(0.031, true), 0.0);
        assert_eq!(
            wrong.refused.as_ref().map(|why| (why.code.as_str(), why.text.as_str())),
            Some((
                "moved",
                "with every probe in time forward wbest would have found capacity 10 Mbit/s, not 10.3 Mbit/s, \
                 3.1 % of the capacity apart: this machine is too busy for the lab"
            ))
        );
        assert!(!wrong.is_hypervisors() && of(&judged(0.031, true), 0.003).is_hypervisors());
        let none_left = of(&judged(f64::INFINITY, true), 0.0);
        assert!(none_left.refused.is_some() && none_left.moved.is_none());
        // Of a round trip nothing could be told: its packets count as a program's.
        assert!(
            of(&judged(0.0, false), 0.0).refused.is_some_and(|why| why.text.starts_with("1 of 10 packets"))
        );
    }

    #[test]
    fn packets_lost_at_a_device_refuse_the_run() {
        let none = LatenessCounts::default();
        let of = |drops| LabLateness::new((none.clone(), &none), Span::from_micros(200), None, drops, 0.5);
        assert_eq!(of(0).refused, None);
        let lateness = of(3);
        assert!(!lateness.is_hypervisors(), "a full device is the lab's own fault");
        assert_eq!(lateness.device_drops, 3);
        assert!(
            lateness
                .refused
                .is_some_and(|why| why.text.starts_with("3 packets were lost at a host's device"))
        );
    }

    #[test]
    fn a_run_without_packets_is_as_late_as_what_was_due_in_it() {
        let (none, mut due) = (LatenessCounts::default(), LatenessCounts::default());
        let of = |due: &LatenessCounts| of(&none, due, None, 0.0);
        let nothing = of(&due);
        assert_eq!((nothing.packets, nothing.events, nothing.refused), (0, 0, None));
        (0..99).for_each(|_| due.add(4_000));
        due.add(300_000);
        let on_time = of(&due);
        assert_eq!((on_time.packets, on_time.events, on_time.late), (0, 100, 1));
        assert_eq!((on_time.p50, on_time.worst), (Span::from_micros(5), Span::from_micros(300)));
        assert_eq!(on_time.refused, None);
        due.add(300_000);
        let late = of(&due).refused.expect("2 of 101").text;
        assert!(late.starts_with("2 of 101 events (2.0 %) were handled 200 us or more too late"), "{late}");
    }
}
