//! `lastmile traffic` over the loopback: all that is sent is counted, strangers get nothing, and faults are told in one line.

use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lastmile::wire::traffic::{Counts, Packet};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::json::is_document;
use super::{PEER, USAGE, closed_port};
use crate::common::{PROGRAM, Scratch, lastmile};

/// A sink on a free port of the loopback, until dropped.
struct Sink {
    child: Child,
    address: String,
}

impl Sink {
    fn start(options: &[&str]) -> Sink {
        let address = closed_port();
        let port = address.rsplit_once(':').unwrap().1;
        let child = Command::new(PROGRAM)
            .args(["traffic", "sink", "--bind", "127.0.0.1", "--port", port, "--json"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(500));
        Sink { child, address }
    }

    fn stop(&self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).unwrap();
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn all_that_is_sent_is_counted() {
    let scratch = Scratch::new("traffic");
    let trace = scratch.file("trace", "0 100\n0.2 1000\n0.2 1000\n0.5 200 # the last\n");
    let sink = Sink::start(&[]);
    for (arrivals, more) in [
        ("cbr", vec![]),
        ("poisson", vec!["--ecn", "ect0"]),
        ("onoff", vec!["--on", "50 ms", "--off", "50 ms"]),
        ("pareto", vec!["--on", "50 ms", "--off", "50 ms", "--shape", "1.5"]),
        ("trace", vec!["--trace", &trace]),
    ] {
        let send = [
            "traffic",
            "send",
            &sink.address,
            "--arrivals",
            arrivals,
            "--rate",
            "2 Mbit/s",
            "--seconds",
            "1",
            "--json",
        ];
        let ended = lastmile(&[&send[..], &["--packet-size", "500 B", "--seed", "3"], &more].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let json = ended.json();
        is_document(
            &json,
            "peer arrivals rate_bps packet_size seed ended packets bytes seconds sent_bps failed held_up_s gaps gap_error_median_s gap_error_p99_s \
             received complete lost",
        );
        assert_eq!(
            (&json["ended"], &json["complete"], &json["lost"]),
            (&"done".into(), &true.into(), &0.into()),
            "{json:#}"
        );
        assert_eq!(json["received"]["bytes"], json["bytes"], "{json:#}");
        if arrivals == "trace" {
            assert_eq!((&json["packets"], &json["bytes"]), (&4.into(), &2300.into()), "{json:#}");
        } else {
            assert!(
                json["packets"].as_u64().unwrap() > 100 && json["gaps"].as_u64().unwrap() > 90,
                "{json:#}"
            );
        }
    }
    let text = lastmile(&["traffic", "send", &sink.address, "--seconds", "0.5"]).stdout;
    assert!(text.contains("gaps off by") && text.contains("0 lost"), "{text}");
}

/// A sink that has ended says so; one that never was is named with the remedy.
#[test]
fn a_source_ends_with_its_sink() {
    let sink = Sink::start(&[]);
    let send = Command::new(PROGRAM)
        .args(["traffic", "send", &sink.address, "--seconds", "30", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    sink.stop();
    let ended = send.wait_with_output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((ended.status.code(), &json["ended"]), (Some(0), &"stopped".into()), "{json:#}");
    assert!(json["seconds"].as_f64().unwrap() < 5.0, "{json:#}");

    lastmile(&["traffic", "send", &closed_port(), "--seconds", "1"]).is_error(PEER, &["nothing listens"]);
    // A socket that never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    lastmile(&["traffic", "send", &address, "--seconds", "1"]).is_error(PEER, &["traffic sink"]);
    silent.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2_000];
    let got: Vec<_> =
        std::iter::from_fn(|| silent.recv(&mut buffer).ok().map(|n| Packet::parse(&buffer[..n]))).collect();
    assert!(got.len() == 3 && got.iter().all(|packet| matches!(packet, Ok(Packet::Hello { .. }))), "{got:?}");
}

/// The sink gives a stranger no more bytes than it got, by any packets, and goes on.
#[test]
fn a_stranger_gets_no_more_than_it_sent() {
    let sink = Sink::start(&["--sources", "2"]);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.connect(&sink.address).unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let (mut bytes, mut sent, mut got) = (Vec::new(), 0, 0);
    let mut buffer = [0; 2_000];
    for packet in [
        Packet::Hello { nonce: 1 },
        Packet::Open { nonce: 1, token: [9; 16] },
        Packet::Data { nonce: 1, number: u64::MAX, departure: 0 },
        Packet::Status { nonce: 1, number: 0, stop: true, last: true, counts: Counts::default() },
        Packet::Bye { nonce: 1 },
    ] {
        packet.write(&mut bytes, 0);
        for length in [0, 3, bytes.len() - 1, bytes.len()] {
            sent += stranger.send(&bytes[..length]).unwrap();
            while let Ok(n) = stranger.recv(&mut buffer) {
                got += n;
            }
        }
    }
    assert!(got > 0 && got <= sent, "{got} of {sent}");
    let json = lastmile(&["traffic", "send", &sink.address, "--seconds", "0.5", "--json"]).json();
    assert_eq!(json["ended"], "done", "{json:#}");
}

#[test]
fn wrong_use_is_named() {
    let send = |arguments: &[&str]| lastmile(&[&["traffic", "send", "127.0.0.1"][..], arguments].concat());
    send(&["--packet-size", "20 B"]).is_error(USAGE, &["--packet-size", "56 B"]);
    send(&["--rate", "0 bit/s"]).is_error(USAGE, &["--rate"]);
    send(&["--arrivals", "pareto", "--shape", "1"]).is_error(USAGE, &["--shape", "no mean"]);
    send(&["--arrivals", "onoff", "--on", "0 s"]).is_error(USAGE, &["--on"]);
    send(&["--arrivals", "trace"]).is_error(USAGE, &["--trace"]);
    send(&["--trace", "file"]).is_error(USAGE, &["--trace means nothing to --arrivals cbr"]);
    send(&["--arrivals", "onoff", "--shape", "2"]).is_error(USAGE, &["--shape means nothing"]);
    let scratch = Scratch::new("bad-trace");
    let small = scratch.file("small", "0 30\n");
    send(&["--arrivals", "trace", "--trace", &small]).is_error(USAGE, &["line 1", "56 to 65535 bytes"]);
    let empty = scratch.file("empty", "# nothing\n");
    send(&["--arrivals", "trace", "--trace", &empty]).is_error(USAGE, &["no packet"]);
    lastmile(&["traffic", "send", "224.0.0.1"]).is_error(USAGE, &["group of hosts"]);
}
