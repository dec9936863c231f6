//! `make field`: what measurements say on paths whose trouble is known, as a table. Kernel shapers (`tc tbf`), iperf3 beside,
//! a responder of TWAMP Light, a relay that loses and reorders.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::common::Ended;
use super::hosts::Host;
use super::no_hosts;
use super::relay::{Faults, Running, relay, responder};

/// Packets of 1488 B are frames of 1502 B to the kernel's shaper.
const IP_SHARE: f64 = 1488.0 / 1502.0;

/// near - router - far, with a server at far.
struct Path {
    near: Host,
    router: Host,
    far: Host,
    _server: lastmile_net::lab::LabChild,
}

impl Path {
    fn new() -> Path {
        let (near, router, far) = (Host::new("near"), Host::new("router"), Host::new("far"));
        near.link("eth0", "10.8.0.1/24", &router, "10.8.0.2/24");
        router.link("eth1", "10.9.0.1/24", &far, "10.9.0.2/24");
        router.forwards();
        near.does("ip route add 10.9.0.0/24 via 10.8.0.2");
        far.does("ip route add 10.8.0.0/24 via 10.9.0.1");
        let server = far.serves("10.9.0.2", &[]);
        Path { near, router, far, _server: server }
    }
}

/// A shaper at a host's device, until dropped.
struct Shaper<'a>(&'a Host, &'static str);

impl Drop for Shaper<'_> {
    fn drop(&mut self) {
        self.0.does(&format!("tc qdisc del dev {} root", self.1));
    }
}

fn shaper<'a>(host: &'a Host, device: &'static str, rate: &str, bucket: u64, limit: u64) -> Shaper<'a> {
    host.does(&format!("tc qdisc replace dev {device} root tbf rate {rate} burst {bucket} limit {limit}"));
    Shaper(host, device)
}

/// What many runs of one case said.
#[derive(Default)]
struct Said {
    runs: usize,
    /// Rates by quantity, in bit/s.
    rates: BTreeMap<String, Vec<f64>>,
    /// Intervals, and those that hold the truth.
    intervals: (usize, usize),
    bounds: Vec<f64>,
    /// Rates that are said to last: without the burst that they were shown with.
    lasting: Vec<f64>,
    /// Refusals and warnings by code.
    refused: BTreeMap<String, usize>,
    warned: BTreeMap<String, usize>,
}

impl Said {
    fn add(&mut self, ended: &Ended, truths: &BTreeMap<&str, f64>) {
        self.runs += 1;
        // Before any stream a refusal is a line and no JSON.
        let Ok(json) = serde_json::from_str::<Value>(&ended.stdout) else {
            *self.refused.entry(ended.stderr.trim().to_owned()).or_default() += 1;
            return;
        };
        let mut codes: Vec<String> = Vec::new();
        let words = json["warning_codes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        codes.extend(words.map(str::to_owned));
        let mut refused = Vec::new();
        for row in json["results"].as_array().into_iter().flatten() {
            let code = row["code"].as_str().unwrap_or_default();
            if row["refused"].is_string() {
                refused.push(code.to_owned());
                continue;
            }
            codes.extend(code.split_whitespace().map(str::to_owned));
            let quantity = row["quantity"].as_str().unwrap_or("?");
            if let Some(rate) = row["rate_bps"].as_f64() {
                self.rates.entry(quantity.to_owned()).or_default().push(rate);
            }
            self.bounds.extend(row["more_than_bps"].as_f64());
            let lasts = quantity == "sustained-rate" || row["burst_bytes"].is_null();
            self.lasting.extend(row["rate_bps"].as_f64().filter(|_| lasts));
            let ends = (row["interval"]["low_bps"].as_f64(), row["interval"]["high_bps"].as_f64());
            if let ((Some(low), Some(high)), Some(truth)) = (ends, truths.get(quantity)) {
                self.intervals.0 += 1;
                self.intervals.1 += usize::from((low..=high).contains(truth));
            }
        }
        for (codes, counts) in [(codes, &mut self.warned), (refused, &mut self.refused)] {
            let mut codes = codes;
            codes.sort();
            codes.dedup();
            codes.into_iter().for_each(|code| *counts.entry(code).or_default() += 1);
        }
    }

    fn line(&self, case: &str, truths: &BTreeMap<&str, f64>) -> String {
        let rates = self.rates.iter().map(|(quantity, rates)| {
            let middle = median(rates);
            let error = truths
                .get(quantity.as_str())
                .map(|truth| format!(" ({:+.1} % of {:.2})", (middle / truth - 1.0) * 100.0, truth / 1e6));
            format!("{quantity} {:.2} of {}{}", middle / 1e6, rates.len(), error.unwrap_or_default())
        });
        let bounds = (!self.bounds.is_empty()).then(|| {
            let most = self.bounds.iter().copied().fold(0.0, f64::max);
            format!("> {:.2} to {:.2} in {}", median(&self.bounds) / 1e6, most / 1e6, self.bounds.len())
        });
        let held = match self.intervals {
            (0, _) => "-".to_owned(),
            (all, held) => format!("{held} of {all}"),
        };
        let counted = |counts: &BTreeMap<String, usize>| {
            counts.iter().map(|(code, n)| format!("{code} {n}")).collect::<Vec<_>>().join(", ")
        };
        format!(
            "| {case} | {} | {} | {held} | {} | {} |",
            self.runs,
            rates.chain(bounds).collect::<Vec<_>>().join("; "),
            counted(&self.refused),
            counted(&self.warned)
        )
    }
}

/// What a shaper of 20 Mbit/s lets through of more than that, in bit/s of packets of 1488 B: counted where they come, by the kernel.
///
/// The kernel's tbf sends by a timer, and what tokens come while that is late beyond the bucket's size are lost. With a bucket of
/// 1600 B, 98 B more than a packet, these are the tokens of all that it is late beyond 39 us: a shaper that is slower than its rate.
fn saturated(from: &Host, (to, address, device): (&Host, &str, &str)) -> f64 {
    let _server = to.start("iperf3", &["-s"]);
    std::thread::sleep(Duration::from_millis(500));
    let _flood = from.start("iperf3", &["-c", address, "-u", "-b", "30M", "-l", "1460", "-t", "60"]);
    std::thread::sleep(Duration::from_secs(1));
    let counted = || {
        let table = to.run("cat", &["/proc/self/net/dev"]).stdout;
        let line = table.lines().find_map(|line| line.trim().strip_prefix(&format!("{device}:")));
        let packets = line.and_then(|line| line.split_whitespace().nth(1)).expect("a device and its packets");
        (Instant::now(), packets.parse::<f64>().expect("a number"))
    };
    let (began, before) = counted();
    std::thread::sleep(Duration::from_secs(3));
    let (ended, after) = counted();
    (after - before) * 1_488.0 * 8.0 / (ended - began).as_secs_f64()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Runs per case.
fn runs() -> u64 {
    std::env::var("LASTMILE_FIELD_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(20)
}

/// Measures so often, prints the row, and gives what was said.
fn row(
    near: &Host,
    case: &str,
    arguments: &[&str],
    truths: &[(&'static str, f64)],
    mut around: impl FnMut(u64) -> Option<Running>,
) -> Said {
    let truths: BTreeMap<&str, f64> = truths.iter().copied().collect();
    let mut said = Said::default();
    for seed in 0..runs() {
        let _beside = around(seed);
        said.add(&near.lastmile(&[&["measure"], arguments, &["--json"]].concat()), &truths);
    }
    eprintln!("{}", said.line(case, &truths));
    said
}

const HEAD: &str = "| case | n | median in Mbit/s, of how many runs (error); bounds | intervals that hold the truth | refused | said beside |\n|---|---|---|---|---|---|";

#[test]
#[ignore = "takes minutes: `make field`"]
fn field_table() {
    if no_hosts() {
        return;
    }
    let path = Path::new();
    let Path { near, router, far, .. } = &path;
    let forward = ["10.9.0.2", "--direction", "forward"];
    let sustained = 20e6 * IP_SHARE;
    let (nothing, mut wrong) = (|_: u64| None, Vec::new());
    let iperf3 = far.run("iperf3", &["--version"]).code == Some(0);
    let truly = |from, to| if iperf3 { saturated(from, to) } else { sustained };
    eprintln!("{HEAD}");
    for bucket in [1_600, 3_200, 10_000, 30_000, 100_000, 300_000, 1_000_000] {
        let _shaper = shaper(router, "eth1", "20mbit", bucket, 200_000);
        let case = format!("router, tbf 20 Mbit/s, bucket {bucket} B");
        // Of what a bucket lets through at once nobody knows here how fast the line is, or how late the shaper's timer.
        let truths = [
            ("available-bandwidth", (bucket < 40_000).then_some(sustained)),
            ("sustained-rate", Some(sustained)),
        ];
        let truths: Vec<_> = truths.into_iter().filter_map(|(what, truth)| Some((what, truth?))).collect();
        let said = row(near, &case, &forward, &truths, nothing);
        if said.lasting.iter().any(|rate| *rate > sustained * 1.1) {
            wrong.push(case);
        }
    }
    let ends = [("forward", (near, "10.8.0.1", "eth0")), ("reverse", (far, "10.9.0.2", "eth1"))];
    for (k, (direction, (host, _, device))) in ends.into_iter().enumerate() {
        let _shaper = shaper(host, device, "20mbit", 1_600, 200_000);
        let truths = [("available-bandwidth", truly(host, ends[1 - k].1))];
        let case = format!("the sender's own interface, {direction}, tbf 20 Mbit/s, bucket 1600 B");
        let said = row(near, &case, &["10.9.0.2", "--direction", direction], &truths, nothing);
        assert!(said.warned.contains_key("own-queue"), "{case}");
    }
    {
        let _shapers = (
            shaper(router, "eth1", "20mbit", 1_600, 200_000),
            shaper(router, "eth0", "1mbit", 1_600, 200_000),
        );
        let _responder = responder(far, "10.9.0.2:862", 138);
        let case = "TWAMP Light responder, replies of 138 B, 20 Mbit/s forth, 1 back";
        let said = row(
            near,
            case,
            &["10.9.0.2:862", "--direction", "round-trip"],
            &[("capacity", 1e6 * IP_SHARE)],
            nothing,
        );
        if !said.rates.is_empty() {
            wrong.push(case.to_owned());
        }
    }
    let truths = {
        let _shaper = shaper(router, "eth1", "20mbit", 1_600, 200_000);
        [("available-bandwidth", truly(near, ends[1].1))]
    };
    let through = ["10.8.0.2", "--direction", "forward"];
    let impaired = |seed, faults| Some(relay(router, "10.8.0.2:8620", "10.9.0.2:8620", faults, seed));
    for loss in [1, 3, 10] {
        let _shaper = shaper(router, "eth1", "20mbit", 1_600, 200_000);
        let case = format!("random loss of {loss} %, 20 Mbit/s");
        row(near, &case, &through, &truths, |seed| impaired(seed, Faults { loss, ..Faults::default() }));
    }
    for percent in [1, 10] {
        let _shaper = shaper(router, "eth1", "20mbit", 1_600, 200_000);
        let held = (percent, Duration::from_millis(3));
        let case = format!("{percent} % of packets overtaken by 3 ms, 20 Mbit/s");
        row(near, &case, &through, &truths, |seed| impaired(seed, Faults { held, ..Faults::default() }));
    }
    if iperf3 {
        let _server = far.start("iperf3", &["-s"]);
        let pause = || std::thread::sleep(Duration::from_millis(500));
        // A train at the capacity fills a queue of ten packets beside 10 Mbit/s, half again.
        for (mbps, limit, case) in [
            (8, 200_000, "tbf 20 Mbit/s, iperf3 -u -b 8M beside"),
            (10, 15_020, "queue of 10 packets, 20 Mbit/s, iperf3 -u -b 10M beside"),
        ] {
            let free = sustained - f64::from(mbps) * 1e6 * 1488.0 / 1460.0;
            let truths = [("available-bandwidth", free)];
            let _shaper = shaper(router, "eth1", "20mbit", 1_600, limit);
            pause();
            let rate = format!("{mbps}M");
            let _beside =
                near.start("iperf3", &["-c", "10.9.0.2", "-u", "-b", &rate, "-l", "1460", "-t", "600"]);
            pause();
            row(near, case, &forward, &truths, nothing);
        }
    } else {
        eprintln!("no rows with iperf3: apt-get install iperf3");
    }
    assert!(wrong.is_empty(), "more than the shaper lets through: {wrong:#?}");
}
