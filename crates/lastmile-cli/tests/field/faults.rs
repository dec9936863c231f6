//! Faults of real networks during sessions: a server is started again, a NAT forgets, a path is cut.

use std::time::Duration;

use super::common::Ended;
use super::hosts::Host;
use super::no_hosts;
use super::relay::{Faults, relay};

/// Eight trains of 0.35 s.
const LONG: [&str; 7] =
    ["--direction", "forward", "--method", "wbest(capacity=1 Mbit/s)", "--trains", "8", "--json"];

fn hosts() -> (Host, Host) {
    let (near, far) = (Host::new("near"), Host::new("far"));
    near.link("eth0", "10.9.0.1/24", &far, "10.9.0.2/24");
    (near, far)
}

/// Measures while `fault` happens beside it.
fn measured(near: &Host, address: &str, fault: impl FnOnce()) -> Ended {
    std::thread::scope(|scope| {
        let measuring = scope.spawn(|| near.lastmile(&[&["measure", address], &LONG[..]].concat()));
        fault();
        measuring.join().expect("its end")
    })
}

#[track_caller]
fn has_numbers(ended: &Ended) {
    let rows = ended.json()["results"].clone();
    let refused = rows.as_array().is_none_or(|rows| rows.iter().any(|row| row["refused"].is_string()));
    // The schedule may break on a busy machine: the session went on all the same.
    let busy = rows.to_string().contains("schedule-broken");
    assert!(!refused || busy, "{rows:#}");
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_a_server_that_is_started_again_goes_on_with_the_measurement() {
    if no_hosts() {
        return;
    }
    let (near, far) = hosts();
    let mut server = far.serves("10.9.0.2", &[]);
    let ended = measured(&near, "10.9.0.2", || {
        std::thread::sleep(Duration::from_millis(1_000));
        server.terminate(Duration::from_secs(1)).expect("its end");
        server = far.serves("10.9.0.2", &[]);
    });
    has_numbers(&ended);
    assert!(ended.json()["results"][0]["streams_discarded"].as_u64() >= Some(1), "{ended:?}");
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_a_nat_that_forgets_is_said_hello_to_again() {
    if no_hosts() {
        return;
    }
    let (near, router, far) = (Host::new("near"), Host::new("router"), Host::new("far"));
    near.link("eth0", "10.8.0.1/24", &router, "10.8.0.2/24");
    router.link("eth1", "10.9.0.1/24", &far, "10.9.0.2/24");
    let _server = far.serves("10.9.0.2", &[]);
    let rebound = Some(Duration::from_millis(1_200));
    let _nat = relay(&router, "10.8.0.2:8620", "10.9.0.2:8620", Faults { rebound, ..Faults::default() }, 1);
    let ended = measured(&near, "10.8.0.2", || {});
    has_numbers(&ended);
    assert!(ended.json()["results"][0]["streams_discarded"].as_u64() >= Some(1), "{ended:?}");
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_a_cut_is_said_while_it_lasts() {
    if no_hosts() {
        return;
    }
    let (near, far) = hosts();
    let _server = far.serves("10.9.0.2", &[]);
    let ended = measured(&near, "10.9.0.2", || {
        // Three of the trains, of 0.4 s each.
        std::thread::sleep(Duration::from_millis(1_500));
        far.does("ip route add blackhole 10.9.0.1/32");
    });
    // The results so far are printed.
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains(" of 8 trains") && ended.stdout.contains("stopped answering"), "{ended:?}");
    assert!(ended.stderr.contains("10.9.0.2:8620 has not answered for 1."), "{ended:?}");
    // Ten seconds for the direction under way, and ten for the other.
    assert!(ended.after < Duration::from_secs(28), "{ended:?}");
}
