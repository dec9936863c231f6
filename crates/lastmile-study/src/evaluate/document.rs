//! Results of an evaluation: tables for people, and the document for programs and for the page.

use std::collections::BTreeMap;

use lastmile::time::Span;
use lastmile_report::Mean;
use lastmile_report::table::{Cell, Chart, Table};
use lastmile_report::text::Text;
use serde_json::{Value, json};

use super::measure::{Converged, Measured, SHARES};
use super::numbers::{METRICS, Metric};
use crate::runs::{self, Numbers};

/// The evaluation that was asked for.
pub(super) struct Plan {
    pub(super) suite: Option<&'static str>,
    pub(super) runs: u64,
    /// The first seed.
    pub(super) first: u64,
    pub(super) contenders: Vec<String>,
    /// The origin and the settings of each.
    pub(super) sources: Vec<Value>,
    pub(super) variants: Vec<String>,
    pub(super) playout: Span,
}

/// A contender that failed in a scenario.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(super) struct Failed<'a> {
    pub(super) controller: &'a str,
    /// Runs in which it failed.
    runs: usize,
    /// Seed of the first of them, and the reason there.
    seed: u64,
    why: &'a str,
}

impl core::fmt::Display for Failed<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Failed { controller, runs, seed, why } = self;
        write!(f, "{controller} has no numbers, since it failed in {runs} of the runs; seed {seed}: it {why}")
    }
}

/// A scenario, and the results of each contender's runs, in the order of the seeds.
pub(super) struct Evaluated {
    pub(super) scenario: String,
    pub(super) description: String,
    pub(super) seconds: f64,
    /// Numbers count from then on.
    pub(super) from_s: f64,
    /// The tested streams.
    pub(super) tested: Vec<String>,
    pub(super) runs: Vec<Vec<Measured>>,
}

impl Evaluated {
    fn numbers(&self) -> Vec<Vec<Numbers>> {
        self.runs.iter().map(|runs| runs.iter().map(|run| run.numbers.clone()).collect()).collect()
    }

    /// Controllers whose runs are identical for every seed.
    fn alike<'a>(&'a self, contenders: &'a [String]) -> impl Iterator<Item = &'a str> {
        let alike = |runs: &[Measured]| {
            runs.len() > 1
                && runs[0].failed.is_none()
                && runs.iter().all(|run| run.numbers == runs[0].numbers)
        };
        let all = contenders.iter().zip(&self.runs);
        all.filter(move |(_, runs)| alike(runs)).map(|(contender, _)| contender.as_str())
    }

    /// Contenders that failed in a run, with the count of such runs, and the seed and reason of the first.
    pub(super) fn failures<'a>(&'a self, contenders: &'a [String], first: u64) -> Vec<Failed<'a>> {
        let of = |(contender, runs): (&'a String, &'a Vec<Measured>)| {
            let mut failed =
                runs.iter().zip(first..).filter_map(|(run, seed)| Some((seed, run.failed.as_deref()?)));
            let (seed, why) = failed.next()?;
            Some(Failed { controller: contender, runs: 1 + failed.count(), seed, why })
        };
        contenders.iter().zip(&self.runs).filter_map(of).collect()
    }

    /// Contenders with numbers.
    fn whole<'a>(
        &'a self,
        contenders: &'a [String],
    ) -> impl Iterator<Item = (&'a String, &'a Vec<Measured>)> {
        contenders.iter().zip(&self.runs).filter(|(_, runs)| runs.iter().all(|run| run.failed.is_none()))
    }

    /// Every number of every run: by controller and name, in the order of the seeds; null where a run has none.
    fn values(&self, contenders: &[String]) -> Value {
        let of = |runs: &Vec<Measured>| {
            let each = |name| runs.iter().map(|run| run.numbers.get(name).copied()).collect::<Vec<_>>();
            self.metrics().iter().map(|metric| (metric.name, each(metric.name))).collect::<BTreeMap<_, _>>()
        };
        json!(contenders.iter().zip(self.runs.iter().map(of)).collect::<BTreeMap<_, _>>())
    }

    /// The metrics that any run has.
    fn metrics(&self) -> Vec<&'static Metric> {
        let has = |name: &str| self.runs.iter().flatten().any(|run| run.numbers.contains_key(name));
        METRICS.iter().filter(|metric| has(metric.name)).collect()
    }

    /// Time until it was stable after each change, contender by contender, the median over streams: for changes at the same times in
    /// all runs.
    fn changes(&self, contenders: &[String]) -> Table {
        type At = (u64, String);
        let of = |run: &Measured| {
            let mut all = BTreeMap::<At, Vec<Converged>>::new();
            for change in &run.converged {
                let at = ((change.at_s * 1e3).round() as u64, change.what.clone());
                all.entry(at).or_default().push(change.clone());
            }
            all
        };
        let (contenders, runs): (Vec<&String>, Vec<Vec<_>>) =
            self.whole(contenders).map(|(one, runs)| (one, runs.iter().map(of).collect())).unzip();
        let mut table = Table::new(&["at_s", "change", "controller", "converges_s", "stable_percent"]);
        let Some(first) = runs.first().and_then(|runs| runs.first()) else { return table };
        for key in first.keys().filter(|key| runs.iter().flatten().all(|run| run.contains_key(*key))) {
            for (&contender, runs) in contenders.iter().zip(&runs) {
                let values = |of: fn(&Vec<Converged>) -> Option<f64>| {
                    Mean::of(&runs.iter().filter_map(|run| of(run.get(key)?)).collect::<Vec<_>>())
                };
                let stable = values(|all| {
                    let stable = all.iter().filter(|one| one.took_s.is_some()).count();
                    Some(100.0 * stable as f64 / all.len() as f64)
                });
                table.row([
                    Cell::Exact(Some(key.0 as f64 / 1e3), None),
                    key.1.clone().into(),
                    contender.clone().into(),
                    values(|all| Converged::median(all)).into(),
                    Cell::Exact(stable.map(|stable| stable.mean), None),
                ]);
            }
        }
        table
    }

    fn charts(&self, contenders: &[String]) -> Vec<Chart> {
        let by_second = |of: &dyn Fn(&Measured) -> Vec<Option<f64>>| -> Vec<(String, Vec<(f64, Mean)>)> {
            let line = |(contender, runs): (&String, &Vec<Measured>)| {
                let all: Vec<Vec<Option<f64>>> = runs.iter().map(of).collect();
                let longest = all.iter().map(Vec::len).max().unwrap_or(0);
                let point = |second: usize| {
                    let values: Vec<f64> = all.iter().filter_map(|run| *run.get(second)?).collect();
                    let estimate = Mean::of(&values)?;
                    Some((second as f64 + 0.5, Mean { half: None, ..estimate }))
                };
                (contender.clone(), (0..longest).filter_map(point).collect())
            };
            self.whole(contenders).map(line).collect()
        };
        let mut received = by_second(&|run| run.received.iter().copied().map(Some).collect());
        if let Some(left) = self.runs.iter().flatten().find_map(|run| run.left.as_ref()) {
            let point = |(second, left): (usize, &f64)| Some((second as f64 + 0.5, Mean::of(&[*left])?));
            received.push(("left for them".to_owned(), left.iter().enumerate().filter_map(point).collect()));
        }
        let delay = by_second(&|run| run.delay.clone());
        let distribution = |(contender, runs): (&String, &Vec<Measured>)| {
            let point = |(at, share): (usize, &f64)| {
                let values: Vec<f64> = runs.iter().filter_map(|run| run.quantiles.get(at).copied()).collect();
                let x = Mean::of(&values)?.mean;
                Some((x, Mean { mean: *share, median: *share, half: None, n: values.len() }))
            };
            (contender.clone(), SHARES.iter().enumerate().filter_map(point).collect())
        };
        vec![
            Chart::new("Received", "time, s", "all tested streams, Mbit/s of IP packets", received),
            Chart::new("Delay", "time, s", "mean one-way delay, ms (IP layer)", delay),
            Chart::new(
                "Distribution of delays",
                "one-way delay, ms (IP layer)",
                "share of packets",
                self.whole(contenders).map(distribution).collect(),
            ),
        ]
    }
}

/// The reason for identical runs, and their intervals.
const ALIKE: &str = "no random draw of the scenario reaches them, so ±0.0 is no measure of certainty; \
    `start_within` of [[stream]] draws the start of a stream";

/// The mean in a cell, by row and metric.
type Of<'a> = dyn Fn(usize, &'static str) -> Option<Mean> + 'a;

fn table(
    columns: &[(&'static str, &'static str)],
    contenders: &[String],
    rows: std::ops::Range<usize>,
    of: &Of<'_>,
) -> Table {
    let heads: Vec<&'static str> =
        ["controller"].into_iter().chain(columns.iter().map(|column| column.0)).collect();
    let mut table = Table::new(&heads);
    for row in rows {
        let numbers = columns.iter().map(|&(_, metric)| Cell::from(of(row, metric)));
        table.row([Cell::from(contenders[row].clone())].into_iter().chain(numbers));
    }
    table
}

impl Plan {
    /// The tables of a scenario, by the columns: means, and differences from the first contender.
    fn tables(&self, found: &Evaluated, columns: &[(&'static str, &'static str)]) -> (Table, Table) {
        let numbers = found.numbers();
        let mean = |row: usize, metric: &'static str| runs::mean(&numbers[row], metric);
        let less = |row: usize, metric: &'static str| runs::difference(&numbers[row], &numbers[0], metric);
        let all = self.contenders.len();
        (table(columns, &self.contenders, 0..all, &mean), table(columns, &self.contenders, 1..all, &less))
    }

    /// For programs and the page.
    pub(super) fn document(&self, found: &[Evaluated]) -> Value {
        let scenario = |found: &Evaluated| {
            let columns: Vec<_> = found.metrics().iter().map(|metric| (metric.name, metric.name)).collect();
            let (means, differences) = self.tables(found, &columns);
            let mut changes = found.changes(&self.contenders);
            found.charts(&self.contenders).into_iter().for_each(|chart| changes.chart(chart));
            let (_, changes, charts) = changes.json();
            let (columns, rows, _) = means.json();
            json!({
                "scenario": found.scenario, "description": found.description, "seconds": found.seconds, "from_s": found.from_s, "streams": found.tested,
                "columns": columns, "rows": rows, "differences": differences.json().1, "changes": changes, "charts": charts,
                "alike": found.alike(&self.contenders).collect::<Vec<_>>(), "values": found.values(&self.contenders),
                "failed": found.failures(&self.contenders, self.first),
            })
        };
        let metric =
            |metric: &Metric| json!({ "name": metric.name, "unit": metric.unit, "about": metric.about });
        json!({
            "schema": lastmile::SCHEMA, "evaluation": self.suite, "runs": self.runs, "controllers": self.contenders, "sources": self.sources,
            "variants": self.variants,
            "playout_ms": self.playout.as_secs_f64() * 1e3,
            "metrics": METRICS.iter().map(metric).collect::<Vec<_>>(),
            "scenarios": found.iter().map(scenario).collect::<Vec<_>>(),
        })
    }

    /// For people.
    pub(super) fn text(&self, found: &[Evaluated]) -> Text {
        let mut text = Text::default();
        let variants = match self.variants.is_empty() {
            true => String::new(),
            false => format!("; {}", self.variants.join(", ")),
        };
        text.say(match self.runs {
            1 => format!("1 run of each, seed {}: no intervals{variants}", self.first),
            runs => format!(
                "{runs} runs of each, seeds {} to {}: means with their 95 % intervals{variants}",
                self.first,
                self.first + runs - 1
            ),
        });
        for found in found {
            let from = match found.from_s {
                0.0 => String::new(),
                from_s => format!("; numbers count from {from_s} s on"),
            };
            text.say(format!("\n{}: {}{from}", found.scenario, found.description));
            let columns: Vec<_> =
                found.metrics().iter().filter_map(|metric| Some((metric.short?, metric.name))).collect();
            let (means, differences) = self.tables(found, &columns);
            text.table(means.text());
            if self.contenders.len() > 1 {
                text.say(format!("difference from {}, paired by seed:", self.contenders[0]));
                text.table(differences.text());
            }
            let alike = found.alike(&self.contenders).collect::<Vec<_>>().join(", ");
            for failed in found.failures(&self.contenders, self.first) {
                text.say(failed.to_string());
            }
            if !alike.is_empty() {
                text.say(format!("runs identical for every seed: {alike}; {ALIKE}"));
            }
        }
        text.say(
            "\nRates and delays are those of IP packets; -v prints all numbers, docs/evaluate-numbers.md defines each",
        );
        text
    }
}
