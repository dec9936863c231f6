//! The paper's claims, decided by medians over the runs, and other set-ups in which they hold.

use super::cases::{self, FIVE, HALF, KINDS, Kind, LOADS, Tool, as_tc_reads, beside};
use super::future::{OURS, Setting};
use super::generators::{Generator, OTHERS, RATES};
use super::judge::{costs, differs_more, estimate, mean_spread, near, varies_more};
use super::{GAP_BASED, OTHERS as OTHER_TOOLS, RATE_BASED};
use crate::papers::results::Results;
use crate::papers::{Bar, Case, Claim, Middle, Parts, Stated, each};
use lastmile_report::Mean;

pub(super) fn claims() -> Vec<Claim> {
    let mut all = of_the_paper();
    all.extend(otherwise(&all));
    all
}

fn of_the_paper() -> Vec<Claim> {
    vec![
        Claim::new(
            "e1",
            "ECNProbe with the paper's defaults is within 10 % of the ideal at 0, 2, 4, 6, 8 Mbit/s of CBR",
            Stated::words(
                "section IV-E, figure 10",
                "\"ECNProbe returns available bandwidth estimates consistently in the close proximity of the ideal values\"",
                "an estimate in more than half of the runs, within 10 % of what is left on the wire",
            ),
            &["figure-10"],
            |results| near(results, &[Kind::Cbr], &|kind, load| cases::tool(Tool::EcnProbe, kind, load)),
        )
        .cause(FEW_MARKS),
        Claim::new(
            "e2",
            "the same with Poisson",
            Stated::words(
                "section IV-E, figure 11",
                "\"With both CBR and Poisson cross traffic\" the estimates are close to the ideal values",
                "an estimate in more than half of the runs, within 10 % of what is left on the wire",
            ),
            &["figure-10", "figure-11"],
            |results| near(results, &[Kind::Poisson], &|kind, load| cases::tool(Tool::EcnProbe, kind, load)),
        )
        .cause(FEW_MARKS),
        Claim::new(
            "e3",
            "ECNProbe with our documented defaults is within 10 % at all five loads, CBR and Poisson",
            Stated::words(
                "section IV-E",
                "\"There might be room for improving the performance by setting the optimal parameters for the probing\"",
                "within 10 % of what is left on the wire at each load",
            ),
            &["figure-10", "figure-11"],
            |results| near(results, &KINDS, &|kind, load| cases::tool(Tool::Ours, kind, load)),
        ),
        Claim::new(
            "e4",
            "most ECNProbe runs end within 10 s; the longest are those without cross traffic",
            Stated::numbers(
                "section IV-E, figures 10 and 11",
                "\"most ECNProbe runs terminate in less than 10 seconds\"; those above 10 s \"occur when there is no cross traffic\"",
            ),
            &["figure-10", "figure-11"],
            |results| durations(results, Tool::EcnProbe),
        )
        .cause("Cause: as in e1 no search ends but beside 8 Mbit/s: the others are given up at four times the first rate, after four trains. Searches that end \
             take longer the less is left, since a train lasts W L / x: with our defaults 7 s idle and 35 s beside 8 Mbit/s (x5)"),
        Claim::new(
            "e5",
            "ECNProbe sends less than Pathload and at most 3 times IGI's bytes",
            Stated::words(
                "section IV-E, figures 10 and 11",
                "its overhead \"is a little higher than IGI and pathChirp with the same order of the traffic volume\", \"significant lower overhead than \
                 Pathload\"",
                "less than Pathload's bytes, at most three times IGI's, on the median over loads, paired by seed",
            ),
            &["figure-10", "figure-11", "loads"],
            |results| overheads(results, Tool::EcnProbe),
        ),
        Claim::new(
            "e6",
            "CBR 5: IGI 4.0-5.2, Pathload 3.6-5.4, DietTOPP 3.9-4.9, Spruce's median 4.5-5.5",
            Stated::numbers(
                "section IV-D, figure 8",
                "IGI 4.6, Pathload 4.0, DietTOPP 4.4 Mbit/s, Spruce in the range of 5 Mbit/s",
            ),
            &["figure-8"],
            |results| {
                let bars = [(Tool::Igi, 4.0, 5.2), (Tool::Pathload, 3.6, 5.4), (Tool::Diettopp, 3.9, 4.9), (Tool::Spruce, 4.5, 5.5)];
                Parts::each("Mbit/s", bars, |(tool, low, high)| {
                    (tool.name().to_owned(), estimate(results, tool, Kind::Cbr, HALF), Bar::between(low, high))
                })
            },
        )
        .cause("Cause: the program of 2004 takes the proportional share as one more point of DietTOPP's line; without it the line says 4.2 (x9). Spruce is told \
             10 Mbit/s, and 4.23 of these are left in its packets; where half of the wire is left it says 4.7 (x10)"),
        Claim::new(
            "e7",
            "Pathload is the slowest and sends the most; pathChirp varies more than IGI and Pathload",
            Stated::numbers(
                "section IV-D, figure 8",
                "Pathload 70 s and 3 MB, pathChirp 25 s and 1 MB, Spruce 10 s, DietTOPP 14 s and 2 MB; pathChirp \"more significant variable\" than IGI and \
                 Pathload",
            ),
            &["figure-8"],
            |results| slowest(results, Kind::Cbr),
        )
        .cause("Cause: hosts and CBR are exact to the nanosecond here, so that pathChirp says the same in each run. Pathload is the slowest and sends the most. Where \
             hosts delay each packet at random it varies more than Pathload, and not surely less than IGI (x14). Under Poisson it varies most: x11"),
        Claim::new(
            "e8",
            "every tool varies more under Poisson than under CBR; most pathChirp runs over-estimate under Poisson",
            Stated::words(
                "section IV-D, figures 8 and 9",
                "\"all the five tool under investigation much more variable estimates\"; \"most of the pathChirp measurements over estimate\"",
                "a larger mean distance from the median, and more than half of pathChirp's runs above what is left on the wire",
            ),
            &["figure-8", "figure-9"],
            |results| vary(results, &varies_more),
        )
        .cause("Presumed: phases of CBR mislead IGI's search of one train a gap, so that it varies beside CBR too. By the median distance: x12"),
        Claim::new(
            "e9",
            "our CBR and Poisson generators follow the ideal distributions of inter-packet times better than the three others beside them (figures 3, 4; lab)",
            Stated::words(
                "section IV-B, figures 3 and 4",
                "\"the D-ITG failed to generate a constant bit rate\"; \"only the Poisson traffic generator is able to generate a good Poisson traffic stream\"",
                "a smaller distance of Kolmogorov and Smirnov than each other generator, the mean over the rates, run by run",
            ),
            &["figure-3", "figure-4"],
            generated,
        )
        .lab(),
        Claim::new(
            "e10",
            "probing sequences hold their gaps: median error of a gap below 2 %, for all tools (figures 5, 6; lab)",
            Stated::words(
                "section IV-C, figures 5 and 6",
                "\"both the gap-based and rate-based probing sequences can be generated with reasonably good accuracy\"",
                "half of the gaps of each tool within 2 % of the planned ones",
            ),
            &["figure-5", "figure-6", "sequences"],
            sequences,
        )
        .lab(),
    ]
}

/// Of e1, e2 and x3.
const FEW_MARKS: &str = "Cause: the average of the paper's line lags by 15 packets. A train of 60, 32,280 B with the framing that RED counts, back to back on an \
     empty queue, takes it to 21.5 kB and marks 0.2 packets on the mean, 23.9 kB and 0.3 if nothing drains (item `red`): a ratio of 0.05 needs 3. The \
     most marked train of half of the runs has no mark: no search ends but beside 8 Mbit/s, by chance. Behind a queue that marks from two packets on e1 \
     holds (x1); with our W and ratio see e3";

/// Claims of the paper in other set-ups.
fn otherwise(claims: &[Claim]) -> Vec<Claim> {
    let again =
        |id, claim, items, decide: fn(&Results) -> Parts| Claim::again(claims, id, claim, items, decide);
    vec![
        again("x1", "e1 behind a queue that marks from two packets on", &["sharp"], |results| {
            near(results, &[Kind::Cbr], &cases::sharp)
        }),
        again("x2", "e2 behind a queue that marks from two packets on", &["sharp"], |results| {
            near(results, &[Kind::Poisson], &cases::sharp)
        })
        .cause("Cause: two packets of Poisson traffic meet without any train, the more the higher the load"),
        again("x3", "e1 where `bandwidth 10000` is 10 kbit/s", &["bandwidth"], |results| {
            near(results, &[Kind::Cbr], &|kind, load| as_tc_reads(cases::tool(Tool::EcnProbe, kind, load)))
        })
        .cause(FEW_MARKS),
        again("x4", "e3 where `bandwidth 10000` is 10 kbit/s", &["bandwidth"], |results| {
            near(results, &KINDS, &|kind, load| as_tc_reads(cases::tool(Tool::Ours, kind, load)))
        })
        .cause("Cause: idle, the average of one train is still there when the next one comes, which is marked at any rate; cross traffic carries it away"),
        again("x5", "e4 with our defaults", &["figure-10", "figure-11"], |results| durations(results, Tool::Ours))
            .cause("By arithmetic: a train lasts W L / x, 0.4 s idle and 4.3 s beside 8 Mbit/s"),
        again("x6", "e5 with our defaults", &["figure-10", "figure-11", "loads"], |results| {
            overheads(results, Tool::Ours)
        })
        .cause("By arithmetic: a train has 480 kB, and a search 8 to 10 of them"),
        again("x7", "e6 against what is left on the wire, within 10 %", &["figure-8"], |results| {
            let tools = [Tool::Igi, Tool::Pathload, Tool::Diettopp, Tool::Spruce];
            Parts::each("%", tools, |tool| {
                let off = results.median(&cases::tool(tool, Kind::Cbr, HALF), "off");
                (format!("{}, off by", tool.name()), off, Bar::within(10.0))
            })
        })
        .cause("Cause: DietTOPP's is that of e6. Presumed for IGI: one train of 60 at each gap, beside equal gaps of others, comes as it went at rates above what is \
             left"),
        again("x8", "e1 with W 960 and the paper's ratio of 0.05", &["sweep"], |results| {
            let setting = Setting { ratio: 0.05, ..OURS };
            let mut parts = Parts::of("%");
            for (load, kind) in beside(&super::future::SWEPT) {
                let what = format!("beside {load} Mbit/s of {}, off by", kind.name());
                parts.value(what, results.median(&setting.case(kind, load), "off"), Bar::within(10.0));
            }
            parts
        })
        .cause("Cause: a queue that marks a twentieth of the train drops a twentieth of the others, and the train takes their place"),
        again("x9", "e6's DietTOPP without the proportional share as a point of its line", &["readings"], |results| {
            let found = results.median(&cases::diettopp_without_share(), "estimate");
            Parts::each("Mbit/s", [found], |found| ("DietTOPP".to_owned(), found, Bar::between(3.9, 4.9)))
        }),
        again("x10", "e6's Spruce where half of the wire is left", &["readings"], |results| {
            let found = results.median(&cases::half_of_the_wire(Tool::Spruce), "estimate");
            Parts::each("Mbit/s", [found], |found| ("Spruce".to_owned(), found, Bar::between(4.5, 5.5)))
        }),
        again("x13", "e3 where cross traffic takes 2, 4, 6 and 8 Mbit/s of the wire", &["wire"], |results| {
            near(results, &KINDS, &|kind, load| cases::of_the_wire(Tool::Ours.method(), kind, load))
        }),
        again("x11", "e7 under Poisson", &["figure-9"], |results| slowest(results, Kind::Poisson)),
        again("x14", "e7 where each host delays each packet by 0 to 0.5 ms, evenly", &["noise"], |results| {
            slowest_of(results, &|tool| cases::noisy(tool, Kind::Cbr, cases::NOISE))
        }),
        again("x12", "e8 by the median distance from the median", &["figure-8", "figure-9"], |results| {
            vary(results, &differs_more)
        }),
    ]
}

/// The loads of figures 10 and 11 beside which something is sent.
fn loaded() -> Vec<(u32, Kind)> {
    beside(&LOADS).into_iter().filter(|(load, _)| *load > 0).collect()
}

/// e4: the share of runs that end within 10 s with an estimate, and the idle path's time beside the longest of the others.
fn durations(results: &Results, tool: Tool) -> Parts {
    let (mut shares, mut seconds) = (Parts::of("% of the runs"), Parts::of("s"));
    let case = |(load, kind): (u32, Kind)| cases::tool(tool, kind, load);
    let runs: Vec<(f64, f64)> = beside(&LOADS)
        .into_iter()
        .flat_map(|at| {
            results.values(&case(at), "seconds").into_iter().zip(results.values(&case(at), "ended"))
        })
        .collect();
    let share = |is: &dyn Fn(&(f64, f64)) -> bool| {
        let each: Vec<f64> = runs.iter().map(|run| if is(run) { 100.0 } else { 0.0 }).collect();
        Mean::of(&each)
    };
    shares.value("ended within 10 s", share(&|run| run.0 <= 10.0), Bar::above(50.0));
    shares.beside("with an estimate", share(&|run| run.1 > 0.0));
    let idle = case((0, Kind::Cbr));
    seconds.beside("idle", results.median(&idle, "seconds"));
    for at in loaded() {
        let what = format!("idle longer than beside {} Mbit/s of {} by", at.0, at.1.name());
        seconds.value(what, results.more(&idle, &case(at), "seconds"), Bar::above(0.0));
    }
    shares.and(seconds)
}

/// e5.
fn overheads(results: &Results, tool: Tool) -> Parts {
    let (mut parts, mut volumes) = (Parts::of("%"), Parts::of("MByte"));
    for (load, kind) in beside(&LOADS) {
        let case = |tool| cases::tool(tool, kind, load);
        let at =
            if load > 0 { format!("beside {load} Mbit/s of {}", kind.name()) } else { "idle".to_owned() };
        volumes.beside(format!("{at}: {}", tool.name()), results.median(&case(tool), "megabytes"));
        let of = |other| costs(results, &case(tool), &case(other), "megabytes");
        parts.value(format!("{at}: of Pathload's bytes"), of(Tool::Pathload), Bar::below(100.0));
        parts.value(format!("{at}: of IGI's bytes"), of(Tool::Igi), Bar::or_less(300.0));
    }
    volumes.and(parts)
}

/// e7.
fn slowest(results: &Results, kind: Kind) -> Parts {
    slowest_of(results, &|tool| cases::tool(tool, kind, HALF))
}

fn slowest_of(results: &Results, case: &dyn Fn(Tool) -> Case) -> Parts {
    let (mut seconds, mut volumes, mut spreads) = (Parts::of("s"), Parts::of("MByte"), Parts::of("Mbit/s"));
    seconds.beside("Pathload", results.median(&case(Tool::Pathload), "seconds"));
    volumes.beside("Pathload", results.median(&case(Tool::Pathload), "megabytes"));
    spreads.beside("pathChirp, from its median", mean_spread(results, &case(Tool::Pathchirp)));
    for tool in FIVE.into_iter().filter(|tool| *tool != Tool::Pathload) {
        let more = |what| results.more(&case(Tool::Pathload), &case(tool), what);
        seconds.value(format!("longer than {} by", tool.name()), more("seconds"), Bar::above(0.0));
        volumes.value(format!("more than {} by", tool.name()), more("megabytes"), Bar::above(0.0));
    }
    for tool in [Tool::Igi, Tool::Pathload] {
        let more = varies_more(results, &case(Tool::Pathchirp), &case(tool));
        spreads.value(format!("further than {} by", tool.name()), more, Bar::above(0.0));
    }
    seconds.and(volumes).and(spreads)
}

/// e8.
fn vary(results: &Results, more_than: &dyn Fn(&Results, &Case, &Case) -> Option<Middle>) -> Parts {
    let (mut spreads, mut over) = (Parts::of("Mbit/s"), Parts::of("% of the runs"));
    for tool in FIVE {
        let [cbr, poisson] = KINDS.map(|kind| cases::tool(tool, kind, HALF));
        spreads.beside(format!("{} under CBR", tool.name()), mean_spread(results, &cbr));
        let more = more_than(results, &poisson, &cbr);
        spreads.value(
            format!("{} further from its median under Poisson by", tool.name()),
            more,
            Bar::above(0.0),
        );
    }
    let off = results.values(&cases::tool(Tool::Pathchirp, Kind::Poisson, HALF), "off");
    let shares: Vec<f64> = off.iter().map(|off| if *off > 0.0 { 100.0 } else { 0.0 }).collect();
    over.value("pathChirp above what is left under Poisson", Mean::of(&shares), Bar::above(50.0));
    spreads.and(over)
}

/// e9: the mean distance over the rates, seed by seed.
fn generated(results: &Results) -> Parts {
    let mut parts = Parts::of("points");
    for (kind, other) in each(&KINDS, &OTHERS) {
        let of = |generator: Generator| RATES.map(|mbps| generator.case(kind, mbps));
        let ([Some(a), Some(b), Some(c), Some(d)], [Some(e), Some(f), Some(g), Some(h)]) =
            (of(Generator::Own), of(other))
        else {
            continue;
        };
        let own = results.paired([&a, &b, &c, &d], "distance", |each| each.iter().sum::<f64>() / 4.0);
        let more =
            results.paired([&a, &b, &c, &d, &e, &f, &g, &h], "distance", |[a, b, c, d, e, f, g, h]| {
                (e + f + g + h - a - b - c - d) / 4.0
            });
        let what = format!("{}: {}", kind.name(), other.name());
        parts.beside(format!("{}, ours beside {}", kind.name(), other.name()), own);
        parts.value(format!("{what} further from the ideal than ours by"), more, Bar::above(0.0));
    }
    parts
}

/// e10.
fn sequences(results: &Results) -> Parts {
    let tools = [&GAP_BASED[..], &RATE_BASED, &OTHER_TOOLS].concat();
    Parts::each("%", tools, |tool| {
        let case = cases::tool(tool, Kind::Cbr, HALF);
        (
            format!("{}, median error of a gap", tool.name()),
            results.median(&case, "gap_error"),
            Bar::below(2.0),
        )
    })
}
