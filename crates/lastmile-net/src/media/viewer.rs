//! A viewer of one stream: it decodes its frames, writes them to a file, and compares them with their originals.

use std::io::{ErrorKind, Write};
use std::time::Instant;

use lastmile::endpoint::stream::{CLOCK_RATE, FrameSink, PlayedFrame};
use lastmile::time::{Span, Time};
use lastmile::wire::h264::AccessUnit;

use super::screen::{Comparing, Reference, Shown};
use super::seen::SharedSeen;
use super::{Decoder, MediaError, Picture, Y4mWriter};

/// Pictures are repeated for frames that were not shown only up to so many more than the time that passed has places: a sender's clock may
/// be wrong, or lie.
const MAX_AHEAD: i64 = 30;

/// A stream that shows nothing for so long makes room for another: its sender may have been started anew.
const SILENT: Span = Span::from_secs(1);

/// A file of what was received, or a [`Pipe`](super::Pipe), which may have no room for some of it.
pub enum Output {
    /// The byte stream as it came, late frames among it. Behind a gap it goes on with a key frame.
    H264(Box<dyn Write + Send>),
    /// Pictures, one for each place in time: the last one again for a frame that was not shown.
    Y4m(Y4mWriter<Box<dyn Write + Send>>),
    /// Times alone, as CSV, a line for each picture shown: its RTP timestamp, and when it was decoded and shown, in seconds of the receiver's clock.
    Times(Box<dyn Write + Send>),
}

/// The viewer. It follows the first stream until that has left or shows nothing, and then the next.
pub struct Viewer {
    decoder: Box<dyn Decoder>,
    output: Option<Output>,
    comparing: Option<Comparing>,
    frame_rate: f64,
    /// The stream that it follows, and when its last frame was due.
    following: Option<(u32, Time)>,
    /// Its last timestamp, and the same in ticks since the sender's clock of media began, which go on where timestamps wrap.
    clock: Option<(u32, i64)>,
    /// Its next key frame is to come first.
    waits: bool,
    /// Its file so far.
    written: Option<Written>,
    /// The byte stream in its file lacks a frame, and goes on with a key frame.
    gap: bool,
    seen: SharedSeen,
}

/// Pictures of a stream in a file.
struct Written {
    /// When the first one was written.
    began: Time,
    count: i64,
    last: Picture,
    /// Ticks of the first one.
    first: i64,
}

impl Viewer {
    /// A viewer with so many pictures in a second; those of a reference are the same as the sender's.
    pub fn new(
        decoder: Box<dyn Decoder>,
        output: Option<Output>,
        reference: Option<Reference>,
        frame_rate: f64,
    ) -> Viewer {
        let seen = SharedSeen::new(frame_rate);
        let comparing = reference.map(|reference| Comparing::new(reference, frame_rate, seen.clone()));
        let (following, clock, waits, written, gap) = (None, None, true, None, false);
        Viewer { decoder, output, comparing, frame_rate, following, clock, waits, written, gap, seen }
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

    /// Places in time in so many ticks.
    fn places(&self, ticks: i64) -> i64 {
        (ticks as f64 / f64::from(CLOCK_RATE) * self.frame_rate).round() as i64
    }

    /// A timestamp in ticks since the sender's clock of media began.
    fn ticks(&mut self, timestamp: u32) -> i64 {
        let ticks = match self.clock {
            None => timestamp.into(),
            Some((last, ticks)) => ticks + i64::from(timestamp.wrapping_sub(last) as i32),
        };
        self.clock = Some((timestamp, ticks));
        ticks
    }

    /// Writes a picture to its place in time, and the last one to those before that are empty. A place that is taken keeps its picture.
    fn write_picture(&mut self, now: Time, ticks: i64, picture: &Picture) -> Result<(), MediaError> {
        let (began, first, mut count) = self
            .written
            .as_ref()
            .map_or((now, ticks, 0), |written| (written.began, written.first, written.count));
        let place = self.places(ticks - first);
        let Some(Output::Y4m(writer)) = &mut self.output else { return Ok(()) };
        let room = ((now - began).as_secs_f64() * self.frame_rate) as i64 + MAX_AHEAD;
        if let Some(written) = &self.written {
            let repeats = (place.min(room) - count).max(0);
            for _ in 0..repeats {
                taken(writer.write(&written.last), &self.seen)?;
            }
            count += repeats;
        }
        if place >= count {
            taken(writer.write(picture), &self.seen)?;
            count += 1;
        }
        self.written = Some(Written { began, count, last: picture.clone(), first });
        Ok(())
    }

    /// Writes an access unit as it came. False if its file has room again, and needs a key frame.
    fn write_unit(&mut self, unit: &AccessUnit) -> bool {
        let Some(Output::H264(out)) = &mut self.output else { return true };
        let goes_on = !self.gap || (unit.key && unit.whole);
        // Nothing is written to see if there is room.
        let written = if goes_on { out.write_all(&unit.bytes) } else { out.write(&[]).map(drop) };
        match taken(written.map_err(MediaError::from), &self.seen) {
            Ok(room) => {
                self.gap = !(room && goes_on);
                let left_out = room && self.gap;
                self.seen.lock().left_out += u64::from(left_out);
                !left_out
            }
            Err(error) => {
                self.failed(error);
                true
            }
        }
    }

    fn view(&mut self, now: Time, frame: &PlayedFrame) -> Result<(), MediaError> {
        let unit = &frame.unit;
        let began = Instant::now();
        let decoded = self.decoder.decode(&unit.bytes);
        self.seen.lock().decoding += began.elapsed();
        let Ok(Some(picture)) = decoded else {
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
        let ticks = self.ticks(unit.timestamp);
        let written = self.write_picture(now, ticks, &picture).and_then(|()| {
            let Some(Output::Times(out)) = &mut self.output else { return Ok(()) };
            let shown = (now - Time::ZERO).as_secs_f64() + began.elapsed().as_secs_f64();
            let line = format!("{},{shown:.6}\n", unit.timestamp);
            taken(out.write_all(line.as_bytes()).map_err(MediaError::from), &self.seen).map(drop)
        });
        // The sender's clock of media begins with its first picture.
        let number = self.places(ticks).unsigned_abs();
        if let Some(comparing) = &self.comparing {
            comparing.show(Shown { at: now, number, picture });
        }
        written
    }

    fn failed(&mut self, error: MediaError) {
        self.output = None;
        self.seen.lock().error.get_or_insert(error);
    }
}

impl FrameSink for Viewer {
    fn frame(&mut self, now: Time, ssrc: u32, frame: &PlayedFrame) -> bool {
        match self.following {
            Some((other, _)) if other == ssrc => {}
            Some((_, at)) if now < at + SILENT => return true,
            // The decoder's pictures are another stream's.
            _ => (self.written, self.clock, self.waits) = (None, None, true),
        }
        self.following = Some((ssrc, now));
        self.waits &= !(frame.unit.key && frame.unit.whole);
        if self.waits {
            self.seen.lock().undecodable += 1;
            return false;
        }
        let has_all = self.write_unit(&frame.unit);
        if let Err(error) = self.view(now, frame) {
            self.failed(error);
        }
        has_all
    }

    fn left(&mut self, ssrc: u32) {
        if self.following.is_none_or(|(followed, _)| followed != ssrc) {
            return;
        }
        (self.following, self.clock, self.written) = (None, None, None);
        self.comparing.iter_mut().for_each(Comparing::finish);
        let flushed = match &mut self.output {
            Some(Output::H264(out) | Output::Times(out)) => out.flush().map_err(MediaError::from),
            Some(Output::Y4m(writer)) => writer.flush(),
            None => Ok(()),
        };
        if let Err(error) = flushed {
            self.failed(error);
        }
    }
}

/// True if something was written, false if it found no room, and is left out.
fn taken(written: Result<(), MediaError>, seen: &SharedSeen) -> Result<bool, MediaError> {
    match written {
        Err(MediaError::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
            seen.lock().left_out += 1;
            Ok(false)
        }
        written => written.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::media::{Pictures, Place, TestPattern, quality};

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
            timestamp: number.wrapping_mul(3_000),
            bytes: vec![shade],
            whole: true,
            ..AccessUnit::default()
        };
        PlayedFrame { unit, ..PlayedFrame::default() }
    }

    fn key(number: u32, shade: u8) -> PlayedFrame {
        let frame = frame(number, shade);
        PlayedFrame { unit: AccessUnit { key: true, ..frame.unit }, ..frame }
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
        viewer.frame(at(0), 1, &key(0, 10));
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
    fn times_are_those_of_the_pictures_shown() {
        let file = Shared::default();
        let mut viewer =
            Viewer::new(Box::new(Shades), Some(Output::Times(Box::new(file.clone()))), None, 30.0);
        viewer.frame(at(30), 1, &key(0, 10));
        viewer.frame(at(31), 1, &PlayedFrame { late: true, ..frame(1, 11) });
        viewer.frame(at(60), 1, &frame(2, 12));
        let text = String::from_utf8(file.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Vec<f64>> =
            text.lines().map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
        assert_eq!(lines.iter().map(|line| line[0]).collect::<Vec<_>>(), [0.0, 6_000.0]);
        assert!(lines.iter().zip([1.0, 2.0]).all(|(line, at)| (at..at + 0.5).contains(&line[1])), "{text}");
    }

    #[test]
    fn another_stream_is_shown_from_a_key_frame_on_once_the_first_shows_nothing() {
        let mut viewer = Viewer::new(Box::new(Shades), None, None, 30.0);
        let pictures = |viewer: &Viewer| viewer.seen().lock().pictures;
        assert!(viewer.frame(at(0), 1, &key(0, 10)));
        assert!(viewer.frame(at(10), 2, &key(0, 20)), "it is not followed, and lacks nothing");
        assert_eq!(pictures(&viewer), 1);
        // Its key frame came too early: it needs another.
        assert!(!viewer.frame(at(31), 2, &frame(1, 21)));
        assert!(viewer.frame(at(32), 1, &frame(32, 11)));
        assert_eq!((pictures(&viewer), viewer.seen().lock().undecodable), (1, 1));
        assert!(viewer.frame(at(33), 2, &key(2, 22)) && viewer.frame(at(34), 2, &frame(3, 23)));
        assert_eq!(pictures(&viewer), 3);
        viewer.left(2);
        assert!(!viewer.frame(at(35), 1, &frame(33, 12)));
        assert!(viewer.frame(at(36), 1, &key(34, 12)));
        assert_eq!(pictures(&viewer), 4);
    }

    #[test]
    fn pictures_of_another_rate_stand_at_their_times() {
        // 25 and 60 pictures in a second, for two seconds, in a file of 30.
        for (rate, own) in [(25, 50), (60, 120)] {
            let file = Shared::default();
            let output = Output::Y4m(Y4mWriter::new(Box::new(file.clone()), 30.0));
            let mut viewer = Viewer::new(Box::new(Shades), Some(output), None, 30.0);
            for number in 0..own {
                let mut played = key(0, number as u8 + 1);
                played.unit.timestamp = number * 90_000 / rate;
                viewer.frame(Time::ZERO + Span::from_secs(i64::from(number)) / i64::from(rate), 1, &played);
            }
            let shades = shades(&file.0.lock().unwrap());
            assert!((59..=61).contains(&shades.len()), "{rate}: {}", shades.len());
            assert!(
                shades.is_sorted() && shades.last().is_some_and(|last| u32::from(*last) + 1 >= own),
                "{shades:?}"
            );
        }
    }

    #[test]
    fn a_full_disk_is_told_and_ends_the_file_alone() {
        let mut viewer = Viewer::new(Box::new(Shades), Some(Output::H264(Box::new(Full))), None, 30.0);
        let seen = viewer.seen();
        (0..3).for_each(|number| assert!(viewer.frame(at(number.into()), 1, &key(number, 10))));
        assert!(matches!(seen.lock().error, Some(MediaError::Io(_))));
        assert_eq!(seen.lock().pictures, 3);
    }

    /// Room for so many more bytes.
    #[derive(Clone, Default)]
    struct Narrow(Shared, Arc<Mutex<usize>>);

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut room = self.1.lock().unwrap();
            let left = room.checked_sub(bytes.len().max(1)).ok_or(ErrorKind::WouldBlock)?;
            *room = left;
            self.0.write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_byte_stream_that_lacks_a_frame_goes_on_with_a_key_frame() {
        let pipe = Narrow::default();
        let mut viewer =
            Viewer::new(Box::new(Shades), Some(Output::H264(Box::new(pipe.clone()))), None, 30.0);
        let room = |bytes: usize| *pipe.1.lock().unwrap() = bytes;
        room(1);
        assert!(viewer.frame(at(0), 1, &key(0, 10)));
        // Without room no key frame is of use.
        assert!(viewer.frame(at(1), 1, &frame(1, 11)) && viewer.frame(at(2), 1, &frame(2, 12)));
        room(10);
        assert!(!viewer.frame(at(3), 1, &frame(3, 13)));
        assert!(viewer.frame(at(4), 1, &key(4, 14)) && viewer.frame(at(5), 1, &frame(5, 15)));
        viewer.left(1);
        assert_eq!(*pipe.0.0.lock().unwrap(), [10, 14, 15]);
        let seen = viewer.seen();
        assert!(seen.lock().error.is_none() && seen.lock().pictures == 6 && seen.lock().left_out == 3);
    }

    #[test]
    fn pictures_that_a_pipe_has_no_room_for_are_left_out_whole() {
        let pipe = Narrow::default();
        let output = Output::Y4m(Y4mWriter::new(Box::new(pipe.clone()), 30.0));
        let mut viewer = Viewer::new(Box::new(Shades), Some(output), None, 30.0);
        let size = 32 * 16 * 3 / 2 + 6;
        for (number, room) in [(0, 2 * size), (1, size - 1), (2, size), (3, 0), (4, size)] {
            *pipe.1.lock().unwrap() = room;
            assert!(viewer.frame(at(number), 1, &key(number as u32, number as u8)));
        }
        assert_eq!(shades(&pipe.0.0.lock().unwrap()), [0, 2, 4]);
        assert_eq!(viewer.seen().lock().left_out, 2);
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
        (0..3).for_each(|number| assert!(viewer.frame(at(number.into()), 1, &key(number, number as u8))));
        assert_eq!(shades(&file.0.lock().unwrap()), [0, 1, 2]);
        // Waits for the thread that compares.
        viewer.left(1);
        let seen = viewer.seen();
        assert!(
            matches!(seen.lock().reference_error, Some(MediaError::File(_))) && seen.lock().error.is_none()
        );
    }

    /// Timestamps wrap after 13 hours and a quarter.
    #[test]
    fn pictures_have_their_originals_where_timestamps_wrap() {
        let reference = Reference::Pictures(Box::new(TestPattern::new(32, 16, 30.0).unwrap()));
        let mut viewer = Viewer::new(Box::new(Shades), None, Some(reference), 30.0);
        let seen = viewer.seen();
        let wraps = u32::MAX / 3_000;
        (0..3).for_each(|number| assert!(viewer.frame(at(number.into()), 1, &key(wraps + number, 90))));
        viewer.left(1);
        let numbers: Vec<u64> = seen.lock().places.iter().map(|place| place.number).collect();
        assert_eq!(numbers, [0, 1, 2].map(|number| u64::from(wraps) + number));
    }

    #[test]
    fn what_stands_on_the_screen_is_compared_at_each_place() {
        let mut pattern = TestPattern::new(32, 16, 30.0).unwrap();
        let reference = Reference::Pictures(Box::new(TestPattern::new(32, 16, 30.0).unwrap()));
        let mut viewer = Viewer::new(Box::new(Shades), None, Some(reference), 30.0);
        let seen = viewer.seen();
        viewer.frame(at(7), 1, &key(7, 90));
        viewer.frame(at(10), 1, &frame(10, 91));
        viewer.left(1);
        let shade = |shade: u8| {
            let mut picture = Picture::new(32, 16).unwrap();
            picture.planes_mut()[0].fill(shade);
            picture
        };
        let mut ssim = |number: u64, picture: &Picture| {
            quality::ssim(pattern.picture(number).unwrap(), picture).unwrap().y
        };
        let expected = [(7, 90), (8, 90), (9, 90), (10, 91)].map(|(number, stood)| {
            let shown = (![8, 9].contains(&number)).then(|| at(number as i64));
            Place { number, shown, ssim: ssim(number, &shade(stood)) }
        });
        assert_eq!(seen.lock().places, expected);
        let mean = |places: &[usize]| {
            places.iter().map(|&place| expected[place].ssim).sum::<f64>() / places.len() as f64
        };
        assert!((seen.lock().ssim().unwrap() - mean(&[0, 3])).abs() < 1e-12);
        assert!((seen.lock().screen_ssim().unwrap() - mean(&[0, 1, 2, 3])).abs() < 1e-12);
        // There was no whole second.
        assert!(seen.lock().worst.is_none());
        // Another stream: nothing stands before its first picture.
        (0..62).for_each(|number| assert!(viewer.frame(at(number), 2, &key(number as u32, 90))));
        drop(viewer);
        let seen = seen.lock();
        assert_eq!((seen.places.len(), seen.places[4].number), (66, 0));
        let worst = seen.worst.as_ref().unwrap();
        let of = |from: usize| seen.places[4 + from..][..30].iter().map(|place| place.ssim);
        let seconds = [31, 32].map(|from| of(from).sum::<f64>() / 30.0);
        assert!((worst.second - seconds[0].min(seconds[1])).abs() < 1e-9 && worst.stood == worst.number);
        let from = if seconds[0] <= seconds[1] { 31 } else { 32 };
        assert_eq!(worst.ssim, of(from).fold(1.0, f64::min));
        assert_eq!(worst.source, *pattern.picture(worst.number).unwrap());
    }

    #[test]
    fn a_timestamp_that_lies_costs_ten_seconds_of_comparisons_at_most() {
        let mut viewer = Viewer::new(Box::new(Shades), None, Some(Reference::TestPattern(None)), 30.0);
        let seen = viewer.seen();
        viewer.frame(at(0), 1, &key(0, 90));
        viewer.frame(at(1), 1, &frame(1_000_000, 90));
        drop(viewer);
        assert_eq!(seen.lock().places.len(), 301);
    }
}
