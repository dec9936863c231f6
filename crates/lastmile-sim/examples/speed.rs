//! Measures what a packet costs: ten CBR flows over three hops, ns of CPU per packet from source to sink.
//!
//! `cargo run --release -p lastmile-sim --example speed [simulated seconds]`
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout)] // a stopwatch needs a clock

use lastmile::node::Flow;
use lastmile::rng::Stream;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::engine::{Engine, EngineError, Target};
use lastmile_sim::network::link::{Link, LinkConfig};
use lastmile_sim::network::traffic::{Arrivals, Sink, Source, SourceConfig};

fn main() -> Result<(), EngineError> {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(60);
    for arrivals in [Arrivals::Cbr, Arrivals::Poisson] {
        for flows in [1, 10, 100, 1000] {
            measure(&arrivals, flows, seconds)?;
        }
    }
    Ok(())
}

fn measure(arrivals: &Arrivals, flows: u32, seconds: i64) -> Result<(), EngineError> {
    let mut engine = Engine::new();
    let any = "10.77.0.1:9".parse().expect("an address");
    let stop = Time::ZERO + Span::from_secs(seconds);
    let entry = engine.add_router();
    let mut before = entry;
    for _ in 0..3 {
        let rate = Some(Rate::ip(100_000_000));
        let link =
            engine.add(Link::new(LinkConfig { rate, delay: Span::from_millis(3), ..Default::default() }))?;
        (0..flows).for_each(|flow| engine.route(before, Flow(flow), link));
        before = engine.add_router();
        engine.connect(link, Target::Router(before));
    }
    let mut sinks = Vec::new();
    for flow in (0..flows).map(Flow) {
        let config = SourceConfig {
            arrivals: arrivals.clone(),
            rate: Rate::ip(90_000_000 / u64::from(flows)),
            ip_size: Bytes(1500),
            start: Time::ZERO,
            stop,
            flow,
            from: any,
            to: any,
        };
        let source = engine.add(Source::new(config, Stream::new(1, &format!("flow {}", flow.0))))?;
        engine.connect(source, Target::Router(entry));
        let sink = engine.add(Sink::default())?;
        engine.route(before, flow, sink);
        sinks.push(sink);
    }
    let start = std::time::Instant::now();
    engine.run_until(stop + Span::from_secs(1))?;
    let took = start.elapsed();
    let packets: u64 = sinks.iter().filter_map(|&s| engine.sink(s)).map(|s| s.counters().packets).sum();
    println!(
        "{arrivals:?} {flows:4} flows: {packets} packets over 3 hops, {:.0} ns each, {:.4} s per simulated s",
        took.as_nanos() as f64 / packets as f64,
        took.as_secs_f64() / seconds as f64
    );
    Ok(())
}
