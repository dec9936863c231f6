//! Files and streams of uncompressed pictures (YUV4MPEG2), read and written.
//!
//! The package `y4m` overflows on sizes that no file has, and cannot tell a file that is cut within a picture from one that ends.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::scale::sized;
use super::{MediaError, Picture, Pictures};

const MAGIC: &str = "YUV4MPEG2";
const FRAME: &str = "FRAME";
/// Longest line of a header.
const MAX_LINE: u64 = 1_024;

/// The pictures of a file, over and over.
#[derive(Debug)]
pub struct Y4mReader<R = BufReader<File>> {
    input: R,
    /// The picture that was read last.
    pub(super) picture: Picture,
    pub(super) frame_rate: f64,
    /// Bytes before the first picture.
    begin: u64,
    /// The number of the picture that is read next, and how many there are once that is known.
    next: u64,
    count: Option<u64>,
}

impl Y4mReader {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be opened, is no y4m file, or has pictures that cannot be sent.
    pub fn open(file: &Path) -> Result<Y4mReader, MediaError> {
        Y4mReader::new(BufReader::new(File::open(file)?))
    }
}

/// Cuts a file that [`Y4mWriter`] could not write to its end behind its last whole picture. A pipe or a device has nothing to cut.
///
/// # Errors
/// It is no y4m file, or cannot be changed.
pub fn trim(path: &Path) -> Result<(), MediaError> {
    if !path.metadata()?.is_file() {
        return Ok(());
    }
    let Y4mReader { picture, begin, .. } = Y4mReader::open(path)?;
    let file = File::options().write(true).open(path)?;
    let size = (FRAME.len() + 1 + picture.samples.len()) as u64;
    let len = file.metadata()?.len();
    Ok(file.set_len(len - (len - begin) % size)?)
}

fn bad(why: impl Into<String>) -> MediaError {
    MediaError::File(why.into())
}

/// A line without its newline, and its length with it; `None` at the end of the file.
fn line(input: &mut impl BufRead) -> Result<Option<(String, u64)>, MediaError> {
    let mut bytes = Vec::new();
    if input.take(MAX_LINE).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.pop() != Some(b'\n') {
        return Err(bad("a header has no end"));
    }
    Ok(Some((String::from_utf8_lossy(&bytes).into_owned(), bytes.len() as u64 + 1)))
}

impl<R: BufRead> Y4mReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// It is no y4m file, or has pictures that cannot be sent.
    pub fn new(mut input: R) -> Result<Y4mReader<R>, MediaError> {
        let (header, begin) = line(&mut input)?.ok_or_else(|| bad("it is empty"))?;
        let mut words = header.split(' ');
        if words.next() != Some(MAGIC) {
            return Err(bad(format!("it does not begin with {MAGIC}")));
        }
        let (mut width, mut height, mut frame_rate) = (0, 0, 25.0);
        for word in words.filter(|word| !word.is_empty()) {
            let (tag, value) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
            let wrong = || bad(format!("its header has {word:?}"));
            match tag {
                "W" => width = value.parse().map_err(|_| wrong())?,
                "H" => height = value.parse().map_err(|_| wrong())?,
                "F" => {
                    let ratio =
                        value.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                    let (over, under): (f64, f64) = ratio.ok_or_else(wrong)?;
                    frame_rate = over / under;
                    if !(0.1..=1_000.0).contains(&frame_rate) {
                        return Err(wrong());
                    }
                }
                "C" if !matches!(value, "420" | "420jpeg" | "420paldv" | "420mpeg2") => {
                    return Err(bad(format!("its pictures are {value}: only 8-bit 4:2:0 can be sent")));
                }
                "I" if !matches!(value, "p" | "?") => return Err(bad("its pictures are interlaced")),
                _ => {}
            }
        }
        let picture = Picture::new(width, height)?;
        Ok(Y4mReader { input, picture, frame_rate, begin, next: 0, count: None })
    }

    /// Reads one more picture. False at the end of the file.
    pub(super) fn read(&mut self) -> Result<bool, MediaError> {
        let Some((header, _)) = line(&mut self.input)? else { return Ok(false) };
        if header != FRAME && !header.starts_with("FRAME ") {
            return Err(bad(format!("picture {} does not begin with {FRAME}", self.next)));
        }
        let read = self.input.read_exact(&mut self.picture.samples);
        read.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => bad(format!("it ends within picture {}", self.next)),
            _ => error.into(),
        })?;
        self.next += 1;
        Ok(true)
    }
}

impl<R: BufRead + Seek + Send> Pictures for Y4mReader<R> {
    fn size(&self) -> (usize, usize) {
        self.picture.size()
    }

    fn frame_rate(&self) -> f64 {
        self.frame_rate
    }

    fn picture(&mut self, number: u64) -> Result<&Picture, MediaError> {
        loop {
            let wanted = self.count.map_or(number, |count| number % count);
            if wanted + 1 == self.next {
                return Ok(&self.picture);
            }
            if wanted < self.next {
                self.input.seek(SeekFrom::Start(self.begin))?;
                self.next = 0;
            }
            if !self.read()? {
                if self.next == 0 {
                    return Err(bad("it has no picture"));
                }
                self.count = Some(self.next);
            }
        }
    }
}

/// Writes pictures of one size to a file.
#[derive(Debug)]
pub struct Y4mWriter<W> {
    out: W,
    frame_rate: (u32, u32),
    size: Option<(usize, usize)>,
    /// A picture with its header, which is written at once: whole or not at all.
    bytes: Vec<u8>,
}

impl<W: Write> Y4mWriter<W> {
    /// A file with so many pictures in a second.
    pub fn new(out: W, frame_rate: f64) -> Y4mWriter<W> {
        Y4mWriter {
            out,
            frame_rate: ((frame_rate * 1_000.0).round() as u32, 1_000),
            size: None,
            bytes: Vec::new(),
        }
    }

    /// Writes a picture; the first one decides the size, and others are scaled to it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, picture: &Picture) -> Result<(), MediaError> {
        let picture = sized(picture, self.size.unwrap_or(picture.size()))?;
        if self.size.is_none() {
            let (width, height) = picture.size();
            let (over, under) = self.frame_rate;
            let header = format!("{MAGIC} W{width} H{height} F{over}:{under} Ip A1:1 C420mpeg2\n");
            self.out.write_all(header.as_bytes())?;
            self.size = Some((width, height));
        }
        self.bytes.clear();
        self.bytes.extend(FRAME.bytes().chain(*b"\n"));
        self.bytes.extend(&picture.samples);
        Ok(self.out.write_all(&self.bytes)?)
    }

    /// Hands what is buffered to the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&mut self) -> Result<(), MediaError> {
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::TestPattern;
    use std::io::Cursor;

    fn file(pictures: u64) -> Vec<u8> {
        let mut writer = Y4mWriter::new(Vec::new(), 29.97);
        let mut pattern = TestPattern::new(32, 16, 30.0).unwrap();
        (0..pictures).for_each(|number| writer.write(pattern.picture(number).unwrap()).unwrap());
        writer.out
    }

    fn said(bytes: &[u8], number: u64) -> String {
        let opened = Y4mReader::new(Cursor::new(bytes.to_vec()));
        let read = opened.and_then(|mut reader| reader.picture(number).cloned());
        read.unwrap_err().to_string()
    }

    #[test]
    fn pictures_are_read_as_they_were_written_over_and_over() {
        let mut reader = Y4mReader::new(Cursor::new(file(3))).unwrap();
        assert_eq!((reader.size(), reader.frame_rate()), ((32, 16), 29.97));
        let mut pattern = TestPattern::new(32, 16, 30.0).unwrap();
        for number in [0, 1, 1, 2, 0, 4, 8, 300] {
            assert_eq!(reader.picture(number).unwrap(), pattern.picture(number % 3).unwrap(), "{number}");
        }
    }

    /// A sender that was started anew has pictures of another size.
    #[test]
    fn later_pictures_are_written_in_the_size_of_the_first() {
        let mut writer = Y4mWriter::new(Vec::new(), 30.0);
        for (width, height) in [(32, 16), (64, 32), (32, 16)] {
            let mut pattern = TestPattern::new(width, height, 30.0).unwrap();
            writer.write(pattern.picture(0).unwrap()).unwrap();
        }
        let mut reader = Y4mReader::new(Cursor::new(writer.out)).unwrap();
        let [first, scaled, third] = [0, 1, 2].map(|number| reader.picture(number).unwrap().clone());
        assert!(first == third && first != scaled && scaled.size() == (32, 16));
    }

    #[test]
    fn files_that_cannot_be_sent_say_why() {
        let whole = file(2);
        assert!(said(b"", 0).contains("empty"));
        assert!(said(b"RIFF", 0).contains("no end"));
        assert!(said(b"RIFF AVI\n", 0).contains("does not begin with YUV4MPEG2"));
        assert!(said(b"YUV4MPEG2 W320 H240\n", 0).contains("no picture"));
        assert!(said(b"YUV4MPEG2 W321 H240\n", 0).contains("321x240"));
        assert!(said(b"YUV4MPEG2 H240\n", 0).contains("0x240"));
        assert!(said(b"YUV4MPEG2 W4294967296 H4294967296\n", 0).contains("must be even"));
        assert!(said(b"YUV4MPEG2 W320 Hx\n", 0).contains("\"Hx\""));
        assert!(said(b"YUV4MPEG2 W320 H240 F30:0\n", 0).contains("F30:0"));
        assert!(said(b"YUV4MPEG2 W320 H240 C444\n", 0).contains("4:2:0"));
        assert!(said(b"YUV4MPEG2 W320 H240 It\n", 0).contains("interlaced"));
        assert!(said(&whole[..whole.len() - 1], 1).contains("ends within picture 1"));
        assert!(said(&[&whole[..], b"XRAME\n"].concat(), 2).contains("picture 2 does not begin with FRAME"));
    }

    #[test]
    fn a_file_that_was_cut_is_readable_again() {
        let path = std::env::temp_dir().join(format!("lastmile-trim-{}.y4m", std::process::id()));
        let whole = file(3);
        for cut in [1, 300, 768 + 6, 768 + 7] {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            trim(&path).unwrap();
            let pictures = 3 - cut.div_ceil(768 + 6) as u64;
            assert_eq!(std::fs::read(&path).unwrap(), file(pictures), "{cut}");
        }
        std::fs::write(&path, &whole[..5]).unwrap();
        assert!(trim(&path).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
