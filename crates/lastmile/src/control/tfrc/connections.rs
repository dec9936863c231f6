//! The loss histories of several connections over one stream of packets (MULTFRC): packets are dealt to them in turn, by their
//! numbers, and each connection numbers its own. TFRC itself is one connection.

use super::equation::Equation;
use super::history::{LossHistory, Now, Run};

/// Deals that are remembered. News of packets of older deals comes too late to matter.
const DEALS: usize = 8;

/// The rule by which packets are dealt, from one of them on.
#[derive(Clone, Copy, Debug)]
struct Deal {
    /// The first packet.
    id: u64,
    /// The number that it has in its connection: all of them have come to the same one.
    number: u64,
    /// Connections.
    among: u64,
}

/// The histories, and which packets are whose.
#[derive(Debug)]
pub(super) struct Connections {
    histories: Vec<LossHistory>,
    /// Oldest first; there is always one.
    deals: [Deal; DEALS],
    known: usize,
}

impl Clone for Connections {
    /// With the same room: that of a derived clone would be for as many connections as there are.
    fn clone(&self) -> Connections {
        let mut histories = Vec::with_capacity(self.histories.capacity());
        histories.extend_from_slice(&self.histories);
        Connections { histories, ..*self }
    }
}

impl Connections {
    /// One connection, with room for up to `most`.
    pub(super) fn new(history: LossHistory, most: usize) -> Connections {
        let mut histories = Vec::with_capacity(most.max(1));
        histories.push(history);
        Connections { histories, deals: [Deal { id: 0, number: 0, among: 1 }; DEALS], known: 1 }
    }

    /// Number of connections.
    pub(super) fn count(&self) -> usize {
        self.histories.len()
    }

    /// So many connections from the packet `next` on, or a few later: none of the old ones is to lack a packet. A new connection
    /// goes on from the last one's history, since the path is the same; a closed one's is forgotten.
    pub(super) fn set(&mut self, count: usize, next: u64) {
        let count = count.clamp(1, self.histories.capacity());
        let last = self.deals[self.known - 1];
        if count == self.histories.len() {
            return;
        }
        let rounds = next.saturating_sub(last.id).div_ceil(last.among);
        let id = last.id.saturating_add(rounds.saturating_mul(last.among));
        if id == last.id {
            self.known -= 1;
        } else if self.known == DEALS {
            self.deals.rotate_left(1);
            self.known -= 1;
        }
        self.deals[self.known] = Deal { id, number: last.number.saturating_add(rounds), among: count as u64 };
        self.known += 1;
        let heir = self.histories[self.histories.len() - 1].heir();
        self.histories.resize(count, heir);
    }

    /// The connection that a packet belongs to, and its number there.
    fn place(&self, id: u64) -> Option<(usize, u64)> {
        let deal = self.deals[..self.known].iter().rev().find(|deal| deal.id <= id)?;
        let passed = id - deal.id;
        let connection = (passed % deal.among) as usize;
        (connection < self.count()).then_some((connection, deal.number.saturating_add(passed / deal.among)))
    }

    /// The packet that has that number in its connection.
    fn id(&self, connection: usize, number: u64) -> u64 {
        let deals = &self.deals[..self.known];
        let deal = deals.iter().rev().find(|deal| deal.number <= number).unwrap_or(&deals[0]);
        let passed = number.saturating_sub(deal.number).saturating_mul(deal.among);
        deal.id.saturating_add(passed).saturating_add(connection as u64)
    }

    /// A packet arrived, `marked` by congestion or not. If a loss event began with it, the packet that began it and the loss
    /// event rate of its connection.
    pub(super) fn arrived(&mut self, id: u64, time: u64, marked: bool, now: Now<'_>) -> Option<(u64, f64)> {
        let (connection, number) = self.place(id)?;
        let event = self.histories[connection].arrived(number, time, marked, now)?;
        Some((self.id(connection, event), self.histories[connection].loss_event_rate()))
    }

    /// A packet that was sent at that time was lost; the same of it.
    pub(super) fn lost(&mut self, id: u64, time: u64, now: Now<'_>) -> Option<(u64, f64)> {
        let (connection, first) = self.place(id)?;
        let event = self.histories[connection].lost(Run { first, len: 1, times: (time, time) }, now)?;
        Some((self.id(connection, event), self.histories[connection].loss_event_rate()))
    }

    /// A packet that was said to be lost arrived after all.
    pub(super) fn fill(&mut self, id: u64) {
        if let Some((connection, number)) = self.place(id) {
            self.histories[connection].fill(number);
        }
    }

    /// Forgets all losses.
    pub(super) fn forget(&mut self, history: &LossHistory) {
        self.histories.iter_mut().for_each(|old| old.clone_from(history));
    }

    /// p, and the rate of all connections together in units of the equation's rate at p. p is the mean of the connections that had
    /// a loss event, zero before the first, and the others have the mean rate of these. The equation is not a straight line: the
    /// second number is not quite that of the connections.
    pub(super) fn together(&self, equation: &Equation) -> (f64, f64) {
        let count = self.count() as f64;
        if let [one] = &self.histories[..] {
            return (one.loss_event_rate(), count);
        }
        let rates = self.histories.iter().map(LossHistory::loss_event_rate).filter(|p| *p > 0.0);
        let add = |(lossy, p, rate): (f64, f64, f64), one| {
            (lossy + 1.0, p + one, rate + equation.bytes_per_second(one))
        };
        let (lossy, p, rate) = rates.fold((0.0, 0.0, 0.0), add);
        if lossy == 0.0 {
            return (0.0, count);
        }
        let p = p / lossy;
        (p, rate / lossy / equation.bytes_per_second(p) * count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const NOW: Now<'_> = Now { rtt: Span::from_millis(100), first: &|| 50.0, round: None };

    fn connections(most: usize) -> Connections {
        Connections::new(LossHistory::new(3, 1.0), most)
    }

    /// Packets at 10 ms each, those named missing; the numbers that began loss events.
    fn events(c: &mut Connections, ids: core::ops::Range<u64>, missing: &[u64]) -> Vec<u64> {
        let step = |id: u64| match missing.contains(&id) {
            true => c.lost(id, 10 * id * MS, NOW),
            false => c.arrived(id, 10 * id * MS, false, NOW),
        };
        ids.filter_map(step).map(|(id, _)| id).collect()
    }

    /// One connection has packets 0 to 4. Two begin at 5; three are asked for from 8 on, and begin at 9, once both have two more.
    #[test]
    fn packets_are_dealt_in_turn() {
        let mut c = connections(3);
        c.set(2, 5);
        c.set(3, 8);
        let places: Vec<_> = (3..13).map(|id| c.place(id).unwrap()).collect();
        assert_eq!(places, [(0, 3), (0, 4), (0, 5), (1, 5), (0, 6), (1, 6), (0, 7), (1, 7), (2, 7), (0, 8)]);
        assert_eq!(c.place(7), Some((0, 6)));
        // Nothing was sent in between: only the last wish counts. The third connection's packets are nobody's.
        c.set(1, 12);
        c.set(2, 12);
        assert_eq!((c.known, c.place(11), c.place(12), c.place(13)), (4, None, Some((0, 8)), Some((1, 8))));
        // No more than there is room for.
        c.set(9, 20);
        assert_eq!(c.count(), 3);
    }

    /// A loss every 20 packets is one every 10 packets of the first of two connections, and none of the second.
    #[test]
    fn each_connection_counts_its_own_packets() {
        let mut c = connections(2);
        c.set(2, 0);
        let missing: Vec<u64> = (1..60).map(|k| 20 * k).collect();
        assert_eq!(events(&mut c, 0..1_200, &missing), missing);
        let rates: Vec<f64> = c.histories.iter().map(LossHistory::loss_event_rate).collect();
        assert!((rates[0] - 0.1).abs() < 1e-12 && rates[1] == 0.0, "{rates:?}");
        // The second has the rate of the first until it knows better.
        let (p, times) = c.together(&Equation::rfc(1000.0, 0.1));
        assert!((p - 0.1).abs() < 1e-12 && (times - 2.0).abs() < 1e-12, "{p}, {times}");
    }

    /// p of 1/10 and 1/20: their mean is 0.075, and f(0.1) = 0.5649392, f(0.05) = 0.2713052, f(0.075) = 0.4017096 (section 8.1).
    #[test]
    fn rates_are_added_up() {
        let mut c = connections(2);
        c.set(2, 0);
        let missing: Vec<u64> = (1..60).flat_map(|k| [40 * k, 40 * k + 20, 40 * k + 1]).collect();
        events(&mut c, 0..2_400, &missing);
        let (p, times) = c.together(&Equation::rfc(1000.0, 0.1));
        let wanted = 0.401_709_6 * (1.0 / 0.564_939_2 + 1.0 / 0.271_305_2);
        assert!((p - 0.075).abs() < 1e-12 && (times / wanted - 1.0).abs() < 1e-6, "{p}, {times}");
    }

    /// It has the last one's intervals, and no share in losses that wait to be confirmed.
    #[test]
    fn a_new_connection_goes_on_from_the_last_ones_history() {
        let mut c = connections(2);
        let missing: Vec<u64> = (1..20).map(|k| 25 * k).collect();
        events(&mut c, 0..500, &missing);
        assert_eq!(c.lost(500, 5_000 * MS, NOW), None);
        c.set(2, 501);
        assert_eq!(c.histories[1].loss_event_rate(), c.histories[0].loss_event_rate());
        // Packet 501 is the first one's, 502 the second's: three later ones of its own confirm a loss.
        assert_eq!(events(&mut c, 501..520, &[]), [500]);
    }

    proptest! {
        #[test]
        fn places_are_those_of_their_packets(
            changes in prop::collection::vec((1..9_usize, 0..50_u64), 0..7),
            ids in prop::collection::vec(prop_oneof![0..500_u64, any::<u64>()], 1..50),
        ) {
            let mut c = connections(8);
            let mut next = 0;
            for (count, later) in changes {
                next += later;
                c.set(count, next);
            }
            for id in ids {
                if let Some((connection, number)) = c.place(id) {
                    prop_assert!(connection < c.count());
                    prop_assert_eq!(c.id(connection, number), id);
                }
            }
        }
    }
}
