//! A path as the text of a scenario.

use std::fmt::Write as _;

use super::draw::{Bucket, Cell, Changes, Cross, Hop, Kind, Path, Queue, Standard, Way};

/// When measurements begin, in seconds: by then long TCP flows have filled the queues.
pub(super) const WARM_UP: f64 = 4.0;
/// The longest run in seconds; it ends once its measurements have.
pub(super) const LONGEST: f64 = 900.0;
/// Rates change up to then.
const CHANGES_UNTIL: f64 = 60.0;
/// The fastest line in front of a token bucket, bit/s.
const FASTEST: f64 = 1e9;
/// The smallest queue: ten packets.
const LEAST_QUEUE: f64 = 15_000.0;

impl Path {
    /// The scenario, measured by these methods one after the other, both ways.
    pub(super) fn text(&self, name: &str, seed: u64, methods: &[String]) -> String {
        let mut text = format!(
            "name = \"{name}\"\nduration = \"{LONGEST} s\"\nwarm_up = \"{WARM_UP} s\"\nseed = {seed}\n\n\
             [host.sender]\n[host.receiver]\n"
        );
        let last = self.hops.len();
        for router in 0..=last {
            let access = self.hops.get(router).or(self.hops.last()).map_or(1_000, |hop| hop.access_us);
            let _ = writeln!(
                text,
                "[host.x{router}]\n[[link]]\nfrom = \"x{router}\"\nto = \"r{router}\"\ndelay = \"{access} us\""
            );
        }
        text.push_str("[[link]]\nfrom = \"sender\"\nto = \"r0\"\n");
        for (index, hop) in self.hops.iter().enumerate() {
            link(&mut text, index, hop);
        }
        match &self.cell {
            None => {
                let _ = writeln!(text, "[[link]]\nfrom = \"r{last}\"\nto = \"receiver\"");
            }
            Some(cell) => wlan(&mut text, last, cell),
        }
        for (index, hop) in self.hops.iter().enumerate() {
            for (way, ends) in hop.ways.iter().zip([(index, index + 1), (index + 1, index)]) {
                let Some(cross) = &way.cross else { continue };
                let size = cross.size_at(way.rate).min(hop.mtu.unwrap_or(1_500));
                let wire = size as f64 / (size + hop.overhead) as f64;
                let ends = (format!("x{}", ends.0), format!("x{}", ends.1));
                traffic(&mut text, cross, &ends, way.rate * wire, size);
            }
        }
        for (index, station) in self.cell.iter().flat_map(|cell| &cell.stations).enumerate() {
            let rate = self.cell.as_ref().map_or(0.0, |cell| cell.about(station.rate));
            let (ap, own) = (format!("x{last}"), format!("s{index}"));
            let ends = if station.up { (own, ap) } else { (ap, own) };
            traffic(&mut text, &station.cross, &ends, rate, station.cross.size_at(rate));
        }
        for method in methods {
            let _ =
                writeln!(text, "[[measure]]\nfrom = \"sender\"\nto = \"receiver\"\nmethod = \"{method}\"");
        }
        text
    }
}

fn link(text: &mut String, index: usize, hop: &Hop) {
    let (there, back) = (index, index + 1);
    let _ = writeln!(text, "[[link]]\nfrom = \"r{there}\"\nto = \"r{back}\"");
    let _ = writeln!(text, "delay = \"{} us\"\noverhead = \"{} B\"", hop.delay_us, hop.overhead);
    let [own, other] = &hop.ways;
    for line in limits(hop, own) {
        let _ = writeln!(text, "{line}");
    }
    if let Some(rate) = hop.loss {
        let _ = writeln!(text, "losses = [{{ model = {{ kind = \"bernoulli\", rate = {rate:.5} }} }}]");
    }
    if let Some(jitter) = &hop.jitter {
        let law = match jitter.normal {
            true => format!("kind = \"normal\", std = \"{} us\"", jitter.max_us.div_ceil(6)),
            false => "kind = \"uniform\"".to_owned(),
        };
        let (max, reorder) = (jitter.max_us, jitter.reorder);
        let _ = writeln!(text, "jitter = {{ {law}, max = \"{max} us\", reorder = {reorder} }}");
    }
    if let Some(mtu) = hop.mtu {
        let _ = writeln!(text, "mtu = \"{mtu} B\"");
    }
    let _ = writeln!(text, "back = {{ {} }}", limits(hop, other).join(", "));
}

/// The limits of one way of a link, as keys and values.
fn limits(hop: &Hop, way: &Way) -> Vec<String> {
    let line = match &hop.bucket {
        Some(bucket) => (way.rate * bucket.line).min(FASTEST),
        None => way.rate,
    };
    let mut all = vec![format!("rate = \"{line:.0} bit/s\"")];
    let queue = (way.rate / 8.0 * way.holds).max(LEAST_QUEUE);
    all.extend(match hop.queue {
        Queue::FqCodel => None,
        _ => Some(format!("queue = \"{queue:.0} B\"")),
    });
    let (min, max) = (queue / 6.0, queue / 2.0);
    let discipline = match hop.queue {
        Queue::Fifo => None,
        Queue::Red => Some(format!(
            "kind = \"red\", min_threshold = \"{min:.0} B\", max_threshold = \"{max:.0} B\", max_probability = 0.1, gentle = true"
        )),
        Queue::Codel => Some("kind = \"codel\"".to_owned()),
        Queue::FqCodel => Some("kind = \"fq-codel\"".to_owned()),
        Queue::Pie => Some("kind = \"pie\"".to_owned()),
    };
    let ecn = if hop.marks { ", ecn = true" } else { "" };
    all.extend(discipline.map(|kind| format!("discipline = {{ {kind}{ecn} }}")));
    if let Some(Bucket { policer, bytes, .. }) = hop.bucket {
        let kind = if policer { "policer" } else { "shaper" };
        let bytes = bytes.max(1_500 + hop.overhead);
        all.push(format!("{kind} = {{ rate = \"{:.0} bit/s\", burst = \"{bytes} B\" }}", way.rate));
    }
    if let Some(changes) = &hop.changes {
        all.push(format!("changes = [{}]", changed(changes, line, way.rate)));
    }
    all
}

/// The times at which rates change, in seconds.
pub(super) fn times(changes: &Changes) -> impl Iterator<Item = f64> + use<> {
    let period = changes.period;
    (1_u32..).map(move |turn| WARM_UP + f64::from(turn) * period).take_while(|&at| at < CHANGES_UNTIL)
}

fn changed(changes: &Changes, line: f64, rate: f64) -> String {
    let one = |(turn, at): (usize, f64)| {
        let rate = if turn % 2 == 0 { rate * changes.factor } else { line };
        format!("{{ at = \"{:.0} us\", rate = \"{rate:.0} bit/s\" }}", at * 1e6)
    };
    times(changes).enumerate().map(one).collect::<Vec<_>>().join(", ")
}

fn wlan(text: &mut String, ap: usize, cell: &Cell) {
    for index in 0..cell.stations.len() {
        let _ = writeln!(text, "[host.s{index}]");
    }
    text.push_str("[[wlan]]\n");
    text.push_str(&match cell.standard {
        Standard::B => "standard = \"b\"\n".to_owned(),
        Standard::G => "standard = \"g\"\n".to_owned(),
        Standard::N(streams) => format!("standard = \"n\"\nstreams = {streams}\nampdu = {{}}\n"),
    });
    let _ = writeln!(text, "station = [\n  {{ name = \"r{ap}\", queue = {} }},", cell.queue);
    let control = cell.control.map_or_else(String::new, |kind| format!(", rate_control = \"{kind}\""));
    let own = [("receiver".to_owned(), cell.rate)];
    let others = cell.stations.iter().enumerate().map(|(index, station)| (format!("s{index}"), station.rate));
    for (name, rate) in own.into_iter().chain(others) {
        let error = cell.frame_error;
        let _ = writeln!(
            text,
            "  {{ name = \"{name}\", ap = \"r{ap}\", rate = \"{rate} Mbit/s\", frame_error = {error:.4}{control} }},"
        );
    }
    text.push_str("]\n");
}

/// The flows of others between two hosts, whose packets of that size could have `rate`.
fn traffic(text: &mut String, cross: &Cross, (from, to): &(String, String), rate: f64, size: u64) {
    let ends = format!("from = \"{from}\"\nto = \"{to}\"\nstart_within = \"1 s\"\n");
    let given = (cross.load * rate).max(1_000.0);
    let open = format!("rate = \"{given:.0} bit/s\"\nsize = \"{size} B\"\n");
    let law = match cross.kind {
        Kind::Cbr => format!("kind = \"cbr\"\n{open}"),
        Kind::Poisson => format!("kind = \"poisson\"\n{open}"),
        Kind::Pareto => {
            // A burst of four packets at least.
            let on = cross.burst.0.max(32.0 * size as f64 / (given * (1.0 + cross.burst.1)));
            let off = on * cross.burst.1;
            let lengths = format!("on = \"{:.0} us\"\noff = \"{:.0} us\"\n", on * 1e6, off * 1e6);
            format!("kind = \"pareto\"\n{open}{lengths}shape = {:.2}\n", cross.shape)
        }
        Kind::Reno => tcp(cross, rate, "reno", size),
        Kind::Cubic => tcp(cross, rate, "cubic", size),
    };
    let flows = if cross.kind.is_tcp() { cross.flows } else { 1 };
    for flow in 0..flows {
        let _ = write!(text, "[[traffic]]\nname = \"{from}-{to}-{flow}\"\n{ends}{law}");
    }
}

fn tcp(cross: &Cross, rate: f64, law: &str, size: u64) -> String {
    let options =
        format!("tcp = {{ law = \"{law}\", segment = \"{} B\", min_rto = \"200 ms\" }}\n", size - 40);
    if cross.long {
        return format!("kind = \"ftp\"\n{options}");
    }
    let bytes = (rate / 8.0 * cross.file).max(10_000.0);
    // A file of the mean size, twice as long as it would take alone.
    let pause = 4.0 * bytes * 8.0 / rate * (1.0 - cross.load) / cross.load * cross.flows as f64;
    format!(
        "kind = \"files\"\nbytes = \"{bytes:.0} B\"\nbytes_max = \"{:.0} B\"\npause = \"{:.0} us\"\n{options}",
        3.0 * bytes,
        (pause * 1e6).min(20e6)
    )
}
