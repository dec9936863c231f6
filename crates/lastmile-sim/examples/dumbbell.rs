//! Measures what TCP costs: NewReno flows over a dumbbell of 100 Mbit/s, 10 ms and 200 packets of queue, with access
//! links of 1 Gbit/s and 1 ms, as ns-2 and ns-3 were measured on. CPU seconds per simulated second, packets, peak memory.
//!
//! `cargo run --release -p lastmile-sim --example dumbbell [simulated seconds]`
#![allow(clippy::print_stdout)] // a report

use lastmile::node::Flow;
use lastmile::rng::Stream;
use lastmile::time::{Span, Time};
use lastmile::units::Rate;
use lastmile_sim::network::engine::{Engine, EngineError, Target};
use lastmile_sim::network::link::{Link, LinkConfig, QueueLimit};
use lastmile_sim::network::tcp::{App, Ends, Receiver, Recovery, Sender, TcpConfig};

fn main() -> Result<(), EngineError> {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(15);
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        for flows in [10, 1, 100, 1000] {
            measure(recovery, flows, seconds)?;
        }
    }
    Ok(())
}

fn link(mbits: u64, delay: Span, queue: u32) -> Link {
    let queue = QueueLimit::Packets(queue);
    Link::new(LinkConfig { rate: Some(Rate::ip(mbits * 1_000_000)), delay, queue, ..Default::default() })
}

fn measure(recovery: Recovery, flows: u32, seconds: i64) -> Result<(), EngineError> {
    let mut engine = Engine::new();
    let (forth, back) = (engine.add_router(), engine.add_router());
    // ns-2's DropTail with limit N holds N - 1 beside the packet in transmission.
    let bottleneck = engine.add(link(100, Span::from_millis(10), 199))?;
    let reverse = engine.add(link(100, Span::from_millis(10), 9_999))?;
    engine.connect(bottleneck, Target::Router(forth));
    engine.connect(reverse, Target::Router(back));
    let config = TcpConfig {
        recovery,
        ..TcpConfig { max_window: 3000, delayed_ack: Span::from_millis(100), ..TcpConfig::ns2() }
    };
    let any = "10.77.0.1:80".parse().expect("an address");
    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    for number in 0..flows {
        let ends = Ends { sender: any, receiver: any, data: Flow(2 * number), acks: Flow(2 * number + 1) };
        let start = Time::ZERO + Span::from_millis(100 + 500 * i64::from(number) / i64::from(flows));
        let random = Stream::new(1, &format!("tcp/{number}"));
        let sender = engine.add(Sender::new(&config, ends, App::Bulk, start, Time::MAX, random))?;
        let receiver = engine.add(Receiver::new(&config, ends))?;
        let access = |engine: &mut Engine| engine.add(link(1000, Span::from_millis(1), 9_999));
        let (up, down) = (access(&mut engine)?, access(&mut engine)?);
        let (ack_up, ack_down) = (access(&mut engine)?, access(&mut engine)?);
        engine.connect(sender, Target::Node(up));
        engine.connect(up, Target::Node(bottleneck));
        engine.route(forth, ends.data, down);
        engine.connect(down, Target::Node(receiver));
        engine.connect(receiver, Target::Node(ack_up));
        engine.connect(ack_up, Target::Node(reverse));
        engine.route(back, ends.acks, ack_down);
        engine.connect(ack_down, Target::Node(sender));
        senders.push(sender);
        receivers.push(receiver);
    }
    let before = cpu_seconds();
    engine.run_until(Time::ZERO + Span::from_secs(seconds))?;
    let took = cpu_seconds() - before;
    let data: u64 =
        receivers.iter().filter_map(|&r| engine.tcp_receiver(r)).map(|r| r.counters().segments).sum();
    let acked: u64 =
        senders.iter().filter_map(|&s| engine.tcp_sender(s)).map(|s| s.counters().acknowledged).sum();
    let acks: u64 = receivers.iter().filter_map(|&r| engine.tcp_receiver(r)).map(|r| r.counters().acks).sum();
    let drops = engine.link(bottleneck).map_or(0, |link| link.counters().drops);
    println!(
        "{recovery:?} {flows:4} flows: {:.5} CPU s per simulated s, {data} packets and {acks} ACKs, {:.0} ns for each of both, goodput {:.2} Mbit/s, \
         {drops} drops, {:.1} MB at peak so far",
        took / seconds as f64,
        took * 1e9 / (data + drops + acks) as f64,
        acked as f64 * 1460.0 * 8.0 / seconds as f64 / 1e6,
        peak_megabytes()
    );
    Ok(())
}

/// The process' CPU time in user mode and in the kernel, from the first line of `/proc/self/schedstat`.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

fn peak_megabytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok()).unwrap_or(f64::NAN)
        / 1024.0
}
