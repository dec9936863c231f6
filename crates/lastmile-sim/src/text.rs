//! Quantities with their units, as scenario files write them: one reader for all of them.

use core::fmt::Display;
use core::str::FromStr;

use serde::{Deserialize, Deserializer};

/// A quantity that stands in a file as a text with its unit, such as "10 Mbit/s".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<T>(pub(crate) T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Text).map_err(serde::de::Error::custom)
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
