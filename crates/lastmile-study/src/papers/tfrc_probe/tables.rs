//! The tables and figures, from what runs left.

use toml::Value;

use super::cases::{self, FORWARD, HAND_OFFS, LOADS, Link, Load, OF_ONE_RUN, SAMPLES, shortest_exchange};
use super::figures;
use super::measure::{FOLLOWED, NOTICED};
use crate::papers::results::Results;
use crate::papers::{Case, Item, Number, each};
use lastmile_report::Mean;
use lastmile_report::table::{Cell, Chart, Line, Table};

/// The runs of table 2 under a load at a rate: TFRC Probe's, and CapProbe's.
pub(super) fn probed((load, kbps): (Load, u32)) -> Vec<Case> {
    let probe = SAMPLES.map(|samples| cases::table_2(load, kbps, samples));
    [&probe[..], &[cases::capprobe(load, kbps)]].concat()
}

/// Table 2, in kbit/s.
pub(super) fn asymmetric(results: &Results) -> Table {
    let columns =
        ["cross_traffic", "samples", "forward_kbps", "tfrc_probe_kbps", "capprobe_kbps", "capprobe_runs"];
    let mut table = Table::new(&columns);
    for ((load, samples), kbps) in each(&each(&LOADS, &SAMPLES), &FORWARD) {
        let probe = results.mean(&cases::table_2(load, kbps, samples), "capacity_1");
        let capprobe = results.mean(&cases::capprobe(load, kbps), "capprobe");
        table.row([
            Cell::from(load.name()),
            Cell::from(samples.to_string()),
            Cell::from(kbps.to_string()),
            (probe, Some(f64::from(kbps))).into(),
            (capprobe, Some(100.0)).into(),
            Cell::from(capprobe.map_or(0, |capprobe| capprobe.n).to_string()),
        ]);
    }
    table
}

/// The paper's value for a link after so many samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Printed {
    /// The medians of its five runs, in kbit/s and s.
    pub(super) capacity: f64,
    pub(super) seconds: f64,
    /// Number of them within a tenth of the capacity for pairs.
    pub(super) near: usize,
}

/// Its five runs, as far as a table has that link.
pub(super) fn printed(link: Link, samples: u32) -> Option<Printed> {
    let figures = figures();
    let name = link.name();
    let of = |found: &&Value| found.get("link").and_then(Value::as_str) == Some(name.as_str());
    let row = OF_ONE_RUN.iter().position(|&row| row == samples)?;
    let tables = ["table_3", "table_4"].into_iter().filter_map(|table| figures.get(table)?.as_array());
    let found = tables.flatten().find(of)?;
    let row = found.get("rows")?.as_array()?.get(row)?.as_array()?;
    let number = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
    let all: Vec<f64> = row.iter().filter_map(number).collect();
    let every_other = |first: usize| all.iter().skip(first).step_by(2).copied().collect::<Vec<f64>>();
    let capacities: Vec<f64> = every_other(0).iter().map(|mbps| 1e3 * mbps).collect();
    let near = capacities.iter().filter(|kbps| is_near(**kbps, link)).count();
    Some(Printed {
        capacity: Mean::of(&capacities)?.median,
        seconds: Mean::of(&every_other(1))?.median,
        near,
    })
}

/// Within a tenth of what a pair can tell.
fn is_near(kbps: f64, link: Link) -> bool {
    (kbps / link.truth() - 1.0).abs() <= 0.1
}

/// The names of what is known after so many samples, in windows of ten.
pub(super) fn after(samples: u32) -> (&'static str, &'static str) {
    match samples {
        20 => ("capacity_2", "time_2"),
        50 => ("capacity_5", "time_5"),
        _ => ("capacity_10", "time_10"),
    }
}

/// Number of runs in which a link's capacity is within a tenth of the truth, and of runs with so many samples: stamps may be too
/// coarse for a capacity.
pub(super) fn near(results: &Results, case: &Case, link: Link, samples: u32) -> (usize, usize) {
    let (capacity, time) = after(samples);
    let found = results.values(case, capacity);
    let near = found.iter().filter(|found| is_near(**found, link)).count();
    (near, results.values(case, time).len())
}

/// Tables 3 and 4.
pub(super) fn access(
    id: &'static str,
    number: impl Into<Option<Number>>,
    shows: &'static str,
    links: &[Link],
    case: fn(Link) -> Case,
) -> Item {
    let rows = each(links, &OF_ONE_RUN);
    Item::made(id, number, shows, links.iter().copied().map(case).collect(), move |results| {
        let columns = ["link", "samples", "truth_kbps", "capacity_kbps", "runs_within_a_tenth", "time_s"];
        let mut table = Table::new(&columns);
        for &(link, samples) in &rows {
            let (case, (capacity, time), paper) = (case(link), after(samples), printed(link, samples));
            let (near, runs) = near(results, &case, link, samples);
            table.row([
                Cell::from(link.name()),
                Cell::from(samples.to_string()),
                Cell::Exact(Some(link.truth()), None),
                (results.mean(&case, capacity), paper.map(|paper| paper.capacity)).into(),
                Cell::from(format!("{near} of {runs}")),
                (results.mean(&case, time), paper.map(|paper| paper.seconds)).into(),
            ]);
        }
        table
    })
}

/// A line of a case's first run.
fn line(results: &Results, name: &str, case: &Case, what: &str) -> Line {
    (name.to_owned(), results.line(case, what))
}

/// The modes that figure 4 goes through, with when it does, in kbit/s and s.
const MODES: [(u32, u32); 5] = [(50, 2_000), (100, 5_500), (150, 11_000), (200, 5_500), (250, 2_000)];
/// The mode before them, and when the run ends.
const FIRST_MODE: u32 = 1_000;
const END: u32 = 300;

/// Figure 4.
pub(super) fn modes(results: &Results, case: &Case) -> Table {
    let mut table = Table::new(&[
        "at_s",
        "mode_kbps",
        "followed_runs",
        "after_s",
        "estimate_kbps",
        "of_1500_b_kbps",
        "size_b",
    ]);
    for ((at, mode), (name, told, size)) in MODES.into_iter().zip(FOLLOWED) {
        let followed = results.values(case, name).len() as f64;
        table.row([
            Cell::from(at.to_string()),
            Cell::from(mode.to_string()),
            Cell::Exact(Some(followed), None),
            results.mean(case, name).into(),
            results.mean(case, told).into(),
            Cell::Exact(Some(shortest_exchange(1_500.0, f64::from(mode))), None),
            results.mean(case, size).into(),
        ]);
    }
    // The truth: a step at each change, from the mode of the beginning on.
    let modes = std::iter::once((0, FIRST_MODE)).chain(MODES).collect::<Vec<_>>();
    let ends = modes.iter().skip(1).map(|(at, _)| *at).chain([END]);
    let truth = modes.iter().zip(ends).flat_map(|(&(from, mode), to)| {
        let carries = Mean::exactly(shortest_exchange(1_500.0, f64::from(mode)));
        [(f64::from(from), carries), (f64::from(to), carries)]
    });
    let truth = ("mode, in packets of 1500 B".to_owned(), truth.collect());
    let lines = vec![line(results, "estimate", case, "estimate"), line(results, "sent", case, "rate"), truth];
    table.chart(Chart::new("802.11b in its modes", "time, s", "kbit/s", lines));
    let lines = vec![line(results, "size", case, "size")];
    table.chart(Chart::new("Size of packets", "time, s", "B", lines));
    table
}

/// Figure 6.
pub(super) fn hand_offs(results: &Results, of: &dyn Fn(&str) -> Case) -> Table {
    let mut table = Table::new(&[
        "fast_rate_adaptation",
        "window_s",
        "noticed_up_s",
        "windows_up",
        "rate_before_kbps",
        "rise_in_10_s",
        "noticed_down_s",
        "standing_ms",
    ]);
    let [up, down] = NOTICED;
    for (name, wrapper) in HAND_OFFS {
        let case = of(wrapper);
        let shown = ["window_s", up.0, up.1, "rate_before", "rise", down.0, "standing_ms"];
        table.row([Cell::from(name)].into_iter().chain(shown.map(|what| results.mean(&case, what).into())));
        let lines = vec![line(results, "sent", &case, "rate"), line(results, "estimate", &case, "estimate")];
        let chart = Chart::new(format!("{name} fast rate adaptation"), "time, s", "kbit/s", lines);
        table.chart(chart.stated([(1_900.0, "paper: sent, with")]));
    }
    let over = results.difference(&of(HAND_OFFS[0].1), &of(HAND_OFFS[1].1), "rise");
    let empty = (0..4).map(|_| Cell::from(""));
    let rest = (0..2).map(|_| Cell::from(""));
    table.row([Cell::from("with, less without")].into_iter().chain(empty).chain([over.into()]).chain(rest));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_numbers_are_found_by_their_links() {
        // Of 92.18, 94.92, 94.25, 107.99, 94.07 and 5.5, 5.5, 5.6, 5.5, 5.6. 107.99 is 12 % above 96.3, which IP packets can have.
        let ethernet = Printed { capacity: 94_250.0, seconds: 5.5, near: 4 };
        assert_eq!(printed(Link::Ethernet, 20), Some(ethernet));
        // Of 0.114, 0.122, 0.115, 0.110 and 0.119 two are 0.1152 or more.
        assert_eq!(printed(Link::DslUp, 20).map(|printed| printed.near), Some(2));
        for link in cases::WIRED.into_iter().chain(cases::WIRELESS) {
            assert!(printed(link, 100).is_some(), "{link:?}");
        }
    }
}
