//! Options of methods: the keys of a `[[measure]]` that are none of its own.

use lastmile::options::{ChoiceError, Given, Scalar};
use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, de::DeString};

use super::{Check, Checked, Place};
use crate::scenario::raw::MEASURE_KEYS;

/// Takes the options of each measurement out of a document, which then has nothing but keys of its own.
pub(super) fn take(place: &Place<'_>, document: &mut DeTable<'_>) -> Checked<Vec<Given>> {
    let Some(DeValue::Array(measures)) = document.get_mut("measure").map(Spanned::get_mut) else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    for (index, measure) in measures.iter_mut().enumerate() {
        let mut given = Given::new();
        if let DeValue::Table(table) = measure.get_mut() {
            let own = |key: &Spanned<DeString<'_>>| MEASURE_KEYS.contains(&key.get_ref().as_ref());
            let keys: Vec<_> = table.keys().filter(|key| !own(key)).cloned().collect();
            for key in keys {
                let Some(value) = table.remove(&key) else { continue };
                let name = key.get_ref().to_string();
                let value = Scalar::deserialize(ValueDeserializer::from(value)).map_err(|_| {
                    let path = format!("measure[{index}].{name}");
                    place.error_at(&path, "an option is a text, a number, or true or false")
                })?;
                given.insert(name, value);
            }
        }
        all.push(given);
    }
    Ok(all)
}

impl Check<'_> {
    /// What is wrong with the method of a measurement, said of the key that is to blame.
    pub(super) fn method_error<T>(&self, index: usize, error: &ChoiceError) -> Checked<T> {
        let (key, reason) = match error {
            ChoiceError::Option(error) if self.options[index].contains_key(&error.option) => {
                let listed = |names: &[&str]| {
                    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
                };
                let reason = match &error.unknown {
                    None => error.reason.clone(),
                    Some(known) => format!(
                        "unknown field `{}`, expected one of {}, or an option of {}: {}",
                        error.option,
                        listed(&MEASURE_KEYS),
                        error.owner,
                        listed(known)
                    ),
                };
                (error.option.as_str(), reason)
            }
            error => ("method", error.to_string()),
        };
        self.refuse(&format!("measure[{index}].{key}"), reason)
    }
}
