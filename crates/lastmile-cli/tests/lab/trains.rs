//! `measure --peer iperf3` against Debian's program: the capacity of the way down is the link's, idle and loaded.

use super::common::{PROGRAM, Scratch, lastmile};
use super::iperf3::no_iperf3;
use super::lateness;
use super::patience::{Late, patiently};

/// Largest error of the capacity.
const APART: f64 = 0.02;

/// A link of so many Mbit/s, with so many of Poisson traffic.
fn path(mbps: f64, others: f64) -> String {
    let mut path = format!(
        "name = \"trains\"\nduration = \"20 s\"\n[host.home]\n[host.server]\n[[link]]\nfrom = \"server\"\nto = \"home\"\nrate = \"{mbps} Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"120 kB\"\n"
    );
    if others > 0.0 {
        path += &format!(
            "[[traffic]]\nname = \"others\"\nkind = \"poisson\"\nfrom = \"server\"\nto = \"home\"\nrate = \"{others} Mbit/s\"\nsize = \"1500 B\"\n"
        );
    }
    path
}

/// The document of a measurement.
fn measured(scratch: &Scratch, mbps: f64, others: f64, seed: u64) -> Result<serde_json::Value, Late> {
    let (file, said) = (scratch.file("trains.toml", path(mbps, others)), scratch.path("said.json"));
    let client = format!("sleep 0.5; {PROGRAM} measure {{server}} --peer iperf3 --json > {said}; true");
    let seed = seed.to_string();
    let ended = lastmile(&[
        "lab",
        &file,
        "--seed",
        &seed,
        "--in",
        "server",
        "--",
        "sh",
        "-c",
        "timeout 4 iperf3 -s; true",
        "--in",
        "home",
        "--",
        "sh",
        "-c",
        &client,
    ]);
    if let Some(late) = lateness(&ended) {
        return Err(late);
    }
    let text = std::fs::read_to_string(&said).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    Ok(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text} {ended:?}")))
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_trains_of_iperf3_show_the_links_capacity() {
    if no_iperf3() {
        return;
    }
    let (scratch, mut wrong) = (Scratch::new("trains"), Vec::new());
    for (mbps, others) in [(10.0, 0.0), (10.0, 4.0), (50.0, 0.0), (50.0, 20.0)] {
        let name = format!("trains of iperf3, {mbps} Mbit/s under {others}");
        let Some(mut json) = patiently(&name, || measured(&scratch, mbps, others, 1)) else { continue };
        if json["results"][0]["rate_bps"].is_null() {
            // iperf3's own lateness, which the lab does not see, can make a train look like a bucket's: a bound, once.
            let Some(again) = patiently(&name, || measured(&scratch, mbps, others, 1)) else { continue };
            json = again;
        }
        let row = &json["results"][0];
        let (rate, bytes) = (row["rate_bps"].as_f64(), row["bytes_received"].as_u64());
        let error = rate.map(|rate| rate / mbps / 1e6 - 1.0);
        let text = format!("{name}: {:.3} Mbit/s, {bytes:?} B", rate.unwrap_or(f64::NAN) / 1e6);
        eprintln!("lab: scored: {text}");
        let right =
            error.is_some_and(|error| error.abs() <= APART) && bytes.is_some_and(|bytes| bytes <= 300_000);
        if !right || row["direction"] != "reverse" || row["quantity"] != "capacity" {
            wrong.push(format!("{text}: {json}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Ten runs of each case, for docs/validation.md.
#[test]
#[ignore = "takes two minutes: `make field`"]
fn field_trains_of_iperf3_in_the_lab() {
    if no_iperf3() {
        return;
    }
    let scratch = Scratch::new("ten");
    eprintln!(
        "| `--peer iperf3` in the lab | n | median (least to most), Mbit/s | intervals that hold the link's rate | warnings | refused | kB |\n|---|---|---|---|---|---|---|"
    );
    for (mbps, others) in [(10.0, 0.0), (10.0, 4.0), (50.0, 0.0), (50.0, 20.0)] {
        let (mut rates, mut holds, mut warned, mut refused, mut bytes) = (Vec::new(), 0, 0, 0, 0);
        for seed in 1..=10 {
            let Ok(json) = measured(&scratch, mbps, others, seed) else {
                refused += 1;
                continue;
            };
            let row = &json["results"][0];
            rates.extend(row["rate_bps"].as_f64().map(|rate| rate / 1e6));
            warned += usize::from(!row["warning"].is_null());
            let end = |name: &str| row["interval"][name].as_f64().unwrap_or(f64::NAN);
            holds += usize::from(end("low_bps") <= mbps * 1e6 && mbps * 1e6 <= end("high_bps"));
            bytes =
                bytes.max(row["bytes"].as_u64().unwrap_or(0) + row["bytes_received"].as_u64().unwrap_or(0));
        }
        rates.sort_by(f64::total_cmp);
        let (n, middle) = (rates.len(), rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN));
        let (least, most) =
            (rates.first().copied().unwrap_or(f64::NAN), rates.last().copied().unwrap_or(f64::NAN));
        eprintln!(
            "| {mbps} Mbit/s under {others} of Poisson | {n} | {middle:.3} ({least:.3} to {most:.3}) | {holds} | {warned} | {refused} | {:.0} |",
            bytes as f64 / 1e3
        );
        assert!(rates.iter().all(|rate| (rate / mbps - 1.0).abs() <= APART), "{rates:?}");
        assert!(refused <= 2, "{refused} of 10 refused");
    }
}
