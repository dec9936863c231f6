//! Classifiers as filters before controllers that know nothing of them: one of the test's own, which is no `RateController`, and NADA.

use lastmile::classify::{CLASSIFIERS, Discriminator, LossClass};
use lastmile::control::{Discriminated, Fate, Feedback, LostBy, Report, Sent, Setting, build};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};

/// A foreign controller: halves at a loss, and grows by a thousandth with each arrival.
#[derive(Default)]
struct Halves {
    losses: u32,
    rate: f64,
}

impl Halves {
    fn hear(&mut self, reports: impl Iterator<Item = Report>) {
        for report in reports {
            match report.fate {
                Fate::Lost { .. } => (self.losses, self.rate) = (self.losses + 1, self.rate / 2.0),
                _ => self.rate *= 1.001,
            }
        }
    }
}

/// Feedback of ten packets each: one packet in 10 ms, 25 ms on its way, one in 25 lost.
fn lossy() -> impl Iterator<Item = (Time, Vec<Report>)> {
    (0..200_u64).map(|message| {
        let report = |id: u64| {
            let at = Time::ZERO + Span::from_millis(10 * id as i64);
            let came = Fate::arrived((at + Span::from_millis(25)).as_receiver());
            let fate = if id % 25 == 13 { Fate::lost(LostBy::Gap) } else { came };
            Report { sent: Sent::media(id, Bytes(1000), at), fate }
        };
        let now = Time::ZERO + Span::from_millis(100 * message as i64 + 150);
        (now, (10 * message..10 * message + 10).map(report).collect())
    })
}

/// The filter of a host: the classifier judges, and the reports that it finds wireless are left out.
fn filtered(classifier: &str) -> Halves {
    let fixed = build(&"fixed".parse().unwrap(), &Setting::default()).unwrap();
    let mut filter = Discriminated::new(Discriminator::new(&classifier.parse().unwrap()).unwrap(), fixed);
    let mut foreign = Halves { rate: 1e6, ..Halves::default() };
    for (now, mut reports) in lossy() {
        let before = reports.clone();
        filter.judge(now, &mut Feedback::exact(&mut reports, Some(now.as_receiver())));
        let is_wireless =
            |report: &Report| matches!(report.fate, Fate::Lost { class: LossClass::Wireless, .. });
        for (after, before) in reports.iter().zip(&before).filter(|(after, _)| !is_wireless(after)) {
            assert_eq!(after, before, "{classifier}");
        }
        foreign.hear(reports.into_iter().filter(|report| !is_wireless(report)));
    }
    assert_eq!(u64::from(foreign.losses), filter.counts().congestion, "{classifier}");
    assert_eq!(filter.counts().congestion + filter.counts().wireless, 80, "{classifier}");
    foreign
}

#[test]
fn any_classifier_filters_before_a_foreign_controller() {
    let none = filtered("none");
    assert_eq!(none.losses, 80);
    for classifier in CLASSIFIERS.iter().filter(|one| one.name != "omniscient") {
        let with = filtered(classifier.name);
        assert!(with.losses <= none.losses && with.rate >= none.rate, "{}", classifier.name);
        if ["biaz", "mbiaz", "spike", "spike-rtt", "zbs"].contains(&classifier.name) {
            assert!(with.losses < 20, "{}: {}", classifier.name, with.losses);
        }
    }
}

#[test]
fn nada_hears_of_fewer_losses_behind_a_classifier() {
    let rate = |name: &str| {
        let setting = Setting { start: Some(Rate::ip(300_000)), ..Setting::default() };
        let mut controller = build(&name.parse().unwrap(), &setting).unwrap();
        for (now, mut reports) in lossy() {
            reports.iter().for_each(|report| controller.on_sent(report.sent.at, &report.sent));
            controller.on_feedback(now, &mut Feedback::exact(&mut reports, Some(now.as_receiver())));
        }
        controller.output().target.bits_per_second()
    };
    let alone = rate("nada");
    assert_eq!(rate("nada+none"), alone);
    for classifier in ["biaz", "mbiaz", "spike", "zbs"] {
        let with = rate(&format!("nada+{classifier}"));
        assert!(with > alone + alone / 10, "{classifier}: {with} {alone}");
    }
}
