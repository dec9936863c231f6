//! PIE against ns-3 3.37's `PieQueueDisc`: `pie_ns3.txt` says which settings, and how it was run.

use lastmile::rng::Stream;
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::engine::{Engine, Target};
use lastmile_sim::network::link::{Link, LinkConfig, LinkCounters, QueueLimit};
use lastmile_sim::network::queue::{Discipline, Pie};
use lastmile_sim::network::tcp::{App, TcpConfig};
use lastmile_sim::network::traffic::{Arrivals, Sink, Source, SourceConfig};

use crate::common::tcp::{dumbbell_over, ns2_link, seconds};

/// The framing of ns-3's point-to-point links.
const PPP: Bytes = Bytes(2);
const LINK: u64 = 10_000_000;

fn pie_link(one_way: Span, derandomize: bool, seed: u64) -> Link {
    let discipline = Discipline::Pie(Pie { derandomize, ..Pie::default() });
    let config = LinkConfig {
        rate: Some(Rate::ip(LINK)),
        delay: one_way,
        overhead: PPP,
        queue: QueueLimit::Packets(200),
        discipline,
        ..Default::default()
    };
    config.check().unwrap();
    Link::seeded(config, seed, "pie")
}

/// Mean wait in ms, goodput in Mbit/s and share dropped from 10 s to 110 s; `bytes` tells what arrived of payload.
fn measured(
    engine: &mut Engine,
    counters: impl Fn(&Engine) -> LinkCounters,
    bytes: impl Fn(&Engine) -> u64,
) -> [f64; 3] {
    let [before, after] = [10.0, 110.0].map(|at| {
        engine.run_until(seconds(at)).unwrap();
        (counters(engine), bytes(engine))
    });
    let window = Span::from_secs(100);
    let sent = (after.0.bytes - before.0.bytes).0 + PPP.0 * (after.0.packets - before.0.packets);
    let wait = (after.0.waited - before.0.waited) as f64 / 1e9 / sent as f64;
    let dropped = after.0.drops as f64 / after.0.arrived as f64;
    [wait * 1e3, (after.1 - before.1) as f64 * 8.0 / 1e6 / window.as_secs_f64(), dropped]
}

/// Poisson arrivals of 1000 B, 972 of them payload.
fn udp(load: f64, derandomize: bool, seed: u64) -> [f64; 3] {
    let mut engine = Engine::new();
    let source = SourceConfig {
        arrivals: Arrivals::Poisson,
        rate: Rate::ip((load * LINK as f64) as u64),
        ip_size: Bytes(1000),
        start: seconds(0.1),
        ..SourceConfig::default()
    };
    let source = engine.add(Source::new(source, Stream::new(seed, "udp"))).unwrap();
    let link = engine.add(pie_link(Span::from_millis(48), derandomize, seed)).unwrap();
    let sink = engine.add(Sink::default()).unwrap();
    engine.connect(source, Target::Node(link));
    engine.connect(link, Target::Node(sink));
    let payload = |engine: &Engine| engine.sink(sink).unwrap().counters().packets * 972;
    measured(&mut engine, |engine| *engine.link(link).unwrap().counters(), payload)
}

fn tcp(flows: usize, rtt: i64, seed: u64) -> [f64; 3] {
    let mut engine = Engine::new();
    let config = TcpConfig {
        initial_window: Some(10),
        delayed_ack: Span::from_millis(200),
        byte_counting: Some(2),
        ..TcpConfig::default()
    };
    let mut starts = Stream::new(seed, "start");
    let flows: Vec<_> = (0..flows).map(|_| (config.clone(), App::Bulk, seconds(starts.unit()))).collect();
    let one_way = Span::from_micros((rtt - 4) * 500);
    let back = ns2_link(LINK, one_way, 1000);
    let it = dumbbell_over(&mut engine, pie_link(one_way, false, seed), back, &flows, seed);
    let acknowledged = |engine: &Engine| {
        let of =
            |c: &crate::common::tcp::Connection| engine.tcp_sender(c.sender).unwrap().counters().acknowledged;
        it.connections.iter().map(of).sum::<u64>() * 1460
    };
    measured(&mut engine, |engine| *engine.link(it.bottleneck).unwrap().counters(), acknowledged)
}

/// Bar of the mean delay's error: beside TCP about the error seen, so that more is noticed.
fn delay_within(row: &str) -> f64 {
    match row {
        "t4" => 0.02,
        "t10" => 0.08,
        "t20" => 0.07,
        _ => 0.05,
    }
}

#[test]
fn mean_delay_and_goodput_are_those_of_ns_3() {
    let mut wrong = 0;
    for line in include_str!("pie_ns3.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let key = |name: &str| {
            let found =
                words.iter().find_map(|word| word.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='));
            found.map(|value| value.parse::<f64>().unwrap())
        };
        let runs: Vec<[f64; 3]> = (1..=5)
            .map(|seed| match key("load") {
                Some(load) => udp(load, key("derandomize").is_some(), seed),
                None => tcp(key("flows").unwrap() as usize, key("rtt").unwrap() as i64, seed),
            })
            .collect();
        print!("{}:", words[0]);
        for i in 0..3 {
            let ours = runs.iter().map(|run| run[i]).sum::<f64>() / runs.len() as f64;
            let theirs: f64 = words[1 + i].parse().unwrap();
            let off = ours / theirs - 1.0;
            // Drops are shown, without a bar.
            let within = [delay_within(words[0]), 0.05, f64::INFINITY][i];
            let mark = if off.abs() > within { "!" } else { "" };
            wrong += mark.len();
            print!("  {ours:.4} ({theirs}) {:+.1} %{mark}", 100.0 * off);
        }
        println!();
    }
    assert_eq!(wrong, 0, "numbers with ! above");
}
