//! Streaming: `[[stream]]`, RTP senders and receivers, and what each stream got.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lastmile::control::Composition;
use lastmile::endpoint::any;
use lastmile::endpoint::stream::source::{self, SOURCES, Setting, read_sizes};
use lastmile::endpoint::stream::{
    ControlConfig, Decision, FeedbackInterval, MAX_FRAME_PACKETS, Receiver, ReceiverConfig, Retransmission,
    Sender, SenderConfig, SenderRate, SourceConfig,
};
use lastmile::node::{Datagram, Ecn};
use lastmile::options::OptionError;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile::wire::{RtpPacket, is_rtcp};
use serde::Deserialize;

use super::{Conversation, Ended, Made, Place, Placed, Role, Surroundings, own_port};
use crate::network::meter::udp_payload;
use crate::rng::Stream;
use crate::runs::{RunError, flows};
use crate::scenario::check::{Check, Checked};
use crate::scenario::{CountedFlow, FlowCounts, Scenario, Simulation, TrafficSpec, starts};
use crate::text;

mod outcome;
mod truth;

use truth::Truth;

pub use outcome::StreamOutcome;

/// The first UDP port of receivers (RFC 3551, section 8), of which each has the next but one, and that of senders.
const RECEIVER_PORTS: u16 = 5_004;
const SENDER_PORTS: u16 = 42_000;
/// IP, UDP and RTP headers, and a byte of payload.
const SMALLEST: Bytes = Bytes(61);

/// A `[[stream]]` table as it is read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawStream {
    name: Option<String>,
    from: String,
    to: String,
    #[serde(default, deserialize_with = "text::some_flowing")]
    rate: Option<Rate>,
    control: Option<String>,
    #[serde(default, deserialize_with = "text::optional")]
    min_rate: Option<Rate>,
    #[serde(default, deserialize_with = "text::optional")]
    start_rate: Option<Rate>,
    #[serde(default, deserialize_with = "text::optional")]
    max_rate: Option<Rate>,
    source: Option<String>,
    frames: Option<Frames>,
    frame_rate: Option<f64>,
    #[serde(default, deserialize_with = "text::optional")]
    packet_size: Option<Bytes>,
    #[serde(default)]
    ecn: Ecn,
    #[serde(default, deserialize_with = "text::optional")]
    feedback: Option<FeedbackInterval>,
    #[serde(default)]
    receipt_times: bool,
    #[serde(default, deserialize_with = "text::some_not_negative")]
    retransmit: Option<Span>,
    retransmit_share: Option<f64>,
    #[serde(default)]
    circuit_breakers: bool,
    #[serde(default, deserialize_with = "text::not_negative")]
    start: Span,
    #[serde(default, deserialize_with = "text::not_negative")]
    start_within: Span,
    #[serde(default, deserialize_with = "text::some_not_negative")]
    stop: Option<Span>,
    #[serde(default)]
    realtime: bool,
    #[serde(default)]
    ipv6: bool,
}

/// The sizes of a trace's frames.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a file's name, or a list of frame sizes in bytes")]
enum Frames {
    File(String),
    Sizes(Vec<u32>),
}

/// A `[[stream]]` table, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// The sending host.
    pub from: usize,
    /// The receiving host.
    pub to: usize,
    /// What sets its rate.
    pub rate: SenderRate,
    /// What makes its frames; each run has a seed of its own.
    pub source: SourceConfig,
    /// Frames in a second.
    pub frame_rate: f64,
    /// The largest packet, with its IP header.
    pub packet_size: Bytes,
    /// The ECN codepoint of media packets.
    pub ecn: Ecn,
    /// How often the receiver gives feedback.
    pub feedback: FeedbackInterval,
    /// Whether feedback has receipt times.
    pub receipt_times: bool,
    /// How long lost packets are sent again, and the most of them as a share of the media's bytes.
    pub retransmit: Option<(Span, f64)>,
    /// Whether circuit breakers may end it.
    pub circuit_breakers: bool,
    /// When the first frame is made, at the earliest.
    pub start: Time,
    /// Within this time from then it is made, at random.
    pub start_within: Span,
    /// No frame is made from then on.
    pub stop: Time,
    /// Whether the lab's endpoints ask for real-time priority.
    pub realtime: bool,
    /// Whether its packets are IPv6.
    pub ipv6: bool,
}

impl RawStream {
    /// What sets its rate.
    fn rate(
        &self,
        check: &Check<'_>,
        key: &dyn Fn(&str) -> String,
        packet_size: Bytes,
    ) -> Checked<SenderRate> {
        let limits =
            [("min_rate", self.min_rate), ("start_rate", self.start_rate), ("max_rate", self.max_rate)];
        let Some(control) = &self.control else {
            let without = limits.iter().find(|limit| limit.1.is_some());
            if let Some((limit, _)) = without {
                return check.refuse(&key(limit), "of a stream without `control`, whose `rate` is fixed");
            }
            let missing = || check.blame(&key("rate"), "missing: a fixed rate, or `control` that sets it");
            return Ok(SenderRate::Fixed(self.rate.ok_or_else(missing)?));
        };
        check.ensure(self.rate.is_none(), || {
            (key("rate"), "`control` sets it: give `start_rate`, `min_rate` or `max_rate`, or nothing")
        })?;
        let blame = |error: &dyn core::fmt::Display| check.blame(&key("control"), error.to_string());
        let mut config = ControlConfig::new(control.parse().map_err(|error: OptionError| blame(&error))?);
        config.min = self.min_rate.unwrap_or(config.min);
        config.start = self.start_rate;
        config.max = self.max_rate.unwrap_or(config.max);
        let spelled = |name: &str| format!("{name}_rate");
        let limits = config.setting(packet_size).check();
        limits.map_err(|error| check.blame(&key(&spelled(&error.option)), error.spelled(spelled)))?;
        config.build(packet_size).map_err(|error| blame(&error))?;
        Ok(SenderRate::Controlled(config))
    }
}

impl RawStream {
    /// What makes its frames.
    fn source(
        &self,
        check: &Check<'_>,
        key: &dyn Fn(&str) -> String,
        setting: Setting<'_>,
    ) -> Checked<SourceConfig> {
        let blame = |error: &dyn core::fmt::Display| check.blame(&key("source"), error.to_string());
        let parse = |text: &String| text.parse().map_err(|error: OptionError| blame(&error));
        let mut config =
            SourceConfig { source: self.source.as_ref().map(parse).transpose()?, ..Default::default() };
        let choice = config.choice(self.control.is_some());
        let reads = SOURCES.iter().any(|source| source.name == choice.name && source.needs_sizes);
        check.ensure(reads || self.frames.is_none(), || {
            (key("frames"), format!("`{choice}` reads no file"))
        })?;
        config.sizes = match &self.frames {
            None => Vec::new(),
            Some(Frames::Sizes(sizes)) => sizes.clone(),
            Some(Frames::File(file)) => {
                let sizes =
                    check.read_beside(file).and_then(|text| read_sizes(&text).map_err(|e| e.to_string()));
                sizes.map_err(|why| check.blame(&key("frames"), why))?
            }
        };
        let built = source::build(&choice, &Setting { sizes: &config.sizes, ..setting });
        built.map_err(|error| blame(&error))?;
        Ok(config)
    }

    /// How long lost packets are sent again, and their share.
    fn retransmit(&self, check: &Check<'_>, key: &dyn Fn(&str) -> String) -> Checked<Option<(Span, f64)>> {
        let share = self.retransmit_share.unwrap_or(Retransmission::SHARE);
        check.ensure((0.0..=1.0).contains(&share), || {
            (key("retransmit_share"), format!("a share of the media's bytes, 0 to 1, not {share}"))
        })?;
        check.ensure(self.retransmit.is_some() || self.retransmit_share.is_none(), || {
            (key("retransmit_share"), "of a stream without `retransmit`")
        })?;
        Ok(self.retransmit.map(|within| (within, share)))
    }
}

impl Spec {
    /// When it starts in a run with that seed: when traffic of its name would.
    pub fn starts(&self, seed: u64) -> Time {
        starts(&self.name, (self.start, self.start_within), seed)
    }

    fn conversation(&self, index: usize) -> Conversation {
        Conversation {
            name: Some(self.name.clone()),
            from: (self.from, own_port(SENDER_PORTS, index)),
            to: (self.to, RECEIVER_PORTS + 2 * index as u16),
            ipv6: self.ipv6,
            largest: (self.packet_size, SMALLEST),
        }
    }
}

/// Its endpoints make all that they need.
pub type Make = ();

/// What all streams of a run got.
#[derive(Debug, Default)]
pub struct Found {
    /// Stream by stream, in the order of the file.
    pub outcomes: Vec<StreamOutcome>,
}

/// What is kept of the streams while they run.
pub struct Running(Vec<(Spec, Conversation, u32, Arc<Mutex<Delays>>, Arc<Truth>)>);

/// When packets left that have not arrived, by their number, and how long the others took.
#[derive(Debug, Default)]
struct Delays {
    left: BTreeMap<u16, Time>,
    counts: FlowCounts,
    longest: Span,
}

/// The role.
pub(crate) struct Streaming;

impl Role for Streaming {
    type Raw = RawStream;
    type Spec = Spec;
    type Make = Make;
    type Running = Running;
    type Found = Found;
    const COUNTED: bool = true;

    fn check(check: &Check<'_>, raw: &[RawStream], scenario: &Scenario) -> Checked<Vec<Spec>> {
        let mut streams: Vec<Spec> = Vec::new();
        for (index, raw) in raw.iter().enumerate() {
            let own = format!("stream[{index}]");
            let key = |key: &str| format!("{own}.{key}");
            let (from, to) = check.ends(scenario, &own, (&raw.from, &raw.to), true)?;
            let name = raw.name.clone().unwrap_or_else(|| format!("stream{index}"));
            let path = if raw.name.is_some() { key("name") } else { own.clone() };
            check.name(&path, &name)?;
            let mut taken =
                scenario.traffic.iter().map(|flow| &flow.name).chain(streams.iter().map(|s| &s.name));
            check.ensure(taken.all(|other| *other != name), || {
                (path, format!("another flow is called {name:?}"))
            })?;
            let RawStream { ecn, realtime, ipv6, .. } = *raw;
            let (frame_rate, packet_size) =
                (raw.frame_rate.unwrap_or(30.0), raw.packet_size.unwrap_or(Bytes(1_200)));
            let feedback = raw.feedback.unwrap_or_default();
            check.ensure((0.1..=1_000.0).contains(&frame_rate), || {
                (key("frame_rate"), format!("0.1 to 1000 frames in a second, not {frame_rate}"))
            })?;
            check.ensure((SMALLEST.0..=9_000).contains(&packet_size.0), || {
                (key("packet_size"), format!("{SMALLEST} to 9000 B, not {packet_size}"))
            })?;
            check.ensure(ecn != Ecn::Ce, || {
                (key("ecn"), "queues mark packets, and not their sender: not-ect, ect0 or ect1")
            })?;
            let mut rate = raw.rate(check, &key, packet_size)?;
            let source = raw.source(check, &key, Setting::of(frame_rate, packet_size))?;
            let retransmit = raw.retransmit(check, &key)?;
            match &mut rate {
                SenderRate::Controlled(config) => config.timed = feedback == FeedbackInterval::RoundTrip,
                SenderRate::Fixed(_) => check.ensure(feedback != FeedbackInterval::RoundTrip, || {
                    (
                        key("feedback"),
                        "\"rtt\" of a stream without `control`, whose packets tell of no round-trip time",
                    )
                })?,
            }
            if let SenderRate::Fixed(rate) = rate {
                let most = rate.bits_per_second() <= 10_000_000_000;
                check.ensure(most, || (key("rate"), "more than 10 Gbit/s"))?;
                let frame = rate.bits_per_second() as f64 / 8.0 / frame_rate / packet_size.0 as f64;
                check.ensure(frame <= MAX_FRAME_PACKETS as f64, || {
                    (key("rate"), format!("a frame of {frame:.0} packets: at most {MAX_FRAME_PACKETS}"))
                })?;
            } else {
                let known = scenario.wlans.is_empty() || scenario.roles.measure.is_empty();
                let why = "beside a measurement by a WLAN, whose truth knows streams of a fixed rate alone";
                check.ensure(known, || (key("control"), why))?;
            }
            let stop = Time::ZERO + raw.stop.unwrap_or(scenario.duration);
            let start = Time::ZERO + raw.start;
            let start_within = raw.start_within;
            check.ensure(raw.start < scenario.duration, || (key("start"), "starts after the run's end"))?;
            check.ensure(stop > start, || (key("stop"), "stops before it starts"))?;
            let starts = start_within == Span::ZERO || start + start_within < stop;
            let why = "may start only after its stop or the run's end";
            check.ensure(starts, || (key("start_within"), why))?;
            streams.push(Spec {
                name,
                from,
                to,
                rate,
                source,
                frame_rate,
                packet_size,
                ecn,
                feedback,
                receipt_times: raw.receipt_times,
                retransmit,
                circuit_breakers: raw.circuit_breakers,
                start,
                start_within,
                stop,
                realtime,
                ipv6,
            });
        }
        Ok(streams)
    }

    fn conversations(scenario: &Scenario) -> Vec<Conversation> {
        scenario.roles.stream.iter().enumerate().map(|(index, spec)| spec.conversation(index)).collect()
    }

    fn load(scenario: &Scenario) -> Vec<TrafficSpec> {
        let load = |spec: &Spec| {
            let SenderRate::Fixed(rate) = spec.rate else { return None };
            let what = (rate, spec.packet_size);
            Some(TrafficSpec::cbr(&spec.name, (spec.from, spec.to), what, (spec.start, spec.stop)))
        };
        scenario.roles.stream.iter().filter_map(load).collect()
    }

    fn plan(scenario: &Scenario, seed: u64, _: &Make) -> Result<(Vec<Placed>, Running), RunError> {
        let (mut placed, mut kept) = (Vec::new(), Vec::new());
        for (index, spec) in scenario.roles.stream.iter().enumerate() {
            let talk = spec.conversation(index);
            let mut random = Stream::new(seed, &format!("stream/{}", spec.name));
            let mut ssrc = || (random.unit() * f64::from(u32::MAX)) as u32;
            let (own, others, again) = (ssrc(), ssrc(), ssrc());
            let source = SourceConfig { seed: ssrc().into(), ..spec.source.clone() };
            let retransmission =
                spec.retransmit.map(|(within, share)| Retransmission { ssrc: again, within, share });
            let peer = (scenario.hosts[spec.to].address(spec.ipv6), talk.to.1).into();
            let (one, start) = (spec.clone(), spec.starts(seed));
            let truth = Arc::<Truth>::default();
            let told = truth.clone();
            let sender = move |around: &Surroundings| {
                let Spec { rate, frame_rate, packet_size, ecn, stop, circuit_breakers, .. } = one;
                // A scenario's times are the run's, whatever the host's clock says.
                let (start, stop) = (around.local(start), around.local(stop));
                let epoch = around.epoch;
                let config = SenderConfig {
                    frame_rate,
                    packet_size,
                    ecn,
                    start,
                    stop,
                    epoch,
                    source,
                    retransmission,
                    circuit_breakers,
                    ..SenderConfig::new(peer, own, rate)
                };
                let sender = Sender::informed(config.clone(), told)
                    .map_err(|error| RunError::Make(error.to_string()))?;
                Ok(Made { endpoint: any(sender), config: Box::new(config) })
            };
            let (feedback, receipt_times) = (spec.feedback, spec.receipt_times);
            let nack = spec.retransmit.map(|(within, _)| within);
            let control = match &spec.rate {
                SenderRate::Controlled(config) => {
                    Some(config.control.clone()).filter(Composition::at_receiver)
                }
                SenderRate::Fixed(_) => None,
            };
            let told = truth.clone();
            let receiver = move |around: &Surroundings| {
                let (epoch, resolution) = (around.epoch, around.resolution);
                let config = ReceiverConfig {
                    ssrc: others,
                    feedback,
                    epoch,
                    resolution,
                    control,
                    receipt_times,
                    nack,
                };
                let receiver = Receiver::informed(config.clone(), told);
                let receiver = receiver.map_err(|error| RunError::Make(error.to_string()))?;
                Ok(Made { endpoint: any(receiver), config: Box::new(config) })
            };
            let place = |(host, port): (usize, u16)| Place { host, ipv6: spec.ipv6, port, number: 0 };
            let realtime = spec.realtime;
            placed.push(Placed { place: place(talk.from), answers: false, realtime, make: Box::new(sender) });
            placed.push(Placed { place: place(talk.to), answers: true, realtime, make: Box::new(receiver) });
            kept.push((spec.clone(), talk, own, Arc::default(), truth));
        }
        Ok((placed, Running(kept)))
    }

    fn attach(running: &mut Running, _scenario: &Scenario, simulation: &mut Simulation) {
        for (spec, talk, ssrc, delays, truth) in &running.0 {
            let Some((flow, _)) = simulation.conversation(talk) else { continue };
            let (sender, receiver) = (simulation.hosts[spec.from], simulation.hosts[spec.to]);
            simulation.roles_flows.push((spec.name.clone(), Arc::<Mutex<Delays>>::clone(delays)));
            let delays = Arc::clone(delays);
            let ssrc = *ssrc;
            let media = move |datagram: &Datagram| {
                let rtp = udp_payload(&datagram.payload)
                    .filter(|bytes| datagram.flow == flow && !is_rtcp(bytes))?;
                let header = RtpPacket::parse(rtp).ok()?.header;
                (header.ssrc == ssrc).then_some(header.sequence)
            };
            let (left, lost) = (truth.clone(), truth.clone());
            simulation.engine.set_tap(Box::new(move |now, from, to, datagram| {
                if from != sender && to != receiver {
                    return;
                }
                let Some(sequence) = media(datagram) else { return };
                if from == sender {
                    left.known().left(sequence);
                }
                let mut delays = delays.lock().unwrap_or_else(PoisonError::into_inner);
                delays.saw((now, datagram.ip_size()), sequence, from == sender, to == receiver);
            }));
            simulation.engine.add_lost_tap(Box::new(move |_, _, what| {
                if let Some(sequence) = media(what.datagram) {
                    lost.known().lost(sequence, what.cause);
                }
            }));
        }
    }

    fn found(running: Running, ended: &Ended<'_>) -> Result<Found, RunError> {
        let mut lost = flows::lost(ended.simulation);
        let mut outcomes = Vec::new();
        for (spec, talk, _, delays, truth) in &running.0 {
            let lost = ended.simulation.conversation(talk).and_then(|(flow, _)| lost.remove(&flow));
            let delays = delays.lock().unwrap_or_else(PoisonError::into_inner);
            let FlowCounts { packets, total_delay, .. } = delays.counts;
            let delay = (packets > 0)
                .then(|| (total_delay.as_secs_f64() / packets as f64, delays.longest.as_secs_f64()));
            let (sender, receiver) = (ended.number(talk.from, talk.ipv6), ended.number(talk.to, talk.ipv6));
            let sent = ended.decisions(sender).find_map(|(_, what)| match what {
                Decision::MediaEnded { why, sent } => Some((*why, *sent)),
                _ => None,
            });
            let received = ended.decisions(receiver).find_map(|(_, what)| match what {
                Decision::SourceLeft { received, .. } => Some(*received),
                _ => None,
            });
            let judged = |node| {
                ended.decisions(node).find_map(|(_, what)| match what {
                    Decision::LossesJudged(verdicts) => Some(verdicts.clone()),
                    _ => None,
                })
            };
            let verdicts = judged(sender).or_else(|| judged(receiver));
            let host = |host: usize| ended.scenario.hosts[host].name.clone();
            outcomes.push(StreamOutcome::new(
                (spec, host(spec.from), host(spec.to)),
                sent,
                received,
                lost.unwrap_or_default(),
                delay,
                (verdicts, truth.known().clone()),
            ));
        }
        Ok(Found { outcomes })
    }
}

impl CountedFlow for Mutex<Delays> {
    fn counts(&self) -> FlowCounts {
        self.lock().unwrap_or_else(PoisonError::into_inner).counts
    }
}

impl Delays {
    fn saw(&mut self, (now, size): (Time, Bytes), number: u16, leaves: bool, arrives: bool) {
        if leaves {
            self.left.insert(number, now);
            self.counts.sent += size;
        }
        if arrives && let Some(left) = self.left.remove(&number) {
            let took = now - left;
            self.counts.packets += 1;
            self.counts.arrived += size;
            self.counts.total_delay += took;
            self.longest = self.longest.max(took);
        }
    }
}
