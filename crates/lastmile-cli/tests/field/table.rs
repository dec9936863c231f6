//! `make field`: measurements on paths whose trouble is known. Kernel shapers (`tc tbf`) and policers, iperf3 beside, a
//! responder of TWAMP Light, a relay that loses and reorders.

use std::time::Duration;

use super::beside::{Beside, saturated};
use super::hosts::Host;
use super::path::{IP_SHARE, Path, no_guest};
use super::relay::{Faults, relay, responder};
use super::rows::{MEASURED, Rows};
use super::said::{LEFT, Truth};
use super::{no_hosts, no_iperf3};

const FAR: &str = "10.9.0.2";
const FORWARD: [&str; 3] = [FAR, "--direction", "forward"];
/// The sustained rate behind a shaper of 20 Mbit/s.
const SUSTAINED: f64 = 20e6 * IP_SHARE;

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

#[test]
#[ignore = "takes minutes: `make field`"]
fn field_table() {
    if no_hosts() {
        return;
    }
    let mut rows = Rows::new("make field", MEASURED);
    let path = Path::new();
    buckets(&path, &mut rows);
    own_interfaces(&path, &mut rows);
    small_replies(&path, &mut rows);
    relayed(&path, &mut rows);
    if no_iperf3() {
        eprintln!("no rows with iperf3: apt-get install iperf3");
    } else {
        beside_iperf3(&path, &mut rows);
    }
    drop(path);
    small_packets(&mut rows);
    policers(&mut rows);
    rows.end();
}

/// The rate that a shaper of 20 Mbit/s lets through of more than that.
fn truly(from: &Host, to: (&Host, &str, &str)) -> f64 {
    if no_iperf3() { SUSTAINED } else { saturated(from, to, 30e6) }
}

fn buckets(Path { near, router, .. }: &Path, rows: &mut Rows) {
    for bucket in [1_600, 3_200, 10_000, 30_000, 100_000, 300_000, 1_000_000] {
        let case = format!("router, tbf 20 Mbit/s, bucket {bucket} B");
        if !rows.wants(&case) {
            continue;
        }
        let _shaper = shaper(router, "eth1", "20mbit", bucket, 200_000);
        // Bursts that a bucket lets through at once have no truth here: neither the line's rate nor the timer's lateness is known.
        let truths = [("sustained-rate", SUSTAINED), (LEFT, SUSTAINED)];
        let known = if bucket < 40_000 { 2 } else { 1 };
        let said = rows.row(near, &case, &FORWARD, &Truth::new(SUSTAINED, &truths[..known]), |_| None);
        if said.lasting.iter().any(|rate| *rate > SUSTAINED * 1.1) {
            rows.is_wrong(format!("{case}: more than the shaper lets through"));
        }
    }
    let case = "router, tbf rate 10mbit burst 3kb latency 100ms";
    if rows.wants(case) {
        router.does("tc qdisc replace dev eth1 root tbf rate 10mbit burst 3kb latency 100ms");
        let _shaper = Shaper(router, "eth1");
        let lasts = 10e6 * IP_SHARE;
        rows.row(
            near,
            case,
            &FORWARD,
            &Truth::new(lasts, &[("sustained-rate", lasts), (LEFT, lasts)]),
            |_| None,
        );
    }
}

fn own_interfaces(Path { near, far, .. }: &Path, rows: &mut Rows) {
    let ends = [("forward", (near, "10.8.0.1", "eth0")), ("reverse", (far, FAR, "eth1"))];
    for (k, (direction, (host, _, device))) in ends.into_iter().enumerate() {
        let case = format!("the sender's own interface, {direction}, tbf 20 Mbit/s, bucket 1600 B");
        if !rows.wants(&case) {
            continue;
        }
        let _shaper = shaper(host, device, "20mbit", 1_600, 200_000);
        let truth = Truth::new(SUSTAINED, &[(LEFT, truly(host, ends[1 - k].1))]);
        let said = rows.row(near, &case, &[FAR, "--direction", direction], &truth, |_| None);
        if !said.warned.contains_key("own-queue") {
            rows.is_wrong(format!("{case}: no own-queue"));
        }
    }
}

fn small_replies(Path { near, router, far, .. }: &Path, rows: &mut Rows) {
    let case = "TWAMP Light responder, replies of 138 B, 20 Mbit/s forth, 1 back";
    if !rows.wants(case) {
        return;
    }
    let _shapers =
        (shaper(router, "eth1", "20mbit", 1_600, 200_000), shaper(router, "eth0", "1mbit", 1_600, 200_000));
    let _responder = responder(far, "10.9.0.2:862", 138);
    let truth = Truth::new(1e6 * IP_SHARE, &[("capacity", 1e6 * IP_SHARE)]);
    let said = rows.row(near, case, &["10.9.0.2:862", "--direction", "round-trip"], &truth, |_| None);
    if said.has_rates() {
        rows.is_wrong(format!("{case}: a rate"));
    }
}

fn relayed(Path { near, router, far, .. }: &Path, rows: &mut Rows) {
    let lossy = [1, 3, 10]
        .map(|loss| (format!("random loss of {loss} %, 20 Mbit/s"), Faults { loss, ..Faults::default() }));
    let reordered = [1, 10].map(|percent| {
        let held = (percent, Duration::from_millis(3));
        (format!("{percent} % of packets overtaken by 3 ms, 20 Mbit/s"), Faults { held, ..Faults::default() })
    });
    let cases: Vec<_> = lossy.into_iter().chain(reordered).filter(|(case, _)| rows.wants(case)).collect();
    if cases.is_empty() {
        return;
    }
    let _shaper = shaper(router, "eth1", "20mbit", 1_600, 200_000);
    let left = truly(near, (far, FAR, "eth1"));
    for (case, faults) in cases {
        let mut truth = Truth::new(SUSTAINED, &[]);
        // The truth lies between the link's spare rate and the part of it that arrives.
        truth.of.insert(LEFT, (left * (1.0 - faults.loss as f64 / 100.0), left));
        rows.row(near, &case, &["10.8.0.2", "--direction", "forward"], &truth, |seed| {
            Some(relay(router, "10.8.0.2:8620", "10.9.0.2:8620", faults, seed))
        });
    }
}

fn beside_iperf3(Path { near, router, far, .. }: &Path, rows: &mut Rows) {
    // A train at the capacity fills a queue of ten packets beside 10 Mbit/s, half again.
    for (mbps, limit, case) in [
        (8.0, 200_000, "tbf 20 Mbit/s, iperf3 -u -b 8M beside"),
        (10.0, 15_020, "queue of 10 packets, 20 Mbit/s, iperf3 -u -b 10M beside"),
    ] {
        if !rows.wants(case) {
            continue;
        }
        let _shaper = shaper(router, "eth1", "20mbit", 1_600, limit);
        // iperf3 counts its payload.
        let taken = mbps * 1e6 * 1488.0 / 1460.0;
        let _beside = Beside::udp(near, far, FAR, taken);
        rows.row(near, case, &FORWARD, &Truth::new(SUSTAINED, &[(LEFT, SUSTAINED - taken)]), |_| None);
    }
}

/// A bucket of 1600 B holds more of a pair of smaller packets.
fn small_packets(rows: &mut Rows) {
    for (mtu, size) in [(1_420, 1_400.0), (1_280, 1_280.0)] {
        let case = format!("MTU {mtu}, tbf 20 Mbit/s, bucket 1600 B");
        if !rows.wants(&case) {
            continue;
        }
        let Path { near, router, far, .. } = &Path::new();
        for host in [router, far] {
            host.does(&format!("ip link set eth1 mtu {mtu}"));
        }
        let _shaper = shaper(router, "eth1", "20mbit", 1_600, 200_000);
        let lasts = 20e6 * size / (size + 14.0);
        let truth = Truth::new(lasts, &[("capacity", lasts), ("sustained-rate", lasts), (LEFT, lasts)]);
        rows.row(near, &case, &FORWARD, &truth, |_| None);
    }
}

/// A policer at the router's way in drops what its bucket has no tokens for: nothing waits. Kernels without one have a guest.
fn policers(rows: &mut Rows) {
    for bucket in [10_000, 30_000] {
        let case = format!("policer of 20 Mbit/s without a queue, bucket {bucket} B");
        if !rows.wants(&case) {
            continue;
        }
        let ingress = "tc qdisc add dev eth0 handle ffff: ingress";
        let police = format!(
            "tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 police rate 20mbit burst {bucket} drop flowid :1"
        );
        let here = Path::new();
        here.router.does(ingress);
        let words: Vec<&str> = police.split(' ').skip(1).collect();
        let path = if here.router.run("tc", &words).code == Some(0) {
            here
        } else if let Some(why) = no_guest() {
            eprintln!("lab: skipped: {case}: this kernel has no policer; {why}");
            continue;
        } else {
            Path::through_guest(&format!("{ingress}\n{police}\n"))
        };
        let truth = Truth::new(SUSTAINED, &[("sustained-rate", SUSTAINED), (LEFT, SUSTAINED)]);
        rows.row(&path.near, &case, &FORWARD, &truth, |_| None);
    }
}
