//! Real video: `lastmile stream SOURCE HOST` to `lastmile receive --output`, and what cannot be sent or written.

use super::streams::{Receiver, stream};
use super::{USAGE, closed_port};
use crate::common::{Scratch, lastmile, read};

/// The number before or after a word in a text.
fn number(text: &str, before: &str) -> f64 {
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
    let ended = stream("testsrc", &[&[&receiver.address[..]][..], &options].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
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
    let options = [&receiver.address[..], "--seconds", "1", "--rate", "2 Mbit/s", "--json"];
    let ended = stream(&file, &options);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!((24..=26).contains(&ended.json()["frames"].as_u64().unwrap()), "{ended:?}");
    let (code, text) = receiver.ended();
    assert!(code == Some(0) && text.contains("PSNR"), "{text}");
    // A sequence parameter set stands first.
    assert!(std::fs::read(&kept).unwrap().starts_with(&[0, 0, 0, 1, 0x67]));
}

#[test]
fn what_cannot_be_sent_says_why() {
    let scratch = Scratch::new("video-refused");
    let to = closed_port();
    let refused = |source: &str, options: &[&str], said: &[&str]| {
        stream(source, &[&[&to[..]][..], options].concat()).is_error(USAGE, said);
    };
    refused(&scratch.file("odd.y4m", "YUV4MPEG2 W63 H48 F25:1\n"), &[], &["odd.y4m", "63x48", "even"]);
    refused(&scratch.file("not.y4m", "RIFF....AVI \n"), &[], &["does not begin with YUV4MPEG2"]);
    refused(&scratch.path("none.y4m"), &[], &["none.y4m", "No such file"]);
    refused("testsrc", &["--size", "640"], &["640x480"]);
    refused("testsrc", &["--size", "20000x20000"], &["20000x20000"]);
    refused("testsrc", &["--source", "cbr"], &["leave out --source"]);
    refused("testsrc", &["--packet-size", "100 B"], &["--packet-size", "150"]);
    refused("testsrc", &["--record", &scratch.path("sent.jsonl")], &["--record", "at the receiver"]);
    stream(&to, &["--size", "64x48"]).is_error(USAGE, &["--size is for real video"]);
    let receive =
        |options: &[&str]| lastmile(&[&["receive", "--bind", "127.0.0.1", "--port", "0"], options].concat());
    receive(&["--output", &scratch.path("out.mp4")]).is_error(USAGE, &["out.mp4", ".y4m", ".h264"]);
    receive(&["--output", "/nowhere/out.y4m"]).is_error(USAGE, &["/nowhere/out.y4m", "No such file"]);
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
    let ended = stream(&file, &[&receiver.address, "--seconds", "20", "--rate", "1 Mbit/s"]);
    ended.is_error(USAGE, &["cut.y4m", "ends within picture 1"]);
    assert!(ended.after.as_secs() < 5, "{ended:?}");
    receiver.interrupt();
    receiver.ended();
}
