//! Helpers that the laws' tests share.

use super::{Acked, Congestion, Window, WindowLaw};
use crate::time::{Span, Time};

/// Round trips of `rtt` seconds in which a whole window is acknowledged, segment by segment, from the time at
/// which the last call ended (each law's tests begin at zero).
pub(super) fn rounds(law: &mut dyn WindowLaw, window: &mut Window, rounds: u32, rtt: f64) {
    for round in 0..rounds {
        let segments = window.cwnd as u32;
        for segment in 0..segments {
            let at = f64::from(round) + f64::from(segment) / f64::from(segments);
            law.on_ack(
                window,
                &Acked {
                    segments: 1.0,
                    rtt: Some(Span::from_secs_f64(rtt)),
                    now: Time::ZERO + Span::from_secs_f64(rtt * at),
                    round_ended: segment + 1 == segments,
                },
            );
        }
    }
}

/// A timeout sets the window to one segment and the threshold to `kept` of what it was.
pub(super) fn timeout_collapses(law: &mut dyn WindowLaw, window: &mut Window, kept: f64) {
    let before = window.cwnd;
    law.on_congestion(window, Congestion::Timeout, Time::ZERO);
    assert_eq!(window.cwnd, 1.0);
    assert_eq!(window.ssthresh, (kept * before).floor(), "{window:?} after {before}");
}

/// The mean window over round trips when every `every`-th segment is lost.
pub(super) fn sawtooth_mean(law: &mut dyn WindowLaw, window: &mut Window, every: u32) -> f64 {
    law.on_congestion(window, Congestion::DupAcks, Time::ZERO);
    let (mut sum, mut weight) = (0.0, 0.0);
    for segment in 1..=400 * every {
        if segment % every == 0 {
            law.on_congestion(window, Congestion::DupAcks, Time::ZERO);
        } else {
            law.on_ack(window, &Acked { segments: 1.0, rtt: None, now: Time::ZERO, round_ended: false });
        }
        if segment > 100 * every {
            // A segment stands for 1/cwnd of a round trip.
            (sum, weight) = (sum + 1.0, weight + 1.0 / window.cwnd);
        }
    }
    sum / weight
}
