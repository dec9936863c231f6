//! The shape of a scenario file, as serde sees it. Units are read here; what they mean is checked in `check`.

use core::net::IpAddr;
use std::collections::BTreeMap;

use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use serde::Deserialize;
use toml::Spanned;

use crate::network::link::QueueLimit;
use crate::network::loss::{ErrorModel, Place};
use crate::network::queue::{Discipline, Shaper};
use crate::network::tcp::TcpConfig;
use crate::network::trace::TraceConfig;
use crate::network::wlan::WlanConfig;
use crate::scenario::OldQueue;
use crate::text::Text;

/// A value with the place where it stands.
pub(crate) type At<T> = Spanned<Text<T>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawScenario {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) description: String,
    pub(super) duration: At<Span>,
    pub(super) warm_up: Option<At<Span>>,
    #[serde(default = "one")]
    pub(super) seed: u64,
    pub(super) max_events: Option<u64>,
    pub(super) max_memory: Option<Text<Bytes>>,
    #[serde(default)]
    pub(super) host: BTreeMap<Spanned<String>, RawHost>,
    #[serde(default)]
    pub(super) link: Vec<Spanned<RawLink>>,
    #[serde(default)]
    pub(super) wlan: Vec<Spanned<WlanConfig>>,
    #[serde(default)]
    pub(super) handoff: Vec<Spanned<RawHandoff>>,
    #[serde(default)]
    pub(super) traffic: Vec<Spanned<RawTraffic>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawHost {
    pub(super) address: Option<Spanned<IpAddr>>,
    #[serde(default)]
    pub(super) clock: RawClock,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawClock {
    pub(super) offset: Option<At<Span>>,
    pub(super) skew_ppm: Option<Spanned<f64>>,
    pub(super) resolution: Option<At<Span>>,
    #[serde(default)]
    pub(super) steps: Vec<RawStep>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawStep {
    pub(super) at: At<Span>,
    pub(super) by: At<Span>,
    pub(super) announced: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawLink {
    pub(super) from: Spanned<String>,
    pub(super) to: Spanned<String>,
    pub(super) rate: Option<At<Rate>>,
    pub(super) delay: Option<At<Span>>,
    pub(super) queue: Option<At<QueueLimit>>,
    pub(super) overhead: Option<At<Bytes>>,
    pub(super) discipline: Option<Spanned<Discipline>>,
    pub(super) shaper: Option<Spanned<Shaper>>,
    pub(super) trace: Option<Spanned<TraceConfig>>,
    pub(super) changes: Option<Vec<RawLinkChange>>,
    pub(super) losses: Option<Spanned<Vec<Spanned<RawLoss>>>>,
    #[serde(default)]
    pub(super) one_way: bool,
    /// The other direction, where it differs: what it leaves out `fill_back` has taken from the link.
    pub(super) back: Option<Spanned<Box<RawLink>>>,
}

/// A link's rate, its delay or both from some time on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawLinkChange {
    pub(super) at: At<Span>,
    pub(super) rate: Option<At<Rate>>,
    pub(super) delay: Option<At<Span>>,
}

/// A channel on a link; flows are named as in `[[traffic]]` and `[[stream]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawLoss {
    pub(super) model: ErrorModel,
    #[serde(default)]
    pub(super) place: Place,
    pub(super) flows: Option<Vec<Spanned<String>>>,
    pub(super) name: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawHandoff {
    pub(super) at: At<Span>,
    pub(super) host: Spanned<String>,
    pub(super) to: Spanned<String>,
    #[serde(default)]
    pub(super) old_queue: OldQueue,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawTraffic {
    pub(super) name: Option<Spanned<String>>,
    pub(super) kind: Spanned<Kind>,
    pub(super) from: Spanned<String>,
    pub(super) to: Spanned<String>,
    pub(super) rate: Option<At<Rate>>,
    pub(super) size: Option<At<Bytes>>,
    pub(super) start: Option<At<Span>>,
    pub(super) start_within: Option<At<Span>>,
    pub(super) stop: Option<At<Span>>,
    pub(super) on: Option<At<Span>>,
    pub(super) off: Option<At<Span>>,
    pub(super) shape: Option<Spanned<f64>>,
    pub(super) file: Option<Spanned<String>>,
    pub(super) packets: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) changes: Vec<Spanned<RawChange>>,
    pub(super) bytes: Option<At<Bytes>>,
    pub(super) bytes_max: Option<At<Bytes>>,
    pub(super) pause: Option<At<Span>>,
    pub(super) tcp: Option<Spanned<TcpConfig>>,
}

/// A source's rate from some time on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawChange {
    pub(super) at: At<Span>,
    pub(super) rate: At<Rate>,
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
