//! Audio alone first and video later, under one controller: a call whose camera is switched on.

use super::{Frame, FrameSource, Limits, Made, Setting, Source, Steady};
use crate::options::{Given, Options};
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

crate::options! {
    /// The source's parameters.
    pub struct AudioFirstConfig {
        /// Rate of the audio, of IP packets
        audio: Rate [Rate::ip(1_000)..=Rate::ip(1_000_000)] = Rate::ip(36_000), "RFC 8867, 4.2: 20 kbit/s, here with headers";
        /// The video begins so long after the audio
        after: Span [Span::ZERO..=Span::from_secs(86_400)] = Span::from_secs(30), "our own";
        /// Makes this with video, of IP packets, where the target is less
        min: Option<Rate> [Rate::ip(1)..=Rate::ip(1_000_000_000_000)] = None, "our own";
        /// Makes no more than this, of IP packets
        max: Option<Rate> [Rate::ip(1)..=Rate::ip(1_000_000_000_000)] = None, "our own";
    }
}

/// Its place in the registry.
pub const ENTRY: Source = Source {
    name: "audio-first",
    about: "audio alone, and later video that makes the target",
    paper: "our own",
    needs_sizes: false,
    options: AudioFirstConfig::OPTIONS,
    make,
};

/// Frames of audio in a second: one each 20 ms.
const AUDIO_FRAMES: f64 = 50.0;

fn make(given: &Given, setting: &Setting<'_>) -> Made {
    let config = AudioFirstConfig::read(given)?;
    let limits = Limits::new(config.min, config.max)?;
    let (audio, video) = (Steady::new(AUDIO_FRAMES), Steady::new(setting.frame_rate));
    Ok(Box::new(AudioFirst { config, limits, audio, video, began: None }))
}

#[derive(Debug)]
struct AudioFirst {
    config: AudioFirstConfig,
    limits: Limits,
    audio: Steady,
    video: Steady,
    /// Time of the first frame.
    began: Option<Time>,
}

impl FrameSource for AudioFirst {
    fn frame(&mut self, now: Time, target: Rate, _: Bytes) -> Frame {
        let began = *self.began.get_or_insert(now);
        let (steady, rate) = match now - began < self.config.after {
            true => (&mut self.audio, self.config.audio),
            false => (&mut self.video, self.limits.of(target)),
        };
        let next = steady.next();
        Frame { size: steady.bytes(rate, next), next }
    }

    fn range(&self) -> (Rate, Rate) {
        (self.config.audio, self.limits.max)
    }

    fn idle(&self) -> Option<Rate> {
        Some(self.config.audio)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Setting, build};
    use super::*;

    #[test]
    fn audio_is_alone_until_the_video_begins() {
        let choice = "audio-first(audio=40 kbit/s, after=2 s, max=1 Mbit/s)".parse().unwrap();
        let mut source = build(&choice, &Setting::of(25.0, Bytes(1200))).unwrap();
        let mut frame = |millis| {
            let frame =
                source.frame(Time::ZERO + Span::from_millis(millis), Rate::ip(5_000_000), Bytes::ZERO);
            (frame.size.0, frame.next.as_nanos() / 1_000_000)
        };
        // Whatever the target is: 40 kbit/s in frames of 20 ms, and then no more than 1 Mbit/s in frames of 40 ms.
        assert_eq!((frame(500), frame(2_499), frame(2_500)), ((100, 20), (100, 20), (5_000, 40)));
    }
}
