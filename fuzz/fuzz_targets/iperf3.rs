//! An iperf3 server's control connection and datagrams, in any pieces and any order: the reader reads the same words however the bytes
//! are cut, and the client ends.
#![no_main]

use lastmile::endpoint::iperf3::{Closed, Input, Iperf3, Iperf3Config, Output};
use lastmile::node::Ecn;
use lastmile::time::{Span, Time};
use lastmile::wire::iperf3::{Reader, TestPacket};
use libfuzzer_sys::fuzz_target;

fn words(data: &[u8], piece: usize) -> Vec<lastmile::wire::iperf3::Message> {
    let mut reader = Reader::default();
    let read = |mut piece: &[u8]| {
        let words: Vec<_> = std::iter::from_fn(|| reader.next(&mut piece)).collect();
        assert!(piece.is_empty());
        words
    };
    data.chunks(piece).flat_map(read).collect()
}

fuzz_target!(|data: &[u8]| {
    assert_eq!(words(data, 1), words(data, usize::MAX));
    let Ok(peer) = "192.0.2.1:5201".parse() else { return };
    let mut client = Iperf3::new(Iperf3Config::new(peer, [7; 32]));
    let mut now = Time::ZERO;
    client.handle(now, Input::Wake);
    let mut rest = data;
    while !client.is_finished() {
        let wake = loop {
            match client.poll() {
                Output::Wait(until) => break until,
                Output::Connect(_) => client.handle(now, Input::Connected),
                _ => {}
            }
        };
        // The first byte of a piece says its kind and length.
        let Some((head, tail)) = rest.split_first() else {
            now = wake.unwrap_or(now).max(now + Span::from_nanos(1));
            client.handle(now, Input::Closed(Closed::ByServer));
            continue;
        };
        let (piece, after) = tail.split_at(tail.len().min(usize::from(head >> 2)));
        rest = after;
        match head & 3 {
            0 | 1 => client.handle(now, Input::Control(piece)),
            2 => {
                let mut payload = vec![0; 1460];
                payload[..piece.len()].copy_from_slice(piece);
                let read = TestPacket::parse(piece);
                assert!(read.is_none_or(|read| read.counter > 0 && piece.len() >= 12));
                client.handle(now, Input::Datagram { at: now, ecn: Ecn::NotEct, payload: &payload });
            }
            _ => {
                now = wake.unwrap_or(now);
                client.handle(now, Input::Wake);
            }
        }
    }
});
