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
