//! Paths of real kernels: hosts in namespaces, links with the kernel's own shapers, programs of others.
#![allow(clippy::print_stderr, reason = "what was scored and what refused is this test's result")]

mod beside;
#[path = "../common/mod.rs"]
mod common;
mod faults;
#[path = "../common/hosts.rs"]
mod hosts;
mod linux;
mod path;
#[path = "../../../lastmile-net/tests/lab/patience.rs"]
mod patience;
mod relay;
mod rows;
mod said;
mod streams;
mod table;

use common::{Ended, lastmile};
use hosts::{Host, missing};
use patience::{Late, patiently};

/// True if there can be no hosts here; prints the reason.
fn no_hosts() -> bool {
    // The harness has begun a line.
    eprintln!();
    let why = missing();
    why.iter().for_each(|why| eprintln!("lab: skipped: {why}"));
    why.is_some()
}

fn no_iperf3() -> bool {
    std::process::Command::new("iperf3").arg("--version").output().is_err()
}

/// The capacity that a run found; late where it says that a host was.
fn capacity(ended: &Ended) -> Result<f64, Late> {
    let json = ended.json();
    let rows = json["results"].as_array().expect("rows");
    if let Some(why) = rows.iter().find_map(|row| row["refused"].as_str()) {
        assert!(why.contains("too busy"), "{json:#}");
        return Err(Late { why: why.to_owned(), hypervisors: false });
    }
    let row = rows.iter().find(|row| row["quantity"] == "capacity" && row["rate_bps"].is_number());
    row.and_then(|row| row["rate_bps"].as_f64())
        .ok_or_else(|| Late { why: format!("no capacity: {json}"), hypervisors: false })
}

/// A shaper on the sender's own interface: its queue is part of the path, is measured, and is said to be.
#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_the_hosts_own_shaper_is_measured() {
    if no_hosts() {
        return;
    }
    let (near, far) = (Host::new("near"), Host::new("far"));
    near.link("eth0", "10.9.0.1/24", &far, "10.9.0.2/24");
    let _server = far.serves("10.9.0.2", &[]);
    for (direction, shaped, whose) in
        [("forward", &near, "this host's own"), ("reverse", &far, "10.9.0.2's own")]
    {
        shaped.does("tc qdisc replace dev eth0 root tbf rate 20mbit burst 1600 limit 200000");
        let name = format!("{direction} through the sender's own shaper");
        let measured = patiently(&name, || {
            let ended = near.lastmile(&["measure", "10.9.0.2", "--direction", direction, "--json"]);
            capacity(&ended).map(|bps| (bps, ended))
        });
        shaped.does("tc qdisc del dev eth0 root");
        let Some((bps, ended)) = measured else { continue };
        eprintln!("lab: scored: {name}: {:.2} of 20 Mbit/s", bps / 1e6);
        // The kernel's bucket counts Ethernet frames of 1502 B for 1488 B of IP.
        assert!((bps / (20e6 * 1488.0 / 1502.0) - 1.0).abs() < 0.1, "{ended:?}");
        let json = ended.json();
        let warnings = json["warnings"].as_array().expect("warnings");
        assert!(warnings.iter().any(|w| w.to_string().contains(whose)), "{json:#}");
    }
    // Without a shaper there is no warning of a queue.
    let ended = near.lastmile(&["measure", "10.9.0.2", "--json"]);
    assert!(!ended.stdout.contains("own interface"), "{ended:?}");
}

/// The twin of the test above: sent through a shaper of the simulator.
#[test]
fn the_same_shaper_in_the_simulator() {
    let ended = lastmile(&["sim", "path", "--set", "link.0.rate=20 Mbit/s", "--json"]);
    let bps = capacity(&ended).unwrap_or_else(|late| panic!("{}", late.why));
    assert!((bps / 20e6 - 1.0).abs() < 0.01, "{bps} bit/s");
}
