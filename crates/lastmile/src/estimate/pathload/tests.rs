//! pathload's tests on trends, rates and whole runs over a FIFO as a fluid, by hand.

use super::stream::verdict;
use super::*;
use crate::estimate::Outcome;
use crate::observe::signal::Trend;
use crate::observe::testing::record;
use crate::report::{Fate, Pattern};
use crate::time::Time;

fn tool(config: PathloadConfig) -> Pathload {
    Pathload::new(config, Conditions::exact(1))
}

/// Five medians of which so many are above the one before.
fn trend(medians: [f64; 5]) -> Trend {
    let delays: Vec<f64> = medians.iter().flat_map(|median| [*median; 5]).collect();
    Trend::of(&delays).unwrap()
}

#[test]
fn both_tests_and_their_bands_by_hand() {
    // PCT 4 / 5 = 0.8 and PDT (9 - 1) / 8 = 1: both rise.
    assert_eq!(verdict(&trend([1.0, 3.0, 5.0, 7.0, 9.0])), Delays::Rise);
    // PCT 3 / 5 = 0.6, between the bands; PDT (4 - 0) / (5 + 3 + 1 + 1) = 0.4, between them too.
    assert_eq!(verdict(&trend([0.0, 5.0, 2.0, 3.0, 4.0])), Delays::Unclear);
    // PCT 3 / 5 and PDT (2 - 0) / (3 + 3 + 1 + 1) = 0.25.
    assert_eq!(verdict(&trend([0.0, 3.0, 0.0, 1.0, 2.0])), Delays::Stay);
    // PCT 3 / 5 and PDT (6 - 1) / (2 + 1 + 3 + 1) = 0.71: one is unclear, the other decides.
    assert_eq!(verdict(&trend([1.0, 3.0, 2.0, 5.0, 6.0])), Delays::Rise);
    // PCT 1 / 5 and PDT (9 - 1) / 8 = 1: they disagree.
    assert_eq!(verdict(&trend([1.0, 1.0, 1.0, 1.0, 9.0])), Delays::Unclear);
    assert_eq!(verdict(&trend([3.0; 5])), Delays::Stay);
}

/// R T / 8 at 80 us, 228 B at least, and from 150 Mbit/s on the largest size with a gap of whole microseconds.
#[test]
fn sizes_and_gaps_of_streams() {
    let of = |rate: f64| {
        let plan = tool(PathloadConfig::default()).stream(rate);
        (plan.packets[0].size.0, plan.packets[1].offset.as_nanos())
    };
    assert_eq!(of(60e6), (600, 80_000));
    assert_eq!(of(10e6), (228, 182_400));
    assert_eq!(of(200e6), (1488, 59_520));
}

#[test]
fn the_rate_at_which_a_stream_left_is_without_its_longest_gaps() {
    let mut sent: Vec<u64> = (0..21).map(|k| k * 100).collect();
    let even = left(&record(Pattern::Train, &sent, &sent, &[None; 21])).unwrap();
    assert!((even - 1488.0 * 8e4).abs() < 1.0, "{even}");
    // Two late packets of 20 gaps: 15 % are three gaps.
    sent[7] += 60;
    sent[12] += 80;
    let rate = left(&record(Pattern::Train, &sent, &sent, &[None; 21])).unwrap();
    // The gaps of 40 and 20 us count, the longest three do not.
    assert!((rate - 1488.0 * 8.0 / ((40.0 + 20.0 + 15.0 * 100.0) / 17.0 * 1e-6)).abs() < 1.0, "{rate}");
}

/// Of twenty streams outside 5 to 6 Mbit/s three contradict it; a fleet at 6.5 ended by losses bounds it, one at 8 does not.
#[test]
fn streams_that_contradict_the_range_are_told_of() {
    let mut tool = tool(PathloadConfig::default());
    tool.told = [(8e6, Delays::Rise), (4e6, Delays::Stay)].repeat(10);
    let codes = |tool: &Pathload| tool.doubts(5e6, 6e6).iter().map(|w| w.code).collect::<Vec<_>>();
    assert_eq!(codes(&tool), []);
    (tool.told[0].1, tool.told[1].1) = (Delays::Stay, Delays::Rise);
    assert_eq!(codes(&tool), []);
    tool.told[2].1 = Delays::Stay;
    assert_eq!(codes(&tool), [WarningCode::Changing]);
    // Within the range a stream may say either.
    tool.told[..4].iter_mut().for_each(|told| told.0 = 5.5e6);
    assert_eq!(codes(&tool), [WarningCode::Partial]);
    tool.told = [(8e6, Delays::Rise)].repeat(20);
    tool.lost = Some(8e6);
    assert_eq!(codes(&tool), []);
    tool.lost = Some(6.5e6);
    assert_eq!(codes(&tool), [WarningCode::PoorFit]);
}

/// A plan over a FIFO of so many Mbit/s with so many of others as a fluid, stamps of a clock 50 ppm fast.
fn over(plan: &StreamPlan, mbps: f64, others: f64) -> StreamRecord {
    let (mut queue, mut before) = (0.0_f64, 0.0_f64);
    let us = |span: Span| span.as_nanos() as f64 / 1e3;
    let sent: Vec<u64> = plan.packets.iter().map(|p| us(p.offset) as u64).collect();
    let mut record = record(plan.pattern, &sent, &sent, &vec![None; sent.len()]);
    record.planned = plan.packets.iter().map(|p| p.offset).collect();
    for (r, p) in record.packets.iter_mut().zip(&plan.packets) {
        let at = us(p.offset);
        queue = (queue - (at - before) * (1.0 - others / mbps)).max(0.0) + p.size.bits() as f64 / mbps;
        before = at;
        (r.sent, r.size) = (Time::from_nanos(p.offset.as_nanos() as u64), p.size);
        if queue < 60_000.0 * 8.0 / mbps {
            r.fate = Fate::Arrived(Time::from_nanos(((at + queue) * 1_000.05) as u64 + 9_000_000));
        }
    }
    record
}

fn run(
    config: PathloadConfig,
    change: impl Fn(StreamRecord) -> StreamRecord,
    mbps: f64,
    others: f64,
) -> (Outcome, u64) {
    let (mut tool, mut bytes) = (tool(config), 0);
    loop {
        match tool.step() {
            Step::Send(plan) => {
                bytes += plan.bytes().0;
                tool.on_stream(&change(over(&plan, mbps, others)));
            }
            Step::Pause(_) => {}
            Step::Done(outcome) => return (outcome, bytes),
        }
    }
}

fn left_over(outcome: &Outcome) -> f64 {
    let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
    found[0].value.rate().unwrap().bits_per_second() as f64 / 1e6
}

#[test]
fn fleets_find_what_is_left_of_a_fluid_within_the_range() {
    for (mbps, others) in [(10.0, 0.0), (10.0, 4.0), (1.0, 0.3), (90.0, 30.0)] {
        let (outcome, bytes) = run(PathloadConfig::default(), |r| r, mbps, others);
        let left = left_over(&outcome);
        assert!((left / (mbps - others) - 1.0).abs() < 0.05, "{left} of {mbps} under {others}");
        assert!(mbps != 10.0 || bytes < 2_400_000, "{bytes}");
    }
    let of_ecnprobe = Some(Rate::ip(200_000));
    let config = PathloadConfig { omega: of_ecnprobe, chi: of_ecnprobe, ..PathloadConfig::default() };
    assert!((left_over(&run(config, |r| r, 10.0, 4.0).0) - 6.0).abs() < 0.2);
}

/// One of 50 packets lost is none of the stream's; one of 25 makes all streams lossy, which is a trend at any rate.
#[test]
fn losses_and_a_slow_link_are_as_the_program_takes_them() {
    let lose = |every: usize| {
        move |mut record: StreamRecord| {
            if record.pattern == Pattern::Train {
                record.packets.iter_mut().skip(3).step_by(every).for_each(|p| p.fate = Fate::Lost);
            }
            record
        }
    };
    assert!((left_over(&run(PathloadConfig::default(), lose(50), 10.0, 4.0).0) / 6.0 - 1.0).abs() < 0.05);
    let (outcome, _) =
        run(PathloadConfig { max_fleets: 5, ..PathloadConfig::default() }, lose(25), 10.0, 4.0);
    assert!(matches!(outcome, Outcome::Refused(Refusal::TooLossy { .. })), "{outcome:?}");
    // 100 packets of 228 B at 100 kbit/s take 1.8 s: one is a fleet.
    let mut slow = tool(PathloadConfig::default());
    slow.on_stream(&over(&StreamPlan::burst(50, Bytes(1488)), 0.1, 0.0));
    let _ = slow.step();
    for (length, fleets) in [(35, 0), (20, 0), (5, 0), (100, 1)] {
        let plan = loop {
            match slow.step() {
                Step::Send(plan) => break plan,
                Step::Pause(_) => {}
                Step::Done(outcome) => panic!("{outcome:?}"),
            }
        };
        slow.on_stream(&over(&plan, 0.1, 0.0));
        if slow.fleets > 0 || plan.packets.len() == 100 {
            assert_eq!(slow.fleets, 1);
            return;
        }
        assert!(plan.packets.len() <= length && slow.fleets == fleets);
    }
}

/// Stamps in batches of four: the last of each counts, and ten streams' worth of batches are a trend.
#[test]
fn batches_are_read_by_their_last_packets() {
    let batch = |mut record: StreamRecord| {
        for four in record.packets.chunks_mut(4) {
            let last = four.iter().rev().find_map(|p| p.fate.arrived());
            four.iter_mut().filter(|p| p.fate.arrived().is_some()).for_each(|p| {
                p.fate = last.map_or(Fate::Lost, Fate::Arrived);
            });
        }
        record
    };
    let (outcome, _) = run(PathloadConfig::default(), batch, 10.0, 4.0);
    assert!((left_over(&outcome) / 6.0 - 1.0).abs() < 0.08, "{outcome:?}");
}
