//! The section of a page: the results as a table.

use lastmile::endpoint::Event;
use lastmile::endpoint::measure::{Cost, Decision};
use lastmile::estimate::Interval;
use lastmile::time::Time;

use super::NAME;
use super::result::{counted, once};
use crate::roles::run::{MAX_RESULTS, Run};
use lastmile_report::html::esc;

/// Results, one row each.
pub(super) fn section(run: &Run) -> String {
    let results: Vec<&Event> =
        run.results.iter().filter(|event| event.what.of::<Decision>().is_some()).collect();
    if results.is_empty() {
        // Of another role's endpoint, or of a network without any, nobody expects one.
        let is_own = run.header.as_ref().map_or(run.network == 0 && run.results.is_empty(), |header| {
            header.role.is_empty() || header.role == NAME
        });
        let none = "<h2>Results</h2>\n<p class=\"soft\">No method came to a result.</p>\n";
        return if is_own { none.to_owned() } else { String::new() };
    }
    let said: Vec<_> = results.iter().filter_map(|event| Some((remark(event)?, event.order()))).collect();
    let remarks = once(said.iter().map(|(text, order)| (text.as_str(), *order)));
    let row = |event: &Event| row(event, &remarks);
    let rows: String = results.iter().copied().filter_map(row).collect();
    let more = match run.results.len() {
        n if n < MAX_RESULTS => String::new(),
        n => format!("<p class=\"soft\">The first {n} are shown.</p>"),
    };
    format!(
        "<h2>Results</h2>\n<div class=\"card scroll\"><table class=\"wide many\">\n<thead><tr><th>method</th><th>direction</th>\
         <th>quantity</th><th>value</th><th>interval</th><th>next 10 s</th><th class=\"n\">seconds</th><th class=\"n\">sent</th>\
         <th class=\"n\">received</th><th class=\"n\">streams</th><th class=\"n\">discarded</th>\
         </tr></thead>\n<tbody>\n{rows}</tbody></table>{more}</div>\n\
         <p class=\"soft\">Rates are IP-layer rates at the probe's packet size. Seconds, bytes and streams are those of the \
         whole session up to the result.</p>\n"
    )
}

/// Remarks, and the results that each was made on.
type Remarks<'a> = [(&'a str, Vec<(Time, u32, u64)>)];

fn remark(event: &Event) -> Option<String> {
    match event.what.of()? {
        Decision::Estimated { estimate, .. } => estimate.warning(),
        _ => None,
    }
}

/// A remark stands below the first result that it was made on, with the number of them.
fn row(event: &Event, remarks: &Remarks<'_>) -> Option<String> {
    let (method, direction, cells, cost) = match event.what.of()? {
        Decision::Estimated { method, direction, estimate, cost } => {
            let intervals = interval("interval", estimate.interval) + &interval("next 10 s", estimate.next);
            let here = remarks.iter().find(|(_, all)| all.first() == Some(&event.order()));
            let remark = here.map(|(text, all)| counted(text, all.len(), "results")).unwrap_or_default();
            let cells = [estimate.named(), estimate.value.to_string(), intervals, esc(&remark)];
            (method, direction, cells, cost)
        }
        Decision::Refused { method, direction, refusal, cost } => {
            let why = format!("<span class=\"bad\">{}</span>", esc(&refusal.to_string()));
            let cells = ["".to_owned(), "refused".to_owned(), "<td></td><td></td>".to_owned(), why];
            (method, direction, cells, cost)
        }
        _ => return None,
    };
    let [quantity, value, intervals, remark] = cells;
    // Remarks are sentences: a row of their own keeps the columns of numbers narrow.
    let (noted, note) = match remark.is_empty() {
        true => ("", String::new()),
        false => (" class=\"noted\"", format!("<tr><td></td><td colspan=\"10\">{remark}</td></tr>\n")),
    };
    Some(format!(
        "<tr{noted}><td data-l=\"method\">{}</td><td data-l=\"direction\">{direction}</td>\
         <td class=\"tight\" data-l=\"quantity\">{quantity}</td><td class=\"value\" data-l=\"value\">{value}</td>\
         {intervals}{}</tr>\n{note}",
        esc(method),
        numbers(cost)
    ))
}

fn interval(label: &str, of: Option<Interval>) -> String {
    of.map_or_else(
        || format!("<td class=\"soft\" data-l=\"{label}\">none</td>"),
        |i| {
            let share = i.confidence * 100.0;
            format!(
                "<td class=\"tight\" data-l=\"{label}\">{} to {} <span class=\"soft\">({share:.0} %)</span></td>",
                i.low, i.high
            )
        },
    )
}

fn numbers(cost: &Cost) -> String {
    let seconds = format!("{:.3}", cost.elapsed.as_secs_f64());
    let cells = [
        ("seconds", seconds),
        ("sent", cost.bytes().to_string()),
        ("received", cost.bytes_received.to_string()),
        ("streams", cost.streams.to_string()),
        ("discarded", cost.streams_discarded.to_string()),
    ];
    cells.iter().map(|(label, cell)| format!("<td class=\"n\" data-l=\"{label}\">{cell}</td>")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::estimate::{Estimate, Quantity, TruthKind, Value, Warning, WarningCode};
    use lastmile::report::Direction;
    use lastmile::units::Rate;

    #[test]
    fn a_remark_stands_once_with_the_number_of_its_results() {
        let result = |seq| {
            let estimate = Estimate {
                quantity: Quantity::Capacity,
                value: Value::Is(Rate::ip(1_000_000)),
                interval: None,
                next: None,
                truth_kind: TruthKind::Queue,
                burst: None,
                packet_size: None,
                streams: Vec::new(),
                warnings: vec![Warning {
                    code: WarningCode::BatchedStamps,
                    text: "stamped <in> batches".into(),
                }],
            };
            let (method, direction, cost) = ("wbest".into(), Direction::Forward, Cost::default());
            let what = Decision::Estimated { method, direction, estimate, cost }.into();
            Event { at: Time::ZERO, node: 0, seq, what }
        };
        let results = (0..3).map(result).collect();
        let run = Run { results, ..Run::new("f") };
        let page = section(&run);
        assert_eq!(page.matches("batches").count(), 1, "{page}");
        assert!(page.contains("stamped &lt;in&gt; batches (3 results)"), "{page}");
    }
}
