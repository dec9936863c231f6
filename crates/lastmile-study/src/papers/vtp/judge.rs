//! Decisions shared by VTP's claims and those on its variants.

use super::ON_WIRES;
use super::cases::{FEW, FIVE, SetUp, WIRELESS, alone, beside_tcp, bursts, steps, two_of_vtp};
use crate::papers::results::Results;
use crate::papers::{Bar, Middle, Parts};

/// Figure 5.
pub(super) fn throughputs(results: &Results, set_up: SetUp) -> Parts {
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

/// A number of three schemes, by errors. The first of them is VTP; the bars are of what the others have more than it, seed by seed.
pub(super) fn beside_vtp(
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
pub(super) fn smoothest(results: &Results, set_up: SetUp, schemes: &[&str; 3], what: &str) -> Parts {
    beside_vtp(results, Parts::of("%"), set_up, schemes, what, |_| Bar::above(0.0))
}

/// Figure 7: median delays.
pub(super) fn delays(results: &Results, set_up: SetUp, schemes: &[&str; 3]) -> Parts {
    beside_vtp(results, Parts::of("ms"), set_up, schemes, "delay_50", |percent| match percent {
        0 => Bar::above(0.0),
        _ => Bar::or_less(0.0),
    })
}

/// Figure 6: mean rates of VTP, TFRC Wireless and MULTFRC.
pub(super) fn efficient(results: &Results, set_up: SetUp, [vtp, tfrc, multfrc]: &[&str; 3]) -> Parts {
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
pub(super) fn friendly(results: &Results, set_up: SetUp, errors: &[u32], schemes: &[&str]) -> Parts {
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
pub(super) fn takes_most(results: &Results, multfrc: &str, errors: &[u32]) -> Parts {
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
pub(super) fn on_wires(results: &Results) -> Parts {
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

/// Figure 8: the variation with bursts of that length, in milliseconds, over that with bursts of 4.
pub(super) fn bursty(results: &Results, length: u32) -> Parts {
    Parts::each("points", WIRELESS, |scheme| {
        let more = results.more(&bursts(scheme, length), &bursts(scheme, 4), "variation");
        let bar = if scheme == "multfrc" { Bar::or_less(0.0) } else { Bar::above(0.0) };
        (format!("{scheme}: variation more in bursts of {length} ms by"), more, bar)
    })
}
