//! The guard in front of every tool: it looks at the tool's streams for things that its model leaves out, and warns beside its numbers.
//!
//! [`Base::judge`](super::Base::judge) refuses streams that missed their schedule, came out of order or saw a clock step. The guard looks further: for
//! arrivals in batches, token buckets, policers, queues that serve flows in turn, and busy links elsewhere. It changes no number, and is
//! off with `faithful`. WBest and CapProbe have checks of their own, which send more and mend their numbers.

use crate::estimate::cell::{Bursts, Cell};
use crate::estimate::idle::Idle;
use crate::estimate::shaper::{self, Slowdown};
use crate::estimate::{Base, Estimate, Quantity, StreamPlan, Warning, WarningCode, bits_per_second, policer};
use crate::observe::burst::Burst;
use crate::observe::pairs::{Pair, PairSet};
use crate::observe::{StreamVerdict, batch::Batches, judge, signal, stats};
use crate::report::{Pattern, StreamRecord};
use crate::time::Span;
use crate::units::{Bytes, Rate};

/// First packets that are kept: more tell no more.
const MOST: usize = 1_000;
/// Packets with one stamp that are a batch.
const BATCH: usize = 3;
/// Gaps of a burst by which its packets go one after the other: the fastest tenth.
const FAST: f64 = 0.1;
/// Through a FIFO a burst comes at this share of that rate or more: behind a link of twice the rate others take a sixth of it at half load.
const TOGETHER: f64 = 0.8;
/// Pause behind the guard's own burst.
const PAUSE: Span = Span::from_millis(20);

/// A tool keeps one of these, and shows it every stream.
///
/// ```
/// use lastmile::estimate::{Base, Conditions, Guard};
/// use lastmile::units::Bytes;
/// let (guard, off) = (Guard::with_burst(false), Guard::with_burst(true));
/// assert_eq!(guard.plan(Bytes(1488)).map(|plan| plan.packets.len()), Some(40));
/// assert_eq!(off.plan(Bytes(1488)), None);
/// ```
#[derive(Clone, Debug)]
pub struct Guard {
    on: bool,
    /// The guard's own burst has still to be sent.
    asks: bool,
    /// The first burst, and true if it was the guard's own.
    burst: Option<(StreamRecord, bool)>,
    /// The first packets of pairs and trains, which tell how often the path was empty.
    firsts: Option<StreamRecord>,
    /// Packets of back-to-back pairs, usable ones.
    usable: Vec<Pair>,
    noise: Span,
    late: Span,
    streams: u32,
    batched: u32,
}

impl Guard {
    /// For a tool that sends bursts or trains itself. Off with `faithful`.
    pub fn new(faithful: bool) -> Guard {
        Guard {
            on: !faithful,
            asks: false,
            burst: None,
            firsts: None,
            usable: Vec::new(),
            noise: Span::ZERO,
            late: Span::ZERO,
            streams: 0,
            batched: 0,
        }
    }

    /// For a tool of pairs or chirps: these show no token bucket and no fair queue, so that the guard asks for one burst of its own.
    pub fn with_burst(faithful: bool) -> Guard {
        Guard { asks: !faithful, ..Guard::new(faithful) }
    }

    /// The guard's own burst, of packets of `size` bytes, if it is still to be sent.
    pub fn plan(&self, size: Bytes) -> Option<StreamPlan> {
        self.asks.then(|| StreamPlan::burst(shaper::BURST, size))
    }

    /// Takes the record of that burst; false if there was none to take.
    pub fn takes(&mut self, record: &StreamRecord, base: &mut Base) -> bool {
        let takes = core::mem::take(&mut self.asks);
        if takes {
            base.count(record);
            base.drain(record, PAUSE);
            if judge(record).verdict != StreamVerdict::ClockStepped {
                self.see(record, record.packets.len(), base);
                self.burst = Some((record.clone(), true));
            }
        }
        takes
    }

    /// The bound of the capacity that the guard's burst, or the tool's first, proves.
    pub fn bound(&self, base: &Base) -> Option<Rate> {
        let (record, _) = self.burst.as_ref()?;
        Burst::of(record, None)?.at_least(base.coalescing().max(base.noise(record) * 2))
    }

    /// Takes in a stream: one that consists of pairs, with `every` = 2, or of one train.
    pub fn see(&mut self, record: &StreamRecord, every: usize, base: &mut Base) {
        if !self.on || record.packets.is_empty() {
            return;
        }
        (self.noise, self.late) = (self.noise.max(base.noise(record)), base.coalescing());
        match record.pattern {
            Pattern::Pairs => self.usable.extend(PairSet::of(record).usable),
            Pattern::Burst if self.burst.is_none() => self.burst = Some((record.clone(), false)),
            Pattern::Train if policer::suspects_train(record, self.late) => base.warn(
                WarningCode::Policer,
                "packets of fast trains were lost, and nothing made the others wait, as at a policer",
            ),
            _ => {}
        }
        self.usable.truncate(MOST);
        if record.pattern != Pattern::Pairs {
            self.streams += 1;
            self.batched += u32::from(Batches::of(record).largest() >= BATCH);
        }
        let firsts = record.packets.iter().step_by(every.max(1)).copied();
        match &mut self.firsts {
            Some(all) => all.packets.extend(firsts.take(MOST.saturating_sub(all.packets.len()))),
            None => {
                self.firsts = Some(StreamRecord { packets: firsts.take(MOST).collect(), ..record.clone() })
            }
        }
    }

    /// Puts its warnings beside the numbers of a path of `capacity`, in bit/s.
    pub fn warn(&self, capacity: f64, found: &mut [Estimate]) {
        let mut said: Vec<Warning> = Vec::new();
        if self.batched * 2 > self.streams {
            let text = "packets arrive in batches, as over Wi-Fi that aggregates or at a host that coalesces interrupts: gaps between them say little";
            said.push(Warning { code: WarningCode::BatchedStamps, text: text.into() });
        } else if let Some((burst, own)) = &self.burst {
            said.extend(self.of_burst(burst, *own, capacity));
        }
        let left = found.iter().find(|estimate| estimate.quantity == Quantity::AvailableBandwidth);
        let left = left.and_then(|left| Some(left.value.rate()?.bits_per_second() as f64));
        said.extend(left.and_then(|left| self.doubt(capacity, left)).map(|(doubt, _)| doubt));
        for estimate in found {
            estimate.warnings.extend(said.iter().cloned());
        }
    }

    /// Warning about a bucket or a fair queue that a burst, its own or the tool's, shows.
    fn of_burst(&self, burst: &StreamRecord, own: bool, capacity: f64) -> Option<Warning> {
        let warning = |code, text| Some(Warning { code, text });
        let lost = burst.lost();
        if own && (policer::suspects(burst) || lost * 2 > burst.packets.len()) {
            return warning(
                WarningCode::Policer,
                format!(
                    "a burst lost its end, {lost} packets, as at a policer or in a queue that holds less"
                ),
            );
        }
        // Behind a loss others' packets have the places of those that a full queue dropped.
        let burst = &policer::unbroken(burst);
        let gaps = signal::gaps(burst, false);
        let received: Vec<f64> = gaps.iter().map(|gap| gap.received.as_nanos() as f64).collect();
        let (size, came) = (gaps.first()?.size, signal::throughput(&gaps)?);
        let fast = Span::from_nanos(stats::quantile(&received, FAST)? as i64);
        // Pairs tell the rate beside the guard's own burst; a tool with bursts has its capacity from these.
        let slot = if own { fast.min(bits_per_second(capacity).time_for(size)) } else { fast };
        if slot <= self.noise * 2 {
            return None;
        }
        if let Some(slowdown) = Slowdown::of(burst, slot, self.noise * 2, None) {
            let text = format!(
                "a burst came slower from packet {} on: a token bucket, or a fair queue, lets its beginning pass, and less may last",
                slowdown.at() + 1
            );
            return warning(WarningCode::Shaper, text);
        }
        let rate = size.bits() as f64 * 1e9 / slot.as_nanos() as f64;
        if came >= TOGETHER * rate {
            return None;
        }
        let text = format!(
            "a burst came at {}, and its packets one after the other at {}: a queue serves flows in turn, or others send in a cell, and less or more may be left",
            bits_per_second(came),
            bits_per_second(rate)
        );
        warning(WarningCode::FairQueue, text)
    }

    /// Why less may be left than is said, and what at least, by the share of first packets that met nobody.
    pub(super) fn doubt(&self, capacity: f64, available: f64) -> Option<(Warning, f64)> {
        let firsts = self.firsts.as_ref().filter(|_| self.on)?;
        let slot = bits_per_second(capacity).time_for(firsts.packets.first()?.size);
        // Without pairs nothing tells by how much stamps scatter but what is known of hosts.
        let noise = if self.usable.is_empty() { self.noise.max(self.late / 4) } else { self.noise };
        let idle = Idle::of_singles(firsts, &self.usable, slot, noise)?;
        let empty = format!("streams met an empty path in {:.0} % of all cases", 100.0 * idle.share());
        let (code, why) = if idle.contradicts(available / capacity) {
            (
                WarningCode::TightLink,
                "which trains alone do not show: another link may be busy, or others make way, and less may be left",
            )
        } else if idle.is_busy_elsewhere(slot) {
            (
                WarningCode::TightLink,
                "and a little waits elsewhere for the others: another link or cell may be busy, and less may be left",
            )
        } else if idle.met_others() && Cell::of(&self.usable, &Bursts::default(), noise).is_some() {
            (
                WarningCode::Contended,
                "and other stations of a cell of Wi-Fi send: trains get their turn beside them, and less may be left",
            )
        } else {
            return None;
        };
        Some((Warning { code, text: format!("{empty}, {why}") }, idle.share() * capacity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Conditions, Value};
    use crate::observe::testing::record;

    /// Arrivals after those gaps, in microseconds.
    fn burst(gaps: &[u64]) -> StreamRecord {
        let mut at = 900;
        let came: Vec<Option<u64>> = core::iter::once(&0)
            .chain(gaps)
            .map(|gap| {
                at += gap;
                Some(at)
            })
            .collect();
        let zeros = vec![0; came.len()];
        record(Pattern::Burst, &zeros, &zeros, &came)
    }

    fn codes(records: &[StreamRecord], left: u64) -> Vec<WarningCode> {
        let (mut guard, mut base) = (Guard::new(false), Base::new(Conditions::exact(1)));
        records.iter().for_each(|record| guard.see(record, record.packets.len(), &mut base));
        let available = Value::Is(Rate::ip(left));
        let mut found = [base.estimate(Quantity::AvailableBandwidth, available, &[1])];
        guard.warn(1e7, &mut found);
        assert_eq!(found[0].value, available);
        found[0].warnings.iter().map(|warning| warning.code).collect()
    }

    /// 1488 B take 1190 us at 10 Mbit/s, 2380 at 5, and at 6 one packet of others comes after two.
    #[test]
    fn bursts_tell_buckets_and_fair_queues_from_a_fifo() {
        assert_eq!(codes(&[burst(&[1_190; 39])], 10_000_000), []);
        let bucket: Vec<u64> = (0..39).map(|k| if k < 9 { 1_190 } else { 2_380 }).collect();
        assert_eq!(codes(&[burst(&bucket)], 10_000_000), [WarningCode::Shaper]);
        let turn: Vec<u64> = (0..39).map(|k| if k % 3 == 2 { 2_990 } else { 1_190 }).collect();
        assert_eq!(codes(&[burst(&turn)], 10_000_000), [WarningCode::FairQueue]);
        // Stamps of four at once say nothing of either.
        let batches: Vec<u64> = (0..39).map(|k| if k % 4 == 3 { 4_760 } else { 0 }).collect();
        assert_eq!(codes(&[burst(&batches)], 10_000_000), [WarningCode::BatchedStamps]);
    }

    /// Of trains 100 ms apart two in three wait for others: 10 Mbit/s cannot be left, and 4 can.
    #[test]
    fn first_packets_that_wait_contradict_an_empty_path() {
        let trains: Vec<StreamRecord> = (0..30)
            .map(|k| {
                let sent: Vec<u64> = (0..10).map(|i| k * 100_000 + i * 2_000).collect();
                let wait = if k % 3 == 0 { 0 } else { 300 + k * 20 };
                let came: Vec<Option<u64>> = sent.iter().map(|at| Some(at + 900 + wait)).collect();
                let planned: Vec<u64> = (0..10).map(|i| i * 2_000).collect();
                record(Pattern::Train, &planned, &sent, &came)
            })
            .collect();
        assert_eq!(codes(&trains, 10_000_000), [WarningCode::TightLink]);
        assert_eq!(codes(&trains, 4_000_000), []);
    }

    /// A bucket of 20 packets, whose policer lets others pass when tokens have come: its own burst, and a train, say so.
    #[test]
    fn losses_without_waiting_are_a_policers() {
        let (mut guard, mut base) = (Guard::with_burst(false), Base::new(Conditions::exact(1)));
        let mut own = burst(&[1_190; 39]);
        own.packets.iter_mut().skip(20).step_by(2).for_each(|p| p.fate = crate::report::Fate::Lost);
        assert!(guard.takes(&own, &mut base) && !guard.takes(&own, &mut base));
        let mut found = [base.estimate(Quantity::Capacity, Value::Unknown, &[1])];
        guard.warn(1e7, &mut found);
        assert_eq!(found[0].warnings[0].code, WarningCode::Policer);
        let planned: Vec<u64> = (0..40).map(|k| k * 1_190).collect();
        let came: Vec<Option<u64>> =
            (0..40).map(|k| (k < 20 || k % 2 == 0).then_some(900 + k * 1_190)).collect();
        guard.see(&record(Pattern::Train, &planned, &planned, &came), 40, &mut base);
        assert_eq!(base.said(None)[0].code, WarningCode::Policer);
    }
}
