//! [`Single`]: a discipline that is one [`Law`] over one queue, first in, first out.

use std::collections::VecDeque;

use lastmile::node::Ecn;

use super::{Ahead, Fate, Queue};
use crate::network::lost::LossCause;
use crate::network::packets::Parcel;

/// Fate of a packet that enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept,
    /// Marked Congestion Experienced; only for packets that can be.
    Mark,
    Drop,
}

impl Verdict {
    /// The signal of congestion: a mark for those who understand it, where the queue may mark at all.
    pub(super) fn signal(ecn_enabled: bool, ecn: Ecn) -> Verdict {
        if ecn_enabled && ecn.is_capable() { Verdict::Mark } else { Verdict::Drop }
    }
}

/// A waiting packet.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// When it came.
    pub(crate) since: u64,
    pub(crate) wire: u32,
    pub(crate) ecn: Ecn,
    pub(crate) parcel: Parcel,
}

/// A queue that counts its bytes.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    packets: VecDeque<Waiting>,
    bytes: u64,
}

impl Fifo {
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.packets.iter()
    }
    pub(crate) fn push(&mut self, packet: Waiting) {
        self.bytes += u64::from(packet.wire);
        self.packets.push_back(packet);
    }
    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.wire);
        Some(packet)
    }
}

/// Decisions of a discipline about the packets of one queue.
pub(crate) trait Law {
    /// Judges a packet that enters.
    fn enqueue(&mut self, _now: u64, _ahead: Ahead, _packet: &Waiting) -> Verdict {
        Verdict::Accept
    }

    /// The next packet to send.
    fn dequeue(&mut self, _now: u64, queue: &mut Fifo, _fate: &mut impl Fate) -> Option<Waiting> {
        queue.pop()
    }

    /// The transmitter found the queue empty.
    fn idle(&mut self, _now: u64) {}
}

/// One queue under one law.
#[derive(Debug)]
pub(crate) struct Single<L> {
    fifo: Fifo,
    law: L,
}

impl<L: Law> Single<L> {
    pub(crate) fn new(law: L) -> Single<L> {
        Single { fifo: Fifo::default(), law }
    }
}

impl<L: Law> Queue for Single<L> {
    fn enqueue(&mut self, now: u64, ahead: Ahead, mut packet: Waiting, fate: &mut impl Fate) -> bool {
        match self.law.enqueue(now, ahead, &packet) {
            Verdict::Drop => {
                fate.drop(packet, LossCause::Early);
                return false;
            }
            _ if ahead.full => {
                fate.drop(packet, LossCause::Queue);
                return false;
            }
            Verdict::Mark => fate.mark(&mut packet),
            Verdict::Accept => {}
        }
        self.fifo.push(packet);
        true
    }

    fn dequeue(&mut self, now: u64, fate: &mut impl Fate) -> Option<Waiting> {
        self.law.dequeue(now, &mut self.fifo, fate)
    }

    fn idle(&mut self, now: u64) {
        self.law.idle(now);
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn iter(&self) -> Box<dyn Iterator<Item = &Waiting> + '_> {
        Box::new(self.fifo.iter())
    }
}
