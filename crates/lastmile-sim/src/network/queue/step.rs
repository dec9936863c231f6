//! A step in the marking probability, as L4S queues have it for their own traffic (RFC 9331, section 5.2;
//! RFC 9332, section 4.2 and appendix A): beyond a threshold everything is marked, below nothing.

use lastmile::node::Ecn;
use lastmile::options::{Kind, OptionType, Scalar};
use lastmile::rng::Stream;
use lastmile::time::Span;
use lastmile::units::Rate;

use super::QueueLimit;
use super::{Fate, Fifo, Law, Parameters, Single, Verdict, Waiting};
use crate::network::config_error::{ConfigError, require};

/// Beyond what a packet is marked, when it leaves the queue.
#[derive(Clone, Debug, PartialEq)]
pub enum StepThreshold {
    /// It waited longer than this.
    Sojourn(Span),
    /// More than this stays behind it.
    Occupancy(QueueLimit),
}

impl OptionType for StepThreshold {
    const KIND: Kind = Kind::Limit;
    type Bound = String;

    fn read(given: &Scalar) -> Result<StepThreshold, String> {
        let text = given.to_string();
        let read = match text.split_once(' ') {
            Some(("sojourn", span)) => span.parse().ok().map(StepThreshold::Sojourn),
            Some(("occupancy", limit)) => limit.parse().ok().map(StepThreshold::Occupancy),
            _ => None,
        };
        read.ok_or_else(|| format!("must be {}, not {given}", StepThreshold::any()))
    }

    fn show(&self) -> Option<Scalar> {
        Some(Scalar::Text(match self {
            StepThreshold::Sojourn(span) => format!("sojourn {span}"),
            StepThreshold::Occupancy(limit) => format!("occupancy {limit}"),
        }))
    }

    fn bound(&self) -> Option<&String> {
        None
    }

    fn any() -> String {
        r#"`{ sojourn = "1 ms" }` or `{ occupancy = "5 packets" }`"#.into()
    }
}

lastmile::options! {
    /// A step-marking queue. Packets that cannot be marked are dropped only when the queue is full.
    pub struct Step {
        /// Wait of a packet, or queue behind it, beyond which it is marked; below what the queue holds
        threshold: StepThreshold = StepThreshold::Sojourn(Span::from_millis(1)), "RFC 9332: an example";
        /// Mark ECT(0) as well, as DCTCP's switches do; L4S marks ECT(1) alone
        classic: bool = false, "RFC 9331";
    }
}

impl Parameters for Step {
    type Queue = Single<Step>;
    const KIND: &'static str = "step";
    const SOURCE: &'static str = "RFC 9332";

    fn queue(&self, _: Option<Rate>, _: Stream) -> Single<Step> {
        Single::new(self.clone())
    }

    fn check_limit(&self, limit: QueueLimit) -> Result<(), ConfigError> {
        let reason = format!("not below what the queue holds, {limit}: nothing would be marked");
        let never = |threshold: QueueLimit| threshold == limit || threshold.exceeds(limit);
        let reached = !matches!(self.threshold, StepThreshold::Occupancy(threshold) if never(threshold));
        require(reached, "threshold", reason)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let past = matches!(self.threshold, StepThreshold::Sojourn(span) if span < Span::ZERO);
        require(!past, "threshold", "a time cannot be negative")
    }
}

impl Step {
    fn judge(&self, now: u64, packet: &Waiting, behind: &Fifo) -> Verdict {
        let beyond = match self.threshold {
            StepThreshold::Sojourn(span) => now.saturating_sub(packet.since) > span.as_nanos().max(0) as u64,
            StepThreshold::Occupancy(QueueLimit::Packets(packets)) => behind.len() > packets as usize,
            StepThreshold::Occupancy(QueueLimit::Bytes(bytes)) => behind.bytes() > bytes.0,
        };
        match packet.ecn {
            Ecn::Ect1 if beyond => Verdict::Mark,
            Ecn::Ect0 if beyond && self.classic => Verdict::Mark,
            _ => Verdict::Accept,
        }
    }
}

impl Law for Step {
    fn dequeue(&mut self, now: u64, queue: &mut Fifo, fate: &mut impl Fate) -> Option<Waiting> {
        let mut packet = queue.pop()?;
        if self.judge(now, &packet, queue) == Verdict::Mark {
            fate.mark(&mut packet);
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Noted;
    use super::*;

    #[test]
    fn marks_ect1_beyond_the_step_and_nothing_else() {
        let mut behind = Fifo::default();
        let mut noted = Noted::default();
        let mut at = |step: &Step, behind: &Fifo, since, ecn| {
            step.judge(2_000_000, &noted.packet(1, since, 100, ecn), behind)
        };
        let step = Step::default();
        assert_eq!(at(&step, &behind, 999_999, Ecn::Ect1), Verdict::Mark);
        assert_eq!(at(&step, &behind, 1_000_000, Ecn::Ect1), Verdict::Accept);
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ce] {
            assert_eq!(at(&step, &behind, 0, ecn), Verdict::Accept);
        }
        let occupancy = |limit| Step { threshold: StepThreshold::Occupancy(limit), classic: true };
        let mut others = Noted::default();
        (0..3).for_each(|_| behind.push(others.packet(1, 0, 100, Ecn::NotEct)));
        assert_eq!(at(&occupancy(QueueLimit::Packets(2)), &behind, 0, Ecn::Ect0), Verdict::Mark);
        assert_eq!(at(&occupancy(QueueLimit::Packets(3)), &behind, 0, Ecn::Ect0), Verdict::Accept);
        let bytes = |n| QueueLimit::Bytes(lastmile::units::Bytes(n));
        assert_eq!(at(&occupancy(bytes(299)), &behind, 0, Ecn::Ect1), Verdict::Mark);
        assert_eq!(at(&occupancy(bytes(300)), &behind, 0, Ecn::Ect1), Verdict::Accept);
    }
}
