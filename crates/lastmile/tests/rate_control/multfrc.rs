//! MULTFRC over paths that lose packets at random, and over paths that do not.

use super::path::{Came, Form, Log, Path};
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};

/// 10 Mbit/s, 40 ms, a queue of one pipe of 50 packets.
const PATH: Path = Path {
    rate: Rate::ip(10_000_000),
    then: None,
    delay: Span::from_millis(20),
    queue: 50,
    mark: u64::MAX,
    loss: 0.02,
    size: Bytes(1000),
    feedback: Span::from_millis(20),
    seconds: 120,
    seed: 1,
};

fn run(path: Path, name: &str) -> (Came, Log) {
    path.watch(name, Form::Sender)
}

/// At 2 % of loss a TFRC has 1.6 Mbit/s, at 5 % 0.8; behind these losses the link carries 9.8 and 9.5.
#[test]
fn random_losses_cost_it_little() {
    for (loss, least) in [(0.02, 9_200.0), (0.05, 8_700.0)] {
        for name in ["multfrc", "multfrc(preset=ns-2)"] {
            let (tfrc, came) = (run(Path { loss, ..PATH }, "tfrc").0, run(Path { loss, ..PATH }, name).0);
            assert!(came.arrived > least && came.arrived > 5.0 * tfrc.arrived, "{loss}: {came:?}, {tfrc:?}");
            assert!(came.overflowed < 100, "{loss}: {came:?}");
        }
    }
}

/// From 60 s on the link has 3 Mbit/s, which two connections of 1.5 Mbit/s fill.
#[test]
fn it_follows_the_link_down() {
    let (_, log) = run(Path { then: Some((60, Rate::ip(3_000_000))), ..PATH }, "multfrc");
    let mean = |seconds: core::ops::Range<usize>| {
        log.targets[seconds.clone()].iter().sum::<f64>() / seconds.len() as f64
    };
    let (before, after) = (mean(20..60), mean(70..119));
    assert!(before > 9_200.0 && (2_000.0..3_100.0).contains(&after), "{before}, {after}");
}

/// Without random losses a queue is all that there is to go by: connections come and go, and the path carries less than with one
/// TFRC alone, as VTP says of it (section 5.1).
#[test]
fn on_a_path_without_losses_it_carries_less_than_one_connection() {
    let path = Path { loss: 0.0, ..PATH };
    let (tfrc, came) = (run(path, "tfrc").0, run(path, "multfrc").0);
    assert!(came.arrived < 0.97 * tfrc.arrived && came.arrived > 0.75 * tfrc.arrived, "{came:?}, {tfrc:?}");
}

/// A quarter of a connection at a time: no queue overflows since a whole one came, whether one is needed or fourteen.
#[test]
fn fractions_of_connections_fill_the_path_without_overflowing_it() {
    for (loss, least) in [(0.0, 9_500.0), (0.002, 9_500.0), (0.02, 9_500.0), (0.05, 9_100.0)] {
        let (came, _) =
            run(Path { loss, ..PATH }, "multfrc(fractions=true, alpha=0.25, beta=0.25, window=2)");
        assert!(came.arrived > least && came.overflowed < 300, "{loss}: {came:?}");
    }
}
