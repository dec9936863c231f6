//! Figures 4 to 9 and what stands beside them, from what runs left.

use super::cases::{BURSTS, ERRORS, FEW, FIVE, SetUp, WIRELESS, alone, beside_tcp, bursts, steps};
use super::measure::QUANTILES;
use crate::papers::paper::{Case, Item, Number};
use crate::papers::results::Results;
use lastmile_report::table::{Cell, Chart, Table};

/// Throughput against errors, by scheme, with 99 % intervals [figure 5].
pub(super) fn figure_5() -> Item {
    let cases = ERRORS
        .into_iter()
        .flat_map(|percent| FIVE.map(|scheme| alone(SetUp::Rts, scheme, percent)))
        .collect();
    let shows = "throughput of one flow against errors, Mbit/s with 99 % intervals; TCP, IIAD and SQRT repeat what was lost";
    Item::made("figure-5", Some(Number::Figure(5)), shows, cases, |results| {
        let mut table =
            Table::new(&["errors_percent", "scheme", "throughput_ci99", "percent_of_its_own_without_errors"]);
        let of = |scheme: &str, percent| results.mean(&alone(SetUp::Rts, scheme, percent), "throughput");
        for (percent, scheme) in ERRORS.into_iter().flat_map(|percent| FIVE.map(|scheme| (percent, scheme))) {
            let kept =
                of(scheme, percent).zip(of(scheme, 0)).map(|(now, before)| 100.0 * now.mean / before.mean);
            table.row([
                Cell::from(percent.to_string()),
                Cell::from(scheme),
                of(scheme, percent).map(|found| found.at_99()).into(),
                Cell::Exact(kept, None),
            ]);
        }
        let title = "Throughput of one flow";
        table.chart(chart(results, title, "throughput", &FIVE, &|scheme, percent| {
            alone(SetUp::Rts, scheme, percent)
        }));
        table
    })
}

/// A line for each scheme over errors, with 99 % intervals.
fn chart(
    results: &Results,
    title: &str,
    what: &str,
    schemes: &[&'static str],
    case: &dyn Fn(&str, u32) -> Case,
) -> Chart {
    let line = |scheme: &&'static str| {
        let point =
            |percent: u32| Some((f64::from(percent), results.mean(&case(scheme, percent), what)?.at_99()));
        ((*scheme).to_owned(), ERRORS.into_iter().filter_map(point).collect())
    };
    let lines = schemes.iter().map(line).collect();
    Chart { title: title.to_owned(), x: "errors, %", y: "Mbit/s", lines, stated: Vec::new() }
}

/// What is said of a flow beside cross traffic.
const SAID: [&str; 10] = [
    "rate",
    "throughput",
    "variation",
    "variation_of_all",
    "settles",
    "delay_50",
    "delay_95",
    "jitter_below_5_ms",
    "mw",
    "overflow",
];
/// The same with units, as columns.
const COLUMNS: [&str; 12] = [
    "set-up",
    "scheme",
    "rate_mbps",
    "throughput_mbps",
    "variation_percent",
    "variation_with_steps",
    "settles_s",
    "delay_ms",
    "delay_95_ms",
    "percent_of_jitter_below_5_ms",
    "percent_of_errors_judged_congestion",
    "percent_lost_in_queues",
];

/// All that is said of these runs, each with a name for its set-up and its scheme.
pub(super) fn smoothness(results: &Results, all: &[(String, &str, Case)]) -> Table {
    let mut table = Table::new(&COLUMNS);
    for (set_up, scheme, case) in all {
        let cells = SAID.map(|what| Cell::from(results.mean(case, what)));
        table.row([Cell::from(set_up.as_str()), Cell::from(*scheme)].into_iter().chain(cells));
    }
    table
}

/// An item of such runs.
pub(super) fn of_runs(
    id: &'static str,
    number: Option<Number>,
    shows: &'static str,
    all: Vec<(String, &'static str, Case)>,
) -> Item {
    let cases = all.iter().map(|run| run.2.clone()).collect();
    Item::made(id, number, shows, cases, move |results| {
        let mut table = smoothness(results, &all);
        let mut titles: Vec<&String> = all.iter().map(|run| &run.0).collect();
        titles.dedup();
        for title in titles {
            let own = all.iter().filter(|run| run.0 == *title);
            let lines = own.map(|run| (run.1.to_owned(), results.line(&run.2, "sent"))).collect();
            let title = format!("Sending rate, {title}, seed 1");
            table.chart(Chart { title, x: "s", y: "Mbit/s", lines, stated: Vec::new() });
        }
        table
    })
}

/// Runs of figure 6 in a set-up.
pub(super) fn stepped(set_up: SetUp, schemes: &[&'static str]) -> Vec<(String, &'static str, Case)> {
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
pub(super) fn burst_runs() -> Vec<(String, &'static str, Case)> {
    let of =
        |burst: u32| WIRELESS.map(|scheme| (format!("bursts of {burst} ms"), scheme, bursts(scheme, burst)));
    BURSTS.into_iter().flat_map(of).collect()
}

/// Delays that so many percent of the packets stay below [figure 7].
pub(super) fn figure_7() -> Item {
    let runs = stepped(SetUp::Rts, &WIRELESS);
    let cases = runs.iter().map(|run| run.2.clone()).collect();
    let shows = "end-to-end delays, in ms: the share of packets, in %, that take no longer";
    Item::made("figure-7", Some(Number::Figure(7)), shows, cases, move |results| {
        let columns = [
            "errors",
            "scheme",
            "p1",
            "p5",
            "p10",
            "p25",
            "p50",
            "p75",
            "p90",
            "p95",
            "p99",
            "percent_of_jitter_below_5_ms",
        ];
        let mut table = Table::new(&columns);
        for (errors, scheme, case) in &runs {
            let names = QUANTILES.iter().map(|quantile| quantile.1).chain(["jitter_below_5_ms"]);
            let cells = names.map(|what| Cell::from(results.mean(case, what)));
            table.row([Cell::from(errors.as_str()), Cell::from(*scheme)].into_iter().chain(cells));
        }
        for percent in FEW {
            let line = |scheme: &str| {
                let case = steps(SetUp::Rts, scheme, percent);
                let point = |(share, name)| Some((share, results.mean(&case, name)?));
                (scheme.to_owned(), QUANTILES.into_iter().filter_map(point).collect())
            };
            let (title, lines) = (format!("Delays, {percent} % errors"), WIRELESS.map(line).into());
            table.chart(Chart { title, x: "packets, %", y: "no longer than, ms", lines, stated: vec![] });
        }
        table
    })
}

/// A flow beside TCP, and TCP beside TCP [figure 9].
pub(super) fn friendliness(
    id: &'static str,
    number: Option<Number>,
    shows: &'static str,
    all: &[(SetUp, &'static [u32])],
) -> Item {
    let runs: Vec<(SetUp, u32, &'static str)> = all
        .iter()
        .flat_map(|&(set_up, errors)| errors.iter().map(move |&percent| (set_up, percent)))
        .flat_map(|(set_up, percent)| {
            ["tcp"].into_iter().chain(WIRELESS).map(move |scheme| (set_up, percent, scheme))
        })
        .collect();
    let cases = runs.iter().map(|&(set_up, percent, scheme)| beside_tcp(set_up, scheme, percent)).collect();
    Item::made(id, number, shows, cases, move |results| {
        let mut table = Table::new(&[
            "set-up",
            "errors_percent",
            "scheme",
            "throughput_ci99",
            "tcp_ci99",
            "tcp_over_tcp_beside_tcp",
        ]);
        for &(set_up, percent, scheme) in &runs {
            let case = beside_tcp(set_up, scheme, percent);
            let of = |what| Cell::from(results.mean(&case, what).map(|found| found.at_99()));
            let over = results.difference(&case, &beside_tcp(set_up, "tcp", percent), "beside");
            let head = [set_up.name().to_owned(), percent.to_string(), scheme.to_owned()];
            table.row(head.map(Cell::from).into_iter().chain([of("throughput"), of("beside"), over.into()]));
        }
        if id == "figure-9" {
            for (title, what) in [("The scheme's throughput", "throughput"), ("TCP's beside it", "beside")] {
                let schemes: Vec<&'static str> = ["tcp"].into_iter().chain(WIRELESS).collect();
                table.chart(chart(results, title, what, &schemes, &|scheme, percent| {
                    beside_tcp(SetUp::Rts, scheme, percent)
                }));
            }
        }
        table
    })
}

/// MULTFRC with other thresholds, beside cross traffic and beside TCP.
pub(super) fn thresholds(schemes: &'static [&'static str]) -> Item {
    let runs = || FEW.into_iter().flat_map(|percent| schemes.iter().map(move |&scheme| (percent, scheme)));
    let both =
        |(percent, scheme)| [steps(SetUp::Rts, scheme, percent), beside_tcp(SetUp::Rts, scheme, percent)];
    let shows = "figures 6 and 9 where MULTFRC closes a connection at a longer queue";
    Item::made("thresholds", None, shows, runs().flat_map(both).collect(), move |results| {
        let mut table = Table::new(&[
            "errors_percent",
            "scheme",
            "rate_mbps",
            "variation_percent",
            "delay_ms",
            "beside_tcp_ci99",
            "tcp_ci99",
        ]);
        for (percent, scheme) in runs() {
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
