//! Media streams, a row each.

use lastmile_sim::roles::stream::Found;
use lastmile_sim::runs::flows::as_rate;
use serde_json::json;

use super::Shown;
use crate::table::Table;

pub(super) fn shown(found: &Found) -> Shown {
    let mut table = Table::new(&[
        "stream",
        "from",
        "to",
        ">goodput (IP)",
        ">sent",
        ">received",
        "lost",
        ">delay",
        ">longest",
        ">jitter",
        ">marked",
        ">feedback",
    ]);
    let milliseconds =
        |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |s| format!("{:.2} ms", s * 1e3));
    for stream in &found.outcomes {
        let lost: Vec<_> = stream.lost.iter().map(|(cause, packets)| format!("{packets} {cause}")).collect();
        table.row([
            stream.stream.clone(),
            stream.from.clone(),
            stream.to.clone(),
            stream.goodput_bps.map_or_else(|| "-".to_owned(), |bps| as_rate(bps).to_string()),
            stream.sent.to_string(),
            stream.received.to_string(),
            if lost.is_empty() { "-".to_owned() } else { lost.join(", ") },
            milliseconds(stream.delay_mean_s),
            milliseconds(stream.delay_max_s),
            milliseconds(stream.jitter_s),
            stream.ecn_marked.to_string(),
            lastmile::units::Bytes(stream.feedback_bytes).to_string(),
        ]);
    }
    let table = (!found.outcomes.is_empty()).then(|| table.text());
    Shown { key: "streams", rows: json!(found.outcomes), table }
}
