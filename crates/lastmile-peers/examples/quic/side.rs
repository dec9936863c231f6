//! An end of a QUIC connection without a socket: a server with a certificate of its own, or a client that sends as much as goes.

use std::collections::VecDeque;
use std::error::Error;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use noq_proto::congestion::ControllerFactory;
use noq_proto::rustls::RootCertStore;
use noq_proto::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, FourTuple,
    ServerConfig, StreamId, TransportConfig,
};

/// Datagrams on their way, by the time of arrival.
pub(crate) type Wire = VecDeque<(Instant, Vec<u8>)>;

/// A server's certificate, which it made itself, and what proves it.
pub(crate) struct Own {
    pub(crate) certificate: CertificateDer<'static>,
    server: Arc<ServerConfig>,
}

impl Own {
    pub(crate) fn new() -> Result<Own, Box<dyn Error>> {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
        let key = PrivateKeyDer::Pkcs8(own.signing_key.serialize_der().into());
        let certificate = own.cert.der().clone();
        let server = Arc::new(ServerConfig::with_single_cert(vec![certificate.clone()], key)?);
        Ok(Own { certificate, server })
    }
}

pub(crate) struct Side {
    endpoint: Endpoint,
    pub(crate) connection: Option<(ConnectionHandle, Connection)>,
    pub(crate) peer: SocketAddr,
    pub(crate) inbound: Wire,
    stream: Option<StreamId>,
}

impl Side {
    /// A server where it has a certificate.
    pub(crate) fn new(seed: u64, own: Option<&Own>, peer: SocketAddr) -> Side {
        let mut config = EndpointConfig::default();
        config.rng_seed(Some([seed as u8; 32]));
        let server = own.map(|own| own.server.clone());
        let endpoint = Endpoint::new(Arc::new(config), server, true);
        Side { endpoint, connection: None, peer, inbound: Wire::new(), stream: None }
    }

    /// Begins a connection to a server of that certificate.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        certificate: &CertificateDer<'static>,
        factory: Arc<dyn ControllerFactory + Send + Sync>,
    ) -> Result<(), Box<dyn Error>> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone())?;
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(factory);
        let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
        config.transport_config(Arc::new(transport));
        self.connection = Some(self.endpoint.connect(now, config, self.peer, "localhost")?);
        Ok(())
    }

    /// Writes as much as the connection takes.
    pub(crate) fn write(&mut self) {
        let Some((_, own)) = &mut self.connection else { return };
        while own.poll().is_some() {}
        if self.stream.is_none() && !own.is_handshaking() {
            self.stream = own.streams().open(Dir::Uni);
        }
        while self.stream.is_some_and(|id| own.send_stream(id).write(&[0; 16_384]).is_ok()) {}
    }

    /// Reads what the client wrote; its bytes.
    pub(crate) fn read(&mut self) -> u64 {
        let Some((_, own)) = &mut self.connection else { return 0 };
        while own.poll().is_some() {}
        let (mut read, id) = (0, StreamId::new(noq_proto::Side::Client, Dir::Uni, 0));
        if let Ok(mut chunks) = own.recv_stream(id).read(true) {
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                read += chunk.bytes.len() as u64;
            }
            let _ = chunks.finalize();
        }
        read
    }

    /// Takes what has arrived and what is due; gives the datagrams that leave.
    pub(crate) fn drive(&mut self, now: Instant) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
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

    /// When something is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        let due = self.connection.as_ref().and_then(|(_, own)| own.poll_timeout());
        self.inbound.front().map(|(at, _)| *at).into_iter().chain(due).min()
    }
}
