//! Packets that entered the lab, noted for [`due`](super::due), and the time that each may have waited before it was read.

use std::net::IpAddr;

use lastmile::node::Datagram;
use lastmile::time::{Span, Time};
use lastmile_sim::network::engine::NodeId;
use lastmile_sim::network::meter::udp_payload;
use lastmile_sim::roles;

/// Packets whose entry is noted, and probes whose exit is: some 60 MB.
pub(super) const MAX_NOTED: usize = 250_000;

/// A packet of one of our streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Probe {
    /// Source address.
    pub(super) from: IpAddr,
    /// Destination address: two sessions of one host number their streams alike.
    pub(super) to: IpAddr,
    /// Its stream.
    pub(super) stream: u32,
    /// Its place in the stream.
    pub(super) index: u16,
}

impl Probe {
    pub(super) fn of(datagram: &Datagram) -> Option<Probe> {
        let (stream, index) = udp_payload(&datagram.payload).and_then(roles::probe)?;
        Some(Probe { from: datagram.from.ip(), to: datagram.to.ip(), stream, index })
    }
}

/// A packet that entered the lab.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The engine's node of the host that sent it.
    pub(super) node: NodeId,
    /// Its addresses, marks and size, without its bytes.
    pub(super) header: Datagram,
    /// When it entered.
    pub(super) at: Time,
    /// Longest time that it may have waited before.
    pub(super) waited: Span,
    /// Its place, if it belongs to a stream.
    pub(super) probe: Option<Probe>,
}

/// Since when packets may have waited at a device, in nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unseen(u64);

impl Unseen {
    /// The device was empty then.
    pub(super) fn empty(&mut self, at: u64) {
        self.0 = self.0.max(at);
    }

    /// Longest wait, in nanoseconds, of a packet that was read then.
    pub(super) fn waited(self, at: u64) -> u64 {
        at.saturating_sub(self.0)
    }

    /// A packet was taken in, which took so long: the packets behind it in a burst are not late by that.
    pub(super) fn took(&mut self, ns: u64) {
        self.0 += ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_not_late_by_its_own_length() {
        let mut unseen = Unseen::default();
        unseen.empty(100_000);
        // Seen 5 us later; each packet takes 1 us to read and 2 us to take in, which is 120 us for forty.
        let mut now = 105_000;
        let mut read = |unseen: &mut Unseen| {
            let waited = unseen.waited(now + 1_000);
            unseen.took(3_000);
            now += 3_000;
            waited
        };
        assert!((0..40).all(|_| read(&mut unseen) == 6_000));
        // Other work of the pump before it reads on is lateness: here 50 us.
        unseen.0 -= 50_000;
        assert_eq!(read(&mut unseen), 56_000);
        // A device that was empty is not so again in the past.
        unseen.empty(0);
        assert_eq!(read(&mut unseen), 56_000);
    }
}
