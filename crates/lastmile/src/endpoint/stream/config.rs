//! What a sender needs to know: of its peer, its frames, and what sets its rate.

use core::net::SocketAddr;

use super::MAX_AWAITED;
use crate::control::{self, Composition, RateController, Setting};
use crate::node::Ecn;
use crate::options::ChoiceError;
use crate::time::{Epoch, Time};
use crate::units::{Bytes, Rate};

/// Packets of a frame: what is sent at once can be awaited.
pub const MAX_FRAME_PACKETS: u64 = MAX_AWAITED as u64;

/// What a sender needs to know.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SenderConfig {
    /// The receiver.
    pub peer: SocketAddr,
    /// The source's number, which nobody should guess.
    pub ssrc: u32,
    /// What sets the rate.
    pub rate: SenderRate,
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
}

/// What sets a sender's rate.
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
    /// Where to start; nothing for what the scheme starts with.
    pub start: Option<Rate>,
    /// Never more.
    pub max: Rate,
}

impl ControlConfig {
    /// With the usual limits.
    pub fn new(control: Composition) -> ControlConfig {
        let Setting { min, start, max, .. } = Setting::default();
        ControlConfig { control, min, start, max }
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
    /// Whether a frame has [`MAX_FRAME_PACKETS`] at most, and takes time: what comes from a file has to be asked.
    pub fn is_possible(&self) -> bool {
        let frame = self.fixed().bits_per_second() as f64 / 8.0 / self.frame_rate;
        let packet = self.packet_size.0.min(65_535);
        (1e-3..=1e6).contains(&self.frame_rate) && frame <= (MAX_FRAME_PACKETS * packet) as f64
    }

    /// The fixed rate; a controlled sender's is none.
    pub(super) fn fixed(&self) -> Rate {
        match self.rate {
            SenderRate::Fixed(rate) => rate,
            SenderRate::Controlled(_) => Rate::ip(0),
        }
    }
}
