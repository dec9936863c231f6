//! CUBIC (RFC 9438).

use super::{Acked, Congestion, Window, WindowLaw};
use crate::time::{Span, Time};

/// CUBIC's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct CubicConfig {
    /// The scale of the cubic, in segments per cubic second (section 5).
    pub c: f64,
    /// The part of the window that a decrease keeps (section 4.6).
    pub beta: f64,
    /// True if a flow that loses again below its last maximum gives way (section 4.7).
    pub fast_convergence: bool,
}

impl Default for CubicConfig {
    fn default() -> CubicConfig {
        CubicConfig { c: 0.4, beta: 0.7, fast_convergence: true }
    }
}

/// CUBIC, without HyStart++.
///
/// ```
/// use lastmile::{control::window::*, time::Time};
/// let (mut cubic, mut window) = (Cubic::new(CubicConfig::default()), Window::new(100.0));
/// cubic.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
/// assert!((window.cwnd - 70.0).abs() < 1e-9);
/// ```
#[derive(Clone, Debug)]
pub struct Cubic {
    config: CubicConfig,
    /// W_max: the window before the last decrease, less when converging fast, nothing after a timeout.
    max: f64,
    /// The window before the last decrease, as it was.
    prior: f64,
    epoch: Option<Epoch>,
    rtt: Span,
}

/// A stage of congestion avoidance (section 4.2).
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    k: f64,
    /// W_est: the window of Reno with the same mean (section 4.3).
    reno: f64,
}

impl Cubic {
    /// The law with these numbers.
    pub fn new(config: CubicConfig) -> Cubic {
        Cubic { config, max: 0.0, prior: 0.0, epoch: None, rtt: Span::ZERO }
    }

    /// W_cubic(t) = C (t - K)^3 + W_max (equation 1).
    fn cubic(&self, t: f64, k: f64) -> f64 {
        self.config.c * (t - k) * (t - k) * (t - k) + self.max
    }
}

impl WindowLaw for Cubic {
    fn on_ack(&mut self, window: &mut Window, ack: &Acked) {
        if let Some(rtt) = ack.rtt {
            self.rtt = rtt;
        }
        if window.in_slow_start() {
            window.slow_start(ack.segments);
            return;
        }
        let cwnd = window.cwnd;
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => {
                // Without a decrease before it, or beyond it, the plateau is here (section 4.8).
                self.max = self.max.max(cwnd);
                // Equation 2.
                let k = libm::cbrt((self.max - cwnd) / self.config.c);
                Epoch { start: ack.now, k, reno: cwnd }
            }
        };
        // Equation 4, with alpha = 1 from the moment at which Reno would have regained its window.
        let alpha = if epoch.reno >= self.prior {
            1.0
        } else {
            3.0 * (1.0 - self.config.beta) / (1.0 + self.config.beta)
        };
        epoch.reno += alpha * ack.segments / cwnd;
        self.epoch = Some(epoch);
        let t = (ack.now - epoch.start).as_secs_f64();
        if self.cubic(t, epoch.k) < epoch.reno {
            // Section 4.3: no slower than Reno.
            window.cwnd = cwnd.max(epoch.reno);
        } else {
            // Sections 4.4 and 4.5: towards the cubic one round-trip time ahead, at most half as much again.
            let target = self.cubic(t + self.rtt.as_secs_f64(), epoch.k).clamp(cwnd, 1.5 * cwnd);
            window.cwnd += (target - cwnd) * ack.segments / cwnd;
        }
    }

    fn on_congestion(&mut self, window: &mut Window, how: Congestion, _now: Time) {
        let cwnd = window.cwnd;
        self.max = if how == Congestion::Timeout {
            // Section 4.8: the plateau, with K = 0, is where the next stage of congestion avoidance begins.
            0.0
        } else if self.config.fast_convergence && cwnd < self.max {
            // Section 4.7.
            cwnd * (1.0 + self.config.beta) / 2.0
        } else {
            cwnd
        };
        self.prior = cwnd;
        self.epoch = None;
        window.reduce_to(cwnd * self.config.beta, how);
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
    fn comes_back_to_the_last_maximum_after_k_seconds() {
        let (mut cubic, mut window) = (Cubic::new(CubicConfig::default()), Window::new(1000.0));
        cubic.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
        // K = cbrt(300 / 0.4) = 9.086 s.
        let (mut longer, mut later) = (cubic.clone(), window);
        rounds(&mut cubic, &mut window, 90, 0.1);
        assert!((window.cwnd - 1000.0).abs() < 5.0, "{window:?}");
        rounds(&mut longer, &mut later, 180, 0.1);
        assert!((later.cwnd - 1284.0).abs() < 15.0, "{later:?}");
        timeout_collapses(&mut cubic, &mut window, 0.7);
    }

    #[test]
    fn is_no_slower_than_reno_on_a_short_path() {
        let (mut cubic, mut window) = (Cubic::new(CubicConfig::default()), Window::new(20.0));
        cubic.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
        rounds(&mut cubic, &mut window, 20, 0.005);
        // alpha = 0.53 a round for the 11 rounds in which 20 is regained, then 1.
        assert!((window.cwnd - 28.4).abs() < 0.6, "{window:?}");
    }

    /// Section 4.8: a timeout forgets the state before it; the cubic begins, flat, where slow start ends.
    #[test]
    fn after_a_timeout_the_plateau_is_where_slow_start_ends() {
        let (mut cubic, mut window) = (Cubic::new(CubicConfig::default()), Window::new(1000.0));
        cubic.on_congestion(&mut window, Congestion::Timeout, Time::ZERO);
        while window.in_slow_start() {
            cubic.on_ack(
                &mut window,
                &Acked { segments: 1.0, rtt: None, now: Time::ZERO, round_ended: false },
            );
        }
        assert_eq!(window.cwnd, 700.0);
        rounds(&mut cubic, &mut window, 50, 0.1);
        // 700 + 0.4 * 5^3.
        assert!((window.cwnd - 750.0).abs() < 3.0, "{window:?}");
    }

    #[test]
    fn a_second_loss_on_the_way_up_gives_way() {
        let (mut cubic, mut window) = (Cubic::new(CubicConfig::default()), Window::new(100.0));
        cubic.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
        cubic.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
        assert!((cubic.max - 59.5).abs() < 1e-9, "{}", cubic.max);
    }
}
