//! Pictures as PNG files, for pages.

use super::{MediaError, Picture};

/// A picture as a PNG file, with the colours of ITU-R BT.601 in studio range.
///
/// # Errors
/// The file cannot be made.
///
/// ```
/// use lastmile_net::media::{Picture, png};
/// let file = png(&Picture::new(32, 16)?)?;
/// assert_eq!(file[1..4], *b"PNG");
/// # Ok::<(), lastmile_net::media::MediaError>(())
/// ```
pub fn png(picture: &Picture) -> Result<Vec<u8>, MediaError> {
    let refused = |error: png::EncodingError| MediaError::Io(std::io::Error::other(error));
    let (width, height) = picture.size();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header().map_err(refused)?;
    writer.write_image_data(&rgb(picture)).map_err(refused)?;
    writer.finish().map_err(refused)?;
    Ok(file)
}

/// Red, green and blue of each pixel.
fn rgb(picture: &Picture) -> Vec<u8> {
    let (width, _) = picture.size();
    let [luma, blue, red] = picture.planes();
    let mut samples = Vec::with_capacity(luma.len() * 3);
    for (place, y) in luma.iter().enumerate() {
        let (row, column) = (place / width, place % width);
        let colour = row / 2 * (width / 2) + column / 2;
        let [y, u, v] = [(*y, 16), (blue[colour], 128), (red[colour], 128)]
            .map(|(sample, zero)| i32::from(sample) - zero);
        // The matrix in 1/256.
        let sums = [298 * y + 409 * v, 298 * y - 100 * u - 208 * v, 298 * y + 516 * u];
        samples.extend(sums.map(|sum| ((sum + 128) >> 8).clamp(0, 255) as u8));
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn black_white_and_red_are_these_colours() {
        let mut picture = Picture::new(32, 16).unwrap();
        assert_eq!(rgb(&picture)[..3], [0, 0, 0]);
        picture.planes_mut()[0].fill(235);
        assert_eq!(rgb(&picture)[..3], [255, 255, 255]);
        let [y, u, v] = picture.planes_mut();
        y.fill(81);
        u.fill(90);
        v.fill(240);
        assert_eq!(rgb(&picture)[..3], [255, 0, 0]);
    }
}
