//! The effect of lateness on measurements: each one's streams once more through the same estimator.

use lastmile::estimate::{Estimate, Estimator, Outcome, Quantity, Refusal, Step, replay};
use lastmile::node::Datagram;
use lastmile::report::StreamRecord;
use lastmile::units::Bytes;
use lastmile_sim::roles::{Makers, Running};
use lastmile_sim::runs::RunError;
use lastmile_sim::scenario::Scenario;
use lastmile_sim::scenario::roles::measure::{REFLECTOR_PORT, SessionSpec, sessions};

use super::{AllTold, Told};

pub(super) fn told<'a>(
    (scenario, seed): (&'a Scenario, u64),
    running: &Running,
    make: &'a Makers,
) -> AllTold<'a> {
    // A method that its budget cut off would take the streams of the next: sessions of `all` are judged by their packets' lateness alone.
    let judged = sessions(scenario).into_iter().zip(running.measure.records());
    let judged = judged.filter(|(session, _)| session.budget.is_none());
    judged.map(|(session, records)| (of(session, seed, make), records)).collect()
}

/// True if a packet is of a session, control packets included: streams begin soon after them.
pub(super) fn is_timed(datagram: &Datagram) -> bool {
    [datagram.from.port(), datagram.to.port()].contains(&REFLECTOR_PORT)
}

/// A session's packets and results.
pub(in crate::lab) fn of(session: SessionSpec, seed: u64, make: &Makers) -> Told<'_> {
    let (from, to, ipv6) = (session.from, session.to, session.ipv6);
    Told { from, to, ipv6, moved: Box::new(move |before, after| moved(&session, seed, make, before, after)) }
}

/// The greatest difference between the results of two sets of the same streams.
fn moved(
    session: &SessionSpec,
    seed: u64,
    make: &Makers,
    before: &[StreamRecord],
    after: &[StreamRecord],
) -> Result<(f64, String), RunError> {
    let mut furthest = (0.0, String::new());
    // The measurements took the streams one after the other: as many as each asks for.
    let mut first = 0;
    let made = || session.measurements(&make.measure, seed);
    for (one, mut other) in made()?.into_iter().zip(made()?) {
        let mut one = Counting { estimator: one.estimator, streams: 0 };
        let was = replay(&mut one, &before[first..]);
        let own = first..first + one.streams;
        first = own.end;
        let (share, what) = difference(&was, &replay(&mut *other.estimator, &after[own]));
        if share > furthest.0 {
            furthest = (share, format!("{} {} {what}", other.direction, other.method));
        }
    }
    Ok(furthest)
}

/// An estimator whose streams are counted.
struct Counting {
    estimator: Box<dyn Estimator>,
    streams: usize,
}

impl Estimator for Counting {
    fn step(&mut self) -> Step {
        self.estimator.step()
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        self.streams += 1;
        self.estimator.on_stream(record);
    }
    fn shrink(&mut self, size: Bytes) -> bool {
        self.estimator.shrink(size)
    }
}

/// The difference between two outcomes as a share of the capacity, and both in words.
fn difference(was: &Outcome, is: &Outcome) -> (f64, String) {
    let (was, is) = match (was, is) {
        (Outcome::Refused(Refusal::NotRecorded { .. }), _)
        | (_, Outcome::Refused(Refusal::NotRecorded { .. })) => {
            return (f64::INFINITY, "would have sent other streams".into());
        }
        (Outcome::Found(was), Outcome::Found(is)) => (was, is),
        (Outcome::Refused(_), Outcome::Refused(_)) => return (0.0, String::new()),
        (Outcome::Found(_), Outcome::Refused(why)) => {
            return (f64::INFINITY, format!("would have been refused: {why}"));
        }
        (Outcome::Refused(why), Outcome::Found(_)) => {
            return (f64::INFINITY, format!("would not have been refused, as it was: {why}"));
        }
    };
    let of =
        |all: &[Estimate], quantity: Quantity| all.iter().find(|e| e.quantity == quantity).map(|e| e.value);
    let capacity = of(was, Quantity::Capacity).and_then(|value| value.rate());
    let mut furthest = (0.0, String::new());
    for Estimate { quantity, value: before, .. } in was {
        let Some(after) = of(is, *quantity) else {
            return (f64::INFINITY, format!("would have found no {quantity}"));
        };
        let share = match (before.rate(), after.rate()) {
            (Some(before), Some(after)) => {
                let scale = capacity.unwrap_or(before).bits_per_second().max(1);
                before.bits_per_second().abs_diff(after.bits_per_second()) as f64 / scale as f64
            }
            (None, None) => 0.0,
            _ => f64::INFINITY,
        };
        if share > furthest.0 {
            furthest = (share, format!("would have found {quantity} {after}, not {before}"));
        }
    }
    furthest
}
