//! iperf3 beside a measurement, and as the program that tells the truth.

use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use lastmile_net::lab::LabChild;
use serde_json::Value;

use super::hosts::Host;

/// iperf3's payload in a packet of 1488 B.
const PAYLOAD: &str = "1460";
const IP_OF_PAYLOAD: f64 = 1488.0 / 1460.0;

/// A server's port. Each has its own: late datagrams of another run would be taken for a client's first.
fn port() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(5201);
    NEXT.fetch_add(1, Ordering::Relaxed).to_string()
}

/// Traffic through a path, until dropped.
pub(super) struct Beside {
    _server: LabChild,
    _client: LabChild,
}

impl Beside {
    fn start(from: &Host, to: &Host, address: &str, options: &[&str]) -> Beside {
        let port = port();
        let server = to.start("iperf3", &["-s", "-p", &port]);
        std::thread::sleep(Duration::from_millis(500));
        let client = from.start("iperf3", &[&["-c", address, "-p", &port, "-t", "86400"], options].concat());
        // A download has found its rate by then.
        std::thread::sleep(Duration::from_secs(2));
        Beside { _server: server, _client: client }
    }

    /// Datagrams at a constant rate, in bit/s of IP packets.
    pub(super) fn udp(from: &Host, to: &Host, address: &str, rate: f64) -> Beside {
        let rate = format!("{:.0}", rate / IP_OF_PAYLOAD);
        Beside::start(from, to, address, &["-u", "-b", &rate, "-l", PAYLOAD])
    }

    /// One download.
    pub(super) fn tcp(from: &Host, to: &Host, address: &str) -> Beside {
        Beside::start(from, to, address, &[])
    }
}

/// The rate at which a device receives, in bit/s of IP packets: counted by the kernel for three seconds.
pub(super) fn counted(host: &Host, device: &str) -> f64 {
    counted_for(Duration::from_secs(3), host, device)
}

fn counted_for(time: Duration, host: &Host, device: &str) -> f64 {
    let count = || {
        let table = host.run("cat", &["/proc/self/net/dev"]).stdout;
        let line = table.lines().find_map(|line| line.trim().strip_prefix(&format!("{device}:")));
        let mut fields =
            line.expect("the device").split_whitespace().map(|n| n.parse::<f64>().expect("a number"));
        let (frames, packets) = (fields.next().expect("bytes"), fields.next().expect("packets"));
        (Instant::now(), frames - 14.0 * packets)
    };
    let (began, before) = count();
    std::thread::sleep(time);
    let (ended, after) = count();
    (after - before) * 8.0 / (ended - began).as_secs_f64()
}

/// The rate that a path lets through of `flood`, which is more than that.
///
/// The kernel's tbf sends by a timer, and what tokens come while that is late beyond the bucket's size are lost. With a bucket of
/// 1600 B, 98 B more than a packet, these are the tokens of all that it is late beyond 39 us: a shaper that is slower than its rate.
pub(super) fn saturated(from: &Host, (to, address, device): (&Host, &str, &str), flood: f64) -> f64 {
    let flooding = Beside::udp(from, to, address, flood);
    let rate = counted(to, device);
    drop(flooding);
    // A queue without a small limit still holds seconds of it.
    let until = Instant::now() + Duration::from_secs(30);
    while counted_for(Duration::from_millis(300), to, device) > rate / 100.0 && Instant::now() < until {}
    rate
}

/// The rate at which datagrams arrive that are sent at that rate for five seconds.
pub(super) fn arrives(from: &Host, to: &Host, address: &str, rate: f64) -> f64 {
    let port = port();
    let _server = to.start("iperf3", &["-s", "-p", &port]);
    std::thread::sleep(Duration::from_millis(500));
    let rate = format!("{:.0}", rate / IP_OF_PAYLOAD);
    let ended =
        from.run("iperf3", &["-c", address, "-p", &port, "-u", "-b", &rate, "-l", PAYLOAD, "-t", "5", "-J"]);
    let json: Value =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    let (sent, lost) = (&json["end"]["sum"]["bits_per_second"], &json["end"]["sum"]["lost_percent"]);
    let (sent, lost) = sent.as_f64().zip(lost.as_f64()).unwrap_or_else(|| panic!("no rate: {json:#}"));
    sent * (1.0 - lost / 100.0) * IP_OF_PAYLOAD
}
