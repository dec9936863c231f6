//! Numbers of a run of VTP: rates in Mbit/s of IP packets, their variation in percent, times in milliseconds.

use lastmile::observe::stats::{deviation, mean};
use lastmile_sim::monitor::series::SeriesRow;

use super::cases::STEPS;
use super::{section_4, testbed};
use crate::papers::{Lines, Numbers, Run, Seen};

/// Steps of a run are 50 ms: rates are looked at over a second.
pub(super) const STEPS_PER_SECOND: usize = 20;
/// After a change of cross traffic, for as long as claim v4 gives a scheme to settle, variation is not counted.
const SETTLING: f64 = 10.0;
/// Share by which settled seconds may be off a phase's rate, and their number.
const NEAR: f64 = 0.15;
const SETTLED_OVER: usize = 3;
/// Shares of the packets that take no longer, in percent; the names of these delays in figure 7, and among the numbers.
pub(super) const QUANTILES: [(f64, &str, &str); 9] = [
    (1.0, "p1", "delay_1"),
    (5.0, "p5", "delay_5"),
    (10.0, "p10", "delay_10"),
    (25.0, "p25", "delay_25"),
    (50.0, "p50", "delay_50"),
    (75.0, "p75", "delay_75"),
    (90.0, "p90", "delay_90"),
    (95.0, "p95", "delay_95"),
    (99.0, "p99", "delay_99"),
];

/// A flow's rates in each second, in Mbit/s: the second's end, rate sent, rate received.
pub(super) fn seconds(seen: &Seen, flow: &str) -> Vec<[f64; 3]> {
    let rows: Vec<_> = seen.of("flow", flow).collect();
    let mean = |rows: &[&SeriesRow], of: fn(&SeriesRow) -> Option<f64>| {
        rows.iter().filter_map(|row| of(row)).sum::<f64>() / rows.len() as f64 / 1e6
    };
    rows.chunks_exact(STEPS_PER_SECOND)
        .filter_map(|rows| {
            Some([rows.last()?.at_s, mean(rows, |row| row.sent_bps), mean(rows, |row| row.goodput_bps)])
        })
        .collect()
}

/// Numbers of a run.
pub(super) fn measure(run: &Run<'_>) -> Numbers {
    let mut numbers = Numbers::new();
    let mut put = |name: &'static str, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            numbers.insert(name.into(), value);
        }
    };
    let (warm_up, end) = (run.scenario.warm_up.as_secs_f64(), run.scenario.duration.as_secs_f64());
    let flow = seconds(run.seen, "flow-1");
    let after = |from: f64| move |second: &&[f64; 3]| second[0] > from + 0.5;
    let over = |of: usize, flow: &[[f64; 3]]| {
        mean(&flow.iter().filter(after(warm_up)).map(|second| second[of]).collect::<Vec<_>>())
    };
    put("rate", over(1, &flow));
    put("throughput", over(2, &flow));
    put("beside", over(2, &seconds(run.seen, "beside-1")));
    let is_stepped = run.scenario.traffic.iter().any(|traffic| traffic.name.starts_with("cross"));
    let phases: Vec<(f64, f64)> = if is_stepped {
        let starts: Vec<f64> = [0.0].into_iter().chain(STEPS).chain([end]).collect();
        starts.windows(2).map(|pair| (pair[0], pair[1])).collect()
    } else {
        vec![(warm_up - SETTLING, end)]
    };
    let sent = |from: f64, to: f64| -> Vec<f64> {
        flow.iter().filter(after(from)).take_while(|second| second[0] < to + 0.5).map(|s| s[1]).collect()
    };
    let variations: Option<Vec<f64>> =
        phases.iter().map(|&(from, to)| variation(&sent(from + SETTLING, to))).collect();
    put("variation", variations.and_then(|all| mean(&all)));
    put("variation_of_all", variation(&sent(warm_up, end)));
    if is_stepped {
        let took = phases[1..].iter().map(|&(from, to)| settles(&sent(from, to)));
        put("settles", took.collect::<Option<Vec<f64>>>().map(|all| all.into_iter().fold(0.0, f64::max)));
    }
    delays(run, warm_up, &mut put);
    for stream in run.found.stream.outcomes.iter().filter(|stream| stream.stream == "flow-1") {
        let percent = |of: f64| 100.0 * of;
        put("mc", stream.mc.map(percent));
        put("mw", stream.mw.map(percent));
        put("overflow", Some(percent(stream.congestion_lost as f64 / stream.sent as f64)));
    }
    section_4::measure(run, &mut put);
    testbed::measure(run, &mut put);
    numbers
}

/// End-to-end delays of the stream's packets, and how they differ from packet to packet.
fn delays(run: &Run<'_>, warm_up: f64, put: &mut dyn FnMut(&'static str, Option<f64>)) {
    let all = run.seen.arrivals.get("flow-1").map(Vec::as_slice).unwrap_or_default();
    let all: Vec<f64> = all.iter().filter(|arrival| arrival.0 > warm_up).map(|arrival| arrival.1).collect();
    let differences: Vec<f64> = all.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let small = differences.iter().filter(|difference| **difference < 0.005).count();
    put("jitter_below_5_ms", Some(100.0 * small as f64 / differences.len() as f64));
    let mut sorted = all;
    sorted.sort_by(f64::total_cmp);
    for (share, _, name) in QUANTILES {
        let at = (share / 100.0 * sorted.len() as f64) as usize;
        put(name, sorted.get(at).map(|delay| delay * 1e3));
    }
}

/// Standard deviation over mean, in percent.
fn variation(values: &[f64]) -> Option<f64> {
    Some(100.0 * deviation(values)? / mean(values)?)
}

/// When the first seconds of a phase end that are near those of its second half; the phase's length, if none are.
fn settles(rates: &[f64]) -> Option<f64> {
    let last = mean(&rates[rates.len() / 2..])?;
    let near = |window: &[f64]| mean(window).is_some_and(|mean| (mean / last - 1.0).abs() <= NEAR);
    let found = rates.windows(SETTLED_OVER).position(near);
    Some(found.map_or(rates.len(), |begin| begin + SETTLED_OVER) as f64)
}

/// Lines drawn of a run.
pub(super) fn draw(run: &Run<'_>) -> Lines {
    let flow = seconds(run.seen, "flow-1");
    // Of 300 s each other second.
    let every = if flow.len() > 200 { 2 } else { 1 };
    let sent = flow
        .chunks_exact(every)
        .map(|some| (some[0][0], some.iter().map(|second| second[1]).sum::<f64>() / every as f64))
        .collect();
    let mut lines = Lines::from([("sent".into(), sent)]);
    section_4::draw(run, &mut lines);
    testbed::draw(run, &mut lines);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_and_settling_by_hand() {
        assert_eq!(variation(&[1.0, 2.0, 3.0]), Some(50.0));
        assert_eq!(variation(&[]), None);
        // 2 Mbit/s in the end; 4, 4, 2 is too much, 4, 2, 2 is not near, 2, 2, 2 is, and ends after 5 s.
        assert_eq!(settles(&[4.0, 4.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]), Some(5.0));
        // Never: 4.5 in the end, and nothing near it.
        assert_eq!(settles(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 9.0, 9.0]), Some(8.0));
    }
}
