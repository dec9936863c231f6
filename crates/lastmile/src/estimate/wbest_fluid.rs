//! WBest's fluid model: the available bandwidth by a train, before losses; [`wbest`](super::wbest) is the tool.
//!
//! **Generalised.** The paper's fluid model of the last hop (eq. 13) is R_p / (R_p + C - A) = R / C: a train
//! that comes at R_p to a busy queue shares the capacity C with C - A of other traffic and leaves at R. The paper
//! sets R_p = C; solved for A with the R_p at which the used gaps were *really* sent it is
//!
//! > A = C + R_p (1 - C / R)
//!
//! which is the paper's C (2 - C / R) at R_p = C, and needs no more than that the queue was busy. It is where a gap left
//! as planned ([`schedule`](crate::observe::schedule)), and also where a packet came before the one ahead of it had
//! left, which delays tell ([`train`]): so of a train with a hole and a burst only the hole is
//! lost. With sums over the gaps,
//! R_p = B / D_in and R = B / D_out, it is C - (C D_out - B) / D_in: the capacity less the bits of others that were
//! served between the first packet and the last, and those arrived while the train was sent. So on a FIFO the
//! estimate *is* the spare rate of the train's own window, without error; the difference to the long-run mean
//! is the traffic's own variation over 35 ms.
//!
//! **Left out by default.** The paper replaces each received gap that is shorter than its gap at sending by
//! the latter (section II.E, last-hop compression). Jitter makes some gaps shorter and others longer by as much,
//! and a rule that mends one half only is a bias: with receive stamps late by up to 20 us on an idle path, -0.3 % of
//! the capacity at 10 Mbit/s and -0.8 % at 30 Mbit/s, where sums have none. A band that the rule leaves alone (10 % of the
//! gap) removes the bias as long as jitter stays below it; sums need none, so they are the default. Compression
//! cancels within them, receive batches are cut at their ends ([`batch`](crate::observe::batch)), and the result is
//! capped at the capacity. [`WbestConfig::faithful`](super::wbest::WbestConfig::faithful) has the paper's rule.

use crate::observe::train;
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::Bytes;

/// The rates at which a train came to the path and left it, over the gaps that hold, in bit/s at the IP layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fluid {
    pub(super) input: f64,
    pub(super) output: f64,
}

impl Fluid {
    /// `None` where no gaps hold.
    pub(super) fn of(record: &StreamRecord) -> Option<Fluid> {
        let runs = train::runs_of(record);
        let sent: Span = runs.iter().map(|r| r.sent).sum();
        let received: Span = runs.iter().map(|r| r.received).sum();
        let bits = runs.iter().map(|r| r.bytes).sum::<Bytes>().bits() as f64 * 1e9;
        let rate = |time: Span| bits / time.as_nanos() as f64;
        let some = sent > Span::ZERO && received > Span::ZERO && bits > 0.0;
        some.then(|| Fluid { input: rate(sent), output: rate(received) })
    }

    /// The available bandwidth of a path of `capacity`: A = C + R_p (1 - C / R).
    pub(super) fn spare(&self, capacity: f64) -> f64 {
        capacity + self.input * (1.0 - capacity / self.output) // [WBest eq. 13]
    }
}

/// Available bandwidth by the original program's rule, in bit/s, from a train of packets of `size` bytes.
pub(super) fn faithful_spare(record: &StreamRecord, size: Bytes, capacity: f64) -> Option<f64> {
    let mut sum = 0.0;
    let mut gaps = 0.0;
    for i in 1..record.packets.len() {
        let (Some((sent, _)), Some(received)) = (record.send_gap(i), record.receive_gap(i)) else {
            continue;
        };
        let gap = received.max(sent); // [WBest section II.E]
        if gap > Span::ZERO {
            sum += gap.as_nanos() as f64;
            gaps += 1.0;
        }
    }
    let rate = (gaps > 0.0).then(|| size.bits() as f64 * 1e9 * gaps / sum)?;
    // [WBest eq. 6]
    Some(if rate >= capacity { rate } else { capacity * (2.0 - capacity / rate) })
}
