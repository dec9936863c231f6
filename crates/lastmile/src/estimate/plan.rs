//! Streams that an estimator asks to be sent.

use crate::node::Ecn;
use crate::report::Pattern;
use crate::time::Span;
use crate::units::{Bytes, Layer, Rate};

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

    /// Pairs of packets of `size` bytes at the IP layer, the two of a pair `within` apart, with these times from the second packet of a pair to the next
    /// pair.
    ///
    /// ```
    /// # use lastmile::{estimate::StreamPlan, time::Span, units::Bytes};
    /// let plan = StreamPlan::spread_pairs([Span::from_millis(7)], Span::from_millis(1), Bytes(1500));
    /// let offsets: Vec<i64> = plan.packets.iter().map(|p| p.offset.as_nanos() / 1_000_000).collect();
    /// assert_eq!(offsets, [0, 1, 8, 9]);
    /// ```
    pub fn spread_pairs(gaps: impl IntoIterator<Item = Span>, within: Span, size: Bytes) -> StreamPlan {
        let mut offsets = vec![Span::ZERO, within];
        for gap in gaps {
            let first = offsets[offsets.len() - 1] + gap;
            offsets.extend([first, first + within]);
        }
        StreamPlan::uneven(offsets, size)
    }

    /// A chirp of packets of `size` bytes: gaps that begin at those of the rate `low`, each `gamma` times shorter than the one before, as long as
    /// their rate is below `high`; [`MOST`](Self::MOST) packets at most. (Ribeiro et al., "pathChirp: efficient available bandwidth estimation for
    /// network paths", PAM 2003.)
    ///
    /// ```
    /// # use lastmile::{estimate::StreamPlan, units::{Bytes, Rate}};
    /// // 1000 B at 1, 2 and 4 Mbit/s: 8, 4 and 2 ms.
    /// let plan = StreamPlan::chirp(Bytes(1000), Rate::ip(1_000_000), Rate::ip(8_000_000), 2.0);
    /// let offsets: Vec<i64> = plan.packets.iter().map(|p| p.offset.as_nanos() / 1_000_000).collect();
    /// assert_eq!(offsets, [0, 8, 12, 14]);
    /// ```
    pub fn chirp(size: Bytes, low: Rate, high: Rate, gamma: f64) -> StreamPlan {
        let (mut offsets, mut gap, last) = (vec![Span::ZERO], low.time_for(size), high.time_for(size));
        while gap > last && offsets.len() < StreamPlan::MOST {
            offsets.push(offsets[offsets.len() - 1] + gap);
            gap = gap.scaled(1.0 / gamma);
        }
        StreamPlan::uneven(offsets, size)
    }

    /// The rate at which it is to leave, x(t): its bytes behind the first packet over its duration; `None` where all leave at once.
    ///
    /// ```
    /// # use lastmile::{estimate::StreamPlan, units::{Bytes, Rate}};
    /// let train = StreamPlan::train(31, Bytes(1500), Rate::ip(5_000_000));
    /// assert_eq!((train.rate(), StreamPlan::burst(31, Bytes(1500)).rate()), (Some(Rate::ip(5_000_000)), None));
    /// ```
    pub fn rate(&self) -> Option<Rate> {
        let bytes = self.packets.iter().skip(1).map(|p| p.size).sum();
        (self.duration() > Span::ZERO).then(|| Rate::over(bytes, self.duration(), Layer::Ip))?
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
