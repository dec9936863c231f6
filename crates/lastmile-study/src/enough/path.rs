//! Paths that `enough` is asked about.

use lastmile::report::Direction;
use lastmile::units::{Bytes, Rate};
use serde::Serialize;

use crate::error::{Error, Result};

/// Kinds of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A link of 10 Mbit/s with a queue of 60 kB.
    Fifo,
    /// The same with FQ-CoDel.
    FqCodel,
    /// A token bucket and 10 Mbit/s on a link of 100 Mbit/s.
    Bucket,
    /// 802.11g, from the access point to a station, beside four that send up.
    G,
    /// 802.11n that aggregates, beside two that send up.
    N,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 5] = [Kind::Fifo, Kind::FqCodel, Kind::Bucket, Kind::G, Kind::N];

    fn is_cell(self) -> bool {
        matches!(self, Kind::G | Kind::N)
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Fifo => "FIFO",
            Kind::FqCodel => "FQ-CoDel",
            Kind::Bucket => "bucket",
            Kind::G => "802.11g",
            Kind::N => "802.11n",
        }
    }
}

/// Traffic of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cross {
    /// At equal distances.
    Cbr,
    /// At exponentially distributed distances.
    Poisson,
}

impl Cross {
    pub(super) fn kind(self) -> &'static str {
        match self {
            Cross::Cbr => "cbr",
            Cross::Poisson => "poisson",
        }
    }
}

/// A kind of path with its properties. The defaults are those of the table in docs/validation.md.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Its kind.
    pub kind: Kind,
    /// Traffic of others.
    pub cross: Cross,
    /// Their rate on a link, less than [`LINK`].
    pub load: Rate,
    /// Share of the packets that a link loses, each by itself.
    pub loss: f64,
    /// Bytes that a token bucket holds.
    pub burst: Bytes,
    /// The direction asked about: the end that receives asks in reverse.
    pub direction: Direction,
}

/// The rate of links.
pub const LINK: Rate = Rate::ip(10_000_000);

impl Path {
    /// The path of that kind in the table.
    pub fn of(kind: Kind, cross: Cross) -> Path {
        Path {
            kind,
            cross,
            load: Rate::ip(4_000_000),
            loss: 0.0,
            burst: Bytes(10_000),
            direction: Direction::Forward,
        }
    }

    /// Holds that the kind has the properties which are unlike the table's.
    ///
    /// # Errors
    /// It has not, or one is out of its range.
    pub fn check(&self) -> Result<()> {
        let usual = Path::of(self.kind, self.cross);
        let name = self.kind.name();
        if self.kind.is_cell() && (self.load != usual.load || self.loss != usual.loss) {
            return Err(Error::input(format!("{name}: loads and losses are those of links")));
        }
        if self.kind != Kind::Bucket && self.burst != usual.burst {
            return Err(Error::input(format!("{name}: bursts are those of buckets")));
        }
        if self.load >= LINK {
            return Err(Error::input(format!("a load of {} leaves nothing of {LINK}", self.load)));
        }
        if !(0.0..1.0).contains(&self.loss) {
            return Err(Error::input(format!("{} is no share of lost packets from 0 to 1", self.loss)));
        }
        if !(3_000..=1_000_000).contains(&self.burst.0) {
            return Err(Error::input(format!("a bucket holds 3 kB to 1 MB, not {}", self.burst)));
        }
        Ok(())
    }

    /// Its usual name.
    pub(super) fn name(&self) -> String {
        let mut name = self.kind.name().to_owned();
        if self.kind == Kind::Bucket {
            name += &format!(" of {}", self.burst);
        }
        if self.load != Path::of(self.kind, self.cross).load {
            name += &format!(" under {}", self.load);
        }
        if self.loss > 0.0 {
            name += &format!(" that loses {} %", self.loss * 100.0);
        }
        if self.direction == Direction::Reverse {
            name += ", reverse";
        }
        name
    }

    /// The rate of others on a link, bit/s; none in cells.
    pub(super) fn load_bps(&self) -> Option<u64> {
        (!self.kind.is_cell()).then(|| self.load.bits_per_second())
    }

    /// The rate asked about, at so many times what is left in the long run: by the links' rates, and of cells as `lastmile sim` has it
    /// (`truth_mean_bps`).
    pub(super) fn rate(&self, times: f64) -> Rate {
        let left = match (self.kind, self.cross) {
            (Kind::Fifo | Kind::FqCodel | Kind::Bucket, _) => {
                (LINK.bits_per_second() - self.load.bits_per_second()) as f64
            }
            (Kind::G, _) => 25.7e6,
            (Kind::N, Cross::Cbr) => 46.2e6,
            (Kind::N, Cross::Poisson) => 47.9e6,
        };
        Rate::ip((left * times) as u64)
    }

    /// The path without a probe, from `sender` to `receiver`.
    pub(super) fn text(&self, seed: u64) -> String {
        let kind = self.cross.kind();
        let flow = |from: &str, to: &str, rate: u64| {
            format!(
                "[[traffic]]\nname = \"{from}\"\nkind = \"{kind}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate} kbit/s\"\nsize = \"1500 B\"\nstart_within = \"20 ms\"\n"
            )
        };
        let head = format!("name = \"enough\"\nduration = \"25 s\"\nwarm_up = \"1 s\"\nseed = {seed}\n");
        let losses = match self.loss {
            0.0 => String::new(),
            share => format!("losses = [{{ model = {{ kind = \"bernoulli\", rate = {share} }} }}]\n"),
        };
        let link = |of: &str| {
            let mut text = format!(
                "{head}[host.sender]\n[host.receiver]\n[[link]]\nfrom = \"sender\"\nto = \"receiver\"\ndelay = \"5 ms\"\n{of}{losses}"
            );
            if self.load.bits_per_second() > 0 {
                text += &flow("sender", "receiver", self.load.bits_per_second() / 1_000);
            }
            text
        };
        let cell = |standard: &str, stations: u32, rate: u64| {
            let mut text = format!("{head}[host.sender]\n[host.receiver]\n");
            (0..stations).for_each(|k| text += &format!("[host.s{k}]\n"));
            text += &format!(
                "[[wlan]]\n{standard}\nstation = [{{ name = \"sender\" }}, {{ name = \"receiver\", ap = \"sender\" }}"
            );
            (0..stations).for_each(|k| text += &format!(", {{ name = \"s{k}\", ap = \"sender\" }}"));
            text += "]\n";
            (0..stations).for_each(|k| text += &flow(&format!("s{k}"), "sender", rate));
            text
        };
        match self.kind {
            Kind::Fifo => link("rate = \"10 Mbit/s\"\nqueue = \"60 kB\"\n"),
            Kind::FqCodel => link("rate = \"10 Mbit/s\"\ndiscipline = \"fq-codel\"\n"),
            Kind::Bucket => link(&format!(
                "rate = \"100 Mbit/s\"\nqueue = \"60 kB\"\nshaper = {{ rate = \"10 Mbit/s\", burst = \"{} B\" }}\n",
                self.burst.0
            )),
            Kind::G => cell("standard = \"g\"", 4, 1_150),
            Kind::N => cell("standard = \"n\"\nampdu = {}", 2, 2_300),
        }
    }

    /// Hosts that ask and answer, and the direction as scenarios name it.
    pub(super) fn ends(&self) -> [&'static str; 3] {
        match self.direction {
            Direction::Reverse => ["receiver", "sender", "reverse"],
            _ => ["sender", "receiver", "forward"],
        }
    }
}
