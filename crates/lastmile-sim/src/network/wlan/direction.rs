//! One direction between a client and its access point: its rates, its noise, and what changes of both.

use lastmile::rng::Stream;
use lastmile::time::Time;

use super::channel::Channel;
use super::counters::DirectionCounters;
use super::phy::PhyRate;
use super::rate::Controller;
use super::schedule::Schedule;

/// One direction of one association.
#[derive(Debug)]
pub(super) struct Direction {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) top_rate: usize,
    pub(super) controller: Controller,
    pub(super) counters: DirectionCounters,
    /// Its client has left for another link: packets that come are dropped.
    pub(super) left: bool,
    pub(super) frame_error: f64,
    pub(super) channel: Option<Channel>,
    pub(super) schedule: Schedule,
    pub(super) random: Stream,
}

impl Direction {
    /// True if noise destroys a frame.
    #[inline]
    pub(super) fn destroys(&mut self, now: Time, rate: (usize, &PhyRate), bytes: u32) -> bool {
        if self.frame_error > 0.0 && self.random.unit() < self.frame_error {
            return true;
        }
        match &mut self.channel {
            None => false,
            Some(channel) => {
                let error = channel.frame_error(now, rate, bytes, &mut self.random);
                self.random.unit() < error
            }
        }
    }

    /// Makes the changes whose time has come.
    #[cold]
    pub(super) fn change(&mut self, now: Time) {
        if self.schedule.trace.is_some() {
            return self.follow(now);
        }
        while let Some(change) = self.schedule.changes.pop_if(|change| change.at <= now.as_nanos()) {
            if let Some((top_rate, controller)) = change.controller {
                (self.top_rate, self.controller) = (top_rate, controller);
            }
            self.frame_error = change.frame_error.unwrap_or(self.frame_error);
            if let (Some(snr), Some(channel)) = (change.mean_snr_db, &mut self.channel) {
                channel.move_to(snr);
            }
        }
        self.schedule.next = self.schedule.changes.last().map(|c| c.at);
    }

    /// Does what the trace says of now.
    fn follow(&mut self, now: Time) {
        let Some(driven) = &mut self.schedule.trace else { return };
        let mut value = driven.value;
        driven.reader.skip_to(now.as_nanos());
        loop {
            let next = driven.reader.next();
            self.schedule.next = next.map(|(at, _)| at);
            match next {
                Some((at, later)) if at <= now.as_nanos() => value = later,
                _ => {
                    driven.value = value;
                    if let Some((top, controller)) = driven.rate().filter(|(top, _)| *top != self.top_rate) {
                        (self.top_rate, self.controller) = (top, controller);
                    }
                    self.channel.iter_mut().for_each(|channel| driven.place(channel));
                    driven.value = next.map_or(value, |(_, later)| later);
                    return;
                }
            }
        }
    }
}
