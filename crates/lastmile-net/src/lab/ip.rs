//! Just enough of IP to route raw packets from a TUN device, and to mark them.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IANA protocol number of UDP.
pub const UDP: u8 = 17;
/// IANA protocol number of TCP.
pub const TCP: u8 = 6;

/// The header fields of a raw IP packet that the lab needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPacket {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Transport protocol (IANA number), behind IPv6 extension headers.
    pub protocol: u8,
    /// Source and destination port of UDP and TCP; `None` for others and for all but the first fragment.
    pub ports: Option<(u16, u16)>,
    /// ECN code point, 0 to 3.
    pub ecn: u8,
    /// Differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// Length of the whole packet as its header says, in bytes; never more than was read.
    pub total_len: usize,
    /// Offset of the transport header, in bytes from the packet's start; at most `total_len`.
    pub transport: usize,
}

/// Reads the headers of a raw packet. `None` if it is not whole and well-formed IPv4 or IPv6; checksums are not
/// looked at.
///
/// ```
/// use lastmile_net::lab::ip::{UDP, parse};
/// let mut p = vec![0x45, 0x02, 0, 29, 0, 0, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
/// p.extend([0x03, 0x5e, 0x03, 0x5f, 0, 9, 0, 0, 7]);
/// let ip = parse(&p).unwrap();
/// assert_eq!((ip.ports, ip.ecn, ip.total_len), (Some((862, 863)), 2, 29));
/// ```
pub fn parse(packet: &[u8]) -> Option<IpPacket> {
    match packet.first()? >> 4 {
        4 => parse_v4(packet),
        6 => parse_v6(packet),
        _ => None,
    }
}

fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(b.get(at..at + 2)?.try_into().ok()?))
}

fn ports(packet: &[u8], protocol: u8, transport: usize) -> Option<(u16, u16)> {
    if !matches!(protocol, UDP | TCP) {
        return None;
    }
    Some((u16_at(packet, transport)?, u16_at(packet, transport + 2)?))
}

/// RFC 791, section 3.1.
fn parse_v4(packet: &[u8]) -> Option<IpPacket> {
    let total_len = usize::from(u16_at(packet, 2)?);
    let transport = usize::from(packet[0] & 15) * 4;
    let packet = packet.get(..total_len)?;
    if transport < 20 || transport > total_len {
        return None;
    }
    let address = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
    let first_fragment = u16_at(packet, 6)? & 0x1fff == 0;
    let protocol = packet[9];
    Some(IpPacket {
        src: address(12)?,
        dst: address(16)?,
        protocol,
        ports: ports(packet, protocol, transport).filter(|_| first_fragment),
        ecn: packet[1] & 3,
        dscp: packet[1] >> 2,
        total_len,
        transport,
    })
}

/// RFC 8200, sections 3 and 4. Jumbograms (length 0) are not for links of this size and are refused.
fn parse_v6(packet: &[u8]) -> Option<IpPacket> {
    let total_len = 40 + usize::from(u16_at(packet, 4)?);
    let packet = packet.get(..total_len)?;
    let address = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
    let class = packet[0] << 4 | packet[1] >> 4;
    let (mut protocol, mut at, mut first_fragment) = (packet[6], 40, true);
    // Each turn moves at least 8 bytes ahead, so this ends with the packet.
    while let (0 | 43 | 44 | 60, true) = (protocol, first_fragment) {
        let header = packet.get(at..at + 8)?;
        let len = if protocol == 44 {
            first_fragment = u16_at(header, 2)? >> 3 == 0;
            8
        } else {
            8 + usize::from(header[1]) * 8
        };
        protocol = header[0];
        at += len;
    }
    if at > total_len {
        return None;
    }
    Some(IpPacket {
        src: address(8)?,
        dst: address(24)?,
        protocol,
        ports: ports(packet, protocol, at).filter(|_| first_fragment),
        ecn: class & 3,
        dscp: class >> 2,
        total_len,
        transport: at,
    })
}

/// Sets the ECN code point of a raw packet, and mends the checksum of an IPv4 header incrementally (RFC 1624,
/// equation 3), so that a wrong one stays wrong. False, and nothing changed, if the packet is too short or not IP.
pub fn set_ecn(packet: &mut [u8], ecn: u8) -> bool {
    let ecn = ecn & 3;
    match packet.first().map(|b| b >> 4) {
        Some(4) if packet.len() >= 20 => {
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            let new = old & !3 | u16::from(ecn);
            packet[1] = new as u8;
            // HC' = ~(~HC + ~m + m')
            let sum = u16::from_be_bytes([packet[10], packet[11]]);
            let mut acc = u32::from(!sum) + u32::from(!old) + u32::from(new);
            acc = (acc & 0xffff) + (acc >> 16);
            acc = (acc & 0xffff) + (acc >> 16);
            packet[10..12].copy_from_slice(&(!(acc as u16)).to_be_bytes());
            true
        }
        // The class straddles the first two bytes: ECN is bits 5 and 4 of the second.
        Some(6) if packet.len() >= 40 => {
            packet[1] = packet[1] & 0xcf | ecn << 4;
            true
        }
        _ => false,
    }
}

/// True if the address is one host's: not multicast, broadcast or unspecified. A host's kernel sends packets to some of
/// those by itself (router solicitations), and they belong to no flow.
pub fn is_unicast(addr: IpAddr) -> bool {
    !addr.is_multicast()
        && addr != IpAddr::V4(Ipv4Addr::BROADCAST)
        && addr != IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        && addr != IpAddr::V6(Ipv6Addr::UNSPECIFIED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071, over a whole header: 0 if its checksum is right.
    fn checksum(header: &[u8]) -> u16 {
        let mut acc: u32 = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        while acc >> 16 != 0 {
            acc = (acc & 0xffff) + (acc >> 16);
        }
        !(acc as u16)
    }

    fn v4(tos: u8, id: u16, payload: &[u8]) -> Vec<u8> {
        let mut p = vec![0x45, tos];
        p.extend((28 + payload.len() as u16).to_be_bytes());
        p.extend(id.to_be_bytes());
        p.extend([0x40, 0, 64, UDP, 0, 0, 10, 1, 2, 3, 10, 4, 5, 6, 0x12, 0x34, 0x03, 0x5e]);
        p.extend((8 + payload.len() as u16).to_be_bytes());
        p.extend([0, 0]);
        p.extend(payload);
        let sum = checksum(&p[..20]);
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p
    }

    fn v6(class: u8, next: u8, rest: &[u8]) -> Vec<u8> {
        let mut p = vec![0x60 | class >> 4, class << 4 | 0xb, 0xcd, 0xef];
        p.extend((rest.len() as u16).to_be_bytes());
        p.extend([next, 64]);
        p.extend(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).octets());
        p.extend(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2).octets());
        p.extend(rest);
        p
    }

    #[test]
    fn fields_are_where_they_belong() {
        let mut p = v4(46 << 2 | 3, 7, b"hello");
        p.extend([9; 4]);
        let ip = parse(&p).expect("IPv4");
        assert_eq!((ip.src, ip.dst), ([10, 1, 2, 3].into(), [10, 4, 5, 6].into()));
        assert_eq!((ip.protocol, ip.ports, ip.ecn, ip.dscp), (UDP, Some((0x1234, 862)), 3, 46));
        assert_eq!((ip.total_len, ip.transport), (33, 20), "what follows the packet is not part of it");

        let udp = [0x12, 0x34, 0x03, 0x5e, 0, 8, 0, 0];
        let ip = parse(&v6(10 << 2 | 1, UDP, &udp)).expect("IPv6");
        assert_eq!((ip.protocol, ip.ports, ip.ecn, ip.dscp), (UDP, Some((0x1234, 862)), 1, 10));
        assert_eq!((ip.total_len, ip.transport), (48, 40));
        assert_eq!(ip.dst, IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)));

        // Destination options, then a first fragment.
        let mut rest = vec![44, 0, 0, 0, 0, 0, 0, 0, UDP, 0, 0, 1, 0, 0, 0, 1];
        rest.extend(udp);
        let ip = parse(&v6(0, 60, &rest)).expect("extension headers");
        assert_eq!((ip.protocol, ip.ports, ip.transport), (UDP, Some((0x1234, 862)), 56));
    }

    #[test]
    fn later_fragments_have_no_ports() {
        let mut p = v4(0, 0, b"xxxxxxxx");
        p[7] = 1;
        assert_eq!(parse(&p).expect("fragment").ports, None);
        let ip = parse(&v6(0, 44, &[UDP, 0, 0, 8, 0, 0, 0, 1, 1, 2, 3, 4])).expect("fragment");
        assert_eq!((ip.ports, ip.protocol), (None, UDP));
    }

    #[test]
    fn broken_packets_are_refused() {
        let good = v4(0, 1, b"payload");
        for cut in 0..good.len() {
            assert_eq!(parse(&good[..cut]), None, "cut at {cut}");
        }
        for (at, value) in [(0, 0x44), (0, 0x4f), (0, 0x55), (3, 19)] {
            let mut p = good.clone();
            p[at] = value;
            assert_eq!(parse(&p), None, "byte {at} = {value:#x}");
        }
        assert_eq!(parse(&v6(0, 60, &[UDP, 9, 0, 0, 0, 0, 0, 0])), None, "options longer than the packet");
    }

    #[test]
    fn what_belongs_to_no_flow() {
        for no in ["224.0.0.22", "255.255.255.255", "ff02::2", "::", "0.0.0.0"] {
            assert!(!is_unicast(no.parse().expect("address")), "{no}");
        }
        assert!(is_unicast([10, 0, 0, 1].into()) && is_unicast(Ipv6Addr::LOCALHOST.into()));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), first in any::<bool>(), ecn: u8) {
            if let Some(b) = bytes.first_mut() {
                *b = if first { 0x40 } else { 0x60 } | (*b & 15);
            }
            if let Some(ip) = parse(&bytes) {
                prop_assert!(ip.transport <= ip.total_len && ip.total_len <= bytes.len());
            }
            set_ecn(&mut bytes, ecn);
        }

        #[test]
        fn marking_changes_the_mark_alone(tos: u8, id: u16, ecn in 0u8..4, payload in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut p = v4(tos, id, &payload);
            let before = parse(&p).unwrap();
            prop_assert!(set_ecn(&mut p, ecn));
            prop_assert_eq!(parse(&p).unwrap(), IpPacket { ecn, ..before });
            prop_assert_eq!(checksum(&p[..20]), 0);
            let mut p = v6(tos, UDP, &payload);
            let (before, rest) = (parse(&p).unwrap(), p.clone());
            prop_assert!(set_ecn(&mut p, ecn));
            prop_assert_eq!(parse(&p).unwrap(), IpPacket { ecn, ..before });
            prop_assert_eq!((p[0], p[1] & 0xcf, &p[2..]), (rest[0], rest[1] & 0xcf, &rest[2..]));
        }
    }
}
