//! Quality of a decoded picture beside its original.
//!
//! PSNR is 10 log10(255^2 / MSE) of a plane. SSIM is that of Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, "Image quality
//! assessment: from error visibility to structural similarity", IEEE Transactions on Image Processing 13(4), 2004, equation 13 with
//! K1 = 0.01 and K2 = 0.03, over windows of 8 by 8 pixels of equal weight at steps of 4 pixels, as the filter `ssim` of ffmpeg has them.

use super::Picture;

/// A number for each plane, and for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Of Y.
    pub y: f64,
    /// Of U.
    pub u: f64,
    /// Of V.
    pub v: f64,
    /// Of all samples.
    pub all: f64,
}

/// Peak signal to noise ratio in dB, infinite where nothing differs; `None` for pictures of different sizes.
pub fn psnr(original: &Picture, other: &Picture) -> Option<Quality> {
    let errors = planes(original, other, squared_error)?;
    let decibels = |(sum, samples): (f64, f64)| 10.0 * (255.0 * 255.0 * samples / sum).log10();
    let all = errors.iter().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
    let [y, u, v] = errors.map(decibels);
    Some(Quality { y, u, v, all: decibels(all) })
}

/// Structural similarity, 1 where nothing differs; `None` for pictures of different sizes.
pub fn ssim(original: &Picture, other: &Picture) -> Option<Quality> {
    let [y, u, v] =
        planes(original, other, |one, other, size| (similarity(one, other, size), size.0 * size.1))?;
    let samples = (y.1 + u.1 + v.1) as f64;
    let all = [y, u, v].iter().map(|(value, samples)| value * *samples as f64).sum::<f64>() / samples;
    Some(Quality { y: y.0, u: u.0, v: v.0, all })
}

/// Mean squared error and SSIM of Y; `None` for pictures of different sizes.
pub fn luma(original: &Picture, other: &Picture) -> Option<(f64, f64)> {
    let ([a, ..], [x, ..], [size, ..]) = (original.planes(), other.planes(), original.plane_sizes());
    let (sum, samples) = squared_error(a, x, size);
    (original.size() == other.size()).then(|| (sum / samples, similarity(a, x, size)))
}

/// A measure of each pair of planes.
fn planes<T>(
    original: &Picture,
    other: &Picture,
    measure: impl Fn(&[u8], &[u8], (usize, usize)) -> T,
) -> Option<[T; 3]> {
    let [a, b, c] = original.planes();
    let [x, y, z] = other.planes();
    let [luma, colour, _] = original.plane_sizes();
    (original.size() == other.size())
        .then(|| [measure(a, x, luma), measure(b, y, colour), measure(c, z, colour)])
}

fn squared_error(one: &[u8], other: &[u8], _: (usize, usize)) -> (f64, f64) {
    let sum: u64 = one.iter().zip(other).map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum();
    (sum as f64, one.len() as f64)
}

/// Sums over a block of 4 by 4: both planes, their squares together, and their product.
type Sums = [i64; 4];

fn similarity(one: &[u8], other: &[u8], (width, height): (usize, usize)) -> f64 {
    let (across, down) = (width / 4, height / 4);
    let block = |column: usize, row: usize| -> Sums {
        let mut sums = [0; 4];
        for line in row * 4..row * 4 + 4 {
            for at in line * width + column * 4..line * width + column * 4 + 4 {
                let (a, b) = (i64::from(one[at]), i64::from(other[at]));
                sums = [sums[0] + a, sums[1] + b, sums[2] + a * a + b * b, sums[3] + a * b];
            }
        }
        sums
    };
    let rows: Vec<Vec<Sums>> =
        (0..down).map(|row| (0..across).map(|column| block(column, row)).collect()).collect();
    let (mut sum, mut windows) = (0.0, 0);
    for pair in rows.windows(2) {
        for column in 1..across {
            let blocks = [pair[0][column - 1], pair[0][column], pair[1][column - 1], pair[1][column]];
            let mut sums = [0; 4];
            blocks.iter().for_each(|block| (0..4).for_each(|at| sums[at] += block[at]));
            sum += window(sums);
            windows += 1;
        }
    }
    // A plane of a macroblock's colour has one window at least.
    sum / f64::from(windows.max(1))
}

/// Equation 13 over 64 pixels, with variances over 63 degrees of freedom.
fn window(sums: Sums) -> f64 {
    let [a, b, squares, product] = sums.map(|sum| sum as f64);
    let (c1, c2) = ((0.01 * 255.0_f64).powi(2), (0.03 * 255.0_f64).powi(2));
    let (mean_a, mean_b) = (a / 64.0, b / 64.0);
    let variances = (squares - (a * a + b * b) / 64.0) / 63.0;
    let covariance = (product - a * b / 64.0) / 63.0;
    let luminance = (2.0 * mean_a * mean_b + c1) / (mean_a * mean_a + mean_b * mean_b + c1);
    luminance * (2.0 * covariance + c2) / (variances + c2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_like_itself() {
        let picture = Picture::new(64, 48).unwrap();
        assert_eq!(psnr(&picture, &picture).unwrap().all, f64::INFINITY);
        assert_eq!(ssim(&picture, &picture).unwrap().all, 1.0);
        assert_eq!(psnr(&picture, &Picture::new(32, 48).unwrap()), None);
    }

    /// By hand: all of Y off by 5 gives 10 log10(255^2 / 25) = 34.15 dB; over all samples MSE is 25 * 2/3. Of flat planes SSIM is the
    /// luminance alone: (2 * 16 * 21 + 6.5025) / (16^2 + 21^2 + 6.5025) = 0.96447.
    #[test]
    fn a_shift_of_the_shade_is_as_computed() {
        let one = Picture::new(64, 48).unwrap();
        let mut other = one.clone();
        other.planes_mut()[0].fill(21);
        let psnr = psnr(&one, &other).unwrap();
        assert!((psnr.y - 34.151).abs() < 1e-3 && (psnr.all - 35.912).abs() < 1e-3, "{psnr:?}");
        let ssim = ssim(&one, &other).unwrap();
        assert!((ssim.y - 0.96447).abs() < 1e-5 && (ssim.u - 1.0).abs() < 1e-12, "{ssim:?}");
        assert!((ssim.all - (2.0 * ssim.y + 1.0) / 3.0).abs() < 1e-12);
    }

    /// The filters `psnr` and `ssim` of ffmpeg on the same two files; without its vector code, whose SSIM of planes with 22 blocks across is off by
    /// 0.007 (5.1).
    #[test]
    #[expect(clippy::print_stderr, reason = "says why it is skipped")]
    fn ffmpeg_says_the_same() {
        use crate::media::{Pictures, TestPattern, Y4mWriter};
        let room = std::env::temp_dir().join(format!("lastmile-quality-{}", std::process::id()));
        let files = ["one", "other"].map(|name| room.join(name).with_extension("y4m"));
        std::fs::create_dir_all(&room).unwrap();
        let mut pattern = TestPattern::new(176, 144, 30.0).unwrap();
        let one = pattern.picture(7).unwrap().clone();
        let mut other = one.clone();
        for (place, sample) in other.planes_mut().into_iter().flatten().enumerate() {
            *sample = sample.wrapping_add((place * place % 11) as u8).wrapping_sub((place % 7) as u8);
        }
        for (file, picture) in files.iter().zip([&one, &other]) {
            Y4mWriter::new(std::fs::File::create(file).unwrap(), 30.0).write(picture).unwrap();
        }
        let said = |filter: &str| {
            let mut ffmpeg = std::process::Command::new("ffmpeg");
            ffmpeg
                .args(["-nostdin", "-hide_banner", "-cpuflags", "0", "-i"])
                .arg(&files[0])
                .arg("-i")
                .arg(&files[1]);
            let output = ffmpeg.args(["-lavfi", filter, "-f", "null", "-"]).output().ok()?;
            Some(String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (Some(psnr_said), Some(ssim_said)) = (said("psnr"), said("ssim")) else {
            return eprintln!("skipped: there is no ffmpeg here: apt-get install ffmpeg");
        };
        std::fs::remove_dir_all(&room).unwrap();
        let after = |text: &str, name: &str| -> f64 {
            let rest = text.rsplit_once(name).unwrap_or_else(|| panic!("{name} in {text}")).1;
            rest.split(' ').next().unwrap().trim().parse().unwrap()
        };
        let (psnr, ssim) = (psnr(&one, &other).unwrap(), ssim(&one, &other).unwrap());
        for (name, ours) in [(" y:", psnr.y), (" u:", psnr.u), (" v:", psnr.v), (" average:", psnr.all)] {
            let theirs = after(&psnr_said, name);
            assert!((ours - theirs).abs() < 1e-4, "psnr{name}{ours} {theirs}");
        }
        for (name, ours) in [(" Y:", ssim.y), (" U:", ssim.u), (" V:", ssim.v), (" All:", ssim.all)] {
            let theirs = after(&ssim_said, name);
            assert!((ours - theirs).abs() < 1e-4, "ssim{name}{ours} {theirs}");
        }
    }
}
