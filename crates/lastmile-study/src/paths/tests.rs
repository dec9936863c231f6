//! Paths as they are drawn, and numbers as they are judged.

use lastmile_sim::scenario::Scenario;

use super::*;

#[test]
fn every_path_is_a_scenario() {
    for seed in 1..=2 {
        let request = Request { runs: 1_000, cells: 200, seed, ..Request::default() };
        for number in 0..request.runs + request.cells {
            let text = request.scenario(number);
            if let Err(error) = Scenario::parse("path", &text) {
                panic!("path {number} of seed {seed}: {error}\n{text}");
            }
        }
    }
}
