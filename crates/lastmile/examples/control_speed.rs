//! Cost of a report for every rate controller with every loss classifier in front, and with capacity probing around it, in
//! nanoseconds:
//! `cargo run --release -p lastmile --example control_speed`.

#![expect(clippy::print_stdout, reason = "a benchmark says what it found")]
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "it times itself")]

use std::time::Instant;

use lastmile::classify::CLASSIFIERS;
use lastmile::control::*;
use lastmile::options::Choice;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;

/// Reports in a feedback packet: 50 ms at 1000 packets a second.
const REPORTS: u64 = 50;
const ROUNDS: u64 = 2_000;

/// The least of seven runs, per report.
fn cost(composition: &Composition) -> f64 {
    let run = |_| {
        let mut controller = build(composition, &Setting::default()).expect("registered names build");
        let (mut now, mut spent) = (Time::ZERO + Span::from_secs(1), 0);
        for round in 0..ROUNDS {
            let mut reports: Vec<Report> = (0..REPORTS)
                .map(|k| {
                    let id = round * REPORTS + k;
                    let at = now + Span::from_millis(k as i64);
                    let delay = Span::from_micros(20_000 + (id * 7_919 % 5_003) as i64);
                    let came = Fate::arrived((at + delay).as_receiver());
                    let fate = if id.is_multiple_of(53) { Fate::lost(LostBy::Gap) } else { came };
                    // A pair in twenty packets.
                    let class = match id % 20 {
                        index @ 0..2 => {
                            PacketClass::Probe { train: (id / 20) as u32, index: index as u16, len: 2 }
                        }
                        _ => PacketClass::Media,
                    };
                    Report { sent: Sent { class, ..Sent::media(id, Bytes(1200), at) }, fate }
                })
                .collect();
            now += Span::from_millis(REPORTS as i64);
            let heard = now + Span::from_millis(30);
            let mut feedback = Feedback::exact(&mut reports, Some(heard.as_receiver()));
            let began = Instant::now();
            controller.on_feedback(heard, &mut feedback);
            spent += began.elapsed().as_nanos();
            while controller.poll_decision().is_some() {}
        }
        spent as f64 / (ROUNDS * REPORTS) as f64
    };
    (0..7).map(run).fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut worst: (f64, String) = (0.0, String::new());
    for scheme in CONTROLLERS.iter() {
        let classifiers = CLASSIFIERS.iter().map(|lda| (None, Some(Choice::named(lda.name))));
        let probe = |classifier: &str| (Some(Choice::named("probe")), Some(Choice::named(classifier)));
        let alone = [(None, None), (Some(Choice::named("probe")), None), probe("zbs")];
        for (wrapper, classifier) in alone.into_iter().chain(classifiers) {
            let composition =
                Composition { wrapper, classifier, ..Composition::of(Choice::named(scheme.name)) };
            let nanos = cost(&composition);
            println!("{nanos:7.1} ns  {composition}");
            if nanos > worst.0 {
                worst = (nanos, composition.to_string());
            }
        }
    }
    println!("at most {:.1} ns a report, for {}", worst.0, worst.1);
}
