//! Figures 1 to 4 and 10: which losses the classifiers take for wireless, asked of the classifiers themselves.

use lastmile::classify::{self, Arrival, Classifier, Loss, LossClass};
use lastmile::telemetry::Visitor;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;

use lastmile_report::Mean;
use lastmile_report::table::{Cell, Chart, Table};

/// The least time between arrivals, and the least delay.
const T_MIN: f64 = 0.1;
const ROTT_MIN: f64 = 0.05;
/// Step of the search for boundaries, in their unit.
const STEP: f64 = 0.005;

/// A classifier that is told of arrivals one by one.
struct Told {
    classifier: Box<dyn Classifier>,
    seq: u64,
    at: f64,
}

impl Told {
    fn new(name: &str) -> Option<Told> {
        Some(Told { classifier: classify::build(&name.parse().ok()?).ok()?, seq: 0, at: 1.0 })
    }

    /// The next packet but `lost` arrives `gap` seconds later, after `rott` seconds on the way.
    fn arrives(&mut self, lost: u64, gap: f64, rott: f64) {
        self.seq += 1 + lost;
        self.at += gap;
        let (sent, at) =
            (Time::ZERO + Span::from_secs_f64(self.at - rott), Time::ZERO + Span::from_secs_f64(self.at));
        let (seq, size) = (self.seq, Bytes(762));
        let arrival = Arrival { seq, size, sent: sent.as_sender(), at: Some(at.as_receiver()), rtt: None };
        self.classifier.on_arrival(&arrival);
    }

    fn judges(&mut self, lost: u64) -> LossClass {
        self.classifier.classify(&Loss::of(self.seq, lost as u32))
    }
}

/// Values at which verdicts change, going up from `from` to `to`.
fn boundaries(from: f64, to: f64, judge: impl Fn(f64) -> Option<LossClass>) -> Vec<f64> {
    let mut found = Vec::new();
    let steps = ((to - from) / STEP) as u32;
    // Half a step off, so that none of them is looked at itself.
    let at = |step: u32| from + (f64::from(step) + 0.5) * STEP;
    for step in 1..steps {
        if judge(at(step)) != judge(at(step - 1)) {
            found.push(at(step) - 0.5 * STEP);
        }
    }
    found
}

/// Figures 1 and 2: a loss of n packets is wireless where the gap is from the lower boundary to the upper, in units of T_min.
pub(super) fn spacing(name: &'static str, above: f64) -> Table {
    let mut table = Table::new(&["n", "wireless_from", "wireless_to"]);
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    for n in 1..=5_u64 {
        let judge = |gap: f64| {
            let mut told = Told::new(name)?;
            (0..5).for_each(|_| told.arrives(0, T_MIN, ROTT_MIN));
            told.arrives(n, gap * T_MIN, ROTT_MIN);
            Some(told.judges(n))
        };
        let found = boundaries(0.5, n as f64 + 3.0, judge);
        let at = |place: usize| found.get(place).copied();
        let n = n as f64;
        table.row([
            Cell::from(format!("{n}")),
            Cell::Exact(at(0), Some(n + 1.0)),
            Cell::Exact(at(1), Some(n + above)),
        ]);
        lower.extend(at(0).map(|y| (n, Mean::exactly(y))));
        upper.extend(at(1).map(|y| (n, Mean::exactly(y))));
    }
    let of = |from: &dyn Fn(usize) -> Option<f64>, to: &dyn Fn(usize) -> Option<f64>| {
        let around = |at: usize| (lower[at].0 - 0.5, lower[at].0 + 0.5, from(at), to(at));
        (0..lower.len().min(upper.len())).map(around).collect::<Vec<_>>()
    };
    let (low, high) = (|at: usize| Some(lower[at].1.mean), |at: usize| Some(upper[at].1.mean));
    let (wireless, congestion) = (of(&low, &high), [of(&|_| None, &low), of(&high, &|_| None)].concat());
    let lines = vec![("from".into(), lower.clone()), ("to".into(), upper.clone())];
    let chart = Chart::new(
        format!("{name}: causes that losses are counted as"),
        "packets lost, n",
        "gap over the least gap",
        lines,
    );
    table.chart(chart.region("wireless", wireless).region("congestion", congestion));
    table
}

/// Figure 3: Spike's thresholds, as shares of the range of delays.
pub(super) fn spike() -> Table {
    let judge = |from: f64, share: f64| {
        let mut told = Told::new("spike")?;
        // The extrema, and then from below or from above.
        for rott in [ROTT_MIN, 2.0 * ROTT_MIN, (1.0 + from) * ROTT_MIN, (1.0 + share) * ROTT_MIN] {
            told.arrives(0, T_MIN, rott);
        }
        told.arrives(1, 2.0 * T_MIN, (1.0 + share) * ROTT_MIN);
        Some(told.judges(1))
    };
    let mut table = Table::new(&["state_before", "congestion_above"]);
    for (state, from, paper) in [("no spike", 0.0, 1.0 / 2.0), ("spike", 1.0, 1.0 / 3.0)] {
        let found = boundaries(0.0, 1.0, |share| judge(from, share));
        table.row([
            Cell::from(state),
            Cell::Exact(found.first().copied(), Some((paper * 1000.0_f64).round() / 1000.0)),
        ]);
    }
    table
}

/// Figure 4: ZigZag's thresholds, in deviations from the mean delay, both as they are once the delay that judges is in them.
pub(super) fn zigzag() -> Table {
    let mut table = Table::new(&["n", "wireless_below"]);
    let mut line = Vec::new();
    for (n, paper) in [(1_u64, -1.0), (2, -0.5), (3, 0.0), (4, -0.5), (5, -0.5)] {
        let judged = |rott: f64| {
            let mut told = Told::new("zigzag")?;
            // A delay that goes to and fro by 20 ms has that deviation, about its mean of 100 ms.
            (0..1_000).for_each(|k| told.arrives(0, T_MIN, if k % 2 == 0 { 0.08 } else { 0.12 }));
            told.arrives(n, T_MIN, rott);
            let known = Known::of(&*told.classifier);
            let mean = 0.08 + known.number("mean delay above the first")?;
            Some((((rott - mean) / known.number("mean deviation of the delay")?), told.judges(n)))
        };
        let all: Vec<(f64, LossClass)> =
            (0..1_200).filter_map(|k| judged(0.07 + f64::from(k) * 5e-5)).collect();
        let turn = all.windows(2).find(|pair| pair[0].1 != pair[1].1);
        let found = turn.map(|pair| (pair[0].0 + pair[1].0) / 2.0);
        table.row([Cell::from(format!("{n}")), Cell::Exact(found, Some(paper))]);
        line.extend(found.map(|y| (n as f64, Mean::exactly(y))));
    }
    let around = |low: fn(f64) -> Option<f64>, high: fn(f64) -> Option<f64>| {
        line.iter().map(|(n, y)| (n - 0.5, n + 0.5, low(y.mean), high(y.mean))).collect::<Vec<_>>()
    };
    let (wireless, congestion) = (around(|_| None, Some), around(Some, |_| None));
    let (title, y) = ("zigzag: causes that losses are counted as", "deviations from the mean delay");
    let chart = Chart::new(title, "packets lost, n", y, vec![("threshold".into(), line.clone())]);
    table.chart(chart.region("wireless", wireless).region("congestion", congestion));
    table
}

/// A classifier's state.
#[derive(Default)]
struct Known {
    numbers: Vec<(&'static str, f64)>,
    states: Vec<(&'static str, &'static str)>,
}

impl Known {
    fn of(classifier: &dyn Classifier) -> Known {
        let mut known = Known::default();
        classifier.telemetry(&mut known);
        known
    }

    fn number(&self, name: &str) -> Option<f64> {
        Some(self.numbers.iter().find(|number| number.0 == name)?.1)
    }
}

impl Visitor for Known {
    fn number(&mut self, name: &'static str, _: &'static str, value: f64) {
        self.numbers.push((name, value));
    }

    fn state(&mut self, name: &'static str, value: &'static str) {
        self.states.push((name, value));
    }
}

/// Figure 10: which scheme ZBS takes, by the mean gap over the least one, while the queue is not empty.
pub(super) fn zbs() -> Table {
    let scheme = |narr: f64| -> Option<&'static str> {
        let mut zbs = Told::new("zbs")?;
        zbs.arrives(0, T_MIN, ROTT_MIN);
        (0..5).for_each(|_| zbs.arrives(0, T_MIN, 4.0 * ROTT_MIN));
        // Below 1 only by packets that are missing.
        let lost = if narr < 1.0 { 3 } else { 0 };
        for _ in 0..400 {
            zbs.arrives(lost, narr * T_MIN * (1 + lost) as f64, 4.0 * ROTT_MIN);
        }
        Some(Known::of(&*zbs.classifier).states.iter().find(|state| state.0 == "scheme")?.1)
    };
    let mut table = Table::new(&["scheme", "narr_from", "narr_to"]);
    let paper =
        [("zigzag", 0.0, 0.875), ("mbiaz", 0.875, 1.5), ("zigzag", 1.5, 2.0), ("spike", 2.0, f64::NAN)];
    let mut from = 0.5_f64;
    let at = |step: u32| 0.5 + (f64::from(step) + 0.5) * STEP;
    let mut rows: Vec<(&'static str, f64, f64)> = Vec::new();
    for step in 1..500 {
        let (before, now) = (scheme(at(step - 1)), scheme(at(step)));
        if before != now {
            rows.extend(before.map(|name| (name, from, at(step) - 0.5 * STEP)));
            from = at(step) - 0.5 * STEP;
        }
    }
    rows.extend(scheme(at(500)).map(|name| (name, from, f64::NAN)));
    for (k, (name, from, to)) in rows.into_iter().enumerate() {
        let known = |value: f64| Some(value).filter(|value| value.is_finite());
        let (paper_from, paper_to) = paper.get(k).map_or((None, None), |row| (known(row.1), known(row.2)));
        let from = if k == 0 { Some(0.0) } else { known(from) };
        table.row([Cell::from(name), Cell::Exact(from, paper_from), Cell::Exact(known(to), paper_to)]);
    }
    table
}
