//! The clock on which it is measured how fast packets arrive.

use crate::time::{Rx, Span, Time};

/// The most that the receiver's clock may fall behind ours: feedback that is held up on its way makes it seem to, and feedback that comes
/// in time again makes up for that. 16 videos in one WLAN come to more than half a second.
const MOST_BEHIND: Span = Span::from_secs(2);
/// The part of the time by which it may fall behind besides.
const SLOWER: i64 = 16;

/// Spans of receiving: on the receiver's clock while that runs about as fast as ours, else on ours. One that goes on running slower
/// would have more bytes arrive in a second than do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveClock {
    nanos: u64,
    last: Option<(Time, Option<Time<Rx>>)>,
    behind: Span,
}

impl ReceiveClock {
    pub(super) fn advance(&mut self, now: Time, remote: Option<Time<Rx>>) -> u64 {
        if let Some((then, before)) = self.last.replace((now, remote)) {
            let ours = (now - then).max(Span::ZERO);
            let theirs = remote.zip(before).map(|(remote, before)| remote - before);
            let believed = theirs.filter(|theirs| *theirs >= ours / 2 && *theirs <= ours * 2).unwrap_or(ours);
            let behind = (self.behind + (ours - believed) - ours / SLOWER).max(Span::ZERO);
            self.behind = behind.min(MOST_BEHIND);
            let believed = believed + (behind - self.behind);
            self.nanos = self.nanos.saturating_add(believed.as_nanos().unsigned_abs());
        }
        self.nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// A receiver whose clock is stepped does not stretch X_recv.
    #[test]
    fn the_receivers_clock_is_believed_while_it_runs_like_ours() {
        let rx = |ms: u64| Some(Time::from_nanos(ms * 1_000_000));
        let mut clock = ReceiveClock::default();
        clock.advance(at(0), rx(7_000));
        assert_eq!(clock.advance(at(100), rx(7_090)), 90_000_000);
        assert_eq!(clock.advance(at(200), rx(99_000)), 190_000_000);
        assert_eq!(clock.advance(at(300), rx(1)), 290_000_000);
        assert_eq!(clock.advance(at(400), None), 390_000_000);
    }

    /// At half of our speed it is believed for 2 s / (1/2 - 1/16); after that, at 15/16.
    #[test]
    fn a_clock_that_goes_on_running_slower_is_not_believed() {
        let mut clock = ReceiveClock::default();
        let mut half = |ms: u64| clock.advance(at(ms), Some(Time::from_nanos(ms * 500_000)));
        (0..45).for_each(|k| assert_eq!(half(100 * k), 50_000_000 * k));
        let believed = (45..=200).map(|k| half(100 * k)).last().unwrap();
        assert!((16_700_000_000..16_800_000_000).contains(&believed), "{believed}");
    }
}
