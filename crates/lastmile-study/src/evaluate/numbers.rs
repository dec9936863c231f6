//! The numbers of a run, by their names: what each is, its unit, and of what.

/// A number that is kept of each run.
pub(super) struct Metric {
    pub(super) name: &'static str,
    /// What its column is called in tables for people; nothing for what stands in JSON and the page alone.
    pub(super) short: Option<&'static str>,
    pub(super) unit: &'static str,
    /// What it is, of which layer, over what.
    pub(super) about: &'static str,
}

/// All of them, in the order of the tables.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "utilisation",
        short: Some("use %"),
        unit: "%",
        about: "what tested streams received, of what unresponsive flows left of the link that limits them (IP bytes, while a tested stream is active)",
    },
    Metric {
        name: "of_possible",
        short: Some("of possible %"),
        unit: "%",
        about: "the same, of no more than the tested streams' sources can make",
    },
    Metric {
        name: "received_kbps",
        short: Some("kbit/s"),
        unit: "kbit/s",
        about: "what a tested stream received while it was active, mean over streams (IP layer)",
    },
    Metric {
        name: "queueing_p50_ms",
        short: Some("queueing P50 ms"),
        unit: "ms",
        about: "median over all packets of tested streams: one-way delay less propagation, with transmission and jitter (IP layer)",
    },
    Metric {
        name: "queueing_p95_ms",
        short: Some("P95 ms"),
        unit: "ms",
        about: "95th percentile of the same",
    },
    Metric {
        name: "delay_p50_ms",
        short: None,
        unit: "ms",
        about: "median one-way delay of packets of tested streams (IP layer)",
    },
    Metric { name: "delay_p95_ms", short: None, unit: "ms", about: "95th percentile of the same" },
    Metric {
        name: "queue_ms",
        short: None,
        unit: "ms",
        about: "what waits at the limiting link, in time at its rate of the moment, mean (wire bytes)",
    },
    Metric {
        name: "loss",
        short: Some("loss %"),
        unit: "%",
        about: "packets of media that did not arrive, of those sent by tested streams",
    },
    Metric {
        name: "congestion_loss",
        short: None,
        unit: "%",
        about: "packets of media that queues and collisions lost, of those sent",
    },
    Metric {
        name: "late",
        short: Some("late %"),
        unit: "%",
        about: "packets of media that took longer than --playout, one way, of those sent: what a player discards",
    },
    Metric {
        name: "convergence_s",
        short: Some("converges s"),
        unit: "s",
        about: "from a change until the sending rate is stable, mean over changes and streams; where it never is, until the next change",
    },
    Metric {
        name: "unconverged",
        short: None,
        unit: "%",
        about: "changes after which the sending rate was not stable before the next",
    },
    Metric {
        name: "variation",
        short: Some("variation %"),
        unit: "%",
        about: "standard deviation over mean of the sending rate by seconds, in the second half of the time between changes",
    },
    Metric {
        name: "swings_per_min",
        short: Some("swings/min"),
        unit: "1/min",
        about: "how often the sending rate goes from half of its mean to twice its mean or back, in the same time",
    },
    Metric {
        name: "fairness_1s",
        short: None,
        unit: "%",
        about: "rate of the slowest over the fastest stream that share a limit, windows of 1 s",
    },
    Metric {
        name: "fairness_5s",
        short: Some("slowest/fastest %"),
        unit: "%",
        about: "the same, windows of 5 s",
    },
    Metric { name: "fairness_20s", short: None, unit: "%", about: "the same, windows of 20 s" },
    Metric {
        name: "jain",
        short: None,
        unit: "%",
        about: "Jain's fairness index of streams that share a limit, windows of 5 s",
    },
    Metric {
        name: "tcp_kbps",
        short: Some("TCP kbit/s"),
        unit: "kbit/s",
        about: "goodput of a flow of TCP beside the streams while both are active, mean over flows (IP layer)",
    },
    Metric {
        name: "tcp_share",
        short: Some("TCP share %"),
        unit: "%",
        about: "what TCP got, of what TCP and tested streams got, while both are active",
    },
    Metric {
        name: "tcp_ratio",
        short: None,
        unit: "1",
        about: "rate of a tested stream over that of a TCP flow, means, while both are active",
    },
    Metric {
        name: "tcp_loss",
        short: Some("TCP loss %"),
        unit: "%",
        about: "segments of TCP that were lost, of those sent",
    },
    Metric {
        name: "feedback_kbps",
        short: Some("feedback kbit/s"),
        unit: "kbit/s",
        about: "what the receiver of a tested stream sends back, mean over streams (IP layer)",
    },
    Metric {
        name: "feedback_share",
        short: None,
        unit: "%",
        about: "the same, of the bytes of media received",
    },
    Metric {
        name: "frames_dropped",
        short: None,
        unit: "frames",
        about: "frames that were left out at the sender, of all tested streams",
    },
];
