//! `lastmile methods`, `classifiers`, `controllers` and `sources`: the entries of a registry, and the options of one.

use lastmile::classify::Lda;
use lastmile::control::{ALIASES, CONTROLLERS, Controller, WRAPPERS, Wrapper};
use lastmile::endpoint::stream::source::Source;
use lastmile::estimate::{ALL, AllConfig, METHODS, Method};
use lastmile::options::{Entry, Opt, Options, Registry};
use serde_json::{Map, Value, json};

use crate::shell::PrintArgs;
use crate::shell::exit::Exit;
use lastmile_report::text::{Table, Text};

// Without documentation of its own: the commands in `lib.rs` have it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name to list the options of
    name: Option<String>,
    #[command(flatten)]
    print: PrintArgs,
}

/// Texts on an entry of a registry, beside its name and options.
pub(crate) trait Listed: Entry + 'static {
    /// Headings of the table: the entry's kind, then the columns up to the entry's basis.
    const COLUMNS: &'static [&'static str];

    /// The entry's basis and its source.
    fn about(&self) -> (&'static str, &'static str);

    /// Cells of the columns between the name and the basis.
    fn columns(&self) -> Vec<String> {
        Vec::new()
    }

    /// Names that stand for this one with something in front: each with its meaning.
    fn aliases(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Further facts on the entry, in a line.
    fn line(&self) -> String;

    /// The same for programs.
    fn more(&self) -> Value;
}

impl Listed for Method {
    const COLUMNS: &'static [&'static str] = &["method", "estimates", "plain STAMP"];

    fn about(&self) -> (&'static str, &'static str) {
        (self.about, self.paper)
    }

    fn columns(&self) -> Vec<String> {
        let estimates: Vec<_> = self.estimates.iter().map(ToString::to_string).collect();
        vec![estimates.join(", "), if self.round_trip { "yes" } else { "no" }.to_owned()]
    }

    fn line(&self) -> String {
        let plain = if self.round_trip { "also against any STAMP reflector" } else { "not by plain STAMP" };
        let [pattern, signal, search] = self.row();
        format!(
            "{pattern}; {signal}; {search}; {plain}; by the resolution of stamps: {}; not good {}",
            self.resolution, self.weak
        )
    }

    fn more(&self) -> Value {
        let brief: Map<_, _> =
            self.brief.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        json!({
            "estimates": self.estimates, "round_trip": self.round_trip, "resolution": self.resolution, "brief": brief,
            "pattern": self.pattern, "signal": self.signal, "search": self.search, "weak": self.weak, "in_all": self.in_all,
        })
    }
}

impl Listed for Lda {
    const COLUMNS: &'static [&'static str] = &["classifier"];

    fn about(&self) -> (&'static str, &'static str) {
        (self.about, self.paper)
    }

    fn line(&self) -> String {
        format!("needs stamps of arrival: {}", self.resolution)
    }

    fn more(&self) -> Value {
        json!({ "resolution": self.resolution })
    }
}

impl Listed for Controller {
    const COLUMNS: &'static [&'static str] = &["controller", "needs"];

    fn about(&self) -> (&'static str, &'static str) {
        (self.about, self.paper)
    }

    fn columns(&self) -> Vec<String> {
        vec![self.needs.to_string()]
    }

    fn line(&self) -> String {
        let front = self
            .classifier
            .map_or(String::new(), |name| format!("; `{name}` in front unless told otherwise"));
        format!("needs {}; where its host knows less: {}{front}", self.needs, self.below)
    }

    fn aliases(&self) -> Vec<(&'static str, String)> {
        let own = ALIASES.iter().filter(|alias| alias.controller == self.name);
        own.map(|alias| (alias.name, format!("{}+{}", alias.controller, alias.classifier))).collect()
    }

    fn more(&self) -> Value {
        let aliases: Map<_, _> =
            self.aliases().into_iter().map(|(name, means)| (name.to_owned(), json!(means))).collect();
        json!({ "needs": self.needs, "below": self.below, "classifier": self.classifier, "aliases": aliases })
    }
}

impl Listed for Source {
    const COLUMNS: &'static [&'static str] = &["source"];

    fn about(&self) -> (&'static str, &'static str) {
        (self.about, self.paper)
    }

    fn line(&self) -> String {
        let sizes = if self.needs_sizes { "needs a file of frame sizes, or a list" } else { "needs nothing" };
        sizes.to_owned()
    }

    fn more(&self) -> Value {
        json!({ "needs_sizes": self.needs_sizes })
    }
}

impl Listed for Wrapper {
    const COLUMNS: &'static [&'static str] = &["wrapper"];

    fn about(&self) -> (&'static str, &'static str) {
        (self.about, self.paper)
    }

    fn line(&self) -> String {
        format!("stands around a controller: tfrc+{name}, tfrc+{name}+zbs", name = self.name)
    }

    fn more(&self) -> Value {
        Value::Null
    }
}

/// All methods in a row, which stand beside the registry.
struct All;

impl Entry for All {
    const WHAT: &'static str = "method";

    fn name(&self) -> &'static str {
        ALL
    }

    fn options(&self) -> &'static [Opt] {
        AllConfig::OPTIONS
    }
}

impl Listed for All {
    const COLUMNS: &'static [&'static str] = &["method"];

    fn about(&self) -> (&'static str, &'static str) {
        ("every method that needs no further facts, one after the other, within one budget", "our own")
    }

    fn line(&self) -> String {
        "options of the methods go to those that have them".to_owned()
    }

    fn more(&self) -> Value {
        Value::Null
    }
}

static ALL_METHODS: Registry<All> = Registry::new(&[&All]);

/// The methods, and `all` of them.
pub(crate) fn methods(args: Args) -> anyhow::Result<Option<Exit>> {
    if args.name.as_deref() == Some(ALL) {
        return run(args, &ALL_METHODS);
    }
    let is_list = args.name.is_none() && !args.print.json;
    run(args, &METHODS)?;
    if is_list {
        crate::shell::say(&format!("`{ALL}` runs one after the other: lastmile methods {ALL}"));
    }
    Ok(None)
}

/// The controllers and their wrappers.
pub(crate) fn controllers(args: Args) -> anyhow::Result<Option<Exit>> {
    let is_wrapper = |name: &String| WRAPPERS.iter().any(|wrapper| wrapper.name == name);
    if args.name.as_ref().is_some_and(is_wrapper) {
        return run(args, &WRAPPERS);
    }
    let (both, print) = (args.name.is_none() && !args.print.json, args.print);
    run(args, &CONTROLLERS)?;
    if both {
        crate::shell::say("");
        run(Args { name: None, print }, &WRAPPERS)?;
    }
    Ok(None)
}

pub(crate) fn run<E: Listed>(args: Args, registry: &Registry<E>) -> anyhow::Result<Option<Exit>> {
    let for_programs = |entry: &E| {
        let (about, paper) = entry.about();
        let mut json =
            json!({ "name": entry.name(), "about": about, "paper": paper, "options": rows(entry.options()) });
        if let (Value::Object(json), Value::Object(more)) = (&mut json, entry.more()) {
            json.extend(more);
        }
        json
    };
    if let Some(name) = &args.name {
        let entry = registry.find(name).map_err(|error| Exit::Usage.blame(error))?;
        let (about, paper) = entry.about();
        let mut text = Text::default();
        text.say(format!("{}: {about} ({paper})\n{}\n", entry.name(), entry.line()));
        text.table(table(entry.options()));
        return args.print.show(&for_programs(entry), &text).map(|()| None);
    }
    let mut table = Table::new(&[E::COLUMNS, &["description"]].concat());
    for entry in registry.iter() {
        let mut cells = entry.columns();
        cells.insert(0, entry.name().to_owned());
        cells.push(entry.about().0.to_owned());
        table.row(cells);
        for (alias, means) in entry.aliases() {
            let mut cells = entry.columns();
            cells.insert(0, alias.to_owned());
            cells.push(format!("another name of {means}"));
            table.row(cells);
        }
    }
    let all: Vec<Value> = registry.iter().map(|entry| for_programs(entry)).collect();
    args.print.show(&all, &table.into())?;
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
fn table(options: &[Opt]) -> Table {
    let mut table = Table::new(&["option", "~kind", "default", "possible", "meaning", "~from"]);
    for opt in options {
        let default = opt.default().map_or_else(|| "-".to_owned(), |default| default.to_string());
        let (name, kind) = (opt.name.to_owned(), opt.kind.to_string());
        table.row([name, kind, default, opt.possible(), opt.help.to_owned(), opt.source.to_owned()]);
    }
    table
}
