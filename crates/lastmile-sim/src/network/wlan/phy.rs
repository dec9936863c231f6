//! [`Phy`]: durations of the frames of 802.11 b, g, a and n, and the times between them.
//!
//! Clauses are those of IEEE Std 802.11-2016. All durations are whole nanoseconds.

use lastmile::time::Span;
use lastmile::units::Rate;

use super::choices::{Band, Preamble, Protection, SlotTime, Standard};
use super::config::{WlanConfig, refused, within};
use super::rates::{DSSS, kbps, rates};
pub use super::rates::{Modulation, PhyRate};
use crate::network::ConfigError;

/// ACK and CTS (9.3.1.3, 9.3.1.4), RTS (9.3.1.2), compressed block ack (9.3.1.9), in bytes.
const ACK_BYTES: u32 = 14;
const RTS_BYTES: u32 = 20;
const BLOCK_ACK_BYTES: u32 = 32;
/// A compressed block ack request (9.3.1.8).
const BLOCK_ACK_REQUEST_BYTES: u32 = 24;

/// The times of one WLAN's physical layer, and its rates in rising order.
#[derive(Clone, Debug)]
pub struct Phy {
    /// Slot time, ns.
    pub slot: u64,
    /// SIFS, ns.
    pub sifs: u64,
    /// Wait of a station after a busy medium before it counts slots: DIFS, or AIFS of n's best effort, ns.
    pub difs: u64,
    /// Wait of a station after a frame that it could not read, by the standard (10.3.2.3.7), ns.
    pub eifs: u64,
    /// The smallest contention window: backoffs are drawn from 0 to it.
    pub cw_min: u32,
    /// The largest.
    pub cw_max: u32,
    rates: Vec<PhyRate>,
    control: Vec<Control>,
    plcp_short: bool,
    signal_extension: u64,
    /// Protection of OFDM frames, at the DSSS rate of index `protection_rate`.
    protection: Protection,
    protection_rate: usize,
}

/// The durations of the control frames that go with a data rate, ns.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// The ACK to a frame.
    pub ack: u64,
    /// The block ack to an A-MPDU.
    pub block_ack: u64,
    /// The request for it.
    pub block_ack_request: u64,
    /// The CTS before a frame.
    pub cts: u64,
    /// The RTS before that.
    pub rts: u64,
    /// Preamble and header of the ACK and of the CTS: a sender waits for these before it gives them up.
    ack_start: u64,
    cts_start: u64,
}

impl Phy {
    /// The physical layer that a configuration describes.
    ///
    /// # Errors
    /// If options contradict each other, or a rate is not the standard's.
    pub fn new(config: &WlanConfig) -> Result<Phy, ConfigError> {
        let standard = config.standard;
        let us = 1_000;
        let long_slot = standard == Standard::B || (standard == Standard::G && config.slot == SlotTime::Long);
        let five = standard == Standard::A || (standard == Standard::N && config.band == Band::FiveGhz);
        let slot = if long_slot { 20 * us } else { 9 * us };
        let sifs = if five { 16 * us } else { 10 * us };
        let aifsn = config.aifsn.unwrap_or(if standard == Standard::N { 3 } else { 2 });
        within("aifsn", aifsn, 1..=15)?;
        let rates = rates(config)?;
        let mut phy = Phy {
            slot,
            sifs,
            difs: sifs + u64::from(aifsn) * slot,
            eifs: 0,
            cw_min: config.cw_min.unwrap_or(if standard == Standard::B { 31 } else { 15 }),
            cw_max: config.cw_max.unwrap_or(1023),
            rates,
            control: Vec::new(),
            plcp_short: config.preamble == Preamble::Short,
            signal_extension: if matches!(standard, Standard::G | Standard::N) && !five { 6 * us } else { 0 },
            protection: config.protection,
            protection_rate: 0,
        };
        if phy.cw_min > phy.cw_max || phy.cw_max > 1 << 20 {
            let what = format!("the contention window cannot go from {} to {}", phy.cw_min, phy.cw_max);
            return Err(refused("cw_min", what));
        }
        phy.protection_rate = match config.protection_rate.map(kbps) {
            None => DSSS.len() - 1,
            Some(_) if config.protection == Protection::None => {
                return Err(refused("protection_rate", "nothing is protected"));
            }
            Some(kbps) => DSSS.iter().position(|&k| k == kbps).ok_or_else(|| {
                refused("protection_rate", format!("{kbps} kbit/s is none of 1, 2, 5.5 and 11 Mbit/s"))
            })?,
        };
        let basic = phy.basic_rates(config)?;
        phy.control = (0..phy.rates.len())
            .map(|rate| phy.control_of(rate, config, &basic))
            .collect::<Result<_, _>>()?;
        // If no station of b is near, stations of g count with acknowledgements of their own kind.
        let near = |&&b: &&usize| config.protection != Protection::None || b >= DSSS.len();
        let own = if standard == Standard::G { basic.iter().find(near) } else { None };
        let slowest = own.or(basic.first()).copied().unwrap_or(0);
        phy.eifs = phy.sifs + phy.plain(slowest, ACK_BYTES) + phy.difs;
        Ok(phy)
    }

    fn basic_rates(&self, config: &WlanConfig) -> Result<Vec<usize>, ConfigError> {
        let mut basic = Vec::new();
        let given: Vec<u32> = match (&config.basic_rates, config.standard) {
            (Some(given), _) => given.iter().map(|rate| kbps(*rate)).collect(),
            (None, Standard::B) => vec![1_000, 2_000],
            (None, Standard::G) => vec![1_000, 2_000, 6_000, 12_000, 24_000],
            (None, _) => vec![6_000, 12_000, 24_000],
        };
        for kbps in given {
            let found = self.legacy(kbps);
            basic.push(found.ok_or_else(|| {
                refused("basic_rates", format!("{kbps} kbit/s is no rate of 802.11{}", config.standard))
            })?);
        }
        basic.sort_unstable();
        if basic.is_empty() {
            return Err(refused("basic_rates", "the list is empty"));
        }
        Ok(basic)
    }

    /// A rate that every station of the standard can receive.
    fn legacy(&self, kbps: u32) -> Option<usize> {
        self.rates.iter().position(|r| r.kbps == kbps && !matches!(r.modulation, Modulation::Ht { .. }))
    }

    /// Responses go at the highest basic rate that is not above the frame's and of its modulation
    /// (10.7.6.5.2), or at the highest mandatory rate of which both is true where there is none: all of DSSS
    /// (16.2.3), 6, 12 and 24 Mbit/s of OFDM (17.3.8.1).
    fn control_of(&self, rate: usize, config: &WlanConfig, basic: &[usize]) -> Result<Control, ConfigError> {
        let dsss = self.rates[rate].modulation == Modulation::Dsss;
        let response = match config.ack_rate {
            Some(given) => {
                let kbps = kbps(given);
                let error =
                    || refused("ack_rate", format!("{kbps} kbit/s is no rate of 802.11{}", config.standard));
                self.legacy(kbps).ok_or_else(error)?
            }
            None => {
                let reference = self.rates[rate].reference_kbps;
                let fits = |&&b: &&usize| {
                    self.rates[b].kbps <= reference && (self.rates[b].modulation == Modulation::Dsss) == dsss
                };
                let mandatory: &[u32] = if dsss { &DSSS } else { &[6_000, 12_000, 24_000] };
                let highest = || self.legacy(*mandatory.iter().rev().find(|&&m| m <= reference)?);
                basic.iter().rev().find(fits).copied().or_else(highest).unwrap_or(0)
            }
        };
        let request = if self.protection == Protection::RtsCts { self.protection_rate } else { response };
        Ok(Control {
            ack: self.plain(response, ACK_BYTES),
            block_ack: self.plain(response, BLOCK_ACK_BYTES),
            block_ack_request: self.plain(response, BLOCK_ACK_REQUEST_BYTES),
            cts: self.plain(request, ACK_BYTES),
            rts: self.plain(request, RTS_BYTES),
            ack_start: self.preamble(response),
            cts_start: self.preamble(request),
        })
    }

    /// The rates, slowest first; with n, those without HT come before those with.
    pub fn rates(&self) -> &[PhyRate] {
        &self.rates
    }

    /// The rate of that many bits per second, to half a percent: "7.2 Mbit/s" stands for 7 2/9. With n, an HT
    /// rate where there is one.
    pub fn find(&self, rate: Rate) -> Option<usize> {
        let wanted = kbps(rate);
        self.rates.iter().rposition(|r| r.kbps.abs_diff(wanted) <= wanted / 200)
    }

    fn preamble(&self, rate: usize) -> u64 {
        match self.rates[rate].modulation {
            // 16.2.2: short preambles only above 1 Mbit/s.
            Modulation::Dsss if self.plcp_short && self.rates[rate].kbps > 1_000 => 96_000,
            Modulation::Dsss => 192_000,
            Modulation::Ofdm { .. } => 20_000,
            // 19.3.11: legacy preamble 20, HT-SIG 8, HT-STF 4, one HT-LTF of 4 per stream (four for three).
            Modulation::Ht { streams, .. } => {
                32_000 + 4_000 * u64::from(if streams == 3 { 4 } else { streams })
            }
        }
    }

    /// A frame of `bytes` (MAC header to FCS; an A-MPDU with its delimiters) at a rate, ns.
    #[inline]
    pub fn plain(&self, rate: usize, bytes: u32) -> u64 {
        let preamble = self.preamble(rate);
        let bits = 8 * u64::from(bytes);
        match self.rates[rate].modulation {
            Modulation::Dsss => preamble + (bits * 1_000_000).div_ceil(u64::from(self.rates[rate].kbps)),
            // 17.4.3: 16 bits of service, 6 of tail.
            Modulation::Ofdm { bits_per_symbol } => {
                preamble + 4_000 * (22 + bits).div_ceil(u64::from(bits_per_symbol)) + self.signal_extension
            }
            Modulation::Ht { bits_per_symbol, short_guard, .. } => {
                let symbols = (22 + bits).div_ceil(u64::from(bits_per_symbol));
                // 19.4.3: with the short guard interval the whole is rounded up to a symbol of 4 us.
                let symbols = if short_guard { (symbols * 9).div_ceil(10) } else { symbols };
                preamble + 4_000 * symbols + self.signal_extension
            }
        }
    }

    /// A data frame with the CTS to self that precedes it where the WLAN has older stations to protect from.
    #[inline]
    pub fn frame(&self, rate: usize, bytes: u32) -> u64 {
        let own = self.plain(rate, bytes);
        if self.protection == Protection::CtsToSelf && self.rates[rate].modulation != Modulation::Dsss {
            return self.plain(self.protection_rate, ACK_BYTES) + self.sifs + own;
        }
        own
    }

    /// True if every frame at this rate begins with RTS and CTS, whatever its size.
    #[inline]
    pub fn always_requests(&self, rate: usize) -> bool {
        self.protection == Protection::RtsCts && self.rates[rate].modulation != Modulation::Dsss
    }

    /// The durations of what goes with a frame at that rate.
    #[inline]
    pub fn control(&self, rate: usize) -> &Control {
        &self.control[rate]
    }

    /// Wait of the sender of a frame at that rate for the response (10.3.2.9), ns: for the ACK, or for the CTS
    /// after a request.
    #[inline]
    pub fn timeout(&self, rate: usize, request: bool) -> u64 {
        let control = &self.control[rate];
        self.sifs + self.slot + if request { control.cts_start } else { control.ack_start }
    }

    /// Mean time of a successful exchange without contention, of one frame of `bytes` at that rate, with half
    /// the smallest contention window: the arithmetic that saturation throughput is checked against.
    pub fn cycle(&self, rate: usize, bytes: u32) -> Span {
        let exchange = self.difs + self.frame(rate, bytes) + self.sifs + self.control[rate].ack;
        Span::from_nanos(exchange as i64) + self.mean_backoff()
    }

    /// Half the smallest contention window.
    pub fn mean_backoff(&self) -> Span {
        Span::from_nanos((u64::from(self.cw_min) * self.slot / 2) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phy(change: impl FnOnce(&mut WlanConfig)) -> Phy {
        let mut config = WlanConfig::default();
        change(&mut config);
        Phy::new(&config).unwrap()
    }

    fn at(phy: &Phy, mbps: f64) -> usize {
        phy.find(Rate::ip((mbps * 1e6) as u64)).unwrap()
    }

    #[test]
    fn frames_of_b_take_their_preamble_and_bits() {
        let long = phy(|c| c.standard = Standard::B);
        let eleven = at(&long, 11.0);
        assert_eq!(long.frame(eleven, 1536), 192_000 + 1_117_091);
        assert_eq!(
            (long.control(eleven).ack, long.cw_min, long.difs, long.slot),
            (248_000, 31, 50_000, 20_000)
        );
        let short = phy(|c| (c.standard, c.preamble) = (Standard::B, Preamble::Short));
        assert_eq!(short.control(eleven).ack, 96_000 + 56_000);
        assert_eq!(short.frame(at(&short, 1.0), 14), 192_000 + 112_000);
    }

    #[test]
    fn frames_of_g_and_a_take_whole_symbols() {
        let g = phy(|_| {});
        assert_eq!((g.frame(at(&g, 54.0), 1536), g.control(at(&g, 54.0)).ack), (254_000, 34_000));
        assert_eq!(g.control(at(&g, 11.0)).ack, 192_000 + 56_000);
        // No basic rate of the modulation: the highest mandatory one.
        let ofdm = phy(|c| c.basic_rates = Some(vec![Rate::ip(6_000_000)]));
        assert_eq!(
            (ofdm.control(at(&ofdm, 11.0)).ack, ofdm.control(at(&ofdm, 54.0)).ack),
            (192_000 + 10_182, 50_000)
        );
        let dsss = phy(|c| c.basic_rates = Some(vec![Rate::ip(11_000_000)]));
        assert_eq!(
            (dsss.control(at(&dsss, 2.0)).ack, dsss.control(at(&dsss, 54.0)).ack),
            (192_000 + 56_000, 34_000)
        );
        let a = phy(|c| c.standard = Standard::A);
        assert_eq!(
            (a.frame(at(&a, 54.0), 1536), a.control(at(&a, 54.0)).ack, a.difs),
            (248_000, 28_000, 34_000)
        );
        assert_eq!(phy(|c| c.ack_rate = Some(Rate::ip(6_000_000))).control(11).ack, 50_000);
        let mixed = phy(|c| (c.slot, c.protection) = (SlotTime::Long, Protection::CtsToSelf));
        assert_eq!(mixed.frame(at(&mixed, 54.0), 1536), 192_000 + 10_182 + 10_000 + 254_000);
        assert_eq!((mixed.difs, mixed.slot), (50_000, 20_000));
    }

    #[test]
    fn rates_of_n_are_the_standards() {
        let n = phy(|c| c.standard = Standard::N);
        let mbps: Vec<u32> = n.rates()[8..].iter().map(|r| r.kbps).collect();
        assert_eq!(mbps, [6_500, 13_000, 19_500, 26_000, 39_000, 52_000, 58_500, 65_000]);
        let wide = phy(|c| {
            (c.standard, c.streams, c.channel_mhz, c.short_guard) = (Standard::N, 2, 40, true);
        });
        assert_eq!(wide.rates().last().unwrap().kbps, 300_000);
        let short = phy(|c| (c.standard, c.short_guard) = (Standard::N, true));
        assert_eq!((at(&short, 72.2), at(&short, 7.2)), (15, 8));
        assert_eq!(short.find(Rate::ip(70_000_000)), None);
        // 48 symbols of 3.6 us fill 44 of 4 us.
        assert_eq!(short.plain(15, 1538), 36_000 + 44 * 4_000);
        // 1538 bytes at 65 Mbit/s: 36 us, 48 symbols; 32 bytes of block ack at 24 Mbit/s.
        assert_eq!(
            (n.frame(at(&n, 65.0), 1538), n.control(at(&n, 65.0)).block_ack),
            (36_000 + 192_000, 32_000)
        );
        assert_eq!(n.difs, 16_000 + 3 * 9_000);
    }
}
