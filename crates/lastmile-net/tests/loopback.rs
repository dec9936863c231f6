//! Prober and reflector on real loopback sockets.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lastmile::endpoint::Endpoint;
use lastmile::endpoint::measure::Decision;
use lastmile::endpoint::measure::{Measurement, Prober, ProberConfig, Reflector, ReflectorConfig};
use lastmile::estimate::{Estimator, Outcome, Refusal, Step, StreamPlan};
use lastmile::event::Event;
use lastmile::report::{Direction, StreamRecord};
use lastmile::time::Span;
use lastmile::units::Bytes;
use lastmile_net::driver::{Driver, DriverConfig};
use lastmile_net::udp::{UdpConfig, UdpSocket};

/// Sends one stream and ends: what is tested is the session, not an estimate.
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
