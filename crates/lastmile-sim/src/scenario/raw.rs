//! The shape of a scenario file, as serde sees it. Units and the range of single values are read here; `check` checks
//! values together.

use core::net::IpAddr;
use std::collections::BTreeMap;

use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use serde::Deserialize;
use toml::Spanned;

use crate::network::link::{QueueLimit, Walk};
use crate::network::loss::{ErrorModel, LossPlace};
use crate::network::queue::{self, TokenBucket};
use crate::network::tcp::TcpConfig;
use crate::network::trace::TraceConfig;
use crate::network::wlan::WlanConfig;
use crate::scenario::OldQueue;
use crate::text;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawScenario {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(deserialize_with = "text::positive")]
    pub(super) duration: Span,
    #[serde(default, deserialize_with = "text::not_negative")]
    pub(super) warm_up: Span,
    #[serde(default = "one")]
    pub(super) seed: u64,
    pub(super) max_events: Option<u64>,
    #[serde(default, deserialize_with = "text::optional")]
    pub(super) max_memory: Option<Bytes>,
    #[serde(default)]
    pub(super) host: BTreeMap<Spanned<String>, RawHost>,
    #[serde(default)]
    pub(super) link: Vec<RawLink>,
    #[serde(default)]
    pub(super) wlan: Vec<WlanConfig>,
    #[serde(default)]
    pub(super) handoff: Vec<RawHandoff>,
    #[serde(default)]
    pub(super) traffic: Vec<RawTraffic>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawHost {
    pub(super) address: Option<IpAddr>,
    #[serde(default)]
    pub(super) clock: RawClock,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct RawClock {
    #[serde(deserialize_with = "text::not_negative")]
    pub(super) offset: Span,
    pub(super) skew_ppm: f64,
    #[serde(deserialize_with = "text::some_positive")]
    pub(super) resolution: Option<Span>,
    pub(super) steps: Vec<RawStep>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawStep {
    #[serde(deserialize_with = "text::not_negative")]
    pub(super) at: Span,
    #[serde(deserialize_with = "text::unit")]
    pub(super) by: Span,
    pub(super) announced: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawLink {
    pub(super) from: String,
    pub(super) to: String,
    #[serde(default, deserialize_with = "text::some_flowing")]
    pub(super) rate: Option<Rate>,
    #[serde(default, deserialize_with = "text::not_negative")]
    pub(super) delay: Span,
    #[serde(default, deserialize_with = "text::optional")]
    pub(super) queue: Option<QueueLimit>,
    #[serde(default, deserialize_with = "text::optional")]
    pub(super) overhead: Option<Bytes>,
    pub(super) discipline: Option<queue::Table>,
    pub(super) shaper: Option<TokenBucket>,
    pub(super) policer: Option<TokenBucket>,
    #[serde(default, deserialize_with = "text::optional")]
    pub(super) mtu: Option<Bytes>,
    pub(super) jitter: Option<queue::Table>,
    pub(super) trace: Option<TraceConfig>,
    #[serde(default)]
    pub(super) changes: Vec<RawLinkChange>,
    pub(super) walk: Option<Walk>,
    #[serde(default)]
    pub(super) losses: Vec<RawLoss>,
    #[serde(default)]
    pub(super) one_way: bool,
    /// The other direction, where it differs: `fill_back` has taken the keys that it leaves out from the link.
    pub(super) back: Option<Box<RawLink>>,
}

/// A link's rate, its delay or both from some time on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawLinkChange {
    #[serde(deserialize_with = "text::not_negative")]
    pub(super) at: Span,
    #[serde(default, deserialize_with = "text::optional")]
    pub(super) rate: Option<Rate>,
    #[serde(default, deserialize_with = "text::some_not_negative")]
    pub(super) delay: Option<Span>,
}

/// A channel on a link; flows are named as in `[[traffic]]` and `[[stream]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawLoss {
    pub(super) model: ErrorModel,
    #[serde(default)]
    pub(super) place: LossPlace,
    pub(super) flows: Option<Vec<String>>,
    pub(super) name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawHandoff {
    #[serde(deserialize_with = "text::not_negative")]
    pub(super) at: Span,
    pub(super) host: String,
    pub(super) to: String,
    #[serde(default)]
    pub(super) old_queue: OldQueue,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawTraffic {
    pub(super) name: Option<String>,
    pub(super) kind: Kind,
    pub(super) from: String,
    pub(super) to: String,
    #[serde(default, deserialize_with = "text::optional")]
    pub(super) rate: Option<Rate>,
    #[serde(default, deserialize_with = "text::optional")]
    pub(super) size: Option<Bytes>,
    #[serde(default, deserialize_with = "text::not_negative")]
    pub(super) start: Span,
    #[serde(default, deserialize_with = "text::not_negative")]
    pub(super) start_within: Span,
    #[serde(default, deserialize_with = "text::some_not_negative")]
    pub(super) stop: Option<Span>,
    #[serde(default, deserialize_with = "text::some_positive")]
    pub(super) on: Option<Span>,
    #[serde(default, deserialize_with = "text::some_not_negative")]
    pub(super) off: Option<Span>,
    pub(super) shape: Option<f64>,
    pub(super) file: Option<String>,
    pub(super) packets: Option<String>,
    #[serde(default)]
    pub(super) changes: Vec<RawChange>,
    #[serde(default, deserialize_with = "text::optional")]
    pub(super) bytes: Option<Bytes>,
    #[serde(default, deserialize_with = "text::optional")]
    pub(super) bytes_max: Option<Bytes>,
    #[serde(default, deserialize_with = "text::optional")]
    pub(super) pause: Option<Span>,
    #[serde(default)]
    pub(super) tcp: TcpConfig,
}

/// A source's rate from some time on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawChange {
    #[serde(deserialize_with = "text::not_negative")]
    pub(super) at: Span,
    #[serde(deserialize_with = "text::unit")]
    pub(super) rate: Rate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Cbr,
    Poisson,
    OnOff,
    Pareto,
    Trace,
    /// One TCP connection with as much to send as goes.
    Ftp,
    /// The same.
    Tcp,
    /// One TCP transfer.
    File,
    /// TCP transfers with pauses between.
    Files,
}

impl Kind {
    pub(super) fn is_tcp(self) -> bool {
        matches!(self, Kind::Ftp | Kind::Tcp | Kind::File | Kind::Files)
    }
}

fn one() -> u64 {
    1
}
