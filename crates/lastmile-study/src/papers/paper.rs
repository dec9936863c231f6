//! What a reproduction is made of: a paper's tables and figures as items, what it claims, and the runs that both need.

use std::collections::BTreeMap;

use lastmile::endpoint::Event;
use lastmile::options::{Entry, Opt};
use lastmile::time::Time;
use lastmile_sim::monitor::accounting::NetworkOutcome;
use lastmile_sim::roles::Found;
use lastmile_sim::scenario::{Override, Scenario};

use super::results::Results;
use super::watch::{Seen, Watch};
use crate::World;
use crate::error::{Error, Result};
pub use crate::runs::Numbers;
use lastmile::units::Rate;
use lastmile_report::table::{Cell, Table};

/// A paper.
pub struct Paper {
    /// What the command calls it.
    pub name: &'static str,
    /// The folder of its scenario files, from the root of the sources.
    pub folder: &'static str,
    /// Authors, title, where it appeared.
    pub citation: &'static str,
    /// How many tables and how many figures it has.
    pub tables: u32,
    /// How many figures.
    pub figures: u32,
    /// The scenario files of its folder, by their names.
    pub scenarios: &'static [(&'static str, &'static str)],
    /// Its own numbers as TOML.
    pub numbers: &'static str,
    /// Its claims as TOML: a sentence by each id.
    pub statements: &'static str,
    /// What is looked at while a run goes; nothing where its end tells all.
    pub watch: Option<Watch>,
    /// What is kept of a run.
    pub measure: fn(&Run<'_>) -> Numbers,
    /// What of each case's first run is drawn over time.
    pub draw: fn(&Run<'_>) -> Lines,
    /// Its tables, its figures, and what else of it is made again.
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
    /// The scenario of a case.
    ///
    /// # Errors
    /// There is no such file, or it has no such key.
    pub fn scenario(&self, case: &Case) -> Result<Scenario> {
        let file = self.scenarios.iter().find(|file| file.0 == case.scenario);
        let text =
            file.map(|file| file.1).ok_or_else(|| Error::Input(format!("no scenario {}", case.scenario)))?;
        let name = format!("{}.toml", case.scenario);
        Ok(Scenario::parse_with(&name, text, &case.overrides())?)
    }

    /// The topology of one of its scenarios, as papers draw it.
    pub fn links(&self, scenario: &'static str) -> Table {
        self.scenario(&Case::new(scenario)).map_or_else(|_| Table::default(), |scenario| topology(&scenario))
    }
}

/// What lies between the hosts of a scenario: its links one by one, its stations by their access points.
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
    table
}

/// What of a run is drawn: points by the name of the line.
pub type Lines = BTreeMap<&'static str, Vec<(f64, f64)>>;

/// A run that has ended.
pub struct Run<'a> {
    /// What was run.
    pub scenario: &'a Scenario,
    /// Its seed.
    pub seed: u64,
    /// What came of its endpoints.
    pub found: &'a Found,
    /// What its traffic got, and what its links and WLANs carried.
    pub network: &'a NetworkOutcome,
    /// All decisions, in order.
    pub events: &'a [Event],
    /// What the paper's [`Watch`] noted.
    pub seen: &'a Seen,
}

impl Run<'_> {
    /// What endpoints of one role decided, with the times on their hosts' clocks.
    pub fn decisions<E: 'static>(&self) -> impl Iterator<Item = (Time, &E)> {
        self.events.iter().filter_map(|event| Some((event.at, event.what.of::<E>()?)))
    }
}

/// A scenario of the paper with some of its values replaced: run with each seed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// The name of the paper's scenario file.
    pub scenario: &'static str,
    /// Keys of the scenario and the values that replace theirs.
    pub set: Vec<(String, String)>,
}

impl Case {
    /// That scenario as it is.
    pub fn new(scenario: &'static str) -> Case {
        Case { scenario, set: Vec::new() }
    }

    /// With that key of the scenario replaced.
    pub fn set(mut self, key: impl Into<String>, value: impl ToString) -> Case {
        self.set.push((key.into(), value.to_string()));
        self
    }

    /// The values that are replaced, as scenarios take them.
    pub fn overrides(&self) -> Vec<Override> {
        self.set.iter().map(|(key, value)| Override::new(key, value)).collect()
    }

    /// As a command that runs it.
    pub fn command(&self, paper: &Paper) -> String {
        let set: Vec<_> = self.set.iter().map(|(key, value)| format!(" --set '{key}={value}'")).collect();
        format!("lastmile sim {}/{}.toml{}", paper.folder, self.scenario, set.concat())
    }
}

/// What a paper calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A table.
    Table(u32),
    /// A figure.
    Figure(u32),
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Table(number) => write!(f, "table {number}"),
            Number::Figure(number) => write!(f, "figure {number}"),
        }
    }
}

/// A table or figure, or what else a paper says of runs of its own.
pub struct Item {
    /// Its name.
    pub id: &'static str,
    /// Nothing for what the paper says in words only.
    pub number: Option<Number>,
    /// What it shows, in one line.
    pub shows: &'static str,
    /// How it is made.
    pub how: How,
}

/// How an item is made.
pub enum How {
    /// From runs.
    Made(Made),
    /// What it needs does not exist yet.
    Waits(&'static str),
    /// It cannot be made, and why.
    Never(&'static str),
}

/// An item that is made from runs.
pub struct Made {
    /// The runs that it is made of.
    pub cases: Vec<Case>,
    /// Makes it of what came of them.
    pub table: Box<dyn Fn(&Results) -> Table>,
    /// Only where it is asked for by name.
    pub apart: bool,
    /// Runs of each case in the lab: more than one where these decide a claim.
    pub lab: u64,
}

impl Item {
    /// One that is made from these runs, by that.
    pub fn made(
        id: &'static str,
        number: Option<Number>,
        shows: &'static str,
        cases: Vec<Case>,
        table: impl Fn(&Results) -> Table + 'static,
    ) -> Item {
        Item {
            id,
            number,
            shows,
            how: How::Made(Made { cases, table: Box::new(table), apart: false, lab: 1 }),
        }
    }

    /// One that waits for what does not exist yet.
    pub fn waits(id: &'static str, number: Option<Number>, shows: &'static str, what: &'static str) -> Item {
        Item { id, number, shows, how: How::Waits(what) }
    }

    /// One that cannot be made, and why.
    pub fn never(id: &'static str, number: Option<Number>, shows: &'static str, why: &'static str) -> Item {
        Item { id, number, shows, how: How::Never(why) }
    }

    /// The same, only where it is asked for by name.
    pub fn apart(mut self) -> Item {
        if let How::Made(made) = &mut self.how {
            made.apart = true;
        }
        self
    }

    /// The same, with so many runs of each case in the lab.
    pub fn lab(mut self, runs: u64) -> Item {
        if let How::Made(made) = &mut self.how {
            made.lab = runs;
        }
        self
    }

    /// Whether it is made where nobody names any.
    pub fn by_default(&self) -> bool {
        matches!(&self.how, How::Made(made) if !made.apart)
    }
}

/// Something that a paper says, and that runs decide.
pub struct Claim {
    /// Its name: the paper's letter and a number; `x` for readings of our own.
    pub id: &'static str,
    /// What the paper has of it.
    pub paper: Stated,
    /// The world whose runs decide.
    pub world: World,
    /// The items whose runs decide.
    pub items: &'static [&'static str],
    /// Decides it.
    pub decide: fn(&Results) -> Verdict,
    /// Where it does not hold: the cause, and the variant in which it does, if there is one.
    pub cause: &'static str,
}

/// What a paper has of a claim, and where: tables, figures, sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stated {
    /// Numbers with their units: each stands in the paper's `figures.toml`.
    Numbers {
        /// Where.
        at: &'static str,
        /// The numbers.
        says: String,
    },
    /// No number. Its words, and the bar of ours that they are taken for.
    Words {
        /// Where.
        at: &'static str,
        /// The words.
        says: &'static str,
        /// The bar.
        bar: &'static str,
    },
}

impl Stated {
    /// Numbers that stand in the paper.
    pub fn numbers(at: &'static str, says: impl Into<String>) -> Stated {
        Stated::Numbers { at, says: says.into() }
    }

    /// Words of the paper, and our bar.
    pub fn words(at: &'static str, says: &'static str, bar: &'static str) -> Stated {
        Stated::Words { at, says, bar }
    }
}

impl std::fmt::Display for Stated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stated::Numbers { at, says } => write!(f, "{at}: {says}"),
            Stated::Words { at, says, bar } => write!(f, "{at}, in words: {says}; our bar: {bar}"),
        }
    }
}

/// What came of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Nothing where it cannot be decided.
    pub holds: Option<bool>,
    /// Our value.
    pub ours: String,
    /// What of it does not hold, or why it cannot be decided.
    pub why: String,
}

/// Collects what a claim is about, part by part.
#[derive(Debug, Default)]
pub struct Parts {
    unit: &'static str,
    said: Vec<String>,
    missed: Vec<String>,
    unknown: Vec<String>,
}

impl Parts {
    /// Its values are in that unit.
    pub fn of(unit: &'static str) -> Parts {
        Parts { unit, ..Parts::default() }
    }

    /// With parts in another unit.
    pub fn and(mut self, other: Parts) -> Parts {
        self.said.extend(other.said);
        self.missed.extend(other.missed);
        self.unknown.extend(other.unknown);
        self
    }

    /// A value that has to be so; one that is not known decides nothing.
    pub fn value(&mut self, what: &str, value: Option<f64>, holds: impl Fn(f64) -> bool, must: &str) {
        let Some(value) = value else { return self.unknown.push(what.to_owned()) };
        let number = self.number(value);
        if !holds(value) {
            self.missed.push(format!("{what} {number}, not {must}"));
        }
        self.said.push(format!("{what} {number}"));
    }

    /// A value beside which others are judged.
    pub fn beside(&mut self, what: &str, value: Option<f64>) {
        self.value(what, value, |_| true, "");
    }

    fn number(&self, value: f64) -> String {
        let digits = if value != 0.0 && value.abs() < 1.0 { 2 } else { 1 };
        format!("{value:.digits$} {}", self.unit).trim_end().to_owned()
    }

    /// A statement that has to be true.
    pub fn holds(&mut self, said: String, holds: bool) {
        if !holds {
            self.missed.push(said.clone());
        }
        self.said.push(said);
    }

    /// One of many that have to be so: nothing is said of it unless it is not.
    pub fn wants(&mut self, what: &str, holds: Option<bool>) {
        match holds {
            None => self.unknown.push(what.to_owned()),
            Some(true) => {}
            Some(false) => self.missed.push(format!("not {what}")),
        }
    }

    /// What these come to.
    pub fn verdict(self) -> Verdict {
        let ours = self.said.join(", ");
        match (self.unknown.is_empty(), self.missed.is_empty()) {
            (false, _) => {
                Verdict { holds: None, ours, why: format!("nothing is known of {}", self.unknown.join(", ")) }
            }
            (true, holds) => Verdict { holds: Some(holds), ours, why: self.missed.join("; ") },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_said_with_their_units() {
        let mut parts = Parts::of("%");
        parts.value("a", Some(64.25), |of| of >= 90.0, "90 or more");
        parts.beside("b", Some(0.126));
        let mut times = Parts::of("ms");
        times.value("c", Some(0.0), |of| of < 1.0, "below 1");
        let verdict = parts.and(times).verdict();
        assert_eq!(verdict.ours, "a 64.2 %, b 0.13 %, c 0.0 ms");
        assert_eq!((verdict.holds, verdict.why.as_str()), (Some(false), "a 64.2 %, not 90 or more"));
    }

    #[test]
    fn what_is_not_known_decides_nothing() {
        let mut parts = Parts::default();
        parts.value("a", Some(1.0), |_| false, "more");
        parts.value("b", None, |_| true, "");
        let verdict = parts.verdict();
        assert_eq!((verdict.holds, verdict.why.as_str()), (None, "nothing is known of b"));
    }
}
