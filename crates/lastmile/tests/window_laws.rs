//! The laws against the closed forms of their sources: the mean window where one segment of every 1/p is lost.

use lastmile::control::window::{
    Acked, BinomialConfig, Congestion, CubicConfig, LawConfig, RenoConfig, Window,
};
use lastmile::time::{Span, Time};

/// Segments per round-trip time of `rtt` seconds in the second half of many teeth, the first after a loss at `top`: laws
/// take hundreds of teeth from far away, CUBIC since its plateau is flat.
fn mean_window(law: LawConfig, rtt: f64, every: u32, top: f64) -> f64 {
    let (mut law, mut window) = (law.law(), Window::new(top));
    law.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
    let (mut t, mut counted, mut since) = (0.0, 0.0, 0.0);
    let teeth = 40.max(400_000 / every);
    for tooth in 0..teeth {
        if tooth == teeth / 2 {
            (counted, since) = (0.0, t);
        }
        for _ in 0..every {
            t += rtt / window.cwnd;
            counted += 1.0;
            let now = Time::ZERO + Span::from_secs_f64(t);
            let rtt = Some(Span::from_secs_f64(rtt));
            law.on_ack(&mut window, &Acked { segments: 1.0, rtt, now, round_ended: false });
        }
        law.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO + Span::from_secs_f64(t));
    }
    counted * rtt / (t - since)
}

/// RFC 9438, section 5.1 with C = 0.4: 1.054 (RTT / p)^(3/4), or Reno's 1.2 / sqrt(p) where that is more.
#[test]
fn cubic_has_the_mean_windows_of_its_rfc() {
    // The tables know no fast convergence, which takes a loss a segment below the last for another flow's arrival.
    let cubic = LawConfig::Cubic(CubicConfig { fast_convergence: false, ..CubicConfig::default() });
    for (rtt, every, window) in [
        (0.1, 1_000, 38.0),
        (0.1, 10_000, 187.0),
        (0.1, 50_000, 626.6),
        (0.01, 1_000, 38.0),
        (0.01, 10_000, 120.0),
    ] {
        let got = mean_window(cubic, rtt, every, window / (1.0 - 0.3 / 4.0));
        assert!((got / window - 1.0).abs() < 0.06, "{rtt} s, 1/{every}: {got} instead of {window}");
    }
}

/// sqrt(a (2 - b) / (2 b p)): Floyd, Handley, Padhye, "A comparison of equation-based and AIMD congestion control", 2000.
#[test]
fn aimd_has_the_mean_window_of_its_numbers() {
    for (increase, decrease) in [(1.0, 0.5), (0.2, 0.125), (2.0, 0.5)] {
        for every in [100, 1_000] {
            let law = LawConfig::Reno(RenoConfig { increase, decrease });
            let window = (increase * (2.0 - decrease) / (2.0 * decrease) * f64::from(every)).sqrt();
            let got = mean_window(law, 0.1, every, 2.0 * window);
            assert!(
                (got / window - 1.0).abs() < 0.03,
                "{increase} {decrease} {every}: {got} instead of {window}"
            );
        }
    }
}

/// (a / b)^(1/2) / p^(1/2) where k + l = 1: Bansal and Balakrishnan, section 2.
#[test]
fn binomial_laws_are_as_fast_as_their_numbers_say() {
    for config in [BinomialConfig::IIAD, BinomialConfig::SQRT] {
        for every in [100, 1_000, 10_000] {
            let window = (config.a / config.b * f64::from(every)).sqrt();
            let got = mean_window(LawConfig::Binomial(config), 0.1, every, 2.0 * window);
            assert!((got / window - 1.0).abs() < 0.05, "{config:?} {every}: {got} instead of {window}");
        }
    }
}
