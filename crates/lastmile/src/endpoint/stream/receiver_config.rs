//! Configuration of a receiver: time between feedback messages, and count of losses.

use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use super::RETRANSMITTED;
use crate::control::{self, Composition, tfrc};
use crate::options::{Choice, ChoiceError};
use crate::time::{Epoch, Span};
use crate::wire::sdes::Expansion;

/// Possible times between feedback messages.
const INTERVALS: RangeInclusive<Span> = Span::from_millis(1)..=Span::from_secs(5);

/// Time between a receiver's feedback messages: `50 ms`, or `rtt`.
///
/// ```
/// use lastmile::endpoint::stream::FeedbackInterval;
/// assert_eq!("rtt".parse(), Ok(FeedbackInterval::RoundTrip));
/// assert_eq!(FeedbackInterval::default().to_string(), "50 ms");
/// assert!("1 h".parse::<FeedbackInterval>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "String", try_from = "String")
)]
pub enum FeedbackInterval {
    /// Every so often.
    Every(Span),
    /// Once in a round-trip time, of which packets have to tell; until they do, as often as usual.
    RoundTrip,
}

impl Default for FeedbackInterval {
    /// 50 ms.
    fn default() -> FeedbackInterval {
        FeedbackInterval::Every(Span::from_millis(50))
    }
}

impl fmt::Display for FeedbackInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeedbackInterval::Every(span) => span.fmt(f),
            FeedbackInterval::RoundTrip => f.pad("rtt"),
        }
    }
}

impl FromStr for FeedbackInterval {
    type Err = String;

    fn from_str(text: &str) -> Result<FeedbackInterval, String> {
        let span = || text.parse().ok().filter(|span| INTERVALS.contains(span)).map(FeedbackInterval::Every);
        let interval = if text == "rtt" { Some(FeedbackInterval::RoundTrip) } else { span() };
        interval.ok_or_else(|| format!("feedback every 1 ms to 5 s, or \"rtt\", not {text:?}"))
    }
}

impl From<FeedbackInterval> for String {
    fn from(interval: FeedbackInterval) -> String {
        interval.to_string()
    }
}

impl TryFrom<String> for FeedbackInterval {
    type Error = String;
    fn try_from(text: String) -> Result<FeedbackInterval, String> {
        text.parse()
    }
}

impl FeedbackInterval {
    /// The possible one that is nearest to that time.
    pub(super) fn nearest(every: Span) -> FeedbackInterval {
        FeedbackInterval::Every(every.clamp(*INTERVALS.start(), *INTERVALS.end()))
    }

    /// The time to the next feedback, at that round-trip time.
    pub(super) fn span(self, rtt: Option<Span>) -> Span {
        match self {
            FeedbackInterval::Every(span) => span,
            FeedbackInterval::RoundTrip => {
                rtt.map_or(Span::from_millis(50), |rtt| rtt.max(Span::from_millis(1)))
            }
        }
    }
}

/// Configuration of a receiver.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReceiverConfig {
    /// Its own source's number.
    pub ssrc: u32,
    /// Time between feedback messages.
    pub feedback: FeedbackInterval,
    /// When the run started, for the stamps in feedback.
    pub epoch: Epoch,
    /// True if feedback has times of arrival in units of the media's clock as well (RFC 3611, section 4.3).
    #[cfg_attr(feature = "serde", serde(default))]
    pub receipt_times: bool,
    /// Time for which a missed packet is of use, and asked for again; `None` to ask for none.
    #[cfg_attr(feature = "serde", serde(default))]
    pub nack: Option<Span>,
    /// Payload type of H.264 that is put together and played; `None` for none.
    #[cfg_attr(feature = "serde", serde(default))]
    pub video: Option<u8>,
    /// Bytes that SRTP adds to packets below this endpoint; counts have them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub expansion: Expansion,
    /// Resolution of its stamps of arrival.
    pub resolution: Span,
    /// `tfrc(form=receiver)` with its options and the classifier in front, of sources that ask for reports and have named no
    /// scheme; nothing for RFC 5348's.
    pub control: Option<Composition>,
}

impl ReceiverConfig {
    /// Feedback every 50 ms, exact stamps, and nothing else.
    pub fn new(ssrc: u32) -> ReceiverConfig {
        ReceiverConfig {
            ssrc,
            feedback: FeedbackInterval::default(),
            epoch: Epoch::from_unix_nanos(0),
            receipt_times: false,
            nack: None,
            video: None,
            expansion: Expansion::default(),
            resolution: Span::from_nanos(1),
            control: None,
        }
    }

    /// True if packets of that payload type repeat others.
    pub(super) fn repeats(&self, payload_type: u8) -> bool {
        self.nack.is_some() && payload_type == RETRANSMITTED && self.video != Some(RETRANSMITTED)
    }

    /// Scheme by which losses are counted until a source names one.
    pub(super) fn scheme(&self) -> Composition {
        let usual = || Composition::of(Choice::named("tfrc").with("form", "receiver"));
        self.control.clone().unwrap_or_else(usual)
    }

    /// Receiver that counts losses by that scheme.
    pub(super) fn counting(&self, scheme: &Composition) -> Result<tfrc::Receiver, ChoiceError> {
        let every = match self.feedback {
            FeedbackInterval::Every(span) => Some(span),
            FeedbackInterval::RoundTrip => None,
        };
        control::build_receiver(scheme, every)
    }
}
