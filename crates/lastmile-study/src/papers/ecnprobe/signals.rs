//! All congestion signals of one train, and what each says of it: the framework's p(t) (section III and Table I) at one turning point.

use lastmile::node::Ecn;
use lastmile::observe::{signal, stats};
use lastmile::report::{Direction, Fate, PacketReport, Pattern, StreamRecord};
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;

use super::cases::{FRAMING, HUB};
use crate::papers::Passed;

/// Signals, and the rule by which each says that a train is faster than what is left: the name of its share of trains, its name, its rule.
pub(super) const SIGNALS: [(&str, &str, &str); 7] = [
    ("by_gap", "delay gap", "the sum of gaps grew by more than 5 us (IGI)"),
    ("by_throughput", "throughput", "it came by 5 % slower than it left (PTR)"),
    ("by_trend", "delay trend", "PCT above 0.55 and PDT above 0.4 (Pathload)"),
    ("by_delay", "delay", "its last tenth waited for three packets more than its least (Vegas)"),
    ("by_loss", "loss", "a packet was lost (Reno)"),
    ("by_marks", "marks, 0.05", "more than a twentieth came marked (ECNProbe)"),
    ("by_few_marks", "marks, 0.005", "more than one in 200 came marked (ours)"),
];

/// [IGI 1.0]
const GREW: f64 = 5e-6;
/// [IGI: equal gaps]
const SLOWER: f64 = 1.05;
/// [table IV]
const PCT: f64 = 0.55;
const PDT: f64 = 0.4;
/// Vegas' beta.
const WAITS: f64 = 3.0;
/// [section IV-E], and our default.
const RATIOS: [f64; 2] = [0.05, 0.005];

/// A train as a tap on the path saw it.
pub(super) struct Train(StreamRecord);

impl Train {
    /// The first stream of a run, whose packets went one way.
    pub(super) fn first(passed: &[Passed]) -> Option<Train> {
        let (stream, _) = passed.iter().find_map(|passed| passed.probe)?;
        let of: Vec<&Passed> =
            passed.iter().filter(|p| p.probe.is_some_and(|probe| probe.0 == stream)).collect();
        let zero = of.first()?.planned?;
        let planned = |p: &&Passed| {
            let since = p.planned.unwrap_or(zero).wrapping_sub(zero) as f64 / 4_294_967_296.0;
            Span::from_secs_f64(since)
        };
        let packet = |(seq, p): (usize, &&Passed)| PacketReport {
            seq: seq as u64,
            size: Bytes(p.size),
            sent: Time::from_nanos(p.left.as_nanos()),
            fate: p.arrived.map_or(Fate::Lost, |at| Fate::Arrived(Time::from_nanos(at.as_nanos()))),
            ecn: if p.marked { Ecn::Ce } else { Ecn::Ect0 },
        };
        Some(Train(StreamRecord {
            stream,
            direction: Direction::Forward,
            pattern: Pattern::Train,
            planned: of.iter().map(planned).collect(),
            packets: of.iter().enumerate().map(packet).collect(),
            tx_resolution: Span::from_nanos(1),
            rx_resolution: Span::from_nanos(1),
            clock_stepped: false,
        }))
    }
}

/// The signals of a train, and the verdict of each: 100 if it is too fast, 0 if not.
pub(super) fn read(Train(record): &Train, put: &mut dyn FnMut(&'static str, Option<f64>)) {
    let mut says = |name: &'static str, too_fast: Option<bool>| {
        put(name, too_fast.map(|too_fast| if too_fast { 100.0 } else { 0.0 }));
    };
    let gaps = signal::gaps(record, false);
    let [sent, received] = signal::sums(&gaps).map(Span::as_secs_f64);
    let any = !gaps.is_empty() && sent > 0.0;
    says("by_gap", any.then_some(received > sent + GREW));
    says("by_throughput", any.then_some(received > SLOWER * sent));
    let delays = signal::delays(record);
    let trend = signal::Trend::of(&delays);
    says("by_trend", trend.map(|trend| trend.pct() > PCT && trend.pdt > PDT));
    let packet = record.packets.first().map_or(0.0, |packet| packet.size.0 as f64 + FRAMING) * 8e3 / HUB;
    let last = &delays[delays.len() - delays.len() / 10..];
    let risen = stats::mean(last).map(|last| last - delays.iter().copied().fold(f64::INFINITY, f64::min));
    says("by_delay", risen.map(|risen| risen > WAITS * packet));
    says("by_loss", Some(record.lost() > 0));
    let marks = signal::marks(record);
    says("by_marks", marks.map(|marks| marks > RATIOS[0]));
    says("by_few_marks", marks.map(|marks| marks > RATIOS[1]));
    put("marks", marks.map(|marks| 100.0 * marks));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty packets of 500 B each 400 us that come each 430.4 us, as long as one takes on the wire: all signals but loss and marks say so, and
    /// the last two come marked: a tenth.
    #[test]
    fn a_train_that_fills_the_queue_is_too_fast_by_each_signal() {
        let train = |spread: u64, marked: usize, lost: bool| {
            let passed: Vec<Passed> = (0..20_u64)
                .map(|k| Passed {
                    probe: Some((3, k as u16)),
                    planned: Some(7 + k * 1_717_987), // 400 us
                    left: Time::from_nanos(k * 400_000),
                    arrived: (!lost || k != 4).then(|| Time::from_nanos(1_000_000 + k * spread)),
                    size: 500,
                    marked: k as usize >= 20 - marked,
                })
                .collect();
            let mut said = Vec::new();
            let train = Train::first(&passed).unwrap();
            assert_eq!(train.0.planned[1].as_nanos() / 1_000, 400);
            read(&train, &mut |name, value| said.push((name, value)));
            SIGNALS.map(|(name, ..)| said.iter().find(|(of, _)| *of == name).unwrap().1.unwrap())
        };
        assert_eq!(train(430_400, 2, false), [100.0, 100.0, 100.0, 0.0, 0.0, 100.0, 100.0]);
        assert_eq!(train(600_000, 0, true), [100.0, 100.0, 100.0, 100.0, 100.0, 0.0, 0.0]);
        assert_eq!(train(400_000, 0, false), [0.0; 7]);
    }
}
