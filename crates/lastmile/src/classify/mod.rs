//! Loss to cause: congestion or the wireless link. One file per loss discrimination algorithm (LDA).
//!
//! A [`Classifier`] is told of every arrival and asked about every loss. Which ones exist is [`CLASSIFIERS`].

pub use spike::Spike;

use crate::options::{self, Choice, ChoiceError, Given, Kind, Opt, OptionError, OptionType, Scalar};
use crate::report::{Fate, PacketReport, StreamRecord};
use crate::time::Span;

/// What lost a packet.
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

/// Takes a classifier through a record; for each packet, what lost it if it was lost.
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
        for i in waiting.drain(..) {
            classes[i] = Some(classifier.classify(Loss { seq: record.packets[i].seq, run }));
        }
    };
    for (i, packet) in record.packets.iter().enumerate() {
        match packet.fate {
            Fate::Lost => waiting.push(i),
            Fate::Late => {}
            Fate::Arrived(_) => {
                classifier.on_arrival(packet);
                settle(&mut waiting, classifier);
            }
        }
    }
    // What is lost at the end is judged by the last state known.
    settle(&mut waiting, classifier);
    classes
}

/// A registered loss discrimination algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Lda {
    /// Its name.
    pub name: &'static str,
    /// What it goes by, in one line.
    pub about: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// What it can be told.
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
    /// assert!(lastmile::classify::CLASSIFIERS.iter().any(|lda| lda.name == "spike"));
    /// ```
    pub const CLASSIFIERS: Lda;
    spike,
}

/// Makes the algorithm of that name, with the options given to it.
///
/// ```
/// use lastmile::classify;
/// assert!(classify::build(&"spike(start=0.4)".parse()?).is_ok());
/// let error = classify::build(&"crystal ball".parse()?).err().unwrap();
/// assert_eq!(error.to_string(), "there is no loss classifier \"crystal ball\"; known: spike");
/// # Ok::<(), lastmile::options::OptionError>(())
/// ```
pub fn build(choice: &Choice) -> Result<Box<dyn Classifier>, ChoiceError> {
    let lda = options::find(CLASSIFIERS, &choice.name)?;
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
