//! WLANs.

use std::collections::BTreeSet;

use super::{Check, Checked};
use crate::network::trace::Quantity;
use crate::network::wlan::{Medium, Standard, StationChange, StationConfig, StationTrace, WlanConfig};
use crate::scenario::{Scenario, WlanSpec};

/// Packets in the queues of one WLAN's stations, which are kept in memory.
const MAX_QUEUED: u64 = 1_000_000;

/// Keys that mean something to some standards only.
const OF_STANDARDS: [(&str, &[Standard]); 8] = [
    ("preamble", &[Standard::B, Standard::G]),
    ("slot", &[Standard::G]),
    ("protection", &[Standard::G]),
    ("band", &[Standard::N]),
    ("channel_mhz", &[Standard::N]),
    ("streams", &[Standard::N]),
    ("short_guard", &[Standard::N]),
    ("ampdu", &[Standard::N]),
];
/// Keys of a client's signal that `snr_db` replaces.
const OF_DISTANCE: [&str; 5] =
    ["distance_m", "tx_power_dbm", "reference_loss_db", "exponent", "noise_figure_db"];
/// Keys of clients alone; their values count both ways.
const OF_CLIENTS: [&str; 9] = [
    "rate",
    "down_rate",
    "rate_control",
    "frame_error",
    "down_frame_error",
    "channel",
    "markov",
    "schedule",
    "trace",
];

impl Check<'_> {
    pub(super) fn wlans(&self, scenario: &mut Scenario) -> Checked<()> {
        let ends = |edge: super::super::Edge| (edge.from, edge.to);
        let mut joined: BTreeSet<_> = scenario.edges().into_iter().map(ends).collect();
        for (index, config) in self.raw.wlan.iter().enumerate() {
            let (mut config, at) = (config.clone(), format!("wlan[{index}]"));
            self.open_traces(&mut config, &at)?;
            let config = &config;
            self.meaningless(config, &at)?;
            let mut vertices = Vec::new();
            for (number, station) in config.station.iter().enumerate() {
                let own = format!("{at}.station[{number}]");
                self.station(station, &own)?;
                vertices.push(self.vertex(scenario, &format!("{own}.name"), &station.name)?);
            }
            let queued: u64 = config.station.iter().map(|station| u64::from(station.queue)).sum();
            self.ensure(queued <= MAX_QUEUED, || {
                (format!("{at}.station"), format!("queues of all stations hold at most {MAX_QUEUED} packets"))
            })?;
            let spec = WlanSpec { config: config.clone(), directions: Vec::new() };
            let medium = Medium::new(config, scenario.seed, spec.name());
            let medium = medium.map_err(|error| self.blame(&format!("{at}.{}", error.key), error.reason))?;
            let ends =
                |(port, from, to): (_, usize, usize)| Some((port, *vertices.get(from)?, *vertices.get(to)?));
            let directions: Vec<_> = medium.directions().filter_map(ends).collect();
            for &(_, from, to) in &directions {
                if !joined.insert((from, to)) {
                    let (from, to) = (scenario.vertex_name(from), scenario.vertex_name(to));
                    let number =
                        config.station.iter().position(|s| s.ap.is_some() && [from, to].contains(&&*s.name));
                    let reason = format!("{from} and {to} are joined already, by a link or another WLAN");
                    return self.refuse(&format!("{at}.station[{}].ap", number.unwrap_or(0)), reason);
                }
            }
            scenario.wlans.push(WlanSpec { directions, ..spec });
        }
        Ok(())
    }

    /// Opens the traces that drive stations.
    fn open_traces(&self, config: &mut WlanConfig, at: &str) -> Checked<()> {
        for (number, station) in config.station.iter_mut().enumerate() {
            if let Some(StationTrace::Named(named)) = &station.trace {
                let opened = self.open_trace(named, &format!("{at}.station[{number}].trace"))?;
                station.trace = Some(StationTrace::Open(opened));
            }
        }
        Ok(())
    }

    /// Refuses keys of the WLAN that other keys of it make meaningless.
    fn meaningless(&self, config: &WlanConfig, at: &str) -> Checked<()> {
        for (key, standards) in OF_STANDARDS {
            let path = format!("{at}.{key}");
            self.ensure(standards.contains(&config.standard) || !self.file.has(&path), || {
                let of: Vec<_> = standards.iter().map(|standard| format!("802.11{standard}")).collect();
                let (own, of) = (config.standard, of.join(" and "));
                (&path, format!("means nothing to 802.11{own}, only to {of}"))
            })?;
        }
        Ok(())
    }

    /// The same of a station.
    fn station(&self, station: &StationConfig, at: &str) -> Checked<()> {
        let key = |key: &str| format!("{at}.{key}");
        let has = |name: &str| self.file.has(&key(name));
        self.ensure(!station.name.is_empty(), || (key("name"), "every station needs a name of its own"))?;
        let stray = OF_CLIENTS.iter().find(|key| station.ap.is_none() && has(key));
        self.ensure(stray.is_none(), || {
            (key(stray.unwrap_or(&"")), "belongs to each client, and counts both ways")
        })?;
        let Some(channel) = &station.channel else { return Ok(()) };
        // A client that begins with a given ratio may come to have a distance.
        let driven =
            matches!(&station.trace, Some(StationTrace::Open(t)) if t.quantity() == Quantity::Distance);
        let moves = driven || station.schedule.iter().any(|change| change.distance_m.is_some());
        let counts = |key: &str| channel.snr_db.is_none() || moves && key != "distance_m";
        let stray = OF_DISTANCE.into_iter().find(|key| !counts(key) && has(&format!("channel.{key}")));
        self.ensure(stray.is_none(), || {
            let stray = stray.unwrap_or_default();
            let reason = format!("means nothing beside `snr_db`, which replaces the result of {stray}");
            (key(&format!("channel.{stray}")), reason)
        })?;
        self.ensure(has("channel.shadowing_db") || !has("channel.coherence"), || {
            (key("channel.coherence"), "means nothing without `shadowing_db`")
        })?;
        for (number, change) in station.schedule.iter().enumerate() {
            let path = key(&format!("schedule[{number}]"));
            self.ensure(change.distance_m.is_none() || change.snr_db.is_none(), || {
                (format!("{path}.distance_m"), "means nothing beside `snr_db`")
            })?;
            let same = StationChange { at: change.at, ..Default::default() };
            self.ensure(*change != same, || (&path, "a change of nothing"))?;
        }
        Ok(())
    }
}
