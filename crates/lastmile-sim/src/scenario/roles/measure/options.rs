//! Options of methods: the keys of a `[[measure]]` that are none of its own.

use lastmile::options::{ChoiceError, Given, Scalar};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeString, DeValue, ValueDeserializer};

use super::RawMeasure;
use crate::scenario::ScenarioError;
use crate::scenario::check::{Check, Checked};
use crate::scenario::error::ScenarioFile;

/// Keys of a measurement; the others that stand in its table are options of its method.
const MEASURE_KEYS: [&str; 9] =
    ["from", "to", "method", "direction", "start", "start_within", "every", "realtime", "ipv6"];

/// Reads a table, whose other keys are the options.
pub(super) fn read(
    file: &ScenarioFile<'_>,
    index: usize,
    mut measure: Spanned<DeValue<'_>>,
) -> Checked<RawMeasure> {
    let mut given = Given::new();
    if let DeValue::Table(table) = measure.get_mut() {
        let own = |key: &Spanned<DeString<'_>>| MEASURE_KEYS.contains(&key.get_ref().as_ref());
        let keys: Vec<_> = table.keys().filter(|key| !own(key)).cloned().collect();
        for key in keys {
            let Some(value) = table.remove(&key) else { continue };
            let name = key.get_ref().to_string();
            let value = Scalar::deserialize(ValueDeserializer::from(value)).map_err(|_| {
                let path = format!("measure[{index}].{name}");
                file.error_at(&path, "an option is a text, a number, or true or false")
            })?;
            given.insert(name, value);
        }
    }
    let raw = RawMeasure::deserialize(ValueDeserializer::from(measure));
    let raw = raw.map_err(|error| file.toml_error(&error))?;
    Ok(RawMeasure { options: given, ..raw })
}

/// The error in a measurement's method, at the key that is to blame.
pub(super) fn blame(check: &Check<'_>, index: usize, given: &Given, error: &ChoiceError) -> ScenarioError {
    let (key, reason) = match error {
        ChoiceError::Option(error) if given.contains_key(&error.option) => {
            let listed =
                |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
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
    check.blame(&format!("measure[{index}].{key}"), reason)
}
