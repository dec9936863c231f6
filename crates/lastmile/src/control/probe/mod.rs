//! TFRC Probe: packet pairs within a flow tell the path's capacity, and a hand-off when that changes at once.
//!
//! Chen, Sun, Yang, Sanadidi, Gerla, "Monitoring access link capacity using TFRC probe" (TFRC Probe), sections 3.2 and 6, around
//! any controller. `docs/rate-control.md` has the points where its Algorithm 1 means something else than it prints, and the
//! downward rule, which is ours.

mod window;

use window::{Capacity, Window};

use super::{
    Action, Decision, Decisions, Fate, Feedback, Output, PacketClass, RateController, Report, RouteChange,
    Sent, Setting, Signal,
};
use crate::classify::Verdicts;
use crate::options::{Given, OptionError, Options};
use crate::telemetry::Visitor;
use crate::time::{Rx, Span, Time};
use crate::units::{Bytes, Rate};

crate::options! {
    /// The parameters of capacity probing.
    pub struct ProbeConfig {
        /// Packets from one pair to the next
        every: u32 [2..=100_000] = 20, "TFRC Probe, section 3.2.2: n";
        /// Pairs for an estimate
        samples: u32 [2..=10_000] = 20, "TFRC Probe, section 3.2.2: S";
        /// Time of an estimate
        interval: Span [Span::from_millis(100)..=Span::from_secs(3_600)] = Span::from_secs(5), "TFRC Probe, section 3.2.2: t";
        /// Leave packets at their full size
        full_size: bool = false, "TFRC Probe, section 5.1";
        /// The smallest packets
        min_size: Bytes [Bytes(60)..=Bytes(1500)] = Bytes(200), "our own: equation 4 gives 78 B at 50 kbit/s";
        /// By how much the capacity changes in a hand-off
        factor: f64 [1.5..=1_000.0] = 5.0, "TFRC Probe, algorithm 1";
        /// Notice hand-offs and change nothing for them
        notice_only: bool = false, "TFRC Probe, section 6: without fast rate adaptation";
    }
}

/// Its place in the registry of what stands around a controller.
pub const ENTRY: super::Wrapper = super::Wrapper {
    name: "probe",
    about: "the path's capacity by packet pairs within the flow, and hand-offs by its changes",
    paper: "Chen, Sun, Yang, Sanadidi, Gerla, TFRC Probe",
    options: ProbeConfig::OPTIONS,
    brief: &[("every", "4"), ("samples", "4")],
    make: |given: &Given, setting, controller| -> Result<_, OptionError> {
        Ok(Box::new(Probing::new(ProbeConfig::read(given)?, setting, controller)))
    },
};

/// So many arrivals in a row tell how fast they come.
const RUN: u32 = 8;
/// A dispersion of more than this is none.
const MOST: Span = Span::from_secs(60);

/// Of a packet, as a host could have sent it.
fn bytes(sent: &Sent) -> u64 {
    sent.size.0.clamp(1, 65_535)
}

/// Slow arrivals in a row: times and bytes of sending and of arrival.
#[derive(Clone, Copy, Debug)]
struct Arrivals {
    /// When the first left and arrived, and when the last arrived.
    first: (Time, Time<Rx>),
    last: Time<Rx>,
    /// Packets after the first, each slower than the old capacity by more than `factor`, and their bytes.
    packets_arrived: u32,
    bytes: u64,
    /// Bytes of all that left after it, lost ones too.
    bytes_sent: u64,
    /// Pairs among those, whatever became of them.
    pairs: u32,
}

/// The first packet of a pair.
#[derive(Clone, Copy, Debug)]
struct First {
    id: u64,
    size: Bytes,
    sent: Time,
    arrived: Time<Rx>,
}

/// A controller whose flow measures its path.
#[derive(Clone, Debug)]
struct Probing {
    config: ProbeConfig,
    controller: Box<dyn RateController>,
    min_rate: Rate,
    max_size: Bytes,
    /// The number of the next packet to be counted, and the packets since the last pair was asked for.
    next_id: u64,
    packets: u32,
    /// Pairs asked for in the window; true if another is due.
    pairs_asked: u32,
    pair_due: bool,
    tells_of_sending: bool,
    /// When the first packet of the window left, zero before that, and the bytes after it.
    sending: (Time, u64),
    /// The size of packets now; true if it was told.
    size: Bytes,
    size_told: bool,
    /// The pair of which the first packet arrived.
    first: Option<First>,
    window: Window,
    /// The capacity that the last window told; and that one after it told of far less.
    last_capacity: Option<Capacity>,
    fell_once: bool,
    arrivals: Option<Arrivals>,
    /// Cap after a hand-off downwards, in bytes a second, until the next estimate; half of it until the time given, while the old
    /// rate's queue drains.
    cap: Option<(f64, Option<Time>)>,
    /// Nothing tells the capacity: that was said.
    told_unknown: bool,
    decisions: Decisions,
}

impl Probing {
    fn new(config: ProbeConfig, setting: &Setting, controller: Box<dyn RateController>) -> Probing {
        Probing {
            config,
            controller,
            min_rate: setting.min,
            max_size: setting.packet_size,
            next_id: 0,
            packets: 0,
            pairs_asked: 0,
            pair_due: false,
            tells_of_sending: false,
            sending: (Time::ZERO, 0),
            size: setting.packet_size,
            size_told: true,
            first: None,
            window: Window::default(),
            last_capacity: None,
            fell_once: false,
            arrivals: None,
            cap: None,
            told_unknown: false,
            decisions: Decisions::default(),
        }
    }

    /// A packet left. If most pairs are lost, a window ends with fewer, or tells nothing.
    fn count(&mut self, now: Time, sent: &Sent) {
        if sent.id < self.next_id {
            return;
        }
        self.next_id = sent.id.saturating_add(1);
        self.packets += 1;
        if self.packets >= self.config.every {
            (self.packets, self.pair_due, self.pairs_asked) = (0, true, self.pairs_asked + 1);
        }
        let (since, so_far) = self.sending;
        self.sending = if since > Time::ZERO { (since, so_far + bytes(sent)) } else { (sent.at, 0) };
        let samples = self.config.samples;
        if self.pairs_asked > 2 * samples {
            if self.window.pairs < samples / 2 {
                self.window = Window::default();
            }
            self.window_ended(now);
        }
    }

    /// A packet of a pair arrived.
    fn on_probe(&mut self, now: Time, sent: Sent, at: Time<Rx>, resolution: Span) {
        if let PacketClass::Probe { index: 0, .. } = sent.class {
            self.first = Some(First { id: sent.id, size: sent.size, sent: sent.at, arrived: at });
            return;
        }
        let Some(First { id, size, sent: left, arrived }) = self.first.take() else { return };
        // Another packet left between them, or the first of this pair is lost.
        if sent.id != id.wrapping_add(1) || sent.size != size {
            return;
        }
        let (dispersion, apart) = (at - arrived, (sent.at - left).max(Span::ZERO));
        // The second came before the first, or stamps of years.
        if dispersion < Span::ZERO || dispersion > MOST {
            return;
        }
        let size = Bytes(bytes(&sent));
        if size != self.window.size {
            self.window = Window::of(size);
        }
        self.window.resolution = self.window.resolution.max(resolution);
        // A host that did not send them back to back may have spread them itself.
        if apart <= (dispersion / 4).max(resolution / 4) {
            let since = |at: Time<Rx>| (at.as_nanos() as i64).wrapping_sub(left.as_nanos() as i64);
            self.window.add(since(arrived).saturating_add(since(at)), dispersion);
        } else {
            let (pairs, sum) = self.window.spread;
            self.window.spread = (pairs + 1, sum.saturating_add(dispersion.as_nanos()));
        }
        let Window { pairs, spread, .. } = self.window;
        if pairs.max(spread.0) >= self.config.samples {
            self.window_ended(now);
        }
    }

    fn window_ended(&mut self, now: Time) {
        let window = core::mem::take(&mut self.window);
        let (told, delay_sum) = (window.capacity(), Span::from_nanos(window.least));
        self.cap = None;
        let Some(new) = told else {
            self.unknown();
            return self.resize(now);
        };
        self.told_unknown = false;
        let (rate, size) = (self.rate(new.rate), new.size);
        self.decisions.push(match new.at_least {
            false => Decision::Capacity { rate, size, delay_sum },
            true => Decision::CapacityAbove { rate, size },
        });
        // [algorithm 1] C > 5 C_old; the first window has nothing to compare with.
        let factor = self.config.factor;
        let less = self.last_capacity.is_some_and(|old| old.is_more(&new, factor));
        // A window in which each pair met others tells too little: the next one has to say so as well.
        if less && !core::mem::replace(&mut self.fell_once, less) {
            return self.resize(now);
        }
        self.fell_once = false;
        let changed = self.last_capacity.filter(|old| less || new.is_more(old, factor));
        // A bound does not take the place of a number, unless the path is another one.
        if changed.is_some() || !new.at_least || self.last_capacity.is_none_or(|old| old.at_least) {
            self.last_capacity = Some(new);
        }
        match changed {
            Some(old) => self.hand_off(now, old.rate, new.rate),
            None => self.resize(now),
        }
    }

    fn unknown(&mut self) {
        if !core::mem::replace(&mut self.told_unknown, true) {
            self.decisions.push(Decision::CapacityUnknown);
        }
    }

    fn hand_off(&mut self, now: Time, from: f64, to: f64) {
        self.decisions.push(Decision::HandOff { from: self.rate(from), to: self.rate(to) });
        if !self.config.notice_only {
            let why = if to > from { RouteChange::MoreCapacity } else { RouteChange::LessCapacity };
            self.cap = (to < from).then_some((to, Some(now + self.config.interval)));
            self.controller.on_signal(now, Signal::Route { why });
        }
        self.resize(now);
    }

    /// Our own rule downwards: a window that straddles the hand-off still tells the old capacity, whose delays were less, and of
    /// pairs into a full queue one packet is lost. But then every packet comes no faster than the new path can, and together they
    /// come slower than they left. Others' traffic leaves a fast pair among them. The rate of arrivals is at most the new capacity:
    /// the next window tells it.
    fn on_arrival(&mut self, now: Time, sent: &Sent, at: Time<Rx>) {
        let (Some(arrivals), Some(old)) = (&mut self.arrivals, self.last_capacity) else {
            return self.begin(sent, at);
        };
        let of = |bytes: u64, over: Span| bytes as f64 / over.as_secs_f64().max(1e-9);
        let size = Bytes(bytes(sent));
        let alone = Capacity { rate: of(size.0, at - arrivals.last), size, at_least: false };
        if !old.is_more(&alone, self.config.factor) {
            return self.begin(sent, at);
        }
        (arrivals.last, arrivals.packets_arrived) = (at, arrivals.packets_arrived + 1);
        arrivals.bytes += size.0;
        arrivals.bytes_sent += size.0;
        if arrivals.packets_arrived < RUN || arrivals.pairs == 0 {
            return;
        }
        let came = of(arrivals.bytes, at - arrivals.first.1);
        let slower = of(arrivals.bytes_sent, sent.at - arrivals.first.0) >= 2.0 * came;
        self.begin(sent, at);
        if slower {
            (self.window, self.last_capacity) = (Window::default(), None);
            self.hand_off(now, old.rate, came);
        }
    }

    fn begin(&mut self, sent: &Sent, at: Time<Rx>) {
        self.arrivals = Some(Arrivals {
            first: (sent.at, at),
            last: at,
            packets_arrived: 0,
            bytes: 0,
            bytes_sent: 0,
            pairs: 0,
        });
    }

    /// [equation 4] P = R_send t / (8 n S). The rate sent may be less than the rate allowed.
    fn resize(&mut self, now: Time) {
        let ProbeConfig { every, samples, interval, min_size, full_size, .. } = self.config;
        let most = self.max_size.0;
        let may = self.output().pacing.bits_per_second() as f64;
        let (since, sent) = core::mem::replace(&mut self.sending, (Time::ZERO, 0));
        let sends = if now > since && since > Time::ZERO {
            8.0 * sent as f64 / (now - since).as_secs_f64()
        } else {
            may
        };
        let size = may.min(sends) * interval.as_secs_f64() / (8.0 * f64::from(every) * f64::from(samples));
        let least = if full_size { most } else { min_size.0.min(most) };
        self.change(Bytes((size as u64).clamp(least, most)));
    }

    /// Begins a window with packets of that size.
    fn change(&mut self, size: Bytes) {
        self.size_told &= size == self.size;
        (self.size, self.window, self.pairs_asked) = (size, Window::default(), 0);
    }

    fn rate(&self, bytes_per_second: f64) -> Rate {
        Rate::ip((8.0 * bytes_per_second).min(1e15) as u64)
    }
}

impl RateController for Probing {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.tells_of_sending = true;
        self.count(now, sent);
        self.controller.on_sent(now, sent);
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.controller.on_feedback(now, feedback);
        if let Some((_, drains)) = &mut self.cap {
            drains.take_if(|until| now >= *until);
        }
        for i in 0..feedback.reports.len() {
            let Report { sent, fate } = feedback.reports[i];
            if !self.tells_of_sending {
                self.count(now, &sent);
            }
            let probe = match sent.class {
                PacketClass::Probe { index, len: 2, .. } => Some(index),
                _ => None,
            };
            let lost = matches!(fate, Fate::Lost { .. });
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.pairs += u32::from(probe == Some(1));
                arrivals.bytes_sent += if lost { bytes(&sent) } else { 0 };
            }
            match (fate, feedback.resolution) {
                (Fate::Arrived { at: Some(at), .. }, Some(resolution)) => {
                    if probe.is_some() {
                        self.on_probe(now, sent, at, resolution.max(Span::ZERO));
                    }
                    self.on_arrival(now, &sent, at);
                }
                (Fate::Arrived { .. }, _) if probe.is_some() => self.unknown(),
                _ => {}
            }
        }
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        match signal {
            Signal::Mtu { size } => {
                self.max_size = size;
                let at_most = if self.config.full_size { size } else { self.size.min(size) };
                if at_most != self.size {
                    self.change(at_most);
                }
            }
            // Delays of another path do not compare.
            Signal::Route { .. } => {
                (self.window, self.first, self.arrivals) = (Window::default(), None, None);
            }
            _ => {}
        }
        self.controller.on_signal(now, signal);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.controller.poll_timeout()
    }

    fn on_timeout(&mut self, now: Time) {
        self.controller.on_timeout(now);
    }

    fn poll_action(&mut self) -> Option<Action> {
        if !core::mem::replace(&mut self.size_told, true) {
            return Some(Action::PacketSize(self.size));
        }
        if core::mem::take(&mut self.pair_due) {
            return Some(Action::Probe { packets: 2, size: self.size, gap: None });
        }
        self.controller.poll_action()
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.decisions.pop().or_else(|| self.controller.poll_decision())
    }

    fn verdicts(&self) -> Option<Verdicts> {
        self.controller.verdicts()
    }

    fn output(&self) -> Output {
        let output = self.controller.output();
        let Some((cap, drains)) = self.cap else { return output };
        let cap = self.rate(if drains.is_some() { cap / 2.0 } else { cap });
        let cap = if cap < self.min_rate { self.min_rate } else { cap };
        let at_most = |rate: Rate| if rate > cap { cap } else { rate };
        Output { target: at_most(output.target), pacing: at_most(output.pacing), ..output }
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        if let Some(old) = self.last_capacity {
            let name = if old.at_least { "capacity, at least" } else { "capacity" };
            visitor.number(name, "bit/s", 8.0 * old.rate);
        }
        visitor.number("packet size", "B", self.size.0 as f64);
        visitor.number("pairs", "", f64::from(self.window.pairs));
        self.controller.telemetry(visitor);
    }

    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}
