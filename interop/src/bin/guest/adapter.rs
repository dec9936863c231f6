//! The adapters between `rtc-interceptor`'s `BandwidthEstimator` and our interface: a controller of ours as its guest, and a
//! classifier of ours in front of one of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use lastmile::classify::{Discriminator, LossClass};
use lastmile::control::{
    Discriminated, Fate, Feedback, LostBy, RateController, Report, Sent, Setting, Source, build,
};
use lastmile::node::Ecn;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use rtc_interceptor::{BandwidthEstimator, Gcc, PacketReport};
use rtc_rtcp::transport_feedbacks::cc_feedback_report::Ecn as TheirEcn;

/// What a packet of RTP has beside what the host counts: IPv4 and UDP.
const HEADERS: u64 = 28;
/// TWCC's times of arrival.
const RESOLUTION: Span = Span::from_micros(250);

/// One of our controllers, 300 kbit/s at first and 10 Mbit/s at most.
pub fn controller(name: &str) -> Result<Box<dyn RateController>> {
    let setting = Setting { start: Some(Rate::ip(300_000)), max: Rate::ip(10_000_000), ..Setting::default() };
    Ok(build(&name.parse()?, &setting)?)
}

/// Their reports as ours: of each packet its fate. The host tells neither of sending nor how long feedback was held back.
#[derive(Default)]
struct Reports {
    /// The moment that our time counts from.
    epoch: Option<Instant>,
    reports: Vec<Report>,
}

impl Reports {
    fn time(&mut self, at: Instant) -> Time {
        // What left before the first call is no later than it.
        let epoch = *self.epoch.get_or_insert(at);
        Time::from_nanos(at.saturating_duration_since(epoch).as_nanos() as u64)
    }

    fn take(&mut self, theirs: &[PacketReport]) -> Feedback<'_> {
        self.reports.clear();
        for one in theirs {
            let ecn = match one.ecn {
                TheirEcn::NotEct => Ecn::NotEct,
                TheirEcn::Ect1 => Ecn::Ect1,
                TheirEcn::Ect0 => Ecn::Ect0,
                TheirEcn::Ce => Ecn::Ce,
            };
            let at = one.arrival.map(|arrival| Time::from_nanos(arrival.as_nanos() as u64));
            let sent = Sent::media(one.id, Bytes(one.size as u64 + HEADERS), self.time(one.departure));
            let fate = if one.arrived { Fate::Arrived { at, ecn } } else { Fate::lost(LostBy::Gap) };
            self.reports.push(Report { sent, fate });
        }
        Feedback {
            reports: &mut self.reports,
            arrival_order: &[],
            resolution: Some(RESOLUTION),
            remote_sent: None,
            hold: Span::ZERO,
            source: Source::Twcc,
            receiver: None,
            truth: None,
        }
    }
}

/// One of our controllers as a guest.
pub struct Hosted {
    controller: Box<dyn RateController>,
    reports: Reports,
}

impl Hosted {
    pub fn new(controller: Box<dyn RateController>) -> Hosted {
        Hosted { controller, reports: Reports::default() }
    }
}

impl BandwidthEstimator for Hosted {
    fn on_reports(&mut self, now: Instant, reports: &[PacketReport]) {
        if let Some(first) = reports.first() {
            // Time begins with the first packet.
            self.reports.time(first.departure);
            let now = self.reports.time(now);
            self.controller.on_feedback(now, &mut self.reports.take(reports));
        }
    }

    fn target_bitrate(&self) -> f64 {
        self.controller.output().target.bits_per_second() as f64
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.reports.epoch.is_some() {
            let now = self.reports.time(now);
            if self.controller.poll_timeout().is_some_and(|at| at <= now) {
                self.controller.on_timeout(now);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let at = self.controller.poll_timeout()?;
        Some(self.reports.epoch? + std::time::Duration::from_nanos(at.as_nanos()))
    }
}

/// Losses, and those that were left out of reports.
#[derive(Clone, Default)]
pub struct Counts(Arc<[AtomicU64; 2]>);

impl Counts {
    /// The share of losses that were left out.
    pub fn left_out(&self) -> f64 {
        let [lost, left_out] = [0, 1].map(|i| self.0[i].load(Ordering::Relaxed) as f64);
        left_out / lost.max(1.0)
    }
}

/// Their GCC with one of our classifiers in front: what it judges wireless is left out of the reports.
pub struct Filtered {
    judge: Discriminated,
    gcc: Gcc,
    reports: Reports,
    passed: Vec<PacketReport>,
    counts: Counts,
}

impl Filtered {
    pub fn new(classifier: &str, gcc: Gcc, counts: Counts) -> Result<Filtered> {
        let judge = Discriminated::new(Discriminator::new(&classifier.parse()?)?, controller("fixed")?);
        Ok(Filtered { judge, gcc, reports: Reports::default(), passed: Vec::new(), counts })
    }
}

impl BandwidthEstimator for Filtered {
    fn on_reports(&mut self, now: Instant, reports: &[PacketReport]) {
        let Some(first) = reports.first() else { return };
        self.reports.time(first.departure);
        let ours = self.reports.time(now);
        let mut feedback = self.reports.take(reports);
        self.judge.judge(ours, &mut feedback);
        self.passed.clear();
        for (theirs, judged) in reports.iter().zip(feedback.reports.iter()) {
            if let Fate::Lost { class, .. } = judged.fate {
                self.counts.0[0].fetch_add(1, Ordering::Relaxed);
                if class == LossClass::Wireless {
                    self.counts.0[1].fetch_add(1, Ordering::Relaxed);
                    continue;
                }
            }
            self.passed.push(theirs.clone());
        }
        self.gcc.on_reports(now, &self.passed);
    }

    fn target_bitrate(&self) -> f64 {
        self.gcc.target_bitrate()
    }
}

/// The rate that an encoder would be told: the interceptor hands it to its pacer alone.
#[derive(Clone, Default)]
pub struct Shared(Arc<AtomicU64>);

impl Shared {
    pub fn bits_per_second(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// An estimator whose target is read from outside as well.
pub struct Target<E> {
    estimator: E,
    shared: Shared,
}

impl<E: BandwidthEstimator> Target<E> {
    pub fn of(estimator: E, shared: Shared) -> Target<E> {
        let target = Target { estimator, shared };
        target.tell();
        target
    }

    fn tell(&self) {
        self.shared.0.store(self.estimator.target_bitrate().to_bits(), Ordering::Relaxed);
    }
}

impl<E: BandwidthEstimator> BandwidthEstimator for Target<E> {
    fn on_reports(&mut self, now: Instant, reports: &[PacketReport]) {
        self.estimator.on_reports(now, reports);
        self.tell();
    }
    fn target_bitrate(&self) -> f64 {
        self.estimator.target_bitrate()
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.estimator.handle_timeout(now);
        self.tell();
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.estimator.poll_timeout()
    }
}

/// Any estimator: the interceptor wants a type.
pub struct Boxed(pub Box<dyn BandwidthEstimator>);

impl BandwidthEstimator for Boxed {
    fn on_reports(&mut self, now: Instant, reports: &[PacketReport]) {
        self.0.on_reports(now, reports);
    }
    fn target_bitrate(&self) -> f64 {
        self.0.target_bitrate()
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.0.handle_timeout(now);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }
}
