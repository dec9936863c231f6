//! `preset` in a connection's options: the name of an implementation, for its defaults. Keys that the file has beside it
//! stay.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ScenarioError, ScenarioFile};
use crate::network::tcp::PRESETS;

/// Puts the options of presets in the place of their names.
pub(super) fn fill(file: &mut ScenarioFile<'_>) -> Result<(), ScenarioError> {
    let Some(DeValue::Array(flows)) = file.document.get_mut("traffic").map(Spanned::get_mut) else {
        return Ok(());
    };
    let mut unknown = None;
    for flow in flows.iter_mut() {
        let DeValue::Table(flow) = flow.get_mut() else { continue };
        let Some(DeValue::Table(tcp)) = flow.get_mut("tcp").map(Spanned::get_mut) else { continue };
        let Some(name) = tcp.get("preset") else { continue };
        let span = name.span();
        let Some((_, keys)) = PRESETS.iter().find(|(known, _)| name.get_ref().as_str() == Some(known)) else {
            unknown = Some(span);
            break;
        };
        tcp.remove("preset");
        for (key, value) in DeTable::parse(keys).map(Spanned::into_inner).unwrap_or_default() {
            if tcp.get(key.get_ref().as_ref()).is_none() {
                let place = |inner| Spanned::new(span.clone(), inner);
                tcp.insert(Spanned::new(span.clone(), key.into_inner()), place(value.into_inner()));
            }
        }
    }
    match unknown {
        Some(span) => {
            let names = PRESETS.map(|(name, _)| name).join(", ");
            Err(file.error(span, format!("no such preset; there are: {names}")))
        }
        None => Ok(()),
    }
}
