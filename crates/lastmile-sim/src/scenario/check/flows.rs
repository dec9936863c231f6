//! Traffic and measurements.

use lastmile::time::{Span, Time};
use toml::Spanned;

use super::{Check, Checked, LARGEST_IP_PACKET};
use crate::scenario::{MeasureSpec, Scenario, TrafficSpec};

/// Times that a packet may cross a link in one run; at 100 ns each this is seven minutes.
const MAX_CROSSINGS: f64 = 4e9;
/// IPv4 and UDP header.
const SMALLEST_IP_PACKET: u64 = 28;

impl Check<'_> {
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

    pub(super) fn traffic(&self, scenario: &mut Scenario) -> Checked<()> {
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

    pub(super) fn measures(
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
                ipv6: raw.ipv6,
            });
        }
        Ok(())
    }

    /// Refuses traffic that would take for ever.
    pub(super) fn crossings(&self, scenario: &Scenario) -> Checked<()> {
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
