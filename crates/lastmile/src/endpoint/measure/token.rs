//! The token by which a peer proves its address: the reflector hands it out, and believes who returns it.
//!
//! It is when it was made and a keyed hash of that and of the peer's address and port, so that making and checking it
//! needs no memory. Whoever only heard it gains nothing by it later: it begins a session within [`LIFE`] of being made
//! and never where the lease is shorter than its age, a session ends no sooner than its lease unless its peer says goodbye,
//! after which no token of that source begins one that is older than the one it had, and a session takes no token that is older
//! than its own. The secret differs at each start of the reflector.

use core::net::SocketAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::time::{Span, Time};
use crate::wire::private::Token;

/// A token begins a session for so long; less where the lease is shorter.
pub(super) const LIFE: Span = Span::from_secs(20);

/// A token for `peer`, made at `now`.
pub(super) fn issue(secret: &[u8; 32], peer: SocketAddr, now: Time) -> Token {
    let mut token = [0; 16];
    token[..8].copy_from_slice(&now.as_nanos().to_be_bytes());
    token[8..].copy_from_slice(&mac(secret, peer, now).finalize().into_bytes()[..8]);
    token
}

/// When `token` was made, if it was made with this secret and for `peer`.
pub(super) fn issued(secret: &[u8; 32], peer: SocketAddr, token: &Token) -> Option<Time> {
    let at = Time::from_nanos(u64::from_be_bytes(*token.first_chunk()?));
    mac(secret, peer, at).verify_truncated_left(&token[8..]).ok().map(|()| at)
}

fn mac(secret: &[u8; 32], peer: SocketAddr, at: Time) -> Hmac<Sha256> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(format!("token {peer} {}", at.as_nanos()).as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_one_address_one_port_one_moment_and_one_start() {
        let (peer, now) = ("192.0.2.1:5".parse().unwrap(), Time::from_nanos(1_000_000_007));
        let token = issue(&[1; 32], peer, now);
        assert_eq!(issued(&[1; 32], peer, &token), Some(now));
        assert_eq!(issued(&[2; 32], peer, &token), None);
        for other in ["192.0.2.1:6", "192.0.2.2:5", "[::ffff:192.0.2.1]:5"] {
            assert_eq!(issued(&[1; 32], other.parse().unwrap(), &token), None);
        }
        for bit in 0..128 {
            let mut forged = token;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(issued(&[1; 32], peer, &forged), None, "bit {bit}");
        }
    }
}
