//! From the records of a run to its numbers, each with its unit and its definition.

use std::collections::BTreeMap;
use std::ops::Range;

use lastmile::observe::stats::{mean, quantile_of_sorted};
use lastmile::time::Span;
use lastmile_sim::monitor::accounting::NetworkOutcome;
use lastmile_sim::roles::Found;
use lastmile_sim::scenario::Scenario;
use serde::{Deserialize, Serialize};

use super::frames::{Frame, freezes, shown};
use super::limited;
use super::metrics::{
    SECOND, STEP_S, capacity_steps, convergence, drains, jain, part, reaches, slowest_over_fastest, steps,
    swings, variation,
};
use super::path::{Change, Flow, Limit, Paths};
use super::watch::Kept;
use crate::runs::Numbers;

/// Time from a change until a tested stream's rate was stable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Converged {
    pub(super) at_s: f64,
    pub(super) what: String,
    /// In seconds; nothing where it was not before the next change, which came after `within_s`.
    pub(super) took_s: Option<f64>,
    pub(super) within_s: f64,
}

impl Converged {
    /// The median. One whose rate never was stable counts as longer than all others, with the time until the next change: where the
    /// median is one of these, it is a lower bound.
    pub(super) fn median<'a>(all: impl IntoIterator<Item = &'a Converged>) -> Option<f64> {
        let mut all: Vec<(bool, f64)> =
            all.into_iter().map(|one| (one.took_s.is_none(), one.took_s.unwrap_or(one.within_s))).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        quantile_of_sorted(&all.into_iter().map(|(_, took_s)| took_s).collect::<Vec<_>>(), 0.5)
    }
}

/// Changes that leave less than this until the next one are not looked at.
const SHORTEST_S: f64 = 5.0;
/// A frame that takes longer, in ms, is late to a conversation.
const LATE_FRAME_MS: f64 = 200.0;
/// Frames of the run's end, whose fate may not be known, are left out.
const UNDER_WAY_S: f64 = 1.0;

/// Numbers of flows beside the tested ones: rate, share, ratio.
const TCP: [&str; 3] = ["tcp_kbps", "tcp_share", "tcp_ratio"];
const OTHERS: [&str; 3] = ["other_kbps", "other_share", "other_ratio"];

/// Results of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) numbers: Numbers,
    pub(super) converged: Vec<Converged>,
    /// By second: the rate that all tested streams received and the rate left for them, in Mbit/s, and their mean delay in ms.
    pub(super) received: Vec<f64>,
    pub(super) left: Option<Vec<f64>>,
    pub(super) delay: Vec<Option<f64>>,
    /// Of the one-way delay in ms, at [`SHARES`].
    pub(super) quantiles: Vec<f64>,
    /// Why it has no numbers: its controller failed.
    #[serde(default)]
    pub(super) failed: Option<String>,
}

impl Measured {
    /// Takes the numbers of all runs of a case if one of them failed: those of the others alone would flatter.
    pub(super) fn fail_together(runs: &mut [Measured]) {
        if runs.iter().any(|run| run.failed.is_some()) {
            runs.iter_mut()
                .for_each(|run| *run = Measured { failed: run.failed.take(), ..Measured::default() });
        }
    }

    /// Adds what it lacks of the possible: of a run with the same seed in which oracles sent. Nothing of TCP in the streams' place, which is
    /// no source of theirs.
    pub(super) fn regret(&mut self, possible: &Measured) {
        let both = |name: &str| Some((*self.numbers.get(name)?, *possible.numbers.get(name)?));
        let bits = both("received_mbit").filter(|(_, possible)| *possible > 0.0);
        let (Some(bits), Some(queue)) = (bits, both("queueing_mean_ms")) else { return };
        self.numbers.insert("regret".into(), 100.0 * (1.0 - bits.0 / bits.1));
        self.numbers.insert("regret_queue_ms".into(), queue.0 - queue.1);
    }
}

/// Shares at which the distribution of delays is drawn.
pub(super) const SHARES: [f64; 11] = [0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99];

/// A run that has ended, and its records.
pub(super) struct Ran<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) paths: &'a Paths,
    pub(super) kept: Kept,
    pub(super) found: &'a Found,
    pub(super) network: &'a NetworkOutcome,
    /// A packet that takes longer is too late to be played.
    pub(super) playout: Span,
}

/// A rate that is active in some of the steps.
type Active<'a> = (&'a [f64], Range<usize>);
type Owned = (Vec<f64>, Range<usize>);

impl Ran<'_> {
    /// Its numbers.
    pub(super) fn measured(mut self) -> Measured {
        let mut numbers = Numbers::new();
        let mut put = |name: &'static str, value: Option<f64>| {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                numbers.insert(name.into(), value);
            }
        };
        let percent = |of: f64| 100.0 * of;
        let (of_left, of_possible) = self.use_of_the_path();
        put("utilisation", of_left.map(percent));
        put("of_possible", of_possible.map(percent));
        let rates =
            self.paths.tested.iter().filter_map(|flow| mean(part(self.received(flow), flow.active.clone())));
        put("received_mbit", Some(self.received_mbit()));
        put("received_kbps", mean(&rates.map(|rate| rate / 1e3).collect::<Vec<_>>()));
        put("queue_ms", self.queue());
        let converged = self.convergences();
        let never = converged.iter().filter(|change| change.took_s.is_none()).count();
        put("convergence_s", Converged::median(&converged));
        put("unconverged", (!converged.is_empty()).then(|| percent(never as f64 / converged.len() as f64)));
        let (up, down) = self.after_steps();
        put("step_up_s", Converged::median(&up));
        put("step_down_s", Converged::median(&down));
        self.frames(&mut put);
        self.limited(&mut put);
        let (varies, swings) = self.smoothness();
        put("variation", varies.map(percent));
        put("swings_per_min", swings);
        for (name, seconds) in [("fairness_1s", 1), ("fairness_5s", 5), ("fairness_20s", 20)] {
            put(name, self.alike(|flows| slowest_over_fastest(flows, seconds * SECOND)).map(percent));
        }
        put("jain", self.alike(|flows| jain(flows, 5 * SECOND)).map(percent));
        self.beside(&self.paths.tcp, TCP, &mut put);
        put("tcp_loss", self.tcp_loss());
        self.beside(&self.paths.others, OTHERS, &mut put);
        let sent = self.outcomes(&mut put);
        let late =
            self.kept.took.iter().filter(|took| f64::from(took.delay) > self.playout.as_secs_f64()).count();
        put("late", (sent > 0).then(|| percent(late as f64 / sent as f64)));
        let sorted = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values
        };
        let delays = sorted(self.kept.took.iter().map(|took| f64::from(took.delay) * 1e3).collect());
        let queueing = sorted(self.kept.took.iter().map(|took| f64::from(took.queueing) * 1e3).collect());
        put("queueing_mean_ms", mean(&queueing));
        put("queueing_p50_ms", quantile_of_sorted(&queueing, 0.5));
        put("queueing_p95_ms", quantile_of_sorted(&queueing, 0.95));
        put("queueing_p99_ms", quantile_of_sorted(&queueing, 0.99));
        put("delay_p50_ms", quantile_of_sorted(&delays, 0.5));
        put("delay_p95_ms", quantile_of_sorted(&delays, 0.95));
        self.kept.took = Vec::new();
        Measured {
            numbers,
            converged,
            received: self.by_second(|ran, step| ran.sum(&ran.paths.tested, step) / 1e6),
            left: (!self.paths.left.is_empty()
                && self.paths.tested.iter().all(|flow| flow.limit != Limit::Unknown))
            .then(|| {
                self.by_second(|ran, step| {
                    ran.paths.left.values().filter_map(|left| left.get(step)).sum::<f64>() / 1e6
                })
            }),
            delay: self.delays(),
            quantiles: SHARES.iter().filter_map(|&share| quantile_of_sorted(&delays, share)).collect(),
            failed: None,
        }
    }

    fn rates(&self, flow: &Flow, sent: bool) -> &[f64] {
        self.kept.flows.get(&flow.name).map_or(&[], |rates| if sent { &rates.sent } else { &rates.received })
    }

    fn received(&self, flow: &Flow) -> &[f64] {
        self.rates(flow, false)
    }

    /// Sum of the flows' received rates in a step.
    fn sum(&self, flows: &[Flow], step: usize) -> f64 {
        flows.iter().filter_map(|flow| self.received(flow).get(step)).sum()
    }

    /// All that the tested streams received while they were active, in Mbit.
    fn received_mbit(&self) -> f64 {
        let own = |flow: &Flow| part(self.received(flow), flow.active.clone()).iter().sum::<f64>();
        self.paths.tested.iter().map(own).sum::<f64>() * STEP_S / 1e6
    }

    /// Time until nine tenths of what is possible are received after each step up of what a limit leaves, and until its queue is short after
    /// each step down.
    fn after_steps(&self) -> (Vec<Converged>, Vec<Converged>) {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for (&limit, left) in &self.paths.left {
            let own: Vec<&Flow> = self.paths.tested.iter().filter(|flow| flow.limit == limit).collect();
            let active = |step: usize| own.iter().filter(move |flow| flow.active.contains(&step));
            let possible = |step: usize| left[step].min(active(step).map(|flow| flow.most).sum());
            let queue = Paths::link_name(self.scenario, limit).and_then(|name| self.kept.queues.get(&name));
            let rate = self.paths.rate.get(&limit);
            for (from, to, is_up) in capacity_steps(left, (SHORTEST_S / STEP_S) as usize) {
                if active(from - 1).next().is_none() || active(from).next().is_none() {
                    continue;
                }
                let took_s = if is_up {
                    // More than the sources can use is no step to them.
                    if possible(from) <= possible(from - 1) {
                        continue;
                    }
                    let possible: Vec<f64> = (from..to).map(possible).collect();
                    let sum = |step| own.iter().filter_map(|flow| self.received(flow).get(step)).sum::<f64>();
                    reaches(&(from..to).map(sum).collect::<Vec<f64>>(), &possible)
                } else {
                    let (Some(queue), Some(rate)) = (queue, rate) else { continue };
                    let waits = queue.iter().zip(rate).map(|(bytes, rate)| bytes * 8.0 / rate * 1e3);
                    drains(&waits.take(to).skip(from).collect::<Vec<f64>>())
                };
                let what = format!("{:.3} Mbit/s", left[from] / 1e6);
                let within_s = (to - from) as f64 * STEP_S;
                let one = Converged { at_s: from as f64 * STEP_S, what, took_s, within_s };
                if is_up { up.push(one) } else { down.push(one) }
            }
        }
        (up, down)
    }

    /// Delays of frames, and freezes.
    fn frames(&self, put: &mut dyn FnMut(&'static str, Option<f64>)) {
        let whole_s = self.scenario.duration.as_secs_f64();
        let (mut delays, mut made, mut count, mut frozen_s, mut active_s) = (Vec::new(), 0, 0, 0.0, 0.0);
        for flow in &self.paths.tested {
            let Some(frames) = self.kept.frames.get(&flow.name) else { continue };
            let frames = frames.within(self.paths.from_s..whole_s - UNDER_WAY_S);
            let took = |frame: &Frame| Some((frame.arrived_s()? - frame.made_s) * 1e3);
            delays.extend(frames.iter().filter_map(took));
            let outcome = self.found.stream.outcomes.iter().find(|found| found.stream == flow.name);
            made += frames.len() + outcome.map_or(0, |found| found.frames_dropped as usize);
            let shown = shown(&frames);
            let end_s = flow.to_s.min(whole_s - UNDER_WAY_S);
            let (freezes, seconds) = freezes(&shown, end_s);
            (count, frozen_s) = (count + freezes, frozen_s + seconds);
            active_s += shown.first().map_or(0.0, |first| (end_s - first).max(0.0));
        }
        delays.sort_by(f64::total_cmp);
        for (name, share) in [("frame_p50_ms", 0.5), ("frame_p95_ms", 0.95), ("frame_p99_ms", 0.99)] {
            put(name, quantile_of_sorted(&delays, share));
        }
        let in_time = delays.partition_point(|ms| *ms <= LATE_FRAME_MS);
        put("frames_late", (made > 0).then(|| 100.0 * (made - in_time.min(made)) as f64 / made as f64));
        put("frozen", (active_s > 0.0).then(|| 100.0 * frozen_s / active_s));
        put("freezes_per_min", (active_s > 0.0).then(|| count as f64 * 60.0 / active_s));
    }

    /// Numbers of sources that make less than their target for reasons of their own.
    fn limited(&self, put: &mut dyn FnMut(&'static str, Option<f64>)) {
        let (mut overshoot, mut layer_s, mut flaps) = (None::<f64>, None::<f64>, None::<usize>);
        for flow in &self.paths.tested {
            let (Some(frames), Some(left)) =
                (self.kept.frames.get(&flow.name), self.paths.left.get(&flow.limit))
            else {
                continue;
            };
            let frames = frames.within(self.paths.from_s..flow.to_s);
            let beside = |step: usize| {
                let others = self.paths.tested.iter().filter(|other| other.name != flow.name);
                others
                    .filter(|other| other.limit == flow.limit)
                    .filter_map(|other| self.received(other).get(step))
                    .sum::<f64>()
            };
            let left: Vec<f64> = left.iter().enumerate().map(|(step, left)| left - beside(step)).collect();
            if let Some(idle) = flow.idle {
                let made = limited::made(&frames, left.len());
                let peak = limited::overshoot(&made, idle, self.rates(flow, true), &left);
                overshoot = overshoot.into_iter().chain(peak).reduce(f64::max);
            }
            if !flow.layers.is_empty() {
                let sent = limited::layers_sent(&frames, &flow.layers, left.len());
                let longest = limited::layer_after(&sent, &flow.layers, &left, flow.active.clone());
                layer_s = layer_s.into_iter().chain(longest).reduce(f64::max);
                flaps = flaps.max(limited::flaps(&sent, flow.layers.len()));
            }
        }
        put("overshoot", overshoot);
        put("layer_s", layer_s);
        put("layer_flaps", flaps.map(|flaps| flaps as f64));
    }

    fn by_second(&self, of: impl Fn(&Self, usize) -> f64) -> Vec<f64> {
        let all: Vec<f64> = (0..self.paths.steps).map(|step| of(self, step)).collect();
        all.chunks_exact(SECOND).filter_map(mean).collect()
    }

    /// The mean delay of tested streams' packets by second, in ms.
    fn delays(&self) -> Vec<Option<f64>> {
        let flows: Vec<&[Option<f64>]> = self
            .paths
            .tested
            .iter()
            .filter_map(|flow| self.kept.flows.get(&flow.name).map(|rates| &rates.delay[..]))
            .collect();
        let second = |second: usize| {
            let steps = second * SECOND..(second + 1) * SECOND;
            let within = flows.iter().flat_map(|delays| delays.get(steps.clone()).unwrap_or_default());
            mean(&within.flatten().copied().collect::<Vec<_>>()).map(|delay| delay * 1e3)
        };
        (0..self.paths.steps / SECOND).map(second).collect()
    }

    /// Shares that the tested streams received of the rate left to them, and of the part of it that they could have used.
    fn use_of_the_path(&self) -> (Option<f64>, Option<f64>) {
        let (mut received, mut left, mut possible) = (0.0, 0.0, 0.0);
        for flow in &self.paths.tested {
            if flow.limit == Limit::Unknown {
                return (None, None);
            }
        }
        for (limit, remains) in &self.paths.left {
            let own: Vec<&Flow> = self.paths.tested.iter().filter(|flow| flow.limit == *limit).collect();
            for (step, remains) in remains.iter().enumerate() {
                let active = || own.iter().filter(|flow| flow.active.contains(&step));
                if active().next().is_none() {
                    continue;
                }
                received += own.iter().filter_map(|flow| self.received(flow).get(step)).sum::<f64>();
                left += remains;
                possible += remains.min(active().map(|flow| flow.most).sum());
            }
        }
        let share = |of: f64| (of > 0.0).then(|| received / of);
        (share(left), share(possible))
    }

    /// Queueing delay at the limiting links, ms at their rate of the moment.
    fn queue(&self) -> Option<f64> {
        let mut all = Vec::new();
        for (&limit, rate) in &self.paths.rate {
            let name = Paths::link_name(self.scenario, limit)?;
            let own = self.paths.tested.iter().filter(|flow| flow.limit == limit);
            let (from, to) = own.fold((usize::MAX, 0), |(from, to), flow| {
                (from.min(flow.active.start), to.max(flow.active.end))
            });
            let waits = self.kept.queues.get(&name)?.iter().zip(rate).enumerate();
            let within = waits.filter(|(step, (_, rate))| (from..to).contains(step) && **rate > 0.0);
            all.extend(within.map(|(_, (bytes, rate))| bytes * 8.0 / rate * 1e3));
        }
        mean(&all)
    }

    /// The time from each change to the next, with its sending rate in between: stream by stream.
    fn between(&self) -> impl Iterator<Item = (&Change, f64, &[f64])> {
        self.paths.tested.iter().zip(&self.paths.changes).flat_map(move |(flow, changes)| {
            changes.iter().enumerate().filter_map(move |(at, change)| {
                let end = changes.get(at + 1).map_or(flow.to_s, |next| next.at_s);
                let rates = part(self.rates(flow, true), steps(change.at_s, end));
                (end - change.at_s >= SHORTEST_S).then_some((change, end - change.at_s, rates))
            })
        })
    }

    fn convergences(&self) -> Vec<Converged> {
        let each = self.between().map(|(change, within_s, rates)| {
            let (at_s, what) = (change.at_s, change.what.clone());
            Converged { at_s, what, took_s: convergence(rates), within_s }
        });
        each.collect()
    }

    /// Variation, and swings in a minute, in the second half of the time between changes.
    fn smoothness(&self) -> (Option<f64>, Option<f64>) {
        let (mut varies, mut weight, mut all, mut minutes) = (0.0, 0.0, 0, 0.0);
        for (_, _, rates) in self.between() {
            let half = &rates[rates.len() / 2..];
            let (Some(variation), Some(swings)) = (variation(half), swings(half)) else { continue };
            let length = half.len() as f64;
            varies += variation * length;
            weight += length;
            all += swings;
            minutes += length * STEP_S / 60.0;
        }
        let share = |sum: f64, of: f64| (of > 0.0).then(|| sum / of);
        (share(varies, weight), share(all as f64, minutes))
    }

    /// Fairness among the streams that share a limit, by their rates over their priorities: the mean over limits.
    fn alike(&self, of: impl Fn(&[Active<'_>]) -> Option<f64>) -> Option<f64> {
        let mut shared: BTreeMap<Limit, Vec<Owned>> = BTreeMap::new();
        for flow in &self.paths.tested {
            let rates = self.received(flow).iter().map(|rate| rate / flow.priority).collect();
            shared.entry(flow.limit).or_default().push((rates, flow.active.clone()));
        }
        let each = |flows: &Vec<Owned>| {
            of(&flows.iter().map(|(rates, active)| (&rates[..], active.clone())).collect::<Vec<_>>())
        };
        mean(&shared.values().filter_map(each).collect::<Vec<_>>())
    }

    /// True if a tested stream has the same limit.
    fn is_shared(&self, flow: &Flow) -> bool {
        self.paths.tested.iter().any(|tested| tested.limit == flow.limit)
    }

    /// The rate of flows that answer, beside the streams.
    fn beside(
        &self,
        others: &[Flow],
        [kbps, share, ratio]: [&'static str; 3],
        put: &mut dyn FnMut(&'static str, Option<f64>),
    ) {
        let others: Vec<&Flow> = others.iter().filter(|flow| self.is_shared(flow)).collect();
        let (mut got, mut own_got, mut flows, mut streams) = (0.0, 0.0, 0_usize, 0_usize);
        for step in 0..self.paths.steps {
            let active = |flow: &&&Flow| flow.active.contains(&step);
            let own: Vec<&Flow> = self.paths.tested.iter().collect();
            let (beside, own): (Vec<&&Flow>, Vec<&&Flow>) =
                (others.iter().filter(active).collect(), own.iter().filter(active).collect());
            if beside.is_empty() || own.is_empty() {
                continue;
            }
            let sum =
                |flows: &[&&Flow]| flows.iter().filter_map(|flow| self.received(flow).get(step)).sum::<f64>();
            got += sum(&beside);
            own_got += sum(&own);
            flows += beside.len();
            streams += own.len();
        }
        if flows == 0 {
            return;
        }
        put(kbps, Some(got / flows as f64 / 1e3));
        put(share, Some(100.0 * got / (got + own_got)));
        put(ratio, Some(own_got / streams as f64 / (got / flows as f64)));
    }

    /// Segments of TCP beside the streams that were lost.
    fn tcp_loss(&self) -> Option<f64> {
        let tcp = self.paths.tcp.iter().filter(|flow| self.is_shared(flow));
        let names: Vec<&str> = tcp.map(|flow| flow.name.as_str()).collect();
        let outcomes = self.network.flows.iter().filter(|flow| names.contains(&flow.flow.as_str()));
        let (lost, sent) = outcomes
            .fold((0, 0), |(lost, sent), flow| (lost + flow.lost.values().sum::<u64>(), sent + flow.sent));
        (sent > 0).then(|| 100.0 * lost as f64 / sent as f64)
    }

    /// Puts the counts of the streams' ends; gives the number of packets of media sent.
    fn outcomes(&self, put: &mut dyn FnMut(&'static str, Option<f64>)) -> u64 {
        let tested = |name: &String| self.paths.tested.iter().find(|flow| flow.name == *name);
        let own: Vec<_> = self
            .found
            .stream
            .outcomes
            .iter()
            .filter_map(|found| Some((found, tested(&found.stream)?)))
            .collect();
        let (mut sent, mut lost, mut congestion) = (0, 0, 0);
        for (found, _) in &own {
            sent += found.sent;
            lost += found.congestion_lost + found.wireless_lost;
            congestion += found.congestion_lost;
        }
        if self.paths.from_s > 0.0 {
            let counts = self.kept.counts;
            (sent, lost, congestion) = (counts.sent, counts.lost, counts.congestion);
        }
        // Bulk TCP in the place of streams.
        for flow in self.network.flows.iter().filter(|flow| tested(&flow.flow).is_some()) {
            sent += flow.sent;
            lost += flow.lost.values().sum::<u64>();
            congestion +=
                flow.lost.iter().filter(|lost| *lost.0 != "channel").map(|lost| lost.1).sum::<u64>();
        }
        put("loss", (sent > 0).then(|| 100.0 * lost as f64 / sent as f64));
        put("congestion_loss", (sent > 0).then(|| 100.0 * congestion as f64 / sent as f64));
        if own.is_empty() {
            return 0;
        }
        let back = own.iter().map(|(found, flow)| {
            found.feedback_bytes as f64 * 8.0 / 1e3 / (flow.to_s - flow.from_s).max(STEP_S)
        });
        put("feedback_kbps", mean(&back.collect::<Vec<_>>()));
        let (back, media) = own.iter().fold((0, 0), |(back, media), (found, _)| {
            (back + found.feedback_bytes, media + found.received_bytes)
        });
        put("feedback_share", (media > 0).then(|| 100.0 * back as f64 / media as f64));
        put("pacing", mean(&own.iter().filter_map(|(found, _)| found.pacing_factor).collect::<Vec<_>>()));
        let (padding, bytes) = own.iter().fold((0, 0), |(padding, bytes), (found, _)| {
            (padding + found.padding_bytes, bytes + found.sent_bytes)
        });
        put("padding", (bytes > 0).then(|| 100.0 * padding as f64 / bytes as f64));
        put("frames_dropped", Some(own.iter().map(|(found, _)| found.frames_dropped).sum::<u64>() as f64));
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_never_converged_count_as_the_longest() {
        let one = |took_s, within_s| Converged { at_s: 0.0, what: String::new(), took_s, within_s };
        let (quick, slow) = (one(Some(2.0), 30.0), one(Some(20.0), 30.0));
        // Cut off after 6 s: for all that is known it takes longer than 20 s.
        let cut = one(None, 6.0);
        assert_eq!(Converged::median([&cut, &quick, &slow]), Some(20.0));
        assert_eq!(Converged::median([&cut, &quick, &cut]), Some(6.0), "a lower bound");
        assert_eq!((Converged::median([&quick, &slow]), Converged::median([])), (Some(11.0), None));
    }
}
