//! Numbers of a run of WBest's testbed: rates in Mbit/s of IP packets, volumes in MByte, times in s, errors in percent.

use lastmile::estimate::{Quantity, Refusal};
use lastmile::observe::stats;
use lastmile::report::{Pattern, StreamRecord};
use lastmile_sim::monitor::series::SeriesRow;

use super::cases::{MOST_PAIRS, PAIRS};
use crate::papers::{Lines, Numbers, Run};

/// Time at which a run of a tool is halted [section III].
pub(super) const HALTED: f64 = 100.0;

/// Error of the median of the first pairs, so many of them.
pub(super) fn of_pairs(pairs: usize) -> String {
    format!("pairs_{pairs}")
}

/// Numbers of a run.
pub(super) fn measure(run: &Run<'_>) -> Numbers {
    let mut numbers = Numbers::new();
    let mut put = |name: String, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            numbers.insert(name.into(), value);
        }
    };
    let outcomes = &run.found.measure.outcomes;
    for (quantity, name) in [(Quantity::AvailableBandwidth, "estimate"), (Quantity::Capacity, "capacity")] {
        let mut found = outcomes.iter().filter_map(|outcome| outcome.estimate.as_ref());
        let found = found.rfind(|estimate| estimate.quantity == quantity);
        put(
            name.into(),
            found.and_then(|found| found.value.rate()).map(|rate| rate.bits_per_second() as f64 / 1e6),
        );
    }
    if let Some(last) = outcomes.last() {
        let took = last.cost.elapsed.as_secs_f64();
        let halted = took > HALTED || matches!(last.refusal, Some(Refusal::Interrupted | Refusal::RunOver));
        put("s".into(), Some(if halted { HALTED } else { took }));
        put("mb".into(), Some(last.cost.bytes().0 as f64 / 1e6));
        put("halted".into(), Some(if halted { 100.0 } else { 0.0 }));
        put("refused".into(), Some(if last.refusal.is_some() { 100.0 } else { 0.0 }));
    }
    for flow in run.network.flows.iter().filter(|flow| flow.flow.starts_with("saturating")) {
        put("truth".into(), flow.goodput_bps.map(|bps| bps / 1e6));
    }
    let warm_up = run.scenario.warm_up.as_secs_f64();
    for (direction, phy, retries) in DIRECTIONS {
        let rows = || run.seen.of("wlan", direction).filter(|row| row.at_s > warm_up);
        let rates: Vec<f64> = rows().filter_map(|row| Some(row.phy_bps? / 1e6)).collect();
        let repeated: Vec<f64> = rows().filter_map(|row| Some(100.0 * row.retry_share?)).collect();
        put(phy.into(), stats::mean(&rates));
        put(retries.into(), stats::mean(&repeated));
    }
    let pings = pings(run);
    if let Some(usual) = stats::quantile(&pings, 0.1) {
        let slow = pings.iter().filter(|rtt| **rtt > SLOW * usual).count();
        put("rtt".into(), stats::median(&pings));
        put("rtt_90".into(), stats::quantile(&pings, 0.9));
        put("slow".into(), Some(100.0 * slow as f64 / pings.len() as f64));
    }
    let records = run.found.measure.records.iter().flat_map(|(_, records)| records);
    if let Some(record) = records.clone().find(|record| record.pattern == Pattern::Pairs) {
        let rates = rates(record);
        let capacity = stats::median(&rates).filter(|_| rates.len() * 10 > MOST_PAIRS * 9);
        for pairs in PAIRS {
            let of = stats::median(&rates[..pairs.min(rates.len())]);
            put(of_pairs(pairs), of.zip(capacity).map(|(of, all)| 100.0 * (of / all - 1.0).abs()));
        }
    }
    if let Some(record) = records.clone().find(|record| record.pattern == Pattern::Train) {
        put("sent".into(), sent(record));
    }
    numbers
}

/// Rates of the pairs that arrived, in the order of sending, in Mbit/s.
fn rates(record: &StreamRecord) -> Vec<f64> {
    let pairs = (1..record.packets.len()).step_by(2).filter_map(|second| {
        let gap = record.receive_gap(second)?.as_nanos() as f64;
        (gap > 0.0).then(|| record.packets[second].size.bits() as f64 * 1e3 / gap)
    });
    pairs.collect()
}

/// Rate at which a train left, in Mbit/s.
fn sent(record: &StreamRecord) -> Option<f64> {
    let (first, rest) = record.packets.split_first()?;
    let bits: u64 = rest.iter().map(|packet| packet.size.bits()).sum();
    Some(bits as f64 * 1e3 / (rest.last()?.sent - first.sent).as_nanos() as f64)
}

/// Directions of figures 27 to 30, by the names of their lines.
pub(super) const DIRECTIONS: [(&str, &str, &str); 3] =
    [("B>ap", "phy_b", "retries_b"), ("C>ap", "phy_c", "retries_c"), ("ap>A", "phy_ap", "retries_ap")];
/// Rate over time of the link before the access point, of the saturated flow, and round-trip times of pings.
pub(super) const PASSING: &str = "passing";
pub(super) const SATURATED: &str = "saturated";
pub(super) const PINGS: &str = "pings";
/// Rate of that link, Mbit/s.
const LAN: f64 = 100.0;
/// A ping is slow that takes longer than so many times the tenth percentile of its run.
const SLOW: f64 = 2.0;

/// Round-trip times of the pings of a run, ms: one each way in a step of the series, each with its own delay.
fn pings(run: &Run<'_>) -> Vec<f64> {
    let of = |way: &'static str| {
        let rows = run.seen.rows.iter().filter(move |row| row.row == "flow" && row.name.starts_with(way));
        rows.map(|row| row.delay_s)
    };
    of("ping").zip(of("pong")).filter_map(|(there, back)| Some(1e3 * (there? + back?))).collect()
}

/// Lines drawn of a run.
pub(super) fn draw(run: &Run<'_>) -> Lines {
    let mut lines = Lines::new();
    let of = |kind, name, value: &dyn Fn(&SeriesRow) -> Option<f64>| -> Vec<(f64, f64)> {
        run.seen.of(kind, name).filter_map(|row| Some((row.at_s, value(row)?))).collect()
    };
    match run.scenario.name.as_str() {
        "wbest-sequence" => {
            let passing = of("link", "lan>ap", &|row| Some(LAN * row.busy_share?));
            lines.insert(PASSING.into(), passing);
        }
        "wbest-ap-13" => {
            let mut all = pings(run);
            all.sort_by(f64::total_cmp);
            let n = all.len() as f64;
            let share = |(k, rtt): (usize, &f64)| (*rtt, 100.0 * (k + 1) as f64 / n);
            lines.insert(PINGS.into(), all.iter().enumerate().map(share).collect());
        }
        _ if run.network.flows.iter().any(|flow| flow.flow.starts_with("saturating")) => {
            for (direction, phy, retries) in DIRECTIONS {
                lines.insert(phy.into(), of("wlan", direction, &|row| Some(row.phy_bps? / 1e6)));
                lines.insert(retries.into(), of("wlan", direction, &|row| Some(100.0 * row.retry_share?)));
            }
            lines.insert(SATURATED.into(), of("flow", "saturating-1", &|row| Some(row.goodput_bps? / 1e6)));
        }
        _ => {}
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::node::Ecn;
    use lastmile::report::{Direction, Fate, PacketReport};
    use lastmile::time::{Span, Time};
    use lastmile::units::Bytes;

    fn record(sent: &[u64], came: &[Option<u64>]) -> StreamRecord {
        let report = |(seq, (sent, came)): (usize, (&u64, &Option<u64>))| PacketReport {
            seq: seq as u64,
            size: Bytes(1_500),
            sent: Time::from_nanos(sent * 1_000),
            fate: came.map_or(Fate::Lost, |came| Fate::Arrived(Time::from_nanos(came * 1_000))),
            ecn: Ecn::NotEct,
        };
        StreamRecord {
            stream: 1,
            direction: Direction::Forward,
            pattern: Pattern::Pairs,
            planned: sent.iter().map(|at| Span::from_micros(*at as i64)).collect(),
            packets: sent.iter().zip(came).enumerate().map(report).collect(),
            tx_resolution: Span::from_nanos(1),
            rx_resolution: Span::from_nanos(1),
            clock_stepped: false,
        }
    }

    /// 12,000 bits in 400 and in 600 us; a pair of which one is lost has no rate. Three packets leave within 2 ms: 24,000 bits.
    #[test]
    fn rates_by_hand() {
        let found = record(
            &[0, 0, 10, 10, 20, 20],
            &[Some(1_000), Some(1_400), Some(2_000), None, Some(3_000), Some(3_600)],
        );
        assert_eq!(rates(&found), [30.0, 20.0]);
        assert_eq!(sent(&record(&[0, 900, 2_000], &[None; 3])), Some(12.0));
    }
}
