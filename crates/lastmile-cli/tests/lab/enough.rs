//! `enough` over real sockets, through links of the lab: each answer has its exit code, in both directions.

use super::common::{PROGRAM, Scratch, lastmile};
use super::patience::{Late, patiently};
use super::{lateness, no_lab};

/// A link of 4 Mbit/s each way between `home` and `far`; on one of 50 Mbit/s from `narrow` a bucket of 10 kB lets 4 Mbit/s pass.
fn path(narrow: Option<&str>) -> String {
    let link = |from: &str, to: &str| {
        let rate = match narrow {
            Some(host) if host == from => {
                "rate = \"50 Mbit/s\"\nshaper = { rate = \"4 Mbit/s\", burst = \"10 kB\" }"
            }
            Some(_) => "rate = \"50 Mbit/s\"",
            None => "rate = \"4 Mbit/s\"",
        };
        format!(
            "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\none_way = true\n{rate}\ndelay = \"5 ms\"\nqueue = \"60 kB\"\n"
        )
    };
    format!(
        "name = \"enough\"\nduration = \"40 s\"\n[host.home]\n[host.far]\n{}{}",
        link("home", "far"),
        link("far", "home")
    )
}

/// The exit code and the answers of `lastmile enough` with these words.
fn asked(scratch: &Scratch, path: &str, words: &str) -> Result<(i64, Vec<(String, String)>), Late> {
    let file = scratch.file("enough.toml", path);
    let (said, code) = (scratch.path("said.json"), scratch.path("code"));
    let client = format!("sleep 0.3; {PROGRAM} enough {words} --json > {said}; echo $? > {code}");
    let server = ["--in", "far", "--", PROGRAM, "serve", "--bind", "0.0.0.0"];
    let ended =
        lastmile(&[&["lab", &file][..], &server, &["--in", "home", "--", "sh", "-c", &client]].concat());
    if let Some(late) = lateness(&ended) {
        return Err(late);
    }
    let read = |path: &str| {
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}: {ended:?}"))
    };
    let text = read(&said);
    let json: serde_json::Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text} {ended:?}"));
    let word = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or("none").to_owned();
    let rows = json["results"].as_array().expect("rows");
    let rows = rows.iter().map(|row| (word(row, "direction"), word(row, "answer"))).collect();
    Ok((read(&code).trim().parse().expect("a code"), rows))
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_enough_says_yes_no_and_only_at_once_by_its_exit_code() {
    if no_lab() {
        return;
    }
    let scratch = Scratch::new("enough");
    let cases = [
        (None, "1M {far}", 0, ["yes", "yes"]),
        (None, "12M {far}", 5, ["no", "no"]),
        (Some("home"), "8M {far}", 6, ["at-once", "yes"]),
        (Some("far"), "8M {far}", 6, ["yes", "at-once"]),
        // No round is left to answer in.
        (None, "1M {far} --max-bytes '20 kB'", 1, ["cannot-tell", "cannot-tell"]),
    ];
    for (narrow, words, code, answers) in cases {
        let name = format!("enough {words}, {narrow:?}");
        let Some((got, rows)) = patiently(&name, || asked(&scratch, &path(narrow), words)) else { continue };
        eprintln!("lab: scored: {name}: {got} {rows:?}");
        assert_eq!(got, code, "{name}: {rows:?}");
        if code != 1 {
            let expected: Vec<_> = ["forward", "reverse"].into_iter().zip(answers).collect();
            let rows: Vec<_> = rows.iter().map(|(way, answer)| (way.as_str(), answer.as_str())).collect();
            assert_eq!(rows, expected, "{name}");
        }
    }
}
