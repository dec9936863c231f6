//! The modules of a crate as its source shows them, and what each imports: paths are followed through `use` to the
//! module that has the item. Unit tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The words of a path below the crate's root.
pub(crate) type Words = Vec<String>;

/// A crate's modules, by their paths.
pub(crate) struct Modules(BTreeMap<Words, Module>);

struct Module {
    /// Code without comments and without re-exports.
    code: String,
    /// Names that a `use` brings in, and their paths.
    aliases: BTreeMap<String, Words>,
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

pub(crate) fn words(path: &str) -> Words {
    path.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

impl Modules {
    /// Reads the crate whose sources are below `root`.
    pub(crate) fn read(root: &Path) -> Modules {
        let module = |file: PathBuf| {
            let path = file.strip_prefix(root).unwrap().with_extension("");
            let mut path: Words = path.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            path.retain(|part| part != "mod" && part != "lib");
            (path, std::fs::read_to_string(&file).unwrap())
        };
        Modules::new(
            files(root).into_iter().filter(|file| file.extension().is_some_and(|e| e == "rs")).map(module),
        )
    }

    /// The modules of these texts.
    pub(crate) fn new(texts: impl IntoIterator<Item = (Words, String)>) -> Modules {
        // A program's `main` is a crate of its own.
        let own = |path: &Words| !path.iter().any(|part| part.starts_with("test")) && *path != ["main"];
        let texts: BTreeMap<Words, String> = texts.into_iter().filter(|(path, _)| own(path)).collect();
        let paths: BTreeSet<&Words> = texts.keys().collect();
        let module = |(path, text): (&Words, &String)| (path.clone(), Module::new(path, text, &paths));
        Modules(texts.iter().map(module).collect())
    }

    /// The modules by their paths; the root's is empty.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Words> {
        self.0.keys()
    }

    /// Pairs of a module and another that has a name used there.
    pub(crate) fn imports(&self) -> BTreeSet<(Words, Words)> {
        let of = |(path, module): (&Words, &Module)| {
            let children =
                self.0.keys().filter(|child| child.len() == path.len() + 1 && child.starts_with(path));
            let children = children.map(|child| child.last().unwrap().as_str());
            let named = named(&module.code, path, &children.collect::<Vec<_>>());
            let to = named.into_iter().map(|to| self.home(&to)).filter(|to| to != path);
            to.map(|to| (path.clone(), to)).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of).collect()
    }

    /// The module that has the item at a path.
    fn home(&self, path: &Words) -> Words {
        for end in 1..=path.len() {
            if self.0.contains_key(&path[..end]) {
                continue;
            }
            let alias = self.0.get(&path[..end - 1]).and_then(|module| module.aliases.get(&path[end - 1]));
            return match alias {
                Some(alias) => self.home(&[alias, &path[end..]].concat()),
                None => path[..end - 1].to_vec(),
            };
        }
        path.clone()
    }
}

impl Module {
    fn new(path: &Words, text: &str, modules: &BTreeSet<&Words>) -> Module {
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let text = lines.map(|line| format!("{line}\n")).collect::<String>();
        let (mut code, mut aliases) = (String::new(), BTreeMap::new());
        // Of the lines of a file only its own `use` begin at the margin.
        let mut rest = text.as_str();
        while let Some(line) = rest.lines().next() {
            let shown = line.starts_with("pub");
            let tree = line
                .strip_prefix("pub")
                .map_or(line, |line| line.trim_start_matches(|c| c != ' ').trim_start());
            let end = if tree.starts_with("use ") { rest.find(';').unwrap() + 1 } else { line.len() };
            if tree.starts_with("use ") {
                let start = line.len() - tree.len() + "use ".len();
                let tree = rest[start..end - 1].split_whitespace().collect::<Vec<_>>().join(" ");
                let mut all = BTreeSet::new();
                expand(Words::new(), &tree, &mut all);
                for (name, to) in all {
                    let child = modules.contains(&[path, &to[..1]].concat());
                    if let Some(to) = from_root(&to, path).or(child.then(|| [&path[..], &to].concat())) {
                        aliases.insert(name, to);
                    }
                }
            }
            if !(shown && tree.starts_with("use ")) {
                code += &rest[..end];
                code.push('\n');
            }
            rest = rest[end..].strip_prefix('\n').unwrap_or(&rest[end..]);
        }
        Module { code, aliases }
    }
}

/// A path that begins with `crate`, `self` or `super` in a module.
fn from_root(to: &[String], module: &Words) -> Option<Words> {
    let mut path = match to[0].as_str() {
        "crate" => Words::new(),
        "self" => module.clone(),
        "super" => module[..module.len().saturating_sub(1)].to_vec(),
        _ => return None,
    };
    let further = to[1..].iter().take_while(|word| *word == "super").count();
    path.truncate(path.len().saturating_sub(further));
    path.extend_from_slice(&to[1 + further..]);
    Some(path)
}

/// The paths that code names from the crate's root: `use` lines, and those in the middle of expressions.
fn named(code: &str, module: &Words, children: &[&str]) -> BTreeSet<Words> {
    let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut named = BTreeSet::new();
    for first in ["crate", "super", "self"].iter().chain(children) {
        for (at, start) in code.match_indices(&format!("{first}::")) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let mut all = BTreeSet::new();
            expand(words(first), &code[at + start.len()..], &mut all);
            let full = |to: Words| from_root(&to, module).unwrap_or_else(|| [&module[..], &to].concat());
            named.extend(all.into_iter().map(|(_, to)| full(to)));
        }
    }
    named
}

/// Adds the paths of a tree, each with the name that it gets: `network::{link::Link as L, tcp}` is two.
fn expand(mut path: Words, tree: &str, named: &mut BTreeSet<(String, Words)>) {
    let end = tree.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).unwrap_or(tree.len());
    path.extend(words(&tree[..end]));
    if let Some(group) = tree[end..].strip_prefix('{').filter(|_| end == 0 || tree[..end].ends_with("::")) {
        return members(group).into_iter().for_each(|one| expand(path.clone(), one, named));
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let other =
        tree[end..].trim_start().strip_prefix("as ").map(str::trim).filter(|name| !name.contains(' '));
    named.insert((other.map_or_else(|| path.last().cloned().unwrap_or_default(), str::to_owned), path));
}

/// Parts between the commas of a group, up to the brace that closes it; groups inside stay whole.
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
