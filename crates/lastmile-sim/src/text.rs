//! Quantities with their units, as scenario files write them: one reader for all of them.

use core::fmt::{Display, Formatter};
use core::marker::PhantomData;
use core::str::FromStr;

use lastmile::time::Span;
use lastmile::units::{Rate, Share};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// A quantity that stands in a file as a text with its unit, such as "10 Mbit/s".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<T>(pub(crate) T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Unit(PhantomData)).map(Text)
    }
}

/// Reads a quantity; of a number without a unit it says what one looks like.
struct Unit<T>(PhantomData<T>);

impl<T: FromStr<Err: Display>> Visitor<'_> for Unit<T> {
    type Value = T;

    fn expecting(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

/// A quantity, for `deserialize_with`.
pub(crate) fn unit<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Text::deserialize(deserializer).map(|Text(value)| value)
}

/// A quantity that may be missing; needs `#[serde(default)]` beside it.
pub(crate) fn optional<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    unit(deserializer).map(Some)
}

/// A list of quantities that may be missing; needs `#[serde(default)]` beside it.
pub(crate) fn optional_list<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let texts = Vec::<Text<T>>::deserialize(deserializer)?;
    Ok(Some(texts.into_iter().map(|Text(value)| value).collect()))
}

/// A share: a number, or a text in percent.
pub(crate) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    unit(deserializer).map(|Share(share)| share)
}

/// The same where it may be missing.
pub(crate) fn some_share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    share(deserializer).map(Some)
}

macro_rules! that_fit {
    ($($(#[$doc:meta])* $name:ident, $some:ident: $of:ty, $fits:expr, $why:expr;)+) => { $(
        $(#[$doc])*
        pub(crate) fn $name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$of, D::Error> {
            let value: $of = unit(deserializer)?;
            if $fits(value) { Ok(value) } else { Err(serde::de::Error::custom($why(value))) }
        }

        /// The same where it may be missing.
        pub(crate) fn $some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<$of>, D::Error> {
            $name(deserializer).map(Some)
        }
    )+ };
}
that_fit! {
    /// A time from some moment on.
    not_negative, some_not_negative: Span, |s| s >= Span::ZERO, |s| format!("must not be negative: {s}");
    /// A length of time.
    positive, some_positive: Span, |s| s > Span::ZERO, |s| format!("must be more than no time, not {s}");
    /// A rate at which something goes.
    flowing, some_flowing: Rate, |rate: Rate| rate.bits_per_second() > 0, |_| "a rate of zero carries nothing";
}
