//! Wishes of a request in its TLVs, and the TLVs of its reply.

use super::{MAX_PACKETS, Received, Reflector, Standing};
use crate::endpoint::measure::packets::VERSION;
use crate::endpoint::measure::stream::queue_shows;
use crate::node::Ecn;
use crate::wire::private::{
    Abilities, HelloReply, HelloRequest, Offer, ReportHeader, ReportRequest, ReportStatus, Schedule,
    StreamTag, Token, write_report,
};
use crate::wire::{
    ClassOfService, ControlCode, Mode, ReflectedControl, ReturnPath, ReversePathEcn, TLV_HEADER_LEN,
    TlvFlags, TlvIntegrity, TlvMut, TlvType, TlvValue, Verdict, WireError, fail_integrity, reflect_tlvs,
    sequence_of, tlv_area, tlv_area_mut,
};

/// A TLV that is answered later, and where its header begins in the TLV area.
#[derive(Clone, Copy)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    at: usize,
}

/// Wishes of a packet, besides being reflected. Of several TLVs of one type the first counts.
#[derive(Default)]
pub(super) struct Wishes {
    pub(super) hello: Option<Placed<HelloRequest>>,
    pub(super) tag: Option<StreamTag>,
    pub(super) report: Option<Placed<ReportRequest>>,
    pub(super) control: Option<Placed<ReflectedControl>>,
    pub(super) schedule: Option<Schedule>,
    pub(super) no_reply: bool,
    pub(super) class: Option<ClassOfService>,
}

/// Keeps the first readable value of its type.
fn keep<T: TlvValue + Copy>(slot: &mut Option<Placed<T>>, value: &[u8], at: usize) -> Verdict {
    let read = T::decode_value(value);
    if let (None, Ok(value)) = (&slot, &read) {
        *slot = Some(Placed { value: *value, at });
    }
    Verdict::of(&read)
}

/// Reads the TLVs and sets their flags; values that depend on the session are filled in later.
pub(super) fn read(reflector: &Reflector, mode: Mode, bytes: &mut [u8], received: (Ecn, u8)) -> Wishes {
    let mut wishes = Wishes::default();
    if bytes.len() == mode.base_len() {
        return wishes;
    }
    if !may_use(reflector, mode, bytes) {
        fail_integrity(tlv_area_mut(mode, bytes));
        return wishes;
    }
    reflect_tlvs(tlv_area_mut(mode, bytes), |TlvMut { kind, value, offset }| match kind {
        TlvType::EXTRA_PADDING | TlvType::HMAC => Verdict::Understood,
        TlvType::HELLO => keep(&mut wishes.hello, value, offset),
        TlvType::REPORT => keep(&mut wishes.report, value, offset),
        TlvType::REFLECTED_CONTROL => keep(&mut wishes.control, value, offset),
        TlvType::SCHEDULE => {
            let read = Schedule::decode_value(value);
            let verdict = Verdict::of(&read);
            wishes.schedule = wishes.schedule.take().or(read.ok());
            verdict
        }
        TlvType::STREAM => {
            let read = StreamTag::decode_value(value);
            wishes.tag = wishes.tag.or(read.as_ref().ok().copied());
            Verdict::of(&read)
        }
        TlvType::RETURN_PATH => {
            let read = ReturnPath::decode(value);
            match &read {
                Ok(ReturnPath::Control(ControlCode::NoReply)) => wishes.no_reply = true,
                Ok(ReturnPath::Control(ControlCode::SameLink)) => {}
                Ok(ReturnPath::Elsewhere) => return Verdict::Unrecognized,
                Err(_) => {}
            }
            Verdict::of(&read)
        }
        TlvType::CLASS_OF_SERVICE => {
            let read = ClassOfService::decode_value(value);
            if let Ok(class) = read {
                let (ecn, dscp) = received;
                let filled = ClassOfService {
                    dscp_received: dscp,
                    ecn_received: ecn as u8,
                    dscp_refused: false,
                    reverse_ecn: ReversePathEcn::Set,
                    ..class
                };
                wishes.class = wishes.class.or(Some(filled));
                if filled.encode_value(value).is_err() {
                    return Verdict::Malformed;
                }
            }
            Verdict::of(&read)
        }
        _ => Verdict::Unrecognized,
    });
    wishes
}

/// True if the TLVs' values may be used: their HMAC fits, or none is needed (RFC 8972, 4.8).
fn may_use(reflector: &Reflector, mode: Mode, bytes: &[u8]) -> bool {
    let area = tlv_area(mode, bytes);
    let sequence = sequence_of(bytes).unwrap_or_default();
    match (mode, &reflector.config.key) {
        (Mode::Authenticated, Some(key)) => {
            matches!(key.0.verify_tlvs(sequence, area), TlvIntegrity::Empty | TlvIntegrity::Valid)
        }
        // An HMAC that cannot be verified protects nothing, and must not look as if it did.
        _ => !crate::wire::Tlvs::new(area).map_while(Result::ok).any(|tlv| tlv.kind == TlvType::HMAC),
    }
}

/// The value of the TLV whose header begins at `at`.
fn value_mut(mode: Mode, bytes: &mut [u8], at: usize) -> Option<&mut [u8]> {
    let (header, rest) =
        tlv_area_mut(mode, bytes).get_mut(at..)?.split_first_chunk_mut::<TLV_HEADER_LEN>()?;
    rest.get_mut(..usize::from(u16::from_be_bytes([header[2], header[3]])))
}

fn set_flags(mode: Mode, bytes: &mut [u8], at: usize, flags: TlvFlags) {
    if let Some(octet) = tlv_area_mut(mode, bytes).get_mut(at) {
        *octet = flags.bits();
    }
}

/// Answers a hello in place.
pub(super) fn fill_hello(mode: Mode, bytes: &mut [u8], hello: &Placed<HelloRequest>, offer: Offer) {
    let Some(value) = value_mut(mode, bytes, hello.at) else { return };
    let reply = HelloReply { version_min: VERSION, version_max: VERSION, nonce: hello.value.nonce, offer };
    let written = reply.encode_value(value);
    debug_assert_eq!(written, Ok(()), "a hello has the same length both ways");
}

/// Says that a reverse stream is not sent.
pub(super) fn flag_not_conformant(mode: Mode, bytes: &mut [u8], control: &Placed<ReflectedControl>) {
    set_flags(mode, bytes, control.at, TlvFlags::NOT_CONFORMANT);
}

impl Reflector {
    /// Answer to a hello: `token` and `credit` are the peer's, where it may have any.
    pub(super) fn offer(
        &self,
        request: &HelloRequest,
        keyless: bool,
        token: Token,
        credit: u64,
        budget: u64,
    ) -> Offer {
        let abilities = if keyless {
            Abilities::AUTHENTICATED
        } else {
            let all = Abilities::ARRIVAL_REPORTS
                | Abilities::REVERSE_STREAMS
                | Abilities::DEPARTURE_REPORTS
                | Abilities::ECN
                | Abilities::KERNEL_RECEIVE_TIMES
                | Abilities::HOP_LIMIT
                | Abilities::SCHEDULES;
            if self.config.key.is_some() { all | Abilities::AUTHENTICATED } else { all }
        };
        Offer {
            version: request.choose(VERSION, VERSION),
            abilities,
            token,
            lease_s: u16::try_from(self.config.lease.as_nanos() / 1_000_000_000).unwrap_or(u16::MAX),
            max_packets: MAX_PACKETS,
            resolution_ns: self.resolution_ns(),
            credit,
            budget,
        }
    }

    fn resolution_ns(&self) -> u32 {
        u32::try_from(self.config.resolution.as_nanos()).unwrap_or(u32::MAX)
    }

    /// Answers a report request in place.
    pub(super) fn fill_report(
        &mut self,
        packet: &Received,
        bytes: &mut [u8],
        placed: &Placed<ReportRequest>,
    ) {
        let Received { mode, peer, standing, .. } = *packet;
        let resolution_ns = self.resolution_ns();
        let request = &placed.value;
        let session = self.sessions.get(peer).filter(|_| standing == Standing::Served);
        let log = session.and_then(|s| s.log(request.stream)).filter(|l| l.kind == request.kind);
        let mut head = ReportHeader {
            status: if standing == Standing::NoRoom {
                ReportStatus::Busy
            } else {
                ReportStatus::UnknownStream
            },
            kind: request.kind,
            clock_stepped: false,
            queued: false,
            stream: request.stream,
            page: request.page,
            pages: 0,
            first_index: 0,
            resolution_ns,
            base_ns: 0,
        };
        let mut indices = 0..0;
        if let Some(log) = &log {
            indices = request.indices(log.count);
            head.status = match log.unsent {
                _ if log.overflowed => ReportStatus::Busy,
                0 => ReportStatus::Ok,
                _ => ReportStatus::Running,
            };
            head.clock_stepped = log.clock_stepped;
            head.queued = queue_shows(log.queued.into(), log.count.into());
            head.pages = request.pages(log.count);
            head.first_index = indices.start;
            head.base_ns = log.base().as_nanos();
        }
        let entries =
            log.iter().filter(|_| head.status == ReportStatus::Ok).flat_map(|l| l.arrivals(indices.clone()));
        let written = match value_mut(mode, bytes, placed.at) {
            Some(value) => write_report(value, &head, entries),
            None => return,
        };
        if let Err(WireError::Buffer { .. }) = written {
            set_flags(mode, bytes, placed.at, TlvFlags::MALFORMED);
        }
    }
}
