//! Sources of a stream's frames, without content: one file per synthetic source, and the one interface by which a sender has
//! them.
//!
//! A [`FrameSource`] is asked for a frame whenever one is due, and given a target; it says when the next one is due.
//! [`SOURCES`] lists the sources. `docs/streams.md` has the behaviour of each, and its paper's words.

use core::fmt::Debug;

use crate::options::{self, Choice, ChoiceError, Entry, Given, Opt, OptionError};
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

mod limits;
mod steady;

pub use trace::{MAX_FRAMES, TraceError, read_sizes};

use limits::Limits;
use steady::Steady;

/// A source of frames.
///
/// A new target counts from the next frame on, and at the latest 100 ms after it was given, at 20 frames in a second or more.
///
/// ```
/// use lastmile::{endpoint::stream::source::{self, Setting}, time::{Span, Time}, units::{Bytes, Rate}};
/// let mut source = source::build(&"cbr".parse()?, &Setting::of(50.0, Bytes(1200)))?;
/// let frame = source.frame(Time::ZERO, Rate::ip(1_000_000), Bytes::ZERO);
/// assert_eq!((frame.size, frame.next), (Bytes(2500), Span::from_millis(20)));
/// # Ok::<(), lastmile::options::ChoiceError>(())
/// ```
pub trait FrameSource: Debug + Send {
    /// Makes the frame that is due. `target` is the rate of IP packets that the source should make. `waiting` bytes of earlier frames
    /// have not left yet.
    fn frame(&mut self, now: Time, target: Rate, waiting: Bytes) -> Frame;

    /// The least and the most that it can make.
    fn range(&self) -> (Rate, Rate);

    /// The next frame is to be one that needs none before it; for a source that makes such frames.
    fn key_frame(&mut self) {}

    /// The rate that it falls to for reasons of its own, where it does: that of a screen that stands still, of audio alone.
    fn idle(&self) -> Option<Rate> {
        None
    }

    /// The rates that it has, from the lowest on; none where it makes any rate.
    fn layers(&self) -> &[Rate] {
        &[]
    }

    /// True if it makes as much as can leave, so that packets wait on purpose.
    fn is_on_demand(&self) -> bool {
        false
    }

    /// True if frames have content, and refer to frames before: one that was made is sent. Of such a source no frame is asked for
    /// while too much waits; it is to [`skip`](FrameSource::skip) it instead.
    fn is_coded(&self) -> bool {
        false
    }

    /// Leaves out the frame that is due, for a source of coded frames. The time until the next one.
    fn skip(&mut self) -> Span {
        Span::ZERO
    }

    /// The payloads of the packets of the frame made last, in the order of sending; for a source of coded frames.
    fn payloads(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// True while its frames repeat a picture, since a camera makes no more: they need no padding.
    fn stands_still(&self) -> bool {
        false
    }

    /// True once it has no more frames: the one that was asked for last is empty, and its stream ends.
    fn has_ended(&self) -> bool {
        false
    }

    /// The time that it took to make that frame, which leaves so much later.
    fn took(&self) -> Span {
        Span::ZERO
    }

    /// Full packets have that size from the next frame on; for a source that makes whole packets.
    fn resize(&mut self, packet_size: Bytes) {
        let _ = packet_size;
    }
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The bytes of its IP packets.
    pub size: Bytes,
    /// The time until the next one is due.
    pub next: Span,
}

/// Settings of every source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting<'a> {
    /// Frames in a second.
    pub frame_rate: f64,
    /// The size of full packets at the IP layer.
    pub packet_size: Bytes,
    /// The bytes of the headers of each, those of IP among them.
    pub headers: Bytes,
    /// A controller's pacer releases packets; else those of a frame leave within its time.
    pub paced: bool,
    /// Decides its random numbers.
    pub seed: u64,
    /// The sizes of frames, one after the other, where they are known: of a trace.
    pub sizes: &'a [u32],
}

impl Setting<'_> {
    /// So many frames in a second, in packets of that size by IPv4.
    pub fn of(frame_rate: f64, packet_size: Bytes) -> Setting<'static> {
        Setting { frame_rate, packet_size, headers: Bytes(40), paced: true, seed: 0, sizes: &[] }
    }
}

/// A registered source.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Its name.
    pub name: &'static str,
    /// Its frames, in one line.
    pub about: &'static str,
    /// Its origin: paper or standard.
    pub paper: &'static str,
    /// True if it needs the sizes of a trace.
    pub needs_sizes: bool,
    /// Its options.
    pub options: &'static [Opt],
    /// Makes one; [`build`] says whose option is wrong.
    pub make: fn(&Given, &Setting<'_>) -> Made,
}

/// A source, or which option is wrong with it.
pub type Made = Result<Box<dyn FrameSource>, OptionError>;

impl Entry for Source {
    const WHAT: &'static str = "source";
    fn name(&self) -> &'static str {
        self.name
    }
    fn options(&self) -> &'static [Opt] {
        self.options
    }
}

options::registry! {
    /// All sources, in the order in which they are listed.
    ///
    /// ```
    /// let names: Vec<&str> =
    ///     lastmile::endpoint::stream::source::SOURCES.iter().map(|source| source.name).collect();
    /// assert_eq!(names, ["cbr", "on-demand", "codec", "trace", "screen", "audio-first", "layers"]);
    /// ```
    pub static SOURCES: Source;
    cbr,
    on_demand,
    codec,
    trace,
    screen,
    audio_first,
    layers,
}

/// Makes a source.
///
/// # Errors
/// Nothing of that name is registered, or an option cannot be.
pub fn build(choice: &Choice, setting: &Setting<'_>) -> Result<Box<dyn FrameSource>, ChoiceError> {
    let source = SOURCES.find(&choice.name)?;
    Ok((source.make)(&choice.options, setting).map_err(|error| error.of(source.name))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sources that make less than the target for reasons of their own.
    const APP_LIMITED: [&str; 3] = ["screen", "audio-first", "layers"];

    /// Every source, with the sizes of a trace that has a large frame in it.
    fn every() -> impl Iterator<Item = (&'static str, Box<dyn FrameSource>)> {
        let setting =
            Setting { seed: 7, sizes: &[9000, 700, 800, 650, 850], ..Setting::of(30.0, Bytes(1000)) };
        SOURCES.iter().map(move |source| (source.name, build(&Choice::named(source.name), &setting).unwrap()))
    }

    /// The frames of a source whose target is what `target` says, at which they leave, with their times.
    fn frames(
        source: &mut dyn FrameSource,
        seconds: i64,
        target: impl Fn(Time) -> u64,
    ) -> Vec<(Time, Bytes)> {
        let (mut now, end) = (Time::ZERO, Time::ZERO + Span::from_secs(seconds));
        let (mut frames, mut waiting) = (Vec::new(), Bytes::ZERO);
        while now < end {
            let frame = source.frame(now, Rate::ip(target(now)), waiting);
            frames.push((now, frame.size));
            let left = Rate::ip(target(now)).bytes_in(frame.next);
            waiting = Bytes((waiting + frame.size).0.saturating_sub(left.0));
            assert!(frame.next > Span::ZERO);
            now += frame.next;
        }
        frames
    }

    fn kbits(frames: &[(Time, Bytes)], from: Time, over: Span) -> f64 {
        let within = frames.iter().filter(|(at, _)| *at >= from && *at < from + over);
        within.map(|(_, size)| size.bits() as f64).sum::<f64>() / over.as_secs_f64() / 1e3
    }

    #[test]
    fn every_source_makes_its_target() {
        for (name, mut source) in every().filter(|(name, _)| !APP_LIMITED.contains(name)) {
            let made = frames(&mut *source, 120, |_| 2_000_000);
            let mean = kbits(&made, Time::ZERO, Span::from_secs(120));
            assert!((mean / 2000.0 - 1.0).abs() < 0.02, "{name}: {mean}");
        }
    }

    #[test]
    fn every_source_answers_a_new_target_within_100_ms() {
        // The target falls to a tenth at a time that is another one each time, and rises again 2 s later. Over the two seconds
        // of a level, less the 100 ms, a source has made what was asked for, but for one frame at the edge and the large one
        // of a trace (9 kB of 2.4 kB on average).
        for turn in 0..40 {
            let falls = Time::ZERO + Span::from_millis(2_000) + Span::from_millis(9 * turn);
            let rises = falls + Span::from_secs(2);
            for (name, mut source) in every().filter(|(name, _)| !APP_LIMITED.contains(name)) {
                let made =
                    frames(
                        &mut *source,
                        5,
                        |now| if now >= falls && now < rises { 300_000 } else { 3_000_000 },
                    );
                let wait = Span::from_millis(100);
                let low = kbits(&made, falls + wait, rises - falls - wait);
                assert!(low < 450.0, "{name}: {low:.0} kbit/s 100 ms after the target fell");
                let high = kbits(&made, rises + wait, Span::from_millis(600));
                assert!(high > 2_000.0, "{name}: {high:.0} kbit/s 100 ms after the target rose");
            }
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_frames() {
        for ((name, mut one), (_, mut same)) in every().zip(every()) {
            assert_eq!(frames(&mut *one, 20, |_| 1_000_000), frames(&mut *same, 20, |_| 1_000_000), "{name}");
        }
    }

    #[test]
    fn limits_are_kept_and_told() {
        let limited = |source: &&&Source| source.options.iter().any(|opt| opt.name == "max");
        for source in SOURCES.iter().filter(limited) {
            let choice = Choice::named(source.name).with("min", "500 kbit/s").with("max", "1 Mbit/s");
            let setting = Setting { sizes: &[100, 200], ..Setting::of(30.0, Bytes(1000)) };
            let mut limited = build(&choice, &setting).unwrap();
            if APP_LIMITED.contains(&source.name) {
                assert_eq!(limited.range().1, Rate::ip(1_000_000));
                continue;
            }
            assert_eq!(limited.range(), (Rate::ip(500_000), Rate::ip(1_000_000)));
            for (target, made) in [(10_000, 500.0), (9_000_000, 1_000.0)] {
                let frames = frames(&mut *limited, 60, |_| target);
                let mean = kbits(&frames, Time::ZERO + Span::from_secs(1), Span::from_secs(59));
                assert!((mean / made - 1.0).abs() < 0.03, "{}: {mean:.0}", source.name);
            }
            let wrong = Choice::named(source.name).with("min", "2 Mbit/s").with("max", "1 Mbit/s");
            let said = build(&wrong, &setting).unwrap_err().to_string();
            assert!(said.starts_with(&format!("min of {} must be at most max", source.name)), "{said}");
        }
    }
}
