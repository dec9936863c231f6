//! `lastmile replay FILE`: a recorded session again, or another method on its time stamps.

use std::path::PathBuf;

use anyhow::anyhow;
use lastmile::endpoint::measure::{Cost, Decision};
use lastmile::estimate::{Estimate, Outcome, replay as replay_streams};
use lastmile::report::{Direction, StreamRecord};
use lastmile_net::recording::Reader;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::network::read_key;
use crate::options::{KERNEL_NOISE, MethodArgs};
use crate::result::{Row, exit, table};
use crate::session::{Replayed, replay};

/// Do a recorded measurement or stream again, or run another method on a measurement's time stamps
///
/// Without options the recorded inputs are replayed in virtual time, and the decisions must be those of the recording,
/// byte for byte: exit code 0 where they are, whatever the measurement came to. With --streams the method named is run on
/// the recorded streams instead. A recording that was cut short is replayed as far as it goes.
#[derive(clap::Args)]
#[command(mut_group("MethodArgs", |group| group.requires("streams")))]
pub(crate) struct Args {
    /// A file that `lastmile measure --record` wrote
    file: PathBuf,
    /// Run a method on the recorded streams; the method's options below mean nothing without it
    #[arg(long)]
    streams: bool,
    #[command(flatten)]
    method: MethodArgs,
    /// The key, if the recorded session had one
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let key = args.key_file.as_deref().map(read_key).transpose()?;
    let reader = Reader::open(&args.file).map_err(|error| Exit::Usage.blame(error))?;
    let replayed = replay(reader, key)?;
    // Endpoints that measure nothing have no results, and owe none.
    let measures =
        replayed.events.is_empty() || replayed.events.iter().any(|e| e.what.of::<Decision>().is_some());
    let rows = match args.streams {
        true => on_streams(&args.method, &replayed)?,
        false => {
            if let Some(difference) = replayed.difference()? {
                return Err(Exit::NoResult.blame(anyhow!(
                    "the replay decides otherwise than the recording, which another version of lastmile wrote: {difference}"
                )));
            }
            Row::all(&replayed.events)
        }
    };
    if args.json {
        let text = json!({
            "recording": args.file, "decisions": replayed.events.len(), "results": rows, "cut": replayed.cut,
        });
        crate::say(&serde_json::to_string_pretty(&text)?);
    } else {
        if measures && !rows.is_empty() {
            crate::say(table(&rows).trim_end());
        }
        if !args.streams {
            crate::say(&format!("{} decisions, all as recorded", replayed.events.len()));
        }
        replayed.cut.iter().for_each(|cut| crate::say(&format!("{}: {cut}", args.file.display())));
    }
    // Without a method of one's own it was asked only whether all is as recorded.
    Ok(if measures && args.streams { exit(&rows) } else { None })
}

/// Runs a method on the streams of each direction that the recording holds.
fn on_streams(args: &MethodArgs, replayed: &Replayed) -> anyhow::Result<Vec<Row>> {
    let read = |record: &Value| StreamRecord::deserialize(record);
    let recorded: Vec<StreamRecord> = replayed
        .records
        .iter()
        .map(read)
        .collect::<Result<_, _>>()
        .map_err(|error| Exit::Usage.blame(anyhow!("the recording's streams: {error}")))?;
    let mut rows = Vec::new();
    for direction in [Direction::Forward, Direction::Reverse, Direction::RoundTrip] {
        let streams: Vec<_> = recorded.iter().filter(|s| s.direction == direction).cloned().collect();
        if streams.is_empty() {
            continue;
        }
        let mut estimator = args.build(KERNEL_NOISE, 0)?;
        let (method, cost) = (args.0.to_string(), Cost::default());
        let found = |estimate: Estimate| {
            Row::of(&Decision::Estimated { method: method.clone(), direction, estimate, cost })
        };
        match replay_streams(&mut *estimator, &streams) {
            Outcome::Found(estimates) => rows.extend(estimates.into_iter().filter_map(found)),
            Outcome::Refused(refusal) => {
                // As far as the recording goes.
                rows.extend(estimator.so_far().into_iter().filter_map(found));
                rows.extend(Row::of(&Decision::Refused { method: method.clone(), direction, refusal, cost }));
            }
        }
    }
    if rows.is_empty() {
        return Err(Exit::NoResult.blame(anyhow!("the recording holds no streams")));
    }
    Ok(rows)
}
