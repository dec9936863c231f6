//! Sessions: the measurements between two hosts.

use lastmile::estimate::AllConfig;
use lastmile::report::Direction;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;

use super::MeasureSpec;
use crate::scenario::Scenario;
use crate::scenario::roles::{Conversation, own_port};

/// The UDP port of reflectors in scenarios.
pub const REFLECTOR_PORT: u16 = 8620;
/// The first of those of initiators.
const PROBER_PORTS: u16 = 40_000;

/// The measurements between two hosts: one session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSpec {
    /// Its place among the scenario's sessions.
    pub index: usize,
    /// The initiating host.
    pub from: usize,
    /// The reflecting host.
    pub to: usize,
    /// True if its packets are IPv6.
    pub ipv6: bool,
    /// The measurements, in order, each with its direction.
    pub measures: Vec<(MeasureSpec, Direction)>,
    /// The budget of all together, if one of them is `all`.
    pub budget: Option<AllConfig>,
}

impl SessionSpec {
    /// When it begins.
    pub fn start(&self) -> Time {
        self.measures.iter().map(|(spec, _)| spec.start).min().unwrap_or(Time::ZERO)
    }

    /// It begins at a random time within so long after that.
    pub fn start_within(&self) -> Span {
        self.measures.first().map_or(Span::ZERO, |(spec, _)| spec.start_within)
    }

    pub(crate) fn conversation(&self) -> Conversation {
        Conversation {
            name: None,
            from: (self.from, own_port(PROBER_PORTS, self.index)),
            to: (self.to, REFLECTOR_PORT),
            ipv6: self.ipv6,
            // The largest that a method may ask for.
            largest: (Bytes(1500), Bytes(1500)),
        }
    }
}

/// The sessions of a scenario: its measurements, gathered by pair of hosts and start.
pub fn sessions(scenario: &Scenario) -> Vec<SessionSpec> {
    let mut sessions: Vec<SessionSpec> = Vec::new();
    for spec in &scenario.roles.measure {
        // An `all` that cannot be expanded was refused with the file.
        let expanded = AllConfig::expand(&spec.method, spec.direction.each()).unwrap_or_default();
        let one = |(direction, method)| (MeasureSpec { method, ..spec.clone() }, direction);
        let added = expanded.measured.into_iter().map(one);
        let of = (spec.from, spec.to, spec.ipv6, spec.start);
        match sessions.iter_mut().find(|s| (s.from, s.to, s.ipv6, s.start()) == of) {
            Some(session) => {
                session.measures.extend(added);
                session.budget = session.budget.take().or(expanded.budget);
            }
            None => sessions.push(SessionSpec {
                index: sessions.len(),
                from: spec.from,
                to: spec.to,
                ipv6: spec.ipv6,
                measures: added.collect(),
                budget: expanded.budget,
            }),
        }
    }
    sessions
}
