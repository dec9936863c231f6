//! Ends of traffic and of roles' tables: two hosts and a path between them.

use super::{Check, Checked};
use crate::scenario::Scenario;

impl Check<'_> {
    pub(super) fn host(&self, scenario: &Scenario, path: &str, name: &str) -> Checked<usize> {
        if let Some(host) = scenario.host(name) {
            return Ok(host);
        }
        let names: Vec<_> = scenario.hosts.iter().map(|host| host.name.as_str()).collect();
        let known = if names.is_empty() { "there are none".to_owned() } else { names.join(", ") };
        self.refuse(path, format!("no host is called {name:?}; hosts: {known}"))
    }

    /// Two different hosts, of the table at `at`, with a path between them; if need be, back as well.
    pub(crate) fn ends(
        &self,
        scenario: &Scenario,
        at: &str,
        (from, to): (&str, &str),
        back: bool,
    ) -> Checked<(usize, usize)> {
        let of = |key| format!("{at}.{key}");
        let ends = (self.host(scenario, &of("from"), from)?, self.host(scenario, &of("to"), to)?);
        self.ensure(ends.0 != ends.1, || (of("to"), "from a host to itself"))?;
        for (one, other) in [Some(ends), back.then_some((ends.1, ends.0))].into_iter().flatten() {
            self.ensure(self.path(scenario, one, other).is_some(), || {
                let (one, other) = (scenario.vertex_name(one), scenario.vertex_name(other));
                (of("to"), format!("no path leads from {one} to {other} (hosts do not forward)"))
            })?;
        }
        Ok(ends)
    }
}
