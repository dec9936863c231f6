//! Links, their queues and routers.

use core::ops::Range;
use std::collections::BTreeSet;

use lastmile::time::Span;
use lastmile::units::Bytes;
use toml::Spanned;

use super::{Check, Checked, LARGEST_IP_PACKET};
use crate::path::error::Loss;
use crate::path::link::{DEFAULT_QUEUE_PACKETS, LinkConfig, LinkConfigError, QueueLimit};
use crate::scenario::raw::{RawBack, RawLink, RawLoss, RawTraffic};
use crate::scenario::{LinkSpec, Scenario};

/// What endpoints send; a queue that cannot hold one would never let a probe pass.
const PROBE: u64 = 1500;
/// What waits and what is on its way is kept in memory.
const MAX_QUEUE_PACKETS: u32 = 1_000_000;
const MAX_QUEUE_BYTES: Bytes = Bytes(100_000_000);
/// Changes of one link.
const MAX_CHANGES: usize = 100_000;
const MAX_DELAY: Span = Span::from_secs(60);

impl Check<'_> {
    pub(super) fn links(&self, scenario: &mut Scenario) -> Checked<()> {
        let largest_traffic =
            self.raw.traffic.iter().filter_map(|t| Some(t.get_ref().size.as_ref()?.get_ref().0.0)).max();
        let probe = if self.raw.measure.is_empty() { 0 } else { PROBE };
        let largest = Bytes(largest_traffic.unwrap_or(0).max(probe));
        for spanned in &self.raw.link {
            let raw = spanned.get_ref();
            let (from, to) = (self.vertex(scenario, &raw.from)?, self.vertex(scenario, &raw.to)?);
            if from == to {
                return self.error(raw.to.span(), "a link from a node to itself");
            }
            let forth = self.link(raw, None, largest)?;
            self.add_link(scenario, LinkSpec { from, to, config: forth.0, loss_flows: forth.1 }, &raw.to)?;
            match &raw.back {
                Some(back) if raw.one_way => {
                    return self.error(back.span(), "a link that is one_way has no way back");
                }
                back => {
                    let back = back.as_ref().map(Spanned::get_ref);
                    if !raw.one_way {
                        let (config, loss_flows) = self.link(raw, back, largest)?;
                        let spec = LinkSpec { from: to, to: from, config, loss_flows };
                        self.add_link(scenario, spec, &raw.to)?;
                    }
                }
            }
        }
        self.wlans(scenario)?;
        self.dead_ends(scenario)?;
        for name in self.raw.host.keys() {
            let vertex = scenario.host(name.get_ref());
            if !scenario.edges().iter().any(|edge| Some(edge.from) == vertex || Some(edge.to) == vertex) {
                return self.error(name.span(), "this host is on no link");
            }
        }
        Ok(())
    }

    /// A router that leads nowhere is a host's name misspelt.
    fn dead_ends(&self, scenario: &Scenario) -> Checked<()> {
        for (index, router) in scenario.routers.iter().enumerate() {
            let vertex = scenario.hosts.len() + index;
            let edges = scenario.edges();
            let mut neighbours: Vec<_> = edges
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
                let on_air = |wlan: &&Spanned<crate::wlan::WlanConfig>| {
                    wlan.get_ref().station.iter().any(|station| station.name == *router)
                };
                let air = self.raw.wlan.iter().find(on_air).map_or(0..0, Spanned::span);
                let span = names.into_iter().find(|n| n.get_ref() == router).map_or(air, Spanned::span);
                let reason = format!("{router:?} is no host, and as a router it leads nowhere");
                return self.error(span, reason);
            }
        }
        Ok(())
    }

    pub(super) fn vertex(&self, scenario: &mut Scenario, name: &Spanned<String>) -> Checked<usize> {
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

    fn link(
        &self,
        forth: &RawLink,
        back: Option<&RawBack>,
        largest: Bytes,
    ) -> Checked<(LinkConfig, Vec<Vec<usize>>)> {
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
        let limit = queue.map_or(QueueLimit::Packets(DEFAULT_QUEUE_PACKETS), |at| at.get_ref().0);
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
        let discipline = back.and_then(|b| b.discipline.as_ref()).or(forth.discipline.as_ref());
        let shaper = back.and_then(|b| b.shaper.as_ref()).or(forth.shaper.as_ref());
        let changes = back.and_then(|b| b.changes.as_ref()).or(forth.changes.as_ref());
        let losses = back.and_then(|b| b.losses.as_ref()).or(forth.losses.as_ref());
        let (losses_found, loss_flows) = self.losses(losses.map_or(&[], |l| l.get_ref()))?;
        let config = LinkConfig {
            rate: rate.map(|rate| self.rate(rate)).transpose()?,
            delay: self.not_negative(delay)?.unwrap_or(Span::ZERO),
            overhead: frame,
            queue: limit,
            discipline: discipline.map(|d| d.get_ref().clone()).unwrap_or_default(),
            shaper: shaper.map(|s| s.get_ref().clone()),
            schedule: changes.map(|c| c.get_ref().clone()).unwrap_or_default(),
            losses: losses_found,
            ..LinkConfig::default()
        };
        if let Err(LinkConfigError { key, reason }) = config.check() {
            let spans = [
                ("discipline", discipline.map(Spanned::span)),
                ("shaper", shaper.map(Spanned::span)),
                ("losses", losses.map(Spanned::span)),
                ("delay", changes.map(Spanned::span)),
            ];
            let at = spans.into_iter().find(|(name, _)| key.starts_with(name)).and_then(|found| found.1);
            // What stands below the key that the span names.
            let below = key.split_once(": ").map_or(String::new(), |(_, rest)| format!("{rest}: "));
            return self.error(back_or(at, Some(forth.from.span())), format!("{below}{reason}"));
        }
        if let Some(late) = changes.filter(|c| c.get_ref().len() > MAX_CHANGES) {
            return self.error(late.span(), format!("more than {MAX_CHANGES} changes"));
        }
        if let Some(at) =
            changes.filter(|c| c.get_ref().iter().any(|c| c.delay.is_some_and(|d| d > MAX_DELAY)))
        {
            return self.error(at.span(), format!("a delay longer than {MAX_DELAY}"));
        }
        Ok((config, loss_flows))
    }

    fn losses(&self, raw: &[Spanned<RawLoss>]) -> Checked<(Vec<Loss>, Vec<Vec<usize>>)> {
        let (mut losses, mut flows) = (Vec::new(), Vec::new());
        let mut names = BTreeSet::new();
        for (index, spanned) in raw.iter().enumerate() {
            let one = spanned.get_ref();
            let name = one.name.as_ref().map(Spanned::get_ref).filter(|name| !name.is_empty());
            // Two of one name would lose the same packets.
            if !names.insert(name.cloned().unwrap_or_else(|| index.to_string())) {
                let at = one.name.as_ref().map_or(spanned.span(), Spanned::span);
                return self.error(
                    at,
                    "another channel of this link has this name: they would draw the same numbers",
                );
            }
            losses.push(Loss {
                model: one.model.clone(),
                place: one.place,
                flows: Vec::new(),
                name: name.cloned().unwrap_or_default(),
            });
            let named = |(index, traffic): (usize, &Spanned<RawTraffic>), wanted: &str| {
                let own = traffic.get_ref().name.as_ref().map(Spanned::get_ref);
                own.map_or(format!("traffic{index}") == wanted, |own| own == wanted)
            };
            let mut of = Vec::new();
            for flow in &one.flows {
                let found = self.raw.traffic.iter().enumerate().position(|t| named(t, flow.get_ref()));
                match found {
                    Some(found) => of.push(found),
                    None => {
                        let reason = format!("no traffic is called {:?}", flow.get_ref());
                        return self.error(flow.span(), reason);
                    }
                }
            }
            flows.push(of);
        }
        Ok((losses, flows))
    }
}
