//! [`Meter`]: the truth beside an estimate, read from a link's queue, since an endpoint's clock errs: the spare rate between the
//! first and the last packet of a probing stream in the order of the queue, its own packets excluded. For n packets of one size
//! that arrive at the link's rate, k others among them, it is C (1 - k / (n - 1)), as in WBest's fluid model.

use std::collections::BTreeMap;
use std::sync::Arc;

use lastmile::node::{Datagram, Flow, Payload};
use lastmile::time::Time;
use lastmile::units::{Bytes, Rate};

use super::queue::Bucket;

mod profile;

pub(crate) use profile::Profile;

/// Packets that a truth is about: IP packets of a size, in any number, or bursts of so many bytes. A capacity is of bursts that meet
/// a shaper's full bucket, a spare rate of bursts that meet what others have left in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// Of one, at the IP layer.
    pub ip_size: Bytes,
    /// Of a burst, at the IP layer.
    pub burst: Option<Bytes>,
}

impl From<Bytes> for Packets {
    fn from(ip_size: Bytes) -> Packets {
        Packets { ip_size, burst: None }
    }
}

/// Reads stream number and index out of a probe's UDP payload; `None` for everything else.
pub type ReadProbe = fn(&[u8]) -> Option<(u32, u16)>;

/// Configuration of a meter.
#[derive(Clone, Debug)]
pub struct MeterConfig {
    /// The measured flow. Its packets, probes and requests alike, are never cross traffic.
    pub flow: Flow,
    /// Recognises its probes.
    pub read: ReadProbe,
    /// Flows of other measurements: cross traffic to this one, and left out of what is spare without any of them.
    pub measuring: Arc<[Flow]>,
    /// The most moments of arrival that are kept, 16 bytes each, and the most streams.
    pub limit: usize,
}

/// Moments of arrival that a meter keeps unless told otherwise: 16 MB of them.
pub const DEFAULT_LIMIT: usize = 1 << 20;

impl MeterConfig {
    /// A meter for the probes of `flow` with the [default limit](DEFAULT_LIMIT).
    pub fn new(flow: Flow, read: ReadProbe) -> MeterConfig {
        MeterConfig { flow, read, measuring: Arc::new([]), limit: DEFAULT_LIMIT }
    }
}

/// Why there is no truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TruthError {
    /// The stream was never seen.
    #[error("no packet of stream {0} reached the queue")]
    UnknownStream(u32),
    /// The window between these has no length.
    #[error("the window from {0} to {1} has no length")]
    EmptyWindow(Time, Time),
    /// Nothing limits the link between these.
    #[error("the link has no rate between {0} and {1}: nothing is spare where nothing is scarce")]
    Unlimited(Time, Time),
    /// More happened than the meter may keep.
    #[error("the meter's log is full ({0} entries): raise its limit or shorten the run")]
    Full(usize),
}

/// A probing stream as the queue saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamWindow {
    /// When its first packet reached the queue, in the engine's time.
    pub first: Time,
    /// When its last packet did.
    pub last: Time,
    /// Wire bytes of other flows that reached the queue between the two.
    pub cross: Bytes,
}

/// The log of one link's queue for one measured flow.
///
/// Attached by [`Engine::attach_meter`](crate::network::engine::Engine::attach_meter), read back by
/// [`Engine::meter`](crate::network::engine::Engine::meter).
#[derive(Debug)]
pub struct Meter {
    config: MeterConfig,
    profile: Profile,
    overhead: u32,
    /// The link's policer as it would be if the measured flow sent nothing.
    policer: Option<Bucket>,
    /// Wire bytes of all other flows so far; behind a policer, of those that it would have let pass.
    cross: u64,
    /// (moment, `cross` after all arrivals of that moment).
    log: Vec<(u64, u64)>,
    /// The same of other measurements alone, whose bytes are in `log` too.
    measuring: Vec<(u64, u64)>,
    log_full: bool,
    /// Each with the bytes of other flows before it.
    streams: BTreeMap<u32, (StreamWindow, u64)>,
    streams_full: bool,
}

impl Meter {
    pub(crate) fn new(
        config: MeterConfig,
        profile: Profile,
        overhead: u32,
        policer: Option<Bucket>,
    ) -> Meter {
        Meter {
            config,
            profile,
            overhead,
            policer,
            cross: 0,
            log: Vec::new(),
            measuring: Vec::new(),
            log_full: false,
            streams: BTreeMap::new(),
            streams_full: false,
        }
    }

    pub(crate) fn arrival(&mut self, now: u64, datagram: &Datagram, wire: u32) {
        if datagram.flow == self.config.flow {
            if let Some((stream, _)) = udp_payload(&datagram.payload).and_then(self.config.read) {
                self.probe(now, stream);
            }
            return;
        }
        if self.policer.as_mut().is_some_and(|policer| !policer.admits(now, wire)) {
            return;
        }
        self.cross += u64::from(wire);
        let room = self.log.len() + self.measuring.len() < self.config.limit;
        let mut full = false;
        let mut note = |log: &mut Vec<(u64, u64)>, bytes| match log.last_mut() {
            Some(last) if last.0 == now => last.1 = bytes,
            _ if room => log.push((now, bytes)),
            _ => full = true,
        };
        note(&mut self.log, self.cross);
        if self.config.measuring.contains(&datagram.flow) {
            let before = self.measuring.last().map_or(0, |last| last.1);
            note(&mut self.measuring, before + u64::from(wire));
        }
        self.log_full |= full;
    }

    fn probe(&mut self, now: u64, stream: u32) {
        let (now, cross, full) = (Time::from_nanos(now), self.cross, self.streams.len() >= self.config.limit);
        if let Some((window, before)) = self.streams.get_mut(&stream) {
            (window.last, window.cross) = (now, Bytes(cross - *before));
        } else if full {
            self.streams_full = true;
        } else {
            let window = StreamWindow { first: now, last: now, cross: Bytes::ZERO };
            self.streams.insert(stream, (window, cross));
        }
    }

    /// The measured flow.
    pub fn flow(&self) -> Flow {
        self.config.flow
    }

    /// One stream as the queue saw it.
    pub fn stream(&self, stream: u32) -> Result<StreamWindow, TruthError> {
        match self.streams.get(&stream) {
            Some(&(window, _)) => Ok(window),
            None if self.streams_full => Err(TruthError::Full(self.config.limit)),
            None => Err(TruthError::UnknownStream(stream)),
        }
    }

    /// Capacity of the link for such packets in the window of a stream.
    ///
    /// # Errors
    /// If the stream was not seen, or nothing limits the link.
    pub fn capacity(&self, stream: u32, of: impl Into<Packets>) -> Result<Rate, TruthError> {
        let window = self.stream(stream)?;
        self.capacity_between(window.first, window.last, of)
    }

    /// Capacity of the link for such packets between two times; if they are the same, its
    /// rate at that time.
    ///
    /// # Errors
    /// If nothing limits the link.
    pub fn capacity_between(&self, from: Time, to: Time, of: impl Into<Packets>) -> Result<Rate, TruthError> {
        let of = of.into();
        Ok(Rate::ip(1).scaled(self.rate_between(from, to, of, 0.0)? * self.ip_share(of.ip_size)))
    }

    /// For bursts that meet a bucket which lacks so many bytes.
    fn rate_between(&self, from: Time, to: Time, of: Packets, lacked: f64) -> Result<f64, TruthError> {
        let (begin, end) = (from.as_nanos(), to.as_nanos());
        let rate = match of.burst {
            None => self.profile.mean(begin, end),
            Some(burst) => {
                let packet = of.ip_size.0.max(1) + u64::from(self.overhead);
                let packets = (burst.0 / of.ip_size.0.max(1)).max(2);
                self.profile.mean_of_bursts(begin, end, packet, packet.saturating_mul(packets), lacked)
            }
        };
        rate.ok_or(TruthError::Unlimited(from, to))
    }

    /// The spare rate over the window of a stream, for such packets; zero where the others alone
    /// asked for more than the link has.
    pub fn spare(&self, stream: u32, of: impl Into<Packets>) -> Result<Rate, TruthError> {
        let window = self.stream(stream)?;
        let of = of.into();
        let lacked = self.lacked(of, window.first, None)?;
        self.spare_of(window.first, window.last, window.cross.0, of, lacked)
    }

    /// The spare rate over any window of the engine's time: arrivals at `from` count, those at `to` do not.
    /// With the measured part of a run as its window this is the long-run mean.
    pub fn spare_between(&self, from: Time, to: Time, of: impl Into<Packets>) -> Result<Rate, TruthError> {
        self.spare_but(0, from, to, of.into())
    }

    /// The same if no measurement sent anything then.
    pub fn spare_unmeasured(&self, from: Time, to: Time, of: impl Into<Packets>) -> Result<Rate, TruthError> {
        let measuring = before(&self.measuring, to).saturating_sub(before(&self.measuring, from));
        self.spare_but(measuring, from, to, of.into())
    }

    fn spare_but(&self, less: u64, from: Time, to: Time, of: Packets) -> Result<Rate, TruthError> {
        self.logged(to)?;
        let cross = before(&self.log, to).saturating_sub(before(&self.log, from)).saturating_sub(less);
        let lacked = self.lacked(of, from, Some(to))?;
        self.spare_of(from, to, cross, of, lacked)
    }

    /// Refuses what needs to know of others' arrivals later than those that were kept.
    fn logged(&self, until: Time) -> Result<(), TruthError> {
        let last = self.log.last().map_or(0, |last| last.0);
        let kept = !self.log_full || until.as_nanos() <= last;
        kept.then_some(()).ok_or(TruthError::Full(self.config.limit))
    }

    /// Bytes that the shaper's bucket lacks for bursts that come at `from`, or from then up to `to`.
    fn lacked(&self, of: Packets, from: Time, to: Option<Time>) -> Result<f64, TruthError> {
        if of.burst.is_none() || !self.profile.is_shaped() {
            return Ok(0.0);
        }
        self.logged(from)?;
        Ok(self.profile.lacked(&self.log, from.as_nanos(), to.map(Time::as_nanos)))
    }

    fn spare_of(
        &self,
        from: Time,
        to: Time,
        cross: u64,
        of: Packets,
        lacked: f64,
    ) -> Result<Rate, TruthError> {
        if to <= from {
            return Err(TruthError::EmptyWindow(from, to));
        }
        let taken = cross as f64 * 8.0 / (to - from).as_secs_f64();
        let spare = self.rate_between(from, to, of, lacked)? - taken;
        Ok(Rate::ip(1).scaled(spare * self.ip_share(of.ip_size)))
    }

    fn ip_share(&self, ip_size: Bytes) -> f64 {
        let size = ip_size.0.max(1) as f64;
        size / (size + f64::from(self.overhead))
    }
}

/// The bytes of a log before that time.
fn before(log: &[(u64, u64)], at: Time) -> u64 {
    let later = log.partition_point(|&(moment, _)| moment < at.as_nanos());
    later.checked_sub(1).and_then(|last| log.get(last)).map_or(0, |&(_, bytes)| bytes)
}

/// The UDP payload of a packet, also where a foreign program sent it as a whole IP packet; IPv6 extension headers are
/// not looked behind.
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
mod tests;
