use super::*;
use crate::network::loss::MarkovTime;
use crate::network::wlan::{DirectionCounters, Standard, StationConfig};
use lastmile::node::{Model, Payload};
use lastmile::time::Span;
use proptest::prelude::*;

fn client(name: &str) -> StationConfig {
    StationConfig { name: name.into(), ap: Some("ap".into()), ..Default::default() }
}

fn config(clients: &[&str]) -> WlanConfig {
    let mut station = vec![StationConfig { name: "ap".into(), ..Default::default() }];
    station.extend(clients.iter().map(|name| client(name)));
    WlanConfig { station, ..Default::default() }
}

fn packet(ip_size: u32, number: u64) -> Datagram {
    let any = "10.0.0.1:1".parse().unwrap();
    let payload = Payload::Model(Model { ip_size, words: [number, 0, 0, 0] });
    Datagram { payload, ..Datagram::udp(any, any, vec![]) }
}

fn number(datagram: &Datagram) -> u64 {
    match &datagram.payload {
        Payload::Model(model) => model.words[0],
        _ => unreachable!(),
    }
}

/// (time, port, number) of what came out.
type Delivered = Vec<(u64, u16, u64)>;

fn drain(wlan: &mut Medium, now: u64, out: &mut Delivered) -> Option<u64> {
    loop {
        match wlan.poll(Time::from_nanos(now)) {
            Output::Transmit(t) => out.push((now, t.port.0, number(&t.datagram))),
            Output::Event(_) => {}
            Output::Wait(next) => {
                let next = next.map(Time::as_nanos);
                assert!(next.is_none_or(|next| next >= now), "{next:?} has passed at {now}");
                return next;
            }
        }
    }
}

/// Offers packets (time, port, size), numbered from zero, and runs until the medium is silent. Packets of one
/// moment come before the wake of that moment, as in the engine.
fn run(wlan: &mut Medium, offered: &[(u64, u16, u32)]) -> Delivered {
    let (mut out, mut next) = (Vec::new(), None);
    let wake_until = |wlan: &mut Medium, next: &mut Option<u64>, end: u64, out: &mut Delivered| {
        while let Some(due) = *next
            && due < end
        {
            wlan.handle(Time::from_nanos(due), Input::Wake);
            *next = drain(wlan, due, out);
            assert!(wlan.busy(Time::from_nanos(due)).as_nanos() as u64 <= due);
        }
    };
    for (index, &(at, port, size)) in offered.iter().enumerate() {
        wake_until(wlan, &mut next, at, &mut out);
        let datagram = packet(size, index as u64);
        let input = Input::Datagram { port: PortId(port), at: Time::from_nanos(at), datagram };
        wlan.handle(Time::from_nanos(at), input);
        next = drain(wlan, at, &mut out);
    }
    wake_until(wlan, &mut next, u64::MAX, &mut out);
    out
}

#[test]
fn a_packet_that_finds_the_medium_idle_leaves_at_once_and_the_next_counts_slots() {
    let mut wlan = Medium::new(&config(&["a"]), 1, "x").unwrap();
    let out = run(&mut wlan, &[(900_000, 1, 1500), (900_000, 1, 1500)]);
    assert_eq!(out[0], (900_000 + 254_000, 1, 0));
    // SIFS, ACK, DIFS, a backoff of 0 to 15 slots, data.
    let backoff = out[1].0 - out[0].0 - (10_000 + 34_000 + 28_000 + 254_000);
    assert!(backoff.is_multiple_of(9_000) && backoff <= 15 * 9_000, "{backoff}");
    assert_eq!(wlan.busy(Time::from_nanos(out[1].0 + 44_000)).as_nanos(), 2 * 298_000);
    assert_eq!(wlan.airtime().successes, 2);
}

#[test]
fn a_backoff_freezes_while_others_send() {
    // Two clients, one packet each at one moment on an idle medium: both send at once and collide; after that
    // the one with the smaller draw goes first and the other resumes.
    for seed in 0..50 {
        let mut wlan = Medium::new(&config(&["a", "b"]), seed, "x").unwrap();
        let out = run(&mut wlan, &[(0, 0, 1500), (0, 2, 1500)]);
        let counters = [0, 2].map(|port| *wlan.counters(PortId(port)).unwrap());
        assert_eq!(out.len(), 2);
        let again = counters[0].collisions - 1;
        if again == 0 {
            // First: 254 us of collision and DIFS, four slots of ACK timeout, its own; second: the rest.
            let first = out[0].0 - 254_000 - (254_000 + 28_000);
            let second = out[1].0 - out[0].0 - 44_000 - 28_000 - 254_000;
            assert!(first.is_multiple_of(9_000) && second.is_multiple_of(9_000) && second > 0);
            assert!(first >= 4 * 9_000 && first + second <= (4 + 31) * 9_000, "{first} {second}");
        }
    }
}

/// After a collision by the standard's letter: a packet that comes to a bystander before EIFS is over draws a backoff.
#[test]
fn a_packet_that_comes_within_eifs_draws() {
    for at in [100_000, 300_000] {
        let mut first = std::collections::BTreeSet::new();
        for seed in 0..60 {
            let mut it = config(&["a", "b", "c"]);
            (it.after_collision, it.cw_min, it.cw_max) = (AfterCollision::Eifs, Some(15), Some(1023));
            let mut wlan = Medium::new(&it, seed, "x").unwrap();
            let out = run(&mut wlan, &[(0, 0, 1500), (0, 2, 1500), (at, 4, 1500)]);
            let end = out.iter().find(|o| o.1 == 4).unwrap().0;
            first.insert(end);
        }
        assert!(first.len() > 10, "{at}: always sent at one of {first:?}");
    }
}

#[test]
fn causes_are_told_apart() {
    let mut noisy = config(&["a"]);
    noisy.station[1].frame_error = 1.0;
    noisy.station[1].queue = 2;
    let mut wlan = Medium::new(&noisy, 1, "x").unwrap();
    assert_eq!(run(&mut wlan, &[(0, 0, 1500); 4]), []);
    let counters = *wlan.counters(PortId(0)).unwrap();
    assert_eq!((counters.lost_channel, counters.lost_queue, counters.lost_collision), (2, 2, 0));
    assert_eq!((counters.transmissions, counters.channel_errors), (14, 14));

    // A window of one slot: two stations collide for ever.
    let mut narrow = config(&["a", "b"]);
    (narrow.cw_min, narrow.cw_max) = (Some(0), Some(0));
    let mut wlan = Medium::new(&narrow, 1, "x").unwrap();
    assert_eq!(run(&mut wlan, &[(0, 0, 1500), (0, 2, 1500)]), []);
    assert_eq!(wlan.counters(PortId(0)).unwrap().lost_collision, 1);
    assert_eq!(wlan.airtime().collisions, 7);
}

#[test]
fn a_request_makes_a_collision_short() {
    let mut with = config(&["a", "b"]);
    (with.cw_min, with.cw_max, with.rts_threshold) = (Some(0), Some(0), Some(Bytes(500)));
    let mut wlan = Medium::new(&with, 1, "x").unwrap();
    run(&mut wlan, &[(0, 0, 1500), (0, 2, 1500)]);
    // Seven attempts, the short retry limit, of an RTS at 24 Mbit/s: 20 + 4 * ceil(182 / 96) + 6.
    assert_eq!(wlan.airtime().collision, Span::from_micros(7 * 34));
    // Data that follow a request have the long limit.
    let mut noisy = with.clone();
    noisy.station[1].frame_error = 1.0;
    let mut wlan = Medium::new(&noisy, 1, "x").unwrap();
    run(&mut wlan, &[(0, 0, 1500), (10_000_000, 0, 100)]);
    let counters = wlan.counters(PortId(0)).unwrap();
    assert_eq!((counters.channel_errors, counters.transmissions), (4 + 7, 4 + 7));
    let mut alone = Medium::new(&with, 1, "x").unwrap();
    let out = run(&mut alone, &[(0, 0, 1500)]);
    assert_eq!(out[0].0, 34_000 + 10_000 + 34_000 + 10_000 + 254_000);
}

/// Both ways: a request seven times, and nothing of the data; without requests the data seven times.
#[test]
fn a_burst_of_errors_hits_requests_too() {
    let mut bad = config(&["a", "b"]);
    bad.station[1].markov = Some(MarkovTime::new(Span::from_micros(1), Span::from_secs(1_000_000)));
    for (threshold, each) in [(Some(Bytes(500)), 34), (None, 254)] {
        bad.rts_threshold = threshold;
        let mut wlan = Medium::new(&bad, 1, "x").unwrap();
        // The other station has its own air.
        let out = run(&mut wlan, &[(0, 0, 1500), (30_000_000, 1, 1500), (60_000_000, 2, 1500)]);
        assert_eq!(out.iter().map(|(_, port, _)| *port).collect::<Vec<_>>(), [2]);
        for port in [0, 1] {
            let counters = wlan.counters(PortId(port)).unwrap();
            assert_eq!((counters.lost_channel, counters.transmissions, counters.channel_errors), (1, 7, 7));
        }
        assert_eq!(wlan.airtime().error, Span::from_micros(2 * 7 * each));
    }
}

/// Two that collide for ever: seven attempts for their data and, between them, seven requests each for a block ack that
/// nobody can send (IEEE 802.11-2016, 10.24.7.7).
#[test]
fn a_block_ack_that_does_not_come_is_asked_for() {
    for (request_block_ack, requests) in [(true, 6 * 7), (false, 0)] {
        let mut n = config(&["a", "b"]);
        (n.standard, n.cw_min, n.cw_max) = (Standard::N, Some(0), Some(0));
        n.ampdu = Some(AmpduConfig { request_block_ack, ..Default::default() });
        let mut wlan = Medium::new(&n, 1, "x").unwrap();
        // The first packet goes alone: the aggregate is made of those that wait behind it.
        let three = [(0, 0, 1500), (0, 2, 1500), (0, 0, 1500), (0, 2, 1500)];
        assert_eq!(run(&mut wlan, &three), []);
        assert_eq!(wlan.airtime().collisions, 7 + requests);
        // Two of 1538 B with delimiters at 65 Mbit/s: 36 us and 96 symbols; 24 B at 24 Mbit/s: 20 us and 3.
        assert_eq!(wlan.airtime().collision, Span::from_micros(7 * (36 + 4 * 96) + requests as i64 * 32));
        assert_eq!(wlan.counters(PortId(0)).unwrap().lost_collision, 2);
        assert_eq!(wlan.counters(PortId(0)).unwrap().transmissions, 7 + requests);
    }
    // One that noise lets nothing through of gets its answer at once, and its smallest window back.
    let mut n = config(&["a"]);
    (n.standard, n.ampdu) = (Standard::N, Some(AmpduConfig::default()));
    n.station[1].frame_error = 1.0;
    let mut wlan = Medium::new(&n, 1, "x").unwrap();
    assert_eq!(run(&mut wlan, &[(0, 0, 1500), (0, 0, 1500)]), []);
    let counters = wlan.counters(PortId(0)).unwrap();
    assert_eq!((counters.transmissions, counters.frames, counters.lost_channel), (7 + 6, 14, 2));
    // Seven times the data; six times request, SIFS and block ack.
    assert_eq!(wlan.airtime().error, Span::from_micros(7 * 420 + 6 * (32 + 16 + 32)));
}

#[test]
fn an_aggregate_repeats_only_what_failed_and_keeps_the_order() {
    let mut n = config(&["a", "b"]);
    (n.standard, n.ampdu) = (Standard::N, Some(AmpduConfig::default()));
    n.station[0].queue = 300;
    n.station.iter_mut().skip(1).for_each(|s| s.frame_error = 0.2);
    let mut wlan = Medium::new(&n, 5, "x").unwrap();
    let offered: Vec<_> = (0..200).map(|i| (0, if i % 3 == 0 { 3 } else { 1 }, 1500)).collect();
    let out = run(&mut wlan, &offered);
    let sum =
        |f: fn(&DirectionCounters) -> u64| f(&wlan.directions[1].counters) + f(&wlan.directions[3].counters);
    assert_eq!(sum(|c| c.delivered) + sum(DirectionCounters::lost), 200);
    assert!(sum(|c| c.frames) == 200 - sum(DirectionCounters::lost) + sum(|c| c.channel_errors));
    assert!(sum(|c| c.transmissions) < 30, "{}", sum(|c| c.transmissions));
    for port in [1, 3] {
        let numbers: Vec<u64> = out.iter().filter(|o| o.1 == port).map(|o| o.2).collect();
        assert!(numbers.is_sorted());
    }
}

#[test]
fn packets_at_a_port_that_is_not_there_vanish_without_harm() {
    let mut wlan = Medium::new(&config(&["a"]), 1, "x").unwrap();
    assert_eq!(run(&mut wlan, &[(0, 9, 1500)]), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn conserves_packets_in_order_and_is_never_busier_than_the_clock(
        gaps in prop::collection::vec((0_u64..1_500_000, 0_u16..6, 40_u32..1500), 1..150),
        standard in prop::sample::select(vec![Standard::B, Standard::G, Standard::A, Standard::N]),
        rule in prop::sample::select(vec![AfterCollision::Exchange, AfterCollision::Difs, AfterCollision::Timeout, AfterCollision::Eifs]),
        control in prop::sample::select(vec![crate::network::wlan::RateControl::Fixed, crate::network::wlan::RateControl::Aarf, crate::network::wlan::RateControl::Minstrel]),
        error in 0.0_f64..0.7, queue in 1_u32..40, rts in any::<bool>(), aggregate in any::<bool>(), seed in any::<u64>(),
    ) {
        let mut it = config(&["a", "b", "c"]);
        (it.standard, it.after_collision) = (standard, rule);
        it.rts_threshold = rts.then_some(Bytes(700));
        it.ampdu = (aggregate && standard == Standard::N).then(AmpduConfig::default);
        it.station.iter_mut().for_each(|s| s.queue = queue);
        it.station.iter_mut().skip(1).for_each(|s| (s.frame_error, s.rate_control) = (error, control));
        let mut at = 0;
        let offered: Vec<_> = gaps.iter().map(|&(gap, port, size)| { at += gap; (at, port, size) }).collect();
        let mut wlan = Medium::new(&it, seed, "x").unwrap();
        let out = run(&mut wlan, &offered);
        let mut again = Medium::new(&it, seed, "x").unwrap();
        prop_assert_eq!(&run(&mut again, &offered), &out);
        let sum = |f: fn(&DirectionCounters) -> u64| wlan.directions.iter().map(|d| f(&d.counters)).sum::<u64>();
        prop_assert_eq!(sum(|c| c.arrived), offered.len() as u64);
        prop_assert_eq!(sum(|c| c.delivered), out.len() as u64);
        prop_assert_eq!(sum(|c| c.delivered) + sum(DirectionCounters::lost), offered.len() as u64);
        prop_assert!(out.windows(2).all(|w| w[0].0 <= w[1].0));
        for from in 0..it.station.len() {
            // Without aggregation a station is one FIFO; with it, each of its directions is.
            let ports: Vec<Vec<u16>> = if it.ampdu.is_some() {
                (0..6).map(|p| vec![p]).collect()
            } else {
                vec![wlan.directions().filter(|d| d.1 == from).map(|d| d.0.0).collect()]
            };
            for ports in ports {
                let numbers: Vec<u64> = out.iter().filter(|o| ports.contains(&o.1)).map(|o| o.2).collect();
                prop_assert!(numbers.is_sorted());
            }
        }
        prop_assert_eq!(wlan.queued(), 0);
        let end = wlan.busy_until;
        prop_assert!(wlan.busy(Time::from_nanos(end)).as_nanos() as u64 <= end);
    }
}
