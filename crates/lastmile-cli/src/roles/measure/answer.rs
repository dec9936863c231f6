//! Results as an answer of 80 columns: for each direction what is left, the capacity and what lasts, and below it what must be said.
//!
//! The table of all numbers ([`result`](super::result)) has the rest.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use lastmile::endpoint::iperf3;
use lastmile::endpoint::measure::{Cost, IntervalRow, Row};
use lastmile::estimate::{IntervalMethod, Quantity};
use lastmile::report::Direction;
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use lastmile_report::text::{Table, wrapped};

use super::result::{listed, once, true_rate, words};
use crate::shell::WIDTH;
use crate::shell::network::DEFAULT_PORT;

/// A longer name of a host is left out.
const LONGEST_NAME: usize = 15;
/// Packets of a train that shows most token buckets of access networks.
const LONG: u64 = 600;
const LONGER: &str = "train_length=600";

/// The unit of all rates of an answer.
pub(super) struct Unit {
    bps: f64,
    pub(super) name: &'static str,
}

impl Unit {
    /// The unit in which the largest rate has at least one digit.
    pub(super) fn of(rows: &[Row]) -> Unit {
        let ends = |row: &Row| [row.rate_bps, row.more_than_bps, row.interval.map(|i| i.high_bps)];
        match rows.iter().flat_map(ends).flatten().max().unwrap_or(0) {
            bps if bps < 1_000_000 => Unit { bps: 1e3, name: "kbit/s" },
            bps if bps < 10_000_000_000 => Unit { bps: 1e6, name: "Mbit/s" },
            _ => Unit { bps: 1e9, name: "Gbit/s" },
        }
    }

    /// Three digits.
    pub(super) fn rate(&self, bps: u64) -> String {
        let rate = bps as f64 / self.bps;
        let digits = if rate < 9.995 { 2 } else { usize::from(rate < 99.95) };
        format!("{rate:.digits$}")
    }

    fn interval(&self, of: IntervalRow) -> String {
        format!("({} .. {})", self.rate(of.low_bps), self.rate(of.high_bps))
    }

    /// The number with its interval, a bound, or that it is unknown.
    pub(super) fn number(&self, row: &Row) -> String {
        if let Some(words) = words(row) {
            return words;
        }
        let interval = row.interval.map(|interval| format!(" {}", self.interval(interval)));
        match (row.rate_bps, row.more_than_bps) {
            (Some(bps), _) => self.rate(bps) + &interval.unwrap_or_default(),
            (_, Some(bps)) => format!("> {}", self.rate(bps)),
            _ => interval.map_or_else(|| "unknown".to_owned(), |interval| interval.trim_start().to_owned()),
        }
    }
}

/// The results of sessions, without their cost, and `beside` them lines between numbers and notes. `peer` names the other host where the
/// rows do not.
pub(crate) fn answer(rows: &[Row], peer: &str, beside: &str) -> String {
    let unit = Unit::of(rows);
    let mut text = String::new();
    let in_file = rows.iter().any(|row| row.from.is_some());
    let is_fixed = rows.iter().any(|row| row.method == iperf3::METHOD);
    let mut notes = Notes { in_file, is_fixed, ..Notes::default() };
    let mut methods: Vec<&Row> = Vec::new();
    for row in rows {
        let known = |other: &&Row| (&other.asked, other.start_seconds) == (&row.asked, row.start_seconds);
        if !methods.iter().any(known) {
            methods.push(row);
        }
    }
    for first in &methods {
        let own: Vec<&Row> = rows
            .iter()
            .filter(|row| (&row.asked, row.start_seconds) == (&first.asked, first.start_seconds))
            .collect();
        if methods.len() > 1 {
            let start = first.start_seconds.map(|at| format!(" at {at} s")).unwrap_or_default();
            text += &format!("{}{start}\n", first.asked);
        }
        text += &block(&own, peer, &unit, &mut notes);
    }
    text += beside;
    let named = |i: IntervalRow| match i.method {
        IntervalMethod::GreyRegion => "the range within which it varied".to_owned(),
        _ => format!("{:.0} % intervals", i.confidence * 100.0),
    };
    let named: BTreeSet<String> =
        rows.iter().flat_map(|row| [row.interval, row.next]).flatten().map(named).collect();
    let named = named.into_iter().collect::<Vec<_>>().join(" and ");
    let interval = if named.is_empty() { named } else { format!("; in parentheses {named}") };
    if rows.iter().any(|row| row.refused.is_none() && row.quantity != Some(Quantity::Enough)) {
        text += &wrapped(&format!("{} of IP packets{interval}.{}", unit.name, notes.mark()), WIDTH);
    }
    text + &notes.text()
}

/// Notes below the numbers, each once.
#[derive(Default)]
struct Notes {
    /// Bytes in one go behind which a bucket may be.
    unseen: Option<u64>,
    /// The least bound of what hosts could time, and bytes of a packet.
    bound: Option<(u64, u64)>,
    /// The numbers are of a scenario, and have no command line.
    in_file: bool,
    /// The peer decides on the length of trains.
    is_fixed: bool,
    said: Vec<(String, String)>,
}

impl Notes {
    /// Longer trains, where shorter ones left a question.
    fn mark(&self) -> String {
        // Without blanks, so that no line ends within it.
        let method = |options: &str| match self.in_file {
            true => format!("`wbest({options})`"),
            false => format!("`--method 'wbest({options})'`"),
        };
        let mut text = String::new();
        if let Some(burst) = self.unseen {
            let longer = if self.in_file { method(LONGER) } else { "`--train-length 600`".to_owned() };
            let further = if self.is_fixed { String::new() } else { format!(": {longer} looks further") };
            text += &format!(" * In bursts of {}{further}.", Bytes(burst));
        }
        if let Some((bound, size)) = self.bound {
            let bound = Rate::ip(bound).to_string().replace(' ', "");
            let longer = method(&format!("capacity={bound},{LONGER}"));
            let cost = Bytes(three(size * LONG));
            text += &format!(" {longer} looks for a token bucket, for {cost} a direction.");
        }
        text
    }

    fn text(&self) -> String {
        let each = once(self.said.iter().map(|(what, whose)| (what.as_str(), whose.as_str())));
        let line = |(what, whose): (&str, Vec<&str>)| wrapped(&format!("{}: {what}", listed(whose)), WIDTH);
        each.into_iter().map(line).collect()
    }
}

/// The lines of one method's session.
fn block(rows: &[&Row], peer: &str, unit: &Unit, notes: &mut Notes) -> String {
    let mut table = Table::new(&["", "available", "capacity", "sustained"]);
    let (mut has_numbers, mut without) = (false, String::new());
    let widest = rows.iter().map(|row| label(row, peer).chars().count()).max().unwrap_or(0);
    for direction in [Direction::Forward, Direction::Reverse, Direction::RoundTrip] {
        let own: Vec<&Row> = rows.iter().copied().filter(|row| row.direction == direction).collect();
        let Some(first) = own.first() else { continue };
        let label = label(first, peer);
        let of = |quantity| own.iter().copied().find(|row| row.quantity == Some(quantity));
        let [left, capacity, lasts] =
            [Quantity::AvailableBandwidth, Quantity::Capacity, Quantity::SustainedRate].map(of);
        let refused = own.iter().find_map(|row| row.refused.as_deref());
        if let Some(why) = refused.filter(|_| own.iter().all(|row| row.refused.is_some())) {
            for (at, line) in wrapped(&format!("unknown: {why}"), WIDTH - widest - 2).lines().enumerate() {
                without += &format!("{:<widest$}  {line}\n", if at == 0 { &*label } else { "" });
            }
            continue;
        }
        if let Some(answer) = of(Quantity::Enough) {
            // A question has an answer, and no row of numbers.
            let left = answer.truth.and_then(|truth| true_rate(answer, &truth)).map(Rate::ip);
            let left = left.map(|left| format!("; left were {left}")).unwrap_or_default();
            let line = format!("{label}: {}: {}{left}", answer.asked, unit.number(answer));
            without += &wrapped(&line, WIDTH);
            let said = answer.warnings.iter().map(|said| (said.clone(), label.clone()));
            notes.said.extend(said);
            continue;
        }
        has_numbers = true;
        let cell = |row: Option<&Row>| match row {
            Some(row) => unit.number(row),
            None if refused.is_some() => "none".to_owned(),
            None => String::new(),
        };
        let unseen = lasts.filter(|row| row.rate_bps.is_none() && row.interval.is_none());
        let last = match unseen.and_then(|row| row.burst_bytes) {
            Some(burst) => {
                notes.unseen = Some(notes.unseen.map_or(burst, |least| least.min(burst)));
                "no limit seen *".to_owned()
            }
            None => cell(lasts),
        };
        let timed =
            capacity.filter(|row| row.method == "wbest" && row.code.as_deref() == Some("lower-bound"));
        let is_left = left.is_some_and(|row| row.rate_bps.is_some() || row.interval.is_some());
        if let Some((bound, size)) =
            timed.filter(|_| !is_left).and_then(|row| row.more_than_bps.zip(row.packet_bytes))
        {
            notes.bound =
                Some(notes.bound.map_or((bound, size), |(least, most)| (least.min(bound), most.max(size))));
        }
        table.row([label.clone(), cell(left), cell(capacity), last]);
        let truth = |row: Option<&Row>| {
            row.and_then(|row| true_rate(row, &row.truth?)).map(|bps| unit.rate(bps)).unwrap_or_default()
        };
        if own.iter().any(|row| row.truth.is_some()) {
            table.row(["  truth".to_owned(), truth(left), truth(capacity), truth(lasts)]);
        }
        if let Some(next) = left.and_then(|row| row.next) {
            table.row(["  next 10 s".to_owned(), unit.interval(next)]);
        }
        for quantity in [Quantity::AchievableRate, Quantity::ShortestExchange] {
            if let Some(row) = of(quantity) {
                notes.said.push((format!("{quantity} {}", unit.number(row)), label.clone()));
            }
        }
        let said =
            refused.into_iter().chain(own.iter().flat_map(|row| row.warnings.iter().map(String::as_str)));
        notes.said.extend(said.map(|said| (said.to_owned(), label.clone())));
    }
    if has_numbers { table.text() + &without } else { without }
}

/// The way of a row's packets.
pub(super) fn label(row: &Row, peer: &str) -> String {
    way(row.direction, row.to.as_deref().unwrap_or(peer))
}

/// The name of a host without its port.
fn bare(host: &str) -> &str {
    // The port of "host:8620" is known, and of "::1" there is none.
    host.split_once(':').filter(|(_, port)| !port.contains(':')).map_or(host, |(name, _)| name)
}

/// "to HOST", or where its name is long or unknown the direction.
pub(super) fn way(direction: Direction, host: &str) -> String {
    let name = bare(host);
    let is_shown = (1..=LONGEST_NAME).contains(&name.chars().count());
    match direction {
        Direction::Forward if is_shown => format!("to {name}"),
        Direction::Reverse if is_shown => format!("from {name}"),
        direction => direction.to_string(),
    }
}

/// A number with three digits.
fn three(n: u64) -> u64 {
    let unit = 10_u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(2));
    n.saturating_add(unit / 2) / unit * unit
}

/// A time with three digits.
pub(super) fn short(span: Span) -> Span {
    Span::from_nanos(i64::try_from(three(span.as_nanos().unsigned_abs())).unwrap_or(i64::MAX))
}

/// The first line: the host, its address, how far it is, and what the answer cost; in two lines where it is too long.
pub(crate) fn head(host: &str, peer: SocketAddr, round_trip: Option<Span>, cost: Option<Cost>) -> String {
    let address = match peer.port() {
        DEFAULT_PORT => peer.ip().to_string(),
        _ => peer.to_string(),
    };
    let name = bare(host);
    let named = name.trim_matches(['[', ']']).parse() != Ok(peer.ip()) && host != peer.to_string();
    let who = if named { format!("{name} ({address})") } else { address };
    let far = round_trip.map_or_else(String::new, |trip| format!(", round trip {}", short(trip)));
    let short = |bytes: Bytes| Bytes(three(bytes.0));
    let left = format!("{who}{far}");
    let Some(cost) = cost else { return left + "\n" };
    let right = format!(
        "{:.2} s, {} {}, {} back",
        cost.elapsed.as_secs_f64(),
        short(cost.bytes()),
        if name.chars().count() <= LONGEST_NAME { format!("to {name}") } else { "there".to_owned() },
        short(cost.bytes_received)
    );
    match WIDTH.checked_sub(left.chars().count() + 2 + right.chars().count()) {
        Some(blanks) => format!("{left}{:>1$}{right}\n", "", blanks + 2),
        None => format!("{left}\n{right}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::endpoint::measure::Decision;
    use lastmile::estimate::{
        Estimate, Interval, IntervalMethod, Refusal, TruthKind, Value, Warning, WarningCode,
    };
    use lastmile::units::Rate;

    fn row(direction: Direction, quantity: Quantity, kbps: Option<[u64; 3]>, warning: &str) -> Row {
        let rate = |kbps: u64| Rate::ip(kbps * 1_000);
        let interval = |low, high| Interval { low, high, confidence: 0.9, method: IntervalMethod::default() };
        let warning = Warning { code: WarningCode::Other, text: warning.to_owned() };
        let estimate = Estimate {
            quantity,
            value: kbps.map_or(Value::Unknown, |kbps| Value::Is(rate(kbps[0]))),
            interval: kbps.map(|kbps| interval(rate(kbps[1]), rate(kbps[2]))),
            next: (quantity == Quantity::AvailableBandwidth).then(|| interval(rate(3_870), rate(7_016))),
            truth_kind: TruthKind::Queue,
            burst: Some(Bytes(18_600)),
            packet_size: None,
            streams: Vec::new(),
            warnings: Some(warning).filter(|warning| !warning.text.is_empty()).into_iter().collect(),
        };
        let (method, cost) = ("wbest".to_owned(), Cost::default());
        Row::of(&Decision::Estimated { method, direction, estimate, cost }).unwrap()
    }

    #[test]
    fn an_answer_has_a_line_for_each_direction_and_each_warning_once() {
        let long = "a link other than the narrow one seems busy: 33 % of the pairs met an empty path, and less may be left";
        let (forward, reverse) = (Direction::Forward, Direction::Reverse);
        let (method, cost) = ("wbest".to_owned(), Cost::default());
        let refused = Decision::Refused { method, direction: reverse, refusal: Refusal::Interrupted, cost };
        let rows = [
            row(forward, Quantity::Capacity, Some([10_030, 9_987, 10_080]), long),
            row(forward, Quantity::SustainedRate, None, long),
            row(forward, Quantity::AvailableBandwidth, Some([5_444, 5_422, 6_021]), ""),
            Row::of(&refused).unwrap(),
        ];
        let text = answer(&rows, "host-b", "");
        let cost = Cost {
            probe_bytes: Bytes(270_960),
            bytes_received: Bytes(4_000),
            elapsed: Span::from_millis(660),
            ..Cost::default()
        };
        let wanted = "\
             \x20            available           capacity             sustained\n\
             to host-b    5.44 (5.42 .. 6.02)  10.0 (9.99 .. 10.1)  no limit seen *\n\
             \x20 next 10 s  (3.87 .. 7.02)\n\
             from host-b  unknown: interrupted\n\
             Mbit/s of IP packets; in parentheses 90 % intervals. * In bursts of 18.6 kB:\n\
             `--train-length 600` looks further.\n";
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.matches("seems busy").count(), 1, "{text}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).starts_with(&words(wanted)), "{text}");
        assert_eq!(
            head("host-b", "192.0.2.7:8620".parse().unwrap(), Some(Span::from_micros(18_274)), Some(cost)),
            "host-b (192.0.2.7), round trip 18.3 ms     0.66 s, 271 kB to host-b, 4000 B back\n"
        );
        assert_eq!(head("[::1]:7", "[::1]:7".parse().unwrap(), None, None), "[::1]:7\n");
        assert_eq!(head("::1", "[::1]:8620".parse().unwrap(), None, None), "::1\n");
        // A host whose name takes too much room has none.
        assert!(answer(&rows, "a-long-name.example.org", "").contains("\nforward "), "{text}");
    }

    #[test]
    fn bounds_of_both_directions_have_one_warning_and_one_advice() {
        let why = "the path is faster than these hosts can time; the bound is of bursts of 59.52 kB";
        let bound = |direction, bps| Row {
            more_than_bps: Some(bps),
            packet_bytes: Some(1_488),
            code: Some("lower-bound".to_owned()),
            ..row(direction, Quantity::Capacity, None, why)
        };
        let unknown = |direction| row(direction, Quantity::AvailableBandwidth, None, why);
        let (forward, reverse) = (Direction::Forward, Direction::Reverse);
        let rows =
            [bound(forward, 916_941_003), unknown(forward), bound(reverse, 1_116_000_000), unknown(reverse)];
        let words = |rows: &[Row]| answer(rows, "b", "").split_whitespace().collect::<Vec<_>>().join(" ");
        let text = words(&rows);
        let line = "`--method 'wbest(capacity=916.9Mbit/s,train_length=600)'` looks for a token bucket, for 893 kB a direction.";
        assert_eq!(text.matches(line).count(), 1, "{text}");
        assert_eq!(text.matches("to b, from b: the path is faster").count(), 1, "{text}");
        assert_eq!(text.matches("faster").count(), 1, "{text}");
        // A scenario has no command line.
        let of_file = rows.map(|row| Row { from: Some("a".to_owned()), ..row });
        assert!(words(&of_file).contains(". `wbest(capacity=916.9Mbit/s,"), "{of_file:?}");
    }
}
