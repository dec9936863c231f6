//! Section 6: real video over a WLAN at 2 Mbit/s, under errors [figure 11] and beside cross traffic [figure 12].

use lastmile::endpoint::stream::{Decision, Sent, Viewed};
use lastmile::observe::stats::mean;
use lastmile::time::Time;

use crate::papers::Shown::Mean;
use crate::papers::results::Results;
use crate::papers::{Bar, Case, Item, Lines, Middle, Number, Parts, Row, Run};
use lastmile_report::table::Chart;

/// Shares of packets lost to errors, in percent, and the mean lengths of the bad state beside 1 s of the good one.
const ERRORS: [(u32, &str); 2] = [(2, "20 ms"), (5, "53 ms")];
/// Cross traffic as printed, in kbit/s.
const PRINTED: [u32; 2] = [30, 80];
/// Cross traffic below and above the 956 kbit/s that are left beside the video, as far as the printed ones are from their middle.
const AROUND_THE_SPARE: [u32; 2] = [931, 981];
/// Pixels of the paper's camera.
const SIZE: (usize, usize) = (320, 240);
/// Runs of each case.
const RUNS: [u64; 2] = [30, 5];
/// Seconds of a run: what came before, errors, cross traffic, and the last of that, by which it has settled.
const BEFORE: (f64, f64) = (8.0, 15.0);
const IN_ERRORS: (f64, f64) = (15.0, 28.0);
const IN_TRAFFIC: (f64, f64) = (15.0, 32.0);
const AT_LAST: (f64, f64) = (27.0, 32.0);

fn case() -> Case {
    Case::new("testbed").filmed(SIZE)
}

fn errors(percent: u32) -> Case {
    let bad = ERRORS.iter().find(|(known, _)| *known == percent).map_or("0 ms", |(_, bad)| bad);
    let key = |key: &str| format!("link.4.losses.air.model.{key}");
    case().set(key("bad"), bad).set(key("loss_bad"), "1.0")
}

fn cross(kbps: u32) -> Case {
    case().set("traffic.cross.count", 1).set("traffic.cross.rate", format!("{kbps} kbit/s"))
}

pub(super) fn figure_11() -> Item {
    let rows = ERRORS.map(|(percent, _)| Row::new(&[&format!("{percent} %")], errors(percent)));
    item("figure-11", 11, "real video under errors from 15 to 28 s", "errors", rows.into())
}

pub(super) fn figure_12() -> Item {
    let all = PRINTED.into_iter().chain(AROUND_THE_SPARE);
    let rows = all.map(|kbps| Row::new(&[&format!("{kbps} kbit/s")], cross(kbps)));
    item("figure-12", 12, "real video beside cross traffic from 15 to 32 s", "cross_traffic", rows.collect())
}

fn item(id: &'static str, figure: u32, shows: &'static str, what: &'static str, rows: Vec<Row>) -> Item {
    let numbers = [
        ("target_before_kbps", Mean("target_before")),
        ("target_in_errors_kbps", Mean("target_in_errors")),
        ("target_in_traffic_kbps", Mean("target_in_traffic")),
        ("target_least_kbps", Mean("target_least")),
        ("target_at_last_kbps", Mean("target_at_last")),
        ("achieved_before_kbps", Mean("achieved_before")),
        ("achieved_in_traffic_kbps", Mean("achieved_in_traffic")),
        ("frame_rate_before", Mean("frames_before")),
        ("frame_rate_in_traffic", Mean("frames_in_traffic")),
        ("damaged_per_s_in_traffic", Mean("damaged_in_traffic")),
        ("packets_lost_percent", Mean("lost_in_traffic")),
    ];
    let drawn: Vec<(String, Case)> = rows.iter().map(|row| (row.words(), row.case().clone())).collect();
    Item::rows(id, Number::Figure(figure), shows, &[what], &numbers, rows)
        .drawn(move |results, table| {
            for (title, y, name) in [
                ("Target rate", "kbit/s", "target"),
                ("Achieved rate", "kbit/s", "achieved"),
                ("Frames shown in each second", "frames/s", "frames"),
                ("Packets lost", "%", "lost"),
            ] {
                let line = |(words, case): &(String, Case)| (words.clone(), results.line(case, name));
                table.chart(Chart::new(format!("{title}, seed 1"), "s", y, drawn.iter().map(line).collect()));
            }
        })
        .apart()
        .runs(RUNS[0])
        .lab(RUNS[1])
}

/// A second of a run: its end, the target in kbit/s, and the counts up to there.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    at: f64,
    target: f64,
    sent: Sent,
}

/// The sender's seconds, and the viewer's.
#[derive(Debug, Default)]
struct Told {
    seconds: Vec<Second>,
    viewed: Vec<(f64, Viewed)>,
}

impl Told {
    fn of(run: &Run<'_>) -> Told {
        let mut told = Told::default();
        for (at, what) in run.decisions::<Decision>() {
            let at = (at - Time::ZERO).as_secs_f64();
            match what {
                Decision::MediaProgress { target, sent, .. } => {
                    let target = target.bits_per_second() as f64 / 1e3;
                    told.seconds.push(Second { at, target, sent: *sent });
                }
                Decision::FramesViewed { viewed, .. } => told.viewed.push((at, *viewed)),
                _ => {}
            }
        }
        told
    }

    fn targets(&self, (from, to): (f64, f64)) -> Vec<f64> {
        let within = |second: &&Second| from < second.at && second.at <= to;
        self.seconds.iter().filter(within).map(|second| second.target).collect()
    }

    /// The last counts up to two moments, and the seconds between them.
    fn between(&self, (from, to): (f64, f64)) -> Option<(Sent, Sent, f64)> {
        let last = |until: f64| self.seconds.iter().rfind(|second| second.at <= until);
        let (first, last) = (last(from)?, last(to)?);
        Some((first.sent, last.sent, last.at - first.at)).filter(|(.., seconds)| *seconds > 0.0)
    }

    fn achieved(&self, range: (f64, f64)) -> Option<f64> {
        let (from, to, seconds) = self.between(range)?;
        Some((to.acknowledged_bytes - from.acknowledged_bytes).bits() as f64 / 1e3 / seconds)
    }

    /// Packets lost of those sent, in percent.
    fn lost(&self, range: (f64, f64)) -> Option<f64> {
        let (from, to, _) = self.between(range)?;
        let lost = |sent: Sent| (sent.lost - sent.late.min(sent.lost)) as f64;
        Some(100.0 * (lost(to) - lost(from)) / (to.packets - from.packets).max(1) as f64)
    }

    /// Frames of a kind in a second.
    fn frames(&self, (from, to): (f64, f64), of: fn(&Viewed) -> u64) -> Option<f64> {
        let last = |until: f64| self.viewed.iter().rfind(|(at, _)| *at <= until);
        let ((first, before), (last, after)) = (last(from)?, last(to)?);
        (last > first).then(|| (of(after) - of(before)) as f64 / (last - first))
    }
}

pub(super) fn measure(run: &Run<'_>, put: &mut dyn FnMut(&'static str, Option<f64>)) {
    if run.scenario.name != "vtp-testbed" {
        return;
    }
    let told = Told::of(run);
    put("target_before", mean(&told.targets(BEFORE)));
    put("target_in_errors", mean(&told.targets(IN_ERRORS)));
    put("target_in_traffic", mean(&told.targets(IN_TRAFFIC)));
    put("target_least", told.targets(IN_TRAFFIC).into_iter().reduce(f64::min));
    put("target_least_in_errors", told.targets(IN_ERRORS).into_iter().reduce(f64::min));
    put("target_most_in_errors", told.targets(IN_ERRORS).into_iter().reduce(f64::max));
    put("target_at_last", mean(&told.targets(AT_LAST)));
    put("achieved_before", told.achieved(BEFORE));
    put("achieved_in_errors", told.achieved(IN_ERRORS));
    put("achieved_in_traffic", told.achieved(IN_TRAFFIC));
    put("frames_before", told.frames(BEFORE, |viewed| viewed.frames));
    put("frames_in_traffic", told.frames(IN_TRAFFIC, |viewed| viewed.frames));
    put("damaged_in_traffic", told.frames(IN_TRAFFIC, |viewed| viewed.damaged));
    put("lost_in_traffic", told.lost(IN_TRAFFIC));
}

pub(super) fn draw(run: &Run<'_>, lines: &mut Lines) {
    if run.scenario.name != "vtp-testbed" {
        return;
    }
    let told = Told::of(run);
    let steps = || told.seconds.windows(2).map(|pair| (pair[0].at, pair[1].at));
    let line = |of: &dyn Fn((f64, f64)) -> Option<f64>| {
        steps().filter_map(|range| Some((range.1, of(range)?))).collect::<Vec<_>>()
    };
    lines.insert("target".into(), told.seconds.iter().map(|second| (second.at, second.target)).collect());
    lines.insert("achieved".into(), line(&|range| told.achieved(range)));
    lines.insert("lost".into(), line(&|range| told.lost(range)));
    let frames = told
        .viewed
        .windows(2)
        .filter_map(|pair| Some((pair[1].0, told.frames((pair[0].0, pair[1].0), |viewed| viewed.frames)?)));
    lines.insert("frames".into(), frames.collect());
}

/// A number over that of another time of the same run, in percent.
fn share(results: &Results, case: &Case, [of, from]: [&str; 2]) -> Option<Middle> {
    let both = results.both(case, [of, from]);
    // Notes the runs without it, for the claim's text.
    results.values(case, of);
    Middle::of(&both.iter().map(|(of, from)| 100.0 * of / from).collect::<Vec<_>>())
}

/// v11.
pub(super) fn unaffected(results: &Results) -> Parts {
    let mut parts = Parts::of("% of before");
    for (percent, _) in ERRORS {
        let case = errors(percent);
        let of = |number| share(results, &case, [number, "target_before"]);
        parts.beside(format!("mean target at {percent} % errors"), of("target_in_errors"));
        parts.value(format!("least target at {percent} %"), of("target_least_in_errors"), Bar::or_more(90.0));
        parts.value(
            format!("highest target at {percent} %"),
            of("target_most_in_errors"),
            Bar::or_less(110.0),
        );
        let achieved = share(results, &case, ["achieved_in_errors", "achieved_before"]);
        parts.beside(format!("achieved rate at {percent} %"), achieved);
    }
    parts
}

/// The first cross traffic's dip is over by its last five seconds, the second's is not.
fn dips(results: &Results, [light, heavy]: [u32; 2]) -> Parts {
    let mut parts = Parts::of("% of before");
    for kbps in [light, heavy] {
        let of = |number| share(results, &cross(kbps), [number, "target_before"]);
        parts.beside(format!("least target beside {kbps} kbit/s"), of("target_least"));
        let bar = if kbps == light { Bar::or_more(90.0) } else { Bar::below(90.0) };
        parts.value(format!("target at last beside {kbps} kbit/s"), of("target_at_last"), bar);
    }
    parts
}

/// v12.
pub(super) fn around_the_spare(results: &Results) -> Parts {
    dips(results, AROUND_THE_SPARE)
}

/// v13.
pub(super) fn as_printed(results: &Results) -> Parts {
    let (mut frames, mut lost) = (Parts::of("frames/s"), Parts::of("%"));
    let heavy = cross(PRINTED[1]);
    frames.value(
        "shown beside 80 kbit/s",
        results.median(&heavy, "frames_in_traffic"),
        Bar::between(15.0, 20.0),
    );
    lost.value(
        "packets lost beside 80 kbit/s",
        results.median(&heavy, "lost_in_traffic"),
        Bar::between(40.0, 60.0),
    );
    dips(results, PRINTED).and(frames).and(lost)
}
