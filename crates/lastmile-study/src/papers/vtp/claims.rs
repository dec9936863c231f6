//! What the paper claims, decided by medians over the runs, and in which other set-ups it holds. It has no tables, and of its figures
//! the words alone were at hand.

use super::cases::{
    ERRORS, FEW, FIVE, FRACTIONS, RFC, SetUp, THRESHOLDS, WIRELESS, alone, beside_tcp, bursts, steps,
    two_of_vtp,
};
use super::{ON_WIRES, section_4};
use crate::papers::results::Results;
use crate::papers::{Bar, Claim, Middle, Parts, Stated, each};

pub(super) fn claims() -> Vec<Claim> {
    let mut all = of_the_paper();
    all.extend(otherwise(&all));
    all
}

fn of_the_paper() -> Vec<Claim> {
    let beside_traffic = Stated::numbers(
        "section 6.2, figure 12",
        "CBR of 30 kbit/s from 15 to 32 s: the target rate \"briefly dips but quickly bounces back\"; of 80 kbit/s: it falls \
         gradually, 15 to 20 frames/s, about half of the packets lost or late",
    );
    vec![
        Claim::new(
            "v1",
            "figure 5: at zero errors all five schemes are within 10 % of each other; at 5 % errors VTP keeps at least 85 % of its own, each of the others loses more",
            Stated::words(
                "section 5.2, figure 5",
                "without errors \"all five protocols are able to utilize the bandwidth efficiently\"; as errors grow \"VTP is able \
         to stay at high throughput, while others start to drop their efficiency\"",
                "without errors within 10 % of the best; at 5 % of errors VTP keeps 85 % of its own, each other less than VTP",
            ),
            &["figure-5"],
            |results| throughputs(results, SetUp::Rts),
        )
        .cause("Cause: TCP's ACKs are sent on the same air, each with its RTS and CTS. Where they go by a wire, x1, all five fill the \
             link, and the rest holds as well"),
        Claim::new(
            "v2",
            "figure 6: VTP has the smallest coefficient of variation of the sending rate at 0, 2, 5 % errors",
            Stated::words(
                "section 5.3, figure 6",
                "VTP \"consistently performs better than TFRC extensions in terms of efficiency, smoothness and adaptivity, under \
         various error rates\"",
                "the least variation of the sending rate at 0, 2 and 5 % of errors",
            ),
            &["figure-6"],
            |results| smoothest(results, SetUp::Rts, &WIRELESS, "variation"),
        )
        .cause("Cause: the cut to the achieved rate leaves a full queue full, so that without errors VTP is cut again and again, by \
             a percent. It is the smoothest where there are errors; beside RFC 5348's TFRC, x12, it is not"),
        Claim::new(
            "v3",
            "figure 6: VTP's mean rate is the highest or within 5 % of it; MULTFRC's is above TFRC Wireless",
            Stated::words(
                "section 5.3, figure 6, and footnote 5",
                "VTP performs better \"in terms of efficiency\", and yet MULTFRC \"usually has a slightly higher instantaneous \
         sending rate than VTP and TFRC Wireless\"",
                "VTP's mean rate 95 % of the others' at least, MULTFRC's above TFRC Wireless'",
            ),
            &["figure-6"],
            |results| efficient(results, SetUp::Rts, &WIRELESS),
        )
        .cause(GIVES_UP),
        Claim::new(
            "v4",
            "figure 6: after each cross traffic step VTP settles within 10 s",
            Stated::words(
                "section 5.3, figure 6",
                "VTP \"consistently performs better ... in terms of ... adaptivity\"",
                "after each step of the cross traffic VTP has settled within 10 s",
            ),
            &["figure-6"],
            |results| {
                Parts::each("s", FEW, |percent| {
                    let took = results.median(&steps(SetUp::Rts, "vtp", percent), "settles");
                    (format!("the slowest of four at {percent} % errors"), took, Bar::or_less(10.0))
                })
            },
        ),
        Claim::new(
            "v5",
            "figure 7: VTP has the lowest median delay at zero errors; at 2 and 5 % the others are no longer higher",
            Stated::words(
                "section 5.3, figure 7",
                "\"In the zero error case, VTP incurs the lowest delay\"; at 2 and 5 % \"in general TFRC Wireless and MULTFRC \
         actually have shorter delays\"",
                "the least median delay without errors; at 2 and 5 % the others' no longer than VTP's",
            ),
            &["figure-7"],
            |results| delays(results, SetUp::Rts, &WIRELESS),
        )
        .cause("Cause: the cut to the achieved rate leaves a full queue full; with `cut=window`, x6, VTP's delay without errors is \
             below TFRC Wireless', and below that of a MULTFRC that carries as much, x23. With errors both carry nearly as much \
             as VTP here, and so wait as long"),
        Claim::new(
            "v6",
            "inter-packet jitter is mostly below 5 ms",
            Stated::numbers("section 5.3", "jitter \"mostly within 5 msec between consecutive packets\""),
            &["figure-7"],
            |results| {
                Parts::each("%", each(&FEW, &WIRELESS), |(percent, scheme)| {
                    let share = results.median(&steps(SetUp::Rts, scheme, percent), "jitter_below_5_ms");
                    (format!("{scheme} at {percent} % errors: of jitter below 5 ms"), share, Bar::above(50.0))
                })
            },
        ),
        Claim::new(
            "v7",
            "figure 8: bursts of 100 ms raise the variation of VTP and TFRC Wireless against 4 ms, not MULTFRC's",
            Stated::words(
                "section 5.4, figure 8",
                "burstiness has \"a negative impact on VTP and TFRC Wireless\" and is \"neutral or even positive on MULTFRC\"",
                "bursts of 100 ms raise the variation against 4 ms for these two, and not for MULTFRC",
            ),
            &["figure-8"],
            |results| {
                Parts::each("points", WIRELESS, |scheme| {
                    let more = results.more(&bursts(scheme, 100), &bursts(scheme, 4), "variation");
                    let bar = if scheme == "multfrc" { Bar::or_less(0.0) } else { Bar::above(0.0) };
                    (format!("{scheme}: variation more in bursts of 100 ms by"), more, bar)
                })
            },
        )
        .cause("Cause: MULTFRC's connections take a burst of 100 ms, which none of their packets survives, as loss events of all"),
        Claim::new(
            "v8",
            "figure 9: beside each scheme a TCP flow gets at least 90 % of what it gets beside another TCP flow (wireless errors 0 to 5 %)",
            Stated::words(
                "section 5.5, figure 9",
                "\"none of the streaming protocols impair the performance of the coexisting TCP connection\"",
                "TCP has 90 % of what it has beside TCP at least",
            ),
            &["figure-9"],
            |results| friendly(results, SetUp::Rts, &ERRORS, &WIRELESS),
        )
        .cause("Cause: two flows of TCP with their ACKs fill the air up to 5 % of errors, so that there is nothing to be taken but \
             from each other; VTP and TFRC Wireless leave out half of the errors"),
        Claim::new(
            "v9",
            "figure 9: MULTFRC's own throughput is above VTP's and TFRC Wireless's",
            Stated::words(
                "section 5.5, figure 9",
                "\"MULTFRC achieves a noticeably higher throughput than VTP and TFRC Wireless in all cases\"",
                "more than 100 % of theirs",
            ),
            &["figure-9"],
            |results| takes_most(results, "multfrc", &ERRORS),
        )
        .cause(GIVES_UP),
        Claim::new(
            "v10",
            "wired, no errors: VTP, TFRC and TFRC Wireless carry more than MULTFRC, VTP varies least; two VTP flows share within 10 %",
            Stated::words(
                "section 5.1, of earlier work",
                "\"VTP, TFRC and TFRC Wireless all perform better than MULTFRC, with VTP demonstrating the best smoothness in the rate\"",
                "more throughput than MULTFRC, the least variation, and two flows of VTP within 10 % of each other",
            ),
            &["wired"],
            on_wires,
        )
        .cause("Cause: where nothing is left to chance TFRC's loss intervals are all alike, and its rate moves by a third of a percent"),
        Claim::new(
            "v11",
            "figure 11: target rate during 2 and 5 % errors stays within 10 % of before (lab, real video)",
            Stated::numbers(
                "section 6.2, figure 11",
                "errors of 2 or 5 % from 15 to 28 s leave \"the target encoding rate and smoothed achieved rate ... unaffected\"",
            ),
            &["figure-11"],
            |_| Parts::default(),
        ),
        Claim::new(
            "v12",
            "figure 12: with cross traffic just below the spare rate a brief dip, just above it a steady decrease (lab, real video)",
            beside_traffic.clone(),
            &["figure-12"],
            |_| Parts::default(),
        ),
        Claim::new(
            "v13",
            "figure 12 with the paper's literal 30 and 80 kbit/s on 2 Mbit/s behaves as printed",
            beside_traffic,
            &["figure-12"],
            |_| Parts::default(),
        ),
        Claim::new(
            "v14",
            "section 4: a VTP and a TCP flow that start at windows of 4:1 and 1:4 come within 10 % of equal in at most 1.2 times the rounds that two TCP flows need, at buffers of half, one and two pipes; figures 1 to 3 drawn from runs",
            Stated::words(
                "sections 4.1 and 4.2, figures 1 to 3",
                "\"VTP converges to its fair share as friendly and fast as TCP\"",
                "at most 1.2 times the rounds that two flows of TCP need until they are within 10 % of each other",
            ),
            &["convergence", "figure-1", "figure-2", "figure-3"],
            |results| section_4::converges(results, 1),
        )
        .cause("Cause: the cut to the achieved rate gives nothing up while the queue is full, so that TCP gains a packet a round at \
             best. With `cut=window` (x9) VTP that is ahead is as fast as TCP at every buffer, with `hold=rounds` (x10) VTP that \
             is behind is at one pipe and two; no reading is both"),
    ]
}

/// Claims of the paper in other set-ups.
#[rustfmt::skip]
fn otherwise(claims: &[Claim]) -> Vec<Claim> {
    let again =
        |id, claim, items, decide: fn(&Results) -> Parts| Claim::again(claims, id, claim, items, decide);
    vec![
        again("x1", "v1 on the wired link, where no ACK meets the data", &["throughputs"],
            |results| throughputs(results, SetUp::Wired)),
        again("x2", "v1 where each other segment of TCP is acknowledged", &["throughputs"],
            |results| throughputs(results, SetUp::DelayedAcks)),
        again("x3", "v2 where VTP cuts its window: vtp(cut=window)", &["readings", "figure-6"],
            |results| smoothest(results, SetUp::Rts, &CUT, "variation")),
        again("x4", "v2 without RTS and CTS", &["no-rts"], |results| smoothest(results, SetUp::NoRts, &WIRELESS, "variation")),
        again("x5", "v2 where errors strike frames on the air, which are sent again", &["retries"],
            |results| smoothest(results, SetUp::Retries, &WIRELESS, "variation")),
        again("x6", "v5 where VTP cuts its window: vtp(cut=window)", &["readings", "figure-7"],
            |results| delays(results, SetUp::Rts, &CUT)),
        again("x7", "v8 without RTS and CTS, at 0, 2 and 5 % of errors", &["friendliness"],
            |results| friendly(results, SetUp::NoRts, &FEW, &WIRELESS)),
        again("x8", "v8 where each other segment of TCP is acknowledged, at 0, 2 and 5 % of errors", &["friendliness"],
            |results| friendly(results, SetUp::DelayedAcks, &FEW, &WIRELESS)),
        again("x9", "v14 where VTP cuts its window: vtp(cut=window)", &["convergence"],
            |results| section_4::converges(results, 2)),
        again("x10", "v14 with figure 3's hold: vtp(hold=rounds)", &["convergence"], |results| section_4::converges(results, 3)),
        again("x11", "v14 with both, as section 4 has it: vtp(hold=rounds,cut=window)", &["convergence"],
            |results| section_4::converges(results, 4)),
        again("x12", "v2 with RFC 5348's TFRC in the place of ns-2's", &["rfc"],
            |results| smoothest(results, SetUp::Rts, &RFC, "variation")),
        again("x13", "v3 with RFC 5348's TFRC in the place of ns-2's", &["rfc"], |results| efficient(results, SetUp::Rts, &RFC)),
        again("x14", "v2 on the wired link of 11 Mbit/s with the same errors", &["wired-steps"],
            |results| smoothest(results, SetUp::Wired, &WIRELESS, "variation")),
        again("x15", "v3 on the wired link of 11 Mbit/s with the same errors", &["wired-steps"],
            |results| efficient(results, SetUp::Wired, &WIRELESS)),
        again("x16", "v5 on the wired link of 11 Mbit/s with the same errors", &["wired-steps"],
            |results| delays(results, SetUp::Wired, &WIRELESS)),
        again("x17", "v2 over the whole run, in which the steps of the cross traffic count", &["figure-6"],
            |results| smoothest(results, SetUp::Rts, &WIRELESS, "variation_of_all")),
        again("x18", "v8 on the wired link of 11 Mbit/s with the same errors", &["friendliness"],
            |results| friendly(results, SetUp::Wired, &FEW, &WIRELESS)),
        again("x19", "v3 where MULTFRC counts fractions of connections", &["fractions"],
            |results| efficient(results, SetUp::Rts, &FRACTIONS)),
        again("x20", "v3 where MULTFRC closes a connection at a queue of four fifths of the least round-trip time: gamma=0.8", &["thresholds", "figure-6"],
            |results| efficient(results, SetUp::Rts, &[WIRELESS[0], WIRELESS[1], HIGHER])),
        again("x21", "v9 with that MULTFRC, at 0, 2 and 5 % of errors", &["thresholds", "figure-9"],
            |results| takes_most(results, HIGHER, &FEW)),
        again("x22", "v8 beside that MULTFRC, at 0, 2 and 5 % of errors", &["thresholds", "figure-9"],
            |results| friendly(results, SetUp::Rts, &FEW, &[HIGHER]))
        .cause("Cause: two flows fill the air, so that what MULTFRC has more of TCP has less of: v8 and v9 cannot both hold here"),
        again("x23", "v5 where VTP cuts its window, with that MULTFRC", &["readings", "thresholds", "figure-7"],
            |results| delays(results, SetUp::Rts, &[CUT[0], WIRELESS[1], HIGHER]))
        .cause(
            "Cause: with errors TFRC Wireless and MULTFRC carry nearly as much as VTP, and so wait as long; without errors VTP's \
             delay is the lowest",
        ),
    ]
}

/// Of v3 and v9.
const GIVES_UP: &str = "Cause: MULTFRC gives up a connection wherever the round trip is a fifth above its least, which a queue of one pipe is \
     in any flow that fills the link, and beside TCP nearly always: one connection is left there, plain TFRC. The fifth is \
     recalled; with four fifths v3 (x20) and v9 (x21) hold, and TCP loses more (x22). VTP's part of v3 holds";

/// Figure 5.
fn throughputs(results: &Results, set_up: SetUp) -> Parts {
    let (mut parts, mut rates) = (Parts::of("%"), Parts::of("Mbit/s"));
    let cases = FIVE.map(|scheme| alone(set_up, scheme, 0));
    let best = |all: [f64; FIVE.len()]| all.into_iter().fold(0.0, f64::max);
    let all = cases.each_ref();
    rates.beside("the best without errors", results.paired(all, "throughput", best));
    for (k, scheme) in FIVE.into_iter().enumerate() {
        let of = results.paired(all, "throughput", |all| 100.0 * all[k] / best(all));
        parts.value(format!("{scheme} without errors, of the best"), of, Bar::or_more(90.0));
    }
    let kept = |scheme| results.share(&alone(set_up, scheme, 5), &alone(set_up, scheme, 0), "throughput");
    parts.value("vtp keeps at 5 % errors", kept("vtp"), Bar::or_more(85.0));
    let [own, whole] = [5, 0].map(|percent| alone(set_up, "vtp", percent));
    for scheme in &FIVE[1..] {
        let [of, from] = [5, 0].map(|percent| alone(set_up, scheme, percent));
        let less = results.paired([&own, &whole, &of, &from], "throughput", |[own, whole, of, from]| {
            100.0 * (own / whole - of / from)
        });
        parts.beside(format!("{scheme} keeps"), kept(scheme));
        parts.value(format!("{scheme} keeps less than vtp by"), less, Bar::above(0.0));
    }
    rates.and(parts)
}

/// The one of MULTFRC's thresholds with which it carries what the paper says of it.
const HIGHER: &str = THRESHOLDS[1];

/// Figure 6's schemes, with a window that is cut in the place of VTP's rate.
const CUT: [&str; 3] = ["vtp(cut=window)", WIRELESS[1], WIRELESS[2]];

/// A number of three schemes, by errors. The first of them is VTP; the bars are of what the others have more than it, seed by seed.
fn beside_vtp(
    results: &Results,
    mut parts: Parts,
    set_up: SetUp,
    schemes: &[&str; 3],
    what: &str,
    bar: fn(u32) -> Bar,
) -> Parts {
    for percent in FEW {
        let case = |scheme| steps(set_up, scheme, percent);
        for &scheme in schemes {
            parts.beside(format!("at {percent} % errors: {scheme}"), results.median(&case(scheme), what));
        }
        for &scheme in &schemes[1..] {
            let more = results.more(&case(scheme), &case(schemes[0]), what);
            parts.value(format!("at {percent} % errors: {scheme} over {}", schemes[0]), more, bar(percent));
        }
    }
    parts
}

/// Figure 6: variation.
fn smoothest(results: &Results, set_up: SetUp, schemes: &[&str; 3], what: &str) -> Parts {
    beside_vtp(results, Parts::of("%"), set_up, schemes, what, |_| Bar::above(0.0))
}

/// Figure 7: median delays.
fn delays(results: &Results, set_up: SetUp, schemes: &[&str; 3]) -> Parts {
    beside_vtp(results, Parts::of("ms"), set_up, schemes, "delay_50", |percent| match percent {
        0 => Bar::above(0.0),
        _ => Bar::or_less(0.0),
    })
}

/// Figure 6: mean rates of VTP, TFRC Wireless and MULTFRC.
fn efficient(results: &Results, set_up: SetUp, [vtp, tfrc, multfrc]: &[&str; 3]) -> Parts {
    let (mut parts, mut rates) = (Parts::of("%"), Parts::of("Mbit/s"));
    for percent in FEW {
        let case = |scheme| steps(set_up, scheme, percent);
        let of = |one, other| results.share(&case(one), &case(other), "rate");
        let what = format!("VTP's rate at {percent} % errors");
        rates.beside(&what, results.median(&case(vtp), "rate"));
        for other in [tfrc, multfrc] {
            parts.value(format!("{what}, of that of {other}"), of(vtp, other), Bar::or_more(95.0));
        }
        let what = format!("MULTFRC's at {percent} % errors, of TFRC Wireless'");
        parts.value(what, of(multfrc, tfrc), Bar::above(100.0));
    }
    rates.and(parts)
}

/// Figure 9: TCP beside each scheme, and beside TCP.
fn friendly(results: &Results, set_up: SetUp, errors: &[u32], schemes: &[&str]) -> Parts {
    let (mut parts, mut rates) = (Parts::of("%"), Parts::of("Mbit/s"));
    for &percent in errors {
        let case = |scheme| beside_tcp(set_up, scheme, percent);
        let what = format!("TCP beside TCP at {percent} % errors");
        rates.beside(what, results.median(&case("tcp"), "beside"));
        for scheme in schemes {
            let of = results.share(&case(scheme), &case("tcp"), "beside");
            let what = format!("TCP beside {scheme} at {percent} % errors, of that beside TCP");
            parts.value(what, of, Bar::or_more(90.0));
        }
    }
    rates.and(parts)
}

/// Figure 9: a MULTFRC's own throughput.
fn takes_most(results: &Results, multfrc: &str, errors: &[u32]) -> Parts {
    let (mut parts, mut rates) = (Parts::of("%"), Parts::of("Mbit/s"));
    for &percent in errors {
        let case = |scheme| beside_tcp(SetUp::Rts, scheme, percent);
        let what = format!("MULTFRC's at {percent} % errors");
        rates.beside(&what, results.median(&case(multfrc), "throughput"));
        for scheme in &WIRELESS[..2] {
            let of = results.share(&case(multfrc), &case(scheme), "throughput");
            parts.value(format!("{what}, of that of {scheme}"), of, Bar::above(100.0));
        }
    }
    rates.and(parts)
}

/// Earlier work, in the paper's words.
fn on_wires(results: &Results) -> Parts {
    let (mut shares, mut points) = (Parts::of("%"), Parts::of("points"));
    let case = |scheme| alone(SetUp::Wired, scheme, 0);
    for scheme in &ON_WIRES[..3] {
        let of = results.share(&case(scheme), &case("multfrc"), "throughput");
        shares.value(format!("{scheme}'s throughput, of MULTFRC's"), of, Bar::above(100.0));
    }
    shares.beside("VTP's variation", results.median(&case("vtp"), "variation"));
    for scheme in &ON_WIRES[1..] {
        let more = results.more(&case(scheme), &case("vtp"), "variation");
        points.value(format!("{scheme}'s variation above VTP's by"), more, Bar::above(0.0));
    }
    let two = two_of_vtp();
    let pairs = results.values(&two, "throughput").into_iter().zip(results.values(&two, "beside"));
    let apart: Vec<f64> = pairs.map(|(one, other)| 200.0 * (one - other).abs() / (one + other)).collect();
    shares.value("two VTP flows apart, of their mean", Middle::of(&apart), Bar::or_less(10.0));
    shares.and(points)
}
