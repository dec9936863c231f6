//! The twin of lastmile's `examples/measure.rs`: the same prober, inside a simulated network whose truth is known.
#![allow(clippy::print_stdout)] // a report
use std::error::Error;

use lastmile::estimate::{self, Conditions};
use lastmile::{Decision, Direction, Measurement, Prober, ProberConfig, Reflector, ReflectorConfig, Time};
use lastmile_sim::scenario::{Attach, Scenario, build};

/// 10 Mbit/s, of which other traffic takes 4.
const PATH: &str = r#"
name = "embed"
duration = "10 s"
host = { here = {}, there = {} }
link = [{ from = "here", to = "there", rate = "10 Mbit/s", delay = "5 ms", queue = "60 kB" }]
traffic = [{ name = "cross", kind = "poisson", from = "here", to = "there", rate = "4 Mbit/s", size = "1500 B" }]
"#;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    for decision in measure()? {
        match decision {
            Decision::Estimated { estimate, .. } => println!("{}: {}", estimate.quantity, estimate.value),
            Decision::Refused { refusal, .. } => println!("no result: {refusal}"),
            _ => {}
        }
    }
    Ok(())
}

pub(crate) fn measure() -> Result<Vec<Decision>, Box<dyn Error>> {
    let scenario = Scenario::parse("embed.toml", PATH)?;
    let there = (scenario.hosts[1].address(false), 8620).into();
    let estimator = estimate::build(&"wbest".parse()?, &Conditions::exact(0))?;
    let measurement = Measurement { method: "wbest".into(), direction: Direction::Forward, estimator };
    // Seeds are constants here: nobody guesses in a simulation, and the same seeds give the same bytes.
    let prober = Prober::new(ProberConfig::new(there, [1; 32]), vec![measurement]);
    let reflector = Reflector::new(ReflectorConfig::new([2; 32]));
    let attached = [("here", Attach::endpoint(prober)), ("there", Attach::endpoint(reflector))];
    let attached = attached.map(|(host, endpoint)| (host.to_owned(), endpoint)).into();
    let mut engine = build(&scenario, 1, attached)?.engine;
    engine.run_until(Time::ZERO + scenario.duration)?;
    Ok(engine.take_events().iter().filter_map(|event| event.what.of().cloned()).collect())
}
