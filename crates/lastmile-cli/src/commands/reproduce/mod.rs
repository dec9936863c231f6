//! `lastmile reproduce PAPER`: a paper's tables, figures and claims again, beside what the paper has.
//!
//! Here is what every paper needs; what one has, and how it is made, is in a folder of its own.

use std::collections::BTreeMap;

use anyhow::anyhow;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::experiment::{ExperimentArgs, table};
use crate::page::reproduction;
use crate::signals;
use crate::table::Table as Text;

mod lda;
mod paper;
mod results;
mod tfrc_probe;
mod vtp;
mod watch;

use paper::{Case, Claim, How, Item, Paper};
use results::{Results, Without};

/// The papers, which are these lines.
const PAPERS: &[&Paper] = &[&lda::PAPER, &tfrc_probe::PAPER, &vtp::PAPER];

/// Runs of each case in the simulator.
const RUNS: u64 = 10;

/// Make a paper's tables and figures again, beside the paper's own numbers, and decide its claims
///
/// Numbers are means over the runs with their 95 % intervals; the paper's stand in brackets. Claims are decided by medians. Each case is
/// run 10 times unless --runs says otherwise; in the lab once, or as often as decides a claim.
/// The scenarios and the paper's numbers are in the folder `papers` of the sources.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The paper; left out, the papers are listed
    paper: Option<String>,
    /// List the paper's tables and figures, and whether each is made
    #[arg(long)]
    list: bool,
    /// Make only these, by the names that --list shows; several with commas
    #[arg(long, value_name = "ITEM", value_delimiter = ',')]
    item: Vec<String>,
    /// Simulator; or lab, in real time: the items named
    #[arg(long, value_enum, default_value_t = World::Sim)]
    world: World,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum World {
    Sim,
    Lab,
}

impl Args {
    /// Whether it needs namespaces.
    pub(crate) fn needs_lab(&self) -> bool {
        self.world == World::Lab
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let known = || PAPERS.iter().map(|paper| paper.name).collect::<Vec<_>>().join(", ");
    let Some(name) = &args.paper else {
        let mut text = Text::new(&["paper", ">tables", ">figures", "what"]);
        for paper in PAPERS {
            let [tables, figures] = [paper.tables, paper.figures].map(|n| n.to_string());
            text.row([paper.name, &tables, &figures, paper.citation]);
        }
        crate::say(text.text().trim_end());
        return Ok(None);
    };
    let paper = PAPERS.iter().find(|paper| paper.name == name);
    let paper =
        paper.ok_or_else(|| Exit::Usage.blame(anyhow!("there is no paper {name:?}; known: {}", known())))?;
    let items = (paper.items)();
    if args.list {
        return list(&items, args.experiment.json);
    }
    let chosen = chosen(&items, &args)?;
    args.experiment.check()?;
    signals::stop();
    let results = match args.world {
        World::Sim => {
            let pool = args.experiment.threads.pool()?;
            let cases = chosen.iter().flat_map(|item| cases(item)).collect();
            pool.install(|| Results::simulate(paper, cases, args.experiment.runs.unwrap_or(RUNS)))?
        }
        World::Lab => Results::lab(paper, in_lab(&chosen, args.experiment.runs))?,
    };
    let document = document(paper, &items, &chosen, &results, &args)?;
    args.experiment.show(&document, reproduction::page, || say(&chosen, &results, &document))?;
    Ok(None)
}

/// The items that are asked for: all that are made unless some are named.
fn chosen<'a>(items: &'a [Item], args: &Args) -> anyhow::Result<Vec<&'a Item>> {
    let usage = |text: String| Exit::Usage.blame(anyhow!(text));
    if args.item.is_empty() {
        return match args.world {
            World::Sim => Ok(items.iter().filter(|item| item.by_default()).collect()),
            World::Lab => Err(usage(
                "in the lab each run takes minutes: name the items, --item NAME (--list)".to_owned(),
            )),
        };
    }
    let find = |name: &String| {
        let item = items.iter().find(|item| item.id == name);
        let item = item.ok_or_else(|| {
            let known: Vec<_> = items.iter().map(|item| item.id).collect();
            usage(format!("there is no item {name:?}; known: {}", known.join(", ")))
        })?;
        match &item.how {
            How::Made(_) => Ok(item),
            How::Waits(what) => Err(usage(format!("{name} waits for {what}"))),
            How::Never(why) => Err(usage(format!("{name} cannot be made: {why}"))),
        }
    };
    args.item.iter().map(find).collect()
}

/// How often each case is run in the lab.
fn in_lab(chosen: &[&Item], asked: Option<u64>) -> BTreeMap<Case, u64> {
    let mut runs = BTreeMap::new();
    for item in chosen {
        let How::Made(made) = &item.how else { continue };
        for case in &made.cases {
            let most = runs.entry(case.clone()).or_insert(1);
            *most = asked.unwrap_or(made.lab).max(*most);
        }
    }
    runs
}

fn cases(item: &Item) -> Vec<Case> {
    match &item.how {
        How::Made(made) => made.cases.clone(),
        How::Waits(_) | How::Never(_) => Vec::new(),
    }
}

fn list(items: &[Item], json: bool) -> anyhow::Result<Option<Exit>> {
    let state = |item: &Item| match &item.how {
        How::Made(made) if made.apart => "made where it is named".to_owned(),
        How::Made(made) if made.lab > 1 => format!("made; in the lab {} runs decide", made.lab),
        How::Made(_) => "made".to_owned(),
        How::Waits(what) => format!("waits for {what}"),
        How::Never(why) => format!("cannot be made: {why}"),
    };
    let number = |item: &Item| item.number.map(|number| number.to_string());
    if json {
        let row = |item: &Item| json!({ "item": item.id, "number": number(item), "shows": item.shows, "state": state(item), "cases": cases(item).len() });
        crate::say(&serde_json::to_string_pretty(&items.iter().map(row).collect::<Vec<_>>())?);
        return Ok(None);
    }
    let mut text = Text::new(&["item", "in the paper", ">cases", "state", "what it shows"]);
    for item in items {
        let number = number(item).unwrap_or_else(|| "in words".to_owned());
        text.row([
            item.id.to_owned(),
            number,
            cases(item).len().to_string(),
            state(item),
            item.shows.to_owned(),
        ]);
    }
    crate::say(text.text().trim_end());
    Ok(None)
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
fn document(
    paper: &Paper,
    items: &[Item],
    chosen: &[&Item],
    results: &Results,
    args: &Args,
) -> anyhow::Result<Value> {
    let statements: toml::Table = paper.statements.parse()?;
    let waits = |id: &&&str| {
        let item = items.iter().find(|item| item.id == **id);
        item.and_then(|item| if let How::Waits(what) = item.how { Some(what) } else { None })
    };
    let claim = |claim: &Claim| {
        let missing: Vec<_> =
            claim.items.iter().filter(|id| !chosen.iter().any(|item| item.id == **id)).collect();
        let undecided = |why: String| (None, String::new(), why, Vec::new());
        let (holds, ours, why, without) =
            match (missing.iter().find_map(waits), claim.world == args.world, missing.first()) {
                (Some(what), ..) => undecided(format!("waits for {what}")),
                (None, false, _) => undecided(elsewhere(paper, claim)),
                (None, true, Some(id)) => undecided(format!("needs {id}, which was not asked for")),
                (None, true, None) => {
                    let (verdict, without) = results.decide(claim.decide);
                    let cause = if verdict.holds == Some(false) { claim.cause } else { "" };
                    let why = [verdict.why.as_str(), cause].into_iter().filter(|why| !why.is_empty());
                    let why = why.collect::<Vec<_>>().join(". ");
                    (verdict.holds, said(verdict.ours, &without), why, without)
                }
            };
        json!({
            "id": claim.id, "claim": statements.get(claim.id).and_then(toml::Value::as_str),
            "paper": claim.paper.to_string(), "ours": ours, "holds": holds, "why": why, "without": without,
            // Of claims that nobody asked for by naming items.
            "needs": if args.item.is_empty() { Vec::new() } else { missing },
        })
    };
    let items: Vec<Value> = chosen
        .iter()
        .filter_map(|item| {
            let How::Made(made) = &item.how else { return None };
            let (columns, rows, charts) = (made.table)(results).json();
            let number = item.number.map(|number| number.to_string());
            Some(json!({
                "item": item.id, "number": number, "shows": item.shows, "columns": columns, "rows": rows, "charts": charts,
            }))
        })
        .collect();
    let world = if args.world == World::Lab { "lab" } else { "sim" };
    Ok(json!({
        "paper": paper.name, "citation": paper.citation, "world": world, "runs": results.seeds,
        "items": items, "claims": (paper.claims)().iter().map(claim).collect::<Vec<_>>(),
    }))
}

/// Our numbers, and how many runs had none.
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
fn say(chosen: &[&Item], results: &Results, document: &Value) {
    for item in chosen {
        let How::Made(made) = &item.how else { continue };
        let number = item.number.map_or_else(String::new, |number| format!(" ({number})"));
        crate::say(&format!("{}{number}: {}", item.id, item.shows));
        crate::say(&(made.table)(results).text());
    }
    let (mut undecided, mut others) = (Vec::new(), 0);
    for claim in document["claims"].as_array().into_iter().flatten() {
        if reproduction::is_elsewhere(claim) {
            others += 1;
            continue;
        }
        let of = |key: &str| claim[key].as_str().unwrap_or_default();
        let Some(holds) = claim["holds"].as_bool() else {
            undecided.push(format!("{} ({})", of("id"), of("why")));
            continue;
        };
        crate::say(&format!(
            "{} {}: {}",
            of("id"),
            if holds { "holds" } else { "does not hold" },
            of("claim")
        ));
        crate::say(&format!("  paper: {}", of("paper")));
        crate::say(&format!("  ours: {}", of("ours")));
        if !holds {
            crate::say(&format!("  why: {}", of("why")));
        }
    }
    if !undecided.is_empty() {
        crate::say(&format!("undecided: {}", undecided.join(", ")));
    }
    if others > 0 {
        crate::say(&reproduction::elsewhere(others));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paper::Number;

    #[test]
    fn every_table_and_figure_of_every_paper_is_known_once_and_every_claim_decided() {
        for paper in PAPERS {
            let items = (paper.items)();
            let tables = (1..=paper.tables).map(Number::Table);
            for number in tables.chain((1..=paper.figures).map(Number::Figure)) {
                let known = items.iter().filter(|item| item.number == Some(number)).count();
                assert_eq!(known, 1, "{}: {number}", paper.name);
            }
            let beyond = |number: Number| match number {
                Number::Table(table) => table > paper.tables,
                Number::Figure(figure) => figure > paper.figures,
            };
            assert!(!items.iter().filter_map(|item| item.number).any(beyond), "{}", paper.name);
            let mut ids: Vec<_> = items.iter().map(|item| item.id).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), items.len(), "two items of one name");

            let statements: toml::Table = paper.statements.parse().unwrap();
            let claims = (paper.claims)();
            for id in statements.keys() {
                assert!(claims.iter().any(|claim| claim.id == id), "{}: nobody decides {id}", paper.name);
            }
            for claim in &claims {
                let own = claim.id.starts_with('x') || statements.contains_key(claim.id);
                assert!(own, "{} is neither the paper's nor our own", claim.id);
                for id in claim.items {
                    assert!(ids.contains(id), "{}: no item {id}", claim.id);
                }
            }
        }
    }

    /// What a claim has of the paper is numbers that the paper's folder has too, or words with a bar.
    #[test]
    fn every_claim_has_what_the_paper_says() {
        let numbers = |text: &str| -> Vec<f64> {
            let digits = text.split(|c: char| !c.is_ascii_digit() && c != '.');
            digits.filter_map(|digits| digits.trim_matches('.').parse().ok()).collect()
        };
        for paper in PAPERS {
            let known = numbers(paper.numbers);
            for claim in (paper.claims)() {
                let id = format!("{} {}: {}", paper.name, claim.id, claim.paper);
                match &claim.paper {
                    paper::Stated::Numbers { at, says } => {
                        assert!(!at.is_empty() && !numbers(says).is_empty(), "{id}");
                        let unknown = numbers(says).into_iter().find(|number| !known.contains(number));
                        assert_eq!(unknown, None, "not in figures.toml: {id}");
                    }
                    paper::Stated::Words { at, says, bar } => {
                        assert!(!at.is_empty() && says.contains(' ') && bar.contains(' '), "{id}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_case_is_a_scenario() {
        for paper in PAPERS {
            let cases = (paper.items)().iter().flat_map(cases).collect();
            results::checked(paper, cases).unwrap();
        }
    }
}
