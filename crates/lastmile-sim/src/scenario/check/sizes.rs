//! How many of each thing a scenario may have. What a run costs is counted while it runs: [`Budget`].
//!
//! [`Budget`]: crate::network::engine::Budget

use toml::Spanned;

use super::{Check, Checked};
use crate::network::traffic::{Arrivals, Trace};
use crate::scenario::Scenario;
use crate::scenario::raw::RawTraffic;

/// Entries of `[[link]]`, of `[[wlan]]` and its stations, of `[[traffic]]`, and channels on one link.
const MAX_LINKS: usize = 5_000;
const MAX_WLANS: usize = 250;
const MAX_STATIONS: usize = 4_000;
const MAX_TRAFFIC: usize = 20_000;
const MAX_LOSSES: usize = 16;
/// Packets of all traces together, 16 bytes each.
const MAX_TRACED: usize = 10_000_000;

impl Check<'_> {
    /// Refuses what is too much before anything is compared with everything.
    pub(super) fn sizes(&self) -> Checked<()> {
        let too_many = |at: Option<core::ops::Range<usize>>, most: usize, what: &str| match at {
            Some(at) => self.error(at, format!("more than {most} {what}")),
            None => Ok(()),
        };
        let raw = self.raw;
        too_many(raw.link.get(MAX_LINKS).map(Spanned::span), MAX_LINKS, "links")?;
        too_many(raw.wlan.get(MAX_WLANS).map(Spanned::span), MAX_WLANS, "WLANs")?;
        too_many(raw.traffic.get(MAX_TRAFFIC).map(Spanned::span), MAX_TRAFFIC, "flows")?;
        for wlan in &raw.wlan {
            let full = wlan.get_ref().station.len() > MAX_STATIONS;
            too_many(full.then(|| wlan.span()), MAX_STATIONS, "stations in one WLAN")?;
        }
        for link in raw.link.iter().map(Spanned::get_ref) {
            let back = link.back.as_ref().and_then(|back| back.get_ref().losses.as_ref());
            for losses in link.losses.iter().chain(back) {
                too_many(
                    losses.get_ref().get(MAX_LOSSES).map(Spanned::span),
                    MAX_LOSSES,
                    "channels on one link",
                )?;
            }
        }
        Ok(())
    }

    /// Refuses a trace for which there is no room beside those before it.
    pub(super) fn trace_room(&self, scenario: &Scenario, trace: &Trace, raw: &RawTraffic) -> Checked<()> {
        let packets = |arrivals: &Arrivals| match arrivals {
            Arrivals::Trace(trace) => trace.packets().len(),
            _ => 0,
        };
        let before: usize = scenario.traffic.iter().map(|flow| packets(&flow.arrivals)).sum();
        if before + trace.packets().len() > MAX_TRACED {
            return self.error(raw.kind.span(), format!("traces of more than {MAX_TRACED} packets together"));
        }
        Ok(())
    }
}
