//! [`ConfigError`]: an impossible value in the configuration of a part of the network.

/// An impossible value in a configuration: the key, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct ConfigError {
    /// Path of the field.
    pub key: String,
    /// The fault and its remedy.
    pub reason: String,
}

impl ConfigError {
    pub(crate) fn within(self, key: &str) -> ConfigError {
        ConfigError { key: format!("{key}: {}", self.key), ..self }
    }
}

/// Refuses what does not hold.
pub(crate) fn require(holds: bool, key: &str, reason: impl Into<String>) -> Result<(), ConfigError> {
    if holds { Ok(()) } else { Err(ConfigError { key: key.to_owned(), reason: reason.into() }) }
}

/// Refuses what is no probability.
pub(crate) fn probability(key: &str, p: f64) -> Result<(), ConfigError> {
    require((0.0..=1.0).contains(&p), key, format!("{p} is not a probability (0 to 1)"))
}
