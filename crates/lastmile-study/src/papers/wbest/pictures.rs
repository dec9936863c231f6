//! Figures beside the fourteen cases: the model and its errors, pairs and trains, pacing, rates over time.

use lastmile::estimate::wbest_errors::LastHop;
use lastmile::observe::stats;

use super::PAPER;
use super::cases::{
    ARRIVING, CAPACITY, FORCED, IDLE, LEFT, LENGTHS, LONG_QUEUE, PACED, PAIRS, SetUp, TESTBED, TYPICAL, Tool,
    WITH_TCP, arriving, forced, forced_by_wifi, paced, pairs, pings, told, train,
};
use super::measure::{DIRECTIONS, PASSING, PINGS, SATURATED, of_pairs};
use super::tables::{MANY, RUNS, middle, truth};
use crate::papers::results::Results;
use crate::papers::{Case, Item, Middle, Number, each};
use lastmile_report::Mean;
use lastmile_report::table::{Cell, Chart, Line, Table, lines};

/// A forced error and the share that is left, in the paper's model.
pub(super) fn hop(left: f64) -> LastHop {
    LastHop { capacity: CAPACITY, available: CAPACITY * left }
}

/// The error of what a run said of a hop, in percent.
pub(super) fn error(results: &Results, case: &Case, available: f64) -> Option<Middle> {
    results.paired([case], "estimate", |[found]| 100.0 * (found / available - 1.0))
}

/// Figure 3: A against R, and the points of runs without an error.
pub(super) fn fluid(results: &Results) -> Table {
    let mut table = Table::new(&["a_mbps", "model_r_mbps", "found_a_mbps"]);
    let mut runs = Vec::new();
    for left in LEFT {
        let (hop, found) = (hop(left), results.median(&forced(left, 0.0), "estimate"));
        let r = hop.output(CAPACITY);
        table.row([Cell::Exact(Some(hop.available), None), Cell::Exact(Some(r), None), middle(found, None)]);
        runs.extend(found.map(|found| (r, Mean::exactly(found.median))));
    }
    let model = (10..=20).map(|step| {
        let r = CAPACITY * f64::from(step) / 20.0;
        (r, Mean::exactly(CAPACITY * (2.0 - CAPACITY / r)))
    });
    let below = [(0.0, 0.0), (CAPACITY / 2.0, 0.0)].map(|(r, a)| (r, Mean::exactly(a)));
    let lines =
        vec![("model".to_owned(), below.into_iter().chain(model).collect()), ("runs".to_owned(), runs)];
    let title = format!("A against R, C_e {CAPACITY} Mbit/s");
    table.chart(Chart::new(title, "R, Mbit/s", "A, Mbit/s", lines));
    table
}

/// Theory and simulation of an error on one plot.
fn theory(
    results: &Results,
    (title, x, ours): (&str, &'static str, &'static str),
    steps: &[f64],
    case: fn(f64, f64) -> Case,
    theory: fn(&LastHop, f64) -> [f64; 2],
) -> Table {
    let mut table = Table::new(&["a_over_ce", "forced_percent", "paper_percent", ours, "simulated_percent"]);
    for left in LEFT {
        let hop = hop(left);
        let (mut of_theory, mut of_runs) = (Vec::new(), Vec::new());
        for &step in steps {
            let found = error(results, &case(left, step), hop.available);
            let [paper, clipped] = theory(&hop, step).map(|error| 100.0 * error);
            let exact = |value| Cell::Exact(Some(value), None);
            table.row([exact(left), exact(100.0 * step), exact(paper), exact(clipped), middle(found, None)]);
            of_theory.push((100.0 * step, Mean::exactly(clipped)));
            of_runs.extend(found.map(|found| (100.0 * step, Mean::exactly(found.median))));
        }
        let paper = steps.iter().map(|&step| (100.0 * step, Mean::exactly(100.0 * theory(&hop, step)[0])));
        let lines = vec![
            ("paper".to_owned(), paper.collect()),
            ("model of the tool".to_owned(), of_theory),
            ("simulated".to_owned(), of_runs),
        ];
        let title = format!("{title}: C_e {CAPACITY}, A {:.1} Mbit/s", hop.available);
        table.chart(Chart::new(title, x, "error of A, %", lines));
    }
    table
}

/// Figure 4.
pub(super) fn of_capacity() -> Item {
    let mut cases: Vec<Case> =
        each(&LEFT, &FORCED).into_iter().map(|(left, error)| forced(left, error)).collect();
    cases.extend(FORCED.map(forced_by_wifi));
    cases.push(TESTBED.truth(1));
    let shows = "error of A by a forced error of the capacity: equation 12, and simulated";
    Item::made("figure-4", Number::Figure(4), shows, cases, |results| {
        let of = |hop: &LastHop, y: f64| [hop.of_capacity(y), hop.of_capacity_clipped(y)];
        let names = ("A wrong capacity", "error of C_e, %", "with_its_limits_percent");
        let mut table = theory(results, names, &FORCED, forced, of);
        if let Some(available) = truth(results, TESTBED, 1) {
            let hop = LastHop { capacity: IDLE, available };
            let of = |error_of: &dyn Fn(f64) -> Option<f64>| -> Vec<(f64, Mean)> {
                FORCED.iter().filter_map(|&y| Some((100.0 * y, Mean::exactly(error_of(y)?)))).collect()
            };
            let model = of(&|y| Some(100.0 * hop.of_capacity_clipped(y)));
            let runs = of(&|y| Some(error(results, &forced_by_wifi(y), available)?.median));
            let lines = vec![("model of the tool".to_owned(), model), ("simulated".to_owned(), runs)];
            let title = format!("By Wi-Fi, case 1: C_e {IDLE}, A {available:.1} Mbit/s");
            table.chart(Chart::new(title, "error of C_e, %", "error of A, %", lines));
        }
        table
    })
    .runs(RUNS)
}

/// Figure 5.
pub(super) fn of_arrival() -> Item {
    let cases = each(&LEFT, &ARRIVING).into_iter().map(|(left, ratio)| arriving(left, ratio)).collect();
    let shows = "error of A by pre-dispersion (below 0) and pre-compression: equation 16, and simulated";
    Item::made("figure-5", Number::Figure(5), shows, cases, |results| {
        let of = |hop: &LastHop, x: f64| [hop.of_arrival(x), hop.of_arrival(x).max(-1.0)];
        let names = ("Another rate of arrival", "R_p over C_e less 1, %", "with_its_limits_percent");
        theory(results, names, &ARRIVING, arriving, of)
    })
    .runs(RUNS)
}

/// Figure 8.
pub(super) fn of_pairs_item() -> Item {
    let cases = TYPICAL.map(|(id, _)| pairs(id)).to_vec();
    let shows = "error of C_e, %, by the number of pairs; the truth is the median of a run's 90 pairs";
    Item::made("figure-8", Number::Figure(8), shows, cases, |results| {
        let mut table = Table::new(&["case", "pairs", "error_percent"]);
        for ((id, name), number) in each(&TYPICAL, &PAIRS) {
            let found = results.median(&pairs(id), &of_pairs(number));
            table.row([Cell::from(name), Cell::from(number.to_string()), middle(found, None)]);
        }
        let of = |name: &'static str, number: u32| {
            let (id, _) = TYPICAL.into_iter().find(|case| case.1 == name)?;
            Some(Mean::exactly(results.median(&pairs(id), &of_pairs(number as usize))?.median))
        };
        let lines = lines(&TYPICAL.map(|case| case.1), &PAIRS.map(|pairs| pairs as u32), of);
        table.chart(Chart::new("Error of C_e", "pairs", "error, %", lines));
        table
    })
    .runs(MANY)
}

/// The error of A of trains of that length, in percent of what is left.
pub(super) fn of_train(results: &Results, id: usize, length: usize) -> Option<Middle> {
    let left = truth(results, TESTBED, id)?;
    results.paired([&train(id, length)], "estimate", |[found]| 100.0 * (found / left - 1.0).abs())
}

/// By how much less that is with a longer train, paired by seed.
pub(super) fn falls_by(results: &Results, id: usize, few: usize, more: usize) -> Option<Middle> {
    let left = truth(results, TESTBED, id)?;
    let error = |found: f64| 100.0 * (found / left - 1.0).abs();
    let both = [&train(id, few), &train(id, more)];
    results.paired(both, "estimate", |[few, more]| error(few) - error(more))
}

/// The cases of figure 9 whose capacity stays.
pub(super) const STEADY: [(usize, &str); 3] = [TYPICAL[0], TYPICAL[1], TYPICAL[2]];

/// The standard deviation of A over the runs, in Mbit/s, where the capacity is told.
fn deviation(results: &Results, id: usize, length: usize) -> Option<f64> {
    stats::deviation(&results.values(&told(TESTBED, id, length), "estimate"))
}

/// The distance of A from its median over the runs, in Mbit/s, where the capacity is told.
pub(super) fn nearness(results: &Results, id: usize, length: usize) -> Option<Middle> {
    let case = told(TESTBED, id, length);
    let middle = results.median(&case, "estimate")?.median;
    results.paired([&case], "estimate", |[found]| (found - middle).abs())
}

/// By how much nearer to its median A is with a longer train, paired by seed, in Mbit/s, where the capacity is told.
pub(super) fn nears_by(results: &Results, id: usize, few: usize, more: usize) -> Option<Middle> {
    let both = [&told(TESTBED, id, few), &told(TESTBED, id, more)];
    let [few, more] = both.map(|case| results.median(case, "estimate").map(|found| found.median));
    let (few, more) = few.zip(more)?;
    results.paired(both, "estimate", |found| (found[0] - few).abs() - (found[1] - more).abs())
}

/// Figure 9.
pub(super) fn of_trains_item() -> Item {
    let runs = each(&TYPICAL, &LENGTHS).into_iter().map(|((id, _), length)| train(id, length));
    let alone = each(&STEADY, &LENGTHS).into_iter().map(|((id, _), length)| told(TESTBED, id, length));
    let cases = runs.chain(TYPICAL.map(|(id, _)| TESTBED.truth(id))).chain(alone).collect();
    let shows =
        "error of A, %, by the length of the train, and the deviation of A, Mbit/s, where C_e is told";
    Item::made("figure-9", Number::Figure(9), shows, cases, |results| {
        let mut table = Table::new(&["case", "packets", "error_percent", "deviation_mbps"]);
        for ((id, name), length) in each(&TYPICAL, &LENGTHS) {
            let found = of_train(results, id, length);
            let deviation = Cell::Exact(deviation(results, id, length), None);
            table.row([Cell::from(name), Cell::from(length.to_string()), middle(found, None), deviation]);
        }
        let of = |name: &'static str, length: u32| {
            let (id, _) = TYPICAL.into_iter().find(|case| case.1 == name)?;
            Some(Mean::exactly(of_train(results, id, length as usize)?.median))
        };
        let lines = lines(&TYPICAL.map(|case| case.1), &LENGTHS.map(|length| length as u32), of);
        table.chart(Chart::new("Error of A", "packets", "error, %", lines));
        table
    })
    .runs(MANY)
}

/// Trains of 10 and 30 packets where the capacity is told, so often that chance does not decide.
pub(super) fn told_trains() -> Item {
    let all = each(&STEADY, &[10, 30]);
    let cases = all.iter().map(|&((id, _), length)| told(TESTBED, id, length)).collect();
    let shows =
        "A and its distance from its median, Mbit/s, of trains of 10 and 30 packets where C_e is told";
    Item::made("told-trains", None, shows, cases, move |results| {
        let mut table = Table::new(&["case", "packets", "runs", "available", "from_the_median"]);
        for &((id, name), length) in &all {
            let case = told(TESTBED, id, length);
            let runs = results.values(&case, "estimate").len();
            let words = [name.to_owned(), length.to_string(), runs.to_string()].map(Cell::from);
            let found = [results.median(&case, "estimate"), nearness(results, id, length)];
            table.row(words.into_iter().chain(found.map(|found| middle(found, None))));
        }
        table
    })
    .runs(400)
}

/// WBest beside TCP, where it finds the capacity itself and where it is told it.
pub(super) fn known_capacity() -> Item {
    const QUEUES: [SetUp; 2] = [TESTBED, LONG_QUEUE];
    let all = |id| QUEUES.map(|set_up| [set_up.tool(id, Tool::Wbest), told(set_up, id, LENGTH)]).concat();
    let shows = "beside TCP: WBest that finds the capacity, and WBest that is told it, Mbit/s";
    Item::made("known-capacity", None, shows, WITH_TCP.into_iter().flat_map(all).collect(), |results| {
        let columns = ["case", "queue", "found_capacity", "available", "available_of_the_told"];
        let mut table = Table::new(&columns);
        for (id, set_up) in each(&WITH_TCP, &QUEUES) {
            let own = set_up.tool(id, Tool::Wbest);
            let of = |case: &Case, what| middle(results.median(case, what), None);
            let head = [id.to_string(), set_up.queue.to_string()].map(Cell::from);
            let told = of(&told(set_up, id, LENGTH), "estimate");
            table.row(head.into_iter().chain([of(&own, "capacity"), of(&own, "estimate"), told]));
        }
        table
    })
    .runs(RUNS)
}

/// Packets of WBest's train.
pub(super) const LENGTH: usize = 30;

/// Figure 6.
pub(super) fn sequence(results: &Results) -> Table {
    let case = Case::new("sequence");
    let mut table = Table::new(&["tool", "begins_s"]);
    for (tool, begins) in begins(PAPER.text(&case).unwrap_or_default()) {
        table.row([Cell::from(tool), Cell::Exact(begins, None)]);
    }
    let lines = vec![("to the access point".to_owned(), results.line(&case, PASSING))];
    table.chart(Chart::new("The tools one after the other, case 1", "time, s", "Mbit/s", lines));
    table
}

/// The saturated flow and the tools of a scenario, and when each begins, in s.
fn begins(scenario: &str) -> Vec<(String, Option<f64>)> {
    let scenario: toml::Table = scenario.parse().unwrap_or_default();
    let list = |key: &str| scenario.get(key).and_then(|list| list.as_array()).cloned().unwrap_or_default();
    let traffic = list("traffic").into_iter().map(|flow| ("name", flow));
    let tools = list("measure").into_iter().map(|measure| ("from", measure));
    let begins = |(key, table): (&str, toml::Value)| {
        let name = table.get(key)?.as_str()?.to_owned();
        let at: lastmile::time::Span = table.get("start")?.as_str()?.parse().ok()?;
        Some((name, Some(at.as_secs_f64())))
    };
    traffic.chain(tools).filter_map(begins).collect()
}

/// Figure 7: the trace of case 13.
pub(super) fn bad_channel() -> Table {
    let mut table = Table::new(&["rate_mbps", "percent_of_the_time"]);
    let text = PAPER.text(&Case::new("ap-13")).unwrap_or_default();
    let lines =
        text.lines().skip_while(|line| *line != "s,Mbit/s").skip(1).map_while(|line| line.split_once(','));
    let trace: Vec<(f64, f64)> =
        lines.filter_map(|(at, rate)| Some((at.parse().ok()?, rate.parse().ok()?))).collect();
    let mut shares: Vec<(f64, f64)> = Vec::new();
    for step in trace.windows(2) {
        let length = step[1].0 - step[0].0;
        match shares.iter_mut().find(|share| share.0 == step[0].1) {
            Some(share) => share.1 += length,
            None => shares.push((step[0].1, length)),
        }
    }
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    let whole = trace.last().map_or(1.0, |last| last.0);
    for (rate, length) in shares {
        table.row([Cell::Exact(Some(rate), None), Cell::Exact(Some(100.0 * length / whole), None)]);
    }
    let steps = trace.windows(2).flat_map(|step| [(step[0].0, step[0].1), (step[1].0, step[0].1)]);
    let line = ("to A".to_owned(), steps.map(|(at, rate)| (at, Mean::exactly(rate))).collect());
    table.chart(Chart::new("Rates of case 13", "time, s", "Mbit/s", vec![line]));
    table
}

/// Figure 26.
pub(super) fn pacing() -> Item {
    let shows =
        "achieved against requested rate of a train of 38 packets, Mbit/s; in the lab by the kernel's stamps";
    Item::made("figure-26", Number::Figure(26), shows, PACED.map(paced).to_vec(), |results| {
        let mut table = Table::new(&["requested_mbps", "achieved_mbps"]);
        let mut achieved = Vec::new();
        for rate in PACED {
            let found = results.mean(&paced(rate), "sent");
            table.row([Cell::from(rate.to_string()), found.into()]);
            achieved.extend(found.map(|found| (f64::from(rate), found)));
        }
        let asked = PACED.map(|rate| (f64::from(rate), Mean::exactly(f64::from(rate)))).to_vec();
        let lines = vec![("requested".to_owned(), asked), ("achieved".to_owned(), achieved)];
        table.chart(Chart::new("Control of the sending rate", "requested, Mbit/s", "Mbit/s", lines));
        table
    })
    .runs(1)
    .lab(15)
}

/// Case 6 where all stations adapt their rates by ARF: the saturated flow [appendix D].
pub(super) const ADAPTING: SetUp = SetUp { contends: "arf", ..TESTBED };

/// Figures 27 to 30: case 6 with rate adaptation.
pub(super) fn fallback(item: &'static str, figure: u32, shows: &'static str) -> Item {
    let case = ADAPTING.truth(6);
    Item::made(item, Number::Figure(figure), shows, vec![case.clone(), TESTBED.truth(6)], move |results| {
        let line = |of: &str, name: &str| -> Line { (name.to_owned(), results.line(&case, of)) };
        let chart = match figure {
            27 => Chart::new(
                "Clients' rates, case 6",
                "time, s",
                "Mbit/s",
                vec![line(DIRECTIONS[0].1, "B"), line(DIRECTIONS[1].1, "C")],
            ),
            28 => Chart::new(
                "The access point's rate",
                "time, s",
                "Mbit/s",
                vec![line(DIRECTIONS[2].1, "to A")],
            ),
            29 => {
                Chart::new("The access point's retries", "time, s", "%", vec![line(DIRECTIONS[2].2, "to A")])
            }
            _ => Chart::new("The saturated flow", "time, s", "Mbit/s", vec![line(SATURATED, "to A")]),
        };
        let columns = ["set-up", "b_mbps", "c_mbps", "ap_mbps", "ap_retries_percent", "saturated_mbps"];
        let mut table = Table::new(&columns);
        for (name, of) in [("ARF", &case), ("24 Mbit/s", &TESTBED.truth(6))] {
            let shown = ["phy_b", "phy_c", "phy_ap", "retries_ap", "truth"];
            let found = shown.map(|what| middle(results.median(of, what), None));
            table.row([Cell::from(name)].into_iter().chain(found));
        }
        table.chart(chart);
        table
    })
    .runs(RUNS)
}

/// Sizes of figure 31's pings.
pub(super) const PINGED: [u32; 2] = [64, 1_460];

/// Figure 31.
pub(super) fn round_trips() -> Item {
    let all = each(&PINGED, &[false, true]);
    let cases = all.iter().map(|&(bytes, bad)| pings(bytes, bad)).collect();
    let shows = "pings on the good channel and on case 13's: slow are those above twice the tenth percentile";
    Item::made("figure-31", Number::Figure(31), shows, cases, move |results| {
        let mut table = Table::new(&["bytes", "channel", "median_ms", "p90_ms", "slow_percent"]);
        let mut lines = Vec::new();
        for &(bytes, bad) in &all {
            let (case, channel) = (pings(bytes, bad), if bad { "bad" } else { "good" });
            let found = ["rtt", "rtt_90", "slow"].map(|what| middle(results.median(&case, what), None));
            table.row([Cell::from(bytes.to_string()), Cell::from(channel)].into_iter().chain(found));
            lines.push((format!("{bytes} B, {channel}"), results.line(&case, PINGS)));
        }
        table.chart(Chart::new("Round-trip times, seed 1", "ms", "pings, %", lines));
        table
    })
    .runs(RUNS)
}

/// Equation 7: samples for an interval.
pub(super) fn samples() -> Table {
    let mut table = Table::new(&["of", "sigma_mbps", "samples", "at_least"]);
    // [WBest eq. 7] n = Z^2 sigma^2 / CI^2
    for (name, sigma, printed) in [("pairs", 0.59_f64, 5.34), ("a train's packets", 1.38, 29.26)] {
        let samples = (1.96 * sigma / 0.5).powi(2);
        table.row([
            Cell::from(name),
            Cell::Exact(Some(sigma), None),
            Cell::Exact(Some(samples), Some(printed)),
            Cell::Exact(Some(samples.ceil()), None),
        ]);
    }
    table
}

/// Open in the paper: cases whose truth it gives, in other set-ups of the cell.
pub(super) fn open(
    item: &'static str,
    shows: &'static str,
    set_ups: &'static [(&'static str, SetUp)],
    ids: &'static [usize],
) -> Item {
    let of = |set_up: SetUp| {
        ids.iter().flat_map(move |&id| {
            [set_up.truth(id), set_up.tool(id, Tool::Wbest), set_up.tool(id, Tool::Ours)]
        })
    };
    let cases = set_ups.iter().flat_map(|(_, set_up)| of(*set_up)).collect();
    Item::made(item, None, shows, cases, move |results| {
        let mut table =
            Table::new(&["set-up", "case", "saturated_mbps", "wbest", "our_default", "ap_retries_percent"]);
        for (name, set_up) in set_ups {
            for &id in ids {
                let paper = |what| super::tables::printed("table_2", id, what);
                let truth = set_up.truth(id);
                table.row([
                    Cell::from(*name),
                    Cell::from(id.to_string()),
                    middle(results.median(&truth, "truth"), paper("ground_truth")),
                    middle(results.median(&set_up.tool(id, Tool::Wbest), "estimate"), paper("wbest")),
                    middle(results.median(&set_up.tool(id, Tool::Ours), "estimate"), None),
                    middle(results.median(&truth, "retries_ap"), None),
                ]);
            }
        }
        table
    })
    .runs(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_6_has_the_scenario_s_times() {
        let found = begins(PAPER.text(&Case::new("sequence")).unwrap());
        let names: Vec<_> = found.iter().map(|(name, at)| (name.as_str(), at.unwrap())).collect();
        let tools = [("wbest", 15.0), ("igi-ptr", 22.0), ("pathchirp", 30.0), ("pathload", 45.0)];
        assert_eq!(names, [&[("saturating", 5.0)][..], &tools].concat());
    }

    #[test]
    fn the_trace_of_case_13_has_the_paper_s_rates() {
        let (_, rows, _) = bad_channel().json();
        let rates: Vec<f64> =
            rows.as_array().unwrap().iter().map(|row| row["rate_mbps"].as_f64().unwrap()).collect();
        assert_eq!((rates.first(), rates.last()), (Some(&1.0), Some(&48.0)));
    }
}
