//! [`Capture`]: packets on the simulated interfaces, as a pcapng file that Wireshark opens. One interface for every host, one for
//! every direction of a link and one for every WLAN; times are nanoseconds of the run since 1970. The file is written as the run
//! goes. `docs/json.md` has its contents for packets without bytes, and for lost ones.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lastmile::node::Datagram;
use lastmile::time::Time;
use pcap_file::pcapng::PcapNgBlock;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::network::engine::NodeId;
use crate::network::lost::Lost;
use crate::scenario::{Scenario, Simulation};

mod headers;
mod tcp;

use headers::write_packet;
use tcp::Connection;

/// No packet has more bytes than this; those without bytes of their own have some 50.
const SNAP: u32 = 65_535;
/// Characters; an option has at most 65,535 bytes.
const MAX_DESCRIPTION: usize = 10_000;
/// Of a packet's flags (`epb_flags`).
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Interfaces to be written.
///
/// ```
/// use lastmile_sim::{runs::pcap::*, scenario::builtin};
/// let scenario = builtin("path").unwrap();
/// assert_eq!(interfaces(&scenario), ["sender", "receiver", "sender>receiver", "receiver>sender"]);
/// let select = Select::Only(vec!["sender".into(), "nobody".into()]);
/// assert_eq!(select.unknown(&scenario), Some("nobody"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Select {
    /// All of them.
    #[default]
    All,
    /// Those with these names, see [`interfaces`].
    Only(Vec<String>),
}

impl Select {
    fn has(&self, name: &str) -> bool {
        match self {
            Select::All => true,
            Select::Only(names) => names.iter().any(|wanted| wanted == name),
        }
    }

    /// A name that no interface of the scenario has.
    pub fn unknown(&self, scenario: &Scenario) -> Option<&str> {
        let Select::Only(names) = self else { return None };
        let known = interfaces(scenario);
        names.iter().find(|name| !known.contains(name)).map(String::as_str)
    }
}

/// The names of a scenario's interfaces: hosts by their own, links as `from>to`, WLANs as `wlan/` and their first
/// station's.
pub fn interfaces(scenario: &Scenario) -> Vec<String> {
    let hosts = scenario.hosts.iter().map(|host| host.name.clone());
    let links = scenario.links.iter().map(|link| scenario.link_name(link));
    let wlans = scenario.wlans.iter().map(|wlan| format!("wlan/{}", wlan.name()));
    hosts.chain(links).chain(wlans).collect()
}

/// An interface as it stands in the file.
#[derive(Clone, Debug, Default)]
struct Interface {
    /// Its number in the file; none where it is not written.
    number: Option<u32>,
    packets: u64,
    lost: u64,
    /// By cause, since the last packet.
    lost_since: BTreeMap<&'static str, u64>,
}

/// The writer, or its first error: nothing is written after it.
struct Blocks<W: Write>(io::Result<PcapNgWriter<W>>);

impl<W: Write> Blocks<W> {
    fn new(out: W) -> Blocks<W> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication("lastmile".into())],
            ..SectionHeaderBlock::default()
        };
        Blocks(PcapNgWriter::with_section_header(out, section).map_err(io_error))
    }

    fn write<'a>(&mut self, block: impl PcapNgBlock<'a>) {
        if let Ok(writer) = &mut self.0
            && let Err(error) = writer.write_pcapng_block(block)
        {
            self.0 = Err(io_error(error));
        }
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

struct File<W: Write> {
    blocks: Blocks<W>,
    interfaces: Vec<Interface>,
    /// Of each node of the engine, its interface, and true if that is a host's.
    nodes: Vec<Option<(usize, bool)>>,
    /// By the label of a flow, segments and ACKs alike, the place in `connections`.
    flows: Vec<Option<usize>>,
    connections: Vec<Connection>,
    packet: Vec<u8>,
    last: Time,
}

impl<W: Write> File<W> {
    fn write(&mut self, at: usize, now: Time, direction: u32, datagram: &Datagram) {
        let interface = &mut self.interfaces[at];
        let Some(number) = interface.number else { return };
        self.packet.clear();
        let flow = self.flows.get(datagram.flow.0 as usize).copied().flatten();
        let connection = flow.and_then(|connection| self.connections.get_mut(connection));
        let original = write_packet(datagram, connection, &mut self.packet);
        let mut options = Vec::new();
        if direction != 0 {
            options.push(EnhancedPacketOption::Flags(direction));
        }
        let lost = std::mem::take(&mut interface.lost_since);
        if !lost.is_empty() {
            let causes: Vec<_> = lost.iter().map(|(cause, packets)| format!("{packets} {cause}")).collect();
            options.push(EnhancedPacketOption::DropCount(lost.values().sum()));
            let comment = format!("lost before this packet: {}", causes.join(", "));
            options.push(EnhancedPacketOption::Comment(comment.into()));
        }
        interface.packets += 1;
        self.blocks.write(EnhancedPacketBlock {
            interface_id: number,
            timestamp: Duration::from_nanos(now.as_nanos()),
            original_len: original,
            data: self.packet.as_slice().into(),
            options,
        });
    }

    fn tap(&mut self, now: Time, from: NodeId, to: NodeId, datagram: &Datagram) {
        self.last = now;
        let of = |node: NodeId| self.nodes.get(node.0 as usize).copied().flatten();
        let (from, to) = (of(from), of(to));
        if let Some((interface, is_host)) = from {
            self.write(interface, now, if is_host { OUTBOUND } else { 0 }, datagram);
        }
        if let Some((interface, true)) = to {
            self.write(interface, now, INBOUND, datagram);
        }
    }

    fn lost(&mut self, node: NodeId, lost: &Lost<'_>) {
        if let Some((interface, false)) = self.nodes.get(node.0 as usize).copied().flatten() {
            self.interfaces[interface].lost += 1;
            *self.interfaces[interface].lost_since.entry(lost.cause.name()).or_insert(0) += 1;
        }
    }
}

/// A capture under way. Keeps the first error of its writer until [`finish`](Capture::finish).
pub struct Capture<W: Write>(Arc<Mutex<File<W>>>);

impl<W: Write + Send + 'static> Capture<W> {
    /// Begins to write all that the simulation's interfaces carry, or those that are selected.
    pub fn attach(scenario: &Scenario, simulation: &mut Simulation, select: &Select, out: W) -> Capture<W> {
        let mut blocks = Blocks::new(out);
        let mut written = 0;
        let names = interfaces(scenario);
        let mut all = vec![Interface::default(); names.len()];
        for (name, (interface, description)) in names.iter().zip(all.iter_mut().zip(descriptions(scenario))) {
            if select.has(name) {
                let options = vec![
                    InterfaceDescriptionOption::IfName(name.into()),
                    InterfaceDescriptionOption::IfDescription(description.into()),
                    InterfaceDescriptionOption::IfTsResol(9), // 10^-9 s
                ];
                // Raw IP, IPv4 and IPv6 alike.
                blocks.write(InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: SNAP, options });
                interface.number = Some(written);
                written += 1;
            }
        }
        let nodes = nodes(scenario, simulation);
        let (mut flows, mut connections) = (Vec::new(), Vec::new());
        for (spec, label) in scenario.traffic.iter().zip(&simulation.traffic_flows) {
            if let Some(tcp) = &spec.tcp {
                let first = label.0 as usize;
                flows.resize(flows.len().max(first + 2), None);
                flows[first..first + 2].fill(Some(connections.len()));
                connections.push(Connection::new(tcp.config.segment.0));
            }
        }
        let file =
            File { blocks, interfaces: all, nodes, flows, connections, packet: Vec::new(), last: Time::ZERO };
        let file = Arc::new(Mutex::new(file));
        let shared = Arc::clone(&file);
        simulation.engine.set_tap(Box::new(move |now, from, to, datagram| {
            shared.lock().unwrap_or_else(PoisonError::into_inner).tap(now, from, to, datagram);
        }));
        let shared = Arc::clone(&file);
        simulation.engine.add_lost_tap(Box::new(move |_, node, lost| {
            shared.lock().unwrap_or_else(PoisonError::into_inner).lost(node, lost);
        }));
        Capture(file)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first error of the writer, at whatever packet it was.
    pub fn finish(self) -> io::Result<()> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let File { blocks, interfaces, last, .. } = &mut *file;
        for interface in interfaces.iter() {
            if let Some(interface_id) = interface.number {
                let options = vec![
                    InterfaceStatisticsOption::IsbIfRecv(interface.packets),
                    InterfaceStatisticsOption::IsbIfDrop(interface.lost),
                ];
                // The crate takes the two halves of this time as they stand in the file, the high one first.
                let timestamp = last.as_nanos().rotate_left(32);
                blocks.write(InterfaceStatisticsBlock { interface_id, timestamp, options });
            }
        }
        match &mut blocks.0 {
            Ok(writer) => writer.get_mut().flush(),
            Err(error) => Err(std::mem::replace(error, io::ErrorKind::Other.into())),
        }
    }
}

/// Description of each interface.
fn descriptions(scenario: &Scenario) -> impl Iterator<Item = String> {
    let hosts = scenario.hosts.iter().map(|host| format!("host {}, {}", host.v4, host.v6));
    let links = scenario.links.iter().map(|link| match link.config.rate {
        Some(rate) => format!("link of {rate}, {}", link.config.delay),
        None => format!("link of {}", link.config.delay),
    });
    let wlans = scenario.wlans.iter().map(|wlan| {
        let stations: Vec<_> = wlan.config.station.iter().map(|station| station.name.as_str()).collect();
        let text = format!("WLAN of {}", stations.join(", "));
        text.chars().take(MAX_DESCRIPTION).collect()
    });
    hosts.chain(links).chain(wlans)
}

/// Of each node of the engine, its interface, and true if that is a host's. Traffic's sources and sinks stand at
/// hosts; of a node that is nobody's, nothing is written.
fn nodes(scenario: &Scenario, simulation: &Simulation) -> Vec<Option<(usize, bool)>> {
    let mut nodes = vec![None; simulation.engine.elements().count()];
    let mut set = |node: NodeId, interface: usize, is_host: bool| {
        if let Some(slot) = nodes.get_mut(node.0 as usize) {
            *slot = Some((interface, is_host));
        }
    };
    simulation.hosts.iter().enumerate().for_each(|(host, &node)| set(node, host, true));
    let between = simulation.links.iter().chain(&simulation.wlans);
    between.enumerate().for_each(|(place, &node)| set(node, scenario.hosts.len() + place, false));
    let ends = simulation.sources.iter().zip(&simulation.sinks);
    for (flow, (&source, &sink)) in scenario.traffic.iter().zip(ends) {
        set(source, flow.from, true);
        set(sink, flow.to, true);
    }
    nodes
}
