//! Answers to the question if a rate fits, in lines of 80 columns, and their exit code.

use lastmile::endpoint::measure::Row;
use lastmile::estimate::enough::ZONE;
use lastmile::units::{Bytes, Rate};
use lastmile_report::text::wrapped;

use super::answer::way;
use super::result::{CANNOT_TELL, once, words};
use crate::shell::WIDTH;
use crate::shell::exit::Exit;

/// The answers, a line for each direction, and below them what must be said.
pub(crate) fn answer(rows: &[Row], rate: Rate, confidence: f64, peer: &str) -> String {
    let mut text = String::new();
    let mut said: Vec<(String, String)> = Vec::new();
    // A refusal stands beside the row of what was known by then.
    let last = |row: &&Row| {
        row.answer.is_some() || !rows.iter().any(|r| r.direction == row.direction && r.answer.is_some())
    };
    for row in rows.iter().filter(last) {
        let way = way(row.direction, row.to.as_deref().unwrap_or(peer));
        let share = format!(", at {} % confidence", confidence * 100.0);
        let known = row.answer.is_some_and(|answer| answer != CANNOT_TELL);
        let share = if known { share.as_str() } else { "" };
        let words = words(row).unwrap_or_else(|| "cannot tell".to_owned());
        text += &wrapped(&format!("{rate} {way}: {words}{share}"), WIDTH);
    }
    for row in rows {
        let way = way(row.direction, row.to.as_deref().unwrap_or(peer));
        said.extend(row.refused.iter().chain(&row.warning).map(|text| (text.clone(), way.clone())));
    }
    if rows.iter().any(|row| row.answer.is_some_and(|answer| answer != CANNOT_TELL)) {
        let of = |share: f64| Rate::ip((rate.bits_per_second() as f64 * share).round() as u64);
        let zone = format!("If {} to {} are left, either answer may come.", of(1.0 - ZONE), of(1.0 + ZONE));
        text += &wrapped(&zone, WIDTH);
    }
    let shown = rows.iter().filter(|row| row.answer == Some("yes")).filter_map(|row| row.burst_bytes).min();
    if let Some(burst) = shown {
        let more = "`lastmile measure --train-length 600` looks for one";
        text += &wrapped(
            &format!("A token bucket of more than {} would not be seen: {more}.", Bytes(burst / 2)),
            WIDTH,
        );
    }
    if let Some(row) = rows.last() {
        let (bytes, back) = (Bytes(row.cost.bytes), Bytes(row.cost.bytes_received));
        text += &wrapped(&format!("{:.2} s, {bytes} sent, {back} received.", row.cost.seconds), WIDTH);
    }
    for (note, ways) in once(said.iter().map(|(text, way)| (text.as_str(), way.as_str()))) {
        text += &wrapped(&format!("{}: {note}", ways.join(", ")), WIDTH);
    }
    text
}

/// The exit code of the worst answer: no, then that it cannot be told, then only at once.
pub(crate) fn exit(rows: &[Row]) -> Option<Exit> {
    let any = |answer: &str| rows.iter().any(|row| row.answer == Some(answer));
    let unknown = rows.is_empty() || rows.iter().any(|row| row.answer.is_none()) || any(CANNOT_TELL);
    match (any("no"), unknown, any("at-once")) {
        (true, ..) => Some(Exit::NotEnough),
        (_, true, _) => Some(Exit::NoResult),
        (.., true) => Some(Exit::OnlyAtOnce),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::endpoint::measure::{Cost, Decision};
    use lastmile::estimate::{Answer, Base, Conditions, Quantity, Refusal, Value};
    use lastmile::report::Direction;

    fn row(direction: Direction, value: Value) -> Row {
        let mut estimate = Base::new(Conditions::default()).estimate(Quantity::Enough, value, &[]);
        if let Value::Answer(Answer::AtOnce(bytes)) = value {
            estimate.burst = Some(bytes);
        }
        let cost = Cost { probe_bytes: Bytes(29_808), ..Cost::default() };
        Row::of(&Decision::Estimated { method: "enough".into(), direction, estimate, cost }).unwrap()
    }

    #[test]
    fn the_worst_answer_is_the_exit_code() {
        let of = |value| row(Direction::Forward, value);
        let (yes, no) = (of(Value::Answer(Answer::Yes)), of(Value::Answer(Answer::No)));
        let (once, unknown) = (of(Value::Answer(Answer::AtOnce(Bytes(9_000)))), of(Value::Unknown));
        let cost = Cost::default();
        let refused = Decision::Refused {
            method: "enough".into(),
            direction: Direction::Reverse,
            refusal: Refusal::PeerSilent,
            cost,
        };
        let refused = Row::of(&refused).unwrap();
        let exit = |rows: &[&Row]| exit(&rows.iter().map(|row| (*row).clone()).collect::<Vec<_>>());
        assert_eq!(exit(&[&yes, &yes]), None);
        assert_eq!(exit(&[&yes, &once]), Some(Exit::OnlyAtOnce));
        assert_eq!(exit(&[&once, &unknown]), Some(Exit::NoResult));
        assert_eq!(exit(&[&unknown, &no]), Some(Exit::NotEnough));
        assert_eq!(exit(&[&yes, &refused]), Some(Exit::NoResult));
        assert_eq!(exit(&[]), Some(Exit::NoResult));
    }

    #[test]
    fn answers_come_first() {
        let rows = [
            row(Direction::Forward, Value::Answer(Answer::Yes)),
            row(Direction::Reverse, Value::Answer(Answer::AtOnce(Bytes(10_000)))),
        ];
        let text = answer(&rows, Rate::ip(5_000_000), 0.95, "host-b");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "5 Mbit/s to host-b: yes, at 95 % confidence");
        assert_eq!(lines[1], "5 Mbit/s from host-b: yes, for 10 kB at once, at 95 % confidence");
        assert_eq!(lines[2], "If 4.5 Mbit/s to 5.5 Mbit/s are left, either answer may come.");
        assert_eq!(lines[3], "0.00 s, 29.81 kB sent, 0 B received.");
        let mut unknown = [row(Direction::Forward, Value::Unknown)];
        unknown[0].warning = Some("the limit of 12 rounds".into());
        let text = answer(&unknown, Rate::ip(5_000_000), 0.95, "host-b");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, "5 Mbit/s to host-b: cannot tell"));
        assert_eq!(lines[2], "to host-b: the limit of 12 rounds");
    }

    /// A bucket as small as half of the least train would be seen, or none: a row without `burst_bytes` says so itself.
    #[test]
    fn a_bucket_is_spoken_of_where_trains_of_pairs_said_yes() {
        let mut yes = row(Direction::Forward, Value::Answer(Answer::Yes));
        let said = |row: &Row| answer(std::slice::from_ref(row), Rate::ip(5_000_000), 0.95, "host-b");
        assert!(!said(&yes).contains("bucket"), "{}", said(&yes));
        yes.burst_bytes = Some(24_000);
        assert!(said(&yes).contains("A token bucket of more than 12 kB would not be seen"), "{}", said(&yes));
    }
}
