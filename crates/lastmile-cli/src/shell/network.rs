//! Addresses, keys, seeds and sockets for the commands that use a real network.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use lastmile::Key;
use lastmile_net::driver::{Driver, DriverConfig};
use lastmile_net::udp::{OpenError, UdpConfig, UdpSocket};

use crate::shell::exit::Exit;

/// Default port of measurements; STAMP's own, 862, is privileged.
pub(crate) const DEFAULT_PORT: u16 = 8620;
/// Default port of media (RFC 3551, section 8).
pub(crate) const MEDIA_PORT: u16 = 5004;

/// Options of every command that opens a socket.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct SocketArgs {
    /// Local address to use
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
    /// Network interface to use
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,
    /// Keep deadlines with real-time priority (SCHED_FIFO); needs root or CAP_SYS_NICE
    #[arg(long)]
    pub(crate) realtime: bool,
}

/// The key of both ends of a measurement.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct KeyArgs {
    /// File with the key that both sides share (HMAC-SHA-256): 16 bytes or more; a line end at its end does not count
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

impl KeyArgs {
    /// The key, if a file is named.
    pub(crate) fn key(&self) -> anyhow::Result<Option<Key>> {
        self.key_file.as_deref().map(read_key).transpose()
    }
}

impl SocketArgs {
    /// Opens the sockets of an answering program: of both families, unless an address is named.
    pub(crate) fn listen(&self, port: u16) -> anyhow::Result<Vec<UdpSocket>> {
        if let Some(ip) = self.bind {
            return Ok(vec![self.open(ip, port)?]);
        }
        let mut sockets = vec![self.open(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)?];
        let port = sockets[0].local_addr().port();
        match self.open(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port) {
            Ok(socket) => sockets.push(socket),
            Err(error) => crate::shell::note(&format!("IPv4 alone: {error:#}")),
        }
        Ok(sockets)
    }

    /// Driver of an endpoint on these sockets.
    pub(crate) fn driver(&self, sockets: Vec<UdpSocket>) -> anyhow::Result<Driver> {
        Driver::new(sockets, DriverConfig { realtime: self.realtime, ..DriverConfig::default() }).map_err(
            |error| {
                let advice = if self.realtime { "; without --realtime it needs no privilege" } else { "" };
                Exit::Machine.blame(anyhow!("cannot start: {error}{advice}"))
            },
        )
    }

    /// Opens a socket on `port`.
    pub(crate) fn open(&self, ip: IpAddr, port: u16) -> anyhow::Result<UdpSocket> {
        let bind = SocketAddr::new(self.bind.unwrap_or(ip), port);
        let config = UdpConfig { interface: self.interface.clone(), ..UdpConfig::new(bind) };
        UdpSocket::open(&config).map_err(|error| match error {
            OpenError::Bind { addr, source } => {
                let advice = unbound(&source, port);
                Exit::Usage.blame(anyhow!("cannot bind to {addr}: {source}{advice}"))
            }
            OpenError::Interface { .. } => Exit::Usage.blame(error),
            _ => Exit::Machine.blame(error),
        })
    }
}

/// The option that mends a refused address; port 0 is the system's choice.
fn unbound(error: &io::Error, port: u16) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse if port > 0 => {
            "; choose another port by --port, or another address by --bind"
        }
        io::ErrorKind::PermissionDenied if port > 0 => "; choose a port from 1024 on by --port",
        io::ErrorKind::AddrNotAvailable => "; --bind takes an address of this host",
        _ => "",
    }
}

/// The bytes of a file with a key; a note says that others on this machine may read or change it.
pub(crate) fn read_secret(path: &Path) -> anyhow::Result<Vec<u8>> {
    let name = path.display();
    let read = || Ok((fs::read(path)?, fs::metadata(path)?.permissions().mode()));
    let read: std::io::Result<_> = read();
    let read = read.with_context(|| format!("cannot read the key file {name}"));
    let (bytes, mode) = read.map_err(|error| Exit::Usage.blame(error))?;
    let may = match (mode & 0o044 != 0, mode & 0o022 != 0) {
        (false, false) => None,
        (true, false) => Some("read"),
        (false, true) => Some("change"),
        (true, true) => Some("read and change"),
    };
    // A pipe or a device has no key that stays.
    if let Some(may) = may.filter(|_| path.is_file()) {
        crate::shell::note(&format!("others on this machine may {may} the key in {name}: chmod 600 {name}"));
    }
    Ok(bytes)
}

/// The key in a file: its bytes without the line end that an editor leaves behind the last line, which a note says.
pub(crate) fn read_key(path: &Path) -> anyhow::Result<Key> {
    let name = path.display();
    let mut bytes = read_secret(path)?;
    if bytes.pop_if(|last| *last == b'\n').is_some() {
        bytes.pop_if(|last| *last == b'\r');
        crate::shell::note(&format!("the line end behind the last line of {name} is not part of the key"));
    }
    Key::new(&bytes).map_err(|error| Exit::Usage.blame(anyhow!("{name}: {error}")))
}

/// The address of a host given as `HOST`, `HOST:PORT`, `ADDRESS` or `[ADDRESS]:PORT`; the default is `port`.
pub(crate) fn resolve(host: &str, port: u16, bind: Option<IpAddr>) -> anyhow::Result<SocketAddr> {
    let unknown = |why: String| Exit::Peer.blame(anyhow!("unknown host {host:?}: {why}"));
    let fits = |a: &SocketAddr| bind.is_none_or(|b| b.is_ipv4() == a.is_ipv4());
    let ip = || host.trim_matches(['[', ']']).parse().map(|ip: IpAddr| SocketAddr::new(ip, port));
    if let Ok(address) = host.parse().or_else(|_| ip()) {
        return match fits(&address) {
            true => Ok(address),
            false => Err(Exit::Usage.blame(anyhow!("{host} and --bind are of different families"))),
        };
    }
    let (name, named) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, "")) => (name, None),
        Some((name, rest)) => (name, Some(rest.strip_prefix(':').unwrap_or(rest))),
        // An address of IPv6 names its interface, as in fe80::1%eth0.
        None if host.contains('%') => (host, None),
        None => host.rsplit_once(':').map_or((host, None), |(name, named)| (name, Some(named))),
    };
    let port = match named.map(str::parse) {
        None => port,
        Some(Ok(port)) => port,
        Some(Err(_)) => {
            let named = named.unwrap_or_default();
            return Err(Exit::Usage.blame(anyhow!("{named:?} in {host:?} is not a port")));
        }
    };
    let found = (name, port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    found.into_iter().find(fits).ok_or_else(|| unknown("it has no address of the family asked for".into()))
}

/// The same of a host that is sent to, with a port of `--port`, which stands for one in the name.
pub(crate) fn resolve_at(
    host: &str,
    port: Option<u16>,
    default: u16,
    bind: Option<IpAddr>,
) -> anyhow::Result<SocketAddr> {
    let address = resolve(host, port.unwrap_or(default), bind)?;
    if address.ip().is_multicast() || address.ip() == Ipv4Addr::BROADCAST {
        let why = format!("{address} is a group of hosts: packets go to one host, which answers them");
        return Err(Exit::Usage.blame(anyhow!(why)));
    }
    if address.ip().is_unspecified() {
        return Err(Exit::Usage.blame(anyhow!("{address} is the address of no host")));
    }
    if address.port() == 0 {
        return Err(Exit::Usage.blame(anyhow!("{host:?}: nobody listens on port 0")));
    }
    match port.filter(|port| *port != address.port()) {
        Some(port) => Err(Exit::Usage
            .blame(anyhow!("{host} names port {} and --port {port}: leave out one of them", address.port()))),
        None => Ok(address),
    }
}

/// The unspecified address of the family of `ip`.
pub(crate) fn any(ip: IpAddr) -> IpAddr {
    if ip.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

/// The address from which this host sends to `peer`, by its routes; nothing is sent.
pub(crate) fn source(peer: SocketAddr, bind: Option<IpAddr>) -> Option<IpAddr> {
    let socket = std::net::UdpSocket::bind((bind.unwrap_or(any(peer.ip())), 0)).ok()?;
    socket.connect(peer).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// 32 bytes that nobody can guess, from the system.
pub(crate) fn random_seed() -> anyhow::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|error| Exit::Machine.blame(anyhow!("the system gives no random bytes: {error}")))?;
    Ok(seed)
}

/// Two numbers that nobody can guess, from the system.
pub(crate) fn random_numbers() -> anyhow::Result<(u32, u64)> {
    let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = random_seed()?;
    Ok((u32::from_be_bytes([a, b, c, d]), u64::from_be_bytes([e, f, g, h, i, j, k, l])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_in_every_form() {
        let resolved = |text| resolve(text, DEFAULT_PORT, None).unwrap().to_string();
        assert_eq!(resolved("192.0.2.1"), "192.0.2.1:8620");
        assert_eq!(resolved("192.0.2.1:862"), "192.0.2.1:862");
        assert_eq!(resolved("::1"), "[::1]:8620");
        assert_eq!(resolved("[::1]"), "[::1]:8620");
        assert_eq!(resolved("[::1]:7"), "[::1]:7");
        assert_eq!(resolved("fe80::1%lo"), "[fe80::1%1]:8620");
        assert_eq!(resolved("[fe80::1%lo]:7"), "[fe80::1%1]:7");
        let at = |text, port| resolve_at(text, port, DEFAULT_PORT, None).map(|address| address.port());
        assert_eq!((at("192.0.2.1", Some(7)).unwrap(), at("192.0.2.1:7", Some(7)).unwrap()), (7, 7));
        assert_eq!((at("::1", None).unwrap(), at("192.0.2.1:9", None).unwrap()), (DEFAULT_PORT, 9));
        assert!(at("192.0.2.1:9", Some(7)).unwrap_err().to_string().contains("leave out one"));
        assert!(
            resolve("192.0.2.1:port", DEFAULT_PORT, None).unwrap_err().to_string().contains("not a port")
        );
    }
}
