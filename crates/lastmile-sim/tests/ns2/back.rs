//! TFRC beside four FTPs over figure 3 of the TFRC Probe paper, whose way back is slow: what it sends in 200 s.

use crate::rows::{Mean, Rows};
use crate::{no_ns2, ns2, ours, seeds};

const SECONDS: u32 = 200;

#[test]
#[ignore = "needs ns-2 and minutes: make ns2"]
fn ns2_back() {
    if no_ns2() {
        return;
    }
    let head = "| forward, back | ns-2 | ns-2, `NumFeedback_ 4` | the preset, `form=receiver` | the preset | `tfrc` |";
    let mut rows = Rows::new("make ns2: back", head);
    for forward in [5, 10] {
        for back in [100, 10_000] {
            let name = format!("{forward} Mbit/s, {back} kbit/s");
            if !rows.wants(&name) {
                continue;
            }
            let theirs = |messages: u32| {
                let rate = |seed| ns2("back.tcl", &format!("{forward} {back} {messages} {SECONDS} {seed}"));
                Mean::of(&seeds(rows.runs(), rate), 0).to_string()
            };
            let links = [format!("{forward} Mbit/s"), format!("{back} kbit/s")];
            let own = |control: &str| {
                let set = [
                    ("stream.tfrc.control", control),
                    ("link.0.rate", links[0].as_str()),
                    ("link.0.back.rate", links[1].as_str()),
                ];
                let rate = |seed| {
                    let run = ours(include_str!("back.toml"), &set, seed);
                    run.found.stream.outcomes[0].sent as f64 * 8.0 / f64::from(SECONDS)
                };
                Mean::of(&seeds(rows.runs(), rate), 0).to_string()
            };
            rows.row(&[
                name,
                theirs(1),
                theirs(4),
                own("tfrc(form=receiver, preset=ns-2, header=0)"),
                own("tfrc(preset=ns-2, header=0)"),
                own("tfrc"),
            ]);
        }
    }
    rows.end();
}
