//! Trains of packets that a server sends back to back, on its own clock and without a reflector: capacity from the gaps within them.
//!
//! A train leaves in a fraction of the time that the narrow link takes for it, so that next to nothing of others gets in between:
//! at 10 Mbit/s under 4 of others some 0.1 of their packets into each train of 30. Its gaps are then those of so many packet pairs:
//!
//! - A gap counts if its packets came in order and left at most half as far apart ([`Schedule`]). The median of their rates is
//!   the capacity, with an interval by order statistics (WBest, eq. 3). Others' packets between most of them show in their
//!   groups (`met`).
//! - Where a receiver that coalesces could have made the gaps up, whole trains must agree with them: a stamp that is late moves a
//!   train's end and no more (`burst`).
//! - Where the receiver's stamps come in clumps, whole trains tell the rate; where the path delivers in batches, the ends of
//!   batches do (`batched`).
//! - If trains come slower from some packet on, at the same place, it is a token bucket (`shaper`).
//!
//! The rules are those of the modules named, and the choice between them is our own.

use crate::estimate::batched::{Batched, Taken};
use crate::estimate::burst_check::BurstCheck;
use crate::estimate::contention::{CONTENDED, Met, met};
use crate::estimate::shaper::{self, Shaper, ShaperCheck, Slowdown};
use crate::estimate::wbest::IN_BATCHES;
use crate::estimate::wbest_capacity::{Capacity, warn_too_wide};
use crate::estimate::wbest_config::WbestConfig;
use crate::estimate::{
    Base, Conditions, Estimate, Estimator, IntervalMethod, Outcome, Quantity, Refusal, Step, StreamPlan,
    Value, Warning, WarningCode, policer,
};
use crate::observe::batch::Batch;
use crate::observe::burst::Burst;
use crate::observe::order::Order;
use crate::observe::pairs::{NOISE_SHARE, Pair};
use crate::observe::schedule::Schedule;
use crate::observe::{StreamVerdict, stats};
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::{Bytes, Rate};

/// Trains in a row that may tell nothing.
const ATTEMPTS: u32 = 3;
/// Whole trains agree with the gaps within this share (`burst_check`).
const AGREE: f64 = 0.08;
/// Gaps within this share of each other are the same.
const SAME: f64 = 0.05;
/// The gap of the rate of bursts: so many are shorter, which may be late stamps.
const FAST: usize = 4;

/// Warning text for gaps of which others' packets made more than a third longer.
const SCATTERED: &str = "others' packets came between more than a third of a train's, at a busy link or in a cell of Wi-Fi: the capacity may be more";
/// Warning text for stamps that come in clumps.
const CLUMPED: &str = "this host stamped packets several at a time: the capacity is from whole trains";
/// Warning text for losses that all lie behind the beginnings of trains.
const CUT: &str = "trains lost packets behind their beginnings alone, as at a policer or a short queue: longer bursts may be slower";

/// The tool.
///
/// ```
/// use lastmile::estimate::{Estimator, Step, trains::Trains};
/// use lastmile::units::Bytes;
/// let mut trains = Trains::new(6, 30, Bytes(1488), Default::default());
/// let Step::Send(plan) = trains.step() else { panic!("it wants trains") };
/// assert_eq!((plan.packets.len(), plan.duration().as_nanos()), (30, 0));
/// ```
pub struct Trains {
    base: Base,
    wanted: usize,
    packets: usize,
    size: Bytes,
    noise: Span,
    gaps: Vec<Pair>,
    /// Gaps of packets that left too far apart, or came together.
    wide: usize,
    /// Rates of whole trains in bit/s, and the time from first to last packet.
    whole: Vec<(f64, Span)>,
    /// Trains whose stamps come in clumps.
    clumped: usize,
    batched: Option<Box<Batched>>,
    /// The largest lower bound that a train gives.
    bound: Rate,
    /// Set while trains tell whether the last one met a bucket.
    suspect: Option<ShaperCheck>,
    shaper: Option<Shaper>,
    /// Trains whose losses all lie behind their beginnings.
    cut: usize,
    streams: Vec<u32>,
}

impl Trains {
    /// `wanted` trains of `packets` packets of `size` bytes at the IP layer.
    pub fn new(wanted: usize, packets: usize, size: Bytes, conditions: Conditions) -> Trains {
        Trains {
            base: Base::new(conditions),
            wanted,
            packets,
            size,
            noise: Span::ZERO,
            gaps: Vec::new(),
            wide: 0,
            whole: Vec::new(),
            clumped: 0,
            batched: None,
            bound: Rate::ip(0),
            suspect: None,
            shaper: None,
            cut: 0,
            streams: Vec::new(),
        }
    }

    /// The result; where there is none yet it ends with fewer trains than were wanted, of which `why` tells.
    pub fn end(&mut self, why: &str) -> Outcome {
        if let Some(Step::Done(outcome)) = self.base.step() {
            return outcome;
        }
        if self.streams.is_empty() {
            let refusal = Refusal::PeerCannot(why.to_owned());
            self.base.refuse(refusal.clone());
            return Outcome::Refused(refusal);
        }
        let text = format!("from {} of {} trains: {why}", self.streams.len(), self.wanted);
        self.base.warn(WarningCode::Partial, text);
        self.finish()
    }

    /// Rate that the trains show so far, or their lower bound.
    pub fn rate(&self) -> Option<Rate> {
        let found = self.found().ok()?;
        match found.first()?.value {
            Value::Is(rate) | Value::MoreThan(rate) => Some(rate),
            Value::Unknown | Value::Answer(_) => None,
        }
    }

    fn finish(&mut self) -> Outcome {
        let outcome = self.found().map_or_else(Outcome::Refused, Outcome::Found);
        match outcome.clone() {
            Outcome::Found(found) => self.base.found(found),
            Outcome::Refused(refusal) => self.base.refuse(refusal),
        }
        outcome
    }

    /// Takes in the gaps between neighbours that both came.
    fn take_gaps(&mut self, record: &StreamRecord) {
        let (order, schedule) = (Order::of(record), Schedule::of(record));
        for i in (1..record.packets.len()).filter(|&i| order.usable(i)) {
            let [one, two] = [i - 1, i].map(|k| &record.packets[k]);
            let gap = || {
                let (at, second) = (one.sent, two.fate.arrived()?);
                Some(Pair {
                    at: i64::try_from(at.as_nanos()).ok()?,
                    sent: two.sent - at,
                    received: record.receive_gap(i)?,
                    first: one.owd()?,
                    second: second - at,
                    size: two.size,
                })
            };
            match gap().filter(|_| schedule.held()[i]) {
                Some(gap) => self.gaps.push(gap),
                None => self.wide += 1,
            }
        }
    }

    /// Looks for a place from which the train came slower than it began.
    fn look(&mut self, record: &StreamRecord) {
        if let Some(mut check) = self.suspect.take() {
            match check.on_stream(record, self.noise) {
                None => self.suspect = Some(check),
                Some(shaper::Finding::Shaped(shaper)) => self.shaper = Some(shaper),
                Some(_) => {}
            }
        } else if self.shaper.is_none() {
            let mut gaps: Vec<Span> =
                (1..record.packets.len()).filter_map(|i| record.receive_gap(i)).collect();
            gaps.sort();
            let slot = gaps.get(FAST).copied().unwrap_or(Span::ZERO).max(self.noise * NOISE_SHARE);
            let slowdown = Slowdown::of(record, slot, self.noise * 2, None);
            let check = |slowdown| ShaperCheck::new(slowdown, self.size, self.base.coalescing());
            self.suspect = slowdown.map(check);
        }
    }

    /// The capacity by whole trains, whose ends may be stamped late.
    fn by_whole(&self) -> Capacity {
        let rates: Vec<f64> = self.whole.iter().map(|(rate, _)| *rate).collect();
        let late = self.base.coalescing() + self.noise * 2;
        let ends = self.whole.iter().map(|(rate, took)| {
            let by = late.as_secs_f64() / took.as_secs_f64().max(1e-9);
            (rate / (1.0 + by), rate * (1.0 + by))
        });
        Capacity {
            rate: stats::median(&rates).unwrap_or(0.0),
            interval: ends.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))),
            method: IntervalMethod::MedianOrderStatistics,
        }
    }

    /// True if most gaps are those of this rate: then nothing has to tell which others are.
    fn agree(&self, rate: f64) -> bool {
        let slot = self.size.bits() as f64 * 1e9 / rate.max(1.0);
        let near = (slot * SAME).max(self.noise.as_nanos() as f64 * 2.0);
        let same = self.gaps.iter().filter(|gap| (gap.received.as_nanos() as f64 - slot).abs() <= near);
        same.count() * 2 > self.gaps.len()
    }

    fn found(&self) -> Result<Vec<Estimate>, Refusal> {
        let burst = self.size * self.packets as u64;
        let mut said = self.base.said(None);
        let mut say = |code, text: &str| said.push(Warning { code, text: text.to_owned() });
        if self.cut * 2 > self.streams.len() {
            say(WarningCode::Policer, CUT);
        }
        if let Some(batched) = &self.batched {
            if let Some(refusal) = batched.refusal() {
                return Err(refusal);
            }
            say(WarningCode::BatchedStamps, IN_BATCHES);
            return Ok(self.rows(batched.capacity().estimate([burst, self.size], &self.streams, said)));
        }
        let rates: Vec<f64> = self
            .gaps
            .iter()
            .map(|gap| gap.size.bits() as f64 * 1e9 / gap.received.as_nanos() as f64)
            .collect();
        let config = WbestConfig { packet_size: self.size, ..WbestConfig::default() };
        let median = Capacity::of(&rates, &config, self.noise);
        let by_whole = self.by_whole();
        // A stamp's noise, or the interrupts of a receiver, against the gap.
        let fast =
            median.rate > self.size.bits() as f64 * 1e9 / (self.noise * NOISE_SHARE).as_nanos().max(1) as f64;
        let made_up = BurstCheck::needed(median.rate, self.size, self.base.coalescing());
        // Trains that all came in one batch have no rate.
        let clumped = self.clumped * 2 > self.streams.len();
        let timed = clumped && !self.whole.is_empty();
        let apart = (by_whole.rate / median.rate.max(1.0) - 1.0).abs() > AGREE;
        let why = match () {
            () if self.shaper.is_some() => self.shaper.as_ref().map(Shaper::why),
            () if timed => None,
            () if clumped || self.gaps.len() < self.wide || fast => Some(
                "trains come as fast as the server sends them, or faster than these hosts can time"
                    .to_owned(),
            ),
            () if made_up && apart => Some(
                "gaps and whole trains do not agree, as where a receiver takes interrupts late".to_owned(),
            ),
            () => None,
        };
        if let Some(why) = why {
            say(WarningCode::LowerBound, &why);
            let bound = Value::MoreThan(self.bound);
            let bound = self.base.estimate(Quantity::Capacity, bound, &self.streams);
            return Ok(self.rows(Estimate { burst: Some(burst), warnings: said, ..bound }));
        }
        let met = if self.agree(median.rate) { Met::Few } else { met(&self.gaps) };
        let capacity = match met {
            _ if timed => {
                say(WarningCode::BatchedStamps, CLUMPED);
                by_whole
            }
            Met::Few => median,
            Met::Many(rate) => {
                say(WarningCode::Contended, CONTENDED);
                Capacity { rate, interval: None, ..median }
            }
            Met::AtLink | Met::Scattered | Met::TooMany => {
                say(WarningCode::Scattered, SCATTERED);
                median
            }
        };
        Ok(self.rows(capacity.estimate([burst, self.size], &self.streams, said)))
    }

    /// The capacity, and what lasts.
    fn rows(&self, capacity: Estimate) -> Vec<Estimate> {
        let said = capacity.warnings.clone();
        let lasts = match &self.shaper {
            Some(shaper) => shaper.estimate(said),
            None => shaper::unknown(shaper::least_unseen(self.packets, self.size), &self.streams, said),
        };
        let mut found = vec![capacity, lasts];
        warn_too_wide(&mut found, 0.0);
        found
    }
}

impl Estimator for Trains {
    fn step(&mut self) -> Step {
        self.base.step().unwrap_or_else(|| self.base.send(StreamPlan::burst(self.packets, self.size)))
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.base.is_done() {
            return;
        }
        let verdict = self.base.judge(record, self.packets);
        if verdict != StreamVerdict::Believed {
            return self.base.waste(verdict, ATTEMPTS);
        }
        self.base.useful();
        self.noise = self.noise.max(self.base.noise(record));
        self.streams.push(record.stream);
        self.cut += usize::from(policer::suspects(record));
        if let Some(burst) = Burst::of(record, None) {
            let late = self.base.coalescing() + self.noise * 2;
            let bound = burst.at_least(late).unwrap_or(self.bound);
            self.bound = if bound > self.bound { bound } else { self.bound };
            let rate = self.base.rate_of(&burst, record);
            self.whole.extend(rate.ok().map(|rate| (rate, burst.received)));
        }
        let came = record.packets.len() - record.lost();
        let clumped = Batch::of(record, self.noise).len() * 2 <= came;
        self.clumped += usize::from(clumped);
        if let Some(batched) = &mut self.batched {
            let taken = batched.on_stream(record, verdict, self.noise, None);
            if taken != Taken::Yes {
                self.base.warn(WarningCode::Partial, "a train came in one batch and tells nothing");
            }
        } else if clumped {
            let coalescing = self.base.coalescing();
            self.batched = Batched::of(record, self.size, coalescing, self.noise).map(Box::new);
        }
        self.take_gaps(record);
        self.look(record);
        if self.streams.len() >= self.wanted {
            self.finish();
        }
    }

    fn so_far(&self) -> Vec<Estimate> {
        if self.base.is_done() || self.streams.is_empty() {
            return Vec::new();
        }
        let text = format!("from {} of {} trains", self.streams.len(), self.wanted);
        let mut found = self.found().unwrap_or_default();
        for estimate in &mut found {
            estimate.warnings.push(Warning { code: WarningCode::Partial, text: text.clone() });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Outcome;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    /// A train whose packets leave 12 us apart, and come with these gaps in microseconds.
    fn train(gaps: impl IntoIterator<Item = u64>) -> StreamRecord {
        let mut came = vec![Some(20_000)];
        came.extend(gaps.into_iter().scan(20_000, |at, gap| {
            *at += gap;
            Some(Some(*at))
        }));
        let sent: Vec<u64> = (0..came.len() as u64).map(|k| 12 * k).collect();
        record(Pattern::Burst, &vec![0; came.len()], &sent, &came)
    }

    fn of(trains: &[StreamRecord]) -> Vec<Estimate> {
        let packets = trains[0].packets.len();
        let mut tool = Trains::new(trains.len(), packets, Bytes(1488), Conditions::default());
        for train in trains {
            assert!(matches!(tool.step(), Step::Send(_)));
            tool.on_stream(train);
        }
        match tool.step() {
            Step::Done(Outcome::Found(found)) => found,
            other => panic!("{other:?}"),
        }
    }

    /// 11,904 bits in 1190 us, but for one packet of others of 1500 B in one train.
    #[test]
    fn the_capacity_is_the_median_of_the_gaps() {
        let mut met = vec![1_190; 29];
        met[7] += 1_200;
        let found = of(&[train(met), train(vec![1_190; 29])]);
        let rate = found[0].value.rate().unwrap().bits_per_second();
        assert_eq!(rate, 10_003_361);
        assert_eq!((found[0].burst, found[0].warnings.as_slice()), (Some(Bytes(44_640)), &[][..]));
        assert!(found[0].interval.is_some_and(|i| i.contains(Rate::ip(10_000_000))), "{found:?}");
        assert_eq!((found[1].quantity, found[1].value), (Quantity::SustainedRate, Value::Unknown));
    }

    /// Ten packets at 50 Mbit/s, and the others at 5.
    #[test]
    fn a_bucket_that_two_trains_show_is_a_shaper() {
        let gaps = || (0..29).map(|k| if k < 9 { 238 } else { 2_381 });
        let found = of(&[train(gaps()), train(gaps()), train(gaps())]);
        assert!(matches!(found[0].value, Value::MoreThan(_)), "{found:?}");
        let rate = found[1].value.rate().unwrap().bits_per_second() as f64;
        assert!((rate / 5e6 - 1.0).abs() < 0.01, "{found:?}");
        assert!(found[1].warnings.iter().any(|w| w.code == WarningCode::Shaper));
    }

    /// Stamps every 250 us: 100 Mbit/s is two packets a stamp, and the whole train tells.
    #[test]
    fn stamps_in_clumps_are_read_as_whole_trains_and_faster_paths_have_a_bound() {
        let found = of(&[train((1..30).map(|k| if k % 2 == 0 { 250 } else { 0 }))]);
        let rate = found[0].value.rate().unwrap().bits_per_second() as f64;
        assert!((rate / 98.6e6 - 1.0).abs() < 0.02 && found[0].interval.is_some(), "{found:?}");
        assert_eq!(found[0].warnings[0].code, WarningCode::BatchedStamps);
        for gap in [13, 0] {
            let fast = of(&[train(vec![gap; 29]), train(vec![gap; 29])]);
            assert!(matches!(fast[0].value, Value::MoreThan(_)), "{fast:?}");
        }
    }

    #[test]
    fn a_run_that_ends_early_has_what_its_trains_showed() {
        let mut tool = Trains::new(6, 30, Bytes(1488), Conditions::default());
        tool.on_stream(&train(vec![1_190; 29]));
        assert_eq!(tool.rate(), Some(Rate::ip(10_003_361)));
        assert_eq!(tool.so_far()[0].warnings[0].text, "from 1 of 6 trains");
        tool.end("the server takes one test");
        let Step::Done(Outcome::Found(found)) = tool.step() else { panic!() };
        assert_eq!(found[0].warnings[0].text, "from 1 of 6 trains: the server takes one test");
        let mut silent = Trains::new(6, 30, Bytes(1488), Conditions::default());
        silent.end("nothing came");
        assert!(matches!(silent.step(), Step::Done(Outcome::Refused(Refusal::PeerCannot(_)))));
    }
}
