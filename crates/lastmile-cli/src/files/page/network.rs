//! Events of the network: losses by cause over time, segments sent again, planned changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use lastmile_report::chart::{Axis, Chart};
use lastmile_report::html::{at_most, esc};
use lastmile_sim::runs::event_file::{Happening, Record};

/// Intervals of time that are counted apart; with more, two become one.
const MAX_INTERVALS: usize = 240;
/// Series that are counted apart: names come from the file.
const MAX_SERIES: usize = 5_000;
/// Planned changes that are listed and drawn.
const MAX_CHANGES: usize = 200;
const MAX_CHARTS: usize = 24;
/// Causes with the classes of their colours, from the bottom of a column to its top.
const CAUSES: [(&str, &str); 4] = [("queue", "c1"), ("early", "c2"), ("channel", "cb"), ("collision", "ci")];

/// Counts of records, bounded however many they are.
#[derive(Default)]
pub(super) struct Network {
    /// Nanoseconds of an interval.
    interval: u64,
    /// By link, or by flow for segments sent again; by cause; by interval.
    lost: BTreeMap<(String, String), BTreeMap<u64, u64>>,
    resent: BTreeMap<String, BTreeMap<u64, u64>>,
    /// Packets lost, by link, cause and flow.
    totals: BTreeMap<(String, String, String), u64>,
    changes: Vec<(f64, String, String)>,
    all_changes: u64,
    last: u64,
    pub(super) records: u64,
}

impl Network {
    pub(super) fn add(&mut self, record: &Record) {
        self.records += 1;
        self.interval = self.interval.max(1_000_000);
        let at = record.at.as_nanos();
        self.last = self.last.max(at);
        while self.last / self.interval >= MAX_INTERVALS as u64 {
            self.interval *= 2;
            let series = self.lost.values_mut().chain(self.resent.values_mut());
            series.for_each(|counts| *counts = halved(counts));
        }
        let interval = at / self.interval;
        match &record.what {
            Happening::PacketLost { by, cause, flow, .. } => {
                if self.totals.len() < MAX_SERIES {
                    *self.totals.entry((by.clone(), cause.clone(), flow.clone())).or_insert(0) += 1;
                }
                if self.lost.len() < MAX_SERIES {
                    let counts = self.lost.entry((by.clone(), cause.clone())).or_default();
                    *counts.entry(interval).or_insert(0) += 1;
                }
            }
            Happening::SegmentResent { flow, .. } if self.resent.len() < MAX_SERIES => {
                *self.resent.entry(flow.clone()).or_default().entry(interval).or_insert(0) += 1;
            }
            Happening::LinkChanged { link, rate, delay } => {
                let parts = [rate.map(|r| r.to_string()), delay.map(|d| d.to_string())];
                self.change(record, link, &parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
            }
            Happening::StationChanged { station, rate, down_rate, frame_error, distance_m, snr_db } => {
                let parts = [
                    rate.map(|r| r.to_string()),
                    down_rate.map(|r| format!("{r} to it")),
                    frame_error.map(|share| format!("{:.1} % of frames destroyed", 100.0 * share)),
                    distance_m.map(|metres| format!("{metres} m away")),
                    snr_db.map(|snr| format!("SNR of {snr} dB")),
                ];
                self.change(record, station, &parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
            }
            Happening::HandedOff { host, to, .. } => {
                self.change(record, host, &format!("handed off to {to}"))
            }
            Happening::TrafficChanged { flow, rate } => self.change(record, flow, &rate.to_string()),
            _ => {}
        }
    }

    fn change(&mut self, record: &Record, of: &str, to: &str) {
        self.all_changes += 1;
        if self.changes.len() < MAX_CHANGES {
            self.changes.push((record.at.as_secs_f64(), of.to_owned(), to.to_owned()));
        }
    }

    /// The section of the page; nothing where nothing was recorded.
    pub(super) fn section(&self) -> String {
        if self.records == 0 {
            return String::new();
        }
        let mut body = "<h2>Network</h2>\n".to_owned();
        let mut figures = Vec::new();
        let links: BTreeSet<&String> = self.lost.keys().map(|key| &key.0).collect();
        for link in links {
            let of = |cause: &str| self.lost.get(&(link.clone(), cause.to_owned()));
            let columns: Vec<_> =
                CAUSES.iter().filter_map(|(cause, class)| Some((*cause, *class, of(cause)?))).collect();
            figures.push(self.columns(&format!("Lost by {link}"), "packets lost", &columns, Some(link)));
        }
        for (flow, counts) in &self.resent {
            let columns = [("sent again", "c2", counts)];
            figures.push(self.columns(&format!("{flow}: segments sent again"), "segments", &columns, None));
        }
        let notice = at_most(&mut figures, MAX_CHARTS);
        if !figures.is_empty() {
            let _ =
                writeln!(body, "<div class=\"card\"><div class=\"plots\">\n{}</div></div>", figures.concat());
        }
        body + &notice + &self.losses() + &self.planned()
    }

    fn columns(
        &self,
        title: &str,
        what: &str,
        columns: &[(&str, &str, &BTreeMap<u64, u64>)],
        link: Option<&String>,
    ) -> String {
        let seconds = self.interval as f64 / 1e9;
        let mut heights: BTreeMap<u64, u64> = BTreeMap::new();
        for (_, _, counts) in columns {
            counts.iter().for_each(|(at, count)| *heights.entry(*at).or_insert(0) += count);
        }
        let x = Axis::from_zero("time, s", [self.last as f64 / 1e9]);
        let y = Axis::from_zero(
            &format!("{what} in {} ms", self.interval / 1_000_000),
            heights.values().map(|h| *h as f64),
        );
        let mut chart = Chart::new(title, x, y);
        // From the top down: each column covers the foot of the one before.
        for (cause, class, counts) in columns.iter().rev() {
            let total: u64 = counts.values().sum();
            chart = chart.key(class, &format!("{cause}: {total}"));
            for (at, count) in counts.iter() {
                let height = heights.get_mut(at).map_or(*count, |height| {
                    let all = *height;
                    *height -= count;
                    all
                });
                let from = *at as f64 * seconds;
                let tip = format!("{from:.3} s: {count} {cause}");
                let below = height - count;
                chart = chart.column(class, (from, from + seconds), (below as f64, height as f64), &tip);
            }
        }
        for (at, _, to) in
            self.changes.iter().filter(|change| link.is_some_and(|link| change.1 == *link)).take(6)
        {
            chart = chart.vertical("cg", *at, to);
        }
        chart.figure()
    }

    fn losses(&self) -> String {
        if self.totals.is_empty() {
            return String::new();
        }
        let rows: String = self
            .totals
            .iter()
            .map(|((by, cause, flow), packets)| {
                format!(
                    "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{packets}</td></tr>\n",
                    esc(by),
                    esc(cause),
                    esc(flow)
                )
            })
            .collect();
        format!(
            "<div class=\"card scroll\"><table>\n<thead><tr><th>lost by</th><th>cause</th><th>flow</th>\
             <th class=\"n\">packets</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
        )
    }

    fn planned(&self) -> String {
        if self.changes.is_empty() {
            return String::new();
        }
        let rows: String = self
            .changes
            .iter()
            .map(|(at, of, to)| {
                format!("<tr><td class=\"n\">{at:.3} s</td><td>{}</td><td>{}</td></tr>\n", esc(of), esc(to))
            })
            .collect();
        let more = match self.all_changes > self.changes.len() as u64 {
            true => format!("<p class=\"soft\">The first {MAX_CHANGES} of {}.</p>", self.all_changes),
            false => String::new(),
        };
        format!(
            "<div class=\"card scroll\"><table>\n<thead><tr><th class=\"n\">time</th><th>planned change of</th>\
             <th>to</th></tr></thead>\n<tbody>\n{rows}</tbody></table>{more}</div>\n"
        )
    }
}

fn halved(counts: &BTreeMap<u64, u64>) -> BTreeMap<u64, u64> {
    let mut halved = BTreeMap::new();
    counts.iter().for_each(|(at, count)| *halved.entry(at / 2).or_insert(0) += count);
    halved
}
