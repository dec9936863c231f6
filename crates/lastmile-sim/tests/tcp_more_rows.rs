//! More of TCP against ns-2 2.35: 1000-byte segments, an ACK for each unless said, 10 Mbit/s and 40 ms unless said.
//!
//! Reno, NewReno and SACK were held against ns-2 over random loss of 0.1 to 5 %, RTTs of 20 to 200 ms, 0.15 to 50 Mbit/s,
//! queues of 5 to 200 packets and 1 to 50 flows, some 200 cells of mostly 3 to 5 seeds: goodput agrees within about 2.5 %
//! but for what is named here; where both lose the same packets (`oracles/same_losses.rs`) it agrees within a point in
//! each cell. IIAD and SQRT: 6 %, IIAD at 0.1 % of loss +9 %; 20 flows with ECN over RED that is not gentle: +2.6 %.
//! * `sack` is RFC 6675, ns-2's Sack1 is `sack1`. `IsLost` (RFC 6675, section 5, step 2) finds a loss from the blocks; Sack1
//!   counts duplicate ACKs, of which a delayed ACK may swallow one, and then times out: at 5 % of loss, delayed ACKs, no
//!   limited transmit and a minimum timeout of 1 s `sack` is 19 % faster. It also mends many losses of one window, as
//!   after slow start, sooner, begins a recovery where a timeout's data ends, and skips what is known to have arrived.
//! * With 30 % of ACKs lost, and 1 % of segments, `sack` is two fifths faster: Sack1's pipe forgets a segment for each
//!   ACK, so that a lost one leaves it there and recovery waits for the timer, 138 times in 200 s instead of 60. Others
//!   differ by 15 % from set to set of five seeds, but not from ns-2 with the same packets and ACKs lost: Reno -0.3 +-
//!   0.3 % in eight, NewReno +1.5 +- 1.1, `sack1` -0.6 +- 0.7.
//! * Vegas with `fine_timeouts` is within 1.5 points up to 2 % of loss (but 6 points faster with delayed ACKs on the WB of
//!   seed 004 at 2 %), 7 to 9 points faster at 7.8 %, where windows are of a few segments, and 20 points slower under
//!   bursts of loss: ns-2's Actual is what was sent in a round trip, ours the window over the round-trip time, and
//!   ns-2 leaves a window inflated by fewer than three duplicate ACKs as it is.
//! * ns-2 has a handshake of one round trip, whose ACK opens the window by one; there is none here.
//! * ns-2's CUBIC is Linux 2.6.16's (beta 0.8, before RFC 8312); ours is RFC 9438's (beta 0.7), 5 % faster at 1 % of loss.
//!   Its Westwood+ is Linux's too, and at 2 % of loss and 100 ms a quarter faster than ours, since Linux sees that a
//!   resent segment was lost again, where RFC 6675 waits for the timeout: with `rack_retransmissions` a tenth, and at 5 %
//!   and 40 ms 5 % instead of 12 %. At 2 % and 40 ms ours is then 15 % faster.
#![allow(clippy::print_stdout)] // the tables, with --nocapture

mod common;

use common::tcp::{Bernoulli, chain, dumbbell, ns2_link, seconds};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::engine::Engine;
use lastmile_sim::network::link::{Link, LinkConfig, QueueLimit};
use lastmile_sim::network::loss::{Covers, Loss, Pattern};
use lastmile_sim::network::tcp::{App, Recovery, SenderCounters, TcpConfig};

fn ns2(recovery: Recovery) -> TcpConfig {
    TcpConfig { recovery, segment: Bytes(1000), ..TcpConfig::ns2() }
}

/// A path without reordering on which no ACK is lost: whatever is sent again was dropped.
#[test]
fn sack_sends_again_what_was_dropped_and_nothing_else() {
    for queue in [30, 50, 60, 70] {
        let mut engine = Engine::new();
        let flow = (ns2(Recovery::Sack), App::Bulk, seconds(0.1));
        let (bottleneck, tcps) = dumbbell(&mut engine, (10, Span::from_millis(48), queue), &[flow], 1);
        engine.run_until(seconds(10.0)).unwrap();
        let sent = engine.tcp_sender(tcps[0].sender).unwrap().counters();
        let drops = engine.link(bottleneck).unwrap().counters().drops;
        println!("queue of {queue}: {drops} drops, {sent:?}");
        assert!(drops > 20 && sent.fast_retransmits > 0, "{queue}: {drops} {sent:?}");
        assert_eq!(sent.resent, drops, "{queue}: {sent:?}");
    }
}

/// ns-2 in 1000 s, mean of eight seeds: 248.6 timeouts, 631 kbit/s (5 % less than `sack`, see above).
#[test]
fn sack_times_out_as_often_as_ns_2() {
    let config = TcpConfig { min_rto: Span::from_secs(1), ..ns2(Recovery::Sack) };
    let run = |seed| {
        let mut engine = Engine::new();
        let there = engine.add(ns2_link(10_000_000, Span::from_millis(20), 50)).unwrap();
        let lossy = engine.add(Bernoulli::boxed(0.05, seed)).unwrap();
        let back = engine.add(ns2_link(10_000_000, Span::from_millis(20), 1000)).unwrap();
        let tcp =
            chain(&mut engine, &config, (App::Bulk, Time::ZERO, Time::MAX), seed, &[there, lossy], &[back]);
        engine.run_until(seconds(1000.0)).unwrap();
        let SenderCounters { timeouts, acknowledged, .. } = engine.tcp_sender(tcp.sender).unwrap().counters();
        [timeouts as f64, acknowledged as f64 * 8.0 / 1000.0]
    };
    let runs: Vec<_> = (1..=6).map(run).collect();
    let [timeouts, goodput] = [0, 1].map(|i| runs.iter().map(|run| run[i]).sum::<f64>() / 6.0);
    println!("{timeouts:.0} timeouts (ns-2 249), {goodput:.0} kbit/s (631)");
    assert!((timeouts / 248.6 - 1.0).abs() < 0.1, "{timeouts}");
    assert!((1.0..1.1).contains(&(goodput / 631.0)), "{goodput}");
}

/// Nothing arrives from 20 to 50 s. ns-2 from 10 to 80 s, 1 Mbit/s, 100 ms, a queue of 20: the timer doubles from 1 s
/// on, so that the fifth timeout, at 51 s, ends it.
#[test]
fn an_outage_is_left_as_the_doubled_timer_says() {
    for (recovery, goodput) in [(Recovery::Reno, 525.5), (Recovery::NewReno, 525.5), (Recovery::Sack, 526.3)]
    {
        let config = TcpConfig { min_rto: Span::from_secs(1), ..ns2(recovery) };
        let mut engine = Engine::new();
        let there = engine.add(ns2_link(1_000_000, Span::from_millis(50), 20)).unwrap();
        let pattern = Pattern {
            period: 1000,
            lost: (20..50).collect(),
            slot: Some(Span::from_secs(1)),
            covers: Covers::Instant,
            random_start: false,
        };
        let rate = Some(Rate::ip(1_000_000_000));
        let outage = LinkConfig {
            rate,
            losses: vec![Loss::of(pattern)],
            queue: QueueLimit::Packets(1000),
            ..Default::default()
        };
        let outage = engine.add(Link::seeded(outage, 1, "outage")).unwrap();
        let back = engine.add(ns2_link(1_000_000, Span::from_millis(50), 1000)).unwrap();
        let bulk = (App::Bulk, seconds(0.5), Time::MAX);
        let tcp = chain(&mut engine, &config, bulk, 1, &[there, outage], &[back]);
        let [before, after] = [10.0, 80.0].map(|at| {
            engine.run_until(seconds(at)).unwrap();
            engine.tcp_sender(tcp.sender).unwrap().counters()
        });
        let got = (after.acknowledged - before.acknowledged) as f64 * 8.0 / 70.0;
        println!(
            "{recovery:?}: {got:.1} kbit/s (ns-2 {goodput}), {} timeouts",
            after.timeouts - before.timeouts
        );
        assert_eq!(after.timeouts - before.timeouts, 5, "{recovery:?}");
        assert!((got / goodput - 1.0).abs() < 0.015, "{recovery:?}: {got} instead of {goodput}");
    }
}

/// Times of whole files in ns-2, less the round trip of its handshake: to the tenth of a millisecond.
#[test]
fn short_files_take_as_long_as_in_ns_2() {
    for (segments, rtt, delayed, initial, seconds_taken) in [
        (1, 40, 0, 2, 0.080_95),
        (10, 40, 0, 2, 0.165_2),
        (100, 40, 0, 2, 0.316_1),
        (1000, 40, 0, 2, 1.521),
        (10, 100, 100, 3, 0.506_0),
        (100, 100, 100, 3, 1.027),
        (100, 200, 0, 10, 1.028),
    ] {
        let config = TcpConfig {
            delayed_ack: Span::from_millis(delayed),
            initial_window: Some(initial),
            ..ns2(Recovery::Reno)
        };
        let mut engine = Engine::new();
        let file = (config, App::File { size: Bytes(1000 * segments) }, seconds(0.1));
        let (_, tcps) = dumbbell(&mut engine, (10, Span::from_millis(rtt / 2 - 2), 200), &[file], 1);
        engine.run_until(seconds(20.0)).unwrap();
        let sent = engine.tcp_sender(tcps[0].sender).unwrap().counters();
        let took = sent.transfer_time.as_secs_f64() + rtt as f64 / 1e3;
        println!("{segments} segments, {rtt} ms: {took:.4} s (ns-2 {seconds_taken})");
        assert_eq!(sent.transfers, 1);
        assert!((took - seconds_taken).abs() < 6e-4, "{segments} {rtt}: {took} instead of {seconds_taken}");
    }
}
