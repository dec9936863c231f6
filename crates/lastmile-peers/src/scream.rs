//! SCReAM v2: Ericsson's own `ScreamV2Tx`, with its self-clocking, its defaults unchanged.
//!
//! The host's queue stands in the place of its RTP queue, so that its cutting of that queue is left to the host. It takes 100 kB of state, for
//! 4096 packets in flight.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Mutex;

use lastmile::control::{
    Action, Controller, Decision, Fate, Feedback, Flow, Information, News, Output, RateController, Report,
    Sent, Setting, Signal,
};
use lastmile::node::Ecn;
use lastmile::options::Options;
use lastmile::telemetry::Visitor;
use lastmile::time::{Rx, Time};
use lastmile::units::{Bytes, Rate};

unsafe extern "C" {
    fn scream_new(min: f32, start: f32, max: f32, packet: i32) -> *mut c_void;
    fn scream_free(sender: *mut c_void);
    fn scream_range(sender: *mut c_void, min: f32, max: f32);
    fn scream_queue(sender: *mut c_void, bytes: i32, delay: f32);
    fn scream_frame(sender: *mut c_void, now: u32, bytes: i32);
    fn scream_sent(sender: *mut c_void, now: u32, size: i32, number: u16);
    fn scream_acked(sender: *mut c_void, now: u32, arrived: u32, number: u16, ce: u8, last: bool);
    fn scream_read(sender: *mut c_void, now: u32, target: *mut f32, pacing: *mut f32, window: *mut i32);
}

lastmile::options! {
    /// SCReAM's parameters: those of its checkout.
    pub struct ScreamConfig {
        /// The highest rate where neither user nor sources name one
        max: Rate [Rate::ip(10_000)..=Rate::ip(10_000_000_000)] = Rate::ip(100_000_000), "our own: ScreamV2Tx wants one";
    }
}

/// Its place in the registry.
pub(crate) const ENTRY: Controller = Controller {
    name: "scream",
    about: "SCReAM v2, EricssonResearch's own classes at SCREAM_DIR: a window by delay, losses and marks, and a rate within it",
    paper: "RFC 8298 and its version 2: ScreamV2Tx.cpp, its defaults",
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

#[derive(Debug)]
struct Scream {
    config: ScreamConfig,
    setting: Setting,
    flow: Flow,
    sender: Mutex<Handle>,
    rtt: Option<f64>,
    /// In bit/s, bytes.
    target: f64,
    pacing: f64,
    window: u64,
    backlog: u64,
    /// The host tells of its backlog, and so of frames.
    tells: bool,
    key_frame: bool,
}

/// Q16 seconds, from a second on: SCReAM takes zero for a time that is not known.
fn ntp(nanos: u64) -> u32 {
    ((u128::from(nanos) * 65_536 / 1_000_000_000) + 65_536) as u32
}

fn of(rate: Rate) -> f64 {
    rate.bits_per_second() as f64
}

impl Scream {
    fn new(config: ScreamConfig, setting: &Setting) -> Scream {
        let start = of(setting.start.unwrap_or(setting.min)).max(10_000.0);
        let max = of(setting.max).min(of(config.max)).max(start);
        // SAFETY: plain numbers; it returns a new object, or the program ends for want of memory.
        let sender = unsafe {
            scream_new(
                of(setting.min) as f32,
                start as f32,
                max as f32,
                setting.packet_size.0.min(65_535) as i32,
            )
        };
        Scream {
            config,
            setting: *setting,
            flow: Flow::new(setting),
            sender: Mutex::new(Handle(NonNull::new(sender).expect("operator new does not return null"))),
            rtt: None,
            target: start,
            pacing: 1.5 * start,
            window: 0,
            backlog: 0,
            tells: false,
            key_frame: false,
        }
    }

    fn call<T>(&mut self, f: impl FnOnce(*mut c_void, u32) -> T) -> T {
        let now = ntp(self.flow.now().as_nanos());
        let sender = self.sender.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        f(sender.0.as_ptr(), now)
    }

    /// Media of so many bytes was made.
    fn made(&mut self, bytes: u64) {
        let (backlog, delay) =
            (self.backlog.min(1 << 30) as i32, self.backlog as f64 * 8.0 / self.pacing.max(1.0));
        // SAFETY: the sender lives, and numbers are plain.
        self.call(|sender, now| unsafe {
            scream_queue(sender, backlog, delay as f32);
            if bytes > 0 {
                scream_frame(sender, now, bytes.min(1 << 30) as i32);
            }
        });
    }

    fn read(&mut self) {
        let (mut target, mut pacing, mut window) = (0.0_f32, 0.0_f32, 0_i32);
        // SAFETY: the sender lives, and the places are valid until it returns.
        self.call(|sender, now| unsafe { scream_read(sender, now, &mut target, &mut pacing, &mut window) });
        if target < 0.0 {
            self.key_frame = true;
        } else if target.is_finite() {
            self.target = f64::from(target);
        }
        if pacing.is_finite() && pacing > 0.0 {
            self.pacing = f64::from(pacing);
        }
        self.window = window.max(1) as u64;
    }
}

impl RateController for Scream {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.flow.on_sent(now, sent);
        self.flow.expect_feedback(self.rtt, self.target / 8.0);
        if !self.tells {
            self.made(sent.size.0);
        }
        self.backlog = self.backlog.saturating_sub(sent.size.0);
        let (size, number) = (sent.size.0.min(65_535) as i32, sent.id as u16);
        // SAFETY: the sender lives, and numbers are plain.
        self.call(|sender, now| unsafe { scream_sent(sender, now, size, number) });
        self.read();
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.flow.on_feedback(now);
        self.rtt = self.flow.round_trip(feedback).map(|rtt| rtt.as_secs_f64()).or(self.rtt);
        let arrived = |report: &Report| match report.fate {
            Fate::Arrived { at: Some(at), ecn } => Some((report.sent, at, ecn)),
            _ => None,
        };
        let last = feedback.reports.iter().rev().find_map(arrived).map(|(sent, ..)| sent.id);
        for report in feedback.reports.iter() {
            let Some((sent, at, ecn)) =
                arrived(report).filter(|_| self.flow.on_report(&report.sent) != News::NeverSent)
            else {
                continue;
            };
            let at: Time<Rx> = at;
            let (number, ce) = (sent.id as u16, if ecn == Ecn::Ce { 3 } else { 0 });
            let is_last = Some(sent.id) == last;
            // SAFETY: the sender lives, and numbers are plain.
            self.call(|sender, now| unsafe {
                scream_acked(sender, now, ntp(at.as_nanos()), number, ce, is_last)
            });
        }
        if last.is_some() {
            self.flow.restart(self.rtt, self.target / 8.0);
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
                let made = bytes.0.saturating_sub(self.backlog);
                (self.tells, self.backlog) = (true, bytes.0);
                self.made(made);
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
            self.flow.no_feedback(self.rtt, self.target / 8.0);
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        core::mem::take(&mut self.key_frame).then_some(Action::KeyFrame)
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.flow.poll_decision()
    }

    fn output(&self) -> Output {
        let window = (self.window > 0).then_some(Bytes(self.window));
        Output {
            pacing: self.flow.rate(self.pacing / 8.0),
            window,
            ..Output::rate(self.flow.rate(self.target / 8.0))
        }
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.number("rate", "bit/s", self.target);
        visitor.number("window", "B", self.window as f64);
    }

    /// Its classes cannot be copied: one that begins anew, at this rate.
    fn clone_box(&self) -> Box<dyn RateController> {
        let start = Some(self.flow.rate(self.target / 8.0));
        Box::new(Scream::new(self.config.clone(), &Setting { start, ..self.setting }))
    }
}
