//! A moving test pattern, the same on every machine: both ends of a stream can make it.

use super::{MediaError, Picture, Pictures};

/// Texture that moves, noise, and a bright square that wanders: of the kind that an encoder has to work at.
///
/// ```
/// use lastmile_net::media::{Pictures, TestPattern};
/// let mut pattern = TestPattern::new(320, 240, 30.0)?;
/// let first = pattern.picture(0)?.clone();
/// assert_ne!(pattern.picture(1)?, &first);
/// assert_eq!(pattern.picture(0)?, &first);
/// # Ok::<(), lastmile_net::media::MediaError>(())
/// ```
#[derive(Debug)]
pub struct TestPattern {
    picture: Picture,
    frame_rate: f64,
}

impl TestPattern {
    /// A pattern of that size.
    ///
    /// # Errors
    /// The size cannot be coded.
    pub fn new(width: usize, height: usize, frame_rate: f64) -> Result<TestPattern, MediaError> {
        Ok(TestPattern { picture: Picture::new(width, height)?, frame_rate })
    }
}

/// A whole number of pseudo-random bits for each input (the finalizer of MurmurHash3, which is in the public domain).
fn hash(mut bits: u32) -> u32 {
    bits = (bits ^ (bits >> 16)).wrapping_mul(0x85eb_ca6b);
    bits = (bits ^ (bits >> 13)).wrapping_mul(0xc2b2_ae35);
    bits ^ (bits >> 16)
}

impl Pictures for TestPattern {
    fn size(&self) -> (usize, usize) {
        self.picture.size()
    }

    fn frame_rate(&self) -> f64 {
        self.frame_rate
    }

    fn picture(&mut self, number: u64) -> Result<&Picture, MediaError> {
        let (width, height) = self.picture.size();
        let time = number as usize;
        let side = height.min(width) / 4;
        let wander = |period: usize, room: usize| {
            let place = time % (2 * period);
            if place < period { place * room / period } else { (2 * period - place) * room / period }
        };
        let (left, top) = (wander(97, width - side), wander(61, height - side));
        let [y, u, v] = self.picture.planes_mut();
        for (row, line) in y.chunks_exact_mut(width).enumerate() {
            for (column, sample) in line.iter_mut().enumerate() {
                // Cells of 8 pixels that move by two pixels a picture, and a grain of 0 to 7 that changes with each.
                let cell =
                    hash(((column + 2 * time) / 8) as u32 ^ (((row + time) / 8) as u32).wrapping_mul(0x9e37))
                        & 63;
                let grain = hash((row * width + column) as u32 ^ (number as u32).wrapping_mul(0x51ed)) & 7;
                let shade = 40 + cell + grain + (row * 64 / height) as u32;
                let within = (left..left + side).contains(&column) && (top..top + side).contains(&row);
                *sample = if within { 220 } else { shade as u8 };
            }
        }
        for (plane, (across, down)) in [(u, (1, 2)), (v, (2, 1))] {
            for (row, line) in plane.chunks_exact_mut(width / 2).enumerate() {
                for (column, sample) in line.iter_mut().enumerate() {
                    *sample = (96 + (across * column + down * row + time) / 4 % 64) as u8;
                }
            }
        }
        Ok(&self.picture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_of_any_shape_have_the_square() {
        for (width, height) in [(16, 272), (272, 16), (16, 16)] {
            let mut pattern = TestPattern::new(width, height, 30.0).unwrap();
            for number in [0, 1, 96, 97, 12_345] {
                let bright =
                    pattern.picture(number).unwrap().planes()[0].iter().filter(|sample| **sample == 220);
                assert_eq!(bright.count(), 16, "{width}x{height}");
            }
        }
    }
}
