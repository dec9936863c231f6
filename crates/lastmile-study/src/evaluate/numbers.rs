//! The numbers of a run, by their names: definition and unit.

/// A number that is kept of each run.
pub(super) struct Metric {
    pub(super) name: &'static str,
    /// The name of its column in tables for people, with `~` in front of details; nothing for what stands in JSON and the page alone.
    pub(super) short: Option<&'static str>,
    pub(super) unit: &'static str,
    /// Its definition: quantity, layer, interval.
    pub(super) about: &'static str,
}

const fn metric(
    name: &'static str,
    short: Option<&'static str>,
    unit: &'static str,
    about: &'static str,
) -> Metric {
    Metric { name, short, unit, about }
}

/// All of them, in the order of the tables.
#[rustfmt::skip]
pub(super) const METRICS: &[Metric] = &[
    metric("utilisation", Some("used %"), "%", "rate received by tested streams, as a share of the limiting link's rate less unresponsive flows (IP bytes, while a tested stream is active)"),
    metric("of_possible", Some("~of possible %"), "%", "the same, as a share of no more than the tested streams' sources can make"),
    metric("received_kbps", Some("kbit/s"), "kbit/s", "rate received by a tested stream while it was active, mean over streams (IP layer)"),
    metric("queueing_p50_ms", Some("queueing P50 ms"), "ms", "median over all packets of tested streams: one-way delay less propagation, with transmission and jitter (IP layer)"),
    metric("queueing_p95_ms", Some("P95 ms"), "ms", "95th percentile of the same"),
    metric("delay_p50_ms", None, "ms", "median one-way delay of packets of tested streams (IP layer)"),
    metric("delay_p95_ms", None, "ms", "95th percentile of the same"),
    metric("queue_ms", None, "ms", "queueing delay at the limiting link, at its rate of the moment, mean (wire bytes)"),
    metric("loss", Some("loss %"), "%", "packets of media that did not arrive, of those sent by tested streams"),
    metric("congestion_loss", None, "%", "packets of media that queues and collisions lost, of those sent"),
    metric("late", Some("~late %"), "%", "packets of media that took longer than --playout, one way, of those sent: a player discards them"),
    metric("convergence_s", Some("~converges s"), "s", "from a change until the sending rate is stable, median over changes and streams; one after which it never is counts as the longest, with the time until the next change"),
    metric("unconverged", Some("~never %"), "%", "changes after which the sending rate was not stable before the next"),
    metric("variation", Some("~variation %"), "%", "standard deviation over mean of the sending rate by seconds, in the second half of the time between changes"),
    metric("swings_per_min", Some("~swings/min"), "1/min", "swings of the sending rate from half of its mean to twice its mean or back, in the same time"),
    metric("fairness_1s", None, "%", "rate of the slowest over the fastest stream that share a limit, windows of 1 s"),
    metric("fairness_5s", Some("slowest/fastest %"), "%", "the same, windows of 5 s"),
    metric("fairness_20s", None, "%", "the same, windows of 20 s"),
    metric("jain", None, "%", "Jain's fairness index of streams that share a limit, windows of 5 s"),
    metric("tcp_kbps", Some("TCP kbit/s"), "kbit/s", "goodput of a flow of TCP beside the streams while both are active, mean over flows (IP layer)"),
    metric("tcp_share", Some("TCP share %"), "%", "TCP's share of the rate of TCP and tested streams together, while both are active"),
    metric("tcp_ratio", None, "1", "rate of a tested stream over that of a TCP flow, means, while both are active"),
    metric("tcp_loss", Some("~TCP loss %"), "%", "segments of TCP that were lost, of those sent"),
    metric("feedback_kbps", Some("~feedback kbit/s"), "kbit/s", "feedback of a tested stream's receiver, mean over streams (IP layer)"),
    metric("feedback_share", None, "%", "the same, of the bytes of media received"),
    metric("frames_dropped", None, "frames", "frames left out at the sender, all tested streams"),
];
