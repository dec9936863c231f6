//! What came of streams over real sockets, as their receiver saw it: a row each, and a line each second.

use std::net::SocketAddr;

use lastmile::endpoint::Event;
use lastmile::endpoint::stream::{Decision, Left, Received};
use lastmile_sim::monitor::flows::as_rate;

use super::sending::{milliseconds, percent};
use lastmile_report::text::Table;

/// Streams of which no table is kept any longer: a receiver may run for years.
const MAX_ROWS: usize = 1_000;

/// What a receiver knows of its sources.
#[derive(Default)]
pub(crate) struct Receiving {
    /// What came of each source at its last line.
    under_way: Vec<((SocketAddr, u32), Received)>,
    /// Those that left.
    left: Vec<(SocketAddr, u32, Left, Received)>,
}

impl Receiving {
    /// Takes in what was decided; a line each second for people who look on.
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
                    "{:4.0} s  {peer}  received {rate}  lost {} of {}  jitter {}",
                    (received.last - received.first).as_secs_f64(),
                    received.lost,
                    received.packets + received.lost,
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

    /// How many sources have left.
    pub(crate) fn streams(&self) -> usize {
        self.left.len()
    }

    /// Who fell silent without a goodbye, of those that left.
    pub(crate) fn silent(&self) -> Option<SocketAddr> {
        self.left.iter().find(|(.., why, _)| *why == Left::Silent).map(|(peer, ..)| *peer)
    }

    /// A table for people.
    pub(crate) fn table(&self) -> String {
        let mut table = Table::new(&[
            "from",
            ">received (IP)",
            ">packets",
            ">lost",
            ">loss",
            ">jitter",
            ">marked",
            ">seconds",
            ">media",
            ">feedback",
            "ended",
        ]);
        for (peer, _, why, received) in &self.left {
            let seconds = (received.last - received.first).as_secs_f64();
            let rate = (seconds > 0.0).then(|| as_rate(received.bytes.bits() as f64 / seconds).to_string());
            let expected = received.packets + received.lost;
            table.row([
                peer.to_string(),
                rate.unwrap_or_else(|| "-".to_owned()),
                received.packets.to_string(),
                received.lost.to_string(),
                percent((expected > 0).then(|| received.lost as f64 / expected as f64)),
                milliseconds(Some(received.jitter.as_secs_f64())),
                received.marked.to_string(),
                format!("{seconds:.2}"),
                received.bytes.to_string(),
                received.feedback_bytes.to_string(),
                match why {
                    Left::Goodbye => "by its sender",
                    Left::Silent => "silent for 10 s",
                    Left::Displaced => "made room",
                    _ => "here",
                }
                .to_owned(),
            ]);
        }
        table.text()
    }
}
