//! `docs/scenarios.md` is complete and true: every key that a scenario may have stands in it, and every example loads.

use crate::documents::hold;
use crate::options::table;
use lastmile::estimate::METHODS;
use lastmile::options::Opt;
use lastmile_sim::network::jitter::Jitter;
use lastmile_sim::network::queue::Discipline;
use lastmile_sim::scenario::Scenario;

/// The lines around the tables of disciplines and of jitter.
const DISCIPLINES: &str = "<!-- From here on made of the files of disciplines. -->\n";
const JITTER: &str = "<!-- From here on made of the file of jitter. -->\n";
const END: &str = "<!-- Up to here. -->\n";
const REFERENCE: &str = include_str!("../../../../docs/scenarios.md");

/// Two hosts for examples that have none, and a link for those that need one.
const HOSTS: &str = "[host.sender]\n[host.receiver]\n";
const LINK: &str = "[[link]]\nfrom = \"sender\"\nto = \"receiver\"\nrate = \"10 Mbit/s\"\n";
const RUN: &str = "name = \"example\"\nduration = \"10 s\"\n";

fn error(text: &str) -> String {
    Scenario::parse("scenarios.md", text).err().map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn every_example_loads() {
    let examples: Vec<&str> =
        REFERENCE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() >= 8, "{} examples", examples.len());
    for example in examples {
        let mut text = if example.contains("duration =") { String::new() } else { RUN.to_owned() };
        text += if example.contains("[host.") { "" } else { HOSTS };
        text += example;
        text += if example.contains("[[link]]") { "" } else { LINK };
        assert_eq!(error(&text), "", "{text}");
    }
}

/// A place where keys stand: a scenario with `zzz` there, of which the reader says what it would have known instead.
const PLACES: [&str; 30] = [
    "zzz = 1",
    "host.a.zzz = 1",
    "host.a.clock.zzz = 1",
    "host.a.clock.steps = [{ zzz = 1 }]",
    "link = [{ zzz = 1 }]",
    "link = [{ from = \"a\", to = \"b\", back = { zzz = 1 } }]",
    "link = [{ from = \"a\", to = \"b\", shaper = { zzz = 1 } }]",
    "link = [{ from = \"a\", to = \"b\", policer = { zzz = 1 } }]",
    "link = [{ from = \"a\", to = \"b\", changes = [{ zzz = 1 }] }]",
    "link = [{ from = \"a\", to = \"b\", walk = { zzz = 1 } }]",
    "link = [{ from = \"a\", to = \"b\", losses = [{ zzz = 1 }] }]",
    "link = [{ from = \"a\", to = \"b\", losses = [{ model = { kind = \"zzz\" } }] }]",
    "link = [{ from = \"a\", to = \"b\", losses = [{ model = { kind = \"bernoulli\", zzz = 1 } }] }]",
    "link = [{ from = \"a\", to = \"b\", losses = [{ model = { kind = \"markov-time\", zzz = 1 } }] }]",
    "link = [{ from = \"a\", to = \"b\", losses = [{ model = { kind = \"markov-packets\", zzz = 1 } }] }]",
    "link = [{ from = \"a\", to = \"b\", losses = [{ model = { kind = \"gilbert-elliott\", zzz = 1 } }] }]",
    "link = [{ from = \"a\", to = \"b\", losses = [{ model = { kind = \"pattern\", zzz = 1 } }] }]",
    "link = [{ from = \"a\", to = \"b\", losses = [{ model = { kind = \"jakes\", zzz = 1 } }] }]",
    "wlan = [{ zzz = 1 }]",
    "wlan = [{ standard = \"zzz\" }]",
    "wlan = [{ protection = \"zzz\" }]",
    "wlan = [{ after_collision = \"zzz\" }]",
    "wlan = [{ ampdu = { zzz = 1 } }]",
    "wlan = [{ station = [{ zzz = 1 }] }]",
    "wlan = [{ station = [{ rate_control = \"zzz\" }] }]",
    "wlan = [{ station = [{ channel = { zzz = 1 } }] }]",
    "handoff = [{ zzz = 1 }]",
    "traffic = [{ zzz = 1 }]",
    "traffic = [{ kind = \"zzz\" }]",
    "stream = [{ zzz = 1 }]",
];

/// The names in backticks after "expected" in serde's words for an unknown field or variant.
fn known(said: &str) -> Vec<&str> {
    let expected = said.split_once("expected").map_or("", |(_, rest)| rest);
    expected.split('`').skip(1).step_by(2).collect()
}

/// The section on a table, or on the run itself.
fn section(table: &str) -> &'static str {
    let is_it = |section: &&str| {
        let heading = section.lines().next().unwrap_or_default();
        heading == format!("`[[{table}]]`") || heading == format!("`[{table}.NAME]`")
    };
    let mut sections = REFERENCE.split("\n## ");
    let run = sections.clone().find(|section| section.starts_with("The run\n"));
    sections.find(is_it).or(run).unwrap()
}

/// True if a code span of that table's section, examples apart, has it.
fn is_documented(key: &str, table: &str) -> bool {
    let text: String = section(table).split("```").step_by(2).collect();
    // Several keys may share a span: `{ at, rate, delay }`.
    text.split('`').skip(1).step_by(2).any(|code| {
        code.split(|c: char| !(c.is_alphanumeric() || "_-+.".contains(c))).any(|word| word == key)
            || code == key
    })
}

#[test]
fn every_key_is_documented() {
    let mut keys = 0;
    let more = [
        "traffic = [{ kind = \"cbr\", from = \"a\", to = \"b\", changes = [{ zzz = 1 }] }]",
        "traffic = [{ kind = \"ftp\", from = \"a\", to = \"b\", tcp = { zzz = 1 } }]",
        "traffic = [{ kind = \"ftp\", from = \"a\", to = \"b\", tcp = { recovery = \"zzz\" } }]",
        "measure = [{ from = \"a\", to = \"b\", method = \"m\", direction = \"zzz\" }]",
    ];
    for &place in PLACES.iter().chain(&more) {
        let said = error(&format!("name = \"x\"\nduration = \"1 s\"\n{place}\n"));
        let known = known(&said);
        assert!(!known.is_empty(), "{place}: {said}");
        keys += known.len();
        for key in known {
            let table = place.split([' ', '.']).next().unwrap();
            assert!(
                is_documented(key, table),
                "`{key}`, as in {place}, is not in its section of docs/scenarios.md"
            );
        }
    }
    for method in METHODS.iter() {
        // The options of methods stand in a document of their own, which is made of their tables.
        let text = format!(
            "{RUN}{HOSTS}{LINK}[[measure]]\nfrom = \"sender\"\nto = \"receiver\"\nmethod = \"{}\"\nzzz = 1\n",
            method.name
        );
        let said = Scenario::parse_with("x.toml", &text, &[]).unwrap_err().to_string();
        assert!(said.starts_with("x.toml:13: measure[0].zzz: unknown field"), "{said}");
        let own = known(&said).into_iter().filter(|key| !method.options.iter().any(|opt| opt.name == *key));
        let own: Vec<_> = own.collect();
        assert_eq!(own.len(), 9, "{own:?}");
        assert!(own.iter().all(|key| is_documented(key, "measure")), "{own:?}");
    }
    assert!(keys > 120, "{keys} keys were found: does the test still see them?");
    for law in lastmile::control::window::LawConfig::names() {
        assert!(is_documented(law, "traffic"), "the law {law} is not in docs/scenarios.md");
    }
    assert!(
        !is_documented("zzz", "traffic") && !is_documented("stop", "link") && is_documented("stream", "zzz")
    );
}

/// Between these lines stand the options that the files of disciplines and of jitter declare.
#[test]
fn the_tables_of_disciplines_and_jitter_are_theirs() {
    let made = |page: &str, begin: &str, kinds: Vec<(&str, &'static [Opt], &str)>| {
        let (head, rest) = page.split_once(begin).unwrap();
        let (_, tail) = rest.split_once(END).unwrap();
        let mut theirs = String::new();
        for (kind, options, source) in kinds {
            theirs += &format!("\n`{kind}` ({source}):\n\n");
            table(&mut theirs, options);
        }
        [head, begin, &theirs, "\n", END, tail].concat()
    };
    let page = made(REFERENCE, DISCIPLINES, Discipline::described().collect());
    let page = made(&page, JITTER, Jitter::described().to_vec());
    hold(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenarios.md"), &page);
}
