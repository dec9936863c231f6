//! Which room may import which, as `docs/architecture.md` says, and no modules that import each other in a circle. Unit
//! tests may look anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const ARCHITECTURE: &str = include_str!("../../../../docs/architecture.md");

/// Modules that each module of a room imports, all as `room::module`.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The paths that code names from the crate's root: `use` lines, and those in the middle of expressions.
fn named(code: &str, module: &[String]) -> BTreeSet<Vec<String>> {
    let lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let code = lines.collect::<Vec<_>>().join(" ");
    let mut named = BTreeSet::new();
    for (start, first) in [("crate::", 0), ("super::", 1)] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let mut rest = &code[at + start.len()..];
            let mut path =
                if first == 0 { Vec::new() } else { module[..module.len().saturating_sub(1)].to_vec() };
            while let Some(further) = rest.strip_prefix("super::") {
                path.pop();
                rest = further;
            }
            expand(path, rest, &mut named);
        }
    }
    named
}

/// Adds what a tree of paths names: `network::{link::Link, tcp}` is two.
fn expand(mut path: Vec<String>, tree: &str, named: &mut BTreeSet<Vec<String>>) {
    let end = tree.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).unwrap_or(tree.len());
    let words = tree[..end].split("::").filter(|word| !["", "self"].contains(word));
    path.extend(words.map(str::to_owned));
    match tree[end..].strip_prefix('{').filter(|_| end == 0 || tree[..end].ends_with("::")) {
        Some(group) => members(group).into_iter().for_each(|one| expand(path.clone(), one, named)),
        None => _ = named.insert(path),
    }
}

/// What stands between the commas of a group, up to the brace that closes it; groups inside stay whole.
fn members(group: &str) -> Vec<&str> {
    let (mut all, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, letter) in group.char_indices() {
        let outside = depth == 0;
        depth += match letter {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if outside && [',', '}'].contains(&letter) {
            all.push(group[start..at].trim());
            start = at + 1;
        }
        if depth < 0 {
            break;
        }
    }
    all.retain(|one| !one.is_empty());
    all
}

/// The imports of the code below `root`.
fn imports(root: &Path) -> Imports {
    let mut imports = Imports::new();
    for file in files(root) {
        let path = file.strip_prefix(root).unwrap().with_extension("");
        let mut module: Vec<String> = path.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        if module.iter().any(|part| part.starts_with("test")) || module == ["lib"] {
            continue;
        }
        module.retain(|part| part != "mod");
        let code = std::fs::read_to_string(&file).unwrap();
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let own = module[..module.len().min(2)].join("::");
        let is_module = |path: &Vec<String>| {
            let place =
                path[..path.len().min(2)].iter().fold(root.to_owned(), |place, part| place.join(part));
            place.is_dir() || place.with_extension("rs").is_file()
        };
        let to = named(code, &module).into_iter().filter(|path| !path.is_empty()).map(|path| {
            match is_module(&path) {
                true => path[..path.len().min(2)].join("::"),
                // A room's own item, such as `scenario::Scenario`.
                false => path[0].clone(),
            }
        });
        imports.entry(own.clone()).or_default().extend(to.filter(|to| *to != own));
    }
    imports
}

/// The room, and which others it may import.
fn allowed() -> BTreeMap<&'static str, Vec<&'static str>> {
    let table = ARCHITECTURE.split_once("| room | holds | may import |\n|---|---|---|\n").unwrap().1;
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let row = |line: &'static str| {
        let cells: Vec<_> = line.split('|').collect();
        let names = |cell: &'static str| cell.split('`').skip(1).step_by(2);
        (names(cells[1]).next().unwrap(), names(cells[3]).collect())
    };
    rows.map(row).collect()
}

fn room(module: &str) -> &str {
    module.split("::").next().unwrap_or(module)
}

fn trespasses(imports: &Imports) -> Vec<String> {
    let allowed = allowed();
    let mut wrong = Vec::new();
    for (module, to) in imports {
        let own = room(module);
        for to in to.iter().filter(|to| room(to) != own) {
            if !allowed.get(own).is_some_and(|rooms| rooms.contains(&room(to))) {
                wrong.push(format!("{module} imports {to}"));
            }
        }
    }
    wrong
}

/// The modules that import each other in a circle: what is left when those that import nothing left are taken away.
fn circle(imports: &Imports) -> Vec<&str> {
    let mut left: BTreeSet<&str> = imports.keys().map(String::as_str).collect();
    loop {
        let ends: Vec<&str> = left
            .iter()
            .copied()
            .filter(|module| !imports[*module].iter().any(|to| left.contains(to.as_str())))
            .collect();
        if ends.is_empty() {
            return left.into_iter().collect();
        }
        left.retain(|module| !ends.contains(module));
    }
}

#[test]
fn rooms_import_what_the_architecture_allows_and_modules_no_circles() {
    let imports = imports(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let rooms: BTreeSet<&str> = imports.keys().map(|module| room(module)).collect();
    assert_eq!(rooms, allowed().into_keys().collect(), "rooms, and those of docs/architecture.md");
    assert!(imports["runs::run"].contains("network::engine"), "does the test still see imports? {imports:?}");
    assert!(imports["network::link"].contains("network::queue"), "{imports:?}");
    assert_eq!(trespasses(&imports), [""; 0]);
    // A room's own module file hands on what its modules have.
    let mut below: Imports = imports.into_iter().filter(|(module, _)| module.contains("::")).collect();
    below.iter_mut().for_each(|(module, to)| to.retain(|to| room(to) == room(module)));
    assert_eq!(circle(&below), [""; 0], "import each other in a circle, or lead to one: {below:#?}");
}

#[test]
fn what_is_not_allowed_is_seen() {
    let module = ["network".to_owned(), "link".to_owned(), "common".to_owned()];
    let code = "// use crate::runs::Outcome;\nuse crate::{\n    rng::Stream,\n    scenario::build,\n};\n\
                use crate::network::{queue::Red, tcp};\nuse crate::{text::{self, some}, roles::{stream, Place}, runs};\n\
                fn f() { crate::runs::twin::window(super::super::wlan::X) }";
    let of = |path: &[&str]| path.iter().map(|&part| part.to_owned()).collect::<Vec<_>>();
    let named = named(code, &module);
    for path in [
        &["rng", "Stream"][..],
        &["scenario", "build"],
        &["network", "queue", "Red"],
        &["network", "tcp"],
        &["text"],
        &["text", "some"],
        // Behind a group inside the group.
        &["roles", "Place"],
        &["runs"],
    ] {
        assert!(named.contains(&of(path)), "{path:?} in {named:?}");
    }
    assert!(named.iter().any(|path| path.starts_with(&of(&["runs", "twin"]))), "{named:?}");
    assert!(named.iter().any(|path| path.starts_with(&of(&["network", "wlan"]))), "{named:?}");
    assert!(!named.contains(&of(&["runs", "Outcome"])));
    let imports = |pairs: &[(&str, &str)]| -> Imports {
        pairs.iter().map(|&(from, to)| (from.to_owned(), BTreeSet::from([to.to_owned()]))).collect()
    };
    let wrong = imports(&[("network::link", "runs::twin"), ("runs::twin", "network::link")]);
    assert_eq!(trespasses(&wrong), ["network::link imports runs::twin"]);
    let round = imports(&[("a::x", "a::y"), ("a::y", "a::z"), ("a::z", "a::x"), ("a::w", "a::v")]);
    assert_eq!(circle(&round), ["a::x", "a::y", "a::z"]);
}
