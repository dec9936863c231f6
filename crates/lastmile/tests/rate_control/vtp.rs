//! VTP over paths whose queue holds half of the pipe, the pipe, and twice the pipe of 25 packets.

use super::path::{Came, Form, Path};
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};

fn run(name: &str, loss: f64, queue: u64) -> Came {
    let path = Path {
        rate: Rate::ip(5_000_000),
        then: None,
        delay: Span::from_millis(20),
        queue,
        mark: u64::MAX,
        loss,
        size: Bytes(1000),
        feedback: Span::from_millis(10),
        seconds: 100,
        seed: 1,
    };
    path.run(name, Form::Sender)
}

/// Some 60,000 packets. The hold by areas loses the least; that by rounds, which holds nothing at B >= P, up to 4 %.
#[test]
fn it_fills_paths_of_any_buffer_and_hardly_overflows_them() {
    for queue in [12, 25, 50] {
        for (name, fills, overflows) in
            [("vtp", 4_990.0, 400), ("vtp(hold=rounds)", 4_990.0, 1_300), ("vtp(cut=window)", 4_600.0, 250)]
        {
            let came = run(name, 0.0, queue);
            assert!(
                came.arrived >= fills && came.overflowed <= overflows,
                "{name}, queue of {queue}: {came:?}"
            );
        }
    }
}

/// Equation 5 where the round trip falls: after each cut the rate swings up by as much as the queue drained.
#[test]
fn following_a_falling_round_trip_swings() {
    let (steady, swinging) =
        (run("vtp(hold=rounds)", 0.0, 50), run("vtp(hold=rounds, falling=true)", 0.0, 50));
    assert!(swinging.overflowed > 4 * steady.overflowed, "{swinging:?}, {steady:?}");
}

/// Rest of 5 Mbit/s behind losses of 2 and 5 %; `none` in place of its classifier takes all for congestion.
#[test]
fn wireless_losses_cost_what_they_take() {
    for (loss, kept, without) in [(0.02, 4_800.0, 3_000.0), (0.05, 4_550.0, 1_600.0)] {
        let (vtp, none) = (run("vtp", loss, 25), run("vtp+none", loss, 25));
        assert!(vtp.arrived >= kept, "{loss}: {vtp:?}");
        assert!(none.arrived <= without, "{loss}: {none:?}");
    }
}

/// All losses judged wireless, those of a full queue too: such a classifier is doubted once a fifth is lost.
#[test]
fn a_classifier_that_is_always_wrong_does_not_double_the_rate() {
    for scheme in ["vtp", "vtp(hold=rounds)", "vtp(cut=window)", "tfrc", "multfrc"] {
        let came = run(&format!("{scheme}+spike-rtt(start=1, end=1)"), 0.0, 25);
        assert!(came.arrived > 4_900.0 && came.sent <= 1.2 * came.arrived, "{scheme}: {came:?}");
    }
}

/// 6 Mbit/s that become 0.15 behind a queue that then lasts a second, with 2 % of random losses.
#[test]
fn a_large_step_down_is_answered_in_the_queues_own_time() {
    for (name, most) in [("vtp", 3), ("tfrc+spike", 2)] {
        for seed in 1..=5 {
            let path = Path {
                rate: Rate::ip(6_000_000),
                then: Some((30, Rate::ip(150_000))),
                delay: Span::from_millis(20),
                queue: 15,
                mark: u64::MAX,
                loss: 0.02,
                size: Bytes(1200),
                feedback: Span::from_millis(50),
                seconds: 60,
                seed,
            };
            let targets = path.watch(name, Form::Sender).1.targets;
            let above = targets[30..].iter().filter(|target| **target > 1.3 * 150.0).count();
            assert!(above <= most, "{name}, seed {seed}: {:?}", &targets[28..]);
        }
    }
}
