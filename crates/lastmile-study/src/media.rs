//! Packets of streams, seen as they leave their senders and reach their receivers: noted while a run goes.

use std::collections::HashMap;

use lastmile::endpoint::stream::{PADDING, RETRANSMITTED};
use lastmile::node::Datagram;
use lastmile::time::Time;
use lastmile::units::Bytes;
use lastmile::wire::{RtpHeader, RtpPacket, is_rtcp, original};
use lastmile_sim::network::engine::NodeId;
use lastmile_sim::network::meter::udp_payload;
use lastmile_sim::scenario::{Scenario, Simulation};

/// A stream's packets under way.
struct Way<T> {
    stream: T,
    sender: NodeId,
    receiver: NodeId,
    /// When each left, by its source and number: those of the last 65,536.
    left: HashMap<(u32, u16), Time>,
}

/// A packet that leaves its sender, or reaches its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Time,
    /// When it left, of one that reaches its receiver for the first time.
    pub(crate) left: Option<Time>,
    pub(crate) header: RtpHeader,
    /// Bytes of its IP packet.
    pub(crate) size: Bytes,
    /// The number of the packet that it repeats, of one that was sent again.
    pub(crate) repeats: Option<u16>,
}

impl Seen {
    /// True of one that carries nothing.
    pub(crate) fn is_padding(&self) -> bool {
        self.header.payload_type == PADDING
    }
}

/// Has `tell` told of every RTP packet that leaves or arrives, of the streams that `wanted` gives something for by their names.
pub(crate) fn watch<T: Send + 'static>(
    scenario: &Scenario,
    simulation: &mut Simulation,
    mut wanted: impl FnMut(&str) -> Option<T>,
    mut tell: impl FnMut(&mut T, &Seen) + Send + 'static,
) {
    let mut ways: HashMap<u32, Way<T>> = HashMap::new();
    for talk in scenario.conversations() {
        let Some(stream) = talk.name.as_deref().and_then(&mut wanted) else { continue };
        let Some((flow, _)) = simulation.conversation(&talk) else { continue };
        let (sender, receiver) = (simulation.hosts[talk.from.0], simulation.hosts[talk.to.0]);
        ways.insert(flow.0, Way { stream, sender, receiver, left: HashMap::new() });
    }
    if ways.is_empty() {
        return;
    }
    simulation.engine.set_tap(Box::new(move |at, from, to, datagram| {
        let Some(way) = ways.get_mut(&datagram.flow.0) else { return };
        if from != way.sender && to != way.receiver {
            return;
        }
        let Some((header, repeats)) = header(datagram) else { return };
        let (packet, size) = ((header.ssrc, header.sequence), datagram.ip_size());
        if from == way.sender {
            way.left.insert(packet, at);
            tell(&mut way.stream, &Seen { at, left: None, header, size, repeats });
        }
        if to == way.receiver
            && let Some(left) = way.left.remove(&packet)
        {
            tell(&mut way.stream, &Seen { at, left: Some(left), header, size, repeats });
        }
    }));
}

/// The header of a packet of a stream, and the number of the one that it repeats.
pub(crate) fn header(datagram: &Datagram) -> Option<(RtpHeader, Option<u16>)> {
    let rtp = udp_payload(&datagram.payload).filter(|bytes| !is_rtcp(bytes))?;
    let packet = RtpPacket::parse(rtp).ok()?;
    let repeats = (packet.header.payload_type == RETRANSMITTED).then(|| original(&packet)).flatten();
    Some((packet.header, repeats.map(|(number, _)| number)))
}
