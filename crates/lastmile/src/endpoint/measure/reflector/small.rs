//! Packets of TWAMP Light that are smaller than the base packet of STAMP.
//!
//! RFC 8762, 4.6 has a reflector answer them with a whole base packet of 44 octets. This reply is longer than its request, and
//! goes to an address that anybody may have written, so it is given only where the configuration asks for it. A reply of TWAMP
//! (RFC 5357, 4.2.1) ends with the TTL, at 41 octets: a packet of so many, which senders that pad by the 27 octets of RFC 5357,
//! 4.1.2 send, is answered in its own size.

use core::net::SocketAddr;

use super::{Reflector, TELL};
use crate::endpoint::measure::event::Decision;
use crate::endpoint::shares::source_prefix;
use crate::node::Output;
use crate::time::Time;
use crate::wire::Mode;

/// Octets of the smallest packet that a sender of TWAMP makes: sequence number, timestamp, error estimate.
const LEAST: usize = 14;
/// Octets of a reply of TWAMP.
const WHOLE_REPLY: usize = 41;
/// Sources that are told of at once; of more one is told of every [`TELL`], so that forged ones fill neither memory nor logs,
/// and silence nobody for longer.
const TOLD: usize = 64;

/// Gives a small packet of TWAMP Light the length of a base packet, with zeros.
pub(super) fn complete(bytes: &mut Vec<u8>) {
    if (LEAST..Mode::Open.base_len()).contains(&bytes.len()) {
        bytes.resize(Mode::Open.base_len(), 0);
    }
}

impl Reflector {
    /// UDP payload of a reply to a packet that came with so many octets; `None` where it gets none, which is told once for
    /// each source.
    pub(super) fn reply_len(
        &mut self,
        now: Time,
        peer: SocketAddr,
        mode: Mode,
        octets: usize,
    ) -> Option<usize> {
        let base = mode.base_len();
        match octets {
            _ if octets >= WHOLE_REPLY => Some(octets),
            _ if self.config.answer_small => Some(base),
            _ => {
                self.counters.too_small += 1;
                let source = source_prefix(peer.ip());
                let (told, next) = &mut self.small_told;
                if !told.contains(&source) && (told.len() < TOLD || now >= *next) {
                    if told.len() == TOLD {
                        told.pop_front();
                    }
                    told.push_back(source);
                    *next = now + TELL;
                    let octets = u16::try_from(octets).unwrap_or(u16::MAX);
                    self.out.push_back(Output::Event(Decision::TooSmall { peer, octets }));
                }
                None
            }
        }
    }
}
