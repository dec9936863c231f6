//! Time: [`Time`] since the run's start, signed [`Span`], and clock domains as types.
//!
//! Every estimator of the papers takes stamps of two clocks that nobody synchronised. The classic error is
//! to subtract one from the other and to believe the difference. Here a [`Time`] names the clock that it was
//! read from: [`Local`] (the clock of the endpoint that runs this code), or, within a probing stream, [`Tx`]
//! (the clock of the packet's sender) and [`Rx`] (that of its receiver). Across the two only a
//! relative one-way delay exists, [`Owd`], and only its changes mean anything.

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub};
use core::str::FromStr;

use crate::text::{ParseUnitError, Significant, Wanted, named, parse_with_unit};

/// A signed length of time in nanoseconds.
///
/// Arithmetic saturates: stamps come from the network, and no stamp may make a program panic.
///
/// ```
/// use lastmile::time::Span;
/// let gap = Span::from_micros(1200);
/// assert_eq!(gap * 29, Span::from_nanos(34_800_000));
/// assert_eq!((gap - gap * 2).to_string(), "-1.2 ms");
/// assert_eq!("10 ms".parse::<Span>().unwrap(), Span::from_millis(10));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Span(i64);

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest span, about 292 years.
    ///
    /// ```
    /// # use lastmile::time::Span;
    /// assert_eq!(Span::MAX + Span::from_secs(1), Span::MAX); // saturates
    /// ```
    pub const MAX: Span = Span(i64::MAX);

    /// `ns` nanoseconds.
    pub const fn from_nanos(ns: i64) -> Span {
        Span(ns)
    }

    /// `us` microseconds.
    pub const fn from_micros(us: i64) -> Span {
        Span(us.saturating_mul(1_000))
    }

    /// `ms` milliseconds.
    pub const fn from_millis(ms: i64) -> Span {
        Span(ms.saturating_mul(1_000_000))
    }

    /// `s` seconds.
    pub const fn from_secs(s: i64) -> Span {
        Span(s.saturating_mul(1_000_000_000))
    }

    /// `s` seconds, to the nearest nanosecond; not-a-number gives zero.
    pub fn from_secs_f64(s: f64) -> Span {
        Span(libm::round(s * 1e9) as i64)
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span without its sign.
    #[must_use]
    pub const fn abs(self) -> Span {
        Span(self.0.saturating_abs())
    }

    /// This span times `factor`, to the nearest nanosecond.
    ///
    /// ```
    /// # use lastmile::time::Span;
    /// assert_eq!(Span::from_nanos(10).scaled(0.25), Span::from_nanos(3));
    /// ```
    #[must_use]
    pub fn scaled(self, factor: f64) -> Span {
        Span(libm::round(self.0 as f64 * factor) as i64)
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}
impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}
impl Neg for Span {
    type Output = Span;
    fn neg(self) -> Span {
        Span(self.0.saturating_neg())
    }
}
impl Mul<i64> for Span {
    type Output = Span;
    fn mul(self, n: i64) -> Span {
        Span(self.0.saturating_mul(n))
    }
}
impl Div<i64> for Span {
    type Output = Span;
    /// Division towards zero; by zero it gives the longest span of the sign.
    fn div(self, n: i64) -> Span {
        Span(self.0.checked_div(n).unwrap_or(if self.0 < 0 { i64::MIN } else { i64::MAX }))
    }
}
impl core::iter::Sum for Span {
    fn sum<I: Iterator<Item = Span>>(iter: I) -> Span {
        iter.fold(Span::ZERO, |a, b| a + b)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let n = self.0.unsigned_abs();
        let text = match n {
            n if n < 1_000 => format!("{sign}{n} ns"),
            n if n < 1_000_000 => format!("{sign}{} us", Significant(n as f64 / 1e3)),
            n if n < 1_000_000_000 => format!("{sign}{} ms", Significant(n as f64 / 1e6)),
            n => format!("{sign}{} s", Significant(n as f64 / 1e9)),
        };
        f.pad(&text)
    }
}

impl FromStr for Span {
    type Err = ParseUnitError;
    /// Reads "10 ms", "2min" and "2m"; a bare number is seconds.
    fn from_str(s: &str) -> Result<Span, ParseUnitError> {
        const UNITS: &[(&str, f64)] = &[
            ("ns", 1.0),
            ("us", 1e3),
            ("ms", 1e6),
            ("s", 1e9),
            ("", 1e9),
            ("m", 6e10),
            ("min", 6e10),
            ("h", 3.6e12),
        ];
        let (negative, digits) = match s.trim().strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, s),
        };
        let ns = parse_with_unit(digits, |unit| named(UNITS, unit), Wanted::Time)?;
        let ns = ns as i64;
        Ok(Span(if negative { -ns } else { ns }))
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Local {}
    impl Sealed for super::Tx {}
    impl Sealed for super::Rx {}
}

/// The clock that a [`Time`] was read from. Implemented by [`Local`], [`Tx`] and [`Rx`] only.
pub trait Clock: sealed::Sealed + 'static {}

/// The clock of the endpoint that runs this code: the only one that drivers and `poll` speak of.
#[derive(Clone, Copy, Debug)]
pub enum Local {}
/// The clock of the sender of a stream's packets.
#[derive(Clone, Copy, Debug)]
pub enum Tx {}
/// The clock of the receiver of a stream's packets.
#[derive(Clone, Copy, Debug)]
pub enum Rx {}

impl Clock for Local {}
impl Clock for Tx {}
impl Clock for Rx {}

/// Nanoseconds since the run's start, on the clock `C`.
///
/// ```
/// use lastmile::time::{Span, Time};
/// let start: Time = Time::ZERO;
/// let later = start + Span::from_millis(3);
/// assert_eq!(later - start, Span::from_millis(3));
/// assert_eq!(later.to_string(), "0.003000000 s");
/// ```
///
/// Two clocks do not mix:
///
/// ```compile_fail
/// use lastmile::time::{Rx, Span, Time, Tx};
/// let sent: Time<Tx> = Time::from_nanos(0);
/// let arrived: Time<Rx> = Time::from_nanos(9);
/// let delay: Span = arrived - sent; // an Owd, which is not a Span
/// ```
pub struct Time<C: Clock = Local> {
    ns: u64,
    clock: PhantomData<fn() -> C>,
}

impl<C: Clock> Time<C> {
    /// The start of the run.
    ///
    /// ```
    /// # use lastmile::time::{Span, Time};
    /// assert_eq!(Time::<lastmile::time::Local>::ZERO - Span::from_secs(1), Time::ZERO); // saturates
    /// ```
    pub const ZERO: Time<C> = Time { ns: 0, clock: PhantomData };
    /// Later than everything.
    pub const MAX: Time<C> = Time { ns: u64::MAX, clock: PhantomData };

    /// `ns` nanoseconds after the run's start.
    pub const fn from_nanos(ns: u64) -> Time<C> {
        Time { ns, clock: PhantomData }
    }

    /// Nanoseconds since the run's start.
    pub const fn as_nanos(self) -> u64 {
        self.ns
    }

    /// Seconds since the run's start.
    pub fn as_secs_f64(self) -> f64 {
        self.ns as f64 / 1e9
    }
}

impl Time<Local> {
    /// This endpoint sent the packet: its own clock is the sender's.
    pub const fn as_sender(self) -> Time<Tx> {
        Time::from_nanos(self.ns)
    }

    /// This endpoint received the packet: its own clock is the receiver's.
    pub const fn as_receiver(self) -> Time<Rx> {
        Time::from_nanos(self.ns)
    }
}

// Derives would ask the marker types for the traits; they have no values.
impl<C: Clock> Clone for Time<C> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<C: Clock> Copy for Time<C> {}
impl<C: Clock> PartialEq for Time<C> {
    fn eq(&self, other: &Self) -> bool {
        self.ns == other.ns
    }
}
impl<C: Clock> Eq for Time<C> {}
impl<C: Clock> PartialOrd for Time<C> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<C: Clock> Ord for Time<C> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.ns.cmp(&other.ns)
    }
}
impl<C: Clock> core::hash::Hash for Time<C> {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.ns.hash(state);
    }
}
impl<C: Clock> Default for Time<C> {
    fn default() -> Self {
        Self::ZERO
    }
}
impl<C: Clock> fmt::Debug for Time<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
impl<C: Clock> fmt::Display for Time<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.ns / 1_000_000_000, self.ns % 1_000_000_000)
    }
}
#[cfg(feature = "serde")]
impl<C: Clock> serde::Serialize for Time<C> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.ns)
    }
}
#[cfg(feature = "serde")]
impl<'de, C: Clock> serde::Deserialize<'de> for Time<C> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Time::from_nanos)
    }
}

impl<C: Clock> Add<Span> for Time<C> {
    type Output = Time<C>;
    fn add(self, span: Span) -> Time<C> {
        Time::from_nanos(self.ns.saturating_add_signed(span.0))
    }
}
impl<C: Clock> AddAssign<Span> for Time<C> {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl<C: Clock> Sub<Span> for Time<C> {
    type Output = Time<C>;
    fn sub(self, span: Span) -> Time<C> {
        self + -span
    }
}
impl<C: Clock> Sub for Time<C> {
    type Output = Span;
    fn sub(self, other: Time<C>) -> Span {
        Span(signed_difference(self.ns, other.ns))
    }
}

fn signed_difference(a: u64, b: u64) -> i64 {
    i64::try_from(i128::from(a) - i128::from(b)).unwrap_or(if a > b { i64::MAX } else { i64::MIN })
}

/// A relative one-way delay: the receiver's stamp less the sender's. The clocks' unknown offset is in it, so
/// only the difference of two of them, a [`Span`], means anything.
///
/// ```
/// use lastmile::time::{Rx, Span, Time, Tx};
/// let sent: [Time<Tx>; 2] = [Time::from_nanos(0), Time::from_nanos(100)];
/// let arrived: [Time<Rx>; 2] = [Time::from_nanos(9_000), Time::from_nanos(9_150)];
/// let grown: Span = (arrived[1] - sent[1]) - (arrived[0] - sent[0]);
/// assert_eq!(grown, Span::from_nanos(50));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Owd(i64);

impl Owd {
    /// The stamps' difference in nanoseconds, clock offset included: for storage and plots.
    pub const fn relative_nanos(self) -> i64 {
        self.0
    }
}

impl Sub<Time<Tx>> for Time<Rx> {
    type Output = Owd;
    fn sub(self, sent: Time<Tx>) -> Owd {
        Owd(signed_difference(self.ns, sent.ns))
    }
}
impl Sub for Owd {
    type Output = Span;
    fn sub(self, other: Owd) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}
impl Sub<Span> for Owd {
    type Output = Owd;
    /// Takes out a known part, such as the drift of one clock against the other.
    fn sub(self, span: Span) -> Owd {
        Owd(self.0.saturating_sub(span.0))
    }
}

/// When the run started, in wall time: supplied by drivers to endpoints whose protocol wants NTP stamps.
///
/// ```
/// use lastmile::time::{Epoch, Time};
/// let epoch = Epoch::from_unix_nanos(1_000_000_000);
/// assert_eq!(epoch.unix_nanos(Time::from_nanos(7)), 1_000_000_007);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Epoch(u64);

impl Epoch {
    /// A run that started `ns` nanoseconds after 1970-01-01 UTC.
    pub const fn from_unix_nanos(ns: u64) -> Epoch {
        Epoch(ns)
    }

    /// Wall time, in nanoseconds since 1970-01-01 UTC, of a moment of the run.
    pub const fn unix_nanos(self, at: Time) -> u64 {
        self.0.saturating_add(at.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_arithmetic_panics(a in any::<u64>(), b in any::<u64>(), n in any::<i64>(), m in any::<i64>()) {
            let (x, y): (Time, Time) = (Time::from_nanos(a), Time::from_nanos(b));
            let (s, t) = (Span::from_nanos(n), Span::from_nanos(m));
            let _ = (x - y, x + s, x - s, s + t, s - t, -s, s * m, s / m, s.abs(), s.scaled(1e300));
            let owd = Time::<Rx>::from_nanos(a) - Time::<Tx>::from_nanos(b);
            let _ = (owd - s, owd - owd);
        }

        #[test]
        fn spans_read_what_they_print_within_four_digits(n in -10_000_000_000_000_i64..10_000_000_000_000) {
            let back: Span = Span::from_nanos(n).to_string().parse().unwrap();
            prop_assert!((back.as_nanos() - n).unsigned_abs() <= n.unsigned_abs() / 1000);
        }
    }
}
