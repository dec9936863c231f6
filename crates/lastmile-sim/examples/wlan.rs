//! Measures what WLAN saturation costs: ten stations, 1500 bytes, 11 and 54 Mbit/s. CPU seconds per simulated
//! second, packets, peak resident memory.
//!
//! `cargo run --release -p lastmile-sim --example wlan [simulated seconds]`
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout)] // a stopwatch needs a clock

use lastmile::node::Flow;
use lastmile::rng::Stream;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::engine::{Engine, Target};
use lastmile_sim::network::traffic::{Arrivals, Sink, Source, SourceConfig};
use lastmile_sim::network::wlan::{AmpduConfig, Medium, Standard, StationConfig, WlanConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(60);
    let ampdu = Some(AmpduConfig::default());
    // The load of the ns-2 and ns-3 programs: three quarters of the PHY rate by every two stations.
    for (name, standard, mbps, ampdu) in [
        ("b, 11 Mbit/s", Standard::B, 1.65, None),
        ("g, 54 Mbit/s", Standard::G, 8.1, None),
        ("n, A-MPDU", Standard::N, 9.75, ampdu),
    ] {
        for stations in [10, 100] {
            let config = WlanConfig { standard, ampdu: ampdu.clone(), ..Default::default() };
            measure(name, config, stations, mbps * 10.0 / f64::from(stations), seconds)?;
        }
    }
    Ok(())
}

fn measure(
    name: &str,
    mut config: WlanConfig,
    stations: u32,
    mbps: f64,
    seconds: i64,
) -> Result<(), Box<dyn std::error::Error>> {
    config.station.push(StationConfig { name: "ap".into(), ..Default::default() });
    for k in 0..stations {
        let station = StationConfig { name: format!("sta{k}"), ap: Some("ap".into()), ..Default::default() };
        config.station.push(station);
    }
    let mut engine = Engine::new();
    let medium = Medium::new(&config, 1, "speed")?;
    let uplinks: Vec<_> = medium.directions().filter(|d| d.2 == 0).map(|d| d.0).collect();
    let wlan = engine.add(medium)?;
    let any = "10.77.0.1:9".parse()?;
    let stop = Time::ZERO + Span::from_secs(seconds);
    let mut sinks = Vec::new();
    for (flow, port) in uplinks.into_iter().enumerate() {
        let source = SourceConfig {
            arrivals: Arrivals::Cbr,
            rate: Rate::ip((mbps * 1e6) as u64),
            ip_size: Bytes(1500),
            start: Time::ZERO,
            stop,
            flow: Flow(flow as u32),
            from: any,
            to: any,
        };
        let source = engine.add(Source::new(source, Stream::new(1, &format!("flow {flow}"))))?;
        engine.connect(source, Target::Port(wlan, port));
        let sink = engine.add(Sink::default())?;
        engine.connect_port(wlan, port, Target::Node(sink))?;
        sinks.push(sink);
    }
    let before = cpu_seconds();
    engine.run_until(stop)?;
    let took = cpu_seconds() - before;
    let packets: u64 = sinks.iter().filter_map(|&s| engine.sink(s)).map(|s| s.counters().packets).sum();
    println!(
        "{name}, {stations} stations: {:.6} CPU s per simulated s, {packets} packets, {:.2} Mbit/s, peak {:.1} MB",
        took / seconds as f64,
        packets as f64 * 12_000.0 / seconds as f64 / 1e6,
        peak_mb()
    );
    Ok(())
}

/// User and system time of this process so far, in ticks of 10 ms; zero where the system does not say.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
    let ticks = |field: usize| fields.get(field).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().split(' ').next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
