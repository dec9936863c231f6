//! Sends packet pairs to any STAMP reflector and prints the number that came back: `round_trip PEER [KEYFILE]`. Fails
//! unless all did. `make interop` runs it against another program's reflector.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use lastmile::endpoint::Endpoint;
use lastmile::endpoint::measure::Decision;
use lastmile::endpoint::measure::{Key, Measurement, Prober, ProberConfig};
use lastmile::estimate::{Estimator, Outcome, Refusal, Step, StreamPlan};
use lastmile::event::Event;
use lastmile::report::{Direction, StreamRecord};
use lastmile::time::Span;
use lastmile::units::Bytes;
use lastmile_net::driver::{Driver, DriverConfig};
use lastmile_net::udp::{UdpConfig, UdpSocket};

const PAIRS: usize = 20;

struct OneStream(Option<StreamPlan>);

impl Estimator for OneStream {
    fn step(&mut self) -> Step {
        match self.0.take() {
            Some(plan) => Step::Send(plan),
            None => Step::Done(Outcome::Refused(Refusal::NotConverged { streams: 1 })),
        }
    }
    fn on_stream(&mut self, _record: &StreamRecord) {}
}

#[expect(clippy::print_stdout, reason = "an example's output")]
fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let peer: SocketAddr = args.first().ok_or("usage: round_trip ADDRESS:PORT [KEYFILE]")?.parse()?;
    let key = args.get(1).map(std::fs::read).transpose()?.map(|bytes| Key::new(&bytes)).transpose()?;
    let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let mut driver =
        Driver::new(vec![UdpSocket::open(&UdpConfig::new(any.parse()?))?], DriverConfig::default())?;
    let plan = StreamPlan::pairs(PAIRS, Bytes(1_488), Span::from_millis(5));
    let measurement = Measurement {
        method: "round-trip".into(),
        direction: Direction::RoundTrip,
        estimator: Box::new(OneStream(Some(plan))),
    };
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    let config = ProberConfig { key, epoch: driver.epoch(), ..ProberConfig::new(peer, seed) };
    let mut prober = Prober::with_sink(config, vec![measurement], Vec::new());
    let mut trouble = Vec::new();
    let mut observer = |event: &Event<Decision>| match &event.what {
        Decision::Refused { refusal: Refusal::NotConverged { .. }, .. } => {}
        Decision::Refused { refusal, .. } => trouble.push(refusal.to_string()),
        _ => {}
    };
    driver.run(&mut prober, &mut observer, &AtomicBool::new(false), Prober::is_finished)?;
    if let Some(refusal) = trouble.first() {
        return Err(refusal.as_str().into());
    }
    let record = prober.sink().first().ok_or("no stream was sent")?;
    let rtts: Vec<Span> = (0..record.packets.len()).filter_map(|i| record.rtt(i)).collect();
    println!(
        "{} of {} probes came back; least round trip {:?}",
        rtts.len(),
        record.packets.len(),
        rtts.iter().min()
    );
    if rtts.len() < record.packets.len() {
        return Err(
            "probes were lost on the way to this host's own reflector, or their replies not understood"
                .into(),
        );
    }
    Ok(())
}
