//! The simulator's own traffic.

use std::collections::BTreeSet;
use std::sync::Arc;

use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use toml::Spanned;

use super::{Check, Checked, LARGEST_IP_PACKET};
use crate::network::traffic::{Arrivals, Lengths, OnOff, Trace};
use crate::scenario::raw::{Kind, RawChange, RawTraffic};
use crate::scenario::{Scenario, TrafficSpec};

/// IPv4 and UDP header.
const SMALLEST_IP_PACKET: u64 = 28;
/// A file of packets that is larger is not read.
const MAX_TRACE_FILE: u64 = 64_000_000;
/// Changes of one source's rate.
const MAX_CHANGES: usize = 10_000;
/// Tails heavier than this have no mean, or one that no run would show.
const SHAPES: core::ops::RangeInclusive<f64> = 1.05..=100.0;

impl Check<'_> {
    pub(super) fn traffic(&self, scenario: &mut Scenario) -> Checked<()> {
        let end = Time::ZERO + scenario.duration;
        let mut names = BTreeSet::new();
        for (index, spanned) in self.raw.traffic.iter().enumerate() {
            let raw = spanned.get_ref();
            let (from, to) = self.ends(scenario, &raw.from, &raw.to)?;
            let name = match &raw.name {
                Some(name) => {
                    self.name(name)?;
                    name.get_ref().clone()
                }
                None => format!("traffic{index}"),
            };
            if !names.insert(name.clone()) {
                let at = raw.name.as_ref().map_or(spanned.span(), Spanned::span);
                return self.error(at, format!("two flows are called {name:?}"));
            }
            let start = Time::ZERO + self.not_negative(raw.start.as_ref())?.unwrap_or(Span::ZERO);
            let stop = self.not_negative(raw.stop.as_ref())?.map_or(Time::MAX, |stop| Time::ZERO + stop);
            let start_within = self.not_negative(raw.start_within.as_ref())?.unwrap_or(Span::ZERO);
            if let Some(late) = raw.start_within.as_ref().filter(|_| start + start_within >= stop.min(end)) {
                return self.error(late.span(), "may start only after its stop or the run's end");
            }
            if let Some(raw_start) = raw.start.as_ref().filter(|_| start >= end) {
                return self.error(raw_start.span(), "starts after the run's end");
            }
            if let Some(raw_stop) = raw.stop.as_ref().filter(|_| stop <= start) {
                return self.error(raw_stop.span(), "stops before it starts");
            }
            self.only_its_keys(raw)?;
            let tcp = self.tcp(index, raw)?;
            let (arrivals, rate, size) = match (&tcp, raw.kind.get_ref()) {
                (Some(tcp), _) => (Arrivals::Cbr, Rate::ip(0), tcp.config.segment + tcp.config.header),
                (None, Kind::Trace) => {
                    let trace = self.trace(raw)?;
                    self.trace_room(scenario, &trace, raw)?;
                    let largest = trace.packets().iter().map(|packet| packet.1).max().unwrap_or(Bytes::ZERO);
                    (Arrivals::Trace(Arc::new(trace)), Rate::ip(0), largest)
                }
                _ => {
                    let rate = self.required(raw, "rate", raw.rate.as_ref())?;
                    // A schedule may begin with silence; without one it would never send.
                    let sends = |change: &Spanned<RawChange>| change.get_ref().rate.get_ref().0 > Rate::ip(0);
                    let later = raw.changes.iter().any(sends);
                    let rate = if later { rate.get_ref().0 } else { self.rate(rate)? };
                    let size = self.size(self.required(raw, "size", raw.size.as_ref())?)?;
                    (self.arrivals(raw, rate, size)?, rate, size)
                }
            };
            let changes = self.changes(raw)?;
            self.apart(raw, &arrivals, &changes, (rate, size))?;
            if tcp.is_some() {
                self.reach(scenario, to, from, &raw.to)?;
            }
            let spec =
                TrafficSpec { name, arrivals, from, to, rate, size, start, start_within, stop, changes, tcp };
            scenario.traffic.push(spec);
        }
        Ok(())
    }

    pub(super) fn required<'r, T>(
        &self,
        raw: &RawTraffic,
        key: &str,
        value: Option<&'r T>,
    ) -> Checked<&'r T> {
        match value {
            Some(value) => Ok(value),
            None => self.error(raw.kind.span(), format!("traffic of this kind needs the key `{key}`")),
        }
    }

    /// Refuses keys that mean nothing to the kind: they would be read as if they did something.
    fn only_its_keys(&self, raw: &RawTraffic) -> Checked<()> {
        let kind = *raw.kind.get_ref();
        let bursts = matches!(kind, Kind::OnOff | Kind::Pareto);
        let span = |at: Option<core::ops::Range<usize>>, fits: bool, key: &'static str| {
            at.filter(|_| !fits).map(|at| (at, key))
        };
        let trace = kind == Kind::Trace;
        let source = !trace && !kind.is_tcp();
        let files = matches!(kind, Kind::File | Kind::Files);
        let stray = [
            span(raw.rate.as_ref().map(Spanned::span), source, "rate"),
            span(raw.size.as_ref().map(Spanned::span), source, "size"),
            span(raw.on.as_ref().map(Spanned::span), bursts, "on"),
            span(raw.off.as_ref().map(Spanned::span), bursts, "off"),
            span(raw.shape.as_ref().map(Spanned::span), kind == Kind::Pareto, "shape"),
            span(raw.file.as_ref().map(Spanned::span), trace, "file"),
            span(raw.packets.as_ref().map(Spanned::span), trace, "packets"),
            span(raw.changes.first().map(Spanned::span), source, "changes"),
            span(raw.bytes.as_ref().map(Spanned::span), files, "bytes"),
            span(raw.bytes_max.as_ref().map(Spanned::span), kind == Kind::Files, "bytes_max"),
            span(raw.pause.as_ref().map(Spanned::span), kind == Kind::Files, "pause"),
            span(raw.tcp.as_ref().map(Spanned::span), kind.is_tcp(), "tcp"),
        ];
        match stray.into_iter().flatten().next() {
            Some((at, key)) => self.error(at, format!("`{key}` means nothing to traffic of this kind")),
            None => Ok(()),
        }
    }

    pub(super) fn size(&self, raw: &super::At<Bytes>) -> Checked<Bytes> {
        let size = raw.get_ref().0;
        if !(SMALLEST_IP_PACKET..=LARGEST_IP_PACKET).contains(&size.0) {
            let reason =
                format!("an IP packet has {SMALLEST_IP_PACKET} to {LARGEST_IP_PACKET} bytes, not {size}");
            return self.error(raw.span(), reason);
        }
        Ok(size)
    }

    fn arrivals(&self, raw: &RawTraffic, rate: Rate, size: Bytes) -> Checked<Arrivals> {
        let lengths = match raw.kind.get_ref() {
            Kind::Cbr => return Ok(Arrivals::Cbr),
            Kind::OnOff => Lengths::Exponential,
            Kind::Pareto => {
                let shape = raw.shape.as_ref();
                let shape = self.required(raw, "shape", shape)?;
                if !SHAPES.contains(shape.get_ref()) {
                    let (least, most) = (SHAPES.start(), SHAPES.end());
                    return self.error(
                        shape.span(),
                        format!("a shape from {least} to {most}: below one there is no mean"),
                    );
                }
                Lengths::Pareto { shape: *shape.get_ref() }
            }
            _ => return Ok(Arrivals::Poisson),
        };
        let raw_on = self.required(raw, "on", raw.on.as_ref())?;
        let raw_off = self.required(raw, "off", raw.off.as_ref())?;
        let off = self.not_negative(Some(raw_off))?.unwrap_or(Span::ZERO);
        let on_off = OnOff { lengths, on: self.positive(raw_on)?, off };
        let packet = on_off.peak(rate).time_for(size);
        if rate.bits_per_second() > 0 && on_off.on < packet {
            return self.error(
                raw_on.span(),
                format!("shorter than one packet takes at the bursts' rate ({packet})"),
            );
        }
        Ok(Arrivals::OnOff(on_off))
    }

    /// Refuses a source whose packets would leave at one moment, all of them.
    fn apart(
        &self,
        raw: &RawTraffic,
        arrivals: &Arrivals,
        changes: &[(Time, Rate)],
        (rate, size): (Rate, Bytes),
    ) -> Checked<()> {
        let most = changes.iter().fold(rate, |most, change| if change.1 > most { change.1 } else { most });
        let peak = if let Arrivals::OnOff(on_off) = arrivals { on_off.peak(most) } else { most };
        if peak.bits_per_second() as f64 > 1e9 * size.bits() as f64 {
            let at = raw.rate.as_ref().map_or(raw.kind.span(), Spanned::span);
            return self.error(at, "more than a packet in each nanosecond");
        }
        Ok(())
    }

    fn changes(&self, raw: &RawTraffic) -> Checked<Vec<(Time, Rate)>> {
        if let Some(more) = raw.changes.get(MAX_CHANGES) {
            return self.error(more.span(), format!("more than {MAX_CHANGES} changes"));
        }
        let mut changes: Vec<(Time, Rate)> = Vec::new();
        for spanned in &raw.changes {
            let change = spanned.get_ref();
            let at = Time::ZERO + self.not_negative(Some(&change.at))?.unwrap_or(Span::ZERO);
            self.later(&change.at, changes.last().map(|before| before.0))?;
            changes.push((at, change.rate.get_ref().0));
        }
        Ok(changes)
    }

    /// A trace from the scenario itself or from a file beside it.
    fn trace(&self, raw: &RawTraffic) -> Checked<Trace> {
        let (at, text) = match (&raw.packets, &raw.file) {
            (Some(_), Some(file)) => {
                return self.error(file.span(), "a trace has `packets` or `file`, not both");
            }
            (Some(packets), None) => (packets.span(), packets.get_ref().clone()),
            (None, Some(file)) => {
                let path = self.beside(file.get_ref());
                let text = match std::fs::metadata(&path) {
                    Ok(found) if found.len() > MAX_TRACE_FILE => {
                        Err(format!("larger than {}", Bytes(MAX_TRACE_FILE)))
                    }
                    Ok(found) if !found.is_file() => Err("is no file".to_owned()),
                    _ => std::fs::read_to_string(&path).map_err(|error| error.to_string()),
                };
                match text {
                    Ok(text) => (file.span(), text),
                    Err(why) => {
                        return self.error(file.span(), format!("cannot read {}: {why}", path.display()));
                    }
                }
            }
            (None, None) => {
                return self.error(
                    raw.kind.span(),
                    "a trace needs `file`, or `packets` as lines of seconds and bytes",
                );
            }
        };
        text.parse().or_else(|why: String| self.error(at, why))
    }
}
