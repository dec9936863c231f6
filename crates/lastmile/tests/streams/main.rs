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

/// A packet of a source at `from`, of `size` bytes of payload.
fn rtp(from: SocketAddr, sequence: u16, size: usize, ecn: Ecn) -> Datagram {
    let header = RtpHeader { marker: false, payload_type: 96, sequence, timestamp: 0, ssrc: OURS };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    bytes.resize(bytes.len() + size, 0);
    Datagram { ecn, ..Datagram::udp(from, ends().1, bytes) }
}
