//! One direction of a link: its rate, queue, discipline, shaper and changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lastmile::time::{Span, Time};
use lastmile::units::Bytes;
use toml::Spanned;

use super::{At, Check, Checked, LARGEST_IP_PACKET};
use crate::network::ConfigError;
use crate::network::link::{Change, DEFAULT_QUEUE_PACKETS, LinkConfig, QueueLimit};
use crate::network::trace::{OPPORTUNITY, Quantity, Trace, TraceConfig};
use crate::scenario::raw::{RawLink, RawLinkChange};

/// What waits and what is on its way is kept in memory.
const MAX_QUEUE_PACKETS: u32 = 1_000_000;
const MAX_QUEUE_BYTES: Bytes = Bytes(100_000_000);
/// Changes of one link.
const MAX_CHANGES: usize = 100_000;
const MAX_DELAY: Span = Span::from_secs(60);

/// Where a direction's keys stand: its own ones below `[[link]]` or `back`, and what `back` leaves out below `[[link]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) link: usize,
    pub(super) back: bool,
}

impl Check<'_> {
    /// The path of a direction's key.
    pub(super) fn link_key(&self, of: Direction, key: &str) -> String {
        let back = format!("link[{}].back.{key}", of.link);
        if of.back && self.place.has(&back) { back } else { format!("link[{}].{key}", of.link) }
    }

    /// The directions that the scenario's links are.
    pub(super) fn directions(&self) -> Vec<Direction> {
        let of = |(link, raw): (usize, &Spanned<RawLink>)| {
            let back = (!raw.get_ref().one_way).then_some(Direction { link, back: true });
            [Some(Direction { link, back: false }), back].into_iter().flatten()
        };
        self.raw.link.iter().enumerate().flat_map(of).collect()
    }

    /// The direction that a link of the scenario is.
    pub(super) fn direction(&self, link: usize) -> Direction {
        self.directions().get(link).copied().unwrap_or(Direction { link: 0, back: false })
    }

    /// All of a direction but its channels.
    pub(super) fn link(&self, raw: &RawLink, of: Direction) -> Checked<LinkConfig> {
        let refuse = |key: &str, reason: String| self.refuse(&self.link_key(of, key), reason);
        let changes = raw.changes.as_deref().unwrap_or_default();
        if let Some(trace) = &raw.trace {
            let scheduled = changes.iter().any(|change| change.rate.is_some());
            let beside =
                [(raw.rate.is_some(), "rate"), (scheduled, "changes"), (raw.shaper.is_some(), "shaper")];
            if let Some((_, key)) = beside.iter().find(|(given, _)| *given) {
                return self
                    .error(trace.span(), format!("the trace says how much goes, and so does `{key}`"));
            }
        }
        let trace = raw.trace.as_ref().map(|trace| self.link_trace(trace)).transpose()?;
        let config = LinkConfig {
            rate: raw.rate.as_ref().map(|rate| self.rate(rate)).transpose()?,
            delay: self.not_negative(raw.delay.as_ref())?.unwrap_or(Span::ZERO),
            overhead: raw.overhead.as_ref().map_or(framing(trace.as_deref()), |at| at.get_ref().0),
            trace,
            queue: raw.queue.as_ref().map_or(QueueLimit::Packets(DEFAULT_QUEUE_PACKETS), |at| at.get_ref().0),
            discipline: raw.discipline.as_ref().map(|d| d.get_ref().clone()).unwrap_or_default(),
            shaper: raw.shaper.as_ref().map(|s| s.get_ref().clone()),
            schedule: self.link_changes(changes, of)?,
            ..LinkConfig::default()
        };
        if config.overhead.0 > LARGEST_IP_PACKET {
            return refuse("overhead", format!("framing of more than {LARGEST_IP_PACKET} bytes"));
        }
        if let Some(long) = raw.delay.as_ref().filter(|delay| delay.get_ref().0 > MAX_DELAY) {
            return self.error(long.span(), format!("longer than {MAX_DELAY}"));
        }
        if let Err(ConfigError { key, reason }) = config.check() {
            return refuse(&key.replace(": ", "."), reason);
        }
        let waits = config.rate.is_some()
            || config.trace.is_some()
            || config.shaper.is_some()
            || config.schedule.iter().any(|change| change.rate.is_some());
        for (key, given) in [("queue", raw.queue.is_some()), ("overhead", raw.overhead.is_some())] {
            if given && !waits {
                return refuse(key, format!("without a rate nothing ever waits: name a rate, or no {key}"));
            }
        }
        self.queue(&config, of)?;
        Ok(config)
    }

    /// The trace that drives a link.
    fn link_trace(&self, raw: &Spanned<TraceConfig>) -> Checked<Arc<Trace>> {
        let trace = self.open_trace(raw)?;
        match trace.quantity() {
            Quantity::Opportunities | Quantity::Rate => Ok(trace),
            _ => self.error(
                raw.span(),
                "a link takes opportunities or rates: decibels and metres are for stations",
            ),
        }
    }

    pub(super) fn open_trace(&self, raw: &Spanned<TraceConfig>) -> Checked<Arc<Trace>> {
        let TraceConfig { kind, file, repeat } = raw.get_ref();
        let path = self.beside(file);
        Trace::open(&path, *kind, *repeat)
            .map(Arc::new)
            .or_else(|why| self.error(raw.span(), format!("{}: {why}", path.display())))
    }

    /// A file by its way from the scenario's folder.
    pub(super) fn beside(&self, file: &str) -> PathBuf {
        Path::new(self.place.file).parent().unwrap_or(Path::new("")).join(file)
    }

    /// Refuses a queue without room, or larger than memory allows, and thresholds that it never reaches.
    fn queue(&self, config: &LinkConfig, of: Direction) -> Checked<()> {
        let refuse = |key: &str, reason: String| self.refuse(&self.link_key(of, key), reason);
        let (queue, discipline) = (self.link_key(of, "queue"), self.link_key(of, "discipline"));
        let own_limit = config.discipline.limit();
        // One that is inherited beside a discipline of the way back is meant for the way forth.
        let beside = self.place.has(&queue) && (queue.contains(".back.") || !discipline.contains(".back."));
        if own_limit.is_some() && beside {
            let kind = config.discipline.kind();
            return self.refuse(&queue, format!("{kind} has a queue of its own, `limit`: name that alone"));
        }
        let (limit, key) = own_limit.map_or((config.queue, "queue"), |own| (own, "discipline.limit"));
        let (nothing, too_large) = match limit {
            QueueLimit::Packets(packets) => (packets == 0, packets > MAX_QUEUE_PACKETS),
            QueueLimit::Bytes(bytes) => (bytes == Bytes::ZERO, bytes > MAX_QUEUE_BYTES),
        };
        if nothing {
            return refuse(key, "no packet would pass".to_owned());
        }
        if too_large {
            return refuse(key, format!("larger than {MAX_QUEUE_PACKETS} packets or {MAX_QUEUE_BYTES}"));
        }
        let never = config.discipline.check_limit(limit).err();
        never.map_or(Ok(()), |error| refuse(&format!("discipline.{}", error.key), error.reason))
    }

    fn link_changes(&self, raw: &[RawLinkChange], of: Direction) -> Checked<Vec<Change>> {
        if raw.len() > MAX_CHANGES {
            return self.refuse(&self.link_key(of, "changes"), format!("more than {MAX_CHANGES} changes"));
        }
        let mut changes: Vec<Change> = Vec::new();
        for change in raw {
            let at = Time::ZERO + self.not_negative(Some(&change.at))?.unwrap_or(Span::ZERO);
            self.later(&change.at, changes.last().map(|before| before.at))?;
            let delay = self.not_negative(change.delay.as_ref())?;
            if let Some(long) = change.delay.as_ref().filter(|long| long.get_ref().0 > MAX_DELAY) {
                return self.error(long.span(), format!("longer than {MAX_DELAY}"));
            }
            let rate = change.rate.as_ref().map(|rate| rate.get_ref().0);
            if rate.is_none() && delay.is_none() {
                return self.error(change.at.span(), "a change of nothing: name `rate` or `delay`");
            }
            changes.push(Change { at, rate, delay });
        }
        Ok(changes)
    }

    /// Refuses a time that is not after the one before it in its list.
    pub(super) fn later(&self, at: &At<Span>, before: Option<Time>) -> Checked<()> {
        if before.is_some_and(|before| before >= Time::ZERO + at.get_ref().0) {
            return self.error(at.span(), "not later than the change before");
        }
        Ok(())
    }
}

/// What stands around packets where nothing is said: of Mahimahi's opportunities what makes one carry 1500 B.
fn framing(trace: Option<&Trace>) -> Bytes {
    match trace.map(Trace::quantity) {
        Some(Quantity::Opportunities) => Bytes(u64::from(OPPORTUNITY) - 1_500),
        _ => Bytes::ZERO,
    }
}
