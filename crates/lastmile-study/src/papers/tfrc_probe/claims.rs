//! The paper's claims, decided by medians over the runs, and other set-ups in which they hold.

use super::cases::{self, FORWARD, HAND_OFFS, LOADS, Link, NS2, OF_ONE_RUN, RFC, SAMPLES, WIFI, WIRED};
use super::measure::{FOLLOWED, LAST, MOST, NOTICED};
use super::tables::{self, after, near};
use super::{IN_LAB, INCREASES};
use crate::papers::results::Results;
use crate::papers::{Bar, Case, Claim, Parts, Stated, each};

pub(super) fn claims() -> Vec<Claim> {
    let mut all = of_the_paper();
    all.extend(otherwise(&all));
    all
}

fn of_the_paper() -> Vec<Claim> {
    vec![
        Claim::new(
            "p1",
            "table 2: the forward capacity within 1 % for every rate, traffic type and sample count; CapProbe reads the reverse 100 kbit/s",
            Stated::numbers("table 2", "TFRC Probe 0.1, 0.5, 1.0 and 5.0 Mbit/s, CapProbe 0.1 Mbit/s, under each cross traffic, with 20 and 50 samples"),
            &["table-2"],
            |results| {
                let (mut parts, mut worst) = (forward(results, &|case| case), None);
                for (load, kbps) in each(&LOADS, &FORWARD) {
                    let found = results.median(&cases::capprobe(load, kbps), "capprobe");
                    let what = format!("CapProbe at {kbps} kbit/s under {}", load.name());
                    near_in_percent(&mut parts, &what, found.map(|found| found.median / 100.0), &mut worst);
                }
                parts.beside("CapProbe's by", worst);
                parts
            },
        )
        .cause("Cause: over access links of 10 Mbit/s, which the paper does not name, the packets of a pair come to the bottleneck 1.2 ms \
             apart, and four CBR flows send a packet each millisecond. With access links of 100 Mbit/s every number is within: x8"),
        Claim::new(
            "p2",
            "wired links of table 3: within 10 % of the link rate in at least 4 of 5 runs at 20, 50 and 100 samples (lab)",
            Stated::numbers("table 3", capacities(&WIRED, &OF_ONE_RUN)),
            &["table-3"],
            |results| near_in_most(results, &WIRED, &OF_ONE_RUN, &Link::case),
        )
        .lab()
        .cause("Cause: a pair of Ethernet's is seven or eight ticks of 11 us, and windows of ten pairs with too few alike tell no number. In \
             the simulator p2 holds: x1"),
        Claim::new(
            "p3",
            "802.11b of table 4: within 10 % of P over the shortest frame exchange in at least 4 of 5 runs at 50 and 100 samples (lab)",
            Stated::numbers("table 4", capacities(&WIFI, &OF_ONE_RUN[1..])),
            &["table-4"],
            |results| near_in_most(results, &WIFI, &OF_ONE_RUN[1..], &Link::case),
        )
        .lab()
        .cause(FULL_QUEUE),
        Claim::new(
            "p4",
            "time to a given number of samples grows as the rate falls, as equation 3 says",
            Stated::numbers("tables 3 and 4", format!("medians of five runs: {}", printed_times())),
            &["table-3", "table-4"],
            |results| times(results, &Link::case),
        )
        .cause("Cause: RTP answers after two packets, the second of which leaves after a second, and slow start's losses cost another one, \
             on every link alike: the first 20 samples of 2 Mbit/s take twice what equation 3 says. From the twentieth to the \
             hundredth all links are in order. Where R t is above 110 %, a full queue breaks a third of the pairs, and equation 3 \
             counts those that arrive. With a source that takes half of what the link has: x10"),
        Claim::new(
            "p5",
            "figure 4: the estimate follows each PHY rate change within two estimate intervals; packet size follows the rate, at most 1500 bytes",
            Stated::numbers(
                "section 5.2, figure 4",
                "modes of 2, 5.5, 11, 5.5 and 2 Mbit/s at 50, 100, 150, 200 and 250 s, an estimate of 20 samples each 5 s; packets of at \
                 most 1500 bytes, as large as the rate asks for",
            ),
            &["figure-4"],
            |results| modes(results, &Case::new("modes")),
        ),
        Claim::new(
            "p6",
            "figure 6: a hand-off from 150 kbit/s to 802.11b is noticed within one estimate window",
            Stated::numbers("figure 6", "a hand-off at about the 30th pair is noticed at the 40th, the next of each 20"),
            &["figure-6"],
            |results| noticed(results, &cases::hand_off(NS2, HAND_OFFS[0].1)),
        ),
        Claim::new(
            "p7",
            "with fast rate adaptation the rate rises at least 10-fold within 10 s of the notice, without it less than 2-fold",
            Stated::numbers(
                "section 6, figure 6",
                "with fast rate adaptation from 50 kbit/s to 1.9 Mbit/s \"very fast\" after the 40th pair, without it \"very slowly\"",
            ),
            &["figure-6"],
            |results| risen(results, &|wrapper| cases::hand_off(NS2, wrapper)),
        )
        .cause(AN_ELEVENTH),
        Claim::new(
            "p8",
            "without pairs and adaptation, TFRC's increase stays at or below 0.14 packets per RTT, 0.22 with history discounting",
            Stated::numbers("sections 3.1 and 6", "at most 0.14 packets per round-trip time in each, 0.22 with history discounting"),
            &["increase"],
            |results| increases(results, &INCREASES[..2], MOST),
        )
        .cause("Cause: while the discount of the older intervals falls from 1 to a half, the average grows by more than the newest one's \
             weight: 0.23 by the formulas alone where one packet in 200 was lost. Once it has fallen: x11"),
    ]
}

/// The lab's claims in the simulator, the way down, and claims of the paper in other set-ups.
fn otherwise(claims: &[Claim]) -> Vec<Claim> {
    let again =
        |id, claim, items, decide: fn(&Results) -> Parts| Claim::again(claims, id, claim, items, decide);
    vec![
        again("x1", "p2 in the simulator, in at least 80 % of the runs", &["table-3"], |results| {
            near_in_most(results, &WIRED, &OF_ONE_RUN, &Link::case)
        }),
        again("x2", "p3 in the simulator, in at least 80 % of the runs", &["table-4"], |results| {
            near_in_most(results, &WIFI, &OF_ONE_RUN[1..], &Link::case)
        })
        .cause(FULL_QUEUE),
        Claim::new(
            "x3",
            "the way back to 150 kbit/s is noticed within 5 s, and in the 5 s after these the least that waits is below two packets of 1500 bytes",
            Stated::words(
                "section 6",
                "from HIGH to LOW \"there is immediate packet loss\", to which the sender reacts \"promptly\"; it is not run",
                "noticed within 5 s, and in the 5 s after these less than two packets of 1500 bytes always wait",
            ),
            &["figure-6"],
            |results| {
                let (mut parts, mut waits) = (Parts::of("s"), Parts::of("ms"));
                let of = |what| results.median(&cases::hand_off(NS2, HAND_OFFS[0].1), what);
                parts.value("noticed after", of(NOTICED[1].0), most(5.0));
                waits.value("always wait", of("standing_ms"), most(160.0));
                parts.and(waits)
            },
        ),
        again("x4", "p6 with RFC 5348's TFRC", &["hand-off-rfc"], |results| {
            noticed(results, &cases::hand_off(RFC, HAND_OFFS[0].1))
        }),
        again("x5", "p7 with RFC 5348's TFRC", &["hand-off-rfc"], |results| {
            risen(results, &|wrapper| cases::hand_off(RFC, wrapper))
        })
        .cause(AN_ELEVENTH),
        again("x7", "p7 where the round-trip time does not change", &["hand-off-of-one-rtt"], |results| {
            risen(results, &cases::of_one_rtt)
        }),
        again("x12", "p7 where the size of packets does not change", &["hand-off-of-one-size"], |results| {
            risen(results, &cases::of_one_size)
        })
        .cause(AN_ELEVENTH),
        again("x8", "p1's forward capacity with access links of 100 Mbit/s", &["fast-access"], |results| {
            forward(results, &cases::with_fast_access)
        }),
        again("x9", "p3 in the simulator with a source that takes half of what the link has", &["half-rate"], |results| {
            near_in_most(results, &WIFI, &OF_ONE_RUN[1..], &Link::half)
        }),
        again("x10", "p4 with a source that takes half of what the link has", &["half-rate"], |results| {
            times(results, &Link::half)
        }),
        again("x13", "p2 with real video, in the lab", &["video"], |results| {
            near_in_most(results, &WIRED, &OF_ONE_RUN, &Link::filmed)
        })
        .lab(),
        again("x14", "p3 with real video, in the lab", &["video-wifi"], |results| {
            near_in_most(results, &WIFI, &OF_ONE_RUN[1..], &Link::filmed)
        })
        .lab(),
        again("x15", "p2 with real video in the simulator, in at least 80 % of the runs", &["video"], |results| {
            near_in_most(results, &WIRED, &OF_ONE_RUN, &Link::filmed)
        }),
        again("x16", "p3 with real video in the simulator, in at least 80 % of the runs", &["video-wifi"], |results| {
            near_in_most(results, &WIFI, &OF_ONE_RUN[1..], &Link::filmed)
        }),
        again("x17", "p5 with real video in the simulator", &["video-modes"], |results| {
            modes(results, &cases::filmed(Case::new("modes")))
        }),
        again("x18", "p6 with real video in the simulator", &["video-hand-off"], |results| {
            noticed(results, &cases::of_video(HAND_OFFS[0].1))
        }),
        again("x19", "p7 with real video in the simulator", &["video-hand-off"], |results| {
            risen(results, &cases::of_video)
        }),
        again("x20", "p5 with real video, in the lab", &["video-modes"], |results| {
            modes(results, &cases::filmed(Case::new("modes")))
        })
        .lab(),
        again("x21", "p6 with real video, in the lab", &["video-hand-off"], |results| {
            noticed(results, &cases::of_video(HAND_OFFS[0].1))
        })
        .lab(),
        again("x22", "p7 with real video, in the lab", &["video-hand-off"], |results| {
            risen(results, &cases::of_video)
        })
        .lab(),
        again("x11", "p8 over the last half minute, when the discount has long fallen", &["increase"], |results| {
            increases(results, &INCREASES[..2], LAST)
        }),
        again("x6", "p8 with RFC 5348's TFRC, which discounts down to a quarter", &["increase"], |results| {
            increases(results, &INCREASES[2..], MOST)
        })
        .cause("Cause: RFC 5348 discounts older intervals to a quarter, ns-2 and the paper to a half: 0.38 by the formulas alone"),
    ]
}

/// Of p3 and x2.
const FULL_QUEUE: &str = "Cause: TFRC fills the queue, so that few pairs of a run meet none, and the second packet of each waits for a backoff of 0 \
     to 31 slots. Where the source takes half of what the link has, the least of many backoffs counts: x9";
/// Of p7, x5 and x12.
const AN_ELEVENTH: &str = "Cause: without fast rate adaptation the rate goes with 1/R, and 802.11b's round-trip time is an eleventh of 1xRTT's. Where \
     it does not change, p7 holds (x7); where the size of packets alone does not, it is as here (x12)";

/// The medians of the paper's five runs of links, and the number of the five within a tenth of the capacity for pairs.
fn capacities(links: &[Link], samples: &[u32]) -> String {
    let after = |link: Link, samples: u32| {
        let printed = tables::printed(link, samples)?;
        Some(format!("{} Mbit/s ({} of 5)", printed.capacity / 1e3, printed.near))
    };
    let of = |link: &Link| {
        let all = samples.iter().filter_map(|&samples| after(*link, samples));
        format!("{} {}", link.name(), all.collect::<Vec<_>>().join(", "))
    };
    let samples = samples.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let links = links.iter().map(of).collect::<Vec<_>>().join("; ");
    format!("after {samples} samples, medians of 5 runs (and how many are within a tenth): {links}")
}

/// The medians of the paper's five runs: times after so many samples, the fastest link first.
fn printed_times() -> String {
    let after = |&samples: &u32| {
        let time = |link| tables::printed(link, samples).map(|printed| printed.seconds.to_string());
        let times = FAST_FIRST.map(|link| time(link).unwrap_or_default());
        format!("{samples} samples after {} s", times.join(", "))
    };
    let links = FAST_FIRST.map(Link::name).join(", ");
    format!("{}, over {links}", OF_ONE_RUN.iter().map(after).collect::<Vec<_>>().join(", "))
}

/// As much or less.
fn most(high: f64) -> Bar {
    Bar::or_less(high).said(format!("{high} at most"))
}

/// A value over the right one: within 1 %. Keeps the worst, in percent.
fn near_in_percent(parts: &mut Parts, what: &str, over: Option<f64>, worst: &mut Option<f64>) {
    let off = over.map(|over| 100.0 * (over - 1.0).abs());
    *worst = (*worst).into_iter().chain(off).reduce(f64::max);
    parts.wants(what, off.map(|off| Bar::within(1.0).holds(off)));
}

/// The forward capacity in every case.
fn forward(results: &Results, of: &dyn Fn(Case) -> Case) -> Parts {
    let (mut parts, mut worst) = (Parts::of("%"), None);
    for ((load, kbps), samples) in each(&each(&LOADS, &FORWARD), &SAMPLES) {
        let found = results.median(&of(cases::table_2(load, kbps, samples)), "capacity_1");
        let what = format!("{kbps} kbit/s under {} with {samples} samples", load.name());
        near_in_percent(&mut parts, &what, found.map(|found| found.median / f64::from(kbps)), &mut worst);
    }
    parts.beside("TFRC Probe's medians off by at most", worst);
    parts
}

/// Four of five runs are within a tenth.
fn near_in_most(results: &Results, links: &[Link], samples: &[u32], case: &dyn Fn(Link) -> Case) -> Parts {
    let (mut parts, mut medians) = (Parts::of("% of the runs"), Parts::of("kbit/s"));
    for (link, samples) in each(links, samples) {
        let (near, runs) = near(results, &case(link), link, samples);
        let share = (runs as u64 >= IN_LAB).then(|| 100.0 * near as f64 / runs as f64);
        let what = format!("{} after {samples} samples", link.name());
        medians.beside(&what, results.median(&case(link), after(samples).0));
        parts.value(format!("{what}, near"), share, Bar::or_more(80.0));
    }
    medians.and(parts)
}

/// The links of tables 3 and 4, by what a pair can tell.
const FAST_FIRST: [Link; 8] = [
    Link::Ethernet,
    Link::WifiB(11_000),
    Link::WifiB(5_500),
    Link::DslDown,
    Link::WifiB(2_000),
    Link::WifiB(1_000),
    Link::OneXrtt,
    Link::DslUp,
];

/// The slower a link, the longer it takes; and as long as n S P bytes take at the rate of sending.
fn times(results: &Results, case: &dyn Fn(Link) -> Case) -> Parts {
    let mut parts = Parts::of("s");
    for samples in OF_ONE_RUN {
        let time = |link: Link| results.median(&case(link), after(samples).1);
        for link in FAST_FIRST {
            parts.beside(format!("{} after {samples}", link.name()), time(link));
        }
        for pair in FAST_FIRST.windows(2) {
            let grows =
                time(pair[0]).zip(time(pair[1])).map(|(faster, slower)| slower.median >= faster.median);
            let what = format!("{} takes longer than {} for {samples}", pair[1].name(), pair[0].name());
            parts.wants(&what, grows);
        }
    }
    let mut shares = Parts::of("% of n S P");
    for link in FAST_FIRST {
        // Bytes sent from the twentieth pair to the hundredth, over those of equation 3, in percent.
        let sent = results.paired([&case(link)], "equation_3", |[sent]| 100.0 * sent);
        shares.value(format!("{}: R t", link.name()), sent, Bar::between(90.0, 110.0));
    }
    parts.and(shares)
}

/// Figure 4.
fn modes(results: &Results, case: &Case) -> Parts {
    let (mut parts, mut seconds, mut bytes) = (Parts::of("%"), Parts::of("s"), Parts::of("bytes"));
    let mut windows = Parts::of("windows");
    let all = results.values(case, "changes").len();
    for (k, (name, ..)) in FOLLOWED.into_iter().enumerate() {
        let followed = results.values(case, name).len();
        let share = (all > 0).then(|| 100.0 * followed as f64 / all as f64);
        let what = format!("change {} followed, of the runs", k + 1);
        parts.value(what, share, Bar::above(50.0).said("more than half"));
        if followed > 0 {
            seconds.beside(format!("change {} followed after", k + 1), results.median(case, name));
        }
    }
    let what = "size off equation 4 with the receiver's rate by";
    parts.value(what, results.median(case, "size_off"), most(10.0));
    windows.beside("in which the rate asks for less than 1500 bytes", results.median(case, "sized"));
    bytes.value("largest packet", results.median(case, "largest"), most(1_500.0));
    parts.and(windows).and(seconds).and(bytes)
}

/// Within the time that one window is to take. The first estimate after the hand-off may be of pairs from before it alone.
fn noticed(results: &Results, case: &Case) -> Parts {
    let (mut seconds, mut estimates) = (Parts::of("s"), Parts::of("estimates"));
    let (noticed, windows) = NOTICED[0];
    seconds.value("noticed after", results.median(case, noticed), most(5.0));
    seconds.beside("the window before took", results.median(case, "window_s"));
    estimates.value("noticed with", results.median(case, windows), most(2.0));
    seconds.and(estimates)
}

fn risen(results: &Results, case: &dyn Fn(&str) -> Case) -> Parts {
    let (mut parts, mut rates) = (Parts::of("times"), Parts::of("kbit/s"));
    let of = |which: usize, what| results.median(&case(HAND_OFFS[which].1), what);
    rates.beside("before the hand-off", of(0, "rate_before"));
    parts.value("with, the rate becomes", of(0, "rise"), Bar::or_more(10.0).said("10 at least"));
    parts.value("without", of(1, "rise"), Bar::below(2.0));
    rates.and(parts)
}

fn increases(results: &Results, of: &[(&str, f64)], what: &str) -> Parts {
    let mut parts = Parts::of("packets per round-trip time in each");
    for (tfrc, printed) in of {
        // Two digits of it, as the paper prints them.
        let found = results.paired([&cases::increase(tfrc)], what, |[found]| (100.0 * found).round() / 100.0);
        parts.value(*tfrc, found, most(*printed));
    }
    parts
}
