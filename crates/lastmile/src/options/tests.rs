//! One option of each kind, from its text to its range.

use super::*;
use crate::time::Span;
use crate::units::{Bytes, Rate};

options! {
    /// One option of each kind.
    struct Config {
        /// A count
        count: usize [1..=10] = 2, "here";
        /// A share
        share: f64 [0.0..=1.0] = 0.5, "here";
        /// A size
        size: Bytes [Bytes(100)..=Bytes(1500)] = Bytes(1488), "here";
        /// A rate
        ///
        /// Of which more could be said.
        rate: Option<Rate> [Rate::ip(1)..=Rate::ip(1_000_000_000)] = None, "here";
        /// A time
        gap: Span [Span::ZERO..=Span::from_secs(1)] = Span::from_millis(10), "here";
        /// A flag
        faithful: bool = false, "here";
    }
}

fn read(text: &str) -> Result<Config, String> {
    let choice: Choice = format!("tool({text})").parse().map_err(|e: OptionError| e.to_string())?;
    Config::read(&choice.options).map_err(|e| e.of("tool").to_string())
}

#[test]
fn every_kind_is_read_as_it_is_written() {
    assert_eq!(read("share=25%").unwrap().share, 0.25);
    let all = "count=10, share=0.25, size=700 B, rate=1.5 Mbit/s, gap=20 us, faithful=true";
    let config = read(all).unwrap();
    assert_eq!(
        config,
        Config {
            count: 10,
            share: 0.25,
            size: Bytes(700),
            rate: Some(Rate::ip(1_500_000)),
            gap: Span::from_micros(20),
            faithful: true
        }
    );
    assert_eq!(
        read("gap=0.5, share=1").unwrap(),
        Config { gap: Span::from_millis(500), share: 1.0, ..Config::default() }
    );
    assert_eq!(read("").unwrap(), Config::default());
}

#[test]
fn what_is_wrong_is_said_with_what_is_possible() {
    for (given, said) in [
        ("count=11", "count of tool must be 1 to 10, not 11"),
        ("count=-1", "count of tool must be a count such as 4, not -1"),
        ("count=1.5", "count of tool must be a count such as 4, not 1.5"),
        ("share=1.01", "share of tool must be 0 to 1, not 1.01"),
        ("share=nan", "share of tool must be a number such as 0.5, not nan"),
        ("size=99 B", "size of tool must be 100 B to 1500 B, not 99 B"),
        ("size=700", "size of tool cannot be read: \"700\" has no unit: type 700B for bytes, 700kB or 700MB"),
        (
            "rate=5",
            "rate of tool cannot be read: \"5\" has no unit: type 5M for Mbit/s, 5k for kbit/s or 5bps for bit/s",
        ),
        ("rate=0 bit/s", "rate of tool must be 1 bit/s to 1 Gbit/s, not 0 bit/s"),
        ("gap=-1 ms", "gap of tool must be 0 ns to 1 s, not -1 ms"),
        ("faithful=1", "faithful of tool must be true or false, not 1"),
        ("speed=1", "tool has no option speed; its options: count, share, size, rate, gap, faithful"),
        ("count", "count of tool has no value: write it as name=value"),
    ] {
        assert_eq!(read(given).unwrap_err(), said);
    }
}

#[test]
fn a_configuration_that_was_not_read_is_held_to_the_ranges() {
    assert_eq!(Config::default().in_range(), Ok(()));
    let wrong = Config { rate: Some(Rate::ip(0)), ..Config::default() }.in_range().unwrap_err();
    assert_eq!(wrong.of("tool").to_string(), "rate of tool must be 1 bit/s to 1 Gbit/s, not 0 bit/s");
    let wrong = Config { share: f64::NAN, ..Config::default() }.in_range().unwrap_err();
    assert_eq!(wrong.to_string(), "share must be 0 to 1, not NaN");
}

#[test]
fn the_table_says_what_was_declared() {
    let rows: Vec<_> = Config::OPTIONS
        .iter()
        .map(|o| (o.name, o.kind, o.default().map(|d| d.to_string()), o.possible()))
        .collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(rows[0], ("count", Kind::Count, some("2"), "1 to 10".into()));
    assert_eq!(rows[3], ("rate", Kind::Rate, None, "1 bit/s to 1 Gbit/s".into()));
    assert_eq!(rows[5], ("faithful", Kind::Flag, some("false"), "true or false".into()));
    assert_eq!(Config::OPTIONS[0].help, "A count");
    let given = Given::from([("count".to_owned(), Scalar::Count(7))]);
    let used = used(Config::OPTIONS, &given);
    assert_eq!(
        (used.len(), &used["count"], &used["gap"]),
        (5, &Scalar::Count(7), &Scalar::Text("10 ms".into()))
    );
}

#[test]
fn choices_are_read_as_they_are_printed() {
    for text in ["a", "a(b=1)", "a(b=c(d=1, e=2 ms), f=true)", "a(b=c(d=(x)))"] {
        assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
    }
    assert_eq!("a( b-c = 1 ,)".parse::<Choice>().unwrap().to_string(), "a(b_c=1)");
    for text in ["a(", "a(b=1", "a(b)"] {
        assert!(text.parse::<Choice>().is_err(), "{text}");
    }
}

#[test]
fn a_registry_takes_entries_once_and_no_name_twice() {
    use crate::estimate::{METHODS, Method};
    let registry = Registry::<Method>::new(&[]);
    let twice = registry.add(&[METHODS[0], METHODS[1], METHODS[0]]).unwrap_err();
    assert_eq!(twice.to_string(), format!("there are two methods called {:?}", METHODS[0].name));
    assert!(registry.is_empty());
    registry.add(&METHODS).unwrap();
    assert_eq!(
        (registry.len(), registry.find(METHODS[1].name).unwrap().name),
        (METHODS.len(), METHODS[1].name)
    );
    assert_eq!(registry.add(&[]), Err(AddError::Before("method")));
}
