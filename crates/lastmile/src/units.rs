//! Quantities: [`Rate`], [`Bytes`], the [`Layer`] at which they are counted, and [`Share`].
//!
//! The original tools disagree with each other by up to 8 % only because one counts UDP payload, one IP
//! packets and one Ethernet frames. A [`Rate`] therefore carries its layer, and changing it needs the
//! packet size.

use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub};
use core::str::FromStr;

pub use crate::text::ParseUnitError;
use crate::text::{Significant, Wanted, named, not_wanted, parse_with_unit};
use crate::time::Span;

/// A number of bytes.
///
/// ```
/// use lastmile::units::Bytes;
/// assert_eq!("60 kB".parse::<Bytes>().unwrap(), Bytes(60_000));
/// assert_eq!(Bytes(1500).to_string(), "1500 B");
/// assert_eq!((Bytes(1000) + Bytes(500)) * 2, Bytes(3000));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// The number of bits.
    pub fn bits(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// Subtraction that stops at zero.
    pub fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        self.saturating_sub(other)
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;
    fn mul(self, n: u64) -> Bytes {
        Bytes(self.0.saturating_mul(n))
    }
}

impl core::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes::ZERO, |a, b| a + b)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 10_000 => write!(f, "{n} B"),
            n if n < 10_000_000 => write!(f, "{} kB", Significant(n as f64 / 1e3)),
            n => write!(f, "{} MB", Significant(n as f64 / 1e6)),
        }
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;
    /// Reads "60 kB" and "64 KiB": k, M and G are powers of 1000, Ki, Mi and Gi of 1024, and B is a byte. Nothing but 0 goes
    /// without a unit.
    fn from_str(s: &str) -> Result<Bytes, ParseUnitError> {
        if s.trim() == "0" {
            return Ok(Bytes::ZERO);
        }
        const UNITS: &[(&str, f64)] = &[
            ("B", 1.0),
            ("kB", 1e3),
            ("KB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("KiB", 1024.0),
            ("MiB", 1_048_576.0),
            ("GiB", 1_073_741_824.0),
        ];
        let n = parse_with_unit(s, |unit| named(UNITS, unit), Wanted::Bytes)?;
        Ok(Bytes(n as u64))
    }
}

/// The version of the Internet Protocol, which decides how large the headers are.
///
/// ```
/// use lastmile::units::{Bytes, IpVersion};
/// assert_eq!(IpVersion::V4.udp_overhead(), Bytes(28));
/// assert_eq!(IpVersion::V6.udp_overhead(), Bytes(48));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum IpVersion {
    /// IPv4: 20 bytes of header.
    #[default]
    V4,
    /// IPv6: 40 bytes of header.
    V6,
}

impl IpVersion {
    /// Bytes of IP and UDP header in front of a UDP payload.
    pub const fn udp_overhead(self) -> Bytes {
        match self {
            IpVersion::V4 => Bytes(28),
            IpVersion::V6 => Bytes(48),
        }
    }

    /// The version that an address belongs to.
    pub fn of(address: core::net::SocketAddr) -> IpVersion {
        if address.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 }
    }
}

/// Bytes of an Ethernet header, as the original tools count a frame (no FCS, preamble or gap).
pub const ETHERNET_HEADER: Bytes = Bytes(14);

/// The layer at which packets are counted: the headers that belong to their size.
///
/// ```
/// use lastmile::units::{Bytes, IpVersion, Layer};
/// let payload = Bytes(1460);
/// assert_eq!(Layer::Payload.size_of(payload, IpVersion::V4), Bytes(1460));
/// assert_eq!(Layer::Ip.size_of(payload, IpVersion::V4), Bytes(1488));
/// assert_eq!(Layer::Ethernet.size_of(payload, IpVersion::V4), Bytes(1502));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Layer {
    /// UDP payload.
    Payload,
    /// IP packets with their headers: the layer of all results and truths unless asked otherwise.
    #[default]
    Ip,
    /// Ethernet frames: IP packets and 14 bytes ([`ETHERNET_HEADER`]).
    Ethernet,
}

impl Layer {
    /// The size, at this layer, of a packet with `payload` bytes of UDP payload.
    pub fn size_of(self, payload: Bytes, ip: IpVersion) -> Bytes {
        match self {
            Layer::Payload => payload,
            Layer::Ip => payload + ip.udp_overhead(),
            Layer::Ethernet => payload + ip.udp_overhead() + ETHERNET_HEADER,
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Payload => "payload",
            Layer::Ip => "IP",
            Layer::Ethernet => "Ethernet",
        })
    }
}

/// A bit rate, counted at a [`Layer`].
///
/// Rates of different layers do not compare: `partial_cmp` gives `None` and `==` is false.
///
/// ```
/// use lastmile::units::{Bytes, IpVersion, Layer, Rate};
/// use lastmile::time::Span;
/// let rate: Rate = "5.12 Mbit/s".parse().unwrap();
/// assert_eq!(rate, Rate::ip(5_120_000));
/// assert_eq!(rate.to_string(), "5.12 Mbit/s");
/// assert_eq!(rate.time_for(Bytes(1500)), Span::from_micros(2_344) - Span::from_nanos(250));
/// // 1460 bytes of payload are 1488 at the IP layer:
/// let payload = rate.at(Layer::Payload, Bytes(1460), IpVersion::V4);
/// assert_eq!(payload.bits_per_second(), 5_023_656);
/// assert_eq!(payload.partial_cmp(&rate), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rate {
    bits_per_second: u64,
    layer: Layer,
}

impl Rate {
    /// A rate of `bits_per_second`, counted at `layer`.
    pub const fn new(bits_per_second: u64, layer: Layer) -> Rate {
        Rate { bits_per_second, layer }
    }

    /// A rate of `bits_per_second` of IP packets.
    pub const fn ip(bits_per_second: u64) -> Rate {
        Rate::new(bits_per_second, Layer::Ip)
    }

    /// The rate that carries `bytes` of `layer` in `span`; `None` where `span` is not positive.
    ///
    /// ```
    /// # use lastmile::{time::Span, units::{Bytes, Layer, Rate}};
    /// assert_eq!(Rate::over(Bytes(1500), Span::from_micros(1200), Layer::Ip), Some(Rate::ip(10_000_000)));
    /// assert_eq!(Rate::over(Bytes(1500), Span::ZERO, Layer::Ip), None);
    /// ```
    pub fn over(bytes: Bytes, span: Span, layer: Layer) -> Option<Rate> {
        if span <= Span::ZERO {
            return None;
        }
        let bits = u128::from(bytes.bits()) * 1_000_000_000;
        let ns = span.as_nanos() as u128;
        Some(Rate::new(u64::try_from((bits + ns / 2) / ns).unwrap_or(u64::MAX), layer))
    }

    /// Bits per second at this rate's layer.
    pub const fn bits_per_second(self) -> u64 {
        self.bits_per_second
    }

    /// The layer at which the bits are counted.
    pub const fn layer(self) -> Layer {
        self.layer
    }

    /// Time to send `bytes` (counted at this rate's layer), to the nearest nanosecond. A rate of zero gives
    /// [`Span::MAX`].
    pub fn time_for(self, bytes: Bytes) -> Span {
        if self.bits_per_second == 0 {
            return Span::MAX;
        }
        let rate = u128::from(self.bits_per_second);
        let ns = (u128::from(bytes.bits()) * 1_000_000_000 + rate / 2) / rate;
        Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
    }

    /// Bytes that this rate carries in `span`, rounded down; none where `span` is negative.
    ///
    /// ```
    /// # use lastmile::{time::Span, units::{Bytes, Rate}};
    /// assert_eq!(Rate::ip(10_000_000).bytes_in(Span::from_millis(12)), Bytes(15_000));
    /// ```
    pub fn bytes_in(self, span: Span) -> Bytes {
        let ns = u128::try_from(span.as_nanos()).unwrap_or(0);
        Bytes(u64::try_from(u128::from(self.bits_per_second) * ns / 8_000_000_000).unwrap_or(u64::MAX))
    }

    /// The same packets counted at another layer, for packets of `payload` bytes of UDP payload.
    ///
    /// ```
    /// # use lastmile::units::{Bytes, IpVersion, Layer, Rate};
    /// let ethernet = Rate::ip(10_000_000).at(Layer::Ethernet, Bytes(1472), IpVersion::V4);
    /// assert_eq!(ethernet.bits_per_second(), 10_093_333); // 1514 / 1500
    /// ```
    #[must_use]
    pub fn at(self, layer: Layer, payload: Bytes, ip: IpVersion) -> Rate {
        let from = u128::from(self.layer.size_of(payload, ip).0.max(1));
        let to = u128::from(layer.size_of(payload, ip).0);
        let bps = (u128::from(self.bits_per_second) * to + from / 2) / from;
        Rate::new(u64::try_from(bps).unwrap_or(u64::MAX), layer)
    }

    /// This rate times `factor`, at the same layer; a factor that is negative or not a number gives zero.
    ///
    /// ```
    /// # use lastmile::units::Rate;
    /// assert_eq!(Rate::ip(1000).scaled(1.5), Rate::ip(1500));
    /// assert_eq!(Rate::ip(1000).scaled(-1.0), Rate::ip(0));
    /// ```
    #[must_use]
    pub fn scaled(self, factor: f64) -> Rate {
        // A float cast saturates, and takes NaN to zero.
        Rate::new((self.bits_per_second as f64 * factor + 0.5) as u64, self.layer)
    }

    /// `self / other` as a number, or `None` across layers or where `other` is zero.
    ///
    /// ```
    /// # use lastmile::units::Rate;
    /// assert_eq!(Rate::ip(3).ratio(Rate::ip(4)), Some(0.75));
    /// ```
    pub fn ratio(self, other: Rate) -> Option<f64> {
        (self.layer == other.layer && other.bits_per_second > 0)
            .then(|| self.bits_per_second as f64 / other.bits_per_second as f64)
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Rate) -> Option<core::cmp::Ordering> {
        (self.layer == other.layer).then(|| self.bits_per_second.cmp(&other.bits_per_second))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.bits_per_second {
            n if n < 1_000 => format!("{n} bit/s"),
            n if n < 1_000_000 => format!("{} kbit/s", Significant(n as f64 / 1e3)),
            n if n < 1_000_000_000 => format!("{} Mbit/s", Significant(n as f64 / 1e6)),
            n => format!("{} Gbit/s", Significant(n as f64 / 1e9)),
        };
        f.pad(&text)
    }
}

impl FromStr for Rate {
    type Err = ParseUnitError;
    /// Reads "5.12 Mbit/s", and as other programs write it "5.12M", "5.12Mbps" and "5.12mbit"; the layer is IP.
    fn from_str(s: &str) -> Result<Rate, ParseUnitError> {
        Ok(Rate::ip(parse_with_unit(s, bits, Wanted::Rate)? as u64))
    }
}

/// Bits per second of a unit such as "Mbit/s". Its prefix may be small, as in "mbps"; a large B is a byte, which no
/// rate has, unless "Bit" is spelled out.
fn bits(unit: &str) -> Option<f64> {
    let (scale, stem) = match unit.as_bytes().first()? {
        b'k' | b'K' => (1e3, &unit[1..]),
        b'm' | b'M' => (1e6, &unit[1..]),
        b'g' | b'G' => (1e9, &unit[1..]),
        _ => (1.0, unit),
    };
    let rate = match stem {
        // A small m alone is minutes.
        "" => unit != "m",
        "b/s" | "bps" => true,
        _ => stem.eq_ignore_ascii_case("bit/s") || stem.eq_ignore_ascii_case("bit"),
    };
    rate.then_some(scale)
}

/// A share of a whole, one for all of it, or a number of that kind.
///
/// ```
/// use lastmile::units::Share;
/// assert_eq!("1 %".parse(), Ok(Share(0.01)));
/// assert_eq!("0.01".parse(), Ok(Share(0.01)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = ParseUnitError;
    /// Reads "0.01" and "1 %"; the range is for the reader to check.
    fn from_str(s: &str) -> Result<Share, ParseUnitError> {
        let (number, whole) = match s.trim().strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (s.trim(), 1.0),
        };
        let number = number.parse().ok().filter(|number: &f64| number.is_finite());
        Ok(Share(number.ok_or_else(|| not_wanted(s, Wanted::Share))? / whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_read_what_they_print() {
        for text in ["0 bit/s", "150 kbit/s", "5.12 Mbit/s", "1 Gbit/s", "28.94 Mbit/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn rates_read_as_other_programs_write_them() {
        for text in
            ["10M", "10Mbps", "10mbps", "10mbit", "10 MBit/s", "10 Mb/s", "10000k", "0.01G", "10000 kbit"]
        {
            assert_eq!(text.parse(), Ok(Rate::ip(10_000_000)), "{text}");
        }
        // Bytes a second are no rate here: nobody reads them for bits.
        for text in ["10MB/s", "10MBps", "10MBPS", "10m", "10B/s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_told_what_to_type() {
        let rate = "10".parse::<Rate>().unwrap_err().to_string();
        assert_eq!(rate, "\"10\" has no unit: type 10M for Mbit/s, 10k for kbit/s or 10bps for bit/s");
        let bytes = "1500".parse::<Bytes>().unwrap_err().to_string();
        assert_eq!(bytes, "\"1500\" has no unit: type 1500B for bytes");
        assert_eq!("0".parse(), Ok(Bytes::ZERO));
        assert!(["1MB", "1 MB", "1000kB"].iter().all(|text| text.parse() == Ok(Bytes(1_000_000))));
        assert!(["1", "1s", "1000ms", "1 s"].iter().all(|text| text.parse() == Ok(Span::from_secs(1))));
        assert!(["60", "1m", "1min", "1 m"].iter().all(|text| text.parse() == Ok(Span::from_secs(60))));
        assert!(["0.05", "5%", "5 %", " 5.0 % "].iter().all(|text| text.parse() == Ok(Share(0.05))));
        let share = "5 percent".parse::<Share>().unwrap_err().to_string();
        assert_eq!(share, "\"5 percent\" is not a share such as 0.01 or \"1 %\"");
    }

    #[test]
    fn a_unit_of_another_kind_is_named() {
        for (rate, said) in [
            ("10000000", "has no unit: type 10M if these are bits a second"),
            ("1234567", "has no unit: type 1234.567k if these are bits a second"),
            ("12345678.5", "has no unit: type 12345678.5bps if these are bits a second"),
            ("1e6", "has no unit: type 1M if these are bits a second"),
            ("10MB", "counts bytes, and a rate counts bits: type 80M for as many bytes a second"),
            ("1.5 kB/s", "counts bytes, and a rate counts bits: type 12k for as many bytes a second"),
            ("10B", "counts bytes, and a rate counts bits: type 80bps for as many bytes a second"),
            ("10Mb", "is a number of bits, and no rate: type 10M"),
            ("10m", "is in minutes: type 10M for Mbit/s"),
            ("99999999999999 Gbit/s", "is not a rate such as \"5.12 Mbit/s\""),
            ("10 furlongs", "is not a rate such as \"5.12 Mbit/s\""),
        ] {
            assert_eq!(rate.parse::<Rate>().unwrap_err().to_string(), format!("{rate:?} {said}"));
        }
        for (bytes, said) in [
            ("1M", "has no unit of bytes: type 1MB"),
            ("2.5 g", "has no unit of bytes: type 2.5GB"),
            ("1mB", "has no unit of bytes: type 1MB"),
            ("10Mb", "counts bits: type 10MB for bytes"),
            ("1mb", "counts bits: type 1MB for bytes"),
            ("10Mbit", "counts bits: type 10MB for bytes"),
            ("1e6B", "has an exponent: type 1000000B"),
            ("10", "has no unit: type 10B for bytes, 10kB or 10MB"),
            ("1Mio", "is not a number of bytes such as \"1500 B\" or \"60 kB\""),
        ] {
            assert_eq!(bytes.parse::<Bytes>().unwrap_err().to_string(), format!("{bytes:?} {said}"));
        }
        assert_eq!("1e3 s".parse::<Span>().unwrap_err().to_string(), "\"1e3 s\" has an exponent: type 1000s");
        assert_eq!("1MiB".parse(), Ok(Bytes(1_048_576)));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ["", "10", "-3 Mbit/s", "1e3 kbit/s", "10 furlongs", "1.2.3 bit/s", "99999999999999 Gbit/s"]
        {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn time_for_and_over_are_inverse(bps in 1_000_u64..100_000_000_000, bytes in 40_u64..65_536) {
            let rate = Rate::ip(bps);
            let span = rate.time_for(Bytes(bytes));
            let back = Rate::over(Bytes(bytes), span, Layer::Ip).unwrap();
            // Half a nanosecond of rounding is the only loss.
            let tolerance = 0.5 / span.as_nanos() as f64 + 1e-9;
            prop_assert!((back.ratio(rate).unwrap() - 1.0).abs() <= tolerance * 1.01 + 1.0 / bps as f64);
        }

        #[test]
        fn layers_convert_there_and_back(bps in 1_000_000_u64..10_000_000_000, payload in 100_u64..1500) {
            let rate = Rate::ip(bps);
            let there = rate.at(Layer::Payload, Bytes(payload), IpVersion::V6);
            let back = there.at(Layer::Ip, Bytes(payload), IpVersion::V6);
            prop_assert!(back.bits_per_second().abs_diff(bps) <= 1);
        }
    }
}
