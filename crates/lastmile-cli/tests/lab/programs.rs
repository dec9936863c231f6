//! People's programs in the lab: names, standard input, a shell on a terminal, how they end and what hosts lose.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::common::{Ended, PROGRAM, lastmile};
use super::{no_lab, within};

fn lab(arguments: &str) -> Ended {
    // `%` stands for a space within a word.
    let words: Vec<String> = arguments.split(' ').map(|word| word.replace('%', " ")).collect();
    lastmile(&[&["lab", "path"][..], &words.iter().map(String::as_str).collect::<Vec<_>>()].concat())
}

#[test]
fn programs_know_the_hosts_by_name_and_the_last_reads_standard_input() {
    if no_lab() {
        return;
    }
    let script = "cat; hostname; getent hosts sender receiver; grep localhost /etc/hosts";
    let mut child = Command::new(PROGRAM)
        .args(["lab", "path", "--in", "receiver", "--", "sh", "-c", "cat | sed s/^/eaten/", "--in", "sender"])
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("piped").write_all(b"what was given\n").expect("it reads");
    let text = String::from_utf8(child.wait_with_output().expect("its end").stdout).expect("text");
    for part in ["what was given\nsender\n", "sender\n", "receiver\n", "localhost"] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    assert!(!text.contains("eatenwhat"), "{text}");
    // Nothing of it is seen outside.
    assert!(!std::fs::read_to_string("/etc/hosts").unwrap_or_default().contains("receiver"));
}

#[test]
fn each_program_has_a_line_and_the_lab_ends_as_they_did() {
    if no_lab() {
        return;
    }
    let two =
        "--in receiver -- sh -c exit%3 --in receiver -- sleep 60 --in sender -- sh -c sleep%0.3;kill%-9%$$";
    let ended = lab(two);
    for part in [
        "receiver: exit code 3 after ",
        "receiver: stopped by the lab after ",
        "sender: ended by SIGKILL after ",
    ] {
        assert!(ended.stdout.contains(part), "{part:?} is missing: {ended:?}");
    }
    assert_eq!(ended.code, Some(1));
    let failed =
        "lastmile: sh in receiver ended with exit code 3; sh in sender was ended by SIGKILL, exit code 137\n";
    assert_eq!(ended.stderr, failed);
    let json = lab(&format!("--json {two}")).json();
    let all = ["exit_code", "signal", "stopped"].map(|key| {
        json["programs"].as_array().expect("programs").iter().map(|end| end[key].clone()).collect::<Vec<_>>()
    });
    assert_eq!(all[0], [3, 143, 137].map(Value::from));
    assert_eq!(all[1], [Value::Null, "SIGTERM".into(), "SIGKILL".into()]);
    assert_eq!(all[2], [false, true, false].map(Value::from));
    assert_eq!(json["exit_code"], 137);
    lastmile(&["lab", "path", "--max-seconds", "1s"]).is_error(2, &["--in"]);
    // One failure alone is the lab's own.
    for (command, code) in [("exit%42", 42), ("kill%-9%$$", 137)] {
        let ended = lab(&format!("--in receiver -- sleep 60 --in sender -- sh -c {command}"));
        assert_eq!(ended.code, Some(code), "{ended:?}");
    }
}

#[test]
fn time_that_is_up_is_no_success() {
    if no_lab() {
        return;
    }
    let ended = lab("--json --max-seconds 500ms --in sender -- sleep 60");
    let json = ended.json();
    let (end, seconds) = (&json["programs"][0], json["programs"][0]["seconds"].as_f64());
    // The limit counts from the lab's start, the program's seconds from its own.
    assert!(end["stopped"] == true && seconds.is_some_and(|s| (0.4..2.0).contains(&s)), "{ended:?}");
    let why = "lastmile: --max-seconds 500 ms ended what still ran: sleep in sender\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), why));
    // A server is stopped with the last program, and a limit that nobody met changes nothing.
    let ended = lab("--json --max-seconds 60s --in receiver -- sleep 60 --in sender -- true");
    let late = !ended.json()["lateness"]["refused"].is_null();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(i32::from(late)), ""));
}

#[test]
fn what_a_host_lost_is_said_apart_from_the_links() {
    if no_lab() {
        return;
    }
    let json = lab("--json --in sender -- bash -c echo%>/dev/udp/receiver/9;sleep%0.3").json();
    let lost: Vec<&Value> =
        json["hosts"].as_array().expect("hosts").iter().map(|host| &host["udp_no_port"]).collect();
    assert_eq!(
        (&json["hosts"][1]["host"], lost),
        (&"receiver".into(), vec![&0.into(), &1.into()]),
        "{json:#}"
    );
    assert_eq!(json["links"][0]["lost"], serde_json::json!({}));
    // A server that the lab stopped did not lose what was still under way to it.
    let stopped = "bash -c trap%'sleep%0.4'%TERM;sleep%60&%wait";
    let late = "bash -c echo%>/dev/udp/receiver/9";
    let json =
        lab(&format!("--json --set link.0.delay=150ms --in receiver -- {stopped} --in sender -- {late}"))
            .json();
    let end = &json["programs"][0];
    assert!(end["stopped"] == true && json["hosts"][1]["udp_no_port"] == 0, "{json:#}");
    let text = lab("--in sender -- bash -c echo%>/dev/udp/receiver/9;sleep%0.3").stdout;
    assert!(
        text.contains("receiver itself lost packets: 1 to UDP ports at which nothing listened"),
        "{text}"
    );
}

/// Keys are a shell's own, and it stops and goes on with what runs in it.
#[test]
fn a_shell_has_the_terminal() {
    if no_lab() {
        return;
    }
    let command = format!("{PROGRAM} lab path --in sender -- bash --norc -i");
    let Ok(mut terminal) = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
    else {
        return eprintln!("lab: skipped: there is no script here to make a terminal");
    };
    let shown = Arc::new(Mutex::new(String::new()));
    let (mut out, copy) = (terminal.stdout.take().expect("piped"), Arc::clone(&shown));
    let reader = std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(n @ 1..) = out.read(&mut piece) {
            copy.lock().expect("text").push_str(&String::from_utf8_lossy(&piece[..n]));
        }
    });
    let mut keys = terminal.stdin.take().expect("piped");
    let mut type_until = |typed: &str, answer: &str| {
        let begins = shown.lock().expect("text").len();
        keys.write_all(typed.as_bytes()).expect("it reads");
        let seen = || shown.lock().expect("text")[begins..].contains(answer);
        assert!(within(Duration::from_secs(10), seen), "no {answer:?}: {}", shown.lock().expect("text"));
    };
    type_until("echo in-$(hostname)\r", "in-sender");
    type_until("sleep 600; echo after\r", "sleep 600");
    std::thread::sleep(Duration::from_millis(300));
    type_until("\u{1a}", "Stopped");
    type_until("fg\r", "sleep 600");
    std::thread::sleep(Duration::from_millis(300));
    type_until("\u{3}", "bash-");
    type_until("echo code $?\r", "code 130");
    type_until("exit 5\r", "sender: exit code 5 after");
    drop(keys);
    assert_eq!(terminal.wait().expect("its end").code(), Some(5));
    reader.join().expect("all of it");
    assert!(shown.lock().expect("text").contains("bash in sender ended with exit code 5"));
}
