//! Common parts of the program's tests: running it, and a server to talk to.
#![allow(dead_code, unreachable_pub)] // each test file uses some of it

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_lastmile");

/// TCP and Poisson traffic over a narrow link that drops, loses, and changes its rate.
pub const NARROW: &str = r#"
name = "narrow"
duration = "2 s"
[host.a]
[host.b]
[[link]]
from = "a"
to = "b"
rate = "5 Mbit/s"
delay = "5 ms"
queue = "10 packets"
losses = [{ model = { kind = "bernoulli", rate = 0.01 } }]
changes = [{ at = "1 s", rate = "3 Mbit/s" }]
[[traffic]]
name = "tcp"
kind = "ftp"
from = "a"
to = "b"
[[traffic]]
name = "poisson"
kind = "poisson"
rate = "1 Mbit/s"
size = "500 B"
from = "a"
to = "b"
changes = [{ at = "500 ms", rate = "2 Mbit/s" }]
"#;

pub fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Result of a run of the program.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub after: Duration,
}

pub fn lastmile(arguments: &[&str]) -> Ended {
    run(Command::new(PROGRAM).args(arguments))
}

pub fn run(command: &mut Command) -> Ended {
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
        after: began.elapsed(),
    }
}

impl Ended {
    /// Holds the run to an exit code, nothing on standard output, and one line on standard error that has all of `parts`.
    #[track_caller]
    pub fn is_error(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        assert!(self.stderr.starts_with("lastmile: "), "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is missing: {self:?}");
        }
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// `lastmile serve` on a free port of the loopback, until dropped.
pub struct Server {
    child: Child,
    pub address: String,
}

impl Server {
    pub fn start(options: &[&str]) -> Server {
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--bind", "127.0.0.1", "--port", "0"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let (mut line, mut out) = (String::new(), BufReader::new(child.stdout.take().expect("piped")));
        out.read_line(&mut line).expect("its first line");
        // A server whose reader goes away ends.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        let address = line.split(' ').find(|word| word.starts_with("127.0.0.1:"));
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).to_owned();
        Server { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory of this test's own, gone when dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("lastmile-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory for temporary files");
        Scratch(dir)
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).expect("a temporary file");
        path.to_str().expect("text").to_owned()
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("text").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
