//! Two hosts, a copy loop between their TUN devices, real sockets and real programs.
use super::ip;
use super::*;
use crate::clock::{WallClock, now};
use crate::udp::{Outgoing, RecvBatch, SocketEvent, UdpConfig, UdpSocket, wait_readable};
use nix::libc;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// `None`, with the reason printed, where the system does not allow it.
#[allow(clippy::print_stderr, reason = "a test that cannot run says so")]
fn permitted<T>(made: Result<T, LabError>) -> Option<T> {
    match made {
        Ok(host) => Some(host),
        Err(e @ (LabError::NeedNamespaces { .. } | LabError::NeedTun { .. })) => {
            eprintln!("skipped: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

fn link(host: &NetNs, last: u8) -> Option<Tun> {
    let config = TunConfig {
        v4: Some(([10, 77, last, 2].into(), 24)),
        v6: Some(([0xfd77, 0, 0, last.into(), 0, 0, 0, 2].into(), 64)),
        routes: vec![([10, 77, 0, 0].into(), 16), (IpAddr::from([0xfd77, 0, 0, 0, 0, 0, 0, 0]), 32)],
        ..TunConfig::new("lab0")
    };
    permitted(Tun::new(host, &config))
}

fn socket(host: &NetNs, addr: IpAddr) -> UdpSocket {
    host.run(move || UdpSocket::open(&UdpConfig::new((addr, 0).into())))
        .expect("host")
        .expect("socket at once")
}

fn receive(s: &UdpSocket) -> (SocketAddr, u64, u8, u8, Vec<u8>) {
    let (mut batch, mut wall) = (RecvBatch::default(), WallClock::new());
    let deadline = now() + 2_000_000_000;
    loop {
        s.recv(&mut batch, &mut wall).expect("recv");
        if let Some(r) = batch.iter().next() {
            return (r.from, r.at.expect("stamp"), r.ecn, r.dscp, r.payload.to_vec());
        }
        assert!(now() < deadline, "nothing came");
        wait_readable(&[s.as_fd()], Some(deadline)).expect("poll");
    }
}

fn sent(s: &UdpSocket) -> u64 {
    let (mut out, mut wall) = (Vec::new(), WallClock::new());
    let deadline = now() + 2_000_000_000;
    loop {
        s.recv_events(&mut out, &mut wall).expect("events");
        if let Some(SocketEvent::Sent { at, .. }) = out.first() {
            return *at;
        }
        assert!(now() < deadline, "no transmit stamp");
        wait_readable(&[s.as_fd()], Some(deadline)).expect("poll");
    }
}

/// The machine's own, which the lab leaves alone: its hosts have no names there.
fn named_namespaces() -> BTreeSet<OsString> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect()
}

#[test]
fn datagrams_cross_two_hosts_with_stamps_and_leave_nothing() {
    let named = named_namespaces();
    let Some((a, b)) = permitted(NetNs::new("a")).zip(permitted(NetNs::new("b"))) else { return };
    let Some((tun_a, tun_b)) = link(&a, 1).zip(link(&b, 2)) else { return };
    let inside = a.run(|| std::fs::read_to_string("/proc/thread-self/net/dev")).expect("host").expect("list");
    assert!(inside.contains("lab0:"), "{inside}");
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let copy = std::thread::spawn(move || {
        let (mut buf, mut strays) = (vec![0; 2000], 0);
        while !stopped.load(Ordering::Relaxed) {
            for (from, to) in [(&tun_a, &tun_b), (&tun_b, &tun_a)] {
                while let Some(n) = from.read(&mut buf).expect("read") {
                    let packet = &mut buf[..n];
                    let head = ip::parse(packet).expect("IP from the kernel");
                    assert_eq!(head.total_len, n);
                    strays += usize::from(!ip::is_unicast(head.dst));
                    assert!(ip::set_ecn(packet, head.ecn | 1));
                    assert!(to.write(packet).expect("write"));
                }
            }
            wait_readable(&[tun_a.as_fd(), tun_b.as_fd()], Some(now() + 5_000_000)).expect("poll");
        }
        strays
    });
    for (at_a, at_b) in [
        (IpAddr::from([10, 77, 1, 2]), IpAddr::from([10, 77, 2, 2])),
        ([0xfd77, 0, 0, 1, 0, 0, 0, 2].into(), [0xfd77, 0, 0, 2, 0, 0, 0, 2].into()),
    ] {
        let (s, r) = (socket(&a, at_a), socket(&b, at_b));
        for (one, other) in [(&s, &r), (&r, &s)] {
            let before = now();
            let packet = Outgoing { ecn: 2, dscp: 46, ..Outgoing::new(5, other.local_addr(), &[3; 1400]) };
            assert_eq!(one.send(&[packet]).sent, 1);
            let (from, arrived, ecn, dscp, payload) = receive(other);
            let left = sent(one);
            assert_eq!((from, ecn, dscp, payload), (one.local_addr(), 3, 46, vec![3; 1400]));
            assert!(before <= left + 2_000 && left <= arrived + 2_000 && arrived <= now() + 2_000);
        }
    }
    stop.store(true, Ordering::Relaxed);
    assert_eq!(copy.join().expect("copy loop"), 0, "packets that nobody sent");
    drop((a, b));
    let outside = std::fs::read_to_string("/proc/net/dev").expect("list");
    assert!(!outside.contains("lab0"), "{outside}");
    assert_eq!(named_namespaces(), named, "named namespaces");
}

#[test]
fn a_device_vanishes_with_its_handle() {
    let Some(host) = permitted(NetNs::new("c")) else { return };
    let Some(tun) = link(&host, 3) else { return };
    assert_eq!(host.interfaces().expect("list").iter().filter(|n| *n == "lab0").count(), 1);
    let config = TunConfig::new("lab0");
    assert!(Tun::new(&host, &config).is_err(), "the name is taken");
    drop(tun);
    assert!(!host.interfaces().expect("list").contains(&"lab0".to_owned()));
    let e = Tun::new(&host, &TunConfig::new("a-name-that-is-too-long")).expect_err("name");
    assert!(e.to_string().contains("15 bytes"), "{e}");
}

#[test]
fn a_panic_in_a_host_is_the_callers() {
    let Some(host) = permitted(NetNs::new("d")) else { return };
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.run(|| panic!("inside"))));
    assert!(caught.is_err());
    assert_eq!(host.run(|| 6 * 7).expect("still there"), 42);
    let inside = host.spawn(|| std::fs::read_link("/proc/thread-self/ns/net")).expect("thread");
    let thread = host.run(|| std::fs::read_link("/proc/thread-self/ns/net")).expect("host");
    assert_eq!(inside.join().expect("thread").expect("link"), thread.expect("link"));
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(Stdio::piped());
    command
}

#[test]
fn a_program_runs_inside_and_its_status_comes_out() {
    let Some(host) = permitted(NetNs::new("e")) else { return };
    let Some(_tun) = link(&host, 5) else { return };
    let mut child = LabChild::spawn(&host, shell("cat /proc/self/net/dev; exit 7")).expect("start");
    let mut text = String::new();
    child.take_stdout().expect("piped").read_to_string(&mut text).expect("output");
    assert!(text.contains("lab0:"), "{text}");
    assert_eq!(child.wait().expect("status").code(), Some(7));
    let mut child = LabChild::spawn(&host, shell("kill -9 $$")).expect("start");
    assert_eq!(child.wait().expect("status").code(), Some(128 + 9));
    let e = LabChild::spawn(&host, Command::new("no-such-program-here")).expect_err("no program");
    assert!(e.to_string().starts_with("host e: cannot start no-such-program-here"), "{e}");
    let mut child = LabChild::spawn(
        &host,
        shell("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done"),
    )
    .expect("start");
    let mut out = child.take_stdout().expect("piped");
    out.read_exact(&mut [0; 6]).expect("ready");
    assert_eq!(child.terminate(Duration::from_secs(5)).expect("status").code(), Some(3));
    text.clear();
    out.read_to_string(&mut text).expect("output");
    assert_eq!(text, "bye\n");
}

#[test]
fn output_is_forwarded_line_by_line() {
    #[derive(Clone, Default)]
    struct Shared(Arc<std::sync::Mutex<Vec<u8>>>);
    impl std::io::Write for Shared {
        fn write(&mut self, b: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("lock").extend_from_slice(b);
            Ok(b.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let to = Shared::default();
    child::forward(&b"one\ntwo"[..], "[h] ".into(), to.clone()).expect("thread").join().expect("end");
    assert_eq!(*to.0.lock().expect("lock"), b"[h] one\n[h] two\n");
}

/// Numbers of the processes whose command line contains `mark`.
fn processes(mark: &str) -> Vec<i32> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    all.flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|c| String::from_utf8_lossy(&c).contains(mark))
        })
        .collect()
}

fn all_gone(mark: &str) -> bool {
    let until = Instant::now() + Duration::from_secs(5);
    while !processes(mark).is_empty() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// A program with a child in a session of its own, which no signal to the group reaches.
fn family(host: &NetNs, mark: &str) -> LabChild {
    let script = format!("setsid sleep {mark} & sleep {mark} & echo ready; wait");
    let mut child = LabChild::spawn(host, shell(&script)).expect("start");
    child.take_stdout().expect("piped").read_exact(&mut [0; 6]).expect("ready");
    child
}

#[test]
fn nothing_outlives_a_dropped_child_or_host() {
    let Some(host) = permitted(NetNs::new("f")) else { return };
    let mark = format!("1000{}1", std::process::id());
    let child = family(&host, &mark);
    assert!(processes(&mark).len() >= 2);
    drop(child);
    assert!(all_gone(&mark));
    let mark = format!("1000{}2", std::process::id());
    let mut child = family(&host, &mark);
    drop(host);
    assert!(all_gone(&mark));
    assert!(child.wait().is_ok());
}

/// Run by the test below, in a process that is then killed.
#[test]
#[ignore = "a part of another test"]
#[allow(clippy::print_stdout, reason = "tells the test that waits for it")]
fn lab_to_be_killed() {
    let Ok(mark) = std::env::var("LASTMILE_TEST_MARK") else { return };
    let host = NetNs::new("g").expect("host");
    let _tun = link(&host, 7);
    let _child = family(&host, &mark);
    println!("up and running");
    std::thread::sleep(Duration::from_secs(20));
}

#[test]
fn nothing_outlives_a_killed_lab() {
    if permitted(NetNs::new("h")).is_none() {
        return;
    }
    let mark = format!("1000{}3", std::process::id());
    let mut lab = Command::new(std::env::current_exe().expect("path"))
        .args(["--exact", "lab::tests::lab_to_be_killed", "--ignored", "--nocapture"])
        .env("LASTMILE_TEST_MARK", &mark)
        .stdout(Stdio::piped())
        .spawn()
        .expect("start");
    let (mut text, mut out) = (Vec::new(), lab.stdout.take().expect("piped"));
    let mut byte = [0];
    while !String::from_utf8_lossy(&text).contains("up and running") {
        assert_eq!(out.read(&mut byte).expect("output"), 1, "ended: {}", String::from_utf8_lossy(&text));
        text.extend(byte);
    }
    assert!(processes(&mark).len() >= 2);
    // SAFETY: no pointers; our own unreaped child.
    unsafe { libc::kill(lab.id() as libc::pid_t, libc::SIGKILL) };
    lab.wait().expect("status");
    assert!(all_gone(&mark));
}
