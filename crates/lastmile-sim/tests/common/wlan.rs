//! CBR flows over a WLAN without anything around it.

use lastmile::node::{Flow, PortId};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::engine::{Engine, NodeId, Target};
use lastmile_sim::network::traffic::{Sink, Source, SourceConfig};
use lastmile_sim::network::wlan::{Medium, Standard, StationConfig, WlanConfig};
use lastmile_sim::rng::Stream;

/// A WLAN under CBR flows, at its end.
pub struct Run {
    pub engine: Engine,
    pub wlan: NodeId,
    pub sinks: Vec<NodeId>,
    pub seconds: f64,
}

impl Run {
    /// Mbit/s of IP packets that a flow brought through.
    pub fn mbps(&self, flow: usize) -> f64 {
        self.engine.sink(self.sinks[flow]).unwrap().counters().bytes.bits() as f64 / self.seconds / 1e6
    }
    pub fn total(&self) -> f64 {
        (0..self.sinks.len()).map(|flow| self.mbps(flow)).sum()
    }
    pub fn wlan(&self) -> &Medium {
        self.engine.wlan(self.wlan).unwrap()
    }
    pub fn collision_probability(&self) -> f64 {
        let counters = || self.wlan().directions().filter_map(|d| self.wlan().counters(d.0));
        counters().map(|c| c.collisions).sum::<u64>() as f64
            / counters().map(|c| c.transmissions).sum::<u64>() as f64
    }
}

pub fn clients(mut config: WlanConfig, n: usize) -> WlanConfig {
    config.station = vec![StationConfig { name: "ap".into(), ..Default::default() }];
    config.station.extend((0..n).map(|k| client(&format!("sta{k}"))));
    config
}

pub fn client(name: &str) -> StationConfig {
    StationConfig { name: name.into(), ap: Some("ap".into()), ..Default::default() }
}

pub fn b() -> WlanConfig {
    WlanConfig { standard: Standard::B, ..Default::default() }
}

/// One CBR flow each: (from, to, Mbit/s, IP bytes).
pub fn run(config: &WlanConfig, flows: &[(&str, &str, f64, u64)], seconds: i64, seed: u64) -> Run {
    let mut engine = Engine::new();
    let medium = Medium::new(config, seed, "x").unwrap();
    let ports: Vec<PortId> = flows.iter().map(|f| medium.port(f.0, f.1).unwrap()).collect();
    let wlan = engine.add(medium).unwrap();
    let mut sinks = Vec::new();
    for (index, (&(_, _, mbps, size), &port)) in flows.iter().zip(&ports).enumerate() {
        let source = SourceConfig {
            rate: Rate::ip((mbps * 1e6) as u64),
            ip_size: Bytes(size),
            flow: Flow(index as u32),
            ..SourceConfig::default()
        };
        let source = engine.add(Source::new(source, Stream::new(seed, &format!("flow{index}")))).unwrap();
        engine.connect(source, Target::Port(wlan, port));
        let sink = engine.add(Sink::default()).unwrap();
        engine.connect_port(wlan, port, Target::Node(sink)).unwrap();
        sinks.push(sink);
    }
    engine.run_until(Time::ZERO + Span::from_secs(seconds)).unwrap();
    let now = engine.now();
    assert!(engine.wlan(wlan).unwrap().busy(now) <= now - Time::ZERO);
    Run { engine, wlan, sinks, seconds: seconds as f64 }
}

pub fn within(value: f64, expected: f64, share: f64, what: &str) {
    assert!((value / expected - 1.0).abs() <= share, "{what}: {value:.3}, expected {expected:.3}");
}
