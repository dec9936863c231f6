//! What traffic and the tables of roles share: two hosts and a path between them.

use toml::Spanned;

use super::{Check, Checked};
use crate::scenario::Scenario;

impl Check<'_> {
    pub(super) fn host(&self, scenario: &Scenario, name: &Spanned<String>) -> Checked<usize> {
        if let Some(host) = scenario.host(name.get_ref()) {
            return Ok(host);
        }
        let names: Vec<_> = scenario.hosts.iter().map(|host| host.name.as_str()).collect();
        let known = if names.is_empty() { "there are none".to_owned() } else { names.join(", ") };
        self.error(name.span(), format!("no host is called {:?}; hosts: {known}", name.get_ref()))
    }

    /// Two different hosts with a path between them.
    pub(crate) fn ends(
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

    pub(crate) fn reach(
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
}
