//! Load of each measurement of `all`, and what TCP connections beside it got: against a twin of the same seed without measurements.

use lastmile::endpoint::measure::{Decision, Load, LoadRow, TcpRow};
use lastmile::report::StreamRecord;
use lastmile::time::{Span, Time};

use super::outcome::Outcome;
use crate::monitor::accounting::Watched;
use crate::monitor::sent::Sent;
use crate::network::brought::Brought;
use crate::roles::Ended;
use crate::scenario::roles::measure::SessionSpec;
use crate::scenario::{RunError, Scenario, build};

/// The longest time behind a measurement that is looked at.
const AFTER: Span = Span::from_secs(10);

/// True if one of the sessions is of `all`, beside TCP.
pub(super) fn is_watched<'a>(scenario: &Scenario, mut all: impl Iterator<Item = &'a SessionSpec>) -> bool {
    scenario.traffic.iter().any(|flow| flow.tcp.is_some()) && all.any(|session| session.budget.is_some())
}

/// Bytes that TCP brought in the twin.
pub(super) struct Twin(Brought);

impl Twin {
    /// Runs it, if the run itself was watched. `sent` are the packets of endpoints that measure nothing; there is no twin where not all of
    /// them are known.
    pub(super) fn of(ended: &Ended<'_>, sent: Option<&Sent>) -> Result<Option<Twin>, RunError> {
        if ended.simulation.brought.is_none() {
            return Ok(None);
        }
        let twin = match sent {
            Some(sent) => sent.again(ended.scenario),
            None => Some(ended.scenario.without_endpoints()),
        };
        let Some(twin) = twin else { return Ok(None) };
        let mut simulation = build(&twin, ended.simulation.seed(), Vec::new())?;
        simulation.brought = Some(Brought::default());
        let mut watched = Watched::new(&twin, simulation);
        watched.run_until(ended.engine().now())?;
        Ok(watched.into_simulation().brought.map(Twin))
    }
}

/// Gives each outcome of a session of `all` its load.
pub(super) fn disturb(
    outcomes: &mut [Outcome],
    ended: &Ended<'_>,
    session: &SessionSpec,
    twin: Option<&Twin>,
    told: &[(Time, &Decision)],
    records: &[StreamRecord],
) {
    let Some(budget) = &session.budget else { return };
    let loads = Load::of_each(told.iter().map(|(_, what)| *what), records, budget.pause);
    let is_result = |what: &Decision| matches!(what, Decision::Estimated { .. } | Decision::Refused { .. });
    let ends = told.iter().filter(|(_, what)| is_result(what)).map(|(at, _)| ended.when(session.from, *at));
    let all: Vec<(Time, Load)> = ends.zip(loads).collect();
    let rates = |from: Time, to: Time| {
        let (own, twin) = (ended.simulation.brought.as_ref()?, &twin?.0);
        let (goodput_bps, twin_bps) = (own.rate(from, to)? as u64, twin.rate(from, to)? as u64);
        Some(TcpRow { seconds: (to - from).as_secs_f64(), goodput_bps, twin_bps })
    };
    for (index, outcome) in outcomes.iter_mut().enumerate() {
        let Some(&(end, load)) = all.get(index) else { continue };
        let begun = |&(at, load): &(Time, Load)| {
            Time::from_nanos((at - load.elapsed - Time::ZERO).as_nanos().max(0) as u64)
        };
        // A measurement that sent nothing disturbs nobody, and ends no time behind another.
        let next = all[index..].iter().filter(|(at, load)| *at > end && !load.is_idle()).map(begun).min();
        let until = next.unwrap_or(Time::MAX).min(end + AFTER).min(ended.engine().now());
        let row = LoadRow::from(load);
        outcome.load = Some(match load.is_idle() {
            true => row,
            false => {
                LoadRow { tcp_during: rates(begun(&(end, load)), end), tcp_after: rates(end, until), ..row }
            }
        });
    }
}
