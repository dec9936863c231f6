//! From rows and series to what people and programs read: text tables, JSON, and pages of HTML with charts in SVG.
//!
//! Callers hand in rows, columns, events and numbers as data; the crate knows no command, no study and no endpoint.
//! Pages are text, tables and SVG with tooltips: no script, nothing to fetch. A page weighs some 100 kB, prints, works with
//! scripts switched off, and its policy header keeps whatever a file smuggles in from running or loading anything.
//!
//! ```
//! let mut table = lastmile_report::text::Table::new(&["what", ">rate"]);
//! table.row(["capacity", "10 Mbit/s"]);
//! assert_eq!(table.text(), "what           rate\ncapacity  10 Mbit/s\n");
//! ```
//!
//! The feature `pages`, on by default, holds everything of HTML and SVG.
pub mod event;
pub mod json;
mod mean;
pub mod table;
pub mod text;

#[cfg(feature = "pages")]
pub mod bars;
#[cfg(feature = "pages")]
pub mod chart;
#[cfg(feature = "pages")]
pub mod drawn;
#[cfg(feature = "pages")]
pub mod html;
#[cfg(feature = "pages")]
pub mod rows;
#[cfg(feature = "pages")]
pub mod series;
#[cfg(feature = "pages")]
pub mod svg;
#[cfg(feature = "pages")]
pub mod timeline;
#[cfg(feature = "pages")]
pub mod topology;

pub use mean::Mean;
