//! `lastmile doctor`: this machine's abilities for measuring, and advice on changes.

use anyhow::anyhow;
use lastmile_net::doctor::{Finding, Machine, Verdict};
use lastmile_net::sched::Lateness;
use serde_json::{Value, json};

use crate::shell::PrintArgs;
use crate::shell::exit::Exit;
use lastmile_report::text::{Table, Text};

/// Examine this machine (timestamps, priorities, timers, namespaces, interface) and list changes to make
///
/// Changes nothing itself and takes about half a second. Run it under the load that the machine has when it
/// measures. Exit code 4 says that something is missing altogether.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Network interface to examine too: offloads, interrupt coalescing
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    #[command(flatten)]
    print: PrintArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let machine = Machine::examine(args.interface.as_deref());
    if let Some(Err(error)) = &machine.interface {
        return Err(Exit::Usage.blame(anyhow!("{error}; name an interface from `ip link`")));
    }
    let findings = machine.findings();
    args.print.show(&to_json(&machine, &findings), &to_text(&findings))?;
    let missing = findings.iter().any(|f| f.verdict == Verdict::Missing);
    Ok(missing.then_some(Exit::Machine))
}

fn to_text(findings: &[Finding]) -> Text {
    let mut table = Table::new(&["check", "verdict", "found"]);
    for f in findings {
        table.row([f.name.to_owned(), f.verdict.to_string(), f.found.clone()]);
    }
    let mut text = Text::from(table);
    let mut advice = findings.iter().filter_map(|f| Some((f, f.advice.as_deref()?))).peekable();
    text.say(if advice.peek().is_some() { "\nAdvice:" } else { "\nNothing to change." });
    for (f, advice) in advice {
        text.say(format!("  {}: {advice}", f.name));
    }
    text
}

fn to_json(machine: &Machine, findings: &[Finding]) -> Value {
    let lateness = |l: &Lateness| json!({ "n": l.n, "p50_ns": l.p50, "p99_ns": l.p99, "worst_ns": l.worst });
    let finding = |f: &Finding| json!({ "name": f.name, "verdict": f.verdict.to_string(), "found": f.found, "advice": f.advice });
    json!({
        "kernel": machine.kernel,
        "cores": machine.cores,
        "load": machine.load,
        "realtime": machine.realtime,
        "lateness": lateness(&machine.lateness),
        "lateness_realtime": machine.lateness_realtime.as_ref().map(lateness),
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(verdict: Verdict, advice: Option<&str>) -> Finding {
        Finding { name: "tun", verdict, found: "it is so".into(), advice: advice.map(Into::into) }
    }

    #[test]
    fn advice_stands_below_the_table() {
        let text = to_text(&[finding(Verdict::Missing, Some("modprobe tun"))]);
        assert_eq!(
            text.to_string(),
            "check  verdict  found\ntun    missing  it is so\n\nAdvice:\n  tun: modprobe tun\n"
        );
        assert!(to_text(&[finding(Verdict::Good, None)]).to_string().ends_with("\nNothing to change.\n"));
    }

    #[test]
    fn json_has_lateness_and_findings() {
        let machine = Machine::examine(None);
        let value = to_json(&machine, &[finding(Verdict::Limited, Some("x"))]);
        assert_eq!(value["lateness"]["n"], 200);
        assert_eq!(value["findings"][0]["verdict"], "limited");
        assert_eq!(value["lateness_realtime"].is_null(), !machine.realtime);
    }
}
