//! Claims of papers: the sentence, the paper's numbers or words, the bars and the decision, together.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::{Bound, RangeBounds};

use super::results::{Middle, Results};
use crate::World;

/// Something that a paper says, and that runs decide.
pub struct Claim {
    /// Its name: the paper's letter and a number; `x` for readings of our own.
    pub id: &'static str,
    /// The claim in a sentence.
    pub claim: String,
    /// The paper's numbers or words.
    pub paper: Stated,
    /// The world whose runs decide.
    pub world: World,
    /// The items whose runs decide.
    pub items: &'static [&'static str],
    /// Decides it.
    pub decide: Box<dyn Fn(&Results) -> Parts>,
    /// Cause if it does not hold, and the variant in which it does, if there is one. It begins with `Cause` where runs show it.
    pub cause: &'static str,
}

impl Claim {
    /// One that runs in the simulator decide.
    pub fn new(
        id: &'static str,
        claim: impl Into<String>,
        paper: Stated,
        items: &'static [&'static str],
        decide: impl Fn(&Results) -> Parts + 'static,
    ) -> Claim {
        let (claim, decide) = (claim.into(), Box::new(decide));
        Claim { id, claim, paper, world: World::Sim, items, decide, cause: "" }
    }

    /// A claim again, in another set-up: its sentence begins with the other's name, and the paper has the same of both.
    ///
    /// # Panics
    /// There is no claim of that name.
    pub fn again(
        claims: &[Claim],
        id: &'static str,
        claim: impl Into<String>,
        items: &'static [&'static str],
        decide: impl Fn(&Results) -> Parts + 'static,
    ) -> Claim {
        let claim = claim.into();
        let of = claim.split(|c: char| !c.is_ascii_alphanumeric()).next();
        let other = claims.iter().find(|other| Some(other.id) == of).expect("a sentence begins with a claim");
        Claim::new(id, claim, other.paper.clone(), items, decide)
    }

    /// True for the paper's claims: others are readings of our own.
    pub fn is_of_the_paper(&self) -> bool {
        !self.id.starts_with('x')
    }

    /// The same, decided by runs in the lab.
    pub fn lab(self) -> Claim {
        Claim { world: World::Lab, ..self }
    }

    /// The same with the cause why it does not hold.
    pub fn cause(self, cause: &'static str) -> Claim {
        Claim { cause, ..self }
    }
}

/// A paper's numbers or words for a claim, and their place: table, figure, section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stated {
    /// Numbers with their units: each stands in the paper's `figures.toml`.
    Numbers {
        /// Where.
        at: &'static str,
        /// The numbers.
        says: String,
    },
    /// No number. Its words, and the bar of ours that they are taken for.
    Words {
        /// Where.
        at: &'static str,
        /// The words.
        says: &'static str,
        /// The bar.
        bar: &'static str,
    },
}

impl Stated {
    /// Numbers that stand in the paper.
    pub fn numbers(at: &'static str, says: impl Into<String>) -> Stated {
        Stated::Numbers { at, says: says.into() }
    }

    /// Words of the paper, and our bar.
    pub fn words(at: &'static str, says: &'static str, bar: &'static str) -> Stated {
        Stated::Words { at, says, bar }
    }
}

impl Display for Stated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stated::Numbers { at, says } => write!(f, "{at}: {says}"),
            Stated::Words { at, says, bar } => write!(f, "{at}, in words: {says}; our bar: {bar}"),
        }
    }
}

/// The bar of a value: the numbers that decide also make its words.
///
/// ```
/// use lastmile_study::papers::Bar;
/// let bar = Bar::near(84.0, 4.0);
/// assert!(bar.holds(80.0) && !bar.holds(79.9));
/// assert_eq!(bar.to_string(), "84 ± 4");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    middle: f64,
    range: (Bound<f64>, Bound<f64>),
    words: String,
}

impl Bar {
    fn of(low: Bound<f64>, high: Bound<f64>, words: String) -> Bar {
        Bar { middle: 0.0, range: (low, high), words }
    }

    /// From one number to another, `92 to 108`.
    pub fn between(low: f64, high: f64) -> Bar {
        Bar::of(Bound::Included(low), Bound::Included(high), format!("{low} to {high}"))
    }

    /// No further from zero, `within 4`.
    pub fn within(by: f64) -> Bar {
        Bar::between(-by, by).said(format!("within {by}"))
    }

    /// No further from a number of the paper, `84 ± 4`.
    pub fn near(paper: f64, by: f64) -> Bar {
        Bar { middle: paper, ..Bar::within(by).said(format!("{paper} ± {by}")) }
    }

    /// More, `above 90`.
    pub fn above(low: f64) -> Bar {
        Bar::of(Bound::Excluded(low), Bound::Unbounded, format!("above {low}"))
    }

    /// Less, `below 5`.
    pub fn below(high: f64) -> Bar {
        Bar::of(Bound::Unbounded, Bound::Excluded(high), format!("below {high}"))
    }

    /// As much or more, `90 or more`.
    pub fn or_more(low: f64) -> Bar {
        Bar::of(Bound::Included(low), Bound::Unbounded, format!("{low} or more"))
    }

    /// As much or less, `10 or less`.
    pub fn or_less(high: f64) -> Bar {
        Bar::of(Bound::Unbounded, Bound::Included(high), format!("{high} or less"))
    }

    /// The same in other words.
    pub fn said(self, words: impl Into<String>) -> Bar {
        Bar { words: words.into(), ..self }
    }

    /// True if a value is within it.
    pub fn holds(&self, value: f64) -> bool {
        self.range.contains(&(value - self.middle))
    }

    /// True if an end of the bar lies within the interval, so that chance decides.
    pub(super) fn straddles(&self, Middle { interval: (low, high), .. }: Middle) -> bool {
        let ends = [self.range.0, self.range.1].into_iter().filter_map(|end| match end {
            Bound::Included(end) | Bound::Excluded(end) => Some(end + self.middle),
            Bound::Unbounded => None,
        });
        (self.holds(low) != self.holds(high)) || ends.into_iter().any(|end| low < end && end < high)
    }
}

impl Display for Bar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words)
    }
}

/// Verdict on a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Nothing where it cannot be decided.
    pub holds: Option<bool>,
    /// Our value.
    pub ours: String,
    /// The parts that do not hold, or the reason why it cannot be decided.
    pub why: String,
    /// True if chance alone decides after enough runs.
    pub by_chance: bool,
}

/// One thing that a claim is about.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Part {
    /// Its name, or the whole statement of one without a value.
    pub part: String,
    /// The median, nothing where it is not known.
    pub ours: Option<f64>,
    /// The ends of its 95 % interval.
    pub low: Option<f64>,
    /// The upper one.
    pub high: Option<f64>,
    /// Runs behind it; nothing where no run has a part in it.
    pub n: Option<usize>,
    /// Its unit.
    pub unit: &'static str,
    /// The bar, in words.
    pub bar: String,
    /// True if it holds; nothing for a part that stands beside others, or is not known.
    pub holds: Option<bool>,
}

/// Collects the parts of a claim.
#[derive(Debug, Default)]
pub struct Parts {
    unit: &'static str,
    parts: Vec<Part>,
    said: Vec<String>,
    missed: Vec<String>,
    /// Of the missed ones those that no chance has a part in, or whose whole interval misses.
    surely: usize,
    /// Those whose intervals hold an end of their bars, and the fewest runs behind one.
    straddling: Vec<String>,
    fewest: Option<usize>,
    unknown: Vec<String>,
}

impl Parts {
    /// Its values are in that unit.
    pub fn of(unit: &'static str) -> Parts {
        Parts { unit, ..Parts::default() }
    }

    /// Values that have to be so, of each of some.
    pub fn each<K, V: Into<Middle>>(
        unit: &'static str,
        all: impl IntoIterator<Item = K>,
        of: impl Fn(K) -> (String, Option<V>, Bar),
    ) -> Parts {
        all.into_iter().map(of).fold(Parts::of(unit), |mut parts, (what, value, bar)| {
            parts.value(what, value, bar);
            parts
        })
    }

    /// With parts in another unit.
    pub fn and(mut self, other: Parts) -> Parts {
        self.parts.extend(other.parts);
        self.said.extend(other.said);
        self.missed.extend(other.missed);
        self.surely += other.surely;
        self.straddling.extend(other.straddling);
        self.fewest = self.fewest.into_iter().chain(other.fewest).min();
        self.unknown.extend(other.unknown);
        self
    }

    /// A value that has to be so; one that is not known decides nothing.
    pub fn value(&mut self, what: impl Into<String>, value: Option<impl Into<Middle>>, bar: Bar) {
        let what = what.into();
        let found: Option<Middle> = value.map(Into::into);
        self.parts.push(Part {
            bar: bar.to_string(),
            holds: found.map(|found| bar.holds(found.median)),
            ..self.part(&what, found)
        });
        let Some(found) = found else { return self.unknown.push(what) };
        let straddles = bar.straddles(found);
        let behind = behind(found).into_iter().chain([format!("bar {bar}")]).collect::<Vec<_>>().join(", ");
        let said = format!("{what} {} ({behind})", self.number(found.median));
        if straddles {
            self.straddling.push(said.clone());
            self.fewest = self.fewest.into_iter().chain([found.runs]).min();
        }
        if !bar.holds(found.median) {
            self.missed.push(format!("{what} {}, not {bar}", self.number(found.median)));
            self.surely += usize::from(!straddles);
        }
        self.said.push(said);
    }

    /// A value beside which others are judged.
    pub fn beside(&mut self, what: impl Into<String>, value: Option<impl Into<Middle>>) {
        let what = what.into();
        let value: Option<Middle> = value.map(Into::into);
        self.parts.push(self.part(&what, value));
        let Some(value) = value else { return self.unknown.push(what) };
        let behind = behind(value).join(", ");
        let behind = if behind.is_empty() { behind } else { format!(" ({behind})") };
        self.said.push(format!("{what} {}{behind}", self.number(value.median)));
    }

    fn part(&self, what: &str, value: Option<Middle>) -> Part {
        let ends = value.filter(|value| value.runs > 0 || value.interval.0 < value.interval.1);
        let ends = ends.map(|value| value.interval);
        Part {
            part: what.to_owned(),
            ours: value.map(|value| value.median),
            low: ends.map(|ends| ends.0),
            high: ends.map(|ends| ends.1),
            n: value.map(|value| value.runs).filter(|runs| *runs > 0),
            unit: self.unit,
            bar: String::new(),
            holds: None,
        }
    }

    fn number(&self, value: f64) -> String {
        format!("{} {}", short(value), self.unit).trim_end().to_owned()
    }

    /// A statement that has to be true.
    pub fn holds(&mut self, said: String, holds: bool) {
        self.parts.push(Part { holds: Some(holds), ..self.part(&said, None) });
        if !holds {
            self.missed.push(said.clone());
            self.surely += 1;
        }
        self.said.push(said);
    }

    /// One of many that have to be so: nothing is said of it unless it is not.
    pub fn wants(&mut self, what: &str, holds: Option<bool>) {
        if holds != Some(true) {
            self.parts.push(Part { holds, ..self.part(what, None) });
        }
        match holds {
            None => self.unknown.push(what.to_owned()),
            Some(true) => {}
            Some(false) => {
                self.missed.push(format!("not {what}"));
                self.surely += 1;
            }
        }
    }

    /// Verdict on all parts; no part decides nothing, nor does one that is not known unless another misses for sure. Nor do so many runs behind each number whose interval holds an end of its bar, if
    /// no number misses by its whole interval.
    pub fn verdict(self, enough: usize) -> Verdict {
        let (ours, any) = (self.said.join(", "), !(self.said.is_empty() && self.missed.is_empty()));
        let unknown =
            (!self.unknown.is_empty()).then(|| format!("nothing is known of {}", self.unknown.join(", ")));
        match (unknown.is_none(), self.missed.is_empty()) {
            (false, _) => {
                let holds = (self.surely > 0).then_some(false);
                let why = self.missed.into_iter().chain(unknown).collect::<Vec<_>>().join("; ");
                Verdict { holds, ours, why, by_chance: false }
            }
            (true, _) if self.surely == 0 && self.fewest.is_some_and(|runs| runs >= enough) => {
                let why = format!("not decided, 95 % intervals hold the bar: {}", self.straddling.join("; "));
                Verdict { holds: None, ours, why, by_chance: true }
            }
            (true, holds) => {
                let why = self.missed.join("; ");
                Verdict { holds: any.then_some(holds), ours, why, by_chance: false }
            }
        }
    }
}

/// The interval of a number, and the runs behind it, in words; nothing of one in which chance has no part.
fn behind(Middle { interval: (low, high), runs, .. }: Middle) -> Vec<String> {
    let interval = (runs > 0 || low < high).then(|| format!("{} to {}", short(low), short(high)));
    interval.into_iter().chain((runs > 0).then(|| format!("n {runs}"))).collect()
}

/// With a digit behind the point, two below one.
fn short(value: f64) -> String {
    let digits = if value != 0.0 && value.abs() < 1.0 { 2 } else { 1 };
    format!("{value:.digits$}")
}

/// A number that a claim goes by and that some of its runs do not have.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Without {
    pub(crate) number: String,
    pub(crate) without: usize,
    /// Of all runs in which it was looked for.
    pub(crate) runs: usize,
}

impl Results {
    /// Verdict on a claim, its parts, and the numbers behind it that some runs do not have.
    pub(crate) fn decide(
        &self,
        decide: &dyn Fn(&Results) -> Parts,
        enough: usize,
    ) -> (Verdict, Vec<Part>, Vec<Without>) {
        self.asked.take();
        let parts = decide(self);
        let rows = parts.parts.clone();
        let verdict = parts.verdict(enough);
        let mut sums = BTreeMap::<String, (usize, usize)>::new();
        for ((_, number), (with, without)) in self.asked.take() {
            let sum = sums.entry(number).or_default();
            *sum = (sum.0 + with, sum.1 + without);
        }
        let some = sums.into_iter().filter(|(_, (_, without))| *without > 0);
        let all = some.map(|(number, (with, without))| Without { number, without, runs: with + without });
        (verdict, rows, all.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::case::{Case, Numbers};

    #[test]
    fn values_are_said_with_their_units() {
        let mut parts = Parts::of("%");
        parts.value("a", Some(64.25), Bar::or_more(90.0));
        parts.beside("b", Some(0.126));
        let mut times = Parts::of("ms");
        times.value("c", Some(0.0), Bar::below(1.0));
        let verdict = parts.and(times).verdict(usize::MAX);
        assert_eq!(verdict.ours, "a 64.2 % (bar 90 or more), b 0.13 %, c 0.0 ms (bar below 1)");
        assert_eq!((verdict.holds, verdict.why.as_str()), (Some(false), "a 64.2 %, not 90 or more"));
    }

    #[test]
    fn what_is_not_known_decides_nothing_unless_another_part_misses() {
        let mut parts = Parts::default();
        parts.value("a", Some(2.0), Bar::above(1.0));
        parts.beside("b", None::<f64>);
        let verdict = parts.verdict(usize::MAX);
        assert_eq!((verdict.holds, verdict.why.as_str()), (None, "nothing is known of b"));
        let mut parts = Parts::default();
        parts.value("a", Some(0.5), Bar::above(1.0));
        parts.beside("b", None::<f64>);
        let verdict = parts.verdict(usize::MAX);
        assert_eq!(
            (verdict.holds, verdict.why.as_str()),
            (Some(false), "a 0.50, not above 1; nothing is known of b")
        );
        assert_eq!(Parts::of("%").verdict(usize::MAX).holds, None);
    }

    /// Chance decides where an interval holds an end of the bar; enough runs say so, unless another number misses for sure.
    #[test]
    fn what_chance_decides_is_not_decided_by_enough_runs() {
        let near = Middle { median: 89.0, interval: (86.0, 91.0), runs: 100 };
        let claim = |other: f64, enough| {
            let mut parts = Parts::of("%");
            parts.value("a", Some(near), Bar::or_more(90.0));
            parts.value("b", Some(other), Bar::or_more(90.0));
            parts.verdict(enough)
        };
        assert_eq!((claim(95.0, 101).holds, claim(95.0, 100).holds), (Some(false), None));
        assert_eq!(
            claim(95.0, 100).why,
            "not decided, 95 % intervals hold the bar: a 89.0 % (86.0 to 91.0, n 100, bar 90 or more)"
        );
        assert_eq!(claim(80.0, 100).holds, Some(false));
        let within = |median, interval| Bar::near(84.0, 4.0).straddles(Middle { median, interval, runs: 1 });
        assert_eq!(
            [within(84.0, (81.0, 87.0)), within(84.0, (79.0, 89.0)), within(90.0, (89.0, 91.0))],
            [false, true, false]
        );
    }

    /// A bar that goes by a value of another run that is not known holds for nothing.
    #[test]
    fn bars_hold_at_their_numbers_and_say_them() {
        let said = |bar: Bar, values: [f64; 3]| (bar.to_string(), values.map(|value| bar.holds(value)));
        assert_eq!(said(Bar::between(92.0, 108.0), [91.9, 92.0, 108.0]).1, [false, true, true]);
        assert_eq!(said(Bar::within(1.5), [-1.5, 1.5, 1.6]), ("within 1.5".to_owned(), [true, true, false]));
        assert_eq!(said(Bar::near(84.0, 4.0), [80.0, 88.0, 4.0]), ("84 ± 4".to_owned(), [true, true, false]));
        assert_eq!(said(Bar::above(f64::NAN), [-1e9, 0.0, 1e9]).1, [false; 3]);
        assert_eq!(said(Bar::below(5.0), [4.9, 5.0, f64::NAN]), ("below 5".to_owned(), [true, false, false]));
        assert_eq!((Bar::or_more(90.0).holds(90.0), Bar::or_less(10.0).holds(10.1)), (true, false));
    }

    /// Of `x` one of five runs has none. A number that was asked for before the claim is not its.
    #[test]
    fn a_claim_says_how_many_runs_have_no_number() {
        let of = |values: &[Option<f64>]| {
            values
                .iter()
                .map(|value| value.map(|x| ("x".into(), x)).into_iter().collect::<Numbers>())
                .collect()
        };
        let runs =
            [(Case::new("a"), of(&[Some(1.0), None, Some(3.0)])), (Case::new("b"), of(&[Some(5.0); 2]))];
        let results = Results { runs: runs.into(), ..Results::none(3) };
        results.values(&Case::new("a"), "y");
        let (verdict, rows, without) = results.decide(
            &|results| {
                let mut parts = Parts::default();
                // Asked twice is once.
                for case in ["a", "b", "a"] {
                    parts.beside(case, results.median(&Case::new(case), "x"));
                }
                parts
            },
            100,
        );
        assert_eq!(verdict.ours, "a 2.0 (1.0 to 3.0, n 2), b 5.0 (5.0 to 5.0, n 2), a 2.0 (1.0 to 3.0, n 2)");
        assert_eq!(
            rows.iter().map(|row| (&*row.part, row.ours)).collect::<Vec<_>>(),
            [("a", Some(2.0)), ("b", Some(5.0)), ("a", Some(2.0))]
        );
        assert_eq!(without, [Without { number: "x".to_owned(), without: 1, runs: 5 }]);
    }
}
