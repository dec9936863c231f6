//! Configuration of a sender: its peer, its frames, and its rate.

use core::net::SocketAddr;

use super::source::{self, FrameSource};
use super::summary::Scheme;
use super::{MAX_AWAITED, MEDIA};
use crate::control::{self, Composition, RateController, Setting};
use crate::node::Ecn;
use crate::options::{Choice, ChoiceError, OptionError};
use crate::time::{Epoch, Span, Time};
use crate::units::{Bytes, IpVersion, Rate};
use crate::wire::sdes::Expansion;
use crate::wire::{RTP_HEADER_LEN, SEND_TIME_LEN};

/// Most packets of a frame: all can be awaited if sent at once.
pub const MAX_FRAME_PACKETS: u64 = MAX_AWAITED as u64;

/// Configuration of a sender.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SenderConfig {
    /// The receiver.
    pub peer: SocketAddr,
    /// The source's number, which nobody should guess.
    pub ssrc: u32,
    /// Payload type of its media.
    #[cfg_attr(feature = "serde", serde(default = "media"))]
    pub payload_type: u8,
    /// Its rate: fixed, or by a controller.
    pub rate: SenderRate,
    /// Source of its frames.
    #[cfg_attr(feature = "serde", serde(default))]
    pub source: SourceConfig,
    /// Frames in a second.
    pub frame_rate: f64,
    /// The largest packet, with its IP header.
    pub packet_size: Bytes,
    /// The ECN codepoint of media packets.
    pub ecn: Ecn,
    /// When the first frame is made.
    pub start: Time,
    /// No frame is made from then on.
    pub stop: Time,
    /// When the run started, for the stamps in reports.
    pub epoch: Epoch,
    /// Send no more than that, media and reports together.
    #[cfg_attr(feature = "serde", serde(default))]
    pub max_bytes: Option<Bytes>,
    /// Repeats of packets that the receiver asks for again; `None` for no repeats.
    #[cfg_attr(feature = "serde", serde(default))]
    pub retransmission: Option<Retransmission>,
    /// True if it ends where RFC 8083 says that the path cannot carry it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub circuit_breakers: bool,
    /// Bytes that SRTP adds to packets below this endpoint; sizes and rates count them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub expansion: Expansion,
}

/// The payload type of recordings that have none.
#[cfg(feature = "serde")]
fn media() -> u8 {
    MEDIA
}

/// Source of a sender's frames.
///
/// ```
/// use lastmile::endpoint::stream::SourceConfig;
/// assert_eq!(SourceConfig::default().choice(false).to_string(), "cbr");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SourceConfig {
    /// A registered source with its options; nothing for `cbr` at a fixed rate and `on-demand` at a controller's.
    pub source: Option<Choice>,
    /// Decides its random numbers.
    pub seed: u64,
    /// The sizes of frames in bytes, of a trace alone ([`source::read_sizes`]).
    pub sizes: Vec<u32>,
}

impl SourceConfig {
    /// The source that is meant, where a controller sets the rate or none does.
    pub fn choice(&self, controlled: bool) -> Choice {
        let usual = if controlled { "on-demand" } else { "cbr" };
        self.source.clone().unwrap_or_else(|| Choice::named(usual))
    }
}

/// Repeats of lost packets (RFC 4588), as a stream of their own beside that of the media.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Retransmission {
    /// The source's number of packets that are repeated: another one than the media's.
    pub ssrc: u32,
    /// Time after its departure within which a packet can be repeated.
    pub within: Span,
    /// The most bytes that are repeated, as a share of the media's.
    pub share: f64,
}

impl Retransmission {
    /// The usual share: a quarter of the media's bytes.
    pub const SHARE: f64 = 0.25;
    /// The shortest time that is of any use: a packet is asked for 10 ms after a later one came.
    pub const SHORTEST: Span = Span::from_millis(11);

    /// For that long, the usual share.
    pub fn within(ssrc: u32, within: Span) -> Retransmission {
        Retransmission { ssrc, within, share: Retransmission::SHARE }
    }
}

/// Rate of a sender: fixed, or by a controller.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(untagged))]
pub enum SenderRate {
    /// This rate of IP packets, always.
    Fixed(Rate),
    /// A registered rate controller.
    Controlled(ControlConfig),
}

impl From<Rate> for SenderRate {
    fn from(rate: Rate) -> SenderRate {
        SenderRate::Fixed(rate)
    }
}

/// A registered rate controller, and its limits: rates of IP packets.
///
/// ```
/// use lastmile::{endpoint::stream::ControlConfig, units::{Bytes, Rate}};
/// let mut config = ControlConfig::new("tfrc(preset=ns-2)+spike".parse()?);
/// assert!(config.build(Bytes(1200)).is_ok());
/// config.start = Some(Rate::ip(1));
/// assert!(config.build(Bytes(1200)).unwrap_err().to_string().starts_with("start of tfrc must be 100 bit/s to"));
/// # Ok::<(), lastmile::options::OptionError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ControlConfig {
    /// The controller, with the classifier in front of it.
    pub control: Composition,
    /// Never less.
    pub min: Rate,
    /// Start rate; `None` for the scheme's own.
    pub start: Option<Rate>,
    /// Never more.
    pub max: Rate,
    /// True if packets carry the time of sending and the round-trip time, for feedback once in a round-trip time. Those of
    /// `tfrc(form=receiver)` do in any case.
    #[cfg_attr(feature = "serde", serde(default))]
    pub timed: bool,
}

impl ControlConfig {
    /// With the usual limits.
    pub fn new(control: Composition) -> ControlConfig {
        let Setting { min, start, max, .. } = Setting::default();
        ControlConfig { control, min, start, max, timed: false }
    }

    /// True if packets carry the time; and the scheme by which the receiver is to count losses, if it is asked to.
    pub(super) fn carries(&self) -> (bool, Option<Scheme>) {
        let scheme = self.control.at_receiver().then(|| Scheme::new(self.control.to_string()));
        (self.timed || scheme.is_some(), scheme)
    }

    /// The limits, for packets of that size at most.
    pub fn setting(&self, packet_size: Bytes) -> Setting {
        Setting { min: self.min, start: self.start, max: self.max, packet_size }
    }

    /// Makes the controller.
    ///
    /// # Errors
    /// Nothing of that name is registered, or an option or a limit cannot be.
    pub fn build(&self, packet_size: Bytes) -> Result<Box<dyn RateController>, ChoiceError> {
        control::build(&self.control, &self.setting(packet_size))
    }
}

impl SenderConfig {
    /// A source at that rate for that receiver: 30 frames in a second, packets of 1200 B at most, from the run's beginning
    /// until somebody ends it, with circuit breakers.
    ///
    /// ```
    /// use lastmile::{endpoint::stream::SenderConfig, units::{Bytes, Rate}};
    /// let config = SenderConfig::new("192.0.2.1:5004".parse().unwrap(), 7, Rate::ip(1_000_000));
    /// assert_eq!((config.frame_rate, config.packet_size), (30.0, Bytes(1200)));
    /// ```
    pub fn new(peer: SocketAddr, ssrc: u32, rate: impl Into<SenderRate>) -> SenderConfig {
        SenderConfig {
            peer,
            ssrc,
            payload_type: MEDIA,
            rate: rate.into(),
            source: SourceConfig::default(),
            frame_rate: 30.0,
            packet_size: Bytes(1_200),
            ecn: Ecn::NotEct,
            start: Time::ZERO,
            stop: Time::MAX,
            epoch: Epoch::from_unix_nanos(0),
            max_bytes: None,
            retransmission: None,
            circuit_breakers: true,
            expansion: Expansion::default(),
        }
    }

    /// The size of full media packets: one that is repeated is two bytes longer, and at a controller's largest rate one leaves each
    /// second. With a packet every few seconds, a sender whose first ones are lost would be over before it is heard.
    pub(super) fn full_size(&self) -> Bytes {
        let second = match &self.rate {
            SenderRate::Fixed(_) => Bytes(u64::MAX),
            SenderRate::Controlled(control) => control.max.bytes_in(Span::from_secs(1)),
        };
        let whole = self.packet_size.0.saturating_sub(if self.retransmission.is_some() { 2 } else { 0 });
        Bytes(whole.min(second.0.max(1)))
    }

    /// Bytes of a media packet around its RTP: headers of IP and UDP, and the tag of SRTP.
    pub(super) fn overhead(&self) -> Bytes {
        IpVersion::of(self.peer).udp_overhead() + self.expansion.rtp
    }

    /// Settings of its source.
    pub fn source_setting(&self) -> source::Setting<'_> {
        let SourceConfig { seed, sizes, .. } = &self.source;
        let paced = matches!(self.rate, SenderRate::Controlled(_));
        // Packets under control may carry an extension.
        let extension = if paced { SEND_TIME_LEN } else { 0 };
        let headers = self.overhead() + Bytes((RTP_HEADER_LEN + extension) as u64);
        let (frame_rate, packet_size) = (self.frame_rate, self.full_size());
        source::Setting { frame_rate, packet_size, headers, paced, seed: *seed, sizes }
    }

    /// Makes the source.
    pub(super) fn make_source(&self, controlled: bool) -> Result<Box<dyn FrameSource>, ChoiceError> {
        let setting = source::Setting { paced: controlled, ..self.source_setting() };
        source::build(&self.source.choice(controlled), &setting)
    }

    /// True if a frame has [`MAX_FRAME_PACKETS`] at most, and takes time: a check for values from a file.
    pub fn is_possible(&self) -> bool {
        let frame = self.fixed().bits_per_second() as f64 / 8.0 / self.frame_rate;
        let packet = self.packet_size.0.min(65_535);
        (1e-3..=1e6).contains(&self.frame_rate) && frame <= (MAX_FRAME_PACKETS * packet) as f64
    }

    /// The rate of IP packets at which each frame is a packet with a byte in it: no stream sends less.
    pub fn least_rate(&self) -> Rate {
        let packet = self.source_setting().headers + Bytes(1);
        Rate::ip((packet.bits() as f64 * self.frame_rate) as u64)
    }

    /// The fixed rate; a controlled sender's is none.
    pub(super) fn fixed(&self) -> Rate {
        match self.rate {
            SenderRate::Fixed(rate) => rate,
            SenderRate::Controlled(_) => Rate::ip(0),
        }
    }
}

/// Refuses a classifier that needs to know what really lost packets, where nobody tells.
pub(super) fn refuse_without_truth(control: Option<&Composition>) -> Result<(), ChoiceError> {
    if control.is_some_and(Composition::needs_truth) {
        let why =
            "cannot be omniscient: it needs a simulation's knowledge of its own losses, which no network has";
        return Err(OptionError::new("classifier", why).into());
    }
    Ok(())
}
