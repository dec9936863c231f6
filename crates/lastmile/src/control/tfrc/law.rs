//! The interface of TFRC's two sender laws: RFC 5348's, and that of ns-2.

use super::equation::Equation;
use crate::telemetry::Visitor;
use crate::time::{Span, Time};

/// Content of a feedback packet (RFC 5348, sections 3.2.2 and 4.3), in seconds and in the bytes that are paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Facts {
    /// R_sample; none where this feedback measured none.
    pub(super) rtt: Option<f64>,
    /// X_recv, in bytes a second; none where the receiver had nothing to go by yet.
    pub(super) received: Option<f64>,
    /// p.
    pub(super) loss_event_rate: f64,
    /// Factor on the equation's rate: one, or that of several connections.
    pub(super) times: f64,
    /// It reports a new loss event, or a higher p.
    pub(super) worse: bool,
    /// It tells of a congestion loss, where a classifier has taken other losses out of p.
    pub(super) sifted: bool,
    /// All of the interval that it covers was data-limited.
    pub(super) data_limited: bool,
    /// Seconds by which feedback is further apart than a round-trip time.
    pub(super) spacing: f64,
    /// The usual time between feedback messages.
    pub(super) every: f64,
    /// s: the mean segment size.
    pub(super) segment: f64,
    /// The largest rate that the user allows.
    pub(super) max: f64,
}

/// Sets the allowed sending rate. Rates are bytes a second.
pub(super) trait Law: core::fmt::Debug + Send + Sync {
    /// Feedback came.
    fn on_feedback(&mut self, now: Time, facts: &Facts);

    /// The nofeedback timer expired; `idle` if nothing was sent since it was set.
    fn on_no_feedback(&mut self, now: Time, idle: bool);

    /// The path carries far more: slow start again, once p is zero.
    fn restart(&mut self) {}

    /// A packet left.
    fn on_packet(&mut self) {}

    /// Rounds that had begun when a packet was sent; `None` if rounds do not keep loss events apart.
    fn round(&self, _sent: Time) -> Option<u64> {
        None
    }

    /// When the nofeedback timer expires.
    fn no_feedback_at(&self) -> Option<Time>;

    /// Starts that timer, where it does not run yet.
    fn start(&mut self, now: Time);

    /// R; none before the first sample.
    fn rtt(&self) -> Option<f64>;

    /// The equation that the law goes by, for segments of so many bytes at that round-trip time in seconds.
    fn equation(&self, segment: f64, rtt: f64) -> Equation {
        Equation::rfc(segment, rtt)
    }

    /// X: the allowed sending rate.
    fn allowed(&self) -> f64;

    /// X_inst: the rate at which packets may leave right now.
    fn instantaneous(&self) -> f64;

    /// Shows its own part of the state.
    fn telemetry(&self, visitor: &mut dyn Visitor);

    /// One that goes on from here by itself.
    fn clone_box(&self) -> Box<dyn Law>;
}

impl Clone for Box<dyn Law> {
    fn clone(&self) -> Box<dyn Law> {
        (**self).clone_box()
    }
}

/// So many seconds from now; a length that is no number, or absurd, is a day.
pub(super) fn after(now: Time, seconds: f64) -> Time {
    now + Span::from_secs_f64(if seconds.is_nan() { 86_400.0 } else { seconds.clamp(1e-6, 86_400.0) })
}
