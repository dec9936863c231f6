//! Loss to cause: congestion or the wireless link. One file per loss discrimination algorithm (LDA).
//!
//! A [`Classifier`] is told of every arrival and asked about every loss. Which ones exist is [`REGISTRY`].

mod spike;

pub use spike::Spike;

use crate::report::PacketReport;
use crate::time::Span;

/// What lost a packet.
///
/// ```
/// assert_eq!(lastmile::classify::LossClass::Wireless.to_string(), "wireless");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum LossClass {
    /// A full queue: there is no bandwidth left.
    Congestion,
    /// The wireless link: there is bandwidth left, less what is lost.
    Wireless,
}

impl core::fmt::Display for LossClass {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            LossClass::Congestion => "congestion",
            LossClass::Wireless => "wireless",
        })
    }
}

/// A loss, as it is seen when a later packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The lost packet's place in the order of sending.
    pub seq: u64,
    /// Packets lost in a row, this one among them.
    pub run: u32,
}

/// A loss discrimination algorithm.
///
/// Arrivals are told in the order of sending; the arrival that reveals a loss is told before the loss is asked
/// about, because its delay belongs to the state that judges it (seed 004, section III).
pub trait Classifier: Send {
    /// A packet arrived.
    fn on_arrival(&mut self, packet: &PacketReport);

    /// A packet was lost: why?
    fn classify(&mut self, loss: Loss) -> LossClass;

    /// The coarsest stamps of arrival with which it still works.
    fn resolution_needed(&self) -> Span;
}

/// A registered algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it goes by, in one line.
    pub about: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// Makes one with the paper's parameters.
    pub build: fn() -> Box<dyn Classifier>,
}

/// All algorithms, in the order in which they are listed.
///
/// ```
/// assert!(lastmile::classify::REGISTRY.iter().any(|entry| entry.name == "spike"));
/// ```
pub const REGISTRY: &[Entry] = &[Entry {
    name: "spike",
    about: "congestion while the relative one-way delay is in a spike above half of its range",
    paper: "Tobe et al., NOSSDAV 2000, as parametrised by Cen, Cosman, Voelker, IEEE/ACM ToN 2003, section III.B",
    build: || Box::new(Spike::default()),
}];

/// There is no such algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no loss classifier {name:?}; known: {}", names())]
pub struct UnknownClassifier {
    /// The name asked for.
    pub name: String,
}

fn names() -> String {
    REGISTRY.iter().map(|e| e.name).collect::<Vec<_>>().join(", ")
}

/// Makes the algorithm of that name.
///
/// ```
/// assert!(lastmile::classify::build("spike").is_ok());
/// let error = lastmile::classify::build("crystal ball").err().unwrap();
/// assert_eq!(error.to_string(), "there is no loss classifier \"crystal ball\"; known: spike");
/// ```
pub fn build(name: &str) -> Result<Box<dyn Classifier>, UnknownClassifier> {
    let entry = REGISTRY.iter().find(|e| e.name == name);
    entry.map(|e| (e.build)()).ok_or_else(|| UnknownClassifier { name: name.to_owned() })
}
