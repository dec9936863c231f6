//! From a file's text to a checked [`Scenario`].

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use super::check::{Check, Checked, fill_back};
use super::error::ScenarioFile;
use super::raw::RawScenario;
use super::roles::{RawRoles, TABLES};
use super::{Override, Scenario, copies, preset};

/// Bytes that a scenario's text may have; a longer one is no scenario.
pub const MAX_TEXT: usize = 16_000_000;
pub(super) fn load(name: &str, text: &str, overrides: &[Override]) -> Checked<Scenario> {
    let mut file = ScenarioFile { name, text, document: DeTable::new() };
    if text.len() > MAX_TEXT {
        return Err(file.error(0..0, format!("a scenario of more than {MAX_TEXT} bytes")));
    }
    // Even a broken document tells the key that an error belongs to.
    let (root, errors) = DeTable::parse_recoverable(text);
    let span = root.span();
    file.document = root.into_inner();
    if let Some(error) = errors.first() {
        return Err(file.toml_error(error));
    }
    for replace in overrides {
        replace.apply(&mut file)?;
    }
    preset::fill(&mut file)?;
    copies::expand(&mut file)?;
    let mut document = file.document.clone();
    let roles = RawRoles::take(&file, &mut document)?;
    fill_back(&file, &mut document)?;
    let document = Spanned::new(span, document);
    let raw = RawScenario::deserialize(Deserializer::from(document)).map_err(|e| {
        let mut error = file.toml_error(&e);
        if error.reason.starts_with("unknown field") && error.reason.ends_with("`traffic`") {
            // The tables of roles stand beside these.
            TABLES.iter().for_each(|table| error.reason += &format!(", `{table}`"));
        }
        error
    })?;
    Check::new(file, &raw).scenario(|check, scenario| roles.check(check, scenario))
}
