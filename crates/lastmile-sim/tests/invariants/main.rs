//! Invariants of every scenario: packets are conserved, queues and air keep the order of a flow, nobody is busy for longer
//! than has elapsed, nothing happens in the past, a run ends, and ends the same however it is cut into pieces.
#![allow(unreachable_pub)]

mod absurd;
#[path = "../common/mod.rs"]
mod common;
mod draws;
mod random;
mod watch;

use lastmile::time::{Span, Time};
use lastmile_sim::network::engine::EngineError;
use lastmile_sim::network::link::Events;
use lastmile_sim::scenario::{Scenario, build};
use proptest::prelude::*;
use watch::{Watch, fingerprint};

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, max_global_rejects: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn in_any_scenario(text in random::scenario(), dequeue in any::<u8>(), seed in any::<u64>(), cut in 0.05_f64..1.0) {
        let mut scenario = match Scenario::parse("random.toml", &text) {
            Ok(scenario) => scenario,
            // TCP where nothing limits it: refused, rightly.
            Err(error) => {
                prop_assert!(error.reason.contains("nothing limits"), "{error}\n{text}");
                return Err(TestCaseError::reject("nothing limits it"));
            }
        };
        scenario.budget.events = 20_000_000;
        // Links whose waiting packets may be dropped have another kind of events.
        for (index, link) in scenario.links.iter_mut().enumerate() {
            if dequeue >> (index % 8) & 1 == 1 {
                link.config.events = Events::PerDequeue;
            }
        }
        let duration = scenario.duration;
        // Traffic that lasts as long as the run would go on while the rest drains.
        for traffic in &mut scenario.traffic {
            traffic.stop = traffic.stop.min(Time::ZERO + duration);
        }
        let mut simulation = build(&scenario, seed, vec![]).unwrap();
        let watch = Watch::attach(&scenario, &mut simulation);
        let end = Time::ZERO + duration;
        for until in [Time::ZERO + Span::from_secs_f64(duration.as_secs_f64() * cut), end, end + Span::from_secs(300)] {
            match simulation.engine.run_until(until) {
                Err(EngineError::OverBudget { .. }) => return Err(TestCaseError::reject("too many packets")),
                ran => ran.unwrap(),
            }
            prop_assert_eq!(simulation.engine.now(), until);
            prop_assert!(simulation.engine.next_event().is_none_or(|next| next > until));
            if let Err(wrong) = watch.check(&scenario, &mut simulation) {
                prop_assert!(false, "at {}: {}\nseed {}, dequeue {}\n{}", until, wrong, seed, dequeue, text);
            }
        }
        // Paced as the lab does: from event to event.
        let mut again = build(&scenario, seed, vec![]).unwrap();
        while let Some(next) = again.engine.next_event().filter(|&next| next <= end + Span::from_secs(300)) {
            again.engine.run_until(next).unwrap();
        }
        again.engine.run_until(end + Span::from_secs(300)).unwrap();
        prop_assert_eq!(fingerprint(&again), fingerprint(&simulation), "the second run differs\n{}", text);
    }
}
