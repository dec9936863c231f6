//! Scenarios made, run and read.

use lastmile::time::{Span, Time};
use lastmile_sim::scenario::{Override, Scenario, Simulation, build, builtin_text};

/// ns-2's options. Its window of 20 is lifted, as in all the runs here.
pub const NS2: [(&str, &str); 2] = [("preset", "ns2"), ("max_window", "1000")];

/// The same as an inline table, with more keys.
pub fn ns2_tcp(more: &[(&str, &str)]) -> String {
    let one = |&(key, value): &(&str, &str)| match toml::from_str::<toml::Table>(&format!("{key} = {value}"))
    {
        Ok(_) => format!("{key} = {value}"),
        Err(_) => format!("{key} = \"{value}\""),
    };
    format!("{{ {} }}", NS2.iter().chain(more).map(one).collect::<Vec<_>>().join(", "))
}

/// A scenario under way.
pub struct Rig {
    pub scenario: Scenario,
    pub simulation: Simulation,
}

impl Rig {
    pub fn new(text: &str, overrides: &[(&str, &str)], seed: u64) -> Rig {
        let overrides: Vec<_> = overrides.iter().map(|&(key, value)| Override::new(key, value)).collect();
        let scenario = Scenario::parse_with("oracle.toml", text, &overrides)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        let simulation = build(&scenario, seed, vec![]).unwrap();
        Rig { scenario, simulation }
    }

    /// A ready scenario with something at its end.
    pub fn ready(name: &str, more: &str, overrides: &[(&str, &str)], seed: u64) -> Rig {
        Rig::new(&format!("{}\n{more}", builtin_text(name).unwrap()), overrides, seed)
    }

    pub fn run_to(&mut self, seconds: f64) {
        self.simulation.engine.run_until(at(seconds)).unwrap();
        assert_eq!(self.simulation.engine.unroutable(), 0);
    }

    /// Segments of new data that a TCP flow's receiver has acknowledged.
    pub fn acknowledged(&self, flow: usize) -> f64 {
        let sender = self.simulation.engine.tcp_sender(self.simulation.sources[flow]);
        sender.unwrap().counters().acknowledged as f64
    }

    /// Bits of IP packets that a flow without TCP brought through.
    pub fn bits(&self, flow: usize) -> f64 {
        let sink = self.simulation.engine.sink(self.simulation.sinks[flow]);
        sink.unwrap().counters().bytes.bits() as f64
    }
}

pub fn at(seconds: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(seconds)
}

/// The mean of each number over runs with the seeds from 1 on.
pub fn mean<const N: usize>(seeds: u64, run: impl Fn(u64) -> [f64; N]) -> [f64; N] {
    let runs: Vec<_> = (1..=seeds).map(run).collect();
    core::array::from_fn(|i| runs.iter().map(|run| run[i]).sum::<f64>() / seeds as f64)
}
