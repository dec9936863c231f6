//! The lab's first steps as an ordinary user: a program of its own, since only a single-threaded process may enter
//! a user namespace.
use lastmile_net::lab::{LabChild, LabError, NetNs, Tun, TunConfig, enter_user_namespace};
use lastmile_net::udp::{Outgoing, UdpConfig, UdpSocket};
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use std::net::Ipv4Addr;
use std::process::Command;

/// "nobody" on every system.
const NOBODY: u32 = 65_534;

#[allow(clippy::print_stdout, reason = "a test program without harness")]
fn main() {
    if Uid::effective().is_root() {
        setgroups(&[]).expect("no groups");
        setgid(Gid::from_raw(NOBODY)).expect("group");
        setuid(Uid::from_raw(NOBODY)).expect("user");
        // Changing user makes a process's own files in /proc root's; started by a user, they are the user's.
        nix::sys::prctl::set_dumpable(true).expect("dumpable");
    }
    match NetNs::new("early") {
        Err(e @ LabError::NeedNamespaces { .. }) => assert!(e.to_string().contains("run as root"), "{e}"),
        other => panic!("an ordinary user got {other:?}"),
    }
    if let Err(e) = enter_user_namespace() {
        println!("skipped: {e}");
        return;
    }
    enter_user_namespace().expect("a second call changes nothing");
    let host = NetNs::new("user").expect("namespace");
    let socket = host
        .run(|| UdpSocket::open(&UdpConfig::new((Ipv4Addr::LOCALHOST, 0).into())))
        .expect("host")
        .expect("socket");
    assert_eq!(socket.send(&[Outgoing::new(1, socket.local_addr(), b"hello")]).sent, 1);
    let mut child = LabChild::spawn(&host, Command::new("true")).expect("program");
    assert!(child.wait().expect("status").success());
    let config = TunConfig { v4: Some(([10, 77, 9, 2].into(), 24)), ..TunConfig::new("lab0") };
    match Tun::new(&host, &config) {
        Ok(_) => {}
        Err(e @ LabError::NeedTun { .. }) => println!("no TUN for users here: {e}"),
        Err(e) => panic!("{e}"),
    }
    println!("test result: ok. an ordinary user's lab works");
}
