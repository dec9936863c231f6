//! [`Meter`]: the truth beside an estimate, read from the queue.
//!
//! Truth is the spare rate at the probe's layer and size, over the window from the first to the last packet of
//! the probing stream, its own packets excluded. The window cannot come from an endpoint, whose clock errs, so
//! the meter sits at a link's queue, sees every arrival before the decision to drop it, and recognises the
//! probes by their bytes.
//!
//! **Half-open windows.** What counts against a stream is what arrived *between* its first and its last packet
//! in the order of the queue. For n packets of one size that arrive exactly at the link's rate, k others among
//! them, the spare rate is C (1 - k / (n - 1)): what WBest's fluid model yields on a perfect serialiser.

use std::collections::BTreeMap;

use lastmile::node::{Datagram, Flow, Payload};
use lastmile::time::Time;
use lastmile::units::{Bytes, Rate};

/// Reads stream number and index out of a probe's UDP payload; `None` for everything else.
pub type ReadProbe = fn(&[u8]) -> Option<(u32, u16)>;

/// What a meter watches.
///
/// ```
/// use lastmile::node::Flow;
/// let config = lastmile_sim::truth::MeterConfig::new(Flow(0), |_| None);
/// assert_eq!(config.limit, lastmile_sim::truth::DEFAULT_LIMIT);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MeterConfig {
    /// The measured flow. Its packets are never cross traffic, whether probes or requests.
    pub flow: Flow,
    /// Recognises its probes.
    pub read: ReadProbe,
    /// The most moments of arrival that are kept, 16 bytes each, and the most streams.
    pub limit: usize,
}

/// Moments of arrival that a meter keeps unless told otherwise: 16 MB of them.
pub const DEFAULT_LIMIT: usize = 1 << 20;

impl MeterConfig {
    /// A meter for the probes of `flow` with the [default limit](DEFAULT_LIMIT).
    pub fn new(flow: Flow, read: ReadProbe) -> MeterConfig {
        MeterConfig { flow, read, limit: DEFAULT_LIMIT }
    }
}

/// Why there is no truth.
///
/// ```
/// let error = lastmile_sim::truth::TruthError::UnknownStream(3);
/// assert_eq!(error.to_string(), "no packet of stream 3 reached the queue");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TruthError {
    /// The stream was never seen.
    #[error("no packet of stream {0} reached the queue")]
    UnknownStream(u32),
    /// The window has no length.
    #[error("the window from {from} to {to} has no length")]
    EmptyWindow {
        /// Where it begins.
        from: Time,
        /// Where it ends.
        to: Time,
    },
    /// More happened than the meter may keep.
    #[error("the meter's log is full ({limit} entries): raise its limit or shorten the run")]
    Full {
        /// The meter's limit.
        limit: usize,
    },
}

/// A probing stream as the queue saw it.
///
/// ```
/// # use lastmile::time::Time;
/// # let window = lastmile_sim::truth::StreamWindow { stream: 0, first: Time::ZERO, last: Time::from_nanos(5), packets: 2, highest_index: 1, cross: lastmile::units::Bytes(0) };
/// assert!(window.first < window.last);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamWindow {
    /// The stream's number.
    pub stream: u32,
    /// When its first packet reached the queue, in the engine's time.
    pub first: Time,
    /// When its last packet did.
    pub last: Time,
    /// Packets seen.
    pub packets: u32,
    /// The highest index seen.
    pub highest_index: u16,
    /// Wire bytes of other flows that reached the queue between the two.
    pub cross: Bytes,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    first: u64,
    last: u64,
    cross_at_first: u64,
    cross_at_last: u64,
    packets: u32,
    highest_index: u16,
}

/// The log of one link's queue for one measured flow.
///
/// Attached by [`Engine::attach_meter`](crate::engine::Engine::attach_meter), read back by
/// [`Engine::meter`](crate::engine::Engine::meter).
#[derive(Debug)]
pub struct Meter {
    config: MeterConfig,
    bits_per_second: u64,
    overhead: u32,
    /// Wire bytes of all other flows so far.
    cross: u64,
    /// (moment, `cross` after all arrivals of that moment).
    log: Vec<(u64, u64)>,
    log_full: bool,
    streams: BTreeMap<u32, Seen>,
    streams_full: bool,
}

impl Meter {
    pub(crate) fn new(config: MeterConfig, bits_per_second: u64, overhead: u32) -> Meter {
        Meter {
            config,
            bits_per_second,
            overhead,
            cross: 0,
            log: Vec::new(),
            log_full: false,
            streams: BTreeMap::new(),
            streams_full: false,
        }
    }

    pub(crate) fn arrival(&mut self, now: u64, datagram: &Datagram, wire: u32) {
        if datagram.flow == self.config.flow {
            if let Some((stream, index)) = udp_payload(&datagram.payload).and_then(self.config.read) {
                self.probe(now, stream, index);
            }
            return;
        }
        self.cross += u64::from(wire);
        let room = self.log.len() < self.config.limit;
        match self.log.last_mut() {
            Some(last) if last.0 == now => last.1 = self.cross,
            _ if room => self.log.push((now, self.cross)),
            _ => self.log_full = true,
        }
    }

    fn probe(&mut self, now: u64, stream: u32, index: u16) {
        let cross = self.cross;
        if let Some(seen) = self.streams.get_mut(&stream) {
            (seen.last, seen.cross_at_last) = (now, cross);
            seen.packets = seen.packets.saturating_add(1);
            seen.highest_index = seen.highest_index.max(index);
        } else if self.streams.len() >= self.config.limit {
            self.streams_full = true;
        } else {
            let seen = Seen {
                first: now,
                last: now,
                cross_at_first: cross,
                cross_at_last: cross,
                packets: 1,
                highest_index: index,
            };
            self.streams.insert(stream, seen);
        }
    }

    /// The measured flow.
    pub fn flow(&self) -> Flow {
        self.config.flow
    }

    /// The streams seen, in the order of their numbers.
    pub fn streams(&self) -> impl Iterator<Item = StreamWindow> + '_ {
        self.streams.iter().map(|(&stream, seen)| seen.window(stream))
    }

    /// One stream as the queue saw it.
    pub fn stream(&self, stream: u32) -> Result<StreamWindow, TruthError> {
        match self.streams.get(&stream) {
            Some(seen) => Ok(seen.window(stream)),
            None if self.streams_full => Err(TruthError::Full { limit: self.config.limit }),
            None => Err(TruthError::UnknownStream(stream)),
        }
    }

    /// Forgets the streams, so that another session may use the same numbers.
    pub fn forget_streams(&mut self) {
        self.streams.clear();
        self.streams_full = false;
    }

    /// What the link carries of IP packets of that size.
    pub fn capacity(&self, ip_size: Bytes) -> Rate {
        Rate::ip(self.bits_per_second).scaled(self.ip_share(ip_size))
    }

    /// The spare rate over the window of a stream, for IP packets of that size; zero where the others alone
    /// asked for more than the link has.
    pub fn spare(&self, stream: u32, ip_size: Bytes) -> Result<Rate, TruthError> {
        let window = self.stream(stream)?;
        self.spare_of(window.first, window.last, window.cross.0, ip_size)
    }

    /// The spare rate over any window of the engine's time: arrivals at `from` count, those at `to` do not.
    /// With the measured part of a run as its window this is the long-run mean.
    pub fn spare_between(&self, from: Time, to: Time, ip_size: Bytes) -> Result<Rate, TruthError> {
        let logged_until = self.log.last().map_or(0, |last| last.0);
        if self.log_full && to.as_nanos() > logged_until {
            return Err(TruthError::Full { limit: self.config.limit });
        }
        let cross = self.cross_before(to).saturating_sub(self.cross_before(from));
        self.spare_of(from, to, cross, ip_size)
    }

    fn cross_before(&self, at: Time) -> u64 {
        let later = self.log.partition_point(|&(moment, _)| moment < at.as_nanos());
        later.checked_sub(1).and_then(|last| self.log.get(last)).map_or(0, |&(_, cross)| cross)
    }

    fn spare_of(&self, from: Time, to: Time, cross: u64, ip_size: Bytes) -> Result<Rate, TruthError> {
        if to <= from {
            return Err(TruthError::EmptyWindow { from, to });
        }
        let taken = cross as f64 * 8.0 / (to - from).as_secs_f64();
        let spare = self.bits_per_second as f64 - taken;
        Ok(Rate::ip(1).scaled(spare * self.ip_share(ip_size)))
    }

    fn ip_share(&self, ip_size: Bytes) -> f64 {
        let size = ip_size.0.max(1) as f64;
        size / (size + f64::from(self.overhead))
    }
}

impl Seen {
    fn window(&self, stream: u32) -> StreamWindow {
        StreamWindow {
            stream,
            first: Time::from_nanos(self.first),
            last: Time::from_nanos(self.last),
            packets: self.packets,
            highest_index: self.highest_index,
            cross: Bytes(self.cross_at_last - self.cross_at_first),
        }
    }
}

/// The UDP payload of a packet, also where a foreign program sent it as a whole IP packet; IPv6 extension headers are
/// not looked behind.
///
/// ```
/// use lastmile::node::Payload;
/// assert_eq!(lastmile_sim::truth::udp_payload(&Payload::Udp(vec![7])), Some(&[7][..]));
/// ```
pub fn udp_payload(payload: &Payload) -> Option<&[u8]> {
    const UDP: u8 = 17;
    match payload {
        Payload::Udp(bytes) => Some(bytes),
        Payload::Ip(packet) => {
            let (protocol, header) = match packet.first()? >> 4 {
                4 => (*packet.get(9)?, usize::from(packet[0] & 0x0f) * 4),
                6 => (*packet.get(6)?, 40),
                _ => return None,
            };
            (protocol == UDP).then(|| packet.get(header + 8..)).flatten()
        }
        Payload::Model(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<(u32, u16)> {
        Some((u32::from(*bytes.first()?), u16::from(*bytes.get(1)?)))
    }

    fn datagram(flow: u32, payload: Payload) -> Datagram {
        let any = "10.0.0.1:1".parse().unwrap();
        Datagram { flow: Flow(flow), payload, ..Datagram::udp(any, any, vec![]) }
    }

    #[test]
    fn a_stream_ends_with_its_last_packet_in_the_order_of_the_queue() {
        let mut meter = Meter::new(MeterConfig::new(Flow(1), read), 8_000_000, 0);
        let cross = datagram(2, Payload::Udp(vec![9; 100]));
        let probe = |index| datagram(1, Payload::Udp(vec![4, index]));
        meter.arrival(1_000, &cross, 128); // before the first, at the same moment
        meter.arrival(1_000, &probe(0), 30);
        meter.arrival(1_000, &cross, 100); // after it
        meter.arrival(500_000, &datagram(1, Payload::Udp(vec![])), 900); // the flow's own request
        meter.arrival(1_001_000, &probe(1), 30);
        meter.arrival(1_001_000, &cross, 128);
        let window = meter.stream(4).unwrap();
        assert_eq!((window.packets, window.highest_index, window.cross), (2, 1, Bytes(100)));
        // 1 ms carries 1000 bytes, 100 of them taken.
        assert_eq!(meter.spare(4, Bytes(30)).unwrap(), Rate::ip(7_200_000));
        assert_eq!(meter.spare(5, Bytes(30)), Err(TruthError::UnknownStream(5)));
        let (from, to) = (Time::from_nanos(1_000), Time::from_nanos(1_001_000));
        assert_eq!(meter.spare_between(from, to, Bytes(30)).unwrap(), Rate::ip(8_000_000 - 228 * 8_000));
        assert!(matches!(meter.spare_between(to, to, Bytes(30)), Err(TruthError::EmptyWindow { .. })));
    }

    #[test]
    fn rates_are_those_of_ip_packets_of_the_probes_size() {
        let mut meter = Meter::new(MeterConfig::new(Flow(1), read), 10_000_000, 14);
        assert_eq!(meter.capacity(Bytes(1486)), Rate::ip(9_906_667));
        meter.arrival(0, &datagram(2, Payload::Udp(vec![])), 625_000);
        let second = Time::from_nanos(1_000_000_000);
        // Half the wire is taken: half of what IP packets of 986 B could have.
        assert_eq!(meter.spare_between(Time::ZERO, second, Bytes(986)).unwrap(), Rate::ip(4_930_000));
    }

    #[test]
    fn a_full_log_says_so_and_leaves_streams_right() {
        let config = MeterConfig { limit: 2, ..MeterConfig::new(Flow(1), read) };
        let mut meter = Meter::new(config, 8_000_000, 0);
        for at in 0..5 {
            meter.arrival(at, &datagram(1, Payload::Udp(vec![7, at as u8])), 50);
            meter.arrival(at, &datagram(2, Payload::Udp(vec![])), 50);
        }
        assert_eq!(meter.stream(7).unwrap().cross, Bytes(200));
        let full = meter.spare_between(Time::ZERO, Time::from_nanos(5), Bytes(50));
        assert_eq!(full, Err(TruthError::Full { limit: 2 }));
        assert!(meter.spare_between(Time::ZERO, Time::from_nanos(1), Bytes(50)).is_ok());
    }

    #[test]
    fn probes_are_found_in_raw_ip_packets() {
        let mut v4 = vec![0x46, 0, 0, 0, 0, 0, 0, 0, 64, 17];
        v4.resize(24 + 8, 0); // one word of options
        v4.extend([3, 5]);
        assert_eq!(udp_payload(&Payload::Ip(v4)).and_then(read), Some((3, 5)));
        let mut v6 = vec![0x60, 0, 0, 0, 0, 0, 17, 64];
        v6.resize(40 + 8, 0);
        v6.extend([3, 6]);
        assert_eq!(udp_payload(&Payload::Ip(v6.clone())).and_then(read), Some((3, 6)));
        v6[6] = 6;
        assert_eq!(udp_payload(&Payload::Ip(v6)), None);
        for short in [&[][..], &[0x45], &[0x45; 12], &[0x60; 7], &[0xff; 60]] {
            assert_eq!(udp_payload(&Payload::Ip(short.to_vec())).and_then(read), None);
        }
    }
}
