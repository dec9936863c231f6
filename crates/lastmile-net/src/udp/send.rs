//! Sending batches with per-packet marks.
use super::cmsg::Control;
use super::stamps::Arm;
use super::{BATCH, SCM_TS_OPT_ID, SendError, UdpSocket};
use crate::clock::now;
use crate::sys::check;
use nix::libc;
use socket2::SockAddr;
use std::io;
use std::mem::zeroed;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::PoisonError;

/// Retries of a send because an ICMP error about an earlier packet was in its way.
const RETRIES: usize = 8;

/// One packet to send.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Comes back with the transmit stamp; should be unique among the packets under way.
    pub id: u64,
    /// Destination.
    pub to: SocketAddr,
    /// Source address, for sockets bound to the unspecified address of a host with several.
    pub from: Option<IpAddr>,
    /// ECN code point, 0 to 3 (RFC 3168).
    pub ecn: u8,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// True if its departure is to be stamped, which costs a wake-up; replies need no stamp.
    pub stamp: bool,
    /// UDP payload.
    pub payload: &'a [u8],
}

impl<'a> Outgoing<'a> {
    /// A packet without marks from the default address.
    pub fn new(id: u64, to: SocketAddr, payload: &'a [u8]) -> Self {
        Self { id, to, from: None, ecn: 0, dscp: 0, stamp: true, payload }
    }

    fn tos(&self) -> libc::c_int {
        libc::c_int::from(self.dscp << 2 | self.ecn & 3)
    }

    fn control(&self, key: Option<u32>) -> Control {
        let mut c = Control::EMPTY;
        if let Some(key) = key {
            c.push(libc::SOL_SOCKET, SCM_TS_OPT_ID, key);
        }
        if !self.stamp {
            // No transmit flag in the message: the socket's do not hold for this packet, nor does it count.
            c.push(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, 0_u32);
        }
        if self.to.is_ipv4() {
            if self.tos() != 0 {
                c.push(libc::SOL_IP, libc::IP_TOS, self.tos());
            }
            if let Some(IpAddr::V4(from)) = self.from {
                let addr = |a: Ipv4Addr| libc::in_addr { s_addr: u32::from_ne_bytes(a.octets()) };
                c.push(
                    libc::SOL_IP,
                    libc::IP_PKTINFO,
                    libc::in_pktinfo {
                        ipi_ifindex: 0,
                        ipi_spec_dst: addr(from),
                        ipi_addr: addr(Ipv4Addr::UNSPECIFIED),
                    },
                );
            }
        } else {
            if self.tos() != 0 {
                c.push(libc::SOL_IPV6, libc::IPV6_TCLASS, self.tos());
            }
            if let Some(IpAddr::V6(from)) = self.from {
                c.push(
                    libc::SOL_IPV6,
                    libc::IPV6_PKTINFO,
                    libc::in6_pktinfo {
                        ipi6_addr: libc::in6_addr { s6_addr: from.octets() },
                        ipi6_ifindex: 0,
                    },
                );
            }
        }
        c
    }
}

/// Result of a [`UdpSocket::send`].
#[derive(Debug, Default)]
#[must_use]
pub struct SendResult {
    /// The first so many packets were sent.
    pub sent: usize,
    /// Why the next one was not. The packets after it were not tried.
    pub error: Option<SendError>,
}

impl UdpSocket {
    /// Sends the packets back to back, in order, in as few system calls as possible ([`BATCH`] packets each).
    ///
    /// On an error the caller decides whether to try again from [`SendResult::sent`] or to skip that packet.
    /// The batch is not interrupted by ICMP errors about earlier packets; those come from
    /// [`recv_events`](Self::recv_events).
    pub fn send(&self, packets: &[Outgoing<'_>]) -> SendResult {
        let _one_sender = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sent = 0;
        for chunk in packets.chunks(BATCH) {
            let mut done = 0;
            while let Some(rest) = chunk.get(done..).filter(|r| !r.is_empty()) {
                match self.send_chunk(rest) {
                    Ok(n) => done += n,
                    Err(e) => {
                        let refused = rest[0];
                        let error = SendError::new(e, refused.to, refused.payload.len());
                        return SendResult { sent: sent + done, error: Some(error) };
                    }
                }
            }
            sent += done;
        }
        SendResult { sent, error: None }
    }

    /// Sends at most [`BATCH`] packets; returns how many, at least one, or why the first could not be sent.
    fn send_chunk(&self, packets: &[Outgoing<'_>]) -> io::Result<usize> {
        let packets = packets.get(..BATCH).unwrap_or(packets);
        // All of a chunk have stamps or none, so that a failure is easily counted.
        let same = packets.iter().take_while(|p| p.stamp == packets[0].stamp).count();
        let packets = &packets[..same];
        let mut tries = 0;
        loop {
            let mut keys = [None; BATCH];
            let stamped = self.tx_stamps && packets[0].stamp && self.register(packets, &mut keys)?;
            let result = self.send_raw(packets, &keys);
            let sent = *result.as_ref().unwrap_or(&0);
            if sent < packets.len() && stamped && self.tracker().failed(packets.len() - sent, now()) {
                self.arm(false)?;
            }
            tries += 1;
            match result {
                // An ICMP error waiting on the socket is returned once, by the next call, and says
                // nothing about this packet. A real one comes again.
                Err(e) if tries <= RETRIES && !is_own(&e) => {}
                other => return other,
            }
        }
    }

    /// Announces the packets to the tracker before the send, because another thread may read their stamps before
    /// the call returns. False if these packets will have no stamps.
    fn register(&self, packets: &[Outgoing<'_>], keys: &mut [Option<u32>; BATCH]) -> io::Result<bool> {
        let mut tracker = self.tracker();
        match tracker.before_send(now()) {
            Arm::Keep => {}
            Arm::Restart => self.arm(true)?,
            Arm::Without => return Ok(false),
        }
        let named = tracker.named();
        for (key, packet) in keys.iter_mut().zip(packets) {
            *key = Some(tracker.register(packet.id)).filter(|_| named);
        }
        Ok(true)
    }

    fn send_raw(&self, packets: &[Outgoing<'_>], keys: &[Option<u32>; BATCH]) -> io::Result<usize> {
        let addresses: [Option<SockAddr>; BATCH] =
            std::array::from_fn(|i| packets.get(i).map(|p| p.to.into()));
        let mut controls = [Control::EMPTY; BATCH];
        // SAFETY: `iovec` and `mmsghdr` are plain C structs for which all zeroes (null, length 0) are valid.
        let (mut iovs, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (zeroed(), zeroed()) };
        for (i, packet) in packets.iter().enumerate() {
            let Some(address) = &addresses[i] else { break };
            controls[i] = packet.control(keys[i]);
            // The kernel only reads through this pointer.
            iovs[i].iov_base = packet.payload.as_ptr().cast_mut().cast();
            iovs[i].iov_len = packet.payload.len();
            let h = &mut headers[i].msg_hdr;
            h.msg_name = address.as_ptr().cast_mut().cast();
            h.msg_namelen = address.len();
            h.msg_iov = &raw mut iovs[i];
            h.msg_iovlen = 1;
            if controls[i].len() > 0 {
                h.msg_controllen = controls[i].len() as _;
                h.msg_control = controls[i].as_mut_ptr();
            }
        }
        // SAFETY: the first `packets.len()` headers point to addresses, buffers and control messages that live in
        // this frame or in `packets`, with their exact lengths.
        let n = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                headers.as_mut_ptr(),
                packets.len() as _,
                libc::MSG_NOSIGNAL,
            )
        };
        check(n).map(|n| n as usize)
    }
}

/// Errors of the call itself, which ICMP cannot cause.
fn is_own(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EINVAL | libc::ENOBUFS | libc::EBADF | libc::EFAULT))
}
