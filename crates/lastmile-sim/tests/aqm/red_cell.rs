//! Settings of RED, as the files with ns-2's figures have them.

use lastmile::units::Bytes;
use lastmile_sim::network::link::QueueLimit;
use lastmile_sim::network::queue::Red;

/// A setting, and ns-2's figures.
pub struct Cell {
    pub name: &'static str,
    keys: Vec<(&'static str, &'static str)>,
    pub ns2: Vec<f64>,
}

impl Cell {
    /// A line is a name, ns-2's figures, and differences from the defaults.
    pub fn all(text: &'static str) -> impl Iterator<Item = Cell> {
        text.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let (keys, words): (Vec<_>, Vec<_>) =
                line.split_whitespace().partition(|word| word.contains('='));
            let ns2 = words[1..].iter().map(|word| word.parse().unwrap()).collect();
            Cell { name: words[0], keys: keys.iter().map(|key| key.split_once('=').unwrap()).collect(), ns2 }
        })
    }

    pub fn text(&self, key: &str, default: &'static str) -> &'static str {
        self.keys.iter().find(|named| named.0 == key).map_or(default, |named| named.1)
    }

    pub fn number(&self, key: &str, default: &'static str) -> f64 {
        self.text(key, default).parse().unwrap()
    }

    pub fn flag(&self, key: &str, default: &'static str) -> bool {
        self.text(key, default) == "1"
    }

    /// So many packets, or as many mean ones where bytes are counted.
    fn limit(&self, key: &str, default: &'static str) -> QueueLimit {
        let packets = self.number(key, default) as u32;
        match self.flag("bytes", "0") {
            true => QueueLimit::Bytes(Bytes(u64::from(packets) * self.number("mps", "1000") as u64)),
            false => QueueLimit::Packets(packets),
        }
    }

    /// The discipline, and the limit of its queue.
    pub fn red(&self) -> (Red, QueueLimit) {
        let red = Red {
            weight: self.number("w", "0.002"),
            min_threshold: self.limit("min", "5"),
            max_threshold: self.limit("max", "15"),
            max_probability: self.number("p", "0.1"),
            gentle: self.flag("gentle", "0"),
            mean_packet: Bytes(self.number("mps", "1000") as u64),
            wait: self.flag("wait", "1"),
            ecn: self.flag("ecn", "0"),
            chance_beyond_max: self.flag("beyond", "0"),
        };
        (red, self.limit("lim", "50"))
    }
}
