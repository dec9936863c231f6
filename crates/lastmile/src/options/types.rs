//! The types that an option's value can have, and the reading of each from users' texts.

use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use super::{Kind, Scalar};
use crate::time::Span;
use crate::units::{Bytes, Rate, Share};

/// A type that an option's value can have.
pub trait OptionType: Sized {
    /// Kind of its values.
    const KIND: Kind;
    /// The type of a range of them.
    type Bound: PartialOrd + fmt::Display;

    /// Reads a given value; the error says which values are possible.
    fn read(given: &Scalar) -> Result<Self, String>;

    /// The value as users write it, if there is one.
    fn show(&self) -> Option<Scalar>;

    /// The value to compare with a range, if ranges apply to it.
    fn bound(&self) -> Option<&Self::Bound>;

    /// The possible values where no range is declared, in words.
    fn any() -> String {
        format!("such as {}", Self::KIND.example())
    }
}

fn wrong<T: OptionType>(given: &Scalar) -> String {
    format!("must be a {} {}, not {given}", T::KIND, T::any())
}

macro_rules! option_type {
    ($($type:ty, $kind:ident, $read:expr, $show:expr;)*) => {$(
        impl OptionType for $type {
            const KIND: Kind = Kind::$kind;
            type Bound = $type;
            fn read(given: &Scalar) -> Result<$type, String> {
                let read: fn(&Scalar) -> Result<$type, String> = $read;
                read(given)
            }
            fn show(&self) -> Option<Scalar> {
                let show: fn(&$type) -> Scalar = $show;
                Some(show(self))
            }
            fn bound(&self) -> Option<&$type> {
                Some(self)
            }
        }
    )*};
}

/// A quantity as a text with its unit; a bare number is seconds, and neither bytes nor a rate. The error is that of the quantity
/// wherever it stands.
pub fn quantity<T: FromStr<Err: fmt::Display>>(given: &Scalar) -> Result<T, String> {
    given.to_string().parse().map_err(|error| format!("cannot be read: {error}"))
}

/// A whole number that fits.
fn count<T: OptionType + TryFrom<u64>>(given: &Scalar) -> Result<T, String> {
    match given {
        Scalar::Count(n) => T::try_from(*n).map_err(|_| wrong::<T>(given)),
        _ => Err(wrong::<T>(given)),
    }
}

option_type! {
    usize, Count, count, |n| Scalar::Count(*n as u64);
    u32, Count, count, |n| Scalar::Count(u64::from(*n));
    f64, Number, |given| match given {
        Scalar::Number(n) => Ok(*n),
        Scalar::Count(n) => Ok(*n as f64),
        Scalar::Text(text) => text.parse().map(|Share(n)| n).map_err(|_| wrong::<f64>(given)),
        Scalar::Flag(_) => Err(wrong::<f64>(given)),
    }, |n| Scalar::Number(*n);
    Bytes, Bytes, quantity, |size| Scalar::Text(size.to_string());
    Rate, Rate, quantity, |rate| Scalar::Text(rate.to_string());
    Span, Span, quantity, |span| Scalar::Text(span.to_string());
}

impl OptionType for bool {
    const KIND: Kind = Kind::Flag;
    type Bound = bool;
    fn read(given: &Scalar) -> Result<bool, String> {
        match given {
            Scalar::Flag(flag) => Ok(*flag),
            _ => Err(format!("must be {}, not {given}", bool::any())),
        }
    }
    fn show(&self) -> Option<Scalar> {
        Some(Scalar::Flag(*self))
    }
    fn bound(&self) -> Option<&bool> {
        None
    }
    fn any() -> String {
        "true or false".into()
    }
}

impl<T: OptionType> OptionType for Option<T> {
    const KIND: Kind = T::KIND;
    type Bound = T::Bound;
    fn read(given: &Scalar) -> Result<Option<T>, String> {
        T::read(given).map(Some)
    }
    fn show(&self) -> Option<Scalar> {
        self.as_ref().and_then(T::show)
    }
    fn bound(&self) -> Option<&T::Bound> {
        self.as_ref().and_then(T::bound)
    }
    fn any() -> String {
        T::any()
    }
}

/// Reads a value that lies in a range; used by [`options!`](crate::options!).
#[doc(hidden)]
pub fn read_within<T: OptionType>(
    given: &Scalar,
    range: Option<RangeInclusive<T::Bound>>,
) -> Result<T, String> {
    let value = T::read(given)?;
    within(&value, range, given)?;
    Ok(value)
}

/// Refuses a value out of a range, as it was given; used by [`options!`](crate::options!).
#[doc(hidden)]
pub fn within<T: OptionType>(
    value: &T,
    range: Option<RangeInclusive<T::Bound>>,
    given: impl fmt::Display,
) -> Result<(), String> {
    match (value.bound(), range) {
        (Some(bound), Some(range)) if !range.contains(bound) => {
            Err(format!("must be {} to {}, not {given}", range.start(), range.end()))
        }
        _ => Ok(()),
    }
}

/// A range's values in words; used by [`options!`](crate::options!).
#[doc(hidden)]
pub fn possible<T: OptionType>(range: Option<RangeInclusive<T::Bound>>) -> String {
    range.map_or_else(T::any, |range| format!("{} to {}", range.start(), range.end()))
}
