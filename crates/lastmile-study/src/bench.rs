//! Scenarios of the benchmark: three that all simulators run, and dumbbells of ever more flows.

use std::fmt::Write as _;

/// A scenario, and how each tool is called for it.
pub struct Bench {
    /// Its name.
    pub name: String,
    /// The scenario file.
    pub text: String,
    /// The same without any simulated time to speak of.
    pub start: Option<String>,
    /// The arguments of ns-2, its script first.
    pub ns2: Option<Vec<String>>,
    /// The arguments of ns-3, its program first.
    pub ns3: Option<Vec<String>>,
}

fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<Vec<String>> {
    Some(words.into_iter().map(str::to_owned).collect())
}

/// The three scenarios that are compared, and the dumbbell with 1 to 1000 flows: on one link, where they share what
/// is there and drop ever more of it, and on a link that grows with them, where packets do as well.
pub fn benches(seconds: u32) -> Vec<Bench> {
    let s = seconds.to_string();
    let shared = |flows| Dumbbell { seconds, flows, mbits: 100, queue: 200, access_mbits: 1000 };
    let dur = format!("--dur={seconds}");
    let mut benches = vec![Bench {
        name: "dumbbell, 10 TCP flows".into(),
        text: shared(10).text(true),
        start: Some(shared(10).text(false)),
        ns2: words(["dumbbell.tcl", &s, "10"]),
        ns3: words(["dumbbell", &dur, "--flows=10"]),
    }];
    for (name, standard, short) in
        [("WLAN, 10 stations at 11 Mbit/s", "b", "11"), ("WLAN, 10 stations at 54 Mbit/s", "g", "54")]
    {
        let standard_is = format!("--std={standard}");
        benches.push(Bench {
            name: name.into(),
            text: wlan(seconds, standard, short, 10),
            start: None,
            // ns-2 knows no OFDM.
            ns2: (standard == "b").then(|| words(["wlan.tcl", &s, "10"])).flatten(),
            ns3: words(["wlan", &dur, "--n=10", &standard_is]),
        });
    }
    let mut add = |name: String, dumbbell: Dumbbell| {
        let (text, start) = (dumbbell.text(true), Some(dumbbell.text(false)));
        benches.push(Bench { name, text, start, ns2: None, ns3: None });
    };
    for flows in [1, 100, 1000] {
        add(format!("dumbbell, {flows} TCP flows"), shared(flows));
    }
    for flows in [1, 10, 100, 1000] {
        let grown = Dumbbell { seconds, flows, mbits: 4 * flows, queue: 20 + 2 * flows, access_mbits: 100 };
        add(format!("dumbbell, {flows} x 4 Mbit/s"), grown);
    }
    benches
}

/// TCP flows (SACK, delayed ACKs) over a bottleneck of 10 ms, with access links of 1 ms.
struct Dumbbell {
    seconds: u32,
    flows: usize,
    mbits: usize,
    /// Packets.
    queue: usize,
    access_mbits: usize,
}

impl Dumbbell {
    /// The scenario; without `run` all that must be read and built, and a microsecond of it.
    fn text(&self, run: bool) -> String {
        let &Dumbbell { seconds, flows, mbits, queue, access_mbits } = self;
        // So many hosts have addresses; more flows share them.
        let pairs = flows.min(100);
        let duration = if run { format!("{seconds} s") } else { "1 us".to_owned() };
        let mut text = format!("name = \"dumbbell-{flows}\"\nduration = \"{duration}\"\n\nlink = [\n");
        let bottleneck = format!("rate = \"{mbits} Mbit/s\", delay = \"10 ms\", queue = \"{queue} packets\"");
        let _ = writeln!(text, "  {{ from = \"west\", to = \"east\", {bottleneck} }},");
        for i in 0..pairs {
            let access =
                format!("rate = \"{access_mbits} Mbit/s\", delay = \"1 ms\", queue = \"10000 packets\"");
            let _ = writeln!(text, "  {{ from = \"s{i}\", to = \"west\", {access} }},");
            let _ = writeln!(text, "  {{ from = \"east\", to = \"d{i}\", {access} }},");
        }
        text += "]\n\n";
        for i in 0..pairs {
            let _ = writeln!(text, "[host.s{i}]\n[host.d{i}]");
        }
        for i in 0..flows {
            let (pair, start) = (i % pairs, if run { 100 + 500 * i / flows } else { 0 });
            let _ = writeln!(
                text,
                "\n[[traffic]]\nname = \"t{i}\"\nkind = \"ftp\"\nfrom = \"s{pair}\"\nto = \"d{pair}\"\nstart = \"{start} ms\""
            );
        }
        text
    }
}

/// Saturated stations to a receiver, packets of 1500 B.
fn wlan(seconds: u32, standard: &str, rate: &str, stations: usize) -> String {
    let mut text = format!("name = \"wlan-{rate}\"\nduration = \"{seconds} s\"\n\n[host.ap]\n");
    for i in 0..stations {
        let _ = writeln!(text, "[host.s{i}]");
    }
    let _ = writeln!(text, "\n[[wlan]]\nstandard = \"{standard}\"\nstation = [\n  {{ name = \"ap\" }},");
    for i in 0..stations {
        let _ = writeln!(text, "  {{ name = \"s{i}\", ap = \"ap\", rate = \"{rate} Mbit/s\", queue = 50 }},");
    }
    text += "]\n";
    let each = if standard == "b" { 2 } else { 8 };
    for i in 0..stations {
        let _ = writeln!(
            text,
            "\n[[traffic]]\nname = \"t{i}\"\nkind = \"cbr\"\nfrom = \"s{i}\"\nto = \"ap\"\nrate = \"{each} Mbit/s\"\nsize = \"1500 B\""
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenarios_are_scenarios() {
        for bench in benches(15) {
            for text in [Some(&bench.text), bench.start.as_ref()].into_iter().flatten() {
                let scenario = lastmile_sim::scenario::Scenario::parse("bench.toml", text);
                assert!(scenario.is_ok(), "{}: {scenario:?}", bench.name);
            }
        }
    }
}
