//! Fate of packets: handed over, or given up, with the true cause.

use lastmile::node::{Datagram, PortId};
use lastmile::time::Time;

use super::{Medium, NEVER, OnAir};
use crate::network::lost::{LossCause, Lost};

impl Medium {
    /// A client leaves for another link, or comes back: packets of one direction that wait then or come later are dropped.
    /// Those on the air, or held back by the receiver to keep the order, go on.
    pub(super) fn leave_port(&mut self, now: u64, port: PortId, left: bool) {
        let Some(direction) = self.directions.get_mut(usize::from(port.0)) else { return };
        direction.left = left;
        let from = direction.from;
        let sends = self.on_air.iter().any(|air| air.station == from);
        let mut position = 0;
        while left && let Some(packet) = self.stations[from].queue.get(position) {
            let stays = packet.port != port.0 || packet.received;
            let own = &mut self.stations[from];
            if stays || sends && own.on_air.contains(&(position as u32)) {
                position += 1;
                continue;
            }
            own.on_air.iter_mut().filter(|at| **at as usize > position).for_each(|at| *at -= 1);
            if let Some(packet) = own.remove(position, now) {
                self.leaves(Time::from_nanos(now), port, packet.datagram);
            }
        }
        let own = &mut self.stations[from];
        if left && own.unanswered.is_some_and(|(asked, _)| asked == usize::from(port.0)) {
            (own.unanswered, own.asked) = (None, 0);
        }
        if own.queue.is_empty() {
            self.contend[from] = NEVER;
            self.next = self.contend.iter().copied().min().unwrap_or(NEVER);
        }
    }

    /// Drops a packet whose client has left.
    pub(super) fn leaves(&mut self, at: Time, port: PortId, datagram: Datagram) {
        self.directions[usize::from(port.0)].counters.lost_handoff += 1;
        self.losses.add(&Lost { at, cause: LossCause::Handoff, datagram: &datagram });
    }

    /// Removes from the queue, in order, packets that have arrived or have been given up.
    pub(super) fn release(&mut self, now: u64, air: OnAir) {
        let (at, port) = (Time::from_nanos(now), PortId(air.port as u16));
        let (short, long) = (u16::from(self.short_retry), u16::from(self.long_retry));
        let is_long = air.bytes > self.rts_threshold;
        let limit = self.directions[air.port].controller.limit();
        // 10.3.4.4: a request that fails counts as a short frame, the frame that follows it by its own length.
        let spent = |requests: u8, attempts: u8| {
            let (requests, attempts) = (u16::from(requests), u16::from(attempts));
            if let Some(limit) = limit {
                return requests >= short || attempts >= limit;
            }
            if is_long { requests >= short || attempts >= long } else { requests + attempts >= short }
        };
        let mut position = 0;
        while let Some(packet) = self.stations[air.station].queue.get(position) {
            if usize::from(packet.port) != air.port {
                // Only an aggregate has packets of another receiver between its own.
                if self.ampdu.is_none() {
                    return;
                }
                position += 1;
                continue;
            }
            if !packet.received && !spent(packet.requests, packet.attempts) {
                return;
            }
            let own = &mut self.stations[air.station];
            let Some(packet) = own.remove(position, now) else { return };
            let counters = &mut self.directions[air.port].counters;
            if packet.received {
                counters.delivered += 1;
                counters.delivered_bytes += packet.datagram.ip_size();
                self.out.push_back((port.0, packet.datagram));
                continue;
            }
            own.window = self.phy.cw_min;
            let collision = match packet.collisions.cmp(&packet.channel_errors) {
                core::cmp::Ordering::Equal => packet.collided_last,
                order => order.is_gt(),
            };
            let cause = if collision { LossCause::Collision } else { LossCause::Channel };
            if collision {
                counters.lost_collision += 1;
            } else {
                counters.lost_channel += 1;
            }
            self.losses.add(&Lost { at, cause, datagram: &packet.datagram });
        }
    }
}
