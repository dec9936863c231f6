//! On/off sources: bursts at a peak rate, silences between, both of exponential or Pareto length.
//!
//! The packets follow each other on a clock that runs in bursts only, so that the mean rate holds exactly however
//! short the bursts are; ns-2's sources send at least one packet per burst and so more than their mean rate, by 5 % with
//! two packets per burst. Pareto bursts with a shape below two make traffic that is alike at all time scales
//! (Willinger et al., IEEE/ACM ToN 1997); TFRC Probe's cross traffic has shape 1.9.

use crate::time::Span;

use super::cbr::Cbr;
use crate::rng::Stream;

/// Distribution of the lengths of bursts and silences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lengths {
    /// Exponential.
    Exponential,
    /// Pareto. The mean exists for shapes above one, the variance above two.
    Pareto {
        /// The exponent of the tail.
        shape: f64,
    },
}

/// Bursts and silences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOff {
    /// The law of both lengths.
    pub lengths: Lengths,
    /// Mean length of a burst.
    pub on: Span,
    /// Mean length of a silence.
    pub off: Span,
}

impl OnOff {
    /// The rate within bursts that gives that mean rate.
    pub fn peak(&self, mean: crate::units::Rate) -> crate::units::Rate {
        let (on, off) = (self.on.as_nanos().max(1) as f64, self.off.as_nanos().max(0) as f64);
        crate::units::Rate::ip(libm::round(mean.bits_per_second() as f64 * (on + off) / on) as u64)
    }
}

impl Lengths {
    fn draw(self, mean: f64, random: &mut Stream) -> f64 {
        match self {
            Lengths::Exponential => random.exponential(mean),
            // The scale that gives the mean: m (a - 1) / a. One minus a draw is never zero.
            Lengths::Pareto { shape } => {
                let shape = shape.max(1.01);
                mean * (shape - 1.0) / shape * libm::pow(1.0 - random.unit(), -1.0 / shape)
            }
        }
    }
}

/// Bursts shorter than this part of the gap between packets count as this long, which bounds the work per packet.
const SHORTEST_BURST: f64 = 1e-3;

#[derive(Debug)]
pub(super) struct OnOffLaw {
    config: OnOff,
    peak: Cbr,
    shortest: f64,
    /// Rest of the burst, in ns.
    left: f64,
}

impl OnOffLaw {
    pub(super) fn new(config: OnOff, mean_bits_per_second: u64, ip_size: u32) -> OnOffLaw {
        let peak = config.peak(crate::units::Rate::ip(mean_bits_per_second)).bits_per_second();
        let gap = f64::from(ip_size) * 8e9 / peak.max(1) as f64;
        OnOffLaw {
            config,
            peak: Cbr::new(peak, ip_size),
            shortest: (gap * SHORTEST_BURST).max(1.0),
            left: 0.0,
        }
    }

    fn burst(&mut self, random: &mut Stream) -> f64 {
        self.config.lengths.draw(self.config.on.as_nanos() as f64, random).max(self.shortest)
    }

    /// From the start to the first packet: in a burst as often as bursts are long, at a random phase of its gap.
    pub(super) fn phase(&mut self, random: &mut Stream) -> u64 {
        let (on, off) = (self.config.on.as_nanos().max(1) as f64, self.config.off.as_nanos().max(0) as f64);
        let silence = match random.unit() * (on + off) < on {
            true => 0.0,
            false => self.config.lengths.draw(off, random),
        };
        self.left = self.burst(random);
        let phase = self.peak.phase(random);
        (silence as u64).saturating_add(self.advance(phase, random))
    }

    /// Time passes that has `on_time` of bursts in it.
    fn advance(&mut self, on_time: u64, random: &mut Stream) -> u64 {
        let (mut need, mut silent) = (on_time as f64, 0.0);
        while self.left < need {
            need -= self.left;
            silent += self.config.lengths.draw(self.config.off.as_nanos().max(0) as f64, random);
            self.left = self.burst(random);
        }
        self.left -= need;
        on_time.saturating_add(silent as u64)
    }

    pub(super) fn gap(&mut self, random: &mut Stream) -> u64 {
        let gap = self.peak.gap();
        self.advance(gap, random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_of_no_length_do_not_hang() {
        let config = OnOff { lengths: Lengths::Exponential, on: Span::ZERO, off: Span::from_millis(1) };
        let (mut law, mut random) = (OnOffLaw::new(config, 1_000, 1500), Stream::new(4, "x"));
        assert!(law.phase(&mut random) > 0 || law.gap(&mut random) > 0);
    }
}
