//! The simulator's own traffic.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use toml::Spanned;

use super::{Check, Checked, LARGEST_IP_PACKET, bounds};
use crate::path::link::QueueLimit;
use crate::scenario::raw::{Kind, RawTraffic};
use crate::scenario::{Scenario, TrafficSpec};
use crate::tcp::App;
use crate::traffic::{Arrivals, Lengths, OnOff, Trace};

/// Times that a packet may cross a link in one run; at 100 ns each this is seven minutes.
pub(super) const MAX_CROSSINGS: f64 = 4e9;
/// IPv4 and UDP header.
const SMALLEST_IP_PACKET: u64 = 28;
/// A file of packets that is larger is not read.
const MAX_TRACE_FILE: u64 = 64_000_000;
/// What a packet that waits or is on its way takes, and what all may take together.
pub(super) const PACKET_MEMORY: f64 = 160.0;
pub(super) const MAX_MEMORY: f64 = 2e9;
/// What no WLAN here exceeds, in bit/s.
const FASTEST_WLAN: u64 = 600_000_000;
/// The largest MSDU (IEEE 802.11-2016, table 9-19), and LLC and SNAP, which count in it.
const MAX_MSDU: Bytes = Bytes(2304);
const LLC: Bytes = Bytes(8);
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
            if let Some(raw_start) = raw.start.as_ref().filter(|_| start >= end) {
                return self.error(raw_start.span(), "starts after the run's end");
            }
            if let Some(raw_stop) = raw.stop.as_ref().filter(|_| stop <= start) {
                return self.error(raw_stop.span(), "stops before it starts");
            }
            self.only_its_keys(raw)?;
            let tcp = self.tcp(raw)?;
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
                    let rate = if raw.changes.is_empty() { self.rate(rate)? } else { rate.get_ref().0 };
                    let size = self.size(self.required(raw, "size", raw.size.as_ref())?)?;
                    (self.arrivals(raw, rate, size)?, rate, size)
                }
            };
            let changes = self.changes(raw)?;
            self.apart(raw, &arrivals, &changes, (rate, size))?;
            if tcp.is_some() {
                self.reach(scenario, to, from, &raw.to)?;
            }
            let spec = TrafficSpec { name, arrivals, from, to, rate, size, start, stop, changes, tcp };
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

    fn changes(&self, raw: &RawTraffic) -> Checked<Vec<(Time, Rate)>> {
        if let Some(more) = raw.changes.get(MAX_CHANGES) {
            return self.error(more.span(), format!("more than {MAX_CHANGES} changes"));
        }
        let mut changes: Vec<(Time, Rate)> = Vec::new();
        for spanned in &raw.changes {
            let change = spanned.get_ref();
            let at = Time::ZERO + self.not_negative(Some(&change.at))?.unwrap_or(Span::ZERO);
            if changes.last().is_some_and(|before| before.0 >= at) {
                return self.error(change.at.span(), "not later than the change before");
            }
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
                let folder = Path::new(self.place.file).parent().unwrap_or(Path::new(""));
                let path = folder.join(file.get_ref());
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

    /// Refuses scenarios whose packets, waiting and on their way, would need too much memory.
    pub(super) fn memory(&self, scenario: &Scenario) -> Checked<()> {
        let end = Time::ZERO + scenario.duration;
        // What could be in the network at once: no more than is ever sent, nor than links and queues hold.
        let mut of_links: Vec<(f64, Option<u64>)> = vec![(0.0, None); scenario.links.len()];
        for flow in &scenario.traffic {
            let (crossings, size) = (self.crossings_of(scenario, flow, end), flow.size.0.max(28));
            for link in self.path(scenario, flow.from, flow.to).unwrap_or_default() {
                // Beyond the links are WLANs, whose queues are short.
                if let Some((sent, smallest)) = of_links.get_mut(link) {
                    *sent += crossings;
                    *smallest = Some(smallest.map_or(size, |smallest| smallest.min(size)));
                }
            }
        }
        let mut total = 0.0;
        for (link, (sent, smallest)) in scenario.links.iter().zip(of_links) {
            let smallest = smallest.unwrap_or(1500) as f64;
            let queued = match link.config.queue {
                QueueLimit::Packets(packets) => f64::from(packets),
                QueueLimit::Bytes(bytes) => bytes.0 as f64 / smallest,
            };
            let rate = bounds::fastest(link).map_or(f64::INFINITY, |rate| rate as f64);
            // A rate without a limit and no delay are no packets.
            let delay = bounds::delays(link).1.as_secs_f64();
            let flying = if delay > 0.0 { rate * delay / 8.0 / smallest } else { 0.0 };
            total += (queued + flying).min(sent) * PACKET_MEMORY;
            if total > MAX_MEMORY {
                let at = self.raw.link.iter().find(|raw| {
                    let raw = raw.get_ref();
                    let named = |vertex, name: &str| scenario.vertex_name(vertex) == name;
                    let (from, to) = (raw.from.get_ref(), raw.to.get_ref());
                    (named(link.from, from) && named(link.to, to))
                        || (named(link.from, to) && named(link.to, from))
                });
                let reason = format!(
                    "up to this link packets could need {:.1} GB of memory, more than {:.0} GB: shorten queues or delays",
                    total / 1e9,
                    MAX_MEMORY / 1e9
                );
                return self.error(at.map_or(0..0, |raw| raw.get_ref().from.span()), reason);
            }
        }
        Ok(())
    }

    /// How often packets of a flow cross a link, on the mean, or at most where that is not known beforehand.
    pub(super) fn crossings_of(&self, scenario: &Scenario, flow: &TrafficSpec, end: Time) -> f64 {
        let path = self.path(scenario, flow.from, flow.to).unwrap_or_default();
        let Some(tcp) = &flow.tcp else {
            return flow.packets(end) * path.len() as f64;
        };
        let back = self.path(scenario, flow.to, flow.from).unwrap_or_default();
        let links = || path.iter().filter_map(|&link| scenario.links.get(link));
        let seconds = (flow.stop.min(end) - flow.start).max(Span::ZERO).as_secs_f64();
        let narrowest = links().filter_map(bounds::fastest).min();
        let air = scenario.crosses_wlan(&path).then_some(FASTEST_WLAN);
        let narrowest = narrowest.into_iter().chain(air).min();
        let by_rate = narrowest.map_or(f64::INFINITY, |r| r as f64 * seconds / flow.size.bits() as f64);
        let there_and_back = path.iter().chain(&back).filter_map(|&link| scenario.links.get(link));
        let round: f64 = there_and_back.map(|link| bounds::delays(link).0.as_secs_f64()).sum();
        // Without any delay a window turns over in no time. (The sum of no numbers is minus zero.)
        let by_window =
            if round > 0.0 { f64::from(tcp.config.max_window) * seconds / round } else { f64::INFINITY };
        let bytes = match &tcp.app {
            App::File { size } => size.0 as f64,
            _ => f64::INFINITY,
        };
        let by_file = bytes / tcp.config.segment.0.max(1) as f64;
        // An ACK each, and losses.
        by_rate.min(by_window).min(by_file * 1.5) * (path.len() + back.len()) as f64
    }

    /// Refuses traffic that would take for ever.
    /// What a WLAN cannot carry: an IP packet that with LLC and SNAP is larger than an MSDU.
    pub(super) fn frames(&self, scenario: &Scenario) -> Checked<()> {
        for (flow, raw) in scenario.traffic.iter().zip(&self.raw.traffic) {
            let path = self.path(scenario, flow.from, flow.to).unwrap_or_default();
            if scenario.crosses_wlan(&path) && flow.size + LLC > MAX_MSDU {
                let raw = raw.get_ref();
                let at = raw.size.as_ref().map_or(raw.kind.span(), Spanned::span);
                let reason = format!(
                    "packets of {} cross a WLAN, whose frames carry IP packets of at most {}",
                    flow.size,
                    Bytes(MAX_MSDU.0 - LLC.0)
                );
                return self.error(at, reason);
            }
        }
        Ok(())
    }

    pub(super) fn crossings(&self, scenario: &Scenario) -> Checked<()> {
        let mut total = 0.0;
        let end = Time::ZERO + scenario.duration;
        for (flow, raw) in scenario.traffic.iter().zip(&self.raw.traffic) {
            total += self.crossings_of(scenario, flow, end);
            if total.is_infinite() {
                let reason = "nothing limits this connection: its path needs a rate or a delay";
                return self.error(raw.get_ref().kind.span(), reason);
            }
            if total > MAX_CROSSINGS {
                let reason = format!(
                    "up to this flow packets would cross links {total:.1e} times, more than {MAX_CROSSINGS:.0e}: \
                     lower the rate or shorten the run"
                );
                let raw = raw.get_ref();
                return self.error(raw.rate.as_ref().map_or(raw.kind.span(), Spanned::span), reason);
            }
        }
        Ok(())
    }
}
