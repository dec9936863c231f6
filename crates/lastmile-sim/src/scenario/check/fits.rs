//! Refuses packets that do not fit where they go, and TCP connections that nothing limits.

use lastmile::time::Span;
use lastmile::units::Bytes;

use super::{Check, Checked};
use crate::network::link::QueueLimit;
use crate::scenario::Scenario;

/// The largest MSDU (IEEE 802.11-2016, table 9-19), and LLC and SNAP, which count in it.
const MAX_MSDU: Bytes = Bytes(2304);
const LLC: Bytes = Bytes(8);
/// Links on the paths of all flows, there and back: routers keep a way for each.
const MAX_HOPS: usize = 50_000_000;

impl Check<'_> {
    /// Refuses packets that a WLAN cannot carry: with LLC and SNAP they are larger than an MSDU.
    pub(super) fn frames(&self, scenario: &Scenario) -> Checked<()> {
        for (index, flow) in scenario.traffic.iter().enumerate() {
            let path = self.path(scenario, flow.from, flow.to).unwrap_or_default();
            self.ensure(
                flow.size + LLC <= MAX_MSDU || path.iter().all(|&hop| hop < scenario.links.len()),
                || {
                    let size = format!("traffic[{index}].size");
                    let path = if self.file.has(&size) { size } else { format!("traffic[{index}].kind") };
                    let (size, most) = (flow.size, Bytes(MAX_MSDU.0 - LLC.0));
                    let what = format!(
                        "packets of {size} cross a WLAN, whose frames carry IP packets of at most {most}"
                    );
                    (path, what)
                },
            )?;
        }
        Ok(())
    }

    /// Refuses a connection whose window would turn over in no time, since its path has neither rate nor delay; and more
    /// ways than routers can keep.
    pub(super) fn limited(&self, scenario: &Scenario) -> Checked<()> {
        let mut hops = 0;
        for (index, flow) in scenario.traffic.iter().enumerate() {
            let kind = || format!("traffic[{index}].kind");
            let there = self.path(scenario, flow.from, flow.to).unwrap_or_default();
            let back = self.path(scenario, flow.to, flow.from).unwrap_or_default();
            hops += there.len() + back.len();
            self.ensure(hops <= MAX_HOPS, || {
                (kind(), format!("paths of flows with more than {MAX_HOPS} hops together"))
            })?;
            // Hops beyond the links are air, which has a rate.
            let limits = |link: &usize| {
                let config = scenario.links.get(*link).map(|link| &link.config);
                config.is_none_or(|c| c.rate.is_some() || c.shaper.is_some() || c.delay > Span::ZERO)
            };
            self.ensure(flow.tcp.is_none() || there.iter().chain(&back).any(limits), || {
                (kind(), "nothing limits this connection: its path needs a rate or a delay")
            })?;
        }
        Ok(())
    }

    /// Has TCP send segments that fit into its path's smallest MTU, as it would find it. Refuses other traffic of which
    /// nothing would arrive.
    pub(super) fn mtus(&self, scenario: &mut Scenario) -> Checked<()> {
        if scenario.links.iter().all(|link| link.config.mtu.is_none()) {
            return Ok(());
        }
        for index in 0..scenario.traffic.len() {
            let flow = &scenario.traffic[index];
            let path = self.path(scenario, flow.from, flow.to).unwrap_or_default();
            let mtus = path.into_iter().filter_map(|link| scenario.links.get(link)?.config.mtu);
            let Some(mtu) = mtus.min().filter(|mtu| *mtu < flow.size) else { continue };
            let flow = &mut scenario.traffic[index];
            if let Some(tcp) = flow.tcp.as_mut().filter(|tcp| tcp.config.header < mtu) {
                tcp.config.segment = Bytes(mtu.0 - tcp.config.header.0);
                flow.size = mtu;
                continue;
            }
            let size = format!("traffic[{index}].size");
            let key = if self.file.has(&size) { size } else { format!("traffic[{index}].kind") };
            let reason = format!("packets of {} cross a link with an MTU of {mtu}", flow.size);
            return self.refuse(&key, reason);
        }
        Ok(())
    }

    /// Refuses queues and token buckets in which a packet that comes there finds no room even while they are empty.
    pub(super) fn room(&self, scenario: &Scenario) -> Checked<()> {
        let mut largest = vec![Bytes::ZERO; scenario.links.len()];
        let mut come = |from, to, size: Bytes| {
            for link in self.path(scenario, from, to).unwrap_or_default() {
                if let Some(largest) = largest.get_mut(link) {
                    *largest = size.max(*largest);
                }
            }
        };
        for flow in &scenario.traffic {
            come(flow.from, flow.to, flow.size);
            if let Some(tcp) = &flow.tcp {
                come(flow.to, flow.from, tcp.config.header);
            }
        }
        for talk in scenario.conversations() {
            come(talk.from.0, talk.to.0, talk.largest.0);
            come(talk.to.0, talk.from.0, talk.largest.1);
        }
        for ((link, of), largest) in scenario.links.iter().zip(self.directions()).zip(largest) {
            if largest == Bytes::ZERO {
                continue;
            }
            // Larger ones do not come so far.
            let wire = link.config.mtu.map_or(largest, |mtu| largest.min(mtu)) + link.config.overhead;
            let refuse = |key: &str| {
                let reason = format!("smaller than one packet ({wire} with its framing)");
                self.refuse(&self.link_key(of, key), reason)
            };
            match (link.config.discipline.limit(), link.config.queue) {
                (Some(QueueLimit::Bytes(limit)), _) if limit < wire => return refuse("discipline.limit"),
                (None, QueueLimit::Bytes(limit)) if limit < wire => return refuse("queue"),
                _ => {}
            }
            for (bucket, key) in
                [(&link.config.shaper, "shaper.burst"), (&link.config.policer, "policer.burst")]
            {
                if bucket.as_ref().is_some_and(|bucket| bucket.burst < wire) {
                    return refuse(key);
                }
            }
        }
        Ok(())
    }
}
