//! The rows as a table for people.

use lastmile::units::{Bytes, Rate};
use lastmile_report::text::{Table, Text};

use super::Row;

/// The rows as a table.
pub fn text(rows: &[Row]) -> Text {
    let shared = rows.iter().any(|row| row.saturation_p50_bps.is_some());
    let mut columns = vec![
        "world",
        "path",
        "method",
        "~direction",
        ">n",
        ">refused",
        "~>seconds",
        "~>probes",
        "~>requests",
    ];
    columns.extend([
        "~>rate",
        "~>truth",
        "~>mean p50",
        "~>p90",
        "~>floor",
        "~>next p50",
        "~>p90",
        "~>floor",
        ">window p50",
        ">p90",
        "~>bias",
        "~>worst/C",
        ">coverage",
        ">next 10 s",
    ]);
    if shared {
        columns.extend([">saturation", ">error"]);
    }
    let lab = rows.iter().any(|row| row.moved_most.is_some());
    if lab {
        columns.extend([">moved", ">simulated"]);
    }
    let mut table = Table::new(&columns);
    let percent = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{:.1} %", x * 100.0));
    let size = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| Bytes(x as u64).to_string());
    let rate = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| Rate::ip(x as u64).to_string());
    let name = |row: &Row| match (&row.scenario, row.rate_mbps, row.cross) {
        (None, Some(mbps), Some(cross)) => format!("{mbps} Mbit/s {}", format!("{cross:?}").to_lowercase()),
        (name, ..) => name.clone().unwrap_or_default(),
    };
    for row in rows {
        let mut cells = vec![
            format!("{:?}", row.world).to_lowercase(),
            name(row),
            row.asked.clone(),
            row.direction.map_or_else(|| "-".to_owned(), |direction| direction.to_string()),
            row.n.to_string(),
            row.refused.to_string(),
            row.seconds_p50.map_or_else(|| "-".to_owned(), |s| format!("{s:.2}")),
            size(row.bytes_p50),
            size(row.control_bytes_p50),
            rate(row.rate_p50_bps),
            rate(row.truth_p50_bps),
            percent(row.error_mean_p50),
            percent(row.error_mean_p90),
            percent(row.floor_mean_p50),
            percent(row.error_next_p50),
            percent(row.error_next_p90),
            percent(row.floor_next_p50),
            percent(row.error_window_p50),
            percent(row.error_window_p90),
            percent(row.bias_window_p50),
            percent(row.error_worst_of_capacity),
            percent(row.coverage),
            percent(row.coverage_next),
        ];
        if shared {
            cells.extend([rate(row.saturation_p50_bps), percent(row.error_saturation_p50)]);
        }
        if lab {
            cells.extend([percent(row.moved_most), percent(row.moved_simulated_most)]);
        }
        table.row(cells);
    }
    let mut text = Text::default();
    text.table(table);
    for row in rows {
        for why in &row.reasons {
            text.say(format!("{:?} {} {}: {why}", row.world, name(row), row.method));
        }
    }
    text.say(
        "Rates and truths at the IP layer, medians; the window's truth is stated for packets of the probe's size.\n\
         window: the median error and its 90th percentile against that truth.\n\
         coverage: intervals that hold the truth of the probe's own window; next 10 s: those of the next 10 s that hold theirs.\n\
         floor: the median error, against the same truth, of an observer of all other packets in the probe's own window.",
    );
    if lab {
        text.say(
            "moved: the furthest, as a share of the capacity, that the lab's lateness moved a number that is not refused; \
             simulated: the same in virtual time, where probes enter when they did and when they were due.",
        );
    }
    if shared {
        text.say("saturation: the rate of one saturating flow over the WLAN. An error is missing where its truth is zero.");
    }
    text
}
