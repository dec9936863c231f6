//! Links against a model of their own: a recursion over packets, in picoseconds, that knows no events.

use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::link::{Change, Events, Link, LinkConfig, QueueLimit};
use proptest::prelude::*;

use crate::common::link::{Alone, numbered};

/// Lindley's recursion with a schedule: a packet begins when it has come, the one before has left and the link is up, at
/// the rate of that moment, and propagates for the delay of the moment when it has left, never past the one before it. At
/// which nanosecond which packet arrives, and for how many picoseconds the link is busy.
fn model(config: &LinkConfig, offered: &[(u64, u32)]) -> (Vec<(u64, u64)>, u128) {
    const PS: u128 = 1000;
    // The last change of its kind up to that nanosecond; the schedule is in order.
    let rate_at = |ns: u64| {
        let changed = config.schedule.iter().rev().find(|c| c.rate.is_some() && c.at.as_nanos() <= ns);
        changed.map_or(config.rate, |change| change.rate).map_or(0, |rate| rate.bits_per_second())
    };
    let delay_at = |ns: u64| {
        let changed = config.schedule.iter().rev().find(|c| c.delay.is_some() && c.at.as_nanos() <= ns);
        changed.and_then(|change| change.delay).unwrap_or(config.delay).as_nanos() as u64
    };
    let (mut free, mut last, mut busy) = (0_u128, 0, 0);
    let (mut arrivals, mut starts) = (vec![], Vec::<(u64, u64)>::new());
    for (number, &(at, size)) in offered.iter().enumerate() {
        let wire = u64::from(size) + config.overhead.0;
        let mut start = free.max(u128::from(at) * PS);
        if rate_at((start / PS) as u64) == 0 {
            let up = |c: &&Change| {
                u128::from(c.at.as_nanos()) * PS > start && c.rate.is_some() && rate_at(c.at.as_nanos()) > 0
            };
            match config.schedule.iter().find(up) {
                Some(change) => start = u128::from(change.at.as_nanos()) * PS,
                // For ever: the schedules here end with a rate.
                None => unreachable!(),
            }
        }
        let start_ns = (start / PS) as u64;
        let waiting: Vec<u64> = starts.iter().filter(|s| s.0 > at).map(|s| s.1).collect();
        let full = match config.queue {
            QueueLimit::Packets(most) => waiting.len() as u32 >= most,
            QueueLimit::Bytes(most) => waiting.iter().sum::<u64>() + wire > most.0,
        };
        if start_ns > at && full {
            continue;
        }
        starts.push((start_ns, wire));
        let takes = u128::from(wire) * 8_000_000_000 * PS / u128::from(rate_at(start_ns));
        (free, busy) = (start + takes, busy + takes);
        let left = (free / PS) as u64;
        last = last.max(left + delay_at(left));
        arrivals.push((last, number as u64));
    }
    (arrivals, busy)
}

fn change() -> impl Strategy<Value = Change> {
    (0_u64..150_000_000, prop::option::of(0_u64..20_000_000), prop::option::of(0_i64..30_000_000)).prop_map(
        |(at, rate, delay)| Change {
            at: Time::from_nanos(at),
            rate: rate.map(|rate| Rate::ip(if rate < 3_000_000 { 0 } else { rate })),
            delay: delay.map(Span::from_nanos),
        },
    )
}

proptest! {
    #[test]
    fn both_kinds_of_links_do_what_the_recursion_says(
        gaps in prop::collection::vec((0_u64..2_000_000, 40_u32..1500), 1..150),
        rate in 200_000_u64..20_000_000, limit in 1_u32..12, by_bytes in any::<bool>(), overhead in 0_u64..60,
        mut schedule in prop::collection::vec(change(), 0..7),
    ) {
        schedule.sort_by_key(|change| change.at);
        schedule.push(Change { at: Time::from_nanos(200_000_000), rate: Some(Rate::ip(rate)), delay: None });
        let mut at = 0;
        let offered: Vec<_> = gaps.iter().map(|&(gap, size)| { at += gap; (at, size) }).collect();
        let queue = if by_bytes { QueueLimit::Bytes(Bytes(u64::from(limit) * 1500)) } else { QueueLimit::Packets(limit) };
        let config = LinkConfig {
            rate: Some(Rate::ip(rate)), delay: Span::from_millis(9), overhead: Bytes(overhead), queue, schedule, ..Default::default()
        };
        let (expected, busy) = model(&config, &offered);
        for events in [Events::Auto, Events::PerDequeue] {
            let link = Link::new(LinkConfig { events, ..config.clone() });
            let (fates, after) = Alone::new(link, numbered(&offered)).run();
            let got = fates.arrived;
            let was = after.link().busy(after.engine.now()).as_nanos() as u128 * 1000;
            prop_assert!(was.abs_diff(busy) <= 1000 * got.len() as u128, "busy for {} ps, not {}", was, busy);
            prop_assert_eq!(got.len(), expected.len());
            for (got, expected) in got.iter().zip(&expected) {
                prop_assert!(got.1 == expected.1 && got.0.abs_diff(expected.0) <= 1, "{:?} {:?}", got, expected);
            }
        }
    }
}
