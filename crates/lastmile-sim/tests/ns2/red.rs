//! TFRC beside SACK TCP over RED, 4 Mbit/s and 80 ms: TFRC's share of what the link carried in 200 s.

use crate::rows::{Mean, Rows};
use crate::{FORMS, LAWS, no_ns2, ns2, ours, seeds};

const SECONDS: u32 = 200;

#[test]
#[ignore = "needs ns-2 and minutes: make ns2"]
fn ns2_red() {
    if no_ns2() {
        return;
    }
    let mut rows = Rows::new(
        "make ns2: red",
        "| of each, ACKs | ns-2, t_RTO = 4R | `tfrc(form=receiver)` | `tfrc` | ns-2 | the preset, `form=receiver` | the preset |",
    );
    let mut far = Vec::new();
    for flows in ["1", "4", "16"] {
        for acks in ["plain", "delayed"] {
            let name = format!("{flows}, {acks}");
            if !rows.wants(&name) {
                continue;
            }
            let mut row = vec![name.clone()];
            for (timeout, options) in LAWS {
                let share = |seed| ns2("red.tcl", &format!("{flows} {acks} {timeout} {SECONDS} {seed}"));
                let theirs = Mean::of(&seeds(rows.runs(), share), 1);
                row.push(theirs.to_string());
                for form in FORMS {
                    let control = format!("tfrc(form={form}{options})");
                    let set = [
                        ("stream.tfrc.control", control.as_str()),
                        ("stream.tfrc.count", flows),
                        ("traffic.tcp.count", flows),
                        ("traffic.tcp.tcp.delayed_ack", if acks == "plain" { "0 s" } else { "100 ms" }),
                    ];
                    let share = |seed| {
                        let run = ours(include_str!("red.toml"), &set, seed);
                        let received: u64 =
                            run.found.stream.outcomes.iter().map(|stream| stream.received).sum();
                        100.0 * received as f64 / run.network.links[0].packets as f64
                    };
                    let mean = Mean::of(&seeds(rows.runs(), share), 1);
                    let off = mean.mean - theirs.mean;
                    if off.abs() > 2.0 {
                        far.push(format!("`{control}` in \"{name}\""));
                    }
                    row.push(format!("{mean} ({off:+.1})"));
                }
            }
            rows.row(&row);
        }
    }
    rows.note(match far.is_empty() {
        true => "All within two points.".to_owned(),
        false => format!("Further away than two points: {}.", far.join("; ")),
    });
    rows.end();
}
