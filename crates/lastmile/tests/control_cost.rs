//! Cost of a report: no allocation, and at most 4 kB of state beside loss histories, for every controller behind every classifier.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use lastmile::classify::CLASSIFIERS;
use lastmile::control::*;
use lastmile::options::Choice;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;

struct Counting;
thread_local! {
    /// Allocations of this thread, and their bytes: the test harness has threads of its own.
    static COUNTS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNTS.with(|counts| {
            let (allocations, bytes) = counts.get();
            counts.set((allocations + 1, bytes + layout.size() as u64));
        });
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

/// Fifty packets every 50 ms, every 23rd lost, now and then reordered, late, or silent for a while; decisions are fetched in
/// every second round only.
fn talk(
    controller: &mut dyn RateController,
    reports: &mut [Report],
    rounds: u64,
    now: &mut Time,
    id: &mut u64,
) {
    for round in 0..rounds {
        for report in reports.iter_mut() {
            // Now and then a pair.
            let class = match *id % 20 {
                index @ 0..2 => PacketClass::Probe { train: (*id / 20) as u32, index: index as u16, len: 2 },
                _ => PacketClass::Media,
            };
            let mut sent = Sent { class, ..Sent::media(*id, Bytes(1200), *now) };
            *now += Span::from_millis(1);
            controller.on_sent(*now, &sent);
            sent.at = *now;
            let delay = Span::from_millis(20 + (*id % 37) as i64);
            let fate = match *id % 23 {
                0 => Fate::lost(LostBy::Gap),
                1 if round % 7 == 0 => Fate::Late { at: None },
                _ => Fate::arrived((*now + delay).as_receiver()),
            };
            *report = Report { sent, fate };
            *id += 1;
        }
        let heard = *now + Span::from_millis(60);
        controller.on_feedback(heard, &mut Feedback::exact(reports, Some(heard.as_receiver())));
        if round % 11 == 0 {
            while let Some(at) = controller.poll_timeout().filter(|at| *at < *now + Span::from_secs(20)) {
                controller.on_timeout(at);
            }
        }
        if round % 2 == 0 {
            while controller.poll_decision().is_some() || controller.poll_action().is_some() {}
        }
        assert!(controller.output().pacing.bits_per_second() > 0);
    }
}

#[test]
fn a_report_allocates_nothing_and_the_state_is_small() {
    let none: Option<&str> = None;
    for scheme in CONTROLLERS.iter() {
        for classifier in [none].into_iter().chain(CLASSIFIERS.iter().map(|lda| Some(lda.name))) {
            let composition = Composition {
                classifier: classifier.map(Choice::named),
                ..Composition::of(Choice::named(scheme.name))
            };
            // Half of them with capacity probing around: its own decisions wait too.
            let wrapper = (classifier.map_or(0, str::len) % 2 == 1).then(|| Choice::named("probe"));
            let composition = Composition { wrapper, ..composition };
            let before = COUNTS.get().1;
            let mut controller = build(&composition, &Setting::default()).unwrap();
            let bytes = COUNTS.get().1 - before;
            // Decisions that wait for the host have up to 64 places in each of the parts.
            let judged = u64::from(classifier.or(scheme.classifier).is_some());
            let parts = 1 + judged + u64::from(composition.wrapper.is_some());
            let places = 64 * size_of::<Decision>() as u64 * parts;
            let histories = match scheme.name {
                "tfrc" => tfrc::LOSS_HISTORY,
                "multfrc" => multfrc::HISTORY,
                _ => 0,
            } as u64;
            let kept = bytes - places.min(bytes);
            assert!(kept <= 4096 + histories, "{composition}: {bytes} B, {places} of them for decisions");
            let (mut now, mut id) = (Time::ZERO + Span::from_secs(1), 0);
            let mut reports =
                vec![Report { sent: Sent::media(0, Bytes(0), now), fate: Fate::lost(LostBy::Gap) }; 50];
            talk(&mut *controller, &mut reports, 20, &mut now, &mut id);
            let before = COUNTS.get().0;
            talk(&mut *controller, &mut reports, 200, &mut now, &mut id);
            let allocated = COUNTS.get().0 - before;
            assert_eq!(allocated, 0, "{composition}");
            let mut copy = controller.clone();
            let before = COUNTS.get().0;
            talk(&mut *copy, &mut reports, 200, &mut now, &mut id);
            let allocated = COUNTS.get().0 - before;
            assert_eq!(allocated, 0, "a clone of {composition}");
        }
    }
}
