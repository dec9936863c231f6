//! The socket against itself on loopback.
use super::*;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::AsFd;

fn open(ip: IpAddr, named: bool) -> UdpSocket {
    let config = UdpConfig::new((ip, 0).into());
    UdpSocket::open_with(&config, kernel().keys_can_be_named && named).expect("loopback socket")
}

/// Both families, and both ways of matching stamps.
fn sockets() -> impl Iterator<Item = (UdpSocket, UdpSocket)> {
    [
        (Ipv4Addr::LOCALHOST.into(), true),
        (Ipv4Addr::LOCALHOST.into(), false),
        (Ipv6Addr::LOCALHOST.into(), true),
    ]
    .into_iter()
    .map(|(ip, named)| (open(ip, named), open(ip, named)))
}

fn events(socket: &UdpSocket, want: usize) -> Vec<SocketEvent> {
    let (mut out, mut wall) = (Vec::new(), WallClock::new());
    let deadline = now() + 2_000_000_000;
    while out.len() < want && now() < deadline {
        if socket.recv_events(&mut out, &mut wall).expect("error queue") == 0 {
            wait_readable(&[socket.as_fd()], Some(deadline)).expect("poll");
        }
    }
    while socket.recv_events(&mut out, &mut wall).expect("error queue") > 0 {}
    out
}

fn receive(socket: &UdpSocket, want: usize) -> Vec<(u64, u8, u8, Vec<u8>)> {
    let (mut batch, mut wall, mut out) = (RecvBatch::default(), WallClock::new(), Vec::new());
    let deadline = now() + 2_000_000_000;
    while out.len() < want && now() < deadline {
        if socket.recv(&mut batch, &mut wall).expect("recv") == 0 {
            wait_readable(&[socket.as_fd()], Some(deadline)).expect("poll");
        }
        for r in batch.iter() {
            assert_eq!(r.hop_limit, Some(255));
            assert_eq!(r.to, Some(socket.local_addr().ip()));
            assert!(!r.truncated && r.interface.is_some_and(|i| i > 0));
            out.push((r.at.expect("receive stamp"), r.ecn, r.dscp, r.payload.to_vec()));
        }
    }
    assert!(wall.take_step().is_none());
    out
}

#[test]
fn ten_back_to_back_have_ten_stamps_both_ways() {
    for (a, b) in sockets() {
        let payloads: Vec<[u8; 1200]> = (0..10).map(|i| [i; 1200]).collect();
        let packets: Vec<_> = payloads
            .iter()
            .enumerate()
            .map(|(i, p)| Outgoing::new(100 + i as u64, b.local_addr(), p))
            .collect();
        let before = now();
        let result = a.send(&packets);
        assert!(result.sent == 10 && result.error.is_none(), "{result:?}");
        let got = receive(&b, 10);
        let sent = events(&a, 10);
        let after = now();
        assert_eq!((got.len(), sent.len()), (10, 10));
        let mut last = before;
        for (i, ((arrived, .., payload), sent)) in got.iter().zip(&sent).enumerate() {
            let SocketEvent::Sent { id, at, .. } = *sent else { panic!("{sent:?}") };
            assert_eq!((id, payload[0]), (100 + i as u64, i as u8));
            // Converting two stamps may add a sampling error each; on loopback sending precedes receiving.
            assert!(at + 2_000 >= last, "packet {i}: sent {at}, the one before {last}");
            assert!(*arrived + 2_000 >= at && *arrived <= after + 2_000);
            last = *arrived;
        }
        let mut stamps: Vec<u64> = got.iter().map(|g| g.0).collect();
        stamps.dedup();
        assert_eq!(stamps.len(), 10, "separate stamps");
    }
}

#[test]
fn marks_arrive_as_sent() {
    for (a, b) in sockets() {
        let marks: Vec<(u8, u8)> = (0..4).flat_map(|ecn| [0, 10, 46, 63].map(|dscp| (ecn, dscp))).collect();
        let packets: Vec<_> = marks
            .iter()
            .map(|&(ecn, dscp)| {
                let from = Some(a.local_addr().ip());
                Outgoing { ecn, dscp, from, ..Outgoing::new(0, b.local_addr(), b"mark") }
            })
            .collect();
        let result = a.send(&packets);
        assert_eq!((result.sent, result.error.is_none()), (16, true));
        let got: Vec<(u8, u8)> = receive(&b, 16).iter().map(|g| (g.1, g.2)).collect();
        assert_eq!(got, marks);
    }
}

#[test]
fn more_than_a_batch_in_one_call() {
    for (a, b) in sockets() {
        let packets: Vec<_> = (0..150).map(|id| Outgoing::new(id, b.local_addr(), &[7; 100])).collect();
        assert_eq!(a.send(&packets).sent, 150);
        assert_eq!(receive(&b, 150).len(), 150);
        let ids: Vec<u64> = events(&a, 150)
            .iter()
            .map(|e| if let SocketEvent::Sent { id, .. } = e { *id } else { 9999 })
            .collect();
        assert_eq!(ids, (0..150).collect::<Vec<_>>());
    }
}

#[test]
fn a_closed_port_is_told_and_stops_nobody() {
    for (a, b) in sockets() {
        let c = open(a.local_addr().ip(), true);
        let closed = c.local_addr();
        drop(c);
        let packets: Vec<_> = (0..20)
            .map(|id| Outgoing::new(id, if id % 2 == 0 { closed } else { b.local_addr() }, b"anybody?"))
            .collect();
        let result = a.send(&packets);
        assert!(result.sent == 20 && result.error.is_none(), "{result:?}");
        assert_eq!(receive(&b, 10).len(), 10);
        let mut wall = WallClock::new();
        assert_eq!(a.recv(&mut RecvBatch::default(), &mut wall).expect("no error from ICMP"), 0);
        let mut faults = 0;
        for event in events(&a, 11) {
            match event {
                SocketEvent::Error(e) => {
                    assert_eq!((e.fault, e.to), (PathFault::PortClosed, Some(closed)));
                    assert_eq!(e.from, Some(closed.ip()));
                    assert!(e.to_string().contains("port closed"));
                    faults += 1;
                }
                SocketEvent::Sent { id, .. } => assert!(id < 20),
            }
        }
        assert!(faults > 0);
    }
}

#[test]
fn failed_sends_do_not_shift_the_stamps() {
    for (a, b) in sockets() {
        let closed = {
            let c = open(a.local_addr().ip(), true);
            c.local_addr()
        };
        let big = vec![0; 65_530];
        let mut windows = Vec::new();
        for id in 0..60 {
            // Refusals leave an error on the socket that the next call meets half way through; a packet that is
            // too big fails before; a batch that fails half way does both.
            let (to, payload) = match id % 7 {
                2 => (closed, &b"refused"[..]),
                5 => (b.local_addr(), &big[..]),
                _ => (b.local_addr(), &b"fine"[..]),
            };
            let before = now();
            let result =
                a.send(&[Outgoing::new(2 * id, to, b"first"), Outgoing::new(2 * id + 1, to, payload)]);
            let after = now();
            match id % 7 {
                5 => assert!(
                    result.sent == 1 && matches!(result.error, Some(SendError::TooBig { payload: 65_530 })),
                    "{result:?}"
                ),
                _ => assert!(result.sent == 2 && result.error.is_none(), "{result:?}"),
            }
            windows.push((before, after, result.sent));
        }
        let sent: usize = windows.iter().map(|w| w.2).sum();
        let named = a.tracker().named();
        std::thread::sleep(std::time::Duration::from_millis(250));
        let stamps = |want| {
            let all = events(&a, want);
            all.into_iter()
                .filter_map(|e| if let SocketEvent::Sent { id, at, .. } = e { Some((id, at)) } else { None })
        };
        let got: Vec<(u64, u64)> = stamps(1).collect();
        for &(id, at) in &got {
            let (before, after, _) = windows[id as usize / 2];
            assert!(at + 2_000 >= before && at <= after + 2_000, "packet {id}: {before} <= {at} <= {after}");
        }
        assert!(got.len() <= sent && got.len() >= if named { sent } else { 4 }, "{} of {sent}", got.len());
        assert_eq!(a.send(&[Outgoing::new(777, b.local_addr(), b"after")]).sent, 1);
        assert_eq!(stamps(1).map(|s| s.0).collect::<Vec<_>>(), [777]);
    }
}

#[test]
fn errors_at_opening_name_the_cause() {
    let taken = open(Ipv4Addr::LOCALHOST.into(), true);
    let again = UdpSocket::open(&UdpConfig::new(taken.local_addr())).expect_err("in use");
    assert!(matches!(&again, OpenError::Bind { addr, .. } if *addr == taken.local_addr()), "{again}");
    let mut config = UdpConfig::new((Ipv4Addr::LOCALHOST, 0).into());
    for name in ["nosuchif0", "", "a-name-longer-than-fifteen"] {
        config.interface = Some(name.into());
        let e = UdpSocket::open(&config).expect_err("no such interface");
        assert!(matches!(e, OpenError::Interface { .. }), "{e}");
    }
    config.interface = Some("lo".into());
    let socket = UdpSocket::open(&config).expect("loopback");
    assert!(socket.recv_buffer().expect("size") > 100_000);
}

#[test]
fn long_packets_are_cut_and_say_so() {
    let (a, b) = sockets().next().expect("sockets");
    assert_eq!(a.send(&[Outgoing::new(0, b.local_addr(), &[5; 300])]).sent, 1);
    let (mut batch, mut wall) = (RecvBatch::new(100), WallClock::new());
    wait_readable(&[b.as_fd()], Some(now() + 1_000_000_000)).expect("poll");
    assert_eq!(b.recv(&mut batch, &mut wall).expect("recv"), 1);
    let got = batch.iter().next().expect("one");
    assert!(got.truncated && got.payload == [5; 100]);
}

/// Loopback's MTU is 65,536 B.
#[test]
fn packets_of_any_size_come_whole() {
    let (a, b) = sockets().next().expect("sockets");
    let packets = [[7; 9_000], [8; 9_000]];
    let sent: Vec<_> = packets.iter().map(|packet| Outgoing::new(0, b.local_addr(), packet)).collect();
    assert_eq!(a.send(&sent).sent, 2);
    let came: Vec<_> = receive(&b, 2).into_iter().map(|(.., payload)| payload).collect();
    assert_eq!(came, packets);
}

#[test]
fn waiting_ends_at_the_deadline() {
    let a = open(Ipv4Addr::LOCALHOST.into(), true);
    let deadline = now() + 5_000_000;
    assert_eq!(wait_readable(&[a.as_fd()], Some(deadline)).expect("poll"), [false]);
    assert!(now() >= deadline);
}
