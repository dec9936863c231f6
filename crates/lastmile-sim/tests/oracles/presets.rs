//! Reno with the options of the preset `linux` under independent loss. Arithmetic: its ACKs count for all that they acknowledge, ours
//! by default for one segment of two, so that windows are as 1 to the root of 2. Beside it ns-3's TcpLinuxReno with the same
//! options; docs/scenarios.md says how far that is away.

use crate::rig::{Rig, mean};
use crate::table::{Table, Within};

/// Goodput in Mbit/s from 10 to 310 s: 100 Mbit/s, 40 ms.
fn run(tcp: &str, loss: f64, seed: u64) -> [f64; 1] {
    let text = format!(
        "name = \"loss\"\nduration = \"311 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"100 Mbit/s\"\n\
         delay = \"20 ms\"\nqueue = \"999 packets\"\nlosses = [{{ model = {{ kind = \"bernoulli\", rate = {loss} }} }}]\n\
         back = {{ losses = [] }}\n[[traffic]]\nkind = \"ftp\"\nfrom = \"a\"\nto = \"b\"\ntcp = {{ {tcp} }}\n"
    );
    let mut rig = Rig::new(&text, &[], seed);
    let [before, after] = [10.0, 310.0].map(|seconds| {
        rig.run_to(seconds);
        rig.acknowledged(0)
    });
    [(after - before) * 1448.0 * 8.0 / 300e6]
}

#[test]
fn linux_counts_what_delayed_acks_acknowledge() {
    let mut table = Table::new("1.8-presets", "1.8 Reno under independent loss, goodput in Mbit/s", 3);
    for (loss, ns3) in [(0.005, 5.586), (0.01, 4.005), (0.02, 2.818)] {
        let ours = |tcp: &str| mean(5, |seed| run(tcp, loss, seed))[0];
        let linux = ours("preset = \"linux\", law = \"reno\"");
        let default = ours("segment = \"1448 B\", header = \"52 B\"");
        let at = format!("at {} %", 100.0 * loss);
        table.row(
            format!("{at}, over the default's: root of 2"),
            2_f64.sqrt(),
            linux / default,
            Within::Share(0.08),
        );
        table.row(format!("{at}, linux: ns-3's TcpLinuxReno"), ns3, linux, Within::Shown);
        table.row(format!("{at}, default: the same"), ns3, default, Within::Shown);
    }
    table.check();
}
