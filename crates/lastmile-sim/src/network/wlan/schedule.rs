//! Changes of a client during a run: its rates and its channel, as when it moves; by a list, or by a trace.

use std::sync::Arc;

use lastmile::time::Span;

use super::channel::{Channel, bandwidth_hz};
use super::config::{ChannelConfig, StationConfig, StationTrace, WlanConfig, refused, within};
use super::phy::Phy;
use super::rate::{Controller, ladder, named_rate};
use crate::network::ConfigError;
use crate::network::trace::{Quantity, Reader};

/// The most changes of one client.
const MAX_CHANGES: usize = 10_000;

/// A trace as one direction reads it.
#[derive(Debug)]
pub(super) struct Driven {
    pub(super) reader: Reader,
    /// The value that comes next, at [`Schedule::next`].
    pub(super) value: f64,
    /// Of each of the standard's rates in bit/s: its number, and rate control that begins with it. Empty where the trace says
    /// something else.
    rates: Vec<(f64, usize, Controller)>,
    /// The channel, and how wide it is, where the trace moves the client in it.
    channel: Option<(ChannelConfig, f64)>,
}

impl Driven {
    fn new(
        config: &WlanConfig,
        phy: &Phy,
        (own, client): (&str, &StationConfig),
        trace: &StationTrace,
    ) -> Result<Driven, ConfigError> {
        let error = |reason: &str| refused(format!("{own}.trace"), reason);
        let StationTrace::Open(trace) = trace else { return Err(error("it was not opened")) };
        if !client.schedule.is_empty() {
            return Err(error("both the trace and `schedule` plan changes"));
        }
        let kind = client.rate_control;
        let rate = |(top, rate): (usize, &super::phy::PhyRate)| {
            (f64::from(rate.kbps) * 1e3, top, Controller::new(kind, ladder(phy, top, config, kind)))
        };
        let (rates, channel) = match trace.quantity() {
            Quantity::Opportunities => return Err(error("opportunities are for links")),
            Quantity::Rate => (phy.rates().iter().enumerate().map(rate).collect(), None),
            Quantity::Snr | Quantity::Distance => {
                let channel = client
                    .channel
                    .clone()
                    .ok_or_else(|| error("the client has no channel that could change"))?;
                (Vec::new(), Some((channel, bandwidth_hz(config))))
            }
        };
        Ok(Driven { reader: Reader::new(Arc::clone(trace)), value: 0.0, rates, channel })
    }

    /// The fastest of the standard's rates that is no faster, to half a percent; otherwise the slowest.
    pub(super) fn rate(&self) -> Option<(usize, Controller)> {
        let slower = self.rates.iter().filter(|(rate, ..)| *rate <= self.value * 1.005);
        let found = slower.max_by(|a, b| a.0.total_cmp(&b.0));
        let found = found.or_else(|| self.rates.iter().min_by(|a, b| a.0.total_cmp(&b.0)));
        found.map(|(_, top, controller)| (*top, controller.clone()))
    }

    /// Moves the client in its channel.
    pub(super) fn place(&mut self, channel: &mut Channel) {
        let Some((config, bandwidth)) = &mut self.channel else { return };
        match self.reader.quantity() {
            Quantity::Distance => (config.distance_m, config.snr_db) = (self.value, None),
            _ => config.snr_db = Some(self.value),
        }
        channel.move_to(config.mean_snr_db(*bandwidth));
    }
}

/// The same, checked, of one direction.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) at: u64,
    pub(super) controller: Option<(usize, Controller)>,
    pub(super) frame_error: Option<f64>,
    pub(super) mean_snr_db: Option<f64>,
}

/// The changes of one direction that are still to come, the next one last.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub(super) next: Option<u64>,
    pub(super) changes: Vec<Change>,
    pub(super) trace: Option<Box<Driven>>,
}

impl Schedule {
    /// The changes of a client, as they concern one direction.
    pub(super) fn new(
        config: &WlanConfig,
        phy: &Phy,
        (own, client): (&str, &StationConfig),
        down: bool,
    ) -> Result<Schedule, ConfigError> {
        if client.schedule.len() > MAX_CHANGES {
            return Err(refused(format!("{own}.schedule"), format!("more than {MAX_CHANGES} changes")));
        }
        if let Some(trace) = &client.trace {
            let mut schedule = Schedule::default();
            let mut driven = Driven::new(config, phy, (own, client), trace)?;
            schedule.next = driven.reader.next().map(|(at, value)| {
                driven.value = value;
                at
            });
            schedule.trace = Some(Box::new(driven));
            return Ok(schedule);
        }
        let mut changes = Vec::new();
        let mut channel = client.channel.clone();
        let mut before = Span::ZERO;
        for (index, change) in client.schedule.iter().enumerate() {
            let error = |key: &str, reason: String| refused(format!("{own}.schedule[{index}].{key}"), reason);
            if change.at < Span::ZERO {
                return Err(error("at", format!("must not be negative: {}", change.at)));
            }
            if change.at < before || (index > 0 && change.at == before) {
                return Err(error("at", format!("{} is not later than the change before", change.at)));
            }
            before = change.at;
            let rate = if down { change.down_rate.or(change.rate) } else { change.rate };
            let controller = match rate {
                None => None,
                Some(rate) => {
                    let key = if down && change.down_rate.is_some() { "down_rate" } else { "rate" };
                    let top = named_rate(config, phy, rate).map_err(|reason| error(key, reason))?;
                    let kind = client.rate_control;
                    Some((top, Controller::new(kind, ladder(phy, top, config, kind))))
                }
            };
            let within = |key: &str, value: Option<f64>, range| {
                let key = format!("{own}.schedule[{index}].{key}");
                value.map_or(Ok(()), |value| within(&key, value, range))
            };
            within("frame_error", change.frame_error, 0.0..=1.0)?;
            let moves = change.distance_m.is_some() || change.snr_db.is_some();
            if let Some(channel) = channel.as_mut().filter(|_| moves) {
                within("distance_m", change.distance_m, 0.0..=1e6)?;
                within("snr_db", change.snr_db, -300.0..=1e6)?;
                channel.distance_m = change.distance_m.unwrap_or(channel.distance_m);
                channel.snr_db = change.snr_db;
            } else if moves {
                let key = if change.distance_m.is_some() { "distance_m" } else { "snr_db" };
                return Err(error(key, "the client has no channel that could change".into()));
            }
            changes.push(Change {
                at: change.at.as_nanos().max(0) as u64,
                controller,
                frame_error: change.frame_error,
                mean_snr_db: channel.as_ref().filter(|_| moves).map(|c| c.mean_snr_db(bandwidth_hz(config))),
            });
        }
        changes.reverse();
        Ok(Schedule { next: changes.last().map(|c| c.at), changes, trace: None })
    }

    /// Why its trace cannot be read any more, if it cannot.
    pub(super) fn failure(&self) -> Option<&str> {
        self.trace.as_ref()?.reader.failure()
    }
}
