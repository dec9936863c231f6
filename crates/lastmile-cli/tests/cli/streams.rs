//! `lastmile stream` to `lastmile receive` over loopback sockets, and to peers that do not answer.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lastmile::wire::{ReportBlock, Rtcp, RtpPacket, is_rtcp, write_receiver_report};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::json::is_document;
use super::{MACHINE, PEER, USAGE, closed_port};
use crate::common::{Ended, PROGRAM, Scratch, lastmile, read, run};

const INTERRUPTED: i32 = 130;

/// `lastmile receive` on a free port of the loopback.
pub(super) struct Receiver {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    pub(super) address: String,
    /// Key of SRTP that it made.
    pub(super) key: Option<String>,
}

impl Receiver {
    pub(super) fn start(options: &[&str]) -> Receiver {
        Receiver::bound("127.0.0.1", options)
    }

    /// The same on a free port of that address.
    pub(super) fn bound(address: &str, options: &[&str]) -> Receiver {
        let mut receiver = Receiver::at(&format!("{address}:0"), options);
        let mut line = String::new();
        receiver.out.read_line(&mut line).expect("its first line");
        let address = line
            .split([' ', ';'])
            .find(|word| word.trim_start_matches('[').starts_with(address) && word.contains(':'));
        receiver.address = address.unwrap_or_else(|| panic!("no address in {line:?}")).to_owned();
        if line.ends_with("with:\n") {
            let mut line = String::new();
            receiver.out.read_line(&mut line).expect("the sender's line");
            let key = line.strip_prefix("LASTMILE_SRTP_KEY=").and_then(|rest| rest.split(' ').next());
            receiver.key = key.map(str::to_owned);
        }
        receiver
    }

    /// Its process.
    pub(super) fn id(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// At that port, whether or not it is there yet.
    pub(super) fn at(address: &str, options: &[&str]) -> Receiver {
        Receiver::by(&mut Command::new(PROGRAM), address, options)
    }

    /// The same, started by that command.
    pub(super) fn by(command: &mut Command, address: &str, options: &[&str]) -> Receiver {
        let (host, port) = address.rsplit_once(':').expect("a port");
        let mut child = command
            .args(["receive", "--bind", host, "--port", port])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the receiver starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        Receiver { child, out, address: address.to_owned(), key: None }
    }

    pub(super) fn interrupt(&self) {
        kill(self.id(), Signal::SIGINT).unwrap();
    }

    /// Its exit code and its output since it began.
    pub(super) fn ended(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        let mut text = String::new();
        self.out.read_to_string(&mut text).unwrap();
        (code, text)
    }
}

#[cfg(feature = "video")]
impl Receiver {
    /// A stream to it, with its key.
    pub(super) fn stream(&self, source: &str, options: &[&str]) -> Ended {
        let mut command = Command::new(PROGRAM);
        command.args(["stream", source, &self.address]).args(options);
        run(command.envs(self.key.as_ref().map(|key| ("LASTMILE_SRTP_KEY", key))))
    }

    /// A stream of what is written to its standard input.
    pub(super) fn streaming(&self, options: &[&str]) -> Child {
        let mut command = Command::new(PROGRAM);
        command.args(["stream", "-", &self.address]).args(options);
        command.envs(self.key.as_ref().map(|key| ("LASTMILE_SRTP_KEY", key)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The key in its note on standard error.
    pub(super) fn noted_key(&mut self) -> Option<String> {
        let mut line = String::new();
        BufReader::new(self.child.stderr.as_mut().expect("piped")).read_line(&mut line).expect("a note");
        let key = line.split_once("LASTMILE_SRTP_KEY=").and_then(|(_, rest)| rest.split(' ').next());
        key.map(str::to_owned)
    }

    /// Waits for its first line, when it listens.
    pub(super) fn listens(&mut self) {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("its first line");
    }

    /// Its exit code and what it said on standard error.
    pub(super) fn told(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        let mut text = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut text).unwrap();
        (code, text)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn stream(to: &str, options: &[&str]) -> Ended {
    lastmile(&[&["stream", to][..], options].concat())
}

const KEYS: &str = "peer control rate_bps target_bps sent_bps received_bps layer packets acknowledged unaccounted lost loss lost_congestion \
                    lost_wireless lost_late scheme_heeded marked frames frames_dropped frame_rate capacity_bps capacity_above_bps hand_offs rtt_min_s rtt_mean_s rtt_max_s jitter_s seconds \
                    bytes media_bytes padding_bytes report_bytes bytes_received feedback_packets impossible_reports srtp unauthentic replayed ended refused audio";

/// 100 of 400 kbit/s are audio, whose packets have 250 B.
#[test]
fn audio_beside_frames_has_its_rate_of_one_controllers() {
    let scratch = Scratch::new("audio");
    let events = scratch.path("events.jsonl");
    let receiver = Receiver::start(&["--once"]);
    let options =
        ["--audio=100kbit/s", "--max", "400 kbit/s", "--seconds", "3", "--json", "--events", &events];
    let ended = stream(&receiver.address, &options);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    is_document(&json, KEYS);
    let audio = &json["audio"];
    let packets = audio["packets"].as_u64().unwrap();
    assert!((148..=151).contains(&packets) && audio["lost"] == 0, "{json:#}");
    assert_eq!(audio["media_bytes"], 250 * packets);
    let sent = json["sent_bps"].as_f64().unwrap();
    assert!((150e3..=310e3).contains(&sent) && json["target_bps"].as_u64().unwrap() <= 300_000, "{json:#}");
    // Both streams have ended for the receiver, and both senders have told of their packets.
    let (code, text) = receiver.ended();
    assert!(code == Some(0) && text.matches("ended by its sender").count() == 2, "{text}");
    let events = read(&events);
    let of = |node: &str| events.lines().filter(|line| line.contains(node)).count();
    assert!(of("\"node\":0") > 3 && of("\"node\":1") > 3, "{events}");
    // A fixed rate has no controller to share.
    let receiver = Receiver::start(&["--once"]);
    let fixed =
        stream(&receiver.address, &["--audio", "--rate", "200 kbit/s", "--seconds", "1", "--json"]).json();
    assert_eq!((&fixed["audio"]["media_bytes"], &fixed["media_bytes"]), (&10_000.into(), &25_000.into()));
    // Where the controller has less than audio asks for, audio has all of it and no more.
    let receiver = Receiver::start(&["--once"]);
    let options = ["--audio", "--control", "fixed(rate=60 kbit/s)", "--seconds", "3", "--json"];
    let less = stream(&receiver.address, &options).json();
    let sent = less["audio"]["sent_bps"].as_f64().unwrap();
    assert!((40e3..70e3).contains(&sent), "{less:#}");
    // The frames' least rate is none of audio's.
    let receiver = Receiver::start(&["--once"]);
    let options = ["--audio", "--min", "300 kbit/s", "--max", "500 kbit/s", "--seconds", "3", "--json"];
    let least = stream(&receiver.address, &options).json();
    assert!(least["target_bps"].as_u64().unwrap() > 400_000, "{least:#}");
    let refused = |options: &[&str], said: &[&str]| {
        stream(&closed_port(), options).is_error(USAGE, said);
    };
    refused(&["--audio", "80kbit/s"], &["80kbit/s is no host", "--audio=80kbit/s"]);
    refused(&["--audio=1kbit/s"], &["--audio", "40 kbit/s", "1 Mbit/s"]);
    refused(&["--audio=100kbit/s", "--max", "100 kbit/s"], &["--max leaves 0 bit/s"]);
    refused(&["--audio", "--control", "tfrc(form=receiver)"], &["--audio", "tfrc(form=receiver)"]);
    refused(&["--audio", "--record", "sent.jsonl"], &["--record", "at the receiver"]);
}

#[test]
fn a_fixed_rate_arrives_and_both_ends_say_so() {
    let scratch = Scratch::new("stream");
    let [sent, received, events, page] =
        ["sent.jsonl", "received.jsonl", "events.jsonl", "page.html"].map(|name| scratch.path(name));
    let receiver = Receiver::start(&["--once", "--record", &received]);
    let files = ["--record", &sent, "--events", &events, "--html", &page];
    let rate = ["--rate", "1 Mbit/s", "--seconds", "2", "--ecn", "ect0", "--json"];
    let ended = stream(&receiver.address, &[&rate[..], &files].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    is_document(&json, KEYS);
    let number = |key: &str| json[key].as_f64().unwrap_or_else(|| panic!("{key}: {json:#}"));
    // 2 s of 125 kB; the last packets are told of within the second after them.
    assert!((249_000.0..=251_000.0).contains(&number("media_bytes")), "{json:#}");
    assert!((number("sent_bps") / 1e6 - 1.0).abs() < 0.02, "{json:#}");
    assert_eq!(number("bytes"), number("media_bytes") + number("report_bytes"));
    assert!(number("acknowledged") > 0.98 * number("packets") && number("rtt_min_s") < 0.5, "{json:#}");
    assert!(number("bytes_received") > 500.0 && number("bytes_received") < number("bytes"), "{json:#}");
    assert_eq!(
        (&json["ended"], &json["control"], &json["refused"]),
        (&"stop".into(), &Value::Null, &Value::Null)
    );
    let (code, text) = receiver.ended();
    assert_eq!(code, Some(0), "{text}");
    for wanted in ["comes from 127.0.0.1:", "said goodbye", "rate: ", "ended by its sender"] {
        assert!(text.contains(wanted), "{wanted:?} is missing: {text}");
    }
    // Both ends decide the same again.
    for file in [&sent, &received] {
        let replayed = lastmile(&["replay", file]);
        assert!(replayed.code == Some(0) && replayed.stdout.contains("all as recorded"), "{replayed:?}");
        assert_eq!(lastmile(&["report", file]).code, Some(0));
    }
    assert_eq!(lastmile(&["report", &events, "-o", "-"]).code, Some(0));
    let page = std::fs::read_to_string(&page).unwrap();
    for wanted in ["Streams over time", "Round trip", "ended as planned"] {
        assert!(page.contains(wanted), "{wanted:?} is missing");
    }
}

#[test]
fn a_controller_finds_a_rate_below_the_most_and_names_what_it_judged() {
    // A sender gives it a second to be there.
    let receiver = Receiver::at(&closed_port(), &["--json"]);
    let options =
        ["--control", "tfrc-wireless", "--start", "500 kbit/s", "--max", "2 Mbit/s", "--seconds", "2"];
    let ended = stream(&receiver.address, &[&options[..], &["--json"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    assert_eq!((&json["control"], &json["rate_bps"]), (&"tfrc+spike".into(), &Value::Null));
    assert!((400_000.0..=2_000_000.0).contains(&json["sent_bps"].as_f64().unwrap()), "{json:#}");
    assert!(json["target_bps"].as_u64().unwrap() <= 2_000_000 && json["lost_wireless"].is_u64(), "{json:#}");
    receiver.interrupt();
    let (code, text) = receiver.ended();
    // A receiver without `--once` ends normally by a signal.
    assert_eq!(code, Some(0), "{text}");
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(event["event"].as_str().is_some_and(|name| name.starts_with("source-")), "{event:#}");
    }
    assert!(text.contains("\"why\":\"goodbye\""), "{text}");
}

/// The sender names the classifier, and the receiver judges by it.
#[test]
fn receiver_based_tfrc_streams_too() {
    let receiver = Receiver::start(&["--once", "--feedback", "rtt"]);
    let control = ["--control", "tfrc(form=receiver, preset=ns-2)+spike"];
    let options = [&control[..], &["--start", "500 kbit/s", "--max", "2 Mbit/s", "--seconds", "2"]].concat();
    let ended = stream(&receiver.address, &[&options[..], &["--json"]].concat());
    let json = ended.json();
    assert_eq!((ended.code, &json["ended"]), (Some(0), &"stop".into()), "{json:#}");
    // It rose from where it began, so that reports of the receiver's came.
    assert!(json["target_bps"].as_u64().unwrap() > 600_000, "{json:#}");
    assert_eq!((&json["scheme_heeded"], ended.stderr.as_str()), (&true.into(), ""), "{ended:?}");
    let (code, text) = receiver.ended();
    assert_eq!(code, Some(0));
    assert!(text.contains("are counted by tfrc(form=receiver, preset=ns-2)+spike"), "{text}");
}

#[test]
fn every_field_of_the_json_is_documented() {
    let page = include_str!("../../../../docs/json.md");
    let section = page.split("## `stream`").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    for key in KEYS.split_whitespace() {
        assert!(section.contains(&format!("`{key}`")), "{key} is missing");
    }
}

#[test]
fn who_does_not_answer_is_named() {
    let port = closed_port();
    let ended = stream(&port, &[]);
    ended.is_error(PEER, &[&port, "nothing listens on that port", "lastmile receive"]);
    assert!(ended.after < Duration::from_secs(6), "{ended:?}");
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    stream(&address, &["--seconds", "1"])
        .is_error(PEER, &[&address, "does not answer", "it takes SRTP alone"]);
    stream("no-such-host.invalid", &[]).is_error(PEER, &["unknown host"]);
    let ended = stream(&port, &["--json"]);
    assert_eq!(
        (ended.code, ended.stderr.as_str(), &ended.json()["ended"]),
        (Some(PEER), "", &"port-closed".into())
    );
}

/// Answers a stream to `socket` with a report five times a second, until nothing comes any more: of a round trip of
/// 100 ms, and as `block` changes it by its number.
fn report(socket: &UdpSocket, block: impl Fn(u32, ReportBlock) -> ReportBlock) {
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let (mut packet, mut highest, mut last_report, mut told) = ([0; 2048], 0, 0, 0);
    let mut began = Instant::now();
    while let Ok((bytes, from)) = socket.recv_from(&mut packet) {
        let bytes = &packet[..bytes];
        if let Ok(rtp) = RtpPacket::parse(bytes).map(|rtp| rtp.header)
            && rtp.payload_type == 96
        {
            highest = u32::from(rtp.sequence);
            if began.elapsed().as_millis() / 200 > told {
                told += 1;
                let (ssrc, fraction_lost, lost, jitter) = (rtp.ssrc, 0, 0, 0);
                let held = began.elapsed().saturating_sub(Duration::from_millis(100));
                let delay = (held.as_secs_f64() * 65_536.0) as u32;
                let honest = ReportBlock { ssrc, fraction_lost, lost, highest, jitter, last_report, delay };
                let mut answer = Vec::new();
                write_receiver_report(&mut answer, 9, &[block(told as u32, honest)]);
                socket.send_to(&answer, from).unwrap();
            }
        }
        if is_rtcp(bytes)
            && last_report == 0
            && let Some(Ok(Rtcp::Sender { info, .. })) = Rtcp::all(bytes).next()
        {
            (last_report, began, told) = ((info.ntp >> 16) as u32, Instant::now(), 0);
        }
    }
    assert!(highest > 0);
}

#[test]
fn a_circuit_breaker_is_said_and_has_its_code() {
    let silent = |_: u32, block: ReportBlock| ReportBlock { highest: 5, ..block };
    let lossy = |_: u32, block: ReportBlock| ReportBlock { fraction_lost: 128, ..block };
    let ends = |block: fn(u32, ReportBlock) -> ReportBlock, why: &str, words: &[&str]| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let receiver = std::thread::spawn(move || report(&socket, block));
        let options = ["--rate", "4 Mbit/s", "--seconds", "60", "--json"];
        let ended = stream(&address, &options);
        receiver.join().unwrap();
        let json = ended.json();
        assert_eq!((ended.code, &json["ended"]), (Some(PEER), &why.into()), "{json:#}");
        let said = json["refused"].as_str().unwrap_or_default();
        assert!([&[address.as_str()], words].concat().iter().all(|word| said.contains(word)), "{said}");
    };
    ends(silent, "media-timeout", &["no media arrives", "RFC 8083"]);
    ends(lossy, "congestion", &["ten times as much as TCP", "50 % of loss", "--max"]);
}

#[test]
fn reports_of_what_cannot_be_are_left_out_and_said() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    // Every other one tells of more lost than was sent; the others answer a report that was never sent.
    let lies = |told: u32, block: ReportBlock| match told % 2 {
        0 => ReportBlock { lost: 8_000, ..block },
        _ => ReportBlock { lost: 3, last_report: block.last_report.wrapping_sub(1 << 30), ..block },
    };
    let receiver = std::thread::spawn(move || report(&socket, lies));
    let ended = stream(&address, &["--rate", "500 kbit/s", "--seconds", "4", "--json"]);
    receiver.join().unwrap();
    let json = ended.json();
    assert!(json["impossible_reports"].as_u64().unwrap() > 0 && json["rtt_max_s"].is_null(), "{json:#}");
    assert_eq!(json["lost"], 3, "{json:#}");
}

/// The results are printed, and each file that is not complete is named.
#[test]
fn files_on_a_full_disk_are_named() {
    let receiver = Receiver::start(&["--once"]);
    let scratch = Scratch::new("full-stream");
    let [record, events] = ["record.jsonl", "events.jsonl"].map(|name| scratch.path(name));
    // Files of 1 kB at most.
    let program = "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\"";
    let to = ["stream", &receiver.address, "--rate", "500 kbit/s", "--seconds", "3"];
    let mut limited = Command::new("sh");
    limited.args(["-c", program, PROGRAM]).args(to).args(["--record", &record, "--events", &events]);
    let ended = run(&mut limited);
    assert_eq!(ended.code, Some(MACHINE), "{ended:?}");
    assert!(ended.stdout.contains("fixed rate"), "{ended:?}");
    for file in [record, events] {
        let said = format!("cannot write {file}, which is not complete");
        assert!(ended.stderr.contains(&said), "{ended:?}");
        assert!(std::fs::metadata(&file).unwrap().len() > 1_000, "{file} has what there was room for");
    }
    // Nobody answers, and the file is named all the same.
    let ended = stream(&closed_port(), &["--events", "/dev/full"]);
    assert!(ended.code == Some(PEER) && ended.stderr.contains("/dev/full"), "{ended:?}");
}

#[test]
fn a_receiver_that_leaves_ends_the_stream() {
    let mut receiver = Receiver::start(&[]);
    let mut sender = Command::new(PROGRAM);
    sender.args(["stream", &receiver.address, "--rate", "500 kbit/s", "--seconds", "60"]);
    let sender = sender.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    receiver.out.read_line(&mut line).unwrap();
    assert!(line.contains("comes from"), "{line}");
    std::thread::sleep(Duration::from_millis(1_300));
    receiver.interrupt();
    let ended = sender.wait_with_output().unwrap();
    let [out, err] = [&ended.stdout, &ended.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(ended.status.code(), Some(PEER), "{out}{err}");
    assert!(out.contains("fixed rate") && err.contains("left before the end"), "{out}{err}");
    let (code, text) = receiver.ended();
    assert!(code == Some(0) && text.contains("here"), "{text}");
}

/// IP bytes that arrive at a socket until nothing has come for 0.3 s.
fn swallowed(socket: &UdpSocket) -> u64 {
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut packet = [0; 2048];
    core::iter::from_fn(|| socket.recv(&mut packet).ok()).map(|bytes| bytes as u64 + 28).sum()
}

#[test]
fn limits_hold() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let options = ["--rate", "2 Mbit/s", "--max-bytes", "50 kB", "--seconds", "60"];
    let ended = stream(&address, &options);
    ended.is_error(PEER, &["does not answer"]);
    let bytes = swallowed(&silent);
    assert!((48_000..=50_000).contains(&bytes), "{bytes}");
    let receiver = Receiver::start(&[]);
    let ended = stream(&receiver.address, &[&options[..], &["--json"]].concat());
    let json = ended.json();
    assert_eq!((ended.code, &json["ended"]), (Some(0), &"byte-limit".into()), "{json:#}");
    assert!(json["bytes"].as_u64().unwrap() <= 50_000, "{json:#}");
    let ended = stream(&receiver.address, &["--rate", "200 kbit/s", "--seconds", "60", "--max-seconds", "1"]);
    assert!(ended.code == Some(0) && ended.after < Duration::from_secs(4), "{ended:?}");
}

/// The loopback may be faster than ticks of 11 us tell, and says so then.
#[test]
fn pairs_over_real_sockets_say_what_their_times_tell() {
    let scratch = Scratch::new("probe");
    let [recorded, events] = ["recorded.jsonl", "events.jsonl"].map(|name| scratch.path(name));
    let receiver = Receiver::start(&["--once", "--receipt-times"]);
    let control = ["--control", "vtp+probe(every=4, samples=4)+zbs", "--start", "1 Mbit/s", "--seconds", "2"];
    let files = ["--json", "--record", &recorded, "--events", &events];
    let ended = stream(&receiver.address, &[&control[..], &files].concat());
    assert!(ended.code == Some(0) && ended.stderr.contains("--receipt-times"), "{ended:?}");
    assert!(ended.json()["hand_offs"].is_u64(), "{ended:?}");
    let text = std::fs::read_to_string(&events).unwrap();
    assert!(text.contains("\"capacity"), "{text}");
    let replayed = lastmile(&["replay", &recorded]);
    assert!(replayed.code == Some(0) && replayed.stdout.contains("all as recorded"), "{replayed:?}");
    receiver.ended();
}

#[test]
fn an_interrupted_stream_says_what_it_came_to() {
    let mut receiver = Receiver::start(&["--once"]);
    let mut sender = Command::new(PROGRAM);
    sender.args(["stream", &receiver.address, "--rate", "500 kbit/s", "--seconds", "60"]);
    let sender = sender.stdout(Stdio::piped()).spawn().unwrap();
    receiver.out.read_line(&mut String::new()).unwrap();
    std::thread::sleep(Duration::from_millis(1_300));
    kill(Pid::from_raw(sender.id() as i32), Signal::SIGINT).unwrap();
    let ended = sender.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.code() == Some(INTERRUPTED) && out.contains("interrupted"), "{out}");
    // The goodbye reached the receiver.
    let (code, text) = receiver.ended();
    assert!(code == Some(0) && text.contains("said goodbye"), "{text}");
}

#[test]
fn what_cannot_be_streamed_is_refused() {
    for (options, parts) in [
        (&["--control", "wishful"][..], &["wishful", "tfrc"][..]),
        (&["--control", "tfrc+wishful"], &["wishful", "spike"]),
        (&["--control", "tfrc(preset=x)"], &["--control", "preset"]),
        (&["--min", "20 Mbit/s"], &["--min", "--max", "10 Mbit/s"]),
        (&["--start", "11 Mbit/s"], &["--start", "10 Mbit/s"]),
        (&["--rate", "1 Mbit/s", "--control", "tfrc"], &["--rate", "--control"]),
        (&["--rate", "100 Gbit/s", "--frame-rate", "1"], &["--rate", "packets"]),
        (&["--rate", "0M"], &["--rate", "9.84 kbit/s", "0 bit/s"]),
        (&["--rate", "9 kbit/s"], &["--rate", "9.84 kbit/s", "30 frames/s"]),
        (&["--max-bytes", "1199B"], &["--max-bytes", "1200 B"]),
        (&["--packet-size", "20B"], &["--packet-size", "61"]),
        (&["--frame-rate", "0"], &["--frame-rate"]),
        (&["--seconds", "0"], &["--seconds"]),
        (&["--max-seconds", "nan"], &["--max-seconds"]),
        (&["--ecn", "ce"], &["--ecn"]),
        (&["--source", "wishful"], &["wishful", "on-demand"]),
        (&["--source", "trace"], &["--source trace", "--trace FILE"]),
        (&["--control", "tfrc+probe(every=1)"], &["--control", "every", "2 to 100000"]),
        (&["--trace", "/no/such/file"], &["--trace", "/no/such/file"]),
        (&["--record", "/no/such/place"], &["/no/such/place"]),
    ] {
        stream("127.0.0.1", options).is_error(USAGE, parts);
    }
    lastmile(&["receive", "--feedback", "6 s"]).is_error(USAGE, &["--feedback", "5 s"]);
    lastmile(&["receive", "--bind", "192.0.2.77"]).is_error(USAGE, &["192.0.2.77"]);
    for group in ["224.0.0.1", "255.255.255.255", "ff02::1"] {
        stream(group, &[]).is_error(USAGE, &[group, "a group of hosts"]);
        lastmile(&["measure", group]).is_error(USAGE, &[group, "a group of hosts"]);
    }
    for source in ["testsrc", "-", "film.y4m"] {
        lastmile(&["stream", source]).is_error(USAGE, &[source, "name the host"]);
    }
    lastmile(&["stream", "no.y4m", "127.0.0.1"]).is_error(USAGE, &["no.y4m", "No such file"]);
    let listed = lastmile(&["controllers"]).stdout;
    assert!(listed.contains("wrapper") && lastmile(&["controllers", "probe"]).stdout.contains("tfrc+probe"));
    assert!(listed.contains("tfrc-wireless") && listed.contains("tfrc+spike"), "{listed}");
}
