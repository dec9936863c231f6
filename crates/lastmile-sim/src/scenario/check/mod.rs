//! From a file's text to a checked [`Scenario`]: the run, its hosts and clocks.

use core::cell::OnceCell;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Range;

use lastmile::time::{Span, Time};
use lastmile::units::Rate;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use super::copies;
use super::error::Place;
use super::raw::{At, RawClock, RawScenario};
use super::routes::Ways;
use super::{CheckMethod, HostSpec, Override, Scenario, ScenarioError, preset};
use crate::network::clock::{ClockConfig, MAX_SKEW_PPB, Step};
use crate::network::engine::Budget;
use crate::network::queue::limit::LARGEST_IP_PACKET;
use crate::roles::{RawRoles, Roles, TABLES};

mod fits;
mod flows;
mod handoffs;
mod link;
mod links;
mod losses;
mod sizes;
mod tcp;
mod traffic;
mod wlans;

/// Hosts that one scenario may have: as many as a /24 has room for.
const MAX_HOSTS: usize = 250;
/// Names become names of network interfaces in the lab, which Linux keeps this short.
const MAX_NAME: usize = 15;
/// Bytes that a scenario's text may have; a longer one is no scenario.
pub const MAX_TEXT: usize = 16_000_000;
const MAX_DURATION: Span = Span::from_secs(31 * 86_400);

pub(crate) type Checked<T> = Result<T, ScenarioError>;

pub(super) fn load(
    file: &str,
    text: &str,
    overrides: &[Override],
    check_method: &CheckMethod<'_>,
) -> Checked<Scenario> {
    let mut place = Place { file, text, document: DeTable::new() };
    if text.len() > MAX_TEXT {
        return Err(place.error(0..0, format!("a scenario of more than {MAX_TEXT} bytes")));
    }
    // What can be read of a broken document still tells which key an error belongs to.
    let (root, errors) = DeTable::parse_recoverable(text);
    let span = root.span();
    place.document = root.into_inner();
    if let Some(error) = errors.first() {
        return Err(place.toml_error(error));
    }
    for replace in overrides {
        replace.apply(&mut place)?;
    }
    preset::fill(&mut place)?;
    copies::expand(&mut place)?;
    let mut document = place.document.clone();
    let roles = RawRoles::take(&place, &mut document)?;
    links::fill_back(&place, &mut document)?;
    let document = Spanned::new(span, document);
    let raw = RawScenario::deserialize(Deserializer::from(document)).map_err(|e| {
        let mut error = place.toml_error(&e);
        if error.reason.starts_with("unknown field") && error.reason.ends_with("`traffic`") {
            // The tables of roles stand beside these.
            TABLES.iter().for_each(|table| error.reason += &format!(", `{table}`"));
        }
        error
    })?;
    let check = Check { place, raw: &raw, ways: OnceCell::new() };
    check.scenario(&roles, check_method)
}

pub(crate) struct Check<'a> {
    place: Place<'a>,
    raw: &'a RawScenario,
    ways: OnceCell<Ways>,
}

impl Check<'_> {
    pub(crate) fn error<T>(&self, span: Range<usize>, reason: impl Into<String>) -> Checked<T> {
        Err(self.place.error(span, reason))
    }

    /// An error of the key at a path, whether it stands in the file or is left out.
    pub(crate) fn refuse<T>(&self, path: &str, reason: impl Into<String>) -> Checked<T> {
        Err(self.blame(path, reason))
    }

    /// The same, for those who do something else with it.
    pub(crate) fn blame(&self, path: &str, reason: impl Into<String>) -> ScenarioError {
        self.place.error_at(path, reason)
    }

    fn scenario(&self, roles: &RawRoles, check_method: &CheckMethod<'_>) -> Checked<Scenario> {
        let raw = self.raw;
        let printable = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
        if !printable(raw.name.get_ref()) {
            return self.error(raw.name.span(), "a name is one line of text");
        }
        let duration = self.positive(&raw.duration)?;
        if duration > MAX_DURATION {
            return self.error(raw.duration.span(), "longer than 31 days");
        }
        let warm_up = self.not_negative(raw.warm_up.as_ref())?.unwrap_or(Span::ZERO);
        if let Some(late) = raw.warm_up.as_ref().filter(|_| warm_up >= duration) {
            return self.error(late.span(), format!("the warm-up must end before the run does ({duration})"));
        }
        let mut scenario = Scenario {
            name: raw.name.get_ref().clone(),
            description: raw.description.clone(),
            duration,
            warm_up,
            seed: raw.seed,
            budget: Budget {
                events: raw.max_events.unwrap_or(Budget::default().events),
                memory: raw.max_memory.as_ref().map_or(Budget::default().memory, |most| most.0),
            },
            hosts: self.hosts()?,
            routers: Vec::new(),
            links: Vec::new(),
            wlans: Vec::new(),
            handoffs: Vec::new(),
            traffic: Vec::new(),
            roles: Roles::default(),
        };
        self.sizes()?;
        self.links(&mut scenario)?;
        self.traffic(&mut scenario)?;
        roles.check(self, &mut scenario, check_method)?;
        self.handoffs(&mut scenario)?;
        self.losses_met(&scenario)?;
        self.room(&scenario)?;
        self.frames(&scenario)?;
        self.limited(&scenario)?;
        Ok(scenario)
    }

    /// [`Scenario::path`], once all links and WLANs are known.
    fn path(&self, scenario: &Scenario, from: usize, to: usize) -> Option<Vec<usize>> {
        self.ways.get_or_init(|| scenario.ways()).path(from, to)
    }

    pub(crate) fn positive(&self, value: &At<Span>) -> Checked<Span> {
        match value.get_ref().0 {
            span if span > Span::ZERO => Ok(span),
            span => self.error(value.span(), format!("must be more than no time, not {span}")),
        }
    }

    pub(crate) fn not_negative(&self, value: Option<&At<Span>>) -> Checked<Option<Span>> {
        let Some(value) = value else { return Ok(None) };
        match value.get_ref().0 {
            span if span >= Span::ZERO => Ok(Some(span)),
            span => self.error(value.span(), format!("must not be negative: {span}")),
        }
    }

    pub(crate) fn rate(&self, value: &At<Rate>) -> Checked<Rate> {
        match value.get_ref().0 {
            rate if rate.bits_per_second() > 0 => Ok(rate),
            _ => self.error(value.span(), "a rate of zero carries nothing"),
        }
    }

    pub(crate) fn name(&self, name: &Spanned<String>) -> Checked<()> {
        let text = name.get_ref();
        let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if text.is_empty() || text.len() > MAX_NAME || !plain {
            let reason = format!(
                "{text:?} cannot be a name: 1 to {MAX_NAME} letters, digits, hyphens and underscores"
            );
            return self.error(name.span(), reason);
        }
        Ok(())
    }

    fn hosts(&self) -> Checked<Vec<HostSpec>> {
        let mut in_order: Vec<_> = self.raw.host.iter().collect();
        // The map sorts by name; addresses are given in the order of the file, and of copies by their numbers.
        in_order.sort_by_key(|(name, _)| (name.span().start, name.get_ref().len()));
        if let Some((name, _)) = in_order.get(MAX_HOSTS) {
            return self.error(name.span(), format!("more than {MAX_HOSTS} hosts"));
        }
        let mut hosts: Vec<HostSpec> = Vec::new();
        for (index, (name, raw)) in in_order.into_iter().enumerate() {
            self.name(name)?;
            let number = index as u16 + 1;
            let mut host = HostSpec {
                name: name.get_ref().clone(),
                v4: Ipv4Addr::new(10, 77, 0, number as u8),
                v6: Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, number),
                clock: self.clock(&raw.clock)?,
            };
            if let Some(address) = &raw.address {
                match *address.get_ref() {
                    IpAddr::V4(v4) => host.v4 = v4,
                    IpAddr::V6(v6) => host.v6 = v6,
                }
                let broadcast = matches!(address.get_ref(), IpAddr::V4(v4) if v4.is_broadcast());
                let own = address.get_ref();
                if own.is_unspecified() || own.is_multicast() || own.is_loopback() || broadcast {
                    return self.error(address.span(), "no host can have this address");
                }
            }
            if let Some(other) = hosts.iter().find(|other| other.v4 == host.v4 || other.v6 == host.v6) {
                let at = raw.address.as_ref().map_or(name.span(), Spanned::span);
                return self.error(at, format!("host {:?} has this address already", other.name));
            }
            hosts.push(host);
        }
        Ok(hosts)
    }

    fn clock(&self, raw: &RawClock) -> Checked<ClockConfig> {
        let mut clock = ClockConfig::default();
        if let Some(offset) = self.not_negative(raw.offset.as_ref())? {
            clock.offset = offset;
        }
        if let Some(skew) = &raw.skew_ppm {
            let ppb = skew.get_ref() * 1e3;
            if ppb.is_nan() || ppb.abs() > MAX_SKEW_PPB as f64 {
                return self.error(skew.span(), format!("at most {} ppm either way", MAX_SKEW_PPB / 1000));
            }
            clock.skew_ppb = libm::round(ppb) as i64;
        }
        if let Some(resolution) = &raw.resolution {
            clock.resolution = self.positive(resolution)?;
        }
        for step in &raw.steps {
            let at = Time::ZERO + self.not_negative(Some(&step.at))?.unwrap_or(Span::ZERO);
            self.later(&step.at, clock.steps.last().map(|before| before.at))?;
            let by = step.by.get_ref().0;
            if by == Span::ZERO {
                return self.error(step.by.span(), "a step of no time");
            }
            clock.steps.push(Step { at, by, announced: step.announced });
        }
        Ok(clock)
    }
}
