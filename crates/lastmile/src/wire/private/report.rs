//! Report: when the packets of a stream arrived, or left, page by page.
//!
//! A request is as large as the page it asks for, so the reply, written over it, is no larger. Request and reply
//! are idempotent: page `n` of a stream, asked for with the same size, holds the same indices.
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                   'LSM'                       |   Layout = 1  |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |R|D|A|C|Q|E|Rsv|    Status     |             Page              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                           Stream id                           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                            Token (16)                         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |            Pages              |         First index           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |            Entries            |           Reserved            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        Resolution, ns                         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |            Base time, ns of the reflector's clock (8)         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                Entries of 8 octets: offset (6)                |
//! |                               |0 0 0 0|D|L|ECN|   Hop limit   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! First line of flags: R reply, D departures (else arrivals), A acknowledge, that is release the stream, C the
//! reflector's clock was stepped while the stream ran, Q its packets were held up in the queue of the reflector's own
//! interface, E (in a request) the sender has no more to ask: the session may end. Flags of an entry: D duplicated, L late. All from Pages on is zero in a request.

use super::{PREFIX, Token, check_prefix};
use crate::wire::{TlvType, TlvValue, WireError, be, be16, be32, be64, put};

/// Octets of a Report value before the entries.
pub const REPORT_HEADER_LEN: usize = 48;
/// Octets of an entry.
pub const REPORT_ENTRY_LEN: usize = 8;
/// Octets of the smallest Report value: no entry, enough for an acknowledgement.
pub const MIN_REPORT_LEN: usize = REPORT_HEADER_LEN;

const REPLY: u8 = 0x80;
const DEPARTURES: u8 = 0x40;
const ACKNOWLEDGE: u8 = 0x20;
const CLOCK_STEPPED: u8 = 0x10;
const QUEUED: u8 = 0x08;
const END: u8 = 0x04;
/// 48 bits of ones: not seen.
const NOT_SEEN: u64 = (1 << 48) - 1;
const LATE: u8 = 0x04;
const DUPLICATED: u8 = 0x08;

/// Entries in a Report value of `value_len` octets.
///
/// ```
/// use lastmile::wire::private::page_capacity;
/// // 1472 bytes of UDP payload: 44 of base packet, 4 of TLV header, 48 of report header, 172 entries.
/// assert_eq!(page_capacity(1472 - 44 - 4), 172);
/// ```
#[must_use]
pub const fn page_capacity(value_len: usize) -> usize {
    value_len.saturating_sub(REPORT_HEADER_LEN) / REPORT_ENTRY_LEN
}

/// Kind of times that a report is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportKind {
    /// Arrivals of a stream at the reflector.
    Arrivals,
    /// Departures of a reverse stream from the reflector.
    Departures,
}

/// Outcome of a request for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReportStatus {
    /// The page holds all known times.
    Ok = 0,
    /// The reflector has seen nothing of this stream, or does not accept the token.
    UnknownStream = 1,
    /// The lease ended, and the stream with it.
    Expired = 2,
    /// The peer's credit does not pay for it.
    CreditExhausted = 3,
    /// The reflector has no room for another stream; ask later.
    Busy = 4,
    /// The stream is still arriving; ask later.
    Running = 5,
}

impl ReportStatus {
    fn from_wire(octet: u8) -> Result<Self, WireError> {
        let all =
            [Self::Ok, Self::UnknownStream, Self::Expired, Self::CreditExhausted, Self::Busy, Self::Running];
        let value = u64::from(octet);
        all.get(usize::from(octet))
            .copied()
            .ok_or(WireError::Value { what: "the status of a Report TLV", value })
    }
}

/// Request for a page, padded with zeros to the size of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReportRequest {
    /// The reflector's address-proof token.
    pub token: Token,
    /// The stream.
    pub stream: u32,
    /// Page, from 0; it begins at index `page * page_capacity(value_len)`.
    pub page: u16,
    /// Arrivals or departures.
    pub kind: ReportKind,
    /// The sender has all it wants: the reflector may forget the stream after this reply.
    pub acknowledge: bool,
    /// The sender has all it wants of the session: the reflector may end it.
    pub end: bool,
    /// Octets of the value, at least [`MIN_REPORT_LEN`]; the reply has the same.
    pub value_len: usize,
}

impl ReportRequest {
    /// The indices that the page holds, of a stream of `count` packets; empty past the end.
    #[must_use]
    pub fn indices(&self, count: u16) -> std::ops::Range<u16> {
        let capacity = page_capacity(self.value_len);
        let first = usize::from(self.page).saturating_mul(capacity).min(usize::from(count));
        let end = (first + capacity).min(usize::from(count));
        first as u16..end as u16
    }

    /// Pages of this size that a stream of `count` packets needs; 0 where no entry fits.
    #[must_use]
    pub fn pages(&self, count: u16) -> u16 {
        usize::from(count).checked_div(page_capacity(self.value_len)).map_or(0, |full| {
            let partial = usize::from(count) > full * page_capacity(self.value_len);
            (full + usize::from(partial)) as u16
        })
    }
}

fn header(value: &[u8], reply: bool) -> Result<&[u8; REPORT_HEADER_LEN], WireError> {
    check_prefix(TlvType::REPORT, value)?;
    let malformed = WireError::TlvLength { kind: TlvType::REPORT.0, length: value.len() };
    let p: &[u8; REPORT_HEADER_LEN] = value.first_chunk().ok_or(malformed)?;
    let flags = p[4];
    if (flags & REPLY != 0) != reply {
        return Err(WireError::Value { what: "the direction of a Report TLV", value: u64::from(flags) });
    }
    Ok(p)
}

fn kind_of(flags: u8) -> ReportKind {
    if flags & DEPARTURES == 0 { ReportKind::Arrivals } else { ReportKind::Departures }
}

fn target(out: &mut [u8]) -> Result<&mut [u8; REPORT_HEADER_LEN], WireError> {
    let have = out.len();
    out.first_chunk_mut().ok_or(WireError::Buffer { what: "a Report TLV", need: REPORT_HEADER_LEN, have })
}

impl TlvValue for ReportRequest {
    const KIND: TlvType = TlvType::REPORT;

    fn value_len(&self) -> usize {
        self.value_len.max(MIN_REPORT_LEN)
    }

    fn encode_value(&self, out: &mut [u8]) -> Result<(), WireError> {
        out.fill(0);
        let p = target(out)?;
        let departures = if self.kind == ReportKind::Departures { DEPARTURES } else { 0 };
        let acknowledge = if self.acknowledge { ACKNOWLEDGE } else { 0 };
        put(p, 0, &PREFIX);
        let end = if self.end { END } else { 0 };
        put(p, 4, &[departures | acknowledge | end, 0]);
        put(p, 6, &self.page.to_be_bytes());
        put(p, 8, &self.stream.to_be_bytes());
        put(p, 12, &self.token);
        Ok(())
    }

    fn decode_value(value: &[u8]) -> Result<Self, WireError> {
        let p = header(value, false)?;
        Ok(Self {
            token: be(p, 12),
            stream: be32(p, 8),
            page: be16(p, 6),
            kind: kind_of(p[4]),
            acknowledge: p[4] & ACKNOWLEDGE != 0,
            end: p[4] & END != 0,
            value_len: value.len(),
        })
    }
}

/// One packet of a stream, as the reflector saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Arrival {
    /// Nanoseconds after the report's base time, below 2^48 - 1 (78 hours; more is capped).
    pub offset_ns: u64,
    /// ECN codepoint, 0 to 3.
    pub ecn: u8,
    /// Arrived after the reflector had taken the stream to be over.
    pub late: bool,
    /// Arrived more than once; the first arrival is the one told of.
    pub duplicated: bool,
    /// TTL or Hop Limit, 0 if unknown.
    pub hop_limit: u8,
}

impl Arrival {
    fn encode(entry: Option<Self>) -> [u8; REPORT_ENTRY_LEN] {
        let Some(arrival) = entry else { return (NOT_SEEN << 16).to_be_bytes() };
        let late = if arrival.late { LATE } else { 0 };
        let duplicated = if arrival.duplicated { DUPLICATED } else { 0 };
        let bits = u64::from(arrival.ecn & 3 | late | duplicated) << 8 | u64::from(arrival.hop_limit);
        (arrival.offset_ns.min(NOT_SEEN - 1) << 16 | bits).to_be_bytes()
    }

    fn decode(entry: [u8; REPORT_ENTRY_LEN]) -> Option<Self> {
        let bits = u64::from_be_bytes(entry);
        let flags = (bits >> 8) as u8;
        (bits >> 16 != NOT_SEEN).then_some(Self {
            offset_ns: bits >> 16,
            ecn: flags & 3,
            late: flags & LATE != 0,
            duplicated: flags & DUPLICATED != 0,
            hop_limit: bits as u8,
        })
    }
}

/// A reply without its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReportHeader {
    /// Outcome of the request; there are entries only with [`ReportStatus::Ok`].
    pub status: ReportStatus,
    /// Arrivals or departures, as asked for.
    pub kind: ReportKind,
    /// The reflector's clock was stepped while the stream ran: its times cannot be believed.
    pub clock_stepped: bool,
    /// The stream's packets were held up in the queue of the reflector's own interface.
    pub queued: bool,
    /// The stream.
    pub stream: u32,
    /// Page, from 0.
    pub page: u16,
    /// Pages of this size in the stream.
    pub pages: u16,
    /// Stream index of the first entry.
    pub first_index: u16,
    /// Resolution of the times, ns.
    pub resolution_ns: u32,
    /// Zero of the entries' offsets, ns of the reflector's clock.
    pub base_ns: u64,
}

/// Writes a reply over the value of its request, and returns the number of entries written.
///
/// Takes as many of `entries` as fit; the rest of the value becomes zero.
///
/// # Errors
/// [`WireError::Buffer`] where `value` is shorter than [`MIN_REPORT_LEN`].
pub fn write_report(
    value: &mut [u8],
    head: &ReportHeader,
    entries: impl IntoIterator<Item = Option<Arrival>>,
) -> Result<u16, WireError> {
    target(value)?;
    let (front, slots) = value.split_at_mut(REPORT_HEADER_LEN);
    slots.fill(0);
    let mut written = 0u16;
    // The count is 16 bits, and so is the packet: 65535 octets hold 8185 entries.
    for (slot, entry) in slots.chunks_exact_mut(REPORT_ENTRY_LEN).take(usize::from(u16::MAX)).zip(entries) {
        slot.copy_from_slice(&Arrival::encode(entry));
        written += 1;
    }
    let p = target(front)?;
    let departures = if head.kind == ReportKind::Departures { DEPARTURES } else { 0 };
    let acknowledge = p[4] & ACKNOWLEDGE;
    let stepped = if head.clock_stepped { CLOCK_STEPPED } else { 0 };
    put(p, 0, &PREFIX);
    let queued = if head.queued { QUEUED } else { 0 };
    put(p, 4, &[REPLY | departures | acknowledge | stepped | queued, head.status as u8]);
    put(p, 6, &head.page.to_be_bytes());
    put(p, 8, &head.stream.to_be_bytes());
    put(p, 28, &head.pages.to_be_bytes());
    put(p, 30, &head.first_index.to_be_bytes());
    put(p, 32, &written.to_be_bytes());
    put(p, 34, &[0, 0]);
    put(p, 36, &head.resolution_ns.to_be_bytes());
    put(p, 40, &head.base_ns.to_be_bytes());
    Ok(written)
}

/// A reply, borrowed.
///
/// ```
/// use lastmile::wire::private::*;
/// let head = ReportHeader {
///     status: ReportStatus::Ok,
///     kind: ReportKind::Arrivals,
///     clock_stepped: false,
///     queued: false,
///     stream: 1,
///     page: 0,
///     pages: 1,
///     first_index: 0,
///     resolution_ns: 1,
///     base_ns: 1_000,
/// };
/// let seen = Arrival { offset_ns: 5, ecn: 3, late: false, duplicated: false, hop_limit: 60 };
/// let mut value = [0; REPORT_HEADER_LEN + 2 * REPORT_ENTRY_LEN];
/// assert_eq!(write_report(&mut value, &head, [Some(seen), None])?, 2);
/// let page = ReportPage::parse(&value)?;
/// assert_eq!(page.head, head);
/// assert_eq!(page.entries().collect::<Vec<_>>(), [(0, Some(seen)), (1, None)]);
/// # Ok::<(), lastmile::wire::WireError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportPage<'a> {
    /// Everything but the entries.
    pub head: ReportHeader,
    entries: &'a [u8],
}

impl<'a> ReportPage<'a> {
    /// Reads the value of a reply.
    ///
    /// # Errors
    /// As [`TlvValue::decode_value`]; [`WireError::Value`] where it names more entries than it holds, or indices
    /// past 65535.
    pub fn parse(value: &'a [u8]) -> Result<Self, WireError> {
        let p = header(value, true)?;
        let count = usize::from(be16(p, 32));
        let head = ReportHeader {
            status: ReportStatus::from_wire(p[5])?,
            kind: kind_of(p[4]),
            clock_stepped: p[4] & CLOCK_STEPPED != 0,
            queued: p[4] & QUEUED != 0,
            stream: be32(p, 8),
            page: be16(p, 6),
            pages: be16(p, 28),
            first_index: be16(p, 30),
            resolution_ns: be32(p, 36),
            base_ns: be64(p, 40),
        };
        let entries = value.get(REPORT_HEADER_LEN..REPORT_HEADER_LEN + count * REPORT_ENTRY_LEN);
        match entries {
            Some(entries) if usize::from(head.first_index) + count <= 1 << 16 => Ok(Self { head, entries }),
            _ => Err(WireError::Value { what: "the number of entries of a Report TLV", value: count as u64 }),
        }
    }

    /// Stream index and arrival (`None`: not seen) of each entry.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (u16, Option<Arrival>)> + use<'a> {
        let first = self.head.first_index;
        let entries = self.entries.as_chunks::<REPORT_ENTRY_LEN>().0;
        entries
            .iter()
            .enumerate()
            .map(move |(i, entry)| (first.wrapping_add(i as u16), Arrival::decode(*entry)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: ReportRequest = ReportRequest {
        token: [9; 16],
        stream: 0x0102_0304,
        page: 2,
        kind: ReportKind::Departures,
        acknowledge: true,
        end: false,
        value_len: REPORT_HEADER_LEN + 3 * REPORT_ENTRY_LEN + 5,
    };

    const HEAD: ReportHeader = ReportHeader {
        status: ReportStatus::Ok,
        kind: ReportKind::Departures,
        clock_stepped: true,
        queued: true,
        stream: 0x0102_0304,
        page: 2,
        pages: 3,
        first_index: 6,
        resolution_ns: 20,
        base_ns: 0x1122_3344_5566_7788,
    };

    fn arrival(offset_ns: u64) -> Arrival {
        Arrival { offset_ns, ecn: 3, late: true, duplicated: true, hop_limit: 61 }
    }

    #[test]
    fn request_becomes_its_reply_in_place() {
        let mut wire = vec![0xFF; REQUEST.value_len()];
        REQUEST.encode_value(&mut wire).unwrap();
        assert_eq!(wire[..12], *b"LSM\x01\x60\x00\x00\x02\x01\x02\x03\x04");
        assert_eq!((&wire[12..28], wire[28..].iter().all(|o| *o == 0)), (&[9; 16][..], true));
        assert_eq!(ReportRequest::decode_value(&wire), Ok(REQUEST));

        let entries = [Some(arrival(0x0001_0203_0405)), None, Some(arrival(0)), Some(arrival(1))];
        assert_eq!(write_report(&mut wire, &HEAD, entries), Ok(3), "the fourth does not fit");
        assert_eq!(wire[4..8], [0xF8, 0, 0, 2]);
        assert_eq!(wire[28..40], [0, 3, 0, 6, 0, 3, 0, 0, 0, 0, 0, 20]);
        assert_eq!(wire[48..56], [0, 1, 2, 3, 4, 5, 0b1111, 61]);
        assert_eq!(wire[56..64], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0]);
        let page = ReportPage::parse(&wire).unwrap();
        assert_eq!(page.head, HEAD);
        let got: Vec<_> = page.entries().collect();
        assert_eq!(got, [(6, entries[0]), (7, None), (8, entries[2])]);
        assert!(ReportRequest::decode_value(&wire).is_err(), "a reply is no request");
    }

    #[test]
    fn pages_cover_every_index_once() {
        for count in [0, 1, 2, 3, 4, 30, 65_535] {
            for slots in [1, 3, 172] {
                let of = |page| ReportRequest { page, value_len: REPORT_HEADER_LEN + slots * 8, ..REQUEST };
                let pages = of(0).pages(count);
                let all: Vec<u16> = (0..pages).flat_map(|page| of(page).indices(count)).collect();
                assert_eq!(all, (0..count).collect::<Vec<_>>());
                assert!(of(pages).indices(count).is_empty() || pages == 0);
            }
        }
        assert_eq!(ReportRequest { value_len: MIN_REPORT_LEN, ..REQUEST }.pages(5), 0);
    }

    #[test]
    fn offsets_beyond_48_bits_are_capped_below_not_seen() {
        let capped = Arrival::decode(Arrival::encode(Some(arrival(u64::MAX)))).unwrap();
        assert_eq!(capped.offset_ns, NOT_SEEN - 1);
    }

    #[test]
    fn lies_about_entries_are_refused() {
        let mut wire = [0; REPORT_HEADER_LEN + 8];
        write_report(&mut wire, &HEAD, [None]).unwrap();
        wire[33] = 2;
        assert!(matches!(ReportPage::parse(&wire), Err(WireError::Value { value: 2, .. })));
        wire[33] = 1;
        wire[30..32].copy_from_slice(&[0xFF, 0xFF]);
        assert!(ReportPage::parse(&wire).is_ok(), "the last possible index");
        wire[5] = 6;
        assert!(matches!(ReportPage::parse(&wire), Err(WireError::Value { value: 6, .. })));
        for short in 0..REPORT_HEADER_LEN {
            assert!(ReportPage::parse(&wire[..short]).is_err());
            assert!(write_report(&mut wire[..short].to_vec(), &HEAD, [None]).is_err());
        }
    }
}
