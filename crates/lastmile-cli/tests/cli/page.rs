//! The page of a made-up run, as `lastmile report` draws it. With `LASTMILE_DRAW=FILE` in the environment the page is written there, to be looked at.

use std::sync::atomic::{AtomicU32, Ordering};

use lastmile::endpoint::measure::{Cost, Decision};
use lastmile::estimate::{
    Estimate, Interval, IntervalMethod, Quantity, Refusal, StreamPlan, TruthKind, Value, Warning, WarningCode,
};
use lastmile::node::{Ecn, Input};
use lastmile::observe::StreamVerdict;
use lastmile::report::{Direction, Fate, PacketReport, Pattern, StreamRecord};
use lastmile::time::{Epoch, Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_net::recording::{Recorder, World};

use lastmile::endpoint::Event;
use lastmile_net::recording::Header;

use crate::common::{Scratch, lastmile};

/// The record of a plan after a 10 Mbit/s queue with 4 Mbit/s of cross traffic.
fn through_a_queue(number: u32, direction: Direction, plan: &StreamPlan) -> StreamRecord {
    let link = Rate::ip(10_000_000);
    let mut free = Span::ZERO;
    let mut cross = Span::from_micros(700);
    let mut noise = 12_345_u64;
    let mut packets = Vec::new();
    for (seq, packet) in plan.packets.iter().enumerate() {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let sent = packet.offset + Span::from_nanos(4_000 * seq as i64 % 20_000 + (noise >> 50) as i64);
        while cross < sent {
            free = free.max(cross) + link.time_for(Bytes(1_500));
            cross += Span::from_micros(2_400) + Span::from_nanos((noise >> 44) as i64);
        }
        free = free.max(sent) + link.time_for(packet.size);
        // The receiver's clock is four seconds ahead.
        let arrived = Time::from_nanos(5_003_000_000) + free + Span::from_nanos((noise >> 52) as i64);
        let fate = if seq == 11 { Fate::Lost } else { Fate::Arrived(arrived) };
        let ecn = if seq == 20 { Ecn::Ce } else { Ecn::NotEct };
        packets.push(PacketReport {
            seq: seq as u64,
            size: packet.size,
            sent: Time::from_nanos(1_000_000_000) + sent,
            fate,
            ecn,
        });
    }
    StreamRecord {
        stream: number,
        direction,
        pattern: plan.pattern,
        planned: plan.packets.iter().map(|p| p.offset).collect(),
        packets,
        tx_resolution: Span::from_nanos(1),
        rx_resolution: Span::from_nanos(1),
        clock_stepped: false,
    }
}

fn recording() -> Vec<u8> {
    let config = serde_json::json!({ "method": "wbest", "peer": "192.0.2.7:8620", "note": "<script>alert(1)</script>" });
    let epoch = Epoch::from_unix_nanos(1_795_254_366_000_000_000);
    let header = Header { world: World::Real, role: String::new(), seed: [0xab; 32], epoch, config };
    let mut file = Vec::new();
    let mut recorder = Recorder::new(&mut file, &header).unwrap();
    let mut seq = 0;
    let mut event = |ms: u64, what: Decision| {
        seq += 1;
        Event { at: Time::from_nanos(ms * 1_000_000), node: 0, seq, what: what.into() }
    };
    let judged = |stream, direction, pattern, packets, lost, verdict| Decision::StreamJudged {
        stream,
        direction,
        pattern,
        packets,
        lost,
        gaps_held: packets - 1,
        verdict,
    };
    let cost = |ms: i64, streams, discarded| Cost {
        probe_bytes: Bytes(134_000 * u64::from(streams)),
        control_bytes: Bytes(900),
        bytes_received: Bytes(700),
        elapsed: Span::from_millis(ms),
        streams,
        streams_discarded: discarded,
        ..Cost::default()
    };
    let estimated = |quantity, bps: u64, half: u64, streams, cost| Decision::Estimated {
        method: "wbest".into(),
        direction: Direction::Forward,
        estimate: Estimate {
            quantity,
            value: Value::Is(Rate::ip(bps)),
            interval: Some(Interval {
                low: Rate::ip(bps - half),
                high: Rate::ip(bps + half),
                confidence: 0.9,
                method: IntervalMethod::MedianOrderStatistics,
            }),
            next: None,
            truth_kind: TruthKind::Queue,
            burst: None,
            packet_size: None,
            streams,
            warnings: Vec::new(),
        },
        cost,
    };
    recorder.input(Time::ZERO, &Input::Wake);
    let peer = "192.0.2.7:8620".parse().unwrap();
    recorder.event(&event(21, Decision::PeerReady { peer, lastmile: true, rtt: Span::from_micros(20_300) }));
    let pairs = StreamPlan::pairs(30, Bytes(1_488), Span::from_millis(5));
    let train = StreamPlan::train(30, Bytes(1_488), Rate::ip(10_000_000));
    recorder.record(&through_a_queue(1, Direction::Forward, &pairs));
    recorder
        .event(&event(220, judged(1, Direction::Forward, Pattern::Pairs, 60, 1, StreamVerdict::Believed)));
    recorder.record(&through_a_queue(2, Direction::Forward, &train));
    recorder.event(&event(
        290,
        judged(2, Direction::Forward, Pattern::Train, 30, 1, StreamVerdict::ScheduleBroken),
    ));
    recorder.record(&through_a_queue(3, Direction::Forward, &train));
    recorder
        .event(&event(390, judged(3, Direction::Forward, Pattern::Train, 30, 1, StreamVerdict::Believed)));
    recorder.event(&event(391, estimated(Quantity::Capacity, 9_920_000, 140_000, vec![1], cost(370, 2, 1))));
    recorder.event(&event(
        391,
        estimated(Quantity::AvailableBandwidth, 5_870_000, 450_000, vec![3], cost(370, 2, 1)),
    ));
    recorder.event(&event(
        420,
        Decision::Warned(Warning {
            code: WarningCode::Other,
            text: "<img src=x onerror=alert(1)> & \"quotes\"".into(),
        }),
    ));
    recorder
        .event(&event(520, judged(4, Direction::Reverse, Pattern::Pairs, 60, 60, StreamVerdict::NoReport)));
    let (method, direction) = ("capprobe'><script>".to_owned(), Direction::Reverse);
    let refusal = Refusal::PeerCannot("the peer is a plain STAMP reflector".into());
    recorder.event(&event(530, Decision::Refused { method, direction, refusal, cost: cost(510, 3, 2) }));
    recorder.event(&event(531, Decision::Finished { cost: cost(511, 3, 2) }));
    recorder.finish().unwrap();
    file
}

/// The page that `lastmile report` makes of a file.
fn page(file: &[u8]) -> String {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let scratch = Scratch::new(&format!("page-{}", FILES.fetch_add(1, Ordering::Relaxed)));
    let drawn = lastmile(&["report", &scratch.file("run.jsonl", file), "-o", "-"]);
    assert_eq!(drawn.code, Some(0), "{}", drawn.stderr);
    drawn.stdout
}

#[test]
fn a_run_is_redrawn() {
    let page = page(&recording());
    if let Some(path) = std::env::var_os("LASTMILE_DRAW") {
        std::fs::write(path, &page).unwrap();
    }
    for wanted in [
        "9.92 Mbit/s",
        "5.87 Mbit/s",
        "5.42 Mbit/s to 6.32 Mbit/s",
        "the peer is a plain STAMP reflector",
        "discarded: its departures missed the schedule",
        "2026-11-21",
        "Pair dispersion, read as capacity",
        "Arrival curve",
    ] {
        assert!(page.contains(wanted), "{wanted:?} is missing");
    }
    assert_eq!(page.matches("<svg").count(), 1 + 3 * 3, "a timeline, and three plots a stream");
    assert!(page.len() < 200_000, "{} bytes", page.len());
}

#[test]
fn nothing_of_the_file_gets_out_of_its_text() {
    let page = page(&recording());
    for forbidden in ["<script", "<img", "http:", "https:", "url(", "NaN", "\"inf"] {
        assert!(!page.contains(forbidden), "{forbidden:?} in the page");
    }
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt; &amp; &quot;quotes&quot;"));
}

#[test]
fn extremes_and_emptiness_are_drawn_too() {
    let packet = |seq, sent, fate| PacketReport {
        seq,
        size: Bytes(u64::MAX),
        sent: Time::from_nanos(sent),
        fate,
        ecn: Ecn::Ce,
    };
    let streams = [
        vec![],
        vec![packet(0, u64::MAX, Fate::Lost)],
        vec![packet(0, 0, Fate::Arrived(Time::MAX)), packet(1, u64::MAX, Fate::Arrived(Time::ZERO))],
        vec![packet(0, 0, Fate::Late), packet(1, 0, Fate::Lost), packet(2, 0, Fate::Arrived(Time::ZERO))],
    ];
    let mut record = through_a_queue(1, Direction::Reverse, &StreamPlan::train(0, Bytes(1), Rate::ip(1)));
    for pattern in [Pattern::Pairs, Pattern::Train, Pattern::Burst] {
        record.pattern = pattern;
        for packets in &streams {
            // Fewer planned departures than packets: the file may say so.
            record.packets.clone_from(packets);
            let page = page_of(&record);
            assert!(!page.contains("NaN") && !page.contains("\"inf"), "{page}");
        }
    }
}

/// Of a recording that says nothing of its endpoint.
fn header() -> Header {
    Header {
        world: World::Sim,
        role: String::new(),
        seed: [0; 32],
        epoch: Epoch::default(),
        config: serde_json::Value::Null,
    }
}

fn page_of(record: &StreamRecord) -> String {
    let mut file = Vec::new();
    let mut recorder = Recorder::new(&mut file, &header()).unwrap();
    recorder.record(record);
    recorder.finish().unwrap();
    page(&file)
}

#[test]
fn long_files_are_cut_and_say_so() {
    let record =
        through_a_queue(1, Direction::Forward, &StreamPlan::train(3, Bytes(1_488), Rate::ip(10_000_000)));
    let mut file = Vec::new();
    let mut recorder = Recorder::new(&mut file, &header()).unwrap();
    for seq in 0..3_000 {
        recorder.record(&record);
        let what = Decision::Warned(Warning { code: WarningCode::Other, text: "w".into() });
        recorder.event(&Event { at: Time::from_nanos(seq), node: 0, seq, what: what.into() });
    }
    recorder.finish().unwrap();
    let page = page(&file);
    assert!(
        page.contains("The first 48 of 3000 are drawn") && page.contains("The first 2000 of 3000 events")
    );
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
}

#[test]
fn both_ends_of_a_stream_are_told_in_words() {
    use lastmile::endpoint::stream::{Decision, End, Left, Received, Sent};
    let peer = "192.0.2.7:5004".parse().unwrap();
    let sent = Sent { packets: 100, bytes: Bytes(120_000), acknowledged: 97, marked: 2, ..Sent::default() };
    let received = Received { packets: 97, lost: 3, jitter: Span::from_micros(250), ..Received::default() };
    let told = [
        (4, Decision::MediaStarted { peer, ssrc: 0xab, rate: Rate::ip(2_000_000) }),
        (
            4,
            Decision::MediaReported {
                lost: 3,
                jitter: Span::from_micros(250),
                rtt: Some(Span::from_millis(20)),
            },
        ),
        (5, Decision::SourceFound { peer, ssrc: 0xab, payload_type: 96 }),
        (4, Decision::MediaEnded { why: End::NoFeedback, sent }),
        (5, Decision::SourceLeft { peer, ssrc: 0xab, why: Left::Goodbye, received }),
    ];
    let line = |(seq, (node, what)): (usize, (u32, Decision))| {
        let event = Event { at: Time::from_nanos(seq as u64), node, seq: seq as u64, what: what.into() };
        serde_json::to_string(&event).unwrap() + "\n"
    };
    let page = page(told.into_iter().enumerate().map(line).collect::<String>().as_bytes());
    for wanted in [
        "stream 000000ab to 192.0.2.7:5004 began at 2 Mbit/s",
        "3 lost, jitter 250 us, round trip 20 ms",
        "ended since no feedback came: 100 packets sent, 97 acknowledged, 2 with ECN marks",
        "97 packets came, 3 lost",
        "<h2>Media streams</h2>",
        ">sender</text>",
        ">receiver</text>",
    ] {
        assert!(page.contains(wanted), "{wanted:?} is missing: {page}");
    }
    assert!(!page.contains("No method") && !page.contains(">session</text>"), "{page}");
}
