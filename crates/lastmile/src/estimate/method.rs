//! [`Method`]: a tool's description of itself, and its constructor.

use crate::estimate::{Estimator, Probes, Quantity, Search, Signal};
use crate::options::{ChoiceError, Entry, Given, Opt, OptionError};
use crate::time::Span;

/// By how much a receiver may stamp packets late: the slowest interrupt rate at which network cards arrive by
/// themselves is some 4,000 a second. An assumption, not a measurement; the methods' configurations can change it.
pub const COALESCING: Span = Span::from_micros(250);

/// Conditions of a run that its user does not choose: the errors of its hosts' stamps, and its seed.
///
/// ```
/// use lastmile::{estimate::Conditions, time::Span};
/// assert_eq!(Conditions::exact(7).timing_noise, Span::ZERO);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Uncertainty of the hosts' stamps beyond their resolution: two microseconds for kernels.
    pub timing_noise: Span,
    /// By how much a receiver that coalesces interrupts may stamp late. Pairs closer than that are believed only if a
    /// burst of 40 packets (60 kB) bears them out; zero trusts them.
    pub coalescing: Span,
    /// Seed of a method's random draws.
    pub seed: u64,
}

impl Default for Conditions {
    /// Those of kernels and network cards.
    fn default() -> Conditions {
        Conditions { timing_noise: Span::from_micros(2), coalescing: COALESCING, seed: 0 }
    }
}

impl Conditions {
    /// Those of hosts whose stamps are uncertain by `noise` beyond their resolution; without noise see [`exact`](Self::exact).
    pub fn of(noise: Span, seed: u64) -> Conditions {
        match noise {
            Span::ZERO => Conditions::exact(seed),
            timing_noise => Conditions { timing_noise, seed, ..Conditions::default() },
        }
    }

    /// Those of simulated hosts, whose stamps are exact and which never coalesce interrupts.
    pub fn exact(seed: u64) -> Conditions {
        Conditions { timing_noise: Span::ZERO, coalescing: Span::ZERO, seed }
    }
}

/// A registered method.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// Its idea, in one line.
    pub about: &'static str,
    /// Its source in the literature.
    pub paper: &'static str,
    /// Quantities that it estimates, in the order of its results.
    pub estimates: &'static [Quantity],
    /// Shapes of its own streams, in the order in which it sends them; those that only look at the path, such as the [`Guard`](super::Guard)'s
    /// burst, do not count.
    pub pattern: &'static [Probes],
    /// Congestion signal that it reads from them.
    pub signal: Signal,
    /// How it finds the turning point from that: any of these searches, where there are several.
    pub search: &'static [Search],
    /// Cases in which its number is wrong or missing, as a sentence without its full stop.
    pub weak: &'static str,
    /// True if it also works on replies to each packet, so that any plain STAMP reflector serves it.
    pub round_trip: bool,
    /// True if `all` has it: it asks for no fact that only its user knows, and takes a minute or so on common paths.
    pub in_all: bool,
    /// The highest rate at 1488 B for which it gives numbers, by the resolution of stamps; beyond it answers "more than".
    pub resolution: &'static str,
    /// Its options.
    pub options: &'static [Opt],
    /// Options with which a run takes at most three seconds, as text; empty if its defaults do.
    pub brief: &'static [(&'static str, &'static str)],
    /// Makes one; [`Method::build`] adds its name to an error.
    pub make: fn(&Given, &Conditions) -> Made,
}

/// A method's state machine, or its wrong option.
pub type Made = Result<Box<dyn Estimator>, OptionError>;

impl Method {
    /// Its row of ECNProbe's Table I: its streams, its congestion signal and its search for the turning point.
    ///
    /// ```
    /// let topp = lastmile::estimate::METHODS.find("topp")?;
    /// assert_eq!(topp.row(), ["pairs, trains", "throughput", "regression"].map(str::to_owned));
    /// # Ok::<(), lastmile::options::ChoiceError>(())
    /// ```
    pub fn row(&self) -> [String; 3] {
        [any(self.pattern, ", "), self.signal.to_string(), any(self.search, " or ")]
    }

    /// Makes one, with the options given to it.
    pub fn build(&self, given: &Given, conditions: &Conditions) -> Result<Box<dyn Estimator>, ChoiceError> {
        (self.make)(given, conditions).map_err(|error| error.of(self.name).into())
    }
}

/// Any of these, in words: "binary search or linear search".
fn any<T: ToString>(of: &[T], between: &str) -> String {
    of.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

impl Entry for Method {
    const WHAT: &'static str = "method";
    fn name(&self) -> &'static str {
        self.name
    }
    fn options(&self) -> &'static [Opt] {
        self.options
    }
}

#[cfg(test)]
mod tests {
    use crate::estimate::{Conditions, METHODS, build};
    use crate::options::{Choice, Kind, Scalar};

    /// Commands show one option for all methods that have it.
    #[test]
    fn options_of_one_name_are_of_one_kind() {
        let all: Vec<_> = METHODS.iter().flat_map(|m| m.options.iter().map(move |o| (m.name, o))).collect();
        for (method, opt) in &all {
            for (other, same) in all.iter().filter(|(_, same)| same.name == opt.name) {
                assert_eq!(opt.kind, same.kind, "{} of {method} and of {other}", opt.name);
            }
        }
    }

    #[test]
    fn tables_are_complete_and_their_values_possible() {
        for method in METHODS.iter() {
            for opt in method.options {
                let what = format!("{} of {}", opt.name, method.name);
                assert!(
                    opt.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                    "{what}"
                );
                assert!(!opt.help.is_empty() && !opt.help.ends_with('.') && !opt.source.is_empty(), "{what}");
                match opt.default() {
                    Some(value) if opt.kind == Kind::Flag => assert_eq!(value, Scalar::Flag(false), "{what}"),
                    Some(value) => {
                        let choice = Choice::named(method.name).with(opt.name, &value.to_string());
                        let refused = build(&choice, &Conditions::default()).err();
                        assert!(refused.is_none(), "{what}: its default: {refused:?}");
                    }
                    None => {}
                }
            }
            let brief =
                method.brief.iter().fold(Choice::named(method.name), |c, (name, value)| c.with(name, value));
            for conditions in [Conditions::default(), Conditions::exact(1)] {
                let refused = build(&brief, &conditions).err();
                assert!(refused.is_none(), "brief options of {}: {refused:?}", method.name);
            }
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused_by_the_name_of_the_option() {
        for (choice, said) in [
            ("capprobe(trains=4)", "capprobe has no option trains"),
            ("capprobe(pairs=30)", "capprobe has no option pairs"),
            ("capprobe(classifier=spike)", "capprobe has no option classifier"),
            (
                "capprobe(min_samples=50, max_samples=40)",
                "min_samples of capprobe must be at most max_samples",
            ),
            ("wbest(capacity=1 Mbit/s, pairs=30)", "pairs of wbest means nothing beside capacity"),
            (
                "wbest(capacity=1 Mbit/s, conservative=true)",
                "conservative of wbest means nothing beside capacity",
            ),
            (
                "wbest(faithful=true, conservative=true)",
                "conservative of wbest is not in the original program",
            ),
            ("wbest(train_length=7)", "train_length of wbest must be 8 to 1000, not 7"),
            ("wbest(classifier=oracle)", "classifier of wbest cannot be oracle: there is no loss classifier"),
            (
                "wbest(classifier=spike(start=2))",
                "classifier of wbest cannot be spike(start=2): start of spike must be 0 to 1",
            ),
        ] {
            let refused = build(&choice.parse().unwrap(), &Conditions::default()).err().unwrap();
            assert!(refused.to_string().starts_with(said), "{choice}: {refused}");
        }
        assert!(
            build(&"wbest(classifier=spike(start=0.4))".parse().unwrap(), &Conditions::default()).is_ok()
        );
    }
}
