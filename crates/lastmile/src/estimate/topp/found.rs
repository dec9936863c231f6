//! Both numbers of [`topp`](super), and what contradicts them.

use super::Topp;
use super::line::{CLEAR, ORIGIN, segments};
use crate::estimate::wbest_capacity::{CONFIDENCE, too_wide, warn_too_wide};
use crate::estimate::{
    Estimate, Interval, IntervalMethod, Quantity, TruthKind, Value, Warning, WarningCode, bits_per_second,
};
use crate::observe::stats;

/// The part of its points' variance that a line must explain.
const FITS: f64 = 0.5;
/// Pairs show the line's capacity within these shares of theirs: below them it may be a fair queue's, or that of no link, above them another link's.
const SAME: [f64; 3] = [0.95, 0.87, 1.15];

impl Topp {
    /// Both numbers, or none where there is no line.
    pub(super) fn found(&self, more: &[Warning]) -> Vec<Estimate> {
        let faithful = self.config.faithful;
        let Some((k, mut line, second)) = segments(&self.points, faithful) else { return Vec::new() };
        let used = &self.points[k..k + line.n];
        let ratios: Vec<f64> = used.iter().map(|p| p.ratio).collect();
        if stats::median(&ratios).is_none_or(|ratio| ratio < CLEAR) {
            return Vec::new();
        }
        let [mut of_capacity, mut of_available] = line.intervals(CONFIDENCE);
        let mut said = self.base.said(more.iter().cloned());
        let mut warn = |code, text: String| said.push(Warning { code, text });
        if let Some([_, left]) = second.as_ref().and_then(|second| second.behind(&line)) {
            let left = bits_per_second(left);
            warn(WarningCode::TightLink, format!("the line breaks twice: another link has {left} left"));
        }
        let (mut in_turn, mut told) = (None, false);
        if let Some((shown, stream)) = self.pairs.filter(|_| !faithful) {
            if let Some((same, interval)) = line.told(used, shown) {
                told = true;
                (line, of_available) = (same, interval);
                of_capacity = [of_capacity[0].min(line.link()[0]), of_capacity[1].max(line.link()[0])];
            }
            let ([capacity, available], pairs) = (line.link(), bits_per_second(shown));
            if capacity > SAME[2] * shown {
                let text = format!("packet pairs show {pairs}: the link that is busy is not the narrow one");
                warn(WarningCode::TightLink, text);
            } else if capacity < SAME[0] * shown && available > ORIGIN * capacity {
                let text = format!(
                    "packet pairs show {pairs}, and trains come at one rate however fast they go: a queue serves flows in turn, or a token bucket is empty"
                );
                warn(WarningCode::FairQueue, text);
                in_turn = Some((pairs, stream));
            } else if capacity < SAME[1] * shown {
                warn(WarningCode::PoorFit, format!("packet pairs show {pairs}, and the line's slope less"));
            }
        }
        let [capacity, available] = line.link();
        if !faithful {
            if line.squares[1] > (1.0 - FITS) * line.squares[0] {
                warn(WarningCode::PoorFit, "the line explains less than half of how the rates differ".into());
            }
            if self.points.first().is_some_and(|p| available < 0.9 * p.offered) {
                let text =
                    "the available bandwidth is extrapolated: all offered rates were slowed (min_rate)";
                warn(WarningCode::PoorFit, text.into());
            }
            if let Some((doubt, least)) = self.guard.doubt(capacity, available) {
                warn(doubt.code, doubt.text);
                of_available[0] = of_available[0].min(least);
            }
        }
        let packets = if faithful { 2 } else { self.config.train_length as u64 };
        let left = Estimate {
            quantity: Quantity::AvailableBandwidth,
            value: Value::Is(bits_per_second(available)),
            interval: Some(interval(of_available)),
            next: None,
            truth_kind: TruthKind::Queue,
            burst: Some(self.config.packet_size * packets),
            packet_size: Some(self.config.packet_size),
            streams: used.iter().map(|p| p.stream).collect(),
            warnings: said,
        };
        let of_line = Estimate {
            quantity: Quantity::Capacity,
            value: Value::Is(bits_per_second(capacity)),
            // Pairs told it, and a line that hardly says more takes nothing from that.
            interval: Some(interval(of_capacity)).filter(|interval| !told || !too_wide(interval, capacity)),
            ..left.clone()
        };
        let narrow = in_turn.map(|(pairs, stream)| Estimate {
            value: Value::Is(pairs),
            interval: None,
            burst: Some(self.config.packet_size * 2),
            streams: vec![stream],
            ..of_line.clone()
        });
        let mut found = vec![narrow.unwrap_or(of_line), left];
        warn_too_wide(&mut found, self.pairs.map_or(capacity, |(shown, _)| shown));
        found
    }
}

fn interval([low, high]: [f64; 2]) -> Interval {
    Interval {
        low: bits_per_second(low),
        high: bits_per_second(high.min(1e18)),
        confidence: CONFIDENCE,
        method: IntervalMethod::Regression,
    }
}
