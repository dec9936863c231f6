//! `lastmile scenarios`: those that come with the program.

use anyhow::anyhow;
use lastmile_report::text::Table;
use lastmile_study::scenarios::{load, names, ready};
use serde_json::json;

use crate::shell::PrintArgs;
use crate::shell::exit::Exit;

/// List the built-in scenarios, or print the file of one
///
/// `sim`, `lab`, `sweep` and `evaluate` take these names, or files. docs/scenarios.md describes the keys of a file.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print this one's file
    #[arg(conflicts_with = "json")]
    name: Option<String>,
    #[command(flatten)]
    print: PrintArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    if let Some(name) = &args.name {
        let text = ready(name).ok_or_else(|| {
            Exit::Usage.blame(anyhow!("no scenario {name:?} is built in: `lastmile scenarios` lists them"))
        })?;
        crate::shell::say(text.trim_end());
        return Ok(None);
    }
    let mut table = Table::new(&["scenario", "description"]);
    let mut rows = Vec::new();
    for name in names() {
        let description = load(name, &[])?.description;
        table.row([name.to_owned(), description.clone()]);
        rows.push(json!({ "name": name, "description": description }));
    }
    args.print.show(&rows, &table.into())?;
    Ok(None)
}
