//! Endpoints on hosts with clocks of their own, and hosts outside the engine.

use crate::common::{Log, Recorder};
use lastmile::endpoint::Endpoint;
use lastmile::estimate::{Warning, WarningCode};
use lastmile::node::{Datagram, Failure, Input, Node, Output, PortId, Transmit, TransmitId};
use lastmile::time::{Span, Time};
use lastmile_sim::network::engine::EngineError;
use lastmile_sim::scenario::{Attach, Scenario, Simulation, build};

const TEXT: &str = r#"
name = "hosts"
duration = "1 s"
[host.a]
clock = { offset = "5 s", skew_ppm = 1000.0, resolution = "10 us", steps = [
  { at = "20 ms", by = "3 ms", announced = true },
  { at = "40 ms", by = "-7 ms", announced = false },
] }
[host.b]
[[link]]
from = "a"
to = "b"
rate = "12 Mbit/s"
delay = "2 ms"
"#;

fn ms(ms: i64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn packet(id: u64, at: Time, to: &str) -> Transmit {
    let datagram = Datagram::udp("0.0.0.0:7".parse().unwrap(), to.parse().unwrap(), vec![id as u8; 1472]);
    Transmit { id: TransmitId(id), at, port: PortId(0), datagram }
}

fn run(attached: Vec<(String, Attach)>) -> Simulation {
    build(&Scenario::parse("hosts.toml", TEXT).unwrap(), 1, attached).unwrap()
}

fn inputs(log: &Log) -> Vec<(Time, Input)> {
    log.lock().unwrap().clone()
}

#[test]
fn planned_packets_leave_on_time_by_the_hosts_own_clock() {
    // The clock gains 1 us a millisecond: 5.010010 s there is 10 ms of the engine.
    let at = |us: i64| Time::ZERO + Span::from_micros(us);
    let send = vec![packet(1, at(5_010_010), "10.77.0.2:9"), packet(2, at(5_010_010), "10.77.0.2:9")];
    let (a, a_log) = Recorder::new(send);
    let (b, b_log) = Recorder::new(vec![]);
    let mut run = run(vec![("a".into(), Attach::node(a)), ("b".into(), Attach::node(b))]);
    assert_eq!(run.engine.next_event(), Some(Time::ZERO));
    run.engine.run_until(ms(9)).unwrap();
    assert!(inputs(&a_log).is_empty());
    assert_eq!(run.engine.next_event(), Some(ms(10)));
    run.engine.run_until(ms(15)).unwrap();
    // Sent is stamped with the resolution of the stamping clock; `now` is the monotonic one.
    let sent = |id| (at(5_010_010), Input::Sent { id: TransmitId(id), at: at(5_010_010) });
    assert_eq!(inputs(&a_log), [sent(1), sent(2)]);
    // 1500 B at 12 Mbit/s and 2 ms: back to back packets arrive 1 ms apart, on b's perfect clock.
    let arrivals: Vec<_> = inputs(&b_log)
        .into_iter()
        .map(|(now, input)| match input {
            Input::Datagram { at, datagram, .. } => (now, at, datagram.from.to_string(), datagram.payload),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((arrivals[0].0, arrivals[0].1), (ms(13), ms(13)));
    assert_eq!(arrivals[1].0, ms(14));
    assert_eq!(arrivals[0].2, "10.77.0.1:7");
}

#[test]
fn an_announced_step_is_told_and_an_unannounced_one_shifts_stamps() {
    let send = vec![
        packet(1, ms(5_030), "10.77.0.2:9"),
        packet(2, ms(5_050), "10.77.0.2:9"),
        packet(3, ms(0), "8.8.8.8:9"),
        // Nobody waits to hear of these.
        packet(0, ms(5_030), "10.77.0.2:9"),
        packet(0, ms(0), "8.8.8.8:9"),
    ];
    let (a, log) = Recorder::new(send);
    let (b, _) = Recorder::new(vec![]);
    let mut run = run(vec![("a".into(), Attach::node(a)), ("b".into(), Attach::node(b))]);
    run.engine.run_until(ms(100)).unwrap();
    let seen = inputs(&log);
    // A time that has passed means at once; nobody has that address.
    assert_eq!(
        seen[0].1,
        Input::Failed { port: PortId(0), id: Some(TransmitId(3)), reason: Failure::Unreachable }
    );
    assert_eq!(seen[1].1, Input::ClockStepped { by: Span::from_millis(3) });
    assert_eq!(seen[1].0, Time::ZERO + Span::from_micros(5_020_020));
    assert_eq!(seen[2].1, Input::Sent { id: TransmitId(1), at: ms(5_030) });
    assert_eq!(seen[3].1, Input::Sent { id: TransmitId(2), at: ms(5_043) });
    assert!(seen[3].0 >= ms(5_050) && seen[3].0 - ms(5_050) < Span::from_nanos(3));
    assert_eq!(seen.len(), 4);
}

#[test]
fn a_wake_comes_when_the_hosts_clock_shows_it() {
    let (mut a, log) = Recorder::new(vec![]);
    a.wake = Some(Time::from_nanos(5_123_456_789));
    let mut run = run(vec![("a".into(), Attach::node(a))]);
    run.engine.run_until(ms(500)).unwrap();
    let woken: Vec<_> = inputs(&log).into_iter().filter(|(_, input)| *input == Input::Wake).collect();
    assert_eq!(woken.len(), 1);
    assert!(woken[0].0 >= Time::from_nanos(5_123_456_789));
    assert!(woken[0].0 - Time::from_nanos(5_123_456_789) < Span::from_nanos(3));
}

#[test]
fn packets_enter_and_leave_at_external_hosts() {
    let external = || vec![("a".to_owned(), Attach::External), ("b".to_owned(), Attach::External)];
    let mut run = run(external());
    run.engine.run_until(ms(50)).unwrap();
    let datagram =
        |n: u8| Datagram::udp("10.77.0.1:5".parse().unwrap(), "[fd77::2]:6".parse().unwrap(), vec![n; 1452]);
    // In the past: now. In the future: then, whatever was injected before.
    run.engine.inject(run.hosts[0], ms(60), datagram(2)).unwrap();
    run.engine.inject(run.hosts[0], ms(1), datagram(1)).unwrap();
    assert_eq!(run.engine.next_event(), Some(ms(50)));
    let lost = Datagram::udp("10.77.0.1:5".parse().unwrap(), "1.1.1.1:6".parse().unwrap(), vec![]);
    run.engine.inject(run.hosts[0], ms(55), lost).unwrap();
    run.engine.run_until(ms(62)).unwrap();
    let mut out = Vec::new();
    run.engine.take_egress(&mut out);
    assert_eq!(out.len(), 1);
    run.engine.run_until(ms(70)).unwrap();
    run.engine.take_egress(&mut out);
    let seen: Vec<_> = out.iter().map(|e| (e.host, e.at, e.datagram.payload.udp().unwrap()[0])).collect();
    // The theoretical times of delivery: 1 ms to send, 2 ms to propagate.
    assert_eq!(seen, [(1, ms(53), 1), (1, ms(63), 2)]);
    let refused = run.engine.inject(run.links[0], ms(80), datagram(3));
    assert_eq!(refused, Err(EngineError::NotExternal(run.links[0].0)));
}

/// Answers every packet at once.
struct Echoing(Vec<Transmit>);
impl Node for Echoing {
    type Event = std::convert::Infallible;

    fn handle(&mut self, now: Time, input: Input) {
        if let Input::Datagram { mut datagram, .. } = input {
            std::mem::swap(&mut datagram.from, &mut datagram.to);
            self.0.push(Transmit { id: TransmitId(0), at: now, port: PortId(0), datagram });
        }
    }
    fn poll(&mut self, _now: Time) -> Output {
        self.0.pop().map_or(Output::Wait(None), Output::Transmit)
    }
}

#[test]
fn endpoints_that_answer_each_other_in_no_time_are_stopped() {
    let text = TEXT.replace("rate = \"12 Mbit/s\"\ndelay = \"2 ms\"\n", "");
    let scenario = Scenario::parse("hosts.toml", &text).unwrap();
    let first = vec![packet(1, Time::ZERO, "10.77.0.2:9")];
    let attached =
        vec![("a".into(), Attach::node(Echoing(first))), ("b".into(), Attach::node(Echoing(vec![])))];
    let mut run = build(&scenario, 1, attached).unwrap();
    assert!(matches!(run.engine.run_until(ms(1)), Err(EngineError::Stuck { at, .. }) if at == Time::ZERO));
}

#[test]
fn a_node_that_never_waits_is_stopped() {
    /// Asks for ever for a time that has passed.
    struct Impatient;
    impl Node for Impatient {
        type Event = std::convert::Infallible;

        fn handle(&mut self, _now: Time, _input: Input) {}
        fn poll(&mut self, _now: Time) -> Output {
            Output::Wait(Some(Time::ZERO))
        }
    }
    let mut run = run(vec![("b".into(), Attach::node(Impatient))]);
    assert!(matches!(run.engine.run_until(ms(1)), Err(EngineError::Stuck { node: 1, .. })));
}

#[test]
fn decisions_come_ordered_by_time_and_node_whoever_was_woken_first() {
    use lastmile::endpoint::measure::Decision;
    struct Decides(u64);
    impl Node for Decides {
        type Event = Decision;

        fn handle(&mut self, _now: Time, _input: Input) {}
        fn poll(&mut self, now: Time) -> Output<Decision> {
            self.0 += 1;
            match self.0 {
                1 => Output::Wait(Some(now + Span::from_millis(10))),
                n if n < 4 => {
                    Output::Event(Decision::Warned(Warning { code: WarningCode::Other, text: n.to_string() }))
                }
                _ => Output::Wait(None),
            }
        }
    }
    impl Endpoint for Decides {
        fn is_finished(&self) -> bool {
            false
        }
    }
    let attached = ["b", "a"].map(|name| (name.to_owned(), Attach::endpoint(Decides(0))));
    let text = TEXT.replace("skew_ppm = 1000.0", "skew_ppm = 0");
    let mut run = build(&Scenario::parse("hosts.toml", &text).unwrap(), 1, attached.into()).unwrap();
    run.engine.run_until(ms(30)).unwrap();
    let events = run.engine.take_events();
    let order: Vec<_> = events.iter().map(|e| (e.at, e.node, e.seq)).collect();
    // `at` is on the clock of the host that decided.
    assert_eq!(order, [(ms(5_010), 0, 0), (ms(5_010), 0, 1), (ms(10), 1, 0), (ms(10), 1, 1)]);
    assert!(run.engine.take_events().is_empty());
}

#[test]
fn engines_may_run_on_threads_of_their_own() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&run(vec![]));
}
