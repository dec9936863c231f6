//! Estimation tools beside their original programs, on one link whose truth is known: the table of docs/validation.md.

#[path = "../../lastmile/tests/documents/mod.rs"]
mod documents;

use std::fmt::Write;

use lastmile_study::Audience;
use lastmile_study::accuracy::{Cross, Request, Row, accuracy};

const BEGIN: &str =
    "<!-- Estimation tools, by `LASTMILE_UPDATE_DOCS=1 cargo test -p lastmile-study --test tools` -->\n";
const END: &str = "<!-- End of estimation tools -->\n";
/// Runs of a row.
const RUNS: usize = 30;

/// Methods, what their originals said in Mbit/s on a serialiser of 10 (idle, under 4 of CBR and of Poisson; at IP and 14 bytes a packet), and the furthest
/// that a median under CBR may be from the truth, as a share; none where the tool may miss.
const TOOLS: [(&str, [&str; 3], Option<f64>); 16] = [
    ("dispersion", ["", "", ""], Some(0.1)),
    ("dispersion(by=mode)", ["", "", ""], Some(0.1)),
    ("dispersion(by=kernel)", ["", "", ""], Some(0.1)),
    ("capprobe", ["", "", ""], Some(0.1)),
    ("spruce", ["9.46 to 9.93", "5.66 to 5.97", "4.75 to 6.52"], Some(0.34 / 6.0)),
    ("spruce(faithful=true)", ["", "", ""], None),
    ("igi", ["9.1", "4.7 to 5.3", "5.2 to 5.3"], None),
    ("igi(search=binary, trains=1)", ["", "", ""], None),
    ("ptr", ["9.1", "3.7", "2.1 to 3.2"], None),
    ("ptr(search=binary, trains=1)", ["", "", ""], None),
    ("topp", ["", "", ""], Some(0.1)),
    ("diettopp", ["9.81", "8.67", "8.04"], None),
    ("diettopp(faithful=true)", ["", "", ""], None),
    ("pathload", ["9.38", "5.58 to 5.74", "6.5 to 7.45"], Some(0.42 / 6.0)),
    ("pathchirp", ["10.7", "9.0 to 9.7", ""], None),
    ("wbest", ["", "", ""], Some(0.059)),
];

fn mbit(rate: Option<f64>) -> String {
    rate.map_or_else(String::new, |rate| format!("{:.2}", rate / 1e6))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!("{:.1} %", 100.0 * share))
}

fn line(row: &Row, original: &str) -> String {
    let cross = format!("{:?}", row.cross.unwrap_or(Cross::Idle)).to_lowercase();
    format!(
        "| `{}` | {cross} | {} | {} | {} | {} | {} | {} | {} | {:.1} | {:.0} | {original} |",
        row.asked,
        row.n,
        mbit(row.rate_p50_bps),
        mbit(row.truth_p50_bps),
        percent(row.error_window_p50),
        percent(row.error_window_p90),
        percent(row.error_next_p50),
        percent(row.floor_next_p50),
        row.seconds_p50.unwrap_or_default(),
        row.bytes_p50.unwrap_or_default() / 1e3,
    )
}

#[test]
fn medians_are_right_and_the_page_has_them() {
    let methods = TOOLS.iter().map(|(method, ..)| method.parse().unwrap()).collect();
    let rows =
        accuracy(&Request { runs: RUNS, methods, ..Request::default() }, &Audience::default()).unwrap();
    let mut table = "\n| method | others | n | median | truth | error | P90 | next 10 s | floor | s | kB | the original |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n".to_owned();
    for (tool, originals, most) in TOOLS {
        for (cross, original) in [Cross::Idle, Cross::Cbr, Cross::Poisson].into_iter().zip(originals) {
            let of = |row: &&Row| row.asked == tool && row.cross == Some(cross);
            let row = rows.iter().find(of).unwrap();
            writeln!(table, "{}", line(row, original)).unwrap();
            let (median, truth) = (row.rate_p50_bps.unwrap(), row.truth_p50_bps.unwrap());
            // The originals' quirks are theirs: rates of payload, 1472 B taken for 1500.
            let most = if cross == Cross::Idle { Some(0.1) } else { most.filter(|_| cross == Cross::Cbr) };
            let off = (median / truth - 1.0).abs();
            assert!(most.is_none_or(|most| off <= most), "{tool}, {cross:?}: {median} of {truth}");
            // The original sent 2.1 to 2.4 MB.
            let sent = row.bytes_p50.unwrap();
            let is_dear = tool == "pathload" && (row.refused > RUNS / 30 || sent > 2.4e6);
            assert!(!is_dear, "{tool}, {cross:?}: {sent} bytes, {} refused", row.refused);
        }
    }
    let page = include_str!("../../../docs/validation.md");
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let page = [head, BEGIN, &table, "\n", END, tail].concat();
    documents::hold(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validation.md"), &page);
}
