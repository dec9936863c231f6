//! Decisions shared by LDA's claims and those on its variants.

use Topology::{Wb, Wlh};

use super::cases::{FLOWS, SCHEMES, Topology, case};
use super::printed;
use crate::papers::results::Results;
use crate::papers::{Bar, Case, Middle, Parts, each};

/// So many points of throughput are close.
pub(super) const CLOSE: f64 = 4.0;

/// One flow: each number so near to the one that the table of the topology prints.
pub(super) fn one_flow(results: &Results, topology: Topology, of: &dyn Fn(&str) -> Case) -> Parts {
    let near = [("throughput", 4.0), ("congestion_loss", 1.5), ("mc", 12.0), ("mw", 12.0)];
    near_the_printed(results, if topology == Wlh { "table_2" } else { "table_3" }, &near, of)
}

pub(super) fn near_the_printed(
    results: &Results,
    name: &str,
    near: &[(&str, f64)],
    of: &dyn Fn(&str) -> Case,
) -> Parts {
    let all = each(&SCHEMES, near).into_iter();
    let all =
        all.filter_map(|(scheme, (what, within))| Some((scheme, what, within, printed(name, what, scheme)?)));
    Parts::each("%", all, |(scheme, what, within, paper)| {
        (format!("{scheme} {what}"), middle(results, &of(scheme), what), Bar::near(paper, within))
    })
}

/// The median over runs. If nothing was lost to congestion, nothing of it was misjudged.
pub(super) fn middle(results: &Results, case: &Case, what: &str) -> Option<Middle> {
    let ours = results.median(case, what);
    if what == "mc" { ours.or(results.median(case, "throughput").map(|_| 0.0.into())) } else { ours }
}

/// The paper's words about most numbers of flows: a bar that more than half of them keep, each by its median. One that chance decides
/// counts for both sides in the interval.
pub(super) fn in_most(
    parts: &mut Parts,
    what: &str,
    flows: &[u32],
    bar: &Bar,
    of: impl Fn(u32) -> Option<Middle>,
) {
    let all: Option<Vec<(u32, Middle)>> = flows.iter().map(|&n| Some((n, of(n)?))).collect();
    let share = all.as_ref().map(|all| {
        let count = |keeps: &dyn Fn(&Middle) -> bool| {
            100.0 * all.iter().filter(|(_, found)| keeps(found)).count() as f64 / all.len() as f64
        };
        let low = count(&|found| bar.holds(found.median) && !bar.straddles(*found));
        let high = count(&|found| bar.holds(found.median) || bar.straddles(*found));
        let runs = all.iter().map(|(_, found)| found.runs).min().unwrap_or(0);
        Middle { median: count(&|found| bar.holds(found.median)), interval: (low, high), runs }
    });
    let each = all.into_iter().flatten().map(|(n, found)| format!("{:.1} with {n}", found.median));
    let each = each.collect::<Vec<_>>().join(", ");
    let what = format!("{what} {bar} ({each}): of the flow counts");
    parts.value(what, share, Bar::above(50.0).said("most"));
}

/// The deviations of figure 14, which are means over the runs: in the backbone of each flow count, in the last hop of most.
pub(super) fn fair(results: &Results) -> Parts {
    let varies = |topology: Topology, n, scheme: &str| {
        results.mean(&case(topology, n, scheme), "deviation").map(Middle::from)
    };
    let mut parts = Parts::each("%", each(&SCHEMES[1..], &FLOWS[1..]), |(scheme, n)| {
        (format!("wb {scheme} {n}"), varies(Wb, n, scheme), Bar::between(2.0, 9.0))
    });
    for (scheme, bar) in wlh_bars() {
        let what = format!("wlh {scheme} varies by %");
        in_most(&mut parts, &what, &FLOWS[1..], &bar, |n| varies(Wlh, n, scheme));
    }
    parts
}

/// The same by means over the flow counts.
pub(super) fn fair_on_the_mean(results: &Results) -> Parts {
    let varies = |topology: Topology, scheme: &str| -> Option<f64> {
        let of = |&n: &u32| Some(results.mean(&case(topology, n, scheme), "deviation")?.mean);
        let all: Option<Vec<f64>> = FLOWS[1..].iter().map(of).collect();
        all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
    };
    let mut parts = Parts::each("%", SCHEMES[1..].iter().copied(), |scheme| {
        (format!("wb {scheme}"), varies(Wb, scheme), Bar::between(2.0, 9.0))
    });
    for (scheme, bar) in wlh_bars() {
        parts.value(format!("wlh {scheme}"), varies(Wlh, scheme), bar);
    }
    parts
}

/// Deviations of schemes in the last hop.
fn wlh_bars() -> [(&'static str, Bar); 5] {
    let (much, little) = (Bar::above(12.0), Bar::below(12.0));
    [
        ("spike", much.clone()),
        ("biaz", much.clone()),
        ("mbiaz", much),
        ("zigzag", little.clone()),
        ("zbs", little),
    ]
}

/// Figure 15 at 800 kbit/s for each alone.
pub(super) fn at_800(results: &Results, flows: &[u32], case: &dyn Fn(u32, &str) -> Case) -> Parts {
    let mut parts = Parts::of("%");
    let more = |n| results.more(&case(n, "spike"), &case(n, "omniscient"), "tcp_throughput");
    let what = "at 800 spike leaves TCP more than omniscient by points of its share";
    in_most(&mut parts, what, flows, &Bar::within(CLOSE), more);
    for scheme in ["biaz", "zbs"] {
        let has = |n| results.median(&case(n, scheme), "tcp_throughput");
        let what = format!("at 800 TCP beside {scheme} has % of its share,");
        in_most(&mut parts, &what, flows, &Bar::between(92.0, 108.0), has);
    }
    parts
}

/// WLH with several flows.
pub(super) fn misjudged_by_two_queues(results: &Results) -> Parts {
    let mut parts = Parts::of("points");
    for n in FLOWS.into_iter().filter(|&n| n >= 4) {
        let case = |scheme: &str| case(Wlh, n, scheme);
        let [biaz, spike, zigzag, mbiaz] = ["biaz", "spike", "zigzag", "mbiaz"].map(case);
        let apart = results.paired([&biaz, &spike, &zigzag, &mbiaz], "mc", |[biaz, spike, zigzag, mbiaz]| {
            biaz.min(spike) - zigzag.max(mbiaz)
        });
        parts.value(
            format!("{n} flows: the lower Mc of Biaz and Spike above the higher of ZigZag and mBiaz by"),
            apart,
            Bar::above(0.0).said("above"),
        );
        for scheme in ["biaz", "spike"] {
            let over = results.more(&case(scheme), &case("omniscient"), "congestion_loss");
            let what = format!("{n} flows: {scheme}'s congestion loss above omniscient's by");
            parts.value(what, over, Bar::above(0.0).said("above"));
        }
    }
    parts
}
