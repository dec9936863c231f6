//! What decides which packets a queue drops or marks before it is full, and the shaper behind it: one algorithm
//! per file.
//!
//! A discipline is asked when a packet enters ([`Red`], [`TcRed`]) or when the transmitter fetches one
//! ([`CoDel`], [`Step`]). Plain drop-tail is none of these and costs nothing.

use std::collections::VecDeque;

use lastmile::node::Ecn;
use serde::Deserialize;

use super::link::{LinkConfig, LinkConfigError, QueueLimit};
use crate::network::packets::Parcel;
use crate::rng::Stream;

mod codel;
mod red;
mod shaper;
mod step;
mod tc_red;

pub use codel::CoDel;
pub use red::Red;
pub(super) use shaper::Bucket;
pub use shaper::Shaper;
pub use step::{Step, StepThreshold};
pub use tc_red::TcRed;

/// Which packets a queue drops or marks before it is full.
///
/// ```
/// use lastmile_sim::network::queue::*;
/// # #[derive(serde::Deserialize)] struct Link { discipline: Discipline }
/// let file = r#"discipline = { kind = "codel", target = "5 ms", ecn = true }"#;
/// let link: Link = toml::from_str(file).unwrap();
/// assert_eq!(link.discipline, Discipline::Codel(CoDel { ecn: true, ..CoDel::default() }));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Discipline {
    /// None: what finds no room is dropped.
    #[default]
    #[serde(deserialize_with = "no_keys")]
    DropTail,
    /// Random Early Detection as Floyd and Jacobson wrote it, with ns-2's options.
    Red(Red),
    /// Random Early Detection as Linux does it, with the parameters of `tc`.
    TcRed(TcRed),
    /// Controlled Delay (RFC 8289).
    Codel(CoDel),
    /// A step: everything beyond a threshold is marked (L4S).
    Step(Step),
}

/// Of a variant without fields serde would ignore all keys, known or not.
fn no_keys<'de, D: serde::Deserializer<'de>>(found: D) -> Result<(), D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    Nothing::deserialize(found).map(|Nothing {}| ())
}

impl Discipline {
    /// The limit that the discipline brings along.
    pub(crate) fn limit(&self) -> Option<QueueLimit> {
        match self {
            Discipline::TcRed(red) => Some(QueueLimit::Bytes(red.limit)),
            _ => None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), LinkConfigError> {
        match self {
            Discipline::DropTail => Ok(()),
            Discipline::Red(red) => red.check(),
            Discipline::TcRed(red) => red.check(),
            Discipline::Codel(codel) => codel.check(),
            Discipline::Step(step) => step.check(),
        }
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept,
    /// Marked Congestion Experienced; only for packets that can be.
    Mark,
    Drop,
}

impl Verdict {
    /// The signal of congestion: a mark for those who understand it, where the queue may mark at all.
    fn signal(ecn_enabled: bool, ecn: Ecn) -> Verdict {
        if ecn_enabled && ecn.is_capable() { Verdict::Mark } else { Verdict::Drop }
    }
}

/// What waits.
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
    pub(crate) fn front(&self) -> Option<&Waiting> {
        self.packets.front()
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

/// A discipline at work.
#[derive(Debug)]
pub(crate) enum DisciplineState {
    DropTail,
    Red(red::State),
    TcRed(tc_red::State),
    Codel(codel::State),
    Step(Step),
}

impl DisciplineState {
    pub(crate) fn new(config: &Discipline, link: &LinkConfig, seed: u64, name: &str) -> DisciplineState {
        let random = || Stream::new(seed, &format!("{name}/queue"));
        match config {
            Discipline::DropTail => DisciplineState::DropTail,
            Discipline::Red(red) => DisciplineState::Red(red::State::new(red, link, random())),
            Discipline::TcRed(red) => DisciplineState::TcRed(tc_red::State::new(red, link, random())),
            Discipline::Codel(codel) => DisciplineState::Codel(codel::State::new(codel)),
            Discipline::Step(step) => DisciplineState::Step(step.clone()),
        }
    }

    /// Judges a packet that enters, behind so many packets and bytes; `full` where there is no room for it.
    pub(crate) fn enqueue(
        &mut self,
        now: u64,
        packets: u32,
        bytes: u64,
        wire: u32,
        ecn: Ecn,
        full: bool,
    ) -> Verdict {
        match self {
            DisciplineState::Red(red) => red.enqueue(now, packets, bytes, wire, ecn, full),
            DisciplineState::TcRed(red) => red.enqueue(now, bytes, ecn),
            DisciplineState::DropTail | DisciplineState::Codel(_) | DisciplineState::Step(_) => {
                Verdict::Accept
            }
        }
    }

    /// The next packet to send and whether to mark it. Those before it are given to `drop`.
    pub(crate) fn dequeue(
        &mut self,
        now: u64,
        queue: &mut Fifo,
        drop: impl FnMut(Waiting),
    ) -> Option<(Waiting, Verdict)> {
        match self {
            DisciplineState::Codel(codel) => codel.dequeue(now, queue, drop),
            DisciplineState::Step(step) => {
                let packet = queue.pop()?;
                let verdict = step.judge(now, &packet, queue);
                Some((packet, verdict))
            }
            _ => queue.pop().map(|packet| (packet, Verdict::Accept)),
        }
    }

    /// The transmitter found the queue empty.
    pub(crate) fn idle(&mut self, now: u64) {
        match self {
            DisciplineState::Red(red) => red.idle(now),
            DisciplineState::TcRed(red) => red.idle(now),
            _ => {}
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::network::packets::Packets;
    use lastmile::node::{Datagram, Model, Payload};

    pub(crate) fn waiting(since: u64, wire: u32, ecn: Ecn) -> Waiting {
        let any = "10.0.0.1:1".parse().unwrap();
        let payload = Payload::Model(Model { ip_size: wire, words: [0; 4] });
        let datagram = Datagram { payload, ecn, ..Datagram::udp(any, any, vec![]) };
        Waiting { since, wire, ecn, parcel: Packets::default().insert(datagram) }
    }
}
