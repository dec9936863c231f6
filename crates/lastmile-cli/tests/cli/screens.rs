//! The README's first commands, as an operator, an engineer and a researcher type them, in a terminal of 80 columns.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::common::{PROGRAM, Scratch};

const README: &str = include_str!("../../../../README.md");
const COLUMNS: u16 = 80;

/// The command of the README that begins so, up to its comment or a second command.
fn command(begins: &str) -> String {
    let readme = README.replace("\\\n", " ");
    let commands = readme.lines().map(|line| line.split_once("$ ").map_or(line, |(_, typed)| typed));
    let line = commands.clone().find(|line| line.starts_with(begins));
    let line = line.unwrap_or_else(|| panic!("the README has no command {begins:?}"));
    line.split(['#', ';']).next().unwrap_or_default().trim().to_owned()
}

/// A program in a terminal of its own.
struct Terminal {
    child: Child,
    read: JoinHandle<String>,
}

impl Terminal {
    /// Types a command into a shell that finds the program.
    fn type_in(folder: &Path, command: &str) -> Terminal {
        let size = Winsize { ws_row: 24, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = openpty(&size, None).expect("a terminal");
        let [stdin, stdout] = [(); 2].map(|()| terminal.slave.try_clone().expect("the terminal again"));
        let stdio = |fd: OwnedFd| Stdio::from(fd);
        let programs = Path::new(PROGRAM).parent().expect("a folder").display().to_string();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        let child = Command::new("sh")
            // The shell gives way to the program, so that a signal meets that.
            .args(["-c", &format!("exec {command}")])
            .env("PATH", path)
            .env("TERM", "xterm")
            .current_dir(folder)
            .stdin(stdio(stdin))
            .stdout(stdio(stdout))
            .stderr(stdio(terminal.slave))
            .spawn()
            .expect("a shell");
        let mut master = File::from(terminal.master);
        let read = std::thread::spawn(move || {
            let (mut all, mut part) = (Vec::new(), [0; 4096]);
            // A terminal whose programs have all ended gives an error.
            while let Ok(n) =
                master.read(&mut part).map_err(drop).and_then(|n| if n > 0 { Ok(n) } else { Err(()) })
            {
                all.extend_from_slice(&part[..n]);
            }
            String::from_utf8(all).expect("text")
        });
        Terminal { child, read }
    }

    /// The lines on the screen, none of them broken by the terminal.
    fn lines(mut self, command: &str) -> String {
        let ended = self.child.wait().expect("an end");
        let text = self.read.join().expect("what was read");
        // A path that is faster than these hosts can time is no success.
        let is_unknown = ended.code() == Some(1) && text.contains("unknown");
        assert!(ended.success() || is_unknown, "{command}: {ended}\n{text}");
        for line in text.split(['\n', '\r']).map(without_escapes) {
            assert!(
                line.chars().count() <= COLUMNS.into(),
                "{command}: {} columns:\n{line}\n{text}",
                line.chars().count()
            );
        }
        text.replace('\r', "")
    }

    /// The same of one that runs until it is told to end.
    fn ended(self, command: &str) -> String {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).expect("our own unreaped child");
        self.lines(command)
    }
}

/// A line without what moves the cursor or colours it.
fn without_escapes(line: &str) -> String {
    let mut out = String::new();
    let mut parts = line.split("\u{1b}[");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        out.push_str(
            part.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).get(1..).unwrap_or_default(),
        );
    }
    out
}

/// Types a command of the README with more arguments, and finds these parts on the screen.
#[track_caller]
fn shows(scratch: &Scratch, begins: &str, more: &str, parts: &[&str]) {
    let command = format!("{} {more}", command(begins)).replace("host-b", "127.0.0.1");
    let text = Terminal::type_in(&scratch.0, &command).lines(&command);
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing: {command}\n{text}");
    }
}

/// A port of the loopback that is free for both.
fn port() -> u16 {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("an address").port()
}

/// Waits until something answers there, or half a second went by.
fn begun() {
    std::thread::sleep(std::time::Duration::from_millis(500));
}

#[test]
fn an_operator_measures_between_two_machines() {
    let scratch = Scratch::new("operator");
    let port = format!("--port {}", port());
    let serve = format!("{} {port}", command("lastmile serve"));
    let server = Terminal::type_in(&scratch.0, &serve);
    begun();
    let wanted = [
        "127.0.0.1:",
        ", round trip ",
        "available",
        "capacity",
        "to 127.0.0.1",
        "from 127.0.0.1",
        "loss",
        " packets",
    ];
    shows(&scratch, "lastmile measure host-b", &port, &wanted);
    let text = server.ended(&serve);
    assert!(text.contains("serving on") && text.contains("session from 127.0.0.1"), "{text}");
}

#[test]
fn an_engineer_streams_between_two_machines() {
    let scratch = Scratch::new("engineer");
    let port = format!("--port {}", port());
    let receive = format!("{} {port}", command("lastmile receive  "));
    let receiver = Terminal::type_in(&scratch.0, &receive);
    begun();
    let wanted = [
        "rate: target ",
        " received",
        "lost: ",
        "Mbit/s",
        "rate: ",
        "packets: ",
        "round trip: ",
        "jitter: ",
        "cost: ",
    ];
    shows(&scratch, "lastmile stream host-b", &format!("{port} --seconds 2"), &wanted);
    let text = receiver.ended(&receive);
    assert!(text.contains("stream from 127.0.0.1") && text.contains("ended by its sender"), "{text}");
}

#[test]
fn a_researcher_simulates_sweeps_evaluates_and_reproduces() {
    let scratch = Scratch::new("researcher");
    shows(&scratch, "lastmile sim ap-2", "", &["available", "truth", "air from"]);
    shows(&scratch, "lastmile sweep wlh", "", &["30 runs"]);
    shows(&scratch, "lastmile evaluate", "", &["paired by seed", "used %"]);
    shows(&scratch, "lastmile reproduce", "", &["figure 1", "(110)"]);
    shows(&scratch, "lastmile scenarios", "", &["rfc8867-5.1"]);
}
