//! Options that an algorithm declares in its own file, and the values that users give to them.
//!
//! [`options!`](crate::options!) makes of one declaration the algorithm's configuration, its defaults, and the table of
//! [`Opt`]s from which commands, scenario files, recordings and documents take names, kinds, ranges and help. Users ask
//! for a [`Choice`]: a registered name with the options given to it, such as `wbest(trains=4)`.

mod names;
mod types;

use core::fmt;
use core::ops::Deref;
use core::str::FromStr;
use std::collections::BTreeMap;
use std::sync::OnceLock;

pub use types::{OptionType, possible, quantity, read_within, within};

/// The kind of value that an option takes.
///
/// ```
/// use lastmile::options::Kind;
/// assert_eq!((Kind::Span.to_string(), Kind::Span.example()), ("span".into(), "10 ms"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Kind {
    /// True or false; false where it is not given.
    Flag,
    /// A whole number.
    Count,
    /// A number without a unit, such as a share of one.
    Number,
    /// A size.
    Bytes,
    /// A rate of IP packets.
    Rate,
    /// A length of time.
    Span,
    /// A queue's limit: packets or bytes.
    Limit,
    /// A registered loss classifier, with options of its own.
    Classifier,
    /// One of a few names.
    Name,
}

impl Kind {
    /// An example of such a value, as users write it.
    pub fn example(self) -> &'static str {
        match self {
            Kind::Flag => "true",
            Kind::Count => "4",
            Kind::Number => "0.5",
            Kind::Bytes => "1488 B",
            Kind::Rate => "5.12 Mbit/s",
            Kind::Span => "10 ms",
            Kind::Limit => "50 packets",
            Kind::Classifier => "spike",
            Kind::Name => "rfc",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Flag => "flag",
            Kind::Count => "count",
            Kind::Number => "number",
            Kind::Bytes => "bytes",
            Kind::Rate => "rate",
            Kind::Span => "span",
            Kind::Limit => "limit",
            Kind::Classifier => "classifier",
            Kind::Name => "name",
        })
    }
}

/// A value as users write it, before an option gives it a kind: `4`, `0.5`, `true`, `10 ms`.
///
/// ```
/// use lastmile::options::Scalar;
/// assert_eq!(Scalar::parse("4"), Scalar::Count(4));
/// assert_eq!(Scalar::parse("10 ms").to_string(), "10 ms");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(untagged))]
pub enum Scalar {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Count(u64),
    /// Any other number.
    Number(f64),
    /// A quantity with its unit, or a name.
    Text(String),
}

impl Scalar {
    /// Reads a text without quotes: a flag, count or finite number if it is one, otherwise the text itself.
    pub fn parse(text: &str) -> Scalar {
        let text = text.trim();
        let number = || text.parse().ok().filter(|n: &f64| n.is_finite()).map(Scalar::Number);
        let count = || text.parse().ok().map(Scalar::Count);
        let flag = || text.parse().ok().map(Scalar::Flag);
        flag().or_else(count).or_else(number).unwrap_or_else(|| Scalar::Text(text.to_owned()))
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Flag(flag) => flag.fmt(f),
            Scalar::Count(n) => n.fmt(f),
            Scalar::Number(n) => n.fmt(f),
            Scalar::Text(text) => f.pad(text),
        }
    }
}

/// The options that were given, by name.
pub type Given = BTreeMap<String, Scalar>;

/// A registered name and the options given to it, as users write it: `wbest(trains=4)`.
///
/// ```
/// use lastmile::options::Choice;
/// let choice: Choice = "wbest(train-length=20, classifier=spike(start=0.4))".parse()?;
/// assert_eq!(choice.to_string(), "wbest(classifier=spike(start=0.4), train_length=20)");
/// assert_eq!(Choice::named("wbest").to_string(), "wbest");
/// assert!("wbest(trains=".parse::<Choice>().is_err());
/// # Ok::<(), lastmile::options::OptionError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "String", try_from = "String")
)]
pub struct Choice {
    /// The name.
    pub name: String,
    /// The options given to it.
    pub options: Given,
}

impl Choice {
    /// This name, with no options given.
    pub fn named(name: impl Into<String>) -> Choice {
        Choice { name: name.into(), options: Given::new() }
    }

    /// The same with one more option, which replaces an older value of it.
    #[must_use]
    pub fn with(mut self, option: &str, value: &str) -> Choice {
        self.options.insert(option.replace('-', "_"), Scalar::parse(value));
        self
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (i, (name, value)) in self.options.iter().enumerate() {
            write!(f, "{}{name}={value}", if i == 0 { "(" } else { ", " })?;
        }
        f.write_str(if self.options.is_empty() { "" } else { ")" })
    }
}

impl From<Choice> for String {
    fn from(choice: Choice) -> String {
        choice.to_string()
    }
}

impl TryFrom<String> for Choice {
    type Error = OptionError;
    fn try_from(text: String) -> Result<Choice, OptionError> {
        text.parse()
    }
}

impl FromStr for Choice {
    type Err = OptionError;
    fn from_str(text: &str) -> Result<Choice, OptionError> {
        let (name, rest) = match text.split_once('(') {
            None => (text, ""),
            Some((name, rest)) => match rest.trim_end().strip_suffix(')') {
                Some(inner) => (name, inner),
                None => return Err(OptionError::new(text, "lacks its closing parenthesis")),
            },
        };
        let mut choice = Choice::named(name.trim());
        for part in split_outside(rest, ',').filter(|part| !part.trim().is_empty()) {
            let Some((option, value)) = part.split_once('=') else {
                let error = OptionError::new(part.trim(), "has no value: write it as name=value");
                return Err(error.of(&choice.name));
            };
            choice = choice.with(option.trim(), value);
        }
        Ok(choice)
    }
}

/// The parts between separators that stand in no parentheses, empty ones too; none of a text that is nothing but space.
///
/// ```
/// use lastmile::options::split_outside;
/// let parts: Vec<_> = split_outside("wbest(trains=1, pairs=9),,capprobe", ',').collect();
/// assert_eq!(parts, ["wbest(trains=1, pairs=9)", "", "capprobe"]);
/// assert_eq!(split_outside(" ", ',').count(), 0);
/// ```
pub fn split_outside(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let parts = text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == separator && depth == 0
    });
    let none = text.trim().is_empty();
    parts.filter(move |_| !none)
}

/// Refusal of an option: the fault, and the values or names that are possible instead.
///
/// ```
/// use lastmile::options::OptionError;
/// let error = OptionError::new("trains", "must be 1 to 1000, not 0").of("wbest");
/// assert_eq!(error.to_string(), "trains of wbest must be 1 to 1000, not 0");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.spelled(str::to_owned))]
pub struct OptionError {
    /// The name of the option's owner, such as a method; empty if not known.
    pub owner: String,
    /// The option.
    pub option: String,
    /// The fault; follows the option's name in a sentence. Other options' names stand in backticks.
    pub reason: String,
    /// The owner's options, if this is none of them.
    pub unknown: Option<Vec<&'static str>>,
}

impl OptionError {
    /// `reason` follows the option's name in a sentence.
    pub fn new(option: impl Into<String>, reason: impl Into<String>) -> OptionError {
        OptionError { owner: String::new(), option: option.into(), reason: reason.into(), unknown: None }
    }

    /// The same, said of an owner's option.
    #[must_use]
    pub fn of(mut self, owner: &str) -> OptionError {
        self.owner = owner.to_owned();
        self
    }

    /// The sentence, with options spelled as the reader writes them: `--train-length`, `train_length`.
    pub fn spelled(&self, spell: impl Fn(&str) -> String) -> String {
        let option = spell(&self.option);
        let parts = self.reason.split('`').enumerate();
        let reason: String =
            parts.map(|(i, part)| if i % 2 == 1 { spell(part) } else { part.to_owned() }).collect();
        match &self.unknown {
            None if self.owner.is_empty() => format!("{option} {reason}"),
            None => format!("{option} of {} {reason}", self.owner),
            Some(known) if known.is_empty() => format!("{} has no option {option}: it has none", self.owner),
            Some(known) => {
                let known: Vec<_> = known.iter().map(|name| spell(name)).collect();
                format!("{} has no option {option}; its options: {}", self.owner, known.join(", "))
            }
        }
    }
}

/// A [`Choice`] that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// Nothing of that name is registered.
    #[error("there is no {what} {name:?}{} known: {}", mean(meant.as_deref()), known.join(", "))]
    Unknown {
        /// Kind of entry looked for, such as "method".
        what: &'static str,
        /// The name asked for.
        name: String,
        /// The names that there are.
        known: Vec<&'static str>,
        /// The one that is probably meant.
        meant: Option<String>,
    },
    /// An option that it does not take, or not so.
    #[error(transparent)]
    Option(#[from] OptionError),
}

impl ChoiceError {
    /// No entry of a kind is called `name`; `elsewhere` is the entry that other programs call so, in words.
    pub fn unknown(
        what: &'static str,
        name: &str,
        known: Vec<&'static str>,
        elsewhere: Option<&str>,
    ) -> ChoiceError {
        let letters = |name: &str| name.replace(['-', '_', ' ', '+'], "").to_lowercase();
        let spelled = known.iter().find(|known| letters(known) == letters(name));
        let meant = spelled.map(|known| format!("{known:?}")).or_else(|| elsewhere.map(str::to_owned));
        ChoiceError::Unknown { what, name: name.to_owned(), known, meant }
    }
}

fn mean(meant: Option<&str>) -> String {
    meant.map_or_else(|| ";".to_owned(), |meant| format!(": did you mean {meant}?"))
}

/// An entry of a [`Registry`]: it has a name and declares its options.
pub trait Entry {
    /// Kind of entry, as errors call it, such as "method".
    const WHAT: &'static str;
    /// Its name.
    fn name(&self) -> &'static str;
    /// The options that it declares.
    fn options(&self) -> &'static [Opt];
}

/// Entries by name: those of this crate, and those that a program adds.
///
/// ```
/// use lastmile::control::CONTROLLERS;
/// assert_eq!(CONTROLLERS[0].name, "lastmile");
/// assert!(CONTROLLERS.find("wishful").is_err());
/// ```
#[derive(Debug)]
pub struct Registry<E: 'static> {
    own: &'static [&'static E],
    all: OnceLock<Vec<&'static E>>,
}

impl<E: Entry> Registry<E> {
    /// A registry of the entries that come with the crate.
    pub const fn new(own: &'static [&'static E]) -> Registry<E> {
        Registry { own, all: OnceLock::new() }
    }

    /// Adds a program's own entries, once and before any name is looked up: names are read from texts everywhere.
    ///
    /// # Errors
    /// Entries were added before, or two have one name; nothing is changed.
    pub fn add(&self, more: &[&'static E]) -> Result<(), AddError> {
        let all: Vec<&E> = self.own.iter().chain(more).copied().collect();
        let twice = |at: &usize| all[..*at].iter().any(|before| before.name() == all[*at].name());
        if let Some(at) = (0..all.len()).find(twice) {
            return Err(AddError::Twice { what: E::WHAT, name: all[at].name() });
        }
        self.all.set(all).map_err(|_| AddError::Before(E::WHAT))
    }

    /// The entry of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, name: &str) -> Result<&'static E, ChoiceError> {
        self.iter().copied().find(|entry| entry.name() == name).ok_or_else(|| {
            ChoiceError::unknown(E::WHAT, name, self.iter().map(|entry| entry.name()).collect(), None)
        })
    }

    /// All options of a choice: those given, and the defaults of the others that have one.
    pub fn used(&self, choice: &Choice) -> Given {
        let given = &choice.options;
        self.find(&choice.name).map_or_else(|_| given.clone(), |entry| used(entry.options(), given))
    }
}

impl<E> Deref for Registry<E> {
    type Target = [&'static E];
    fn deref(&self) -> &[&'static E] {
        self.all.get().map_or(self.own, Vec::as_slice)
    }
}

/// Why entries cannot be added to a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// Entries were added before.
    #[error("the registry has got its {0}s already: add all of them at once")]
    Before(&'static str),
    /// Two entries have one name.
    #[error("there are two {what}s called {name:?}")]
    Twice {
        /// Kind of entry, such as "method".
        what: &'static str,
        /// Their name.
        name: &'static str,
    },
}

/// All options of an entry: those given, and the defaults of the others that have one.
pub fn used(options: &[Opt], given: &Given) -> Given {
    let value = |opt: &Opt| given.get(opt.name).cloned().or_else(|| opt.default());
    options.iter().filter_map(|opt| Some((opt.name.to_owned(), value(opt)?))).collect()
}

/// One option, as an algorithm declares it.
#[derive(Clone, Copy, Debug)]
pub struct Opt {
    /// Its name, words joined by underscores.
    pub name: &'static str,
    /// Kind of its values.
    pub kind: Kind,
    /// Its effect, in one line.
    pub help: &'static str,
    /// Source of the option and its default: a paper, an RFC.
    pub source: &'static str,
    /// See [`Opt::default`].
    #[doc(hidden)]
    pub shown: fn() -> Option<Scalar>,
    /// See [`Opt::possible`].
    #[doc(hidden)]
    pub range: fn() -> String,
}

impl Opt {
    /// The value where none is given; nothing where the algorithm then does without.
    pub fn default(&self) -> Option<Scalar> {
        (self.shown)()
    }

    /// The values that it takes, such as "1 to 1000".
    pub fn possible(&self) -> String {
        (self.range)()
    }

    /// Its name on a command line, without the two hyphens.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }
}

/// A configuration that is declared by [`options!`](crate::options!).
pub trait Options: Default {
    /// Its options, in the order of their declaration.
    const OPTIONS: &'static [Opt];

    /// Sets one option; refuses a wrong value and an unknown option.
    fn set(&mut self, option: &str, value: &Scalar) -> Result<(), OptionError>;

    /// Refuses a value out of its option's range, for configurations that were not read.
    fn in_range(&self) -> Result<(), OptionError>;

    /// The configuration that these options ask for.
    fn read(given: &Given) -> Result<Self, OptionError> {
        let mut config = Self::default();
        given.iter().try_for_each(|(option, value)| config.set(option, value))?;
        Ok(config)
    }
}

/// The configuration of an entry without options.
///
/// ```
/// use lastmile::options::{Choice, NoOptions, Options};
/// let refused = NoOptions::read(&"none(a=1)".parse::<Choice>()?.options).unwrap_err().of("none");
/// assert_eq!(refused.to_string(), "none has no option a: it has none");
/// # Ok::<(), lastmile::options::OptionError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoOptions;

impl Options for NoOptions {
    const OPTIONS: &'static [Opt] = &[];

    fn set(&mut self, option: &str, _: &Scalar) -> Result<(), OptionError> {
        Err(OptionError { unknown: Some(Vec::new()), ..OptionError::new(option, "") })
    }

    fn in_range(&self) -> Result<(), OptionError> {
        Ok(())
    }
}

/// Declares a configuration and with it the options of an algorithm: for each its help in one line, its name, its type
/// with the range of its values in brackets, its default, and the source of that. Further lines of help are for
/// readers of the code.
///
/// ```
/// use lastmile::options::{Choice, Options};
/// lastmile::options! {
///     /// Parameters of a tool.
///     pub struct Config {
///         /// Pairs to send
///         pairs: usize [5..=1_000] = 30, "WBest: 30";
///         /// Rather under-estimate
///         conservative: bool = false, "WBest, section II.D";
///     }
/// }
/// let given: Choice = "tool(pairs=4)".parse().unwrap();
/// assert_eq!(Config::read(&given.options).unwrap_err().to_string(), "pairs must be 5 to 1000, not 4");
/// assert_eq!(Config::default().pairs, 30);
/// assert_eq!(Config::OPTIONS[0].possible(), "5 to 1000");
/// ```
#[macro_export]
macro_rules! options {
    (
        $(#[$about:meta])*
        $vis:vis struct $Config:ident {$(
            #[doc = $help:literal]
            $(#[doc = $more:literal])*
            $name:ident: $type:ty $([$range:expr])? = $default:expr, $source:literal;
        )*}
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $Config {$(
            #[doc = $help]
            $(#[doc = $more])*
            pub $name: $type,
        )*}

        impl Default for $Config {
            fn default() -> $Config {
                $Config { $($name: $default,)* }
            }
        }

        impl $crate::options::Options for $Config {
            const OPTIONS: &'static [$crate::options::Opt] = &[$($crate::options::Opt {
                name: stringify!($name),
                kind: <$type as $crate::options::OptionType>::KIND,
                help: $help.trim_ascii(),
                source: $source,
                shown: || {
                    let default: $type = $default;
                    $crate::options::OptionType::show(&default)
                },
                range: || $crate::options::possible::<$type>(None$(.or(Some($range)))?),
            },)*];

            fn set(
                &mut self,
                option: &str,
                value: &$crate::options::Scalar,
            ) -> Result<(), $crate::options::OptionError> {
                // Without options nothing reads `value`.
                _ = value;
                let error = |reason: String| $crate::options::OptionError::new(option, reason);
                match option {
                    $(stringify!($name) => {
                        self.$name =
                            $crate::options::read_within(value, None$(.or(Some($range)))?).map_err(error)?;
                        Ok(())
                    })*
                    _ => {
                        let known = Self::OPTIONS.iter().map(|opt| opt.name).collect();
                        Err($crate::options::OptionError { unknown: Some(known), ..error(String::new()) })
                    }
                }
            }

            fn in_range(&self) -> Result<(), $crate::options::OptionError> {
                $({
                    let given = $crate::options::OptionType::show(&self.$name);
                    let given = given.map_or_else(String::new, |given| given.to_string());
                    $crate::options::within(&self.$name, None$(.or(Some($range)))?, given)
                        .map_err(|reason| $crate::options::OptionError::new(stringify!($name), reason))?;
                })*
                Ok(())
            }
        }
    };
}

/// Declares the files of algorithms and lists their entries: each `name` is a module with a constant `ENTRY`, some behind a feature.
macro_rules! registry {
    ($(#[$about:meta])* $vis:vis static $LIST:ident: $Entry:ty; $($(#[cfg($when:meta)])? $name:ident,)*) => {
        $($(#[cfg($when)])? pub mod $name;)*
        $(#[$about])*
        $vis static $LIST: $crate::options::Registry<$Entry> =
            $crate::options::Registry::new(&[$($(#[cfg($when)])? &$name::ENTRY,)*]);
    };
}
pub(crate) use registry;

#[cfg(test)]
mod tests;
