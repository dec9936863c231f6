//! Lastmile: a rate that keeps a short queue, a share beside TCP, and losses that count only if they go with the rate.
//!
//! Each flow keeps a standing queue that depends on its rate, so that equal queues are equal rates and fairness needs no loss. The parts
//! stand in files of their own: `arrivals.rs` (queue and receive rates), `losses.rs`, `marks.rs`, `beside.rs` (TCP's company), `sources.rs` (the
//! encoder's target, padding) and `phases.rs` (the state machine). `docs/controller.md` has its diagram, and the experiment behind each constant.

mod arrivals;
mod beside;
mod losses;
mod marks;
mod phases;
mod sources;
#[cfg(test)]
mod tests;

use arrivals::Arrivals;
use beside::Beside;
use losses::{Cause, Losses};
use marks::Marks;
use phases::Phase;

use super::{
    Controller, Decision, Fate, Feedback, Flow, Information, News, Output, RateController, Report,
    RouteChange, Sent, Setting, Signal,
};
use crate::classify::LossClass;
use crate::options::Options;
use crate::telemetry::Visitor;
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

crate::options! {
    /// The parameters of our own controller; each default is an experiment of `docs/controller.md`.
    pub struct LastmileConfig {
        /// Packets that a flow keeps in the queue
        packets: f64 [0.1..=100.0] = 1.8, "our own: fairness (RFC 8867, 5.5) against delay";
        /// Delay that it keeps besides
        delay: Span [Span::ZERO..=Span::from_secs(1)] = Span::from_millis(3), "our own: above the stamps' resolution";
        /// Pacing rate over target
        pacing: f64 [1.0..=10.0] = 1.1, "our own";
        /// Bytes in flight over those of the target in a round trip, a gap of feedback and the delay to keep
        window: f64 [1.0..=100.0] = 2.0, "our own: RFC 8298 has 1.2 to 2";
        /// Time between dips that show the base delay
        dip: Span [Span::from_secs(1)..=Span::from_secs(3_600)] = Span::from_secs(15), "our own: one or two in the memory of the base delay";
        /// Takes a share beside flows that fill the queue
        compete: bool = true, "our own; Copa (NSDI 2018) and NADA (RFC 8698) have such a mode";
    }
}

/// Its place in the registry.
pub const ENTRY: Controller = Controller {
    name: "lastmile",
    about: "a short queue by delay, a share beside TCP, and losses that count only if they go with the rate",
    paper: "our own: docs/controller.md",
    classifier: None,
    needs: Information::Times,
    below: "goes by round-trip times, and so by queues of feedback too",
    options: LastmileConfig::OPTIONS,
    make: |given, setting| Ok(Box::new(Lastmile::new(LastmileConfig::read(given)?, setting))),
};

/// Seconds of arrivals that show a standing queue: of an overload, and for the law. A frame at 30 a second lasts 33 ms: two of them tell that a
/// queue is no frame's, one and a half are enough for the law, which answers a false queue by little.
const OVERLOAD_S: f64 = 0.08;
const LAW_S: f64 = 0.05;
/// Seconds of receive rates, and the packets that they hold at least: four and twelve frames at 30 a second. The fast one tells what passes while
/// a queue stands and bounds the start, the slow one bounds the law, for which frames of unequal size must not decide.
const FAST: (f64, f64) = (0.15, 4.0);
const SLOW: (f64, f64) = (0.4, 8.0);
/// The delay to keep is at most so long, in seconds.
const LONGEST_TARGET_S: f64 = 0.15;
/// Least and most of the time until a change of the rate shows, in seconds.
const CONTROL_TIME_S: (f64, f64) = (0.06, 1.0);
/// The delay to keep is scaled down by that factor for each congestion, at least to that, and recovers by so much in a second.
const SCALE_CUT: f64 = 0.85;
const LEAST_SCALE: f64 = 0.3;
const SCALE_RECOVERY: f64 = 0.03;
/// Where losses seem to be the link's, a longer delay to keep than these seconds is halved, at most down to them: PIE drops packets of a queue
/// of 15 ms (RFC 8033), whatever one flow of several does.
const SPARED_S: f64 = 0.012;
/// Pacing over target while marks of L4S steer: their queue is shorter than what more headroom makes of a frame.
const STEERED: f64 = 1.06;
/// A share of losses that takes off from the rate, and bounds on it.
const CUTS: f64 = 0.01;
const CUT: (f64, f64) = (0.03, 0.3);
/// A queue that is longer than the round trip by so many seconds is a clock's step.
const STEPPED_S: f64 = 0.05;
/// A round trip longer than twice the least and so many seconds is a longer path, or a queue of others: the least follows that in so many seconds.
const LONGER_S: f64 = 0.1;
const FORGOTTEN_S: f64 = 20.0;
/// After so many seconds without arrivals the path is unknown as at the start.
const SILENCE_S: f64 = 1.0;

/// The round-trip time before one is known, in seconds.
const UNKNOWN_RTT_S: f64 = 0.2;

/// A rate in bytes a second, and when it was had, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Past {
    when: f64,
    rate: f64,
}

impl Past {
    const NEVER: Past = Past { when: f64::NEG_INFINITY, rate: 0.0 };

    fn age(&self, now: f64) -> f64 {
        now - self.when
    }
}

/// The path as feedback shows it. Times are seconds, rates bytes a second.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    now: f64,
    /// Since the last feedback with arrivals.
    dt: f64,
    /// q, and its change: the standing queue of an overload.
    queue: f64,
    rise: f64,
    /// ql, and its change: that for the law.
    law_queue: f64,
    law_rise: f64,
    fast: f64,
    slow: f64,
    /// T: the time until a change of the rate shows; T0: the same without the queue.
    control_time: f64,
    base_time: f64,
    /// Delay to keep.
    target: f64,
}

/// The state of a flow.
#[derive(Clone, Debug)]
pub struct Lastmile {
    config: LastmileConfig,
    flow: Flow,
    phase: Phase,
    arrivals: Arrivals,
    losses: Losses,
    marks: Marks,
    beside: Beside,
    /// Bytes a second: of the path, and of the encoder.
    rate: f64,
    encoder: f64,
    /// Bytes that wait for the pacer.
    backlog: f64,
    /// Smoothed and least round-trip time, in seconds.
    rtt: Option<f64>,
    min_rtt: f64,
    seen: Seen,
    /// lambda: scale of the delay to keep, and when it was cut last.
    scale: f64,
    scale_cut: f64,
    last_cut: f64,
    next_dip: f64,
    /// The receive rate where losses went with the rate and no queue stood.
    ceiling: Past,
    /// The rate at which the last marks of L4S came.
    marked_at: f64,
    /// gamma: growth in a control time while the queue is empty, and since when it is; infinite while it is not.
    growth: f64,
    empty_since: f64,
    /// Rate that would suit the sources, bytes a second.
    desired: f64,
    /// Share of packets of late that left while the sources had no more.
    limited: f64,
    /// Filled up with padding until then.
    padding_until: f64,
    /// The rate that passed before padding, until its queue is gone: bytes a second, 0 otherwise.
    proved: f64,
}

impl Lastmile {
    /// Within the limits of `setting`.
    pub fn new(config: LastmileConfig, setting: &Setting) -> Lastmile {
        let flow = Flow::new(setting);
        let rate = flow.start_rate().unwrap_or(flow.full_size());
        let next_dip = config.dip.as_secs_f64();
        Lastmile {
            config,
            flow,
            phase: Phase::Start,
            arrivals: Arrivals::new(),
            losses: Losses::new(setting.min),
            marks: Marks::new(),
            beside: Beside::default(),
            rate,
            encoder: rate,
            backlog: 0.0,
            rtt: None,
            min_rtt: f64::INFINITY,
            seen: Seen::default(),
            scale: 1.0,
            scale_cut: f64::NEG_INFINITY,
            last_cut: f64::NEG_INFINITY,
            next_dip,
            ceiling: Past::NEVER,
            marked_at: rate,
            growth: 0.0,
            empty_since: f64::INFINITY,
            desired: f64::INFINITY,
            limited: 0.0,
            padding_until: f64::NEG_INFINITY,
            proved: 0.0,
        }
    }

    fn now(&self) -> f64 {
        (self.flow.now() - Time::ZERO).as_secs_f64()
    }

    fn set(&mut self, rate: f64) {
        let least = self.flow.slowest_rate().max(self.flow.min_rate());
        self.rate = if rate.is_nan() { least } else { rate.clamp(least, self.flow.max_rate().max(least)) };
    }

    /// Rate on an unknown path: the user's start rate, or the initial window in a round trip.
    fn first_rate(&self) -> f64 {
        let rtt = self.min_rtt.min(self.rtt_or_usual());
        self.flow.start_rate().unwrap_or(self.flow.initial_rate(rtt))
    }

    fn on_rtt(&mut self, sample: f64) {
        if self.rtt.is_none() && self.flow.start_rate().is_none() {
            self.set(self.rate.max(self.flow.initial_rate(sample)));
        }
        // RFC 6298's weight.
        self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt + (sample - rtt) / 8.0));
        self.min_rtt = self.min_rtt.min(sample);
    }

    fn rtt_or_usual(&self) -> f64 {
        self.rtt.unwrap_or(UNKNOWN_RTT_S)
    }

    /// The time that so many bytes take at the rate, in seconds.
    fn seconds_of(&self, bytes: f64) -> f64 {
        bytes / self.rate.max(1.0)
    }

    /// The time until a change of the rate shows, on a path of that round-trip time.
    fn control_time(&self, rtt: f64) -> f64 {
        (rtt + self.flow.spacing.usual() + 0.02).clamp(CONTROL_TIME_S.0, CONTROL_TIME_S.1)
    }

    /// Delay to keep: equal delays of equal packets are equal rates.
    fn target(&self) -> f64 {
        let packets = self.seconds_of(self.config.packets * self.flow.packet_size());
        let target = self.scale * (self.config.delay.as_secs_f64() + packets).min(LONGEST_TARGET_S);
        if self.losses.is_link() { target.min((0.5 * target).max(SPARED_S)) } else { target }
    }

    fn received(&self, (seconds, packets): (f64, f64)) -> f64 {
        self.arrivals.rate(seconds.max(self.seconds_of(packets * self.flow.packet_size())))
    }

    fn look(&mut self) -> Seen {
        let (now, before) = (self.now(), self.seen);
        let (queue, law_queue) =
            (self.arrivals.standing_queue(OVERLOAD_S), self.arrivals.standing_queue(LAW_S));
        let rtt = self.rtt_or_usual();
        let dt = (now - before.now).clamp(0.0, 0.2);
        let longer = rtt - (2.0 * self.min_rtt + LONGER_S);
        if longer > 0.0 {
            // The path became longer, and nobody told of it.
            self.min_rtt += longer * dt / FORGOTTEN_S;
        }
        self.seen = Seen {
            now,
            dt,
            queue,
            rise: queue - before.queue,
            law_queue,
            law_rise: law_queue - before.law_queue,
            fast: self.received(FAST),
            slow: self.received(SLOW),
            control_time: self.control_time(rtt),
            base_time: self.control_time(self.min_rtt.min(rtt)),
            target: self.target(),
        };
        self.seen
    }

    /// Packets were lost or marked, the last of them sent at `sent_at`, and their losses are congestion: at most once in a control time the
    /// delay to keep becomes shorter, and the rate lower by the share of losses.
    fn congested(&mut self, sent_at: Time) {
        let now = self.now();
        if now - self.scale_cut > self.control_time(self.rtt_or_usual()) {
            self.scale = (SCALE_CUT * self.scale).max(LEAST_SCALE);
            self.scale_cut = now;
            let share = self.losses.short_share();
            if share > CUTS && matches!(self.phase, Phase::Start | Phase::Track | Phase::Dip { .. }) {
                if self.losses.cause == Cause::Rate && self.seen.law_queue < self.seen.target {
                    self.ceiling = Past { when: now, rate: self.seen.slow.min(self.rate) };
                }
                self.set(self.rate * (1.0 - share.clamp(CUT.0, CUT.1)));
                self.settle(now);
                self.end_start();
            }
        }
        if self.phase == Phase::Beside {
            self.lost_beside(sent_at);
        }
    }

    fn halve(&mut self, rate: f64) {
        self.set(rate / 2.0);
        self.settle(self.now());
        self.lower_encoder();
    }

    /// No arrival tells of the new rate.
    fn lower_encoder(&mut self) {
        self.encoder = self.encoder.min(self.rate);
    }

    /// The rate was lowered: growth begins anew.
    fn settle(&mut self, now: f64) {
        (self.last_cut, self.growth, self.empty_since) = (now, 0.0, f64::INFINITY);
    }
}

impl RateController for Lastmile {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.flow.on_sent(now, sent);
        self.flow.expect_feedback(self.rtt, self.rate);
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.flow.on_feedback(now);
        let rtt = self.flow.round_trip(feedback);
        rtt.into_iter().for_each(|sample| self.on_rtt(sample.as_secs_f64()));
        let now = self.now();
        let stamped = |report: &Report| matches!(report.fate, Fate::Arrived { at: Some(_), .. });
        let are_stamped = feedback.reports.iter().any(stamped);
        let (mut heard, mut told, mut lost) = (false, 0, 0);
        let (mut arrived, mut limited) = (0_u32, 0_u32);
        // The newest packet that was lost or marked, and whether one was lost behind a long delay.
        let (mut congested, mut late): (Option<Time>, bool) = (None, false);
        for Report { sent, fate } in feedback.reports.iter() {
            let news = self.flow.on_report(sent);
            match *fate {
                Fate::Arrived { at, ecn } if news == News::New => {
                    heard = true;
                    told += 1;
                    let bytes = if feedback.receiver.is_some() { 0 } else { sent.size.0 };
                    match at {
                        Some(at) => {
                            let one_way = (at - sent.at.as_sender()).relative_nanos();
                            self.arrivals.add(now, at.as_secs_f64(), one_way as f64 / 1e9, bytes);
                        }
                        // It came after the report: its time by this clock is none of the receiver's.
                        None if are_stamped => self.arrivals.credit(bytes),
                        None => {
                            let answered = self.flow.now() - sent.at - feedback.hold;
                            self.arrivals.add(now, now, answered.as_secs_f64(), bytes);
                        }
                    }
                    self.losses.arrived(sent, self.arrivals.last_queue());
                    limited += u32::from(sent.app_limited);
                    arrived += 1;
                    if self.marks.arrived(sent.ecn, ecn) {
                        lost += 1;
                        congested = congested.max(Some(sent.at));
                    }
                }
                Fate::Lost { class, .. } if news != News::NeverSent => {
                    (told, lost) = (told + 1, lost + 1);
                    let packet_s = self.seconds_of(self.flow.packet_size());
                    late |= self.losses.lost(sent, self.arrivals.last_queue(), packet_s);
                    if class == LossClass::Congestion {
                        congested = congested.max(Some(sent.at));
                    }
                }
                _ => {}
            }
        }
        if let Some(summary) = feedback.receiver {
            if summary.received > Bytes::ZERO {
                // A sum may be a lie: nobody receives more than was sent of late, or twice as much where a queue empties at once.
                let most = 2.0 * self.phase.rate_before(self.rate);
                let before = if heard { now } else { self.seen.now };
                self.arrivals.sum(before, now, summary.received.0 as f64, summary.over.as_secs_f64(), most);
                heard = true;
            }
            told = 100;
            lost = (summary.loss_event_rate.clamp(0.0, 1.0) * 100.0) as u32;
            congested = (lost > 0).then_some(self.flow.now()).or(congested);
        }
        if rtt.is_some_and(|sample| self.arrivals.last_queue() > sample.as_secs_f64() + STEPPED_S) {
            // No queue is longer than the round trip that it is in: the receiver's clock was set forward.
            self.arrivals.forget_base();
        }
        // A look is short, and leaves what was counted so far.
        let may_test = match self.phase {
            Phase::Withdraw(withdrawal) => withdrawal.is_look,
            phase => matches!(phase, Phase::Track | Phase::Dip { .. }),
        };
        self.losses.count(told, lost);
        self.losses.on_feedback(self.flow.now(), self.rate, rtt, may_test);
        if self.losses.is_link() {
            // The link lost packets at that rate, and not for it.
            self.ceiling = Past::NEVER;
        }
        if let Some(sent_at) = congested {
            if late {
                self.overflowed_by_others(sent_at);
            }
            if self.losses.are_congestion() {
                self.congested(sent_at);
            }
        }
        self.count_limited(now, arrived, limited);
        if heard {
            self.update();
            self.encode();
            self.flow.restart(self.rtt, self.rate);
        } else {
            self.lower_encoder();
            self.flow.expect_feedback(self.rtt, self.rate);
        }
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        self.flow.on_signal(now, signal);
        match signal {
            Signal::Demand { desired, .. } => self.desired = desired.bits_per_second() as f64 / 8.0,
            Signal::Route { why } => {
                self.losses.on_route_change();
                (self.marks, self.beside) = (Marks::new(), Beside::default());
                self.ceiling = Past::NEVER;
                let is_silent = matches!(self.phase, Phase::Silent { .. });
                if why == RouteChange::LessCapacity && !is_silent {
                    // The queue is the old path's: let it drain before a base delay is taken.
                    self.set((self.received(FAST) / 2.0).min(self.rate));
                    self.lower_encoder();
                } else {
                    self.arrivals.forget_base();
                }
                self.min_rtt = f64::INFINITY;
                if !is_silent {
                    self.phase = Phase::Start;
                }
                self.settle(self.now());
            }
            Signal::Backlog { bytes } => self.backlog = bytes.0 as f64,
            Signal::PersistentCongestion => self.halve(self.rate),
            Signal::Excess { trips: true, .. } => self.halve(self.received(SLOW).min(self.rate)),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        let ends = self.losses.poll_timeout(self.flow.now());
        self.flow.poll_timeout().into_iter().chain(ends).min()
    }

    fn on_timeout(&mut self, now: Time) {
        if self.flow.is_overdue(now) {
            // [RFC 8085, section 3.1.3] A packet in 3 s, where nothing is known of the path, finds out when it is back.
            let before = self.before_silence();
            self.halve(self.rate.max(2.0 / 3.0 * self.flow.packet_size()));
            self.encoder = self.rate;
            // Feedback that comes seldom is no silence.
            let is_silence = self.flow.spacing.usual() < SILENCE_S / 2.0;
            if let Some(before) = before.filter(|_| is_silence) {
                self.phase = Phase::Silent { before };
            }
            self.flow.no_feedback(self.rtt, self.rate);
        }
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.flow.poll_decision()
    }

    fn output(&self) -> Output {
        let target = self.flow.rate(self.encoder);
        let padding = if self.now() < self.padding_until { self.flow.rate(self.rate) } else { Rate::ip(0) };
        // Bytes of a silence are in flight for all that is known, and would let nothing out that ends it.
        let is_silent = matches!(self.phase, Phase::Silent { .. } | Phase::Resume { .. });
        let window = self.rtt.filter(|_| !is_silent).map(|rtt| {
            // Beside others their queue is a part of the round trip.
            let path = if self.phase == Phase::Beside { rtt } else { self.min_rtt.min(rtt) };
            let seconds = self.config.window * (self.control_time(path) + self.target());
            Bytes((self.rate * seconds + 4.0 * self.flow.full_size()).min(1e15) as u64)
        });
        let usual = if self.marks.steer(self.now()) { STEERED } else { self.config.pacing };
        let pacing = self.flow.rate(self.rate * self.phase.pacing(usual));
        self.losses.hold(self.flow.now(), Output { pacing, window, padding, ..Output::rate(target) })
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.number("rate", "bit/s", self.rate * 8.0);
        visitor.number("queueing delay", "s", self.seen.queue);
        visitor.number("delay to keep", "s", self.target());
        visitor.number("loss fraction", "", self.losses.short_share());
        self.rtt.into_iter().for_each(|rtt| visitor.number("round-trip time", "s", rtt));
        visitor.state("phase", self.phase.name());
        visitor.state("losses", self.losses.cause.name());
    }

    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}
