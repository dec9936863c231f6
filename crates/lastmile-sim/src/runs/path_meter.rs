//! [`PathMeter`]: meters along a path.

use lastmile::node::Flow;
use lastmile::time::Time;
use lastmile::units::{Bytes, Rate};

use crate::network::engine::{Engine, NodeId};
use crate::network::meter::{Meter, MeterConfig, ReadProbe, TruthError};
use crate::scenario::{Scenario, Simulation};

impl Simulation {
    /// Attaches meters to all that limits an endpoint's packets on their way from one host to another: links
    /// with a rate, and WLANs. `None` where no packets can go, where nothing on the way limits them, or where the way
    /// changes during the run.
    pub fn meter(
        &mut self,
        scenario: &Scenario,
        from: usize,
        to: usize,
        read: ReadProbe,
    ) -> Option<PathMeter> {
        self.meter_flow(scenario, (from, to), self.flow(from, to)?, read)
    }

    /// The same for the packets of one flow between two hosts.
    pub fn meter_flow(
        &mut self,
        scenario: &Scenario,
        (from, to): (usize, usize),
        flow: Flow,
        read: ReadProbe,
    ) -> Option<PathMeter> {
        if scenario.hands_off(from, to) {
            return None;
        }
        let config = MeterConfig::new(flow, read);
        let mut found = PathMeter { meters: Vec::new(), air: Vec::new() };
        for hop in scenario.path(from, to)? {
            let (node, port) = self.hop(scenario, hop)?;
            let Ok(meter) = self.engine.attach_meter(node, port, config) else { continue };
            let shared = self.engine.carrier(node).is_some_and(|carrier| carrier.is_shared());
            if shared { &mut found.air } else { &mut found.meters }.push((node, meter));
        }
        (!found.meters.is_empty() || !found.air.is_empty()).then_some(found)
    }
}

/// Meters along a path. The capacity and the spare rate of its links are the smallest of any link, as RFC 5136 has
/// it. What WLANs on the way leave is not to be read from a queue: see [`twin`](crate::runs::twin).
///
/// ```
/// use lastmile::{node::*, time::Time, units::*};
/// use lastmile_sim::scenario::*;
/// let scenario = builtin("path").unwrap();
/// let hosts = vec![("sender".into(), Attach::External), ("receiver".into(), Attach::External)];
/// let mut run = build(&scenario, 1, hosts)?;
/// let meter = run.meter(&scenario, 0, 1, |_| None).unwrap();
/// run.engine.run_until(Time::ZERO + scenario.duration)?;
/// let spare = meter.spare_between(&run.engine, Time::ZERO, run.engine.now(), Bytes(1500)).unwrap();
/// assert!((spare.ratio(Rate::ip(6_000_000)).unwrap() - 1.0).abs() < 0.05);
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMeter {
    /// The nodes of links with a rate, in the order in which packets cross them, each with its meter's number.
    pub meters: Vec<(NodeId, usize)>,
    /// The same of media that are shared, whose queues do not show what is spare.
    pub air: Vec<(NodeId, usize)>,
}

impl PathMeter {
    fn smallest(
        &self,
        engine: &Engine,
        of: impl Fn(&Meter) -> Result<Rate, TruthError>,
    ) -> Result<Rate, TruthError> {
        let mut smallest: Option<Rate> = None;
        let mut nowhere = None;
        for meter in self.meters.iter().filter_map(|&(link, number)| engine.meter(link, number)) {
            match of(meter) {
                Ok(rate) => smallest = Some(smallest.map_or(rate, |s| if rate < s { rate } else { s })),
                // Back to back packets reach the first queue in one moment: no window there, but one further on.
                // And a link without a rate as yet limits nothing.
                Err(error @ (TruthError::EmptyWindow { .. } | TruthError::Unlimited { .. })) => {
                    nowhere = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        smallest.ok_or(nowhere.unwrap_or(TruthError::EmptyWindow { from: Time::ZERO, to: Time::ZERO }))
    }

    /// What the path's links carried of IP packets of that size in the window that the stream had at each
    /// queue; at one moment, where its packets came at one.
    ///
    /// # Errors
    /// Where a link never saw the stream, or none has a rate.
    pub fn capacity(&self, engine: &Engine, stream: u32, ip_size: Bytes) -> Result<Rate, TruthError> {
        self.smallest(engine, |meter| meter.capacity(stream, ip_size))
    }

    /// The same between two times.
    ///
    /// # Errors
    /// Where no link has a rate.
    pub fn capacity_between(
        &self,
        engine: &Engine,
        from: Time,
        to: Time,
        ip_size: Bytes,
    ) -> Result<Rate, TruthError> {
        self.smallest(engine, |meter| meter.capacity_between(from, to, ip_size))
    }

    /// The spare rate of the path's links over the window that the stream had at each queue.
    ///
    /// # Errors
    /// Where a link never saw the stream, or no link saw its packets at different times.
    pub fn spare(&self, engine: &Engine, stream: u32, ip_size: Bytes) -> Result<Rate, TruthError> {
        self.smallest(engine, |meter| meter.spare(stream, ip_size))
    }

    /// The spare rate of the path's links between two times of the engine: with the measured part of a run,
    /// the long-run mean.
    ///
    /// # Errors
    /// Where a meter's log was full before `to`, or the window has no length.
    pub fn spare_between(
        &self,
        engine: &Engine,
        from: Time,
        to: Time,
        ip_size: Bytes,
    ) -> Result<Rate, TruthError> {
        self.smallest(engine, |meter| meter.spare_between(from, to, ip_size))
    }
}
