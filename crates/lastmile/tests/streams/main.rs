//! Media streams: a sender and a receiver of RTP on a made-up path, and whatever bytes come instead.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lastmile::endpoint::Endpoint;
use lastmile::endpoint::stream::{
    ControlConfig, Decision, End, Left, Received, Receiver, ReceiverConfig, Retransmission, Sender,
    SenderConfig, SenderRate, Sent, SourceConfig,
};
use lastmile::node::{Datagram, Ecn, Failure, Input, Node, Output, PortId};
use lastmile::options::Choice;
use lastmile::time::{Epoch, Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile::wire::{
    ReportBlock, Reported, Rtcp, RtpHeader, RtpPacket, SendTime, SenderInfo, TfrcScheme, is_rtcp,
    scheme_check, write_feedback, write_goodbye, write_nack, write_name, write_receipt_times,
    write_receiver_report, write_sender_report, write_tfrc_scheme,
};
use proptest::prelude::*;

mod faults;
mod hosting;
mod receiver;
mod sender;
mod shares;
mod video;
mod whatever;
mod whole;

const EPOCH: Epoch = Epoch::from_unix_nanos(1_700_000_000_000_000_000);
const OURS: u32 = 7;

fn ends() -> (SocketAddr, SocketAddr) {
    ("10.0.0.1:42000".parse().unwrap(), "10.0.0.2:5004".parse().unwrap())
}

fn at(millis: i64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn sender(stop: Time) -> Sender {
    Sender::new(config(stop)).unwrap()
}

fn config(stop: Time) -> SenderConfig {
    SenderConfig {
        frame_rate: 50.0,
        packet_size: Bytes(500),
        ecn: Ecn::Ect0,
        stop,
        epoch: EPOCH,
        ..SenderConfig::new(ends().1, OURS, Rate::ip(1_000_000))
    }
}

fn receiver() -> Receiver {
    Receiver::new(ReceiverConfig { epoch: EPOCH, ..ReceiverConfig::new(8) }).unwrap()
}

/// Output of a node by now: its packets, its decisions, and the time at which it is to be woken.
fn drain(
    node: &mut impl Node<Event = Decision>,
    now: Time,
) -> (Vec<(Time, Datagram)>, Vec<Decision>, Option<Time>) {
    let (mut packets, mut decisions) = (Vec::new(), Vec::new());
    for _ in 0..100_000 {
        match node.poll(now) {
            Output::Transmit(transmit) => packets.push((transmit.at.max(now), transmit.datagram)),
            Output::Event(decision) => decisions.push(decision),
            Output::Wait(until) => return (packets, decisions, until),
        }
    }
    panic!("a node that never waits");
}

/// A datagram on its way: when it left, and whether it goes to the receiver.
struct Way {
    at: Time,
    to_receiver: bool,
}

/// Copies of a datagram that arrive, each with its delay; or why its sender's host refuses it.
type Fate = Result<Vec<(Span, Datagram)>, Failure>;

/// The path's delay.
const DELAY: Span = Span::from_millis(20);

/// Runs both ends until nothing is due at either, over a path that says the fate of each datagram. Another receiver takes the first one's
/// place at its time. All decisions, in order.
fn joined(
    mut sender: Sender,
    mut receiver: Receiver,
    mut anew: Option<(Time, Receiver)>,
    mut path: impl FnMut(&Way, Datagram) -> Fate,
) -> Vec<Decision> {
    let mut queue: BTreeMap<(Time, u64), (bool, Input)> = BTreeMap::new();
    let (mut order, mut wakes, mut all) = (0, [Some(Time::ZERO); 2], Vec::new());
    loop {
        let next = queue.keys().next().map(|&(at, _)| at);
        let Some(now) = [next, wakes[0], wakes[1]].into_iter().flatten().min() else { return all };
        if let Some((_, one)) = anew.take_if(|(at, _)| now >= *at) {
            receiver = one;
        }
        let (to_receiver, input) = match queue.first_entry().filter(|entry| entry.key().0 == now) {
            Some(entry) => entry.remove(),
            None => (wakes[1] == Some(now), Input::Wake),
        };
        let (packets, decisions, wake) = if to_receiver {
            receiver.handle(now, input);
            drain(&mut receiver, now)
        } else {
            sender.handle(now, input);
            drain(&mut sender, now)
        };
        wakes[usize::from(to_receiver)] = wake;
        all.extend(decisions);
        for (at, mut datagram) in packets {
            let from_sender = !to_receiver;
            if from_sender {
                datagram.from = ends().0;
            } else {
                datagram.from = ends().1;
            }
            let inputs = match path(&Way { at, to_receiver: from_sender }, datagram) {
                Err(reason) => {
                    vec![(at + DELAY, to_receiver, Input::Failed { port: PortId(0), id: None, reason })]
                }
                Ok(copies) => copies
                    .into_iter()
                    .map(|(delay, datagram)| {
                        let came = at + delay;
                        (came, from_sender, Input::Datagram { port: PortId(0), at: came, datagram })
                    })
                    .collect(),
            };
            for (came, to, input) in inputs {
                order += 1;
                queue.insert((came, order), (to, input));
            }
        }
    }
}

/// A packet of a source at `from`, of `size` bytes of payload.
fn rtp(from: SocketAddr, sequence: u16, size: usize, ecn: Ecn) -> Datagram {
    let header = RtpHeader { marker: false, payload_type: 96, sequence, timestamp: 0, ssrc: OURS };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    bytes.resize(bytes.len() + size, 0);
    Datagram { ecn, ..Datagram::udp(from, ends().1, bytes) }
}
