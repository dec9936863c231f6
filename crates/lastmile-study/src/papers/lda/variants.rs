//! Other set-ups than those of the tables and figures, which claims hold in them, and other constants than the paper's.

use super::cases::{self, BesideTcp, Preset, SCHEMES, Topology, case, preset};
use super::judge::{at_800, fair_on_the_mean, middle, one_flow};
use super::tables::by_flows;
use super::{FEW, MEASURED};
use crate::papers::results::Results;
use crate::papers::{Bar, Case, Claim, Item, Parts, Row, Shown, Stated, each, means};
use Topology::{Wb, Wlh};

/// Another set-up than the one that tables and figures have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    change: fn(Topology, u32, Case) -> Case,
}

impl Variant {
    pub(super) const MEDIUM: Variant =
        Variant { name: "medium loss", change: |at, _, case| cases::losses(at, case, "interleaver", 3) };
    pub(super) const LOW: Variant =
        Variant { name: "low loss", change: |at, _, case| cases::losses(at, case, "spreading_gain", 32) };
    pub(super) const TWO_STATE: Variant =
        Variant { name: "two-state", change: |at, _, case| cases::two_state(at, case) };
    pub(super) const DELAY: Variant =
        Variant { name: "60 ms", change: |_, _, case| case.set("link.0.delay", "60 ms") };
    pub(super) const RED: Variant = Variant { name: "red", change: cases::red };
    pub(super) const FRAMES: Variant =
        Variant { name: "frames of 762 B", change: |at, _, case| cases::by_the_clock(at, case, 762) };
    pub(super) const HALF_FRAMES: Variant =
        Variant { name: "frames of 381 B", change: |at, _, case| cases::by_the_clock(at, case, 381) };
    pub(super) const TEN_MS: Variant =
        Variant { name: "bad periods of 10 ms", change: |at, _, case| cases::ten_ms(at, case) };

    pub(super) const FITTED: Variant =
        Variant { name: "frames of 10.2 ms", change: |at, _, case| cases::fitted_frames(at, case) };

    pub(super) fn of(self, topology: Topology, n: u32, scheme: &str) -> Case {
        (self.change)(topology, n, case(topology, n, scheme))
    }
}

/// All schemes at few numbers of flows, in both topologies, as in the figures and otherwise.
pub(super) fn variant(id: &'static str, shows: &'static str, flows: &[u32], which: &[Variant]) -> Item {
    let set_ups: Vec<_> = [None].into_iter().chain(which.iter().copied().map(Some)).collect();
    let rows = each(&each(&each(&[Wlh, Wb], flows), &set_ups), &SCHEMES);
    let row = |(((topology, n), set_up), scheme): (((Topology, u32), Option<Variant>), &str)| {
        let name = set_up.map_or("as in the figures", |other| other.name);
        let case = set_up.map_or_else(|| case(topology, n, scheme), |other| other.of(topology, n, scheme));
        Row::new(&[&topology.name(), &n, &name, &scheme], case)
    };
    let words = ["topology", "flows", "set-up", "scheme"];
    Item::rows(id, None, shows, &words, &means(MEASURED), rows.into_iter().map(row))
}

/// Flows beside TCP in other set-ups, TCP among them, and the schemes of claim l11 with TFRC, which leaves TCP the most.
const BESIDE: ([u32; 2], [&str; 5]) = ([2, 8], ["tfrc", "omniscient", "biaz", "spike", "zbs"]);

/// Figure 15 at 800 kbit/s for each, in other set-ups.
pub(super) fn beside_tcp_otherwise() -> Item {
    let shows = "section VIII-B read otherwise, at 800 kbit/s for each: losses in frames of 20 ms as at 130, last links with queues of six \
                 packets as at 130, TCP as ns-2 had it in 2000";
    let rows = each(&each(&BesideTcp::ALL, &BESIDE.0), &BESIDE.1);
    let row = |((set_up, n), scheme): ((BesideTcp, u32), &str)| {
        Row::new(&[&set_up.name, &n, &scheme], set_up.of(n, scheme))
    };
    let (words, numbers) = (["set-up", "flows", "scheme"], means(["tcp_throughput", "throughput"]));
    Item::rows("beside-tcp", None, shows, &words, &numbers, rows.into_iter().map(row))
}

/// Cases of TCP, and the paper's throughput in percent: tables II and III, section VI-D.
const TCP: [(Topology, u32, f64); 3] = [(Wlh, 1, 55.0), (Wb, 1, 23.0), (Wb, 10, 85.0)];

/// TCP as it is everywhere else, and as ns-2 had it in 2000.
pub(super) fn old_tcp() -> Item {
    let shows = "TCP as ns-2 had it in 2000: ticks of 100 ms, no limited transmit, one segment at the start, an ACK for each";
    let row = |((topology, n, paper), old): ((Topology, u32, f64), bool)| {
        let (name, case) = match (old, case(topology, n, "tcp")) {
            (true, case) => ("TCP of 2000", cases::tcp_of_2000(case, "flow")),
            (false, case) => ("as in the figures", case),
        };
        Row::new(&[&topology.name(), &n, &name], case)
            .paper(move |what| (what == "throughput").then_some(paper))
    };
    let rows = each(&TCP, &[false, true]).into_iter().map(row);
    let (words, numbers) = (["topology", "flows", "set-up"], means(["throughput", "congestion_loss"]));
    Item::rows("old-tcp", None, shows, &words, &numbers, rows)
}

/// Rates of each of the two warm-up sources, in kbit/s. The paper has none.
const WARM_UP: [u32; 6] = [65, 100, 200, 300, 400, 600];

/// The warm-up's effect on mBiaz.
pub(super) fn warm_up() -> Item {
    let shows = "section V-C: mBiaz alone in the wireless backbone by the rate of each warm-up source while it is on; trapped: of the runs \
                 those in which most of the wireless losses are judged congestion, in %";
    let rows = WARM_UP.map(|kbps| Row::new(&[&kbps], cases::warmed_up(kbps)));
    let words = ["kbps_of_each_source"];
    Item::rows("warm-up", None, shows, &words, &means(["throughput", "mw", "trapped"]), rows).runs(40)
}

/// Two flows in the backbone, where ZBS is between its schemes.
pub(super) fn two_flows() -> Item {
    let schemes = ["omniscient", "mbiaz", "spike", "zigzag", "zbs"];
    let rows =
        schemes.map(|scheme| Row::new(&[&scheme], case(Wb, 2, scheme)).over(case(Wb, 2, "omniscient")));
    let shows = "section VII: ZBS and its schemes with two flows in the wireless backbone";
    let over = [("throughput_over_omniscient", Shown::Over("throughput"))];
    Item::rows("two-flows", None, shows, &["scheme"], &[&means(MEASURED)[..], &over].concat(), rows).runs(100)
}

/// Section III: the constants that the paper chose, and others, in the topology that it chose them in.
pub(super) fn sweeps() -> Item {
    let mbiaz = [1.1, 1.2, 1.25, 1.3, 1.5, 1.8].map(|upper| format!("mbiaz(upper={upper})"));
    let spikes = [0.05, 0.2, 1.0 / 3.0, 0.5].into_iter().flat_map(|end| {
        let above = [0.0, 1.0 / 6.0, 0.4, 0.9].into_iter().filter(move |above| end + above <= 1.0);
        above.map(move |above| format!("spike(start={:.3},end={end:.3})", end + above))
    });
    let zigzags = (2..=8).map(|n| format!("zigzag(alpha={})", 1.0 / f64::from(1 << n)));
    let schemes: Vec<String> = mbiaz.into_iter().chain(spikes).chain(zigzags).collect();
    let schemes: Vec<&str> = schemes.iter().map(String::as_str).collect();
    let shows = "section III: mBiaz's upper limit, Spike's alpha and beta, ZigZag's alpha; wireless last hop";
    by_flows("sweeps", None, shows, Wlh, &[1, 4], &schemes).apart()
}

/// Set-ups that keep the order of the schemes.
pub(super) const ORDERED: [Variant; 4] = [Variant::MEDIUM, Variant::LOW, Variant::TWO_STATE, Variant::DELAY];

/// The schemes but mBiaz, whose median alone in the backbone hangs on how many runs are trapped.
const WITHOUT_MBIAZ: [&str; 7] = ["tcp", "tfrc", "omniscient", "biaz", "spike", "zigzag", "zbs"];

/// Least distance between schemes that have an order, in points of throughput.
const APART: f64 = 3.0;

/// No two schemes that are apart in the figures are the other way round elsewhere.
pub(super) fn same_order(results: &Results, variant: Variant, schemes: &[&str], parts: &mut Parts) {
    for (topology, n) in each(&[Wlh, Wb], &FEW) {
        let less = |a: Case, b: Case| {
            let of = |case: &Case| Some(results.median(case, "throughput")?.median);
            Some(of(&a)? - of(&b)?)
        };
        let mut turned = Vec::new();
        for (k, a) in schemes.iter().enumerate() {
            for b in &schemes[k + 1..] {
                let before = less(case(topology, n, a), case(topology, n, b));
                let there = less(variant.of(topology, n, a), variant.of(topology, n, b));
                let Some((before, there)) = before.zip(there) else {
                    return parts.beside(variant.name, None::<f64>);
                };
                if before.abs() > APART && there.abs() > APART && before * there < 0.0 {
                    turned.push(format!("{a} and {b}"));
                }
            }
        }
        let (name, topology) = (variant.name, topology.name());
        let which = if turned.is_empty() { "none".to_owned() } else { turned.join(", ") };
        parts.holds(format!("{name} {topology} {n} turned: {which}"), turned.is_empty());
    }
}

/// Increase of Mc or Mw by RED, whichever is more: the mean over topologies and flow counts, since the paper names none.
pub(super) fn red_adds(results: &Results, scheme: &str) -> Option<f64> {
    let worse = |(topology, n)| {
        let (red, tail) = (Variant::RED.of(topology, n, scheme), case(topology, n, scheme));
        let more = |what| Some(middle(results, &red, what)?.median - middle(results, &tail, what)?.median);
        more("mc").into_iter().chain(more("mw")).reduce(f64::max)
    };
    let all: Option<Vec<f64>> = each(&[Wlh, Wb], &FEW).into_iter().map(worse).collect();
    all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
}

/// Claims of the paper in other set-ups.
pub(super) fn otherwise(claims: &[Claim]) -> Vec<Claim> {
    let again =
        |id, claim, items, decide: fn(&Results) -> Parts| Claim::again(claims, id, claim, items, decide);
    let clock = &["by-the-clock"];
    vec![
        again("x1", "l1 with RFC 5348's TFRC", &["table-2"], |results| {
            one_flow(results, Wlh, &|s| preset(Wlh, 1, s, Preset::Rfc))
        }),
        again("x2", "l2 with RFC 5348's TFRC", &["table-3"], |results| {
            one_flow(results, Wb, &|s| preset(Wb, 1, s, Preset::Rfc))
        }),
        again(
            "x3",
            "l1 where frames of the channel go by the clock, each as long as a packet",
            clock,
            |results| one_flow(results, Wlh, &|s| Variant::FRAMES.of(Wlh, 1, s)),
        ),
        again(
            "x4",
            "l2 where frames of the channel go by the clock, each as long as a packet",
            clock,
            |results| one_flow(results, Wb, &|s| Variant::FRAMES.of(Wb, 1, s)),
        ),
        again(
            "x5",
            "l1 where frames of the channel go by the clock, two in the time of a packet",
            clock,
            |results| one_flow(results, Wlh, &|s| Variant::HALF_FRAMES.of(Wlh, 1, s)),
        ),
        again(
            "x6",
            "l2 where frames of the channel go by the clock, two in the time of a packet",
            clock,
            |results| one_flow(results, Wb, &|s| Variant::HALF_FRAMES.of(Wb, 1, s)),
        ),
        again("x7", "l1 where losses are of a two-state model with bad periods of 10 ms", clock, |results| {
            one_flow(results, Wlh, &|s| Variant::TEN_MS.of(Wlh, 1, s))
        }),
        again("x8", "l2 where losses are of a two-state model with bad periods of 10 ms", clock, |results| {
            one_flow(results, Wb, &|s| Variant::TEN_MS.of(Wb, 1, s))
        }),
        again(
            "x14",
            "l1 where frames of the channel go by the clock, 10.2 ms each in both topologies, which is a fit",
            clock,
            |results| one_flow(results, Wlh, &|s| Variant::FITTED.of(Wlh, 1, s)),
        ),
        again(
            "x15",
            "l2 where frames of the channel go by the clock, 10.2 ms each in both topologies, which is a fit",
            clock,
            |results| one_flow(results, Wb, &|s| Variant::FITTED.of(Wb, 1, s)),
        ),
        again(
            "x9",
            "l4's Mc of ZigZag where the packet that reveals the loss judges: below Biaz's",
            &["zigzag"],
            |results| {
                Parts::each("points", [4, 16], |n| {
                    let case = |scheme| case(Wlh, n, scheme);
                    let below = results.more(&case("biaz"), &case("zigzag(before=false)"), "mc");
                    (format!("{n} flows: below Biaz's by"), below, Bar::above(0.0).said("below"))
                })
            },
        )
        .cause("Cause: where the shared queue dropped a packet, the last link's queue, which is most of the delay, has drained for a packet's \
             time longer, and the delay fallen by 23 ms when the next one comes"),
        again(
            "x10",
            "l11 at 0.8 per flow where losses go by the clock, in the 20 ms frames of 150 kbit/s",
            &["beside-tcp"],
            |results| at_800(results, &BESIDE.0, &|n, s| BesideTcp::SLOW_FRAMES.of(n, s)),
        ),
        again(
            "x11",
            "l11 at 0.8 per flow where the last links have queues of six packets, as at 0.13",
            &["beside-tcp"],
            |results| at_800(results, &BESIDE.0, &|n, s| BesideTcp::SHORT_QUEUES.of(n, s)),
        ),
        again(
            "x12",
            "l11 at 0.8 per flow where TCP is that of ns-2 in 2000: ticks of 100 ms, no limited transmit, one segment at the start, an ACK for each",
            &["beside-tcp"],
            |results| at_800(results, &BESIDE.0, &|n, s| BesideTcp::OLD_TCP.of(n, s)),
        ),
        again("x25", "l10 by means over the flow counts", &["figure-14"], fair_on_the_mean),
        again("x26", "l12 of all schemes but mBiaz", &["losses", "two-state", "delays"], |results| {
            let mut parts = Parts::of("%");
            for variant in ORDERED {
                same_order(results, variant, &WITHOUT_MBIAZ, &mut parts);
            }
            parts
        }),
        Claim::new(
            "x13",
            "what l1, l2 and l7 say of TCP, where TCP is that of ns-2 in 2000",
            Stated::numbers("tables II and III, figure 9", "TCP 55, 23 and 85 %"),
            &["old-tcp"],
            |results| {
                Parts::each("%", TCP, |(topology, n, paper)| {
                    let case = cases::tcp_of_2000(case(topology, n, "tcp"), "flow");
                    let bar = Bar::near(paper, if n == 1 { 4.0 } else { 7.0 });
                    (format!("{} {n}", topology.name()), results.median(&case, "throughput"), bar)
                })
            },
        ),
    ]
}
