//! Results as a table.

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

/// The rows as a table, with what must be said beside them below it.
pub(crate) fn table(rows: &[Row]) -> String {
    let truths = rows.iter().any(|row| row.truth.is_some());
    // Only a WLAN has an achievable rate, which is another than the spare one.
    let shared = rows.iter().any(|row| row.truth.is_some_and(|t| t.truth_saturation_mean_bps.is_some()));
    // Repetitions, or sessions of other hosts.
    let several = rows.windows(2).any(|pair| pair[0].start_seconds != pair[1].start_seconds);
    let mut columns = if several { vec![">start"] } else { vec![] };
    // Only what is left may be another next.
    let next = rows.iter().any(|row| row.next.is_some());
    columns.extend(["direction", "method", "quantity", ">rate (IP)", ">90 % interval"]);
    columns.extend(next.then_some(">next 10 s"));
    columns.push(">burst");
    if truths {
        columns.extend([">truth", ">error"]);
        columns.extend(next.then_some(">truth of next"));
    }
    if shared {
        columns.push(">saturation");
    }
    let (loads, tcp) = (load::is_all(rows), load::has_tcp(rows));
    match loads {
        true => columns.extend(load::LOADS.into_iter().chain(tcp.then_some(load::TCP).into_iter().flatten())),
        false => columns.extend([">seconds", ">sent", ">received"]),
    }
    let mut table = Table::new(&columns);
    let mut notes = Vec::new();
    for row in rows {
        let quantity = row.quantity.map_or_else(|| "-".to_owned(), |q| q.to_string());
        let start = row.start_seconds.map(|seconds| format!("{seconds} s"));
        let mut cells = if several { vec![start.clone().unwrap_or_default()] } else { vec![] };
        cells.extend([
            row.direction.to_string(),
            row.asked.clone(),
            quantity,
            value(row),
            interval(row.interval),
        ]);
        cells.extend(next.then(|| interval(row.next)));
        let burst = row.burst_bytes.map(|bytes| Bytes(bytes).to_string());
        cells.push(burst.unwrap_or_else(|| "-".to_owned()));
        if truths {
            cells.push(rate_cell(row.truth.and_then(|truth| true_rate(row, &truth))));
            cells.push(row.truth.and_then(|truth| error(row, &truth)).unwrap_or_else(|| "-".to_owned()));
            let later = row.truth.filter(|_| row.next.is_some()).and_then(|truth| truth.truth_next_bps);
            cells.extend(next.then(|| rate_cell(later)));
        }
        if shared {
            cells.push(rate_cell(row.truth.and_then(|t| match row.quantity {
                Some(Quantity::AvailableBandwidth) => t.truth_saturation_window_bps,
                Some(_) => None,
                None => t.truth_saturation_mean_bps,
            })));
        }
        match row.load.filter(|_| loads) {
            Some(load) => cells.extend(load::cells(&load, tcp)),
            None => cells.extend([
                format!("{:.2}", row.cost.seconds),
                Bytes(row.cost.bytes).to_string(),
                Bytes(row.cost.bytes_received).to_string(),
            ]),
        }
        table.row(cells);
        if let Some(why) = load::reason(row) {
            let at = start.filter(|_| several).map(|start| format!(" at {start}")).unwrap_or_default();
            let whose = format!("{} {}{at}", row.direction, row.asked);
            let of = |row: &Row| (row.direction, row.asked.clone(), row.start_seconds);
            let found = rows.iter().any(|other| of(other) == of(row) && other.refused.is_none());
            let what = if found { "not complete: " } else { "no result: " };
            let what = if why == load::NOT_RUN { "" } else { what };
            notes.push(format!("{whose}: {what}{why}"));
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
        let unseen = sustained && row.rate_bps.is_none() && row.interval.is_none();
        (bursts, unknown) = (bursts || !sustained, unknown || unseen);
    }
    if bursts {
        text.push_str("burst: bytes sent in one go when the number was found; longer bursts may be slower\n");
    }
    if unknown {
        text.push_str(
            "sustained rate unknown: there is no shaper to half the capacity or less, unless its token bucket holds the burst beside it\n",
        );
    }
    if next {
        text.push_str(
            "90 % interval: for the time of the measurement; next 10 s: for the mean of the ten seconds after it\n",
        );
    }
    if shared {
        text.push_str(
            "truth: the rate that fits without taking from others, the run's mean if there is no number; \
             saturation: the rate of one saturating flow\n",
        );
    }
    if rows.iter().any(|row| row.truth.is_some_and(|t| t.truth_over == TruthOver::Run)) {
        text.push_str("(run): truth and error over the whole run, since stations aggregate frames or packets arrived at once\n");
    }
    if loads {
        text.push_str(&format!("{}\n", load::explained(tcp)));
    }
    for note in notes {
        text.push_str(&note);
        text.push('\n');
    }
    text
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
    fn a_warning_is_printed_once_with_the_number_of_its_rows() {
        let rows = [row(Direction::Forward, "a"), row(Direction::Forward, "b"), row(Direction::Reverse, "a")];
        let notes: Vec<String> = table(&rows).lines().skip(4).map(str::to_owned).collect();
        assert_eq!(notes, ["forward wbest: a (2 rows)", "forward wbest: b"]);
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
