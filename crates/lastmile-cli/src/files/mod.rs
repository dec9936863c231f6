//! Files that runs leave behind, and their products: recordings, captures, event files, pages.
pub(crate) mod live;
#[cfg(feature = "study")]
pub(crate) mod outputs;
#[cfg(feature = "pages")]
pub(crate) mod page;
pub(crate) mod recorder;
pub(crate) mod replayed;
