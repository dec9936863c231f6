//! A stream's rates and losses over time, from what its sender says each second.

use lastmile::control;
use lastmile::endpoint::stream::{Decision, Sent};
use lastmile::time::Time;
use lastmile::units::Rate;

use lastmile_report::chart::{Axis, Chart};
use lastmile_report::rows::table;
use serde_json::{Map, Value, json};

use super::LANES;
use crate::roles::run::Run;

/// Streams that are drawn.
const MAX_STREAMS: usize = 12;

/// Reports of one sender, second by second.
#[derive(Default)]
struct Said {
    node: u32,
    all: Vec<(Time, Rate, Sent)>,
    rtts: Vec<(f64, f64)>,
    /// Capacities by packet pairs, bit/s.
    capacities: Vec<(f64, f64)>,
}

/// A card for each stream that was told of more than once.
pub(super) fn section(run: &Run) -> String {
    let mut streams: Vec<Said> = Vec::new();
    for event in &run.events {
        let Some(what) = event.what.of::<Decision>() else { continue };
        if let Decision::MediaStarted { rate, .. } = what {
            let all = vec![(event.at, *rate, Sent::default())];
            streams.push(Said { node: event.node, all, rtts: Vec::new(), capacities: Vec::new() });
        }
        let Some(said) = streams.iter_mut().rfind(|said| said.node == event.node) else { continue };
        match what {
            Decision::MediaProgress { target, sent, .. } => said.all.push((event.at, *target, *sent)),
            Decision::MediaReported { rtt: Some(rtt), .. } => {
                said.rtts.push(((event.at - Time::ZERO).as_secs_f64(), rtt.as_secs_f64() * 1e3));
            }
            Decision::Control(control::Decision::Capacity { rate, .. }) => {
                said.capacities.push(((event.at - Time::ZERO).as_secs_f64(), rate.bits_per_second() as f64));
            }
            _ => {}
        }
    }
    streams.retain(|said| said.all.len() > 2);
    if streams.is_empty() {
        return String::new();
    }
    let drawn = streams.iter().take(MAX_STREAMS).map(Said::card);
    format!("<h2>Streams over time</h2>\n{}", drawn.collect::<String>())
}

impl Said {
    fn card(&self) -> String {
        let (mut sent, mut received, mut target) = (Vec::new(), Vec::new(), Vec::new());
        let mut lost: [Vec<(f64, f64)>; 2] = Default::default();
        for pair in self.all.windows(2) {
            let [(from, _, before), (to, rate, now)] = pair else { continue };
            let (seconds, at) = ((*to - *from).as_secs_f64(), (*to - Time::ZERO).as_secs_f64());
            if seconds < 0.1 {
                continue;
            }
            sent.push((at, (now.bytes - before.bytes).bits() as f64 / seconds));
            received.push((at, (now.acknowledged_bytes - before.acknowledged_bytes).bits() as f64 / seconds));
            target.push((at, rate.bits_per_second() as f64));
            lost[0].push((at, (now.lost - before.lost) as f64));
            lost[1].push((at, (now.lost_wireless - before.lost_wireless) as f64));
        }
        let time = || Axis::over("time, s", sent.iter().map(|point| point.0));
        // A target may lie far above what is sent: the most that went over the path sets the scale.
        let most = sent.iter().chain(&received).map(|point| point.1 * 1.5);
        let rates = Axis::from_zero("rate of IP packets, bit/s", most);
        let mut plots = Chart::new("Rates", time(), rates)
            .key("c1", "sent")
            .key("c2", "received")
            .key("ci", "target")
            .line("ci", &target)
            .line("c1", &sent)
            .line("c2", &received)
            .figure();
        if !self.rtts.is_empty() {
            let most = Axis::from_zero("round trip, ms", self.rtts.iter().map(|point| point.1));
            plots += &Chart::new("Round trip, as the receiver reports it", time(), most)
                .line("c1", &self.rtts)
                .figure();
        }
        if !self.capacities.is_empty() {
            let most =
                Axis::from_zero("rate of IP packets, bit/s", self.capacities.iter().map(|point| point.1));
            plots += &Chart::new("Capacity of the path, by packet pairs", time(), most)
                .line("c1", &self.capacities)
                .figure();
        }
        if lost[0].iter().any(|point| point.1 > 0.0) {
            let most = Axis::from_zero("packets lost", lost[0].iter().map(|point| point.1));
            plots += &Chart::new("Losses in each second", time(), most)
                .key("c1", "all")
                .key("c2", "judged wireless")
                .line("c1", &lost[0])
                .line("c2", &lost[1])
                .figure();
        }
        format!("<article class=\"card\">\n<div class=\"plots\">\n{plots}</div>\n</article>\n")
    }
}

/// Totals of the ends of streams, a row each.
pub(super) fn results(run: &Run) -> String {
    let ends = run.results.iter().filter_map(|event| Some(end_row(event.node, event.what.of()?)));
    let ends: Vec<_> = ends.collect();
    if ends.is_empty() {
        return String::new();
    }
    let first = ["node", "end", "packets", "bytes", "lost", "marked", "acknowledged"];
    format!("<h2>Media streams</h2>\n{}", table(&ends.iter().collect::<Vec<_>>(), &first))
}

/// Totals of one end of a stream, as a row of a page.
fn end_row(node: u32, what: &Decision) -> Map<String, Value> {
    let (end, all) = match what {
        Decision::MediaEnded { sent, .. } => (LANES[0], json!(sent)),
        Decision::SourceLeft { received, .. } => {
            let mut all = json!(received);
            all["jitter"] = json!(received.jitter.to_string());
            all["first"] = json!(received.first.to_string());
            all["last"] = json!(received.last.to_string());
            (LANES[1], all)
        }
        _ => (LANES[0], Value::Null),
    };
    let mut row = Map::from_iter([("node".to_owned(), json!(node)), ("end".to_owned(), json!(end))]);
    row.extend(all.as_object().cloned().unwrap_or_default());
    row
}
