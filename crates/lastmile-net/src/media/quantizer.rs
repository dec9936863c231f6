//! The quantizer of each picture, so that pictures have the sizes that a rate wants: H.264's, from 0 to 51, where larger ones are coarser.
//!
//! It goes by small steps: behind coarse pictures a finer one costs more than others of its quantizer, and large steps would swing. Only pictures
//! far below the rate make the next one finer by half of what would fill it. A new rate moves it at once. A key frame has a quantizer of its own; pictures behind one begin at it, since they could add no detail to it at once.

/// Quantizers: below the least nobody sees a difference.
const LEAST: f64 = 8.0;
const MOST: f64 = 51.0;
/// That of the first key frame.
const FIRST: f64 = 28.0;
/// Steps that halve a picture, that double it, which is then coded on a coarser one, and that halve a key frame.
const HALVES: f64 = 5.0;
const DOUBLES: f64 = 3.0;
const HALVES_KEY: f64 = 4.0;
/// A key frame takes so many times the mean of all at most.
const KEY_FRAME: f64 = 5.0;
/// One that is smaller than this share of that may be finer, by a step.
const FINER: f64 = 0.7;
/// Steps for a picture that is twice the mean, and the most from one picture to the next.
const GAIN: f64 = 1.0;
const STEPS: (f64, f64) = (-3.0, 3.0);
/// So far from the mean, as behind a coarse key frame, half of the steps that fill the rate: one that is not filled is taken for a path that
/// carries no more. With all of them pictures wait for the pacer, and are left out. Where pictures vary by as much alone they would come out
/// too large.
const FAR: f64 = -0.5;
/// Excess is made good over so many pictures, and is so many means at most.
const OVER: f64 = 20.0;
const MOST_OWED: f64 = 5.0;

/// The quantizers of a stream's pictures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantizer {
    /// Bytes of a picture on the mean, by the rate.
    mean: f64,
    /// Bytes beyond those.
    owed: f64,
    /// Quantizers of the next picture, and of the next key frame.
    next: f64,
    key: f64,
    /// A picture was coded that is no key frame: the quantizer goes by the rate.
    began: bool,
}

impl Quantizer {
    /// For pictures of so many bytes on the mean.
    pub(super) fn new(mean: f64) -> Quantizer {
        Quantizer { mean, owed: 0.0, next: FIRST, key: FIRST, began: false }
    }

    /// Pictures of so many bytes are wanted from now on.
    pub(super) fn set_mean(&mut self, bytes: f64) {
        if self.began {
            let less = (self.mean / bytes).log2();
            let steps = if less > 0.0 { HALVES } else { DOUBLES } * less;
            self.next = (self.next + steps).clamp(LEAST, MOST);
        }
        self.mean = bytes;
    }

    /// The quantizer of the next picture.
    pub(super) fn picture(&self) -> i32 {
        self.next.round() as i32
    }

    /// The quantizer of the next key frame: no finer than other pictures are.
    pub(super) fn key_frame(&self) -> i32 {
        self.key.max(if self.began { self.next } else { LEAST }).round() as i32
    }

    /// A picture has that size.
    pub(super) fn coded(&mut self, bytes: usize) {
        self.began = true;
        self.owes(bytes);
        let excess = (bytes as f64 - self.mean + self.owed / OVER) / self.mean;
        let steps = if excess < FAR { DOUBLES / 2.0 * (1.0 + excess).max(0.0).log2() } else { GAIN * excess };
        self.next = (self.next + steps.clamp(STEPS.0, STEPS.1)).clamp(LEAST, MOST);
    }

    /// A key frame has that size. False if it is too large: another quantizer may help.
    pub(super) fn coded_key(&mut self, bytes: usize) -> bool {
        let (over, used) = (bytes as f64 / (KEY_FRAME * self.mean), f64::from(self.key_frame()));
        let steps = if over > 1.0 {
            (HALVES_KEY * over.log2()).ceil()
        } else if over < FINER {
            -1.0
        } else {
            0.0
        };
        self.key = (used + steps).clamp(LEAST, MOST);
        over <= 1.0 || self.key <= used
    }

    /// The key frame of that size is sent, coded with that quantizer.
    pub(super) fn sent_key(&mut self, bytes: usize, used: i32) {
        self.owes(bytes);
        self.next = self.next.max(f64::from(used));
    }

    fn owes(&mut self, bytes: usize) {
        let most = MOST_OWED * self.mean;
        self.owed = (self.owed + bytes as f64 - self.mean).clamp(-self.mean, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn steps_are_as_computed() {
        let mut quantizer = Quantizer::new(1_000.0);
        // Before any picture a rate moves nothing.
        quantizer.set_mean(2_000.0);
        assert_eq!(quantizer.picture(), 28);
        // Twice the mean, of which a twentieth is made good: 28 + 1.05.
        quantizer.coded(4_000);
        assert_eq!(quantizer.picture(), 29);
        // A quarter of the rate is 10 steps, and twice that 3 back.
        quantizer.set_mean(500.0);
        assert_eq!(quantizer.picture(), 39);
        quantizer.set_mean(1_000.0);
        assert_eq!(quantizer.picture(), 36);
        // 100 means are 3 steps, the most, and nothing is 3 back.
        quantizer.coded(100_000);
        assert_eq!(quantizer.picture(), 39);
        quantizer.coded(0);
        assert_eq!(quantizer.picture(), 36);
        // With a twentieth of the 625 B that are missing then, 0.344 of the mean: 36.05 - 1.5 x 1.54.
        quantizer.owed = 0.0;
        quantizer.coded(375);
        assert_eq!(quantizer.picture(), 34);
        // Half of the mean is half a step: 33.74 - 0.5.
        quantizer.owed = 0.0;
        quantizer.coded(525);
        assert_eq!(quantizer.picture(), 33);
    }

    #[test]
    fn a_key_frame_is_coded_again_until_it_is_small_enough() {
        let mut quantizer = Quantizer::new(1_000.0);
        // 20 means are four times as much as it may have: two halves, of four steps each.
        assert!(!quantizer.coded_key(20_000));
        assert_eq!(quantizer.key_frame(), 36);
        assert!(quantizer.coded_key(4_000));
        quantizer.sent_key(4_000, 36);
        assert_eq!((quantizer.picture(), quantizer.key_frame()), (36, 36));
        assert!(quantizer.coded_key(3_000));
        assert_eq!(quantizer.key_frame(), 35);
        // Beyond the coarsest there is nothing to try.
        assert!(!quantizer.coded_key(1_000_000));
        assert_eq!(quantizer.key_frame(), 51);
        assert!(quantizer.coded_key(1_000_000));
    }

    proptest! {
        /// The rate is met within 2 s at any cost of pictures.
        #[test]
        fn pictures_of_any_cost_come_to_the_mean(at_28 in 1.0..6.5_f64, halves in 4.0..6.5_f64, noise in 0.0..0.5_f64) {
            let mut quantizer = Quantizer::new(4_000.0);
            let mut bytes = 0.0;
            for number in 0..90 {
                let varies = 1.0 + noise * if number % 2 == 0 { 1.0 } else { -1.0 };
                let size = varies * 500.0 * (at_28 + (28.0 - f64::from(quantizer.picture())) / halves).exp2();
                quantizer.coded(size as usize);
                bytes += if number < 60 { 0.0 } else { size };
            }
            prop_assert!((bytes / 30.0 / 4_000.0 - 1.0).abs() < 0.1, "{}", bytes / 30.0);
        }
    }
}
