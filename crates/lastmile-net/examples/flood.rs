//! A client that loads a reflector on this host: `cargo run --release --example flood -p lastmile-net -- PEER
//! packets SECONDS` sends plain STAMP packets as fast as their replies come, and counts these; `PEER sessions N` opens
//! N sessions, logs a stream of 60 packets in each, and waits for a line on standard input, so that the reflector's
//! memory can be looked at (`grep VmHWM /proc/PID/status`). Without PEER it serves itself, with no limits:
//! `serve ADDRESS`.

use std::error::Error;
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use lastmile::endpoint::measure::{Limits, Reflector, ReflectorConfig};
use lastmile::wire::private::{Abilities, HelloReply, HelloRequest, StreamTag};
use lastmile::wire::{
    ControlCode, ErrorEstimate, Mode, OPEN_LEN, PacketBuilder, Padding, SenderPacket, TlvType, TlvValue,
    Tlvs, tlv_area,
};
use lastmile_net::driver::{Driver, DriverConfig};
use lastmile_net::udp::{UdpConfig, UdpSocket};
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg};

/// Packets of one system call.
const BATCH: usize = 32;
/// Packets on their way at a time: less than the reflector's receive buffer holds.
const WINDOW: usize = 192;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["serve", address] => serve(address.parse()?),
        [peer, "packets", seconds] => packets(peer.parse()?, Duration::from_secs_f64(seconds.parse()?)),
        [peer, "sessions", n] => sessions(peer.parse()?, n.parse()?),
        _ => Err("usage: flood serve ADDRESS:PORT | PEER packets SECONDS | PEER sessions N".into()),
    }
}

fn serve(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let mut driver = Driver::new(vec![UdpSocket::open(&UdpConfig::new(address))?], DriverConfig::default())?;
    let limits = Limits::unlimited();
    let mut reflector =
        Reflector::new(ReflectorConfig { epoch: driver.epoch(), limits, ..ReflectorConfig::new([7; 32]) });
    driver.run(&mut reflector, &mut |_| {}, &AtomicBool::new(false), |_| false)?;
    Ok(())
}

fn base(sequence: u32) -> SenderPacket {
    SenderPacket { sequence, timestamp: 1, error: ErrorEstimate::from_bits(1), ssid: 1 }
}

#[expect(clippy::print_stdout, reason = "an example's output")]
fn packets(peer: SocketAddr, lasts: Duration) -> Result<(), Box<dyn Error>> {
    let socket = StdSocket::bind("127.0.0.1:0")?;
    socket.connect(peer)?;
    socket.set_read_timeout(Some(Duration::from_millis(20)))?;
    let mut probe = Vec::new();
    PacketBuilder::sender(&mut probe, Mode::Open, &base(0));
    let fd = socket.as_raw_fd();
    let mut replies = [[0_u8; 2 * OPEN_LEN]; BATCH];
    let outgoing: Vec<_> = (0..BATCH).map(|_| [std::io::IoSlice::new(&probe)]).collect();
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, None);
    let mut in_headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, None);
    let (mut sent, mut received, mut open, mut lost) = (0_u64, 0_u64, 0_usize, 0_u64);
    let started = Instant::now();
    while started.elapsed() < lasts {
        while open + BATCH <= WINDOW {
            let done = sendmmsg(fd, &mut headers, &outgoing, [None; BATCH], [], MsgFlags::empty())?.count();
            sent += done as u64;
            open += done;
        }
        let mut incoming: Vec<_> = replies.iter_mut().map(|r| [std::io::IoSliceMut::new(r)]).collect();
        match recvmmsg(fd, &mut in_headers, incoming.iter_mut(), MsgFlags::MSG_WAITFORONE, None) {
            Ok(messages) => {
                let n = messages.filter(|m| m.bytes == OPEN_LEN).count();
                received += n as u64;
                open = open.saturating_sub(n);
            }
            // Packets that did not come by now are lost.
            Err(_) => {
                lost += open as u64;
                open = 0;
            }
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{sent} sent, {received} reflected, {lost} lost: {:.0} packets/s", received as f64 / seconds);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example's output")]
fn sessions(peer: SocketAddr, n: u16) -> Result<(), Box<dyn Error>> {
    let mut sockets = Vec::new();
    let mut packet = Vec::new();
    for i in 0..n {
        // A source of its own for each few sessions: reflectors bound the sessions of one.
        let socket = StdSocket::bind(SocketAddr::from(([127, 0, 1, (i / 50) as u8 + 1], 0)))?;
        socket.connect(peer)?;
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        let hello =
            HelloRequest { version_min: 1, version_max: 1, wanted: Abilities::ECN, nonce: 1, token: [0; 16] };
        PacketBuilder::sender(&mut packet, Mode::Open, &base(0)).tlv(&hello)?;
        socket.send(&packet)?;
        let mut reply = [0; 2_000];
        let length = socket.recv(&mut reply)?;
        let tlv =
            Tlvs::new(tlv_area(Mode::Open, &reply[..length])).flatten().find(|t| t.kind == TlvType::HELLO);
        let token = HelloReply::decode_value(tlv.ok_or("no hello came back")?.value)?.offer.token;
        for index in 0..60 {
            let tag = StreamTag { stream: 1, index, count: 60, burst: 0, token };
            PacketBuilder::sender(&mut packet, Mode::Open, &base(u32::from(index)))
                .tlv(&tag)?
                .tlv(&ControlCode::NoReply)?
                .pad_to(1_460, Padding::Zeros)?;
            socket.send(&packet)?;
        }
        sockets.push(socket);
    }
    println!("{n} sessions are open; Enter ends them");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}
