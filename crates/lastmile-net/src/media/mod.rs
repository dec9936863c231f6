//! Real video: pictures, their sources and files, the codec, and the quality of what was decoded.
//!
//! A codec is an [`Encoder`] and a [`Decoder`]: byte streams of H.264, an access unit a picture. [`h264`] has both by OpenH264.

pub mod h264;
mod ladder;
mod live;
mod pattern;
mod pipe;
pub mod quality;
mod quantizer;
mod scale;
mod screen;
mod seen;
mod source;
mod still;
mod viewer;
mod y4m;

pub use ladder::Ladder;
pub use live::{Live, pictures};
pub use pattern::TestPattern;
pub use pipe::Pipe;
pub use scale::scaled;
pub use screen::Reference;
pub use seen::{Place, Seen, SharedSeen, Still};
pub use source::{Coding, SharedCoding, SourceError, VideoSource};
pub use still::png;
pub use viewer::{Output, Viewer};
pub use y4m::{Y4mReader, Y4mWriter, trim};

use std::io;

use lastmile::units::Rate;

/// Largest side of a picture.
pub const MAX_SIDE: usize = 3_840;
/// Most pixels of a picture: those of 3840 by 2160.
pub const MAX_PIXELS: usize = 3_840 * 2_160;
/// Smallest side: a macroblock.
pub const MIN_SIDE: usize = 16;

/// Why pictures cannot be had, coded or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// Its size cannot be coded.
    #[error(
        "a picture of {width}x{height} cannot be sent: both sides must be even, and {MIN_SIDE}x{MIN_SIDE} to 3840x2160"
    )]
    Size {
        /// Pixels across.
        width: usize,
        /// Pixels down.
        height: usize,
    },
    /// A y4m file is not one, or is damaged.
    #[error("the y4m file cannot be read: {0}")]
    File(String),
    /// The program that makes the pictures has ended.
    #[error("it has no more pictures")]
    Ended,
    /// The file system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The codec refuses.
    #[error("the codec refuses: {0}")]
    Codec(String),
}

/// A picture with 8 bits a sample and a quarter of the colour (I420): the planes Y, U and V without gaps.
///
/// ```
/// use lastmile_net::media::Picture;
/// let picture = Picture::new(320, 240)?;
/// assert_eq!(picture.planes().map(<[u8]>::len), [76_800, 19_200, 19_200]);
/// assert!(Picture::new(321, 240).is_err());
/// # Ok::<(), lastmile_net::media::MediaError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    width: usize,
    height: usize,
    samples: Vec<u8>,
}

impl Picture {
    /// A black one.
    ///
    /// # Errors
    /// The size is odd, too small or too large.
    pub fn new(width: usize, height: usize) -> Result<Picture, MediaError> {
        let side = |side: usize| side.is_multiple_of(2) && (MIN_SIDE..=MAX_SIDE).contains(&side);
        if !side(width) || !side(height) || width * height > MAX_PIXELS {
            return Err(MediaError::Size { width, height });
        }
        let mut samples = vec![128; width * height * 3 / 2];
        samples[..width * height].fill(16);
        Ok(Picture { width, height, samples })
    }

    /// Pixels across and down.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// Sizes of the planes.
    pub fn plane_sizes(&self) -> [(usize, usize); 3] {
        let colour = (self.width / 2, self.height / 2);
        [(self.width, self.height), colour, colour]
    }

    /// Y, U and V.
    pub fn planes(&self) -> [&[u8]; 3] {
        let (y, colour) = self.samples.split_at(self.width * self.height);
        let (u, v) = colour.split_at(colour.len() / 2);
        [y, u, v]
    }

    /// The same, to be written.
    pub fn planes_mut(&mut self) -> [&mut [u8]; 3] {
        let (y, colour) = self.samples.split_at_mut(self.width * self.height);
        let (u, v) = colour.split_at_mut(colour.len() / 2);
        [y, u, v]
    }
}

/// A source of pictures.
pub trait Pictures: Send {
    /// Pixels across and down.
    fn size(&self) -> (usize, usize);

    /// Pictures in a second.
    fn frame_rate(&self) -> f64;

    /// The picture of that number, from 0 on; numbers grow by one. Those of a file begin anew after the last, and of a live source the newest counts.
    ///
    /// # Errors
    /// The file is damaged there, or cannot be read. [`MediaError::Ended`] where a live source has no more.
    fn picture(&mut self, number: u64) -> Result<&Picture, MediaError>;

    /// Pictures that came too soon, and were left out.
    fn left_out(&self) -> u64 {
        0
    }

    /// True while a live source has nothing newer than the last picture.
    fn stands_still(&self) -> bool {
        false
    }
}

/// Pictures to access units.
pub trait Encoder: Send {
    /// The rate of the byte stream from the next picture on.
    fn set_rate(&mut self, rate: Rate);

    /// Slices have that many bytes at most from the next key frame on, where the codec can do it.
    fn set_slice_size(&mut self, bytes: usize);

    /// The next picture is to be one that needs none before it.
    fn key_frame(&mut self);

    /// The access unit of a picture; nothing where the codec leaves it out to keep its rate.
    ///
    /// # Errors
    /// The codec refuses the picture.
    fn encode(&mut self, picture: &Picture) -> Result<Vec<u8>, MediaError>;
}

/// Access units to pictures.
pub trait Decoder: Send {
    /// Decodes an access unit, which may be damaged or garbage; nothing where no picture comes of it.
    ///
    /// # Errors
    /// It cannot be decoded.
    fn decode(&mut self, access_unit: &[u8]) -> Result<Option<Picture>, MediaError>;
}
