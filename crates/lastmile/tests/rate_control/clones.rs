//! A clone goes on exactly as its original, and by itself: every controller with every classifier and wrapper.

use lastmile::classify::CLASSIFIERS;
use lastmile::control::*;
use lastmile::options::Choice;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};

/// A host's view after each round, and all of the state at the end.
type Seen = (Vec<(Output, Option<Time>, Vec<Decision>, Vec<Action>)>, String);

/// Rounds of forty packets in 50 ms: every 23rd is lost, delays vary, and now and then something else happens.
fn talk(controller: &mut dyn RateController, rounds: core::ops::Range<u64>) -> Seen {
    let round = |round: u64| {
        let begin = Time::ZERO + Span::from_millis(1_000 + 50 * round as i64);
        let report = |k: u64| {
            let id = 40 * round + k;
            let class = match id % 20 {
                index @ 0..2 => PacketClass::Probe { train: (id / 20) as u32, index: index as u16, len: 2 },
                _ => PacketClass::Media,
            };
            let at = begin + Span::from_millis((k / 2) as i64);
            let arrived = at + Span::from_micros(20_000 + 700 * (id % 37) as i64 + k as i64);
            let lost = id.is_multiple_of(23) || round % 32 == 20;
            let fate = if lost { Fate::lost(LostBy::Gap) } else { Fate::arrived(arrived.as_receiver()) };
            Report { sent: Sent { class, ..Sent::media(id, Bytes(1200), at) }, fate }
        };
        let mut reports: Vec<Report> = (0..40).map(report).collect();
        for Report { sent, .. } in &reports {
            controller.on_sent(sent.at, sent);
        }
        let now = begin + Span::from_millis(48);
        match round % 64 {
            50 => controller.on_signal(now, Signal::Route { why: RouteChange::MoreCapacity }),
            55 => controller.on_signal(now, Signal::Remb { rate: Rate::ip(300_000 + round) }),
            60 => controller.on_timeout(controller.poll_timeout().map_or(now, |at| at.max(now))),
            _ => {}
        }
        let mut feedback = Feedback::exact(&mut reports, Some((now + Span::from_millis(1)).as_receiver()));
        // Too coarse for some classifiers for a while.
        feedback.resolution = Some(Span::from_micros(if round % 48 < 40 { 1 } else { 980 }));
        controller.on_feedback(now, &mut feedback);
        let decisions = core::iter::from_fn(|| controller.poll_decision()).collect();
        let actions = core::iter::from_fn(|| controller.poll_action()).collect();
        (controller.output(), controller.poll_timeout(), decisions, actions)
    };
    (rounds.map(round).collect(), format!("{controller:?}"))
}

#[test]
fn a_clone_goes_on_as_its_original() {
    let with = |more: &mut dyn Iterator<Item = &'static str>| -> Vec<Option<Choice>> {
        core::iter::once(None).chain(more.map(|name| Some(Choice::named(name)))).collect()
    };
    let wrappers = with(&mut WRAPPERS.iter().map(|wrapper| wrapper.name));
    let classifiers = with(&mut CLASSIFIERS.iter().map(|lda| lda.name));
    let mut schemes: Vec<Choice> = CONTROLLERS.iter().map(|scheme| Choice::named(scheme.name)).collect();
    schemes.extend(["tfrc", "multfrc"].map(|name| Choice::named(name).with("preset", "ns-2")));
    for controller in schemes {
        for (wrapper, classifier) in wrappers
            .iter()
            .flat_map(|wrapper| classifiers.iter().map(move |classifier| (wrapper, classifier)))
        {
            let composition = Composition {
                controller: controller.clone(),
                wrapper: wrapper.clone(),
                classifier: classifier.clone(),
            };
            let mut original = build(&composition, &Setting::default()).unwrap();
            let began = talk(&mut *original, 0..70);
            let mut copy = original.clone();
            let (then, apart) = (talk(&mut *original, 70..200), format!("{copy:?}"));
            assert!(apart == began.1, "{composition}: what its original is told changes a clone");
            assert!(talk(&mut *copy, 70..200) == then, "a clone of {composition} goes its own way");
            let decided = then.0.iter().any(|(_, _, decisions, _)| !decisions.is_empty());
            assert!(decided || composition.to_string() == "fixed", "{composition}");
        }
    }
}
