//! Datagrams as IP packets, written by `etherparse`; payloads may be cut. TCP is in [`tcp`].

use core::net::IpAddr;

use etherparse::checksum::Sum16BitWords;
use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6Header, UdpHeader, ip_number};
use lastmile::node::{Datagram, Payload};

use super::tcp::{self, Connection};

/// Writes the packet's bytes, without the zeros at the end of a payload; gives its length on the wire. `connection` is
/// that of a TCP model.
pub(super) fn write_packet(
    datagram: &Datagram,
    connection: Option<&mut Connection>,
    out: &mut Vec<u8>,
) -> u32 {
    let ip_size = datagram.ip_size().0.min(u64::from(u32::MAX)) as usize;
    let ip = if datagram.to.is_ipv6() { Ipv6Header::LEN } else { Ipv4Header::MIN_LEN };
    let room = ip_size.saturating_sub(ip);
    let length = match &datagram.payload {
        Payload::Ip(bytes) => {
            let start = out.len();
            out.extend_from_slice(bytes);
            set_ecn(&mut out[start..], ecn(datagram));
            return ip_size.max(bytes.len()) as u32;
        }
        Payload::Udp(bytes) => udp(datagram, bytes, bytes.len() + UdpHeader::LEN, out),
        Payload::Model(model) => match connection.and_then(|connection| tcp::header(connection, model, room))
        {
            None => udp(datagram, &[], room.max(UdpHeader::LEN), out),
            Some((mut header, data)) => {
                let length = header.header_len() + data;
                (header.source_port, header.destination_port) = (datagram.from.port(), datagram.to.port());
                let sum = pseudo_header(datagram, ip_number::TCP, length).add_slice(&header.to_bytes());
                header.checksum = sum.ones_complement().to_be();
                ip_header(datagram, ip_number::TCP, length, out);
                out.extend_from_slice(&header.to_bytes());
                length
            }
        },
    };
    ip_size.max(ip + length) as u32
}

fn ecn(datagram: &Datagram) -> IpEcn {
    IpEcn::try_new(datagram.ecn as u8).unwrap_or_default()
}

/// A mark on the way stands beside the bytes of a packet from outside, and is put into them where it leaves the engine.
fn set_ecn(packet: &mut [u8], ecn: IpEcn) {
    if let Ok((mut header, _)) = Ipv4Header::from_slice(packet) {
        if header.ecn != ecn {
            header.ecn = ecn;
            header.header_checksum = header.calc_header_checksum();
            packet[..header.header_len()].copy_from_slice(&header.to_bytes());
        }
    } else if let Ok((mut header, _)) = Ipv6Header::from_slice(packet) {
        header.set_ecn(ecn);
        packet[..Ipv6Header::LEN].copy_from_slice(&header.to_bytes());
    }
}

/// An IP header before `length` bytes of that protocol.
fn ip_header(datagram: &Datagram, protocol: IpNumber, length: usize, out: &mut Vec<u8>) {
    let fits = |length: usize| length.min(usize::from(u16::MAX)) as u16;
    if let (IpAddr::V6(from), IpAddr::V6(to)) = (datagram.from.ip(), datagram.to.ip()) {
        let header = Ipv6Header {
            traffic_class: datagram.dscp << 2 | datagram.ecn as u8,
            payload_length: fits(length),
            next_header: protocol,
            hop_limit: datagram.hop_limit,
            source: from.octets(),
            destination: to.octets(),
            ..Ipv6Header::default()
        };
        out.extend_from_slice(&header.to_bytes());
    } else {
        let octets = |address| if let IpAddr::V4(v4) = address { v4.octets() } else { [0; 4] };
        let mut header = Ipv4Header {
            dscp: IpDscp::try_new(datagram.dscp).unwrap_or_default(),
            ecn: ecn(datagram),
            total_len: fits(Ipv4Header::MIN_LEN + length),
            time_to_live: datagram.hop_limit,
            protocol,
            source: octets(datagram.from.ip()),
            destination: octets(datagram.to.ip()),
            ..Ipv4Header::default()
        };
        header.header_checksum = header.calc_header_checksum();
        out.extend_from_slice(&header.to_bytes());
    }
}

/// A UDP packet whose header says `length`, and the payload up to its last byte that is not zero. Bytes that are missing
/// count as zeros, of models as of padded probes: the checksum is right for that, as IPv6 demands one (RFC 8200,
/// section 8.1).
fn udp(datagram: &Datagram, payload: &[u8], length: usize, out: &mut Vec<u8>) -> usize {
    let payload = &payload[..payload.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)];
    let mut header = UdpHeader {
        source_port: datagram.from.port(),
        destination_port: datagram.to.port(),
        length: length.min(usize::from(u16::MAX)) as u16,
        checksum: 0,
    };
    let sum =
        pseudo_header(datagram, ip_number::UDP, length).add_slice(&header.to_bytes()).add_slice(payload);
    header.checksum = sum.to_ones_complement_with_no_zero().to_be();
    ip_header(datagram, ip_number::UDP, length, out);
    out.extend_from_slice(&header.to_bytes());
    out.extend_from_slice(payload);
    length
}

/// The sum over the pseudo-header: RFC 9293, section 3.1; RFC 8200, section 8.1.
fn pseudo_header(datagram: &Datagram, protocol: IpNumber, length: usize) -> Sum16BitWords {
    let mut sum = Sum16BitWords::new().add_2bytes([0, protocol.0]);
    for address in [datagram.from.ip(), datagram.to.ip()] {
        sum = match address {
            IpAddr::V4(v4) => sum.add_4bytes(v4.octets()),
            IpAddr::V6(v6) => sum.add_16bytes(v6.octets()),
        };
    }
    sum.add_4bytes((length as u32).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{SlicedPacket, TransportSlice};
    use lastmile::node::{Ecn, Model};

    const PAIRS: [(&str, &str); 2] = [("10.77.0.1:9", "10.77.0.2:10"), ("[fd77::1]:9", "[fd77::2]:10")];

    fn datagram((from, to): (&str, &str), payload: Payload) -> Datagram {
        let udp = Datagram::udp(from.parse().unwrap(), to.parse().unwrap(), vec![]);
        Datagram { ecn: Ecn::Ce, dscp: 46, hop_limit: 7, payload, ..udp }
    }

    /// Bytes of the packet, after a check that both checksums are right for the zeros that are left out.
    fn written(datagram: &Datagram, connection: Option<&mut Connection>) -> (Vec<u8>, usize) {
        let mut out = Vec::new();
        let length = write_packet(datagram, connection, &mut out) as usize;
        let mut whole = out.clone();
        whole.resize(length, 0);
        let sliced = SlicedPacket::from_ip(&whole).unwrap();
        let ip = &whole[..length - sliced.net.unwrap().ip_payload_ref().unwrap().payload.len()];
        if datagram.to.is_ipv4() {
            assert_eq!(Sum16BitWords::new().add_slice(ip).ones_complement(), 0);
        }
        let addresses = if datagram.to.is_ipv4() { &ip[12..] } else { &ip[8..] };
        let (protocol, size) = match sliced.transport.unwrap() {
            TransportSlice::Udp(udp) => (17, udp.slice().len()),
            TransportSlice::Tcp(tcp) => (6, tcp.slice().len()),
            other => panic!("{other:?}"),
        };
        assert_eq!(size, length - ip.len(), "the length that is told");
        let pseudo =
            Sum16BitWords::new().add_slice(addresses).add_4bytes((protocol + size as u32).to_be_bytes());
        assert_eq!(pseudo.add_slice(&whole[ip.len()..]).ones_complement(), 0);
        (out, length)
    }

    #[test]
    fn models_have_headers_and_their_length() {
        let model = datagram(PAIRS[0], Payload::Model(Model { ip_size: 1500, words: [0; 4] }));
        let (out, length) = written(&model, None);
        assert_eq!((out.len(), length), (28, 1500));
        assert_eq!(out[..10], [0x45, 0xbb, 0x05, 0xdc, 0, 0, 0x40, 0, 7, 17]);
        assert_eq!(out[20..26], [0, 9, 0, 10, 0x05, 0xc8]);
    }

    #[test]
    fn tcp_is_whole_in_both_versions() {
        for (pair, ip) in PAIRS.into_iter().zip([20, 40]) {
            let segment = crate::network::tcp::Segment { seq: 2, sent: 5, bytes: 101, cwr: false };
            let payload = Payload::Model(segment.model(ip as u32 + 20));
            let (out, length) = written(&datagram(pair, payload), Some(&mut Connection::new(101)));
            assert_eq!((out.len(), length), (ip + 20, ip + 121));
            assert_eq!(out[ip..ip + 8], [0, 9, 0, 10, 0, 0, 0, 203]);
        }
    }

    #[test]
    fn a_packet_from_outside_has_the_mark_that_it_got_on_the_way() {
        for pair in PAIRS {
            let marked = written(&datagram(pair, Payload::Udp(vec![1; 9])), None).0;
            let sent =
                written(&Datagram { ecn: Ecn::Ect0, ..datagram(pair, Payload::Udp(vec![1; 9])) }, None).0;
            assert_ne!(sent, marked);
            let outside = datagram(pair, Payload::Ip(sent.clone()));
            assert_eq!(written(&outside, None).0, marked);
            assert_eq!(written(&Datagram { ecn: Ecn::Ect0, ..outside }, None).0, sent);
        }
        // Bytes that are no whole header stay as they are.
        let mut short = [0x45, 0, 0];
        set_ecn(&mut short, IpEcn::CongestionExperienced);
        assert_eq!(short, [0x45, 0, 0]);
    }

    #[test]
    fn udp_is_whole_in_both_versions_and_zeros_at_the_end_are_left_out() {
        for (pair, ip) in PAIRS.into_iter().zip([20, 40]) {
            let (out, length) = written(&datagram(pair, Payload::Udp(b"odd".to_vec())), None);
            assert_eq!((out.len(), length), (ip + 11, ip + 11));
            let mut payload = b"probe".to_vec();
            payload.resize(1000, 0);
            let (out, length) = written(&datagram(pair, Payload::Udp(payload)), None);
            assert_eq!((&out[ip + 8..], length), (&b"probe"[..], ip + 1008));
        }
    }
}
