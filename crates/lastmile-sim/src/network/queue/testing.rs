//! Helpers for tests of disciplines: waiting packets, and a link that notes their fates.

use lastmile::node::{Datagram, Ecn, Model, Payload};
use lastmile::options::Scalar;

use super::*;
use crate::network::packets::Packets;

/// A link that holds packets and notes what its queue does to them.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    packets: Packets,
    pub(crate) dropped: Vec<(Waiting, LossCause)>,
    pub(crate) marked: usize,
}

impl Noted {
    /// A packet of this flow, which is also its port.
    pub(crate) fn packet(&mut self, flow: u16, since: u64, wire: u32, ecn: Ecn) -> Waiting {
        let from = (core::net::Ipv4Addr::LOCALHOST, flow).into();
        let payload = Payload::Model(Model { ip_size: wire, words: [0; 4] });
        let parcel = self.packets.insert(Datagram { payload, ecn, ..Datagram::udp(from, from, vec![]) });
        Waiting { since, wire, ecn, parcel }
    }

    pub(crate) fn port(&self, packet: &Waiting) -> u16 {
        self.datagram(packet).from.port()
    }
}

impl Fate for Noted {
    fn drop(&mut self, packet: Waiting, cause: LossCause) {
        self.dropped.push((packet, cause));
    }

    fn mark(&mut self, packet: &mut Waiting) {
        packet.ecn = Ecn::Ce;
        self.marked += 1;
    }

    fn datagram(&self, packet: &Waiting) -> &Datagram {
        self.packets.get(&packet.parcel)
    }
}

/// The example of CONTRIBUTING.md is what is compiled and tested here.
#[test]
fn contributing_shows_a_discipline_in_one_file_and_one_line() {
    let (shown, list) = (include_str!("../../../../../CONTRIBUTING.md"), include_str!("mod.rs"));
    assert!(shown.contains(include_str!("every_nth.rs")), "the file in CONTRIBUTING.md is another one");
    let line = "    every_nth::EveryNth,\n";
    assert!(list.contains(line) && shown.contains(line), "the line in CONTRIBUTING.md is another one");
    let read = |n| Discipline::read("every-nth", &Given::from([("n".to_owned(), Scalar::Count(n))]));
    assert_eq!(read(3), Ok(EveryNth { n: 3 }.into()));
    assert_eq!(read(0).unwrap_err().to_string(), "n of every-nth must be 1 to 1000000, not 0");
}
