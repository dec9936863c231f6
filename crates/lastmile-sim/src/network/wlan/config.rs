//! Configuration of a WLAN in a scenario file. Every default is the standard's, or named as ours.

use core::fmt::Display;
use core::ops::RangeInclusive;
use std::sync::Arc;

use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use serde::Deserialize;

use super::choices::{AfterCollision, Band, Preamble, Protection, RateControl, SlotTime, Standard};
use crate::network::config_error::{ConfigError, require};
use crate::network::loss::MarkovTime;
use crate::network::trace::{Trace, TraceConfig};
use crate::text;

/// Radio channel of a station: path loss and noise between it and its access point.
///
/// ```
/// let channel = lastmile_sim::network::wlan::ChannelConfig { distance_m: 10.0, ..Default::default() };
/// assert!((channel.mean_snr_db(20e6) - 39.9).abs() < 0.1);
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ChannelConfig {
    /// Distance to the access point.
    pub distance_m: f64,
    /// Power at the antenna, both ways. 16.02 dBm is 40 mW.
    pub tx_power_dbm: f64,
    /// Loss at 1 m: 40.05 dB is free space at 2.4 GHz (RFC 8869, section 4.1).
    pub reference_loss_db: f64,
    /// Exponent of the log-distance law (RFC 8869: 3.0).
    pub exponent: f64,
    /// Noise that the receiver adds to thermal noise.
    pub noise_figure_db: f64,
    /// Standard deviation of log-normal shadowing, drawn anew each [`coherence`](ChannelConfig::coherence).
    pub shadowing_db: f64,
    /// Time for which the shadowing stays.
    #[serde(deserialize_with = "text::unit")]
    pub coherence: Span,
    /// Signal to noise ratio given outright, instead of by distance and power.
    pub snr_db: Option<f64>,
}

impl Default for ChannelConfig {
    fn default() -> ChannelConfig {
        ChannelConfig {
            distance_m: 1.0,
            tx_power_dbm: 16.02,
            reference_loss_db: 40.05,
            exponent: 3.0,
            noise_figure_db: 7.0,
            shadowing_db: 0.0,
            coherence: Span::from_millis(100),
            snr_db: None,
        }
    }
}

/// A change of a client from some time on, both ways. Values not given stay.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct StationChange {
    /// When: later than the change before. The next transmission is the first that it concerns.
    #[serde(deserialize_with = "text::unit")]
    pub at: Span,
    /// [`StationConfig::rate`] and, unless the next is given, [`StationConfig::down_rate`]. Rate control begins
    /// anew from it.
    #[serde(deserialize_with = "text::optional")]
    pub rate: Option<Rate>,
    /// [`StationConfig::down_rate`].
    #[serde(deserialize_with = "text::optional")]
    pub down_rate: Option<Rate>,
    /// [`StationConfig::frame_error`], both ways.
    #[serde(deserialize_with = "text::some_share")]
    pub frame_error: Option<f64>,
    /// [`ChannelConfig::distance_m`](ChannelConfig::distance_m), which from then on counts instead of a
    /// given SNR.
    pub distance_m: Option<f64>,
    /// [`ChannelConfig::snr_db`](ChannelConfig::snr_db).
    pub snr_db: Option<f64>,
}

/// The trace that drives a client, both ways: as a scenario names it, or open.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "TraceConfig")]
pub enum StationTrace {
    /// Named, which is not enough for a medium.
    Named(TraceConfig),
    /// Looked through.
    Open(Arc<Trace>),
}

impl From<TraceConfig> for StationTrace {
    fn from(config: TraceConfig) -> StationTrace {
        StationTrace::Named(config)
    }
}

/// An access point or a client.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct StationConfig {
    /// Its name, which also names its random numbers.
    pub name: String,
    /// The access point that it is a client of; none for an access point. Several cells on one channel are
    /// several access points of one WLAN.
    pub ap: Option<String>,
    /// The rate of frames from it and, for a client, to it; the standard's highest if none is given. Without
    /// meaning for an access point.
    #[serde(deserialize_with = "text::optional")]
    pub rate: Option<Rate>,
    /// The rate of frames to it, where it differs.
    #[serde(deserialize_with = "text::optional")]
    pub down_rate: Option<Rate>,
    /// Rate control, both ways: among the rates of the same modulation (DSSS, OFDM, HT) up to
    /// [`rate`](StationConfig::rate).
    pub rate_control: RateControl,
    /// Packets that its queue holds; WBest's authors found 40 to 300 in access points. The frame on the air counts.
    pub queue: u32,
    /// The share of its data frames, both ways, that noise destroys, each independently, beside what
    /// [`channel`](StationConfig::channel) destroys.
    #[serde(deserialize_with = "text::share")]
    pub frame_error: f64,
    /// The same for frames to it, where it differs.
    #[serde(deserialize_with = "text::some_share")]
    pub down_frame_error: Option<f64>,
    /// Path loss and noise; without it only [`frame_error`](StationConfig::frame_error) counts.
    pub channel: Option<ChannelConfig>,
    /// Errors in bursts: a frame on the air to it or from it in a bad moment is destroyed, also a request to send; an
    /// aggregate as a whole.
    pub markov: Option<MarkovTime>,
    /// Changes of it during the run.
    pub schedule: Vec<StationChange>,
    /// A trace that says its rate, its signal to noise ratio or its distance, instead of `schedule`.
    pub trace: Option<StationTrace>,
}

impl Default for StationConfig {
    fn default() -> StationConfig {
        StationConfig {
            name: String::new(),
            ap: None,
            rate: None,
            down_rate: None,
            rate_control: RateControl::Fixed,
            queue: 100,
            frame_error: 0.0,
            down_frame_error: None,
            channel: None,
            markov: None,
            schedule: Vec::new(),
            trace: None,
        }
    }
}

/// Aggregation of 802.11n. Without it a station sends single frames with ACKs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct AmpduConfig {
    /// The most frames in one: the block ack's window, at most 64.
    pub max_frames: u32,
    /// The most bytes in one, delimiters and padding included.
    #[serde(deserialize_with = "text::unit")]
    pub max_bytes: Bytes,
    /// The longest transmission. 5.484 ms is what the legacy header can announce.
    #[serde(deserialize_with = "text::unit")]
    pub max_duration: Span,
    /// True if a sender whose aggregate stays without a block ack asks for it by a request of its own before it
    /// sends anything else, as ns-3 does; otherwise it repeats the data. The standard allows both (10.24.7.7). The
    /// request is another access to the medium, and the answer to it ends the doubling of the contention window.
    pub request_block_ack: bool,
}

impl Default for AmpduConfig {
    fn default() -> AmpduConfig {
        AmpduConfig {
            max_frames: 64,
            max_bytes: Bytes(65_535),
            max_duration: Span::from_micros(5_484),
            request_block_ack: true,
        }
    }
}

/// A WLAN: all stations that hear each other on one channel.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct WlanConfig {
    /// The standard.
    pub standard: Standard,
    /// The preamble at DSSS rates.
    pub preamble: Preamble,
    /// The slot of g.
    pub slot: SlotTime,
    /// Protection of g from stations of b.
    pub protection: Protection,
    /// The DSSS rate of CTS and RTS that protect: 11 Mbit/s if not given. ns-3 sends them at 1 Mbit/s.
    #[serde(deserialize_with = "text::optional")]
    pub protection_rate: Option<Rate>,
    /// The band of n.
    pub band: Band,
    /// Width of n's channel: 20 or 40.
    pub channel_mhz: u32,
    /// Spatial streams of n.
    pub streams: u8,
    /// The short guard interval of n.
    pub short_guard: bool,
    /// Aggregation of n.
    pub ampdu: Option<AmpduConfig>,
    /// Slots after SIFS that a station waits after a busy medium: 2 (DIFS), for n 3 (best effort) if not given.
    pub aifsn: Option<u8>,
    /// The smallest contention window: 31 for b, 15 else if not given.
    pub cw_min: Option<u32>,
    /// The largest: 1023 if not given.
    pub cw_max: Option<u32>,
    /// Transmissions of a frame up to [`rts_threshold`](WlanConfig::rts_threshold), or requests to send a longer
    /// one, after which it is lost.
    pub short_retry: u8,
    /// Transmissions of a longer one itself.
    pub long_retry: u8,
    /// Frames longer than this, MAC header and FCS included, begin with RTS and CTS; none do if not given.
    #[serde(deserialize_with = "text::optional")]
    pub rts_threshold: Option<Bytes>,
    /// Rates that responses may use: 1 and 2 Mbit/s for b, 6, 12 and 24 for a and n, both for g if not given.
    #[serde(deserialize_with = "text::optional_list")]
    pub basic_rates: Option<Vec<Rate>>,
    /// The rate of all responses, instead of the rule of the basic rates.
    #[serde(deserialize_with = "text::optional")]
    pub ack_rate: Option<Rate>,
    /// Wait after a collision.
    pub after_collision: AfterCollision,
    /// LLC and SNAP before each IP packet.
    #[serde(deserialize_with = "text::unit")]
    pub llc: Bytes,
    /// MAC header and FCS: 28, for n 30 (QoS) if not given.
    #[serde(deserialize_with = "text::optional")]
    pub mac_header: Option<Bytes>,
    /// Access points and clients.
    pub station: Vec<StationConfig>,
}

impl Default for WlanConfig {
    fn default() -> WlanConfig {
        WlanConfig {
            standard: Standard::G,
            preamble: Preamble::Long,
            slot: SlotTime::Short,
            protection: Protection::None,
            protection_rate: None,
            band: Band::FiveGhz,
            channel_mhz: 20,
            streams: 1,
            short_guard: false,
            ampdu: None,
            aifsn: None,
            cw_min: None,
            cw_max: None,
            short_retry: 7,
            long_retry: 4,
            rts_threshold: None,
            basic_rates: None,
            ack_rate: None,
            after_collision: AfterCollision::Timeout,
            llc: Bytes(8),
            mac_header: None,
            station: Vec::new(),
        }
    }
}

/// Why a WLAN cannot be, by the path of the key to change, such as `cw_min` or `station[1].schedule[2].rate`.
pub(super) fn refused(key: impl Into<String>, reason: impl Into<String>) -> ConfigError {
    ConfigError { key: key.into(), reason: reason.into() }
}

/// Refuses what is not within a range.
pub(super) fn within<T: PartialOrd + Display>(
    key: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), ConfigError> {
    let (least, most) = (range.start(), range.end());
    require(range.contains(&value), key, format!("{value} is not between {least} and {most}"))
}
