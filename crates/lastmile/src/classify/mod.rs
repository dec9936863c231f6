//! Loss to cause: congestion or the wireless link. One file per loss discrimination algorithm (LDA).
//!
//! A [`Classifier`] is told of every arrival and asked about every loss. [`CLASSIFIERS`] lists them. At work it
//! stands in a [`Discriminator`], which replaces it if times of arrival are too coarse. `docs/rate-control.md` has
//! the needs of each, and the reasons why some of the literature's are left out.

mod decision;
mod discriminator;
mod extent;
mod spacing;
#[cfg(test)]
mod testing;

pub use biaz::Biaz;
pub use decision::Decision;
pub use discriminator::{Discriminator, DoubtConfig, LossCounts, Verdicts};
pub use fq_rtt::{FqRtt, FqRttConfig};
pub use none::NoClassifier;
pub use omniscient::Omniscient;
pub use spacing::BiazConfig;
pub use spike::{Spike, SpikeConfig};
pub use spike_rtt::SpikeRtt;
pub use zbs::{Scheme, Zbs, ZbsConfig};
pub use zigzag::{ZigZag, ZigZagConfig};

use crate::options::{self, Choice, ChoiceError, Given, Kind, Opt, OptionError, OptionType, Scalar};
use crate::report::{Fate, StreamRecord};
use crate::telemetry::Visitor;
use crate::time::{Owd, Rx, Span, Time, Tx};
use crate::units::Bytes;

/// Cause of a packet's loss.
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

/// A packet that arrived, as a classifier sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its place in the order of sending.
    pub seq: u64,
    /// Its size at the IP layer.
    pub size: Bytes,
    /// When it left.
    pub sent: Time<Tx>,
    /// When it arrived, where that is known.
    pub at: Option<Time<Rx>>,
    /// The round-trip time that it measured, where it did.
    pub rtt: Option<Span>,
}

impl Arrival {
    /// Its relative one-way trip time.
    pub fn rott(&self) -> Option<Owd> {
        Some(self.at? - self.sent)
    }
}

/// A loss, as it is seen when a later packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The lost packet's place in the order of sending.
    pub seq: u64,
    /// Packets lost in a row, this one among them.
    pub run: u32,
    /// IP bytes of these, if they are known: the sender knows them.
    pub bytes: Option<Bytes>,
    /// The true cause: the simulator's side channel, for `omniscient` alone.
    pub truth: Option<LossClass>,
}

impl Loss {
    /// A loss of which nothing else is known.
    pub fn of(seq: u64, run: u32) -> Loss {
        Loss { seq, run, bytes: None, truth: None }
    }
}

/// A loss discrimination algorithm.
///
/// Arrivals are told in the order of sending; the arrival that reveals a loss is told before the loss is asked
/// about, because its delay belongs to the state that judges it (LDA, section III).
pub trait Classifier: core::fmt::Debug + Send + Sync {
    /// A packet arrived.
    fn on_arrival(&mut self, arrival: &Arrival);

    /// A packet was lost: why?
    fn classify(&mut self, loss: &Loss) -> LossClass;

    /// The packets take another way: the state learnt on the old one may be forgotten.
    fn on_route_change(&mut self) {}

    /// Its verdicts are the truth.
    fn is_certain(&self) -> bool {
        false
    }

    /// The coarsest stamps of arrival with which it works at the moment; [`Span::MAX`] where it needs none.
    fn resolution_needed(&self) -> Span {
        Span::MAX
    }

    /// Schemes that it is made of, and the share of time for which each was in use.
    fn shares(&self) -> Vec<(Name, f64)> {
        Vec::new()
    }

    /// Shows what it knows.
    fn telemetry(&self, _visitor: &mut dyn Visitor) {}

    /// One that goes on from here by itself.
    fn clone_box(&self) -> Box<dyn Classifier>;
}

impl Clone for Box<dyn Classifier> {
    fn clone(&self) -> Box<dyn Classifier> {
        (**self).clone_box()
    }
}

/// Takes a classifier through a record; gives each packet's cause of loss, `None` if it was not lost.
///
/// ```
/// use lastmile::{classify::{self, LossClass, Spike}, node::Ecn, report::*, time::{Span, Time}, units::Bytes};
/// let packet = |seq: u64, fate| PacketReport { seq, size: Bytes(1488), sent: Time::from_nanos(seq), fate, ecn: Ecn::NotEct };
/// let record = StreamRecord {
///     stream: 1, direction: Direction::Forward, pattern: Pattern::Train, planned: vec![Span::ZERO; 2],
///     packets: vec![packet(0, Fate::Arrived(Time::from_nanos(9))), packet(1, Fate::Lost)],
///     tx_resolution: Span::from_nanos(1), rx_resolution: Span::from_nanos(1), clock_stepped: false,
/// };
/// assert_eq!(classify::losses(&record, &mut Spike::default()), [None, Some(LossClass::Wireless)]);
/// ```
pub fn losses(record: &StreamRecord, classifier: &mut dyn Classifier) -> Vec<Option<LossClass>> {
    let mut classes = vec![None; record.packets.len()];
    let mut waiting: Vec<usize> = Vec::new();
    let mut settle = |waiting: &mut Vec<usize>, classifier: &mut dyn Classifier| {
        let run = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
        let bytes = Some(waiting.iter().map(|&i| record.packets[i].size).sum());
        for i in waiting.drain(..) {
            classes[i] = Some(classifier.classify(&Loss { bytes, ..Loss::of(record.packets[i].seq, run) }));
        }
    };
    for (i, packet) in record.packets.iter().enumerate() {
        match packet.fate {
            Fate::Lost => waiting.push(i),
            Fate::Late => {}
            Fate::Arrived(at) => {
                let rtt = record.rtt(i);
                let (seq, size, sent) = (packet.seq, packet.size, packet.sent);
                classifier.on_arrival(&Arrival { seq, size, sent, at: Some(at), rtt });
                settle(&mut waiting, classifier);
            }
        }
    }
    // Losses at the end are judged by the last state known.
    settle(&mut waiting, classifier);
    classes
}

/// Cost of an algorithm, as the paper counts in its tables IV and V: additions, with subtractions and comparisons among
/// them, and multiplications, with divisions. Counted by hand in each file, with the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Cost {
    /// Additions and multiplications at each arrival.
    pub arrival: [u32; 2],
    /// Additions and multiplications at each loss.
    pub loss: [u32; 2],
    /// Bytes of state, its options among them.
    pub state: usize,
}

/// A registered loss discrimination algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Lda {
    /// Its name.
    pub name: &'static str,
    /// Its idea, in one line.
    pub about: &'static str,
    /// Its source in the literature.
    pub paper: &'static str,
    /// The coarsest stamps of arrival with which it works.
    pub resolution: &'static str,
    /// Its cost.
    pub cost: Cost,
    /// Its options.
    pub options: &'static [Opt],
    /// Makes one.
    pub build: fn(&Given) -> Result<Box<dyn Classifier>, OptionError>,
}

impl options::Entry for Lda {
    const WHAT: &'static str = "loss classifier";
    fn name(&self) -> &'static str {
        self.name
    }
    fn options(&self) -> &'static [Opt] {
        self.options
    }
}

options::registry! {
    /// All algorithms, in the order in which they are listed.
    ///
    /// ```
    /// let of = |name| lastmile::classify::CLASSIFIERS.iter().find(|lda| lda.name == name).unwrap();
    /// assert!(of("spike").cost.state < of("zbs").cost.state, "ZBS has Spike in it");
    /// ```
    pub static CLASSIFIERS: Lda;
    spike,
    biaz,
    mbiaz,
    zigzag,
    zbs,
    spike_rtt,
    fq_rtt,
    none,
    omniscient,
}

/// The name of a registered algorithm.
pub type Name = &'static str;

/// Reads one.
#[cfg(feature = "serde")]
pub(crate) fn name<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    let name = <String as serde::Deserialize>::deserialize(deserializer)?;
    find(&name).map(|lda| lda.name).map_err(serde::de::Error::custom)
}

fn find(name: &str) -> Result<&'static Lda, ChoiceError> {
    CLASSIFIERS.find(name)
}

/// Makes the algorithm of that name, with the options given to it.
///
/// ```
/// use lastmile::classify;
/// assert!(classify::build(&"spike(start=0.4)".parse()?).is_ok());
/// let error = classify::build(&"crystal ball".parse()?).err().unwrap();
/// assert!(error.to_string().starts_with("there is no loss classifier \"crystal ball\"; known: spike"));
/// # Ok::<(), lastmile::options::OptionError>(())
/// ```
pub fn build(choice: &Choice) -> Result<Box<dyn Classifier>, ChoiceError> {
    let lda = find(&choice.name)?;
    (lda.build)(&choice.options).map_err(|error| error.of(lda.name).into())
}

/// A classifier that can be built, as the value of an option.
#[derive(Clone, Debug, PartialEq)]
pub struct Named(Choice);

impl Named {
    /// One in its initial state.
    pub fn build(&self) -> Result<Box<dyn Classifier>, OptionError> {
        build(&self.0).map_err(|error| OptionError::new("classifier", format!("cannot be: {error}")))
    }
}

impl OptionType for Named {
    const KIND: Kind = Kind::Classifier;
    type Bound = String;

    fn read(given: &Scalar) -> Result<Named, String> {
        let refused = |error: String| format!("cannot be {given}: {error}");
        let choice: Choice = given.to_string().parse().map_err(|e: OptionError| refused(e.to_string()))?;
        build(&choice).map_err(|error| refused(error.to_string()))?;
        Ok(Named(choice))
    }

    fn show(&self) -> Option<Scalar> {
        Some(Scalar::Text(self.0.to_string()))
    }

    fn bound(&self) -> Option<&String> {
        None
    }

    fn any() -> String {
        CLASSIFIERS.iter().map(|lda| lda.name).collect::<Vec<_>>().join(", ")
    }
}
