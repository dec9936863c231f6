//! Windows' laws as rates, against ns-2: the binomial ones beside TCP with these laws, RAP beside RAP.

use super::path::{Came, Form, Path};
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};

const PATH: Path = Path {
    rate: Rate::ip(5_000_000),
    then: None,
    delay: Span::from_millis(20),
    queue: 60,
    mark: u64::MAX,
    loss: 0.01,
    size: Bytes(1000),
    feedback: Span::from_millis(10),
    seconds: 200,
    seed: 1,
};

/// The mean of five seeds.
fn mean(path: Path, name: &str, of: fn(Came) -> f64) -> f64 {
    (1..=5).map(|seed| of(Path { seed, ..path }.run(name, Form::Sender))).sum::<f64>() / 5.0
}

/// ns-2 2.35, goodput of TCP with these laws in kbit/s at 1 % of loss with a = 1, b = 0.667 on 5 Mbit/s, 40 ms: TCP sends
/// whole packets. Fractions of a packet, which a rate could send, are worth 4 to 5 % at a window of twelve.
#[test]
fn goodput_at_one_percent_of_loss_is_that_of_windows() {
    for (name, wanted) in [("sqrt", 2202.0), ("iiad", 2208.0)] {
        let mean = |name: &str| mean(PATH, name, |came| came.arrived);
        let (whole, fluid) = (mean(name), mean(&format!("{name}(fractions=true)")));
        assert!((whole / wanted - 1.0).abs() <= 0.08, "{name}: {whole:.0} instead of {wanted}");
        assert!((1.0..1.06).contains(&(fluid / whole)), "{name}: {fluid:.0} and {whole:.0}");
    }
}

/// ns-2 2.35's Agent/RAP without its fine grain: its rate with packets of 1000 B on the wire, in kbit/s, means of five runs of 200 s.
#[test]
fn rap_sends_what_raps_own_program_sends() {
    for (loss, wanted) in [(0.003, 3998.0), (0.01, 2570.0), (0.03, 1520.0), (0.07, 1006.0)] {
        let sent = mean(Path { loss, ..PATH }, "rap", |came| came.sent);
        assert!((sent / wanted - 1.0).abs() <= 0.06, "at {loss}: {sent:.0} instead of {wanted}");
    }
}
