//! Streams that an estimator asks to be sent.

use crate::node::Ecn;
use crate::report::Pattern;
use crate::time::Span;
use crate::units::{Bytes, Rate};

/// One packet of a stream that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProbePacket {
    /// When it leaves, counted from the stream's first packet. Equal offsets leave back to back.
    pub offset: Span,
    /// Its size at the IP layer.
    pub size: Bytes,
    /// Its ECN codepoint.
    pub ecn: Ecn,
}

/// A stream that is to be sent.
///
/// ```
/// use lastmile::{estimate::StreamPlan, time::Span, units::{Bytes, Rate}};
/// let train = StreamPlan::train(30, Bytes(1488), Rate::ip(10_000_000));
/// assert_eq!(train.packets[29].offset, Rate::ip(10_000_000).time_for(Bytes(1488) * 29));
/// let pairs = StreamPlan::pairs(30, Bytes(1488), Span::from_millis(10));
/// assert_eq!((pairs.bytes(), pairs.duration()), (Bytes(60 * 1488), Span::from_millis(290)));
/// assert_eq!(pairs.packets[2].offset, pairs.packets[3].offset);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StreamPlan {
    /// Its shape.
    pub pattern: Pattern,
    /// Its packets, offsets never falling.
    pub packets: Vec<ProbePacket>,
}

impl StreamPlan {
    /// No stream takes longer: 1,000 pairs a second apart fit, and 30 packets of 1488 B at 300 bit/s.
    pub const LONGEST: Span = Span::from_secs(20 * 60);
    /// No stream has more packets: reflectors take as many.
    pub const MOST: usize = 2_048;

    /// True if the stream stays within these limits. The rate of a train comes from stamps, and stamps may say anything.
    ///
    /// ```
    /// # use lastmile::{estimate::StreamPlan, units::{Bytes, Rate}};
    /// let at = |rate| StreamPlan::train(30, Bytes(1488), Rate::ip(rate)).bounded();
    /// assert!(at(300) && !at(280) && !at(0));
    /// ```
    pub fn bounded(&self) -> bool {
        self.packets.len() <= StreamPlan::MOST && self.duration() <= StreamPlan::LONGEST
    }

    /// `n` pairs of back-to-back packets of `size` bytes at the IP layer, one pair every `gap`.
    pub fn pairs(n: usize, size: Bytes, gap: Span) -> StreamPlan {
        let packet = |k: usize| ProbePacket { offset: gap * (k / 2) as i64, size, ecn: Ecn::NotEct };
        StreamPlan { pattern: Pattern::Pairs, packets: (0..2 * n).map(packet).collect() }
    }

    /// Pairs of back-to-back packets of `size` bytes at the IP layer, with these gaps from one pair to the next.
    ///
    /// ```
    /// # use lastmile::{estimate::StreamPlan, time::Span, units::Bytes};
    /// let plan = StreamPlan::pairs_apart([7, 12].map(Span::from_millis), Bytes(1488));
    /// assert_eq!((plan.packets.len(), plan.duration()), (6, Span::from_millis(19)));
    /// assert_eq!(plan.packets[3].offset, Span::from_millis(7));
    /// ```
    pub fn pairs_apart(gaps: impl IntoIterator<Item = Span>, size: Bytes) -> StreamPlan {
        let mut plan = StreamPlan::pairs(1, size, Span::ZERO);
        for gap in gaps {
            let offset = plan.duration() + gap;
            plan.packets.extend([ProbePacket { offset, size, ecn: Ecn::NotEct }; 2]);
        }
        plan
    }

    /// `n` packets of `size` bytes at `rate`, both at the IP layer.
    pub fn train(n: usize, size: Bytes, rate: Rate) -> StreamPlan {
        // The offset is computed from the bytes before it, so that rounding does not add up.
        let packet =
            |k: usize| ProbePacket { offset: rate.time_for(size * k as u64), size, ecn: Ecn::NotEct };
        StreamPlan { pattern: Pattern::Train, packets: (0..n).map(packet).collect() }
    }

    /// `n` packets of `size` bytes at the IP layer, back to back.
    pub fn burst(n: usize, size: Bytes) -> StreamPlan {
        let packet = ProbePacket { offset: Span::ZERO, size, ecn: Ecn::NotEct };
        StreamPlan { pattern: Pattern::Burst, packets: vec![packet; n] }
    }

    /// Packets of `size` bytes at the IP layer at times of their own, counted from the stream's start and never falling:
    /// chirps, pairs at Poisson times.
    ///
    /// ```
    /// # use lastmile::{estimate::StreamPlan, time::Span, units::Bytes};
    /// let plan = StreamPlan::uneven([0, 800, 1_400].map(Span::from_micros), Bytes(1000));
    /// assert_eq!((plan.bytes(), plan.duration()), (Bytes(3000), Span::from_micros(1_400)));
    /// ```
    pub fn uneven(offsets: impl IntoIterator<Item = Span>, size: Bytes) -> StreamPlan {
        let packet = |offset| ProbePacket { offset, size, ecn: Ecn::NotEct };
        StreamPlan { pattern: Pattern::Uneven, packets: offsets.into_iter().map(packet).collect() }
    }

    /// Bytes at the IP layer.
    pub fn bytes(&self) -> Bytes {
        self.packets.iter().map(|p| p.size).sum()
    }

    /// From the first packet to the last.
    pub fn duration(&self) -> Span {
        self.packets.last().map_or(Span::ZERO, |p| p.offset)
    }
}
