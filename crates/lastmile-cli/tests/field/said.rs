//! The numbers of many runs of one case, judged against the truth.

use std::collections::BTreeMap;

use serde_json::Value;

use super::common::Ended;

/// The numbers that stand in tables, in this order. The middle one is said only where a shaper shows.
const NUMBERS: [&str; 3] = ["capacity", "sustained-rate", LEFT];
pub(super) const LEFT: &str = "available-bandwidth";

/// The truths of a path, in bit/s of IP packets.
#[derive(Clone, Default)]
pub(super) struct Truth {
    /// The rate that its narrowest link lets through for long.
    pub(super) narrow: f64,
    /// Numbers with the range in which their truth lies.
    pub(super) of: BTreeMap<&'static str, (f64, f64)>,
}

impl Truth {
    pub(super) fn new(narrow: f64, of: &[(&'static str, f64)]) -> Truth {
        Truth { narrow, of: of.iter().map(|(number, truth)| (*number, (*truth, *truth))).collect() }
    }

    /// The largest error of a right number: 10 %, or of available bandwidth 5 % of the capacity where that is more.
    fn tolerance(&self, number: &str, truth: f64) -> f64 {
        let least = if number == LEFT { 0.05 * self.narrow } else { 0.0 };
        (0.1 * truth).max(least)
    }

    fn is_right(&self, number: &str, rate: f64) -> Option<bool> {
        let (low, high) = *self.of.get(number)?;
        let reaches = low - self.tolerance(number, low)..=high + self.tolerance(number, high);
        Some(reaches.contains(&rate))
    }
}

/// Runs by what became of one number.
#[derive(Default)]
struct Verdicts {
    right: usize,
    /// Wrong, and its interval holds the truth.
    held: usize,
    /// Wrong, with a warning.
    warned: usize,
    /// No number, with the reason.
    refused: usize,
    /// Wrong, without any of these.
    silent: usize,
}

#[derive(Default)]
struct Number {
    rates: Vec<f64>,
    bounds: Vec<f64>,
    verdicts: Verdicts,
    codes: BTreeMap<String, usize>,
}

impl Number {
    fn add(&mut self, number: &str, row: &Value, truth: &Truth) {
        let codes = row["code"].as_str().unwrap_or_default();
        codes.split_whitespace().for_each(|code| self.code(code));
        let (rate, bound) = (row["rate_bps"].as_f64(), row["more_than_bps"].as_f64());
        let ends = row["interval"]["low_bps"].as_f64().zip(row["interval"]["high_bps"].as_f64());
        self.rates.extend(rate);
        self.bounds.extend(bound);
        let truths = truth.of.get(number);
        let holds = |(from, to): (f64, f64)| truths.is_some_and(|(low, high)| from <= *high && to >= *low);
        let right = match (rate, bound) {
            (Some(rate), _) => truth.is_right(number, rate),
            (None, Some(bound)) => truths.map(|(_, high)| bound <= high + truth.tolerance(number, *high)),
            // An interval alone says as much as it holds.
            (None, None) if ends.is_some() => Some(false),
            (None, None) => {
                self.verdicts.refused += 1;
                return;
            }
        };
        // A bound that is too high is wrong, whatever its code says of the hosts.
        let warned = !codes.is_empty() && bound.is_none();
        let verdicts = &mut self.verdicts;
        match right {
            None => {}
            Some(true) => verdicts.right += 1,
            Some(false) if ends.is_some_and(holds) => verdicts.held += 1,
            Some(false) if warned => verdicts.warned += 1,
            Some(false) => verdicts.silent += 1,
        }
    }

    fn code(&mut self, code: &str) {
        *self.codes.entry(code.to_owned()).or_default() += 1;
    }

    /// "19.82 (19.79 to 19.85); > 22.84 (22.8 to 22.9) in 3".
    fn said(&self, runs: usize) -> String {
        let range = |rates: &[f64], sign: &str| {
            let (least, most) = rates.iter().fold((f64::MAX, 0_f64), |(l, m), r| (l.min(*r), m.max(*r)));
            let of = if rates.len() == runs { String::new() } else { format!(" in {}", rates.len()) };
            (!rates.is_empty())
                .then(|| format!("{sign}{} ({} to {}){of}", mbps(median(rates)), mbps(least), mbps(most)))
        };
        let all = [range(&self.rates, ""), range(&self.bounds, "> ")];
        let all: Vec<String> = all.into_iter().flatten().collect();
        if all.is_empty() { "-".to_owned() } else { all.join("; ") }
    }
}

/// The numbers of many runs of one case.
#[derive(Default)]
pub(super) struct Said {
    runs: usize,
    numbers: BTreeMap<&'static str, Number>,
    /// Rates that are said to last: without the burst that they were shown with.
    pub(super) lasting: Vec<f64>,
    /// Warnings of whole runs, by code.
    pub(super) warned: BTreeMap<String, usize>,
    costs: Vec<(f64, f64)>,
    /// Runs that ended as if there were a number, or as if there were none, against what their rows say.
    pub(super) exits: Vec<String>,
    /// The first text of each code of refusals.
    pub(super) reasons: BTreeMap<String, String>,
}

impl Said {
    pub(super) fn add(&mut self, ended: &Ended, truth: &Truth) {
        self.runs += 1;
        // Before any stream a refusal is a line and no JSON.
        let Ok(json) = serde_json::from_str::<Value>(&ended.stdout) else {
            return self.refuse(ended.stderr.trim());
        };
        for code in json["warning_codes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            *self.warned.entry(code.to_owned()).or_default() += 1;
        }
        let rows: Vec<&Value> = json["results"].as_array().into_iter().flatten().collect();
        let most = |field: &str| rows.iter().filter_map(|row| row[field].as_f64()).fold(0.0, f64::max);
        self.costs.push((most("bytes"), most("seconds")));
        if let Some(row) = rows.iter().find(|row| row["refused"].is_string()) {
            let code = row["code"].as_str().unwrap_or_default();
            self.refuse(code);
            let text = row["refused"].as_str().unwrap_or_default();
            self.reasons.entry(code.to_owned()).or_insert_with(|| text.to_owned());
        }
        let left = rows.iter().find(|row| row["quantity"] == LEFT);
        let known = left.is_some_and(|row| row["rate_bps"].is_number() || row["interval"].is_object());
        if known != (ended.code == Some(0)) {
            self.exits.push(format!("exit code {:?} beside {left:?}", ended.code));
        }
        for row in rows {
            let Some(number) = NUMBERS.into_iter().find(|number| row["quantity"] == *number) else {
                continue;
            };
            self.numbers.entry(number).or_default().add(number, row, truth);
            let lasts = number == "sustained-rate" || row["burst_bytes"].is_null();
            self.lasting.extend(row["rate_bps"].as_f64().filter(|_| lasts));
        }
    }

    /// A refusal is of all that was asked for.
    fn refuse(&mut self, code: &str) {
        for number in ["capacity", LEFT] {
            let number = self.numbers.entry(number).or_default();
            number.verdicts.refused += 1;
            number.code(code);
        }
    }

    pub(super) fn has_rates(&self) -> bool {
        self.numbers.values().any(|number| !number.rates.is_empty())
    }

    /// Numbers that are wrong in silence in more than one run of twenty.
    pub(super) fn silent(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let limit = (self.runs / 20).max(1);
        self.numbers.iter().map(|(number, of)| (*number, of.verdicts.silent)).filter(move |(_, n)| *n > limit)
    }

    /// A line for each number that was said.
    pub(super) fn lines(&self, case: &str, truth: &Truth) -> Vec<String> {
        let cost = |of: fn(&(f64, f64)) -> f64| median(&self.costs.iter().map(of).collect::<Vec<_>>());
        let cost = if self.costs.is_empty() {
            "-".to_owned()
        } else {
            format!("{:.0} kB, {:.2} s", cost(|c| c.0) / 1e3, cost(|c| c.1))
        };
        let mut lines = Vec::new();
        for number in NUMBERS {
            // On most paths nothing shows a shaper, and each run says that the sustained rate is unknown.
            let said = |of: &&Number| number != "sustained-rate" || !of.rates.is_empty();
            let Some(of) = self.numbers.get(number).filter(said) else { continue };
            let truth = truth.of.get(number);
            let v = &of.verdicts;
            let count = |n: usize| truth.map_or_else(|| "-".to_owned(), |_| n.to_string());
            let truth = truth.map_or_else(
                || "-".to_owned(),
                |(low, high)| match (mbps(*low), mbps(*high)) {
                    (low, high) if low == high => low,
                    (low, high) => format!("{low} to {high}"),
                },
            );
            let first = lines.is_empty();
            let whole = self.warned.iter().filter(|_| first);
            let codes: Vec<String> =
                of.codes.iter().chain(whole).map(|(code, n)| format!("{code} {n}")).collect();
            let (case, cost) = if first { (case, cost.as_str()) } else { ("", "") };
            lines.push(format!(
                "| {case} | {number} | {} | {truth} | {} | {} | {} | {} | {} | {} | {} | {cost} |",
                self.runs,
                of.said(self.runs),
                count(v.right),
                count(v.held),
                count(v.warned),
                v.refused,
                count(v.silent),
                codes.join(", "),
            ));
        }
        lines
    }
}

fn mbps(rate: f64) -> String {
    format!("{:.2}", rate / 1e6)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[test]
fn numbers_are_judged_by_what_stands_beside_them() {
    let truth = Truth::new(10e6, &[("capacity", 10e6), (LEFT, 1e6)]);
    let row = |quantity: &str, rate: Option<f64>, interval: Option<(f64, f64)>, code: &str| {
        let interval = interval.map(|(low, high)| serde_json::json!({"low_bps": low, "high_bps": high}));
        serde_json::json!({"quantity": quantity, "rate_bps": rate, "interval": interval, "code": code})
    };
    let judged = |row: Value| {
        let mut number = Number::default();
        number.add(if row["quantity"] == LEFT { LEFT } else { "capacity" }, &row, &truth);
        let v = number.verdicts;
        [v.right, v.held, v.warned, v.refused, v.silent]
    };
    assert_eq!(judged(row("capacity", Some(10.9e6), None, "")), [1, 0, 0, 0, 0]);
    assert_eq!(judged(row("capacity", Some(11.1e6), Some((9.9e6, 12e6)), "")), [0, 1, 0, 0, 0]);
    assert_eq!(judged(row("capacity", Some(11.1e6), Some((11e6, 12e6)), "")), [0, 0, 0, 0, 1]);
    assert_eq!(judged(row("capacity", Some(11.1e6), Some((11e6, 12e6)), "scattered")), [0, 0, 1, 0, 0]);
    // Five percent of the capacity are more than a tenth of this.
    assert_eq!(judged(row(LEFT, Some(1.4e6), None, "")), [1, 0, 0, 0, 0]);
    assert_eq!(judged(row(LEFT, Some(1.6e6), None, "")), [0, 0, 0, 0, 1]);
    assert_eq!(judged(row(LEFT, None, Some((0.0, 9e6)), "too-wide")), [0, 1, 0, 0, 0]);
    assert_eq!(judged(row(LEFT, None, None, "lower-bound")), [0, 0, 0, 1, 0]);
    let bound =
        |bps: f64| serde_json::json!({"quantity": "capacity", "more_than_bps": bps, "code": "lower-bound"});
    assert_eq!((judged(bound(9e6)), judged(bound(12e6))), ([1, 0, 0, 0, 0], [0, 0, 0, 0, 1]));
}
