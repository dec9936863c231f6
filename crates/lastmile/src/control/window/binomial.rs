//! Binomial congestion control (Bansal and Balakrishnan, INFOCOM 2001): I: w += a / w^k per round-trip time,
//! D: w -= b w^l. Friendly to TCP where k + l = 1 and a / b = 1.5 (its throughput is sqrt(a/b) / (R sqrt p), TCP's
//! sqrt(1.5) / (R sqrt p)).

use super::{Acked, Congestion, Window, WindowLaw};
use crate::time::Time;

/// The four numbers of a binomial law.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct BinomialConfig {
    /// The increase, alpha in the paper.
    pub a: f64,
    /// The decrease, beta in the paper.
    pub b: f64,
    /// The exponent of the increase.
    pub k: f64,
    /// The exponent of the decrease.
    pub l: f64,
}

impl BinomialConfig {
    /// Inverse increase, additive decrease.
    pub const IIAD: BinomialConfig = BinomialConfig { a: 1.0, b: 0.667, k: 1.0, l: 0.0 };
    /// The square-root law.
    pub const SQRT: BinomialConfig = BinomialConfig { a: 1.0, b: 0.667, k: 0.5, l: 0.5 };
}

impl Default for BinomialConfig {
    fn default() -> BinomialConfig {
        BinomialConfig::SQRT
    }
}

/// A binomial law. The decrease that ends slow start is to one half, as in [`Reno`](super::Reno), and after a timeout slow start goes on to
/// one half, as in ns-2: rule D is for losses that duplicate ACKs tell of, not for a whole window.
///
/// ```
/// use lastmile::{control::window::*, time::Time};
/// let (mut iiad, mut window) = (Binomial::new(BinomialConfig::IIAD), Window::new(8.0));
/// iiad.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
/// iiad.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
/// assert!((window.cwnd - 3.333).abs() < 1e-9);
/// ```
#[derive(Clone, Debug)]
pub struct Binomial {
    config: BinomialConfig,
}

impl Binomial {
    /// The law with these numbers.
    pub fn new(config: BinomialConfig) -> Binomial {
        Binomial { config }
    }
}

/// `libm::pow`, with the exponents of the named laws spared its cost.
#[inline]
fn power(w: f64, exponent: f64) -> f64 {
    if exponent == 0.0 {
        1.0
    } else if exponent == 1.0 {
        w
    } else if exponent == 0.5 {
        w.sqrt()
    } else {
        libm::pow(w, exponent)
    }
}

impl WindowLaw for Binomial {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Acked) {
        let cwnd = window.cwnd;
        if window.in_slow_start() {
            window.slow_start(ack.segments);
        } else {
            // Rule I, spread over the w ACKs of a round-trip time.
            window.cwnd += self.config.a * ack.segments / (cwnd * power(cwnd, self.config.k));
        }
    }

    fn on_congestion(&mut self, window: &mut Window, how: Congestion, _now: Time) {
        let cwnd = window.cwnd;
        let to = if window.in_slow_start() || how == Congestion::Timeout {
            cwnd / 2.0
        } else {
            // Rule D.
            cwnd - self.config.b * power(cwnd, self.config.l)
        };
        window.reduce_to(to, how);
    }

    fn clone_box(&self) -> Box<dyn WindowLaw> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{rounds, sawtooth_mean};
    use super::*;

    #[test]
    fn a_round_adds_a_over_w_to_the_k() {
        let (mut iiad, mut window) = (Binomial::new(BinomialConfig::IIAD), Window::new(20.0));
        iiad.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
        rounds(&mut iiad, &mut window, 1, 0.1);
        assert!((window.cwnd - 10.1).abs() < 0.01, "{window:?}");
        let (mut general, mut window) =
            (Binomial::new(BinomialConfig { a: 1.0, b: 0.5, k: 0.25, l: 0.75 }), Window::new(32.0));
        general.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
        general.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
        assert!((window.cwnd - 12.0).abs() < 1e-9); // 16 - 0.5 * 16^0.75
    }

    #[test]
    fn a_timeout_leaves_half_of_the_window_for_slow_start() {
        let (mut iiad, mut window) = (Binomial::new(BinomialConfig::IIAD), Window::new(40.0));
        iiad.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
        iiad.on_congestion(&mut window, Congestion::Timeout, Time::ZERO);
        assert_eq!((window.cwnd, window.ssthresh), (1.0, 10.0));
    }

    /// Under loss of every 1/p-th packet the mean window is sqrt(1.5 / p) for TCP and near sqrt(a / (b p)) for the
    /// others with k + l = 1.
    #[test]
    fn the_mean_window_is_the_same_for_all_friendly_laws() {
        for (k, l) in [(1.0, 0.0), (0.5, 0.5), (0.0, 1.0)] {
            let b = if k == 0.0 { 0.5 } else { 0.667 };
            let (mut law, mut window) =
                (Binomial::new(BinomialConfig { a: 1.0, b, k, l }), Window::new(10.0));
            let mean = sawtooth_mean(&mut law, &mut window, 1000);
            let expected = (1.5_f64 * 1000.0).sqrt();
            assert!((mean / expected - 1.0).abs() < 0.06, "k {k}: {mean} instead of {expected}");
        }
    }
}
