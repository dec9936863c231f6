//! Section 4 and figures 1 to 3, from runs on the wired link: windows in packets, rounds of the round-trip time.

use lastmile_sim::monitor::series::SeriesRow;

use super::cases::{SetUp, alone};
use crate::papers::Shown::{Mean, Over};
use crate::papers::results::Results;
use crate::papers::{Bar, Case, Item, Lines, Number, Parts, Row, Run, each};
use lastmile_report::table::{Cell, Chart, Table};

/// IP bits of a packet.
const PACKET: f64 = 8_000.0;
/// The link's rate, and the round-trip time while its queue is empty: 20 ms each way, and a packet's time on both links.
const LINK: f64 = 11e6;
const LEAST_RTT: f64 = 0.04 + PACKET / LINK + PACKET / 100e6;
/// The pipe P in packets.
pub(super) const PIPE: u32 = 55;
/// Buffers B: half a pipe, one, two.
const BUFFERS: [u32; 3] = [27, PIPE, 110];
/// Windows at the start: the flow's, and that of TCP beside it.
const STARTS: [(u32, u32); 2] = [(44, 11), (11, 44)];
/// Both flows have left slow start.
const BEGINS: f64 = 0.5;
/// Shares are taken over so many rounds.
const ROUNDS: f64 = 20.0;
/// Least ratio of shares that count as equal.
const FAIR: f64 = 0.9;
/// VTP in congestion avoidance from its start, every loss one of congestion: as section 4 has it.
const SCHEMES: [&str; 5] = [
    "tcp",
    "vtp(slow_start=false)+none",
    "vtp(slow_start=false,cut=window)+none",
    "vtp(slow_start=false,hold=rounds)+none",
    "vtp(slow_start=false,hold=rounds,cut=window)+none",
];
/// Schemes alone on the link in figures 1 and 2.
const ALONE: [&str; 3] = ["tcp", "vtp+none", "vtp(cut=window)+none"];

/// A flow beside TCP that start at those windows.
fn case(scheme: &str, buffer: u32, (own, others): (u32, u32)) -> Case {
    let case = Case::new("wired")
        .set("duration", "60 s")
        .set("link.2.queue", format!("{buffer} packets"))
        .set("traffic.beside.count", 1)
        .set("traffic.beside.start_within", "100 ms")
        .set("traffic.beside.tcp.initial_ssthresh", others);
    if scheme == "tcp" {
        return case
            .set("stream.flow.count", 0)
            .set("traffic.flow.count", 1)
            .set("traffic.flow.start_within", "100 ms")
            .set("traffic.flow.tcp.initial_ssthresh", own);
    }
    // TCP's slow start takes as long. A round of VTP ends with feedback: often, so that it takes a round-trip time.
    case.set("stream.flow.control", scheme)
        .set("stream.flow.start", "200 ms")
        .set("stream.flow.start_within", "100 ms")
        .set("stream.flow.feedback", "10 ms")
        .set("stream.flow.start_rate", format!("{:.0} bit/s", f64::from(own) * PACKET / LEAST_RTT))
}

fn lone(scheme: &str) -> Case {
    alone(SetUp::Wired, scheme, 0)
}

/// A step of a run: its end, its length in rounds and the round-trip time, and the rows of the flow and of TCP beside it.
struct Step<'a> {
    at: f64,
    rounds: f64,
    rtt: f64,
    lost: u64,
    flow: &'a SeriesRow,
    beside: Option<&'a SeriesRow>,
}

fn steps<'a>(run: &Run<'a>) -> Vec<Step<'a>> {
    let seen = run.seen;
    let mut beside = seen.of("flow", "beside-1");
    let (mut before, mut all) = (0.0, Vec::new());
    for (link, flow) in seen.of("link", "r1>r2").zip(seen.of("flow", "flow-1")) {
        let rtt = LEAST_RTT + 8.0 * link.queue_mean_bytes.unwrap_or(0.0) / LINK;
        let (at, lost) = (link.at_s, link.lost.unwrap_or(0));
        all.push(Step { at, rounds: (at - before) / rtt, rtt, lost, flow, beside: beside.next() });
        before = at;
    }
    all
}

/// Numbers of a run on the wired link.
pub(super) fn measure(run: &Run<'_>, put: &mut dyn FnMut(&'static str, Option<f64>)) {
    if run.scenario.name != "vtp-wired" {
        return;
    }
    let steps = steps(run);
    if steps.iter().any(|step| step.beside.is_some()) {
        return put("rounds", until_fair(&steps));
    }
    let late = || steps.iter().filter(|step| step.at > 20.0);
    let windows: Vec<f64> = late().filter_map(|step| step.flow.window_packets).collect();
    put("window_high", windows.iter().copied().reduce(f64::max));
    put("window_low", windows.iter().copied().reduce(f64::min));
    put("overflows", Some(late().map(|step| step.lost).sum::<u64>() as f64));
    if let Some(around) = Around::of(&steps) {
        put("rate_before", Some(around.before / 1e6));
        put("area", Some(around.area));
    }
}

/// A loss, in bit/s and seconds.
struct Around {
    at: f64,
    /// The rate in the second before.
    before: f64,
    /// Packets that were not sent, up to the next loss or for 5 s: A1, A2.
    area: f64,
}

impl Around {
    /// The first one after 20 s that no other comes right before.
    fn of(steps: &[Step<'_>]) -> Option<Around> {
        let losses: Vec<f64> = steps.iter().filter(|step| step.lost > 0).map(|step| step.at).collect();
        let alone = |pair: &&[f64]| pair[1] > 20.0 && pair[1] - pair[0] > 1.0;
        let at = losses.windows(2).find(alone)?[1];
        let until =
            losses.iter().copied().find(|&next| next > at + 0.5).map_or(at + 5.0, |next| next.min(at + 5.0));
        let sent = |from: f64, to: f64| -> (f64, f64) {
            let within = steps.iter().filter(|step| step.at > from + 0.025 && step.at < to + 0.025);
            within
                .fold((0.0, 0.0), |(bits, over), step| (bits + step.flow.sent_bps.unwrap_or(0.0), over + 1.0))
        };
        let (bits, n) = sent(at - 1.0, at);
        let before = bits / n;
        let (bits, n) = sent(at, until);
        let step = (until - at) / n;
        Some(Around { at, before, area: (before * n - bits) * step / PACKET })
    }
}

/// Rounds until the means over the last [`ROUNDS`] of both flows' rates are within a tenth; all that there were, if never.
fn until_fair(steps: &[Step<'_>]) -> Option<f64> {
    let steps: Vec<&Step<'_>> = steps.iter().filter(|step| step.at > BEGINS).collect();
    let (mut first, mut over, mut rounds, mut sums) = (0, 0.0, 0.0, [0.0; 2]);
    let rates = |step: &Step<'_>| {
        [Some(step.flow), step.beside].map(|row| row.and_then(|row| row.goodput_bps).unwrap_or(0.0))
    };
    for step in &steps {
        (rounds, over) = (rounds + step.rounds, over + step.rounds);
        sums = [0, 1].map(|flow| sums[flow] + rates(step)[flow]);
        while over - steps[first].rounds >= ROUNDS {
            over -= steps[first].rounds;
            sums = [0, 1].map(|flow| sums[flow] - rates(steps[first])[flow]);
            first += 1;
        }
        let [more, less] = [sums[0].max(sums[1]), sums[0].min(sums[1])];
        if over >= ROUNDS && less >= FAIR * more {
            return Some(rounds);
        }
    }
    (!steps.is_empty()).then_some(rounds)
}

/// Lines drawn of it.
pub(super) fn draw(run: &Run<'_>, lines: &mut Lines) {
    if run.scenario.name != "vtp-wired" {
        return;
    }
    let steps = steps(run);
    let between = |from: f64, to: f64| steps.iter().filter(move |step| step.at > from && step.at <= to);
    let sent = |step: &Step<'_>| step.flow.sent_bps.unwrap_or(0.0);
    if steps.iter().any(|step| step.beside.is_some()) {
        let window = |step: &Step<'_>| step.flow.window_packets.unwrap_or(sent(step) * step.rtt / PACKET);
        let both = |step: &Step<'_>| Some((step.beside?.window_packets?, window(step)));
        lines.insert("windows".into(), between(BEGINS, 12.0).filter_map(both).collect());
        return;
    }
    let window = |step: &Step<'_>| Some((step.at, step.flow.window_packets?));
    lines.insert("window".into(), between(20.0, 40.0).filter_map(window).collect());
    lines.insert("rate".into(), between(20.0, 40.0).map(|step| (step.at, sent(step) / 1e6)).collect());
    if let Some(around) = Around::of(&steps) {
        let near = between(around.at - 1.0, around.at + 6.0);
        lines.insert("around".into(), near.map(|step| (step.at - around.at, sent(step) / 1e6)).collect());
    }
}

/// Figures 1 to 3, and how soon flows are equal.
pub(super) fn items() -> Vec<Item> {
    let beside_tcp = each(&each(&BUFFERS, &STARTS), &SCHEMES);
    let converging = beside_tcp.into_iter().map(|((buffer, start), scheme)| {
        let words = format!("{buffer} packets");
        Row::new(&[&words, &from(start), &scheme], case(scheme, buffer, start))
            .over(case("tcp", buffer, start))
    });
    let drawn = each(&STARTS, &SCHEMES[..2])
        .into_iter()
        .map(|(start, scheme)| Row::new(&[&from(start), &scheme], case(scheme, PIPE, start)));
    // A1 and A2 are half of TCP's window.
    let area = |what: &str| (what == "area").then_some(f64::from(PIPE));
    vec![
        Item::made(
            "figure-1",
            Number::Figure(1),
            "TCP NewReno alone, B = P: its window swings, its rate stays at the link's",
            vec![lone("tcp")],
            figure_1,
        ),
        Item::rows(
            "figure-2",
            Number::Figure(2),
            "the rates of TCP and of VTP around a loss, and the packets that were not sent: A1 and A2",
            &["scheme"],
            &[
                ("rate_before_mbps", Mean("rate_before")),
                ("packets_not_sent", Mean("area")),
                ("packets_lost_in_90_s", Mean("overflows")),
            ],
            ALONE.map(|scheme| Row::new(&[&scheme], lone(scheme)).paper(area)),
        )
        .drawn(|results, table| {
            let lines = ALONE.map(|scheme| (scheme.to_owned(), results.line(&lone(scheme), "around")));
            let title = "Rates around a loss, in steps of 50 ms";
            table.chart(Chart::new(title, "s after the loss", "Mbit/s", lines.into()));
        }),
        Item::rows(
            "figure-3",
            Number::Figure(3),
            "windows of TCP and of VTP from 1:4 and 4:1 on, B = P",
            &["start", "beside_tcp"],
            &[("rounds", Mean("rounds"))],
            drawn,
        )
        .drawn(|results, table| {
            for start in STARTS {
                let windows = |scheme| results.line(&case(scheme, PIPE, start), "windows");
                let lines = SCHEMES[..2].iter().map(|&scheme| (scheme.to_owned(), windows(scheme))).collect();
                let title = format!("Windows in the first 12 s, from {}", from(start));
                table.chart(Chart::new(title, "window of TCP, packets", "window of the flow", lines));
            }
        }),
        Item::rows(
            "convergence",
            None,
            "section 4: rounds until a flow and TCP beside it are within a tenth of each other, from windows of 4:1 and 1:4",
            &["buffer", "start", "beside_tcp"],
            &[("rounds", Mean("rounds")), ("rounds_over_tcp", Over("rounds"))],
            converging,
        ),
    ]
}

/// Windows at the start, in words.
fn from((own, others): (u32, u32)) -> String {
    format!("{own}:{others}")
}

fn figure_1(results: &Results) -> Table {
    let mut table = Table::new(&["quantity", "value"]);
    let case = lone("tcp");
    let (full, half) = (f64::from(2 * PIPE), f64::from(PIPE));
    for (what, number, paper) in [
        ("largest window, packets: B + P", "window_high", full),
        ("smallest window, packets: half of it", "window_low", half),
        ("rate before a loss, Mbit/s: C + 1/RTT", "rate_before", (LINK + PACKET / (2.0 * LEAST_RTT)) / 1e6),
    ] {
        let paper = Some((paper * 100.0).round() / 100.0);
        table.row([Cell::from(what), (results.mean(&case, number), paper).into()]);
    }
    for (title, y, line) in
        [("Window of TCP", "packets", "window"), ("Rate of TCP, in steps of 50 ms", "Mbit/s", "rate")]
    {
        table.chart(Chart::new(title, "s", y, vec![("tcp".to_owned(), results.line(&case, line))]));
    }
    table
}

/// Claim v14, of one of the readings of VTP.
pub(super) fn converges(results: &Results, scheme: usize) -> Parts {
    let (mut parts, mut rounds) = (Parts::of("%"), Parts::of("rounds"));
    for (buffer, start) in each(&BUFFERS, &STARTS) {
        let of = |scheme| case(scheme, buffer, start);
        let what = format!("from {} with {buffer} packets of buffer", from(start));
        rounds.beside(format!("TCP {what}"), results.median(&of("tcp"), "rounds"));
        let share = results.share(&of(SCHEMES[scheme]), &of("tcp"), "rounds");
        parts.value(format!("VTP {what}, of TCP's"), share, Bar::or_less(120.0));
    }
    rounds.and(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow has 4 of 5 for 2 s of rounds of 50 ms, then both have the same.
    #[test]
    fn rounds_until_two_flows_are_equal_by_hand() {
        let row = |bps: f64| SeriesRow { goodput_bps: Some(bps), ..SeriesRow::default() };
        let [more, less, same] = [8.0, 2.0, 5.0].map(row);
        let steps: Vec<Step<'_>> = (1..=200)
            .map(|k| {
                let at = 0.05 * f64::from(k);
                let (flow, beside) = if k <= 50 { (&more, &less) } else { (&same, &same) };
                Step { at, rounds: 1.0, rtt: 0.05, lost: 0, flow, beside: Some(beside) }
            })
            .collect();
        // From 0.5 s on 40 rounds unequal. Of 20 rounds with k equal ones the flows have 160 - 3 k and 40 + 3 k: 106 and 94 at 18,
        // 103 and 97 at 19.
        assert_eq!(until_fair(&steps), Some(59.0));
        assert_eq!(until_fair(&steps[..40]), Some(30.0), "never: all that there were");
    }
}
