//! Reactions of a [`Sender`] to losses: duplicate ACKs, recovery and timeouts.

use lastmile::control::window::Congestion;
use lastmile::time::Time;

use super::Sender;
use crate::network::tcp::Recovery;
use crate::network::tcp::scoreboard::DUP_THRESH;

impl Sender {
    /// RFC 6582, section 3.2, step 3; RFC 6675, section 5.
    pub(super) fn on_partial_ack(&mut self, now: Time, newly: u64) {
        if self.config.recovery == Recovery::NewReno {
            // Deflated by what was acknowledged, less the segment that goes in its place, until recovery ends.
            self.inflation -= newly as i64 - 1;
            if self.config.deflation_stays && self.inflation < 1 {
                let deflated = self.window.cwnd + (self.inflation - 1) as f64;
                self.window.cwnd = self.window.cwnd.min(deflated.max(1.0));
                self.inflation = 1;
            }
            self.burst = self.config.recovery_burst.unwrap_or(u32::MAX).saturating_add(1);
            self.resend_first = true;
            if self.first_partial {
                self.restart_timer(now);
            }
            self.first_partial = false;
        } else if self.sack1() {
            // The segment that was sent again, and the one whose ACK this is.
            self.pipe -= 2;
            self.restart_timer(now);
            self.rto.end_backoff();
        } else {
            // The segment missing right above a partial ACK is lost, whatever the blocks say, unless it left later.
            if self.una < self.older {
                self.board.lose_first();
            }
            self.restart_timer(now);
        }
    }

    pub(super) fn on_duplicate(&mut self, now: Time) {
        self.dup_acks += 1;
        let overdue = self.overdue(now);
        if self.in_recovery && !overdue {
            self.pipe -= 1;
            if !self.config.recovery.has_blocks() {
                self.inflation += 1;
                if self.config.recovery == Recovery::NewReno {
                    self.burst = self.config.recovery_burst.unwrap_or(u32::MAX);
                }
            }
            return;
        }
        let enough =
            self.dup_acks as usize == DUP_THRESH || (self.sack() && self.board.first_lost()) || overdue;
        // RFC 6582, section 3.2, step 2: more than all that was under way is acknowledged; duplicate ACKs alone
        // cannot tell a loss from what was sent twice. SACK blocks can: RFC 6675, section 5.1, asks for all of it.
        let allowed =
            self.recover.is_none_or(|recover| self.una > recover || (self.sack() && self.una == recover))
                || self.fine.as_ref().is_some_and(|fine| !fine.after_timeout);
        if enough && allowed {
            self.enter_recovery(now);
        } else if self.dup_acks as usize >= DUP_THRESH {
            self.inflation = 0;
        } else if self.config.limited_transmit {
            // RFC 3042.
            self.inflation = i64::from(self.dup_acks);
        }
    }

    pub(super) fn enter_recovery(&mut self, now: Time) {
        self.counters.fast_retransmits += 1;
        // Vegas reduces for what left since it last did (section 3.1), the others for what is beyond recover.
        let left = self.fine.as_ref().is_none_or(|fine| fine.departure(0) > self.reduced);
        if self.una >= self.marked_until && left {
            self.reduce(Congestion::DupAcks, now);
        }
        if let Some(fine) = &mut self.fine {
            fine.on_resend((self.max - self.una).min(2) as u8);
        }
        (self.recover, self.in_recovery, self.first_partial) = (Some(self.max), true, true);
        self.rescued = false;
        self.inflation = if self.config.recovery.has_blocks() { 0 } else { DUP_THRESH as i64 };
        if self.sack1() {
            // The segment that is sent again takes the place of one of the three; the rest waits for the next ACK.
            (self.pipe, self.burst) = ((self.max - self.una) as i64 - DUP_THRESH as i64 - 1, 1);
        }
        // The last recovery may have sent it again already (RFC 6675, section 4, NextSeg: once).
        let already = self.sack() && self.board.first_resent();
        let beyond = self.resent_beyond.take();
        self.older = if already { beyond.unwrap_or(self.max) } else { self.max };
        self.resend_first = !already;
        self.board.lose_first();
        self.timed = None;
        self.expires = Some(now.as_nanos().saturating_add(self.rto.timeout().as_nanos() as u64));
    }

    /// RFC 8985, section 6.2, step 5, for what was sent again: on a path that keeps the order it is lost when a segment
    /// that left after it has arrived.
    pub(super) fn lose_again(&mut self, now: Time, next: u64, echo: u64) {
        self.latest = self.latest.max(echo);
        while let Some(&(seq, sent)) = self.again.front()
            && sent < self.latest
        {
            self.again.pop_front();
            let lost = seq >= next && self.board.lose_again(seq);
            if lost && self.in_recovery && sent >= self.reduced {
                // RFC 5681, section 4.3: the loss of what was sent again is another sign of congestion.
                self.reduce(Congestion::DupAcks, now);
            }
        }
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        self.counters.timeouts += 1;
        let again = self.timed_out == Some(self.una);
        if !(again && self.config.hold_ssthresh) {
            self.reduce(Congestion::Timeout, now);
        }
        self.timed_out = Some(self.una);
        if let Some(fine) = &mut self.fine {
            fine.after_timeout = true;
        }
        self.rto.back_off();
        (self.recover, self.in_recovery) = (Some(self.max), false);
        (self.dup_acks, self.inflation, self.resend_first) = (0, 0, false);
        self.timed = None;
        if self.sack1() {
            self.board.clear();
            self.after_timeout = true;
        } else {
            self.board.forget();
        }
        self.again.clear();
        self.burst = u32::MAX;
        // Everything that is not known to have arrived goes again.
        self.next = self.una;
        self.expires = Some(now.as_nanos().saturating_add(self.rto.timeout().as_nanos() as u64));
    }
}
