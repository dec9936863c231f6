//! One direction of a link: its rate, queue, discipline, token buckets and changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lastmile::options::ChoiceError;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;

use super::{Check, Checked, LARGEST_IP_PACKET};
use crate::network::ConfigError;
use crate::network::jitter::Jitter;
use crate::network::link::{Change, DEFAULT_QUEUE_PACKETS, LinkConfig, QueueLimit, Walk};
use crate::network::queue::Discipline;
use crate::network::trace::{OPPORTUNITY, Quantity, Source, Trace, TraceConfig};
use crate::scenario::ScenarioError;
use crate::scenario::raw::RawLink;

/// Packets that wait or are on their way are kept in memory.
const MAX_QUEUE_PACKETS: u32 = 1_000_000;
const MAX_QUEUE_BYTES: Bytes = Bytes(100_000_000);
/// Changes of one link.
const MAX_CHANGES: usize = 100_000;
const MAX_DELAY: Span = Span::from_secs(60);

/// Place of a direction's keys: its own below `[[link]]` or `back`, and those that `back` leaves out below `[[link]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) link: usize,
    pub(super) back: bool,
}

impl Check<'_> {
    /// The path of a direction's key.
    pub(super) fn link_key(&self, of: Direction, key: &str) -> String {
        let back = format!("link[{}].back.{key}", of.link);
        if of.back && self.file.has(&back) { back } else { format!("link[{}].{key}", of.link) }
    }

    /// The directions that the scenario's links are.
    pub(super) fn directions(&self) -> Vec<Direction> {
        let of = |(link, raw): (usize, &RawLink)| {
            let back = (!raw.one_way).then_some(Direction { link, back: true });
            [Some(Direction { link, back: false }), back].into_iter().flatten()
        };
        self.raw.link.iter().enumerate().flat_map(of).collect()
    }

    /// All of a direction but its channels.
    pub(super) fn link(&self, raw: &RawLink, of: Direction) -> Checked<LinkConfig> {
        let key = |key: &str| self.link_key(of, key);
        let trace = raw.trace.as_ref().map(|trace| self.link_trace(raw, trace, &key("trace"))).transpose()?;
        let config = LinkConfig {
            rate: raw.rate,
            delay: raw.delay,
            overhead: raw.overhead.unwrap_or(framing(trace.as_deref())),
            trace,
            queue: raw.queue.unwrap_or(QueueLimit::Packets(DEFAULT_QUEUE_PACKETS)),
            discipline: self.discipline(raw, of)?,
            shaper: raw.shaper.clone(),
            policer: raw.policer.clone(),
            mtu: raw.mtu,
            jitter: self.jitter(raw, of)?,
            schedule: self.link_changes(raw, of)?,
            ..LinkConfig::default()
        };
        self.ensure(config.overhead.0 <= LARGEST_IP_PACKET, || {
            (key("overhead"), format!("framing of more than {LARGEST_IP_PACKET} bytes"))
        })?;
        self.ensure(raw.delay <= MAX_DELAY, || (key("delay"), format!("longer than {MAX_DELAY}")))?;
        if let Err(ConfigError { key: wrong, reason }) = config.check() {
            return self.refuse(&key(&wrong.replace(": ", ".")), reason);
        }
        let waits = config.rate.is_some()
            || config.trace.is_some()
            || config.shaper.is_some()
            || config.schedule.iter().any(|change| change.rate.is_some());
        for (name, given) in [("queue", raw.queue.is_some()), ("overhead", raw.overhead.is_some())] {
            self.ensure(!given || waits, || {
                (key(name), format!("without a rate nothing ever waits: name a rate, or no {name}"))
            })?;
        }
        self.queue(&config, of)?;
        Ok(config)
    }

    /// The discipline that a direction names; errors name the key that is to blame.
    fn discipline(&self, raw: &RawLink, of: Direction) -> Checked<Discipline> {
        let Some(named) = &raw.discipline else { return Ok(Discipline::default()) };
        named.read().map_err(|error| self.no_choice(of, "discipline", &error))
    }

    fn jitter(&self, raw: &RawLink, of: Direction) -> Checked<Option<Jitter>> {
        let Some(named) = &raw.jitter else { return Ok(None) };
        let read = Jitter::read(&named.kind, &named.given());
        read.map(Some).map_err(|error| self.no_choice(of, "jitter", &error))
    }

    /// The error in a table of a kind and its options.
    fn no_choice(&self, of: Direction, table: &str, error: &ChoiceError) -> ScenarioError {
        let (key, reason) = match error {
            ChoiceError::Option(wrong) if wrong.unknown.is_none() => {
                (wrong.option.as_str(), wrong.reason.clone())
            }
            ChoiceError::Option(wrong) => (wrong.option.as_str(), wrong.to_string()),
            error => ("kind", error.to_string()),
        };
        self.blame(&self.link_key(of, &format!("{table}.{key}")), reason)
    }

    /// The trace that drives a link.
    fn link_trace(&self, raw: &RawLink, trace: &TraceConfig, path: &str) -> Checked<Arc<Trace>> {
        let scheduled = raw.changes.iter().any(|change| change.rate.is_some());
        let (shaper, policer) = (raw.shaper.is_some(), raw.policer.is_some());
        let beside =
            [(raw.rate.is_some(), "rate"), (scheduled, "changes"), (shaper, "shaper"), (policer, "policer")];
        if let Some((_, key)) = beside.iter().find(|(given, _)| *given) {
            return self.refuse(path, format!("the trace says how much goes, and so does `{key}`"));
        }
        let trace = self.open_trace(trace, path)?;
        self.ensure(matches!(trace.quantity(), Quantity::Opportunities | Quantity::Rate), || {
            (path, "a link takes opportunities or rates: decibels and metres are for stations")
        })?;
        Ok(trace)
    }

    pub(super) fn open_trace(&self, raw: &TraceConfig, at: &str) -> Checked<Arc<Trace>> {
        let source = match (&raw.file, &raw.lines) {
            (Some(file), None) => {
                let path = self.beside(file);
                Source::File(std::path::absolute(&path).unwrap_or(path))
            }
            (None, Some(lines)) => Source::Lines(lines.as_bytes().into()),
            _ => return self.refuse(at, "a trace has `file` or `lines`, one of both"),
        };
        let trace = Trace::open(source.clone(), raw.kind, raw.repeat);
        trace.map(Arc::new).map_err(|why| self.blame(at, format!("{source}: {why}")))
    }

    /// A file by its way from the scenario's folder.
    pub(super) fn beside(&self, file: &str) -> PathBuf {
        Path::new(self.file.name).parent().unwrap_or(Path::new("")).join(file)
    }

    /// Refuses a queue without room, or larger than memory allows, and thresholds that it never reaches.
    fn queue(&self, config: &LinkConfig, of: Direction) -> Checked<()> {
        let (queue, discipline) = (self.link_key(of, "queue"), self.link_key(of, "discipline"));
        let own_limit = config.discipline.limit();
        // One that is inherited beside a discipline of the way back is meant for the way forth.
        let beside = self.file.has(&queue) && (queue.contains(".back.") || !discipline.contains(".back."));
        self.ensure(own_limit.is_none() || !beside, || {
            let kind = config.discipline.kind();
            (&queue, format!("{kind} has a queue of its own, `limit`: name that alone"))
        })?;
        let (limit, key) = own_limit.map_or((config.queue, "queue"), |own| (own, "discipline.limit"));
        let (nothing, too_large) = match limit {
            QueueLimit::Packets(packets) => (packets == 0, packets > MAX_QUEUE_PACKETS),
            QueueLimit::Bytes(bytes) => (bytes == Bytes::ZERO, bytes > MAX_QUEUE_BYTES),
        };
        let path = || self.link_key(of, key);
        self.ensure(!nothing, || (path(), "no packet would pass"))?;
        self.ensure(!too_large, || {
            (path(), format!("larger than {MAX_QUEUE_PACKETS} packets or {MAX_QUEUE_BYTES}"))
        })?;
        let never = config.discipline.check_limit(limit);
        never.map_err(|error| {
            self.blame(&self.link_key(of, &format!("discipline.{}", error.key)), error.reason)
        })
    }

    /// The walk of a direction's rate, if it has one.
    pub(super) fn walk(&self, raw: &RawLink, of: Direction, duration: Span) -> Checked<Option<Walk>> {
        let Some(walk) = raw.walk else { return Ok(None) };
        let key = |key: &str| {
            let path = self.link_key(of, "walk");
            if key.is_empty() { path } else { format!("{path}.{key}") }
        };
        let planned = raw.changes.iter().any(|change| change.rate.is_some());
        self.ensure(!planned, || (key(""), "the walk says the rate, and so do `changes`"))?;
        walk.check(raw.rate, duration).map_err(|error| self.blame(&key(&error.key), error.reason))?;
        Ok(Some(walk))
    }

    fn link_changes(&self, raw: &RawLink, of: Direction) -> Checked<Vec<Change>> {
        let list = self.link_key(of, "changes");
        self.ensure(raw.changes.len() <= MAX_CHANGES, || {
            (&list, format!("more than {MAX_CHANGES} changes"))
        })?;
        let mut changes: Vec<Change> = Vec::new();
        for (number, change) in raw.changes.iter().enumerate() {
            let key = |key| format!("{list}[{number}].{key}");
            self.later(&key("at"), change.at, changes.last().map(|before| before.at))?;
            let (rate, delay) = (change.rate, change.delay);
            self.ensure(delay <= Some(MAX_DELAY), || (key("delay"), format!("longer than {MAX_DELAY}")))?;
            self.ensure(rate.is_some() || delay.is_some(), || {
                (key("at"), "a change of nothing: name `rate` or `delay`")
            })?;
            changes.push(Change { at: Time::ZERO + change.at, rate, delay });
        }
        Ok(changes)
    }
}

/// Default framing of packets: none, but for Mahimahi's opportunities as much as makes one carry 1500 B.
fn framing(trace: Option<&Trace>) -> Bytes {
    match trace.map(Trace::quantity) {
        Some(Quantity::Opportunities) => Bytes(u64::from(OPPORTUNITY) - 1_500),
        _ => Bytes::ZERO,
    }
}
