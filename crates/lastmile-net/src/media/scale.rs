//! Pictures in another size, by bilinear interpolation between the centres of pixels.

use std::borrow::Cow;

use super::{MediaError, Picture};

/// The picture in that size. Smaller pictures are means of the pixels they cover where a side shrinks to a half or less.
///
/// # Errors
/// The size cannot be coded.
pub fn scaled(picture: &Picture, width: usize, height: usize) -> Result<Picture, MediaError> {
    let mut out = Picture::new(width, height)?;
    let (from, to) = (picture.plane_sizes(), out.plane_sizes());
    for (((source, target), from), to) in picture.planes().into_iter().zip(out.planes_mut()).zip(from).zip(to)
    {
        let columns: Vec<_> = (0..to.0).map(|place| covered(place, from.0, to.0)).collect();
        for (row, line) in target.chunks_exact_mut(to.0).enumerate() {
            let rows = covered(row, from.1, to.1);
            for (sample, columns) in line.iter_mut().zip(&columns) {
                *sample = mean(source, from.0, columns, &rows);
            }
        }
    }
    Ok(out)
}

/// The picture in that size; itself where it has it.
///
/// # Errors
/// The size cannot be coded.
pub(super) fn sized(
    picture: &Picture,
    (width, height): (usize, usize),
) -> Result<Cow<'_, Picture>, MediaError> {
    match picture.size() == (width, height) {
        true => Ok(Cow::Borrowed(picture)),
        false => scaled(picture, width, height).map(Cow::Owned),
    }
}

/// Weights of a side's pixels for one place of the other size, as the first pixel and 16.16 fractions.
type Weights = (usize, Vec<u64>);

/// A tent of at least one pixel to each side around the place's centre.
fn covered(place: usize, from: usize, to: usize) -> Weights {
    let step = from as f64 / to as f64;
    let (centre, reach) = ((place as f64 + 0.5) * step - 0.5, step.max(1.0));
    let first = (centre - reach).floor().max(0.0) as usize;
    let last = ((centre + reach).ceil().max(0.0) as usize).min(from - 1);
    let weight = |pixel: usize| ((1.0 - (pixel as f64 - centre).abs() / reach).max(0.0) * 65_536.0) as u64;
    (first, (first..=last).map(weight).collect())
}

fn mean(plane: &[u8], width: usize, columns: &Weights, rows: &Weights) -> u8 {
    let (mut sum, mut all) = (0, 0);
    for (row, vertical) in (rows.0..).zip(&rows.1) {
        let line = &plane[row * width..];
        for (column, horizontal) in (columns.0..).zip(&columns.1) {
            let weight = (vertical * horizontal) >> 16;
            sum += weight * u64::from(line[column]);
            all += weight;
        }
    }
    ((sum + all / 2) / all.max(1)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::{Pictures, TestPattern, quality};

    #[test]
    fn a_size_of_its_own_changes_nothing_and_an_even_shade_stays() {
        let mut pattern = TestPattern::new(64, 48, 30.0).unwrap();
        let picture = pattern.picture(3).unwrap().clone();
        assert_eq!(scaled(&picture, 64, 48).unwrap(), picture);
        let black = Picture::new(64, 48).unwrap();
        assert_eq!(scaled(&black, 160, 90).unwrap(), Picture::new(160, 90).unwrap());
        assert!(scaled(&black, 63, 48).is_err());
    }

    #[test]
    fn twice_the_size_and_back_is_much_the_same() {
        let mut pattern = TestPattern::new(64, 48, 30.0).unwrap();
        let picture = pattern.picture(3).unwrap();
        let back = scaled(&scaled(picture, 128, 96).unwrap(), 64, 48).unwrap();
        let psnr = quality::psnr(picture, &back).unwrap().y;
        assert!(psnr > 30.0, "{psnr:.1} dB");
    }

    /// By hand: 0 and 90 across become 0, 22.5, 67.5, 90 in twice the width.
    #[test]
    fn between_two_pixels_a_sample_is_their_weighted_mean() {
        let plane = [0, 90];
        let at = |place| mean(&plane, 2, &covered(place, 2, 4), &(0, vec![65_536]));
        assert_eq!([0, 1, 2, 3].map(at), [0, 23, 68, 90]);
    }
}
