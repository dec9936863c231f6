//! State and rules that every controller needs, so that its file holds nothing but its own law: packets sent and reported, their
//! size, overdue feedback, losses that are one congestion, limits, and the decisions that wait.

use super::lately::Lately;
use super::spacing::{Spacing, overdue_after};
use super::{Decision, Decisions, Feedback, Sent, Setting, Signal};
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

/// The longest between two packets, as TFRC has it (RFC 5348, section 4.3: t_mbi), in seconds.
const SLOWEST: f64 = 64.0;

/// The part of the shortest time in which packets were answered of late that is the least round-trip time. A peer that says that it
/// held its feedback back gains 5/3; one that also answers packets before they have come, half a round trip early, 10/3.
const BELIEVED: f64 = 0.6;

/// The first window in bytes, for packets of at most `mss` (RFC 5348, section 4.2; RFC 3390).
fn initial_window(mss: f64) -> f64 {
    (4.0 * mss).min((2.0 * mss).max(4380.0))
}

/// The initial window in a round-trip time, as bytes a second. A round-trip time below a millisecond is not believed for this: a peer
/// that claims to have held its feedback back for all of the time would be sent any rate at once.
pub(super) fn initial_rate(mss: f64, rtt: f64) -> f64 {
    initial_window(mss) / rtt.max(1e-3)
}

/// Novelty of a packet's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum News {
    /// No later packet was reported before.
    New,
    /// It was reported before, or a later one was.
    Old,
    /// No packet of that number left, where the host tells of those that leave: the peer is wrong or lies.
    NeverSent,
}

/// Numbers of packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    /// The newest packet that left, where the host tells of it.
    pub(super) sent: Option<u64>,
    /// The newest that was reported.
    pub(super) reported: Option<u64>,
}

impl Numbers {
    pub(super) fn on_report(&mut self, id: u64) -> News {
        if self.sent.is_some_and(|sent| id > sent) {
            return News::NeverSent;
        }
        let is_new = self.reported.is_none_or(|reported| id > reported);
        self.reported = self.reported.max(Some(id));
        if is_new { News::New } else { News::Old }
    }
}

/// The flow that a controller steers. A controller keeps one, and gives each call of its host to it first.
///
/// Within a law, rates are IP bytes a second and round-trip times seconds; [`rate`](Flow::rate) makes a [`Rate`] within the limits
/// of them. The no-feedback timer is RFC 5348's (section 4.3), with room for feedback that comes less often than once in a round-trip time.
///
/// ```
/// use lastmile::{control::*, time::{Span, Time}, units::{Bytes, Rate}};
/// let mut flow = Flow::new(&Setting { max: Rate::ip(1_000_000), ..Setting::default() });
/// let (rtt, mut rate) = (Some(0.05), 500_000.0);
/// flow.on_sent(Time::ZERO, &Sent::media(0, Bytes(1200), Time::ZERO));
/// flow.expect_feedback(rtt, rate);
/// assert_eq!(flow.rate(rate), Rate::ip(1_000_000)); // 4 Mbit/s are above the limit
/// let silent = flow.poll_timeout().unwrap();
/// assert!(flow.is_overdue(silent));
/// rate /= 2.0;
/// flow.no_feedback(rtt, rate);
/// assert_eq!(flow.poll_decision(), Some(Decision::NoFeedback { rate: Rate::ip(1_000_000) }));
/// ```
#[derive(Clone, Debug)]
pub struct Flow {
    setting: Setting,
    now: Time,
    /// The mean size of IP packets in bytes, once one is known.
    size: Option<f64>,
    pub(super) numbers: Numbers,
    pub(super) spacing: Spacing,
    /// Seconds in which packets were answered.
    answered: Lately,
    no_feedback_at: Option<Time>,
    /// The receiver asks for no more than that.
    cap: Option<Rate>,
    recovery_start: Option<Time>,
    decisions: Decisions,
}

impl Flow {
    /// Before the first packet, within the limits of `setting`.
    pub fn new(setting: &Setting) -> Flow {
        Flow {
            setting: *setting,
            now: Time::ZERO,
            size: None,
            numbers: Numbers::default(),
            spacing: Spacing::default(),
            answered: Lately::default(),
            no_feedback_at: None,
            cap: None,
            recovery_start: None,
            decisions: Decisions::default(),
        }
    }

    /// The time of the last call: it never goes backwards.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Goes on to that time.
    pub(super) fn at(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    /// The mean size of packets at the IP layer, in bytes; that of full packets before the first.
    pub fn packet_size(&self) -> f64 {
        self.size.unwrap_or(self.full_size()).max(1.0)
    }

    /// The size of full packets at the IP layer, in bytes.
    pub fn full_size(&self) -> f64 {
        self.setting.packet_size.0 as f64
    }

    /// The start rate that the user set, in bytes a second.
    pub fn start_rate(&self) -> Option<f64> {
        self.setting.start.map(|start| start.bits_per_second() as f64 / 8.0)
    }

    /// The least that the user allows, in bytes a second.
    pub fn min_rate(&self) -> f64 {
        self.setting.min.bits_per_second() as f64 / 8.0
    }

    /// The most that the user and the receiver allow, in bytes a second.
    pub fn max_rate(&self) -> f64 {
        self.rate(f64::INFINITY).bits_per_second() as f64 / 8.0
    }

    /// The least that a law need ask for, in bytes a second: a packet in 64 s (RFC 5348, section 4.3).
    pub fn slowest_rate(&self) -> f64 {
        self.packet_size() / SLOWEST
    }

    /// The first window, in bytes (RFC 5348, section 4.2).
    pub fn initial_window(&self) -> f64 {
        initial_window(self.full_size())
    }

    /// The initial window in a round-trip time of `rtt` seconds, in bytes a second.
    pub fn initial_rate(&self, rtt: f64) -> f64 {
        initial_rate(self.full_size(), rtt)
    }

    /// A rate of so many bytes a second, within the limits of the user and the receiver; NaN becomes the least.
    pub fn rate(&self, bytes_per_second: f64) -> Rate {
        self.setting.below(self.cap, bytes_per_second)
    }

    /// A packet left.
    pub fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.at(now);
        self.numbers.sent = self.numbers.sent.max(Some(sent.id));
        self.sized(sent);
    }

    fn sized(&mut self, sent: &Sent) {
        let bytes = sent.size.0.clamp(1, 65_535) as f64;
        // [RFC 5348, 4.1] An average over some four loss intervals at 10 % of loss.
        self.size = Some(self.size.map_or(bytes, |size| size + (bytes - size) / 32.0));
    }

    /// True once the host told of a packet that left.
    pub fn tells_of_sending(&self) -> bool {
        self.numbers.sent.is_some()
    }

    /// Feedback came.
    pub fn on_feedback(&mut self, now: Time) {
        self.at(now);
        self.spacing.heard(self.now);
    }

    /// The round-trip time that feedback measures (RFC 5348, section 4.3, step 1), and at least three fifths of the shortest time in
    /// which packets were answered of late: how long a peer says that it held its feedback back can be a lie, and that time
    /// cannot. To be asked once for each message.
    pub fn round_trip(&mut self, feedback: &Feedback<'_>) -> Option<Span> {
        let newest = feedback.newest()?;
        let answered = self.now - feedback.reports[newest].sent.at;
        let sample = feedback.rtt(self.now)?;
        let shortest = self.answered.take(answered.as_secs_f64(), f64::min);
        Some(sample.max(Span::from_secs_f64(BELIEVED * shortest)))
    }

    /// Feedback tells of a packet.
    pub fn on_report(&mut self, sent: &Sent) -> News {
        let news = self.numbers.on_report(sent.id);
        if news == News::New && !self.tells_of_sending() {
            self.sized(sent);
        }
        news
    }

    /// Something else became known: limits are kept here, the rest is the law's.
    pub fn on_signal(&mut self, now: Time, signal: Signal) {
        self.at(now);
        match signal {
            Signal::Remb { rate } => self.cap = Some(rate),
            Signal::Mtu { size } => self.setting.packet_size = Bytes(size.0.clamp(40, 65_535)),
            _ => {}
        }
    }

    /// Starts the no-feedback timer where it does not run: when a packet leaves, and with feedback that tells of no arrival.
    pub fn expect_feedback(&mut self, rtt: Option<f64>, bytes_per_second: f64) {
        if self.no_feedback_at.is_none() {
            self.restart(rtt, bytes_per_second);
        }
    }

    /// Starts the no-feedback timer anew, when feedback tells of arrivals: four round-trip times or the time of two packets at that rate, and
    /// by what feedback is further apart. On a short path it allows feedback to be 100 ms late.
    pub fn restart(&mut self, rtt: Option<f64>, bytes_per_second: f64) {
        let rtt = rtt.unwrap_or(0.5);
        let packets = 2.0 * self.packet_size() / bytes_per_second;
        let seconds = overdue_after((4.0 * rtt).max(packets), rtt, self.spacing.beyond(rtt));
        self.no_feedback_at = Some(self.now + Span::from_secs_f64(seconds.clamp(0.001, 86_400.0)));
    }

    /// When feedback is overdue.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.no_feedback_at
    }

    /// True if feedback is overdue: then the law lowers its rate, and says so with [`no_feedback`](Flow::no_feedback).
    pub fn is_overdue(&mut self, now: Time) -> bool {
        self.at(now);
        self.no_feedback_at.is_some_and(|at| self.now >= at)
    }

    /// The rate was lowered to that since feedback is overdue: the timer starts anew, and the host is told.
    pub fn no_feedback(&mut self, rtt: Option<f64>, bytes_per_second: f64) {
        self.restart(rtt, bytes_per_second);
        self.decide(Decision::NoFeedback { rate: self.rate(bytes_per_second) });
    }

    /// Congestion was found by a packet that was sent at that time. True if a recovery begins; false if the packet was sent before the
    /// current one began, and belongs to the congestion that is answered already (RFC 5681, section 3.2).
    pub fn begin_recovery(&mut self, sent_at: Time) -> bool {
        let begins = !self.in_recovery(sent_at);
        if begins {
            self.recovery_start = Some(self.now);
        }
        begins
    }

    /// True if a packet sent at `sent_at` left before the last recovery began.
    pub fn in_recovery(&self, sent_at: Time) -> bool {
        self.recovery_start.is_some_and(|start| sent_at < start)
    }

    /// Something was decided.
    pub fn decide(&mut self, decision: Decision) {
        self.decisions.push(decision);
    }

    /// Takes the oldest decision that waits.
    pub fn poll_decision(&mut self) -> Option<Decision> {
        self.decisions.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn packets_that_never_left_are_no_news() {
        let mut flow = Flow::new(&Setting::default());
        let packet = |id, size| Sent::media(id, Bytes(size), at(0));
        // A host that does not tell of sending: sizes are those of reports.
        assert_eq!((flow.on_report(&packet(3, 600)), flow.packet_size()), (News::New, 600.0));
        flow.on_sent(at(1), &packet(4, 600));
        let news = [4, 4, 2, 5].map(|id| flow.on_report(&packet(id, 1200)));
        assert_eq!(news, [News::New, News::Old, News::Old, News::NeverSent]);
        assert_eq!(flow.packet_size(), 600.0);
    }

    #[test]
    fn feedback_of_a_short_path_may_be_late_by_what_a_program_takes() {
        let waits = |rtt: f64, every: u64| {
            let mut flow = Flow::new(&Setting::default());
            (0..=400).for_each(|k| flow.on_feedback(at(every * k)));
            flow.restart(Some(rtt), 1e9);
            (flow.poll_timeout().unwrap() - at(400 * every)).as_secs_f64() * 1e3
        };
        // Each 50 ms at 2 ms; four round-trip times and what feedback is further apart at 40 ms; feedback once in a round-trip time.
        assert_eq!(
            [waits(0.002, 50), waits(0.04, 50), waits(0.02, 20)].map(f64::round),
            [150.0, 170.0, 80.0]
        );
    }

    #[test]
    fn losses_before_a_recovery_belong_to_it() {
        let mut flow = Flow::new(&Setting::default());
        flow.on_feedback(at(100));
        assert!(flow.begin_recovery(at(50)) && !flow.begin_recovery(at(99)) && flow.begin_recovery(at(100)));
        // A clock that goes back.
        flow.on_signal(at(10), Signal::Idle);
        assert_eq!(flow.now(), at(100));
    }

    #[test]
    fn receivers_and_users_limit_the_rate() {
        let setting = Setting { min: Rate::ip(10_000), max: Rate::ip(1_000_000), ..Setting::default() };
        let mut flow = Flow::new(&setting);
        let asked = |flow: &mut Flow, bps| {
            flow.on_signal(at(0), Signal::Remb { rate: Rate::ip(bps) });
            flow.rate(1e9)
        };
        assert_eq!((flow.rate(f64::NAN), flow.rate(1e9)), (setting.min, setting.max));
        assert_eq!((asked(&mut flow, 500_000), asked(&mut flow, 1)), (Rate::ip(500_000), setting.min));
    }
}
