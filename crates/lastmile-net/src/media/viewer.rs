//! A viewer of one stream: it decodes its frames, writes them to a file, and compares them with their originals.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastmile::endpoint::stream::{CLOCK_RATE, FrameSink, PlayedFrame};
use lastmile::time::{Span, Time};

use super::{Decoder, MediaError, Picture, Pictures, TestPattern, Y4mWriter, quality, scaled};

/// Pictures are repeated for frames that were not shown only up to so many more than the time that passed has places: a sender's clock may
/// be wrong, or lie.
const MAX_AHEAD: i64 = 30;

/// A stream that shows nothing for so long makes room for another: its sender may have been started anew.
const SILENT: Span = Span::from_secs(1);

/// A file of what was received.
pub enum Output {
    /// The byte stream as it came, late frames among it.
    H264(Box<dyn Write + Send>),
    /// Pictures, one for each place in time: the last one again for a frame that was not shown.
    Y4m(Y4mWriter<Box<dyn Write + Send>>),
}

/// Originals of a viewer's pictures.
pub enum Reference {
    /// These.
    Pictures(Box<dyn Pictures>),
    /// The test pattern in the size of the pictures that come; nothing before the first.
    TestPattern(Option<TestPattern>),
}

/// Counts and quality of the pictures that a viewer saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// Pictures decoded and shown.
    pub pictures: u64,
    /// Frames of which no picture could be decoded.
    pub undecodable: u64,
    /// Size of the last picture.
    pub size: Option<(usize, usize)>,
    /// Pictures compared, the sum of their mean squared errors of Y, and of their SSIM of Y.
    compared: (u64, f64, f64),
    /// The fault of the file of what was received: then no more is written.
    pub error: Option<MediaError>,
    /// The fault of the originals: then no more is compared.
    pub reference_error: Option<MediaError>,
}

impl Seen {
    /// PSNR of Y in dB, by the mean of the squared errors of all pictures; `None` where none was compared.
    pub fn psnr(&self) -> Option<f64> {
        let (pictures, errors, _) = self.compared;
        (pictures > 0).then(|| 10.0 * (255.0 * 255.0 * pictures as f64 / errors).log10())
    }

    /// Mean SSIM of Y.
    pub fn ssim(&self) -> Option<f64> {
        let (pictures, _, similarity) = self.compared;
        (pictures > 0).then(|| similarity / pictures as f64)
    }
}

/// Counts and quality of a viewer's pictures, for the program that drives its receiver.
#[derive(Clone, Debug, Default)]
pub struct SharedSeen(Arc<Mutex<Seen>>);

impl SharedSeen {
    /// A look at it; the viewer waits meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The viewer. It follows the first stream until that has left or shows nothing, and then the next.
pub struct Viewer {
    decoder: Box<dyn Decoder>,
    output: Option<Output>,
    reference: Option<Reference>,
    frame_rate: f64,
    /// The stream that it follows, and when its last frame was due.
    following: Option<(u32, Time)>,
    /// Timestamp of the picture written last, and that picture; and when the first one was written, and how many were.
    written: Option<(u32, Picture)>,
    began: Option<(Time, i64)>,
    seen: SharedSeen,
}

impl Viewer {
    /// A viewer with so many pictures in a second; those of a reference are the same as the sender's.
    pub fn new(
        decoder: Box<dyn Decoder>,
        output: Option<Output>,
        reference: Option<Reference>,
        frame_rate: f64,
    ) -> Viewer {
        let seen = SharedSeen::default();
        Viewer { decoder, output, reference, frame_rate, following: None, written: None, began: None, seen }
    }

    /// Takes parameter sets that are known before the stream.
    pub fn learn(&mut self, parameter_sets: &[u8]) {
        // They give no picture, and a decoder that refuses them may still get others.
        let _ = self.decoder.decode(parameter_sets);
        if let Some(Output::H264(out)) = &mut self.output
            && let Err(error) = out.write_all(parameter_sets)
        {
            self.failed(error.into());
        }
    }

    /// Its counts and quality, to be looked at while it is used.
    pub fn seen(&self) -> SharedSeen {
        self.seen.clone()
    }

    /// Places in time from one timestamp to another.
    fn places(&self, ticks: i32) -> i64 {
        (f64::from(ticks) / f64::from(CLOCK_RATE) * self.frame_rate).round() as i64
    }

    fn write_picture(&mut self, now: Time, timestamp: u32, picture: &Picture) -> Result<(), MediaError> {
        let places =
            self.written.as_ref().map(|(before, _)| self.places(timestamp.wrapping_sub(*before) as i32));
        let Some(Output::Y4m(writer)) = &mut self.output else { return Ok(()) };
        let (first, count) = self.began.get_or_insert((now, 0));
        let room = ((now - *first).as_secs_f64() * self.frame_rate) as i64 + MAX_AHEAD - *count;
        if let (Some((_, last)), Some(places)) = (&self.written, places) {
            let repeats = (places - 1).min(room).max(0);
            (0..repeats).try_for_each(|_| writer.write(last))?;
            *count += repeats;
        }
        writer.write(picture)?;
        *count += 1;
        self.written = Some((timestamp, picture.clone()));
        Ok(())
    }

    /// Compares a picture with the one of its place in time.
    fn compare(&mut self, timestamp: u32, picture: &Picture) -> Result<(), MediaError> {
        // The sender's clock of media begins with its first picture.
        let place = (f64::from(timestamp) / f64::from(CLOCK_RATE) * self.frame_rate).round() as u64;
        let (width, height) = picture.size();
        let original = match &mut self.reference {
            None => return Ok(()),
            Some(Reference::Pictures(pictures)) => pictures.picture(place)?,
            Some(Reference::TestPattern(pattern)) => {
                if pattern.as_ref().is_none_or(|pattern| pattern.size() != (width, height)) {
                    *pattern = Some(TestPattern::new(width, height, self.frame_rate)?);
                }
                let Some(pattern) = pattern else { return Ok(()) };
                pattern.picture(place)?
            }
        };
        let resized =
            (original.size() != picture.size()).then(|| scaled(original, width, height)).transpose()?;
        let original = resized.as_ref().unwrap_or(original);
        let (Some(psnr), Some(ssim)) = (quality::psnr(original, picture), quality::ssim(original, picture))
        else {
            return Ok(());
        };
        let mut seen = self.seen.lock();
        let error = 255.0 * 255.0 / 10_f64.powf(psnr.y / 10.0);
        seen.compared = (seen.compared.0 + 1, seen.compared.1 + error, seen.compared.2 + ssim.y);
        Ok(())
    }

    fn view(&mut self, now: Time, frame: &PlayedFrame) -> Result<(), MediaError> {
        let unit = &frame.unit;
        if let Some(Output::H264(out)) = &mut self.output
            && let Err(error) = out.write_all(&unit.bytes)
        {
            self.failed(error.into());
        }
        let Ok(Some(picture)) = self.decoder.decode(&unit.bytes) else {
            self.seen.lock().undecodable += 1;
            return Ok(());
        };
        if frame.late {
            return Ok(());
        }
        {
            let mut seen = self.seen.lock();
            (seen.pictures, seen.size) = (seen.pictures + 1, Some(picture.size()));
        }
        let written = self.write_picture(now, unit.timestamp, &picture);
        if let Err(error) = self.compare(unit.timestamp, &picture) {
            self.reference = None;
            self.seen.lock().reference_error.get_or_insert(error);
        }
        written
    }

    fn failed(&mut self, error: MediaError) {
        self.output = None;
        self.seen.lock().error.get_or_insert(error);
    }
}

impl FrameSink for Viewer {
    fn frame(&mut self, now: Time, ssrc: u32, frame: &PlayedFrame) {
        match self.following {
            Some((other, at)) if other != ssrc && now < at + SILENT => return,
            Some((other, _)) if other != ssrc => (self.written, self.began) = (None, None),
            _ => {}
        }
        self.following = Some((ssrc, now));
        if let Err(error) = self.view(now, frame) {
            self.failed(error);
        }
    }

    fn left(&mut self, ssrc: u32) {
        if self.following.is_none_or(|(followed, _)| followed != ssrc) {
            return;
        }
        (self.following, self.written, self.began) = (None, None, None);
        let flushed = match &mut self.output {
            Some(Output::H264(out)) => out.flush().map_err(MediaError::from),
            Some(Output::Y4m(writer)) => writer.flush(),
            None => Ok(()),
        };
        if let Err(error) = flushed {
            self.failed(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::wire::h264::AccessUnit;

    /// A picture of the size that the access unit's only byte says.
    struct Shades;

    impl Decoder for Shades {
        fn decode(&mut self, access_unit: &[u8]) -> Result<Option<Picture>, MediaError> {
            match access_unit {
                [] => Ok(None),
                [shade, ..] => {
                    let mut picture = Picture::new(32, 16)?;
                    picture.planes_mut()[0].fill(*shade);
                    Ok(Some(picture))
                }
            }
        }
    }

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn frame(number: u32, shade: u8) -> PlayedFrame {
        let unit = AccessUnit {
            timestamp: number * 3_000,
            bytes: vec![shade],
            whole: true,
            ..AccessUnit::default()
        };
        PlayedFrame { unit, ..PlayedFrame::default() }
    }

    fn at(number: i64) -> Time {
        Time::ZERO + Span::from_secs(number) / 30
    }

    /// Shades of the pictures in a file.
    fn shades(file: &[u8]) -> Vec<u8> {
        let begin = file.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        file[begin..].chunks(32 * 16 * 3 / 2 + 6).map(|picture| picture[6]).collect()
    }

    #[test]
    fn places_without_a_picture_have_the_last_one_again_within_the_time_that_passed() {
        let file = Shared::default();
        let output = Output::Y4m(Y4mWriter::new(Box::new(file.clone()), 30.0));
        let mut viewer = Viewer::new(Box::new(Shades), Some(output), None, 30.0);
        viewer.frame(at(0), 1, &frame(0, 10));
        viewer.frame(at(1), 1, &frame(1, 11));
        viewer.frame(at(2), 1, &PlayedFrame { late: true, ..frame(2, 12) });
        viewer.frame(at(4), 1, &frame(4, 14));
        assert_eq!(shades(&file.0.lock().unwrap()), [10, 11, 11, 11, 14]);
        // A timestamp of an hour later.
        viewer.frame(at(5), 1, &frame(108_000, 15));
        assert!(shades(&file.0.lock().unwrap()).len() < 45);
        assert_eq!(viewer.seen().lock().pictures, 4);
    }

    #[test]
    fn another_stream_is_shown_once_the_first_shows_nothing() {
        let mut viewer = Viewer::new(Box::new(Shades), None, None, 30.0);
        viewer.frame(at(0), 1, &frame(0, 10));
        viewer.frame(at(10), 2, &frame(0, 20));
        assert_eq!(viewer.seen().lock().pictures, 1);
        viewer.frame(at(31), 2, &frame(1, 21));
        viewer.frame(at(32), 1, &frame(32, 11));
        viewer.frame(at(33), 2, &frame(2, 22));
        assert_eq!(viewer.seen().lock().pictures, 3);
        viewer.left(2);
        viewer.frame(at(34), 1, &frame(33, 12));
        assert_eq!(viewer.seen().lock().pictures, 4);
    }

    #[test]
    fn a_full_disk_is_told_and_ends_the_file_alone() {
        let mut viewer = Viewer::new(Box::new(Shades), Some(Output::H264(Box::new(Full))), None, 30.0);
        let seen = viewer.seen();
        (0..3).for_each(|number| viewer.frame(at(number.into()), 1, &frame(number, 10)));
        assert!(matches!(seen.lock().error, Some(MediaError::Io(_))));
        assert_eq!(seen.lock().pictures, 3);
    }

    /// Its second picture is cut.
    #[test]
    fn originals_that_break_off_do_not_end_the_file() {
        let mut originals = b"YUV4MPEG2 W32 H16 F30:1\nFRAME\n".to_vec();
        originals.resize(originals.len() + 32 * 16 * 3 / 2, 0);
        originals.extend(b"FRAME\n123");
        let reference = crate::media::Y4mReader::new(std::io::Cursor::new(originals)).unwrap();
        let file = Shared::default();
        let output = Output::Y4m(Y4mWriter::new(Box::new(file.clone()), 30.0));
        let reference = Some(Reference::Pictures(Box::new(reference)));
        let mut viewer = Viewer::new(Box::new(Shades), Some(output), reference, 30.0);
        (0..3).for_each(|number| viewer.frame(at(number.into()), 1, &frame(number, number as u8)));
        assert_eq!(shades(&file.0.lock().unwrap()), [0, 1, 2]);
        let seen = viewer.seen();
        assert!(
            matches!(seen.lock().reference_error, Some(MediaError::File(_))) && seen.lock().error.is_none()
        );
    }

    #[test]
    fn pictures_are_compared_with_those_of_their_places() {
        let mut pattern = TestPattern::new(32, 16, 30.0).unwrap();
        let reference = Reference::Pictures(Box::new(TestPattern::new(32, 16, 30.0).unwrap()));
        let mut viewer = Viewer::new(Box::new(Shades), None, Some(reference), 30.0);
        viewer.frame(at(7), 1, &frame(7, 90));
        let mut picture = Picture::new(32, 16).unwrap();
        picture.planes_mut()[0].fill(90);
        let psnr = quality::psnr(pattern.picture(7).unwrap(), &picture).unwrap().y;
        assert!((viewer.seen().lock().psnr().unwrap() - psnr).abs() < 1e-9);
        assert!(viewer.seen().lock().ssim().is_some_and(|ssim| ssim < 0.9));
    }
}
