//! QUIC at the rate of our controllers: two endpoints of noq-proto in memory, a link of 4 Mbit/s with 40 ms there and back, a queue of 100 ms
//! and 2 % of random loss, in virtual time. Prints what arrived, beside noq's own CUBIC.
//!
//! `cargo run -p lastmile-peers --features noq --example quic [CONTROLLER...]`

use std::collections::VecDeque;
use std::error::Error;
use std::net::{Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lastmile::control::Setting;
use lastmile::rng::Stream;
use lastmile::units::Rate;
use lastmile_peers::noq::Factory;
use noq_proto::congestion::{ControllerFactory, CubicConfig};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, FourTuple,
    ServerConfig, StreamId, TransportConfig,
};

const RATE_BPS: f64 = 4e6;
const DELAY: Duration = Duration::from_millis(20);
const QUEUE: Duration = Duration::from_millis(100);
const LOSS: f64 = 0.02;
const RUN: Duration = Duration::from_secs(30);

/// Datagrams on their way, by the time of arrival.
type Wire = VecDeque<(Instant, Vec<u8>)>;

struct Side {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    peer: SocketAddr,
    inbound: Wire,
}

impl Side {
    /// Takes what has arrived and what is due; gives the datagrams that leave.
    fn drive(&mut self, now: Instant) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
        let (mut out, mut buffer) = (Vec::new(), Vec::new());
        while self.inbound.front().is_some_and(|(at, _)| *at <= now) {
            let Some((at, datagram)) = self.inbound.pop_front() else { break };
            let path = FourTuple::new(self.peer, None);
            match self.endpoint.handle(at, path, None, datagram[..].into(), &mut buffer) {
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let accepted = self.endpoint.accept(incoming, at, &mut buffer, None);
                    self.connection = Some(accepted.map_err(|error| error.cause.clone())?);
                }
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    if let Some((_, own)) = &mut self.connection {
                        own.handle_event(event);
                    }
                }
                _ => {}
            }
            buffer.clear();
        }
        let Some((handle, connection)) = &mut self.connection else { return Ok(out) };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(transmit) = connection.poll_transmit(now, NonZeroUsize::MIN, &mut buffer) {
            out.push(buffer[..transmit.size].to_vec());
            buffer.clear();
        }
        Ok(out)
    }

    fn next(&self) -> Option<Instant> {
        let due = self.connection.as_ref().and_then(|(_, own)| own.poll_timeout());
        self.inbound.front().map(|(at, _)| *at).into_iter().chain(due).min()
    }
}

/// A link: each datagram waits for those before it, is lost at random or where the queue is full, or arrives.
struct Link {
    free: Instant,
    random: Stream,
    waited_s: f64,
    count: u32,
}

impl Link {
    fn take(&mut self, now: Instant, datagram: Vec<u8>, to: &mut Wire) {
        let waits = self.free.saturating_duration_since(now);
        (self.waited_s, self.count) = (self.waited_s + waits.as_secs_f64(), self.count + 1);
        if waits > QUEUE || self.random.unit() < LOSS {
            return;
        }
        let takes = Duration::from_secs_f64((datagram.len() + 28) as f64 * 8.0 / RATE_BPS);
        self.free = self.free.max(now) + takes;
        to.push_back((self.free + DELAY, datagram));
    }
}

/// Mbit/s that the server read, and the mean wait in the queue in ms.
fn run(factory: Arc<dyn ControllerFactory + Send + Sync>) -> Result<(f64, f64), Box<dyn Error>> {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = noq_proto::rustls::pki_types::PrivateKeyDer::Pkcs8(own.signing_key.serialize_der().into());
    let mut roots = noq_proto::rustls::RootCertStore::empty();
    roots.add(own.cert.der().clone())?;
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(factory);
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport));
    let server = Arc::new(ServerConfig::with_single_cert(vec![own.cert.der().clone()], key)?);
    let mut seeded = EndpointConfig::default();
    seeded.rng_seed(Some([7; 32]));
    let seeded = Arc::new(seeded);
    let address = |port| SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port);
    let side = |server, peer| Side {
        endpoint: Endpoint::new(seeded.clone(), server, true),
        connection: None,
        peer,
        inbound: Wire::new(),
    };
    let (mut client, mut server) = (side(None, address(2)), side(Some(server), address(1)));
    let begin = Instant::now();
    client.connection = Some(client.endpoint.connect(begin, config, address(2), "localhost")?);
    let mut link = Link { free: begin, random: Stream::new(1, "loss"), waited_s: 0.0, count: 0 };
    let (mut now, mut stream, mut read) = (begin, None::<StreamId>, 0_u64);
    while now < begin + RUN {
        if let Some((_, own)) = &mut client.connection {
            while own.poll().is_some() {}
            if stream.is_none() && !own.is_handshaking() {
                stream = own.streams().open(Dir::Uni);
            }
            // As much as it takes.
            while stream.is_some_and(|id| own.send_stream(id).write(&[0; 16_384]).is_ok()) {}
        }
        for datagram in client.drive(now)? {
            link.take(now, datagram, &mut server.inbound);
        }
        for datagram in server.drive(now)? {
            client.inbound.push_back((now + DELAY, datagram));
        }
        if let Some((_, own)) = &mut server.connection {
            while own.poll().is_some() {}
            let id = StreamId::new(noq_proto::Side::Client, Dir::Uni, 0);
            if let Ok(mut chunks) = own.recv_stream(id).read(true) {
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    read += chunk.bytes.len() as u64;
                }
                let _ = chunks.finalize();
            }
        }
        let next = [client.next(), server.next()].into_iter().flatten().min();
        now = next.ok_or("nothing is due")?.max(now + Duration::from_micros(10));
    }
    let mean_ms = link.waited_s / f64::from(link.count.max(1)) * 1e3;
    Ok((read as f64 * 8.0 / RUN.as_secs_f64() / 1e6, mean_ms))
}

#[expect(clippy::print_stdout, reason = "an example's output")]
fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let names = if names.is_empty() { vec!["lastmile".to_owned(), "vtp".to_owned()] } else { names };
    let setting = Setting { start: Some(Rate::ip(500_000)), ..Setting::default() };
    let cubic = ("noq's CUBIC".to_owned(), Arc::new(CubicConfig::default()) as Arc<_>);
    let mut all: Vec<(String, Arc<dyn ControllerFactory + Send + Sync>)> = vec![cubic];
    for name in names {
        all.push((name.clone(), Arc::new(Factory::new(&name.parse()?, &setting)?)));
    }
    for (name, factory) in all {
        let (mbit, queue_ms) = run(factory)?;
        println!("{name}: {mbit:.2} Mbit/s, {queue_ms:.1} ms of queue");
    }
    Ok(())
}
