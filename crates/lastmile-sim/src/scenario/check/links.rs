//! Links, their queues and routers.

use std::collections::BTreeSet;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::link::Direction;
use super::{Check, Checked, ScenarioFile};
use crate::network::wlan::WlanConfig;
use crate::scenario::raw::RawLink;
use crate::scenario::{LinkSpec, Scenario};

/// Hosts that a message lists at most.
const SHOWN: usize = 8;
/// Names as alike as this, by Jaro and Winkler, are one misspelt.
const ALIKE: f64 = 0.8;

/// Lays the keys of each way back over those of its link.
pub(in crate::scenario) fn fill_back(file: &ScenarioFile<'_>, document: &mut DeTable<'_>) -> Checked<()> {
    let Some(DeValue::Array(links)) = document.get_mut("link").map(Spanned::get_mut) else { return Ok(()) };
    for (index, link) in links.iter_mut().enumerate() {
        let DeValue::Table(link) = link.get_mut() else { continue };
        let forth = link.clone();
        let Some(DeValue::Table(back)) = link.get_mut("back").map(Spanned::get_mut) else { continue };
        if let Some(key) = ["from", "to", "one_way", "back"].into_iter().find(|key| back.contains_key(*key)) {
            let path = format!("link[{index}].back.{key}");
            return Err(file.error_at(&path, "belongs to the whole link, not to its way back"));
        }
        let has = |key| back.contains_key(key);
        // A rate takes the place of a trace or a walk, and a trace that of a rate.
        let (rate, trace) = (has("rate"), has("trace"));
        let own =
            [("back", true), ("one_way", true), ("rate", trace), ("trace", rate), ("walk", rate || trace)];
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
        for of in self.directions() {
            let Direction { link, back } = of;
            let raw = &self.raw.link[link];
            let key = |key: &str| format!("link[{link}].{key}");
            let (from, to) = (
                self.vertex(scenario, &key("from"), &raw.from)?,
                self.vertex(scenario, &key("to"), &raw.to)?,
            );
            self.ensure(from != to, || (key("to"), "a link from a node to itself"))?;
            self.ensure(!raw.one_way || raw.back.is_none(), || {
                (key("back"), "a link that is one_way has no way back")
            })?;
            let (from, to) = if back { (to, from) } else { (from, to) };
            self.ensure(scenario.links.iter().all(|other| (other.from, other.to) != (from, to)), || {
                let (from, to) = (scenario.vertex_name(from), scenario.vertex_name(to));
                (key("to"), format!("there is a link from {from} to {to} already"))
            })?;
            let raw = raw.back.as_deref().filter(|_| back).unwrap_or(raw);
            let mut config = self.link(raw, of)?;
            let (losses, loss_flows) = self.losses(&raw.losses, of)?;
            config.losses = losses;
            let walk = self.walk(raw, of, scenario.duration)?;
            scenario.links.push(LinkSpec { from, to, config, walk, loss_flows });
        }
        self.wlans(scenario)?;
        let edges = scenario.edges();
        let neighbours = |vertex: usize| {
            let ends = edges.iter().flat_map(|edge| [(edge.from, edge.to), (edge.to, edge.from)]);
            ends.filter(|end| end.0 == vertex).map(|end| end.1).collect::<BTreeSet<_>>().len()
        };
        // A router that leads nowhere is a host's name misspelt.
        for (index, router) in scenario.routers.iter().enumerate() {
            self.ensure(neighbours(scenario.hosts.len() + index) >= 2, || {
                (self.named(router), no_host(router, scenario.hosts.iter().map(|host| host.name.as_str())))
            })?;
        }
        for (index, host) in scenario.hosts.iter().enumerate() {
            self.ensure(neighbours(index) > 0, || {
                (format!("host.{}", host.name), "this host is on no link")
            })?;
        }
        Ok(())
    }

    /// Path of the key that names a router first.
    fn named(&self, router: &str) -> String {
        let end = |(link, raw): (usize, &RawLink)| {
            let key = if raw.from == *router { "from" } else { "to" };
            (raw.from == *router || raw.to == *router).then(|| format!("link[{link}].{key}"))
        };
        let station = |(wlan, raw): (usize, &WlanConfig)| {
            let station = raw.station.iter().position(|station| station.name == *router)?;
            Some(format!("wlan[{wlan}].station[{station}].name"))
        };
        let found = self.raw.link.iter().enumerate().find_map(end);
        found.or_else(|| self.raw.wlan.iter().enumerate().find_map(station)).unwrap_or_default()
    }

    pub(super) fn vertex(&self, scenario: &mut Scenario, path: &str, name: &str) -> Checked<usize> {
        if let Some(host) = scenario.host(name) {
            return Ok(host);
        }
        let hosts = scenario.hosts.len();
        if let Some(router) = scenario.routers.iter().position(|router| router == name) {
            return Ok(hosts + router);
        }
        self.name(path, name)?;
        scenario.routers.push(name.to_owned());
        Ok(hosts + scenario.routers.len() - 1)
    }
}

/// The fault of a name that is neither a host's nor a router's between two others, and the name that is probably meant.
fn no_host<'a>(name: &str, hosts: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = hosts.collect();
    let alike = |host: &&&str| strsim::jaro_winkler(host, name) >= ALIKE;
    let end = match (known.iter().find(alike), &known[..known.len().min(SHOWN)]) {
        (Some(meant), _) => format!(": did you mean {meant:?}?"),
        (None, []) => String::new(),
        (None, shown) => format!("; hosts: {}", shown.join(", ")),
    };
    format!("no host is called {name:?}, and a router needs two neighbours{end}")
}
