//! Delays of streams' packets, from host to host: noted while a run goes.

use std::collections::HashMap;

use lastmile::node::Datagram;
use lastmile::time::Time;
use lastmile::wire::{RtpPacket, is_rtcp};
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

/// Has `tell` told of every packet of media that arrives, of the streams that `wanted` gives something for by their names: that,
/// when it left its sender, and when it reached its receiver.
pub(crate) fn watch<T: Send + 'static>(
    scenario: &Scenario,
    simulation: &mut Simulation,
    mut wanted: impl FnMut(&str) -> Option<T>,
    mut tell: impl FnMut(&T, Time, Time) + Send + 'static,
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
    simulation.engine.set_tap(Box::new(move |now, from, to, datagram| {
        let Some(way) = ways.get_mut(&datagram.flow.0) else { return };
        if from != way.sender && to != way.receiver {
            return;
        }
        let Some(packet) = media(datagram) else { return };
        if from == way.sender {
            way.left.insert(packet, now);
        }
        if to == way.receiver
            && let Some(left) = way.left.remove(&packet)
        {
            tell(&way.stream, left, now);
        }
    }));
}

/// Source and number of a packet of media.
fn media(datagram: &Datagram) -> Option<(u32, u16)> {
    let rtp = udp_payload(&datagram.payload).filter(|bytes| !is_rtcp(bytes))?;
    let header = RtpPacket::parse(rtp).ok()?.header;
    Some((header.ssrc, header.sequence))
}
