//! Scenarios with one absurd number: refused, or run without a panic, and not stuck.

use lastmile::time::Time;
use lastmile_sim::scenario::{Scenario, build};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::random;

/// Moments that are run at most.
const MOMENTS: u32 = 300;

const ABSURD: [&str; 10] = [
    "0",
    "-1",
    "1",
    "3",
    "65535",
    "1000000",
    "4294967295",
    "9223372036854775807",
    "18446744073709551616",
    "1e-300",
];

/// The number that `which` chooses replaced by another.
fn spoil(text: &str, which: Index, absurd: &str) -> String {
    let digits: Vec<(usize, usize)> = {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for (at, byte) in text.bytes().enumerate() {
            match found.last_mut() {
                Some((_, end)) if *end == at && (byte.is_ascii_digit() || byte == b'.') => *end += 1,
                // Not within a name.
                _ if byte.is_ascii_digit() && !text[..at].ends_with(|c: char| c.is_ascii_alphabetic()) => {
                    found.push((at, at + 1));
                }
                _ => {}
            }
        }
        found
    };
    let (from, to) = digits[which.index(digits.len())];
    format!("{}{absurd}{}", &text[..from], &text[to..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn one_absurd_number(text in random::scenario(), which in any::<Index>(), absurd in prop::sample::select(ABSURD.to_vec())) {
        let text = spoil(&text, which, absurd);
        match Scenario::parse("absurd.toml", &text) {
            Err(error) => prop_assert!(error.line > 0 && !error.reason.is_empty(), "{error}\n{text}"),
            Ok(scenario) => {
                let mut simulation = build(&scenario, 1, vec![]).unwrap();
                for _ in 0..MOMENTS {
                    let Some(next) = simulation.engine.next_event() else { break };
                    prop_assert!(next >= simulation.engine.now());
                    if next > Time::ZERO + scenario.duration {
                        break;
                    }
                    let ran = simulation.engine.run_until(next);
                    prop_assert!(ran.is_ok(), "{:?}\n{}", ran, text);
                }
            }
        }
    }
}
