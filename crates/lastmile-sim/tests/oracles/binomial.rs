//! Binomial laws with a = 1 and b = 0.667 under independent loss, against ns-2. The setting is not written down beside the
//! numbers: 1000-byte segments, 40 ms, 100 Mbit/s and an ACK for each segment give them in ns-2. There the error model drops
//! every run's first packet, so that slow start ends at two segments; here it is forgotten after 100 s, since IIAD takes a
//! minute to come down from what it overshot.

use crate::rig::{Rig, mean, ns2_tcp};
use crate::table::{Table, Within};

/// Goodput in kbit/s.
fn run(law: &str, loss: f64, seed: u64) -> [f64; 1] {
    let tcp = ns2_tcp(&[("law", law), ("recovery", "sack"), ("segment", "1000 B")]);
    let text = format!(
        "name = \"loss\"\nduration = \"401 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"100 Mbit/s\"\n\
         delay = \"20 ms\"\nqueue = \"999 packets\"\nlosses = [{{ model = {{ kind = \"bernoulli\", rate = {loss} }} }}]\n\
         back = {{ losses = [] }}\n[[traffic]]\nkind = \"ftp\"\nfrom = \"a\"\nto = \"b\"\ntcp = {tcp}\n"
    );
    let mut rig = Rig::new(&text, &[], seed);
    let [before, after] = [100.0, 400.0].map(|seconds| {
        rig.run_to(seconds);
        rig.acknowledged(0)
    });
    [(after - before) * 8.0 / 300.0]
}

#[test]
fn binomial_laws_are_as_fast_as_tcp_under_independent_loss() {
    let mut table =
        Table::new("1.6", "1.6 Binomial laws under independent loss, goodput in kbit/s: ns-2, ours", 0);
    for (loss, rows) in [
        (0.005, [("SACK TCP", "reno", 3332.0), ("SQRT", "sqrt", 3200.0), ("IIAD", "iiad", 3174.0)]),
        (0.01, [("SACK TCP", "reno", 2287.0), ("SQRT", "sqrt", 2202.0), ("IIAD", "iiad", 2208.0)]),
        (0.02, [("SACK TCP", "reno", 1534.0), ("SQRT", "sqrt", 1463.0), ("IIAD", "iiad", 1447.0)]),
    ] {
        for (name, law, oracle) in rows {
            let [ours] = mean(5, |seed| run(law, loss, seed));
            table.row(format!("{name} at {} %", 100.0 * loss), oracle, ours, Within::Share(0.05));
        }
    }
    table.check();
}
