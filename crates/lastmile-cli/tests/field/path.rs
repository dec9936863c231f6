//! near - router - far, a server at far. The router is a host of this kernel, or a guest with a kernel of its own.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lastmile_net::lab::LabChild;

use super::common::Scratch;
use super::hosts::Host;

/// Packets of 1488 B are frames of 1502 B to the kernel's shapers.
pub(super) const IP_SHARE: f64 = 1488.0 / 1502.0;

/// First process of the guest; lines of `tc` come behind it.
const GUEST: &str = include_str!("guest.sh");
/// A guest is up after two seconds on an idle machine.
const BOOT: Duration = Duration::from_secs(60);

pub(super) struct Path {
    pub(super) near: Host,
    pub(super) router: Host,
    pub(super) far: Host,
    _server: LabChild,
    _guest: Option<(LabChild, Scratch)>,
}

impl Path {
    /// Through a host of this kernel.
    pub(super) fn new() -> Path {
        let (near, router, far) = (Host::new("near"), Host::new("router"), Host::new("far"));
        near.link("eth0", "10.8.0.1/24", &router, "10.8.0.2/24");
        router.link("eth1", "10.9.0.1/24", &far, "10.9.0.2/24");
        router.forwards();
        Path::joined(near, router, far, None)
    }

    /// Through a guest whose queues are made by `lines` of a shell. Its device `eth0` is towards near, `eth1` towards far.
    pub(super) fn through_guest(lines: &str) -> Path {
        let (near, router, far) = (Host::new("near"), Host::new("router"), Host::new("far"));
        let scratch = Scratch::new("guest");
        let init = scratch.file("init", [GUEST, lines, "\necho guest-is-up\nexec sleep infinity\n"].concat());
        router.run("chmod", &["+x", &init]);
        for tap in ["tap0", "tap1"] {
            router.does(&format!("ip tuntap add dev {tap} mode tap"));
        }
        let mut command = Command::new("chrt");
        // With real-time priority its timers are late by some 50 us; without, by milliseconds on a busy machine.
        command.args([
            "-f",
            "10",
            "linux.uml",
            "mem=96M",
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
        ]);
        command.args([&format!("init={init}"), &format!("uml_dir={}/", scratch.path("uml"))]);
        command.args(["con=null", "con0=null,fd:1", "ssl=null", "loglevel=4", "panic=1", "noreboot"]);
        command.args(["vec0:transport=tap,ifname=tap0,depth=64", "vec1:transport=tap,ifname=tap1,depth=64"]);
        command.env("TMPDIR", "/dev/shm").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut guest = LabChild::spawn(router.namespace(), command).expect("the guest starts");
        let (said, lines) = std::sync::mpsc::channel();
        let out = BufReader::new(guest.take_stdout().expect("piped"));
        // Read to the end: a guest with a full pipe would stand still.
        std::thread::spawn(move || out.lines().map_while(Result::ok).for_each(|line| drop(said.send(line))));
        let (until, mut console) = (Instant::now() + BOOT, String::new());
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match lines.recv_timeout(left) {
                Ok(line) if line.trim() == "guest-is-up" => break,
                Ok(line) => console.extend([line.trim(), "\n"]),
                Err(why) => panic!("the guest did not come up: {why}\n{console}"),
            }
        }
        // The guest holds its ends of the devices: the others go to their hosts.
        for (tap, host, device, address) in
            [("tap0", &near, "eth0", "10.8.0.1/24"), ("tap1", &far, "eth1", "10.9.0.2/24")]
        {
            router.does(&format!("ip link set {tap} netns {} name {device}", host.namespace_file()));
            host.run("ethtool", &["-K", device, "tso", "off", "gso", "off", "gro", "off", "tx", "off"]);
            host.does(&format!("ip addr add {address} dev {device}"));
            host.does(&format!("ip link set {device} up"));
        }
        Path::joined(near, router, far, Some((guest, scratch)))
    }

    fn joined(near: Host, router: Host, far: Host, guest: Option<(LabChild, Scratch)>) -> Path {
        near.does("ip route add 10.9.0.0/24 via 10.8.0.2");
        far.does("ip route add 10.8.0.0/24 via 10.9.0.1");
        let server = far.serves("10.9.0.2", &[]);
        Path { near, router, far, _server: server, _guest: guest }
    }
}

/// The programs that a guest as router needs and this machine lacks.
pub(super) fn no_guest() -> Option<String> {
    let missing = |program: &&str| Command::new(program).arg("--help").output().is_err();
    let programs: Vec<&str> =
        ["linux.uml", "busybox", "ethtool", "chrt"].into_iter().filter(missing).collect();
    if !programs.is_empty() {
        return Some(format!(
            "there is no {} here: apt-get install user-mode-linux busybox-static ethtool",
            programs.join(", ")
        ));
    }
    let tap = std::fs::File::options().write(true).open("/dev/net/tun");
    tap.err().map(|error| format!("/dev/net/tun: {error}"))
}
