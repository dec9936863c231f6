//! A stream's outcome as lines of 80 columns.

use lastmile_report::text::wrapped;
use lastmile_sim::monitor::flows::as_rate;
use lastmile_sim::roles::stream::StreamOutcome;

use crate::shell::WIDTH;

/// Packets that arrived and that were lost, with the causes, and delays.
pub(super) fn answer(stream: &StreamOutcome) -> String {
    let control = stream.control.as_ref().map(|control| format!(", {control}")).unwrap_or_default();
    let goodput = stream.goodput_bps.map_or_else(|| "nothing".to_owned(), |bps| as_rate(bps).to_string());
    let lost: Vec<_> = stream.lost.iter().map(|(cause, packets)| format!("{packets} {cause}")).collect();
    let lost = if lost.is_empty() { "none".to_owned() } else { lost.join(", ") };
    let milliseconds =
        |s: Option<f64>| s.map_or_else(|| "unknown".to_owned(), |s| format!("{:.1} ms", s * 1e3));
    let [delay, longest, jitter] =
        [stream.delay_mean_s, stream.delay_max_s, stream.jitter_s].map(milliseconds);
    let part = |share: Option<f64>, of: &str| Some(format!("{:.1} % of {of}", share? * 100.0));
    let misjudged = [part(stream.mc, "congestion's"), part(stream.mw, "the link's")];
    let misjudged: Vec<_> = misjudged.into_iter().flatten().collect();
    let misjudged = match misjudged.is_empty() {
        true => String::new(),
        false => format!("; misjudged: {}", misjudged.join(", ")),
    };
    [
        format!("{} from {} to {}{control}: {goodput} of IP packets", stream.stream, stream.from, stream.to),
        format!("  packets: {} sent, {} received; lost: {lost}{misjudged}", stream.sent, stream.received),
        format!("  delay: {delay}, at most {longest}; jitter {jitter}"),
    ]
    .map(|line| wrapped(&line, WIDTH))
    .concat()
}
