//! Any of our controllers as the congestion controller of a QUIC connection of `noq-proto` 1.4.
//!
//! noq tells packet numbers at sent, acknowledged and lost, and no times of arrival: a controller is a window and a pacing rate by round-trip
//! times. It has no timers, so that deadlines are looked at in each call, and packet numbers repeat across its three spaces, so that packets
//! are numbered anew here. A mark (ECN) is told with the next packet that is acknowledged.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use lastmile::control::{
    Composition, Fate, Feedback, LostBy, RateController, Report, Sent, Setting, Signal, Source, build,
};
use lastmile::node::Ecn;
use lastmile::options::ChoiceError;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// Headers of UDP and IPv4, which our sizes and rates count and noq's do not.
const HEADERS: u64 = 28;
/// A window where the controller names none, in round trips at its pacing rate: the pacer limits first.
const ROUNDS: f64 = 2.0;
/// And in packets at least.
const PACKETS: u64 = 10;

/// Makes the controllers of connections: for `TransportConfig::congestion_controller_factory`.
///
/// ```
/// use lastmile_peers::noq::Factory;
/// let factory = Factory::new(&"lastmile".parse()?, &Default::default())?;
/// noq_proto::TransportConfig::default().congestion_controller_factory(std::sync::Arc::new(factory));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Factory(Box<dyn RateController>);

impl Factory {
    /// Of a registered controller.
    ///
    /// # Errors
    /// There is none of that name, or an option is wrong.
    pub fn new(control: &Composition, setting: &Setting) -> Result<Factory, ChoiceError> {
        Ok(Factory(build(control, setting)?))
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let mut hosted = Hosted {
            controller: self.0.clone(),
            epoch: now,
            mtu: current_mtu,
            flight: VecDeque::new(),
            next: 0,
            in_flight: 0,
            rtt: Span::from_millis(100),
            marked: false,
            reports: Vec::new(),
        };
        hosted.on_mtu_update(current_mtu);
        Box::new(hosted)
    }
}

/// A packet that left, with its number of noq's.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    number: u64,
    sent: Sent,
    awaited: bool,
}

#[derive(Clone, Debug)]
struct Hosted {
    controller: Box<dyn RateController>,
    epoch: Instant,
    mtu: u16,
    flight: VecDeque<InFlight>,
    next: u64,
    in_flight: u64,
    rtt: Span,
    marked: bool,
    reports: Vec<Report>,
}

impl Hosted {
    /// The time; timers that are over are due.
    fn at(&mut self, now: Instant) -> Time {
        let now = Time::from_nanos(now.saturating_duration_since(self.epoch).as_nanos() as u64);
        // A timer that stays over is looked at in the next call.
        if self.controller.poll_timeout().is_some_and(|at| at <= now) {
            self.controller.on_timeout(now);
        }
        while self.controller.poll_action().is_some() {}
        now
    }

    /// The oldest packet of that number and size whose fate is not known.
    fn settle(&mut self, number: u64, bytes: u64, fate: Fate, app_limited: bool) {
        let size = Bytes(bytes + HEADERS);
        let is = |of: &&mut InFlight| of.awaited && of.number == number && of.sent.size == size;
        let Some(of) = self.flight.iter_mut().find(is) else { return };
        of.awaited = false;
        self.in_flight = self.in_flight.saturating_sub(size.0);
        self.reports.push(Report { sent: Sent { app_limited, ..of.sent }, fate });
        while self.flight.front().is_some_and(|of| !of.awaited) {
            self.flight.pop_front();
        }
    }

    fn report(&mut self, now: Instant) {
        let now = self.at(now);
        if !self.reports.is_empty() {
            self.reports.sort_unstable_by_key(|report| report.sent.id);
            let mut feedback = Feedback {
                resolution: None,
                source: Source::Quic,
                ..Feedback::exact(&mut self.reports, None)
            };
            self.controller.on_feedback(now, &mut feedback);
            self.reports.clear();
        }
    }

    /// Of IP bytes those that noq counts, in full packets.
    fn payload(&self, bytes: u64) -> u64 {
        let mtu = u64::from(self.mtu);
        (u128::from(bytes) * u128::from(mtu) / u128::from(mtu + HEADERS)) as u64
    }
}

impl Controller for Hosted {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        let now = self.at(now);
        let size = Bytes(u64::from(bytes) + HEADERS);
        self.in_flight += size.0;
        let sent = Sent { in_flight: Bytes(self.in_flight), ..Sent::media(self.next, size, now) };
        self.next += 1;
        self.flight.push_back(InFlight { number: pn, sent, awaited: true });
        self.controller.on_sent(now, &sent);
    }

    fn on_ack(&mut self, _: Instant, _: Instant, bytes: u64, pn: u64, app_limited: bool, rtt: &RttEstimator) {
        self.rtt = Span::from_secs_f64(rtt.get().as_secs_f64());
        let ecn = if std::mem::take(&mut self.marked) { Ecn::Ce } else { Ecn::NotEct };
        self.settle(pn, bytes, Fate::Arrived { at: None, ecn }, app_limited);
    }

    fn on_end_acks(&mut self, now: Instant, _: u64, _: bool, _: Option<u64>) {
        self.report(now);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, _: Instant) {
        self.settle(pn, lost_bytes.into(), Fate::lost(LostBy::Gap), false);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        _: Instant,
        persistent: bool,
        is_ecn: bool,
        _: u64,
        _: u64,
    ) {
        self.marked |= is_ecn;
        self.report(now);
        if persistent {
            let now = self.at(now);
            self.controller.on_signal(now, Signal::PersistentCongestion);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        let size = Bytes(u64::from(new_mtu) + HEADERS);
        // It comes without a time: a controller's never goes back.
        self.controller.on_signal(Time::ZERO, Signal::Mtu { size });
    }

    fn window(&self) -> u64 {
        let output = self.controller.output();
        let bdp = || output.pacing.bytes_in(self.rtt.scaled(ROUNDS)).0;
        self.payload(output.window.map_or_else(bdp, |window| window.0))
            .max(2 * u64::from(self.mtu))
            .max(if output.window.is_none() { PACKETS * u64::from(self.mtu) } else { 0 })
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        let output = self.controller.output();
        metrics.congestion_window = self.window();
        metrics.pacing_rate = Some(self.payload(output.pacing.bits_per_second() / 8));
        metrics.bandwidth_estimate = Some(output.target.bits_per_second());
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
