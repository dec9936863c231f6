//! The client against a server by script, over a path of a known rate, in virtual time.

use super::*;
use crate::estimate::{Quantity, Value, WarningCode};

/// Messages on their way to the client.
#[derive(Clone, Debug)]
enum Coming {
    Connected,
    Control(Vec<u8>),
    Closed(Closed),
    Packet(Vec<u8>),
}

/// A server of iperf 3.12 behind a FIFO link.
struct Server {
    /// Rate of the link at the IP layer, in bit/s.
    rate: u64,
    /// Packets of a test that are lost, by their number.
    lost: fn(u64) -> bool,
    /// Answers to the connections, instead of a test; the last one stands for all later ones.
    refusals: Vec<Option<Coming>>,
    /// Counters have 64 bits.
    wide: bool,
    connections: usize,
    asked: String,
    all_asked: Vec<String>,
    hellos: usize,
    deaf: usize,
}

impl Server {
    fn new(rate: u64) -> Server {
        Server {
            rate,
            lost: |_| false,
            refusals: Vec::new(),
            wide: true,
            connections: 0,
            asked: String::new(),
            all_asked: Vec::new(),
            hellos: 0,
            deaf: 0,
        }
    }

    fn number(&self, key: &str) -> u64 {
        let from = self.asked.find(&format!("\"{key}\":")).unwrap() + key.len() + 3;
        self.asked[from..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    }

    fn refusal(&self) -> Option<Coming> {
        let last = self.refusals.len().checked_sub(1)?;
        self.refusals[(self.connections - 1).min(last)].clone()
    }

    /// Answers, with their delays in microseconds.
    fn answer(&mut self, out: &Output) -> Vec<(u64, Coming)> {
        let control = |bytes: &[u8]| vec![(500, Coming::Control(bytes.to_vec()))];
        match out {
            Output::Connect(_) => {
                self.connections += 1;
                match self.refusal() {
                    Some(Coming::Closed(Closed::ByServer)) | Some(Coming::Control(_)) | None => {
                        vec![(500, Coming::Connected)]
                    }
                    Some(other) => vec![(500, other)],
                }
            }
            Output::Control(bytes) if bytes.len() == COOKIE => match self.refusal() {
                Some(coming) => vec![(500, coming)],
                None => control(&[9]),
            },
            Output::Control(bytes) if bytes.len() == 1 && bytes[0] == 4 => control(&[13]),
            Output::Control(bytes) if bytes.len() == 1 => Vec::new(),
            Output::Control(bytes) if bytes.windows(6).any(|w| w == b"\"udp\":") => {
                self.asked = String::from_utf8(bytes[4..].to_vec()).unwrap();
                self.all_asked.push(self.asked.clone());
                control(&[10])
            }
            Output::Control(_) => control(&[0, 0, 0, 2, b'{', b'}', 14]),
            Output::Datagram(hello) => {
                assert_eq!(hello, b"9876");
                self.hellos += 1;
                if self.hellos <= self.deaf || self.asked.is_empty() { Vec::new() } else { self.test() }
            }
            _ => Vec::new(),
        }
    }

    fn test(&self) -> Vec<(u64, Coming)> {
        let (length, burst) = (self.number("len"), self.number("burst"));
        let packets = self.number("num") / length;
        let period = burst * length * 8_000_000 / self.number("bandwidth");
        let mut coming = vec![(500, Coming::Packet(b"6789".to_vec())), (600, Coming::Control(vec![1, 2]))];
        let mut free = 0;
        for k in 0..packets {
            let sent = 1_000 + k / burst * period + k % burst * 12;
            free = free.max(sent * 1_000) + (length + 28) * 8_000_000_000 / self.rate;
            let mut packet = vec![0; length as usize];
            packet[..4].copy_from_slice(&((sent / 1_000_000) as u32).to_be_bytes());
            packet[4..8].copy_from_slice(&((sent % 1_000_000) as u32).to_be_bytes());
            let at = if self.wide { 12 } else { 8 };
            packet[at..at + 4].copy_from_slice(&(k as u32 + 1).to_be_bytes());
            if !(self.lost)(k) {
                coming.push((free / 1_000, Coming::Packet(packet)));
            }
        }
        coming
    }

    /// Runs a client to its end; its decisions, records and the bytes that it counts.
    fn run(&mut self, change: impl FnOnce(&mut Iperf3Config)) -> (Vec<Decision>, Vec<StreamRecord>) {
        let mut config = Iperf3Config::new("192.0.2.1:5201".parse().unwrap(), [3; 32]);
        change(&mut config);
        let mut client = Iperf3::new(config);
        let mut records = Vec::new();
        let (mut now, mut coming, mut decisions): (u64, Vec<(u64, Coming)>, Vec<Decision>) =
            (0, Vec::new(), Vec::new());
        let mut next = None;
        for _ in 0..10_000 {
            match &next {
                None => client.handle(Time::from_nanos(now * 1_000), Input::Wake),
                Some(Coming::Connected) => client.handle(Time::from_nanos(now * 1_000), Input::Connected),
                Some(Coming::Control(bytes)) => {
                    client.handle(Time::from_nanos(now * 1_000), Input::Control(bytes))
                }
                Some(Coming::Closed(why)) => {
                    client.handle(Time::from_nanos(now * 1_000), Input::Closed(*why))
                }
                Some(Coming::Packet(payload)) => {
                    let at = Time::from_nanos(now * 1_000);
                    client.handle(at, Input::Datagram { at, ecn: Ecn::NotEct, payload });
                }
            }
            let wake = loop {
                match client.poll() {
                    Output::Wait(until) => break until,
                    Output::Event(what) => decisions.push(*what),
                    Output::Stream(record) => records.push(record),
                    out => {
                        if out == Output::Disconnect {
                            coming.retain(|(_, what)| matches!(what, Coming::Packet(_)));
                        }
                        coming.extend(self.answer(&out).into_iter().map(|(after, what)| (now + after, what)));
                    }
                }
            };
            if client.is_finished() {
                return (decisions, records);
            }
            coming.sort_by_key(|(at, _)| *at);
            let wake = wake.map_or(u64::MAX, |at| at.as_nanos().div_ceil(1_000));
            next = (coming.first().is_some_and(|(at, _)| *at <= wake)).then(|| coming.remove(0)).map(
                |(at, what)| {
                    now = now.max(at);
                    what
                },
            );
            if next.is_none() {
                assert!(wake < u64::MAX, "it hangs");
                now = now.max(wake);
            }
        }
        panic!("no end: {decisions:?}");
    }
}

fn refusal(decisions: &[Decision]) -> String {
    decisions
        .iter()
        .find_map(|what| match what {
            Decision::Refused { refusal, .. } => Some(refusal.to_string()),
            _ => None,
        })
        .unwrap_or_else(|| panic!("{decisions:?}"))
}

/// The capacity's value and warnings.
fn capacity(decisions: &[Decision]) -> (f64, Vec<WarningCode>) {
    let found = decisions.iter().find_map(|what| match what {
        Decision::Estimated { estimate, .. } if estimate.quantity == Quantity::Capacity => Some(estimate),
        _ => None,
    });
    let found = found.unwrap_or_else(|| panic!("{decisions:?}"));
    let Value::Is(rate) = found.value else { panic!("{found:?}") };
    (rate.bits_per_second() as f64, found.warnings.iter().map(|warning| warning.code).collect())
}

fn cost(decisions: &[Decision]) -> Cost {
    let Some(Decision::Finished { cost }) = decisions.last() else { panic!("{decisions:?}") };
    *cost
}

#[test]
fn three_tests_at_rising_rates_give_the_capacity_within_300_kb() {
    for (mbps, wide) in [(10, true), (50, false), (1, true)] {
        let mut server = Server { wide, ..Server::new(mbps * 1_000_000) };
        let (decisions, records) = server.run(|_| {});
        let (rate, warnings) = capacity(&decisions);
        assert!((rate / mbps as f64 / 1e6 - 1.0).abs() < 2e-3 && warnings.is_empty(), "{decisions:?}");
        assert_eq!((records.len(), server.connections), (6, 3));
        assert!(
            records
                .iter()
                .all(|r| r.packets.len() == 30 && r.lost() == 0 && r.direction == Direction::Reverse)
        );
        let all_asked = std::mem::take(&mut server.all_asked);
        let rates: Vec<u64> = all_asked
            .iter()
            .map(|asked| {
                server.asked = asked.clone();
                server.number("bandwidth")
            })
            .collect();
        assert!(
            rates[0] == 100_000 && rates[1..].iter().all(|r| r.abs_diff(mbps * 250_000) < mbps * 1_000),
            "{rates:?}"
        );
        let cost = cost(&decisions);
        assert!(
            cost.bytes() + cost.bytes_received < MAX_BYTES && cost.bytes_received > Bytes(267_000),
            "{cost:?}"
        );
    }
}

#[test]
fn fewer_bytes_are_fewer_trains_and_none_are_a_refusal() {
    let mut server = Server::new(10_000_000);
    let (decisions, records) = server.run(|config| config.max_bytes = Bytes(100_000));
    assert_eq!((records.len(), capacity(&decisions).1), (2, vec![WarningCode::Partial]));
    assert!(cost(&decisions).bytes_received < Bytes(100_000));
    let (decisions, _) = server.run(|config| config.max_bytes = Bytes(40_000));
    assert!(refusal(&decisions).contains("beyond the limit of"));
}

#[test]
fn a_connection_is_waited_for_within_the_limit() {
    for (limit_s, until_s) in [(1, 1), (20, 3)] {
        let config = Iperf3Config::new("192.0.2.1:5201".parse().unwrap(), [7; 32]);
        let mut client = Iperf3::new(Iperf3Config { max_time: Span::from_secs(limit_s), ..config });
        client.handle(Time::ZERO, Input::Wake);
        assert_eq!(client.poll(), Output::Connect(Time::ZERO + Span::from_secs(until_s)));
    }
}

/// A packet in 7 s comes often enough for the test to go on, and 30 of them take three minutes and a half.
#[test]
fn a_server_that_trickles_ends_with_the_time() {
    for limit in [None, Some(Span::from_secs(10)), Some(Span::from_secs(60))] {
        let (decisions, records) =
            Server::new(1_700).run(|config| config.max_time = limit.unwrap_or(config.max_time));
        let limit = limit.unwrap_or(Span::from_secs(30));
        assert!(refusal(&decisions).contains(&format!("within the limit of {limit}")), "{decisions:?}");
        let elapsed = cost(&decisions).elapsed;
        assert!((limit..=limit + Span::from_millis(1)).contains(&elapsed), "{elapsed}");
        let came = records[0].packets.len() - records[0].lost();
        assert_eq!((came, records.len()), ((limit.as_secs_f64() / 7.0) as usize, 1));
    }
}

#[test]
fn servers_that_refuse_are_told_by_a_sentence_each() {
    let error = |code: u8| Coming::Control(vec![0xFE, 0, 0, 0, code, 0, 0, 0, 0]);
    for (coming, said) in [
        (Coming::Control(vec![0xFF]), "busy with another test"),
        (error(142), "wants a user name"),
        (error(27), "limits the rate"),
        (error(37), "limits the time"),
        (error(99), "iperf3's error 99"),
        (Coming::Control(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()), "does not speak iperf3's protocol"),
        (Coming::Control(vec![2]), "does not keep to its protocol"),
        (Coming::Control(vec![11]), "was stopped"),
        (Coming::Closed(Closed::Refused), "no iperf3 server listens on TCP port 5201"),
        (Coming::Closed(Closed::Silent), "nothing answers"),
        (Coming::Closed(Closed::Unreachable), "no way to"),
        (Coming::Closed(Closed::ByServer), "closed the connection before"),
    ] {
        let mut server = Server { refusals: vec![Some(coming)], ..Server::new(10_000_000) };
        let (decisions, _) = server.run(|_| {});
        assert!(refusal(&decisions).contains(said), "{decisions:?}");
        assert_eq!(server.connections, 1);
    }
}

/// As `iperf3 -s -1`, and as one that others use between two tests.
#[test]
fn a_server_that_takes_one_test_gives_a_number_from_one_train_and_a_busy_one_is_asked_again() {
    let refused = Coming::Closed(Closed::Refused);
    let mut server = Server { refusals: vec![None, Some(refused.clone())], ..Server::new(10_000_000) };
    let (decisions, records) = server.run(|_| {});
    let (rate, warnings) = capacity(&decisions);
    assert!((rate / 10e6 - 1.0).abs() < 2e-3 && warnings == [WarningCode::Partial], "{decisions:?}");
    assert_eq!((records.len(), server.connections), (1, 1 + ATTEMPTS as usize));
    let busy = Coming::Control(vec![0xFF]);
    let refusals = vec![None, Some(busy), Some(refused), None];
    let (decisions, records) = Server { refusals, ..Server::new(10_000_000) }.run(|_| {});
    assert_eq!((records.len(), capacity(&decisions).1), (6, Vec::new()));
}

#[test]
fn losses_leave_a_number_and_silence_a_reason() {
    let mut server = Server { lost: |k| k % 5 == 2 || k == 29, ..Server::new(10_000_000) };
    let (decisions, records) = server.run(|_| {});
    assert!((capacity(&decisions).0 / 10e6 - 1.0).abs() < 2e-3 && records[0].lost() == 7, "{decisions:?}");
    let (decisions, _) = Server { lost: |_| true, ..Server::new(10_000_000) }.run(|_| {});
    assert!(refusal(&decisions).contains("none of its packets comes"), "{decisions:?}");
    // A lost hello is said again; without any the server's UDP port is closed.
    let mut server = Server { deaf: 2, ..Server::new(10_000_000) };
    assert_eq!(capacity(&server.run(|_| {}).0).1, []);
    let (decisions, _) = Server { deaf: 99, ..Server::new(10_000_000) }.run(|_| {});
    assert!(refusal(&decisions).contains("UDP port 5201"), "{decisions:?}");
}

#[test]
fn a_limit_of_time_ends_it_with_what_there_is() {
    let (decisions, _) = Server::new(100_000).run(|config| config.max_time = Span::from_secs(2));
    assert!(refusal(&decisions).contains("raise --max-seconds"));
    assert!(cost(&decisions).elapsed <= Span::from_millis(2_001));
}

/// Every byte that a server could send, in any state: nothing panics, and each run ends.
#[test]
fn any_bytes_in_any_state_end_the_run() {
    for state in 0..=255_u8 {
        for before in [&[][..], &[9], &[9, 10], &[9, 10, 1, 2], &[9, 10, 1, 2, 13]] {
            let bytes = [before, &[state, 0, 0, 0, 5, 1]].concat();
            let refusals = vec![Some(Coming::Control(bytes))];
            Server { refusals, ..Server::new(10_000_000) }.run(|_| {});
        }
    }
}
