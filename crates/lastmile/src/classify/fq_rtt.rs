//! `fq-rtt`: an isolated loss is not congestion while the round-trip time is below what it is when the queue is full.
//!
//! Kazuho Oku's design note for quicly (h2o/quicly, issue 687, 2026). The estimator fqRTT smooths samples that were taken when
//! the queue was full: on leaving a recovery, one sample, the least round-trip time of the losses of the episode, if there was
//! no sample before or the episode lost several packets. It needs no stamps of the other side.
//!
//! The note names neither the weights of the smoothing nor what ends a recovery here, where there is no window: RFC 6298's
//! weights (1/8 and 1/4, the variation starting at half of the first sample), and the first arrival of a packet that was sent
//! after the episode's last loss was found.

use super::{Arrival, Classifier, Cost, Lda, Loss, LossClass};
use crate::options::Options;
use crate::telemetry::Visitor;
use crate::time::{Span, Time, Tx};

/// The algorithm's state.
///
/// ```
/// use lastmile::classify::{Classifier, FqRtt, Loss, LossClass};
/// assert_eq!(FqRtt::default().classify(&Loss::of(0, 1)), LossClass::Congestion);
/// ```
#[derive(Clone, Debug, Default)]
pub struct FqRtt {
    config: FqRttConfig,
    /// The newest round-trip time, and when the packet that measured it came back.
    latest_rtt: Option<(Span, Time<Tx>)>,
    min_rtt: Option<Span>,
    /// sfqRTT and fqRTTvar.
    full_queue: Option<(Span, Span)>,
    episode: Option<Episode>,
    last_loss_found: Option<Time<Tx>>,
}

/// Losses that belong together.
#[derive(Clone, Copy, Debug)]
struct Episode {
    /// Over with the arrival of a packet that was sent at that time or later.
    until: Time<Tx>,
    lost: u64,
    min_rtt: Span,
}

crate::options! {
    /// fq-rtt's parameters.
    pub struct FqRttConfig {
        /// So far above the least round-trip time a loss is congestion whatever a full queue was
        guard: Span [Span::ZERO..=Span::from_secs(1)] = Span::from_millis(5), "quicly, issue 687: 5 ms, for CoDel and its like";
        /// Forget round-trip times when the route changes
        route_reset: bool = true, "our own";
    }
}

/// Its place in the registry.
pub const ENTRY: Lda = Lda {
    name: "fq-rtt",
    about: "congestion unless a loss is the only one of its round trip and the round-trip time below that of a full queue",
    paper: "h2o/quicly, issue 687, 2026",
    resolution: "any: no stamps of arrival",
    cost: Cost { arrival: [3, 0], loss: [6, 0], state: size_of::<FqRtt>() },
    options: FqRttConfig::OPTIONS,
    build: |given| Ok(Box::new(FqRtt::new(FqRttConfig::read(given)?))),
};

impl FqRtt {
    /// With these parameters.
    pub fn new(config: FqRttConfig) -> FqRtt {
        FqRtt { config, ..FqRtt::default() }
    }

    /// Takes in a sample of a full queue [RFC 6298, section 2].
    fn full(&mut self, sample: Span) {
        self.full_queue = Some(match self.full_queue {
            None => (sample, sample / 2),
            Some((mean, variation)) => ((mean * 7 + sample) / 8, (variation * 3 + (mean - sample).abs()) / 4),
        });
    }
}

impl Classifier for FqRtt {
    fn on_arrival(&mut self, arrival: &Arrival) {
        let Some(rtt) = arrival.rtt else { return };
        self.latest_rtt = Some((rtt, arrival.sent + rtt));
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        if let Some(over) = self.episode.take_if(|episode| arrival.sent >= episode.until)
            && (self.full_queue.is_none() || over.lost > 1)
        {
            self.full(over.min_rtt);
        }
    }

    fn classify(&mut self, _: &Loss) -> LossClass {
        let (Some((latest, now)), Some(least)) = (self.latest_rtt, self.min_rtt) else {
            return LossClass::Congestion;
        };
        let second = self.last_loss_found.replace(now).is_some_and(|before| now - before <= latest);
        let episode = self.episode.get_or_insert(Episode { until: now, lost: 0, min_rtt: latest });
        episode.lost += 1;
        (episode.until, episode.min_rtt) = (now, episode.min_rtt.min(latest));
        let Some((mean, variation)) = self.full_queue else { return LossClass::Congestion };
        let full = (mean - variation).min(least + self.config.guard);
        if second || latest >= full { LossClass::Congestion } else { LossClass::Wireless }
    }

    fn on_route_change(&mut self) {
        if self.config.route_reset {
            *self = FqRtt::new(self.config.clone());
        }
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        if let Some((mean, variation)) = self.full_queue {
            visitor.number("round-trip time of a full queue", "s", mean.as_secs_f64());
            visitor.number("variation of that", "s", variation.as_secs_f64());
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

    /// A packet sent at so many milliseconds with that round-trip time, and whether a loss that it reveals is congestion.
    fn step(fq: &mut FqRtt, ms: u64, rtt: i64, lost: bool) -> Option<bool> {
        fq.on_arrival(&Arrival { rtt: Some(Span::from_millis(rtt)), ..arrival(ms, 1_000 * ms, 0) });
        lost.then(|| fq.classify(&Loss::of(ms, 1)) == LossClass::Congestion)
    }

    /// Least 40 ms. The first loss, at 100, teaches a full queue of 100 with a variation of 50: the threshold is the lesser of
    /// 50 and 45.
    #[test]
    fn an_isolated_loss_far_below_a_full_queue_is_not_congestion() {
        let mut fq = FqRtt::default();
        step(&mut fq, 0, 40, false);
        assert_eq!(step(&mut fq, 1_000, 100, true), Some(true), "nothing was learnt");
        step(&mut fq, 1_050, 100, false);
        assert_eq!(fq.full_queue, None, "the recovery is not over");
        step(&mut fq, 1_100, 90, false);
        assert_eq!(fq.full_queue, Some((Span::from_millis(100), Span::from_millis(50))));
        assert_eq!(step(&mut fq, 2_000, 44, true), Some(false));
        assert_eq!(step(&mut fq, 3_000, 45, true), Some(true), "5 ms above the least");
        // The second within one round trip, and the first that is not.
        assert_eq!(step(&mut fq, 4_000, 44, true), Some(false));
        assert_eq!(step(&mut fq, 4_044, 44, true), Some(true));
        assert_eq!(step(&mut fq, 4_100, 44, true), Some(false));
    }

    #[test]
    fn later_samples_come_of_episodes_that_lost_several_packets() {
        let mut fq = FqRtt::default();
        step(&mut fq, 0, 40, false);
        step(&mut fq, 1_000, 100, true);
        step(&mut fq, 2_000, 100, false);
        step(&mut fq, 3_000, 200, true);
        step(&mut fq, 4_000, 100, false);
        assert_eq!(fq.full_queue, Some((Span::from_millis(100), Span::from_millis(50))), "one packet");
        step(&mut fq, 5_000, 190, true);
        step(&mut fq, 5_010, 180, true);
        step(&mut fq, 6_000, 100, false);
        // The least of both: (7 * 100 + 180) / 8, (3 * 50 + 80) / 4.
        assert_eq!(fq.full_queue, Some((Span::from_millis(110), Span::from_micros(57_500))));
    }
}
