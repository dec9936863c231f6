//! Documents for programs.

use serde::Serialize;

pub use lastmile::SCHEMA;

/// A document as text: an object has [`SCHEMA`] as its key `schema`, the first unless it has one; a list has none.
///
/// ```
/// let text = lastmile_report::json::document(&std::collections::BTreeMap::from([("runs", 3)]))?;
/// assert_eq!(text, "{\n  \"schema\": 2,\n  \"runs\": 3\n}");
/// assert_eq!(lastmile_report::json::document(&[1])?, "[\n  1\n]");
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// The value is none that JSON has.
pub fn document(value: &(impl Serialize + ?Sized)) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(match text.strip_prefix("{\n") {
        Some(rest) if !text.contains("\n  \"schema\": ") => format!("{{\n  \"schema\": {SCHEMA},\n{rest}"),
        _ => text,
    })
}
