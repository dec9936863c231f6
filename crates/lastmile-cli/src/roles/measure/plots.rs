//! Plots of single streams: delay over time, gaps, and the method's readings.

use lastmile::endpoint::Event;
use lastmile::endpoint::measure::Decision;
use lastmile::estimate::{Estimate, Quantity, Value};
use lastmile::node::Ecn;
use lastmile::observe::StreamVerdict;
use lastmile::report::{Fate, Pattern, StreamRecord};
use lastmile::time::Span;
use lastmile::units::{Layer, Rate};

use serde::Deserialize;

use crate::roles::run::{MAX_RECORDS, Run};
use lastmile_report::chart::{Axis, Chart};
use lastmile_report::html::esc;

/// Bars of the histogram.
const BINS: usize = 24;

/// All streams, a card each.
pub(super) fn section(run: &Run) -> String {
    let read = |record: &serde_json::Value| StreamRecord::deserialize(record).ok();
    let streams: Vec<StreamRecord> = run.records.iter().filter_map(read).collect();
    if streams.is_empty() {
        return String::new();
    }
    let mut out = "<h2>Streams</h2>\n".to_owned();
    if run.counts.records > MAX_RECORDS as u64 {
        out +=
            &format!("<p class=\"soft\">The first {MAX_RECORDS} of {} are drawn.</p>\n", run.counts.records);
    }
    out += "<p class=\"soft\">Sender and receiver have clocks of their own, so a delay is shown above the stream's least, \
            and gaps are those of one clock each.</p>\n";
    for stream in &streams {
        out += &card(run, stream);
    }
    out
}

fn card(run: &Run, stream: &StreamRecord) -> String {
    let verdict = run.events.iter().find_map(|event| match event.what.of()? {
        Decision::StreamJudged { stream: number, direction, verdict, .. } => {
            ((*number, *direction) == (stream.stream, stream.direction)).then_some(*verdict)
        }
        _ => None,
    });
    let tag = match verdict {
        Some(StreamVerdict::Believed) => "<span class=\"tag good\">believed</span>".to_owned(),
        Some(other) => format!("<span class=\"tag bad\">{}</span>", esc(&other.to_string())),
        None => String::new(),
    };
    let stepped = if stream.clock_stepped { ", a clock was stepped" } else { "" };
    let head = format!(
        "<h3>Stream {}: {} {}{tag}</h3>\n<p class=\"soft\">{} packets, {} lost{stepped}. Stamps resolve {} at the sender, \
         {} at the receiver.</p>\n",
        stream.stream,
        stream.direction,
        stream.pattern,
        stream.packets.len(),
        stream.lost(),
        stream.tx_resolution,
        stream.rx_resolution
    );
    let mut plots = delay(stream);
    plots += &match stream.pattern {
        Pattern::Pairs => histogram(stream, &run.results) + &pair_gaps(stream, &run.results),
        _ => arrivals(stream) + &train_gaps(stream),
    };
    format!("<article class=\"card\">\n{head}<div class=\"plots\">\n{plots}</div>\n</article>\n")
}

/// The unit in which lengths of time up to `most` read best, and its nanoseconds.
fn unit(most: impl Iterator<Item = Span>) -> (&'static str, f64) {
    match most.map(|s| s.as_nanos()).max().unwrap_or(0) {
        ns if ns >= 3_000_000_000 => ("s", 1e9),
        ns if ns >= 2_000_000 => ("ms", 1e6),
        _ => ("us", 1e3),
    }
}

fn scaled(span: Span, by: f64) -> f64 {
    span.as_nanos() as f64 / by
}

/// Each packet's departure from the first, and its delay above the least, where it arrived.
fn delays(stream: &StreamRecord) -> Vec<(Span, Option<Span>)> {
    let first = stream.packets.first().map(|p| p.sent);
    let least = stream.packets.iter().filter_map(|p| p.owd()).min();
    let row = |p: &lastmile::report::PacketReport| {
        let sent = first.map_or(Span::ZERO, |first| p.sent - first);
        (sent, p.owd().zip(least).map(|(owd, least)| owd - least))
    };
    stream.packets.iter().map(row).collect()
}

fn delay(stream: &StreamRecord) -> String {
    let delays = delays(stream);
    let (x_unit, x_by) = unit(delays.iter().map(|d| d.0));
    let (y_unit, y_by) = unit(delays.iter().filter_map(|d| d.1));
    // One series for single packets, two for the first and second of pairs, one for marked packets.
    let mut series: [Vec<(f64, f64, String)>; 3] = Default::default();
    let mut missing = Vec::new();
    for (i, (packet, (sent, above))) in stream.packets.iter().zip(&delays).enumerate() {
        let x = scaled(*sent, x_by);
        let Some(above) = above else {
            let what = if packet.fate == Fate::Late { "came too late to count" } else { "lost" };
            missing.push((x, format!("packet {}: sent at {sent}, {what}", packet.seq)));
            continue;
        };
        let second = stream.pattern == Pattern::Pairs && i % 2 == 1;
        let which = if packet.ecn == Ecn::Ce { 2 } else { usize::from(second) };
        let tip =
            format!("packet {}: sent at {sent}, {above} above the least delay, {}", packet.seq, packet.size);
        series[which].push((x, scaled(*above, y_by), tip));
    }
    let y =
        Axis::from_zero(&format!("delay above the least, {y_unit}"), series.iter().flatten().map(|p| p.1));
    let x = Axis::over(&format!("sent, {x_unit}"), delays.iter().map(|d| scaled(d.0, x_by)));
    let mut chart = Chart::new("One-way delay", x, y);
    if stream.pattern == Pattern::Pairs {
        chart = chart.key("c1", "first of a pair").key("c2", "second");
    }
    for (class, points) in ["c1", "c2", "cb"].iter().zip(&series) {
        chart = chart.points(class, points);
    }
    if !series[2].is_empty() {
        chart = chart.key("cb", "marked CE");
    }
    if !missing.is_empty() {
        chart = chart.key("cb", "lost (top)").rug("cb", &missing);
    }
    chart.figure()
}

/// The second packets of pairs that both arrived: index, gap at the sender, gap at the receiver.
fn pairs(stream: &StreamRecord) -> impl Iterator<Item = (usize, Span, Span)> + '_ {
    (1..stream.packets.len())
        .step_by(2)
        .filter_map(|i| Some((i, stream.send_gap(i)?.0, stream.receive_gap(i)?)))
}

fn rate_of(stream: &StreamRecord, index: usize, gap: Span) -> Option<Rate> {
    Rate::over(stream.packets.get(index)?.size, gap, Layer::Ip)
}

fn mbit(rate: Rate) -> f64 {
    rate.bits_per_second() as f64 / 1e6
}

/// The capacity that was estimated from this stream, among others.
fn capacity<'a>(stream: &StreamRecord, results: &'a [Event]) -> Option<&'a Estimate> {
    results.iter().find_map(|event| match event.what.of()? {
        Decision::Estimated { direction, estimate, .. } => (estimate.quantity == Quantity::Capacity
            && *direction == stream.direction
            && estimate.streams.contains(&stream.stream))
        .then_some(estimate),
        _ => None,
    })
}

fn histogram(stream: &StreamRecord, results: &[Event]) -> String {
    let mut rates: Vec<f64> =
        pairs(stream).filter_map(|(i, _, gap)| rate_of(stream, i, gap)).map(mbit).collect();
    rates.sort_unstable_by(f64::total_cmp);
    let title = "Pair dispersion, read as capacity";
    let Some(&median) = rates.get(rates.len() / 2) else {
        return format!("<figure><figcaption><b>{title}</b>no pair arrived whole</figcaption></figure>\n");
    };
    // A pair whose gap was squeezed to almost nothing claims any rate; it must not flatten all the others.
    let (least, most) = (rates[0], rates[rates.len() - 1].min(median * 2.5));
    let room = ((most - least) * 0.05).max(median * 0.02);
    let (low, high) = ((least - room).max(0.0), most + room);
    let width = (high - low) / BINS as f64;
    let mut bins = [0_u32; BINS];
    let mut beyond = 0;
    for rate in &rates {
        match ((rate - low) / width) as usize {
            bin if bin < BINS => bins[bin] += 1,
            _ => beyond += 1,
        }
    }
    let count = bins.iter().map(|&n| f64::from(n));
    let mut chart =
        Chart::new(title, Axis::over("Mbit/s at the IP layer", [low, high]), Axis::from_zero("pairs", count));
    let estimate = capacity(stream, results);
    if let Some(interval) = estimate.and_then(|e| e.interval) {
        let tip = format!("{} to {} ({:.0} %)", interval.low, interval.high, interval.confidence * 100.0);
        chart = chart.band("c2", mbit(interval.low), mbit(interval.high), &tip);
    }
    for (i, n) in bins.iter().enumerate().filter(|(_, n)| **n > 0) {
        let from = low + i as f64 * width;
        chart = chart.bar(
            "c1",
            from,
            from + width,
            f64::from(*n),
            &format!("{n} pairs, {from:.3} to {:.3} Mbit/s", from + width),
        );
    }
    match estimate.map(|e| e.value) {
        Some(value @ (Value::Is(rate) | Value::MoreThan(rate))) => {
            chart = chart.vertical("c2", mbit(rate), &value.to_string()).key("c2", "estimate and interval");
        }
        Some(Value::Answer(_) | Value::Unknown) | None => chart = chart.vertical("c2", median, "median"),
    }
    if beyond > 0 {
        chart = chart.key("cb", &format!("{beyond} pairs beyond the right end"));
    }
    chart.figure()
}

fn pair_gaps(stream: &StreamRecord, results: &[Event]) -> String {
    let gaps: Vec<_> = pairs(stream).collect();
    let (chart, by) = gap_chart("Gaps within pairs", stream, &gaps);
    let chart = chart.diagonal("ci").key("ci", "as sent");
    let read = capacity(stream, results).and_then(|e| e.value.rate()).zip(stream.packets.first());
    match read {
        Some((rate, packet)) => chart.horizontal("c2", scaled(rate.time_for(packet.size), by), "estimate"),
        None => chart,
    }
    .figure()
}

fn train_gaps(stream: &StreamRecord) -> String {
    let gaps: Vec<_> = (1..stream.packets.len())
        .filter_map(|i| Some((i, stream.send_gap(i)?.0, stream.receive_gap(i)?)))
        .collect();
    gap_chart("Gaps between packets", stream, &gaps).0.diagonal("ci").key("ci", "as sent").figure()
}

/// Gap at the receiver over gap at the sender, and nanoseconds per unit of the axes. Above the diagonal the path
/// spread the packets.
fn gap_chart(title: &str, stream: &StreamRecord, gaps: &[(usize, Span, Span)]) -> (Chart, f64) {
    let (unit, by) = unit(gaps.iter().flat_map(|g| [g.1, g.2]));
    let points: Vec<_> = gaps
        .iter()
        .map(|&(i, sent, received)| {
            let rate = rate_of(stream, i, received).map_or(String::new(), |r| format!(" ({r})"));
            let tip = format!(
                "packet {}: sent after {sent}, received after {received}{rate}",
                stream.packets[i].seq
            );
            (scaled(sent, by), scaled(received, by), tip)
        })
        .collect();
    let x = Axis::over(&format!("send gap, {unit}"), points.iter().map(|p| p.0));
    let y = Axis::from_zero(&format!("receive gap, {unit}"), points.iter().map(|p| p.1));
    (Chart::new(title, x, y).points("c1", &points), by)
}

/// Bytes over time: as they left, and as they arrived, the least delay taken out.
fn arrivals(stream: &StreamRecord) -> String {
    let delays = delays(stream);
    let (unit, by) = unit(delays.iter().map(|(sent, above)| *sent + above.unwrap_or(Span::ZERO)));
    let mut kilobytes = 0.0;
    let (mut left, mut came) = (Vec::new(), Vec::new());
    for (packet, (sent, above)) in stream.packets.iter().zip(&delays) {
        kilobytes += packet.size.0 as f64 / 1e3;
        left.push((scaled(*sent, by), kilobytes));
        if let Some(above) = above {
            let tip =
                format!("packet {}: sent at {sent}, arrived {above} later than the least delay", packet.seq);
            came.push((scaled(*sent + *above, by), kilobytes, tip));
        }
    }
    let x = Axis::over(&format!("time, {unit}"), left.iter().map(|p| p.0).chain(came.iter().map(|p| p.0)));
    let line: Vec<_> = came.iter().map(|p| (p.0, p.1)).collect();
    let rates = mean_rates(stream);
    Chart::new("Arrival curve", x, Axis::from_zero("kB", [kilobytes]))
        .key("ci", &format!("sent{}", rates.0))
        .key("c1", &format!("arrived{}", rates.1))
        .line("ci", &left)
        .line("c1", &line)
        .points("c1", &came)
        .figure()
}

/// ", RATE" of the departures and of the arrivals, from the first to the last packet, the first not counted.
fn mean_rates(stream: &StreamRecord) -> (String, String) {
    let text = |rate: Option<Rate>| rate.map_or(String::new(), |r| format!(", {r}"));
    let sent = stream.packets.first().zip(stream.packets.last()).and_then(|(first, last)| {
        Rate::over(stream.packets[1..].iter().map(|p| p.size).sum(), last.sent - first.sent, Layer::Ip)
    });
    let arrived: Vec<_> = stream.packets.iter().filter_map(|p| Some((p.fate.arrived()?, p.size))).collect();
    let received = arrived
        .iter()
        .map(|a| a.0)
        .min()
        .zip(arrived.iter().map(|a| a.0).max())
        .and_then(|(a, b)| Rate::over(arrived[1..].iter().map(|p| p.1).sum(), b - a, Layer::Ip));
    (text(sent), text(received))
}
