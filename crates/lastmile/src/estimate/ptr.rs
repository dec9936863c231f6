//! PTR: available bandwidth as the rate at which trains come at the turning point.
//!
//! N. Hu, P. Steenkiste, "Evaluation and characterization of available bandwidth probing techniques", IEEE JSAC 21(6), 2003: the packet transmission rate. It is
//! [`igi`] with another formula for the same trains:
//!
//! > A = L (n - 1) / Σ g over the gaps g received
//!
//! summed over the trains of a gap. The authors trust it more than IGI.

use crate::estimate::igi::{self, Igi, IgiConfig};
use crate::estimate::{Method, Signal};
use crate::observe::signal::{self, Gap};
use crate::options::Options;

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "ptr",
    about: "available bandwidth as the rate of trains at the smallest gap at which they come as they went",
    signal: Signal::Throughput,
    weak: "where others' packets are larger than its own or come in bursts: three trains at one gap may meet fewer than there are in the mean",
    make: |given, conditions| Ok(Box::new(Igi::new(IgiConfig::read(given)?, available, *conditions))),
    ..igi::ENTRY
};

/// PTR's formula: packets have `bits`.
fn available(bits: f64, _: f64, round: &[Vec<Gap>]) -> f64 {
    let all: Vec<Gap> = round.iter().flatten().copied().collect();
    bits * all.len() as f64 / signal::sums(&all)[1].as_secs_f64() // [PTR]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::igi::tests::{drive, gaps, rates};

    /// Five gaps of 500 B in 3 ms and five in 2 ms: 40,000 bits in 5 ms.
    #[test]
    fn available_bandwidth_is_what_came_over_its_time() {
        let round = [gaps(600, &[600, 1_000, 600, 400, 400]), gaps(400, &[400; 5])];
        assert!((available(4_000.0, 400e3, &round) - 8e6).abs() < 1e-3);
    }

    /// Beside 4 Mbit/s trains at g come at 422.4 us + 0.4 g: as they went from 704 us on, the next step of 52.8 us.
    #[test]
    fn beside_a_constant_rate_the_turning_point_is_what_is_left() {
        let found = rates(&drive("ptr(search=binary)", 0.4));
        assert!((found[0] - 10.0).abs() < 0.05 && (5.85..=6.01).contains(&found[1]), "{found:?}");
        let found = rates(&drive("ptr", 0.4));
        assert!((5.5..=6.01).contains(&found[1]), "{found:?}");
    }
}
