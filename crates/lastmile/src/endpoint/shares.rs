//! The share of one source in places that all share: an endpoint that serves anybody is not for the first comer alone.

use core::net::IpAddr;

use crate::time::Span;

/// The least time between two notices of sources that were turned away.
pub(super) const TELL: Span = Span::from_secs(10);

/// One source: an IPv4 address or an IPv6 /64, since the owner of one address of a /64 has all.
pub(super) fn source_prefix(source: IpAddr) -> u64 {
    match source.to_canonical() {
        IpAddr::V4(v4) => u64::from(u32::from(v4)),
        IpAddr::V6(v6) => (u128::from(v6) >> 64) as u64,
    }
}

/// True if a source that holds `held` may have `more`, with `used` of `limit` taken: it never holds more than is left to all
/// others. So one source gets half at most, and a latecomer finds room even if many want all
/// (the dynamic thresholds of Choudhury and Hahne, 1998).
pub(super) fn fair(limit: usize, used: usize, held: usize, more: usize) -> bool {
    held + more <= limit.saturating_sub(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_source_gets_half_and_there_is_room_for_another() {
        let most = (0..100).take_while(|held| fair(64, *held, *held, 1)).count();
        assert_eq!(most, 32);
        assert!(fair(64, 32, 0, 1) && fair(64, 63, 0, 1) && !fair(64, 64, 0, 1));
    }

    #[test]
    fn a_source_is_an_address_or_a_network_of_version_6() {
        let prefix = |text: &str| source_prefix(text.parse().unwrap());
        assert_eq!(prefix("::ffff:192.0.2.1"), prefix("192.0.2.1"));
        assert_eq!(prefix("2001:db8::1"), prefix("2001:db8::2"));
        assert_ne!(prefix("2001:db8::1"), prefix("2001:db8:0:1::1"));
    }
}
