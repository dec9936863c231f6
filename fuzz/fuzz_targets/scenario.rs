//! Scenario files: refused in words or loaded, never a panic; what is loaded can be built and runs, for as many moments
//! as there is patience.
#![no_main]

use lastmile_sim::scenario::{Scenario, build};
use libfuzzer_sys::fuzz_target;

/// Moments at which something happens. A load check that lets through what never ends shows as an engine that calls
/// itself stuck, one that lets through too much as memory.
const MOMENTS: u32 = 5_000;

fuzz_target!(|text: &str| match Scenario::parse("fuzz.toml", text) {
    Ok(scenario) => {
        let Ok(mut simulation) = build(&scenario, 1, Vec::new()) else { return };
        let end = lastmile::time::Time::ZERO + scenario.duration;
        for _ in 0..MOMENTS {
            let Some(next) = simulation.engine.next_event().filter(|next| *next <= end) else { return };
            assert!(next >= simulation.engine.now(), "an event in the past");
            simulation.engine.run_until(next).expect("an engine that is not stuck");
        }
    }
    Err(error) => assert!(error.to_string().starts_with("fuzz.toml")),
});
