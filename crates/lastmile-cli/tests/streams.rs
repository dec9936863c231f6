//! Streams at a controller's rate in the simulator: the two forms of TFRC, and what classifiers are told and counted by.

use lastmile::control;
use lastmile::endpoint::stream::Decision;
use lastmile_sim::roles::Makers;
use lastmile_sim::roles::stream::StreamOutcome;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::{Override, Scenario};

/// 5 Mbit/s, 20 ms each way.
const PATH: &str = r#"
name = "path"
duration = "200 s"
[host.sender]
clock = { offset = "3 s", skew_ppm = 40 }
[host.receiver]
[[link]]
from = "sender"
to = "receiver"
rate = "5 Mbit/s"
delay = "20 ms"
queue = "60 packets"
losses = [{ model = { kind = "bernoulli", rate = 0.0 } }]
back = { losses = [] }
[[stream]]
from = "sender"
to = "receiver"
control = "tfrc"
packet_size = "1000 B"
frame_rate = 1000
"#;

/// The stream's outcome, and the number of no-feedback timeouts.
fn run(set: &[(&str, &str)], seed: u64) -> (StreamOutcome, usize) {
    let set: Vec<_> = set.iter().map(|&(key, value)| Override::new(key, value)).collect();
    let scenario = Scenario::parse_with("path.toml", PATH, &set).unwrap();
    let run = simulate(&scenario, seed, &Makers::default(), Hooks::default()).unwrap();
    let silent = |event: &&lastmile::endpoint::Event| {
        matches!(event.what.of(), Some(Decision::Control(control::Decision::NoFeedback { .. })))
    };
    let timeouts = run.events.iter().filter(silent).count();
    let mut outcomes = run.found.stream.outcomes;
    (outcomes.remove(0), timeouts)
}

fn over(control: &str, loss: &str, feedback: &str, seed: u64) -> StreamOutcome {
    let set = [
        ("stream.0.control", control),
        ("link.0.losses.0.model.rate", loss),
        ("stream.0.feedback", feedback),
    ];
    run(&set, seed).0
}

/// Mean rates over 200 s, same seeds and feedback interval.
#[test]
fn both_forms_of_tfrc_give_the_same_mean_rate() {
    for feedback in ["50 ms", "rtt"] {
        for loss in ["0.0", "0.01", "0.05"] {
            let bytes = |control| {
                (1..=3).map(|seed| over(control, loss, feedback, seed).sent_bytes).sum::<u64>() as f64
            };
            let (sender, receiver) = (bytes("tfrc"), bytes("tfrc(form=receiver)"));
            let apart = receiver / sender - 1.0;
            assert!(apart.abs() <= 0.02, "{loss}, {feedback}: {:.2} %", apart * 100.0);
        }
    }
}

/// Independent losses of a link with a queue that overflows now and then: only `omniscient` is always right.
#[test]
fn verdicts_are_counted_against_what_really_lost_packets() {
    for form in ["sender", "receiver"] {
        let judged = |by: &str| over(&format!("tfrc(form={form})+{by}"), "0.03", "50 ms", 1);
        let omniscient = judged("omniscient");
        assert!(omniscient.congestion_lost > 20 && omniscient.wireless_lost > 1_000, "{omniscient:?}");
        assert_eq!((omniscient.mc, omniscient.mw), (Some(0.0), Some(0.0)), "{form}");
        let none = judged("none");
        assert_eq!(none.mw, Some(1.0), "{form}");
        assert!(
            none.sent_bytes * 2 < omniscient.sent_bytes,
            "{form}: {} {}",
            none.sent_bytes,
            omniscient.sent_bytes
        );
        // RFC 8888's stamps do not serve ZBS at the sender; times of receipt do.
        let coarse = judged("zbs").verdicts.unwrap();
        assert_eq!(coarse.classifier, if form == "sender" { "spike" } else { "zbs" });
        assert_eq!(coarse.shares.is_empty(), form == "sender", "{coarse:?}");
        let control = format!("tfrc(form={form})+zbs");
        let (zbs, _) = run(
            &[
                ("stream.0.control", &control),
                ("link.0.losses.0.model.rate", "0.03"),
                ("stream.0.receipt_times", if form == "sender" { "true" } else { "false" }),
            ],
            1,
        );
        let verdicts = zbs.verdicts.clone().unwrap();
        assert_eq!(verdicts.classifier, "zbs");
        let judged = verdicts.congestion + verdicts.wireless;
        // Those at the very end stay unjudged.
        let lost = zbs.congestion_lost + zbs.wireless_lost;
        assert!(judged <= lost && judged + 100 > lost, "{form}: {judged} of {lost}");
        assert!(
            (verdicts.shares.values().sum::<f64>() - 1.0).abs() < 1e-9 && verdicts.shares.len() == 3,
            "{verdicts:?}"
        );
    }
}

/// Feedback comes every 50 ms, and four round trips are 8: timers wait for it all the same.
#[test]
fn on_a_path_of_two_milliseconds_feedback_every_50_is_no_silence() {
    for control in [
        "tfrc",
        "tfrc(form=receiver)",
        "tfrc(preset=ns-2)",
        "tfrc(form=receiver, preset=ns-2)",
        "sqrt",
        "vtp",
    ] {
        let set = [("stream.0.control", control), ("link.0.delay", "200 us"), ("duration", "20 s")];
        let (outcome, timeouts) = run(&set, 1);
        let goodput = outcome.goodput_bps.unwrap();
        assert!(timeouts == 0 && goodput > 4_300_000.0, "{control}: {timeouts} timeouts, {goodput:.0} bit/s");
    }
}
