//! Laws of arrivals: when a source of traffic sends its packets. The simulator's sources and those on real sockets follow the same
//! laws: the same law with the same random numbers gives the same departures in both.

use std::sync::Arc;

use crate::rng::Stream;
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

mod cbr;
mod onoff;
mod poisson;
mod trace;

use cbr::Cbr;
use onoff::OnOffLaw;
use poisson::Poisson;

pub use onoff::{Lengths, OnOff};
pub use trace::{MAX_TRACE_PACKETS, Trace};

/// The law by which a source sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Equal gaps from a random phase on.
    Cbr,
    /// Exponential gaps.
    Poisson,
    /// Bursts and silences.
    OnOff(OnOff),
    /// As recorded; the source's rate and size do not count.
    Trace(Arc<Trace>),
}

#[derive(Debug)]
enum Law {
    Cbr(Cbr),
    Poisson(Poisson),
    OnOff(OnOffLaw),
    Trace(TraceLaw),
    /// A rate of zero: nothing until it changes.
    Silent,
}

#[derive(Debug)]
struct TraceLaw {
    trace: Arc<Trace>,
    next: usize,
    start: u64,
}

impl Law {
    fn new(arrivals: &Arrivals, rate: Rate, ip_size: u32, start: u64) -> Law {
        let bits_per_second = rate.bits_per_second();
        match arrivals {
            Arrivals::Trace(trace) => Law::Trace(TraceLaw { trace: Arc::clone(trace), next: 0, start }),
            _ if bits_per_second == 0 => Law::Silent,
            Arrivals::Cbr => Law::Cbr(Cbr::new(bits_per_second, ip_size)),
            Arrivals::Poisson => Law::Poisson(Poisson::new(bits_per_second, ip_size)),
            Arrivals::OnOff(config) => Law::OnOff(OnOffLaw::new(*config, bits_per_second, ip_size)),
        }
    }

    /// The first departure from `start` on.
    fn first(&mut self, start: u64, random: &mut Stream) -> u64 {
        let wait = match self {
            Law::Cbr(cbr) => cbr.phase(random),
            Law::Poisson(poisson) => poisson.gap(random),
            Law::OnOff(on_off) => on_off.phase(random),
            Law::Trace(trace) => trace.trace.packets().first().map_or(u64::MAX, |p| p.0.as_nanos() as u64),
            Law::Silent => u64::MAX,
        };
        start.saturating_add(wait)
    }
}

/// Departures of a source, one after the other.
///
/// ```
/// use lastmile::{arrivals::{Arrivals, Departures}, rng::Stream, time::Time, units::{Bytes, Rate}};
/// // A packet of 1250 B each 10 ms, from a random phase within the first of them.
/// let mut departures =
///     Departures::new(&Arrivals::Cbr, Rate::ip(1_000_000), Bytes(1250), Time::ZERO, Stream::new(1, "cross"));
/// let first = departures.next();
/// assert_eq!(departures.take(), Bytes(1250));
/// assert_eq!((departures.next() - first).as_nanos(), 10_000_000);
/// ```
#[derive(Debug)]
pub struct Departures {
    law: Law,
    random: Stream,
    next: u64,
    ip_size: u32,
}

impl Departures {
    /// Departures from `start` on, with random numbers of their own.
    pub fn new(
        arrivals: &Arrivals,
        rate: Rate,
        ip_size: Bytes,
        start: Time,
        mut random: Stream,
    ) -> Departures {
        let (start, ip_size) = (start.as_nanos(), u32::try_from(ip_size.0.max(1)).unwrap_or(u32::MAX));
        let mut law = Law::new(arrivals, rate, ip_size, start);
        let next = law.first(start, &mut random);
        Departures { law, random, next, ip_size }
    }

    /// When the next packet leaves; [`Time::MAX`] if none does.
    #[inline]
    pub fn next(&self) -> Time {
        Time::from_nanos(self.next)
    }

    /// Takes the next packet: its size at the IP layer.
    #[inline]
    pub fn take(&mut self) -> Bytes {
        let gap = match &mut self.law {
            Law::Cbr(cbr) => cbr.gap(),
            Law::Poisson(poisson) => poisson.gap(&mut self.random),
            Law::OnOff(on_off) => on_off.gap(&mut self.random),
            Law::Trace(law) => {
                let packets = law.trace.packets();
                let size = packets.get(law.next).map_or(Bytes(u64::from(self.ip_size)), |packet| packet.1);
                law.next += 1;
                let next = packets.get(law.next).map(|packet| packet.0.as_nanos() as u64);
                self.next = next.map_or(u64::MAX, |offset| law.start.saturating_add(offset));
                return size;
            }
            Law::Silent => u64::MAX,
        };
        // A gap of no time (an absurd rate) would send for ever at one moment.
        self.next = self.next.saturating_add(gap.max(1));
        Bytes(u64::from(self.ip_size))
    }

    /// Goes over to another rate at a time, from which the law begins anew.
    pub fn change(&mut self, arrivals: &Arrivals, at: Time, rate: Rate) {
        let at = at.as_nanos();
        self.law = Law::new(arrivals, rate, self.ip_size, at);
        self.next = self.law.first(at, &mut self.random);
    }

    /// All departures from now on are so much later: for a sender that could not send meanwhile.
    pub fn postpone(&mut self, by: Span) {
        let by = by.as_nanos().max(0) as u64;
        self.next = self.next.saturating_add(by);
        if let Law::Trace(law) = &mut self.law {
            law.start = law.start.saturating_add(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trace of packets at 0 and 0.5 s, begun at 1 s and held up for 2 s.
    #[test]
    fn what_is_postponed_keeps_its_gaps() {
        let trace = Arrivals::Trace(Arc::new("0 100\n0.5 40".parse().unwrap()));
        let second = |s: f64| Time::ZERO + Span::from_secs_f64(s);
        for arrivals in [trace, Arrivals::Poisson] {
            let of = || {
                Departures::new(&arrivals, Rate::ip(1_000_000), Bytes(500), second(1.0), Stream::new(3, "x"))
            };
            let (mut whole, mut late) = (of(), of());
            late.postpone(Span::from_secs(2));
            for _ in 0..2 {
                assert_eq!(late.next(), whole.next() + Span::from_secs(2));
                assert_eq!(late.take(), whole.take());
            }
        }
    }
}
