//! Round trip, jitter and loss of a measurement's own packets, as rows of its answer.

use lastmile::observe::stats;
use lastmile::report::{Direction, Pattern, StreamRecord};
use lastmile::time::{Owd, Span};
use lastmile_report::text::Table;

use super::answer::{short, way};

/// Packets of one direction.
#[derive(Debug, Default)]
struct Seen {
    packets: usize,
    lost: usize,
    /// By how much the delays of one pair's first packet and the next one's differ, seconds.
    varied: Vec<f64>,
    /// Round-trip times of the pairs' first packets, seconds.
    round_trips: Vec<f64>,
}

/// The rows of a session's streams: empty if no packet arrived.
///
/// Jitter is the mean difference between the delays of two packets that followed each other, as RFC 3550's without its smoothing. Only the
/// first packets of pairs count: those of trains queue behind each other.
pub(crate) fn rows(records: impl IntoIterator<Item = StreamRecord>, host: &str) -> String {
    let mut all = [Direction::Forward, Direction::Reverse, Direction::RoundTrip]
        .map(|direction| (direction, Seen::default()));
    for record in records {
        let arrived = record.packets.len() - record.lost();
        if let Some((_, seen)) =
            all.iter_mut().find(|(direction, _)| *direction == record.direction && arrived > 0)
        {
            seen.take(&record);
        }
    }
    let seen: Vec<_> = all.into_iter().filter(|(_, seen)| seen.packets > 0).collect();
    let heads: Vec<String> = seen.iter().map(|(direction, _)| way(*direction, host)).collect();
    let mut table = Table::new(&[&[""], &heads.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
    let mut row = |name: &str, of: &dyn Fn(&Seen) -> Option<String>| {
        let cells: Vec<_> = seen.iter().map(|(_, seen)| of(seen)).collect();
        if cells.iter().any(Option::is_some) {
            table.row([name.to_owned()].into_iter().chain(cells.into_iter().map(Option::unwrap_or_default)));
        }
    };
    row("round trip", &Seen::round_trip);
    row("jitter", &Seen::jitter);
    row("loss", &|seen| Some(format!("{} of {} packets", seen.lost, seen.packets)));
    if seen.is_empty() { String::new() } else { table.text() }
}

impl Seen {
    fn take(&mut self, record: &StreamRecord) {
        self.packets += record.packets.len();
        self.lost += record.lost();
        if record.pattern != Pattern::Pairs || record.clock_stepped {
            return;
        }
        let firsts = (0..record.packets.len()).step_by(2);
        self.round_trips.extend(firsts.clone().filter_map(|at| Some(record.rtt(at)?.as_secs_f64())));
        let delays: Vec<Option<Owd>> = firsts.map(|at| record.packets[at].owd()).collect();
        let difference = |two: &[Option<Owd>]| Some((two[1]? - two[0]?).abs().as_secs_f64());
        self.varied.extend(delays.windows(2).filter_map(difference));
    }

    /// The median, and the interval that holds nine of ten.
    fn round_trip(&self) -> Option<String> {
        let at = |share| stats::quantile(&self.round_trips, share).map(Span::from_secs_f64).map(short);
        Some(format!("{} ({} .. {})", at(0.5)?, at(0.05)?, at(0.95)?))
    }

    fn jitter(&self) -> Option<String> {
        stats::mean(&self.varied).map(|mean| short(Span::from_secs_f64(mean)).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::node::Ecn;
    use lastmile::report::{Fate, PacketReport};
    use lastmile::time::Time;
    use lastmile::units::Bytes;

    /// Pairs 100 ms apart, whose first packets take so many milliseconds; None is lost.
    fn pairs(direction: Direction, delays_ms: &[Option<u64>]) -> StreamRecord {
        let ms = |n: u64| n * 1_000_000;
        let packet = |at: usize, delay: Option<u64>| {
            let sent = ms(100 * (at as u64 / 2));
            let fate = delay.map_or(Fate::Lost, |delay| Fate::Arrived(Time::from_nanos(sent + ms(delay))));
            let (sent, size) = (Time::from_nanos(sent), Bytes(1488));
            PacketReport { seq: at as u64, size, sent, fate, ecn: Ecn::NotEct }
        };
        // The second of a pair waits for the first, and says nothing.
        let both = delays_ms.iter().flat_map(|delay| [*delay, Some(90)]);
        let packets: Vec<_> = both.enumerate().map(|(at, delay)| packet(at, delay)).collect();
        StreamRecord {
            stream: 1,
            direction,
            pattern: Pattern::Pairs,
            planned: vec![Span::ZERO; packets.len()],
            packets,
            tx_resolution: Span::from_nanos(1),
            rx_resolution: Span::from_nanos(1),
            clock_stepped: false,
        }
    }

    #[test]
    fn jitter_is_of_first_packets_and_loss_of_all() {
        // |14 - 10| and |11 - 14|; no difference across the lost one.
        let forward = pairs(Direction::Forward, &[Some(10), Some(14), Some(11), None, Some(30)]);
        let train = StreamRecord { pattern: Pattern::Train, ..pairs(Direction::Forward, &[Some(1), None]) };
        let reverse = pairs(Direction::Reverse, &[Some(10), Some(10)]);
        let silent = pairs(Direction::RoundTrip, &[]);
        assert_eq!(
            rows([forward, train, reverse, silent], "b"),
            "        to b             from b\njitter  3.5 ms           0 ns\nloss    2 of 14 packets  0 of 4 packets\n"
        );
        assert_eq!(rows([], "b"), "");
    }

    #[test]
    fn a_round_trip_is_a_median_with_its_range() {
        let trip = pairs(Direction::RoundTrip, &[Some(20), Some(22), Some(30)]);
        let text = rows([trip], "b");
        assert!(text.starts_with("            round-trip\nround trip  22 ms (20"), "{text}");
    }
}
