//! Runs an [`Iperf3`] client on real sockets: a connection of TCP, and one of our own sockets of UDP for its kernel stamps.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lastmile::endpoint::iperf3::{Closed, Input, Iperf3, Output};
use lastmile::node::Ecn;
use lastmile::time::{Span, Time};

use crate::clock::{WallClock, now as monotonic};
use crate::udp::{Outgoing, RecvBatch, UdpSocket, bind_interface, wait_readable};

/// A server that does not read for so long is given up.
const WRITE: Duration = Duration::from_secs(2);
/// Longest wait, ns: a signal may meet another thread.
const WATCH_NS: u64 = 200_000_000;

/// The way of a client's packets.
#[derive(Debug)]
pub struct Sockets {
    /// The server.
    pub peer: SocketAddr,
    /// The socket of the datagrams, whose address is the connection's too.
    pub udp: UdpSocket,
    /// The only interface to use.
    pub interface: Option<String>,
}

/// Runs `client` until it is finished, or `stop` is set. All that is not for the sockets goes to `told`, with its time.
///
/// # Errors
/// Only faults of this host.
pub fn run(
    client: &mut Iperf3,
    sockets: &Sockets,
    stop: &AtomicBool,
    mut told: impl FnMut(Time, Output),
) -> io::Result<()> {
    let started = monotonic();
    let time = |at: u64| Time::from_nanos(at.saturating_sub(started));
    let (mut wall, mut batch) = (WallClock::new(), RecvBatch::default());
    let (mut control, mut buffer, mut ignored) = (None::<TcpStream>, [0; 4096], Vec::new());
    client.handle(time(monotonic()), Input::Wake);
    loop {
        // Every answer at once: connecting is one, and what it brings asks for more.
        let wake = loop {
            match client.poll() {
                Output::Wait(until) => break until,
                Output::Disconnect => control = None,
                Output::Connect(until) => {
                    let left = (until - time(monotonic())).max(Span::from_millis(1));
                    let made = connect(sockets, Duration::from_secs_f64(left.as_secs_f64()));
                    let input =
                        made.as_ref().map_or_else(|error| Input::Closed(fate(error)), |_| Input::Connected);
                    control = made.ok();
                    client.handle(time(monotonic()), input);
                }
                Output::Control(bytes) => {
                    let sent = control.as_mut().map(|control| control.write_all(&bytes));
                    if !matches!(sent, Some(Ok(()))) {
                        control = None;
                        client.handle(time(monotonic()), Input::Closed(Closed::ByServer));
                    }
                }
                Output::Datagram(payload) => {
                    // A hello that is lost is said again.
                    let _ = sockets
                        .udp
                        .send(&[Outgoing { stamp: false, ..Outgoing::new(0, sockets.peer, &payload) }]);
                }
                other => told(time(monotonic()), other),
            }
        };
        if client.is_finished() {
            return Ok(());
        }
        if stop.load(Ordering::Relaxed) {
            client.handle(time(monotonic()), Input::Interrupted);
            continue;
        }
        let wake = wake.map_or(u64::MAX, |at| started.saturating_add(at.as_nanos()));
        let mut fds = vec![sockets.udp.as_fd()];
        fds.extend(control.as_ref().map(AsFd::as_fd));
        let ready = wait_readable(&fds, Some(wake.min(monotonic() + WATCH_NS)))?;
        if ready.first() == Some(&true) {
            while sockets.udp.recv_events(&mut ignored, &mut wall)? > 0 {}
            ignored.clear();
            let n = sockets.udp.recv(&mut batch, &mut wall)?;
            if wall.take_step().is_some() {
                client.handle(time(monotonic()), Input::ClockStepped);
            }
            // The interface of a link-local address has a number in one alone.
            let end = |address: SocketAddr| (address.ip(), address.port());
            for received in batch.iter().take(n).filter(|received| end(received.from) == end(sockets.peer)) {
                let now = monotonic();
                let at = time(received.at.unwrap_or(now).min(now));
                let (ecn, payload) = (Ecn::from_bits(received.ecn), received.payload);
                client.handle(time(now), Input::Datagram { at, ecn, payload });
            }
        }
        if ready.get(1) == Some(&true)
            && let Some(stream) = &mut control
        {
            let input = match stream.read(&mut buffer) {
                Ok(n) if n > 0 => Input::Control(&buffer[..n]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    Input::Wake
                }
                _ => {
                    control = None;
                    Input::Closed(Closed::ByServer)
                }
            };
            client.handle(time(monotonic()), input);
        }
        client.handle(time(monotonic()), Input::Wake);
    }
}

/// A connection to the server, from the datagrams' address.
fn connect(sockets: &Sockets, within: Duration) -> io::Result<TcpStream> {
    let peer = sockets.peer;
    let socket =
        socket2::Socket::new(socket2::Domain::for_address(peer), socket2::Type::STREAM.cloexec(), None)?;
    if let Some(name) = &sockets.interface {
        bind_interface(&socket, name, peer.is_ipv4())?;
    }
    let local = sockets.udp.local_addr();
    if !local.ip().is_unspecified() {
        socket.bind(&SocketAddr::new(local.ip(), 0).into())?;
    }
    socket.connect_timeout(&peer.into(), within)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE))?;
    // Reads follow a look at the descriptor, which may be wrong.
    stream.set_read_timeout(Some(Duration::from_millis(1)))?;
    Ok(stream)
}

fn fate(error: &io::Error) -> Closed {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Closed::Refused,
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Closed::Silent,
        _ => Closed::Unreachable,
    }
}
