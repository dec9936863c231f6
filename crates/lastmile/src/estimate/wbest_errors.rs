//! Errors of WBest's available bandwidth by its fluid model: of a wrong effective capacity, and of a train that reaches the last hop at
//! another rate than it was sent at.
//!
//! Li, Claypool, Kinicki, "WBest: a bandwidth estimation tool for multimedia streaming application over IEEE 802.11 wireless networks",
//! section II.D, equations 9 to 16. [`wbest`](super::wbest) is the tool.
//!
//! **Ours.** Equations 9 to 12 leave out a train that is sent below the available bandwidth, which equation 14 has of R_p: it comes as it
//! was sent, so that A' = C'. And the tool never says less than nothing: E is -1 at least. Equation 15 is printed with -X C_e; +X C_e follows
//! from 14, and 16 from that.

/// A last hop in the fluid model, in any unit of rates.
///
/// ```
/// use lastmile::estimate::wbest_errors::LastHop;
/// let hop = LastHop { capacity: 30.0, available: 15.0 };
/// // A capacity of 33 for 30: R = 1.1 * 900 / (2.1 * 30 - 15), A' = 66 - 1089 / R, a fifth of A too little.
/// assert!((hop.of_capacity(0.1) - (0.1 - 0.1 * 1.1 * 2.0)).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastHop {
    /// The effective capacity C_e.
    pub capacity: f64,
    /// The available bandwidth A, above zero.
    pub available: f64,
}

impl LastHop {
    /// The rate at which a train comes out that reaches the hop at `rate`. [WBest eq. 4, 9, 13]
    pub fn output(&self, rate: f64) -> f64 {
        if rate < self.available {
            return rate; // [WBest eq. 14, R_p < A]
        }
        self.capacity * rate / (rate + self.capacity - self.available)
    }

    /// The dispersion rate of a train sent at the wrong capacity (1 + y) C_e. [WBest eq. 10]
    pub fn output_of_capacity(&self, y: f64) -> f64 {
        (1.0 + y) * self.capacity * self.capacity / ((2.0 + y) * self.capacity - self.available)
    }

    /// The available bandwidth that a wrong capacity makes of it. [WBest eq. 11]
    pub fn found_with_capacity(&self, y: f64) -> f64 {
        self.available * (1.0 + y) - self.capacity * y * (1.0 + y)
    }

    /// The relative error of it, as the paper has it. [WBest eq. 12]
    pub fn of_capacity(&self, y: f64) -> f64 {
        y - y * (1.0 + y) * self.capacity / self.available
    }

    /// The same of the tool: where the train is sent below the available bandwidth it comes as it was sent; and no less than nothing is said.
    pub fn of_capacity_clipped(&self, y: f64) -> f64 {
        let sent = (1.0 + y) * self.capacity;
        let error = if sent < self.available { sent / self.available - 1.0 } else { self.of_capacity(y) };
        error.max(-1.0)
    }

    /// The dispersion rate of a train sent at C_e that reaches the hop at (1 + x) C_e. [WBest eq. 14]
    pub fn output_of_arrival(&self, x: f64) -> f64 {
        self.output((1.0 + x) * self.capacity)
    }

    /// The available bandwidth that it makes. [WBest eq. 15]
    pub fn found_with_arrival(&self, x: f64) -> f64 {
        let (c, a) = (self.capacity, self.available);
        if (1.0 + x) * c < a { 2.0 * c - c / (1.0 + x) } else { a / (1.0 + x) + x * c / (1.0 + x) }
    }

    /// The relative error of it: above zero of a train that was compressed. [WBest eq. 16]
    pub fn of_arrival(&self, x: f64) -> f64 {
        let ratio = self.capacity / self.available;
        if (1.0 + x) * self.capacity < self.available {
            return (1.0 + 2.0 * x) * ratio / (1.0 + x) - 1.0;
        }
        x * (ratio - 1.0) / (1.0 + x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOP: LastHop = LastHop { capacity: 30.0, available: 20.0 };

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a}, not {b}");
    }

    /// By hand: a capacity of 36 for 30 meets 10 of others, and leaves at 30 * 36 / 46 = 23.478. A' = 72 - 1296 / 23.478 = 16.8, 16 % too
    /// little.
    #[test]
    fn a_wrong_capacity_by_hand() {
        near(HOP.output(36.0), 1_080.0 / 46.0);
        near(HOP.output_of_capacity(0.2), 1_080.0 / 46.0);
        near(HOP.found_with_capacity(0.2), 16.8);
        near(HOP.of_capacity(0.2), -0.16);
        near(HOP.of_capacity_clipped(0.2), -0.16);
        // A capacity of 24: at 24 * 30 / 34, A' = 48 - 576 / 21.176 = 20.8.
        near(HOP.found_with_capacity(-0.2), 20.8);
        near(HOP.of_capacity(-0.2), 0.04);
    }

    /// A capacity of 15 where 20 are left: the train comes as it was sent, and A' is 15. The paper's equation has 17.5.
    #[test]
    fn below_the_available_bandwidth_a_train_is_not_dispersed() {
        near(HOP.of_capacity_clipped(-0.5), -0.25);
        near(HOP.of_capacity(-0.5), -0.125);
        // And no less than nothing is left: A' = 2 * 20 - 60 is as much below zero as A is above.
        near(HOP.of_capacity(1.0), -2.0);
        near(HOP.of_capacity_clipped(1.0), -1.0);
    }

    /// By hand: a train at 36 in place of 30 leaves at 23.478, A' = 60 - 900 / 23.478 = 21.667; at 15, below what is left, as it came: 0.
    #[test]
    fn another_rate_of_arrival_by_hand() {
        near(HOP.output_of_arrival(0.2), 1_080.0 / 46.0);
        near(HOP.found_with_arrival(0.2), 60.0 - 900.0 * 46.0 / 1_080.0);
        near(HOP.of_arrival(0.2), (60.0 - 900.0 * 46.0 / 1_080.0) / 20.0 - 1.0);
        near(HOP.found_with_arrival(-0.5), 0.0);
        near(HOP.of_arrival(-0.5), -1.0);
        // At the available bandwidth itself both branches are one.
        near(HOP.of_arrival(-1.0 / 3.0), (1.0 - 2.0 / 3.0) * 1.5 / (2.0 / 3.0) - 1.0);
        near(HOP.found_with_arrival(-1.0 / 3.0), 15.0);
    }

    /// Each estimate is the tool's A' = 2 C' - C'^2 / R at the dispersion rate. [WBest eq. 6]
    #[test]
    fn estimates_are_those_of_the_tool_at_that_dispersion() {
        for step in -5..=10 {
            let by = f64::from(step) / 10.0;
            let c = HOP.capacity * (1.0 + by);
            near(HOP.found_with_capacity(by), 2.0 * c - c * c / HOP.output_of_capacity(by));
            near(HOP.of_capacity(by), HOP.found_with_capacity(by) / HOP.available - 1.0);
            let c = HOP.capacity;
            near(HOP.found_with_arrival(by), 2.0 * c - c * c / HOP.output_of_arrival(by));
            near(HOP.of_arrival(by), HOP.found_with_arrival(by) / HOP.available - 1.0);
        }
    }
}
