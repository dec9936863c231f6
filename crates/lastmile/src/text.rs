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

/// The quantity asked for: its description, and the text to type instead of a bare number, which replaces `{}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted(pub(crate) &'static str, pub(crate) &'static str);

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, Wanted(what, typed)) = (&self.text, self.wanted);
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 && !typed.is_empty() => {
                write!(f, "{text:?} has no unit: type {}", typed.replace("{}", text.trim()))
            }
            _ => write!(f, "{text:?} is not {what}"),
        }
    }
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
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let scale = size(unit.trim()).ok_or_else(error)?;
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
