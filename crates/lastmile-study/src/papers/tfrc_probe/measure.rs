//! Numbers of a run of TFRC Probe.

use lastmile::control::Decision as Decided;
use lastmile::endpoint::stream::Decision;
use lastmile::observe::stats;
use lastmile::time::Time;

use super::cases::{EVERY, PACKET, shortest_exchange};
use crate::papers::{Lines, Numbers, Run};

/// The names of the capacity after so many windows of pairs, and of the time that these took.
pub(super) const AFTER: [(usize, &str, &str); 4] = [
    (1, "capacity_1", "time_1"),
    (2, "capacity_2", "time_2"),
    (5, "capacity_5", "time_5"),
    (10, "capacity_10", "time_10"),
];
/// Of each change of mode: the seconds until an estimate follows it, within two; the second one, and the size of its packets.
pub(super) const FOLLOWED: [(&str, &str, &str); 5] = [
    ("followed_1", "told_1", "size_1"),
    ("followed_2", "told_2", "size_2"),
    ("followed_3", "told_3", "size_3"),
    ("followed_4", "told_4", "size_4"),
    ("followed_5", "told_5", "size_5"),
];
/// Of the hand-offs up and down: seconds to the notice, estimates up to it with that which it came with.
pub(super) const NOTICED: [(&str, &str); 2] =
    [("noticed_up", "windows_up"), ("noticed_down", "windows_down")];
/// Rise of the rate after the last loss: at most over 5 s, and over the last half minute.
pub(super) const MOST: &str = "increase_most";
pub(super) const LAST: &str = "increase_last";
/// [equation 4]
const INTERVAL: f64 = 5.0;
const RESIZED: (f64, f64) = (200.0, 1_500.0);
const PAIRS: f64 = 20.0 * 20.0;
/// The modes of 802.11b.
const MODES: [f64; 4] = [1_000.0, 2_000.0, 5_500.0, 11_000.0];

/// A window of pairs: the time when it was full, in s, capacity in kbit/s, packet size in bytes, and least delay sum. Stamps may be
/// too coarse for its capacity.
#[derive(Clone, Copy, Debug)]
struct Window {
    at: f64,
    kbps: Option<f64>,
    size: f64,
    delay_sum: f64,
}

/// Decisions of the sender of a run's stream.
#[derive(Debug, Default)]
struct Told {
    windows: Vec<Window>,
    /// When, and from which capacity to which.
    hand_offs: Vec<(f64, f64, f64)>,
    /// Bytes sent up to a time.
    sent: Vec<(f64, f64)>,
    /// Targets in kbit/s from a time on.
    targets: Vec<(f64, f64)>,
    /// Round-trip times in s.
    rtts: Vec<(f64, f64)>,
    /// The last loss event.
    lost: f64,
}

fn kbps(rate: lastmile::units::Rate) -> f64 {
    rate.bits_per_second() as f64 / 1e3
}

impl Told {
    fn of(run: &Run<'_>, start: f64) -> Told {
        let mut told = Told { sent: vec![(start, 0.0)], ..Told::default() };
        for (at, what) in run.decisions::<Decision>() {
            let at = (at - Time::ZERO).as_secs_f64();
            match what {
                Decision::Control(Decided::Capacity { rate, size, delay_sum }) => told.windows.push(Window {
                    at,
                    kbps: Some(kbps(*rate)),
                    size: size.0 as f64,
                    delay_sum: delay_sum.as_secs_f64(),
                }),
                Decision::Control(Decided::CapacityAbove { size, .. }) => {
                    let (size, delay_sum) = (size.0 as f64, f64::INFINITY);
                    told.windows.push(Window { at, kbps: None, size, delay_sum });
                }
                Decision::Control(Decided::HandOff { from, to }) => {
                    told.hand_offs.push((at, kbps(*from), kbps(*to)));
                }
                Decision::Control(Decided::LossEvent { .. }) => told.lost = at,
                Decision::MediaProgress { target, sent, .. } => {
                    told.sent.push((at, sent.bytes.0 as f64));
                    told.targets.push((at, kbps(*target)));
                }
                Decision::TargetChanged { target } => told.targets.push((at, kbps(*target))),
                Decision::MediaReported { rtt: Some(rtt), .. } => told.rtts.push((at, rtt.as_secs_f64())),
                _ => {}
            }
        }
        told
    }

    /// Bytes sent by then, between two reports in proportion to the time.
    fn bytes(&self, at: f64) -> f64 {
        let next = self.sent.partition_point(|(then, _)| *then <= at);
        let Some(&(from, before)) = next.checked_sub(1).and_then(|last| self.sent.get(last)) else {
            return 0.0;
        };
        self.sent
            .get(next)
            .map_or(before, |&(to, after)| before + (after - before) * (at - from) / (to - from))
    }

    /// The rate of sending between two times, in kbit/s.
    fn rate(&self, from: f64, to: f64) -> f64 {
        (self.bytes(to) - self.bytes(from)) * 8e-3 / (to - from)
    }

    fn least_rtt(&self, from: f64, to: f64) -> Option<f64> {
        let within = self.rtts.iter().filter(|(at, _)| (from..to).contains(at));
        within.map(|(_, rtt)| *rtt).reduce(f64::min)
    }

    /// Growth of the target after a time, in packets per round-trip time in each, of `size` bytes and `rtt` s: from each time
    /// that it was told to the first `over` s or more later. In between it is not known: it is told each second, and where it has
    /// changed by much.
    fn increases(&self, from: f64, over: f64, size: f64, rtt: f64) -> impl Iterator<Item = f64> {
        let begins = self.targets.partition_point(|(at, _)| *at < from);
        self.targets[begins..].iter().filter_map(move |&(at, before)| {
            let then = self.targets.partition_point(|(later, _)| *later < at + over);
            let &(then, after) = self.targets.get(then)?;
            Some((after - before) * 125.0 / size * rtt * rtt / (then - at))
        })
    }
}

/// Numbers of a run: of its stream, its measurement, its traffic.
pub(super) fn measure(run: &Run<'_>) -> Numbers {
    let mut kept = Numbers::new();
    let mut put = |name: &'static str, value: f64| {
        if value.is_finite() {
            kept.insert(name.into(), value);
        }
    };
    let measured = run.found.measure.outcomes.first().and_then(|found| found.estimate.as_ref());
    if let Some(rate) = measured.and_then(|estimate| estimate.value.rate()) {
        put("capprobe", kbps(rate));
    }
    for flow in &run.network.flows {
        let name = match flow.flow.as_str() {
            "first" => "first_ms",
            "second" => "second_ms",
            _ => continue,
        };
        put(name, 1e3 * flow.delay_mean_s.unwrap_or(f64::NAN));
    }
    if let Some(link) = run.scenario.link("r3", "r4").and_then(|link| run.scenario.links[link].config.rate) {
        let others: f64 = run.network.flows.iter().filter_map(|flow| flow.goodput_bps).sum();
        put("load", 100.0 * others / link.bits_per_second() as f64);
    }
    let Some(spec) = run.scenario.roles.stream.first() else { return kept };
    let start = (spec.starts(run.seed) - Time::ZERO).as_secs_f64();
    let told = Told::of(run, start);
    for (count, capacity, time) in AFTER {
        let Some(windows) = told.windows.get(..count) else { continue };
        let best = windows.iter().min_by(|a, b| a.delay_sum.total_cmp(&b.delay_sum));
        let (Some(best), Some(last)) = (best, windows.last()) else { continue };
        put(capacity, best.kbps.unwrap_or(f64::NAN));
        put(time, last.at - start);
    }
    if let [second, .., last] = told.windows.get(1..10).unwrap_or_default() {
        // [equation 3] R t / (8 n S P), from the twentieth pair to the hundredth.
        put("equation_3", (told.bytes(last.at) - told.bytes(second.at)) / (EVERY * 80.0 * PACKET));
    }
    handed_off(run, &told, &mut put);
    changed(run, &told, &mut put);
    if run.scenario.name == "tfrc-probe-increase" && told.lost > 0.0 {
        let (end, rtt) = (run.scenario.duration, 2.0 * run.scenario.links[0].config.delay.as_secs_f64());
        let (end, size) = (end.as_secs_f64(), spec.sender.packet_size.0 as f64);
        let most = told.increases(told.lost + 1.0, INTERVAL, size, rtt).reduce(f64::max);
        let last = told.increases(end - 30.0, 28.0, size, rtt).next();
        put(MOST, most.unwrap_or(f64::NAN));
        put(LAST, last.unwrap_or(f64::NAN));
    }
    kept
}

/// Each two seconds the rate of sending, the last window's capacity, and the size of its packets.
pub(super) fn draw(run: &Run<'_>) -> Lines {
    let told = Told::of(run, 0.0);
    let over_time = |value: &dyn Fn(f64) -> Option<f64>| {
        let steps = 1..=(run.scenario.duration.as_secs_f64() / 2.0) as u32;
        steps.filter_map(|k| Some((2.0 * f64::from(k), value(2.0 * f64::from(k))?))).collect::<Vec<_>>()
    };
    let window = |at: f64| told.windows.iter().rev().find(|window| window.at <= at);
    Lines::from([
        ("rate".into(), over_time(&|at| Some(told.rate(at - 2.0, at)))),
        ("estimate".into(), over_time(&|at| window(at)?.kbps)),
        ("size".into(), over_time(&|at| Some(window(at)?.size))),
    ])
}

/// Hand-offs: the first one upwards, the second one downwards.
fn handed_off(run: &Run<'_>, told: &Told, put: &mut dyn FnMut(&'static str, f64)) {
    for (k, (hand_off, (noticed, windows))) in run.scenario.handoffs.iter().zip(NOTICED).enumerate() {
        let at = (hand_off.at - Time::ZERO).as_secs_f64();
        let upwards = k == 0;
        let notice = told.hand_offs.iter().find(|(when, from, to)| *when >= at && (to > from) == upwards);
        let Some(&(when, ..)) = notice else { continue };
        put(noticed, when - at);
        let full = told.windows.iter().filter(|window| (at..=when).contains(&window.at)).count();
        put(windows, full as f64);
        if upwards {
            // The rate before the hand-off, and the highest in a second of the ten after the notice.
            let before = told.rate(at - 2.0, at);
            let after = (0..10).map(|s| told.rate(when + f64::from(s), when + f64::from(s + 1)));
            put("rate_before", before);
            put("rise", after.fold(0.0, f64::max) / before);
            let last: Vec<f64> = told.windows.iter().filter(|window| window.at < at).map(|w| w.at).collect();
            if let [.., before, last] = last[..] {
                put("window_s", last - before);
            }
        } else {
            // Standing delay, one estimate's time after it.
            let rtt = told.least_rtt(at + INTERVAL, at + 2.0 * INTERVAL);
            let least = told.least_rtt(0.0, (run.scenario.handoffs[0].at - Time::ZERO).as_secs_f64());
            put("standing_ms", rtt.zip(least).map_or(f64::NAN, |(rtt, least)| 1e3 * (rtt - least)));
        }
    }
}

/// Changes of an 802.11b station's mode, and the size of packets.
fn changed(run: &Run<'_>, told: &Told, put: &mut dyn FnMut(&'static str, f64)) {
    let stations = run.scenario.wlans.iter().flat_map(|wlan| &wlan.config.station);
    let modes: Vec<(f64, f64)> = stations
        .flat_map(|station| &station.schedule)
        .filter_map(|change| Some((change.at.as_secs_f64(), kbps(change.rate?))))
        .collect();
    if modes.is_empty() {
        return;
    }
    put("changes", modes.len() as f64);
    for (&(at, mode), (followed, second, size)) in modes.iter().zip(FOLLOWED) {
        let two: Vec<&Window> = told.windows.iter().filter(|window| window.at >= at).take(2).collect();
        let follows = two.iter().find(|window| nearest(window) == Some(mode));
        put(followed, follows.map_or(f64::NAN, |window| window.at - at));
        if let [_, window] = two[..] {
            put(second, window.kbps.unwrap_or(f64::NAN));
            put(size, window.size);
        }
    }
    let spans = told.windows.windows(2).map(|pair| pair[1].at - pair[0].at);
    let median = |values: Vec<f64>| stats::median(&values).unwrap_or(f64::NAN);
    put("window_s", median(spans.collect()));
    let arrived = |from: f64, to: f64| {
        let rows = run.seen.rows.iter().filter(|row| row.row == "flow" && row.name.starts_with("flow"));
        let rates = rows.filter(|row| from < row.at_s && row.at_s <= to).filter_map(|row| row.goodput_bps);
        stats::mean(&rates.collect::<Vec<_>>())
    };
    let off = told.windows.windows(3).filter_map(|three| {
        // [equation 4] with what arrived while the window before was filled. The largest size says nothing of the rate.
        let size = arrived(three[0].at, three[1].at)? * INTERVAL / (8.0 * PAIRS);
        let tells = (RESIZED.0..RESIZED.1).contains(&size);
        tells.then(|| 100.0 * (three[2].size / size - 1.0).abs())
    });
    let off: Vec<f64> = off.collect();
    put("sized", off.len() as f64);
    put("size_off", median(off));
    put("largest", told.windows.iter().map(|window| window.size).fold(0.0, f64::max));
}

/// The mode whose shortest exchange is nearest to what a window told, by their ratio.
fn nearest(window: &Window) -> Option<f64> {
    let told = window.kbps?;
    let off = |mode: &f64| (told / shortest_exchange(window.size, *mode)).ln().abs();
    MODES.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)))
}

#[cfg(test)]
mod tests {
    use super::super::cases::{Link, increase};
    use super::super::{INCREASES, PAPER};
    use super::*;
    use crate::audience::Audience;
    use crate::fleet::Fleet;
    use crate::papers::Case;
    use crate::papers::results::Results;
    use crate::papers::watch::Seen;

    /// Packets in each round-trip time by the formulas alone (RFC 5348, 5.4, 5.5 and 3.1), once nothing is lost after 8 intervals of
    /// 200 packets: I_0, which grows by the rate, has weight 1, and seven of them have 1, 1, 1, 0.8, 0.6, 0.4 and 0.2, which
    /// make 5, times the discount. No line of it is the program's.
    fn by_hand(least_discount: f64, t_rto_over_r: f64) -> Vec<f64> {
        let (mut open, mut rates) = (1.0_f64, Vec::new());
        while rates.len() < 900 {
            let discount = if open > 400.0 { (400.0 / open).max(least_discount) } else { 1.0 };
            let mean = ((open + 1_000.0 * discount) / (1.0 + 5.0 * discount)).max(200.0);
            let p = 1.0 / mean;
            let timeouts = 3.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
            rates.push(1.0 / ((2.0 * p / 3.0).sqrt() + t_rto_over_r * timeouts));
            open += rates[rates.len() - 1];
        }
        rates
    }

    /// p8's cause: 0.125 without discounting, and with it 0.231 over the 50 rounds in which the discount falls to a half (to a quarter
    /// 0.378), 0.214 when it has long fallen. The runs have the same, so that the miss is the formulas'.
    #[test]
    fn the_increase_is_that_of_the_formulas_by_hand() {
        let results = Results::simulate(
            &PAPER,
            INCREASES.map(|(tfrc, _)| (increase(tfrc), 1)).into(),
            1,
            None,
            &Fleet::Whole,
            &Audience::default(),
        )
        .unwrap()
        .unwrap();
        // ns-2's t_RTO is 0.3 s here, three round-trip times, RFC 5348's four.
        let hands = [
            (1.0, 3.0, 0.125, 0.125),
            (0.5, 3.0, 0.231, 0.214),
            (1.0, 4.0, 0.125, 0.125),
            (0.25, 4.0, 0.378, 0.333),
        ];
        for ((tfrc, _), (discount, timeout, most, last)) in INCREASES.into_iter().zip(hands) {
            let rates = by_hand(discount, timeout);
            let fastest = rates.windows(51).map(|rounds| (rounds[50] - rounds[0]) / 50.0).fold(0.0, f64::max);
            assert!((fastest - most).abs() < 0.001, "{tfrc}: {fastest}");
            let settled = (rates[899] - rates[599]) / 300.0;
            assert!((settled - last).abs() < 0.001, "{tfrc}: {settled}");
            for (name, hand) in [(MOST, most), (LAST, last)] {
                let found = results.median(&increase(tfrc), name).unwrap().median;
                assert!((found / hand - 1.0).abs() < 0.03, "{tfrc}, {name}: {found}, not {hand}");
            }
        }
    }

    /// A run's stream, its sender's decisions, and its start.
    fn run(case: &Case) -> (lastmile_sim::roles::stream::StreamOutcome, Told, f64) {
        let scenario = PAPER.scenario(case).unwrap();
        let found = scenario.run(1).unwrap();
        let (seen, events) = (Seen::default(), &found.events[..]);
        let run = Run {
            scenario: &scenario,
            seed: 1,
            found: &found.found,
            network: &found.network,
            events,
            seen: &seen,
        };
        let start = (scenario.roles.stream[0].starts(1) - Time::ZERO).as_secs_f64();
        (found.found.stream.outcomes[0].clone(), Told::of(&run, start), start)
    }

    /// p4's causes. R t is more than n S P where pairs are lost: it is n P for each pair that is sent, and S of these tell something.
    /// Over DSL upwards a third tells nothing, and most of the packets that the full queue drops are of these.
    #[test]
    fn pairs_that_a_full_queue_breaks_make_samples_take_longer() {
        let (stream, told, _) = run(&Link::DslUp.case());
        let asked = stream.sent as f64 / EVERY;
        let arrived = 10.0 * told.windows.len() as f64;
        let (broken, lost) = (asked - arrived, stream.lost["queue"] as f64);
        assert!((0.25..0.40).contains(&(broken / asked)), "{broken} of {asked}");
        assert!((0.6..=1.0).contains(&(broken / lost)), "{broken} of {lost} lost");
    }

    /// The first second of each link is the same: RTP answers a source after two packets, and the second one leaves after 1 s. From then on
    /// the link of 2 Mbit/s would have 20 pairs within 1.6 s, if slow start did not overflow its queue.
    #[test]
    fn the_first_twenty_pairs_wait_a_second_for_the_second_packet() {
        for (link, left) in [(Link::DslDown, 0.5), (Link::WifiB(2_000), 0.6)] {
            let (_, told, start) = run(&link.case());
            let heard = told.rtts[0].0 - start;
            assert!((1.0..1.1).contains(&heard), "{link:?}: {heard}");
            // Slow start ends at the first loss, and the rate falls below half of what the link has, over 802.11b below
            // three fifths: the losses of the overflow are of one round, and one event.
            let lowest =
                told.targets.iter().filter(|(at, _)| (heard + 0.5..3.0).contains(at)).map(|target| target.1);
            let lowest = lowest.fold(f64::INFINITY, f64::min);
            assert!(lowest < left * link.truth() && told.lost > 0.0, "{link:?}: {lowest}");
        }
    }
}
