//! [`LinkConfigError`]: what is impossible in the configuration of a link, its queue or its channels.

/// What is impossible in a [`LinkConfig`](super::link::LinkConfig): the key, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct LinkConfigError {
    /// Which field, as its path.
    pub key: String,
    /// What is wrong and what would do.
    pub reason: String,
}

impl LinkConfigError {
    pub(crate) fn new(key: impl Into<String>, reason: impl Into<String>) -> LinkConfigError {
        LinkConfigError { key: key.into(), reason: reason.into() }
    }

    pub(crate) fn within(self, key: &str) -> LinkConfigError {
        LinkConfigError { key: format!("{key}: {}", self.key), ..self }
    }

    /// Refuses what is no probability.
    pub(crate) fn probability(key: &str, p: f64) -> Result<(), LinkConfigError> {
        if (0.0..=1.0).contains(&p) {
            return Ok(());
        }
        Err(LinkConfigError::new(key, format!("{p} is not a probability (0 to 1)")))
    }
}
