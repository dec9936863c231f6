//! Packets of generated traffic: what is read is written again as it was, and neither a sink nor a source falls over any bytes. A sink gives no
//! more bytes than it got.
#![no_main]

use lastmile::arrivals::Arrivals;
use lastmile::endpoint::traffic::{Sink, SinkConfig, Source, SourceConfig};
use lastmile::node::{Datagram, Ecn, Input, Node, Output, PortId};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile::wire::traffic::Packet;
use libfuzzer_sys::fuzz_target;

/// Bytes at the IP layer that a node sends.
fn drained(node: &mut impl Node, now: Time) -> u64 {
    let mut sent = 0;
    loop {
        match node.poll(now) {
            Output::Transmit(transmit) => sent += transmit.datagram.ip_size().0,
            Output::Event(_) => {}
            Output::Wait(_) => return sent,
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let (Ok(own), Ok(peer)) = ("192.0.2.1:8621".parse(), "192.0.2.2:8621".parse()) else { return };
    let mut sink = Sink::new(SinkConfig::new([7; 32]));
    let mut source = Source::new(SourceConfig {
        peer,
        nonce: 0,
        arrivals: Arrivals::Cbr,
        rate: Rate::ip(1_000_000),
        packet_size: Bytes(100),
        seed: 1,
        lasts: Span::from_secs(1),
        max_bytes: None,
        ecn: Ecn::NotEct,
        dscp: 0,
    });
    let (mut now, mut got, mut gave) = (Time::ZERO, 0, 0);
    source.handle(now, Input::Wake);
    // The first byte of a piece is its length, the second the time that has passed, in 10 ms.
    let mut rest = data;
    while let [length, time, tail @ ..] = rest {
        let (piece, after) = tail.split_at(tail.len().min(usize::from(*length)));
        rest = after;
        now += Span::from_millis(10 * i64::from(*time));
        if let Ok(packet) = Packet::parse(piece) {
            let mut again = Vec::new();
            packet.write(&mut again, 0);
            assert_eq!(Packet::parse(&again), Ok(packet));
        }
        let datagram = Datagram::udp(peer, own, piece.to_vec());
        got += datagram.ip_size().0;
        let input = Input::Datagram { port: PortId(0), at: now, datagram };
        sink.handle(now, input.clone());
        gave += drained(&mut sink, now);
        assert!(gave <= got);
        source.handle(now, input);
        drained(&mut source, now);
    }
});
