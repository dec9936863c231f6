//! Prober and reflector on real loopback sockets.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lastmile::endpoint::measure::Decision;
use lastmile::endpoint::measure::{Measurement, Prober, ProberConfig, Reflector, ReflectorConfig};
use lastmile::endpoint::stream::{self, Receiver, ReceiverConfig, Sender, SenderConfig};
use lastmile::endpoint::{Decided, Endpoint, Endpoints, any};
use lastmile::estimate::{Estimator, Outcome, Refusal, Step, StreamPlan};
use lastmile::event::Event;
use lastmile::node::{Ecn, PortId};
use lastmile::report::{Direction, StreamRecord};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_net::driver::{Driver, DriverConfig};
use lastmile_net::udp::{UdpConfig, UdpSocket};

/// Sends one stream and ends: this tests the session, not an estimate.
struct OneStream(Option<StreamPlan>);

impl Estimator for OneStream {
    fn step(&mut self) -> Step {
        match self.0.take() {
            Some(plan) => Step::Send(plan),
            None => Step::Done(Outcome::Refused(Refusal::NotConverged { streams: 1 })),
        }
    }
    fn on_stream(&mut self, _record: &StreamRecord) {}
}

fn reflector_at(bind: SocketAddr, stop: Arc<AtomicBool>) -> (SocketAddr, std::thread::JoinHandle<()>) {
    let socket = UdpSocket::open(&UdpConfig::new(bind)).unwrap();
    let address = socket.local_addr();
    let thread = std::thread::spawn(move || {
        let mut driver = Driver::new(vec![socket], DriverConfig::default()).unwrap();
        let mut reflector =
            Reflector::new(ReflectorConfig { epoch: driver.epoch(), ..ReflectorConfig::new([7; 32]) });
        driver.run(&mut reflector, &mut |_: &Event<Decision>| {}, &stop, |_| false).unwrap();
    });
    (address, thread)
}

fn measure(bind: SocketAddr, directions: &[Direction]) -> (Vec<Event<Decision>>, Vec<StreamRecord>) {
    let stop = Arc::new(AtomicBool::new(false));
    let (peer, thread) = reflector_at(bind, Arc::clone(&stop));
    let socket = UdpSocket::open(&UdpConfig::new(SocketAddr::new(bind.ip(), 0))).unwrap();
    let mut driver = Driver::new(vec![socket], DriverConfig::default()).unwrap();
    let measurements = directions.iter().map(|&direction| Measurement {
        method: "one-stream".into(),
        direction,
        estimator: Box::new(OneStream(Some(StreamPlan::pairs(10, Bytes(1488), Span::from_millis(2))))),
    });
    let config = ProberConfig { epoch: driver.epoch(), ..ProberConfig::new(peer, [5; 32]) };
    let mut prober = Prober::with_sink(config, measurements.collect(), Vec::new());
    let events = Mutex::new(Vec::new());
    let mut observer = |e: &Event<Decision>| events.lock().unwrap().push(e.clone());
    driver.run(&mut prober, &mut observer, &AtomicBool::new(false), Prober::is_finished).unwrap();
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    let records = prober.sink().clone();
    (events.into_inner().unwrap(), records)
}

fn streams_arrive_in_every_direction(bind: &str) {
    let directions = [Direction::Forward, Direction::Reverse, Direction::RoundTrip];
    let (events, records) = measure(bind.parse().unwrap(), &directions);
    assert_eq!(records.len(), 3, "{events:#?}");
    for (record, direction) in records.iter().zip(directions) {
        assert_eq!((record.direction, record.lost()), (direction, 0), "{record:#?}");
        for (i, packet) in record.packets.iter().enumerate() {
            assert!(packet.fate.arrived().is_some(), "{direction} packet {i}: {:?}", packet);
            assert_eq!(packet.size, Bytes(1488));
        }
        let sent: Vec<_> = record.packets.iter().map(|p| p.sent).collect();
        assert!(sent.windows(2).all(|w| w[0] <= w[1]), "{direction}: {sent:?}");
    }
    let rtt = records[2].rtt(0).unwrap();
    assert!(rtt > Span::ZERO && rtt < Span::from_secs(1), "{rtt}");
    let Some(Event { what: Decision::Finished { cost }, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!(cost.probe_bytes, Bytes(2 * 20 * 1488), "forward and round trip");
    assert!(cost.credit_bytes < Bytes(1488 * 4), "the forward stream paid for the reverse one: {cost:?}");
}

#[test]
fn over_ipv4() {
    streams_arrive_in_every_direction("127.0.0.1:0");
}

#[test]
fn over_ipv6() {
    streams_arrive_in_every_direction("[::1]:0");
}

#[test]
fn a_closed_port_is_said_at_once() {
    let free = UdpSocket::open(&UdpConfig::new("127.0.0.1:0".parse().unwrap())).unwrap().local_addr();
    let socket = UdpSocket::open(&UdpConfig::new("127.0.0.1:0".parse().unwrap())).unwrap();
    let mut driver = Driver::new(vec![socket], DriverConfig::default()).unwrap();
    let measurement = Measurement {
        method: "one-stream".into(),
        direction: Direction::Forward,
        estimator: Box::new(OneStream(None)),
    };
    let mut prober = Prober::new(ProberConfig::new(free, [5; 32]), vec![measurement]);
    let mut refusals = Vec::new();
    let started = std::time::Instant::now();
    let mut observer = |e: &Event<Decision>| {
        if let Decision::Refused { refusal, .. } = &e.what {
            refusals.push(refusal.to_string());
        }
    };
    driver.run(&mut prober, &mut observer, &AtomicBool::new(false), Prober::is_finished).unwrap();
    assert!(refusals[0].contains("nothing listens on that port"), "{refusals:?}");
    assert!(started.elapsed().as_millis() < 500);
}

/// One host has a prober and the sender of a stream, the other a reflector and the stream's receiver: a driver each.
#[test]
fn hosts_carry_several_endpoints() {
    let open = || UdpSocket::open(&UdpConfig::new("127.0.0.1:0".parse().unwrap())).unwrap();
    let far = [open(), open()];
    let [reflecting, receiving] = [far[0].local_addr(), far[1].local_addr()];
    let stop = AtomicBool::new(false);
    let (near_events, far_events) = std::thread::scope(|scope| {
        let far = scope.spawn(|| {
            let mut driver = Driver::new(far.into(), DriverConfig::default()).unwrap();
            let epoch = driver.epoch();
            let reflector = Reflector::new(ReflectorConfig { epoch, ..ReflectorConfig::new([7; 32]) });
            let receiver = Receiver::new(ReceiverConfig { epoch, ..ReceiverConfig::new(2) }).unwrap();
            let mut host = Endpoints::new([(Some(20), any(reflector)), (Some(21), any(receiver))]);
            let mut events = Vec::new();
            let mut decided = |event: &Event<Decided>| events.push(event.what.clone().event(event.at, 0));
            driver.run(&mut host, &mut decided, &stop, |_| false).unwrap();
            events
        });
        let mut driver = Driver::new(vec![open(), open()], DriverConfig::default()).unwrap();
        let epoch = driver.epoch();
        let measurement = |direction| Measurement {
            method: "one-stream".into(),
            direction,
            estimator: Box::new(OneStream(Some(StreamPlan::pairs(10, Bytes(1488), Span::from_millis(2))))),
        };
        let both = [Direction::Forward, Direction::Reverse].map(measurement);
        let prober =
            Prober::new(ProberConfig { epoch, ..ProberConfig::new(reflecting, [5; 32]) }, both.into());
        let sender = Sender::new(SenderConfig {
            ecn: Ecn::Ect0,
            stop: Time::ZERO + Span::from_millis(500),
            epoch,
            ..SenderConfig::new(receiving, 1, Rate::ip(2_000_000))
        })
        .unwrap();
        let mut host = Endpoints::new([(Some(10), any(prober)), (Some(11), any(sender))]);
        let mut events = Vec::new();
        let mut decided = |event: &Event<Decided>| events.push(event.what.clone().event(event.at, 0));
        let done = |host: &Endpoints| host.is_finished(PortId(0)) && host.is_finished(PortId(1));
        driver.run(&mut host, &mut decided, &AtomicBool::new(false), done).unwrap();
        stop.store(true, Ordering::Relaxed);
        (events, far.join().unwrap())
    });
    let of = |events: &[lastmile::endpoint::Event], node| -> Vec<_> {
        events.iter().filter(|event| event.node == node).map(|event| event.what.clone()).collect()
    };
    let judged = of(&near_events, 10);
    let is_whole = |what: &&lastmile::endpoint::Decision| {
        matches!(what.of(), Some(Decision::StreamJudged { packets: 20, lost: 0, .. }))
    };
    assert_eq!(judged.iter().filter(is_whole).count(), 2, "{judged:#?}");
    let Some(stream::Decision::MediaEnded { why: stream::End::Stop, sent }) =
        of(&near_events, 11).last().and_then(|what| what.of().cloned())
    else {
        panic!("{near_events:#?}")
    };
    // Half a second of 2 Mbit/s, and each packet is told of.
    assert!((120_000..=130_000).contains(&sent.bytes.0) && sent.acknowledged == sent.packets, "{sent:?}");
    let left = of(&far_events, 21);
    let Some(stream::Decision::SourceLeft { received, .. }) = left.last().and_then(|what| what.of()) else {
        panic!("{left:#?}")
    };
    assert_eq!((received.packets, received.lost), (sent.packets, 0));
    assert!(matches!(of(&far_events, 20).first().and_then(|w| w.of()), Some(Decision::SessionOpened { .. })));
}
