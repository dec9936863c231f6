//! The token bucket against ns-3 3.37's `TbfQueueDisc` (`tbf_ns3.txt`): full at first, and when each packet leaves.

use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::link::{Link, LinkConfig, QueueLimit};
use lastmile_sim::network::queue::TokenBucket;

use super::codel::arrivals;
use crate::common::link::{after_each_other, departures};

#[test]
fn packets_leave_when_they_leave_ns_3s_bucket() {
    let mut lines = include_str!("tbf_ns3.txt").lines().filter(|line| !line.starts_with('#'));
    let mut limited = 0;
    while let (Some(title), Some(times)) = (lines.next(), lines.next()) {
        let words: Vec<&str> = title.split_whitespace().collect();
        let rate = words[1].trim_end_matches("Mbps").parse::<u64>().unwrap() * 1_000_000;
        let shaper = TokenBucket { rate: Rate::ip(rate), burst: Bytes(words[2].parse().unwrap()) };
        let theirs: Vec<u64> = times.split_whitespace().map(|us| us.parse().unwrap()).collect();
        let arrivals = arrivals("pauses", theirs.len() as u64);
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
        assert!(worst <= 20, "{title}: {worst} us");
        let mut came = 0;
        for (&(gap, _), &left) in arrivals.iter().zip(&theirs) {
            limited += usize::from(left > came / 1000 + 100);
            came += gap;
        }
    }
    assert!(limited > 200, "{limited}");
}
