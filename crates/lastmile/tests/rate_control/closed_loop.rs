//! Gains of receivers that lie of everything but losses, over a path that answers.

use lastmile::control::CONTROLLERS;
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};

use super::path::{Form, Liar, Lie, Path};

/// 40 ms there and back: random losses on a path that is never full, and a path that is full without any.
const PATHS: [(f64, Rate, u64); 3] =
    [(0.05, Rate::ip(20_000_000), 500), (0.01, Rate::ip(20_000_000), 500), (0.0, Rate::ip(5_000_000), 60)];

/// All controllers but the one that no feedback moves, with variants, and the end at which losses are counted.
fn names() -> impl Iterator<Item = (&'static str, Form)> {
    let moved = CONTROLLERS.iter().filter(|controller| controller.name != "fixed");
    let others = [
        ("tfrc(preset=ns-2)", Form::Sender),
        ("vtp+none", Form::Sender),
        ("tfrc(form=receiver)", Form::Receiver),
        ("tfrc(form=receiver, preset=ns-2)", Form::Receiver),
    ];
    moved.map(|controller| (controller.name, Form::Sender)).chain(others)
}

/// Another lie than that.
fn other(lie: Lie, random: u32) -> Lie {
    let pick = (random >> 8) as usize;
    let micros = [0, 10_000, 20_000, 30_000, 36_000, 39_000, 39_900, 39_999, 45_000];
    match random % 6 {
        0 => Lie { hold: Span::from_micros(micros[pick % micros.len()]), ..lie },
        1 => Lie { clock: [0.5, 0.7, 1.0, 1.5, 2.0, 0.01][pick % 6], ..lie },
        2 => Lie { bytes: [1.0, 2.0, 4.0, 1_000.0][pick % 4], ..lie },
        3 => Lie { over: [1.0, 0.5, 0.1, 0.001][pick % 4], ..lie },
        4 => Lie {
            every: [None, Some(2), Some(40), Some(100), Some(1_050)][pick % 5].map(Span::from_millis),
            ..lie
        },
        _ => Lie { early: pick.is_multiple_of(2), ..lie },
    }
}

#[test]
fn no_lie_but_of_losses_gains_more_than_four_times_the_rate() {
    for (loss, rate, queue) in PATHS {
        let path = Path {
            rate,
            then: None,
            delay: Span::from_millis(20),
            queue,
            mark: u64::MAX,
            loss,
            size: Bytes(1000),
            feedback: Span::from_millis(10),
            seconds: 60,
            seed: 1,
        };
        for (name, form) in names() {
            let honest = path.run(name, form).sent;
            let gains = |liar: &mut Liar, what: &dyn core::fmt::Debug| {
                let gain = path.lied_to(name, form, liar).0.sent / honest;
                assert!(gain <= 4.0, "{name} at {loss}: {gain:.2} times {honest:.0} kbit/s by {what:?}");
            };
            for hold in [0, 20_000, 39_000, 39_900, 39_999].map(Span::from_micros) {
                // A liar that answers packets that have not come is believed a shorter time, but no other clock.
                for (clock, bytes, early) in [(1.0, 1.0, false), (0.5, 1_000.0, false), (1.0, 1.0, true)] {
                    let lie = Lie { hold, clock, bytes, early, ..Lie::NONE };
                    gains(&mut Liar::new(lie), &lie);
                }
            }
            let mut adapts = Liar::new(Lie::NONE);
            adapts.tries = Some((Span::from_secs(1), other));
            gains(&mut adapts, &"trying");
        }
    }
}
