//! [`Row`]: a result as JSON documents and tables have it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Cost, Decision, Load};
use crate::endpoint::Event;
use crate::estimate::{
    Estimate, Interval, IntervalMethod, METHODS, NextMissing, Quantity, Refusal, TruthKind, TruthOver, Value,
};
use crate::options::{Choice, Given};
use crate::report::{Direction, StreamRecord};
use crate::time::Span;
use crate::units::Rate;

/// One number, or why there is none. Rates are bit/s at the IP layer.
///
/// ```
/// use lastmile::endpoint::measure::{Cost, Decision, Row};
/// use lastmile::{estimate::Refusal, report::Direction};
/// let (method, direction, cost) = ("wbest(trains=4)".into(), Direction::Forward, Cost::default());
/// let refused = Decision::Refused { method, direction, refusal: Refusal::Interrupted, cost };
/// let row = Row::of(&refused).unwrap();
/// assert_eq!((row.method.as_str(), row.code.as_deref()), ("wbest", Some("interrupted")));
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The initiator's name in a scenario; absent on real networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The reflector's name in a scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// When the session began, in a scenario's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_seconds: Option<f64>,
    /// The method's registered name.
    pub method: String,
    /// All options of the method as they were in force; documents have them once, see [`Row::options`].
    #[serde(skip)]
    pub options: Given,
    /// The method as it was asked for, with the options that were given.
    pub asked: String,
    /// The direction measured.
    pub direction: Direction,
    /// The quantity of the number.
    pub quantity: Option<Quantity>,
    /// The number.
    pub rate_bps: Option<u64>,
    /// Answer of a quantity that is a question: `yes`, `no`, `at-once` or `cannot-tell`; absent of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<&'static str>,
    /// A lower bound, where the path is faster than these hosts can time.
    pub more_than_bps: Option<u64>,
    /// Bytes of the burst that showed the number, or a shaper's bucket.
    pub burst_bytes: Option<u64>,
    /// Size of the IP packets that showed the number.
    pub packet_bytes: Option<u64>,
    /// The layer of all rates.
    pub layer: &'static str,
    /// The interval of the rate of the probe's own window.
    pub interval: Option<IntervalRow>,
    /// The interval of the mean of the next 10 s.
    pub next: Option<IntervalRow>,
    /// Kind of truth that the number aims at.
    pub truth_kind: Option<TruthKind>,
    /// The estimate's warnings as one text, but for those of an earlier row: see [`Row::said_once`].
    pub warning: Option<String>,
    /// All of them, one by one.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// Why there is no number.
    pub refused: Option<String>,
    /// The refusal, or the warnings, in words that stay, with spaces between.
    pub code: Option<String>,
    /// The session's cost up to this result.
    #[serde(flatten)]
    pub cost: CostRow,
    /// The load of this measurement on the path, of `all` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRow>,
    /// The truth, where a simulation knows it.
    #[serde(flatten)]
    pub truth: Option<TruthRow>,
}

/// Load of one measurement on the path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoadRow {
    /// From its beginning to its result.
    pub seconds: f64,
    /// IP bytes of its probes in the direction measured.
    pub bytes: u64,
    /// Their mean rate.
    pub probing_bps: Option<u64>,
    /// Share of its probes that did not arrive.
    pub lost: Option<f64>,
    /// 95th percentile of the rise of its probes' delay over the least.
    pub delay_rise_seconds: Option<f64>,
    /// Goodput of a scenario's TCP flows meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_during: Option<TcpRow>,
    /// The same after it, for up to 10 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_after: Option<TcpRow>,
}

/// Goodput of all TCP flows of a scenario in one window, beside that of a twin run without the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TcpRow {
    /// Length of the window.
    pub seconds: f64,
    /// Goodput of the run.
    pub goodput_bps: u64,
    /// Goodput of the twin.
    pub twin_bps: u64,
}

impl TcpRow {
    /// Share of the twin's goodput that the run lacks; negative if it had more. `None` if the twin had none.
    pub fn lost(&self) -> Option<f64> {
        (self.twin_bps > 0).then(|| 1.0 - self.goodput_bps as f64 / self.twin_bps as f64)
    }
}

impl From<Load> for LoadRow {
    fn from(load: Load) -> LoadRow {
        LoadRow {
            seconds: load.elapsed.as_secs_f64(),
            bytes: load.bytes.0,
            probing_bps: load.rate().map(Rate::bits_per_second),
            lost: load.lost_share(),
            delay_rise_seconds: load.delay_rise.map(Span::as_secs_f64),
            tcp_during: None,
            tcp_after: None,
        }
    }
}

impl LoadRow {
    /// True if the measurement sent nothing.
    pub fn is_idle(&self) -> bool {
        self.bytes == 0
    }
}

/// A confidence interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct IntervalRow {
    /// Its lower end.
    pub low_bps: u64,
    /// Its upper end.
    pub high_bps: u64,
    /// The probability that it holds the truth.
    pub confidence: f64,
    /// Method that made it.
    pub method: IntervalMethod,
}

/// Cost of the session up to this result. Bytes are IP bytes sent by the initiator but for `bytes_received`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CostRow {
    /// From the first packet sent to the result.
    pub seconds: f64,
    /// All bytes sent.
    pub bytes: u64,
    /// Those of probing streams.
    pub probe_bytes: u64,
    /// Those of requests.
    pub control_bytes: u64,
    /// Those sent only to earn credit for a reverse stream.
    pub credit_bytes: u64,
    /// Bytes received, probes of a reverse stream included.
    pub bytes_received: u64,
    /// Streams that were sent and believed.
    pub streams: u32,
    /// Streams that were sent and not believed.
    pub streams_discarded: u32,
}

/// The truth beside the number, and the number's relative error against the truth of its own window (or of the
/// run, see `truth_over`): the one that the row's `truth_kind` names, and in any case what a saturating flow gets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TruthRow {
    /// Rate that the path carries while nobody else sends.
    pub truth_capacity_bps: u64,
    /// The same in the long run, behind token buckets.
    pub truth_sustained_bps: u64,
    /// The same of Wi-Fi that sends packets one by one, if each drew the shortest backoff.
    pub truth_shortest_bps: Option<u64>,
    /// The spare rate over the estimate's window.
    pub truth_window_bps: Option<u64>,
    /// The spare rate over the run.
    pub truth_mean_bps: Option<u64>,
    /// The spare rate over the 10 s after the estimate's last probe packet.
    pub truth_next_bps: Option<u64>,
    /// Why that is not known.
    pub truth_next_missing: Option<NextMissing>,
    /// Time over which the truth of a spare rate is taken.
    pub truth_over: TruthOver,
    /// Rate of a saturating flow over the estimate's window.
    pub truth_saturation_window_bps: Option<u64>,
    /// Rate of a saturating flow over the run.
    pub truth_saturation_mean_bps: Option<u64>,
    /// The number's relative error.
    pub error: Option<f64>,
    /// Excess of the number over that truth, which may be zero.
    pub error_bps: Option<i64>,
    /// Its relative error against what a saturating flow gets.
    pub error_saturation: Option<f64>,
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
pub fn relative_error(estimate: Option<Rate>, truth: Option<Rate>) -> Option<f64> {
    Some(estimate?.ratio(truth?)? - 1.0)
}

/// The codes of an estimate's warnings, each once.
fn codes(estimate: &Estimate) -> Option<String> {
    let mut all: Vec<&str> = Vec::new();
    for code in estimate.warnings.iter().map(|warning| warning.code.code()) {
        if !all.contains(&code) {
            all.push(code);
        }
    }
    (!all.is_empty()).then(|| all.join(" "))
}

impl Row {
    /// The row of a decision, if it is a result.
    pub fn of(what: &Decision) -> Option<Row> {
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
        let (options, value) = (METHODS.used(&choice), estimate.map(|e| e.value));
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
            answer: estimate.filter(|e| e.quantity == Quantity::Enough).map(|e| e.answer()),
            more_than_bps: bound,
            burst_bytes: estimate.and_then(|e| e.burst).map(|burst| burst.0),
            packet_bytes: estimate.and_then(|e| e.packet_size).map(|size| size.0),
            layer: "ip",
            interval: estimate.and_then(|e| e.interval).map(IntervalRow::from),
            next: estimate.and_then(|e| e.next).map(IntervalRow::from),
            truth_kind: estimate.map(|e| e.truth_kind),
            warning: estimate.and_then(Estimate::warning),
            warnings: estimate.map_or_else(Vec::new, |e| e.warnings.iter().map(|w| w.text.clone()).collect()),
            refused: refusal.map(ToString::to_string),
            code: refusal.map(Refusal::code).map(str::to_owned).or_else(|| estimate.and_then(codes)),
            cost: (*cost).into(),
            load: None,
            truth: None,
        })
    }

    /// The rows of a run's decisions.
    pub fn all(events: &[Event]) -> Vec<Row> {
        Row::said_once(events.iter().filter_map(|event| Row::of(event.what.of()?)).collect())
    }

    /// The rows of one document, with the text of each warning in the first row of its measurement alone; the codes stand in each.
    pub fn said_once(mut rows: Vec<Row>) -> Vec<Row> {
        for at in 0..rows.len() {
            let (before, rest) = rows.split_at_mut(at);
            let [row, ..] = rest else { break };
            let own = before.iter().filter(|other| row.is_measured_with(other));
            let said: Vec<&String> = own.flat_map(|other| &other.warnings).collect();
            let first: Vec<&str> =
                row.warnings.iter().filter(|text| !said.contains(text)).map(String::as_str).collect();
            row.warning = (!first.is_empty()).then(|| first.join("; "));
        }
        rows
    }

    /// True if both are of one measurement in one direction.
    fn is_measured_with(&self, other: &Row) -> bool {
        let of = |row: &Row| (row.direction, row.start_seconds);
        of(self) == of(other) && (&self.asked, &self.from, &self.to) == (&other.asked, &other.from, &other.to)
    }

    /// The same with the load of each measurement, whose streams are given; `pause` is the time between two.
    pub fn all_with_loads(events: &[Event], records: &[StreamRecord], pause: Span) -> Vec<Row> {
        let loads = Load::of_each(events.iter().filter_map(|event| event.what.of()), records, pause);
        let rows = Row::all(events).into_iter().zip(loads);
        rows.map(|(row, load)| Row { load: Some(load.into()), ..row }).collect()
    }

    /// All options of each method, by the method as it was asked for.
    pub fn options(rows: &[Row]) -> BTreeMap<&str, &Given> {
        rows.iter().map(|row| (row.asked.as_str(), &row.options)).collect()
    }

    /// True if no stream had been sent when this was decided.
    pub fn is_before_streams(&self) -> bool {
        self.cost.probe_bytes == 0 && self.cost.streams + self.cost.streams_discarded == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Warning, WarningCode};

    #[test]
    fn a_row_has_the_codes_of_its_warnings_each_once() {
        use WarningCode::{BatchedStamps, RoundTrip};
        let code = |codes: &[WarningCode]| {
            let estimate = Estimate {
                quantity: Quantity::Capacity,
                value: Value::Is(Rate::ip(10_000_000)),
                interval: None,
                next: None,
                truth_kind: TruthKind::Queue,
                burst: None,
                packet_size: None,
                streams: Vec::new(),
                warnings: codes.iter().map(|&code| Warning { code, text: "w".into() }).collect(),
            };
            let (method, direction, cost) = ("wbest".to_owned(), Direction::Forward, Cost::default());
            Row::of(&Decision::Estimated { method, direction, estimate, cost }).unwrap().code
        };
        assert_eq!(code(&[]), None);
        assert_eq!(
            code(&[RoundTrip, BatchedStamps, RoundTrip]).as_deref(),
            Some("round-trip batched-stamps")
        );
    }

    #[test]
    fn a_text_stands_in_the_first_row_of_its_direction() {
        let row = |direction, texts: &[&str]| Row {
            warnings: texts.iter().map(ToString::to_string).collect(),
            direction,
            ..Row::of(&Decision::Refused {
                method: "wbest".to_owned(),
                direction,
                refusal: Refusal::Interrupted,
                cost: Cost::default(),
            })
            .unwrap()
        };
        let (forward, reverse) = (Direction::Forward, Direction::Reverse);
        let rows = Row::said_once(vec![
            row(forward, &["a"]),
            row(forward, &["a", "b", "c"]),
            row(forward, &["c"]),
            row(reverse, &["a"]),
        ]);
        let said: Vec<Option<&str>> = rows.iter().map(|row| row.warning.as_deref()).collect();
        assert_eq!(said, [Some("a"), Some("b; c"), None, Some("a")]);
    }
}
