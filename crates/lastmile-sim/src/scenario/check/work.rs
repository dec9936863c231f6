//! What a run would cost: how often packets cross links and timers expire, what is kept in memory meanwhile, and whether
//! packets fit where they go.

use lastmile::time::{Span, Time};
use lastmile::units::Bytes;
use toml::Spanned;

use super::{Check, Checked, bounds};
use crate::network::link::QueueLimit;
use crate::network::tcp::{App, TcpConfig};
use crate::scenario::{Scenario, TcpSpec, TrafficSpec};

/// Times that a packet may cross a link in one run; at 100 ns each this is seven minutes.
pub(super) const MAX_CROSSINGS: f64 = 4e9;
/// What a packet that waits or is on its way takes, and what all may take together.
pub(super) const PACKET_MEMORY: f64 = 160.0;
pub(super) const MAX_MEMORY: f64 = 2e9;
/// What no WLAN here exceeds, in bit/s.
const FASTEST_WLAN: u64 = 600_000_000;
/// The largest MSDU (IEEE 802.11-2016, table 9-19), and LLC and SNAP, which count in it.
const MAX_MSDU: Bytes = Bytes(2304);
const LLC: Bytes = Bytes(8);
/// Timeouts in a row that differ: a timer is not doubled more often than 16 times.
const DOUBLINGS: f64 = 17.0;
/// Exchanges on one channel in a second, at most: none takes less than 50 us.
const MOST_EXCHANGES: f64 = 20_000.0;
/// What endpoints send; a queue that cannot hold one would never let a probe pass.
const PROBE: Bytes = Bytes(1500);

impl Check<'_> {
    /// Refuses scenarios whose packets, waiting and on their way, would need too much memory.
    pub(super) fn memory(&self, scenario: &Scenario) -> Checked<()> {
        let end = Time::ZERO + scenario.duration;
        // What could be in the network at once: no more than is ever sent, nor than links and queues hold.
        let mut of_links: Vec<(f64, Option<u64>)> = vec![(0.0, None); scenario.links.len()];
        for flow in &scenario.traffic {
            let (crossings, size) = (self.crossings_of(scenario, flow, end), flow.size.0.max(28));
            for link in self.path(scenario, flow.from, flow.to).unwrap_or_default() {
                // Beyond the links are WLANs, whose queues are short.
                if let Some((sent, smallest)) = of_links.get_mut(link) {
                    *sent += crossings;
                    *smallest = Some(smallest.map_or(size, |smallest| smallest.min(size)));
                }
            }
        }
        let mut total = 0.0;
        for (number, (link, (sent, smallest))) in scenario.links.iter().zip(of_links).enumerate() {
            let smallest = smallest.unwrap_or(1500) as f64;
            let queued = match link.config.discipline.limit().unwrap_or(link.config.queue) {
                QueueLimit::Packets(packets) => f64::from(packets),
                QueueLimit::Bytes(bytes) => bytes.0 as f64 / smallest,
            };
            let rate = bounds::fastest(link).map_or(f64::INFINITY, |rate| rate as f64);
            // A rate without a limit and no delay are no packets.
            let delay = bounds::delays(link).1.as_secs_f64();
            let flying = if delay > 0.0 { rate * delay / 8.0 / smallest } else { 0.0 };
            total += (queued + flying).min(sent) * PACKET_MEMORY;
            if total > MAX_MEMORY {
                let reason = format!(
                    "up to this link packets could need {:.1} GB of memory, more than {:.0} GB: shorten queues or delays",
                    total / 1e9,
                    MAX_MEMORY / 1e9
                );
                return self.refuse(&format!("link[{}]", self.direction(number).link), reason);
            }
        }
        Ok(())
    }

    /// How often packets of a flow cross a link, on the mean, or at most where that is not known beforehand.
    pub(super) fn crossings_of(&self, scenario: &Scenario, flow: &TrafficSpec, end: Time) -> f64 {
        let path = self.path(scenario, flow.from, flow.to).unwrap_or_default();
        let Some(tcp) = &flow.tcp else {
            return flow.packets(end) * path.len() as f64;
        };
        let back = self.path(scenario, flow.to, flow.from).unwrap_or_default();
        let links = || path.iter().filter_map(|&link| scenario.links.get(link));
        let seconds = (flow.stop.min(end) - flow.start).max(Span::ZERO).as_secs_f64();
        let narrowest = links().filter_map(bounds::fastest).min();
        let air = scenario.crosses_wlan(&path).then_some(FASTEST_WLAN);
        let narrowest = narrowest.into_iter().chain(air).min();
        let by_rate = narrowest.map_or(f64::INFINITY, |r| r as f64 * seconds / flow.size.bits() as f64);
        let there_and_back = path.iter().chain(&back).filter_map(|&link| scenario.links.get(link));
        let round: f64 = there_and_back.map(|link| bounds::delays(link).0.as_secs_f64()).sum();
        // Without any delay a window turns over in no time. (The sum of no numbers is minus zero.)
        let by_window =
            if round > 0.0 { f64::from(tcp.config.max_window) * seconds / round } else { f64::INFINITY };
        let bytes = match &tcp.app {
            App::File { size } => size.0 as f64,
            _ => f64::INFINITY,
        };
        let by_file = bytes / tcp.config.segment.0.max(1) as f64;
        // An ACK each, and losses.
        by_rate.min(by_window).min(by_file * 1.5) * (path.len() + back.len()) as f64
    }

    /// What a WLAN cannot carry: an IP packet that with LLC and SNAP is larger than an MSDU.
    pub(super) fn frames(&self, scenario: &Scenario) -> Checked<()> {
        for (flow, raw) in scenario.traffic.iter().zip(&self.raw.traffic) {
            let path = self.path(scenario, flow.from, flow.to).unwrap_or_default();
            if scenario.crosses_wlan(&path) && flow.size + LLC > MAX_MSDU {
                let raw = raw.get_ref();
                let at = raw.size.as_ref().map_or(raw.kind.span(), Spanned::span);
                let reason = format!(
                    "packets of {} cross a WLAN, whose frames carry IP packets of at most {}",
                    flow.size,
                    Bytes(MAX_MSDU.0 - LLC.0)
                );
                return self.error(at, reason);
            }
        }
        Ok(())
    }

    /// How often timers of a connection expire at most, and what they cause, in crossings of a link.
    ///
    /// A timeout doubles the next one up to a limit until an ACK gives a round-trip time (RFC 6298, rules 5.5 and 5.7), so
    /// that where nothing arrives they become rare, and where something does there are only so many for each ACK.
    fn timers_of(&self, scenario: &Scenario, flow: &TrafficSpec, crossings: f64, end: Time) -> f64 {
        let Some(TcpSpec { config, app }) = &flow.tcp else { return 0.0 };
        let links = |from, to| self.path(scenario, from, to).map_or(0, |path| path.len()) as f64;
        let (there, back) = (links(flow.from, flow.to), links(flow.to, flow.from));
        let packets = crossings / (there + back).max(1.0);
        // What was sent before it stops is sent again until the run ends.
        let seconds = (end - flow.start).max(Span::ZERO).as_secs_f64();
        let least = config.tick.as_secs_f64() * 2.0;
        let (first, last) = (config.min_rto.as_secs_f64().max(least), backed_off(config).max(least));
        let timeouts = (seconds / first).min(seconds / last + DOUBLINGS * (1.0 + packets));
        let delayed = if config.delayed_ack > Span::ZERO { packets } else { 0.0 };
        let pauses = if matches!(app, App::Files { .. }) { packets } else { 0.0 };
        timeouts * (1.0 + there) + delayed + pauses
    }

    /// Refuses traffic that would take for ever: its packets, and the timers of connections.
    pub(super) fn crossings(&self, scenario: &Scenario) -> Checked<()> {
        let mut total = 0.0;
        let end = Time::ZERO + scenario.duration;
        let mut on_air = vec![0.0; scenario.wlans.len()];
        for (number, (flow, raw)) in scenario.traffic.iter().zip(&self.raw.traffic).enumerate() {
            let raw = raw.get_ref();
            let crossings = self.crossings_of(scenario, flow, end);
            total += crossings;
            if total.is_infinite() {
                let reason = "nothing limits this connection: its path needs a rate or a delay";
                return self.error(raw.kind.span(), reason);
            }
            if total > MAX_CROSSINGS {
                let reason = format!(
                    "up to this flow packets would cross links {total:.1e} times, more than {MAX_CROSSINGS:.0e}: \
                     lower the rate or shorten the run"
                );
                return self.error(raw.rate.as_ref().map_or(raw.kind.span(), Spanned::span), reason);
            }
            total += self.timers_of(scenario, flow, crossings, end);
            if let Some(tcp) = flow.tcp.as_ref().filter(|_| total > MAX_CROSSINGS) {
                let doubled = backed_off(&tcp.config) < tcp.config.max_rto.as_secs_f64();
                let key = if doubled { "min_rto" } else { "max_rto" };
                let reason = format!(
                    "up to this flow timers of TCP could expire {total:.1e} times, more than {MAX_CROSSINGS:.0e}: \
                     lengthen it or shorten the run"
                );
                return self.refuse(&format!("traffic[{number}].tcp.{key}"), reason);
            }
            for (from, to) in [(flow.from, flow.to), (flow.to, flow.from)] {
                let path = self.path(scenario, from, to).unwrap_or_default();
                for &hop in path.iter().filter(|&&hop| hop >= scenario.links.len()) {
                    let Some((wlan, _)) = scenario.air(hop) else { continue };
                    on_air[wlan] += crossings / path.len() as f64;
                }
            }
        }
        // What arrives at the first attempt has been counted.
        for (number, (wlan, packets)) in scenario.wlans.iter().zip(on_air).enumerate() {
            let attempts = f64::from(wlan.config.short_retry.max(wlan.config.long_retry)) - 1.0;
            total += (packets * attempts).min(scenario.duration.as_secs_f64() * MOST_EXCHANGES);
            if total > MAX_CROSSINGS {
                let reason = format!(
                    "up to this WLAN there could be {total:.1e} transmissions, more than {MAX_CROSSINGS:.0e}: lower it or \
                     shorten the run"
                );
                return self.refuse(&format!("wlan[{number}].short_retry"), reason);
            }
        }
        Ok(())
    }

    /// Refuses queues and shapers in which a packet that comes there finds no room even while they are empty.
    pub(super) fn room(&self, scenario: &Scenario) -> Checked<()> {
        let mut largest = vec![Bytes::ZERO; scenario.links.len()];
        let mut come = |from, to, size: Bytes| {
            for link in self.path(scenario, from, to).unwrap_or_default() {
                if let Some(largest) = largest.get_mut(link) {
                    *largest = size.max(*largest);
                }
            }
        };
        for flow in &scenario.traffic {
            come(flow.from, flow.to, flow.size);
            if let Some(tcp) = &flow.tcp {
                come(flow.to, flow.from, tcp.config.header);
            }
        }
        for measure in &scenario.measures {
            come(measure.from, measure.to, PROBE);
            come(measure.to, measure.from, PROBE);
        }
        for (number, (link, largest)) in scenario.links.iter().zip(largest).enumerate() {
            if largest == Bytes::ZERO {
                continue;
            }
            let wire = largest + link.config.overhead;
            let refuse = |key: &str| {
                let reason = format!("smaller than one packet ({wire} with its framing)");
                self.refuse(&self.link_key(self.direction(number), key), reason)
            };
            match (link.config.discipline.limit(), link.config.queue) {
                (Some(QueueLimit::Bytes(limit)), _) if limit < wire => return refuse("discipline.limit"),
                (None, QueueLimit::Bytes(limit)) if limit < wire => return refuse("queue"),
                _ => {}
            }
            if link.config.shaper.as_ref().is_some_and(|shaper| shaper.burst < wire) {
                return refuse("shaper.burst");
            }
        }
        Ok(())
    }
}

/// The timeout, in seconds, that [`DOUBLINGS`] lead to from the least one.
fn backed_off(config: &TcpConfig) -> f64 {
    config.max_rto.as_secs_f64().min(config.min_rto.as_secs_f64() * libm::exp2(DOUBLINGS - 1.0))
}
