//! Round trips of everything that can be recorded, and files that are not recordings.

use std::net::SocketAddr;

use lastmile::endpoint::Event;
use lastmile::endpoint::measure::{Cost, Decision};
use lastmile::estimate::{
    Estimate, Interval, IntervalMethod, Quantity, Refusal, TruthKind, Value, Warning, WarningCode,
};
use lastmile::node::{Datagram, Ecn, Failure, Flow, Input, Model, Payload, PortId, TransmitId};
use lastmile::observe::StreamVerdict;
use lastmile::report::{Direction, Fate, PacketReport, Pattern, StreamRecord};
use lastmile::time::{Epoch, Span, Time};
use lastmile::units::{Bytes, Layer, Rate};
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn time() -> impl Strategy<Value = Time> {
    any::<u64>().prop_map(Time::from_nanos)
}
fn span() -> impl Strategy<Value = Span> {
    any::<i64>().prop_map(Span::from_nanos)
}
fn bytes() -> impl Strategy<Value = Bytes> {
    any::<u64>().prop_map(Bytes)
}
fn ecn() -> impl Strategy<Value = Ecn> {
    any::<u8>().prop_map(Ecn::from_bits)
}
fn rate() -> impl Strategy<Value = Rate> {
    (any::<u64>(), select(vec![Layer::Payload, Layer::Ip, Layer::Ethernet]))
        .prop_map(|(n, l)| Rate::new(n, l))
}
/// Without an IPv6 flow label, which the text form of an address has no place for.
fn address() -> impl Strategy<Value = SocketAddr> {
    (any::<std::net::IpAddr>(), any::<u16>()).prop_map(SocketAddr::from)
}
fn direction() -> impl Strategy<Value = Direction> {
    select(vec![Direction::Forward, Direction::Reverse, Direction::RoundTrip])
}
fn pattern() -> impl Strategy<Value = Pattern> {
    select(vec![Pattern::Pairs, Pattern::Train, Pattern::Burst])
}

fn payload() -> impl Strategy<Value = Payload> {
    let padded =
        (prop::collection::vec(any::<u8>(), 0..80), 0_usize..1_400).prop_map(|(mut bytes, zeros)| {
            bytes.resize(bytes.len() + zeros, 0);
            bytes
        });
    prop_oneof![
        padded.clone().prop_map(Payload::Udp),
        padded.prop_map(Payload::Ip),
        (any::<u32>(), any::<[u64; 4]>())
            .prop_map(|(ip_size, words)| Payload::Model(Model { ip_size, words })),
    ]
}

fn datagram() -> impl Strategy<Value = Datagram> {
    (address(), address(), any::<u32>(), ecn(), any::<u8>(), any::<u8>(), payload()).prop_map(
        |(from, to, flow, ecn, dscp, hop_limit, payload)| Datagram {
            from,
            to,
            flow: Flow(flow),
            ecn,
            dscp,
            hop_limit,
            payload,
        },
    )
}

fn input() -> impl Strategy<Value = Input> {
    let id = || any::<u64>().prop_map(TransmitId);
    let reason = select(vec![Failure::PortClosed, Failure::Unreachable, Failure::TooBig, Failure::Host]);
    prop_oneof![
        (any::<u16>(), time(), datagram()).prop_map(|(port, at, datagram)| Input::Datagram {
            port: PortId(port),
            at,
            datagram
        }),
        (id(), time()).prop_map(|(id, at)| Input::Sent { id, at }),
        (id(), span()).prop_map(|(id, wait)| Input::Queued { id, wait }),
        (prop::option::of(id()), reason).prop_map(|(id, reason)| Input::Failed {
            port: PortId(id.map_or(0, |id| (id.0 % 3) as u16)),
            id,
            reason
        }),
        span().prop_map(|by| Input::ClockStepped { by }),
        Just(Input::Wake),
        Just(Input::Interrupted),
    ]
}

fn cost() -> impl Strategy<Value = Cost> {
    (bytes(), bytes(), bytes(), bytes(), span(), any::<u32>(), any::<u32>()).prop_map(|c| Cost {
        probe_bytes: c.0,
        control_bytes: c.1,
        credit_bytes: c.2,
        bytes_received: c.3,
        elapsed: c.4,
        streams: c.5,
        streams_discarded: c.6,
    })
}

fn estimate() -> impl Strategy<Value = Estimate> {
    use IntervalMethod::{BatchSpread, BootstrapGaps, MedianOrderStatistics, StudentTrains};
    let code = select(vec![WarningCode::LowerBound, WarningCode::BatchedStamps, WarningCode::Other]);
    let method = select(vec![MedianOrderStatistics, BootstrapGaps, StudentTrains, BatchSpread]);
    let interval = (rate(), rate(), 0.0_f64..1.0, method)
        .prop_map(|(low, high, confidence, method)| Interval { low, high, confidence, method })
        .boxed();
    (
        select(vec![Quantity::Capacity, Quantity::SustainedRate, Quantity::AvailableBandwidth]),
        prop_oneof![rate().prop_map(Value::Is), rate().prop_map(Value::MoreThan), Just(Value::Unknown)],
        (prop::option::of(interval.clone()), prop::option::of(interval)),
        select(vec![TruthKind::Queue, TruthKind::Saturation]),
        prop::array::uniform2(prop::option::of(any::<u64>().prop_map(Bytes))),
        prop::collection::vec(any::<u32>(), 0..4),
        prop::collection::vec((code, any::<String>()).prop_map(|(code, text)| Warning { code, text }), 0..3),
    )
        .prop_map(
            |(quantity, value, (interval, next), truth_kind, [burst, packet_size], streams, warnings)| {
                Estimate {
                    quantity,
                    value,
                    interval,
                    next,
                    truth_kind,
                    burst,
                    packet_size,
                    streams,
                    warnings,
                }
            },
        )
}

fn refusal() -> impl Strategy<Value = Refusal> {
    let two = || (any::<u32>(), any::<u32>());
    prop_oneof![
        two().prop_map(|(sent, discarded)| Refusal::ScheduleBroken { sent, discarded }),
        two().prop_map(|(lost, sent)| Refusal::TooLossy { lost, sent }),
        two().prop_map(|(overtaken, sent)| Refusal::Reordered { overtaken, sent }),
        Just(Refusal::ClockStepped),
        any::<u32>().prop_map(|streams| Refusal::NotConverged { streams }),
        bytes().prop_map(|limit| Refusal::ByteLimit { limit }),
        span().prop_map(|limit| Refusal::TimeLimit { limit }),
        (any::<usize>(), span()).prop_map(|(packets, lasts)| Refusal::TooLong { packets, lasts }),
        Just(Refusal::PeerSilent),
        any::<String>().prop_map(Refusal::PeerCannot),
        any::<String>().prop_map(Refusal::PeerAbsent),
        any::<String>().prop_map(Refusal::Inconsistent),
    ]
}

fn decision() -> impl Strategy<Value = Decision> {
    use StreamVerdict::{Believed, ClockStepped, NoReport, Reordered, ScheduleBroken, TooLossy};
    let verdict = select(vec![Believed, ScheduleBroken, TooLossy, Reordered, ClockStepped, NoReport]);
    prop_oneof![
        (address(), any::<bool>(), span()).prop_map(|(peer, lastmile, rtt)| Decision::PeerReady {
            peer,
            lastmile,
            rtt
        }),
        (any::<[u32; 4]>(), direction(), pattern(), verdict).prop_map(
            |([stream, packets, lost, gaps_held], direction, pattern, verdict)| Decision::StreamJudged {
                stream,
                direction,
                pattern,
                packets,
                lost,
                gaps_held,
                verdict
            }
        ),
        (any::<String>(), direction(), estimate(), cost()).prop_map(|(method, direction, estimate, cost)| {
            Decision::Estimated { method, direction, estimate, cost }
        }),
        (any::<String>(), direction(), refusal(), cost()).prop_map(|(method, direction, refusal, cost)| {
            Decision::Refused { method, direction, refusal, cost }
        }),
        any::<String>().prop_map(|text| Decision::Warned(Warning { code: WarningCode::OwnQueue, text })),
        span().prop_map(|by| Decision::ClockStepped { by }),
        address().prop_map(|peer| Decision::SessionOpened { peer }),
        (address(), any::<[u64; 4]>()).prop_map(|(peer, [no_session, no_room, over_budget, unpaid])| {
            Decision::TurnedAway { peer, no_session, no_room, over_budget, unpaid }
        }),
        (address(), bytes(), bytes()).prop_map(|(peer, received, sent)| Decision::SessionClosed {
            peer,
            received,
            sent
        }),
        cost().prop_map(|cost| Decision::Finished { cost }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    (time(), any::<u16>(), any::<u64>(), decision()).prop_map(|(at, node, seq, what)| Event {
        at,
        node: u32::from(node),
        seq,
        what: what.into(),
    })
}

fn stream() -> impl Strategy<Value = StreamRecord> {
    let fate = prop_oneof![
        any::<u64>().prop_map(|ns| Fate::Arrived(Time::from_nanos(ns))),
        Just(Fate::Lost),
        Just(Fate::Late)
    ];
    let packet =
        (any::<u64>(), bytes(), any::<u64>(), fate, ecn()).prop_map(|(seq, size, sent, fate, ecn)| {
            PacketReport { seq, size, sent: Time::from_nanos(sent), fate, ecn }
        });
    let lists = (prop::collection::vec(span(), 0..9), prop::collection::vec(packet, 0..9));
    (any::<u32>(), direction(), pattern(), lists, span(), span(), any::<bool>()).prop_map(
        |(stream, direction, pattern, (planned, packets), tx_resolution, rx_resolution, clock_stepped)| {
            StreamRecord {
                stream,
                direction,
                pattern,
                planned,
                packets,
                tx_resolution,
                rx_resolution,
                clock_stepped,
            }
        },
    )
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        (time(), input()).prop_map(|(now, input)| Entry::Input { now, input }),
        event().prop_map(Entry::Event),
        stream().prop_map(|stream| Entry::Record(serde_json::to_value(stream).unwrap())),
    ]
}

fn header() -> impl Strategy<Value = Header> {
    let config = any::<(String, f64)>().prop_map(|(s, x)| serde_json::json!({ "method": s, "loss": x }));
    (select(vec![World::Sim, World::Lab, World::Real]), any::<[u8; 32]>(), any::<u64>(), config).prop_map(
        |(world, seed, ns, config)| Header {
            world,
            role: "measure".into(),
            seed,
            epoch: Epoch::from_unix_nanos(ns),
            config,
        },
    )
}

fn write(header: &Header, entries: &[Entry]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut recorder = Recorder::new(&mut file, header).unwrap();
    for entry in entries {
        match entry {
            Entry::Input { now, input } => recorder.input(*now, input),
            Entry::Event(event) => recorder.event(event),
            Entry::Record(record) => recorder.record(record),
        }
    }
    recorder.finish().unwrap();
    file
}

/// The first line, all entries, and where the file is cut.
type Contents = (Option<Header>, Vec<Entry>, Option<String>);

fn read_cut(file: &[u8]) -> Result<Contents, RecordingError> {
    let mut reader = Reader::new("run.jsonl", file)?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        entries.push(entry);
    }
    Ok((reader.header().cloned(), entries, reader.cut().map(str::to_owned)))
}

/// All entries of a whole file.
fn read(file: &[u8]) -> Result<(Option<Header>, Vec<Entry>), RecordingError> {
    let (header, entries, cut) = read_cut(file)?;
    assert_eq!(cut, None);
    Ok((header, entries))
}

fn plain_header() -> Header {
    Header {
        world: World::Sim,
        role: String::new(),
        seed: [0; 32],
        epoch: Epoch::default(),
        config: serde_json::Value::Null,
    }
}

fn error(file: &[u8]) -> String {
    read(file).unwrap_err().to_string()
}

proptest! {
    #[test]
    fn what_is_written_is_read(header in header(), entries in prop::collection::vec(entry(), 0..12)) {
        let file = write(&header, &entries);
        let (got, read) = read(&file).unwrap();
        prop_assert_eq!(got, Some(header));
        prop_assert_eq!(read, entries);
    }

    #[test]
    fn no_prefix_passes_for_a_whole(entries in prop::collection::vec(entry(), 0..5), cut in any::<prop::sample::Index>()) {
        let file = write(&plain_header(), &entries);
        // The last line's own end may be missing: all of its content is there.
        let cut = cut.index(file.len() - 1);
        // The entries before the cut are read, and nothing else.
        if let Ok((_, got, cut)) = read_cut(&file[..cut]) {
            prop_assert!(cut.is_some() && got.len() <= entries.len() && got[..] == entries[..got.len()]);
        }
    }

    #[test]
    fn no_bytes_panic(garbage in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_cut(&garbage);
        let mut file = write(&plain_header(), &[]);
        let end = file.iter().position(|&b| b == b'\n').unwrap() + 1;
        file.splice(end..end, garbage);
        let _ = read_cut(&file);
    }

    #[test]
    fn no_changed_byte_panics(entries in prop::collection::vec(entry(), 1..4), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut file = write(&plain_header(), &entries);
        let at = at.index(file.len());
        file[at] = to;
        let _ = read_cut(&file);
    }

    #[test]
    fn event_files_have_no_header(events in prop::collection::vec(event(), 1..6)) {
        let lines: Vec<_> = events.iter().map(|e| serde_json::to_string(e).unwrap()).collect();
        let (header, entries) = read(lines.join("\n").as_bytes()).unwrap();
        prop_assert_eq!(header, None);
        prop_assert_eq!(entries, events.into_iter().map(Entry::Event).collect::<Vec<_>>());
    }
}

#[test]
fn the_form_is_the_documented_one() {
    let (a, b) = ("10.0.0.1:8620".parse().unwrap(), "10.0.0.2:5000".parse().unwrap());
    let mut packet = Datagram::udp(a, b, [vec![0xab, 0x01], vec![0; 42]].concat());
    packet.hop_limit = 64;
    let at = Time::from_nanos(7);
    let input = Input::Datagram { port: PortId(0), at, datagram: packet };
    let file = write(&plain_header(), &[Entry::Input { now: Time::from_nanos(9), input }]);
    let lines: Vec<_> = std::str::from_utf8(&file).unwrap().lines().collect();
    let zeros = "0".repeat(64);
    assert_eq!(
        lines,
        [
            format!(
                r#"{{"lastmile":"recording","version":1,"world":"sim","role":"","seed":"{zeros}","epoch":0,"config":null}}"#
            ),
            r#"{"now":9,"input":{"datagram":{"port":0,"at":7,"from":"10.0.0.1:8620","to":"10.0.0.2:5000","flow":0,"ecn":"not-ect","dscp":0,"hop_limit":64,"udp":"ab01","len":44}}}"#.to_owned(),
            r#"{"end":{"inputs":1,"events":0,"streams":0}}"#.to_owned(),
        ]
    );
}

#[test]
fn errors_name_file_line_and_trouble() {
    let wake = Entry::Input { now: Time::ZERO, input: Input::Wake };
    let whole = write(&plain_header(), &[wake.clone(), wake]);
    let text = std::str::from_utf8(&whole).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let upto = |n: usize| lines[..n].join("\n") + "\n";

    let cases = [
        (
            upto(2) + lines[3],
            "run.jsonl:3: 1 inputs, 0 events and 0 streams stand before an end of 2, 0 and 0",
        ),
        (upto(4) + lines[1] + "\n", "run.jsonl:5: something stands behind the end"),
        (upto(2) + "{\"now\":1}\n", "run.jsonl:3: a line is an input with its time"),
        (upto(1) + "{\"bytes\":1}\n", "run.jsonl:2: unknown field `bytes`"),
        (String::new(), "run.jsonl:0: the file is empty"),
        ("hello\n".into(), "run.jsonl:1: neither a recording nor an event: expected value"),
        (lines[0].replace("\"version\":1", "\"version\":9"), "recording of version 9"),
        (lines[0].replace("\"recording\"", "\"scenario\""), "this is a \"scenario\" of lastmile"),
        (lines[0].replacen("000000", "00000", 1), "run.jsonl:1: the seed is not 64 hexadecimal digits"),
    ];
    for (file, wanted) in cases {
        let got = error(file.as_bytes());
        assert!(got.contains(wanted), "{got:?} lacks {wanted:?}");
    }
    assert!(read(text.trim_end().as_bytes()).is_ok(), "the last line's end may be missing");

    for (file, inputs, wanted) in [
        (upto(3), 2, "cut at line 3: the last line, \"end\", is missing; its writer was killed"),
        (
            upto(2) + "{\"now\":1,\"inp",
            1,
            "cut at line 3: EOF while parsing a string (column 13); its writer",
        ),
    ] {
        let (_, entries, cut) = read_cut(file.as_bytes()).unwrap();
        assert_eq!(entries.len(), inputs);
        assert!(cut.as_ref().is_some_and(|cut| cut.contains(wanted)), "{cut:?} lacks {wanted:?}");
    }
}

#[test]
fn claims_of_the_file_are_not_allocated() {
    let packet = |udp: &str, len: &str| {
        let first =
            String::from_utf8(write(&plain_header(), &[])).unwrap().lines().next().unwrap().to_owned();
        let packet = format!(
            r#"{{"port":0,"at":7,"from":"1.2.3.4:5","to":"1.2.3.4:5","flow":0,"ecn":"ce","dscp":0,"hop_limit":64,"udp":"{udp}","len":{len}}}"#
        );
        error(format!("{first}\n{{\"now\":9,\"input\":{{\"datagram\":{packet}}}}}\n").as_bytes())
    };
    assert!(packet("ab", "9999999999999").contains("does not fit a packet"));
    assert!(packet("abab", "1").contains("2 bytes of payload are more than the length of 1"));
    assert!(packet("abx0", "2").contains("not hexadecimal"));
    assert!(packet("aba", "2").contains("not hexadecimal"));
}

#[test]
fn an_endless_line_is_not_read_into_memory() {
    let endless = std::io::BufReader::new(std::io::repeat(b' '));
    let error = Reader::new("zero", endless).err().unwrap().to_string();
    assert!(error.contains("zero:1: the line is longer than"), "{error}");
}

#[test]
fn a_full_disk_is_told_at_the_end() {
    /// Takes the header and nothing more.
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
            self.0 += 1;
            if self.0 > 1 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(data.len()) }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut recorder = Recorder::new(Full(0), &plain_header()).unwrap();
    recorder.input(Time::ZERO, &Input::Wake);
    assert_eq!(recorder.finish().unwrap_err().kind(), std::io::ErrorKind::StorageFull);
}
