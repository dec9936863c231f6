//! In a steady state the simulator's own packets allocate nothing, on any hop.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use lastmile::time::{Span, Time};
use lastmile_sim::scenario::{Scenario, build, builtin};

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
    steady(&builtin("dumbbell").unwrap(), 25, 5_000);
    wlan();
    tcp_flows();
}

/// Runs it for so many seconds, in which so many packets arrive at least, and allocates nothing after the fifth.
fn steady(scenario: &Scenario, seconds: i64, packets: u64) {
    let mut run = build(scenario, 1, vec![]).unwrap();
    run.engine.run_until(Time::ZERO + Span::from_secs(5)).unwrap();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    run.engine.run_until(Time::ZERO + Span::from_secs(seconds)).unwrap();
    let after = ALLOCATIONS.load(Ordering::Relaxed);
    let sinks = run.sinks.iter().filter_map(|&sink| run.engine.sink(sink));
    assert!(sinks.map(|sink| sink.counters().packets).sum::<u64>() > packets);
    // The deepest queue so far may make a ring double once more.
    assert!(after - before <= 8, "{} allocations", after - before);
}

/// The same of a WLAN with collisions, losses and aggregates.
fn wlan() {
    for ampdu in ["", "ampdu = {}\n"] {
        let mut text = format!(
            "name = \"air\"\nduration = \"15 s\"\nhost = {{ ap = {{}}, a = {{}}, b = {{}} }}\n[[wlan]]\nstandard = \"n\"\n{ampdu}\
             station = [{{ name = \"ap\" }}, {{ name = \"a\", ap = \"ap\", frame_error = 0.1 }}, {{ name = \"b\", ap = \"ap\" }}]\n"
        );
        for (from, to) in [("a", "ap"), ("ap", "a"), ("b", "ap"), ("ap", "b")] {
            let rate = "kind = \"poisson\"\nrate = \"30 Mbit/s\"\nsize = \"1500 B\"";
            text += &format!("[[traffic]]\nfrom = \"{from}\"\nto = \"{to}\"\n{rate}\n");
        }
        steady(&Scenario::parse("air.toml", &text).unwrap(), 15, 20_000);
    }
}

/// Cost of TCP with one flow and with a thousand, counted instead of timed: wakes and allocations for each packet
/// that a link takes in, and allocations for each flow that is read and built.
fn tcp_flows() {
    let (one, many) = (cost(1), cost(1000));
    // A packet costs the wake of the link that it crosses; beside that there are only timers.
    assert!(one.wakes > 0.9 && one.wakes < 1.2, "{one:?}");
    assert!(many.wakes < 1.05 * one.wakes, "{one:?} {many:?}");
    // Rings and scoreboards that grow once more.
    assert!(one.allocations < 0.01 && many.allocations < 0.02, "{one:?} {many:?}");
    // A search through the network for each flow would be hundreds more.
    let hundred = cost(100);
    let each = (many.to_build - hundred.to_build) / 900.0;
    assert!(each < 50.0, "{each} allocations for each flow more");
}

#[derive(Debug)]
struct Cost {
    wakes: f64,
    allocations: f64,
    to_build: f64,
}

/// Of the benchmark's dumbbell, over two seconds in which all flows have begun.
fn cost(flows: usize) -> Cost {
    use std::fmt::Write as _;
    let pairs = flows.min(100);
    let mut text = "name = \"scale\"\nduration = \"4 s\"\nlink = [\n".to_owned();
    text += "  { from = \"west\", to = \"east\", rate = \"100 Mbit/s\", delay = \"10 ms\", queue = \"200 packets\" },\n";
    for i in 0..pairs {
        let _ =
            writeln!(text, "  {{ from = \"s{i}\", to = \"west\", rate = \"1 Gbit/s\", delay = \"1 ms\" }},");
        let _ =
            writeln!(text, "  {{ from = \"east\", to = \"d{i}\", rate = \"1 Gbit/s\", delay = \"1 ms\" }},");
    }
    text += "]\n";
    (0..pairs).for_each(|i| text += &format!("[host.s{i}]\n[host.d{i}]\n"));
    for i in 0..flows {
        let (pair, start) = (i % pairs, 500 * i / flows);
        let _ = writeln!(
            text,
            "[[traffic]]\nkind = \"ftp\"\nfrom = \"s{pair}\"\nto = \"d{pair}\"\nstart = \"{start} ms\""
        );
    }
    let allocated = || ALLOCATIONS.load(Ordering::Relaxed) as f64;
    let before = allocated();
    let mut run = build(&Scenario::parse("scale.toml", &text).unwrap(), 1, vec![]).unwrap();
    let to_build = allocated() - before;
    let arrived = |run: &lastmile_sim::scenario::Simulation| -> u64 {
        run.links.iter().filter_map(|&link| run.engine.link(link)).map(|link| link.counters().arrived).sum()
    };
    run.engine.run_until(Time::ZERO + Span::from_secs(2)).unwrap();
    let (packets, wakes, before) = (arrived(&run), run.engine.executed(), allocated());
    run.engine.run_until(Time::ZERO + Span::from_secs(4)).unwrap();
    let packets = (arrived(&run) - packets) as f64;
    assert!(packets > 60_000.0, "{packets}");
    Cost {
        wakes: (run.engine.executed() - wakes) as f64 / packets,
        allocations: (allocated() - before) / packets,
        to_build,
    }
}
