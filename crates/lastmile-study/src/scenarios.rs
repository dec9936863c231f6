//! Scenarios by name: those that come with the project, the simulator's own and those by which rate controllers are evaluated
//! (RFC 8867, sections 5.1 to 5.8; RFC 8869, sections 3.1 and 3.2), or files. `docs/evaluate-numbers.md` says where they differ from the RFCs.

use std::fs;
use std::io::Read;

use lastmile::time::Span;
use lastmile::units::Bytes;
use lastmile_sim::network::traffic::Arrivals;
use lastmile_sim::network::wlan::StationTrace;
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::{Hooks, SimulatedRun, simulate};
use lastmile_sim::scenario::{BUILTIN, MAX_TEXT, Override, Scenario, TrafficSpec, builtin_text};

use crate::audience::Audience;
use crate::error::{Error, Result};

macro_rules! ready {
    ($(#[$about:meta])* $list:ident, $text:ident: $($name:literal),+ $(,)?) => {
        $(#[$about])*
        pub const $list: &[&str] = &[$($name),+];

        fn $text(name: &str) -> Option<&'static str> {
            match name {
                $($name => Some(include_str!(concat!("../scenarios/", $name, ".toml"))),)+
                _ => None,
            }
        }
    };
}
ready! {
    /// The names of the test cases of RFC 8867 and RFC 8869.
    RMCAT, rmcat_text:
    "rfc8867-5.1", "rfc8867-5.1-delay", "rfc8867-5.1-udp", "rfc8867-5.2", "rfc8867-5.2-udp", "rfc8867-5.3",
    "rfc8867-5.3-free", "rfc8867-5.3-udp", "rfc8867-5.4", "rfc8867-5.5", "rfc8867-5.6", "rfc8867-5.6-bloated",
    "rfc8867-5.7", "rfc8867-5.8", "rfc8869-3.1-up", "rfc8869-3.1-pair", "rfc8869-3.1-on-off",
    "rfc8869-3.1-off-on", "rfc8869-3.1-tcp", "rfc8869-3.2-down", "rfc8869-3.2-up", "rfc8869-3.2-both",
    "rfc8869-3.2-on-off", "rfc8869-3.2-off-on", "rfc8869-3.2-tcp", "rfc8869-3.2-n",
}
ready! {
    /// The names of further paths of the league; `docs/league.md` says what each is for.
    PATHS, paths_text:
    "one-video", "late-comer", "tcp-leaves", "beside-tcp", "burst-loss", "step-5-1-5", "step-0.15-5", "hand-off",
    "walk", "rfc8867-6.1", "rfc8867-6.3", "call", "wifi-download", "wifi-uplinks",
}

/// The names of all scenarios that come with the project, in the order in which they are listed.
pub fn names() -> Vec<&'static str> {
    [BUILTIN, RMCAT, PATHS].concat()
}

/// The text of one of them.
pub fn ready(name: &str) -> Option<&'static str> {
    builtin_text(name).or_else(|| rmcat_text(name)).or_else(|| paths_text(name))
}

/// The text of a scenario, by a ready one's name or a file's path, and its name in errors.
///
/// # Errors
/// It is no ready one's name, and the file cannot be read.
pub fn text(name: &str) -> Result<(String, String)> {
    if let Some(text) = ready(name) {
        return Ok((format!("{name}.toml"), text.to_owned()));
    }
    match read(name) {
        Ok(text) => Ok((name.to_owned(), text)),
        Err(error) => {
            let is_file = name.contains('/') || name.ends_with(".toml");
            let list = if is_file { "" } else { "; `lastmile scenarios` lists those that are built in" };
            Err(Error::Input(format!("cannot read scenario {name}: {error}{list}")))
        }
    }
}

/// A file's text, no more of it than one byte beyond what a scenario may have: the reader refuses that by itself.
fn read(name: &str) -> std::io::Result<String> {
    let mut text = String::new();
    fs::File::open(name)?.take(MAX_TEXT as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// The scenario of that name or file, checked, with some of its values replaced.
///
/// ```
/// use lastmile_sim::scenario::Override;
/// let scenario = lastmile_study::scenarios::load("path", &[Override::new("duration", "3 s")])?;
/// assert_eq!(scenario.duration.to_string(), "3 s");
/// # Ok::<(), lastmile_study::Error>(())
/// ```
///
/// # Errors
/// It cannot be read, or is no scenario.
pub fn load(name: &str, overrides: &[Override]) -> Result<Scenario> {
    let (file, text) = text(name)?;
    Ok(Scenario::parse_with(&file, &text, overrides)?)
}

/// Mixes more into a hash.
pub(crate) fn mixed(hash: u64, more: u64) -> u64 {
    (hash ^ more).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// Fingerprint of the files beside a scenario that it reads.
pub(crate) fn traces(scenario: &Scenario) -> u64 {
    let packet =
        |hash, packet: &(Span, Bytes)| mixed(hash, packet.0.as_nanos() as u64 ^ packet.1.0.rotate_left(40));
    let flow = |hash, flow: &TrafficSpec| match &flow.arrivals {
        Arrivals::Trace(trace) => trace.packets().iter().fold(hash, packet),
        _ => hash,
    };
    let links = scenario.links.iter().filter_map(|link| link.config.trace.as_ref());
    let stations = scenario.wlans.iter().flat_map(|wlan| &wlan.config.station);
    let stations = stations.filter_map(|station| match station.trace.as_ref()? {
        StationTrace::Open(trace) => Some(trace),
        StationTrace::Named(_) => None,
    });
    links
        .chain(stations)
        .fold(scenario.traffic.iter().fold(0, flow), |hash, trace| mixed(hash, trace.fingerprint()))
}

/// Runs a scenario in virtual time; hooks look on.
pub(crate) fn simulated(
    scenario: &Scenario,
    seed: u64,
    hooks: Hooks,
    audience: &Audience,
) -> Result<SimulatedRun> {
    simulated_with(scenario, seed, &Makers::registered(Span::ZERO, seed), hooks, audience)
}

/// The same with state machines of one's own.
pub(crate) fn simulated_with(
    scenario: &Scenario,
    seed: u64,
    make: &Makers,
    hooks: Hooks,
    audience: &Audience,
) -> Result<SimulatedRun> {
    if audience.is_gone() {
        return Err(Error::interrupted());
    }
    let waits = audience.clone();
    let hooks = Hooks { progress: Some(Box::new(move |_| waits.goes_on())), ..hooks };
    let run = simulate(scenario, seed, make, hooks)?;
    if run.stopped { Err(Error::interrupted()) } else { Ok(run) }
}
