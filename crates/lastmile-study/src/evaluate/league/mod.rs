//! The league: rate controllers over all suites of paths, and who is better than whom by rules that stood before the runs
//! (`docs/league.md`).

use lastmile::observe::stats::quantile_of_sorted;
use lastmile_report::Mean;
use lastmile_report::table::{Cell, Chart, Table};
use lastmile_report::text::Text;
use lastmile_sim::scenario::Override;
use serde_json::{Value, json};

use super::cases::{Contender, Tested, contenders};
use super::document::{Evaluated, Plan};
use super::variants::Variants;
use super::{Comparison, Entry, Evaluation, Guest, PLAYOUT};
use crate::audience::Audience;
use crate::error::{Error, Result};
use crate::fleet::Fleet;
use crate::runs::{self, Numbers};

mod suites;

pub use suites::SUITES;
use suites::{BRIEF, LeagueCase};

/// The seed before the first: those up to here are for tuning.
const TUNED: u64 = 100;
/// Runs of a case, and of one with TCP beside.
const RUNS: (u64, u64) = (10, 30);
/// The same of the short league.
const BRIEF_RUNS: (u64, u64) = (3, 5);
/// A rival dominates with a P95 frame delay that is lower by more than this, and a rate that is no more than so many points lower,
const LOWER_MS: f64 = 20.0;
const RATE_POINTS: f64 = 2.0;
/// or with one that is at most so much higher, and a rate that is more than so many points higher.
const ALIKE_MS: f64 = 5.0;
const MORE_POINTS: f64 = 5.0;
/// Points of a distribution, but for its first.
const QUANTILES: u32 = 40;
/// Beside flows that answer, a rival counts that leaves them this share of their fair share, and takes no more than that of its own.
const LEFT: f64 = 0.8;
const TAKEN: f64 = 1.1;

/// Request of a league.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Suites; none for all.
    pub suites: Vec<String>,
    /// Cases; none for all of these suites.
    pub cases: Vec<String>,
    /// Controllers with commas between them; nothing for all but `fixed`. The first is the one that rivals are held against.
    pub controllers: Option<String>,
    /// Controllers that are in no registry, behind those.
    pub guests: Vec<Guest>,
    /// Runs of each case in place of the usual numbers.
    pub runs: Option<u64>,
    /// Seed of the first run, if it is not one that controllers were not tuned with.
    pub first_seed: Option<u64>,
    /// The short league.
    pub brief: bool,
}

/// A league that was checked.
pub struct League {
    evaluation: Evaluation,
    cases: Vec<LeagueCase>,
}

impl League {
    /// Checks what is asked for.
    ///
    /// # Errors
    /// There is no such suite or controller.
    pub fn new(request: &Request) -> Result<League> {
        if let Some(unknown) = request.suites.iter().find(|suite| !SUITES.contains(&suite.as_str())) {
            return Err(Error::Input(format!(
                "--suite {unknown}: no such suite; known: {}",
                SUITES.join(", ")
            )));
        }
        let all = suites::cases();
        if let Some(unknown) = request.cases.iter().find(|name| all.iter().all(|case| case.name != **name)) {
            return Err(Error::Input(format!(
                "--case {unknown}: no such case; `lastmile evaluate league --list` has them"
            )));
        }
        let wanted = |case: &LeagueCase| {
            (request.suites.is_empty() || request.suites.iter().any(|suite| suite == case.suite))
                && (request.cases.is_empty() || request.cases.contains(&case.name))
                && (!request.brief || BRIEF.contains(&case.name.as_str()))
        };
        let cases: Vec<LeagueCase> = all.into_iter().filter(wanted).collect();
        if cases.is_empty() {
            return Err(Error::Input("no case is in all of --suite, --case and --brief".to_owned()));
        }
        let contenders = contenders(request.controllers.as_deref(), &request.guests)?;
        if contenders.contains(&Contender::Tcp) {
            let why = "it sends no frames, whose delay ranks here; `evaluate --scenario` takes it";
            return Err(Error::Input(format!("--controllers: tcp has no place in the league: {why}")));
        }
        let (alone, beside) = if request.brief { BRIEF_RUNS } else { RUNS };
        let mut entries = Vec::new();
        for case in &cases {
            let set = case.set.iter().map(|(key, value)| Override::new(*key, value)).collect();
            let mut of = Tested::load(case.scenario, set, &case.tested())?;
            of.scenario.name.clone_from(&case.name);
            let variants = Variants::new(case.queue, case.loss, case.jitter)?;
            variants.check(&case.name, &of)?;
            let runs = request.runs.unwrap_or(if flows_of_tcp(&of) > 0 { beside } else { alone });
            entries.push(Entry { of, variants, runs, from: case.measured_from() });
        }
        let plan = Plan {
            suite: Some("league"),
            runs: request.runs.unwrap_or(alone),
            first: request.first_seed.unwrap_or(TUNED + 1),
            contenders: contenders.iter().map(ToString::to_string).collect(),
            sources: contenders.iter().map(Contender::source).collect(),
            variants: Vec::new(),
            playout: PLAYOUT,
        };
        Ok(League { evaluation: Evaluation { entries, contenders, plan, left_out: Vec::new() }, cases })
    }

    /// Its cases: suite, name, scenario and the changes of that, for programs and for people.
    pub fn list(&self) -> (Value, Text) {
        let mut table = Table::new(&["suite", "case", "scenario", "changes"]);
        for case in &self.cases {
            table.row([
                case.suite.into(),
                case.name.clone().into(),
                case.scenario.into(),
                case.changes().into(),
            ]);
        }
        (table.json().1, table.text().into())
    }

    /// Runs it, on all cores of the pool of threads that it is called in; a shard has no comparison.
    ///
    /// # Errors
    /// A run cannot be, or the files of shards are not of this league.
    pub fn run(&self, fleet: &Fleet, audience: &Audience) -> Result<Option<Comparison>> {
        let Some(found) = self.evaluation.evaluated(fleet, audience)? else { return Ok(None) };
        let plan = &self.evaluation.plan;
        let mut text = Text::default();
        let runs = self.evaluation.entries.iter().map(|entry| entry.runs);
        let (least, most) = (runs.clone().min().unwrap_or(0), runs.max().unwrap_or(0));
        let runs = match (least, most) {
            (_, 1) => "1 run of each: no intervals".to_owned(),
            (least, most) if least == most => format!("{most} runs of each: means with their 95 % intervals"),
            _ => format!("{least} to {most} runs of each: means with their 95 % intervals"),
        };
        text.say(format!(
            "{runs}; seeds {} on; the rate is of what is possible; rivals are held against {}; docs/league.md has the rules",
            plan.first, plan.contenders[0]
        ));
        let mut rows = Vec::new();
        for suite in SUITES {
            let (mut table, mut failures) = (Table::new(&COLUMNS), Vec::new());
            for ((entry, case), found) in self.evaluation.entries.iter().zip(&self.cases).zip(&found) {
                if case.suite == suite {
                    let judged = judge(found, plan, Beside::of(&entry.of), entry.runs);
                    judged.iter().for_each(|row| row.tell(&mut table, &case.name));
                    let failed = found.failures(&plan.contenders, plan.first);
                    failures.extend(failed.iter().map(|failed| format!("{}: {failed}", case.name)));
                    rows.extend(judged.into_iter().map(|row| (case, row)));
                }
            }
            if rows.iter().any(|(case, _)| case.suite == suite) {
                text.say(format!("\n{suite}:"));
                text.table(table.text());
                failures.into_iter().for_each(|failed| text.say(failed));
            }
        }
        let of_suite = |suite: &&'static str| {
            let own: Vec<&Row> =
                rows.iter().filter(|(case, _)| case.suite == *suite).map(|(_, row)| row).collect();
            (!own.is_empty())
                .then(|| json!({ "suite": suite, "charts": distributions(&plan.contenders, &own) }))
        };
        let distributions: Vec<Value> = SUITES.iter().filter_map(of_suite).collect();
        let standings = standings(&plan.contenders, &rows.iter().map(|(_, row)| row).collect::<Vec<_>>());
        text.say("\nall cases:");
        text.table(standings.text());
        let (_, standings, _) = standings.json();
        let mut document = plan.document(&found);
        let rows: Vec<Value> = rows.iter().map(|(case, row)| row.document(case)).collect();
        document["league"] = json!({ "rows": rows, "standings": standings, "distributions": distributions });
        Ok(Some(Comparison { document, text }))
    }
}

/// Flows of TCP beside the tested streams.
fn flows_of_tcp(of: &Tested) -> usize {
    of.scenario.traffic.iter().filter(|flow| flow.tcp.is_some()).count()
}

/// Flows beside the tested streams that answer the network, and the number that has the streams' rate over theirs.
struct Beside {
    flows: usize,
    ratio: &'static str,
}

impl Beside {
    fn of(of: &Tested) -> Option<Beside> {
        match (flows_of_tcp(of), of.others()) {
            (0, 0) => None,
            (0, flows) => Some(Beside { flows, ratio: "other_ratio" }),
            (flows, _) => Some(Beside { flows, ratio: "tcp_ratio" }),
        }
    }
}

const COLUMNS: [&str; 10] = [
    "case",
    "controller",
    "rate %",
    "frame P95 ms",
    "loss %",
    "regret %",
    "regret ms",
    "Pareto",
    "dominates",
    "worst seed",
];

/// A controller's place in a case.
struct Row {
    controller: String,
    runs: u64,
    /// Per cent of the possible, or of the best rival's rate where the possible is not known.
    rate: Option<Mean>,
    frame_p95_ms: Option<Mean>,
    loss: Option<Mean>,
    regret: Option<Mean>,
    regret_queue_ms: Option<Mean>,
    /// None other is as good in rate, delay and loss, and better in one.
    pareto: bool,
    /// Beside flows that answer: it leaves them their share and takes no more than its own.
    fair: Option<bool>,
    /// It dominates the first controller, and the first controller dominates it.
    dominates: bool,
    dominated: bool,
    /// It failed in a run, and has no numbers.
    failed: bool,
    /// Rate and P95 frame delay of each run, where it has them.
    runs_of: [Vec<f64>; 2],
    /// Seed of the longest P95 frame delay, with that and the rate there.
    worst: Option<(u64, f64, f64)>,
}

impl Row {
    fn tell(&self, table: &mut Table, case: &str) {
        let note = match (self.failed, self.dominates, self.dominated) {
            (true, ..) => "failed",
            (_, true, _) => "it dominates",
            (_, _, true) => "is dominated",
            _ => "",
        };
        let unfair = if self.fair == Some(false) && !self.failed { "unfair" } else { "" };
        let notes: Vec<&str> = [unfair, note].into_iter().filter(|note| !note.is_empty()).collect();
        let worst = self.worst.map_or_else(String::new, |(seed, p95, _)| format!("{seed}: {p95:.0} ms"));
        table.row([
            Cell::from(case.to_owned()),
            self.controller.clone().into(),
            self.rate.into(),
            self.frame_p95_ms.into(),
            self.loss.into(),
            self.regret.into(),
            self.regret_queue_ms.into(),
            if self.pareto { "yes" } else { "" }.into(),
            notes.join(", ").into(),
            worst.into(),
        ]);
    }

    fn document(&self, case: &LeagueCase) -> Value {
        let mean = |mean: Option<Mean>| mean.map(|mean| mean.mean);
        let half = |mean: Option<Mean>| mean.and_then(|mean| mean.half);
        json!({
            "suite": case.suite, "case": case.name, "controller": self.controller, "runs": self.runs,
            "rate": mean(self.rate), "rate_half": half(self.rate),
            "frame_p95_ms": mean(self.frame_p95_ms), "frame_p95_half_ms": half(self.frame_p95_ms),
            "loss": mean(self.loss), "loss_half": half(self.loss),
            "regret": mean(self.regret), "regret_queue_ms": mean(self.regret_queue_ms),
            "pareto": self.pareto, "fair": self.fair, "dominates": self.dominates, "dominated": self.dominated,
            "failed": self.failed,
            "worst_seed": self.worst.map(|worst| worst.0), "worst_frame_p95_ms": self.worst.map(|worst| worst.1),
            "worst_rate": self.worst.map(|worst| worst.2),
        })
    }
}

/// The rows of a case.
fn judge(found: &Evaluated, plan: &Plan, beside: Option<Beside>, seeds: u64) -> Vec<Row> {
    let mut all: Vec<Vec<Numbers>> =
        found.runs.iter().map(|runs| runs.iter().map(|run| run.numbers.clone()).collect()).collect();
    rates(&mut all);
    let mean = |of: &[Numbers], number: &str| runs::mean(of, number);
    let fair: Vec<Option<bool>> = all
        .iter()
        .map(|of| {
            let Beside { flows, ratio } = beside.as_ref().filter(|_| of.iter().any(|run| !run.is_empty()))?;
            Some(is_fair(mean(of, ratio), found.tested.len(), *flows))
        })
        .collect();
    let key = |of: &[Numbers]| {
        let [rate, p95, loss] =
            ["rate", "frame_p95_ms", "loss"].map(|name| mean(of, name).map(|mean| mean.mean));
        Some([-rate?, p95?, loss.unwrap_or(0.0)])
    };
    let keys: Vec<Option<[f64; 3]>> = all.iter().map(|of| key(of)).collect();
    let counts = |at: usize| fair[at] != Some(false);
    let row = |(at, controller): (usize, &String)| {
        let of = &all[at];
        let worst = of.iter().enumerate().filter_map(|(run, numbers)| {
            Some((plan.first + run as u64, *numbers.get("frame_p95_ms")?, *numbers.get("rate")?))
        });
        Row {
            controller: controller.clone(),
            runs: seeds,
            rate: mean(of, "rate"),
            frame_p95_ms: mean(of, "frame_p95_ms"),
            loss: mean(of, "loss"),
            regret: mean(of, "regret"),
            regret_queue_ms: mean(of, "regret_queue_ms"),
            pareto: keys[at].is_some_and(|own| keys.iter().flatten().all(|other| !better(other, &own))),
            fair: fair[at],
            dominates: at > 0 && counts(at) && dominates(of, &all[0]),
            dominated: at > 0 && counts(0) && dominates(&all[0], of),
            failed: found.runs[at].iter().any(|run| run.failed.is_some()),
            runs_of: ["rate", "frame_p95_ms"]
                .map(|number| of.iter().filter_map(|run| run.get(number).copied()).collect()),
            worst: worst.max_by(|a, b| a.1.total_cmp(&b.1)),
        }
    };
    plan.contenders.iter().enumerate().map(row).collect()
}

/// Gives each run its `rate`: `of_possible` where it is known, else the share of the best contender's mean.
fn rates(all: &mut [Vec<Numbers>]) {
    let mut runs = all.iter().flatten().filter(|run| !run.is_empty());
    let known = runs.all(|run| run.contains_key("of_possible"));
    let number = if known { "of_possible" } else { "received_kbps" };
    let means = all.iter().filter_map(|of| runs::mean(of, number)).map(|mean| mean.mean);
    let best = if known { 100.0 } else { means.fold(0.0, f64::max) };
    for run in all.iter_mut().flatten() {
        if let Some(rate) = run.get(number).copied().filter(|_| best > 0.0) {
            run.insert("rate".into(), 100.0 * rate / best);
        }
    }
}

/// True if one is as good in all, and better in one: each is better the lower it is.
fn better(one: &[f64; 3], other: &[f64; 3]) -> bool {
    one.iter().zip(other).all(|(one, other)| one <= other) && one != other
}

/// True if a stream's rate over that of a flow beside it leaves such a flow its share.
fn is_fair(ratio: Option<Mean>, streams: usize, others: usize) -> bool {
    let Some(ratio) = ratio.map(|ratio| ratio.mean) else { return true };
    // The sum that all of them carry, over the number of flows.
    let of_fair = (streams + others) as f64 / (others as f64 + streams as f64 * ratio);
    of_fair >= LEFT && ratio * of_fair <= TAKEN
}

/// True if a rival dominates another, by the 95 % intervals of the differences that are paired by seed.
fn dominates(rival: &[Numbers], other: &[Numbers]) -> bool {
    let of = |number| {
        let less = runs::difference(rival, other, number)?;
        // One run has no interval.
        let half = less.half?;
        Some((less.mean - half, less.mean + half))
    };
    let (Some(rate), Some(delay)) = (of("rate"), of("frame_p95_ms")) else { return false };
    rate.0 >= -RATE_POINTS && delay.1 < -LOWER_MS || delay.1 <= ALIKE_MS && rate.0 > MORE_POINTS
}

/// Charts of the distributions of a suite's runs: the share of runs below a rate, and below a P95 frame delay.
fn distributions(contenders: &[String], rows: &[&Row]) -> Value {
    let mut charts = Table::new(&[]);
    for (number, title, x) in [(0, "Rate", "rate, %"), (1, "Frame delay", "P95 frame delay of a run, ms")] {
        let line = |controller: &String| {
            let own = rows.iter().filter(|row| row.controller == *controller);
            let mut values: Vec<f64> = own.flat_map(|row| row.runs_of[number].iter().copied()).collect();
            values.sort_by(f64::total_cmp);
            let point = |step: u32| {
                let share = f64::from(step) / f64::from(QUANTILES);
                Some((quantile_of_sorted(&values, share)?, Mean::exactly(share)))
            };
            (controller.clone(), (0..=QUANTILES).filter_map(point).collect())
        };
        charts.chart(Chart::new(title, x, "share of runs", contenders.iter().map(line).collect()));
    }
    charts.json().2
}

/// Columns of the standings.
pub(super) const STANDINGS: [&str; 10] = [
    "controller",
    "cases",
    "Pareto",
    "dominates the first",
    "dominated by it",
    "unfair to others",
    "failed",
    "median regret %",
    "median regret ms",
    "worst regret %",
];

/// Counts over all cases.
fn standings(contenders: &[String], rows: &[&Row]) -> Table {
    let mut table = Table::new(&STANDINGS);
    for controller in contenders {
        let own: Vec<&&Row> = rows.iter().filter(|row| row.controller == *controller).collect();
        let count = |is: &dyn Fn(&Row) -> bool| Cell::Count(own.iter().filter(|row| is(row)).count());
        let values = |of: fn(&Row) -> Option<Mean>| -> Vec<f64> {
            own.iter().filter_map(|row| of(row)).map(|mean| mean.mean).collect()
        };
        let (regret, queue) = (values(|row| row.regret), values(|row| row.regret_queue_ms));
        let median = |of: &[f64]| Cell::Exact(lastmile::observe::stats::median(of), None);
        table.row([
            controller.clone().into(),
            count(&|_| true),
            count(&|row| row.pareto),
            count(&|row| row.dominates),
            count(&|row| row.dominated),
            count(&|row| row.fair == Some(false)),
            count(&|row| row.failed),
            median(&regret),
            median(&queue),
            Cell::Exact(regret.iter().copied().reduce(f64::max), None),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::fingerprint;

    const FROZEN: &str = include_str!("frozen.txt");

    fn runs_of(rates: &[f64], delays: &[f64]) -> Vec<Numbers> {
        let one = |(rate, delay): (&f64, &f64)| {
            Numbers::from([("rate".into(), *rate), ("frame_p95_ms".into(), *delay)])
        };
        rates.iter().zip(delays).map(one).collect()
    }

    #[test]
    fn the_cases_are_those_that_were_frozen() {
        let line = |case: &LeagueCase| {
            let hash = fingerprint([case.spelled_out().as_str()]);
            format!("{hash:016x} {} {}\n", case.suite, case.name)
        };
        let all: String = suites::cases().iter().map(line).collect();
        if std::env::var_os("LASTMILE_UPDATE_DOCS").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/evaluate/league/frozen.txt"), &all)
                .unwrap();
        } else {
            assert_eq!(all, FROZEN, "a case has changed: LASTMILE_UPDATE_DOCS=1 freezes it anew");
        }
    }

    #[test]
    fn every_case_can_be_run() {
        assert!(League::new(&Request::default()).unwrap().cases.len() > 100);
        let refused = |suites: &[&str]| {
            let suites = suites.iter().map(|suite| (*suite).to_owned()).collect();
            League::new(&Request { suites, ..Request::default() }).err().unwrap().to_string()
        };
        assert!(refused(&["losses"]).starts_with("--suite losses: no such suite; known: rmcat, aqm"));
        let of = |case: &str, suites: &[&str]| {
            let suites = suites.iter().map(|suite| (*suite).to_owned()).collect();
            League::new(&Request { cases: vec![case.to_owned()], suites, ..Request::default() })
        };
        let (listed, _) = of("late-comer-cbr", &[]).unwrap().list();
        assert_eq!(listed.as_array().unwrap().len(), 1);
        assert_eq!((&listed[0]["suite"], &listed[0]["scenario"]), (&json!("steps"), &json!("late-comer")));
        let refused = |case, suites: &[&str]| of(case, suites).err().unwrap().to_string();
        assert!(refused("late", &[]).starts_with("--case late: no such case"));
        assert!(refused("late-comer-cbr", &["l4s"]).starts_with("no case is in all of"));
        let tcp = Request { controllers: Some("lastmile,tcp".to_owned()), ..Request::default() };
        assert!(League::new(&tcp).err().unwrap().to_string().contains("tcp has no place in the league"));
    }

    #[test]
    fn a_row_tells_of_unfairness_and_of_who_dominates() {
        let row = |fair, dominates, dominated, failed| {
            let (rate, frame_p95_ms, loss, regret, regret_queue_ms) = (None, None, None, None, None);
            let (controller, runs, pareto, worst) = ("tea".to_owned(), 2, false, None);
            let runs_of = [Vec::new(), Vec::new()];
            let row = Row {
                controller,
                runs,
                rate,
                frame_p95_ms,
                loss,
                regret,
                regret_queue_ms,
                pareto,
                fair,
                dominates,
                dominated,
                failed,
                runs_of,
                worst,
            };
            let mut table = Table::new(&COLUMNS);
            row.tell(&mut table, "pot");
            table.text().text()
        };
        assert!(row(Some(false), false, true, false).contains("unfair, is dominated"));
        assert!(row(Some(true), true, false, false).contains("it dominates"));
        let failed = row(Some(false), false, false, true);
        assert!(failed.contains("failed") && !failed.contains("unfair"), "{failed}");
    }

    #[test]
    fn a_rival_dominates_by_paired_intervals() {
        let ours = runs_of(&[95.0, 96.0, 97.0], &[80.0, 90.0, 100.0]);
        let is = |rates: &[f64], delays: &[f64]| dominates(&runs_of(rates, delays), &ours);
        assert!(!dominates(&runs_of(&[95.0], &[10.0]), &ours[..1]), "of one run there is no interval");
        // A point less and 25 ms lower, seed by seed.
        assert!(is(&[94.0, 95.0, 96.0], &[55.0, 65.0, 75.0]));
        assert!(!is(&[94.0, 95.0, 96.0], &[62.0, 72.0, 82.0]), "18 ms");
        assert!(!is(&[92.0, 93.0, 94.0], &[55.0, 65.0, 75.0]), "three points less");
        assert!(!is(&[94.0, 95.0, 96.0], &[10.0, 90.0, 50.0]), "the interval reaches beyond");
        // 4 ms more and six points more.
        assert!(
            is(&[101.0, 102.0, 103.0], &[84.0, 94.0, 104.0])
                && !is(&[101.0, 102.0, 103.0], &[87.0, 97.0, 107.0])
        );
    }

    #[test]
    fn a_flow_beside_tcp_takes_its_share_and_no_more() {
        let fair = |ratio| is_fair(Some(Mean::exactly(ratio)), 1, 1);
        // With a ratio of r TCP has 2 / (1 + r) of its half.
        assert!(fair(1.0) && fair(0.1) && fair(1.2) && !fair(1.3) && !fair(4.0));
        assert!(is_fair(None, 1, 1));
    }

    #[test]
    fn the_pareto_set_has_none_that_is_beaten_in_all() {
        assert!(
            better(&[-90.0, 50.0, 0.0], &[-90.0, 60.0, 0.0])
                && !better(&[-90.0, 50.0, 0.1], &[-90.0, 60.0, 0.0])
        );
        assert!(!better(&[-90.0, 50.0, 0.0], &[-90.0, 50.0, 0.0]));
    }
}
