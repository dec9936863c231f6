//! SRTP and SRTCP (RFC 3711) at the sockets, with one master key for all streams of both directions (section 9.1): each is told from the
//! others by its SSRC, which is random.
//!
//! State is kept of sources that were authenticated, and of no others. A source whose media joins late, since this end was started anew,
//! or behind a gap, has its rollover counter from the packets that its sender report counts (section 3.3.1).

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastmile::wire::sdes::{MasterKey, Suite};
use lastmile::wire::{RTP_HEADER_LEN, Rtcp, RtpHeader, is_rtcp};
use rtc_shared::error::Error;
use rtc_srtp::context::Context;
use rtc_srtp::crypto::default_provider;
use rtc_srtp::option::{srtcp_replay_protection, srtp_replay_protection};
use rtc_srtp::protection_profile::ProtectionProfile;

use crate::driver::Guard;

/// Packets by which one may come late (section 3.3.2: 64 at least).
const WINDOW: usize = 1_024;
/// Sources of which state is kept; those heard last stay.
const MAX_SOURCES: usize = 256;
/// Half of all numbers: the library takes those that are further ahead for older ones.
const HALF: u64 = 32_768;
/// Numbers between two steps of a rollover counter: less than that.
const STRIDE: u64 = 30_000;
/// Largest rollover counter with which a source is joined: an hour at 4,600 packets a second.
const MAX_ROLLOVER: u64 = 255;
/// Walks to a rollover counter that a sender report allows: forged packets would cost too much otherwise.
const MAX_WALKS: u8 = 16;

/// Packets that were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    /// Packets whose tag is not that of the key: plain ones, those of another key, and those that were changed on the way.
    pub unauthentic: u64,
    /// Packets whose number had come before, or came too late to tell.
    pub replayed: u64,
}

/// Counts of packets that were dropped, to be looked at while the driver runs.
#[derive(Clone, Debug, Default)]
pub struct SharedRejected(Arc<Mutex<Rejected>>);

impl SharedRejected {
    /// The counts so far.
    pub fn get(&self) -> Rejected {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Rejected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key that the cipher refuses.
#[derive(Debug, thiserror::Error)]
#[error("SRTP cannot be set up: {0}")]
pub struct SrtpError(String);

impl From<Error> for SrtpError {
    fn from(error: Error) -> SrtpError {
        SrtpError(error.to_string())
    }
}

/// A source that was authenticated, with the state of what was: forged packets leave no trace.
#[derive(Default)]
struct Source {
    ssrc: u32,
    rtp: Option<Context>,
    rtcp: Option<Context>,
    /// Rollover counter and number of its newest packet.
    newest: u64,
    /// Media packets that its last sender report counts, and by how much its first known packet was ahead of that: numbers begin anywhere.
    counted: u32,
    ahead: u64,
    /// Walks since that report.
    walks: u8,
}

/// Why a packet is dropped.
enum Refusal {
    Unauthentic,
    Replayed,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        match error {
            Error::SrtpSsrcDuplicated(..) | Error::SrtcpSsrcDuplicated(..) => Refusal::Replayed,
            _ => Refusal::Unauthentic,
        }
    }
}

fn context(key: &MasterKey) -> Result<Context, Error> {
    let profile = match key.suite() {
        Suite::AesCm128HmacSha1_80 => ProtectionProfile::Aes128CmHmacSha1_80,
        Suite::AeadAes128Gcm => ProtectionProfile::AeadAes128Gcm,
    };
    let provider = default_provider().map_err(|error| Error::Other(error.to_string()))?;
    let (master, salt) = key.parts();
    let windows = (srtp_replay_protection(WINDOW), srtcp_replay_protection(WINDOW));
    Context::new(master, salt, profile, Some(windows.0), Some(windows.1), provider.crypto())
}

/// State of a source whose next packet has that rollover counter and number. The library has no way to set the counter: it is led
/// there by empty packets of the same source, which go nowhere.
fn context_before(key: &MasterKey, ssrc: u32, rollover: u64, number: u16) -> Result<Context, Error> {
    let mut opening = context(key)?;
    let Some(last) = (rollover << 16 | u64::from(number)).checked_sub(1).filter(|_| rollover > 0) else {
        return Ok(opening);
    };
    let mut sealing = context(key)?;
    for index in (0..last).step_by(STRIDE as usize).chain([last]) {
        let mut packet = Vec::with_capacity(RTP_HEADER_LEN);
        let header = RtpHeader { sequence: index as u16, ssrc, ..RtpHeader::default() };
        header.write(&mut packet);
        opening.decrypt_rtp(&sealing.encrypt_rtp(&packet)?)?;
    }
    Ok(opening)
}

/// Protection of a driver's packets.
pub struct Srtp {
    key: MasterKey,
    /// State of this end's own streams.
    own: Context,
    /// Other ends' streams, the one heard last at the end.
    sources: Vec<Source>,
    rejected: SharedRejected,
    on_first: Option<Box<dyn FnOnce(SocketAddr) + Send>>,
}

impl Srtp {
    /// Protection with that key; `on_first` is told where the first packet without an authentic tag came from.
    ///
    /// # Errors
    /// The cipher cannot be had.
    pub fn new(
        key: MasterKey,
        on_first: impl FnOnce(SocketAddr) + Send + 'static,
    ) -> Result<Srtp, SrtpError> {
        let own = context(&key)?;
        let (sources, rejected) = (Vec::new(), SharedRejected::default());
        Ok(Srtp { key, own, sources, rejected, on_first: Some(Box::new(on_first)) })
    }

    /// Counts of packets that were dropped.
    pub fn rejected(&self) -> SharedRejected {
        self.rejected.clone()
    }

    /// True if RTCP says that it is encrypted. Without that the cipher would give it out as it came, unauthenticated.
    fn is_encrypted(&self, bytes: &[u8]) -> bool {
        // Section 3.4, and RFC 7714, section 9.3: the word stands before the tag, or behind it.
        let behind = match self.key.suite() {
            Suite::AesCm128HmacSha1_80 => 14,
            Suite::AeadAes128Gcm => 4,
        };
        bytes.len().checked_sub(behind).is_some_and(|at| bytes[at] & 0x80 != 0)
    }

    fn opened(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
        let rtcp = is_rtcp(bytes);
        let at = if rtcp { 4 } else { 8 };
        let ssrc = bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Refusal::Unauthentic)?;
        let ssrc = u32::from_be_bytes(*ssrc);
        if rtcp && !self.is_encrypted(bytes) {
            return Err(Refusal::Unauthentic);
        }
        let place = self.sources.iter().position(|source| source.ssrc == ssrc);
        let source = place.map(|place| self.sources.remove(place));
        let mut source = source.unwrap_or_else(|| Source { ssrc, ..Source::default() });
        let opened =
            if rtcp { source.open_rtcp(bytes, &self.key) } else { source.open_rtp(bytes, &self.key) };
        if place.is_some() || opened.is_ok() {
            if self.sources.len() >= MAX_SOURCES {
                self.sources.remove(0);
            }
            self.sources.push(source);
        }
        if let (true, Ok(opened)) = (rtcp, &opened) {
            self.count(opened);
        }
        opened
    }

    /// Takes in the packets that sender reports count, of all sources that they are of.
    fn count(&mut self, opened: &[u8]) {
        for packet in Rtcp::all(opened).map_while(Result::ok) {
            let Rtcp::Sender { ssrc, info, .. } = packet else { continue };
            if let Some(source) = self.sources.iter_mut().find(|source| source.ssrc == ssrc) {
                (source.counted, source.walks) = (info.packets, 0);
            } else if self.sources.len() < MAX_SOURCES {
                // It is authenticated by the one that reports for it.
                self.sources.push(Source { ssrc, counted: info.packets, ..Source::default() });
            }
        }
    }
}

impl Source {
    fn open_rtcp(&mut self, bytes: &[u8], key: &MasterKey) -> Result<Vec<u8>, Refusal> {
        if let Some(state) = &mut self.rtcp {
            return Ok(state.decrypt_rtcp(bytes)?.to_vec());
        }
        let mut state = context(key)?;
        let opened = state.decrypt_rtcp(bytes)?.to_vec();
        self.rtcp = Some(state);
        Ok(opened)
    }

    fn open_rtp(&mut self, bytes: &[u8], key: &MasterKey) -> Result<Vec<u8>, Refusal> {
        let number = u16::from_be_bytes([bytes[2], bytes[3]]);
        let (mut least, mut refusal) = (0, Refusal::Unauthentic);
        if let Some(state) = &mut self.rtp {
            match state.decrypt_rtp(bytes) {
                Ok(opened) => {
                    let by = number.wrapping_sub(self.newest as u16) as i16;
                    self.newest = self.newest.max(self.newest.saturating_add_signed(by.into()));
                    return Ok(opened.to_vec());
                }
                Err(error) => refusal = error.into(),
            }
            // Another counter is looked for behind a gap alone, and ahead of all that came: an old packet takes nothing back.
            if u64::from(self.counted) + self.ahead < self.newest + STRIDE {
                return Err(refusal);
            }
            least = self.newest + HALF;
        }
        let counted = u64::from(self.counted) >> 16;
        // The report was written some packets before or after this one.
        let mut near = vec![0, counted.saturating_sub(1), counted, counted + 1];
        near.dedup();
        for rollover in near.into_iter().filter(|rollover| *rollover <= MAX_ROLLOVER) {
            let index = rollover << 16 | u64::from(number);
            if index < least || rollover > 1 && self.walks >= MAX_WALKS {
                continue;
            }
            self.walks += u8::from(rollover > 1);
            let mut state = context_before(key, self.ssrc, rollover, number)?;
            if let Ok(opened) = state.decrypt_rtp(bytes) {
                if self.rtp.replace(state).is_none() {
                    self.ahead = index.saturating_sub(self.counted.into());
                }
                self.newest = index;
                return Ok(opened.to_vec());
            }
        }
        Err(refusal)
    }
}

impl Guard for Srtp {
    fn seal(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let sealed =
            if is_rtcp(payload) { self.own.encrypt_rtcp(payload) } else { self.own.encrypt_rtp(payload) };
        sealed.ok().map(|sealed| sealed.to_vec())
    }

    fn open(&mut self, from: SocketAddr, payload: &[u8]) -> Option<Vec<u8>> {
        let refusal = match self.opened(payload) {
            Ok(opened) => return Some(opened),
            Err(refusal) => refusal,
        };
        let mut rejected = self.rejected.lock();
        match refusal {
            Refusal::Replayed => rejected.replayed += 1,
            Refusal::Unauthentic => {
                rejected.unauthentic += 1;
                self.on_first.take().into_iter().for_each(|on_first| on_first(from));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
