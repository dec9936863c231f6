//! CoDel and step marking packet by packet, against the pseudocode of RFC 8289 and ns-3 3.37's `CoDelQueueDisc`:
//! `codel.txt` has which packets they drop and mark.

use lastmile::node::Ecn;
use lastmile::time::Span;
use lastmile::units::Rate;
use lastmile_sim::network::link::{Link, LinkConfig, QueueLimit};
use lastmile_sim::network::queue::{Codel, Discipline, Step, StepThreshold};

use crate::common::link::{Alone, after_each_other, numbered};

/// The arrivals that ns-3 had: gap after a packet in nanoseconds, and its size.
pub fn arrivals(pattern: &str, packets: u64) -> Vec<(u64, u32)> {
    let mut state = 1_u64;
    let below = match pattern {
        "light" => 1_900_000,
        "pauses" => 4_000_000,
        _ => 1_500_000,
    };
    let one = |n| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match pattern {
            "cbr" => (900_001, 1250),
            "burst" => (if n % 100 == 99 { 61_000_003 } else { 500_001 }, 1250),
            _ => {
                let pause = pattern == "pauses" && n % 50 == 49;
                let gap = if pause { 120_000_000 } else { (state >> 33) % below };
                (gap, if (state >> 20) & 3 == 0 { 300 } else { 1250 })
            }
        }
    };
    (0..packets).map(one).collect()
}

/// Numbers of the packets that a link of 10 Mbit/s drops and marks.
pub fn signals(discipline: Discipline, ecn: Ecn, arrivals: &[(u64, u32)]) -> (Vec<u64>, Vec<u64>) {
    let queue = QueueLimit::Packets(100_000);
    let config = LinkConfig { rate: Some(Rate::ip(10_000_000)), queue, discipline, ..Default::default() };
    let mut offered = numbered(&after_each_other(1_000_000_000, arrivals));
    offered.iter_mut().for_each(|(_, packet)| packet.ecn = ecn);
    let (fates, _) = Alone::new(Link::new(config), offered).run();
    let marked = fates.arrived.iter().filter(|arrived| arrived.2 == Ecn::Ce).map(|arrived| arrived.1);
    (fates.lost.iter().map(|lost| lost.1).collect(), marked.collect())
}

/// ns-3, as Linux, takes 1/sqrt(count) by one step of Newton's method per drop, which makes the interval after the second
/// drop 1/2 of the first instead of 1/sqrt(2): some per cent more drops. After a mark ns-3 counts on from the time of the
/// mark, not from when it was due: under overload a third fewer marks, which are not compared here. Its figures follow from
/// the pseudocode with these two changes to the packet.
#[test]
fn the_same_packets_are_dropped_and_marked_as_by_the_rfc_and_by_ns_3() {
    let mut lines = include_str!("codel.txt").lines().filter(|line| !line.starts_with('#'));
    let mut runs = 0;
    while let (Some(title), Some(ns3), Some(rfc)) = (lines.next(), lines.next(), lines.next()) {
        let key = |key: &str| {
            let found = title.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
            found.unwrap_or_default()
        };
        let span = |text: &str| Span::from_millis(text.trim_end_matches("ms").parse().unwrap());
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0][key("ecn").parse::<usize>().unwrap()];
        let pattern = title.split_whitespace().nth(1).unwrap();
        let codel = Codel {
            target: span(key("target")),
            interval: span(key("interval")),
            ecn: ecn != Ecn::NotEct,
            ..Codel::default()
        };
        let discipline = match key("ce") {
            "" => Discipline::Codel(codel),
            ce => Discipline::Step(Step { threshold: StepThreshold::Sojourn(span(ce)), classic: false }),
        };
        let (drops, marks) = signals(discipline, ecn, &arrivals(pattern, key("n").parse().unwrap()));
        let of = |line: &str, marked: bool| -> Vec<u64> {
            let words = line.split_whitespace().skip(1).filter(|word| word.starts_with('m') == marked);
            words.map(|word| word.trim_start_matches('m').parse().unwrap()).collect()
        };
        assert_eq!((&drops, &marks), (&of(rfc, false), &of(rfc, true)), "{title}");
        let theirs = of(ns3, false);
        assert!(theirs.len() >= drops.len() && theirs.len() <= drops.len() * 108 / 100, "{title}");
        runs += 1;
    }
    assert_eq!(runs, 6);
}
