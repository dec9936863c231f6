//! Streams as bets: what trains, small packets and bursts say of the rate.

use super::read::{self, Blocks, Bucket};
use super::{ATTEMPTS, BORNE_OUT, Enough, LATE, Narrow, Phase, TIMES};
use crate::estimate::aggregation::{FASTER, scattered};
use crate::estimate::idle::Idle;
use crate::estimate::{WarningCode, policer};
use crate::observe::pairs::{NOISE_SHARE, PairSet, Timing};
use crate::observe::{StreamVerdict, stats};
use crate::report::{Fate, StreamRecord};
use crate::time::Span;

/// Pairs that agree do so within this share.
const ALIKE: f64 = 0.03;
/// Blocks that pass at less than this share of their rate fill a queue.
const FILLS: f64 = 0.8;
/// In a cell a short wait may be a backoff: this share of what meets others is not seen to. docs/validation.md has answers with less and more.
const HIDDEN: f64 = 0.3;
/// A pair that is closer than this share of others met none where these did.
const BETWEEN: f64 = 0.7;
/// Bursts that look for a bucket: others may have taken its tokens just before.
const BURSTS: u32 = 3;

impl Enough {
    /// Reads the narrow link's rate from a train's pairs; none if these hosts cannot time it.
    fn narrow(&self, record: &StreamRecord) -> Option<Narrow> {
        let set = PairSet::of(record);
        let noise = self.base.noise(record);
        let mut gaps: Vec<Span> = set.usable.iter().map(|p| p.received).collect();
        gaps.sort();
        let median = gaps.get(gaps.len() / 2).copied()?;
        // Pairs that met nobody agree; backoffs do not, and no interrupts that several packets share.
        let agree = |some: &&[Span]| some[2] - some[0] <= some[0].scaled(ALIKE).max(noise * 4);
        let alike = gaps.windows(3).find(agree).map(|some| some[1]);
        let is_cell = scattered(&set.usable, noise);
        let slot = if is_cell { median } else { alike.unwrap_or(median) };
        // A fair queue puts a packet of others between most pairs of a fast train: then a closer one is right, and no backoff is as short.
        let closest = gaps.first().copied().filter(|first| *first < slot.scaled(BETWEEN));
        let slot = closest.unwrap_or(slot);
        let late = if alike.is_some() { Span::ZERO } else { self.base.coalescing().scaled(1.25) };
        let is_timed = set.timing(noise) == Timing::Timed && slot > (noise * NOISE_SHARE).max(late);
        is_timed.then(|| Narrow { slot, is_cell, pairs: set.arrived().copied().collect() })
    }

    /// True if a train in a cell came faster than pairs: stations that aggregate send these one by one.
    fn shows_aggregation(&self, record: &StreamRecord) -> bool {
        // Bets begin anew once: the second half of the error is then spent.
        let cell = self.narrow.as_ref().filter(|narrow| narrow.is_cell && !self.bets.is_anew());
        let claim = cell.map(|narrow| self.config.packet_size.bits() as f64 / narrow.slot.as_secs_f64());
        claim.zip(read::came(record)).is_some_and(|(claim, came)| came > FASTER * claim)
    }

    pub(super) fn on_train(&mut self, record: &StreamRecord, verdict: StreamVerdict) {
        // Pairs may come together, but have to leave in time.
        let usable = match verdict {
            StreamVerdict::Believed | StreamVerdict::TooLossy => true,
            StreamVerdict::ScheduleBroken => read::kept(record),
            _ => false,
        };
        if !usable {
            return self.base.waste(verdict, ATTEMPTS);
        }
        if policer::suspects_train(record, self.base.coalescing()) {
            self.base.warn(
                WarningCode::Policer,
                "packets of fast trains were lost, and nothing made the others wait, as at a policer",
            );
        }
        let Some((share, rate)) = read::whole(record) else {
            return self.base.waste(StreamVerdict::TooLossy, ATTEMPTS);
        };
        self.base.useful();
        self.losses.suspect(record.lost() > 0);
        self.streams.push(record.stream);
        let is_first = self.narrow.is_none() && !self.trains_alone;
        if is_first {
            self.narrow = self.narrow(record);
        }
        if !self.trains_alone && (self.narrow.is_none() || self.shows_aggregation(record)) {
            // Pairs say nothing of the path.
            self.trains_alone = true;
            self.narrow = None;
            self.bets = self.bets.anew();
            self.ends.clear();
            return;
        }
        let no_singles = self.counts_trains();
        self.phase = if no_singles { Phase::Train } else { Phase::Singles };
        let asked = self.rate();
        let blocks = match (&self.bucket, &self.narrow) {
            (Some(bucket), _) => Blocks::behind(record, bucket, asked),
            (None, Some(narrow)) => Blocks::of_pairs(record, narrow.slot, narrow.is_cell),
            (None, None) => {
                self.bets.whole(share, rate / asked);
                self.wholes += 1;
                return;
            }
        };
        self.ends.extend(blocks.end);
        let fills =
            blocks.blocks.iter().filter(|block| block.least < FILLS).count() * 2 > blocks.blocks.len();
        if is_first && self.narrow.as_ref().is_some_and(|narrow| !narrow.is_cell || fills) {
            let slot = self.config.rate.time_for(self.config.packet_size);
            PairSet::of(record).usable.iter().for_each(|pair| self.bets.came(pair.received <= slot));
        }
        for block in blocks.blocks {
            self.blocks.push(block);
            self.bets.left_between(block.most, block.least, block.rate / asked);
        }
    }

    pub(super) fn on_singles(&mut self, record: &StreamRecord) {
        self.rounds += 1;
        // In a cell small packets tell less.
        let is_cell = self.narrow.as_ref().is_some_and(|narrow| narrow.is_cell);
        self.phase = if is_cell || self.rounds.is_multiple_of(2) { Phase::Train } else { Phase::Singles };
        for packet in &record.packets {
            let lost = packet.fate == Fate::Lost;
            self.losses.take(lost);
            self.singles_lost.0 += usize::from(lost);
            self.singles_lost.1 += 1;
        }
        self.streams.push(record.stream);
        if self.is_slower() {
            return;
        }
        let Some(narrow) = &self.narrow else { return };
        let noise = self.base.noise(record);
        let Some(idle) = Idle::of_singles(record, &narrow.pairs, narrow.slot, noise) else { return };
        let (met_none, all) = idle.counts();
        self.idle = (self.idle.0 + met_none, self.idle.1 + all);
        let capacity = self.config.packet_size.bits() as f64 / narrow.slot.as_secs_f64();
        let times = capacity / self.rate().max(1.0);
        for k in 0..all {
            // In any order: the capital is the same.
            let share = f64::from(u8::from(k < met_none));
            match narrow.is_cell {
                true => self.bets.left_hidden(share, times, HIDDEN),
                false => self.bets.left(share, times),
            }
        }
    }

    pub(super) fn on_burst(&mut self, record: &StreamRecord) {
        let Some(slot) = self.narrow.as_ref().map(|narrow| narrow.slot) else { return };
        self.base.useful();
        self.streams.push(record.stream);
        self.phase = Phase::Train;
        self.bursts += 1;
        self.bucket = Bucket::of(record, slot, self.base.noise(record), self.rate());
        let asked = self.rate();
        if let Some(bucket) = &self.bucket {
            // Small packets and the heads of trains met another link than the rest of the trains.
            self.bets = self.bets.anew();
            for gap in bucket.gaps() {
                self.bets.came(gap <= self.config.rate.time_for(self.config.packet_size));
            }
            self.base.warn(WarningCode::Shaper, bucket.text());
        } else if read::end(record, 0).is_some_and(|end| end >= BORNE_OUT * self.left_by_singles(slot)) {
            // It was chance.
            self.borne_out = true;
        } else if self.bursts < BURSTS {
            self.phase = Phase::Burst;
        } else {
            self.contradicted = true;
            self.bets = self.bets.anew();
            for block in &self.blocks {
                self.bets.left_between(block.most, block.least, block.rate / asked);
            }
            self.base.warn(
                WarningCode::TightLink,
                "trains came out slower than packets at random times say: a link other than the narrow one may be busy, and trains alone count",
            );
        }
    }

    /// True if the ends of trains came out slower than small packets say.
    pub(super) fn contradicts(&self) -> bool {
        let least = || self.ends.iter().copied().min_by(f64::total_cmp);
        let end = if self.is_steep() { least() } else { stats::median(&self.ends) };
        let (Some(narrow), Some(end)) = (&self.narrow, end) else { return false };
        let asked = !self.trains_alone && self.bucket.is_none() && !self.contradicted && !self.borne_out;
        // A queue whose link others fill slows a train by little: at nine tenths to 10 / 13 of twice a rate that is twice what is left.
        let took = self.train().duration().as_secs_f64() / 3.0;
        let late = if self.is_steep() { 1.0 - LATE * narrow.slot.as_secs_f64() / took } else { 0.0 };
        asked && end < late.max(BORNE_OUT) * self.left_by_singles(narrow.slot).min(TIMES * self.rate())
    }

    /// Available bandwidth by small packets, bit/s.
    fn left_by_singles(&self, slot: Span) -> f64 {
        let capacity = self.config.packet_size.bits() as f64 / slot.as_secs_f64();
        capacity * self.idle.0 as f64 / self.idle.1.max(1) as f64
    }
}
