//! TFRC Probe: packet pairs within a flow tell the path's capacity, and a hand-off when that changes at once.
//!
//! Chen, Sun, Yang, Sanadidi, Gerla, "Monitoring access link capacity using TFRC probe" (seed 001), sections 3.2 and 6, around
//! any controller. Where its Algorithm 1 is meant otherwise than it is printed, and the downward rule, which is ours:
//! `docs/rate-control.md`.

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
        /// How long an estimate shall take
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
    paper: "Chen, Sun, Yang, Sanadidi, Gerla (seed 001)",
    options: ProbeConfig::OPTIONS,
    make: |given: &Given, setting, controller| -> Result<_, OptionError> {
        Ok(Box::new(Probing::new(ProbeConfig::read(given)?, setting, controller)))
    },
};

/// A dispersion of fewer steps of the stamps' resolution is no measurement: 10 %.
const STEPS: i64 = 10;
/// So many arrivals in a row tell how fast they come.
const RUN: u32 = 8;

/// A pair as it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    /// T1 + T2 in nanoseconds, both from when the pair left; from an unknown zero.
    delay_sum: i64,
    /// T2 - T1.
    dispersion: Span,
    /// Of the second packet.
    size: Bytes,
}

impl Pair {
    /// Bytes a second.
    fn capacity(&self) -> f64 {
        self.size.0 as f64 / self.dispersion.as_secs_f64()
    }
}

/// Of a packet, as a host could have sent it.
fn bytes(sent: &Sent) -> u64 {
    sent.size.0.clamp(1, 65_535)
}

/// How an older capacity compares with a newer one, of pairs of another size: per packet a link takes a time of its own, so
/// that size alone may change the capacity by as much as itself.
fn is_more(new: &Pair, old: &Pair, factor: f64) -> bool {
    new.capacity() > factor * old.capacity() * (new.size.0 as f64 / old.size.0 as f64).max(1.0)
}

/// Arrivals in a row: how fast packets left, and how fast they came.
#[derive(Clone, Copy, Debug)]
struct Arrivals {
    /// When the first left and arrived.
    first: (Time, Time<Rx>),
    /// How many came after it, and their bytes.
    seen: u32,
    bytes: u64,
    /// Bytes of all that left after it, lost ones too.
    left: u64,
    /// A pair among them was not slow.
    fast: bool,
}

/// A controller whose flow measures its path.
#[derive(Debug)]
struct Probing {
    config: ProbeConfig,
    controller: Box<dyn RateController>,
    setting: Setting,
    /// Packets since the last pair was asked for.
    packets: u32,
    ask: bool,
    /// The size of packets now, and whether it was told.
    size: (Bytes, bool),
    /// The pair of which the first packet arrived: its train, and when that left and arrived.
    first: Option<(u32, Time, Time<Rx>)>,
    /// The window's pairs, and the one of the least delay sum.
    seen: u32,
    best: Option<Pair>,
    /// The last window's.
    old: Option<Pair>,
    arrivals: Option<Arrivals>,
    /// What a hand-off downwards left, in bytes a second, until the next estimate; and until when half of that, while what the
    /// old rate put into the queue drains.
    cap: Option<(f64, Option<Time>)>,
    /// The stamps are too coarse, or there are none: that was said.
    blind: bool,
    decisions: Decisions,
}

impl Probing {
    fn new(config: ProbeConfig, setting: &Setting, controller: Box<dyn RateController>) -> Probing {
        Probing {
            config,
            controller,
            setting: *setting,
            packets: 0,
            ask: false,
            size: (setting.packet_size, true),
            first: None,
            seen: 0,
            best: None,
            old: None,
            arrivals: None,
            cap: None,
            blind: false,
            decisions: Decisions::default(),
        }
    }

    fn pair(&mut self, now: Time, pair: Pair, resolution: Span) {
        if pair.dispersion / STEPS < resolution || pair.dispersion <= Span::ZERO {
            // A path faster than the stamps is no rate at all.
            if !core::mem::replace(&mut self.blind, true) {
                let needs = (pair.dispersion / STEPS).max(Span::ZERO);
                self.decisions.push(Decision::FellBack {
                    from: "probe",
                    to: "none",
                    needs,
                    resolution: Some(resolution),
                });
            }
            return;
        }
        self.blind = false;
        self.seen += 1;
        if self.best.is_none_or(|best| pair.delay_sum < best.delay_sum) {
            self.best = Some(pair); // [algorithm 1]
        }
        if let (Some(old), Some(arrivals)) = (self.old, &mut self.arrivals) {
            arrivals.fast |= !is_more(&old, &pair, self.config.factor);
        }
        if self.seen >= self.config.samples
            && let Some(new) = self.best.take()
        {
            self.seen = 0;
            self.estimated(now, new);
        }
    }

    fn estimated(&mut self, now: Time, new: Pair) {
        self.decisions.push(Decision::Capacity { rate: self.rate(new.capacity()), size: new.size });
        self.cap = None;
        let Some(old) = self.old.replace(new) else { return self.resize() };
        // [algorithm 1] C > 5 C_old; the first window has nothing to compare with.
        let factor = self.config.factor;
        match is_more(&new, &old, factor) || is_more(&old, &new, factor) {
            true => self.hand_off(now, old.capacity(), new.capacity()),
            false => self.resize(),
        }
    }

    fn hand_off(&mut self, now: Time, from: f64, to: f64) {
        self.decisions.push(Decision::HandOff { from: self.rate(from), to: self.rate(to) });
        if !self.config.notice_only {
            let why = if to > from { RouteChange::MoreCapacity } else { RouteChange::LessCapacity };
            self.cap = (to < from).then_some((to, Some(now + self.config.interval)));
            self.controller.on_signal(now, Signal::Route { why });
        }
        self.resize();
    }

    /// Our own rule downwards: a window that straddles the hand-off still tells the old capacity, whose delays were less, and of
    /// pairs into a full queue one packet is lost. But packets then come as fast as the new path can, and slower than they left.
    fn on_arrival(&mut self, now: Time, sent: &Sent, at: Time<Rx>) {
        let Some(arrivals) = &mut self.arrivals else { return self.begin(sent, at) };
        arrivals.seen += 1;
        arrivals.bytes += bytes(sent);
        arrivals.left += bytes(sent);
        if arrivals.seen < RUN {
            return;
        }
        let Arrivals { first: (left_at, came_at), bytes, left, fast, .. } = *arrivals;
        let (leaving, coming) = ((sent.at - left_at).as_secs_f64(), (at - came_at).as_secs_f64());
        self.begin(sent, at);
        let Some(old) = self.old.filter(|_| !fast && coming > 0.0) else { return };
        let (sent_at, came) = (left as f64 / leaving.max(1e-9), bytes as f64 / coming);
        if came * self.config.factor < old.capacity() && sent_at >= 2.0 * came {
            (self.seen, self.best) = (0, None);
            let dispersion = Span::from_secs_f64(old.size.0 as f64 / came);
            self.old = Some(Pair { dispersion, ..old });
            self.hand_off(now, old.capacity(), came);
        }
    }

    fn begin(&mut self, sent: &Sent, at: Time<Rx>) {
        self.arrivals = Some(Arrivals { first: (sent.at, at), seen: 0, bytes: 0, left: 0, fast: false });
    }

    /// [equation 4] P = R t / (8 n S).
    fn resize(&mut self) {
        if self.config.full_size {
            return;
        }
        let ProbeConfig { every, samples, interval, min_size, .. } = self.config;
        let bytes = self.output().pacing.bits_per_second() as f64 * interval.as_secs_f64()
            / (8.0 * f64::from(every) * f64::from(samples));
        let most = self.setting.packet_size.0;
        let size = Bytes((bytes as u64).clamp(min_size.0.min(most), most));
        self.size = (size, self.size.1 && size == self.size.0);
    }

    fn rate(&self, bytes_per_second: f64) -> Rate {
        Rate::ip((8.0 * bytes_per_second).min(1e15) as u64)
    }
}

impl RateController for Probing {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.packets += 1;
        if self.packets >= self.config.every {
            self.packets = 0;
            self.ask = true;
        }
        self.controller.on_sent(now, sent);
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.controller.on_feedback(now, feedback);
        if let Some((_, drains)) = &mut self.cap {
            drains.take_if(|until| now >= *until);
        }
        for i in 0..feedback.reports.len() {
            let Report { sent, fate } = feedback.reports[i];
            match (fate, &mut self.arrivals) {
                (Fate::Arrived { at: Some(at), .. }, _) => self.on_arrival(now, &sent, at),
                (Fate::Lost { .. }, Some(arrivals)) => arrivals.left += bytes(&sent),
                _ => {}
            }
            let PacketClass::Probe { train, index, len: 2 } = sent.class else { continue };
            let first = self.first.take();
            let Fate::Arrived { at, .. } = fate else { continue };
            let (Some(at), Some(resolution)) = (at, feedback.resolution) else {
                if !core::mem::replace(&mut self.blind, true) {
                    let needs = Span::from_micros(100);
                    self.decisions.push(Decision::FellBack {
                        from: "probe",
                        to: "none",
                        needs,
                        resolution: None,
                    });
                }
                continue;
            };
            match (index, first) {
                (0, _) => self.first = Some((train, sent.at, at)),
                (_, Some((begun, left, arrived))) if begun == train && at > arrived => {
                    let dispersion = at - arrived;
                    // A host that did not send them back to back spread them itself.
                    if sent.at - left <= dispersion / 4 {
                        let since =
                            |at: Time<Rx>| (at.as_nanos() as i64).wrapping_sub(left.as_nanos() as i64);
                        let delay_sum = since(arrived).saturating_add(since(at));
                        self.pair(now, Pair { delay_sum, dispersion, size: Bytes(bytes(&sent)) }, resolution);
                    }
                }
                _ => {}
            }
        }
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        match signal {
            Signal::Mtu { size } => self.setting.packet_size = size,
            // Delays of another path do not compare.
            Signal::Route { .. } => {
                (self.seen, self.best, self.first, self.arrivals) = (0, None, None, None);
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
        if !core::mem::replace(&mut self.size.1, true) {
            return Some(Action::PacketSize(self.size.0));
        }
        if core::mem::take(&mut self.ask) {
            return Some(Action::Probe { packets: 2, size: self.size.0, gap: None });
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
        let cap = self.setting.within(if drains.is_some() { cap / 2.0 } else { cap });
        let at_most = |rate: Rate| if rate > cap { cap } else { rate };
        Output { target: at_most(output.target), pacing: at_most(output.pacing), ..output }
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        if let Some(old) = self.old {
            visitor.number("capacity", "bit/s", 8.0 * old.capacity());
        }
        visitor.number("packet size", "B", self.size.0.0 as f64);
        visitor.number("pairs", "", f64::from(self.seen));
        self.controller.telemetry(visitor);
    }
}
