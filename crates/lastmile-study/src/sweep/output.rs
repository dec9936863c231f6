//! The file that a sweep writes: whole or not at all, and never over what something else wrote.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use lastmile_sim::runs::sweep::{Plan, Sweep};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::Rows;
use crate::error::{Error, Result};
use crate::fleet::Journal;

/// Format of a sweep's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// JSON, a line for each row.
    #[default]
    Jsonl,
    /// Comma-separated values, with the columns in the first line.
    Csv,
}

/// Of a file that stands in the way, no more is looked at.
const MAX_LINE: u64 = 1_000_000;

/// Accepts an output that is not there, is empty or no ordinary file, or has results of the same
/// sweep, which are then made again.
///
/// # Errors
/// It holds something else.
pub(super) fn check(output: &Path, plan: &Plan<'_>) -> Result<()> {
    let Ok(known) = fs::metadata(output) else { return Ok(()) };
    if known.is_dir() {
        return Err(Error::Input(format!("{} is a directory: name a file", output.display())));
    }
    if !known.is_file() || known.len() == 0 {
        return Ok(());
    }
    let file = File::open(output)
        .map_err(|error| Error::Input(format!("cannot read {}: {error}", output.display())))?;
    if !is_of(BufReader::new(file), plan) {
        return Err(Error::Input(format!(
            "{} holds something else than results of this sweep: remove it, or name another output",
            output.display()
        )));
    }
    Ok(())
}

/// True if rows are those of the sweep: each has its parameters and no others, and the values of its run. A sweep of
/// more or fewer values is another one.
fn is_of(file: impl BufRead, plan: &Plan<'_>) -> bool {
    let (mut rows, sweep) = (rows(file), plan.sweep());
    let swept = sweep.parameters.iter().filter(|p| p.key.contains('.')).count();
    let mut last = None;
    for row in &mut rows {
        let Some(row) = row else { return false };
        let number = |key: &str| row.get(key).and_then(|v| v.as_u64().or_else(|| v.as_str()?.parse().ok()));
        let run = number("run").and_then(|run| usize::try_from(run).ok()).filter(|&run| run < plan.runs());
        let (Some(run), Some(seed)) = (run, number("seed")) else { return false };
        let is = |key: &str, value: &str| row.get(key).and_then(Value::as_str) == Some(value);
        let overrides = plan.overrides(plan.combination_of(run));
        let same = overrides.iter().filter(|set| set.key != "seed").all(|set| is(&set.key, &set.value));
        // A seed that is swept stands among the values.
        let own = match sweep.seeds.as_slice() {
            [] => overrides.iter().find(|set| set.key == "seed").and_then(|set| set.value.parse().ok()),
            seeds => seeds.get(run % seeds.len()).copied(),
        };
        let others = row.keys().filter(|key| key.contains('.')).count();
        if !same || own.is_some_and(|own| seed != own) || others != swept {
            return false;
        }
        last = Some(run);
    }
    last.is_some_and(|last| last + 1 == plan.runs())
}

type Lines<'a> = Box<dyn Iterator<Item = Option<Map<String, Value>>> + 'a>;

/// The rows of a file, be they JSON lines or CSV; one that is neither is none.
fn rows<'a>(mut file: impl BufRead + 'a) -> Lines<'a> {
    if file.fill_buf().is_ok_and(|start| start.first() == Some(&b'{')) {
        return Box::new(std::iter::from_fn(move || {
            let mut line = Vec::new();
            match (&mut file as &mut dyn BufRead).take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(0) => None,
                Ok(_) => Some(serde_json::from_slice(&line).ok()),
                Err(_) => Some(None),
            }
        }));
    }
    let mut csv = csv::Reader::from_reader(file);
    let names = csv.headers().cloned().unwrap_or_default();
    Box::new(csv.into_records().map(move |record| {
        let record = record.ok()?;
        let cells = names.iter().zip(&record).map(|(name, cell)| (name.to_owned(), Value::from(cell)));
        Some(cells.collect())
    }))
}

/// The keys of a row's run, and of its kind. They stand first.
fn heads(sweep: &Sweep) -> Vec<String> {
    let swept = sweep.parameters.iter().map(|parameter| parameter.key.as_str()).filter(|key| *key != "seed");
    ["run", "seed"].into_iter().chain(swept).chain(["row"]).map(str::to_owned).collect()
}

/// A row with these keys first.
struct Headed<'a>(&'a [String], &'a Map<String, Value>);

impl Serialize for Headed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
        let Headed(heads, row) = self;
        let first = heads.iter().filter_map(|key| row.get_key_value(key));
        serializer.collect_map(first.chain(row.iter().filter(|(key, _)| !heads.contains(key))))
    }
}

/// Writes all results, by the runs' numbers: neither the cores nor an interruption show. Gives how many there are.
pub(super) fn write(out: &mut impl Write, journal: &Journal, sweep: &Sweep, format: Format) -> Result<usize> {
    let (mut results, heads) = (0, heads(sweep));
    match format {
        Format::Jsonl => journal.read(|rows: Rows| {
            results += rows.len();
            for row in rows {
                serde_json::to_writer(&mut *out, &Headed(&heads, &row))?;
                out.write_all(b"\n")?;
            }
            Ok(())
        })?,
        Format::Csv => {
            let mut columns = heads;
            journal.read(|rows: Rows| {
                for key in rows.iter().flat_map(Map::keys) {
                    if !columns.contains(key) {
                        columns.push(key.clone());
                    }
                }
                Ok(())
            })?;
            let mut csv = csv::Writer::from_writer(&mut *out);
            csv.write_record(&columns).map_err(Error::machine)?;
            journal.read(|rows: Rows| {
                results += rows.len();
                for row in rows {
                    let cell = |column: &String| match row.get(column) {
                        None | Some(Value::Null) => String::new(),
                        Some(Value::String(text)) => text.clone(),
                        Some(other) => other.to_string(),
                    };
                    csv.write_record(columns.iter().map(cell)).map_err(Error::machine)?;
                }
                Ok(())
            })?;
            csv.flush()?;
        }
    }
    out.flush()?;
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_sim::runs::sweep::Parameter;
    use lastmile_sim::scenario::builtin_text;

    #[test]
    fn only_results_of_the_same_sweep_are_its_own() {
        let parameters = vec![Parameter::new("link.0.rate", ["5 Mbit/s", "6 Mbit/s"])];
        let sweep = Sweep { parameters, seeds: vec![1] };
        let plan = sweep.plan("path", builtin_text("path").unwrap()).unwrap();
        let is = |text: &str| is_of(text.as_bytes(), &plan);
        let row = |run: usize, key: &str, value: &str| {
            format!("{{\"run\":{run},\"seed\":1,\"{key}\":\"{value}\",\"flow\":\"x\"}}\n")
        };
        let whole = row(0, "link.0.rate", "5 Mbit/s") + &row(1, "link.0.rate", "6 Mbit/s");
        assert!(is(&whole));
        assert!(is("run,seed,link.0.rate,flow\n0,1,5 Mbit/s,x\n1,1,6 Mbit/s,x\n"));
        for other in [
            row(0, "link.0.rate", "5 Mbit/s"),
            row(0, "link.0.rate", "6 Mbit/s"),
            row(1, "link.0.delay", "6 Mbit/s"),
            whole.replace("\"flow\"", "\"link.0.delay\""),
            whole.replace("\"seed\":1", "\"seed\":2"),
            whole.clone() + &row(2, "link.0.rate", "7 Mbit/s"),
            "a diary\n".to_owned(),
            "{\"not\":\"rows\"}\n".to_owned(),
        ] {
            assert!(!is(&other), "{other}");
        }
    }
}
