//! [`Outcome`]: the result of a measurement, beside the [`Truth`].

use lastmile::endpoint::measure::{Cost, Decision, LoadRow, Row, TruthRow, relative_error};
use lastmile::estimate::{Estimate, Quantity, Refusal};
use lastmile::report::Direction;
use lastmile::time::Time;
use lastmile::units::Rate;

use super::truth::{Asked, PathTruth, Truth};
use crate::monitor::sent::Sent;
use crate::roles::Ended;
use crate::scenario::roles::measure::SessionSpec;
use crate::scenario::{RunError, Scenario};

/// Result of one method in one direction, beside the truth.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Outcome {
    /// The initiating host's name.
    pub from: String,
    /// The reflecting host's name.
    pub to: String,
    /// The method's name.
    pub method: String,
    /// The direction measured.
    pub direction: Direction,
    /// When its session began, as the scenario has it.
    pub start: Time,
    /// The estimate, or `None` if none can be trusted.
    pub estimate: Option<Estimate>,
    /// Reason, if there is no estimate.
    pub refusal: Option<Refusal>,
    /// Cost of the session up to this result.
    pub cost: Cost,
    /// The truth, where something limits the path.
    pub truth: Option<Truth>,
    /// The measurement's load on the path, of `all` alone.
    pub load: Option<LoadRow>,
}

impl Outcome {
    /// It as a row, with its truth.
    pub fn row(&self) -> Option<Row> {
        let (method, direction, cost) = (self.method.clone(), self.direction, self.cost);
        let mut row = Row::of(&match (self.estimate.clone(), self.refusal.clone()) {
            (Some(estimate), _) => Decision::Estimated { method, direction, estimate, cost },
            (None, Some(refusal)) => Decision::Refused { method, direction, refusal, cost },
            (None, None) => return None,
        })?;
        row.from = Some(self.from.clone());
        row.to = Some(self.to.clone());
        row.start_seconds = Some((self.start - Time::ZERO).as_secs_f64());
        row.load = self.load;
        let rate = row.rate_bps.map(Rate::ip);
        row.truth = self.truth.map(|truth| {
            let estimate = self.estimate.as_ref();
            let available = estimate.filter(|e| e.quantity == Quantity::AvailableBandwidth);
            let saturation = available.and(truth.achievable_window);
            let (own, bps) = (estimate.and_then(|e| truth.of(e)), Rate::bits_per_second);
            TruthRow {
                truth_capacity_bps: truth.capacity.bits_per_second(),
                truth_shortest_bps: truth.shortest.map(Rate::bits_per_second),
                truth_sustained_bps: truth.sustained.bits_per_second(),
                truth_window_bps: truth.window.map(Rate::bits_per_second),
                truth_mean_bps: truth.mean.map(Rate::bits_per_second),
                truth_next_bps: truth.next.map(Rate::bits_per_second),
                truth_next_missing: truth.next_missing,
                truth_over: truth.over,
                truth_saturation_window_bps: truth.achievable_window.map(Rate::bits_per_second),
                truth_saturation_mean_bps: truth.achievable_mean.map(Rate::bits_per_second),
                error: relative_error(rate, own),
                error_bps: rate.zip(own).map(|(rate, own)| bps(rate).wrapping_sub(bps(own)) as i64),
                error_saturation: relative_error(rate, saturation),
            }
        });
        Some(row)
    }
}

/// The outcomes among a session's decisions, without any truth.
pub(super) fn found(scenario: &Scenario, session: &SessionSpec, decisions: &[&Decision]) -> Vec<Outcome> {
    let name = |host: usize| scenario.hosts.get(host).map_or_else(String::new, |h| h.name.clone());
    let found = |decision: &&Decision| {
        let (method, direction, result, cost) = match *decision {
            Decision::Estimated { method, direction, estimate, cost } => {
                (method, direction, Ok(estimate), cost)
            }
            Decision::Refused { method, direction, refusal, cost } => (method, direction, Err(refusal), cost),
            _ => return None,
        };
        Some(Outcome {
            from: name(session.from),
            to: name(session.to),
            method: method.clone(),
            direction: *direction,
            start: session.start(),
            estimate: result.ok().cloned(),
            refusal: result.err().cloned(),
            cost: *cost,
            truth: None,
            load: None,
        })
    };
    decisions.iter().filter_map(found).collect()
}

/// The outcomes among a session's decisions, with the truth to each. For runs that nobody stopped: an interruption is the
/// run's end.
///
/// # Errors
/// A twin cannot be run.
pub(super) fn outcomes(
    ended: &Ended<'_>,
    session: &SessionSpec,
    (meters, sent): (&PathTruth, Option<&Sent>),
    decisions: &[&Decision],
) -> Result<Vec<Outcome>, RunError> {
    let mut all = found(ended.scenario, session, decisions);
    let refusals = all.iter_mut().filter_map(|outcome| outcome.refusal.as_mut());
    refusals
        .filter(|refusal| **refusal == Refusal::Interrupted)
        .for_each(|refusal| *refusal = Refusal::RunOver);
    let asked = all.iter().enumerate().filter_map(|(index, found)| {
        Some((index, Asked::about(found.direction, found.estimate.as_ref(), ended.truths)?))
    });
    let (which, asked): (Vec<usize>, Vec<Asked<'_>>) = asked.unzip();
    let truths = meters.truths(ended, session, sent, &asked)?;
    for (index, truth) in which.into_iter().zip(truths) {
        all[index].truth = truth;
    }
    Ok(all)
}
