//! 802.11 against ns-3 3.37, ns-2 and arithmetic in a grid of cells: rates and sizes, aggregation, stations that contend,
//! requests to send, retry limits, noise and rate control. The figures are in `wlan_grid.toml`.

use std::fmt::Write;

use lastmile::node::PortId;
use lastmile::time::Time;
use lastmile::units::Bytes;
use lastmile_sim::monitor::accounting::{NetworkOutcome, Watched, WlanOutcome};
use lastmile_sim::scenario::{Scenario, build};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cell {
    wlan: String,
    #[serde(default)]
    stations: Vec<String>,
    flows: Vec<String>,
    seconds: u32,
    /// ns-3's Mbit/s of all flows together, or of each.
    total: Option<f64>,
    #[serde(default)]
    each: Vec<f64>,
    within: Option<f64>,
    /// Allowed error of the first client's down against [`Medium::capacity`](lastmile_sim::network::wlan::Medium::capacity).
    capacity: Option<f64>,
    /// The share of transmissions that collided, and by how much ours may be off.
    collisions: Option<f64>,
    collisions_within: Option<f64>,
}

#[derive(Deserialize)]
struct Grid {
    cell: Vec<Cell>,
}

/// Results of a cell, and the medium's capacity for its first client.
fn simulate(cell: &Cell) -> (NetworkOutcome, f64) {
    let flows: Vec<Vec<&str>> = cell.flows.iter().map(|line| line.split(' ').collect()).collect();
    let clients = 1 + flows.iter().map(|flow| flow[1].parse::<usize>().unwrap()).max().unwrap();
    let mut text = format!("name = \"cell\"\nduration = \"{} s\"\n[host]\nap = {{}}\n", cell.seconds);
    (0..clients).for_each(|k| text += &format!("sta{k} = {{}}\n"));
    text += &format!("[[wlan]]\n{}\nstation = [{{ name = \"ap\", queue = 400 }}", cell.wlan);
    for k in 0..clients {
        let own =
            cell.stations.get(k).or(cell.stations.last()).map_or(String::new(), |own| format!(", {own}"));
        text += &format!(", {{ name = \"sta{k}\", ap = \"ap\", queue = 400{own} }}");
    }
    text += "]\n";
    for flow in &flows {
        let (client, mbps, size) = (format!("sta{}", flow[1]), flow[2], flow[3]);
        let (from, to) = if flow[0] == "d" { ("ap", &*client) } else { (&*client, "ap") };
        text += &format!(
            "[[traffic]]\nkind = \"cbr\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{mbps} Mbit/s\"\nsize = \"{size} B\"\n"
        );
    }
    let scenario = Scenario::parse("cell.toml", &text).unwrap();
    let mut run = Watched::new(&scenario, build(&scenario, 1, vec![]).unwrap());
    run.run_until(Time::ZERO + scenario.duration).unwrap();
    let medium = run.simulation().engine.wlan(run.simulation().wlans[0]).unwrap();
    let capacity = medium.capacity(PortId(1), Bytes(1500)).unwrap();
    (run.outcome(&scenario), capacity.bits_per_second() as f64 / 1e6)
}

/// All that is off, at once. The cells of one part of two, so that they run side by side.
fn check(part: usize) {
    let grid: Grid = toml::from_str(include_str!("wlan_grid.toml")).unwrap();
    let mut wrong = String::new();
    for cell in grid.cell.iter().skip(part).step_by(2) {
        let (found, capacity) = simulate(cell);
        let mbps: Vec<f64> = found.flows.iter().map(|flow| flow.goodput_bps.unwrap() / 1e6).collect();
        let share = cell.within.unwrap_or(0.015);
        let mut row = |what: &str, ours: f64, theirs: f64, may: f64| {
            if (ours - theirs).abs() > may {
                let Cell { wlan, stations, flows, .. } = cell;
                let _ = writeln!(wrong, "{wlan:?} {stations:?} {flows:?} {what}: {ours:.3}, not {theirs:.3}");
            }
        };
        assert!(cell.total.or(cell.capacity).is_some() || cell.each.len() == cell.flows.len());
        if let Some(share) = cell.capacity {
            row("capacity", mbps[0], capacity, share * capacity);
        }
        if let Some(total) = cell.total {
            row("total", mbps.iter().sum(), total, share * total);
        }
        for (flow, &ns3) in cell.each.iter().enumerate() {
            row(&format!("flow {flow}"), mbps[flow], ns3, share * ns3);
        }
        if let Some(collisions) = cell.collisions {
            let may = cell.collisions_within.unwrap_or(0.01);
            let all = |of: fn(&WlanOutcome) -> u64| found.wlans.iter().map(of).sum::<u64>() as f64;
            row("collisions", all(|way| way.collisions) / all(|way| way.transmissions), collisions, may);
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
