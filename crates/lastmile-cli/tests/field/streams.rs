//! `make field-linux`: streams over Linux's own queues, those that stay short too.

use super::no_hosts;
use super::path::{Path, no_guest};
use super::rows::{Rows, runs};

const FAR: &str = "10.9.0.2";
const HEAD: &str = "| path | controller | n | received, Mbit/s | round trip above its least, ms | lost, % | of these judged the link's, % |\n|---|---|---|---|---|---|---|";
const CONTROLS: [&str; 6] = ["tfrc", "tfrc+spike(rate_test=false)", "tfrc+spike", "lastmile", "nada", "vtp"];
/// A run of the measurements takes half a second.
const SECONDS: &str = "30";
const RUNS_OF_ONE: u64 = 4;

/// 4 Mbit/s with that queue, and behind it 40 ms there and back, with what netem does on the way forth.
fn router(queue: &str, loss: &str) -> String {
    format!(
        "ip link set ifb0 up
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0
{queue}
tc qdisc add dev eth1 root netem limit 2000 delay 20ms {loss}
tc qdisc add dev eth0 root netem limit 2000 delay 20ms\n"
    )
}

fn htb(queue: &str) -> String {
    format!(
        "tc qdisc add dev ifb0 root handle 1: htb default 10
tc class add dev ifb0 parent 1: classid 1:10 htb rate 4mbit burst 1b cburst 1b quantum 1514
tc qdisc add dev ifb0 parent 1:10 {queue}"
    )
}

/// The mean with the range.
fn mean(of: &[f64]) -> (f64, String) {
    let mean = of.iter().sum::<f64>() / of.len() as f64;
    let (least, most) = of.iter().fold((f64::MAX, 0.0_f64), |(least, most), x| (least.min(*x), most.max(*x)));
    (mean, format!("{mean:.2} ({least:.2} to {most:.2})"))
}

/// Means of a controller's runs.
struct Means {
    control: &'static str,
    /// Mbit/s received.
    rate: f64,
    /// ms of the mean round trip above its least: the queue.
    queue: f64,
    /// %.
    lost: f64,
}

impl Means {
    /// The rule of `evaluate league`, with the mean queue for the P95 frame delay, which two hosts do not know, and in points of 4 Mbit/s.
    fn dominates(&self, other: &Means) -> bool {
        let points = 100.0 * (self.rate - other.rate) / 4.0;
        (points >= -2.0 && self.queue < other.queue - 20.0)
            || (points > 5.0 && self.queue <= other.queue + 5.0)
    }
}

#[test]
#[ignore = "takes an hour: `make field-linux`"]
fn linux_streams() {
    if no_hosts() {
        return;
    }
    if let Some(why) = no_guest() {
        eprintln!("lab: skipped: {why}");
        return;
    }
    let mut rows = Rows::new("make field-linux: streams", HEAD);
    let cases = [
        ("fq_codel", router(&htb("fq_codel"), "")),
        ("cake", router("tc qdisc add dev ifb0 root cake bandwidth 4mbit", "")),
        ("pfifo, 2 % of random loss", router(&htb("pfifo limit 40"), "loss 2%")),
        ("pfifo, 5 % of random loss", router(&htb("pfifo limit 40"), "loss 5%")),
    ];
    for (case, lines) in cases.into_iter().filter(|(case, _)| rows.wants(case)).collect::<Vec<_>>() {
        let path = Path::through_guest(&lines);
        let _receiver = path.far.receives(FAR);
        let mut all = Vec::new();
        for control in CONTROLS {
            let (mut received, mut queue, mut lost, mut wireless) =
                (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            for _ in 0..runs().div_ceil(RUNS_OF_ONE) {
                let ended = path.near.lastmile(&[
                    "stream",
                    FAR,
                    "--seconds",
                    SECONDS,
                    "--control",
                    control,
                    "--json",
                ]);
                let json = ended.json();
                let number = |key: &str| json[key].as_f64().unwrap_or_else(|| panic!("{key}: {ended:?}"));
                received.push(number("received_bps") / 1e6);
                queue.push(1e3 * (number("rtt_mean_s") - number("rtt_min_s")));
                lost.push(100.0 * number("loss"));
                wireless
                    .push(100.0 * json["lost_wireless"].as_f64().unwrap_or(0.0) / number("lost").max(1.0));
            }
            let n = received.len();
            let ((rate, rates), (queue, queues), (lost, shares), (_, wireless)) =
                (mean(&received), mean(&queue), mean(&lost), mean(&wireless));
            rows.line(format!("| {case} | `{control}` | {n} | {rates} | {queues} | {shares} | {wireless} |"));
            all.push(Means { control, rate, queue, lost });
        }
        let of = |control: &str| all.iter().find(|means| means.control == control).expect("of the list");
        // Behind queues that stay short all losses are the queue's.
        for control in ["tfrc+spike", "lastmile"].map(of) {
            if !case.contains("random") && control.lost > 2.5 {
                rows.is_wrong(format!("{case}: {} loses {:.1} %", control.control, control.lost));
            }
        }
        let (plain, spike, ours) = (of("tfrc"), of("tfrc+spike"), of("lastmile"));
        if !case.contains("random") && spike.rate < 0.95 * plain.rate {
            rows.is_wrong(format!(
                "{case}: tfrc+spike receives {:.2}, {:.2} without",
                spike.rate, plain.rate
            ));
        }
        for rival in ["tfrc", "nada", "vtp"].map(of).into_iter().filter(|rival| rival.dominates(ours)) {
            rows.is_wrong(format!("{case}: {} dominates lastmile", rival.control));
        }
    }
    rows.end();
}
