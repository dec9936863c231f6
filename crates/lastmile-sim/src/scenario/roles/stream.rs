//! Streaming in scenario files: `[[stream]]`, read and checked.

use lastmile::control::{Composition, StreamGroup};
use lastmile::endpoint::stream::source::{self, SOURCES, Setting, read_sizes};
use lastmile::endpoint::stream::{
    ControlConfig, FeedbackInterval, MAX_FRAME_PACKETS, ReceiverConfig, Retransmission, SenderConfig,
    SenderRate, SourceConfig,
};
use lastmile::node::Ecn;
use lastmile::options::OptionError;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use serde::Deserialize;

use super::{Conversation, Tables, own_port};
use crate::scenario::check::{Check, Checked};
use crate::scenario::{Scenario, starts};
use crate::text;

/// The first UDP port of receivers (RFC 3551, section 8), of which each has the next but one, and that of senders.
const RECEIVER_PORTS: u16 = 5_004;
const SENDER_PORTS: u16 = 42_000;
/// IP, UDP and RTP headers, and a byte of payload.
const SMALLEST: Bytes = Bytes(61);

/// A `[[stream]]` table, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// The sending host.
    pub from: usize,
    /// The receiving host.
    pub to: usize,
    /// The sender, on the run's clock; numbers, addresses and epoch are each run's. It starts at the earliest when that says.
    pub sender: SenderConfig,
    /// The receiver, in the same way.
    pub receiver: ReceiverConfig,
    /// Within this time from the earliest the first frame is made, at random.
    pub start_within: Span,
    /// True if the lab's endpoints ask for real-time priority.
    pub realtime: bool,
    /// True if its packets are IPv6.
    pub ipv6: bool,
    /// The streams that share one controller with it, if any.
    pub group: Option<Grouped>,
}

/// A stream's place in a group that shares one controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Grouped {
    /// The group's name.
    pub name: String,
    /// Its share of the target is by this.
    pub priority: f64,
}

impl Spec {
    /// The rate of all streams of its group together, as one stream's: the sum of their highest rates, the lowest of their lowest, since not all
    /// may send, and the first one's start rate. Nothing of a stream without a group.
    pub fn group_rate(&self, streams: &[Spec]) -> Option<ControlConfig> {
        let group = self.group.as_ref()?;
        let members = streams.iter().filter(|one| one.group.as_ref().is_some_and(|of| of.name == group.name));
        let configs = members.filter_map(|one| match &one.sender.rate {
            SenderRate::Controlled(config) => Some(config),
            SenderRate::Fixed(_) => None,
        });
        let sum = |a: Rate, b: Rate| Rate::ip(a.bits_per_second().saturating_add(b.bits_per_second()));
        configs.cloned().reduce(|whole, one| ControlConfig {
            min: if one.min < whole.min { one.min } else { whole.min },
            max: sum(whole.max, one.max),
            ..whole
        })
    }

    /// When it starts in a run with that seed: when traffic of its name would.
    pub fn starts(&self, seed: u64) -> Time {
        starts(&self.name, (self.sender.start, self.start_within), seed)
    }

    pub(crate) fn conversation(&self, index: usize) -> Conversation {
        Conversation {
            name: Some(self.name.clone()),
            from: (self.from, own_port(SENDER_PORTS, index)),
            to: (self.to, RECEIVER_PORTS + 2 * index as u16),
            ipv6: self.ipv6,
            largest: (self.sender.packet_size, SMALLEST),
        }
    }
}

/// The role.
pub(crate) struct Streaming;

impl Tables for Streaming {
    type Raw = RawStream;
    type Spec = Spec;

    const COUNTED: bool = true;

    fn check(check: &Check<'_>, raw: &[RawStream], scenario: &Scenario) -> Checked<Vec<Spec>> {
        let mut streams: Vec<Spec> = Vec::new();
        for (index, raw) in raw.iter().enumerate() {
            streams.push(raw.check(check, scenario, index, &streams)?);
        }
        Ok(streams)
    }

    fn conversations(scenario: &Scenario) -> Vec<Conversation> {
        scenario.roles.stream.iter().enumerate().map(|(index, spec)| spec.conversation(index)).collect()
    }
}

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
    #[serde(default, deserialize_with = "text::some_share")]
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
    group: Option<String>,
    priority: Option<f64>,
}

/// The sizes of a trace's frames.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a file's name, or a list of frame sizes in bytes")]
enum Frames {
    File(String),
    Sizes(Vec<u32>),
}

/// Makes of a table's key its place in the file.
type Key<'a> = dyn Fn(&str) -> String + 'a;

impl RawStream {
    /// The sender's rate, fixed or controlled.
    fn rate(&self, check: &Check<'_>, key: &Key<'_>, packet_size: Bytes) -> Checked<SenderRate> {
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

    /// The source of its frames.
    fn source(&self, check: &Check<'_>, key: &Key<'_>, setting: Setting<'_>) -> Checked<SourceConfig> {
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

    /// The time for which lost packets are sent again, and their share.
    fn retransmission(&self, check: &Check<'_>, key: &Key<'_>) -> Checked<Option<Retransmission>> {
        let share = self.retransmit_share.unwrap_or(Retransmission::SHARE);
        check.ensure((0.0..=1.0).contains(&share), || {
            (key("retransmit_share"), format!("a share of the media's bytes, 0 to 1, not {share}"))
        })?;
        check.ensure(self.retransmit.is_some() || self.retransmit_share.is_none(), || {
            (key("retransmit_share"), "of a stream without `retransmit`")
        })?;
        Ok(self.retransmit.map(|within| Retransmission { ssrc: 0, within, share }))
    }

    /// Its place in a group, whose streams have the same hosts and the same controller.
    fn group(
        &self,
        check: &Check<'_>,
        key: &Key<'_>,
        own: (usize, usize, &SenderRate),
        streams: &[Spec],
    ) -> Checked<Option<Grouped>> {
        let Some(name) = &self.group else {
            let alone = self.priority.is_none();
            check.ensure(alone, || {
                (key("priority"), "of a stream without `group`: a share is of a group's rate")
            })?;
            return Ok(None);
        };
        let priority = self.priority.unwrap_or(1.0);
        check.ensure((0.01..=100.0).contains(&priority), || {
            (key("priority"), format!("0.01 to 100, not {priority}"))
        })?;
        let (from, to, rate) = own;
        let SenderRate::Controlled(config) = rate else {
            return check.refuse(&key("group"), "of a stream without `control`, whose rate is fixed");
        };
        let at_receiver = "the receiver of each stream counts its losses alone: not with `group`";
        check.ensure(!config.control.at_receiver(), || (key("control"), at_receiver))?;
        let omniscient = "knows the losses of one stream: not with `group`";
        check.ensure(!config.control.needs_truth(), || (key("control"), omniscient))?;
        let others = || streams.iter().filter(|one| one.group.as_ref().is_some_and(|of| of.name == *name));
        check.ensure(others().count() < StreamGroup::MOST, || {
            (key("group"), format!("more than {} streams", StreamGroup::MOST))
        })?;
        if let Some(first) = others().next() {
            let ends = (first.from, first.to) == (from, to);
            check.ensure(ends, || {
                (key("group"), "its streams have other hosts: one controller is for one path")
            })?;
            let same = matches!(&first.sender.rate, SenderRate::Controlled(other) if other.control == config.control);
            check.ensure(same, || {
                (
                    key("control"),
                    format!("another one than that of {:?}, with which it shares it", first.name),
                )
            })?;
        }
        Ok(Some(Grouped { name: name.clone(), priority }))
    }

    /// The table's stream, after those before it.
    fn check(&self, check: &Check<'_>, scenario: &Scenario, index: usize, streams: &[Spec]) -> Checked<Spec> {
        let own = format!("stream[{index}]");
        let key = |key: &str| format!("{own}.{key}");
        let (from, to) = check.ends(scenario, &own, (&self.from, &self.to), true)?;
        let name = self.name.clone().unwrap_or_else(|| format!("stream{index}"));
        let path = if self.name.is_some() { key("name") } else { own.clone() };
        check.name(&path, &name)?;
        let mut taken = scenario.traffic.iter().map(|flow| &flow.name).chain(streams.iter().map(|s| &s.name));
        check.ensure(taken.all(|other| *other != name), || {
            (path, format!("another flow is called {name:?}"))
        })?;
        let (frame_rate, packet_size) =
            (self.frame_rate.unwrap_or(30.0), self.packet_size.unwrap_or(Bytes(1_200)));
        let feedback = self.feedback.unwrap_or_default();
        check.ensure((0.1..=1_000.0).contains(&frame_rate), || {
            (key("frame_rate"), format!("0.1 to 1000 frames in a second, not {frame_rate}"))
        })?;
        check.ensure((SMALLEST.0..=9_000).contains(&packet_size.0), || {
            (key("packet_size"), format!("{SMALLEST} to 9000 B, not {packet_size}"))
        })?;
        check.ensure(self.ecn != Ecn::Ce, || {
            (key("ecn"), "queues mark packets, and not their sender: not-ect, ect0 or ect1")
        })?;
        let mut rate = self.rate(check, &key, packet_size)?;
        let source = self.source(check, &key, Setting::of(frame_rate, packet_size))?;
        let retransmission = self.retransmission(check, &key)?;
        let group = self.group(check, &key, (from, to, &rate), streams)?;
        let mut control = None;
        match &mut rate {
            SenderRate::Controlled(config) => {
                config.timed = feedback == FeedbackInterval::RoundTrip;
                control = Some(config.control.clone()).filter(Composition::at_receiver);
            }
            SenderRate::Fixed(rate) => {
                let why = "\"rtt\" of a stream without `control`, whose packets tell of no round-trip time";
                check.ensure(feedback != FeedbackInterval::RoundTrip, || (key("feedback"), why))?;
                let most = rate.bits_per_second() <= 10_000_000_000;
                check.ensure(most, || (key("rate"), "more than 10 Gbit/s"))?;
                let frame = rate.bits_per_second() as f64 / 8.0 / frame_rate / packet_size.0 as f64;
                check.ensure(frame <= MAX_FRAME_PACKETS as f64, || {
                    (key("rate"), format!("a frame of {frame:.0} packets: at most {MAX_FRAME_PACKETS}"))
                })?;
            }
        }
        let stop = Time::ZERO + self.stop.unwrap_or(scenario.duration);
        let start = Time::ZERO + self.start;
        check.ensure(self.start < scenario.duration, || (key("start"), "starts after the run's end"))?;
        check.ensure(stop > start, || (key("stop"), "stops before it starts"))?;
        let starts = self.start_within == Span::ZERO || start + self.start_within < stop;
        let why = "may start only after its stop or the run's end";
        check.ensure(starts, || (key("start_within"), why))?;
        let sender = SenderConfig {
            source,
            frame_rate,
            packet_size,
            ecn: self.ecn,
            start,
            stop,
            retransmission,
            circuit_breakers: self.circuit_breakers,
            ..SenderConfig::new(([0; 4], 0).into(), 0, rate)
        };
        let receiver = ReceiverConfig {
            feedback,
            receipt_times: self.receipt_times,
            nack: retransmission.map(|again| again.within),
            control,
            ..ReceiverConfig::new(0)
        };
        let RawStream { start_within, realtime, ipv6, .. } = *self;
        Ok(Spec { name, from, to, sender, receiver, start_within, realtime, ipv6, group })
    }
}
