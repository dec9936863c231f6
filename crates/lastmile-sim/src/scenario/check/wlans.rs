//! WLANs.

use toml::Spanned;

use super::{Check, Checked};
use crate::scenario::{Scenario, WlanSpec};
use crate::wlan::Medium;

/// Packets in the queues of one WLAN's stations, and losses noted one by one: both are kept in memory.
const MAX_QUEUED: u64 = 1_000_000;

impl Check<'_> {
    pub(super) fn wlans(&self, scenario: &mut Scenario) -> Checked<()> {
        for spanned in &self.raw.wlan {
            let config = spanned.get_ref();
            let queued: u64 = config.station.iter().map(|station| u64::from(station.queue)).sum();
            if queued > MAX_QUEUED || config.loss_log as u64 > MAX_QUEUED {
                let reason =
                    format!("queues of all stations, and loss_log, hold at most {MAX_QUEUED} packets");
                return self.error(spanned.span(), reason);
            }
            if let Some(station) = config.station.iter().find(|station| station.queue == 0) {
                return self
                    .error(spanned.span(), format!("station {}: queue: no packet would pass", station.name));
            }
            let mut vertices = Vec::new();
            for station in &config.station {
                let vertex = self.vertex(scenario, &Spanned::new(spanned.span(), station.name.clone()))?;
                if vertices.contains(&vertex) {
                    return self.error(spanned.span(), format!("two stations are called {:?}", station.name));
                }
                vertices.push(vertex);
            }
            let spec = WlanSpec { config: config.clone(), directions: Vec::new() };
            let medium = match Medium::new(config, scenario.seed, spec.name()) {
                Ok(medium) => medium,
                Err(error) => return self.error(spanned.span(), error.to_string()),
            };
            let ends =
                |(port, from, to): (_, usize, usize)| Some((port, *vertices.get(from)?, *vertices.get(to)?));
            let directions = medium.directions().filter_map(ends).collect();
            scenario.wlans.push(WlanSpec { directions, ..spec });
        }
        Ok(())
    }
}
