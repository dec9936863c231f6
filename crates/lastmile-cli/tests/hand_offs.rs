//! Hand-offs of a receiver between a cell of 150 kbit/s and 802.11b, noticed by the packet pairs of the stream to it (TFRC Probe,
//! section 6).

use lastmile::control::Decision as Controlled;
use lastmile::endpoint::stream::Decision;
use lastmile::time::Time;
use lastmile_sim::roles::Makers;
use lastmile_sim::roles::stream::StreamOutcome;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::{Override, Scenario};

/// From the cell to the access point at 60 s, and back at 120 s.
const PATH: &str = r#"
name = "hand-offs"
duration = "180 s"
[host.server]
[host.phone]
clock = { offset = "3 s", skew_ppm = 40 }
[[link]]
from = "server"
to = "cell"
delay = "30 ms"
[[link]]
from = "cell"
to = "phone"
rate = "150 kbit/s"
queue = "20 packets"
delay = "20 ms"
[[link]]
from = "server"
to = "ap"
delay = "20 ms"
[[wlan]]
standard = "b"
station = [{ name = "ap" }, { name = "phone", ap = "ap" }]
[[handoff]]
at = "60 s"
host = "phone"
to = "ap"
[[handoff]]
at = "120 s"
host = "phone"
to = "cell"
[[stream]]
from = "server"
to = "phone"
control = "tfrc+probe"
frame_rate = 200
receipt_times = true
"#;
const UP: f64 = 60.0;
const DOWN: f64 = 120.0;
/// Equation 4's t.
const WINDOW: f64 = 5.0;

/// A stream's results, times in seconds and rates in kbit/s.
struct Told {
    outcome: StreamOutcome,
    /// Times at which pairs gave a capacity, or a bound of it.
    estimates: Vec<f64>,
    /// Times at which a hand-off was noticed, and the capacities before and after.
    hand_offs: Vec<(f64, f64, f64)>,
    /// Sent and arrived, each second.
    rates: Vec<(f64, f64)>,
    /// Round trips of reports.
    rtts: Vec<(f64, f64)>,
}

fn run(control: &str, set: &[(&str, &str)]) -> Told {
    let set: Vec<_> = [("stream.0.control", control)].iter().chain(set).copied().collect();
    let set: Vec<_> = set.iter().map(|&(key, value)| Override::new(key, value)).collect();
    let scenario = Scenario::parse_with("hand-offs.toml", PATH, &set).unwrap();
    let mut run = simulate(&scenario, 1, &Makers::default(), Hooks::default()).unwrap();
    let seconds = |at: Time| (at - Time::ZERO).as_secs_f64();
    let outcome = run.found.stream.outcomes.remove(0);
    let mut told =
        Told { outcome, estimates: Vec::new(), hand_offs: Vec::new(), rates: Vec::new(), rtts: Vec::new() };
    let mut before = Default::default();
    for event in &run.events {
        let at = seconds(event.at);
        match event.what.of() {
            Some(Decision::Control(Controlled::Capacity { .. } | Controlled::CapacityAbove { .. })) => {
                told.estimates.push(at);
            }
            Some(Decision::Control(Controlled::HandOff { from, to })) => {
                let kbits = |rate: &lastmile::units::Rate| rate.bits_per_second() as f64 / 1e3;
                told.hand_offs.push((at, kbits(from), kbits(to)));
            }
            Some(Decision::MediaProgress { sent, .. }) => {
                let (bytes, acknowledged) =
                    core::mem::replace(&mut before, (sent.bytes, sent.acknowledged_bytes));
                let kbits = |now, then| (now - then) as f64 * 8.0 / 1e3;
                told.rates
                    .push((kbits(sent.bytes.0, bytes.0), kbits(sent.acknowledged_bytes.0, acknowledged.0)));
            }
            Some(Decision::MediaReported { rtt: Some(rtt), .. }) => told.rtts.push((at, rtt.as_secs_f64())),
            _ => {}
        }
    }
    told
}

impl Told {
    /// The mean rate that was sent at over these seconds.
    fn sent(&self, from: f64, to: f64) -> f64 {
        let rates = &self.rates[from as usize..(to as usize).min(self.rates.len())];
        rates.iter().map(|rates| rates.0).sum::<f64>() / rates.len() as f64
    }

    fn least_rtt(&self, from: f64, to: f64) -> f64 {
        let within = self.rtts.iter().filter(|(at, _)| (from..to).contains(at));
        within.map(|(_, rtt)| *rtt).fold(f64::INFINITY, f64::min)
    }
}

/// The window under way at the hand-off tells the new path, whose delays are less: noticed by the first estimate after it. With fast
/// rate adaptation ten times the rate within 10 s, and without it not.
#[test]
fn a_hand_off_upwards_is_noticed_within_a_window_and_the_rate_is_tenfold_in_10_s() {
    for control in [
        "tfrc+probe",
        "tfrc(preset=ns-2)+probe",
        "tfrc+probe+zbs",
        "vtp+probe",
        "sqrt+probe",
        "tfrc(form=receiver)+probe",
    ] {
        let told = run(control, &[]);
        let first = *told.estimates.iter().find(|at| **at >= UP).unwrap();
        let (at, from, to) = told.hand_offs[0];
        assert!(at == first && at < UP + WINDOW, "{control}: {:?}, {first}", told.hand_offs);
        assert!((from / 150.0 - 1.0).abs() < 0.05 && to > 5.0 * from, "{control}: {:?}", told.hand_offs);
        let (before, after) = (told.sent(UP - 10.0, UP), told.sent(UP + 10.0, UP + 11.0));
        assert!(after >= 10.0 * before, "{control}: {before:.0} to {after:.0} kbit/s");
        // Nothing that was learnt of the cell makes of a full queue behind the access point a wireless loss.
        let (sent, arrived) = told.rates[UP as usize + 15..DOWN as usize]
            .iter()
            .fold((0.0, 0.0), |sum, rates| (sum.0 + rates.0, sum.1 + rates.1));
        assert!(arrived == 0.0 || arrived > 0.95 * sent, "{control}: {arrived:.0} of {sent:.0}");
        assert!(told.outcome.hand_offs.is_some_and(|hand_offs| hand_offs >= 2), "{control}");
    }
}

/// The queue that the old rate left in the cell drains at least once within a window of the hand-off.
#[test]
fn a_hand_off_downwards_leaves_no_standing_queue_beyond_a_window() {
    for control in ["tfrc+probe", "vtp+probe", "sqrt+probe", "tfrc(form=receiver)+probe"] {
        let told = run(control, &[]);
        let noticed = told.hand_offs.iter().find(|(at, ..)| *at >= DOWN).copied();
        let (at, from, to) = noticed.unwrap_or_else(|| panic!("{control}: {:?}", told.hand_offs));
        assert!(at < DOWN + WINDOW && from > 5.0 * to && to <= 155.0, "{control}: {:?}", told.hand_offs);
        // 100 ms there and back, and a packet of 1200 B takes 64 ms.
        let least = told.least_rtt(at, at + WINDOW);
        assert!(least < 0.2, "{control}: {least} s");
        let alone = told.hand_offs.iter().filter(|(at, ..)| *at >= DOWN).count();
        assert_eq!(alone, 1, "{control}: {:?}", told.hand_offs);
    }
}

/// TFRC Probe, figure 6: without fast rate adaptation the same run stays behind.
#[test]
fn a_notice_alone_leaves_the_rate_to_the_scheme() {
    for control in ["tfrc(preset=ns-2)+probe", "tfrc+probe"] {
        let with = run(control, &[]);
        let without = run(&control.replace("probe", "probe(notice_only=true)"), &[]);
        assert!((with.hand_offs[0].0 - without.hand_offs[0].0).abs() < 0.01);
        // Both fill the cell later.
        let mean = |told: &Told| told.sent(UP, UP + 5.0);
        assert!(mean(&with) > 1.1 * mean(&without), "{control}: {:.0}, {:.0}", mean(&with), mean(&without));
    }
}

/// RFC 8888's own stamps tell at least a bound of five times the old capacity.
#[test]
fn coarse_stamps_notice_the_hand_off_as_well() {
    let told = run("tfrc+probe", &[("stream.0.receipt_times", "false")]);
    let (at, ..) = told.hand_offs[0];
    assert!((UP..UP + WINDOW).contains(&at), "{:?}", told.hand_offs);
}
