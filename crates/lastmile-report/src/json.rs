//! Documents for programs.

use serde::Serialize;

/// What the keys of documents mean: a later change of meaning counts it up.
pub const SCHEMA: u32 = 1;

/// A document as text: an object has [`SCHEMA`] as its first key, `schema`; a list has none.
///
/// ```
/// let text = lastmile_report::json::document(&std::collections::BTreeMap::from([("runs", 3)]))?;
/// assert_eq!(text, "{\n  \"schema\": 1,\n  \"runs\": 3\n}");
/// assert_eq!(lastmile_report::json::document(&[1])?, "[\n  1\n]");
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// The value is none that JSON has.
pub fn document(value: &(impl Serialize + ?Sized)) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(match text.strip_prefix("{\n") {
        Some(rest) => format!("{{\n  \"schema\": {SCHEMA},\n{rest}"),
        None => text,
    })
}
