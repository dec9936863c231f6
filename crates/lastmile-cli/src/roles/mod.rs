//! The program's side of each role: it records endpoints and builds them again, has cases for `conformance`, shows the
//! results of a run, and puts decisions on a page.

use std::any::Any;

use anyhow::anyhow;
use lastmile::Key;
use lastmile::endpoint::{AnyEndpoint, Decision, Event};
use lastmile::options::{Choice, Kind, Opt, Scalar};
use lastmile::report::Direction;
use lastmile::time::Span;
use lastmile_net::recording::{Header, World};
use lastmile_sim::roles::{Found, Rows};
use lastmile_sim::scenario::Scenario;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::shell::exit::Exit;
use crate::shell::options::MethodArgs;
use lastmile_report::event::{Mood, Told};
use lastmile_report::text::Text;

mod loopback;
pub(crate) mod run;
pub(crate) use loopback::Buffer;
#[cfg(feature = "pages")]
use run::Run;

// The list of roles, which is these lines. The first is what recordings hold that name none.
pub(crate) mod measure;
pub(crate) mod stream;
const ROLES: &[&dyn Role] = &[&measure::Measuring, &stream::Streaming];

#[cfg(all(feature = "video", feature = "study"))]
pub(crate) use stream::film;

/// Duties of a role in the program.
trait Role: Sync {
    /// Its name in recordings.
    fn name(&self) -> &'static str;

    /// Text and exit code of a run.
    fn shown(&self, scenario: &Scenario, found: &Found) -> Shown;

    /// Makes the first line of a recording of one of its endpoints.
    fn header(&self, scenario: &Scenario, what: Recorded) -> HeaderOf;

    /// The recorded endpoint, as it was at its start.
    fn endpoint(&self, header: &Header, key: Option<Key>) -> anyhow::Result<AnyEndpoint>;

    /// Its cases in `conformance`, brief or in full.
    fn cases(&self, full: bool) -> Vec<Case>;

    /// Rows and text of decisions made again, for `replay`.
    fn replayed(&self, _events: &[Event]) -> Option<(Rows, Shown)> {
        None
    }

    /// Results of another method on the records of an endpoint of this role.
    fn by_method(&self, _: &MethodArgs, _: &Header, _: &[Value]) -> Option<anyhow::Result<(Rows, Shown)>> {
        None
    }

    /// The lanes of its decisions in a page's timeline, from above.
    fn lanes(&self) -> &'static [&'static str];

    /// A decision in words, if it is this role's.
    fn told(&self, what: &Decision) -> Option<Told>;

    /// True if a page keeps a decision however many others there are.
    fn is_result(&self, what: &Decision) -> bool;

    /// A page's section of results; empty where there are none.
    #[cfg(feature = "pages")]
    fn results(&self, run: &Run) -> String;

    /// A page's plots of what its endpoints recorded.
    #[cfg(feature = "pages")]
    fn plots(&self, _run: &Run) -> String {
        String::new()
    }
}

/// Text and exit code of one role; empty if it had nothing to do.
pub(crate) struct Shown {
    pub(crate) text: Text,
    /// The exit code that these deserve, where success is not it.
    pub(crate) exit: Option<Exit>,
}

/// Facts that a recording needs before the run.
#[derive(Clone, Copy)]
pub(crate) struct Recorded {
    pub(crate) world: World,
    /// Uncertainty of stamps beyond their resolution.
    pub(crate) noise: Span,
    /// Seed of the methods' random numbers.
    pub(crate) method_seed: u64,
}

/// The first line of an endpoint's recording, from all that determines the endpoint, if that is of its role.
type HeaderOf = Box<dyn FnOnce(&dyn Any) -> Option<anyhow::Result<Header>> + Send>;

/// A row of `conformance`, in each world.
pub(crate) struct Case {
    pub(crate) kind: &'static str,
    pub(crate) name: &'static str,
    pub(crate) direction: Direction,
    /// The role's table in a scenario whose hosts are `sender` and `receiver`.
    pub(crate) table: String,
    /// Index of the recorded endpoint in the order of the scenario's tables.
    pub(crate) which: usize,
    /// The same over loopback sockets.
    pub(crate) over_loopback: Box<dyn Fn() -> anyhow::Result<Buffer> + Sync>,
}

/// Texts and exit codes of all roles.
pub(crate) fn shown(scenario: &Scenario, found: &Found) -> Vec<Shown> {
    ROLES.iter().map(|role| role.shown(scenario, found)).collect()
}

/// Maker of a recording's first line, for an endpoint of any role.
pub(crate) fn header(
    scenario: &Scenario,
    what: Recorded,
) -> impl FnOnce(&dyn Any) -> anyhow::Result<Header> + Send + use<> {
    let all: Vec<HeaderOf> = ROLES.iter().map(|role| role.header(scenario, what)).collect();
    move |config| {
        let header = all.into_iter().find_map(|header| header(config));
        header.unwrap_or_else(|| Err(anyhow!("endpoints of this kind cannot be recorded")))
    }
}

/// The endpoint of a recording, as it was at its start.
pub(crate) fn endpoint(header: &Header, key: Option<Key>) -> anyhow::Result<AnyEndpoint> {
    let role = match header.role.as_str() {
        "" => ROLES.first(),
        name => ROLES.iter().find(|role| role.name() == name),
    };
    let unknown =
        || Exit::Usage.blame(anyhow!("the recording is of a {:?}, which is unknown here", header.role));
    role.ok_or_else(unknown)?.endpoint(header, key)
}

/// A recording's configuration, in its role's form.
fn recorded<T: DeserializeOwned>(header: &Header) -> anyhow::Result<T> {
    serde_json::from_value(header.config.clone())
        .map_err(|error| Exit::Usage.blame(anyhow!("the recording's configuration: {error}")))
}

/// The choice of a recording, with units for bare numbers of bytes: older recordings have such numbers.
fn with_units(choice: Choice, options: &[Opt]) -> Choice {
    let sizes = options.iter().filter(|option| option.kind == Kind::Bytes);
    sizes.fold(choice, |choice, option| match choice.options.get(option.name) {
        Some(Scalar::Count(size)) => {
            let size = format!("{size} B");
            choice.with(option.name, &size)
        }
        _ => choice,
    })
}

/// Cases of all roles in `conformance`.
pub(crate) fn cases(full: bool) -> Vec<Case> {
    ROLES.iter().flat_map(|role| role.cases(full)).collect()
}

/// Rows and texts of decisions made again, of all roles.
pub(crate) fn replayed(events: &[Event]) -> Vec<(Rows, Shown)> {
    ROLES.iter().filter_map(|role| role.replayed(events)).collect()
}

/// Results of another method on the records of an endpoint.
pub(crate) fn by_method(
    method: &MethodArgs,
    header: &Header,
    records: &[Value],
) -> anyhow::Result<(Rows, Shown)> {
    let found = ROLES.iter().find_map(|role| role.by_method(method, header, records));
    found.unwrap_or_else(|| Err(Exit::NoResult.blame(anyhow!("the recording holds no streams"))))
}

/// The lanes of all roles.
pub(crate) fn lanes() -> Vec<&'static str> {
    ROLES.iter().flat_map(|role| role.lanes()).copied().collect()
}

/// A decision in words.
pub(crate) fn told(what: &Decision) -> Told {
    // Decisions are of roles, each of one.
    let unknown = || Told { lane: "", mood: Mood::Neutral, text: named(what) };
    ROLES.iter().find_map(|role| role.told(what)).unwrap_or_else(unknown)
}

/// A decision's name, as event files have it.
fn named(what: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(what).unwrap_or_default();
    json["event"].as_str().unwrap_or("event").replace('-', " ")
}

/// True if a page keeps a decision however many others there are.
pub(crate) fn is_result(what: &Decision) -> bool {
    ROLES.iter().any(|role| role.is_result(what))
}

/// A page's sections of results, of all roles.
#[cfg(feature = "pages")]
pub(crate) fn results(run: &Run) -> String {
    ROLES.iter().map(|role| role.results(run)).collect()
}

/// A page's plots of what was recorded.
#[cfg(feature = "pages")]
pub(crate) fn plots(run: &Run) -> String {
    ROLES.iter().map(|role| role.plots(run)).collect()
}
