//! Streams over real sockets as their receiver sees them: lines for each, and a screen.

use std::net::SocketAddr;

use lastmile::endpoint::Event;
use lastmile::endpoint::stream::{Decision, Left, Received, Viewed};
use lastmile::time::Time;
use lastmile::units::Rate;
use lastmile_sim::monitor::flows::as_rate;

use super::sending::{milliseconds, percent};
use lastmile_report::text::Text;

/// Most ended streams that are kept: a receiver may run for years.
const MAX_ROWS: usize = 1_000;

/// Most sources on a screen.
const MAX_SHOWN: usize = 4;

/// The quality of what was decoded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// PSNR of Y in dB, and SSIM of Y, where pictures are compared.
    pub(crate) psnr: Option<f64>,
    pub(crate) ssim: Option<f64>,
    /// Pictures that were decoded in time, and frames that gave none.
    pub(crate) pictures: u64,
    pub(crate) undecodable: u64,
    /// Pictures that the reader of a pipe did not take in time.
    pub(crate) left_out: u64,
}

impl Seen {
    fn in_words(&self) -> Option<String> {
        let some = |count: u64, text: String| (count > 0).then_some(text);
        let failed = some(self.undecodable, format!("no picture of {} frames", self.undecodable));
        let left_out = some(
            self.left_out,
            format!("{} left out, since the reader of the pipe was slower", self.left_out),
        );
        let quality = self.psnr.zip(self.ssim);
        let quality = quality.map(|(psnr, ssim)| format!("PSNR {psnr:.1} dB, SSIM {ssim:.4}"));
        let all: Vec<String> = quality.into_iter().chain(failed).chain(left_out).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// Tells the quality of what was decoded.
pub(crate) type Quality = Box<dyn Fn() -> Seen>;

/// A source that is under way.
struct UnderWay {
    source: (SocketAddr, u32),
    received: Received,
    /// Rate of the last second.
    rate: Rate,
    viewed: Option<(Time, Viewed)>,
    /// Frames shown in a second, lately.
    frame_rate: Option<f64>,
}

/// A receiver's sources.
#[derive(Default)]
pub(crate) struct Receiving {
    /// The quality of pictures, where they are decoded.
    pub(crate) quality: Option<Quality>,
    under_way: Vec<UnderWay>,
    /// Sources that left, the first [`MAX_ROWS`].
    left: Vec<(SocketAddr, u32, Left, Received, Option<Viewed>)>,
    /// Those after them.
    more: u64,
}

impl Receiving {
    /// The source of that number, from its first mention on.
    fn source(&mut self, peer: SocketAddr, ssrc: u32) -> &mut UnderWay {
        let source = (peer, ssrc);
        let place = self.under_way.iter().position(|one| one.source == source).unwrap_or_else(|| {
            let received = Received::default();
            self.under_way.push(UnderWay {
                source,
                received,
                rate: Rate::ip(0),
                viewed: None,
                frame_rate: None,
            });
            self.under_way.len() - 1
        });
        &mut self.under_way[place]
    }

    /// Takes in a decision.
    pub(crate) fn take(&mut self, event: &Event) {
        match event.what.of::<Decision>() {
            Some(Decision::SourceProgress { peer, ssrc, received }) => {
                let source = self.source(*peer, *ssrc);
                let before = core::mem::replace(&mut source.received, *received);
                let since = if before.packets > 0 { before.last } else { received.first };
                let seconds = (received.last - since).as_secs_f64();
                source.rate = as_rate((received.bytes - before.bytes).bits() as f64 / seconds.max(1e-3));
            }
            Some(Decision::FramesViewed { peer, ssrc, viewed }) => {
                let source = self.source(*peer, *ssrc);
                if let Some((at, before)) = source.viewed.replace((event.at, *viewed)) {
                    let seconds = (event.at - at).as_secs_f64();
                    // The last one may follow at once.
                    let rate = (viewed.frames - before.frames) as f64 / seconds;
                    source.frame_rate = Some(rate).filter(|_| seconds > 0.1).or(source.frame_rate);
                }
            }
            Some(Decision::SourceLeft { peer, ssrc, why, received }) => {
                let viewed = self.source(*peer, *ssrc).viewed.map(|(_, viewed)| viewed);
                self.under_way.retain(|one| one.source != (*peer, *ssrc));
                match self.left.len() < MAX_ROWS {
                    true => self.left.push((*peer, *ssrc, *why, *received, viewed)),
                    false => self.more += u64::from(*why != Left::Moved),
                }
            }
            _ => {}
        }
    }

    /// Prints the event as a line of JSON, one on frames with their rate and quality.
    pub(crate) fn json_line(&self, event: &Event) {
        let Some(Decision::FramesViewed { peer, ssrc, .. }) = event.what.of() else {
            return crate::shell::json_line(event);
        };
        let mut value = serde_json::to_value(event).unwrap_or_default();
        let source = self.under_way.iter().find(|one| one.source == (*peer, *ssrc));
        let seen = self.quality.as_ref().map(|quality| quality()).unwrap_or_default();
        value["frame_rate"] = source.and_then(|source| source.frame_rate).into();
        (value["psnr_db"], value["ssim"]) = (seen.psnr.into(), seen.ssim.into());
        crate::shell::json_line(&value);
    }

    /// The state of the sources that are under way, in lines for a screen.
    pub(crate) fn screen(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for UnderWay { source, received, rate, viewed, frame_rate } in self.under_way.iter().take(MAX_SHOWN) {
            let Received { packets, lost, jitter, first, last, .. } = *received;
            let share = percent((packets > 0).then(|| lost as f64 / (packets + lost) as f64));
            lines.push(format!("stream from {}, {:.0} s", source.0, (last - first).as_secs_f64()));
            let jitter = milliseconds(Some(jitter.as_secs_f64()));
            lines.push(format!("  rate: {rate} received; lost: {lost} packets ({share}); jitter: {jitter}"));
            if let Some((_, viewed)) = viewed {
                let rate = frame_rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
                lines.push(format!("  video: {rate} frames a second; {}", self.frames(viewed, true)));
            }
        }
        let more = self.under_way.len().saturating_sub(MAX_SHOWN);
        lines.extend((more > 0).then(|| format!("and {more} more streams")));
        lines
    }

    /// Counts of frames in words, with the quality of all pictures so far.
    fn frames(&self, viewed: &Viewed, with_quality: bool) -> String {
        let Viewed { damaged, late, lost, freezes, frozen, delay, key_frames_asked, .. } = viewed;
        let quality = self.quality.as_ref().filter(|_| with_quality).and_then(|quality| quality().in_words());
        let quality = quality.map_or_else(String::new, |quality| format!("; {quality}"));
        format!(
            "damaged {damaged}, late {late}, unusable {lost}; {freezes} freezes ({}); key frames asked for {key_frames_asked}; playout delay {}{quality}",
            milliseconds(Some(frozen.as_secs_f64())),
            milliseconds(Some(delay.as_secs_f64())),
        )
    }

    /// True once a source has left, and does not go on from another address.
    pub(crate) fn has_streams(&self) -> bool {
        self.left.iter().any(|(.., why, _, _)| *why != Left::Moved)
    }

    /// True once a stream has ended. One that its sender ended may have others of that host beside it, such as audio, which end with it.
    pub(crate) fn is_over(&self) -> bool {
        let goes_on = |peer: &SocketAddr| self.under_way.iter().any(|one| one.source.0.ip() == peer.ip());
        self.left.iter().any(|(peer, _, why, ..)| match why {
            Left::Moved => false,
            Left::Goodbye => !goes_on(peer),
            _ => true,
        })
    }

    /// The first source that fell silent without a goodbye.
    pub(crate) fn silent(&self) -> Option<SocketAddr> {
        self.left.iter().find(|(.., why, _, _)| *why == Left::Silent).map(|(peer, ..)| *peer)
    }

    /// Lines for people: results of each stream.
    pub(crate) fn lines(&self) -> Text {
        let mut text = Text::default();
        // Counts and quality of the decoder are of all streams that it saw.
        let decoded = self.quality.as_ref().map(|quality| quality());
        let is_viewed = |(_, _, why, _, viewed): &&(_, _, Left, _, Option<Viewed>)| {
            viewed.is_some() && *why != Left::Moved
        };
        let is_one = self.left.iter().filter(is_viewed).count() == 1;
        for (peer, _, why, received, viewed) in &self.left {
            let seconds = (received.last - received.first).as_secs_f64();
            let rate = (seconds > 0.0).then(|| as_rate(received.bytes.bits() as f64 / seconds).to_string());
            let expected = received.packets + received.lost;
            let ended = match why {
                Left::Goodbye => "ended by its sender",
                Left::Silent => "silent for 10 s",
                Left::Moved => "moved to another address",
                Left::Displaced => "made room for another",
                _ => "ended here",
            };
            text.say(format!("stream from {peer}: {seconds:.2} s, {ended}"));
            text.say(format!(
                "  rate: {} received, in {} packets; {} lost ({}), {} with ECN marks",
                rate.as_deref().unwrap_or("nothing"),
                received.packets,
                received.lost,
                percent((expected > 0).then(|| received.lost as f64 / expected as f64)),
                received.marked
            ));
            text.say(format!(
                "  jitter: {}; cost: {} of media received, {} of feedback sent",
                milliseconds(Some(received.jitter.as_secs_f64())),
                received.bytes,
                received.feedback_bytes
            ));
            if let Some(viewed) = viewed {
                // A sender that moved has a row for each address.
                let is_all = is_one && *why != Left::Moved;
                let shown = match decoded {
                    Some(seen) if is_all => format!("{} frames shown", seen.pictures),
                    Some(_) => format!("{} frames in time", viewed.frames),
                    None => format!("{} frames shown", viewed.frames),
                };
                text.say(format!("  video: {shown}; {}", self.frames(viewed, is_all)));
            }
        }
        if let Some(words) = decoded.filter(|_| !is_one).and_then(|seen| seen.in_words()) {
            text.say(format!("all streams: {words}"));
        }
        match self.more {
            0 => {}
            1 => text.say("and 1 more stream"),
            more => text.say(format!("and {more} more streams")),
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams that ended so, each with ten frames that came in time, before a decoder that made 17 pictures.
    fn lines(ends: &[Left]) -> String {
        let left = |(port, why): (u16, &Left)| {
            let viewed = Viewed { frames: 10, ..Viewed::default() };
            (SocketAddr::from(([10, 0, 0, 1], port)), 7, *why, Received::default(), Some(viewed))
        };
        let seen = Seen { psnr: Some(40.0), ssim: Some(0.98), pictures: 17, undecodable: 3, left_out: 0 };
        let receiving = Receiving {
            quality: Some(Box::new(move || seen)),
            left: (1..).zip(ends).map(left).collect(),
            ..Receiving::default()
        };
        receiving.lines().to_string().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn counts_of_a_decoder_stand_once() {
        let one = lines(&[Left::Goodbye]);
        assert!(one.contains("video: 17 frames shown") && !one.contains("all streams"), "{one}");
        // A sender that moved has a row for each address.
        let moved = lines(&[Left::Moved, Left::Goodbye]);
        assert!(
            moved.contains("video: 10 frames in time") && moved.contains("video: 17 frames shown"),
            "{moved}"
        );
        let two = lines(&[Left::Goodbye, Left::Goodbye]);
        assert!(two.contains("all streams: PSNR 40.0 dB, SSIM 0.9800, no picture of 3 frames"), "{two}");
        for text in [one, moved, two] {
            assert_eq!(text.matches("PSNR").count(), 1, "{text}");
        }
    }
}
