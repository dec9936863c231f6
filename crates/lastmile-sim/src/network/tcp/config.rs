//! [`TcpConfig`]: the options of a connection.

use lastmile::control::window::{LawConfig, Window};
use lastmile::time::Span;
use lastmile::units::Bytes;
use serde::{Deserialize, Deserializer};

use super::packet::MAX_WINDOW;
use crate::network::config_error::{ConfigError, require};
use crate::text;

/// Detection and retransmission of lost segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recovery {
    /// Fast retransmit and fast recovery, which the next new ACK ends (RFC 2581).
    Reno,
    /// Fast recovery until all that was under way is acknowledged (RFC 6582).
    NewReno,
    /// By selective acknowledgements (RFC 2018, RFC 6675).
    #[default]
    Sack,
    /// By selective acknowledgements as before RFC 3517: Fall and Floyd, "Simulation-based comparisons of Tahoe, Reno,
    /// and SACK TCP", ACM CCR 26(3), 1996, section 3.4, as in ns-2's Sack1. Three duplicate ACKs begin it, each hole is
    /// lost, and what is in the network is counted by ACKs: those that are lost make it wait.
    Sack1,
}

impl Recovery {
    /// True if the receiver sends SACK blocks.
    pub(super) fn has_blocks(self) -> bool {
        matches!(self, Recovery::Sack | Recovery::Sack1)
    }
}

/// Behaviour of a connection. `Default` follows the standards; if they leave a choice, the field names the one
/// taken. `docs/scenarios.md` says more of each.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct TcpConfig {
    /// Window law: a name, or a table `{ binomial = { a = 1.0, b = 0.667, k = 1, l = 0 } }`.
    #[serde(deserialize_with = "law")]
    pub law: LawConfig,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Data bytes of a full segment.
    #[serde(deserialize_with = "text::unit")]
    pub segment: Bytes,
    /// Bytes of IP and TCP header around them, and the size of an ACK.
    #[serde(deserialize_with = "text::unit")]
    pub header: Bytes,
    /// Segments sent at once at the start; without it two to four (RFC 5681, section 3.1). RFC 6928 allows 10.
    pub initial_window: Option<u32>,
    /// The slow-start threshold before the first loss, in segments; without it none (RFC 5681, section 3.1).
    pub initial_ssthresh: Option<u32>,
    /// The receiver's window, in segments, at most [`MAX_WINDOW`](super::MAX_WINDOW): no limit on most paths.
    pub max_window: u32,
    /// Longest wait of an ACK for a second segment (RFC 1122, section 4.2.3.2: less than 500 ms); zero acknowledges each.
    #[serde(deserialize_with = "text::unit")]
    pub delayed_ack: Span,
    /// True if segments that arrive while others are missing are acknowledged at once, even the next in
    /// order (RFC 5681, section 4.2).
    pub ack_gaps_at_once: bool,
    /// With SACK: true if a segment sent again is lost again once one that left after it has arrived (RFC 8985,
    /// section 6.2, step 5, without a window for reordering), and the window is reduced again (RFC 5681, section 4.3).
    pub rack_retransmissions: bool,
    /// With Reno, Vegas' retransmission (Brakmo and Peterson 1995, section 3.1).
    pub fine_timeouts: bool,
    /// True if the first two duplicate ACKs let a new segment out each (RFC 3042).
    pub limited_transmit: bool,
    /// The least retransmission timeout (RFC 6298, rule 2.4). Linux and ns-2 have 200 ms.
    #[serde(deserialize_with = "text::unit")]
    pub min_rto: Span,
    /// The largest (rule 2.5).
    #[serde(deserialize_with = "text::unit")]
    pub max_rto: Span,
    /// Before a round-trip time is known (rule 2.1).
    #[serde(deserialize_with = "text::unit")]
    pub initial_rto: Span,
    /// The tick of the clock that round-trip times are taken with; zero is exact. Old BSDs had 500 ms.
    #[serde(deserialize_with = "text::unit")]
    pub tick: Span,
    /// True if every ACK gives a round-trip time (RFC 7323); otherwise one segment at a time does (Karn's rule applies).
    pub timestamps: bool,
    /// Most acknowledged segments of one ACK that the window counts (RFC 3465's L); without it one (RFC 5681).
    pub byte_counting: Option<u32>,
    /// True if the connection uses ECN (RFC 3168).
    pub ecn: bool,
    /// True if the threshold stays the same when a segment times out again (RFC 5681, section 3.1).
    pub hold_ssthresh: bool,
    /// The least window after a loss that duplicate ACKs tell of, in segments (RFC 5681, equation 4). ns-2 has one and a half.
    pub min_loss_window: u32,
    /// True if segments that NewReno's partial ACKs take out of the window beyond its inflation stay out after recovery, as in
    /// ns-2; otherwise the window is the threshold then (RFC 6582, section 3.2, step 3).
    pub deflation_stays: bool,
    /// The most segments that one ACK lets out during NewReno's fast recovery; none by default. ns-2 has two.
    pub recovery_burst: Option<u32>,
}

impl Default for TcpConfig {
    fn default() -> TcpConfig {
        TcpConfig {
            law: LawConfig::default(),
            recovery: Recovery::Sack,
            segment: Bytes(1460),
            header: Bytes(40),
            initial_window: None,
            initial_ssthresh: None,
            max_window: 10_000,
            delayed_ack: Span::from_millis(100),
            ack_gaps_at_once: true,
            rack_retransmissions: false,
            fine_timeouts: false,
            limited_transmit: true,
            min_rto: Span::from_secs(1),
            max_rto: Span::from_secs(60),
            initial_rto: Span::from_secs(1),
            tick: Span::ZERO,
            timestamps: false,
            byte_counting: None,
            ecn: false,
            hold_ssthresh: true,
            min_loss_window: 2,
            deflation_stays: false,
            recovery_burst: None,
        }
    }
}

/// Defaults of implementations: the names that a scenario's `preset` may have, and their keys of
/// [`TcpConfig`].
///
/// - `linux`: CUBIC, SACK with RACK's rule for what was sent again, timestamps, an initial window of ten, ACKs delayed by 40 ms at
///   most, each of which counts for all that it acknowledges. Linux' HyStart, pacing, tail loss probes, undoing of what was no
///   loss, and its quick ACKs at the start are not modelled.
/// - `ns2`: ns-2 2.35, an ACK for each segment, a minimum timeout of 200 ms on a clock of 10 ms, 3 s before the first
///   round-trip time, an initial window of two. Its window of 20 and the choice of an agent are left out: Sack1 is
///   [`Recovery::Sack1`]; its Vegas has no limited transmit.
pub const PRESETS: [(&str, &str); 2] = [("linux", LINUX), ("ns2", NS2)];

const LINUX: &str = r#"
law = "cubic"
segment = "1448 B" # options of 12 B with each
header = "52 B"
initial_window = 10 # RFC 6928
delayed_ack = "40 ms" # TCP_DELACK_MIN
min_rto = "200 ms"
max_rto = "120 s"
rack_retransmissions = true
timestamps = true
byte_counting = 65535 # no limit
"#;

const NS2: &str = r#"
initial_window = 2
delayed_ack = "0 s"
min_rto = "200 ms"
initial_rto = "3 s"
tick = "10 ms"
hold_ssthresh = false
min_loss_window = 1
deflation_stays = true
recovery_burst = 2
"#;

impl TcpConfig {
    /// The preset `ns2` of [`PRESETS`].
    pub fn ns2() -> TcpConfig {
        toml::from_str(NS2).unwrap_or_default()
    }

    /// Says what is impossible about it. A connection made of it all the same neither panics nor hangs.
    pub fn check(&self) -> Result<(), ConfigError> {
        let span = |span: Span, least: Span| (least..=LONGEST).contains(&span);
        let (segment, header, window) = (self.segment.0, self.header.0, self.max_window);
        let initial = self.initial_window.is_none_or(|initial| (1..=window).contains(&initial));
        // A path that carries nothing would otherwise be all timeouts, for ever.
        let (zero, least) = (Span::ZERO, Span::from_millis(1));
        let law = self.law.check().err();
        require(law.is_none(), "law", law.unwrap_or_default())?;
        for (holds, key, reason) in [
            ((1..=65_535).contains(&segment), "segment", "a segment has 1 to 65535 bytes of data"),
            ((40..=65_535).contains(&header), "header", "headers have 40 to 65535 bytes"),
            (
                segment.saturating_add(header) <= 65_535,
                "segment",
                "with its headers an IP packet has at most 65535 bytes",
            ),
            ((1..=MAX_WINDOW).contains(&window), "max_window", "a window has 1 to 2097151 segments"),
            (initial, "initial_window", "it is at least one segment and not above max_window"),
            (span(self.delayed_ack, zero), "delayed_ack", "it lies between 0 and an hour"),
            (span(self.min_rto, least), "min_rto", "it lies between 1 ms and an hour"),
            (span(self.max_rto, self.min_rto), "max_rto", "it is not below min_rto and at most an hour"),
            (span(self.initial_rto, least), "initial_rto", "it lies between 1 ms and an hour"),
            (span(self.tick, zero), "tick", "it lies between 0 and an hour"),
            (self.byte_counting != Some(0), "byte_counting", "a window that counts no segment never grows"),
            (
                (1..=2).contains(&self.min_loss_window),
                "min_loss_window",
                "the least window after a loss is one segment or two",
            ),
            (self.recovery_burst != Some(0), "recovery_burst", "it is at least one segment"),
        ] {
            require(holds, key, reason)?;
        }
        Ok(())
    }

    /// The window of a new connection (RFC 5681, section 3.1).
    pub fn window(&self) -> Window {
        let by_size = match self.segment.0 {
            0..=1095 => 4,
            1096..=2190 => 3,
            _ => 2,
        };
        let initial = f64::from(self.initial_window.unwrap_or(by_size));
        Window { ssthresh: self.initial_ssthresh.map_or(f64::INFINITY, f64::from), ..Window::new(initial) }
    }
}

/// No timer of a connection is longer.
const LONGEST: Span = Span::from_secs(3600);

fn law<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LawConfig, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Name(String),
        Full(LawConfig),
    }
    match Either::deserialize(deserializer)? {
        Either::Name(name) => name.parse().map_err(serde::de::Error::custom),
        Either::Full(law) => Ok(law),
    }
}
