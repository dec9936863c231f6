//! Scenario files: refused in words or loaded, never a panic; what is loaded can be built.
#![no_main]

use lastmile_sim::scenario::{Scenario, build};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match Scenario::parse("fuzz.toml", text) {
    Ok(scenario) => {
        let _ = build(&scenario, 1, Vec::new());
    }
    Err(error) => assert!(error.to_string().starts_with("fuzz.toml")),
});
