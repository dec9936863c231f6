//! [`RtoTimer`]: the retransmission timeout (RFC 6298), in exact time or, with a clock tick, in BSD's fixed-point
//! arithmetic of whole ticks (Jacobson and Karels, "Congestion avoidance and control", appendix A), which is also
//! ns-2's.

use lastmile::time::Span;

use super::TcpConfig;

#[derive(Clone, Debug)]
pub(super) struct RtoTimer {
    tick: i64,
    min: i64,
    max: i64,
    initial: i64,
    estimate: Option<Estimate>,
    backoff: u32,
}

#[derive(Clone, Copy, Debug)]
enum Estimate {
    /// SRTT and RTTVAR in nanoseconds.
    Exact { srtt: i64, rttvar: i64 },
    /// SRTT in eighths of a tick and RTTVAR in quarters.
    Ticks { srtt: i64, rttvar: i64 },
}

impl RtoTimer {
    pub(super) fn new(config: &TcpConfig) -> RtoTimer {
        RtoTimer {
            tick: config.tick.as_nanos().max(0),
            min: config.min_rto.as_nanos().max(1),
            max: config.max_rto.as_nanos().max(1),
            initial: config.initial_rto.as_nanos().max(1),
            estimate: None,
            backoff: 0,
        }
    }

    /// A round-trip time of a segment that was sent once, at `sent` (RFC 6298, section 2; alpha = 1/8, beta = 1/4).
    pub(super) fn sample(&mut self, rtt: Span, sent: u64) {
        let rtt = rtt.as_nanos().max(0);
        self.backoff = 0;
        if self.tick > 0 {
            // The clock that both ends of the sample are read from ticks at multiples.
            let ticks = ((rtt + (sent % self.tick as u64) as i64) / self.tick).max(1);
            self.estimate = Some(match self.estimate {
                Some(Estimate::Ticks { srtt, rttvar }) => {
                    let delta = ticks - (srtt >> 3);
                    let srtt = (srtt + delta).max(1);
                    let rttvar = (rttvar + delta.abs() - (rttvar >> 2)).max(1);
                    Estimate::Ticks { srtt, rttvar }
                }
                _ => Estimate::Ticks { srtt: ticks << 3, rttvar: ticks << 1 },
            });
        } else {
            self.estimate = Some(match self.estimate {
                Some(Estimate::Exact { srtt, rttvar }) => {
                    let delta = rtt - srtt;
                    Estimate::Exact { srtt: srtt + delta / 8, rttvar: rttvar + (delta.abs() - rttvar) / 4 }
                }
                _ => Estimate::Exact { srtt: rtt, rttvar: rtt / 2 },
            });
        }
    }

    /// The timer expired (RFC 6298, rule 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// Ends the backing off without a sample.
    pub(super) fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// The timeout (RFC 6298, rules 2.3 to 2.5).
    #[inline]
    pub(super) fn timeout(&self) -> Span {
        let base = match self.estimate {
            None => self.initial,
            Some(Estimate::Exact { srtt, rttvar }) => srtt + 4 * rttvar,
            Some(Estimate::Ticks { srtt, rttvar }) => (((rttvar << 3) + srtt) >> 3).saturating_mul(self.tick),
        };
        let backed_off = base.max(self.min).saturating_mul(1 << self.backoff);
        // A timer of whole ticks that is set for one may expire at once.
        Span::from_nanos(backed_off.min(self.max).max(self.tick.saturating_mul(2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Span {
        Span::from_millis(ms)
    }

    #[test]
    fn a_coarse_clock_counts_ticks() {
        let config = TcpConfig { tick: ms(100), min_rto: ms(200), ..TcpConfig::default() };
        let mut timer = RtoTimer::new(&config);
        // Sent 40 ms into a tick: 70 ms pass one tick, 50 ms none, which counts as one.
        timer.sample(ms(70), 40_000_000);
        assert_eq!(timer.timeout(), ms(300)); // 1 tick + 4 * half a tick
        timer.sample(ms(50), 40_000_000);
        assert_eq!(timer.timeout(), ms(300)); // RTTVAR 2/4 - (2 >> 2)/4 = 2/4: truncation holds it up
    }
}
