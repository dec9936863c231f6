//! One file per command, each with its `Args` and its `run`.
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod enough;
pub(crate) mod man;
pub(crate) mod measure;
pub(crate) mod receive;
pub(crate) mod registries;
pub(crate) mod replay;
#[cfg(feature = "pages")]
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod stream;
#[cfg(feature = "study")]
pub(crate) mod study;
pub(crate) mod traffic;
