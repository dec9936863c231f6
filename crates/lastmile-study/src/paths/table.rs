//! Shares of right and wrong numbers, by method and feature.

use std::borrow::Cow;

use lastmile::estimate::Quantity;
use lastmile::observe::stats::{quantile, share_interval};
use lastmile::report::Direction;
use lastmile::units::Bytes;
use lastmile_report::text::{Table as Rows, Text};
use serde::Serialize;

use super::features::TAGS;
use super::judge::{Number, Verdict};
use super::{Answer, Measured};

/// Numbers of one method that have something in common.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The method, with its options.
    pub method: String,
    /// The row's name: the common trait of its numbers.
    pub row: String,
    /// Numbers with a truth.
    pub n: usize,
    /// Right numbers.
    pub right: usize,
    /// Wrong, in an interval that holds the truth.
    pub held: usize,
    /// Wrong, with a warning.
    pub warned: usize,
    /// Wrong without a word.
    pub silent: usize,
    /// The last one's share.
    pub silent_share: Option<f64>,
    /// The lower end of its 95 % interval (Wilson).
    pub silent_low: Option<f64>,
    /// The upper end.
    pub silent_high: Option<f64>,
    /// Right, without a warning and in a narrow interval.
    pub kept: usize,
    /// Questions without a number.
    pub refused: usize,
    /// Numbers without a truth.
    pub unjudged: usize,
    /// Intervals with a truth.
    pub intervals: usize,
    /// Those of them that hold it.
    pub holding: usize,
    /// The mean score of the intervals.
    pub score: Option<f64>,
    /// Intervals of the next 10 s with a truth.
    pub nexts: usize,
    /// Those of them that hold it.
    pub next_holding: usize,
}

/// Numbers beside which a warning stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Warned {
    /// The method, with its options.
    pub method: String,
    /// The warning's code, or the refusal's.
    pub code: Cow<'static, str>,
    /// True if it is a refusal's.
    pub refusal: bool,
    /// Numbers beside it.
    pub n: usize,
    /// Those of them that are wrong.
    pub wrong: usize,
}

/// Bytes and seconds of answers, medians.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// The method, with its options.
    pub method: String,
    /// True if others had traffic on the way.
    pub loaded: bool,
    /// Answers.
    pub n: usize,
    /// Bytes in one direction.
    pub bytes: Option<f64>,
    /// Seconds for one direction.
    pub seconds: Option<f64>,
}

/// All that is said of measured paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// By method and feature.
    pub rows: Vec<Row>,
    /// By warning and refusal.
    pub codes: Vec<Warned>,
    /// By method.
    pub costs: Vec<Cost>,
}

/// Shares of right and wrong numbers, by method and feature.
pub fn table(measured: &Measured) -> Table {
    let mut methods: Vec<&str> = Vec::new();
    for answer in &measured.answers {
        if !methods.contains(&&*answer.method) {
            methods.push(&answer.method);
        }
    }
    let mut table = Table::default();
    for method in methods {
        let numbers: Vec<&Number> =
            measured.numbers.iter().filter(|number| number.method == method).collect();
        table.rows.extend(rows(method, &numbers));
        table.codes.extend(codes(method, &numbers));
        let answers =
            measured.answers.iter().filter(|answer| answer.method == method && answer.refusal.is_none());
        let answers: Vec<&Answer> = answers.collect();
        table.costs.extend([false, true].map(|loaded| cost(method, loaded, &answers)));
    }
    table
}

fn rows(method: &str, numbers: &[&Number]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |name: String, has: &dyn Fn(&Number) -> bool| {
        let own: Vec<&Number> = numbers.iter().copied().filter(|number| has(number)).collect();
        if !own.is_empty() {
            rows.push(row(method, name, &own));
        }
    };
    add("all".to_owned(), &|number| !number.changed);
    let (capacity, shortest) = (Quantity::Capacity, Quantity::ShortestExchange);
    for quantity in [capacity, shortest, Quantity::SustainedRate, Quantity::AvailableBandwidth] {
        add(quantity.to_string(), &|number| !number.changed && number.quantity == quantity);
    }
    for direction in [Direction::Forward, Direction::Reverse] {
        add(direction.to_string(), &|number| !number.changed && number.direction == direction);
    }
    for tag in TAGS {
        add((*tag).to_owned(), &|number| !number.changed && number.tags.iter().any(|own| own == tag));
    }
    add("rates change under way".to_owned(), &|number| number.changed);
    rows
}

fn row(method: &str, name: String, numbers: &[&Number]) -> Row {
    let count = |verdict| numbers.iter().filter(|number| number.verdict == verdict).count();
    let [right, held, warned, silent] =
        [Verdict::Right, Verdict::Held, Verdict::Warned, Verdict::Silent].map(count);
    let n = right + held + warned + silent;
    let interval = share_interval(silent, n, 0.95);
    let holds = numbers.iter().filter_map(|number| number.holds);
    let nexts = numbers.iter().filter_map(|number| number.next_holds);
    let scores: Vec<f64> = numbers.iter().filter_map(|number| number.score).collect();
    Row {
        method: method.to_owned(),
        row: name,
        n,
        right,
        held,
        warned,
        silent,
        silent_share: interval.map(|_| silent as f64 / n as f64),
        silent_low: interval.map(|(low, _)| low),
        silent_high: interval.map(|(_, high)| high),
        kept: numbers.iter().filter(|number| number.kept).count(),
        refused: count(Verdict::Refused),
        unjudged: count(Verdict::Unjudged),
        intervals: holds.clone().count(),
        holding: holds.filter(|&holds| holds).count(),
        score: lastmile::observe::stats::mean(&scores),
        nexts: nexts.clone().count(),
        next_holding: nexts.filter(|&holds| holds).count(),
    }
}

fn codes(method: &str, numbers: &[&Number]) -> Vec<Warned> {
    let mut codes: Vec<Warned> = Vec::new();
    for number in numbers.iter().filter(|number| number.verdict != Verdict::Unjudged) {
        let refusal = number.verdict == Verdict::Refused;
        let wrong = usize::from(!refusal && number.verdict != Verdict::Right);
        for code in &number.codes {
            match codes.iter_mut().find(|known| (&known.code, known.refusal) == (code, refusal)) {
                Some(known) => (known.n, known.wrong) = (known.n + 1, known.wrong + wrong),
                None => {
                    codes.push(Warned { method: method.to_owned(), code: code.clone(), refusal, n: 1, wrong })
                }
            }
        }
    }
    codes.sort_by_key(|code| (code.refusal, std::cmp::Reverse(code.n)));
    codes
}

fn cost(method: &str, loaded: bool, answers: &[&Answer]) -> Cost {
    let own = || answers.iter().filter(|answer| answer.loaded == loaded);
    let median =
        |of: &dyn Fn(&Answer) -> f64| quantile(&own().map(|answer| of(answer)).collect::<Vec<_>>(), 0.5);
    Cost {
        method: method.to_owned(),
        loaded,
        n: own().count(),
        bytes: median(&|answer| answer.bytes as f64),
        seconds: median(&|answer| answer.seconds),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn of(k: usize, n: usize) -> String {
    if n == 0 { "-".to_owned() } else { percent(k as f64 / n as f64) }
}

/// The tables for people.
pub fn text(table: &Table) -> Text {
    let mut text = Text::default();
    let columns = [
        "numbers",
        ">n",
        ">right",
        ">held",
        ">warned",
        ">silent",
        ">95 %",
        "~>kept",
        ">refused",
        "~>intervals",
        "~>hold",
        "~>score",
        "~>next 10 s",
        "~>hold",
    ];
    let mut methods: Vec<&str> = table.rows.iter().map(|row| &*row.method).collect();
    methods.dedup();
    for method in methods {
        let mut shown = Rows::new(&columns);
        for row in table.rows.iter().filter(|row| row.method == method) {
            let interval = row.silent_low.zip(row.silent_high);
            let interval = interval.map(|(low, high)| format!("{:.1} to {}", low * 100.0, percent(high)));
            shown.row([
                row.row.clone(),
                row.n.to_string(),
                of(row.right, row.n),
                of(row.held, row.n),
                of(row.warned, row.n),
                of(row.silent, row.n),
                interval.unwrap_or_else(|| "-".to_owned()),
                of(row.kept, row.n),
                of(row.refused, row.n + row.refused),
                row.intervals.to_string(),
                of(row.holding, row.intervals),
                row.score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}")),
                row.nexts.to_string(),
                of(row.next_holding, row.nexts),
            ]);
        }
        text.say(method);
        text.table(shown);
        text.say("");
    }
    let mut codes = Rows::new(&["method", "code", ">numbers", ">wrong"]);
    for code in &table.codes {
        let wrong = if code.refusal { "refused".to_owned() } else { of(code.wrong, code.n) };
        codes.row([code.method.clone(), code.code.to_string(), code.n.to_string(), wrong]);
    }
    let mut costs = Rows::new(&["method", "path", ">answers", ">bytes", ">seconds"]);
    for cost in &table.costs {
        costs.row([
            cost.method.clone(),
            if cost.loaded { "loaded" } else { "idle" }.to_owned(),
            cost.n.to_string(),
            cost.bytes.map_or_else(|| "-".to_owned(), |bytes| Bytes(bytes as u64).to_string()),
            cost.seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.2}")),
        ]);
    }
    text.table(codes);
    text.say("");
    text.table(costs);
    text
}
