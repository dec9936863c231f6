//! Our own controller over paths of one link: 20 ms each way, packets of 1000 B, feedback every 50 ms, 60 s.

use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};

use super::path::{Came, Form, Liar, Lie, Path};

fn over(mbps: u64, queue: u64, loss: f64, then: Option<(i64, Rate)>) -> Came {
    path(mbps, queue, loss, then).run("lastmile", Form::Sender)
}

fn path(mbps: u64, queue: u64, loss: f64, then: Option<(i64, Rate)>) -> Path {
    Path {
        rate: Rate::ip(mbps * 1_000_000),
        then,
        delay: Span::from_millis(20),
        queue,
        mark: u64::MAX,
        loss,
        size: Bytes(1000),
        feedback: Span::from_millis(50),
        seconds: 60,
        seed: 1,
    }
}

#[test]
fn it_fills_a_link_and_keeps_its_queue_short() {
    let came = over(4, 100, 0.0, None);
    assert!(came.arrived > 3_800.0 && came.overflowed == 0, "{came:?}");
    // Of the start, which grows by what arrived in the last 150 ms.
    assert!(came.longest < Span::from_millis(100), "{came:?}");
}

#[test]
fn losses_of_the_link_cost_their_share_alone() {
    for loss in [0.01, 0.05, 0.1] {
        let came = over(4, 100, loss, None);
        assert!(came.arrived > 0.95 * (1.0 - loss) * 4_000.0, "{loss}: {came:?}");
    }
}

/// A link that loses as many packets because three of them find no room in the queue.
#[test]
fn losses_of_a_short_queue_are_answered() {
    let came = over(4, 3, 0.0, None);
    let share = came.overflowed as f64 * 8.0 / (60.0 * came.sent);
    assert!(came.arrived > 3_400.0 && share < 0.025, "{share}: {came:?}");
}

#[test]
fn a_fifth_of_the_capacity_is_taken_after_a_moment() {
    let came = over(5, 500, 0.0, Some((30, Rate::ip(1_000_000))));
    assert!(came.arrived > 2_700.0 && came.overflowed == 0, "{came:?}");
    assert!(came.longest < Span::from_millis(1_000), "{came:?}");
}

/// ECT(1) is marked behind a queue of two packets, 1.6 ms. A receiver that keeps marks to itself has no more of it than delay allows.
#[test]
fn a_receiver_that_hides_marks_meets_the_law_of_delay() {
    let path = Path { mark: 2, feedback: Span::from_millis(25), ..path(10, 100, 0.0, None) };
    let came = |hides| path.lied_to("lastmile", Form::Sender, &mut Liar::new(Lie { hides, ..Lie::NONE })).0;
    let (honest, hidden) = (came(false), came(true));
    assert!(honest.arrived > 9_000.0 && honest.longest < Span::from_millis(45), "{honest:?}");
    assert!(hidden.arrived < 1.5 * honest.arrived && hidden.overflowed == 0, "{hidden:?}");
    assert!(hidden.longest < Span::from_millis(80), "{hidden:?}");
}
