//! The sources: the encoder's target, and padding where they have less than the rate.

use super::{Lastmile, Phase, Seen};

/// The encoder's target goes by that part in a second, while it is that close to the rate.
const SLEW: f64 = 0.07;
const CLOSE: f64 = 0.15;
/// Backlog of the pacer beyond a frame goes in so many seconds, by a target that is lower by up to that part.
const FRAME_S: f64 = 0.03;
const BACKLOG_S: f64 = 0.6;
const MOST_LESS: f64 = 0.2;
/// Seconds in which packets are counted that left while the sources had no more, and the share of them that shows sources of too little.
const LIMITED_S: f64 = 0.5;
const LIMITED: f64 = 0.5;
/// Padding fills up for so many seconds, so many seconds after the last.
const PADDING_S: f64 = 1.0;
const PADDING_EVERY_S: f64 = 3.0;
/// A rate that is at most so many times what passes was grown from that, and padding begins at so many times: a higher rate was had once, and
/// is tried as it is.
const GROWN: f64 = 1.6;
const PADDED: f64 = 1.2;
/// So many times what passed before is the sources' while padding's queue drains, for so many seconds at most. Frames make a short
/// measurement of it uncertain.
const PROVED: f64 = 1.05;
const PROVED_S: f64 = 1.5;

impl Lastmile {
    /// The sources make less than the rate.
    pub(super) fn is_limited(&self) -> bool {
        self.limited >= LIMITED
    }

    /// Of so many packets that arrived, so many left while the sources had no more.
    pub(super) fn count_limited(&mut self, now: f64, arrived: u32, limited: u32) {
        if arrived > 0 {
            let share = f64::from(limited) / f64::from(arrived);
            self.limited += (share - self.limited) * ((now - self.seen.now) / LIMITED_S).clamp(0.0, 1.0);
        }
    }

    /// The encoder's target follows the rate, slowly where the law moves it by little: to an encoder an abrupt change is a burst of frames
    /// (RFC 8593, section 5.1), and a small difference waits for the pacer meanwhile.
    pub(super) fn encode(&mut self) {
        let moves_little = match self.phase {
            Phase::Track | Phase::Dip { .. } => self.growth == 0.0 && !self.marks.steer(self.seen.now),
            Phase::Drain(_) => true,
            _ => false,
        };
        let waits = self.seconds_of(self.backlog) - FRAME_S;
        // A queue of padding alone: the sources passed without one.
        let rate = self.rate.max(self.proved.min(self.encoder));
        let wanted = rate * (1.0 - (waits / BACKLOG_S).clamp(0.0, MOST_LESS));
        let (slow, ratio) = (1.0 + SLEW * self.seen.dt, wanted / self.encoder);
        let is_close = (1.0 - CLOSE..=1.0 + CLOSE).contains(&ratio);
        self.encoder = match moves_little && is_close {
            true => wanted.clamp(self.encoder / slow, self.encoder * slow),
            false => wanted,
        };
    }

    /// An application that does not fill the rate, but could use more than is known to pass, is helped by padding: now and then for a second.
    pub(super) fn pad(&mut self, seen: &Seen) {
        let is_calm = matches!(self.phase, Phase::Start | Phase::Track) && seen.law_queue < seen.target;
        if seen.now > self.padding_until && is_calm || seen.now > self.padding_until + PROVED_S {
            self.proved = 0.0;
        }
        if seen.now < self.padding_until {
            if !is_calm {
                self.padding_until = seen.now;
            }
        } else if self.is_limited()
            && self.rate < self.desired
            && is_calm
            && seen.now >= self.padding_until + PADDING_EVERY_S
        {
            self.padding_until = seen.now + PADDING_S;
            self.proved = PROVED * seen.slow;
            if self.rate < GROWN * seen.slow {
                self.set(self.rate.min(PADDED * seen.slow));
            }
        }
    }
}
