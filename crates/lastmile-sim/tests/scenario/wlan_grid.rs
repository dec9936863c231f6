//! 802.11 against ns-3 3.37, ns-2 and arithmetic in a grid of cells: rates and sizes, aggregation, stations that contend,
//! requests to send, retry limits, noise and rate control. The figures are in `wlan_grid.toml`.

use std::fmt::Write;

use lastmile::units::Bytes;
use lastmile_sim::network::wlan::{StationConfig, WlanConfig};
use serde::Deserialize;

use crate::common::wlan::{Run, clients, run};

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
    /// How far the first client's down may be from what [`Medium::capacity`](lastmile_sim::network::wlan::Medium::capacity) says.
    capacity: Option<f64>,
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
        assert!(cell.total.or(cell.capacity).is_some() || cell.each.len() == cell.flows.len());
        if let Some(share) = cell.capacity {
            let port = run.wlan().port("ap", "sta0").unwrap();
            let capacity = run.wlan().capacity(port, Bytes(1500)).unwrap().bits_per_second() as f64 / 1e6;
            row("capacity", run.total(), capacity, share * capacity);
        }
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
