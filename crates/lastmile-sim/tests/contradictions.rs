//! What a sceptic writes into a scenario: keys that contradict each other or mean nothing beside others, numbers at and
//! beyond their limits, names and texts of all kinds. Each is refused with file, line, key and reason, or accepted on
//! purpose; `contradictions.txt` has what was said.

use lastmile_sim::scenario::Scenario;

/// A wired path that two kinds of traffic and a measurement share.
const WIRED: &str = r#"name = "wired"
duration = "10 s"
[host.a]
clock = { skew_ppm = 1.0 }
[host.b]
[[link]]
from = "a"
to = "r"
rate = "100 Mbit/s"
[[link]]
from = "r"
to = "b"
rate = "10 Mbit/s"
back = { rate = "2 Mbit/s" }
[[traffic]]
name = "cbr"
kind = "cbr"
from = "a"
to = "b"
rate = "1 Mbit/s"
size = "1000 B"
[[traffic]]
name = "tcp"
kind = "ftp"
from = "a"
to = "b"
tcp = { ecn = true }
[[measure]]
from = "b"
to = "a"
method = "wbest"
"#;

/// A cell of three with a server behind it.
const AIR: &str = r#"name = "air"
duration = "10 s"
[host.server]
[host.near]
[host.far]
[[link]]
from = "server"
to = "ap"
rate = "100 Mbit/s"
[[wlan]]
standard = "g"
station = [
  { name = "ap" },
  { name = "near", ap = "ap" },
  { name = "far", ap = "ap", channel = { distance_m = 40.0 } },
]
[[traffic]]
kind = "cbr"
from = "server"
to = "far"
rate = "2 Mbit/s"
size = "1500 B"
"#;

/// In which text, what is replaced, and by what.
type Case = (&'static str, &'static str, &'static str);

const RUN: &[Case] = &[
    (WIRED, "name = \"wired\"", "name = \"\""),
    (WIRED, "name = \"wired\"", "name = \"two\\nlines\""),
    (WIRED, "name = \"wired\"", "name = \"drahtgebunden, 有线\""),
    (WIRED, "name = \"wired\"", "\u{feff}name = \"byte order mark\""),
    (WIRED, "duration = \"10 s\"\n", "duration = \"10 s\"\r\nwarm_up = \"1 s\"\r\nseed = -1\r\n"),
    (WIRED, "duration = \"10 s\"", "duration = \"10 s\"\nseed = 18446744073709551616"),
    (WIRED, "duration = \"10 s\"", "duration = \"1e400 s\""),
    (WIRED, "duration = \"10 s\"", "duration = \"nan s\""),
    (WIRED, "duration = \"10 s\"", "duration = \"inf s\""),
    (WIRED, "duration = \"10 s\"", "duration = \"31 days\""),
    (WIRED, "duration = \"10 s\"", "duration = \"744 h\"\nwarm_up = \"745 h\""),
    (WIRED, "[host.b]", "[host.\"b\\u0301\"]"),
    (WIRED, "[host.b]", "[host.\"\"]"),
    (WIRED, "[host.b]", "[host.\"b.c\"]"),
    (WIRED, "[host.b]", "[host.b]\naddress = \"127.0.0.1\""),
    (WIRED, "[host.b]", "[host.b]\naddress = \"255.255.255.255\""),
    (WIRED, "[host.b]", "[host.b]\naddress = \"::1\""),
    (WIRED, "clock = { skew_ppm = 1.0 }", "clock = 1"),
    (WIRED, "skew_ppm = 1.0", "skew_ppm = nan"),
    (WIRED, "skew_ppm = 1.0", "skew_ppm = -inf"),
    (WIRED, "skew_ppm = 1.0", "steps = [{ at = \"-1 s\", by = \"1 s\", announced = true }]"),
    (WIRED, "skew_ppm = 1.0", "steps = [{ at = \"1 s\", by = \"0 s\", announced = true }]"),
    (
        WIRED,
        "skew_ppm = 1.0",
        "steps = [{ at = \"2 s\", by = \"1 s\", announced = true }, { at = \"1 s\", by = \"1 s\", announced = true }]",
    ),
    (
        WIRED,
        "skew_ppm = 1.0",
        "steps = [{ at = \"2 s\", by = \"1 s\", announced = true }, { at = \"2 s\", by = \"1 s\", announced = true }]",
    ),
];

const LINKS: &[Case] = &[
    (WIRED, "to = \"b\"\nrate = \"10 Mbit/s\"", "to = \"b\"\nrate = \"-10 Mbit/s\""),
    (WIRED, "to = \"b\"\nrate = \"10 Mbit/s\"", "to = \"b\"\nrate = \"1e30 Gbit/s\""),
    (WIRED, "to = \"b\"\nrate = \"10 Mbit/s\"", "to = \"b\"\nrate = \"nan bit/s\""),
    (WIRED, "to = \"b\"\nrate = \"10 Mbit/s\"", "to = \"r\"\nrate = \"10 Mbit/s\""),
    (WIRED, "from = \"r\"\nto = \"b\"", "from = \"a\"\nto = \"r\""),
    (WIRED, "from = \"r\"\nto = \"b\"", "from = \"b\"\nto = \"s\""),
    (WIRED, "back = {", "queue = \"60 kB\"\ndiscipline = { kind = \"tc-red\" }\nback = {"),
    (WIRED, "back = {", "queue = \"60 kB\"\nback = { discipline = { kind = \"tc-red\" },"),
    (WIRED, "back = {", "discipline = { kind = \"tc-red\" }\nback = { queue = \"60 kB\","),
    (WIRED, "back = {", "discipline = { kind = \"tc-red\", limit = \"900 MB\" }\nback = {"),
    (
        WIRED,
        "back = {",
        "discipline = { kind = \"tc-red\", limit = \"900 B\", min = \"100 B\", max = \"800 B\", avpkt = \"50 B\", burst = 3 }\nback = {",
    ),
    (WIRED, "back = {", "queue = \"10 packets\"\ndiscipline = { kind = \"red\" }\nback = {"),
    (WIRED, "back = {", "queue = \"15 packets\"\ndiscipline = { kind = \"red\" }\nback = {"),
    (
        WIRED,
        "back = {",
        "queue = \"200 B\"\ndiscipline = { kind = \"red\", min_threshold = \"1 packets\", max_threshold = \"2 packets\" }\nback = {",
    ),
    (
        WIRED,
        "back = {",
        "discipline = { kind = \"red\", min_threshold = \"10 kB\", max_threshold = \"90 MB\" }\nback = {",
    ),
    (WIRED, "back = {", "discipline = { kind = \"red\", min_threshold = \"10 kB\" }\nback = {"),
    (WIRED, "back = {", "discipline = { kind = \"red\", min_threshold = \"20 packets\" }\nback = {"),
    (WIRED, "back = {", "discipline = { kind = \"red\", weight = nan }\nback = {"),
    (WIRED, "back = {", "discipline = { kind = \"red\", max_probability = 1.5 }\nback = {"),
    (WIRED, "back = {", "discipline = { kind = \"red\", mark_beyond_max = true }\nback = {"),
    (WIRED, "back = {", "discipline = { kind = \"tc-red\", harddrop = true }\nback = {"),
    (WIRED, "back = {", "discipline = { kind = \"codel\", target = \"200 ms\" }\nback = {"),
    (
        WIRED,
        "back = {",
        "discipline = { kind = \"step\", threshold = { occupancy = \"50 packets\" } }\nback = {",
    ),
    (
        WIRED,
        "back = {",
        "discipline = { kind = \"step\", threshold = { occupancy = \"5 packets\", sojourn = \"1 ms\" } }\nback = {",
    ),
    (WIRED, "back = {", "shaper = { rate = \"1 Mbit/s\", burst = \"1000 B\" }\nback = {"),
    (WIRED, "back = {", "shaper = { rate = \"1 Mbit/s\" }\nback = {"),
    (WIRED, "back = {", "overhead = \"70 kB\"\nback = {"),
    (WIRED, "rate = \"10 Mbit/s\"\nback = { rate = \"2 Mbit/s\" }", "overhead = \"14 B\""),
    (
        WIRED,
        "rate = \"10 Mbit/s\"\nback = { rate = \"2 Mbit/s\" }",
        "delay = \"1 ms\"\ndiscipline = { kind = \"codel\" }",
    ),
    (
        WIRED,
        "rate = \"10 Mbit/s\"\nback = { rate = \"2 Mbit/s\" }",
        "queue = \"9 kB\"\nshaper = { rate = \"1 Mbit/s\", burst = \"9 kB\" }",
    ),
    (
        WIRED,
        "back = {",
        "changes = [{ at = \"2 s\", rate = \"1 Mbit/s\" }, { at = \"1 s\", rate = \"2 Mbit/s\" }]\nback = {",
    ),
    (
        WIRED,
        "back = {",
        "changes = [{ at = \"2 s\", rate = \"1 Mbit/s\" },\n { at = \"2 s\", delay = \"2 ms\" }]\nback = {",
    ),
    (WIRED, "back = {", "changes = [{ at = \"2 s\" }]\nback = {"),
    (WIRED, "back = {", "changes = [{ at = \"-2 s\", rate = \"1 Mbit/s\" }]\nback = {"),
    (WIRED, "back = {", "changes = [{ at = \"2 s\", delay = \"-2 ms\" }]\nback = {"),
    (WIRED, "back = {", "changes = [{ at = \"2 s\", delay = \"2 h\" }]\nback = {"),
    (WIRED, "back = {", "changes = [{ at = \"2 s\", rate = \"0 bit/s\" }]\nback = {"),
    (
        WIRED,
        "back = {",
        "back = { changes = [{ at = \"2 s\", delay = \"2 ms\" }, { at = \"1 s\", delay = \"2 ms\" }],",
    ),
    (WIRED, "back = {", "losses = [{ model = { kind = \"bernoulli\", rate = 0.1 }, flows = [] }]\nback = {"),
    (
        WIRED,
        "back = {",
        "losses = [{ model = { kind = \"bernoulli\", rate = 0.1 }, flows = [\"tcp\", \"tcp\"] }]\nback = {",
    ),
    (WIRED, "back = {", "losses = [{ model = { kind = \"bernoulli\", rate = 0.1 }, name = \"\" }]\nback = {"),
    (
        WIRED,
        "back = {",
        "losses = [{ model = { kind = \"bernoulli\", rate = 0.1 }, flows = [\"tcp\"] }]\nback = {",
    ),
    (
        WIRED,
        "back = {",
        "losses = []\nback = { losses = [{ model = { kind = \"bernoulli\", rate = 0.1 }, flows = [\"tcp\"] }],",
    ),
    (WIRED, "back = {", "losses = [{ model = { kind = \"bernoulli\", rate = nan } }]\nback = {"),
    (
        WIRED,
        "back = {",
        "losses = [\n { model = { kind = \"bernoulli\", rate = 0.1 } },\n { model = { kind = \"gilbert-elliott\", p = 0.0, r = 0.0 } },\n]\nback = {",
    ),
    (
        WIRED,
        "back = {",
        "losses = [{ model = { kind = \"markov-time\", good = \"0 s\", bad = \"1 s\" } }]\nback = {",
    ),
    (
        WIRED,
        "back = {",
        "losses = [{ model = { kind = \"markov-packets\", good = 0.5, bad = inf } }]\nback = {",
    ),
    (WIRED, "back = {", "losses = [{ model = { kind = \"pattern\", period = 4, lost = [4] } }]\nback = {"),
    (WIRED, "back = {", "losses = [{ model = { kind = \"pattern\", period = 4, lost = [2, 2] } }]\nback = {"),
    (
        WIRED,
        "back = {",
        "losses = [{ model = { kind = \"pattern\", period = 4, lost = [1], covers = \"whole\" } }]\nback = {",
    ),
    (WIRED, "back = {", "losses = [{ model = { kind = \"jakes\", paths = 0 } }]\nback = {"),
    (WIRED, "back = {", "losses = [{ model = { kind = \"jakes\", threshold_db = nan } }]\nback = {"),
];

const WLANS: &[Case] = &[
    (AIR, "standard = \"g\"", "standard = \"ac\""),
    (AIR, "standard = \"g\"", "standard = \"b\"\nslot = \"short\""),
    (AIR, "standard = \"g\"", "standard = \"a\"\npreamble = \"long\""),
    (AIR, "standard = \"g\"", "standard = \"b\"\nprotection = \"none\""),
    (AIR, "standard = \"g\"", "protection_rate = \"11 Mbit/s\""),
    (AIR, "standard = \"g\"", "protection = \"rts-cts\"\nprotection_rate = \"6 Mbit/s\""),
    (AIR, "standard = \"g\"", "band = \"5 GHz\""),
    (AIR, "standard = \"g\"", "streams = 2"),
    (AIR, "standard = \"g\"", "channel_mhz = 40"),
    (AIR, "standard = \"g\"", "short_guard = true"),
    (AIR, "standard = \"g\"", "ampdu = {}"),
    (AIR, "standard = \"g\"", "standard = \"n\"\nstreams = 5"),
    (AIR, "standard = \"g\"", "standard = \"n\"\nchannel_mhz = 80"),
    (AIR, "standard = \"g\"", "standard = \"n\"\nampdu = { max_frames = 65 }"),
    (AIR, "standard = \"g\"", "standard = \"n\"\nampdu = { max_bytes = \"0 B\" }"),
    (AIR, "standard = \"g\"", "standard = \"n\"\nampdu = { max_duration = \"0 s\" }"),
    (AIR, "standard = \"g\"", "aifsn = 0"),
    (AIR, "standard = \"g\"", "cw_min = 1023\ncw_max = 15"),
    (AIR, "standard = \"g\"", "cw_min = 16"),
    (AIR, "standard = \"g\"", "short_retry = 0"),
    (AIR, "standard = \"g\"", "long_retry = 9"),
    (AIR, "standard = \"g\"", "basic_rates = []"),
    (AIR, "standard = \"g\"", "basic_rates = [\"7 Mbit/s\"]"),
    (AIR, "standard = \"g\"", "ack_rate = \"65 Mbit/s\""),
    (AIR, "standard = \"g\"", "llc = \"2000 B\""),
    (AIR, "standard = \"g\"", "mac_header = \"1001 B\""),
    (AIR, "standard = \"g\"", "loss_log = 100000000"),
    (AIR, "{ name = \"ap\" }", "{ name = \"ap\", queue = 0 }"),
    (AIR, "{ name = \"ap\" }", "{ name = \"ap\", queue = 200000 }"),
    (AIR, "{ name = \"ap\" }", "{ name = \"ap\", rate_control = \"fixed\" }"),
    (AIR, "{ name = \"ap\" }", "{ name = \"ap\", frame_error = 0.0 }"),
    (AIR, "{ name = \"ap\" }", "{ name = \"ap\", ap = \"ap\" }"),
    (AIR, "{ name = \"near\", ap = \"ap\" }", "{ name = \"near\", ap = \"far\" }"),
    (AIR, "{ name = \"near\", ap = \"ap\" }", "{ name = \"near\", ap = \"nowhere\" }"),
    (AIR, "{ name = \"near\", ap = \"ap\" }", "{ name = \"near\" }"),
    (AIR, "{ name = \"near\", ap = \"ap\" }", "{ ap = \"ap\" }"),
    (AIR, "{ name = \"near\", ap = \"ap\" }", "{ name = \"näher\", ap = \"ap\" }"),
    (AIR, "{ name = \"near\", ap = \"ap\" }", "{ name = \"far\", ap = \"ap\" }"),
    (AIR, "{ name = \"near\", ap = \"ap\" }", "{ name = \"misspelt\", ap = \"ap\" }"),
    (AIR, "{ name = \"near\", ap = \"ap\" }", "{ name = \"near\", ap = \"ap\", rate = \"11.5 Mbit/s\" }"),
    (AIR, "{ name = \"near\", ap = \"ap\" }", "{ name = \"near\", ap = \"ap\", down_rate = \"65 Mbit/s\" }"),
    (AIR, "{ name = \"near\", ap = \"ap\" }", "{ name = \"near\", ap = \"ap\", frame_error = -0.1 }"),
    (AIR, "{ name = \"near\", ap = \"ap\" }", "{ name = \"near\", ap = \"ap\", down_frame_error = nan }"),
    (AIR, "distance_m = 40.0", "distance_m = 40.0, snr_db = 20.0"),
    (AIR, "distance_m = 40.0", "snr_db = 20.0, exponent = 2.0"),
    (AIR, "distance_m = 40.0", "snr_db = 20.0, coherence = \"1 s\""),
    (AIR, "distance_m = 40.0", "snr_db = 20.0, coherence = \"0 s\", shadowing_db = 3.0"),
    (AIR, "distance_m = 40.0", "distance_m = -1.0"),
    (AIR, "distance_m = 40.0", "distance_m = inf"),
    (
        AIR,
        "distance_m = 40.0 }",
        "snr_db = 20.0, exponent = 2.0 }, schedule = [{ at = \"1 s\", distance_m = 5.0 }]",
    ),
    (
        AIR,
        "distance_m = 40.0 }",
        "distance_m = 4.0 }, schedule = [{ at = \"1 s\", distance_m = 5.0, snr_db = 3.0 }]",
    ),
    (AIR, "distance_m = 40.0 }", "distance_m = 4.0 }, schedule = [{ at = \"1 s\" }]"),
    (AIR, "distance_m = 40.0 }", "distance_m = 4.0 }, schedule = [{ at = \"1 s\", rate = \"7 Mbit/s\" }]"),
    (
        AIR,
        "distance_m = 40.0 }",
        "distance_m = 4.0 }, schedule = [\n  { at = \"2 s\", rate = \"6 Mbit/s\" },\n  { at = \"2 s\", rate = \"9 Mbit/s\" }]",
    ),
    (AIR, "distance_m = 40.0 }", "distance_m = 4.0 }, schedule = [{ at = \"-2 s\", rate = \"6 Mbit/s\" }]"),
    (AIR, "ap = \"ap\" },\n", "ap = \"ap\", schedule = [{ at = \"1 s\", snr_db = 3.0 }] },\n"),
    (AIR, "[[traffic]]", "[[link]]\nfrom = \"near\"\nto = \"ap\"\n[[traffic]]"),
    (
        AIR,
        "[[traffic]]",
        "[[wlan]]\nstation = [{ name = \"ap\" }, { name = \"near\", ap = \"ap\" }]\n[[traffic]]",
    ),
    (AIR, "size = \"1500 B\"", "size = \"2297 B\""),
];

const FLOWS: &[Case] = &[
    (WIRED, "rate = \"1 Mbit/s\"", "rate = \"0 bit/s\"\nchanges = [{ at = \"1 s\", rate = \"0 bit/s\" }]"),
    (
        WIRED,
        "rate = \"1 Mbit/s\"",
        "rate = \"1 Mbit/s\"\nchanges = [{ at = \"1 s\", rate = \"1 Mbit/s\" }, { at = \"1 s\", rate = \"2 Mbit/s\" }]",
    ),
    (WIRED, "rate = \"1 Mbit/s\"", "rate = \"1 Mbit/s\"\nstart = \"5 s\"\nstop = \"5 s\""),
    (WIRED, "rate = \"1 Mbit/s\"", "rate = \"1 Mbit/s\"\nstart = \"-5 s\""),
    (WIRED, "rate = \"1 Mbit/s\"", "rate = \"1 Mbit/s\"\nstop = \"50 s\""),
    (WIRED, "rate = \"1 Mbit/s\"", "rate = \"1 Mbit/s\"\ntcp = {}"),
    (WIRED, "name = \"tcp\"", "name = \"cbr\""),
    (WIRED, "name = \"tcp\"", "name = \"t c p\""),
    (WIRED, "size = \"1000 B\"", "size = \"65536 B\""),
    (WIRED, "kind = \"cbr\"", "kind = \"trace\"\npackets = \"\""),
    (WIRED, "kind = \"ftp\"", "kind = \"file\"\nbytes = \"1 MB\"\nbytes_max = \"2 MB\""),
    (WIRED, "kind = \"ftp\"", "kind = \"files\"\nbytes = \"1 MB\""),
    (WIRED, "ecn = true", "recovery_burst = 2"),
    (WIRED, "ecn = true", "recovery_burst = 2, recovery = \"newreno\""),
    (WIRED, "ecn = true", "initial_rto = \"2 min\""),
    (WIRED, "ecn = true", "initial_rto = \"10 ms\""),
    (WIRED, "ecn = true", "min_rto = \"nan s\""),
    (WIRED, "ecn = true", "law = { binomial = { a = 1.0, b = 2.0, k = 1, l = 0 } }"),
    (WIRED, "ecn = true", "law = { binomial = { a = nan } }"),
    (WIRED, "rate = \"10 Mbit/s\"", "rate = \"10 Mbit/s\"\nqueue = \"1400 B\""),
    (
        WIRED,
        "method = \"wbest\"",
        "method = \"wbest\"\n[[measure]]\nfrom = \"a\"\nto = \"b\"\nmethod = \"wbest\"",
    ),
    (
        WIRED,
        "method = \"wbest\"",
        "method = \"wbest\"\n[[measure]]\nfrom = \"b\"\nto = \"a\"\nmethod = \"wbest\"\nipv6 = true",
    ),
    (WIRED, "method = \"wbest\"", "method = \"wbest\"\ndirection = \"sideways\""),
    (WIRED, "method = \"wbest\"", "method = \"wbest\"\nstart = \"10 s\""),
];

fn said(case: &Case) -> String {
    let &(text, what, instead) = case;
    assert_eq!(text.matches(what).count(), 1, "{what}");
    let loaded = Scenario::parse("x.toml", &text.replacen(what, instead, 1));
    loaded.map_or_else(|error| error.to_string(), |_| "accepted".to_owned())
}

#[test]
fn every_contradiction_is_refused_in_words() {
    let mut seen = String::new();
    for (head, cases) in [("the run", RUN), ("links", LINKS), ("WLANs", WLANS), ("flows", FLOWS)] {
        seen += &format!("# {head}\n");
        for case in cases {
            let answer = said(case);
            assert!(
                answer == "accepted" || answer.starts_with("x.toml:") && answer.lines().count() == 1,
                "{answer}"
            );
            seen += &format!("{}\n    {answer}\n", case.2);
        }
    }
    // UPDATE=1 writes the file anew; read the difference before committing it.
    let snapshot = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contradictions.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(snapshot, &seen).unwrap();
    }
    assert_eq!(seen, std::fs::read_to_string(snapshot).unwrap());
}

#[test]
fn both_texts_are_good() {
    for text in [WIRED, AIR] {
        assert_eq!(Scenario::parse("x.toml", text).map(|_| ()), Ok(()));
        assert_eq!(Scenario::parse("x.toml", &text.replace('\n', "\r\n")).map(|_| ()), Ok(()));
    }
}

#[test]
fn texts_nested_without_end_are_refused() {
    for (open, close) in [("[", "]"), ("{ a = ", " }")] {
        let deep = format!("name = {}1{}", open.repeat(100_000), close.repeat(100_000));
        let error = Scenario::parse("x.toml", &deep).unwrap_err();
        assert_eq!(error.line, 1, "{error}");
    }
    let dotted = format!("{}a = 1", "a.".repeat(100_000));
    assert!(Scenario::parse("x.toml", &dotted).is_err());
}

#[test]
fn the_line_is_the_stations_and_the_keys() {
    let error = |instead: &str| {
        let text = AIR.replace("{ name = \"near\", ap = \"ap\" }", instead);
        let error = Scenario::parse("x.toml", &text).unwrap_err();
        (error.line, error.key)
    };
    assert_eq!(error("{ name = \"near\", ap = \"x\" }"), (14, "wlan[0].station[1].ap".into()));
    // In tables of their own each key has a line.
    let tables = AIR.split("station = [").next().unwrap().to_owned()
        + "[[wlan.station]]\nname = \"ap\"\n[[wlan.station]]\nname = \"near\"\nap = \"ap\"\n\n[wlan.station.channel]\nexponent = nan\n";
    let error = Scenario::parse("x.toml", &tables).unwrap_err();
    assert_eq!((error.line, error.key.as_str()), (19, "wlan[0].station[1].channel.exponent"), "{error}");
}
