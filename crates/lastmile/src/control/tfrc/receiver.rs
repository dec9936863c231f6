//! The receiver of RFC 5348 (section 6), with a classifier where losses are judged at the receiver, as in LDA.

use super::equation::Equation;
use super::history::{LossHistory, Now, Run};
use super::options::{Preset, TfrcConfig};
use crate::classify::{self, Arrival, Discriminator, Loss, LossClass, LossCounts, Verdicts};
use crate::control::receive_rate::ReceiveRate;
use crate::control::{Decision, Decisions, LossTruth, Summary};
use crate::node::Ecn;
use crate::time::{Span, Time, Tx};
use crate::units::Bytes;

/// Packets of one gap that are judged one by one; those of a longer one, an outage, are judged at once.
const JUDGED: u64 = 3_000;

/// Feedback is no closer together than that.
const LEAST: Span = Span::from_millis(1);

/// A data packet, as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverPacket {
    /// Its number: unwrapped, in the order of sending.
    pub number: u64,
    /// Its size at the IP layer.
    pub size: Bytes,
    /// The sender's stamp in it.
    pub sent: Time<Tx>,
    /// The sender's round-trip time in it, once it has one.
    pub rtt: Option<Span>,
    /// The number of the sender's round in it, unwrapped: the preset `ns-2` goes by it.
    pub round: u64,
    /// The ECN codepoint as it arrived.
    pub ecn: Ecn,
}

/// Content of a feedback packet (RFC 5348, section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverFeedback {
    /// The newest packet's number and stamp: `t_recvdata`.
    pub newest: (u64, Time<Tx>),
    /// Time since the newest packet arrived: `t_delay`.
    pub delay: Span,
    /// X_recv, as bytes and the time in which they came, and p.
    pub summary: Summary,
}

/// Keeps the loss history and says when to send feedback: once in a round-trip time or in a given time, and at once when the
/// loss event rate rises.
///
/// ```
/// use lastmile::{control::tfrc::*, node::Ecn, time::{Span, Time}, units::Bytes};
/// let mut receiver = Receiver::new(&TfrcConfig::default(), None, None);
/// let rtt = Some(Span::from_millis(100));
/// let sent = Time::from_nanos(9);
/// let packet = ReceiverPacket { number: 1, size: Bytes(1000), sent, rtt, round: 0, ecn: Ecn::NotEct };
/// receiver.on_packet(Time::ZERO, &packet, None);
/// let feedback = receiver.poll_feedback(Time::ZERO).unwrap(); // the first packet is answered at once
/// assert_eq!((feedback.newest.0, feedback.summary.loss_event_rate), (1, 0.0));
/// assert_eq!(receiver.poll_timeout(), Some(Time::ZERO + Span::from_millis(100)));
/// ```
#[derive(Clone, Debug)]
pub struct Receiver {
    /// One without a loss.
    fresh: LossHistory,
    history: LossHistory,
    receive: ReceiveRate,
    discriminator: Option<Discriminator>,
    /// Time between feedback packets; `None` for once in a round-trip time.
    every: Option<Span>,
    /// R_m.
    rtt: Option<Span>,
    newest: Option<(ReceiverPacket, Time)>,
    /// The mean packet size in bytes, for the first loss interval.
    size: f64,
    max_receive_rate: f64,
    /// p as it was reported last.
    reported: f64,
    feedback_at: Option<Time>,
    /// A round has one loss event at most.
    rounds: bool,
    /// Feedback waits for the packet that comes a round-trip time after the last one, and at most half as long again.
    patient: bool,
    last_feedback: Option<Time>,
    /// Data packets came since the last feedback; feedback was due and there were none.
    data_since_feedback: bool,
    waiting: bool,
    decisions: Decisions,
}

impl Receiver {
    /// With a classifier to judge losses before they count, and feedback every so often, or once in a round-trip time.
    pub fn new(config: &TfrcConfig, discriminator: Option<Discriminator>, every: Option<Span>) -> Receiver {
        Receiver {
            fresh: config.parameters().history(),
            history: config.parameters().history(),
            receive: ReceiveRate::default(),
            discriminator,
            every,
            rtt: None,
            newest: None,
            size: 0.0,
            max_receive_rate: 0.0,
            reported: 0.0,
            feedback_at: None,
            rounds: config.preset == Preset::Ns2,
            patient: config.preset == Preset::Ns2 && every.is_none(),
            last_feedback: None,
            data_since_feedback: false,
            waiting: true,
            decisions: Decisions::default(),
        }
    }

    /// The sender starts anew, on a path that carries more: losses of the old one say nothing of it.
    pub fn forget(&mut self) {
        self.history = self.fresh.clone();
        self.reported = 0.0;
    }

    /// Counts losses as `other` does from now on: its history begins anew, with its classifier.
    pub fn follow(&mut self, other: Receiver) {
        (self.fresh, self.discriminator, self.rounds) = (other.fresh, other.discriminator, other.rounds);
        self.forget();
    }

    /// A data packet arrived; `truth` is the simulator's side channel [RFC 5348, 6.1].
    pub fn on_packet(&mut self, now: Time, packet: &ReceiverPacket, truth: Option<&dyn LossTruth>) {
        let ReceiverPacket { number, size, sent, rtt, ecn, .. } = *packet;
        let unknown = self.rtt.is_none();
        self.rtt = rtt.filter(|rtt| *rtt > Span::ZERO).or(self.rtt);
        self.receive.add(size.0);
        let bytes = size.0.clamp(1, 65_535) as f64;
        self.size += if self.size > 0.0 { (bytes - self.size) / 32.0 } else { bytes };
        let before = self.newest;
        let later = before.is_none_or(|(newest, _)| number > newest.number);
        if later {
            if let Some(discriminator) = &mut self.discriminator {
                let at = Some(now.as_receiver());
                discriminator.on_arrival(&Arrival { seq: number, size, sent, at, rtt: None });
            }
            self.newest = Some((*packet, now));
        }
        let rtt = self.rtt.unwrap_or(Span::ZERO);
        let (segment, seconds) = (self.size, rtt.as_secs_f64().max(1e-6));
        let target = self.max_receive_rate.max(0.5 * segment / seconds);
        // [RFC 5348, 6.3.1]
        let first = || 1.0 / Equation::rfc(segment, seconds).loss_event_rate(target);
        let round = Now { rtt, first: &first, round: self.rounds.then_some(packet.round) };
        if let Some((newest, then)) = before.filter(|_| later) {
            let missing = number - newest.number - 1;
            if missing > 0 {
                self.missing(newest.number, missing, (then, now), truth, round);
            }
        }
        let event = self.history.arrived(number, now.as_nanos(), ecn == Ecn::Ce, round);
        self.began(event);
        self.data_since_feedback = true;
        let rose = self.history.loss_event_rate() > self.reported;
        let late = self.patient && self.last_feedback.is_some_and(|given| now >= given + rtt.max(LEAST));
        // [6.3] Every packet is answered until one brings a round-trip time.
        if self.waiting || unknown || rose || late {
            self.feedback_at = Some(now);
        }
    }

    /// The packets behind `before` did not arrive between these times.
    fn missing(
        &mut self,
        before: u64,
        missing: u64,
        times: (Time, Time),
        truth: Option<&dyn LossTruth>,
        round: Now<'_>,
    ) {
        let span = (times.1 - times.0).max(Span::ZERO).as_nanos().unsigned_abs();
        // [RFC 5348, 5.2] T_loss, interpolated
        let time = |place: u64| {
            times.0.as_nanos() + (u128::from(span) * u128::from(place) / u128::from(missing + 1)) as u64
        };
        let packets = u32::try_from(missing).unwrap_or(u32::MAX);
        let step = if missing > JUDGED { missing } else { 1 };
        let mut run: Option<Run> = None;
        let mut next = 1;
        while next <= missing {
            let (place, seq, last) = (next, before + next, next + (step - 1));
            next += step;
            let cause = truth.and_then(|truth| truth.cause(seq));
            let loss = Loss { seq, run: packets, bytes: None, truth: cause };
            let mut class = LossClass::Congestion;
            if let Some(discriminator) = &mut self.discriminator {
                class = discriminator.classify(&loss);
                let by = discriminator.judge();
                let packets = if step > 1 { packets } else { 1 };
                self.decisions.push(classify::Decision::LossJudged { id: seq, packets, class, by });
                truth.into_iter().for_each(|truth| truth.judged(seq, class));
            }
            match (class, &mut run) {
                (LossClass::Congestion, Some(run)) => (run.len, run.times.1) = (run.len + step, time(last)),
                (LossClass::Congestion, None) => {
                    run = Some(Run { first: seq, len: step, times: (time(place), time(last)) });
                }
                (LossClass::Wireless, _) => {
                    let event = run.take().and_then(|run| self.history.lost(run, round));
                    self.began(event);
                }
            }
        }
        let event = run.and_then(|run| self.history.lost(run, round));
        self.began(event);
    }

    /// A loss event began with the packet of that number.
    fn began(&mut self, event: Option<u64>) {
        if let Some(id) = event {
            let loss_event_rate = self.history.loss_event_rate();
            self.decisions.push(Decision::LossEvent { id, loss_event_rate });
        }
    }

    /// When to ask for feedback.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.feedback_at
    }

    /// The feedback that is due, if any [RFC 5348, 6.2].
    pub fn poll_feedback(&mut self, now: Time) -> Option<ReceiverFeedback> {
        self.feedback_at.filter(|&due| due <= now)?;
        let (newest, arrived) = self.newest?;
        let rtt = self.rtt.unwrap_or(Span::ZERO);
        let round = if self.patient { self.rtt.map(|rtt| rtt * 3 / 2) } else { self.rtt };
        self.feedback_at = Some(now + self.every.or(round).unwrap_or(Span::from_secs(1)).max(LEAST));
        self.last_feedback = Some(now);
        self.waiting = !core::mem::take(&mut self.data_since_feedback);
        if self.waiting {
            return None;
        }
        self.reported = self.history.loss_event_rate();
        let (bytes, span) = self.receive.feedback(now.as_nanos(), rtt).unwrap_or((0, 0));
        if span > 0 {
            self.max_receive_rate = self.max_receive_rate.max(bytes as f64 * 1e9 / span as f64);
        }
        let over = Span::from_nanos(i64::try_from(span).unwrap_or(i64::MAX));
        let summary = Summary { received: Bytes(bytes), over, loss_event_rate: self.reported };
        Some(ReceiverFeedback {
            newest: (newest.number, newest.sent),
            delay: (now - arrived).max(Span::ZERO),
            summary,
        })
    }

    /// Takes the resolution of this host's stamps; a classifier may step aside.
    pub fn suit(&mut self, resolution: Option<Span>) {
        if let Some(discriminator) = &mut self.discriminator {
            discriminator.suit(resolution).into_iter().for_each(|change| self.decisions.push(change));
        }
    }

    /// Takes the next decision: losses judged, loss events, fall-backs; `None` if there is none.
    pub fn poll_decision(&mut self) -> Option<Decision> {
        self.decisions.pop()
    }

    /// Losses judged so far, by verdict, and their classifier; `None` without one.
    pub fn verdicts(&self) -> Option<Verdicts> {
        Some(self.discriminator.as_ref()?.verdicts())
    }

    /// p.
    pub fn loss_event_rate(&self) -> f64 {
        self.history.loss_event_rate()
    }

    /// Losses judged so far, by verdict and true cause; `None` without a classifier.
    pub fn counts(&self) -> Option<LossCounts> {
        Some(self.discriminator.as_ref()?.counts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet every millisecond with a round-trip time of 40 ms; none of `outage` arrives.
    fn over(outage: core::ops::Range<u64>, judge: Option<&str>) -> (f64, Vec<Decision>) {
        let judge = judge.map(|name| Discriminator::new(&name.parse().unwrap()).unwrap());
        let mut receiver = Receiver::new(&TfrcConfig::default(), judge, None);
        for number in (0..outage.start).chain(outage.end..outage.end + 5) {
            let now = Time::from_nanos((number + 20) * 1_000_000);
            let (sent, rtt) = (Time::from_nanos(number * 1_000_000), Some(Span::from_millis(40)));
            let (size, ecn) = (Bytes(1000), Ecn::NotEct);
            let packet = ReceiverPacket { number, size, sent, rtt, round: 0, ecn };
            receiver.on_packet(now, &packet, None);
            receiver.poll_feedback(now);
        }
        (receiver.loss_event_rate(), core::iter::from_fn(|| receiver.poll_decision()).collect())
    }

    /// Packets every 30 ms with a round-trip time of 100 ms, until 900 ms: when feedback is given.
    fn feedback_at(preset: Preset) -> Vec<u64> {
        let config = TfrcConfig { preset, ..TfrcConfig::default() };
        let mut receiver = Receiver::new(&config, None, None);
        let given = |ms: u64| {
            let now = Time::from_nanos(ms * 1_000_000);
            if ms.is_multiple_of(30) && ms <= 900 {
                let (sent, rtt) = (Time::from_nanos(ms * 1_000_000), Some(Span::from_millis(100)));
                let (number, size, ecn) = (ms / 30, Bytes(1000), Ecn::NotEct);
                let packet = ReceiverPacket { number, size, sent, rtt, round: 0, ecn };
                receiver.on_packet(now, &packet, None);
            }
            receiver.poll_feedback(now).map(|_| ms)
        };
        (0..1_300).filter_map(given).collect()
    }

    #[test]
    fn feedback_comes_each_round_trip_and_in_ns_2_with_a_packet() {
        assert_eq!(feedback_at(Preset::Rfc), [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
        assert_eq!(feedback_at(Preset::Ns2), [0, 120, 240, 360, 480, 600, 720, 840, 990]);
    }

    /// A loss event begins with each round-trip time of an outage: intervals of 41 packets, and the last of up to 45.
    #[test]
    fn an_outage_of_any_length_is_a_loss() {
        for packets in [2_900, 3_001, 20_000, 1 << 40] {
            let (p, _) = over(1_000..1_000 + packets, None);
            assert!((41.0..42.0).contains(&(1.0 / p + 1e-9)), "{packets}: {p}");
        }
    }

    /// One verdict for all packets, or for each of them: both are told alike.
    #[test]
    fn an_outage_is_judged() {
        for packets in [2_900, 3_001, 20_000_u32] {
            let (p, decisions) = over(1_000..1_000 + u64::from(packets), Some("spike"));
            let class = LossClass::Wireless;
            let judged = classify::Decision::LossJudged { id: 1_000, packets, class, by: "spike" };
            assert_eq!(decisions, [judged.into()]);
            assert_eq!(p, 0.0);
        }
    }
}
