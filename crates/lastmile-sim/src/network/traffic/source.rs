//! [`Source`]: sends packets without bytes by some law of arrivals.

use core::net::SocketAddr;
use std::sync::Arc;

use lastmile::node::{Datagram, Ecn, Flow, Model, Output, Payload, PortId, Transmit, TransmitId};
use lastmile::time::Time;
use lastmile::units::{Bytes, Rate};

use super::cbr::Cbr;
use super::onoff::{OnOff, OnOffLaw};
use super::poisson::Poisson;
use super::trace::Trace;
use crate::network::packets::MAX_WIRE_BYTES;
use crate::rng::Stream;

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

/// Configuration of a source.
#[derive(Clone, Debug)]
pub struct SourceConfig {
    /// When packets are sent.
    pub arrivals: Arrivals,
    /// Mean rate of IP packets.
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

impl Default for SourceConfig {
    /// Full packets at equal gaps and no rate, for ever.
    fn default() -> SourceConfig {
        let any = (core::net::Ipv4Addr::UNSPECIFIED, 0).into();
        SourceConfig {
            arrivals: Arrivals::Cbr,
            rate: Rate::ip(0),
            ip_size: Bytes(1500),
            start: Time::ZERO,
            stop: Time::MAX,
            flow: Flow(0),
            from: any,
            to: any,
        }
    }
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

/// A source of traffic. Sends by port 0.
#[derive(Debug)]
pub struct Source {
    law: Law,
    random: Stream,
    next: u64,
    start: u64,
    stop: u64,
    sent: u64,
    template: Datagram,
    ip_size: u32,
    arrivals: Arrivals,
    /// Rates to come, the next one last.
    changes: Vec<(u64, Rate)>,
}

impl Source {
    /// A source with its own random numbers.
    pub fn new(config: SourceConfig, mut random: Stream) -> Source {
        let ip_size = config.ip_size.0.clamp(1, MAX_WIRE_BYTES) as u32;
        let template = Datagram {
            from: config.from,
            to: config.to,
            flow: config.flow,
            ecn: Ecn::NotEct,
            dscp: 0,
            hop_limit: 64,
            payload: Payload::Model(Model::default()),
        };
        let start = config.start.as_nanos();
        let mut law = Law::new(&config.arrivals, config.rate, ip_size, start);
        let next = law.first(start, &mut random);
        Source {
            law,
            random,
            next,
            start,
            stop: config.stop.as_nanos(),
            sent: 0,
            template,
            ip_size,
            arrivals: config.arrivals,
            changes: Vec::new(),
        }
    }

    /// The same with other rates from some times on; zero is a pause. A trace has no rate to change.
    pub fn with_changes(mut self, mut changes: Vec<(Time, Rate)>) -> Source {
        if !matches!(self.arrivals, Arrivals::Trace(_)) {
            changes.sort_by_key(|change| core::cmp::Reverse(change.0));
            self.changes = changes.into_iter().map(|(at, rate)| (at.as_nanos(), rate)).collect();
            self.change();
        }
        self
    }

    /// Packets sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Goes over to the rates that hold when the next packet would leave.
    #[inline]
    fn change(&mut self) {
        while let Some(&(at, rate)) = self.changes.last()
            && at <= self.next
        {
            self.changes.pop();
            let from = at.max(self.start);
            self.law = Law::new(&self.arrivals, rate, self.ip_size, from);
            self.next = self.law.first(from, &mut self.random);
        }
    }

    /// The departure after this one, and this one's size.
    #[inline]
    fn advance(&mut self) -> u32 {
        // A gap of no time (an absurd rate) would send for ever at one moment.
        let gap = match &mut self.law {
            Law::Cbr(cbr) => cbr.gap(),
            Law::Poisson(poisson) => poisson.gap(&mut self.random),
            Law::OnOff(on_off) => on_off.gap(&mut self.random),
            Law::Trace(law) => {
                let packets = law.trace.packets();
                let size = packets.get(law.next).map_or(self.ip_size, |packet| packet.1.0 as u32);
                law.next += 1;
                let next = packets.get(law.next).map(|packet| packet.0.as_nanos() as u64);
                self.next = next.map_or(u64::MAX, |offset| law.start.saturating_add(offset));
                return size;
            }
            Law::Silent => u64::MAX,
        };
        self.next = self.next.saturating_add(gap.max(1));
        self.change();
        self.ip_size
    }

    /// The next packet, or when that leaves.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Output {
        if self.next >= self.stop {
            return Output::Wait(None);
        }
        if self.next > now.as_nanos() {
            return Output::Wait(Some(Time::from_nanos(self.next)));
        }
        let words = [self.sent, self.next, 0, 0];
        let ip_size = self.advance();
        self.sent += 1;
        // Field by field: a clone would look for a heap payload that is never there.
        let Datagram { from, to, flow, ecn, dscp, hop_limit, .. } = self.template;
        let payload = Payload::Model(Model { ip_size, words });
        let datagram = Datagram { from, to, flow, ecn, dscp, hop_limit, payload };
        Output::Transmit(Transmit { id: TransmitId(0), at: now, port: PortId(0), datagram })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(s: u64) -> Time {
        Time::from_nanos(s * 1_000_000_000)
    }

    /// 100 packets a second from 1 s to 9 s, by their departures and sizes.
    fn sent(arrivals: Arrivals, changes: &[(Time, Rate)], name: &str) -> Vec<(u64, u64)> {
        let (rate, start, stop) = (Rate::ip(1_200_000), second(1), second(9));
        let config = SourceConfig { arrivals, rate, start, stop, ..SourceConfig::default() };
        let mut source = Source::new(config, Stream::new(2, name)).with_changes(changes.to_vec());
        let (mut now, mut sent) = (Time::ZERO, Vec::new());
        loop {
            match source.poll(now) {
                Output::Transmit(t) => sent.push((t.at.as_nanos(), t.datagram.ip_size().0)),
                Output::Wait(Some(at)) => now = at,
                _ => return sent,
            }
        }
    }

    #[test]
    fn cbr_keeps_its_rate_between_start_and_stop_from_a_phase_of_its_own() {
        let [a, b] = ["a", "b"].map(|name| sent(Arrivals::Cbr, &[], name));
        assert!(a.len().abs_diff(800) <= 1 && a[0].0 != b[0].0, "{}", a.len());
        assert!(a.windows(2).all(|pair| pair[1].0 - pair[0].0 == 10_000_000));
        assert!(a[0].0 >= 1_000_000_000 && a.last().unwrap().0 < 9_000_000_000);
    }

    #[test]
    fn rates_change_when_they_are_told_to() {
        let [zero, twice] = [0, 2_400_000].map(Rate::ip);
        let changes = [(second(6), twice), (second(3), zero), (second(8), zero)];
        for arrivals in [Arrivals::Cbr, Arrivals::Poisson] {
            let sent = sent(arrivals, &changes, "x");
            let within = |from: u64, to: u64| {
                sent.iter().filter(|sent| (from..to).contains(&(sent.0 / 1_000_000_000))).count()
            };
            assert!(within(1, 3).abs_diff(200) < 50 && within(6, 8).abs_diff(400) < 70, "{}", sent.len());
            assert_eq!((within(0, 1), within(3, 6), within(8, 99)), (0, 0, 0));
        }
        // A change before the start is the rate to start with.
        let early = sent(Arrivals::Cbr, &[(Time::ZERO, twice)], "x");
        assert!(early.len().abs_diff(1600) <= 1 && early[0].0 >= 1_000_000_000, "{}", early.len());
    }

    #[test]
    fn a_trace_is_sent_as_it_stands() {
        let trace: Trace = "0 100\n0.5 1500\n0.5 40\n9 70".parse().unwrap();
        let sent = sent(Arrivals::Trace(Arc::new(trace)), &[], "x");
        assert_eq!(sent, [(1_000_000_000, 100), (1_500_000_000, 1500), (1_500_000_000, 40)]);
    }
}
