//! A scenario with every combination of some values and seeds, on all cores.
//!
//! Results are the same whatever the number of cores: rows for each run, in the order of the combinations. Finished runs stand in
//! a [`Journal`], so that a sweep that was interrupted goes on where it stood.

use std::io::Write;
use std::path::Path;

use lastmile_sim::runs::Hooks;
use lastmile_sim::runs::sweep::{Plan, Run};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::audience::Audience;
use crate::error::{Error, Result};
use crate::fleet::{self, Fleet, Journal};
use crate::scenarios::{self, mixed, traces};

mod output;
pub mod page;
mod recent;

pub use lastmile_sim::runs::sweep::{Parameter, Sweep};
pub use output::Format;
use recent::Recent;

/// The rows of one run, or of a whole sweep.
pub type Rows = Vec<Map<String, Value>>;

/// The rows of the run of that number.
fn made(plan: &Plan<'_>, scenarios: &Recent, index: usize, audience: &Audience) -> Result<Rows> {
    let run = plan.run(index, scenarios.of(plan, plan.combination_of(index))?);
    one(&run, audience).map_err(|error| match run.label() {
        label if label.is_empty() => error,
        label => error.of(format!("with {label}, seed {}", run.seed)),
    })
}

/// A sweep that goes to a file, or to whatever can be written to, and goes on where it stood.
pub struct Written<'a> {
    plan: Plan<'a>,
    journal: Journal,
    fleet: &'a Fleet,
}

impl<'a> Written<'a> {
    /// Checks every combination, and opens the journal beside `output`, if that is a file to go on from.
    ///
    /// # Errors
    /// A combination is no scenario, or what stands in `output` is not this sweep's.
    pub fn new(
        plan: Plan<'a>,
        text: &str,
        output: Option<&Path>,
        fleet: &'a Fleet,
        audience: &Audience,
    ) -> Result<Written<'a>> {
        let inputs = fingerprint(text, &plan, checked(&plan, audience)?);
        let journal = fleet.journal(inputs, plan.runs(), || match output {
            Some(output) => {
                output::check(output, &plan)?;
                Journal::whole(output, inputs, plan.runs())
            }
            None => Journal::temporary(plan.runs()),
        })?;
        Ok(Written { plan, journal, fleet })
    }

    /// Runs in all, and the finished ones among them.
    pub fn runs(&self) -> (usize, usize) {
        (self.plan.runs(), self.journal.finished())
    }

    /// Runs the others that are this machine's, on all cores of the pool of threads that it is called in; false of a shard, which has
    /// nothing to write.
    ///
    /// # Errors
    /// A run cannot be, or its rows cannot be kept.
    pub fn run(&self, audience: &Audience) -> Result<bool> {
        let scenarios = Recent::new(rayon::current_num_threads());
        self.fleet.run("runs", &self.journal, audience, |run| made(&self.plan, &scenarios, run, audience))?;
        self.fleet.finish()
    }

    /// Writes all rows, in the order of the runs; says how many.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&self, out: &mut impl Write, format: Format) -> Result<usize> {
        output::write(out, &self.journal, self.plan.sweep(), format)
    }

    /// Ends it: once its rows are written, the journal is no longer needed.
    pub fn end(self) {
        self.journal.remove();
    }
}

/// Runs a sweep of a scenario in memory, and gives all rows; `file` is what errors call it. [`scenarios::text`] has both of a ready scenario.
///
/// # Errors
/// The scenario or a combination cannot be, or a run.
pub fn rows(file: &str, text: &str, sweep: &Sweep, audience: &Audience) -> Result<Rows> {
    let plan = sweep.plan(file, text)?;
    checked(&plan, audience)?;
    let scenarios = Recent::new(rayon::current_num_threads());
    let run = |index| made(&plan, &scenarios, index, audience);
    let rows: Option<Vec<Rows>> = Fleet::Whole.each("runs", 0, plan.runs(), audience, run)?;
    Ok(rows.unwrap_or_default().concat())
}

/// Combinations that are checked before the first of them is looked at for errors.
const BATCH: usize = 1_024;

/// Checks every combination before any is run; the error is that of the first wrong one. Gives a number that changes with
/// the files that scenarios read beside them: a trace that has changed makes another sweep.
fn checked(plan: &Plan<'_>, audience: &Audience) -> Result<u64> {
    audience.progress.begin("checking combinations", plan.combinations() as u64);
    let mut all = 0;
    for first in (0..plan.combinations()).step_by(BATCH) {
        if audience.is_gone() {
            return Err(Error::interrupted());
        }
        let last = (first + BATCH).min(plan.combinations());
        let traces: Vec<_> = (first..last)
            .into_par_iter()
            .map(|combination| plan.scenario(combination).map(|scenario| traces(&scenario)))
            .collect();
        for found in traces {
            all = mixed(all, found?);
        }
        audience.progress.advance((last - first) as u64);
    }
    Ok(all)
}

/// Identity of a sweep.
fn fingerprint(text: &str, plan: &Plan<'_>, traces: u64) -> u64 {
    let all = format!("{:?} {traces:x}", plan.sweep());
    fleet::fingerprint([env!("CARGO_PKG_VERSION"), text, &all])
}

/// The rows of one run: its parameters, its seed, and each number found.
fn one(run: &Run, audience: &Audience) -> Result<Rows> {
    let simulated = scenarios::simulated(&run.scenario, run.seed, Hooks::default(), audience)?;
    let row = |kind: &str, found: Value| {
        let mut all = Map::new();
        all.insert("run".into(), json!(run.index));
        all.insert("seed".into(), json!(run.seed));
        // The seed is there as the number that it is.
        for parameter in run.overrides.iter().filter(|set| set.key != "seed") {
            all.insert(parameter.key.clone(), json!(parameter.value));
        }
        all.insert("row".into(), json!(kind));
        match found {
            Value::Object(found) => all.extend(found),
            other => all.extend([("result".to_owned(), other)]),
        }
        all
    };
    let mut rows = Vec::new();
    for found in simulated.found.rows() {
        rows.extend(found.rows.into_iter().map(|one| row(found.row, one)));
    }
    let network = &simulated.network;
    for flow in &network.flows {
        rows.push(row("flow", serde_json::to_value(flow)?));
    }
    for link in &network.links {
        rows.push(row("link", serde_json::to_value(link)?));
    }
    for wlan in &network.wlans {
        rows.push(row("wlan", serde_json::to_value(wlan)?));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const SCENARIO: &str = "name = \"s\"\nduration = \"200 ms\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
        rate = \"10 Mbit/s\"\n[[traffic]]\nname = \"t\"\nkind = \"poisson\"\nfrom = \"a\"\nto = \"b\"\nrate = \"4 Mbit/s\"\nsize = \"1500 B\"\n";

    fn parameters() -> Vec<Parameter> {
        vec![Parameter::new("traffic.t.rate", ["1 Mbit/s", "4 Mbit/s", "9 Mbit/s"])]
    }

    fn sweep(dir: &Path, output: &str, threads: usize) {
        let sweep = Sweep { parameters: parameters(), seeds: (1..=4).collect() };
        let (plan, output) = (sweep.plan("s.toml", SCENARIO).unwrap(), dir.join(output));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let audience = Audience::default();
        let written = Written::new(plan, SCENARIO, Some(&output), &Fleet::Whole, &audience).unwrap();
        assert!(pool.install(|| written.run(&audience)).unwrap());
        written.write(&mut std::fs::File::create(&output).unwrap(), Format::Jsonl).unwrap();
        written.end();
    }

    #[test]
    fn the_file_is_the_same_whatever_the_cores_and_wherever_it_was_killed() {
        let dir = std::env::temp_dir().join(format!("lastmile-sweep-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        sweep(&dir, "one", 1);
        let whole = std::fs::read_to_string(dir.join("one")).unwrap();
        assert_eq!(whole.lines().count(), 3 * 4 * 3, "a flow and two links of each run");
        assert!(!Journal::path(&dir.join("one")).exists());
        sweep(&dir, "three", 3);
        assert_eq!(std::fs::read_to_string(dir.join("three")).unwrap(), whole);

        // A journal as a kill leaves it: some runs in any order, and half a line.
        let audience = Audience::default();
        let plan = Sweep { parameters: parameters(), seeds: (1..=4).collect() };
        let plan = plan.plan("s.toml", SCENARIO).unwrap();
        let which = fingerprint(SCENARIO, &plan, checked(&plan, &audience).unwrap());
        let journal = Journal::whole(&dir.join("cut"), which, plan.runs()).unwrap();
        for index in [7, 0, 11] {
            let scenario = plan.scenario(plan.combination_of(index)).unwrap();
            journal.add(index, &one(&plan.run(index, scenario.into()), &audience).unwrap()).unwrap();
        }
        drop(journal);
        let part = Journal::path(&dir.join("cut"));
        let mut left = std::fs::read(&part).unwrap();
        left.extend_from_slice(b"{\"run\":3,\"found\":[{\"se");
        std::fs::write(&part, left).unwrap();
        sweep(&dir, "cut", 2);
        assert_eq!(std::fs::read_to_string(dir.join("cut")).unwrap(), whole);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn another_trace_is_another_sweep() {
        let (from, to) = (SCENARIO.find("kind = \"poisson\"").unwrap(), SCENARIO.find("rate = \"4").unwrap());
        let ends = SCENARIO[from..to].replace("poisson", "trace");
        let of = |packets: &str| {
            let text = format!("{}{ends}packets = \"{packets}\"\n", &SCENARIO[..from]);
            let sweep = Sweep { seeds: vec![1, 2], ..Sweep::default() };
            checked(&sweep.plan("s.toml", &text).unwrap(), &Audience::default()).unwrap()
        };
        assert_eq!(of("0 100"), of("0 100"));
        assert!(of("0 100") != of("0 101") && of("0 100") != of("0.1 100"));
    }
}
