//! QUIC at the rate of our controllers, beside noq's own CUBIC and BBR: two endpoints of noq-proto in memory, a link of 4 Mbit/s with 40 ms
//! there and back, a queue of 100 ms and 2 % of random loss, in virtual time. Prints what arrived: means over the seeds with their 95 %
//! intervals. Or one end of a transfer over real sockets, such as those of two hosts of `lastmile lab`.
//!
//! ```text
//! cargo run -p lastmile-peers --features noq --example quic [SEEDS] [CONTROLLER...]
//! quic serve PORT CERTIFICATE_FILE
//! quic send ADDRESS:PORT CERTIFICATE_FILE SECONDS CONTROLLER
//! ```

mod side;
mod udp;

use std::error::Error;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lastmile::control::Setting;
use lastmile::rng::Stream;
use lastmile::units::Rate;
use lastmile_peers::noq::Factory;
use lastmile_report::Mean;
use noq_proto::congestion::{Bbr3Config, ControllerFactory, CubicConfig};
use side::{Own, Side, Wire};

/// Makes controllers of either kind.
type Factories = Arc<dyn ControllerFactory + Send + Sync>;

const RATE_BPS: f64 = 4e6;
const DELAY: Duration = Duration::from_millis(20);
const QUEUE: Duration = Duration::from_millis(100);
const LOSS: f64 = 0.02;
const RUN: Duration = Duration::from_secs(30);

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
fn run(seed: u64, factory: Factories) -> Result<(f64, f64), Box<dyn Error>> {
    let own = Own::new()?;
    let address = |port| SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port);
    let (mut client, mut server) =
        (Side::new(seed, None, address(2)), Side::new(seed, Some(&own), address(1)));
    let begin = Instant::now();
    client.connect(begin, &own.certificate, factory)?;
    let mut link = Link { free: begin, random: Stream::new(seed, "loss"), waited_s: 0.0, count: 0 };
    let (mut now, mut read) = (begin, 0_u64);
    while now < begin + RUN {
        client.write();
        for datagram in client.drive(now)? {
            link.take(now, datagram, &mut server.inbound);
        }
        for datagram in server.drive(now)? {
            client.inbound.push_back((now + DELAY, datagram));
        }
        read += server.read();
        let next = [client.next(), server.next()].into_iter().flatten().min();
        now = next.ok_or("nothing is due")?.max(now + Duration::from_micros(10));
    }
    let mean_ms = link.waited_s / f64::from(link.count.max(1)) * 1e3;
    Ok((read as f64 * 8.0 / RUN.as_secs_f64() / 1e6, mean_ms))
}

/// noq's by their names, and any of ours.
fn factory(name: &str) -> Result<Factories, Box<dyn Error>> {
    let setting = Setting { start: Some(Rate::ip(500_000)), ..Setting::default() };
    Ok(match name {
        "noq-cubic" => Arc::new(CubicConfig::default()),
        "noq-bbr3" => Arc::new(Bbr3Config::default()),
        _ => Arc::new(Factory::new(&name.parse()?, &setting)?),
    })
}

/// A mean with its interval, with so many decimals.
fn told(values: &[f64], decimals: usize) -> String {
    let Some(mean) = Mean::of(values) else { return "-".to_owned() };
    let half = mean.half.map_or_else(String::new, |half| format!(" ±{half:.decimals$}"));
    format!("{:.decimals$}{half}", mean.mean)
}

#[expect(clippy::print_stdout, reason = "an example's output")]
fn main() -> Result<(), Box<dyn Error>> {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let texts: Vec<&str> = all.iter().map(String::as_str).collect();
    match texts[..] {
        ["serve", port, file] => return udp::serve(port.parse()?, file),
        ["send", to, file, seconds, name] => {
            return udp::send(to.parse()?, file, Duration::from_secs(seconds.parse()?), factory(name)?);
        }
        _ => {}
    }
    let seeds = texts.first().and_then(|first| first.parse::<u64>().ok());
    let mut names = texts[usize::from(seeds.is_some())..].to_vec();
    let seeds = seeds.unwrap_or(10);
    if names.is_empty() {
        names = vec!["lastmile", "vtp", "tfrc"];
    }
    println!("noq-proto 1.4.0, seeds 1 to {seeds}: means and their 95 % intervals");
    println!("| | Mbit/s | times CUBIC's, paired by seed | mean queue, ms | kB |\n|---|---|---|---|---|");
    let mut cubic = Vec::new();
    for name in ["noq-cubic", "noq-bbr3"].into_iter().chain(names) {
        let factory = factory(name)?;
        let runs = (1..=seeds).map(|seed| run(seed, factory.clone())).collect::<Result<Vec<_>, _>>()?;
        let (rates, queues): (Vec<f64>, Vec<f64>) = runs.into_iter().unzip();
        if cubic.is_empty() {
            cubic.clone_from(&rates);
        }
        let times: Vec<f64> = rates.iter().zip(&cubic).map(|(rate, of)| rate / of).collect();
        let bytes: Vec<f64> = queues.iter().map(|ms| ms * RATE_BPS / 8e6).collect();
        let row = [told(&rates, 2), told(&times, 2), told(&queues, 1), told(&bytes, 1)].join(" | ");
        println!("| `{name}` | {row} |");
    }
    Ok(())
}
