//! Path loss, and what noise does to a frame: log-distance law, signal to noise ratio, bit errors by modulation.
//!
//! Frame errors are independent between bits on white noise; fading within a frame and partial overlap of
//! colliding frames are not modelled. Responses (ACK, CTS) are taken to arrive: they are short and go at a
//! lower rate than what they answer.

use lastmile::rng::Stream;
use lastmile::time::Time;

use super::config::{ChannelConfig, WlanConfig};
use super::phy::{Modulation, PhyRate};

/// Thermal noise in 1 Hz at 290 K.
const THERMAL_DBM_PER_HZ: f64 = -173.975;

impl ChannelConfig {
    /// Signal to noise ratio without shadowing in a channel that wide, behind a loss of `reference + 10 n log10(d / 1 m)`;
    /// nearer than 1 m counts as 1 m.
    pub fn mean_snr_db(&self, bandwidth_hz: f64) -> f64 {
        let noise = THERMAL_DBM_PER_HZ + 10.0 * libm::log10(bandwidth_hz) + self.noise_figure_db;
        let loss = self.reference_loss_db + 10.0 * self.exponent * libm::log10(self.distance_m.max(1.0));
        self.snr_db.unwrap_or(self.tx_power_dbm - loss - noise)
    }
}

/// Gaussian tail.
fn q(x: f64) -> f64 {
    0.5 * libm::erfc(x / core::f64::consts::SQRT_2)
}

/// Distance spectra of the (133, 171) code, from the free distance on: weights of information bits (Frenger, Orten and
/// Ottosson, 1999; punctured: Haccoun and Begin, 1989).
#[rustfmt::skip]
const CODE_1_2: [f64; 17] = [
    36.0, 0.0, 211.0, 0.0, 1404.0, 0.0, 11_633.0, 0.0, 77_433.0, 0.0, 502_690.0, 0.0, 3_322_763.0, 0.0, 21_292_910.0,
    0.0, 134_365_911.0,
];
#[rustfmt::skip]
const CODE_2_3: [f64; 10] = [
    3.0, 70.0, 285.0, 1276.0, 6160.0, 27_128.0, 117_019.0, 498_860.0, 2_103_891.0, 8_784_123.0,
];
#[rustfmt::skip]
const CODE_3_4: [f64; 10] = [
    42.0, 201.0, 1492.0, 10_469.0, 62_935.0, 379_644.0, 2_253_373.0, 13_073_811.0, 75_152_755.0, 428_005_675.0,
];
#[rustfmt::skip]
const CODE_5_6: [f64; 10] = [
    92.0, 528.0, 8694.0, 79_453.0, 792_114.0, 7_375_573.0, 67_884_974.0, 610_875_423.0, 5_427_275_376.0,
    47_664_215_639.0,
];

/// Bit error probability at a signal to noise ratio (a power ratio, not dB).
///
/// DSSS: differential detection of BPSK (Proakis, Digital Communications, 5.2) and of QPSK (approximation of
/// Ferrari and Corazza, 2004). CCK: coherent detection of a biorthogonal code word (Proakis, 5.2.2), of 16 at
/// 5.5 Mbit/s, two of 16 at half the energy at 11. OFDM: Gray-coded BPSK and QAM over the (133, 171) convolutional
/// code with hard decisions; union bound over the code's distance spectrum.
///
/// The signal at which half of the frames of 1500 bytes survive is that of ns-3 3.37's NIST model to 0.01 dB. A receiver with soft decisions needs 3 to 4.5 dB less (ns-3's default
/// since 3.33, the table-based model): lower `noise_figure_db` by so much to have it.
fn bit_error(rate: &PhyRate, snr: f64) -> f64 {
    let snr = match rate.modulation {
        Modulation::Dsss => return dsss_bit_error(rate.kbps, snr).clamp(0.0, 0.5),
        // Each antenna sends its share of the power.
        Modulation::Ht { streams, .. } => snr / f64::from(streams.max(1)),
        Modulation::Ofdm { .. } => snr,
    };
    let raw = match rate.bits_per_carrier {
        1 => q(libm::sqrt(2.0 * snr)),
        2 => q(libm::sqrt(snr)),
        4 => 0.75 * q(libm::sqrt(snr / 5.0)),
        _ => 7.0 / 12.0 * q(libm::sqrt(snr / 21.0)),
    };
    let (first, per_bit, spectrum): (i32, f64, &[f64]) = match rate.code {
        (1, 2) => (10, 1.0, &CODE_1_2),
        (2, 3) => (6, 2.0, &CODE_2_3),
        (3, 4) => (5, 3.0, &CODE_3_4),
        _ => (4, 5.0, &CODE_5_6),
    };
    let d = libm::sqrt(4.0 * raw * (1.0 - raw));
    let mut power = libm::pow(d, f64::from(first));
    let mut sum = 0.0;
    for weight in spectrum {
        sum += weight * power;
        power *= d;
    }
    (sum / (2.0 * per_bit)).clamp(0.0, 0.5)
}

/// Energies count 22 MHz of signal, as ns-3's do.
fn dsss_bit_error(kbps: u32, snr: f64) -> f64 {
    // Energy of a bit to noise density.
    let per_bit = snr * 22_000.0 / f64::from(kbps.max(1));
    // Errors of a code word as if they were independent errors of its bits.
    let spread = |word: f64, bits: f64| -libm::expm1(libm::log1p(-word) / bits);
    match kbps {
        0..=1_000 => 0.5 * libm::exp(-per_bit),
        1_001..=2_000 => {
            let root2 = core::f64::consts::SQRT_2;
            let scale = (root2 + 1.0) / libm::sqrt(8.0 * core::f64::consts::PI * root2 * per_bit.max(1e-12));
            scale * libm::exp(-(2.0 - root2) * per_bit)
        }
        // A word has 22 / 1.375 = 16 times the signal to noise ratio.
        2_001..=5_500 => spread(biorthogonal_error(16.0 * snr), 4.0),
        // Both halves of a word must come through.
        _ => spread(biorthogonal_error(8.0 * snr), 4.0),
    }
}

/// Probability that one of 16 biorthogonal words is taken for another, at an energy to noise density `ratio` of a
/// word (Proakis, Digital Communications, 5.2.2): the seven other correlators must stay below the right one.
fn biorthogonal_error(ratio: f64) -> f64 {
    const STEPS: u32 = 400;
    let root = libm::sqrt(ratio.max(0.0));
    let (from, to) = ((-root).max(-8.0), 8.0);
    let step = (to - from) / f64::from(STEPS);
    let wrong = |x: f64| {
        // 1 - (1 - 2 Q)^7, without cancellation where Q is small.
        let others = -libm::expm1(7.0 * libm::log1p(-(2.0 * q(x + root)).min(1.0)));
        others * libm::exp(-x * x / 2.0)
    };
    // Simpson's rule.
    let weight = |k: u32| {
        if k == 0 || k == STEPS {
            1.0
        } else if k % 2 == 1 {
            4.0
        } else {
            2.0
        }
    };
    let sum: f64 = (0..=STEPS).map(|k| weight(k) * wrong(from + f64::from(k) * step)).sum();
    (q(root) + sum * step / 3.0 / libm::sqrt(core::f64::consts::TAU)).min(1.0)
}

/// Probability that a frame of `bytes` is destroyed, at a signal to noise ratio in dB.
pub(super) fn frame_error(rate: &PhyRate, snr_db: f64, bytes: u32) -> f64 {
    let wrong = bit_error(rate, libm::pow(10.0, snr_db / 10.0));
    -libm::expm1(8.0 * f64::from(bytes) * libm::log1p(-wrong))
}

/// The channel of one direction of one association.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    mean_snr_db: f64,
    shadowing_db: f64,
    coherence: u64,
    /// The shadowing in force and how long it stays.
    shadow: f64,
    until: u64,
    /// Error probability of the last frame's rate and size at the shadowing in force.
    cached: Option<(usize, u32, f64)>,
}

impl Channel {
    pub(super) fn new(config: &ChannelConfig, bandwidth_hz: f64) -> Channel {
        Channel {
            mean_snr_db: config.mean_snr_db(bandwidth_hz),
            shadowing_db: config.shadowing_db.max(0.0),
            coherence: config.coherence.as_nanos().max(1) as u64,
            shadow: 0.0,
            until: 0,
            cached: None,
        }
    }

    /// Another mean signal to noise ratio from now on; the shadowing stays.
    pub(super) fn move_to(&mut self, mean_snr_db: f64) {
        (self.mean_snr_db, self.cached) = (mean_snr_db, None);
    }

    /// Probability that noise destroys a frame sent at `now`.
    pub(super) fn frame_error(
        &mut self,
        now: Time,
        rate: (usize, &PhyRate),
        bytes: u32,
        random: &mut Stream,
    ) -> f64 {
        if self.shadowing_db > 0.0 && now.as_nanos() >= self.until {
            self.until = (now.as_nanos() / self.coherence + 1).saturating_mul(self.coherence);
            self.shadow = self.shadowing_db * random.gaussian();
            self.cached = None;
        }
        match self.cached {
            Some((index, size, error)) if (index, size) == (rate.0, bytes) => error,
            _ => {
                let error = frame_error(rate.1, self.mean_snr_db + self.shadow, bytes);
                self.cached = Some((rate.0, bytes, error));
                error
            }
        }
    }
}

/// The noise that counts: that of the channel. So a station of b hears as far among stations of g as among its own kind,
/// though DSSS spreads over 22 MHz; ns-3 has it so.
pub(super) fn bandwidth_hz(config: &WlanConfig) -> f64 {
    f64::from(config.channel_mhz) * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::wlan::Standard;
    use crate::network::wlan::phy::Phy;

    /// The SNR at which half of the frames of 1536 bytes survive.
    fn threshold(rate: &PhyRate) -> f64 {
        let (mut low, mut high) = (-10.0, 50.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if frame_error(rate, middle, 1536) > 0.5 { low = middle } else { high = middle }
        }
        low
    }

    #[test]
    fn errors_stay_probabilities_and_fall_with_the_signal() {
        let phy = Phy::new(&WlanConfig::default()).unwrap();
        for rate in phy.rates() {
            let mut before = 1.0;
            for snr in -20..60 {
                let error = frame_error(rate, f64::from(snr), 1536);
                assert!((0.0..=1.0).contains(&error) && error <= before + 1e-12, "{rate:?} at {snr}");
                before = error;
            }
        }
    }

    /// ns-3 3.37, `NistErrorRateModel` over 1536 bytes: the signal at which half survive, dB.
    #[test]
    fn half_of_the_frames_survive_where_ns3_says() {
        const DSSS: [f64; 4] = [-3.839, 0.715, 3.315, 6.326];
        const OFDM: [f64; 8] = [3.429, 6.292, 6.439, 9.302, 12.920, 16.017, 20.761, 21.995];
        const HT: [f64; 8] = [3.429, 6.439, 9.302, 12.920, 16.017, 20.761, 21.995, 23.159];
        for (standard, from, expected, within) in [
            (Standard::B, 0, &DSSS[..], 0.01),
            (Standard::A, 0, &OFDM[..], 0.01),
            (Standard::N, 8, &HT[..], 0.01),
        ] {
            let phy = Phy::new(&WlanConfig { standard, ..Default::default() }).unwrap();
            for (rate, expected) in phy.rates()[from..].iter().zip(expected) {
                let need = threshold(rate);
                assert!((need - expected).abs() <= within, "{rate:?}: {need:.2} dB, ns-3 {expected:.2}");
            }
        }
    }
}
