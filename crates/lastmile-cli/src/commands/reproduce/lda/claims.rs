//! What seed 004 claims, as `papers/lda/claims.toml` words it, decided by medians over the runs.

use super::super::paper::{Case, Claim, Parts, Verdict};
use super::super::results::{Estimate, Results};
use super::cases::{FLOWS, Preset, SCHEMES, Topology, beside_tcp, case, come_and_go, preset};
use super::{FEW, TOTALS, Variant, channels, printed, used};
use Topology::{Wb, Wlh};

pub(super) fn claims() -> Vec<Claim> {
    let claim = |id, paper, items, decide| Claim { id, paper, items, decide, cause: cause(id) };
    vec![
        claim("l1", "table II", &["table-2"], |results| one_flow(results, "table_2", Wlh, Preset::Ns2)),
        claim("l2", "table III", &["table-3"], |results| one_flow(results, "table_3", Wb, Preset::Ns2)),
        claim("l3", "table VI", &["table-6"], many_flows),
        claim("l4", "figure 8", &["figure-8"], misjudged_by_two_queues),
        claim("l5", "figure 9: Mw 100 %", &["figure-9"], no_use_of_gaps),
        claim("l6", "figure 9: Mc 0", &["figure-9"], |results| {
            let mut parts = Parts::default();
            for n in FLOWS {
                parts.value(
                    &format!("Mc with {n}"),
                    results.median(&case(Wb, n, "spike"), "mc"),
                    |mc| mc < 5.0,
                    "below 5",
                );
            }
            parts.verdict()
        }),
        claim("l7", "TFRC 97 %, TCP 85 %", &["figure-9"], |results| {
            let mut parts = Parts::default();
            let of = |scheme| results.median(&case(Wb, 10, scheme), "throughput");
            parts.value("TFRC", of("tfrc"), |found| (92.0..=100.0).contains(&found), "92 to 100");
            parts.value("TCP", of("tcp"), |found| (78.0..=92.0).contains(&found), "78 to 92");
            parts.verdict()
        }),
        claim("l8", "figures 11 and 12", &["figure-11", "figure-12"], |results| {
            let mut parts = Parts::default();
            for (topology, n) in [Wlh, Wb].into_iter().flat_map(|topology| FLOWS.map(|n| (topology, n))) {
                let over = results.difference(
                    &case(topology, n, "zbs"),
                    &case(topology, n, "omniscient"),
                    "throughput",
                );
                let what = format!("{} {n}", topology.name());
                parts.value(&what, over.map(|over| over.median), |over| over.abs() <= 4.0, "within 4");
            }
            parts.verdict()
        }),
        claim(
            "l9",
            "figure 13: WLH mBiaz 85, Spike 3; WB Spike 95; one flow mBiaz 98; WB two flows ZigZag 50",
            &["figure-13"],
            uses,
        ),
        claim("l10", "figure 14: WB 3-7; WLH above 14, and 7-10", &["figure-14"], fairness),
        claim("l11", "figure 15", &["figure-15"], friendliness),
        claim("l12", "sections V-B, V-C, VI", &["losses", "two-state", "delays"], |results| {
            let mut parts = Parts::default();
            for variant in [Variant::Medium, Variant::Low, Variant::TwoState, Variant::Delay] {
                same_order(results, variant, &mut parts);
            }
            parts.verdict()
        }),
        claim("l13", "section IX-B, expected", &["red"], red),
        claim("l14", "table I: 7.8, 3.1, 1.0 %; a quarter", &["table-1"], |results| {
            let mut parts = Parts::default();
            let [high, medium, low] = channels(results);
            let middle = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.median);
            for (name, found, paper) in [("high", high, 7.8), ("medium", medium, 3.1), ("low", low, 1.0)] {
                parts.value(
                    name,
                    middle(found[0]),
                    |found| (found / paper - 1.0).abs() <= 0.1,
                    &format!("{paper} within a tenth"),
                );
            }
            parts.value(
                "two frames long",
                middle(high[1]),
                |found| (20.0..=30.0).contains(&found),
                "20 to 30",
            );
            parts.verdict()
        }),
        claim("l15", "left open", &["come-and-go"], |results| {
            let mut parts = Parts::default();
            for topology in [Wlh, Wb] {
                for scheme in ["zbs(window=30 s)", "zbs"] {
                    let over = results.difference(
                        &come_and_go(topology, scheme),
                        &come_and_go(topology, "omniscient"),
                        "throughput",
                    );
                    let (what, over) =
                        (format!("{} {scheme}", topology.name()), over.map(|over| over.median));
                    parts.value(&what, over, |over| scheme == "zbs" || over.abs() <= 4.0, "within 4");
                }
            }
            parts.verdict()
        }),
        claim("x1", "table II, with RFC 5348's TFRC", &["table-2"], |results| {
            one_flow(results, "table_2", Wlh, Preset::Rfc)
        }),
        claim("x2", "table III, with RFC 5348's TFRC", &["table-3"], |results| {
            one_flow(results, "table_3", Wb, Preset::Rfc)
        }),
    ]
}

/// Why a claim does not hold, and in which variant it does.
fn cause(_id: &str) -> &'static str {
    ""
}

/// One flow: each number near the printed one.
fn one_flow(results: &Results, name: &str, topology: Topology, kind: Preset) -> Verdict {
    let mut parts = Parts::default();
    for scheme in SCHEMES {
        for (what, within) in [("throughput", 4.0), ("congestion_loss", 1.5), ("mc", 12.0), ("mw", 12.0)] {
            let Some(paper) = printed(name, what, scheme) else { continue };
            let ours = results.median(&preset(topology, 1, scheme, kind), what);
            // Where nothing is lost to congestion, nothing of it is misjudged.
            let ours = if what == "mc" { ours.or(Some(0.0)) } else { ours };
            parts.value(
                &format!("{scheme} {what}"),
                ours,
                |ours| (ours - paper).abs() <= within,
                &format!("{paper} ± {within}"),
            );
        }
    }
    parts.verdict()
}

/// Table VI.
fn many_flows(results: &Results) -> Verdict {
    let mut parts = Parts::default();
    let of = |scheme: &str, what: &str| results.median(&case(Wlh, 128, scheme), what);
    for scheme in SCHEMES {
        for (what, within) in [("throughput", 3.0), ("mc", 15.0), ("mw", 15.0)] {
            let Some(paper) = printed("table_6", what, scheme) else { continue };
            parts.value(
                &format!("{scheme} {what}"),
                of(scheme, what),
                |ours| (ours - paper).abs() <= within,
                &format!("{paper} ± {within}"),
            );
        }
    }
    let order = ["zigzag", "spike", "mbiaz", "zbs", "omniscient", "biaz"];
    for pair in order.windows(2) {
        let more = of(pair[1], "congestion_loss")
            .zip(of(pair[0], "congestion_loss"))
            .map(|(more, less)| more - less);
        parts.value(
            &format!("{} loses more to congestion than {} by", pair[1], pair[0]),
            more,
            |more| more > 0.0,
            "more",
        );
    }
    parts.verdict()
}

/// WLH with several flows.
fn misjudged_by_two_queues(results: &Results) -> Verdict {
    let mut parts = Parts::default();
    for n in FLOWS.into_iter().filter(|&n| n >= 4) {
        let of = |scheme: &str, what: &str| results.median(&case(Wlh, n, scheme), what);
        let mc = |a: &str, b: &str, pick: fn(f64, f64) -> f64| Some(pick(of(a, "mc")?, of(b, "mc")?));
        let apart =
            mc("biaz", "spike", f64::min).zip(mc("zigzag", "mbiaz", f64::max)).map(|(high, low)| high - low);
        parts.value(
            &format!("{n} flows: the lower Mc of Biaz and Spike above the higher of ZigZag and mBiaz by"),
            apart,
            |apart| apart > 0.0,
            "above",
        );
        for scheme in ["biaz", "spike"] {
            let over =
                results.difference(&case(Wlh, n, scheme), &case(Wlh, n, "omniscient"), "congestion_loss");
            let over = over.map(|over| over.median);
            parts.value(
                &format!("{n} flows: {scheme}'s congestion loss above omniscient's by"),
                over,
                |over| over > 0.0,
                "above",
            );
        }
    }
    parts.verdict()
}

/// WB beyond one flow: gaps say nothing.
fn no_use_of_gaps(results: &Results) -> Verdict {
    let mut parts = Parts::default();
    for n in FLOWS.into_iter().filter(|&n| n > 1) {
        for scheme in ["biaz", "mbiaz"] {
            parts.value(
                &format!("{scheme} {n} Mw"),
                results.median(&case(Wb, n, scheme), "mw"),
                |mw| mw > 90.0,
                "above 90",
            );
            let over = results
                .difference(&case(Wb, n, scheme), &case(Wb, n, "tfrc"), "throughput")
                .map(|over| over.median);
            parts.value(&format!("{scheme} {n} over TFRC"), over, |over| over.abs() <= 5.0, "within 5");
        }
    }
    parts.verdict()
}

/// Figure 13.
fn uses(results: &Results) -> Verdict {
    let mut parts = Parts::default();
    let of = |topology, n, scheme| results.median(&case(topology, n, "zbs"), used(scheme));
    for topology in [Wlh, Wb] {
        parts.value(
            &format!("{} 1 mbiaz", topology.name()),
            of(topology, 1, "mbiaz"),
            |share| share >= 95.0,
            "95 or more",
        );
    }
    for n in FLOWS.into_iter().filter(|&n| n > 1) {
        parts.value(&format!("wlh {n} mbiaz"), of(Wlh, n, "mbiaz"), |share| share >= 75.0, "75 or more");
        parts.value(&format!("wlh {n} spike"), of(Wlh, n, "spike"), |share| share <= 10.0, "10 or less");
    }
    for n in [4, 6] {
        parts.value(&format!("wb {n} spike"), of(Wb, n, "spike"), |share| share >= 85.0, "85 or more");
    }
    parts.value("wb 2 zigzag", of(Wb, 2, "zigzag"), |share| (30.0..=70.0).contains(&share), "30 to 70");
    parts.verdict()
}

/// The mean over numbers of flows of the medians over runs: the paper says "in most cases".
fn over(flows: &[u32], of: impl Fn(u32) -> Option<f64>) -> Option<f64> {
    let all: Option<Vec<f64>> = flows.iter().map(|&n| of(n)).collect();
    all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
}

/// Figure 14.
fn fairness(results: &Results) -> Verdict {
    let mut parts = Parts::default();
    let of = |topology, scheme: &str| {
        over(&FLOWS[1..], |n| results.median(&case(topology, n, scheme), "deviation"))
    };
    for scheme in &SCHEMES[1..] {
        parts.value(&format!("wb {scheme}"), of(Wb, scheme), |found| (2.0..=9.0).contains(&found), "2 to 9");
    }
    for scheme in ["spike", "biaz", "mbiaz"] {
        parts.value(&format!("wlh {scheme}"), of(Wlh, scheme), |found| found > 12.0, "above 12");
    }
    for scheme in ["zigzag", "zbs"] {
        parts.value(&format!("wlh {scheme}"), of(Wlh, scheme), |found| found < 12.0, "below 12");
    }
    parts.verdict()
}

/// Figure 15: TCP's throughput, the mean over numbers of flows.
fn friendliness(results: &Results) -> Verdict {
    let mut parts = Parts::default();
    let of = |kbps, scheme: &str| {
        over(&TOTALS, |n| results.median(&beside_tcp(n, kbps, scheme), "tcp_throughput"))
    };
    let above = |kbps, scheme: &str| Some(of(kbps, scheme)? - of(kbps, "omniscient")?);
    for scheme in ["biaz", "mbiaz", "spike", "zbs"] {
        parts.value(
            &format!("at 130 {scheme} leaves TCP more than omniscient by"),
            above(130, scheme),
            |more| more.abs() <= 4.0,
            "within 4",
        );
    }
    parts.value(
        "at 130 zigzag leaves TCP more than omniscient by",
        above(130, "zigzag"),
        |more| more > 4.0,
        "above 4",
    );
    parts.value(
        "at 800 spike leaves TCP more than omniscient by",
        above(800, "spike"),
        |more| more.abs() <= 4.0,
        "within 4",
    );
    for scheme in ["biaz", "zbs"] {
        parts.value(
            &format!("at 800 TCP beside {scheme}"),
            of(800, scheme),
            |found| (92.0..=108.0).contains(&found),
            "92 to 108",
        );
    }
    parts.verdict()
}

/// How far schemes must be apart to have an order, in points of throughput.
const APART: f64 = 3.0;

/// No two schemes that are apart in the figures are the other way round elsewhere.
fn same_order(results: &Results, variant: Variant, parts: &mut Parts) {
    for (topology, n) in [Wlh, Wb].into_iter().flat_map(|topology| FEW.map(|n| (topology, n))) {
        let of = |case: &Case| results.median(case, "throughput");
        let pairs =
            SCHEMES.iter().enumerate().flat_map(|(k, a)| SCHEMES[k + 1..].iter().map(move |b| (*a, *b)));
        let mut turned = Vec::new();
        for (a, b) in pairs {
            let before = of(&case(topology, n, a)).zip(of(&case(topology, n, b))).map(|(a, b)| a - b);
            let now =
                of(&variant.of(topology, n, a)).zip(of(&variant.of(topology, n, b))).map(|(a, b)| a - b);
            match before.zip(now) {
                None => return parts.value(variant.name(), None, |_| false, ""),
                Some((before, now)) if before.abs() > APART && now.abs() > APART && before * now < 0.0 => {
                    turned.push(format!("{a} and {b}"));
                }
                Some(_) => {}
            }
        }
        let (name, topology) = (variant.name(), topology.name());
        let which = if turned.is_empty() { "none".to_owned() } else { turned.join(", ") };
        parts.holds(format!("{name} {topology} {n} turned: {which}"), turned.is_empty());
    }
}

/// What RED adds to Mc or Mw, whichever is more.
fn red(results: &Results) -> Verdict {
    let mut parts = Parts::default();
    for (topology, n) in [Wlh, Wb].into_iter().flat_map(|topology| FEW.map(|n| (topology, n))) {
        let worse = |scheme: &str| {
            let more = |what| {
                Some(
                    results
                        .difference(&Variant::Red.of(topology, n, scheme), &case(topology, n, scheme), what)?
                        .median,
                )
            };
            more("mc").into_iter().chain(more("mw")).reduce(f64::max)
        };
        for scheme in ["spike", "zigzag"] {
            let more = worse(scheme).zip(worse("biaz")).map(|(own, biaz)| own - biaz);
            parts.value(
                &format!("{} {n} {scheme} over biaz", topology.name()),
                more,
                |more| more > 0.0,
                "more",
            );
        }
    }
    parts.verdict()
}
