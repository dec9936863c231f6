//! Pictures that another program makes as time goes, such as a camera's: the newest counts.
//!
//! A thread reads them, so that a program which is slower or faster than the stream holds nothing up. A picture that is asked for before
//! the next one came is the last one again; one that came before another was asked for is left out.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::{MediaError, Picture, Pictures, Y4mReader};

/// Pictures of an open file, over and over, or of a pipe or a device, as they come.
///
/// # Errors
/// It is not y4m, or has pictures that cannot be sent.
pub fn pictures(file: File) -> Result<Box<dyn Pictures>, MediaError> {
    let is_file = file.metadata()?.is_file();
    let reader = Y4mReader::new(BufReader::new(file))?;
    Ok(if is_file { Box::new(reader) } else { Box::new(Live::new(reader)?) })
}

/// Pictures as they come.
#[derive(Debug)]
pub struct Live {
    newest: Arc<Newest>,
    picture: Picture,
    frame_rate: f64,
}

/// The place in which the thread leaves the newest picture.
#[derive(Debug, Default)]
struct Newest {
    place: Mutex<Place>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct Place {
    picture: Option<Picture>,
    left_out: u64,
    ended: bool,
    /// The cause of the end, unless the program closed its pipe.
    error: Option<MediaError>,
}

impl Newest {
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    /// Waits for the first picture of a y4m stream.
    ///
    /// # Errors
    /// It ends before that.
    pub fn new<R: BufRead + Send + 'static>(mut reader: Y4mReader<R>) -> Result<Live, MediaError> {
        let frame_rate = reader.frame_rate;
        let newest = Arc::new(Newest::default());
        let shared = Arc::downgrade(&newest);
        thread::Builder::new().name("lastmile-pictures".to_owned()).spawn(move || {
            loop {
                let read = reader.read();
                // The stream has dropped its source.
                let Some(newest) = shared.upgrade() else { return };
                let mut place = newest.place();
                match read {
                    Ok(true) => match &mut place.picture {
                        Some(picture) => {
                            std::mem::swap(picture, &mut reader.picture);
                            place.left_out += 1;
                        }
                        none => *none = Some(reader.picture.clone()),
                    },
                    ended => (place.ended, place.error) = (true, ended.err()),
                }
                newest.came.notify_all();
                if place.ended {
                    return;
                }
            }
        })?;
        let mut place = newest.place();
        while place.picture.is_none() && !place.ended {
            place = newest.came.wait(place).unwrap_or_else(PoisonError::into_inner);
        }
        let none = || MediaError::File("it has no picture".to_owned());
        let picture = place.picture.take().ok_or_else(|| place.error.take().unwrap_or_else(none))?;
        drop(place);
        Ok(Live { newest, picture, frame_rate })
    }
}

impl Pictures for Live {
    fn size(&self) -> (usize, usize) {
        self.picture.size()
    }

    fn frame_rate(&self) -> f64 {
        self.frame_rate
    }

    fn left_out(&self) -> u64 {
        self.newest.place().left_out
    }

    fn stands_still(&self) -> bool {
        let place = self.newest.place();
        place.picture.is_none() && !place.ended
    }

    fn picture(&mut self, number: u64) -> Result<&Picture, MediaError> {
        let mut place = self.newest.place();
        match place.picture.take() {
            Some(picture) => self.picture = picture,
            // The first one was there.
            None if place.ended && number > 0 => return Err(place.error.take().unwrap_or(MediaError::Ended)),
            None => {}
        }
        Ok(&self.picture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::{TestPattern, Y4mWriter};
    use std::io::{Read, pipe};
    use std::time::Duration;

    fn originals(count: u64) -> (Vec<u8>, Vec<Picture>) {
        let mut pattern = TestPattern::new(32, 16, 30.0).unwrap();
        let pictures: Vec<_> = (0..count).map(|number| pattern.picture(number).unwrap().clone()).collect();
        let mut bytes = Vec::new();
        let mut writer = Y4mWriter::new(&mut bytes, 30.0);
        pictures.iter().for_each(|picture| writer.write(picture).unwrap());
        (bytes, pictures)
    }

    fn live(input: impl Read + Send + 'static) -> Result<Live, MediaError> {
        Live::new(Y4mReader::new(BufReader::new(input))?)
    }

    /// Asks until something else than this picture comes.
    fn after(live: &mut Live, before: &Picture) -> Result<Picture, MediaError> {
        for _ in 0..2_000 {
            match live.picture(1) {
                Ok(picture) if picture == before => thread::sleep(Duration::from_millis(1)),
                other => return other.cloned(),
            }
        }
        panic!("nothing came");
    }

    #[test]
    fn the_last_picture_stands_until_the_next_one_comes_and_the_stream_ends_with_its_program() {
        use std::io::Write;
        let (bytes, pictures) = originals(2);
        let second = bytes.len() - (bytes.len() - bytes.iter().position(|byte| *byte == b'\n').unwrap()) / 2;
        let (reader, mut writer) = pipe().unwrap();
        writer.write_all(&bytes[..second]).unwrap();
        let mut live = live(reader).unwrap();
        assert_eq!((live.size(), live.frame_rate()), ((32, 16), 30.0));
        (0..5).for_each(|number| assert_eq!(live.picture(number).unwrap(), &pictures[0]));
        assert!(live.stands_still());
        writer.write_all(&bytes[second..]).unwrap();
        assert_eq!(after(&mut live, &pictures[0]).unwrap(), pictures[1]);
        assert_eq!(live.left_out(), 0);
        drop(writer);
        assert!(matches!(after(&mut live, &pictures[1]), Err(MediaError::Ended)));
    }

    #[test]
    fn the_newest_picture_is_taken_and_those_before_are_counted() {
        let (bytes, pictures) = originals(9);
        let mut live = live(std::io::Cursor::new(bytes)).unwrap();
        while !live.newest.place().ended {
            thread::sleep(Duration::from_millis(1));
        }
        let last = live.picture(0).unwrap().clone();
        // The first may have been taken before the others came.
        assert!(last == pictures[8] && (7..=8).contains(&live.left_out()), "{}", live.left_out());
    }

    #[test]
    fn a_picture_that_breaks_off_is_said_and_none_is_said_at_once() {
        let (bytes, pictures) = originals(1);
        let mut cut = live(std::io::Cursor::new([&bytes[..], b"FRAME\n12"].concat())).unwrap();
        assert_eq!(cut.picture(0).unwrap(), &pictures[0]);
        let said = after(&mut cut, &pictures[0]).unwrap_err().to_string();
        assert!(said.contains("ends within picture 1"), "{said}");
        let header = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let said = live(std::io::Cursor::new(bytes[..header].to_vec())).unwrap_err().to_string();
        assert!(said.contains("it has no picture"), "{said}");
    }
}
