//! Reno: additive increase, multiplicative decrease (RFC 5681; general AIMD by Chiu and Jain, 1989).

use super::{Acked, Congestion, Window, WindowLaw};
use crate::time::Time;

/// AIMD's two numbers.
///
/// ```
/// let reno = lastmile::control::window::RenoConfig::default();
/// assert_eq!((reno.increase, reno.decrease), (1.0, 0.5));
/// ```
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
/// let mut reno = Reno::new(RenoConfig::default(), 8.0);
/// reno.on_congestion(Congestion::DupAcks, Time::ZERO);
/// assert_eq!(reno.window().cwnd, 4.0);
/// ```
#[derive(Clone, Debug)]
pub struct Reno {
    config: RenoConfig,
    window: Window,
}

impl Reno {
    /// A window that starts at `initial` segments.
    pub fn new(config: RenoConfig, initial: f64) -> Reno {
        Reno { config, window: Window::new(initial) }
    }
}

impl WindowLaw for Reno {
    #[inline]
    fn on_ack(&mut self, ack: &Acked) {
        if self.window.in_slow_start() {
            self.window.slow_start(ack.segments);
        } else {
            // RFC 5681, equation 3: SMSS * SMSS / cwnd for each ACK.
            self.window.cwnd += self.config.increase * ack.segments / self.window.cwnd;
        }
    }

    fn on_congestion(&mut self, how: Congestion, _now: Time) {
        // RFC 5681, equation 4, of the window instead of the flight: equal unless the application has no data.
        let part = if self.window.in_slow_start() { 0.5 } else { self.config.decrease };
        self.window.reduce_to(self.window.cwnd * (1.0 - part), how);
    }

    fn window(&self) -> &Window {
        &self.window
    }
    fn clamp(&mut self, max: f64) {
        self.window.cwnd = self.window.cwnd.min(max);
    }
    fn raise(&mut self, min: f64) {
        self.window.cwnd = self.window.cwnd.max(min);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{rounds, timeout_collapses};
    use super::*;

    #[test]
    fn doubles_each_round_and_then_adds_one() {
        let mut reno = Reno::new(RenoConfig::default(), 2.0);
        rounds(&mut reno, 3, 0.1);
        assert_eq!(reno.window().cwnd, 16.0);
        reno.on_congestion(Congestion::Ecn, Time::ZERO);
        rounds(&mut reno, 10, 0.1);
        // A little less than one a round: the window is not a whole number of segments.
        assert!((reno.window().cwnd - 17.5).abs() < 0.5, "{:?}", reno.window());
        timeout_collapses(&mut reno, 0.5);
    }

    #[test]
    fn a_general_decrease_applies_outside_slow_start() {
        let mut reno = Reno::new(RenoConfig { increase: 1.0, decrease: 0.125 }, 16.0);
        reno.on_congestion(Congestion::DupAcks, Time::ZERO);
        assert_eq!(reno.window().cwnd, 8.0);
        reno.on_congestion(Congestion::DupAcks, Time::ZERO);
        assert_eq!(reno.window().cwnd, 7.0);
    }
}
