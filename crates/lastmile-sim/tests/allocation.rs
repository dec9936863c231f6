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
}
