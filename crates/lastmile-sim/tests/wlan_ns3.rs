//! 802.11 against ns-3 3.37, run without beacons (they cost 0.7 % of the air there and are not modelled), cell by cell:
//! rates, sizes, preambles and aggregation of one sender, then stations that contend, all alike and unlike.

use std::fmt::Write;

use lastmile::units::Rate;
use lastmile_sim::network::wlan::{ChannelConfig, RateControl, StationChange, StationConfig, WlanConfig};

mod common;

use common::wlan::{Run, clients, run, within};

fn config(keys: &str) -> WlanConfig {
    toml::from_str(keys).unwrap()
}

/// `(sender, receiver, Mbit/s, IP bytes)` by client number, the access point being `A`.
const A: usize = usize::MAX;

fn flows(config: &WlanConfig, rates: &[f64], flows: &[(usize, usize, f64, u64)], seconds: i64) -> Run {
    let n = flows.iter().flat_map(|f| [f.0, f.1]).filter(|&s| s != A).max().unwrap() + 1;
    let mut config = clients(config.clone(), n.max(rates.len()));
    // As there: more than several aggregates.
    config.station.iter_mut().for_each(|station| station.queue = 400);
    for (station, &rate) in config.station[1..].iter_mut().zip(rates) {
        station.rate = Some(Rate::ip((rate * 1e6) as u64));
    }
    let names: Vec<String> = (0..n).map(|k| format!("sta{k}")).collect();
    let name = |s: usize| if s == A { "ap" } else { names[s].as_str() };
    let flows: Vec<_> =
        flows.iter().map(|&(from, to, mbps, size)| (name(from), name(to), mbps, size)).collect();
    run(&config, &flows, seconds, 1)
}

/// All rows at once: what is off says by how much.
fn check(rows: impl IntoIterator<Item = (String, f64, f64, f64)>) {
    let mut wrong = String::new();
    for (what, ours, ns3, share) in rows {
        let off = ours / ns3 - 1.0;
        if off.abs() > share {
            let _ = writeln!(wrong, "{what}: {ours:.3}, ns-3 {ns3:.3} ({:+.2} %)", 100.0 * off);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn one_sender_at_each_rate() {
    /// Rate, IP bytes, ns-3's Mbit/s.
    type Cells<'a> = &'a [(f64, u64, f64)];
    let rows: &[(&str, Cells)] = &[
        (
            "standard = 'b'",
            &[
                (1.0, 500, 0.776),
                (2.0, 100, 0.591),
                (2.0, 1500, 1.725),
                (5.5, 100, 0.794),
                (5.5, 1500, 3.942),
                (11.0, 100, 0.881),
                (11.0, 500, 3.333),
                (11.0, 1500, 6.231),
            ],
        ),
        ("standard = 'b'\nrts_threshold = '0 B'", &[(11.0, 500, 2.300), (11.0, 1500, 4.863)]),
        (
            "standard = 'g'",
            &[(6.0, 100, 2.168), (24.0, 1500, 17.616), (54.0, 100, 4.242), (54.0, 1500, 30.522)],
        ),
        // A frame of b among those of g: its ACK goes at 2 Mbit/s.
        ("standard = 'g'", &[(11.0, 1500, 7.218)]),
        ("standard = 'g'\nrts_threshold = '0 B'", &[(54.0, 500, 12.021), (54.0, 1500, 24.936)]),
        (
            "standard = 'a'",
            &[
                (6.0, 1000, 5.096),
                (9.0, 1000, 7.232),
                (12.0, 1000, 9.248),
                (18.0, 1000, 12.632),
                (24.0, 1000, 15.588),
                (36.0, 1000, 20.136),
                (48.0, 1000, 23.456),
                (54.0, 1000, 24.920),
            ],
        ),
        (
            "standard = 'n'",
            &[
                (6.5, 1500, 5.688),
                (13.0, 1500, 10.464),
                (19.5, 1500, 14.432),
                (26.0, 1500, 17.968),
                (39.0, 1500, 23.488),
                (52.0, 1500, 27.872),
                (58.5, 1500, 29.808),
                (65.0, 1500, 31.384),
                (65.0, 300, 10.238),
            ],
        ),
        ("standard = 'n'\nband = '2.4 GHz'", &[(65.0, 1500, 31.376)]),
        ("standard = 'n'\nstreams = 2", &[(13.0, 1500, 10.312), (52.0, 1500, 27.624), (130.0, 1500, 41.344)]),
        ("standard = 'n'\nchannel_mhz = 40", &[(13.5, 1500, 10.680), (135.0, 1500, 42.488)]),
        // ns-3 does not round symbols of 3.6 us up to 4 us (19.4.3).
        ("standard = 'n'\nshort_guard = true", &[(72.2, 1500, 33.040)]),
        (
            "standard = 'n'\nampdu = { max_bytes = '8191 B' }",
            &[(6.5, 1500, 5.952), (39.0, 1500, 33.688), (65.0, 1500, 52.288), (65.0, 1000, 51.024)],
        ),
        (
            "standard = 'n'\nampdu = {}",
            &[(6.5, 1500, 5.952), (39.0, 1500, 36.528), (65.0, 1500, 60.864), (65.0, 1000, 60.064)],
        ),
        ("standard = 'n'\nshort_guard = true\nampdu = {}", &[(72.2, 500, 63.120)]),
        (
            "standard = 'n'\nstreams = 2\nchannel_mhz = 40\nampdu = { max_bytes = '8191 B' }",
            &[(270.0, 1500, 139.40)],
        ),
        ("standard = 'n'\nstreams = 2\nchannel_mhz = 40\nampdu = {}", &[(270.0, 1500, 237.06)]),
        (
            "standard = 'n'\nstreams = 2\nchannel_mhz = 40\nshort_guard = true\nampdu = {}",
            &[(300.0, 1500, 260.70)],
        ),
    ];
    check(rows.iter().flat_map(|&(keys, cells)| {
        cells.iter().map(move |&(rate, size, ns3)| {
            let got = flows(&config(keys), &[rate], &[(A, 0, rate, size)], 4).total();
            (format!("{keys:?} {rate} Mbit/s {size} B"), got, ns3, 0.01)
        })
    }));
}

#[test]
fn stations_alike() {
    // Total and collision probability.
    for (keys, n, ns3, p) in [
        ("standard = 'b'", 2, 6.501, Some(0.061)),
        ("standard = 'b'", 5, 6.456, Some(0.175)),
        ("standard = 'b'", 10, 6.169, Some(0.282)),
        ("standard = 'b'", 20, 5.765, Some(0.392)),
        ("standard = 'b'\nrts_threshold = '0 B'", 20, 5.192, None),
        ("standard = 'g'", 2, 30.842, Some(0.110)),
        ("standard = 'g'", 5, 29.595, Some(0.263)),
        ("standard = 'g'", 10, 27.993, Some(0.370)),
        ("standard = 'g'", 20, 25.888, Some(0.476)),
        // Requests that collide have the short retry limit, whatever they ask for.
        ("standard = 'g'\nrts_threshold = '0 B'", 10, 26.264, None),
        ("standard = 'g'\nrts_threshold = '0 B'", 20, 26.028, None),
        ("standard = 'a'", 5, 29.705, Some(0.260)),
        // EDCA counts a slot where DCF does not: with DCF's rule 31.8 and 30.7.
        ("standard = 'n'", 2, 32.155, Some(0.110)),
        ("standard = 'n'", 5, 31.169, Some(0.265)),
    ] {
        let up: Vec<_> = (0..n).map(|k| (k, A, 40.0 / n as f64 + 2.0, 1500)).collect();
        let run = flows(&config(keys), &[], &up, 40);
        within(run.total(), ns3, 0.01, &format!("{keys:?} n {n}"));
        if let Some(p) = p {
            assert!(
                (run.collision_probability() - p).abs() < 0.01,
                "{keys:?} {n}: {}",
                run.collision_probability()
            );
        }
    }
}

/// Unequal rates (the performance anomaly) and packets, and traffic both ways: each flow's own figure.
#[test]
fn stations_unlike() {
    type Cell<'a> = (&'a str, &'a [f64], &'a [(usize, usize, f64, u64)], &'a [f64]);
    let cells: &[Cell] = &[
        ("standard = 'b'", &[1.0, 11.0], &[(0, A, 8.0, 1500), (1, A, 8.0, 1500)], &[0.768, 0.803]),
        ("standard = 'g'", &[6.0, 54.0], &[(0, A, 20.0, 1500), (1, A, 30.0, 1500)], &[4.171, 4.502]),
        ("standard = 'b'", &[], &[(0, A, 8.0, 300), (1, A, 8.0, 1500)], &[0.879, 4.206]),
        ("standard = 'g'", &[], &[(0, A, 20.0, 200), (1, A, 30.0, 1500)], &[2.866, 20.11]),
        ("standard = 'b'", &[], &[(A, 0, 9.0, 1500), (0, A, 9.0, 1500)], &[3.259, 3.259]),
        ("standard = 'g'", &[], &[(A, 0, 40.0, 1500), (1, A, 2.0, 1500)], &[28.576, 2.0]),
        ("standard = 'g'", &[], &[(A, 0, 40.0, 1500), (1, A, 4.6, 500)], &[22.530, 4.6]),
        ("standard = 'g'", &[], &[(A, 0, 40.0, 1500), (1, A, 10.0, 1500)], &[20.886, 10.0]),
        ("standard = 'b'", &[], &[(A, 0, 9.0, 1500), (1, A, 1.0, 1500)], &[5.332, 1.0]),
    ];
    check(cells.iter().flat_map(|&(keys, rates, cell, ns3)| {
        let run = flows(&config(keys), rates, cell, 120);
        let row =
            move |(flow, &ns3): (usize, &f64)| (format!("{keys:?} {cell:?}"), run.mbps(flow), ns3, 0.015);
        ns3.iter().enumerate().map(row).collect::<Vec<_>>()
    }));
}

/// ns-3 sends the protecting CTS at 1 Mbit/s; this figure has its beacons in it.
#[test]
fn protection_at_the_lowest_rate() {
    let keys = "standard = 'g'\nslot = 'long'\nprotection = 'cts-to-self'\nprotection_rate = '1 Mbit/s'";
    let run = flows(&config(keys), &[], &[(A, 0, 40.0, 1500)], 10);
    within(run.total(), 14.652, 0.015, "CTS to self");
    within(run.total(), 12_000.0 / (200.0 + 314.0 + 254.0 + 44.0), 0.005, "arithmetic");
}

/// One station of a, log-distance law with exponent 3, ns-3's NIST error model.
#[test]
fn rate_adaptation_over_distance() {
    let at = |distance_m: f64, rate_control| {
        let mut config = clients(config("standard = 'a'"), 1);
        config.station[1].rate_control = rate_control;
        config.station[1].channel = Some(ChannelConfig { distance_m, ..Default::default() });
        run(&config, &[("ap", "sta0", 40.0, 1500)], 30, 1).total()
    };
    for (distance, arf, aarf, minstrel) in
        [(30.0, 30.55, 30.55, 30.20), (50.0, 21.48, 23.20, 21.26), (70.0, 16.20, 17.34, 15.65)]
    {
        within(at(distance, RateControl::Arf), arf, 0.015, &format!("ARF at {distance} m"));
        within(at(distance, RateControl::Aarf), aarf, 0.015, &format!("AARF at {distance} m"));
        within(at(distance, RateControl::Minstrel), minstrel, 0.015, &format!("Minstrel at {distance} m"));
    }
}

/// All transmissions of a packet fail independently: what the transport misses is the share to the power of the limit.
#[test]
fn residual_loss_is_the_power_of_the_retry_limit() {
    for (keys, share, limit) in [
        ("", 0.5, 7),
        ("", 0.3, 7),
        ("rts_threshold = '0 B'", 0.5, 4),
        ("short_retry = 3", 0.2, 3),
        ("short_retry = 1", 0.1, 1),
    ] {
        let mut config = clients(config(keys), 1);
        config.station[1].frame_error = share;
        config.station[0].queue = 300;
        let run = run(&config, &[("ap", "sta0", 2.0, 500)], 200, 1);
        let counters = run.wlan().counters(lastmile::node::PortId(1)).unwrap();
        assert_eq!((counters.lost_collision, counters.lost_queue), (0, 0));
        let expected = (0..limit).map(|_| share).product::<f64>();
        let deviation = (expected / counters.arrived as f64).sqrt();
        let got = counters.lost_channel as f64 / counters.arrived as f64;
        assert!((got - expected).abs() < 4.0 * deviation, "{keys:?} {share}: {got}, expected {expected}");
    }
}

/// A client that walks away and comes back: each phase is a run of its own at that distance.
#[test]
fn a_schedule_makes_each_phase_what_it_would_be_alone() {
    let client = |schedule| {
        let mut config = clients(config("standard = 'a'"), 1);
        let channel = Some(ChannelConfig { distance_m: 10.0, ..Default::default() });
        let rate_control = RateControl::Aarf;
        config.station[1] = StationConfig { channel, rate_control, schedule, ..config.station[1].clone() };
        config
    };
    let seconds = |s| lastmile::time::Span::from_secs(s);
    let moved =
        |at, metres| StationChange { at: seconds(at), distance_m: Some(metres), ..Default::default() };
    let flow = [("ap", "sta0", 40.0, 1500)];
    let alone = |metres| run(&client(vec![moved(0, metres)]), &flow, 10, 1).total();
    let expected = (alone(10.0) + alone(70.0) + alone(50.0)) / 3.0;
    let walk = run(&client(vec![moved(10, 70.0), moved(20, 50.0)]), &flow, 30, 1);
    within(walk.total(), expected, 0.01, "three phases");

    // A fixed rate both ways, then another one down alone.
    let mut config = clients(config("standard = 'g'"), 1);
    let slow = Some(Rate::ip(6_000_000));
    config.station[1].schedule = vec![
        StationChange { at: seconds(10), rate: slow, ..Default::default() },
        StationChange { at: seconds(20), down_rate: Some(Rate::ip(54_000_000)), ..Default::default() },
    ];
    let down = run(&config, &flow, 30, 1);
    within(down.total(), (2.0 * 30.50 + 5.37) / 3.0, 0.005, "54, 6 and 54 Mbit/s down");
    let up = run(&config, &[("sta0", "ap", 40.0, 1500)], 30, 1);
    within(up.total(), (30.50 + 2.0 * 5.37) / 3.0, 0.005, "54, 6 and 6 Mbit/s up");
}

/// A packet on an idle medium leaves at the next boundary of a slot: in ns-3 so by EDCA (n: 228 us at least, 232.4 in the
/// mean), where DCF waits for DIFS first (g: 282 us).
#[test]
fn a_packet_alone_takes_its_own_time_and_less_than_a_slot() {
    for (keys, frame_us, slot_us) in
        [("standard = 'n'", 228.0, 9.0), ("standard = 'g'", 254.0, 9.0), ("standard = 'b'", 1309.1, 20.0)]
    {
        let run = flows(&config(keys), &[], &[(A, 0, 0.5007, 1500)], 20);
        let counters = run.engine.sink(run.sinks[0]).unwrap().counters();
        let us = |span: lastmile::time::Span| span.as_secs_f64() * 1e6;
        let mean = us(counters.mean_delay().unwrap());
        assert!((mean - frame_us - slot_us / 2.0).abs() < 0.1 * slot_us, "{keys}: {mean}");
        assert!(us(counters.max_delay) <= frame_us + slot_us + 0.1, "{keys}: {:?}", counters.max_delay);
    }
}
