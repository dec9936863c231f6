//! [`Load`]: what each measurement of a session put on the path, and how its own packets fared there.

use super::{Cost, Decision};
use crate::observe::stats;
use crate::report::{Direction, StreamRecord};
use crate::time::Span;
use crate::units::{Bytes, Layer, Rate};

/// Load of one measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// From the end of the measurement before, and the pause after it, to the result.
    pub elapsed: Span,
    /// IP bytes of its probes in the direction measured.
    pub bytes: Bytes,
    /// Its probes of which a record was made.
    pub packets: usize,
    /// Those of them that did not arrive.
    pub lost: usize,
    /// Rise of the one-way delay over its least, which 95 of 100 packets that arrived stay within; of round trips the rise of these.
    pub delay_rise: Option<Span>,
}

impl Load {
    /// Mean rate of its probes from its beginning to its end.
    ///
    /// ```
    /// use lastmile::{endpoint::measure::Load, time::Span, units::{Bytes, Rate}};
    /// let load = Load { elapsed: Span::from_secs(2), bytes: Bytes(250_000), ..Load::default() };
    /// assert_eq!(load.rate(), Some(Rate::ip(1_000_000)));
    /// ```
    pub fn rate(&self) -> Option<Rate> {
        Rate::over(self.bytes, self.elapsed, Layer::Ip)
    }

    /// Share of its probes that did not arrive.
    pub fn lost_share(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.lost as f64 / self.packets as f64)
    }

    /// True if it sent nothing: it was refused before its first stream.
    pub fn is_idle(&self) -> bool {
        self.bytes == Bytes::ZERO
    }

    /// The load behind each result of a session, in the order of its decisions; `pause` is the time between two measurements.
    pub fn of_each<'a>(
        decisions: impl IntoIterator<Item = &'a Decision>,
        records: &[StreamRecord],
        pause: Span,
    ) -> Vec<Load> {
        let mut all: Vec<Load> = Vec::new();
        let (mut before, mut rest) = (Cost::default(), Span::ZERO);
        let mut streams: Vec<&StreamRecord> = Vec::new();
        let mut last: Option<(&str, Direction, Cost, Load)> = None;
        for decision in decisions {
            let (method, direction, cost) = match decision {
                Decision::StreamJudged { stream, .. } => {
                    streams.extend(records.iter().find(|record| record.stream == *stream));
                    continue;
                }
                Decision::Estimated { method, direction, cost, .. }
                | Decision::Refused { method, direction, cost, .. } => (method.as_str(), *direction, *cost),
                _ => continue,
            };
            // The results of one measurement have one cost.
            if let Some((.., load)) =
                last.filter(|last| (last.0, last.1, last.2) == (method, direction, cost))
            {
                all.push(load);
                continue;
            }
            let load = Load { elapsed: cost.elapsed - before.elapsed - rest, ..Load::default() };
            let load = load.with(&streams, direction, cost.probe_bytes - before.probe_bytes);
            rest = if cost.has_probed_since(&before) { pause } else { Span::ZERO };
            (before, last) = (cost, Some((method, direction, cost, load)));
            streams.clear();
            all.push(load);
        }
        all
    }

    fn with(self, streams: &[&StreamRecord], direction: Direction, sent: Bytes) -> Load {
        let packets = || streams.iter().flat_map(|stream| &stream.packets);
        let delays: Vec<i64> = packets().filter_map(|p| Some(p.owd()?.relative_nanos())).collect();
        let least = delays.iter().min().copied().unwrap_or(0);
        let rises: Vec<f64> = delays.iter().map(|delay| (delay - least) as f64).collect();
        Load {
            elapsed: self.elapsed.max(Span::ZERO),
            bytes: match direction {
                Direction::Reverse => packets().map(|packet| packet.size).sum(),
                _ => sent,
            },
            packets: packets().count(),
            lost: streams.iter().map(|stream| stream.lost()).sum(),
            delay_rise: stats::quantile(&rises, 0.95).map(|nanos| Span::from_nanos(nanos as i64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Refusal;
    use crate::node::Ecn;
    use crate::observe::StreamVerdict;
    use crate::report::{Fate, PacketReport, Pattern};
    use crate::time::Time;

    /// Twenty packets of 1000 B: the delay of the k-th is k ms above the least, and the last is lost.
    fn record(stream: u32, direction: Direction) -> StreamRecord {
        let packet = |k: u64| PacketReport {
            seq: k,
            size: Bytes(1_000),
            sent: Time::from_nanos(k * 10_000_000),
            fate: match k {
                20 => Fate::Lost,
                k => Fate::Arrived(Time::from_nanos(5_000_000 + k * 11_000_000)),
            },
            ecn: Ecn::NotEct,
        };
        StreamRecord {
            stream,
            direction,
            pattern: Pattern::Train,
            planned: vec![Span::ZERO; 21],
            packets: (0..=20).map(packet).collect(),
            tx_resolution: Span::from_nanos(1),
            rx_resolution: Span::from_nanos(1),
            clock_stepped: false,
        }
    }

    fn judged(stream: u32, direction: Direction) -> Decision {
        let (pattern, verdict) = (Pattern::Train, StreamVerdict::Believed);
        Decision::StreamJudged { stream, direction, pattern, packets: 21, lost: 1, gaps_held: 20, verdict }
    }

    fn ended(method: &str, direction: Direction, seconds: i64, probes: u64, streams: u32) -> Decision {
        let elapsed = Span::from_secs(seconds);
        let cost = Cost { probe_bytes: Bytes(probes), elapsed, streams, ..Cost::default() };
        let (method, refusal) = (method.to_owned(), Refusal::Interrupted);
        Decision::Refused { method, direction, refusal, cost }
    }

    #[test]
    fn each_measurement_has_its_own_part_of_the_session() {
        let (there, back) = (Direction::Forward, Direction::Reverse);
        let records = [record(1, there), record(2, back)];
        let decisions = [
            judged(1, there),
            ended("a", there, 2, 21_000, 1),
            ended("a", there, 2, 21_000, 1),
            judged(2, back),
            ended("a", back, 7, 21_000, 2),
            ended("b", there, 8, 21_000, 2),
            ended("b", back, 8, 21_000, 2),
        ];
        let loads = Load::of_each(&decisions, &records, Span::from_secs(1));
        assert_eq!(loads.len(), 5);
        assert_eq!(loads[0], loads[1], "two results of one measurement");
        // 21 kB in two seconds, and in the four between the pause and the result: 84 and 42 kbit/s.
        assert_eq!(loads[0].rate(), Some(Rate::ip(84_000)));
        assert_eq!((loads[2].elapsed, loads[2].rate()), (Span::from_secs(4), Some(Rate::ip(42_000))));
        // Of delays 0 to 19 ms above the least, 95 of 100 are within 18.05.
        assert_eq!(loads[2].delay_rise, Some(Span::from_micros(18_050)));
        assert_eq!((loads[2].packets, loads[2].lost), (21, 1));
        // The pause behind the second measurement ended with it; the third had none before it.
        assert!(loads[3].is_idle() && loads[3].elapsed == Span::ZERO && loads[3].rate().is_none());
        assert!(loads[4].is_idle() && loads[4].lost_share().is_none() && loads[4].delay_rise.is_none());
    }
}
