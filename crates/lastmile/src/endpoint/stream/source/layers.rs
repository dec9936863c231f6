//! Layers of fixed rates, as a selective forwarding unit sends them on (RFC 7667, section 3.7): the highest that fits the target.

use super::{Frame, FrameSource, Limits, Made, Setting, Source, Steady};
use crate::options::{Given, OptionError, Options};
use crate::time::Time;
use crate::units::{Bytes, Rate};

crate::options! {
    /// The source's parameters.
    pub struct LayersConfig {
        /// Rate of the lowest layer, of IP packets, which is always sent
        lowest: Rate [Rate::ip(1_000)..=Rate::ip(1_000_000_000)] = Rate::ip(150_000), "our own: a browser's simulcast of 180 lines";
        /// Rate of each layer over that of the one below
        factor: f64 [1.01..=100.0] = 3.0, "our own: 150, 450 and 1350 kbit/s";
        /// Layers in all
        layers: u32 [1..=16] = 3, "our own: a browser's simulcast";
        /// A layer above the one that is sent is taken up where the target is so many times its rate
        margin: f64 [1.0..=10.0] = 1.0, "our own: none";
    }
}

/// Its place in the registry.
pub const ENTRY: Source = Source {
    name: "layers",
    about: "layers of fixed rates, of which the highest that fits the target is sent, as by an SFU",
    paper: "RFC 7667, section 3.7",
    needs_sizes: false,
    options: LayersConfig::OPTIONS,
    make,
};

fn make(given: &Given, setting: &Setting<'_>) -> Made {
    let config = LayersConfig::read(given)?;
    let mut rates = Vec::new();
    let mut rate = config.lowest.bits_per_second() as f64;
    for _ in 0..config.layers {
        rates.push(Rate::ip(rate as u64));
        rate *= config.factor;
    }
    if rates.last() > Some(&Limits::NONE.max) {
        return Err(OptionError::new("layers", format!("the highest has more than {}", Limits::NONE.max)));
    }
    let steady = Steady::new(setting.frame_rate);
    Ok(Box::new(Layers { rates, margin: config.margin, sent: 0, steady }))
}

#[derive(Debug)]
struct Layers {
    /// Rates of the layers, from the lowest on.
    rates: Vec<Rate>,
    margin: f64,
    /// The layer that is sent.
    sent: usize,
    steady: Steady,
}

impl FrameSource for Layers {
    fn frame(&mut self, _: Time, target: Rate, _: Bytes) -> Frame {
        let next = self.steady.next();
        let highest =
            |margin: f64| self.rates.iter().rposition(|rate| rate.scaled(margin) <= target).unwrap_or(0);
        self.sent = highest(1.0).min(self.sent.max(highest(self.margin)));
        Frame { size: self.steady.bytes(self.rates[self.sent], next), next }
    }

    fn range(&self) -> (Rate, Rate) {
        (self.rates[0], self.rates[self.rates.len() - 1])
    }

    fn layers(&self) -> &[Rate] {
        &self.rates
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Setting, build};
    use super::*;

    #[test]
    fn the_highest_layer_that_fits_is_sent() {
        let layers = |options: &str| build(&options.parse().unwrap(), &Setting::of(10.0, Bytes(1200)));
        let mut source = layers("layers(lowest=80 kbit/s, factor=4, layers=3)").unwrap();
        let mut size = |bps| source.frame(Time::ZERO, Rate::ip(bps), Bytes::ZERO).size.0;
        assert_eq!(
            [10, 80_000, 319_999, 320_000, 1_280_000, 9_000_000].map(&mut size),
            [1_000, 1_000, 1_000, 4_000, 16_000, 16_000]
        );
        assert_eq!(source.range(), (Rate::ip(80_000), Rate::ip(1_280_000)));
        // Up at 1.2 times the rate, and down below it.
        let mut source = layers("layers(lowest=80 kbit/s, factor=4, layers=3, margin=1.2)").unwrap();
        let mut size = |bps| source.frame(Time::ZERO, Rate::ip(bps), Bytes::ZERO).size.0;
        let targets = [320_000, 383_000, 384_000, 320_000, 1_500_000, 319_999, 383_000, 1_536_000];
        assert_eq!(targets.map(&mut size), [1_000, 1_000, 4_000, 4_000, 4_000, 1_000, 1_000, 16_000]);
        let said = layers("layers(lowest=1 Gbit/s, factor=100)").unwrap_err().to_string();
        assert!(said.starts_with("layers of layers the highest has more than"), "{said}");
    }
}
