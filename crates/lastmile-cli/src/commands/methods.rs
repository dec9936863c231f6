//! `lastmile methods` and `lastmile classifiers`: the registries.

use lastmile::classify;
use lastmile::estimate::METHODS;

use crate::exit::Exit;
use crate::table::Table;

/// List the methods by which a path can be measured
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    if args.json {
        let methods: Vec<_> = METHODS
            .iter()
            .map(|m| {
                serde_json::json!({
                    "name": m.name, "about": m.about, "paper": m.paper, "estimates": m.estimates,
                    "round_trip": m.round_trip, "resolution": m.resolution,
                })
            })
            .collect();
        crate::say(&serde_json::to_string_pretty(&methods)?);
        return Ok(None);
    }
    let mut table = Table::new(&["method", "estimates", "plain STAMP", "how"]);
    for method in METHODS {
        let estimates: Vec<_> = method.estimates.iter().map(ToString::to_string).collect();
        let plain = if method.round_trip { "yes" } else { "no" };
        table.row([method.name, &estimates.join(", "), plain, method.about]);
    }
    crate::say(table.text().trim_end());
    Ok(None)
}

/// List the classifiers that tell wireless from congestion losses
#[derive(clap::Args)]
pub(crate) struct ClassifierArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run_classifiers(args: ClassifierArgs) -> anyhow::Result<Option<Exit>> {
    let names: Vec<_> = classify::REGISTRY.iter().map(|c| (c.name, c.about)).collect();
    if args.json {
        let rows: Vec<_> =
            names.iter().map(|(name, about)| serde_json::json!({ "name": name, "about": about })).collect();
        crate::say(&serde_json::to_string_pretty(&rows)?);
        return Ok(None);
    }
    let mut table = Table::new(&["classifier", "how"]);
    names.iter().for_each(|(name, about)| table.row([*name, *about]));
    crate::say(table.text().trim_end());
    Ok(None)
}
