//! A viewer's counts, and the quality of what stood on the screen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lastmile::time::Time;

use super::{MediaError, Picture};

/// The screen at one place in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Number of the source's picture of that time.
    pub number: u64,
    /// When its picture was shown; `None` where an earlier one stood.
    pub shown: Option<Time>,
    /// SSIM of Y of the picture that stood, against the source's.
    pub ssim: f64,
}

/// A picture on the screen, beside the source's.
#[derive(Clone, Debug)]
pub struct Still {
    /// Number of the source's picture.
    pub number: u64,
    /// Number of the picture that stood.
    pub stood: u64,
    /// SSIM of Y of that moment.
    pub ssim: f64,
    /// Its mean over the worst second, or of the moment again.
    pub second: f64,
    /// The picture that stood.
    pub screen: Picture,
    /// The source's.
    pub source: Picture,
}

/// Counts and quality of the pictures that a viewer saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// Pictures decoded and shown.
    pub pictures: u64,
    /// Frames of which no picture could be decoded.
    pub undecodable: u64,
    /// Pictures, frames or times that a [`Pipe`](super::Pipe) had no room for.
    pub left_out: u64,
    /// Size of the last picture.
    pub size: Option<(usize, usize)>,
    /// Time that decoding took.
    pub decoding: Duration,
    /// The screen at each place in time, where there is a reference: the first twenty minutes.
    pub places: Vec<Place>,
    /// A picture of the second with the least SSIM, after the first one.
    pub worst: Option<Still>,
    /// Number of the source's picture at another video's worst moment.
    pub watch: Option<u64>,
    /// The screen at that time.
    pub watched: Option<Still>,
    /// Pictures compared, the sum of their mean squared errors of Y, and of their SSIM of Y.
    compared: (u64, f64, f64),
    /// All places, and the sum of SSIM there.
    stood: (u64, f64),
    /// Pictures in a second.
    pub frame_rate: f64,
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

    /// Mean SSIM of Y of what stood on the screen, at all places.
    pub fn screen_ssim(&self) -> Option<f64> {
        let (places, similarity) = self.stood;
        (places > 0).then(|| similarity / places as f64)
    }

    /// Counts a place with the mean squared error there.
    pub(super) fn count(&mut self, place: Place, error: f64, most: usize) {
        self.stood = (self.stood.0 + 1, self.stood.1 + place.ssim);
        if place.shown.is_some() {
            let (pictures, errors, similarity) = self.compared;
            self.compared = (pictures + 1, errors + error, similarity + place.ssim);
        }
        if self.places.len() < most {
            self.places.push(place);
        }
    }
}

/// Counts and quality of a viewer's pictures, for the program that drives its receiver.
#[derive(Clone, Debug, Default)]
pub struct SharedSeen(Arc<Mutex<Seen>>);

impl SharedSeen {
    pub(super) fn new(frame_rate: f64) -> SharedSeen {
        SharedSeen(Arc::new(Mutex::new(Seen { frame_rate, ..Seen::default() })))
    }

    /// A look at it; the viewer waits meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
