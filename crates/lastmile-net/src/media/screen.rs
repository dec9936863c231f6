//! The screen at each place in time, beside the source's picture of that time: quality over time, and the worst moment.
//!
//! A place is the interval of one of the source's pictures. A picture stands until the next one is shown, so a place without a picture of its
//! own is compared with the one that stands. This work has a thread of its own: after a freeze there is much of it at once.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use lastmile::time::Time;

use super::seen::{Place, SharedSeen, Still};
use super::{MediaError, Picture, Pictures, TestPattern, quality, scaled};

/// Places that are kept: twenty minutes at 30 in a second. Later ones count in the means alone.
const MAX_PLACES: usize = 36_000;
/// Longest time that a picture stands and is compared, seconds: a sender's clock may be wrong, or lie.
const MAX_STOOD: f64 = 10.0;
/// Seconds at the beginning that are not looked at for the worst: the rate is still being found.
const OPENING: f64 = 1.0;
/// Pictures that wait for the comparison; then the viewer waits.
const MAX_WAITING: usize = 32;

/// Originals of a viewer's pictures.
pub enum Reference {
    /// These.
    Pictures(Box<dyn Pictures>),
    /// The test pattern in the size of the pictures that come; nothing before the first.
    TestPattern(Option<TestPattern>),
}

/// A picture that was shown.
pub(super) struct Shown {
    pub(super) at: Time,
    /// Number of the source's picture.
    pub(super) number: u64,
    pub(super) picture: Picture,
}

/// The thread that compares, while there is a reference.
pub(super) struct Comparing {
    pictures: Option<SyncSender<Shown>>,
    thread: Option<JoinHandle<Option<Screen>>>,
}

impl Comparing {
    pub(super) fn new(reference: Reference, frame_rate: f64, seen: SharedSeen) -> Comparing {
        let (seen_too, (pictures, shown)) = (seen.clone(), sync_channel(MAX_WAITING));
        let screen =
            Screen { reference, frame_rate, seen, stood: None, second: VecDeque::new(), lowest: None };
        let thread = std::thread::Builder::new().name("lastmile-quality".into());
        let thread = thread.spawn(move || screen.compare(&shown)).map_err(|error| {
            seen_too.lock().reference_error.get_or_insert(error.into());
        });
        Comparing { pictures: Some(pictures), thread: thread.ok() }
    }

    pub(super) fn show(&self, shown: Shown) {
        if let Some(pictures) = &self.pictures {
            // A thread that has ended had an error, which it told.
            let _ = pictures.send(shown);
        }
    }

    /// Waits until all pictures are compared; another stream may follow.
    pub(super) fn finish(&mut self) {
        self.pictures = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Some(Screen { reference, frame_rate, seen, .. }))) => {
                *self = Comparing::new(reference, frame_rate, seen);
            }
            // It ended with an error, which it told.
            Some(Ok(None)) | None => {}
            Some(Err(panicked)) => std::panic::resume_unwind(panicked),
        }
    }
}

impl Drop for Comparing {
    fn drop(&mut self) {
        self.pictures = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Screen {
    reference: Reference,
    frame_rate: f64,
    seen: SharedSeen,
    /// The picture that stands, with its number.
    stood: Option<(u64, Picture)>,
    /// SSIM of the places of the last second.
    second: VecDeque<f64>,
    /// The lowest of that second.
    lowest: Option<Still>,
}

impl Screen {
    /// Compares until no more pictures come; nothing after an error.
    fn compare(mut self, shown: &Receiver<Shown>) -> Option<Screen> {
        while let Ok(shown) = shown.recv() {
            if let Err(error) = self.show(shown) {
                self.seen.lock().reference_error.get_or_insert(error);
                return None;
            }
        }
        Some(self)
    }

    fn show(&mut self, Shown { at, number, picture }: Shown) -> Result<(), MediaError> {
        if let Some((before, stands)) = self.stood.take() {
            let most = before + (MAX_STOOD * self.frame_rate) as u64;
            for place in before + 1..number.min(most) {
                self.look(place, None, (before, &stands))?;
            }
        }
        self.look(number, Some(at), (number, &picture))?;
        self.stood = Some((number, picture));
        Ok(())
    }

    /// Compares a place with what stands there.
    fn look(
        &mut self,
        number: u64,
        shown: Option<Time>,
        (stood, picture): (u64, &Picture),
    ) -> Result<(), MediaError> {
        let (width, height) = picture.size();
        let original = match &mut self.reference {
            Reference::Pictures(pictures) => pictures.picture(number)?,
            Reference::TestPattern(pattern) => {
                if pattern.as_ref().is_none_or(|pattern| pattern.size() != (width, height)) {
                    *pattern = Some(TestPattern::new(width, height, self.frame_rate)?);
                }
                let Some(pattern) = pattern else { return Ok(()) };
                pattern.picture(number)?
            }
        };
        let resized =
            (original.size() != picture.size()).then(|| scaled(original, width, height)).transpose()?;
        let original = resized.as_ref().unwrap_or(original);
        let Some((error, ssim)) = quality::luma(original, picture) else { return Ok(()) };
        let second = self.frame_rate.round().max(1.0) as usize;
        self.second.push_back(ssim);
        if self.second.len() > second {
            self.second.pop_front();
        }
        let has_left = |still: &Still| still.number + second as u64 <= number;
        let still = |second| {
            let (screen, source) = (picture.clone(), original.clone());
            Some(Still { number, stood, ssim, second, screen, source })
        };
        if self.lowest.as_ref().is_none_or(|lowest| has_left(lowest) || ssim < lowest.ssim) {
            self.lowest = still(1.0);
        }
        let mean = self.second.iter().sum::<f64>() / self.second.len() as f64;
        // The whole second is after the opening.
        let opening = (OPENING * self.frame_rate) as u64 + second as u64;
        let is_second = self.second.len() == second && number >= opening;
        let mut seen = self.seen.lock();
        seen.count(Place { number, shown, ssim }, error, MAX_PLACES);
        if seen.watch == Some(number) {
            seen.watched = still(ssim);
        }
        if is_second && seen.worst.as_ref().is_none_or(|worst| mean < worst.second) {
            seen.worst = self.lowest.clone().map(|still| Still { second: mean, ..still });
        }
        Ok(())
    }
}
