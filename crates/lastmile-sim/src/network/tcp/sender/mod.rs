//! [`Sender`]: sends segments as the window allows, and again what was lost.

use std::collections::VecDeque;

use lastmile::control::window::{Acked, Congestion, Window, WindowLaw};
use lastmile::node::{Datagram, Ecn, Output, Payload};
use lastmile::rng::Stream;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;

use super::app::{App, Supply};
use super::packet::{Ack, MAX_SEQ, MAX_WINDOW, Segment};
use super::rto::RtoTimer;
use super::scoreboard::{DUP_THRESH, Scoreboard};
use super::{Ends, Recovery, SenderCounters, TcpConfig};

mod fine;
mod recovery;

use fine::Fine;

/// The sending end of a connection. Sends by port 0.
#[derive(Debug)]
pub struct Sender {
    config: TcpConfig,
    segment: u32,
    header: u32,
    ends: Ends,
    law: Box<dyn WindowLaw>,
    window: Window,
    rto: RtoTimer,
    supply: Supply,
    board: Scoreboard,
    /// First segment not acknowledged, next to send, first never sent.
    una: u64,
    next: u64,
    max: u64,
    /// `max` when congestion was last found (RFC 6582's recover).
    recover: Option<u64>,
    in_recovery: bool,
    /// RFC 6675's rescue retransmission has been made.
    rescued: bool,
    first_partial: bool,
    /// `max` when a segment beyond `recover` was first sent again.
    resent_beyond: Option<u64>,
    /// All below it left before the segment that recovery began with was sent again.
    older: u64,
    dup_acks: u32,
    /// Segments by which duplicate ACKs inflate the window, less those by which NewReno's partial ACKs deflate it.
    inflation: i64,
    /// The first unacknowledged segment is to be sent again.
    resend_first: bool,
    /// With Sack1, segments in the network as the ACKs tell it; none are counted between a timeout and the next new ACK.
    pipe: i64,
    after_timeout: bool,
    /// With `rack_retransmissions`: the segments sent again and their times, in the order of departure; the time of the last
    /// reduction of the window; the latest departure of a segment that arrived.
    again: VecDeque<(u64, u64)>,
    reduced: u64,
    latest: u64,
    /// With `fine_timeouts`, when the segments under way left.
    fine: Option<Box<Fine>>,
    /// Segments that may still go before the next ACK.
    burst: u32,
    /// When the retransmission timer expires.
    expires: Option<u64>,
    timed_out: Option<u64>,
    /// The segment that is timed, and when it left.
    timed: Option<(u64, u64)>,
    round_end: u64,
    /// With ECN, `max` when the window was last reduced.
    marked_until: u64,
    cwr: bool,
    /// A mark found a window of one segment: nothing new goes until the timer expires.
    held: bool,
    counters: SenderCounters,
}

impl Sender {
    /// The sending end that `config` describes, with data from `start` to `stop`. `random` draws what `app` needs.
    pub fn new(config: &TcpConfig, ends: Ends, app: App, start: Time, stop: Time, random: Stream) -> Sender {
        let mut config = config.clone();
        config.max_window = config.max_window.clamp(1, MAX_WINDOW);
        let segment = config.segment.0.clamp(1, 1 << 16) as u32;
        Sender {
            segment,
            header: config.header.0.clamp(1, 1 << 16) as u32,
            ends,
            law: config.law.law(),
            window: config.window(),
            rto: RtoTimer::new(&config),
            supply: Supply::new(app, segment, start, stop, random),
            board: Scoreboard::new(if config.recovery == Recovery::Sack1 { 1 } else { DUP_THRESH }),
            una: 0,
            next: 0,
            max: 0,
            recover: None,
            in_recovery: false,
            rescued: false,
            first_partial: true,
            resent_beyond: None,
            older: 0,
            dup_acks: 0,
            inflation: 0,
            resend_first: false,
            pipe: 0,
            after_timeout: false,
            again: VecDeque::new(),
            reduced: 0,
            latest: 0,
            fine: config.fine_timeouts.then(Box::default),
            burst: u32::MAX,
            expires: None,
            timed_out: None,
            timed: None,
            round_end: 0,
            marked_until: 0,
            cwr: false,
            held: false,
            counters: SenderCounters::default(),
            config,
        }
    }

    /// Totals so far.
    pub fn counters(&self) -> SenderCounters {
        let Supply { transfers, transfer_time, .. } = self.supply;
        SenderCounters { acknowledged: self.una, transfers, transfer_time, ..self.counters }
    }

    /// Memory for the segments under way, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        (self.max - self.una) * 24
    }

    /// The congestion window, in segments.
    pub fn cwnd(&self) -> f64 {
        self.window.cwnd
    }

    fn sack(&self) -> bool {
        self.config.recovery == Recovery::Sack
    }

    fn sack1(&self) -> bool {
        self.config.recovery == Recovery::Sack1
    }

    fn new_connection(&mut self) {
        self.law = self.config.law.law();
        self.window = self.config.window();
        self.rto = RtoTimer::new(&self.config);
        (self.in_recovery, self.dup_acks, self.inflation) = (false, 0, 0);
        (self.recover, self.timed, self.timed_out) = (None, None, None);
    }

    #[inline]
    pub(crate) fn receive(&mut self, now: Time, datagram: &Datagram) {
        if let Payload::Model(model) = &datagram.payload
            && let Some(ack) = Ack::read(model)
        {
            self.on_ack(now, &ack);
        }
    }

    fn on_ack(&mut self, now: Time, ack: &Ack) {
        self.counters.acks += 1;
        self.burst = u32::MAX;
        if ack.next > self.max || ack.next < self.una {
            return;
        }
        let marked = ack.ece && self.config.ecn;
        if marked && !self.in_recovery && ack.next > self.marked_until {
            // RFC 3168, section 6.1.2: once per window of data, and a window of one segment, which cannot be reduced, waits
            // for the timer instead, which runs only while something is under way.
            self.held = self.window.cwnd <= 1.0 && self.una < self.max;
            self.reduce(Congestion::Ecn, now);
            self.counters.ecn_reductions += 1;
        }
        let blocks = self.config.recovery.has_blocks() && !self.after_timeout;
        let news = if blocks { self.board.update(&ack.blocks, self.max) } else { 0 };
        let rtt = (ack.echo > 0).then(|| now - Time::from_nanos(ack.echo));
        let counts = match self.config.recovery {
            Recovery::Sack => news > 0,
            Recovery::Sack1 => !self.after_timeout && (news > 0 || self.in_recovery),
            Recovery::Reno | Recovery::NewReno => true,
        };
        if self.config.rack_retransmissions && self.sack() {
            self.lose_again(now, ack.next, ack.echo);
        }
        if ack.next > self.una {
            self.on_new_ack(now, ack.next, rtt, marked);
        } else if self.una < self.max && counts {
            self.law.on_delivered(1.0, rtt, now);
            self.on_duplicate(now);
        }
    }

    /// Has the law reduce the window. Whatever the reason, the receiver is told to end its echo, and marks of what was
    /// under way are no reason for another reduction (RFC 3168, section 6.1.2).
    fn reduce(&mut self, how: Congestion, now: Time) {
        self.law.on_congestion(&mut self.window, how, now);
        if how == Congestion::DupAcks {
            let least = self.config.min_loss_window.min(self.config.max_window);
            self.window.cwnd = self.window.cwnd.max(f64::from(least));
        }
        self.reduced = now.as_nanos();
        if self.config.ecn {
            (self.marked_until, self.cwr) = (self.max, true);
        }
    }

    fn on_new_ack(&mut self, now: Time, una: u64, rtt: Option<Span>, marked: bool) {
        let newly = una - self.una;
        // Duplicate ACKs have told of some of them.
        let told = u64::from(self.dup_acks).min(newly - 1);
        self.una = una;
        self.next = self.next.max(una);
        self.board.advance(una);
        let rtt = self.fine.as_mut().map_or(rtt, |fine| fine.on_new_ack(now, newly));
        self.law.on_delivered((newly - told) as f64, rtt, now);
        self.take_sample(now, una, rtt);
        let round_ended = una > self.round_end;
        if round_ended {
            self.round_end = self.max;
        }
        let recovered = self.recover.is_none_or(|recover| una >= recover);
        if self.in_recovery && !recovered && self.config.recovery != Recovery::Reno {
            self.on_partial_ack(now, newly);
            return;
        }
        let was_sack_recovery = self.in_recovery && self.config.recovery.has_blocks();
        if self.sack1() {
            self.board.clear();
            if self.in_recovery {
                self.recover = None;
            }
        }
        self.after_timeout = false;
        (self.in_recovery, self.dup_acks, self.inflation) = (false, 0, 0);
        self.first_partial = true;
        if !marked && !was_sack_recovery {
            let segments = self.config.byte_counting.map_or(1, |limit| newly.min(u64::from(limit))) as f64;
            self.law.on_ack(&mut self.window, &Acked { segments, rtt, now, round_ended });
            self.window.cwnd = self.window.cwnd.min(f64::from(self.config.max_window));
        }
        self.supply.acknowledged(now.as_nanos(), una);
        self.restart_timer(now);
        self.look_again(now);
    }

    fn take_sample(&mut self, now: Time, una: u64, rtt: Option<Span>) {
        if self.config.timestamps {
            if let Some(rtt) = rtt {
                self.rto.sample(rtt, (now - rtt).as_nanos());
            }
        } else if let Some((seq, sent)) = self.timed
            && una > seq
        {
            self.timed = None;
            self.rto.sample(now - Time::from_nanos(sent), sent);
        }
    }

    fn restart_timer(&mut self, now: Time) {
        self.expires = (self.una < self.max || self.held)
            .then(|| now.as_nanos().saturating_add(self.rto.timeout().as_nanos() as u64));
    }

    /// The segment that goes now, if one may.
    #[inline]
    fn choose(&mut self) -> Option<u64> {
        if self.resend_first {
            self.resend_first = false;
            self.burst = self.burst.saturating_sub(1);
            return Some(self.una);
        }
        if self.burst == 0 || self.held {
            return None;
        }
        let end = self.supply.end.min(MAX_SEQ - 1);
        let cwnd = self.window.cwnd;
        if self.in_recovery && self.sack() {
            if self.board.pipe(self.max) as f64 + 1.0 > cwnd {
                return None;
            }
            let lost = self.board.next_lost();
            let fresh = self.max < end.min(self.una + u64::from(self.config.max_window));
            if lost.is_some() || fresh {
                return lost.or(Some(self.max));
            }
            // RFC 6675, section 4, NextSeg: rule 3, and once in a recovery rule 4, for a loss at the end. If only the
            // receiver's window is full, the last segment is under way and its duplicate would be waste.
            return self.board.next_doubtful().or_else(|| {
                let tries = !self.rescued && self.max >= end;
                let last = if tries { self.board.last_missing(self.max) } else { None };
                self.rescued |= last.is_some();
                last
            });
        }
        if self.in_recovery && self.sack1() {
            if self.pipe >= cwnd as i64 {
                return None;
            }
            let fresh = self.max < end.min(self.una + u64::from(self.config.max_window));
            return self.board.next_lost().or(fresh.then_some(self.max));
        }
        while self.sack() && self.next < self.max && self.board.is_sacked(self.next) {
            self.next += 1;
        }
        let window =
            (cwnd as i64).saturating_add(self.inflation).clamp(1, i64::from(self.config.max_window)) as u64;
        if self.next >= end.min(self.una + window) {
            return None;
        }
        self.burst -= 1;
        Some(self.next)
    }

    #[inline]
    fn send(&mut self, now: Time, seq: u64) -> Output {
        let fresh = seq >= self.max;
        let nanos = now.as_nanos();
        if fresh {
            self.max = seq + 1;
            if self.timed.is_none() {
                self.timed = Some((seq, nanos));
            }
        } else {
            self.counters.resent += 1;
            if !self.sack1() && self.timed.is_some_and(|(timed, _)| timed == seq) {
                // RFC 6298, section 3: Karn's rule.
                self.timed = None;
            }
            if self.config.recovery.has_blocks() && self.in_recovery {
                self.board.resend(seq);
                if self.config.rack_retransmissions {
                    self.again.push_back((seq, nanos));
                }
                if self.recover.is_some_and(|recover| seq >= recover) {
                    self.resent_beyond.get_or_insert(self.max);
                }
            }
        }
        self.pipe += 1;
        if let Some(fine) = &mut self.fine {
            fine.on_send(now, seq - self.una);
        }
        if seq >= self.next {
            self.next = seq + 1;
        }
        if self.expires.is_none() {
            self.restart_timer(now);
        }
        let bytes = if seq + 1 == self.supply.end { self.supply.last } else { self.segment };
        let cwr = fresh && core::mem::take(&mut self.cwr);
        // RFC 3168, section 6.1.5: segments sent again are not ECN-capable.
        let ecn = if self.config.ecn && fresh { Ecn::Ect0 } else { Ecn::NotEct };
        let model = Segment { seq, sent: nanos, bytes, cwr }.model(self.header);
        self.counters.segments += 1;
        self.counters.bytes += Bytes(u64::from(model.ip_size));
        Output::Transmit(self.ends.segment(now, ecn, model))
    }

    /// The next segment, or the time of its next step.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Output {
        let nanos = now.as_nanos();
        if self.supply.next <= nanos && self.supply.change(nanos, self.max) {
            self.new_connection();
        }
        if self.expires.is_some_and(|expires| expires <= nanos) {
            self.held = false;
            if self.una < self.max {
                self.on_timeout(now);
            } else {
                self.expires = None;
            }
        }
        if let Some(seq) = self.choose() {
            return self.send(now, seq);
        }
        let wake = self.expires.unwrap_or(u64::MAX).min(self.supply.next);
        Output::Wait((wake < u64::MAX).then(|| Time::from_nanos(wake)))
    }
}
