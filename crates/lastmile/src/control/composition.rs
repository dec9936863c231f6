//! Names that compose: `tfrc+zbs` is the controller `tfrc` with the loss classifier `zbs` in front, `tfrc+probe+zbs` the same
//! with capacity probing around it.

use core::fmt;
use core::str::FromStr;

use super::{CONTROLLERS, WRAPPERS};
use crate::classify::CLASSIFIERS;
use crate::options::{Choice, OptionError, Scalar, split_outside};

/// A controller, its wrapper, and the classifier in front of it, each with the options given to it.
///
/// ```
/// use lastmile::control::Composition;
/// let composed: Composition = "tfrc(preset=ns-2)+zbs(equal-size=true)".parse()?;
/// assert_eq!(composed.controller.name, "tfrc");
/// assert_eq!(composed.to_string(), "tfrc(preset=ns-2)+zbs(equal_size=true)");
/// assert_eq!("tfrc-wireless".parse::<Composition>()?.to_string(), "tfrc+spike");
/// assert!("tfrc+spike+zbs".parse::<Composition>().is_err());
/// # Ok::<(), lastmile::options::OptionError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "String", try_from = "String")
)]
pub struct Composition {
    /// The scheme that sets the rate.
    pub controller: Choice,
    /// The wrapper around the controller, such as capacity probing.
    pub wrapper: Option<Choice>,
    /// The classifier that tells the controller which losses are no congestion.
    pub classifier: Option<Choice>,
}

impl Composition {
    /// `controller` alone, without wrapper and classifier.
    pub fn of(controller: Choice) -> Composition {
        Composition { controller, wrapper: None, classifier: None }
    }

    /// True if the receiver counts and judges losses: `tfrc(form=receiver)`.
    pub fn at_receiver(&self) -> bool {
        let form = self.controller.options.get("form");
        self.controller.name == "tfrc" && form == Some(&Scalar::Text("receiver".to_owned()))
    }

    /// True if the classifier reads the simulator's side channel ([`LossTruth`](super::LossTruth)).
    pub fn needs_truth(&self) -> bool {
        self.classifier.as_ref().is_some_and(|classifier| classifier.name == "omniscient")
    }
}

/// A name that stands for a controller with a classifier in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The name.
    pub name: &'static str,
    /// The controller.
    pub controller: &'static str,
    /// The classifier.
    pub classifier: &'static str,
}

/// Names that papers use, and what they mean.
///
/// ```
/// use lastmile::control::{ALIASES, Composition};
/// for alias in ALIASES {
///     let composed: Composition = alias.name.parse()?;
///     assert_eq!(composed.to_string(), format!("{}+{}", alias.controller, alias.classifier));
/// }
/// # Ok::<(), lastmile::options::OptionError>(())
/// ```
pub const ALIASES: &[Alias] = &[Alias { name: "tfrc-wireless", controller: "tfrc", classifier: "spike" }];

impl FromStr for Composition {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<Composition, OptionError> {
        let wrong = |reason: &str| Err(OptionError::new(text, reason));
        if text.trim().is_empty() {
            return wrong("names no rate controller");
        }
        if split_outside(text, '+').any(|part| part.trim().is_empty()) {
            return wrong("has a + with no name beside it");
        }
        if let Some(ordered) = ordered(text) {
            return wrong(&format!("is in another order than names compose in: {ordered}"));
        }
        let mut parts = split_outside(text, '+').map(str::parse::<Choice>);
        let Some(controller) = parts.next() else { return wrong("names no rate controller") };
        let mut controller = controller?;
        let mut next = parts.next().transpose()?;
        let wrapper = next.take_if(|choice| WRAPPERS.iter().any(|wrapper| wrapper.name == choice.name));
        let mut classifier = if wrapper.is_some() { parts.next().transpose()? } else { next };
        if let Some(alias) = ALIASES.iter().find(|alias| alias.name == controller.name) {
            if classifier.is_some() {
                return wrong("has two loss classifiers: its name stands for one already");
            }
            controller.name = alias.controller.to_owned();
            classifier = Some(Choice::named(alias.classifier));
        }
        if parts.next().is_some() {
            return wrong("has more than one loss classifier");
        }
        Ok(Composition { controller, wrapper, classifier })
    }
}

/// The same names in the order in which they compose, if `text` has another: the controller, its wrapper, the classifier.
fn ordered(text: &str) -> Option<String> {
    let rank = |part: &&str| {
        let name = part.split('(').next().unwrap_or_default().trim();
        let is = |known: &str| known == name;
        if CONTROLLERS.iter().any(|entry| is(entry.name)) || ALIASES.iter().any(|alias| is(alias.name)) {
            return Some(0);
        }
        if WRAPPERS.iter().any(|entry| is(entry.name)) {
            return Some(1);
        }
        CLASSIFIERS.iter().any(|entry| is(entry.name)).then_some(2)
    };
    let parts: Vec<&str> = split_outside(text, '+').map(str::trim).collect();
    let ranks: Vec<u8> = parts.iter().map(rank).collect::<Option<_>>()?;
    let mut places: Vec<usize> = (0..parts.len()).collect();
    places.sort_by_key(|place| ranks[*place]);
    (!ranks.is_sorted()).then(|| places.iter().map(|place| parts[*place]).collect::<Vec<_>>().join("+"))
}

impl fmt::Display for Composition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.controller)?;
        self.wrapper.iter().chain(&self.classifier).try_for_each(|part| write!(f, "+{part}"))
    }
}

impl From<Composition> for String {
    fn from(composition: Composition) -> String {
        composition.to_string()
    }
}

impl TryFrom<String> for Composition {
    type Error = OptionError;
    fn try_from(text: String) -> Result<Composition, OptionError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for text in [
            "fixed",
            "fixed+spike",
            "fixed(a=1)+spike(end=0.1, start=0.4)",
            "a(b=c+d)+e",
            "a+probe(every=9)+b",
            "a+probe",
        ] {
            assert_eq!(text.parse::<Composition>().unwrap().to_string(), text);
        }
        assert_eq!(
            "tfrc-wireless(preset=ns-2)".parse::<Composition>().unwrap().to_string(),
            "tfrc(preset=ns-2)+spike"
        );
    }

    #[test]
    fn what_makes_no_controller_is_refused_with_a_reason() {
        for (text, said) in [
            ("", "names no rate controller"),
            ("tfrc++zbs", "tfrc++zbs has a + with no name beside it"),
            ("tfrc+", "tfrc+ has a + with no name beside it"),
            ("probe+vtp", "probe+vtp is in another order than names compose in: vtp+probe"),
            (
                "spike(start=0.4)+tfrc+probe",
                "spike(start=0.4)+tfrc+probe is in another order than names compose in: tfrc+probe+spike(start=0.4)",
            ),
            ("a+b+c", "a+b+c has more than one loss classifier"),
            ("tfrc-wireless+zbs", "tfrc-wireless+zbs has two loss classifiers"),
        ] {
            let refused = text.parse::<Composition>().unwrap_err().to_string();
            assert!(refused.trim_start().starts_with(said), "{refused}");
        }
        let unknown =
            super::super::build(&"fixed+oracle".parse().unwrap(), &Default::default()).err().unwrap();
        assert!(unknown.to_string().starts_with("there is no loss classifier \"oracle\""), "{unknown}");
    }
}
