//! Places of sources at a receiver: which may come, which leave for another, and which are turned away.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use rand_core::Rng;

use super::event::{Decision, Left};
use super::heard::Source;
use super::receiver::Receiver;
use crate::endpoint::shares::{TELL, fair, source_prefix};
use crate::node::Output;
use crate::time::{Span, Time};

/// Sources at a time. With all places taken, one that comes takes the place of one that is not proven, or was silent for longer
/// than it had been heard and at least for `ROOM_AFTER`. The address that has most of these loses one, so that a flood from one address
/// displaces itself. Chance picks among that address's own, the last `FRESH` of them excepted: in turn, none would still be there
/// when its second packet comes. Of the other places no address has more than it leaves to all.
const MAX_SOURCES: usize = 64;
const ROOM_AFTER: Span = Span::from_secs(1);
const FRESH: f64 = 0.25;

impl Receiver {
    /// True if a source gives up its place to another one.
    fn leaves(source: &Source, now: Time) -> bool {
        let keeps = (source.last_heard - source.received.first).max(ROOM_AFTER);
        !source.known || source.last_heard + keeps <= now
    }

    /// True if one more source of that address may stay.
    pub(super) fn may_stay(&self, now: Time, peer: SocketAddr) -> bool {
        let own = source_prefix(peer.ip());
        let stay = self.sources.iter().filter(|source| !Receiver::leaves(source, now));
        let held = stay.clone().filter(|source| source_prefix(source.peer.ip()) == own).count();
        fair(MAX_SOURCES, stay.count(), held, 1)
    }

    /// True if one more source may come from there; another may have to leave for it.
    pub(super) fn has_room(&mut self, now: Time, peer: SocketAddr) -> bool {
        let room = self.may_stay(now, peer);
        if room && self.sources.len() >= MAX_SOURCES {
            self.displace(now, peer);
        }
        room
    }

    /// Takes a place for a source that comes from there.
    fn displace(&mut self, now: Time, peer: SocketAddr) {
        let prefix = |place: usize| source_prefix(self.sources[place].peer.ip());
        let leaves = |place: &usize| Receiver::leaves(&self.sources[*place], now);
        let mut places: Vec<usize> = (0..self.sources.len()).filter(leaves).collect();
        places.sort_by_key(|place| self.sources[*place].last_heard);
        let mut held = BTreeMap::from([(source_prefix(peer.ip()), 1)]);
        places.iter().for_each(|place| *held.entry(prefix(*place)).or_default() += 1);
        // Of as many, that of the oldest.
        let Some(most) = places.iter().rev().map(|place| prefix(*place)).max_by_key(|one| held[one]) else {
            return;
        };
        places.retain(|place| prefix(*place) == most);
        let old = libm::ceil(places.len() as f64 * (1.0 - FRESH)) as u32;
        let place = places[(self.random.next_u32() % old) as usize];
        let source = &self.sources[place];
        let (peer, ssrc, packets) = (source.peer, source.ssrc, source.received.packets);
        if !source.known && now < source.last_heard + ROOM_AFTER {
            self.turn_away(peer, ssrc, packets);
        }
        self.leave(now, place, Left::Displaced);
    }

    /// There is no room for a source, so many packets of which came.
    pub(super) fn turn_away(&mut self, peer: SocketAddr, ssrc: u32, packets: u64) {
        let before = self.turned_away.map_or(0, |(.., packets)| packets);
        self.turned_away = Some((peer, ssrc, before + packets));
    }

    /// Tells of packets that found no room since the last notice, if it is time.
    pub(super) fn tell(&mut self, now: Time) {
        if let Some((peer, ssrc, packets)) = self.turned_away.take_if(|_| now >= self.next_tell) {
            self.out.push_back(Output::Event(Decision::SourceTurnedAway { peer, ssrc, packets }));
            self.next_tell = now + TELL;
        }
    }
}
