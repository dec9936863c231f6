//! Measurements, and what they share with traffic.

use lastmile::options::Choice;
use lastmile::time::Time;
use toml::Spanned;

use super::{Check, Checked};
use crate::scenario::{CheckMethod, MeasureSpec, Scenario};

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
    pub(super) fn ends(
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

    pub(super) fn reach(
        &self,
        scenario: &Scenario,
        from: usize,
        to: usize,
        at: &Spanned<String>,
    ) -> Checked<()> {
        if self.path(scenario, from, to).is_none() {
            let (from, to) = (scenario.vertex_name(from), scenario.vertex_name(to));
            let reason = format!("no path leads from {from} to {to} (hosts do not forward)");
            return self.error(at.span(), reason);
        }
        Ok(())
    }

    pub(super) fn measures(&self, scenario: &mut Scenario, check_method: &CheckMethod<'_>) -> Checked<()> {
        for (index, spanned) in self.raw.measure.iter().enumerate() {
            let raw = spanned.get_ref();
            let (from, to) = self.ends(scenario, &raw.from, &raw.to)?;
            self.reach(scenario, to, from, &raw.to)?;
            let method: Result<Choice, _> = raw.method.get_ref().parse();
            let mut method = method.or_else(|error| self.method_error(index, &error.into()))?;
            method.options.extend(self.options[index].clone());
            check_method(&method).or_else(|error| self.method_error(index, &error))?;
            // A host has one endpoint: of one session, or a reflector.
            let session = (from, to, raw.ipv6);
            let others = |m: &&MeasureSpec| {
                (m.from, m.to, m.ipv6) != session && (m.from == from || m.to == from || m.from == to)
            };
            if let Some(other) = scenario.measures.iter().find(others) {
                let both = if other.from == to { &raw.to } else { &raw.from };
                let reason = format!(
                    "host {:?} would initiate measurements to two hosts or by both IP versions, or both initiate and reflect: \
                     give each role a host of its own",
                    both.get_ref()
                );
                return self.error(both.span(), reason);
            }
            let start = self.not_negative(raw.start.as_ref())?.unwrap_or(scenario.warm_up);
            if let Some(late) = raw.start.as_ref().filter(|_| start >= scenario.duration) {
                return self.error(late.span(), "starts after the run's end");
            }
            // One session, one start: in both worlds its measurements follow one another.
            let session = scenario.measures.iter().find(|m| (m.from, m.to, m.ipv6) == session);
            let start = match (session, &raw.start) {
                (Some(first), Some(own)) if Time::ZERO + start != first.start => {
                    let reason = format!(
                        "measurements between the same hosts follow one another from the first one's start, {}: leave it out or give that",
                        first.start - Time::ZERO
                    );
                    return self.error(own.span(), reason);
                }
                (Some(first), _) => first.start,
                (None, _) => Time::ZERO + start,
            };
            scenario.measures.push(MeasureSpec {
                from,
                to,
                method,
                direction: raw.direction,
                start,
                realtime: raw.realtime,
                ipv6: raw.ipv6,
            });
        }
        Ok(())
    }
}
