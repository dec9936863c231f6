//! Receiving batches of packets, transmit stamps and errors.
use super::cmsg::{self, Control, plain};
use super::errors::{Entry, PathError, entry};
use super::{BATCH, SocketEvent, UdpSocket};
use crate::clock::{WallClock, timespec_ns};
use nix::libc;
use std::io;
use std::mem::zeroed;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

/// A received packet.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Sender's address.
    pub from: SocketAddr,
    /// The local address it was sent to, for replies from the same address.
    pub to: Option<IpAddr>,
    /// Index of the interface it came in by.
    pub interface: Option<u32>,
    /// Monotonic time of the kernel's receive stamp; `None` if the kernel gave none.
    pub at: Option<u64>,
    /// ECN code point on arrival.
    pub ecn: u8,
    /// Differentiated services code point on arrival.
    pub dscp: u8,
    /// Hop limit (TTL) on arrival.
    pub hop_limit: Option<u8>,
    /// The packet was longer than the batch's buffers; `payload` is its beginning.
    pub truncated: bool,
    /// UDP payload.
    pub payload: &'a [u8],
}

#[derive(Clone, Copy)]
struct Meta {
    from: SocketAddr,
    to: Option<IpAddr>,
    interface: Option<u32>,
    at: Option<u64>,
    tos: u8,
    hop_limit: Option<u8>,
    truncated: bool,
    slot: usize,
    len: usize,
}

/// Buffers for up to [`BATCH`] received packets, reused from read to read.
pub struct RecvBatch {
    data: Box<[u8]>,
    size: usize,
    control: Box<[Control]>,
    metas: Vec<Meta>,
}

impl std::fmt::Debug for RecvBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecvBatch")
            .field("len", &self.metas.len())
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl RecvBatch {
    /// Buffers for packets of up to `size` bytes of payload (at least 1).
    pub fn new(size: usize) -> Self {
        let size = size.max(1);
        Self {
            data: vec![0; size * BATCH].into(),
            size,
            control: vec![Control::EMPTY; BATCH].into(),
            metas: Vec::with_capacity(BATCH),
        }
    }

    /// Packets of the last read.
    pub fn len(&self) -> usize {
        self.metas.len()
    }

    /// The last read gave nothing.
    pub fn is_empty(&self) -> bool {
        self.metas.is_empty()
    }

    /// The packets of the last read, in the kernel's order.
    pub fn iter(&self) -> impl Iterator<Item = Received<'_>> {
        self.metas.iter().map(|m| Received {
            from: m.from,
            to: m.to,
            interface: m.interface,
            at: m.at,
            ecn: m.tos & 3,
            dscp: m.tos >> 2,
            hop_limit: m.hop_limit,
            truncated: m.truncated,
            payload: self.data.get(m.slot * self.size..).and_then(|d| d.get(..m.len)).unwrap_or(&[]),
        })
    }
}

impl Default for RecvBatch {
    /// For packets of any size; memory is taken up where they are large.
    fn default() -> Self {
        Self::new(usize::from(u16::MAX))
    }
}

impl UdpSocket {
    /// Reads the packets that have come, up to [`BATCH`], without waiting; returns their number. The stamps are
    /// converted through `wall`, which is refreshed first; look at [`WallClock::take_step`] afterwards.
    ///
    /// # Errors
    /// Only faults of this host. ICMP errors are not errors of this call.
    pub fn recv(&self, batch: &mut RecvBatch, wall: &mut WallClock) -> io::Result<usize> {
        batch.metas.clear();
        let RecvBatch { data, size, control, metas } = batch;
        self.recv_raw(data, *size, control, 0, |slot, header, name| {
            let Some(from) = socket_addr(name) else { return };
            let msg = &header.msg_hdr;
            let mut meta = Meta {
                from,
                to: None,
                interface: None,
                at: None,
                tos: 0,
                hop_limit: None,
                truncated: msg.msg_flags & libc::MSG_TRUNC != 0,
                slot,
                len: header.msg_len as usize,
            };
            // SAFETY: `recv_raw` passes headers whose control buffer the kernel has just filled.
            unsafe { cmsg::each(msg, |level, kind, data| meta.take(level, kind, data)) };
            metas.push(meta);
        })?;
        wall.refresh();
        for meta in metas.iter_mut() {
            meta.at = meta.at.map(|stamp| wall.to_mono(stamp));
        }
        Ok(metas.len())
    }

    /// Reads transmit stamps and ICMP errors that have come, up to [`BATCH`], without waiting; appends them to
    /// `out` and returns the number of entries that the kernel had. Must be called whenever the socket is readable, until it
    /// returns 0: entries left behind keep it readable.
    ///
    /// # Errors
    /// Only faults of this host.
    pub fn recv_events(&self, out: &mut Vec<SocketEvent>, wall: &mut WallClock) -> io::Result<usize> {
        // The payload of a rejected packet is of no interest.
        let mut data = [0; BATCH];
        let mut control = [Control::EMPTY; BATCH];
        let mut found: Vec<(Entry, Option<u64>, Option<SocketAddr>)> = Vec::new();
        let count = self.recv_raw(&mut data, 1, &mut control, libc::MSG_ERRQUEUE, |_, header, name| {
            let (mut what, mut stamp) = (Entry::Ignored, None);
            // SAFETY: `recv_raw` passes headers whose control buffer the kernel has just filled.
            unsafe {
                cmsg::each(&header.msg_hdr, |level, kind, data| match (level, kind) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => stamp = software_stamp(data),
                    (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
                        what = entry(data)
                    }
                    _ => {}
                });
            }
            found.push((what, stamp, socket_addr(name)));
        })?;
        if found.is_empty() {
            return Ok(count);
        }
        wall.refresh();
        let mut tracker = self.tracker();
        for (what, stamp, to) in found {
            match (what, stamp) {
                (Entry::Stamp { key, what }, Some(stamp)) => {
                    out.extend(tracker.stamped(key, what, wall.to_mono(stamp)));
                }
                (Entry::Icmp { from, fault }, _) => {
                    out.push(SocketEvent::Error(PathError { to, from, fault }))
                }
                _ => {}
            }
        }
        Ok(count)
    }

    /// One recvmmsg: calls `f` with slot, header and sender's address of each message, returns their number.
    fn recv_raw(
        &self,
        data: &mut [u8],
        size: usize,
        control: &mut [Control],
        flags: libc::c_int,
        mut f: impl FnMut(usize, &libc::mmsghdr, &libc::sockaddr_storage),
    ) -> io::Result<usize> {
        // SAFETY: plain C structs for which all zeroes are valid; family 0 in `names` means "no address".
        let (mut names, mut iovs, mut headers): (
            [libc::sockaddr_storage; BATCH],
            [libc::iovec; BATCH],
            [libc::mmsghdr; BATCH],
        ) = unsafe { (zeroed(), zeroed(), zeroed()) };
        let mut slots = 0;
        for ((buffer, control), i) in data.chunks_exact_mut(size).zip(control).zip(0..BATCH) {
            iovs[i].iov_base = buffer.as_mut_ptr().cast();
            iovs[i].iov_len = buffer.len();
            let h = &mut headers[i].msg_hdr;
            h.msg_name = (&raw mut names[i]).cast();
            h.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            h.msg_iov = &raw mut iovs[i];
            h.msg_iovlen = 1;
            h.msg_control = control.as_mut_ptr();
            h.msg_controllen = control.capacity() as _;
            slots = i + 1;
        }
        for _ in 0..=BATCH {
            // SAFETY: the first `slots` headers point to distinct buffers with their exact lengths, all of which
            // outlive the call; no timeout.
            let n = unsafe {
                libc::recvmmsg(
                    self.socket.as_raw_fd(),
                    headers.as_mut_ptr(),
                    slots as _,
                    flags | libc::MSG_DONTWAIT,
                    std::ptr::null_mut(),
                )
            };
            if n >= 0 {
                let n = n as usize;
                for i in 0..n {
                    f(i, &headers[i], &names[i]);
                }
                return Ok(n);
            }
            let e = io::Error::last_os_error();
            match e.raw_os_error() {
                Some(libc::EAGAIN) => return Ok(0),
                Some(libc::EBADF | libc::EFAULT | libc::EINVAL | libc::ENOMEM | libc::ENOTSOCK) => {
                    return Err(e);
                }
                // An ICMP error waiting on the socket is returned once, by the next call.
                _ => {}
            }
        }
        Ok(0)
    }
}

impl Meta {
    fn take(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => self.at = software_stamp(data),
            (libc::SOL_IP, libc::IP_TOS) => self.tos = data.first().copied().unwrap_or(0),
            (libc::SOL_IPV6, libc::IPV6_TCLASS) => self.tos = plain::<libc::c_int>(data).unwrap_or(0) as u8,
            (libc::SOL_IP, libc::IP_TTL) | (libc::SOL_IPV6, libc::IPV6_HOPLIMIT) => {
                self.hop_limit = plain::<libc::c_int>(data).and_then(|v| u8::try_from(v).ok());
            }
            (libc::SOL_IP, libc::IP_PKTINFO) => {
                if let Some(info) = plain::<libc::in_pktinfo>(data) {
                    self.to = Some(IpAddr::from(info.ipi_addr.s_addr.to_ne_bytes()));
                    self.interface = u32::try_from(info.ipi_ifindex).ok();
                }
            }
            (libc::SOL_IPV6, libc::IPV6_PKTINFO) => {
                if let Some(info) = plain::<libc::in6_pktinfo>(data) {
                    self.to = Some(IpAddr::from(info.ipi6_addr.s6_addr));
                    self.interface = Some(info.ipi6_ifindex);
                }
            }
            _ => {}
        }
    }
}

/// The first of the three timestamps is the software one; zero means there is none.
fn software_stamp(data: &[u8]) -> Option<u64> {
    plain::<[libc::timespec; 3]>(data).map(|t| timespec_ns(&t[0])).filter(|ns| *ns != 0)
}

fn socket_addr(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match libc::c_int::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that the kernel wrote a `sockaddr_in`, for which the storage is large and
            // aligned enough.
            let a = unsafe { &*std::ptr::from_ref(name).cast::<libc::sockaddr_in>() };
            Some(SocketAddrV4::new(a.sin_addr.s_addr.to_ne_bytes().into(), u16::from_be(a.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above, for `sockaddr_in6`.
            let a = unsafe { &*std::ptr::from_ref(name).cast::<libc::sockaddr_in6>() };
            let ip = a.sin6_addr.s6_addr.into();
            Some(SocketAddrV6::new(ip, u16::from_be(a.sin6_port), a.sin6_flowinfo, a.sin6_scope_id).into())
        }
        _ => None,
    }
}
