//! WebRTC's Google congestion control as `str0m` 0.25 has it: its estimator, unmodified, with its target, its pacing factor and its probes.
//!
//! The host's pacer stands in the place of str0m's, which shows in two ways. A probe begins with the host's next frame: media and padding in
//! full packets leave at the probe's rate from there on, where str0m begins at once and pads by 240 bytes. And sizes are those of IP packets,
//! where str0m counts payloads, so that its rates are those of IP packets too. Feedback is the host's: RFC 8888 where str0m has TWCC.

#[macro_use]
pub(crate) mod names;

use std::collections::VecDeque;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lastmile::control::{
    Controller, Decision, Fate, Feedback, Flow, Information, News, Output, PacketClass, RateController, Sent,
    Setting, Signal,
};
use lastmile::options::Options;
use lastmile::telemetry::Visitor;
use lastmile::time::{Rx, Span, Time};
use lastmile::units::Rate;

use crate::bwe_::{Bwe, ProbeClusterState};
use names::Bitrate;
use names::rtp_::TwccSendRecord;

/// str0m's `PACING_FACTOR`.
const PACING: f64 = 1.1;
/// str0m's `PADDING_TARGET`: media and padding make at least this.
const PADDING_BPS: f64 = 50_000.0;
/// Records that are kept.
const MAX_RECORDS: usize = 4096;
/// A probe that found no packets for so long is over, as its estimator has it.
const STALE: Duration = Duration::from_secs(5);
/// Two packets are apart as a rate would have them if the gap is at most so much longer.
const APART: f64 = 1.25;
/// Calls in a row for what is due at once: probes that wait for their turn.
const TURNS: usize = 16;

lastmile::options! {
    /// GoogCC's parameters: the rest are str0m's constants.
    pub struct GoogccConfig {
        /// The rate that it probes for where neither user nor sources name one
        desired: Rate [Rate::ip(10_000)..=Rate::ip(10_000_000_000)] = Rate::ip(100_000_000), "our own: str0m's users name one";
    }
}

/// Its place in the registry.
pub(crate) const ENTRY: Controller = Controller {
    name: "googcc",
    about: "GoogCC, WebRTC's: str0m's estimator by delay trends, losses and probes",
    paper: "libWebRTC's goog_cc as str0m 0.25.0 has it: its src/bwe, with its pacing factor of 1.1",
    classifier: None,
    needs: Information::Times,
    below: "keeps its first rate",
    options: GoogccConfig::OPTIONS,
    make: |given, setting| Ok(Box::new(Googcc::new(GoogccConfig::read(given)?, setting))),
};

/// All controllers' time zero: str0m's times are the clock's, of which only differences count.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

fn instant(nanos: u64) -> Instant {
    *EPOCH + Duration::from_nanos(nanos)
}

fn of(rate: Rate) -> Bitrate {
    Bitrate::bps(rate.bits_per_second())
}

struct Googcc {
    config: GoogccConfig,
    setting: Setting,
    flow: Flow,
    bwe: Mutex<Bwe>,
    records: VecDeque<TwccSendRecord>,
    /// Probes that run or wait, each with the time when it was asked for.
    probes: VecDeque<(Instant, ProbeClusterState)>,
    /// The first of them has its first packet.
    probing: bool,
    /// Departure and size of the last packet.
    last: Option<(Time, u64)>,
    /// When a frame was last told of, and the usual time between two.
    framed: Option<Time>,
    backlog: u64,
    frame: Option<Span>,
    /// In bit/s: what the encoder is told, and what the pacer goes by.
    target: f64,
    estimate: f64,
    overuses: bool,
    rtt: Option<f64>,
    due: Option<Time>,
}

impl std::fmt::Debug for Googcc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Googcc").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Googcc {
    fn new(config: GoogccConfig, setting: &Setting) -> Googcc {
        // str0m's own default, as WebRTC's.
        let start = setting.start.unwrap_or(Rate::ip(300_000));
        let start = if start > setting.max { setting.max } else { start };
        let mut bwe = Bwe::new(of(start));
        let desired = if setting.max < config.desired { setting.max } else { config.desired };
        bwe.set_bitrate(Bitrate::ZERO, of(desired));
        let target = start.bits_per_second() as f64;
        Googcc {
            config,
            setting: *setting,
            flow: Flow::new(setting),
            bwe: Mutex::new(bwe),
            records: VecDeque::new(),
            probes: VecDeque::new(),
            probing: false,
            last: None,
            framed: None,
            backlog: 0,
            frame: None,
            target,
            estimate: target,
            overuses: false,
            rtt: None,
            due: None,
        }
    }

    fn bwe(&mut self) -> &mut Bwe {
        self.bwe.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what is due, as str0m's session does.
    fn turn(&mut self) {
        let now = instant(self.flow.now().as_nanos());
        for _ in 0..TURNS {
            let bwe = self.bwe();
            if let Some(config) = bwe.handle_timeout(now, true)
                && bwe.start_probe(config, now)
            {
                self.probes.push_back((now, ProbeClusterState::new(config)));
            }
            if self.bwe().poll_timeout().0.is_none_or(|at| at > now) {
                break;
            }
        }
        while self.probes.front().is_some_and(|(asked, probe)| probe.is_complete(now) || now > *asked + STALE)
        {
            let Some((_, probe)) = self.probes.pop_front() else { break };
            self.probing = false;
            self.bwe().end_probe(now, probe.config().cluster());
        }
        let bwe = self.bwe();
        let (told, estimate, overuses) = (bwe.poll_estimate(), bwe.last_estimate(), bwe.is_overusing());
        let due = bwe.poll_timeout().0.map(|at| at.saturating_duration_since(now));
        self.overuses = overuses;
        self.target = told.map_or(self.target, |rate| rate.as_f64());
        self.estimate = estimate.map_or(self.estimate, |rate| rate.as_f64());
        let wait = due.map(|due| Span::from_secs_f64(due.as_secs_f64().clamp(0.001, 86_400.0)));
        self.due = wait.map(|wait| self.flow.now() + wait);
    }

    /// The rate of the probe that is to be sent, in bit/s.
    fn probe_rate(&self) -> Option<f64> {
        self.probes.front().map(|(_, probe)| probe.config().target_bitrate().as_f64())
    }

    /// A packet leaves: the probe that it is part of. A probe's first packet is one that follows another as its rate would have it, since those
    /// before the host's next frame are paced already.
    fn part_of(&mut self, sent: &Sent) -> bool {
        let Some(rate) = self.probe_rate() else { return false };
        let follows = self
            .last
            .is_some_and(|(at, size)| (sent.at - at).as_secs_f64() <= APART * size as f64 * 8.0 / rate);
        self.probing |= follows;
        self.probing
    }
}

impl RateController for Googcc {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.flow.on_sent(now, sent);
        self.flow.expect_feedback(self.rtt, self.target / 8.0);
        let (at, size) = (instant(sent.at.as_nanos()), sent.size.0.min(65_535));
        let bytes = || names::DataSize::bytes(size as i64);
        let is_part = self.part_of(sent);
        let cluster = match self.probes.front_mut().filter(|_| is_part) {
            None => None,
            Some((_, probe)) => {
                probe.record_packet(at, bytes());
                Some(probe.config().cluster())
            }
        };
        self.records.push_back(TwccSendRecord {
            seq: sent.id.into(),
            cluster,
            local_send_time: at,
            size: size as u16,
            local_recv_time: None,
            remote_recv_time: None,
        });
        if self.records.len() > MAX_RECORDS {
            self.records.pop_front();
        }
        self.last = Some((sent.at, size));
        self.backlog = self.backlog.saturating_sub(sent.size.0);
        let is_padding = sent.class == PacketClass::Padding;
        self.bwe().on_media_sent(bytes(), is_padding, at);
        self.turn();
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.flow.on_feedback(now);
        self.rtt = self.flow.round_trip(feedback).map(|rtt| rtt.as_secs_f64()).or(self.rtt);
        let heard = instant(self.flow.now().as_nanos());
        let arrived = |at: Time<Rx>| instant(at.as_nanos());
        let mut told = Vec::with_capacity(feedback.reports.len());
        let mut any = false;
        for report in feedback.reports.iter() {
            if self.flow.on_report(&report.sent) == News::NeverSent {
                continue;
            }
            let at = match report.fate {
                Fate::Arrived { at: Some(at), .. } => Some(arrived(at)),
                Fate::Lost { .. } => None,
                _ => continue,
            };
            any |= at.is_some();
            let place = self.records.binary_search_by(|record| record.seq.cmp(&report.sent.id.into()));
            let Some(record) = place.ok().and_then(|place| self.records.get(place)) else { continue };
            // A clock that went back.
            if record.local_send_time <= heard {
                told.push(TwccSendRecord { local_recv_time: Some(heard), remote_recv_time: at, ..*record });
            }
        }
        self.bwe().update(told.iter(), heard);
        if any {
            self.flow.restart(self.rtt, self.target / 8.0);
        }
        self.turn();
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        self.flow.on_signal(now, signal);
        match signal {
            Signal::Demand { max, .. } => {
                let most = if self.setting.max < self.config.desired {
                    self.setting.max
                } else {
                    self.config.desired
                };
                let desired = of(if max < most { max } else { most });
                self.bwe().set_bitrate(Bitrate::ZERO, desired);
            }
            Signal::Backlog { bytes } => {
                if bytes.0 > self.backlog {
                    let since = self.framed.map(|at| self.flow.now() - at).filter(|gap| *gap > Span::ZERO);
                    self.frame = since.or(self.frame);
                    self.framed = Some(self.flow.now());
                }
                self.backlog = bytes.0;
            }
            _ => {}
        }
        self.turn();
    }

    fn poll_timeout(&self) -> Option<Time> {
        [self.flow.poll_timeout(), self.due].into_iter().flatten().min()
    }

    fn on_timeout(&mut self, now: Time) {
        if self.flow.is_overdue(now) {
            self.flow.no_feedback(self.rtt, self.target / 8.0);
        }
        self.turn();
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.flow.poll_decision()
    }

    fn output(&self) -> Output {
        let usual = if self.overuses { 0.0 } else { PADDING_BPS.min(self.estimate) };
        let (mut pacing, mut padding) = ((PACING * self.estimate).max(usual), usual);
        if let Some(rate) = self.probe_rate() {
            // The rest of the probe within a frame.
            let room = self.probes.front().zip(self.frame).map_or(rate, |((_, probe), frame)| {
                let whole = probe.config().target_bytes().as_bytes_f64();
                let packets = (probe.config().min_packet_count() + 1) as f64 * self.flow.full_size();
                8.0 * whole.max(packets) / frame.as_secs_f64()
            });
            (pacing, padding) = (rate, rate.min(room).max(usual));
        }
        let rate = |bits: f64| self.flow.rate(bits / 8.0);
        let padding = if padding > 0.0 { rate(padding) } else { Rate::ip(0) };
        Output { pacing: rate(pacing), padding, ..Output::rate(rate(self.target)) }
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.number("rate", "bit/s", self.target);
        visitor.number("estimate", "bit/s", self.estimate);
        visitor.number("probe", "bit/s", self.probe_rate().unwrap_or(0.0));
    }

    /// str0m's estimator cannot be copied: one that begins anew, at this rate.
    fn clone_box(&self) -> Box<dyn RateController> {
        let start = Some(self.flow.rate(self.target / 8.0));
        Box::new(Googcc::new(self.config.clone(), &Setting { start, ..self.setting }))
    }
}
