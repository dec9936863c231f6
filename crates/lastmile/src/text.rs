//! Quantities as texts with their units: "10 ms", "5.12 Mbit/s".

use core::fmt;

/// A text that is not the quantity that was asked for.
///
/// ```
/// use lastmile::units::Rate;
/// let error = "ten".parse::<Rate>().unwrap_err();
/// assert_eq!(error.to_string(), "\"ten\" is not a rate such as \"5.12 Mbit/s\"");
/// let error = "10".parse::<Rate>().unwrap_err();
/// assert_eq!(error.to_string(), "\"10\" has no unit: type 10M for Mbit/s, 10k for kbit/s or 10bps for bit/s");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseUnitError {
    text: String,
    wanted: Wanted,
}

/// The quantity asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Bits a second.
    Rate,
    /// Bytes.
    Bytes,
    /// A length of time.
    Time,
    /// A part of a whole.
    Share,
}

impl Wanted {
    /// Its description.
    fn what(self) -> &'static str {
        match self {
            Wanted::Rate => "a rate such as \"5.12 Mbit/s\"",
            Wanted::Bytes => "a number of bytes such as \"1500 B\" or \"60 kB\"",
            Wanted::Time => "a time such as \"10 ms\"",
            Wanted::Share => "a share such as 0.01 or \"1 %\"",
        }
    }

    /// The fault of a text that has a number, and the text to type instead.
    fn advice(self, text: &str) -> Option<String> {
        let (number, unit) = number_and_unit(text);
        let n = number.parse().ok().filter(|n: &f64| n.is_finite())?;
        let exponent = unit.strip_prefix(['e', 'E']).and_then(|rest| {
            let end = rest.rfind(|c: char| c.is_ascii_digit())? + 1;
            let value: f64 = text.get(..text.len() - rest.len() + end)?.parse().ok()?;
            (value < 1e18).then(|| (value, rest[end..].trim_start()))
        });
        if let Some((value, unit)) = exponent {
            return Some(match unit {
                "" => self.without_unit(value)?,
                unit => format!("has an exponent: type {value}{unit}"),
            });
        }
        let (prefix, stem) = match unit.chars().next() {
            Some(first @ ('k' | 'K' | 'm' | 'M' | 'g' | 'G')) => {
                (if first.eq_ignore_ascii_case(&'k') { 'k' } else { first.to_ascii_uppercase() }, &unit[1..])
            }
            _ => (' ', unit),
        };
        let scaled = |n: f64, unit: &str| format!("{n}{prefix}{unit}").replace(' ', "");
        let per_second = |n: f64| scaled(n, if prefix == ' ' { "bps" } else { "" });
        match self {
            Wanted::Rate | Wanted::Bytes if unit.is_empty() => self.without_unit(n),
            Wanted::Rate if unit == "m" => Some(format!("is in minutes: type {n}M for Mbit/s")),
            Wanted::Rate if matches!(stem, "b" | "bits") => {
                Some(format!("is a number of bits, and no rate: type {}", per_second(n)))
            }
            Wanted::Rate if stem.starts_with('B') => Some(format!(
                "counts bytes, and a rate counts bits: type {} for as many bytes a second",
                per_second(n * 8.0)
            )),
            Wanted::Bytes if stem.starts_with('b') || stem.starts_with("Bit") => {
                Some(format!("counts bits: type {} for bytes", scaled(n, "B")))
            }
            Wanted::Bytes if stem.is_empty() || matches!(unit, "mB" | "gB") => {
                Some(format!("has no unit of bytes: type {}", scaled(n, "B")))
            }
            _ => None,
        }
    }

    /// Of a number alone, which may be meant in any unit if it is small.
    fn without_unit(self, n: f64) -> Option<String> {
        let whole = |scale: f64| n >= scale && (n / scale * 1e3).fract() == 0.0;
        let scaled = || [(1e9, "G"), (1e6, "M"), (1e3, "k")].into_iter().find(|(scale, _)| whole(*scale));
        match self {
            Wanted::Rate if n >= 1e3 => {
                let (scale, unit) = scaled().unwrap_or((1.0, "bps"));
                Some(format!("has no unit: type {}{unit} if these are bits a second", n / scale))
            }
            Wanted::Rate => {
                Some(format!("has no unit: type {n}M for Mbit/s, {n}k for kbit/s or {n}bps for bit/s"))
            }
            Wanted::Bytes if n >= 1e3 => Some(format!("has no unit: type {n}B for bytes")),
            Wanted::Bytes => Some(format!("has no unit: type {n}B for bytes, {n}kB or {n}MB")),
            Wanted::Time | Wanted::Share => None,
        }
    }
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wanted.advice(self.text.trim()) {
            Some(advice) => write!(f, "{:?} {advice}", self.text),
            None => write!(f, "{:?} is not {}", self.text, self.wanted.what()),
        }
    }
}

/// A text's number, and the unit behind it.
fn number_and_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

/// The error of a text that is not what was wanted.
pub(crate) fn not_wanted(text: &str, wanted: Wanted) -> ParseUnitError {
    ParseUnitError { text: text.to_owned(), wanted }
}

/// The size of a unit of that name, from a table of them.
pub(crate) fn named(units: &[(&str, f64)], unit: &str) -> Option<f64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size)
}

/// Reads a non-negative decimal number followed by a unit whose size is known; rounds to the nearest whole unit.
pub(crate) fn parse_with_unit(
    text: &str,
    size: impl Fn(&str) -> Option<f64>,
    wanted: Wanted,
) -> Result<f64, ParseUnitError> {
    let error = || not_wanted(text, wanted);
    let (number, unit) = number_and_unit(text.trim());
    let scale = size(unit).ok_or_else(error)?;
    let value = number.parse::<f64>().map_err(|_| error())? * scale;
    if value > 9.0e18 {
        return Err(error());
    }
    Ok(libm::round(value))
}

/// Prints a number with at most four significant digits and no trailing zeros.
pub(crate) struct Significant(pub(crate) f64);

impl fmt::Display for Significant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = match self.0 {
            x if x >= 1000.0 => 0,
            x if x >= 100.0 => 1,
            x if x >= 10.0 => 2,
            _ => 3,
        };
        let text = format!("{:.decimals$}", self.0);
        let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        f.write_str(text)
    }
}
