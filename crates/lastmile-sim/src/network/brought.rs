//! [`Brought`]: bytes that flows have brought, in steps of time, for means over windows that are known later.

use lastmile::time::{Span, Time};

/// Sums of bytes at the ends of even steps.
#[derive(Clone, Debug, Default)]
pub struct Brought {
    bytes: Vec<u64>,
}

impl Brought {
    /// Length of a step. Windows end within steps: these are divided evenly.
    pub const STEP: Span = Span::from_millis(10);

    /// When the next sum is due.
    pub fn next(&self) -> Time {
        Time::ZERO + Brought::STEP * self.bytes.len() as i64
    }

    /// Adds the sum that was due.
    pub fn add(&mut self, bytes: u64) {
        self.bytes.push(bytes);
    }

    /// The sum at a time; `None` beyond the last step.
    fn at(&self, time: Time) -> Option<f64> {
        let steps = (time - Time::ZERO).as_secs_f64() / Brought::STEP.as_secs_f64();
        let (before, part) = (steps as usize, steps.fract());
        let first = *self.bytes.get(before)? as f64;
        let next = if part > 0.0 { *self.bytes.get(before + 1)? as f64 } else { first };
        Some(first + part * (next - first))
    }

    /// The mean rate between two times, bit/s; `None` where that is no time, or beyond the last step.
    pub fn rate(&self, from: Time, to: Time) -> Option<f64> {
        let seconds = (to - from).as_secs_f64();
        let rate = (self.at(to)? - self.at(from)?) * 8.0 / seconds;
        (seconds > 0.0).then_some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_its_window_and_steps_are_divided_evenly() {
        let mut brought = Brought::default();
        for sum in [0, 1_000, 3_000] {
            brought.add(sum);
        }
        assert_eq!(brought.next(), Time::from_nanos(30_000_000));
        let ms = |ms: f64| Time::from_nanos((ms * 1e6) as u64);
        // 500 B of the first step and 1000 B of the second, in 10 ms.
        assert!((brought.rate(ms(5.0), ms(15.0)).unwrap() - 1_200_000.0).abs() < 1e-6);
        assert!((brought.rate(ms(0.0), ms(20.0)).unwrap() - 1_200_000.0).abs() < 1e-6);
        assert_eq!((brought.rate(ms(5.0), ms(5.0)), brought.rate(ms(0.0), ms(21.0))), (None, None));
    }
}
