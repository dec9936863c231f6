//! Features of paths: the name of each, a path without it, and those that a number met.

use std::borrow::Cow;

use super::draw::{Cross, Hop, Kind, Path, Queue, Standard};
use super::write::times;

macro_rules! features {
    ($($variant:ident = $name:literal: $what:literal),+ $(,)?) => {
        /// The features that a path may have, and be without.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Feature {
            $(#[doc = $what]
            $variant),+
        }

        impl Feature {
            /// All of them.
            pub const ALL: &[Feature] = &[$(Feature::$variant),+];

            /// The feature's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Feature::$variant => $name),+
                }
            }

            /// The feature in words.
            pub fn what(self) -> &'static str {
                match self {
                    $(Feature::$variant => $what),+
                }
            }
        }
    };
}
features! {
    Hops = "hops": "hops but the narrow one, or but the cell",
    Asymmetry = "asymmetry": "other rates on the way back",
    Red = "red": "RED, for FIFO",
    Codel = "codel": "CoDel, for FIFO",
    FqCodel = "fq-codel": "FQ-CoDel, for FIFO",
    Pie = "pie": "PIE, for FIFO",
    Shaper = "shaper": "a shaper, for a link of its rate",
    Policer = "policer": "a policer, for a link of its rate",
    Cbr = "cbr": "others' CBR",
    Poisson = "poisson": "others' Poisson packets",
    Pareto = "pareto": "others' Pareto on/off sources",
    Reno = "reno": "others' TCP Reno",
    Cubic = "cubic": "others' TCP CUBIC",
    Elsewhere = "elsewhere": "traffic on links that are not the narrow one of their way",
    Small = "small": "others' packets of less than 1500 B",
    Loss = "loss": "random loss",
    Jitter = "jitter": "jitter",
    Reorder = "reorder": "reordering by jitter",
    Mtu = "mtu": "an MTU below 1500 B",
    Overhead = "overhead": "framing",
    Wlan = "wlan": "the WLAN, for a link",
    Stations = "stations": "other stations in the cell",
    Errors = "errors": "frame errors",
    Adaptation = "adaptation": "rate adaptation",
    Changes = "changes": "rates that change under way",
}

impl std::str::FromStr for Feature {
    type Err = String;

    fn from_str(text: &str) -> Result<Feature, String> {
        let found = Feature::ALL.iter().find(|feature| feature.name() == text);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = Feature::ALL.iter().map(|feature| feature.name()).collect();
            format!("no feature is called {text:?}; there are: {}", names.join(", "))
        })
    }
}

/// The least share of a hop that makes it busy.
const BUSY: f64 = 0.1;

/// A hop as packets of one way meet it.
struct Met<'a> {
    rate: f64,
    load: f64,
    hop: Option<&'a Hop>,
    cross: Vec<&'a Cross>,
}

impl Path {
    /// It without a feature; all else is as it was.
    pub(super) fn without(&self, feature: Feature) -> Path {
        let mut path = self.clone();
        let narrow = [path.narrow(0), path.narrow(1)];
        if feature == Feature::Hops {
            match path.cell {
                Some(_) => path.hops.clear(),
                None => path.hops = path.hops.drain(..).skip(narrow[0]).take(1).collect(),
            }
        }
        if feature == Feature::Wlan && path.cell.take().is_some() {
            path.hops.extend(path.instead.take());
        }
        for (index, hop) in path.hops.iter_mut().enumerate() {
            plain(hop, feature);
            for (way, narrow) in hop.ways.iter_mut().zip(narrow) {
                let goes = feature == Feature::Elsewhere && index != narrow;
                way.cross = way.cross.take().filter(|_| !goes).and_then(|cross| other(cross, feature));
            }
        }
        if let Some(cell) = &mut path.cell {
            match feature {
                Feature::Stations => cell.stations.clear(),
                Feature::Errors => cell.frame_error = 0.0,
                Feature::Adaptation => cell.control = None,
                _ => {}
            }
            cell.stations.retain_mut(|station| match other(station.cross.clone(), feature) {
                Some(cross) => {
                    station.cross = cross;
                    true
                }
                None => false,
            });
        }
        path
    }

    /// The hops of one way, in the order of packets that go there.
    fn met(&self, way: usize) -> Vec<Met<'_>> {
        let link = |hop: &'_ Hop| (hop.ways[way].rate, hop.ways[way].load());
        let mut all: Vec<Met<'_>> = self
            .hops
            .iter()
            .map(|hop| {
                let (rate, load) = link(hop);
                Met { rate, load, hop: Some(hop), cross: hop.ways[way].cross.iter().collect() }
            })
            .collect();
        if let Some(cell) = &self.cell {
            let cross = cell.stations.iter().map(|station| &station.cross).collect();
            all.push(Met { rate: cell.about(cell.rate), load: cell.load(), hop: None, cross });
        }
        if way == 1 {
            all.reverse();
        }
        all
    }

    /// The narrow hop's place from the sender on.
    fn narrow(&self, way: usize) -> usize {
        let met = self.met(way);
        let at = least(&met, |met| met.rate);
        if way == 1 { met.len().saturating_sub(1) - at.min(met.len().saturating_sub(1)) } else { at }
    }

    /// True if a rate changes on it.
    pub(super) fn changes(&self) -> bool {
        self.hops.iter().any(|hop| hop.changes.is_some())
    }

    /// True if a rate changes between these times, in seconds.
    pub(super) fn changes_within(&self, (from, to): (f64, f64)) -> bool {
        let changes = self.hops.iter().filter_map(|hop| hop.changes.as_ref());
        changes.flat_map(times).any(|at| from <= at && at <= to)
    }

    /// The rows of a number of that way, by the features that it met.
    pub(super) fn tags(&self, way: usize) -> Vec<Cow<'static, str>> {
        let mut tags = Vec::new();
        let mut add = |has: bool, tag: &'static str| {
            if has && !tags.contains(&tag.into()) {
                tags.push(tag.into());
            }
        };
        let met = self.met(way);
        let (narrow, tight) = (least(&met, |met| met.rate), least(&met, |met| met.rate * (1.0 - met.load)));
        add(true, ["no hop", "1 hop", "2 hops", "3 hops", "4 hops"][met.len().min(4)]);
        for at in [narrow, tight] {
            let queue = met.get(at).and_then(|met| met.hop).map(|hop| hop.queue);
            add(queue == Some(Queue::Fifo), "fifo");
            add(queue == Some(Queue::Red), "red");
            add(queue == Some(Queue::Codel), "codel");
            add(queue == Some(Queue::FqCodel), "fq-codel");
            add(queue == Some(Queue::Pie), "pie");
        }
        let any = |has: &dyn Fn(&Hop) -> bool| self.hops.iter().any(has);
        let bucket = |policer| move |hop: &Hop| hop.bucket.as_ref().is_some_and(|b| b.policer == policer);
        add(any(&bucket(false)), "shaper");
        add(any(&bucket(true)), "policer");
        let mut crossed = false;
        for cross in met.iter().flat_map(|met| &met.cross) {
            crossed = true;
            add(cross.kind == Kind::Cbr, "cbr");
            add(cross.kind == Kind::Poisson, "poisson");
            add(cross.kind == Kind::Pareto, "pareto");
            add(cross.kind == Kind::Reno, "reno");
            add(cross.kind == Kind::Cubic, "cubic");
        }
        add(!crossed, "idle");
        let busy = |met: &Met<'_>| met.load >= BUSY;
        add(met.iter().take(narrow).any(busy), "busy before the narrow link");
        add(met.iter().skip(narrow + 1).any(busy), "busy behind the narrow link");
        add(narrow != tight, "another link is tight");
        add(any(&|hop| hop.ways[1 - way].cross.is_some()), "traffic the other way");
        add(any(&|hop| hop.ways[0].rate != hop.ways[1].rate), "asymmetry");
        add(any(&|hop| hop.loss.is_some()), "loss");
        add(any(&|hop| hop.jitter.as_ref().is_some_and(|jitter| !jitter.reorder)), "jitter in order");
        add(any(&|hop| hop.jitter.as_ref().is_some_and(|jitter| jitter.reorder)), "jitter that reorders");
        add(any(&|hop| hop.mtu.is_some()), "mtu");
        let Some(cell) = &self.cell else { return tags };
        add(
            true,
            match cell.standard {
                Standard::B => "802.11b",
                Standard::G => "802.11g",
                Standard::N(1) => "802.11n, one stream",
                Standard::N(_) => "802.11n, two streams",
            },
        );
        add(!cell.stations.is_empty(), "stations beside");
        add(cell.frame_error > 0.0, "frame errors");
        add(cell.control.is_some(), "rate adaptation");
        tags
    }
}

fn least(met: &[Met<'_>], of: impl Fn(&Met<'_>) -> f64) -> usize {
    let order = |a: &usize, b: &usize| of(&met[*a]).total_cmp(&of(&met[*b]));
    (0..met.len()).min_by(order).unwrap_or(0)
}

/// A link without a feature of its own.
fn plain(hop: &mut Hop, feature: Feature) {
    let queue = match feature {
        Feature::Red => Some(Queue::Red),
        Feature::Codel => Some(Queue::Codel),
        Feature::FqCodel => Some(Queue::FqCodel),
        Feature::Pie => Some(Queue::Pie),
        _ => None,
    };
    if queue == Some(hop.queue) {
        hop.queue = Queue::Fifo;
    }
    match feature {
        Feature::Asymmetry => hop.ways[1].rate = hop.ways[0].rate,
        Feature::Shaper => hop.bucket = hop.bucket.take().filter(|bucket| bucket.policer),
        Feature::Policer => hop.bucket = hop.bucket.take().filter(|bucket| !bucket.policer),
        Feature::Loss => hop.loss = None,
        Feature::Jitter => hop.jitter = None,
        Feature::Reorder => hop.jitter.iter_mut().for_each(|jitter| jitter.reorder = false),
        Feature::Mtu => hop.mtu = None,
        Feature::Overhead => hop.overhead = 0,
        Feature::Changes => hop.changes = None,
        _ => {}
    }
}

/// Others' traffic without a feature, if any is left.
fn other(mut cross: Cross, feature: Feature) -> Option<Cross> {
    let kind = match feature {
        Feature::Cbr => Some(Kind::Cbr),
        Feature::Poisson => Some(Kind::Poisson),
        Feature::Pareto => Some(Kind::Pareto),
        Feature::Reno => Some(Kind::Reno),
        Feature::Cubic => Some(Kind::Cubic),
        _ => None,
    };
    if feature == Feature::Small {
        cross.size = 1_500;
    }
    (kind != Some(cross.kind)).then_some(cross)
}

/// Names of rows, in their order.
pub(super) const TAGS: &[&str] = &[
    "no hop",
    "1 hop",
    "2 hops",
    "3 hops",
    "4 hops",
    "fifo",
    "red",
    "codel",
    "fq-codel",
    "pie",
    "shaper",
    "policer",
    "idle",
    "cbr",
    "poisson",
    "pareto",
    "reno",
    "cubic",
    "busy before the narrow link",
    "busy behind the narrow link",
    "another link is tight",
    "traffic the other way",
    "asymmetry",
    "loss",
    "jitter in order",
    "jitter that reorders",
    "mtu",
    "802.11b",
    "802.11g",
    "802.11n, one stream",
    "802.11n, two streams",
    "stations beside",
    "frame errors",
    "rate adaptation",
];
