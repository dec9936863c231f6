//! A discipline, or another choice, as files name it: a table of its kind and its options.

use core::fmt::Formatter;
use std::collections::BTreeMap;

use lastmile::options::{ChoiceError, Given, Scalar};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Discipline;

/// `{ kind = "red", ecn = true }`, as it stands; `"red"` alone is `{ kind = "red" }`.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) kind: String,
    options: BTreeMap<String, Value>,
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Table, D::Error> {
        deserializer.deserialize_any(KindOrTable)
    }
}

struct KindOrTable;

impl<'de> Visitor<'de> for KindOrTable {
    type Value = Table;

    fn expecting(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        f.write_str("a kind or a table")
    }

    fn visit_str<E: Error>(self, kind: &str) -> Result<Table, E> {
        Ok(Table { kind: kind.to_owned(), options: BTreeMap::new() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Table, A::Error> {
        let Whole { kind, options } = Whole::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Table { kind, options })
    }
}

#[derive(Deserialize)]
struct Whole {
    kind: String,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_table_without_options() {
        #[derive(Deserialize)]
        struct Link {
            discipline: Table,
        }
        let read = |text: &str| {
            let link: Link = toml::from_str(text).unwrap();
            format!("{:?}", link.discipline.read().unwrap())
        };
        assert_eq!(read("discipline = \"fq-codel\""), read("discipline = { kind = \"fq-codel\" }"));
        assert_ne!(
            read("discipline = \"fq-codel\""),
            read("discipline = { kind = \"fq-codel\", limit = \"5 packets\" }")
        );
    }
}
