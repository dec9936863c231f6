//! The numbers of the network: mean queue and share of time busy against queueing theory, and series against totals.

use std::sync::{Arc, Mutex};

use lastmile::time::{Span, Time};
use lastmile_sim::runs::accounting::{NetworkOutcome, Watched};
use lastmile_sim::runs::series::{SeriesPlan, SeriesRow};
use lastmile_sim::scenario::{Override, Scenario, build, builtin_text};

fn run(name: &str, set: &[(&str, &str)], step: Span) -> (Scenario, NetworkOutcome, Vec<SeriesRow>) {
    let set: Vec<_> = set.iter().map(|&(key, value)| Override::new(key, value)).collect();
    let scenario = Scenario::parse_with(name, builtin_text(name).unwrap(), &set, &|_| Ok(())).unwrap();
    let rows = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&rows);
    let tell = Box::new(move |row: &SeriesRow| told.lock().unwrap().push(row.clone()));
    let mut run = Watched::new(&scenario, build(&scenario, 5, vec![]).unwrap())
        .with_series(&scenario, Some(SeriesPlan { step, tell }));
    run.run_until(Time::ZERO + scenario.duration).unwrap();
    let found = run.outcome(&scenario);
    let rows = std::mem::take(&mut *rows.lock().unwrap());
    (scenario, found, rows)
}

/// M/D/1 at half load: rho^2 / (2 (1 - rho)) packets wait, a quarter.
#[test]
fn a_queue_is_as_long_as_queueing_theory_has_it() {
    let set = [
        ("duration", "200 s"),
        ("traffic.cross.rate", "5 Mbit/s"),
        ("traffic.cross.stop", "200 s"),
        ("link.0.overhead", "0 B"),
        ("link.0.queue", "1000 packets"),
    ];
    let (_, found, _) = run("path", &set, Span::from_secs(1));
    let link = &found.links[0];
    let (queue, busy) = (link.queue_mean_bytes.unwrap(), link.busy_share.unwrap());
    assert!((busy / 0.5 - 1.0).abs() < 0.01, "busy {busy}");
    assert!((queue / (0.25 * 1500.0) - 1.0).abs() < 0.05, "{queue} B wait");
    // A discipline that never acts is fetched from packet by packet, and must count the same.
    let fetched = [
        &set[..],
        &[
            ("link.0.discipline.kind", "codel"),
            ("link.0.discipline.target", "1 s"),
            ("link.0.discipline.interval", "2 s"),
        ],
    ]
    .concat();
    let (_, other, _) = run("path", &fetched, Span::from_secs(1));
    let other = other.links[0].queue_mean_bytes.unwrap();
    assert!((other / queue - 1.0).abs() < 1e-9, "{other} instead of {queue}");
}

#[test]
fn a_series_adds_up_to_the_run() {
    for name in ["dumbbell-tcp", "red-ecn", "wlan-g-busy"] {
        let set = [("duration", "20 s"), ("warm_up", "0 s")];
        let (scenario, found, rows) = run(name, &set, Span::from_millis(100));
        assert_eq!(rows.len(), 200 * (found.flows.len() + found.links.len() + found.wlans.len()), "{name}");
        let of = |kind: &str, name: &str| -> Vec<&SeriesRow> {
            rows.iter().filter(|row| row.row == kind && row.name == name).collect()
        };
        for (flow, spec) in found.flows.iter().zip(&scenario.traffic) {
            let own = of("flow", &flow.flow);
            let sum: f64 = own.iter().filter_map(|row| row.goodput_bps).sum::<f64>() * 0.1;
            let whole = flow.goodput_bps.unwrap() * (20.0 - spec.start.as_nanos() as f64 / 1e9);
            assert!((sum - whole).abs() <= 1e-6 * whole + 1.0, "{name}, {}: {sum} of {whole}", flow.flow);
            assert_eq!(spec.tcp.is_some(), own.iter().all(|row| row.window_packets.is_some()));
        }
        for link in &found.links {
            let own = of("link", &format!("{}>{}", link.from, link.to));
            let mean = own.iter().filter_map(|row| row.queue_mean_bytes).sum::<f64>() / 200.0;
            let queue = link.queue_mean_bytes.unwrap();
            assert!((mean - queue).abs() <= 1e-6 * queue + 1e-6, "{name}: {mean} of {queue}");
            assert_eq!(own.iter().filter_map(|row| row.marked).sum::<u64>(), link.marked);
            assert_eq!(own.iter().filter_map(|row| row.lost).sum::<u64>(), link.lost.values().sum::<u64>());
            assert!(
                own.iter().filter_map(|row| row.busy_share).all(|share| (0.0..=1.0 + 1e-9).contains(&share))
            );
        }
        for air in &found.wlans {
            let own = of("wlan", &format!("{}>{}", air.from, air.to));
            let mean = own.iter().filter_map(|row| row.queue_mean_bytes).sum::<f64>() / 200.0;
            assert!((mean - air.queue_mean_bytes.unwrap()).abs() <= 1e-6 * mean + 1e-6, "{name}: {air:?}");
            assert!(
                air.air_share.unwrap() <= air.busy_share.unwrap() + 1e-9 && air.busy_share.unwrap() <= 1.0
            );
        }
        assert!(name != "red-ecn" || found.links.iter().any(|link| link.marked > 0));
    }
}
