//! `count = N`: one table that stands for N hosts, stations or flows, and one that names such a table for as many links,
//! measurements and flows.
//!
//! The copies of NAME are NAME-1 to NAME-N, whatever N is; 0 leaves it out. They are written into the document before anything reads it, so
//! that the rest of the program knows single things alone, and each of them, by its name, draws random numbers of its own.

use core::ops::Range;
use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use super::error::{ScenarioError, ScenarioFile};
use super::roles::{TABLES, is_counted};

/// As many as flows that a scenario may have.
const MAX_COUNT: usize = 20_000;
/// Keys and values that copies may have in all: some 200 MB.
const MAX_VALUES: usize = 2_000_000;
const TRAFFIC: &str = "traffic";
const STATIONS: &str = "station";
/// Keys that name a host, a router or a station.
const ENDS: [&str; 5] = ["from", "to", "ap", "host", "name"];

fn is_end(key: &str, list: &str) -> bool {
    ENDS.contains(&key) && (key != "name" || list == STATIONS)
}

type Value<'a> = Spanned<DeValue<'a>>;
type Counts = BTreeMap<String, usize>;

struct Copies<'p, 'a> {
    file: &'p ScenarioFile<'a>,
    ends: Counts,
    flows: Counts,
    values: usize,
}

/// True for lists of flows: their tables may have a `count` of their own, as stations may.
fn is_flow(list: &str) -> bool {
    list == TRAFFIC || is_counted(list)
}

/// Puts copies in the place of tables that have a `count`, and of tables that name such a one.
pub(super) fn expand(file: &mut ScenarioFile<'_>) -> Result<(), ScenarioError> {
    let mut document = file.document.clone();
    let mut copies = Copies { file, ends: Counts::new(), flows: Counts::new(), values: 0 };
    copies.hosts(&mut document)?;
    let stations = copies.stations(&document)?;
    copies.ends.extend(stations);
    for wlan in items(&mut document, "wlan") {
        if let DeValue::Table(wlan) = wlan.get_mut() {
            copies.list(wlan, STATIONS)?;
        }
    }
    // Flows first: lists of losses name them.
    for list in [TRAFFIC].iter().chain(TABLES).chain(&["link", "handoff"]) {
        copies.list(&mut document, list)?;
    }
    file.document = document;
    Ok(())
}

fn items<'t, 'a>(table: &'t mut DeTable<'a>, list: &str) -> &'t mut [Value<'a>] {
    match table.get_mut(list).map(Spanned::get_mut) {
        Some(DeValue::Array(items)) => items,
        _ => &mut [],
    }
}

fn text<'t>(table: &'t DeTable<'_>, key: &str) -> Option<&'t str> {
    table.get(key)?.get_ref().as_str()
}

fn named(name: &str, copy: usize) -> DeString<'static> {
    format!("{name}-{}", copy + 1).into()
}

/// Keys and values of something, itself included.
fn values(value: &DeValue<'_>) -> usize {
    match value {
        DeValue::Table(table) => 1 + table.values().map(|value| 1 + values(value.get_ref())).sum::<usize>(),
        DeValue::Array(items) => 1 + items.iter().map(|item| values(item.get_ref())).sum::<usize>(),
        _ => 1,
    }
}

impl<'a> Copies<'_, 'a> {
    fn error<T>(&self, at: Range<usize>, reason: impl Into<String>) -> Result<T, ScenarioError> {
        Err(self.file.error(at, reason))
    }

    /// A table's own count.
    fn own(&self, table: &DeTable<'_>) -> Result<Option<usize>, ScenarioError> {
        let Some(value) = table.get("count") else { return Ok(None) };
        let number = match value.get_ref() {
            DeValue::Integer(number) => usize::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        match number.filter(|number| *number <= MAX_COUNT) {
            Some(number) => Ok(Some(number)),
            None => self.error(value.span(), format!("a count is a number from 0 to {MAX_COUNT}")),
        }
    }

    /// Copies of a table, by its own count or the largest of those that it names: a multiple of each of these.
    fn many(&self, table: &DeTable<'_>, list: &str) -> Result<Option<usize>, ScenarioError> {
        let own = if list == STATIONS || is_flow(list) { self.own(table)? } else { None };
        let named = ENDS.iter().filter(|key| is_end(key, list));
        let ends = named.filter_map(|&key| Some((table.get(key)?, *self.ends.get(text(table, key)?)?)));
        let ends: Vec<_> = ends.collect();
        let many = own.or(ends.iter().map(|end| end.1).max());
        let uneven = |end: &&(&Value<'_>, usize)| {
            many.is_some_and(|many| many.checked_rem(end.1).unwrap_or(many) != 0)
        };
        if let Some((value, count)) = ends.iter().find(uneven) {
            let reason = format!("{count} of these for {} copies: not as many for each", many.unwrap_or(0));
            return self.error(value.span(), reason);
        }
        Ok(many)
    }

    /// Refuses more than memory should hold.
    fn weigh(&mut self, at: &Range<usize>, weight: usize, many: usize) -> Result<(), ScenarioError> {
        self.values = self.values.saturating_add(weight.saturating_mul(many));
        if self.values > MAX_VALUES {
            return self.error(at.clone(), "copies of too much: the scenario would not fit into memory");
        }
        Ok(())
    }

    fn hosts(&mut self, document: &mut DeTable<'a>) -> Result<(), ScenarioError> {
        let Some(DeValue::Table(hosts)) = document.get_mut("host").map(Spanned::get_mut) else {
            return Ok(());
        };
        for (name, mut host) in core::mem::take(hosts) {
            let count = match host.get_ref() {
                DeValue::Table(host) => self.own(host)?,
                _ => None,
            };
            let (Some(count), DeValue::Table(table)) = (count, host.get_mut()) else {
                hosts.insert(name, host);
                continue;
            };
            table.remove("count");
            if let Some(address) = table.get("address") {
                return self.error(address.span(), "copies have addresses of their own: leave it out");
            }
            self.weigh(&host.span(), values(host.get_ref()), count)?;
            for copy in 0..count {
                let name = Spanned::new(name.span(), named(name.get_ref(), copy));
                hosts.insert(name, host.clone());
            }
            self.ends.insert(name.get_ref().to_string(), count);
        }
        Ok(())
    }

    /// Routers that are stations, by their own counts.
    fn stations(&self, document: &DeTable<'_>) -> Result<Counts, ScenarioError> {
        let mut found = Counts::new();
        let wlans = document.get("wlan").and_then(|wlans| wlans.get_ref().as_array());
        for wlan in wlans.into_iter().flat_map(|wlans| wlans.iter()) {
            let stations = wlan.get_ref().get("station").and_then(|stations| stations.get_ref().as_array());
            for station in stations.into_iter().flat_map(|stations| stations.iter()) {
                if let DeValue::Table(station) = station.get_ref()
                    && let (Some(count), Some(name)) = (self.own(station)?, text(station, "name"))
                {
                    found.insert(name.to_owned(), count);
                }
            }
        }
        Ok(found)
    }

    /// Copies the elements of a list.
    fn list(&mut self, table: &mut DeTable<'a>, list: &str) -> Result<(), ScenarioError> {
        let Some(DeValue::Array(items)) = table.get_mut(list).map(Spanned::get_mut) else { return Ok(()) };
        let mut all = DeArray::new();
        for (index, mut item) in core::mem::replace(items, DeArray::new()).into_iter().enumerate() {
            let (span, weight) = (item.span(), values(item.get_ref()));
            let DeValue::Table(single) = item.get_mut() else {
                all.push(item);
                continue;
            };
            let many = self.many(single, list)?;
            self.weigh(&span, weight, many.unwrap_or(1))?;
            if let Some(many) = many.filter(|_| is_flow(list)) {
                // One without a name gets one by its place.
                let name = || Spanned::new(span.clone(), DeValue::String(format!("{list}{index}").into()));
                let name = single.entry(Spanned::new(0..0, "name".into())).or_insert_with(name);
                self.flows.extend(name.get_ref().as_str().map(|name| (name.to_owned(), many)));
            }
            for copy in 0..many.unwrap_or(1) {
                let mut table = single.clone();
                if many.is_some() {
                    self.rename(&mut table, copy, list);
                }
                self.losses(&mut table, copy, many.unwrap_or(1));
                all.push(Spanned::new(span.clone(), DeValue::Table(table)));
            }
        }
        *items = all;
        Ok(())
    }

    /// Gives a copy its names.
    fn rename(&self, table: &mut DeTable<'a>, copy: usize, list: &str) {
        let flow = is_flow(list);
        if flow || list == STATIONS {
            table.remove("count");
        }
        for (key, value) in table.iter_mut() {
            let DeValue::String(name) = value.get_mut() else { continue };
            let count = match key.get_ref().as_ref() {
                "name" if flow => Some(usize::MAX),
                key if is_end(key, list) => self.ends.get(name.as_ref()).copied(),
                _ => None,
            };
            if let Some(count) = count {
                *name = named(name, copy % count);
            }
        }
    }

    /// Losses of flows that are copied: on one link those of all copies, on copies of a link those that belong together.
    fn losses(&self, table: &mut DeTable<'a>, copy: usize, many: usize) {
        if let Some(DeValue::Table(back)) = table.get_mut("back").map(Spanned::get_mut) {
            self.losses(back, copy, many);
        }
        for loss in items(table, "losses") {
            let DeValue::Table(loss) = loss.get_mut() else { continue };
            let Some(DeValue::Array(flows)) = loss.get_mut("flows").map(Spanned::get_mut) else { continue };
            let mut all = DeArray::new();
            for flow in flows.iter() {
                match flow.get_ref().as_str().and_then(|name| Some((name, *self.flows.get(name)?))) {
                    None => all.push(flow.clone()),
                    Some((name, count)) => {
                        let own = |one: &usize| one % many == copy % count.min(many);
                        for one in (0..count).filter(own) {
                            all.push(Spanned::new(flow.span(), DeValue::String(named(name, one))));
                        }
                    }
                }
            }
            *flows = all;
        }
    }
}
