use super::super::{Fate, Report, RouteChange, Setting, build};
use super::*;

/// A controller with a target, which writes down what it is told.
#[derive(Clone, Debug)]
struct Script {
    output: Output,
    actions: VecDeque<Action>,
    told: Arc<Mutex<Told>>,
}

#[derive(Debug, Default)]
struct Told {
    left: Vec<Sent>,
    reported: Vec<u64>,
    /// Of these, whether the sources limited them.
    limited: Vec<bool>,
    signals: Vec<Signal>,
    timeouts: Vec<Time>,
}

impl RateController for Script {
    fn on_sent(&mut self, _: Time, sent: &Sent) {
        self.told.lock().unwrap().left.push(*sent);
    }
    fn on_feedback(&mut self, _: Time, feedback: &mut Feedback<'_>) {
        let mut told = self.told.lock().unwrap();
        told.reported.extend(feedback.reports.iter().map(|report| report.sent.id));
        told.limited.extend(feedback.reports.iter().map(|report| report.sent.app_limited));
    }
    fn on_signal(&mut self, _: Time, signal: Signal) {
        self.told.lock().unwrap().signals.push(signal);
    }
    fn poll_timeout(&self) -> Option<Time> {
        Some(self.told.lock().unwrap().timeouts.last().map_or(at(100), |last| *last + Span::from_millis(100)))
    }
    fn on_timeout(&mut self, now: Time) {
        self.told.lock().unwrap().timeouts.push(now);
    }
    fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
    fn output(&self) -> Output {
        self.output
    }
    fn telemetry(&self, _: &mut dyn Visitor) {}
    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}

fn at(ms: i64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn demand(min: u64, max: u64) -> Signal {
    Signal::Demand { min: Rate::ip(min), desired: Rate::ip(max), max: Rate::ip(max) }
}

type Streams = Vec<Box<dyn RateController>>;

/// Streams of these priorities that can use up to 10 Mbit/s, under a target of 1 Mbit/s that is paced at twice that.
fn streams(priorities: &[f64], actions: &[Action]) -> (Streams, Arc<Mutex<Told>>) {
    let told = Arc::new(Mutex::new(Told::default()));
    let output = Output {
        pacing: Rate::ip(2_000_000),
        window: Some(Bytes(40_000)),
        padding: Rate::ip(400_000),
        ..Output::rate(Rate::ip(1_000_000))
    };
    let script = Script { output, actions: actions.iter().copied().collect(), told: Arc::clone(&told) };
    let group = StreamGroup::new(Box::new(script));
    let limits = Rate::ip(100)..=Rate::ip(10_000_000);
    let of = |priority: &f64| group.stream(*priority, limits.clone()).unwrap();
    (priorities.iter().map(of).collect(), told)
}

fn targets(streams: &Streams) -> Vec<u64> {
    streams.iter().map(|stream| stream.output().target.bits_per_second() / 1_000).collect()
}

#[test]
fn a_target_is_divided_among_streams_that_send() {
    let (mut streams, told) = streams(&[2.0, 1.0, 1.0], &[]);
    streams[0].on_signal(at(0), demand(0, 9_000_000));
    // Of those that have not begun, what they would have.
    assert_eq!(targets(&streams), [1_000, 333, 333]);
    streams[1].on_signal(at(0), demand(0, 9_000_000));
    streams[2].on_signal(at(0), demand(0, 9_000_000));
    assert_eq!(targets(&streams), [500, 250, 250]);
    let output = streams[1].output();
    let found = (output.pacing, output.window, output.padding);
    assert_eq!(found, (Rate::ip(500_000), Some(Bytes(10_000)), Rate::ip(100_000)));
    // The third can use 100 kbit/s from now on, and the first needs 700.
    streams[2].on_signal(at(10), demand(0, 100_000));
    assert_eq!(targets(&streams), [600, 300, 100]);
    streams[0].on_signal(at(10), demand(700_000, 9_000_000));
    assert_eq!(targets(&streams), [700, 200, 100]);
    assert_eq!(told.lock().unwrap().signals.last(), Some(&demand(700_000, 18_100_000)));
    // The second rests, and goes on; the third is silent for more than a second.
    streams[1].on_signal(at(500), Signal::Idle);
    assert_eq!(targets(&streams)[0], 900);
    assert_eq!(told.lock().unwrap().signals.last(), Some(&demand(700_000, 9_100_000)));
    streams[1].on_signal(at(600), Signal::Resume);
    assert_eq!(told.lock().unwrap().signals.last(), Some(&demand(700_000, 18_100_000)));
    assert_eq!(targets(&streams), [700, 200, 100]);
    streams[0].on_sent(at(1_011), &Sent::media(0, Bytes(1_000), at(1_011)));
    streams[1].on_sent(at(1_011), &Sent::media(0, Bytes(1_000), at(1_011)));
    assert_eq!(targets(&streams), [700, 300, 100]);
    streams[2].on_sent(at(1_020), &Sent::media(0, Bytes(1_000), at(1_020)));
    assert_eq!(targets(&streams), [700, 200, 100]);
}

#[test]
fn audio_is_before_video_where_there_is_too_little() {
    let setting = Setting { start: Some(Rate::ip(60_000)), ..Setting::default() };
    let group = StreamGroup::new(build(&"fixed".parse().unwrap(), &setting).unwrap());
    let limits = Rate::ip(100)..=Rate::ip(10_000_000);
    let mut streams: Streams = [1.0, 4.0].map(|of| group.stream(of, limits.clone()).unwrap()).into();
    streams[0].on_signal(at(0), demand(150_000, 9_000_000));
    streams[1].on_signal(at(0), demand(36_000, 36_000));
    assert_eq!(targets(&streams), [24, 36]);
    assert!(group.stream(0.0, limits.clone()).is_none() && group.stream(f64::NAN, limits.clone()).is_none());
    let more: Vec<bool> = (0..MOST).map(|_| group.stream(1.0, limits.clone()).is_some()).collect();
    assert_eq!(more.iter().filter(|is| **is).count(), MOST - 2);
}

/// A dip of the pacer to 60 kbit/s of a target of 100.
#[test]
fn audio_is_before_video_where_the_pacer_is_held_back() {
    let told = Arc::new(Mutex::new(Told::default()));
    let output = Output { pacing: Rate::ip(60_000), ..Output::rate(Rate::ip(100_000)) };
    let group = StreamGroup::new(Box::new(Script { output, actions: VecDeque::new(), told }));
    let limits = Rate::ip(100)..=Rate::ip(10_000_000);
    let mut streams = [1.0, 4.0].map(|of| group.stream(of, limits.clone()).unwrap());
    streams[0].on_signal(at(0), demand(0, 9_000_000));
    streams[1].on_signal(at(0), demand(0, 36_000));
    let paced = streams.map(|stream| stream.output().pacing);
    assert_eq!(paced, [Rate::ip(24_000), Rate::ip(36_000)]);
}

/// Both streams met the same outage.
#[test]
fn an_event_of_the_path_is_told_once() {
    let (mut streams, told) = streams(&[1.0, 4.0], &[]);
    let outage = Signal::PersistentCongestion;
    for (stream, ms, heard) in [(0, 0, 1), (1, 300, 1), (0, 400, 2), (1, 1_500, 3)] {
        streams[stream].on_signal(at(ms), outage);
        let signals = told.lock().unwrap().signals.clone();
        assert_eq!(signals.iter().filter(|signal| **signal == outage).count(), heard, "{ms}");
    }
    // A breaker that trips is more than one that warns.
    let excess = |loss, trips| Signal::Excess { loss, trips };
    streams[0].on_signal(at(2_000), excess(0.1, false));
    streams[1].on_signal(at(2_100), excess(0.2, true));
    streams[0].on_signal(at(2_200), excess(0.1, true));
    assert_eq!(told.lock().unwrap().signals[3..], [excess(0.1, false), excess(0.2, true)]);
    // A hand-off of both ends tells of all three, in each stream.
    let route = |why| Signal::Route { why };
    let events = [route(RouteChange::Path), route(RouteChange::Handover), outage];
    for stream in &mut streams {
        events.iter().for_each(|event| stream.on_signal(at(5_000), *event));
    }
    assert_eq!(told.lock().unwrap().signals[5..], events);
}

#[test]
fn packets_of_all_streams_have_numbers_of_their_own() {
    let (mut streams, told) = streams(&[1.0, 1.0], &[]);
    let sent = |id: u64, ms| Sent { in_flight: Bytes(500), ..Sent::media(id, Bytes(500), at(ms)) };
    for ms in 0..4 {
        let stream = (ms % 2) as usize;
        streams[stream].on_sent(at(ms), &sent(7 + ms as u64 / 2, ms));
    }
    let left = told.lock().unwrap().left.clone();
    let found: Vec<_> = left.iter().map(|sent| (sent.id, sent.stream, sent.in_flight.0)).collect();
    assert_eq!(found, [(0, 0, 500), (1, 2, 1_000), (2, 0, 1_000), (3, 2, 1_000)]);
    let arrived = Fate::arrived(Time::from_nanos(9));
    let report = |id| Report { sent: sent(id, 0), fate: arrived };
    let mut reports = [7, 8].map(report);
    streams[1].on_feedback(at(50), &mut Feedback::exact(&mut reports, None));
    assert_eq!(reports.map(|report| report.sent.id), [7, 8], "the host's own");
    // The first has said nothing so far, and is not waited for; then it is.
    assert_eq!(told.lock().unwrap().reported, [1, 3]);
    streams[0].on_feedback(at(70), &mut Feedback::exact(&mut [7, 8].map(report), None));
    assert_eq!(told.lock().unwrap().reported, [1, 3, 0, 2]);
    for ms in 80..84 {
        let stream = (ms % 2) as usize;
        streams[stream].on_sent(at(ms), &sent(9 + (ms as u64 - 80) / 2, ms));
    }
    streams[1].on_feedback(at(100), &mut Feedback::exact(&mut [9, 10].map(report), None));
    assert_eq!(told.lock().unwrap().reported.len(), 4);
    streams[0].on_feedback(at(120), &mut Feedback::exact(&mut [9, 10].map(report), None));
    assert_eq!(told.lock().unwrap().reported[4..], [4, 5, 6, 7]);
    // A host that tells of no departures: new packets, one after the other.
    streams[0].on_feedback(at(170), &mut Feedback::exact(&mut [20, 21].map(report), None));
    assert_eq!(told.lock().unwrap().reported[8..], [8, 9]);
    (0..2 * KEPT as u64).for_each(|id| streams[0].on_sent(at(200), &sent(100 + id, 200)));
    // One of long ago, or of which nobody told that it left, is no other packet.
    let before = told.lock().unwrap().reported.len();
    streams[0].on_feedback(at(220), &mut Feedback::exact(&mut [report(7)], None));
    assert_eq!(told.lock().unwrap().reported.len(), before);
}

/// A receiver may want less than a stream's limit, never more, and may take that back.
#[test]
fn a_receivers_word_is_within_the_limits() {
    let (mut streams, _) = streams(&[1.0], &[]);
    streams[0].on_signal(at(0), demand(100, 10_000_000));
    let mut target = |rate| {
        streams[0].on_signal(at(1), Signal::Remb { rate: Rate::ip(rate) });
        streams[0].output().target.bits_per_second()
    };
    assert_eq!([300_000, 1_000_000_000, 600_000].map(&mut target), [300_000, 1_000_000, 600_000]);
}

/// Audio that has all that it can use is no reason for more: a stream that has nothing more to send limits them all.
#[test]
fn a_group_is_limited_by_its_sources_if_none_could_send_more() {
    let (mut streams, told) = streams(&[1.0, 4.0], &[]);
    streams[0].on_signal(at(0), demand(150_000, 1_350_000));
    streams[1].on_signal(at(0), demand(36_000, 36_000));
    let mut limited = |stream: usize, id, app_limited| {
        streams[stream].on_sent(at(10), &Sent { app_limited, ..Sent::media(id, Bytes(100), at(10)) });
        told.lock().unwrap().left.last().unwrap().app_limited
    };
    let all = [limited(1, 0, false), limited(0, 0, false), limited(0, 1, true), limited(1, 1, false)];
    assert_eq!(all, [false, false, true, true]);
    // Reports say the same, whatever the host knows of its one stream.
    let arrived =
        |id| Report { sent: Sent::media(id, Bytes(100), at(10)), fate: Fate::arrived(Time::from_nanos(9)) };
    streams[1].on_feedback(at(60), &mut Feedback::exact(&mut [0, 1].map(arrived), None));
    assert_eq!(told.lock().unwrap().limited, [false, true]);
}

#[test]
fn a_train_is_for_the_largest_share_and_other_requests_for_all() {
    let train = Action::Probe { packets: 5, size: Bytes(1_000), gap: None };
    let every = Action::FeedbackEvery(Span::from_millis(25));
    let (mut streams, _) = streams(&[1.0, 3.0], &[train, every]);
    streams.iter_mut().for_each(|stream| stream.on_signal(at(0), demand(0, 9_000_000)));
    let asked = |stream: &mut Box<dyn RateController>| -> Vec<Action> {
        core::iter::from_fn(|| stream.poll_action()).collect()
    };
    assert_eq!(asked(&mut streams[0]), [every]);
    assert_eq!(asked(&mut streams[1]), [train, every]);
}

#[test]
fn what_streams_tell_is_told_of_all_together() {
    let (mut streams, told) = streams(&[1.0, 1.0], &[]);
    streams.iter_mut().for_each(|stream| stream.on_signal(at(0), demand(1_000, 2_000)));
    let mut tell = |stream: usize, ms, signal| {
        let before = told.lock().unwrap().signals.len();
        streams[stream].on_signal(at(ms), signal);
        told.lock().unwrap().signals[before..].to_vec()
    };
    let backlog = |bytes| Signal::Backlog { bytes: Bytes(bytes) };
    assert_eq!(tell(0, 1, backlog(300)), [backlog(300)]);
    assert_eq!(tell(1, 1, backlog(500)), [backlog(800)]);
    let (one, both) = (demand(1_000, 2_000), demand(2_000, 4_000));
    assert_eq!((tell(0, 2, Signal::Idle), tell(1, 2, Signal::Idle)), (vec![one], vec![Signal::Idle]));
    assert_eq!(
        (tell(1, 3, Signal::Resume), tell(0, 3, Signal::Resume)),
        (vec![Signal::Resume, one], vec![both])
    );
    assert_eq!(tell(1, 4, Signal::PersistentCongestion), [Signal::PersistentCongestion]);
    // A timer of all is seen to once.
    streams.iter_mut().for_each(|stream| stream.on_timeout(at(100)));
    assert_eq!(told.lock().unwrap().timeouts, [at(100)]);
    // A clone goes on by itself.
    let mut alone = streams[0].clone();
    alone.on_signal(at(200), demand(1_000, 1_000));
    assert_eq!((targets(&streams), alone.output().target), (vec![500, 500], Rate::ip(499_500)));
}
