//! Real video: `lastmile stream SOURCE HOST` to `lastmile receive --output`, and what cannot be sent or written.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::Value;

use super::streams::{Receiver, stream};
use super::{PEER, USAGE, closed_port};
use crate::common::{PROGRAM, Scratch, lastmile, read};

/// The number before or after a word in a text.
pub(super) fn number(text: &str, before: &str) -> f64 {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("{before:?} in {text}")).1;
    let digits = rest.split(|sign: char| !sign.is_ascii_digit() && sign != '.').find(|part| !part.is_empty());
    digits
        .and_then(|digits| digits.trim_end_matches('.').parse().ok())
        .unwrap_or_else(|| panic!("{before:?} in {text}"))
}

#[test]
fn the_test_pattern_arrives_in_pictures_that_can_be_compared() {
    let scratch = Scratch::new("video");
    let [pictures, record, sdp, page] =
        ["out.y4m", "received.jsonl", "stream.sdp", "received.html"].map(|name| scratch.path(name));
    let mut options = vec!["--once", "--output", &pictures, "--reference", "testsrc", "--record", &record];
    if cfg!(feature = "pages") {
        options.extend(["--html", &page]);
    }
    let receiver = Receiver::start(&options);
    let options = ["--size", "160x120", "--seconds", "3", "--max", "1 Mbit/s", "--sdp", &sdp, "--json"];
    let ended = receiver.stream("testsrc", &options);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let receiver_key = receiver.key.clone().unwrap();
    let json = ended.json();
    let frames = json["frames"].as_u64().unwrap();
    assert!((85..=91).contains(&frames) && json["sent_bps"].as_f64().unwrap() > 200e3, "{json:#}");
    let (code, text) = receiver.ended();
    assert_eq!(code, Some(0), "{text}");
    // Lines are wrapped.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (shown, psnr, ssim) = (number(&text, "video:"), number(&text, "PSNR"), number(&text, "SSIM"));
    assert!(shown >= 0.8 * frames as f64 && psnr > 28.0 && ssim > 0.8, "{text}");
    let file = std::fs::read(&pictures).unwrap();
    assert!(file.starts_with(b"YUV4MPEG2 W160 H120 F30000:1000"));
    // As many places in time as there are from the first picture to the last: each has its picture. A frame or two may give none.
    let places = file.len() / (160 * 120 * 3 / 2 + 6);
    assert!(
        places as f64 + 2.0 >= shown && places as u64 <= frames,
        "{places} places, {shown} shown of {frames}"
    );
    if cfg!(feature = "pages") {
        let page = read(&page);
        assert!(page.contains("<h2>Video</h2>") && page.contains("above the least"));
        assert_eq!(page.matches("data:image/png;base64,").count(), 2);
    }
    let description = read(&sdp);
    assert!(description.contains("a=rtpmap:96 H264/90000") && description.contains("sprop-parameter-sets="));
    // It has the key, and nobody else may read it.
    assert!(
        description.contains(&format!("AES_CM_128_HMAC_SHA1_80 inline:{}", receiver_key)),
        "{description}"
    );
    assert_eq!(std::fs::metadata(&sdp).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!((&json["srtp"], &json["unauthentic"]), (&"AES_CM_128_HMAC_SHA1_80".into(), &0.into()));
    // Its recording needs no pictures.
    let replayed = lastmile(&["replay", &record]);
    assert!(replayed.code == Some(0) && replayed.stdout.contains("all as recorded"), "{replayed:?}");
}

#[test]
fn a_file_is_sent_over_and_over_and_kept_as_it_came() {
    let scratch = Scratch::new("video-file");
    let mut y4m = b"YUV4MPEG2 W64 H48 F25:1\n".to_vec();
    for number in 0..10_u8 {
        y4m.extend(b"FRAME\n");
        y4m.extend((0..64 * 48 * 3 / 2).map(|at: u32| (at * 7) as u8 ^ (number * 11)));
    }
    let (file, kept) = (scratch.file("in.y4m", &y4m), scratch.path("out.h264"));
    let receiver = Receiver::start(&["--once", "--output", &kept, "--reference", &file]);
    let ended = receiver.stream(&file, &["--seconds", "1", "--rate", "2 Mbit/s", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!((24..=26).contains(&ended.json()["frames"].as_u64().unwrap()), "{ended:?}");
    let (code, text) = receiver.ended();
    assert!(code == Some(0) && text.contains("PSNR"), "{text}");
    // A sequence parameter set stands first.
    assert!(std::fs::read(&kept).unwrap().starts_with(&[0, 0, 0, 1, 0x67]));
}

#[test]
fn audio_beside_video_is_no_part_of_its_pictures() {
    let scratch = Scratch::new("video-audio");
    let times = scratch.path("out.csv");
    let receiver = Receiver::start(&["--once", "--output", &times, "--reference", "testsrc"]);
    let options = ["--size", "160x120", "--seconds", "2", "--max", "1 Mbit/s", "--audio", "--json"];
    let ended = receiver.stream("testsrc", &options);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json()["audio"]["lost"], 0, "{ended:?}");
    let (code, text) = receiver.ended();
    assert_eq!(code, Some(0), "{text}");
    // Its frames are told of the video's source alone, with the quality.
    assert!(text.matches("stream from").count() >= 2 && text.matches("frames shown").count() == 1, "{text}");
    assert!(text.contains("SSIM") && !text.contains("no picture"), "{text}");
    assert!(read(&times).lines().count() > 40);
}

/// The player of a pipe is paused for all of the stream: nothing waits for it.
#[test]
fn a_player_that_is_paused_stops_neither_end() {
    let scratch = Scratch::new("video-paused");
    let pipe = scratch.path("seen.y4m");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let player = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
    let receiver = Receiver::start(&["--once", "--output", &pipe]);
    let ended =
        receiver.stream("testsrc", &["--size", "1280x720", "--seconds", "3", "--frame-rate", "10", "--json"]);
    assert_eq!((ended.code, &ended.json()["refused"]), (Some(0), &Value::Null), "{ended:?}");
    let (code, text) = receiver.ended();
    // 8 MB hold six of the pictures.
    assert!(code == Some(0) && number(&text, "unusable") == 0.0, "{text}");
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains("left out, since"), "{text}");
    drop(player);
}

/// A camera is another program, which ends after two seconds.
#[test]
fn pictures_of_another_program_are_sent_as_they_come_to_its_end() {
    let scratch = Scratch::new("video-pipe");
    let pipe = scratch.path("camera.y4m");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let camera = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut out = std::fs::File::options().write(true).open(pipe).unwrap();
            out.write_all(b"YUV4MPEG2 W64 H48 F25:1\n").unwrap();
            for number in 0..50_u8 {
                out.write_all(b"FRAME\n").unwrap();
                out.write_all(&[60 + 3 * number; 64 * 48 * 3 / 2]).unwrap();
                std::thread::sleep(Duration::from_millis(40));
            }
        }
    });
    let receiver = Receiver::start(&["--once", "--output", &scratch.path("out.y4m")]);
    let ended = receiver.stream(&pipe, &["--seconds", "20", "--rate", "1 Mbit/s", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    camera.join().unwrap();
    let frames = ended.json()["frames"].as_u64().unwrap();
    assert!((8..=60).contains(&frames) && ended.after.as_secs() < 12, "{ended:?}");
    let (code, text) = receiver.ended();
    assert_eq!(code, Some(0), "{text}");
    // A film that comes all at once: the first picture is taken, the newest is left.
    let mut film = b"YUV4MPEG2 W64 H48 F25:1\n".to_vec();
    (0..100_u8).for_each(|number| film.extend([&b"FRAME\n"[..], &[number; 64 * 48 * 3 / 2]].concat()));
    let receiver = Receiver::start(&["--output", &scratch.path("film.y4m")]);
    // Audio beside it ends with it.
    let began = std::time::Instant::now();
    let mut ended = receiver.streaming(&["--seconds", "30", "--audio", "--rate", "1 Mbit/s", "--json"]);
    ended.stdin.take().unwrap().write_all(&film).unwrap();
    let told = ended.wait_with_output().unwrap();
    let json: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!((&json["ended"], &json["audio"]["ended"]), (&"stop".into(), &"stop".into()), "{json:#}");
    assert!(began.elapsed().as_secs() < 15, "{told:?}");
    let told = String::from_utf8_lossy(&told.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("pictures came too soon and were left out"), "{told}");
    // Nothing is on the standard input here.
    stream("-", &[&closed_port()[..], "--plain"]).is_error(USAGE, &["standard input", "it is empty"]);
    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut typed = std::process::Command::new(PROGRAM);
    let typed =
        typed.args(["stream", "-", &closed_port(), "--plain"]).stdin(terminal.slave).output().unwrap();
    let told = String::from_utf8_lossy(&typed.stderr);
    assert!(typed.status.code() == Some(USAGE) && told.contains("standard input is a terminal"), "{told}");
    lastmile(&["receive", "--port", "0", "--reference", &pipe])
        .is_error(USAGE, &["camera.y4m", "not of a pipe"]);
}

#[test]
fn what_cannot_be_sent_says_why() {
    let scratch = Scratch::new("video-refused");
    let to = closed_port();
    let refused = |source: &str, options: &[&str], said: &[&str]| {
        stream(source, &[&[&to[..], "--plain"][..], options].concat()).is_error(USAGE, said);
    };
    refused(&scratch.file("odd.y4m", "YUV4MPEG2 W63 H48 F25:1\n"), &[], &["odd.y4m", "63x48", "even"]);
    refused(&scratch.file("not.y4m", "RIFF....AVI \n"), &[], &["does not begin with YUV4MPEG2"]);
    refused(&scratch.path("none.y4m"), &[], &["none.y4m", "No such file"]);
    refused("testsrc", &["--size", "640"], &["640x480"]);
    refused("testsrc", &["--size", "20000x20000"], &["20000x20000"]);
    refused("testsrc", &["--ladder=0bit/s"], &["--ladder", "above zero"]);
    refused("testsrc", &["--source", "cbr"], &["leave out --source"]);
    refused("testsrc", &["--packet-size", "100 B"], &["--packet-size", "150"]);
    refused("testsrc", &["--record", &scratch.path("sent.jsonl")], &["--record", "at the receiver"]);
    // A film that would be written over stays.
    let film = scratch.file("film.y4m", "YUV4MPEG2 W64 H48 F25:1\n");
    refused(&film, &["--events", &film], &["--events", "is SOURCE's"]);
    refused(&film, &["--sdp", &film], &["--sdp", "is SOURCE's"]);
    assert_eq!(read(&film), "YUV4MPEG2 W64 H48 F25:1\n");
    stream("testsrc", &[&to])
        .is_error(USAGE, &["real video is sent as SRTP", "--plain", "LASTMILE_SRTP_KEY"]);
    stream(&to, &["--gcm"]).is_error(USAGE, &["--gcm", "--sdp"]);
    let bad = scratch.file("bad.key", "too short");
    std::fs::set_permissions(&bad, std::fs::Permissions::from_mode(0o600)).unwrap();
    stream("testsrc", &[&to, "--key-file", &bad]).is_error(USAGE, &["bad.key", "base64 of 30 bytes"]);
    stream("testsrc", &[&to, "--key-file", &scratch.path("no.key")])
        .is_error(USAGE, &["no.key", "No such file"]);
    stream(&to, &["--size", "64x48"]).is_error(USAGE, &["--size is for real video"]);
    stream(&to, &["--ladder"]).is_error(USAGE, &["--ladder is for real video"]);
    let receive =
        |options: &[&str]| lastmile(&[&["receive", "--bind", "127.0.0.1", "--port", "0"], options].concat());
    receive(&["--output", &scratch.path("out.mp4")]).is_error(USAGE, &["out.mp4", ".y4m", ".h264"]);
    receive(&["--output", "/nowhere/out.y4m"]).is_error(USAGE, &["/nowhere/out.y4m", "No such file"]);
    receive(&["--output", &film, "--reference", &film]).is_error(USAGE, &["--output", "is --reference's"]);
    receive(&["--frame-rate", "30"]).is_error(USAGE, &["--frame-rate", "--output"]);
}

/// The second picture of the file is cut.
#[test]
fn a_file_that_breaks_off_ends_the_stream() {
    let scratch = Scratch::new("video-cut");
    let mut y4m = b"YUV4MPEG2 W64 H48 F25:1\nFRAME\n".to_vec();
    y4m.resize(y4m.len() + 64 * 48 * 3 / 2, 90);
    y4m.extend(b"FRAME\n12345");
    let file = scratch.file("cut.y4m", &y4m);
    let receiver = Receiver::start(&[]);
    let ended = receiver.stream(&file, &["--plain", "--seconds", "20", "--rate", "1 Mbit/s"]);
    // It says what it sent until then.
    assert!(ended.code == Some(USAGE) && ended.stdout.contains("cost: "), "{ended:?}");
    assert!(!ended.stdout.contains("interrupted"), "{ended:?}");
    let json = receiver
        .stream(&file, &["--plain", "--audio", "--json", "--seconds", "20", "--rate", "1 Mbit/s"])
        .json();
    assert!(json["ended"].is_null() && json["audio"]["ended"].is_null(), "{json:#}");
    assert!(ended.stderr.contains("cut.y4m") && ended.stderr.contains("ends within picture 1"), "{ended:?}");
    assert!(ended.after.as_secs() < 5, "{ended:?}");
    receiver.interrupt();
    receiver.ended();
}

#[test]
fn the_wrong_key_is_told_at_both_ends() {
    let scratch = Scratch::new("video-key");
    for gcm in [&[][..], &["--gcm"]] {
        let mut receiver = Receiver::start(&[&["--output", &scratch.path("out.y4m")][..], gcm].concat());
        // One sign is another one.
        let mut key = receiver.key.clone().unwrap();
        key.replace_range(..1, if key.starts_with('A') { "B" } else { "A" });
        receiver.key = Some(key);
        let options = ["--size", "64x48", "--rate", "100 kbit/s", "--max-seconds", "1"];
        receiver
            .stream("testsrc", &options)
            .is_error(PEER, &["does not answer", "it has another key of SRTP"]);
        receiver.interrupt();
        let (code, told) = receiver.told();
        assert_eq!(code, Some(0), "{told}");
        assert_eq!(told.matches("do not have the key of SRTP").count(), 1, "{told}");
        assert!(
            told.contains("SRTP dropped") && told.contains("packets without the key and 0 that"),
            "{told}"
        );
    }
}

/// Neither end takes the other's plain RTP.
#[test]
fn plain_rtp_is_not_taken_where_srtp_is_asked_for() {
    let scratch = Scratch::new("video-plain");
    let receiver = Receiver::start(&["--output", &scratch.path("out.y4m")]);
    let options = ["--plain", "--size", "64x48", "--rate", "100 kbit/s", "--max-seconds", "1"];
    receiver.stream("testsrc", &options).is_error(PEER, &["does not answer"]);
    receiver.interrupt();
    let (code, told) = receiver.told();
    assert!(code == Some(0) && told.contains("sends plain RTP"), "{told}");
}

#[test]
fn video_goes_over_ipv6_with_gcm() {
    let scratch = Scratch::new("video-ipv6");
    let receiver = Receiver::bound("::1", &["--once", "--gcm", "--reference", "testsrc"]);
    let events = scratch.path("events.jsonl");
    let options = ["--size", "160x120", "--seconds", "2", "--max", "1 Mbit/s", "--json", "--events", &events];
    let ended = receiver.stream("testsrc", &options);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    assert_eq!((&json["srtp"], &json["replayed"]), (&"AEAD_AES_128_GCM".into(), &0.into()));
    assert!(json["peer"].as_str().unwrap().starts_with("[::1]:"));
    let (code, text) = receiver.ended();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code == Some(0) && number(&text, "video:") > 40.0 && number(&text, "SSIM") > 0.8, "{text}");
}

#[test]
fn events_of_frames_have_their_rate_and_quality() {
    let mut receiver = Receiver::at(&closed_port(), &["--once", "--json", "--reference", "testsrc"]);
    receiver.key = receiver.noted_key();
    let options = ["--size", "160x120", "--seconds", "3", "--max", "1 Mbit/s", "--json"];
    let ended = receiver.stream("testsrc", &options);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!((ended.json()["frame_rate"].as_f64().unwrap() - 30.0).abs() < 2.0, "{ended:?}");
    let (code, text) = receiver.ended();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let viewed: Vec<_> = events.filter(|event| event["event"] == "frames-viewed").collect();
    let last = viewed.last().unwrap_or_else(|| panic!("{code:?} {text}"));
    let number = |key: &str| last[key].as_f64().unwrap_or_else(|| panic!("{key}: {last:#}"));
    assert!(number("psnr_db") > 28.0 && number("ssim") > 0.8 && number("frame_rate") > 20.0, "{last:#}");
    assert!(last["viewed"]["freezes"].is_u64() && last["viewed"]["late"].is_u64(), "{last:#}");
}

/// A key in the environment is for other streams: the description's packets are plain RTP.
#[test]
fn a_description_goes_before_the_key_of_the_environment() {
    let scratch = Scratch::new("video-sdp-key");
    let to = closed_port();
    let port = to.rsplit_once(':').unwrap().1;
    let text = format!("v=0\nc=IN IP4 127.0.0.1\nm=video {port} RTP/AVP 96\na=rtpmap:96 H264/90000\n");
    let (file, times) = (scratch.file("stream.sdp", text), scratch.path("times.csv"));
    let mut receiver = std::process::Command::new(PROGRAM)
        .args(["receive", "--bind", "127.0.0.1", "--once", "--sdp", &file, "--output", &times])
        .env("LASTMILE_SRTP_KEY", "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let options = ["--plain", "--size", "64x48", "--rate", "100 kbit/s", "--seconds", "1"];
    let sent = lastmile(&[&["stream", "testsrc", &to][..], &options].concat());
    assert_eq!((sent.code, receiver.wait().unwrap().code()), (Some(0), Some(0)), "{sent:?}");
    assert!(read(&times).lines().count() > 20);
}

/// Descriptions that `receive --sdp` refuses, each with its reason.
#[test]
fn descriptions_that_cannot_be_received_say_why() {
    let scratch = Scratch::new("video-sdp");
    let text = "v=0\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 100\na=rtpmap:100 H264/90000\na=fmtp:100 packetization-mode=1\n";
    let refused = |text: &str, said: &[&str]| {
        let file = scratch.file("stream.sdp", text);
        lastmile(&["receive", "--bind", "127.0.0.1", "--sdp", &file]).is_error(USAGE, said);
    };
    refused("hello", &["stream.sdp", "must begin with v=0"]);
    let file = scratch.file("whole.sdp", text);
    lastmile(&["receive", "--sdp", &file, "--reference", "testsrc"])
        .is_error(USAGE, &["--reference", "timestamp", "--output"]);
    refused(&text.replace("H264", "VP8"), &["no video"]);
    refused(&text.replace("mode=1", "mode=2"), &["interleaved"]);
    refused(&text.replace("127.0.0.1", "224.2.1.1/127"), &["group of hosts"]);
    refused(&text.replace("RTP/AVP", "RTP/SAVP"), &["without an a=crypto line that can be used"]);
}
