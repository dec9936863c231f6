//! The scenarios that come with the program: the simulator's own, and those by which rate controllers are evaluated (RFC 8867,
//! sections 5.1 to 5.8; RFC 8869, sections 3.1 and 3.2). What these cannot have as the RFCs say is in `docs/evaluate.md`.

use lastmile_sim::scenario::{BUILTIN, builtin_text};

macro_rules! rmcat {
    ($($name:literal),+ $(,)?) => {
        /// The names of the RFCs' test cases.
        pub(crate) const RMCAT: &[&str] = &[$($name),+];

        fn rmcat_text(name: &str) -> Option<&'static str> {
            match name {
                $($name => Some(include_str!(concat!("../scenarios/", $name, ".toml"))),)+
                _ => None,
            }
        }
    };
}
rmcat![
    "rfc8867-5.1",
    "rfc8867-5.1-delay",
    "rfc8867-5.1-udp",
    "rfc8867-5.2",
    "rfc8867-5.2-udp",
    "rfc8867-5.3",
    "rfc8867-5.3-free",
    "rfc8867-5.3-udp",
    "rfc8867-5.4",
    "rfc8867-5.5",
    "rfc8867-5.6",
    "rfc8867-5.6-bloated",
    "rfc8867-5.7",
    "rfc8867-5.8",
    "rfc8869-3.1-up",
    "rfc8869-3.1-pair",
    "rfc8869-3.1-on-off",
    "rfc8869-3.1-off-on",
    "rfc8869-3.1-tcp",
    "rfc8869-3.2-down",
    "rfc8869-3.2-up",
    "rfc8869-3.2-both",
    "rfc8869-3.2-on-off",
    "rfc8869-3.2-off-on",
    "rfc8869-3.2-tcp",
    "rfc8869-3.2-n",
];

/// All names, in the order in which they are listed.
pub(crate) fn names() -> Vec<&'static str> {
    [BUILTIN, RMCAT].concat()
}

/// The text of one.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    builtin_text(name).or_else(|| rmcat_text(name))
}

#[cfg(test)]
mod tests {
    use lastmile::units::Bytes;
    use lastmile_sim::network::link::QueueLimit;

    use super::*;
    use crate::scenarios;

    #[test]
    fn every_one_is_a_scenario_of_its_name() {
        for name in names() {
            let scenario = scenarios::load(name).unwrap();
            assert_eq!(scenario.name, name);
            assert!(!scenario.description.is_empty(), "{name}");
        }
        assert!(text("rfc8867-5.9").is_none());
    }

    /// What stands in both RFCs of every path: 50 ms one way unless flows differ, queues of 300 ms.
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
            let scenario = scenarios::load(name).unwrap();
            let link = &scenario.links[scenario.link(from, to).unwrap()].config;
            let bytes = Bytes((queue_ms / 1e3 * capacity * 1e6 / 8.0) as u64);
            assert_eq!(link.queue, QueueLimit::Bytes(bytes), "{name}");
            let wanted = if name == "rfc8867-5.5" { 0.010 } else { 0.050 };
            assert_eq!(link.delay.as_secs_f64(), wanted, "{name}");
        }
    }
}
