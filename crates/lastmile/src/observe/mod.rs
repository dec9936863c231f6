//! Reports to samples: filters and statistics that estimators share.
mod judge;
pub use judge::{Judged, judge};
