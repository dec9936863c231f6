//! A sender and a receiver of `rtc-interceptor`, and the path between them: one link with a drop-tail queue and random loss there,
//! 20 ms each way, feedback that always arrives. Time is virtual, in steps of half a millisecond.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rtc_interceptor::{
    AttributedPacket, CongestionControlBuilder, Interceptor, PacerBuilder, Packet, RTCPFeedback,
    RTPHeaderExtension, Registry, Slot, StreamInfo, TaggedPacket, TwccReceiverBuilder, TwccSenderBuilder,
};
use rtc_shared::TransportContext;
use sansio::Protocol;

use crate::adapter::{Boxed, Shared};

const SSRC: u32 = 0x0a0b_0c0d;
const PAYLOAD: usize = 1160;
/// A packet on the link: with headers of RTP and its extension, UDP and IPv4.
const PACKET_BITS: f64 = 8.0 * (PAYLOAD + 12 + 8 + 28) as f64;
const ONE_WAY: Duration = Duration::from_millis(20);
/// What the link's queue holds, as time.
const QUEUE: Duration = Duration::from_millis(250);
const FEEDBACK: Duration = Duration::from_millis(50);
const STEP: Duration = Duration::from_micros(500);
const FRAMES: u64 = 30;

/// The link of a run.
pub struct Link {
    /// Its rate in bit/s from each second on.
    pub rates: &'static [(u64, f64)],
    /// The share of packets that it loses at random.
    pub loss: f64,
    pub seed: u64,
}

fn stream() -> StreamInfo {
    StreamInfo {
        ssrc: SSRC,
        clock_rate: 90_000,
        mime_type: "video/VP8".to_owned(),
        payload_type: 96,
        rtcp_feedback: vec![RTCPFeedback { typ: "transport-cc".to_owned(), parameter: String::new() }],
        rtp_header_extensions: vec![RTPHeaderExtension {
            uri: "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01".to_owned(),
            id: 5,
        }],
        ..Default::default()
    }
}

fn media(now: Instant, sequence_number: u16) -> TaggedPacket {
    let header = rtc_rtp::header::Header {
        version: 2,
        payload_type: 96,
        sequence_number,
        timestamp: u32::from(sequence_number) * 3_000,
        ssrc: SSRC,
        ..Default::default()
    };
    let packet = rtc_rtp::Packet { header, payload: vec![0; PAYLOAD].into(), ..Default::default() };
    TaggedPacket {
        now,
        transport: TransportContext::default(),
        message: AttributedPacket::new(Packet::Rtp(packet)),
    }
}

/// Runs a stream whose frames are as large as `target` says; media in Mbit/s that arrived in each second.
pub fn carried(link: &Link, seconds: u64, estimator: Boxed, target: &Shared) -> Vec<f64> {
    let epoch = Instant::now();
    let mut random = Pcg64Mcg::seed_from_u64(link.seed);
    let mut sender = Registry::new()
        .with(Slot::CongestionControl, CongestionControlBuilder::new(estimator).build())
        .with(Slot::TwccSender, TwccSenderBuilder::new().build())
        .with(Slot::Pacer, PacerBuilder::new().with_target_bitrate(target.bits_per_second()).build())
        .build();
    sender.bind_local_stream(&stream());
    let mut receiver = Registry::new()
        .with(Slot::TwccReceiver, TwccReceiverBuilder::new().with_interval(FEEDBACK).build())
        .build();
    receiver.bind_remote_stream(&stream());

    let mut on_link: BTreeMap<(Instant, u64), TaggedPacket> = BTreeMap::new();
    let mut back: VecDeque<(Instant, TaggedPacket)> = VecDeque::new();
    let (mut free, mut order, mut made, mut sequence, mut frame) = (epoch, 0, 0.0, 0_u16, 0);
    let mut bits = vec![0.0; seconds as usize + 1];
    let mut now = epoch;
    while now < epoch + Duration::from_secs(seconds) {
        let passed = now.duration_since(epoch);
        if passed >= Duration::from_secs_f64(frame as f64 / FRAMES as f64) {
            frame += 1;
            made += target.bits_per_second() / FRAMES as f64;
            while made >= PACKET_BITS {
                made -= PACKET_BITS;
                sender.handle_write(media(now, sequence)).expect("their sender takes packets");
                sequence = sequence.wrapping_add(1);
            }
        }
        sender.handle_timeout(now).expect("their timers");
        while let Some(mut packet) = sender.poll_write() {
            let rate =
                link.rates.iter().rev().find(|(from, _)| *from <= passed.as_secs()).map_or(1e6, |r| r.1);
            if free.saturating_duration_since(now) > QUEUE {
                continue;
            }
            free = free.max(now) + Duration::from_secs_f64(PACKET_BITS / rate);
            if f64::from(random.next_u32()) < link.loss * f64::from(u32::MAX) {
                continue;
            }
            packet.now = free + ONE_WAY;
            order += 1;
            on_link.insert((packet.now, order), packet);
        }
        while let Some(entry) = on_link.first_entry().filter(|entry| entry.key().0 <= now) {
            let packet = entry.remove();
            bits[packet.now.duration_since(epoch).as_secs() as usize] += PACKET_BITS;
            receiver.handle_read(packet).expect("their receiver takes packets");
            while receiver.poll_read().is_some() {}
        }
        receiver.handle_timeout(now).expect("their timers");
        while let Some(feedback) = receiver.poll_write() {
            back.push_back((now + ONE_WAY, feedback));
        }
        while back.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, mut feedback)) = back.pop_front() else { break };
            feedback.now = now;
            sender.handle_read(feedback).expect("their sender takes feedback");
            while sender.poll_read().is_some() {}
        }
        now += STEP;
    }
    bits.truncate(seconds as usize);
    bits.iter().map(|bits| bits / 1e6).collect()
}
