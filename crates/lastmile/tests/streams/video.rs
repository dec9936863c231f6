//! Frames with content: from a source of one's own to a viewer, whole, in time, and again after a loss.

use std::sync::{Arc, Mutex};

use lastmile::control::{self, RateController};
use lastmile::endpoint::stream::source::{Frame, FrameSource};
use lastmile::endpoint::stream::{FrameSink, PlayedFrame, Viewed};
use lastmile::wire::h264::{packetize, write_nal_unit};
use lastmile::wire::sdes::Expansion;

use super::whole::{Came, Path, between};
use super::*;

/// Frames that a source made and a viewer saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    made: Vec<Vec<u8>>,
    skipped: u64,
    pub(super) keys: u64,
    pub(super) shown: Vec<(Time, PlayedFrame)>,
    left: u64,
    /// Frames that its source has, where it has an end.
    most: Option<usize>,
}

pub(super) type Shared = Arc<Mutex<Seen>>;

/// Frames of two slices, each a key frame on demand alone, `factor` times as large as the target asks for.
#[derive(Debug)]
struct Coded {
    seen: Shared,
    payload: usize,
    factor: f64,
    key: bool,
    payloads: Vec<Vec<u8>>,
    took: Span,
    ended: bool,
}

const TOOK: Span = Span::from_millis(2);
const FRAME: Span = Span::from_millis(40);

fn coded(config: &SenderConfig, seen: &Shared, factor: f64, took: Span) -> Box<Coded> {
    let setting = config.source_setting();
    let payload = (setting.packet_size.0 - setting.headers.0) as usize;
    let (seen, payloads) = (Arc::clone(seen), Vec::new());
    Box::new(Coded { seen, payload, factor, key: true, payloads, took, ended: false })
}

/// A sender of such frames.
pub(super) fn coding(config: SenderConfig, seen: &Shared, factor: f64, took: Span) -> Sender {
    let source = coded(&config, seen, factor, took);
    Sender::new(config).unwrap().with_source(source)
}

impl FrameSource for Coded {
    fn frame(&mut self, _: Time, target: Rate, _: Bytes) -> Frame {
        let mut seen = self.seen.lock().unwrap();
        self.ended = seen.most == Some(seen.made.len());
        if self.ended {
            return Frame { size: Bytes(0), next: FRAME };
        }
        let (number, bytes) = (seen.made.len(), target.bytes_in(FRAME).0 as f64 * self.factor);
        let size = (bytes / 2.0) as usize * if self.key { 3 } else { 1 };
        let kind = if std::mem::take(&mut self.key) { 0x65 } else { 0x41 };
        let mut picture = Vec::new();
        for first in [0x80, 0x40] {
            let slice: Vec<u8> = (0..size.max(10)).map(|at| (at * 7 + number) as u8 | 1).collect();
            write_nal_unit(&mut picture, &[&[kind, first][..], &slice].concat());
        }
        self.payloads = packetize(&picture, self.payload);
        seen.made.push(picture);
        Frame { size: Bytes(0), next: FRAME }
    }
    fn range(&self) -> (Rate, Rate) {
        (Rate::ip(0), Rate::ip(1_000_000_000))
    }
    fn key_frame(&mut self) {
        self.seen.lock().unwrap().keys += 1;
        self.key = true;
    }
    fn is_coded(&self) -> bool {
        true
    }
    fn skip(&mut self) -> Span {
        self.seen.lock().unwrap().skipped += 1;
        FRAME
    }
    fn payloads(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.payloads)
    }
    fn took(&self) -> Span {
        self.took
    }
    fn has_ended(&self) -> bool {
        self.ended
    }
}

pub(super) struct Viewer(pub(super) Shared);

impl FrameSink for Viewer {
    fn frame(&mut self, now: Time, ssrc: u32, frame: &PlayedFrame) -> bool {
        assert_eq!(ssrc, OURS);
        self.0.lock().unwrap().shown.push((now, frame.clone()));
        true
    }
    fn left(&mut self, _: u32) {
        self.0.lock().unwrap().left += 1;
    }
}

const CLEAN: Path = Path { lose: 0, mark: 0, copy: 0, delay: |_| Span::ZERO };

fn played(path: &Path, config: SenderConfig, factor: f64, nack: Option<Span>) -> (Came, Seen, Viewed) {
    played_slowly(path, config, (factor, TOOK), nack)
}

fn played_slowly(
    path: &Path,
    config: SenderConfig,
    (factor, took): (f64, Span),
    nack: Option<Span>,
) -> (Came, Seen, Viewed) {
    let seen = Shared::default();
    let sender = coding(config, &seen, factor, took);
    let config = ReceiverConfig { epoch: EPOCH, video: Some(96), nack, ..ReceiverConfig::new(8) };
    let receiver = Receiver::new(config).unwrap().with_viewer(Box::new(Viewer(Arc::clone(&seen))));
    let came = between(path, sender, receiver);
    let viewed = came.decisions.iter().filter_map(|what| match what {
        Decision::FramesViewed { viewed, .. } => Some(*viewed),
        _ => None,
    });
    // Packets that come after the goodbye are a source of their own.
    let viewed = viewed.max_by_key(|viewed| viewed.frames + viewed.late).expect("frames were viewed");
    (came, Arc::into_inner(seen).unwrap().into_inner().unwrap(), viewed)
}

pub(super) fn controlled(control: &str) -> SenderConfig {
    let config = ControlConfig { max: Rate::ip(2_000_000), ..ControlConfig::new(control.parse().unwrap()) };
    SenderConfig { rate: SenderRate::Controlled(config), ..config_of(5) }
}

fn config_of(seconds: i64) -> SenderConfig {
    SenderConfig { packet_size: Bytes(1_200), ..config(at(1_000 * seconds)) }
}

#[test]
fn every_frame_is_shown_whole_and_in_time() {
    for control in ["", "tfrc", "tfrc+probe", "vtp", "lastmile"] {
        let config = if control.is_empty() { config_of(5) } else { controlled(control) };
        let name = format!("{:?}", config.rate);
        let (came, seen, viewed) = played(&CLEAN, config, 1.0, None);
        let shown: Vec<_> = seen.shown.iter().map(|(_, frame)| frame.unit.bytes.clone()).collect();
        assert!(seen.made == shown, "{name}: {} of {}", shown.len(), seen.made.len());
        assert!(seen.shown.iter().all(|(_, frame)| frame.unit.whole), "{name}");
        // The frames on their way when the pacer finds its rate are late by a little.
        assert!(viewed.late * 20 <= viewed.frames, "{name}: {viewed:?}");
        assert_eq!((viewed.damaged, viewed.lost), (0, 0), "{name}");
        assert_eq!((viewed.key_frames_asked, seen.keys), (0, 0), "{name}");
        assert_eq!((came.received.lost, seen.left), (0, 1), "{name}");
    }
}

/// A viewer whose decoder loses its place after ten frames.
struct Forgetful {
    shown: Vec<bool>,
    waits: bool,
    seen: Arc<Mutex<Vec<bool>>>,
}

impl FrameSink for Forgetful {
    fn frame(&mut self, _: Time, _: u32, frame: &PlayedFrame) -> bool {
        self.waits |= self.shown.len() == 10;
        self.waits &= !frame.unit.key;
        self.shown.push(!self.waits);
        !self.waits
    }
    fn left(&mut self, _: u32) {
        self.seen.lock().unwrap().append(&mut self.shown);
    }
}

#[test]
fn a_viewer_that_can_show_nothing_gets_another_key_frame() {
    let (frames, seen) = (Shared::default(), Arc::default());
    let sender = coding(config_of(5), &frames, 1.0, TOOK);
    let config = ReceiverConfig { epoch: EPOCH, video: Some(96), ..ReceiverConfig::new(8) };
    let viewer = Forgetful { shown: Vec::new(), waits: false, seen: Arc::clone(&seen) };
    between(&CLEAN, sender, Receiver::new(config).unwrap().with_viewer(Box::new(viewer)));
    let seen = seen.lock().unwrap();
    let lost = seen.iter().filter(|shown| !**shown).count();
    // A round trip, and the time until the next frame.
    assert!(seen.len() > 100 && (1..=8).contains(&lost) && !seen[10], "{lost} of {}", seen.len());
    assert!(frames.lock().unwrap().keys >= 1);
}

#[test]
fn a_source_that_has_no_more_frames_ends_its_stream() {
    for config in [config_of(5), controlled("vtp")] {
        let seen = Arc::new(Mutex::new(Seen { most: Some(20), ..Seen::default() }));
        let sender = coding(config, &seen, 1.0, TOOK);
        let config = ReceiverConfig { epoch: EPOCH, video: Some(96), ..ReceiverConfig::new(8) };
        let receiver = Receiver::new(config).unwrap().with_viewer(Box::new(Viewer(Arc::clone(&seen))));
        let came = between(&CLEAN, sender, receiver);
        let ended = came.decisions.iter().find_map(|what| match what {
            Decision::MediaEnded { why, sent } => Some((*why, sent.frames)),
            _ => None,
        });
        assert_eq!(ended, Some((End::Stop, 20)));
        // The last frames waited for the pacer: they came before the goodbye.
        assert_eq!(seen.lock().unwrap().shown.len(), 20);
    }
}

#[test]
fn frames_that_come_out_of_order_wait_for_each_other() {
    let jitter = |number: u64| Span::from_millis((number * 7_919 % 41) as i64);
    let (came, seen, viewed) = played(&Path { delay: jitter, ..CLEAN }, config_of(10), 1.0, None);
    assert!(came.received.out_of_order > 500, "{}", came.received.out_of_order);
    // Until the delay has grown, in the first second or so, some are given up, and their packets late.
    let good = |(_, frame): &&(Time, PlayedFrame)| frame.unit.whole && !frame.late;
    let half = &seen.shown[seen.shown.len() / 2..];
    assert!(half.iter().filter(good).count() * 20 >= half.len() * 19, "{viewed:?}");
    assert!(seen.shown.len() + 5 >= seen.made.len(), "{viewed:?} of {}", seen.made.len());
    assert!(viewed.delay > Span::from_millis(2) && viewed.delay <= Span::from_millis(150), "{viewed:?}");
}

#[test]
fn a_loss_brings_a_key_frame_and_damages_no_more_than_its_own_frame() {
    let (came, seen, viewed) = played(&Path { lose: 150, ..CLEAN }, config_of(10), 1.0, None);
    assert!(came.received.lost >= 5, "{}", came.received.lost);
    let damaged = seen.shown.iter().filter(|(_, frame)| !frame.unit.whole).count() as u64;
    // A frame whose every packet but one is lost is among the lost.
    assert!(
        damaged + viewed.lost <= came.received.lost && damaged > 0,
        "{viewed:?} of {}",
        came.received.lost
    );
    assert!(seen.keys >= 5 && seen.keys <= viewed.key_frames_asked, "{} {viewed:?}", seen.keys);
    let first = seen.shown.iter().position(|(_, frame)| !frame.unit.whole).unwrap();
    let key = seen.shown[first + 1..].iter().position(|(_, frame)| frame.unit.key).unwrap();
    // There and back are 40 ms, and the next frame is 40 ms away at most; playout adds some.
    assert!(key <= 4, "{key} frames later");
}

#[test]
fn packets_sent_again_make_frames_whole() {
    let retransmission = Some(Retransmission::within(9, Span::from_millis(300)));
    let config = SenderConfig { retransmission, ..config_of(10) };
    let nack = Some(Span::from_millis(300));
    let (came, seen, viewed) = played(&Path { lose: 150, ..CLEAN }, config, 1.0, nack);
    assert!(came.received.lost >= 5);
    // The last ones may have nobody left to ask.
    assert!(viewed.damaged + viewed.lost <= 1, "{viewed:?}");
    assert!(seen.shown.len() + 1 >= seen.made.len());
}

/// A fifth of the rate is media, the rest padding, of which lost packets come again too: they are no late frames.
#[test]
fn padding_that_is_sent_again_is_no_frame() {
    let retransmission = Some(Retransmission::within(9, Span::from_millis(300)));
    let config = SenderConfig { retransmission, ..controlled("fixed(rate=2 Mbit/s)") };
    let seen = Shared::default();
    let source = coded(&config, &seen, 0.2, TOOK);
    let fills = Timed { now: Time::ZERO, rates: |_| (2_000_000, 2_200_000), fills: true };
    let sender = Sender::controlled(config, Box::new(fills)).unwrap().with_source(source);
    let nack = Some(Span::from_millis(300));
    let config = ReceiverConfig { epoch: EPOCH, video: Some(96), nack, ..ReceiverConfig::new(8) };
    let receiver = Receiver::new(config).unwrap().with_viewer(Box::new(Viewer(Arc::clone(&seen))));
    let came = between(&Path { lose: 20, ..CLEAN }, sender, receiver);
    let viewed = came.decisions.iter().filter_map(|what| match what {
        Decision::FramesViewed { viewed, .. } => Some(*viewed),
        _ => None,
    });
    let viewed = viewed.max_by_key(|viewed| viewed.frames + viewed.late).unwrap();
    let sent = came.sent;
    assert!(sent.padding > 500 && sent.retransmitted > 30, "{sent:?}");
    assert!(sent.retransmitted_bytes.0 < 500 * sent.retransmitted, "{sent:?}");
    assert!(viewed.late + viewed.lost + viewed.damaged <= 2, "{viewed:?}");
}

#[test]
fn frames_are_left_out_before_they_are_made_where_too_much_waits() {
    for config in [config_of(5), controlled("fixed(rate=1 Mbit/s)")] {
        let (came, seen, viewed) = played(&CLEAN, config, 3.0, None);
        assert!(seen.skipped > 50 && came.sent.frames_dropped == seen.skipped, "{}", seen.skipped);
        assert_eq!(came.sent.frames, seen.made.len() as u64 + seen.skipped);
        // Those that were made are sent and shown.
        assert_eq!((seen.shown.len(), viewed.damaged, viewed.lost), (seen.made.len(), 0, 0));
        let rate = came.sent.bytes.bits() as f64 / 5.0;
        assert!((0.8e6..1.4e6).contains(&rate), "{rate:.0}");
    }
}

/// Target and pacing in bit/s by the seconds since the beginning, filled up with padding or not.
#[derive(Clone, Debug)]
struct Timed {
    now: Time,
    rates: fn(f64) -> (u64, u64),
    fills: bool,
}

impl RateController for Timed {
    fn on_sent(&mut self, _: Time, _: &control::Sent) {}
    fn on_feedback(&mut self, _: Time, _: &mut control::Feedback<'_>) {}
    fn on_signal(&mut self, _: Time, _: control::Signal) {}
    fn poll_timeout(&self) -> Option<Time> {
        Some(self.now + Span::from_millis(10))
    }
    fn on_timeout(&mut self, now: Time) {
        self.now = now;
    }
    fn output(&self) -> control::Output {
        let (target, pacing) = (self.rates)((self.now - Time::ZERO).as_secs_f64());
        let output = control::Output::rate(Rate::ip(target));
        control::Output { pacing: Rate::ip(pacing), keep_probing: self.fills, ..output }
    }
    fn telemetry(&self, _: &mut dyn lastmile::telemetry::Visitor) {}
    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}

/// Frames of 0.9 times the target under such a controller, whose `--max` is 2 Mbit/s.
fn timed(rates: fn(f64) -> (u64, u64)) -> Came {
    let (seen, config) = (Shared::default(), controlled("fixed(rate=2 Mbit/s)"));
    let source = coded(&config, &seen, 0.9, TOOK);
    let controller = Timed { now: Time::ZERO, rates, fills: false };
    let sender = Sender::controlled(config, Box::new(controller)).unwrap().with_source(source);
    between(&CLEAN, sender, Receiver::new(ReceiverConfig::new(8)).unwrap())
}

/// For 60 ms of each second the pacer is all but closed. The wait of a frame is judged by the target: at the rate of the moment each would wait
/// for seconds.
#[test]
fn a_pacer_that_is_held_back_for_a_moment_costs_no_frame() {
    let came = timed(|at| (1_000_000, if at % 1.0 < 0.06 { 10_000 } else { 1_250_000 }));
    assert_eq!(came.sent.frames_dropped, 0);
    assert!(came.sent.frames > 120 && came.sent.packets > 400, "{:?}", came.sent);
}

/// A frame that was made at 100 bit/s would have left minutes later, and does not keep those of the whole rate waiting.
#[test]
fn frames_go_on_after_a_moment_without_a_rate() {
    let came = timed(|at| if (2.0..3.0).contains(&at) { (100, 100) } else { (2_000_000, 2_000_000) });
    assert!((20..45).contains(&came.sent.frames_dropped), "{:?}", came.sent);
}

#[test]
fn frames_that_take_as_long_as_they_stand_leave_at_the_whole_rate() {
    let took = FRAME - Span::from_millis(1);
    let (came, _, _) = played_slowly(&CLEAN, controlled("fixed(rate=1 Mbit/s)"), (1.0, took), None);
    let rate = came.sent.bytes.bits() as f64 / 5.0;
    assert!((0.95e6..1.1e6).contains(&rate), "{rate:.0}");
}

#[test]
fn a_receiver_without_a_viewer_decides_as_one_with_it() {
    let decisions = |viewer: bool| {
        let seen = Shared::default();
        let sender = coding(config_of(3), &seen, 1.0, TOOK);
        let config = ReceiverConfig { epoch: EPOCH, video: Some(96), ..ReceiverConfig::new(8) };
        let receiver = match viewer {
            true => Receiver::new(config).unwrap().with_viewer(Box::new(Viewer(seen))),
            false => Receiver::new(config).unwrap(),
        };
        between(&Path { lose: 50, ..CLEAN }, sender, receiver).decisions
    };
    assert_eq!(decisions(true), decisions(false));
}

/// Packets keep their size and streams their rate: SRTP's tag takes the place of payload.
#[test]
fn what_srtp_adds_is_part_of_sizes_and_rates() {
    let expansion = Expansion { rtp: Bytes(10), rtcp: Bytes(14) };
    for config in [config_of(5), controlled("fixed(rate=1 Mbit/s)")] {
        let (plain, ..) = played(&CLEAN, config.clone(), 1.0, None);
        // The receiver of this harness knows of no tags.
        let (came, ..) = played(&CLEAN, SenderConfig { expansion, ..config.clone() }, 1.0, None);
        assert_eq!(came.received.packets, came.sent.packets);
        assert_eq!(came.sent.bytes - came.received.bytes, Bytes(10 * came.sent.packets));
        let feedback = Bytes(14 * came.sent.feedback_packets);
        assert!(came.sent.feedback_bytes >= feedback + Bytes(1), "{:?}", came.sent);
        let rate = came.sent.bytes.bits() as f64 / plain.sent.bytes.bits() as f64;
        assert!((0.97..1.03).contains(&rate), "{rate}");
        let full = config.rate.clone();
        let mut sender = Sender::new(SenderConfig { expansion, ..config }).unwrap();
        sender.handle(at(0), Input::Wake);
        let sizes = (0..2_000).flat_map(|millis| {
            sender.handle(at(millis), Input::Wake);
            drain(&mut sender, at(millis)).0
        });
        let media = sizes.filter(|(_, datagram)| !is_rtcp(datagram.payload.udp().unwrap()));
        let most = media.map(|(_, datagram)| datagram.ip_size() + Bytes(10)).max();
        // At the fixed rate, frames of 2500 B are cut into three equal packets.
        let whole = if matches!(full, SenderRate::Fixed(_)) { Bytes(834) } else { Bytes(1_200) };
        assert_eq!(most, Some(whole));
    }
}
