//! ZBS: of ZigZag, mBiaz and Spike the one that suits the path, by how far apart packets arrive.
//!
//! Cen, Cosman, Voelker, "End-to-end differentiation of congestion and wireless losses" (LDA), section VII.A. T_narr, the
//! mean time between arrivals over the least, is about the number of flows that share the slowest link.

use super::spacing::{BiazConfig, Spacing};
use super::{
    Arrival, Classifier, Cost, Lda, Loss, LossClass, Name, Spike, SpikeConfig, ZigZag, ZigZagConfig,
};
use crate::options::{OptionError, Options};
use crate::telemetry::Visitor;
use crate::time::{Rx, Span, Time};

/// The algorithm's state.
///
/// ```
/// use lastmile::classify::{Scheme, Zbs};
/// assert_eq!(Zbs::default().scheme(), Scheme::ZigZag);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Zbs {
    config: ZbsConfig,
    biaz: BiazConfig,
    spacing: Spacing,
    zigzag: ZigZag,
    spike: Spike,
    scheme: Scheme,
    /// The mean time between arrivals, those missing counted, in T_min's unit.
    mean_gap: Option<f64>,
    /// When the scheme was chosen, and how many packets have arrived since.
    chosen: Option<(Time<Rx>, u32)>,
    /// When the newest packet arrived, and how long each scheme was in use.
    last_arrival: Option<Time<Rx>>,
    time_used: [Span; 3],
}

/// Classifier that ZBS uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// In doubt: few packets yet, or between one flow and two.
    #[default]
    ZigZag,
    /// The slowest link is ours alone.
    Mbiaz,
    /// The slowest link is shared, or idle.
    Spike,
}

impl Scheme {
    const ALL: [Scheme; 3] = [Scheme::ZigZag, Scheme::Mbiaz, Scheme::Spike];

    /// Its name in the registry.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::ZigZag => "zigzag",
            Scheme::Mbiaz => "mbiaz",
            Scheme::Spike => "spike",
        }
    }
}

crate::options! {
    /// ZBS's parameters.
    pub struct ZbsConfig {
        /// Take the least time between arrivals as it is, for packets of one size, in place of the least per byte
        equal_size: bool = false, "LDA, section III.A: packets of one size";
        /// Least time for which a scheme is used
        lock_time: Span [Span::ZERO..=Span::from_secs(60)] = Span::from_secs(3), "LDA, section VII.A: 3 s";
        /// After so many packets another may be used all the same
        lock_packets: u32 [1..=1_000_000] = 50, "LDA, section VII.A: 50";
        /// ZigZag judges by the delay of the packet before the loss, in place of the one after it
        before: bool = false, "LDA, section III: rott_i, where P_i is the last packet before the loss";
        /// Forget the extrema after so long, and after half of that at the earliest
        window: Option<Span> [Span::from_millis(10)..=Span::from_secs(86_400)] = None, "LDA, section IX.B: never";
        /// Forget what was learnt of a route when it changes
        route_reset: bool = true, "our own: LDA knows one route, section IX.B";
    }
}

/// Its place in the registry.
pub const ENTRY: Lda = Lda {
    name: "zbs",
    about: "whichever of zigzag, mbiaz and spike suits the time between arrivals",
    paper: "Cen, Cosman, Voelker, IEEE/ACM ToN 2003, section VII",
    resolution: "a twentieth of the least time between arrivals",
    // Those of mbiaz, spike and zigzag, the mean, the lock, and up to five comparisons of the rule; the costliest of the three.
    cost: Cost { arrival: [28, 13], loss: [4, 5], state: size_of::<Zbs>() },
    options: ZbsConfig::OPTIONS,
    build: |given| Ok(Box::new(Zbs::new(ZbsConfig::read(given)?)?)),
};

impl Zbs {
    /// With these parameters.
    pub fn new(config: ZbsConfig) -> Result<Zbs, OptionError> {
        let ZbsConfig { equal_size, before, window, route_reset, .. } = config;
        Ok(Zbs {
            biaz: BiazConfig { equal_size, window, route_reset },
            zigzag: ZigZag::new(ZigZagConfig { before, route_reset, ..ZigZagConfig::default() }),
            spike: Spike::new(SpikeConfig { window, route_reset, ..SpikeConfig::default() })?,
            config,
            ..Zbs::default()
        })
    }

    /// The scheme in use.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The share of time for which a scheme was in use (LDA, figure 13).
    pub fn share(&self, scheme: Scheme) -> f64 {
        let all: f64 = self.time_used.iter().map(|span| span.as_secs_f64()).sum();
        if all > 0.0 {
            self.time_used[scheme as usize].as_secs_f64() / all
        } else {
            f64::from(u8::from(self.scheme == scheme))
        }
    }

    /// [LDA, VII.A] The scheme for the path as the newest arrival shows it; none while too little is known.
    fn rule(&self, arrival: &Arrival) -> Option<Scheme> {
        let (rott, least) = (arrival.rott()?, self.spike.min_delay()?);
        let (mean, t_min) = (self.mean_gap?, self.spacing.min_gap()?);
        let narr = mean / t_min;
        Some(match narr {
            _ if rott - least < self.spacing.min_gap_time()?.scaled(0.05) => Scheme::Spike,
            _ if narr < 0.875 => Scheme::ZigZag,
            _ if narr < 1.5 => Scheme::Mbiaz,
            _ if narr < 2.0 => Scheme::ZigZag,
            _ => Scheme::Spike,
        })
    }
}

impl Classifier for Zbs {
    fn on_arrival(&mut self, arrival: &Arrival) {
        let Some(at) = arrival.at else { return };
        if let Some(last) = self.last_arrival.replace(at) {
            let used = &mut self.time_used[self.scheme as usize];
            *used += (at - last).max(Span::ZERO);
        }
        self.zigzag.on_arrival(arrival);
        self.spike.on_arrival(arrival);
        if let Some(gap) = self.spacing.take(&self.biaz, arrival) {
            // [LDA, VII: T_avg]
            self.mean_gap = Some(self.mean_gap.map_or(gap.each(), |mean| 0.875 * mean + 0.125 * gap.each()));
        }
        let (since, packets) = self.chosen.get_or_insert((at, 0));
        *packets = packets.saturating_add(1);
        let locked = at - *since < self.config.lock_time && *packets < self.config.lock_packets;
        if !locked
            && let Some(scheme) = self.rule(arrival)
            && scheme != self.scheme
        {
            self.scheme = scheme;
            self.chosen = Some((at, 0));
        }
    }

    fn classify(&mut self, loss: &Loss) -> LossClass {
        match self.scheme {
            Scheme::ZigZag => self.zigzag.classify(loss),
            Scheme::Spike => self.spike.classify(loss),
            Scheme::Mbiaz if self.spacing.fits(loss, 1.25) => LossClass::Wireless,
            Scheme::Mbiaz => LossClass::Congestion,
        }
    }

    fn on_route_change(&mut self) {
        self.zigzag.on_route_change();
        self.spike.on_route_change();
        self.spacing.on_route_change(&self.biaz);
        if self.config.route_reset {
            (self.scheme, self.mean_gap, self.chosen) = (Scheme::ZigZag, None, None);
        }
    }

    /// The first line of its rule asks for a twentieth of T_min.
    fn resolution_needed(&self) -> Span {
        self.spacing.resolution(20).min(self.zigzag.resolution_needed())
    }

    fn shares(&self) -> Vec<(Name, f64)> {
        Scheme::ALL.iter().map(|&scheme| (scheme.name(), self.share(scheme))).collect()
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.state("scheme", self.scheme.name());
        for (scheme, name) in
            Scheme::ALL.into_iter().zip(["share of zigzag", "share of mbiaz", "share of spike"])
        {
            visitor.number(name, "", self.share(scheme));
        }
        if let (Some(mean), Some(least)) = (self.mean_gap, self.spacing.min_gap()) {
            visitor.number("T_narr", "", mean / least);
        }
    }

    fn clone_box(&self) -> Box<dyn Classifier> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::arrival;
    use super::*;

    /// Packets of 1000 B every `gap` ms with 30 ms in the queue, as many as asked for, after one of 40 and one of 10 ms.
    fn path(gaps: impl IntoIterator<Item = u64>) -> Zbs {
        let mut zbs = Zbs::default();
        zbs.on_arrival(&arrival(0, 0, 10_000)); // the least delay
        let mut at = 40_000;
        for (k, gap) in [10, 10].into_iter().chain(gaps).enumerate() {
            at += 1_000 * gap;
            zbs.on_arrival(&arrival(k as u64 + 1, at - 30_000, 30_000));
        }
        zbs
    }

    #[test]
    fn an_unshared_link_is_mbiazs_a_shared_one_spikes_and_between_them_zigzag() {
        // The least is 10 ms; the mean comes to 1, 1.7 and 4 times that.
        for (gap, scheme) in [(10, Scheme::Mbiaz), (17, Scheme::ZigZag), (40, Scheme::Spike)] {
            assert_eq!(path([gap; 60]).scheme(), scheme, "{gap} ms");
        }
    }

    #[test]
    fn a_mean_below_the_least_is_zigzags() {
        // Every second packet is missing: each gap of 10 ms counts as two of 5.
        let mut zbs = Zbs::default();
        for k in 0..60 {
            zbs.on_arrival(&arrival(2 * k, 10_000 * k, if k == 0 { 10_000 } else { 40_000 }));
        }
        // The 40 ms of the first gap are no longer in the mean.
        assert_eq!(
            (zbs.scheme(), zbs.mean_gap.unwrap() / zbs.spacing.min_gap().unwrap() < 0.875),
            (Scheme::ZigZag, true)
        );
    }

    #[test]
    fn an_idle_link_is_spikes_whatever_the_gaps() {
        let mut zbs = Zbs::default();
        (0..60).for_each(|k| zbs.on_arrival(&arrival(k, 10_000 * k, 10_000)));
        assert_eq!(zbs.scheme(), Scheme::Spike);
    }

    /// The lock ends with the 50th packet or after 3 s, and a change begins another.
    #[test]
    fn a_scheme_is_locked_for_50_packets_or_3_seconds() {
        let scheme_after = |packets: usize, gap| path(vec![gap; packets - 3]).scheme();
        assert_eq!((scheme_after(49, 10), scheme_after(50, 10)), (Scheme::ZigZag, Scheme::Mbiaz));
        // 50 ms from the first to the third, and 2,900 or 3,000 more.
        assert_eq!((scheme_after(32, 100), scheme_after(33, 100)), (Scheme::ZigZag, Scheme::Spike));
        // Mbiaz from the 50th on; 49 packets of a shared link later it still is, the next one is free to change.
        let then = |shared: usize| path([10; 47].into_iter().chain(vec![40; shared])).scheme();
        assert_eq!((then(49), then(50)), (Scheme::Mbiaz, Scheme::Spike));
    }

    #[test]
    fn shares_of_time_add_up() {
        let zbs = path([10; 97]);
        let sum: f64 = Scheme::ALL.iter().map(|&scheme| zbs.share(scheme)).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        // ZigZag until the 50th packet arrives, 40 + 48 * 10 ms after the first: 520 of 1,020 ms.
        assert!((zbs.share(Scheme::ZigZag) - 520.0 / 1020.0).abs() < 1e-9, "{}", zbs.share(Scheme::ZigZag));
    }

    /// ZigZag is in use, and the delay falls with the packet that reveals the loss.
    #[test]
    fn the_packet_before_the_loss_may_judge_in_zigzags_place() {
        for (before, class) in [(false, LossClass::Wireless), (true, LossClass::Congestion)] {
            let mut zbs = Zbs::new(ZbsConfig { before, ..ZbsConfig::default() }).unwrap();
            (0..40).for_each(|k| zbs.on_arrival(&arrival(k, 10_000 * k, 20_000 + 2_000 * (k % 2))));
            zbs.on_arrival(&arrival(41, 410_000, 5_000));
            assert_eq!((zbs.scheme(), zbs.classify(&Loss::of(40, 1))), (Scheme::ZigZag, class));
        }
    }

    /// Mbiaz is in use: a loss that left a gap of two packets is wireless though the delay is at its greatest.
    #[test]
    fn it_judges_as_the_scheme_in_use() {
        for (gap, class) in [(20_000, LossClass::Wireless), (23_000, LossClass::Congestion)] {
            let mut zbs = path([10; 60]);
            zbs.on_arrival(&arrival(64, 0, 660_000 + gap));
            assert_eq!((zbs.scheme(), zbs.classify(&Loss::of(63, 1))), (Scheme::Mbiaz, class));
        }
    }
}
