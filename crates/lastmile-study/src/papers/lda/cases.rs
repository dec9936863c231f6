//! The runs of LDA: topologies, numbers of flows, schemes, and the numbers of a run.

use lastmile::options::Choice;
use lastmile::time::{Span, Time};
use lastmile_sim::roles::stream::StreamOutcome;
use lastmile_sim::scenario::Scenario;

use crate::papers::{Case, Numbers, Run};

/// The flows of a run, in the paper's order: TCP, TFRC that takes every loss for congestion, and with a classifier in front.
pub(super) const SCHEMES: [&str; 8] =
    ["tcp", "tfrc", "omniscient", "biaz", "mbiaz", "spike", "zigzag", "zbs"];
/// Flow counts in the figures.
pub(super) const FLOWS: [u32; 8] = [1, 2, 4, 6, 8, 10, 12, 16];
/// TCP that loses nothing on the air.
pub(super) const TCP_FREE: &str = "tcp-free";
/// IP bytes of a packet.
const PACKET: f64 = 762.0;

/// ns-2's TFRC, which the paper ran, and RFC 5348's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preset {
    Ns2,
    Rfc,
}

impl Preset {
    pub(super) fn name(self) -> &'static str {
        match self {
            Preset::Ns2 => "ns-2",
            Preset::Rfc => "rfc",
        }
    }

    /// The controller with a classifier in front, which the paper never doubts. Its ns-2 (2001) put no header on the wire beside the
    /// 762 bytes.
    fn control(self, scheme: &str) -> String {
        let tfrc = match self {
            Preset::Ns2 => "tfrc(form=receiver,preset=ns-2,header=0)",
            Preset::Rfc => "tfrc(form=receiver)",
        };
        match scheme {
            "tfrc" => tfrc.to_owned(),
            _ => {
                let classifier: Choice = scheme.parse().expect("a scheme of this file");
                // ZigZag's rott_i is the delay of P_i, the last packet before the loss [sections III-A and III-C].
                let reads_delays = ["zigzag", "zbs"].contains(&classifier.name.as_str());
                let classifier = match classifier.options.contains_key("before") {
                    false if reads_delays => classifier.with("before", "true"),
                    _ => classifier,
                };
                format!("{tfrc}+{}", classifier.with("doubt", "1"))
            }
        }
    }
}

/// Place of the air on flows' paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topology {
    /// Each behind a link of its own.
    Wlh,
    /// All on one link between two LANs.
    Wb,
    /// All on one link to the receivers.
    Lan,
}

impl Topology {
    pub(super) fn name(self) -> &'static str {
        match self {
            Topology::Wlh => "wlh",
            Topology::Wb => "wb",
            Topology::Lan => "lan",
        }
    }

    /// The link in its scenario that loses packets.
    fn air(self) -> &'static str {
        if self == Topology::Wlh { "link.1" } else { "link.0" }
    }
}

/// Packets of a queue at a link of so many kbit/s, beside the one that is being sent [section V-C].
fn queue(kbps: u32) -> String {
    format!("{} packets", (kbps / 60).max(6) - 1)
}

/// A link at so many kbit/s.
fn link(case: Case, link: u32, kbps: u32) -> Case {
    case.set(format!("link.{link}.rate"), format!("{kbps} kbit/s"))
        .set(format!("link.{link}.queue"), queue(kbps))
}

/// The air's losses come of a channel that goes as fast as the link, a packet in each of its frames.
fn air(case: Case, at: u32, kbps: u32) -> Case {
    let frame = PACKET * 8.0 / f64::from(kbps);
    // The means of both states are those of the fading channel's 7.9 %, in runs of 1.27 frames.
    let (bad, good) = (1.27 * frame, 1.27 * frame * (1.0 - 0.079) / 0.079);
    let key = |model: &str, key: &str| format!("link.{at}.losses.{model}.model.{key}");
    link(case, at, kbps)
        .set(key("fading", "rate"), format!("{kbps} kbit/s"))
        .set(key("two-state", "good"), format!("{good:.4} ms"))
        .set(key("two-state", "bad"), format!("{bad:.4} ms"))
}

/// As many flows of a scheme.
fn flows(case: Case, n: u32, scheme: &str, preset: Preset) -> Case {
    // A scenario has 250 hosts at most: more flows share their senders' LANs.
    let senders = if n > 64 { n / 2 } else { n };
    let case = case.set("host.sender.count", senders).set("host.receiver.count", n);
    match scheme {
        "tcp" | TCP_FREE => case.set("stream.flow.count", 0).set("traffic.flow.count", n),
        _ => case.set("stream.flow.count", n).set("stream.flow.control", preset.control(scheme)),
    }
}

/// `n` flows of a scheme [section V].
pub(super) fn case(topology: Topology, n: u32, scheme: &str) -> Case {
    preset(topology, n, scheme, Preset::Ns2)
}

/// The same with that TFRC.
pub(super) fn preset(topology: Topology, n: u32, scheme: &str, preset: Preset) -> Case {
    let case = Case::new(topology.name());
    let case = match topology {
        Topology::Wlh => link(case, 0, n.max(2) * 130),
        Topology::Wb | Topology::Lan => air(case, 0, if n == 1 { 800 } else { 1_600 }),
    };
    let case = flows(case, n, scheme, preset);
    if scheme == TCP_FREE { losses(topology, case, "threshold_db", -100) } else { case }
}

/// Another value of the fading channel.
pub(super) fn losses(topology: Topology, case: Case, key: &str, value: impl ToString) -> Case {
    case.set(format!("{}.losses.fading.model.{key}", topology.air()), value)
}

/// Frames of the channel that go by the clock, as long as that many bytes take: section V-B read otherwise.
pub(super) fn by_the_clock(topology: Topology, case: Case, frame: u32) -> Case {
    // The Doppler shift in a frame is the same.
    let doppler = format!("{:.1}", 130.0 * 381.0 / f64::from(frame));
    let case = losses(topology, losses(topology, case, "per_packet", false), "frame", format!("{frame} B"));
    losses(topology, case, "doppler_hz", doppler)
}

/// Frames of the channel that go by the clock, 10.2 ms long whatever the link's rate: 381 bytes at 298.8 kbit/s. The length is a fit.
pub(super) fn fitted_frames(topology: Topology, case: Case) -> Case {
    losses(topology, losses(topology, case, "per_packet", false), "rate", "298.8 kbit/s")
}

/// One flow of mBiaz in the backbone after warm-up sources of another rate.
pub(super) fn warmed_up(kbps: u32) -> Case {
    [1, 2].into_iter().fold(case(Topology::Wb, 1, "mbiaz"), |case, source| {
        case.set(format!("traffic.warm-{source}.rate"), format!("{kbps} kbit/s"))
    })
}

/// The two-state model in the place of fading.
pub(super) fn two_state(topology: Topology, case: Case) -> Case {
    let case = losses(topology, case, "threshold_db", -100);
    case.set(format!("{}.losses.two-state.model.loss_bad", topology.air()), "1.0")
}

/// The two-state model with bad periods of 10 ms on the mean, whatever the link's rate.
pub(super) fn ten_ms(topology: Topology, case: Case) -> Case {
    let key = |key: &str| format!("{}.losses.two-state.model.{key}", topology.air());
    two_state(topology, case).set(key("good"), "118 ms").set(key("bad"), "10 ms")
}

/// RED in the place of drop-tail on the links where queues build up, with thresholds at a quarter and three quarters of the queue.
pub(super) fn red(topology: Topology, n: u32, case: Case) -> Case {
    let links: &[(u32, u32)] = match topology {
        Topology::Wlh => &[(0, n.max(2) * 130), (1, 150)],
        _ => &[(0, if n == 1 { 800 } else { 1_600 })],
    };
    links.iter().fold(case, |case, &(link, kbps)| {
        let holds = (kbps / 60).max(6) - 1;
        let key = |key: &str| format!("link.{link}.discipline.{key}");
        case.set(key("kind"), "red")
            .set(key("min_threshold"), format!("{} packets", (holds / 4).max(1)))
            .set(key("max_threshold"), format!("{} packets", holds * 3 / 4))
            .set(key("max_probability"), 0.1)
            .set(key("gentle"), true)
    })
}

/// Half of `n` flows of a scheme, half TCP without wireless losses, `kbps` for each on the shared link [section VIII-B].
pub(super) fn beside_tcp(n: u32, kbps: u32, scheme: &str) -> Case {
    let last = if kbps == 130 { 150 } else { 930 };
    let case = link(Case::new("wlh"), 0, n * kbps);
    let case = flows(link(air(case, 1, last), 2, last), n / 2, scheme, Preset::Ns2);
    ["host.free-sender.count", "host.free-receiver.count", "traffic.free.count"]
        .into_iter()
        .fold(case, |case, key| case.set(key, n / 2))
}

/// The TCP of that name as ns-2 had it in 2000: a clock of 100 ms, no limited transmit, one segment at the start, an ACK for each.
pub(super) fn tcp_of_2000(case: Case, flow: &str) -> Case {
    let key = |key: &str| format!("traffic.{flow}.tcp.{key}");
    case.set(key("tick"), "100 ms")
        .set(key("limited_transmit"), false)
        .set(key("initial_window"), 1)
        .set(key("delayed_ack"), "0 s")
}

/// Another set-up than section VIII-B's at 800 kbit/s for each flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct BesideTcp {
    pub(super) name: &'static str,
    change: fn(Case) -> Case,
}

impl BesideTcp {
    /// Losses in frames of 381 bytes at 150 kbit/s by the clock, whatever the link's rate.
    pub(super) const SLOW_FRAMES: BesideTcp = BesideTcp {
        name: "frames of 20 ms",
        change: |case| {
            let case = losses(Topology::Wlh, case, "rate", "150 kbit/s");
            losses(Topology::Wlh, case, "per_packet", false)
        },
    };
    /// The queues of the last links as they are at 130 kbit/s.
    pub(super) const SHORT_QUEUES: BesideTcp = BesideTcp {
        name: "last links with six packets",
        change: |case| case.set("link.1.queue", queue(150)).set("link.2.queue", queue(150)),
    };
    pub(super) const OLD_TCP: BesideTcp =
        BesideTcp { name: "TCP of 2000", change: |case| tcp_of_2000(case, "free") };
    pub(super) const ALL: [BesideTcp; 3] =
        [BesideTcp::SLOW_FRAMES, BesideTcp::SHORT_QUEUES, BesideTcp::OLD_TCP];

    pub(super) fn of(self, n: u32, scheme: &str) -> Case {
        (self.change)(beside_tcp(n, 800, scheme))
    }
}

/// Four flows, and in half of the time four more.
pub(super) fn come_and_go(topology: Topology, scheme: &str) -> Case {
    let control = Preset::Ns2.control(scheme);
    let case = ["host.guest-sender.count", "host.guest.count"]
        .into_iter()
        .fold(case(topology, 4, scheme), |case, key| case.set(key, 4));
    ["a", "b", "c", "d"].into_iter().fold(case, |case, group| {
        case.set(format!("stream.guest-{group}.count"), 4)
            .set(format!("stream.guest-{group}.control"), &control)
    })
}

/// A flow that has ended.
struct Flow {
    starts: Time,
    /// IP bytes that the bottleneck carried.
    bytes: f64,
    /// Packets that queues dropped.
    congestion: f64,
}

/// Numbers of a run, in percent.
pub(super) fn measure(run: &Run<'_>) -> Numbers {
    let scenario = run.scenario;
    let end = Time::ZERO + scenario.duration;
    let since = |starts: Time| (end - starts).max(Span::from_millis(1)).as_secs_f64();
    let mut numbers = Numbers::new();
    let (mut own, mut free) = (Vec::new(), Vec::new());
    let queues = |lost: &std::collections::BTreeMap<&'static str, u64>| {
        ["queue", "early"].iter().filter_map(|cause| lost.get(cause)).sum::<u64>() as f64
    };
    for (spec, found) in scenario.roles.stream.iter().zip(&run.found.stream.outcomes) {
        // TFRC's bytes are counted before the air loses of them, as in the paper's numbers.
        let carried = found.received + found.wireless_lost;
        let (bytes, congestion) = (carried as f64 * PACKET, found.congestion_lost as f64);
        own.push(Flow { starts: spec.starts(run.seed), bytes, congestion });
    }
    for (spec, found) in scenario.traffic.iter().zip(&run.network.flows) {
        let Some(bps) = found.goodput_bps.filter(|_| spec.tcp.is_some()) else { continue };
        let starts = spec.starts(run.seed);
        let flow = Flow { starts, bytes: bps * since(starts) / 8.0, congestion: queues(&found.lost) };
        if found.flow.starts_with("free") { free.push(flow) } else { own.push(flow) }
    }
    let all = (own.len() + free.len()).max(1) as f64;
    let capacity = capacity(scenario, own.len() + free.len());
    let sum = |flows: &[Flow], of: fn(&Flow) -> f64| flows.iter().map(of).sum::<f64>();
    // Of the time from the first flow's start.
    let share = |flows: &[Flow], of: f64| {
        let first = flows.iter().map(|flow| flow.starts).min().unwrap_or(Time::ZERO);
        100.0 * sum(flows, |flow| flow.bytes) * 8.0 / since(first) / (capacity * of)
    };
    let mut put = |name: &'static str, value: f64| {
        if value.is_finite() {
            numbers.insert(name.into(), value);
        }
    };
    put("throughput", share(&own, own.len() as f64 / all));
    put("congestion_loss", 100.0 * sum(&own, |flow| flow.congestion) * PACKET / sum(&own, |flow| flow.bytes));
    if !free.is_empty() {
        put("tcp_throughput", share(&free, free.len() as f64 / all));
    }
    if own.len() > 1 {
        put("deviation", 100.0 * deviation(&own.iter().map(|flow| flow.bytes).collect::<Vec<_>>()));
    }
    judged(run, &mut put);
    numbers
}

/// Verdicts on losses, and their judges.
fn judged(run: &Run<'_>, put: &mut dyn FnMut(&'static str, f64)) {
    let streams = &run.found.stream.outcomes;
    if streams.iter().all(|stream| stream.verdicts.is_none()) {
        // A sender that knows no wireless loss takes all of them for congestion.
        put("mc", 0.0);
        put("mw", 100.0);
    } else {
        // Of all packets lost, of any stream.
        let of = |lost: fn(&StreamOutcome) -> u64, missed: fn(&StreamOutcome) -> Option<f64>| {
            let all: u64 = streams.iter().map(lost).sum();
            let missed = streams.iter().map(|stream| lost(stream) as f64 * missed(stream).unwrap_or(0.0));
            100.0 * missed.sum::<f64>() / all as f64
        };
        put("mc", of(|stream| stream.congestion_lost, |stream| stream.mc));
        let mw = of(|stream| stream.wireless_lost, |stream| stream.mw);
        put("mw", mw);
        // Of the runs those that take most of what the air loses for congestion.
        put("trapped", if mw > 50.0 { 100.0 } else { 0.0 });
    }
    for (name, scheme) in [("uses_mbiaz", "mbiaz"), ("uses_spike", "spike"), ("uses_zigzag", "zigzag")] {
        let shares = streams.iter().filter_map(|stream| stream.verdicts.as_ref()?.shares.get(scheme));
        let shares: Vec<f64> = shares.copied().collect();
        put(name, 100.0 * shares.iter().sum::<f64>() / shares.len() as f64);
    }
    let media: f64 = streams.iter().map(|stream| stream.sent as f64 * PACKET).sum();
    put("feedback", 100.0 * streams.iter().map(|stream| stream.feedback_bytes as f64).sum::<f64>() / media);
}

/// The rate of the bottleneck in bit/s: the shared link, or the last ones where they carry less.
fn capacity(scenario: &Scenario, flows: usize) -> f64 {
    let rate = |from: &str, to: &str| {
        let found = scenario.link(from, to).and_then(|link| scenario.links[link].config.rate);
        found.map_or(f64::INFINITY, |rate| rate.bits_per_second() as f64)
    };
    rate("r1", "r2").min(rate("r2", "receiver-1") * flows as f64)
}

/// The sample standard deviation of values, each over their mean [section VIII-A].
pub(super) fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|value| (value / mean - 1.0).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_deviation_is_known() {
        assert_eq!((100.0 * deviation(&[13_303.0, 13_826.0, 13_123.0, 11_955.0])).round(), 6.0);
    }

    #[test]
    fn queues_are_the_paper_s() {
        // max(bandwidth / 60k, 6), less the packet that is being sent.
        assert_eq!(
            [130, 150, 520, 800, 1_600].map(queue),
            ["5 packets", "5 packets", "7 packets", "12 packets", "25 packets"]
        );
    }
}
