//! The requests for a reverse stream.

use crate::estimate::StreamPlan;
use crate::node::Ecn;
use crate::time::Span;
use crate::units::Bytes;
use crate::wire::private::{MAX_GAPS, Schedule};
use crate::wire::{ClassOfService, TLV_HEADER_LEN, TlvValue};

/// One request asks for no more than this takes: reflectors refuse what lasts longer than a second, because a stream
/// must end soon after its peer fell silent.
const LONGEST_REQUEST: Span = Span::from_millis(900);

/// The requests that make a reflector send a stream.
///
/// One request where the plan is groups of equal size at equal intervals, as pairs and trains are, and ends soon
/// enough; else several. An uneven plan's requests carry its gaps, so that the reflector times it as well.
pub(super) fn requests(plan: &StreamPlan) -> Vec<ReverseRequest> {
    let packets = &plan.packets;
    let mut groups: Vec<(usize, usize)> = Vec::new();
    for (i, packet) in packets.iter().enumerate() {
        match groups.last_mut() {
            Some((first, n)) if packets[*first].offset == packet.offset => *n += 1,
            _ => groups.push((i, 1)),
        }
    }
    let (Some(&(_, burst)), Some(last)) = (groups.first(), packets.last()) else { return Vec::new() };
    let interval = last.offset / (groups.len() as i64 - 1).max(1);
    let uniform = groups.iter().enumerate().all(|(k, &(first, n))| {
        let drift = packets[first].offset - interval * k as i64;
        // The division's remainder, at most one nanosecond a group.
        let alike = (packets[first].size, packets[first].ecn) == (packets[0].size, packets[0].ecn);
        n == burst && drift.abs().as_nanos() <= k as i64 && alike
    });
    let request = |offset, first: usize, count: usize, burst: usize, interval: Span| ReverseRequest {
        offset,
        first: first as u16,
        count: count as u16,
        burst: burst as u16,
        interval,
        size: packets[first].size,
        ecn: packets[first].ecn,
        schedule: None,
    };
    if uniform {
        let together = match interval.as_nanos() {
            0 => groups.len(),
            ns => (LONGEST_REQUEST.as_nanos() / ns) as usize + 1,
        };
        let part = |part: &[(usize, usize)]| {
            let first = part[0].0;
            request(packets[first].offset, first, part.len() * burst, burst, interval)
        };
        return groups.chunks(together).map(part).collect();
    }
    let mut requests: Vec<ReverseRequest> = Vec::new();
    for (i, packet) in packets.iter().enumerate() {
        if let Some(last) = requests.last_mut()
            && let Some(schedule) = &mut last.schedule
            && schedule.gaps.len() < MAX_GAPS
            && packet.size == last.size
            && packet.offset - last.offset <= LONGEST_REQUEST
        {
            let gap = packet.offset - packets[i - 1].offset;
            schedule.gaps.push(u32::try_from(gap.as_nanos()).unwrap_or(u32::MAX));
            last.count += 1;
            continue;
        }
        let first = request(packet.offset, i, 1, 1, Span::ZERO);
        requests.push(ReverseRequest { schedule: Some(Schedule { gaps: Vec::new() }), ..first });
    }
    requests
}

/// One request for packets of a reverse stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReverseRequest {
    pub(super) offset: Span,
    pub(super) first: u16,
    pub(super) count: u16,
    pub(super) burst: u16,
    pub(super) interval: Span,
    pub(super) size: Bytes,
    pub(super) ecn: Ecn,
    /// The gaps between its packets, where they are not all alike.
    pub(super) schedule: Option<Schedule>,
}

impl ReverseRequest {
    /// The codepoint of its packets as a TLV of the request; none if routers must not mark them.
    pub(super) fn class(&self) -> Option<ClassOfService> {
        let ecn_wanted = self.ecn as u8;
        self.ecn.is_capable().then(|| ClassOfService { ecn_wanted, ..ClassOfService::default() })
    }

    /// Bytes of its TLVs that not every request has.
    pub(super) fn extra_size(&self) -> Bytes {
        let schedule = self.schedule.as_ref().map_or(0, |s| TLV_HEADER_LEN + s.value_len());
        let class = self.class().map_or(0, |class| TLV_HEADER_LEN + class.value_len());
        Bytes((schedule + class) as u64)
    }

    /// True if it asks for the packet with that index.
    pub(super) fn holds(&self, index: u16) -> bool {
        index.checked_sub(self.first).is_some_and(|i| i < self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    #[test]
    fn pairs_and_trains_are_one_request() {
        let pairs = requests(&StreamPlan::pairs(30, Bytes(1488), Span::from_millis(10)));
        assert_eq!(pairs.len(), 1);
        assert_eq!((pairs[0].count, pairs[0].burst, pairs[0].interval), (60, 2, Span::from_millis(10)));
        let train = requests(&StreamPlan::train(30, Bytes(1488), Rate::ip(7_777_777)));
        assert_eq!((train.len(), train[0].count, train[0].burst), (1, 30, 1));
    }

    #[test]
    fn a_stream_longer_than_a_second_is_asked_for_in_parts() {
        let pairs = requests(&StreamPlan::pairs(30, Bytes(1488), Span::from_millis(100)));
        let parts: Vec<_> = pairs.iter().map(|r| (r.offset, r.first, r.count, r.burst)).collect();
        let at = Span::from_millis;
        assert_eq!(parts, [(at(0), 0, 20, 2), (at(1_000), 20, 20, 2), (at(2_000), 40, 20, 2)]);
        let burst = requests(&StreamPlan::pairs(1, Bytes(1488), Span::ZERO));
        assert_eq!((burst.len(), burst[0].count), (1, 2));
    }

    #[test]
    fn an_uneven_plan_is_one_request_with_its_gaps() {
        let plan = |ms: &[i64]| StreamPlan::uneven(ms.iter().copied().map(Span::from_millis), Bytes(1000));
        let [chirp] = &requests(&plan(&[0, 10, 10, 90]))[..] else { panic!("one request") };
        let gaps = &chirp.schedule.as_ref().unwrap().gaps;
        assert_eq!((chirp.count, &gaps[..]), (4, &[10_000_000, 0, 80_000_000][..]));
        // Longer than a request may last, or of other sizes: several, none with more than its own packets.
        let mut long = plan(&[0, 600, 1_000, 1_001, 1_900]);
        long.packets[4].size = Bytes(500);
        let asked = requests(&long);
        let parts: Vec<_> = asked.iter().map(|r| (r.offset, r.first, r.count, r.size.0)).collect();
        let at = Span::from_millis;
        assert_eq!(parts, [(at(0), 0, 2, 1000), (at(1_000), 2, 2, 1000), (at(1_900), 4, 1, 500)]);
        let many = StreamPlan::uneven((0..600).map(|k| Span::from_micros(k * k)), Bytes(1000));
        let asked = requests(&many);
        assert_eq!(asked.iter().map(|r| r.count).collect::<Vec<_>>(), [257, 257, 86]);
    }
}
