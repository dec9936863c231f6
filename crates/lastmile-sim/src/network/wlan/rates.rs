//! The rates of 802.11 b, g, a and n (IEEE Std 802.11-2016).

use lastmile::units::Rate;

use super::choices::Standard;
use super::config::{WlanConfig, refused, within};
use crate::network::ConfigError;

/// Modulation of a rate. The duration of a frame and its errors depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulation {
    /// DSSS and CCK (clauses 15 and 16).
    Dsss,
    /// OFDM (clauses 17 and 18) with so many data bits in a symbol of 4 us.
    Ofdm {
        /// N_DBPS.
        bits_per_symbol: u32,
    },
    /// HT-mixed format (clause 19).
    Ht {
        /// N_DBPS.
        bits_per_symbol: u32,
        /// Spatial streams.
        streams: u8,
        /// Symbols of 3.6 us instead of 4.
        short_guard: bool,
    },
}

/// One rate of a PHY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhyRate {
    /// Kilobits per second; with the short guard interval of n rounded down.
    pub kbps: u32,
    /// Its modulation.
    pub modulation: Modulation,
    /// Coded bits per subcarrier and symbol: 1, 2, 4, 6; for DSSS 0.
    pub bits_per_carrier: u8,
    /// The convolutional code as numerator and denominator; for DSSS 1/1.
    pub code: (u8, u8),
    /// The rate without HT that control responses are derived from (10.7.6.5.4), kbit/s.
    pub reference_kbps: u32,
}

/// Bits per subcarrier, code, kbit/s, N_DBPS (table 17-4).
const OFDM: [(u8, (u8, u8), u32, u32); 8] = [
    (1, (1, 2), 6_000, 24),
    (1, (3, 4), 9_000, 36),
    (2, (1, 2), 12_000, 48),
    (2, (3, 4), 18_000, 72),
    (4, (1, 2), 24_000, 96),
    (4, (3, 4), 36_000, 144),
    (6, (2, 3), 48_000, 192),
    (6, (3, 4), 54_000, 216),
];
/// MCS 0 to 7 (table 19-27): bits per subcarrier, code, the rate without HT.
const HT: [(u8, (u8, u8), u32); 8] = [
    (1, (1, 2), 6_000),
    (2, (1, 2), 12_000),
    (2, (3, 4), 18_000),
    (4, (1, 2), 24_000),
    (4, (3, 4), 36_000),
    (6, (2, 3), 48_000),
    (6, (3, 4), 54_000),
    (6, (5, 6), 54_000),
];
pub(super) const DSSS: [u32; 4] = [1_000, 2_000, 5_500, 11_000];

pub(super) fn kbps(rate: Rate) -> u32 {
    u32::try_from(rate.bits_per_second() / 1_000).unwrap_or(u32::MAX)
}

pub(super) fn rates(config: &WlanConfig) -> Result<Vec<PhyRate>, ConfigError> {
    let mut rates = Vec::new();
    let standard = config.standard;
    if matches!(standard, Standard::B | Standard::G) {
        rates.extend(DSSS.map(|kbps| PhyRate {
            kbps,
            modulation: Modulation::Dsss,
            bits_per_carrier: 0,
            code: (1, 1),
            reference_kbps: kbps,
        }));
    }
    if standard != Standard::B {
        rates.extend(OFDM.map(|(bits_per_carrier, code, kbps, bits_per_symbol)| PhyRate {
            kbps,
            modulation: Modulation::Ofdm { bits_per_symbol },
            bits_per_carrier,
            code,
            reference_kbps: kbps,
        }));
    }
    if standard == Standard::N {
        within("streams", config.streams, 1..=4)?;
        let carriers = match config.channel_mhz {
            20 => 52,
            40 => 108,
            other => return Err(refused("channel_mhz", format!("{other} is neither 20 nor 40"))),
        };
        rates.extend(HT.map(|(bits_per_carrier, code, reference_kbps)| {
            let coded = carriers * u32::from(bits_per_carrier) * u32::from(config.streams);
            let bits_per_symbol = coded * u32::from(code.0) / u32::from(code.1);
            let kbps = if config.short_guard { bits_per_symbol * 2_500 / 9 } else { bits_per_symbol * 250 };
            let (streams, short_guard) = (config.streams, config.short_guard);
            let modulation = Modulation::Ht { bits_per_symbol, streams, short_guard };
            PhyRate { kbps, modulation, bits_per_carrier, code, reference_kbps }
        }));
    }
    Ok(rates)
}
