//! A sender of RTP at a rate controller's rate, fed by RFC 8888 over a path of one queue.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use lastmile::classify::Decision::{FellBack, LossJudged};
use lastmile::control::{self, RateController};
use lastmile::endpoint::Endpoint;
use lastmile::endpoint::stream::*;
use lastmile::node::{Datagram, Input, Node, Output, PortId};
use lastmile::telemetry::Visitor;
use lastmile::time::{Epoch, Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile::wire::is_rtcp;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

fn ends() -> (SocketAddr, SocketAddr) {
    ("192.0.2.1:5004".parse().unwrap(), "192.0.2.2:5004".parse().unwrap())
}

fn at(millis: i64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

struct Path {
    /// The link's rate, which changes at these times.
    rates: &'static [(i64, u64)],
    loss: f64,
    /// Feedback comes back until then.
    heard_until: Time,
    stop: Time,
}

/// Results of a stream: media in kbit/s in each second that the link carried, the targets with their times, and its end.
struct Came {
    kbits: Vec<f64>,
    targets: Vec<(Time, Rate)>,
    ended: Option<(Time, End)>,
    sent: Sent,
    received: Received,
    /// Circuit breakers that tripped: true if that ended the stream.
    broken: Vec<bool>,
    /// Decisions of the controller, or of the classifier in front of it.
    decided: Vec<control::Decision>,
}

/// A controller whose decisions are kept.
#[derive(Clone, Debug)]
struct Heard(Box<dyn RateController>, Arc<Mutex<Vec<control::Decision>>>);

impl RateController for Heard {
    fn on_sent(&mut self, now: Time, sent: &control::Sent) {
        self.0.on_sent(now, sent);
    }
    fn on_feedback(&mut self, now: Time, feedback: &mut control::Feedback<'_>) {
        self.0.on_feedback(now, feedback);
        self.1.lock().unwrap().extend(core::iter::from_fn(|| self.0.poll_decision()));
    }
    fn on_signal(&mut self, now: Time, signal: control::Signal) {
        self.0.on_signal(now, signal);
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.0.poll_timeout()
    }
    fn on_timeout(&mut self, now: Time) {
        self.0.on_timeout(now);
    }
    fn poll_action(&mut self) -> Option<control::Action> {
        self.0.poll_action()
    }
    fn output(&self) -> control::Output {
        self.0.output()
    }
    fn telemetry(&self, visitor: &mut dyn Visitor) {
        self.0.telemetry(visitor);
    }

    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}

fn over(path: &Path, control: &str) -> Came {
    over_with(path, control, |_, _| {})
}

fn over_with(path: &Path, control: &str, change: fn(&mut SenderConfig, &mut ReceiverConfig)) -> Came {
    let rate = SenderRate::Controlled(ControlConfig::new(control.parse().unwrap()));
    let mut config = SenderConfig {
        frame_rate: 50.0,
        packet_size: Bytes(1000),
        stop: path.stop,
        epoch: Epoch::from_unix_nanos(1_700_000_000_000_000_000),
        ..SenderConfig::new(ends().1, 7, rate)
    };
    // The other host's clock says something else.
    let epoch = Epoch::from_unix_nanos(1_600_000_000_123_456_789);
    let mut listening = ReceiverConfig { epoch, ..ReceiverConfig::new(9) };
    change(&mut config, &mut listening);
    let mut receiver = Receiver::new(listening).unwrap();
    let decided = Arc::default();
    let built = ControlConfig::new(control.parse().unwrap()).build(config.packet_size).unwrap();
    let mut sender = Sender::controlled(config, Box::new(Heard(built, Arc::clone(&decided)))).unwrap();
    let mut random = Pcg64Mcg::new(0x1234_5677);
    let mut queue: BTreeMap<(Time, u64), (bool, Input)> = BTreeMap::new();
    let mut wakes = [Some(Time::ZERO); 2];
    let (mut order, mut free) = (0, Time::ZERO);
    let mut came = Came {
        kbits: Vec::new(),
        targets: Vec::new(),
        ended: None,
        sent: Sent::default(),
        received: Received::default(),
        broken: Vec::new(),
        decided: Vec::new(),
    };
    let mut end = Time::ZERO;
    while !sender.is_finished() {
        let next = queue.keys().next().map(|&(at, _)| at);
        let Some(now) = [next, wakes[0], wakes[1]].into_iter().flatten().min() else { break };
        end = now;
        let (to_receiver, input) = match queue.first_entry().filter(|entry| entry.key().0 == now) {
            Some(entry) => entry.remove(),
            None => (wakes[1] == Some(now), Input::Wake),
        };
        let node: &mut dyn Node<Event = Decision> = if to_receiver { &mut receiver } else { &mut sender };
        node.handle(now, input);
        let mut packets = Vec::new();
        wakes[usize::from(to_receiver)] = loop {
            match node.poll(now) {
                Output::Wait(until) => break until,
                Output::Transmit(transmit) => packets.push(transmit),
                Output::Event(Decision::TargetChanged { target }) => came.targets.push((now, target)),
                Output::Event(Decision::MediaEnded { why, sent }) => {
                    (came.ended, came.sent) = (Some((now, why)), sent);
                }
                Output::Event(Decision::SourceLeft { received, .. }) => came.received = received,
                Output::Event(Decision::CircuitBroken { ends, .. }) => came.broken.push(ends),
                Output::Event(_) => {}
            }
        };
        for transmit in packets {
            let left = transmit.at.max(now);
            order += 1;
            let mut datagram: Datagram = transmit.datagram;
            (datagram.from, datagram.to) = if to_receiver { (ends().1, ends().0) } else { ends() };
            let arrival = |at, datagram| Input::Datagram { port: PortId(0), at, datagram };
            if to_receiver {
                let back = left + Span::from_millis(20);
                if back < path.heard_until {
                    queue.insert((back, order), (false, arrival(back, datagram)));
                }
                continue;
            }
            if transmit.id.0 > 0 {
                queue.insert((left, order), (false, Input::Sent { id: transmit.id, at: left }));
                order += 1;
            }
            let media = !is_rtcp(datagram.payload.udp().unwrap());
            let rate = path.rates.iter().rev().find(|(from, _)| at(*from) <= left).unwrap().1;
            let service = Rate::ip(rate).time_for(datagram.ip_size());
            // A queue of a quarter of a second.
            if free - left > Span::from_millis(250) {
                continue;
            }
            free = free.max(left) + service;
            if media {
                let second = (free.as_nanos() / 1_000_000_000) as usize;
                came.kbits.resize(came.kbits.len().max(second + 1), 0.0);
                came.kbits[second] += datagram.ip_size().bits() as f64 / 1e3;
            }
            if f64::from(random.next_u32()) >= path.loss * f64::from(u32::MAX) {
                let comes = free + Span::from_millis(20);
                queue.insert((comes, order), (true, arrival(comes, datagram)));
            }
        }
    }
    receiver.handle(end, Input::Interrupted);
    while let Some(decision) = match receiver.poll(end) {
        Output::Wait(_) => None,
        other => Some(other),
    } {
        if let Output::Event(Decision::SourceLeft { received, .. }) = decision {
            came.received = received;
        }
    }
    came.decided = std::mem::take(&mut decided.lock().unwrap());
    came
}

fn mean(came: &Came, seconds: core::ops::Range<usize>) -> f64 {
    let kbits = &came.kbits[seconds.start..seconds.end.min(came.kbits.len())];
    kbits.iter().sum::<f64>() / kbits.len() as f64
}

#[test]
fn a_stream_takes_what_the_link_has_and_follows_it() {
    let path = Path {
        rates: &[(0, 1_000_000), (40_000, 400_000), (80_000, 1_000_000)],
        loss: 0.0,
        heard_until: Time::MAX,
        stop: at(120_000),
    };
    for control in ["tfrc", "tfrc+spike", "sqrt"] {
        let came = over(&path, control);
        for (seconds, kbits) in [(20..40, 1000.0), (50..80, 400.0), (100..120, 1000.0)] {
            let mean = mean(&came, seconds.clone());
            assert!(
                mean > 0.85 * kbits && mean <= 1.01 * kbits,
                "{control} in {seconds:?}: {mean:.0} of {kbits}"
            );
        }
        // TFRC sends at most twice what arrives, once it knows.
        let settled = came.targets.iter().filter(|(when, _)| *when > at(5_000));
        let most = settled.map(|(_, rate)| rate.bits_per_second()).max().unwrap_or(0);
        assert!(control == "sqrt" || most <= 2_100_000, "{control}: {most}");
    }
}

/// 40 ms and 0.8 ms for a packet of 1000 B there and back, feedback every 50 ms: W_init / R is 4000 B in a round trip, of which the
/// target is known a round trip and an interval after the first packet left.
#[test]
fn the_first_window_comes_after_a_round_trip_and_a_feedback_interval() {
    let path = Path { rates: &[(0, 10_000_000)], loss: 0.0, heard_until: Time::MAX, stop: at(1_000) };
    let begin = |control: &str| {
        let came = over(&path, control);
        *came.targets.first().unwrap_or_else(|| panic!("{control} never rose"))
    };
    for controller in control::CONTROLLERS.iter().filter(|controller| controller.name != "fixed") {
        let (when, target) = begin(controller.name);
        assert!(when <= at(91), "{} rose at {when}", controller.name);
        // NADA has no window to begin with: RMIN of its table 2.
        let is_nada = controller.name == "nada";
        let window = Rate::ip(if is_nada { 150_000 } else { 4_000 * 8 * 1_000 / 41 });
        assert!(target >= window.scaled(0.9), "{}: {target} at {when}", controller.name);
    }
}

/// At 5 % of independent loss TFRC has 0.8 Mbit/s of 2; with Spike, which RFC 8888's stamps serve, 1.3. Biaz needs a
/// quarter of T_min, which reads 3.90625 ms: half a nanosecond finer than RFC 8888's stamps. It steps aside for Spike.
#[test]
fn a_classifier_that_feedback_serves_keeps_the_rate_on_a_lossy_link() {
    let path = Path { rates: &[(0, 2_000_000)], loss: 0.05, heard_until: Time::MAX, stop: at(100_000) };
    let [unaware, spike, biaz] =
        ["tfrc", "tfrc+spike", "tfrc+biaz"].map(|control| mean(&over(&path, control), 20..100));
    assert!(unaware < 900.0 && spike > 1.5 * unaware && biaz > 1.5 * unaware, "{unaware} {spike} {biaz}");
}

#[test]
fn a_sender_without_feedback_backs_off_and_ends() {
    let path = Path { rates: &[(0, 1_000_000)], loss: 0.0, heard_until: at(20_000), stop: at(120_000) };
    let came = over(&path, "tfrc");
    let (ended, why) = came.ended.unwrap();
    assert_eq!(why, End::NoFeedback);
    assert!(ended < at(37_000), "{ended}");
    let before = mean(&came, 15..20);
    let after = mean(&came, 26..29);
    assert!(after < before / 30.0, "{before:.0} {after:.0}");
}

/// The rate that a sender at rest has been asked for.
#[test]
fn it_says_which_rate_it_starts_with() {
    let came = over(
        &Path { rates: &[(0, 1_000_000)], loss: 0.0, heard_until: Time::MAX, stop: at(3_000) },
        "fixed(rate=300 kbit/s)",
    );
    assert!((mean(&came, 0..3) / 300.0 - 1.0).abs() < 0.05, "{:?}", came.kbits);
    assert!(came.targets.is_empty());
}

/// A packet of 1000 B takes 1.33 ms at 6 Mbit/s: a twentieth of that are 67 us, which stamps of 1/1024 s are not, and ticks of
/// 11 us are.
#[test]
fn times_of_receipt_serve_zbs_where_feedback_alone_does_not() {
    let path = Path { rates: &[(0, 6_000_000)], loss: 0.01, heard_until: Time::MAX, stop: at(20_000) };
    let fell_back = |came: &Came| {
        came.decided
            .iter()
            .any(|what| matches!(what, control::Decision::Classify(FellBack { from: "zbs", .. })))
    };
    assert!(fell_back(&over(&path, "tfrc+zbs")));
    let fine = over_with(&path, "tfrc+zbs", |_, receiver| receiver.receipt_times = true);
    assert!(!fell_back(&fine), "{:?}", fine.decided);
    assert!(
        fine.decided
            .iter()
            .any(|what| matches!(what, control::Decision::Classify(LossJudged { by: "zbs", .. })))
    );
}

/// Capacities by the pairs of a stream, and the capacities before and after each hand-off, in kbit/s.
fn probed(came: &Came) -> (Vec<f64>, Vec<(f64, f64)>) {
    let kbits = |rate: &Rate| rate.bits_per_second() as f64 / 1e3;
    let (mut capacities, mut hand_offs) = (Vec::new(), Vec::new());
    for what in &came.decided {
        match what {
            control::Decision::Capacity { rate, .. } => capacities.push(kbits(rate)),
            control::Decision::HandOff { from, to } => hand_offs.push((kbits(from), kbits(to))),
            _ => {}
        }
    }
    (capacities, hand_offs)
}

/// From any source a sender sends pairs of one size, and they tell the link's rate. A source that makes packets of any
/// size has them filled up, and sends no more for it.
#[test]
fn pairs_of_media_tell_the_links_rate() {
    let path = Path { rates: &[(0, 2_000_000)], loss: 0.0, heard_until: Time::MAX, stop: at(60_000) };
    for source in ["on-demand", "cbr", "codec"] {
        for control in
            ["tfrc+probe", "sqrt+probe", "fixed(rate=1 Mbit/s)+probe", "fixed(rate=100 kbit/s)+probe+spike"]
        {
            let choose: fn(&mut SenderConfig, &mut ReceiverConfig) = match source {
                "cbr" => |sender, receiver| {
                    sender.source.source = Some("cbr".parse().unwrap());
                    receiver.receipt_times = true;
                },
                "codec" => |sender, receiver| {
                    sender.source.source = Some("codec".parse().unwrap());
                    receiver.receipt_times = true;
                },
                _ => |_, receiver| receiver.receipt_times = true,
            };
            let came = over_with(&path, control, choose);
            let (capacities, hand_offs) = probed(&came);
            let all = format!("{control}, {source}: {capacities:?}");
            assert!(capacities.len() >= 2 && hand_offs.is_empty(), "{all}");
            assert!(capacities.iter().all(|kbits| (kbits / 2_000.0 - 1.0).abs() < 0.03), "{all}");
            if control.starts_with("fixed") {
                let (asked, sent) =
                    (if control.contains("100 k") { 100.0 } else { 1_000.0 }, mean(&came, 10..60));
                assert!((sent / asked - 1.0).abs() < 0.03, "{control}, {source}: {sent} of {asked} kbit/s");
            }
        }
    }
}

/// [equation 4] At 150 kbit/s packets of 234 B make a window of 5 s.
#[test]
fn packets_are_as_large_as_a_window_of_five_seconds_wants_them() {
    let path = Path { rates: &[(0, 150_000)], loss: 0.0, heard_until: Time::MAX, stop: at(120_000) };
    let came = over(&path, "tfrc+probe");
    let sizes = came.decided.iter().filter_map(|what| match what {
        control::Decision::Capacity { size, .. } => Some(size.0),
        _ => None,
    });
    let sizes: Vec<u64> = sizes.collect();
    // The first window's are full, and take 21 s and more: a sixth of the pairs finds the queue full and is cut in two.
    assert!(sizes[0] == 1000 && sizes.len() >= 12, "{sizes:?}");
    assert!(sizes[2..].iter().all(|size| (200..280).contains(size)), "{sizes:?}");
    let full = over(&path, "tfrc+probe(full_size=true)");
    assert!((came.sent.packets as f64) > 2.5 * full.sent.packets as f64);
    assert!((came.sent.bytes.0 as f64 / full.sent.bytes.0 as f64 - 1.0).abs() < 0.1);
}

#[test]
fn lost_packets_come_again_within_their_time_and_share() {
    let path = Path { rates: &[(0, 4_000_000)], loss: 0.05, heard_until: Time::MAX, stop: at(30_000) };
    let came = over_with(&path, "fixed(rate=1 Mbit/s)", |sender, receiver| {
        sender.retransmission = Some(Retransmission::within(8, Span::from_millis(400)));
        receiver.nack = Some(Span::from_millis(400));
    });
    let (sent, received) = (came.sent, came.received);
    // 50 ms there and back and 10 ms for reordering: a packet can be asked for several times.
    assert!(received.lost > 100 && received.recovered >= received.lost - 1, "{received:?}");
    assert!(received.nacked >= received.recovered && sent.retransmitted >= received.recovered, "{sent:?}");
    assert!(sent.retransmitted_bytes.0 * 4 <= sent.bytes.0, "{sent:?}");
    // The controller's rate is that of both.
    let both = (sent.bytes + sent.retransmitted_bytes).bits() as f64 / 30.0;
    assert!((both / 1e6 - 1.0).abs() < 0.01, "{both}");
}

/// Half of the packets are lost: they would take half as much again as the media, and may take a tenth.
#[test]
fn repeating_stays_within_the_share_that_was_asked_for() {
    let path = Path { rates: &[(0, 4_000_000)], loss: 0.5, heard_until: Time::MAX, stop: at(20_000) };
    let came = over_with(&path, "fixed(rate=1 Mbit/s)", |sender, receiver| {
        let within = Span::from_millis(400);
        sender.retransmission = Some(Retransmission { share: 0.1, ..Retransmission::within(8, within) });
        receiver.nack = Some(within);
    });
    let share = came.sent.retransmitted_bytes.0 as f64 / came.sent.bytes.0 as f64;
    assert!((0.09..=0.1).contains(&share), "{share}");
}

/// 3 Mbit/s on a link of 100 kbit/s, 0.3 s there and back: 97 % are lost, and TCP would send 4 kB/s. A tenth of the rate is
/// below ten times that, and then all begins again. A controller on the same link trips nothing.
#[test]
fn a_sender_that_does_not_answer_congestion_is_ended() {
    let path = Path { rates: &[(0, 100_000)], loss: 0.0, heard_until: Time::MAX, stop: at(60_000) };
    let came = over(&path, "fixed(rate=3 Mbit/s)");
    let (ended, why) = came.ended.unwrap();
    assert_eq!(why, End::Congestion);
    assert!(ended < at(20_000), "{ended}");
    // A tenth first.
    assert_eq!(came.broken, [false, true]);
    assert_eq!(over(&path, "tfrc").ended.unwrap().1, End::Stop);
    let off = over_with(&path, "fixed(rate=3 Mbit/s)", |sender, _| sender.circuit_breakers = false);
    assert_eq!(off.ended.unwrap().1, End::Stop);
}
