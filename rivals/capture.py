"""A host's packets from a pcapng file of the lab (raw IP, nanoseconds since the run's start), with UDP inside."""

import struct
from collections import namedtuple

# Seconds; True if the host sent it; size of the IP packet; ECN codepoint, 0 to 3; the first bytes of the UDP payload.
Packet = namedtuple("Packet", "at sent size ecn payload")


def packets(data, host):
    """Packets of the host whose addresses end in this number."""
    at = 0
    while at + 28 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6 and length >= 32:
            _, high, low, captured, size = struct.unpack_from("<5I", data, at + 8)
            packet = parse(data[at + 28 : at + 28 + captured], host, (high << 32 | low) / 1e9, size)
            if packet:
                yield packet
        at += max(length, 12)


def parse(ip, host, at, size):
    if len(ip) >= 28 and ip[0] >> 4 == 4 and ip[9] == 17:
        return Packet(at, ip[15] == host, size, ip[1] & 3, ip[4 * (ip[0] & 15) + 8 :][:12])
    if len(ip) >= 48 and ip[0] >> 4 == 6 and ip[6] == 17:
        return Packet(at, ip[23] == host, size, ip[1] >> 4 & 3, ip[48:60])
    return None


def is_rtcp(packet):
    """RTCP beside RTP (RFC 5761); its first eight bytes are in the clear under SRTP too."""
    return len(packet.payload) >= 8 and packet.payload[0] >> 6 == 2 and 192 <= packet.payload[1] <= 223


def is_media(packet):
    return len(packet.payload) >= 12 and packet.payload[0] >> 6 == 2 and not is_rtcp(packet)


def is_ccfb(packet):
    """Congestion control feedback (RFC 8888), as the first packet of a compound or alone."""
    return is_rtcp(packet) and packet.payload[1] == 205 and packet.payload[0] & 31 == 11
