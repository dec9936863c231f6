//! An answering endpoint gives a peer a token; a peer that returns it has proved its address.
//!
//! A token holds its time of issue and a keyed hash of that time and of the peer's address and port, so that issuing and checking
//! need no memory. The secret differs at each start of the reflector. Four rules make an overheard token useless later:
//!
//! - A token begins a session within [`LIFE`] of its issue, and only while it is younger than the lease.
//! - A session ends no sooner than its lease, unless its peer says goodbye.
//! - After a goodbye the source's next session needs a younger token.
//! - A session takes younger tokens alone.

use core::net::SocketAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::time::{Span, Time};
use crate::wire::private::Token;

/// Longest age at which a token begins a session; a shorter lease shortens it.
pub(super) const LIFE: Span = Span::from_secs(20);

/// A token for `peer`, issued at `now`.
pub(super) fn issue(secret: &[u8; 32], peer: SocketAddr, now: Time) -> Token {
    let mut token = [0; 16];
    token[..8].copy_from_slice(&now.as_nanos().to_be_bytes());
    token[8..].copy_from_slice(&mac(secret, peer, now).finalize().into_bytes()[..8]);
    token
}

/// The token's time of issue, if it was issued with this secret and for `peer`.
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
