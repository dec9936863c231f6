//! Real video as a source of a stream's frames: each is coded at the rate that is asked for at that moment, and cut into payloads.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use lastmile::endpoint::stream::source::{Frame, FrameSource, Setting};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile::wire::h264::packetize;

use super::scale::sized;
use super::{Encoder, Ladder, MediaError, Pictures};

/// Weight of a new frame in the share of headers: one in so many.
const GAIN: f64 = 8.0;
/// The least that a source is said to make.
const MIN_RATE: Rate = Rate::ip(30_000);

/// The error that ended a source of video, for the program that drives its stream.
#[derive(Clone, Debug, Default)]
pub struct SourceError(Arc<Mutex<Option<MediaError>>>);

impl SourceError {
    /// The error, once there is one.
    pub fn take(&self) -> Option<MediaError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// True if there is one.
    pub fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Time that coding took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coding {
    /// Pictures coded.
    pub pictures: u64,
    /// Time of all.
    pub took: Span,
    /// Pictures that took longer than the interval of one.
    pub slow: u64,
    /// Pictures of a live source that came too soon, and were not coded.
    pub left_out: u64,
}

/// Time that coding took, for the program that drives the stream.
#[derive(Clone, Debug, Default)]
pub struct SharedCoding(Arc<Mutex<Coding>>);

impl SharedCoding {
    /// So far.
    pub fn get(&self) -> Coding {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pictures, coded. After an error it has no more frames.
pub struct VideoSource {
    pictures: Box<dyn Pictures>,
    encoder: Box<dyn Encoder>,
    size: (usize, usize),
    most: Rate,
    headers: u64,
    payload: usize,
    frame_rate: f64,
    /// Number of the picture that is due.
    number: u64,
    /// Frames since a live source had a new picture.
    stood: u32,
    /// Share of the packets' bytes that is not of headers.
    share: f64,
    payloads: Vec<Vec<u8>>,
    took: Span,
    untimed: bool,
    ladder: Option<Ladder>,
    coding: SharedCoding,
    error: SourceError,
    ended: bool,
}

impl std::fmt::Debug for VideoSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VideoSource")
            .field("size", &self.size)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl VideoSource {
    /// A source of pictures in that size, and the parameter sets of its stream; `most` is the highest rate of IP packets.
    ///
    /// # Errors
    /// The first picture cannot be had or coded.
    pub fn new(
        mut pictures: Box<dyn Pictures>,
        mut encoder: Box<dyn Encoder>,
        size: (usize, usize),
        most: Rate,
        setting: &Setting<'_>,
    ) -> Result<(VideoSource, Vec<u8>), MediaError> {
        let first = encoder.encode(&*sized(pictures.picture(0)?, size)?)?;
        encoder.key_frame();
        let Setting { frame_rate, packet_size, headers, .. } = *setting;
        let payload = packet_size.0.saturating_sub(headers.0) as usize;
        let source = VideoSource {
            pictures,
            encoder,
            size,
            most,
            headers: headers.0,
            payload,
            frame_rate,
            number: 0,
            stood: 0,
            share: payload as f64 / packet_size.0.max(1) as f64,
            payloads: Vec::new(),
            took: Span::ZERO,
            untimed: false,
            ladder: None,
            coding: SharedCoding::default(),
            error: SourceError::default(),
            ended: false,
        };
        Ok((source, first))
    }

    /// The same source where coding takes no time: in virtual time, whose results are the same each time.
    #[must_use]
    pub fn untimed(self) -> VideoSource {
        VideoSource { untimed: true, ..self }
    }

    /// The same source at the rates of a ladder.
    #[must_use]
    pub fn laddered(self, ladder: Ladder) -> VideoSource {
        VideoSource { ladder: Some(ladder), ..self }
    }

    /// The error that ends it, to be looked at while it is used.
    pub fn error(&self) -> SourceError {
        self.error.clone()
    }

    /// The time that coding took, to be looked at while it is used.
    pub fn coding(&self) -> SharedCoding {
        self.coding.clone()
    }

    /// The time from this frame to the next. Frames stand where their number says.
    fn next(&mut self) -> Span {
        let at = |number: u64| Span::from_secs_f64(number as f64 / self.frame_rate);
        let next = at(self.number + 1) - at(self.number);
        self.number += 1;
        next
    }

    fn coded(&mut self, target: Rate) -> Result<Vec<u8>, MediaError> {
        self.stood = if self.pictures.stands_still() { self.stood.saturating_add(1) } else { 0 };
        self.encoder.set_rate(target.scaled(self.share));
        let picture = sized(self.pictures.picture(self.number)?, self.size)?;
        self.encoder.encode(&picture)
    }
}

impl FrameSource for VideoSource {
    fn frame(&mut self, now: Time, target: Rate, _: Bytes) -> Frame {
        let target = self.ladder.as_mut().map_or(target, |ladder| ladder.rate(now, target));
        let began = Instant::now();
        self.payloads.clear();
        let mut is_over = self.error.is_set();
        if !is_over {
            match self.coded(target) {
                Ok(unit) => self.payloads = packetize(&unit, self.payload),
                Err(MediaError::Ended) => (self.ended, is_over) = (true, true),
                Err(error) => {
                    *self.error.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    is_over = true;
                }
            }
        }
        if is_over {
            self.coding.0.lock().unwrap_or_else(PoisonError::into_inner).left_out = self.pictures.left_out();
            return Frame { size: Bytes::ZERO, next: self.next() };
        }
        let content = self.payloads.iter().map(|payload| payload.len() as u64).sum::<u64>();
        let size = content + self.headers * self.payloads.len() as u64;
        if size > 0 {
            self.share += (content as f64 / size as f64 - self.share) / GAIN;
        }
        let next = self.next();
        self.took = Span::from_nanos(began.elapsed().as_nanos() as i64);
        let mut coding = self.coding.0.lock().unwrap_or_else(PoisonError::into_inner);
        (coding.pictures, coding.took) = (coding.pictures + 1, coding.took + self.took);
        coding.slow += u64::from(self.took > next);
        coding.left_out = self.pictures.left_out();
        Frame { size: Bytes(size), next }
    }

    fn range(&self) -> (Rate, Rate) {
        (MIN_RATE, self.most)
    }

    fn key_frame(&mut self) {
        self.encoder.key_frame();
    }

    fn is_coded(&self) -> bool {
        true
    }

    fn skip(&mut self) -> Span {
        if !self.pictures.stands_still() {
            self.stood = 0;
        }
        self.next()
    }

    fn payloads(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.payloads)
    }

    fn took(&self) -> Span {
        if self.untimed { Span::ZERO } else { self.took }
    }

    /// After a second: a camera of fewer pictures than its header says does not rest.
    fn stands_still(&self) -> bool {
        f64::from(self.stood) > self.frame_rate
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn resize(&mut self, packet_size: Bytes) {
        self.payload = packet_size.0.saturating_sub(self.headers) as usize;
        self.encoder.set_slice_size(self.payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::Picture;

    /// A camera that has a new picture where that is true.
    struct Camera(Arc<Mutex<bool>>, Picture);

    impl Pictures for Camera {
        fn size(&self) -> (usize, usize) {
            self.1.size()
        }
        fn frame_rate(&self) -> f64 {
            10.0
        }
        fn picture(&mut self, _: u64) -> Result<&Picture, MediaError> {
            Ok(&self.1)
        }
        fn stands_still(&self) -> bool {
            !*self.0.lock().unwrap()
        }
    }

    /// An access unit of a slice for each picture.
    struct Slices;

    impl Encoder for Slices {
        fn set_rate(&mut self, _: Rate) {}
        fn set_slice_size(&mut self, _: usize) {}
        fn key_frame(&mut self) {}
        fn encode(&mut self, _: &Picture) -> Result<Vec<u8>, MediaError> {
            Ok(vec![0, 0, 0, 1, 0x41, 7, 7, 7])
        }
    }

    #[test]
    fn a_live_source_without_a_new_picture_for_a_second_stands_still() {
        let has_new = Arc::new(Mutex::new(true));
        let camera = Camera(Arc::clone(&has_new), Picture::new(32, 16).unwrap());
        let setting = Setting::of(10.0, Bytes(1_200));
        let most = Rate::ip(1_000_000);
        let made = VideoSource::new(Box::new(camera), Box::new(Slices), (32, 16), most, &setting);
        let mut source = made.unwrap().0;
        for (new, expected) in [(true, 0), (false, 20), (true, 0)] {
            *has_new.lock().unwrap() = new;
            let mut stands = || {
                // Its frames go on all the same, for those who have lost the picture.
                assert!(source.frame(Time::ZERO, Rate::ip(500_000), Bytes::ZERO).size > Bytes::ZERO);
                source.stands_still()
            };
            assert_eq!((0..30).filter(|_| stands()).count(), expected);
        }
        // Frames that are left out show that it goes on, too.
        *has_new.lock().unwrap() = false;
        for _ in 0..12 {
            source.frame(Time::ZERO, Rate::ip(500_000), Bytes::ZERO);
        }
        assert!(source.stands_still());
        *has_new.lock().unwrap() = true;
        source.skip();
        assert!(!source.stands_still());
    }
}
