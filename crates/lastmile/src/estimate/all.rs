//! `all`: every method that needs no further facts, one after the other, within one budget.

use crate::estimate::{METHODS, Method};
use crate::options::{Choice, ChoiceError, Given, OptionError, Options};
use crate::report::Direction;
use crate::time::Span;
use crate::units::Bytes;

/// Name that stands for all methods.
pub const ALL: &str = "all";

crate::options! {
    /// Budget of all methods together, and the time between two.
    ///
    /// The default budget is for both directions of 10 Mbit/s beside 4 Mbit/s of others each way: with pauses the methods took 271 to 298 s and 31 to
    /// 33 MB there (simulator, seeds 1 to 5, 10 ms).
    pub struct AllConfig {
        /// Between two methods, so that each meets the path as the first did
        pause: Span [Span::ZERO..=Span::from_secs(60)] = Span::from_secs(1), "our own: empties queues of up to a second";
        /// Time of all methods together
        max_time: Span [Span::from_secs(1)..=Span::from_secs(7_200)] = Span::from_secs(360), "our own: both directions of 10 Mbit/s";
        /// Bytes of all methods together, both ways, at the IP layer
        max_bytes: Bytes [Bytes(10_000)..=Bytes(10_000_000_000)] = Bytes(40_000_000), "our own: both directions of 10 Mbit/s";
    }
}

/// The measurements of a choice.
#[derive(Clone, Debug, Default)]
pub struct Expanded {
    /// Each with its direction, in order.
    pub measured: Vec<(Direction, Choice)>,
    /// The budget that they share, if the choice is `all`.
    pub budget: Option<AllConfig>,
}

impl AllConfig {
    /// The measurements that a choice asks for in these directions; [`build`](super::build) has yet to take each. `all` is every method that says so of itself and fits the
    /// direction, the directions of one in a row; its further options go to the methods that have them. Another choice is itself.
    ///
    /// ```
    /// use lastmile::{estimate::AllConfig, report::Direction};
    /// let of = |choice: &str| AllConfig::expand(&choice.parse().unwrap(), &[Direction::RoundTrip]);
    /// let all = of("all(pause=2 s, packet_size=1000 B)")?;
    /// assert_eq!(all.measured[0].1.to_string(), "wbest(packet_size=1000 B)");
    /// assert!(all.measured.iter().all(|(_, choice)| choice.name != "pathload")); // one way only
    /// assert!(of("wbest")?.budget.is_none() && of("ecnprobe").is_err());
    /// let refused = of("all(rate=1 Mbit/s)").unwrap_err().to_string();
    /// assert!(refused.starts_with("all has no option rate"), "{refused}");
    /// # Ok::<(), lastmile::options::ChoiceError>(())
    /// ```
    ///
    /// # Errors
    /// `all` has no such option, or not with that value; or there is no such method, or it does not fit the direction.
    pub fn expand(choice: &Choice, directions: &[Direction]) -> Result<Expanded, ChoiceError> {
        let each = |choices: &[Choice], fits: &dyn Fn(&Choice, Direction) -> bool| {
            let pairs = choices.iter().flat_map(|choice| directions.iter().map(move |&way| (way, choice)));
            pairs
                .filter(|(way, choice)| fits(choice, *way))
                .map(|(way, choice)| (way, choice.clone()))
                .collect()
        };
        if choice.name != ALL {
            let method = METHODS.find(&choice.name)?;
            if directions.contains(&Direction::RoundTrip) && !method.round_trip {
                let why = "cannot be round-trip: it reads how each packet fared on one way, and a reply tells of both; run `lastmile serve` there, and measure forward or reverse";
                return Err(OptionError::new("direction", why).of(method.name).into());
            }
            return Ok(Expanded { measured: each(std::slice::from_ref(choice), &|_, _| true), budget: None });
        }
        let own = |name: &String| AllConfig::OPTIONS.iter().any(|opt| opt.name == name);
        let (own, others): (Given, Given) =
            choice.options.clone().into_iter().partition(|(name, _)| own(name));
        let config = AllConfig::read(&own).map_err(|error| error.of(ALL))?;
        let methods: Vec<&Method> = METHODS.iter().copied().filter(|method| method.in_all).collect();
        let has = |method: &Method, name: &str| method.options.iter().any(|opt| opt.name == name);
        if let Some(name) = others.keys().find(|name| !methods.iter().any(|method| has(method, name))) {
            let known = AllConfig::OPTIONS.iter().map(|opt| opt.name).collect();
            let error = OptionError { unknown: Some(known), ..OptionError::new(name, "") };
            return Err(error.of(ALL).into());
        }
        let mut choices = Vec::new();
        for method in &methods {
            let given = others.iter().filter(|(name, _)| has(method, name));
            let options = given.map(|(name, value)| (name.clone(), value.clone())).collect();
            choices.push(Choice { name: method.name.to_owned(), options });
        }
        let fits = |choice: &Choice, way| {
            way != Direction::RoundTrip || methods.iter().any(|m| m.name == choice.name && m.round_trip)
        };
        Ok(Expanded { measured: each(&choices, &fits), budget: Some(config) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_every_method_without_a_question_and_both_directions_of_one_follow_each_other() {
        let both = [Direction::Forward, Direction::Reverse];
        let all = AllConfig::expand(&Choice::named(ALL), &both).unwrap();
        let said: Vec<String> = all.measured.iter().map(|(way, choice)| format!("{way} {choice}")).collect();
        assert_eq!(said[..3], ["forward wbest", "reverse wbest", "forward capprobe"]);
        assert_eq!(said.len(), 2 * METHODS.iter().filter(|method| method.in_all).count());
        assert!(!said.iter().any(|said| said.ends_with("enough")));
        assert_eq!(all.budget.unwrap().max_bytes, Bytes(40_000_000));
        let error = AllConfig::expand(&"all(max_time=1 ms)".parse().unwrap(), &both).unwrap_err();
        assert!(error.to_string().starts_with("max_time of all must be"), "{error}");
    }
}
