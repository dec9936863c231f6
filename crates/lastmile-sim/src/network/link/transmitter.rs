//! [`Transmitter`]: when a packet's transmission begins and ends, exactly and whatever the kind of events.

use std::sync::Arc;
use std::vec::IntoIter;

use lastmile::time::{Span, Time};
use lastmile::units::Rate;

use super::NEVER;
use super::opportunities::Opportunities;
use crate::network::trace::{Quantity, Reader, Trace};

/// A change of a link that is known beforehand: a step of its capacity, a hand-off, an outage.
///
/// A packet is sent at the rate that holds when its transmission begins, and propagates for the delay that
/// holds when it ends. A link never reorders: where the delay shrinks, packets arrive no earlier than the one
/// before them.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: Time,
    /// The rate from then on; zero is an outage, in which packets wait. Without one the rate stays.
    pub rate: Option<Rate>,
    /// The delay from then on. Without one it stays.
    pub delay: Option<Span>,
}

/// Outages that are remembered before those that are over are looked for.
const MAX_GAPS: usize = 4_096;

/// The rate of a link over time and its bookings. Fields that every packet needs stand first, close together.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Transmitter {
    /// Zero where nothing limits.
    bits_per_second: u64,
    /// When it is free: nanoseconds, and a fraction of one in units of 1/`bits_per_second`, so that no rounding
    /// adds up over a busy period.
    free_at: u64,
    fraction: u64,
    /// A transmission that begins before this begins at once, at the rate that holds.
    plain_until: u64,
    /// Transmission time of the last size seen: whole nanoseconds and the fraction.
    cached: (u32, u64, u64),
    /// Transmission time of all packets so far.
    committed: Span,
    delay: u64,
    last_arrival: u64,
    next_delay_at: u64,
    next_rate_at: u64,
    /// The values from these times on. Rates and delays change apart: a rate is read at the start of a transmission, a delay
    /// at its end.
    coming_delay: u64,
    coming_rate: u64,
    delays: IntoIter<(u64, u64)>,
    rates: IntoIter<(u64, u64)>,
    /// Rates that come from a trace instead.
    trace: Option<Box<Reader>>,
    /// Departures at the times of a trace, instead of any rate.
    opportunities: Option<Box<Opportunities>>,
    /// An outage: nothing begins until the rate is back.
    down: bool,
    /// Outages that packets waited through, those that are over left out from time to time.
    gaps: Vec<(u64, u64)>,
    /// When it was free before the first packet that waits for ever.
    stalled_at: u64,
}

impl Transmitter {
    pub(super) fn new(
        rate: Option<Rate>,
        delay: Span,
        schedule: &[Change],
        trace: Option<&Arc<Trace>>,
    ) -> Transmitter {
        let reader = trace.map(|trace| Reader::new(Arc::clone(trace)));
        let (opportunities, trace) = match trace.map(|trace| trace.quantity()) {
            Some(Quantity::Opportunities) => {
                (reader.map(|reader| Box::new(Opportunities::new(reader))), None)
            }
            _ => (None, reader.map(Box::new)),
        };
        let mut schedule: Vec<&Change> = schedule.iter().collect();
        schedule.sort_by_key(|change| change.at);
        let delay_of = |change: &&Change| Some((change.at.as_nanos(), nanos(change.delay?)));
        let rate_of = |change: &&Change| Some((change.at.as_nanos(), change.rate?.bits_per_second()));
        let mut transmitter = Transmitter {
            // A rate of zero from the start would never deliver: files cannot say it, and it counts as 1 bit/s.
            bits_per_second: rate.map_or(0, |rate| rate.bits_per_second().max(1)),
            delay: nanos(delay),
            delays: schedule.iter().filter_map(delay_of).collect::<Vec<_>>().into_iter(),
            rates: schedule.iter().filter_map(rate_of).collect::<Vec<_>>().into_iter(),
            trace,
            opportunities,
            ..Transmitter::default()
        };
        transmitter.seek_rate();
        transmitter.seek_delay();
        if transmitter.opportunities.is_some() {
            transmitter.plain_until = 0;
        }
        transmitter
    }

    fn seek_rate(&mut self) {
        let next = match &mut self.trace {
            Some(trace) => trace.next().map(|(at, rate)| (at, rate as u64)),
            None => self.rates.next(),
        };
        (self.next_rate_at, self.coming_rate) = next.unwrap_or((NEVER, 0));
        self.plain_until = if self.down { 0 } else { self.next_rate_at };
    }

    fn seek_delay(&mut self) {
        (self.next_delay_at, self.coming_delay) = self.delays.next().unwrap_or((NEVER, 0));
    }

    fn set_rate(&mut self, to: u64) {
        self.down = to == 0;
        if to > 0 && to != self.bits_per_second {
            // The fraction of a nanosecond keeps its length.
            self.fraction = match self.bits_per_second {
                0 => 0,
                from => (u128::from(self.fraction) * u128::from(to) / u128::from(from)) as u64,
            };
            self.bits_per_second = to;
            self.cached = (0, 0, 0);
        }
    }

    /// When a transmission can begin, at `from` or later. [`NEVER`] where an outage has no end.
    #[inline]
    pub(super) fn ready(&mut self, from: u64) -> u64 {
        let start = self.free_at.max(from);
        if start < self.plain_until { start } else { self.ready_later(from, start) }
    }

    fn renew_rate(&mut self, at: u64) {
        while at >= self.next_rate_at && self.next_rate_at != NEVER {
            self.set_rate(self.coming_rate);
            self.seek_rate();
        }
    }

    #[cold]
    fn ready_later(&mut self, from: u64, mut start: u64) -> u64 {
        if let Some(opportunities) = &mut self.opportunities {
            return opportunities.ready(from);
        }
        loop {
            self.renew_rate(start);
            if !self.down {
                return start;
            }
            start = self.next_rate_at;
            if start == NEVER {
                return NEVER;
            }
            // Since it was free nothing is booked, even where `from` is ahead of the outage's beginning.
            if self.gaps.len() >= MAX_GAPS {
                self.gaps.retain(|gap| gap.1 > from);
            }
            self.gaps.push((self.free_at, start));
            // A later request with an earlier time must not begin within the outage.
            (self.free_at, self.fraction) = (start, 0);
        }
    }

    /// Books `wire` bytes from `start`, which [`ready`](Transmitter::ready) gave, and says when they are sent.
    #[inline]
    pub(super) fn send(&mut self, start: u64, wire: u32) -> u64 {
        if start == NEVER || self.bits_per_second == 0 {
            let start = match &mut self.opportunities {
                Some(opportunities) if start != NEVER => opportunities.send(start, wire),
                _ => start,
            };
            if self.free_at != NEVER {
                self.stalled_at = self.free_at;
            }
            self.free_at = start;
            return start;
        }
        if self.free_at < start {
            (self.free_at, self.fraction) = (start, 0);
        }
        if self.cached.0 != wire {
            let scaled = u64::from(wire) * 8_000_000_000;
            self.cached = (wire, scaled / self.bits_per_second, scaled % self.bits_per_second);
        }
        let (_, ns, fraction) = self.cached;
        self.free_at = self.free_at.saturating_add(ns);
        self.fraction += fraction;
        if self.fraction >= self.bits_per_second {
            self.fraction -= self.bits_per_second;
            self.free_at = self.free_at.saturating_add(1);
        }
        self.committed += Span::from_nanos((self.free_at - start) as i64);
        self.free_at
    }

    /// True if each packet keeps it busy for a time; false if packets leave at moments.
    pub(super) fn is_timed(&self) -> bool {
        self.opportunities.is_none()
    }

    /// Why its trace cannot be read any more.
    pub(super) fn failure(&self) -> Option<&str> {
        let trace = self.opportunities.as_ref().map(|opportunities| opportunities.trace());
        trace.or(self.trace.as_deref())?.failure()
    }

    /// For how long it was busy up to `now`.
    pub(super) fn busy(&self, now: u64) -> Span {
        let end = if self.free_at == NEVER { self.stalled_at } else { self.free_at };
        // From `now` to `end` everything is booked without a pause, but for outages.
        let within = |&(from, to): &(u64, u64)| to.min(end).saturating_sub(from.max(now));
        let gaps: u64 = self.gaps.iter().map(within).sum();
        self.committed - Span::from_nanos(end.saturating_sub(now).saturating_sub(gaps) as i64)
    }

    #[cold]
    fn renew_delay(&mut self, departs: u64) {
        while departs >= self.next_delay_at && self.next_delay_at != NEVER {
            self.delay = self.coming_delay;
            self.seek_delay();
        }
    }

    /// When a packet arrives whose transmission ended at `departs`.
    #[inline]
    pub(super) fn arrival(&mut self, departs: u64) -> u64 {
        if departs >= self.next_delay_at {
            self.renew_delay(departs);
        }
        self.last_arrival = departs.saturating_add(self.delay).max(self.last_arrival);
        self.last_arrival
    }
}

fn nanos(span: Span) -> u64 {
    span.as_nanos().max(0) as u64
}
