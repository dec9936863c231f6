//! From a checked configuration to the parts of a [`Medium`](super::Medium).

use lastmile::rng::Stream;
use lastmile::time::Span;
use lastmile::units::Bytes;

use super::channel::{Channel, bandwidth_hz};
use super::choices::Standard;
use super::config::{AmpduConfig, StationConfig, WlanConfig, refused, within};
use super::counters::DirectionCounters;
use super::direction::Direction;
use super::phy::Phy;
use super::rate::{Controller, ladder, named_rate};
use super::schedule::Schedule;
use super::station::Station;
use crate::network::ConfigError;
use crate::network::loss::Fading;

/// Clients of one WLAN: each takes two ports.
const MAX_CLIENTS: usize = 2_000;
/// The longest queue, which bounds what a scenario can make a run keep.
const MAX_QUEUE: u32 = 100_000;

pub(super) struct Parts {
    pub(super) stations: Vec<Station>,
    pub(super) directions: Vec<Direction>,
    /// Errors in bursts, client by client.
    pub(super) fading: Vec<Option<Fading>>,
    /// Bytes around an IP packet in its MAC frame.
    pub(super) overhead: u32,
}

pub(super) fn parts(config: &WlanConfig, phy: &Phy, seed: u64, name: &str) -> Result<Parts, ConfigError> {
    let stations = &config.station;
    if stations.iter().all(|s| s.ap.is_some()) || stations.iter().all(|s| s.ap.is_none()) {
        return Err(refused("station", "a WLAN needs an access point and a client"));
    }
    check(config)?;
    let mac_header = config.mac_header.map_or(if config.standard == Standard::N { 30 } else { 28 }, |b| b.0);
    let overhead = mac_header.saturating_add(config.llc.0);
    if overhead > 1_000 {
        let key = if mac_header > config.llc.0 { "mac_header" } else { "llc" };
        return Err(refused(key, format!("{overhead} B around each packet are more than 1000")));
    }
    let (mut directions, mut fading) = (Vec::new(), Vec::new());
    for (index, client) in stations.iter().enumerate() {
        let Some(ap) = &client.ap else { continue };
        let own = format!("station[{index}]");
        let ap = stations
            .iter()
            .position(|s| s.name == *ap && s.ap.is_none())
            .ok_or_else(|| refused(format!("{own}.ap"), format!("the WLAN has no access point {ap:?}")))?;
        let air = client.markov.as_ref().map(|model| {
            Fading::new(model, seed, &format!("wlan/{name}/{}/markov", client.name))
                .map_err(|error| refused(format!("{own}.markov.{}", error.key), error.reason))
        });
        fading.push(air.transpose()?);
        let pairs = [
            (index, ap, client.rate, client.frame_error),
            (
                ap,
                index,
                client.down_rate.or(client.rate),
                client.down_frame_error.unwrap_or(client.frame_error),
            ),
        ];
        for (from, to, rate, frame_error) in pairs {
            let key = if from == ap && client.down_rate.is_some() { "down_rate" } else { "rate" };
            let named = rate.map(|rate| named_rate(config, phy, rate)).transpose();
            let named = named.map_err(|reason| refused(format!("{own}.{key}"), reason))?;
            let top_rate = named.unwrap_or(phy.rates().len() - 1);
            let label = format!("wlan/{name}/{}/{}", stations[from].name, stations[to].name);
            directions.push(Direction {
                from,
                to,
                top_rate,
                controller: Controller::new(
                    client.rate_control,
                    ladder(phy, top_rate, config, client.rate_control),
                ),
                left: false,
                counters: DirectionCounters::default(),
                frame_error,
                channel: client.channel.as_ref().map(|c| Channel::new(c, bandwidth_hz(config))),
                schedule: Schedule::new(config, phy, (&own, client), from == ap)?,
                random: Stream::new(seed, &label),
            });
        }
    }
    let station = |s: &StationConfig| {
        Station::new(s.queue, phy.cw_min, Stream::new(seed, &format!("wlan/{name}/{}", s.name)))
    };
    let stations = stations.iter().map(station).collect();
    Ok(Parts { stations, directions, fading, overhead: overhead as u32 })
}

/// Refuses a WLAN for reasons beside those of its physical layer.
fn check(config: &WlanConfig) -> Result<(), ConfigError> {
    let stations = &config.station;
    if stations.iter().filter(|s| s.ap.is_some()).count() > MAX_CLIENTS {
        return Err(refused("station", format!("more than {MAX_CLIENTS} clients")));
    }
    within("short_retry", config.short_retry, 1..=254)?;
    within("long_retry", config.long_retry, 1..=254)?;
    for (key, window) in [("cw_min", config.cw_min), ("cw_max", config.cw_max)] {
        if let Some(window) =
            window.filter(|window| window.checked_add(1).is_none_or(|n| !n.is_power_of_two()))
        {
            let reason = format!("{window} is not one less than a power of two (IEEE 802.11-2016, 9.4.2.29)");
            return Err(refused(key, reason));
        }
    }
    if let Some(ampdu) = &config.ampdu {
        // Limits of an HT receiver, and of the legacy header's announcement.
        let most = AmpduConfig::default();
        within("ampdu.max_frames", ampdu.max_frames, 1..=super::ampdu::WINDOW)?;
        within("ampdu.max_bytes", ampdu.max_bytes, Bytes(1)..=most.max_bytes)?;
        within("ampdu.max_duration", ampdu.max_duration, Span::from_nanos(1)..=most.max_duration)?;
    }
    for (index, station) in stations.iter().enumerate() {
        if station.name.is_empty() || stations[..index].iter().any(|s| s.name == station.name) {
            return Err(refused(format!("station[{index}].name"), "every station needs a name of its own"));
        }
        let of = |error: ConfigError| refused(format!("station[{index}].{}", error.key), error.reason);
        check_station(station).map_err(of)?;
    }
    Ok(())
}

fn check_station(station: &StationConfig) -> Result<(), ConfigError> {
    within("queue", station.queue, 1..=MAX_QUEUE)?;
    within("frame_error", station.frame_error, 0.0..=1.0)?;
    within("down_frame_error", station.down_frame_error.unwrap_or(0.0), 0.0..=1.0)?;
    let Some(channel) = &station.channel else { return Ok(()) };
    for (key, value, least) in [
        ("distance_m", channel.distance_m, 0.0),
        ("tx_power_dbm", channel.tx_power_dbm, -300.0),
        ("reference_loss_db", channel.reference_loss_db, 0.0),
        ("exponent", channel.exponent, 0.0),
        ("noise_figure_db", channel.noise_figure_db, 0.0),
        ("shadowing_db", channel.shadowing_db, 0.0),
        ("snr_db", channel.snr_db.unwrap_or(0.0), -300.0),
    ] {
        within(&format!("channel.{key}"), value, least..=1e6)?;
    }
    match channel.coherence > Span::ZERO {
        true => Ok(()),
        false => Err(refused("channel.coherence", "must be longer than nothing")),
    }
}
