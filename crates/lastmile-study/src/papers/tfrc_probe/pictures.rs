//! Figures 1 and 2: fates of pairs, and their departures.

use std::sync::{Arc, Mutex, PoisonError};

use lastmile::node::Input;
use lastmile::time::{Span, Time};
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::{Hooks, Recorded, simulate};

use super::PAPER;
use super::cases::{self, Link, NS2, PACKET};
use crate::papers::results::Results;
use lastmile_report::Mean;
use lastmile_report::table::{Cell, Chart, Table};

/// Figure 1's three pairs, by what happens to them.
pub(super) const PAIRS: [&str; 3] = ["alone", "expansion", "compression"];

/// Figure 1: P over the dispersion is the rate of the narrow link, 1 Mbit/s, of the pair whose delays are least.
pub(super) fn pairs(results: &Results) -> Table {
    let mut table =
        Table::new(&["pair", "first_ms", "second_ms", "dispersion_ms", "delay_sum_ms", "capacity_kbps"]);
    for name in PAIRS {
        let of = |what| Some(results.mean(&cases::pair(name), what)?.mean);
        let both = of("first_ms").zip(of("second_ms"));
        let cells = [
            of("first_ms"),
            of("second_ms"),
            both.map(|(first, second)| second - first),
            both.map(|(first, second)| first + second),
            both.map(|(first, second)| 8.0 * PACKET / (second - first)),
        ];
        table.row([Cell::from(name)].into_iter().chain(cells.map(|ours| Cell::Exact(ours, None))));
    }
    table
}

/// Packets of figure 2, once the rate is steady.
const SHOWN: std::ops::Range<usize> = 300..345;

/// Figure 2: TFRC's packets leave evenly; of TFRC Probe's every twentieth has the next one at its heels.
pub(super) fn departures() -> Table {
    let mut table = Table::new(&["controller", "packets", "median_gap_ms", "back_to_back"]);
    let mut lines = Vec::new();
    for (name, control) in [("TFRC", NS2.to_owned()), ("TFRC Probe", format!("{NS2}+probe(full_size=true)"))]
    {
        let left = left(&control).unwrap_or_default();
        let shown = left.get(SHOWN).unwrap_or_default();
        let mut gaps: Vec<f64> = shown.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let median = gaps.get(gaps.len() / 2).copied();
        let close = gaps.iter().filter(|gap| **gap < 0.1 * median.unwrap_or(0.0)).count();
        table.row([
            Cell::from(name),
            Cell::Count(shown.len()),
            Cell::Exact(median, None),
            Cell::Count(close),
        ]);
        let first = shown.first().copied().unwrap_or(0.0);
        let point = |(k, at): (usize, &f64)| (at - first, Mean::exactly(k as f64));
        lines.push((name.to_owned(), shown.iter().enumerate().map(point).collect()));
    }
    table.chart(Chart::new("Departures over DSL of 2 Mbit/s", "time, ms", "packet", lines));
    table
}

/// When the packets of a stream over DSL left, in ms.
fn left(control: &str) -> Option<Vec<f64>> {
    let case = Link::DslDown.case().set("stream.flow.control", control).set("duration", "10 s");
    let scenario = PAPER.scenario(&case).ok()?;
    let left = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&left);
    let recorded = Recorded {
        which: 0,
        config: Box::new(|_, _| {}),
        input: Box::new(move |_, input| {
            if let Input::Sent { at, .. } = input {
                let at = 1e3 * (*at - Time::ZERO).as_secs_f64();
                told.lock().unwrap_or_else(PoisonError::into_inner).push(at);
            }
        }),
    };
    let hooks = Hooks { recorded: Some(recorded), ..Hooks::default() };
    simulate(&scenario, 1, &Makers::registered(Span::ZERO, 1), hooks).ok()?;
    let left = left.lock().unwrap_or_else(PoisonError::into_inner);
    Some(left.clone())
}
