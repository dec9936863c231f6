//! Both kinds of links, packet by packet. Comparisons with a recursion over packets and with other programs are in
//! `tests/aqm`.

use super::*;
use crate::network::jitter::{Jitter, Normal, Uniform};
use crate::network::loss::{Bernoulli, Covers, GilbertElliott, Loss, LossPlace, MarkovTime, Pattern};
use crate::network::queue::{Discipline, TokenBucket};
use lastmile::node::Ecn;
use lastmile::units::{Bytes, Rate};
use proptest::prelude::*;

#[path = "../../../tests/common/link.rs"]
mod alone;
use alone::{Alone, Offered, departures, number, numbered};

/// The same as [`departures`] for a link that is asked after everything that happens to it.
fn asked_always(link: &mut Link, offered: Vec<Offered>) -> Vec<(u64, u64)> {
    let (mut packets, mut out, mut due) = (Packets::default(), Vec::new(), NEVER);
    let mut drain = |link: &mut Link, packets: &mut Packets, now| loop {
        match link.next(packets, now) {
            Next::Packet(parcel) => out.push((now, number(&packets.take(parcel)))),
            Next::Wait(until) => return until,
        }
    };
    for (at, datagram) in offered {
        while due <= at {
            due = drain(link, &mut packets, due);
        }
        let parcel = packets.insert(datagram);
        link.offer(&mut packets, at, parcel);
        due = drain(link, &mut packets, at);
    }
    while due != NEVER {
        due = drain(link, &mut packets, due);
    }
    // Every packet is in one place.
    assert_eq!(packets.held(), link.under_way());
    out
}

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn mbit(rate: u64) -> Option<Rate> {
    Some(Rate::ip(rate * 1_000_000))
}

/// 1250 B take 1 ms at 10 Mbit/s.
fn ten(config: LinkConfig) -> LinkConfig {
    LinkConfig { rate: mbit(10), ..config }
}

#[test]
fn what_waits_and_what_finds_no_room() {
    let packets = |limit| LinkConfig { queue: QueueLimit::Packets(limit), ..Default::default() };
    let bytes = LinkConfig { queue: QueueLimit::Bytes(Bytes(2500)), ..Default::default() };
    let shaper = Some(TokenBucket { rate: Rate::ip(1_000_000), burst: Bytes(2500) });
    let mut shaped = vec![(0, 1250); 5];
    shaped.push((60, 2501));
    // The packet in transmission does not count as queued, and one that comes when it ends finds its place free. Two pass a
    // shaper at 10 Mbit/s, and tokens for the third come after 10 ms; a packet larger than its bucket never passes. The mean
    // over 10 ms: 2500 B wait for one and 1250 B for another.
    for (config, offered, arrive, most, mean) in [
        (packets(2), vec![(0, 1250); 5], vec![1, 2, 3], (2, 2500), 375),
        (packets(2), vec![(0, 1250), (0, 1250), (0, 1250), (1, 1250)], vec![1, 2, 3, 4], (2, 2500), 625),
        (bytes, vec![(0, 1250); 5], vec![1, 2, 3], (2, 2500), 375),
        (LinkConfig { shaper, ..packets(2) }, shaped, vec![1, 2, 11], (2, 2500), 1375),
    ] {
        for events in [Events::Auto, Events::PerDequeue] {
            let offered: Vec<_> = offered.iter().map(|&(at, size)| (at * 1_000_000, size)).collect();
            let link = Link::new(ten(LinkConfig { events, ..config.clone() }));
            let (fates, after) = Alone::new(link, numbered(&offered)).run();
            let arrived: Vec<u64> = fates.arrived.iter().map(|arrived| arrived.0 / 1_000_000).collect();
            let counters = after.link().counters();
            assert_eq!(arrived, arrive, "{config:?}");
            assert_eq!(counters.drops, (offered.len() - arrive.len()) as u64);
            assert_eq!((counters.max_queue_packets, counters.max_queue_bytes.0), most);
            assert_eq!(counters.waited / 10_000_000, mean);
        }
    }
}

#[test]
fn without_a_rate_it_only_delays_and_without_an_end_to_an_outage_nothing_comes() {
    let wire = LinkConfig { delay: Span::from_micros(3), ..Default::default() };
    let arrived = departures(Link::new(wire), &[(0, 1500), (0, 1500), (7, 40)]);
    assert_eq!(arrived, [(3_000, 0), (3_000, 1), (3_007, 2)]);
    for events in [Events::Auto, Events::PerDequeue] {
        let schedule = vec![Change { at: ms(1), rate: Some(Rate::ip(0)), delay: None }];
        let link = Link::new(ten(LinkConfig { schedule, events, ..Default::default() }));
        let (fates, after) = Alone::new(link, numbered(&[(0, 1250), (5_000_000, 1250)])).run();
        assert_eq!(fates.arrived, [(1_000_000, 0, Ecn::NotEct)]);
        assert_eq!((after.link().under_way(), after.link().busy(ms(30))), (1, Span::from_millis(1)));
    }
}

/// Tokens come when the link is down: the wait for the link is not booked, and no busy time is negative.
#[test]
fn an_outage_that_lies_ahead_is_no_busy_time() {
    let to = |at, rate| Change { at: ms(at), rate: Some(Rate::ip(rate)), delay: None };
    let (schedule, burst) = (vec![to(100, 0), to(2_000, 1_000_000)], Bytes(1000));
    let shaper = Some(TokenBucket { rate: Rate::ip(20_000), burst });
    let link = Link::new(LinkConfig { rate: mbit(8), shaper, schedule, ..Default::default() });
    let mut link = Alone::new(link, numbered(&[(50_000_000, 1000), (60_000_000, 1000)]));
    for (at, busy) in [(60, 1), (80, 1), (500, 1), (2_001, 2), (3_000, 9)] {
        link.engine.run_until(ms(at)).unwrap();
        assert_eq!(link.link().busy(ms(at)), Span::from_millis(busy), "at {at} ms");
    }
}

/// 1250 B are 1 ms of 10 Mbit/s, and of the policer's 5 Mbit/s 2 ms: beyond its burst of two packets it drops those that come too
/// early. A packet dropped before the queue takes no time of the transmitter and no tokens.
#[test]
fn a_policer_and_an_mtu_drop_before_the_queue() {
    let policer = Some(TokenBucket { rate: Rate::ip(5_000_000), burst: Bytes(2_500) });
    let mtu = Some(Bytes(1250));
    let offered: Vec<_> = [(0, 1251), (0, 1250), (0, 1250), (1, 1250), (2, 1250), (3, 1250), (4, 1250)]
        .map(|(at, size)| (at * 1_000_000, size))
        .to_vec();
    for events in [Events::Auto, Events::PerDequeue] {
        let link = Link::new(ten(LinkConfig { events, policer: policer.clone(), mtu, ..Default::default() }));
        let (fates, after) = Alone::new(link, numbered(&offered)).run();
        let arrived: Vec<_> = fates.arrived.iter().map(|&(at, number, _)| (at / 1_000_000, number)).collect();
        assert_eq!(arrived, [(1, 1), (2, 2), (3, 4), (5, 6)]);
        let lost: Vec<_> = fates.lost.iter().map(|&(_, number, cause)| (number, cause.name())).collect();
        assert_eq!(lost, [(0, "too-big"), (3, "policer"), (5, "policer")]);
        let counters = after.link().counters();
        assert_eq!((counters.too_big, counters.policed, counters.drops, counters.packets), (1, 2, 0, 4));
        assert_eq!(after.link().busy(ms(10)), Span::from_millis(4));
    }
}

/// A hundred packets in as many milliseconds, later by up to 20 ms: all arrive in that time; their jitter does not
/// depend on losses; and without reordering each comes when the latest of those before it does, if not later.
#[test]
fn jitter_delays_each_packet_and_reorders_only_where_it_may() {
    let run = |reorder, losses: Vec<Loss>| {
        let jitter = Some(Jitter::Uniform(Uniform { max: Span::from_millis(20), reorder }));
        let delay = Span::from_millis(5);
        let link = Link::seeded(LinkConfig { jitter, delay, losses, ..Default::default() }, 3, "link/x");
        let offered: Vec<_> = (0..100).map(|n| (n * 1_000_000, 1250)).collect();
        let mut arrived = Alone::new(link, numbered(&offered)).run().0.arrived;
        assert!(arrived.is_sorted_by_key(|it| it.0));
        arrived.sort_by_key(|it| it.1);
        arrived.into_iter().map(|(at, number, _)| (number, at)).collect::<Vec<_>>()
    };
    let (free, kept) = (run(true, vec![]), run(false, vec![]));
    assert_eq!((free.len(), kept.len()), (100, 100));
    let late = |&(number, at): &(u64, u64)| at - number * 1_000_000;
    assert!(free.iter().map(late).all(|late| (5_000_000..25_000_000).contains(&late)));
    assert!(!free.is_sorted_by_key(|it| it.1));
    let mut latest = 0;
    for (free, kept) in free.iter().zip(&kept) {
        latest = free.1.max(latest);
        assert_eq!(kept.1, latest);
    }
    let lossy = run(true, vec![Loss::of(Bernoulli { rate: 0.5 })]);
    assert!((30..70).contains(&lossy.len()) && lossy.iter().all(|it| free.contains(it)));
}

/// Packets that arrive, by flow: three flows in turn over a link with these channels.
fn survivors(losses: Vec<Loss>) -> ([Vec<u64>; 3], Alone) {
    let mut offered = numbered(&(0..3000).map(|n| (n * 2_000_000, 1250)).collect::<Vec<_>>());
    offered.iter_mut().for_each(|(_, packet)| packet.flow = Flow(number(packet) as u32 % 3));
    let link = Link::seeded(ten(LinkConfig { losses, ..Default::default() }), 4, "link/x");
    let (fates, after) = Alone::new(link, offered).run();
    let of = |flow| fates.arrived.iter().map(|arrived| arrived.1).filter(|n| n % 3 == flow).collect();
    ([0, 1, 2].map(of), after)
}

#[test]
fn a_channel_on_one_flow_has_draws_of_its_own_by_its_name() {
    let on = |flows, name: &str| Loss { flows, name: name.into(), ..Loss::of(Bernoulli { rate: 0.1 }) };
    let (one, after) = survivors(vec![on(vec![1], "one")]);
    let counters = after.link().counters();
    assert_eq!((one[0].len(), one[2].len(), counters.drops), (1000, 1000, 0));
    assert!((870..930).contains(&one[1].len()));
    assert_eq!(counters.lost, 1000 - one[1].len() as u64);
    let (both, _) = survivors(vec![on(vec![2], "two"), on(vec![1], "one")]);
    assert_eq!(both[1], one[1]);
    assert!(both[2].len() < 950 && both[2].iter().map(|n| n - 1).ne(both[1].iter().copied()));
}

#[test]
fn losses_after_the_transmitter_use_its_time_and_those_before_do_not() {
    for (place, all) in [(LossPlace::After, true), (LossPlace::Before, false)] {
        let (_, after) = survivors(vec![Loss { place, ..Loss::of(Bernoulli { rate: 0.5 }) }]);
        let counters = after.link().counters();
        assert_eq!(counters.arrived, counters.lost + counters.delivered);
        let sent = if all { counters.arrived } else { counters.delivered };
        assert_eq!(after.link().busy(ms(10_000)), Span::from_millis(sent as i64));
        assert!((1300..1700).contains(&counters.lost));
    }
}

fn offered() -> impl Strategy<Value = Vec<(u64, u32)>> {
    prop::collection::vec((0_u64..2_000_000, 40_u32..1500), 1..200).prop_map(|mut packets| {
        let mut at = 0;
        packets.iter_mut().for_each(|packet| {
            at += packet.0;
            packet.0 = at;
        });
        packets
    })
}

/// An MTU, a policer and jitter, each or none.
fn edges() -> impl Strategy<Value = LinkConfig> {
    let jitter = (any::<bool>(), any::<bool>(), 1_i64..20_000_000).prop_map(|(normal, reorder, span)| {
        let span = Span::from_nanos(span);
        match normal {
            true => Jitter::Normal(Normal { std: span, reorder, ..Normal::default() }),
            false => Jitter::Uniform(Uniform { max: span, reorder }),
        }
    });
    let policer = (100_000_u64..20_000_000, 1_540_u64..20_000);
    let (policer, mtu) = (prop::option::of(policer), prop::option::of(576_u64..1_600));
    (policer, mtu, prop::option::of(jitter)).prop_map(|(policer, mtu, jitter)| LinkConfig {
        policer: policer.map(|(rate, burst)| TokenBucket { rate: Rate::ip(rate), burst: Bytes(burst) }),
        mtu: mtu.map(Bytes),
        jitter,
        ..Default::default()
    })
}

fn schedules() -> impl Strategy<Value = Vec<Change>> {
    let change =
        (0_u64..200_000_000, prop::option::of(0_u64..20_000_000), prop::option::of(0_i64..30_000_000));
    let change = change.prop_map(|(at, rate, delay)| Change {
        at: Time::from_nanos(at),
        rate: rate.map(|rate| Rate::ip(if rate < 1_000_000 { 0 } else { rate })),
        delay: delay.map(Span::from_nanos),
    });
    prop::collection::vec(change, 0..6)
}

proptest! {
    /// The kinds differ in when they wake and in nothing else: departures, drops, losses and all counters.
    #[test]
    fn both_kinds_give_the_same_departures(
        mut offered in offered(), limit in 1_u32..10, by_bytes in any::<bool>(),
        rate in prop::option::of(100_000_u64..20_000_000), on_the_grid in any::<bool>(), schedule in schedules(),
        lossy in any::<bool>(), overhead in 0_u64..40, edge in edges(),
    ) {
        if on_the_grid {
            // Equal times and times at which a transmission ends are where the kinds could differ.
            offered.iter_mut().for_each(|it| *it = (it.0 / 1_000_000 * 1_000_000, 1250 - overhead as u32));
        }
        let rate = if on_the_grid { mbit(10) } else { rate.map(Rate::ip) };
        let queue = if by_bytes { QueueLimit::Bytes(Bytes(u64::from(limit) * 1500)) } else { QueueLimit::Packets(limit) };
        let losses = if lossy { vec![
            Loss::of(MarkovTime { covers: Covers::Whole, ..MarkovTime::new(Span::from_millis(20), Span::from_millis(5)) }),
            Loss::of(GilbertElliott { p: 0.1, r: 0.5, ..Default::default() }),
            Loss { place: LossPlace::Before, ..Loss::of(Bernoulli { rate: 0.1 }) },
            Loss { flows: vec![7], ..Loss::of(Bernoulli { rate: 1.0 }) },
            Loss::of(Pattern { period: 9, lost: vec![2, 3], slot: Some(Span::from_millis(2)), ..Default::default() }),
        ] } else { vec![] };
        let overhead = Bytes(overhead);
        let config = LinkConfig { rate, queue, schedule, losses, overhead, delay: Span::from_millis(7), ..edge };
        prop_assert!(config.check().is_ok());
        let run = |events| Alone::new(Link::new(LinkConfig { events, ..config.clone() }), numbered(&offered)).run();
        let [(one, computed), (other, dequeue)] = [Events::Auto, Events::PerDequeue].map(run);
        prop_assert_eq!(&one.arrived, &other.arrived);
        prop_assert_eq!(&one.lost, &other.lost);
        let end = computed.engine.now().max(dequeue.engine.now());
        let (computed, dequeue) = (computed.link(), dequeue.link());
        prop_assert_eq!(computed.busy(end), dequeue.busy(end));
        prop_assert_eq!(computed.under_way(), dequeue.under_way());
        if computed.under_way() == 0 {
            // With an outage that never ends what still waits is counted when it enters by one, never by the other.
            prop_assert_eq!(computed.counters(), dequeue.counters());
        }
    }

    /// An engine asks a link only when its answer may have changed: it gets what who asks after each packet gets. And every
    /// discipline conserves packets within its limit, in order (fair queueing those of each flow, DualPI2 those of each queue), and
    /// marks those that can be marked.
    #[test]
    fn both_ways_give_the_same_departures_of_every_discipline(
        offered in offered(), which in 0_usize..64, shaped in any::<bool>(), per_dequeue in any::<bool>(),
        ecn in any::<bool>(), limit in 1_u32..30, rate in 0.05_f64..0.5,
        schedule in prop::collection::vec((0_u64..200_000_000, 0_u64..9, 0_i64..40), 0..4), edge in edges(),
    ) {
        let disciplines = Discipline::lively(ecn);
        let change = |&(at, mbps, ms): &(u64, u64, i64)| Change {
            at: Time::from_nanos(at),
            rate: mbit(mbps),
            delay: Some(Span::from_millis(ms)),
        };
        let config = LinkConfig {
            rate: mbit(8),
            delay: Span::from_millis(3),
            queue: QueueLimit::Packets(limit),
            discipline: disciplines[which % disciplines.len()].clone(),
            shaper: (shaped && edge.policer.is_none()).then_some(TokenBucket { rate: Rate::ip(5_000_000), burst: Bytes(4_000) }),
            schedule: schedule.iter().chain([&(200_000_000, 8, 3)]).map(change).collect(),
            losses: vec![Loss::of(Bernoulli { rate })],
            events: if per_dequeue { Events::PerDequeue } else { Events::Auto },
            ..edge
        };
        prop_assert!(config.check().is_ok());
        let able = |number: u64| [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][number as usize % 4];
        let mut offered = numbered(&offered);
        let flow = |number: u64| number % 3;
        offered.iter_mut().for_each(|(_, packet)| {
            packet.ecn = able(number(packet));
            packet.from.set_port(1 + flow(number(packet)) as u16);
        });
        let mut always = Link::new(config.clone());
        let asked = asked_always(&mut always, offered.clone());
        let (fates, after) = Alone::new(Link::new(config.clone()), offered).run();
        let arrived: Vec<_> = fates.arrived.iter().map(|&(at, number, _)| (at, number)).collect();
        prop_assert_eq!(&asked, &arrived);
        let counters = after.link().counters();
        prop_assert_eq!(always.counters(), counters);
        prop_assert_eq!(counters.arrived, counters.not_delivered() + counters.delivered);
        let of = |cause| fates.lost.iter().filter(|lost| lost.2 == cause).count() as u64;
        let congestion = of(LossCause::Queue) + of(LossCause::Early);
        prop_assert_eq!((congestion, of(LossCause::Channel)), (counters.drops, counters.lost));
        let before = (of(LossCause::Policer), of(LossCause::TooBig));
        prop_assert_eq!(before, (counters.policed, counters.too_big));
        prop_assert_eq!((counters.delivered, after.link().under_way()), (arrived.len() as u64, 0));
        let lane = |number: u64| match config.discipline {
            Discipline::FqCodel(_) => flow(number),
            Discipline::DualPi2(_) => u64::from(matches!(able(number), Ecn::Ect1 | Ecn::Ce)),
            _ => 0,
        };
        let reorders = config.jitter.as_ref().is_some_and(Jitter::reorders);
        for one in 0..3 {
            let own: Vec<_> = arrived.iter().filter(|it| lane(it.1) == one).collect();
            prop_assert!(own.windows(2).all(|pair| pair[0].0 <= pair[1].0 && (reorders || pair[0].1 < pair[1].1)));
        }
        match config.discipline.limit().unwrap_or(config.queue) {
            QueueLimit::Packets(most) => prop_assert!(counters.max_queue_packets <= most),
            QueueLimit::Bytes(most) => prop_assert!(counters.max_queue_bytes <= most),
        }
        let marked = fates.arrived.iter().filter(|&&(_, number, ecn)| ecn != able(number));
        prop_assert!(marked.clone().all(|&(_, number, ecn)| ecn == Ecn::Ce && able(number).is_capable()));
        prop_assert!((marked.clone().count() as u64..=marked.count() as u64 + counters.lost).contains(&counters.marked));
        prop_assert!(after.link().busy(after.engine.now()) <= after.engine.now() - Time::ZERO);
    }
}
