//! Two rate controllers over three shares of lost packets: video on a link of 4 Mbit/s.
#![expect(clippy::print_stdout, reason = "a program prints what it found")]
use lastmile_report::{rows::cell, text::Table};
use lastmile_study::sweep::{Parameter, Sweep, rows};

const SCENARIO: &str = r#"
name = "lossy"
duration = "20 s"
[host.camera]
[host.viewer]
[[link]]
from = "camera"
to = "viewer"
rate = "4 Mbit/s"
delay = "25 ms"
queue = "25 kB"
losses = [{ name = "air", model = { kind = "bernoulli", rate = 0.0 } }]
back = { losses = [] }
[[stream]]
name = "video"
from = "camera"
to = "viewer"
control = "tfrc"
receipt_times = true
"#;

fn main() -> lastmile_study::Result<()> {
    let controllers = Parameter::new("stream.video.control", ["tfrc", "tfrc+zbs"]);
    let losses = Parameter::new("link.0.losses.air.model.rate", ["0.0", "0.01", "0.03"]);
    let sweep = Sweep { parameters: vec![controllers, losses], seeds: vec![1] };
    let shown = ["stream.video.control", "link.0.losses.air.model.rate", "goodput_bps", "mc", "mw"];
    let mut table = Table::new(&["controller", ">lost", ">goodput", ">mc", ">mw"]);
    for row in rows("lossy.toml", SCENARIO, &sweep, &lastmile_study::Audience::default())? {
        if row["row"] == "stream" {
            table.row(shown.map(|key| cell(key, &row[key])));
        }
    }
    println!("{}", table.text());
    Ok(())
}
