//! Packets that a sender sends: frames cut into packets, paced, and its reports.

use core::net::SocketAddr;

use super::config::SenderRate;
use super::control::{Control, Train};
use super::event::End;
use super::frames::Waiting;
use super::sender::{Awaited, Sender};
use super::{MAX_AWAITED, PADDING, middle, ntp, ticks};
use crate::control::{Action, PacketClass};
use crate::node::{Datagram, Ecn, Output, PortId, Transmit, TransmitId};
use crate::time::{Span, Time};
use crate::units::{Bytes, IpVersion, Rate};
use crate::wire::{
    FeedbackRequest, RTP_HEADER_LEN, RtpHeader, SEND_TIME_LEN, SenderInfo, TfrcScheme,
    write_feedback_request, write_goodbye, write_name, write_sender_report, write_tfrc_scheme,
};

/// A key frame comes so often while nobody answers.
const UNHEARD_KEY_FRAME_EVERY: Span = Span::from_secs(1);
/// Reports that may still be answered: those of a minute, and of 12 s while another address is asked.
const ANSWERED: usize = 60;
/// A coded frame that the path has room for leaves at so many times the rate of all of them: it is on the screen earlier, and its time
/// varies less with its size.
const HURRY: f64 = 2.0;
/// Packets are handed to the driver so long before they leave, where lost ones are sent again: those do not wait behind a whole frame.
const AHEAD: Span = Span::from_millis(5);
/// After the last frame of a source those that wait leave within so long. Coded frames do not count as waiting for longer.
const MOST_WAIT: Span = Span::from_millis(500);
/// Packets of a train that a controller asks for: more are not sent.
const MAX_TRAIN: u16 = 16;
/// The longest time that their gaps may take: media waits behind a train.
const MAX_TRAIN_TIME: Span = Span::from_millis(250);

impl Sender {
    fn overhead(&self) -> Bytes {
        self.config.overhead()
    }

    fn transmit(&mut self, at: Time, id: TransmitId, ecn: Ecn, payload: Vec<u8>) {
        self.transmit_to(self.config.peer, at, id, ecn, payload);
    }

    fn transmit_to(&mut self, to: SocketAddr, at: Time, id: TransmitId, ecn: Ecn, payload: Vec<u8>) {
        self.planned_until = self.planned_until.max(at);
        let unspecified = if to.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
        let datagram = Datagram { ecn, ..Datagram::udp(SocketAddr::new(unspecified, 0), to, payload) };
        self.out.push_back(Output::Transmit(Transmit { id, at, port: PortId(0), datagram }));
    }

    /// The smallest packet. Packets under control may carry an extension.
    fn smallest(&self) -> u64 {
        let extension = if self.control.is_some() { SEND_TIME_LEN } else { 0 };
        (RTP_HEADER_LEN + extension) as u64 + self.overhead().0 + 1
    }

    /// Does what the controller asks for: packets of another size, trains, key frames, and feedback more or less often.
    fn act(&mut self, now: Time, smallest: u64) {
        let most = self.config.full_size().0.max(smallest);
        let possible = |size: Bytes| Bytes(size.0.clamp(smallest, most));
        let Some(control) = &mut self.control else { return };
        while let Some(action) = control.controller.poll_action() {
            match action {
                Action::PacketSize(size) => self.frames.resize(possible(size)),
                Action::Probe { packets, size, gap } => {
                    let packets = packets.min(MAX_TRAIN);
                    let most = MAX_TRAIN_TIME / i64::from(packets.max(1));
                    let gap = gap.unwrap_or(Span::ZERO).clamp(Span::ZERO, most);
                    control.train = Some(Train { packets, size: possible(size), gap });
                }
                Action::ForgetLosses => control.history = !control.history,
                Action::KeyFrame => self.frames.key_frame(),
                Action::FeedbackEvery(every) if control.feedback_every != Some(every) => {
                    // Each report repeats it, and the first leaves at once.
                    (control.feedback_every, self.next_report) = (Some(every), now);
                }
                _ => {}
            }
        }
    }

    /// A player that nobody hears cannot ask for the key frame that it begins with.
    fn join_by_key_frame(&mut self, now: Time) {
        let last = self.key_frame_at.unwrap_or(self.config.start);
        if self.receiver.is_none() && self.frames.is_coded() && now >= last + UNHEARD_KEY_FRAME_EVERY {
            self.key_frame_at = Some(now);
            self.frames.key_frame();
        }
    }

    /// Makes the frame that is due. At a fixed rate its packets leave evenly until the next one; a controller's pacing rate
    /// releases what it can until then, and the rest waits.
    pub(super) fn send_frame(&mut self, now: Time) {
        let smallest = self.smallest();
        self.act(now, smallest);
        let at = self.frames.next;
        let whole =
            self.control.as_ref().and_then(|control| control.train).map_or(0, |train| train.packets.into());
        let rates = self.control.as_ref().map(Control::rates);
        let wanted = rates.map_or(self.config.fixed(), |(target, _)| target);
        let share = self.repeater.as_mut().map_or(1.0, |repeater| repeater.media_share(now));
        let target = if share < 1.0 { wanted.scaled(share) } else { wanted };
        let waiting = Bytes(self.frames.waiting_bytes);
        let planned = (self.coded_until - now).max(Span::ZERO);
        self.join_by_key_frame(now);
        let unheard = rates.is_none() && !self.sent.frames.is_multiple_of(1 << self.halvings(now));
        let wait = match &self.control {
            Some(control) if self.frames.is_coded() => self.coded_wait(now, at, control),
            Some(control) => control.rates().1.time_for(waiting),
            None if unheard => Span::MAX,
            None => planned,
        };
        let taken = self.frames.make(target, wait, smallest, whole);
        if self.frames.has_ended() {
            return self.stop(now);
        }
        self.sent.frames += 1;
        self.sent.frames_dropped += u64::from(!taken);
        let next = self.frames.next;
        if self.frames.is_coded() && self.control.is_none() {
            return self.send_coded(now);
        }
        if let Some((_, pacing)) = rates {
            let made = Bytes(self.frames.waiting_bytes).saturating_sub(waiting);
            let hurries = self.control.as_ref().is_some_and(|control| self.pacing(control) > pacing);
            // Without haste the frames made so far leave when those that wait have left.
            let until = if hurries { self.coded_until.max(now) } else { now + pacing.time_for(waiting) };
            let until = until + pacing.time_for(made);
            // At next to no rate they would wait for minutes, whatever the rate is by then.
            self.coded_until = if hurries { until } else { until.min(now + MOST_WAIT) };
        }
        let from = now.max(at) + self.frames.took;
        let Some(control) = &mut self.control else {
            let packets = self.frames.waiting() as u64;
            for index in 0..packets {
                let due = Span::from_nanos(((next - at).as_nanos() as u64 * index / packets) as i64);
                let Some(packet) = self.frames.pop().filter(|_| !unheard) else { continue };
                if !self.affords(Bytes(packet.size)) {
                    return self.end(now, End::ByteLimit);
                }
                self.send_packet(at + due, TransmitId::UNTRACKED, &packet, self.config.payload_type);
            }
            return;
        };
        let most = self.frames.range().1;
        control.stands_still = self.frames.stand_still();
        control.app_limited = (most < target || self.frames.lack()) && control.fills_up_to() < target;
        control.signals.frame(now, self.frames.waiting() > 0, &mut *control.controller);
        control.make_good(now - at);
        self.tell_backlog(now);
        self.hand_out(from);
    }

    /// Ends the stream. Coded frames that wait leave before the goodbye: a picture that lacks its end is not shown.
    pub(super) fn stop(&mut self, now: Time) {
        if self.frames.is_coded() {
            // No feedback comes any more that would open the window.
            self.release(now, now + MOST_WAIT, false);
        }
        self.end(now, End::Stop);
    }

    /// Hands out what leaves until the next frame, or soon: then there is more to hand out.
    pub(super) fn hand_out(&mut self, from: Time) {
        let soon = from + AHEAD;
        let sliced = self.repeater.is_some() && soon < self.frames.next;
        // The next frame takes as long to make: its packets do not leave before that.
        let until = if sliced { soon } else { self.frames.next + self.frames.took };
        self.release(from, until, true);
        let time = until - self.handed_out.1;
        self.pad(from, until, time);
        let pads = self.control.as_ref().is_some_and(|control| control.fills_up_to() > Rate::ip(0));
        self.handed_out = ((sliced && (pads || self.frames.waiting() > 0)).then_some(soon), until);
    }

    /// The rate at which packets leave under control: while the user's limit holds the target, a coded frame hurries, unless the controller holds
    /// the pacer back.
    fn pacing(&self, control: &Control) -> Rate {
        let (target, pacing) = control.rates();
        match &self.config.rate {
            SenderRate::Controlled(config)
                if self.frames.is_coded() && target >= config.max && pacing >= target =>
            {
                pacing.scaled(HURRY)
            }
            _ => pacing,
        }
    }

    /// How long a coded frame would wait if none of those before it had hurried: so the rate of several stays the controller's.
    fn coded_wait(&self, now: Time, at: Time, control: &Control) -> Span {
        let ((target, pacing), hurried) = (control.rates(), self.pacing(control));
        // A pacer below the target is held back for a moment: by a dip, or by a test of the rate. A frame that comes late has waited already.
        let leaves = if hurried < target { target } else { hurried };
        let waits = leaves.time_for(Bytes(self.frames.waiting_bytes)) + (now - at);
        if hurried > pacing { waits.max(self.coded_until - now) } else { waits }
    }

    /// Sends a coded frame at a fixed rate: those made so far take a quarter less than at that rate.
    fn send_coded(&mut self, now: Time) {
        let (fixed, ready) = (self.config.fixed(), now + self.frames.took);
        let (mut due, mut bytes) = (ready.max(self.planned_until), Bytes::ZERO);
        while let Some(packet) = self.frames.pop() {
            if !self.affords(Bytes(packet.size)) {
                return self.end(now, End::ByteLimit);
            }
            self.send_packet(due, TransmitId::UNTRACKED, &packet, self.config.payload_type);
            due += fixed.scaled(HURRY).time_for(Bytes(packet.size));
            bytes += Bytes(packet.size);
        }
        self.coded_until = ready.max(self.coded_until) + fixed.scaled(1.25).time_for(bytes);
    }

    /// Tells the controller how much waits for the pacer.
    pub(super) fn tell_backlog(&mut self, now: Time) {
        let (Some(control), Some(waiting)) = (&mut self.control, self.frames.backlog()) else { return };
        let bytes = waiting + control.planned_bytes();
        control.signals.backlog(now, bytes, &mut *control.controller);
    }

    /// Feedback came: what a window held back may leave.
    pub(super) fn go_on(&mut self, now: Time) {
        let sends = self.started && !self.ended();
        if let Some(control) = self.control.as_mut().filter(|control| sends && control.has_window()) {
            control.make_good(Span::ZERO);
            let soon = self.handed_out.0.map_or(self.frames.next, |soon| soon.max(now));
            self.release(now, soon, true);
        }
    }

    /// Fills up with padding where nothing waits.
    fn pad(&mut self, from: Time, until: Time, time: Span) {
        let packet = self.frames.padding(self.smallest());
        let (size, ecn) = (Bytes(packet.size), self.config.ecn);
        let Some(control) = &mut self.control else { return };
        let mut due = control.padding_due(time, size);
        while due >= size && self.frames.waiting() == 0 {
            let Some(control) = &mut self.control else { return };
            let pacing = control.rates().1;
            let at = control.ready(from, pacing).max(control.window_opens(from, size));
            if at >= until {
                return;
            }
            if !self.affords(size) {
                return self.end(from, End::ByteLimit);
            }
            let Some(control) = &mut self.control else { return };
            control.pacer.release(at, size, pacing);
            let id = control.planned(at, size, ecn, PacketClass::Padding);
            self.sent.padding += 1;
            self.sent.padding_bytes += size;
            self.send_packet(at, TransmitId(id + 1), &packet, PADDING);
            due = due.saturating_sub(size);
        }
    }

    /// Hands waiting packets to the driver, as far as the pacing rate lets them leave before that time, and the controller's window, if it goes
    /// by that. The packets of a train leave when the first may, or at their gaps from then on, and those behind it wait for as long as all of
    /// them take.
    fn release(&mut self, from: Time, until: Time, by_window: bool) {
        let until = until.max(from + Span::from_nanos(1));
        while self.frames.waiting() > 0 {
            let Some(control) = &self.control else { return };
            let pacing = self.pacing(control);
            let Some(control) = &mut self.control else { return };
            let train = control.train.filter(|train| self.frames.begins(train.size.0));
            let bytes = train.map_or(self.frames.next_size(), |train| train.size * train.packets.into());
            let opens = if by_window { control.window_opens(from, bytes) } else { from };
            let first = control.ready(from, pacing).max(opens);
            if first >= until {
                return;
            }
            let train = control.train.take_if(|train| self.frames.begins(train.size.0));
            control.trains = control.trains.wrapping_add(train.is_some().into());
            let (number, len) = (control.trains, train.map_or(1, |train| train.packets));
            for index in 0..len {
                let due = first + train.map_or(Span::ZERO, |train| train.gap * index.into());
                let (packet, class) = match train {
                    None => (self.frames.pop(), PacketClass::Media),
                    Some(Train { size, .. }) => {
                        let class = PacketClass::Probe { train: number, index, len };
                        (Some(self.frames.pop_filled(size.0)), class)
                    }
                };
                let Some(packet) = packet else { return };
                if !self.affords(Bytes(packet.size)) {
                    return self.end(from, End::ByteLimit);
                }
                let Some(control) = &mut self.control else { return };
                control.pacer.release(due, Bytes(packet.size), pacing);
                let id = control.planned(due, Bytes(packet.size), self.config.ecn, class);
                self.send_packet(due, TransmitId(id + 1), &packet, self.config.payload_type);
            }
        }
    }

    /// Sends a media packet.
    fn send_packet(&mut self, due: Time, id: TransmitId, packet: &Waiting, payload_type: u8) {
        let Waiting { frame, marker, size, ref content } = *packet;
        // A decoder is to be told what is none of its own.
        let payload_type = if self.frames.is_coded() && content.is_none() { PADDING } else { payload_type };
        let fields = RtpHeader {
            marker,
            payload_type,
            sequence: self.sent.packets as u16,
            timestamp: ticks(Time::ZERO + (frame - self.config.start)),
            ssrc: self.config.ssrc,
        };
        let mut payload = Vec::with_capacity(size as usize);
        match self.control.as_ref().and_then(|control| control.stamp(due)) {
            None => fields.write(&mut payload),
            Some(stamp) => stamp.write(&fields, &mut payload),
        }
        let headers = payload.len();
        payload.extend(content.iter().flatten());
        let padding = (size - self.overhead().0) as usize - payload.len();
        payload.resize(payload.len() + padding, 0);
        if let (Some(_), Ok(padding @ 1..), [first, .., last]) =
            (content, u8::try_from(padding), &mut payload[..])
        {
            // Padding (RFC 3550, section 5.1): its last byte counts it.
            (*first, *last) = (*first | 0x20, padding);
        }
        let size = Bytes(payload.len() as u64) + self.overhead();
        self.sent.packets += 1;
        self.sent.bytes += size;
        self.payload += (payload.len() - headers) as u64;
        self.awaited.1.push_back(Awaited { size, at: due, arrived: None });
        if self.awaited.1.len() > MAX_AWAITED {
            self.awaited.1.pop_front();
            self.awaited.0 += 1;
        }
        if let Some(repeater) = &mut self.repeater {
            // Of padding its header, so that its receiver misses nothing.
            let end = if payload_type == PADDING { headers } else { payload.len() };
            repeater.keep(due, &payload[..end], size);
        }
        self.transmit(due, id, self.config.ecn, payload);
    }

    /// Sends a packet again that the receiver asks for, if it may be and comes in time. It takes the place of media.
    pub(super) fn send_again(&mut self, now: Time, low: u16) {
        let (overhead, ecn) = (self.overhead(), self.config.ecn);
        let (full, control) = (self.config.packet_size, &mut self.control);
        let pacing = control.as_ref().map(|control| control.rates().1);
        let due = match (&control, pacing) {
            (Some(control), Some(pacing)) => control.ready(now, pacing),
            _ => now,
        };
        if self.ended() || !self.affords(full) {
            return;
        }
        let (Some(repeater), rtt) = (&mut self.repeater, self.rtt) else { return };
        let Some(packet) = repeater.repeat(due, low, rtt, overhead) else { return };
        let size = Bytes(packet.len() as u64) + overhead;
        let mut id = TransmitId::UNTRACKED;
        if let (Some(control), Some(pacing)) = (&mut self.control, pacing) {
            control.pacer.release(due, size, pacing);
            id = TransmitId(control.planned(due, size, ecn, PacketClass::Rtx) + 1);
        }
        self.sent.retransmitted += 1;
        self.sent.retransmitted_bytes += size;
        self.transmit(due, id, ecn, packet);
    }

    pub(super) fn report(&mut self, now: Time, leaves: bool) {
        let media = (self.config.ssrc, self.sent.packets, self.payload);
        let again = self.repeater.as_ref().filter(|repeater| repeater.packets > 0);
        let again = again.map(|repeater| (repeater.ssrc(), repeater.packets, repeater.payload));
        let mut bytes = Vec::new();
        for (ssrc, packets, payload) in core::iter::once(media).chain(again) {
            write_sender_report(&mut bytes, ssrc, &self.info(now, packets, payload), &[]);
            write_name(&mut bytes, ssrc, "lastmile");
            if leaves {
                write_goodbye(&mut bytes, ssrc);
            }
        }
        if let Some(name) = self.unheeded().filter(|_| !leaves) {
            write_tfrc_scheme(&mut bytes, &TfrcScheme { source: self.config.ssrc, name });
        }
        let every = self.control.as_ref().and_then(|control| control.feedback_every);
        if let Some(every) = every.filter(|_| !leaves) {
            write_feedback_request(&mut bytes, &FeedbackRequest { source: self.config.ssrc, every });
        }
        self.send_report(now, self.config.peer, bytes);
    }

    /// The counts of a source's packets in a report.
    fn info(&self, now: Time, packets: u64, payload: u64) -> SenderInfo {
        SenderInfo {
            ntp: ntp(self.config.epoch, now),
            rtp: ticks(Time::ZERO + (now - self.config.start).max(Span::ZERO)),
            packets: packets as u32,
            bytes: payload as u32,
        }
    }

    /// Sends a report. Its stamp, by which it is answered: one that went elsewhere too proves nothing.
    fn send_report(&mut self, now: Time, to: SocketAddr, bytes: Vec<u8>) -> u32 {
        let stamp = middle(ntp(self.config.epoch, now));
        self.asked.retain(|(_, asked, _)| *asked != stamp);
        self.reports.push_back(stamp);
        if self.reports.len() > ANSWERED {
            self.reports.pop_front();
        }
        let around = IpVersion::of(to).udp_overhead() + self.config.expansion.rtcp;
        self.sent.report_bytes += Bytes(bytes.len() as u64) + around;
        self.transmit_to(to, now, TransmitId::UNTRACKED, Ecn::NotEct, bytes);
        stamp
    }

    /// Asks an address if the receiver is there, by a report that is smaller than one of its own. Its stamp, if the limit of bytes lets it out
    /// and no other report has that stamp.
    pub(super) fn ask(&mut self, now: Time, to: SocketAddr) -> Option<u32> {
        if self.reports.contains(&middle(ntp(self.config.epoch, now))) {
            return None;
        }
        let mut bytes = Vec::new();
        let info = self.info(now, self.sent.packets, self.payload);
        write_sender_report(&mut bytes, self.config.ssrc, &info, &[]);
        let size = Bytes(bytes.len() as u64) + IpVersion::of(to).udp_overhead() + self.config.expansion.rtcp;
        self.affords(size).then(|| self.send_report(now, to, bytes))
    }
}
