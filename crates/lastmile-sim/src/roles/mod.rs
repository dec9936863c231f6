//! Roles: the endpoints that a scenario's tables ask for, and their results.
//!
//! Each role has a folder here. Its `Role` makes its tables' endpoints, and collects their results. The list of roles stands
//! beside their tables, in [`scenario::roles`](crate::scenario::roles): running, in the simulator and in the lab, goes by it.

use std::any::Any;

use lastmile::endpoint::{AnyEndpoint, Event};
use lastmile::time::{Epoch, Span, Time};
use serde_json::{Map, Value};

use crate::network::clock::HostClock;
use crate::network::engine::Engine;
use crate::scenario::roles::{self as tables, Tables, with_roles};
use crate::scenario::{RunError, Scenario, Simulation};

pub mod measure;
pub mod stream;

/// Endpoints of one kind of table, and their results.
pub(crate) trait Role: Tables {
    /// Maker of the state machines that its tables ask for; the caller of a run may give another.
    type Make: Clone + Default;
    /// State kept while its endpoints run.
    type Running;
    /// Results of its endpoints.
    type Found: Default + core::fmt::Debug;

    /// Key of its rows in the document of a run.
    const KEY: &'static str;
    /// Name of one row in a table of rows of several kinds.
    const ROW: &'static str;

    /// The endpoints, and the state kept while they run.
    fn plan(
        scenario: &Scenario,
        seed: u64,
        make: &Self::Make,
    ) -> Result<(Vec<Placed>, Self::Running), RunError>;

    /// Attaches its meters and taps.
    fn attach(running: &mut Self::Running, scenario: &Scenario, simulation: &mut Simulation);

    /// The results.
    fn found(running: Self::Running, ended: &Ended<'_>) -> Result<Self::Found, RunError>;

    /// The results as rows of the run's document.
    fn rows(found: &Self::Found) -> Vec<Value>;

    /// Keys of that document that stand once for all of these rows.
    fn beside(found: &Self::Found) -> Map<String, Value> {
        let _ = found;
        Map::new()
    }

    /// Records of that endpoint that a recording keeps beside its decisions, each in the role's own form.
    fn records(found: &Self::Found, number: u32) -> Vec<Value> {
        let _ = (found, number);
        Vec::new()
    }

    /// Stream and index of a datagram, if the role's endpoints number packets so.
    fn probe(udp: &[u8]) -> Option<(u32, u16)> {
        let _ = udp;
        None
    }
}

macro_rules! roles {
    ($($name:ident($role:ident)),+ $(,)?) => {
        /// Makers of the state machines that tables ask for.
        #[derive(Clone, Default)]
        pub struct Makers {
            $(/// Of the role that the field is named after.
            pub $name: $name::Make),+
        }

        /// Results of the endpoints of all roles.
        #[derive(Debug, Default)]
        pub struct Found {
            $(/// Of the role that the field is named after.
            pub $name: $name::Found),+
        }

        /// State kept while the endpoints of all roles run.
        pub struct Running {
            $(/// Of the role that the field is named after.
            pub $name: $name::Running),+
        }

        impl Running {
            /// The endpoints of a scenario, in the order of its tables, and the state kept while they run.
            ///
            /// # Errors
            /// A state machine that a table asks for cannot be made.
            pub fn plan(
                scenario: &Scenario,
                seed: u64,
                make: &Makers,
            ) -> Result<(Vec<Placed>, Running), RunError> {
                let mut all: Vec<Placed> = Vec::new();
                $(let (placed, $name) = tables::$name::$role::plan(scenario, seed, &make.$name)?;
                all.extend(placed);)+
                number(scenario, &mut all);
                Ok((all, Running { $($name),+ }))
            }

            /// Attaches the meters and taps of all roles.
            pub fn attach(&mut self, scenario: &Scenario, simulation: &mut Simulation) {
                $(tables::$name::$role::attach(&mut self.$name, scenario, simulation);)+
            }

            /// The results.
            ///
            /// # Errors
            /// A twin that a truth needs cannot be run.
            pub fn found(self, ended: &Ended<'_>) -> Result<Found, RunError> {
                Ok(Found { $($name: tables::$name::$role::found(self.$name, ended)?),+ })
            }
        }

        impl Found {
            /// The results as rows, role by role.
            pub fn rows(&self) -> Vec<Rows> {
                vec![$(Rows {
                    key: tables::$name::$role::KEY,
                    row: tables::$name::$role::ROW,
                    rows: tables::$name::$role::rows(&self.$name),
                    beside: tables::$name::$role::beside(&self.$name),
                }),+]
            }

            /// Records of an endpoint that a recording keeps beside its decisions.
            pub fn records(&self, number: u32) -> Vec<Value> {
                [$(tables::$name::$role::records(&self.$name, number)),+].concat()
            }
        }

        /// Stream and index of an endpoint's datagram.
        pub fn probe(udp: &[u8]) -> Option<(u32, u16)> {
            None$(.or_else(|| tables::$name::$role::probe(udp)))+
        }
    };
}
with_roles!(roles);

/// Results of one role's endpoints, in the document of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// Key of the rows in that document.
    pub key: &'static str,
    /// Name of one row in a table of rows of several kinds.
    pub row: &'static str,
    /// The rows, each an object.
    pub rows: Vec<Value>,
    /// Keys of the document that stand once for all rows.
    pub beside: Map<String, Value>,
}

impl Rows {
    /// Puts the rows and the keys beside them into a document.
    pub fn put_into(self, document: &mut Map<String, Value>) {
        document.extend(self.beside);
        document.insert(self.key.to_owned(), Value::Array(self.rows));
    }
}

/// Host, port and number of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The host.
    pub host: usize,
    /// True if it speaks IPv6.
    pub ipv6: bool,
    /// Its UDP port.
    pub port: u16,
    /// Node number of its decisions; given by [`Running::plan`].
    pub number: u32,
}

/// Makes an endpoint, or says why it cannot be as its table asks for it.
pub type MakeEndpoint = Box<dyn FnOnce(&Surroundings) -> Result<Made, RunError> + Send>;

/// An endpoint that a role puts at a host.
pub struct Placed {
    /// Host, port and number.
    pub place: Place,
    /// True if it only answers others: no run waits for it.
    pub answers: bool,
    /// True if it asks for real-time priority under a real clock.
    pub realtime: bool,
    /// Makes it from the surroundings that its driver gives.
    pub make: MakeEndpoint,
}

/// An endpoint that was made.
pub struct Made {
    /// The endpoint.
    pub endpoint: AnyEndpoint,
    /// All that determines it beside its inputs, in the role's own form.
    pub config: Box<dyn Any + Send>,
}

/// Clocks that an endpoint's driver gives it.
pub struct Surroundings {
    /// When the run started, in wall time.
    pub epoch: Epoch,
    /// Resolution of the host's stamps.
    pub resolution: Span,
    /// The host's clock, where it is another than the run's.
    pub clock: Option<HostClock>,
}

impl Surroundings {
    /// Time on the host's clock at a time of the run.
    pub fn local(&self, at: Time) -> Time {
        self.clock.as_ref().map_or(at, |clock| clock.read(at))
    }
}

/// The truths that are found when a run has ended. By a WLAN they take twins, and many times as long as the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Truths {
    /// All that documents state.
    #[default]
    All,
    /// Those that estimates are held against: none beside a refusal, and the achievable rate only beside an estimate of it.
    Judged,
    /// None.
    None,
}

/// A run that has ended.
pub struct Ended<'a> {
    /// The scenario that ran.
    pub scenario: &'a Scenario,
    /// The simulation, with the meters and taps that were attached.
    pub simulation: &'a Simulation,
    /// All decisions, in order.
    pub events: &'a [Event],
    /// Places of the endpoints.
    pub places: &'a [Place],
    /// True if the hosts had the scenario's clocks, and not the run's own as in the lab.
    pub own_clocks: bool,
    /// The truths that are found.
    pub truths: Truths,
}

impl Ended<'_> {
    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.simulation.engine
    }

    /// The run's time at a time of a host's clock.
    pub fn when(&self, host: usize, at: Time) -> Time {
        let clock = self.scenario.hosts.get(host).filter(|_| self.own_clocks).map(|host| host.clock.clone());
        clock.map_or(at, |clock| HostClock::new(clock).when(at))
    }

    /// The number of the endpoint of that host and port.
    pub fn number(&self, (host, port): (usize, u16), ipv6: bool) -> u32 {
        let own = |place: &&Place| (place.host, place.port, place.ipv6) == (host, port, ipv6);
        self.places.iter().find(own).map_or(host as u32, |place| place.number)
    }

    /// Decisions of type `E` of one endpoint, with the times on its host's clock.
    pub fn decisions<E: 'static>(&self, number: u32) -> impl Iterator<Item = (Time, &E)> {
        let own = self.events.iter().filter(move |event| event.node == number);
        own.filter_map(|event| Some((event.at, event.what.of::<E>()?)))
    }
}

/// The first number that neither a node of the network nor one of these endpoints has.
pub(crate) fn next_number(scenario: &Scenario, places: &[Place]) -> u32 {
    let nodes = scenario.hosts.len() + scenario.links.len() + scenario.wlans.len();
    let network = nodes as u32 + 2 * scenario.traffic.len() as u32;
    places.iter().map(|place| place.number + 1).fold(network, u32::max)
}

/// Numbers endpoints: a host's first has the host's number, its others follow all nodes of the network.
fn number(scenario: &Scenario, all: &mut [Placed]) {
    let mut next = next_number(scenario, &[]);
    for at in 0..all.len() {
        let host = all[at].place.host;
        all[at].place.number = match all[..at].iter().any(|before| before.place.host == host) {
            false => host as u32,
            true => {
                next += 1;
                next - 1
            }
        };
    }
}
