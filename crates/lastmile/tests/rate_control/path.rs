//! A path: a queue, a link, a delay, losses behind the link; and a flow over it whose controller is told what arrived.

use std::collections::VecDeque;

use lastmile::classify::{Discriminator, LossClass};
use lastmile::control::tfrc::{Receiver, ReceiverFeedback, ReceiverPacket, TfrcConfig};
use lastmile::control::*;
use lastmile::node::Ecn;
use lastmile::options::Options;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) rate: Rate,
    /// The rate from then on, after so many seconds.
    pub(crate) then: Option<(i64, Rate)>,
    /// Each way.
    pub(crate) delay: Span,
    /// Packets.
    pub(crate) queue: u64,
    /// ECT(1) is marked that finds so many packets before it.
    pub(crate) mark: u64,
    pub(crate) loss: f64,
    pub(crate) size: Bytes,
    pub(crate) feedback: Span,
    pub(crate) seconds: i64,
    pub(crate) seed: u64,
}

/// Results of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Came {
    /// Mean rates after the first tenth, in kbit/s: sent, and arrived.
    pub(crate) sent: f64,
    pub(crate) arrived: f64,
    /// Packets lost by the queue.
    pub(crate) overflowed: u64,
    /// Of packets of full size behind the queue.
    pub(crate) longest: Span,
}

/// Decisions and wishes of a flow's controller, as it went on.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) decisions: Vec<(Time, Decision)>,
    /// The sizes that it asked for.
    pub(crate) sizes: Vec<(Time, Bytes)>,
    /// The target, each second, in kbit/s.
    pub(crate) targets: Vec<f64>,
}

/// The end at which losses are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    Sender,
    Receiver,
}

/// True causes of lost packets, by number.
#[derive(Debug, Default)]
struct Causes(VecDeque<(u64, LossClass)>);

impl LossTruth for Causes {
    fn cause(&self, id: u64) -> Option<LossClass> {
        let place = self.0.binary_search_by_key(&id, |cause| cause.0).ok()?;
        Some(self.0[place].1)
    }
}

/// The lies of a receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lie {
    /// The time that it claims beyond that for which it held its feedback.
    pub(crate) hold: Span,
    /// The rate of its clock, as it says, beside the true one.
    pub(crate) clock: f64,
    /// By how much more came, and in how much of the time, where it tells of sums.
    pub(crate) bytes: f64,
    pub(crate) over: f64,
    /// The time between its reports, where that is not an honest one's.
    pub(crate) every: Option<Span>,
    /// It says of packets that are on their way that they came.
    pub(crate) early: bool,
    /// It keeps marks to itself.
    pub(crate) hides: bool,
}

impl Lie {
    pub(crate) const NONE: Lie =
        Lie { hold: Span::ZERO, clock: 1.0, bytes: 1.0, over: 1.0, every: None, early: false, hides: false };
}

/// Another lie than one, by a random number.
pub(crate) type Other = fn(Lie, u32) -> Lie;

/// A receiver that may lie, and may try which lies pay.
#[derive(Debug)]
pub(crate) struct Liar {
    pub(crate) lie: Lie,
    /// It tries another lie every so often, one of these, and keeps it if more came than before.
    pub(crate) tries: Option<(Span, Other)>,
    random: Pcg64Mcg,
    /// The true time, and what it says instead.
    clocks: (Time, Time),
    /// Since when it counts, and what came; the best lie so far, and what came by it.
    counted: (Time, f64),
    best: (Lie, f64),
}

impl Default for Liar {
    fn default() -> Liar {
        Liar::new(Lie::NONE)
    }
}

impl Liar {
    pub(crate) fn new(lie: Lie) -> Liar {
        let (random, zero) = (Pcg64Mcg::new(11), Time::ZERO);
        Liar { lie, tries: None, random, clocks: (zero, zero), counted: (zero, 0.0), best: (lie, 0.0) }
    }

    fn clock(&mut self, at: Time) -> Time {
        let (before, said) = self.clocks;
        let passed = (at - before).max(Span::ZERO).as_secs_f64() * self.lie.clock;
        self.clocks = (before.max(at), said + Span::from_secs_f64(passed));
        self.clocks.1
    }

    fn sums(&self, honest: ReceiverFeedback) -> ReceiverFeedback {
        let Summary { received, over, loss_event_rate } = honest.summary;
        let received = Bytes((received.0 as f64 * self.lie.bytes) as u64);
        let over = Span::from_secs_f64(over.as_secs_f64() * self.lie.over);
        ReceiverFeedback { summary: Summary { received, over, loss_event_rate }, ..honest }
    }

    fn came(&mut self, at: Time, size: Bytes) {
        self.counted.1 += size.bits() as f64;
        let Some((_, other)) = self.tries.filter(|(every, _)| at - self.counted.0 >= *every) else {
            return;
        };
        let rate = self.counted.1 / (at - self.counted.0).as_secs_f64();
        // The worth of a good lie is forgotten in time, or luck would have the last word.
        self.best.1 *= 0.95;
        if rate > self.best.1 {
            self.best = (self.lie, rate);
        }
        self.lie = other(self.best.0, self.random.next_u32());
        self.counted = (at, 0.0);
    }
}

fn due<T>(queue: &mut VecDeque<T>, is_due: impl FnOnce(&T) -> bool) -> Option<T> {
    if queue.front().is_some_and(is_due) { queue.pop_front() } else { None }
}

impl Path {
    pub(crate) fn run(&self, name: &str, form: Form) -> Came {
        self.watch(name, form).0
    }

    pub(crate) fn watch(&self, name: &str, form: Form) -> (Came, Log) {
        self.lied_to(name, form, &mut Liar::default())
    }

    /// The same where the receiver lies.
    pub(crate) fn lied_to(&self, name: &str, form: Form, liar: &mut Liar) -> (Came, Log) {
        let composition: Composition = name.parse().unwrap();
        let setting = Setting { packet_size: self.size, ..Setting::default() };
        let own = Composition {
            classifier: composition.classifier.clone().filter(|_| form == Form::Sender),
            ..composition.clone()
        };
        let mut controller = build(&own, &setting).unwrap();
        let judge = composition.classifier.as_ref().map(|choice| Discriminator::new(choice).unwrap());
        let config = TfrcConfig::read(&composition.controller.options).unwrap_or_default();
        let mut receiver = Receiver::new(&config, judge.filter(|_| form == Form::Receiver), None);
        let mut random = Pcg64Mcg::new(u128::from(self.seed) * 2 + 1);
        let start = Time::ZERO + Span::from_millis(1);
        let (mut now, mut next_send, mut next_feedback) = (start, start, start + self.feedback);
        let (mut free, mut id, mut told, mut came) = (start, 0_u64, 0_u64, Came::default());
        let (mut causes, mut on_way, mut back) = (Causes::default(), VecDeque::new(), VecDeque::new());
        let (mut log, mut rounds) = (Vec::new(), Vec::new());
        let (mut watched, mut size, mut back_to_back, mut trains) = (Log::default(), self.size, 0_u16, 0_u32);
        let (mut arrived, mut smoothed) = (Vec::<(Sent, Time, bool)>::new(), None::<Span>);
        let end = start + Span::from_secs(self.seconds);
        let counted = start + Span::from_secs(self.seconds) / 10;
        while now < end {
            let heads = [
                on_way.front().map(|packet: &(Sent, Time, bool)| packet.1),
                back.front().map(|feedback: &(Time, Vec<Report>, Time, Option<ReceiverFeedback>)| feedback.0),
                controller.poll_timeout(),
                receiver.poll_timeout().filter(|_| form == Form::Receiver),
                Some(next_feedback).filter(|_| form == Form::Sender),
            ];
            now = now.max(heads.into_iter().flatten().min().unwrap_or(end).min(next_send));
            while let Some((sent, at, marked)) = due(&mut on_way, |packet| packet.1 <= now) {
                arrived.push((sent, at, marked));
                if at >= counted {
                    came.arrived += sent.size.bits() as f64;
                }
                liar.came(at, sent.size);
                if form == Form::Receiver {
                    let (number, size, stamp) = (sent.id, sent.size, sent.at.as_sender());
                    let (rtt, round) = (smoothed, rounds[sent.id as usize]);
                    let packet = ReceiverPacket { number, size, sent: stamp, rtt, round, ecn: Ecn::NotEct };
                    receiver.on_packet(at, &packet, Some(&causes));
                }
            }
            let made = match form {
                Form::Receiver => receiver.poll_feedback(now).map(Some),
                Form::Sender => (now >= next_feedback).then_some(None),
            };
            if let Some(made) = made {
                next_feedback = now + liar.lie.every.unwrap_or(self.feedback);
                let mut reports = Vec::new();
                if liar.lie.early {
                    // It knows which of them will come, as no receiver does.
                    for (sent, at, marked) in on_way.drain(..) {
                        liar.came(now, sent.size);
                        came.arrived += if at >= counted { sent.size.bits() as f64 } else { 0.0 };
                        arrived.push((sent, now, marked));
                    }
                }
                for (sent, at, marked) in arrived.drain(..) {
                    if form == Form::Sender {
                        reports.extend(
                            (told..sent.id)
                                .map(|id| Report { sent: log[id as usize], fate: Fate::lost(LostBy::Gap) }),
                        );
                    }
                    let ecn = if marked && !liar.lie.hides { Ecn::Ce } else { sent.ecn };
                    let at = Some(liar.clock(at).as_receiver());
                    reports.push(Report { sent, fate: Fate::Arrived { at, ecn } });
                    told = sent.id + 1;
                }
                if form == Form::Receiver {
                    reports.drain(..reports.len().saturating_sub(1));
                }
                back.push_back((
                    now + self.delay,
                    reports,
                    liar.clock(now),
                    made.map(|made| liar.sums(made)),
                ));
            }
            while let Some((_, mut reports, sent, summary)) = due(&mut back, |feedback| feedback.0 <= now) {
                let hold = match reports.last() {
                    Some(Report { fate: Fate::Arrived { at: Some(at), .. }, .. }) => sent.as_receiver() - *at,
                    _ => Span::ZERO,
                };
                let mut feedback = Feedback::exact(&mut reports, Some(sent.as_receiver()));
                feedback.hold = hold + liar.lie.hold;
                feedback.truth = Some(&causes);
                feedback.receiver = summary.map(|feedback| feedback.summary);
                if let Some(rtt) = feedback.rtt(now) {
                    smoothed = Some(smoothed.map_or(rtt, |smoothed| (smoothed * 9 + rtt) / 10));
                }
                controller.on_feedback(now, &mut feedback);
                // A higher rate shortens the wait that is under way.
                let wait = controller.output().pacing.time_for(size);
                next_send =
                    log.last().map_or(next_send, |last: &Sent| next_send.min(last.at + wait)).max(now);
            }
            if controller.poll_timeout().is_some_and(|at| at <= now) {
                controller.on_timeout(now);
            }
            watched
                .decisions
                .extend(core::iter::from_fn(|| controller.poll_decision()).map(|what| (now, what)));
            if watched.targets.len() < ((now - start).as_secs_f64() as usize) {
                watched.targets.push(controller.output().target.bits_per_second() as f64 / 1e3);
            }
            if now >= next_send {
                while let Some(action) = controller.poll_action() {
                    match action {
                        Action::PacketSize(asked) => {
                            watched.sizes.push((now, asked));
                            size = asked;
                        }
                        Action::Probe { packets, .. } => {
                            back_to_back = packets;
                            trains += 1;
                        }
                        _ => {}
                    }
                }
                let class = match back_to_back {
                    0 => PacketClass::Media,
                    left => PacketClass::Probe { train: trains, index: 2 - left, len: 2 },
                };
                back_to_back = back_to_back.saturating_sub(1);
                let ecn = if self.mark < u64::MAX { Ecn::Ect1 } else { Ecn::NotEct };
                let sent = Sent { class, ecn, ..Sent::media(id, size, now) };
                log.push(sent);
                rounds.push(controller.output().round);
                controller.on_sent(now, &sent);
                let rate = self
                    .then
                    .filter(|then| (now - start) >= Span::from_secs(then.0))
                    .map_or(self.rate, |then| then.1);
                let service = rate.time_for(size);
                let waiting = (free - now).max(Span::ZERO).as_nanos() / service.as_nanos();
                if now >= counted {
                    came.sent += size.bits() as f64;
                }
                if waiting as u64 >= self.queue {
                    came.overflowed += 1;
                    causes.0.push_back((id, LossClass::Congestion));
                } else {
                    free = free.max(now) + service;
                    if (random.next_u32() as f64) < self.loss * f64::from(u32::MAX) {
                        causes.0.push_back((id, LossClass::Wireless));
                    } else {
                        on_way.push_back((sent, free + self.delay, waiting as u64 >= self.mark));
                    }
                }
                id += 1;
                if causes.0.len() > 4_000 {
                    causes.0.pop_front();
                }
                came.longest = came.longest.max((free - now).min(Span::from_secs(100)));
                next_send = match back_to_back {
                    1 => now,
                    _ => now + controller.output().pacing.time_for(size).min(Span::from_secs(100)),
                };
            }
        }
        let seconds = self.seconds as f64 * 0.9;
        (Came { sent: came.sent / seconds / 1e3, arrived: came.arrived / seconds / 1e3, ..came }, watched)
    }
}
