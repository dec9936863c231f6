//! A link by itself: packets offered to it, and their fates.
#![allow(dead_code, unreachable_pub)] // each test file uses some of them

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use lastmile::node::{Datagram, Ecn, Input, Model, Node, Output, Payload, PortId, Transmit, TransmitId};
use lastmile::time::Time;
use lastmile_sim::network::element::Element;
use lastmile_sim::network::engine::{Engine, NodeId, Target};
use lastmile_sim::network::link::Link;
use lastmile_sim::network::lost::LossCause;
use lastmile_sim::network::traffic::Sink;

/// A packet, and when it comes.
pub type Offered = (u64, Datagram);

/// Packets of these sizes at these nanoseconds, with their numbers from zero on.
pub fn numbered(packets: &[(u64, u32)]) -> Vec<Offered> {
    let any = "10.0.0.1:1".parse().unwrap();
    let one = |(number, &(at, ip_size)): (usize, &(u64, u32))| {
        let payload = Payload::Model(Model { ip_size, words: [number as u64, 0, 0, 0] });
        (at, Datagram { payload, ..Datagram::udp(any, any, vec![]) })
    };
    packets.iter().enumerate().map(one).collect()
}

/// When packets come whose gaps, each after one, and sizes these are.
pub fn after_each_other(mut at: u64, packets: &[(u64, u32)]) -> Vec<(u64, u32)> {
    let one = |&(gap, size): &(u64, u32)| {
        at += gap;
        (at - gap, size)
    };
    packets.iter().map(one).collect()
}

pub fn number(datagram: &Datagram) -> u64 {
    match &datagram.payload {
        Payload::Model(model) => model.words[0],
        _ => panic!("{datagram:?}"),
    }
}

struct Feeder(VecDeque<Offered>);

impl Node for Feeder {
    type Event = Infallible;

    fn handle(&mut self, _: Time, _: Input) {}
    fn poll(&mut self, now: Time) -> Output {
        match self.0.front() {
            Some(&(at, _)) if at > now.as_nanos() => Output::Wait(Some(Time::from_nanos(at))),
            _ => self.0.pop_front().map_or(Output::Wait(None), |(_, datagram)| {
                Output::Transmit(Transmit { id: TransmitId::UNTRACKED, at: now, port: PortId(0), datagram })
            }),
        }
    }
}

/// Fates of packets: nanoseconds, numbers, and their marks or the causes of their losses.
#[derive(Debug, Default)]
pub struct Fates {
    pub arrived: Vec<(u64, u64, Ecn)>,
    pub lost: Vec<(u64, u64, LossCause)>,
}

/// A link in an engine.
pub struct Alone {
    pub engine: Engine,
    pub node: NodeId,
    fates: Arc<Mutex<Fates>>,
}

impl Alone {
    pub fn new(link: Link, offered: Vec<Offered>) -> Alone {
        let mut engine = Engine::new();
        let feeder = engine.add(Element::other(Feeder(offered.into()))).unwrap();
        let node = engine.add(link).unwrap();
        let sink = engine.add(Sink::default()).unwrap();
        engine.connect(feeder, Target::Node(node));
        engine.connect(node, Target::Node(sink));
        let fates = Arc::<Mutex<Fates>>::default();
        let [here, lost] = [(); 2].map(|()| Arc::clone(&fates));
        engine.set_tap(Box::new(move |now, from, _, packet| {
            if from == node {
                here.lock().unwrap().arrived.push((now.as_nanos(), number(packet), packet.ecn));
            }
        }));
        engine.add_lost_tap(Box::new(move |at, _, of| {
            lost.lock().unwrap().lost.push((at.as_nanos(), number(of.datagram), of.cause));
        }));
        Alone { engine, node, fates }
    }

    /// Until nothing is left to do.
    pub fn run(mut self) -> (Fates, Alone) {
        while let Some(next) = self.engine.next_event() {
            self.engine.run_until(next).unwrap();
        }
        let mut fates = std::mem::take(&mut *self.fates.lock().unwrap());
        fates.lost.sort_by_key(|lost| (lost.0, lost.1));
        (fates, self)
    }

    pub fn link(&self) -> &Link {
        self.engine.link(self.node).unwrap()
    }
}

/// At which nanosecond which packet arrives.
pub fn departures(link: Link, packets: &[(u64, u32)]) -> Vec<(u64, u64)> {
    let (fates, _) = Alone::new(link, numbered(packets)).run();
    fates.arrived.into_iter().map(|(at, number, _)| (at, number)).collect()
}
