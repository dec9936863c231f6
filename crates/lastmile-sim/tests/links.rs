//! Links in an engine: changed while they run, and the causes of what they lose.

use std::sync::{Arc, Mutex};

use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::carrier::LossCause;
use lastmile_sim::network::engine::{Engine, EngineError, NodeId, Target};
use lastmile_sim::network::link::{Change, Events, Link, LinkConfig, LinkCounters, QueueLimit};
use lastmile_sim::network::loss::{Jakes, Loss};
use lastmile_sim::network::traffic::{Arrivals, Sink, Source, SourceConfig};
use lastmile_sim::rng::Stream;

/// Poisson traffic of 1 Mbit/s in packets of 762 bytes for ten seconds over a link.
fn over(config: LinkConfig, seed: u64) -> (Engine, NodeId) {
    let mut engine = Engine::new();
    let link = engine.add(Link::seeded(config, seed, "link/last-hop")).unwrap();
    let sink = engine.add(Sink::default()).unwrap();
    let traffic = SourceConfig {
        arrivals: Arrivals::Poisson,
        rate: Rate::ip(1_000_000),
        ip_size: Bytes(762),
        stop: at(10),
        ..SourceConfig::default()
    };
    let source = engine.add(Source::new(traffic, Stream::new(seed, "traffic"))).unwrap();
    engine.connect(source, Target::Node(link));
    engine.connect(link, Target::Node(sink));
    (engine, link)
}

fn at(seconds: i64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

fn run(config: LinkConfig, seed: u64) -> LinkCounters {
    let (mut engine, link) = over(config, seed);
    engine.run_until(at(60)).unwrap();
    *engine.link(link).unwrap().counters()
}

#[test]
fn a_change_by_hand_does_what_the_schedule_does() {
    let rate = |mbit: u64| Some(Rate::ip(mbit * 1_000_000));
    let (slow, stop, fast) = (
        Change { at: at(3), rate: Some(Rate::ip(500_000)), delay: Some(Span::from_millis(40)) },
        Change { at: at(5), rate: rate(0), delay: None },
        Change { at: at(6), rate: rate(5), delay: Some(Span::from_millis(5)) },
    );
    let config = LinkConfig { rate: rate(2), ..Default::default() };
    let schedule = vec![slow.clone(), stop.clone(), fast.clone()];
    let scheduled = run(LinkConfig { schedule, ..config.clone() }, 1);
    let (mut engine, link) = over(LinkConfig { events: Events::PerDequeue, ..config.clone() }, 1);
    for change in [slow, stop, fast.clone()] {
        engine.run_until(change.at).unwrap();
        engine.change_link(link, &change).unwrap();
    }
    engine.run_until(at(60)).unwrap();
    assert_eq!(engine.link(link).unwrap().counters(), &scheduled);
    assert!(scheduled.drops > 100);
    let (mut fixed, link) = over(config, 1);
    assert_eq!(fixed.change_link(link, &fast), Err(EngineError::NotChangeable { node: link.0 }));
}

#[test]
fn every_loss_has_its_cause_and_the_same_seed_the_same_losses() {
    let config = LinkConfig {
        rate: Some(Rate::ip(800_000)),
        queue: QueueLimit::ns2(13),
        losses: vec![Loss::of(Jakes { rate: Rate::ip(800_000), ..Jakes::default() })],
        ..Default::default()
    };
    let (mut engine, link) = over(config.clone(), 7);
    let drops = Arc::<Mutex<Vec<_>>>::default();
    let told = Arc::clone(&drops);
    engine.add_lost_tap(Box::new(move |at, _, lost| told.lock().unwrap().push((at, lost.cause))));
    engine.run_until(at(60)).unwrap();
    let counters = *engine.link(link).unwrap().counters();
    let drops = drops.lock().unwrap();
    let of = |cause| drops.iter().filter(|drop| drop.1 == cause).count() as u64;
    assert_eq!((of(LossCause::Queue), of(LossCause::Channel)), (counters.drops, counters.lost));
    assert!(drops.is_sorted_by_key(|drop| drop.0));
    assert_eq!(counters.arrived, counters.drops + counters.lost + counters.delivered);
    let rate = counters.lost as f64 / (counters.lost + counters.delivered) as f64;
    assert!((0.05..0.11).contains(&rate), "{rate}");
    assert_eq!(run(config.clone(), 7), counters);
    assert_ne!(run(config, 8), counters);
}
