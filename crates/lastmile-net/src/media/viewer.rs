//! A viewer of one stream: it decodes its frames, writes them to a file, and compares them with their originals.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastmile::endpoint::stream::{CLOCK_RATE, FrameSink, PlayedFrame};
use lastmile::time::Time;

use super::{Decoder, MediaError, Picture, Pictures, TestPattern, Y4mWriter, quality, scaled};

/// Pictures are repeated for frames that were not shown only up to so many more than the time that passed has places: a sender's clock may
/// be wrong, or lie.
const MAX_AHEAD: i64 = 30;

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

/// What a viewer saw.
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
    /// What went wrong with a file: then no more is written, or compared.
    pub error: Option<MediaError>,
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

/// What a viewer saw, for the program that drives its receiver.
#[derive(Clone, Debug, Default)]
pub struct SharedSeen(Arc<Mutex<Seen>>);

impl SharedSeen {
    /// A look at it; the viewer waits meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The viewer. It follows the first stream until that has left, and then the next.
pub struct Viewer {
    decoder: Box<dyn Decoder>,
    output: Option<Output>,
    reference: Option<Reference>,
    frame_rate: f64,
    following: Option<u32>,
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

    /// What it sees, to be looked at while it is used.
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
        if let Some(Output::H264(out)) = &mut self.output {
            out.write_all(&unit.bytes)?;
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
        self.write_picture(now, unit.timestamp, &picture)?;
        self.compare(unit.timestamp, &picture)
    }

    fn failed(&mut self, error: MediaError) {
        (self.output, self.reference) = (None, None);
        self.seen.lock().error.get_or_insert(error);
    }
}

impl FrameSink for Viewer {
    fn frame(&mut self, now: Time, ssrc: u32, frame: &PlayedFrame) {
        if *self.following.get_or_insert(ssrc) != ssrc {
            return;
        }
        if let Err(error) = self.view(now, frame) {
            self.failed(error);
        }
    }

    fn left(&mut self, ssrc: u32) {
        if self.following != Some(ssrc) {
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
