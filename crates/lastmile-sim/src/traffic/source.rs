//! [`Source`]: sends packets without bytes by some law of arrivals.

use core::net::SocketAddr;

use lastmile::node::{
    Datagram, Ecn, Flow, Input, Model, Node, Output, Payload, PortId, Transmit, TransmitId,
};
use lastmile::time::Time;
use lastmile::units::{Bytes, Rate};

use super::cbr::Cbr;
use super::poisson::Poisson;
use crate::path::link::MAX_WIRE_BYTES;
use crate::rng::Stream;

/// The law by which a source sends.
///
/// ```
/// use lastmile_sim::traffic::Arrivals;
/// assert_ne!(Arrivals::Cbr, Arrivals::Poisson);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Equal gaps from a random phase on.
    Cbr,
    /// Exponential gaps.
    Poisson,
}

/// What a source sends.
///
/// ```
/// use lastmile::{node::Flow, time::Time, units::{Bytes, Rate}};
/// use lastmile_sim::{rng::Stream, traffic::{Arrivals, Source, SourceConfig}};
/// let config = SourceConfig {
///     arrivals: Arrivals::Poisson, rate: Rate::ip(4_000_000), ip_size: Bytes(1500), start: Time::ZERO, stop: Time::MAX,
///     flow: Flow(3), from: "10.77.0.1:9".parse().unwrap(), to: "10.77.0.2:9".parse().unwrap(),
/// };
/// let source = Source::new(config, Stream::new(1, "traffic/cross"));
/// assert_eq!(source.sent(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct SourceConfig {
    /// When packets are sent.
    pub arrivals: Arrivals,
    /// How much of IP packets, on the mean.
    pub rate: Rate,
    /// The size of each, with its IP header.
    pub ip_size: Bytes,
    /// No packet leaves before.
    pub start: Time,
    /// No packet leaves at this time or after it.
    pub stop: Time,
    /// The flow that its packets are labelled with.
    pub flow: Flow,
    /// The sender's address.
    pub from: SocketAddr,
    /// The receiver's address.
    pub to: SocketAddr,
}

#[derive(Debug)]
enum Law {
    Cbr(Cbr),
    Poisson(Poisson),
}

/// A source of traffic. Sends by port 0.
#[derive(Debug)]
pub struct Source {
    law: Law,
    random: Stream,
    next: u64,
    stop: u64,
    sent: u64,
    template: Datagram,
    ip_size: u32,
}

impl Source {
    /// A source with its own random numbers.
    pub fn new(config: SourceConfig, mut random: Stream) -> Source {
        let ip_size = config.ip_size.0.clamp(1, MAX_WIRE_BYTES) as u32;
        let bits_per_second = config.rate.bits_per_second();
        let (law, first) = match config.arrivals {
            Arrivals::Cbr => {
                let mut cbr = Cbr::new(bits_per_second, ip_size);
                let phase = cbr.phase(&mut random);
                (Law::Cbr(cbr), phase)
            }
            Arrivals::Poisson => {
                let mut poisson = Poisson::new(bits_per_second, ip_size);
                let first = poisson.gap(&mut random);
                (Law::Poisson(poisson), first)
            }
        };
        let template = Datagram {
            from: config.from,
            to: config.to,
            flow: config.flow,
            ecn: Ecn::NotEct,
            dscp: 0,
            hop_limit: 64,
            payload: Payload::Model(Model::default()),
        };
        let next = config.start.as_nanos().saturating_add(first);
        Source { law, random, next, stop: config.stop.as_nanos(), sent: 0, template, ip_size }
    }

    /// Packets sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }
}

impl Node for Source {
    fn handle(&mut self, _now: Time, _input: Input) {}

    #[inline]
    fn poll(&mut self, now: Time) -> Output {
        if self.next >= self.stop {
            return Output::Wait(None);
        }
        if self.next > now.as_nanos() {
            return Output::Wait(Some(Time::from_nanos(self.next)));
        }
        let words = [self.sent, self.next, 0, 0];
        // A gap of no time (an absurd rate) would send for ever at one moment.
        let gap = match &mut self.law {
            Law::Cbr(cbr) => cbr.gap(),
            Law::Poisson(poisson) => poisson.gap(&mut self.random),
        };
        self.next = self.next.saturating_add(gap.max(1));
        self.sent += 1;
        // Field by field: a clone would look for a heap payload that is never there.
        let Datagram { from, to, flow, ecn, dscp, hop_limit, .. } = self.template;
        let payload = Payload::Model(Model { ip_size: self.ip_size, words });
        let datagram = Datagram { from, to, flow, ecn, dscp, hop_limit, payload };
        Output::Transmit(Transmit { id: TransmitId(0), at: now, port: PortId(0), datagram })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: Arrivals, name: &str) -> Vec<u64> {
        let any = "10.77.0.1:9".parse().unwrap();
        let config = SourceConfig {
            arrivals,
            rate: Rate::ip(4_000_000),
            ip_size: Bytes(1500),
            start: Time::from_nanos(1_000_000_000),
            stop: Time::from_nanos(3_000_000_000),
            flow: Flow(1),
            from: any,
            to: any,
        };
        let mut source = Source::new(config, Stream::new(2, name));
        let (mut now, mut times) = (Time::ZERO, Vec::new());
        loop {
            match source.poll(now) {
                Output::Transmit(t) => times.push(t.at.as_nanos()),
                Output::Wait(Some(at)) => now = at,
                _ => return times,
            }
        }
    }

    #[test]
    fn cbr_keeps_its_rate_between_start_and_stop_from_a_phase_of_its_own() {
        let (a, b) = (times(Arrivals::Cbr, "a"), times(Arrivals::Cbr, "b"));
        assert!(a.len().abs_diff(667) <= 1, "{}", a.len());
        assert!(a.windows(2).all(|w| w[1] - w[0] == 3_000_000));
        assert!(a[0] >= 1_000_000_000 && a[0] < 1_003_000_000 && a[0] != b[0]);
        assert!(*a.last().unwrap() < 3_000_000_000);
    }

    #[test]
    fn poisson_is_not_regular() {
        let times = times(Arrivals::Poisson, "a");
        assert!((550..790).contains(&times.len()), "{}", times.len());
        assert!(times.windows(2).any(|w| w[1] - w[0] < 1_000_000));
    }
}
