//! The tables and figures, from what runs left.

use lastmile::estimate::METHODS;

use super::cases::{self, FIVE, FRAMING, HALF, HUB, KINDS, Kind, LOADS, Tool, left, left_in, on_the_wire};
use super::judge::mean_spread;
use super::{figures, printed};
use crate::papers::results::Results;
use crate::papers::{Case, each};
use lastmile_report::Mean;
use lastmile_report::table::{Cell, Chart, Table, lines};

/// Figure 1: the framework, and the part of this program that is each of it.
pub(super) fn framework() -> Table {
    let mut table = Table::new(&["in_the_paper", "is", "here"]);
    for row in [
        ["W(t), the probing window", "packets of a stream", "estimate::StreamPlan"],
        ["x(t), the probing rate", "rate of a stream", "StreamPlan::rate"],
        ["p(t), the congestion signal", "a number from a stream's record", "observe::signal"],
        ["probing control", "the next stream, a pause or the result", "estimate::Step, estimate::search"],
        ["feedback", "a report of times of arrival and marks", "the reflector's pages of report"],
    ] {
        table.row(row.map(Cell::from));
    }
    table
}

/// Table I, with the words of this program's registry for the same tools.
pub(super) fn table_1() -> Table {
    let mut table =
        Table::new(&["tool", "signal_in_the_paper", "signal_here", "search_in_the_paper", "search_here"]);
    for [tool, signal, search, name] in [
        ["IGI", "delay gap", "binary/linear search", "igi"],
        ["PTR", "throughput", "binary/linear search", "ptr"],
        ["Pathload", "delay trend", "binary search", "pathload"],
        ["pathChirp", "delay gap", "average", "pathchirp"],
        ["TOPP", "throughput", "regression", "topp"],
        ["Spruce", "delay gap", "algorithmic computation", "spruce"],
        ["TCP Reno", "loss", "AIMD iteration", ""],
        ["TCP NewReno", "loss", "AIMD iteration", ""],
        ["TCP Vegas", "delay", "AIAD iteration", ""],
    ] {
        let method = METHODS.iter().find(|method| method.name == name);
        let search_here = method
            .map(|method| method.search.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or "));
        let here = |of: Option<String>| of.unwrap_or_else(|| "the simulator's TCP".to_owned());
        table.row([
            Cell::from(tool),
            Cell::from(signal),
            Cell::from(here(method.map(|method| method.signal.to_string()))),
            Cell::from(search),
            Cell::from(here(search_here)),
        ]);
    }
    table
}

/// Table II: programs.
pub(super) fn table_2() -> Table {
    let mut table = Table::new(&["program", "version_in_the_paper", "here", "its_constants"]);
    let version = |tool: Tool| {
        let name = tool.name().to_lowercase();
        let versions = figures().get("versions").and_then(|all| all.get(name)?.as_str().map(str::to_owned));
        versions.unwrap_or_else(|| "its own".to_owned())
    };
    for (tool, constants) in [
        (Tool::Pathload, "those of 1.3.2, with the resolutions of table IV"),
        (Tool::Igi, "those of 2.x, with one train a gap and the binary search of 1.0"),
        (Tool::Spruce, "those of 0.3"),
        (Tool::Pathchirp, "those of 2.4.1"),
        (Tool::Diettopp, "those of the program of 2004, with table VII"),
        (Tool::EcnProbe, "the paper's W, L and ratio; it names no epsilon, first rate and limits"),
    ] {
        let words = [tool.name().to_owned(), version(tool), tool.method().to_owned(), constants.to_owned()];
        table.row(words.map(Cell::from));
    }
    for (program, version) in [
        ("Iperf", "1.70"),
        ("Poisson Traffic Generator", "1.2"),
        ("D-ITG", "2.4"),
        ("TG", "2.0"),
        ("MGEN", "4.0"),
    ] {
        let words =
            [program, version, "lastmile traffic; iperf3, mgen and D-ITG beside it (figures 3, 4)", ""];
        table.row(words.map(Cell::from));
    }
    table
}

/// Tables III to VII: a tool's parameters, and what stands for each here.
pub(super) fn parameters(rows: &'static [[&'static str; 3]]) -> Table {
    let mut table = Table::new(&["parameter", "in_the_paper", "here"]);
    for row in rows {
        table.row(row.map(Cell::from));
    }
    table
}

/// Table III.
pub(super) const IGI: &[[&str; 3]] = &[
    ["packet number", "60 packets", "train_length 60"],
    ["packet size", "500 bytes", "packet_size 528 B with headers: 500 B of payload"],
    ["mode", "binary", "search binary, trains 1"],
];
/// Table IV.
pub(super) const PATHLOAD: &[[&str; 3]] = &[
    ["fleet length", "12 streams", "streams 12"],
    ["stream length", "100 packets", "packets 100"],
    ["bandwidth resolution", "200 kbps", "omega 200 kbit/s"],
    ["grey region resolution", "200 kbps", "chi 200 kbit/s"],
    ["PCT threshold", "0.55", "0.495 and 0.605: the band of 1.3.2 about it"],
    ["PDT threshold", "0.4", "0.36 and 0.44: the same"],
    ["aggregate threshold", "0.6", "0.6"],
];
/// Table V.
pub(super) const PATHCHIRP: &[[&str; 3]] = &[
    ["packet size", "1000 bytes", "packet_size 1000 B"],
    ["spread factor", "1.2", "gamma 1.2"],
    ["decrease factor", "1.5", "decrease 1.5"],
    ["busy period threshold", "5", "busy 5"],
    ["convergence bound", "25 seconds", "max_span 25 s, converged 0"],
];
/// Table VI.
pub(super) const SPRUCE: &[[&str; 3]] = &[
    ["packet size", "1500 bytes", "packet_size 1500 B"],
    ["packet pairs", "100", "pairs 100"],
    ["capacity", "known", "capacity 10 Mbit/s"],
];
/// Table VII.
pub(super) const DIETTOPP: &[[&str; 3]] = &[
    ["packet size", "1500 bytes", "packet_size 1461 B: 1500 B with the framing that the program counts"],
    ["proportional share: packets", "48", "share_length 48"],
    ["proportional share: trains", "10", "share_trains 10"],
    ["proportional share: step", "1", "one rate, back to back"],
    ["bandwidth: packets", "16", "train_length 16 below 11 Mibit/s"],
    ["bandwidth: trains", "5", "trains 5"],
    ["bandwidth: step", "10", "levels 10"],
];

/// Table VIII.
pub(super) fn table_8() -> Table {
    let mut table = Table::new(&["device", "in_the_paper", "here"]);
    for row in [
        ["cross traffic sender", "192.168.0.1, Dell Optiplex GX150", "host cross-tx"],
        ["probe sender", "192.168.0.2, Dell Optiplex GX270", "host probe-tx"],
        ["cross traffic receiver", "192.168.1.1, Dell Optiplex GX150", "host cross-rx"],
        ["probe receiver", "192.168.1.2, Dell Optiplex GX150", "host probe-rx, its clock a second ahead"],
        ["switch (100Mbps)", "Xchanger SOHO 2080FP LAN Switch", "links of 100 Mbit/s to the router"],
        [
            "hub (10Mbps)",
            "Surecom EtherPerfect 508T",
            "the link from the router to hub, 10 Mbit/s on the wire",
        ],
    ] {
        table.row(row.map(Cell::from));
    }
    table
}

/// The rest that cross traffic leaves, at each layer, and how much of RED's average a ratio of marks needs.
pub(super) fn ideals() -> Table {
    let mut table = Table::new(&[
        "cross_mbps",
        "on_the_wire",
        "the_paper_has_left",
        "left_on_the_wire",
        "left_in_ip_1500_b",
        "left_in_ip_500_b",
        "left_in_payload_500_b",
    ]);
    let exact = |value: f64| Cell::Exact(Some(value), None);
    for load in [LOADS.as_slice(), &[HALF]].concat() {
        let mbps = f64::from(load);
        let payload =
            left_in(mbps, cases::CROSS + cases::HEADERS) * cases::CROSS / (cases::CROSS + cases::HEADERS);
        table.row([
            Cell::from(load.to_string()),
            exact(on_the_wire(mbps)),
            exact(HUB - mbps),
            exact(left(mbps)),
            exact(left_in(mbps, 1500.0)),
            exact(left_in(mbps, 500.0)),
            exact(payload),
        ]);
    }
    table
}

/// Packets of the paper's train, and bytes of each as RED counts them.
const TRAIN: (u32, f64) = (60, 500.0 + FRAMING);

/// The average queue and the expected marks of a train that comes back to back to an empty queue, after each packet; `drains` of what
/// comes leaves meanwhile.
fn marks(drains: f64) -> Vec<[f64; 4]> {
    // tc's weight for burst 20, min 12000 and avpkt 1000 is 1/16.
    let (min, max, probability, weight) = (12_000.0, 32_000.0, 0.02, 1.0 / 16.0);
    let (mut average, mut expected) = (0.0, 0.0);
    let step = |k: u32| {
        let queue = f64::from(k) * TRAIN.1 * (1.0 - drains);
        average += weight * (queue - average);
        // Packets between two marks are uniform up to 1 / p_b, so that the mean share is twice that.
        let share = 2.0 * probability * ((average - min) / (max - min)).max(0.0);
        expected += share;
        [queue, average, 100.0 * share, expected]
    };
    (0..TRAIN.0).map(step).collect()
}

/// The paper's `tc` line by arithmetic: the queue, its average and the marks of one train, where the hub drains a tenth of what comes
/// at 100 Mbit/s, and where nothing drains.
pub(super) fn red() -> Table {
    let columns = [
        "of_100_mbps_drain",
        "packets",
        "queue_b",
        "average_b",
        "marked_on_the_mean_percent",
        "marks_so_far",
    ];
    let mut table = Table::new(&columns);
    for drains in [0.1, 0.0] {
        for (k, numbers) in (1..).zip(marks(drains)).filter(|(k, _)| k % 10 == 0) {
            let words = [format!("{:.0} Mbit/s", 100.0 * drains), k.to_string()].map(Cell::from);
            table.row(words.into_iter().chain(numbers.map(|value| Cell::Exact(Some(value), None))));
        }
    }
    table
}

/// Box plots of the estimate, the time and the bytes of some cases.
fn box_plots(results: &Results, table: &mut Table, cases: &[(String, Case)], ideal: &[(f64, &str)]) {
    let of = |what: &str| {
        let each = |(name, case): &(String, Case)| (name.clone(), results.values(case, what), None);
        cases.iter().map(each).collect::<Vec<_>>()
    };
    let ideal = ideal.iter().map(|(value, words)| (*value, *words));
    table.chart(Chart::boxes("Estimate", "Mbit/s", of("estimate")).stated(ideal));
    table.chart(Chart::boxes("Convergence", "s", of("seconds")));
    table.chart(Chart::boxes("Overhead", "MByte", of("megabytes")));
    table.chart(Chart::boxes("Mean probing rate", "kbit/s", of("kbps")));
}

/// Columns of a table of tools.
const COSTS: [&str; 8] = [
    "estimate_mbps",
    "spread_mbps",
    "estimate_on_the_wire_mbps",
    "off_percent",
    "ended_percent",
    "seconds",
    "megabytes",
    "probing_kbps",
];

/// Cells of a case in those columns, with the paper's numbers of the estimate, the time and the bytes.
fn cells(results: &Results, case: &Case, paper: [Option<f64>; 3]) -> Vec<Cell> {
    let mean = |what: &str| results.mean(case, what);
    vec![
        (mean("estimate"), paper[0]).into(),
        mean_spread(results, case).into(),
        mean("wire").into(),
        mean("off").into(),
        Cell::Exact(mean("ended").map(|mean| mean.mean), None),
        (mean("seconds"), paper[1]).into(),
        (mean("megabytes"), paper[2]).into(),
        mean("kbps").into(),
    ]
}

/// Figures 8 and 9: five tools beside 5 Mbit/s.
pub(super) fn five(results: &Results, kind: Kind) -> Table {
    let columns: Vec<_> = ["tool"].into_iter().chain(COSTS).collect();
    let mut table = Table::new(&columns);
    let mut cases = Vec::new();
    for tool in FIVE {
        let case = cases::tool(tool, kind, HALF);
        let paper = ["", "_seconds", "_megabytes"].map(|what| {
            let printed = printed(&format!("{}{what}", tool.name().to_lowercase()));
            printed.filter(|_| kind == Kind::Cbr)
        });
        table.row([Cell::from(tool.name())].into_iter().chain(cells(results, &case, paper)));
        cases.push((tool.name().to_owned(), case));
    }
    let ideal = [(HUB - f64::from(HALF), "the paper's ideal"), (left(f64::from(HALF)), "left on the wire")];
    box_plots(results, &mut table, &cases, &ideal);
    table
}

/// Figure 8 in other readings.
pub(super) fn readings(results: &Results) -> Table {
    let columns: Vec<_> = ["tool", "left_on_the_wire"].into_iter().chain(COSTS).collect();
    let mut table = Table::new(&columns);
    for (name, case, left) in [
        ("DietTOPP without the share", cases::diettopp_without_share(), left(f64::from(HALF))),
        ("Spruce", cases::half_of_the_wire(Tool::Spruce), HUB / 2.0),
    ] {
        let left = Cell::Exact(Some(left), None);
        table.row([Cell::from(name), left].into_iter().chain(cells(results, &case, [None; 3])));
    }
    table
}

/// Figure 8 where hosts delay packets at random.
pub(super) fn noise(results: &Results) -> Table {
    let columns: Vec<_> = ["delay_us_up_to", "tool"].into_iter().chain(COSTS).collect();
    let mut table = Table::new(&columns);
    for (most, tool) in each(&cases::NOISES, &FIVE) {
        let words = [most.to_string(), tool.name().to_owned()].map(Cell::from);
        let case = cases::noisy(tool, Kind::Cbr, most);
        table.row(words.into_iter().chain(cells(results, &case, [None; 3])));
    }
    table
}

/// ECNProbe beside traffic that takes so much of the wire.
pub(super) fn wire(results: &Results) -> Table {
    let columns: Vec<_> =
        ["cross_traffic", "on_the_wire", "left_on_the_wire"].into_iter().chain(COSTS).collect();
    let mut table = Table::new(&columns);
    for (load, kind) in cases::beside(&LOADS) {
        let name = if load > 0 { kind.name() } else { "none" };
        let numbers = [f64::from(load), HUB - f64::from(load)].map(|mbps| Cell::Exact(Some(mbps), None));
        let case = cases::of_the_wire(Tool::Ours.method(), kind, load);
        table.row([Cell::from(name)].into_iter().chain(numbers).chain(cells(results, &case, [None; 3])));
    }
    table
}

/// Tools, or settings of one, at all loads.
pub(super) fn loads(
    results: &Results,
    tools: &[Tool],
    loads: &[(u32, Kind)],
    of: &dyn Fn(Tool, Kind, u32) -> Case,
) -> Table {
    let columns: Vec<_> = ["tool", "cross_traffic", "mbps", "the_paper_has_left", "left_on_the_wire"]
        .into_iter()
        .chain(COSTS)
        .collect();
    let mut table = Table::new(&columns);
    for &tool in tools {
        for &(load, kind) in loads {
            let name = if load > 0 { kind.name() } else { "none" };
            let mbps = f64::from(load);
            let words = [tool.name(), name].map(Cell::from);
            let ideal = [HUB - mbps, left(mbps)].map(|ideal| Cell::Exact(Some(ideal), None));
            table.row(words.into_iter().chain([Cell::from(load.to_string())]).chain(ideal).chain(cells(
                results,
                &of(tool, kind, load),
                [None; 3],
            )));
        }
    }
    table
}

/// Figures 10 and 11: ECNProbe at five loads, the paper's settings and ours.
pub(super) fn ecnprobe(results: &Results, kind: Kind, tools: &[Tool]) -> Table {
    let at: Vec<(u32, Kind)> = LOADS.map(|load| (load, if load > 0 { kind } else { Kind::Cbr })).to_vec();
    let mut table = loads(results, tools, &at, &cases::tool);
    for &tool in tools {
        let of = |what: &str| {
            let each = |&(load, kind): &(u32, Kind)| {
                (format!("{load} Mbit/s"), results.values(&cases::tool(tool, kind, load), what), None)
            };
            at.iter().map(each).collect::<Vec<_>>()
        };
        let ideal =
            (1_u32..).zip(LOADS).map(|(k, load)| (f64::from(k), Mean::exactly(left(f64::from(load)))));
        let title = format!("{}: estimate on the wire", tool.name());
        table.chart(Chart::boxes(title, "Mbit/s", of("wire")).beside("left", ideal.collect()));
        table.chart(Chart::boxes(format!("{}: convergence", tool.name()), "s", of("seconds")));
        table.chart(Chart::boxes(format!("{}: overhead", tool.name()), "MByte", of("megabytes")));
    }
    table
}

/// Lengths of a session of pathChirp, in seconds [figure 7].
pub(super) const SESSIONS: [u32; 7] = [5, 10, 15, 20, 25, 40, 60];

/// A session of that length.
pub(super) fn session(kind: Kind, seconds: u32) -> Case {
    let method = Tool::Pathchirp.method().replace("max_span=25 s", &format!("max_span={seconds} s"));
    cases::case(method, kind, HALF)
}

/// Figure 7: estimates of pathChirp by the length of its session, and how far they are from their median.
pub(super) fn pathchirp(results: &Results) -> Table {
    let mut table = Table::new(&["cross_traffic", "session_s", "estimate_mbps", "spread_mbps", "megabytes"]);
    for (kind, seconds) in each(&KINDS, &SESSIONS) {
        let case = session(kind, seconds);
        table.row([
            Cell::from(kind.name()),
            Cell::from(seconds.to_string()),
            results.mean(&case, "estimate").into(),
            mean_spread(results, &case).into(),
            results.mean(&case, "megabytes").into(),
        ]);
    }
    let names = KINDS.map(Kind::name);
    let kind = |name: &str| KINDS.into_iter().find(|kind| kind.name() == name).unwrap_or(Kind::Cbr);
    let drawn =
        lines(&names, &SESSIONS, |name, seconds| results.mean(&session(kind(name), seconds), "estimate"));
    let ideal = [(left(f64::from(HALF)), "left on the wire")];
    table.chart(Chart::new("Estimate by the length of the session", "s", "Mbit/s", drawn).stated(ideal));
    table
}

/// Figures 5 and 6: the gaps of probing sequences.
pub(super) fn sequences(results: &Results, tools: &[Tool]) -> Table {
    let mut table = Table::new(&["tool", "gaps", "median_error_percent"]);
    for &tool in tools {
        let case = cases::tool(tool, Kind::Cbr, HALF);
        let mean = |what: &str| results.mean(&case, what);
        table.row([Cell::from(tool.name()), mean("gaps").into(), mean("gap_error").into()]);
        let line = vec![(tool.name().to_owned(), results.line(&case, "gaps"))];
        table.chart(Chart::new(format!("Gaps of {}", tool.name()), "gap", "ms", line));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: a ramp of 484.2 B a packet, of which the average is 15 packets behind but for 14 / 15 ^ ... of its start: 59 * 484.2 - 15 * 484.2 * (1 -
    /// (15/16)^60).
    #[test]
    fn a_train_marks_less_than_half_a_packet() {
        let [queue, average, _, expected] = *marks(0.1).last().unwrap();
        let hand = 59.0 * 484.2 - 15.0 * 484.2 * (1.0 - (15.0_f64 / 16.0).powi(59));
        assert!(
            (queue - 59.0 * 484.2).abs() < 1e-6 && (average - hand).abs() < 1.0,
            "{queue} {average} {hand}"
        );
        assert!(expected < 0.5, "{expected}");
    }
}
