//! A host's link into the lab: a TUN device inside its namespace.
//!
//! Made with ioctls on /dev/net/tun and on sockets of the namespace's thread, about a dozen calls; `tun-rs` does the
//! same with 34 crates, and would still need the queue length, the routes and the quiet IPv6 done here.
use super::LabError;
use super::netns::{NetNs, set_flags};
use crate::sys::{check, interface_ioctl, request};
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

// linux/if_tun.h: _IOW('T', 202, int) and _IOW('T', 212, int).
const TUNSETIFF: u64 = 0x4004_54ca;
const TUNSETSNDBUF: u64 = 0x4004_54d4;

/// Longest wait for an address to become usable.
const ADDRESS_WAIT: Duration = Duration::from_secs(2);

/// Configuration of a TUN device.
#[derive(Clone, Debug)]
pub struct TunConfig {
    /// Name inside the namespace; every host may use the same one.
    pub name: String,
    /// IPv4 address and prefix length.
    pub v4: Option<(Ipv4Addr, u8)>,
    /// IPv6 address and prefix length; usable at once, since duplicate detection is off.
    pub v6: Option<(Ipv6Addr, u8)>,
    /// Subnets behind the link, beside the address's own: address and prefix length. `0.0.0.0/0` is the default
    /// route.
    pub routes: Vec<(IpAddr, u8)>,
    /// Largest IP packet, in bytes.
    pub mtu: u16,
    /// Packets that may wait to be read. Packets beyond are dropped by the kernel, out of the lab's sight, hence
    /// large.
    pub queue: u32,
}

impl TunConfig {
    /// A device without addresses: MTU 1500, room for 10 000 packets.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), v4: None, v6: None, routes: Vec::new(), mtu: 1500, queue: 10_000 }
    }
}

/// An open TUN device; it vanishes when dropped. Reads and writes whole IP packets and never blocks.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

impl Tun {
    /// Makes the device inside the namespace, with addresses and routes, and brings it up.
    ///
    /// # Errors
    /// [`LabError::NeedTun`] if the driver is missing or forbidden, [`LabError::Setup`] with the step that failed.
    pub fn new(host: &NetNs, config: &TunConfig) -> Result<Self, LabError> {
        let name = config.name.clone();
        let opened = host.run(move || open(&name))?;
        let file = opened.map_err(|source| {
            let remedy = match source.raw_os_error() {
                Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
                    "load the driver (modprobe tun) and create /dev/net/tun (mknod /dev/net/tun c 10 200)"
                }
                _ => "run as root, or let users open it (chmod 0666 /dev/net/tun)",
            };
            LabError::NeedTun { source, remedy }
        })?;
        let tun = Self { file };
        let c = config.clone();
        host.step("setting MTU and queue of its TUN device", move || size(&c))?;
        let name = config.name.clone();
        host.step("quieting IPv6 on its TUN device", move || {
            quiet_ipv6(&name);
            Ok(())
        })?;
        if let Some((addr, prefix)) = config.v4 {
            let name = config.name.clone();
            host.step("setting its IPv4 address", move || address_v4(&name, addr, prefix))?;
        }
        let name = config.name.clone();
        host.step("bringing its TUN device up", move || set_flags(&name, libc::IFF_UP as libc::c_short))?;
        if let Some((addr, prefix)) = config.v6 {
            let name = config.name.clone();
            host.step("setting its IPv6 address", move || address_v6(&name, addr, prefix))?;
            host.step("waiting for its IPv6 address", move || usable_v6(addr))?;
        }
        for (to, prefix) in config.routes.iter().copied() {
            let name = config.name.clone();
            host.step("setting a route", move || match to {
                IpAddr::V4(to) => route_v4(&name, to, prefix),
                IpAddr::V6(to) => route_v6(&name, to, prefix),
            })?;
        }
        Ok(tun)
    }

    /// Reads one packet that the host sent; `None` if none waits. A packet longer than `buf` is cut.
    ///
    /// # Errors
    /// The device is down or gone.
    pub fn read(&self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        nonblocking((&self.file).read(buf))
    }

    /// Hands the host one packet; false if it was refused for lack of room (and is lost).
    ///
    /// # Errors
    /// Not an IP packet, or the device is down or gone.
    pub fn write(&self, packet: &[u8]) -> io::Result<bool> {
        Ok(nonblocking((&self.file).write(packet))?.is_some())
    }
}

impl Tun {
    /// Takes the way of [`write`](Self::write) through the kernel up to where a packet that is none is thrown away, so that the
    /// next one finds code and memory in the caches: a write after a pause takes microseconds longer.
    pub(super) fn warm(&self) {
        // No version of IP: the driver refuses it once it is copied.
        let _ = (&self.file).write(&[0; 1_500]);
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn nonblocking(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(n) => Ok(Some(n)),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS)) => Ok(None),
        Err(e) => Err(e),
    }
}

fn open(name: &str) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/net/tun")?;
    let mut req = request(name)?;
    // No packet information header; no virtio header and no offloads, so that the kernel cuts large TCP segments
    // and completes checksums before we see them.
    req.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF takes an `ifreq`, valid for reading and writing.
    check(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &raw mut req) })?;
    // Only the receivers' own buffers limit our writes.
    let all: libc::c_int = libc::c_int::MAX;
    // SAFETY: TUNSETSNDBUF reads an int.
    check(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETSNDBUF as _, &raw const all) })?;
    Ok(file)
}

fn size(config: &TunConfig) -> io::Result<()> {
    let mut req = request(&config.name)?;
    req.ifr_ifru.ifru_mtu = config.mtu.into();
    // SAFETY: SIOCSIFMTU takes an `ifreq`.
    unsafe { interface_ioctl(libc::AF_INET, libc::SIOCSIFMTU, &mut req)? };
    let mut req = request(&config.name)?;
    // ifr_qlen has the same place and type as ifru_metric.
    req.ifr_ifru.ifru_metric = config.queue.min(i32::MAX as u32) as libc::c_int;
    // SAFETY: SIOCSIFTXQLEN takes an `ifreq`.
    match unsafe { interface_ioctl(libc::AF_INET, libc::SIOCSIFTXQLEN, &mut req) } {
        // This one ioctl asks for privilege outside of a user namespace; there the default of 500 packets has to do.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Ok(()),
        done => done,
    }
}

/// Keeps the host's kernel from putting packets of its own on the link: no link-local address, no duplicate
/// detection, no router solicitations, no multicast reports. As well as can be: /proc/sys may be read-only in a
/// container, and the pump drops all but unicast anyway.
fn quiet_ipv6(name: &str) {
    for (key, value) in [
        ("accept_dad", "0"),
        ("dad_transmits", "0"),
        ("accept_ra", "0"),
        ("autoconf", "0"),
        ("router_solicitations", "0"),
        ("addr_gen_mode", "1"),
    ] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/{key}"), value);
    }
}

fn sockaddr_v4(addr: Ipv4Addr) -> libc::sockaddr {
    let a = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(addr.octets()) },
        sin_zero: [0; 8],
    };
    // SAFETY: both are 16-byte C structs that begin with the family; this is how ioctls pass IPv4 addresses.
    unsafe { std::mem::transmute(a) }
}

fn mask_v4(prefix: u8) -> Ipv4Addr {
    u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0).into()
}

fn address_v4(name: &str, addr: Ipv4Addr, prefix: u8) -> io::Result<()> {
    let mut req = request(name)?;
    req.ifr_ifru.ifru_addr = sockaddr_v4(addr);
    // SAFETY: SIOCSIFADDR takes an `ifreq` with an address.
    unsafe { interface_ioctl(libc::AF_INET, libc::SIOCSIFADDR, &mut req)? };
    req.ifr_ifru.ifru_netmask = sockaddr_v4(mask_v4(prefix));
    // SAFETY: SIOCSIFNETMASK takes an `ifreq` with a mask.
    unsafe { interface_ioctl(libc::AF_INET, libc::SIOCSIFNETMASK, &mut req) }
}

fn address_v6(name: &str, addr: Ipv6Addr, prefix: u8) -> io::Result<()> {
    let mut req = libc::in6_ifreq {
        ifr6_addr: libc::in6_addr { s6_addr: addr.octets() },
        ifr6_prefixlen: prefix.min(128).into(),
        ifr6_ifindex: nix::net::if_::if_nametoindex(name)? as libc::c_int,
    };
    // SAFETY: on an IPv6 socket SIOCSIFADDR takes an `in6_ifreq`.
    unsafe { interface_ioctl(libc::AF_INET6, libc::SIOCSIFADDR, &mut req) }
}

/// Waits until the address can be bound to. Without duplicate detection too an address is tentative until a worker of
/// the kernel has looked at it, which takes a while on a busy machine.
fn usable_v6(addr: Ipv6Addr) -> io::Result<()> {
    // net/if_inet6: address, interface, prefix length, scope, flags (linux/if_addr.h), name; all numbers in hex.
    let hex: String = addr.octets().iter().map(|byte| format!("{byte:02x}")).collect();
    let until = Instant::now() + ADDRESS_WAIT;
    loop {
        let list = std::fs::read_to_string("/proc/thread-self/net/if_inet6")?;
        let line = list.lines().find(|line| line.starts_with(&hex));
        let flags = line.and_then(|line| u32::from_str_radix(line.split_whitespace().nth(4)?, 16).ok());
        if flags.is_some_and(|flags| flags & libc::IFA_F_TENTATIVE == 0) {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn route_v4(name: &str, to: Ipv4Addr, prefix: u8) -> io::Result<()> {
    let mask = mask_v4(prefix);
    let mut device: Vec<libc::c_char> = name.bytes().map(|b| b as libc::c_char).chain([0]).collect();
    // SAFETY: a plain C struct; all zeroes are valid.
    let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
    route.rt_dst = sockaddr_v4((u32::from(to) & u32::from(mask)).into());
    route.rt_genmask = sockaddr_v4(mask);
    route.rt_flags = libc::RTF_UP;
    route.rt_dev = device.as_mut_ptr();
    // SAFETY: SIOCADDRT on an IPv4 socket takes an `rtentry`; the device's name outlives the call.
    unsafe { interface_ioctl(libc::AF_INET, libc::SIOCADDRT, &mut route) }
}

/// `struct in6_rtmsg` of linux/ipv6_route.h, whose fields are private in `libc`.
#[repr(C)]
#[derive(Default)]
struct In6Rtmsg {
    dst: [u8; 16],
    src: [u8; 16],
    gateway: [u8; 16],
    kind: u32,
    dst_len: u16,
    src_len: u16,
    metric: u32,
    info: libc::c_ulong,
    flags: u32,
    ifindex: libc::c_int,
}

fn route_v6(name: &str, to: Ipv6Addr, prefix: u8) -> io::Result<()> {
    let prefix = prefix.min(128);
    let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
    let mut route = In6Rtmsg {
        dst: (u128::from(to) & mask).to_be_bytes(),
        dst_len: prefix.into(),
        metric: 1,
        flags: libc::RTF_UP.into(),
        ifindex: nix::net::if_::if_nametoindex(name)? as libc::c_int,
        ..In6Rtmsg::default()
    };
    // SAFETY: SIOCADDRT on an IPv6 socket takes an `in6_rtmsg`.
    unsafe { interface_ioctl(libc::AF_INET6, libc::SIOCADDRT, &mut route) }
}
