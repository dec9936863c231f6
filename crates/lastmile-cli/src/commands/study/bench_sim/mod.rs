//! `lastmile bench-sim`: the cost of a simulated second, beside ns-2 and ns-3 where they are installed.
//!
//! Every run is a process of its own, measured by a second process that waits for it alone: CPU time and peak memory
//! are the kernel's figures and include start-up.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, bail};
use lastmile_net::usage::Usage;
use serde::Serialize;
use serde_json::{Value, json};

use crate::shell::exit::Exit;
use lastmile_report::text::Table;

mod ns3;

use lastmile_study::bench::benches;
use ns3::Ns3;

/// Measure the CPU time of a simulated second, beside ns-2 and ns-3 if installed
///
/// On Debian both come with `apt-get install ns2 libns3-dev libgsl-dev g++ pkg-config`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Simulated seconds of each run
    #[arg(long, value_name = "S", default_value_t = 15)]
    seconds: u32,
    /// Leave out the other simulators
    #[arg(long)]
    only_ours: bool,
    /// Repetitions of each measurement; the least CPU time counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Folder with the other simulators' programs
    #[arg(long, value_name = "DIR", default_value = "benches/ns")]
    programs: PathBuf,
    /// Run a command, and print its CPU time and memory
    #[arg(long, hide = true, num_args = 1.., allow_hyphen_values = true, value_name = "COMMAND")]
    child: Vec<OsString>,
}

/// One measurement.
#[derive(Clone, Debug, Serialize)]
struct Row {
    scenario: String,
    tool: &'static str,
    cpu_s_per_sim_s: f64,
    peak_mb: f64,
    /// Packets that crossed the bottleneck, or that a WLAN's receiver got.
    packets: u64,
    simulated_s: u32,
    /// Packets that links took in or dropped, data and ACKs, summed over all links: the work is proportional to them.
    hops: Option<u64>,
    /// CPU time of reading and building the scenario alone, all of its start-up included.
    start_cpu_s: Option<f64>,
}

impl Row {
    fn cpu_s(&self) -> f64 {
        self.cpu_s_per_sim_s * f64::from(self.simulated_s)
    }

    /// CPU time of a packet on one link, in ns, without the start-up.
    fn ns_per_hop(&self) -> Option<f64> {
        Some((self.cpu_s() - self.start_cpu_s?) * 1e9 / self.hops? as f64)
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    if let Some((program, rest)) = args.child.split_first() {
        return child(program, rest);
    }
    if !(1..=3600).contains(&args.seconds) {
        return Err(Exit::Usage.blame(anyhow!("--seconds: 1 to 3600, not {}", args.seconds)));
    }
    let folder = Folder::new()?;
    let ns2 = (!args.only_ours).then(|| find(&["ns2", "ns"])).flatten();
    let ns3 =
        if args.only_ours { Err("left out".to_owned()) } else { Ns3::compile(&args.programs, &folder.0) };
    let mut rows = Vec::new();
    for bench in benches(args.seconds) {
        let file = folder.0.join(format!("{}.toml", bench.name.replace([' ', ',', '/'], "-")));
        fs::write(&file, &bench.text)?;
        let ours = vec![env::current_exe()?.into(), "sim".into(), file.clone().into(), "--json".into()];
        let mut row = measure(&bench.name, "lastmile", &ours, &args, &our_packets)?;
        if let Some(text) = &bench.start {
            fs::write(&file, text)?;
            let start = measure(&bench.name, "lastmile", &ours, &args, &our_packets)?;
            row.start_cpu_s = Some(start.cpu_s());
        }
        rows.push(row);
        if let (Some(ns2), Some(call)) = (&ns2, &bench.ns2) {
            let script = args.programs.join(&call[0]);
            let mut command: Vec<OsString> = vec![ns2.into(), script.into()];
            command.extend(call[1..].iter().map(OsString::from));
            rows.push(measure(&bench.name, "ns-2", &command, &args, &their_packets)?);
        }
        if let (Ok(ns3), Some(call)) = (&ns3, &bench.ns3) {
            let mut command: Vec<OsString> = vec![ns3.program(&call[0]).into()];
            command.extend(call[1..].iter().map(OsString::from));
            rows.push(measure(&bench.name, "ns-3", &command, &args, &their_packets)?);
        }
    }
    let mut missing = Vec::new();
    if ns2.is_none() && !args.only_ours {
        missing.push("ns-2 is not installed: apt-get install ns2".to_owned());
    }
    if let (Err(why), false) = (&ns3, args.only_ours) {
        missing.push(format!("ns-3 is left out: {why}"));
    }
    if args.json {
        crate::shell::json(&rows)?;
        for line in &missing {
            // Nobody reads it where it cannot be written.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    } else {
        crate::shell::say_text(&table(&rows).into(), false);
        missing.iter().for_each(|line| crate::shell::say(line));
    }
    Ok(None)
}

fn table(rows: &[Row]) -> Table {
    let columns = [
        "scenario",
        "tool",
        ">CPU s per simulated s",
        ">peak MB",
        ">packets",
        ">us per packet",
        ">start-up ms",
        ">hops",
        ">ns per hop",
    ];
    let mut table = Table::new(&columns);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for row in rows {
        table.row([
            row.scenario.clone(),
            row.tool.to_owned(),
            format!("{:.5}", row.cpu_s_per_sim_s),
            format!("{:.1}", row.peak_mb),
            row.packets.to_string(),
            format!("{:.2}", row.cpu_s() / row.packets.max(1) as f64 * 1e6),
            or_dash(row.start_cpu_s.map(|s| format!("{:.1}", s * 1e3))),
            or_dash(row.hops.map(|hops| hops.to_string())),
            or_dash(row.ns_per_hop().map(|ns| format!("{ns:.0}"))),
        ]);
    }
    table
}

/// Runs a command to its end and prints, below its output, its cost.
fn child(program: &OsString, rest: &[OsString]) -> anyhow::Result<Option<Exit>> {
    let output = Command::new(program).args(rest).stdin(Stdio::null()).output()?;
    let usage = Usage::of_children()?;
    let text = json!({
        "ok": output.status.success(),
        "output": String::from_utf8_lossy(&output.stdout),
        "errors": String::from_utf8_lossy(&output.stderr),
        "cpu": usage.cpu_seconds,
        "peak": usage.peak_bytes,
    });
    crate::shell::say(&text.to_string());
    Ok(None)
}

fn measure(
    scenario: &str,
    tool: &'static str,
    command: &[OsString],
    args: &Args,
    counts: &dyn Fn(&str) -> Option<Counts>,
) -> anyhow::Result<Row> {
    let mut best: Option<Row> = None;
    for _ in 0..args.repeat {
        let output =
            Command::new(env::current_exe()?).args(["bench-sim", "--child"]).args(command).output()?;
        let told: Value = serde_json::from_slice(&output.stdout).with_context(|| {
            format!("{tool}, {scenario}: {}", String::from_utf8_lossy(&output.stderr).trim())
        })?;
        let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
        if told["ok"] != json!(true) {
            bail!("{tool}, {scenario}: {}", text("errors").trim());
        }
        let Some(Counts { packets, hops }) = counts(&text("output")) else {
            bail!("{tool}, {scenario}: the program did not say how many packets it carried");
        };
        let row = Row {
            scenario: scenario.to_owned(),
            tool,
            cpu_s_per_sim_s: told["cpu"].as_f64().unwrap_or(f64::NAN) / f64::from(args.seconds),
            peak_mb: told["peak"].as_f64().unwrap_or(f64::NAN) / 1e6,
            packets,
            simulated_s: args.seconds,
            hops,
            start_cpu_s: None,
        };
        // Other work of the machine only adds.
        if best.as_ref().is_none_or(|b| row.cpu_s_per_sim_s < b.cpu_s_per_sim_s) {
            best = Some(row);
        }
    }
    best.ok_or_else(|| anyhow!("no run"))
}

/// Counts that a run prints.
#[derive(Debug, PartialEq)]
struct Counts {
    packets: u64,
    hops: Option<u64>,
}

/// Counts of our own run: packets on the link from west to east, or packets received by all flows.
fn our_packets(output: &str) -> Option<Counts> {
    let told: Value = serde_json::from_str(output).ok()?;
    let links = told["links"].as_array()?;
    let hops = links.iter().map(|l| Some(l["packets"].as_u64()? + l["dropped"].as_u64()?)).sum();
    let bottleneck = links.iter().find(|l| l["from"] == "west" && l["to"] == "east");
    Some(match bottleneck {
        Some(link) => Counts { packets: link["packets"].as_u64()?, hops },
        None => Counts {
            packets: told["flows"]
                .as_array()?
                .iter()
                .map(|flow| flow["received"].as_u64())
                .sum::<Option<_>>()?,
            hops: None,
        },
    })
}

fn their_packets(output: &str) -> Option<Counts> {
    let packets = output.lines().find_map(|line| line.strip_prefix("packets ")?.trim().parse().ok())?;
    Some(Counts { packets, hops: None })
}

fn find(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    names.iter().find_map(|name| env::split_paths(&path).map(|dir| dir.join(name)).find(|p| p.is_file()))
}

/// A folder that goes away again.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Folder> {
        let path = env::temp_dir().join(format!("lastmile-bench-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_from_all_programs() {
        let counts = |packets, hops| Some(Counts { packets, hops });
        assert_eq!(their_packets("num_nodes is set 11\npackets 2387\n"), counts(2387, None));
        assert_eq!(their_packets("nothing"), None);
        let link = r#"{"links":[{"from":"west","to":"east","packets":5,"dropped":1},
            {"from":"east","to":"west","packets":2,"dropped":0}],"flows":[]}"#;
        assert_eq!(our_packets(link), counts(5, Some(8)));
        assert_eq!(our_packets(r#"{"links":[],"flows":[{"received":3},{"received":4}]}"#), counts(7, None));
    }
}
