//! TCP Vegas: keeps a few segments in the queue (Brakmo and Peterson, IEEE JSAC 13(8), 1995).

use super::{Acked, Congestion, MIN_SSTHRESH, Window, WindowLaw};
use crate::time::{Span, Time};

/// Vegas' thresholds, in segments in the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct VegasConfig {
    /// With fewer the window grows.
    pub alpha: f64,
    /// With more it shrinks.
    pub beta: f64,
    /// With more slow start ends.
    pub gamma: f64,
    /// The part of the window that a loss found by duplicate ACKs takes away: a quarter, as in the authors' code
    /// and ns-2; Linux takes one half.
    pub decrease: f64,
}

impl Default for VegasConfig {
    fn default() -> VegasConfig {
        VegasConfig { alpha: 1.0, beta: 3.0, gamma: 1.0, decrease: 0.25 }
    }
}

/// Vegas. Its own retransmission by fine-grained timers is not part of the law: the segments' sender has it.
///
/// ```
/// use lastmile::{control::window::*, time::{Span, Time}};
/// let (mut vegas, mut window) = (Vegas::new(VegasConfig::default()), Window::new(8.0));
/// let mut ack = |ms, ended| vegas.on_ack(&mut window, &Acked { segments: 1.0, rtt: Some(Span::from_millis(ms)), now: Time::ZERO, round_ended: ended });
/// ack(100, true);
/// ack(200, true); // half of the window is queue: slow start is over
/// assert!(!window.in_slow_start());
/// ```
#[derive(Clone, Debug)]
pub struct Vegas {
    config: VegasConfig,
    base: Option<Span>,
    /// The least round-trip time of the round: an ACK that was delayed says nothing about the queue.
    round: Option<Span>,
    /// Slow start doubles in every other round only (section 3.3).
    grows: bool,
}

impl Vegas {
    /// The law with these numbers.
    pub fn new(config: VegasConfig) -> Vegas {
        Vegas { config, base: None, round: None, grows: true }
    }

    /// Segments in the queue: (expected - actual) * base, section 3.2.
    fn queued(&self, cwnd: f64) -> Option<f64> {
        let (base, rtt) = (self.base?, self.round?);
        (rtt > Span::ZERO).then(|| cwnd * (1.0 - base.as_secs_f64() / rtt.as_secs_f64()))
    }
}

impl WindowLaw for Vegas {
    fn on_ack(&mut self, window: &mut Window, ack: &Acked) {
        if let Some(rtt) = ack.rtt {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            self.round = Some(self.round.map_or(rtt, |least| least.min(rtt)));
        }
        if window.in_slow_start() && self.grows {
            window.slow_start(ack.segments);
        }
        if !ack.round_ended {
            return;
        }
        let queued = self.queued(window.cwnd);
        self.round = None;
        let Some(queued) = queued else { return };
        if window.in_slow_start() {
            self.grows = !self.grows;
            if queued > self.config.gamma {
                // Queued segments are beyond the path's own capacity.
                window.cwnd = (window.cwnd - queued + self.config.gamma).max(MIN_SSTHRESH);
                window.ssthresh = window.cwnd;
            }
        } else if queued < self.config.alpha {
            window.cwnd += 1.0;
        } else if queued > self.config.beta {
            window.cwnd = (window.cwnd - 1.0).max(MIN_SSTHRESH);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
    }

    fn on_congestion(&mut self, window: &mut Window, how: Congestion, _now: Time) {
        let kept = if how == Congestion::Timeout { 0.5 } else { 1.0 - self.config.decrease };
        window.reduce_to(window.cwnd * kept, how);
        self.round = None;
        self.grows = true;
    }

    fn clone_box(&self) -> Box<dyn WindowLaw> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path with 40 segments of its own in 100 ms: the excess is queue.
    #[test]
    fn settles_between_alpha_and_beta_segments_of_queue() {
        let (mut vegas, mut window) = (Vegas::new(VegasConfig::default()), Window::new(2.0));
        let mut worst = 0.0_f64;
        for round in 0..200 {
            let cwnd = window.cwnd;
            let rtt = Span::from_secs_f64(0.1 * (cwnd / 40.0).max(1.0));
            for segment in 0..cwnd as u32 {
                let round_ended = segment + 1 == cwnd as u32;
                vegas.on_ack(
                    &mut window,
                    &Acked { segments: 1.0, rtt: Some(rtt), now: Time::ZERO, round_ended },
                );
            }
            if round > 20 {
                worst = worst.max(window.cwnd);
            }
        }
        let cwnd = window.cwnd;
        assert!((41.0..=43.0).contains(&cwnd) && worst <= 43.0, "{cwnd} {worst}");
    }

    #[test]
    fn a_loss_takes_the_configured_part() {
        let (mut vegas, mut window) =
            (Vegas::new(VegasConfig { decrease: 0.5, ..Default::default() }), Window::new(8.0));
        vegas.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
        assert_eq!(window.cwnd, 4.0);
    }
}
