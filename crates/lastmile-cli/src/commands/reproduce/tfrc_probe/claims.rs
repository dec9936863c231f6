//! What seed 001 claims, as `papers/tfrc-probe/claims.toml` words it.

use super::super::World;
use super::super::paper::{Case, Claim, Parts, Verdict};
use super::super::results::Results;
use super::cases::{self, FORWARD, HAND_OFFS, LOADS, Link, NS2, OF_ONE_RUN, RFC, SAMPLES, WIFI, WIRED};
use super::measure::{FOLLOWED, LAST, MOST, NOTICED};
use super::tables::{after, near};
use super::{IN_LAB, INCREASES};

pub(super) fn claims() -> Vec<Claim> {
    let claim = |id, world, paper, items, decide| Claim { id, paper, world, items, decide, cause: cause(id) };
    let sim = |id, paper, items, decide| claim(id, World::Sim, paper, items, decide);
    let lab = |id, paper, items, decide| claim(id, World::Lab, paper, items, decide);
    vec![
        sim("p1", "table 2: exact", &["table-2"], asymmetric),
        lab("p2", "table 3", &["table-3"], wired),
        lab("p3", "table 4", &["table-4"], wireless),
        sim(
            "p4",
            "tables 3 and 4: 5.5 s at 100 Mbit/s, 71 s at 128 kbit/s",
            &["table-3", "table-4"],
            |results| times(results, &Link::case),
        ),
        sim("p5", "figure 4", &["figure-4"], modes),
        sim("p6", "figure 6: hand-off at the 30th sample, notice at the 40th", &["figure-6"], |results| {
            noticed(results, &cases::hand_off(NS2, HAND_OFFS[0].1))
        }),
        sim("p7", "figure 6: from 50 kbit/s to 1.9 Mbit/s with, hardly without", &["figure-6"], |results| {
            risen(results, &|wrapper| cases::hand_off(NS2, wrapper))
        }),
        sim("p8", "0.14 and 0.22", &["increase"], |results| increases(results, &INCREASES[..2], MOST)),
        sim("x1", "table 3", &["table-3"], wired),
        sim("x2", "table 4", &["table-4"], wireless),
        sim("x3", "none: the paper goes upwards only", &["figure-6"], returned),
        sim("x4", "figure 6", &["hand-off-rfc"], |results| {
            noticed(results, &cases::hand_off(RFC, HAND_OFFS[0].1))
        }),
        sim("x5", "figure 6", &["hand-off-rfc"], |results| {
            risen(results, &|wrapper| cases::hand_off(RFC, wrapper))
        }),
        sim("x7", "figure 6", &["hand-off-alike"], |results| risen(results, &cases::hand_off_alike)),
        sim("x8", "table 2: exact", &["fast-access"], |results| {
            let mut parts = Parts::default();
            forward(results, &cases::with_fast_access, &mut parts);
            parts.verdict()
        }),
        sim("x9", "table 4", &["half-rate"], |results| {
            near_in_most(results, &WIFI, &OF_ONE_RUN[1..], &Link::half)
        }),
        sim("x10", "tables 3 and 4", &["half-rate"], |results| times(results, &Link::half)),
        sim("x11", "0.14 and 0.22", &["increase"], |results| increases(results, &INCREASES[..2], LAST)),
        sim("x6", "0.14 and 0.22", &["increase"], |results| increases(results, &INCREASES[2..], MOST)),
    ]
}

/// Why a claim does not hold, and in which variant it does. docs/reproduce.md has more.
fn cause(id: &str) -> &'static str {
    match id {
        "p1" => {
            "Cause: over access links of 10 Mbit/s, which the paper does not name, the packets of a pair come to the bottleneck 1.2 ms \
             apart, and four CBR flows send a packet each millisecond. With access links of 100 Mbit/s every number is within: x8"
        }
        "p3" | "x2" => {
            "Cause: TFRC fills the queue, so that few pairs of a run meet none, and the second packet of each waits for a backoff of 0 \
             to 31 slots. Where the source takes half of what the link has, the least of many backoffs counts: x9"
        }
        "p4" => {
            "Cause: a pair into a full queue loses a packet, and equation 3 counts pairs that arrive; the first seconds are slow start's. \
             With a source that takes half of what the link has: x10"
        }
        "p7" | "x5" => {
            "Cause: without fast rate adaptation the rate goes with 1/R and with the size of packets, and 802.11b's round-trip time is \
             an eleventh of 1xRTT's. Where neither changes: x7"
        }
        "p8" => {
            "Cause: while the discount of the older intervals falls from 1 to a half, the average grows by more than the newest one's \
             weight: by the formulas alone 0.23 where one packet in 200 was lost. Once it has fallen: x11"
        }
        "x6" => {
            "Cause: RFC 5348 discounts older intervals to a quarter, ns-2 and the paper to a half: 0.38 by the formulas alone"
        }
        _ => "",
    }
}

/// The forward capacity, in every case within 1 %.
fn forward(results: &Results, of: &dyn Fn(Case) -> Case, parts: &mut Parts) {
    let mut worst = 0.0_f64;
    for (load, kbps) in LOADS.into_iter().flat_map(|load| FORWARD.map(|kbps| (load, kbps))) {
        for samples in SAMPLES {
            let found = results.median(&of(cases::table_2(load, kbps, samples)), "capacity_1");
            let off = found.map(|found| 100.0 * (found / f64::from(kbps) - 1.0).abs());
            worst = worst.max(off.unwrap_or(0.0));
            let what = format!("{kbps} kbit/s under {} with {samples} samples", load.name());
            parts.wants(&what, off.map(|off| off <= 1.0));
        }
    }
    parts.say(format!("TFRC Probe off by {worst:.2} % at most"));
}

/// Table 2.
fn asymmetric(results: &Results) -> Verdict {
    let mut parts = Parts::default();
    forward(results, &|case| case, &mut parts);
    let (mut worst, mut ended, mut ran) = (0.0_f64, 0, 0);
    for (load, kbps) in LOADS.into_iter().flat_map(|load| FORWARD.map(|kbps| (load, kbps))) {
        ended += results.values(&cases::capprobe(load, kbps), "capprobe").len();
        ran += results.seeds;
        let off = results.median(&cases::capprobe(load, kbps), "capprobe").map(|found| (found - 100.0).abs());
        worst = worst.max(off.unwrap_or(0.0));
        parts.wants(&format!("CapProbe at {kbps} kbit/s under {}", load.name()), off.map(|off| off <= 1.0));
    }
    parts.say(format!(
        "CapProbe by {worst:.2} % in {ended} of {ran} runs, the others of which end without a number"
    ));
    parts.verdict()
}

fn wired(results: &Results) -> Verdict {
    near_in_most(results, &WIRED, &OF_ONE_RUN, &Link::case)
}

fn wireless(results: &Results) -> Verdict {
    near_in_most(results, &WIFI, &OF_ONE_RUN[1..], &Link::case)
}

/// Four of five runs are within a tenth.
fn near_in_most(results: &Results, links: &[Link], samples: &[u32], case: &dyn Fn(Link) -> Case) -> Verdict {
    let mut parts = Parts::default();
    for link in links {
        for &samples in samples {
            let (near, runs) = near(results, &case(*link), *link, samples);
            let share = (runs as u64 >= IN_LAB).then(|| 100.0 * near as f64 / runs as f64);
            let what = format!("% near, {} at {samples}", link.name());
            parts.value(&what, share, |share| share >= 80.0, "80 % of the runs");
        }
    }
    parts.verdict()
}

/// The slower a link, the longer it takes; and as long as n S P bytes take at the rate of sending.
fn times(results: &Results, case: &dyn Fn(Link) -> Case) -> Verdict {
    let mut parts = Parts::default();
    let fast_first = [
        Link::Ethernet,
        Link::WifiB(11_000),
        Link::WifiB(5_500),
        Link::DslDown,
        Link::WifiB(2_000),
        Link::WifiB(1_000),
        Link::OneXrtt,
        Link::DslUp,
    ];
    for samples in OF_ONE_RUN {
        let time = |link: Link| results.median(&case(link), after(samples).1);
        let all: Vec<Option<f64>> = fast_first.into_iter().map(time).collect();
        let said: Vec<String> =
            all.iter().map(|time| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.1}"))).collect();
        parts.say(format!("{samples} samples after {} s", said.join(", ")));
        for (pair, links) in all.windows(2).zip(fast_first.windows(2)) {
            let grows = pair[0].zip(pair[1]).map(|(faster, slower)| slower >= faster);
            let what = format!("{} takes longer than {} for {samples}", links[1].name(), links[0].name());
            parts.wants(&what, grows);
        }
    }
    for link in fast_first {
        // Bytes sent from the twentieth pair to the hundredth, over those of equation 3, in percent.
        let sent = results.median(&case(link), "equation_3").map(|sent| 100.0 * sent);
        let what = format!("{}: R t in % of n S P", link.name());
        parts.value(&what, sent, |sent| (90.0..=110.0).contains(&sent), "90 to 110");
    }
    parts.verdict()
}

/// Figure 4.
fn modes(results: &Results) -> Verdict {
    let mut parts = Parts::default();
    let case = Case::new("modes");
    let all = results.values(&case, "changes").len();
    for (k, (name, ..)) in FOLLOWED.into_iter().enumerate() {
        let followed = results.values(&case, name).len();
        let share = (all > 0).then(|| 100.0 * followed as f64 / all as f64);
        let what = format!("change {} followed in % of the runs", k + 1);
        parts.value(&what, share, |share| share > 50.0, "more than half");
    }
    let of = |what| results.median(&case, what);
    parts.value("size off equation 4 by %", of("size_off"), |off| off <= 10.0, "10 at most");
    parts.value("largest packet", of("largest"), |size| size <= 1_500.0, "1500 at most");
    parts.verdict()
}

/// Within the time that one window is to take. The first estimate after the hand-off may be of pairs from before it alone.
fn noticed(results: &Results, case: &Case) -> Verdict {
    let mut parts = Parts::default();
    let (seconds, windows) = NOTICED[0];
    let of = |what| results.median(case, what);
    parts.value("s until the notice", of(seconds), |seconds| seconds <= 5.0, "5 at most");
    parts.value("estimates until the notice", of(windows), |windows| windows <= 2.0, "2 at most");
    parts.value("s for the window before", of("window_s"), |_| true, "");
    parts.verdict()
}

fn risen(results: &Results, case: &dyn Fn(&str) -> Case) -> Verdict {
    let mut parts = Parts::default();
    let of = |which: usize| results.median(&case(HAND_OFFS[which].1), "rise");
    parts.value("with", of(0), |rise| rise >= 10.0, "10-fold at least");
    parts.value("without", of(1), |rise| rise < 2.0, "below 2-fold");
    parts.verdict()
}

/// Back on the slow link: noticed within 5 s, and in the 5 s after these not always more waits than two packets of 1500 B.
fn returned(results: &Results) -> Verdict {
    let mut parts = Parts::default();
    let case = cases::hand_off(NS2, HAND_OFFS[0].1);
    let of = |what| results.median(&case, what);
    parts.value("s until the notice", of(NOTICED[1].0), |seconds| seconds <= 5.0, "5 at most");
    parts.value("ms that always wait", of("standing_ms"), |ms| ms <= 160.0, "160 at most");
    parts.verdict()
}

fn increases(results: &Results, of: &[(&str, Option<f64>)], what: &str) -> Verdict {
    let mut parts = Parts::default();
    for (tfrc, most) in of {
        let Some(most) = *most else { continue };
        let found = results.median(&cases::increase(tfrc), what);
        // Two digits of it, as the paper prints them.
        parts.value(
            &format!("100 times {tfrc}"),
            found.map(|found| 100.0 * found),
            |found| found.round() <= 100.0 * most,
            &format!("{:.0} at most", 100.0 * most),
        );
    }
    parts.verdict()
}
