//! Nodes that tests put at the ends of a path.
#![allow(dead_code, unreachable_pub)] // each test file uses some of them

pub mod link;
pub mod tcp;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use lastmile::node::{Datagram, Input, Node, Output, PortId, Transmit, TransmitId};
use lastmile::time::{Span, Time};

/// Inputs of a [`Recorder`], with their times.
pub type Log = Arc<Mutex<Vec<(Time, Input)>>>;

/// Sends the packets that it was given at the start, and notes every input.
#[derive(Default)]
pub struct Recorder {
    pub log: Log,
    pub send: VecDeque<Transmit>,
    pub wake: Option<Time>,
}

impl Recorder {
    pub fn new(send: Vec<Transmit>) -> (Box<Recorder>, Log) {
        let log = Log::default();
        (Box::new(Recorder { log: log.clone(), send: send.into(), wake: None }), log)
    }
}

impl Node for Recorder {
    type Event = Infallible;

    fn handle(&mut self, now: Time, input: Input) {
        if input == Input::Wake {
            self.wake = None;
        }
        self.log.lock().unwrap().push((now, input));
    }
    fn poll(&mut self, _now: Time) -> Output {
        self.send.pop_front().map_or(Output::Wait(self.wake), Output::Transmit)
    }
}

/// Sends trains of UDP packets whose first two bytes are the stream's number and the third the index.
pub struct Trains {
    pub every: Span,
    pub gap: Span,
    pub length: u8,
    pub trains: u16,
    pub template: Datagram,
    pub sent: u32,
}

impl Node for Trains {
    type Event = Infallible;

    fn handle(&mut self, _now: Time, _input: Input) {}
    fn poll(&mut self, now: Time) -> Output {
        let (train, index) = (self.sent / u32::from(self.length), self.sent % u32::from(self.length));
        if train >= u32::from(self.trains) {
            return Output::Wait(None);
        }
        let at = Time::ZERO + self.every * (i64::from(train) + 1) + self.gap * i64::from(index);
        if at > now {
            return Output::Wait(Some(at));
        }
        self.sent += 1;
        let mut datagram = self.template.clone();
        if let lastmile::node::Payload::Udp(bytes) = &mut datagram.payload {
            bytes[..2].copy_from_slice(&(train as u16).to_be_bytes());
            bytes[2] = index as u8;
        }
        Output::Transmit(Transmit { id: TransmitId(0), at: now, port: PortId(0), datagram })
    }
}

/// Reads what [`Trains`] writes.
pub fn read_probe(bytes: &[u8]) -> Option<(u32, u16)> {
    let stream = u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]);
    Some((u32::from(stream), u16::from(*bytes.get(2)?)))
}
