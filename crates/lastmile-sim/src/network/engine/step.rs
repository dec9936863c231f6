//! A moment of the engine: it polls nodes until they wait, and hands on their packets.

use lastmile::endpoint::Decided;
use lastmile::node::{Input, Output, PortId, Transmit};
use lastmile::time::Time;

use super::{Engine, Hop, NodeId};
use crate::network::element::Element;
use crate::network::event_queue::Key;
use crate::network::link::Next;
use crate::network::packets::Parcel;

/// Zero-delay hops that are followed on the stack before a packet is put aside.
const MAX_DEPTH: u32 = 32;

impl Engine {
    /// Brings the next valid wake to the top of the queue.
    #[inline]
    pub(super) fn settle(&mut self) -> Option<Key> {
        loop {
            let key = self.queue.peek()?;
            let slot = &mut self.slots[key.node()];
            if slot.wanted == key {
                return Some(key);
            }
            self.queue.pop();
            if slot.queued == key {
                slot.queued = slot.wanted;
                if slot.wanted != Key::NONE {
                    self.queue.push(slot.wanted);
                }
            }
        }
    }

    #[inline]
    pub(super) fn want(&mut self, node: usize, wake: Option<Time>) {
        let slot = &mut self.slots[node];
        let Some(at) = wake else {
            slot.wanted = Key::NONE;
            return;
        };
        let at = at.max(self.now);
        if slot.wanted != Key::NONE && slot.wanted.at() == at {
            return;
        }
        self.seq += 1;
        slot.wanted = Key::new(at, self.seq, node);
        if slot.wanted < slot.queued {
            slot.queued = slot.wanted;
            self.queue.push(slot.wanted);
        }
    }

    /// Polls a node until it waits, and hands on its packets.
    pub(super) fn drain(&mut self, node: usize, depth: u32) {
        // Each output is taken apart at once: as a whole it would be copied by a call of `memcpy`.
        macro_rules! carry {
            ($output:expr, $event:ident => $decide:expr) => {
                match $output {
                    Output::Transmit(Transmit { port, datagram, .. }) => {
                        let parcel = self.packets.insert(datagram);
                        self.hand_on(node, port, parcel, depth);
                    }
                    Output::Event($event) => $decide,
                    Output::Wait(wake) => {
                        self.want(node, wake);
                        return;
                    }
                }
            };
        }
        loop {
            self.at_once += 1;
            if self.is_stuck() {
                return;
            }
            match &mut self.slots[node].element {
                Element::Link(link) => match link.next(&mut self.packets, self.now.as_nanos()) {
                    Next::Packet(parcel) => {
                        self.hand_on(node, PortId(0), parcel, depth);
                    }
                    Next::Wait(until) => {
                        self.want(node, (until != u64::MAX).then(|| Time::from_nanos(until)));
                        return;
                    }
                },
                Element::TcpSender(sender) => carry!(sender.poll(self.now), never => match never {}),
                Element::TcpReceiver(receiver) => carry!(receiver.poll(self.now), never => match never {}),
                Element::Source(source) => carry!(source.poll(self.now), never => match never {}),
                element => carry!(element.poll(self.now), decided => self.record(node, decided)),
            }
        }
    }

    /// Hands on a node's packet.
    #[inline]
    fn hand_on(&mut self, node: usize, port: PortId, parcel: Parcel, depth: u32) {
        let Some(next) = self.next_hop(node, port, parcel.flow) else {
            self.unroutable += 1;
            self.packets.remove(parcel);
            return;
        };
        for tap in &mut self.taps.packets {
            tap(self.now, NodeId(node as u32), NodeId(next.node() as u32), self.packets.get(&parcel));
        }
        if depth >= MAX_DEPTH || self.is_stuck() {
            self.aside.push_back((next, parcel));
        } else {
            self.hand_over(next, parcel, depth + 1);
        }
    }

    /// Gives a packet to a node, and polls the node.
    #[inline]
    pub(super) fn hand_over(&mut self, hop: Hop, parcel: Parcel, depth: u32) {
        let node = hop.node();
        let slot = &mut self.slots[node];
        match &mut slot.element {
            Element::Link(link) => {
                let changed = link.offer(&mut self.packets, self.now.as_nanos(), parcel);
                // A second poll would give the same output again.
                if !changed && slot.wanted != Key::NONE {
                    self.at_once += 1;
                    return;
                }
            }
            Element::Sink(sink) => {
                sink.receive(self.now, self.packets.get(&parcel));
                self.packets.remove(parcel);
                self.at_once += 1;
                slot.wanted = Key::NONE;
                return;
            }
            Element::TcpSender(sender) => {
                sender.receive(self.now, self.packets.get(&parcel));
                self.packets.remove(parcel);
            }
            Element::TcpReceiver(receiver) => {
                receiver.receive(self.now, self.packets.get(&parcel));
                self.packets.remove(parcel);
            }
            element => {
                let datagram = self.packets.take(parcel);
                element.handle(self.now, Input::Datagram { port: hop.port(), at: self.now, datagram });
            }
        }
        self.drain(node, depth);
    }

    fn record(&mut self, node: usize, decided: Decided) {
        let at = match &self.slots[node].element {
            Element::Host(host) => host.clock().read(self.now),
            _ => self.now,
        };
        let event = decided.event(at, node as u32);
        self.taps.decisions.iter_mut().for_each(|tap| tap(self.now, &event));
        self.events.push((self.now, event));
    }
}
