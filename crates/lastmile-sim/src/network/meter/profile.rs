//! [`Profile`]: capacity of a link over time.

use std::sync::Arc;

use lastmile::units::Rate;

use crate::network::queue::{QueueLimit, TokenBucket};
use crate::network::trace::Trace;

/// A rate without a limit.
const UNLIMITED: u64 = u64::MAX;

/// The rate of a link over time: its schedule and its shaper. The lasting rate is at most the token rate: a shaper's
/// credit, once spent, must be saved up again. A burst may be sent with it.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// (from when, bit/s), in order; the first holds from the start.
    steps: Vec<(u64, u64)>,
    /// The token rate, and the bytes that a full bucket lets through.
    tokens: u64,
    bucket: u64,
    /// Limit of the queue for tokens.
    queue: QueueLimit,
    /// A trace that says the rate instead.
    trace: Option<Arc<Trace>>,
}

impl Profile {
    /// Profile of a link with that rate, a shaper with the queue before it or a policer without one, and changes of the rate in any
    /// order; of two at one time the later in the list holds. A trace, if given, says the rate instead.
    pub(crate) fn new(
        rate: Option<Rate>,
        shaper: Option<(&TokenBucket, QueueLimit)>,
        mut changes: Vec<(u64, Rate)>,
        trace: Option<Arc<Trace>>,
    ) -> Profile {
        // A rate of zero from the start counts as 1 bit/s, as in the transmitter.
        let least = |rate: Option<Rate>| rate.map_or(UNLIMITED, |rate| rate.bits_per_second().max(1));
        let tokens = least(shaper.map(|(shaper, _)| shaper.rate));
        changes.sort_by_key(|change| change.0);
        let changes = changes.into_iter().map(|(at, rate)| (at, rate.bits_per_second()));
        let steps = [(0, least(rate))].into_iter().chain(changes).collect();
        let (bucket, queue) =
            shaper.map_or((0, QueueLimit::default()), |(shaper, queue)| (shaper.burst.0, queue));
        Profile { steps, tokens, bucket, queue, trace }
    }

    /// True if tokens limit it.
    pub(crate) fn is_shaped(&self) -> bool {
        self.tokens != UNLIMITED
    }

    /// True if it ever limits anything.
    pub(crate) fn limits(&self) -> bool {
        self.trace.is_some() || self.is_shaped() || self.steps.iter().any(|step| step.1 != UNLIMITED)
    }

    /// Mean bits per second between two times, or at one if they are the same; `None` where nothing limits.
    pub(crate) fn mean(&self, from: u64, to: u64) -> Option<f64> {
        self.mean_up_to(self.tokens, from, to)
    }

    /// Bytes that a bucket lacks where packets of these (moment, bytes of all so far) take from it: at `from`, or in the mean
    /// as those found it that came from then up to `to`. Packets wait up to the queue's limit, which takes the tokens that come after
    /// them; that some are dropped sooner, by the discipline, is not known here.
    pub(crate) fn lacked(&self, met: &[(u64, u64)], from: u64, to: Option<u64>) -> f64 {
        if !self.is_shaped() {
            return 0.0;
        }
        let bucket = self.bucket as f64;
        let (mut lacks, mut at, mut before, mut found) = (0.0, 0, 0, (0.0, 0_u32));
        let fill = |lacks: f64, span: u64| (lacks - self.tokens as f64 / 8e9 * span as f64).max(0.0);
        let earlier = met.iter().take_while(|(moment, _)| *moment < to.unwrap_or(from));
        for (came, &(moment, bytes)) in (1_u32..).zip(earlier) {
            lacks = fill(lacks, moment - at);
            if moment >= from {
                found = (found.0 + lacks.min(bucket), found.1 + 1);
            }
            let waits = match self.queue {
                QueueLimit::Packets(packets) => f64::from(packets) * bytes as f64 / f64::from(came),
                QueueLimit::Bytes(bytes) => bytes.0 as f64,
            };
            lacks = (lacks + (bytes - before) as f64).min(bucket + waits);
            (at, before) = (moment, bytes);
        }
        match found {
            (sum, n) if n > 0 => sum / f64::from(n),
            _ => fill(lacks, from.saturating_sub(at)).min(bucket),
        }
    }

    /// The rate with which bursts of `bytes` come through that meet a bucket that lacks `lacked` of all its tokens, by the bytes behind
    /// each one's first packet of `packet` bytes: all packets leave the link's rate apart, and the last no sooner than there are
    /// tokens for all.
    pub(crate) fn mean_of_bursts(
        &self,
        from: u64,
        to: u64,
        packet: u64,
        bytes: u64,
        lacked: f64,
    ) -> Option<f64> {
        let behind = bytes.saturating_sub(packet) as f64 * 8.0;
        let link = self.mean_up_to(UNLIMITED, from, to).map_or(0.0, |rate| behind / rate);
        let tokens = match self.tokens {
            UNLIMITED => 0.0,
            tokens => {
                // The first one waits until there are tokens for it.
                let holds = (self.bucket as f64 - lacked).max(packet.min(self.bucket) as f64);
                (bytes as f64 - holds).max(0.0) * 8.0 / tokens as f64
            }
        };
        let takes = link.max(tokens);
        (takes > 0.0).then(|| behind / takes)
    }

    fn mean_up_to(&self, most: u64, from: u64, to: u64) -> Option<f64> {
        if let Some(trace) = &self.trace {
            return trace.mean_rate(from, to);
        }
        let first = self.steps.partition_point(|step| step.0 <= from).saturating_sub(1);
        let limited = |rate: u64| Some(rate.min(most)).filter(|rate| *rate != UNLIMITED);
        let steps = self.steps.get(first..)?;
        if to <= from || steps.get(1).is_none_or(|next| next.0 >= to) {
            return limited(steps.first()?.1).map(|rate| rate as f64);
        }
        let mut sum = 0_u128;
        for (index, &(at, rate)) in steps.iter().enumerate().take_while(|(_, step)| step.0 < to) {
            let until = steps.get(index + 1).map_or(to, |next| next.0.min(to));
            let holds = until.saturating_sub(at.max(from));
            if holds > 0 {
                sum += u128::from(limited(rate)?) * u128::from(holds);
            }
        }
        Some(sum as f64 / (to - from) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::link::{Change, LinkConfig};
    use crate::network::queue::TokenBucket;
    use lastmile::time::{Span, Time};
    use lastmile::units::Bytes;

    fn mbps(rate: u64) -> Option<Rate> {
        Some(Rate::ip(rate * 1_000_000))
    }

    fn at(millis: i64, rate: u64) -> Change {
        Change { at: Time::ZERO + Span::from_millis(millis), rate: mbps(rate), delay: None }
    }

    #[test]
    fn a_window_is_the_mean_of_what_held_in_it() {
        // Out of order; a change of the delay alone changes nothing here; of two at one time the later holds.
        let delay = Change { at: Time::ZERO, rate: None, delay: Some(Span::from_millis(1)) };
        let schedule = vec![at(30, 0), delay, at(10, 8), at(10, 4), at(40, 10)];
        let profile = (LinkConfig { rate: mbps(10), schedule, ..Default::default() }).profile();
        for (from, to, expected) in [
            (0, 10, 10.0),
            (0, 11, (10.0 * 10.0 + 4.0) / 11.0),
            (5, 15, 7.0),
            (10, 30, 4.0),
            (29, 31, 2.0),
            (5, 45, (5.0 * 10.0 + 20.0 * 4.0 + 5.0 * 10.0) / 40.0),
            (30, 30, 0.0),
            (50, 9_000, 10.0),
        ] {
            let mean = profile.mean(from * 1_000_000, to * 1_000_000).unwrap();
            assert!((mean / 1e6 - expected).abs() < 1e-9, "{from} to {to} ms: {mean}, not {expected}");
        }
    }

    #[test]
    fn a_shaper_limits_to_its_tokens_and_no_rate_limits_nothing() {
        let shaper = Some(TokenBucket { rate: Rate::ip(3_000_000), burst: Bytes(15_000) });
        let shaped = LinkConfig { rate: mbps(10), shaper: shaper.clone(), ..Default::default() };
        let schedule = vec![at(10, 2), at(20, 100)];
        let profile = (LinkConfig { schedule: schedule.clone(), ..shaped }).profile();
        assert_eq!(profile.mean(0, 30_000_000).map(f64::round), Some(2_666_667.0)); // (3 + 2 + 3) / 3
        let only = (LinkConfig { shaper, ..Default::default() }).profile();
        assert_eq!(only.mean(0, 1), Some(3e6));
        let from_then_on = (LinkConfig { schedule, ..Default::default() }).profile();
        assert!(from_then_on.limits() && !LinkConfig::default().profile().limits());
        assert_eq!(
            (from_then_on.mean(0, 11_000_000), from_then_on.mean(10_000_000, 11_000_000)),
            (None, Some(2e6))
        );
    }

    /// 100 Mbit/s, and tokens at 20 for 1500, 1600, 3200 and 30,000 bytes: two packets of 1488 B come 119 us apart where the
    /// bucket holds both, else when there are tokens for the second, as do 40.
    #[test]
    fn a_burst_comes_at_the_links_rate_as_long_as_tokens_last() {
        let of = |bucket, packets: u64| {
            let shaper = Some(TokenBucket { rate: Rate::ip(20_000_000), burst: Bytes(bucket) });
            let profile = (LinkConfig { rate: mbps(100), shaper, ..Default::default() }).profile();
            profile.mean_of_bursts(0, 1_000_000, 1_488, packets * 1_488, 0.0).unwrap() / 20e6
        };
        for (bucket, packets, expected) in [
            (1_500, 2, 1_488.0 / 1_476.0),
            (1_600, 2, 1_488.0 / 1_376.0),
            (3_200, 2, 5.0),
            (30_000, 2, 5.0),
            (30_000, 40, 58_032.0 / 29_520.0),
            (1_000_000, 40, 5.0),
        ] {
            assert!((of(bucket, packets) - expected).abs() < 1e-9, "{bucket} B, {packets} packets");
        }
        let shaper = Some(TokenBucket { rate: Rate::ip(20_000_000), burst: Bytes(100_000) });
        let profile =
            (LinkConfig { rate: mbps(100), shaper: shaper.clone(), ..Default::default() }).profile();
        // 100 kB at once, and from then on what tokens come for: the bucket stays empty, and a burst comes as these do.
        let met: Vec<(u64, u64)> = (0..1_000).map(|k| (k * 600_000, 100_000 + k * 1_500)).collect();
        for to in [None, Some(600_000_000)] {
            let lacked = profile.lacked(&met, 300_000_000, to);
            assert!((lacked - 100_000.0).abs() < 2_000.0, "{lacked}");
            let rate = profile.mean_of_bursts(0, 1, 1_488, 44_640, lacked).unwrap();
            assert!((rate / 20e6 - 1.0).abs() < 0.03, "{rate}");
        }
        assert_eq!(profile.lacked(&met[..1], 40_000_000, None), 0.0, "full again after 40 ms");
        // 900 kB at once, of which 300 kB find room in the queue: these take the tokens of 120 ms.
        let queue = QueueLimit::Bytes(Bytes(300_000));
        let profile = (LinkConfig { rate: mbps(100), shaper, queue, ..Default::default() }).profile();
        let later = |ms: u64| profile.lacked(&[(0, 900_000)], ms * 1_000_000, None);
        assert_eq!([100, 120, 140, 160].map(later), [100_000.0, 100_000.0, 50_000.0, 0.0]);
        let free = (LinkConfig { rate: mbps(10), ..Default::default() }).profile();
        assert_eq!(free.mean_of_bursts(0, 0, 1_000, 2_000, 0.0), Some(10e6));
        assert_eq!(LinkConfig::default().profile().mean_of_bursts(0, 0, 1_000, 2_000, 0.0), None);
    }
}
