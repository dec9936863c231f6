//! Figures 4 to 9 and tables beside them, from the numbers of runs.

use super::cases::{BURSTS, ERRORS, FEW, FIVE, SetUp, WIRELESS, alone, beside_tcp, bursts, steps};
use super::measure::QUANTILES;
use crate::papers::Shown::{Ci99, Mean, Over};
use crate::papers::results::Results;
use crate::papers::{Case, Item, Number, Row, Shown, each};
use lastmile_report::table::{Cell, Chart, Table, lines};

/// Throughput against errors, by scheme, with 99 % intervals [figure 5].
pub(super) fn figure_5() -> Item {
    let case = |(percent, scheme): (u32, &'static str)| alone(SetUp::Rts, scheme, percent);
    let (all, columns) = (
        each(&ERRORS, &FIVE),
        ["errors_percent", "scheme", "throughput_ci99", "percent_of_its_own_without_errors"],
    );
    let shows = "throughput of one flow against errors, Mbit/s with 99 % intervals; TCP, IIAD and SQRT repeat what was lost";
    let cases = all.iter().copied().map(case).collect();
    Item::made("figure-5", Number::Figure(5), shows, cases, move |results| {
        let mut table = Table::new(&columns);
        let of = |percent, scheme| results.mean(&case((percent, scheme)), "throughput");
        for &(percent, scheme) in &all {
            let found = of(percent, scheme);
            let kept = found.zip(of(0, scheme)).map(|(found, before)| 100.0 * found.mean / before.mean);
            table.row([
                Cell::from(percent.to_string()),
                Cell::from(scheme),
                found.map(|found| found.at_99()).into(),
                Cell::Exact(kept, None),
            ]);
        }
        let case = |scheme, percent| case((percent, scheme));
        table.chart(chart(results, "Throughput of one flow", "throughput", &FIVE, &case));
        table
    })
}

/// A line for each scheme over errors, with 99 % intervals.
fn chart(
    results: &Results,
    title: &str,
    what: &str,
    schemes: &[&'static str],
    case: &dyn Fn(&'static str, u32) -> Case,
) -> Chart {
    let of = |scheme, percent| Some(results.mean(&case(scheme, percent), what)?.at_99());
    Chart::new(title, "errors, %", "Mbit/s", lines(schemes, &ERRORS, of))
}

/// Runs by the names of their set-ups and of their schemes.
type Runs = Vec<(String, &'static str, Case)>;

/// All that is said of flows beside cross traffic, and their rates over time.
pub(super) fn of_runs(id: &'static str, number: Option<Number>, shows: &'static str, all: Runs) -> Item {
    let said = [
        ("rate_mbps", Mean("rate")),
        ("throughput_mbps", Mean("throughput")),
        ("variation_percent", Mean("variation")),
        ("variation_with_steps", Mean("variation_of_all")),
        ("settles_s", Mean("settles")),
        ("delay_ms", Mean("delay_50")),
        ("delay_95_ms", Mean("delay_95")),
        ("percent_of_jitter_below_5_ms", Mean("jitter_below_5_ms")),
        ("percent_of_errors_judged_congestion", Mean("mw")),
        ("percent_lost_in_queues", Mean("overflow")),
    ];
    Item::rows(id, number, shows, &["set-up", "scheme"], &said, rows(&all)).drawn(move |results, table| {
        for own in all.chunk_by(|a, b| a.0 == b.0) {
            let lines = own.iter().map(|run| (run.1.to_owned(), results.line(&run.2, "sent"))).collect();
            table.chart(Chart::new(format!("Sending rate, {}, seed 1", own[0].0), "s", "Mbit/s", lines));
        }
    })
}

fn rows(all: &Runs) -> Vec<Row> {
    all.iter().map(|(set_up, scheme, case)| Row::new(&[set_up, scheme], case.clone())).collect()
}

/// Runs of figure 6 in a set-up.
pub(super) fn stepped(set_up: SetUp, schemes: &[&'static str]) -> Runs {
    let of = |percent: u32| {
        let name = match set_up {
            SetUp::Rts => format!("{percent} % errors"),
            _ => format!("{}, {percent} % errors", set_up.name()),
        };
        schemes.iter().map(move |&scheme| (name.clone(), scheme, steps(set_up, scheme, percent)))
    };
    FEW.into_iter().flat_map(of).collect()
}

/// Those of figure 8.
pub(super) fn burst_runs() -> Runs {
    let of =
        |burst: u32| WIRELESS.map(|scheme| (format!("bursts of {burst} ms"), scheme, bursts(scheme, burst)));
    BURSTS.into_iter().flat_map(of).collect()
}

/// Delays that so many percent of the packets stay below [figure 7].
pub(super) fn figure_7() -> Item {
    let shows = "end-to-end delays, in ms: the share of packets, in %, that take no longer";
    let columns = QUANTILES.map(|(_, column, number)| (column, Mean(number)));
    let numbers = [&columns[..], &[("percent_of_jitter_below_5_ms", Mean("jitter_below_5_ms"))]].concat();
    let rows = rows(&stepped(SetUp::Rts, &WIRELESS));
    Item::rows("figure-7", Number::Figure(7), shows, &["errors", "scheme"], &numbers, rows).drawn(
        |results, table| {
            for percent in FEW {
                let line = |scheme: &str| {
                    let case = steps(SetUp::Rts, scheme, percent);
                    let point = |(share, _, number)| Some((share, results.mean(&case, number)?));
                    (scheme.to_owned(), QUANTILES.into_iter().filter_map(point).collect())
                };
                let (title, lines) = (format!("Delays, {percent} % errors"), WIRELESS.map(line).into());
                table.chart(Chart::new(title, "packets, %", "no longer than, ms", lines));
            }
        },
    )
}

/// A flow beside TCP, and TCP beside TCP [figure 9].
pub(super) fn friendliness(
    id: &'static str,
    number: Option<Number>,
    shows: &'static str,
    all: &[(SetUp, &'static [u32])],
) -> Item {
    const SCHEMES: [&str; 4] = ["tcp", WIRELESS[0], WIRELESS[1], WIRELESS[2]];
    let runs = all.iter().flat_map(|&(set_up, errors)| each(&each(&[set_up], errors), &SCHEMES));
    let rows = runs.map(|((set_up, percent), scheme)| {
        Row::new(&[&set_up.name(), &percent, &scheme], beside_tcp(set_up, scheme, percent))
            .over(beside_tcp(set_up, "tcp", percent))
    });
    let numbers: [(_, Shown); 3] = [
        ("throughput_ci99", Ci99("throughput")),
        ("tcp_ci99", Ci99("beside")),
        ("tcp_over_tcp_beside_tcp", Over("beside")),
    ];
    let item = Item::rows(id, number, shows, &["set-up", "errors_percent", "scheme"], &numbers, rows);
    if id != "figure-9" {
        return item;
    }
    item.drawn(|results, table| {
        for (title, what) in [("The scheme's throughput", "throughput"), ("TCP's beside it", "beside")] {
            let case = |scheme, percent| beside_tcp(SetUp::Rts, scheme, percent);
            table.chart(chart(results, title, what, &SCHEMES, &case));
        }
    })
}

/// MULTFRC with other thresholds, beside cross traffic and beside TCP.
pub(super) fn thresholds(schemes: &'static [&'static str]) -> Item {
    let runs = each(&FEW, schemes);
    let both =
        |(percent, scheme)| [steps(SetUp::Rts, scheme, percent), beside_tcp(SetUp::Rts, scheme, percent)];
    let shows = "figures 6 and 9 where MULTFRC closes a connection at a longer queue";
    Item::made("thresholds", None, shows, runs.iter().copied().flat_map(both).collect(), move |results| {
        let mut table = Table::new(&[
            "errors_percent",
            "scheme",
            "rate_mbps",
            "variation_percent",
            "delay_ms",
            "beside_tcp_ci99",
            "tcp_ci99",
        ]);
        for &(percent, scheme) in &runs {
            let [alone, beside] = both((percent, scheme));
            let own = ["rate", "variation", "delay_50"].map(|what| Cell::from(results.mean(&alone, what)));
            let with =
                ["throughput", "beside"].map(|what| results.mean(&beside, what).map(|found| found.at_99()));
            let head = [percent.to_string(), scheme.to_owned()].map(Cell::from);
            table.row(head.into_iter().chain(own).chain(with.map(Cell::from)));
        }
        table
    })
}
