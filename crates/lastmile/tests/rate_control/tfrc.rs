//! TFRC against what ns-2 gave, and against itself.

use super::path::{Form, Path};
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};

const PATH: Path = Path {
    rate: Rate::ip(5_000_000),
    then: None,
    delay: Span::from_millis(20),
    queue: 60,
    mark: u64::MAX,
    loss: 0.0,
    size: Bytes(1000),
    feedback: Span::from_millis(40),
    seconds: 200,
    seed: 1,
};

fn mean(path: Path, name: &str, form: Form) -> f64 {
    let runs = (1..=10).map(|seed| Path { seed, ..path }.run(name, form).sent);
    runs.sum::<f64>() / 10.0
}

/// ns-2 2.35 with its own t_RTO and with t_RTO = 4 R: 5 Mbit/s, 20 ms each way, 60 packets of 1000 B, 10 seeds, kbit/s.
#[test]
fn mean_rates_are_those_of_ns_2() {
    for (loss, four_r, own) in [(0.003, 4209.0, 4144.0), (0.03, 1183.0, 997.0), (0.07, 596.0, 420.0)] {
        for (name, wanted, tolerance) in [("tfrc", four_r, 0.06), ("tfrc(preset=ns-2, header=0)", own, 0.05)]
        {
            let rate = mean(Path { loss, ..PATH }, name, Form::Receiver);
            assert!(
                (rate / wanted - 1.0).abs() <= tolerance,
                "{name} at {loss}: {rate:.0} instead of {wanted}"
            );
        }
    }
}

/// The sender computes the loss history from reports of each packet, with feedback as often as the receiver's.
#[test]
fn both_forms_give_the_same_mean_rate() {
    for loss in [0.0, 0.01, 0.05] {
        let rate = |form| mean(Path { loss, ..PATH }, "tfrc", form);
        let (sender, receiver) = (rate(Form::Sender), rate(Form::Receiver));
        assert!((sender / receiver - 1.0).abs() <= 0.02, "{loss}: {sender:.0} and {receiver:.0}");
    }
}

/// ns-2's defaults, 2 Mbit/s, 40 ms, 50 packets: 32 B of header are on the wire and not paced, so that without losses 2000
/// kbit/s carry 1939 of packets that count as 1000 B.
#[test]
fn a_header_that_is_not_paced_is_on_the_wire_all_the_same() {
    let path = Path { rate: Rate::ip(2_000_000), queue: 50, size: Bytes(1032), ..PATH };
    for (loss, wanted) in [(0.0, 1939.0), (0.01, 1800.0), (0.05, 612.0)] {
        let rate = mean(Path { loss, ..path }, "tfrc(preset=ns-2)", Form::Receiver) * 1000.0 / 1032.0;
        assert!((rate / wanted - 1.0).abs() <= 0.05, "{loss}: {rate:.0} instead of {wanted}");
    }
}

/// LDA's wireless last hop: unaware TFRC loses bandwidth to losses of 7.8 %, omniscient and mBiaz do not.
#[test]
fn a_classifier_gives_back_what_wireless_losses_cost() {
    let path = Path {
        rate: Rate::ip(800_000),
        queue: 13,
        mark: u64::MAX,
        size: Bytes(762),
        loss: 0.078,
        delay: Span::from_millis(22),
        ..PATH
    };
    for form in [Form::Sender, Form::Receiver] {
        let share = |name| path.run(name, form).arrived / (800.0 * (1.0 - 0.078));
        let (unaware, omniscient, biaz) = (share("tfrc"), share("tfrc+omniscient"), share("tfrc+biaz"));
        assert!(unaware < 0.55 && omniscient > 0.97 && biaz > 0.9, "{form:?}: {unaware} {omniscient} {biaz}");
    }
}
