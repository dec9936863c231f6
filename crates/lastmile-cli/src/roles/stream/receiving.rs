//! Streams over real sockets as their receiver sees them: lines for each, and a line each second.

use std::net::SocketAddr;

use lastmile::endpoint::Event;
use lastmile::endpoint::stream::{Decision, Left, Received, Viewed};
use lastmile::time::Time;
use lastmile_sim::monitor::flows::as_rate;

use super::sending::{milliseconds, percent};
use lastmile_report::text::Text;

/// Most ended streams that are kept: a receiver may run for years.
const MAX_ROWS: usize = 1_000;

/// Tells the quality of what was decoded, in words.
pub(crate) type Quality = Box<dyn Fn() -> Option<String>>;

/// A receiver's sources.
#[derive(Default)]
pub(crate) struct Receiving {
    /// The quality of pictures, where they are decoded.
    pub(crate) quality: Option<Quality>,
    /// Each source's frames at its last line, and when that was.
    viewed: Vec<((SocketAddr, u32), Time, Viewed)>,
    /// Each source's counts at its last line.
    under_way: Vec<((SocketAddr, u32), Received)>,
    /// Sources that left, the first [`MAX_ROWS`].
    left: Vec<(SocketAddr, u32, Left, Received, Option<Viewed>)>,
}

impl Receiving {
    /// Takes in a decision; gives a line each second for people.
    pub(crate) fn take(&mut self, event: &Event) -> Option<String> {
        match event.what.of::<Decision>()? {
            Decision::SourceProgress { peer, ssrc, received } => {
                let place = self.under_way.iter().position(|(source, _)| *source == (*peer, *ssrc));
                let place = place.unwrap_or_else(|| {
                    let nothing = Received { last: received.first, ..Received::default() };
                    self.under_way.push(((*peer, *ssrc), nothing));
                    self.under_way.len() - 1
                });
                let before = core::mem::replace(&mut self.under_way[place].1, *received);
                let seconds = (received.last - before.last).as_secs_f64();
                let rate = as_rate((received.bytes - before.bytes).bits() as f64 / seconds.max(1e-3));
                Some(format!(
                    "{:4.0} s  {peer}  received {rate}  lost {}  jitter {}",
                    (received.last - received.first).as_secs_f64(),
                    received.lost,
                    received.jitter
                ))
            }
            Decision::FramesViewed { peer, ssrc, viewed } => {
                let before = self.viewed.iter().find(|(source, ..)| *source == (*peer, *ssrc)).copied();
                self.viewed.retain(|(source, ..)| *source != (*peer, *ssrc));
                self.viewed.push(((*peer, *ssrc), event.at, *viewed));
                let (_, at, before) = before?;
                let seconds = (event.at - at).as_secs_f64();
                let rate = (viewed.frames - before.frames) as f64 / seconds;
                (seconds > 0.1)
                    .then(|| format!("        video  {rate:.1} frames/s  {}", self.frames(viewed, true)))
            }
            Decision::SourceLeft { peer, ssrc, why, received } => {
                let viewed = self.viewed.iter().find(|(source, ..)| *source == (*peer, *ssrc));
                let viewed = viewed.map(|(.., viewed)| *viewed);
                self.viewed.retain(|(source, ..)| *source != (*peer, *ssrc));
                self.under_way.retain(|(source, _)| *source != (*peer, *ssrc));
                if self.left.len() < MAX_ROWS {
                    self.left.push((*peer, *ssrc, *why, *received, viewed));
                }
                None
            }
            _ => None,
        }
    }

    /// Counts of frames in words, with the quality of all pictures so far.
    fn frames(&self, viewed: &Viewed, with_quality: bool) -> String {
        let Viewed { damaged, late, lost, freezes, frozen, delay, key_frames_asked, .. } = viewed;
        let quality = self.quality.as_ref().filter(|_| with_quality).and_then(|quality| quality());
        let quality = quality.map_or_else(String::new, |quality| format!("; {quality}"));
        format!(
            "damaged {damaged}, late {late}, unusable {lost}; {freezes} freezes ({}); key frames asked for {key_frames_asked}; playout delay {}{quality}",
            milliseconds(Some(frozen.as_secs_f64())),
            milliseconds(Some(delay.as_secs_f64())),
        )
    }

    /// Sources that have left, at most [`MAX_ROWS`].
    pub(crate) fn streams(&self) -> usize {
        self.left.len()
    }

    /// The first source that fell silent without a goodbye.
    pub(crate) fn silent(&self) -> Option<SocketAddr> {
        self.left.iter().find(|(.., why, _, _)| *why == Left::Silent).map(|(peer, ..)| *peer)
    }

    /// Lines for people: results of each stream.
    pub(crate) fn lines(&self) -> Text {
        let mut text = Text::default();
        for (place, (peer, _, why, received, viewed)) in self.left.iter().enumerate() {
            let seconds = (received.last - received.first).as_secs_f64();
            let rate = (seconds > 0.0).then(|| as_rate(received.bytes.bits() as f64 / seconds).to_string());
            let expected = received.packets + received.lost;
            let ended = match why {
                Left::Goodbye => "ended by its sender",
                Left::Silent => "silent for 10 s",
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
                // The quality is that of all streams that were decoded: it stands at the last one.
                let last = place + 1 == self.left.len();
                let told = self.frames(viewed, last);
                text.say(format!("  video: {} frames shown; {told}", viewed.frames));
            }
        }
        text
    }
}

/// PSNR and SSIM of what a viewer saw, where it compared, and frames that could not be decoded.
#[cfg(feature = "video")]
pub(crate) fn in_words(seen: &lastmile_net::media::Seen) -> Option<String> {
    let failed = (seen.undecodable > 0).then(|| format!("no picture of {} frames", seen.undecodable));
    let quality = seen.psnr().zip(seen.ssim());
    let quality = quality.map(|(psnr, ssim)| format!("PSNR {psnr:.1} dB, SSIM {ssim:.4}"));
    let all: Vec<String> = quality.into_iter().chain(failed).collect();
    (!all.is_empty()).then(|| all.join(", "))
}
