//! Classic RED without TCP in between, against ns-2 2.35 (`poisson_ns2.txt`): drops and mean queue depend on the queue alone.
//! If bytes count, large packets are dropped in proportion to their size.

use lastmile::node::Flow;
use lastmile::rng::Stream;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::engine::{Engine, Target};
use lastmile_sim::network::link::{Link, LinkConfig};
use lastmile_sim::network::queue::Discipline;
use lastmile_sim::network::traffic::{Arrivals, Sink, Source, SourceConfig};

use super::red_cell::Cell;

/// Drops of packets of 1250 B and of 250 B in percent, and the mean queue in bytes.
fn run(cell: &Cell) -> [f64; 3] {
    let (mut engine, (red, queue)) = (Engine::new(), cell.red());
    let (rate, discipline) = (Some(Rate::ip(10_000_000)), Discipline::Red(red));
    let config = LinkConfig { rate, queue, discipline, ..Default::default() };
    config.check().unwrap();
    let link = engine.add(Link::seeded(config, 1, "link")).unwrap();
    let sink = engine.add(Sink::default()).unwrap();
    engine.connect(link, Target::Node(sink));
    let span = Span::from_secs(cell.number("seconds", "") as i64);
    let traffic = [("large", 1250), ("small", 250)].map(|(key, size)| (cell.number(key, "") * 1e3, size));
    for (rate, size) in traffic {
        let traffic = SourceConfig {
            arrivals: Arrivals::Poisson,
            rate: Rate::ip(rate as u64),
            ip_size: Bytes(size),
            flow: Flow(size as u32),
            ..SourceConfig::default()
        };
        let source = engine.add(Source::new(traffic, Stream::new(1, &format!("{size}")))).unwrap();
        engine.connect(source, Target::Node(link));
    }
    engine.run_until(Time::ZERO + span).unwrap();
    let link = engine.link(link).unwrap();
    let [large, small] = traffic.map(|(rate, size)| {
        let drops: u64 = link.drops_of(Flow(size as u32)).map(|cause| cause.1).sum();
        100.0 * drops as f64 / (rate * span.as_secs_f64() / (8 * size) as f64)
    });
    [large, small, link.counters().waited as f64 / span.as_nanos() as f64]
}

#[test]
fn drop_rates_and_mean_queues_are_those_of_ns_2() {
    for cell in Cell::all(include_str!("poisson_ns2.txt")) {
        let ours = run(&cell);
        let [drops, queue] = ["drops_within", "queue_within"].map(|key| cell.number(key, "0.08"));
        for (i, within) in
            [drops, drops, queue].into_iter().enumerate().filter(|(i, _)| !cell.ns2[*i].is_nan())
        {
            let off = ours[i] / cell.ns2[i] - 1.0;
            assert!(off.abs() < within, "{}: {ours:?}, ns-2 {:?}", cell.name, cell.ns2);
        }
    }
}
