//! Scenarios that would never end, or need more memory than there is: refused at once, with the key to change.

use std::fmt::Write;

use lastmile::time::Time;
use lastmile_sim::scenario::{Scenario, build};

const TWO: &str = "name = \"x\"\nduration = \"DURATION\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\nLINK\n[[traffic]]\nfrom = \"a\"\nto = \"b\"\nTRAFFIC\n";
const CBR: &str = "kind = \"cbr\"\nrate = \"8 Mbit/s\"\nsize = \"1000 B\"";
const LIMITED: &str = "rate = \"1 Gbit/s\"\ndelay = \"1 ms\"";

/// Two hosts, a link between them, and a flow over it.
fn two(duration: &str, link: &str, traffic: &str) -> String {
    TWO.replace("DURATION", duration).replace("LINK", link).replace("TRAFFIC", traffic)
}

fn refused(text: &str, key: &str, reason: &str) {
    let error = Scenario::parse("x.toml", text).map(|_| ()).unwrap_err();
    assert!(error.line > 0 && error.key == key && error.reason.contains(reason), "{error}; {}", error.key);
}

#[test]
fn runs_without_end() {
    assert!(Scenario::parse("x.toml", &two("60 s", LIMITED, CBR)).is_ok());
    refused(&two("2629800 min", LIMITED, CBR), "duration", "longer than 31 days");
    let cbr = |rate: &str| CBR.replace("8 Mbit/s", rate);
    refused(&two("60 s", LIMITED, &cbr("8000 Gbit/s")), "traffic[0].rate", "cross links");
    refused(
        &two("1 us", LIMITED, &cbr("9000 Gbit/s")),
        "traffic[0].rate",
        "more than a packet in each nanosecond",
    );
    let later = format!("{CBR}\nchanges = [{{ at = \"1 ns\", rate = \"9000 Gbit/s\" }}]");
    refused(&two("1 us", LIMITED, &later), "traffic[0].rate", "more than a packet in each nanosecond");
    let bursts =
        |on: &str, off: &str| format!("{}\non = \"{on}\"\noff = \"{off}\"", CBR.replace("cbr", "onoff"));
    refused(&two("60 s", LIMITED, &bursts("0 s", "0 s")), "traffic[0].on", "more than no time");
    refused(&two("60 s", LIMITED, &bursts("1 ns", "0 s")), "traffic[0].on", "shorter than one packet");
    refused(
        &two("60 s", LIMITED, &bursts("1 ms", "10 h")),
        "traffic[0].rate",
        "more than a packet in each nanosecond",
    );
}

#[test]
fn connections_that_nothing_limits() {
    let ftp = "kind = \"ftp\"\ntcp = { max_window = 100 }";
    assert!(Scenario::parse("x.toml", &two("60 s", "delay = \"1 ms\"", ftp)).is_ok());
    refused(&two("60 s", "", ftp), "traffic[0].kind", "needs a rate or a delay");
    refused(&two("60 s", "delay = \"2 ns\"", ftp), "traffic[0].kind", "cross links");
    // Where nothing arrives there are only timeouts.
    let dead = "rate = \"1 Mbit/s\"\nlosses = [{ model = { kind = \"bernoulli\", rate = 1.0 } }]";
    let hasty = "kind = \"ftp\"\ntcp = { min_rto = \"1 ns\", initial_rto = \"1 ns\", max_rto = \"1 ns\" }";
    refused(&two("60 s", dead, hasty), "traffic[0].tcp.min_rto", "between 1 ms and an hour");
    // The air does, without any link.
    let air = "name = \"x\"\nduration = \"10 s\"\n[host.a]\n[host.b]\n[[wlan]]\nstation = [{ name = \"a\" }, { name = \"b\", ap = \"a\" }]\n[[traffic]]\nfrom = \"a\"\nto = \"b\"\n";
    assert_eq!(Scenario::parse("x.toml", &format!("{air}{ftp}")).map(|_| ()), Ok(()));
    // What it is limited by goes away.
    let gone = "delay = \"1 ms\"\nchanges = [{ at = \"1 s\", delay = \"0 s\" }]";
    refused(&two("60 s", gone, ftp), "traffic[0].kind", "needs a rate or a delay");
    let faster = "rate = \"1 Mbit/s\"\nchanges = [{ at = \"1 s\", rate = \"1000 Gbit/s\" }]";
    refused(&two("60 s", faster, ftp), "traffic[0].kind", "cross links");
}

/// Where nothing arrives a connection has only its timeouts, and they last as long as the run.
#[test]
fn timers_that_never_rest() {
    let dead = "rate = \"20 kbit/s\"\nlosses = [{ model = { kind = \"bernoulli\", rate = 1.0 } }]";
    let file = |tcp: &str| format!("kind = \"file\"\nbytes = \"1 kB\"\ntcp = {{ {tcp} }}");
    let hasty = file("min_rto = \"1 ms\", initial_rto = \"1 ms\", max_rto = \"1 ms\"");
    refused(&two("744 h", dead, &hasty), "traffic[0].tcp.max_rto", "timers of TCP could expire");
    // Sixteen times twice as long is still short.
    let doubled = file("min_rto = \"1 ms\", initial_rto = \"1 ms\", max_rto = \"1 h\"");
    let mut thousands = two("744 h", dead, &doubled);
    for _ in 0..19_999 {
        thousands.push_str(&format!("[[traffic]]\nfrom = \"a\"\nto = \"b\"\n{doubled}\n"));
    }
    assert_eq!(Scenario::parse("x.toml", &thousands).map(|_| ()), Ok(()));
    let short = thousands.replace("1 h\"", "2 s\"");
    let error = Scenario::parse("x.toml", &short).map(|_| ()).unwrap_err();
    assert!(error.key.ends_with("tcp.max_rto") && error.reason.contains("timers of TCP"), "{error}");
    // And the bound is one: so many expire in ten seconds.
    for (tcp, expected) in [(&hasty, 9_990..=10_000), (&doubled, 13..=14)] {
        let scenario = Scenario::parse("x.toml", &two("10 s", dead, tcp)).unwrap();
        let mut run = build(&scenario, 1, vec![]).unwrap();
        run.engine.run_until(Time::ZERO + scenario.duration).unwrap();
        let timeouts = run.engine.tcp_sender(run.sources[0]).unwrap().counters().timeouts;
        assert!(expected.contains(&timeouts), "{timeouts}");
    }
}

/// Frames that noise destroys, all of them, are sent again and again.
#[test]
fn attempts_that_never_end() {
    let text = "name = \"x\"\nduration = \"744 h\"\n[host.a]\n[host.b]\n[[wlan]]\nshort_retry = 254\n\
        station = [{ name = \"a\" }, { name = \"b\", ap = \"a\", frame_error = 1.0 }]\n[[traffic]]\nfrom = \"a\"\n\
        to = \"b\"\nkind = \"cbr\"\nrate = \"100 kbit/s\"\nsize = \"500 B\"\n";
    refused(text, "wlan[0].short_retry", "transmissions");
    assert!(Scenario::parse("x.toml", &text.replace("short_retry = 254\n", "")).is_ok());
}

#[test]
fn channels_that_take_for_ever() {
    let lossy = |model: &str| format!("{LIMITED}\nlosses = [{{ model = {{ {model} }} }}]");
    let slow = CBR.replace("8 Mbit/s", "80 kbit/s");
    let refused = |text: &str| refused(text, "link[0].losses", "channels would be asked");
    refused(&two("600 h", &lossy("kind = \"markov-time\", good = \"1 us\", bad = \"1 us\""), &slow));
    let frames = "kind = \"jakes\", frame = \"1 B\", rate = \"1000 Gbit/s\", covers = \"whole\"";
    refused(&two("1 h", &lossy(frames), CBR));
    let slots = "kind = \"pattern\", period = 2, lost = [0], slot = \"1 us\", covers = \"whole\"";
    let slower = lossy(slots).replace("1 Gbit/s", "8 Mbit/s");
    refused(&two("10 h", &slower, CBR));
}

#[test]
fn more_memory_than_there_is() {
    // Ten stations of the longest queues in each of thirteen WLANs.
    let mut text = "name = \"x\"\nduration = \"1 s\"\n".to_owned();
    for wlan in 0..13 {
        let _ = write!(text, "[host.h{wlan}]\n[[wlan]]\nstation = [{{ name = \"ap{wlan}\", queue = 99000 }}");
        let _ = write!(text, ", {{ name = \"h{wlan}\", ap = \"ap{wlan}\", queue = 99000 }}");
        for station in 0..8 {
            let _ = write!(text, ", {{ name = \"s{wlan}-{station}\", ap = \"ap{wlan}\", queue = 99000 }}");
        }
        text.push_str("]\n");
        for station in 0..8 {
            let _ = writeln!(text, "[host.s{wlan}-{station}]");
        }
    }
    // Every access point leads somewhere.
    refused(&text, "wlan[12]", "of memory");
    let mut text = two("1 h", "rate = \"1 Gbit/s\"\ndelay = \"1 s\"", "kind = \"ftp\"");
    for _ in 0..120 {
        text.push_str("[[traffic]]\nfrom = \"a\"\nto = \"b\"\nkind = \"ftp\"\ntcp = { max_window = 2000000, segment = \"60000 B\" }\n");
    }
    refused(&text, "traffic[25].kind", "max_window");
}

/// Names are looked up, not searched for, and paths are found once for each flow.
#[test]
fn channels_for_many_flows_are_read_quickly() {
    const FLOWS: usize = 4_000;
    let mut text = two("1 s", LIMITED, CBR);
    for n in 0..FLOWS {
        let _ = writeln!(
            text,
            "[[traffic]]\nname = \"f{n}\"\nfrom = \"a\"\nto = \"b\"\n{}",
            CBR.replace('8', "1")
        );
    }
    let names: Vec<String> = (0..FLOWS).map(|n| format!("\"f{n}\"")).collect();
    let channel =
        format!("{{ model = {{ kind = \"bernoulli\", rate = 0.0 }}, flows = [{}] }}, ", names.join(", "));
    let lossy = format!("{LIMITED}\nlosses = [{}]", channel.repeat(16));
    let text = text.replacen(LIMITED, &lossy, 1);
    assert_eq!(Scenario::parse("x.toml", &text).map(|_| ()), Ok(()));
}

#[test]
fn more_things_than_can_be_looked_at() {
    let many = |head: &str, entry: &dyn Fn(usize) -> String, most: usize| {
        (0..=most).fold(two("1 s", LIMITED, CBR) + head, |text, n| text + &entry(n))
    };
    let link = |n: usize| format!("[[link]]\nfrom = \"r{n}\"\nto = \"r{}\"\n", n + 1);
    refused(&many("", &link, 5_000), "link[5000]", "more than 5000 links");
    let flow = |_| format!("[[traffic]]\nfrom = \"a\"\nto = \"b\"\n{CBR}\n");
    refused(&many("", &flow, 20_000), "traffic[20000]", "more than 20000 flows");
    let station = |n| format!("{{ name = \"s{n}\", ap = \"r\" }}, ");
    let text = many("[[wlan]]\nstation = [{ name = \"r\" }, ", &station, 4_000) + "]\n";
    refused(&text, "wlan[0]", "more than 4000 stations");
    let loss = "{ model = { kind = \"bernoulli\", rate = 0.1 } }, ".repeat(17);
    refused(
        &two("1 s", &format!("{LIMITED}\nlosses = [{loss}]"), CBR),
        "link[0].losses[16]",
        "more than 16 channels",
    );
    let error = Scenario::parse("x.toml", &"#".repeat(16_000_001)).unwrap_err().to_string();
    assert_eq!(error, "x.toml:1: a scenario of more than 16000000 bytes");
}
