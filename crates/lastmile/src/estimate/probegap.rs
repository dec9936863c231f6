//! ProbeGap: available bandwidth of a known capacity, by the share of single packets that met an idle link.
//!
//! K. Lakshminarayanan, V. Padmanabhan, J. Padhye, "Bandwidth estimation in broadband access networks", IMC 2004. Small packets at Poisson times see time averages: the share
//! of them that found the link idle is the share of time in which it is. Those have the least delay, and others wait. In the distribution of delays idle packets
//! are a steep rise, and where it ends is the knee:
//!
//! > A = C x share of packets with a delay up to the knee's
//!
//! C is given, or found by [`capprobe`](super::capprobe), whose row then stands before the answer: an error of C is one of A.
//!
//! **Patented**: the knee of a distribution of one-way delays, US 7,675,856, until June 2028. The cargo feature `probegap` is therefore off.
//!
//! **Ours.** No text of the paper was at hand: the number of packets, their size and distances are ours, and so is this knee. It is the point of the distribution F(d)
//! farthest above its chord, among delays d above the least of at most the time S that a packet of 1500 B takes at C:
//!
//! > max F(d) - F(S) d / S
//!
//! Delays beyond that are of packets that surely waited, and have no say. The rates of both clocks are taken out before.

use crate::estimate::known_capacity::FreeShare;
use crate::estimate::{
    Conditions, Estimate, Estimator, Method, Probes, Quantity, Search, Signal, Step, StreamPlan, Warning,
    WarningCode,
};
use crate::observe::{StreamVerdict, skew};
use crate::options::Options;
use crate::report::{PacketReport, StreamRecord};
use crate::time::Span;
use crate::units::{Bytes, Rate};

crate::options! {
    /// ProbeGap's parameters.
    pub struct ProbeGapConfig {
        /// Packets in all
        packets: usize [40..=10_000] = 200, "our own";
        /// The mean time between packets; longer on slow paths, of which they take a twentieth
        probe_gap: Span [Span::from_millis(1)..=Span::from_secs(10)] = Span::from_millis(50), "our own";
        /// Size of the packets at the IP layer
        packet_size: Bytes [Bytes(100)..=Bytes(65_000)] = Bytes(200), "our own: ProbeGap has small ones";
        /// The capacity at the IP layer [default: found as by capprobe]
        capacity: Option<Rate> [Rate::ip(1_000)..=Rate::ip(1_000_000_000_000)] = None, "ProbeGap: known";
        /// Nothing looks at the path
        faithful: bool = false, "ProbeGap";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "probegap",
    about: "available bandwidth of a known capacity, or of CapProbe's, by the share of single packets that met an idle link",
    paper: "Lakshminarayanan, Padmanabhan, Padhye, ProbeGap, IMC 2004",
    estimates: &[Quantity::Capacity, Quantity::AvailableBandwidth],
    pattern: &[Probes::PoissonPackets],
    signal: Signal::Delay,
    search: &[Search::Algorithmic],
    weak: "with a wrong capacity, where several links are busy, whose idle times it cannot tell apart, and where delays scatter without others, as in cells of Wi-Fi",
    round_trip: true,
    in_all: false,
    resolution: "1 us: 600 Mbit/s with the 2 us that kernels add; 250 us: 4.8 Mbit/s",
    options: ProbeGapConfig::OPTIONS,
    brief: &[("packets", "80"), ("probe_gap", "10 ms"), ("capacity", "10 Mbit/s")],
    make: |given, conditions| Ok(Box::new(ProbeGap::new(ProbeGapConfig::read(given)?, *conditions))),
};

/// Packets in a stream: an estimate can be given after each.
const AT_ONCE: usize = 20;
/// Streams in a row that may tell nothing.
const ATTEMPTS: u32 = 4;
/// On slow paths packets are this many times their own time apart in the mean, or more: they take a twentieth.
const LOAD: i64 = 20;
/// Packets of others that wait are at most so large, as a rule.
const LARGEST: Bytes = Bytes(1_500);
/// At a smaller share the least delay may be that of a queue that never emptied.
const BY_CHANCE: f64 = 0.1;

/// Values in rising order up to the knee of their distribution: the point farthest above the chord to `within`. Values count from the least.
fn knee(sorted: &[f64], within: f64) -> usize {
    let chord = sorted.partition_point(|value| *value <= within) as f64;
    // F(d) - F(S) d / S, times the number of all.
    let height = |(at, value): (usize, &f64)| (at + 1) as f64 - chord * value / within;
    let heights = sorted.iter().enumerate().take(chord as usize).map(height).enumerate();
    heights.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at + 1)
}

/// The tool.
pub struct ProbeGap {
    config: ProbeGapConfig,
    free: FreeShare,
    /// Times of departure and delays of the packets that arrived, in nanoseconds.
    delays: Vec<(i64, i64)>,
}

impl ProbeGap {
    /// Ready to start.
    pub fn new(config: ProbeGapConfig, conditions: Conditions) -> ProbeGap {
        let faithful = (config.faithful, "by the paper's rule alone, without a look at the path");
        let free = FreeShare::new(conditions, faithful, config.capacity, None);
        ProbeGap { config, free, delays: Vec::new() }
    }

    /// The share of packets up to the knee.
    fn share(&self) -> Option<f64> {
        let slope = skew::skew(&self.delays).unwrap_or(0.0);
        let since = self.delays.first()?.0;
        let delays = self.delays.iter().map(|(at, delay)| skew::corrected(*at, *delay, slope, since));
        let mut delays: Vec<i64> = delays.collect();
        delays.sort_unstable();
        let least = *delays.first()?;
        let waits: Vec<f64> = delays.iter().map(|delay| delay.saturating_sub(least) as f64).collect();
        let within = self.free.capacity.time_for(LARGEST).as_nanos() as f64;
        Some(knee(&waits, within) as f64 / waits.len() as f64)
    }

    fn found(&self, more: Option<Warning>) -> Vec<Estimate> {
        let Some(share) = self.share() else { return Vec::new() };
        let chance = (share < BY_CHANCE).then(|| {
            let text = "hardly any packet met an idle link, and a queue that never empties looks the same";
            Warning { code: WarningCode::PoorFit, text: text.into() }
        });
        let left = share * self.free.capacity.rate();
        self.free.found(left, Some(self.config.packet_size), more.into_iter().chain(chance))
    }
}

impl Estimator for ProbeGap {
    fn step(&mut self) -> Step {
        if let Some(step) = self.free.step(LARGEST) {
            return step;
        }
        let ProbeGapConfig { packet_size, probe_gap, .. } = self.config;
        let mean = probe_gap.max(self.free.capacity.time_for(packet_size) * LOAD);
        let mut offsets = vec![Span::ZERO];
        while offsets.len() < AT_ONCE {
            offsets.push(offsets[offsets.len() - 1] + self.free.base.exponential(mean));
        }
        self.free.base.send(StreamPlan::uneven(offsets, packet_size))
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        let verdict = self.free.judge(record, AT_ONCE, self.config.probe_gap);
        let Some(verdict) = verdict else { return };
        let text = "a packet of others takes too short a time for these hosts to time";
        if self.free.is_too_short(self.free.capacity.time_for(LARGEST), record, text) {
            return;
        }
        self.free.streams.push(record.stream);
        match verdict {
            StreamVerdict::NoReport | StreamVerdict::ClockStepped | StreamVerdict::Reordered => {
                return self.free.base.waste(verdict, ATTEMPTS);
            }
            _ if record.lost() * 4 > record.packets.len() => {
                return self.free.base.waste(StreamVerdict::TooLossy, ATTEMPTS);
            }
            // A packet that left late left at its own time even so.
            _ => self.free.base.useful(),
        }
        self.free.guard.see(record, 1, &mut self.free.base);
        let delay =
            |p: &PacketReport| Some((i64::try_from(p.sent.as_nanos()).ok()?, p.owd()?.relative_nanos()));
        self.delays.extend(record.packets.iter().filter_map(delay));
        if self.delays.len() >= self.config.packets {
            self.free.base.found(self.found(None));
        } else if self.free.base.sent as usize > 2 * self.config.packets.div_ceil(AT_ONCE) + 1 {
            self.free.base.waste(StreamVerdict::TooLossy, 0);
        }
    }

    fn shrink(&mut self, size: Bytes) -> bool {
        let shrinks =
            self.free.base.shrink(&mut self.config.packet_size, size, !self.free.streams.is_empty());
        self.free.capacity.shrink(size) || shrinks
    }

    fn so_far(&self) -> Vec<Estimate> {
        if self.free.base.is_done() || self.delays.len() < 2 * AT_ONCE {
            return Vec::new();
        }
        let text = format!("from {} of {} packets", self.delays.len(), self.config.packets);
        self.found(Some(Warning { code: WarningCode::Partial, text }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::build;
    use crate::estimate::known_capacity::testing;

    /// Six of ten met an idle link, to 50 us. F(S) = 1 with S = 1200: 0.6 - 50 / 1200 = 0.558 at the sixth, and 0.7 - 300 / 1200 = 0.45 at the seventh. Two that waited
    /// longer than S, so that F(S) is 0.8: 0.6 at the sixth, and 0.7 - 0.8 x 400 / 1200 = 0.433 at the seventh. An idle path, and delays that are spread evenly.
    #[test]
    fn the_knee_is_farthest_above_the_chord() {
        assert_eq!(knee(&[0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 300.0, 600.0, 900.0, 1200.0], 1200.0), 6);
        assert_eq!(knee(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 400.0, 800.0, 5000.0, 9000.0], 1200.0), 6);
        assert_eq!(
            (knee(&[0.0; 7], 1200.0), knee(&[0.0, 400.0, 800.0, 1200.0], 1200.0), knee(&[], 9.0)),
            (7, 1, 0)
        );
    }

    /// Two in five packets wait, 100 to 1190 us, on a path of 10 Mbit/s, by clocks that go apart by 50 ppm: 6 Mbit/s are left.
    #[test]
    fn what_is_left_is_the_share_that_met_nobody() {
        let waits =
            |stream: u64, k: usize| if k % 5 > 2 { 100 + (k as u64 * 389 + stream * 97) % 1_090 } else { 0 };
        let late = |stream, sent: &[u64], k: usize| sent[k] / 20_000 + waits(stream, k);
        let (rate, counts) = testing::found("probegap(capacity=10 Mbit/s)", late);
        assert!((rate / 6e6 - 1.0).abs() < 0.02, "{rate}");
        assert_eq!(counts, [1, 1, 11]);
    }

    #[test]
    fn without_a_capacity_it_asks_capprobe() {
        let mut tool = build(&"probegap".parse().unwrap(), &Conditions::exact(1)).unwrap();
        let Step::Send(plan) = tool.step() else { panic!() };
        assert_eq!((plan.packets.len(), plan.packets[0].size), (40, Bytes(1488)));
    }
}
