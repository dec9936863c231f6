//! Errors about a packet: at once, or reported later by a router or the peer.
use super::cmsg::plain;
use super::stamps::Stamped;
use nix::libc;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Why a packet could not be sent. It has not left and no transmit stamp will come.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The socket's send buffer is full; try again when it is writable.
    #[error("send buffer full")]
    WouldBlock,
    /// Larger than the interface's MTU; probes are never fragmented.
    #[error("packet of {payload} bytes of payload exceeds the interface's MTU: use smaller probes")]
    TooBig {
        /// UDP payload of the packet, bytes.
        payload: usize,
    },
    /// This host has no route to the destination.
    #[error("no route to {0}: check the address and this host's routing table")]
    NoRoute(SocketAddr),
    /// A local firewall or policy forbids it.
    #[error("sending to {0} is forbidden by this host's firewall or policy")]
    Prohibited(SocketAddr),
    /// Anything else.
    #[error("sending to {to}: {source}")]
    Io {
        /// Destination of the packet.
        to: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

impl SendError {
    pub(super) fn new(error: io::Error, to: SocketAddr, payload: usize) -> Self {
        match error.raw_os_error() {
            // ENOBUFS: the device's queue is full; like a full send buffer it passes.
            Some(libc::EAGAIN | libc::ENOBUFS) => Self::WouldBlock,
            Some(libc::EMSGSIZE) => Self::TooBig { payload },
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => Self::NoRoute(to),
            Some(libc::EPERM | libc::EACCES) => Self::Prohibited(to),
            _ => Self::Io { to, source: error },
        }
    }
}

/// The fault that an ICMP message reports about a packet of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathFault {
    /// Nobody listens on the port.
    PortClosed,
    /// A router cannot reach the host or its network.
    Unreachable,
    /// A firewall refuses it.
    Prohibited,
    /// The packet does not fit a link on the path.
    TooBig {
        /// The link's MTU in bytes as the router says; 0 if it does not.
        mtu: u32,
    },
    /// The hop limit ran out: a routing loop, or a hop limit set too low.
    HopLimit,
    /// Another ICMP message.
    Other {
        /// ICMP (or ICMPv6) type.
        kind: u8,
        /// ICMP code.
        code: u8,
    },
}

/// An ICMP error about a packet that this socket sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct PathError {
    /// Destination of the packet.
    pub to: Option<SocketAddr>,
    /// Sender of the ICMP message.
    pub from: Option<IpAddr>,
    /// The fault.
    pub fault: PathFault,
}

impl PathError {
    fn text(&self) -> String {
        let to = self.to.map_or_else(|| "the peer".to_owned(), |to| to.to_string());
        let by = self.from.map_or_else(String::new, |from| format!(" (says {from})"));
        match self.fault {
            PathFault::PortClosed => format!("{to}: port closed, nobody listens there{by}"),
            PathFault::Unreachable => format!("{to} is unreachable{by}"),
            PathFault::Prohibited => format!("{to}: refused by a firewall{by}"),
            PathFault::TooBig { mtu: 0 } => {
                format!("{to}: packet too big for the path{by}: use smaller probes")
            }
            PathFault::TooBig { mtu } => {
                format!("{to}: packet exceeds the path's MTU of {mtu} bytes{by}: use smaller probes")
            }
            PathFault::HopLimit => format!("{to}: hop limit exceeded on the way{by}"),
            PathFault::Other { kind, code } => format!("{to}: ICMP type {kind} code {code}{by}"),
        }
    }
}

/// include/uapi/linux/errqueue.h; not in `libc`.
const SCM_TSTAMP_SND: u32 = 0;
const SCM_TSTAMP_SCHED: u32 = 1;

/// One entry of a socket's error queue.
pub(super) enum Entry {
    Stamp { key: u32, what: Stamped },
    Icmp { from: Option<IpAddr>, fault: PathFault },
    Ignored,
}

/// Reads a `sock_extended_err` and the offender's address behind it.
pub(super) fn entry(data: &[u8]) -> Entry {
    let Some(e) = plain::<libc::sock_extended_err>(data) else { return Entry::Ignored };
    let behind = data.get(size_of::<libc::sock_extended_err>()..).unwrap_or(&[]);
    match e.ee_origin {
        libc::SO_EE_ORIGIN_TIMESTAMPING => match e.ee_info {
            SCM_TSTAMP_SND => Entry::Stamp { key: e.ee_data, what: Stamped::Sent },
            SCM_TSTAMP_SCHED => Entry::Stamp { key: e.ee_data, what: Stamped::EnteredQueue },
            _ => Entry::Ignored,
        },
        libc::SO_EE_ORIGIN_ICMP => Entry::Icmp {
            from: plain::<libc::sockaddr_in>(behind)
                .filter(|a| libc::c_int::from(a.sin_family) == libc::AF_INET)
                .map(|a| IpAddr::from(a.sin_addr.s_addr.to_ne_bytes())),
            fault: icmp4(e.ee_type, e.ee_code, e.ee_info),
        },
        libc::SO_EE_ORIGIN_ICMP6 => Entry::Icmp {
            from: plain::<libc::sockaddr_in6>(behind)
                .filter(|a| libc::c_int::from(a.sin6_family) == libc::AF_INET6)
                .map(|a| IpAddr::from(a.sin6_addr.s6_addr)),
            fault: icmp6(e.ee_type, e.ee_code, e.ee_info),
        },
        // Local errors came back from the send call already.
        _ => Entry::Ignored,
    }
}

/// RFC 792 and RFC 1812 section 5.2.7.1: type 3 is unreachable, 11 time exceeded.
fn icmp4(kind: u8, code: u8, info: u32) -> PathFault {
    match (kind, code) {
        (3, 3) => PathFault::PortClosed,
        (3, 4) => PathFault::TooBig { mtu: info },
        (3, 9 | 10 | 13) => PathFault::Prohibited,
        (3, _) => PathFault::Unreachable,
        (11, 0) => PathFault::HopLimit,
        _ => PathFault::Other { kind, code },
    }
}

/// RFC 4443 section 3: type 1 is unreachable, 2 too big, 3 time exceeded.
fn icmp6(kind: u8, code: u8, info: u32) -> PathFault {
    match (kind, code) {
        (1, 4) => PathFault::PortClosed,
        (1, 1 | 5 | 6) => PathFault::Prohibited,
        (1, _) => PathFault::Unreachable,
        (2, _) => PathFault::TooBig { mtu: info },
        (3, 0) => PathFault::HopLimit,
        _ => PathFault::Other { kind, code },
    }
}
