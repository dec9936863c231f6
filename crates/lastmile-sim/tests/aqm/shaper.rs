//! The token bucket against ns-3 3.37's `TbfQueueDisc` (`tbf_ns3.txt`): full at first, and when each packet leaves.

use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::link::{Link, LinkConfig, QueueLimit};
use lastmile_sim::network::queue::Shaper;

use crate::common::link::{after_each_other, departures};

/// Gap after each packet in nanoseconds, and its size, as ns-3 had them.
fn arrivals(packets: usize) -> Vec<(u64, u32)> {
    let mut state = 1_u64;
    let one = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let gap = if n % 50 == 49 { 120_000_000 } else { (state >> 33) % 4_000_000 };
        (gap, if (state >> 20) & 3 == 0 { 300 } else { 1250 })
    };
    (0..packets).map(one).collect()
}

#[test]
fn packets_leave_when_they_leave_ns_3s_bucket() {
    let mut lines = include_str!("tbf_ns3.txt").lines().filter(|line| !line.starts_with('#'));
    let mut limited = 0;
    while let (Some(title), Some(times)) = (lines.next(), lines.next()) {
        let words: Vec<&str> = title.split_whitespace().collect();
        let rate = words[1].trim_end_matches("Mbps").parse::<u64>().unwrap() * 1_000_000;
        let shaper = Shaper { rate: Rate::ip(rate), burst: Bytes(words[2].parse().unwrap()) };
        let theirs: Vec<u64> = times.split_whitespace().map(|us| us.parse().unwrap()).collect();
        let arrivals = arrivals(theirs.len());
        let config =
            LinkConfig { shaper: Some(shaper), queue: QueueLimit::Packets(10_000), ..LinkConfig::default() };
        let ours = departures(Link::new(config), &after_each_other(0, &arrivals));
        assert_eq!(ours.len(), theirs.len(), "{title}");
        // ns-3 counts whole bytes of tokens at each packet: half a byte is 2 us at 2 Mbit/s, and some add up.
        let worst = ours
            .iter()
            .zip(&theirs)
            .map(|((ours, _), theirs)| (ours / 1000).abs_diff(*theirs))
            .max()
            .unwrap();
        println!("{title}: off by {worst} us at most");
        assert!(worst <= 20, "{title}: {worst} us");
        let mut came = 0;
        for (&(gap, _), &left) in arrivals.iter().zip(&theirs) {
            limited += usize::from(left > came / 1000 + 100);
            came += gap;
        }
    }
    assert!(limited > 200, "{limited}");
}
