//! Packets that a reflector handles in a second on one core, in process: `cargo run --release --example
//! reflector_speed -p lastmile`. Each line is one kind of packet, with 1,000 sessions open; the last is the memory.

#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "it times itself")]

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use lastmile::endpoint::measure::{Key, Limits, Reflector, ReflectorConfig};
use lastmile::node::{Datagram, Input, Node, Output, Payload, PortId};
use lastmile::time::Time;
use lastmile::wire::private::{Abilities, HelloReply, HelloRequest, StreamTag, Token};
use lastmile::wire::{
    ControlCode, ErrorEstimate, HmacKey, Mode, PacketBuilder, Padding, SenderPacket, TlvType, TlvValue, Tlvs,
    WireError, tlv_area,
};

const SECRET: &[u8] = b"a key of many bytes";
const SESSIONS: u32 = 1_000;
const PACKETS: u32 = 2_000_000;

struct Bench {
    reflector: Reflector,
    key: Option<HmacKey>,
    tokens: Vec<Token>,
}

fn address(session: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::V4((0x0A00_0000 + session).into()), 9)
}

impl Bench {
    fn new(keyed: bool) -> Result<Bench, WireError> {
        let key = keyed.then(|| Key::new(SECRET)).transpose()?;
        let config = ReflectorConfig { key, limits: Limits::unlimited(), ..ReflectorConfig::new([7; 32]) };
        let key = keyed.then(|| HmacKey::new(SECRET)).transpose()?;
        let mut bench = Bench { reflector: Reflector::new(config), key, tokens: Vec::new() };
        for session in 0..SESSIONS {
            let hello = |token| HelloRequest {
                version_min: 1,
                version_max: 1,
                wanted: Abilities::ECN,
                nonce: 1,
                token,
            };
            let first = bench.packet(session, 0, |b| b.tlv(&hello([0; 16])))?;
            let reply = bench.handle(first).map(|d| d.payload);
            let Some(Payload::Udp(bytes)) = reply else { continue };
            let tlv = Tlvs::new(tlv_area(bench.mode(), &bytes)).flatten().find(|t| t.kind == TlvType::HELLO);
            let token = tlv.and_then(|t| HelloReply::decode_value(t.value).ok()).map(|h| h.offer.token);
            bench.tokens.push(token.unwrap_or_default());
            let second = bench.packet(session, 0, |b| b.tlv(&hello(token.unwrap_or_default())))?;
            bench.handle(second);
        }
        assert_eq!(bench.reflector.sessions(), SESSIONS as usize);
        Ok(bench)
    }

    fn mode(&self) -> Mode {
        if self.key.is_some() { Mode::Authenticated } else { Mode::Open }
    }

    fn packet(
        &self,
        session: u32,
        size: usize,
        add: impl FnOnce(PacketBuilder<'_>) -> Result<PacketBuilder<'_>, WireError>,
    ) -> Result<Datagram, WireError> {
        let error = ErrorEstimate::from_bits(1);
        let base = SenderPacket { sequence: session, timestamp: 7, error, ssid: 1 };
        let mut bytes = Vec::new();
        let mut b = add(PacketBuilder::sender(&mut bytes, self.mode(), &base))?;
        if let Some(key) = self.key.as_ref().filter(|_| b.size() > self.mode().base_len()) {
            b = b.tlv_hmac(key)?;
        }
        b = if size > 0 { b.pad_to(size, Padding::Zeros)? } else { b };
        if let Some(key) = &self.key {
            b.sign(key)?;
        }
        Ok(Datagram::udp(address(session), SocketAddr::from(([198, 51, 100, 1], 862)), bytes))
    }

    fn handle(&mut self, datagram: Datagram) -> Option<Datagram> {
        let now = Time::from_nanos(1);
        self.reflector.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
        let mut reply = None;
        loop {
            match self.reflector.poll(now) {
                Output::Transmit(transmit) => reply = Some(transmit.datagram),
                Output::Event(_) => {}
                Output::Wait(_) => return reply,
            }
        }
    }

    /// Sends copies of each session's packets, and puts a reply's buffer to use again as drivers may.
    #[expect(clippy::print_stdout, reason = "an example's output")]
    fn run(&mut self, what: &str, size: usize, tagged: bool) -> Result<(), WireError> {
        let packets =
            (0..SESSIONS * 4).map(|i| {
                let (session, token) = (i % SESSIONS, self.tokens[(i % SESSIONS) as usize]);
                let tag = StreamTag { stream: 1, index: (i / SESSIONS) as u16, count: 60, burst: 0, token };
                self.packet(session, size, |b| {
                    if tagged { b.tlv(&tag)?.tlv(&ControlCode::NoReply) } else { Ok(b) }
                })
            });
        let packets = packets.collect::<Result<Vec<_>, _>>()?;
        let started = Instant::now();
        for i in 0..PACKETS {
            std::hint::black_box(self.handle(packets[i as usize % packets.len()].clone()));
        }
        let seconds = started.elapsed().as_secs_f64();
        println!("{what:<48} {:>6.2} million packets/s", f64::from(PACKETS) / seconds / 1e6);
        Ok(())
    }
}

#[expect(clippy::print_stdout, reason = "an example's output")]
fn main() -> Result<(), WireError> {
    let mut open = Bench::new(false)?;
    open.run("plain STAMP, 44 bytes, reflected", 0, false)?;
    open.run("plain STAMP, 1460 bytes, reflected", 1_460, false)?;
    open.run("stream packet, 1460 bytes, logged", 1_460, true)?;
    let mut keyed = Bench::new(true)?;
    keyed.run("authenticated, 112 bytes, reflected", 0, false)?;
    keyed.run("authenticated, 1460 bytes, reflected", 1_460, false)?;
    keyed.run("authenticated stream packet, 1460 bytes, logged", 1_460, true)?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM unknown");
    println!("two reflectors with {SESSIONS} sessions each: {peak}");
    Ok(())
}
