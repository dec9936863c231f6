//! FlowQueue-CoDel: RFC 8290. Flows are hashed into queues, which take turns by bytes (deficit round robin), those that
//! have just become busy first; each queue is [`Codel`]'s.
//!
//! The hash is not Linux's Jenkins: any that spreads, salted by the link's own random numbers, gives the same odds of two
//! flows in one queue (section 5.3). Of a foreign program's packets it sees the addresses and not the ports.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use lastmile::node::Datagram;
use lastmile::rng::Stream;
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};

use super::QueueLimit;
use super::{Ahead, Codel, Fate, Fifo, Law, Parameters, Queue, Waiting, codel};
use crate::network::config_error::ConfigError;
use crate::network::lost::LossCause;

lastmile::options! {
    /// Parameters of FQ-CoDel (section 5.2).
    pub struct FqCodel {
        /// Of all queues together; takes the place of the link's `queue`
        limit: QueueLimit = QueueLimit::Packets(10_240), "section 5.2";
        /// Queues
        flows: u32 [1..=MAX_FLOWS] = 1024, "section 5.2";
        /// Bytes that a queue sends before the next has its turn: a packet of the MTU with its framing
        ///
        /// A turn that sends next to nothing would take a round of all queues for a packet.
        quantum: Bytes [Bytes(256)..=Bytes(1_000_000_000)] = Bytes(1514), "section 5.2";
        /// Each queue's `target`, as of `codel`
        target: Span = Codel::default().target, "section 5.2";
        /// Each queue's `interval`, as of `codel`
        interval: Span = Codel::default().interval, "section 5.2";
        /// Each queue's `mtu`, as of `codel`
        mtu: Bytes = Codel::default().mtu, "as of `codel`";
        /// Mark those packets that can be instead of dropping them
        ecn: bool = true, "section 5.2";
    }
}

impl FqCodel {
    fn codel(&self) -> Codel {
        Codel { target: self.target, interval: self.interval, mtu: self.mtu, ecn: self.ecn }
    }
}

/// The most queues.
const MAX_FLOWS: u32 = 65_536;

impl Parameters for FqCodel {
    type Queue = State;
    const KIND: &'static str = "fq-codel";
    const SOURCE: &'static str = "RFC 8290";

    fn queue(&self, _: Option<Rate>, mut random: Stream) -> State {
        let codel = self.codel();
        let flow =
            || FlowQueue { fifo: Fifo::default(), codel: codel::State::new(&codel), credits: 0, list: None };
        State {
            limit: self.limit,
            quantum: i64::try_from(self.quantum.0).unwrap_or(i64::MAX).max(1),
            salt: random.bits(),
            queues: (0..self.flows.clamp(1, MAX_FLOWS)).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.codel().check()
    }

    fn limit(&self) -> Option<QueueLimit> {
        Some(self.limit)
    }

    #[cfg(test)]
    fn lively(ecn: bool) -> FqCodel {
        let (limit, interval) = (QueueLimit::Packets(15), Span::from_millis(20));
        FqCodel { limit, flows: 4, interval, ecn, ..FqCodel::default() }
    }
}

/// The list in which a queue stands that is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    New,
    Old,
}

#[derive(Debug)]
struct FlowQueue {
    fifo: Fifo,
    codel: codel::State,
    credits: i64,
    list: Option<List>,
}

/// All queues.
#[derive(Debug)]
pub(crate) struct State {
    limit: QueueLimit,
    quantum: i64,
    salt: u64,
    queues: Vec<FlowQueue>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: usize,
    bytes: u64,
}

impl State {
    /// [section 4.1]: the queue of a packet, by its addresses and ports.
    fn classify(&self, datagram: &Datagram) -> usize {
        let mut hash = self.salt;
        for end in [datagram.from, datagram.to] {
            let address = match end.ip() {
                IpAddr::V4(v4) => u128::from(u32::from(v4)),
                IpAddr::V6(v6) => u128::from(v6),
            };
            for word in [address as u64, (address >> 64) as u64, u64::from(SocketAddr::port(&end))] {
                // The finaliser of MurmurHash3 over each word.
                hash = (hash ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
                hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
                hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
                hash ^= hash >> 33;
            }
        }
        (hash % self.queues.len() as u64) as usize
    }

    /// [section 4.1]: drops half of the longest queue, at most 64 packets, from its head.
    fn drop_from_longest(&mut self, fate: &mut impl Fate) {
        let Some(longest) = self.queues.iter_mut().max_by_key(|queue| queue.fifo.bytes()) else { return };
        for _ in 0..longest.fifo.len().div_ceil(2).min(64) {
            if let Some(packet) = longest.fifo.pop() {
                self.packets -= 1;
                self.bytes -= u64::from(packet.wire);
                fate.drop(packet, LossCause::Queue);
            }
        }
    }

    fn put(&mut self, number: usize, list: Option<List>) {
        self.queues[number].list = list;
        match list {
            Some(List::New) => self.new.push_back(number),
            Some(List::Old) => self.old.push_back(number),
            None => {}
        }
    }
}

impl Queue for State {
    fn enqueue(&mut self, _now: u64, ahead: Ahead, packet: Waiting, fate: &mut impl Fate) -> bool {
        let number = self.classify(fate.datagram(&packet));
        // A fetched packet that waits for tokens takes room too.
        let elsewhere = (ahead.packets - self.packets as u32, ahead.bytes - self.bytes);
        self.packets += 1;
        self.bytes += u64::from(packet.wire);
        let queue = &mut self.queues[number];
        queue.fifo.push(packet);
        if queue.list.is_none() {
            queue.credits = self.quantum;
            self.put(number, Some(List::New));
        }
        while ahead.full
            && self.packets > 0
            && self.limit.is_full(self.packets as u32 + elsewhere.0 - 1, self.bytes + elsewhere.1, 0)
        {
            self.drop_from_longest(fate);
        }
        true
    }

    /// [section 4.2].
    fn dequeue(&mut self, now: u64, fate: &mut impl Fate) -> Option<Waiting> {
        loop {
            let list = if self.new.is_empty() { List::Old } else { List::New };
            let active = if list == List::New { &mut self.new } else { &mut self.old };
            let number = *active.front()?;
            let queue = &mut self.queues[number];
            if queue.credits < 0 {
                queue.credits += self.quantum;
                active.pop_front();
                self.put(number, Some(List::Old));
                continue;
            }
            let before = (queue.fifo.len(), queue.fifo.bytes());
            let fetched = queue.codel.dequeue(now, &mut queue.fifo, fate);
            self.packets -= before.0 - queue.fifo.len();
            self.bytes -= before.1 - queue.fifo.bytes();
            if let Some(packet) = fetched {
                queue.credits -= i64::from(packet.wire);
                return Some(packet);
            }
            // An empty queue passes through the old ones before it leaves, or it could always be the next new one.
            active.pop_front();
            self.put(number, (list == List::New).then_some(List::Old));
        }
    }

    fn len(&self) -> usize {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn iter(&self) -> Box<dyn Iterator<Item = &Waiting> + '_> {
        Box::new(self.queues.iter().flat_map(|queue| queue.fifo.iter()))
    }

    fn memory(&self) -> u64 {
        size_of_val(self.queues.as_slice()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Noted;
    use super::*;
    use lastmile::node::Ecn;

    fn state(config: &FqCodel) -> State {
        config.queue(None, Stream::new(1, "fq"))
    }

    /// Ports of which no two share a queue.
    fn ports(state: &State, noted: &mut Noted, count: usize) -> Vec<u16> {
        let mut taken = std::collections::BTreeSet::new();
        let mut own = |&port: &u16| {
            let packet = noted.packet(port, 0, 100, Ecn::NotEct);
            taken.insert(state.classify(noted.datagram(&packet)))
        };
        (1..).filter(|port| own(port)).take(count).collect()
    }

    fn enqueue(state: &mut State, noted: &mut Noted, port: u16, wire: u32) {
        let ahead = Ahead { packets: state.len() as u32, bytes: state.bytes(), full: false };
        let full = state.limit.is_full(ahead.packets, ahead.bytes, wire);
        let packet = noted.packet(port, 0, wire, Ecn::NotEct);
        state.enqueue(0, Ahead { full, ..ahead }, packet, noted);
    }

    fn sent(state: &mut State, noted: &mut Noted, count: usize) -> Vec<u16> {
        let packets: Vec<_> = (0..count).map_while(|_| state.dequeue(1, noted)).collect();
        packets.iter().map(|packet| noted.port(packet)).collect()
    }

    #[test]
    fn queues_take_turns_by_bytes_and_new_ones_come_first() {
        let (mut fq, mut noted) = (state(&FqCodel::default()), Noted::default());
        let [large, small, late] = ports(&fq, &mut noted, 3)[..] else { panic!() };
        (0..4).for_each(|_| enqueue(&mut fq, &mut noted, large, 1514));
        (0..40).for_each(|_| enqueue(&mut fq, &mut noted, small, 757));
        // A queue goes on while its credits are not negative (4.2): two of 1514 from its first 1514, one from each
        // further quantum; three of 757, then two.
        let turns = sent(&mut fq, &mut noted, 8);
        assert_eq!(turns, [large, large, small, small, small, large, small, small]);
        // A queue that has just become busy is served at once, and once: it is then an old one.
        enqueue(&mut fq, &mut noted, late, 100);
        assert_eq!(sent(&mut fq, &mut noted, 3), [late, large, small]);
        enqueue(&mut fq, &mut noted, late, 100);
        let rest = sent(&mut fq, &mut noted, usize::MAX >> 1);
        assert_eq!((rest.len(), fq.len(), fq.bytes()), (35, 0, 0));
        assert!(sent(&mut fq, &mut noted, 1).is_empty());
        assert!(fq.queues.iter().all(|queue| queue.list.is_none()));
    }

    #[test]
    fn beyond_the_limit_half_of_the_longest_goes_from_its_head() {
        let config = FqCodel { limit: QueueLimit::Packets(10), ..FqCodel::default() };
        let (mut fq, mut noted) = (state(&config), Noted::default());
        let [long, short] = ports(&fq, &mut noted, 2)[..] else { panic!() };
        (0..8).for_each(|_| enqueue(&mut fq, &mut noted, long, 1000));
        (0..3).for_each(|_| enqueue(&mut fq, &mut noted, short, 100));
        assert_eq!((fq.len(), fq.bytes(), noted.dropped.len()), (7, 4_300, 4));
        assert!(
            noted
                .dropped
                .iter()
                .all(|(packet, cause)| { noted.port(packet) == long && *cause == LossCause::Queue })
        );
    }
}
