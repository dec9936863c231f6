//! Choices of a WLAN and its stations.

use core::fmt::{self, Display};

use serde::Deserialize;

/// The standard that a WLAN keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standard {
    /// DSSS at 2.4 GHz, 1 to 11 Mbit/s.
    B,
    /// OFDM at 2.4 GHz, 6 to 54 Mbit/s, and b's rates for stations of b.
    #[default]
    G,
    /// OFDM at 5 GHz, 6 to 54 Mbit/s.
    A,
    /// HT with A-MPDU, one rate set by [`streams`](super::WlanConfig::streams).
    N,
}

impl Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Standard::B => "b",
            Standard::G => "g",
            Standard::A => "a",
            Standard::N => "n",
        })
    }
}

/// The preamble of frames at DSSS rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preamble {
    /// 192 us with the header.
    #[default]
    Long,
    /// 96 us, except at 1 Mbit/s.
    Short,
}

/// The slot of 802.11g.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotTime {
    /// 9 us: no station of b is near.
    #[default]
    Short,
    /// 20 us.
    Long,
}

/// Protection of 802.11g's frames from stations of b, which cannot hear them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// Not at all: no station of b is near.
    #[default]
    None,
    /// A CTS to oneself at [`protection_rate`](super::WlanConfig::protection_rate) before every OFDM frame.
    CtsToSelf,
    /// RTS and CTS at that rate before every OFDM frame.
    RtsCts,
}

/// The band of 802.11n, which decides its SIFS and signal extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Band {
    /// SIFS 10 us, signal extension 6 us.
    #[serde(rename = "2.4 GHz")]
    TwoPointFourGhz,
    /// SIFS 16 us.
    #[default]
    #[serde(rename = "5 GHz")]
    FiveGhz,
}

/// Wait of stations after a collision before they count slots again.
///
/// Published models and programs differ in this; at ten stations it is worth 3 % of the throughput, and where
/// frames differ in length it decides who gains by a collision. The default is ns-3 3.37's: within 0.5 % of it
/// (beacons aside) from 1 to 20 stations of b and of g, with unequal rates and unequal packets too, and within
/// 1 % of the slotted model of [`Difs`](AfterCollision::Difs).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterCollision {
    /// All DIFS after the longest frame (Tc = data + DIFS).
    Difs,
    /// All as long as if the longest frame had been acknowledged (Tc = Ts): the ACK timeout of those who
    /// collided, EIFS with an ACK at the ACK's rate for the others.
    Exchange,
    /// Those who collided ACK timeout and DIFS from the end of their own frame, in whole slots; the others
    /// DIFS, as stations that could not read even the header. A station that still waits when another begins to send
    /// waits for that instead.
    #[default]
    Timeout,
    /// Those who collided ACK timeout and DIFS, the others EIFS with an ACK at the lowest rate, in whole slots:
    /// the standard's letter (IEEE 802.11-2016, 10.3.2.3.7). Agrees with ns-2 2.35 within 1 %.
    Eifs,
}

/// A sender's choice of the rate of each frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RateControl {
    /// Always the station's rate.
    #[default]
    Fixed,
    /// ARF (Kamerman and Monteban, 1997), from the station's rate on.
    Arf,
    /// AARF (Lacage, Manshaei and Turletti, 2004), from the station's rate on.
    Aarf,
    /// Minstrel. It limits the transmissions of a frame itself; `short_retry` still limits requests.
    Minstrel,
}
