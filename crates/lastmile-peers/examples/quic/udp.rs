//! The same ends with real sockets.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::Factories;
use crate::side::{Own, Side};

/// A server ends where nothing came for so long after the first packet.
const SILENCE: Duration = Duration::from_secs(1);
/// The longest that an end waits for a packet.
const WAIT: Duration = Duration::from_millis(20);

/// Packets that came, and the next time that is due.
fn turn(side: &mut Side, socket: &UdpSocket, buffer: &mut [u8]) -> Result<bool, Box<dyn Error>> {
    let wait = side.next().map_or(WAIT, |at| at.saturating_duration_since(Instant::now()));
    socket.set_read_timeout(Some(wait.clamp(Duration::from_micros(1), WAIT)))?;
    let came = socket.recv_from(buffer).ok();
    let now = Instant::now();
    if let Some((bytes, from)) = came {
        side.peer = from;
        side.inbound.push_back((now, buffer[..bytes].to_vec()));
    }
    for datagram in side.drive(now)? {
        socket.send_to(&datagram, side.peer)?;
    }
    Ok(came.is_some())
}

/// Takes one transfer, and prints its bytes and their rate from the first to the last.
#[expect(clippy::print_stdout, reason = "an example's output")]
pub(crate) fn serve(port: u16, file: &str) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
    let own = Own::new()?;
    // A reader finds the file whole.
    let draft = format!("{file}.new");
    std::fs::write(&draft, &own.certificate)?;
    std::fs::rename(draft, file)?;
    let mut side = Side::new(1, Some(&own), SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0));
    let (mut buffer, mut heard, mut read) = ([0; 65_536], None::<Instant>, 0);
    let (mut first, mut last) = (None, Instant::now());
    while heard.is_none_or(|at| at.elapsed() < SILENCE) {
        if turn(&mut side, &socket, &mut buffer)? {
            heard = Some(Instant::now());
        }
        let bytes = side.read();
        if bytes > 0 {
            (first, last) = (first.or(heard), Instant::now());
        }
        read += bytes;
    }
    let seconds = first.map_or(0.0, |first| (last - first).as_secs_f64());
    println!("received {read} bytes in {seconds:.3} s: {:.3} Mbit/s", read as f64 * 8e-6 / seconds.max(1e-9));
    Ok(())
}

/// Sends for so long.
pub(crate) fn send(
    to: SocketAddr,
    file: &str,
    time: Duration,
    factory: Factories,
) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    while !std::path::Path::new(file).exists() {
        std::thread::sleep(WAIT);
    }
    let certificate = std::fs::read(file)?.into();
    let mut side = Side::new(1, None, to);
    let begin = Instant::now();
    side.connect(begin, &certificate, factory)?;
    let mut buffer = [0; 65_536];
    while begin.elapsed() < time {
        side.write();
        turn(&mut side, &socket, &mut buffer)?;
    }
    Ok(())
}
