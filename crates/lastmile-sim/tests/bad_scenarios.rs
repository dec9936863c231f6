//! What a user reads who got a scenario file wrong: file, line, key and reason, in one line.

use lastmile::estimate::{Conditions, build};
use lastmile::options::Choice;
use lastmile_sim::scenario::{Override, Scenario};

/// A good scenario, one line of which each case replaces. Line numbers count from one.
const GOOD: &str = r#"name = "x"
duration = "10 s"
warm_up = "1 s"
[host.a]
clock = { offset = "1 s", skew_ppm = 20, resolution = "1 us" }
[host.b]
address = "10.77.0.9"
[[link]]
from = "a"
to = "r"
[[link]]
from = "r"
to = "b"
rate = "10 Mbit/s"
queue = "60 kB"
overhead = "14 B"
back = { rate = "2 Mbit/s", queue = "20 packets" }
[[traffic]]
name = "cross"
kind = "cbr"
from = "a"
to = "b"
rate = "4 Mbit/s"
size = "1500 B"
start = "2 s"
stop = "9 s"
[[measure]]
from = "b"
to = "a"
method = "wbest"
trains = 4
start = "3 s"
"#;

fn error(line: usize, instead: &str) -> String {
    let mut lines: Vec<_> = GOOD.lines().collect();
    lines[line - 1] = instead;
    let known = |method: &Choice| build(method, &Conditions::default()).map(drop);
    Scenario::parse_with("x.toml", &lines.join("\n"), &[], &known).unwrap_err().to_string()
}

#[test]
fn the_good_one_is_good() {
    let scenario = Scenario::parse("x.toml", GOOD).unwrap();
    assert_eq!(scenario.routers, ["r"]);
    assert_eq!(scenario.path(0, 1).unwrap(), [0, 2]);
    assert_eq!(scenario.links[3].config.rate.unwrap().to_string(), "2 Mbit/s");
    assert_eq!(scenario.hosts[1].v4.to_string(), "10.77.0.9");
}

#[test]
fn every_error_names_file_line_key_and_reason() {
    let cases = [
        (1, ""),
        (2, r#"duration = "ten s""#),
        (2, r#"duration = "0 s""#),
        (2, r#"duration = 10"#),
        (3, r#"warm_up = "10 s""#),
        (3, r#"warmup = "1 s""#),
        (3, r#"warm_up = "#),
        (4, "[host.b]"),
        (5, r#"clock = { offset = "-1 s" }"#),
        (5, r#"clock = { skew_ppm = 2e9 }"#),
        (5, r#"clock = { resolution = "0 ns" }"#),
        (5, r#"clock = { steps = [{ at = "1 s", by = "5 ms" }] }"#),
        (6, "[host.a-name-much-too-long]"),
        (7, r#"address = "10.77.0.1""#),
        (7, r#"address = "10.77.0.300""#),
        (13, r#"to = "bb""#),
        (13, r#"to = "r""#),
        (14, r#"rate = "0 bit/s""#),
        (10, "to = \"r\"\ndelay = \"-5 ms\""),
        (10, "to = \"r\"\ndelay = \"2 min\""),
        (14, r#"rate = "10 Mbps""#),
        (15, r#"queue = "1000 B""#),
        (15, r#"queue = "0 packets""#),
        (15, r#"queue = "many""#),
        (15, r#"queue = "9 GB""#),
        (14, ""),
        (16, r#"one_way = true"#),
        (17, r#"back = { rate = "2 Mbit/s", jitter = "1 ms" }"#),
        (20, r#"kind = "fractal""#),
        (20, r#"kind = "pareto""#),
        (20, "kind = \"pareto\"\nshape = 0.9\non = \"1 s\"\noff = \"1 s\""),
        (20, "kind = \"onoff\"\noff = \"1 s\""),
        (20, "kind = \"onoff\"\non = \"1 us\"\noff = \"1 us\""),
        (20, "kind = \"poisson\"\non = \"1 s\""),
        (20, "kind = \"trace\"\npackets = \"0 1500\""),
        (20, "kind = \"cbr\"\nfile = \"packets.txt\""),
        (23, ""),
        (
            23,
            "rate = \"0 bit/s\"\nchanges = [{ at = \"3 s\", rate = \"1 Mbit/s\" }, { at = \"2 s\", rate = \"0 bit/s\" }]",
        ),
        (16, r#"discipline = { kind = "blue" }"#),
        (16, r#"discipline = { kind = "tc-red", min = "32 kB", max = "12 kB" }"#),
        (16, r#"changes = [{ at = "2 s", rate = "fast" }]"#),
        (16, r#"shaper = { rate = "0 bit/s", burst = "10 kB" }"#),
        (16, r#"losses = [{ model = { kind = "bernoulli", rate = 1.5 } }]"#),
        (16, r#"losses = [{ model = { kind = "bernoulli", rate = 0.5 }, flows = ["nobody"] }]"#),
        (20, r#"kind = "ftp""#),
        (21, r#"from = "c""#),
        (21, r#"from = "r""#),
        (21, r#"from = "b""#),
        (23, r#"rate = "10000 Gbit/s""#),
        (24, r#"size = "10 B""#),
        (25, r#"start = "12 s""#),
        (26, r#"stop = "1 s""#),
        (30, r#"method = "guess""#),
        (31, r#"trains = 0"#),
        (31, r#"trains = -1"#),
        (32, r#"start = "99 s""#),
        (32, "start = \"3 s\"\n[[measure]]\nfrom = \"b\"\nto = \"a\"\nmethod = \"wbest\"\nstart = \"5 s\""),
    ];
    let seen: Vec<String> =
        cases.iter().map(|&(line, text)| format!("{text}\n    {}", error(line, text))).collect();
    let seen = seen.join("\n") + "\n";
    // UPDATE=1 writes the file anew; read the difference before committing it.
    let snapshot = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bad_scenarios.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(snapshot, &seen).unwrap();
    }
    assert_eq!(seen, std::fs::read_to_string(snapshot).unwrap());
}

#[test]
fn duplicates_and_unreachable_hosts() {
    let parse = |text: &str| Scenario::parse("x.toml", text).map(|_| ()).unwrap_err().to_string();
    let twice = format!("{GOOD}[[link]]\nfrom = \"b\"\nto = \"r\"\n");
    assert_eq!(parse(&twice), "x.toml:35: link[2].to: there is a link from b to r already");
    let same = format!(
        "{GOOD}[[traffic]]\nname=\"cross\"\nkind=\"cbr\"\nfrom=\"a\"\nto=\"b\"\nrate=\"1 bit/s\"\nsize=\"99 B\"\n"
    );
    assert_eq!(parse(&same), "x.toml:34: traffic[1].name: two flows are called \"cross\"");
    let lone = GOOD.replace("[host.b]", "[host.c]\n[host.b]");
    assert_eq!(parse(&lone), "x.toml:6: host.c: this host is on no link");
    let one_way = GOOD.replace("back = { rate = \"2 Mbit/s\", queue = \"20 packets\" }", "one_way = true");
    assert_eq!(parse(&one_way), "x.toml:29: measure[0].to: no path leads from b to a (hosts do not forward)");
    assert_eq!(
        parse("name = \"x\"\nduration = \"1 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\n"),
        "x.toml:4: link[0].from: \"a\" is no host, and as a router it leads nowhere"
    );
}

#[test]
fn traces_are_read_from_beside_the_scenario_and_checked() {
    let parse = |keys: &str| {
        let size_and_rate = "rate = \"4 Mbit/s\"\nsize = \"1500 B\"\n";
        let text =
            GOOD.replace("kind = \"cbr\"", &format!("kind = \"trace\"\n{keys}")).replace(size_and_rate, "");
        Scenario::parse("no/such/folder/x.toml", &text)
            .map(|s| s.traffic[0].size.0)
            .map_err(|e| e.to_string())
    };
    assert_eq!(parse("packets = \"\"\"\n0 1500\n0.1 40\n\"\"\""), Ok(1500));
    let at = "no/such/folder/x.toml:2";
    assert_eq!(
        parse("packets = \"0 x\"").unwrap_err(),
        format!(
            "{at}1: traffic[0].packets: line 1: after the time comes the size of an IP packet, 28 to 65535 bytes"
        )
    );
    assert_eq!(
        parse("").unwrap_err(),
        format!("{at}0: traffic[0].kind: a trace needs `file`, or `packets` as lines of seconds and bytes")
    );
    let missing = parse("file = \"p.txt\"").unwrap_err();
    assert!(
        missing.starts_with(&format!("{at}1: traffic[0].file: cannot read no/such/folder/p.txt: ")),
        "{missing}"
    );
    assert!(
        parse("file = \"p.txt\"\npackets = \"0 99\"").unwrap_err().contains("`packets` or `file`, not both")
    );
}

#[test]
fn tcp_and_wlans_that_cannot_be() {
    let tcp = |keys: &str| {
        let text =
            GOOD.replace("kind = \"cbr\"", keys).replace("rate = \"4 Mbit/s\"\nsize = \"1500 B\"\n", "");
        Scenario::parse("x.toml", &text).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(tcp("kind = \"ftp\"\ntcp = { law = \"cubic\", ecn = true }"), Ok(()));
    assert_eq!(
        tcp("kind = \"file\"").unwrap_err(),
        "x.toml:20: traffic[0].kind: traffic of this kind needs the key `bytes`"
    );
    assert_eq!(
        tcp("kind = \"ftp\"\ntcp = { law = \"renault\" }").unwrap_err().split(';').next().unwrap(),
        "x.toml:21: traffic[0].tcp.law: \"renault\" is no window law"
    );
    for (keys, key, reason) in [
        ("segment = \"0 B\"", "segment", "a segment has 1 to 65535 bytes of data"),
        ("segment = \"70 kB\"", "segment", "a segment has 1 to 65535 bytes of data"),
        ("segment = \"65500 B\"", "segment", "with its headers an IP packet has at most 65535 bytes"),
        ("header = \"39 B\"", "header", "headers have 40 to 65535 bytes"),
        ("max_window = 0", "max_window", "a window has 1 to 2097151 segments"),
        ("initial_window = 0", "initial_window", "it is at least one segment and not above max_window"),
        (
            "initial_window = 9, max_window = 8",
            "initial_window",
            "it is at least one segment and not above max_window",
        ),
        ("min_rto = \"0 s\"", "min_rto", "it lies between 1 ms and an hour"),
        ("initial_rto = \"0 s\"", "initial_rto", "it lies between 1 ms and an hour"),
        ("max_rto = \"10 ms\"", "max_rto", "it is not below min_rto and at most an hour"),
        ("tick = \"-1 ms\"", "tick", "it lies between 0 and an hour"),
        ("delayed_ack = \"2 h\"", "delayed_ack", "it lies between 0 and an hour"),
        ("byte_counting = 0", "byte_counting", "a window that counts no segment never grows"),
        ("law = { binomial = { a = -1.0 } }", "law", ""),
    ] {
        let error = tcp(&format!("kind = \"ftp\"\ntcp = {{ ecn = true, {keys} }}")).unwrap_err();
        let expected = format!("x.toml:21: traffic[0].tcp.{key}: {reason}");
        assert!(error == expected || reason.is_empty() && error.starts_with(&expected), "{keys}: {error}");
    }
    // In a table of its own the line is the key's; a default that another key contradicts stands on no line.
    let table = format!(
        "{}\n[traffic.tcp]\nlaw = \"cubic\"\n\nmax_window = 0\n",
        &GOOD[..GOOD.find("[[measure]]").unwrap()]
    );
    let table = table
        .replace("kind = \"cbr\"", "kind = \"ftp\"")
        .replace("rate = \"4 Mbit/s\"\nsize = \"1500 B\"\n", "");
    let error = Scenario::parse("x.toml", &table).unwrap_err();
    assert_eq!((error.line, error.key.as_str()), (29, "traffic[0].tcp.max_window"), "{error}");
    assert_eq!(
        tcp("kind = \"ftp\"\ntcp = { min_rto = \"2 min\" }").unwrap_err(),
        "x.toml:21: traffic[0].tcp: max_rto: it is not below min_rto and at most an hour"
    );
    for (keys, line, key) in [
        ("kind = \"file\"\nbytes = \"0 B\"", 21, "bytes"),
        ("kind = \"files\"\nbytes = \"9 B\"\nbytes_max = \"8 B\"\npause = \"1 s\"", 22, "bytes_max"),
        ("kind = \"files\"\nbytes = \"9 B\"\npause = \"0 s\"", 22, "pause"),
    ] {
        let error = tcp(keys).unwrap_err();
        assert!(error.starts_with(&format!("x.toml:{line}: traffic[0].{key}: ")), "{error}");
    }
    let wlan = |keys: &str| {
        let text = format!("name = \"x\"\nduration = \"1 s\"\n[host.a]\n[host.b]\n[[wlan]]\n{keys}\n");
        Scenario::parse("x.toml", &text).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(wlan("station = [{ name = \"a\" }, { name = \"b\", ap = \"a\" }]"), Ok(()));
    for keys in [
        "station = []",
        "station = [{ name = \"a\" }, { name = \"b\", ap = \"c\" }]",
        "station = [{ name = \"a\" }, { name = \"b\", ap = \"a\", rate = \"7 Mbit/s\" }]",
        "station = [{ name = \"a\" }, { name = \"b\", ap = \"a\", queue = 0 }]",
        "station = [{ name = \"a\" }, { name = \"b\", ap = \"a\", queue = 4000000000 }]",
        "station = [{ name = \"a\" }, { name = \"b\", ap = \"a\" }, { name = \"q\", ap = \"a\" }]",
        "standard = \"z\"",
        "station = [{ name = \"a\", rate = \"6 Mbit/s\" }, { name = \"b\", ap = \"a\" }]",
        "station = [{ name = \"a\", channel = { distance_m = 5.0 } }, { name = \"b\", ap = \"a\" }]",
        "cw_min = 20\nstation = [{ name = \"a\" }, { name = \"b\", ap = \"a\" }]",
        "cw_max = 4294967295\nstation = [{ name = \"a\" }, { name = \"b\", ap = \"a\" }]",
        "standard = \"b\"\nslot = \"long\"\nstation = [{ name = \"a\" }, { name = \"b\", ap = \"a\" }]",
        "standard = \"n\"\npreamble = \"short\"\nstation = [{ name = \"a\" }, { name = \"b\", ap = \"a\" }]",
        "standard = \"a\"\nband = \"2.4 GHz\"\nstation = [{ name = \"a\" }, { name = \"b\", ap = \"a\" }]",
    ] {
        let error = wlan(keys).unwrap_err();
        assert!(
            ["5", "6", "7"].iter().any(|line| error.starts_with(&format!("x.toml:{line}: wlan[0]"))),
            "{error}"
        );
    }
    let station = "station = [{ name = \"a\" }, { name = \"b\", ap = \"a\" }]";
    let sized = |bytes: u32| {
        wlan(&format!(
            "{station}\n[[traffic]]\nkind = \"cbr\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\nsize = \"{bytes} B\""
        ))
    };
    // LLC and SNAP are part of the MSDU's 2304 bytes.
    assert_eq!(sized(2296), Ok(()));
    assert!(sized(2297).unwrap_err().starts_with("x.toml:12: traffic[0].size: "), "{:?}", sized(2297));
}

#[test]
fn scenarios_that_would_need_too_much_memory_are_refused() {
    // A thousand seconds of a gigabit of small packets on their way.
    let far = GOOD.replace(
        "rate = \"10 Mbit/s\"\nqueue = \"60 kB\"",
        "rate = \"900 Gbit/s\"\nqueue = \"1000000 packets\"\ndelay = \"60 s\"",
    );
    let far = far.replace("rate = \"4 Mbit/s\"\nsize = \"1500 B\"", "rate = \"400 Mbit/s\"\nsize = \"28 B\"");
    let far = far
        .replace("duration = \"10 s\"", "duration = \"60 s\"")
        .replace("stop = \"9 s\"", "stop = \"59 s\"");
    let error = Scenario::parse("x.toml", &far).unwrap_err().to_string();
    assert!(error.contains("of memory"), "{error}");
}

#[test]
fn overrides_that_fit_nowhere_say_so() {
    let set = |key: &str, value: &str| {
        Scenario::parse_with("x.toml", GOOD, &[Override::new(key, value)], &|_| Ok(()))
            .map(|scenario| scenario.traffic[0].rate.to_string())
            .map_err(|error| error.to_string())
    };
    assert_eq!(set("traffic.cross.rate", "\"5 Mbit/s\"").unwrap(), "5 Mbit/s");
    assert_eq!(set("traffic.0.rate", "5 Mbit/s").unwrap(), "5 Mbit/s");
    assert_eq!(set("host.b.clock.skew_ppm", "50").unwrap(), "4 Mbit/s");
    for (key, value, error) in [
        ("traffic.web.rate", "1 bit/s", "x.toml: traffic.web.rate: the list has no element \"web\""),
        (
            "traffic.cross",
            "1",
            "x.toml: traffic.cross: names an element of a list; name a single value in it",
        ),
        ("traffic", "1", "x.toml: traffic: names a table or list; name a single value in it"),
        ("name.x", "1", "x.toml: name.x: \"name\" is no table"),
        ("name", "[1]", "x.toml: name: a table or list cannot be set"),
        ("link.1.rate", "0 bit/s", "x.toml:14: link[1].rate: a rate of zero carries nothing"),
    ] {
        assert_eq!(set(key, value).unwrap_err(), error);
    }
    // A key that the file does not have stands on no line of it, but its path is named.
    assert!(set("link.1.jitter", "1 ms").unwrap_err().contains("unknown field `jitter`"));
}

#[test]
fn no_text_makes_it_panic() {
    // Every prefix, and every line left out: the file as it is while somebody types it.
    for end in (0..GOOD.len()).filter(|&end| GOOD.is_char_boundary(end)) {
        let _ = Scenario::parse("x.toml", &GOOD[..end]);
    }
    for skip in 0..GOOD.lines().count() {
        let rest: Vec<_> =
            GOOD.lines().enumerate().filter(|(n, _)| *n != skip).map(|(_, line)| line).collect();
        let _ = Scenario::parse("x.toml", &rest.join("\n"));
    }
}

#[test]
fn what_would_be_read_as_something_else_is_refused() {
    let with = |key: &str| {
        let text = format!(
            "name = \"x\"\nduration = \"1 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\n{key}\n"
        );
        Scenario::parse("x.toml", &text).map(|_| ()).map_err(|error| error.to_string())
    };
    let model = "model = { kind = \"bernoulli\", rate = 0.1 }";
    for (key, reason) in [
        (
            "discipline = { kind = \"drop-tail\", ecn = true }".to_owned(),
            "link[0].discipline: unknown field `ecn`, there are no fields",
        ),
        (
            format!("losses = [{{ name = \"air\", {model} }}, {{ name = \"air\", {model} }}]"),
            "link[0].losses[1].name: another channel of this link has this name: they would draw the same numbers",
        ),
        (
            format!("losses = [{{ name = \"1\", {model} }}, {{ {model} }}]"),
            "link[0].losses[1]: another channel of this link has this name: they would draw the same numbers",
        ),
    ] {
        assert_eq!(with(&key).unwrap_err(), format!("x.toml:9: {reason}"));
    }
    assert_eq!(with("discipline = { kind = \"drop-tail\" }"), Ok(()));
    assert_eq!(with(&format!("losses = [{{ name = \"a\", {model} }}, {{ {model} }}]")), Ok(()));
}
