//! The allowed lateness of a packet: lateness that is short beside the path's own times changes nothing that a program sees.

use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::link::{LinkConfig, QueueLimit};
use lastmile_sim::network::wlan::WlanConfig;
use lastmile_sim::network::wlan::phy::Phy;
use lastmile_sim::scenario::Scenario;

/// The share of the time in its longest queue that a packet may be late.
const QUEUE_SHARE: f64 = 0.05;
/// Lateness of an ordinary machine's timers in any case.
const AT_LEAST: Span = Span::from_micros(100);
/// Beyond this lateness is not counted by size.
pub(super) const AT_MOST: Span = Span::from_millis(10);
/// The packet whose time counts.
const PACKET: Bytes = Bytes(1500);
/// Header, FCS and LLC of a frame around it.
const MAC_BYTES: u64 = 36;

/// Allowed lateness of a packet between two hosts: the time that the path's slowest hop takes for a packet of 1500 B, or
/// 5 % of the time that its full queue takes, whichever is more; from 0.1 to 10 ms.
pub(super) fn allowed(scenario: &Scenario, from: usize, to: usize) -> Span {
    let path = scenario.path(from, to).unwrap_or_default();
    let hops = path.into_iter().map(|index| match scenario.links.get(index) {
        Some(link) => of_link(&link.config),
        // Of several WLANs the fastest, since a path's index does not say which one it is.
        None => scenario.wlans.iter().filter_map(|wlan| of_wlan(&wlan.config)).min().unwrap_or_default(),
    });
    hops.max().unwrap_or_default().clamp(AT_LEAST, AT_MOST)
}

/// At the highest rate that the link ever has; where opportunities drive it, at their mean.
fn of_link(config: &LinkConfig) -> Span {
    let changes = config.schedule.iter().filter_map(|change| change.rate);
    let traced = config.trace.as_ref().map(|trace| Rate::ip(trace.largest() as u64));
    let Some(rate) =
        config.rate.into_iter().chain(changes).chain(traced).max_by_key(|rate| rate.bits_per_second())
    else {
        return Span::ZERO;
    };
    let queue = match config.queue {
        QueueLimit::Packets(n) => Bytes(PACKET.0 * u64::from(n)),
        QueueLimit::Bytes(bytes) => bytes,
    };
    rate.time_for(PACKET).max(rate.time_for(queue).scaled(QUEUE_SHARE))
}

/// Of a lone sender at the highest rate of its standard, with the shortest of the stations' queues.
fn of_wlan(config: &WlanConfig) -> Option<Span> {
    let phy = Phy::new(config).ok()?;
    let packet = phy.cycle(phy.rates().len().checked_sub(1)?, (PACKET.0 + MAC_BYTES) as u32);
    let queue = config.station.iter().map(|station| station.queue).min()?;
    Some(packet.max((packet * i64::from(queue)).scaled(QUEUE_SHARE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_depends_on_the_path() {
        let path = |link: &str| {
            let text = format!(
                "name = \"x\"\nduration = \"1 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n{link}\n"
            );
            allowed(&Scenario::parse("x", &text).unwrap(), 0, 1)
        };
        let us = Span::from_micros;
        // 1500 B at 10 Mbit/s; a twentieth of 60 kB there are as much as two packets.
        assert_eq!(path("rate = \"10 Mbit/s\"\nqueue = \"3 packets\""), us(1_200));
        assert_eq!(path("rate = \"10 Mbit/s\"\nqueue = \"60 kB\""), us(2_400));
        assert_eq!(path("rate = \"100 Mbit/s\"\nqueue = \"60 kB\""), us(240));
        assert_eq!(path("rate = \"1 Gbit/s\"\nqueue = \"60 kB\""), AT_LEAST);
        assert_eq!(path("delay = \"5 ms\""), AT_LEAST);
        // A trace's largest rate counts: 10 Mbit/s.
        let file = std::env::temp_dir().join(format!("lastmile-scale-{}.csv", std::process::id()));
        std::fs::write(&file, "ms,Mbit/s\n0,10\n500,2\n1000,2\n").unwrap();
        let trace = format!("queue = \"60 kB\"\ntrace = {{ kind = \"csv\", file = {file:?} }}");
        assert_eq!(path(&trace), us(2_400));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(path("rate = \"100 kbit/s\""), AT_MOST);
        let cell = lastmile_sim::scenario::builtin("wlan-g").unwrap();
        // An 802.11g sender alone takes 393 us for 1500 B; its queue holds a hundred of these.
        let g = allowed(&cell, 0, 1);
        assert!(us(1_900) < g && g < us(2_000), "{g}");
    }
}
