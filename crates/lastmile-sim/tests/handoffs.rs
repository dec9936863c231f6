//! A host that leaves a slow link for a WLAN and comes back, and what becomes of the queue that it leaves.

use lastmile::time::{Span, Time};
use lastmile_sim::runs::accounting::{NetworkOutcome, Watched};
use lastmile_sim::scenario::{Override, Scenario, build};

const TEXT: &str = include_str!("scenarios/handoff.toml");

fn parse(set: &[(&str, &str)]) -> Result<Scenario, String> {
    let set: Vec<_> = set.iter().map(|&(key, value)| Override::new(key, value)).collect();
    Scenario::parse_with("handoff.toml", TEXT, &set, &|_| Ok(())).map_err(|error| error.to_string())
}

fn run(set: &[(&str, &str)]) -> NetworkOutcome {
    let scenario = parse(set).unwrap();
    let mut run = Watched::new(&scenario, build(&scenario, 1, vec![]).unwrap());
    run.run_until(Time::ZERO + scenario.duration).unwrap();
    let found = run.outcome(&scenario);
    for flow in &found.flows {
        let lost: u64 = flow.lost.values().sum();
        assert_eq!(flow.sent, flow.received + lost + flow.under_way, "{flow:?}");
    }
    found
}

/// 50 packets a second come, and 25 a second go: from 0.8 s on the queue of 20 is full.
#[test]
fn the_old_queue_is_dropped_or_delivered() {
    let dropped = run(&[]);
    let (flow, cell) = (&dropped.flows[0], &dropped.links[2]);
    assert_eq!((cell.from.as_str(), cell.to.as_str()), ("cell", "mobile"));
    assert_eq!(cell.lost.get("handoff"), Some(&20), "{cell:?}");
    assert_eq!(flow.out_of_order, 0, "the packet that was being sent was the next");
    // 5 s by the cell, each less one that has begun, of which the first arrives; 10 s by the air between.
    let by_air = dropped.wlans.iter().find(|air| air.to == "mobile").unwrap();
    assert_eq!((by_air.packets, by_air.delivered), (500, 500));
    assert_eq!(flow.received, (124 + 1) + 500 + 124);

    let delivered = run(&[("handoff.0.old_queue", "deliver")]);
    let flow = &delivered.flows[0];
    assert_eq!(flow.lost.get("handoff"), None, "{flow:?}");
    assert_eq!(flow.received, dropped.flows[0].received + 20);
    assert!(flow.out_of_order >= 19, "{flow:?}");
}

#[test]
fn what_comes_too_late_at_the_old_link_is_dropped_as_well() {
    // Half a second of packets is on its way to the cell.
    let far = run(&[("link.0.delay", "500 ms")]);
    assert_eq!(far.flows[0].lost.get("handoff"), Some(&(20 + 25)), "{:?}", far.flows[0]);
}

#[test]
fn the_air_is_left_as_a_link_is() {
    // A client so slow that its queue is full: 0.1 s of frames go on, the rest is dropped.
    let slow = [("wlan.0.station.mobile.rate", "1 Mbit/s"), ("traffic.0.rate", "6 Mbit/s")];
    let found = run(&slow);
    let by_air = found.wlans.iter().find(|air| air.to == "mobile").unwrap();
    let lost = by_air.lost_by_cause["handoff"];
    assert!((90..=100).contains(&lost), "{by_air:?}");
    assert_eq!(by_air.packets, by_air.delivered + by_air.lost_by_cause.values().sum::<u64>(), "{by_air:?}");
}

#[test]
fn a_transfer_goes_on_behind_hand_offs() {
    let scenario = parse(&[("traffic.0.stop", "1 s"), ("traffic.1.start", "0 s")]).unwrap();
    let mut run = Watched::new(&scenario, build(&scenario, 1, vec![]).unwrap());
    let mut segments = Vec::new();
    for second in 0..20 {
        run.run_until(Time::ZERO + Span::from_secs(second + 1)).unwrap();
        segments.push(run.outcome(&scenario).flows[1].received);
    }
    let in_ten = |from: usize| segments[from + 3] - segments[from];
    assert!(in_ten(8) > 10 * in_ten(1), "{segments:?}: the WLAN is some 30 times as fast");
    assert!(in_ten(16) < in_ten(8) / 10, "{segments:?}");
}

#[test]
fn impossible_hand_offs_are_refused() {
    for (key, value, why) in [
        (
            "handoff.0.to",
            "nowhere",
            "handoff.toml:43: handoff[0].to: nothing joins \"mobile\" and \"nowhere\"",
        ),
        ("handoff.0.host", "base", "no host is called \"base\""),
        ("handoff.0.old_queue", "lose", "unknown variant `lose`, expected `drop` or `deliver`"),
    ] {
        let error = parse(&[(key, value)]).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
