//! `lastmile methods` and `lastmile classifiers`: the registries.

use lastmile::classify::CLASSIFIERS;
use lastmile::options::{Entry, Opt, find};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::options::methods;
use crate::table::Table;

/// List the methods by which a path can be measured, or the options of one
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The method whose options to list
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List the classifiers that tell wireless from congestion losses, or the options of one
#[derive(clap::Args)]
pub(crate) struct ClassifierArgs {
    /// The classifier whose options to list
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let entry = |m: &lastmile::estimate::Method| {
        let brief: serde_json::Map<_, _> =
            m.brief.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        json!({
            "name": m.name, "about": m.about, "paper": m.paper, "estimates": m.estimates,
            "round_trip": m.round_trip, "resolution": m.resolution, "options": rows(m.options), "brief": brief,
        })
    };
    if let Some(name) = &args.name {
        let method = find(methods(), name).map_err(|error| Exit::Usage.blame(error))?;
        let plain = if method.round_trip { "also against any STAMP reflector" } else { "not by plain STAMP" };
        let head = format!(
            "{}: {} ({})\n{plain}; by the resolution of stamps: {}",
            method.name, method.about, method.paper, method.resolution
        );
        return say(args.json, &entry(method), &format!("{head}\n\n{}", table(method.options)));
    }
    let mut table = Table::new(&["method", "estimates", "plain STAMP", "how"]);
    for method in methods() {
        let estimates: Vec<_> = method.estimates.iter().map(ToString::to_string).collect();
        let plain = if method.round_trip { "yes" } else { "no" };
        table.row([method.name, &estimates.join(", "), plain, method.about]);
    }
    say(args.json, &methods().iter().map(|m| entry(m)).collect(), &table.text())
}

pub(crate) fn run_classifiers(args: ClassifierArgs) -> anyhow::Result<Option<Exit>> {
    let entry = |lda: &lastmile::classify::Lda| json!({ "name": lda.name, "about": lda.about, "paper": lda.paper, "options": rows(lda.options) });
    if let Some(name) = &args.name {
        let lda = find(CLASSIFIERS, name).map_err(|error| Exit::Usage.blame(error))?;
        let head = format!("{}: {} ({})", lda.name(), lda.about, lda.paper);
        return say(args.json, &entry(lda), &format!("{head}\n\n{}", table(lda.options)));
    }
    let mut table = Table::new(&["classifier", "how"]);
    CLASSIFIERS.iter().for_each(|lda| table.row([lda.name, lda.about]));
    say(args.json, &CLASSIFIERS.iter().map(|lda| entry(lda)).collect(), &table.text())
}

fn say(json: bool, value: &Value, text: &str) -> anyhow::Result<Option<Exit>> {
    match json {
        true => crate::say(&serde_json::to_string_pretty(value)?),
        false => crate::say(text.trim_end()),
    }
    Ok(None)
}

/// Options for programs.
fn rows(options: &[Opt]) -> Vec<Value> {
    let row = |opt: &Opt| {
        json!({
            "name": opt.name, "kind": opt.kind, "default": opt.default(), "possible": opt.possible(),
            "help": opt.help, "source": opt.source,
        })
    };
    options.iter().map(row).collect()
}

/// Options for people.
fn table(options: &[Opt]) -> String {
    let mut table = Table::new(&["option", "kind", "default", "possible", "what it does", "from"]);
    for opt in options {
        let default = opt.default().map_or_else(|| "-".to_owned(), |default| default.to_string());
        let (name, kind) = (opt.name.to_owned(), opt.kind.to_string());
        table.row([name, kind, default, opt.possible(), opt.help.to_owned(), opt.source.to_owned()]);
    }
    table.text()
}
