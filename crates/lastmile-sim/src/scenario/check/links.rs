//! Links, their queues and routers.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::link::Direction;
use super::{Check, Checked, Place};
use crate::scenario::raw::RawLink;
use crate::scenario::{LinkSpec, Scenario};

/// Lays the keys of each way back over those of its link.
pub(in crate::scenario) fn fill_back(place: &Place<'_>, document: &mut DeTable<'_>) -> Checked<()> {
    let Some(DeValue::Array(links)) = document.get_mut("link").map(Spanned::get_mut) else { return Ok(()) };
    for (index, link) in links.iter_mut().enumerate() {
        let DeValue::Table(link) = link.get_mut() else { continue };
        let forth = link.clone();
        let Some(DeValue::Table(back)) = link.get_mut("back").map(Spanned::get_mut) else { continue };
        if let Some(key) = ["from", "to", "one_way", "back"].into_iter().find(|key| back.contains_key(*key)) {
            let path = format!("link[{index}].back.{key}");
            return Err(place.error_at(&path, "belongs to the whole link, not to its way back"));
        }
        let has = |key| back.contains_key(key);
        // A rate and a trace take the place of each other.
        let own = [("back", true), ("one_way", true), ("rate", has("trace")), ("trace", has("rate"))];
        for (key, value) in
            forth.into_iter().filter(|(key, _)| !own.contains(&(key.get_ref().as_ref(), true)))
        {
            back.entry(key).or_insert(value);
        }
    }
    Ok(())
}

impl Check<'_> {
    pub(super) fn links(&self, scenario: &mut Scenario) -> Checked<()> {
        for (link, spanned) in self.raw.link.iter().enumerate() {
            let raw = spanned.get_ref();
            let (from, to) = (self.vertex(scenario, &raw.from)?, self.vertex(scenario, &raw.to)?);
            if from == to {
                return self.error(raw.to.span(), "a link from a node to itself");
            }
            if let Some(back) = raw.back.as_ref().filter(|_| raw.one_way) {
                return self.error(back.span(), "a link that is one_way has no way back");
            }
            self.add_link(scenario, (from, to), raw, Direction { link, back: false })?;
            if !raw.one_way {
                let back = raw.back.as_ref().map_or(raw, |back| back.get_ref());
                self.add_link(scenario, (to, from), back, Direction { link, back: true })?;
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
                let stations = self.raw.wlan.iter().enumerate().find_map(|(wlan, raw)| {
                    let station = raw.get_ref().station.iter().position(|station| station.name == *router)?;
                    Some(self.station_name(wlan, station, router).span())
                });
                let named = names.into_iter().find(|n| n.get_ref() == router).map(Spanned::span);
                let span = named.or(stations).unwrap_or(0..0);
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

    fn add_link(
        &self,
        scenario: &mut Scenario,
        (from, to): (usize, usize),
        raw: &RawLink,
        of: Direction,
    ) -> Checked<()> {
        if scenario.links.iter().any(|other| (other.from, other.to) == (from, to)) {
            let (from, to) = (scenario.vertex_name(from), scenario.vertex_name(to));
            return self.error(raw.to.span(), format!("there is a link from {from} to {to} already"));
        }
        let mut config = self.link(raw, of)?;
        let losses = raw.losses.as_ref().map_or([].as_slice(), |losses| losses.get_ref());
        let (losses, loss_flows) = self.losses(losses, of)?;
        config.losses = losses;
        scenario.links.push(LinkSpec { from, to, config, loss_flows });
        Ok(())
    }
}
