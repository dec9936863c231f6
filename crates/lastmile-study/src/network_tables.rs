//! Results of a run's traffic, links and WLANs, as tables for people.

use std::collections::BTreeMap;

use lastmile::units::Bytes;
use lastmile_report::text::{Table, Text};
use lastmile_sim::monitor::accounting::{LinkOutcome, NetworkOutcome, WlanOutcome};
use lastmile_sim::monitor::flows::{FlowOutcome, as_rate};

/// The tables of a run's flows, links and WLANs, one below the other.
pub fn tables(network: &NetworkOutcome) -> Text {
    let NetworkOutcome { flows, links, wlans, .. } = network;
    let mut text = Text::default();
    if !flows.is_empty() {
        text.table(flow_table(flows));
    }
    if !links.is_empty() {
        link_table(links, &mut text);
    }
    if !wlans.is_empty() {
        wlan_table(wlans, &mut text);
    }
    text
}

/// Links, or directions of WLANs, of a table; a person looks at no more.
const MAX_HOPS: usize = 24;

/// Table of the links.
fn link_table(links: &[LinkOutcome], text: &mut Text) {
    let columns = [
        "link from",
        "to",
        ">packets",
        ">marked",
        "lost",
        ">mean queue",
        ">longest",
        "~>in packets",
        ">busy",
    ];
    let mut table = Table::new(&columns);
    let used = links.iter().filter(|link| link.packets > 0 || !link.lost.is_empty());
    for link in used.clone().take(MAX_HOPS) {
        table.row([
            link.from.clone(),
            link.to.clone(),
            link.packets.to_string(),
            link.marked.to_string(),
            causes(&link.lost),
            bytes(link.queue_mean_bytes),
            Bytes(link.queue_max_bytes).to_string(),
            link.queue_max_packets.to_string(),
            percent(link.busy_share),
        ]);
    }
    text.table(table);
    more(used.count(), links.len(), "links", text);
}

/// Table of the WLANs' directions.
fn wlan_table(wlans: &[WlanOutcome], text: &mut Text) {
    let columns = [
        "air from",
        "to",
        ">packets",
        "lost",
        ">collisions",
        ">mean queue",
        "~>longest",
        ">of the air",
        ">busy",
    ];
    let mut table = Table::new(&columns);
    let used = wlans.iter().filter(|air| air.packets > 0);
    for air in used.clone().take(MAX_HOPS) {
        table.row([
            air.from.clone(),
            air.to.clone(),
            air.packets.to_string(),
            causes(&air.lost_by_cause),
            air.collisions.to_string(),
            bytes(air.queue_mean_bytes),
            air.queue_max_packets.to_string(),
            percent(air.air_share),
            percent(air.busy_share),
        ]);
    }
    text.table(table);
    more(used.count(), wlans.len(), "directions of WLANs", text);
}

/// Says what a table leaves out.
fn more(used: usize, all: usize, what: &str, text: &mut Text) {
    match used.saturating_sub(MAX_HOPS) {
        0 if used == all => {}
        0 => text.say(format!("{} other {what} carried nothing", all - used)),
        more => text.say(format!("{more} more {what} carried something: --json has all")),
    }
}

fn causes(lost: &BTreeMap<&'static str, u64>) -> String {
    let lost: Vec<_> = lost.iter().map(|(cause, packets)| format!("{packets} {cause}")).collect();
    if lost.is_empty() { "-".to_owned() } else { lost.join(", ") }
}

fn bytes(mean: Option<f64>) -> String {
    mean.map_or_else(|| "-".to_owned(), |mean| Bytes(mean.round() as u64).to_string())
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

/// Table of the traffic.
fn flow_table(flows: &[FlowOutcome]) -> Table {
    let columns = [
        "flow",
        "~kind",
        "from",
        "to",
        ">goodput (IP)",
        ">sent",
        "~>received",
        "lost",
        ">delay",
        "~>longest",
    ];
    let mut table = Table::new(&columns);
    let milliseconds =
        |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |s| format!("{:.2} ms", s * 1e3));
    for flow in flows {
        table.row([
            flow.flow.clone(),
            flow.kind.to_owned(),
            flow.from.clone(),
            flow.to.clone(),
            flow.goodput_bps.map_or_else(|| "-".to_owned(), |bps| as_rate(bps).to_string()),
            flow.sent.to_string(),
            flow.received.to_string(),
            causes(&flow.lost),
            milliseconds(flow.delay_mean_s),
            milliseconds(flow.delay_max_s),
        ]);
    }
    table
}
