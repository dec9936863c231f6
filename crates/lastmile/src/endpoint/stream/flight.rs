//! Packets under control that left, and what is known of each: their fates, in the order of sending, as feedback brings them.

use std::collections::VecDeque;

use super::{MAX_AWAITED, nearest};
use crate::classify::LossClass;
use crate::control::{Fate, LossTruth, LostBy, Report, Sent};
use crate::node::Ecn;
use crate::time::{Rx, Time};
use crate::units::Bytes;

/// A packet is lost once so many later ones arrived.
const LATER: u64 = 3;

/// Knowledge of a packet that left.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    /// The driver has it, and has not told that it left.
    Planned,
    Nothing,
    /// Feedback told of it and later ones, and not that it came.
    Missing,
    /// Feedback has just said that it came.
    Came(Option<Time<Rx>>, Ecn),
    /// The same, of one that was thought to be lost.
    Late(Option<Time<Rx>>),
    /// The controller was told that it came, or that it was lost.
    Arrived,
    Lost,
}

/// The packets of one stream in flight: the sequence number of the first, and the numbers that the controller has for them.
#[derive(Debug, Default)]
struct Numbers {
    first: u64,
    ids: VecDeque<u64>,
}

impl Numbers {
    /// The controller's number of a packet.
    fn id(&self, low: u16) -> Option<u64> {
        let last = self.next().checked_sub(1)?;
        let place = nearest(last, low)?.checked_sub(self.first)?;
        self.ids.get(usize::try_from(place).ok()?).copied()
    }

    /// The sequence number of the next packet.
    fn next(&self) -> u64 {
        self.first + self.ids.len() as u64
    }

    /// The sequence number of a packet.
    fn sequence(&self, id: u64) -> Option<u64> {
        Some(self.first + self.ids.binary_search(&id).ok()? as u64)
    }
}

/// Packets in flight, of media and of what is sent again.
#[derive(Debug, Default)]
pub(super) struct Flight {
    /// By their sequence numbers.
    numbers: [Numbers; 2],
    /// The number of the first packet that is kept, and what is known of each from there on.
    first: u64,
    packets: VecDeque<(Sent, Known)>,
    /// Bytes of packets that the driver has, and of those that left, whose fate is not known: what a window limits.
    planned: Bytes,
    left: Bytes,
    /// The highest number that arrived.
    highest: Option<u64>,
}

impl Flight {
    /// A packet was given to the driver. Its number.
    pub(super) fn plan(&mut self, packet: Sent) -> u64 {
        let id = self.first + self.packets.len() as u64;
        self.packets.push_back((Sent { id, ..packet }, Known::Planned));
        self.planned += packet.size;
        if self.packets.len() > MAX_AWAITED {
            self.forget_first();
        }
        let numbers = &mut self.numbers[packet.stream as usize];
        numbers.ids.push_back(id);
        while numbers.ids.front().is_some_and(|id| *id < self.first) {
            numbers.ids.pop_front();
            numbers.first += 1;
        }
        id
    }

    /// A packet left at that time, with its bytes in flight; nothing if it was forgotten.
    pub(super) fn leave(&mut self, id: u64, at: Time) -> Option<&Sent> {
        let place = self.place(id)?;
        let (sent, known) = self.packets.get_mut(place)?;
        sent.at = at;
        if *known == Known::Planned {
            self.planned = self.planned.saturating_sub(sent.size);
            self.left += sent.size;
            *known = Known::Nothing;
        }
        sent.in_flight = self.left;
        Some(sent)
    }

    /// Bytes of packets whose fate is not known, and of those of them that the driver has.
    pub(super) fn bytes(&self) -> (Bytes, Bytes) {
        (self.planned + self.left, self.planned)
    }

    /// The sequence number of the next packet of media.
    pub(super) fn next_media(&self) -> u64 {
        self.numbers[0].next()
    }

    /// The number of a packet of a stream by the low bits of its sequence number.
    pub(super) fn id(&self, stream: usize, low: u16) -> Option<u64> {
        self.numbers[stream].id(low)
    }

    fn place(&self, id: u64) -> Option<usize> {
        id.checked_sub(self.first).and_then(|place| usize::try_from(place).ok())
    }

    /// The fate of a packet is known, of which that was.
    fn end(&mut self, size: Bytes, known: Known) {
        match known {
            Known::Planned => self.planned = self.planned.saturating_sub(size),
            Known::Nothing | Known::Missing => self.left = self.left.saturating_sub(size),
            _ => {}
        }
    }

    fn forget_first(&mut self) {
        if let Some((sent, known)) = self.packets.pop_front() {
            self.end(sent.size, known);
            self.first += 1;
        }
    }

    /// True if feedback that says that a packet came says anything new.
    pub(super) fn awaits(&self, id: u64) -> bool {
        let known = self.place(id).and_then(|place| self.packets.get(place)).map(|(_, known)| *known);
        matches!(known, Some(Known::Planned | Known::Nothing | Known::Missing | Known::Lost))
    }

    /// Feedback says that an awaited packet came.
    pub(super) fn came(&mut self, id: u64, at: Option<Time<Rx>>, ecn: Ecn) {
        let Some((sent, known)) = self.place(id).and_then(|place| self.packets.get_mut(place)) else {
            return;
        };
        let (size, before) = (sent.size, *known);
        if before == Known::Lost {
            *known = Known::Late(at);
        } else {
            *known = Known::Came(at, ecn);
            self.highest = self.highest.max(Some(id));
        }
        self.end(size, before);
    }

    /// Feedback tells of a packet, and not that it came. True if that is new.
    pub(super) fn misses(&mut self, id: u64) -> bool {
        let Some((sent, known)) = self.place(id).and_then(|place| self.packets.get_mut(place)) else {
            return false;
        };
        let (size, before) = (sent.size, *known);
        if !matches!(before, Known::Planned | Known::Nothing) {
            return false;
        }
        *known = Known::Missing;
        if before == Known::Planned {
            // Nobody told that it left.
            self.planned = self.planned.saturating_sub(size);
            self.left += size;
        }
        true
    }

    /// Appends the fates that can be told, and returns the newest arrival among them. Those behind a hole are told of once it is known to be a
    /// loss: a classifier judges by the arrival that reveals it.
    pub(super) fn fates(&mut self, reports: &mut Vec<Report>) -> Option<Time<Rx>> {
        let mut newest: Option<Time<Rx>> = None;
        let (first, highest) = (self.first, self.highest.unwrap_or(0));
        for (k, (sent, known)) in self.packets.iter_mut().enumerate() {
            let number = first + k as u64;
            let fate = match *known {
                Known::Came(at, ecn) => {
                    *known = Known::Arrived;
                    newest = newest.max(at);
                    Fate::Arrived { at, ecn }
                }
                Known::Late(at) => {
                    *known = Known::Arrived;
                    Fate::Late { at }
                }
                Known::Missing if number + LATER <= highest => {
                    self.left = self.left.saturating_sub(sent.size);
                    *known = Known::Lost;
                    Fate::lost(LostBy::Gap)
                }
                Known::Missing => break,
                _ if number > highest => break,
                _ => continue,
            };
            reports.push(Report { sent: *sent, fate });
        }
        newest
    }

    /// Feedback has left packets of media before that one behind: nothing more will be said of them.
    pub(super) fn left_behind(&mut self, begin: u64) {
        let told = |known: &Known| !matches!(known, Known::Missing | Known::Came(..));
        let end = begin.min(self.highest.unwrap_or(0));
        while self.first < end && self.packets.front().is_some_and(|(_, known)| told(known)) {
            self.forget_first();
        }
    }

    /// A receiver that tells of sums has that packet of media as its newest, if it is newer than all before: it, and those before it, with their
    /// sequence numbers.
    pub(super) fn newest(
        &mut self,
        low: u16,
    ) -> Option<(Sent, impl Iterator<Item = (Sent, Option<u64>)> + '_)> {
        let id = self.numbers[0].id(low).filter(|id| self.highest.is_none_or(|before| *id > before))?;
        let sent = self.packets.get(self.place(id)?)?.0;
        self.highest = Some(id);
        let media = &self.numbers[0];
        let before = self.packets.iter().map(|(sent, _)| *sent).take_while(move |sent| sent.id < id);
        Some((sent, before.map(|sent| (sent, media.sequence(sent.id)))))
    }

    /// Forgets the packets up to that one.
    pub(super) fn forget(&mut self, id: u64) {
        while self.first <= id && !self.packets.is_empty() {
            self.forget_first();
        }
    }

    /// The simulator's side channel, by the numbers of these packets.
    pub(super) fn truth<'a>(&'a self, truth: &'a dyn LossTruth) -> MediaTruth<'a> {
        MediaTruth(truth, &self.numbers[0])
    }
}

/// The simulator's side channel, which knows packets of media by their sequence numbers.
#[derive(Debug)]
pub(super) struct MediaTruth<'a>(&'a dyn LossTruth, &'a Numbers);

impl LossTruth for MediaTruth<'_> {
    fn cause(&self, id: u64) -> Option<LossClass> {
        self.0.cause(self.1.sequence(id)?)
    }
    fn judged(&self, id: u64, class: LossClass) {
        self.1.sequence(id).into_iter().for_each(|sequence| self.0.judged(sequence, class));
    }
}
