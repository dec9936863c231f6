//! The probe socket: UDP over IPv4 or IPv6 with kernel timestamps both ways.
//!
//! Written on `libc` directly. `quinn-udp` was considered: it batches receives and knows ECN, but it has no
//! transmit stamps, DSCP, hop limit or error queue, and turns UDP_GRO on, which gives coalesced probes one stamp
//! and no ECN mark. Adding the missing half beside it would make two system-call paths for one socket.
//!
//! - Receive stamps are made by the kernel when the packet comes up from the device, transmit stamps when it enters
//!   the interface's queue (qdisc) and when it leaves that for the device. The former counts as the departure:
//!   a late one is a busy host's, and the queue's delay is part of the path, as that of the queues behind it is. All
//!   come as CLOCK_REALTIME and are converted at once through a [`WallClock`].
//! - GSO is never used and GRO is off: each packet has its own stamp and its own ECN mark.
//! - The DF bit is always set, and path-MTU messages from the network are reported but not obeyed, since anybody
//!   can forge them; only the local interface's MTU limits a packet.
//! - ICMP errors come as [`PathError`] from [`UdpSocket::recv_events`]; they never disturb sending or receiving.
mod cmsg;
mod errors;
mod recv;
mod send;
mod stamps;
#[cfg(test)]
mod tests;
mod wait;

pub use errors::{PathError, PathFault, SendError};
pub use recv::{Received, RecvBatch};
pub use send::{Outgoing, SendResult};
pub use wait::wait_readable;

use crate::clock::{WallClock, now};
use crate::sys::{check, interface_name};
use nix::libc;
use stamps::Tracker;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Packets per system call.
pub const BATCH: usize = 64;

const STAMPS_RX: u32 =
    libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_CMSG;
/// Both stamps of a packet carry its key (Documentation/networking/timestamping.rst, 1.3.1 and 1.3.3).
const STAMPS_TX: u32 =
    libc::SOF_TIMESTAMPING_TX_SCHED | libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_TSONLY;
/// Linux 6.13, include/uapi/asm-generic/socket.h. Architectures that number it otherwise fail the trial and count.
const SCM_TS_OPT_ID: libc::c_int = 81;

/// Longest wait for the kernel to begin stamping; where loopback is down this cannot be seen and is waited for.
const STAMPING_STARTS_NS: u64 = 20_000_000;

/// Configuration of a probe socket.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Local address and port; port 0 picks a free one. Decides between IPv4 and IPv6 (never both: one socket per
    /// family).
    pub bind: SocketAddr,
    /// Use only this interface.
    pub interface: Option<String>,
    /// Hop limit of everything sent. STAMP wants 255 (RFC 8762, section 4.2.1, Session-Sender TTL).
    pub hop_limit: u8,
    /// Bytes of receive buffer asked for; the system may grant less. It also holds the transmit stamps.
    pub recv_buffer: usize,
    /// Bytes of send buffer asked for. A full buffer shows as [`SendError::WouldBlock`].
    pub send_buffer: usize,
    /// Ask for transmit stamps.
    pub tx_stamps: bool,
}

impl UdpConfig {
    /// The defaults for a socket bound to `bind`: any interface, hop limit 255, 8 MB to receive, 2 MB to send,
    /// transmit stamps on.
    pub fn new(bind: SocketAddr) -> Self {
        Self {
            bind,
            interface: None,
            hop_limit: 255,
            recv_buffer: 8 << 20,
            send_buffer: 2 << 20,
            tx_stamps: true,
        }
    }
}

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address is in use or not this host's, or the port is privileged.
    #[error("cannot bind to {addr}: {source}")]
    Bind {
        /// The address asked for.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// No such interface, or no right to bind to it.
    #[error("cannot use interface {name}: {source}")]
    Interface {
        /// The name asked for.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel lacks an option that measuring needs.
    #[error("this system lacks {what}: {source}")]
    Unsupported {
        /// The option.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// No socket at all: out of descriptors or memory, or the address family is switched off.
    #[error("cannot open a socket: {0}")]
    Socket(#[from] io::Error),
}

/// An event that [`UdpSocket::recv_events`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// The packet was handed to the device.
    Sent {
        /// As given in [`Outgoing::id`].
        id: u64,
        /// Monotonic time at which it entered the interface's queue, by the kernel's stamp.
        at: u64,
        /// Its wait there, in nanoseconds.
        queued: u64,
    },
    /// An ICMP error came back.
    Error(PathError),
}

/// A nonblocking probe socket.
///
/// All methods take `&self`: one thread may send while another receives. Concurrent senders are serialised.
#[derive(Debug)]
pub struct UdpSocket {
    socket: socket2::Socket,
    local: SocketAddr,
    tx_stamps: bool,
    tracker: Mutex<Tracker>,
    /// Held during a send, so that keys and packets keep one order.
    sending: Mutex<()>,
}

impl UdpSocket {
    /// Opens and binds a socket.
    ///
    /// # Errors
    /// See [`OpenError`]; each says what to change.
    pub fn open(config: &UdpConfig) -> Result<Self, OpenError> {
        Self::open_with(config, kernel().keys_can_be_named)
    }

    /// `named`: the kernel lets the sender name the keys of transmit stamps.
    fn open_with(config: &UdpConfig, named: bool) -> Result<Self, OpenError> {
        let v4 = config.bind.is_ipv4();
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(config.bind),
            socket2::Type::DGRAM.nonblocking().cloexec(),
            Some(socket2::Protocol::UDP),
        )?;
        if !v4 {
            socket.set_only_v6(true)?;
        }
        if let Some(name) = &config.interface {
            bind_interface(&socket, name, v4)
                .map_err(|source| OpenError::Interface { name: name.clone(), source })?;
        }
        large_buffer(&socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, config.recv_buffer);
        large_buffer(&socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, config.send_buffer);
        let set = |level, option, value, what| {
            set_option(&socket, level, option, value)
                .map_err(|source| OpenError::Unsupported { what, source })
        };
        if v4 {
            set(
                libc::SOL_IP,
                libc::IP_MTU_DISCOVER,
                libc::IP_PMTUDISC_PROBE,
                "the DF bit (IP_MTU_DISCOVER)",
            )?;
            set(libc::SOL_IP, libc::IP_TTL, config.hop_limit.into(), "IP_TTL")?;
            set(libc::SOL_IP, libc::IP_RECVTOS, 1, "IP_RECVTOS")?;
            set(libc::SOL_IP, libc::IP_RECVTTL, 1, "IP_RECVTTL")?;
            set(libc::SOL_IP, libc::IP_PKTINFO, 1, "IP_PKTINFO")?;
            set(libc::SOL_IP, libc::IP_RECVERR, 1, "IP_RECVERR")?;
        } else {
            let probe = libc::IPV6_PMTUDISC_PROBE;
            set(libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, probe, "IPV6_MTU_DISCOVER")?;
            set(libc::SOL_IPV6, libc::IPV6_DONTFRAG, 1, "IPV6_DONTFRAG")?;
            set(libc::SOL_IPV6, libc::IPV6_UNICAST_HOPS, config.hop_limit.into(), "IPV6_UNICAST_HOPS")?;
            set(libc::SOL_IPV6, libc::IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS")?;
            set(libc::SOL_IPV6, libc::IPV6_RECVHOPLIMIT, 1, "IPV6_RECVHOPLIMIT")?;
            set(libc::SOL_IPV6, libc::IPV6_RECVPKTINFO, 1, "IPV6_RECVPKTINFO")?;
            set(libc::SOL_IPV6, libc::IPV6_RECVERR, 1, "IPV6_RECVERR")?;
        }
        // Kernels before 5.0 do not know UDP_GRO, and then cannot coalesce either.
        let _ = set_option(&socket, libc::SOL_UDP, libc::UDP_GRO, 0);
        socket.bind(&config.bind.into()).map_err(|source| OpenError::Bind { addr: config.bind, source })?;
        let local = socket.local_addr()?.as_socket().unwrap_or(config.bind);
        let out = Self {
            socket,
            local,
            tx_stamps: config.tx_stamps,
            tracker: Mutex::new(Tracker::new(named)),
            sending: Mutex::new(()),
        };
        out.arm(config.tx_stamps).map_err(|source| OpenError::Unsupported {
            what: "software timestamps (SO_TIMESTAMPING)",
            source,
        })?;
        Ok(out)
    }

    /// The address bound to, with the port that was picked.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Bytes of receive buffer that the system granted (its own bookkeeping included, as the kernel counts).
    ///
    /// # Errors
    /// None in practice.
    pub fn recv_buffer(&self) -> io::Result<usize> {
        self.socket.recv_buffer_size()
    }

    /// Switches stamping on with the kernel's count of packets at zero, or transmit stamps off.
    fn arm(&self, tx: bool) -> io::Result<()> {
        let set = |flags: u32| {
            set_option(&self.socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as libc::c_int)
        };
        if !tx {
            // OPT_ID stays, so that stamps under way still carry their keys.
            return set(STAMPS_RX | libc::SOF_TIMESTAMPING_OPT_ID);
        }
        // The kernel zeroes its count when OPT_ID goes from off to on.
        set(STAMPS_RX)?;
        set(STAMPS_RX | STAMPS_TX | libc::SOF_TIMESTAMPING_OPT_ID)
    }

    /// When a packet that has not been told as [`SocketEvent::Sent`] entered the interface's queue: it waits there
    /// still, or the device makes no stamps.
    pub fn entered_queue(&self, id: u64) -> Option<u64> {
        self.tracker().entered(id)
    }

    fn tracker(&self) -> MutexGuard<'_, Tracker> {
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn set_option(
    socket: &impl AsRawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is valid for `len` bytes during the call; an invalid descriptor would only give an error.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), len) })?;
    Ok(())
}

/// The forcing option needs CAP_NET_ADMIN; without it the system's maximum has to do.
fn large_buffer(socket: &socket2::Socket, force: libc::c_int, polite: libc::c_int, bytes: usize) {
    let bytes = bytes.min(i32::MAX as usize / 2) as libc::c_int;
    if set_option(socket, libc::SOL_SOCKET, force, bytes).is_err() {
        let _ = set_option(socket, libc::SOL_SOCKET, polite, bytes);
    }
}

pub(crate) fn bind_interface(socket: &socket2::Socket, name: &str, v4: bool) -> io::Result<()> {
    interface_name(name)?;
    match socket.bind_device(Some(name.as_bytes())) {
        // Kernels before 5.7 want CAP_NET_RAW; choosing the outgoing interface alone is open to all.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            let index = nix::net::if_::if_nametoindex(name)?.to_be() as libc::c_int;
            if v4 {
                set_option(socket, libc::SOL_IP, libc::IP_UNICAST_IF, index)
            } else {
                set_option(socket, libc::SOL_IPV6, libc::IPV6_UNICAST_IF, index)
            }
        }
        other => other,
    }
}

/// Kept open for the life of the process, see [`kernel`].
struct Kernel {
    keys_can_be_named: bool,
    _keeper: Option<UdpSocket>,
}

/// Receive buffer of the keeper, bytes: room for a few of its own packets.
const KEEPER_BUFFER: usize = 16 << 10;

/// Trials and preparations once per process, on a loopback socket of its own:
/// - A trial shows if the kernel takes SCM_TS_OPT_ID (older ones refuse unknown control messages).
/// - The kernel stamps received packets only while some socket asks for it, and switches this on and off a little
///   later than asked. One socket stays open, so that no probe socket loses its first stamps.
fn kernel() -> &'static Kernel {
    static KERNEL: OnceLock<Kernel> = OnceLock::new();
    KERNEL.get_or_init(|| {
        let (send_buffer, recv_buffer) = (0, KEEPER_BUFFER);
        let config =
            UdpConfig { send_buffer, recv_buffer, ..UdpConfig::new((Ipv4Addr::LOCALHOST, 0).into()) };
        let Ok(keeper) = UdpSocket::open_with(&config, true) else {
            return Kernel { keys_can_be_named: false, _keeper: None };
        };
        let hello = [Outgoing::new(0, keeper.local, &[])];
        // Any other error (loopback down, say) comes after the control messages were accepted.
        let keys_can_be_named = !matches!(keeper.send(&hello).error, Some(SendError::Io { source, .. })
            if source.raw_os_error() == Some(libc::EINVAL));
        let (mut batch, mut wall) = (RecvBatch::new(1), WallClock::new());
        let started = now();
        while now() - started < STAMPING_STARTS_NS {
            let _ = keeper.send(&hello);
            let stamped = keeper.recv(&mut batch, &mut wall).is_ok() && batch.iter().any(|r| r.at.is_some());
            if stamped {
                break;
            }
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        Kernel { keys_can_be_named, _keeper: Some(keeper) }
    })
}

/// Makes the preparations of [`UdpSocket::open`] in the calling thread's namespace. The lab does so before it
/// enters another one, which the process's own socket would otherwise keep alive.
#[cfg(feature = "lab")]
pub(crate) fn prepare() {
    kernel();
}
