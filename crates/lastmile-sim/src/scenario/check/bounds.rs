//! What a scenario may cost: how many of each thing it has, what it keeps in memory, and what work its channels are.

use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use toml::Spanned;

use super::work::{MAX_CROSSINGS, MAX_MEMORY, PACKET_MEMORY};
use super::{Check, Checked};
use crate::network::loss::{Covers, ErrorModel};
use crate::network::traffic::{Arrivals, Trace};
use crate::scenario::raw::RawTraffic;
use crate::scenario::{LinkSpec, Scenario};

/// Entries of `[[link]]`, of `[[wlan]]` and its stations, of `[[traffic]]` and `[[measure]]`, and channels on one link.
const MAX_LINKS: usize = 5_000;
const MAX_WLANS: usize = 250;
const MAX_STATIONS: usize = 4_000;
const MAX_TRAFFIC: usize = 20_000;
const MAX_MEASURES: usize = 1_000;
const MAX_LOSSES: usize = 16;
/// Packets of all traces together, 16 bytes each.
const MAX_TRACED: usize = 10_000_000;
/// What a WLAN keeps of a loss that it notes.
const LOSS_MEMORY: f64 = 200.0;
/// What both ends of a connection keep of a segment of their window that is not yet in order.
const SEGMENT_MEMORY: f64 = 40.0;
/// What a router keeps of each flow that passes it.
const ROUTE_MEMORY: f64 = 30.0;
/// Frames of one packet that a channel in frames looks at, at most; and what a look costs, in crossings of a link.
const MAX_FRAMES: f64 = 10_000.0;
const LOOK: f64 = 5.0;
/// Periods of a channel in time that are drawn for one packet, at most.
const MAX_PERIODS: f64 = 100_000.0;

/// The highest rate that a link ever has; `None` where nothing limits it.
pub(super) fn fastest(link: &LinkSpec) -> Option<u64> {
    let changed = link.config.schedule.iter().filter_map(|change| change.rate);
    Some(
        changed.fold(link.config.rate?, |most, rate| if rate > most { rate } else { most }).bits_per_second(),
    )
}

/// The shortest and the longest delay that a link ever has.
pub(super) fn delays(link: &LinkSpec) -> (Span, Span) {
    let delay = link.config.delay;
    let changed = link.config.schedule.iter().filter_map(|change| change.delay);
    changed.fold((delay, delay), |(least, most), delay| (least.min(delay), most.max(delay)))
}

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
        too_many(raw.measure.get(MAX_MEASURES).map(Spanned::span), MAX_MEASURES, "measurements")?;
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

    /// Refuses a source whose packets would leave at one moment, all of them.
    pub(super) fn apart(
        &self,
        raw: &RawTraffic,
        arrivals: &Arrivals,
        changes: &[(Time, Rate)],
        (rate, size): (Rate, Bytes),
    ) -> Checked<()> {
        let peak = |mean: Rate| match arrivals {
            Arrivals::OnOff(on_off) => on_off.peak(mean),
            _ => mean,
        };
        let most = changes.iter().fold(rate, |most, change| if change.1 > most { change.1 } else { most });
        if peak(most).bits_per_second() as f64 > 1e9 * size.bits() as f64 {
            let at = raw.rate.as_ref().map_or(raw.kind.span(), Spanned::span);
            return self.error(at, "more than a packet in each nanosecond");
        }
        Ok(())
    }

    /// Refuses what needs too much memory beside the links: stations' queues, losses noted, TCP's windows, and the routes of
    /// flows that pass many routers.
    pub(super) fn kept(&self, scenario: &Scenario) -> Checked<()> {
        let mut total = 0.0;
        for (wlan, raw) in scenario.wlans.iter().zip(&self.raw.wlan) {
            let queued: f64 = wlan.config.station.iter().map(|station| f64::from(station.queue)).sum();
            total += queued * PACKET_MEMORY + wlan.config.loss_log as f64 * LOSS_MEMORY;
            self.fits(total, raw.span(), "WLAN", "queues or loss_log")?;
        }
        let end = Time::ZERO + scenario.duration;
        for (flow, raw) in scenario.traffic.iter().zip(&self.raw.traffic) {
            if let Some(tcp) = &flow.tcp {
                let sent = self.crossings_of(scenario, flow, end);
                total += f64::from(tcp.config.max_window).min(sent) * SEGMENT_MEMORY;
                self.fits(total, raw.get_ref().kind.span(), "flow", "max_window")?;
            }
            let hops = |from, to| self.path(scenario, from, to).map_or(0, |path| path.len() + 1) as f64;
            let back = if flow.tcp.is_some() { hops(flow.to, flow.from) } else { 0.0 };
            total += (hops(flow.from, flow.to) + back) * ROUTE_MEMORY;
            self.fits(total, raw.get_ref().kind.span(), "flow", "the paths of flows")?;
        }
        Ok(())
    }

    fn fits(&self, total: f64, at: core::ops::Range<usize>, what: &str, shorten: &str) -> Checked<()> {
        if total <= MAX_MEMORY {
            return Ok(());
        }
        let (needs, most) = (total / 1e9, MAX_MEMORY / 1e9);
        let reason = format!(
            "up to this {what} the run could need {needs:.1} GB of memory, more than {most:.0} GB: shorten {shorten}"
        );
        self.error(at, reason)
    }

    /// Refuses channels that would take for ever: periods far shorter than the run, frames far shorter than packets.
    pub(super) fn channels(&self, scenario: &Scenario) -> Checked<()> {
        if scenario.links.iter().all(|link| link.config.losses.is_empty()) {
            return Ok(());
        }
        let end = Time::ZERO + scenario.duration;
        let mut packets = vec![0.0; scenario.links.len()];
        for flow in &scenario.traffic {
            let sent = self.crossings_of(scenario, flow, end);
            let back = self.path(scenario, flow.to, flow.from).filter(|_| flow.tcp.is_some());
            for link in self.path(scenario, flow.from, flow.to).into_iter().chain(back).flatten() {
                if let Some(packets) = packets.get_mut(link) {
                    *packets += sent;
                }
            }
        }
        let mut total = 0.0;
        for (number, (link, packets)) in scenario.links.iter().zip(packets).enumerate() {
            for loss in &link.config.losses {
                total += work(&loss.model, link, packets, scenario.duration);
            }
            if total > MAX_CROSSINGS {
                let reason = format!(
                    "up to this link channels would be asked {total:.1e} times, more than {MAX_CROSSINGS:.0e}: lengthen \
                     their periods or frames, or shorten the run"
                );
                return self.refuse(&self.link_key(self.direction(number), "losses"), reason);
            }
        }
        Ok(())
    }
}

/// What a channel's decisions about so many packets cost at most, in crossings of a link.
fn work(model: &ErrorModel, link: &LinkSpec, packets: f64, duration: Span) -> f64 {
    // Of the largest packet on the slowest rate that the file starts with: a rate may change, and a bound need not be sharp.
    let air = link.config.rate.map_or(0.0, |rate| 524_280.0 / rate.bits_per_second() as f64);
    let frames = |covers: Covers, frame: f64| match covers {
        Covers::Instant => 1.0,
        Covers::Whole => (1.0 + air / frame.max(1e-12)).min(MAX_FRAMES),
    };
    match model {
        ErrorModel::MarkovTime(model) => {
            let mean = (model.good.as_secs_f64() + model.bad.as_secs_f64()) / 2.0;
            (duration.as_secs_f64() / mean.max(1e-9)).min(packets * MAX_PERIODS)
        }
        ErrorModel::Jakes(model) => {
            let frame = model.frame.bits() as f64 / model.rate.bits_per_second().max(1) as f64;
            let each = frames(model.covers, frame) + f64::from(model.interleaver);
            packets * each * f64::from(model.paths) * LOOK
        }
        ErrorModel::Pattern(model) => {
            packets * model.slot.map_or(1.0, |slot| frames(model.covers, slot.as_secs_f64()))
        }
        _ => packets,
    }
}
