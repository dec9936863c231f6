//! Results: one row for each quantity, method and direction, as JSON and as a table.

use lastmile::endpoint::Event;
use lastmile::endpoint::measure::{Cost, Decision};
use lastmile::estimate::{Estimate, Interval, Quantity, Refusal, TruthKind, Value};
use lastmile::options::{Choice, Given};
use lastmile::report::Direction;
use lastmile::time::Time;
use lastmile::units::Rate;
use lastmile_sim::roles::measure::Outcome;
use lastmile_sim::runs::twin::Over;
use serde::Serialize;

use crate::exit::Exit;
use crate::options::used;
use crate::table::Table;

/// One number, or why there is none. Rates are bit/s at the IP layer.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// Hosts of a scenario; absent on real networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// When the session began, in a scenario's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_seconds: Option<f64>,
    pub(crate) method: String,
    /// All options of the method as they were in force.
    pub(crate) options: Given,
    /// The method as it was asked for, with the options that were given.
    #[serde(skip)]
    pub(crate) asked: String,
    pub(crate) direction: Direction,
    pub(crate) quantity: Option<Quantity>,
    pub(crate) rate_bps: Option<u64>,
    /// A lower bound, where the path is faster than these hosts can time.
    pub(crate) more_than_bps: Option<u64>,
    /// How much in one go it was shown with, or the bucket of a shaper.
    pub(crate) burst_bytes: Option<u64>,
    pub(crate) layer: &'static str,
    pub(crate) interval: Option<IntervalRow>,
    pub(crate) truth_kind: Option<TruthKind>,
    pub(crate) warning: Option<String>,
    /// Why there is no number.
    pub(crate) refused: Option<String>,
    /// The refusal, or the warnings, in words that stay, with spaces between.
    code: Option<String>,
    #[serde(flatten)]
    pub(crate) cost: CostRow,
    #[serde(flatten)]
    pub(crate) truth: Option<TruthRow>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct IntervalRow {
    low_bps: u64,
    high_bps: u64,
    confidence: f64,
    method: lastmile::estimate::IntervalMethod,
}

/// What the session cost up to this result. Bytes are IP bytes sent by the initiator but for `bytes_received`.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct CostRow {
    pub(crate) seconds: f64,
    bytes: u64,
    probe_bytes: u64,
    control_bytes: u64,
    credit_bytes: u64,
    bytes_received: u64,
    streams: u32,
    streams_discarded: u32,
}

/// The truth beside the number, and the number's relative error against the truth of its own window (or of the
/// run, see `truth_over`): the one that the row's `truth_kind` names, and in any case what a saturating flow gets.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct TruthRow {
    truth_capacity_bps: u64,
    truth_sustained_bps: u64,
    truth_window_bps: Option<u64>,
    truth_mean_bps: Option<u64>,
    /// Which of the two a spare rate is held against.
    truth_over: Over,
    truth_saturation_window_bps: Option<u64>,
    truth_saturation_mean_bps: Option<u64>,
    error: Option<f64>,
    error_saturation: Option<f64>,
}

impl From<Cost> for CostRow {
    fn from(cost: Cost) -> CostRow {
        CostRow {
            seconds: cost.elapsed.as_secs_f64(),
            bytes: cost.bytes().0,
            probe_bytes: cost.probe_bytes.0,
            control_bytes: cost.control_bytes.0,
            credit_bytes: cost.credit_bytes.0,
            bytes_received: cost.bytes_received.0,
            streams: cost.streams,
            streams_discarded: cost.streams_discarded,
        }
    }
}

impl From<Interval> for IntervalRow {
    fn from(interval: Interval) -> IntervalRow {
        IntervalRow {
            low_bps: interval.low.bits_per_second(),
            high_bps: interval.high.bits_per_second(),
            confidence: interval.confidence,
            method: interval.method,
        }
    }
}

/// `estimate / truth - 1`, where both are there.
pub(crate) fn relative_error(estimate: Option<Rate>, truth: Option<Rate>) -> Option<f64> {
    Some(estimate?.ratio(truth?)? - 1.0)
}

/// The codes of an estimate's warnings, each once.
fn codes(estimate: &Estimate) -> Option<String> {
    let all = once(estimate.warnings.iter().map(|warning| (warning.code.code(), ())));
    (!all.is_empty()).then(|| all.iter().map(|(code, _)| *code).collect::<Vec<_>>().join(" "))
}

impl Row {
    /// The row of a decision, if it is a result.
    pub(crate) fn of(what: &Decision) -> Option<Row> {
        let (method, direction, estimate, refusal, cost) = match what {
            Decision::Estimated { method, direction, estimate, cost } => {
                (method, direction, Some(estimate), None, cost)
            }
            Decision::Refused { method, direction, refusal, cost } => {
                (method, direction, None, Some(refusal), cost)
            }
            _ => return None,
        };
        let choice: Choice = method.parse().unwrap_or_else(|_| Choice::named(method));
        let (options, value) = (used(&choice), estimate.map(|e| e.value));
        let bound = match value {
            Some(Value::MoreThan(rate)) => Some(rate.bits_per_second()),
            _ => None,
        };
        Some(Row {
            from: None,
            to: None,
            start_seconds: None,
            method: choice.name,
            options,
            asked: method.clone(),
            direction: *direction,
            quantity: estimate.map(|e| e.quantity),
            rate_bps: value.and_then(Value::rate).map(Rate::bits_per_second),
            more_than_bps: bound,
            burst_bytes: estimate.and_then(|e| e.burst).map(|burst| burst.0),
            layer: "ip",
            interval: estimate.and_then(|e| e.interval).map(IntervalRow::from),
            truth_kind: estimate.map(|e| e.truth_kind),
            warning: estimate.and_then(Estimate::warning),
            refused: refusal.map(ToString::to_string),
            code: refusal.map(Refusal::code).map(str::to_owned).or_else(|| estimate.and_then(codes)),
            cost: (*cost).into(),
            truth: None,
        })
    }

    /// Whether no stream had been sent when this was decided.
    pub(crate) fn is_before_streams(&self) -> bool {
        self.cost.probe_bytes == 0 && self.cost.streams + self.cost.streams_discarded == 0
    }

    /// The rows of a run's decisions.
    pub(crate) fn all(events: &[Event]) -> Vec<Row> {
        events.iter().filter_map(|event| Row::of(event.what.of()?)).collect()
    }

    /// The row of an outcome in a scenario, with its truth.
    pub(crate) fn of_outcome(outcome: &Outcome) -> Option<Row> {
        let (method, direction, cost) = (outcome.method.clone(), outcome.direction, outcome.cost);
        let decision = match (&outcome.estimate, &outcome.refusal) {
            (Some(estimate), _) => {
                Decision::Estimated { method, direction, estimate: estimate.clone(), cost }
            }
            (None, Some(refusal)) => Decision::Refused { method, direction, refusal: refusal.clone(), cost },
            (None, None) => return None,
        };
        let mut row = Row::of(&decision)?;
        row.from = Some(outcome.from.clone());
        row.to = Some(outcome.to.clone());
        row.start_seconds = Some((outcome.start - Time::ZERO).as_secs_f64());
        let rate = row.rate_bps.map(Rate::ip);
        row.truth = outcome.truth.map(|truth| {
            let estimate = outcome.estimate.as_ref();
            let saturation = match estimate.map(|e| e.quantity) {
                Some(Quantity::AvailableBandwidth) => truth.achievable_window,
                _ => None,
            };
            TruthRow {
                truth_capacity_bps: truth.capacity.bits_per_second(),
                truth_sustained_bps: truth.sustained.bits_per_second(),
                truth_window_bps: truth.window.map(Rate::bits_per_second),
                truth_mean_bps: truth.mean.map(Rate::bits_per_second),
                truth_over: truth.over,
                truth_saturation_window_bps: truth.achievable_window.map(Rate::bits_per_second),
                truth_saturation_mean_bps: truth.achievable_mean.map(Rate::bits_per_second),
                error: relative_error(rate, estimate.and_then(|e| truth.of(e))),
                error_saturation: relative_error(rate, saturation),
            }
        });
        Some(row)
    }

    fn value(&self) -> String {
        match (self.rate_bps, self.more_than_bps) {
            (Some(bps), _) => Rate::ip(bps).to_string(),
            (_, Some(bps)) => format!("> {}", Rate::ip(bps)),
            _ if self.quantity.is_some() => Value::Unknown.to_string(),
            _ => "none".into(),
        }
    }
}

/// The rows as a table, with what must be said beside them below it.
pub(crate) fn table(rows: &[Row]) -> String {
    let truths = rows.iter().any(|row| row.truth.is_some());
    // Only a WLAN has an achievable rate, which is another than the spare one.
    let shared = rows.iter().any(|row| row.truth.is_some_and(|t| t.truth_saturation_mean_bps.is_some()));
    // Repetitions, or sessions of other hosts.
    let several = rows.windows(2).any(|pair| pair[0].start_seconds != pair[1].start_seconds);
    let mut columns = if several { vec![">start"] } else { vec![] };
    columns.extend(["direction", "method", "quantity", ">rate (IP)", ">90 % interval", ">burst"]);
    if truths {
        columns.extend([">truth", ">error"]);
    }
    if shared {
        columns.push(">saturation");
    }
    columns.extend([">seconds", ">sent", ">received"]);
    let mut table = Table::new(&columns);
    let mut notes = Vec::new();
    for row in rows {
        let interval = row.interval.map_or_else(
            || "-".to_owned(),
            |i| format!("{} .. {}", Rate::ip(i.low_bps), Rate::ip(i.high_bps)),
        );
        let quantity = row.quantity.map_or_else(|| "-".to_owned(), |q| q.to_string());
        let start = row.start_seconds.map(|seconds| format!("{seconds} s"));
        let mut cells = if several { vec![start.clone().unwrap_or_default()] } else { vec![] };
        cells.extend([row.direction.to_string(), row.asked.clone(), quantity, row.value(), interval]);
        let burst = row.burst_bytes.map(|bytes| lastmile::units::Bytes(bytes).to_string());
        cells.push(burst.unwrap_or_else(|| "-".to_owned()));
        if truths {
            cells.push(rate_cell(row.truth.and_then(|t| match (row.quantity, row.truth_kind) {
                (Some(Quantity::Capacity), _) => Some(t.truth_capacity_bps),
                (Some(Quantity::SustainedRate), _) => Some(t.truth_sustained_bps),
                (_, Some(TruthKind::Saturation)) => t.truth_saturation_window_bps,
                (Some(_), _) if t.truth_over == Over::Window => t.truth_window_bps,
                (Some(_), _) => t.truth_mean_bps,
                (None, _) => t.truth_mean_bps,
            })));
            let error = row.truth.and_then(|t| Some((t.error?, t.truth_over)));
            cells.push(error.map_or_else(
                || "-".to_owned(),
                |(error, over)| {
                    let of_run = over == Over::Run && row.quantity == Some(Quantity::AvailableBandwidth);
                    format!("{:+.1} %{}", error * 100.0, if of_run { " (run)" } else { "" })
                },
            ));
        }
        if shared {
            cells.push(rate_cell(row.truth.and_then(|t| match row.quantity {
                Some(Quantity::AvailableBandwidth) => t.truth_saturation_window_bps,
                Some(_) => None,
                None => t.truth_saturation_mean_bps,
            })));
        }
        cells.push(format!("{:.2}", row.cost.seconds));
        cells.push(lastmile::units::Bytes(row.cost.bytes).to_string());
        cells.push(lastmile::units::Bytes(row.cost.bytes_received).to_string());
        table.row(cells);
        if let Some(why) = &row.refused {
            let at = start.filter(|_| several).map(|start| format!(" at {start}")).unwrap_or_default();
            let whose = format!("{} {}{at}", row.direction, row.asked);
            let of = |row: &Row| (row.direction, row.asked.clone(), row.start_seconds);
            let found = rows.iter().any(|other| of(other) == of(row) && other.refused.is_none());
            notes.push(format!("{whose}: {}: {why}", if found { "not complete" } else { "no result" }));
        }
    }
    for (warning, rows) in once(rows.iter().filter_map(|row| Some((row.warning.as_deref()?, row)))) {
        let Some(first) = rows.first() else { continue };
        notes.push(format!("{} {}: {}", first.direction, first.asked, counted(warning, rows.len(), "rows")));
    }
    let mut text = table.text();
    let (mut bursts, mut unknown) = (false, false);
    for row in rows.iter().filter(|row| row.burst_bytes.is_some()) {
        let sustained = row.quantity == Some(Quantity::SustainedRate);
        (bursts, unknown) = (bursts || !sustained, unknown || (sustained && row.rate_bps.is_none()));
    }
    if bursts {
        text.push_str(
            "burst: how much in one go a number was shown with; what goes on for longer may be slower\n",
        );
    }
    if unknown {
        text.push_str(
            "sustained rate: a shaper to half the capacity or less would have shown, unless its token bucket holds as much as stands beside it\n",
        );
    }
    if shared {
        text.push_str(
            "truth: what can be added without taking from others, without a number the run's mean; \
             saturation: what one saturating flow gets\n",
        );
    }
    if rows.iter().any(|row| row.truth.is_some_and(|t| t.truth_over == Over::Run)) {
        text.push_str("where stations aggregate frames, truth is known of the whole run alone, and so is the error beside it: (run)\n");
    }
    for note in notes {
        text.push_str(&note);
        text.push('\n');
    }
    text
}

fn rate_cell(bps: Option<u64>) -> String {
    bps.map_or_else(|| "-".to_owned(), |bps| Rate::ip(bps).to_string())
}

/// Each text once, in the order of its first mention, with all that it was said of.
pub(crate) fn once<'a, T>(said: impl IntoIterator<Item = (&'a str, T)>) -> Vec<(&'a str, Vec<T>)> {
    let mut found: Vec<(&str, Vec<T>)> = Vec::new();
    for (text, of) in said {
        match found.iter_mut().find(|(known, _)| *known == text) {
            Some((_, all)) => all.push(of),
            None => found.push((text, vec![of])),
        }
    }
    found
}

/// A text, and how often it was said if that was more than once.
pub(crate) fn counted(text: &str, times: usize, what: &str) -> String {
    if times > 1 { format!("{text} ({times} {what})") } else { text.to_owned() }
}

/// The exit code that rows deserve: a refusal is no success.
pub(crate) fn exit(rows: &[Row]) -> Option<Exit> {
    let refused: Vec<&str> = rows.iter().filter_map(|row| row.refused.as_deref()).collect();
    (!refused.is_empty() || rows.is_empty()).then_some(Exit::NoResult)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::estimate::{Warning, WarningCode};
    use lastmile_net::lab::lateness::CODES as LATENESS_CODES;

    #[test]
    fn every_code_is_documented() {
        let docs = include_str!("../../../../../docs/json.md");
        for code in Refusal::CODES.iter().chain(WarningCode::CODES).chain(LATENESS_CODES) {
            assert!(docs.contains(&format!("| `{code}` |")), "{code} is not in docs/json.md");
        }
        assert_eq!(Refusal::TooLossy { lost: 1, sent: 2 }.code(), "too-lossy");
        // Events have the same word.
        let event = serde_json::to_value(Refusal::ByteLimit { limit: lastmile::units::Bytes(1) }).unwrap();
        assert!(event.get("byte-limit").is_some(), "{event}");
        let warning = Warning { code: WarningCode::CoarseStamps, text: "w".into() };
        let recorded = serde_json::to_value(&warning).unwrap();
        assert_eq!(recorded, serde_json::json!({ "code": "coarse-stamps", "text": "w" }));
    }

    #[test]
    fn a_row_has_the_codes_of_its_warnings_each_once() {
        let said = |code| Warning { code, text: "w".into() };
        use WarningCode::{BatchedStamps, RoundTrip};
        let code = |warnings: Vec<Warning>| row_of(Direction::Forward, warnings).code;
        assert_eq!(code(vec![]), None);
        assert_eq!(
            code([RoundTrip, BatchedStamps, RoundTrip].map(said).into()).as_deref(),
            Some("round-trip batched-stamps")
        );
    }

    #[test]
    fn repetitions_are_told_apart_by_their_starts() {
        let started = |row: Row, at| Row { start_seconds: Some(at), ..row };
        let rows =
            [started(row(Direction::Forward, "a"), 1.0), started(interrupted(Direction::Forward), 3.5)];
        let text = table(&rows);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("start  direction") && lines[1].starts_with("  1 s  forward"), "{text}");
        assert!(lines[2].starts_with("3.5 s  forward"), "{text}");
        // What the other one found does not make this one a part.
        assert!(text.contains("forward wbest at 3.5 s: no result: interrupted"), "{text}");
        assert!(!table(&rows[..1]).contains("start"), "{text}");
    }

    fn interrupted(direction: Direction) -> Row {
        let (method, cost) = ("wbest".into(), Cost::default());
        Row::of(&Decision::Refused { method, direction, refusal: Refusal::Interrupted, cost }).unwrap()
    }

    fn row(direction: Direction, text: &str) -> Row {
        row_of(direction, vec![Warning { code: WarningCode::Other, text: text.to_owned() }])
    }

    fn row_of(direction: Direction, warnings: Vec<Warning>) -> Row {
        let estimate = Estimate {
            quantity: Quantity::Capacity,
            value: Value::Is(Rate::ip(10_000_000)),
            interval: None,
            truth_kind: TruthKind::Queue,
            burst: None,
            streams: Vec::new(),
            warnings,
        };
        let (method, cost) = ("wbest".to_owned(), Cost::default());
        Row::of(&Decision::Estimated { method, direction, estimate, cost }).unwrap()
    }

    #[test]
    fn a_warning_is_printed_once_with_the_number_of_its_rows() {
        let rows = [row(Direction::Forward, "a"), row(Direction::Forward, "b"), row(Direction::Reverse, "a")];
        let notes: Vec<String> = table(&rows).lines().skip(4).map(str::to_owned).collect();
        assert_eq!(notes, ["forward wbest: a (2 rows)", "forward wbest: b"]);
    }

    #[test]
    fn what_ended_early_is_not_called_empty() {
        let rows =
            [row(Direction::Forward, "a"), interrupted(Direction::Forward), interrupted(Direction::Reverse)];
        let text = table(&rows);
        assert!(text.contains("forward wbest: not complete: interrupted"), "{text}");
        assert!(text.contains("reverse wbest: no result: interrupted"), "{text}");
    }
}
