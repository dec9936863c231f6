//! TCP Westwood+: the window falls to what the path was measured to carry (Mascolo, Casetti, Gerla, Sanadidi,
//! Wang, MobiCom 2001; the estimator of Grieco and Mascolo, ACM CCR 34(2), 2004: a sample per round-trip time).

use super::{Acked, Congestion, MIN_SSTHRESH, Window, WindowLaw};
use crate::time::{Span, Time};

/// Westwood+'s numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct WestwoodConfig {
    /// The least time over which a sample of the bandwidth is taken; a round-trip time where that is longer.
    pub min_interval: Span,
    /// The weight of the past in each of the two low-pass filters.
    pub memory: f64,
}

impl Default for WestwoodConfig {
    fn default() -> WestwoodConfig {
        WestwoodConfig { min_interval: Span::from_millis(50), memory: 0.875 }
    }
}

/// Westwood+.
///
/// ```
/// use lastmile::{control::window::*, time::{Span, Time}};
/// let (mut law, mut window) = (Westwood::new(WestwoodConfig::default()), Window::new(20.0));
/// let rtt = Some(Span::from_millis(100));
/// for ms in 0..2000 { law.on_delivered(0.1, rtt, Time::from_nanos(ms * 1_000_000)); } // 100 segments a second
/// law.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
/// assert!((window.cwnd - 10.0).abs() < 0.2);
/// ```
#[derive(Clone, Debug)]
pub struct Westwood {
    config: WestwoodConfig,
    min_rtt: Option<Span>,
    last_rtt: Span,
    since: Option<Time>,
    delivered: f64,
    /// Segments per second after the first and after both filters.
    once: f64,
    estimate: Option<f64>,
}

impl Westwood {
    /// The law with these numbers.
    pub fn new(config: WestwoodConfig) -> Westwood {
        Westwood {
            config,

            min_rtt: None,
            last_rtt: Span::ZERO,
            since: None,
            delivered: 0.0,
            once: 0.0,
            estimate: None,
        }
    }

    /// The bandwidth estimate, in segments per second.
    pub fn bandwidth(&self) -> Option<f64> {
        self.estimate
    }
}

impl WindowLaw for Westwood {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Acked) {
        if window.in_slow_start() {
            window.slow_start(ack.segments);
        } else {
            window.cwnd += ack.segments / window.cwnd;
        }
    }

    fn on_delivered(&mut self, segments: f64, rtt: Option<Span>, now: Time) {
        if let Some(rtt) = rtt {
            self.last_rtt = rtt;
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        let since = *self.since.get_or_insert(now);
        self.delivered += segments;
        let interval = now - since;
        if interval >= self.last_rtt.max(self.config.min_interval) && interval > Span::ZERO {
            let sample = self.delivered / interval.as_secs_f64();
            // CCR 34(2), section 2: b = 7/8 b + 1/8 sample, applied twice as Linux does; both start at the
            // first sample.
            let new = 1.0 - self.config.memory;
            let (once, twice) = match self.estimate {
                None => (sample, sample),
                Some(before) => {
                    let once = self.config.memory * self.once + new * sample;
                    (once, self.config.memory * before + new * once)
                }
            };
            (self.once, self.estimate) = (once, Some(twice));
            (self.since, self.delivered) = (Some(now), 0.0);
        }
    }

    fn on_congestion(&mut self, window: &mut Window, how: Congestion, _now: Time) {
        let threshold = match (self.estimate, self.min_rtt) {
            // MobiCom 2001, section 3: ssthresh = BWE * RTTmin / segment size.
            (Some(bandwidth), Some(rtt)) => bandwidth * rtt.as_secs_f64(),
            _ => window.cwnd / 2.0,
        };
        window.reduce_to(threshold.max(MIN_SSTHRESH), how);
    }

    fn clone_box(&self) -> Box<dyn WindowLaw> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_loss_leaves_the_window_at_the_pipe_and_a_full_queue_halves_it() {
        for (rtt_ms, kept) in [(100, 20.0), (200, 10.0)] {
            let (mut law, mut window) = (Westwood::new(WestwoodConfig::default()), Window::new(20.0));
            // 20 segments per round trip, the shortest round trip 100 ms.
            law.on_delivered(0.0, Some(Span::from_millis(100)), Time::ZERO);
            for step in 1..2000_u64 {
                let now = Time::from_nanos(step * rtt_ms * 1_000_000 / 20);
                law.on_delivered(1.0, Some(Span::from_millis(rtt_ms as i64)), now);
            }
            law.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
            assert!((window.cwnd - kept).abs() < 0.5, "{rtt_ms}: {window:?}");
        }
    }

    #[test]
    fn without_a_sample_it_halves() {
        let (mut law, mut window) = (Westwood::new(WestwoodConfig::default()), Window::new(20.0));
        law.on_congestion(&mut window, Congestion::Timeout, Time::ZERO);
        assert_eq!((window.cwnd, window.ssthresh), (1.0, 10.0));
    }
}
