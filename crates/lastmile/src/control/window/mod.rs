//! Increase and decrease laws of a congestion window: TCP's congestion control without sequence numbers, timers and
//! retransmission.
//!
//! The packets' owner owns the [`Window`], in segments, and has a law move it: for acknowledged data
//! ([`WindowLaw::on_ack`]) and when congestion was found ([`WindowLaw::on_congestion`]), at most once per window
//! of data for anything but timeouts. Limits (receiver window, bytes at hand) and the inflation of the window
//! during fast recovery (RFC 5681, section 3.2) are the owner's business. The simulator's TCP and the rate
//! controllers that imitate TCP share these laws.
//!
//! | name | law | source |
//! |---|---|---|
//! | `reno` | additive increase, multiplicative decrease | RFC 5681 |
//! | `vegas` | delay | Brakmo and Peterson, IEEE JSAC 13(8), 1995 |
//! | `westwood+` | decrease to the measured bandwidth | Mascolo et al., MobiCom 2001; Grieco and Mascolo, ACM CCR 34(2), 2004 |
//! | `cubic` | cubic growth since the last decrease | RFC 9438 |
//! | `iiad`, `sqrt`, `binomial` | binomial | Bansal and Balakrishnan, INFOCOM 2001 |

use core::fmt::Debug;

use crate::time::{Span, Time};

mod binomial;
mod config;
mod cubic;
mod reno;
#[cfg(test)]
mod testing;
mod vegas;
mod westwood;

pub use binomial::{Binomial, BinomialConfig};
pub use config::{LawConfig, UnknownLaw};
pub use cubic::{Cubic, CubicConfig};
pub use reno::{Reno, RenoConfig};
pub use vegas::{Vegas, VegasConfig};
pub use westwood::{Westwood, WestwoodConfig};

/// The smallest slow-start threshold, in segments (RFC 5681, equation 4).
pub const MIN_SSTHRESH: f64 = 2.0;

/// Sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Congestion {
    /// A segment was lost while later ones arrived: three duplicate ACKs, or as much in SACK blocks.
    DupAcks,
    /// The retransmission timer expired.
    Timeout,
    /// The receiver echoed a mark (RFC 3168).
    Ecn,
}

/// Content of one ACK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acked {
    /// Segments that the window may count for it: one for each ACK by RFC 5681, the segments that it
    /// newly acknowledges where bytes are counted (RFC 3465).
    pub segments: f64,
    /// The round-trip time that it measured.
    pub rtt: Option<Span>,
    /// When it came.
    pub now: Time,
    /// True if all that was in flight at the last such ACK is acknowledged: once per round-trip time.
    pub round_ended: bool,
}

/// A congestion window and its threshold, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The congestion window, at least one.
    pub cwnd: f64,
    /// Below it, the window grows by slow start; infinite until congestion was first found.
    pub ssthresh: f64,
}

impl Window {
    /// A window that starts at `initial` segments.
    ///
    /// ```
    /// # use lastmile::control::window::Window;
    /// assert_eq!(Window::new(0.0).cwnd, 1.0);
    /// ```
    pub fn new(initial: f64) -> Window {
        Window { cwnd: initial.max(1.0), ssthresh: f64::INFINITY }
    }

    /// True if the window grows by slow start.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// One segment more for each acknowledged (RFC 5681, equation 2).
    #[inline]
    pub fn slow_start(&mut self, segments: f64) {
        self.cwnd += segments;
    }

    /// Sets the threshold, and the window to it or, after a timeout, to one segment (RFC 5681, section 3.1). The
    /// threshold is whole segments, as in Linux and ns-2: a fraction would let slow start go one segment beyond it.
    ///
    /// ```
    /// # use lastmile::control::window::{Congestion, Window};
    /// let mut window = Window::new(10.0);
    /// window.reduce_to(5.0, Congestion::Timeout);
    /// assert_eq!((window.cwnd, window.ssthresh), (1.0, 5.0));
    /// ```
    pub fn reduce_to(&mut self, threshold: f64, how: Congestion) {
        self.ssthresh = threshold.floor().max(MIN_SSTHRESH);
        self.cwnd = if how == Congestion::Timeout { 1.0 } else { threshold.max(1.0).min(self.cwnd) };
    }
}

/// A law by which a window grows and shrinks.
///
/// ```
/// use lastmile::{control::window::*, time::Time};
/// let (mut law, mut window) = (LawConfig::default().law(), Window::new(2.0));
/// let ack = Acked { segments: 1.0, rtt: None, now: Time::ZERO, round_ended: false };
/// law.on_ack(&mut window, &ack);
/// assert_eq!(window.cwnd, 3.0);
/// law.on_congestion(&mut window, Congestion::DupAcks, Time::ZERO);
/// assert_eq!(window.cwnd, 1.5);
/// ```
pub trait WindowLaw: Debug + Send + Sync {
    /// New data was acknowledged, outside fast recovery.
    fn on_ack(&mut self, window: &mut Window, ack: &Acked);

    /// Congestion was found. Of timeouts that repeat for the same segment the owner may tell the first alone (RFC 5681,
    /// section 3.1: the threshold stays).
    fn on_congestion(&mut self, window: &mut Window, how: Congestion, now: Time);

    /// So many segments were acknowledged or, by duplicate ACKs, are known to have arrived; told of every ACK
    /// before anything else, for laws that measure the rate of arrivals.
    fn on_delivered(&mut self, _segments: f64, _rtt: Option<Span>, _now: Time) {}

    /// One that goes on from here by itself.
    fn clone_box(&self) -> Box<dyn WindowLaw>;
}

impl Clone for Box<dyn WindowLaw> {
    fn clone(&self) -> Box<dyn WindowLaw> {
        (**self).clone_box()
    }
}
