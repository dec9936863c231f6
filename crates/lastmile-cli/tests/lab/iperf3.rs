//! A program of others through an 802.11g cell of five stations: iperf3's rate on a saturated downlink is that of the
//! simulator in virtual time, and that of the standard's arithmetic.

use std::process::Command;

use super::common::{PROGRAM, Scratch, lastmile, run};
use super::patience::{Late, patiently};
use super::{lateness, no_lab};

const IDLE: &str = include_str!("../../../lastmile-sim/scenarios/wlan-g.toml");
const BUSY: &str = include_str!("../../../lastmile-sim/scenarios/wlan-g-busy.toml");

/// IP and UDP headers around iperf3's payload, in bytes.
const HEADERS: u32 = 28;
/// Largest difference between the worlds: 3 %. The backoffs drawn in 2 s are worth 0.1 %.
const APART: f64 = 0.03;

/// One cell and one size of packets.
struct Case {
    name: &'static str,
    scenario: &'static str,
    /// Size of the IP packets, in bytes.
    size: u32,
    /// Expected range of the rate, in IP bit/s, from other sources.
    oracle: (f64, f64),
}

/// A lone sender's rate with 54 Mbit/s and short slots: DIFS, half the smallest window, the frame with its MAC header,
/// FCS and LLC (22 bits of service and tail, 216 bits a symbol of 4 us, 20 us of preamble, 6 us of extension), SIFS and
/// the ACK at 24 Mbit/s (IEEE 802.11-2016, 10.3 and 18).
fn arithmetic(size: u32) -> f64 {
    let symbols = (22 + 8 * (size + 36)).div_ceil(216);
    let microseconds = 28.0 + 7.5 * 9.0 + 20.0 + 4.0 * f64::from(symbols) + 6.0 + 10.0 + 34.0;
    f64::from(size) * 8.0 / microseconds * 1e6
}

fn cases() -> [Case; 4] {
    let idle = |name, size| Case { name, scenario: IDLE, size, oracle: (arithmetic(size), arithmetic(size)) };
    // ns-3 3.37 with one contending uplink of 4.6 Mbit/s in packets of 1500 B; here four stations share those.
    let busy = |name, size, oracle| Case { name, scenario: BUSY, size, oracle };
    [
        idle("iperf3 through 802.11g, 1498 B", 1498),
        idle("iperf3 through 802.11g, 500 B", 500),
        busy("iperf3 through 802.11g, four stations contend, 1498 B", 1498, (25.82e6, 25.88e6)),
        busy("iperf3 through 802.11g, four stations contend, 500 B", 500, (13.85e6, 13.87e6)),
    ]
}

impl Case {
    /// The simulator's figure: the same cell with its own saturating traffic.
    fn simulated(&self, scratch: &Scratch) -> f64 {
        let down = format!(
            "[[traffic]]\nname = \"down\"\nkind = \"cbr\"\nfrom = \"ap\"\nto = \"sta-1\"\nrate = \"60 Mbit/s\"\nsize = \"{} B\"\n",
            self.size
        );
        let file = scratch.file("twin.toml", [self.scenario, &down].concat());
        let json = lastmile(&["sim", &file, "--json"]).json();
        let flows = json["flows"].as_array().expect("flows");
        let flow = flows.iter().find(|flow| flow["flow"] == "down").expect("the downlink");
        flow["goodput_bps"].as_f64().expect("a rate")
    }

    /// The rate at iperf3's server in a lab of real time, or the lateness for which that lab was refused.
    fn measured(&self, scratch: &Scratch) -> Result<f64, Late> {
        let (scenario, log) = (scratch.file("cell.toml", self.scenario), scratch.path("server.json"));
        // The server adds to a log that is there.
        let _ = std::fs::remove_file(&log);
        let payload = (self.size - HEADERS).to_string();
        let server = ["--in", "sta-1", "--", "iperf3", "-s", "-1", "-J", "-i", "0.5", "--logfile", &log];
        let client =
            ["--in", "ap", "--", "iperf3", "-u", "-b", "60M", "-t", "3", "-l", &payload, "-c", "{sta-1}"];
        let ended = lastmile(&[&["lab", &scenario][..], &server, &client].concat());
        if let Some(late) = lateness(&ended) {
            return Err(late);
        }
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let text = std::fs::read_to_string(&log).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        let json: serde_json::Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        // The first interval holds the start, the last ones the end.
        let intervals = json["intervals"].as_array().expect("intervals");
        assert!(intervals.len() >= 6, "{} intervals: {text}", intervals.len());
        let (mut bytes, mut seconds) = (0.0, 0.0);
        for interval in &intervals[1..5] {
            bytes += interval["sum"]["bytes"].as_f64().expect("bytes");
            seconds += interval["sum"]["seconds"].as_f64().expect("seconds");
        }
        let payload = f64::from(self.size - HEADERS);
        Ok(bytes * 8.0 / seconds * f64::from(self.size) / payload)
    }
}

/// The relative distance of a rate from the nearer end of a range.
fn apart(rate: f64, (low, high): (f64, f64)) -> f64 {
    if rate < low { rate / low - 1.0 } else { (rate / high - 1.0).max(0.0) }
}

/// True if there is no lab here, or no iperf3; prints the reason.
pub(super) fn no_iperf3() -> bool {
    let missing = Command::new("iperf3").arg("--version").output().is_err();
    no_lab()
        || missing && {
            eprintln!(
                "lab: skipped: there is no iperf3 here: apt-get install iperf3, which scripts/setup.sh tries"
            );
            true
        }
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_iperf3_gets_what_the_simulator_says() {
    if no_iperf3() {
        return;
    }
    let (scratch, mut wrong) = (Scratch::new("iperf3"), Vec::new());
    for case in cases() {
        let simulated = case.simulated(&scratch);
        let Some(rate) = patiently(case.name, || case.measured(&scratch)) else { continue };
        let (sim, oracle) = (rate / simulated - 1.0, apart(rate, case.oracle));
        let text = format!(
            "{}: {:.2} Mbit/s, {:+.1} % from the simulator, {:+.1} % from the oracle",
            case.name,
            rate / 1e6,
            sim * 100.0,
            oracle * 100.0
        );
        eprintln!("lab: scored: {text}");
        if sim.abs() > APART || oracle.abs() > APART {
            wrong.push(text);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The twin of the test above.
#[test]
fn the_simulator_saturates_the_same_cells() {
    let scratch = Scratch::new("saturation");
    for case in cases() {
        let simulated = case.simulated(&scratch);
        let error = apart(simulated, case.oracle);
        // Arithmetic leaves nothing to chance; four stations collide with each other where the oracle's one does not.
        let limit = if case.scenario == IDLE { 0.005 } else { 0.01 };
        assert!(error.abs() < limit, "{}: {simulated} bit/s, not {:?}", case.name, case.oracle);
    }
}

/// Rate of a TCP connection at iperf3's server over one link of that rate, as a share of it at the IP layer.
fn tcp(scratch: &Scratch, mbps: f64) -> Result<f64, Late> {
    let (log, rate) = (scratch.path("tcp.json"), format!("link.0.rate={mbps} Mbit/s"));
    let _ = std::fs::remove_file(&log);
    let path = ["lab", "path", "--set", &rate, "--set", "traffic.cross.rate=100 kbit/s"];
    let server = ["--in", "receiver", "--", "iperf3", "-s", "-1", "-J", "--logfile", &log];
    let client = ["--in", "sender", "--", "iperf3", "-t", "2", "-c", "{receiver}"];
    let ended = lastmile(&[&path[..], &server, &client].concat());
    if let Some(late) = lateness(&ended) {
        return Err(late);
    }
    let text = std::fs::read_to_string(&log).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    let json: serde_json::Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let goodput = json["end"]["sum_received"]["bits_per_second"].as_f64().expect("a rate");
    Ok(goodput * 1500.0 / 1448.0 / (mbps * 1e6))
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_tcp_and_ping_are_not_refused_for_their_bursts() {
    if no_iperf3() {
        return;
    }
    let scratch = Scratch::new("tcp");
    for mbps in [10.0, 30.0, 100.0] {
        let name = format!("TCP over {mbps} Mbit/s");
        let Some(share) = patiently(&name, || tcp(&scratch, mbps)) else { continue };
        eprintln!("lab: scored: {name}: {:.1} % of it", share * 100.0);
        assert!((0.75..1.0).contains(&share), "{name}: {share}");
    }
    if Command::new("ping").arg("-V").output().is_err() {
        eprintln!("lab: skipped: there is no ping here");
        return;
    }
    let ping = ["lab", "path", "--in", "sender", "--", "ping", "-c", "3", "-i", "0.2", "{receiver}"];
    let pinged = patiently("ping", || match lastmile(&ping) {
        ended if ended.code == Some(0) => Ok(()),
        ended => Err(lateness(&ended).unwrap_or_else(|| panic!("{ended:?}"))),
    });
    if pinged.is_some() {
        eprintln!("lab: scored: ping");
    }
}

/// Five runs at each rate: at most one of the fifteen is refused.
#[test]
#[ignore = "takes a minute: `make field`"]
fn field_iperf3_tcp_in_the_lab() {
    if no_iperf3() {
        return;
    }
    let (scratch, mut refused) = (Scratch::new("fifteen"), 0);
    eprintln!("| iperf3 TCP in the lab | n | goodput, % of the link (IP) | refused |\n|---|---|---|---|");
    for mbps in [10.0, 30.0, 100.0] {
        let (mut shares, mut late) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            match tcp(&scratch, mbps) {
                Ok(share) => shares.push(format!("{:.1}", share * 100.0)),
                Err(why) => late.push(why.why),
            }
        }
        refused += late.len();
        eprintln!("| {mbps} Mbit/s | 5 | {} | {} |", shares.join(", "), late.join("; "));
    }
    assert!(refused <= 1, "{refused} of 15 refused");
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_a_lab_takes_a_quarter_of_a_core_for_1_mbit_s() {
    if no_iperf3() {
        return;
    }
    let server = ["lab", "path", "--json", "--in", "receiver", "--", "iperf3", "-s", "-1"];
    let client = ["--in", "sender", "--", "iperf3", "-u", "-b", "1M", "-t", "2", "-c", "{receiver}"];
    let ended = lastmile(&[&server[..], &client].concat());
    let share = ended.json()["lateness"]["core_share"].as_f64().expect("a share");
    eprintln!("{:.1} % of a core, {:.1} s of traffic", share * 100.0, 2.0);
    assert!(share > 0.0 && share < 0.25, "{share}: {ended:?}");
}

/// Programs and overrides on one command line, without any wall clock: errors are printed before a lab is made.
#[test]
fn a_wrong_override_is_named() {
    let lab = |set: &str| run(Command::new(PROGRAM).args(["lab", "wlan-g", "--set", set]));
    lab("duration").is_error(2, &["--set \"duration\"", "duration=5 s"]);
    lab("traffic.up-2.rate=1 Mbit/s").is_error(2, &["traffic.up-2.rate"]);
}
