//! Quantities with their units, as scenario files write them.

use core::fmt::Display;
use core::str::FromStr;

use serde::{Deserialize, Deserializer};

/// A quantity such as "10 Mbit/s".
pub(super) fn unit<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

/// A quantity that may be missing; needs `#[serde(default)]` beside it.
pub(super) fn optional<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    unit(deserializer).map(Some)
}
