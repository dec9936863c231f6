//! Every scenario that comes with the program loads, runs, and carries what it is meant to carry.

use std::collections::BTreeSet;
use std::net::IpAddr;

use lastmile::estimate::{METHODS, Refusal};
use lastmile::node::{Datagram, Payload};
use lastmile::options::Choice;
use lastmile::time::{Span, Time};
use lastmile_sim::network::host::Egress;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::roles::Roles;
use lastmile_sim::scenario::{Attach, BUILTIN, Scenario, build, builtin_text};

use crate::stories::{always, makers, parse};

#[test]
fn all_of_them_carry_all_their_flows() {
    for name in BUILTIN {
        let mut scenario = parse(name, &[("duration", "32 s"), ("warm_up", "0 s")]);
        assert!(scenario.name == *name && !scenario.description.is_empty(), "{name}");
        scenario.roles = Roles::default();
        let run = simulate(&scenario, 1, &makers(), Hooks::default()).unwrap();
        always(&scenario, &run);
        for flow in &run.network.flows {
            assert!(flow.goodput_bps > Some(1_000.0), "{name}: {flow:?}");
        }
    }
}

/// Scenarios as in the lab, without its clock: programs at every host, whose packets reach every other host
/// that a path leads to, beside the scenario's own traffic.
#[test]
fn all_of_them_can_have_programs_at_every_host() {
    for name in BUILTIN {
        let scenario = Scenario::parse(name, builtin_text(name).unwrap()).unwrap();
        let hosts: Vec<_> = scenario.hosts.iter().map(|h| (h.name.clone(), Attach::External)).collect();
        let count = hosts.len();
        let mut run = build(&scenario, 1, hosts).unwrap();
        let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        let pairs: Vec<_> =
            pairs.filter(|&(from, to)| from != to && scenario.path(from, to).is_some()).collect();
        assert!(!pairs.is_empty(), "{name}");
        let there_and_back = |&(from, to): &(usize, usize)| pairs.contains(&(to, from));
        assert!(pairs.iter().all(there_and_back), "{name}: no way back");
        // Ten times, because channels and full queues may lose a packet.
        let (mut egress, mut arrived) = (Vec::new(), BTreeSet::new());
        for turn in 1..=10 {
            let at = Time::ZERO + Span::from_millis(400 * turn);
            for &(from, to) in &pairs {
                let address = |host: usize| (scenario.hosts[host].v4, 4_000).into();
                let mut packet = Datagram::udp(address(from), address(to), Vec::new());
                packet.payload = Payload::Ip(vec![0; 100]);
                run.engine.inject(run.hosts[from], at, packet).unwrap();
            }
            run.engine.run_until(at + Span::from_millis(399)).unwrap();
            run.engine.take_egress(&mut egress);
            for Egress { host, datagram, .. } in egress.drain(..) {
                assert!(matches!(datagram.payload, Payload::Ip(_)), "{name}: a model left the lab");
                let sender = scenario.hosts.iter().position(|h| datagram.from.ip() == IpAddr::from(h.v4));
                arrived.insert((sender.unwrap(), usize::from(host)));
            }
        }
        let lost: Vec<_> = pairs.iter().filter(|pair| !arrived.contains(pair)).collect();
        assert!(lost.is_empty(), "{name}: nothing got through {lost:?}");
        assert_eq!(arrived.len(), pairs.len(), "{name}: something went astray");
    }
}

/// `conformance` and the tests of the program run every method, and count on it.
#[test]
fn with_its_brief_options_no_method_takes_more_than_3_s() {
    for method in METHODS.iter() {
        let choice =
            method.brief.iter().fold(Choice::named(method.name), |c, (name, value)| c.with(name, value));
        let ways: &[&str] =
            if method.round_trip { &["forward", "reverse", "round-trip"] } else { &["forward", "reverse"] };
        for way in ways {
            let set = [("measure.0.method", choice.to_string()), ("measure.0.direction", (*way).to_owned())];
            let scenario = parse("dumbbell", &set.each_ref().map(|(key, value)| (*key, value.as_str())));
            let found = simulate(&scenario, 1, &makers(), Hooks::default()).unwrap().found.measure.outcomes;
            assert!(!found.is_empty(), "{choice}");
            for one in found {
                let seconds = one.cost.elapsed.as_secs_f64();
                // No queue marks there.
                let answered =
                    one.estimate.is_some() || matches!(one.refusal, Some(Refusal::Unmarked { .. }));
                assert!(answered && (0.01..=3.0).contains(&seconds), "{choice}, {way}: {one:?}");
            }
        }
    }
}
