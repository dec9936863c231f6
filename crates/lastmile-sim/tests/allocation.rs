//! In a steady state the simulator's own packets allocate nothing, on any hop.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use lastmile::time::{Span, Time};
use lastmile_sim::scenario::{build, builtin};

struct Counting;
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are those of this function.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_steady_run_allocates_nothing() {
    let mut run = build(&builtin("dumbbell").unwrap(), 1, vec![]).unwrap();
    run.engine.run_until(Time::ZERO + Span::from_secs(5)).unwrap();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    run.engine.run_until(Time::ZERO + Span::from_secs(25)).unwrap();
    let after = ALLOCATIONS.load(Ordering::Relaxed);
    assert!(run.engine.sink(run.sinks[0]).unwrap().counters().packets > 5_000);
    // The deepest queue so far may make a ring double once more.
    assert!(after - before <= 8, "{} allocations", after - before);
    wlan();
}

/// The same of a WLAN with collisions, losses and aggregates.
fn wlan() {
    use lastmile::{node::Flow, units::Rate};
    use lastmile_sim::engine::{Engine, Target};
    use lastmile_sim::rng::Stream;
    use lastmile_sim::traffic::{Arrivals, Sink, Source, SourceConfig};
    use lastmile_sim::wlan::{AmpduConfig, Medium, Standard, StationConfig, WlanConfig};
    for ampdu in [None, Some(AmpduConfig::default())] {
        let client = |name: &str| StationConfig {
            name: name.into(),
            ap: Some("ap".into()),
            frame_error: 0.1,
            ..Default::default()
        };
        let ap = StationConfig { name: "ap".into(), ..Default::default() };
        let config = WlanConfig {
            standard: Standard::N,
            ampdu,
            station: vec![ap, client("a"), client("b")],
            ..Default::default()
        };
        let medium = Medium::new(&config, 1, "x").unwrap();
        let ports: Vec<_> = medium.directions().map(|d| d.0).collect();
        let mut engine = Engine::new();
        let wlan = engine.add(medium).unwrap();
        let sink = engine.add(Sink::default()).unwrap();
        engine.connect(wlan, Target::Node(sink));
        for port in ports {
            let any = "10.77.0.1:9".parse().unwrap();
            let source = SourceConfig {
                arrivals: Arrivals::Poisson,
                rate: Rate::ip(30_000_000),
                ip_size: lastmile::units::Bytes(1500),
                start: Time::ZERO,
                stop: Time::MAX,
                flow: Flow(0),
                from: any,
                to: any,
            };
            let random = Stream::new(1, &format!("{port:?}"));
            let source = engine.add(Source::new(source, random)).unwrap();
            engine.connect(source, Target::Port(wlan, port));
        }
        engine.run_until(Time::ZERO + Span::from_secs(5)).unwrap();
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        engine.run_until(Time::ZERO + Span::from_secs(15)).unwrap();
        let after = ALLOCATIONS.load(Ordering::Relaxed);
        assert!(engine.sink(sink).unwrap().counters().packets > 20_000);
        assert!(after - before <= 8, "{} allocations", after - before);
    }
}
