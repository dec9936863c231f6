//! Replacing values of a scenario file before it is checked, for sweeps and `--set`.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::{ScenarioError, ScenarioFile};
use super::roles::TABLES;

/// Keys of a file that are lists of tables, beside the tables of roles.
const LISTS: [&str; 4] = ["link", "wlan", "handoff", "traffic"];

/// A value to be put in the place of the file's.
///
/// The key is dotted; an element of a list is named by its number or by its `name`: `link.0.rate`,
/// `traffic.cross.rate`, `host.sender.clock.skew_ppm`. The value is a TOML text, number or boolean; anything
/// else is taken as text, so that `5 Mbit/s` needs no quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The dotted key.
    pub key: String,
    /// The value.
    pub value: String,
}

impl Override {
    /// `value` in the place of the file's value at `key`.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Override {
        Override { key: key.into(), value: value.into() }
    }

    pub(super) fn apply<'a>(&'a self, file: &mut ScenarioFile<'a>) -> Result<(), ScenarioError> {
        let refuse = |name: &str, reason: &str| ScenarioError {
            file: name.to_owned(),
            line: 0,
            key: self.key.clone(),
            reason: reason.to_owned(),
        };
        let name = file.name;
        let mut table = &mut file.document;
        let mut steps = self.key.split('.').map(str::trim).peekable();
        while let Some(step) = steps.next() {
            if steps.peek().is_none() {
                let at = table.get(step).map_or(0..0, Spanned::span);
                let value = self.value().ok_or_else(|| refuse(name, "a table or list cannot be set"))?;
                if table.get(step).is_some_and(|old| old.get_ref().is_table() || old.get_ref().is_array()) {
                    let why = "names a table or list; name a single value in it";
                    let kind = table.get(step).and_then(|old| old.get_ref().get("kind")).is_some();
                    let such = if kind { format!(", such as {}.kind", self.key) } else { String::new() };
                    return Err(refuse(name, &format!("{why}{such}")));
                }
                table.insert(Spanned::new(at.clone(), DeString::Borrowed(step)), Spanned::new(at, value));
                return Ok(());
            }
            let key = Spanned::new(0..0, DeString::Borrowed(step));
            if table.get(step).is_none() && (LISTS.contains(&step) || TABLES.contains(&step)) {
                return Err(refuse(name, &format!("the scenario has no [[{step}]]")));
            }
            if table.get(step).is_none() {
                // Optional tables, such as a host's clock, may be absent from the file.
                table.insert(key, Spanned::new(0..0, DeValue::Table(DeTable::new())));
            }
            table = match table.get_mut(step).map(Spanned::get_mut) {
                Some(DeValue::Table(inner)) => inner,
                Some(DeValue::Array(items)) => {
                    let which = steps.next().unwrap_or_default();
                    if steps.peek().is_none() {
                        return Err(refuse(name, "names an element of a list; name a single value in it"));
                    }
                    let index = which.parse().ok().or_else(|| {
                        items.iter().position(|item| {
                            item.get_ref().get("name").and_then(|name| name.get_ref().as_str()) == Some(which)
                        })
                    });
                    match index.and_then(|index: usize| items.get_mut(index)).map(Spanned::get_mut) {
                        Some(DeValue::Table(inner)) => inner,
                        _ => return Err(refuse(name, &format!("the list has no element {which:?}"))),
                    }
                }
                _ => return Err(refuse(name, &format!("{step:?} is a single value here: set it whole"))),
            };
        }
        Err(refuse(name, "an empty key"))
    }

    fn value(&self) -> Option<DeValue<'_>> {
        match DeValue::parse(&self.value).map(Spanned::into_inner) {
            Ok(DeValue::Table(_) | DeValue::Array(_)) => None,
            Ok(DeValue::Datetime(_)) | Err(_) => Some(DeValue::String(DeString::Borrowed(&self.value))),
            Ok(value) => Some(value),
        }
    }
}
