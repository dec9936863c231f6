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
    metric("utilisation", Some("used %"), "%", "rate received by tested streams without padding, as a share of the limiting link's rate less unresponsive flows (IP bytes, while a tested stream is active)"),
    metric("of_possible", Some("~of possible %"), "%", "the same, as a share of no more than the tested streams' sources can make"),
    metric("received_kbps", Some("kbit/s"), "kbit/s", "rate received by a tested stream while it was active, without padding, mean over streams (IP layer)"),
    metric("received_mbit", None, "Mbit", "all that tested streams received while they were active, without padding (IP layer)"),
    metric("queueing_p50_ms", Some("~queueing P50 ms"), "ms", "median over all packets of tested streams: one-way delay less propagation, with transmission and jitter (IP layer)"),
    metric("queueing_p95_ms", Some("queueing P95 ms"), "ms", "95th percentile of the same"),
    metric("queueing_p99_ms", Some("~queueing P99 ms"), "ms", "99th percentile of the same"),
    metric("queueing_mean_ms", None, "ms", "mean of the same"),
    metric("frame_p50_ms", Some("~frame P50 ms"), "ms", "median over frames of which anything arrived: from a frame being made to the arrival of its last packet that came, with the wait for the pacer"),
    metric("frame_p95_ms", Some("frame P95 ms"), "ms", "95th percentile of the same"),
    metric("frame_p99_ms", Some("~frame P99 ms"), "ms", "99th percentile of the same"),
    metric("frames_late", Some("~frames > 200 ms %"), "%", "frames that took longer than 200 ms, of which nothing arrived, or that were left out at the sender, of those made"),
    metric("frozen", Some("~frozen %"), "%", "time of freezes, of that since the first frame: a whole frame is shown as its last packet comes, and one that stands for max(3 d, d + 150 ms) is a freeze, d the mean of the last 30 (W3C, webrtc-stats)"),
    metric("freezes_per_min", None, "1/min", "freezes, in the same time"),
    metric("delay_p50_ms", None, "ms", "median one-way delay of packets of tested streams (IP layer)"),
    metric("delay_p95_ms", None, "ms", "95th percentile of the same"),
    metric("queue_ms", None, "ms", "queueing delay at the limiting link, at its rate of the moment, mean (wire bytes)"),
    metric("loss", Some("loss %"), "%", "packets of media that did not arrive, of those sent by tested streams"),
    metric("congestion_loss", None, "%", "packets of media that queues and collisions lost, of those sent"),
    metric("late", Some("~late %"), "%", "packets of media that took longer than --playout, one way, of those sent: a player discards them"),
    metric("convergence_s", Some("~converges s"), "s", "from a change until the sending rate is stable, median over changes and streams; one after which it never is counts as the longest, with the time until the next change"),
    metric("unconverged", Some("~never %"), "%", "changes after which the sending rate was not stable before the next"),
    metric("step_up_s", Some("~90 % after s"), "s", "from a step up of the rate that is left, by a quarter or more, until nine tenths of the possible are received on the mean of a second, median over steps; one after which it never is counts as the longest"),
    metric("step_down_s", Some("~drained after s"), "s", "from a step down, by a fifth or more, until the queue at the limiting link is below 50 ms for a second, in the same way"),
    metric("overshoot", Some("~overshoot"), "1", "highest rate sent over 200 ms within three seconds after a source came back from its idle rate, over the rate that is left to its stream then, the most of all returns and streams"),
    metric("layer_s", Some("~layer after s"), "s", "from when a layer of fixed rate has room (it takes at most nine tenths of what is left to its stream, for five seconds) until it or a higher one is sent, the longest of all; one that never is counts until its room ends"),
    metric("layer_flaps", Some("~layer flaps"), "1", "times that a layer ended within 30 s, the most of all layers and times"),
    metric("regret", Some("regret %"), "%", "bits that were not received of those that an oracle's streams received, which know the path as it was one feedback delay ago"),
    metric("regret_queue_ms", Some("regret ms"), "ms", "mean queueing delay of packets less that of the oracle's"),
    metric("variation", Some("~variation %"), "%", "standard deviation over mean of the sending rate by seconds, in the second half of the time between changes"),
    metric("swings_per_min", Some("~swings/min"), "1/min", "swings of the sending rate from half of its mean to twice its mean or back, in the same time"),
    metric("fairness_1s", None, "%", "rate of the slowest over the fastest stream that share a limit, windows of 1 s; of streams with priorities each rate over its priority"),
    metric("fairness_5s", Some("slowest/fastest %"), "%", "the same, windows of 5 s"),
    metric("fairness_20s", None, "%", "the same, windows of 20 s"),
    metric("jain", None, "%", "Jain's fairness index of streams that share a limit, windows of 5 s"),
    metric("tcp_kbps", Some("TCP kbit/s"), "kbit/s", "goodput of a flow of TCP beside the streams while both are active, mean over flows (IP layer)"),
    metric("tcp_share", Some("TCP share %"), "%", "TCP's share of the rate of TCP and tested streams together, while both are active"),
    metric("tcp_ratio", None, "1", "rate of a tested stream over that of a TCP flow, means, while both are active"),
    metric("tcp_loss", Some("~TCP loss %"), "%", "segments of TCP that were lost, of those sent"),
    metric("other_kbps", Some("other kbit/s"), "kbit/s", "rate received by a stream beside the tested ones that has a controller of its own, mean over streams, while both are active (IP layer)"),
    metric("other_share", Some("other share %"), "%", "its share of the rate of both"),
    metric("other_ratio", None, "1", "rate of a tested stream over that of such a stream, means, while both are active"),
    metric("feedback_kbps", Some("~feedback kbit/s"), "kbit/s", "feedback of a tested stream's receiver, mean over streams (IP layer)"),
    metric("feedback_share", None, "%", "the same, of the bytes of media received"),
    metric("pacing", Some("pacing"), "1", "pacing rate over target, as the controller gives them, mean over seconds and streams"),
    metric("padding", None, "%", "bytes of packets that carry nothing, of those sent by tested streams"),
    metric("frames_dropped", None, "frames", "frames left out at the sender, all tested streams"),
];
