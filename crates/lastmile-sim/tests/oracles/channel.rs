//! Numbers of the papers of WBest and TFRC Probe for their WLANs, beside the limits of 802.11.

use std::sync::{Arc, Mutex};

use lastmile::time::Time;

use crate::rig::Rig;
use crate::table::{Table, Within};

/// Mbit/s that one saturating flow of `size` bytes to A gets in a ready scenario, and all flows together.
fn saturated(ready: &str, size: u32, mbps: f64, set: &[(&str, &str)]) -> (f64, f64) {
    let probe = format!(
        "[[traffic]]\nname = \"probe\"\nkind = \"cbr\"\nfrom = \"server\"\nto = \"A\"\nrate = \"{mbps} Mbit/s\"\nsize = \"{size} B\"\n"
    );
    let mut rig = Rig::ready(ready, &probe, &[set, &[("duration", "65 s")]].concat(), 1);
    let flows = rig.scenario.traffic.len();
    let snaps = [5.0, 65.0].map(|seconds| {
        rig.run_to(seconds);
        (0..flows).map(|flow| rig.bits(flow)).collect::<Vec<_>>()
    });
    let rates: Vec<f64> = (0..flows).map(|flow| (snaps[1][flow] - snaps[0][flow]) / 60e6).collect();
    (rates[flows - 1], rates.iter().sum())
}

#[test]
fn cases_0_to_2_of_wbest() {
    let mut table =
        Table::new("1.4-wbest", "1.4 WBest's truths, Mbit/s of UDP payload: 1470 B in packets of 1498", 2);
    let payload = |ip: f64, size: f64| ip * (size - 28.0) / size;
    let (idle, _) = saturated("ap", 1498, 60.0, &[]);
    table.row("case 0: arithmetic, ACKs at 6 Mbit/s", 28.7, payload(idle, 1498.0), Within::Share(0.01));
    table.row("case 0: the paper", 28.94, payload(idle, 1498.0), Within::Share(0.01));
    // As much as goes beside 4.6 Mbit/s without pushing them out of the queue that both share.
    let (beside, both) = saturated("ap-1", 1498, 24.6, &[]);
    table.row("case 1: case 0 less the crossing traffic", idle - 4.6, beside, Within::Share(0.01));
    table.row("case 1: the sum is case 0", idle, both, Within::Share(0.01));
    table.row("case 1: the paper", 24.39, payload(beside, 1498.0), Within::Share(0.02));
    let (small, _) = saturated("ap-1", 1498, 24.6, &[("traffic.B.size", "500 B")]);
    table.row("case 1: crossing packets of 500 B leave less", 24.39, payload(small, 1498.0), Within::Below);
    // With ACKs at 24 Mbit/s the IP rate beside the ideal contender is that of table 1.2, and 400 B and 18 to 24 Mbit/s
    // are what the oracle says; with case 0's ACKs all is some 5 % lower, and it takes 500 B instead.
    let case2 = |ack: &str, size: &str, rate: &str| {
        let set = [("traffic.B.size", size), ("wlan.0.station.2.rate", rate), ("wlan.0.ack_rate", ack)];
        saturated("ap-2", 1498, 60.0, &set).0
    };
    let (slow_ack, ack) = ("6 Mbit/s", "24 Mbit/s");
    let ideal = case2(ack, "1500 B", "54 Mbit/s");
    table.row("case 2: ideal contender of 1500 B, IP Mbit/s", 25.9, ideal, Within::Share(0.01));
    let ideal = payload(case2(slow_ack, "1500 B", "54 Mbit/s"), 1498.0);
    table.row("case 2: the paper's is below an ideal contender's", ideal, 20.52, Within::Below);
    for (what, ack, size, rate) in [
        ("packets of 400 B", ack, "400 B", "54 Mbit/s"),
        ("packets of 500 B, case 0's ACKs", slow_ack, "500 B", "54 Mbit/s"),
    ] {
        let got = payload(case2(ack, size, rate), 1498.0);
        table.row(format!("case 2: {what}"), 20.52, got, Within::Share(0.01));
    }
    for ack in [ack, slow_ack] {
        let [least, most] =
            ["18 Mbit/s", "24 Mbit/s"].map(|rate| payload(case2(ack, "1500 B", rate), 1498.0));
        table.row(
            format!("case 2: between contenders at 18 and 24 Mbit/s, ACKs at {ack}"),
            least,
            20.52,
            Within::To(most),
        );
    }
    for (size, least, most, paper) in [(500, 15.0, 17.0, 19.2), (200, 7.0, 9.0, 11.4)] {
        let (got, _) = saturated("ap", size, 60.0, &[]);
        table.row(format!("packets of {size} B: arithmetic"), least, got, Within::To(most));
        table.row(format!("packets of {size} B: the paper's is out of reach"), paper, got, Within::Below);
    }
    table.check();
}

/// Mbit/s by the dispersion of the pair with the smallest sum of delays, of pairs of 1000 B to a client of 802.11b.
fn best_pair(rate: &str) -> f64 {
    const PAIRS: usize = 400;
    let pairs: Vec<String> =
        (0..PAIRS).map(|pair| format!("{0} 1000\\n{0} 1000\\n", pair as f64 * 0.1)).collect();
    let text = format!(
        "name = \"pairs\"\nduration = \"41 s\"\n[host.base]\n[host.client]\n[[wlan]]\nstandard = \"b\"\n\
         station = [{{ name = \"base\" }}, {{ name = \"client\", ap = \"base\", rate = \"{rate}\" }}]\n\
         [[traffic]]\nkind = \"trace\"\nfrom = \"base\"\nto = \"client\"\npackets = \"{}\"\n",
        pairs.concat()
    );
    let mut rig = Rig::new(&text, &[], 1);
    let (wlan, arrivals) = (rig.simulation.wlans[0], Arc::new(Mutex::new(Vec::<Time>::new())));
    let log = Arc::clone(&arrivals);
    rig.simulation.engine.set_tap(Box::new(move |at, from, _, _| {
        if from == wlan {
            log.lock().unwrap().push(at);
        }
    }));
    rig.run_to(41.0);
    let arrivals: Vec<u64> = arrivals.lock().unwrap().iter().map(|at| at.as_nanos()).collect();
    assert_eq!(arrivals.len(), 2 * PAIRS);
    let delay = |at: u64| at % 100_000_000;
    let best = arrivals.chunks(2).min_by_key(|pair| delay(pair[0]) + delay(pair[1])).unwrap();
    8e6 / (best[1] - best[0]) as f64
}

#[test]
fn pairs_of_tfrc_probe_see_the_shortest_frame_exchange() {
    let mut table = Table::new(
        "1.4-tfrc-probe",
        "1.4 TFRC Probe on 802.11b, pairs of 1000 B: Mbit/s of the best pair",
        3,
    );
    for (rate, oracle) in [("1 Mbit/s", 0.905), ("2 Mbit/s", 1.72), ("5.5 Mbit/s", 3.99), ("11 Mbit/s", 6.38)]
    {
        table.row(
            format!("at {rate}: P over DIFS, data, SIFS, ACK"),
            oracle,
            best_pair(rate),
            Within::Share(0.005),
        );
    }
    table.check();
}
