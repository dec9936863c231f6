//! Real video beside faults: ends that die and are started anew, packets of others and copies, and a full disk.

use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::streams::Receiver;
use super::video::number;
use super::{MACHINE, closed_port};
use crate::common::{PROGRAM, Scratch};

/// Bytes of a picture of the streams here, with its header.
const PICTURE: usize = 160 * 120 * 3 / 2 + 6;
const HEADER: usize = "YUV4MPEG2 W160 H120 F30000:1000 Ip A1:1 C420mpeg2\n".len();
const KEY: (&str, &str) = ("LASTMILE_SRTP_KEY", "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz");
const STREAM: [&str; 6] = ["--size", "160x120", "--max", "1 Mbit/s", "--json", "--seconds"];

fn keyed(address: &str, options: &[&str]) -> Receiver {
    let mut receiver = Receiver::by(Command::new(PROGRAM).envs([KEY]), address, options);
    receiver.listens();
    receiver
}

fn streaming(address: &str, seconds: &str) -> Child {
    let mut command = Command::new(PROGRAM);
    command.args(["stream", "testsrc", address]).args(STREAM).arg(seconds).envs([KEY]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the sender starts")
}

fn pause(seconds: f64) {
    std::thread::sleep(Duration::from_secs_f64(seconds));
}

#[test]
fn each_end_survives_the_death_of_the_other() {
    let scratch = Scratch::new("video-death");
    let address = closed_port();
    let first = keyed(&address, &["--output", &scratch.path("first.y4m")]);
    let mut dying = streaming(&address, "20");
    pause(2.0);
    drop(first); // killed
    pause(0.5);
    let second = keyed(&address, &["--output", &scratch.path("second.y4m"), "--reference", "testsrc"]);
    pause(2.5);
    dying.kill().unwrap();
    dying.wait().unwrap();
    let ended = streaming(&address, "3").wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    second.interrupt();
    let (code, text) = second.ended();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown: Vec<_> = text.match_indices("video:").map(|(at, _)| number(&text[at..], "video:")).collect();
    assert!(code == Some(0) && shown.len() == 2 && shown.iter().all(|shown| *shown > 30.0), "{text}");
    // Pictures written until then stay.
    for (name, least) in [("first.y4m", 10), ("second.y4m", 60)] {
        let bytes = std::fs::read(scratch.path(name)).unwrap().len();
        assert!((bytes - HEADER) / PICTURE >= least, "{name}: {bytes}");
    }
}

/// A host between both ends: beside each packet it sends the same again, a part of it, garbage, and a plain goodbye of its source.
fn meddle(to: String) -> String {
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = front.local_addr().unwrap().to_string();
    back.connect(to).unwrap();
    let patience = Some(Duration::from_millis(1));
    front.set_read_timeout(patience).and_then(|()| back.set_read_timeout(patience)).unwrap();
    std::thread::spawn(move || {
        let (mut buffer, mut sender, mut ssrcs) = ([0; 2_000], None, [[0; 4]; 2]);
        loop {
            for way in [0, 1] {
                let came = match way {
                    0 => front.recv_from(&mut buffer).map(|(len, from)| (len, sender.insert(from)).0),
                    _ => back.recv(&mut buffer),
                };
                let (Ok(len), Some(sender)) = (came, sender) else { continue };
                let packet = &buffer[..len];
                let is_rtcp = (192..=223).contains(&packet[1]);
                if is_rtcp || way == 0 {
                    ssrcs[way].copy_from_slice(&packet[if is_rtcp { 4..8 } else { 8..12 }]);
                }
                let goodbye = [&[0x81, 203, 0, 1][..], &ssrcs[way]].concat();
                let garbage: Vec<u8> =
                    packet.iter().enumerate().map(|(at, byte)| byte ^ (at as u8 & 0x3f)).collect();
                for packet in [packet, packet, &packet[..len / 2], &garbage, &goodbye] {
                    let _ = if way == 0 { back.send(packet) } else { front.send_to(packet, sender) };
                }
            }
        }
    });
    address
}

#[test]
fn forged_and_replayed_packets_beside_srtp_are_dropped_and_told() {
    let receiver = keyed(&closed_port(), &["--reference", "testsrc"]);
    let ended = streaming(&meddle(receiver.address.clone()), "4").wait_with_output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert!(ended.status.success() && json["ended"] == "stop", "{json:#}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("do not have the key"), "{ended:?}");
    let count = |key: &str| json[key].as_f64().unwrap();
    assert!(count("replayed") > 40.0 && count("unauthentic") > 80.0, "{json:#}");
    receiver.interrupt();
    let (code, told) = receiver.told();
    let (without, again) = (number(&told, "SRTP dropped"), number(&told, "key and"));
    // A packet, its copy, and its half with the same number; garbage and a goodbye.
    let came = count("acknowledged");
    assert!(code == Some(0) && again >= 2.0 * came && without >= 2.0 * came, "{told}");
    assert!(count("lost") < 0.02 * count("packets"), "{json:#}");
}

/// The end that a NAT gives another port.
#[derive(Clone, Copy, PartialEq)]
enum Moves {
    Sender,
    Receiver,
}

/// A NAT between both ends, which gives one of them another port after that time.
fn rebinding(to: String, after: Duration, moves: Moves) -> String {
    fn bound() -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        socket
    }
    let (mut front, mut back) = (bound(), bound());
    let address = front.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut buffer, mut sender, began) = ([0; 2_000], None, Instant::now());
        for until in [after, Duration::MAX] {
            match moves {
                _ if until == after => {}
                Moves::Sender => back = bound(),
                Moves::Receiver => front = bound(),
            }
            back.connect(&to).unwrap();
            while began.elapsed() < until {
                if let Ok((len, from)) = front.recv_from(&mut buffer) {
                    sender = Some(from);
                    let _ = back.send(&buffer[..len]);
                }
                if let (Ok(len), Some(sender)) = (back.recv(&mut buffer), sender) {
                    let _ = front.send_to(&buffer[..len], sender);
                }
            }
        }
    });
    address
}

/// A stream of so many seconds; one of its ends gets another port after two: the address before, the sender's row, and the frames shown of each source.
fn moving(moves: Moves, seconds: &str) -> (String, serde_json::Value, Vec<f64>) {
    let receiver = keyed(&closed_port(), &["--reference", "testsrc"]);
    let address = rebinding(receiver.address.clone(), Duration::from_secs(2), moves);
    let ended = streaming(&address, seconds).wait_with_output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert!(ended.status.success() && json["ended"] == "stop", "{json:#}");
    receiver.interrupt();
    let (code, text) = receiver.ended();
    assert_eq!(code, Some(0), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = text.match_indices("video:").map(|(at, _)| number(&text[at..], "video:")).collect();
    (address, json, shown)
}

#[test]
fn a_stream_goes_on_from_another_address() {
    let (_, json, shown) = moving(Moves::Sender, "5");
    let count = |key: &str| json[key].as_f64().unwrap();
    assert!(count("acknowledged") > 0.95 * count("packets"), "{json:#}");
    // Two sources to the receiver, and one film: all frames but those until the new source's key frame.
    assert!(shown.len() == 2 && shown.iter().sum::<f64>() >= 135.0, "{shown:?}");
}

#[test]
fn a_stream_follows_its_receiver_to_another_address() {
    let (before, json, shown) = moving(Moves::Receiver, "6");
    assert!(json["peer"].as_str().is_some_and(|peer| peer != before), "{json:#}");
    // One source to the receiver: all frames but those of a second and a half.
    assert!(shown.len() == 1 && shown[0] >= 135.0, "{shown:?}");
}

/// RTP of a player that was not told of our payload type.
#[test]
fn packets_of_an_unknown_payload_type_are_told_of() {
    let scratch = Scratch::new("video-type");
    let pictures = scratch.path("out.y4m");
    let mut receiver = Receiver::at(&closed_port(), &["--plain", "--output", &pictures]);
    receiver.listens();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..20_u8 {
        // Version 2, type 100, sequence number and timestamp, SSRC 171, the header of a NAL unit.
        let packet = [0x80, 100, 0, number, 0, 0, number, 0, 0, 0, 0, 171, 0x65, 1, 2, 3];
        socket.send_to(&packet, &receiver.address).unwrap();
        pause(0.02);
    }
    receiver.interrupt();
    let (code, told) = receiver.told();
    assert!(code == Some(0) && told.matches("000000ab").count() == 1, "{told}");
    assert!(told.contains("has payload type 100, and video is expected with 96"), "{told}");
    assert!(told.contains("out.y4m is empty: no picture came"), "{told}");
}

#[test]
fn a_full_disk_is_told_at_once_and_what_is_whole_stays() {
    let scratch = Scratch::new("video-full");
    let pictures = scratch.path("out.y4m");
    // 300 blocks of 512 or 1024 bytes, by the shell.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 300; exec \"$0\" \"$@\"", PROGRAM]).envs([KEY]);
    let mut receiver = Receiver::by(
        &mut limited,
        &closed_port(),
        &["--once", "--output", &pictures, "--reference", "testsrc"],
    );
    receiver.listens();
    let ended = streaming(&receiver.address, "3").wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let (code, told) = receiver.told();
    assert_eq!((code, told.matches("out.y4m, which is not complete").count()), (Some(MACHINE), 2), "{told}");
    let len = std::fs::metadata(&pictures).unwrap().len() as usize;
    assert!(len > 2 * PICTURE && (len - HEADER).is_multiple_of(PICTURE), "{len}");
    // So is a recording, of 1 kB at most; the stream goes on.
    let record = scratch.path("record.jsonl");
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\"", PROGRAM]).envs([KEY]);
    let options = ["--once", "--record", &record, "--reference", "testsrc"];
    let mut receiver = Receiver::by(&mut limited, &closed_port(), &options);
    receiver.listens();
    let ended = streaming(&receiver.address, "2").wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let (code, told) = receiver.told();
    let said = format!("cannot write {record}, which is not complete");
    assert!(code == Some(MACHINE) && told.contains(&said), "{told}");
    assert!(std::fs::metadata(&record).unwrap().len() > 1_000, "{record} has what there was room for");
    // A device that is full has nothing to cut.
    let device = scratch.path("device.y4m");
    std::os::unix::fs::symlink("/dev/full", &device).unwrap();
    let receiver = keyed(&closed_port(), &["--once", "--output", &device]);
    let ended = streaming(&receiver.address, "1").wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let (code, told) = receiver.told();
    assert!(code == Some(MACHINE) && told.contains("No space left"), "{told}");
}
