//! The runs of TFRC Probe: loads, links, modes, hand-offs.

use crate::papers::Case;

/// The paper's TFRC is ns-2's of its time; its packets have no header beside their bytes.
pub(super) const NS2: &str = "tfrc(preset=ns-2,header=0)";
pub(super) const RFC: &str = "tfrc";
/// Forward rates of table 2, in kbit/s.
pub(super) const FORWARD: [u32; 4] = [100, 500, 1_000, 5_000];
/// Pairs for an estimate in table 2, and in tables 3 and 4.
pub(super) const SAMPLES: [u32; 2] = [20, 50];
pub(super) const OF_ONE_RUN: [u32; 3] = [20, 50, 100];
/// IP bytes of packets where their size is not adapted [section 5.1].
pub(super) const PACKET: f64 = 1_000.0;
/// From one pair to the next, in packets [section 3.2.2: n].
pub(super) const EVERY: f64 = 20.0;

/// Cross traffic [table 1].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    None,
    Ftp,
    Cbr,
    Pareto,
}

pub(super) const LOADS: [Load; 4] = [Load::None, Load::Ftp, Load::Cbr, Load::Pareto];

impl Load {
    pub(super) fn name(self) -> &'static str {
        match self {
            Load::None => "none",
            Load::Ftp => "4 FTP",
            Load::Cbr => "4 CBR",
            Load::Pareto => "16 Pareto",
        }
    }

    /// On the path from r3 to r4 at so many kbit/s.
    fn on(self, case: Case, kbps: u32) -> Case {
        // Four flows, or four times four, are 80 % of it.
        let (kind, count, each) = match self {
            Load::None => return case,
            Load::Ftp => ("ftp", 1, None),
            Load::Cbr => ("cbr", 1, Some(0.2)),
            Load::Pareto => ("pareto", 4, Some(0.05)),
        };
        ["a", "b", "c", "d"].into_iter().fold(case, |case, place| {
            let key = |key: &str| format!("traffic.{kind}-{place}.{key}");
            let mut case = case.set(key("count"), count);
            if let Some(each) = each {
                case = case.set(key("rate"), format!("{} kbit/s", each * f64::from(kbps)));
            }
            // A burst has a packet at least.
            match kind {
                "pareto" if kbps < 500 => case.set(key("on"), "2 s").set(key("off"), "2 s"),
                _ => case,
            }
        })
    }
}

/// The path of figure 3.
fn asymmetric(load: Load, kbps: u32, seconds: u32) -> Case {
    let case = Case::new("asymmetric").set("duration", format!("{seconds} s"));
    load.on(case.set("link.14.rate", format!("{kbps} kbit/s")), kbps)
}

/// The same with access links of 100 Mbit/s, so that hardly anything comes between the packets of a pair.
pub(super) fn with_fast_access(case: Case) -> Case {
    (0..14).fold(case, |case, link| case.set(format!("link.{link}.rate"), "100 Mbit/s"))
}

/// TFRC Probe on it, for as long as 50 pairs take where cross traffic leaves a tenth: a thousand packets, of 1500 B in the first
/// window.
pub(super) fn table_2(load: Load, kbps: u32, samples: u32) -> Case {
    asymmetric(load, kbps, 240_000 / kbps + 80)
        .set("stream.flow.control", format!("{NS2}+probe(samples={samples})"))
}

/// CapProbe on it, in a run of its own.
pub(super) fn capprobe(load: Load, kbps: u32) -> Case {
    let case = asymmetric(load, kbps, 600);
    case.set("host.c1.count", 1).set("host.c6.count", 1).set("stream.flow.count", 0)
}

/// An access link of tables 3 and 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Ethernet,
    DslDown,
    DslUp,
    OneXrtt,
    /// 802.11b's mode, in kbit/s.
    WifiB(u32),
}

/// Table 3.
pub(super) const WIRED: [Link; 3] = [Link::Ethernet, Link::DslDown, Link::DslUp];
/// 802.11b's modes.
pub(super) const WIFI: [Link; 4] =
    [Link::WifiB(1_000), Link::WifiB(2_000), Link::WifiB(5_500), Link::WifiB(11_000)];
/// Table 4.
pub(super) const WIRELESS: [Link; 5] = [Link::OneXrtt, WIFI[0], WIFI[1], WIFI[2], WIFI[3]];

impl Link {
    pub(super) fn name(self) -> String {
        match self {
            Link::Ethernet => "Ethernet".to_owned(),
            Link::DslDown => "DSL down".to_owned(),
            Link::DslUp => "DSL up".to_owned(),
            Link::OneXrtt => "1xRTT".to_owned(),
            Link::WifiB(mode) => format!("802.11b {}", f64::from(mode) / 1e3),
        }
    }

    pub(super) fn case(self) -> Case {
        match self {
            Link::Ethernet => Case::new("ethernet"),
            Link::DslDown => Case::new("dsl"),
            Link::DslUp => Case::new("dsl")
                .set("stream.flow.from", "home")
                .set("stream.flow.to", "server")
                .set("duration", "280 s"),
            Link::OneXrtt => Case::new("1xrtt"),
            Link::WifiB(mode) => Case::new("wifi-b")
                .set("wlan.0.station.phone.rate", format!("{} Mbit/s", f64::from(mode) / 1e3)),
        }
    }

    /// The same with a source that takes half of what the link has, so that packets seldom wait.
    pub(super) fn half(self) -> Case {
        self.case().set("stream.flow.max_rate", format!("{:.0} kbit/s", self.truth() / 2.0))
    }

    /// The same with real video, of at most 4 Mbit/s; for long enough that a hundred pairs come.
    pub(super) fn filmed(self) -> Case {
        let case = filmed(self.case());
        match self {
            Link::Ethernet => case.set("duration", "15 s"),
            Link::DslDown => case.set("duration", "60 s"),
            Link::WifiB(1_000) => case.set("duration", "120 s"),
            _ => case,
        }
    }

    /// Capacity for pairs, in kbit/s of IP packets: the link's rate, or 1000 B over 802.11b's shortest exchange.
    pub(super) fn truth(self) -> f64 {
        match self {
            Link::Ethernet => 100_000.0 * PACKET / (PACKET + 38.0),
            Link::DslDown => 2_000.0,
            Link::DslUp => 128.0,
            Link::OneXrtt => 150.0,
            Link::WifiB(mode) => shortest_exchange(PACKET, f64::from(mode)),
        }
    }
}

/// IP bytes over the shortest exchange of a frame of 802.11b at a mode in kbit/s, in kbit/s: DIFS, no backoff, long preambles, 36 B
/// of MAC and LLC, SIFS, an ACK at 2 Mbit/s or 1.
pub(super) fn shortest_exchange(bytes: f64, mode: f64) -> f64 {
    let ack = if mode < 2_000.0 { 112.0 } else { 56.0 };
    let micros = 50.0 + 192.0 + 8e3 * (bytes + 36.0) / mode + 10.0 + 192.0 + ack;
    8e3 * bytes / micros
}

/// A case with real video in its stream.
pub(super) fn filmed(case: Case) -> Case {
    case.set("stream.flow.frame_rate", 30).set("stream.flow.max_rate", "4 Mbit/s").filmed((320, 240))
}

/// Variants of the hand-off.
pub(super) const HAND_OFFS: [(&str, &str); 2] = [("with", "probe"), ("without", "probe(notice_only=true)")];

/// Figure 6, with a wrapper around a TFRC.
pub(super) fn hand_off(tfrc: &str, wrapper: &str) -> Case {
    Case::new("hand-off").set("stream.flow.control", format!("{tfrc}+{wrapper}"))
}

/// The same where 802.11b's round-trip time is that of 1xRTT with its queue.
pub(super) fn of_one_rtt(wrapper: &str) -> Case {
    hand_off(NS2, wrapper).set("link.3.delay", "150 ms")
}

/// The same with real video.
pub(super) fn of_video(wrapper: &str) -> Case {
    filmed(hand_off(NS2, wrapper))
}

/// The same where packets keep their size.
pub(super) fn of_one_size(wrapper: &str) -> Case {
    let wrapper = wrapper.strip_suffix(')').map_or(format!("{wrapper}("), |given| format!("{given},"));
    hand_off(NS2, &format!("{wrapper}full_size=true)")).set("stream.flow.packet_size", "500 B")
}

/// The rise of a TFRC's rate.
pub(super) fn increase(tfrc: &str) -> Case {
    Case::new("increase").set("stream.flow.control", tfrc)
}

/// By its name: a pair alone, spread, compressed [figure 1].
pub(super) fn pair(name: &str) -> Case {
    let case = Case::new("pair");
    match name {
        "expansion" => case.set("traffic.between.count", 1),
        "compression" => case.set("traffic.ahead.count", 1),
        _ => case,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand at 11 Mbit/s: 50 + 192 + 753.5 + 10 + 192 + 56 us.
    #[test]
    fn the_shortest_exchanges_of_802_11b_are_known() {
        let found = WIFI.map(|link| (link.truth() / 10.0).round() / 100.0);
        assert_eq!(found, [0.9, 1.72, 3.99, 6.38]);
    }
}
