//! Random scenarios, as the text of their files: `random.txt` says what they are made of.

use std::fmt::Write;

use lastmile::control::window::LawConfig;
use lastmile_sim::scenario::Scenario;
use proptest::prelude::*;

const PARTS: &str = include_str!("random.txt");
/// A channel for one flow.
const FIRST_FLOW: &str = ", flows = [\"f0\"]";

/// Numbers that decide.
struct Choices(std::vec::IntoIter<u64>);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        (self.0.next().unwrap_or(0) % n as u64) as usize
    }

    /// A line of a section, with what it names filled in.
    fn one(&mut self, name: &str) -> String {
        if name == "law" {
            return LawConfig::names()[self.below(LawConfig::names().len())].to_owned();
        }
        let title = format!("[{name}]\n");
        let section = PARTS.split("\n\n").find_map(|section| section.strip_prefix(&title));
        let lines: Vec<&str> = section.unwrap_or_else(|| panic!("{name}?")).lines().collect();
        let mut rest = lines[self.below(lines.len())];
        let mut filled = String::new();
        while let Some(at) = rest.find(['<', '{']) {
            filled += &rest[..at];
            let (inside, after) = (&rest[at + 1..], rest.as_bytes()[at]);
            if after == b'<' {
                let (name, left) = inside.split_once('>').unwrap();
                filled += &self.one(name);
                rest = left;
            } else if inside.starts_with(|c: char| c.is_ascii_digit()) {
                let (range, left) = inside.split_once('}').unwrap();
                let (least, most) = range.split_once("..").unwrap();
                let [least, most] = [least, most].map(|number| number.parse::<usize>().unwrap());
                filled += &(least + self.below(most - least + 1)).to_string();
                rest = left;
            } else {
                filled.push('{');
                rest = inside;
            }
        }
        filled += rest;
        if filled == "-" { String::new() } else { filled.replace("\\n", "\n") }
    }

    /// The keys of one direction of a link.
    fn direction(&mut self) -> Vec<String> {
        self.one("direction").lines().filter(|key| !key.is_empty()).map(str::to_owned).collect()
    }
}

/// A tree of two to five links, perhaps with a WLAN at one of its nodes, and traffic between its leaves.
fn made(mut choices: Choices) -> String {
    // Node k + 1 hangs on a node before it.
    let links = 2 + choices.below(4);
    let parents: Vec<usize> = (0..links).map(|k| choices.below(k + 1)).collect();
    let ap = (choices.below(2) == 1).then(|| choices.below(links + 1));
    let degree = |node: usize| parents.iter().filter(|&&p| p == node).count() + usize::from(node > 0);
    let is_host = |node: usize| degree(node) == 1 && Some(node) != ap;
    let name = |node: usize| format!("{}{node}", if is_host(node) { "h" } else { "r" });
    let mut hosts: Vec<String> = (0..=links).filter(|&node| is_host(node)).map(name).collect();
    let mut rest = String::new();
    for (k, &parent) in parents.iter().enumerate() {
        let (from, to, forth) = (name(parent), name(k + 1), choices.direction());
        let _ = write!(rest, "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\n{}\n", forth.join("\n"));
        // The way back may differ in what the way there has.
        let mut back = choices.direction();
        // Queues of the way back are not meant for the other way's discipline.
        if !back.iter().any(|key| key.starts_with("discipline")) {
            back.push("discipline = { kind = \"drop-tail\" }".to_owned());
        }
        let limited = |keys: &[String]| keys.iter().any(|key| key.starts_with("rate"));
        if choices.below(2) == 1 && limited(&forth) && limited(&back) {
            let _ = writeln!(rest, "back = {{ {} }}", back.join(", "));
        }
    }
    if let Some(ap) = ap {
        let _ = write!(rest, "[[wlan]]\n{}\nstation = [{{ name = \"{}\" }}", choices.one("wlan"), name(ap));
        for client in 0..1 + choices.below(4) {
            let keys = choices.one("client");
            let _ = write!(rest, ", {{ name = \"c{client}\", ap = \"{}\", {keys} }}", name(ap));
            hosts.push(format!("c{client}"));
        }
        rest += "]\n";
    }
    for k in 0..1 + choices.below(5) {
        let from = choices.below(hosts.len());
        let to = (from + 1 + choices.below(hosts.len() - 1)) % hosts.len();
        let (from, to, keys, start) = (&hosts[from], &hosts[to], choices.one("traffic"), choices.below(3000));
        let _ = write!(
            rest,
            "[[traffic]]\nname = \"f{k}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{keys}\nstart = \"{start} ms\"\n"
        );
    }
    let hosts: String = hosts.iter().map(|host| format!("[host.{host}]\n")).collect();
    let text = format!("name = \"random\"\nduration = \"3 s\"\n{hosts}{rest}");
    match Scenario::parse("random.toml", &text) {
        Err(error) if error.reason.contains("do not come by") => text.replace(FIRST_FLOW, ""),
        _ => text,
    }
}

pub fn scenario() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<u64>(), 500).prop_map(|numbers| made(Choices(numbers.into_iter())))
}
