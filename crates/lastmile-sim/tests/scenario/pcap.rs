//! Captures read back by the crates that also write them, `pcap-file` and `etherparse`; `make interop` has tshark read them.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use etherparse::{NetSlice, SlicedPacket, TcpOptionElement, TransportSlice};
use lastmile::time::{Span, Time};
use lastmile_sim::network::tcp::SenderCounters;
use lastmile_sim::runs::pcap::{Capture, Select};
use lastmile_sim::scenario::{Scenario, Simulation, build, builtin};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
use pcap_file::pcapng::{Block, PcapNgReader};

#[derive(Clone, Default)]
pub(crate) struct Shared(pub(crate) Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn six_packets() -> Scenario {
    Scenario::parse("six-packets.toml", include_str!("../scenarios/six-packets.toml")).unwrap()
}

fn three_tcp() -> Scenario {
    Scenario::parse("three-tcp.toml", include_str!("../scenarios/three-tcp.toml")).unwrap()
}

fn captured(scenario: &Scenario, select: &Select) -> (Vec<u8>, Simulation) {
    let mut run = build(scenario, 1, vec![]).unwrap();
    let file = Shared::default();
    let capture = Capture::attach(scenario, &mut run, select, file.clone());
    run.engine.run_until(Time::ZERO + scenario.duration).unwrap();
    capture.finish().unwrap();
    let bytes = std::mem::take(&mut *file.0.lock().unwrap());
    (bytes, run)
}

fn only(name: &str) -> Select {
    Select::Only(vec![name.to_owned()])
}

struct Packet {
    interface: u32,
    at: u64,
    captured: usize,
    flags: u32,
    lost: u64,
    comment: String,
    /// With zeros for what was not captured.
    whole: Vec<u8>,
}

#[derive(Default)]
struct Read {
    names: Vec<String>,
    packets: Vec<Packet>,
    /// Packets and losses of each interface.
    statistics: Vec<(u64, u64)>,
}

fn read(file: &[u8]) -> Read {
    let mut reader = PcapNgReader::new(file).unwrap();
    let mut read = Read::default();
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                assert_eq!(u32::from(interface.linktype), 101);
                read.names.extend(interface.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(block) => {
                let (mut flags, mut lost, mut comment) = (0, 0, String::new());
                for option in &block.options {
                    match option {
                        EnhancedPacketOption::Flags(own) => flags = *own,
                        EnhancedPacketOption::DropCount(own) => lost = *own,
                        EnhancedPacketOption::Comment(own) => comment = own.to_string(),
                        other => panic!("{other:?}"),
                    }
                }
                let (at, captured) = (block.timestamp.as_nanos() as u64, block.data.len());
                let mut whole = block.data.to_vec();
                whole.resize(block.original_len as usize, 0);
                let interface = block.interface_id;
                read.packets.push(Packet { interface, at, captured, flags, lost, comment, whole });
            }
            Block::InterfaceStatistics(block) => match block.options[..] {
                [
                    InterfaceStatisticsOption::IsbIfRecv(packets),
                    InterfaceStatisticsOption::IsbIfDrop(lost),
                ] => {
                    read.statistics.push((packets, lost));
                }
                ref other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
    read
}

#[test]
fn every_interface_has_its_packets_at_their_times() {
    let (file, _) = captured(&six_packets(), &Select::All);
    let read = read(&file);
    assert_eq!(read.names, ["a", "b", "a>b", "b>a"]);
    let of =
        |interface: u32| read.packets.iter().filter(move |p| p.interface == interface).collect::<Vec<_>>();
    let ms = 1_000_000;
    // Five at once: one is sent, three wait, one is dropped; each takes 10 ms, and 7 ms on the way.
    assert_eq!(of(0).iter().map(|p| (p.at, p.captured, p.whole.len(), p.flags)).collect::<Vec<_>>(), {
        let mut sent = vec![(100 * ms, 28, 1250, 2); 5];
        sent.push((400 * ms, 28, 100, 2));
        sent
    });
    let arrivals: Vec<u64> = of(1).iter().map(|p| p.at).collect();
    assert_eq!(arrivals, [117 * ms, 127 * ms, 137 * ms, 147 * ms, 400 * ms + 7_800_000]);
    assert!(of(1).iter().all(|p| p.flags == 1));
    assert_eq!(of(2).iter().map(|p| p.at).collect::<Vec<_>>(), arrivals);
    assert!(of(3).is_empty());
    // The fifth was dropped when it came, before any had arrived.
    assert_eq!((of(2)[0].lost, of(2)[0].comment.as_str()), (1, "lost before this packet: 1 queue"));
    assert!(of(2)[1..].iter().all(|p| p.lost == 0 && p.comment.is_empty()));
    assert_eq!(read.statistics, [(6, 0), (5, 0), (5, 1), (0, 0)]);
}

fn sender_of(run: &Simulation, flow: usize) -> SenderCounters {
    run.engine.tcp_sender(run.sources[flow]).unwrap().counters()
}

/// The file has the simulator's own counts of each connection, by the sender's port.
#[test]
fn tcp_is_tcp() {
    let scenario = three_tcp();
    let (file, run) = captured(&scenario, &only("a"));
    let read = read(&file);
    assert_eq!(read.names, ["a"]);
    for flow in 0..3 {
        let port = 49_152 + 2 * flow as u16;
        let (mut end, mut sent, mut again, mut bytes, mut acks, mut blocks) = (1_u32, 0, 0, 0, 0, 0);
        let mut acknowledged = 1;
        for packet in &read.packets {
            assert!(packet.captured <= 80 && packet.captured <= packet.whole.len());
            let sliced = SlicedPacket::from_ip(&packet.whole).unwrap();
            let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (&sliced.net, &sliced.transport)
            else {
                panic!("{sliced:?}");
            };
            assert_eq!(usize::from(ip.header().total_len()), packet.whole.len());
            let checksum = tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination()).unwrap();
            assert_eq!(tcp.checksum(), checksum);
            assert!(tcp.ack() && !tcp.syn() && !tcp.fin());
            if tcp.source_port() == port {
                assert_eq!((packet.flags, tcp.destination_port(), tcp.acknowledgment_number()), (2, 9, 1));
                sent += 1;
                bytes += packet.whole.len() as u64;
                let number = tcp.sequence_number();
                if number < end {
                    again += 1;
                } else {
                    assert_eq!(number, end, "without gaps");
                    end += tcp.payload().len() as u32;
                }
            } else if tcp.destination_port() == port {
                assert_eq!((packet.flags, tcp.sequence_number(), tcp.payload().len()), (1, 1, 0));
                assert!(tcp.acknowledgment_number() >= acknowledged && tcp.acknowledgment_number() <= end);
                acknowledged = tcp.acknowledgment_number();
                acks += 1;
                for option in tcp.options_iterator() {
                    match option.unwrap() {
                        TcpOptionElement::Noop => {}
                        TcpOptionElement::SelectiveAcknowledgement((from, to), _) => {
                            blocks += 1;
                            assert!(acknowledged < from && from < to && to <= end);
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
        let counted = sender_of(&run, flow);
        assert_eq!(
            (sent, again, bytes, acks),
            (counted.segments, counted.resent, counted.bytes.0, counted.acks)
        );
        assert!(
            again > 0 && (flow == 2 || (blocks > 0) == (flow == 0)),
            "{flow}: {again} sent again, {blocks} blocks"
        );
    }
}

#[test]
fn marks_are_echoed_until_the_window_is_reduced() {
    let mut scenario = builtin("red-ecn").unwrap();
    scenario.duration = Span::from_secs(16); // TCP starts at 10 s
    let (file, run) = captured(&scenario, &Select::All);
    let read = read(&file);
    let hosts = scenario.hosts.len() as u32;
    let (mut marked, mut echoed, mut reduced) = (0, 0, 0);
    for packet in read.packets.iter().filter(|packet| packet.interface < hosts) {
        let sliced = SlicedPacket::from_ip(&packet.whole).unwrap();
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (&sliced.net, &sliced.transport)
        else {
            continue;
        };
        if packet.flags == 1 {
            marked += u64::from(ip.header().ecn().value() == 3);
            echoed += u64::from(tcp.ece());
        } else {
            reduced += u64::from(tcp.cwr());
        }
    }
    let ecn = run.sources.iter().filter_map(|&node| run.engine.tcp_sender(node));
    let reductions: u64 = ecn.map(|sender| sender.counters().ecn_reductions).sum();
    let marks: u64 =
        run.sinks.iter().filter_map(|&node| run.engine.tcp_receiver(node)).map(|r| r.counters().marked).sum();
    assert!(marked > 0 && echoed >= reduced);
    assert_eq!(marked, marks);
    // The last reduction may wait for its segment at the end of the run.
    assert!(
        reduced <= reductions && reduced + run.sources.len() as u64 >= reductions,
        "{reduced} {reductions}"
    );
}

#[test]
fn wlans_are_interfaces() {
    let mut scenario = builtin("ap-3").unwrap();
    scenario.duration = Span::from_millis(300);
    let name = format!("wlan/{}", scenario.wlans[0].name());
    let (file, run) = captured(&scenario, &only(&name));
    let read = read(&file);
    assert_eq!(read.names, [name]);
    let wlan = run.engine.wlan(run.wlans[0]).unwrap();
    let counted = wlan.directions().filter_map(|(port, ..)| wlan.counters(port));
    let (delivered, lost) = counted.fold((0, 0), |sum, c| (sum.0 + c.delivered, sum.1 + c.lost()));
    assert!(delivered > 0);
    assert_eq!(read.statistics, [(delivered, lost)]);
    assert_eq!(read.packets.len() as u64, delivered);
}

/// A disk that is full after so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let scenario = six_packets();
    for room in [0, 100, 1_000] {
        let mut run = build(&scenario, 1, vec![]).unwrap();
        let capture = Capture::attach(&scenario, &mut run, &Select::All, Full(room));
        run.engine.run_until(Time::ZERO + scenario.duration).unwrap();
        assert_eq!(capture.finish().unwrap_err().kind(), io::ErrorKind::StorageFull, "{room}");
    }
}
