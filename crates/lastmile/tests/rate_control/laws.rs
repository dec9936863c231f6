//! The binomial laws as rates, against ns-2's TCP with these laws.

use super::path::{Form, Path};
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};

/// ns-2 2.35, goodput of TCP with these laws in kbit/s at 1 % of loss with a = 1, b = 0.667 on 5 Mbit/s, 40 ms: TCP sends
/// whole packets. Fractions of a packet, which a rate could send, are worth 4 to 5 % at a window of twelve.
#[test]
fn goodput_at_one_percent_of_loss_is_that_of_windows() {
    let path = Path {
        rate: Rate::ip(5_000_000),
        then: None,
        delay: Span::from_millis(20),
        queue: 60,
        loss: 0.01,
        size: Bytes(1000),
        feedback: Span::from_millis(10),
        seconds: 200,
        seed: 1,
    };
    for (name, wanted) in [("sqrt", 2202.0), ("iiad", 2208.0), ("rap", 2287.0)] {
        let mean = |name: &str| {
            (1..=5).map(|seed| Path { seed, ..path }.run(name, Form::Sender).arrived).sum::<f64>() / 5.0
        };
        let (whole, fluid) = (mean(name), mean(&format!("{name}(fractions=true)")));
        assert!((whole / wanted - 1.0).abs() <= 0.08, "{name}: {whole:.0} instead of {wanted}");
        assert!((1.0..1.06).contains(&(fluid / whole)), "{name}: {fluid:.0} and {whole:.0}");
    }
}
