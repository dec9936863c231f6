//! Results of `all` in 80 columns: for each direction the numbers of all methods, and below them the load of each on the path.

use std::collections::BTreeSet;

use lastmile::endpoint::measure::Row;
use lastmile::estimate::Quantity;
use lastmile_report::text::{Table, wrapped};

use super::answer::{Unit, label};
use super::load::{LOADS, NOT_RUN, TCP, cells, explained, has_tcp, reason};
use super::result::{listed, once, true_rate};
use crate::shell::WIDTH;

/// The results of sessions in lines of 80 columns.
pub(super) fn screen(rows: &[Row], peer: &str) -> String {
    let (unit, tcp) = (Unit::of(rows), has_tcp(rows));
    let mut ways: Vec<(String, Option<f64>)> = Vec::new();
    for row in rows {
        let way = (label(row, peer), row.start_seconds);
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    let several = ways.iter().map(|way| way.1.map(f64::to_bits)).collect::<BTreeSet<_>>().len() > 1;
    let mut text = String::new();
    // Reasons and warnings, each with its methods.
    let mut said: Vec<(&str, String)> = Vec::new();
    for (way, start) in &ways {
        let own: Vec<&Row> =
            rows.iter().filter(|row| row.start_seconds == *start && label(row, peer) == *way).collect();
        let at = start.filter(|_| several).map(|at| format!(" at {at} s")).unwrap_or_default();
        let truths = own.iter().any(|row| row.truth.is_some());
        let columns = [Some(&*format!("{way}{at}")), Some("available"), truths.then_some(">truth")];
        let columns = columns.into_iter().chain([Some("capacity"), truths.then_some(">truth")]).flatten();
        let mut numbers = Table::new(&columns.collect::<Vec<_>>());
        let beside: &[&str] = if tcp { &TCP } else { &[] };
        let mut loads = Table::new(&[&[""], &LOADS[..], beside].concat());
        for (asked, of) in once(own.iter().map(|row| (row.asked.as_str(), *row))) {
            let warns = of.iter().any(|row| !row.warnings.is_empty());
            let whose = if ways.len() > 1 { format!("{asked} {way}") } else { asked.to_owned() };
            let warnings = of.iter().flat_map(|row| &row.warnings);
            said.extend(warnings.map(|warning| (warning.as_str(), format!("! {whose}"))));
            let name = format!("{asked}{}", if warns { " !" } else { "" });
            let mut cells = vec![name.clone()];
            let none = match of.iter().find_map(|row| reason(row)) {
                Some(why) => {
                    said.push((why, whose.clone()));
                    if why == NOT_RUN { "not run" } else { "none" }
                }
                None => "",
            };
            for quantity in [Quantity::AvailableBandwidth, Quantity::Capacity] {
                let row = of.iter().find(|row| row.quantity == Some(quantity));
                let missing = if quantity == Quantity::AvailableBandwidth { none } else { "" };
                cells.push(row.map_or_else(|| missing.to_owned(), |row| unit.number(row)));
                let truth = row.and_then(|row| true_rate(row, &row.truth?)).map(|bps| unit.rate(bps));
                cells.extend(truths.then(|| truth.unwrap_or_default()));
            }
            numbers.row(cells);
            if let Some(load) = of.iter().find_map(|row| row.load) {
                loads.row([vec![name], self::cells(&load, tcp)].concat());
            }
        }
        text += &format!("{}\n{}\n", numbers.text(), loads.text());
    }
    text += &wrapped(
        &format!("{} of IP packets, in parentheses intervals. Of each method {}.", unit.name, explained(tcp)),
        WIDTH,
    );
    for (why, whose) in once(said) {
        text += &wrapped(&format!("{}: {why}", listed(whose.iter().map(String::as_str))), WIDTH);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::endpoint::measure::{Cost, Decision, Load};
    use lastmile::estimate::{Estimate, Refusal, TruthKind, Value, Warning, WarningCode};
    use lastmile::report::Direction;
    use lastmile::time::Span;
    use lastmile::units::{Bytes, Rate};

    fn row(method: &str, result: Result<u64, Refusal>, load: Load) -> Row {
        let (method, direction, cost) = (method.to_owned(), Direction::Forward, Cost::default());
        let row = Row::of(&match result {
            Ok(kbps) => {
                let estimate = Estimate {
                    quantity: Quantity::AvailableBandwidth,
                    value: Value::Is(Rate::ip(kbps * 1_000)),
                    interval: None,
                    next: None,
                    truth_kind: TruthKind::Queue,
                    burst: None,
                    packet_size: None,
                    streams: Vec::new(),
                    warnings: vec![Warning { code: WarningCode::Other, text: "w".to_owned() }],
                };
                Decision::Estimated { method, direction, estimate, cost }
            }
            Err(refusal) => Decision::Refused { method, direction, refusal, cost },
        });
        Row { load: Some(load.into()), ..row.unwrap() }
    }

    #[test]
    fn a_method_that_sent_nothing_says_why_and_the_loads_stand_below_the_numbers() {
        let ran = Load {
            elapsed: Span::from_millis(2_000),
            bytes: Bytes(250_000),
            packets: 200,
            lost: 1,
            delay_rise: Some(Span::from_micros(41_234)),
        };
        let rows = [
            row("wbest", Ok(5_440), ran),
            row("ecnprobe", Err(Refusal::Unmarked { cleared: false }), ran),
            row("pathload", Err(Refusal::TimeLimit { limit: Span::from_secs(30) }), ran),
            row("pathchirp", Err(Refusal::TimeLimit { limit: Span::from_secs(30) }), Load::default()),
            row("topp", Err(Refusal::ByteLimit { limit: Bytes(9) }), Load::default()),
        ];
        let text = screen(&rows, "host-b");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in [
            "to host-b available capacity wbest ! 5.44 ecnprobe none pathload none pathchirp not run topp not run",
            "wbest ! 2.00 250 kB 1.00 0.5 % 41.2 ms",
            "pathchirp 0.00 - - - -",
            "pathchirp, topp: not run: the budget is used up",
            "pathload: no result within the limit of 30 s",
            "! wbest: w",
        ] {
            assert!(words(&text).contains(said), "{said:?} is missing:\n{text}");
        }
        assert!(!text.contains("TCP"), "{text}");
        assert!(super::super::load::is_found(&rows[0]) && !super::super::load::is_found(&rows[1]));
    }
}
