//! A path from a seed: every feature draws from a stream of its own, so that a path without it keeps all others.

use lastmile::rng::Stream;

/// Rates of hops, bit/s.
const RATES: (f64, f64) = (0.5e6, 200e6);
/// The most packets a second of one flow, for meters to log all of a run.
const MOST_PACKETS: f64 = 20_000.0;

/// A hop between the sender and the receiver.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path {
    /// Links, from the sender on.
    pub(super) hops: Vec<Hop>,
    /// The last hop, where it is a WLAN.
    pub(super) cell: Option<Cell>,
    /// The link that the last hop is where it is none.
    pub(super) instead: Option<Hop>,
}

/// A link.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hop {
    /// There and back.
    pub(super) ways: [Way; 2],
    pub(super) delay_us: u64,
    pub(super) overhead: u64,
    pub(super) queue: Queue,
    /// True if it marks packets (ECN) rather than dropping them.
    pub(super) marks: bool,
    pub(super) bucket: Option<Bucket>,
    pub(super) loss: Option<f64>,
    pub(super) jitter: Option<Jitter>,
    pub(super) mtu: Option<u64>,
    pub(super) changes: Option<Changes>,
    /// Delay of the access of hosts whose traffic crosses it.
    pub(super) access_us: u64,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Way {
    /// The sustained rate: the link's, or that of its tokens.
    pub(super) rate: f64,
    /// Seconds of it that its queue holds.
    pub(super) holds: f64,
    pub(super) cross: Option<Cross>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Fifo,
    Red,
    Codel,
    FqCodel,
    Pie,
}

/// A token bucket of either kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bucket {
    pub(super) policer: bool,
    pub(super) bytes: u64,
    /// The link's rate, in rates of the tokens.
    pub(super) line: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Jitter {
    pub(super) normal: bool,
    pub(super) max_us: u64,
    pub(super) reorder: bool,
}

/// The rate becomes `factor` of itself after each `period`, and itself again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Changes {
    pub(super) period: f64,
    pub(super) factor: f64,
}

/// Traffic of others.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cross {
    pub(super) kind: Kind,
    /// The share of the hop that it takes; of long TCP flows all that is left.
    pub(super) load: f64,
    /// The size of its IP packets.
    pub(super) size: u64,
    /// Mean length of bursts in seconds, and of pauses in bursts.
    pub(super) burst: (f64, f64),
    pub(super) shape: f64,
    /// TCP flows.
    pub(super) flows: usize,
    /// True if these last; others transfer files that would take alone so many seconds.
    pub(super) long: bool,
    pub(super) file: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cbr,
    Poisson,
    Pareto,
    Reno,
    Cubic,
}

impl Kind {
    pub(super) fn is_tcp(self) -> bool {
        matches!(self, Kind::Reno | Kind::Cubic)
    }
}

/// A WLAN as the last hop.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) standard: Standard,
    /// Mbit/s.
    pub(super) rate: f64,
    pub(super) queue: u64,
    pub(super) frame_error: f64,
    pub(super) control: Option<&'static str>,
    pub(super) stations: Vec<Station>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standard {
    B,
    G,
    /// With so many spatial streams.
    N(u32),
}

impl Standard {
    /// The rate of a station's frames, Mbit/s.
    fn rate(self, draw: &mut Draw) -> f64 {
        match self {
            Standard::B => draw.pick([(11.0, 0.6), (5.5, 0.25), (2.0, 0.15)]),
            Standard::G => draw.pick([(54.0, 0.5), (36.0, 0.2), (24.0, 0.2), (12.0, 0.1)]),
            Standard::N(streams) => {
                draw.pick([(65.0, 0.5), (52.0, 0.2), (26.0, 0.2), (13.0, 0.1)]) * f64::from(streams)
            }
        }
    }
}

/// Another client of the cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Station {
    pub(super) rate: f64,
    pub(super) up: bool,
    pub(super) cross: Cross,
}

impl Way {
    /// The share of it that others ask for.
    pub(super) fn load(&self) -> f64 {
        self.cross.as_ref().map_or(0.0, Cross::asks)
    }
}

impl Cross {
    fn asks(&self) -> f64 {
        if self.kind.is_tcp() && self.long { 1.0 } else { self.load }
    }

    /// The size of its packets where they share a link of that rate.
    pub(super) fn size_at(&self, rate: f64) -> u64 {
        let least = self.asks() * rate / 8.0 / MOST_PACKETS;
        self.size.max(least as u64).min(1_500)
    }
}

impl Cell {
    /// About the rate of one station alone, bit/s: a frame of 1500 B and its overhead on the air.
    pub(super) fn about(&self, rate: f64) -> f64 {
        let with = match self.standard {
            Standard::B => 1.1e-3,
            Standard::G => 0.17e-3,
            Standard::N(_) => 0.03e-3,
        };
        12_000.0 / (12_000.0 / (rate * 1e6) + with)
    }

    /// The share of its air that others ask for.
    pub(super) fn load(&self) -> f64 {
        self.stations.iter().map(|station| station.cross.asks()).sum::<f64>().min(1.0)
    }
}

/// The random numbers of one feature of one path.
struct Draw(Stream);

impl Draw {
    fn new(seed: u64, feature: &str) -> Draw {
        Draw(Stream::new(seed, &format!("paths/{feature}")))
    }

    fn chance(&mut self, share: f64) -> bool {
        self.0.unit() < share
    }

    fn uniform(&mut self, (low, high): (f64, f64)) -> f64 {
        low + (high - low) * self.0.unit()
    }

    /// As likely in each octave.
    fn octaves(&mut self, (low, high): (f64, f64)) -> f64 {
        low * libm::exp(self.0.unit() * libm::log(high / low))
    }

    fn below(&mut self, count: usize) -> usize {
        (self.0.unit() * count as f64) as usize
    }

    /// One of these, each with its share.
    fn pick<T: Copy, const N: usize>(&mut self, of: [(T, f64); N]) -> T {
        let mut left = self.0.unit() * of.iter().map(|(_, share)| share).sum::<f64>();
        let found = of.iter().find(|(_, share)| {
            left -= share;
            left < 0.0
        });
        found.unwrap_or(&of[N - 1]).0
    }
}

impl Path {
    /// It with queues that all mark: a FIFO becomes another discipline.
    pub(super) fn marking(mut self, seed: u64) -> Path {
        let all = [(Queue::Red, 0.25), (Queue::Codel, 0.25), (Queue::FqCodel, 0.25), (Queue::Pie, 0.25)];
        for (index, hop) in self.hops.iter_mut().chain(&mut self.instead).enumerate() {
            hop.marks = true;
            if hop.queue == Queue::Fifo {
                hop.queue = Draw::new(seed, &format!("hop{index}/marking")).pick(all);
            }
        }
        self
    }
}

/// The path of a seed; its last hop is an 802.11n cell where that is asked for, and otherwise never.
pub(super) fn draw(seed: u64, n: bool) -> Path {
    let count = Draw::new(seed, "hops").pick([(1, 0.3), (2, 0.3), (3, 0.25), (4, 0.15)]);
    let mut hops: Vec<Hop> = (0..count).map(|index| hop(seed, index)).collect();
    let cell = cell(seed, n);
    let instead = if cell.is_some() { hops.pop() } else { None };
    // One hop has it, if any.
    let mut place = |feature: &str, share: f64, put: &dyn Fn(&mut Draw, &mut Hop)| {
        let mut draw = Draw::new(seed, feature);
        let (has, at) = (draw.chance(share), draw.below(count));
        if let Some(hop) = hops.get_mut(at).filter(|_| has) {
            put(&mut draw, hop);
        }
    };
    place("bucket", 0.26, &|draw, hop| {
        let policer = draw.chance(0.4);
        let bytes = draw.octaves(if policer { (3e3, 1e6) } else { (1.5e3, 20e6) }) as u64;
        hop.bucket = Some(Bucket { policer, bytes, line: draw.octaves((1.25, 20.0)) });
    });
    place("loss", 0.2, &|draw, hop| hop.loss = Some(draw.octaves((5e-4, 0.05))));
    place("jitter", 0.2, &|draw, hop| {
        let (normal, max_us) = (draw.chance(0.5), draw.octaves((50.0, 10_000.0)) as u64);
        hop.jitter = Some(Jitter { normal, max_us, reorder: draw.chance(0.4) });
    });
    place("mtu", 0.15, &|draw, hop| hop.mtu = Some(draw.uniform((576.0, 1_501.0)) as u64));
    place("changes", 0.1, &|draw, hop| {
        hop.changes = Some(Changes { period: draw.octaves((0.3, 4.0)), factor: draw.uniform((0.2, 0.8)) });
    });
    // Truths are of packets of 1488 B; with framing, and in a cell, smaller ones get less.
    if hops.iter().any(|hop| hop.mtu.is_some()) {
        hops.iter_mut().for_each(|hop| hop.overhead = 0);
    }
    if cell.is_some() {
        hops.iter_mut().for_each(|hop| hop.mtu = None);
    }
    Path { hops, cell, instead }
}

fn hop(seed: u64, index: usize) -> Hop {
    let of = |feature: &str| Draw::new(seed, &format!("hop{index}/{feature}"));
    let rate = of("rate").octaves(RATES);
    let back = match Draw::new(seed, "asymmetry").chance(0.4) {
        true => (rate * of("back").octaves((0.05, 1.0))).max(RATES.0),
        false => rate,
    };
    let mut queue = of("queue");
    let kind = queue.pick([
        (Queue::Fifo, 0.46),
        (Queue::Red, 0.13),
        (Queue::Codel, 0.12),
        (Queue::FqCodel, 0.17),
        (Queue::Pie, 0.12),
    ]);
    let mut way = |rate: f64, name: &str| {
        let mut draw = of(name);
        let cross = draw.chance(0.45).then(|| cross(&mut draw));
        Way { rate, holds: queue.octaves((0.01, 0.4)), cross }
    };
    Hop {
        ways: [way(rate, "there"), way(back, "back-there")],
        delay_us: of("delay").octaves((100.0, 30_000.0)) as u64,
        overhead: of("overhead").pick([(0, 0.5), (14, 0.25), (38, 0.25)]),
        queue: kind,
        marks: false,
        bucket: None,
        loss: None,
        jitter: None,
        mtu: None,
        changes: None,
        access_us: of("access").octaves((500.0, 30_000.0)) as u64,
    }
}

fn cross(draw: &mut Draw) -> Cross {
    let kind = draw.pick([
        (Kind::Cbr, 0.22),
        (Kind::Poisson, 0.22),
        (Kind::Pareto, 0.2),
        (Kind::Reno, 0.18),
        (Kind::Cubic, 0.18),
    ]);
    Cross {
        kind,
        load: draw.uniform((0.01, 0.95)),
        size: if draw.chance(0.3) { 1_500 } else { draw.octaves((100.0, 1_500.0)) as u64 },
        burst: (draw.octaves((0.005, 0.2)), draw.octaves((0.3, 3.0))),
        shape: draw.uniform((1.2, 2.0)),
        flows: 1 + draw.below(3),
        long: draw.chance(0.5),
        file: draw.octaves((0.05, 1.0)),
    }
}

fn cell(seed: u64, n: bool) -> Option<Cell> {
    let mut draw = Draw::new(seed, "cell");
    let kind = draw.pick([(None, 0.7), (Some(Standard::B), 0.1), (Some(Standard::G), 0.2)]);
    let standard = match n {
        true => Some(Standard::N(Draw::new(seed, "streams").pick([(1, 0.5), (2, 0.5)]))),
        false => kind,
    }?;
    let mut noise = Draw::new(seed, "errors");
    let frame_error = if noise.chance(0.4) { noise.octaves((0.01, 0.3)) } else { 0.0 };
    let mut control = Draw::new(seed, "adaptation");
    let control = control.chance(0.4).then(|| control.pick([("minstrel", 0.6), ("aarf", 0.2), ("arf", 0.2)]));
    let mut others = Draw::new(seed, "stations");
    let count = others.pick([(0, 0.3), (1, 0.3), (2, 0.15), (3, 0.1), (4, 0.08), (5, 0.07)]);
    let load = others.uniform((0.0, 0.95));
    let station = |index: usize| {
        let mut draw = Draw::new(seed, &format!("station{index}"));
        let (up, rate) = (draw.chance(0.5), standard.rate(&mut draw));
        let cross = Cross { load: load / count as f64, ..cross(&mut draw) };
        Station { rate, up, cross }
    };
    let stations = (0..count).map(station).collect();
    let mut draw = Draw::new(seed, "air");
    let (rate, queue) = (standard.rate(&mut draw), draw.octaves((30.0, 300.0)) as u64);
    Some(Cell { standard, rate, queue, frame_error, control, stations })
}
