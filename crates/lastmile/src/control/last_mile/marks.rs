//! Congestion Experienced: as a fraction where the path answers as L4S (RFC 9331, section 4.3), as a loss where it does not (RFC 3168).
//!
//! A queue of L4S marks from a millisecond on. Where packets of ECT(1) are marked while a queue stands, the path marks as RFC 3168 has it
//! ("classic ECN", RFC 9331, section 4.3 and appendix A.1.5), and each mark counts like a loss, until the standing queue is gone again.

use crate::node::Ecn;

/// g [RFC 8257, section 3.3]: the weight of a round in alpha.
const GAIN: f32 = 1.0 / 16.0;
/// A standing queue of so many seconds is none of L4S.
const CLASSIC_QUEUE_S: f64 = 0.004;
/// The weight of a round in the share of rounds with a standing queue.
const CLASSIC_GAIN: f32 = 1.0 / 8.0;
/// A path that marked within so many seconds steers the rate by marks.
const STEERS_S: f64 = 3.0;

/// Marks of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// Fraction of marked packets, smoothed.
    alpha: f32,
    packets: u32,
    marked: u32,
    round_end: f64,
    /// Share of marked rounds in which a queue stood.
    classic: f32,
    /// The last round with marks of L4S.
    last: f64,
    /// Packets left as ECT(1).
    ect1: bool,
}

impl Marks {
    pub(super) const fn new() -> Marks {
        Marks {
            alpha: 0.0,
            packets: 0,
            marked: 0,
            round_end: 0.0,
            classic: 0.0,
            last: f64::NEG_INFINITY,
            ect1: false,
        }
    }

    /// A packet that left with that codepoint arrived, marked or not. True if the mark counts like a loss.
    pub(super) fn arrived(&mut self, left: Ecn, came: Ecn) -> bool {
        let is_marked = came == Ecn::Ce && left != Ecn::Ce;
        self.packets += 1;
        self.ect1 |= left == Ecn::Ect1;
        self.marked += u32::from(is_marked);
        is_marked && (left != Ecn::Ect1 || self.is_classic())
    }

    fn is_classic(&self) -> bool {
        self.classic > 0.5
    }

    /// True if packets leave as ECT(1), and marks do not contradict that the path answers as L4S.
    pub(super) fn are_scalable(&self) -> bool {
        self.ect1 && !self.is_classic()
    }

    /// True if marks of L4S steer the rate.
    pub(super) fn steer(&self, now: f64) -> bool {
        now - self.last < STEERS_S && !self.is_classic()
    }

    /// True if marks of L4S came in the round that goes on.
    pub(super) fn is_marked(&self) -> bool {
        self.marked > 0 && self.are_scalable()
    }

    /// The part of the rate to keep after a round of `round` seconds that ends at `now`, at most once in each; `queue` seconds stand in the
    /// path. Nothing where the round goes on, or was without marks of L4S.
    pub(super) fn reduction(&mut self, now: f64, round: f64, queue: f64) -> Option<f64> {
        if now < self.round_end || self.packets == 0 {
            return None;
        }
        let fraction = self.marked as f32 / self.packets as f32;
        (self.packets, self.marked, self.round_end) = (0, 0, now + round);
        // [RFC 8257, section 3.3]; its first alpha is 1, since it does not know what the path carries.
        self.alpha += (fraction - self.alpha) * GAIN;
        if fraction > 0.0 {
            let stands = f32::from(u8::from(queue > CLASSIC_QUEUE_S));
            self.classic += (stands - self.classic) * CLASSIC_GAIN;
        }
        if fraction == 0.0 || !self.are_scalable() {
            return None;
        }
        self.last = now;
        Some(1.0 - f64::from(self.alpha) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(marks: &mut Marks, n: u32, marked: u32, queue: f64) -> Option<f64> {
        let came = |k| if k < marked { Ecn::Ce } else { Ecn::Ect1 };
        (0..100).for_each(|k| {
            marks.arrived(Ecn::Ect1, came(k));
        });
        marks.reduction(f64::from(n), 0.9, queue)
    }

    /// By hand: alpha 0.5 / 16 = 0.03125, then 0.03125 + (0.1 - 0.03125) / 16 = 0.03555, of which half is taken off; and marks steer for three seconds.
    #[test]
    fn a_fraction_of_marks_takes_off_half_of_its_mean() {
        let mut marks = Marks::new();
        assert_eq!((round(&mut marks, 0, 0, 0.001), marks.steer(0.0)), (None, false));
        assert_eq!(round(&mut marks, 1, 50, 0.001), Some(1.0 - 0.03125 / 2.0));
        assert!(
            round(&mut marks, 2, 10, 0.001).is_some_and(|part| (part - 1.0 + 0.03555 / 2.0).abs() < 1e-5)
        );
        assert_eq!(round(&mut marks, 3, 0, 0.001), None);
        assert!(marks.are_scalable() && marks.steer(4.9) && !marks.steer(5.1));
        assert!(
            (4..200)
                .filter_map(|n| round(&mut marks, n, 10, 0.001))
                .last()
                .is_some_and(|part| (part - 0.95).abs() < 1e-3)
        );
    }

    /// After six marked rounds in eight eighths: 1 - (7/8)^6 = 0.551.
    #[test]
    fn marks_of_a_standing_queue_are_losses_until_it_is_gone() {
        let mut marks = Marks::new();
        assert!(!marks.arrived(Ecn::Ect1, Ecn::Ce) && marks.arrived(Ecn::Ect0, Ecn::Ce));
        let rounds = (1..).take_while(|n| round(&mut marks, *n, 10, 0.02).is_some()).count();
        assert_eq!(rounds, 5);
        assert!(marks.arrived(Ecn::Ect1, Ecn::Ce) && !marks.arrived(Ecn::Ect1, Ecn::Ect1));
        assert!((20..30).any(|n| round(&mut marks, n, 10, 0.001).is_some()));
    }
}
