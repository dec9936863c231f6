//! The tables and figures, from what runs left.

use toml::Value;

use super::cases::{self, FORWARD, HAND_OFFS, LOADS, Link, OF_ONE_RUN, SAMPLES, shortest_exchange};
use super::measure::{FOLLOWED, LAST, MOST, NOTICED};
use super::{INCREASES, LOADED, figures};
use crate::papers::paper::Case;
use crate::papers::results::Results;
use lastmile_report::Mean;
use lastmile_report::table::{Cell, Chart, Table};

/// Table 1.
pub(super) fn loads(results: &Results) -> Table {
    let mut table = Table::new(&["cross_traffic", "share_percent"]);
    for load in &LOADS[1..] {
        let paper = (*load != cases::Load::Ftp).then_some(80.0);
        let share = results.mean(&cases::table_2(*load, LOADED, SAMPLES[0]), "load");
        table.row([Cell::from(load.name()), (share, paper).into()]);
    }
    table
}

/// Table 2, in kbit/s.
pub(super) fn asymmetric(results: &Results) -> Table {
    let columns =
        ["cross_traffic", "samples", "forward_kbps", "tfrc_probe_kbps", "capprobe_kbps", "capprobe_runs"];
    let mut table = Table::new(&columns);
    for load in LOADS {
        for samples in SAMPLES {
            for kbps in FORWARD {
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
        }
    }
    table
}

/// Table 2 without CapProbe.
pub(super) fn fast_access(results: &Results) -> Table {
    let mut table = Table::new(&["cross_traffic", "samples", "forward_kbps", "tfrc_probe_kbps"]);
    for (load, samples) in LOADS.into_iter().flat_map(|load| SAMPLES.map(|samples| (load, samples))) {
        for kbps in FORWARD {
            let case = cases::with_fast_access(cases::table_2(load, kbps, samples));
            let head = [load.name().to_owned(), samples.to_string(), kbps.to_string()];
            let probe = (results.mean(&case, "capacity_1"), Some(f64::from(kbps)));
            table.row(head.map(Cell::from).into_iter().chain([probe.into()]));
        }
    }
    table
}

/// What the paper has of a link after so many samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Printed {
    /// The medians of its five runs, in kbit/s and s.
    pub(super) capacity: f64,
    pub(super) seconds: f64,
    /// How many of them are within a tenth of what a pair can tell.
    pub(super) near: usize,
}

/// Its five runs, as far as the table has that link.
pub(super) fn printed(table: &str, link: &Link, samples: u32) -> Option<Printed> {
    let figures = figures();
    let name = link.name();
    let of = |found: &&Value| found.get("link").and_then(Value::as_str) == Some(name.as_str());
    let row = OF_ONE_RUN.iter().position(|&row| row == samples)?;
    let found = figures.get(table)?.as_array()?.iter().find(of)?;
    let row = found.get("rows")?.as_array()?.get(row)?.as_array()?;
    let number = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
    let all: Vec<f64> = row.iter().filter_map(number).collect();
    let every_other = |first: usize| all.iter().skip(first).step_by(2).copied().collect::<Vec<f64>>();
    let capacities: Vec<f64> = every_other(0).iter().map(|mbps| 1e3 * mbps).collect();
    let near = capacities.iter().filter(|kbps| is_near(**kbps, *link)).count();
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

/// The runs in which a link's capacity is within a tenth of the truth, and how many had so many samples: stamps may be too coarse
/// for a capacity.
pub(super) fn near(results: &Results, case: &Case, link: Link, samples: u32) -> (usize, usize) {
    let (capacity, time) = after(samples);
    let found = results.values(case, capacity);
    let near = found.iter().filter(|found| is_near(**found, link)).count();
    (near, results.values(case, time).len())
}

/// Tables 3 and 4 without rows.
pub(super) fn access_table() -> Table {
    Table::new(&["link", "samples", "truth_kbps", "capacity_kbps", "runs_within_a_tenth", "time_s"])
}

/// Tables 3 and 4.
pub(super) fn access(
    results: &Results,
    of: &str,
    links: &[Link],
    case: &dyn Fn(Link) -> Case,
    table: &mut Table,
) {
    for link in links {
        let case = case(*link);
        for samples in OF_ONE_RUN {
            let (capacity, time) = after(samples);
            let paper = printed(of, link, samples);
            let (near, runs) = near(results, &case, *link, samples);
            table.row([
                Cell::from(link.name()),
                Cell::from(samples.to_string()),
                Cell::Exact(Some(link.truth()), None),
                (results.mean(&case, capacity), paper.map(|paper| paper.capacity)).into(),
                Cell::from(format!("{near} of {runs}")),
                (results.mean(&case, time), paper.map(|paper| paper.seconds)).into(),
            ]);
        }
    }
}

/// A line of a case's first run.
fn line(results: &Results, name: &str, case: &Case, what: &str) -> (String, Vec<(f64, Mean)>) {
    (name.to_owned(), results.line(case, what))
}

/// The modes that figure 4 goes through, with when it does, in kbit/s and s.
const MODES: [(u32, u32); 5] = [(50, 2_000), (100, 5_500), (150, 11_000), (200, 5_500), (250, 2_000)];

/// Figure 4.
pub(super) fn modes(results: &Results) -> Table {
    let case = Case::new("modes");
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
        let followed = results.values(&case, name).len() as f64;
        table.row([
            Cell::from(at.to_string()),
            Cell::from(mode.to_string()),
            Cell::Exact(Some(followed), None),
            results.mean(&case, name).into(),
            results.mean(&case, told).into(),
            Cell::Exact(Some(shortest_exchange(1_500.0, f64::from(mode))), None),
            results.mean(&case, size).into(),
        ]);
    }
    let (x, stated) = ("time, s", Vec::new());
    let lines = vec![line(results, "estimate", &case, "estimate"), line(results, "sent", &case, "rate")];
    let title = "802.11b in five modes".to_owned();
    table.chart(Chart { title, x, y: "kbit/s", lines, stated: stated.clone() });
    let lines = vec![line(results, "size", &case, "size")];
    table.chart(Chart { title: "Size of packets".to_owned(), x, y: "B", lines, stated });
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
        let title = format!("{name} fast rate adaptation");
        let stated = vec![(1_900.0, "paper: sent, with".to_owned())];
        table.chart(Chart { title, x: "time, s", y: "kbit/s", lines, stated });
    }
    let over = results.difference(&of(HAND_OFFS[0].1), &of(HAND_OFFS[1].1), "rise");
    let empty = (0..4).map(|_| Cell::from(""));
    let rest = (0..2).map(|_| Cell::from(""));
    table.row([Cell::from("with, less without")].into_iter().chain(empty).chain([over.into()]).chain(rest));
    table
}

/// TFRC's rate without losses.
pub(super) fn increases(results: &Results) -> Table {
    let mut table = Table::new(&["controller", "most", "last"]);
    for (tfrc, paper) in INCREASES {
        let found = [MOST, LAST].map(|what| (results.mean(&cases::increase(tfrc), what), paper).into());
        table.row([Cell::from(tfrc)].into_iter().chain(found));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_numbers_are_found_by_their_links() {
        // Of 92.18, 94.92, 94.25, 107.99, 94.07 and 5.5, 5.5, 5.6, 5.5, 5.6. 107.99 is 12 % above 96.3, which IP packets can have.
        let ethernet = Printed { capacity: 94_250.0, seconds: 5.5, near: 4 };
        assert_eq!(printed("table_3", &Link::Ethernet, 20), Some(ethernet));
        // Of 0.114, 0.122, 0.115, 0.110 and 0.119 two are 0.1152 or more.
        assert_eq!(printed("table_3", &Link::DslUp, 20).map(|printed| printed.near), Some(2));
        for (table, links) in [("table_3", &cases::WIRED[..]), ("table_4", &cases::WIRELESS)] {
            for link in links {
                assert!(printed(table, link, 100).is_some(), "{link:?}");
            }
        }
    }
}
