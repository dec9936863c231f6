//! Rayleigh fading as a sum of sinusoids (P. Dent, G. E. Bottomley, T. Croft, "Jakes' model revisited", Electronics Letters
//! 29(13), 1993), and a threshold decoder of interleaved frames: LDA's channel. A frame is lost if the mean ratio of signal
//! to noise and interference (M. B. Pursley, IEEE Transactions on Communications 25(8), 1977) is below a threshold over its own
//! time and that of the frames that it is interleaved with. Fitted to LDA's Table I: `docs/scenarios.md`.

use core::f64::consts::PI;

use lastmile::rng::Stream;
use lastmile::units::{Bytes, Rate};
use serde::Deserialize;

use super::slots::Slots;
use super::{Air, Covers, Parameters, State};
use crate::network::config_error::{ConfigError, require};
use crate::text;

/// Parameters of the fading channel; the defaults are LDA's row of high loss.
///
/// **Frames and packets.** A frame lasts [`frame`](Jakes::frame) / [`rate`](Jakes::rate), whatever the link
/// carries. A packet shares the fate of the frame under the middle of its transmission, so that the packets'
/// loss rate is the frames' whatever their size; under [`Covers::Whole`] it is lost with any frame that it
/// touches, and packets of 762 bytes at the frames' rate lose about twice as much.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Jakes {
    /// Chips per symbol, N.
    pub spreading_gain: u32,
    /// Frames over which the interleaver spreads one frame.
    pub interleaver: u32,
    /// Users at once, K.
    pub users: u32,
    /// Paths that the receiver resolves, L; 1 to 16.
    pub paths: u32,
    /// Energy per bit over noise, in dB.
    pub eb_n0_db: f64,
    /// The largest Doppler shift, in Hz at 150 kbit/s: it is tied to the symbol's length and so grows with
    /// `rate`.
    pub doppler_hz: f64,
    /// The ratio below which a frame is lost, in dB.
    pub threshold_db: f64,
    /// The size of a frame.
    #[serde(deserialize_with = "text::unit")]
    pub frame: Bytes,
    /// The rate that sets the frames' clock.
    #[serde(deserialize_with = "text::unit")]
    pub rate: Rate,
    /// After so many frames the fading starts anew with other phases: LDA's trials of 12 s.
    pub trial_frames: u32,
    /// Frames that decide about a packet.
    pub covers: Covers,
    /// Each packet is a frame, whenever it comes, as in a recording of frames that is played back packet by packet.
    pub per_packet: bool,
}

/// The rate at which [`Jakes::doppler_hz`] is given.
const REFERENCE_RATE: f64 = 150_000.0;

impl Default for Jakes {
    fn default() -> Jakes {
        Jakes {
            spreading_gain: 16,
            interleaver: 2,
            users: 5,
            paths: 4,
            eb_n0_db: 4.0,
            doppler_hz: 130.0,
            threshold_db: 1.115,
            frame: Bytes(381),
            rate: Rate::ip(150_000),
            trial_frames: 590,
            covers: Covers::Instant,
            per_packet: false,
        }
    }
}

impl Parameters for Jakes {
    fn check(&self) -> Result<(), ConfigError> {
        for (holds, key, reason) in [
            ((1..=1_000_000).contains(&self.spreading_gain), "spreading_gain", "must be 1 to 1000000"),
            ((1..=64).contains(&self.interleaver), "interleaver", "must be 1 to 64 frames"),
            ((1..=1_000_000).contains(&self.users), "users", "must be 1 to 1000000"),
            ((1..=OSCILLATORS as u32).contains(&self.paths), "paths", "must be 1 to 16"),
            ((-100.0..=100.0).contains(&self.eb_n0_db), "eb_n0_db", "must be -100 to 100 dB"),
            ((-100.0..=100.0).contains(&self.threshold_db), "threshold_db", "must be -100 to 100 dB"),
            ((0.0..=100_000.0).contains(&self.doppler_hz), "doppler_hz", "must be 0 to 100000 Hz"),
            (self.frame > Bytes::ZERO, "frame", "must not be zero"),
            (self.rate.bits_per_second() > 0, "rate", "must not be zero"),
            (self.trial_frames > 0, "trial_frames", "must not be zero"),
        ] {
            require(holds, key, reason)?;
        }
        Ok(())
    }

    fn state(&self, seed: u64, name: &str) -> Box<dyn State> {
        Box::new(Fading::new(self, seed, name))
    }
}

impl Jakes {
    /// Mean signal over noise and interference, as a ratio [Pursley 1977]: 1 / (N0 / Eb + 2 (K - 1/L) / (3 N)).
    fn mean_ratio(&self) -> f64 {
        let (k, l, n) =
            (f64::from(self.users), f64::from(self.paths.max(1)), f64::from(self.spreading_gain.max(1)));
        1.0 / (libm::pow(10.0, -self.eb_n0_db / 10.0) + 2.0 * (k - 1.0 / l) / (3.0 * n))
    }
}

/// N0 of Dent et al.: also the most paths that Walsh-Hadamard rows of that length keep apart.
const OSCILLATORS: usize = 16;
/// Looks at the fading per frame: at 130 Hz six per Doppler cycle.
const LOOKS: u32 = 16;

/// Two oscillators of a path beat at the difference of their frequencies and at the sum. The mean of a beat over a frame's looks is
/// its value in their middle times a factor that the frame's length decides; paths of the same oscillators add up.
#[derive(Clone, Copy, Debug)]
struct Pair {
    of: [usize; 2],
    /// Real and imaginary amplitude of the difference and of the sum.
    difference: (f64, f64),
    sum: (f64, f64),
}

#[derive(Debug)]
struct Fading {
    slots: Slots,
    /// The frame of the next packet, where each is one.
    next: Option<u64>,
    frame_seconds: f64,
    interleaver: u64,
    trial_frames: u64,
    /// Mean power over a frame's span below which it is lost, where the mean power is 1.
    threshold: f64,
    paths: usize,
    /// Angular frequency and weights (real and imaginary) of each oscillator, up to the sign of the path's row.
    oscillators: [(f64, f64, f64); OSCILLATORS],
    seed: u64,
    name: String,
    trial: Option<u64>,
    /// Contributions of pairs of oscillators to the mean power of a trial's frames.
    pairs: Vec<Pair>,
    /// Mean powers of the last frames asked for, by (trial, frame).
    powers: std::collections::VecDeque<((u64, i64), f64)>,
}

impl Fading {
    fn new(model: &Jakes, seed: u64, name: &str) -> Fading {
        let bits = u128::from(model.frame.0.clamp(1, 1 << 30)) * 8;
        let rate = model.rate.bits_per_second().max(1);
        let doppler = model.doppler_hz * rate as f64 / REFERENCE_RATE;
        let oscillator = |n: usize| {
            // [Dent et al. 1993, eq. 4 and 5]: alpha_n = 2 pi (n - 0.5) / N, N = 4 N0; beta_n = pi n / N0.
            let alpha = 2.0 * PI * (n as f64 + 0.5) / (4 * OSCILLATORS) as f64;
            let beta = PI * (n + 1) as f64 / OSCILLATORS as f64;
            (2.0 * PI * doppler * libm::cos(alpha), libm::cos(beta), libm::sin(beta))
        };
        Fading {
            slots: Slots::new(bits * 1_000_000_000, u128::from(rate), model.covers),
            next: model.per_packet.then_some(0),
            frame_seconds: bits as f64 / rate as f64,
            interleaver: u64::from(model.interleaver.clamp(1, 64)),
            trial_frames: u64::from(model.trial_frames.max(1)),
            threshold: libm::pow(10.0, model.threshold_db / 10.0) / model.mean_ratio(),
            paths: model.paths.clamp(1, OSCILLATORS as u32) as usize,
            oscillators: core::array::from_fn(oscillator),
            seed,
            name: name.to_owned(),
            trial: None,
            pairs: Vec::new(),
            powers: std::collections::VecDeque::new(),
        }
    }

    /// The phases of a trial are its own, so that the fading at a time depends on nothing that was asked before.
    fn begin(&mut self, trial: u64) {
        if self.trial == Some(trial) {
            return;
        }
        self.trial = Some(trial);
        let mut random = Stream::new(self.seed, &format!("{}/trial/{trial}", self.name));
        let phases: Vec<[(f64, f64); OSCILLATORS]> = (0..self.paths)
            .map(|_| core::array::from_fn(|_| libm::sincos(2.0 * PI * random.unit())))
            .collect();
        // The mean of cos(w (k - (LOOKS - 1) / 2)) over the looks k: Dirichlet's kernel.
        let (step, looks) = (self.frame_seconds / f64::from(LOOKS), f64::from(LOOKS));
        let kernel = |omega: f64| match libm::sin(omega * step / 2.0) {
            0.0 => 1.0,
            sin => libm::sin(looks * omega * step / 2.0) / (looks * sin),
        };
        self.pairs.clear();
        for n in 0..OSCILLATORS {
            for m in n..OSCILLATORS {
                let ((one, re, im), (other, also_re, also_im)) = (self.oscillators[n], self.oscillators[m]);
                // Half of a product of cosines, each pair twice but for those with themselves.
                let both = (re * also_re + im * also_im) * if n == m { 0.5 } else { 1.0 };
                let (mut difference, mut sum) = ((0.0, 0.0), (0.0, 0.0));
                for (path, phases) in phases.iter().enumerate() {
                    // Row `path` of the Walsh-Hadamard matrix.
                    let sign = if ((n & path).count_ones() + (m & path).count_ones()) % 2 == 0 {
                        both
                    } else {
                        -both
                    };
                    let ((sin, cos), (also_sin, also_cos)) = (phases[n], phases[m]);
                    difference.0 += sign * (cos * also_cos + sin * also_sin);
                    difference.1 += sign * (sin * also_cos - cos * also_sin);
                    sum.0 += sign * (cos * also_cos - sin * also_sin);
                    sum.1 += sign * (sin * also_cos + cos * also_sin);
                }
                let (apart, together) = (kernel(one - other), kernel(one + other));
                let difference = (difference.0 * apart, difference.1 * apart);
                self.pairs.push(Pair { of: [n, m], difference, sum: (sum.0 * together, sum.1 * together) });
            }
        }
    }

    /// Mean power of all paths over a frame's looks; 1 in the long run.
    fn power(&mut self, trial: u64, frame: i64) -> f64 {
        if let Some((_, power)) = self.powers.iter().find(|(of, _)| *of == (trial, frame)) {
            return *power;
        }
        self.begin(trial);
        let looks = f64::from(LOOKS);
        let middle = self.frame_seconds * (frame as f64 + (looks - 1.0) / 2.0 / looks);
        let turned = self.oscillators.map(|(omega, ..)| libm::sincos(omega * middle));
        let mut sum = 0.0;
        for pair in &self.pairs {
            let ((sin, cos), (also_sin, also_cos)) = (turned[pair.of[0]], turned[pair.of[1]]);
            let (both, neither) = (cos * also_cos, sin * also_sin);
            let (one, other) = (sin * also_cos, cos * also_sin);
            sum += pair.difference.0 * (both + neither) - pair.difference.1 * (one - other);
            sum += pair.sum.0 * (both - neither) - pair.sum.1 * (one + other);
        }
        // [Dent et al. 1993, eq. 5]: the factor sqrt(2 / N0) makes the mean power of a path 1.
        let power = sum * 2.0 / (OSCILLATORS * self.paths) as f64;
        while self.powers.len() as u64 >= 2 * self.interleaver {
            self.powers.pop_front();
        }
        self.powers.push_back(((trial, frame), power));
        power
    }

    fn frame_is_lost(&mut self, frame: u64) -> bool {
        let (trial, frame) = (frame / self.trial_frames, (frame % self.trial_frames) as i64);
        let spread = self.interleaver as i64;
        let power: f64 = (0..spread).map(|before| self.power(trial, frame - before)).sum();
        power < self.threshold * spread as f64
    }
}

impl State for Fading {
    fn loses(&mut self, air: Air, looks: &mut u64) -> bool {
        let under = match &mut self.next {
            None => self.slots.under(air),
            Some(next) => {
                *next += 1;
                *next - 1..=*next - 1
            }
        };
        let frames = under.end() - under.start() + self.interleaver;
        *looks += frames * (self.paths * LOOKS as usize) as u64;
        under.into_iter().any(|frame| self.frame_is_lost(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of losses, and the shares of runs of one and of two of them.
    fn statistics(lost: &[bool]) -> (f64, [f64; 2]) {
        let runs: Vec<usize> = lost.split(|&lost| !lost).map(<[bool]>::len).filter(|&n| n > 0).collect();
        let share = |of| runs.iter().filter(|&&n| n == of).count() as f64 / runs.len() as f64;
        (runs.iter().sum::<usize>() as f64 / lost.len() as f64, [share(1), share(2)])
    }

    /// LDA's 100 trials of 12 s, five times over.
    fn frames(model: &Jakes) -> Vec<bool> {
        let mut state = Fading::new(model, 1, "jakes");
        (0..295_000).map(|frame| state.frame_is_lost(frame)).collect()
    }

    #[test]
    fn yields_table_one_of_lda() {
        // Percent lost, and how far off the paper's row it may be: its 1200 s of a fading channel are themselves
        // uncertain by about 3 % of the value in the first row and 10 % in the last.
        for (gain, interleaver, percent, tolerance) in
            [(16, 2, 7.8, 0.3), (16, 3, 3.1, 0.3), (32, 2, 1.0, 0.15)]
        {
            let (rate, [one, two]) =
                statistics(&frames(&Jakes { spreading_gain: gain, interleaver, ..Jakes::default() }));
            let got = rate * 100.0;
            assert!((got - percent).abs() < tolerance, "gain {gain}, interleaver {interleaver}: {got} %");
            if percent == 7.8 {
                // "About one quarter of wireless loss events involve two consecutive packets."
                assert!((0.22..0.30).contains(&two), "{one} {two}");
                assert!(one + two > 0.95);
            }
        }
    }

    /// The power of a frame is the mean over its looks of what the oscillators of all paths add up to, one by one.
    #[test]
    fn pairs_of_oscillators_give_the_mean_over_a_frame_s_looks() {
        let mut state = Fading::new(&Jakes::default(), 9, "x");
        let (trial, frame) = (3, 77);
        let mut random = Stream::new(9, &format!("x/trial/{trial}"));
        let phases: Vec<Vec<f64>> =
            (0..4).map(|_| (0..OSCILLATORS).map(|_| 2.0 * PI * random.unit()).collect()).collect();
        let mut sum = 0.0;
        for look in 0..LOOKS {
            let at = state.frame_seconds * (frame as f64 + f64::from(look) / f64::from(LOOKS));
            for (path, phases) in phases.iter().enumerate() {
                let (mut real, mut imaginary) = (0.0, 0.0);
                for (n, (omega, re, im)) in state.oscillators.into_iter().enumerate() {
                    let sign = if (n & path).count_ones() % 2 == 0 { 1.0 } else { -1.0 };
                    real += sign * re * libm::cos(omega * at + phases[n]);
                    imaginary += sign * im * libm::cos(omega * at + phases[n]);
                }
                sum += real * real + imaginary * imaginary;
            }
        }
        let mean = sum * 2.0 / OSCILLATORS as f64 / f64::from(4 * LOOKS);
        assert!((state.power(trial, frame) - mean).abs() < 1e-9, "{mean}");
    }

    /// The oscillators' autocorrelation is Clarke's, J0(2 pi f tau), up to the lags at which so few of them come round.
    #[test]
    fn fading_has_clarkes_autocorrelation() {
        let state = Fading::new(&Jakes::default(), 1, "jakes");
        for lag in (0..=400).map(|n| f64::from(n) / 100.0) {
            let of = |(omega, re, im): (f64, f64, f64)| (re * re + im * im) * libm::cos(omega * lag / 130.0);
            let correlation = state.oscillators.map(of).iter().sum::<f64>() / OSCILLATORS as f64;
            let law = libm::j0(2.0 * PI * lag);
            assert!((correlation - law).abs() < 1e-3, "{lag} cycles: {correlation} {law}");
        }
    }

    /// The envelope of a path crosses a level rho sqrt(2 pi) f rho exp(-rho^2) times a second and stays below for
    /// (exp(rho^2) - 1) / (rho f sqrt(2 pi)) on the mean (Rice 1948; Jakes 1974, section 1.3.4): the product is Rayleigh's
    /// law. Looked at every 53 us for
    /// 10 s, which misses some of the deeper fades.
    #[test]
    fn fades_are_as_many_and_as_long_as_rices() {
        let fading = Jakes { interleaver: 1, paths: 1, frame: Bytes(1), ..Jakes::default() };
        let (step, doppler, frames) = (8.0 / 150_000.0, 130.0, 10_000_i64);
        let levels = [0.316, 0.5, 1.0, 1.5];
        let (mut crossings, mut below) = ([0_u32; 4], [0_u32; 4]);
        let mut state = Fading::new(&fading, 5, "jakes");
        for trial in 0..20 {
            let powers: Vec<f64> = (0..frames).map(|frame| state.power(trial, frame)).collect();
            for (i, level) in levels.iter().enumerate() {
                let low: Vec<bool> = powers.iter().map(|power| *power < level * level).collect();
                crossings[i] += low.windows(2).filter(|pair| pair[0] && !pair[1]).count() as u32;
                below[i] += low.iter().filter(|&&low| low).count() as u32;
            }
        }
        let seconds = 20.0 * frames as f64 * step;
        for (i, rho) in levels.into_iter().enumerate() {
            let rate = libm::sqrt(2.0 * PI) * doppler * rho * libm::exp(-rho * rho);
            let fade = (libm::exp(rho * rho) - 1.0) / (rho * doppler * libm::sqrt(2.0 * PI));
            let got = f64::from(crossings[i]) / seconds;
            let lasted = f64::from(below[i]) * step / f64::from(crossings[i]);
            let text = format!("{rho}: {got:.2} ({rate:.2}) a second, {lasted:.6} ({fade:.6}) s");
            assert!((got / rate - 1.0).abs() < 0.08 && (lasted / fade - 1.0).abs() < 0.08, "{text}");
        }
    }

    #[test]
    fn packets_do_not_move_the_channel_and_share_their_frames_fate() {
        let model = Jakes::default();
        let lost = frames(&model);
        let frame = 20_320_000;
        let mut packets = Fading::new(&model, 1, "jakes");
        for n in (0..20_000_u64).step_by(3) {
            let air = Air { starts: n * frame, ends: (n + 1) * frame - 1 };
            assert_eq!(packets.loses(air, &mut 0), lost[n as usize], "frame {n}");
        }
        // However far apart they come, where each is a frame.
        let mut each = Fading::new(&Jakes { per_packet: true, ..model.clone() }, 1, "jakes");
        for n in 0..20_000_u64 {
            let air = Air { starts: 7 * n * frame, ends: 7 * n * frame };
            assert_eq!(each.loses(air, &mut 0), lost[n as usize], "packet {n}");
        }
        // A packet of 762 bytes touches two frames.
        let mut whole = Fading::new(&Jakes { covers: Covers::Whole, ..model }, 1, "jakes");
        for n in 0..10_000_u64 {
            let air = Air { starts: 2 * n * frame, ends: 2 * (n + 1) * frame };
            assert_eq!(whole.loses(air, &mut 0), lost[2 * n as usize] || lost[2 * n as usize + 1]);
        }
    }
}
