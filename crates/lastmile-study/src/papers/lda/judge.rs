//! Decisions shared by LDA's claims and those on its variants.

use Topology::Wlh;

use super::cases::{SCHEMES, Topology};
use super::printed;
use crate::papers::results::Results;
use crate::papers::{Bar, Case, Parts, each};

/// So many points of throughput are close.
pub(super) const CLOSE: f64 = 4.0;

/// The unit of what TCP has.
pub(super) const TCP_S_SHARE: &str = "% of its share";

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

/// The median over runs. Where nothing was lost to congestion, nothing of it was misjudged.
pub(super) fn middle(results: &Results, case: &Case, what: &str) -> Option<f64> {
    let ours = results.median(case, what);
    if what == "mc" { ours.or(results.median(case, "throughput").map(|_| 0.0)) } else { ours }
}

/// The mean over numbers of flows of the medians over runs: the paper says "in most cases".
pub(super) fn over(flows: &[u32], of: impl Fn(u32) -> Option<f64>) -> Option<f64> {
    let all: Option<Vec<f64>> = flows.iter().map(|&n| of(n)).collect();
    all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
}

/// TCP's throughput, mean over flow counts.
pub(super) fn tcp_has(results: &Results, flows: &[u32], case: &dyn Fn(u32) -> Case) -> Option<f64> {
    over(flows, |n| results.median(&case(n), "tcp_throughput"))
}

/// Figure 15 at 800 kbit/s for each alone.
pub(super) fn at_800(results: &Results, flows: &[u32], case: &dyn Fn(u32, &str) -> Case) -> Parts {
    let mut parts = Parts::of(TCP_S_SHARE);
    let of = |scheme: &str| tcp_has(results, flows, &|n| case(n, scheme));
    let more = of("spike").zip(of("omniscient")).map(|(spike, omniscient)| spike - omniscient);
    parts.value("at 800 spike leaves TCP more than omniscient by", more, Bar::within(CLOSE));
    for scheme in ["biaz", "zbs"] {
        parts.value(format!("at 800 TCP beside {scheme}"), of(scheme), Bar::between(92.0, 108.0));
    }
    parts
}
