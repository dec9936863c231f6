//! The clock of X_recv where the sender computes it from times of arrival.

use crate::time::{Rx, Span, Time};

/// Which clock spans of receiving are measured on: the receiver's while it runs about as fast as ours, else ours.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveClock {
    nanos: u64,
    last: Option<(Time, Option<Time<Rx>>)>,
}

impl ReceiveClock {
    pub(super) fn advance(&mut self, now: Time, remote: Option<Time<Rx>>) -> u64 {
        if let Some((then, before)) = self.last.replace((now, remote)) {
            let ours = (now - then).max(Span::ZERO);
            let theirs = remote.zip(before).map(|(remote, before)| remote - before);
            let believed = theirs.filter(|theirs| *theirs >= ours / 2 && *theirs <= ours * 2).unwrap_or(ours);
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
}
