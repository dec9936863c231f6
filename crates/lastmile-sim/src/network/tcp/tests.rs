//! Plays the exchanges of `exchanges.txt`, which says how they are written.

use std::collections::BTreeMap;

use lastmile::node::{Ecn, Flow, Output, Payload};
use lastmile::rng::Stream;
use lastmile::time::Time;

use super::packet::{Ack, Blocks, Segment};
use super::{App, Ends, Receiver, Sender};

/// A sender or a receiver, and what it has just sent.
struct Exchange {
    sender: Sender,
    receiver: Receiver,
    ack: Option<Ack>,
    ends: Ends,
    departed: BTreeMap<u64, u64>,
    sent: Vec<(Segment, Ecn)>,
    wait: Option<Time>,
}

/// "4", or "4-6" for all from 4 to 6.
fn range(word: &str) -> (u64, u64) {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    (first.parse().unwrap(), last.parse().unwrap())
}

impl Exchange {
    fn new(options: &str) -> Exchange {
        let mut it: toml::Table = format!("it = {{ {options} }}").parse().unwrap();
        let keys = it["it"].as_table_mut().unwrap();
        let app = keys.remove("app").map_or(App::Bulk, |app| app.try_into().unwrap());
        keys.entry("limited_transmit").or_insert(false.into());
        let (sender, receiver) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
        let ends = Ends { sender, receiver, data: Flow(0), acks: Flow(1) };
        let (config, random) = (keys.clone().try_into().unwrap(), Stream::new(1, "tcp"));
        let sender = Sender::new(&config, ends, app, Time::ZERO, Time::MAX, random);
        let receiver = Receiver::new(&config, ends);
        Exchange { sender, receiver, ack: None, ends, departed: BTreeMap::new(), sent: vec![], wait: None }
    }

    /// Numbers that the receiver acknowledges after a segment, or after none: the next that it expects, and the blocks.
    fn receive(&mut self, now: Time, mut words: core::str::SplitWhitespace<'_>) -> Vec<u64> {
        if let Some(seq) = words.next() {
            let flags: Vec<&str> = words.collect();
            let (seq, cwr) = (seq.parse().unwrap(), flags.contains(&"cwr"));
            let ecn = if flags.contains(&"ce") { Ecn::Ce } else { Ecn::Ect0 };
            let model = Segment { seq, sent: now.as_nanos(), bytes: 1000, cwr }.model(40);
            self.receiver.receive(now, &self.ends.segment(now, ecn, model).datagram);
        }
        let mut acknowledged = Vec::new();
        loop {
            match self.receiver.poll(now) {
                Output::Transmit(transmit) => {
                    let Payload::Model(model) = &transmit.datagram.payload else { panic!("{transmit:?}") };
                    let ack = Ack::read(model).unwrap();
                    acknowledged.push(ack.next);
                    acknowledged.extend(ack.blocks.iter().flat_map(|block| block.0..block.1));
                    self.ack = Some(ack);
                }
                Output::Wait(wait) => {
                    self.wait = wait;
                    return acknowledged;
                }
                Output::Event(never) => match never {},
            }
        }
    }

    fn poll(&mut self, now: Time) -> Vec<u64> {
        self.sent.clear();
        loop {
            match self.sender.poll(now) {
                Output::Transmit(transmit) => {
                    let Payload::Model(model) = &transmit.datagram.payload else { panic!("{transmit:?}") };
                    let segment = Segment::read(model).unwrap();
                    self.departed.insert(segment.seq, segment.sent);
                    self.sent.push((segment, transmit.datagram.ecn));
                }
                Output::Wait(wait) => {
                    self.wait = wait;
                    return self.sent.iter().map(|sent| sent.0.seq).collect();
                }
                Output::Event(never) => match never {},
            }
        }
    }

    /// An ACK of all below the first word's number, with blocks, the segment that caused it, and an echo of a mark.
    fn ack(&mut self, now: Time, mut words: core::str::SplitWhitespace<'_>, dup: bool) {
        let next = words.next().unwrap().parse().unwrap();
        let (mut of, mut ece, mut blocks) = (None, false, Vec::new());
        while let Some(word) = words.next() {
            match word {
                "of" => of = words.next().map(|number| number.parse().unwrap()),
                "ece" => ece = true,
                block => blocks.push(range(block)),
            }
        }
        let caused = blocks.first().map_or_else(|| if dup { next } else { next - 1 }, |block| block.1);
        let echo = self.departed[&of.unwrap_or(caused)].max(1);
        let mut all = Blocks::default();
        all.iter_mut().zip(&blocks).for_each(|(to, block)| *to = (block.0, block.1 + 1));
        let ack = Ack { next, echo, ece, blocks: all }.model(40);
        self.sender.receive(now, &self.ends.ack(now, ack).datagram);
    }

    fn seen(&self, what: &str) -> f64 {
        let counters = self.sender.counters();
        let sent = |of: fn(&(Segment, Ecn)) -> bool| self.sent.iter().filter(|sent| of(sent)).count() as f64;
        match what {
            "cwnd" => self.sender.cwnd(),
            "timer" | "late" => self.wait.map_or(0.0, |wait| (wait.as_nanos() / 1_000_000) as f64),
            "recoveries" => counters.fast_retransmits as f64,
            "timeouts" => counters.timeouts as f64,
            "resent" => counters.resent as f64,
            "ect" => sent(|sent| sent.1 == Ecn::Ect0),
            "cwr" => sent(|sent| sent.0.cwr),
            "echo" => self.ack.map_or(0.0, |ack| (ack.echo / 1_000_000) as f64),
            "ece" => self.ack.map_or(0.0, |ack| f64::from(u8::from(ack.ece))),
            "duplicates" => self.receiver.counters().duplicates as f64,
            "delivered" => self.receiver.counters().delivered as f64,
            other => panic!("{other}?"),
        }
    }

    fn play(&mut self, line: &str, at: &str) {
        let (event, outcome) = line.split_once('>').unwrap();
        let (sent, seen) = outcome.split_once('|').unwrap_or((outcome, ""));
        let mut words = event.split_whitespace();
        let now = match words.next().unwrap() {
            "timer" | "late" => self.wait.unwrap(),
            ms => Time::from_nanos(ms.parse::<u64>().unwrap() * 1_000_000),
        };
        let acknowledged = match words.next().unwrap() {
            "seg" | "wait" => Some(self.receive(now, words)),
            "run" => None,
            kind => {
                self.ack(now, words, kind == "dup");
                None
            }
        };
        let more = sent.trim_end().ends_with("...");
        let expected = sent.split_whitespace().filter(|&word| word != "...").map(range);
        let expected: Vec<u64> = expected.flat_map(|(first, last)| first..=last).collect();
        let mut got = acknowledged.unwrap_or_else(|| self.poll(now));
        got.truncate(if more { expected.len() } else { usize::MAX });
        assert_eq!(got, expected, "{at}");
        let seen: Vec<&str> = seen.split_whitespace().collect();
        for pair in seen.chunks(2) {
            assert_eq!(self.seen(pair[0]), pair[1].parse::<f64>().unwrap(), "{at}: {}", pair[0]);
        }
    }
}

#[test]
fn both_ends_answer_as_the_standards_say() {
    let (mut all, mut title, mut started) = (Vec::<(&str, Exchange)>::new(), "", false);
    let lines = include_str!("exchanges.txt").lines().enumerate();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with("==") {
            (title, started) = (line, false);
            all.clear();
        } else if line.contains('>') {
            started = true;
            for (options, exchange) in &mut all {
                exchange.play(line, &format!("{title}, {options}, line {}: {line}", number + 1));
            }
            assert!(!all.is_empty(), "{title}: no options");
        } else {
            assert!(!started, "{line}");
            all.push((line, Exchange::new(line)));
        }
    }
    assert!(started, "{title}");
}
