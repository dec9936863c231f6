//! TFRC alone over independent losses: its packets in 200 s, from the start on.

use crate::rows::{Mean, Rows};
use crate::{FORMS, LAWS, no_ns2, ns2, ours, seeds};

const SECONDS: u32 = 200;

#[test]
#[ignore = "needs ns-2 and minutes: make ns2"]
fn ns2_grid() {
    if no_ns2() {
        return;
    }
    let mut rows = Rows::new(
        "make ns2: grid",
        "| round trip, loss | ns-2, t_RTO = 4R | `tfrc(form=receiver)` | `tfrc` | ns-2 | the preset, `form=receiver` | the preset |",
    );
    let (mut cells, mut within) = (0, [0; 4]);
    for rtt in [20, 50, 100, 200] {
        for (loss, bar) in [("0.003", 6.0), ("0.01", 6.0), ("0.05", 6.0), ("0.15", 15.0)] {
            let name = format!("{rtt} ms, {loss}");
            if !rows.wants(&name) {
                continue;
            }
            cells += 1;
            let mut row = vec![name];
            for (law, (timeout, options)) in LAWS.into_iter().enumerate() {
                let rate = |seed| ns2("grid.tcl", &format!("{rtt} {loss} {timeout} {SECONDS} {seed}"));
                let theirs = Mean::of(&seeds(rows.runs(), rate), 0);
                row.push(theirs.to_string());
                for (at, form) in FORMS.into_iter().enumerate() {
                    let control = format!("tfrc(form={form}{options})");
                    let set = [
                        ("stream.0.control", control.as_str()),
                        ("link.0.losses.0.model.rate", loss),
                        ("link.0.delay", &format!("{} us", 500 * rtt)),
                    ];
                    let rate = |seed| {
                        let run = ours(include_str!("grid.toml"), &set, seed);
                        run.found.stream.outcomes[0].sent as f64 * 8.0 / f64::from(SECONDS)
                    };
                    let mean = Mean::of(&seeds(rows.runs(), rate), 0);
                    let off = 100.0 * (mean.mean / theirs.mean - 1.0);
                    within[2 * law + at] += u32::from(off.abs() <= bar);
                    let far = if off.abs() <= bar { "" } else { ", far" };
                    row.push(format!("{mean} ({off:+.1} %{far})"));
                }
            }
            rows.row(&row);
        }
    }
    let [rfc_receiver, rfc, receiver, sender] = within;
    rows.note(format!(
        "Within 6 % (15 % at a loss of 0.15), of {cells}: {rfc_receiver}, {rfc}, {receiver} and {sender}."
    ));
    rows.end();
}
