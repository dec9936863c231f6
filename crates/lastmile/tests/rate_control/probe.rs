//! Capacity probing around controllers: hand-offs between 150 kbit/s and 6 Mbit/s, after a minute.

use super::path::{Form, Log, Path};
use lastmile::control::Decision;
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};

const LOW: Rate = Rate::ip(150_000);
const HIGH: Rate = Rate::ip(6_000_000);

fn run(name: &str, from: Rate, to: Rate) -> Log {
    let path = Path {
        rate: from,
        then: Some((60, to)),
        delay: Span::from_millis(40),
        queue: 20,
        loss: 0.0,
        size: Bytes(1500),
        feedback: Span::from_millis(50),
        seconds: 120,
        seed: 1,
    };
    path.watch(name, Form::Sender).1
}

/// When each hand-off was noticed, in seconds, and the capacities before and after in kbit/s.
fn hand_offs(log: &Log) -> Vec<(f64, f64, f64)> {
    let kbps = |rate: Rate| rate.bits_per_second() as f64 / 1e3;
    let noticed = log.decisions.iter().filter_map(|(at, what)| match what {
        Decision::HandOff { from, to } => Some((at.as_nanos() as f64 / 1e9, kbps(*from), kbps(*to))),
        _ => None,
    });
    noticed.collect()
}

/// One window of 20 pairs takes some 5 s, since packets shrink to 231 B at 147 kbit/s (equation 4).
#[test]
fn a_hand_off_upwards_is_noticed_in_a_window_and_the_rate_follows() {
    for name in ["tfrc+probe", "tfrc(preset=ns-2)+probe", "sqrt+probe", "tfrc+probe+spike"] {
        let log = run(name, LOW, HIGH);
        let [(at, from, to)] = hand_offs(&log)[..] else { panic!("{name}: {:?}", hand_offs(&log)) };
        assert!((60.0..65.0).contains(&at), "{name}: noticed at {at}");
        assert!(
            (from / 150.0 - 1.0).abs() < 0.01 && (to / 6_000.0 - 1.0).abs() < 0.01,
            "{name}: {from}, {to}"
        );
        let (before, after) = (log.targets[59], log.targets[at as usize + 5]);
        assert!(after > 20.0 * before, "{name}: {before} to {after}");
        assert!(log.sizes.iter().any(|(_, size)| (200..=250).contains(&size.0)), "{name}: {:?}", log.sizes);
    }
}

/// The window that straddles the hand-off would tell the old capacity; what arrives tells it within a second.
#[test]
fn a_hand_off_downwards_is_noticed_by_what_arrives() {
    for name in ["tfrc+probe", "tfrc(preset=ns-2)+probe", "sqrt+probe"] {
        let log = run(name, HIGH, LOW);
        let first = hand_offs(&log)[0];
        assert!((60.0..61.5).contains(&first.0), "{name}: {first:?}");
        assert!(first.2 < 600.0, "{name}: {first:?}");
        assert!(log.targets[61..66].iter().all(|rate| *rate <= 300.0), "{name}: {:?}", &log.targets[60..70]);
    }
}

#[test]
fn where_nothing_changes_there_is_no_hand_off() {
    for name in ["tfrc+probe", "vtp+probe", "sqrt+probe"] {
        for rate in [LOW, HIGH] {
            assert_eq!(hand_offs(&run(name, rate, rate)), [], "{name}, {rate}");
        }
    }
}

/// The same run with its notice heeded rises faster.
#[test]
fn a_notice_alone_changes_no_rate() {
    let (heeded, alone) = (run("tfrc+probe", LOW, HIGH), run("tfrc+probe(notice_only=true)", LOW, HIGH));
    assert_eq!(hand_offs(&heeded), hand_offs(&alone));
    assert!(
        heeded.targets[62] > 2.0 * alone.targets[62],
        "{:?}, {:?}",
        &heeded.targets[60..66],
        &alone.targets[60..66]
    );
}
