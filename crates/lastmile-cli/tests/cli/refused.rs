//! Options, scenarios and places that cannot be.

use std::process::Command;

use super::{MACHINE, USAGE};
use crate::common::{PROGRAM, Scratch, lastmile, run};

#[test]
fn methods_and_their_parameters() {
    for command in
        [["measure", "127.0.0.1", "--method", "nonsense"], ["accuracy", "--runs=1", "--method", "nonsense"]]
    {
        lastmile(&command).is_error(USAGE, &["nonsense", "wbest"]);
    }
    lastmile(&["measure", "127.0.0.1", "--trains", "0"]).is_error(USAGE, &["train"]);
    lastmile(&["measure", "127.0.0.1", "--method", "wbest(classifier=nonsense)"])
        .is_error(USAGE, &["nonsense"]);
    let scratch = Scratch::new("methods");
    let text = lastmile_sim::scenario::builtin_text("path").unwrap().replace("\"wbest\"", "\"nonsense\"");
    let file = scratch.file("path.toml", text);
    lastmile(&["sim", &file]).is_error(USAGE, &["path.toml:", "method", "nonsense", "wbest"]);
}

#[test]
fn what_would_be_ignored_is_refused() {
    for (command, parts) in [
        ("measure 127.0.0.1 --method capprobe --trains 4", &["--trains", "capprobe"][..]),
        ("measure 127.0.0.1 --method capprobe --trains 1", &["--trains", "capprobe"]),
        ("accuracy --runs 1 --method capprobe --trains 1", &["--trains", "capprobe"]),
        (
            "sim path --set measure.0.method=capprobe --set measure.0.trains=1",
            &["measure[0].trains", "capprobe"],
        ),
        ("sim path --set measure.0.trains=1001", &["measure[0].trains", "1000"]),
        ("sweep path --seeds 0", &["--seeds", "0"]),
        ("sweep path --seeds 2 --set seed=1,2", &["--seeds", "--set seed"]),
        ("sweep path --set link.0.rate=1Mbit/s,1Mbit/s", &["link.0.rate", "twice"]),
        ("sweep path --set link.0.rate=1Mbit/s,fast", &["link.0.rate=fast", "path.toml:15"]),
        ("sweep path --set link.0.rate=", &["link.0.rate"]),
        ("sweep path --set link.0.rate", &["KEY=VALUES"]),
        ("sweep path --seeds 1000000 --set link.0.rate=1Mbit/s,2Mbit/s", &["2000000 runs"]),
        ("sim path --set link.0.rate=1M --set link.0.rate=2M", &["link.0.rate twice"]),
        ("sim path --set link.0.queue=1000", &["link[0].queue", "1000 packets", "1000B for bytes"]),
        ("evaluate rmcat --queue fq_codel", &["--queue", "did you mean \"fq-codel\"?"]),
        ("evaluate rmcat --loss 101%", &["--loss", "0% to 100%"]),
        ("sweep path --threads 0", &["--threads"]),
        ("measure 127.0.0.1 --method wbest(capacity=10Mbit/s,pairs=30)", &["pairs of wbest", "capacity"]),
        ("measure 127.0.0.1 --packet-size 9000B", &["--packet-size 9000", "1500", "--direction forward"]),
        ("measure 127.0.0.1 --direction reverse --packet-size 1501B", &["--packet-size 1501", "1500"]),
        ("accuracy --runs 0", &["--runs 0", "at least 1"]),
        ("stream 127.0.0.1:0", &["127.0.0.1:0", "port 0"]),
        ("paths --without fq", &["--without", "fq-codel"]),
        ("paths --runs 0", &["--runs 0", "--cells"]),
        ("paths --runs 5 --show 5", &["no path has the number 5", "5, from 0"]),
        ("paths --runs 1 --method nonsense", &["nonsense", "wbest"]),
        ("accuracy --runs 1 --realtime", &["--realtime", "--world lab"]),
        ("accuracy --runs 1 --method wbest,capprobe --trains 4", &["--trains", "capprobe"]),
        ("accuracy --runs 1 --trains 0", &["trains", "0"]),
        ("receive --nack 0s", &["--nack", "11 ms at least, not 0 ns"]),
        ("stream 127.0.0.1 --retransmit 10ms", &["--retransmit", "11 ms at least, not 10 ms"]),
        ("receive --port 0 --html nowhere/page.html", &["cannot write nowhere/page.html: No such file"]),
        ("stream 127.0.0.1 --html /", &["cannot write /: Is a directory"]),
        ("demo --html nowhere/page.html", &["cannot write nowhere/page.html: No such file"]),
        ("evaluate rmcat --runs 10000 --report nowhere/x", &["cannot write nowhere/x: No such file"]),
        ("reproduce lda --runs 10000 --report nowhere/x", &["cannot write nowhere/x: No such file"]),
        ("lab path --realtime --in sender -- true", &["--realtime", "leave it out"]),
        ("lab path --record x --in sender -- true", &["--record", "leave it out"]),
        ("replay none.jsonl --method wbest", &["--streams", "see lastmile replay --help"]),
        ("measure", &["<HOST>", "see lastmile measure --help"]),
        ("measure 127.0.0.1 --dscp 64", &["--dscp", "64", "0 to 63", "af11 to af43"]),
        ("measure 127.0.0.1 --max-bytes 1000", &["--max-bytes", "\"1000\" has no unit: type 1000B"]),
        ("measure 127.0.0.1:7 --port 8 --max-seconds 1m", &["leave out one"]),
        ("measure 127.0.0.1 --every 1s --max-bytes-per-hour 0B", &["no round costs nothing"]),
        ("accuracy --rate 10", &["--rate", "type 10M for Mbit/s"]),
        ("measure 127.0.0.1 --packet-size 10", &["--packet-size of wbest", "\"10\" has no unit: type 10B"]),
        ("measure 127.0.0.1 --count 3", &["--count needs --every"]),
        ("measure 127.0.0.1 --prom x", &["--prom needs --every"]),
        ("measure 127.0.0.1 --method foo", &["no method \"foo\"", ", all"]),
        ("measure 127.0.0.1 --bind 192.0.2.1", &["192.0.2.1", "--bind takes an address of this host"]),
        ("enough 1M 127.0.0.1 -v", &["unexpected argument '-v' found; see"]),
        ("enough 10MB 127.0.0.1", &["counts bytes", "type 80M"]),
        ("sim path --set link.0.from=sendr", &["did you mean \"sender\"?"]),
        ("measure 127.0.0.1:7 --port 8", &["port 7", "--port 8", "leave out one"]),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        lastmile(&words).is_error(USAGE, parts);
    }
    let help = lastmile(&["measure", "--help"]);
    assert!(help.code == Some(0) && help.stdout.contains("--max-seconds") && help.stderr.is_empty());
    let bare = lastmile(&[]);
    assert!(bare.code == Some(2) && bare.stderr.contains("Usage:") && bare.stderr.contains("measure"));
}

#[test]
fn scenarios() {
    let scratch = Scratch::new("scenarios");
    let none = scratch.path("none.toml");
    let text = lastmile_sim::scenario::builtin_text("path").unwrap();
    let line = |what: &str| text.lines().position(|l| l.starts_with(what)).unwrap() + 1;
    let typo = scratch.file("typo.toml", text.replace("queue = ", "queeu = "));
    let rate = scratch.file("rate.toml", text.replace("rate = \"10 Mbit/s\"", "rate = \"10 apples\""));
    let broken = scratch.file("broken.toml", "name = \"x\"\nduration\n");
    let binary = scratch.file("binary.toml", [0xff, 0xfe, 0, 1]);
    for world in ["sim", "lab"] {
        lastmile(&[world, &none]).is_error(USAGE, &["cannot read scenario", "none.toml"]);
        lastmile(&[world, "nosuch"])
            .is_error(USAGE, &["cannot read scenario nosuch", "`lastmile scenarios`"]);
        let at = format!("typo.toml:{}", line("queue"));
        lastmile(&[world, &typo]).is_error(USAGE, &[&at, "queeu"]);
        let at = format!("rate.toml:{}", line("rate"));
        lastmile(&[world, &rate]).is_error(USAGE, &[&at, "rate", "10 apples"]);
        lastmile(&[world, &broken]).is_error(USAGE, &["broken.toml:2"]);
        lastmile(&[world, &binary]).is_error(USAGE, &["binary.toml"]);
    }
    // Nothing waits for a file that never ends.
    lastmile(&["sim", "/dev/zero"]).is_error(USAGE, &["/dev/zero:1", "more than 16000000 bytes"]);
    lastmile(&["bench-sim", "--only-ours", "--repeat", "0"]).is_error(USAGE, &["1..=100", "--repeat"]);
}

#[test]
fn programs_in_the_lab() {
    let bad = |arguments: &[&str], parts: &[&str]| {
        let ended = lastmile(&[&["lab", "path"], arguments].concat());
        // Without a lab the program reports its absence instead of faults that only a lab can find.
        if ended.code == Some(MACHINE) && ended.stderr.contains("namespaces") {
            return;
        }
        ended.is_error(USAGE, parts);
    };
    bad(&["--in", "nowhere", "--", "true"], &["no host \"nowhere\"", "sender, receiver"]);
    bad(&["--", "true"], &["--in HOST"]);
    bad(&["--in", "sender"], &["--in HOST -- COMMAND"]);
    bad(&["--in", "sender", "--", "ping", "{nosuch}"], &["{nosuch}", "{sender}, {receiver}"]);
    bad(&["--in", "sender", "--", "no-such-program-here"], &["no-such-program-here", "sender"]);
}

/// As nobody, who may make no namespaces; where users may, there is nothing to refuse.
#[test]
#[allow(clippy::print_stderr, reason = "a test that cannot run says so")]
fn a_lab_without_privilege() {
    let nobody = |arguments: &[&str]| {
        let ids = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
        run(Command::new("setpriv").args(ids).args(arguments))
    };
    let scratch = Scratch::new("nobody");
    let program = scratch.path("lastmile");
    std::fs::copy(PROGRAM, &program).unwrap();
    let may = Command::new("setpriv").arg("--version").output().is_ok() && nobody(&["true"]).code == Some(0);
    if !may || nobody(&[&program, "--version"]).code != Some(0) {
        eprintln!("skipped: cannot become nobody here");
        return;
    }
    let ended = nobody(&[&program, "lab", "path"]);
    if matches!(ended.code, Some(0 | 1)) {
        eprintln!("skipped: nobody may have a lab here");
        return;
    }
    ended.is_error(MACHINE, &["the lab needs", "run as root"]);
}

/// The demo's recording stands beside its page.
#[test]
fn a_demo_replaces_no_file_that_is_not_its_recording() {
    let scratch = Scratch::new("demo-recording");
    let (page, other) = (scratch.path("keep.html"), scratch.file("keep.jsonl", "{\"seed\":1}\n"));
    lastmile(&["demo", "--html", &page]).is_error(USAGE, &["keep.jsonl is no recording", "another page"]);
    assert_eq!(std::fs::read_to_string(other).unwrap(), "{\"seed\":1}\n");
}
