//! A relay of datagrams between two hosts: a NAT that may forget its address, a path that loses and reorders (not every kernel
//! has netem), and a responder of TWAMP Light that answers in a size of its own.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::hosts::Host;

/// Faults of a relay, for packets on their way forth.
#[derive(Clone, Copy, Default)]
pub(super) struct Faults {
    /// Share of packets lost, in percent.
    pub(super) loss: u64,
    /// Share of packets, in percent, that are held for this long while others pass.
    pub(super) held: (u64, Duration),
    /// The relay's address towards the far side changes after this time.
    pub(super) rebound: Option<Duration>,
}

/// Something that runs until dropped.
pub(super) struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn running(host: &Host, step: impl FnMut() + Send + 'static) -> Running {
    let (stop, mut step) = (Arc::new(AtomicBool::new(false)), step);
    let flag = Arc::clone(&stop);
    let thread = host.inside(move || {
        while !flag.load(Ordering::Relaxed) {
            step();
        }
    });
    Running { stop, thread: Some(thread) }
}

/// Passes on what comes to `front` in `host` to `far`, from another port, and what comes back.
pub(super) fn relay(host: &Host, front: &str, far: &str, faults: Faults, seed: u64) -> Running {
    let bind = |address: SocketAddr| {
        let socket = UdpSocket::bind(address).expect("the relay's port");
        socket.set_nonblocking(true).expect("a socket");
        socket
    };
    let (front, far): (SocketAddr, SocketAddr) = (front.parse().unwrap(), far.parse().unwrap());
    let (began, mut dice, mut rebound) = (Instant::now(), seed.wrapping_mul(2) | 1, faults.rebound);
    let mut draw = move || {
        // MMIX by Knuth.
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % 10_000
    };
    let mut sockets = None;
    let (mut client, mut buffer, mut held) = (None, vec![0; 2048], Vec::<(Instant, Vec<u8>)>::new());
    running(host, move || {
        let (near, away) = sockets.get_or_insert_with(|| (bind(front), bind("0.0.0.0:0".parse().unwrap())));
        let now = Instant::now();
        if rebound.take_if(|after| now - began >= *after).is_some() {
            *away = bind("0.0.0.0:0".parse().unwrap());
        }
        let mut idle = true;
        while let Ok((n, from)) = near.recv_from(&mut buffer) {
            (client, idle) = (Some(from), false);
            match draw() {
                lot if lot < faults.loss * 100 => {}
                lot if lot >= 10_000 - faults.held.0 * 100 => {
                    held.push((now + faults.held.1, buffer[..n].to_vec()));
                }
                _ => drop(away.send_to(&buffer[..n], far)),
            }
        }
        while let Ok((n, _)) = away.recv_from(&mut buffer) {
            idle = false;
            let _ = client.map(|client| near.send_to(&buffer[..n], client));
        }
        held.retain(|(until, bytes)| *until > now || away.send_to(bytes, far).is_err());
        if idle {
            std::thread::sleep(Duration::from_micros(100));
        }
    })
}

/// Answers as RFC 5357, 4.2.1 has it, whatever the request's size, with IP packets of `octets`.
pub(super) fn responder(host: &Host, address: &str, octets: usize) -> Running {
    let address: SocketAddr = address.parse().unwrap();
    let (mut socket, mut request) = (None, vec![0; 2048]);
    running(host, move || {
        let socket = socket.get_or_insert_with(|| {
            let socket = UdpSocket::bind(address).expect("the responder's port");
            socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a socket");
            socket
        });
        let Ok((n, from)) = socket.recv_from(&mut request) else { return };
        if n < 14 {
            return;
        }
        // NTP's format: seconds since 1900 and their fraction.
        let unix = std::time::UNIX_EPOCH.elapsed().unwrap();
        let fraction = (u64::from(unix.subsec_nanos()) << 32) / 1_000_000_000;
        let now = ((unix.as_secs() + 2_208_988_800) << 32 | fraction).to_be_bytes();
        let mut reply = vec![0; octets - 28];
        reply[..4].copy_from_slice(&request[..4]);
        reply[4..12].copy_from_slice(&now);
        reply[12..14].copy_from_slice(&[0x80, 1]);
        reply[16..24].copy_from_slice(&now);
        reply[24..38].copy_from_slice(&request[..14]);
        reply[40] = 255;
        let _ = socket.send_to(&reply, from);
    })
}
