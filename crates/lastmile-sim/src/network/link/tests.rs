//! Both kinds of links, packet by packet.

use std::sync::{Arc, Mutex};

use super::*;
use crate::network::engine::{Engine, Target};
use crate::network::loss::Loss;
use crate::network::loss::{Bernoulli, Covers, GilbertElliott, MarkovTime, Pattern, Place};
use crate::network::queue::{Codel, Discipline, Red, Shaper, Step, TcRed};
use crate::network::traffic::Sink;
use lastmile::node::{Datagram, Ecn, Flow, Model, Payload};
use lastmile::units::{Bytes, Rate};
use proptest::prelude::*;

fn packet(ip_size: u32, seq: u64) -> Input {
    let any = "10.0.0.1:1".parse().unwrap();
    let datagram = Datagram {
        payload: Payload::Model(Model { ip_size, words: [seq, 0, 0, 0] }),
        ..Datagram::udp(any, any, vec![])
    };
    Input::Datagram { port: PortId(0), at: Time::ZERO, datagram }
}

fn drain(link: &mut Link, now: Time, out: &mut Vec<(u64, u64)>) -> Option<Time> {
    loop {
        match link.poll(now) {
            Output::Transmit(t) => match t.datagram.payload {
                Payload::Model(m) => out.push((now.as_nanos(), m.words[0])),
                _ => unreachable!(),
            },
            Output::Event(_) => {}
            Output::Wait(next) => return next,
        }
    }
}

/// Offers the packets (time, size) in order and runs the link until it is empty.
fn run(link: &mut Link, offered: &[(u64, u32)]) -> Vec<(u64, u64)> {
    let (mut out, mut next) = (Vec::new(), None);
    for (seq, &(at, size)) in offered.iter().enumerate() {
        let at = Time::from_nanos(at);
        while let Some(due) = next
            && due <= at
        {
            next = drain(link, due, &mut out);
        }
        link.handle(at, packet(size, seq as u64));
        next = drain(link, at, &mut out);
    }
    while let Some(due) = next {
        next = drain(link, due, &mut out);
    }
    out
}

fn link(queue: QueueLimit) -> Link {
    Link::new(LinkConfig {
        rate: Some(Rate::ip(10_000_000)),
        delay: Span::from_millis(1),
        overhead: Bytes(14),
        queue,
        ..Default::default()
    })
}

#[test]
fn a_packet_takes_its_frames_time_and_the_delay() {
    let out = run(&mut link(QueueLimit::Packets(9)), &[(0, 1486), (0, 486), (5_000_000, 1486)]);
    assert_eq!(out, [(2_200_000, 0), (2_600_000, 1), (7_200_000, 2)]);
}

#[test]
fn the_packet_in_transmission_does_not_count_as_queued() {
    let mut two = link(QueueLimit::Packets(2));
    assert_eq!(run(&mut two, &[(0, 1486); 5]).len(), 3);
    assert_eq!((two.counters().drops, two.counters().max_queue_packets), (2, 2));
    // The second begins at 1.2 ms exactly: a packet that comes then finds one place free.
    let mut two = link(QueueLimit::Packets(2));
    assert_eq!(run(&mut two, &[(0, 1486), (0, 1486), (0, 1486), (1_200_000, 1486)]).len(), 4);
    let mut bytes = link(QueueLimit::Bytes(Bytes(3000)));
    assert_eq!(run(&mut bytes, &[(0, 1486); 5]).len(), 3);
    assert_eq!(bytes.counters().max_queue_bytes, Bytes(3000));
}

#[test]
fn no_rounding_adds_up_over_a_busy_period() {
    // 1500 B at 7 Mbit/s take 1714285.714... ns; 7000 of them exactly 12 s.
    let mut seven = Link::new(LinkConfig {
        rate: Some(Rate::ip(7_000_000)),
        queue: QueueLimit::Packets(10_000),
        ..Default::default()
    });
    let out = run(&mut seven, &vec![(0, 1500); 7000]);
    assert_eq!(out.last(), Some(&(12_000_000_000, 6999)));
    assert_eq!(seven.busy(Time::from_nanos(12_000_000_000)), Span::from_secs(12));
}

#[test]
fn without_a_rate_it_only_delays() {
    let mut wire = Link::new(LinkConfig { delay: Span::from_micros(3), ..Default::default() });
    assert_eq!(run(&mut wire, &[(0, 1500), (0, 1500), (7, 40)]), [(3_000, 0), (3_000, 1), (3_007, 2)]);
}

#[test]
fn what_is_changed_by_hand_outlives_what_the_schedule_said_before() {
    let ms = |n: i64| Time::ZERO + Span::from_millis(n);
    let to = |at, mbps: u64, delay| Change {
        at,
        rate: Some(Rate::ip(mbps * 1_000_000)),
        delay: Some(Span::from_millis(delay)),
    };
    let mut link = Link::new(LinkConfig {
        rate: Some(Rate::ip(1_000_000)),
        events: Events::PerDequeue,
        schedule: vec![to(ms(1), 2, 5), to(ms(50), 4, 2)],
        ..Default::default()
    });
    // Idle at the schedule's first change, so that nothing has read it.
    assert!(link.change(ms(2), &to(ms(0), 8, 1)));
    let out = run(&mut link, &[(3_000_000, 1000), (60_000_000, 1000)]);
    assert_eq!(out, [(5_000_000, 0), (64_000_000, 1)]);
}

proptest! {
    #[test]
    fn conserves_packets_in_order_and_is_never_busier_than_the_clock(
        gaps in prop::collection::vec((0_u64..3_000_000, 40_u32..1500), 1..200),
        limit in 1_u32..10, by_bytes in any::<bool>(), rate in 1_000_u64..20_000_000,
    ) {
        let mut at = 0;
        let offered: Vec<_> = gaps.iter().map(|&(gap, size)| { at += gap; (at, size) }).collect();
        let queue = if by_bytes { QueueLimit::Bytes(Bytes(u64::from(limit) * 1500)) } else { QueueLimit::Packets(limit) };
        let mut link = Link::new(LinkConfig { rate: Some(Rate::ip(rate)), queue, ..Default::default() });
        let out = run(&mut link, &offered);
        let counters = *link.counters();
        prop_assert_eq!(counters.packets + counters.drops, offered.len() as u64);
        prop_assert_eq!(counters.delivered, counters.packets);
        prop_assert_eq!(out.len() as u64, counters.packets);
        prop_assert!(out.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1));
        prop_assert!(matches!(&link.kind, Kind::Computed(queue) if queue.is_idle()));
        let end = out.last().map_or(0, |last| last.0);
        prop_assert!(link.busy(Time::from_nanos(end)).as_nanos() as u64 <= end);
    }
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
fn a_packet_goes_at_the_rate_at_its_start_and_the_delay_at_its_end() {
    for events in [Events::Auto, Events::PerDequeue] {
        let schedule = vec![
            Change { at: ms(3), rate: None, delay: Some(Span::from_millis(1)) },
            Change { at: Time::from_nanos(1_500_000), rate: mbit(1), delay: None },
        ];
        let config = ten(LinkConfig { delay: Span::from_millis(50), schedule, events, ..Default::default() });
        let out = run(&mut Link::new(config), &[(0, 1250), (0, 1250), (0, 1250)]);
        // Departures at 1, 2 and 12 ms; the third would arrive at 13 ms and is held behind the second.
        assert_eq!(out, [(51_000_000, 0), (52_000_000, 1), (52_000_000, 2)]);
    }
}

#[test]
fn packets_wait_through_an_outage() {
    for events in [Events::Auto, Events::PerDequeue] {
        let stop = Change { at: ms(1), rate: Some(Rate::ip(0)), delay: None };
        let config = ten(LinkConfig { queue: QueueLimit::Packets(3), events, ..Default::default() });
        let resumed = vec![stop.clone(), Change { at: ms(20), rate: mbit(5), delay: None }];
        let mut link = Link::new(LinkConfig { schedule: resumed, ..config.clone() });
        let out = run(
            &mut link,
            &[(0, 1250), (5_000_000, 1250), (6_000_000, 1250), (7_000_000, 1250), (8_000_000, 1250)],
        );
        assert_eq!(out, [(1_000_000, 0), (22_000_000, 1), (24_000_000, 2), (26_000_000, 3)]);
        assert_eq!(link.counters().drops, 1);
        assert_eq!(link.busy(ms(26)), Span::from_millis(7));
        let mut forever = Link::new(LinkConfig { schedule: vec![stop], ..config });
        assert_eq!(run(&mut forever, &[(0, 1250), (5_000_000, 1250)]), [(1_000_000, 0)]);
        assert_eq!((forever.under_way(), forever.busy(ms(30))), (1, Span::from_millis(1)));
    }
}

#[test]
fn a_rate_changed_by_hand_holds_from_the_next_packet() {
    let mut fixed = Link::new(ten(LinkConfig::default()));
    let faster = Change { at: Time::ZERO, rate: mbit(100), delay: None };
    assert!(!fixed.change(Time::ZERO, &faster));
    let mut live = Link::new(ten(LinkConfig { events: Events::PerDequeue, ..Default::default() }));
    let mut out = Vec::new();
    for seq in 0..3 {
        live.handle(Time::ZERO, packet(1250, seq));
    }
    assert_eq!(drain(&mut live, Time::ZERO, &mut out), Some(ms(1)));
    assert!(live.change(Time::from_nanos(500_000), &faster));
    assert_eq!(drain(&mut live, Time::from_nanos(500_000), &mut out), Some(ms(1)));
    assert_eq!(drain(&mut live, ms(1), &mut out), Some(Time::from_nanos(1_100_000)));
    let stop = Change { at: Time::ZERO, rate: Some(Rate::ip(0)), delay: None };
    assert!(live.change(Time::from_nanos(1_050_000), &stop));
    assert_eq!(drain(&mut live, Time::from_nanos(1_100_000), &mut out), None);
    assert!(live.change(ms(9), &faster));
    assert_eq!(drain(&mut live, ms(9), &mut out), Some(Time::from_nanos(9_100_000)));
    drain(&mut live, Time::from_nanos(9_100_000), &mut out);
    assert_eq!(out, [(1_000_000, 0), (1_100_000, 1), (9_100_000, 2)]);
}

#[test]
fn a_shaper_lets_a_burst_pass_and_then_its_rate() {
    let shaper = Some(Shaper { rate: Rate::ip(1_000_000), burst: Bytes(2500) });
    let mut link = Link::new(ten(LinkConfig { shaper, queue: QueueLimit::Packets(2), ..Default::default() }));
    let out = run(&mut link, &[(0, 1250), (0, 1250), (0, 1250), (0, 1250), (0, 1250), (60_000_000, 2501)]);
    // Two at 10 Mbit/s; tokens for the next every 10 ms from 0 on, and a millisecond to send each. The fifth
    // finds one in transmission and two waiting... of which the second is still in the queue.
    assert_eq!(out, [(1_000_000, 0), (2_000_000, 1), (11_000_000, 2)]);
    assert_eq!((link.counters().drops, link.counters().early_drops), (3, 0));
}

#[test]
fn red_and_codel_signal_before_the_queue_is_full() {
    let offered: Vec<_> = (0..4000).map(|n| (n * 900_000, 1250)).collect();
    let disciplines = [
        Discipline::Red(Red::default()),
        Discipline::TcRed(TcRed::default()),
        Discipline::Codel(Codel::default()),
    ];
    for discipline in disciplines {
        let queue = QueueLimit::Packets(1000);
        let mut link =
            Link::new(ten(LinkConfig { discipline: discipline.clone(), queue, ..Default::default() }));
        link.log_drops(10);
        let out = run(&mut link, &offered);
        let counters = *link.counters();
        assert!(counters.early_drops > 20, "{discipline:?}: {counters:?}");
        assert_eq!(out.len() as u64 + counters.drops, 4000);
        assert!(out.windows(2).all(|pair| pair[0].1 < pair[1].1));
        let drops = link.take_drops();
        assert!(drops.len() == 10 && drops.iter().all(|drop| drop.cause == LossCause::Early));
        assert_eq!(link.drops_left_out(), counters.drops - 10);
    }
}

#[test]
fn only_packets_that_can_be_are_marked() {
    let mark = |discipline| {
        let mut link = Link::new(ten(LinkConfig { discipline, ..Default::default() }));
        let mut marks = [0; 4];
        for n in 0..2000 {
            let Input::Datagram { port, at, datagram } = packet(1250, n) else { unreachable!() };
            let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][n as usize % 4];
            let now = Time::from_nanos(n * 990_000);
            link.handle(now, Input::Datagram { port, at, datagram: Datagram { ecn, ..datagram } });
            while let Output::Transmit(t) = link.poll(now) {
                if let Payload::Model(m) = t.datagram.payload {
                    marks[m.words[0] as usize % 4] += u64::from(t.datagram.ecn == Ecn::Ce);
                }
            }
        }
        assert_eq!(link.counters().marked, marks[1] + marks[2]);
        marks
    };
    let [not, ect0, ect1, _] = mark(Discipline::Step(Step::default()));
    assert!((not, ect0) == (0, 0) && ect1 > 300, "{ect1}");
    let [not, ect0, ect1, _] = mark(Discipline::Codel(Codel { ecn: true, ..Codel::default() }));
    assert!(not == 0 && ect0 + ect1 > 5);
    let [not, ect0, ect1, _] = mark(Discipline::Red(Red { ecn: true, ..Red::default() }));
    assert!(not == 0 && ect0 + ect1 > 5);
}

fn with_flow(flow: u32, seq: u64) -> Input {
    let Input::Datagram { port, at, datagram } = packet(1250, seq) else { unreachable!() };
    Input::Datagram { port, at, datagram: Datagram { flow: Flow(flow), ..datagram } }
}

/// Three flows in turn over a link with these channels; what of each arrives.
fn survivors(losses: Vec<Loss>) -> ([Vec<u64>; 3], Link) {
    let mut link = Link::seeded(ten(LinkConfig { losses, ..Default::default() }), 4, "link/x");
    let (mut arrived, mut out) = ([vec![], vec![], vec![]], vec![]);
    for n in 0..3000 {
        let now = ms(n * 2);
        link.handle(now, with_flow(n as u32 % 3, n));
        drain(&mut link, now, &mut out);
        drain(&mut link, ms(n * 2 + 1), &mut out);
    }
    out.iter().for_each(|&(_, seq)| arrived[seq as usize % 3].push(seq));
    (arrived, link)
}

#[test]
fn a_channel_on_one_flow_leaves_the_others_draws_alone() {
    let on = |flows, name: &str| Loss { flows, name: name.into(), ..Loss::of(Bernoulli { rate: 0.1 }) };
    let (one, link) = survivors(vec![on(vec![1], "one")]);
    assert_eq!((one[0].len(), one[2].len()), (1000, 1000));
    assert!((870..930).contains(&one[1].len()));
    assert_eq!(link.counters().lost, 1000 - one[1].len() as u64);
    assert_eq!(link.counters().drops, 0);
    let (both, _) = survivors(vec![on(vec![2], "two"), on(vec![1], "one")]);
    assert_eq!(both[1], one[1]);
    assert!(both[2].len() < 950 && both[2].iter().map(|n| n - 1).ne(both[1].iter().copied()));
}

#[test]
fn losses_after_the_transmitter_use_its_time_and_those_before_do_not() {
    let at = |place| survivors(vec![Loss { place, ..Loss::of(Bernoulli { rate: 0.5 }) }]).1;
    let (before, after) = (at(Place::Before), at(Place::After));
    assert_eq!(after.busy(ms(10_000)), Span::from_millis(3000));
    assert_eq!(before.busy(ms(10_000)), Span::from_millis(before.counters().delivered as i64));
    for link in [before, after] {
        let counters = link.counters();
        assert_eq!(counters.arrived, counters.lost + counters.delivered);
        assert!((1300..1700).contains(&counters.lost));
    }
}

#[test]
fn the_mean_queue_is_the_integral_of_what_waits() {
    for events in [Events::Auto, Events::PerDequeue] {
        let mut link = Link::new(ten(LinkConfig { events, ..Default::default() }));
        run(&mut link, &[(0, 1250); 3]);
        // 2500 B for 1 ms and 1250 B for another, of 10.
        let mean = link.counters().mean_queue(&LinkCounters::default(), Span::from_millis(10));
        assert_eq!(mean, Bytes(375));
    }
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
        gaps in prop::collection::vec((0_u64..3_000_000, 40_u32..1500), 1..200),
        limit in 1_u32..10, by_bytes in any::<bool>(), rate in prop::option::of(100_000_u64..20_000_000),
        on_the_grid in any::<bool>(), schedule in schedules(), lossy in any::<bool>(), overhead in 0_u64..40,
    ) {
        let mut at = 0;
        // Equal times and times at which a transmission ends are where the kinds could differ.
        let offered: Vec<_> = gaps.iter().map(|&(gap, size)| {
            at += if on_the_grid { gap / 1_000_000 * 1_000_000 } else { gap };
            (at, if on_the_grid { 1250 - overhead as u32 } else { size })
        }).collect();
        let rate = if on_the_grid { mbit(10) } else { rate.map(Rate::ip) };
        let queue = if by_bytes { QueueLimit::Bytes(Bytes(u64::from(limit) * 1500)) } else { QueueLimit::Packets(limit) };
        let losses = if lossy { vec![
            Loss::of(MarkovTime { covers: Covers::Whole, ..MarkovTime::with_rate(0.2, Span::from_millis(5)) }),
            Loss::of(GilbertElliott { p: 0.1, r: 0.5, ..Default::default() }),
            Loss { place: Place::Before, ..Loss::of(Bernoulli { rate: 0.1 }) },
            Loss { flows: vec![7], ..Loss::of(Bernoulli { rate: 1.0 }) },
            Loss::of(Pattern { period: 9, lost: vec![2, 3], slot: Some(Span::from_millis(2)), ..Default::default() }),
        ] } else { vec![] };
        let overhead = Bytes(overhead);
        let config = LinkConfig { rate, queue, schedule, losses, overhead, delay: Span::from_millis(7), ..Default::default() };
        let mut computed = Link::new(config.clone());
        let mut dequeue = Link::new(LinkConfig { events: Events::PerDequeue, ..config });
        computed.log_drops(1_000);
        dequeue.log_drops(1_000);
        let out = run(&mut computed, &offered);
        prop_assert_eq!(&out, &run(&mut dequeue, &offered));
        prop_assert_eq!(computed.take_drops(), dequeue.take_drops());
        let end = out.last().map_or(0, |last| last.0).max(at);
        prop_assert_eq!(computed.busy(Time::from_nanos(end)), dequeue.busy(Time::from_nanos(end)));
        prop_assert_eq!(computed.under_way(), dequeue.under_way());
        if computed.under_way() == 0 {
            // With an outage that never ends what still waits is counted when it enters by one, never by the other.
            prop_assert_eq!(computed.counters(), dequeue.counters());
        }
    }

    #[test]
    fn every_discipline_conserves_packets_in_order_within_the_limit(
        gaps in prop::collection::vec((0_u64..1_500_000, 40_u32..1500), 1..300),
        which in 0_usize..64, shaped in any::<bool>(), limit in 1_u32..30, ecn in any::<bool>(),
    ) {
        let mut at = 0;
        let offered: Vec<_> = gaps.iter().map(|&(gap, size)| { at += gap; (at, size) }).collect();
        let disciplines = Discipline::lively(ecn);
        let discipline = disciplines[which % disciplines.len()].clone();
        let shaper = shaped.then_some(Shaper { rate: Rate::ip(5_000_000), burst: Bytes(4_000) });
        let config = LinkConfig { rate: mbit(8), queue: QueueLimit::Packets(limit), discipline, shaper, ..Default::default() };
        prop_assert!(config.check().is_ok());
        let limit = config.discipline.limit();
        let mut link = Link::new(config.clone());
        let out = run(&mut link, &offered);
        let counters = *link.counters();
        prop_assert_eq!(counters.delivered, out.len() as u64);
        prop_assert_eq!(counters.arrived, counters.drops + counters.delivered);
        prop_assert_eq!(link.under_way(), 0);
        prop_assert!(out.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1));
        match limit.unwrap_or(config.queue) {
            QueueLimit::Packets(most) => prop_assert!(counters.max_queue_packets <= most),
            QueueLimit::Bytes(most) => prop_assert!(counters.max_queue_bytes <= most),
        }
        let end = out.last().map_or(0, |last| last.0);
        prop_assert!(link.busy(Time::from_nanos(end)).as_nanos() as u64 <= end);
    }

    /// The engine's way, which hands parcels from node to node and asks a link only when its answer may have changed, and
    /// the contract's, which hands it datagrams and asks after each.
    #[test]
    fn both_ways_give_the_same_departures(
        gaps in prop::collection::vec((0_u64..1_500_000, 40_u32..1500), 1..200),
        which in 0_usize..64, shaped in any::<bool>(), per_dequeue in any::<bool>(), ecn in any::<bool>(),
        schedule in prop::collection::vec((0_u64..200_000_000, 0_u64..9, 0_i64..40), 0..4),
    ) {
        let mut at = 0;
        let offered: Vec<_> = gaps.iter().map(|&(gap, size)| { at += gap; (at, size) }).collect();
        let disciplines = Discipline::lively(ecn);
        let change = |&(at, mbps, ms): &(u64, u64, i64)| Change {
            at: Time::from_nanos(at),
            rate: mbit(mbps),
            delay: Some(Span::from_millis(ms)),
        };
        let config = LinkConfig {
            rate: mbit(8),
            delay: Span::from_millis(3),
            queue: QueueLimit::Packets(20),
            discipline: disciplines[which % disciplines.len()].clone(),
            shaper: shaped.then_some(Shaper { rate: Rate::ip(5_000_000), burst: Bytes(4_000) }),
            schedule: schedule.iter().map(change).collect(),
            losses: vec![Loss::of(Bernoulli { rate: 0.05 })],
            events: if per_dequeue { Events::PerDequeue } else { Events::Auto },
            ..Default::default()
        };
        let mut alone = Link::new(config.clone());
        let by_contract = run(&mut alone, &offered);
        let (by_engine, counters) = run_in_engine(Link::new(config), &offered);
        prop_assert_eq!(by_contract, by_engine);
        prop_assert_eq!(alone.counters(), &counters);
    }
}

/// Sends the packets at their times.
struct Feeder(std::collections::VecDeque<(u64, u32)>, u64);

impl Node for Feeder {
    type Event = std::convert::Infallible;

    fn handle(&mut self, _: Time, _: Input) {}

    fn poll(&mut self, now: Time) -> Output {
        match self.0.front().copied() {
            Some((at, size)) if at <= now.as_nanos() => {
                self.0.pop_front();
                self.1 += 1;
                let Input::Datagram { datagram, .. } = packet(size, self.1 - 1) else { unreachable!() };
                Output::Transmit(Transmit { id: TransmitId(0), at: now, port: PortId(0), datagram })
            }
            next => Output::Wait(next.map(|(at, _)| Time::from_nanos(at))),
        }
    }
}

/// The same as [`run`] within an engine.
fn run_in_engine(link: Link, offered: &[(u64, u32)]) -> (Vec<(u64, u64)>, LinkCounters) {
    let mut engine = Engine::new();
    let feeder: Box<dyn Node<Event = std::convert::Infallible> + Send> =
        Box::new(Feeder(offered.iter().copied().collect(), 0));
    let [feeder, link] = [engine.add(feeder).unwrap(), engine.add(link).unwrap()];
    let sink = engine.add(Sink::default()).unwrap();
    engine.connect(feeder, Target::Node(link));
    engine.connect(link, Target::Node(sink));
    let out = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&out);
    engine.set_tap(Box::new(move |now, from, _, datagram| {
        if let (true, Payload::Model(model)) = (from == link, &datagram.payload) {
            noted.lock().unwrap().push((now.as_nanos(), model.words[0]));
        }
    }));
    while let Some(next) = engine.next_event() {
        engine.run_until(next).unwrap();
    }
    let out = out.lock().unwrap().clone();
    (out, *engine.link(link).unwrap().counters())
}
