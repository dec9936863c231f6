//! Messages about wrong scenario files: file, line, key and reason, in one line.
//!
//! Each file in `tests/bad` has one error, and the message about it in its first line, without the file's
//! name; or it looks wrong and is `accepted`. `LASTMILE_UPDATE_DOCS=1` writes the first lines anew: read the difference before committing.

use std::fmt::Write;

use crate::documents::{UPDATE, updates};
use lastmile_sim::scenario::{BUILTIN, Override, Scenario, ScenarioError, builtin_text};

const FILE: &str = "tests/bad/x.toml";

fn parse(text: &str, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
    Scenario::parse_with(FILE, text, overrides)
}

fn said(text: &str) -> String {
    let told = |error: ScenarioError| {
        error
            .to_string()
            .replacen(&format!("{FILE}:"), "", 1)
            .replace(env!("CARGO_MANIFEST_DIR"), "/the/folder")
            // Behind a feature that is off.
            .replace(", probegap", "")
    };
    parse(text, &[]).map_or_else(told, |_| "accepted".to_owned())
}

#[test]
fn every_bad_scenario_brings_its_message() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bad");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut wrong = String::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let said = format!("# {}", said(&text));
        if updates() {
            std::fs::write(path, format!("{said}\n{rest}")).unwrap();
        } else if said != first {
            let _ = writeln!(wrong, "{}\n  expected {first}\n  said     {said}", path.display());
        }
        assert!(!said.contains('\n'), "{said}");
    }
    assert!(paths.len() > 250, "{} files", paths.len());
    assert!(wrong.is_empty(), "{UPDATE}=1 writes first lines anew\n{wrong}");
}

#[test]
fn a_file_is_read_as_it_stands() {
    let text = builtin_text("path").unwrap();
    let text = text.replacen("to = \"receiver\"", "to = \"r\"", 1)
        + "[[link]]\nfrom = \"r\"\nto = \"receiver\"\nrate = \"9 Mbit/s\"\nback = { rate = \"2 Mbit/s\" }\n";
    let scenario = parse(&text, &[]).unwrap();
    assert_eq!((scenario.routers.as_slice(), scenario.path(0, 1)), (&["r".to_owned()][..], Some(vec![0, 2])));
    let rates: Vec<_> =
        scenario.links[2..].iter().map(|link| link.config.rate.unwrap().to_string()).collect();
    assert_eq!(rates, ["9 Mbit/s", "2 Mbit/s"]);
    for name in BUILTIN {
        let text = builtin_text(name).unwrap();
        assert_eq!(said(&text.replace('\n', "\r\n")), "accepted");
        assert_eq!(said(&format!("\u{feff}{text}")), "accepted");
    }
}

#[test]
fn overrides_that_fit_nowhere_say_so() {
    let set = |key: &str, value: &str| {
        parse(builtin_text("path").unwrap(), &[Override::new(key, value)])
            .map(|scenario| scenario.traffic[0].rate.to_string())
            .map_err(|error| error.to_string())
    };
    assert_eq!(set("traffic.cross.rate", "\"5 Mbit/s\"").unwrap(), "5 Mbit/s");
    assert_eq!(set("traffic.0.rate", "5 Mbit/s").unwrap(), "5 Mbit/s");
    assert_eq!(set("host.sender.clock.skew_ppm", "50").unwrap(), "4 Mbit/s");
    for (key, value, error) in [
        ("traffic.web.rate", "1 bit/s", ": traffic.web.rate: the list has no element \"web\""),
        ("traffic.cross", "1", ": traffic.cross: names an element of a list; name a single value in it"),
        ("traffic", "1", ": traffic: names a table or list; name a single value in it"),
        ("name.x", "1", ": name.x: \"name\" is a single value here: set it whole"),
        ("name", "[1]", ": name: a table or list cannot be set"),
        ("link.0.rate", "0 bit/s", ":15: link[0].rate: a rate of zero carries nothing"),
    ] {
        assert_eq!(set(key, value).unwrap_err(), format!("{FILE}{error}"));
    }
    // A key that the file does not have stands on no line of it, but its path is named.
    assert!(set("link.0.wobble", "1 ms").unwrap_err().contains("unknown field `wobble`"));
}

#[test]
fn no_text_makes_it_panic() {
    // Every prefix, and every line left out: the file as it is while somebody types it.
    for text in ["path", "ap-1"].map(|name| builtin_text(name).unwrap()) {
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            let _ = parse(&text[..end], &[]);
        }
        for skip in 0..text.lines().count() {
            let rest: Vec<_> =
                text.lines().enumerate().filter(|(n, _)| *n != skip).map(|(_, line)| line).collect();
            let _ = parse(&rest.join("\n"), &[]);
        }
    }
    for (open, close) in [("[", "]"), ("{ a = ", " }")] {
        let deep = format!("name = {}1{}", open.repeat(100_000), close.repeat(100_000));
        assert_eq!(parse(&deep, &[]).unwrap_err().line, 1);
    }
    assert!(parse(&format!("{}a = 1", "a.".repeat(100_000)), &[]).is_err());
}

const TWO: &str = "name = \"x\"\nduration = \"1 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Gbit/s\"\n";

fn flow(n: usize) -> String {
    format!(
        "[[traffic]]\nname = \"f{n}\"\nfrom = \"a\"\nto = \"b\"\nkind = \"cbr\"\nrate = \"1 Mbit/s\"\nsize = \"1 kB\"\n"
    )
}

#[test]
fn more_things_than_can_be_looked_at() {
    let many = |head: &str, entry: &dyn Fn(usize) -> String, most: usize| {
        (0..=most).fold(TWO.to_owned() + head, |text, n| text + &entry(n))
    };
    let refused = |text: &str, key: &str, reason: &str| {
        let error = parse(text, &[]).map(|_| ()).unwrap_err();
        assert!(error.line > 0 && error.key == key && error.reason.contains(reason), "{error}");
    };
    let link = |n: usize| format!("[[link]]\nfrom = \"r{n}\"\nto = \"r{}\"\n", n + 1);
    refused(&many("", &link, 5_000), "link[5000]", "more than 5000 links");
    refused(&many("", &flow, 20_000), "traffic[20000]", "more than 20000 flows");
    let station = |n| format!("{{ name = \"s{n}\", ap = \"r\" }}, ");
    let text = many("[[wlan]]\nstation = [{ name = \"r\" }, ", &station, 4_000) + "]\n";
    refused(&text, "wlan[0]", "more than 4000 stations");
    assert_eq!(said(&"#".repeat(16_000_001)), "1: a scenario of more than 16000000 bytes");
}

/// Names are looked up, not searched for, and paths are found once for each flow.
#[test]
fn channels_for_many_flows_are_read_quickly() {
    const FLOWS: usize = 4_000;
    let names: Vec<String> = (0..FLOWS).map(|n| format!("\"f{n}\"")).collect();
    let channel =
        format!("{{ model = {{ kind = \"bernoulli\", rate = 0.0 }}, flows = [{}] }}, ", names.join(", "));
    let text =
        (0..FLOWS).fold(format!("{TWO}losses = [{}]\n", channel.repeat(16)), |text, n| text + &flow(n));
    assert_eq!(said(&text), "accepted");
}
