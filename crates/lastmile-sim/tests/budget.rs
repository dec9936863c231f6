//! Runs that would not end, or would need more memory than there is: stopped while they run, naming what cost most.

use lastmile::time::{Span, Time};
use lastmile_sim::scenario::{Override, Scenario, build};

const TWO: &str = "name = \"x\"\nduration = \"744 h\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\nLINK\n[[traffic]]\nname = \"t\"\nfrom = \"a\"\nto = \"b\"\nTRAFFIC\n";
const AIR: &str = "name = \"x\"\nduration = \"744 h\"\n[host.a]\n[host.b]\n[[wlan]]\nLINK\n[[traffic]]\nname = \"t\"\nfrom = \"a\"\nto = \"b\"\nTRAFFIC\n";

/// What stops a run of that text with a budget of a million events and 4 MB, if anything does, and when.
fn stopped(text: &str, link: &str, traffic: &str) -> (String, Time) {
    let budget = [Override::new("max_events", "1_000_000"), Override::new("max_memory", "4 MB")];
    let text = text.replace("LINK", link).replace("TRAFFIC", traffic);
    let scenario = Scenario::parse_with("x.toml", &text, &budget, &|_| Ok(())).unwrap();
    let mut run = build(&scenario, 1, vec![]).unwrap();
    let why = run.engine.run_until(Time::ZERO + scenario.duration).unwrap_err().to_string();
    (why, run.engine.now())
}

#[test]
fn what_a_run_spends_first_and_on_what() {
    let cbr = "kind = \"cbr\"\nrate = \"80 Mbit/s\"\nsize = \"1000 B\"";
    let slow = "kind = \"cbr\"\nrate = \"80 kbit/s\"\nsize = \"1000 B\"";
    let fast = "rate = \"1 Gbit/s\"\ndelay = \"1 ms\"";
    let lossy = |model: &str| format!("{fast}\nlosses = [{{ model = {{ {model} }} }}]");
    let markov = lossy("kind = \"markov-time\", good = \"1 us\", bad = \"1 us\"");
    let jakes = lossy("kind = \"jakes\", frame = \"1 B\", rate = \"1000 Gbit/s\", covers = \"whole\"");
    let slots = lossy("kind = \"pattern\", period = 2, lost = [1], slot = \"1 us\", covers = \"whole\"")
        .replace("1 Gbit/s", "1 Mbit/s");
    let dead = "rate = \"20 kbit/s\"\nlosses = [{ model = { kind = \"bernoulli\", rate = 1.0 } }]";
    let hasty = "kind = \"file\"\nbytes = \"1 kB\"\ntcp = { min_rto = \"1 ms\", initial_rto = \"1 ms\", max_rto = \"1 ms\" }";
    let turning = "delay = \"2 ns\"";
    let far = "rate = \"900 Gbit/s\"\nqueue = \"1000000 packets\"\ndelay = \"60 s\"";
    let burst = "kind = \"cbr\"\nrate = \"400 Mbit/s\"\nsize = \"28 B\"";
    let noisy =
        "short_retry = 254\nstation = [{ name = \"a\" }, { name = \"b\", ap = \"a\", frame_error = 1.0 }]";
    let deep = "station = [{ name = \"a\", queue = 99000 }, { name = \"b\", ap = \"a\" }]";
    for (text, link, traffic, key, node) in [
        (TWO, fast, cbr, "max_events", ""),
        (TWO, &markov, slow, "max_events", "link/a>b"),
        (TWO, &jakes, slow, "max_events", "link/a>b"),
        (TWO, &slots, slow, "max_events", "link/a>b"),
        (TWO, dead, hasty, "max_events", "traffic/t"),
        (TWO, turning, "kind = \"ftp\"", "max_events", "link/"),
        (TWO, far, burst, "max_memory", "link/a>b"),
        (AIR, noisy, slow, "max_events", "wlan/a"),
        (AIR, deep, cbr, "max_memory", "wlan/a"),
    ] {
        let (why, at) = stopped(text, link, traffic);
        assert!(why.contains(&format!("by {node}")) && why.ends_with(&format!("raise {key}")), "{why}");
        assert!(at < Time::ZERO + Span::from_secs(3_600), "{at}: {why}");
    }
    let (why, _) = stopped(TWO, fast, cbr);
    assert!(why.starts_with("1000000 events are spent at ") && why.contains("shorten the run"), "{why}");
    let (why, _) = stopped(TWO, far, burst);
    assert!(why.starts_with("4000 kB of memory are spent at "), "{why}");
}

/// What limits a connection may go away.
#[test]
fn what_turns_over_in_no_time_stands_still() {
    let gone = "delay = \"1 ms\"\nchanges = [{ at = \"1 s\", delay = \"0 s\" }]";
    let (why, at) = stopped(TWO, gone, "kind = \"ftp\"\ntcp = { max_window = 100 }");
    assert!(
        at >= Time::from_nanos(1_000_000_000) && why.starts_with("time stands still at 1."),
        "{at}: {why}"
    );
}

/// Where nothing arrives a connection has only its timeouts, which double up to the longest.
#[test]
fn timeouts_that_double_become_rare() {
    let dead = "rate = \"20 kbit/s\"\nlosses = [{ model = { kind = \"bernoulli\", rate = 1.0 } }]";
    for (longest, expected) in [("1 ms", 9_990..=10_000), ("1 h", 13..=14)] {
        let file = format!(
            "kind = \"file\"\nbytes = \"1 kB\"\ntcp = {{ min_rto = \"1 ms\", initial_rto = \"1 ms\", max_rto = \"{longest}\" }}"
        );
        let scenario = Scenario::parse("x", &TWO.replace("LINK", dead).replace("TRAFFIC", &file)).unwrap();
        let mut run = build(&scenario, 1, vec![]).unwrap();
        run.engine.run_until(Time::ZERO + Span::from_secs(10)).unwrap();
        let timeouts = run.engine.tcp_sender(run.sources[0]).unwrap().counters().timeouts;
        assert!(expected.contains(&timeouts), "{timeouts}");
    }
}
