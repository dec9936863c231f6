//! [`Discriminator`]: a classifier at work. It steps aside while times of arrival are too coarse for it, and while it takes
//! more for wireless losses than a wireless link can well have. Its verdicts are counted, against the truth where a simulation
//! tells it.

use std::collections::BTreeMap;

use super::{Arrival, Classifier, Decision, Lda, Loss, LossClass, Name, Spike, SpikeRtt};
use crate::options::{Choice, ChoiceError, Given, Options};
use crate::telemetry::Visitor;
use crate::time::{Span, Time, Tx};

/// Verdicts on losses, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCounts {
    /// Judged to be congestion.
    pub congestion: u64,
    /// Judged to be wireless.
    pub wireless: u64,
    /// Of those whose cause is known, lost to congestion, and judged wireless all the same.
    pub congestion_missed: u64,
    /// Of those whose cause is known, lost to congestion.
    pub congestion_known: u64,
    /// Of those whose cause is known, lost by the wireless link, and judged congestion all the same.
    pub wireless_missed: u64,
    /// Of those whose cause is known, lost by the wireless link.
    pub wireless_known: u64,
}

impl LossCounts {
    /// The share of packets lost to congestion that were judged wireless (LDA, section IV: Mc).
    ///
    /// ```
    /// use lastmile::classify::LossCounts;
    /// let counts = LossCounts { congestion_known: 4, congestion_missed: 1, ..LossCounts::default() };
    /// assert_eq!((counts.mc(), counts.mw()), (Some(0.25), None));
    /// ```
    pub fn mc(&self) -> Option<f64> {
        (self.congestion_known > 0).then(|| self.congestion_missed as f64 / self.congestion_known as f64)
    }

    /// The share of packets lost by the wireless link that were judged congestion (LDA, section IV: Mw).
    pub fn mw(&self) -> Option<f64> {
        (self.wireless_known > 0).then(|| self.wireless_missed as f64 / self.wireless_known as f64)
    }

    /// Counts a verdict, and what the loss really was where that is known.
    pub fn count(&mut self, class: LossClass, truth: Option<LossClass>) {
        let missed = u64::from(truth.is_some_and(|truth| truth != class));
        match class {
            LossClass::Congestion => self.congestion += 1,
            LossClass::Wireless => self.wireless += 1,
        }
        match truth {
            Some(LossClass::Congestion) => {
                self.congestion_known += 1;
                self.congestion_missed += missed;
            }
            Some(LossClass::Wireless) => {
                self.wireless_known += 1;
                self.wireless_missed += missed;
            }
            None => {}
        }
    }
}

/// Verdicts on losses in all, and their classifiers.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Verdicts {
    /// The classifier that judged most of the packets: not the one asked for if stamps were too coarse for it.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "super::name"))]
    pub classifier: Name,
    /// Packets that were judged to be lost to congestion.
    pub congestion: u64,
    /// Packets that were judged to be lost by the wireless link.
    pub wireless: u64,
    /// Packets that each classifier judged, if several did.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "BTreeMap::is_empty"))]
    pub by: BTreeMap<String, u64>,
    /// Of a classifier that is made of several schemes, the share of time for which each was in use; empty where it never judged.
    pub shares: BTreeMap<String, f64>,
}

/// The judge at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judge {
    Own,
    Spike,
    SpikeRtt,
    None,
}

impl Judge {
    const ALL: [Judge; 4] = [Judge::Own, Judge::Spike, Judge::SpikeRtt, Judge::None];
}

crate::options! {
    /// Options of every classifier beside its own.
    pub struct DoubtConfig {
        /// Do not believe it once it takes more than this share of all packets for lost by the wireless link; 1 is never
        doubt: f64 [0.0..=1.0] = 0.2, "our own: the papers' channels lose a twelfth at most";
        /// Send less for moments to see whether losses that it takes for the wireless link's cease
        rate_test: bool = true, "our own: queues that stay short";
    }
}

/// So many packets and so long tell a share.
const PERIOD: (u32, Span) = (200, Span::from_secs(2));
/// So many such periods in a row make a doubt: now and then a burst of losses fills one.
const IN_A_ROW: u8 = 2;

/// A classifier that is doubted again and again is trusted after twice as many periods each time, as often as this.
const MOST_DOUBTS: u8 = 6;
/// A doubt by a test of the rate counts as so many: queues that stay short go on doing so.
const DOUBTS_BY_RATE: u8 = 4;

/// Doubt about a classifier, from the shares that it judges wireless.
#[derive(Clone, Copy, Debug, Default)]
struct Doubt {
    /// The packets a second of the last period.
    rate: f32,
    /// A period: the departure of its first packet, its packets, those lost, and those of these that were judged wireless.
    period_start: Option<Time<Tx>>,
    packets: u32,
    lost: u32,
    wireless: u32,
    /// The share that is too much; the one that was when the last doubt came, and the packets a second then.
    max_share: f32,
    doubted_share: f32,
    doubted_rate: f32,
    doubts: u8,
    /// Good periods until the doubt ends; none where there is no doubt.
    periods_left: u8,
    /// Periods that told of too much.
    periods_in_a_row: u8,
    /// The doubt was wrong: the link does lose so much.
    link_is_lossy: bool,
}

impl Doubt {
    /// None yet.
    fn over(max_share: f32) -> Doubt {
        Doubt { max_share, ..Doubt::default() }
    }

    /// Takes in the arrival of a packet sent at that time; true if the doubt begins.
    fn comes(&mut self, sent: Time<Tx>) -> bool {
        let began = *self.period_start.get_or_insert(sent);
        self.packets = self.packets.saturating_add(1);
        if self.packets < PERIOD.0 || sent - began < PERIOD.1 {
            return false;
        }
        let [lost, wireless] = [self.lost, self.wireless].map(|part| part as f32 / self.packets as f32);
        let rate = self.packets as f32 / (sent - began).as_secs_f64() as f32;
        (self.period_start, self.packets, self.lost, self.wireless) = (None, 0, 0, 0);
        self.rate = rate;
        if self.periods_left > 0 {
            if rate < self.doubted_rate / 2.0 && lost > 0.75 * self.doubted_share {
                // A full queue would lose less of half the rate.
                (self.periods_left, self.link_is_lossy) = (0, true);
            } else if lost < self.max_share / 2.0 {
                self.periods_left -= 1;
            }
            return false;
        }
        self.periods_in_a_row =
            if wireless > self.max_share && !self.link_is_lossy { self.periods_in_a_row + 1 } else { 0 };
        let comes = self.periods_in_a_row == IN_A_ROW;
        if comes {
            self.begin(wireless);
        }
        comes
    }

    fn begin(&mut self, share: f32) {
        (self.doubted_share, self.doubted_rate, self.periods_left, self.periods_in_a_row) =
            (share, self.rate, 1 << self.doubts, 0);
        self.doubts = (self.doubts + 1).min(MOST_DOUBTS);
    }

    fn lost(&mut self, class: LossClass) {
        self.packets = self.packets.saturating_add(1);
        self.lost += 1;
        self.wireless += u32::from(class == LossClass::Wireless);
    }
}

/// A classifier with its fallbacks: `spike`, which stamps of a millisecond serve, and `spike-rtt`, which needs none.
///
/// If it takes more than `doubt` of 200 packets or more, in 2 s or more, twice in a row, for lost by the wireless link, it forgets
/// what it learnt, and all losses are congestion until less than half of that are lost: for one such period, and for twice as many each
/// time. If as many are lost at half the rate, they are the link's, and it is not doubted again before the route changes.
///
/// ```
/// use lastmile::{classify::*, time::Span};
/// let mut discriminator = Discriminator::new(&"spike".parse()?)?;
/// assert!(discriminator.suit(Some(Span::from_millis(1))).is_none());
/// assert!(discriminator.suit(None).is_some());
/// assert_eq!(discriminator.judge(), "spike-rtt");
/// # Ok::<(), lastmile::options::ChoiceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Discriminator {
    lda: &'static Lda,
    own: Box<dyn Classifier>,
    spike: Spike,
    spike_rtt: SpikeRtt,
    judge: Judge,
    doubt: Doubt,
    rate_test: bool,
    counts: LossCounts,
    /// The packets that each judged.
    judged: [u32; Judge::ALL.len()],
}

impl Discriminator {
    /// One that judges by the classifier of that name, with its options and those of [`DoubtConfig`].
    pub fn new(choice: &Choice) -> Result<Discriminator, ChoiceError> {
        let lda = super::find(&choice.name)?;
        let mut config = DoubtConfig::default();
        let (ours, own): (Given, Given) = choice
            .options
            .clone()
            .into_iter()
            .partition(|(name, _)| DoubtConfig::OPTIONS.iter().any(|opt| opt.name == name));
        for (name, value) in ours {
            config.set(&name, &value).map_err(|error| error.of(lda.name))?;
        }
        let choice = &Choice { name: choice.name.clone(), options: own };
        let (own, spike, spike_rtt) = (super::build(choice)?, Spike::default(), SpikeRtt::default());
        let (judge, counts, judged) = (Judge::Own, LossCounts::default(), [0; Judge::ALL.len()]);
        Ok(Discriminator {
            lda,
            own,
            spike,
            spike_rtt,
            judge,
            doubt: Doubt::over(config.doubt as f32),
            rate_test: config.rate_test,
            counts,
            judged,
        })
    }

    /// Chooses the judge for times of arrival of that resolution, or none; a change of judge is returned.
    pub fn suit(&mut self, resolution: Option<Span>) -> Option<Decision> {
        let suits =
            |needs: Span| needs == Span::MAX || resolution.is_some_and(|resolution| resolution <= needs);
        let needs = self.own.resolution_needed();
        let judge = match () {
            () if self.doubt.periods_left > 0 => Judge::None,
            () if suits(needs) => Judge::Own,
            () if suits(self.spike.resolution_needed()) => Judge::Spike,
            () => Judge::SpikeRtt,
        };
        let before = core::mem::replace(&mut self.judge, judge);
        if judge == before {
            return None;
        }
        let (from, to) = (self.lda.name, self.judge());
        Some(match judge {
            Judge::None => Decision::Doubted {
                classifier: self.named(before),
                wireless: self.doubt.doubted_share.into(),
            },
            Judge::Own => Decision::Restored { to },
            _ => Decision::FellBack { from, to, needs, resolution },
        })
    }

    /// The judge's name.
    pub fn judge(&self) -> &'static str {
        self.named(self.judge)
    }

    fn named(&self, judge: Judge) -> &'static str {
        match judge {
            Judge::Own => self.lda.name,
            Judge::Spike => "spike",
            Judge::SpikeRtt => "spike-rtt",
            Judge::None => "none",
        }
    }

    /// A packet arrived. All that may have to judge hear of it.
    pub fn on_arrival(&mut self, arrival: &Arrival) {
        self.own.on_arrival(arrival);
        self.spike.on_arrival(arrival);
        self.spike_rtt.on_arrival(arrival);
        if !self.own.is_certain() && self.doubt.comes(arrival.sent) {
            self.forget();
        }
    }

    /// A packet was lost: why?
    pub fn classify(&mut self, loss: &Loss) -> LossClass {
        let class = match self.judge {
            Judge::Own => self.own.classify(loss),
            Judge::Spike => self.spike.classify(loss),
            Judge::SpikeRtt => self.spike_rtt.classify(loss),
            Judge::None => LossClass::Congestion,
        };
        self.doubt.lost(class);
        self.counts.count(class, loss.truth);
        let judged = &mut self.judged[self.judge as usize];
        *judged = judged.saturating_add(1);
        class
    }

    /// True if tests of the rate are to check the classifier: not while it is doubted, nor once a doubt was wrong.
    pub(crate) fn wants_rate_test(&self) -> bool {
        let Doubt { periods_left, link_is_lossy, max_share, .. } = self.doubt;
        let may_be_doubted = self.rate_test && max_share < 1.0 && !self.own.is_certain();
        may_be_doubted && periods_left == 0 && !link_is_lossy
    }

    /// A test showed that such a share of packets, which it took for lost by the wireless link, is lost because of the rate.
    pub(crate) fn doubt_by_rate(&mut self, share: f64) {
        self.doubt.doubts = self.doubt.doubts.max(DOUBTS_BY_RATE);
        self.doubt.begin(share as f32);
        self.forget();
    }

    /// The stream loses such a share and sends several times what TCP would then. A queue that it does not know to be full may lose these;
    /// if a circuit breaker `trips`, the verdict that the link loses so much was wrong.
    pub(crate) fn on_excess(&mut self, share: f64, trips: bool) {
        let Doubt { periods_left, max_share, link_is_lossy, .. } = self.doubt;
        if !self.own.is_certain() && max_share < 1.0 && periods_left == 0 && (trips || !link_is_lossy) {
            self.doubt.link_is_lossy = false;
            self.doubt_by_rate(share);
        }
    }

    /// The packets take another way.
    pub fn on_route_change(&mut self) {
        self.doubt = Doubt::over(self.doubt.max_share);
        self.forget();
    }

    fn forget(&mut self) {
        self.own.on_route_change();
        self.spike.on_route_change();
        self.spike_rtt.on_route_change();
    }

    /// Verdicts on losses so far, in packets.
    pub fn counts(&self) -> LossCounts {
        self.counts
    }

    /// Verdicts on losses so far, with the classifiers that judged and the shares of their schemes.
    pub fn verdicts(&self) -> Verdicts {
        let LossCounts { congestion, wireless, .. } = self.counts;
        // Before the first loss, the judge at the moment.
        let most = *self.judged.iter().max().unwrap_or(&0);
        let judge = Judge::ALL.into_iter().find(|judge| most > 0 && self.judged[*judge as usize] == most);
        let judge = judge.unwrap_or(self.judge);
        let judged =
            Judge::ALL.map(|judge| (self.named(judge).to_owned(), self.judged[judge as usize].into()));
        let mut by: BTreeMap<String, u64> = judged.into_iter().filter(|judged| judged.1 > 0).collect();
        if by.len() < 2 {
            by.clear();
        }
        let own = judge == Judge::Own || self.judged[Judge::Own as usize] > 0;
        let shares = if own { self.own.shares() } else { Vec::new() };
        let shares = shares.into_iter().map(|(scheme, share)| (scheme.to_owned(), share)).collect();
        Verdicts { classifier: self.named(judge), congestion, wireless, by, shares }
    }

    /// Shows the judge, the counts, and the classifier's state.
    pub fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.state("classifier", self.judge());
        visitor.number("losses judged congestion", "", self.counts.congestion as f64);
        visitor.number("losses judged wireless", "", self.counts.wireless as f64);
        for (name, share) in [("Mc", self.counts.mc()), ("Mw", self.counts.mw())] {
            share.into_iter().for_each(|share| visitor.number(name, "", share));
        }
        self.own.telemetry(visitor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_against_their_true_cause() {
        let mut counts = LossCounts::default();
        let (c, w) = (LossClass::Congestion, LossClass::Wireless);
        for (class, truth) in
            [(c, Some(c)), (w, Some(c)), (c, Some(w)), (w, Some(w)), (w, Some(w)), (c, None)]
        {
            counts.count(class, truth);
        }
        assert_eq!((counts.congestion, counts.wireless), (3, 3));
        assert_eq!((counts.mc(), counts.mw()), (Some(0.5), Some(1.0 / 3.0)));
    }

    #[test]
    fn a_classifier_steps_aside_for_coarse_stamps_once_and_comes_back_once() {
        let mut discriminator = Discriminator::new(&"spike".parse().unwrap()).unwrap();
        let coarse = Some(Span::from_millis(10));
        let fell = discriminator.suit(coarse);
        let needs = Span::from_millis(1);
        assert_eq!(
            fell,
            Some(Decision::FellBack { from: "spike", to: "spike-rtt", needs, resolution: coarse })
        );
        assert_eq!(discriminator.suit(coarse), None);
        assert_eq!(discriminator.suit(Some(needs)), Some(Decision::Restored { to: "spike" }));
    }

    /// A packet each 10 ms; every `one_in`th is lost, and delays that do not vary make it the wireless link's.
    fn losing(discriminator: &mut Discriminator, ids: core::ops::Range<u64>, one_in: u64) -> Vec<Decision> {
        let mut decided = Vec::new();
        for id in ids {
            decided.extend(discriminator.suit(Some(Span::from_nanos(1))));
            match id % one_in {
                0 => _ = discriminator.classify(&Loss::of(id, 1)),
                _ => discriminator.on_arrival(&super::super::testing::arrival(id, 10_000 * id, 5_000)),
            }
        }
        decided
    }

    /// 2 s are 200 packets here.
    #[test]
    fn more_than_a_fifth_of_wireless_losses_is_doubted_until_less_than_a_tenth_is_lost() {
        let mut spike = Discriminator::new(&"spike".parse().unwrap()).unwrap();
        assert_eq!(losing(&mut spike, 1..1_000, 6), []);
        let doubted = losing(&mut spike, 1_000..1_700, 4);
        let [Decision::Doubted { classifier: "spike", wireless }] = doubted[..] else {
            panic!("{doubted:?}")
        };
        assert!((0.2..0.26).contains(&wireless), "{wireless}");
        assert_eq!(losing(&mut spike, 1_700..2_500, 8), []);
        assert_eq!(spike.classify(&Loss::of(2_500, 1)), LossClass::Congestion);
        assert_eq!(losing(&mut spike, 2_501..3_500, 11), [Decision::Restored { to: "spike" }]);
        assert_eq!(spike.classify(&Loss::of(3_500, 1)), LossClass::Wireless);
        // The second time two good periods are asked.
        let again = losing(&mut spike, 3_501..4_201, 4);
        assert!(matches!(again[..], [Decision::Doubted { .. }]), "{again:?}");
        assert_eq!(losing(&mut spike, 4_201..4_410, 11), []);
        assert_eq!(losing(&mut spike, 4_410..5_000, 11), [Decision::Restored { to: "spike" }]);
    }

    #[test]
    fn a_doubt_of_one_is_never() {
        let mut spike = Discriminator::new(&"spike(doubt=1, start=0.4)".parse().unwrap()).unwrap();
        assert_eq!(losing(&mut spike, 0..2_000, 2), []);
        let refused = Discriminator::new(&"spike(doubt=2)".parse().unwrap()).unwrap_err();
        assert_eq!(refused.to_string(), "doubt of spike must be 0 to 1, not 2");
    }

    /// 1000 packets in a second, of which 500 in a row are lost, each 4 s: 21 % of some periods of 2 s. The first begins with a loss.
    #[test]
    fn bursts_are_not_doubted() {
        let mut spike = Discriminator::new(&"spike".parse().unwrap()).unwrap();
        for id in 0..60_000 {
            assert_eq!(spike.suit(Some(Span::from_nanos(1))), None, "{id}");
            match id % 4_000 {
                0..500 => _ = spike.classify(&Loss::of(id, 1)),
                _ => spike.on_arrival(&super::super::testing::arrival(id, 1_000 * id, 5_000)),
            }
        }
        assert_eq!(spike.counts().congestion, 0);
    }

    /// A quarter is lost of 100 packets in a second, and of 40 in a second as well.
    #[test]
    fn what_does_not_fall_with_the_rate_is_the_links() {
        let mut spike = Discriminator::new(&"spike".parse().unwrap()).unwrap();
        assert!(matches!(losing(&mut spike, 1..700, 4)[..], [Decision::Doubted { .. }]));
        for id in 700..1_400 {
            match id % 4 {
                0 => _ = spike.classify(&Loss::of(id, 1)),
                _ => spike.on_arrival(&super::super::testing::arrival(
                    id,
                    7_000_000 + 25_000 * (id - 700),
                    5_000,
                )),
            }
        }
        assert_eq!(spike.suit(Some(Span::from_nanos(1))), Some(Decision::Restored { to: "spike" }));
        assert_eq!(losing(&mut spike, 3_000..6_000, 4), []);
    }

    /// From five times TCP's rate on it is doubted, but not if half the rate lost as much; if a circuit breaker trips, then too.
    #[test]
    fn excess_is_a_doubt_and_a_breaker_that_trips_overrules_what_was_learnt() {
        let mut spike = Discriminator::new(&"spike".parse().unwrap()).unwrap();
        assert_eq!(losing(&mut spike, 1..300, 20), []);
        assert_eq!(spike.classify(&Loss::of(300, 1)), LossClass::Wireless);
        spike.on_excess(0.05, false);
        assert!(matches!(spike.suit(Some(Span::from_nanos(1))), Some(Decision::Doubted { .. })));
        assert_eq!(spike.classify(&Loss::of(301, 1)), LossClass::Congestion);
        spike.doubt.link_is_lossy = true;
        spike.doubt.periods_left = 0;
        spike.on_excess(0.05, false);
        assert_eq!(spike.doubt.periods_left, 0);
        spike.on_excess(0.05, true);
        assert!(spike.doubt.periods_left > 0 && !spike.doubt.link_is_lossy);
        for never in ["spike(doubt=1)", "omniscient"] {
            let mut trusted = Discriminator::new(&never.parse().unwrap()).unwrap();
            trusted.on_excess(0.05, true);
            assert_eq!(trusted.doubt.periods_left, 0, "{never}");
        }
    }

    #[test]
    fn the_truth_is_not_doubted() {
        let mut omniscient = Discriminator::new(&"omniscient".parse().unwrap()).unwrap();
        for id in 0..1_000 {
            assert_eq!(losing(&mut omniscient, 2 * id + 1..2 * id + 2, 2), []);
            let truth = Some(LossClass::Wireless);
            let loss = Loss { truth, ..Loss::of(2 * id + 2, 1) };
            assert_eq!(omniscient.classify(&loss), LossClass::Wireless);
        }
    }

    #[test]
    fn verdicts_name_who_judged() {
        let mut discriminator = Discriminator::new(&"zbs".parse().unwrap()).unwrap();
        assert_eq!(discriminator.verdicts().classifier, "zbs");
        discriminator.suit(None);
        (0..3).for_each(|seq| _ = discriminator.classify(&Loss::of(seq, 1)));
        let Verdicts { classifier, congestion, by, shares, .. } = discriminator.verdicts();
        assert_eq!((classifier, congestion), ("spike-rtt", 3));
        assert!(by.is_empty() && shares.is_empty(), "{by:?}, {shares:?}");
        discriminator.suit(Some(Span::from_nanos(1)));
        discriminator.classify(&Loss::of(3, 1));
        let Verdicts { classifier, by, .. } = discriminator.verdicts();
        let each: Vec<(&str, u64)> = by.iter().map(|(name, packets)| (&**name, *packets)).collect();
        assert_eq!((classifier, each), ("spike-rtt", vec![("spike-rtt", 3), ("zbs", 1)]));
    }
}
