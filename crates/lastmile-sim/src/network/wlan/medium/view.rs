//! Readings of a [`Medium`] from outside.

use lastmile::node::{Flow, PortId};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};

use super::Medium;
use crate::network::carrier::{Carrier, Cost};
use crate::network::link::Waits;
use crate::network::lost::Losses;
use crate::network::meter::{Meter, MeterConfig, Profile};
use crate::network::packets::{PACKET_MEMORY, Packets};
use crate::network::wlan::ampdu;
use crate::network::wlan::counters::{Airtime, DirectionCounters};

impl Medium {
    /// The directions in which packets go, each with its port, and the numbers of its sender and its receiver.
    pub fn directions(&self) -> impl Iterator<Item = (PortId, usize, usize)> {
        self.directions.iter().enumerate().map(|(port, d)| (PortId(port as u16), d.from, d.to))
    }

    /// Counters of a direction.
    pub fn counters(&self, port: PortId) -> Option<&DirectionCounters> {
        self.directions.get(usize::from(port.0)).map(|d| &d.counters)
    }

    /// Use of the air.
    pub fn airtime(&self) -> &Airtime {
        &self.airtime
    }

    /// For how long the medium was busy up to `now`; never more than has elapsed.
    pub fn busy(&self, now: Time) -> Span {
        self.airtime.total() - Span::from_nanos(self.busy_until.saturating_sub(now.as_nanos()) as i64)
    }

    /// Why a trace that drives a client cannot be read any more, if it cannot.
    pub fn trace_failure(&self) -> Option<&str> {
        self.directions.iter().find_map(|direction| direction.schedule.failure())
    }

    /// Packets in all queues, with those on the air and those that receivers hold back.
    pub fn queued(&self) -> usize {
        self.stations.iter().map(|station| station.queue.len()).sum()
    }

    /// Frames in the queue of a direction's sender at `now`, those on the air included, and all waiting up to then; and the
    /// most packets that it ever held. An access point has one queue for all of its clients.
    pub fn waits(&self, port: PortId, now: Time) -> Option<(Waits, usize)> {
        let station = self.stations.get(self.directions.get(usize::from(port.0))?.from)?;
        Some((station.waits(now.as_nanos()), station.longest))
    }

    /// Capacity of a direction for IP packets of that size when nobody else sends, at the fastest rate that it
    /// may use: frame exchange, DIFS and the mean first backoff.
    pub fn capacity(&self, port: PortId, ip_size: Bytes) -> Option<Rate> {
        let direction = self.directions.get(usize::from(port.0))?;
        let frame = self.frame_bytes(ip_size);
        let rate = direction.top_rate;
        let frames = self.ampdu.as_ref().map_or(1, |config| {
            let fits = |n: &u32| {
                let bytes = n * ampdu::padded(frame);
                u64::from(bytes) <= config.max_bytes.0
                    && self.phy.plain(rate, bytes) <= config.max_duration.as_nanos().max(0) as u64
            };
            (1..=config.max_frames.min(ampdu::WINDOW)).take_while(fits).last().unwrap_or(1)
        });
        let cycle = if frames == 1 {
            let request = self.request_time(rate, frame);
            self.phy.cycle(rate, frame) + Span::from_nanos(request as i64)
        } else {
            let single = self.phy.cycle(rate, 0).as_nanos() as u64;
            let bytes = frames * ampdu::padded(frame);
            let response = self.phy.frame(rate, 0) + self.phy.control(rate).ack;
            let own = self.phy.frame(rate, bytes) + self.phy.control(rate).block_ack;
            Span::from_nanos((single - response + own + self.request_time(rate, bytes)) as i64)
        };
        Rate::over(ip_size * u64::from(frames), cycle, lastmile::units::Layer::Ip)
    }

    /// The same if each packet drew the shortest backoff; `None` where packets share an access to the medium.
    pub fn shortest(&self, port: PortId, ip_size: Bytes) -> Option<Rate> {
        let mean = self.capacity(port, ip_size).filter(|_| self.ampdu.is_none())?;
        Rate::over(ip_size, mean.time_for(ip_size) - self.phy.mean_backoff(), lastmile::units::Layer::Ip)
    }
}

impl Carrier for Medium {
    fn is_shared(&self) -> bool {
        true
    }

    /// It knows the streams of a flow by the times at which they come to the port.
    fn attach(&mut self, port: PortId, config: MeterConfig) -> Option<usize> {
        self.directions.get(usize::from(port.0))?;
        // The medium is everybody's: no rate here is the link's own.
        let meter = Meter::new(config, Profile::new(None, None, Vec::new(), None), self.overhead, None);
        self.meters.push((port, meter));
        Some(self.meters.len() - 1)
    }

    fn meter(&self, number: usize) -> Option<&Meter> {
        self.meters.get(number).map(|(_, meter)| meter)
    }

    fn leave(&mut self, _: &mut Packets, now: u64, port: PortId, left: bool) {
        self.leave_port(now, port, left);
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }

    fn losses_mut(&mut self) -> &mut Losses {
        &mut self.losses
    }

    fn cost(&self) -> Cost {
        Cost { memory: self.queued() as u64 * PACKET_MEMORY, events: 0 }
    }

    fn flows_under_way(&self) -> Box<dyn Iterator<Item = Flow> + '_> {
        let queued = self.stations.iter().flat_map(|station| &station.queue);
        Box::new(queued.map(|packet| packet.datagram.flow))
    }
}
