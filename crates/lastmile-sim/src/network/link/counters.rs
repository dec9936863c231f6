//! [`LinkCounters`]: totals of a link; [`Waits`]: packets that wait, and all waiting so far.

use lastmile::time::Span;
use lastmile::units::Bytes;

/// Totals of a link. Packets are conserved: `arrived = drops + lost + handed_off + policed + too_big +
/// delivered +` [`under_way`](super::Link::under_way). A lost packet still on its way counts as under way alone.
// In the order in which they are needed: the first ones for every packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LinkCounters {
    /// Bytes that waited, times the nanoseconds that each did; a link whose departures are computed counts a packet's wait when it
    /// enters.
    pub waited: u128,
    /// Packets offered to the link, lost and dropped ones included.
    pub arrived: u64,
    /// Packets that the queue accepted.
    pub packets: u64,
    /// IP bytes that the queue accepted.
    pub bytes: Bytes,
    /// Packets handed over at the far end.
    pub delivered: u64,
    /// The most bytes that ever waited.
    pub max_queue_bytes: Bytes,
    /// The most packets that ever waited.
    pub max_queue_packets: u32,
    /// Packets dropped by the queue, full or not: all congestion losses.
    pub drops: u64,
    /// Those of `drops` that the queue's discipline dropped with room left.
    pub early_drops: u64,
    /// Packets marked Congestion Experienced.
    pub marked: u64,
    /// Packets lost by the channel, before or after the transmitter.
    pub lost: u64,
    /// Packets dropped because their host had left for another link.
    pub handed_off: u64,
    /// Packets for which the policer had no tokens.
    pub policed: u64,
    /// Packets larger than the MTU.
    pub too_big: u64,
}

impl LinkCounters {
    /// Packets that it will never deliver, whatever the cause.
    pub(crate) fn not_delivered(&self) -> u64 {
        self.drops + self.lost + self.handed_off + self.policed + self.too_big
    }
}

/// Packets that wait in a queue at a moment, and all waiting up to then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Packets that wait.
    pub packets: u32,
    /// Their bytes on the wire, or of frames.
    pub bytes: Bytes,
    /// Bytes that waited, times the nanoseconds that each did.
    pub total: u128,
}

impl Waits {
    /// Counts a packet that waits since some time.
    pub(crate) fn add(&mut self, bytes: u32, since: u64, now: u64) {
        self.packets += 1;
        self.bytes += Bytes(u64::from(bytes));
        self.total += u128::from(bytes) * u128::from(now.saturating_sub(since));
    }

    /// The mean number of bytes that waited in the time `over`, at whose start this was `before`; `None` if that is no
    /// time.
    pub fn mean_bytes(&self, before: &Waits, over: Span) -> Option<f64> {
        let waited = self.total.saturating_sub(before.total) as f64;
        (over > Span::ZERO).then(|| waited / over.as_nanos() as f64)
    }
}
