//! From the tables as they were read to a checked [`Scenario`]: the run, its hosts and clocks.

use core::cell::OnceCell;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use lastmile::time::{Span, Time};

use super::error::ScenarioFile;
use super::raw::{RawClock, RawScenario};
use super::routes::Ways;
use super::{HostSpec, Scenario, ScenarioError};
use crate::network::clock::{ClockConfig, MAX_SKEW_PPB, Step};
use crate::network::engine::Budget;
use crate::network::queue::limit::LARGEST_IP_PACKET;

mod ends;
mod fits;
mod handoffs;
mod link;
mod links;
mod losses;
mod tcp;
mod traffic;
mod wlans;

pub(super) use links::fill_back;

/// Hosts that one scenario may have: as many as a /24 has room for.
const MAX_HOSTS: usize = 250;
/// Entries of lists, stations of one WLAN, channels on one link. The cost of a run is counted while it runs: [`Budget`].
const MAX_LINKS: usize = 5_000;
const MAX_WLANS: usize = 250;
const MAX_STATIONS: usize = 4_000;
const MAX_TRAFFIC: usize = 20_000;
const MAX_HANDOFFS: usize = 200;
const MAX_LOSSES: usize = 16;
/// Names become names of network interfaces in the lab, which Linux keeps this short.
const MAX_NAME: usize = 15;
const MAX_DURATION: Span = Span::from_secs(31 * 86_400);

pub(crate) type Checked<T> = Result<T, ScenarioError>;

pub(crate) struct Check<'a> {
    file: ScenarioFile<'a>,
    raw: &'a RawScenario,
    ways: OnceCell<Ways>,
}

impl<'a> Check<'a> {
    pub(super) fn new(file: ScenarioFile<'a>, raw: &'a RawScenario) -> Check<'a> {
        Check { file, raw, ways: OnceCell::new() }
    }
}

impl Check<'_> {
    /// An error of the key at a path, whether it stands in the file or is left out.
    pub(crate) fn refuse<T>(&self, path: &str, reason: impl Into<String>) -> Checked<T> {
        Err(self.blame(path, reason))
    }

    /// The same, for those who do something else with it.
    pub(crate) fn blame(&self, path: &str, reason: impl Into<String>) -> ScenarioError {
        self.file.error_at(path, reason)
    }

    /// Refuses unless `holds`, naming the key at that path and the reason.
    pub(crate) fn ensure<P: AsRef<str>, R: Into<String>>(
        &self,
        holds: bool,
        why: impl FnOnce() -> (P, R),
    ) -> Checked<()> {
        if holds {
            return Ok(());
        }
        let (path, reason) = why();
        self.refuse(path.as_ref(), reason)
    }

    /// Refuses the first that is too many of a list.
    pub(crate) fn at_most<T>(&self, path: &str, list: &[T], most: usize, what: &str) -> Checked<()> {
        self.ensure(list.len() <= most, || (format!("{path}[{most}]"), format!("more than {most} {what}")))
    }

    /// Checks all of a file. `roles` checks their tables, once hosts, links and traffic are known.
    pub(super) fn scenario(
        &self,
        roles: impl FnOnce(&Self, &mut Scenario) -> Checked<()>,
    ) -> Checked<Scenario> {
        let raw = self.raw;
        let RawScenario { duration, warm_up, .. } = *raw;
        let printable = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
        self.ensure(printable(&raw.name), || ("name", "a name is one line of text"))?;
        self.ensure(duration <= MAX_DURATION, || ("duration", "longer than 31 days"))?;
        self.ensure(warm_up < duration, || {
            ("warm_up", format!("the warm-up must end before the run does ({duration})"))
        })?;
        let usual = Budget::default();
        let mut scenario = Scenario {
            name: raw.name.clone(),
            description: raw.description.clone(),
            duration,
            warm_up,
            seed: raw.seed,
            budget: Budget {
                events: raw.max_events.unwrap_or(usual.events),
                memory: raw.max_memory.unwrap_or(usual.memory),
            },
            hosts: self.hosts()?,
            routers: Vec::new(),
            links: Vec::new(),
            wlans: Vec::new(),
            handoffs: Vec::new(),
            traffic: Vec::new(),
            roles: Default::default(),
        };
        self.sizes()?;
        self.links(&mut scenario)?;
        self.traffic(&mut scenario)?;
        roles(self, &mut scenario)?;
        self.handoffs(&mut scenario)?;
        self.losses_met(&scenario)?;
        self.mtus(&mut scenario)?;
        self.room(&scenario)?;
        self.frames(&scenario)?;
        self.limited(&scenario)?;
        Ok(scenario)
    }

    /// Refuses lists that are too long before anything is compared with everything.
    fn sizes(&self) -> Checked<()> {
        let raw = self.raw;
        self.at_most("link", &raw.link, MAX_LINKS, "links")?;
        self.at_most("wlan", &raw.wlan, MAX_WLANS, "WLANs")?;
        self.at_most("traffic", &raw.traffic, MAX_TRAFFIC, "flows")?;
        self.at_most("handoff", &raw.handoff, MAX_HANDOFFS, "hand-offs")?;
        for (index, wlan) in raw.wlan.iter().enumerate() {
            let reason =
                || (format!("wlan[{index}]"), format!("more than {MAX_STATIONS} stations in one WLAN"));
            self.ensure(wlan.station.len() <= MAX_STATIONS, reason)?;
        }
        for of in self.directions() {
            let link = &raw.link[of.link];
            let link = link.back.as_deref().filter(|_| of.back).unwrap_or(link);
            self.at_most(&self.link_key(of, "losses"), &link.losses, MAX_LOSSES, "channels on one link")?;
        }
        Ok(())
    }

    /// [`Scenario::path`], once all links and WLANs are known.
    fn path(&self, scenario: &Scenario, from: usize, to: usize) -> Option<Vec<usize>> {
        self.ways.get_or_init(|| scenario.ways()).path(from, to)
    }

    /// Refuses what cannot be a name.
    pub(crate) fn name(&self, path: &str, name: &str) -> Checked<()> {
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        self.ensure(plain && (1..=MAX_NAME).contains(&name.len()), || {
            let what = format!("1 to {MAX_NAME} letters, digits, hyphens and underscores");
            (path, format!("{name:?} cannot be a name: {what}"))
        })
    }

    fn hosts(&self) -> Checked<Vec<HostSpec>> {
        let mut in_order: Vec<_> = self.raw.host.iter().collect();
        // The map sorts by name; addresses are given in the order of the file, and of copies by their numbers.
        in_order.sort_by_key(|(name, _)| (name.span().start, name.get_ref().len()));
        let mut hosts: Vec<HostSpec> = Vec::new();
        for (index, (name, raw)) in in_order.into_iter().enumerate() {
            let (span, name) = (name.span(), name.get_ref());
            let own = format!("host.{name}");
            self.ensure(index < MAX_HOSTS, || (&own, format!("more than {MAX_HOSTS} hosts")))?;
            self.name(&own, name).map_err(|error| self.file.error(span, error.reason))?;
            let number = index as u16 + 1;
            let mut host = HostSpec {
                name: name.clone(),
                v4: Ipv4Addr::new(10, 77, 0, number as u8),
                v6: Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, number),
                clock: self.clock(&raw.clock, &format!("{own}.clock"))?,
            };
            let at = if raw.address.is_some() { format!("{own}.address") } else { own };
            if let Some(address) = raw.address {
                match address {
                    IpAddr::V4(v4) => host.v4 = v4,
                    IpAddr::V6(v6) => host.v6 = v6,
                }
                let nobodys = address.is_unspecified() || address.is_multicast() || address.is_loopback();
                self.ensure(!nobodys && !host.v4.is_broadcast(), || (&at, "no host can have this address"))?;
            }
            if let Some(other) = hosts.iter().find(|other| other.v4 == host.v4 || other.v6 == host.v6) {
                return self.refuse(&at, format!("host {:?} has this address already", other.name));
            }
            hosts.push(host);
        }
        Ok(hosts)
    }

    fn clock(&self, raw: &RawClock, at: &str) -> Checked<ClockConfig> {
        let ppb = raw.skew_ppm * 1e3;
        self.ensure(ppb.abs() <= MAX_SKEW_PPB as f64, || {
            (format!("{at}.skew_ppm"), format!("at most {} ppm either way", MAX_SKEW_PPB / 1000))
        })?;
        let mut clock =
            ClockConfig { offset: raw.offset, skew_ppb: libm::round(ppb) as i64, ..Default::default() };
        clock.resolution = raw.resolution.unwrap_or(clock.resolution);
        for (index, step) in raw.steps.iter().enumerate() {
            let of = |key| format!("{at}.steps[{index}].{key}");
            self.later(&of("at"), step.at, clock.steps.last().map(|before| before.at))?;
            self.ensure(step.by != Span::ZERO, || (of("by"), "a step of no time"))?;
            clock.steps.push(Step { at: Time::ZERO + step.at, by: step.by, announced: step.announced });
        }
        Ok(clock)
    }

    /// Refuses a time that is not after the one before it in its list.
    fn later(&self, path: &str, at: Span, before: Option<Time>) -> Checked<()> {
        let holds = before.is_none_or(|before| before < Time::ZERO + at);
        self.ensure(holds, || (path, "not later than the change before"))
    }
}
