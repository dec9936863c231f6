//! The program, the lab and the rooms of the simulator know roles through their lists: files outside of a role's own folders
//! that name one are the commands that are its own; no others join them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Places in which a role may be named: its own folders, with the lists beside them.
const OWN: [&str; 5] = [
    "lastmile/src/endpoint/",
    "lastmile-sim/src/roles/",
    "lastmile-sim/src/scenario/roles/",
    "lastmile-net/src/lab/roles/",
    "lastmile-cli/src/roles/",
];

/// Commands and studies that are a role's own or evaluate it, the lists of commands and of registries, papers that are about streams,
/// the source and the viewer of real video, and the library's front page.
const NAMING: &[(&str, &str)] = &[
    ("lastmile/src/lib.rs", "measure"),
    ("lastmile-cli/src/commands/enough.rs", "measure"),
    ("lastmile-cli/src/commands/measure/mod.rs", "measure"),
    ("lastmile-cli/src/commands/measure/session.rs", "measure"),
    ("lastmile-cli/src/commands/receive.rs", "stream"),
    ("lastmile-cli/src/commands/registries.rs", "stream"),
    ("lastmile-cli/src/commands/serve.rs", "measure"),
    ("lastmile-cli/src/commands/stream.rs", "stream"),
    ("lastmile-cli/src/lib.rs", "stream"),
    ("lastmile-study/src/accuracy/mod.rs", "measure"),
    ("lastmile-study/src/enough/mod.rs", "measure"),
    ("lastmile-study/src/evaluate/cases.rs", "stream"),
    ("lastmile-study/src/evaluate/frames.rs", "stream"),
    ("lastmile-study/src/evaluate/measure.rs", "stream"),
    ("lastmile-study/src/evaluate/oracle.rs", "stream"),
    ("lastmile-study/src/evaluate/path.rs", "stream"),
    ("lastmile-study/src/media.rs", "stream"),
    ("lastmile-study/src/pages.rs", "stream"),
    ("lastmile-study/src/paths/mod.rs", "measure"),
    ("lastmile-study/src/papers/ecnprobe/measure.rs", "measure"),
    ("lastmile-study/src/papers/lda/cases.rs", "stream"),
    ("lastmile-study/src/papers/tfrc_probe/measure.rs", "measure"),
    ("lastmile-study/src/papers/vtp/measure.rs", "stream"),
    ("lastmile-study/src/papers/vtp/testbed.rs", "stream"),
    ("lastmile-net/src/media/source.rs", "stream"),
    ("lastmile-net/src/media/viewer.rs", "stream"),
    ("lastmile-net/src/program/lines.rs", "stream"),
    ("lastmile-study/src/evaluate/guest.rs", "stream"),
    ("lastmile-study/src/papers/wbest/measure.rs", "measure"),
    ("lastmile-study/src/papers/wbest/pictures.rs", "measure"),
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The role that code names, outside of comments and unit tests.
fn named(code: &str) -> Option<&'static str> {
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.collect::<Vec<_>>().join("\n");
    let names = |role: &&&str| {
        let paths = ["roles::", "endpoint::", "roles.", "found.", "running.", "endpoint::{", "roles::{"];
        code.contains(&format!("{role:?}"))
            || paths.iter().any(|path| code.contains(&format!("{path}{role}")))
    };
    ["measure", "stream"].iter().find(names).copied()
}

#[test]
fn roles_are_named_in_their_own_folders() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeSet::new();
    for name in
        ["lastmile", "lastmile-sim", "lastmile-net", "lastmile-report", "lastmile-study", "lastmile-cli"]
    {
        for file in files(&crates.join(name).join("src")) {
            let path = file.strip_prefix(crates).unwrap().to_str().unwrap().to_owned();
            let is_test = path.ends_with("tests.rs") || path.contains("/tests/");
            if is_test || OWN.iter().any(|own| path.starts_with(own)) {
                continue;
            }
            let Some(role) = named(&std::fs::read_to_string(&file).unwrap()) else { continue };
            found.insert((path, role));
        }
    }
    let known: BTreeSet<_> = NAMING.iter().map(|&(path, role)| (path.to_owned(), role)).collect();
    let more: Vec<_> = found.difference(&known).collect();
    assert!(more.is_empty(), "these name a role outside of its folders: {more:?}; go by the list of roles");
    let fewer: Vec<_> = known.difference(&found).collect();
    assert!(fewer.is_empty(), "these name no role any more: take them off the test's lists: {fewer:?}");
}

/// The maker of the state machines that tables ask for is a role's own matter: others hand it on.
#[test]
fn the_simulator_knows_estimators_in_the_measuring_role_alone() {
    let sim = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("lastmile-sim/src");
    for file in files(&sim) {
        let code = std::fs::read_to_string(&file).unwrap();
        let own =
            ["roles/measure", "scenario/roles/measure"].iter().any(|own| file.starts_with(sim.join(own)));
        assert!(own || !code.contains("Estimator") && !code.contains("estimate::"), "{}", file.display());
    }
}

#[test]
fn a_named_role_is_seen() {
    assert_eq!(named("use lastmile_sim::roles::stream::Found;"), Some("stream"));
    assert_eq!(named("let rows = run.found.measure.outcomes;"), Some("measure"));
    assert_eq!(named("flows(all, \"Streams\", \"stream\")"), Some("stream"));
    assert_eq!(named("// roles::stream\nuse lastmile::endpoint::{AnyEndpoint, any};"), None);
    assert_eq!(named("#[cfg(test)]\nmod tests { use lastmile_sim::roles::stream; }"), None);
    assert_eq!(named("\n#[cfg(test)]\nmod tests { use lastmile_sim::roles::stream; }"), None);
}
