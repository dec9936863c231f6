//! [`Medium`]: all stations on one channel, as one element of the engine. DCF (IEEE 802.11-2016, 10.3) in whole slots.
//!
//! The medium counts idle slots; a backoff is the number of the slot at which it ends. So a busy medium, during which none is
//! counted, freezes all backoffs, and the next access is the smallest number among the stations that have something to send;
//! equal numbers collide. An exchange costs two wakes: its beginning, when collisions are found and noise is drawn, and the
//! end of its data, when packets are handed over. Scope of the model, and its agreement with ns-3: `docs/wlan.md`.

use std::collections::VecDeque;

use lastmile::node::{Datagram, Input, Node, Output, PortId, Transmit, TransmitId};
use lastmile::time::Time;
use lastmile::units::Bytes;

use super::choices::{AfterCollision, Standard};
use super::config::{AmpduConfig, WlanConfig};
use super::counters::Airtime;
use super::direction::Direction;
use super::phy::Phy;
use super::setup;
use super::station::{Packet, Station};
use crate::network::ConfigError;
use crate::network::loss::Fading;
use crate::network::lost::{LossCause, Losses, Lost};
use crate::network::meter::Meter;

const NEVER: u64 = u64::MAX;
/// Larger packets count as this large, which keeps durations far from overflow.
const MAX_IP_BYTES: u64 = 1 << 20;

/// First frame of a station's access: all that a collision costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Data,
    /// The RTS that precedes them.
    Rts,
    /// A request for a block ack that did not come, instead of data.
    BlockAckReq,
}

#[derive(Clone, Copy, Debug)]
struct OnAir {
    station: usize,
    port: usize,
    rate: usize,
    first: First,
    bytes: u32,
    /// When it ends if it collides.
    end: u64,
}

/// A WLAN. Ports are directions: client number k, in the configuration's order, sends by port 2k to its access
/// point and receives by port 2k + 1 from it; a packet leaves by the port at which it entered. See
/// [`Engine::connect_port`](crate::network::engine::Engine::connect_port).
#[derive(Debug)]
pub struct Medium {
    phy: Phy,
    after_collision: AfterCollision,
    ampdu: Option<AmpduConfig>,
    overhead: u32,
    rts_threshold: u32,
    short_retry: u8,
    long_retry: u8,
    stations: Vec<Station>,
    /// Per station the slot of its next access; [`NEVER`] where it has nothing to send or is on the air.
    contend: Vec<u64>,
    /// The smallest of these.
    next: u64,
    directions: Vec<Direction>,
    /// Errors in bursts, client by client.
    fading: Vec<Option<Fading>>,
    /// Idle slots counted before `anchor`, from which on they are counted.
    slots: u64,
    anchor: u64,
    exchanges: u64,
    /// Slots that the others count at the boundary at which one begins to send: by DCF none (10.3.3), by n's
    /// EDCA one (10.22.2.4: at every boundary a station either sends or counts).
    passing: u64,
    /// Stations that wait longer after the last collision than DIFS, and the slot until which they do.
    waiting: Vec<(usize, u64)>,
    on_air: Vec<OnAir>,
    /// The end of the exchange's data.
    ends: u64,
    /// The end of its response.
    busy_until: u64,
    airtime: Airtime,
    out: VecDeque<(u16, Datagram)>,
    losses: Losses,
    /// Each at a port.
    meters: Vec<(PortId, Meter)>,
}

impl Medium {
    /// An idle WLAN called `name` in a run with seed `seed`: each station has random numbers of its own.
    ///
    /// # Errors
    /// If the configuration contradicts itself or the standard.
    pub fn new(config: &WlanConfig, seed: u64, name: &str) -> Result<Medium, ConfigError> {
        let phy = Phy::new(config)?;
        let parts = setup::parts(config, &phy, seed, name)?;
        Ok(Medium {
            after_collision: config.after_collision,
            ampdu: config.ampdu.clone(),
            overhead: parts.overhead,
            rts_threshold: config.rts_threshold.map_or(u32::MAX, |b| b.0.min(u64::from(u32::MAX)) as u32),
            short_retry: config.short_retry,
            long_retry: config.long_retry,
            contend: vec![NEVER; parts.stations.len()],
            next: NEVER,
            stations: parts.stations,
            directions: parts.directions,
            fading: parts.fading,
            slots: 0,
            anchor: 0,
            exchanges: 1,
            passing: u64::from(config.standard == Standard::N),
            waiting: Vec::new(),
            on_air: Vec::new(),
            ends: 0,
            busy_until: 0,
            airtime: Airtime::default(),
            out: VecDeque::new(),
            losses: Losses::default(),
            meters: Vec::new(),
            phy,
        })
    }

    fn frame_bytes(&self, ip_size: Bytes) -> u32 {
        ip_size.0.min(MAX_IP_BYTES) as u32 + self.overhead
    }

    #[inline]
    fn requests(&self, rate: usize, bytes: u32) -> bool {
        bytes > self.rts_threshold || self.phy.always_requests(rate)
    }

    /// RTS, CTS and the SIFS after each, where they come first.
    fn request_time(&self, rate: usize, bytes: u32) -> u64 {
        if self.requests(rate, bytes) {
            self.phy.control(rate).rts + self.phy.control(rate).cts + 2 * self.phy.sifs
        } else {
            0
        }
    }

    fn due(&self) -> Option<u64> {
        if !self.on_air.is_empty() {
            return Some(self.ends);
        }
        (self.next != NEVER).then(|| {
            self.anchor.saturating_add(self.next.saturating_sub(self.slots).saturating_mul(self.phy.slot))
        })
    }

    fn enqueue(&mut self, now: Time, port: PortId, datagram: Datagram) {
        let frame = self.frame_bytes(datagram.ip_size());
        let Some(direction) = self.directions.get_mut(usize::from(port.0)) else { return };
        direction.counters.arrived += 1;
        let from = direction.from;
        for (at, meter) in &mut self.meters {
            // Other stations' packets never pass here: only the medium knows the load against the stream.
            if *at == port && datagram.flow == meter.flow() {
                meter.arrival(now.as_nanos(), &datagram, frame);
            }
        }
        if direction.left {
            return self.leaves(now, port, datagram);
        }
        let station = &mut self.stations[from];
        if station.queue.len() >= station.limit {
            direction.counters.lost_queue += 1;
            self.losses.add(&Lost { at: now, cause: LossCause::Queue, datagram: &datagram });
            return;
        }
        station.push(Packet {
            datagram,
            port: port.0,
            frame,
            since: now.as_nanos(),
            attempts: 0,
            requests: 0,
            collisions: 0,
            channel_errors: 0,
            collided_last: false,
            received: false,
        });
        if station.queue.len() > 1 {
            return;
        }
        let now = now.as_nanos();
        // Slots that it waits for EIFS or a response are no backoff.
        let waits = self.waiting.iter().find(|waiting| waiting.0 == from).map_or(0, |waiting| waiting.1);
        let (from_slot, boundary) =
            (self.slots.max(waits), self.slots + now.saturating_sub(self.anchor).div_ceil(self.phy.slot));
        if now < self.anchor || boundary < from_slot {
            // Busy, or not idle for DIFS or EIFS. A backoff that was over is drawn anew; one drawn after the
            // exchange that has just been is still running.
            let running = station.backoff > from_slot
                || (station.backoff == from_slot && station.drawn_in == self.exchanges);
            if !running {
                station.draw(from_slot, self.exchanges);
            }
        } else {
            station.backoff = station.backoff.max(boundary);
        }
        self.contend[from] = station.backoff;
        self.next = self.next.min(station.backoff);
    }
}

impl Node for Medium {
    type Event = core::convert::Infallible;

    #[inline]
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Datagram { port, datagram, .. } => self.enqueue(now, port, datagram),
            Input::Wake => {
                while let Some(due) = self.due()
                    && due <= now.as_nanos()
                {
                    if self.on_air.is_empty() {
                        self.access(due);
                    } else {
                        self.complete(due);
                    }
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn poll(&mut self, now: Time) -> Output {
        match self.out.pop_front() {
            Some((port, datagram)) => {
                Output::Transmit(Transmit { id: TransmitId(0), at: now, port: PortId(port), datagram })
            }
            None => Output::Wait(self.due().map(Time::from_nanos)),
        }
    }
}

mod access;
mod fate;
mod view;

#[cfg(test)]
mod tests;
