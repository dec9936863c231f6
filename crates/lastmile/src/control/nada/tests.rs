//! Examples by hand from RFC 8698's equations, and the authors' own program on the same packets.

use super::*;
use crate::control::LostBy;
use crate::options::Choice;
use crate::units::Bytes;

fn at(ms: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(ms / 1e3)
}

fn nada(options: &str) -> Nada {
    let given = format!("nada({options})").parse::<Choice>().unwrap().options;
    let setting =
        Setting { start: Some(Rate::ip(1_000_000)), max: Rate::ip(1_500_000), ..Setting::default() };
    Nada::new(NadaConfig::read(&given).unwrap(), &setting)
}

#[track_caller]
fn near(value: f64, wanted: f64) {
    assert!((value / wanted - 1.0).abs() < 1e-9, "{value} instead of {wanted}");
}

/// Equations 3 and 4: 50 ms over 100 + 100 + 120 ms is 0.15625; over nothing it would be more than GAMMA_MAX.
#[test]
fn the_ramp_up_is_bounded_by_the_queue_that_it_may_make() {
    let mut nada = nada("");
    nada.rtt = Some(0.1);
    near(nada.ramped_up(125_000.0), 144_531.25);
    near(nada.ramped_up(1_000.0), 125_000.0);
    (nada.receiver.config.delta, nada.receiver.config.dfilt, nada.rtt) =
        (Span::from_millis(1), Span::ZERO, None);
    near(nada.ramped_up(125_000.0), 187_500.0);
}

/// Equations 5 to 7: 1 Mbit/s of at most 1.5 is at rest at 10 ms times 1.5. At 20 ms after 12 ms, 100 ms after the last report: the offset
/// takes 0.5 * 0.2 * 5/500, the change 0.5 * 2 * 8/500.
#[test]
fn the_gradual_update_follows_offset_and_change() {
    let mut nada = nada("");
    nada.last.x_curr = 0.015;
    near(nada.graded(0.015, 0.1), 125_000.0);
    nada.last.x_curr = 0.012;
    near(nada.graded(0.020, 0.1), 125_000.0 * (1.0 - 0.001 - 0.016));
    // Twice the weight is at rest at twice the signal.
    nada.receiver.config.prio = 2.0;
    nada.last.x_curr = 0.030;
    near(nada.graded(0.030, 0.1), 125_000.0);
}

/// Section 5.2.2's example: 2000 B shift the rates by 48 kbit/s. At 900 kbit/s a twentieth is less.
#[test]
fn a_rate_shaping_buffer_shifts_both_rates() {
    let mut nada = nada("");
    nada.on_signal(at(0.0), Signal::Backlog { bytes: Bytes(2_000) });
    assert_eq!((nada.output().target, nada.output().pacing), (Rate::ip(952_000), Rate::ip(1_048_000)));
    nada.r_ref = 112_500.0;
    assert_eq!((nada.output().target, nada.output().pacing), (Rate::ip(855_000), Rate::ip(945_000)));
}

/// Without knowledge 0 to 3 Mbit/s [4.3]; else what the user or the sources say.
#[test]
fn the_range_is_that_of_the_sources() {
    let known = |options: &str, setting: &Setting| {
        let given = format!("nada({options})").parse::<Choice>().unwrap().options;
        Nada::new(NadaConfig::read(&given).unwrap(), setting).range
    };
    assert_eq!(known("", &Setting { min: Rate::ip(8), ..Setting::default() }), (1.0, 375_000.0));
    assert_eq!(known("rmin=80 kbit/s, rmax=8 Mbit/s", &Setting::default()), (10_000.0, 1_000_000.0));
    let mut nada = nada("");
    let (min, max) = (Rate::ip(160_000), Rate::ip(800_000));
    nada.on_signal(at(0.0), Signal::Demand { min, desired: max, max });
    assert_eq!((nada.range, nada.r_ref), ((20_000.0, 100_000.0), 100_000.0));
}

/// Packets of 1000 B every 8 ms: no queue for 2 s, one that grows to 100 ms, stays, falls, and stays at 20 ms from 8 s on; every 97th
/// lost between 7 and 10 s. Feedback every 100 ms, 50 ms each way. The rates, in kbit/s, every half second, of nada-controller.cc in
/// github.com/cisco/ns3-rmcat at adb3f8e, by the RFC's authors. Its windows are of packets and its round-trip time has the hold in it: 2 %.
#[test]
fn rates_are_those_of_the_authors_program() {
    const THEIRS: [u32; 40] = [
        1154, 1154, 1154, 1154, 1144, 1080, 996, 898, 799, 736, 680, 629, 595, 588, 593, 610, 618, 615, 615,
        605, 613, 617, 620, 623, 626, 628, 631, 633, 635, 638, 640, 642, 644, 646, 648, 650, 652, 654, 656,
        658,
    ];
    let queue = |ms: f64| match ms {
        ..2_000.0 => 0.0,
        ..4_000.0 => (ms - 2_000.0) * 0.05,
        ..6_000.0 => 100.0,
        ..8_000.0 => 100.0 - (ms - 6_000.0) * 0.04,
        _ => 20.0,
    };
    let mut nada = nada("rmin=150 kbit/s");
    nada.r_ref = 18_750.0;
    let (mut sent, mut told) = (0_u64, 0_u64);
    let start = |id: u64| 8.0 * id as f64;
    let mut rates = Vec::new();
    for tick in 1..=200 {
        let now = 100.0 * f64::from(tick);
        while start(sent) < now {
            let packet = Sent::media(sent, Bytes(1000), at(start(sent)));
            nada.on_sent(packet.at, &packet);
            sent += 1;
        }
        let mut reports = Vec::new();
        while told < sent && start(told) + 50.0 + queue(start(told)) < now - 50.0 {
            let lost = (875..1250).contains(&told) && told.is_multiple_of(97);
            let came = at(start(told) + 50.0 + queue(start(told))).as_receiver();
            let fate = if lost { Fate::lost(LostBy::Gap) } else { Fate::arrived(came) };
            reports.push(Report { sent: Sent::media(told, Bytes(1000), at(start(told))), fate });
            told += 1;
        }
        if !reports.is_empty() {
            let made = at(now - 50.0).as_receiver();
            nada.on_feedback(at(now), &mut Feedback::exact(&mut reports, Some(made)));
        }
        if tick % 5 == 0 {
            rates.push(nada.r_ref / 125.0);
        }
    }
    for (k, (rate, theirs)) in rates.iter().zip(THEIRS).enumerate() {
        assert!((rate / f64::from(theirs) - 1.0).abs() < 0.02, "at {} s: {rates:.0?}", k as f64 / 2.0 + 0.5);
    }
}
