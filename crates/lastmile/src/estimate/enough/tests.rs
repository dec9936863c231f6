//! Whole sessions, over paths of a few lines.

use super::*;
use crate::estimate::{Outcome, Refusal};
use crate::observe::testing::record;
use crate::report::{Direction, Fate, Pattern, StreamRecord};

/// A path of 10 Mbit/s of which a constant stream takes `others`, packet by packet in no time.
fn fifo(plan: &StreamPlan, others: f64) -> StreamRecord {
    let sent: Vec<u64> = plan.packets.iter().map(|p| p.offset.as_nanos() as u64 / 1_000).collect();
    let (mut free, mut last) = (0.0_f64, 0.0_f64);
    let mut came = Vec::new();
    for (k, (&at, packet)) in sent.iter().zip(&plan.packets).enumerate() {
        let at = at as f64;
        // Others' packets of 1,200 us, as their share of the time makes them.
        let busy = if plan.pattern == Pattern::Uneven && (k as f64 * others).fract() + others >= 1.0 {
            600.0
        } else {
            0.0
        };
        let queue = if plan.pattern == Pattern::Uneven { 0.0 } else { (at - last) * others };
        free = (free + queue).max(at + busy);
        last = at;
        free += packet.size.bits() as f64 / 10.0;
        came.push(Some(900 + free as u64));
    }
    let mut record = record(plan.pattern, &sent, &sent, &came);
    record.packets.iter_mut().zip(&plan.packets).for_each(|(packet, planned)| packet.size = planned.size);
    record
}

fn drive(rate: u64, stream: impl Fn(&StreamPlan) -> StreamRecord) -> (Outcome, u64) {
    let config = EnoughConfig { rate: Rate::ip(rate * 1_000), ..EnoughConfig::default() };
    let (mut enough, mut bytes) = (Enough::new(config, Conditions::exact(1)), 0);
    for _ in 0..200 {
        match enough.step() {
            Step::Send(plan) => {
                bytes += plan.bytes().0;
                enough.on_stream(&stream(&plan));
            }
            Step::Pause(_) => {}
            Step::Done(outcome) => return (outcome, bytes),
        }
    }
    panic!("no end")
}

#[test]
fn six_of_ten_are_left() {
    for (rate, answer, most) in [
        (12_000, Answer::No, 24_000),
        (7_200, Answer::No, 120_000),
        (4_500, Answer::Yes, 120_000),
        (3_000, Answer::Yes, 30_000),
    ] {
        let (outcome, bytes) = drive(rate, |plan| fifo(plan, 0.4));
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        assert_eq!(
            (found.len(), found[0].quantity, found[0].value.answer()),
            (1, Quantity::Enough, Some(answer)),
            "{rate}"
        );
        assert!(bytes <= most && found[0].warnings.is_empty(), "{rate}: {bytes} {:?}", found[0].warnings);
    }
    let (outcome, _) = drive(6_000, |plan| fifo(plan, 0.4));
    let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
    assert_eq!(found[0].value, Value::Unknown);
    let why = found[0].warning().unwrap_or_default();
    assert!(why.contains("the limit of 12 rounds, leave both answers open"), "{why}");
}

/// 9.9 of 10 are left, or 9: rates above the link's are no reason for small packets, most of which met nobody, to bet on either side.
#[test]
fn rates_above_the_link_are_no_on_a_path_that_is_idle_or_nearly() {
    for (others, rates) in [(0.01, [10_400, 11_880, 12_870, 14_850]), (0.1, [10_100, 10_800, 11_700, 13_500])]
    {
        for rate in rates {
            let (outcome, bytes) = drive(rate, |plan| fifo(plan, others));
            let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
            assert_eq!(
                found[0].value,
                Value::Answer(Answer::No),
                "{rate}, {others}: {:?}",
                found[0].warning()
            );
            assert!(bytes <= 150_000, "{rate}, {others}: {bytes}");
        }
    }
}

/// One small packet of 40 is lost and no other: neither 1 % nor 5 %.
#[test]
fn losses_that_leave_the_answer_open_are_its_reason() {
    let small = std::cell::Cell::new(0);
    let (outcome, _) = drive(3_000, |plan| {
        let mut record = fifo(plan, 0.0);
        for packet in record.packets.iter_mut().filter(|_| plan.pattern == Pattern::Uneven) {
            small.set(small.get() + 1);
            if small.get() % 40 == 20 {
                packet.fate = Fate::Lost;
            }
        }
        record
    });
    let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
    assert_eq!(found[0].value, Value::Unknown);
    let why = found[0].warning().unwrap_or_default();
    assert!(why.contains("9 of 360 small packets were lost, too few packets to tell 1 % from 5 %"), "{why}");
}

/// Packets come in frames of seven, as from a station that aggregates, so that pairs tell nothing: a yes says that it sees no bucket.
#[test]
fn a_yes_by_trains_alone_says_that_it_sees_no_bucket() {
    let (outcome, _) = drive(3_000, |plan| {
        let mut record = fifo(plan, 0.0);
        let last = record.packets.len() - 1;
        let came: Vec<_> = record.packets.iter().map(|packet| packet.fate).collect();
        for (k, packet) in record.packets.iter_mut().enumerate() {
            packet.fate = came[(k / 7 * 7 + 6).min(last)];
        }
        record
    });
    let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
    assert_eq!((found[0].value, found[0].burst), (Value::Answer(Answer::Yes), None));
    let why = found[0].warning().unwrap_or_default();
    assert!(why.contains("a token bucket of any size would not be seen"), "{why}");
}

/// One packet in five is lost, or all are, or they come in a wrong order.
#[test]
fn losses_are_no_and_silence_and_disorder_are_refused() {
    let lossy = |every: usize| {
        drive(3_000, move |plan| {
            let mut record = fifo(plan, 0.0);
            record.packets.iter_mut().step_by(every).for_each(|packet| packet.fate = Fate::Lost);
            record
        })
        .0
    };
    let Outcome::Found(found) = lossy(5) else { panic!("a loss of a fifth is an answer") };
    assert_eq!(found[0].value, Value::Answer(Answer::No));
    assert!(found[0].warning().is_some_and(|text| text.contains("were lost")), "{found:?}");
    let outcome = lossy(1);
    assert!(matches!(outcome, Outcome::Refused(Refusal::TooLossy { .. })), "{outcome:?}");
    let (outcome, _) = drive(3_000, |plan| {
        let mut record = StreamRecord { direction: Direction::RoundTrip, ..fifo(plan, 0.0) };
        for packet in record.packets.iter_mut().step_by(2) {
            packet.fate =
                packet.fate.arrived().map_or(Fate::Lost, |at| Fate::Arrived(at + Span::from_millis(30)));
        }
        record
    });
    assert!(matches!(outcome, Outcome::Refused(Refusal::Reordered { .. })), "{outcome:?}");
}
