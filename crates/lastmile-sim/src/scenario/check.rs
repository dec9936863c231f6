//! From a file's text to a checked [`Scenario`].

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Range;

use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use super::error::Place;
use super::raw::{At, RawBack, RawClock, RawLink, RawScenario};
use super::{HostSpec, LinkSpec, MeasureSpec, Override, Scenario, ScenarioError, TrafficSpec};
use crate::clock::{ClockConfig, MAX_SKEW_PPB, Step};
use crate::path::link::{DEFAULT_QUEUE_PACKETS, LinkConfig, QueueLimit};

/// Hosts that one scenario may have: as many as a /24 has room for.
const MAX_HOSTS: usize = 250;
/// Times that a packet may cross a link in one run; at 100 ns each this is seven minutes.
const MAX_CROSSINGS: f64 = 4e9;
/// Names become names of network interfaces in the lab, which Linux keeps this short.
const MAX_NAME: usize = 15;
const MAX_DURATION: Span = Span::from_secs(31 * 86_400);
/// What waits and what is on its way is kept in memory.
const MAX_QUEUE_PACKETS: u32 = 1_000_000;
const MAX_QUEUE_BYTES: Bytes = Bytes(100_000_000);
const MAX_DELAY: Span = Span::from_secs(60);
const LARGEST_IP_PACKET: u64 = 65_535;
/// IPv4 and UDP header.
const SMALLEST_IP_PACKET: u64 = 28;
/// What endpoints send; a queue that cannot hold one would never let a probe pass.
const PROBE: u64 = 1500;

type Checked<T> = Result<T, ScenarioError>;

pub(super) fn load(
    file: &str,
    text: &str,
    overrides: &[Override],
    check_method: &dyn Fn(&str) -> Result<(), String>,
) -> Checked<Scenario> {
    let mut place = Place { file, text, document: DeTable::new() };
    // What can be read of a broken document still tells which key an error belongs to.
    let (root, errors) = DeTable::parse_recoverable(text);
    let span = root.span();
    place.document = root.into_inner();
    if let Some(error) = errors.first() {
        return Err(place.toml_error(error));
    }
    for replace in overrides {
        replace.apply(&mut place)?;
    }
    let document = Spanned::new(span, place.document.clone());
    let raw = RawScenario::deserialize(Deserializer::from(document)).map_err(|e| place.toml_error(&e))?;
    Check { place, raw: &raw }.scenario(check_method)
}

struct Check<'a> {
    place: Place<'a>,
    raw: &'a RawScenario,
}

impl Check<'_> {
    fn error<T>(&self, span: Range<usize>, reason: impl Into<String>) -> Checked<T> {
        Err(self.place.error(span, reason))
    }

    fn scenario(&self, check_method: &dyn Fn(&str) -> Result<(), String>) -> Checked<Scenario> {
        let raw = self.raw;
        let duration = self.positive(&raw.duration)?;
        if duration > MAX_DURATION {
            return self.error(raw.duration.span(), "longer than 31 days");
        }
        let warm_up = self.not_negative(raw.warm_up.as_ref())?.unwrap_or(Span::ZERO);
        if let Some(late) = raw.warm_up.as_ref().filter(|_| warm_up >= duration) {
            return self.error(late.span(), format!("the warm-up must end before the run does ({duration})"));
        }
        let mut scenario = Scenario {
            name: raw.name.get_ref().clone(),
            description: raw.description.clone(),
            duration,
            warm_up,
            seed: raw.seed,
            hosts: self.hosts()?,
            routers: Vec::new(),
            links: Vec::new(),
            traffic: Vec::new(),
            measures: Vec::new(),
        };
        self.links(&mut scenario)?;
        self.traffic(&mut scenario)?;
        self.measures(&mut scenario, check_method)?;
        self.crossings(&scenario)?;
        Ok(scenario)
    }

    fn positive(&self, value: &At<Span>) -> Checked<Span> {
        match value.get_ref().0 {
            span if span > Span::ZERO => Ok(span),
            span => self.error(value.span(), format!("must be more than no time, not {span}")),
        }
    }

    fn not_negative(&self, value: Option<&At<Span>>) -> Checked<Option<Span>> {
        let Some(value) = value else { return Ok(None) };
        match value.get_ref().0 {
            span if span >= Span::ZERO => Ok(Some(span)),
            span => self.error(value.span(), format!("must not be negative: {span}")),
        }
    }

    fn rate(&self, value: &At<Rate>) -> Checked<Rate> {
        match value.get_ref().0 {
            rate if rate.bits_per_second() > 0 => Ok(rate),
            _ => self.error(value.span(), "a rate of zero carries nothing"),
        }
    }

    fn name(&self, name: &Spanned<String>) -> Checked<()> {
        let text = name.get_ref();
        let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if text.is_empty() || text.len() > MAX_NAME || !plain {
            let reason = format!(
                "{text:?} cannot be a name: 1 to {MAX_NAME} letters, digits, hyphens and underscores"
            );
            return self.error(name.span(), reason);
        }
        Ok(())
    }

    fn hosts(&self) -> Checked<Vec<HostSpec>> {
        let mut in_order: Vec<_> = self.raw.host.iter().collect();
        // The map sorts by name; addresses are given in the order of the file.
        in_order.sort_by_key(|(name, _)| name.span().start);
        if let Some((name, _)) = in_order.get(MAX_HOSTS) {
            return self.error(name.span(), format!("more than {MAX_HOSTS} hosts"));
        }
        let mut hosts: Vec<HostSpec> = Vec::new();
        for (index, (name, raw)) in in_order.into_iter().enumerate() {
            self.name(name)?;
            let number = index as u16 + 1;
            let mut host = HostSpec {
                name: name.get_ref().clone(),
                v4: Ipv4Addr::new(10, 77, 0, number as u8),
                v6: Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, number),
                clock: self.clock(&raw.clock)?,
            };
            if let Some(address) = &raw.address {
                match *address.get_ref() {
                    IpAddr::V4(v4) => host.v4 = v4,
                    IpAddr::V6(v6) => host.v6 = v6,
                }
                if address.get_ref().is_unspecified() || address.get_ref().is_multicast() {
                    return self.error(address.span(), "no host can have this address");
                }
            }
            if let Some(other) = hosts.iter().find(|other| other.v4 == host.v4 || other.v6 == host.v6) {
                let at = raw.address.as_ref().map_or(name.span(), Spanned::span);
                return self.error(at, format!("host {:?} has this address already", other.name));
            }
            hosts.push(host);
        }
        Ok(hosts)
    }

    fn clock(&self, raw: &RawClock) -> Checked<ClockConfig> {
        let mut clock = ClockConfig::default();
        if let Some(offset) = self.not_negative(raw.offset.as_ref())? {
            clock.offset = offset;
        }
        if let Some(skew) = &raw.skew_ppm {
            let ppb = skew.get_ref() * 1e3;
            if ppb.is_nan() || ppb.abs() > MAX_SKEW_PPB as f64 {
                return self.error(skew.span(), format!("at most {} ppm either way", MAX_SKEW_PPB / 1000));
            }
            clock.skew_ppb = libm::round(ppb) as i64;
        }
        if let Some(resolution) = &raw.resolution {
            clock.resolution = self.positive(resolution)?;
        }
        for step in &raw.steps {
            let at = Time::ZERO + self.not_negative(Some(&step.at))?.unwrap_or(Span::ZERO);
            clock.steps.push(Step { at, by: step.by.get_ref().0, announced: step.announced });
        }
        clock.steps.sort_by_key(|step| step.at);
        Ok(clock)
    }

    fn links(&self, scenario: &mut Scenario) -> Checked<()> {
        let largest_traffic = self.raw.traffic.iter().map(|t| t.get_ref().size.get_ref().0.0).max();
        let probe = if self.raw.measure.is_empty() { 0 } else { PROBE };
        let largest = Bytes(largest_traffic.unwrap_or(0).max(probe));
        for spanned in &self.raw.link {
            let raw = spanned.get_ref();
            let (from, to) = (self.vertex(scenario, &raw.from)?, self.vertex(scenario, &raw.to)?);
            if from == to {
                return self.error(raw.to.span(), "a link from a node to itself");
            }
            let forth = self.link(raw, None, largest)?;
            self.add_link(scenario, LinkSpec { from, to, config: forth }, &raw.to)?;
            match &raw.back {
                Some(back) if raw.one_way => {
                    return self.error(back.span(), "a link that is one_way has no way back");
                }
                back => {
                    let back = back.as_ref().map(Spanned::get_ref);
                    if !raw.one_way {
                        let config = self.link(raw, back, largest)?;
                        self.add_link(scenario, LinkSpec { from: to, to: from, config }, &raw.to)?;
                    }
                }
            }
        }
        self.dead_ends(scenario)?;
        for name in self.raw.host.keys() {
            let vertex = scenario.host(name.get_ref());
            if !scenario.links.iter().any(|link| Some(link.from) == vertex || Some(link.to) == vertex) {
                return self.error(name.span(), "this host is on no link");
            }
        }
        Ok(())
    }

    /// A router that leads nowhere is a host's name misspelt.
    fn dead_ends(&self, scenario: &Scenario) -> Checked<()> {
        for (index, router) in scenario.routers.iter().enumerate() {
            let vertex = scenario.hosts.len() + index;
            let mut neighbours: Vec<_> = scenario
                .links
                .iter()
                .filter_map(|link| match () {
                    () if link.from == vertex => Some(link.to),
                    () if link.to == vertex => Some(link.from),
                    () => None,
                })
                .collect();
            neighbours.sort_unstable();
            neighbours.dedup();
            if neighbours.len() < 2 {
                let names = self.raw.link.iter().flat_map(|l| [&l.get_ref().from, &l.get_ref().to]);
                let span = names.into_iter().find(|n| n.get_ref() == router).map_or(0..0, Spanned::span);
                let reason = format!("{router:?} is no host, and as a router it leads nowhere");
                return self.error(span, reason);
            }
        }
        Ok(())
    }

    fn vertex(&self, scenario: &mut Scenario, name: &Spanned<String>) -> Checked<usize> {
        if let Some(host) = scenario.host(name.get_ref()) {
            return Ok(host);
        }
        let hosts = scenario.hosts.len();
        if let Some(router) = scenario.routers.iter().position(|router| router == name.get_ref()) {
            return Ok(hosts + router);
        }
        self.name(name)?;
        scenario.routers.push(name.get_ref().clone());
        Ok(hosts + scenario.routers.len() - 1)
    }

    fn add_link(&self, scenario: &mut Scenario, link: LinkSpec, at: &Spanned<String>) -> Checked<()> {
        if scenario.links.iter().any(|other| (other.from, other.to) == (link.from, link.to)) {
            let (from, to) = (scenario.vertex_name(link.from), scenario.vertex_name(link.to));
            return self.error(at.span(), format!("there is a link from {from} to {to} already"));
        }
        scenario.links.push(link);
        Ok(())
    }

    fn link(&self, forth: &RawLink, back: Option<&RawBack>, largest: Bytes) -> Checked<LinkConfig> {
        let back_or = |b: Option<Range<usize>>, f: Option<Range<usize>>| b.or(f).unwrap_or(0..0);
        let rate = back.and_then(|b| b.rate.as_ref()).or(forth.rate.as_ref());
        let delay = back.and_then(|b| b.delay.as_ref()).or(forth.delay.as_ref());
        let queue = back.and_then(|b| b.queue.as_ref()).or(forth.queue.as_ref());
        let overhead = back.and_then(|b| b.overhead.as_ref()).or(forth.overhead.as_ref());
        let frame = overhead.map_or(Bytes::ZERO, |at| at.get_ref().0);
        if frame.0 > LARGEST_IP_PACKET {
            let span = back_or(overhead.map(Spanned::span), None);
            return self.error(span, format!("framing of more than {LARGEST_IP_PACKET} bytes"));
        }
        let limit = queue.map_or(QueueLimit::Packets(DEFAULT_QUEUE_PACKETS), |at| at.get_ref().0.0);
        let wire = largest + frame;
        let too_small = match limit {
            QueueLimit::Packets(packets) => packets == 0,
            QueueLimit::Bytes(bytes) => bytes < wire.max(Bytes(1)),
        };
        if too_small {
            let span = back_or(queue.map(Spanned::span), None);
            return self.error(span, format!("smaller than one packet ({wire} with its framing)"));
        }
        let too_large = match limit {
            QueueLimit::Packets(packets) => packets > MAX_QUEUE_PACKETS,
            QueueLimit::Bytes(bytes) => bytes > MAX_QUEUE_BYTES,
        };
        if too_large {
            let span = back_or(queue.map(Spanned::span), None);
            let reason = format!("larger than {MAX_QUEUE_PACKETS} packets or {MAX_QUEUE_BYTES}");
            return self.error(span, reason);
        }
        if let Some(long) = delay.filter(|delay| delay.get_ref().0 > MAX_DELAY) {
            return self.error(long.span(), format!("longer than {MAX_DELAY}"));
        }
        if let (Some(queue), None) = (queue, rate) {
            return self.error(queue.span(), "without a rate nothing ever waits: name a rate, or no queue");
        }
        Ok(LinkConfig {
            rate: rate.map(|rate| self.rate(rate)).transpose()?,
            delay: self.not_negative(delay)?.unwrap_or(Span::ZERO),
            overhead: frame,
            queue: limit,
        })
    }

    fn host(&self, scenario: &Scenario, name: &Spanned<String>) -> Checked<usize> {
        if let Some(host) = scenario.host(name.get_ref()) {
            return Ok(host);
        }
        let names: Vec<_> = scenario.hosts.iter().map(|host| host.name.as_str()).collect();
        let known = if names.is_empty() { "there are none".to_owned() } else { names.join(", ") };
        self.error(name.span(), format!("no host is called {:?}; hosts: {known}", name.get_ref()))
    }

    /// Two different hosts with a path between them.
    fn ends(
        &self,
        scenario: &Scenario,
        from: &Spanned<String>,
        to: &Spanned<String>,
    ) -> Checked<(usize, usize)> {
        let ends = (self.host(scenario, from)?, self.host(scenario, to)?);
        if ends.0 == ends.1 {
            return self.error(to.span(), "from a host to itself");
        }
        self.reach(scenario, ends.0, ends.1, to)?;
        Ok(ends)
    }

    fn reach(&self, scenario: &Scenario, from: usize, to: usize, at: &Spanned<String>) -> Checked<()> {
        if scenario.path(from, to).is_none() {
            let (from, to) = (scenario.vertex_name(from), scenario.vertex_name(to));
            let reason = format!("no path leads from {from} to {to} (hosts do not forward)");
            return self.error(at.span(), reason);
        }
        Ok(())
    }

    fn traffic(&self, scenario: &mut Scenario) -> Checked<()> {
        let end = Time::ZERO + scenario.duration;
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
            if scenario.traffic.iter().any(|other| other.name == name) {
                let at = raw.name.as_ref().map_or(spanned.span(), Spanned::span);
                return self.error(at, format!("two flows are called {name:?}"));
            }
            let size = raw.size.get_ref().0;
            if !(SMALLEST_IP_PACKET..=LARGEST_IP_PACKET).contains(&size.0) {
                let reason =
                    format!("an IP packet has {SMALLEST_IP_PACKET} to {LARGEST_IP_PACKET} bytes, not {size}");
                return self.error(raw.size.span(), reason);
            }
            let start = Time::ZERO + self.not_negative(raw.start.as_ref())?.unwrap_or(Span::ZERO);
            let stop = self.not_negative(raw.stop.as_ref())?.map_or(end, |stop| Time::ZERO + stop);
            if let Some(raw_start) = raw.start.as_ref().filter(|_| start >= end) {
                return self.error(raw_start.span(), "starts after the run's end");
            }
            if let Some(raw_stop) = raw.stop.as_ref().filter(|_| stop <= start) {
                return self.error(raw_stop.span(), "stops before it starts");
            }
            let rate = self.rate(&raw.rate)?;
            scenario.traffic.push(TrafficSpec {
                name,
                arrivals: raw.kind.into(),
                from,
                to,
                rate,
                size,
                start,
                stop,
            });
        }
        Ok(())
    }

    fn measures(
        &self,
        scenario: &mut Scenario,
        check_method: &dyn Fn(&str) -> Result<(), String>,
    ) -> Checked<()> {
        for spanned in &self.raw.measure {
            let raw = spanned.get_ref();
            let (from, to) = self.ends(scenario, &raw.from, &raw.to)?;
            self.reach(scenario, to, from, &raw.to)?;
            check_method(raw.method.get_ref()).or_else(|reason| self.error(raw.method.span(), reason))?;
            let start = self.not_negative(raw.start.as_ref())?.unwrap_or(scenario.warm_up);
            if let Some(late) = raw.start.as_ref().filter(|_| start >= scenario.duration) {
                return self.error(late.span(), "starts after the run's end");
            }
            let trains = raw.trains.as_ref().map_or(1, |trains| *trains.get_ref());
            if let Some(at) = raw.trains.as_ref().filter(|_| !(1..=10_000).contains(&trains)) {
                return self.error(at.span(), format!("1 to 10000 trains, not {trains}"));
            }
            scenario.measures.push(MeasureSpec {
                from,
                to,
                method: raw.method.get_ref().clone(),
                direction: raw.direction,
                trains,
                start: Time::ZERO + start,
                realtime: raw.realtime,
            });
        }
        Ok(())
    }

    /// Refuses traffic that would take for ever.
    fn crossings(&self, scenario: &Scenario) -> Checked<()> {
        let mut total = 0.0;
        let end = Time::ZERO + scenario.duration;
        for (flow, raw) in scenario.traffic.iter().zip(&self.raw.traffic) {
            let seconds = (flow.stop.min(end) - flow.start).as_secs_f64();
            let packets = flow.rate.bits_per_second() as f64 * seconds / flow.size.bits() as f64;
            total += packets * scenario.path(flow.from, flow.to).map_or(0, |path| path.len()) as f64;
            if total > MAX_CROSSINGS {
                let reason = format!(
                    "up to this flow packets would cross links {total:.1e} times, more than {MAX_CROSSINGS:.0e}: \
                     lower the rate or shorten the run"
                );
                return self.error(raw.get_ref().rate.span(), reason);
            }
        }
        Ok(())
    }
}
