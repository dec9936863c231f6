//! What becomes of packets: handed over, or given up, with the true cause.

use lastmile::node::PortId;
use lastmile::time::Time;

use super::{Medium, OnAir};
use crate::network::carrier::LossCause;
use crate::network::engine::Lost;
use crate::network::wlan::counters::Loss;

impl Medium {
    pub(super) fn note(&mut self, loss: Loss) {
        self.losses.add(&Lost { at: loss.at, cause: loss.cause, datagram: &loss.datagram });
        if self.lost.len() < self.loss_log {
            self.lost.push(loss);
        } else if self.loss_log > 0 {
            self.lost_unlogged += 1;
        }
    }

    /// Removes from the queue, in order, what has arrived or has been given up.
    pub(super) fn release(&mut self, now: u64, air: OnAir) {
        let (at, port) = (Time::from_nanos(now), PortId(air.port as u16));
        let (short, long) = (u16::from(self.short_retry), u16::from(self.long_retry));
        let is_long = air.bytes > self.rts_threshold;
        let limit = self.directions[air.port].controller.limit();
        // 10.3.4.4: a request that fails counts as a short frame, what follows it by its own length.
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
            let Some(packet) = own.queue.remove(position) else { return };
            let counters = &mut self.directions[air.port].counters;
            if packet.received {
                counters.delivered += 1;
                counters.delivered_bytes += packet.datagram.ip_size();
                self.out.push_back((port.0, packet.datagram));
                continue;
            }
            own.window = self.phy.cw_min;
            let (collisions, channel_errors) = (packet.collisions, packet.channel_errors);
            let collision = match collisions.cmp(&channel_errors) {
                core::cmp::Ordering::Equal => packet.collided_last,
                order => order.is_gt(),
            };
            let cause = if collision { LossCause::Collision } else { LossCause::Channel };
            if collision {
                counters.lost_collision += 1;
            } else {
                counters.lost_channel += 1;
            }
            self.note(Loss { at, port, cause, collisions, channel_errors, datagram: packet.datagram });
        }
    }
}
