//! Reno: additive increase, multiplicative decrease (RFC 5681; general AIMD by Chiu and Jain, 1989).

use super::{Acked, Congestion, Window, WindowLaw};
use crate::time::Time;

/// AIMD's two numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct RenoConfig {
    /// Segments by which the window grows in a round-trip time.
    pub increase: f64,
    /// The part of the window that is taken away.
    pub decrease: f64,
}

impl Default for RenoConfig {
    fn default() -> RenoConfig {
        RenoConfig { increase: 1.0, decrease: 0.5 }
    }
}

/// Additive increase, multiplicative decrease. A connection's first decrease, which ends slow start, is to one half
/// whatever [`RenoConfig::decrease`] says: slow start overshoots by up to a factor of two.
///
/// ```
/// use lastmile::{control::window::*, time::Time};
/// let (mut reno, mut window) = (Reno::new(RenoConfig::default()), Window::new(8.0));
/// reno.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
/// assert_eq!(window.cwnd, 4.0);
/// ```
#[derive(Clone, Debug)]
pub struct Reno {
    config: RenoConfig,
}

impl Reno {
    /// The law with these numbers.
    pub fn new(config: RenoConfig) -> Reno {
        Reno { config }
    }
}

impl WindowLaw for Reno {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Acked) {
        if window.in_slow_start() {
            window.slow_start(ack.segments);
        } else {
            // RFC 5681, equation 3: SMSS * SMSS / cwnd for each ACK.
            window.cwnd += self.config.increase * ack.segments / window.cwnd;
        }
    }

    fn on_congestion(&mut self, window: &mut Window, how: Congestion, _now: Time) {
        // RFC 5681, equation 4, of the window instead of the flight: equal unless the application has no data.
        let part = if window.in_slow_start() { 0.5 } else { self.config.decrease };
        window.reduce_to(window.cwnd * (1.0 - part), how);
    }

    fn clone_box(&self) -> Box<dyn WindowLaw> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{rounds, timeout_collapses};
    use super::*;

    #[test]
    fn doubles_each_round_and_then_adds_one() {
        let (mut reno, mut window) = (Reno::new(RenoConfig::default()), Window::new(2.0));
        rounds(&mut reno, &mut window, 3, 0.1);
        assert_eq!(window.cwnd, 16.0);
        reno.on_congestion(&mut window, Congestion::Ecn, Time::ZERO);
        rounds(&mut reno, &mut window, 10, 0.1);
        // A little less than one a round: the window is not a whole number of segments.
        assert!((window.cwnd - 17.5).abs() < 0.5, "{window:?}");
        timeout_collapses(&mut reno, &mut window, 0.5);
    }

    #[test]
    fn a_general_decrease_applies_outside_slow_start() {
        let (mut reno, mut window) =
            (Reno::new(RenoConfig { increase: 1.0, decrease: 0.125 }), Window::new(16.0));
        reno.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
        assert_eq!(window.cwnd, 8.0);
        reno.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
        assert_eq!(window.cwnd, 7.0);
    }
}
