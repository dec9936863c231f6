//! [`Source`]: sends packets without bytes by some law of arrivals.

use core::net::SocketAddr;

use lastmile::arrivals::{Arrivals, Departures};
use lastmile::node::{Datagram, Ecn, Flow, Model, Output, Payload, PortId, Transmit, TransmitId};
use lastmile::rng::Stream;
use lastmile::time::Time;
use lastmile::units::{Bytes, Rate};

use crate::network::packets::MAX_WIRE_BYTES;

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

/// A source of traffic. Sends by port 0.
#[derive(Debug)]
pub struct Source {
    departures: Departures,
    start: Time,
    stop: Time,
    sent: u64,
    template: Datagram,
    arrivals: Arrivals,
    /// Rates to come, the next one last.
    changes: Vec<(Time, Rate)>,
}

impl Source {
    /// A source with its own random numbers.
    pub fn new(config: SourceConfig, random: Stream) -> Source {
        let ip_size = Bytes(config.ip_size.0.clamp(1, MAX_WIRE_BYTES));
        let template = Datagram {
            from: config.from,
            to: config.to,
            flow: config.flow,
            ecn: Ecn::NotEct,
            dscp: 0,
            hop_limit: 64,
            payload: Payload::Model(Model::default()),
        };
        let SourceConfig { arrivals, rate, start, stop, .. } = config;
        let departures = Departures::new(&arrivals, rate, ip_size, start, random);
        Source { departures, start, stop, sent: 0, template, arrivals, changes: Vec::new() }
    }

    /// The same with other rates from some times on; zero is a pause. A trace has no rate to change.
    pub fn with_changes(mut self, mut changes: Vec<(Time, Rate)>) -> Source {
        if !matches!(self.arrivals, Arrivals::Trace(_)) {
            changes.sort_by_key(|change| core::cmp::Reverse(change.0));
            self.changes = changes;
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
            && at <= self.departures.next()
        {
            self.changes.pop();
            self.departures.change(&self.arrivals, at.max(self.start), rate);
        }
    }

    /// The next packet, or when that leaves.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Output {
        let next = self.departures.next();
        if next >= self.stop {
            return Output::Wait(None);
        }
        if next > now {
            return Output::Wait(Some(next));
        }
        let words = [self.sent, next.as_nanos(), 0, 0];
        let ip_size = self.departures.take().0 as u32;
        self.change();
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
    use std::sync::Arc;

    use lastmile::arrivals::Trace;

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
