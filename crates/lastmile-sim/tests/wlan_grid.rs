//! 802.11 against ns-3 3.37, ns-2 and arithmetic in a grid of cells: rates and sizes, aggregation, stations that contend,
//! requests to send, retry limits, noise and rate control. The figures are in `wlan_grid.toml`.

use std::fmt::Write;

use lastmile::node::PortId;
use lastmile_sim::network::wlan::{AmpduConfig, ChannelConfig, Standard, StationConfig, WlanConfig};
use serde::Deserialize;

mod common;

use common::wlan::{Run, clients, run, within};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cell {
    wlan: String,
    #[serde(default)]
    stations: Vec<String>,
    flows: Vec<String>,
    seconds: i64,
    /// ns-3's Mbit/s of all flows together, or of each.
    total: Option<f64>,
    #[serde(default)]
    each: Vec<f64>,
    within: Option<f64>,
    /// The share of transmissions that collided, and by how much ours may be off.
    collisions: Option<f64>,
    collisions_within: Option<f64>,
}

#[derive(Deserialize)]
struct Grid {
    cell: Vec<Cell>,
}

fn simulate(cell: &Cell) -> Run {
    let mut config: WlanConfig = toml::from_str(&cell.wlan).unwrap();
    let flow = |line: &String| {
        let words: Vec<&str> = line.split(' ').collect();
        let [direction, client, mbps, size] = words[..] else { panic!("{line}") };
        let client = format!("sta{client}");
        let (from, to) =
            if direction == "d" { ("ap".to_string(), client) } else { (client, "ap".to_string()) };
        (from, to, mbps.parse::<f64>().unwrap(), size.parse::<u64>().unwrap())
    };
    let flows: Vec<_> = cell.flows.iter().map(flow).collect();
    let n = cell.flows.iter().map(|line| line.split(' ').nth(1).unwrap().parse::<usize>().unwrap() + 1);
    config = clients(config, n.max().unwrap());
    for (index, station) in config.station.iter_mut().enumerate() {
        if let Some(keys) = cell.stations.get(index.saturating_sub(1)).or(cell.stations.last())
            && index > 0
        {
            let keys: toml::Table = toml::from_str(&keys.replace(", ", "\n")).unwrap();
            let given: StationConfig = keys.try_into().unwrap();
            *station = StationConfig { name: station.name.clone(), ap: station.ap.clone(), ..given };
        }
        station.queue = 400;
    }
    let flows: Vec<_> = flows.iter().map(|f| (f.0.as_str(), f.1.as_str(), f.2, f.3)).collect();
    run(&config, &flows, cell.seconds, 1)
}

/// All that is off, at once. The cells of one part of two, so that they run side by side.
fn check(part: usize) {
    let grid: Grid = toml::from_str(include_str!("wlan_grid.toml")).unwrap();
    let mut wrong = String::new();
    for cell in grid.cell.iter().skip(part).step_by(2) {
        let run = simulate(cell);
        let share = cell.within.unwrap_or(0.015);
        let mut row = |what: &str, ours: f64, theirs: f64, may: f64| {
            if (ours - theirs).abs() > may {
                let Cell { wlan, stations, flows, .. } = cell;
                let _ = writeln!(wrong, "{wlan:?} {stations:?} {flows:?} {what}: {ours:.3}, not {theirs:.3}");
            }
        };
        assert!(cell.total.is_some() || cell.each.len() == cell.flows.len());
        if let Some(total) = cell.total {
            row("total", run.total(), total, share * total);
        }
        for (flow, &ns3) in cell.each.iter().enumerate() {
            row(&format!("flow {flow}"), run.mbps(flow), ns3, share * ns3);
        }
        if let Some(collisions) = cell.collisions {
            let may = cell.collisions_within.unwrap_or(0.01);
            row("collisions", run.collision_probability(), collisions, may);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn cells_of_ns3_even() {
    check(0);
}

#[test]
fn cells_of_ns3_odd() {
    check(1);
}

/// Without the requests ns-3 has to be told not to drop every seventh aggregate that a station ever lost (`MaxSsrc` 200: its
/// counter of failures starts afresh with a loss, not with a success).
#[test]
fn without_requests_for_block_acks_data_is_repeated() {
    for (max_bytes, ns3) in [("65535 B", 52.53), ("8191 B", 47.06)] {
        let cell = Cell {
            wlan: format!(
                "standard = 'n'\nampdu = {{ max_bytes = '{max_bytes}', request_block_ack = false }}"
            ),
            stations: vec![],
            flows: (0..5).map(|k| format!("u {k} 20 1500")).collect(),
            seconds: 20,
            total: None,
            each: vec![],
            within: None,
            collisions: None,
            collisions_within: None,
        };
        within(simulate(&cell).total(), ns3, 0.015, max_bytes);
    }
}

/// Collisions, noise and a full queue at once: what the transport misses of each flow is what the medium lost of it, by
/// cause, whatever was waiting at the end.
#[test]
fn losses_by_cause_sum_to_what_the_transport_misses() {
    for (standard, ampdu) in
        [(Standard::G, None), (Standard::B, None), (Standard::N, Some(AmpduConfig::default()))]
    {
        let mut config = WlanConfig { standard, ampdu, short_retry: 3, ..Default::default() };
        config = clients(config, 4);
        for (index, station) in config.station[1..].iter_mut().enumerate() {
            station.queue = 20;
            let channel = ChannelConfig { snr_db: Some(30.0), ..Default::default() };
            (station.frame_error, station.channel) = (0.1 * index as f64, Some(channel));
        }
        let names: Vec<String> = (0..4).map(|k| format!("sta{k}")).collect();
        let mut flows: Vec<_> = names.iter().map(|name| (name.as_str(), "ap", 30.0, 1200)).collect();
        flows.push(("ap", "sta3", 5.0, 700));
        let run = run(&config, &flows, 5, 1);
        let mut all = [0; 5];
        for (index, flow) in flows.iter().enumerate() {
            let medium = run.wlan();
            let counters = medium.counters(medium.port(flow.0, flow.1).unwrap()).unwrap();
            let id = lastmile::node::Flow(index as u32);
            let received = run.engine.sink(run.sinks[index]).unwrap().counters().packets;
            let causes: Vec<u64> = medium.losses_of(id).map(|(_, lost)| lost).collect();
            let missing = counters.arrived - received - medium.under_way_of(id);
            assert_eq!(causes.iter().sum::<u64>(), missing, "{standard} flow {index}");
            let expected = [counters.lost_queue, 0, counters.lost_channel, counters.lost_collision, 0];
            assert_eq!(causes, expected);
            all.iter_mut().zip(&causes).for_each(|(all, lost)| *all += lost);
        }
        assert!([0, 2, 3].iter().all(|&cause| all[cause] > 0), "{standard}: {all:?}");
        let arrived: u64 = (0..8).filter_map(|p| run.wlan().counters(PortId(p))).map(|c| c.arrived).sum();
        assert!(arrived > 1000);
    }
}
