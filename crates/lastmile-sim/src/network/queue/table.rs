//! A discipline, or another choice, as files name it: a table of its kind and its options.

use std::collections::BTreeMap;

use lastmile::options::{ChoiceError, Given, Scalar};
use serde::Deserialize;

use super::Discipline;

/// `{ kind = "red", ecn = true }`, as it stands.
#[derive(Clone, Debug, Deserialize)]
#[serde(expecting = "a table")]
pub(crate) struct Table {
    pub(crate) kind: String,
    #[serde(flatten)]
    options: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "an option is a text, a number, true or false, or a table of one of these")]
enum Value {
    Plain(Scalar),
    /// `{ sojourn = "1 ms" }`, which is read as `sojourn 1 ms`.
    Table(Given),
}

impl Table {
    /// The discipline that it names.
    pub(crate) fn read(&self) -> Result<Discipline, ChoiceError> {
        Discipline::read(&self.kind, &self.given())
    }

    /// The options beside the kind.
    pub(crate) fn given(&self) -> Given {
        let scalar = |value: &Value| match value {
            Value::Plain(scalar) => scalar.clone(),
            Value::Table(table) => {
                let pairs: Vec<_> = table.iter().map(|(key, value)| format!("{key} {value}")).collect();
                Scalar::Text(pairs.join(", "))
            }
        };
        self.options.iter().map(|(option, value)| (option.clone(), scalar(value))).collect()
    }
}

impl TryFrom<Table> for Discipline {
    type Error = ChoiceError;
    fn try_from(table: Table) -> Result<Discipline, ChoiceError> {
        table.read()
    }
}
