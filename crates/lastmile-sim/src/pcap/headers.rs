//! Datagrams as IP packets: RFC 791, RFC 8200, RFC 768; RFC 1071's checksum.

use core::net::IpAddr;

use lastmile::node::{Datagram, Payload};

const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// Writes the packet's bytes, as far as it has any; gives its length on the wire.
pub(super) fn write_packet(datagram: &Datagram, out: &mut Vec<u8>) -> u32 {
    let ip_size = datagram.ip_size().0.min(u64::from(u32::MAX)) as u32;
    match &datagram.payload {
        Payload::Ip(bytes) => out.extend_from_slice(bytes),
        Payload::Udp(bytes) => {
            ip_header(datagram, ip_size, UDP, out);
            udp(datagram, bytes, bytes.len() + UDP_HEADER, out);
        }
        Payload::Model(_) => {
            let before = out.len();
            ip_header(datagram, ip_size, UDP, out);
            let rest = (ip_size as usize).saturating_sub(out.len() - before);
            udp(datagram, &[], rest.max(UDP_HEADER), out);
        }
    }
    ip_size.max(out.len() as u32)
}

fn ip_header(datagram: &Datagram, ip_size: u32, protocol: u8, out: &mut Vec<u8>) {
    let class = datagram.dscp << 2 | datagram.ecn as u8;
    let start = out.len();
    match (datagram.from.ip(), datagram.to.ip()) {
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            out.extend_from_slice(&[0x60 | class >> 4, class << 4, 0, 0]);
            out.extend_from_slice(&(ip_size.saturating_sub(40).min(65_535) as u16).to_be_bytes());
            out.extend_from_slice(&[protocol, datagram.hop_limit]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
        }
        (from, to) => {
            out.extend_from_slice(&[0x45, class]);
            out.extend_from_slice(&(ip_size.min(65_535) as u16).to_be_bytes());
            // No identification, do not fragment.
            out.extend_from_slice(&[0, 0, 0x40, 0, datagram.hop_limit, protocol, 0, 0]);
            for address in [from, to] {
                match address {
                    IpAddr::V4(v4) => out.extend_from_slice(&v4.octets()),
                    IpAddr::V6(_) => out.extend_from_slice(&[0; 4]),
                }
            }
            let sum = checksum(&out[start..], 0);
            out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

/// A UDP header that says `length`, and the payload. Where bytes are missing the checksum is left out.
fn udp(datagram: &Datagram, payload: &[u8], length: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&datagram.from.port().to_be_bytes());
    out.extend_from_slice(&datagram.to.port().to_be_bytes());
    out.extend_from_slice(&(length.min(65_535) as u16).to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(payload);
    if payload.len() + UDP_HEADER == length {
        let mut pseudo = Vec::with_capacity(40);
        for address in [datagram.from.ip(), datagram.to.ip()] {
            match address {
                IpAddr::V4(v4) => pseudo.extend_from_slice(&v4.octets()),
                IpAddr::V6(v6) => pseudo.extend_from_slice(&v6.octets()),
            }
        }
        let partial = sum(&pseudo, u64::from(UDP) + length as u64);
        // Zero means that there is none (RFC 768).
        let check = match checksum(&out[start..], partial) {
            0 => 0xffff,
            check => check,
        };
        out[start + 6..start + 8].copy_from_slice(&check.to_be_bytes());
    }
}

fn sum(bytes: &[u8], start: u64) -> u64 {
    bytes.chunks(2).fold(start, |sum, pair| {
        sum + u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
    })
}

fn checksum(bytes: &[u8], start: u64) -> u16 {
    let mut total = sum(bytes, start);
    while total >> 16 != 0 {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::node::{Ecn, Model};

    #[test]
    fn checksums_are_those_of_the_rfc() {
        // RFC 1071, section 3: the sum of these is ddf2.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], 0), !0xddf2);
    }

    #[test]
    fn models_have_headers_and_their_length() {
        let (a, b) = ("10.77.0.1:9".parse().unwrap(), "10.77.0.2:10".parse().unwrap());
        let payload = Payload::Model(Model { ip_size: 1500, words: [0; 4] });
        let datagram =
            Datagram { ecn: Ecn::Ce, dscp: 46, hop_limit: 7, payload, ..Datagram::udp(a, b, vec![]) };
        let mut out = Vec::new();
        assert_eq!(write_packet(&datagram, &mut out), 1500);
        assert_eq!(out.len(), 28);
        assert_eq!(out[..10], [0x45, 0xbb, 0x05, 0xdc, 0, 0, 0x40, 0, 7, 17]);
        assert_eq!(checksum(&out[..20], 0), 0, "the header's own checksum makes the sum right");
        assert_eq!(out[20..28], [0, 9, 0, 10, 0x05, 0xc8, 0, 0]);
    }

    #[test]
    fn udp_is_whole_in_both_versions() {
        for (a, b, header) in [("10.0.0.1:9", "10.0.0.2:9", 20), ("[fd77::1]:9", "[fd77::2]:9", 40)] {
            let datagram = Datagram::udp(a.parse().unwrap(), b.parse().unwrap(), b"odd".to_vec());
            let mut out = Vec::new();
            assert_eq!(write_packet(&datagram, &mut out) as usize, header + 11);
            assert_eq!(out.len(), header + 11);
            let mut pseudo = out[header - if header == 20 { 8 } else { 32 }..header].to_vec();
            pseudo.extend_from_slice(&[0, 17, 0, 11]);
            assert_eq!(checksum(&out[header..], sum(&pseudo, 0)), 0);
        }
    }
}
