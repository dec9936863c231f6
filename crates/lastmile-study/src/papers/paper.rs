//! A paper: its scenarios, its numbers, its tables, figures and claims, and the runs that these need.

use lastmile::endpoint::Event;
use lastmile::options::{Entry, Opt};
use lastmile::time::Time;
use lastmile_sim::monitor::accounting::NetworkOutcome;
use lastmile_sim::roles::Found;
use lastmile_sim::scenario::Scenario;

use super::case::{Case, Lines, Numbers};
use super::claim::Claim;
use super::item::Item;
use super::watch::{Seen, Watch};
use crate::error::{Error, Result};
use lastmile::units::Rate;
use lastmile_report::table::{Cell, Table};

/// A paper.
#[derive(Debug)]
pub struct Paper {
    /// Its name on the command line.
    pub name: &'static str,
    /// The folder of its scenario files, from the root of the sources.
    pub folder: &'static str,
    /// Authors, title, where it appeared.
    pub citation: &'static str,
    /// Number of its tables.
    pub tables: u32,
    /// Number of its figures.
    pub figures: u32,
    /// The scenario files of its folder, by their names.
    pub scenarios: &'static [(&'static str, &'static str)],
    /// Its own numbers as TOML.
    pub numbers: &'static str,
    /// Observation during a run; nothing if the end of the run tells all.
    pub watch: Option<Watch>,
    /// True if its runs are measurements: a run ends once these have, and no truth is found beside them.
    pub measures: bool,
    /// Numbers of a run.
    pub measure: fn(&Run<'_>) -> Numbers,
    /// Lines drawn of each case's first run.
    pub draw: fn(&Run<'_>) -> Lines,
    /// Its tables, its figures, and other things of it that are made again.
    pub items: fn() -> Vec<Item>,
    /// Its claims.
    pub claims: fn() -> Vec<Claim>,
}

impl Entry for Paper {
    const WHAT: &'static str = "paper";
    fn name(&self) -> &'static str {
        self.name
    }
    fn options(&self) -> &'static [Opt] {
        &[]
    }
}

impl Paper {
    /// A case as a command that runs it.
    pub(super) fn command(&self, case: &Case) -> String {
        let set: Vec<_> = case.set.iter().map(|(key, value)| format!(" --set '{key}={value}'")).collect();
        let (file, set) = (format!("{}/{}.toml", self.folder, case.scenario), set.concat());
        let word = |word: &String| if word.contains(' ') { format!("'{word}'") } else { word.clone() };
        let words = |words: &[String]| words.iter().map(word).collect::<Vec<_>>().join(" ");
        let programs = case.programs.iter().map(|(host, each)| format!(" --in {host} -- {}", words(each)));
        let programs: Vec<_> = programs.collect();
        match (programs.is_empty(), case.filmed) {
            (true, None) => format!("lastmile sim {file}{set}"),
            (true, Some((width, height))) => {
                format!("lastmile sim {file}{set}, with real video of {width}x{height}")
            }
            (false, _) => format!("lastmile lab {file}{set}{}", programs.concat()),
        }
    }

    /// The scenario file of a case.
    pub(super) fn text(&self, case: &Case) -> Option<&'static str> {
        self.scenarios.iter().find(|file| file.0 == case.scenario).map(|file| file.1)
    }

    /// The scenario of a case.
    ///
    /// # Errors
    /// There is no such file, or it has no such key.
    pub fn scenario(&self, case: &Case) -> Result<Scenario> {
        let text = self.text(case).ok_or_else(|| Error::Input(format!("no scenario {}", case.scenario)))?;
        let name = format!("{}.toml", case.scenario);
        Ok(Scenario::parse_with(&name, text, &case.overrides())?)
    }

    /// The topology of one of its scenarios, as papers draw it.
    pub fn links(&self, scenario: &'static str) -> Table {
        self.scenario(&Case::new(scenario)).map_or_else(|_| Table::default(), |scenario| topology(&scenario))
    }
}

/// The topology of a scenario: its links one by one, its stations by their access points.
pub fn topology(scenario: &Scenario) -> Table {
    let mut table = Table::new(&["from", "to", "rate", "delay", "queue", "loses packets"]);
    let of_link = |rate: Option<Rate>| rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
    for link in &scenario.links {
        let config = &link.config;
        let of = |vertex| Cell::from(scenario.vertex_name(vertex));
        let loses = if config.losses.is_empty() { "no" } else { "yes" };
        let cells =
            [of_link(config.rate), config.delay.to_string(), config.queue.to_string(), loses.to_owned()];
        table.row([of(link.from), of(link.to)].into_iter().chain(cells.map(Cell::from)));
    }
    for station in scenario.wlans.iter().flat_map(|wlan| &wlan.config.station) {
        let Some(ap) = &station.ap else { continue };
        let loses = if station.frame_error > 0.0 || station.channel.is_some() { "yes" } else { "no" };
        let queue = format!("{} packets", station.queue);
        let cells = [of_link(station.rate), "-".to_owned(), queue, loses.to_owned()];
        table.row([ap.clone(), station.name.clone()].into_iter().chain(cells).map(Cell::from));
    }
    table.of_links()
}

/// A run that has ended.
pub struct Run<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Its seed.
    pub seed: u64,
    /// Results of its endpoints.
    pub found: &'a Found,
    /// Results of its traffic, links and WLANs.
    pub network: &'a NetworkOutcome,
    /// All decisions, in order.
    pub events: &'a [Event],
    /// Notes of the paper's [`Watch`].
    pub seen: &'a Seen,
}

impl Run<'_> {
    /// Decisions of one role's endpoints, with the times on their hosts' clocks.
    pub fn decisions<E: 'static>(&self) -> impl Iterator<Item = (Time, &E)> {
        self.events.iter().filter_map(|event| Some((event.at, event.what.of::<E>()?)))
    }
}
