//! A sender as the host of a controller: window, padding, feedback intervals, key frames, and everything that it tells.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use lastmile::control::{
    Action, Fate, Feedback, Output as Wanted, PacketClass, RateController, Sent as Left, Signal,
};
use lastmile::endpoint::stream::source::{Frame, FrameSource};
use lastmile::telemetry::Visitor;
use lastmile::wire::RtpPacket;

use super::*;

/// Feedback: its time, fates in the order of sending, and the order of arrivals.
type Heard = (Time, Vec<(u64, Fate)>, Vec<u32>);

/// Signals and packets that a controller was told of.
#[derive(Debug, Default)]
struct Told {
    left: Vec<Left>,
    signals: Vec<(Time, Signal)>,
    feedback: Vec<Heard>,
}

/// Says what a host is to do, and writes down what it tells.
#[derive(Clone, Debug)]
struct Script {
    output: Wanted,
    actions: VecDeque<Action>,
    told: Arc<Mutex<Told>>,
}

impl RateController for Script {
    fn on_sent(&mut self, _: Time, sent: &Left) {
        self.told.lock().unwrap().left.push(*sent);
    }
    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        let fates = feedback.reports.iter().map(|report| (report.sent.id, report.fate)).collect();
        self.told.lock().unwrap().feedback.push((now, fates, feedback.arrival_order.to_vec()));
    }
    fn on_signal(&mut self, now: Time, signal: Signal) {
        self.told.lock().unwrap().signals.push((now, signal));
    }
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
    fn on_timeout(&mut self, _: Time) {}
    fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
    fn output(&self) -> Wanted {
        self.output
    }
    fn telemetry(&self, _: &mut dyn Visitor) {}
    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}

/// A second of 50 frames at 400 kbit/s in packets of 500 B, over 20 ms there and back: packets and all that the controller was told.
struct Run {
    output: Wanted,
    actions: Vec<Action>,
    source: Option<&'static str>,
    /// The source makes 40 kbit/s of the same picture from 2 s on.
    stands_still: bool,
    stop: i64,
    /// The time at which a packet arrives that left then, by its number; nothing if it is lost.
    arrives: fn(u64, Time) -> Option<Time>,
    /// The address of the sender that is answered, by the time of the answer.
    own: fn(Time) -> SocketAddr,
}

impl Default for Run {
    fn default() -> Run {
        let rate = Rate::ip(400_000);
        Run {
            output: Wanted { pacing: Rate::ip(800_000), ..Wanted::rate(rate) },
            actions: Vec::new(),
            source: None,
            stands_still: false,
            stop: 1_000,
            arrives: |_, left| Some(left + Span::from_millis(20)),
            own: |_| ends().0,
        }
    }
}

/// Fifty frames of 100 B in a second, whose picture changes for 2 s.
#[derive(Debug)]
struct Screen(u64);

impl FrameSource for Screen {
    fn frame(&mut self, _: Time, _: Rate, _: Bytes) -> Frame {
        self.0 += 1;
        Frame { size: Bytes(100), next: Span::from_millis(20) }
    }

    fn range(&self) -> (Rate, Rate) {
        (Rate::ip(0), Rate::ip(40_000))
    }

    fn stands_still(&self) -> bool {
        self.0 > 100
    }
}

struct Ran {
    told: Told,
    /// When each packet left, its payload type and its size.
    packets: Vec<(Time, u8, u64)>,
    sent: Sent,
    /// Times of feedback.
    answers: Vec<Time>,
}

impl Run {
    fn run(self) -> Ran {
        let told = Arc::new(Mutex::new(Told::default()));
        let script =
            Script { output: self.output, actions: self.actions.clone().into(), told: Arc::clone(&told) };
        let source = Some(self.source.unwrap_or("cbr").parse().unwrap());
        let source = SourceConfig { source, ..SourceConfig::default() };
        let mut sender =
            Sender::controlled(SenderConfig { source, ..config(at(self.stop)) }, Box::new(script)).unwrap();
        if self.stands_still {
            sender = sender.with_source(Box::new(Screen(0)));
        }
        let mut receiver = receiver();
        let mut queue: BTreeMap<(Time, u64), (bool, Input)> = BTreeMap::new();
        let mut wakes = [Some(Time::ZERO); 2];
        let (mut order, mut number) = (0, 0);
        let mut ran =
            Ran { told: Told::default(), packets: Vec::new(), sent: Sent::default(), answers: Vec::new() };
        while !sender.is_finished() {
            let next = queue.keys().next().map(|&(at, _)| at);
            let Some(now) = [next, wakes[0], wakes[1]].into_iter().flatten().min() else { break };
            let (to_receiver, input) = match queue.first_entry().filter(|entry| entry.key().0 == now) {
                Some(entry) => entry.remove(),
                None => (wakes[1] == Some(now), Input::Wake),
            };
            let node: &mut dyn Node<Event = Decision> = if to_receiver { &mut receiver } else { &mut sender };
            node.handle(now, input);
            wakes[usize::from(to_receiver)] = loop {
                match node.poll(now) {
                    Output::Wait(until) => break until,
                    Output::Event(Decision::MediaEnded { sent, .. }) => ran.sent = sent,
                    Output::Event(_) => {}
                    Output::Transmit(transmit) => {
                        let left = transmit.at.max(now);
                        let mut datagram = transmit.datagram;
                        order += 2;
                        let media = !is_rtcp(datagram.payload.udp().unwrap());
                        let arrives = if to_receiver {
                            (datagram.from, datagram.to) = (ends().1, (self.own)(left));
                            ran.answers.push(left);
                            Some(left + Span::from_millis(20))
                        } else {
                            (datagram.from, datagram.to) = ends();
                            let size = datagram.ip_size().0;
                            let packet = RtpPacket::parse(datagram.payload.udp().unwrap());
                            if media && let Ok(packet) = packet {
                                ran.packets.push((left, packet.header.payload_type, size));
                            }
                            queue.insert((left, order), (false, Input::Sent { id: transmit.id, at: left }));
                            number += u64::from(media);
                            if media { (self.arrives)(number - 1, left) } else { Some(left) }
                        };
                        if let Some(at) = arrives {
                            let input = Input::Datagram { port: PortId(0), at, datagram };
                            queue.insert((at, order + 1), (!to_receiver, input));
                        }
                    }
                }
            };
        }
        drop(sender);
        ran.told = Arc::into_inner(told).unwrap().into_inner().unwrap();
        ran
    }
}

impl Ran {
    fn signals(&self, of: impl Fn(&Signal) -> bool) -> Vec<Signal> {
        self.told.signals.iter().map(|(_, signal)| *signal).filter(of).collect()
    }
}

/// 400 kbit/s in 50 frames a second are frames of two packets of 500 B. A round trip of 40 ms and feedback of 50 ms make some 70 ms in
/// flight; a window of 1500 B is three packets for each such round, 33 in a second.
#[test]
fn nothing_is_released_above_the_window() {
    let free = Run::default().run();
    assert_eq!(free.packets.len(), 100);
    let most = |ran: &Ran| ran.told.left.iter().map(|sent| sent.in_flight.0).max().unwrap();
    assert!(most(&free) > 4_000, "{}", most(&free));
    let window = Some(Bytes(1_500));
    let held = Run { output: Wanted { window, ..Run::default().output }, ..Run::default() }.run();
    assert_eq!(most(&held), 1_500);
    // Feedback of each 50 ms opens it: three packets then, and not at the next frame.
    assert!((30..45).contains(&held.packets.len()), "{}", held.packets.len());
    let opened =
        held.told.feedback.iter().filter(|(now, ..)| held.packets.iter().any(|(left, ..)| left == now));
    assert!(opened.count() > 10);
    // Without a window all is as ever.
    let wide =
        Run { output: Wanted { window: Some(Bytes(1 << 40)), ..Run::default().output }, ..Run::default() };
    assert_eq!(wide.run().packets, free.packets);
}

/// All packets of a second are lost: the window stays full, and a packet each second finds that out.
#[test]
fn a_full_window_is_no_silence() {
    let window = Some(Bytes(1_000));
    let arrives = |_, left: Time| (left < at(500) || left >= at(1_500)).then(|| left + Span::from_millis(20));
    let output = Wanted { window, ..Run::default().output };
    let ran = Run { output, arrives, stop: 6_000, ..Run::default() }.run();
    let late = ran.packets.iter().filter(|(left, ..)| *left > at(5_000)).count();
    assert!(late > 10, "{late}");
    assert!(ran.told.left.iter().all(|sent| sent.in_flight.0 <= 2_500));
}

/// One packet after the other: 500, 1000, 1500 B in flight, until the first feedback.
#[test]
fn bytes_in_flight_are_those_without_a_known_fate() {
    let ran = Run::default().run();
    let (first, ..) = ran.told.feedback[0];
    let before: Vec<u64> =
        ran.told.left.iter().filter(|sent| sent.at < first).map(|sent| sent.in_flight.0).collect();
    let expected: Vec<u64> = (1..=before.len() as u64).map(|packets| 500 * packets).collect();
    assert_eq!(before, expected);
    let told: usize = ran.told.feedback.iter().map(|(_, fates, _)| fates.len()).sum();
    assert!(told >= 95, "{told}");
    // A packet that is lost is in flight until three later ones arrived.
    let lossy = Run {
        arrives: |number, left| (number % 10 != 9).then(|| left + Span::from_millis(20)),
        ..Run::default()
    };
    let lossy = lossy.run();
    assert!(lossy.told.left.iter().skip(20).all(|sent| sent.in_flight.0 <= 6_000));
}

/// A tenth of 400 kbit/s of media, and padding up to 200 or to the target.
#[test]
fn padding_fills_up_to_its_rate_and_not_beyond() {
    let media = "cbr(max=40 kbit/s)";
    let rate = |output: Wanted| {
        let ran = Run { output, source: Some(media), stop: 4_000, ..Run::default() }.run();
        let of = |kind: u8| {
            ran.packets.iter().filter(|packet| packet.1 == kind).map(|packet| packet.2).sum::<u64>()
        };
        let classes = ran.told.left.iter().filter(|sent| sent.class == PacketClass::Padding).count() as u64;
        assert_eq!((classes, of(98)), (ran.sent.padding, ran.sent.padding_bytes.0));
        [of(96), of(98)].map(|bytes| bytes as f64 * 8.0 / 4e3)
    };
    let wanted = Run::default().output;
    let near = |found: [f64; 2], expected: [f64; 2]| {
        let apart = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 8.0);
        assert!(apart, "{found:?}, not {expected:?}");
    };
    near(rate(wanted), [40.0, 0.0]);
    near(rate(Wanted { padding: Rate::ip(200_000), ..wanted }), [40.0, 160.0]);
    near(rate(Wanted { keep_probing: true, ..wanted }), [40.0, 360.0]);
    // Nor do pictures that are repeated, which are no pause.
    let probing = Wanted { keep_probing: true, ..wanted };
    let ran = Run { output: probing, stands_still: true, stop: 4_000, ..Run::default() }.run();
    let late = |kind: u8| ran.packets.iter().filter(|(left, is, _)| *is == kind && *left > at(2_100)).count();
    assert!(ran.sent.padding > 100 && late(98) == 0 && late(96) > 90, "{:?}", ran.sent);
    assert!(!ran.told.signals.iter().any(|(_, signal)| *signal == Signal::Idle), "{:?}", ran.told.signals);
    // Media that makes more needs none.
    let ran = Run { output: Wanted { padding: Rate::ip(200_000), ..wanted }, ..Run::default() }.run();
    assert_eq!(ran.sent.padding, 0);
}

/// One interval after the first packet that is new; two packets leave each 20 ms, 5 ms apart. No time at all is a millisecond.
#[test]
fn feedback_comes_as_often_as_it_is_asked_for() {
    let gaps = |ran: &Ran| {
        let late: Vec<&Time> = ran.answers.iter().filter(|at_| **at_ > at(1_000)).collect();
        (*late[late.len() - 1] - *late[0]).as_secs_f64() * 1e3 / (late.len() - 1) as f64
    };
    let usual = Run { stop: 3_000, ..Run::default() }.run();
    assert!((45.0..65.0).contains(&gaps(&usual)), "{}", gaps(&usual));
    for (asked, expected) in [(25, 25.0..45.0), (200, 190.0..220.0), (0, 9.0..11.0)] {
        let actions = vec![Action::FeedbackEvery(Span::from_millis(asked))];
        let ran = Run { actions, stop: 3_000, ..Run::default() }.run();
        assert!(expected.contains(&gaps(&ran)), "{asked}: {}", gaps(&ran));
    }
}

/// The codec's answer to a key frame is that to a new target: 3.24 frames.
#[test]
fn a_key_frame_is_asked_of_the_source() {
    let source = Some("codec(size_scale=0, interval_scale=0)");
    let frame = |actions| {
        let ran = Run { actions, source, ..Run::default() }.run();
        ran.packets.iter().take_while(|(left, ..)| *left < at(19)).map(|packet| packet.2).sum::<u64>()
    };
    let (usual, key) = (frame(Vec::new()), frame(vec![Action::KeyFrame]));
    // By the pacer at twice the target two frames' bytes leave within a frame's time.
    assert_eq!((usual, key > 1_800), (1_000, true), "{key}");
}

/// Two frames of two packets, 2000 B in 20 ms at twice the rate: at each frame its own bytes wait, and nothing right before the next.
#[test]
fn the_backlog_is_what_waits_for_the_pacer() {
    let backlog = |signal: &Signal| matches!(signal, Signal::Backlog { .. });
    let ran = Run::default().run();
    let told = ran.signals(backlog);
    assert_eq!(told[0], Signal::Backlog { bytes: Bytes(1_000) });
    assert!(told.iter().all(|signal| matches!(signal, Signal::Backlog { bytes } if bytes.0 <= 1_500)));
    // Paced at half of the rate it grows by half of a frame in a frame's time.
    let output = Wanted { pacing: Rate::ip(200_000), ..Run::default().output };
    let slow = Run { output, ..Run::default() }.run();
    let most = slow
        .signals(backlog)
        .iter()
        .map(|signal| if let Signal::Backlog { bytes } = signal { bytes.0 } else { 0 })
        .max();
    assert!((12_000..=14_000).contains(&most.unwrap()), "{most:?}: half a second at 200 kbit/s");
    // Data that never ends waits on purpose.
    let endless = Run { source: Some("on-demand"), ..Run::default() }.run();
    assert_eq!(endless.signals(backlog), []);
}

#[test]
fn everything_that_a_host_knows_is_told() {
    let ran = Run::default().run();
    assert!(matches!(ran.told.signals[0].1, Signal::Demand { .. }));
    assert_eq!(
        ran.signals(|signal| matches!(signal, Signal::Mtu { .. })),
        [Signal::Mtu { size: Bytes(500) }]
    );
    let others = ran.signals(|signal| {
        !matches!(signal, Signal::Demand { .. } | Signal::Mtu { .. } | Signal::Backlog { .. })
    });
    assert_eq!(others, [], "feedback brings round-trip times, and nothing else happened");
    // Another address of this host.
    let own: fn(Time) -> SocketAddr =
        |now| if now < at(500) { ends().0 } else { "10.0.0.9:42000".parse().unwrap() };
    let moved = Run { own, ..Run::default() }.run();
    assert_eq!(moved.signals(|signal| matches!(signal, Signal::Route { .. })).len(), 1);
    // Two seconds of losses: 3 (3 x 40 + 100) ms are persistent congestion, three times.
    let arrives = |_, left: Time| (left < at(500) || left >= at(2_500)).then(|| left + Span::from_millis(20));
    let outage = Run { arrives, stop: 4_000, ..Run::default() }.run();
    let persistent = outage.signals(|signal| *signal == Signal::PersistentCongestion).len();
    assert!((2..=3).contains(&persistent), "{persistent}");
}

/// Every tenth packet comes 12 ms late, behind the next one of its frame.
#[test]
fn arrivals_are_told_in_their_order() {
    let arrives = |number, left: Time| Some(left + Span::from_millis(if number % 10 == 4 { 32 } else { 20 }));
    let ran = Run { arrives, ..Run::default() }.run();
    let mut reordered = 0;
    for (_, fates, order) in ran.told.feedback.iter().filter(|(.., order)| !order.is_empty()) {
        let time = |k: &u32| match fates[*k as usize].1 {
            Fate::Arrived { at, .. } | Fate::Late { at } => at.unwrap(),
            Fate::Lost { .. } => panic!("a lost packet among arrivals"),
        };
        assert!(order.iter().map(time).is_sorted());
        reordered += 1;
    }
    assert!(reordered >= 5, "{reordered}");
    assert!(Run::default().run().told.feedback.iter().all(|(.., order)| order.is_empty()));
}

/// Two packets of 500 B in 20 ms, at 800 kbit/s: 5 ms from one to the other, whatever the pause of the source before them.
#[test]
fn a_pause_of_the_source_gives_no_burst() {
    let ran = Run::default().run();
    let gaps: Vec<i64> =
        ran.told.left.windows(2).map(|two| (two[1].at - two[0].at).as_nanos() / 1_000_000).collect();
    assert!(gaps.len() > 90 && gaps.iter().all(|gap| [5, 15].contains(gap)), "{gaps:?}");
}

/// Three packets, 5 ms from one to the next. A host that is 7 ms late sends two of them at once; one that is 40 ms late makes good 10 ms.
#[test]
fn a_late_host_makes_good_its_own_delay() {
    for (late, waits) in [(0, &[0, 5, 10][..]), (7, &[0, 0, 3]), (40, &[0, 0, 0, 5])] {
        let output = Wanted { pacing: Rate::ip(800_000), ..Wanted::rate(Rate::ip(600_000)) };
        let script = Script { output, actions: VecDeque::new(), told: Arc::default() };
        let source = SourceConfig { source: Some("cbr".parse().unwrap()), ..SourceConfig::default() };
        let mut sender =
            Sender::controlled(SenderConfig { source, ..config(at(1_000)) }, Box::new(script)).unwrap();
        let mut left = Vec::new();
        for now in [Time::ZERO, at(20 + late)] {
            left.clear();
            sender.handle(now, Input::Wake);
            loop {
                match sender.poll(now) {
                    Output::Wait(_) => break,
                    Output::Event(_) => {}
                    Output::Transmit(transmit) => {
                        left.push((transmit.at.max(now) - now).as_nanos() / 1_000_000)
                    }
                }
            }
        }
        assert_eq!(left[..waits.len()], *waits, "{late}");
    }
}

/// Trains of five packets: 7 ms apart, back to back, and no more than 50 ms apart. Media waits behind them.
#[test]
fn a_train_leaves_at_its_gaps() {
    for (gap, expected) in [(Some(7), 7), (None, 0), (Some(-1), 0), (Some(3_000), 50)] {
        let action = Action::Probe { packets: 5, size: Bytes(500), gap: gap.map(Span::from_millis) };
        let ran = Run { actions: vec![action], ..Run::default() }.run();
        let train: Vec<&Left> =
            ran.told.left.iter().filter(|sent| matches!(sent.class, PacketClass::Probe { .. })).collect();
        let gaps: Vec<Span> = train.windows(2).map(|two| two[1].at - two[0].at).collect();
        assert_eq!(gaps, [Span::from_millis(expected); 4], "{gap:?}");
        assert!(ran.told.left.iter().is_sorted_by_key(|sent| (sent.at, sent.id)), "{gap:?}");
        let behind = ran.told.left.iter().find(|sent| sent.id > train[4].id).unwrap();
        assert!(behind.class == PacketClass::Media && behind.at >= train[4].at);
    }
}

/// A source of three layers: 30, 90 and 270 kbit/s. Under a target of 100 kbit/s it makes nine tenths of it, under 80 less than half.
#[test]
fn a_source_with_too_little_to_send_limits_the_rate() {
    let limited = |source: &'static str, kbit: u64| {
        let rate = Rate::ip(1_000 * kbit);
        let output = Wanted { pacing: Rate::ip(1_100 * kbit), ..Wanted::rate(rate) };
        let ran = Run { output, source: Some(source), stop: 5_000, ..Run::default() }.run();
        let late = ran.told.left.iter().filter(|sent| sent.at > at(2_000));
        let all: Vec<bool> = late.map(|sent| sent.app_limited).collect();
        all.iter().filter(|is| **is).count() as f64 / all.len() as f64
    };
    let layers = "layers(lowest=30 kbit/s)";
    assert_eq!((limited(layers, 100), limited(layers, 80)), (0.0, 1.0));
    // Its highest layer is less than the target, by little.
    assert_eq!((limited(layers, 280), limited(layers, 260)), (1.0, 1.0));
    for source in ["cbr", "codec(min=10 kbit/s)", "on-demand"] {
        assert!(limited(source, 400) < 0.02, "{source}");
    }
}
