//! Hosts as network namespaces, joined by kernel links and shaped by the kernel's own `tc`: a path that nobody here wrote.
//! They live as long as this process and leave nothing behind, whatever ends it.
#![allow(dead_code, unreachable_pub)] // each test file uses some of it

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lastmile_net::lab::{LabChild, NetNs};

use super::common::{Ended, PROGRAM};

/// The reason why there can be no such hosts here, if there is one.
pub fn missing() -> Option<String> {
    let no = |program: &str, ask: &str| Command::new(program).arg(ask).output().is_err();
    if no("ip", "-V") || no("tc", "-V") {
        return Some("there is no ip or tc here: apt-get install iproute2".into());
    }
    NetNs::new("trial").err().map(|error| error.to_string())
}

/// Our own program: the one built with the tests, unless `LASTMILE_PROGRAM` names another.
pub fn program() -> String {
    std::env::var("LASTMILE_PROGRAM").unwrap_or_else(|_| PROGRAM.to_owned())
}

/// A host, until dropped.
pub struct Host {
    ns: NetNs,
    thread: nix::unistd::Pid,
}

impl Host {
    pub fn new(name: &str) -> Host {
        let ns = NetNs::new(name).expect("a namespace");
        let thread = ns.run(nix::unistd::gettid).expect("its thread");
        Host { ns, thread }
    }

    /// Its network, for programs that are started there.
    pub fn namespace(&self) -> &NetNs {
        &self.ns
    }

    /// The file by which `ip` knows its network.
    pub fn namespace_file(&self) -> String {
        format!("/proc/{}/task/{}/ns/net", std::process::id(), self.thread)
    }

    /// Links this host's `device` to that of the same name at `other`; addresses have a prefix's length.
    pub fn link(&self, device: &str, address: &str, other: &Host, far: &str) {
        let namespace = other.namespace_file();
        self.does(&format!("ip link add {device} type veth peer name {device} netns {namespace}"));
        for (host, address) in [(self, address), (other, far)] {
            host.does(&format!("ip addr add {address} dev {device}"));
            host.does(&format!("ip link set {device} up"));
        }
    }

    /// Passes packets on between its links.
    pub fn forwards(&self) {
        let on = || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1");
        self.ns.run(on).expect("the host").expect("the right to forward");
    }

    /// Runs `f` on a thread inside this host.
    pub fn inside<T: Send + 'static>(
        &self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> std::thread::JoinHandle<T> {
        self.ns.spawn(f).expect("a thread")
    }

    /// Runs a command of words, which must succeed.
    #[track_caller]
    pub fn does(&self, command: &str) {
        let words: Vec<&str> = command.split(' ').collect();
        let ended = self.run(words[0], &words[1..]);
        assert_eq!(ended.code, Some(0), "{command}: {ended:?}");
    }

    /// Starts a program, which ends when the returned handle is dropped.
    pub fn start(&self, program: &str, arguments: &[&str]) -> LabChild {
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        LabChild::spawn(&self.ns, command).expect("the program starts")
    }

    /// Runs a program to its end.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Ended {
        let began = Instant::now();
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = LabChild::spawn(&self.ns, command).expect("the program starts");
        let (out, err) = (child.take_stdout(), child.take_stderr());
        let text = |mut from: Box<dyn std::io::Read + Send>| {
            std::thread::spawn(move || {
                let mut text = String::new();
                from.read_to_string(&mut text).map(|_| text).expect("text")
            })
        };
        let (out, err) = (text(Box::new(out.expect("piped"))), text(Box::new(err.expect("piped"))));
        let code = child.wait().expect("its end").code();
        let (stdout, stderr) = (out.join().expect("its output"), err.join().expect("its errors"));
        Ended { code, stdout, stderr, after: began.elapsed() }
    }

    /// Our own program.
    pub fn lastmile(&self, arguments: &[&str]) -> Ended {
        self.run(&program(), arguments)
    }

    /// `lastmile serve`, once it answers at `address`.
    pub fn serves(&self, address: &str, options: &[&str]) -> LabChild {
        self.answers(&[&["serve", "--bind", address][..], options].concat(), 8620)
    }

    /// `lastmile receive`, once it answers at `address`.
    pub fn receives(&self, address: &str) -> LabChild {
        self.answers(&["receive", "--bind", address], 5004)
    }

    /// Our own program, once it has bound that port.
    fn answers(&self, arguments: &[&str], port: u16) -> LabChild {
        let server = self.start(&program(), arguments);
        let until = Instant::now() + Duration::from_secs(5);
        // Bound ports stand in the namespace's own table, in hexadecimal.
        let bound = move || {
            std::fs::read_to_string("/proc/thread-self/net/udp")
                .is_ok_and(|table| table.contains(&format!(":{port:04X} ")))
        };
        while !self.ns.run(bound).expect("the host") && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }
}
