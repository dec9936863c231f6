//! The simulator's own traffic.

use std::collections::BTreeSet;
use std::sync::Arc;

use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use toml::Spanned;

use super::{Check, Checked, LARGEST_IP_PACKET};
use crate::network::traffic::{Arrivals, Lengths, OnOff, Trace};
use crate::scenario::raw::{Kind, RawTraffic};
use crate::scenario::{Scenario, TrafficSpec};

/// IPv4 and UDP header.
const SMALLEST_IP_PACKET: u64 = 28;
/// A file of packets that is larger is not read; packets of all traces together have 16 bytes each.
const MAX_TRACE_FILE: u64 = 64_000_000;
const MAX_TRACED: usize = 10_000_000;
/// Changes of one source's rate.
const MAX_CHANGES: usize = 10_000;
/// Tails heavier than this have no mean, or one that no run would show.
const SHAPES: core::ops::RangeInclusive<f64> = 1.05..=100.0;

/// Keys that mean something to some kinds only: to others they would be read as if they did something.
#[rustfmt::skip]
const OF_KINDS: [(&str, &[Kind]); 12] = {
    use Kind::{Cbr, File, Files, Ftp, OnOff, Pareto, Poisson, Tcp, Trace};
    const SOURCES: &[Kind] = &[Cbr, Poisson, OnOff, Pareto];
    [
        ("rate", SOURCES), ("size", SOURCES), ("changes", SOURCES), ("on", &[OnOff, Pareto]), ("off", &[OnOff, Pareto]),
        ("shape", &[Pareto]), ("file", &[Trace]), ("packets", &[Trace]), ("bytes", &[File, Files]),
        ("bytes_max", &[Files]), ("pause", &[Files]), ("tcp", &[Ftp, Tcp, File, Files]),
    ]
};

/// A table and its place in the list.
#[derive(Clone, Copy)]
pub(super) struct Flow<'r> {
    pub(super) index: usize,
    pub(super) raw: &'r RawTraffic,
}

impl Flow<'_> {
    /// The path of a key.
    pub(super) fn key(self, key: &str) -> String {
        format!("traffic[{}].{key}", self.index)
    }
}

impl Check<'_> {
    pub(super) fn traffic(&self, scenario: &mut Scenario) -> Checked<()> {
        let end = Time::ZERO + scenario.duration;
        let mut names = BTreeSet::new();
        for (index, raw) in self.raw.traffic.iter().enumerate() {
            let (flow, own) = (Flow { index, raw }, format!("traffic[{index}]"));
            let (from, to) = self.ends(scenario, &own, (&raw.from, &raw.to), raw.kind.is_tcp())?;
            let name = raw.name.clone().unwrap_or_else(|| format!("traffic{index}"));
            let path = if raw.name.is_some() { flow.key("name") } else { own };
            self.name(&path, &name)?;
            self.ensure(names.insert(name.clone()), || (path, format!("two flows are called {name:?}")))?;
            let (start, start_within) = (Time::ZERO + raw.start, raw.start_within);
            let stop = raw.stop.map_or(Time::MAX, |stop| Time::ZERO + stop);
            self.ensure(start_within == Span::ZERO || start + start_within < stop.min(end), || {
                (flow.key("start_within"), "may start only after its stop or the run's end")
            })?;
            self.ensure(start < end, || (flow.key("start"), "starts after the run's end"))?;
            self.ensure(stop > start, || (flow.key("stop"), "stops before it starts"))?;
            self.only_its_keys(flow)?;
            let tcp = self.tcp(flow)?;
            let (arrivals, rate, size) = match (&tcp, raw.kind) {
                (Some(tcp), _) => (Arrivals::Cbr, Rate::ip(0), tcp.config.segment + tcp.config.header),
                (None, Kind::Trace) => {
                    let trace = self.trace(flow, scenario)?;
                    let largest = trace.packets().iter().map(|packet| packet.1).max().unwrap_or(Bytes::ZERO);
                    (Arrivals::Trace(Arc::new(trace)), Rate::ip(0), largest)
                }
                _ => {
                    let (rate, size) =
                        (*self.required(flow, "rate", &raw.rate)?, *self.required(flow, "size", &raw.size)?);
                    // A schedule may begin with silence; without one it would never send.
                    let sends =
                        rate > Rate::ip(0) || raw.changes.iter().any(|change| change.rate > Rate::ip(0));
                    self.ensure(sends, || (flow.key("rate"), "a rate of zero carries nothing"))?;
                    self.ensure((SMALLEST_IP_PACKET..=LARGEST_IP_PACKET).contains(&size.0), || {
                        let range = format!("{SMALLEST_IP_PACKET} to {LARGEST_IP_PACKET} bytes");
                        (flow.key("size"), format!("an IP packet has {range}, not {size}"))
                    })?;
                    (self.arrivals(flow, rate, size)?, rate, size)
                }
            };
            let changes = self.changes(flow)?;
            // Packets that would leave at one moment, all of them.
            let most =
                changes.iter().fold(rate, |most, change| if change.1 > most { change.1 } else { most });
            let peak = if let Arrivals::OnOff(on_off) = &arrivals { on_off.peak(most) } else { most };
            self.ensure(peak.bits_per_second() as f64 <= 1e9 * size.bits() as f64, || {
                (flow.key("rate"), "more than a packet in each nanosecond")
            })?;
            let spec =
                TrafficSpec { name, arrivals, from, to, rate, size, start, start_within, stop, changes, tcp };
            scenario.traffic.push(spec);
        }
        Ok(())
    }

    pub(super) fn required<'r, T>(&self, flow: Flow<'_>, key: &str, value: &'r Option<T>) -> Checked<&'r T> {
        value.as_ref().ok_or_else(|| {
            self.blame(&flow.key("kind"), format!("traffic of this kind needs the key `{key}`"))
        })
    }

    fn only_its_keys(&self, flow: Flow<'_>) -> Checked<()> {
        let tables = self.file.document.get("traffic").and_then(|list| list.get_ref().as_array());
        let Some(table) = tables.and_then(|list| list.get(flow.index)?.get_ref().as_table()) else {
            return Ok(());
        };
        let stray = |(key, kinds): &&(&str, &[Kind])| {
            let there = table.get(*key).map(Spanned::get_ref);
            // An empty list says nothing.
            there.is_some_and(|value| value.as_array().is_none_or(|list| !list.is_empty()))
                && !kinds.contains(&flow.raw.kind)
        };
        let found = OF_KINDS.iter().find(stray);
        self.ensure(found.is_none(), || {
            let key = found.map_or("", |found| found.0);
            (flow.key(key), format!("`{key}` means nothing to traffic of this kind"))
        })
    }

    fn arrivals(&self, flow: Flow<'_>, rate: Rate, size: Bytes) -> Checked<Arrivals> {
        let raw = flow.raw;
        let lengths = match raw.kind {
            Kind::Cbr => return Ok(Arrivals::Cbr),
            Kind::OnOff => Lengths::Exponential,
            Kind::Pareto => {
                let shape = *self.required(flow, "shape", &raw.shape)?;
                self.ensure(SHAPES.contains(&shape), || {
                    let (least, most) = (SHAPES.start(), SHAPES.end());
                    (flow.key("shape"), format!("a shape from {least} to {most}: below one there is no mean"))
                })?;
                Lengths::Pareto { shape }
            }
            _ => return Ok(Arrivals::Poisson),
        };
        let (on, off) = (*self.required(flow, "on", &raw.on)?, *self.required(flow, "off", &raw.off)?);
        let on_off = OnOff { lengths, on, off };
        let packet = on_off.peak(rate).time_for(size);
        self.ensure(rate.bits_per_second() == 0 || on >= packet, || {
            (flow.key("on"), format!("shorter than one packet takes at the bursts' rate ({packet})"))
        })?;
        Ok(Arrivals::OnOff(on_off))
    }

    fn changes(&self, flow: Flow<'_>) -> Checked<Vec<(Time, Rate)>> {
        self.at_most(&flow.key("changes"), &flow.raw.changes, MAX_CHANGES, "changes")?;
        let mut changes: Vec<(Time, Rate)> = Vec::new();
        for (number, change) in flow.raw.changes.iter().enumerate() {
            let path = flow.key(&format!("changes[{number}].at"));
            self.later(&path, change.at, changes.last().map(|before| before.0))?;
            changes.push((Time::ZERO + change.at, change.rate));
        }
        Ok(changes)
    }

    /// The text of a file, by its way from the scenario's folder.
    pub(crate) fn read_beside(&self, file: &str) -> Result<String, String> {
        let path = self.beside(file);
        let text = match std::fs::metadata(&path) {
            Ok(found) if found.len() > MAX_TRACE_FILE => {
                Err(format!("larger than {}", Bytes(MAX_TRACE_FILE)))
            }
            Ok(found) if !found.is_file() => Err("is no file".to_owned()),
            _ => std::fs::read_to_string(&path).map_err(|error| error.to_string()),
        };
        text.map_err(|why| format!("cannot read {}: {why}", path.display()))
    }

    /// A trace from the scenario itself or from a file beside it.
    fn trace(&self, flow: Flow<'_>, scenario: &Scenario) -> Checked<Trace> {
        let (key, text) = match (&flow.raw.packets, &flow.raw.file) {
            (Some(_), Some(_)) => {
                return self.refuse(&flow.key("file"), "a trace has `packets` or `file`, not both");
            }
            (Some(packets), None) => ("packets", packets.clone()),
            (None, Some(file)) => {
                ("file", self.read_beside(file).map_err(|why| self.blame(&flow.key("file"), why))?)
            }
            (None, None) => {
                let reason = "a trace needs `file`, or `packets` as lines of seconds and bytes";
                return self.refuse(&flow.key("kind"), reason);
            }
        };
        let trace: Trace = text.parse().or_else(|why: String| self.refuse(&flow.key(key), why))?;
        let packets = |spec: &TrafficSpec| match &spec.arrivals {
            Arrivals::Trace(trace) => trace.packets().len(),
            _ => 0,
        };
        let all = trace.packets().len() + scenario.traffic.iter().map(packets).sum::<usize>();
        self.ensure(all <= MAX_TRACED, || {
            (flow.key("kind"), format!("traces of more than {MAX_TRACED} packets together"))
        })?;
        Ok(trace)
    }
}
