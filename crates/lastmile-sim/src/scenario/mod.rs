//! Scenario files: hosts, links, traffic and roles' tables as TOML, and the engine made from them.
//!
//! `docs/scenarios.md` has every key with an example; a test holds it to what is read here.
//!
//! **Limits.** `check` limits the number of each thing. A [`Budget`] limits the cost of a run; the engine keeps to it
//! while it runs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lastmile::node::PortId;
use lastmile::time::Span;

use crate::network::engine::Budget;

mod build;
pub(crate) mod check;
mod copies;
pub(crate) mod error;
mod handoffs;
mod load;
mod overrides;
mod preset;
pub(crate) mod raw;
pub mod roles;
mod routes;
mod spec;

use roles::Roles;
use routes::{Edge, Ways};

pub use build::{Attach, BuildError, CountedFlow, FlowCounts, RunError, Simulation, build};
pub use error::ScenarioError;
pub use load::MAX_TEXT;
pub use overrides::Override;
pub(crate) use spec::starts;
pub use spec::{HandoffSpec, HostSpec, LinkSpec, OldQueue, TcpSpec, TrafficSpec, WlanSpec};

/// A scenario, checked: every name is known, every flow has a path, every value is possible.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Its purpose, one line.
    pub description: String,
    /// Length of the run.
    pub duration: Span,
    /// Time at its beginning that long-run results leave out.
    pub warm_up: Span,
    /// The seed of a run that names no other.
    pub seed: u64,
    /// Limits on the cost of a run.
    pub budget: Budget,
    /// The hosts, in the order of the file. Their numbers here are their nodes' in the engine and in events.
    pub hosts: Vec<HostSpec>,
    /// Names in links that are no hosts', in the order of the file. As vertices they follow the hosts.
    pub routers: Vec<String>,
    /// All links, each direction by itself.
    pub links: Vec<LinkSpec>,
    /// All WLANs.
    pub wlans: Vec<WlanSpec>,
    /// Hosts' changes of their links, in order.
    pub handoffs: Vec<HandoffSpec>,
    /// The simulator's own traffic.
    pub traffic: Vec<TrafficSpec>,
    /// The tables of all roles.
    pub roles: Roles,
}

impl Scenario {
    /// Reads and checks a scenario; `file` is its name in errors.
    pub fn parse(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with(file, text, &[])
    }

    /// Reads and checks a scenario in which some values are replaced.
    pub fn parse_with(file: &str, text: &str, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        load::load(file, text, overrides)
    }

    /// The scenario as it is in a run with that seed: each walk of a rate is a list of changes.
    pub fn drawn(&self, seed: u64) -> Cow<'_, Scenario> {
        if self.links.iter().all(|link| link.walk.is_none()) {
            return Cow::Borrowed(self);
        }
        let mut drawn = self.clone();
        for link in &mut drawn.links {
            let name = self.link_name(link);
            if let (Some(walk), Some(rate)) = (link.walk.take(), link.config.rate) {
                link.config.schedule.extend(walk.changes(rate, self.duration, seed, &name));
            }
        }
        Cow::Owned(drawn)
    }

    /// The number of a host.
    pub fn host(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == name)
    }

    /// The number of the link from one vertex to another.
    pub fn link(&self, from: &str, to: &str) -> Option<usize> {
        let is = |vertex, name| self.vertex_name(vertex) == name;
        self.links.iter().position(|link| is(link.from, from) && is(link.to, to))
    }

    /// The name of a vertex.
    pub fn vertex_name(&self, vertex: usize) -> &str {
        let host = self.hosts.get(vertex).map(|host| &host.name);
        host.or_else(|| self.routers.get(vertex.checked_sub(self.hosts.len())?)).map_or("?", |name| name)
    }

    /// A link's name in captures, series and events: `from>to`.
    pub(crate) fn link_name(&self, link: &LinkSpec) -> String {
        format!("{}>{}", self.vertex_name(link.from), self.vertex_name(link.to))
    }

    /// The links (as indices into [`links`](Scenario::links)) that packets between two hosts cross, in order.
    /// Indices beyond those are directions of WLANs: of the first WLAN in their order, then of the next.
    pub fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        self.ways().path(from, to)
    }

    /// Sender and receiver of each flow that has a name: of traffic, and of each conversation's way there.
    pub(crate) fn named_flows(&self) -> BTreeMap<String, (usize, usize)> {
        let traffic = self.traffic.iter().map(|flow| (flow.name.clone(), (flow.from, flow.to)));
        let talks = self.conversations().into_iter();
        traffic.chain(talks.filter_map(|talk| Some((talk.name?, (talk.from.0, talk.to.0))))).collect()
    }

    /// The WLAN's number and the medium's port of an index that [`path`](Scenario::path) gives beyond the links.
    pub(crate) fn air(&self, index: usize) -> Option<(usize, PortId)> {
        let ports = |(number, wlan): (usize, &'_ WlanSpec)| {
            wlan.directions.iter().map(|&(port, ..)| (number, port)).collect::<Vec<_>>()
        };
        self.wlans.iter().enumerate().flat_map(ports).nth(index.checked_sub(self.links.len())?)
    }

    /// For callers that need more than one [`path`](Scenario::path).
    fn ways(&self) -> Ways {
        Ways::new(self.edges(), self.vertices(), self.hosts.len())
    }

    fn edges(&self) -> Vec<Edge> {
        let links = self.links.iter().map(|link| Edge { from: link.from, to: link.to });
        let air = self.wlans.iter().flat_map(|wlan| wlan.directions.iter());
        links.chain(air.map(|&(_, from, to)| Edge { from, to })).collect()
    }

    pub(crate) fn vertices(&self) -> usize {
        self.hosts.len() + self.routers.len()
    }
}

macro_rules! builtin {
    ($($name:literal),+ $(,)?) => {
        /// The names of the scenarios that come with the program.
        pub const BUILTIN: &[&str] = &[$($name),+];

        /// The text of a scenario that comes with the program.
        pub fn builtin_text(name: &str) -> Option<&'static str> {
            match name {
                $($name => Some(include_str!(concat!("../../scenarios/", $name, ".toml"))),)+
                _ => None,
            }
        }
    };
}
builtin![
    "ap",
    "ap-1",
    "ap-2",
    "ap-3",
    "ap-4",
    "ap-5",
    "ap-6",
    "ap-7",
    "ap-8",
    "ap-9",
    "ap-10",
    "ap-11",
    "ap-12",
    "ap-13",
    "asymmetric",
    "dumbbell",
    "dumbbell-tcp",
    "n",
    "n-both",
    "n-down",
    "n-up",
    "path",
    "red-ecn",
    "wb",
    "wired-wireless",
    "wlan",
    "wlan-g",
    "wlan-g-busy",
    "wlh"
];

/// A scenario that comes with the program, by its name.
pub fn builtin(name: &str) -> Option<Scenario> {
    let text = builtin_text(name)?;
    Scenario::parse(&format!("{name}.toml"), text).ok()
}
