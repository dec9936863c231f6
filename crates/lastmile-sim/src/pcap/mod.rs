//! [`Capture`]: what the simulated interfaces carry, as a pcapng file that Wireshark opens.
//!
//! One interface for every host (what it sends and receives) and for every direction of a link (what arrives at its
//! far end). The simulator's own packets have a size and no bytes: they get headers and no payload, with the
//! original length beside. Times are nanoseconds of the run since 1970.
//!
//! Format: draft-ietf-opsawg-pcapng, sections 4.1 (section header), 4.2 (interface), 4.3 (enhanced packet).

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use lastmile::node::Datagram;
use lastmile::time::Time;

use crate::engine::NodeId;
use crate::scenario::{Scenario, Simulation};

mod headers;

use headers::write_packet;

/// Raw IP, IPv4 and IPv6 alike (LINKTYPE_RAW).
const LINK_TYPE: u16 = 101;
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Writes blocks of a pcapng file.
struct Writer<W> {
    out: W,
    block: Vec<u8>,
    packet: Vec<u8>,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    fn flush_block(&mut self, kind: u32) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        if self.failed.is_none() {
            let parts: [&[u8]; 4] = [&kind.to_le_bytes(), &length, &self.block, &length];
            self.failed = parts.iter().try_for_each(|part| self.out.write_all(part)).err();
        }
        self.block.clear();
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.block.extend_from_slice(value);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn section(&mut self) {
        self.block.extend_from_slice(&BYTE_ORDER.to_le_bytes());
        self.block.extend_from_slice(&[1, 0, 0, 0]); // version 1.0
        self.block.extend_from_slice(&u64::MAX.to_le_bytes()); // length unknown
        self.option(4, b"lastmile"); // shb_userappl
        self.option(0, b"");
        self.flush_block(SECTION);
    }

    fn interface(&mut self, name: &str) {
        self.block.extend_from_slice(&LINK_TYPE.to_le_bytes());
        self.block.extend_from_slice(&[0; 6]); // reserved, no snapshot length
        self.option(2, name.as_bytes()); // if_name
        self.option(9, &[9]); // if_tsresol: 10^-9 s
        self.option(0, b"");
        self.flush_block(INTERFACE);
    }

    fn packet(&mut self, interface: u32, now: Time, direction: u32, datagram: &Datagram) {
        self.packet.clear();
        let original = write_packet(datagram, &mut self.packet);
        let (high, low) = ((now.as_nanos() >> 32) as u32, now.as_nanos() as u32);
        for word in [interface, high, low, self.packet.len() as u32, original] {
            self.block.extend_from_slice(&word.to_le_bytes());
        }
        self.block.extend_from_slice(&self.packet);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
        if direction != 0 {
            self.option(2, &direction.to_le_bytes()); // epb_flags
            self.option(0, b"");
        }
        self.flush_block(PACKET);
    }
}

/// A capture under way. Keeps the first error of its writer until [`finish`](Capture::finish).
///
/// ```
/// use lastmile::time::Time;
/// use lastmile_sim::{pcap::Capture, scenario::*};
/// use std::sync::{Arc, Mutex};
/// #[derive(Clone, Default)]
/// struct Shared(Arc<Mutex<Vec<u8>>>);
/// impl std::io::Write for Shared {
///     fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> { self.0.lock().unwrap().write(bytes) }
///     fn flush(&mut self) -> std::io::Result<()> { Ok(()) }
/// }
/// let scenario = builtin("path").unwrap();
/// let mut run = build(&scenario, 1, vec![])?;
/// let file = Shared::default();
/// let capture = Capture::attach(&scenario, &mut run, file.clone());
/// run.engine.run_until(Time::from_nanos(1_000_000_000))?;
/// capture.finish().unwrap();
/// assert_eq!(file.0.lock().unwrap()[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
/// # Ok::<(), BuildError>(())
/// ```
pub struct Capture<W>(Arc<Mutex<Writer<W>>>);

impl<W: Write + Send + 'static> Capture<W> {
    /// Begins to write all that the simulation's interfaces carry.
    pub fn attach(scenario: &Scenario, simulation: &mut Simulation, out: W) -> Capture<W> {
        let mut writer = Writer { out, block: Vec::new(), packet: Vec::new(), failed: None };
        writer.section();
        scenario.hosts.iter().for_each(|host| writer.interface(&host.name));
        for link in &scenario.links {
            let (from, to) = (scenario.vertex_name(link.from), scenario.vertex_name(link.to));
            writer.interface(&format!("{from}>{to}"));
        }
        // Traffic's sources and sinks stand at hosts; of a node that is nobody's, nothing is written.
        let mut interfaces: Vec<Option<(u32, bool)>> = vec![None; simulation.engine.elements().count()];
        let mut set = |node: NodeId, interface: usize, is_host: bool| {
            if let Some(slot) = interfaces.get_mut(node.0 as usize) {
                *slot = Some((interface as u32, is_host));
            }
        };
        simulation.hosts.iter().enumerate().for_each(|(host, &node)| set(node, host, true));
        for (link, &node) in simulation.links.iter().enumerate() {
            set(node, scenario.hosts.len() + link, false);
        }
        for (flow, (&source, &sink)) in
            scenario.traffic.iter().zip(simulation.sources.iter().zip(&simulation.sinks))
        {
            set(source, flow.from, true);
            set(sink, flow.to, true);
        }
        let writer = Arc::new(Mutex::new(writer));
        let shared = Arc::clone(&writer);
        simulation.engine.set_tap(Box::new(move |now, from, to, datagram| {
            let mut writer = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let of = |node: NodeId| interfaces.get(node.0 as usize).copied().flatten();
            if let Some((interface, is_host)) = of(from) {
                writer.packet(interface, now, if is_host { OUTBOUND } else { 0 }, datagram);
            }
            if let Some((interface, true)) = of(to) {
                writer.packet(interface, now, INBOUND, datagram);
            }
        }));
        Capture(writer)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first error of the writer, at whatever packet it was.
    pub fn finish(self) -> io::Result<()> {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match writer.failed.take() {
            Some(error) => Err(error),
            None => writer.out.flush(),
        }
    }
}
