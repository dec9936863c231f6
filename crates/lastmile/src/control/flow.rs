//! What a controller knows of its flow whatever its law: which packets left, how large they are, and when silence begins.

use super::spacing::Spacing;
use super::{Sent, Setting};
use crate::time::{Span, Time};
use crate::units::Rate;

/// The longest between two packets, as TFRC has it (RFC 5348, section 4.3: t_mbi), in seconds.
pub(super) const SLOWEST: f64 = 64.0;

/// The first window in bytes, for packets of at most `mss` (RFC 5348, section 4.2; RFC 3390).
pub(super) fn initial_window(mss: f64) -> f64 {
    (4.0 * mss).min((2.0 * mss).max(4380.0))
}

/// That window in a round-trip time, as bytes a second. A round-trip time of less than a millisecond is not believed for this: a peer
/// that claims to have held its feedback back for all of the time would be sent any rate at once.
pub(super) fn initial_rate(mss: f64, rtt: f64) -> f64 {
    initial_window(mss) / rtt.max(1e-3)
}

/// The flow, as its host tells of it.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Never backwards.
    pub(super) now: Time,
    /// The mean size of IP packets in bytes; that of full packets before the first.
    size: f64,
    measured: bool,
    /// The newest packet that left, where the host tells of it, and the newest that was reported.
    sent: Option<u64>,
    reported: Option<u64>,
    spacing: Spacing,
    timer: Option<Time>,
    /// The receiver asks for no more than that.
    pub(super) cap: Option<Rate>,
}

impl Flow {
    pub(super) fn new(setting: &Setting) -> Flow {
        Flow {
            now: Time::ZERO,
            size: setting.packet_size.0 as f64,
            measured: false,
            sent: None,
            reported: None,
            spacing: Spacing::default(),
            timer: None,
            cap: None,
        }
    }

    /// Bytes of a packet at the IP layer.
    pub(super) fn size(&self) -> f64 {
        self.size.max(1.0)
    }

    /// Whether the host tells of packets that leave.
    pub(super) fn tells_of_sending(&self) -> bool {
        self.sent.is_some()
    }

    pub(super) fn at(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// A packet left. Whether the timer of silence is to be started.
    pub(super) fn on_sent(&mut self, now: Time, sent: &Sent) -> bool {
        self.at(now);
        self.sent = self.sent.max(Some(sent.id));
        let bytes = sent.size.0.clamp(1, 65_535) as f64;
        self.size = if self.measured { self.size + (bytes - self.size) / 32.0 } else { bytes };
        self.measured = true;
        self.timer.is_none()
    }

    /// Feedback came.
    pub(super) fn on_feedback(&mut self, now: Time) {
        self.at(now);
        self.spacing.heard(self.now);
    }

    /// Feedback tells of a packet: whether for the first time of so new a one; nothing of one that never left.
    pub(super) fn on_report(&mut self, id: u64) -> Option<bool> {
        if self.sent.is_some_and(|last| id > last) {
            return None;
        }
        let new = self.reported.is_none_or(|reported| id > reported);
        self.reported = self.reported.max(Some(id));
        Some(new)
    }

    /// Feedback came: starts the timer of silence anew where it tells of arrivals, and where it does not run yet.
    pub(super) fn heard(&mut self, arrivals: bool, rtt: Option<f64>, rate: f64) {
        if arrivals || self.timer.is_none() {
            self.restart(rtt, rate);
        }
    }

    /// Starts the timer of silence: four round-trip times in seconds or the time of two packets at `rate` bytes a second, and by
    /// what feedback is further apart.
    pub(super) fn restart(&mut self, rtt: Option<f64>, rate: f64) {
        let rtt = rtt.unwrap_or(0.5);
        let seconds = (4.0 * rtt).max(2.0 * self.size() / rate) + self.spacing.beyond(rtt);
        self.timer = Some(self.now + Span::from_secs_f64(seconds.clamp(0.001, 86_400.0)));
    }

    /// When silence begins.
    pub(super) fn timeout(&self) -> Option<Time> {
        self.timer
    }

    /// Whether that time has come.
    pub(super) fn is_silent(&mut self, now: Time) -> bool {
        self.at(now);
        self.timer.is_some_and(|at| self.now >= at)
    }
}
