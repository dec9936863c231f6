//! Papers' tables, figures and claims again, beside what the papers have.
//!
//! A paper is a folder here, with its scenarios, its numbers and its claims, and a line in [`PAPERS`]. Code for every paper
//! stands beside the folders.

use std::collections::BTreeMap;

use lastmile::options::Registry;
use lastmile_report::text::{Table, Text};
use serde_json::{Value, json};

use crate::World;
use crate::audience::Audience;
use crate::error::{Error, Result};
use crate::fleet::Fleet;

mod case;
mod claim;
mod ecnprobe;
mod film;
mod item;
#[cfg(feature = "lab")]
mod lab;
mod lda;
pub mod page;
mod paper;
mod results;
mod simulate;
mod tfrc_probe;
mod vtp;
mod watch;
mod wbest;

pub use case::{Case, Lines, Numbers};
use claim::Without;
pub use claim::{Bar, Claim, Part, Parts, Stated, Verdict};
pub use film::Film;
pub use item::{How, Item, Made, Number, Row, Shown, each, means};
pub use paper::{Paper, Run, topology};
pub use results::{Middle, Results};
pub use watch::{Passed, Seen, Watch};

/// All papers.
pub static PAPERS: Registry<Paper> =
    Registry::new(&[&ecnprobe::PAPER, &lda::PAPER, &tfrc_probe::PAPER, &vtp::PAPER, &wbest::PAPER]);

/// Runs of each case in the simulator, unless a request or an item says otherwise.
const RUNS: u64 = 10;

/// Runs after which a claim may stay undecided because the intervals hold its bars: in the simulator, in the lab.
const ENOUGH: usize = 100;
const ENOUGH_IN_LAB: usize = 15;
/// Claims of a paper that may stay undecided so; all others are decided by their medians. Variants of ours are undecided wherever an
/// interval holds a bar.
const UNDECIDED: usize = 2;

/// Items of a paper to make again.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The items, by name; all that are made by default if there is none.
    pub items: Vec<String>,
    /// Where.
    pub world: World,
    /// Runs of each case, seeds 1 to N; by default 10, in the lab one, or as many as an item needs.
    pub runs: Option<u64>,
    /// Real video, for the items that need it.
    pub film: Option<Film>,
}

/// Items made again, and claims decided.
pub struct Reproduction {
    /// For programs and [`page`].
    pub document: Value,
    /// For people.
    pub text: Text,
}

/// Makes a paper's tables and figures again, and decides its claims; a shard has neither. Runs go on all cores of the pool of threads
/// that it is called in.
///
/// # Errors
/// There is no such item, a run cannot be, or the files of shards are not of these items.
pub fn reproduce(
    paper: &Paper,
    request: &Request,
    fleet: &Fleet,
    audience: &Audience,
) -> Result<Option<Reproduction>> {
    let items = (paper.items)();
    let chosen = chosen(&items, request)?;
    let film = request.film.as_ref();
    film::check(film, &chosen)?;
    let results = match request.world {
        World::Sim => {
            let cases = how_often(&chosen, request.runs, |made| made.sim);
            let seeds = request.runs.unwrap_or_else(|| of_most(&cases));
            let Some(results) = Results::simulate(paper, cases, seeds, film, fleet, audience)? else {
                return Ok(None);
            };
            results
        }
        World::Lab if !matches!(fleet, Fleet::Whole) => {
            let why =
                "runs in the lab follow each other on one machine: only those of the simulator have shards";
            return Err(Error::Input(why.to_owned()));
        }
        #[cfg(feature = "lab")]
        World::Lab => Results::lab(paper, how_often(&chosen, request.runs, |made| made.lab), film, audience)?,
        #[cfg(not(feature = "lab"))]
        World::Lab => return Err(Error::Machine("the lab was left out of this program".to_owned())),
    };
    let document = document(paper, &items, &chosen, &results, request);
    let text = text(&chosen, &results, &document);
    Ok(Some(Reproduction { document, text }))
}

/// The items that are asked for: all that are made unless some are named.
fn chosen<'a>(items: &'a [Item], request: &Request) -> Result<Vec<&'a Item>> {
    if request.items.is_empty() {
        return match request.world {
            World::Sim => Ok(items.iter().filter(|item| item.by_default()).collect()),
            World::Lab => Err(Error::Input(
                "in the lab each run takes minutes: name the items, --item NAME (--list)".to_owned(),
            )),
        };
    }
    let find = |name: &String| {
        let item = items.iter().find(|item| item.id == name);
        let item = item.ok_or_else(|| {
            let known: Vec<_> = items.iter().map(|item| item.id).collect();
            Error::Input(format!("there is no item {name:?}; known: {}", known.join(", ")))
        })?;
        match &item.how {
            How::Made(_) => Ok(item),
            How::Waits(what) => Err(Error::Input(format!("{name} waits for {what}"))),
            How::Never(why) => Err(Error::Input(format!("{name} cannot be made: {why}"))),
        }
    };
    request.items.iter().map(find).collect()
}

/// Number of runs that most cases have.
fn of_most(cases: &BTreeMap<Case, u64>) -> u64 {
    let count = |runs: u64| cases.values().filter(|other| **other == runs).count();
    cases.values().copied().max_by_key(|&runs| count(runs)).unwrap_or(RUNS)
}

/// Number of runs of each case: as asked for, or as the item needs that has most of it.
fn how_often(chosen: &[&Item], asked: Option<u64>, of: fn(&Made) -> u64) -> BTreeMap<Case, u64> {
    let mut runs = BTreeMap::new();
    for item in chosen {
        let How::Made(made) = &item.how else { continue };
        for case in &made.cases {
            let most = runs.entry(case.clone()).or_insert(1);
            *most = asked.unwrap_or_else(|| of(made)).max(*most);
        }
    }
    runs
}

/// All papers: for programs and for people.
pub fn papers() -> (Value, Table) {
    let row = |paper: &&Paper| json!({ "paper": paper.name, "tables": paper.tables, "figures": paper.figures, "citation": paper.citation });
    let mut text = Table::new(&["paper", ">tables", ">figures", "citation"]);
    for paper in PAPERS.iter() {
        let [tables, figures] = [paper.tables, paper.figures].map(|n| n.to_string());
        text.row([paper.name, &tables, &figures, paper.citation]);
    }
    (PAPERS.iter().map(row).collect(), text)
}

/// A paper's tables and figures, and the state of each: for programs and for people.
pub fn list(paper: &Paper) -> (Value, Text) {
    let items = (paper.items)();
    let state = |item: &Item| match &item.how {
        How::Made(made) if made.apart => "made where it is named".to_owned(),
        How::Made(made) if made.lab > 1 => format!("made; in the lab {} runs decide", made.lab),
        How::Made(_) => "made".to_owned(),
        How::Waits(what) => format!("waits for {what}"),
        How::Never(why) => format!("cannot be made: {why}"),
    };
    let number = |item: &Item| item.number.map(|number| number.to_string());
    let row = |item: &Item| json!({ "item": item.id, "number": number(item), "shows": item.shows, "state": state(item), "cases": item.cases().len() });
    let mut table = Table::new(&["item", "~in the paper", ">cases", "~state", "content"]);
    for item in &items {
        let number = number(item).unwrap_or_else(|| "in words".to_owned());
        let cases = item.cases().len().to_string();
        let shows = match item.how {
            How::Made(_) => item.shows.to_owned(),
            _ => format!("{}: {}", state(item), item.shows),
        };
        table.row([item.id.to_owned(), number, cases, state(item), shows]);
    }
    (items.iter().map(row).collect(), table.into())
}

/// Why a claim is not decided in the world that was asked for.
fn elsewhere(paper: &Paper, claim: &Claim) -> String {
    let (name, items) = (paper.name, claim.items.join(","));
    match claim.world {
        World::Sim => "is decided in the simulator".to_owned(),
        World::Lab => format!("is decided by lastmile reproduce {name} --world lab --item {items}"),
    }
}

/// All that was found, for programs and for the page.
fn document(paper: &Paper, items: &[Item], chosen: &[&Item], results: &Results, request: &Request) -> Value {
    let waits = |id: &&&str| {
        let item = items.iter().find(|item| item.id == **id);
        item.and_then(|item| if let How::Waits(what) = item.how { Some(what) } else { None })
    };
    let mut undecided = 0;
    let mut claim = |claim: &Claim| {
        let missing: Vec<_> =
            claim.items.iter().filter(|id| !chosen.iter().any(|item| item.id == **id)).collect();
        let waits_for = |why: String| (None, String::new(), why, Vec::new(), Vec::new());
        let mut shown = "";
        let (holds, ours, why, parts, without) =
            match (missing.iter().find_map(waits), claim.world == request.world, missing.first()) {
                (Some(what), ..) => waits_for(format!("waits for {what}")),
                (None, false, _) => waits_for(elsewhere(paper, claim)),
                (None, true, Some(id)) => waits_for(format!("needs {id}, which was not asked for")),
                (None, true, None) => {
                    let enough = match (claim.is_of_the_paper(), request.world) {
                        // A variant explains nothing where chance decides.
                        (false, _) => 0,
                        (true, _) if undecided >= UNDECIDED => usize::MAX,
                        (true, World::Lab) => ENOUGH_IN_LAB,
                        (true, World::Sim) => ENOUGH,
                    };
                    let (verdict, parts, without) = results.decide(&claim.decide, enough);
                    undecided += usize::from(verdict.by_chance && claim.is_of_the_paper());
                    let cause = if verdict.holds == Some(false) { claim.cause } else { "" };
                    shown = cause;
                    let why = [verdict.why.as_str(), cause].into_iter().filter(|why| !why.is_empty());
                    let why = why.collect::<Vec<_>>().join(". ");
                    (verdict.holds, said(verdict.ours, &without), why, parts, without)
                }
            };
        json!({
            "id": claim.id, "claim": claim.claim,
            "paper": claim.paper.to_string(), "ours": ours, "holds": holds, "why": why, "cause": shown, "parts": parts, "without": without,
            // Of claims that nobody asked for by naming items.
            "needs": if request.items.is_empty() { Vec::new() } else { missing },
        })
    };
    let claims: Vec<(bool, Value)> =
        (paper.claims)().iter().map(|each| (each.is_of_the_paper(), claim(each))).collect();
    let of_the_paper = claims.iter().filter(|(is, _)| *is).map(|(_, claim)| claim);
    let held = held(of_the_paper);
    let claims: Vec<Value> = claims.into_iter().map(|(_, claim)| claim).collect();
    let items: Vec<Value> = chosen
        .iter()
        .filter_map(|item| {
            let How::Made(made) = &item.how else { return None };
            let table = (made.table)(results);
            let (columns, rows, charts) = table.json();
            let number = item.number.map(|number| number.to_string());
            Some(json!({
                "item": item.id, "number": number, "shows": item.shows, "columns": columns, "rows": rows, "charts": charts,
                "topology": table.is_topology(),
            }))
        })
        .collect();
    let world = if request.world == World::Lab { "lab" } else { "sim" };
    json!({
        "schema": lastmile::SCHEMA, "paper": paper.name, "citation": paper.citation, "world": world, "runs": results.seeds,
        "items": items, "held": held, "claims": claims,
    })
}

/// Of the paper's own claims: those that hold as written, miss with a cause and without one, and are not decided.
fn held<'a>(claims: impl Iterator<Item = &'a Value>) -> Value {
    let (mut holds, mut misses, mut without_cause, mut undecided) = (0, 0, 0, 0);
    for claim in claims {
        match claim["holds"].as_bool() {
            Some(true) => holds += 1,
            None => undecided += 1,
            Some(false) if claim["cause"] == "" => without_cause += 1,
            Some(false) => misses += 1,
        }
    }
    json!({ "holds": holds, "misses_with_cause": misses, "misses_without_cause": without_cause, "undecided": undecided })
}

/// Our numbers, and the runs that had none.
fn said(ours: String, without: &[Without]) -> String {
    let each = |Without { number, without, runs }: &Without| {
        format!(
            "; no {} in {without} of {runs} run{}",
            number.replace('_', " "),
            if *runs == 1 { "" } else { "s" }
        )
    };
    without.iter().map(each).fold(ours, |ours, each| ours + &each)
}

/// For people.
fn text(chosen: &[&Item], results: &Results, document: &Value) -> Text {
    let mut text = Text::default();
    for item in chosen {
        let How::Made(made) = &item.how else { continue };
        let number = item.number.map_or_else(String::new, |number| format!(" ({number})"));
        text.say(format!("{}{number}: {}", item.id, item.shows));
        text.table((made.table)(results).text());
        text.say("");
    }
    let (mut undecided, mut others) = (Vec::new(), 0);
    for claim in document["claims"].as_array().into_iter().flatten() {
        if page::is_elsewhere(claim) {
            others += 1;
            continue;
        }
        let of = |key: &str| claim[key].as_str().unwrap_or_default();
        let Some(holds) = claim["holds"].as_bool() else {
            undecided.push(format!("{} ({})", of("id"), of("why")));
            continue;
        };
        text.say(format!("{} {}: {}", of("id"), if holds { "holds" } else { "does not hold" }, of("claim")));
        text.say(format!("  paper: {}", of("paper")));
        text.say(format!("  ours: {}", of("ours")));
        if !holds {
            text.say(format!("  why: {}", of("why")));
        }
    }
    if let Some(counted) = page::counted(document).filter(|_| others == 0) {
        text.say(counted);
    }
    if !undecided.is_empty() {
        text.say(format!("undecided: {}", undecided.join(", ")));
    }
    if others > 0 {
        text.say(page::elsewhere(others));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_a_scenario() {
        for paper in PAPERS.iter() {
            let cases = (paper.items)().iter().flat_map(|item| item.cases().to_vec()).collect();
            simulate::checked(paper, cases).unwrap();
        }
    }
}
