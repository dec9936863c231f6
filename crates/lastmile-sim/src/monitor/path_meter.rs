//! [`PathMeter`]: meters along a path.

use lastmile::node::Flow;
use lastmile::time::Time;
use lastmile::units::Rate;

use crate::network::engine::{Engine, NodeId};
use crate::network::meter::{Meter, MeterConfig, ReadProbe, TruthError};
use crate::scenario::{Scenario, Simulation};

impl Simulation {
    /// Attaches meters to all that limits the packets of a flow on their way from one host to another: links
    /// with a rate, and WLANs. `None` where no packets can go, where nothing on the way limits them, or where the way
    /// changes during the run. `measuring` are the flows of other measurements.
    pub fn meter(
        &mut self,
        scenario: &Scenario,
        (from, to): (usize, usize),
        flow: Flow,
        measuring: &[Flow],
        read: ReadProbe,
    ) -> Option<PathMeter> {
        if scenario.path_changes(from, to) {
            return None;
        }
        let config = MeterConfig { measuring: measuring.into(), ..MeterConfig::new(flow, read) };
        let mut found = PathMeter { meters: Vec::new(), air: Vec::new() };
        for hop in scenario.path(from, to)? {
            let (node, port) = self.hop(scenario, hop)?;
            let Ok(meter) = self.engine.attach_meter(node, port, config.clone()) else { continue };
            let shared = self.engine.carrier(node).is_some_and(|carrier| carrier.is_shared());
            if shared { &mut found.air } else { &mut found.meters }.push((node, meter));
        }
        (!found.meters.is_empty() || !found.air.is_empty()).then_some(found)
    }
}

/// Meters along a path. The capacity and the spare rate of its links are the smallest of any link, as RFC 5136 has
/// it. No queue shows the spare rate of WLANs on the way: see [`twin`](crate::monitor::twin).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMeter {
    /// The nodes of links with a rate, in the order in which packets cross them, each with its meter's number.
    pub meters: Vec<(NodeId, usize)>,
    /// The same of shared media: their queues do not show the spare rate.
    pub air: Vec<(NodeId, usize)>,
}

impl PathMeter {
    /// When the last packet of these streams came to anything on the way.
    pub fn last(&self, engine: &Engine, streams: &[u32]) -> Option<Time> {
        let meters = self.meters.iter().chain(&self.air);
        let meters = meters.filter_map(|&(node, number)| engine.meter(node, number));
        meters.flat_map(|m| streams.iter().filter_map(|&s| m.stream(s).ok())).map(|seen| seen.last).max()
    }

    /// The smallest of what the links say.
    ///
    /// # Errors
    /// If a link never saw a stream or its log was full, none has a rate, or no window has a length.
    pub fn smallest(
        &self,
        engine: &Engine,
        of: impl Fn(&Meter) -> Result<Rate, TruthError>,
    ) -> Result<Rate, TruthError> {
        let mut smallest: Option<Rate> = None;
        let mut nowhere = TruthError::EmptyWindow(Time::ZERO, Time::ZERO);
        for meter in self.meters.iter().filter_map(|&(link, number)| engine.meter(link, number)) {
            match of(meter) {
                Ok(rate) => smallest = Some(smallest.map_or(rate, |s| if rate < s { rate } else { s })),
                // Back to back packets reach the first queue in one moment: no window there, but one further on.
                // And a link without a rate as yet limits nothing.
                Err(error @ (TruthError::EmptyWindow(..) | TruthError::Unlimited(..))) => nowhere = error,
                Err(error) => return Err(error),
            }
        }
        smallest.ok_or(nowhere)
    }
}
