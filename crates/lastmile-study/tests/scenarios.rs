//! The ready scenarios: each is what its name says.

use lastmile::units::Bytes;
use lastmile_sim::network::link::QueueLimit;

use lastmile_study::scenarios::{load, names, ready};

#[test]
fn every_one_is_a_scenario_of_its_name() {
    for name in names() {
        let scenario = load(name, &[]).unwrap();
        assert_eq!(scenario.name, name);
        assert!(!scenario.description.is_empty(), "{name}");
    }
    assert!(ready("rfc8867-5.9").is_none());
}

/// Terms of both RFCs for every path: 50 ms one way unless flows differ, queues of 300 ms.
#[test]
fn paths_are_the_rfcs() {
    for (name, from, to, capacity, queue_ms) in [
        ("rfc8867-5.1", "a", "b", 1.0, 300.0),
        ("rfc8867-5.2", "a", "b", 2.0, 300.0),
        ("rfc8867-5.3", "a", "b", 1.0, 300.0),
        ("rfc8867-5.4", "a", "b", 3.5, 300.0),
        ("rfc8867-5.5", "a", "b", 4.0, 300.0),
        ("rfc8867-5.6", "a", "b", 2.0, 300.0),
        ("rfc8867-5.6-bloated", "a", "b", 2.0, 1000.0),
        ("rfc8867-5.7", "a", "b", 2.0, 300.0),
        ("rfc8867-5.8", "a", "b", 3.5, 300.0),
        ("rfc8867-5.1-udp", "a", "b", 4.0, 300.0),
        ("rfc8869-3.1-up", "ap", "fn0", 1.0, 300.0),
        ("rfc8869-3.2-up", "ap", "fn0", 100.0, 300.0),
    ] {
        let scenario = load(name, &[]).unwrap();
        let link = &scenario.links[scenario.link(from, to).unwrap()].config;
        let bytes = Bytes((queue_ms / 1e3 * capacity * 1e6 / 8.0) as u64);
        assert_eq!(link.queue, QueueLimit::Bytes(bytes), "{name}");
        let wanted = if name == "rfc8867-5.5" { 0.010 } else { 0.050 };
        assert_eq!(link.delay.as_secs_f64(), wanted, "{name}");
    }
}
