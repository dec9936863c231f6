//! Tables and figures of the fourteen cases, from the numbers of runs: medians with the sign test's intervals, and boxes.

use super::cases::{
    AGGREGATING, BAD, CASES, COARSE, OF_THE_PAPER, SetUp, TESTBED, TOOLS, Tool, UNKNOWN, WITH_TCP, flows,
};
use super::figures;
use crate::papers::results::Results;
use crate::papers::{Case, Item, Middle, Number};
use lastmile_report::Mean;
use lastmile_report::table::{Cell, Chart, Spread, Table};

/// The paper's number of a case [tables II and III].
pub(super) fn printed(table: &str, id: usize, column: &str) -> Option<f64> {
    let figures = figures();
    let table = figures.get(table)?;
    let columns = table.get("columns")?.as_array()?;
    let at = columns.iter().position(|name| name.as_str() == Some(column))?;
    let value = table.get("rows")?.as_array()?.get(id)?.as_array()?.get(at)?;
    // An unknown truth is -1 there.
    value.as_float().filter(|value| *value >= 0.0)
}

/// Its value of a tool: `estimate`, `mb` or `s`.
pub(super) fn of_tool(tool: Tool, id: usize, number: &str) -> Option<f64> {
    let column = tool.column()?;
    match number {
        "estimate" => printed("table_2", id, column),
        _ => printed("table_3", id, &format!("{column}_{number}")),
    }
}

/// A median with its interval.
pub(super) fn middle(found: Option<Middle>, paper: Option<f64>) -> Cell {
    let ours = found.map(|found| [found.median, found.interval.0, found.interval.1]);
    Cell::Middle { ours, paper }
}

/// The true available bandwidth of a case: nothing beside TCP, else the saturated flow's rate; the paper does not know case 6's.
pub(super) fn truth(results: &Results, set_up: SetUp, id: usize) -> Option<f64> {
    if WITH_TCP.contains(&id) {
        return Some(0.0);
    }
    Some(results.median(&set_up.truth(id), "truth")?.median)
}

/// All runs of a set-up's cases.
pub(super) fn runs(set_up: SetUp, cases: &[usize], tools: &[Tool]) -> Vec<Case> {
    let tools = cases.iter().flat_map(|&id| tools.iter().map(move |&tool| set_up.tool(id, tool)));
    tools.chain(cases.iter().map(|&id| set_up.truth(id))).collect()
}

/// Table I, with what the paper leaves open.
pub(super) fn table_1() -> Table {
    let mut table =
        Table::new(&["case", "crossing", "contending", "contenders_mbps", "packets", "tcp", "queue"]);
    let queue = format!("{} packets at the access point", TESTBED.queue);
    for id in CASES {
        let of = |way: &str| {
            let all = flows(id).iter().filter(|flow| flow.0.ends_with(way));
            let all = all.map(|&(_, client, rate)| match rate {
                Some(rate) => format!("{client} UDP {rate} Mbit/s"),
                None => format!("{client} TCP"),
            });
            let all = all.collect::<Vec<_>>().join(", ");
            if all.is_empty() { "none".to_owned() } else { all }
        };
        let contends = flows(id).iter().any(|flow| flow.0.ends_with("contend"));
        let has = |tcp: bool| flows(id).iter().any(|flow| flow.2.is_none() == tcp);
        let (law, recovery, window) = TESTBED.tcp;
        let tcp =
            if has(true) { format!("{law}, {recovery}, window {window} segments") } else { "-".to_owned() };
        let size = if has(false) { format!("{} B", TESTBED.size) } else { "-".to_owned() };
        let bad = if id == BAD { "1 to 48 Mbit/s to A, 8 % of frames lost" } else { "none" };
        let rate = if contends { TESTBED.contends } else { "-" };
        let crossing = if id == BAD { bad.to_owned() } else { of("cross") };
        table.row(
            [id.to_string(), crossing, of("contend"), rate.to_owned(), size, tcp, queue.clone()]
                .map(Cell::from),
        );
    }
    table
}

/// Table II, in Mbit/s.
pub(super) fn table_2(set_up: SetUp) -> Item {
    let (id, number, shows) = match set_up.n {
        false => (
            "table-2",
            Some(Number::Table(2)),
            "medians of the available bandwidth, Mbit/s; beside TCP nothing is left",
        ),
        true => ("aggregation", None, "tables II and III on 802.11n with A-MPDU: medians, Mbit/s and s"),
    };
    const COLUMNS: [&str; 8] = [
        "case",
        "igi_ptr",
        "pathchirp_0.3",
        "pathchirp_0.207",
        "pathload",
        "wbest",
        "our_default",
        "ground_truth",
    ];
    let times = ["wbest_s", "our_default_s", "our_default_runs"];
    let columns = if set_up.n { [&COLUMNS[..], &times].concat() } else { COLUMNS.to_vec() };
    let item = Item::made(id, number, shows, runs(set_up, &CASES, &TOOLS), move |results| {
        let mut table = Table::new(&columns);
        for id in CASES {
            let paper = |tool: Tool| of_tool(tool, id, "estimate").filter(|_| !set_up.n);
            let tools =
                TOOLS.map(|tool| middle(results.median(&set_up.tool(id, tool), "estimate"), paper(tool)));
            let known = if set_up.n { None } else { printed("table_2", id, "ground_truth") };
            let truth = match WITH_TCP.contains(&id) {
                true => Cell::Exact(Some(0.0), known),
                false => middle(results.median(&set_up.truth(id), "truth"), known),
            };
            let mut row = vec![Cell::from(id.to_string())];
            row.extend(tools.into_iter().chain([truth]));
            if set_up.n {
                for tool in [Tool::Wbest, Tool::Ours] {
                    row.push(middle(results.median(&set_up.tool(id, tool), "s"), None));
                }
                let ours = set_up.tool(id, Tool::Ours);
                let (of, all) = (results.values(&ours, "estimate").len(), results.values(&ours, "s").len());
                row.push(Cell::from(format!("{of} of {all}")));
            }
            table.row(row);
        }
        table
    });
    item.runs(if set_up.n { 10 } else { RUNS })
}

/// Runs of each case [section III].
pub(super) const RUNS: u64 = 30;
/// Runs that decide claims about small differences.
pub(super) const MANY: u64 = 100;

/// Table III: MByte and s.
pub(super) fn table_3() -> Item {
    let columns = [
        "case",
        "igi_ptr_mb",
        "igi_ptr_s",
        "pathchirp_0.3_mb",
        "pathchirp_0.3_s",
        "pathchirp_0.207_mb",
        "pathchirp_0.207_s",
        "pathload_mb",
        "pathload_s",
        "wbest_mb",
        "wbest_s",
        "our_default_mb",
        "our_default_s",
        "pathload_halted",
    ];
    let shows = "medians of what is sent, MByte, and of the time, s; Pathload is halted after 100 s";
    Item::made("table-3", Number::Table(3), shows, runs(TESTBED, &CASES, &TOOLS), move |results| {
        let mut table = Table::new(&columns);
        for id in CASES {
            let mut row = vec![Cell::from(id.to_string())];
            for tool in TOOLS {
                let case = TESTBED.tool(id, tool);
                row.extend(
                    ["mb", "s"].map(|what| middle(results.median(&case, what), of_tool(tool, id, what))),
                );
            }
            let halted = results.values(&TESTBED.tool(id, Tool::Pathload), "halted");
            let count = halted.iter().filter(|halted| **halted > 0.0).count();
            row.push(Cell::from(format!("{count} of {}", halted.len())));
            table.row(row);
        }
        table
    })
    .runs(RUNS)
}

/// Boxes of one case: what is said, sent, and how long it takes.
pub(super) fn boxes(item: &'static str, figure: u32, id: usize, shows: &'static str) -> Item {
    let columns = ["tool", "quantity", "runs", "p10", "p25", "median", "p75", "p90", "paper"];
    let quantities = [("estimate", "Mbit/s"), ("mb", "MByte"), ("s", "s")];
    Item::made(item, Number::Figure(figure), shows, runs(TESTBED, &[id], &TOOLS), move |results| {
        let mut table = Table::new(&columns);
        for (number, unit) in quantities {
            let of = |tool: Tool| results.values(&TESTBED.tool(id, tool), number);
            for tool in TOOLS {
                let values = of(tool);
                let spread = Spread::of(&values);
                let at = |of: fn(&Spread) -> f64| Cell::Exact(spread.as_ref().map(of), None);
                table.row([
                    Cell::from(tool.name()),
                    Cell::from(unit),
                    Cell::from(values.len().to_string()),
                    at(|spread| spread.p10),
                    at(|spread| spread.p25),
                    at(|spread| spread.p50),
                    at(|spread| spread.p75),
                    at(|spread| spread.p90),
                    Cell::Exact(of_tool(tool, id, number), None),
                ]);
            }
            let title = match number {
                "estimate" => format!("Case {id}: available bandwidth"),
                "mb" => format!("Case {id}: volume"),
                _ => format!("Case {id}: time"),
            };
            let paper = |tool| of_tool(tool, id, number);
            let all = TOOLS.map(|tool| (tool.name().to_owned(), of(tool), paper(tool))).to_vec();
            let truth = truth(results, TESTBED, id).filter(|_| number == "estimate");
            let name = if id == UNKNOWN { "saturated flow" } else { "truth" };
            table.chart(Chart::boxes(title, unit, all).stated(truth.map(|truth| (truth, name))));
        }
        table
    })
    .runs(RUNS)
}

/// Errors of a tool in Mbit/s in all cases whose truth is known, each with another number of its run.
fn errors(results: &Results, tool: Tool, number: &str) -> Vec<(f64, f64)> {
    let known = CASES.into_iter().filter(|id| *id != UNKNOWN);
    let of = known.flat_map(|id| {
        let truth = truth(results, TESTBED, id);
        let both = results.both(&TESTBED.tool(id, tool), ["estimate", number]);
        both.into_iter().filter_map(move |(estimate, other)| Some((estimate - truth?, other)))
    });
    of.collect()
}

fn exactly(points: Vec<(f64, f64)>) -> Vec<(f64, Mean)> {
    points.into_iter().map(|(x, y)| (x, Mean::exactly(y))).collect()
}

/// Figures 14 and 15: what an answer costs against its error, of all runs.
pub(super) fn costs(item: &'static str, figure: u32, number: &'static str, shows: &'static str) -> Item {
    let columns = ["tool", "runs", "error_mbps", "absolute_error_mbps", "cost"];
    let label = if number == "s" { "time, s" } else { "volume, MByte" };
    Item::made(item, Number::Figure(figure), shows, runs(TESTBED, &CASES, &TOOLS), move |results| {
        let mut table = Table::new(&columns);
        let mut lines = Vec::new();
        for tool in TOOLS {
            let all = errors(results, tool, number);
            let of = |what: fn(&(f64, f64)) -> f64| {
                middle(Middle::of(&all.iter().map(what).collect::<Vec<_>>()), None)
            };
            table.row([
                Cell::from(tool.name()),
                Cell::from(all.len().to_string()),
                of(|run| run.0),
                of(|run| run.0.abs()),
                of(|run| run.1),
            ]);
            lines.push((tool.name().to_owned(), exactly(all)));
        }
        let title = "All cases but 6: each run".to_owned();
        table.chart(Chart::new(title, "error, Mbit/s", label, lines).scattered());
        table
    })
    .runs(RUNS)
}

/// Errors of WBest's capacity and available bandwidth, run by run, in percent [appendix E]. Where nothing is left the second is that of what
/// others take.
pub(super) fn relative_errors(results: &Results, tool: Tool) -> Vec<(usize, f64, f64)> {
    let mut all = Vec::new();
    for id in CASES.into_iter().filter(|id| *id != UNKNOWN) {
        let idle = if id == BAD { BAD } else { 0 };
        let capacity = truth(results, TESTBED, idle);
        let Some((capacity, truth)) = capacity.zip(truth(results, TESTBED, id)) else { continue };
        for (found, left) in results.both(&TESTBED.tool(id, tool), ["capacity", "estimate"]) {
            let of_left = if truth > 0.0 { left / truth - 1.0 } else { (found - left) / capacity - 1.0 };
            all.push((id, 100.0 * (found / capacity - 1.0), 100.0 * of_left));
        }
    }
    all
}

/// A cumulative distribution, in percent.
fn distribution(mut values: Vec<f64>) -> Vec<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    values.into_iter().enumerate().map(|(k, value)| (value, 100.0 * (k + 1) as f64 / n)).collect()
}

/// Figures 32 to 34.
pub(super) fn of_errors(item: &'static str, figure: u32, shows: &'static str) -> Item {
    let tools = [Tool::Wbest, Tool::Ours];
    Item::made(item, Number::Figure(figure), shows, runs(TESTBED, &CASES, &tools), move |results| {
        let mut table = Table::new(&["tool", "runs", "p10", "p25", "median", "p75", "p90"]);
        let mut lines = Vec::new();
        for tool in tools {
            let all = relative_errors(results, tool);
            let values: Vec<f64> = all.iter().map(|run| if figure == 32 { run.1 } else { run.2 }).collect();
            let spread = Spread::of(&values);
            let at = |of: fn(&Spread) -> f64| Cell::Exact(spread.as_ref().map(of), None);
            table.row([
                Cell::from(tool.name()),
                Cell::from(values.len().to_string()),
                at(|spread| spread.p10),
                at(|spread| spread.p25),
                at(|spread| spread.p50),
                at(|spread| spread.p75),
                at(|spread| spread.p90),
            ]);
            let points = match figure {
                34 => all.into_iter().map(|(_, capacity, left)| (capacity, left)).collect(),
                _ => distribution(values),
            };
            lines.push((tool.name().to_owned(), exactly(points)));
        }
        table.chart(match figure {
            32 => Chart::new("Error of the capacity", "error, %", "runs, %", lines),
            33 => Chart::new("Error of the available bandwidth", "error, %", "runs, %", lines),
            _ => Chart::new(
                "One against the other",
                "of the capacity, %",
                "of the available bandwidth, %",
                lines,
            )
            .scattered(),
        });
        table
    })
    .runs(RUNS)
}

/// The cases whose truth is above zero and known.
pub(super) const KNOWN: [usize; 6] = [0, 1, 2, 5, 9, BAD];

/// The paper's tools where the client's stamps are coarse.
pub(super) fn coarse_stamps() -> Item {
    let tools = OF_THE_PAPER.iter().flat_map(|&tool| KNOWN.map(|id| COARSE.tool(id, tool)));
    let cases = tools.chain(KNOWN.map(|id| TESTBED.truth(id))).collect();
    let shows = "table II where the client's stamps tick each 500 us, Mbit/s";
    Item::made("coarse-stamps", None, shows, cases, |results| {
        let mut table =
            Table::new(&["case", "igi_ptr", "pathchirp_0.3", "pathload", "wbest", "ground_truth"]);
        for id in KNOWN {
            let of = |tool| {
                let found = results.median(&COARSE.tool(id, tool), "estimate");
                middle(found, of_tool(tool, id, "estimate"))
            };
            let truth = results.median(&TESTBED.truth(id), "truth");
            let truth = middle(truth, printed("table_2", id, "ground_truth"));
            table.row([Cell::from(id.to_string())].into_iter().chain(OF_THE_PAPER.map(of)).chain([truth]));
        }
        table
    })
    .runs(MANY)
}

/// The four tools of the paper and ours, on 802.11n.
pub(super) fn aggregation() -> Item {
    table_2(AGGREGATING)
}

/// Of the paper's four all but WBest.
pub(super) fn others() -> impl Iterator<Item = Tool> {
    OF_THE_PAPER.into_iter().filter(|tool| *tool != Tool::Wbest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_numbers_are_found_by_case_and_tool() {
        assert_eq!(of_tool(Tool::Wbest, 2, "estimate"), Some(15.76));
        assert_eq!(of_tool(Tool::Pathload, 10, "s"), Some(80.86));
        assert_eq!(of_tool(Tool::LightChirp, 11, "mb"), Some(0.49));
        assert_eq!((of_tool(Tool::Ours, 0, "s"), printed("table_2", 6, "ground_truth")), (None, None));
        assert_eq!(printed("table_2", 0, "ground_truth"), Some(28.94));
    }

    #[test]
    fn a_distribution_by_hand() {
        assert_eq!(distribution(vec![3.0, 1.0]), [(1.0, 50.0), (3.0, 100.0)]);
    }
}
