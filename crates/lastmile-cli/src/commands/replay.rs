//! `lastmile replay FILE`: a recorded session again, or another method on its time stamps.

use std::path::PathBuf;

use anyhow::anyhow;
use lastmile_net::recording::Reader;
use serde_json::{Map, json};

use crate::files::replayed::replay;
use crate::roles;
use crate::shell::PrintArgs;
use crate::shell::exit::Exit;
use crate::shell::network::read_key;
use crate::shell::options::MethodArgs;

/// Repeat a recorded measurement or stream, or run another method on its time stamps
///
/// Without options the recorded inputs run again in virtual time. Exit code 0 says that the decisions equal the recorded ones byte for
/// byte, whatever the measurement's result was. With --streams the named method runs on the recorded streams instead. A recording that
/// was cut short runs as far as it goes.
#[derive(clap::Args)]
#[command(mut_group("Flags", |group| group.requires("streams")))]
#[command(mut_arg("method", |arg| arg.requires("streams")))]
pub(crate) struct Args {
    /// A recording: a file that `--record` of measure, stream, receive, sim or lab wrote
    file: PathBuf,
    /// Run a method on the recorded streams; the options below need it
    #[arg(long)]
    streams: bool,
    #[command(flatten)]
    method: MethodArgs,
    /// The key, if the recorded session had one
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    print: PrintArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let key = args.key_file.as_deref().map(read_key).transpose()?;
    let reader = Reader::open(&args.file).map_err(|error| Exit::Usage.blame(error))?;
    let replayed = replay(reader, key)?;
    let all = match args.streams {
        true => vec![roles::by_method(&args.method, &replayed.header, &replayed.records)?],
        false => {
            if let Some(difference) = replayed.difference()? {
                return Err(Exit::NoResult.blame(anyhow!(
                    "the replay decides otherwise than the recording, which another version of lastmile wrote: {difference}"
                )));
            }
            roles::replayed(&replayed.events)
        }
    };
    if args.print.json {
        let mut text = Map::new();
        text.insert("recording".into(), json!(args.file));
        text.insert("decisions".into(), json!(replayed.events.len()));
        text.insert("cut".into(), json!(replayed.cut));
        all.iter().for_each(|(found, _)| found.clone().put_into(&mut text));
        crate::shell::json(&text)?;
    } else {
        all.iter().for_each(|(_, shown)| args.print.say(&shown.text));
        if !args.streams {
            crate::shell::say(&format!("{} decisions, all as recorded", replayed.events.len()));
        }
        replayed.cut.iter().for_each(|cut| crate::shell::say(&format!("{}: {cut}", args.file.display())));
    }
    Ok(all.iter().find_map(|(_, shown)| shown.exit))
}
