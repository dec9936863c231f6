//! `make field-linux`: measurements over a router with Linux's own queues. Not every kernel here has them, so the router is a guest
//! of User-Mode Linux, as Debian packages it.

use super::beside::{Beside, arrives, counted, saturated};
use super::no_hosts;
use super::path::{IP_SHARE, Path, no_guest};
use super::rows::{MEASURED, Rows};
use super::said::{LEFT, Truth};

const FAR: &str = "10.9.0.2";
/// The rate of frames, for which the guest's timers are good.
const RATE: f64 = 10e6;

/// A link of 10 Mbit/s with that queue. Packets leave it one by one: htb's own bursts would let pairs pass back to back.
fn link(device: &str, queue: &str) -> String {
    format!(
        "tc qdisc add dev {device} root handle 1: htb default 10
tc class add dev {device} parent 1: classid 1:10 htb rate 10mbit burst 1b cburst 1b quantum 1514
tc qdisc add dev {device} parent 1:10 {queue}\n"
    )
}

/// A link of 10 Mbit/s, and behind it netem. A shaper below netem would get the packets after it, so the link is on the way in.
fn netem(what: &str) -> String {
    let redirect = "ip link set ifb0 up
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0\n";
    [
        redirect,
        &link("ifb0", "pfifo limit 64"),
        &format!("tc qdisc add dev eth1 root netem limit 2000 {what}\n"),
    ]
    .concat()
}

fn queues() -> [(&'static str, String, bool); 7] {
    let cake = |options: &str| format!("tc qdisc add dev eth1 root cake bandwidth 10mbit {options}\n");
    [
        ("pfifo", link("eth1", "pfifo limit 64"), true),
        ("tbf", "tc qdisc add dev eth1 root tbf rate 10mbit burst 1600 limit 96000\n".to_owned(), true),
        ("fq_codel", link("eth1", "fq_codel"), true),
        ("cake", cake(""), true),
        ("cake flowblind", cake("besteffort flowblind"), true),
        ("netem delay 20 ms, loss 2 %", netem("delay 20ms loss 2%"), false),
        ("netem slots of 1 to 5 ms", netem("delay 20ms slot 1ms 5ms packets 32"), false),
    ]
}

/// The truths by iperf3: the rate that the path lets through, and the rest of it beside the other traffic.
fn truth(path: &Path, beside: impl Fn() -> Option<Beside>) -> (Truth, Option<Beside>) {
    let narrow = saturated(&path.near, (&path.far, FAR, "eth1"), 1.5 * RATE);
    let beside = beside();
    let taken = beside.as_ref().map_or(0.0, |_| counted(&path.far, "eth1"));
    assert!(beside.is_none() || taken > 0.35 * RATE, "iperf3 beside takes {taken:.0} bit/s alone");
    let left = (narrow - taken).max(0.0);
    // Beside a download that takes all of it nothing more fits. CoDel drops of a flow that fills the link to the brim.
    let arrived = if left > 0.05 * narrow { arrives(&path.near, &path.far, FAR, 0.97 * left) } else { 0.0 };
    let mut truth = Truth::new(narrow, &[("capacity", narrow)]);
    truth.of.insert(LEFT, (arrived.min(left), arrived.max(left)));
    (truth, beside)
}

#[test]
#[ignore = "takes ten minutes: `make field-linux`"]
fn linux_table() {
    if no_hosts() {
        return;
    }
    let why = no_guest()
        .or_else(|| super::no_iperf3().then(|| "there is no iperf3 here: apt-get install iperf3".to_owned()));
    if let Some(why) = why {
        eprintln!("lab: skipped: {why}");
        return;
    }
    let mut rows = Rows::new("make field-linux", MEASURED);
    for (queue, lines, shared) in queues() {
        let besides = ["idle", "UDP of 4 Mbit/s", "a TCP download"];
        let besides = if shared { &besides[..] } else { &besides[..1] };
        let cases = besides.iter().map(|beside| (*beside, format!("{queue}, {beside}")));
        let cases: Vec<_> = cases.filter(|(_, case)| rows.wants(case)).collect();
        if cases.is_empty() {
            continue;
        }
        let path = Path::through_guest(&lines);
        for (beside, case) in cases {
            let (truth, _beside) = truth(&path, || match beside {
                "idle" => None,
                "UDP of 4 Mbit/s" => Some(Beside::udp(&path.near, &path.far, FAR, 4e6)),
                _ => Some(Beside::tcp(&path.near, &path.far, FAR)),
            });
            assert!(
                truth.narrow > 0.9 * RATE * IP_SHARE,
                "{case}: the guest lets {:.0} bit/s through",
                truth.narrow
            );
            rows.row(&path.near, &case, &[FAR, "--direction", "forward"], &truth, |_| None);
        }
    }
    rows.end();
}
