//! The examples of the front page: one run against a reflector on std's sockets, one in virtual time.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // a driver's own

use std::cell::RefCell;
use std::net::UdpSocket;

use lastmile::control::{self, CONTROLLERS, Setting};
use lastmile::estimate::{self, Conditions};
use lastmile::{
    Datagram, Decision, Direction, Input, Measurement, Node, Output, PortId, Prober, ProberConfig, Reflector,
    ReflectorConfig, Span, Time,
};

#[path = "../examples/control.rs"]
#[allow(dead_code)] // its `main`
mod hosted;
#[path = "../examples/measure.rs"]
#[allow(dead_code)] // its `main`
mod measure;

/// Answers at once, until a datagram without bytes comes. Reverse streams would want deadlines: see the example.
fn reflect(socket: &UdpSocket) -> Reflector {
    let mut reflector = Reflector::new(ReflectorConfig::new([6; 32]));
    let (start, mut buffer) = (std::time::Instant::now(), [0; 65_535]);
    loop {
        let (n, from) = socket.recv_from(&mut buffer).unwrap();
        if n == 0 {
            return reflector;
        }
        let now = Time::from_nanos(start.elapsed().as_nanos() as u64);
        let datagram = Datagram::udp(from, socket.local_addr().unwrap(), buffer[..n].to_vec());
        reflector.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
        loop {
            match reflector.poll(now) {
                Output::Transmit(t) => _ = socket.send_to(t.datagram.payload.udp().unwrap(), t.datagram.to),
                Output::Event(_) => {}
                Output::Wait(_) => break,
            }
        }
    }
}

#[test]
fn the_front_page_examples_fit_a_page() {
    for example in [include_str!("../examples/measure.rs"), include_str!("../examples/control.rs")] {
        assert!(example.lines().count() <= 60);
    }
}

/// 2 Mbit/s, of which the radio takes 2 %.
#[test]
fn the_front_page_example_hosts_every_controller() {
    let rate = |name: &str| {
        let setting = Setting { packet_size: hosted::SIZE, ..Setting::default() };
        hosted::host(&mut *control::build(&name.parse().unwrap(), &setting).unwrap(), 60)
    };
    for scheme in CONTROLLERS.iter().filter(|scheme| scheme.name != "fixed") {
        let kbits = rate(scheme.name);
        // NADA's loss penalty at 2 % is its share at 750 kbit/s of 3 Mbit/s (RFC 8698, equations 2 and 5).
        let least = if scheme.name == "nada" { 600.0 } else { 1_000.0 };
        assert!((least..1_961.0).contains(&kbits), "{}: {kbits}", scheme.name);
    }
    assert!(rate("vtp+spike") > 1.2 * rate("vtp+none") && rate("tfrc+probe+zbs") > 1.4 * rate("tfrc"));
}

#[test]
fn the_front_page_example_measures_over_std_sockets() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let peer = server.local_addr().unwrap();
    let serving = std::thread::spawn(move || reflect(&server));

    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let conditions = Conditions { timing_noise: Span::from_micros(50), ..Conditions::default() };
    let estimator = estimate::build(&"wbest".parse().unwrap(), &conditions).unwrap();
    let measurement = Measurement { method: "wbest".into(), direction: Direction::Forward, estimator };
    let mut prober = Prober::new(ProberConfig::new(peer, [5; 32]), vec![measurement]);
    let decisions = RefCell::new(Vec::new());
    measure::drive(&socket, &mut prober, |decision| decisions.borrow_mut().push(decision)).unwrap();
    socket.send_to(&[], peer).unwrap();
    let reflector = serving.join().unwrap();

    // This test is not about the speed of loopback or this machine's schedule. Whole streams must come, be reported and
    // judged, and the session must end with an answer.
    let decisions = decisions.into_inner();
    let judged = decisions.iter().filter(|d| matches!(d, Decision::StreamJudged { lost: 0, .. })).count();
    let answered = |d: &&Decision| matches!(d, Decision::Estimated { .. } | Decision::Refused { .. });
    assert!(judged >= 1, "{decisions:?}");
    assert!(decisions.iter().filter(answered).count() >= 1, "{decisions:?}");
    assert!(matches!(decisions.last(), Some(Decision::Finished { .. })), "{decisions:?}");
    assert!(reflector.counters().logged >= 60, "{:?}", reflector.counters());
}
