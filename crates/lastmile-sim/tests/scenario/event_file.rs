//! Decisions from outside of the engine among what it tells itself.

use lastmile::endpoint::Event;
use lastmile::endpoint::measure::{Cost, Decision};
use lastmile::time::{Span, Time};
use lastmile_sim::runs::event_file::EventLog;
use lastmile_sim::scenario::build;

use crate::pcap::Shared;
use crate::stories::parse;

/// The lines of two seconds of an overloaded link, in which somebody outside decides something every 100 ms and
/// is heard `after` that.
fn lines(decides: bool, after: Span) -> Vec<serde_json::Value> {
    let scenario = parse("path", &[("link.0.rate", "3 Mbit/s"), ("duration", "2 s")]);
    let mut run = build(&scenario, 1, vec![]).unwrap();
    let file = Shared::default();
    let log = EventLog::attach(&scenario, &mut run, file.clone()).holding(Span::from_secs(1));
    for step in 1..20 {
        let at = Time::ZERO + Span::from_millis(100 * step);
        run.engine.run_until(at + after).unwrap();
        let event = Event {
            at,
            node: 0,
            seq: step as u64,
            what: Decision::Finished { cost: Cost::default() }.into(),
        };
        if decides {
            run.engine.tell_decision(&event);
        }
    }
    log.finish(run.engine.now()).unwrap();
    let text = String::from_utf8(file.0.lock().unwrap().clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn decisions_from_outside_find_their_place_and_move_nothing_else() {
    let alone = lines(false, Span::ZERO);
    assert!(alone.len() > 50, "{}", alone.len());
    // Late by up to what lines are kept back for, or ahead of the engine.
    for after in [Span::from_millis(900), Span::from_millis(3), Span::from_millis(-5)] {
        let all = lines(true, after);
        let place = |line: &serde_json::Value| ["at", "node", "seq"].map(|key| line[key].as_u64().unwrap());
        assert!(all.is_sorted_by_key(place), "{after:?}");
        let (decisions, rest): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|line| line["event"] == "finished");
        assert_eq!(decisions.len(), 19);
        let until = alone.len().min(rest.len());
        assert_eq!(rest[..until], alone[..until], "{after:?}");
        assert!(until > 50);
    }
}
