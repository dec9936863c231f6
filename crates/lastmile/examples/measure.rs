// Measures the path to a host that runs `lastmile serve`, over std's sockets: `measure ADDRESS:PORT`.
#![allow(missing_docs, clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout)] // a driver's own
use lastmile::estimate::{self, Conditions};
use lastmile::{Datagram, Decision, Direction, Epoch, Failure, Input, Measurement, Node, Output, PortId};
use lastmile::{Endpoint, Prober, ProberConfig, Span, Time};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime};
use std::{collections::BTreeMap, error::Error, io};

fn main() -> Result<(), Box<dyn Error>> {
    let peer: SocketAddr = std::env::args().nth(1).ok_or("usage: measure ADDRESS:PORT")?.parse()?;
    let socket = UdpSocket::bind(if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    let conditions = Conditions { timing_noise: Span::from_micros(50), ..Default::default() }; // of user space
    let estimator = estimate::build(&"wbest".parse()?, &conditions)?;
    let measurement = Measurement { method: "wbest".into(), direction: Direction::Forward, estimator };
    let epoch = Epoch::from_unix_nanos(SystemTime::UNIX_EPOCH.elapsed()?.as_nanos() as u64);
    let mut prober = Prober::new(ProberConfig { epoch, ..ProberConfig::new(peer, seed) }, vec![measurement]);
    Ok(drive(&socket, &mut prober, |decision| match decision {
        Decision::Estimated { estimate, .. } => println!("{}: {}", estimate.quantity, estimate.value),
        Decision::Refused { refusal, .. } => println!("no result: {refusal}"),
        _ => {}
    })?)
}

pub(crate) fn drive(s: &UdpSocket, prober: &mut Prober, mut tell: impl FnMut(Decision)) -> io::Result<()> {
    let (start, local, mut buffer) = (Instant::now(), s.local_addr()?, [0; 65_535]);
    let now = || Time::from_nanos(start.elapsed().as_nanos() as u64);
    let (mut inputs, mut planned, mut wake) = (vec![Input::Wake], BTreeMap::new(), None);
    while !prober.is_finished() {
        for input in inputs.drain(..) {
            let at = now(); // one time for `handle` and for all of `poll` until the next
            prober.handle(at, input);
            wake = loop {
                match prober.poll(at) {
                    Output::Transmit(packet) => _ = planned.insert((packet.at, packet.id), packet),
                    Output::Event(decision) => tell(decision),
                    Output::Wait(until) => break until,
                }
            };
        }
        let next = planned.keys().next().map(|key| key.0).into_iter().chain(wake).min().unwrap_or(Time::MAX);
        let spare = next - now() - Span::from_millis(10); // a timeout may end late, by a tick of the kernel
        s.set_nonblocking(spare <= Span::ZERO)?; // so near a deadline the socket is looked at and not waited for
        s.set_read_timeout(Some(Duration::from_nanos(spare.as_nanos().max(1) as u64)))?;
        if let Ok((n, from)) = s.recv_from(&mut buffer) {
            let datagram = Datagram::udp(from, local, buffer[..n].to_vec());
            inputs.push(Input::Datagram { port: PortId(0), at: now(), datagram });
        }
        while let Some(first) = planned.first_entry().filter(|first| first.key().0 <= now()) {
            let packet = first.remove(); // what is due leaves back to back, before the prober is told of any
            let sent = s.send_to(packet.datagram.payload.udp().unwrap_or_default(), packet.datagram.to);
            let failed = Input::Failed { port: packet.port, id: Some(packet.id), reason: Failure::Host };
            inputs.push(sent.map_or(failed, |_| Input::Sent { id: packet.id, at: now() }));
        }
        inputs.extend(wake.filter(|&at| at <= now()).map(|_| Input::Wake));
    }
    Ok(())
}
