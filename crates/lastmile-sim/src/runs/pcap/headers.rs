//! Datagrams as IP packets: RFC 791, RFC 8200, RFC 768; RFC 1071's checksum. TCP is in [`tcp`].

use core::net::IpAddr;

use lastmile::node::{Datagram, Payload};

use super::tcp::{self, Connection};

const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// Writes the packet's bytes, without the zeros at the end of a payload; gives its length on the wire. `connection` is
/// that of a TCP model.
pub(super) fn write_packet(
    datagram: &Datagram,
    connection: Option<&mut Connection>,
    out: &mut Vec<u8>,
) -> u32 {
    let ip_size = datagram.ip_size().0.min(u64::from(u32::MAX)) as u32;
    let ip = if datagram.to.is_ipv6() { 40 } else { 20 };
    match &datagram.payload {
        Payload::Ip(bytes) => {
            let start = out.len();
            out.extend_from_slice(bytes);
            set_ecn(&mut out[start..], datagram.ecn as u8);
        }
        Payload::Udp(bytes) => {
            ip_header(datagram, ip_size, UDP, out);
            udp(datagram, bytes, bytes.len() + UDP_HEADER, out);
        }
        Payload::Model(model) => {
            let room = (ip_size as usize).saturating_sub(ip);
            let Some(header) = connection.and_then(|c| tcp::header(c, model, room)) else {
                ip_header(datagram, ip_size.max((ip + UDP_HEADER) as u32), UDP, out);
                udp(datagram, &[], room.max(UDP_HEADER), out);
                return ip_size.max(out.len() as u32);
            };
            let length = header.bytes.len() + header.data;
            let total = (ip + length) as u32;
            ip_header(datagram, total, TCP, out);
            let start = out.len();
            out.extend_from_slice(&header.bytes);
            out[start..start + 2].copy_from_slice(&datagram.from.port().to_be_bytes());
            out[start + 2..start + 4].copy_from_slice(&datagram.to.port().to_be_bytes());
            let check = checksum(&out[start..], pseudo_header(datagram, TCP, length));
            out[start + 16..start + 18].copy_from_slice(&check.to_be_bytes());
            return ip_size.max(total);
        }
    }
    ip_size.max(out.len() as u32)
}

/// A mark on the way stands beside the bytes of a packet from outside, and is put into them where it leaves the engine.
fn set_ecn(packet: &mut [u8], ecn: u8) {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= 20 && packet[1] & 3 != ecn => {
            packet[1] = packet[1] & !3 | ecn;
            let header = (usize::from(packet[0] & 15) * 4).clamp(20, packet.len());
            packet[10..12].fill(0);
            let sum = checksum(&packet[..header], 0);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        // The class straddles the first two bytes.
        Some(6) if packet.len() >= 40 => packet[1] = packet[1] & 0xcf | ecn << 4,
        _ => {}
    }
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

/// A UDP header that says `length`, and the payload up to its last byte that is not zero. What is not there counts as
/// zeros, of models as of padded probes: the checksum is right for that, as IPv6 demands one (RFC 8200, section 8.1).
fn udp(datagram: &Datagram, payload: &[u8], length: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&datagram.from.port().to_be_bytes());
    out.extend_from_slice(&datagram.to.port().to_be_bytes());
    out.extend_from_slice(&(length.min(65_535) as u16).to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    let end = payload.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    out.extend_from_slice(&payload[..end]);
    // Zero means that there is none (RFC 768).
    let check = match checksum(&out[start..], pseudo_header(datagram, UDP, length)) {
        0 => 0xffff,
        check => check,
    };
    out[start + 6..start + 8].copy_from_slice(&check.to_be_bytes());
}

/// The sum over the pseudo-header: RFC 9293, section 3.1; RFC 8200, section 8.1.
fn pseudo_header(datagram: &Datagram, protocol: u8, length: usize) -> u64 {
    let addresses = [datagram.from.ip(), datagram.to.ip()].into_iter().map(|address| match address {
        IpAddr::V4(v4) => sum(&v4.octets(), 0),
        IpAddr::V6(v6) => sum(&v6.octets(), 0),
    });
    addresses.sum::<u64>() + u64::from(protocol) + length as u64
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
        assert_eq!(write_packet(&datagram, None, &mut out), 1500);
        assert_eq!(out.len(), 28);
        assert_eq!(out[..10], [0x45, 0xbb, 0x05, 0xdc, 0, 0, 0x40, 0, 7, 17]);
        assert_eq!(checksum(&out[..20], 0), 0, "the header's own checksum makes the sum right");
        assert_eq!(out[20..26], [0, 9, 0, 10, 0x05, 0xc8]);
        let pseudo = sum(&[10, 77, 0, 1, 10, 77, 0, 2, 0, 17, 0x05, 0xc8], 0);
        assert_eq!(checksum(&out[20..], pseudo), 0, "right for a payload of zeros");
    }

    #[test]
    fn tcp_is_whole_in_both_versions() {
        for (a, b, ip) in [("10.0.0.1:49152", "10.0.0.2:9", 20), ("[fd77::1]:49152", "[fd77::2]:9", 40)] {
            let header = ip + 20;
            let model =
                crate::network::tcp::Segment { seq: 2, sent: 5, bytes: 101, cwr: false }.model(header as u32);
            let (a, b) = (a.parse().unwrap(), b.parse().unwrap());
            let datagram = Datagram { payload: Payload::Model(model), ..Datagram::udp(a, b, vec![]) };
            let (mut connection, mut out) = (Connection::new(101), Vec::new());
            assert_eq!(write_packet(&datagram, Some(&mut connection), &mut out) as usize, header + 101);
            assert_eq!((out.len(), out[ip..ip + 8].to_vec()), (header, vec![0xc0, 0, 0, 9, 0, 0, 0, 203]));
            assert_eq!(out[if ip == 20 { 9 } else { 6 }], 6);
            let length = if ip == 20 { 2 } else { 4 };
            let total = if ip == 20 { header } else { 20 } + 101;
            assert_eq!(out[length..length + 2], (total as u16).to_be_bytes());
            let mut pseudo = out[ip - if ip == 20 { 8 } else { 32 }..ip].to_vec();
            pseudo.extend_from_slice(&[0, 6, 0, 121]);
            assert_eq!(checksum(&out[ip..], sum(&pseudo, 0)), 0);
        }
    }

    #[test]
    fn a_packet_from_outside_has_the_mark_that_it_got_on_the_way() {
        for (a, b) in [("10.77.0.1:9", "10.77.0.2:10"), ("[fd77::1]:9", "[fd77::2]:10")] {
            let udp = |ecn, payload| {
                let (a, b) = (a.parse().unwrap(), b.parse().unwrap());
                Datagram { ecn, dscp: 46, hop_limit: 7, payload, ..Datagram::udp(a, b, vec![]) }
            };
            let written = |datagram: &Datagram| {
                let mut out = Vec::new();
                write_packet(datagram, None, &mut out);
                out
            };
            let [sent, marked] = [Ecn::Ect0, Ecn::Ce].map(|ecn| written(&udp(ecn, Payload::Udp(vec![1; 9]))));
            assert_ne!(sent, marked);
            assert_eq!(written(&udp(Ecn::Ce, Payload::Ip(sent.clone()))), marked);
            assert_eq!(written(&udp(Ecn::Ect0, Payload::Ip(sent.clone()))), sent);
        }
        // What is no whole header is left as it is.
        let mut short = [0x45, 0, 0];
        set_ecn(&mut short, 3);
        assert_eq!(short, [0x45, 0, 0]);
    }

    #[test]
    fn zeros_at_the_end_are_left_out() {
        let (a, b) = ("10.77.0.1:9".parse().unwrap(), "10.77.0.2:10".parse().unwrap());
        let mut payload = b"probe".to_vec();
        payload.resize(1000, 0);
        let mut out = Vec::new();
        assert_eq!(write_packet(&Datagram::udp(a, b, payload), None, &mut out), 1028);
        assert_eq!((out.len(), &out[28..]), (33, &b"probe"[..]));
    }

    #[test]
    fn udp_is_whole_in_both_versions() {
        for (a, b, header) in [("10.0.0.1:9", "10.0.0.2:9", 20), ("[fd77::1]:9", "[fd77::2]:9", 40)] {
            let datagram = Datagram::udp(a.parse().unwrap(), b.parse().unwrap(), b"odd".to_vec());
            let mut out = Vec::new();
            assert_eq!(write_packet(&datagram, None, &mut out) as usize, header + 11);
            assert_eq!(out.len(), header + 11);
            let mut pseudo = out[header - if header == 20 { 8 } else { 32 }..header].to_vec();
            pseudo.extend_from_slice(&[0, 17, 0, 11]);
            assert_eq!(checksum(&out[header..], sum(&pseudo, 0)), 0);
        }
    }
}
