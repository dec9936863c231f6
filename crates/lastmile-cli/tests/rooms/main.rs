//! Crates, and rooms within a crate, import only the others that the tables of `docs/architecture.md` allow. Below that, at any
//! depth, no modules of a folder import each other in a circle.

mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use modules::{Modules, Words, words};

const ARCHITECTURE: &str = include_str!("../../../../docs/architecture.md");

/// A row of a table: a name, the names that it may import, and those in rows below that it imports even so.
struct Row {
    name: &'static str,
    may: Vec<&'static str>,
    up: Vec<&'static str>,
}

/// The first table below that heading; none without the heading.
fn table(heading: &str) -> Option<Vec<Row>> {
    let (_, below) = ARCHITECTURE.split_once(&format!("\n{heading}\n"))?;
    let lines =
        below.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let names =
        |cell: Option<&&'static str>| cell.map_or("", |cell| cell).split('`').skip(1).step_by(2).collect();
    let row = |line: &'static str| {
        let cells: Vec<_> = line.split('|').collect();
        let name: Vec<&str> = names(cells.get(1));
        Row { name: name[0], may: names(cells.get(3)), up: names(cells.get(4)) }
    };
    Some(lines.skip(2).map(row).collect())
}

/// Errors of a table: a name that is no row above, or an arrow up to a name that is no row below.
fn disorder(rows: &[Row]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let above = |name: &&str| rows[..number].iter().any(|row| row.name == *name);
        let below = |name: &&str| rows[number + 1..].iter().any(|row| row.name == *name);
        let may = row
            .may
            .iter()
            .filter(|name| !above(name))
            .map(|name| format!("{name} stands not above {}", row.name));
        let up = row
            .up
            .iter()
            .filter(|name| !below(name))
            .map(|name| format!("{name} stands not below {}", row.name));
        wrong.extend(may.chain(up));
    }
    wrong
}

/// Arrows between rows that the table does not allow, and those up that it names in vain; `arrows` say where they come from.
fn trespasses(rows: &[Row], arrows: &BTreeMap<(String, String), String>) -> Vec<String> {
    let row = |name: &str| rows.iter().find(|row| row.name == name);
    let allowed = |from: &str, to: &str| {
        row(from).is_some_and(|row| row.may.iter().chain(&row.up).any(|name| *name == to))
    };
    let wrong = arrows.iter().filter(|((from, to), _)| !allowed(from, to));
    let wrong = wrong.map(|((from, to), by)| format!("{from} may not import {to}: {by}"));
    let up = rows.iter().flat_map(|row| row.up.iter().map(|to| (row.name.to_owned(), (*to).to_owned())));
    let vain = up.filter(|arrow| !arrows.contains_key(arrow));
    wrong
        .chain(vain.map(|(from, to)| format!("{from} no longer imports {to}: take the arrow up away")))
        .collect()
}

/// The arrows between the children of a folder of modules, each with the import that makes it. The code in the
/// folder's own file belongs to no child: it hands on and lists the children's items, and they share it.
fn arrows(folder: &[String], imports: &BTreeSet<(Words, Words)>) -> BTreeMap<(String, String), String> {
    let child = |path: &Words| path.strip_prefix(folder).and_then(|rest| rest.first()).cloned();
    let arrow = |(from, to): &(Words, Words)| {
        let arrow = (child(from)?, child(to)?);
        (arrow.0 != arrow.1).then(|| (arrow, format!("{} -> {}", from.join("::"), to.join("::"))))
    };
    imports.iter().filter_map(arrow).collect()
}

/// Modules that import each other in a circle or stand between two circles. They are left when all others are taken away in
/// turn: modules that import no module left, or that no module left imports.
fn circle(arrows: &BTreeMap<(String, String), String>) -> BTreeSet<&str> {
    let mut left: BTreeSet<&str> = arrows.keys().flat_map(|(from, to)| [from.as_str(), to]).collect();
    loop {
        let inside: Vec<_> =
            arrows.keys().filter(|(a, b)| left.contains(a.as_str()) && left.contains(b.as_str())).collect();
        let stays = |name: &str| {
            inside.iter().any(|(from, _)| from == name) && inside.iter().any(|(_, to)| to == name)
        };
        let fewer: BTreeSet<&str> = left.iter().copied().filter(|name| stays(name)).collect();
        if fewer.len() == left.len() {
            return left;
        }
        left = fewer;
    }
}

/// All circles of a crate below its rooms, by the paths of the modules in them, with the imports that make them.
fn circles(modules: &Modules, imports: &BTreeSet<(Words, Words)>) -> BTreeMap<Vec<String>, Vec<String>> {
    let folders: BTreeSet<&[String]> =
        modules.paths().filter_map(|path| Some(path.split_last()?.1)).collect();
    let mut found = BTreeMap::new();
    for folder in folders.into_iter().filter(|folder| !folder.is_empty()) {
        let arrows = arrows(folder, imports);
        let round = circle(&arrows);
        if !round.is_empty() {
            let inside =
                arrows.iter().filter(|((a, b), _)| round.contains(a.as_str()) && round.contains(b.as_str()));
            let by = inside.map(|(_, by)| by.clone()).collect();
            found.insert(round.iter().map(|name| [folder, &words(name)].concat().join("::")).collect(), by);
        }
    }
    found
}

/// The crates of this house and their folders.
fn crates() -> BTreeMap<String, PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let all = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.join("Cargo.toml").is_file())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path))
        .collect()
}

/// The crates of this house that a manifest's `[dependencies]` name, of whatever target.
fn dependencies(manifest: &str) -> Vec<&str> {
    let sections = manifest.split("\n[").filter(|section| {
        section.lines().next().is_some_and(|name| name.ends_with("dependencies]") && !name.contains("dev-"))
    });
    let names = sections.flat_map(str::lines).map(|line| line.split(['.', ' ', '=']).next().unwrap());
    names.filter(|name| name.starts_with("lastmile")).collect()
}

#[test]
fn crates_import_what_the_architecture_allows() {
    let rows = table("## Crates").expect("a table of crates");
    assert_eq!(disorder(&rows), [""; 0]);
    let mut arrows = BTreeMap::new();
    for (name, folder) in crates() {
        assert!(
            rows.iter().any(|row| row.name == name),
            "{name} is not in the table of crates of docs/architecture.md"
        );
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let to = dependencies(&manifest)
            .into_iter()
            .map(|to| ((name.clone(), to.to_owned()), "its Cargo.toml".to_owned()));
        arrows.extend(to);
    }
    assert!(arrows.contains_key(&("lastmile-net".to_owned(), "lastmile-sim".to_owned())), "{arrows:?}");
    assert_eq!(trespasses(&rows, &arrows), [""; 0]);
}

#[test]
fn rooms_import_what_the_architecture_allows_and_modules_no_circles() {
    for (name, folder) in crates() {
        let rows = table(&format!("### `{name}`"))
            .unwrap_or_else(|| panic!("docs/architecture.md has no table of the rooms of {name}"));
        assert_eq!(disorder(&rows), [""; 0], "the rooms of {name}");
        let modules = Modules::read(&folder.join("src"));
        let imports = modules.imports();
        let rooms: BTreeSet<&str> =
            modules.paths().filter_map(|path| path.first()).map(String::as_str).collect();
        let named: BTreeSet<&str> = rows.iter().map(|row| row.name).collect();
        assert_eq!(rooms, named, "the rooms of {name}, and those of docs/architecture.md");
        assert_eq!(trespasses(&rows, &arrows(&[], &imports)), [""; 0], "{name}");
        let circles = circles(&modules, &imports);
        assert!(circles.is_empty(), "modules of {name} import each other in a circle: {circles:#?}");
    }
}

#[test]
fn imports_are_followed_to_the_module_that_has_the_item() {
    let texts = [
        ("", "pub mod a;\npub use a::X;"),
        (
            "a",
            "mod b;\nmod c;\nmod d;\npub use b::{B as Other, C};\nuse c::{self, Deep};\npub struct Own;\nfn f() { c::g() }",
        ),
        (
            "a::b",
            "use super::Own;\n// use crate::z::Z;\nuse crate::{\n    rng::Stream,\n    x::{self, Z},\n};",
        ),
        (
            "a::c",
            "fn f() { super::Other::new(crate::X, super::super::x::y()) }\n#[cfg(test)]\nmod tests {\n use super::d;",
        ),
        ("a::d", "use super::super::a::Deep;\nuse std::a::b;\nmy::x::z();"),
        ("a::tests", "use crate::x::Z;"),
        ("rng", ""),
        ("x", ""),
    ];
    let modules = Modules::new(texts.map(|(path, text)| (words(path), text.to_owned())));
    let imports: Vec<String> = modules
        .imports()
        .iter()
        .map(|(from, to)| format!("{} -> {}", from.join("::"), to.join("::")))
        .collect();
    let seen = [
        "a -> a::c",
        "a::b -> a",
        "a::b -> rng",
        "a::b -> x",
        "a::c -> a",
        "a::c -> a::b",
        "a::c -> x",
        "a::d -> a::c",
    ];
    assert_eq!(imports, seen);
}

#[test]
fn what_is_not_allowed_is_seen() {
    let of = |pairs: &[(&str, &str)]| -> BTreeMap<(String, String), String> {
        pairs.iter().map(|&(from, to)| ((from.to_owned(), to.to_owned()), "line 1".to_owned())).collect()
    };
    let row =
        |name, may: &[&'static str], up: &[&'static str]| Row { name, may: may.to_vec(), up: up.to_vec() };
    let rows = [row("low", &[], &["high"]), row("middle", &["low"], &["high"]), row("high", &["low"], &[])];
    let wrong = trespasses(&rows, &of(&[("high", "low"), ("high", "middle"), ("middle", "high")]));
    assert_eq!(
        wrong,
        ["high may not import middle: line 1", "low no longer imports high: take the arrow up away"]
    );
    assert_eq!(disorder(&rows), [""; 0]);
    let rows = [row("low", &["high"], &[]), row("high", &[], &["low"])];
    assert_eq!(disorder(&rows), ["high stands not above low", "low stands not below high"]);
    let arrows = of(&[("w", "x"), ("x", "y"), ("y", "z"), ("z", "x"), ("z", "v")]);
    assert_eq!(circle(&arrows), BTreeSet::from(["x", "y", "z"]));
    assert!(circle(&of(&[("x", "y"), ("y", "z"), ("x", "z")])).is_empty());
    let deep = [
        ("a", ""),
        ("a::b", ""),
        ("a::b::c", "use super::d::D;"),
        ("a::b::d::e", "use crate::a::b::c::C;"),
        ("a::b::d", "pub use e::D;"),
    ];
    let deep = Modules::new(deep.map(|(path, text)| (words(path), text.to_owned())));
    let found = circles(&deep, &deep.imports());
    assert_eq!(found.into_keys().collect::<Vec<_>>(), [["a::b::c", "a::b::d"]]);
    let manifest = "[package]\nname = \"lastmile-x\"\n[dependencies]\nlastmile.workspace = true\n\
                    [dev-dependencies]\nlastmile-cli.workspace = true\n[target.'cfg(unix)'.dependencies]\nlastmile-net = {}";
    assert_eq!(dependencies(manifest), ["lastmile", "lastmile-net"]);
}
