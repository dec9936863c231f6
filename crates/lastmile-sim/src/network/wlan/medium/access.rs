//! Access to the medium: the stations that send, the outcome, and the waits after it.

use lastmile::time::{Span, Time};

use super::{First, Medium, NEVER, OnAir};
use crate::network::wlan::ampdu;
use crate::network::wlan::choices::AfterCollision;

impl Medium {
    /// The stations whose backoff ends in this slot send.
    pub(super) fn access(&mut self, now: u64) {
        let slot = self.next;
        self.slots = slot + self.passing;
        self.exchanges += 1;
        for station in 0..self.contend.len() {
            if self.contend[station] == slot {
                self.contend[station] = NEVER;
                self.prepare(station, now);
            }
        }
        self.resynchronise();
        match self.on_air[..] {
            [one] if one.first == First::BlockAckReq => self.answer(now, one),
            [one] => self.exchange(now, one),
            _ => self.collide(now),
        }
    }

    /// Stations that wait for a response or for EIFS when another begins to send wait for the end of that and DIFS
    /// instead (10.3.2.3.7, 10.3.2.9).
    #[inline]
    fn resynchronise(&mut self) {
        for (station, until) in self.waiting.drain(..) {
            let own = &mut self.stations[station];
            own.backoff -= until.saturating_sub(self.slots);
            if self.contend[station] != NEVER {
                self.contend[station] = own.backoff;
            }
        }
    }

    fn prepare(&mut self, station: usize, now: u64) {
        let own = &mut self.stations[station];
        own.on_air.clear();
        if let Some((port, rate)) = own.unanswered {
            let end = now + self.phy.control(rate).block_ack_request;
            self.directions[port].counters.transmissions += 1;
            self.on_air.push(OnAir { station, port, rate, first: First::BlockAckReq, bytes: 0, end });
            return;
        }
        let Some(head) = own.queue.front() else { return };
        let port = usize::from(head.port);
        let direction = &mut self.directions[port];
        if direction.schedule.next.is_some_and(|at| at <= now) {
            direction.change(Time::from_nanos(now));
        }
        let attempt = u32::from(head.attempts) + u32::from(head.requests);
        let rate = direction.controller.pick(Time::from_nanos(now), attempt, &mut direction.random);
        let bytes = ampdu::assemble(&own.queue, self.ampdu.as_ref(), &self.phy, rate, &mut own.on_air);
        direction.counters.transmissions += 1;
        direction.counters.retries += u64::from(attempt > 0);
        direction.counters.rates_kbps += u64::from(self.phy.rates()[rate].kbps);
        direction.counters.frames += own.on_air.len() as u64;
        let (first, opening) = if self.requests(rate, bytes) {
            (First::Rts, self.phy.control(rate).rts)
        } else {
            (First::Data, self.phy.frame(rate, bytes))
        };
        self.on_air.push(OnAir { station, port, rate, first, bytes, end: now + opening });
    }

    /// A block ack that was asked for comes: it says that nothing has arrived, so that the data goes again.
    fn answer(&mut self, now: u64, one: OnAir) {
        let own = &mut self.stations[one.station];
        (own.unanswered, own.asked, own.window) = (None, 0, self.phy.cw_min);
        self.ends = one.end;
        self.busy_until = one.end + self.phy.sifs + self.phy.control(one.rate).block_ack;
        self.anchor = self.busy_until + self.phy.difs;
        let busy = Span::from_nanos((self.busy_until - now) as i64);
        self.airtime.error += busy;
        self.airtime.errors += 1;
        self.directions[one.port].counters.airtime += busy;
        self.airtime.access += Span::from_nanos(self.phy.difs as i64);
    }

    /// True if a burst of errors at the client destroys a frame that is on the air between these times.
    fn fades(&mut self, one: OnAir, starts: u64, ends: u64) -> bool {
        // Each client has two ports.
        self.fading[one.port / 2].as_mut().is_some_and(|air| air.destroys(starts, ends))
    }

    /// The request to send does not arrive: nobody answers, and its data is not sent. The others wait for the answer.
    fn unheard(&mut self, now: u64, one: OnAir) {
        let own = &mut self.stations[one.station];
        for &position in &own.on_air {
            let packet = &mut own.queue[position as usize];
            packet.requests = packet.requests.saturating_add(1);
            packet.channel_errors = packet.channel_errors.saturating_add(1);
            packet.collided_last = false;
        }
        let direction = &mut self.directions[one.port];
        direction.counters.channel_errors += own.on_air.len() as u64;
        own.widen(self.phy.cw_max);
        (self.ends, self.busy_until) = (one.end, one.end);
        self.anchor = self.ends + self.phy.sifs + self.phy.control(one.rate).cts + self.phy.difs;
        let busy = Span::from_nanos((one.end - now) as i64);
        direction.counters.airtime += busy;
        self.airtime.errors += 1;
        self.airtime.error += busy;
        self.airtime.access += Span::from_nanos((self.anchor - self.busy_until) as i64);
    }

    fn exchange(&mut self, now: u64, one: OnAir) {
        if one.first == First::Rts && self.fades(one, now, one.end) {
            return self.unheard(now, one);
        }
        let request = self.request_time(one.rate, one.bytes);
        self.ends = now + request + self.phy.frame(one.rate, one.bytes);
        let burst = self.fades(one, now + request, self.ends);
        let asks = self.asks();
        let own = &mut self.stations[one.station];
        let direction = &mut self.directions[one.port];
        let (rate, at) = ((one.rate, &self.phy.rates()[one.rate]), Time::from_nanos(now));
        let mut arrived = 0;
        for &position in &own.on_air {
            let packet = &mut own.queue[position as usize];
            packet.attempts += 1;
            if burst || direction.destroys(at, rate, packet.frame) {
                packet.channel_errors = packet.channel_errors.saturating_add(1);
                packet.collided_last = false;
            } else {
                packet.received = true;
                arrived += 1;
            }
        }
        let failed = own.on_air.len() as u32 - arrived;
        let aggregate = own.on_air.len() > 1;
        direction.counters.channel_errors += u64::from(failed);
        direction.controller.report(one.rate, arrived, failed);
        let response = self.phy.sifs
            + if aggregate { self.phy.control(one.rate).block_ack } else { self.phy.control(one.rate).ack };
        // Without a response the others still keep away from it: the frame's header announced it.
        self.anchor = self.ends + response + self.phy.difs;
        let direction = &mut self.directions[one.port];
        let own = &mut self.stations[one.station];
        if arrived > 0 {
            own.window = self.phy.cw_min;
            self.busy_until = self.ends + response;
            self.airtime.successes += 1;
            self.airtime.success += Span::from_nanos((self.busy_until - now) as i64);
        } else {
            own.widen(self.phy.cw_max);
            own.unanswered = (aggregate && asks).then_some((one.port, one.rate));
            self.busy_until = self.ends;
            self.airtime.errors += 1;
            self.airtime.error += Span::from_nanos((self.busy_until - now) as i64);
        }
        direction.counters.airtime += Span::from_nanos((self.busy_until - now) as i64);
        self.airtime.access += Span::from_nanos((self.anchor - self.busy_until) as i64);
    }

    /// True if a missing block ack is asked for.
    fn asks(&self) -> bool {
        self.ampdu.as_ref().is_some_and(|ampdu| ampdu.request_block_ack)
    }

    fn collide(&mut self, now: u64) {
        let Some(longest) = self.on_air.iter().copied().max_by_key(|air| air.end) else { return };
        self.ends = longest.end;
        self.busy_until = longest.end;
        self.airtime.collisions += 1;
        self.airtime.collision += Span::from_nanos((longest.end - now) as i64);
        let asks = self.asks();
        for air in &self.on_air {
            let own = &mut self.stations[air.station];
            for &position in &own.on_air {
                let packet = &mut own.queue[position as usize];
                if air.first == First::Rts {
                    packet.requests += 1;
                } else {
                    packet.attempts += 1;
                }
                packet.collisions = packet.collisions.saturating_add(1);
                packet.collided_last = true;
            }
            own.widen(self.phy.cw_max);
            let direction = &mut self.directions[air.port];
            direction.counters.collisions += 1;
            direction.counters.airtime += Span::from_nanos((air.end - now) as i64);
            // A lost request says nothing of the rate.
            if air.first == First::Data {
                direction.controller.report(air.rate, 0, own.on_air.len() as u32);
                own.unanswered = (own.on_air.len() > 1 && asks).then_some((air.port, air.rate));
            }
            if air.first == First::BlockAckReq {
                own.asked += 1;
                if own.asked >= self.short_retry {
                    (own.unanswered, own.asked, own.window) = (None, 0, self.phy.cw_min);
                }
            }
        }
        let response = match longest.first {
            First::Rts => self.phy.control(longest.rate).cts,
            First::Data if self.stations[longest.station].on_air.len() < 2 => {
                self.phy.control(longest.rate).ack
            }
            First::Data | First::BlockAckReq => self.phy.control(longest.rate).block_ack,
        };
        self.anchor = self.ends + self.phy.difs;
        match self.after_collision {
            AfterCollision::Exchange => self.anchor += self.phy.sifs + response,
            AfterCollision::Difs | AfterCollision::Timeout => {}
            AfterCollision::Eifs => {
                let extra = (self.phy.eifs - self.phy.difs) / self.phy.slot;
                for station in 0..self.stations.len() {
                    // Those on the air draw when it ends.
                    if self.on_air.iter().any(|air| air.station == station) {
                        continue;
                    }
                    let own = &mut self.stations[station];
                    own.backoff = own.backoff.max(self.slots).saturating_add(extra);
                    self.waiting.push((station, self.slots + extra));
                    if self.contend[station] != NEVER {
                        self.contend[station] = own.backoff;
                    }
                }
            }
        }
        self.airtime.access += Span::from_nanos((self.anchor - self.busy_until) as i64);
    }

    /// The end of the data: frames that arrived are handed over, those that failed too often are given up, and the senders
    /// draw their next backoff.
    pub(super) fn complete(&mut self, now: u64) {
        let collided = self.on_air.len() > 1;
        for index in 0..self.on_air.len() {
            let air = self.on_air[index];
            self.release(now, air);
            let own = &mut self.stations[air.station];
            if own.queue.is_empty() {
                // All that was asked for has been given up.
                (own.unanswered, own.asked) = (None, 0);
            }
            own.draw(self.slots, self.exchanges);
            if collided && matches!(self.after_collision, AfterCollision::Timeout | AfterCollision::Eifs) {
                let waits =
                    (air.end + self.phy.timeout(air.rate, air.first == First::Rts)).saturating_sub(self.ends);
                // Two that differ by less than a slot cannot hear each other in time: they share it.
                let waits = waits / self.phy.slot;
                own.backoff += waits;
                self.waiting.push((air.station, self.slots + waits));
            }
            let waits = own.backoff.saturating_sub(self.slots) * self.phy.slot;
            self.airtime.access += Span::from_nanos(waits as i64);
            if !own.queue.is_empty() {
                self.contend[air.station] = own.backoff;
            }
        }
        self.on_air.clear();
        self.next = self.contend.iter().copied().min().unwrap_or(NEVER);
    }
}
