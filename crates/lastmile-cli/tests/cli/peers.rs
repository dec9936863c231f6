//! Peers that cannot be measured, or do not want to be.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{PEER, USAGE, closed_port};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{PROGRAM, Scratch, Server, lastmile};

#[test]
fn hosts_that_cannot_be_measured() {
    lastmile(&["measure", "no-such-host.invalid"]).is_error(PEER, &["unknown host", "no-such-host.invalid"]);
    lastmile(&["measure", "127.0.0.1:x"]).is_error(USAGE, &["\"x\"", "is not a port"]);
    let port = closed_port();
    let ended = lastmile(&["measure", &port]);
    ended.is_error(PEER, &[&port, "nothing listens on that port", "lastmile serve"]);
    assert!(ended.after < Duration::from_secs(2), "{ended:?}");
}

#[test]
fn a_host_that_never_answers_is_given_up() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let ended = lastmile(&["measure", &address]);
    ended.is_error(PEER, &[&address, "does not answer"]);
    assert!(ended.after < Duration::from_secs(13), "{ended:?}");
}

/// Reflects as RFC 8762, section 4.3.1 has it, and knows nothing of TLVs: zeros pad a reply to its request's size. Behind a serialiser of its own,
/// if that has a rate in Mbit/s.
struct PlainReflector {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    address: String,
}

impl PlainReflector {
    fn start() -> PlainReflector {
        PlainReflector::behind(f64::INFINITY)
    }

    fn behind(mbps: f64) -> PlainReflector {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut packet = [0; 2048];
            let mut idle_at = Instant::now();
            while !flag.load(Ordering::Relaxed) {
                let Ok((n, peer)) = socket.recv_from(&mut packet) else { continue };
                if n < 44 {
                    continue;
                }
                // With 28 octets of IP and UDP headers.
                idle_at =
                    idle_at.max(Instant::now()) + Duration::from_secs_f64((n + 28) as f64 * 8e-6 / mbps);
                std::thread::sleep(idle_at.saturating_duration_since(Instant::now()));
                // NTP format (RFC 8762, section 4.2.1): seconds since 1900 and their fraction.
                let unix = std::time::UNIX_EPOCH.elapsed().unwrap();
                let fraction = (u64::from(unix.subsec_nanos()) << 32) / 1_000_000_000;
                let now = (unix.as_secs() + 2_208_988_800) << 32 | fraction;
                let mut reply = vec![0; n];
                // Sequence number, timestamp, error estimate, receive timestamp.
                reply[..4].copy_from_slice(&packet[..4]);
                reply[4..12].copy_from_slice(&now.to_be_bytes());
                reply[12..14].copy_from_slice(&[0x80, 1]);
                reply[16..24].copy_from_slice(&now.to_be_bytes());
                // The sender's sequence number, timestamp, error estimate and TTL.
                reply[24..38].copy_from_slice(&packet[..14]);
                reply[40] = 255;
                let _ = socket.send_to(&reply, peer);
            }
        });
        PlainReflector { stop, thread: Some(thread), address }
    }
}

impl Drop for PlainReflector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn a_plain_reflector_serves_no_one_way_method() {
    let plain = PlainReflector::start();
    let ended = lastmile(&["measure", &plain.address, "--direction", "forward"]);
    ended.is_error(PEER, &["STAMP", "round-trip"]);
    assert!(ended.after < Duration::from_secs(7), "{ended:?}");
}

/// They would send half a megabyte and blame the path.
#[test]
fn methods_of_one_way_refuse_round_trips_before_a_packet() {
    for method in ["pathload", "pathchirp", "ecnprobe"] {
        let ended = lastmile(&["measure", "127.0.0.1", "--direction", "round-trip", "--method", method]);
        ended.is_error(USAGE, &["direction of", method, "cannot be round-trip"]);
    }
}

#[test]
fn every_round_trip_method_measures_a_plain_reflector() {
    let methods = lastmile(&["methods", "--json"]).json();
    let with_trips = methods.as_array().unwrap().iter().filter(|method| method["round_trip"] == true);
    let mut found = Vec::new();
    for method in with_trips {
        let name = method["name"].as_str().unwrap();
        let brief = method["brief"].as_object().unwrap().iter();
        let options: Vec<_> =
            brief.map(|(key, value)| format!("{key}={}", value.as_str().unwrap())).collect();
        let choice = format!("{name}({})", options.join(", "));
        let plain = PlainReflector::behind(10.0);
        let args = ["measure", &plain.address, "--direction", "round-trip", "--method", &choice, "--json"];
        found.push((lastmile(&args).json()["results"].clone(), choice));
    }
    let mut measured = 0;
    for (results, choice) in &found {
        for result in results.as_array().unwrap() {
            let Some(rate) = result["rate_bps"].as_f64() else { continue };
            measured += 1;
            // A thread that sleeps is late: on a busy machine the link is slower than its rate.
            let is_doubted = result["code"].as_str().is_some_and(|code| code != "round-trip");
            assert!((3e6..11e6).contains(&rate) || is_doubted, "{choice}: {result}");
        }
    }
    // A machine that others use may refuse some.
    assert!(measured > 0 && found.len() > 10, "{measured} of {}", found.len());
}

#[test]
fn keys() {
    let scratch = Scratch::new("keys");
    let secret = |name, key: &str| {
        let path = scratch.file(name, key);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let right = secret("right", "0123456789abcdef");
    let wrong = secret("wrong", "fedcba9876543210");
    let short = secret("short", "0123456");
    let server = Server::start(&["--key-file", &right]);
    let with =
        |key: &str| lastmile(&["measure", &server.address, "--direction", "forward", "--key-file", key]);
    with(&wrong).is_error(PEER, &[&server.address, "key"]);
    lastmile(&["measure", &server.address]).is_error(PEER, &[&server.address, "key"]);
    with(&short).is_error(USAGE, &["short", "16"]);
    with(&scratch.path("none")).is_error(USAGE, &["cannot read the key file", "none"]);
    // And with the right one there is something to refuse the others for. Loopback may be too fast to have a number.
    // Streams were sent and reported; whether a loopback this busy has a number is another matter.
    let ended = with(&right);
    assert!(matches!(ended.code, Some(0 | 1)) && !ended.stdout.contains("; 0 streams"), "{ended:?}");
    let open = Server::start(&[]);
    let ended = lastmile(&["measure", &open.address, "--key-file", &right]);
    ended.is_error(PEER, &[&open.address, "key"]);

    // One line end is an editor's; all other bytes are the key's. A note tells of the line end, and of others' rights to the file.
    for line_end in ["\n", "\r\n"] {
        let edited = secret("edited", &format!("0123456789abcdef{line_end}"));
        let ended = with(&edited);
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        let said =
            format!("lastmile: the line end behind the last line of {edited} is not part of the key\n");
        assert_eq!(ended.stderr, said, "{ended:?}");
    }
    let ended = with(&secret("two", "0123456789abcdef\n\n"));
    assert!(ended.code == Some(PEER) && ended.stderr.contains("the key is wrong"), "{ended:?}");
    for (mode, may) in [(0o640, "read"), (0o620, "change"), (0o602, "change"), (0o666, "read and change")] {
        fs::set_permissions(&right, fs::Permissions::from_mode(mode)).unwrap();
        let ended = with(&right);
        let said =
            format!("lastmile: others on this machine may {may} the key in {right}: chmod 600 {right}\n");
        assert_eq!(ended.stderr, said, "{ended:?}");
    }
}

/// A server of one session, and a client that keeps it: the second is told so, and the server tells of him, in words and in JSON.
#[test]
fn who_is_turned_away_is_told_of() {
    for (json, sign) in
        [(false, "turned away since last told, 127.0.0.1:"), (true, "\"event\":\"turned-away\"")]
    {
        let address = closed_port();
        let port = address.rsplit(':').next().unwrap();
        let mut server = Command::new(PROGRAM);
        server.args(["serve", "--bind", "127.0.0.1", "--port", port, "--sessions", "1"]);
        server.args(json.then_some("--json")).stdout(Stdio::piped());
        let server = server.spawn().unwrap();
        let measure = || lastmile(&["measure", &address, "--direction", "forward"]);
        // Until the server is there.
        let first =
            (0..100).map(|_| measure()).find(|ended| !ended.stderr.contains("nothing listens")).unwrap();
        assert!(matches!(first.code, Some(0 | 1)), "{first:?}");
        let long = [
            "measure",
            &address,
            "--direction",
            "forward",
            "--method",
            "wbest(capacity=1 Mbit/s)",
            "--trains",
            "100",
        ];
        let mut keeper = Command::new(PROGRAM).args(long).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let second = measure();
        keeper.kill().unwrap();
        keeper.wait().unwrap();
        assert!(format!("{second:?}").contains("has no room for one more session"), "{second:?}");
        kill(Pid::from_raw(server.id() as i32), Signal::SIGINT).unwrap();
        let said = String::from_utf8(server.wait_with_output().unwrap().stdout).unwrap();
        let line = said.lines().find(|line| line.contains(sign)).unwrap_or_else(|| panic!("{said}"));
        let count = if json { "\"no_session\":1," } else { " last: 1 for want of sessions" };
        assert!(line.contains(count), "{line}");
        assert_eq!(
            said.lines().filter(|line| line.contains(sign)).count(),
            1,
            "no line for each packet: {said}"
        );
        // All of them, in the end: the stream's packets, and the requests for its report that were answered "busy".
        let end = said.lines().last().unwrap();
        if json {
            let end: serde_json::Value = serde_json::from_str(end).unwrap();
            assert_eq!(end["event"], "counters", "{end}");
            assert!(end["no_session"].as_u64() >= Some(31) && end["no_room"] == 0, "{end}");
        } else {
            assert!(end.contains("; turned away: ") && end.ends_with(" for want of sessions"), "{end}");
            // Each event has its time of day.
            let time = end.split(' ').next().unwrap_or_default();
            assert!(time.ends_with('Z') && time.parse::<jiff::Timestamp>().is_ok(), "{end}");
        }
    }
}

/// A sender of TWAMP Light with the smallest packets is told of, and answered only where that was asked for.
#[test]
fn small_packets_are_told_of_or_answered() {
    for answers in [false, true] {
        let mut server = Command::new(PROGRAM);
        server
            .args(["serve", "--bind", "127.0.0.1", "--port", "0"])
            .args(answers.then_some("--answer-small"));
        let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first.split(' ').find(|word| word.starts_with("127.0.0.1:")).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        // Sequence number, timestamp, error estimate.
        (0..3).for_each(|_| assert_eq!(sender.send_to(&[1; 14], address).unwrap(), 14));
        if answers {
            (0..3).for_each(|_| assert_eq!(sender.recv(&mut [0; 100]).unwrap(), 44));
        } else {
            let line = lines.next().unwrap().unwrap();
            let from = sender.local_addr().unwrap();
            assert!(line.contains(&format!("{from} sends packets of 14 octets and gets nothing")), "{line}");
            assert!(line.contains("--answer-small"), "{line}");
            // A packet that is answered: those before it have been read, so they are counted at the end.
            sender.send_to(&[0; 44], address).unwrap();
            assert_eq!(sender.recv(&mut [0; 100]).unwrap(), 44);
        }
        kill(Pid::from_raw(server.id() as i32), Signal::SIGINT).unwrap();
        server.wait().unwrap();
        let end: Vec<String> = lines.map_while(Result::ok).collect();
        let all = if answers { "3 answered" } else { "1 answered, 3 too small to answer" };
        assert!(end.len() == 1 && end[0].ends_with(&format!(" ended: packets: {all}")), "{end:?}");
    }
}

#[test]
fn limits_are_kept_and_named() {
    let server = Server::start(&[]);
    let ended =
        lastmile(&["measure", &server.address, "--direction", "forward", "--max-bytes", "1000B", "--json"]);
    let json = ended.json();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let row = &json["results"][0];
    assert!(row["refused"].as_str().is_some_and(|why| why.contains("1000 B")), "{json:#}");
    let spent = row["bytes"].as_u64().unwrap() + row["bytes_received"].as_u64().unwrap();
    assert!(spent <= 1000, "{spent} bytes were spent: {json:#}");

    let ended = lastmile(&["measure", &server.address, "--max-seconds", "0.01"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("10 ms"), "{ended:?}");
    assert!(ended.after < Duration::from_millis(500), "{ended:?}");
    for bad in ["0", "-1", "nan", "1e300"] {
        let argument = format!("--max-seconds={bad}");
        lastmile(&["measure", &server.address, &argument]).is_error(USAGE, &["--max-seconds"]);
    }
}

/// On a terminal of 80 columns no line of an answer is broken; `-v` has all numbers.
#[test]
fn an_answer_has_eighty_columns() {
    let server = Server::start(&[]);
    let ended = lastmile(&["measure", &server.address]);
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ended.stdout);
    let has = |words: &str| ended.stdout.contains(words);
    assert!(has("available") && has("\nto 127.0.0.1") && has("\nfrom 127.0.0.1"), "{}", ended.stdout);
    let all = lastmile(&["measure", &server.address, "-v"]);
    assert!(all.stdout.contains("\ndirection  method"), "{}", all.stdout);
}

/// A server that takes a connection, reads a cookie and says that it is busy, and one of something else.
#[test]
fn servers_of_iperf3_that_refuse_and_options_that_it_has_not_are_named() {
    use std::io::{Read, Write};
    let iperf3 = ["--peer", "iperf3"];
    for (option, said) in [
        (["--direction", "forward"], "sums"),
        (["--direction", "both"], "sums"),
        (["--record", "x.jsonl"], "recordings hold datagrams"),
        (["--method", "capprobe"], "trains of 30 packets"),
        (["--packet-size", "65kB"], "200 to 9000"),
        (["--packet-size", "1488"], "bytes"),
    ] {
        lastmile(&[&["measure", "127.0.0.1"], &iperf3[..], &option].concat()).is_error(USAGE, &[said]);
    }
    for (answer, said) in
        [(&[0xFF][..], "busy with another test"), (b"220 ready\r\n", "does not speak iperf3's protocol")]
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut cookie = [0; 37];
            client.read_exact(&mut cookie).unwrap();
            client.write_all(answer).unwrap();
            cookie
        });
        lastmile(&[&["measure", host.as_str()], &iperf3[..]].concat()).is_error(PEER, &[said]);
        let cookie = server.join().unwrap();
        assert!(cookie[36] == 0 && cookie[..36].iter().all(u8::is_ascii_alphanumeric), "{cookie:?}");
    }
}
