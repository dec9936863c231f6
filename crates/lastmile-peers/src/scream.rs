//! SCReAM v2: Ericsson's own `ScreamV2Tx` with its self-clocking, at the settings of its sender program (`scream_sender.cpp`).
//!
//! Sizes and rates are those of IP packets, where its own programs count RTP's. The host's queue stands in the place of its RTP queue: its
//! program empties that after 200 ms, and the host leaves frames out by its own rule instead. It takes 100 kB of state, for 4096 packets in
//! flight.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Mutex;

use lastmile::control::{
    Action, Controller, Decision, Fate, Feedback, Flow, Information, News, Output, PacketClass,
    RateController, Report, Sent, Setting, Signal,
};
use lastmile::node::Ecn;
use lastmile::options::Options;
use lastmile::telemetry::Visitor;
use lastmile::time::{Rx, Span, Time};
use lastmile::units::{Bytes, Rate};

/// The numbers of `scream_read`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// In bit/s.
    target: f32,
    /// Seconds between two packets; zero before the first feedback.
    pace: f32,
    /// In bytes.
    window: i32,
    in_flight: i32,
    /// Packets, in all.
    lost: u32,
}

unsafe extern "C" {
    fn scream_new(min: f32, start: f32, max: f32, packet: i32, delay_target: f32) -> *mut c_void;
    fn scream_free(sender: *mut c_void);
    fn scream_range(sender: *mut c_void, min: f32, max: f32);
    fn scream_l4s(sender: *mut c_void, is: bool);
    fn scream_queue(sender: *mut c_void, bytes: i32, next: i32, delay: f32);
    fn scream_frame(sender: *mut c_void, now: u32, bytes: i32);
    fn scream_sent(sender: *mut c_void, now: u32, size: i32, number: u16, mark: bool, waited: f32);
    fn scream_acked(sender: *mut c_void, now: u32, arrived: u32, number: u16, ecn: u8, last: bool);
    fn scream_read(sender: *mut c_void, now: u32, state: *mut State);
}

lastmile::options! {
    /// SCReAM's parameters: the rest are those of its sender program.
    pub struct ScreamConfig {
        /// Queueing delay that its window aims at
        delay_target: Span = Span::from_millis(60), "scream_sender.cpp; ScreamV2Tx alone has 100 ms";
        /// The highest rate where neither user nor sources name one
        max: Rate [Rate::ip(10_000)..=Rate::ip(10_000_000_000)] = Rate::ip(500_000_000), "scream_sender.cpp";
    }
}

/// Its place in the registry.
pub(crate) const ENTRY: Controller = Controller {
    name: "scream",
    about: "SCReAM v2, EricssonResearch's own classes: a window by delay, losses and marks, and a rate within it",
    paper: concat!(
        "RFC 8298 and its version 2: github.com/EricssonResearch/scream at ",
        env!("SCREAM_VERSION"),
        ", ScreamV2Tx as scream_sender.cpp sets it, L4S where packets leave as ECT(1)"
    ),
    classifier: None,
    needs: Information::Times,
    below: "keeps its first rate",
    options: ScreamConfig::OPTIONS,
    make: |given, setting| Ok(Box::new(Scream::new(ScreamConfig::read(given)?, setting))),
};

/// A sender of SCReAM's, which is freed with it.
#[derive(Debug)]
struct Handle(NonNull<c_void>);

// SAFETY: the sender has no thread-local state, and the mutex around the handle lets one thread in at a time.
unsafe impl Send for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by scream_new, and freed once.
        unsafe { scream_free(self.0.as_ptr()) }
    }
}

/// A frame whose packets wait.
#[derive(Clone, Copy, Debug)]
struct Frame {
    made: Time,
    left: u64,
    /// Bytes of each packet.
    packet: u64,
}

#[derive(Debug)]
struct Scream {
    config: ScreamConfig,
    setting: Setting,
    flow: Flow,
    sender: Mutex<Handle>,
    state: State,
    rtt: Option<f64>,
    /// Packets leave as ECT(1).
    l4s: bool,
    frames: VecDeque<Frame>,
    /// Bytes that the host told last, where it tells of its backlog, and so of frames.
    told: Option<u64>,
    /// Bytes in flight as the host counts them, where it does.
    in_flight: Option<u64>,
    /// The size of the packet that left last.
    size: u64,
    /// The first arrival by the other clock, and its place on SCReAM's.
    anchor: Option<(Time<Rx>, u32)>,
}

/// Q16 seconds, from a second on: SCReAM takes zero for a time that is not known.
fn ntp(time: Time) -> u32 {
    (u128::from(time.as_nanos()) * 65_536 / 1_000_000_000 + 65_536) as u32
}

/// A one-way delay of the first packet in Q16 s: the clocks of two hosts are apart by any time, and ScreamV2Tx does not expect that delays
/// change their sign.
const FIRST_DELAY: u32 = 16 << 16;

/// kPacketPacingHeadRoom.
const HEADROOM: f64 = 1.5;

fn of(rate: Rate) -> f64 {
    rate.bits_per_second() as f64
}

fn small(bytes: u64) -> i32 {
    bytes.min(1 << 30) as i32
}

impl Scream {
    fn new(config: ScreamConfig, setting: &Setting) -> Scream {
        let start = of(setting.start.unwrap_or(setting.min)).max(10_000.0);
        let max = of(setting.max).min(of(config.max)).max(start);
        let packet = setting.packet_size.0.min(65_535);
        let delay_target = config.delay_target.as_secs_f64();
        // SAFETY: plain numbers; it returns a new object, or the program ends for want of memory.
        let sender = unsafe {
            scream_new(of(setting.min) as f32, start as f32, max as f32, packet as i32, delay_target as f32)
        };
        Scream {
            config,
            setting: *setting,
            flow: Flow::new(setting),
            sender: Mutex::new(Handle(NonNull::new(sender).expect("operator new does not return null"))),
            state: State { target: start as f32, ..State::default() },
            rtt: None,
            l4s: false,
            frames: VecDeque::new(),
            told: None,
            in_flight: None,
            size: packet,
            anchor: None,
        }
    }

    fn call<T>(&mut self, f: impl FnOnce(*mut c_void, u32) -> T) -> T {
        let now = ntp(self.flow.now());
        let sender = self.sender.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        f(sender.0.as_ptr(), now)
    }

    fn backlog(&self) -> u64 {
        self.frames.iter().map(|frame| frame.left).sum()
    }

    /// How long the oldest frame has waited, in seconds.
    fn waited(&self) -> f32 {
        let since = self.frames.front().map_or(self.flow.now(), |frame| frame.made);
        (self.flow.now() - since).as_secs_f64() as f32
    }

    /// Shows the queue to SCReAM.
    fn show(&mut self) {
        let next = self.frames.front().map_or(self.size, |frame| frame.packet);
        let (bytes, next, waited) = (small(self.backlog()), small(next.max(1)), self.waited());
        // SAFETY: the sender lives, and numbers are plain.
        self.call(|sender, _| unsafe { scream_queue(sender, bytes, next, waited) });
    }

    /// Media of so many bytes was made, in packets that are alike.
    fn made(&mut self, bytes: u64) {
        let packet = bytes.div_ceil(bytes.div_ceil(self.setting.packet_size.0.max(1)).max(1));
        self.frames.push_back(Frame { made: self.flow.now(), left: bytes, packet });
        self.show();
        // SAFETY: the sender lives, and numbers are plain.
        self.call(|sender, now| unsafe { scream_frame(sender, now, small(bytes)) });
    }

    /// Takes bytes that do not wait any more; true if they were the last of a frame.
    fn taken(&mut self, mut bytes: u64) -> bool {
        while let Some(frame) = self.frames.front_mut() {
            let own = frame.left.min(bytes);
            (frame.left, bytes) = (frame.left - own, bytes - own);
            if frame.left > 0 {
                return false;
            }
            self.frames.pop_front();
            if bytes == 0 {
                break;
            }
        }
        true
    }

    fn read(&mut self) {
        self.show();
        let mut state = State::default();
        // SAFETY: the sender lives, and the place is valid until it returns.
        self.call(|sender, now| unsafe { scream_read(sender, now, &mut state) });
        if !state.target.is_finite() {
            state.target = self.state.target;
        }
        self.state = state;
    }
}

impl RateController for Scream {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.flow.on_sent(now, sent);
        self.flow.expect_feedback(self.rtt, f64::from(self.state.target) / 8.0);
        let l4s = sent.ecn == Ecn::Ect1;
        if self.l4s != l4s {
            self.l4s = l4s;
            // SAFETY: the sender lives.
            self.call(|sender, _| unsafe { scream_l4s(sender, l4s) });
        }
        let size = sent.size.0.min(65_535);
        self.in_flight = (sent.in_flight > Bytes::ZERO).then_some(sent.in_flight.0);
        let media = sent.class == PacketClass::Media;
        let waiting = self.backlog();
        if media && size > waiting {
            // A host that does not tell of its backlog, or a frame as large as what was told last.
            self.made(self.told.unwrap_or(0).max(size) - waiting);
        }
        let waited = self.waited();
        let mark = media && self.taken(size);
        self.size = size;
        self.show();
        // SAFETY: the sender lives, and numbers are plain.
        self.call(|sender, now| unsafe {
            scream_sent(sender, now, size as i32, sent.id as u16, mark, waited)
        });
        self.read();
    }

    /// SCReAM is told of arrivals in the order of sending, as its own reports have them, and finds losses in the gaps.
    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.flow.on_feedback(now);
        self.rtt = self.flow.round_trip(feedback).map(|rtt| rtt.as_secs_f64()).or(self.rtt);
        let arrived = |report: &Report| match report.fate {
            Fate::Arrived { at: Some(at), ecn } => Some((report.sent, at, ecn)),
            Fate::Late { at: Some(at) } => Some((report.sent, at, Ecn::NotEct)),
            _ => None,
        };
        let last = feedback.reports.iter().rev().find_map(arrived).map(|(sent, ..)| sent.id);
        self.show();
        for report in feedback.reports.iter() {
            if self.flow.on_report(&report.sent) == News::NeverSent {
                continue;
            }
            if !matches!(report.fate, Fate::Late { .. }) {
                self.in_flight = self.in_flight.map(|bytes| bytes.saturating_sub(report.sent.size.0));
            }
            let Some((sent, at, ecn)) = arrived(report) else { continue };
            let (first, place) = *self.anchor.get_or_insert((at, ntp(sent.at).wrapping_add(FIRST_DELAY)));
            let since = (i128::from((at - first).as_nanos()) * 65_536 / 1_000_000_000) as i64;
            let arrival = place.wrapping_add(since as u32);
            let is_last = Some(sent.id) == last;
            // SAFETY: the sender lives, and numbers are plain.
            self.call(|sender, now| unsafe {
                scream_acked(sender, now, arrival, sent.id as u16, ecn as u8, is_last)
            });
        }
        if last.is_some() {
            self.flow.restart(self.rtt, f64::from(self.state.target) / 8.0);
        }
        self.read();
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        self.flow.on_signal(now, signal);
        match signal {
            Signal::Demand { min, max, .. } => {
                let min = of(self.setting.min).max(of(min));
                let max = of(self.setting.max).min(of(max)).min(of(self.config.max)).max(min);
                // SAFETY: the sender lives, and numbers are plain.
                self.call(|sender, _| unsafe { scream_range(sender, min as f32, max as f32) });
            }
            Signal::Backlog { bytes } => {
                self.told = Some(bytes.0);
                let waiting = self.backlog();
                if bytes.0 > waiting {
                    self.made(bytes.0 - waiting);
                } else {
                    self.taken(waiting - bytes.0);
                }
                self.read();
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.flow.poll_timeout()
    }

    /// Its own answer to silence is its window.
    fn on_timeout(&mut self, now: Time) {
        if self.flow.is_overdue(now) {
            self.flow.no_feedback(self.rtt, f64::from(self.state.target) / 8.0);
            self.read();
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        None
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.flow.poll_decision()
    }

    fn output(&self) -> Output {
        let State { target, pace, window, in_flight, .. } = self.state;
        // It waits so long after each packet, whichever size it has. Before the first feedback its window alone is in force, and here its usual
        // headroom too.
        let next = self.frames.front().map_or(self.size, |frame| frame.packet);
        let usual = HEADROOM * f64::from(target) / 8.0;
        let pacing = if pace > 0.0 { next as f64 / f64::from(pace) } else { usual };
        // Bytes that the host counts in flight, and it does not, take no room in its window.
        let own = i64::from(window) - i64::from(in_flight);
        let all = self.in_flight.map(|bytes| own.saturating_add_unsigned(bytes));
        let window = (window > 0).then(|| Bytes(all.unwrap_or(window.into()).max(1) as u64));
        Output {
            pacing: self.flow.rate(pacing),
            window,
            ..Output::rate(self.flow.rate(f64::from(target) / 8.0))
        }
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.number("rate", "bit/s", self.state.target.into());
        visitor.number("window", "B", self.state.window.into());
        visitor.number("lost", "packets", self.state.lost.into());
    }

    /// Its classes cannot be copied: one that begins anew, at this rate.
    fn clone_box(&self) -> Box<dyn RateController> {
        let start = Some(self.flow.rate(f64::from(self.state.target) / 8.0));
        Box::new(Scream::new(self.config.clone(), &Setting { start, ..self.setting }))
    }
}
