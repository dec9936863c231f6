//! Results as a table of text, and the exit code that they deserve.

use lastmile::endpoint::measure::{IntervalRow, Row, TruthRow};
use lastmile::estimate::{Answer, Quantity, TruthKind, TruthOver, Value};
use lastmile::units::{Bytes, Rate};

use lastmile_report::text::Table;

use super::load;
use crate::shell::exit::Exit;

pub(super) const CANNOT_TELL: &str = "cannot-tell";

/// A row's answer in words, if it is one.
pub(super) fn words(row: &Row) -> Option<String> {
    Some(match (row.answer?, row.burst_bytes) {
        ("at-once", Some(bytes)) => Answer::AtOnce(Bytes(bytes)).to_string(),
        (CANNOT_TELL, _) => "cannot tell".to_owned(),
        (answer, _) => answer.to_owned(),
    })
}

/// The number, a bound, or that there is none.
fn value(row: &Row) -> String {
    match (row.rate_bps, row.more_than_bps) {
        _ if row.answer.is_some() => words(row).unwrap_or_default(),
        (Some(bps), _) => Rate::ip(bps).to_string(),
        (_, Some(bps)) => format!("> {}", Rate::ip(bps)),
        _ if row.quantity.is_some() => Value::Unknown.to_string(),
        _ => "none".into(),
    }
}

fn interval(of: Option<IntervalRow>) -> String {
    of.map_or_else(|| "-".to_owned(), |i| format!("{} .. {}", Rate::ip(i.low_bps), Rate::ip(i.high_bps)))
}

/// A column: its heading, and its cell in a row.
struct Column(&'static str, Box<dyn Fn(&Row) -> String>);

/// The columns that these rows fill.
fn columns(rows: &[Row]) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    let mut add = |shown: bool, heading, cell: fn(&Row) -> String| {
        columns.extend(shown.then(|| Column(heading, Box::new(cell))));
    };
    let (truths, next, loads) = (has_truth(rows), has_next(rows), load::is_all(rows));
    add(is_several(rows), ">start", |row| start(row).unwrap_or_default());
    add(true, "direction", |row| row.direction.to_string());
    add(true, "method", |row| row.asked.clone());
    add(true, "quantity", |row| row.quantity.map_or_else(|| "-".to_owned(), |quantity| quantity.to_string()));
    add(true, ">rate (IP)", value);
    add(true, ">90 % interval", |row| interval(row.interval));
    // Only what is left may be another next.
    add(next, ">next 10 s", |row| interval(row.next));
    add(true, ">burst", |row| {
        row.burst_bytes.map_or_else(|| "-".to_owned(), |bytes| Bytes(bytes).to_string())
    });
    add(truths, ">truth", |row| rate_cell(row.truth.and_then(|truth| true_rate(row, &truth))));
    add(truths, ">error", |row| {
        row.truth.and_then(|truth| error(row, &truth)).unwrap_or_else(|| "-".to_owned())
    });
    add(truths && next, ">truth of next", |row| {
        rate_cell(row.truth.filter(|_| row.next.is_some()).and_then(|truth| truth.truth_next_bps))
    });
    add(is_shared(rows), ">saturation", |row| {
        rate_cell(row.truth.and_then(|t| match row.quantity {
            Some(Quantity::AvailableBandwidth) => t.truth_saturation_window_bps,
            Some(_) => None,
            None => t.truth_saturation_mean_bps,
        }))
    });
    add(!loads, ">seconds", |row| format!("{:.2}", row.cost.seconds));
    add(!loads, ">sent", |row| Bytes(row.cost.bytes).to_string());
    add(!loads, ">received", |row| Bytes(row.cost.bytes_received).to_string());
    let beside_tcp: &[&str] = if load::has_tcp(rows) { &load::TCP } else { &[] };
    for (at, heading) in load::LOADS.iter().chain(beside_tcp).enumerate().filter(|_| loads) {
        let cell = move |row: &Row| row.load.map(|load| load::cells(&load, true).swap_remove(at));
        columns.push(Column(heading, Box::new(move |row| cell(row).unwrap_or_default())));
    }
    columns
}

fn has_truth(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.truth.is_some())
}

fn has_next(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.next.is_some())
}

/// True if a WLAN is on the path: its achievable rate is another than the spare one.
fn is_shared(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.truth.is_some_and(|truth| truth.truth_saturation_mean_bps.is_some()))
}

/// True of repetitions, and of sessions of other hosts.
fn is_several(rows: &[Row]) -> bool {
    rows.windows(2).any(|pair| pair[0].start_seconds != pair[1].start_seconds)
}

fn start(row: &Row) -> Option<String> {
    row.start_seconds.map(|seconds| format!("{seconds} s"))
}

/// The rows as a table; below it the meaning of columns, refusals and warnings.
pub(crate) fn table(rows: &[Row]) -> String {
    let columns = columns(rows);
    let mut table = Table::new(&columns.iter().map(|Column(heading, _)| *heading).collect::<Vec<_>>());
    for row in rows {
        table.row(columns.iter().map(|Column(_, cell)| cell(row)));
    }
    let lines = explained(rows).into_iter().chain(refusals(rows)).chain(warnings(rows));
    table.text() + &lines.map(|line| line + "\n").collect::<String>()
}

/// The meaning of the columns that need one.
fn explained(rows: &[Row]) -> Vec<String> {
    let is_sustained = |row: &&Row| row.quantity == Some(Quantity::SustainedRate);
    let bursts = || rows.iter().filter(|row| row.burst_bytes.is_some());
    let is_unseen = |row: &Row| row.rate_bps.is_none() && row.interval.is_none();
    let of_run = |row: &Row| row.truth.is_some_and(|truth| truth.truth_over == TruthOver::Run);
    let all = [
        (
            bursts().any(|row| !is_sustained(&row)),
            "burst: bytes sent in one go when the number was found; longer bursts may be slower",
        ),
        (
            bursts().filter(is_sustained).any(is_unseen),
            "sustained rate unknown: there is no shaper to half the capacity or less, unless its token bucket holds the burst beside it",
        ),
        (
            has_next(rows),
            "90 % interval: for the time of the measurement; next 10 s: for the mean of the ten seconds after it",
        ),
        (
            is_shared(rows),
            "truth: the rate that fits without taking from others, the run's mean if there is no number; \
             saturation: the rate of one saturating flow",
        ),
        (
            rows.iter().any(of_run),
            "(run): truth and error over the whole run, since stations aggregate frames or packets arrived at once",
        ),
    ];
    let loads = load::is_all(rows).then(|| load::explained(load::has_tcp(rows)));
    let said = all.into_iter().filter(|(is_said, _)| *is_said).map(|(_, text)| text.to_owned());
    said.chain(loads).collect()
}

/// The reasons of missing numbers.
fn refusals(rows: &[Row]) -> Vec<String> {
    let several = is_several(rows);
    let refusal = |row: &Row| {
        let why = load::reason(row)?;
        let at = start(row).filter(|_| several).map(|start| format!(" at {start}")).unwrap_or_default();
        let of = |row: &Row| (row.direction, row.asked.clone(), row.start_seconds);
        let found = rows.iter().any(|other| of(other) == of(row) && other.refused.is_none());
        let what = match (why, found) {
            (load::NOT_RUN, _) => "",
            (_, true) => "not complete: ",
            (_, false) => "no result: ",
        };
        Some(format!("{} {}{at}: {what}{why}", row.direction, row.asked))
    };
    rows.iter().filter_map(refusal).collect()
}

/// Each warning, with its directions and methods.
fn warnings(rows: &[Row]) -> Vec<String> {
    let whose = |row: &Row| format!("{} {}", row.direction, row.asked);
    let said = rows.iter().flat_map(|row| row.warnings.iter().map(move |text| (text.as_str(), whose(row))));
    let line =
        |(text, whose): (&str, Vec<String>)| format!("{}: {text}", listed(whose.iter().map(String::as_str)));
    once(said).into_iter().map(line).collect()
}

/// The truth that a number is held against, in bit/s.
pub(super) fn true_rate(row: &Row, truth: &TruthRow) -> Option<u64> {
    match (row.quantity, row.truth_kind) {
        (Some(Quantity::Capacity), _) => Some(truth.truth_capacity_bps),
        (Some(Quantity::ShortestExchange), _) => truth.truth_shortest_bps,
        (Some(Quantity::SustainedRate), _) => Some(truth.truth_sustained_bps),
        (_, Some(TruthKind::Saturation)) => truth.truth_saturation_window_bps,
        (Some(_), _) if truth.truth_over == TruthOver::Window => truth.truth_window_bps,
        _ => truth.truth_mean_bps,
    }
}

/// The number's error: as a share of its truth or, where that is zero, as a rate.
fn error(row: &Row, truth: &TruthRow) -> Option<String> {
    let of_run = truth.truth_over == TruthOver::Run && row.quantity == Some(Quantity::AvailableBandwidth);
    let of_run = if of_run { " (run)" } else { "" };
    Some(match (truth.error, truth.error_bps?) {
        (Some(error), _) => format!("{:+.1} %{of_run}", error * 100.0),
        (None, bps) => format!("+{}{of_run}", Rate::ip(bps.unsigned_abs())),
    })
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

/// Each name once, in the order of its first mention.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let each = once(names.into_iter().map(|name| (name, ())));
    each.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ")
}

/// A text, and how often it was said if that was more than once.
pub(crate) fn counted(text: &str, times: usize, what: &str) -> String {
    if times > 1 { format!("{text} ({times} {what})") } else { text.to_owned() }
}

/// The exit code that rows deserve: neither a refusal nor an unknown rest is a success.
pub(crate) fn exit<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<Exit> {
    let missing = |row: &Row| {
        let unknown = row.rate_bps.is_none() && row.interval.is_none();
        let left = row.quantity == Some(Quantity::AvailableBandwidth) && unknown;
        row.refused.is_some() || left || row.answer == Some(CANNOT_TELL)
    };
    let rows: Vec<&Row> = rows.into_iter().collect();
    if rows.iter().any(|row| row.load.is_some()) {
        // Of all methods some have no number on any path.
        return (!rows.into_iter().any(load::is_found)).then_some(Exit::NoResult);
    }
    let mut rows = rows.into_iter().peekable();
    (rows.peek().is_none() || rows.any(missing)).then_some(Exit::NoResult)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::endpoint::measure::IntervalRow;
    use lastmile::endpoint::measure::{Cost, Decision};
    use lastmile::estimate::{Estimate, IntervalMethod, Refusal, Warning, WarningCode};
    use lastmile::report::Direction;
    use lastmile_net::lab::lateness::CODES as LATENESS_CODES;

    #[test]
    fn every_code_is_documented() {
        let docs = include_str!("../../../../../docs/json.md");
        for code in Refusal::CODES.iter().chain(WarningCode::CODES).chain(LATENESS_CODES) {
            assert!(docs.contains(&format!("| `{code}` |")), "{code} is not in docs/json.md");
        }
        assert_eq!(Refusal::TooLossy { lost: 1, sent: 2 }.code(), "too-lossy");
        // Events have the same word.
        let event = serde_json::to_value(Refusal::ByteLimit { limit: Bytes(1) }).unwrap();
        assert!(event.get("byte-limit").is_some(), "{event}");
        let warning = Warning { code: WarningCode::CoarseStamps, text: "w".into() };
        let recorded = serde_json::to_value(&warning).unwrap();
        assert_eq!(recorded, serde_json::json!({ "code": "coarse-stamps", "text": "w" }));
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
        // The other session's result does not make this one partial.
        assert!(text.contains("forward wbest at 3.5 s: no result: interrupted"), "{text}");
        assert!(!table(&rows[..1]).contains("start"), "{text}");
    }

    fn interrupted(direction: Direction) -> Row {
        let (method, cost) = ("wbest".into(), Cost::default());
        Row::of(&Decision::Refused { method, direction, refusal: Refusal::Interrupted, cost }).unwrap()
    }

    fn row(direction: Direction, text: &str) -> Row {
        let estimate = Estimate {
            quantity: Quantity::Capacity,
            value: Value::Is(Rate::ip(10_000_000)),
            interval: None,
            next: None,
            truth_kind: TruthKind::Queue,
            burst: None,
            packet_size: None,
            streams: Vec::new(),
            warnings: vec![Warning { code: WarningCode::Other, text: text.to_owned() }],
        };
        let (method, cost) = ("wbest".to_owned(), Cost::default());
        Row::of(&Decision::Estimated { method, direction, estimate, cost }).unwrap()
    }

    #[test]
    fn a_warning_is_printed_once_with_its_directions() {
        let rows = [row(Direction::Forward, "a"), row(Direction::Forward, "b"), row(Direction::Reverse, "a")];
        let notes: Vec<String> = table(&rows).lines().skip(4).map(str::to_owned).collect();
        assert_eq!(notes, ["forward wbest, reverse wbest: a", "forward wbest: b"]);
    }

    #[test]
    fn an_unknown_rest_is_no_success() {
        let known = row(Direction::Forward, "a");
        let unknown = Row { quantity: Some(Quantity::AvailableBandwidth), rate_bps: None, ..known.clone() };
        let sustained = Row { quantity: Some(Quantity::SustainedRate), rate_bps: None, ..known.clone() };
        assert_eq!(exit(&[known.clone(), sustained]), None);
        let range = IntervalRow {
            low_bps: 4_000_000,
            high_bps: 6_000_000,
            confidence: 0.9,
            method: IntervalMethod::PairsAndTrains,
        };
        let bounded = Row { interval: Some(range), ..unknown.clone() };
        assert_eq!(exit(&[known.clone(), bounded]), None, "a range says what is left");
        assert_eq!(exit(&[known, unknown]), Some(Exit::NoResult));
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
