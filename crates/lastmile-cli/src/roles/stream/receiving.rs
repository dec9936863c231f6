//! Streams over real sockets as their receiver sees them: lines for each, and a line each second.

use std::net::SocketAddr;

use lastmile::endpoint::Event;
use lastmile::endpoint::stream::{Decision, Left, Received};
use lastmile_sim::monitor::flows::as_rate;

use super::sending::{milliseconds, percent};
use lastmile_report::text::Text;

/// Most ended streams that are kept: a receiver may run for years.
const MAX_ROWS: usize = 1_000;

/// A receiver's sources.
#[derive(Default)]
pub(crate) struct Receiving {
    /// Each source's counts at its last line.
    under_way: Vec<((SocketAddr, u32), Received)>,
    /// Sources that left, the first [`MAX_ROWS`].
    left: Vec<(SocketAddr, u32, Left, Received)>,
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
            Decision::SourceLeft { peer, ssrc, why, received } => {
                self.under_way.retain(|(source, _)| *source != (*peer, *ssrc));
                if self.left.len() < MAX_ROWS {
                    self.left.push((*peer, *ssrc, *why, *received));
                }
                None
            }
            _ => None,
        }
    }

    /// Sources that have left, at most [`MAX_ROWS`].
    pub(crate) fn streams(&self) -> usize {
        self.left.len()
    }

    /// The first source that fell silent without a goodbye.
    pub(crate) fn silent(&self) -> Option<SocketAddr> {
        self.left.iter().find(|(.., why, _)| *why == Left::Silent).map(|(peer, ..)| *peer)
    }

    /// Lines for people: results of each stream.
    pub(crate) fn lines(&self) -> Text {
        let mut text = Text::default();
        for (peer, _, why, received) in &self.left {
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
        }
        text
    }
}
