//! Questions that the paper leaves open: all signals at one turning point, other disciplines, W, L and the ratio of marks.

use super::cases::{self, AQMS, Aqm, HALF, KINDS, Kind, Tool, beside, left, left_in};
use super::judge::turn;
use super::signals::SIGNALS;
use crate::papers::results::Results;
use crate::papers::{Case, each};
use lastmile_report::Mean;
use lastmile_report::table::{Cell, Chart, Table};

/// Rates of the trains of which all signals are read, in percent of what 5 Mbit/s leave on the wire.
pub(super) const TRIED: [u32; 13] = [50, 60, 70, 80, 90, 95, 100, 105, 110, 120, 130, 140, 150];
/// Packets of these trains: the paper's, and ours.
pub(super) const TRAINS: [u32; 2] = [60, 960];

/// One train of so many packets of 500 B at that share of what is left; without ECN the queue drops what it would mark.
pub(super) fn train(kind: Kind, packets: u32, percent: u32, ecn: bool) -> Case {
    let rate = left_in(f64::from(HALF), 500.0) * f64::from(percent) / 100.0;
    let method = format!("ecnprobe(train_length={packets}, first_rate={rate:.4} Mbit/s, max_rounds=2)");
    let case = cases::case(method, kind, HALF).set("measure.0.start", "3 s");
    if ecn { case } else { case.set(cases::red("ecn"), "false") }
}

/// The trains of the comparison of signals.
pub(super) fn trains() -> Vec<Case> {
    let of = |((kind, packets), percent)| [true, false].map(|ecn| train(kind, packets, percent, ecn));
    each(&each(&KINDS, &TRAINS), &TRIED).into_iter().flat_map(of).collect()
}

/// The case whose trains tell of a signal: losses are those of a queue that does not mark.
fn of_signal(signal: &str, kind: Kind, packets: u32, percent: u32) -> Case {
    train(kind, packets, percent, signal != "by_loss")
}

/// Shares of trains that a signal calls too fast, by their rates as shares of what is left.
pub(super) fn curve(results: &Results, signal: &str, kind: Kind, packets: u32) -> Vec<(f64, f64)> {
    let at = |percent: u32| {
        let share = results.mean(&of_signal(signal, kind, packets, percent), signal)?;
        Some((f64::from(percent), share.mean))
    };
    TRIED.into_iter().filter_map(at).collect()
}

/// All congestion signals at one turning point.
pub(super) fn signals(results: &Results) -> Table {
    let mut table = Table::new(&[
        "signal",
        "a_train_is_too_fast_if",
        "cross_traffic",
        "packets",
        "tenth_percent_of_left",
        "half_percent_of_left",
        "nine_tenths_percent_of_left",
    ]);
    for (kind, packets) in each(&KINDS, &TRAINS) {
        let mut drawn = Vec::new();
        for (signal, name, rule) in SIGNALS {
            let points = curve(results, signal, kind, packets);
            let words = [name, rule, kind.name()].map(Cell::from);
            let numbers = turn(&points).map(|at| Cell::Exact(at, None));
            table.row(words.into_iter().chain([Cell::from(packets.to_string())]).chain(numbers));
            let line = |&percent: &u32| {
                let share = results.mean(&of_signal(signal, kind, packets, percent), signal)?;
                Some((f64::from(percent), share))
            };
            drawn.push((name.to_owned(), TRIED.iter().filter_map(line).collect()));
        }
        let title = format!("{}, trains of {packets}", kind.name());
        table.chart(Chart::new(
            title,
            "rate, percent of what is left",
            "percent of trains called too fast",
            drawn,
        ));
    }
    table
}

/// A setting of ECNProbe: packets of a train, their size, the ratio of marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) packets: u32,
    pub(super) bytes: u32,
    pub(super) ratio: f64,
}

/// Our defaults.
pub(super) const OURS: Setting = Setting { packets: 960, bytes: 500, ratio: 0.005 };
/// Cross traffic of sweeps.
pub(super) const SWEPT: [u32; 3] = [0, 4, 8];

impl Setting {
    pub(super) fn case(self, kind: Kind, load: u32) -> Case {
        let Setting { packets, bytes, ratio } = self;
        let method = format!("ecnprobe(train_length={packets}, packet_size={bytes} B, mark_ratio={ratio})");
        // The defaults are one case with those of the figures.
        if self == OURS { cases::tool(Tool::Ours, kind, load) } else { cases::case(method, kind, load) }
    }
}

/// Sweeps of W, L and the ratio, each from our defaults.
pub(super) fn settings() -> Vec<(&'static str, Setting)> {
    let packets = [60, 120, 240, 480, 960, 1_920].map(|packets| ("W", Setting { packets, ..OURS }));
    let bytes = [200, 500, 1_000, 1_488].map(|bytes| ("L", Setting { bytes, ..OURS }));
    let ratios = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1].map(|ratio| ("ratio", Setting { ratio, ..OURS }));
    packets.into_iter().chain(bytes).chain(ratios).collect()
}

/// The largest median error of a setting over the loads of sweeps, in percent; none where half of the runs of one have no estimate.
pub(super) fn worst(results: &Results, of: &dyn Fn(Kind, u32) -> Case) -> Option<f64> {
    let off = |(load, kind): (u32, Kind)| {
        let case = of(kind, load);
        let ended = results.mean(&case, "ended")?.mean;
        results.median(&case, "off").filter(|_| ended > 50.0).map(|off| off.median.abs())
    };
    beside(&SWEPT).into_iter().map(off).collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max)
}

/// The sweeps: errors beside each load.
pub(super) fn sweep(results: &Results) -> Table {
    let mut table = Table::new(&[
        "swept",
        "packets",
        "bytes",
        "mark_ratio",
        "worst_off_percent",
        "idle_off_percent",
        "cbr_4_off_percent",
        "poisson_4_off_percent",
        "cbr_8_off_percent",
        "poisson_8_off_percent",
        "ended_percent",
        "seconds",
        "megabytes",
    ]);
    for (swept, setting) in settings() {
        let of = |kind: Kind, load: u32| setting.case(kind, load);
        let all = beside(&SWEPT);
        let mean_of = |what: &str| {
            let each: Vec<f64> =
                all.iter().flat_map(|&(load, kind)| results.values(&of(kind, load), what)).collect();
            Mean::of(&each)
        };
        let words = [
            swept.to_owned(),
            setting.packets.to_string(),
            setting.bytes.to_string(),
            setting.ratio.to_string(),
        ];
        let offs = all.iter().map(|&(load, kind)| Cell::from(results.mean(&of(kind, load), "off")));
        let ended = Cell::Exact(mean_of("ended").map(|mean| mean.mean), None);
        table.row(
            words
                .map(Cell::from)
                .into_iter()
                .chain([Cell::Exact(worst(results, &of), None)])
                .chain(offs)
                .chain([ended, mean_of("seconds").into(), mean_of("megabytes").into()]),
        );
    }
    table
}

/// ECNProbe behind other disciplines: our defaults and the paper's W, L and ratio.
pub(super) fn aqms(results: &Results) -> Table {
    let mut table = Table::new(&[
        "queue",
        "tool",
        "cross_traffic",
        "mbps",
        "left_on_the_wire",
        "on_the_wire_mbps",
        "off_percent",
        "ended_percent",
        "seconds",
        "megabytes",
    ]);
    for ((aqm, tool), (load, kind)) in each(&each(&AQMS, &[Tool::Ours, Tool::EcnProbe]), &beside(&SWEPT)) {
        let case = behind(aqm, tool, kind, load);
        let mean = |what: &str| results.mean(&case, what);
        let name = if load > 0 { kind.name() } else { "none" };
        table.row([
            Cell::from(aqm.name),
            Cell::from(tool.name()),
            Cell::from(name),
            Cell::from(load.to_string()),
            Cell::Exact(Some(left(f64::from(load))), None),
            mean("wire").into(),
            mean("off").into(),
            Cell::Exact(mean("ended").map(|mean| mean.mean), None),
            mean("seconds").into(),
            mean("megabytes").into(),
        ]);
    }
    table
}

/// A tool behind a discipline.
pub(super) fn behind(aqm: Aqm, tool: Tool, kind: Kind, load: u32) -> Case {
    aqm.on(cases::tool(tool, kind, load))
}
