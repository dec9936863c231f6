//! TCP's throughput equation and its inverse (RFC 5348, sections 3.1 and 8.1).

/// A TCP connection, as the equation sees it.
///
/// ```
/// use lastmile::control::tfrc::Equation;
/// // 1460 B, 100 ms, one loss event in a hundred packets: 1460 / (0.1 * (0.08165 + 12 * 0.06124 * 0.01 * 1.0032)).
/// let equation = Equation { segment: 1460.0, rtt: 0.1, t_rto: 0.4, capped: false };
/// assert!((equation.bytes_per_second(0.01) - 164_005.0).abs() < 1.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equation {
    /// s: the segment size in bytes.
    pub segment: f64,
    /// R: the round-trip time in seconds.
    pub rtt: f64,
    /// t_RTO: TCP's retransmission timeout in seconds. RFC 5348 says 4 R.
    pub t_rto: f64,
    /// The factor of t_RTO is at most p (1 + 32 p^2), as in ns-2 and in Padhye's full equation.
    pub capped: bool,
}

/// The loss event rate below which the equation is not inverted: a loss event in ten thousand million packets.
const LEAST: f64 = 1e-10;

impl Equation {
    /// With t_RTO = 4 R.
    pub fn rfc(segment: f64, rtt: f64) -> Equation {
        Equation { segment, rtt, t_rto: 4.0 * rtt, capped: false }
    }

    /// X_Bps: bytes a second at loss event rate `p`, which is taken to be 1e-10 to 1.
    pub fn bytes_per_second(&self, p: f64) -> f64 {
        let p = p.clamp(LEAST, 1.0);
        // [RFC 5348, 3.1], with b = 1
        let timeouts = 3.0 * libm::sqrt(3.0 * p / 8.0);
        let timeouts = if self.capped { timeouts.min(1.0) } else { timeouts };
        let seconds = self.rtt * libm::sqrt(2.0 * p / 3.0) + self.t_rto * timeouts * p * (1.0 + 32.0 * p * p);
        self.segment / seconds
    }

    /// The loss event rate that gives so many bytes a second (RFC 5348, section 6.3.1), between 1e-10 and 1.
    ///
    /// ```
    /// # use lastmile::control::tfrc::Equation;
    /// let equation = Equation::rfc(1000.0, 0.05);
    /// assert!((equation.loss_event_rate(equation.bytes_per_second(0.03)) - 0.03).abs() < 1e-6);
    /// ```
    pub fn loss_event_rate(&self, bytes_per_second: f64) -> f64 {
        let (mut low, mut high) = (LEAST, 1.0);
        // The rate falls as p rises; halving the exponent, 40 steps leave a millionth of a millionth of the range.
        for _ in 0..40 {
            let middle = libm::sqrt(low * high);
            if self.bytes_per_second(middle) > bytes_per_second { low = middle } else { high = middle }
        }
        libm::sqrt(low * high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// f(p) of section 8.1, worked by hand: sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32 p^2).
    #[test]
    fn the_simplified_form_is_the_same() {
        for (p, f) in [(0.01, 0.089_021_7), (0.1, 0.564_939_2), (1.0, 243.316_0)] {
            let rate = Equation::rfc(1000.0, 0.1).bytes_per_second(p);
            assert!((rate * 0.1 / 1000.0 * f - 1.0).abs() < 1e-5, "{p}: {}", 10_000.0 / rate);
        }
    }

    #[test]
    fn ns_2s_cap_matters_above_30_percent() {
        let (rfc, capped) =
            (Equation::rfc(1000.0, 0.1), Equation { capped: true, ..Equation::rfc(1000.0, 0.1) });
        assert_eq!(rfc.bytes_per_second(0.29), capped.bytes_per_second(0.29));
        assert!(rfc.bytes_per_second(0.4) < capped.bytes_per_second(0.4));
    }

    proptest! {
        #[test]
        fn the_inverse_is_one(p in 1e-9..1.0_f64, rtt in 1e-6..60.0_f64, segment in 40.0..65_535.0_f64, capped in any::<bool>()) {
            let equation = Equation { capped, ..Equation::rfc(segment, rtt) };
            let back = equation.loss_event_rate(equation.bytes_per_second(p));
            prop_assert!((back / p - 1.0).abs() < 1e-6, "{} {}", p, back);
        }

        #[test]
        fn any_rate_has_a_loss_event_rate(rate in any::<f64>(), rtt in 1e-6..60.0_f64) {
            let p = Equation::rfc(1000.0, rtt).loss_event_rate(rate);
            prop_assert!((LEAST..=1.0).contains(&p), "{}", p);
        }
    }
}
