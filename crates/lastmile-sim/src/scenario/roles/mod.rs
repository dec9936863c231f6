//! Roles in scenario files: their tables, read and checked, with the conversations and the load that these bring.
//!
//! Each role has a file or folder here, and a folder for its endpoints in [`roles`](crate::roles). Beside these it is named in the
//! list below alone: reading, checking, building and running, in the simulator and in the lab, go by the list.

use lastmile::units::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::Scenario;
use super::check::{Check, Checked};
use super::error::ScenarioFile;

pub mod measure;
pub mod stream;

/// The list of roles, given to a macro: each by the name of its modules and of its table in scenario files.
macro_rules! with_roles {
    ($make:ident) => {
        $make! {
            measure(Measuring),
            stream(Streaming),
        }
    };
}
pub(crate) use with_roles;

/// Tables of one role that a scenario may have.
const MAX_TABLES: usize = 1_000;

/// One kind of table in scenario files.
pub(crate) trait Tables {
    /// A table as it is read.
    type Raw: DeserializeOwned;
    /// A table, checked.
    type Spec: Clone + PartialEq + core::fmt::Debug;

    /// True if a table is a flow, which `count` copies.
    const COUNTED: bool = false;

    /// Reads one of the role's tables.
    fn read(file: &ScenarioFile<'_>, index: usize, table: Spanned<DeValue<'_>>) -> Checked<Self::Raw> {
        let _ = index;
        let read = Self::Raw::deserialize(ValueDeserializer::from(table));
        read.map_err(|error| file.toml_error(&error))
    }

    /// Checks the role's tables, once hosts, links and traffic are known.
    fn check(check: &Check<'_>, raw: &[Self::Raw], scenario: &Scenario) -> Checked<Vec<Self::Spec>>;

    /// The conversations of the role's endpoints.
    fn conversations(scenario: &Scenario) -> Vec<Conversation>;
}

macro_rules! tables {
    ($($name:ident($role:ident)),+ $(,)?) => {
        /// The tables of all roles, in the order of the file.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Roles {
            $(/// Of the role that the field is named after.
            pub $name: Vec<$name::Spec>),+
        }

        /// The tables as they are read.
        pub(crate) struct RawRoles {
            $($name: Vec<<$name::$role as Tables>::Raw>),+
        }

        /// Names of the tables in scenario files.
        pub(crate) const TABLES: &[&str] = &[$(stringify!($name)),+];

        /// True if the tables of that name are flows, which may have a `count`.
        pub(crate) fn is_counted(list: &str) -> bool {
            $(list == stringify!($name) && $name::$role::COUNTED)||+
        }

        impl RawRoles {
            /// Takes the roles' tables out of a document.
            pub(crate) fn take(file: &ScenarioFile<'_>, document: &mut DeTable<'_>) -> Checked<RawRoles> {
                Ok(RawRoles {
                    $($name: take(file, document, stringify!($name))?
                        .into_iter()
                        .enumerate()
                        .map(|(index, table)| $name::$role::read(file, index, table))
                        .collect::<Checked<_>>()?),+
                })
            }

            pub(crate) fn check(&self, check: &Check<'_>, scenario: &mut Scenario) -> Checked<()> {
                $(check.at_most(stringify!($name), &self.$name, MAX_TABLES, concat!("[[", stringify!($name), "]]"))?;
                scenario.roles.$name = $name::$role::check(check, &self.$name, scenario)?;)+
                Ok(())
            }
        }

        impl Roles {
            /// True if there is none.
            pub fn is_empty(&self) -> bool {
                $(self.$name.is_empty())&&+
            }
        }

        impl Scenario {
            /// The conversations of all roles: the endpoints' packets, each way a flow of its own.
            pub fn conversations(&self) -> Vec<Conversation> {
                [$($name::$role::conversations(self)),+].concat()
            }

            /// The scenario without endpoints.
            pub(crate) fn without_endpoints(&self) -> Scenario {
                Scenario { roles: Roles::default(), ..self.clone() }
            }
        }
    };
}
with_roles!(tables);

/// Takes the tables of that name out of a document.
fn take<'a>(
    file: &ScenarioFile<'_>,
    document: &mut DeTable<'a>,
    name: &str,
) -> Checked<Vec<Spanned<DeValue<'a>>>> {
    let Some(value) = document.remove(name) else { return Ok(Vec::new()) };
    let span = value.span();
    match value.into_inner() {
        DeValue::Array(tables) => Ok(tables.into_iter().collect()),
        _ => Err(file.error(span, format!("a list of tables: [[{name}]]"))),
    }
}

/// Two endpoints that send each other packets, each way a flow of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Its name in captures and events; without one they use the names of its hosts.
    pub name: Option<String>,
    /// The host that begins, and the UDP port there.
    pub from: (usize, u16),
    /// The host that is talked to, and the port there.
    pub to: (usize, u16),
    /// True if they talk by IPv6.
    pub ipv6: bool,
    /// Its largest packets with the IP header, there and back.
    pub largest: (Bytes, Bytes),
}

/// The UDP port of the endpoint that begins a conversation: of those that nobody assigns, apart from the traffic's.
pub(crate) fn own_port(base: u16, index: usize) -> u16 {
    base + (index % 2_000) as u16
}
