//! Trains behind token buckets, worked by hand, and what is none of theirs.

use super::*;
use crate::observe::testing::record;

/// Packets of 1488 B, sent `apart` us apart, that come at these times in us.
fn stream(apart: u64, came: &[u64]) -> StreamRecord {
    let sent: Vec<u64> = (0..came.len() as u64).map(|k| k * apart).collect();
    let came: Vec<Option<u64>> = came.iter().map(|at| Some(*at)).collect();
    record(Pattern::Train, &sent, &sent, &came)
}

/// A link on which a packet takes 100 us and a shaper at 500 us a packet, a fifth of that, whose bucket holds 8 of them: of
/// 30 packets that come every 100 us 8 / (1 - 1/5) = 10 pass at the link's rate, the last of these a part of the way.
fn shaped(n: u64) -> Vec<u64> {
    (0..n).map(|k| 100 + (100 * k).max(500 * (k + 1).saturating_sub(8))).collect()
}

const SLOT: Span = Span::from_micros(100);
const NOISE: Span = Span::from_nanos(2);

#[test]
fn a_bucket_shows_where_its_tokens_are_spent() {
    let slowdown = Slowdown::of(&stream(100, &shaped(30)), SLOT, NOISE, None).unwrap();
    assert_eq!((slowdown.at, slowdown.gaps.len(), slowdown.gap()), (9, 21, 500_000.0));
    assert_eq!(slowdown.passed, (10, 1_000_000));
    assert_eq!(slowdown.slow, (20, 500_000 * 20));
    // Fewer than four slow gaps, which others may have filled; no bucket; sent as slowly as it came.
    assert!(Slowdown::of(&stream(100, &shaped(13)), SLOT, NOISE, None).is_some());
    assert_eq!(Slowdown::of(&stream(100, &shaped(12)), SLOT, NOISE, None), None);
    let even: Vec<u64> = (1..=30).map(|k| 100 * k).collect();
    assert_eq!(Slowdown::of(&stream(100, &even), SLOT, NOISE, None), None);
    let slow: Vec<u64> = (1..=30).map(|k| 500 * k).collect();
    assert_eq!(Slowdown::of(&stream(500, &slow), SLOT, NOISE, None), None);
    // A single gap that others left free.
    let mut free = shaped(30);
    free.iter_mut().skip(27).for_each(|at| *at -= 400);
    assert_eq!(Slowdown::of(&stream(100, &free), SLOT, NOISE, None), None);
}

/// A bucket that ends before the last one to three packets, at a fifth of the link's rate, and what others or late stamps do.
#[test]
fn a_bucket_that_ends_with_the_train_shows_by_the_length_of_its_gaps() {
    let train = |gaps: &[u64]| {
        let came = (0..30).map(|k| 100 + 100 * k + gaps.iter().rev().skip(29 - k as usize).sum::<u64>());
        stream(100, &came.collect::<Vec<_>>())
    };
    let seen = |gaps: &[u64], late| {
        Slowdown::of_train(&train(gaps), SLOT, NOISE, Span::from_micros(late)).map(|s| s.at)
    };
    // One to three gaps of 500 us, the first of them perhaps in part.
    assert_eq!([seen(&[400], 0), seen(&[130, 400], 0), seen(&[400; 3], 0)], [Some(29), Some(28), Some(27)]);
    // A packet of others, or two gaps with one each; an interrupt that came 300 us late.
    assert_eq!([seen(&[101], 0), seen(&[101; 2], 0), seen(&[400], 300)], [None; 3]);
    // Beside others who fill every third gap a packet or two more are no sign, and ten are.
    let others = |last: u64| {
        let mut gaps: Vec<u64> = (0..29).map(|k| u64::from(k % 3 == 0) * 101).collect();
        gaps[28] = last;
        seen(&gaps, 0)
    };
    assert_eq!([others(202), others(1_000)], [None, Some(28)]);
    // Nor is it asked of bursts.
    assert_eq!(Slowdown::of(&train(&[400; 3]), SLOT, NOISE, None), None);
}

/// Pairs every 10 ms take 2.4 Mbit/s: at 1 Mbit/s (11.9 ms a packet) a bucket of 6 kB lets two of them pass at the link's rate.
#[test]
fn pairs_that_drain_a_bucket_go_further_apart() {
    let pairs = |gaps: &[u64]| {
        let sent: Vec<u64> = (0..60).map(|k| k / 2 * 10_000).collect();
        let came = (0..30).flat_map(|k| {
            let first = 40_000 * k as u64 + 900;
            [Some(first), Some(first + gaps[k.min(gaps.len() - 1)])]
        });
        PairSet::of(&record(Pattern::Pairs, &sent, &sent, &came.collect::<Vec<_>>()))
    };
    let gap = Span::from_millis(10);
    let needed = |gaps: &[u64], rate| apart(&pairs(gaps), rate, gap, Span::ZERO);
    let four = Span::from_nanos(4 * 11_904_000);
    assert_eq!(needed(&[119, 119, 3_400, 11_904], 1e6), Some(four));
    // Not once they are that far apart, nor where they take less than comes, nor where none passed faster.
    assert_eq!(apart(&pairs(&[119, 11_904]), 1e6, four, Span::ZERO), None);
    assert_eq!(needed(&[119, 1_190], 10e6), None);
    assert_eq!(needed(&[11_904], 1e6), None);
    // Pairs that others leave alone now and then.
    let others: Vec<u64> = (0..30).map(|k| if k % 10 == 9 { 2_400 } else { 14_000 }).collect();
    assert_eq!(needed(&others, 1e6), None);
}

#[test]
fn where_hosts_cannot_time_the_link_what_came_first_must_have_come_faster() {
    let least = |at| stream(0, &[at]).packets[0].owd().zip(Some(Span::ZERO));
    let (burst, slot) = (stream(0, &shaped(40)), Span::from_micros(20));
    assert!(Slowdown::of(&burst, slot, NOISE, least(100)).is_some());
    // All packets at one rate, and no faster by the clock of their departure.
    let even: Vec<u64> = (1..=40).map(|k| 500 * k).collect();
    assert!(Slowdown::of(&stream(0, &even), slot, NOISE, None).is_some());
    assert_eq!(Slowdown::of(&stream(0, &even), slot, NOISE, least(500)), None);
}

fn check(coalescing: Span) -> ShaperCheck {
    let train = Slowdown::of(&stream(100, &shaped(30)), SLOT, NOISE, None).unwrap();
    ShaperCheck::new(train, Bytes(1488), coalescing)
}

#[test]
fn a_burst_bears_the_suspicion_out_and_says_rate_and_bucket() {
    let mut asks = check(Span::ZERO);
    assert_eq!((asks.plan().packets.len(), asks.plan().pattern), (40, Pattern::Burst));
    let found = asks.on_stream(&stream(0, &shaped(40)), Span::from_nanos(1));
    let Some(Finding::Shaped(shaper)) = found else { panic!("{found:?}") };
    // 1488 B in 500 us; tokens for eight packets, of which the first passes before the clock starts.
    assert_eq!(shaper.sustained.rate, 1488.0 * 8.0 / 500e-6);
    assert_eq!(shaper.bucket, Bytes(8 * 1488));
    // Nine packets and three that wait, or their last part; then twenty at the rate that lasts.
    let plan = shaper.train(20, Bytes(1488));
    assert_eq!((plan.packets.len(), shaper.packets(20)), (32, 32));
    assert_eq!((plan.packets[11].offset, plan.duration()), (Span::ZERO, Span::from_micros(10_000)));
    let tail = shaper.tail(&stream(0, &shaped(32)));
    assert_eq!((tail.packets.len(), tail.packets[0].seq), (21, 11));

    // Stamps that are late by up to 250 us widen the interval by as much of the sum.
    let found = check(Span::from_micros(250)).on_stream(&stream(0, &shaped(40)), Span::from_nanos(1));
    let Some(Finding::Shaped(late)) = found else { panic!("{found:?}") };
    let (low, high) = late.sustained.interval.unwrap();
    let of = |us: f64| 30.0 * 1488.0 * 8e6 / us;
    assert!((low - of(15_250.0)).abs() < 1.0 && (high - of(14_750.0)).abs() < 1.0, "{low} {high}");
}

/// Two packets at once and then every other one, or a bucket of two and a half that others have emptied by one before
/// most streams come: only what is clearly more than a pair is a bucket.
#[test]
fn a_fair_queue_is_no_bucket() {
    let passing = |n: u64, tokens: u64| -> Vec<u64> {
        (0..n).map(|k| 100 + (100 * k).max((500 * (k + 1)).saturating_sub(tokens))).collect()
    };
    for (last, found) in [(950, "Unclear"), (1_250, "Shaped")] {
        let train = Slowdown::of(&stream(100, &passing(30, 950)), SLOT, NOISE, None).unwrap();
        let mut asks = ShaperCheck::new(train, Bytes(1488), Span::ZERO);
        let mut said = asks.on_stream(&stream(0, &passing(40, 950)), NOISE);
        let mut bursts = 1;
        while said.is_none() {
            bursts += 1;
            let n = asks.plan().packets.len() as u64;
            assert!(n < 10, "{n}");
            said = asks.on_stream(&stream(0, &passing(n, if bursts < 4 { 950 } else { last })), NOISE);
        }
        assert!(format!("{said:?}").contains(found) && bursts <= 9, "{bursts}: {said:?}");
    }
}

/// Packets of 1280 B behind a bucket of 1600 B come 1.33 times as far apart as a pair's; others behind a fair queue make gaps uneven.
#[test]
fn even_gaps_shorter_than_a_share_of_a_fair_queue_are_a_buckets() {
    let gaps = |n: u64, wave: u64| -> Vec<u64> {
        (0..n).map(|k| 100 + if k < 2 { 100 * k } else { 133 * k - 33 + wave * (k % 2) }).collect()
    };
    for (wave, found) in [(0, "Shaped"), (10, "None")] {
        let train = Slowdown::of(&stream(100, &gaps(30, wave)), SLOT, NOISE, None).unwrap();
        let mut asks = ShaperCheck::new(train, Bytes(1488), Span::ZERO);
        let said = asks.on_stream(&stream(0, &gaps(40, wave)), NOISE);
        assert!(format!("{said:?}").contains(found), "{wave}: {said:?}");
        let Some(Finding::Shaped(shaper)) = said else { continue };
        let (capacity, burst, _) = shaper.of_bursts(Bytes(1488)).unwrap();
        assert!((capacity.rate / (1488.0 * 8.0 / 133e-6) - 1.0).abs() < 1e-6, "{capacity:?}");
        assert_eq!(burst, Bytes(40 * 1488));
    }
}

#[test]
fn a_burst_refutes_what_other_traffic_did() {
    let even: Vec<u64> = (1..=40).map(|k| 100 * k).collect();
    assert_eq!(check(Span::ZERO).on_stream(&stream(0, &even), NOISE), Some(Finding::Refuted));
    // Slow from another place on each time: three bursts, and no end of it.
    let mut asks = check(Span::ZERO);
    let at =
        |knee: u64| (0..40).map(|k| 100 + 100 * k + 400 * u64::saturating_sub(k, knee)).collect::<Vec<_>>();
    assert_eq!(asks.on_stream(&stream(0, &at(20)), NOISE), None);
    assert_eq!(asks.on_stream(&stream(0, &at(5)), NOISE), None);
    assert_eq!(asks.on_stream(&stream(0, &at(22)), NOISE), Some(Finding::Refuted));
}

#[test]
fn what_a_stream_would_have_shown_is_half_of_what_is_ahead_of_the_last_gaps() {
    assert_eq!(least_unseen(30, Bytes(1488)), Some(Bytes(18_600)));
    assert_eq!((least_unseen(5, Bytes(1488)), least_unseen(0, Bytes(1))), (None, None));
}
