//! Pairs that cannot be timed, or may only seem to be: bursts give a lower bound of the capacity.
//!
//! A receiver that coalesces interrupts moves stamps by up to [`COALESCING`] or so. A pair whose dispersion is not
//! clearly longer may then have any gap, and a steady one at that: a receiver that takes an interrupt every 125 us
//! shows every path above 95 Mbit/s as one of 95. So pairs are believed only if a [`Burst`] agrees, and if
//! they say nothing, its lower bound is the answer.
//!
//! Gaps clearly longer than that are believed without a burst (at 30 Mbit/s it would cost more than all else). A receiver
//! that takes interrupts by the clock, whether packets came or not, may then still make a median gap wrong by up
//! to a period; cards that wait for a packet first do not.
//!
//! A burst shows the rate of such bursts: behind a token bucket later packets are slower
//! ([`shaper`](super::shaper)).

use crate::estimate::batched::{self, Batched};
use crate::estimate::policer::{self, Policer, PolicerCheck};
use crate::estimate::shaper::{self, Shaper, ShaperCheck, Slowdown};
use crate::estimate::{Refusal, StreamPlan};
use crate::observe::StreamVerdict;
use crate::observe::burst::Burst;
use crate::observe::pairs::{NOISE_SHARE, PairSet};
use crate::observe::{judge, stats};
use crate::report::StreamRecord;
use crate::time::{Owd, Span};
use crate::units::{Bytes, Rate};

/// Bursts sent before there is no more hope.
const ATTEMPTS: u32 = 3;
/// A burst agrees with pairs within this share; both are within a tenth of the truth then.
const AGREE: f64 = 0.08;

/// Why a burst is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pairs {
    /// Pairs say that the capacity is this, in bit/s at the IP layer.
    Claim(f64),
    /// Pairs come through faster than these hosts can time.
    TooFast,
    /// Pairs arrive closer together than they were sent.
    Batched,
}

/// Result of the bursts about pairs.
#[derive(Clone, Debug)]
pub(super) enum Finding {
    /// The pairs are right.
    BorneOut,
    /// Only a lower bound is known: the bound, and a note for the user.
    MoreThan(Rate, String),
    /// The path delivers in batches that can be read.
    InBatches(Box<Batched>),
    /// A burst began to come slower, another one too, and the bound is of the rate of bursts.
    Shaped(Shaper),
    /// The policer that drops bursts behind their beginnings, of which the bound is.
    Policed(Policer),
    /// Nothing that would be worth saying.
    Refused(Refusal),
}

/// Sends bursts until one says something about `pairs`.
pub(super) struct BurstCheck {
    pairs: Pairs,
    size: Bytes,
    coalescing: Span,
    min_delay: Option<Owd>,
    /// The pairs' median gap at arrival.
    gap: Span,
    /// True if both packets of a pair have one stamp: they may have come in a batch.
    at_once: bool,
    /// The largest bound so far, and the bytes of the burst that gave it.
    pub(super) bound: Rate,
    pub(super) burst: Bytes,
    /// The time between batches of a burst, if the path makes them.
    apart: Option<Span>,
    attempts: u32,
    stepped: u32,
    losses: (u32, u32),
    /// Set while bursts are sent about a shaper that the last one seems to have met.
    shaper: Option<ShaperCheck>,
    /// It met none.
    refuted: bool,
    /// Set while trains are sent about a policer that the last burst seems to have met.
    policer: Option<PolicerCheck>,
    /// It met none.
    unpoliced: bool,
    /// The streams that were used.
    pub(super) streams: Vec<u32>,
}

impl BurstCheck {
    /// True if coalescing alone could make up the pairs' rate `claim`, in bit/s.
    pub(super) fn needed(claim: f64, size: Bytes, coalescing: Span) -> bool {
        size.bits() as f64 * 1e9 <= claim * BurstCheck::made_up(coalescing).as_nanos() as f64
    }

    /// The longest gap that a receiver may make up: it never holds a packet back for longer, so that one clearly longer is the path's.
    pub(super) fn made_up(coalescing: Span) -> Span {
        coalescing.scaled(1.25)
    }

    /// About pairs, the last stream of which was `last`, with bursts of packets of `size` bytes and stamps as uncertain as `noise`.
    pub(super) fn new(
        pairs: Pairs,
        size: Bytes,
        coalescing: Span,
        last: &StreamRecord,
        noise: Span,
    ) -> BurstCheck {
        let gaps: Vec<f64> = PairSet::of(last).arrived().map(|p| p.received.as_nanos() as f64).collect();
        let gap = Span::from_nanos(stats::median(&gaps).unwrap_or(0.0) as i64);
        BurstCheck {
            at_once: !matches!(pairs, Pairs::Claim(_)) && gap <= noise * 2,
            pairs,
            size,
            coalescing,
            // Of the last stream only: clocks drift apart.
            min_delay: last.packets.iter().filter_map(|p| p.owd()).min(),
            gap,
            bound: Rate::ip(0),
            burst: Bytes::ZERO,
            apart: None,
            attempts: 0,
            stepped: 0,
            losses: (0, 0),
            shaper: None,
            refuted: false,
            policer: None,
            unpoliced: false,
            streams: Vec::new(),
        }
    }

    pub(super) fn plan(&self) -> StreamPlan {
        let burst = || StreamPlan::burst(self.packets(), self.size);
        let train = self.policer.as_ref().map(PolicerCheck::plan);
        train.unwrap_or_else(|| self.shaper.as_ref().map_or_else(burst, ShaperCheck::plan))
    }

    /// Time for which the path is left alone before the next burst.
    pub(super) fn pause(&self) -> Span {
        self.shaper.as_ref().map_or(Span::ZERO, ShaperCheck::pause)
    }

    /// Packets in a burst: of several batches, where there may be batches.
    fn packets(&self) -> usize {
        if self.at_once { batched::BURST } else { shaper::BURST }
    }

    /// Verdict of a burst on a shaper; `Some(None)` asks for another burst, and `None` says that no shaper shows.
    fn look(&mut self, record: &StreamRecord, noise: Span) -> Option<Option<Finding>> {
        if let Some(mut check) = self.shaper.take() {
            return match check.on_stream(record, noise) {
                None => {
                    self.shaper = Some(check);
                    Some(None)
                }
                Some(shaper::Finding::Shaped(shaper)) => Some(Some(Finding::Shaped(shaper))),
                Some(shaper::Finding::Unclear(later)) => {
                    Some(Some(Finding::MoreThan(self.bound, shaper::unclear(later))))
                }
                Some(shaper::Finding::Refuted) => {
                    self.refuted = true;
                    None
                }
            };
        }
        let slot = match self.pairs {
            Pairs::Claim(claim) => shaper::slot(claim, self.size),
            Pairs::TooFast | Pairs::Batched => self.gap.max(noise * NOISE_SHARE),
        };
        let least = self.min_delay.map(|least| (least, self.coalescing));
        let slowdown = Slowdown::of(record, slot, noise * 2, least).filter(|_| !self.refuted)?;
        self.shaper = Some(ShaperCheck::new(slowdown, self.size, self.coalescing));
        Some(None)
    }

    /// Takes in a train about a policer.
    fn on_policed(&mut self, mut check: PolicerCheck, record: &StreamRecord, noise: Span) -> Option<Finding> {
        match check.on_stream(record, noise) {
            None => self.policer = Some(check),
            Some(None) => self.unpoliced = true,
            Some(Some(policer)) => {
                if self.burst == Bytes::ZERO {
                    let beginning = policer::unbroken(record).packets.len() as u64;
                    (self.bound, self.burst) = (policer.rate(), self.size * beginning);
                    self.streams.push(record.stream);
                }
                return Some(Finding::Policed(policer));
            }
        }
        None
    }

    /// A train about a policer, at the rate of this burst's beginning or of pairs, if it looks as if it had met one.
    fn suspicion(&self, record: &StreamRecord, noise: Span) -> Option<PolicerCheck> {
        let asks = !self.unpoliced && !self.at_once && self.shaper.is_none();
        if !asks || !policer::suspects(record) {
            return None;
        }
        let burst = Burst::of(&policer::unbroken(record), self.min_delay);
        let shown = burst.and_then(|burst| burst.at_least(self.coalescing + noise * 2));
        let claim = match self.pairs {
            Pairs::Claim(claim) => claim,
            Pairs::TooFast | Pairs::Batched => {
                self.size.bits() as f64 * 1e9 / (self.gap.max(noise * NOISE_SHARE).as_nanos() as f64).max(1.0)
            }
        };
        let rate = shown.map_or(claim, |shown| claim.min(shown.bits_per_second() as f64));
        Some(PolicerCheck::new(rate, self.size, self.coalescing))
    }

    /// Takes in a burst, with stamps as uncertain as `noise`; `None` asks for another one.
    pub(super) fn on_stream(&mut self, record: &StreamRecord, noise: Span) -> Option<Finding> {
        if let Some(check) = self.policer.take() {
            return self.on_policed(check, record, noise);
        }
        let policer = self.suspicion(record, noise);
        let finding = self.on_burst(record, noise);
        if policer.is_none() {
            return finding;
        }
        // First a policer is ruled out.
        (self.policer, self.attempts) = (policer, self.attempts.saturating_sub(1));
        None
    }

    fn on_burst(&mut self, record: &StreamRecord, noise: Span) -> Option<Finding> {
        let planned = self.plan().packets.len();
        self.attempts += 1;
        self.losses.0 += record.lost() as u32;
        self.losses.1 += record.packets.len() as u32;
        let verdict = if record.packets.len() == planned && record.planned.len() == planned {
            judge(record).verdict
        } else {
            StreamVerdict::NoReport
        };
        self.stepped += u32::from(verdict == StreamVerdict::ClockStepped);
        // Only the packets before a burst's first loss are known to pass in one go.
        let begun = policer::unbroken(record);
        let burst = (verdict == StreamVerdict::Believed).then(|| Burst::of(&begun, self.min_delay)).flatten();
        if let Some(mut burst) = burst {
            self.streams.push(record.stream);
            self.apart = self.apart.max(batched::apart(record, self.coalescing, noise));
            if self.at_once {
                if let Some(batched) = Batched::of(record, self.size, self.coalescing, noise) {
                    return Some(Finding::InBatches(Box::new(batched)));
                }
                // The least delay, a pair's, may be one of both its packets.
                burst.bytes = Bytes(burst.bytes.0.saturating_sub(self.size.0));
            }
            let bound = burst.at_least(self.coalescing + noise * 2).unwrap_or(self.bound);
            // Each is a bound, so the largest is.
            // Short ones are of a bucket, and no bound of bursts.
            if planned >= shaper::BURST && bound > self.bound || self.burst == Bytes::ZERO {
                (self.bound, self.burst) = (bound, self.size * begun.packets.len() as u64);
            }
            if let Some(finding) = self.look(record, noise) {
                // It counts its own.
                self.attempts -= u32::from(self.shaper.is_some());
                return finding;
            }
            if let Some(finding) = self.conclude(&burst, noise) {
                return Some(finding);
            }
        }
        (self.attempts >= ATTEMPTS).then(|| self.give_up())
    }

    /// Result that this burst settles; `None` if it settles none.
    fn conclude(&self, burst: &Burst, noise: Span) -> Option<Finding> {
        let bound = self.bound.bits_per_second() as f64;
        match self.pairs {
            Pairs::Claim(claim) if bound > claim => Some(self.more_than()),
            Pairs::Claim(claim) => {
                let agrees = burst.rate().is_some_and(|rate| (claim / rate - 1.0).abs() <= AGREE);
                agrees.then_some(Finding::BorneOut)
            }
            Pairs::TooFast | Pairs::Batched => {
                // The pairs have shown by themselves that a packet takes no longer than this; a bound far below what
                // follows from that tells of the hosts, not of the path.
                let known = self.gap.max(noise * NOISE_SHARE) + self.coalescing;
                let enough = self.size.bits() as f64 * 1e9 / known.as_nanos().max(1) as f64 / 2.0;
                (bound > enough).then(|| self.more_than())
            }
        }
    }

    fn more_than(&self) -> Finding {
        let why = match self.pairs {
            Pairs::Claim(_) => {
                "bursts do not bear out the rate of packet pairs (interrupt coalescing at the receiver?)"
            }
            Pairs::TooFast => "the path is faster than these hosts can time",
            Pairs::Batched => {
                "the receiver stamps packets in batches (interrupt coalescing or GRO), too coarsely for pairs"
            }
        };
        let shown = format!(
            "the bound is of bursts of {}, if no stamp is more than {} late",
            self.burst, self.coalescing
        );
        Finding::MoreThan(self.bound, format!("{why}; {shown}"))
    }

    /// After the last burst.
    fn give_up(&self) -> Finding {
        let bound = self.bound.bits_per_second() as f64;
        match self.pairs {
            // Ticks may halve a gap; a bound yet lower tells of the hosts.
            Pairs::Claim(claim) if bound >= claim / 3.0 => return self.more_than(),
            _ if self.stepped == self.attempts => return Finding::Refused(Refusal::ClockStepped),
            _ if self.streams.is_empty() && self.losses.0 * 2 > self.losses.1 => {
                let (lost, sent) = self.losses;
                return Finding::Refused(Refusal::TooLossy { lost, sent });
            }
            _ => {}
        }
        if let (Pairs::TooFast | Pairs::Batched, Some(apart)) = (self.pairs, self.apart) {
            return Finding::Refused(Refusal::Inconsistent(format!(
                "the path delivers packets in batches up to {apart} apart, and no host holds them back for so long: pairs cannot be timed, and bursts show no more than {}",
                self.bound
            )));
        }
        let what = match self.pairs {
            Pairs::Claim(_) => "packet pairs and bursts contradict each other",
            Pairs::TooFast => "the path is faster than these hosts can time",
            Pairs::Batched => "the receiver stamps packets in batches, closer together than they were sent",
        };
        Finding::Refused(Refusal::Inconsistent(format!(
            "{what}, and bursts show no more than {}: turn off GRO and interrupt coalescing at the receiver, and measure when both hosts are idle",
            self.bound
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    /// Two packets at once, every so many microseconds.
    fn refused(every: u64) -> String {
        let noise = Span::from_micros(2);
        let pairs = record(Pattern::Pairs, &[0, 0], &[0, 5], &[Some(900), Some(900)]);
        let mut check = BurstCheck::new(Pairs::Batched, Bytes(1488), Span::from_micros(250), &pairs, noise);
        let sent = vec![0; batched::BURST];
        let came: Vec<_> = (0..sent.len() as u64).map(|k| Some(900 + k / 2 * every)).collect();
        loop {
            match check.on_stream(&record(Pattern::Burst, &sent, &sent, &came), noise) {
                None => {}
                Some(Finding::Refused(refusal)) => return refusal.to_string(),
                Some(other) => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn batches_further_apart_than_a_host_holds_them_are_the_paths() {
        let slots = refused(2_400);
        assert!(slots.contains("the path delivers packets in batches up to 2.4 ms apart"), "{slots}");
        let interrupts = refused(1_000);
        assert!(interrupts.contains("the receiver stamps packets in batches"), "{interrupts}");
    }
}
