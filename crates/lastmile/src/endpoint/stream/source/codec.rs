//! RFC 8593, section 5: a statistical model of a live video encoder. Frame sizes and intervals vary about their means; a change of
//! the target is answered by a large frame, and smaller ones that make up for it.

use std::collections::VecDeque;

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

use super::{Frame, FrameSource, Limits, Made, Setting, Source};
use crate::options::{Given, OptionError, Options};
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

crate::options! {
    /// The model's parameters.
    pub struct CodecConfig {
        /// Heeds no other target for so long after a new one; without it, 100 ms less two frame intervals
        reaction: Option<Span> [Span::ZERO..=Span::from_secs(10)] = None, "RFC 8593: tau_v, 0.2 s in its example";
        /// Frames of the transient that answers a new target
        burst_frames: u32 [1..=1_000] = 8, "RFC 8593: K_d";
        /// The first of them, in mean frames; the others make up for it
        burst: f64 [1.0..=100.0] = 3.24, "RFC 8593: K_B over B0, 13.5 kB over 4.17 kB";
        /// The least change against the rate of a second ago, as a share of it, that is answered by a transient
        abrupt: f64 [0.0..=1.0] = 0.1, "our own: RFC 8593 speaks of abrupt changes";
        /// Scale of the Laplacian deviation of frame intervals, over their mean
        interval_scale: f64 [0.0..=0.3] = 0.15, "RFC 8593: SCALE_t";
        /// Scale of the Laplacian deviation of frame sizes, over their mean
        size_scale: f64 [0.0..=0.3] = 0.15, "RFC 8593: SCALE_B";
        /// Makes this, of IP packets, where the target is less
        min: Option<Rate> [Rate::ip(1)..=Rate::ip(1_000_000_000_000)] = None, "RFC 8593: R_min, 150 kbit/s in its example";
        /// Makes no more than this, of IP packets
        max: Option<Rate> [Rate::ip(1)..=Rate::ip(1_000_000_000_000)] = None, "RFC 8593: R_max, 1.5 Mbit/s in its example";
    }
}

/// Its place in the registry.
pub const ENTRY: Source = Source {
    name: "codec",
    about: "frames that vary in size and interval as an encoder's, with a burst where the target changes",
    paper: "RFC 8593, section 5",
    needs_sizes: false,
    options: CodecConfig::OPTIONS,
    make,
};

/// A target is compared with the rate of so long ago: one that goes there by many small steps is as abrupt to an encoder.
const COMPARED: Span = Span::from_secs(1);

/// Deviations are cut here, on both sides, so that no frame has a negative size or interval and the mean stays.
const MOST_DEVIATION: f64 = 0.95;

fn make(given: &Given, setting: &Setting<'_>) -> Made {
    let config = CodecConfig::read(given)?;
    if config.burst > f64::from(config.burst_frames) {
        let reason =
            format!("must be at most `burst_frames`, which is {}, not {}", config.burst_frames, config.burst);
        return Err(OptionError::new("burst", reason));
    }
    let (frame_rate, interval) = (setting.frame_rate, Span::from_secs_f64(1.0 / setting.frame_rate));
    let least = (Span::from_millis(100) - interval * 2).max(Span::ZERO);
    let reaction = config.reaction.unwrap_or(least);
    let limits = Limits::new(config.min, config.max)?;
    let random = Pcg64Mcg::new(u128::from(setting.seed) << 1 | 1);
    let (rates, heeds) = (VecDeque::new(), Time::ZERO);
    Ok(Box::new(Codec {
        config,
        limits,
        frame_rate,
        reaction,
        random,
        rates,
        heeds,
        burst_left: 0,
        rest: 0.0,
    }))
}

#[derive(Debug)]
struct Codec {
    config: CodecConfig,
    limits: Limits,
    frame_rate: f64,
    /// tau_v.
    reaction: Span,
    random: Pcg64Mcg,
    /// Rates in use with the times since when: the last one, those of the last second, and the one before. None is older than the last
    /// transient, which brought the encoder to that rate.
    rates: VecDeque<(Rate, Time)>,
    /// From when on another one is heeded.
    heeds: Time,
    /// Frames of the transient that are still to come.
    burst_left: u32,
    /// Part of a byte left by rounding.
    rest: f64,
}

impl Codec {
    /// A deviation of a Laplacian distribution with mean zero.
    fn laplacian(&mut self, scale: f64) -> f64 {
        // Uniform in (-1/2, 1/2).
        let uniform = (f64::from(self.random.next_u32()) + 0.5) / 4_294_967_296.0 - 0.5;
        let size = -scale * libm::log(1.0 - 2.0 * uniform.abs());
        size.copysign(uniform).clamp(-MOST_DEVIATION, MOST_DEVIATION)
    }

    /// The rate that is in use now: section 5.1, within the limits of 5.4.
    fn rate(&mut self, now: Time, target: Rate) -> Rate {
        let target = self.limits.of(target);
        let Some(&(rate, _)) = self.rates.back() else {
            self.rates.push_back((target, now));
            return target;
        };
        if target == rate || now < self.heeds {
            return rate;
        }
        while self.rates.get(1).is_some_and(|(_, since)| *since + COMPARED <= now) {
            self.rates.pop_front();
        }
        let before = self.rates.front().map_or(rate, |(rate, _)| *rate);
        let change = target.ratio(before).map_or(f64::INFINITY, |ratio| (ratio - 1.0).abs());
        if change >= self.config.abrupt && self.burst_left == 0 {
            self.burst_left = self.config.burst_frames;
            self.rates.clear();
        }
        self.rates.push_back((target, now));
        self.heeds = now + self.reaction;
        target
    }

    /// A frame's size in mean frames: section 5.2 in the transient, 5.3 else.
    fn size(&mut self) -> f64 {
        let CodecConfig { burst_frames, burst, size_scale, .. } = self.config;
        let left = self.burst_left;
        self.burst_left = left.saturating_sub(1);
        match left {
            0 => 1.0 + self.laplacian(size_scale),
            _ if left == burst_frames => burst,
            // The transient's mean is that of the target.
            _ => (f64::from(burst_frames) - burst) / f64::from(burst_frames - 1),
        }
    }
}

impl FrameSource for Codec {
    fn frame(&mut self, now: Time, target: Rate, _: Bytes) -> Frame {
        let rate = self.rate(now, target);
        // B0 = R_v / 8 / FPS
        let mean = rate.bits_per_second() as f64 / 8.0 / self.frame_rate;
        let size = mean * self.size() + self.rest;
        self.rest = size.fract();
        let deviation = self.laplacian(self.config.interval_scale);
        Frame {
            size: Bytes(size as u64),
            next: Span::from_secs_f64((1.0 + deviation) / self.frame_rate).max(Span::from_nanos(1)),
        }
    }

    fn key_frame(&mut self) {
        if self.burst_left == 0 {
            self.burst_left = self.config.burst_frames;
        }
    }

    fn range(&self) -> (Rate, Rate) {
        (self.limits.min, self.limits.max)
    }
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;

    fn codec(options: &str) -> Box<dyn FrameSource> {
        build(&format!("codec({options})").parse().unwrap(), &Setting::of(30.0, Bytes(1200))).unwrap()
    }

    fn at(millis: i64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// 1 Mbit/s at 30 Hz are frames of 4167 B; the first of eight is 3.24 of them, and the rest of the eight 0.68 of one.
    #[test]
    fn a_new_target_is_answered_by_a_burst_of_eight_frames_whose_mean_it_is() {
        let mut codec = codec("size_scale=0, interval_scale=0");
        let frame = |codec: &mut dyn FrameSource, millis, bps| {
            codec.frame(at(millis), Rate::ip(bps), Bytes::ZERO).size.0
        };
        assert_eq!(frame(&mut *codec, 0, 500_000), 2083);
        // A change of a twentieth is none that an encoder shows.
        assert_eq!(frame(&mut *codec, 33, 525_000), 2187);
        let burst: Vec<u64> = (0..9).map(|k| frame(&mut *codec, 300 + 33 * k, 1_000_000)).collect();
        assert_eq!(burst[0], 13_500);
        assert!(burst[1..8].iter().all(|size| (2832..=2835).contains(size)), "{burst:?}");
        assert!((33_333..=33_334).contains(&burst[..8].iter().sum::<u64>()), "{burst:?}");
        assert!((4166..=4167).contains(&burst[8]), "{burst:?}");
    }

    /// Three steps of 4 % within a second are 12 %; a second later each is one by itself.
    #[test]
    fn small_steps_within_a_second_are_one_change() {
        let mut codec = codec("size_scale=0, interval_scale=0");
        let mut frame = |millis, bps| codec.frame(at(millis), Rate::ip(bps), Bytes::ZERO).size.0;
        assert_eq!(frame(0, 480_000), 2000);
        assert_eq!((frame(100, 499_200), frame(400, 519_168)), (2080, 2163));
        // 1.125 of 480: a frame of 3.24 means, seven of 0.68, and the same rate again.
        assert_eq!(frame(700, 540_000), 7290);
        assert!((0..7).all(|k| (1529..=1531).contains(&frame(733 + 33 * k, 540_000))));
        assert_eq!(frame(970, 540_000), 2250);
        // Rates before that transient count no more: 1.04 of 540.
        assert_eq!(frame(1_100, 561_600), 2340);
        // By 8 % in each second, and on: none is abrupt.
        assert_eq!((frame(2_200, 606_528), frame(3_300, 655_050)), (2527, 2729));
    }

    #[test]
    fn targets_within_the_reaction_time_wait_for_its_end() {
        let mut codec = codec("size_scale=0, interval_scale=0, reaction=200 ms, abrupt=1");
        let mut frame = |millis, bps| codec.frame(at(millis), Rate::ip(bps), Bytes::ZERO).size.0;
        assert_eq!(frame(0, 480_000), 2000);
        assert_eq!(frame(40, 240_000), 1000);
        assert_eq!(frame(239, 360_000), 1000);
        assert_eq!(frame(240, 360_000), 1500);
    }

    /// The mean of |x| of a Laplacian distribution is its scale.
    #[test]
    fn sizes_and_intervals_deviate_by_their_scales() {
        let mut codec = codec("");
        let frames: Vec<Frame> =
            (0..20_000).map(|k| codec.frame(at(33 * k), Rate::ip(1_000_000), Bytes::ZERO)).collect();
        let mean = |of: &dyn Fn(&Frame) -> f64| frames.iter().map(of).sum::<f64>() / frames.len() as f64;
        let (size, gap) = (4166.67, 1.0 / 30.0);
        assert!((mean(&|f| f.size.0 as f64) / size - 1.0).abs() < 0.01);
        assert!((mean(&|f| f.next.as_secs_f64()) / gap - 1.0).abs() < 0.01);
        let deviations = [
            mean(&|f| (f.size.0 as f64 / size - 1.0).abs()),
            mean(&|f| (f.next.as_secs_f64() / gap - 1.0).abs()),
        ];
        assert!(deviations.iter().all(|deviation| (deviation / 0.15 - 1.0).abs() < 0.03), "{deviations:?}");
    }

    #[test]
    fn a_burst_that_its_frames_cannot_make_up_for_is_refused() {
        let said = build(&"codec(burst=4, burst_frames=3)".parse().unwrap(), &Setting::of(30.0, Bytes(1200)));
        let said = said.unwrap_err().to_string();
        assert_eq!(said, "burst of codec must be at most burst_frames, which is 3, not 4");
    }
}
