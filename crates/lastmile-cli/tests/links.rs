//! Relative links of README.md, CONTRIBUTING.md and docs/ lead to files and headings that are there, and their commands fit a terminal.

use std::path::{Path, PathBuf};

/// All pages below a folder.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => pages(&path, found),
            false if path.extension().is_some_and(|ending| ending == "md") => found.push(path),
            false => {}
        }
    }
}

/// A page's lines without its code blocks.
fn prose(page: &str) -> Vec<&str> {
    let mut code = false;
    let fence = |line: &&str| {
        let is_fence = line.starts_with("```");
        code ^= is_fence;
        !is_fence && !code
    };
    page.lines().filter(fence).collect()
}

/// The anchor that a heading has on forges: lower case, spaces as hyphens, without other signs.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn anchors(page: &str) -> Vec<String> {
    let lines = prose(page).into_iter();
    lines.filter(|line| line.starts_with('#')).map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// Targets of `[text](target)`, without those of other sites.
fn targets(page: &str) -> Vec<String> {
    let text = prose(page).join("\n");
    let after = text.split("](").skip(1);
    let inside = after.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned());
    inside.filter(|target| !target.contains("://") && !target.contains(' ')).collect()
}

/// Links of a page that lead nowhere.
fn broken(path: &Path) -> Vec<String> {
    let page = std::fs::read_to_string(path).unwrap();
    let leads = |target: &String| {
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let to = if file.is_empty() { path.to_owned() } else { path.parent().unwrap().join(file) };
        let has =
            || std::fs::read_to_string(&to).is_ok_and(|page| anchors(&page).iter().any(|a| a == heading));
        to.exists() && (heading.is_empty() || has())
    };
    targets(&page).into_iter().filter(|target| !leads(target)).collect()
}

/// Lines of a page's code blocks that are wider than a terminal, but for Rust and for the output of programs (`text`), whose tables
/// are as wide as they are.
fn wide(path: &Path) -> Vec<String> {
    let (mut block, mut found) = (None, Vec::new());
    for (number, line) in std::fs::read_to_string(path).unwrap().lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), block.is_some()) {
            (Some(language), false) => block = Some(language.to_owned()),
            (Some(_), true) => block = None,
            (None, true) if line.chars().count() <= 80 => {}
            (None, true) if matches!(block.as_deref(), Some("rust" | "text")) => {}
            (None, true) => found.push(format!("{}:{}: {line}", path.display(), number + 1)),
            (None, false) => {}
        }
    }
    found
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut all = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    pages(&root.join("docs"), &mut all);
    all
}

#[test]
fn commands_and_files_fit_a_terminal() {
    let wide: Vec<String> = documents().iter().flat_map(|path| wide(path)).collect();
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    let all = documents();
    let broken: Vec<String> = all
        .iter()
        .flat_map(|path| broken(path).into_iter().map(|to| format!("{}: {to}", path.display())))
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn anchors_are_those_of_forges() {
    let page = "# `[[link]]`\n```\n# no heading\n[no link](nowhere)\n```\n## A `b`, c's [x](y#z)\n";
    assert_eq!(anchors(page), ["link", "a-b-cs-xyz"]);
    assert_eq!(targets(page), ["y#z"]);
}
